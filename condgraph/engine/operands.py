"""The operands of native functions: values with their texts, read as numbers and times if possible."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, TypeAlias

from condgraph.engine import values
from condgraph.engine.bounds import watched
from condgraph.engine.units import conversions, fold_unit


class Inapplicable(Exception):
    """Raised if a function has no result for its arguments; the text is the reason."""


@dataclass(slots=True)
class Operand:
    """One argument: its values, the text of each, and remarks to report about reading them."""

    values: list[Any]
    texts: list[str]
    remarks: list[str]

    def __len__(self) -> int:
        return len(self.values)

    def one(self, what: str) -> Any:
        """Return the only value; equal ones count once. Raise `Inapplicable` otherwise."""
        distinct = list(dict.fromkeys(watched(self.texts)))
        if len(distinct) != 1:
            raise Inapplicable(
                f"{what} takes one value, not {len(distinct)}" if distinct else f"{what} needs a value, and there is none"
            )
        return self.values[0]

    def measures(self, what: str) -> list[Measure]:
        """Return every distinct value as a number or a time."""
        pairs = dict(watched(zip(self.texts, self.values, strict=True)))
        return [self._measure(value, text, what) for text, value in watched(pairs.items())]

    def measure(self, what: str) -> Measure:
        """Return the only value as a number or a time."""
        value = self.one(what)
        return self._measure(value, self.texts[0], what)

    def _measure(self, value: Any, text: str, what: str) -> Measure:
        measure = measure_of(value)
        if measure is None:
            numbers = NUMBERS(text.replace("−", "-"))
            if not numbers:
                raise Inapplicable(f"{what}: {text!r} is neither a number nor a time")
            self.remarks.append(f"{what}: {text!r} is read as {numbers[0]}")
            measure = values.Quantity(number_in(numbers[0]))
        return measure


Measure: TypeAlias = values.Quantity | values.Time


Options: TypeAlias = Mapping[str, str]


Native: TypeAlias = Callable[[Sequence[Operand], Options], list[Any]]


NUMBERS: Final = re.compile(r"(?<![\w.])[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?", re.ASCII).findall


_TOO_LARGE: Final = 10**values.MAX_DIGITS
DIGITS: Final = re.compile(r"\d", re.ASCII).search


def measure_of(value: Any) -> Measure | None:
    """Return a value as a number or a time; None if it is neither."""
    if isinstance(value, (values.Quantity, values.Time)):
        return value
    if isinstance(value, (bool, int, float)):
        return values.Quantity(int(value) if isinstance(value, bool) else value)
    return None


def number_in(text: str) -> values.Number:
    """Read a number with commas between thousands."""
    digits = text.replace(",", "").lstrip("+")
    if len(digits) > values.MAX_DIGITS:
        raise Inapplicable(f"a number of more than {values.MAX_DIGITS} digits is not a number")
    return values.parse_number(digits)


def plain(number: Fraction) -> values.Number:
    """Return `as_number` of a result; raise `Inapplicable` if it is too large to print."""
    return values.as_number(_printable(number))


def quotient(number: Fraction) -> values.Number:
    """Return `nearest_number` of a result; raise `Inapplicable` if it is too large to print."""
    return values.nearest_number(_printable(number))


def _printable(number: Fraction) -> Fraction:
    if abs(number) >= _TOO_LARGE:
        raise Inapplicable(f"the result has more than {values.MAX_DIGITS} digits")
    return number


def year_of(value: values.Time) -> int:
    """Return the year in which a time begins; raise `Inapplicable` if its start is open."""
    if value.start <= values.OPEN_START:
        raise Inapplicable(f"{value} has no start, and so no year")
    return values.civil(value.start // values.DAY_SECONDS)[0]


def alike(a: values.Quantity, b: values.Quantity, what: str) -> tuple[values.Quantity, values.Quantity, str]:
    """Return two quantities in one unit, and that unit: the second is converted to that of the first, if a unit
    library can. Raise `Inapplicable` if they are of different kinds.
    """
    if values.NO_UNIT in (a.unit, b.unit) or a.unit == b.unit:
        return a, b, a.unit if a.unit != values.NO_UNIT else b.unit
    factor = conversions(values.Quantity(1, b.unit), [a.unit])
    if factor and factor[0].number != 1:
        # Conversion before spelling: MW and mW differ only in case, but are two units.
        converted = conversions(b, [a.unit])
    else:
        converted = [b] if factor or fold_unit(a.unit) == fold_unit(b.unit) else []
    if not converted:
        raise Inapplicable(f"{what}: {a} and {b} are of different units")
    return a, converted[0], a.unit


def unit_of_product(a: str, b: str) -> tuple[str, int] | None:
    """Return the unit of a product of numbers in two units, and a divisor for the product: 10 % of 50 € is 5 €. None
    if both have a unit, as 3 m times 2 m is not 6 m.
    """
    if values.NO_UNIT in (a, b):
        return b if a == values.NO_UNIT else a, 1
    if fold_unit(a) == "%":
        return b, 100
    return (a, 100) if fold_unit(b) == "%" else None
