"""The functions of expressions (`algebra.expressions.FUNCTIONS`) in process, over non-null terms of rows."""

from __future__ import annotations

import math
import random
import re
import statistics
import time
import uuid
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import cmp_to_key, partial
from typing import Any, Final

from condgraph.engine import temporal
from condgraph.engine.bounds import check
from condgraph.engine.errors import PlanError, shortened
from condgraph.engine.execute import points, rdf_terms
from condgraph.engine.execute.terms import EntityAt, PathAt, StatementAt, type_name
from condgraph.engine.units import clock_text, conversions
from condgraph.engine.values import Point, Quantity, Time, as_number, exact, format_number, parse_number, parse_quantity

# -- comparison --------------------------------------------------------------------------------------
# Equality and order of the terms of rows (`algebra.expressions`).


#: The types of numbers.
NUMBERS: Final = frozenset((int, float, Decimal))


def equal(a: Any, b: Any) -> bool | None:
    """Return whether two values are equal, None if that is unknown."""
    if a is None or b is None:
        return None
    type_a, type_b = type(a), type(b)
    if type_a is type_b:
        if type_a is list:
            return _equal_lists(a, b)
        if type_a is dict:
            return _equal_maps(a, b)
        if type_a is Time:
            return bool(b.start <= a.start and a.end <= b.end)
        if type_a is not Quantity:
            return bool(a == b)
    if type_a in NUMBERS and type_b in NUMBERS:
        return bool(a == b)
    if type_a is Quantity or type_b is Quantity:
        pair = alike(a, b)
        return pair is not None and pair[0] == pair[1]
    if type_a is Time or type_b is Time:
        pair = _times(a, b)
        return pair is not None and pair[1].start <= pair[0].start and pair[0].end <= pair[1].end
    return False


def _equal_lists(a: list[Any], b: list[Any]) -> bool | None:
    if len(a) != len(b):
        return False
    result: bool | None = True
    for x, y in zip(a, b, strict=True):
        is_equal = equal(x, y)
        if is_equal is False:
            return False
        if is_equal is None:
            result = None
    return result


def _equal_maps(a: dict[str, Any], b: dict[str, Any]) -> bool | None:
    if a.keys() != b.keys():
        return False
    return _equal_lists(list(a.values()), [b[key] for key in a])


def as_quantity(value: Any) -> Quantity | None:
    """Return a quantity, or a duration as one: in months, or in seconds (its days and clock time); None for a
    mixture.
    """
    if type(value) is not temporal.Duration:
        return value if type(value) is Quantity else None
    clock = Fraction(value.total_nanos, temporal.NANOS) + value.days * 86_400
    if value.months:
        return None if clock else Quantity(value.months, "month")
    return Quantity(as_number(clock), "second")


def alike(a: Any, b: Any) -> tuple[Any, Any] | None:
    """Return the numbers of two quantities, or of a quantity and a duration, in one unit; None if they have none in
    common.
    """
    exact = temporal.Duration in (type(a), type(b))
    a, b = as_quantity(a), as_quantity(b)
    if a is None or b is None or (exact and (clock_text(a) is None) is not (clock_text(b) is None)):
        # The months of a duration have no length in seconds.
        return None
    if a.unit == b.unit:
        return a.number, b.number
    converted = conversions(b, [a.unit])
    return (a.number, converted[0].number) if converted else None


def _times(a: Any, b: Any) -> tuple[Time, Time] | None:
    """Return two values as intervals (a year may be an integer); None if one is not a time."""
    first, second = temporal.interval(a), temporal.interval(b)
    return None if first is None or second is None else (first, second)


def less(a: Any, b: Any) -> bool | None:
    """Return whether a value is less than another; None if they have no order."""
    type_a, type_b = type(a), type(b)
    if (type_a is type_b and type_a in (int, str, float)) or (type_a in NUMBERS and type_b in NUMBERS):
        return bool(a < b)
    if type_a is type_b:
        if type_a is list:
            return _is_less_list(a, b)
        if type_a is bool or type_a in temporal.ORDERED:
            return bool(a < b)
    if type_a is Quantity or type_b is Quantity:
        pair = alike(a, b)
        return None if pair is None else bool(pair[0] < pair[1])
    pair_of_times = _times(a, b) if Time in (type_a, type_b) else None
    return None if pair_of_times is None else pair_of_times[0].end <= pair_of_times[1].start


