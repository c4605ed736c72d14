"""Arithmetic of the native functions (`functions`): differences and lengths of times, sums,
products, shares and roundings of numbers with units.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from fractions import Fraction
from typing import Any, Final

from condgraph.engine.errors import shortened
from condgraph.engine.operands import (
    Inapplicable,
    Measure,
    Operand,
    Options,
    alike,
    exact,
    plain,
    quotient,
    unit_of_product,
    year_of,
)
from condgraph.engine.pieces import watched
from condgraph.engine.units import fold_unit
from condgraph.engine.values import (
    DAY_SECONDS,
    MOST_DIGITS,
    NO_UNIT,
    OPEN_START,
    UNKNOWN_END,
    Precision,
    Quantity,
    Time,
    civil,
)


def _plain_measure(operand: Operand, what: str) -> Quantity:
    return _number(operand.measure(what), operand, what)


def _number(value: Measure, operand: Operand, what: str) -> Quantity:
    """A number as it is, a time by its year."""
    if isinstance(value, Quantity):
        return value
    if value.precision is not Precision.YEAR:
        operand.remarks.append(f"{what}: the values are times and are read by their years")
    return Quantity(year_of(value))


def _of_years(value: Time, other: Quantity, what: str) -> None:
    """Raise `Inapplicable` where a time, of which only the year is a number, meets another unit:
    1999 and 5 days are no 2004 days.
    """
    if other.unit != NO_UNIT and fold_unit(other.unit) != "year":
        raise Inapplicable(f"{what}: {value} is a time, and {other} is no number of years")


def _each(operand: Operand, what: str) -> list[Quantity]:
    """Every value as a number, repeats included."""
    pairs = watched(zip(operand.values, operand.texts, strict=True), 1 << 11)
    return [_plain_measure(Operand([value], [text], operand.remarks), what) for value, text in pairs]


def difference(arguments: Sequence[Operand], options: Options) -> list[Any]:
    """How far apart two values are (`absolute` "false": the first less the second, with its sign);
    also of one bag of two.
    """
    if len(arguments) == 1:
        both = arguments[0].measures("difference")
        if len(both) == 1 and isinstance(both[0], Time) and both[0].precision is Precision.SPAN:
            return duration(arguments, options)
        if len(both) != 2:
            raise Inapplicable(f"difference takes two values, not {len(both)}")
        a, b = both
        options = {**options, "absolute": "true"}
    else:
        a, b = (operand.measure("difference") for operand in arguments)
    if isinstance(a, Time) and isinstance(b, Time):
        return [_between(a, b, options)]
    for value, other in ((a, b), (b, a)):
        if isinstance(value, Time) and isinstance(other, Quantity):
            _of_years(value, other, "difference")
    one, two = (_number(value, arguments[0], "difference") for value in (a, b))
    one, two, unit = alike(one, two, "difference")
    found = exact(one.number) - exact(two.number)
    return [Quantity(plain(found if _signed(options) else abs(found)), unit)]


def _signed(options: Options) -> bool:
    return options.get("absolute") == "false"


_UNITS: Final = {"second": 1, "minute": 60, "hour": 3600, "day": DAY_SECONDS, "week": 7 * DAY_SECONDS}


def _between(a: Time, b: Time, options: Options) -> Quantity:
    """The time between two times, with its unit: the one asked for, else years, or days where both
    are exact days.
    """
    unit = options.get("unit", "").casefold().rstrip("s")
    if _signed(options) and a.start < b.start:
        # The first less the second: from a later to an earlier time it is positive.
        found = _between(a, b, {**options, "absolute": "true"})
        return Quantity(-found.number, found.unit)
    if a.start > b.start:
        a, b = b, a
    if a.start <= OPEN_START:
        raise Inapplicable(f"the time between {a} and {b}: {a} has no start")
    if unit == "month":
        first, last = (civil(value.start // DAY_SECONDS) for value in (a, b))
        return Quantity((last[0] - first[0]) * 12 + last[1] - first[1], "month")
    if unit == "year" or (not unit and Precision.YEAR in (a.precision, b.precision)) or unit not in ("", *_UNITS):
        return Quantity(year_of(b) - year_of(a), "year")
    seconds = Fraction(b.start - a.start, _UNITS[unit or "day"])
    return Quantity(plain(seconds), unit or "day")


def duration(arguments: Sequence[Operand], options: Options) -> list[Any]:
    """The time from a start to an end; of one interval, how long it is (a year less where it is
    given in years: 1999-2003 is 4).
    """
    if len(arguments) == 2:
        a, b = (operand.measure("duration") for operand in arguments)
        if isinstance(a, Time) and isinstance(b, Time):
            return [_between(a, b, options)]
        return difference(arguments, options)
    found = arguments[0].measures("duration")
    if len(found) == 2 and not any(isinstance(value, Time) and value.precision is Precision.SPAN for value in found):
        # A start and an end; two intervals last as long as each of them does.
        return difference(arguments, options)
    return [long_of(value, options) for value in watched(found)]


def long_of(value: Measure, options: Options) -> Quantity:
    """How long an interval lasts, in the unit of the options; a length is what it is."""
    if isinstance(value, Quantity):
        return value
    if value.start <= OPEN_START or value.end >= UNKNOWN_END:
        raise Inapplicable(f"duration: {value} has an open end")
    last = Time.year(civil((value.end - 1) // DAY_SECONDS)[0])
    first = Time.year(year_of(value))
    if value.precision is Precision.SPAN and not options.get("unit") and (first.start, last.end) != (value.start, value.end):
        return Quantity(plain(Fraction(value.end - value.start, DAY_SECONDS)), "day")
    return (
        _between(first, last, options)
        if not options.get("unit")
        else _between(
            Time(value.start, value.start + 1, Precision.SECOND), Time(value.end - 1, value.end, Precision.SECOND), options
        )
    )


def add(arguments: Sequence[Operand], options: Options) -> list[Any]:
    """The sum of the operands; every number of a bag counts."""
    total, first = Fraction(0), Quantity(0)
    for place, operand in enumerate(arguments, 1):
        if not len(operand):
            operand.remarks.append(f"add: operand {place} is nothing, and adds nothing")
        for measure in watched(_each(operand, "add")):
            _, same, unit = alike(first, measure, "add")
            total += exact(same.number)
            first = first if first.unit == unit else measure
    timed = next((value for operand in arguments for value in operand.values if isinstance(value, Time)), None)
    if timed is not None:
        _of_years(timed, first, "add")
    return [Quantity(plain(total), first.unit)]


def multiply(arguments: Sequence[Operand], options: Options) -> list[Any]:
    """The product of the operands; a percentage of what has a unit is a part of it."""
    product, united = Fraction(1), Quantity(1)
    for operand in arguments:
        measure = _plain_measure(operand, "multiply")
        found = unit_of_product(united.unit, measure.unit)
        if found is None:
            raise Inapplicable(f"multiply: {united} and {measure} both have a unit")
        unit, divisor = found
        product *= exact(measure.number) / divisor
        if measure.unit == unit != united.unit:
            united = measure
    return [Quantity(plain(product), united.unit)]


def divide(arguments: Sequence[Operand], options: Options) -> list[Any]:
    """The first divided by the second; equal units cancel out."""
    a, b = (_plain_measure(operand, "divide") for operand in arguments)
    if not b.number:
        raise Inapplicable("division by zero has no result")
    unit = a.unit
    if b.unit != NO_UNIT:
        unit = f"{a.unit}/{b.unit}"
        if a.unit != NO_UNIT:
            with suppress(Inapplicable):
                a, b, _ = alike(a, b, "divide")
                unit = NO_UNIT
    return [Quantity(quotient(exact(a.number) / exact(b.number)), unit)]


def remainder(arguments: Sequence[Operand], options: Options) -> list[Any]:
    """What is left of the first after division by the second."""
    a, b = (_plain_measure(operand, "%") for operand in arguments)
    if not b.number:
        raise Inapplicable("division by zero has no result")
    a, b, unit = alike(a, b, "%")
    return [Quantity(plain(exact(a.number) % exact(b.number)), unit)]


def percentage(arguments: Sequence[Operand], options: Options) -> list[Any]:
    """The first as a percentage of the second."""
    a, b = (_plain_measure(operand, "percentage") for operand in arguments)
    if not b.number:
        raise Inapplicable("a percentage of zero has no result")
    try:
        a, b, _ = alike(a, b, "percentage")
    except Inapplicable as error:
        # Wins of matches are a percentage as well, euros of dollars are none.
        arguments[0].remarks.append(str(error))
    return [Quantity(quotient(exact(a.number) * 100 / exact(b.number)), "%")]


def absolute(arguments: Sequence[Operand], options: Options) -> list[Any]:
    """Numbers without their sign."""
    return [Quantity(plain(abs(exact(value.number))), value.unit) for value in watched(_each(arguments[0], "abs"))]


def rounded(arguments: Sequence[Operand], options: Options) -> list[Any]:
    """Numbers rounded to so many digits (`digits`, 0), halves to the even neighbour."""
    said = options.get("digits", "0")
    if not _DIGITS(said):
        raise Inapplicable(f"round: {shortened(said, 40)!r} is no number of digits")
    # No number has more digits than that.
    digits = max(-MOST_DIGITS, min(int(said), MOST_DIGITS))
    found = []
    for measure in watched(_each(arguments[0], "round")):
        # Python rounds fractions halves to even; the other way about, to tens and hundreds, as
        # well.
        found.append(Quantity(plain(Fraction(round(exact(measure.number), digits))), measure.unit))
    return found


_DIGITS: Final = re.compile(r"[+-]?\d{1,3}", re.ASCII).fullmatch
