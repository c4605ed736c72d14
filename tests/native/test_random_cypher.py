"""Random queries in Cypher: graphs in process answer as a Neo4j server does, on the same data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import neo4j
import pytest

from condgraph.engine.errors import CondgraphError
from condgraph.graph import Graph
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
            for seed in range(by_lane(40, 3_000, 10_000)):
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
