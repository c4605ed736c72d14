"""The median of a bag: by hand, beside that of Python, as a query of each store, and what it rests
on.
"""

from __future__ import annotations

import random
import statistics
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

import condgraph
from condgraph import Graph
from condgraph.cypher.compile.plan import compile_plan, compile_sizes, lowered
from condgraph.engine import algebra as alg
from condgraph.engine.execute.aggregates import middle
from condgraph.engine.execute.run import Run
from condgraph.engine.facts import Entity, Statement
from condgraph.engine.stored_schema import StoredSchema, describe_schema
from condgraph.engine.values import Quantity, Time, as_number

MEDIAN = "Query1: \"get_information(relation='size')\"\nQuery2: \"median(set='output_of_query1')\""
SIZES = alg.Objects(alg.Scan(None, ("size",), family="attribute"))


def graph_of(*values: Any) -> Graph:
    """A graph of things, each with one size."""
    graph = condgraph.open()
    things = [Entity(f"t{number}", f"thing {number}") for number in range(len(values))]
    graph.add([*things, *(Statement(f"t{number}", "size", value) for number, value in enumerate(values))])
    return graph


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([Quantity(3)], ["3"]),
        ([Quantity(3), Quantity(4)], ["3.5"]),
        ([Quantity(10), Quantity(1), Quantity(2)], ["2"]),
        ([Quantity(5), Quantity(5), Quantity(5), Quantity(100)], ["5"]),
        # Of floats as they were written: 0.15, and not 0.15000000000000002.
        ([Quantity(0.1), Quantity(0.2)], ["0.15"]),
        (
            [Quantity(-1.5), Quantity(2), Quantity(Decimal("0.1000000000000000055511151231257827"))],
            ["0.1000000000000000055511151231257827"],
        ),
        # Numbers that one float stands for.
        ([Quantity(2**53 + 1), Quantity(2**53), Quantity(2**53 + 2)], [str(2**53 + 1)]),
        ([Quantity(10**400), Quantity(1), Quantity(3 * 10**400)], ["1" + "0" * 400]),
        ([Quantity(3, "metre"), Quantity(4, "metre"), Quantity(9, "metre"), Quantity(1, "foot")], ["4 metre"]),
        # A tie of units goes to the first by name.
        ([Quantity(3, "metre"), Quantity(1, "foot")], ["1 foot"]),
        ([Quantity(3), "many", Time.year(1999), Quantity(5)], ["4"]),
        (["7 of 9", "3 of 9", "5-2"], ["5"]),
        (["none", "3 of 9"], []),
    ],
)
def test_by_hand(values: list[Any], texts: list[str]) -> None:
    graph = graph_of(*values)
    answer = graph.query(MEDIAN)
    assert answer.texts == texts
    assert answer.check()
    assert len(answer.evidence) == len(values)
    assert not answer.evidence.monotone
    embedded = graph.query(MEDIAN, engine="sparql")
    assert (embedded.texts, embedded.values) == (answer.texts, answer.values)
    assert sorted(embedded.warnings) == sorted(answer.warnings)


@pytest.mark.parametrize(
    ("values", "warnings"),
    [
        ([Quantity(3), Quantity(4)], []),
        ([Quantity(3, "metre"), Quantity(4, "metre"), "tall"], ["median: 1 of 3 values is not a number in metre and is left out"]),
        (["7 of 9"], ["median: the values are texts and are read by the numbers they begin with"]),
        ([Time.year(1999), Time.day(2001, 5, 7)], ["median: the values are times and are read by their years"]),
        (["tall"], ["median: 1 of 1 values is not a number and is left out", "the median of no numbers is undefined"]),
    ],
)
def test_it_warns_as_the_mean_does(values: list[Any], warnings: list[str]) -> None:
    graph = graph_of(*values)
    answer = graph.query(MEDIAN)
    assert answer.warnings[: len(warnings)] == warnings
    assert len(answer.warnings) == len(warnings) + (not answer.values)
    mean = graph.query(MEDIAN.replace("median", "mean"))
    assert [one.replace("mean", "median") for one in mean.warnings[: len(warnings)]] == warnings


def test_nothing_of_nothing() -> None:
    run = Run(graph_of(Quantity(1)).current)
    run.execute(alg.Median(alg.Constants(())))
    assert run.warnings == ["the median of no numbers is undefined"]


@pytest.mark.parametrize("seed", range(60))
def test_beside_that_of_python(seed: int) -> None:
    dice = random.Random(seed)
    kinds = (
        lambda: dice.randint(-9, 9),
        lambda: dice.choice((0.1, 0.2, 0.3, 0.7, 1e300, -1e-300)),
        lambda: 2**53 + dice.randint(0, 3),
        lambda: Decimal("0.1") + Decimal(dice.randint(0, 2)) / Decimal(10**30),
        lambda: dice.gauss(0, 100),
    )
    numbers: list[Any] = [dice.choice(kinds[: dice.randint(1, 5)])() for _ in range(dice.choice((1, 2, 3, 4, 9, 30)))]
    exact = [Fraction(Decimal(repr(one))) if isinstance(one, float) else Fraction(one) for one in numbers]
    assert middle(numbers) == statistics.median(exact)
    (found,) = graph_of(*map(Quantity, numbers)).query(MEDIAN).values
    assert found == Quantity(as_number(statistics.median(exact)))


def test_the_cypher_gives_the_middle_where_it_ends_the_plan() -> None:
    graph = graph_of(Quantity(3), Quantity(4), "many")
    schema, plan = StoredSchema(describe_schema(graph.current)), alg.Median(SIZES)
    compiled = compile_plan(plan, "g", schema)
    assert compiled.shape == "median"
    assert compiled.text.endswith("rows4[(times - 1) / 2 .. times / 2 + 1] END AS rows, unit5 IS NOT NULL AS numbers")
    for taken in (alg.Apply("round", (plan,)), alg.Choose(plan, SIZES, SIZES)):
        assert id(plan) in lowered(taken)
        assert compile_plan(taken, "g", schema).shape == "witness"
    # Texts of times that are cut are made by the client.
    cut = alg.Median(alg.Clip(SIZES, ">", alg.Constants((Time.year(1999),))))
    assert compile_plan(cut, "g", schema).shape == "witness"
    # The size of such a step is counted where the plan is finished.
    assert "UNWIND [] AS step" in compile_sizes([plan], "g", schema).text
