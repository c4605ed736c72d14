"""Graphs on stores by the names of these, for tests that ask several."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import pytest

import condgraph
from condgraph.remote_neo4j import Neo4jGraph
from tests.support.lanes import sample

T = TypeVar("T")


def marked(*names: str, nightly: tuple[str, ...] = ()) -> list[Any]:
    """Parameters of a fixture, a store each; the tests of one store run in one process, those of stores `nightly` in the nightly
    run alone: the gate asks Neo4j and one RDF store what the matrix does not ask all of them.
    """
    return [
        pytest.param(
            name, marks=[pytest.mark.service, pytest.mark.xdist_group(name), *([pytest.mark.slow] if name in nightly else [])]
        )
        for name in (*names, *nightly)
    ]


def server_of(request: pytest.FixtureRequest, store: str) -> Any:
    """The server of a store that is up: the address of Neo4j, the server object of the others."""
    return request.getfixturevalue("neo4j_uri" if store == "neo4j" else f"{store}_server")


def opener_of(request: pytest.FixtureRequest, store: str) -> Callable[[str], Any]:
    """What opens a graph of a name on a store that is up; DuckDB's is a file."""
    if store == "duckdb":
        folder = request.getfixturevalue("tmp_path_factory").mktemp("duckdb")
        return lambda name: condgraph.open(f"duckdb:///{folder}/graphs.duckdb", graph=name)
    server = server_of(request, store)
    if store == "neo4j":
        return lambda name: condgraph.open(server, graph=name)
    from tests.matrix.test_sparql_remote import opened

    return lambda name: opened(server, name)


@contextmanager
def empty_graph(request: pytest.FixtureRequest, name: str) -> Iterator[Any]:
    """An empty graph of a name on the store that a fixture's parameter names; it is gone afterwards."""
    with opener_of(request, request.param)(name) as graph:
        graph.delete()
        yield graph
        graph.delete()


def asked_of(graph: Any, items: Sequence[T], step: int) -> Sequence[T]:
    """What the gate asks of a store: all of the items, of Neo4j every `step`-th, since it plans each new text for as long as
    others answer ten.
    """
    return sample(items, step) if isinstance(graph, Neo4jGraph) else items
