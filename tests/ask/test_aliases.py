"""Names that a graph states next to an entity's own (`also known as`) are found in questions."""

from __future__ import annotations

import pytest

import condgraph
from condgraph.ask.prompt import Mention, known_of, mentions_in
from condgraph.engine.facts import Entity, Statement
from condgraph.graph import Graph


@pytest.fixture(scope="module")
def world() -> Graph:
    graph = condgraph.open("memory:")
    graph.add(
        [
            Entity("uk", "United Kingdom"),
            Entity("jp", "Japan"),
            Entity("ny", "New York"),
            Entity("mj", "Michael Jordan"),
            Entity("mb", "Michael B. Jordan"),
            Statement("uk", "also known as", "Great Britain"),
            Statement("uk", "also known as", "GB"),
            Statement("jp", "skos:altLabel", "日本"),
            Statement("jp", "skos:altLabel", "Nippon"),
            Statement("ny", "nickname", "Big Apple"),
            Statement("mj", "alias", "MJ"),
            Statement("mb", "alias", "MJ"),
            Statement("uk", "motto", "God and my right"),
        ]
    )
    return graph


def found(graph: Graph, question: str) -> list[Mention]:
    return mentions_in(question, known_of(graph._store_of(None), graph._survey()))


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("What is the capital of Great Britain?", "United Kingdom"),
        ("what is the capital of great-britain?", "United Kingdom"),
        ("What is the capital of GB?", "United Kingdom"),
        ("who lives in the big apple", "New York"),
        ("日本の首都はどこですか", "Japan"),
    ],
)
def test_an_alias_is_a_candidate_with_a_score(world: Graph, question: str, name: str) -> None:
    (mention,) = [one for one in found(world, question) if name in one.names]
    assert (mention.names, mention.exact, mention.scores) == ((name,), False, (0.95,))


def test_an_alias_of_several_has_all_of_them(world: Graph) -> None:
    (mention,) = found(world, "How tall is MJ?")
    assert set(mention.names) == {"Michael Jordan", "Michael B. Jordan"}
    assert mention.scores == (0.95, 0.95)


def test_what_is_no_alias_is_none(world: Graph) -> None:
    assert not [one for one in found(world, "is gb large or not") if one.names]
    assert not [one for one in found(world, "Who wrote God and my right?") if "United Kingdom" in one.names]
    (mention,) = found(world, "What is the capital of Japan?")
    assert (mention.names, mention.exact) == (("Japan",), True)
