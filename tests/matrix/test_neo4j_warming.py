"""Shapes of queries planned ahead by a real server, on request and in the background."""

from __future__ import annotations

import re
from collections.abc import Iterator

import neo4j
import pytest

import condgraph
from condgraph.remote_neo4j import Neo4jGraph
from tests.engine.test_cypher_texts import world

pytestmark = [pytest.mark.xdist_group("neo4j"), pytest.mark.service]
GRAPH = "planned ahead"


@pytest.fixture
def graph(neo4j_uri: str) -> Iterator[Neo4jGraph]:
    """Four hundred people, on a server that has no plans."""
    with condgraph.open(neo4j_uri, graph=GRAPH) as made:
        assert isinstance(made, Neo4jGraph)
        made.add(world())
        plans(neo4j_uri)
        yield made
        made.delete()


def plans(uri: str) -> int:
    """How many queries the server had planned; it has none after that."""
    with neo4j.GraphDatabase.driver(uri) as driver, driver.session() as session:
        return int(re.findall(r"\d+", str(session.run("CALL db.clearQueryCaches()").single()))[0])


@pytest.mark.slow
def test_on_request(graph: Neo4jGraph, neo4j_uri: str) -> None:
    planned = graph.warm(seconds=10)
    assert planned > 20
    assert plans(neo4j_uri) >= planned


@pytest.mark.slow
def test_in_the_background(graph: Neo4jGraph, neo4j_uri: str) -> None:
    with condgraph.open(neo4j_uri, graph=GRAPH, warm=True) as opened:
        assert isinstance(opened, Neo4jGraph)
        warming = opened.store._warming
        assert warming is not None
        # Who asks meanwhile is answered.
        assert opened.kopl("Find(person 7) QueryAttr(height)").texts == ["157 centimetre"]
        warming.wait(10)
        warming.end()
        assert warming.wait(60)
    assert plans(neo4j_uri) > 20
