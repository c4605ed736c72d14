"""The sample standard deviation of a bag: by hand, next to those of Python and DuckDB, and its evidence."""

from __future__ import annotations

import random
import statistics
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

import condgraph
from condgraph.engine import algebra as alg
from condgraph.engine.execute.aggregates import sample_deviation
from condgraph.engine.execute.run import Run
from condgraph.engine.facts import Statement
from condgraph.engine.operands import quotient
from condgraph.engine.values import Quantity, Time, exact

DEVIATION = "Query1: \"get_information(relation='size')\"\nQuery2: \"stdev(set='output_of_query1')\""


def graph_of(*values: Any) -> condgraph.Graph:
    graph = condgraph.open()
    graph.add([Statement(f"t{number}", "size", value) for number, value in enumerate(values)])
    return graph


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([Quantity(1), Quantity(1)], ["0"]),
        ([Quantity(1), Quantity(2), Quantity(3)], ["1"]),
        ([Quantity(1), Quantity(2)], ["0.7071067811865476"]),
        # Of floats as they were written: of 0.1, 0.2 and 0.3 it is 0.1, and not 0.09999999999999998.
        ([Quantity(0.1), Quantity(0.2), Quantity(0.3)], ["0.1"]),
        # Numbers that one float stands for, and numbers beyond all floats.
        ([Quantity(2**53), Quantity(2**53 + 1), Quantity(2**53 + 2)], ["1"]),
        ([Quantity(10**400), Quantity(2 * 10**400), Quantity(3 * 10**400)], ["1" + "0" * 400]),
        ([Quantity(3, "metre"), Quantity(5, "metre"), Quantity(7, "metre"), Quantity(1, "foot")], ["2 metre"]),
        (["7 of 9", "3 of 9", "5-2"], ["2"]),
        ([Time.year(1999), Time.year(2001), Time.year(2003)], ["2"]),
    ],
)
def test_by_hand(values: list[Any], texts: list[str]) -> None:
    graph = graph_of(*values)
    answer = graph.query(DEVIATION)
    assert answer.texts == texts
    assert answer.check()
    assert len(answer.evidence) == len(values)
    assert not answer.evidence.monotone
    embedded = graph.query(DEVIATION, engine="sparql")
    assert (embedded.texts, embedded.values) == (answer.texts, answer.values)
    assert sorted(embedded.warnings) == sorted(answer.warnings)


@pytest.mark.parametrize(
    ("values", "warnings"),
    [
        ([Quantity(3)], []),
        ([Quantity(3, "metre"), "tall"], ["stdev: 1 of 2 values is not a number in metre and is left out"]),
        (["tall"], ["stdev: 1 of 1 values is not a number and is left out"]),
        (["7 of 9"], ["stdev: the values are texts and are read by the numbers they begin with"]),
    ],
)
def test_fewer_than_two_numbers_have_none(values: list[Any], warnings: list[str]) -> None:
    answer = graph_of(*values).query(DEVIATION)
    assert answer.texts == []
    assert answer.warnings[: len(warnings) + 1] == [*warnings, "the standard deviation of fewer than two numbers is undefined"]


def test_no_values_have_none() -> None:
    run = Run(graph_of(Quantity(1)).current)
    run.execute(alg.Deviation(alg.Constants(())))
    assert run.warnings == ["the standard deviation of fewer than two numbers is undefined"]


@pytest.mark.parametrize("seed", range(60))
def test_as_python_rounds_it(seed: int) -> None:
    """`statistics.stdev` of fractions rounds the root of the exact variance once."""
    dice = random.Random(seed)
    kinds = (
        lambda: dice.randint(-9, 9),
        lambda: dice.choice((0.1, 0.2, 0.3, 1e300, 1e-160, 5e-324)),
        lambda: 2**53 + dice.randint(0, 3),
        lambda: Decimal("0.1") + Decimal(dice.randint(0, 2)) / Decimal(10**30),
        lambda: dice.gauss(0, 100),
    )
    numbers: list[Any] = [dice.choice(kinds[: dice.randint(1, 5)])() for _ in range(dice.choice((2, 3, 4, 9, 30)))]
    assert float(quotient(sample_deviation(numbers))) == float(statistics.stdev(map(exact, numbers)))


def test_the_root_of_a_fraction_is_exact() -> None:
    numbers = [Fraction(1, 3), Fraction(2, 3), Fraction(1)]
    assert sample_deviation(numbers) == Fraction(1, 3)


def test_as_duckdb_computes_it() -> None:
    duckdb = pytest.importorskip("duckdb")
    dice = random.Random(7)
    for size in (2, 3, 10, 200):
        numbers = [round(dice.gauss(50, 20), 2) for _ in range(size)]
        (theirs,) = duckdb.connect().execute("select stddev_samp(x) from (select unnest(?::double[]) x)", [numbers]).fetchone()
        (ours,) = graph_of(*map(Quantity, numbers)).query(DEVIATION).values
        assert float(ours.number) == pytest.approx(theirs, rel=1e-12)
