"""The native functions that `Apply` runs: comparison, arithmetic, texts, times and choices."""

from __future__ import annotations

import operator as operator_module
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from typing import Any, Final

from condgraph.engine import operands, values
from condgraph.engine.bounds import check, watched
from condgraph.engine.errors import shortened
from condgraph.engine.facts import shown
from condgraph.engine.units import conversions, fold_unit
from condgraph.engine.values import Point, read_point

# -- comparisons -------------------------------------------------------------------------------------
# Native functions that compare, and the truth of an operand.


#: Comparisons of two values, or of an array with a value.
OPERATORS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "=": operator_module.eq, "!=": operator_module.ne, "<": operator_module.lt, ">": operator_module.gt, "<=": operator_module.le,
    ">=": operator_module.ge,
}  # fmt: skip


def time_mask(operator: str, literal: values.Time, start: Any, end: Any) -> Any:
    """Compare times, or arrays of starts and ends, with one: `=` lies within, `!=` is disjoint, `<` ends before, `>`
    begins after.
    """
    low, high = literal.start, literal.end
    if operator == "=":
        return (start >= low) & (end <= high)
    if operator == "!=":
        return (end <= low) | (start >= high)
    if operator[0] == "<":
        return end <= (low if operator == "<" else high)
    return start >= (high if operator == ">" else low)


def compared(left: Any, right: Any, operator: str, what: str) -> bool:
    """Compare two values: numbers in one unit, times by their intervals, texts without case."""
    a, b = operands.measure_of(left), operands.measure_of(right)
    if isinstance(a, values.Time) and isinstance(b, values.Quantity):
        a = values.Quantity(operands.year_of(a))
    if isinstance(b, values.Time) and isinstance(a, values.Quantity):
        b = values.Quantity(operands.year_of(b))
    if isinstance(a, values.Time) and isinstance(b, values.Time):
        return _times(a, b, operator)
    if isinstance(a, values.Quantity) and isinstance(b, values.Quantity):
        a, b, _ = operands.alike(a, b, what)
        return bool(OPERATORS[operator](values.exact(a.number), values.exact(b.number)))
    left_text, right_text = (values.collapse(shown(value)).casefold() for value in (left, right))
    return bool(OPERATORS[operator](left_text, right_text))


def _times(a: values.Time, b: values.Time, operator: str) -> bool:
    if operator in ("=", "!="):
        return bool(time_mask(operator, b, a.start, a.end))
    # Overlapping times are ordered by start, then by end.
    return bool(OPERATORS[operator]((a.start, a.end), (b.start, b.end)))


def _competitor(operand: operands.Operand, operator: str, what: str) -> operands.Operand:
    """Return the value that competes if a side has several: the largest for `>`, the smallest for `<`."""
    if len(set(watched(operand.texts))) < 2 or operator in ("=", "!="):
        return operand
    pairs = dict(watched(zip(operand.texts, operand.values, strict=True)))
    best: operands.Operand | None = None
    for text, value in watched(pairs.items(), _STEP):
        candidate = operands.Operand([value], [text], operand.remarks)
        if best is None or compared(*_comparable([candidate, best], what), ">" if operator in (">", ">=") else "<", what):
            best = candidate
    assert best is not None
    operand.remarks.append(f"{what}: of {len(pairs)} values {best.texts[0]!r} competes")
    return best


def _comparable(arguments: Sequence[operands.Operand], what: str) -> tuple[Any, Any]:
    """Return two values to compare: as they are, or as the numbers in their texts if only that makes them comparable."""
    left, right = arguments[0].one(what), arguments[1].one(what)
    numeric = [operands.measure_of(value) is not None for value in (left, right)]
    texts = arguments[0].texts[0], arguments[1].texts[0]
    if all(numeric) or (not any(numeric) and not all(map(operands.DIGITS, texts))):
        return left, right
    return arguments[0].measure(what), arguments[1].measure(what)


