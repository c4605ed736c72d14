"""A person looks at a graph in Neo4j Browser: a real Browser, a real server, and what the page in
the documentation promises.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

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


def test_the_queries_of_the_page_find_something(browser_server: Any) -> None:
    import neo4j

    queries = browser_shot.queries()
    assert len(queries) == 5
    with neo4j.GraphDatabase.driver(browser_server.uri) as driver:
        for text in queries:
            records, _, _ = driver.execute_query(text)
            assert len(records) > 2, text


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
