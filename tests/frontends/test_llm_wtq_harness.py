"""The benchmark over WikiTableQuestions: how it reads the data and counts, with a stand-in for the
engine.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from benchmarks.denotation import Item, item
from condgraph.engine.errors import ParseError


@pytest.fixture(scope="module")
def wtq() -> ModuleType:
    path = Path(__file__).parents[2] / "benchmarks" / "wtq.py"
    spec = importlib.util.spec_from_file_location("benchmarks_wtq", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["benchmarks_wtq"] = module
    spec.loader.exec_module(module)
    return module


def test_fields_are_read(wtq: ModuleType) -> None:
    assert wtq.unescape(r"a\pb\nc\\nd") == "a|b\nc\\nd"


def test_counting(wtq: ModuleType) -> None:
    def question(ident: str, gold: tuple[str, ...], program: str | None) -> object:
        return wtq.Question(ident, "q", "csv/x.csv", gold, program)

    def answers(table: Path, program: str) -> list[Item]:
        assert table == Path("folder/csv/x.csv")
        if program == "broken":
            raise ParseError("no")
        return [item(part) for part in program.split("|")]

    asked = [
        question("1", ("Ohio",), "ohio"),
        question("2", ("Ohio",), "ohio|texas"),
        question("3", ("Ohio",), "broken"),
        question("4", ("Ohio",), None),
    ]
    score = wtq.score(asked, Path("folder"), answers)
    assert (score.right, score.wrong, score.without, dict(score.errors), score.tried) == (1, 1, 1, {"parse": 1}, 3)
    assert "1 of 3 programs right (33.3 %)" in str(score)
    assert [missed.id for missed, _ in score.misses] == ["2", "3"]
    assert wtq.score([], Path("folder"), answers).tried == 0


def test_other_exceptions_are_bugs(wtq: ModuleType) -> None:
    def answers(table: Path, program: str) -> list[str]:
        raise ValueError("a bug")

    with pytest.raises(ValueError, match="a bug"):
        wtq.score([wtq.Question("1", "q", "x.csv", ("a",), "p")], Path(), answers)


def test_the_published_programs_find_their_questions_and_tables(wtq: ModuleType, data: Path) -> None:
    asked = list(wtq.questions(data))
    with_program = [question for question in asked if question.program is not None]
    assert (len(asked), len(with_program)) == (6_490, 3_070)
    assert len({question.text for question in asked}) == 6_431
    assert all((data / "wikitablequestions" / question.table).exists() for question in asked)
    assert all(question.gold for question in asked)
