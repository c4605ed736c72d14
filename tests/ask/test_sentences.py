"""Answers in words by a model: each sentence is checked against the statements that it cites, in the language of the question."""

from __future__ import annotations

import pytest

import condgraph
from condgraph.ask.records import checked_text, sentences
from condgraph.engine.facts import Ref, Statement
from condgraph.engine.values import Quantity
from condgraph.graph import Graph
from tests.ask.asking import Scripted

HIGH = 'Find("Annapurna I") QueryAttr(height)'


@pytest.fixture(scope="module")
def graph() -> Graph:
    graph = condgraph.open("memory:")
    statements = [
        Statement("Annapurna I", "height", Quantity(8091.5, "m")), Statement("Annapurna I", "first ascent", "3 June 1950"),
        Statement("Annapurna I", "country", Ref("Nepal")), Statement("Manaslu", "height", Quantity(8163, "m")),
        Statement("Manaslu", "country", Ref("Nepal")), Statement("Nepal", "capital", Ref("Kathmandu")),
    ]  # fmt: skip
    graph.add(statements, source="mountains")
    return graph


@pytest.mark.parametrize(
    ("question", "said", "taken"),
    [
        ("How high is Annapurna I?", "Annapurna I is 8,091.5 m high [1].", True),
        ("How high is Annapurna I?", "Annapurna I is 8.091,5 m high [1].", False),
        ("How high is Annapurna I?", "Annapurna I is 80,915 m high [1].", False),
        ("Wie hoch ist der Berg Annapurna I?", "Der Gipfel Annapurna I ist 8.091,5 m hoch. [1]", True),
        ("Wie hoch ist der Berg Annapurna I?", "Der Berg Annapurna I ist 8091,5 m hoch [1].", True),
        ("Wie hoch ist der Berg Annapurna I?", "Der Berg Annapurna I ist 8.091 m hoch [1].", False),
        # A name of the graph that nothing cited has.
        ("Wie hoch ist der Berg Annapurna I?", "Der Berg Annapurna I bei Kathmandu ist 8.091,5 m hoch [1].", False),
        ("Quelle est l'altitude de l'Annapurna I ?", "L'Annapurna I culmine à 8\u202f091,5 m [1].", True),
        ("Quelle est l'altitude de l'Annapurna I ?", "L'Annapurna I culmine à 8 091,5 m [1].", True),
        ("Quelle est l'altitude de l'Annapurna I ?", "L'Annapurna I culmine à 8 191,5 m [1].", False),
        ("安纳布尔纳一号峰有多高？", "海拔8,091.5米[1]。", True),
        ("安纳布尔纳一号峰有多高？", "海拔8,019.5米[1]。", False),
    ],
)  # fmt: skip
def test_numbers_and_names_in_the_language_of_the_question(graph: Graph, question: str, said: str, taken: bool) -> None:
    found = graph.ask(question, Scripted(HIGH, said), via="kopl", verbalise=True)
    assert found.texts == ["8091.5 m"]
    assert found.text.removeprefix("Doubtful: ") == (said if taken else "8091.5 m [1]"), found.warnings
    assert any("not used" in one for one in found.warnings) != taken
    assert [one.statements for one in found.sentences] == [(found.citations[0],)]
    assert found.data()["sentences"][0]["statements"] == [found.citations[0]]


def test_a_sentence_that_does_not_hold_is_left_out(graph: Graph) -> None:
    said = "Annapurna I is 8,091.5 m high [1]. It lies in Pakistan [1]. It was climbed."
    found = graph.ask("How high is Annapurna I?", Scripted(HIGH, said), via="kopl", verbalise=True)
    assert found.text == "Annapurna I is 8,091.5 m high [1]."
    left = [one for one in found.warnings if "used in part" in one]
    assert len(left) == 2
    assert "'Pakistan', which is neither" in left[0]
    assert "'It was climbed.' cites no statement" in left[1]


def test_a_sentence_may_not_lean_on_what_it_does_not_cite(graph: Graph) -> None:
    program = 'FindAll() FilterNum(height, "8000 m", >) QueryName()'
    good = "Annapurna I is higher than 8,000 m, with 8,091.5 m [1]."
    found = graph.ask("Which mountains are higher than 8,000 m?", Scripted(program, good), via="kopl", verbalise=True)
    cited = next(number for number, one in enumerate(found.citations, 1) if "8091.5" in one)
    other = next(number for number, one in enumerate(found.citations, 1) if "8163" in one)
    for number, taken in ((cited, True), (other, False)):
        said = good.replace("[1]", f"[{number}]")
        again = graph.ask("Which mountains are higher than 8,000 m?", Scripted(program, said), via="kopl", verbalise=True)
        assert (again.text == said) == taken, again.warnings


def test_sentences_and_their_statements() -> None:
    statements = ("a", "b", "c")
    text = "One is a [1]. On 3. June b was 1.5 m, as Dr. C says. [2, 3] Last [9]."
    assert [(one.text, one.statements) for one in sentences(text, statements)] == [
        ("One is a [1].", ("a",)), ("On 3. June b was 1.5 m, as Dr. C says. [2, 3]", ("b", "c")), ("Last [9].", ()),
    ]  # fmt: skip
    assert sentences("", statements) == ()


def test_hostile_texts_take_linear_time(graph: Graph) -> None:
    answer = graph.kopl(HIGH)
    for text in ("[1" * 100_000, ". " * 100_000, "1." * 100_000, "[1] " * 100_000, "9" * 100_000):
        assert checked_text(text, "How high?", answer, ["x"], None)[1]
