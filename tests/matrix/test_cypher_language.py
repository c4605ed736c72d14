"""Cypher on stores: rows, evidence, traces and warnings are those in process, and the openCypher TCK passes where it does there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import condgraph
from condgraph import Entity, EntityKind, Graph, Member, Quantity, Ref, Statement
from condgraph.engine.errors import CondgraphError
from condgraph.engine.facts import Item
from condgraph.remote_sql import SqlGraph
from tests.frontends.test_cypher import ROWS, films
from tests.support import tck
from tests.support.lanes import by_lane
from tests.support.stores import asked_of

TEXTS = [text for text, _ in ROWS]
#: What is read of one entity, by values of others: whole numbers are floats, and truth values texts, where others of the key are.
READ = [
    "MATCH (n:A {name: 'a'}) RETURN n.open, n.size",
    "MATCH (n:A) RETURN n.size + 1 AS more ORDER BY more",
    "MATCH (n {name: 'a'}) RETURN properties(n), n['open']",
    "MATCH (n {name: 'a'})-[r]->() RETURN r.weight, r.sure",
]


def outcome(graph: Graph, text: str, **options: Any) -> tuple[Any, ...]:
    """What a graph answers to a query; or the error."""
    try:
        answer = graph.query(text, **options)
        steps = [(step.function, step.size) for step in answer.trace]
        told = sorted(map(str, answer.evidence)), sorted(set(answer.warnings)), steps
        return answer.columns, list(map(repr, answer.values)), answer.cells, *told
    except CondgraphError as error:
        return type(error).__name__, str(error)


@pytest.fixture(scope="module")
def here() -> Graph:
    graph = condgraph.open()
    graph.add(films())
    return graph


@pytest.fixture(scope="module")
def mixed() -> Graph:
    items: list[Item] = [Entity("k/A", "A", EntityKind.CONCEPT)]
    values: list[tuple[str, str, float]] = [("a", "true", 1), ("b", "never", 1.5), ("c", "zzz", 2), ("d", "no", 2.5)]
    for name, text, number in values:
        items += [Entity(name, name), Statement(name, "open", text), Statement(name, "size", Quantity(number))]
        qualifiers = (("weight", Quantity(number)), ("sure", text))
        items.append(Statement(name, "knows", Ref("d"), qualifiers))
    graph = condgraph.open()
    graph.add([*items, Member("a", "k/A"), Member("c", "k/A")])
    return graph


@pytest.mark.parametrize("text", READ)
@pytest.mark.parametrize("store", ["rdf", "duckdb", "several"])
def test_values_that_others_are_read_by(mixed: Graph, store: str, text: str, tmp_path: Path) -> None:
    if store == "rdf":
        assert outcome(mixed, text, engine="sparql") == outcome(mixed, text)
        return
    place = f"duckdb:///{tmp_path}/mixed.duckdb"
    with condgraph.open(place) as there:
        assert isinstance(there, SqlGraph)
        there.push(mixed)
        assert outcome(there, text) == outcome(mixed, text)
        if store == "several":
            other = condgraph.open()
            other.add([Statement("x", "other", "true")])
            with condgraph.open({"one": there, "two": other}) as both:
                assert outcome(both, text)[:3] == outcome(mixed, text)[:3]


@pytest.mark.parametrize("text", TEXTS)
def test_embedded_rdf(here: Graph, text: str) -> None:
    assert outcome(here, text, engine="sparql") == outcome(here, text)


def test_servers(here: Graph, mixed: Graph, opener: Callable[[str], Any]) -> None:
    with opener("films in Cypher") as there:
        there.delete()
        there.push(here)
        for text in TEXTS[:: by_lane(8, 1, 1)]:
            assert outcome(there, text) == outcome(here, text), text
        there.delete()
        there.push(mixed)
        for text in asked_of(there, READ, 2):
            assert outcome(there, text) == outcome(mixed, text), text
        there.delete()


@pytest.mark.reads_data
def test_tck_on_embedded_rdf(shared: Path) -> None:
    """The scenarios over a graph that pass in process."""
    graphs: dict[tuple[str, ...], Any] = {}
    on_rdf: dict[tuple[str, ...], Any] = {}
    passed, wrong = 0, []
    for number, scenario in enumerate(tck.scenarios(shared / "data" / "opencypher_tck" / "tck" / "features")):
        if number % by_lane(9, 1, 1) or tck.skipped(scenario) or not scenario.setups or tck.played(scenario, graphs).kind != "pass":
            continue
        key = tuple(scenario.setups)
        on_rdf.setdefault(key, _OnRdf(graphs[key]))
        found = tck.played(scenario, on_rdf)
        passed += found.kind == "pass"
        if found.kind != "pass":
            wrong.append(f"{found.kind}: {scenario.name}: {scenario.query!r}: {found.why}")
    assert not wrong, "\n".join(wrong)
    assert passed > 40


class _OnRdf:
    """A graph that is asked as RDF."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def query(self, program: str, **options: Any) -> Any:
        return self._graph.query(program, engine="sparql", **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._graph, name)