def _is_less_list(a: list[Any], b: list[Any]) -> bool | None:
    for x, y in zip(a, b, strict=False):
        is_equal = equal(x, y)
        if is_equal is None:
            return None
        if not is_equal:
            return less(x, y)
    return len(a) < len(b)


def compare(operator: str, a: Any, b: Any) -> bool | None:
    """Compare two values in three-valued logic (`Comparison`)."""
    if a is None or b is None:
        return None
    if operator == "=":
        return equal(a, b)
    if operator == "<>":
        is_equal = equal(a, b)
        if is_equal is None or Time not in (type(a), type(b)):
            return None if is_equal is None else not is_equal
        pair = _times(a, b)
        return pair is None or pair[0].end <= pair[1].start or pair[1].end <= pair[0].start
    if operator in ("<=", ">=") and Time in (type(a), type(b)) and (pair := _times(a, b)) is not None:
        # As in the other languages: ends no later, or begins no earlier, than the other.
        return pair[0].end <= pair[1].end if operator == "<=" else pair[0].start >= pair[1].start
    if operator in (">", ">="):
        operator, a, b = "<" if operator == ">" else "<=", b, a
    is_less = less(a, b)
    if is_less or operator == "<":
        return is_less
    if is_less is None or type(a) is float or type(b) is float:
        # NaN is neither less than, greater than nor equal to anything.
        return None if is_less is None else bool(a <= b)
    return equal(a, b)


#: The rank of types in the order of all values.
_RANK: Final[dict[type, int]] = {
    dict: 0, EntityAt: 1, StatementAt: 2, list: 3, PathAt: 4, Point: 5,
    temporal.ZonedDateTime: 6, temporal.LocalDateTime: 7, Time: 8, temporal.ZonedTime: 9, temporal.LocalTime: 10,
    temporal.Duration: 11, str: 12, bool: 13, int: 14, float: 14, Decimal: 14, Quantity: 15,
}  # fmt: skip


def rank_of(value: Any) -> int:
    """Return the rank of the type of a value in the order of all values."""
    if value is None:
        return 99
    rank = _RANK.get(type(value), 98)
    return 16 if rank == 14 and value != value else rank


def total_compare(a: Any, b: Any) -> int:
    """Return -1, 0 or 1 by the order of all values: maps, entities, statements, lists, paths, points, times, texts,
    truth values, numbers, NaN, null; lists and maps item by item.
    """
    rank_a, rank_b = rank_of(a), rank_of(b)
    if rank_a != rank_b:
        return -1 if rank_a < rank_b else 1
    if rank_a in (99, 98, 16):
        return 0
    if rank_a == 0:
        left, right = sorted(a.items()), sorted(b.items())
        keys = [key for key, _ in left], [key for key, _ in right]
        return (keys[0] > keys[1]) - (keys[0] < keys[1]) or _compare_items([item for _, item in left], [item for _, item in right])
    if rank_a == 3:
        return _compare_items(a, b)
    if rank_a == 15:
        pair = alike(a, b)
        left_key, right_key = (a.unit, b.unit) if pair is None else pair
    elif rank_a in (1, 2, 4, 5, 11):
        left_key, right_key = a.order, b.order
    else:
        left_key, right_key = a, b
    return int(left_key > right_key) - int(left_key < right_key)


def _compare_items(a: Sequence[Any], b: Sequence[Any]) -> int:
    for x, y in zip(a, b, strict=False):
        if result := total_compare(x, y):
            return result
    return (len(a) > len(b)) - (len(a) < len(b))


#: A sort key for the order of all values.
order_key: Final = cmp_to_key(total_compare)


def same_key(value: Any) -> Any:
    """Return a hashable key, equal for values that `DISTINCT` and groups treat as equal: null equals null, and NaN
    equals NaN.
    """
    kind = type(value)
    if kind in NUMBERS:
        return ("number", value) if value == value else ("nan",)
    if kind is list:
        return ("list", *map(same_key, value))
    if kind is dict:
        return ("map", *sorted((key, same_key(item)) for key, item in value.items()))
    return kind, value


# -- functions ---------------------------------------------------------------------------------------


#: The longest list that a function returns; texts may have ten times as many characters.
MAX_LIST: Final = 10_000_000
#: The bits of the largest integer of an expression; Python prints at most 4,300 digits.
_MAX_BITS: Final = 14_000


def _undefined(name: str, *values: Any) -> PlanError:
    return PlanError(f"{name}() is not defined for {' and '.join(map(type_name, values))}")


def integer_of(value: Any, name: str) -> int:
    """Return an integer argument; raise `PlanError` for other types."""
    if type(value) is not int:
        raise PlanError(f"{name} needs an integer, not {type_name(value)}")
    return value


