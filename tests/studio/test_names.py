"""Names for completion in process: which are offered, how each is written in SPARQL, and the words
of the languages.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import condgraph
from condgraph.engine.facts import Entity, EntityKind, Member, Ref, Statement
from condgraph.graph import Graph
from condgraph.languages.kopl.table import FUNCTIONS
from condgraph.languages.table.clause import RESERVED
from condgraph.studio.completion import completed, keywords, terms, vocabulary

KINDS = ("entity", "predicate", "concept", "source")


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    """Two entities of one name, a concept and an entity of one name, names that IRIs cannot hold."""
    path: Path = tmp_path_factory.mktemp("names") / "store"
    with condgraph.open(path) as made:
        made.add(
            [
                Entity("Q1", "Springfield"),
                Entity("Q2", "Springfield"),
                Entity("c1", "Springfield area", EntityKind.CONCEPT),
                Entity("Q3", "Springfield area"),
                Entity("odd <id>/../_%", "Odd One"),
                Member("Q1", "c1"),
                Statement("Q1", "twin of", Ref("Q2")),
                Statement("odd <id>/../_%", "twin_of %", Ref("Q1")),
            ],
            source="places",
        )
        yield made


def found(graph: Graph, text: str, **options: Any) -> list[tuple[Any, ...]]:
    listed = completed(graph, text, KINDS, 30, ids=True, **options)
    return [(one["name"], one["kind"], one["id"], one["iri"]) for one in listed]


def test_entities_of_one_name_stand_one_by_one(graph: Graph) -> None:
    assert [one["name"] for one in completed(graph, "springf", ("entity",), 30)] == ["Springfield", "Springfield area"]
    assert found(graph, "springf") == [
        ("Springfield area", "concept", "c1", "c1"),
        ("Springfield", "entity", "Q1", "Q1"),
        ("Springfield", "entity", "Q2", "Q2"),
        ("Springfield area", "entity", "Q3", "Q3"),
    ]
    # An id that is not the name is told, so that they can be told apart.
    assert [one["about"] for one in completed(graph, "Springfield", ("entity",), 2, ids=True)] == ["Q1", "Q2"]
    assert len(completed(graph, "springf", KINDS, 2, ids=True)) == 2


def test_iris_are_those_of_the_graph(graph: Graph) -> None:
    assert found(graph, "twin") == [("twin of", "predicate", None, "twin_of"), ("twin_of %", "predicate", None, "twin%5Fof_%25")]
    assert found(graph, "places") == [("places", "source", None, ".source/places")]
    odd = found(graph, "odd")[0][3]
    answer = graph.sparql(f"SELECT ?name {{ <{odd}> <twin%5Fof_%25>/<twin_of>/<pred:name> ?name }}")
    assert answer.texts == ["Springfield"]
    assert graph.sparql("SELECT ?s { ?s <pred:source> <.source/places> }")


def test_without_a_text_the_schema_is_offered(graph: Graph) -> None:
    assert {one["kind"] for one in completed(graph, "", KINDS, 30, ids=True)} == {"predicate", "concept", "source"}


def test_the_words_are_those_of_the_languages(graph: Graph) -> None:
    words = keywords()
    assert {word for one in words["table"] for word in one.split()} >= RESERVED
    assert {one["name"] for one in vocabulary()["kopl"]} == set(FUNCTIONS)
    assert {"pred:name", "pred:instance_of", "pred:fact_h", "pred:Entity"} <= set(terms())
    assert set(terms()) <= set(words["sparql"])
    # What is offered as a function is one; whether it fits is another question.
    for one in ("nonsense(", *(word for word in words["table"] if word.endswith("("))):
        kind = None
        try:
            graph.query("FindAll()", table=f"show {one}{'1, ' if one in ('top(', 'bottom(') else ''}twin of)")
        except condgraph.CondgraphError as error:
            kind = getattr(error, "kind", None)
        assert (kind == "function") == (one == "nonsense("), one
