"""Whether a value that a claim writes as text is one that the graph has: the same, another, or
neither can be said.

A time that the graph knows more exactly than the claim says it (a day of the year that is claimed)
is the same; one that it knows less exactly decides nothing. A number is the same if it is equal, in
one unit, or if it becomes the claimed one when rounded to as many places behind the point. Texts
are the same but for case and white space, and a different text is not taken for another value: it may
say the same in other words.
"""

from __future__ import annotations

from contextlib import suppress
from decimal import Decimal, InvalidOperation
from typing import Literal

from condgraph.engine.facts import Entity
from condgraph.engine.units import conversions
from condgraph.engine.values import Quantity, Time, Unknown, Value, collapse, parse_quantity

Likeness = Literal["same", "other", "open"]


def folded(text: str) -> str:
    """A text without what does not tell names apart: case, and how much white space."""
    return collapse(text).casefold()


def likeness(claimed: str, value: Entity | Value) -> Likeness:
    """Whether `claimed` says `value`."""
    if isinstance(value, Entity):
        return "same" if folded(claimed) == folded(value.name) else "open"
    if isinstance(value, Unknown):
        return "open"
    if isinstance(value, Time):
        return _time(claimed, value)
    if isinstance(value, Quantity):
        return _quantity(claimed, value)
    return "same" if folded(claimed) == folded(str(value)) else "open"


def _time(claimed: str, value: Time) -> Likeness:
    try:
        said = Time.parse(collapse(claimed))
    except ValueError:
        return "open"
    if said.start <= value.start and value.end <= said.end:
        return "same"
    return "other" if value.end <= said.start or said.end <= value.start else "open"


def _quantity(claimed: str, value: Quantity) -> Likeness:
    try:
        said = parse_quantity(collapse(claimed))
    except ValueError:
        return "open"
    if said.unit != value.unit:
        converted = conversions(value, [said.unit])
        if not converted:
            return "open"
        value = converted[0]
    with suppress(InvalidOperation, ValueError, OverflowError):
        one, two = Decimal(str(said.number)), Decimal(str(value.number))
        exponent = one.as_tuple().exponent
        if one == two or (isinstance(exponent, int) and exponent <= 0 and two.quantize(Decimal(1).scaleb(exponent)) == one):
            return "same"
        return "other"
    return "open"
