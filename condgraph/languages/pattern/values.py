"""Values in patterns: a node that is a number or a time, or a range of them.

    1930   "= 1930"   "> 1990"   ">= 1990-05"   "< 4000 metre"

Such a node is a condition on what it is joined to: typed, so that it holds or does not, and adds
nothing to the distance. A whole number may be a year as well; a number without a unit compares with
numbers of any unit. A time is equal to what lies within it (1990-05-03 is in 1990), before a range
where it ends before, after it where it begins after.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, Literal, TypeAlias

from condgraph.engine.functions import OPERATORS, time_mask
from condgraph.engine.operands import exact
from condgraph.engine.units import conversions
from condgraph.engine.values import NO_UNIT, Quantity, Time, format_number, parse_quantity

Operator: TypeAlias = Literal["=", "<", "<=", ">", ">="]
_CONDITION: Final = re.compile(r"(==?|<=?|>=?|≤|≥)\s*([^\s=<>].{0,200})", re.DOTALL)
_NAMES: Final[dict[str, Operator]] = {"==": "=", "≤": "<=", "≥": ">="}


@dataclass(frozen=True, slots=True)
class Condition:
    """What a value has to be: `operator` and what it is compared with, as a number, a time, or
    either.
    """

    operator: Operator
    quantity: Quantity | None
    time: Time | None

    def holds(self, value: Any, units: Sequence[str] = ()) -> bool:
        """Whether a value of a graph is as asked; exact, and False for other kinds.

        `units` are further ones that the quantity may be converted to.
        """
        if isinstance(value, Quantity) and self.quantity is not None:
            wanted = self.in_unit(value.unit)
            return wanted is not None and bool(OPERATORS[self.operator](exact(value.number), wanted))
        if isinstance(value, Time) and self.time is not None:
            return bool(self.at(value.start, value.end))
        return False

    def in_unit(self, unit: str) -> Fraction | None:
        """What a number of this unit is compared with; None where units do not agree."""
        assert self.quantity is not None
        if self.quantity.unit in (NO_UNIT, unit):
            return exact(self.quantity.number)
        found = conversions(self.quantity, [unit])
        return exact(found[0].number) if found else None

    def in_units(self, units: Iterable[str]) -> list[Quantity]:
        """What numbers of some units are compared with, one of each unit that agrees; a number
        without a unit stands for all of them.
        """
        if self.quantity is None:
            return []
        own = self.quantity
        if own.unit == NO_UNIT:
            return [own] if any(True for _ in units) else []
        return [one for unit in units for one in ([own] if unit == own.unit else conversions(own, [unit]))]

    def at(self, start: Any, end: Any) -> Any:
        """Whether intervals `[start, end)` are as asked; arrays give an array."""
        assert self.time is not None
        return time_mask(self.operator, self.time, start, end)


def condition_of(text: str) -> Condition | None:
    """The condition that a text with an operator is; None where it is none.

    >>> condition_of("> 1990").quantity, condition_of("= May") is None
    (Quantity(number=1990, unit='1'), True)
    """
    found = _CONDITION.fullmatch(text)
    if found is None:
        return None
    operator: Any = _NAMES.get(found[1], found[1])
    quantity: Quantity | None = None
    time: Time | None = None
    with suppress(ValueError):
        quantity = parse_quantity(found[2])
    with suppress(ValueError):
        time = Time.parse(found[2])
    return None if quantity is None and time is None else Condition(operator, quantity, time)


def written(value: Any) -> str | None:
    """How a Python value is written as a node: `= 1930`; None for what is no value."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float | Decimal):
        return f"= {format_number(value)}"
    if isinstance(value, Quantity | Time):
        return f"= {value}"
    if isinstance(value, datetime.datetime):
        return f"= {value.isoformat(timespec='seconds')}"
    return f"= {value.isoformat()}" if isinstance(value, datetime.date) else None
