"""A graph that only a store has: answers, and evidence by one further query, are those of the
snapshot.

The embedded store stands for one on a server here, with nothing of the snapshot behind it, so that
many programs are quick; `test_sparql_remote` asks real servers.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

import condgraph
from condgraph.engine import algebra as alg
from condgraph.engine.errors import CondgraphError
from condgraph.engine.execute.run import run
from condgraph.engine.facts import Entity, EntityKind, Member, Ref, Statement, Subclass
from condgraph.graph import Graph
from condgraph.languages.registry import answer
from condgraph.sparql.compile.gather import gather
from condgraph.sparql.compile.group import Target
from condgraph.sparql.embedded import EmbeddedStore
from condgraph.sparql.gathered import Gathered, finish
from condgraph.sparql.store import RdfStore
from tests.frontends.test_llm_query_data import benchmark
from tests.support.graphs import drawn
from tests.support.graphs import graph as a_graph
from tests.support.programs import as_json, program
from tests.support.world import PROGRAMS, QUERIES, world


class Elsewhere(RdfStore):
    """The store of a graph, asked as if the graph were not here."""

    def __init__(self, graph: Graph) -> None:
        self.store: EmbeddedStore = graph.rdf()

    @property
    def target(self) -> Target:
        """The same without the entities, which are at hand in a store that is here."""
        return replace(self.store.target, entities=None)

    def select(self, text: str) -> Any:
        """The solutions of a SELECT."""
        return self.store.select(text)

    def ask(self, text: str) -> bool:
        """The answer of an ASK."""
        return self.store.ask(text)


def outcome(found: Any) -> tuple[Any, ...]:
    """What an answer is and rests on, or the error."""
    try:
        one = found()
        return repr(one.values), one.texts, one.entities, list(map(repr, one.evidence))
    except CondgraphError as error:
        return type(error), str(error)


def both(graph: Graph, text: Any, **options: Any) -> tuple[Any, Any]:
    here = outcome(lambda: graph.query(text, **options))
    language = options.pop("language", None)
    return here, outcome(lambda: answer(Elsewhere(graph), text, language, None, {"on_unknown": "error", **options}))


@pytest.fixture(scope="module")
def small() -> Graph:
    return world()


@pytest.mark.parametrize("text", [*PROGRAMS, *QUERIES])
def test_equal_answers_and_evidence(small: Graph, text: str) -> None:
    here, there = both(small, text)
    assert there == here
    assert len(here) == 4, here


@settings(max_examples=40)
@given(drawn(lambda pick: (a_graph(pick), [program(pick) for _ in range(6)])))
def test_random_programs_over_random_graphs(case: tuple[list[Any], list[Any]]) -> None:
    items, programs = case
    graph = condgraph.open()
    graph.add(items, source="random")
    for i, steps in enumerate(programs):
        here, there = both(graph, as_json(steps), on_unknown="empty" if i % 2 else "error")
        assert there == here, as_json(steps)


def test_programs_over_tables(data: Path) -> None:
    wtq = benchmark("wtq")
    asked = [question for question in wtq.questions(data, "training") if question.program is not None]
    different = []
    for question in asked[::240]:
        graph = condgraph.open()
        graph.load(data / "wikitablequestions" / question.table)
        here, there = both(graph, question.program, language="llm_query")
        if there != here:
            different.append(question.id)
    assert different == []


def test_what_competes_is_reported(small: Graph) -> None:
    """Heights in metre and in foot: the most frequent unit competes, and the answer says what was
    left out.
    """
    text = "FindAll() SelectAmong(height, largest)"
    here, there = small.kopl(text), answer(Elsewhere(small), text, None, None, {})
    assert here.warnings
    assert there.warnings == here.warnings


def finished(graph: Graph, plan: alg.Node) -> list[str]:
    """The names of the entities of a plan, by a query and the engine on what it gathers."""
    place = Elsewhere(graph)
    compiled = gather(plan, place.target)
    rows = ((row["leaf"].value, *(row[name].value for name in "nspo")) for row in place.select(compiled.text))
    gathered = Gathered(rows, place.target.names, ())
    done: Any = run(alg.ById(()), gathered.snapshot)
    finish(done, plan, gathered, compiled.leaves)
    return [gathered.snapshot.entity(i).name for i in done.results[id(plan)].tolist()]


def kinds() -> Graph:
    graph = condgraph.open()
    graph.add(
        [
            Entity("c", "cat", EntityKind.CONCEPT),
            Entity("p", "pet", EntityKind.CONCEPT),
            Entity("t", "Tom"),
            Entity("j", "Jo"),
            Subclass("c", "p"),
            Member("t", "c"),
            Statement("j", "likes", "pet"),
            Statement("j", "friend", Ref("t")),
        ],
        source="kinds",
    )
    return graph


@pytest.mark.parametrize(
    "plan",
    [
        # Concepts by the name that a value is.
        alg.Members(alg.Referents(alg.Objects(alg.Scan(None, ("likes",), family="attribute")))),
        # Entities by a name that a function works out.
        alg.Referents(alg.External("guess", lambda *_: ["Tom"], (alg.Constants(("x",)),))),
    ],
)
def test_sets_by_names_that_only_the_client_knows(plan: alg.Entities) -> None:
    graph = kinds()
    done = run(plan, graph.current)
    assert finished(graph, plan) == [graph.current.entity(i).name for i in done.results[id(plan)].tolist()] == ["Tom"]
