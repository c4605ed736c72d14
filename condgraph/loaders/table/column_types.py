"""Typing of cells: what a text in a table means, decided over its whole column.

A cell is text, a number with its unit, a time, or missing. Each text has a few possible readings
(`condgraph.engine.reading`); a `Profile` counts them over a column, `Profile.decide` chooses the type,
and the `ColumnType` reads the cells. The rules:

- A column has the type that more than half of its cells, or of its distinct texts, can be read as.
  The other cells stay text.
- **Missing**: blanks, `n/a`, `-`, `–`, `—` (and runs of them), `NULL`, `#N/A`; `NaN` and `NA` in a
  column of numbers.
- **Marks** at the end (`[1]`, `[note 2]`, `*`, `†`, `‡`, `§`, `=`) are ignored.
- **Years**: four digits from 1000 to 2100 are a year if every plain number of the column is one and
  the header is about time (year, season, date, founded, opened, born, ...; `YEAR_WORDS`), or if other
  cells of the column are dates. Otherwise they are a number.
- **03/05/2010** is read if another cell of the column has a day after the 12th, or with `day_first`;
  otherwise it stays text.
- **2004-05** is two years if the column has such a pair that is not a month, or the header says season. It
  is a month next to days, if some pair is not consecutive, or if the header says month or date. If all
  are consecutive they are two years, with a warning; a single such cell stays text. `seasons` decides.
  2004-21, which is also a season of 2004, is no evidence.
- **Years next to eras**: 330 is a year next to 753 BC.
- **20240131** is a day if every number of the column is one and the header is about days.
- **Years of two digits** stay text, with a warning, unless the column is declared as time.
- **1.234 and 1,234**: a comma separates thousands unless more cells must be decimals with a comma than
  with a point, and some of them for certain (1.234,56, or a unit after 12,5) or two of them. Otherwise
  a column with decimal commas decides for ambiguous ones. 2.000 € is two thousand next to 500 €, and
  2.000 under "population", with a warning. `decimal` decides. If no cell of the table does, a warning says so.
- **101,102** is a list of numbers if there are also numbers of three digits and all groups have three,
  or if other cells must be lists (1,2,3), or if longer ones all ascend; otherwise it is one number, with
  a warning if all are like this.
- **100-** is negative in columns of money, and if there are two such cells.
- **(1,234)** is negative in columns of money (a currency, a percent sign, separators, or a header like
  "profit"), and, with a warning, if there are two such cells in a column of numbers only; otherwise it
  is text.
- **5.00 DR** is negative and 5.00 CR positive, with a warning, if every number of the column has such a
  mark, and the header is about money, or both marks occur and half of them are amounts with decimals or
  a currency. The same holds for 12,00 S (Soll) and 12,00 H (Haben), if every cell has one and the header
  is about money.
- **Codes**: three or more digits with leading zeros (06897) keep a column of plain integers from being
  numbers. 5E1 is text unless other cells have decimals, separators or a signed exponent. Decimals of
  several lengths are text under a header like "version" or "code"; elsewhere they give a warning if some
  end in 0 and none begins with it.
- **Units**: a known unit, or a word that follows the number in two cells and a tenth of the column.
  Singular and plural are one unit, with the most frequent spelling. A bare number has no unit.
- **4:27** is a duration (seconds) or a time of day (seconds since midnight): AM or PM, or a header like
  "kick-off", mean time of day; parts of a second, more than 23 in front, or a header like "length" mean
  duration. Otherwise a column whose last parts are all multiples of five has times of day, any other
  durations; a single such cell stays text.
- **PT1H30M** and **P1Y2M** are durations, in seconds and in months, if every cell is one; a column with
  another cell (P1M3D, which is neither) stays text. Both give a warning.
- **POINT(13.4 52.5)** and other forms (`values.FORMS`) are values of their type, with a warning, if
  every cell is one.
- Dates that all have the time 00:00:00 are days.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.errors import numbered
from condgraph.engine.reading.numbers import LISTS, MONEY, PERCENT, Reading
from condgraph.engine.reading.shapes import BASIC, INT, ISO, POINT, THREE, YEAR, Shape, readings, shapes
from condgraph.engine.reading.shapes import shape as shape_of
from condgraph.engine.reading.times import EPOCHS, FIRST_SHORT, digits_time
from condgraph.engine.reading.words import (
    AMOUNT_WORDS,
    CERTAIN_YEAR_WORDS,
    CLOCK_WORDS,
    CODE_WORDS,
    DAY_WORDS,
    DURATION_WORDS,
    MISSING,
    MISSING_NUMBERS,
    MONEY_WORDS,
    MONTH_WORDS,
    SCALE_WORDS,
    SEASON_WORDS,
    WHOLE_WORDS,
    YEAR_HEADERS,
    YEAR_WORDS,
)
from condgraph.engine.values import FORMS, NO_UNIT, Quantity, Time, Value, collapse, text_of
from condgraph.loaders.table.fields import Fields, Plain, basic_days

__all__ = ["DECLARED", "MISSING", "Cell", "ColumnType", "Declared", "Profile", "type_cells", "undecodable"]


Declared: TypeAlias = Literal["auto", "text", "number", "time"]
DECLARED: Final = ("auto", "text", "number", "time")
#: A typed cell: its value, and its source text where the value prints differently.
Cell: TypeAlias = tuple[Value, str | None]


@dataclass(frozen=True, slots=True)
class ColumnType:
    """How the cells of a column are read; made by `Profile.decide`.

    `kind` is the type of most cells; `tags` are the accepted readings, best first; `order` is "dmy", "mdy"
    or "" (unknown); `units` maps folded unit words to their spelling (None: any word is a unit). `plain`
    is "int", "float", "year" or "day" if every cell is a plain number, a year of four digits or an ISO
    day, so that the column can be read at once; `years` makes every number a year. `cut` cells lose a part
    of a second, `ambiguous` ones are dates with an unknown order of day and month. `unread` cells of a
    text column are numbers and times, more than half of all, that do not fit together. `sides`: a mark of
    debit or credit is the sign of a number. `lists`: digits with commas between them are several numbers
    (`parts`); `separator`: the declared separator of the values of a cell. `remarks` are about ambiguous
    readings.
    """

    kind: Literal["text", "number", "time", "clock", "form"]
    tags: tuple[str, ...] = ()
    order: str = ""
    units: dict[str, str] | None = field(default_factory=dict)
    missing: frozenset[str] = MISSING
    half_day: bool = False
    years: bool = False
    plain: str = ""
    cut: int = 0
    ambiguous: int = 0
    unread: int = 0
    lists: bool = False
    sides: bool = False
    separator: str = ""
    remarks: tuple[str, ...] = ()

    def read(self, cell: str) -> Cell | None:
        """Return the value of a cell, and its raw text if that differs from the printed value; None if missing."""
        text = " ".join(cell.split())
        if text.casefold() in self.missing:
            return None
        value: Value = text
        if self.tags:
            shape = amounts(readings(text)) if self.sides else readings(text)
            at = self.choose(shape)
            if at is not None and not self._is_list(shape):
                value = self._value(shape[at]) or text
        if isinstance(value, Time) and not _PRINTED_TIME(cell):
            return value, cell
        if isinstance(value, Quantity) and "," in cell and "," not in value.unit:
            return value, cell
        return value, None if (text if value is text else text_of(value)) == cell else cell

    def notes(self) -> Iterator[str]:
        """Yield warnings about cells that the column cannot read properly, or reads in one of several ways."""
        yield from self.remarks
        if self.cut:
            yield f"parts of a second are cut off in {self.cut} cells; the raw text keeps them"
        if self.unread:
            yield (
                f"{numbered(self.unread, 'cell is a number or a time', 'cells are numbers or times')}, in formats that do "
                "not go together, and the column stays text; types= with number or time reads what it can"
            )
        if self.ambiguous:
            dates, stay = numbered(self.ambiguous, "date", "dates"), "stays" if self.ambiguous == 1 else "stay"
            yield f"{dates} may have the day or the month first and {stay} text; day_first=true or false decides"

    @property
    def numbers_are(self) -> str:
        """What numbers mean in a column without texts: "day" (20240131), "year", or "" (numbers)."""
        if self.kind != "time":
            return ""
        return "day" if "basic" in self.tags else "year" if "year" in self.tags else ""

    @property
    def holds_lists(self) -> bool:
        """Whether a cell may hold several values."""
        return self.lists or bool(self.separator)

    def parts(self, cell: str) -> list[str]:
        """Return the values of a cell that is a list, or the cell itself."""
        if self.separator:
            return [part.strip() for part in cell.split(self.separator)]
        if not self.lists or "," not in cell:
            return [cell]
        text = collapse(cell)
        return text.replace(" ", "").split(",") if self._is_list(readings(text)) else [cell]

    def elements(self, cells: Sequence[str]) -> tuple[Sequence[int], Sequence[str]]:
        """Return the `parts` of several cells, with the index of the cell of each."""
        if not self.holds_lists:
            return range(len(cells)), cells
        several = [(at, part) for at, cell in enumerate(cells) for part in self.parts(cell)]
        return [at for at, _ in several], [part for _, part in several]

    def _is_list(self, readings: Sequence[Reading]) -> bool:
        return self.lists and any(
            reading.tag in ("list", "eu") or reading.note in LISTS for reading in readings if readings[0].tag != "en"
        )

    def reader(self) -> Callable[[str], Cell | None]:
        """Return `read` with a cache of limited size."""
        return lru_cache(maxsize=1 << 16)(self.read)

    def read_all(self, cells: Sequence[str], cached: Callable[[str], Cell | None]) -> list[Cell | None]:
        """Return `read` of cells, or of `cached`, a `reader`, whose cache costs more than it saves if cells rarely repeat."""
        return [*map(self.read if len(set(cells)) * 2 > len(cells) else cached, cells)]

    def choose(self, readings: Sequence[Reading]) -> int | None:
        """Return the index of the reading of a cell or shape that the column accepts; None if it stays text."""
        if self.lists and self._is_list(readings):
            return 0
        if len(readings) == 1:
            return 0 if readings[0].tag in self.tags and self._takes(readings[0], 1) else None
        for tag in self.tags:
            for at, reading in enumerate(readings):
                if reading.tag == tag and self._takes(reading, len(readings)):
                    return at
        return None

    def _takes(self, reading: Reading, of: int) -> bool:
        if reading.family == "number":
            return reading.note in NO_WORD or self.units is None or folded_unit(reading.note) in self.units
        if reading.family == "time":
            return reading.note not in ("dmy", "mdy") or reading.note == self.order
        # Next to 7:30 PM, 7:00 may be in either half of the day.
        return not (self.half_day and of > 1)

    def _value(self, reading: Reading) -> Value | None:
        value = reading.value
        if isinstance(value, Quantity) and reading.family == "number":
            if self.years:
                year = value.number
                if not isinstance(year, int) or value.unit != NO_UNIT:
                    return None
                return Time.year(year) if 1 <= year <= 9999 else digits_time(str(year))
            if self.units and reading.note not in NO_WORD:
                return Quantity(value.number, self.units[folded_unit(reading.note)])
        return value


def amounts(shape: Shape) -> Shape:
    """Return the readings of a cell with a mark of debit or credit as signed numbers; empty without a mark."""
    return tuple(Reading("number", item.tag.partition(":")[2], item.value, item.note) for item in shape if item.family == "side")


_PRINTED_TIME: Final = re.compile(r"[-\d/T:]*", re.ASCII).fullmatch
#: Notes of numbers that are not a unit.
NO_WORD: Final = frozenset(("", MONEY, PERCENT, *LISTS, "num", "en", "comma", "space", "cont", "eu"))


def folded_unit(unit: str) -> str:
    """Fold a unit word: case, a final point and a plural "s" do not matter."""
    unit = unit.casefold().rstrip(".")
    return unit[:-1] if len(unit) > 3 and unit.endswith("s") else unit


_CODES: Final = frozenset(("code", "sci"))
_TEN: Final = 10 ** np.arange(17)
_MOMENT_WORDS: Final = YEAR_WORDS | MONTH_WORDS | {"start", "end", "epoch", "unix"}
_HUNDRED: Final = f"years from {FIRST_SHORT} to {FIRST_SHORT + 99}"
_LISTS: Final = "cells such as 101,102 are read as lists, each number a value of its own; types= with text or number overrules"
_MAYBE_LISTS: Final = "numbers such as 101,102 may be lists and are read as 101102; types= with text keeps the cells"
_SIDES: Final = "amounts marked {} are read as negative, those marked {} as positive; types= with text keeps the cells"
_SOLL: Final = re.compile(r"\b(?:soll|haben)\b").search
_PERIODS: Final = "durations such as PT1H30M and P1Y2M are read in seconds and in months; types= with text keeps the cells"
_CLOCKS: Final = (
    "11:00 is read as 11 minutes next to cells with seconds such as 11:00:00; a header such as 'start' or 'clock' makes hours of it"
)
#: Not reported for columns that `times=` reads as moments.
MAYBE_EPOCHS: Final = "numbers stay numbers and may be seconds or milliseconds since 1970; types= with time reads them"
_DECIMAL: Final = "; decimal= with a comma or a point decides"
#: The shapes in a column, each with the numbers of cells and of distinct texts.
Shapes: TypeAlias = Mapping[Shape, Sequence[int]]
_PLAIN_SHAPES: Final[dict[Shape, str]] = {INT: "int", YEAR: "int", BASIC: "int", POINT: "float", ISO: "day"}
_WORD: Final = re.compile(r"[^\W\d_]+").findall


class Hints(NamedTuple):
    """Other evidence for the type of a column.

    The header; options: whether days come first, the decimal mark ("," or "."), and whether 2004-05 is two
    years; whether other columns of the file have decimal commas; and the tag of typed clock times.
    """

    header: str = ""
    day_first: bool | None = None
    commas: bool = False
    decimal: str | None = None
    seasons: bool | None = None
    clock: str = ""


@dataclass(slots=True)
class Figures:
    """How the plain numbers of a column are written.

    `least` and `most` are the lengths of whole numbers (0 for a negative one). `widths` has a bit for each
    number of decimals, `zeros` for those of decimals that end in 0. `padded`: some decimals begin with 0
    (1.05), as a version's part does not.
    """

    least: int = 99
    most: int = 0
    widths: int = 0
    zeros: int = 0
    padded: bool = False

    def add(self, text: str) -> None:
        """Add the text of a number, if it is plain."""
        whole, _, part = text.partition(".")
        if part:
            if part.isdigit():
                self.widths |= 1 << len(part)
                self.zeros |= (part[-1] == "0") << len(part)
                self.padded |= part[0] == "0" and len(part) > 1
        elif whole.removeprefix("-").isdigit():
            self._digits(len(text))
            if text[0] == "-":
                self._digits(0)

    def add_all(self, mantissa: NDArray[np.int64], decimals: NDArray[np.int64], lengths: NDArray[np.int64]) -> None:
        """Add numbers as in `fields.Plain`."""
        if not len(mantissa):
            return
        counts = np.bincount(decimals) if decimals.any() else np.array([len(mantissa)])
        if counts[0]:
            whole = slice(None) if counts[0] == len(mantissa) else decimals == 0
            digits = lengths[whole]
            self._digits(0 if mantissa[whole].min() < 0 else int(digits.min()))
            self._digits(int(digits.max()))
        if counts[0] < len(mantissa):
            zeros = np.bincount(decimals[(mantissa % 10 == 0) & (decimals > 0)])
            self.widths |= sum(1 << width for width in np.flatnonzero(counts[1:] > 0).tolist()) << 1
            self.zeros |= sum(1 << width for width in np.flatnonzero(zeros).tolist())
            if not self.padded:
                parts = np.abs(mantissa) % _TEN[decimals]
                self.padded = bool(((parts * 10 < _TEN[decimals]) & (decimals > 1)).any())

    def _digits(self, number: int) -> None:
        self.least, self.most = min(self.least, number), max(self.most, number)


def _marked(shapes: Shapes, header: str, declared: Declared) -> tuple[dict[Shape, list[int]], str] | None:
    """Return a column's shapes without marks of debit and credit, with a remark; None if these are no signs."""
    counts: dict[Shape, list[int]] = {}
    marks: set[str] = set()
    marked = decimals = others = 0
    for shape, (cells, distinct) in shapes.items():
        plain = amounts(shape)
        if not plain:
            if any(reading.family == "number" for reading in shape):
                return None
            others += cells
        else:
            marks.add(next(reading.tag.partition(":")[0] for reading in shape if reading.family == "side"))
            marked += cells
            decimals += cells if any(item.tag != "num" or item.note == MONEY for item in plain) else 0
        counted = counts.setdefault(plain or shape, [0, 0])
        counted[0] += cells
        counted[1] += distinct
    money = declared == "number" or MONEY_WORDS.search(header) is not None
    if marks and marks <= {"dr", "cr"}:
        return (counts, _SIDES.format("DR", "CR")) if money or (len(marks) == 2 and decimals * 2 >= marked) else None
    if marks == {"s", "h"} and not others and (money or _SOLL(header)):
        return counts, _SIDES.format("S (Soll)", "H (Haben)")
    return None


