"""Literals as the layout writes them (`sparql.layout`): texts, numbers and times in the lexical
forms of N-Triples and SPARQL, and numbers read back.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Final

from condgraph.engine.values import DAY_SECONDS, OPEN_START, UNKNOWN_END, Number, Time, civil, format_number, parse_number

XSD: Final = "http://www.w3.org/2001/XMLSchema#"

_ESCAPES: Final = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"})
#: Eight digits: rdflib takes as many after `\\u` as after `\\U`.
_CONTROL: Final = {i: f"\\U{i:08X}" for i in (*range(8), 11, *range(14, 32), 127)}
_TABLE: Final = {**_ESCAPES, **_CONTROL}
_BEFORE_U: Final = re.compile(r"(?<=\\)(?=[uU])")


def string(text: str) -> str:
    """A plain literal, as N-Triples and SPARQL write it.

    >>> string('say "a\\\\b"')
    '"say \\\\"a\\\\\\\\b\\\\""'
    """
    if "\\" not in text:
        return f'"{text.translate(_TABLE)}"'
    # A backslash before a "u" would be two, and stores that resolve `\\u` before they read a query
    # (SPARQL 1.1, section 19.2) take the second with the "u" for an escape: it is the "u" that is
    # written as one.
    first, *others = _BEFORE_U.split(text)
    written = first.translate(_TABLE) + "".join(f"\\U{ord(part[0]):08X}{part[1:].translate(_TABLE)}" for part in others)
    return f'"{written}"'


def integer(number: int) -> str:
    """An xsd:integer."""
    return f'"{number}"^^<{XSD}integer>'


def double(number: Number) -> str:
    """An xsd:double: the nearest one."""
    nearest = nearest_double(number)
    text = {float("inf"): "INF", float("-inf"): "-INF"}.get(nearest) or repr(nearest)
    return f'"{text}"^^<{XSD}double>'


def nearest_double(number: Number) -> float:
    """The nearest double, infinite where there is none."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


# -- numbers ---------------------------------------------------------------------------------------


def inexact(number: Number) -> bool:
    """Whether a double would lose digits of a number; a float stands for its shortest text."""
    if isinstance(number, float):
        return False
    try:
        nearest = float(number)
    except OverflowError:
        return True
    exact: bool = Decimal(repr(nearest)) == number if isinstance(number, Decimal) else int(nearest) == number
    return not exact


def order_text(number: Number) -> str:
    """A number as text that sorts by size, code point by code point, whatever its digits.

    >>> sorted([2, -1, 10, Decimal("-1.5"), 0], key=order_text) == [Decimal("-1.5"), -1, 0, 2, 10]
    True
    """
    exact = Decimal(format_number(number))
    if not exact:
        return "1"
    sign, digits, _ = exact.as_tuple()
    text = "".join(map(str, digits)).rstrip("0")
    key = f"{exact.adjusted() + 50_000:05d}{text}"
    if not sign:
        return "2" + key
    # Below zero the larger comes first: digits are turned round, and what is shorter is the larger.
    return "0" + "".join(str(9 - int(c)) for c in key) + "~"


def read_number(double_text: str, exact: str | None = None) -> Number:
    """The number of a quantity from its double and, where there is one, its exact text."""
    if exact is not None:
        return parse_number(exact)
    number = float(double_text)
    return int(number) if number.is_integer() else number


# -- times -----------------------------------------------------------------------------------------


def _within(value: Time) -> bool:
    return value.start > OPEN_START and value.end < UNKNOWN_END and value.end > value.start


def year_of(value: Time) -> int | None:
    """The year a time lies in; None where it lies in several, or has an open side."""
    if not _within(value):
        return None
    first = civil(value.start // DAY_SECONDS)[0]
    return first if civil((value.end - 1) // DAY_SECONDS)[0] == first else None


def date_of(value: Time) -> str | None:
    """The day a time lies in, as xsd:date writes it; None where it lies in several."""
    if not _within(value) or value.start // DAY_SECONDS != (value.end - 1) // DAY_SECONDS:
        return None
    year, month, day = civil(value.start // DAY_SECONDS)
    return f"{'-' if year < 0 else ''}{abs(year):04d}-{month:02d}-{day:02d}"
