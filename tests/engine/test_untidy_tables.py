"""Sets of tables as people have them, asked at random as SQL of DuckDB, and as ours: the same
answers; and by hand what such questions have found.
"""

from __future__ import annotations

import datetime
import random
from pathlib import Path
from typing import Any

import pytest

import condgraph
from condgraph.engine.values import Quantity
from condgraph.graph import Graph
from tests.support import untidy_tables
from tests.support.lanes import by_lane
from tests.support.sql_questions import plain, same
from tests.support.untidy_questions import Asking, Question


def compared(graph: Graph, database: Any, question: Question) -> bool:
    """Whether there is anything in the answer; the answers are the same."""
    theirs = [
        tuple([str(cell) if type(cell) is datetime.date else cell for cell in row])
        for row in database.execute(question.sql).fetchall()
    ]
    answer = graph.query(question.program, **({"table": question.clause} if question.clause else {}))
    ours = list(answer.values) if question.clause else [(value,) for value in answer.values]
    if question.language == "llm":
        # The largest is there once for each row that has it, and no value is no answer.
        ours = list({plain(row[0]): row for row in ours}.values())
        if theirs == [(None,)]:
            theirs = [(0,)] if "sum(" in question.program else []
    assert same(ours, theirs, ordered=question.ordered), (question, ours[:8], theirs[:8], answer.warnings)
    return bool(theirs) and theirs != [(0,)]


@pytest.mark.parametrize("seed", range(by_lane(4, 40, 400)))
def test_questions_have_the_answers_of_sql(tmp_path: Path, seed: int) -> None:
    pytest.importorskip("duckdb")
    tables = untidy_tables.made(seed, tmp_path)
    graph = condgraph.open()
    graph.load(tables.path)
    asking, database = Asking(random.Random(seed), tables), tables.duckdb()
    questions = 25
    answered = sum([compared(graph, database, asking.question()) for _ in range(questions)])
    assert answered > questions // 4


def table(text: str, tmp_path: Path) -> Graph:
    path = tmp_path / "things.csv"
    path.write_text(text)
    graph = condgraph.open()
    graph.load(path, key="id")
    return graph


def test_blanks_around_a_text_do_not_count_in_an_order(tmp_path: Path) -> None:
    """The second column orders what is equal in the first, however that is padded."""
    graph = table("id,colour,size\na,red,1\nb, red ,3\nc,red,2\nd,blue,9\n", tmp_path)
    clause = "show colour, size order by colour desc, size desc"
    assert graph.query("FindAll()", table=clause).cells == [("red", "3"), ("red", "2"), ("red", "1"), ("blue", "9")]
    groups = graph.query("FindAll()", table="group by colour, size show count()")
    assert groups.cells == [("blue", "9", "1"), ("red", "1", "1"), ("red", "2", "1"), ("red", "3", "1")]
    assert graph.query("FindAll()", table="group by colour show count()").cells == [("blue", "1"), ("red", "3")]


def test_blanks_do_not_decide_what_is_largest(tmp_path: Path) -> None:
    graph = table("id,colour\na, red\nb,blue\nc,  zinc\nd,green\n", tmp_path)
    assert graph.query("FindAll()", table="show min(colour), max(colour)").cells == [("blue", "zinc")]


def test_the_sum_of_nothing_stands_among_the_others(tmp_path: Path) -> None:
    """0 € is less than 5 €, and passes a test of sums in €."""
    graph = table("id,kind,price\na,x,€5\nb,y,\nc,z,€-2\nd,x,€4\n", tmp_path)
    answer = graph.query("FindAll()", table="group by kind show sum(price) as s order by s")
    assert [(row[0], row[1]) for row in answer.values] == [
        ("z", Quantity(-2, "€")),
        ("y", Quantity(0, "€")),
        ("x", Quantity(9, "€")),
    ]
    assert not answer.warnings
    small = graph.query("FindAll()", table="group by kind show sum(price) as s having s < 5 € order by s")
    assert [row[0] for row in small.values] == ["z", "y"]
    assert not small.warnings


def test_a_sum_that_happens_to_be_nothing_keeps_its_unit(tmp_path: Path) -> None:
    graph = table("id,kind,price\na,x,€5\nb,x,€6\nc,x,€7\nd,y,1\ne,y,-1\n", tmp_path)
    answer = graph.query("FindAll()", table="group by kind show sum(price)")
    assert answer.values == [("x", Quantity(18, "€")), ("y", Quantity(0))]