def has_commas(shapes: Shapes) -> bool:
    """Whether more cells must have decimal commas than decimal points."""
    english, european = _Evidence(shapes).decimals()
    return european[0] > english[0]


def has_points(shapes: Shapes) -> bool:
    """Whether more cells must have decimal points than decimal commas."""
    english, european = _Evidence(shapes).decimals()
    return english[0] > european[0]


def either_way(shapes: Shapes) -> bool:
    """Whether cells are valid with decimal points and with commas, and no cell decides.

    Whole numbers next to 1,234 decide: if all had three decimals, they would have a comma as well.
    """
    evidence = _Evidence(shapes)
    english, european = evidence.decimals()
    both = evidence.count(lambda shape: "eu" in _tags(shape) and _tags(shape) & {"en", "comma"} != set())
    thousands = evidence.whole()[0] and not evidence.count(lambda shape: {"eu", "en"} <= _tags(shape))[0]
    return both[0] > 0 == english[0] == european[0] and not thousands


def decide(shapes: Shapes, figures: Figures, hints: Hints, declared: Declared, missing: frozenset[str]) -> ColumnType:
    """Return the type of a column with these shapes; the module describes the rules."""
    if declared == "text" or (declared == "auto" and not any(shapes)):
        return ColumnType("text", missing=missing)
    debit_credit = None if declared == "time" else _marked(shapes, " ".join(hints.header.casefold().split()), declared)
    if debit_credit is not None:
        chosen = decide(debit_credit[0], figures, hints, declared, missing)
        if chosen.kind == "number":
            return replace(chosen, sides=True, plain="", remarks=(*chosen.remarks, debit_credit[1]))
    evidence = _Evidence(shapes, figures, hints)
    time, number, clock = evidence.time(), evidence.number(), evidence.clock()
    if declared == "number":
        tags = (*number.tags, "comma", "space", "paren", "minus", "sci", "code", *clock.tags)
        chosen = replace(number, tags=tags, units=None, half_day=clock.half_day, lists=False)
        evidence.remarks.clear()
    elif declared == "time":
        chosen = replace(time, tags=(*time.tags, "basic", "short", "year", "num"), years=True)
    else:
        if {"year", "basic"} & {*time.tags} or evidence.codes() or evidence.versions():
            number = replace(number, tags=())
        chosen = evidence.form() or evidence.best((time, number, clock))
    chosen = replace(chosen, missing=missing | MISSING_NUMBERS if chosen.kind == "number" else missing)
    return evidence.finish(chosen, declared)