def _typed(value: Any, name: str, *types: type) -> Any:
    """Return an argument of one of these types; raise `PlanError` for others."""
    if type(value) not in types:
        raise _undefined(name, value)
    return value


def _number(value: Any, name: str) -> Any:
    return _typed(value, name, *NUMBERS)


def _text(value: Any, name: str) -> str:
    return _typed(value, name, str)  # type: ignore[no-any-return]


def _list(value: Any, name: str) -> list[Any]:
    return _typed(value, name, list)  # type: ignore[no-any-return]


# -- Lists -------------------------------------------------------------------------------------------


def _range(start: Any, end: Any, step: Any = 1) -> list[int]:
    first, last, by = (integer_of(value, "range()") for value in (start, end, step))
    if by == 0:
        raise PlanError("range() needs a step that is not 0")
    numbers = range(first, last + (1 if by > 0 else -1), by)
    if len(numbers) > MAX_LIST:
        raise PlanError(f"range() would have {len(numbers):,} numbers; at most {MAX_LIST:,} are made")
    check()
    return list(numbers)


# -- Texts -------------------------------------------------------------------------------------------


def _stripped(strip: Callable[..., str], name: str, value: Any, characters: Any = None) -> str:
    return strip(_text(value, name), None if characters is None else _text(characters, name))


def _substring(value: Any, start: Any, length: Any = None) -> str:
    text, first = _text(value, "substring"), integer_of(start, "substring()")
    count = len(text) if length is None else integer_of(length, "substring()")
    if first < 0 or count < 0:
        raise PlanError("substring() needs a start and a length that are not negative")
    return text[first : first + count]


def _text_part(name: str, value: Any, length: Any) -> str:
    text, count = _text(value, name), integer_of(length, f"{name}()")
    if count < 0:
        raise PlanError(f"{name}() needs a length that is not negative")
    return text[:count] if name == "left" else text[max(len(text) - count, 0) :]


def _split(value: Any, by: Any) -> list[str]:
    text = _text(value, "split")
    marks = [_text(mark, "split") for mark in (by if type(by) is list else [by])]
    for mark in marks[1:]:
        text = text.replace(mark, marks[0])
    if marks and text.count(marks[0]) > MAX_LIST:
        raise PlanError(f"split() would make a list that is too long; at most {MAX_LIST:,} parts are made")
    return [text] if not marks else text.split(marks[0]) if marks[0] else list(text)


def _replace(value: Any, old: Any, new: Any) -> str:
    text, before, after = (_text(part, "replace") for part in (value, old, new))
    if len(text) * max(len(after), 1) > 10 * MAX_LIST:
        raise PlanError("replace() would make a text that is too long")
    return text.replace(before, after)


# -- Numbers -----------------------------------------------------------------------------------------


def _of_float(name: str, function: Callable[[float], float]) -> Callable[[Any], float]:
    def result(value: Any) -> float:
        try:
            return function(float(_number(value, name)))
        except ValueError:
            return math.nan
        except OverflowError:
            return math.inf

    return result


def _absolute(value: Any) -> Any:
    if isinstance(value, Quantity):
        number: Any = value.number
        return Quantity(abs(number), value.unit)
    return abs(_number(value, "abs"))


def _sign(value: Any) -> int:
    number = value.number if type(value) is Quantity else _number(value, "sign")
    return (number > 0) - (number < 0)


def _round(value: Any, places: Any = 0, mode: Any = None) -> float:
    number, digits = _number(value, "round"), integer_of(places, "round()")
    kinds = ("UP", "DOWN", "CEILING", "FLOOR", "HALF_UP", "HALF_EVEN", "HALF_DOWN")
    kind = "HALF_UP" if mode is None else str(mode).upper()
    if kind not in kinds:
        raise PlanError(f"round() has no mode {mode!r}; it has {', '.join(kinds)}")
    if isinstance(number, float) and not math.isfinite(number):
        return number
    if not -300 <= digits <= 300:
        raise PlanError("round() needs a number of places from -300 to 300")
    # Without places and a mode, halves are rounded towards positive infinity; with places away from zero.
    scaled = exact(number) * Fraction(10) ** digits
    below = math.floor(scaled)
    half = scaled - below
    toward_zero = below if scaled >= 0 else math.ceil(scaled)
    away = math.ceil(scaled) if scaled >= 0 else below
    nearest = below if half < Fraction(1, 2) else below + 1
    if half == Fraction(1, 2) and (mode is not None or digits):
        nearest = {"HALF_UP": away, "HALF_DOWN": toward_zero, "HALF_EVEN": below + below % 2}.get(kind, nearest)
    chosen = {"UP": away, "DOWN": toward_zero, "CEILING": math.ceil(scaled), "FLOOR": below}.get(kind, nearest)
    return _float(Fraction(chosen) / Fraction(10) ** digits)


