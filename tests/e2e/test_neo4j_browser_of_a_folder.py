"""A person asks a graph in a folder in Neo4j Browser, over `condgraph serve --bolt`: the real Browser, in its own editor."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.bolt.test_drivers import served
from tests.support.pages import picture
from tests.support.servers import TOOLS  # noqa: F401 - puts the tools on the path

import browser_shot  # isort: skip
import service  # isort: skip

pytest.importorskip("neo4j")
pytestmark = [pytest.mark.xdist_group("neo4j browser"), pytest.mark.service]


@pytest.fixture(scope="module")
def page(samples_world: Path) -> Iterator[Any]:
    """Browser from files on another port, connected to the samples in a folder."""
    if not os.environ.get("CONDGRAPH_SERVICES"):
        pytest.importorskip("playwright")
        if browser_shot.chromium() is None:
            pytest.skip("Chromium is not installed")
    try:
        files = browser_shot.browser_files()
        origin = files.__enter__()
    except service.ServerError as error:
        if os.environ.get("CONDGRAPH_SERVICES"):
            raise
        pytest.skip(str(error))
    try:
        with (
            served(samples_world, "--cors", origin) as address,
            browser_shot.browser_page(origin, f"bolt://{address}", "default") as opened,
        ):
            yield opened
    finally:
        files.__exit__(None, None, None)


def frame(page: Any, text: str, shows: str) -> str:
    """The text of the frame of a query, once it has what it should show."""
    browser_shot.run_query(page, text)
    result = page.locator("article", has_text=shows).first
    result.wait_for()
    return str(result.inner_text())


def test_the_side_bar_lists_labels_types_and_keys(page: Any) -> None:
    page.locator("[data-testid=navigationDBMS]").click()
    page.locator("[data-testid=sidebarMetaItem]", has_text="mountains").wait_for()
    bar = (
        page.locator("[data-testid=sidebarMetaItem]")
        .first.locator("xpath=ancestor::*[contains(., 'Property keys')][1]")
        .inner_text()
    )
    labels, rest = bar.split("Relationship types")
    types, keys = rest.split("Property keys")
    assert {"capital city", "country", "mountains"} <= set(labels.split("\n"))
    assert {"capital", "head of government", "member of"} <= set(types.split("\n"))
    assert {"height", "name", "start time"} <= set(keys.split("\n"))
    assert "(0)" not in labels + types


def test_the_editor_shows_rows_and_parameters(page: Any) -> None:
    browser_shot.run_query(page, ":param least => 8000")
    page.locator("article", has_text="Successfully set your parameters").first.wait_for()
    text = (
        "MATCH (m:mountains) WHERE number(m.height) > $least RETURN m.name AS name, number(m.height) AS height ORDER BY height DESC"
    )
    shown = frame(page, text, "Started streaming 3 records")
    assert shown.index("Dhaulagiri I") < shown.index("8167") < shown.index("Annapurna I")


def test_what_writes_is_refused_in_the_editor(page: Any) -> None:
    shown = frame(page, "CREATE (n:country) RETURN n", "Neo.ClientError.Statement.AccessMode")
    assert "a query only reads" in shown


def test_the_editor_draws_nodes_and_relationships(page: Any) -> None:
    browser_shot.run_query(page, "MATCH (c:country {name: 'United Kingdom'})-[r:`member of`|continent|capital]->(o) RETURN c, r, o")
    drawn = browser_shot.graph_frame(page)
    drawn.locator("svg.neod3viz g.node text").nth(3).wait_for()
    names = " ".join(drawn.locator("svg.neod3viz g.node text").all_text_contents())
    arrows = drawn.locator("svg.neod3viz g.relationship text").all_text_contents()
    for name in ("United", "London", "Europe", "NATO"):
        assert name in names
    assert {"capital", "continent", "member of"} <= set(arrows)
    legend = drawn.inner_text()
    assert "country (1)" in legend
    assert "capital city (1)" in legend
    picture(page, "neo4j-browser-folder")
