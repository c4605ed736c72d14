"""Read texts as the numbers they begin with, for sums and comparisons: "12 cm", "1,200 (estimated)", "5-10"."""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Any, Final

from condgraph.engine.bounds import watched
from condgraph.engine.operands import year_of
from condgraph.engine.reading.shapes import UNSURE, readings
from condgraph.engine.values import Precision, Time, collapse, parse_number

_LEADING = re.compile(r"[^\w+\-−]{0,3}([-+−]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?)(?![\d:])", re.ASCII)


#: The last character of a date that begins with a number.
_ENDS: Final = frozenset("0123456789Zz")
_INNER = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?", re.ASCII).findall


def leading_numbers(texts: list[str]) -> list[Any] | None:
    """Return the numbers that texts begin with; None if one of them begins with something else."""
    numbers: list[Any] = []
    for text in watched(texts):
        match = _LEADING.match(text)
        if match is None:
            return None
        try:
            numbers.append(parse_number(match[1].replace(",", "").replace("−", "-")))
        except ValueError:
            # The number has too many digits.
            return None
    return numbers or None


def summed_numbers(texts: list[str]) -> list[Any] | None:
    """Return `leading_numbers` for a sum. A date counts by its year, wherever that is: "5 May 2021" is not 5. None
    also if "12,5" would be cut at its comma.
    """
    numbers = leading_numbers(texts)
    if numbers is not None and any(map(_continues, set(watched(texts)))):
        return None
    if numbers is not None:
        numbers = [number if (year := _year(text)) is None else year for number, text in zip(numbers, watched(texts), strict=True)]
    return numbers


def _continues(text: str) -> bool:
    """Return whether the number that a text begins with continues after a comma."""
    match = _LEADING.match(text)
    following = "" if match is None else text[match.end() : match.end() + 2]
    return following[:1] == "," and following[1:].isdigit()


def _year(text: str) -> int | None:
    """Return the year of a date that begins with a number; None for other texts."""
    if text[-1:] not in _ENDS or text.isdigit():
        return None
    values = [reading.value for reading in readings(collapse(text)) if reading.tag not in UNSURE]
    if not all(isinstance(value, Time) and value.precision >= Precision.MONTH for value in values):
        return None
    years = {year_of(value) for value in values if isinstance(value, Time)}
    return years.pop() if len(years) == 1 else None


def read_as_numbers(values: Iterable[Any]) -> str:
    """Return the warning about values that are summed by their leading numbers."""
    if all(isinstance(value, Time) for value in values):
        return "the values are times and are read by their years"
    return "the values are texts and are read by the numbers they begin with"


def inner_numbers(text: str) -> list[Decimal] | None:
    """Return all numbers in a text that begins with one, by which `Extreme` compares such texts; None for other
    texts.
    """
    if _LEADING.match(text) is None:
        return None
    return [Decimal(number.replace(",", "")) for number in _INNER(text)]
