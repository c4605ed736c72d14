"""Conversion between units, where the optional library `pint` knows both; without it only equal
units compare.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

from condgraph.engine.values import NO_UNIT, Quantity, format_number, nearest_number


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