_NO_HINTS: Final = Hints()


class _Evidence:
    """The evidence in the shapes of a column."""

    def __init__(self, shapes: Shapes, figures: Figures | None = None, hints: Hints = _NO_HINTS) -> None:
        self.shapes = shapes
        self.figures = figures or Figures()
        self.hints = hints
        self.header = " ".join(hints.header.casefold().split())
        self.words = frozenset(_WORD(self.header))
        #: The remark to report if the column gets a kind.
        self.remarks: dict[str, str] = {}
        self.cells, self.distinct = self.count(lambda shape: True)

    def count(self, counts: Callable[[Shape], bool]) -> tuple[int, int]:
        """Return the numbers of cells and distinct texts of the shapes that `counts` accepts."""
        cells = distinct = 0
        for shape, (cell_count, text_count) in self.shapes.items():
            if counts(shape):
                cells += cell_count
                distinct += text_count
        return cells, distinct

    def has(self, tag: str, *, note: str | None = None, but: str = "") -> tuple[int, int]:
        """Return the numbers of cells and texts with a reading of this tag (and note), and none of the tag `but`."""
        return self.count(
            lambda shape: (
                any(reading.tag == tag and note in (None, reading.note) for reading in shape)
                and not any(reading.tag == but for reading in shape)
            )
        )

    def share(self, candidate: ColumnType) -> tuple[int, int]:
        return self.count(lambda shape: candidate.choose(shape) is not None)

    def best(self, candidates: Sequence[ColumnType]) -> ColumnType:
        """Return the candidate that reads more than half of the cells, or else of the texts; or text."""
        shares = [(self.share(candidate), candidate) for candidate in candidates]
        for at, total in ((0, self.cells), (1, self.distinct)):
            share, candidate = max(shares, key=lambda pair: pair[0][at])
            if share[at] * 2 > total:
                return candidate
        # The order of days and months matters for a warning even if the column is text.
        return ColumnType("text", order=candidates[0].order)

    def number(self) -> ColumnType:
        numbers = self.count(lambda shape: any(reading.family == "number" for reading in shape))
        continental = self.continental()
        lists = not continental and self.lists()
        marks = ("cont", "eu", "en") if continental else ("en",) if lists else ("comma", "en")
        tags = ["num", "exp", *marks, "ord"]
        # One 62- alone may be anything, and 1999- is a year with an open end.
        if MONEY_WORDS.search(self.header) or (self.has("minus")[1] > 1 and self.has("minus", but="time")[0]):
            tags.append("minus")
        if lists:
            tags.append("list")
        if any(self.has(tag, note="")[0] for tag in ("exp", "en", "comma", "cont")):
            tags.append("sci")
        if self.has("space")[0] * 10 >= numbers[0]:
            tags.append("space")
        if self.money():
            tags += ("pareu", "paren") if continental else ("paren",)
        return ColumnType("number", tuple(tags), units=self.units(), lists=lists)

    def continental(self) -> bool:
        """Whether a comma is the decimal mark."""
        if self.hints.decimal is not None:
            return self.hints.decimal == ","
        english, european = self.decimals()
        if european[0] > english[0] and (self.has("cont")[0] or (european[1] > 1 and not self.has("list")[0])):
            return True
        if english[0]:
            return False
        # 101,102,104 is no number with a decimal comma, so neither is 101,102.
        longer = self.has("comma", note=LISTS[1])[0] + self.has("comma", note=LISTS[2])[0]
        return (self.hints.commas and not longer) or self.whole_amounts()

    def whole_amounts(self) -> bool:
        """Whether 2.000 is two thousand.

        For euros, if there is a 500 € and no other decimals; for people, because they are whole.
        """
        points = self.has("en")
        numbers = self.count(lambda shape: any(reading.family == "number" for reading in shape))
        if not points[0] or points != self.has("eu") or points[0] + self.has("num")[0] != numbers[0]:
            return False
        money = self.has("en", note=MONEY) == points
        whole = self.has("num", note=MONEY)[0] > 0 if money else bool(self.words & WHOLE_WORDS) and not self.words & SCALE_WORDS
        if whole:
            self.remarks["number"] = (
                "2.000 is read as 2000, as numbers here are whole or have three digits after the point" + _DECIMAL
            )
        elif money:
            self.remarks["number"] = "2.000 is read with a point before decimals and may be 2000" + _DECIMAL
        return whole

    def lists(self) -> bool:
        """Whether digits with commas between them are several numbers."""
        certain, triples = self.has("list"), self.count(lambda shape: any(reading.note in LISTS for reading in shape))
        thousands = self.has("comma")[0] - triples[0]
        if not triples[0]:
            return False
        if certain[0]:
            result = certain[0] * 10 >= thousands
        elif thousands or self.words & AMOUNT_WORDS or MONEY_WORDS.search(self.header) or self.has("en", but="eu")[0]:
            return False
        elif self.whole()[0]:
            # Numbers of three digits next to groups of three, and no other lengths.
            result = (self.figures.least, self.figures.most) == (3, 3)
        else:
            several, ascending = self.has("comma", note=LISTS[1])[0], self.has("comma", note=LISTS[2])[0]
            result = ascending > several == 0
            if not result:
                self.remarks["number"] = _MAYBE_LISTS
        if result:
            self.remarks["number"] = _LISTS
        return result

    def whole(self) -> tuple[int, int]:
        """Return the numbers of cells and distinct texts that are only digits."""
        return self.count(lambda shape: _PLAIN_SHAPES.get(shape) == "int")

    def versions(self) -> bool:
        """Whether 1.10 and 1.1 are different codes.

        The header is about versions or codes, and decimals have several lengths, or end in 0 next to whole
        numbers.
        """
        widths, zeros = self.figures.widths, self.figures.zeros
        several = widths & (widths - 1)
        numbers = self.count(lambda shape: any(reading.family == "number" for reading in shape))
        if not widths or numbers != self.count(lambda shape: _PLAIN_SHAPES.get(shape) in ("int", "float") or shape == THREE):
            return False
        if self.words & CODE_WORDS and not self.words & AMOUNT_WORDS and (several or (zeros and self.whole()[0])):
            self.remarks["text"] = "decimals are read as codes, as 1.10 and 1.1 would be one number; types= with number overrules"
            return True
        if several and widths < 16 and zeros > (widths & -widths) and not self.figures.padded:
            self.remarks["number"] = "1.10 and 1.1 are one number here; types= with text keeps codes and versions apart"
        return False

    def decimals(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Return the numbers of cells and texts that must have a decimal point, and that must have a comma."""
        return (
            self.count(
                lambda shape: _tags(shape) & {"en", "comma"} != set() and "eu" not in _tags(shape) and shape[0].note not in LISTS
            ),
            self.count(lambda shape: _tags(shape) & {"eu", "cont"} != set() and not _tags(shape) & {"en", "comma"}),
        )

    def codes(self) -> bool:
        """Whether the column has digits with leading zeros, and no numbers other than digits."""
        plain = self.whole()
        numbers = self.count(lambda shape: any(reading.family == "number" for reading in shape))
        return self.has("code")[0] > 0 and plain[0] + self.has("code")[0] == numbers[0]

    def unread(self) -> int:
        """Return the number of cells that are numbers or times alone, if they are more than half of all.

        An example is a column of 1.234,50 and 1,234.50.
        """
        if self.codes():
            return 0
        readable = self.count(
            lambda shape: any(
                reading.family == "time" or (reading.family == "number" and reading.note in NO_WORD and reading.tag not in _CODES)
                for reading in shape
            )
        )[0]
        return readable if readable * 2 > self.cells else 0

    def money(self) -> bool:
        """Whether parentheses make a number negative: for money, or in two cells of a column of numbers."""
        bracketed, numbers = self.has("paren"), self.count(lambda shape: any(reading.family == "number" for reading in shape))
        plain = bracketed[1] > 1 and bracketed[0] < numbers[0] == self.cells and not self.words & AMOUNT_WORDS
        return self.of_money() or plain

    def of_money(self) -> bool:
        """Whether the header or the cells show amounts of money."""
        return bool(MONEY_WORDS.search(self.header)) or any(
            reading.tag in ("comma", "cont")
            or reading.note in (MONEY, PERCENT)
            or (reading.tag == "paren" and reading.note in ("comma", "space", "cont"))
            for shape in self.shapes
            for reading in shape
        )

    def units(self) -> dict[str, str]:
        """Return the folded words that are units here, with their most frequent spelling."""
        spellings: dict[str, dict[str, int]] = {}
        for shape, (cells, _) in self.shapes.items():
            for unit in {reading.note for reading in shape if reading.family == "number"} - NO_WORD:
                counted = spellings.setdefault(folded_unit(unit), {})
                counted[unit] = counted.get(unit, 0) + cells
        return {
            folded: max(counted, key=lambda unit: (counted[unit], unit))
            for folded, counted in spellings.items()
            if sum(counted.values()) > 1 and sum(counted.values()) * 10 >= self.cells
        }

    def time(self) -> ColumnType:
        tags = ["iso", "time", "era", "second", "cut"]
        tags.append("second0" if self.has("second")[0] + self.has("cut")[0] else "day0")
        tags.extend(self.seasons())
        candidate = ColumnType("time", tuple(tags), order=self.order())
        share = self.share(candidate)[0]
        if self.eras(share):
            return replace(candidate, tags=(*tags, "year", "num"), years=True)
        if self.years(share):
            candidate = replace(candidate, tags=(*tags, "year"))
        if self.basic(share):
            candidate = replace(candidate, tags=(*candidate.tags, "basic"))
        return candidate

    def eras(self, times: int) -> bool:
        """Whether 330 is a year next to 753 BC; `times` cells are times without that."""
        era, numbers = self.has("era")[0], self.count(lambda shape: any(r.family == "number" for r in shape))
        return era > 0 < numbers[0] and numbers == self.whole() and self.figures.most <= 4 and self.of_years(times, numbers[0])

    def basic(self, times: int) -> bool:
        """Whether 20240131 is a day; `times` cells are times without that."""
        capable = self.has("basic")
        numbers = self.count(lambda shape: any(reading.family == "number" for reading in shape))
        if capable[0] * 2 <= numbers[0]:
            return False
        hinted = DAY_WORDS.search(self.header) and not self.words & AMOUNT_WORDS
        return bool(hinted) or (capable == numbers and times * 10 >= capable[0])

    def order(self) -> str:
        """Return the order of day and month in dates such as 03/05/2010; "" if unknown or contradictory."""
        if self.hints.day_first is not None:
            return "dmy" if self.hints.day_first else "mdy"
        notes = [{reading.note for reading in shape} & {"dmy", "mdy"} for shape in self.shapes]
        certain = {next(iter(orders)) for orders in notes if len(orders) == 1}
        return certain.pop() if len(certain) == 1 else ""

    def seasons(self) -> list[str]:
        """Return which of `season` and `month` 2004-05 is."""
        if self.hints.seasons is not None:
            return ["season"] if self.hints.seasons else ["month"]
        season, month = self.has("season", but="month"), self.has("month", but="season")
        edtf = self.has("season", note="edtf")
        season = season[0] - edtf[0], season[1] - edtf[1]
        if season[0] or month[0]:
            return [tag for tag, count in (("season", season), ("month", month)) if count[0] >= max(season[0], month[0])]
        both = self.has("month")
        seasons = self.words & SEASON_WORDS
        if seasons - {"period"}:
            return ["season"]
        if self.words & MONTH_WORDS or self.has("iso")[0]:
            return ["month"]
        following = self.count(lambda shape: "month" in _tags(shape) and any(reading.note == "next" for reading in shape))
        if following != both:
            return ["month"] if both[1] > 1 else ["season"] if seasons else []
        if both[1] > 1:
            self.remarks["time"] = "2004-05 is read as the years 2004 and 2005 and may be May 2004; seasons=false or true decides"
            return ["season"]
        return ["season"] if seasons else []

    def years(self, times: int) -> bool:
        """Whether four digits are a year; `times` cells are times without that."""
        capable = self.has("year")[0]
        if not capable or self.count(lambda shape: {reading.family for reading in shape} - {"side"} == {"number"})[0]:
            return False
        return self.of_years(times, capable)

    def of_years(self, times: int, capable: int) -> bool:
        """Whether the header or the cells are about years, if so many cells may be one."""
        hinted = self.words & CERTAIN_YEAR_WORDS or (self.words & YEAR_WORDS and not self.words & AMOUNT_WORDS)
        return bool(hinted) or self.header.rstrip(":") in YEAR_HEADERS or times * 10 >= capable

    def form(self) -> ColumnType | None:
        """Return the type of a form if every cell has that form."""
        for name in FORMS:
            if self.has(name)[0] == self.cells:
                self.remarks["form"] = f"cells are read as values of the type {name}; types= with text keeps them"
                return ColumnType("form", (name,))
        return None

    def clock(self) -> ColumnType:
        if self.hints.clock:
            return ColumnType("clock", (self.hints.clock,))
        if (periods := self.has("period")[0]) and periods == self.cells:
            self.remarks["clock"] = _PERIODS
            return ColumnType("clock", ("period",))
        if periods * 2 > self.cells:
            self.remarks["text"] = "durations such as PT1H30M stay text, as other cells of the column are not in seconds or months"
        durations, times = self.has("dur", but="tod"), self.has("tod", but="dur")
        if self.has("ratio")[0]:
            return ColumnType("clock")
        if times[0] > durations[0]:
            zones = {reading.note for shape in self.shapes for reading in shape if reading.tag == "tod"} - {""}
            return ColumnType("clock", ("tod",) if len(zones) < 2 else (), half_day=True)
        both = self.has("tod")
        if durations[0] or not both[0]:
            return ColumnType("clock", ("dur",))
        if DURATION_WORDS.search(self.header):
            return ColumnType("clock", ("dur",))
        if CLOCK_WORDS.search(self.header):
            return ColumnType("clock", ("tod",))
        notes = {reading.note for shape in self.shapes for reading in shape if reading.tag == "dur"}
        if notes in ({"2r"}, {"2r", "3r"}) and both[1] > 1:
            return ColumnType("clock", ("tod",))
        if {note[0] for note in notes} == {"2", "3"}:
            self.remarks["clock"] = _CLOCKS
        return ColumnType("clock", ("dur",) if both[1] > 1 or notes & {"3", "3r"} else ())

    def finish(self, chosen: ColumnType, declared: Declared) -> ColumnType:
        """Add warnings, and whether the column can be read at once."""
        cut = ambiguous = short = 0
        plain: set[str] = set()
        for shape, (cells, _) in self.shapes.items():
            at = chosen.choose(shape)
            # 1.234 is plain if the point is the decimal mark.
            plain.add("float" if shape == THREE and at == 0 else _PLAIN_SHAPES.get(shape, ""))
            if any(reading.tag == "short" for reading in shape):
                short += cells
            elif at is None:
                # Unambiguous dates stay text, too, if others have the opposite order.
                ambiguous += cells if {"dmy", "mdy"} & {reading.note for reading in shape} and not chosen.order else 0
            elif shape[at].tag == "cut":
                cut += cells
        plain_kind = ""
        if chosen.kind == "number" and plain <= {"int", "float"}:
            plain_kind = "float" if "float" in plain else "int"
        elif chosen.kind == "time" and plain == {"day"}:
            plain_kind = "day"
        elif chosen.kind == "time" and self.shapes.keys() == {YEAR} and "year" in chosen.tags and not chosen.years:
            plain_kind = "year"
        unread = self.unread() if chosen.kind == "text" and not ambiguous and "text" not in self.remarks else 0
        remarks = [remark for kind, remark in self.remarks.items() if kind == chosen.kind]
        sci = self.has("sci")[0]
        if chosen.kind == "text" and sci and (sci + self.whole()[0]) * 2 > self.cells:
            remarks.append("whole numbers with an exponent, like 5E1, are read as codes; types= with number overrules")
            unread = 0
        if short and declared == "time":
            remarks.append(f"{numbered(short, 'date has a year', 'dates have a year')} of two digits, read as {_HUNDRED}")
        elif short and (short * 2 > self.cells or chosen.kind == "time"):
            stay = numbered(short, "date stays text, as its year has", "dates stay text, as their years have")
            remarks.append(f"{stay} two digits; types= with time reads them as {_HUNDRED}")
            unread = 0
        if self.figures.most in (10, 13) and self.figures.least in (9, 10, 12, 13):
            if declared == "time":
                remarks.append(EPOCHS)
            elif plain_kind == "int" and declared == "auto" and (DAY_WORDS.search(self.header) or self.words & _MOMENT_WORDS):
                remarks.append(MAYBE_EPOCHS)
        if "paren" in chosen.tags and self.has("paren")[0] and chosen.kind == "number" and not self.of_money():
            remarks.append("(100) is read as -100; types= with text keeps the cells")
        if self.has("minus", but="time")[0] and chosen.kind == "number" and declared == "auto" and not self.of_money():
            read = "is read as -100; types= with text keeps the cells"
            remarks.append(f"100- {read if 'minus' in chosen.tags else 'stays text and may be -100; types= with number reads it'}")
        return replace(chosen, plain=plain_kind, cut=cut, ambiguous=ambiguous, unread=unread, remarks=tuple(remarks))


def _tags(shape: Shape) -> set[str]:
    return {reading.tag for reading in shape}


#: The most distinct shapes in a profile; in a column with more, no word is a unit.
_MAX_SHAPES: Final = 2000
#: Columns with fewer cells are examined cell by cell.
FEW: Final = 200
# Missing cells may be empty, or a hyphen, which matches as a sign without a number.
_ALL_NUMBERS: Final = re.compile(r"(?:-?(?:(?:0|[1-9]\d{0,14})(?:\.\d{1,25})?)?\n)++", re.ASCII).fullmatch
_ALL_DAYS: Final = re.compile(r"(?:(?:\d{4}-\d\d-\d\d)?\n)++", re.ASCII).fullmatch
#: Shapes whose digits are examined (`Figures`).
_FIGURES: Final = frozenset((INT, YEAR, BASIC, POINT, THREE))
_SURROGATE: Final = re.compile(r"[\udc80-\udcff]")
_THREE_DECIMALS: Final = re.compile(r"^-?[1-9]\d{0,2}\.\d{3}$", re.ASCII | re.MULTILINE).findall


@dataclass(slots=True)
class Profile:
    """Counts of the shapes of a column's cells, and of their distinct texts.

    `missing` are the markers of missing cells, with white space collapsed and case folded. A text counts
    as distinct once for every call of `add`, so that a profile stays small whatever the column contains. A
    `pointed` column has typed numbers, whose decimal mark is a point; `clock` is the tag of typed times of day ("tod")
    and durations ("dur").
    """

    missing: frozenset[str] = MISSING
    shapes: dict[Shape, list[int]] = field(default_factory=dict)
    figures: Figures = field(default_factory=Figures)
    pointed: bool = False
    clock: str = ""

    def add(self, cells: Collection[str]) -> None:
        """Count cells, as in the source."""
        if len(cells) > FEW:
            if isinstance(cells, Fields) and self._add_fields(cells):
                return
            if not any(marker[-1:].isdigit() for marker in self.missing) and self._add_plain(cells):
                return
            # Other cells can be classified by their bytes, too.
            if not isinstance(cells, Fields) and (fields := Fields.of(cells)) is not None and self._add_fields(fields):
                return
        self._add_each(cells)

    def _add_each(self, cells: Iterable[str]) -> None:
        missing = self.missing
        longest = max(map(len, missing | MISSING_NUMBERS))
        counts = Counter(cells)
        texts = [" ".join(cell.split()) for cell in counts]
        for text, times, key in zip(texts, counts.values(), shapes(texts), strict=True):
            if len(text) <= longest:
                folded = text.casefold()
                if folded in missing:
                    continue
                if folded in MISSING_NUMBERS:
                    continue
            self._count(key, times, 1)
            if key in _FIGURES:
                self.figures.add(text)

    def _count(self, key: Shape, cells: int, distinct: int) -> None:
        counted = self.shapes.get(key)
        if counted is None:
            counted = self.shapes.setdefault(key if len(self.shapes) < _MAX_SHAPES else (), [0, 0])
        counted[0] += cells
        counted[1] += distinct

    def _add_fields(self, cells: Fields) -> bool:
        """Count a column of plain numbers, ISO days or texts without creating its cells; False for others."""
        if not any(marker[-1:].isdigit() for marker in self.missing):
            if (days := cells.days) is not None:
                present = days.days[days.there]
                self._count(ISO, len(present), _different(present))
                return True
            if (plain := cells.plain) is not None:
                self._count_numbers(plain)
                return True
        if not cells.collapsed or len(self.shapes) > FEW:
            return False
        uncertain = cells.doubtful() | cells.perhaps(self.missing | MISSING_NUMBERS)
        texts = int(((cells.lengths > 0) & ~uncertain).sum())
        uncertain_texts = cells.some(uncertain)
        if not texts or len(uncertain_texts) * 4 > len(cells):
            return False
        distinct = cells.distinct - bool((cells.lengths == 0).any()) - len(set(uncertain_texts))
        self._count((), texts, distinct)
        self._add_each(uncertain_texts)
        return True

    def _count_numbers(self, plain: Plain) -> None:
        present = plain.there
        number, decimals, lengths = plain.mantissa[present], plain.decimals[present], plain.lengths[present]
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
        for shape, mask in (
            (YEAR, year),
            (BASIC, basic),
            (THREE, three),
            (INT, whole & ~year & ~basic),
            (POINT, ~whole & ~three),
        ):
            keys = key[mask]
            if len(keys):
                self._count(shape, len(keys), _different(keys))

    def _add_plain(self, cells: Collection[str]) -> bool:
        """Count a column of plain numbers or ISO days at once; returns False for others."""
        joined = "\n".join(cells) + "\n"
        if _ALL_NUMBERS(joined):
            distinct = Counter(cells)
            whole = [cell for cell in distinct if "." not in cell and cell not in ("", "-")]
            years = [cell for cell in whole if len(cell) == 4 and "1000" <= cell <= "2100"]
            three = _THREE_DECIMALS(joined)
            basic = [cell for cell in whole if len(cell) == 8 and shape_of(cell) is BASIC]
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
            if all(shape_of(cell) is ISO for cell in days):
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
        """Return the type of the column by the rules of this module.

        `declared`, `day_first`, `decimal` and `seasons` overrule the cells; `commas`: another column has
        decimal commas.
        """
        hints = Hints(header, day_first, commas, "." if self.pointed else decimal, seasons, self.clock)
        return decide(self.shapes, self.figures, hints, declared, self.missing)

    @property
    def has_commas(self) -> bool:
        """Whether cells have decimal commas, and not points."""
        return not self.pointed and has_commas(self.shapes)

    @property
    def has_points(self) -> bool:
        """Whether cells have decimal points, and not commas."""
        return not self.pointed and has_points(self.shapes)

    @property
    def either_way(self) -> bool:
        """Whether cells are numbers with either decimal mark, and none decides."""
        return not self.pointed and either_way(self.shapes)


def _different(numbers: NDArray[np.int64]) -> int:
    if not len(numbers):
        return 0
    low, high = int(numbers.min()), int(numbers.max())
    if high - low < 1 << 63:
        # If they are close together, marking each possible number is faster than sorting.
        offsets = numbers - low
        used_bits = int(np.bitwise_or.reduce(offsets))
        offsets >>= max(0, (used_bits & -used_bits).bit_length() - 1)
        largest = int(offsets.max())
        if largest < 64 * len(offsets):
            occurs = np.zeros(largest + 1, bool)
            occurs[offsets] = True
            return int(np.count_nonzero(occurs))
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
    """Return the cells of one column, typed together: value and raw text of each, None for missing ones.

    >>> [str(cell[0]) if cell else None for cell in type_cells(["1,234", "n/a", "3rd", "DNF"])]
    ['1234', None, '3', 'DNF']
    """
    profile = Profile(missing)
    profile.add(cells)
    read = profile.decide(header, declared, day_first, decimal=decimal, seasons=seasons).reader()
    return [read(cell) for cell in cells]


def undecodable(rows: Sequence[Sequence[str]]) -> Iterator[tuple[int, int, int]]:
    """Yield cells with undecodable bytes: the indices of row and cell, and the byte.

    The text must have been read with `surrogateescape`.
    """
    joined = "".join(map("".join, rows))
    if joined.isascii() or not _SURROGATE.search(joined):
        return
    for at, row in enumerate(rows):
        for cell_at, cell in enumerate(row):
            match = _SURROGATE.search(cell)
            if match:
                yield at, cell_at, ord(match[0]) & 0xFF
                break