def compare(arguments: Sequence[operands.Operand], options: operands.Options) -> list[Any]:
    """Compare two values. The result is the winner (`mode` "winner": the third or fourth argument, which name them),
    a truth value, or one of two words.
    """
    operator = options.get("operator", ">")
    left, right = _comparable([_competitor(argument, operator, "compare") for argument in arguments[:2]], "compare")
    mode = options.get("mode", "winner")
    if mode == "truth":
        return [compared(left, right, operator, "compare")]
    if mode == "words":
        first_word, second_word = options["words"].split("/")
        if compared(left, right, "=", "compare") and compared(right, left, "=", "compare"):
            return ["equal"]
        return [first_word if compared(left, right, operator, "compare") else second_word]
    if operator in ("=", "!="):
        return [compared(left, right, operator, "compare")]
    wins = compared(left, right, operator, "compare")
    if not wins and not compared(right, left, operator, "compare"):
        return [*arguments[2].values, *arguments[3].values]
    return list(arguments[2 if wins else 3].values)


#: The largest number of pairs of values that are compared.
MAX_PAIRS: Final = 250_000
#: The number of comparisons between two checks of the deadline.
_STEP: Final = 1 << 10


def _check_size(arguments: Sequence[operands.Operand], what: str) -> None:
    """Raise `Inapplicable` if too many pairs of values would be compared."""
    if len(arguments[0]) * len(arguments[1]) > MAX_PAIRS:
        sizes = f"{len(arguments[0])} values with {len(arguments[1])}"
        raise operands.Inapplicable(f"{what} would compare {sizes} one by one; max, min, count or set_intersection of them do not")


def relation(arguments: Sequence[operands.Operand], options: operands.Options) -> list[Any]:
    """Return whether the comparison holds for any pair of values of the two arguments."""
    operator = options["operator"]
    for operand, side in zip(arguments, ("left", "right"), strict=True):
        if not len(operand):
            operand.remarks.append(f"{operator}: the {side} side is empty, and matches nothing")
    if operator == "!=":
        return [not _any(arguments, "=")]
    return [_any(arguments, operator)]


def _any(arguments: Sequence[operands.Operand], operator: str) -> bool:
    if operator == "=" and not set(watched(arguments[0].texts)).isdisjoint(arguments[1].texts):
        return True
    _check_size(arguments, operator)
    for left, text in zip(arguments[0].values, arguments[0].texts, strict=True):
        for right, right_text in watched(zip(arguments[1].values, arguments[1].texts, strict=True), _STEP):
            pair = [
                operands.Operand([left], [text], arguments[0].remarks),
                operands.Operand([right], [right_text], arguments[1].remarks),
            ]
            left_value, right_value = _comparable(pair, operator) if operator != "=" else (left, right)
            if compared(left_value, right_value, operator, operator):
                if operator == "=":
                    _note_case(left, right, arguments[0], "=")
                return True
    return False


def _note_case(left: Any, right: Any, operand: operands.Operand, what: str) -> bool:
    """Report two texts that are equal except for case or white space; always return True."""
    left_text, right_text = shown(left), shown(right)
    if (
        operands.measure_of(left) is None
        and operands.measure_of(right) is None
        and values.collapse(left_text) != values.collapse(right_text)
    ):
        operand.remarks.append(f"{what}: {left_text!r} and {right_text!r} are the same except for case or white space")
    return True


def equal(arguments: Sequence[operands.Operand], options: operands.Options) -> list[Any]:
    """Return whether two sets have the same members."""
    left, right = arguments
    if set(watched(left.texts)) == set(watched(right.texts)):
        return [True]
    _check_size(arguments, "equal")
    return [_subset(left, right) and _subset(right, left)]


def is_in(arguments: Sequence[operands.Operand], options: operands.Options) -> list[Any]:
    """Return whether all members of one set are in the other, or the texts of one within texts of the other."""
    left, right = arguments
    if not len(left) or not len(right):
        return [False]
    left_texts, right_texts = set(watched(left.texts)), set(watched(right.texts))
    check()
    if left_texts <= right_texts or right_texts <= left_texts:
        return [True]
    _check_size(arguments, "is_in")
    return [_subset(left, right) or _subset(right, left) or _contains(left, right) or _contains(right, left)]


