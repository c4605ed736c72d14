"""The notation for columns, properties or qualifiers that give the validity of rows: `[valid_from, valid_to)`, whose
end is excluded, `[valid_from, valid_to]`, whose end is included, or `observed_on`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from condgraph.engine.errors import OptionError, nearest, shortened
from condgraph.engine.facts import END_TIME, POINT_IN_TIME, START_TIME
from condgraph.engine.reading.times import digits_time, epoch
from condgraph.engine.values import DAY_SECONDS, Precision, Quantity, Time, Value, collapse, text_of

TIMES_HINT: Final = (
    "times are '[valid_from, valid_to)' (the end is excluded), '[valid_from, valid_to]' (it is included), or 'observed'"
)
#: The qualifiers that give the validity of a statement.
TIMES: Final = (START_TIME, END_TIME, POINT_IN_TIME)
_INTERVAL: Final = re.compile(r"\[([^,\[\])]*),([^,\[\])]*)([\])])", re.ASCII)
#: Texts for an open end.
_FOREVER: Final = frozenset(("infinity", "+infinity", "inf", "-infinity", "forever", "current", "present", "open", "null", "-"))
#: Times from here on mean an open end, such as 9999-12-31.
LAST: Final = Time.year(9998)
#: Qualifiers of the statements of a row, as keys and values.
Qualifiers = tuple[tuple[str, Value], ...]


@dataclass(frozen=True, slots=True)
class RowTimes:
    """The columns of a table that give the validity of its rows: `start` and `end`, "" for none, or `point` alone."""

    start: str = ""
    end: str = ""
    point: str = ""
    #: Whether the end is the first moment at which the row no longer holds.
    excluded: bool = False

    @classmethod
    def of(cls, text: Any, columns: Sequence[str] | None = None) -> RowTimes:
        """Parse `[from, to)`, `[from, to]` or a column; raise `OptionError` for other texts, and for names not in
        `columns`.
        """
        if not isinstance(text, str) or not text.strip():
            raise OptionError(f"times= is not an interval of columns: {shortened(repr(text), 100)}", hint=TIMES_HINT)
        interval = _INTERVAL.fullmatch(text.strip())
        if interval is not None:
            start, end = collapse(interval[1]), collapse(interval[2])
            times = cls(start, end, excluded=interval[3] == ")")
            if not start and not end:
                raise OptionError("times= names no column", hint=TIMES_HINT)
        elif "," in text or text.strip()[0] in "[(":
            raise OptionError(f"times={shortened(text, 100)!r} does not say whether the end is included", hint=TIMES_HINT)
        else:
            times = cls(point=collapse(text))
        for column in times.columns():
            if columns is not None and column not in columns:
                raise OptionError(
                    f"times= names the column {column!r}, which does not exist",
                    candidates=nearest(column, columns),
                    hint=TIMES_HINT,
                )
        return times

    def __str__(self) -> str:
        return self.point or f"[{self.start}, {self.end}{')' if self.excluded else ']'}"

    def columns(self) -> list[str]:
        """Return the named columns."""
        return [name for name in (self.start, self.end, self.point) if name]

    def epochs(self, cells: Mapping[str, Value]) -> list[str]:
        """Return the columns whose cells are read as seconds or milliseconds since 1970."""
        return [name for name in self.columns() if isinstance(cell := cells.get(name), Quantity) and epoch(text_of(cell))]

    def qualifiers(self, cells: Mapping[str, Value], what: str = "the row") -> Qualifiers:
        """Return the validity in the cells of a row as qualifiers; raise ValueError for cells that are not times, or
        if the row holds at no time.
        """
        start = _time(self.start, cells.get(self.start))
        end = _time(self.end, cells.get(self.end))
        point = _time(self.point, cells.get(self.point))
        if end is not None and self.excluded:
            end = last_before(end)
        if start is not None and end is not None and start.start >= end.end:
            first, last = (text_of(cells[name]) for name in (self.start, self.end))
            raise ValueError(f"{what} holds at no time: {self.end!r} is {last}, {self.start!r} is {first}")
        keyed = ((START_TIME, start), (END_TIME, end), (POINT_IN_TIME, point))
        return tuple((key, time) for key, time in keyed if time is not None)


def _time(column: str, cell: Value | None) -> Time | None:
    """Return a cell as a time; None if it is empty or means an open end."""
    if cell is None:
        return None
    if isinstance(cell, Quantity) and isinstance(cell.number, int) and not cell.unit.strip("1") and 0 < cell.number < 10_000:
        cell = Time.year(cell.number)
    if isinstance(cell, Time):
        return None if cell.start >= LAST.start else cell
    text = collapse(text_of(cell))
    if text.casefold() in _FOREVER or not text:
        return None
    try:
        # 99991231 is an open end, and other long numbers are no years.
        time = Time.parse(text) if len(text) < 5 or not text.isdecimal() else digits_time(text)
    except ValueError:
        time = None
    if time is None:
        raise ValueError(f"{column!r} is not a time: {shortened(text, 60)!r}") from None
    return None if time.start >= LAST.start else time


def last_before(time: Time) -> Time:
    """Return the last day before a day, or the last second before any other time."""
    if time.precision is Precision.DAY:
        return Time(time.start - DAY_SECONDS, time.start, Precision.DAY)
    return Time(time.start - 1, time.start, Precision.SECOND)
