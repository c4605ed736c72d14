"""Entities, evidence and work that is kept, in a real browser: a graph that is explored from one node to 60 and back, its
keys and files; 1,000 statements of evidence in a few boxes; charts and a map; questions with names and notes, as Markdown and
as a notebook that runs.

With `CONDGRAPH_SCREENSHOTS` set to a folder, pictures are left there.
"""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import condgraph
from condgraph.engine.facts import Entity, EntityKind, Member, Ref, Statement
from condgraph.engine.values import Point, Quantity, Time
from tests.e2e.test_studio import SCRIPTS, axe, go, run, studio, tab
from tests.endpoint.test_serve import command
from tests.support.pages import answered, picture, until

#: Stations that one ride leads to from the hub; trips, each with a station and a duration.
STATIONS, TRIPS = 75, 500


@pytest.fixture(scope="module")
def rail(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rail") / "store"
    items: list[Any] = [Entity("station", "station", EntityKind.CONCEPT), Entity("trip", "trip", EntityKind.CONCEPT)]
    items += [Entity("hub", "Berlin Hauptbahnhof"), Member("hub", "station"), Entity("gmp", "gmp Architekten")]
    built = (("start time", Time.year(1993)), ("end time", Time.year(2006)))
    items += [Statement("hub", "architect", Ref("gmp"), built), Statement("hub", "opened", Time.year(2006))]
    items += [Statement("hub", "platforms", Quantity(14)), Statement("hub", "location", Point.of(13.369, 52.525))]
    for number in range(5):
        term = (("start time", Time.year(2006 + 4 * number)), ("end time", Time.year(2010 + 4 * number)))
        items += [Entity(f"m{number}", f"Manager {number}"), Statement("hub", "manager", Ref(f"m{number}"), term)]
    for number in range(STATIONS):
        ride = (("minutes", Quantity(3 + number, "min")),)
        items += [Entity(f"s{number}", f"Station {number}"), Member(f"s{number}", "station")]
        items.append(Statement("hub", "one ride to", Ref(f"s{number}"), ride))
        items.append(Statement(f"s{number}", "location", Point.of(13 + number * 37 % 75 / 60, 52 + number * 53 % 75 / 60)))
    for number in range(TRIPS):
        items += [Entity(f"t{number}", f"Trip {number}"), Member(f"t{number}", "trip")]
        items.append(Statement(f"t{number}", "from", Ref(f"s{number % STATIONS}")))
        items.append(Statement(f"t{number}", "duration", Quantity(2 + number % 47, "min")))
    items += [Statement("s1", SCRIPTS[0], SCRIPTS[1]), Statement("s1", "sign", Ref("sign")), Entity("sign", SCRIPTS[3])]
    with condgraph.open(folder) as graph:
        graph.add(items, source="rail")
    return folder


@pytest.fixture(scope="module")
def served(rail: Path) -> Iterator[str]:
    with command("-d", str(rail), "--rate", "0", "--workers", "2") as (url, _):
        yield url


def places(page: Any) -> dict[str, str]:
    """Where each box is."""
    found: list[list[str]] = page.evaluate(
        "[...document.querySelectorAll('.picture .node')].map((one) => [one.dataset.id, one.getAttribute('transform')])"
    )
    return dict(map(tuple, found))


def chosen(page: Any) -> str:
    return str(page.evaluate("document.activeElement.dataset.id ?? document.activeElement.tagName"))


def overlapping(page: Any) -> list[str]:
    """Boxes that lie over each other, and names of edges that lie over a box."""
    found: list[str] = page.evaluate(
        """() => { const found = [], rects = (selector) => [...document.querySelectorAll(selector)]
          .map((one) => [one.textContent, one.getBoundingClientRect()]);
        const boxes = rects('.picture .node rect'), names = rects('.picture .names text');
        const meet = ([a, one], [b, other]) => one.left < other.right - 1 && other.left < one.right - 1
          && one.top < other.bottom - 1 && other.top < one.bottom - 1 && found.push(`${a} ${b}`);
        boxes.forEach((one, at) => boxes.slice(at + 1).forEach((other) => meet(one, other)));
        names.forEach((one) => boxes.forEach((other) => meet(one, other)));
        return found; }"""
    )
    return found


def test_a_node_is_expanded_to_60_and_back(browser: Any, served: str, tmp_path: Path) -> None:
    with studio(browser, served) as page:
        go(page, "entity", id="hub")
        page.wait_for_selector(".picture .node")
        page.wait_for_selector(".when canvas")
        page.wait_for_selector("h2:has-text('What points here')")
        assert page.locator("h1, h2, h3").all_inner_texts() == [
            *("Berlin Hauptbahnhof", "When", f"What is known of it: {STATIONS + 9}"),
            *(
                "architect 1",
                "location 1",
                "manager 5",
                f"one ride to {STATIONS}",
                "opened 1",
                "platforms 1",
                "What points here: 0",
            ),
        ]
        # Statements of a predicate come a page at a time.
        rides = page.locator("[data-predicate='one ride to']")
        assert rides.locator("tbody tr").count() == 20
        rides.locator("button:has-text('Show 55 more of 75')").click()
        until(page, "document.querySelectorAll(\"[data-predicate='one ride to'] tbody tr\").length === 75")
        assert page.evaluate("document.querySelector('.when .chart').chart.data.datasets[0].data.length") == 7
        assert page.evaluate("document.querySelector('.when .chart').chart.options.scales.y.title.text") == "statement"
        page.evaluate("scrollTo(0, 0)")
        picture(page, "entity-page")
        axe(page, "an entity")
        before = places(page)
        # Frequent predicates are a box with their number: 5 managers, 75 stations.
        assert sorted(text for text in page.locator(".picture .node text").all_text_contents() if text.isdigit()) == [
            "14",
            "2006",
            "5",
            "75",
        ]
        page.locator(".ways li:has-text('one ride to') input").fill("60")
        page.locator(".ways li:has-text('one ride to') button").click()
        until(page, f"document.querySelectorAll('.picture .node').length === {len(before) + 60}")
        after = places(page)
        assert len(after) == len(before) + 60
        assert {one: after[one] for one in before} == before
        assert overlapping(page) == []
        assert "15 more" in page.locator(".picture .node text").all_text_contents()
        picture(page, "expanded")
        # A link has the steps.
        address = page.url
        page.click("button:has-text('Undo')")
        until(page, f"document.querySelectorAll('.picture .node').length === {len(before)}")
        assert places(page) == before
        page.goto("about:blank")
        page.goto(address)
        until(page, f"document.querySelectorAll('.picture .node').length === {len(after)}")
        assert places(page) == after
        # By keys alone: go, hide, undo, pin, open, and back from what is told.
        page.focus(".picture .node[tabindex='0']")
        assert chosen(page) == "e:hub"
        page.keyboard.press("ArrowRight")
        beside = chosen(page)
        assert beside != "e:hub"
        assert page.locator(".picture .node[aria-pressed=true]").get_attribute("data-id") == beside
        page.keyboard.press("Delete")
        until(page, f"document.querySelectorAll('.picture .node').length === {len(after) - 1}")
        # Who hides a node by its key stands on another.
        assert chosen(page).startswith("e:")
        page.click("text=Show hidden")
        until(page, f"document.querySelectorAll('.picture .node').length === {len(after)}")
        page.focus(".picture .node[data-id='e:hub']")
        page.keyboard.press("p")
        page.click(".chosen button:has-text('Let go')")
        page.keyboard.press("Escape")
        assert chosen(page) == "e:hub"
        # What is drawn, as a list.
        page.click("summary:has-text('What is drawn, as a list')")
        until(page, f"document.querySelectorAll('.drawn li').length === {len(after) - 1}")
        for name in ("svg", "png"):
            with page.expect_download() as waited:
                page.click(f"[data-picture={name}]")
            waited.value.save_as(tmp_path / f"graph.{name}")
        drawing = ET.parse(tmp_path / "graph.svg").getroot()
        assert "Station 0" in [one.text for one in drawing.iter("{http://www.w3.org/2000/svg}text")]
        assert (tmp_path / "graph.png").read_bytes()[:4] == b"\x89PNG"
        # Names that are scripts are text, in the picture and in its address.
        go(page, "entity", id="s1", v=json.dumps([["x", "e:s1", SCRIPTS[0], True, 0, 5], ["h", SCRIPTS[1]], "z", ["p", 1]]))
        page.wait_for_selector("h1:has-text('Station 1')")
        page.wait_for_selector(".picture .node")
        # The steps of an address are taken one after the other, once the page stands.
        drawn = "name => [...document.querySelectorAll('.picture .node text')].some((one) => one.textContent.includes(name))"
        until(page, drawn, SCRIPTS[3][:9])
        assert page.evaluate("window.hacked") is None


@pytest.mark.parametrize("width", [390, 1920])
def test_it_fits_and_is_dark(browser: Any, served: str, width: int) -> None:
    with studio(browser, served, viewport={"width": width, "height": 900}, color_scheme="dark") as page:
        go(page, "entity", id="hub")
        page.wait_for_selector(".when canvas")
        page.locator(".picture .node[data-id*='one ride to']").dblclick()
        until(page, "document.querySelectorAll('.picture .node').length >= 60")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        axe(page, f"an entity, {width} pixels wide")
        picture(page, f"entity-{width}")


def test_much_evidence_is_a_few_boxes(browser: Any, served: str) -> None:
    with studio(browser, served) as page:
        run(page, "FindAll() FilterConcept(trip) FilterNum(duration, 1 min, >) Relate(from, forward) QueryName()")
        assert "1,500" in page.inner_text("[data-tab=evidence]")
        tab(page, "evidence")
        page.wait_for_selector(".picture .node")
        boxes = page.locator(".picture .node text").all_text_contents()
        assert len(boxes) < 12
        assert {f"{STATIONS} × entities", f"{TRIPS} × trip", f"{TRIPS} × duration"} <= set(boxes)
        # So is the list: by the step of the program, by predicate, by concept.
        groups = page.locator(".panel details.group > summary")
        assert groups.all_inner_texts() == [f"2 FilterConcept {TRIPS}", f"3 FilterNum {TRIPS}", f"4 Relate {TRIPS}"]
        groups.nth(1).click()
        assert page.locator(".panel table caption").inner_text() == f"{TRIPS} statements: 3 FilterNum"
        assert page.locator(".panel table tbody tr").count() == 100
        assert set(page.locator(".panel table tbody td:nth-child(2)").all_inner_texts()) == {"duration"}
        picture(page, "much-evidence")
        axe(page, "much evidence")
        page.select_option(".panel select >> nth=-1", "predicate")
        assert sorted(groups.all_inner_texts()) == [f"duration {TRIPS}", f"from {TRIPS}", f"instance of {TRIPS}"]
        page.select_option(".panel select >> nth=-1", "concept")
        assert groups.all_inner_texts() == ["trip 1,500"]
        page.select_option(".grouping", "steps")
        boxes = page.locator(".picture .node text").all_text_contents()
        assert {f"{TRIPS} × trip · 2 FilterConcept"[:25], f"{STATIONS} × entities · 4 Relate"} <= {one.rstrip("…") for one in boxes}
        page.click("button:has-text('Undo')")
        # A box is opened, and closed again by undo.
        before = places(page)
        page.locator(".picture .node:has-text('75 ×')").dblclick()
        until(page, "document.querySelectorAll('.picture .node').length > 60")
        assert overlapping(page) == []
        page.click("button:has-text('Undo')")
        until(page, f"document.querySelectorAll('.picture .node').length === {len(before)}")
        assert places(page) == before
        page.select_option(".grouping", "kinds")
        until(page, f"document.querySelectorAll('.picture .node').length <= {len(before)}")
        assert page.locator(".picture .node text").count()
        # Numbers over numbers, and how they are spread.
        run(page, "FindAll() FilterConcept(trip)")
        page.click(".editor.small .cm-content")
        page.keyboard.insert_text("show self, duration, duration * 2 as twice limit 400")
        page.keyboard.press("Control+Enter")
        # The answer before may have a chart, too.
        answered(page)
        tab(page, "chart")
        for form, kind, across, up in (
            ("bars", "bar", "duration, min", "self"),
            ("histogram", "bar", "duration, min", "how many"),
            ("scatter", "scatter", "twice, min", "duration, min"),
            ("line", "line", "twice, min", "duration, min"),
        ):
            page.select_option("#chart-form", form)
            chart = "document.querySelector('.chart').chart"
            assert page.evaluate(f"{chart}.config.type") == kind
            assert page.evaluate(f"['x', 'y'].map((one) => {chart}.options.scales[one].title.text)") == [across, up]
            picture(page, f"chart-{form}")
        assert page.evaluate(f"[{chart}.scales.x.min, {chart}.scales.x.max >= 96]") == [0, True]
        axe(page, "a chart")
        go(page, "ask", q="FindAll() FilterConcept(station)", t="show self, location")
        page.wait_for_selector("[data-tab=map]")
        answered(page)
        tab(page, "map")
        assert page.locator(".map circle").count() == STATIONS + 1
        picture(page, "map")
        axe(page, "a map")


def test_work_that_is_kept(browser: Any, served: str, rail: Path, tmp_path: Path) -> None:
    with studio(browser, served) as page:
        run(page, "Find(Berlin Hauptbahnhof) Relate(manager, forward) QueryName()")
        page.click(".star")
        page.fill("[aria-label='Name of this question']", "Managers | <b>")
        page.fill("[aria-label='Note beside this answer']", "Ask *Anna*\nbefore Friday")
        page.keyboard.press("Tab")
        run(page, "SELECT ?name { ?s pred:name ?name } LIMIT 2", "sparql")
        page.click("nav a:has-text('History')")
        until(page, "document.querySelectorAll('.history li').length === 2")
        page.check("#starred")
        until(page, "document.querySelectorAll('.history li').length === 1")
        page.uncheck("#starred")
        axe(page, "the history")
        picture(page, "history")
        for name in ("questions.md", "questions.ipynb"):
            with page.expect_download() as waited:
                page.click(f"[data-file='{name}']")
            waited.value.save_as(tmp_path / name)
        page.click("button:has-text('Forget all without star, name or note')")
        until(page, "document.querySelectorAll('.history li').length === 1")
        # The question has its note again when it is asked again.
        page.click(".history a")
        # The answer before stands, with an empty note, until this one comes.
        until(page, "document.querySelector('.answer .keeping textarea')?.value === 'Ask *Anna*\\nbefore Friday'")
    text = (tmp_path / "questions.md").read_text(encoding="utf-8")
    assert "## Managers \\| \\<b\\>\n" in text
    assert "Ask \\*Anna\\*\n\nbefore Friday" in text
    assert "| Manager 0 |" in text
    book = json.loads((tmp_path / "questions.ipynb").read_text(encoding="utf-8"))
    assert (book["nbformat"], len({one["id"] for one in book["cells"]})) == (4, len(book["cells"]))
    names: dict[str, Any] = {}
    results = []
    for source in (one["source"] for one in book["cells"] if one["cell_type"] == "code"):
        *lines, last = source.replace('"PATH"', repr(str(rail))).splitlines()
        exec("\n".join(lines), names)
        results.append(eval(last, names) if not last.startswith("graph =") else exec(last, names))  # noqa: S307
    assert len(results[1].rows) == 2
    assert results[2].texts == [f"Manager {number}" for number in range(5)]
    names["graph"].close()
