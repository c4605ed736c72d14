"""Random queries in Cypher: graphs in process answer as a Neo4j server does, on the same data, and existing databases where
they are as graphs in process.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import neo4j
import pytest

from condgraph.cypher.connection import Connection
from condgraph.engine.errors import CondgraphError
from condgraph.graph import Graph
from condgraph.remote_native import NativeGraph
from tests.support import native_databases
from tests.support.lanes import by_lane
from tests.support.random_cypher import KEY, Maker, PropertyGraph, agree, common, read, ugly

DATABASES = [
    "ugly",
    pytest.param("movies", marks=pytest.mark.reads_data),
    pytest.param("northwind", marks=pytest.mark.reads_data),
]


def written(name: str, driver: neo4j.Driver) -> PropertyGraph:
    """A graph, and the same in the database."""
    graph = ugly()
    if name != "ugly":
        load: Callable[[neo4j.Driver], None] = getattr(native_databases, name)
        load(driver)
    with driver.session() as session:
        if name != "ugly":
            return read(session)
        graph.write(session)
    return graph


def answered(graph: Graph, query: Any) -> list[list[Any]] | str:
    try:
        answer = graph.cypher(query.text, query.parameters, timeout=60, on_unknown="empty")
    except CondgraphError as error:
        return f"{type(error).__name__}: {error}"
    return [[common(value) for value in (row if isinstance(row, tuple) else (row,))] for row in answer.values]


@pytest.mark.parametrize("name", DATABASES)
def test_answers_are_those_of_neo4j(name: str, emptied_neo4j_uri: str) -> None:
    wrong: list[str] = []
    forms: Counter[str] = Counter()
    with native_databases.database(emptied_neo4j_uri) as driver:
        property_graph = written(name, driver)
        graph = property_graph.in_memory()
        with driver.session(default_access_mode="READ") as session:
            keys = dict(session.run(f"MATCH (n) RETURN elementId(n), n.{KEY}").values())
            for seed in range(by_lane(20, 3_000, 10_000)):
                query = Maker(property_graph, seed).query()
                try:
                    theirs = [[common(value, keys) for value in row] for row in session.run(query.text, query.parameters).values()]
                except neo4j.exceptions.Neo4jError as error:
                    theirs = f"{error.code}: {error.message}"
                ours = answered(graph, query)
                if isinstance(ours, str) or isinstance(theirs, str):
                    same = isinstance(ours, str) and isinstance(theirs, str)
                else:
                    same = agree(query, theirs, ours)
                    forms.update(query.forms)
                if not same:
                    wrong.append(
                        f"{seed}: {query.text} {query.parameters}\n  Neo4j: {str(theirs)[:300]}\n  here: {str(ours)[:300]}"
                    )
    assert not wrong, "\n".join([f"{len(wrong)} differ", *wrong[:5]])
    assert len(forms) > by_lane(15, 35, 35), forms


def rests_on(graph: Graph, query: Any) -> tuple[Any, ...]:
    """What a graph answers, and the evidence of it; or the error."""
    try:
        answer = graph.query(query.text, language="cypher", parameters=query.parameters, on_unknown="empty")
        return answer.columns, list(map(repr, answer.values)), answer.cells, sorted(map(str, answer.evidence))
    except CondgraphError as error:
        return type(error).__name__, str(error)


def test_in_place_as_in_process(emptied_neo4j_uri: str) -> None:
    """The same rows and evidence of the algebra on an existing database as in process."""
    property_graph, sizes = ugly(), list[int]()
    with native_databases.database(emptied_neo4j_uri) as driver:
        with driver.session() as session:
            property_graph.write(session)
        with NativeGraph(Connection(emptied_neo4j_uri)) as there:
            here = there.snapshot()
            for seed in range(by_lane(2, 60, 1_000)):
                query = Maker(property_graph, seed).query()
                found, wanted = (rests_on(graph, query) for graph in (there, here))
                assert found == wanted, (seed, query.text, query.parameters)
                sizes.append(len(wanted[1]) if len(wanted) > 2 else 0)
    assert len(sizes) < 10 or sum(size > 0 for size in sizes) > 0.2 * len(sizes)
