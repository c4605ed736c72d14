"""The operands of native functions: values with their texts, read as numbers and times where they can be."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, TypeAlias

from condgraph.engine import values
from condgraph.engine.bounds import watched
from condgraph.engine.units import conversions, fold_unit


class Inapplicable(Exception):
    """A function that has no result for what it was given; the text says why."""


@dataclass(slots=True)
class Operand:
    """One argument: its values, the text of each, and what should be reported of reading them."""

    values: list[Any]
    texts: list[str]
    remarks: list[str]

    def __len__(self) -> int:
        return len(self.values)

    def one(self, what: str) -> Any:
        """The only value; equal ones count once."""
        distinct = list(dict.fromkeys(watched(self.texts)))
        if len(distinct) != 1:
            raise Inapplicable(f"{what} takes one value, not {len(distinct)}" if distinct else f"{what} of nothing is nothing")
        return self.values[0]

    def measures(self, what: str) -> list[Measure]:
        """Every distinct value as a number or a time."""
        pairs = dict(watched(zip(self.texts, self.values, strict=True)))
        return [self._measure(value, text, what) for text, value in watched(pairs.items())]

    def measure(self, what: str) -> Measure:
        """The only value as a number or a time."""
        value = self.one(what)
        return self._measure(value, self.texts[0], what)

    def _measure(self, value: Any, text: str, what: str) -> Measure:
        found = measure_of(value)
        if found is None:
            numbers = NUMBERS(text.replace("−", "-"))
            if not numbers:
                raise Inapplicable(f"{what}: {text!r} is neither a number nor a time")
            self.remarks.append(f"{what}: {text!r} is read as {numbers[0]}")
            found = values.Quantity(number_in(numbers[0]))
        return found


Measure: TypeAlias = values.Quantity | values.Time


Options: TypeAlias = Mapping[str, str]


Native: TypeAlias = Callable[[Sequence[Operand], Options], list[Any]]


NUMBERS: Final = re.compile(r"(?<![\w.])[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?", re.ASCII).findall


_TOO_LARGE: Final = 10**values.MOST_DIGITS
DIGITS: Final = re.compile(r"\d", re.ASCII).search


def measure_of(value: Any) -> Measure | None:
    """A value as a number or a time; None where it is neither."""
    if isinstance(value, (values.Quantity, values.Time)):
        return value
    if isinstance(value, (bool, int, float)):
        return values.Quantity(int(value) if isinstance(value, bool) else value)
    return None


def number_in(text: str) -> values.Number:
    """A number as a text has it, with commas between thousands."""
    digits = text.replace(",", "").lstrip("+")
    if len(digits) > values.MOST_DIGITS:
        raise Inapplicable(f"a number of more than {values.MOST_DIGITS} digits is no number")
    return values.parse_number(digits)


def exact(number: Any) -> Fraction:
    """A number without loss: a float stands for its shortest text."""
    return Fraction(Decimal(repr(number))) if isinstance(number, float) else Fraction(number)


def plain(number: Fraction) -> values.Number:
    """`as_number`, of a result that can be printed."""
    return values.as_number(_printable(number))


def quotient(number: Fraction) -> values.Number:
    """`nearest_number`, of a result that can be printed."""
    return values.nearest_number(_printable(number))


def _printable(number: Fraction) -> Fraction:
    if abs(number) >= _TOO_LARGE:
        raise Inapplicable(f"the result has more than {values.MOST_DIGITS} digits")
    return number


def year_of(value: values.Time) -> int:
    """The year in which a time begins; raises `Inapplicable` where its start is open."""
    if value.start <= values.OPEN_START:
        raise Inapplicable(f"{value} has no start, and so no year")
    return values.civil(value.start // values.DAY_SECONDS)[0]


def alike(a: values.Quantity, b: values.Quantity, what: str) -> tuple[values.Quantity, values.Quantity, str]:
    """Two quantities in one unit, and that unit: the second in that of the first, where a unit library
    knows how. Raises `Inapplicable` where they are of different kinds.
    """
    if values.NO_UNIT in (a.unit, b.unit) or a.unit == b.unit:
        return a, b, a.unit if a.unit != values.NO_UNIT else b.unit
    factor = conversions(values.Quantity(1, b.unit), [a.unit])
    if factor and factor[0].number != 1:
        # Before spelling: MW and mW are one word without case, and two units.
        same = conversions(b, [a.unit])
    else:
        same = [b] if factor or fold_unit(a.unit) == fold_unit(b.unit) else []
    if not same:
        raise Inapplicable(f"{what}: {a} and {b} are of different units")
    return a, same[0], a.unit


def unit_of_product(a: str, b: str) -> tuple[str, int] | None:
    """The unit of a product of numbers in two units, and what the product is divided by: 10 % of 50 €
    are 5 €. None where both have a unit, as 3 m by 2 m are no 6 m.
    """
    if values.NO_UNIT in (a, b):
        return b if a == values.NO_UNIT else a, 1
    if fold_unit(a) == "%":
        return b, 100
    return (a, 100) if fold_unit(b) == "%" else None
