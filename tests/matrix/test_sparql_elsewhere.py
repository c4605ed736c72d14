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
from condgraph.engine.values import Time
from condgraph.graph import Graph
from condgraph.languages.registry import answer
from condgraph.sparql.compile.conditions import Target
from condgraph.sparql.compile.plan import gather
from condgraph.sparql.dialect import FUSEKI, VIRTUOSO
from condgraph.sparql.embedded import EmbeddedStore
from condgraph.sparql.gathered import Gathered, compile_witness, finish, wanted
from condgraph.sparql.store import RdfStore
from tests.frontends.test_llm_query_data import benchmark
from tests.support.graphs import drawn
from tests.support.graphs import graph as a_graph
from tests.support.lanes import examples
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


class OneByOne(Elsewhere):
    """A store whose queries name their predicates one by one, a few in one list."""

    @property
    def target(self) -> Target:
        """With the dialect of Virtuoso, and lists so short that there are several."""
        return replace(super().target, dialect=replace(VIRTUOSO, list_length=7))


class ByUnits(Elsewhere):
    """A store that is written to as if it compared texts by units of UTF-16."""

    @property
    def target(self) -> Target:
        """With the dialect of Fuseki."""
        return replace(super().target, dialect=FUSEKI)


def outcome(found: Any) -> tuple[Any, ...]:
    """What an answer is and rests on, or the error."""
    try:
        one = found()
        return repr(one.values), one.texts, one.entities, list(map(repr, one.evidence)), one.evidence_by_step
    except CondgraphError as error:
        return type(error), str(error)


def both(graph: Graph, text: Any, place: type[Elsewhere] = Elsewhere, **options: Any) -> tuple[Any, Any]:
    here = outcome(lambda: graph.query(text, **options))
    language = options.pop("language", None)
    return here, outcome(lambda: answer(place(graph), text, language, None, {"on_unknown": "error", **options}))


@pytest.fixture(scope="module")
def small() -> Graph:
    return world()


@pytest.mark.parametrize("text", [*PROGRAMS, *QUERIES])
def test_equal_answers_and_evidence(small: Graph, text: str) -> None:
    here, there = both(small, text)
    assert there == here
    assert len(here) == 5, here


@pytest.mark.parametrize("text", [*PROGRAMS, *QUERIES][::2])
def test_predicates_that_are_named_one_by_one(small: Graph, text: str) -> None:
    here, there = both(small, text, OneByOne)
    assert there == here
    assert len(here) == 5, here


def test_what_an_entity_says_with_the_predicate_of_a_qualifier() -> None:
    """It is no part of the evidence of a statement that has this qualifier."""
    graph = condgraph.open()
    graph.add(
        [
            Statement("Ann", "works for", Ref("Bell"), (("colleague", Ref("Bob")), ("since", Time.year(1990)))),
            Statement("Ann", "colleague", Ref("Cid")),
            Statement("Ann", "since", Time.year(1980)),
        ]
    )
    for text in ("Find(Ann) Relate(works for, forward) QFilterYear(since, 1990, =) QueryName()", "Find(Ann) QueryAttr(since)"):
        here, there = both(graph, text, OneByOne)
        assert there == here
        assert len(here[3]) == 1, here
        place, plan = OneByOne(graph), graph.query(text).plan
        rows = [
            tuple(row[name].value for name in "lnspo")
            for text in compile_witness(wanted(plan, place.target), place.target)
            for row in place.select(_short(text))
        ]
        assert any("Cid" in row[-1] for row in rows)
        snapshot = Gathered(rows, place.target.names, ()).snapshot
        assert "Cid" not in [snapshot.entity(i).name for i in range(snapshot.entities)]


@pytest.mark.parametrize("operator", ["<", "<=", ">", ">="])
def test_texts_that_are_made_to_compare_by_code_point(operator: str) -> None:
    """What is written for stores that order units of UTF-16 orders code points where they are ordered."""
    texts = [
        "z",
        "\ue000",
        "\uff21b",
        "\U0001f701",
        "\U0001f701a",
        "\uffff",
        "\uffff!",
        "\uffff\uffff",
        "\U00010000",
        "a\U0010ffff",
    ]
    graph = condgraph.open()
    graph.add([Statement(f"e{at}", "note", text) for at, text in enumerate(texts)])
    for text in texts:
        here, there = both(graph, f"Query1: \"get_information(relation='note', tail_entity{operator}'{text}')\"", ByUnits)
        assert there == here, text


def _short(text: str) -> str:
    """A gathering query whose first column has a name of one letter."""
    return text.replace("?leaf", "?l")


def test_concepts_between_a_membership_and_its_concept() -> None:
    """What a step between two concepts leads to is fetched as well."""
    graph = condgraph.open()
    graph.add(
        [
            *(Entity(f"c{number}", name, EntityKind.CONCEPT) for number, name in enumerate(("work", "moving image", "film"))),
            *(Subclass("c2", "c1"), Subclass("c1", "c0"), Entity("f", "Psycho"), Member("f", "c2")),
            *(Entity("h", "Alfred Hitchcock"), Statement("f", "director", Ref("h"))),
        ]
    )
    here, there = both(graph, "Find(Psycho) FilterConcept(work) Relate(director, forward) QueryName()", OneByOne)
    assert there == here
    assert len(here[3]) == 4


@settings(max_examples=examples(40))
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
