"""Literals of programs as typed values, from the text and the schema.

Where a function says the type, the literal is read as that type or is a `LiteralError`. Where it
does not, the types that the schema has seen on the key decide, and a literal with several readings
becomes a test with all of them (values of different types never compare, so the readings do not get
in each other's way).
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Final

from condgraph.engine.algebra import Compare, Condition, Operator, any_of
from condgraph.engine.errors import LiteralError
from condgraph.engine.forms import FORMS
from condgraph.engine.reading.words import words
from condgraph.engine.schema import Kinds
from condgraph.engine.units import conversions
from condgraph.engine.values import Kind, Quantity, Time, collapse, format_number, parse_quantity

Span = tuple[int, int] | None


def read_time(text: str, span: Span = None) -> Time:
    """A year, month, day or second, or an interval of them."""
    try:
        return Time.parse(text)
    except ValueError as error:
        raise LiteralError(f"{text!r} is no time: {error}", span=span, hint="a year is 1960, a day 1960-02-01") from None


def read_quantity(text: str, span: Span = None) -> Quantity:
    """A number with its unit, if it has one."""
    try:
        found = parse_quantity(text)
    except ValueError as error:
        raise LiteralError(str(error), span=span, hint="a quantity is 42, or 188 centimetre") from None
    if _THOUSANDS(found.unit):
        why = f"{text!r} would be {format_number(found.number)} in the unit {found.unit!r}"
        raise LiteralError(why, span=span, hint="digits are written together, as in 1000 metre")
    return found


#: What stands in the place of a unit where digits are written in groups: 1 000 is no 1 in a unit 000.
_THOUSANDS: Final = re.compile(r"\d{3}(?:[\s.,'].*)?", re.ASCII).fullmatch


def quantity_test(operator: Operator, quantity: Quantity, kinds: Kinds) -> Condition:
    """Compare with a quantity, and where a unit library knows how, with the same in the other units
    of the key.
    """
    units = [unit for kind, unit in kinds if kind is Kind.QUANTITY and unit != quantity.unit]
    converted = conversions(quantity, units) if units else []
    return any_of([Compare(operator, one) for one in (quantity, *converted)])


def formed_literal(text: str, kinds: Kinds) -> str | None:
    """A literal as a value of a form that a key has (`POINT(13.40 52.5)` of points); None where it is none."""
    read = (FORMS[unit].read(collapse(text)) for kind, unit in kinds if kind is Kind.TEXT and unit in FORMS)
    return next((value for value in read if value is not None), None)


def readings(operator: Operator, text: str, kinds: Kinds, span: Span = None) -> Condition:
    """A test for a literal whose type is not said: one reading for each type that the key has and
    the text can be.
    """
    tests: list[Condition] = []
    # A value that is not known compares with nothing, whatever the literal is read as.
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
        wanted = " or ".join(sorted(kind.name.lower() for kind in present))
        raise LiteralError(f"{text!r} cannot be read as {wanted}, the type of the values it is compared with", span=span)
    return any_of(tests)


_TIME_FUNCTIONS: Final = words(
    """
    hour hours minute minutes second seconds weekday weekdays dayofweek dayname dow isodow week weeks weekofyear quarter date time
    timestamp datediff datesub dateadd timediff timestampdiff duration durations age interval datepart datetrunc extract epoch
    now today julianday strftime extracthour gethour extractweekday getweekday dayofyear
    """
)


def is_time_function(name: str) -> bool:
    """Whether a function that is not known is one of times in other languages: `hour`, `DATE_DIFF`."""
    return name.casefold().replace("_", "") in _TIME_FUNCTIONS
