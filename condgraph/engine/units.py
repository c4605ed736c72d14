"""Conversion between units: exactly between units of time, and between metres and kilometres; between others where the
optional library `pint` knows both.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

from condgraph.engine.values import NO_UNIT, Quantity, as_number, format_number, nearest_number


@lru_cache(maxsize=1)
def _registry() -> Any:
    try:
        import pint
    except ImportError:
        return None
    return pint.UnitRegistry()


#: What the library is not asked about: it works out whatever stands there, `9**9**9**9` as well.
_NO_UNIT: Final = re.compile(r"\d\d|(?:\*\*|\^)[\s_-]*\(|\d[\s_)]*(?:\*\*|\^)").search
_LONGEST: Final = 60
#: Numbers from here on have more digits than a factor that is a float is good for.
_LONG: Final = 10**12


#: Units of time that are always as long, in seconds, and those of the calendar, in months: a month is no number of days.
_CLOCK: Final = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}
_CALENDAR: Final = {"month": 1, "year": 12}
#: Units of distances, in metres.
_LENGTH: Final = {"m": 1, "km": 1000}
_SHORT: Final = {"s": "second", "sec": "second", "min": "minute", "h": "hour", "hr": "hour"}


def _time_unit(unit: str) -> str:
    folded = unit.casefold().rstrip(".")
    short = _SHORT.get(folded) or _SHORT.get(folded.removesuffix("s"))
    return short or folded.removesuffix("s")


def clock_text(quantity: Quantity) -> str | None:
    """A duration in seconds, minutes, hours, days or weeks as a clock shows it; None for other units.

    >>> clock_text(Quantity(7439, "second")), clock_text(Quantity(-105.32, "second")), clock_text(Quantity(1.5, "day"))
    ('2:03:59', '-1:45.32', '36:00:00')
    """
    size = _CLOCK.get(_time_unit(quantity.unit))
    if size is None:
        return None
    total = Fraction(format_number(quantity.number)) * size
    whole, part = divmod(abs(total), 1)
    minutes, seconds = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    digits = format_number(as_number(part))[1:] if part else ""
    if "e" in digits:
        digits = f"{float(part):.9f}".rstrip("0")[1:]
    clock = f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"
    return f"{'-' if total < 0 else ''}{clock}{digits}"


def _exact_factor(unit: str, other: str) -> Fraction | None:
    if (left := fold_unit(unit)) in _LENGTH and (right := fold_unit(other)) in _LENGTH:
        return Fraction(_LENGTH[left], _LENGTH[right])
    left, right = _time_unit(unit), _time_unit(other)
    for units in (_CLOCK, _CALENDAR):
        if left in units and right in units:
            return Fraction(units[left], units[right])
    return None


@lru_cache(maxsize=4096)
def _factor(unit: str, other: str) -> float | None:
    """What a number of `unit` is multiplied with to be one of `other`; None where that is not
    known, or no plain factor.
    """
    if any(one == NO_UNIT or len(one) > _LONGEST or _NO_UNIT(one) for one in (unit, other)):
        return None
    registry = _registry()
    if registry is None:
        return None
    try:
        left, right = registry.Unit(unit.replace(" ", "_")), registry.Unit(other.replace(" ", "_"))
        if left.dimensionality != right.dimensionality:
            return None
        zero = registry.Quantity(0, left).to(right).magnitude
        one: float = registry.Quantity(1, left).to(right).magnitude
    except Exception:  # noqa: BLE001 - pint raises its own, and others, for text that is no unit
        return None
    return one if zero == 0 else None


def conversions(quantity: Quantity, units: Sequence[str]) -> list[Quantity]:
    """The same quantity in each of the other units that can be converted to."""
    found = []
    for unit in units:
        exact = _exact_factor(quantity.unit, unit)
        if exact is not None:
            found.append(Quantity(as_number(Fraction(format_number(quantity.number)) * exact), unit))
            continue
        factor = _factor(quantity.unit, unit)
        # Twelve digits: conversion factors are floats, and 188 centimetre should be 1.88 metre.
        if factor is None:
            continue
        if isinstance(quantity.number, Decimal) or abs(quantity.number) >= _LONG:
            # More digits than the factor has: 1/12 and 0.45359237 are what it means.
            number = nearest_number(Fraction(format_number(quantity.number)) * Fraction(repr(factor)).limit_denominator(10**9))
            found.append(Quantity(number, unit))
        elif (short := float(f"{quantity.number * factor:.12g}")) - short == 0:
            found.append(Quantity(short, unit))
    return found


_SAME: Final = {
    **dict.fromkeys(("metre", "metres", "meter", "meters"), "m"),
    **dict.fromkeys(("kilometre", "kilometres", "kilometer", "kilometers"), "km"),
    **dict.fromkeys(("mile", "miles"), "mi"),
    **dict.fromkeys(("foot", "feet"), "ft"),
    **dict.fromkeys(("kilogram", "kilograms"), "kg"),
    **dict.fromkeys(("sec", "secs", "seconds"), "second"),
    "percent": "%",
}


def fold_unit(unit: str) -> str:
    """Spellings of one unit as one word: case, a final point and the plural do not count, nor do a
    few long forms.

    >>> fold_unit("Miles"), fold_unit("knots"), fold_unit("kg.")
    ('mi', 'knot', 'kg')
    """
    unit = unit.casefold().rstrip(".")
    unit = _SAME.get(unit, unit)
    return unit[:-1] if len(unit) > 3 and unit.endswith("s") else unit
