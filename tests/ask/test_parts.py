"""Long questions in parts: what the model splits, entities of earlier answers, statements of all parts, doubts, one budget."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import condgraph
from condgraph.ask.chat import Turn, rerun_turns
from condgraph.ask.parts import AskingInParts, split
from condgraph.ask.pipeline import Asking
from condgraph.ask.records import Asked, AskOptions, AskStep
from condgraph.cli.app import app
from condgraph.engine.errors import OptionError
from condgraph.engine.facts import Entity, Ref, Statement
from condgraph.graph import Graph
from condgraph.models.adapters import model_of
from condgraph.models.chat import Budget
from condgraph.models.openai_chat import OpenAIModel
from tests.ask.asking import Scripted, countries, springfields
from tests.support.chat_server import Say, Server, serving
from tests.support.samples import load_samples

QUESTION = "What are the capitals of the countries in Asia?"
SPLIT = "1. Which countries are in Asia?\n2. What are the capitals of ANSWER1?"
IN_ASIA = "Find(Asia) Relate(continent, backward) QueryName()"
CAPITALS = "Find(ANSWER1) Relate(capital, forward) QueryName()"
WANTED = ["Kathmandu", "New Delhi", "Tokyo"]


@pytest.fixture(scope="module")
def graph() -> Graph:
    return countries()


@pytest.fixture
def model_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    with serving() as found:
        yield found


def ask(graph: Graph, question: str, *replies: str, **options: Any) -> Asked:
    return graph.ask(question, Scripted(*replies), **{"via": "kopl", "parts": "always", "retries": 0, **options})


@pytest.mark.service
def test_each_part_is_asked_through_the_client(graph: Graph, model_server: Server) -> None:
    """A part has the entities of an answer before, and the answer the statements and programs of all parts."""
    model_server.script = [Say([SPLIT]), Say([IN_ASIA]), Say([CAPITALS])]
    *heard, found = graph.asking(QUESTION, OpenAIModel("small", base_url=model_server.url), via="kopl", parts="always")
    assert isinstance(found, Asked)
    assert (found.status, sorted(found.texts), found.calls) == ("answered", WANTED, 3)
    assert [part.program for part in found.parts] == [IN_ASIA, CAPITALS]
    assert [part.question for part in found.parts] == ["Which countries are in Asia?", "What are the capitals of ANSWER1?"]
    assert {one.predicate for one in found.evidence} == {"continent", "capital"}
    assert len(found.evidence) == 6
    assert found.steps == tuple(one for one in heard if isinstance(one, AskStep))
    assert [one.name for one in found.steps].count("split") == 1
    # The text cites the statements of each part by their own numbers.
    first, second = found.text.split("\n")
    assert first == "Kathmandu [3]; New Delhi [1]; Tokyo [2]"
    assert second.startswith("Which countries are in Asia? ")
    assert "continent" in found.citations[int(second.partition("[")[2].partition("]")[0]) - 1]
    assert found.data()["parts"][1]["answers"] == found.texts
    # The model is shown the entities as data; the text of the part has none of them.
    user = model_server.requests[2]["messages"][1]["content"]
    assert '"ANSWER1" is "India", "Japan", "Nepal"; in a program, ANSWER1 as the name of an entity is all 3' in user
    assert user.endswith("Question: What are the capitals of ANSWER1?\nProgram:")
    assert 0 < found.confidence < found.parts[0].confidence  # type: ignore[operator]


def test_llm_queries_refer_to_entities_too(graph: Graph) -> None:
    one = "Query1: \"get_information(relation='continent', tail_entity='Asia')\""
    two = "Query1: \"get_information(relation='capital', head_entity='ANSWER1')\""
    found = ask(graph, QUESTION, SPLIT, one, two, via="query")
    assert (found.status, sorted(found.texts)) == ("answered", WANTED)


ASIANS = "MATCH (c)-[:continent]->({name: 'Asia'}) RETURN c.name"
ASIAN_PATTERN = '{"triples": [["UNKNOWN country", "continent", "Asia"]], "answer": "UNKNOWN country"}'
MISPLACED = "ANSWER1 stands for the entities of an answer, which"


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("MATCH ({name: 'ANSWER1'})-[:capital]->(b) RETURN b.name", WANTED),
        ("MATCH (c)-[:capital]->(b) WHERE c.name IN ['ANSWER1', 'Austria'] RETURN b.name", [*WANTED, "Vienna"]),
        ("MATCH (c)-[:capital]->(b) WHERE NOT c.name <> 'ANSWER1' RETURN b.name", WANTED),
        ("MATCH (c)-[:capital]->() WITH c.name = 'ANSWER1' AS asian, count(*) AS n RETURN n", ["21", "3"]),
        ("MATCH (c)-[:capital]->() WHERE c.name STARTS WITH 'ANSWER1' RETURN count(*)", f"{MISPLACED} Cypher can compare"),
        ("UNWIND ['ANSWER1'] AS n MATCH (c {name: n}) RETURN count(c)", f"{MISPLACED} Cypher can compare"),
        ('{"triples": [["ANSWER1", "capital", "UNKNOWN city"]], "answer": "UNKNOWN city"}', f"{MISPLACED} a pattern cannot name"),
    ],
)
def test_cypher_compares_names_with_entities_and_patterns_cannot(graph: Graph, query: str, wanted: list[str] | str) -> None:
    via = "pattern" if query.startswith("{") else "cypher"
    found = ask(graph, QUESTION, SPLIT, ASIAN_PATTERN if via == "pattern" else ASIANS, query, via=via)
    if isinstance(wanted, str):
        assert found.status == "failed"
        assert found.attempts[-1].error.startswith(wanted)
    else:
        assert sorted(found.parts[-1].texts) == wanted


def test_entities_are_referred_to_by_their_ids() -> None:
    """Three cities have one name: the one of the first answer is meant."""
    graph = springfields()
    graph.add([Entity("o", "Ohio"), Statement("o", "has city", Ref("s2"))], source="more")
    parts = "1. Which city has Ohio?\n2. In which state is ANSWER1?"
    programs = "Find(Ohio) Relate(has city, forward) QueryName()", "Find(ANSWER1) Relate(state, forward) QueryName()"
    found = ask(graph, "In which state is the city that Ohio has?", parts, *programs)
    assert (found.status, found.texts) == ("answered", ["Oregon"])
    by_name = programs[0], "Find(Springfield) Relate(state, forward) QueryName()"
    assert ask(graph, "In which state is the city that Ohio has?", parts, *by_name).texts == ["Oregon"]


def test_a_limit_is_of_the_last_part(graph: Graph) -> None:
    found = ask(graph, QUESTION, SPLIT, IN_ASIA, CAPITALS, limit=2)
    assert [len(part.texts) for part in found.parts] == [3, 2]
    assert found.warnings == ("1 more value is not shown (limit 2)",)


def test_parts_of_a_turn_that_somebody_else_kept(graph: Graph) -> None:
    """What the program of a later part refers to is run again before it."""
    turn = graph.chat(Scripted(SPLIT, IN_ASIA, CAPITALS), via="kopl").ask(QUESTION, parts="always")
    parts = [Turn(part.question, part.program, part.language, part.source) for part in turn.parts]
    (again,) = rerun_turns(graph, [Turn(QUESTION, turn.program, turn.language, parts=parts)], limit=3)
    assert (again.texts, again.references, again.question) == (turn.texts, turn.references, QUESTION)
    assert rerun_turns(graph, [Turn(QUESTION, turn.program, turn.language)])[0].status == "failed"


def test_only_what_fails_or_is_doubted_is_split(graph: Graph) -> None:
    sure = ask(graph, QUESTION, "Find(Asia) Relate(continent, backward) Relate(capital, forward) QueryName()", parts="doubt")
    assert (sure.status, sure.parts, sure.calls) == ("answered", (), 1)
    # A count is no capital: the parts are sure.
    found = ask(graph, QUESTION, "FindAll() Count()", SPLIT, IN_ASIA, CAPITALS, parts="doubt")
    assert (found.status, sorted(found.texts), found.calls, len(found.attempts)) == ("answered", WANTED, 4, 3)
    # Neither way: the question's own answer, with a word of the parts.
    found = ask(graph, QUESTION, "FindAll() Count()", SPLIT, "FindAll() Count()", CAPITALS, parts="doubt")
    assert (found.status, found.parts) == ("doubtful", ())
    assert any(warning.startswith("asked in parts (") for warning in found.warnings)
    # The model says that it is simple.
    found = ask(graph, "What is the capital of Nepal?", "NONE", "Find(Nepal) Relate(capital, forward) QueryName()")
    assert (found.status, found.texts, found.parts) == ("answered", ["Kathmandu"], ())
    with pytest.raises(OptionError, match="parts is one of never, doubt, always"):
        ask(graph, QUESTION, SPLIT, parts="sometimes")


@pytest.mark.parametrize(
    ("parts", "programs", "why"),
    [
        (SPLIT, ("FindAll() FilterConcept(country) QueryName()", CAPITALS), "part 1, 'Which countries are in Asia?', is doubtful"),
        ("1. Which countries are in Africa?\n2. What are the capitals of ANSWER1?",
         ("Find(Africa) Relate(continent, backward) QueryName()", CAPITALS),
         "part 1 is about 'Africa', which the question does not name"),
        ("1. Which countries are in Asia?\n2. What are the capitals?",
         (IN_ASIA, "FindAll() Relate(capital, forward) QueryName()"), "the answer does not depend on part 1"),
        ("1. Which continents are there?\n2. What are the capitals of ANSWER1?",
         ("FindAll() FilterConcept(country) QueryName()", CAPITALS), "no part is about 'Asia', which the question names"),
    ],
)  # fmt: skip
def test_a_doubtful_part_makes_all_doubtful(graph: Graph, parts: str, programs: tuple[str, str], why: str) -> None:
    found = ask(graph, QUESTION, parts, *programs)
    assert found.status == "doubtful"
    assert any(why in doubt for doubt in found.doubts), found.doubts
    assert found.text.startswith("Doubtful: ")
    assert found.confidence == 0.01


def test_the_answer_is_of_the_type_that_the_question_asks_for(graph: Graph) -> None:
    found = ask(graph, "When were the capitals of the countries in Asia founded?", SPLIT, IN_ASIA, CAPITALS)
    assert "the question asks when, and the program gives names" in found.doubts


def test_a_part_without_an_answer_ends_the_question(graph: Graph) -> None:
    empty = ask(graph, QUESTION, SPLIT, "Find(Asia) Relate(capital, forward) QueryName()", CAPITALS)
    assert (empty.status, empty.texts, len(empty.parts)) == ("empty", [], 1)
    failed = ask(graph, QUESTION, SPLIT, "Find(Asia", CAPITALS)
    assert (failed.status, len(failed.parts)) == ("failed", 1)
    unknown = ask(graph, QUESTION, SPLIT, IN_ASIA, "Find(ANSWER2) Relate(capital, forward) QueryName()")
    assert unknown.status == "failed"
    assert any("ANSWER2" in warning for warning in unknown.warnings)


def test_one_budget_is_for_all_parts(graph: Graph) -> None:
    found = ask(graph, QUESTION, SPLIT, IN_ASIA, CAPITALS, budget=Budget(calls=2))
    assert (found.status, found.calls, len(found.parts)) == ("budget", 2, 2)
    found = ask(graph, QUESTION, "FindAll() Count()", SPLIT, parts="doubt", budget=Budget(calls=1))
    assert (found.status, found.calls) == ("doubtful", 1)


def test_the_time_is_over_before_all_parts(graph: Graph) -> None:
    """The answer to a part is none to the question."""
    asking = AskingInParts(graph, QUESTION, model_of(Scripted(IN_ASIA)), AskOptions(via="kopl", parts="always"))
    asking.texts = SPLIT.split("\n")
    asking.now = Asking(graph, "Which countries are in Asia?", asking.model, asking.options)
    asking.now.run()
    found = asking.late()
    assert (found.status, found.texts, len(found.parts)) == ("budget", [], 1)
    assert found.parts[0].status == "answered"


def test_some_of_many_values_are_doubted(graph: Graph) -> None:
    """The model is shown ten names of an answer, and takes one of them."""
    parts = "1. Which mountains are there?\n2. In which country is ANSWER1?"
    programs = (
        "Query1: \"get_information(relation='mountain')\"",
        "Query1: \"get_information(relation='country', head_entity='Eiger')\"",
    )
    found = ask(graph, "In which countries are the mountains?", parts, *programs, via="query")
    assert "part 2 is about some of the values of ANSWER1 alone" in found.doubts, found
    chat = graph.chat(Scripted("NONE", "Find(Nepal) Relate(capital, forward) QueryName()", SPLIT, IN_ASIA, CAPITALS), via="kopl")
    chat.ask("What is the capital of Nepal?", parts="always")
    turn = chat.ask("And those of its continent?", parts="always")
    assert (turn.status, len(turn.parts)) == ("doubtful", 2)


def test_words_are_of_the_whole_question(graph: Graph) -> None:
    said = "The capitals are Kathmandu, New Delhi and Tokyo [1, 2, 3]."
    model = Scripted(SPLIT, IN_ASIA, CAPITALS, said)
    found = graph.ask(QUESTION, model, via="kopl", parts="always", verbalise=True)
    assert found.text.split("\n")[0] == said
    assert model.seen[3][0]["content"].endswith(f"Question: {QUESTION}")


@pytest.mark.parametrize(
    ("reply", "wanted"),
    [
        ("1. Who?", ([], "")),
        ("none of it", ([], "the reply has no parts")),
        ("1. Who?\n3. What?", ([], "they are not numbered from 1, at most 6")),
        ("1. Who is ANSWER2?\n2. What?", ([], "part 1 refers to an answer that is not before it")),
        ("1. Who?\n2. " + "a" * 600, ([], "part 2 has more than 500 characters")),
        ("Sure:\n 1) Who?\n 2) When was ANSWER1\tborn?\nDone", (["Who?", "When was ANSWER1 born?"], "")),
        ("1. a\n" * 200_000, ([], "they are not numbered from 1, at most 6")),
    ],
)
def test_replies_with_parts(reply: str, wanted: tuple[list[str], str]) -> None:
    assert split(reply) == wanted


def test_the_command_line_asks_in_parts(tmp_path: Path) -> None:
    with condgraph.open(tmp_path / "store") as graph:
        load_samples(graph)
        ask(graph, QUESTION, SPLIT, IN_ASIA, CAPITALS, transcript=tmp_path / "calls.jsonl")
    words = ["-d", tmp_path / "store", "--llm", f"replay:{tmp_path / 'calls.jsonl'}", "--via", "kopl", "--parts", "always"]
    found = CliRunner().invoke(app, ["ask", QUESTION, *map(str, words), "--format", "json"])
    assert found.exit_code == 0, found.stderr
    assert [part["program"] for part in json.loads(found.stdout)["parts"]] == [IN_ASIA, CAPITALS]
