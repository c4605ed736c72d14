"""A graph of the layout before this one, which had plain labels: it is reported, and nothing is changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import neo4j
import pytest

import condgraph
from condgraph.engine.errors import StoreMissingError, StoreVersionError
from condgraph.engine.facts import Statement

pytestmark = pytest.mark.xdist_group("neo4j")
GRAPH = "earlier"
CONSTRAINT = "CREATE CONSTRAINT condgraph_graph IF NOT EXISTS FOR (g:Graph) REQUIRE g.name IS UNIQUE"
#: The node of a graph as that layout wrote it.
NODE = "CREATE (:Graph {name: 'earlier', format: 3, complete: true, content: 'c', counts: '{}', schema: '{}'})"


@pytest.fixture
def driver(neo4j_uri: str) -> Iterator[neo4j.Driver]:
    with neo4j.GraphDatabase.driver(neo4j_uri, notifications_min_severity="OFF") as driver:
        driver.execute_query(CONSTRAINT)
        driver.execute_query(NODE)
        yield driver
        driver.execute_query("MATCH (n:Graph {name: 'earlier'}) DETACH DELETE n")
        driver.execute_query("DROP CONSTRAINT condgraph_graph IF EXISTS")


def node(driver: neo4j.Driver) -> list[Any]:
    return [record.data() for record in driver.execute_query("MATCH (g:Graph {name: 'earlier'}) RETURN properties(g) AS g").records]


def test_a_graph_of_the_layout_before_is_reported(driver: neo4j.Driver) -> None:
    before = node(driver)
    with condgraph.open(driver, graph=GRAPH) as graph:
        for call in (graph.status, lambda: graph.kopl("FindAll() Count()"), lambda: graph.add([Statement("a", "p", "x")])):
            with pytest.raises(StoreVersionError, match="layout of an earlier version") as raised:
                call()
            assert "load its sources again" in raised.value.hint
    assert node(driver) == before


def test_a_node_without_its_constraint_is_somebody_elses(driver: neo4j.Driver) -> None:
    driver.execute_query("DROP CONSTRAINT condgraph_graph")
    with condgraph.open(driver, graph=GRAPH) as graph, pytest.raises(StoreMissingError):
        graph.status()