def _subset(left: operands.Operand, right: operands.Operand) -> bool:
    right_texts = set(right.texts)
    return all(
        text in right_texts
        or any(
            compared(left_value, right_value, "=", "=") and _note_case(left_value, right_value, left, "=")
            for right_value in watched(right.values, _STEP)
        )
        for left_value, text in zip(left.values, left.texts, strict=True)
    )


def _contains(left: operands.Operand, right: operands.Operand) -> bool:
    return all(
        any(left_text.casefold() in right_text.casefold() for right_text in watched(right.texts, _STEP)) for left_text in left.texts
    )


def truth(operand: operands.Operand) -> bool:
    """Return a truth value as it is; anything else is true if there is a value that is neither 0 nor a word for no."""
    if len(operand) == 1:
        value = operand.values[0]
        if isinstance(value, bool):
            return value
        if isinstance(value, (int, float)):
            return value != 0
        if isinstance(value, str):
            return value.casefold() not in ("no", "false", "")
    return len(operand) > 0


# -- arithmetic --------------------------------------------------------------------------------------
# Differences and durations of times; sums, products, percentages and rounding of numbers with units.


def _measured_number(operand: operands.Operand, what: str) -> values.Quantity:
    return _number(operand.measure(what), operand, what)


def _number(value: operands.Measure, operand: operands.Operand, what: str) -> values.Quantity:
    """Return a number as it is, a time as its year."""
    if isinstance(value, values.Quantity):
        return value
    if value.precision is not values.Precision.YEAR:
        operand.remarks.append(f"{what}: the values are times and are read by their years")
    return values.Quantity(operands.year_of(value))


def _of_years(value: values.Time, other: values.Quantity, what: str) -> None:
    """Raise `Inapplicable` if a time, of which only the year is a number, is combined with another unit: 1999 and 5
    days are not 2004 days.
    """
    if other.unit != values.NO_UNIT and fold_unit(other.unit) != "year":
        raise operands.Inapplicable(f"{what}: {value} is a time, and {other} is not a number of years")


def _each(operand: operands.Operand, what: str) -> list[values.Quantity]:
    """Return every value as a number, repeats included."""
    pairs = watched(zip(operand.values, operand.texts, strict=True), 1 << 11)
    return [_measured_number(operands.Operand([value], [text], operand.remarks), what) for value, text in pairs]


def difference(arguments: Sequence[operands.Operand], options: operands.Options) -> list[Any]:
    """Return the distance of two values (`absolute` "false": the first minus the second, with its sign), also of a
    single bag of two.
    """
    if len(arguments) == 1:
        measured = arguments[0].measures("difference")
        if len(measured) == 1 and isinstance(measured[0], values.Time) and measured[0].precision is values.Precision.SPAN:
            return duration(arguments, options)
        if len(measured) != 2:
            raise operands.Inapplicable(f"difference takes two values, not {len(measured)}")
        a, b = measured
        options = {**options, "absolute": "true"}
    else:
        a, b = (operand.measure("difference") for operand in arguments)
    if isinstance(a, values.Time) and isinstance(b, values.Time):
        return [time_between(a, b, options)]
    for value, other in ((a, b), (b, a)):
        if isinstance(value, values.Time) and isinstance(other, values.Quantity):
            _of_years(value, other, "difference")
    first_number, second_number = (_number(value, arguments[0], "difference") for value in (a, b))
    first_number, second_number, unit = operands.alike(first_number, second_number, "difference")
    result = values.exact(first_number.number) - values.exact(second_number.number)
    return [values.Quantity(operands.plain(result if _signed(options) else abs(result)), unit)]


def _signed(options: operands.Options) -> bool:
    return options.get("absolute") == "false"


_UNITS: Final = {"second": 1, "minute": 60, "hour": 3600, "day": values.DAY_SECONDS, "week": 7 * values.DAY_SECONDS}


