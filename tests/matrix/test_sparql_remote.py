"""RDF stores on real servers give the answers that the snapshot gives, and give back the graph that
was loaded.

Virtuoso (Debian's package, the engine that KQA Pro used), Oxigraph's server and Jena Fuseki, all
started by these tests.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

import condgraph
from condgraph import Graph
from condgraph.engine.facts import Entity, EntityKind, Member, Statement
from condgraph.engine.snapshot.readback import items
from condgraph.engine.values import Quantity
from condgraph.remote_sparql import SparqlGraph
from tests.support import graphs
from tests.support.canonical import contents_of
from tests.support.differential import outcome
from tests.support.lanes import by_lane
from tests.support.stores import marked
from tests.support.world import PROGRAMS, QUERIES, world

STORES = marked("virtuoso", "oxigraph", nightly=("fuseki",))


@pytest.fixture(params=STORES, scope="module")
def server(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(f"{request.param}_server")


def opened(server: Any, graph: str) -> SparqlGraph:
    options = {} if server.name == "virtuoso" else {"update": server.update}
    if server.name == "fuseki":
        # Half the time, as the page says; `tests/sparql_stores` load it by updates.
        options["store"] = server.store
    found = condgraph.open(f"sparql+{server.query}", graph=graph, **options)
    assert isinstance(found, SparqlGraph)
    return found


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


def test_oracle_programs(server: Any, oracle: Path) -> None:
    """A sample; `python benchmarks/sparql_stores.py` runs them all."""
    local, remote = condgraph.open(), opened(server, "oracle")
    local.load(oracle / "kb_small.json")
    remote.push(local)
    step = by_lane(20, 20 if server.name == "fuseki" else 8, 1)
    lines = (oracle / "programs_small.jsonl").read_text().splitlines()[::step]
    for record in map(json.loads, lines):
        assert outcome(remote, record["program"]) == outcome(local, record["program"]), record["id"]


@pytest.mark.parametrize("operator", ["<", "<=", ">", ">=", "!="])
def test_texts_compare_by_code_point(server: Any, operator: str) -> None:
    """Virtuoso orders literals by where it keeps them, Fuseki texts by units of UTF-16."""
    texts = ["b", "B", "a b", "Zo\u00eb", "\uff21", "\U0001f701", "10", "9", "x" * 4_000, "true", "\uffff", "\uffff!", "\U0010ffff"]
    local, remote = condgraph.open(), opened(server, "texts")
    local.add([Statement(f"e{at}", "note", text) for at, text in enumerate(texts)])
    remote.delete()
    remote.push(local)
    for text in ("b", "Zo\u00eb", "\uff21", "\U0001f701", "\uffff", "10"):
        program = f"Query1: \"get_information(relation='note', tail_entity{operator}'{text}')\""
        assert outcome(remote, program) == outcome(local, program), text
    remote.delete()


def test_what_leads_to_nothing_beside_a_path(server: Any) -> None:
    """No value is in kg: Virtuoso plans no path to concepts in a group with a filter that nothing passes."""
    local, remote = condgraph.open(), opened(server, "nothing")
    local.add(
        [
            Entity("a", "Ann"),
            Entity("c", "town", EntityKind.CONCEPT),
            Member("a", "c"),
            Statement("a", "size", Quantity(Decimal(3), "km"), (("of", Quantity(Decimal(1), "km")),)),
        ]
    )
    remote.delete()
    remote.push(local)
    large = 'Find("Ann") FilterNum("size", "1 km", ">") QFilterNum("of", "1 kg", ">=")'
    program = f'Find("Bob") {large} FilterConcept("town") SelectBetween("size", "less")'
    given = [graph.kopl(program, on_unknown="empty") for graph in (local, remote)]
    assert [answer.texts for answer in given] == [[], []]
    assert sorted(given[0].warnings) == sorted(given[1].warnings)
    remote.delete()


def test_items_are_what_was_loaded(pair: tuple[Graph, SparqlGraph]) -> None:
    local, remote = pair
    assert len(list(items(remote.current))) == len(list(items(local.current)))
