"""What expressions over rows are made of (ways, and what is summed up within a row), and what they
give of the values at the ends of these: arithmetic with units, and parts of times.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from condgraph.engine.algebra.expressions import CellTest, Computed, Either, Expression, Given, No, Summed, Test, Way
from condgraph.engine.execute.bags import shown
from condgraph.engine.operands import Inapplicable, alike, exact, plain, quotient, unit_of_product
from condgraph.engine.values import DAY_SECONDS, NO_UNIT, OPEN_START, Precision, Quantity, Time, civil

#: What has values of its own, of which others are calculated.
Part: TypeAlias = Way | Summed | Either


def parts_of(expression: Expression) -> Iterable[Part]:
    """What gives values of its own to an expression."""
    if isinstance(expression, Way | Summed | Either):
        yield expression
    elif isinstance(expression, Computed):
        for part in expression.parts:
            yield from parts_of(part)


def ways_of(expression: Expression) -> Iterable[Way]:
    """All ways, also those that are summed up within a row."""
    for part in parts_of(expression):
        if isinstance(part, Summed):
            yield from ways_of(part.of)
        elif isinstance(part, Either):
            yield part.first
            yield from ways_of(part.second)
        else:
            yield part


def tested(test: Test | None) -> list[Expression]:
    """What a test of rows looks at."""
    if isinstance(test, CellTest):
        return [] if isinstance(test.of, int) else [test.of]
    if isinstance(test, No):
        return tested(test.test)
    return [] if test is None else [one for part in test.tests for one in tested(part)]


def lead(expression: Expression) -> tuple[int, ...]:
    """The steps that all ways of an expression begin with."""
    return _common(list(dict.fromkeys(parts_of(expression))))


def _common(ways: list[Part]) -> tuple[int, ...]:
    """The steps that all ways begin with."""
    if not ways:
        return ()
    least, most = min(way.steps for way in ways), max(way.steps for way in ways)
    shared = 0
    while shared < min(len(least), len(most)) and least[shared] == most[shared]:
        shared += 1
    return least[:shared]


def calculate(expression: Expression, item: dict[Part, tuple[Any, str]]) -> Any:
    """The value of an expression, from the value and text of each of its parts. Raises `Inapplicable`
    where they are not what it calculates with.
    """
    if isinstance(expression, Given):
        return expression.value
    if isinstance(expression, Way | Summed | Either):
        return item[expression][0]
    values = [calculate(part, item) for part in expression.parts]
    if expression.function == "name":
        return shown(values[0])
    if expression.function in ("year", "month", "day"):
        return _part(expression, values[0])
    return _arithmetic(expression, *values)


def _part(expression: Computed, value: Any) -> Quantity:
    """The year, month or day of the month in which a time begins."""
    what = expression.function
    if not isinstance(value, Time):
        raise Inapplicable(f"{expression.name}: no time")
    exactly = Precision[what.upper()]
    if value.start <= OPEN_START or (value.precision is not Precision.SPAN and value.precision < exactly):
        raise Inapplicable(f"{expression.name}: no {what} in the time")
    return Quantity(civil(value.start // DAY_SECONDS)[("year", "month", "day").index(what)])


def _arithmetic(expression: Computed, left: Any, right: Any) -> Quantity:
    if not isinstance(left, Quantity) or not isinstance(right, Quantity):
        raise Inapplicable(f"{expression.name}: no number")
    function = expression.function
    # Texts without the numbers, so that rows of the same units are told together.
    by = f"{expression.name}: numbers in {left.unit} by numbers in {right.unit}"
    if function == "*":
        product = unit_of_product(left.unit, right.unit)
        if product is None:
            raise Inapplicable(by)
        return Quantity(plain(exact(left.number) * exact(right.number) / product[1]), product[0])
    if function == "/":
        if not right.number:
            raise Inapplicable(f"{expression.name}: divided by 0")
        unit = left.unit
        if right.unit != NO_UNIT:
            if left.unit == NO_UNIT:
                raise Inapplicable(by)
            left, right = _in_one_unit(left, right, by)
            unit = NO_UNIT
        return Quantity(quotient(exact(left.number) / exact(right.number)), unit)
    left, right = _in_one_unit(left, right, f"{expression.name}: numbers in {left.unit} and in {right.unit}")
    a, b = exact(left.number), exact(right.number)
    return Quantity(plain(a + b if function == "+" else a - b), right.unit if left.unit == NO_UNIT else left.unit)


def _in_one_unit(left: Quantity, right: Quantity, otherwise: str) -> tuple[Quantity, Quantity]:
    """Two numbers in the unit of the first, as far as the second can be said in it."""
    try:
        return alike(left, right, "")[:2]
    except Inapplicable:
        raise Inapplicable(otherwise) from None
