"""Cypher on stores: rows, evidence, traces and warnings are those in process, and the openCypher TCK passes where it does there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import condgraph
from condgraph import Graph
from condgraph.engine.errors import CondgraphError
from tests.frontends.test_cypher import ROWS, films
from tests.support import tck
from tests.support.lanes import by_lane

TEXTS = [text for text, _ in ROWS]


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


@pytest.mark.parametrize("text", TEXTS)
def test_embedded_rdf(here: Graph, text: str) -> None:
    assert outcome(here, text, engine="sparql") == outcome(here, text)


def test_servers(here: Graph, opener: Callable[[str], Any]) -> None:
    with opener("films in Cypher") as there:
        there.delete()
        there.push(here)
        for text in TEXTS[:: by_lane(8, 1, 1)]:
            assert outcome(there, text) == outcome(here, text), text
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
