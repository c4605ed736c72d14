"""RDF stores on real servers give the answers that the snapshot gives, and give back the graph that was loaded.

Virtuoso (Debian's package, the engine that KQA Pro used) and Oxigraph's server, both started by these tests.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

import condgraph
from condgraph import CondgraphError, Graph
from condgraph.engine.snapshot.readback import items
from condgraph.remote_sparql import SparqlGraph
from tests.support import graphs, programs
from tests.support.canonical import contents_of
from tests.support.world import PROGRAMS, QUERIES, world

STORES = [
    pytest.param("virtuoso", marks=pytest.mark.xdist_group("virtuoso")),
    pytest.param("oxigraph", marks=pytest.mark.xdist_group("oxigraph")),
]


@pytest.fixture(params=STORES, scope="module")
def server(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(f"{request.param}_server")


def opened(server: Any, graph: str) -> SparqlGraph:
    options = {} if server.name == "virtuoso" else {"update": server.update}
    found = condgraph.open(f"sparql+{server.query}", graph=graph, **options)
    assert isinstance(found, SparqlGraph)
    return found


def outcome(graph: Graph, program: Any, **options: Any) -> Any:
    """What a program gives: values, texts and entities, or the type of the error and what it says."""
    try:
        answer = graph.query(program, **options)
        return list(map(repr, answer.values)), answer.texts, answer.entities
    except CondgraphError as error:
        return type(error), error.message


@pytest.fixture(scope="module")
def pair(server: Any) -> Iterator[tuple[Graph, SparqlGraph]]:
    local, remote = world(), opened(server, "the world / 100% \u00e9")
    remote.push(local)
    yield local, remote
    remote.delete()


@pytest.mark.parametrize("program", [*PROGRAMS, *QUERIES])
def test_the_same_answers(pair: tuple[Graph, SparqlGraph], program: str) -> None:
    local, remote = pair
    assert outcome(remote, program) == outcome(local, program)


@pytest.mark.parametrize("program", [*PROGRAMS, *QUERIES][::3])
def test_the_same_evidence(pair: tuple[Graph, SparqlGraph], program: str) -> None:
    """`test_sparql_elsewhere` asks for that of all of them, and of random programs."""
    local, remote = pair
    assert list(map(repr, remote.query(program).evidence)) == list(map(repr, local.query(program).evidence))


@pytest.mark.parametrize("program", ["Find(Nobody) QueryName()", "Find(Ann) Relate(knowz, forward) Count()", "Find(Ann"])
def test_the_same_errors(pair: tuple[Graph, SparqlGraph], program: str) -> None:
    local, remote = pair
    assert outcome(remote, program) == outcome(local, program)
    assert outcome(remote, program, on_unknown="empty") == outcome(local, program, on_unknown="empty")


def test_round_trip(pair: tuple[Graph, SparqlGraph]) -> None:
    local, remote = pair
    assert contents_of(remote.snapshot()) == contents_of(local)
    assert {source.name for source in remote.status().sources} == {source.name for source in local.status().sources}
    assert remote.status().statements == local.status().statements


def test_trace_and_explain(pair: tuple[Graph, SparqlGraph]) -> None:
    local, remote = pair
    program = "Find(Ann) Relate(knows, forward) QueryName()"
    assert [step.size for step in remote.kopl(program).trace] == [step.size for step in local.kopl(program).trace]
    assert remote.explain(program).startswith("SELECT DISTINCT")


@given(items=graphs.stored_items(), more=graphs.stored_items())
@settings(max_examples=6, suppress_health_check=list(HealthCheck))
def test_any_graph_comes_back_as_it_was(server: Any, items: list[Any], more: list[Any]) -> None:
    local, remote = condgraph.open(), opened(server, "any")
    remote.delete()
    for part in (items, more):
        if part:
            local.add(part)
            remote.add(part)
            assert contents_of(remote.snapshot()) == contents_of(local)


@pytest.mark.parametrize("seed", range(2))
def test_random_programs(server: Any, seed: int) -> None:
    dice = graphs.Dice(seed)
    local, remote = condgraph.open(), opened(server, f"random {seed}")
    local.add(graphs.graph(dice))
    remote.delete()
    remote.push(local)
    for _ in range(20):
        program = programs.as_json(programs.program(dice))
        assert outcome(remote, program) == outcome(local, program), program
    remote.delete()


def test_oracle_programs(server: Any, oracle: Path) -> None:
    """A sample; `python benchmarks/sparql_stores.py` runs them all."""
    local, remote = condgraph.open(), opened(server, "oracle")
    local.load(oracle / "kb_small.json")
    remote.push(local)
    step = 1 if os.environ.get("CONDGRAPH_ALL") else 20
    lines = (oracle / "programs_small.jsonl").read_text().splitlines()[::step]
    for record in map(json.loads, lines):
        assert outcome(remote, record["program"]) == outcome(local, record["program"]), record["id"]


def test_items_are_what_was_loaded(pair: tuple[Graph, SparqlGraph]) -> None:
    local, remote = pair
    assert len(list(items(remote.current))) == len(list(items(local.current)))
