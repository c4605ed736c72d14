"""Every page of the studio, narrow and wide, light and dark: axe finds nothing, and nothing is wider than the window. The first
pages of graphs of different kinds: tables alone, a knowledge graph, one with times.

With `CONDGRAPH_SCREENSHOTS` set to a folder, pictures are left there.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import condgraph
from condgraph.samples import FOLDER
from tests.e2e.test_start import entries
from tests.e2e.test_studio import axe, run, studio
from tests.endpoint.test_serve import command
from tests.support.lanes import by_lane
from tests.support.pages import picture, until, visited


def stations_and_trips(folder: Path) -> Path:
    """Two files as people have them, one of which refers to the other twice."""
    folder.mkdir()
    dice, begin = random.Random(3), datetime(2024, 5, 1, 5)
    stations = [f"{place} {number}" for place in ("Harbour", "Market", "Park", "Station", "Zoo") for number in range(1, 9)]
    lines = ["station,district,docks,opened,position"]
    for number, name in enumerate(stations):
        where = f"POINT({13.2 + dice.random() / 3:.4f} {52.4 + dice.random() / 5:.4f})"
        lines.append(
            f"{name},{('North', 'South', 'East', 'West')[number % 4]},{dice.randint(8, 40)},{2015 + number % 8}-04-01,{where}"
        )
    (folder / "stations.csv").write_text("\n".join(lines) + "\n")
    lines = ["trip,from,to,started,minutes,price,rider"]
    for number in range(900):
        begin += timedelta(minutes=dice.randint(1, 30))
        ride = f"{begin:%Y-%m-%dT%H:%M},{dice.randint(3, 70)} min,{dice.randint(2, 9)}.50 EUR,{dice.choice(['member', 'guest'])}"
        lines.append(f"T{1000 + number},{dice.choice(stations)},{dice.choice(stations)},{ride}")
    (folder / "trips.csv").write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, samples_world: Path) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("kinds")
    with condgraph.open(folder / "bikes") as graph:
        graph.load(
            stations_and_trips(folder / "files"),
            join={"trips.from": "stations.station", "trips.to": "stations.station"},
            name_columns={"stations": "station", "trips": "trip"},
        )
    with condgraph.open(folder / "countries") as graph:
        graph.load(FOLDER / "countries.json")
    with condgraph.open(folder / "terms") as graph:
        graph.load(FOLDER / "governments.tsv")
    others = [str(folder / name) for name in ("bikes", "countries", "terms")]
    with command("-d", str(samples_world), *others, "--rate", "0", "--workers", "2") as (url, _):
        yield url


#: What is in the lists of a graph, and a part of its questions.
KINDS = {
    "bikes": ({"concepts": ["trips 900", "stations 40"], "units": ["EUR 900", "min 900"]}, "How many entities of trips"),
    "countries": ({"tables": [], "concepts": ["country 24"]}, "How many entities of politician"),
    "terms": ({"concepts": [], "predicates": ["head of government 57"]}, "What was the head of government of Canada in 1990?"),
}


@pytest.mark.parametrize("name", KINDS)
def test_the_first_page_fits_the_graph(browser: Any, served: str, name: str) -> None:
    lists, about = KINDS[name]
    view = {"width": 1280, "height": 900}
    with visited(browser, served, f"/#/start?g={name}", "body[data-ready]", known=("inline style",), viewport=view) as page:
        until(page, "document.querySelector('.contents')?.dataset.ready === 'yes' && document.querySelector('.questions')")
        picture(page, f"studio-start-{name}")
        for kind, wanted in lists.items():
            found = entries(page, kind)
            assert all(any(one.startswith(start) for one in found) for start in wanted), found
            assert bool(found) == bool(wanted)
        assert about in page.inner_text(".questions")
        assert page.locator(".questions a").count() == 3
        assert page.evaluate("document.querySelector('.schema img').decode().then(() => 1)") == 1


RIDES = ("bikes", "FindAll() FilterConcept(trips) FilterNum(minutes, 60 min, >)")
HEIGHTS = ("", "FindAll() FilterNum(height, 7000 m, >) QueryAttr(height)")
#: Each page: its graph and address, what is there when it is ready, and what is clicked first.
PAGES: dict[str, tuple[str, str, str, tuple[str, ...]]] = {
    "start": ("", "#/start", ".questions a", (".contents summary",)),
    "bikes": ("bikes", "#/start", ".questions a", ()),
    "terms": ("terms", "#/start", ".questions a", ()),
    "rows": ("", "#/browse?t=mountains", "table.rows", ()),
    "members": ("bikes", "#/browse?c=stations", "table.rows", ()),
    "entity": ("", "#/entity?name=Nepal", ".picture .node", (".picture .node >> nth=0",)),
    "entity with places": ("bikes", "#/entity?name=Zoo 1", ".map, .picture .node", ()),
    "entity with times": ("terms", "#/entity?name=Germany", ".when canvas", ()),
    "schema": ("", "#/schema", "#filter", ()),
    "history": ("", "#/history", "main h1", ()),
    "api": ("", "#/api", "main h2", ()),
    "sparql": ("", "#/sparql?l=sparql&q=SELECT ?n { ?x pred:name ?n } LIMIT 3", "table.answers", ()),
    "not found": ("", "#/entity?name=Nepall", "p.error", ()),
    "no such table": ("", "#/browse?t=mountain", "p.error", ()),
    "a wrong name": ("", "#/ask?q=Find(Nepal) QueryAttr(hight)", "div.error", ()),
    "no program": ("", "#/ask?q=Find(", "div.error", ()),
    "an empty answer": ("", "#/ask?q=FindAll() FilterNum(height, 9999 m, >) QueryName()", ".answer .summary", ()),
    **{
        f"the {tab} of an answer": (graph, f"#/ask?q={text}", f"[data-tab={tab}]", (f"[data-tab={tab}]",))
        for tab, (graph, text) in {
            **dict.fromkeys(("table", "chart", "evidence", "tree", "steps", "queries"), HEIGHTS),
            "map": ("bikes", "FindAll() FilterConcept(stations) QueryAttr(position)"),
        }.items()
    },
    "much evidence": (
        *RIDES[:1],
        f"#/ask?q={RIDES[1]} Relate(from, forward) QueryName()",
        ".answer .summary",
        ("[data-tab=evidence]",),
    ),
}
#: Of windows and colours the gate tries one a page.
LOOKS = [(390, "dark"), (1920, "light"), (390, "light"), (1920, "dark")]


@pytest.mark.parametrize(("width", "colours"), LOOKS)
def test_every_page_is_accessible_and_fits(browser: Any, served: str, width: int, colours: str) -> None:
    own = LOOKS.index((width, colours))
    names = by_lane([*PAGES][own :: len(LOOKS)], [*PAGES], [*PAGES])
    with studio(browser, served, viewport={"width": width, "height": 900}, color_scheme=colours) as page:
        run(page, "Find(Nepal) Relate(capital, forward) QueryName()")  # so that the history has one
        for name in names:
            graph, address, ready, clicks = PAGES[name]
            page.evaluate(
                "to => { location.hash = to }", address + (("&" if "?" in address else "?") + f"g={graph}" if graph else "")
            )
            page.wait_for_selector(ready)
            until(page, "!document.querySelector('.answer[aria-busy]')")
            for click in clicks:
                page.click(click)
            where = f"{name}, {width} pixels wide, {colours}"
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), where
            axe(page, where, minor=True)
            picture(page, f"{name.replace(' ', '-')}-{width}-{colours}")
