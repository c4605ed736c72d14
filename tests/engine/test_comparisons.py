"""How values compare, and what holds: the tables that native functions and conditions go by."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

import condgraph
from condgraph.engine.algebra import OPERATORS
from condgraph.engine.facts import Entity, Statement
from condgraph.engine.functions import compare, compared, equal, is_in, relation, truth
from condgraph.engine.operands import Inapplicable, Operand
from condgraph.engine.values import Quantity, Time, text_of


def operand(*values: Any) -> Operand:
    return Operand(list(values), [value.name if isinstance(value, Entity) else text_of(value) for value in values], [])


def holding(left: Any, right: Any) -> set[str]:
    """The operators under which two values compare."""
    return {operator for operator in OPERATORS if compared(left, right, operator, "test")}


LESS, SAME, MORE = {"<", "<=", "!="}, {"=", "<=", ">="}, {">", ">=", "!="}


@pytest.mark.parametrize(
    ("left", "right", "holds"),
    [
        (1, 2, LESS),
        (2, 2.0, SAME),
        (3, 2, MORE),
        (-1, 0, LESS),
        (Quantity(1.7, "metre"), Quantity(1.9, "metre"), LESS),
        (Quantity(1.9, "metre"), Quantity(1.9, "metre"), SAME),
        # What one float cannot tell apart, and what it stands for.
        (Quantity(2**53 + 1), Quantity(2**53), MORE),
        (Quantity(Decimal("0.1")), Quantity(0.1), SAME),
        (Quantity(Decimal("0.10000000000000000000001")), Quantity(0.1), MORE),
        ("ann", "Ann", SAME),
        ("Ann  Lee", " ann lee ", SAME),
        ("Ann", "Bo", LESS),
        (Entity("x", "Bo"), "bo", SAME),
        (Time.year(1999), Time.year(2000), LESS),
        (Time.year(2000), Time.year(2000), SAME),
        # A day within a year is that year, and comes after its beginning; the year is not that day.
        (Time.day(2000, 3, 1), Time.year(2000), {"=", ">", ">="}),
        (Time.year(2000), Time.day(2000, 3, 1), {"<", "<="}),
        (Time.day(2000, 1, 1), Time.year(2000), {"=", "<", "<="}),
        # A year and a number meet as numbers, from either side.
        (Time.year(2000), Quantity(1999), MORE),
        (Quantity(1999), Time.year(2000), LESS),
        (Time.year(2000), Quantity(2000), SAME),
    ],
)
def test_two_values(left: Any, right: Any, holds: set[str]) -> None:
    assert holding(left, right) == holds


def test_units_that_do_not_meet_are_refused() -> None:
    with pytest.raises(Inapplicable):
        compared(Quantity(1, "metre"), Quantity(1, "kilogram"), "<", "test")


@pytest.mark.parametrize(
    ("values", "holds"),
    [
        ([], False),
        ([True], True),
        ([False], False),
        ([0], False),
        ([0.0], False),
        ([1], True),
        ([-1], True),
        ([2], True),
        ([0.5], True),
        (["no"], False),
        (["No"], False),
        (["FALSE"], False),
        ([""], False),
        (["yes"], True),
        (["nothing"], True),
        ([Time.year(0)], True),
        # Of several each is something.
        ([0, 0], True),
        (["no", "no"], True),
        ([False, False], True),
    ],
)
def test_what_holds(values: list[Any], holds: bool) -> None:
    assert truth(operand(*values)) is holds


ANN, BO = operand("Ann"), operand("Bo")


@pytest.mark.parametrize(
    ("left", "right", "options", "given"),
    [
        (1, 2, {}, ["Bo"]),
        (2, 1, {}, ["Ann"]),
        (2, 1, {"operator": "<"}, ["Bo"]),
        (1, 2, {"operator": "<"}, ["Ann"]),
        # Neither wins.
        (2, 2, {}, ["Ann", "Bo"]),
        (2, 2, {"operator": "<"}, ["Ann", "Bo"]),
        # The first wins where it is no less.
        (2, 2, {"operator": ">="}, ["Ann"]),
        (2, 2, {"operator": "="}, [True]),
        (2, 3, {"operator": "!="}, [True]),
        (2, 2, {"operator": "!="}, [False]),
        (2, 1, {"mode": "truth"}, [True]),
        (1, 2, {"mode": "truth"}, [False]),
        (2, 1, {"mode": "words", "words": "more/less"}, ["more"]),
        (1, 2, {"mode": "words", "words": "more/less"}, ["less"]),
        (2, 2, {"mode": "words", "words": "more/less"}, ["equal"]),
        # Numbers in texts, where only that makes them comparable.
        ("10", 9, {}, ["Ann"]),
        ("10 %", "9 %", {}, ["Ann"]),
        ("b", "a", {}, ["Ann"]),
    ],
)
def test_which_of_two(left: Any, right: Any, options: dict[str, str], given: list[Any]) -> None:
    assert compare([operand(left), operand(right), ANN, BO], options) == given


def test_of_several_values_one_competes() -> None:
    several = operand(1, 5, 3)
    assert compare([several, operand(4), ANN, BO], {}) == ["Ann"]
    assert several.remarks == ["compare: of 3 values '5' competes"]
    several = operand(3, 1, 5)
    assert compare([several, operand(2), ANN, BO], {"operator": "<"}) == ["Ann"]
    assert several.remarks == ["compare: of 3 values '1' competes"]
    # Equal texts are one value.
    assert operand(4, 4).one("test") == 4
    several = operand(4, 4)
    assert compare([several, operand(3), ANN, BO], {}) == ["Ann"]
    assert several.remarks == []


@pytest.mark.parametrize(
    ("left", "right", "operator", "holds"),
    [
        ([1, 5], [4], ">", True),
        ([1, 5], [5], ">", False),
        ([1, 5], [5], ">=", True),
        ([1, 5], [5, 7], "=", True),
        ([1, 5], [2, 7], "=", False),
        ([1, 5], [2, 7], "!=", True),
        ([1, 5], [5], "!=", False),
        ([], [5], "=", False),
        ([], [5], "!=", True),
        (["Ann"], ["ann"], "=", True),
    ],
)
def test_any_of_several(left: list[Any], right: list[Any], operator: str, holds: bool) -> None:
    assert relation([operand(*left), operand(*right)], {"operator": operator}) == [holds]


@pytest.mark.parametrize(
    ("left", "right", "same", "within"),
    [
        (["a", "b"], ["b", "a"], True, True),
        (["a"], ["a", "b"], False, True),
        (["a", "b"], ["a"], False, True),
        (["A"], ["a"], True, True),
        (["a", "c"], ["a", "b"], False, False),
        (["x"], ["axe"], False, True),
        (["axe"], ["X"], False, True),
        (["x", "y"], ["axe"], False, False),
        ([], ["a"], False, False),
        ([2.0], [2], True, True),
    ],
)
def test_sets(left: list[Any], right: list[Any], same: bool, within: bool) -> None:
    assert equal([operand(*left), operand(*right)], {}) == [same]
    assert is_in([operand(*left), operand(*right)], {}) == [within]


def test_case_is_reported() -> None:
    ours = operand("Ann")
    assert equal([ours, operand("ann")], {}) == [True]
    assert "=: 'Ann' and 'ann' are the same except for case or white space" in ours.remarks
    plain = operand("Ann")
    assert equal([plain, operand("Ann")], {}) == [True]
    assert plain.remarks == []


def test_a_time_without_a_start_has_no_year() -> None:
    """Seconds that stand for "open" are no year, 292 billion years ago."""
    until = Time.span(None, Time.year(1951))
    with pytest.raises(Inapplicable, match="/1951 has no start"):
        compared(until, Quantity(1960), "<", "compare")
    for text, why in (
        ("extract_year(set='output_of_query1')", "extract_year: '/1951' is read as 1951"),
        ("difference(a='output_of_query1', b='output_of_query2')", "the time between /1951 and 1960: /1951 has no start"),
        ("if(output_of_query1 > 1940, 'yes', 'no')", "/1951 has no start"),
    ):
        graph = condgraph.open()
        graph.add([Statement("a", "lived", until), Statement("a", "born", Time.year(1960))])
        lines = ["get_information(relation='lived')", "get_information(relation='born')", text]
        answer = graph.query("\n".join(f'Query{at}: "{line}"' for at, line in enumerate(lines, 1)))
        assert any(why in warning for warning in answer.warnings), answer.warnings
        assert not any("292" in one for one in answer.texts)