def time_between(a: values.Time, b: values.Time, options: operands.Options) -> values.Quantity:
    """Return the time between two times, in the unit of the options, else in years, or in days if both are exact
    days.
    """
    unit = options.get("unit", "").casefold().rstrip("s")
    if _signed(options) and a.start < b.start:
        # The first minus the second: negative here, because the first is earlier.
        absolute_time = time_between(a, b, {**options, "absolute": "true"})
        return values.Quantity(-absolute_time.number, absolute_time.unit)
    if a.start > b.start:
        a, b = b, a
    if a.start <= values.OPEN_START:
        raise operands.Inapplicable(f"the time between {a} and {b}: {a} has no start")
    if unit == "month":
        first, last = (values.civil(value.start // values.DAY_SECONDS) for value in (a, b))
        return values.Quantity((last[0] - first[0]) * 12 + last[1] - first[1], "month")
    if unit == "year" or (not unit and values.Precision.YEAR in (a.precision, b.precision)) or unit not in ("", *_UNITS):
        return values.Quantity(operands.year_of(b) - operands.year_of(a), "year")
    seconds = Fraction(b.start - a.start, _UNITS[unit or "day"])
    return values.Quantity(operands.plain(seconds), unit or "day")


def duration(arguments: Sequence[operands.Operand], options: operands.Options) -> list[Any]:
    """Return the time from a start to an end; for one interval its length (in years, last minus first: 1999-2003 is
    4).
    """
    if len(arguments) == 2:
        a, b = (operand.measure("duration") for operand in arguments)
        if isinstance(a, values.Time) and isinstance(b, values.Time):
            return [time_between(a, b, options)]
        return difference(arguments, options)
    measured = arguments[0].measures("duration")
    if len(measured) == 2 and not any(
        isinstance(value, values.Time) and value.precision is values.Precision.SPAN for value in measured
    ):
        # A start and an end; for two intervals return the length of each.
        return difference(arguments, options)
    return [long_of(value, options) for value in watched(measured)]


def long_of(value: operands.Measure, options: operands.Options) -> values.Quantity:
    """Return the length of an interval, in the unit of the options; return a quantity as it is."""
    if isinstance(value, values.Quantity):
        return value
    if value.start <= values.OPEN_START or value.end >= values.UNKNOWN_END:
        raise operands.Inapplicable(f"duration: {value} has an open end")
    last = values.Time.year(values.civil((value.end - 1) // values.DAY_SECONDS)[0])
    first = values.Time.year(operands.year_of(value))
    if value.precision is values.Precision.SPAN and not options.get("unit") and (first.start, last.end) != (value.start, value.end):
        return values.Quantity(operands.plain(Fraction(value.end - value.start, values.DAY_SECONDS)), "day")
    if options.get("unit"):
        first, last = (values.Time(second, second + 1, values.Precision.SECOND) for second in (value.start, value.end - 1))
    return time_between(first, last, options)


def distance(arguments: Sequence[operands.Operand], options: operands.Options) -> list[Any]:
    """Return the distance of two points in metres, or in the unit of the options."""
    points = [_point(operand) for operand in arguments]
    metres = values.Quantity(operands.plain(values.exact(points[0].distance(points[1]))), "metre")
    unit = options.get("unit", "")
    if not unit or fold_unit(unit) == fold_unit(metres.unit):
        return [metres]
    converted: list[Any] = list(conversions(metres, [unit]))
    if not converted:
        raise operands.Inapplicable(f"distance: metres are not converted into {shortened(unit, 40)!r}")
    return converted


def _point(operand: operands.Operand) -> Point:
    value = operand.one("distance")
    point = value if isinstance(value, Point) else read_point(operand.texts[0])
    if point is None:
        raise operands.Inapplicable(f"distance: {shortened(operand.texts[0], 60)!r} is not a point")
    return point


def add(arguments: Sequence[operands.Operand], options: operands.Options) -> list[Any]:
    """Return the sum of the operands; every number of a bag counts."""
    total, first = Fraction(0), values.Quantity(0)
    for place, operand in enumerate(arguments, 1):
        if not len(operand):
            operand.remarks.append(f"add: operand {place} is empty, and adds nothing")
        for measure in watched(_each(operand, "add")):
            _, converted, unit = operands.alike(first, measure, "add")
            total += values.exact(converted.number)
            first = first if first.unit == unit else measure
    time = next((value for operand in arguments for value in operand.values if isinstance(value, values.Time)), None)
    if time is not None:
        _of_years(time, first, "add")
    return [values.Quantity(operands.plain(total), first.unit)]


def multiply(arguments: Sequence[operands.Operand], options: operands.Options) -> list[Any]:
    """Return the product of the operands; a percentage times a quantity is a part of it."""
    product, with_unit = Fraction(1), values.Quantity(1)
    for operand in arguments:
        measure = _measured_number(operand, "multiply")
        unit_and_divisor = operands.unit_of_product(with_unit.unit, measure.unit)
        if unit_and_divisor is None:
            raise operands.Inapplicable(f"multiply: {with_unit} and {measure} both have a unit")
        unit, divisor = unit_and_divisor
        product *= values.exact(measure.number) / divisor
        if measure.unit == unit != with_unit.unit:
            with_unit = measure
    return [values.Quantity(operands.plain(product), with_unit.unit)]


def divide(arguments: Sequence[operands.Operand], options: operands.Options) -> list[Any]:
    """Return the first divided by the second; equal units cancel out."""
    a, b = (_measured_number(operand, "divide") for operand in arguments)
    if not b.number:
        raise operands.Inapplicable("division by zero has no result")
    unit = a.unit
    if b.unit != values.NO_UNIT:
        unit = f"{a.unit}/{b.unit}"
        if a.unit != values.NO_UNIT:
            with suppress(operands.Inapplicable):
                a, b, _ = operands.alike(a, b, "divide")
                unit = values.NO_UNIT
    return [values.Quantity(operands.quotient(values.exact(a.number) / values.exact(b.number)), unit)]


def remainder(arguments: Sequence[operands.Operand], options: operands.Options) -> list[Any]:
    """Return the remainder of the first after division by the second."""
    a, b = (_measured_number(operand, "%") for operand in arguments)
    if not b.number:
        raise operands.Inapplicable("division by zero has no result")
    a, b, unit = operands.alike(a, b, "%")
    return [values.Quantity(operands.plain(values.exact(a.number) % values.exact(b.number)), unit)]


def percentage(arguments: Sequence[operands.Operand], options: operands.Options) -> list[Any]:
    """Return the first as a percentage of the second."""
    a, b = (_measured_number(operand, "percentage") for operand in arguments)
    if not b.number:
        raise operands.Inapplicable("a percentage of zero has no result")
    try:
        a, b, _ = operands.alike(a, b, "percentage")
    except operands.Inapplicable as error:
        # Different units may still make sense (wins of matches), so only report it.
        arguments[0].remarks.append(str(error))
    return [values.Quantity(operands.quotient(values.exact(a.number) * 100 / values.exact(b.number)), "%")]


def absolute(arguments: Sequence[operands.Operand], options: operands.Options) -> list[Any]:
    """Return numbers without their sign."""
    return [
        values.Quantity(operands.plain(abs(values.exact(value.number))), value.unit)
        for value in watched(_each(arguments[0], "abs"))
    ]


def rounded(arguments: Sequence[operands.Operand], options: operands.Options) -> list[Any]:
    """Round numbers to a number of digits (`digits`, default 0), halves to the even neighbour."""
    digits_text = options.get("digits", "0")
    if not _DIGITS(digits_text):
        raise operands.Inapplicable(f"round: {shortened(digits_text, 40)!r} is not a number of digits")
    # No number has more digits than `MAX_DIGITS`.
    digits = max(-values.MAX_DIGITS, min(int(digits_text), values.MAX_DIGITS))
    results = []
    for measure in watched(_each(arguments[0], "round")):
        # Python rounds fractions half to even, also to tens and hundreds (negative digits).
        results.append(values.Quantity(operands.plain(Fraction(round(values.exact(measure.number), digits))), measure.unit))
    return results


_DIGITS: Final = re.compile(r"[+-]?\d{1,3}", re.ASCII).fullmatch


# -- functions ---------------------------------------------------------------------------------------
# A function takes its arguments as bags of values with their display texts, and options as texts, and
# returns values. If it cannot compute a result it raises `Inapplicable`, which becomes a warning and no
# value: the number of values is known only at run time. If a function needs a number, a text counts as
# the first number in it; that is reported, too.


_YEAR: Final = re.compile(r"(?<!\d)(1\d{3}|20\d{2})(?!\d)", re.ASCII).search


def extract(part: str) -> operands.Native:
    """Return a function that extracts the year, month or day of each value."""
    index = ("year", "month", "day").index(part)

    def run(arguments: Sequence[operands.Operand], options: operands.Options) -> list[Any]:
        results: list[Any] = []
        for value, text in watched(zip(arguments[0].values, arguments[0].texts, strict=True)):
            if (
                isinstance(value, values.Time)
                and value.start > values.OPEN_START
                and (index == 0 or value.precision >= values.Precision.YEAR + index)
            ):
                number = values.civil(value.start // values.DAY_SECONDS)[index]
                results.append(values.Time.year(number) if index == 0 else values.Quantity(number))
            elif index == 0 and isinstance(value, values.Quantity) and value.unit == values.NO_UNIT:
                results.append(value)
            elif index == 0 and (year := _YEAR(text)):
                arguments[0].remarks.append(f"extract_year: {text!r} is read as {year[0]}")
                results.append(values.Time.year(int(year[0])))
            else:
                arguments[0].remarks.append(f"extract_{part}: {text!r} has no {part}")
        return results

    return run


def extract_number(arguments: Sequence[operands.Operand], options: operands.Options) -> list[Any]:
    """Return the first number of each value."""
    results: list[Any] = []
    for value, text in watched(zip(arguments[0].values, arguments[0].texts, strict=True)):
        if isinstance(value, values.Quantity):
            results.append(values.Quantity(value.number))
        elif isinstance(value, (int, float)):
            results.append(values.Quantity(int(value)) if isinstance(value, bool) else values.Quantity(value))
        elif numbers := operands.NUMBERS(text.replace("−", "-")):
            results.append(values.Quantity(operands.number_in(numbers[0])))
        else:
            arguments[0].remarks.append(f"extract_number: {text!r} has no number")
    return results


def split(arguments: Sequence[operands.Operand], options: operands.Options) -> list[Any]:
    """Return the parts of each text between delimiters (`delimiter`, default a comma)."""
    delimiter = options.get("delimiter", ",")
    parts = (part for text in arguments[0].texts for part in (text.split(delimiter) if delimiter else [text]))
    return [collapsed for part in watched(parts) if (collapsed := values.collapse(part))]


def length(arguments: Sequence[operands.Operand], options: operands.Options) -> list[Any]:
    """Return the length of one interval, the number of characters of one text, or the number of members of a set."""
    operand = arguments[0]
    if len(operand) != 1:
        return [values.Quantity(len(set(watched(operand.texts))))]
    value = operand.values[0]
    if isinstance(value, values.Time):
        return [long_of(value, options)]
    return [values.Quantity(len(operand.texts[0]))]


def identity(arguments: Sequence[operands.Operand], options: operands.Options) -> list[Any]:
    """Return the values themselves: turns a scalar into a bag."""
    return [value for operand in arguments for value in operand.values]


#: The native functions whose names in plans are their own.
_NAMED: Final = (
    *(compare, relation, equal, is_in, difference, duration, distance, add, multiply, divide, remainder, percentage),
    *(extract_number, split, length, identity),
)
#: Every native function by its name in plans.
FUNCTIONS: Final[Mapping[str, operands.Native]] = {
    **{function.__name__: function for function in _NAMED},
    **{f"extract_{part}": extract(part) for part in ("year", "month", "day")},
    "is_empty": lambda arguments, options: [not len(arguments[0])],
    "exists": lambda arguments, options: [len(arguments[0]) > 0],
    "not": lambda arguments, options: [not truth(arguments[0])],
    "and": lambda arguments, options: [all(map(truth, arguments))],
    "or": lambda arguments, options: [any(map(truth, arguments))],
    "abs": absolute,
    "round": rounded,
}