def _rounded(name: str, function: Callable[[Any], int], value: Any) -> float:
    number = _number(value, name)
    return number if isinstance(number, float) and not math.isfinite(number) else _float(function(number))


# -- Conversion --------------------------------------------------------------------------------------


def float_text(number: float) -> str:
    """Return a float as Cypher writes it: `1.0`, `1.5E10`."""
    if not math.isfinite(number):
        return "NaN" if number != number else "Infinity" if number > 0 else "-Infinity"
    if number == 0 or 1e-3 <= abs(number) < 1e7:
        return repr(number)
    mantissa, _, exponent = f"{number!r}".partition("e") if "e" in repr(number) else _scientific(number)
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}E{int(exponent)}"


def _scientific(number: float) -> tuple[str, str, str]:
    digits = Decimal(repr(number)).normalize()
    sign, figures, _ = digits.as_tuple()
    text = "".join(map(str, figures))
    return f"{'-' * sign}{text[0]}.{text[1:] or '0'}", "e", str(digits.adjusted())


def text_of_value(value: Any) -> str | None:
    """Return the text of a value (`toString`); None for types that have none."""
    kind = type(value)
    if kind is str:
        return str(value)
    if kind is bool:
        return "true" if value else "false"
    if kind is float:
        return float_text(value)
    if kind in (int, Decimal):
        return format_number(value)
    if kind in (Quantity, Time, temporal.Duration) or kind in temporal.ORDERED:
        return str(value)
    if kind is Point:
        return points.text(value)
    return None


def _to_text(value: Any) -> str:
    result = text_of_value(value)
    if result is None:
        raise _undefined("toString", value)
    return result


def _to_truth(value: Any) -> bool | None:
    if type(value) is bool:
        return bool(value)
    if type(value) is int:
        return value != 0
    if type(value) is str:
        return {"true": True, "false": False}.get(value.strip().lower())
    raise _undefined("toBoolean", value)


def _number_in(text: str) -> Any:
    try:
        return parse_number(text)
    except ValueError:
        return None


def _to_integer(value: Any) -> int | None:
    if type(value) is bool:
        return int(value)
    if type(value) is str:
        # Unlike `toFloat`, it does not allow white space.
        value = _number_in(value) if value == value.strip() else None
        if value is None:
            return None
    if type(value) is Quantity:
        value = value.number
    if type(value) in NUMBERS:
        return int(value) if abs(value) < math.inf else None
    raise _undefined("toInteger", value)


def _to_float(value: Any) -> float | None:
    if type(value) is str:
        bare = value.strip()
        if bare.lstrip("+-") in ("NaN", "Infinity") and len(bare) <= len("+Infinity"):
            return float(bare)
        value = _number_in(value)
        if value is None:
            return None
    if type(value) is Quantity:
        value = value.number
    if type(value) in NUMBERS:
        return _float(value)
    raise _undefined("toFloat", value)


