"""Dates are summed up by their years, wherever these stand in their texts, and that is said."""

from __future__ import annotations

import pytest

import condgraph

WRITTEN = ["2019-03-01", "5 May 2021", "12 June 2020", "2018-01-09"]
DAYS_FIRST = ["3/4/2019", "5/6/2021", "7/8/2020", "2/1/2018"]


@pytest.mark.parametrize(("function", "result"), [("sum", "8078"), ("mean", "2019.5"), ("median", "2019.5")])
@pytest.mark.parametrize(
    ("dates", "said"),
    [
        (WRITTEN, "the values are times and are read by their years"),
        # Which is the day is not known, and the year is.
        (DAYS_FIRST, "the values are texts and are read by the numbers they begin with"),
    ],
)
def test_a_date_counts_by_its_year(function: str, result: str, dates: list[str], said: str) -> None:
    graph = condgraph.open()
    graph.load([{"id": one, "since": since} for one, since in enumerate(dates)], name="staff", key="id")
    program = f"Query1: \"get_information(relation='since')\"\nQuery2: \"{function}(set='output_of_query1')\""
    answer = graph.query(program)
    assert (answer.texts, answer.warnings) == ([result], [f"{function}: {said}"])
    table = graph.query("FindAll()", table=f"show {function}(since)")
    assert (table.cells, table.warnings) == ([(result,)], [f"{function}(since): {said}"])
    embedded = graph.query(program, engine="sparql")
    assert (embedded.texts, embedded.warnings) == (answer.texts, answer.warnings)


def test_one_value_that_is_left_out_is_said_in_the_singular() -> None:
    graph = condgraph.open()
    rows = [("3", "1999-05-01"), ("4", "2001-05-02"), ("x", "y")]
    graph.load([{"id": at, "n": n, "d": d} for at, (n, d) in enumerate(rows)], name="t", key="id")
    table = graph.query("FindAll()", table="show sum(n), max(d)")
    of = "1 of 3 values is not a"
    assert table.warnings == [f"sum(n): {of} number, and is left out", f"max(d): {of} time, and is left out"]


def test_a_number_is_not_cut_at_its_comma() -> None:
    graph = condgraph.open()
    graph.load([{"id": 1, "n": "12,5 or so"}, {"id": 2, "n": "1,200 or so"}], name="t", key="id", types={"n": "text"})
    table = graph.query("FindAll()", table="show sum(n)")
    assert (table.cells, table.warnings) == ([("0",)], ["sum(n): 2 of 2 values are not numbers, and are left out"])
    assert graph.query("FindAll()", table="where n = '1,200 or so' show sum(n)").cells == [("1200",)]
