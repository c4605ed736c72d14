"""Graphs on stores by the names of these, for tests that ask several."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import condgraph


def marked(*names: str) -> list[Any]:
    """Parameters of a fixture: the tests of one store run in one process."""
    return [pytest.param(name, marks=[pytest.mark.service, pytest.mark.xdist_group(name)]) for name in names]


def opener_of(request: pytest.FixtureRequest, store: str) -> Callable[[str], Any]:
    """What opens a graph of a name on a store that is up."""
    if store == "neo4j":
        uri = request.getfixturevalue("neo4j_uri")
        return lambda name: condgraph.open(uri, graph=name)
    from tests.matrix.test_sparql_remote import opened

    server = request.getfixturevalue(f"{store}_server")
    return lambda name: opened(server, name)


@contextmanager
def empty_graph(request: pytest.FixtureRequest, name: str) -> Iterator[Any]:
    """An empty graph of a name on the store that a fixture's parameter names; it is gone afterwards."""
    with opener_of(request, request.param)(name) as graph:
        graph.delete()
        yield graph
        graph.delete()