def _or_null(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def result(value: Any) -> Any:
        try:
            return function(value)
        except PlanError:
            return None

    return result


def _each(name: str, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    convert = _or_null(function)
    return lambda value: [None if item is None else convert(item) for item in _list(value, name)]


def _quantity(value: Any) -> Any:
    if type(value) is str:
        try:
            return parse_quantity(value)
        except ValueError as error:
            raise PlanError(f"quantity() needs a number and a unit, such as '4000 m': {error}") from None
    return _typed(value, "quantity", Quantity, *NUMBERS)


_VALUE_TYPES: Final = {
    type(None): "NULL", bool: "BOOLEAN NOT NULL", int: "INTEGER NOT NULL", float: "FLOAT NOT NULL", str: "STRING NOT NULL",
    list: "LIST<ANY> NOT NULL", dict: "MAP NOT NULL", Time: "DATE NOT NULL", temporal.Duration: "DURATION NOT NULL",
    PathAt: "PATH NOT NULL",
}  # fmt: skip


def _value_type(value: Any) -> str:
    known = {"EntityAt": "NODE NOT NULL", "StatementAt": "RELATIONSHIP NOT NULL"}
    return _VALUE_TYPES.get(type(value)) or known.get(type(value).__name__) or f"{type(value).__name__.upper()} NOT NULL"


def _merged(first: Any, second: Any) -> dict[str, Any]:
    if type(first) is not dict or type(second) is not dict:
        raise _undefined("merged", first, second)
    return first | second


def _at_zone(kind: str, zone: Any) -> Any:
    return temporal.now(kind, time.time_ns(), _text(zone, kind))


def _order_text(value: Any) -> str:
    """Return a text that sorts as the value does in the order of all values (`total_compare`)."""
    rank = rank_of(value)
    head = chr(0x30 + min(rank, 60))
    if isinstance(value, dict):
        parts = [key + "\x00" for key in sorted(value)]
        return head + "".join(parts) + "\x00" + "".join(_order_text(value[key]) for key in sorted(value)) + "\x00"
    if isinstance(value, list):
        return head + "".join("\x01" + _order_text(item) for item in value) + "\x00"
    if isinstance(value, Point):
        return head + "".join(map(_number_text, value.order))
    if isinstance(value, str):
        return head + value + "\x00"
    if isinstance(value, bool):
        return head + "01"[value]
    if isinstance(value, int | float | Decimal):
        return head + _number_text(value)
    if isinstance(value, Quantity):
        return head + value.unit + "\x00" + _number_text(value.number)
    if isinstance(value, Time):
        return head + "".join(_number_text(part) for part in (value.start, value.end, int(value.precision)))
    if value is None:
        return head
    order = getattr(value, "order", None)
    if order is None:
        order = (value.instant, value.offset) if hasattr(value, "instant") else (getattr(value, "days", 0), value.nanos)
    return head + "".join(map(_number_text, order if isinstance(order, tuple) else (order,)))


#: Added to the integral part of a number so that its digits, of fixed length, are not negative.
_SHIFT: Final = 10**40


def _number_text(number: Any) -> str:
    if isinstance(number, float) and not math.isfinite(number):
        return "9" if number > 0 else "/"
    fraction = exact(number)
    integral = math.floor(fraction)
    if abs(integral) >= _SHIFT:
        # Beyond forty digits, the number of digits is compared first.
        digits = str(abs(integral))
        if integral > 0:
            return f"8{len(digits):05d}{digits}"
        return f"0{99_999 - len(digits):05d}" + "".join(str(9 - int(digit)) for digit in digits)
    decimals = fraction - integral
    return f"1{integral + _SHIFT:041d}" + (f".{int(decimals * 10**40):040d}" if decimals else "")


# -- Operators ---------------------------------------------------------------------------------------


def no_operator(what: str, *values: Any) -> PlanError:
    """Return the error of an operator that is not defined for the types of the values."""
    return PlanError(f"{what} is not defined for {' and '.join(type_name(value) for value in values)}")


def _common_type(a: Any, b: Any) -> tuple[Any, Any]:
    """Return two numbers of types that Python can combine: a number next to a float becomes a float."""
    if type(a) is float and type(b) is not float:
        return a, _float(b)
    return (_float(a), b) if type(b) is float and type(a) is not float else (a, b)


def _float(number: Any) -> float:
    """Return a number as a float, infinite if it is too large."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _bounded(value: Any) -> Any:
    """Return the result of an operator; raise `PlanError` if it is too large: doubling a value sixty times would fill
    the memory.
    """
    kind = type(value)
    if kind is int:
        if value.bit_length() > _MAX_BITS:
            raise PlanError(f"an integer of {value.bit_length():,} bits is too large; at most {_MAX_BITS:,} are computed")
    elif kind is str or kind is list:
        limit = MAX_LIST if kind is list else 10 * MAX_LIST
        if len(value) > limit:
            raise PlanError(f"{type_name(value)} of length {len(value):,} is too long; at most {limit:,} is made")
    return value


def add_values(a: Any, b: Any) -> Any:
    """Return the sum of two values (`Arithmetic`)."""
    type_a, type_b = type(a), type(b)
    if type_a in NUMBERS and type_b in NUMBERS:
        a, b = _common_type(a, b)
        return a + b
    if type_a is list:
        return _bounded(a + b if type_b is list else [*a, b])
    if type_b is list:
        return _bounded([a, *b])
    if type_a is str and type_b is str:
        return _bounded(a + b)
    if (type_a is str and type_b in NUMBERS) or (type_b is str and type_a in NUMBERS):
        return f"{text_of_value(a)}{text_of_value(b)}"
    if Quantity in (type_a, type_b) and (pair := alike(a, b)) is not None:
        return Quantity(sum(_common_type(*pair)), _unit_of(a))
    result = temporal.add(a, b)
    if result is None:
        raise no_operator("+", a, b)
    return result


def _unit_of(value: Any) -> str:
    quantity = as_quantity(value)
    assert quantity is not None
    return quantity.unit


def _subtract(a: Any, b: Any) -> Any:
    type_a, type_b = type(a), type(b)
    if type_a in NUMBERS and type_b in NUMBERS:
        a, b = _common_type(a, b)
        return a - b
    if Quantity in (type_a, type_b) and (pair := alike(a, b)) is not None:
        x, y = _common_type(*pair)
        return Quantity(x - y, _unit_of(a))
    result = temporal.add(a, -b) if type_b is temporal.Duration else None
    if result is None:
        raise no_operator("-", a, b)
    return result


def _multiply(a: Any, b: Any) -> Any:
    type_a, type_b = type(a), type(b)
    if type_a in NUMBERS and type_b in NUMBERS:
        a, b = _common_type(a, b)
        return _bounded(a * b)
    for x, y in ((a, b), (b, a)):
        if type(y) in NUMBERS:
            if type(x) is Quantity:
                return Quantity(_multiply(x.number, y), x.unit)
            if type(x) is temporal.Duration:
                return x.times(y)
    raise no_operator("*", a, b)


def _divide(a: Any, b: Any) -> Any:
    type_a, type_b = type(a), type(b)
    if type_a is int and type_b is int:
        if b == 0:
            raise PlanError("an integer is divided by 0")
        quotient = abs(a) // abs(b)
        return quotient if (a < 0) is (b < 0) else -quotient
    if type_a in NUMBERS and type_b in NUMBERS:
        x, y = _float(a), _float(b)
        if y == 0:
            return math.nan if x == 0 or x != x else math.copysign(math.inf, x) * math.copysign(1, y)
        return x / y
    if type_a is Quantity and type_b in NUMBERS:
        return Quantity(_divide(_float(a.number), b), a.unit)
    if type_a is Quantity and type_b is Quantity:
        pair = alike(a, b)
        if pair is not None:
            return _divide(_float(pair[0]), _float(pair[1]))
    if type_a is temporal.Duration and type_b in NUMBERS and b:
        return a.times(b, divided=True)
    raise no_operator("/", a, b)


def _remainder(a: Any, b: Any) -> Any:
    type_a, type_b = type(a), type(b)
    if type_a is int and type_b is int:
        if b == 0:
            raise PlanError("the remainder of a division by 0")
        remainder = abs(a) % abs(b)
        return -remainder if a < 0 else remainder
    if type_a in NUMBERS and type_b in NUMBERS:
        return math.nan if not b or math.isinf(a) else math.fmod(a, b)
    raise no_operator("%", a, b)


def _power(a: Any, b: Any) -> float:
    if type(a) in NUMBERS and type(b) in NUMBERS:
        try:
            result = _float(a) ** _float(b)
        except (ZeroDivisionError, OverflowError):
            return math.inf
        return result if isinstance(result, float) else math.nan
    raise no_operator("^", a, b)


#: The functions of `Arithmetic`.
ARITHMETIC: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "+": add_values, "-": _subtract, "*": _multiply, "/": _divide, "%": _remainder, "^": _power,
}  # fmt: skip
#: The largest number of characters in a regular expression.
_MAX_PATTERN: Final = 1_000
#: The largest number of steps that backtracking may take.
_MAX_STEPS: Final = 1_000_000
_REPEAT: Final = re.compile(r"[*+{]")
#: A group with a repeat or a choice in it that is repeated, or a back reference.
_NESTED: Final = re.compile(r"[*+}|][^()]*\)[*+{]|\)\)+[*+{]|\\[1-9]|\(\?P=")


def _matches(text: str, pattern: str) -> bool:
    """Return whether a regular expression matches a whole text. If backtracking could take long, the engine of
    Oxigraph is used, which is linear in the text and has neither back references nor look-arounds.
    """
    if len(pattern) > _MAX_PATTERN:
        raise PlanError(f"a regular expression has at most {_MAX_PATTERN:,} characters, not {len(pattern):,}")
    try:
        compiled = re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise PlanError(f"{shortened(pattern, 60)!r} is not a regular expression: {error}") from None
    if not _NESTED.search(pattern) and len(text) ** len(_REPEAT.findall(pattern)) <= _MAX_STEPS:
        return compiled.fullmatch(text) is not None
    import pyoxigraph

    texts = pyoxigraph.Literal(text), pyoxigraph.Literal(f"^(?:{pattern})$")
    rows: Any = pyoxigraph.Store().query("SELECT (REGEX({}, {}) AS ?matches) {{}}".format(*texts))
    result = next(rows)[0]
    if result is None:
        raise PlanError(
            f"the regular expression {shortened(pattern, 60)!r} may take exponential time",
            hint="write it without back references and look-arounds",
        )
    return result.value == "true"  # type: ignore[no-any-return]


#: The functions of `TextTest`.
TEXT_TESTS: Final[dict[str, Callable[[str, str], bool]]] = {
    "starts with": str.startswith,
    "ends with": str.endswith,
    "contains": str.__contains__,
    "matches": _matches,
}


# -- Functions of all values of a group --------------------------------------------------------------


def _sum(values: Any) -> Any:
    if not values:
        return 0
    kinds = set(map(type, values))
    if kinds <= {int}:
        return sum(values)
    if kinds <= NUMBERS:
        if float not in kinds:
            return as_number(sum(map(Fraction, values), Fraction(0)))
        try:
            return math.fsum(values)
        except OverflowError:
            return float(sum(map(_float, values)))
    result = values[0]
    if type(result) not in (Quantity, temporal.Duration):
        raise _undefined("sum", *values[:2])
    for value in values[1:]:
        result = add_values(result, value)
    return result


def _average(values: Any) -> Any:
    if not values:
        return None
    total = _sum(values)
    if type(total) is Quantity:
        return Quantity(_float(total.number) / len(values), total.unit)
    if type(total) is temporal.Duration:
        return total.times(len(values), divided=True)
    return _float(Fraction(total) / len(values)) if abs(total) < math.inf else total / len(values)


def _extreme(values: Any, *, largest: bool) -> Any:
    if not values:
        return None
    kinds = set(map(type, values))
    # NaN sorts after all other numbers.
    plain = kinds <= {int, float} and not any(value != value for value in values)
    key = None if plain or kinds in ({str}, {Time}) else order_key
    return max(values, key=key) if largest else min(values, key=key)


def _deviation(values: Any, *, sample: bool) -> Any:
    numbers = [_float(_number(value, "stdev")) for value in values]
    if len(numbers) < 1 + sample:
        return 0.0
    if not all(map(math.isfinite, numbers)):
        return math.nan
    return statistics.stdev(numbers) if sample else statistics.pstdev(numbers)


def _percentile(values: Any, part: Any, *, discrete: bool) -> Any:
    if type(part) not in NUMBERS or not 0 <= part <= 1:
        raise PlanError(f"a percentile is a number from 0 to 1, not {part!r}")
    numbers = sorted(_number(value, "percentile") for value in values)
    if not numbers:
        return None
    if discrete:
        place = math.ceil(part * len(numbers)) - 1
        return numbers[max(place, 0)]
    place = part * (len(numbers) - 1)
    low = math.floor(place)
    high = min(low + 1, len(numbers) - 1)
    return _float(numbers[low]) + (_float(numbers[high]) - _float(numbers[low])) * (place - low)


#: The aggregates other than `count` and `collect`, as functions of the non-null values of a group.
GROUP_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "sum": _sum,
    "avg": _average,
    "min": partial(_extreme, largest=False),
    "max": partial(_extreme, largest=True),
    "stdev": partial(_deviation, sample=True),
    "stdevp": partial(_deviation, sample=False),
    "percentilecont": partial(_percentile, discrete=False),
    "percentiledisc": partial(_percentile, discrete=True),
}


# -- The table ---------------------------------------------------------------------------------------


_FLOATS: Final[dict[str, Callable[[float], float]]] = {
    "sqrt": math.sqrt, "exp": math.exp, "log": lambda x: math.log(x) if x else -math.inf,
    "log10": lambda x: math.log10(x) if x else -math.inf, "sin": math.sin, "cos": math.cos,
    "tan": math.tan, "cot": lambda x: 1 / math.tan(x) if x else math.inf, "asin": math.asin, "acos": math.acos, "atan": math.atan,
    "degrees": math.degrees, "radians": math.radians, "haversin": lambda x: (1 - math.cos(x)) / 2,
}  # fmt: skip

#: The functions that need no graph.
FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    **{name: _of_float(name, function) for name, function in _FLOATS.items()},
    **{f"group_{name}": function for name, function in GROUP_FUNCTIONS.items()},
    "size": lambda value: len(_typed(value, "size", list, str)),
    "length": lambda value: len(_typed(value, "length", PathAt).statements),
    "char_length": lambda value: len(_text(value, "char_length")),
    "character_length": lambda value: len(_text(value, "character_length")),
    "isempty": lambda value: not _typed(value, "isEmpty", list, str, dict),
    "head": lambda value: next(iter(_list(value, "head")), None),
    "last": lambda value: _list(value, "last")[-1] if value else None,
    "tail": lambda value: _list(value, "tail")[1:],
    "reverse": lambda value: _typed(value, "reverse", list, str)[::-1],
    "range": _range,
    "tolower": lambda value: _text(value, "toLower").lower(),
    "lower": lambda value: _text(value, "lower").lower(),
    "toupper": lambda value: _text(value, "toUpper").upper(),
    "upper": lambda value: _text(value, "upper").upper(),
    "trim": lambda value: _text(value, "trim").strip(),
    "btrim": partial(_stripped, str.strip, "btrim"),
    "ltrim": partial(_stripped, str.lstrip, "ltrim"),
    "rtrim": partial(_stripped, str.rstrip, "rtrim"),
    "substring": _substring,
    "left": partial(_text_part, "left"),
    "right": partial(_text_part, "right"),
    "split": _split,
    "replace": _replace,
    "abs": _absolute,
    "sign": _sign,
    "ceil": partial(_rounded, "ceil", math.ceil),
    "floor": partial(_rounded, "floor", math.floor),
    "round": _round,
    "atan2": lambda y, x: math.atan2(_float(_number(y, "atan2")), _float(_number(x, "atan2"))),
    "isnan": lambda value: bool(_number(value, "isNaN") != value),
    "pi": lambda: math.pi,
    "e": lambda: math.e,
    "rand": random.random,
    "randomuuid": lambda: str(uuid.uuid4()),
    "toboolean": _to_truth,
    "tointeger": _to_integer,
    "tofloat": _to_float,
    "tostring": _to_text,
    "tobooleanornull": _or_null(_to_truth),
    "tointegerornull": _or_null(_to_integer),
    "tofloatornull": _or_null(_to_float),
    "tostringornull": text_of_value,
    "tobooleanlist": _each("toBooleanList", _to_truth),
    "tointegerlist": _each("toIntegerList", _to_integer),
    "tofloatlist": _each("toFloatList", _to_float),
    "tostringlist": _each("toStringList", _to_text),
    "coalesce": lambda *values: next((value for value in values if value is not None), None),
    "nullif": lambda first, second: None if equal(first, second) else first,
    "valuetype": _value_type,
    "quantity": _quantity,
    "unit": lambda value: value.unit if type(value) is Quantity else None,
    "number": lambda value: value.number if type(value) is Quantity else _number(value, "number"),
    "merged": _merged,
    "orderkey": _order_text,
    "listed": lambda value: value if type(value) is list else [value],
    "point": points.point,
    "point.distance": points.distance,
    "point.withinbbox": points.within_box,
    "distance": points.distance,
    "duration": temporal.duration,
    "duration.between": temporal.between,
    "duration.inmonths": temporal.in_months,
    "duration.indays": temporal.in_days,
    "duration.inseconds": temporal.in_seconds,
    "datetime.fromepoch": temporal.from_epoch,
    "datetime.fromepochmillis": temporal.from_epoch_millis,
    **temporal.MAKERS,
    **{
        f"{kind}.{clock}": partial(_at_zone, kind) for kind in temporal.MAKERS for clock in ("transaction", "statement", "realtime")
    },
    **{f"{kind}.truncate": partial(temporal.truncate, kind) for kind in temporal.MAKERS},
    **{f"rdf.{name}": getattr(rdf_terms, name) for name in ("value", "unit", "year", "date")},
    **{f"rdf.{name}": partial(rdf_terms.bound, which=name) for name in ("start", "end", "precision")},
}

#: The functions that read the graph: the methods of `GraphTerms`.
GRAPH_FUNCTIONS: Final = {
    "id": "id", "elementid": "element_id", "type": "type", "labels": "labels", "keys": "keys", "properties": "properties",
    "startnode": "start_node", "endnode": "end_node", "nodes": "nodes", "relationships": "relationships", "name": "name",
    "path": "path", "rdf.iri": "rdf_iri", "allen": "allen", "allen.possible": "allen_possible", "allen.together": "allen_together",
    "days.least": "days_least", "days.most": "days_most",
}  # fmt: skip
