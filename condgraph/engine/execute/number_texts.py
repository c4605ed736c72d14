"""Reads texts as the numbers they begin with, where they are summed or compared: "12 cm", "1,200
(estimated)", "5-10".
"""

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


#: What dates end with that begin with a number.
_ENDS: Final = frozenset("0123456789Zz")
_INNER = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?", re.ASCII).findall


def leading_numbers(texts: list[str]) -> list[Any] | None:
    """The numbers that texts begin with; None where one of them begins with something else."""
    found: list[Any] = []
    for text in watched(texts):
        one = _LEADING.match(text)
        if one is None:
            return None
        try:
            found.append(parse_number(one[1].replace(",", "").replace("−", "-")))
        except ValueError:
            # More digits than a number may have.
            return None
    return found or None


def summed_numbers(texts: list[str]) -> list[Any] | None:
    """`leading_numbers` of texts that are summed up; a date counts by its year, wherever that stands:
    "5 May 2021" is not 5. None as well where "12,5" would be cut at its comma.
    """
    found = leading_numbers(texts)
    if found is not None and any(map(_is_cut, set(watched(texts)))):
        return None
    if found is not None:
        found = [number if (year := _year(text)) is None else year for number, text in zip(found, watched(texts), strict=True)]
    return found


def _is_cut(text: str) -> bool:
    """Whether the number that a text begins with goes on behind a comma."""
    found = _LEADING.match(text)
    rest = "" if found is None else text[found.end() : found.end() + 2]
    return rest[:1] == "," and rest[1:].isdigit()


def _year(text: str) -> int | None:
    """The year of a date that begins with a number; None of other texts."""
    if text[-1:] not in _ENDS or text.isdigit():
        return None
    read = [one.value for one in readings(collapse(text)) if one.tag not in UNSURE]
    if not all(isinstance(value, Time) and value.precision >= Precision.MONTH for value in read):
        return None
    years = {year_of(value) for value in read if isinstance(value, Time)}
    return years.pop() if len(years) == 1 else None


def read_as_numbers(values: Iterable[Any]) -> str:
    """What is said of values that are summed up by the numbers in front of them."""
    if all(isinstance(value, Time) for value in values):
        return "the values are times and are read by their years"
    return "the values are texts and are read by the numbers they begin with"


def inner_numbers(text: str) -> list[Decimal] | None:
    """All numbers in a text that begins with one, by which `Extreme` compares such texts; None for
    others.
    """
    if _LEADING.match(text) is None:
        return None
    return [Decimal(number.replace(",", "")) for number in _INNER(text)]
