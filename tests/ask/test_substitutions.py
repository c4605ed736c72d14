"""Questions whose relation is not in the graph are not answered as sure, and questions whose program writes it in
another form are: `benchmarks/ask_substitutions.py` asks the same of 500.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import condgraph
from benchmarks.ask_substitutions import Row, of_metaqa_rows, of_oracle_rows
from condgraph.ask.records import Asked
from condgraph.engine.facts import Ref, Statement
from tests.ask.asking import Scripted
from tests.support.lanes import by_lane

NUMBER = by_lane(5, 60, 250)


def check(rows: list[Row], least: int) -> None:
    assert len(rows) >= least
    silent = [(row.way, row.question.text, row.outcome.program) for row in rows if row.verdict == "answered, another"]
    assert not silent
    assert not [row.question for row in rows if row.way == "insists" and row.outcome.status in ("answered", "doubtful")]
    unsure = [(row.way, row.question, row.outcome.status) for row in rows if row.way in ("form", "misspelt")]
    assert all(status == "answered" for _, _, status in unsure), unsure


def test_no_other_relation_is_taken_in_silence(oracle: Path) -> None:
    """Generated questions, asked without their relation by models that insist and that take what they are offered."""
    kb = json.loads((oracle / "kb_small.json").read_text("utf-8"))
    check(list(of_oracle_rows(kb, NUMBER)), 3 * NUMBER)


@pytest.mark.slow
def test_nor_in_programs_that_a_model_wrote(data: Path) -> None:
    check(list(of_metaqa_rows(data, NUMBER)), 3 * NUMBER)


@pytest.fixture(scope="module")
def people() -> condgraph.Graph:
    graph = condgraph.open("memory:")
    items = [
        Statement("Indira Gandhi", "date of birth", "1917"), Statement("Indira Gandhi", "height", "1.6 m"),
        Statement("India", "head of government", Ref("Indira Gandhi")), Statement("Nepal", "capital", Ref("Kathmandu")),
        Statement("Nepal", "motto", "Mother"), Statement("Ida", "founded", Ref("Ida Club")), Statement("March", "motto", "Go"),
    ]  # fmt: skip
    graph.add(items, source="people")
    return graph


ASKED = [
    # What the model takes instead means something else.
    ("When did Indira Gandhi die?", "date of death", "date of birth", False),
    ("What is the anthem of Nepal?", "anthem", "motto", False),
    # The same in everyday words, as the question writes it, with a letter wrong.
    ("How tall was Indira Gandhi?", "elevation", "height", True),
    ("Give the height of Indira Gandhi.", "size of person", "height", True),
    ("Wie groß war Indira Gandhi?", "hieght", "height", True),
    ("When was Indira Gandhi born?", "birth day", "date of birth", True),
]


@pytest.mark.parametrize(("question", "first", "then", "sure"), ASKED)
def test_what_a_model_takes_instead(people: condgraph.Graph, question: str, first: str, then: str, sure: bool) -> None:
    """A model that is told of an unknown predicate takes another: it is asked whether that is what was asked for."""
    entity = "Nepal" if "Nepal" in question else "Indira Gandhi"
    model = Scripted(*(f"Find({entity}) QueryAttr({name})" for name in (first, then)))
    found: Asked = people.ask(question, model, via="kopl")
    assert found.status == ("answered" if sure else "doubtful"), found
    assert len(model.seen) == (2 if sure else 3)
    if not sure:
        assert f"the graph has no {first!r}, and the program has {then!r} in its place" in found.text
        assert "does not ask for" in model.told


def test_a_part_that_is_left_out_replaces_nothing(people: condgraph.Graph) -> None:
    """What the first program had beside the unknown name stays what it is."""
    model = Scripted(
        "Find(India) Relate(head of government, forward) QueryAttr(name)",
        "Find(India) Relate(head of government, forward) QueryName()",
    )
    assert people.ask("Who is head of government of India?", model, via="kopl").status == "answered"


def test_a_name_beside_the_unknown_one(people: condgraph.Graph) -> None:
    """The unknown name contains the one that is taken instead, and it is no part of the program before."""
    model = Scripted("Find(Ida) QueryAttr(date founded)", "Find(Ida) Relate(founded, forward) QueryName()")
    found = people.ask("Was Ida Club founded in 1840?", model, via="kopl")
    assert found.status == "doubtful", found


def test_a_month_is_no_name(people: condgraph.Graph) -> None:
    model = Scripted('FindAll() FilterStr(date of birth, "1917") QueryName()')
    assert people.ask("Who was born on 19 March 1917?", model, via="kopl").status == "answered"
    assert people.ask("What was born on March in 1917?", model, via="kopl").status == "doubtful"
