"""Evaluation of asking: readers of questions, measures, the control, reports, the command."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import condgraph
from condgraph import Graph
from condgraph.cli.app import app
from condgraph.engine.errors import LoadError, OptionError, TranscriptError
from condgraph.evaluate import Case, Control, Right, evaluate_ask, judge, normalised, read_cases
from condgraph.samples.recording import ASKING, CALLS, OPTIONS, QUESTIONS, ask_recorded
from tests.support.samples import load_samples


@pytest.fixture
def graph() -> Iterator[Graph]:
    with condgraph.open("memory:") as found:
        load_samples(found)
        yield found


# -- measures ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given_", "wanted", "right"),
    [
        (["a", "b"], ["b", "a"], Right(True, True, True, True, 1.0)),
        (["A ", "É"], ["a", "e"], Right(True, True, False, True, 1.0)),
        (["1,200"], ["1200.0"], Right(True, True, False, True, 1.0)),
        (["c", "a"], ["a"], Right(False, False, False, True, 2 / 3)),
        (["a"], ["a", "b"], Right(False, True, False, False, 2 / 3)),
        ([], ["a"], Right(False, False, False, False, 0.0)),
        ([], [], Right(True, False, True, True, 1.0)),
        (None, [], Right(False, False, False, False, 0.0)),
        (["a", "a"], ["a"], Right(True, True, True, True, 1.0)),
        # CronQuestions lists the years of a span.
        (["1990/1992"], ["1990", "1991", "1992"], Right(True, True, True, True, 1.0)),
        (["1990/1991", "1999"], ["1990", "1991", "1999", "2000"], Right(False, True, False, False, 6 / 7)),
        (["1990/1992"], ["1990/1992"], Right(True, True, True, True, 1.0)),
        (["1992/1990"], ["1991"], Right(False, False, False, False, 0.0)),
    ],
)
def test_answers_are_judged(given_: Any, wanted: list[str], right: Right) -> None:
    assert judge(given_, wanted) == right


@given(st.text(max_size=60))
def test_normalised_texts_stay_as_they_are(text: str) -> None:
    once = normalised(text)
    assert normalised(once) in (once, normalised(normalised(once)))


# -- files of questions --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "dataset", "case"),
    [
        ('{"question": "a?", "answers": ["x", 7], "source": "s"}\n', "", Case("a?", ("x", "7"), "s")),
        ("what does [A B] act in\tX|Y\n", "metaqa", Case("what does [A B] act in", ("X", "Y"))),
        (
            "id\tutterance\tcontext\ttargetValue\nnt-1\twho\\nis it?\tcsv/204-csv/1.csv\ta\\pb|c\n",
            "wtq",
            Case("who\nis it?", ("a|b", "c"), "csv/204-csv/1.csv"),
        ),
        ("who is a 's b ?\tx(x/y/)\ta#r#x#<end>#x\n", "pathquestions", Case("who is a 's b ?", ("x", "y"))),
        ('{"question": "q", "answers": ["Q1"], "template": "t"}\n', "cronquestions", Case("q", ("Q1",))),
        ('{"question": "q", "answer": null, "rows": [["node:A"], ["node:B"]], "opus": ""}\n', "movies", Case("q", ("A", "B"))),
    ],
)
def test_files_of_questions_are_recognised(tmp_path: Path, text: str, dataset: str, case: Case) -> None:
    (tmp_path / "questions").write_text(text, encoding="utf-8")
    found = read_cases(tmp_path / "questions")
    assert (found.dataset, list(found)) == (dataset, [case])


@pytest.mark.parametrize(
    "text",
    ["", "nothing", '{"question": ""}', '{"question": "a", "answers": "b"}', "{" * 100_000, "[" * 1_000_000, "\x00" * 1_000_000,
     "a\tb\n" + "x" * 1_000_000, '{"question": "a", "answers": [1], "source": 7}', '{"opus": 1}',
     "id\tutterance\tcontext\ttargetValue\na\tb"],
)  # fmt: skip
def test_what_is_no_question_says_where(tmp_path: Path, text: str) -> None:
    (tmp_path / "questions").write_text(text, encoding="utf-8")
    with pytest.raises(LoadError, match="questions"):
        read_cases(tmp_path / "questions")


def test_other_formats_and_files(tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    for missing in (tmp_path / "bytes", tmp_path / "none", tmp_path):
        with pytest.raises(LoadError):
            read_cases(missing)
    with pytest.raises(OptionError, match="jsnl"):
        read_cases(QUESTIONS, "jsnl")
    found = read_cases(QUESTIONS)
    assert [case.question for case in found.sample(2, 1)] == [case.question for case in found.sample(2, 1)]
    assert len(found.sample(2)) == 2
    assert len(found.sample(99)) == len(found)


def test_the_data_sets_are_read_whole(data: Path) -> None:
    sizes = {
        "metaqa/1-hop/vanilla/qa_dev.txt": ("metaqa-1", 9992, 0),
        "wikitablequestions/data/pristine-seen-tables.tsv": ("wtq", 3537, 0),
        "cronquestions/dev_questions_position_held_big.jsonl": ("cronquestions", None, 0),
        "pathquestions/PQ-2H.txt": ("pathquestions-2", 1908, 0),
        "text2cypher_movies/questions.jsonl": ("movies", None, None),
    }
    for name, (dataset, many, left_out) in sizes.items():
        found = read_cases(data / name)
        assert found.dataset == dataset
        assert len(found) == many if many is not None else len(found) > 50
        assert left_out is None or len(found.left_out) == left_out
        assert all(case.question for case in found)


# -- evaluation --------------------------------------------------------------------------------


def test_the_recorded_run_is_played_without_a_model(graph: Graph) -> None:
    cases = read_cases(QUESTIONS)
    for case in cases:
        found = ask_recorded(graph, case.question)
        assert (found.status, set(found.texts)) == ("answered", set(case.answers)), (
            "python -m tools.record_samples records it again"
        )
    with pytest.raises(TranscriptError):
        ask_recorded(graph, "What is the capital of Peru?")
    report = evaluate_ask(graph, cases, f"replay:{CALLS}", **OPTIONS)
    assert (report.scores.denotation, report.scores.hits1, report.scores.f1, report.scores.answered) == (100, 100, 100, 4)
    assert report.control.denotation == 100
    assert report.data()["calls"] == 4
    assert "denotation accuracy" in str(report)
    assert "control" in str(report)


def test_wrong_empty_and_failed_answers_are_counted(graph: Graph) -> None:
    graph.demos.load(ASKING / "demonstrations.jsonl")
    replies = iter(
        [
            "Query1: \"get_information(relation='capital', head_entity='India')\"",
            "no program at all",
            "Query1: \"get_information(relation='capital', head_entity='Peru')\"",
        ]
    )
    cases = [
        Case("What is the capital of India?", ("New Delhi",)),
        Case("What is it?", ("x",)),
        Case("What is the capital of Canada?", ("Ottawa",)),
    ]
    report = evaluate_ask(graph, cases, lambda messages: next(replies), via="query", retries=0)
    assert [row.right.denotation for row in report.rows] == [True, False, False]
    assert [row.control_right.denotation for row in report.rows] == [True, False, True]
    assert report.scores.denotation == pytest.approx(100 / 3)
    assert report.rows[1].given is None
    assert report.data()["papers"] == {}
    with pytest.raises(OptionError, match="no source"):
        evaluate_ask(graph, [Case("a", ("b",), "mountain")], lambda messages: "x")
    with pytest.raises(OptionError, match="transcript"):
        evaluate_ask(graph, cases, lambda messages: "x", transcript="x")


def test_the_control_swaps_things_and_needs_no_model(graph: Graph) -> None:
    control = Control(graph)
    assert control.answer("What is the capital of India?") == (None, "")
    graph.demos.load(ASKING / "demonstrations.jsonl")
    texts, program = control.answer("What is the capital of India?")
    assert texts == ["New Delhi"]
    assert "head_entity='India'" in program


def test_the_command(graph: Graph, tmp_path: Path) -> None:
    with condgraph.open(tmp_path / "store") as kept:
        load_samples(kept)
    words = ["evaluate", "ask", QUESTIONS, "-d", tmp_path / "store", "--llm", f"replay:{CALLS}", "--prompts", ASKING]
    words += [
        "--demos",
        ASKING / "demonstrations.jsonl",
        "--shown",
        3,
        "--retries",
        1,
        "--via",
        "query",
        "-o",
        tmp_path / "out.json",
    ]
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    assert "control" in result.stdout
    assert json.loads((tmp_path / "out.json").read_text("utf-8"))["scores"]["denotation"] == 100
    wrong = CliRunner().invoke(app, [str(word) for word in [*words, "--llm", "nobody"]])
    assert wrong.exit_code == 2
