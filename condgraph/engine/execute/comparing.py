"""Equality and order of the terms of rows (`algebra.expressions`)."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from functools import cmp_to_key
from typing import Any, Final

from condgraph.engine import temporal
from condgraph.engine.execute.terms import EntityAt, PathAt, StatementAt
from condgraph.engine.forms import Point
from condgraph.engine.units import clock_text, conversions
from condgraph.engine.values import Quantity, Time, as_number

#: The types of numbers.
NUMBERS: Final = frozenset((int, float, Decimal))
#: A duration of Cypher, and one of the graph, which is a quantity in a unit of time.
_DURATIONS: Final = frozenset((Quantity, temporal.Duration))


def equal(a: Any, b: Any) -> bool | None:
    """Whether two values are equal, None where that is not known."""
    if a is None or b is None:
        return None
    one, two = type(a), type(b)
    if one is two:
        if one is list:
            return _equal_lists(a, b)
        if one is dict:
            return _equal_maps(a, b)
        if one is Time:
            return bool(b.start <= a.start and a.end <= b.end)
        if one is Quantity:
            pair = alike(a, b)
            return pair is not None and pair[0] == pair[1]
        return bool(a == b)
    if one in NUMBERS and two in NUMBERS:
        return bool(a == b)
    if {one, two} == _DURATIONS:
        pair = alike(a, b)
        return pair is not None and pair[0] == pair[1]
    if one is Time or two is Time:
        pair = _times(a, b)
        return pair is not None and pair[1].start <= pair[0].start and pair[0].end <= pair[1].end
    return False


def _equal_lists(a: list[Any], b: list[Any]) -> bool | None:
    if len(a) != len(b):
        return False
    result: bool | None = True
    for x, y in zip(a, b, strict=True):
        same = equal(x, y)
        if same is False:
            return False
        if same is None:
            result = None
    return result


def _equal_maps(a: dict[str, Any], b: dict[str, Any]) -> bool | None:
    if a.keys() != b.keys():
        return False
    return _equal_lists(list(a.values()), [b[key] for key in a])


def as_quantity(value: Any) -> Quantity | None:
    """A quantity, or a duration as one: in months, or in seconds of its days and its clock; None for one of both."""
    if type(value) is not temporal.Duration:
        return value if type(value) is Quantity else None
    clock = Fraction(value.total_nanos, temporal.NANOS) + value.days * 86_400
    if value.months:
        return None if clock else Quantity(value.months, "month")
    return Quantity(as_number(clock), "second")


def alike(a: Any, b: Any) -> tuple[Any, Any] | None:
    """The numbers of two quantities, or of a quantity and a duration, in one unit; None where they have none."""
    exact = temporal.Duration in (type(a), type(b))
    a, b = as_quantity(a), as_quantity(b)
    if a is None or b is None or (exact and (clock_text(a) is None) is not (clock_text(b) is None)):
        # The months of a duration have no length in seconds.
        return None
    if a.unit == b.unit:
        return a.number, b.number
    other = conversions(b, [a.unit])
    return (a.number, other[0].number) if other else None


def _times(a: Any, b: Any) -> tuple[Time, Time] | None:
    """Two values as intervals: a year may be an integer; None where one is no time."""
    one, two = temporal.interval(a), temporal.interval(b)
    return None if one is None or two is None else (one, two)


def less(a: Any, b: Any) -> bool | None:
    """Whether a value is before another; None where they have no order."""
    one, two = type(a), type(b)
    if (one is two and one in (int, str, float)) or (one in NUMBERS and two in NUMBERS):
        return bool(a < b)
    if one is two:
        if one is bool:
            return bool(a < b)
        if one is list:
            return _less_lists(a, b)
        if one is Quantity:
            pair = alike(a, b)
            return None if pair is None else bool(pair[0] < pair[1])
        if one in temporal.ORDERED:
            return bool(a < b)
    if {one, two} == _DURATIONS:
        pair = alike(a, b)
        return None if pair is None else bool(pair[0] < pair[1])
    pair_of_times = _times(a, b) if Time in (one, two) else None
    return None if pair_of_times is None else pair_of_times[0].end <= pair_of_times[1].start


def _less_lists(a: list[Any], b: list[Any]) -> bool | None:
    for x, y in zip(a, b, strict=False):
        same = equal(x, y)
        if same is None:
            return None
        if not same:
            return less(x, y)
    return len(a) < len(b)


def compare(operator: str, a: Any, b: Any) -> bool | None:
    """Two values compared with three-valued logic (`Comparison`)."""
    if a is None or b is None:
        return None
    if operator == "=":
        return equal(a, b)
    if operator == "<>":
        same = equal(a, b)
        if same is None or Time not in (type(a), type(b)):
            return None if same is None else not same
        pair = _times(a, b)
        return pair is None or pair[0].end <= pair[1].start or pair[1].end <= pair[0].start
    if operator in ("<=", ">=") and Time in (type(a), type(b)) and (pair := _times(a, b)) is not None:
        # As in other languages: ends no later than the other ends, begins no earlier than it begins.
        return pair[0].end <= pair[1].end if operator == "<=" else pair[0].start >= pair[1].start
    if operator in (">", ">="):
        operator, a, b = "<" if operator == ">" else "<=", b, a
    before = less(a, b)
    if before or operator == "<":
        return before
    if before is None or type(a) is float or type(b) is float:
        # NaN is not above or below anything, and equal to nothing.
        return None if before is None else bool(a <= b)
    return equal(a, b)


#: The place of types in the order of all values.
_RANK: Final[dict[type, int]] = {
    dict: 0, EntityAt: 1, StatementAt: 2, list: 3, PathAt: 4, Point: 5,
    temporal.ZonedDateTime: 6, temporal.LocalDateTime: 7, Time: 8, temporal.ZonedTime: 9, temporal.LocalTime: 10,
    temporal.Duration: 11, str: 12, bool: 13, int: 14, float: 14, Decimal: 14, Quantity: 15,
}  # fmt: skip


def rank_of(value: Any) -> int:
    """The place of the type of a value in the order of all values."""
    if value is None:
        return 99
    rank = _RANK.get(type(value), 98)
    return 16 if rank == 14 and value != value else rank


def total_compare(a: Any, b: Any) -> int:
    """-1, 0 or 1 by the order of all values: maps, entities, statements, lists, paths, points, times, texts,
    truth values, numbers, NaN, null; lists and maps item by item.
    """
    one, two = rank_of(a), rank_of(b)
    if one != two:
        return -1 if one < two else 1
    if one in (99, 98, 16):
        return 0
    if one == 0:
        left, right = sorted(a.items()), sorted(b.items())
        keys = [key for key, _ in left], [key for key, _ in right]
        return (keys[0] > keys[1]) - (keys[0] < keys[1]) or _compare_items([v for _, v in left], [v for _, v in right])
    if one == 3:
        return _compare_items(a, b)
    if one == 15:
        pair = alike(a, b)
        left_key, right_key = (a.unit, b.unit) if pair is None else pair
    elif one in (1, 2, 4, 5, 11):
        left_key, right_key = a.order, b.order
    else:
        left_key, right_key = a, b
    return int(left_key > right_key) - int(left_key < right_key)


def _compare_items(a: Sequence[Any], b: Sequence[Any]) -> int:
    for x, y in zip(a, b, strict=False):
        if result := total_compare(x, y):
            return result
    return (len(a) > len(b)) - (len(a) < len(b))


#: A key by which Python sorts terms in the order of all values.
order_key: Final = cmp_to_key(total_compare)


def same_key(value: Any) -> Any:
    """A hashable key, equal for values that are one in `DISTINCT` and groups: null is null, and NaN is
    NaN.
    """
    kind = type(value)
    if kind in NUMBERS:
        return ("number", value) if value == value else ("nan",)
    if kind is list:
        return ("list", *map(same_key, value))
    if kind is dict:
        return ("map", *sorted((key, same_key(item)) for key, item in value.items()))
    return kind, value
