"""Typed values for the literals of programs.

Where the function of a program fixes the type, the literal must have it, or `LiteralError` is
raised. Elsewhere the types that the schema has for the key decide. A literal with several readings
becomes a test that accepts any of them; values of different types never compare, so the readings
do not interfere.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Final

from condgraph.engine.algebra import Compare, Condition, Operator, any_of
from condgraph.engine.errors import LiteralError
from condgraph.engine.reading.words import words
from condgraph.engine.schema import Kinds
from condgraph.engine.units import conversions
from condgraph.engine.values import FORMS, Kind, Quantity, Time, collapse, format_number, parse_quantity

Span = tuple[int, int] | None


def read_time(text: str, span: Span = None) -> Time:
    """Parse a year, month, day or second, or an interval of them."""
    try:
        return Time.parse(text)
    except ValueError as error:
        raise LiteralError(f"{text!r} is not a time: {error}", span=span, hint="a year is 1960, a day 1960-02-01") from None


def read_quantity(text: str, span: Span = None) -> Quantity:
    """Parse a number with an optional unit."""
    try:
        quantity = parse_quantity(text)
    except ValueError as error:
        raise LiteralError(str(error), span=span, hint="a quantity is 42, or 188 centimetre") from None
    if _THOUSANDS(quantity.unit):
        why = f"{text!r} would be {format_number(quantity.number)} in the unit {quantity.unit!r}"
        raise LiteralError(why, span=span, hint="digits are written together, as in 1000 metre")
    return quantity


#: A "unit" that is really a group of digits: 1 000 is not the number 1 with the unit 000.
_THOUSANDS: Final = re.compile(r"\d{3}(?:[\s.,'].*)?", re.ASCII).fullmatch


def quantity_test(operator: Operator, quantity: Quantity, kinds: Kinds) -> Condition:
    """Return a test against a quantity, and against its conversions to the other units of the key.

    Units are converted where a unit library knows them.
    """
    units = [unit for kind, unit in kinds if kind is Kind.QUANTITY and unit != quantity.unit]
    converted = conversions(quantity, units) if units else []
    return any_of([Compare(operator, value) for value in (quantity, *converted)])


def formed_literal(text: str, kinds: Kinds) -> str | None:
    """Return a literal as a value of one of the key's forms (`POINT(13.40 52.5)` for points), or None."""
    read = (FORMS[unit].read(collapse(text)) for kind, unit in kinds if kind is Kind.TEXT and unit in FORMS)
    return next((value for value in read if value is not None), None)


def readings(operator: Operator, text: str, kinds: Kinds, span: Span = None) -> Condition:
    """Return a test for a literal of unknown type: one reading for each type that the key has and the text fits.

    Raises `LiteralError` if the text fits none of the key's types.
    """
    tests: list[Condition] = []
    # An unknown value is equal to no literal of any type.
    present = {kind for kind, _ in kinds if kind is not Kind.UNKNOWN}
    if Kind.TIME in present:
        with suppress(ValueError):
            tests.append(Compare(operator, Time.parse(text)))
    if Kind.QUANTITY in present:
        with suppress(ValueError):
            tests.append(quantity_test(operator, parse_quantity(text), kinds))
    if not present or present & {Kind.TEXT, Kind.ENTITY}:
        tests.append(Compare(operator, formed_literal(text, kinds) or collapse(text)))
    if not tests:
        types = " or ".join(sorted(kind.name.lower() for kind in present))
        raise LiteralError(f"{text!r} cannot be read as {types}, the type of the values it is compared with", span=span)
    return any_of(tests)


_TIME_FUNCTIONS: Final = words(
    """
    hour hours minute minutes second seconds weekday weekdays dayofweek dayname dow isodow week weeks weekofyear quarter date time
    timestamp datediff datesub dateadd timediff timestampdiff duration durations age interval datepart datetrunc extract epoch
    now today julianday strftime extracthour gethour extractweekday getweekday dayofyear
    """
)


def is_time_function(name: str) -> bool:
    """Whether an unknown function is a date or time function of another language, such as `DATE_DIFF`."""
    return name.casefold().replace("_", "") in _TIME_FUNCTIONS
