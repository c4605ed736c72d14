"""A person looks at a graph in Neo4j Browser: a real Browser, a real server, and what the page in
the documentation promises.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import condgraph
from condgraph.engine.facts import Entity, EntityKind, Item, Member, Ref, Statement
from tests.support.pages import picture
from tests.support.servers import running

import browser_shot  # isort: skip
import neo4j_server  # isort: skip
import service  # isort: skip

pytestmark = [pytest.mark.xdist_group("neo4j browser"), pytest.mark.service]


@pytest.fixture(scope="module")
def browser_server() -> Iterator[Any]:
    """A server with Neo4j Browser that holds the sample data."""

    def chromium() -> None:
        pytest.importorskip("playwright") if not os.environ.get("CONDGRAPH_SERVICES") else None
        if browser_shot.chromium() is None:
            raise service.ServerError("Chromium is not installed")

    server = neo4j_server.Neo4jServer(short=True, browser=True, memory="512m")
    with running(server, "Neo4j Browser", before=chromium):
        browser_shot.load_samples(server.uri)
        yield server


@pytest.mark.slow
def test_the_queries_of_the_page_find_something(browser_server: Any) -> None:
    import neo4j

    queries = browser_shot.queries()
    assert len(queries) == 5
    with neo4j.GraphDatabase.driver(browser_server.uri) as driver:
        for text in queries:
            records, _, _ = driver.execute_query(text)
            assert len(records) > 2, text


@pytest.mark.slow
def test_browser_shows_names(browser_server: Any) -> None:
    with browser_shot.browser_page(browser_server.http, browser_server.uri) as page:
        browser_shot.run_query(page, browser_shot.queries()[0])
        frame = browser_shot.graph_frame(page)
        frame.locator("svg.neod3viz g.node text").first.wait_for()
        shown = " ".join(frame.locator("svg.neod3viz g.node text").all_text_contents())
        arrows = " ".join(frame.locator("svg.neod3viz g.relationship text").all_text_contents())
    # Captions are cut where they do not fit, and stand in several lines.
    assert "United" in shown
    assert "NATO" in shown
    assert "left" in shown, "the value of an attribute"
    assert "default" not in shown, "the name of the graph is no caption"
    assert "head of" in arrows
    assert "member of" in arrows


#: Names of concepts that mean something in a style, in a page or in a query.
ODD = (
    *("a.b", "x > y", "it's", 'a"b', "日本", "node{}", "<b>x</b>", "a`b"),
    *("*", "a,b", "node", "relationship", "x:y", "مرحبا", "name."),
)
#: Which colour each node of the newest frame has, by its caption.
FILLS = """Object.fromEntries([...document.querySelectorAll("article:first-of-type g.node")].map(
    (one) => [one.textContent.trim(), one.querySelector("circle.b-outline").getAttribute("fill")]))"""


@pytest.mark.slow
def test_the_style_gives_each_concept_its_colour(browser_server: Any, tmp_path: Path) -> None:
    items: list[Item] = [Entity(name, name, EntityKind.CONCEPT) for name in ODD]
    for at, name in enumerate(ODD):
        # The commonest concept has the first colour.
        members = [f"{at}-{number}" for number in range(len(ODD) - at)]
        items += [item for one in members for item in (Entity(one, f"#{at}"), Member(one, name))]
        items.append(Statement(members[0], "next", Ref(f"{(at + 1) % len(ODD)}-0")))
    with condgraph.open(browser_server.uri, graph="odd", labels=True) as graph:
        graph.add(items, source="s")
    try:
        browser_shot.write_files(browser_server.uri, tmp_path, "odd")
        rules = json.loads((tmp_path / "condgraph.grass").read_text("utf-8"))
        wanted = {f"#{at}": rules["node." + name.replace(".", "\\.")]["color"] for at, name in enumerate(ODD)}
        assert len(set(wanted.values())) == len(ODD)
        with browser_shot.browser_page(browser_server.http, browser_server.uri) as page:
            browser_shot.drop_style(page, tmp_path / "condgraph.grass")
            browser_shot.run_query(page, "MATCH (e:CondgraphEntity {graph: 'odd'})-[r:next]->(o) RETURN e, r, o")
            browser_shot.graph_frame(page)
            page.locator("g.node circle.b-outline").nth(len(ODD) - 1).wait_for()
            assert page.evaluate(FILLS) == wanted
            picture(page, "neo4j-browser-odd")
    finally:
        with condgraph.open(browser_server.uri, graph="odd") as graph:
            graph.delete()


@pytest.mark.slow
def test_queries_stand_among_the_favourites(browser_server: Any, tmp_path: Path) -> None:
    browser_shot.write_files(browser_server.uri, tmp_path)
    titles = {path.read_text("utf-8").splitlines()[0].removeprefix("// ") for path in tmp_path.glob("*.cypher")}
    assert "Entities in country, and their relations" in titles
    with browser_shot.browser_page(browser_server.http, browser_server.uri) as page:
        browser_shot.drop_style(page, tmp_path / "condgraph.grass")
        browser_shot.drop_file(page, tmp_path / "queries.zip")
        page.locator("[data-testid=navigationFavorites]").click()
        page.locator("[data-testid=savedScriptListItem]").nth(len(titles) - 1).wait_for()
        assert set(page.locator("[data-testid=savedScriptListItem]").all_inner_texts()) == titles
        # One of them runs, in colour.
        query = page.locator("[data-testid=savedScriptListItem]", has_text="Entities in country")
        query.hover()
        query.get_by_test_id("savedScriptsButton-Run").click()
        frame = browser_shot.graph_frame(page)
        frame.locator("g.node circle.b-outline").first.wait_for()
        rules = json.loads((tmp_path / "condgraph.grass").read_text("utf-8"))
        assert rules["node.country"]["color"] in page.evaluate(FILLS).values()
        picture(page, "neo4j-browser-favourites")
