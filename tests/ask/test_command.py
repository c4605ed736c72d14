"""The command `condgraph ask`, with calls that were recorded before as its model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import condgraph
from condgraph.cli.app import app
from condgraph.models.chat import Budget
from tests.ask.asking import Scripted
from tests.support.samples import load_samples

QUESTION = "What is the capital of India?"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of the sample data; beside it the calls of one question: a misspelled name, and the
    program put right.
    """
    place = tmp_path_factory.mktemp("asked") / "store"
    replies = (f"Find({name}) Relate(capital, forward) QueryName()" for name in ("Indai", "India"))
    with condgraph.open(place) as graph:
        load_samples(graph)
        budget = Budget(prompt_tokens=5000, calls=8, seconds=60)
        found = graph.ask(QUESTION, Scripted(*replies), budget=budget, via="kopl", transcript=place.parent / "calls.jsonl")
        assert len(found.attempts) == 2
    return place


def ask(*words: object) -> tuple[int, str, str]:
    found = CliRunner().invoke(app, ["ask", *map(str, words)])
    return found.exit_code, found.stdout, found.stderr


def options(store: Path, *more: object) -> list[object]:
    return ["-d", store, "--llm", f"replay:{store.parent / 'calls.jsonl'}", "--via", "kopl", *more]


def test_an_answer_with_its_statements(store: Path) -> None:
    code, out, _ = ask(QUESTION, *options(store))
    assert code == 0
    first, *statements = out.splitlines()
    assert first == "New Delhi [1]"
    assert "India" in statements[0]


def test_steps_and_json(store: Path) -> None:
    code, out, told = ask(QUESTION, *options(store, "--format", "json", "--steps"))
    assert code == 0
    found = json.loads(out)
    assert (found["status"], [one["text"] for one in found["answers"]], found["calls"]) == ("answered", ["New Delhi"], 2)
    assert [line.split(" ", 1)[0] for line in told.splitlines()][:3] == ["look", "excerpt", "write"]


def test_a_question_that_was_not_recorded_is_said(store: Path) -> None:
    code, out, told = ask("What is the capital of Atlantis?", *options(store))
    assert (code, out) == (1, "")
    assert "not this one" in told


@pytest.mark.parametrize(
    ("more", "word"),
    [(["--source", "mountain"], "mountains"), (["--choose", "Springfield"], "NAME=KEY"), (["--via", "sparql"], "sparql")],
)
def test_what_makes_no_sense_is_said(store: Path, more: list[str], word: str) -> None:
    found = CliRunner().invoke(app, ["ask", "x?", *map(str, options(store, *more))])
    assert found.exit_code != 0
    assert word in found.output


@pytest.mark.parametrize(
    ("program", "code", "word"),
    [
        ("MATCH ({name: 'India'})-[:capital]->(c) RETURN c.name", 0, "New Delhi"),
        ("MATCH ({name: 'New Delhi'})-[:capital]->(c) RETURN c.name", 5, "empty: the model's program returned nothing"),
        ("MATCH (c:nation) RETURN c.name", 1, "failed: no answer"),
        ("NONE", 1, "abstained: no answer"),
    ],
)
def test_a_script_can_tell_what_is_sure(store: Path, tmp_path: Path, program: str, code: int, word: str) -> None:
    calls = tmp_path / "calls.jsonl"
    budget = Budget(prompt_tokens=5000, calls=8, seconds=60)
    with condgraph.open(store, read_only=True) as graph:
        graph.ask(QUESTION, Scripted(program), budget=budget, via="cypher", retries=0, transcript=calls)
    ended, out, told = ask(QUESTION, "-d", store, "--llm", f"replay:{calls}", "--via", "cypher", "--retries", 0)
    assert ended == code, told
    assert word in out + told


def test_an_answer_to_a_name_that_was_read_as_another_is_not_sure(store: Path) -> None:
    program = "Query1: \"get_information(relation='capitol', head_entity='India')\""
    found = CliRunner().invoke(app, ["query", "-d", str(store), "--on-unknown", "nearest", program])
    assert (found.exit_code, found.stdout.strip()) == (5, "New Delhi")
    assert "doubtful" in found.stderr
    assert CliRunner().invoke(app, ["query", "-d", str(store), program.replace("capitol", "capital")]).exit_code == 0
