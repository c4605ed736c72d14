"""Deleting what a server takes longer for than it gives a request: so many triples at once, and a graph
of which some are gone is never read as one.

Virtuoso gives a request 60 seconds by default, which on a busy machine do not suffice for a graph of
130,000 statements. Here the request for everything is refused as it refuses it, whatever the time;
all that follows runs on the servers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import condgraph
from condgraph import Graph
from condgraph.engine.errors import DeadlineError, StoreError
from condgraph.engine.facts import Statement
from condgraph.engine.values import Quantity
from tests.support.stores import marked, opener_of

#: Statements of a graph, which are ten times as many triples: more than are removed at once.
MANY = 3_000


@pytest.fixture(scope="module")
def here() -> Graph:
    graph = condgraph.open("memory:")
    graph.add([Statement(f"e{i}", "p", Quantity(i)) for i in range(MANY)])
    return graph


@pytest.fixture(params=marked("oxigraph", nightly=("virtuoso", "fuseki")))
def opener(request: pytest.FixtureRequest) -> Callable[[str], Any]:
    """What opens a graph of a name on a server."""
    return opener_of(request, request.param)


def hurried(there: Any, monkeypatch: pytest.MonkeyPatch, ends_after: int = 1_000) -> list[str]:
    """Refuse to remove everything in one request, and lose the connection after some portions; what
    removes one of them.
    """
    endpoint = there.store.endpoint
    portions: list[str] = []
    update = endpoint.update

    def refused(text: str, *given: Any, **named: Any) -> Any:
        if "LIMIT" in text:
            if len(portions) == ends_after:
                raise ConnectionResetError
            portions.append(text)
        elif text == f"CLEAR SILENT GRAPH <{there.store.base}>" or "STRSTARTS" in text:
            raise DeadlineError("the server ended the query: Transaction timed out")
        return update(text, *given, **named)

    monkeypatch.setattr(endpoint, "update", refused)
    return portions


def left(there: Any) -> int:
    """How many triples stand in the graph's named graph."""
    rows = there.store.endpoint.query("SELECT (COUNT(*) AS ?n) WHERE { ?s ?p ?o }", graphs=(there.store.base,))
    return int(next(iter(rows))["n"].value)


def test_all_of_it(opener: Callable[[str], Any], here: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    with opener("all of it") as there:
        there.push(here)
        whole = left(there)
        assert whole > 20_000
        portions = hurried(there, monkeypatch)
        assert there.delete()
        assert left(there) == 0
        assert len(portions) == -(-whole // 10_000)
        there.add([Statement("a", "p", Quantity(1))])
        assert there.query("Find(a) QueryAttr(p)").texts == ["1"]
        there.delete()


def test_what_others_have_there_stays(opener: Callable[[str], Any], here: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    with opener("shared") as there:
        there.push(here)
        theirs = "<urn:other> <urn:p> 1 . <urn:other> <urn:q> <http://condgraph.example/shared/e1>"
        there.store.endpoint.update(f"INSERT DATA {{ GRAPH <{there.store.base}> {{ {theirs} }} }}")
        assert hurried(there, monkeypatch) == []
        assert there.delete()
        assert left(there) == 2
        there.store.endpoint.update(f"DELETE DATA {{ GRAPH <{there.store.base}> {{ {theirs} }} }}")
        assert left(there) == 0


def test_one_that_is_ended(opener: Callable[[str], Any], here: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left is no graph to readers, and nothing is added to it; deleting again goes on."""
    with opener("ended") as there:
        there.push(here)
        whole = left(there)
        hurried(there, monkeypatch, ends_after=2)
        with pytest.raises(ConnectionResetError):
            there.delete()
        monkeypatch.undo()
    with opener("ended") as there:
        assert 0 < left(there) < whole
        with pytest.raises(StoreError, match="load"):
            there.query("FindAll() Count()")
        with pytest.raises(StoreError, match="load"):
            there.add([Statement("a", "p", Quantity(1))])
        there.delete()
        assert left(there) == 0
        there.push(here)
        assert there.query("FindAll() Count()").texts == [str(MANY)]
        assert left(there) == whole
        there.delete()
