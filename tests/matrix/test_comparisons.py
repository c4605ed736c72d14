"""Comparisons of numbers and times where these lie next to each other, on every store: comparisons
have one text on Neo4j, with the least and the largest that they allow.
"""

from __future__ import annotations

from math import inf, nextafter
from typing import Any

import pytest

import condgraph
from condgraph.engine.facts import Entity, Statement
from condgraph.engine.values import Quantity, Time
from tests.support.differential import Comparison
from tests.support.stores import empty_graph, marked

#: Numbers with the next ones at both sides, as they are written in a program.
NUMBERS = (0.0, 0.1, -2.5, 7.0, 1e300, 2.0**53, 5e-324)
TIMES = ("1999", "1999-06", "1999-06-15", "-43", "0", "9999")
OPERATORS = ("=", "!=", "<", "<=", ">", ">=")


@pytest.fixture(params=["duckdb", *marked("neo4j", "oxigraph", nightly=("virtuoso",))])
def there(request: pytest.FixtureRequest) -> Any:
    """An empty graph on a store."""
    with empty_graph(request, "comparisons") as graph:
        yield graph


def numbers() -> list[float]:
    """All of them, no two alike."""
    found = [near for number in NUMBERS for near in (nextafter(number, -inf), number, nextafter(number, inf))]
    return sorted({*found, -1.7976931348623157e308, 1.7976931348623157e308})


def graph() -> condgraph.Graph:
    """An entity for each number, and for each of some times that meet or overlap."""
    made = condgraph.open("memory:")
    for at, number in enumerate(numbers()):
        made.add([Entity(f"n{at}", f"number {at}"), Statement(f"n{at}", "size", Quantity(number))])
        made.add([Statement(f"n{at}", "weight", Quantity(number, "kg" if at % 2 else "g"))])
    times = [Time.year(1999), Time.year(1998), Time.year(2000), Time.month(1999, 6), Time.day(1999, 6, 14), Time.day(1999, 6, 15)]
    times += [
        Time.day(1999, 6, 16),
        Time.month(1999, 5),
        Time.year(-43),
        Time.year(-44),
        Time.year(0),
        Time.year(1),
        Time.year(9999),
    ]
    times += [Time.span(Time.year(1990), None), Time.span(None, Time.year(1999)), Time.span(Time.year(1998), Time.year(1999))]
    for at, time in enumerate(times):
        made.add([Entity(f"t{at}", f"time {at}"), Statement(f"t{at}", "when", time)])
    return made


def test_numbers_and_times_side_by_side(there: Any) -> None:
    here = graph()
    there.push(here)
    found = Comparison(here, there)
    asked = list[str]()
    for number in NUMBERS:
        for operator in OPERATORS:
            for key, unit in (("size", ""), ("weight", " kg")):
                asked.append(f"Query1: \"get_information(key='{key}', value{operator}'{number!r}{unit}')\"")
    for time in TIMES:
        asked += [f"Query1: \"get_information(key='when', value{operator}'{time}')\"" for operator in OPERATORS]
    found.ask_all(asked)
    for number in NUMBERS:
        for operator in ("=", "!=", "<", ">"):
            found.ask(f"FindAll() FilterNum(size, {number!r}, {operator}) QueryName()")
            found.ask(f"FindAll() FilterNum(weight, {number!r} kg, {operator}) Count()")
            found.ask(f"Find(number 3) QueryAttr(size) VerifyNum({number!r}, {operator})")
    for operator in ("=", "!=", "<", ">"):
        found.ask(f"FindAll() FilterYear(when, 1999, {operator}) QueryName()")
        found.ask(f"FindAll() FilterDate(when, 1999-06-15, {operator}) QueryName()")
    for which in ("largest", "smallest"):
        found.ask(f"FindAll() SelectAmong(size, {which})")
        found.ask(f"FindAll() FilterNum(size, 0, <) SelectAmong(size, {which})")
    assert not found.different, found.report(20)
    assert not found.errors, found.report()


def test_what_lies_next_to_a_number(there: Any) -> None:
    """By hand: nothing between a number and the next one."""
    here = graph()
    there.push(here)
    every = numbers()
    for number in NUMBERS:
        below = [f"number {at}" for at, one in enumerate(every) if one < number]
        above = [f"number {at}" for at, one in enumerate(every) if one > number]
        assert sorted(there.kopl(f"FindAll() FilterNum(size, {number!r}, <) QueryName()").values) == sorted(below)
        assert sorted(there.kopl(f"FindAll() FilterNum(size, {number!r}, >) QueryName()").values) == sorted(above)
