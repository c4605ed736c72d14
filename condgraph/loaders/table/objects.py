"""Values of Python and of JSON as cells, and columns of them.

Texts are typed as cells of their column (`cells`); numbers are exact, booleans are the texts "true"
and "false", null and NaN are missing.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from condgraph.engine.reading.shapes import POINT
from condgraph.engine.reading.times import SECOND, SECOND_OF_DAY, basic_day
from condgraph.engine.values import Precision, Quantity, Time, Value, collapse, format_number, parse_number, text_of
from condgraph.loaders.table.cells import Cell, ColumnType, Profile
from condgraph.loaders.table.rows import Table

#: Rows that go out at once.
ROWS_A_CHUNK: Final = 10_000
_SURROGATE: Final = re.compile(r"[\ud800-\udfff]").search
_PLAIN: Final = (str, int, float, bool, Decimal, type(None), datetime.date, datetime.time, datetime.timedelta)


class Digits(str):
    """A number of a JSON file, as it is written there."""

    __slots__ = ()


class BadRecord(ValueError):
    """What is wrong with a record, and in which field."""

    def __init__(self, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.field = field


def broken(text: str) -> bool:
    """Whether a text holds halves of characters: bytes that could not be decoded, or escapes that
    are not whole.
    """
    return not text.isascii() and _SURROGATE(text) is not None


def native(value: Any) -> Value | None:
    """A Python or JSON value that is no text as a value of the graph; None where it is missing.
    Raises `BadRecord`.
    """
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Digits):
        try:
            return Quantity(parse_number(value))
        except ValueError:
            raise BadRecord("the number has too many digits") from None
    if isinstance(value, int):
        return Quantity(int(value))
    if isinstance(value, float):
        if math.isnan(value):
            return None
        if math.isinf(value):
            raise BadRecord("the number is infinite")
        return Quantity(float(value))
    if isinstance(value, Decimal):
        if value.is_nan():
            return None
        if value.is_infinite():
            raise BadRecord("the number is infinite")
        return Quantity(parse_number(format_number(value)))
    if isinstance(value, datetime.datetime):
        if value != value:  # NaT
            return None
        if value.tzinfo is not None:
            value = value.astimezone(datetime.UTC)
        return Time.second(value.year, value.month, value.day, value.hour, value.minute, value.second)
    if isinstance(value, datetime.date):
        return Time.day(value.year, value.month, value.day)
    if isinstance(value, datetime.time):
        seconds = value.hour * 3600 + value.minute * 60 + value.second
        return Quantity(_with_micros(seconds, value.microsecond), SECOND_OF_DAY)
    if isinstance(value, datetime.timedelta):
        if value != value:  # NaT
            return None
        sign = -1 if value < datetime.timedelta(0) else 1
        length = abs(value)
        return Quantity(sign * _with_micros(length.days * 86_400 + length.seconds, length.microseconds), SECOND)
    if isinstance(value, (UUID, Path)):
        return str(value)
    if isinstance(value, Enum):
        return native_or_text(value.value)
    if isinstance(value, Fraction):
        return Quantity(int(value)) if value.denominator == 1 else str(value)
    if isinstance(value, (Quantity, Time)):
        return value
    item = getattr(value, "item", None)
    if type(value).__module__ == "numpy" and callable(item) and getattr(value, "ndim", 1) == 0:
        return native_or_text(item())
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    raise BadRecord(f"a value of type {type(value).__name__} has no place in a cell")


def native_or_text(value: Any) -> Value | None:
    """`native`, with a text as it is."""
    return collapse(value) if isinstance(value, str) and not isinstance(value, Digits) else native(value)


def printed(value: Any) -> str | None:
    """The text of a Python value, None where it has no place in a cell or is missing."""
    try:
        found = native_or_text(value)
    except BadRecord:
        return None
    return None if found is None else text_of(found)


def _with_micros(seconds: int, micros: int) -> int | float | Decimal:
    return parse_number(f"{seconds}.{micros:06d}") if micros else seconds


class Field:
    """One column of records: its profile, then its type."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.texts: list[str] = []
        self.decimals = 0
        self.midnight = True
        #: Whether a record has anything in it that is more than null.
        self.there = False
        self.cut = 0
        self.infinite = 0
        self.chosen = ColumnType("text")
        self.read: Callable[[str], Cell | None] = self.chosen.reader()
        #: "year" or "day" where numbers are such.
        self.numbers_are = ""

    def look(self, values: Sequence[Any]) -> None:
        """Look at values in the first pass."""
        for value in values:
            self.there = self.there or value is not None
            if isinstance(value, Digits):
                self._number(value)
            elif isinstance(value, str):
                self.texts.append(value)
            elif isinstance(value, datetime.datetime):
                if value == value:
                    self.midnight = self.midnight and value.tzinfo is None and value.time() == datetime.time(0)
                    self.cut += value.microsecond != 0
            elif isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
                self._number(format_number(value))
        if len(self.texts) > ROWS_A_CHUNK:
            self.flush()

    def settle(self, table: Table, at: int) -> None:
        """Decide what the column is, which is the one at this place of its table; after the last
        `flush`.
        """
        self.chosen = table.decide(at, self.profile)
        self.read = self.chosen.reader()
        self.numbers_are = self.chosen.numbers_are if table.declared(at) != "number" else ""
        if self.cut:
            table.reading.warn(f"parts of a second are cut off in {self.cut} cells", field=table.names[at])

    def _number(self, text: str) -> None:
        """Look at a number that is no text: nothing but years and days is open there."""
        if text.isdigit():
            self.texts.append(text)
        else:
            self.decimals += 1

    def flush(self) -> None:
        """Give the profile what it has not seen."""
        self.profile.add(self.texts)
        if self.decimals:
            counted = self.profile.shapes.setdefault(POINT, [0, 0])
            counted[:] = (one + self.decimals for one in counted)
        self.texts, self.decimals = [], 0

    def cell(self, value: Any) -> Cell | None:
        """The value of a cell and its raw text; None where it is missing."""
        if isinstance(value, Digits):
            found = native(value)
            if self.numbers_are and isinstance(found, Quantity):
                found = self._time(found)
            assert found is not None
            return found, None if text_of(found) == value else str(value)
        if isinstance(value, str):
            return self.read(value)
        if isinstance(value, float) and math.isinf(value):
            self.infinite += 1
            return repr(float(value)), None
        found = native(value)
        if found is None:
            return None
        if self.numbers_are and isinstance(found, Quantity):
            found = self._time(found)
        elif isinstance(found, Time) and found.precision is Precision.SECOND and self.midnight:
            found = Time(found.start, found.start + 86_400, Precision.DAY)
        return found, None

    def _time(self, number: Quantity) -> Value:
        year = number.number
        if self.numbers_are == "day" and (day := basic_day(str(year))) is not None:
            return day
        return Time.year(int(year)) if int(year) == year and 1 <= year <= 9999 else number

    def elements(self, values: Sequence[Any]) -> list[Any]:
        """Values, and the numbers of texts that are lists of them (`ColumnType.parts`)."""
        return [part for value in values for part in (self.chosen.parts(value) if type(value) is str else [value])]
