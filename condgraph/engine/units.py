"""Conversion between units: exact between units of time, and between metres and kilometres; otherwise with the
optional library `pint`, if it knows both.
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


#: Texts that are not passed to pint, which evaluates any expression, even `9**9**9**9`.
_NO_UNIT: Final = re.compile(r"\d\d|(?:\*\*|\^)[\s_-]*\(|\d[\s_)]*(?:\*\*|\^)").search
_MAX_LENGTH: Final = 60
#: Numbers from here on have more digits than a float factor is precise to.
_LONG: Final = 10**12


#: Units of time of fixed length, in seconds, and those of the calendar, in months: the days of a month vary.
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
    """Return a duration in seconds, minutes, hours, days or weeks in clock format; None for other units.

    >>> clock_text(Quantity(7439, "second")), clock_text(Quantity(-105.32, "second")), clock_text(Quantity(1.5, "day"))
    ('2:03:59', '-1:45.32', '36:00:00')
    """
    size = _CLOCK.get(_time_unit(quantity.unit))
    if size is None:
        return None
    total = Fraction(format_number(quantity.number)) * size
    whole, fraction = divmod(abs(total), 1)
    minutes, seconds = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    digits = format_number(as_number(fraction))[1:] if fraction else ""
    if "e" in digits:
        digits = f"{float(fraction):.9f}".rstrip("0")[1:]
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
    """Return the factor that converts numbers of `unit` to `other`; None if unknown or if the conversion is not a
    plain factor.
    """
    if any(factor == NO_UNIT or len(factor) > _MAX_LENGTH or _NO_UNIT(factor) for factor in (unit, other)):
        return None
    registry = _registry()
    if registry is None:
        return None
    try:
        left, right = registry.Unit(unit.replace(" ", "_")), registry.Unit(other.replace(" ", "_"))
        if left.dimensionality != right.dimensionality:
            return None
        zero = registry.Quantity(0, left).to(right).magnitude
        name: float = registry.Quantity(1, left).to(right).magnitude
    except Exception:  # noqa: BLE001 - pint raises its own, and others, for text that is not a unit
        return None
    return name if zero == 0 else None


def conversions(quantity: Quantity, units: Sequence[str]) -> list[Quantity]:
    """Return the quantity in each of the units that it can be converted to."""
    converted = []
    for unit in units:
        exact = _exact_factor(quantity.unit, unit)
        if exact is not None:
            converted.append(Quantity(as_number(Fraction(format_number(quantity.number)) * exact), unit))
            continue
        factor = _factor(quantity.unit, unit)
        # Conversion factors are floats; twelve digits make 188 centimetre 1.88 metre.
        if factor is None:
            continue
        if isinstance(quantity.number, Decimal) or abs(quantity.number) >= _LONG:
            # The number has more digits than the factor, which stands for an exact one such as 1/12 or 0.45359237.
            number = nearest_number(Fraction(format_number(quantity.number)) * Fraction(repr(factor)).limit_denominator(10**9))
            converted.append(Quantity(number, unit))
        elif (short := float(f"{quantity.number * factor:.12g}")) - short == 0:
            converted.append(Quantity(short, unit))
    return converted


_ALIASES: Final = {
    **dict.fromkeys(("metre", "metres", "meter", "meters"), "m"),
    **dict.fromkeys(("kilometre", "kilometres", "kilometer", "kilometers"), "km"),
    **dict.fromkeys(("mile", "miles"), "mi"),
    **dict.fromkeys(("foot", "feet"), "ft"),
    **dict.fromkeys(("kilogram", "kilograms"), "kg"),
    **dict.fromkeys(("sec", "secs", "seconds"), "second"),
    "percent": "%",
}


def fold_unit(unit: str) -> str:
    """Return one spelling for all spellings of a unit: case, a final point, the plural, and a few long forms do not
    count.

    >>> fold_unit("Miles"), fold_unit("knots"), fold_unit("kg.")
    ('mi', 'knot', 'kg')
    """
    unit = unit.casefold().rstrip(".")
    unit = _ALIASES.get(unit, unit)
    return unit[:-1] if len(unit) > 3 and unit.endswith("s") else unit
