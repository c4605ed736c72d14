"""Native functions that `Apply` runs, as a table: comparison, arithmetic, texts, times and choices."""

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
# Native functions that compare, and what holds: the truth of an operand.


#: Comparisons of two values, or of an array with one.
OPERATORS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "=": operator_module.eq, "!=": operator_module.ne, "<": operator_module.lt, ">": operator_module.gt, "<=": operator_module.le,
    ">=": operator_module.ge,
}  # fmt: skip


def time_mask(operator: str, literal: values.Time, start: Any, end: Any) -> Any:
    """Whether times, or arrays of starts and ends, compare so with one: `=` lies within, `!=` is disjoint, `<` ends before,
    `>` begins after.
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
    """Whether two values compare so: numbers of one unit, times by their intervals, texts by their
    letters without case.
    """
    a, b = operands.measure_of(left), operands.measure_of(right)
    if isinstance(a, values.Time) and isinstance(b, values.Quantity):
        a = values.Quantity(operands.year_of(a))
    if isinstance(b, values.Time) and isinstance(a, values.Quantity):
        b = values.Quantity(operands.year_of(b))
    if isinstance(a, values.Time) and isinstance(b, values.Time):
        return _times(a, b, operator)
    if isinstance(a, values.Quantity) and isinstance(b, values.Quantity):
        a, b, _ = operands.alike(a, b, what)
        return bool(OPERATORS[operator](operands.exact(a.number), operands.exact(b.number)))
    one, two = (values.collapse(shown(value)).casefold() for value in (left, right))
    return bool(OPERATORS[operator](one, two))


def _times(a: values.Time, b: values.Time, operator: str) -> bool:
    if operator in ("=", "!="):
        return bool(time_mask(operator, b, a.start, a.end))
    # Which of two is earlier has an answer for times that overlap as well: by start, then by end.
    return bool(OPERATORS[operator]((a.start, a.end), (b.start, b.end)))


def _best(operand: operands.Operand, operator: str, what: str) -> operands.Operand:
    """The value that competes where a side has several: the largest for `>`, the smallest for `<`."""
    if len(set(watched(operand.texts))) < 2 or operator in ("=", "!="):
        return operand
    pairs = dict(watched(zip(operand.texts, operand.values, strict=True)))
    best: operands.Operand | None = None
    for text, value in watched(pairs.items(), _FEW):
        one = operands.Operand([value], [text], operand.remarks)
        if best is None or compared(*_sides([one, best], what), ">" if operator in (">", ">=") else "<", what):
            best = one
    assert best is not None
    operand.remarks.append(f"{what}: of {len(pairs)} values {best.texts[0]!r} competes")
    return best


def _sides(arguments: Sequence[operands.Operand], what: str) -> tuple[Any, Any]:
    """Two values to compare: as they are, or as the numbers in their texts where only that makes
    them comparable.
    """
    left, right = arguments[0].one(what), arguments[1].one(what)
    numeric = [operands.measure_of(value) is not None for value in (left, right)]
    texts = arguments[0].texts[0], arguments[1].texts[0]
    if all(numeric) or (not any(numeric) and not all(map(operands.DIGITS, texts))):
        return left, right
    return arguments[0].measure(what), arguments[1].measure(what)


def compare(arguments: Sequence[operands.Operand], options: operands.Options) -> list[Any]:
    """The winner of two (`mode` "winner": the third or fourth argument, which name them), a truth
    value, or one of two words.
    """
    operator = options.get("operator", ">")
    left, right = _sides([_best(one, operator, "compare") for one in arguments[:2]], "compare")
    mode = options.get("mode", "winner")
    if mode == "truth":
        return [compared(left, right, operator, "compare")]
    if mode == "words":
        more, less = options["words"].split("/")
        if compared(left, right, "=", "compare") and compared(right, left, "=", "compare"):
            return ["equal"]
        return [more if compared(left, right, operator, "compare") else less]
    if operator in ("=", "!="):
        return [compared(left, right, operator, "compare")]
    wins = compared(left, right, operator, "compare")
    if not wins and not compared(right, left, operator, "compare"):
        return [*arguments[2].values, *arguments[3].values]
    return list(arguments[2 if wins else 3].values)


#: Pairs of values that are compared one by one, at most.
MOST_PAIRS: Final = 250_000
#: Comparisons between two looks at the clock.
_FEW: Final = 1 << 10


def _check_size(arguments: Sequence[operands.Operand], what: str) -> None:
    """Refuse to compare every value of one large set with every value of another."""
    if len(arguments[0]) * len(arguments[1]) > MOST_PAIRS:
        sizes = f"{len(arguments[0])} values with {len(arguments[1])}"
        raise operands.Inapplicable(f"{what} would compare {sizes} one by one; max, min, count or set_intersection of them do not")


def relation(arguments: Sequence[operands.Operand], options: operands.Options) -> list[Any]:
    """Whether any value of the first compares so with any of the second."""
    operator = options["operator"]
    for operand, side in zip(arguments, ("left", "right"), strict=True):
        if not len(operand):
            operand.remarks.append(f"{operator}: there is nothing on the {side}, which compares with nothing")
    if operator == "!=":
        return [not _any(arguments, "=")]
    return [_any(arguments, operator)]


def _any(arguments: Sequence[operands.Operand], operator: str) -> bool:
    if operator == "=" and not set(watched(arguments[0].texts)).isdisjoint(arguments[1].texts):
        return True
    _check_size(arguments, operator)
    for left, text in zip(arguments[0].values, arguments[0].texts, strict=True):
        for right, other in watched(zip(arguments[1].values, arguments[1].texts, strict=True), _FEW):
            pair = [
                operands.Operand([left], [text], arguments[0].remarks),
                operands.Operand([right], [other], arguments[1].remarks),
            ]
            one, two = _sides(pair, operator) if operator != "=" else (left, right)
            if compared(one, two, operator, operator):
                if operator == "=":
                    _note_case(left, right, arguments[0], "=")
                return True
    return False


def _note_case(left: Any, right: Any, operand: operands.Operand, what: str) -> bool:
    """Say where two texts are the same but for case; always true."""
    one, two = shown(left), shown(right)
    if operands.measure_of(left) is None and operands.measure_of(right) is None and values.collapse(one) != values.collapse(two):
        operand.remarks.append(f"{what}: {one!r} and {two!r} are the same but for case or white space")
    return True


def equal(arguments: Sequence[operands.Operand], options: operands.Options) -> list[Any]:
    """Whether two sets have the same members."""
    left, right = arguments
    if set(watched(left.texts)) == set(watched(right.texts)):
        return [True]
    _check_size(arguments, "equal")
    return [_subset(left, right) and _subset(right, left)]


def is_in(arguments: Sequence[operands.Operand], options: operands.Options) -> list[Any]:
    """Whether all members of one set are in the other, or the text of one in a text of the other."""
    left, right = arguments
    if not len(left) or not len(right):
        return [False]
    ours, theirs = set(watched(left.texts)), set(watched(right.texts))
    check()
    if ours <= theirs or theirs <= ours:
        return [True]
    _check_size(arguments, "is_in")
    return [_subset(left, right) or _subset(right, left) or _within(left, right) or _within(right, left)]


def _subset(left: operands.Operand, right: operands.Operand) -> bool:
    exactly = set(right.texts)
    return all(
        text in exactly or any(compared(a, b, "=", "=") and _note_case(a, b, left, "=") for b in watched(right.values, _FEW))
        for a, text in zip(left.values, left.texts, strict=True)
    )


def _within(left: operands.Operand, right: operands.Operand) -> bool:
    return all(any(one.casefold() in other.casefold() for other in watched(right.texts, _FEW)) for one in left.texts)


def truth(operand: operands.Operand) -> bool:
    """A truth value as it is; anything else holds where there is something that is neither 0 nor a
    word for no.
    """
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
# Arithmetic of the native functions (`functions`): differences and lengths of times, sums,
# products, shares and roundings of numbers with units.


def _plain_measure(operand: operands.Operand, what: str) -> values.Quantity:
    return _number(operand.measure(what), operand, what)


def _number(value: operands.Measure, operand: operands.Operand, what: str) -> values.Quantity:
    """A number as it is, a time by its year."""
    if isinstance(value, values.Quantity):
        return value
    if value.precision is not values.Precision.YEAR:
        operand.remarks.append(f"{what}: the values are times and are read by their years")
    return values.Quantity(operands.year_of(value))


def _of_years(value: values.Time, other: values.Quantity, what: str) -> None:
    """Raise `Inapplicable` where a time, of which only the year is a number, meets another unit:
    1999 and 5 days are no 2004 days.
    """
    if other.unit != values.NO_UNIT and fold_unit(other.unit) != "year":
        raise operands.Inapplicable(f"{what}: {value} is a time, and {other} is no number of years")


def _each(operand: operands.Operand, what: str) -> list[values.Quantity]:
    """Every value as a number, repeats included."""
    pairs = watched(zip(operand.values, operand.texts, strict=True), 1 << 11)
    return [_plain_measure(operands.Operand([value], [text], operand.remarks), what) for value, text in pairs]


def difference(arguments: Sequence[operands.Operand], options: operands.Options) -> list[Any]:
    """How far apart two values are (`absolute` "false": the first less the second, with its sign);
    also of one bag of two.
    """
    if len(arguments) == 1:
        both = arguments[0].measures("difference")
        if len(both) == 1 and isinstance(both[0], values.Time) and both[0].precision is values.Precision.SPAN:
            return duration(arguments, options)
        if len(both) != 2:
            raise operands.Inapplicable(f"difference takes two values, not {len(both)}")
        a, b = both
        options = {**options, "absolute": "true"}
    else:
        a, b = (operand.measure("difference") for operand in arguments)
    if isinstance(a, values.Time) and isinstance(b, values.Time):
        return [time_between(a, b, options)]
    for value, other in ((a, b), (b, a)):
        if isinstance(value, values.Time) and isinstance(other, values.Quantity):
            _of_years(value, other, "difference")
    one, two = (_number(value, arguments[0], "difference") for value in (a, b))
    one, two, unit = operands.alike(one, two, "difference")
    found = operands.exact(one.number) - operands.exact(two.number)
    return [values.Quantity(operands.plain(found if _signed(options) else abs(found)), unit)]


def _signed(options: operands.Options) -> bool:
    return options.get("absolute") == "false"


_UNITS: Final = {"second": 1, "minute": 60, "hour": 3600, "day": values.DAY_SECONDS, "week": 7 * values.DAY_SECONDS}


def time_between(a: values.Time, b: values.Time, options: operands.Options) -> values.Quantity:
    """The time between two times, with its unit: the one asked for, else years, or days where both
    are exact days.
    """
    unit = options.get("unit", "").casefold().rstrip("s")
    if _signed(options) and a.start < b.start:
        # The first less the second: from a later to an earlier time it is positive.
        found = time_between(a, b, {**options, "absolute": "true"})
        return values.Quantity(-found.number, found.unit)
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
    """The time from a start to an end; of one interval, how long it is (a year less where it is
    given in years: 1999-2003 is 4).
    """
    if len(arguments) == 2:
        a, b = (operand.measure("duration") for operand in arguments)
        if isinstance(a, values.Time) and isinstance(b, values.Time):
            return [time_between(a, b, options)]
        return difference(arguments, options)
    found = arguments[0].measures("duration")
    if len(found) == 2 and not any(isinstance(value, values.Time) and value.precision is values.Precision.SPAN for value in found):
        # A start and an end; two intervals last as long as each of them does.
        return difference(arguments, options)
    return [long_of(value, options) for value in watched(found)]


def long_of(value: operands.Measure, options: operands.Options) -> values.Quantity:
    """How long an interval lasts, in the unit of the options; a length is what it is."""
    if isinstance(value, values.Quantity):
        return value
    if value.start <= values.OPEN_START or value.end >= values.UNKNOWN_END:
        raise operands.Inapplicable(f"duration: {value} has an open end")
    last = values.Time.year(values.civil((value.end - 1) // values.DAY_SECONDS)[0])
    first = values.Time.year(operands.year_of(value))
    if value.precision is values.Precision.SPAN and not options.get("unit") and (first.start, last.end) != (value.start, value.end):
        return values.Quantity(operands.plain(Fraction(value.end - value.start, values.DAY_SECONDS)), "day")
    return (
        time_between(first, last, options)
        if not options.get("unit")
        else time_between(
            values.Time(value.start, value.start + 1, values.Precision.SECOND),
            values.Time(value.end - 1, value.end, values.Precision.SECOND),
            options,
        )
    )


def distance(arguments: Sequence[operands.Operand], options: operands.Options) -> list[Any]:
    """Metres between two points, or the same in the unit of the options."""
    points = [_point(operand) for operand in arguments]
    found = values.Quantity(operands.plain(operands.exact(points[0].distance(points[1]))), "metre")
    unit = options.get("unit", "")
    if not unit or fold_unit(unit) == fold_unit(found.unit):
        return [found]
    converted: list[Any] = list(conversions(found, [unit]))
    if not converted:
        raise operands.Inapplicable(f"distance: metres are not converted into {shortened(unit, 40)!r}")
    return converted


def _point(operand: operands.Operand) -> Point:
    value = operand.one("distance")
    found = value if isinstance(value, Point) else read_point(operand.texts[0])
    if found is None:
        raise operands.Inapplicable(f"distance: {shortened(operand.texts[0], 60)!r} is no point")
    return found


def add(arguments: Sequence[operands.Operand], options: operands.Options) -> list[Any]:
    """The sum of the operands; every number of a bag counts."""
    total, first = Fraction(0), values.Quantity(0)
    for place, operand in enumerate(arguments, 1):
        if not len(operand):
            operand.remarks.append(f"add: operand {place} is nothing, and adds nothing")
        for measure in watched(_each(operand, "add")):
            _, same, unit = operands.alike(first, measure, "add")
            total += operands.exact(same.number)
            first = first if first.unit == unit else measure
    timed = next((value for operand in arguments for value in operand.values if isinstance(value, values.Time)), None)
    if timed is not None:
        _of_years(timed, first, "add")
    return [values.Quantity(operands.plain(total), first.unit)]


def multiply(arguments: Sequence[operands.Operand], options: operands.Options) -> list[Any]:
    """The product of the operands; a percentage of what has a unit is a part of it."""
    product, united = Fraction(1), values.Quantity(1)
    for operand in arguments:
        measure = _plain_measure(operand, "multiply")
        found = operands.unit_of_product(united.unit, measure.unit)
        if found is None:
            raise operands.Inapplicable(f"multiply: {united} and {measure} both have a unit")
        unit, divisor = found
        product *= operands.exact(measure.number) / divisor
        if measure.unit == unit != united.unit:
            united = measure
    return [values.Quantity(operands.plain(product), united.unit)]


def divide(arguments: Sequence[operands.Operand], options: operands.Options) -> list[Any]:
    """The first divided by the second; equal units cancel out."""
    a, b = (_plain_measure(operand, "divide") for operand in arguments)
    if not b.number:
        raise operands.Inapplicable("division by zero has no result")
    unit = a.unit
    if b.unit != values.NO_UNIT:
        unit = f"{a.unit}/{b.unit}"
        if a.unit != values.NO_UNIT:
            with suppress(operands.Inapplicable):
                a, b, _ = operands.alike(a, b, "divide")
                unit = values.NO_UNIT
    return [values.Quantity(operands.quotient(operands.exact(a.number) / operands.exact(b.number)), unit)]


def remainder(arguments: Sequence[operands.Operand], options: operands.Options) -> list[Any]:
    """What is left of the first after division by the second."""
    a, b = (_plain_measure(operand, "%") for operand in arguments)
    if not b.number:
        raise operands.Inapplicable("division by zero has no result")
    a, b, unit = operands.alike(a, b, "%")
    return [values.Quantity(operands.plain(operands.exact(a.number) % operands.exact(b.number)), unit)]


def percentage(arguments: Sequence[operands.Operand], options: operands.Options) -> list[Any]:
    """The first as a percentage of the second."""
    a, b = (_plain_measure(operand, "percentage") for operand in arguments)
    if not b.number:
        raise operands.Inapplicable("a percentage of zero has no result")
    try:
        a, b, _ = operands.alike(a, b, "percentage")
    except operands.Inapplicable as error:
        # Wins of matches are a percentage as well, euros of dollars are none.
        arguments[0].remarks.append(str(error))
    return [values.Quantity(operands.quotient(operands.exact(a.number) * 100 / operands.exact(b.number)), "%")]


def absolute(arguments: Sequence[operands.Operand], options: operands.Options) -> list[Any]:
    """Numbers without their sign."""
    return [
        values.Quantity(operands.plain(abs(operands.exact(value.number))), value.unit)
        for value in watched(_each(arguments[0], "abs"))
    ]


def rounded(arguments: Sequence[operands.Operand], options: operands.Options) -> list[Any]:
    """Numbers rounded to so many digits (`digits`, 0), halves to the even neighbour."""
    said = options.get("digits", "0")
    if not _DIGITS(said):
        raise operands.Inapplicable(f"round: {shortened(said, 40)!r} is no number of digits")
    # No number has more digits than that.
    digits = max(-values.MOST_DIGITS, min(int(said), values.MOST_DIGITS))
    found = []
    for measure in watched(_each(arguments[0], "round")):
        # Python rounds fractions halves to even; the other way about, to tens and hundreds, as
        # well.
        found.append(values.Quantity(operands.plain(Fraction(round(operands.exact(measure.number), digits))), measure.unit))
    return found


_DIGITS: Final = re.compile(r"[+-]?\d{1,3}", re.ASCII).fullmatch


# -- functions ---------------------------------------------------------------------------------------
# A function takes its arguments as bags of values with the texts a user sees, and options as texts,
# and gives values. What it cannot compute it says by `Inapplicable`, which becomes a warning and no
# value: whether three numbers arrive where two are needed is known only when they do. A cell of text
# gives the first number in it where a function needs one; that is reported, too.


_YEAR: Final = re.compile(r"(?<!\d)(1\d{3}|20\d{2})(?!\d)", re.ASCII).search


def extract(part: str) -> operands.Native:
    """A function that gives the year, month or day of each value."""
    at = ("year", "month", "day").index(part)

    def run(arguments: Sequence[operands.Operand], options: operands.Options) -> list[Any]:
        found: list[Any] = []
        for value, text in watched(zip(arguments[0].values, arguments[0].texts, strict=True)):
            if (
                isinstance(value, values.Time)
                and value.start > values.OPEN_START
                and (at == 0 or value.precision >= values.Precision.YEAR + at)
            ):
                number = values.civil(value.start // values.DAY_SECONDS)[at]
                found.append(values.Time.year(number) if at == 0 else values.Quantity(number))
            elif at == 0 and isinstance(value, values.Quantity) and value.unit == values.NO_UNIT:
                found.append(value)
            elif at == 0 and (year := _YEAR(text)):
                arguments[0].remarks.append(f"extract_year: {text!r} is read as {year[0]}")
                found.append(values.Time.year(int(year[0])))
            else:
                arguments[0].remarks.append(f"extract_{part}: {text!r} has no {part}")
        return found

    return run


def extract_number(arguments: Sequence[operands.Operand], options: operands.Options) -> list[Any]:
    """The first number of each value."""
    found: list[Any] = []
    for value, text in watched(zip(arguments[0].values, arguments[0].texts, strict=True)):
        if isinstance(value, values.Quantity):
            found.append(values.Quantity(value.number))
        elif isinstance(value, (int, float)):
            found.append(values.Quantity(int(value)) if isinstance(value, bool) else values.Quantity(value))
        elif numbers := operands.NUMBERS(text.replace("−", "-")):
            found.append(values.Quantity(operands.number_in(numbers[0])))
        else:
            arguments[0].remarks.append(f"extract_number: {text!r} has no number")
    return found


def split(arguments: Sequence[operands.Operand], options: operands.Options) -> list[Any]:
    """The parts of each text between delimiters (`delimiter`, a comma)."""
    mark = options.get("delimiter", ",")
    every = (part for text in arguments[0].texts for part in (text.split(mark) if mark else [text]))
    return [found for part in watched(every) if (found := values.collapse(part))]


def length(arguments: Sequence[operands.Operand], options: operands.Options) -> list[Any]:
    """How long one interval lasts, how many characters one text has, or how many members a set has."""
    operand = arguments[0]
    if len(operand) != 1:
        return [values.Quantity(len(set(watched(operand.texts))))]
    value = operand.values[0]
    if isinstance(value, values.Time):
        return [long_of(value, options)]
    return [values.Quantity(len(operand.texts[0]))]


def identity(arguments: Sequence[operands.Operand], options: operands.Options) -> list[Any]:
    """The values themselves: a scalar where a bag is wanted."""
    return [value for operand in arguments for value in operand.values]


#: Every native function by the name a plan has.
FUNCTIONS: Final[Mapping[str, operands.Native]] = {
    "compare": compare,
    "relation": relation,
    "equal": equal,
    "is_in": is_in,
    "is_empty": lambda arguments, options: [not len(arguments[0])],
    "exists": lambda arguments, options: [len(arguments[0]) > 0],
    "not": lambda arguments, options: [not truth(arguments[0])],
    "and": lambda arguments, options: [all(map(truth, arguments))],
    "or": lambda arguments, options: [any(map(truth, arguments))],
    "difference": difference,
    "duration": duration,
    "distance": distance,
    "add": add,
    "multiply": multiply,
    "divide": divide,
    "remainder": remainder,
    "percentage": percentage,
    "abs": absolute,
    "round": rounded,
    "extract_year": extract("year"),
    "extract_month": extract("month"),
    "extract_day": extract("day"),
    "extract_number": extract_number,
    "split": split,
    "length": length,
    "identity": identity,
}
