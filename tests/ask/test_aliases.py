"""Names that a graph states next to an entity's own (`also known as`) are found in questions."""

from __future__ import annotations

import pytest

import condgraph
from condgraph.ask.prompt import Mention, known_of, mentions_in
from condgraph.engine.facts import Entity, Statement
from condgraph.engine.values import Time
from condgraph.graph import Graph
from tests.ask.asking import Scripted

ADVICE = "ask with the name of the one that is meant"


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


def test_an_alias_of_many_is_reported_and_none_is_taken() -> None:
    graph = condgraph.open("memory:")
    graph.add([Entity(f"p{at}", f"Pope {at}") for at in range(12)])
    graph.add([Statement(f"p{at}", "alias", alias) for at in range(12) for alias in ("Holy Father", "HF")])
    graph.add([Statement("p1", "alias", "The Quiet"), Statement("p0", "born", Time.year(1900))])
    many = "another name of 12 entities ('Pope 0', 'Pope 1', 'Pope 10', ...), none of which is taken"
    for question, text in (
        ("When was the Holy Father born?", "Holy Father"),
        ("when was the holy father born?", "holy father"),
        ("When was HF born?", "HF"),
    ):
        answer = graph.ask(question, Scripted("NONE"), demos=0)
        assert [one for one in answer.warnings if "another name" in one] == [f"{text!r} is {many}: {ADVICE}"]
        assert not any("no name like" in one for one in answer.warnings)
    for question in ("when was hf born?", "When was The Quiet born?", "When was Pope 3 born?"):
        assert not any("another name" in one for one in graph.ask(question, Scripted("NONE"), demos=0).warnings)


def test_what_is_no_alias_is_none(world: Graph) -> None:
    assert not [one for one in found(world, "is gb large or not") if one.names]
    assert not [one for one in found(world, "Who wrote God and my right?") if "United Kingdom" in one.names]
    (mention,) = found(world, "What is the capital of Japan?")
    assert (mention.names, mention.exact) == (("Japan",), True)
