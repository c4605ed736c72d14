"""Graphs on stores, by the names of the stores, for tests of several stores."""

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
    """Return parameters of a fixture, one for each store. The tests of one store run in one process, and those of
    `nightly` stores only in the nightly run: apart from the matrix, the gate tests Neo4j and one RDF store.
    """
    return [
        pytest.param(
            name, marks=[pytest.mark.service, pytest.mark.xdist_group(name), *([pytest.mark.slow] if name in nightly else [])]
        )
        for name in (*names, *nightly)
    ]


def server_of(request: pytest.FixtureRequest, store: str) -> Any:
    """Return the running server of a store: the address of Neo4j, the server object of others."""
    return request.getfixturevalue("neo4j_uri" if store == "neo4j" else f"{store}_server")


def opener_of(request: pytest.FixtureRequest, store: str) -> Callable[[str], Any]:
    """Return a function that opens a graph by its name on a running store; for DuckDB, in a file."""
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
    """Yield an empty graph on the store that a fixture's parameter names; it is deleted afterwards."""
    with opener_of(request, request.param)(name) as graph:
        graph.delete()
        yield graph
        graph.delete()


def asked_of(graph: Any, items: Sequence[T], step: int) -> Sequence[T]:
    """Return the items that the gate tests on a store: all, but only every `step`-th on Neo4j, which plans each new
    text for as long as others answer ten.
    """
    return sample(items, step) if isinstance(graph, Neo4jGraph) else items
