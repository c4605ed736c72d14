"""Typing of cells: what a text in a table means, decided over its whole column.

A cell is text, a number with its unit, a time, or missing. Each text has a few possible readings
(`condgraph.engine.reading`); a `Profile` counts them over a column, `Profile.decide` chooses, and
the `ColumnType` it gives reads the cells. The rules:

- A column is of the type that more than half of its cells, or of its distinct texts, can be read
  as. The other cells stay text.
- **Missing**: blanks, `n/a`, `-`, `–`, `—` (and runs of them), `NULL`, `#N/A`; `NaN` and `NA` in a
  column of numbers.
- **Marks** at the end (`[1]`, `[note 2]`, `*`, `†`, `‡`, `§`, `=`) do not keep a cell from being
  read.
- **Years**: four digits from 1000 to 2100 are a year where every plain number of the column is one
  and the header speaks of time (year, season, date, founded, opened, born, ...; `YEAR_WORDS`), or
  where other cells of the column are dates. Otherwise a number.
- **03/05/2010** is read where another cell of the column has a day after the 12th, or `day_first`
  says; otherwise it stays text.
- **2004-05** is two years where the column has such a pair that is no month, or the header says
  season; a month beside days, where some pair does not follow each other, or the header says month
  or date. Where all follow each other they are two years, with a warning; one such cell alone stays
  text. `seasons` decides. 2004-21, which is also a season of 2004, says nothing of the others.
- **Years beside eras**: 330 is a year beside 753 BC.
- **20240131** is a day where every number of the column is one and the header speaks of days.
- **Years of two digits** stay text, with a warning, unless the column is declared one of times.
- **1.234 and 1,234**: a comma separates thousands unless more cells can only be decimals with a
  comma than with a point, and some of them for certain (1.234,56, or a unit after 12,5) or two of
  them. Else one column that has decimals with a comma decides for those that do not say. 2.000 € is
  two thousand beside 500 €, and 2.000 under "population", with a warning. `decimal` decides.
- **101,102** is a list of numbers where numbers of three digits stand beside it and all groups have
  three, or where other cells can only be lists (1,2,3), or longer ones all ascend; otherwise one
  number, with a warning where all are such.
- **100-** is negative in columns of money, and where two cells are such.
- **(1,234)** is negative in columns of money (a currency, a percent sign, separators, or a header
  like "profit"), and, with a warning, where two cells are such in a column of numbers alone;
  otherwise text.
- **Codes**: digits with leading zeros, three or more (06897), keep a column of plain integers from
  being numbers. 5E1 is text unless other cells have decimals, separators or a signed
  exponent. Decimals of
  several lengths are text under a header like "version" or "code", with a warning elsewhere where
  some end in 0 and none begins with it.
- **Units**: a known unit, or a word that follows the number in two cells and a tenth of the column.
  Singular and plural are one unit, spelled as most cells do. A bare number has no unit.
- **4:27** is a duration (seconds) or a time of day (seconds since midnight): AM or PM, or a header
  like "kick-off", say time of day; parts of a second, more than 23 in front, or a header like
  "length" say duration. Otherwise a column whose last parts are all multiples of five is times of
  day, and any other durations; one such cell alone stays text.
- Dates that all have the time 00:00:00 are days.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.reading.shapes import BASIC, INT, ISO, POINT, THREE, YEAR, Shape, shape
from condgraph.engine.reading.words import MISSING, MISSING_NUMBERS
from condgraph.engine.values import collapse
from condgraph.loaders.table.column_type import DECLARED, Cell, ColumnType, Declared
from condgraph.loaders.table.columns import Figures, Hints, decide, either_way, has_commas, has_points
from condgraph.loaders.table.fields import Fields, Plain, basic_days

__all__ = ["DECLARED", "MISSING", "Cell", "ColumnType", "Declared", "Profile", "type_cells", "undecodable"]

#: Different shapes that a profile counts one by one; in a column with more, no word stands out as a
#: unit.
_MOST_SHAPES: Final = 2000
#: Columns of fewer cells are looked at cell by cell.
_FEW: Final = 200
# Missing cells may be empty, or a hyphen, which is how an empty number with a sign looks.
_ALL_NUMBERS: Final = re.compile(r"(?:-?(?:(?:0|[1-9]\d{0,14})(?:\.\d{1,25})?)?\n)++", re.ASCII).fullmatch
_ALL_DAYS: Final = re.compile(r"(?:(?:\d{4}-\d\d-\d\d)?\n)++", re.ASCII).fullmatch
#: Shapes whose digits are looked at (`Figures`).
_FIGURES: Final = frozenset((INT, YEAR, BASIC, POINT, THREE))
_SURROGATE: Final = re.compile(r"[\udc80-\udcff]")
_THREE_DECIMALS: Final = re.compile(r"^-?[1-9]\d{0,2}\.\d{3}$", re.ASCII | re.MULTILINE).findall


@dataclass(slots=True)
class Profile:
    """What the cells of a column look like: how many cells, and distinct texts, there are of every
    shape.

    `missing` are the markers of missing cells, white space collapsed and case folded. A text counts
    as distinct once for every call of `add` it occurs in, so that a profile stays small whatever
    the column holds.
    """

    missing: frozenset[str] = MISSING
    shapes: dict[Shape, list[int]] = field(default_factory=dict)
    figures: Figures = field(default_factory=Figures)

    def add(self, cells: Collection[str]) -> None:
        """Count cells, as they stand in the source."""
        if len(cells) > _FEW:
            if isinstance(cells, Fields) and self._add_fields(cells):
                return
            if not any(marker[-1:].isdigit() for marker in self.missing) and self._add_plain(cells):
                return
            # Texts are told by their bytes, too, wherever they come from.
            if not isinstance(cells, Fields) and (fields := Fields.of(cells)) is not None and self._add_fields(fields):
                return
        self._add_each(cells)

    def _add_each(self, cells: Iterable[str]) -> None:
        missing = self.missing
        longest = max(map(len, missing | MISSING_NUMBERS))
        for cell, times in Counter(cells).items():
            text = collapse(cell)
            if len(text) <= longest:
                folded = text.casefold()
                if folded in missing:
                    continue
                if folded in MISSING_NUMBERS:
                    continue
            key = shape(text)
            self._count(key, times, 1)
            if key in _FIGURES:
                self.figures.add(text)

    def _count(self, key: Shape, cells: int, distinct: int) -> None:
        counted = self.shapes.get(key)
        if counted is None:
            counted = self.shapes.setdefault(key if len(self.shapes) < _MOST_SHAPES else (), [0, 0])
        counted[0] += cells
        counted[1] += distinct

    def _add_fields(self, cells: Fields) -> bool:
        """Count a column of a clean chunk without making its cells, as far as it is of plain
        numbers, ISO days, or texts; False where it is something else.
        """
        if not any(marker[-1:].isdigit() for marker in self.missing):
            if (plain := cells.plain) is not None:
                self._count_numbers(plain)
                return True
            if (days := cells.days) is not None:
                there = days.days[days.there]
                self._count(ISO, len(there), _different(there))
                return True
        if not cells.collapsed or len(self.shapes) > _FEW:
            return False
        unsure = cells.doubtful() | cells.perhaps(self.missing | MISSING_NUMBERS)
        texts = int(((cells.lengths > 0) & ~unsure).sum())
        others = cells.some(unsure)
        if not texts or len(others) * 4 > len(cells):
            return False
        distinct = cells.distinct - bool((cells.lengths == 0).any()) - len(set(others))
        self._count((), texts, distinct)
        self._add_each(others)
        return True

    def _count_numbers(self, plain: Plain) -> None:
        there = plain.there
        number, decimals, lengths = plain.mantissa[there], plain.decimals[there], plain.lengths[there]
        key = number * 16 + decimals
        whole = decimals == 0
        self.figures.add_all(number, decimals, lengths)
        year = whole & (lengths == 4) & (number >= 1000) & (number <= 2100)
        size = np.abs(number)
        three = (decimals == 3) & (size >= 1000) & (size < 1_000_000)
        basic = np.zeros(len(number), bool)
        if len(number) and number.max() >= 10_000_000:
            eight = np.flatnonzero((lengths == 8) & whole & (number >= 10_000_000) & (number <= 21_001_231))
            basic[eight] = basic_days(number[eight])
        for shape_of, mask in (
            (YEAR, year),
            (BASIC, basic),
            (THREE, three),
            (INT, whole & ~year & ~basic),
            (POINT, ~whole & ~three),
        ):
            some = key[mask]
            if len(some):
                self._count(shape_of, len(some), _different(some))

    def _add_plain(self, cells: Collection[str]) -> bool:
        """Count a column of plain numbers or ISO days at once; False where it is something else."""
        joined = "\n".join(cells) + "\n"
        if _ALL_NUMBERS(joined):
            distinct = Counter(cells)
            whole = [cell for cell in distinct if "." not in cell and cell not in ("", "-")]
            years = [cell for cell in whole if len(cell) == 4 and "1000" <= cell <= "2100"]
            three = _THREE_DECIMALS(joined)
            basic = [cell for cell in whole if len(cell) == 8 and shape(cell) is BASIC]
            points = [cell for cell in distinct if "." in cell]
            counts: list[tuple[Shape, Sequence[str]]] = [(YEAR, years), (BASIC, basic), (THREE, list(set(three)))]
            taken = {*years, *basic, *three}
            counts.append((INT, [cell for cell in whole if cell not in taken]))
            counts.append((POINT, [cell for cell in points if cell not in taken]))
            for cell in (*whole, *points):
                self.figures.add(cell)
            for key, texts in counts:
                if texts:
                    self._count(key, sum(distinct[cell] for cell in texts), len(texts))
            return True
        if _ALL_DAYS(joined):
            days = Counter(cells)
            days.pop("", None)
            if all(shape(cell) is ISO for cell in days):
                self._count(ISO, sum(days.values()), len(days))
                return True
        return False

    def decide(
        self,
        header: str = "",
        declared: Declared = "auto",
        day_first: bool | None = None,
        *,
        commas: bool = False,
        decimal: str | None = None,
        seasons: bool | None = None,
    ) -> ColumnType:
        """The type of the column, by the rules of this module; `declared`, `day_first`, `decimal`
        and `seasons` overrule what the cells say, `commas` that of other columns.
        """
        hints = Hints(header, day_first, commas, decimal, seasons)
        return decide(self.shapes, self.figures, hints, declared, self.missing)

    @property
    def has_commas(self) -> bool:
        """Whether cells have commas before decimals, and not points."""
        return has_commas(self.shapes)

    @property
    def has_points(self) -> bool:
        """Whether cells have points before decimals, and not commas."""
        return has_points(self.shapes)

    @property
    def either_way(self) -> bool:
        """Whether cells are numbers either way, and none says which."""
        return either_way(self.shapes)


def _different(numbers: NDArray[np.int64]) -> int:
    if not len(numbers):
        return 0
    low, high = int(numbers.min()), int(numbers.max())
    if high - low < 1 << 63:
        # Where they lie close together, a mark for each that may be there is quicker than sorting.
        above = numbers - low
        used = int(np.bitwise_or.reduce(above))
        above >>= max(0, (used & -used).bit_length() - 1)
        most = int(above.max())
        if most < 64 * len(above):
            there = np.zeros(most + 1, bool)
            there[above] = True
            return int(np.count_nonzero(there))
    ordered = np.sort(numbers)
    return int(np.count_nonzero(ordered[1:] != ordered[:-1])) + 1


def type_cells(
    cells: Sequence[str],
    header: str = "",
    *,
    declared: Declared = "auto",
    day_first: bool | None = None,
    decimal: str | None = None,
    seasons: bool | None = None,
    missing: frozenset[str] = MISSING,
) -> list[Cell | None]:
    """The cells of one column, typed together: value and raw text of each (`ColumnType.read`), None
    for a missing one.

    >>> [str(cell[0]) if cell else None for cell in type_cells(["1,234", "n/a", "3rd", "DNF"])]
    ['1234', None, '3', 'DNF']
    """
    profile = Profile(missing)
    profile.add(cells)
    read = profile.decide(header, declared, day_first, decimal=decimal, seasons=seasons).reader()
    return [read(cell) for cell in cells]


def undecodable(rows: Sequence[Sequence[str]]) -> Iterator[tuple[int, int, int]]:
    """Cells that hold bytes which are not text: (position of the row, of the cell, the byte); read
    with `surrogateescape`.
    """
    joined = "".join(map("".join, rows))
    if joined.isascii() or not _SURROGATE.search(joined):
        return
    for at, row in enumerate(rows):
        for where, cell in enumerate(row):
            found = _SURROGATE.search(cell)
            if found:
                yield at, where, ord(found[0]) & 0xFF
                break
