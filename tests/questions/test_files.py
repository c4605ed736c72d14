"""What is done with questions: splits, the scorer, files, the command line."""

from __future__ import annotations

import io
import json
import subprocess
from pathlib import Path

import pytest

import condgraph
from condgraph import Graph
from condgraph.engine.errors import LoadError, OptionError
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.questions import Distribution, Question, accuracy, equal, read, split, write
from condgraph.questions.record import ANSWERS
from condgraph.samples import FOLDER
from condgraph.storage import LocalStorage
from tests.support import commands


@pytest.fixture(scope="module")
def questions() -> list[Question]:
    graph = condgraph.open("memory:")
    graph.load(FOLDER / "countries.json")
    graph.load(FOLDER / "governments.tsv")
    return list(graph.generate(200))


@pytest.mark.parametrize("by", ["random", "functions", "entities"])
def test_splits_lose_nothing(questions: list[Question], by: str) -> None:
    parts = split(questions, by=by)
    assert sorted(q.id for part in parts.values() for q in part) == sorted(q.id for q in questions)
    assert len(parts["train"]) > len(parts["validation"]) > 0
    assert parts["test"]
    assert split(questions, by=by) == parts


def test_a_compositional_split(questions: list[Question]) -> None:
    parts = split(questions, by="functions")
    seen = {q.functions for q in parts["train"]}
    known = {function for q in parts["train"] for function in q.functions}
    for q in (*parts["validation"], *parts["test"]):
        assert q.functions not in seen
        assert known.issuperset(q.functions)


def test_a_split_by_entities(questions: list[Question]) -> None:
    parts = split(questions, by="entities")
    names = {part: {name for q in found for name in q.entities} for part, found in parts.items()}
    assert not names["train"] & names["test"]
    assert not names["train"] & names["validation"]
    assert not names["validation"] & names["test"]
    assert all(len(q.entities) > 1 for q in parts["between"])
    with pytest.raises(OptionError):
        split(questions, by="chance")


@pytest.mark.parametrize(
    ("answer", "predicted", "right"),
    [
        ("Oslo", "Oslo", True),
        ("Oslo", "Bergen", False),
        ("1958-05-29", "1958", True),
        ("1958", "1958-05-29", True),
        ("1958-05-29", "1959", False),
        ("1958-05-29", "1958-06-29", False),
        ("206 centimetre", "206.0 centimetre", True),
        ("206 centimetre", "206 metre", False),
        ("0.33333", "0.3333", True),
        ("1,000", "1000", True),
        ("5", "6", False),
        ("100000", "100001", False),
        ("yes", "no", False),
        ("", "5", False),
    ],
)
def test_the_scorer(answer: str, predicted: str, right: bool) -> None:
    assert equal(answer, predicted) is right


def test_accuracy_by_category(questions: list[Question]) -> None:
    right = {q.id: q.answer for q in questions}
    found = accuracy(questions, right)
    assert all(good == of for good, of in found.values())
    assert found["Overall"] == (len(questions), len(questions))
    assert {"Multi-hop", "Qualifier", "Comparison", "Count", "Verify", "1 hop", "2-3 hops"} <= set(found)
    assert accuracy(questions, {})["Overall"] == (0, len(questions))
    parts = split(questions)
    unseen = {q.answer for q in parts["test"]} - {q.answer for q in parts["train"]}
    found = accuracy(parts["test"], right, train=parts["train"])
    assert found["Zero-shot"][1] == sum(q.answer in unseen for q in parts["test"])


def test_files(questions: list[Question]) -> None:
    lines, listed, table = io.StringIO(), io.StringIO(), io.StringIO()
    assert write(questions, lines) == write(questions, listed, "json") == write(questions, table, "csv") == len(questions)
    assert list(read(lines.getvalue().splitlines())) == questions
    records = json.loads(listed.getvalue())
    assert set(records[0]) == {"question", "choices", "program", "sparql", "answer"}
    assert [record["answer"] for record in records] == [q.answer for q in questions]
    rows = condgraph.open("memory:")
    assert len(table.getvalue().splitlines()) > len(questions)
    rows.load(_kept(table.getvalue()), name="questions")
    assert rows.kopl("FindAll() Count()").texts == [str(len(questions))]
    with pytest.raises(OptionError):
        write(questions, io.StringIO(), "xml")


