"""Pushes tell how far they are, on each store: more each time, all of it at the end; a bar on a terminal shows it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import condgraph
from condgraph.engine.facts import Entity, EntityKind, Member, Ref, Statement
from condgraph.engine.values import Quantity, Time
from condgraph.progress import bar
from condgraph.remote_neo4j import Neo4jGraph
from condgraph.remote_sparql import SparqlGraph
from tests.support.stores import empty_graph, marked

PEOPLE = 1_000


@pytest.fixture(scope="module")
def local() -> Iterator[condgraph.Graph]:
    with condgraph.open("memory:") as graph:
        graph.add(
            [Entity("human", "human", EntityKind.CONCEPT), *(Entity(f"p{at}", f"Person {at}") for at in range(PEOPLE))], source="a"
        )
        graph.add([Member(f"p{at}", "human") for at in range(PEOPLE)], source="b")
        since = (("since", Time.year(2000)),)
        graph.add([Statement(f"p{at}", "knows", Ref(f"p{(at + 1) % PEOPLE}"), since) for at in range(PEOPLE)], source="c")
        graph.add([Statement(f"p{at}", "height", Quantity(150 + at % 50, "cm")) for at in range(PEOPLE)], source="d")
        yield graph


@pytest.fixture(params=marked("duckdb", "oxigraph", nightly=("neo4j", "virtuoso", "fuseki")))
def store(request: pytest.FixtureRequest) -> Iterator[Any]:
    with empty_graph(request, "progress") as graph:
        yield graph


def pushed(local: condgraph.Graph, store: Any) -> list[tuple[int, float | None]]:
    """What a push, twice, and a load after it tell; parts are known, but for the triples of a first push."""
    told: list[tuple[str, int, float | None]] = []
    store.push(local, progress=lambda *what: told.append(what))
    first = [*told]
    assert {place for place, *_ in first} == {store.place}
    assert [done for _, done, _ in first] == sorted({done for _, done, _ in first})
    assert first[-1][1] >= 3 * PEOPLE
    if not isinstance(store, SparqlGraph):
        assert [part for *_, part in first] == sorted({part for *_, part in first if part is not None})
        assert first[-1][2] == 1.0
    # The same again is nothing to write.
    store.push(local, progress=lambda *what: told.append(what))
    assert told == first
    with condgraph.open("memory:") as more:
        more.add([Entity("z", "Zoe"), Statement("z", "knows", Ref("p1"))], source="e")
        told.clear()
        store.push(more, progress=lambda *what: told.append(what))
    # Neo4j does not know before how much a further push is.
    assert told[-1][1] > 0
    assert told[-1][2] in ((None,) if isinstance(store, Neo4jGraph) else (1.0,))
    assert store.kopl("FindAll() FilterConcept(human) Count()").values == [PEOPLE]
    return [(done, part) for _, done, part in first]


def test_a_push_tells_how_far_it_is(local: condgraph.Graph, store: Any) -> None:
    assert pushed(local, store)


@pytest.mark.slow
@pytest.mark.service
def test_a_push_to_postgresql_tells_how_far_it_is(local: condgraph.Graph, tmp_path_factory: pytest.TempPathFactory) -> None:
    from tests.support.postgres import postgres

    with postgres(tmp_path_factory.mktemp("postgres")) as address, condgraph.open(address, graph="progress") as store:
        assert pushed(local, store)


def test_a_bar_shows_a_push(
    local: condgraph.Graph, tmp_path: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr("condgraph.progress._PAUSE", 0.0)
    monkeypatch.setenv("COLUMNS", "90")
    with condgraph.open(f"duckdb:///{tmp_path}/graphs.duckdb") as store, bar() as progress:
        store.push(local, progress=progress)
    lines = [line for line in capsys.readouterr().err.replace("\x1b[K", "").split("\r") if line]
    assert "[####################] graphs.duckdb: " in lines[-1]
    assert len(lines) > 5