def _kept(text: str) -> list[dict[str, str]]:
    import csv

    return [dict(row) for row in csv.DictReader(io.StringIO(text))]


def test_the_command_line(tmp_path: Path) -> None:
    with condgraph.open(tmp_path / "store") as graph:
        graph.load(FOLDER / "countries.json")
    output = tmp_path / "questions.jsonl"

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return commands.run("generate", "-d", tmp_path / "store", *arguments)

    assert run("-n", "5", "-o", str(output)).returncode == 0
    graph = condgraph.open(tmp_path / "store")
    found = list(read(output.read_text(encoding="utf-8").splitlines()))
    assert found == list(graph.generate(5))
    result = run("-n", "5", "--format", "text", "--kind", "Count", "--kind", "QualifierLiteral")
    assert [line.split("\t")[1] for line in result.stdout.splitlines()] == [q.answer for q in graph.generate(5, kinds=["Count"])]
    assert result.stderr.startswith("warning: the graph has no facts for questions of kind QualifierLiteral")
    assert "unknown kind of questions 'Cuont'" in run("--kind", "Cuont").stderr


def test_the_distribution(questions: list[Question], tmp_path: Path) -> None:
    found = Distribution(questions)
    assert found.questions == len(questions) == found.kinds.total() == found.hops.total() == found.answers.total()
    assert found.kinds["Count"] == found.answers["count"] == sum(question.kind == "Count" for question in questions)
    assert found.answers["yes or no"] == found.kinds["Verify"] > 0
    assert found.hops[5] == sum(question.hops >= 5 for question in questions)
    assert set(found.answers) <= set(ANSWERS)
    shares = {what: sum(amount for one, _, amount in found.rows() if one == what) for what in ("kind", "hops", "answer")}
    assert all(abs(share - 1) < 1e-9 for share in shares.values())
    assert str(found).splitlines()[0] == f"{len(questions)} questions"
    assert "words of a question" in str(found)
    assert str(Distribution()) == str(Distribution([]))
    with condgraph.open(tmp_path / "store") as graph:
        graph.load(FOLDER / "countries.json")
    command = ["generate", "-d", str(tmp_path / "store"), "-n", "4", "--format", "text", "--shares"]
    done = commands.run(*command)
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 4
    assert done.stderr.startswith("4 questions\n")


def test_remote_graphs_are_pulled_first(questions: list[Question]) -> None:
    """A graph on a server is pulled once, and questions are those of any snapshot."""

    class Elsewhere(LocalStorage):
        pulled = 0

        def whole(self) -> Snapshot:
            Elsewhere.pulled += 1
            return here.current

    here = condgraph.open("memory:")
    here.load(FOLDER / "countries.json")
    here.load(FOLDER / "governments.tsv")
    there = Graph("memory:")
    there._use(Elsewhere("memory:", "default", False))
    assert list(there.generate(20)) == list(here.generate(20))
    assert Elsewhere.pulled == 1


def test_questions_and_answers_as_text(tmp_path: Path) -> None:
    """On the command line, too: into the file that is named."""
    graph = condgraph.open(tmp_path / "store")
    graph.load(FOLDER / "countries.json")
    given = list(graph.generate(3, seed=2, queries=False))
    out = io.StringIO()
    assert write(given, out, "text") == 3
    assert out.getvalue().splitlines() == [f"{one.question}\t{one.answer}" for one in given]
    there = tmp_path / "questions.txt"
    asked = ["generate", "-d", str(tmp_path / "store"), "-n", "3", "--seed", "2", "--format", "text", "-o", str(there)]
    done = commands.run(*asked)
    assert done.returncode == 0
    assert (done.stdout, there.read_text("utf-8")) == ("", out.getvalue())


@pytest.mark.parametrize("line", ["{", "[1]", "3", '{"question": "a"}', "[" * 100_000, '{"id": "\\ud800'])
def test_lines_that_are_no_questions(line: str) -> None:
    with pytest.raises(LoadError, match="it is not a question") as raised:
        list(read(["", line]))
    assert "2" in str(raised.value)
