"""Which type a column has: `decide` chooses it from the shapes of its cells, by the rules of
`cells`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.errors import numbered
from condgraph.engine.reading.numbers import LISTS, MONEY, PERCENT
from condgraph.engine.reading.shapes import BASIC, INT, ISO, POINT, THREE, YEAR, Shape
from condgraph.engine.reading.times import FIRST_SHORT
from condgraph.engine.reading.words import (
    AMOUNT_WORDS,
    CERTAIN_YEAR_WORDS,
    CLOCK_WORDS,
    CODE_WORDS,
    DAY_WORDS,
    DURATION_WORDS,
    MISSING_NUMBERS,
    MONEY_WORDS,
    MONTH_WORDS,
    SCALE_WORDS,
    SEASON_WORDS,
    WHOLE_WORDS,
    YEAR_HEADERS,
    YEAR_WORDS,
)
from condgraph.loaders.table.column_type import NO_WORD, ColumnType, Declared, folded_unit

_CODES: Final = frozenset(("code", "sci"))
_TEN: Final = 10 ** np.arange(17)
_HUNDRED: Final = f"years from {FIRST_SHORT} to {FIRST_SHORT + 99}"
_LISTS: Final = "cells such as 101,102 are read as lists, each number a value of its own; types= with text or number overrules"
_MAYBE_LISTS: Final = "numbers such as 101,102 may be lists and are read as 101102; types= with text keeps the cells"
_DECIMAL: Final = "; decimal= with a comma or a point decides"
#: Shapes of a column with the number of cells, and of distinct texts, that have it.
Shapes: TypeAlias = Mapping[Shape, Sequence[int]]
_PLAIN_SHAPES: Final[dict[Shape, str]] = {INT: "int", YEAR: "int", BASIC: "int", POINT: "float", ISO: "day"}
_WORD: Final = re.compile(r"[^\W\d_]+").findall


class Hints(NamedTuple):
    """What else decides how cells are read: the header; whether days come first, what stands before
    decimals ("," or "."), and whether 2004-05 is two years, where options say so; and whether other
    columns of the file have commas before decimals.
    """

    header: str = ""
    day_first: bool | None = None
    commas: bool = False
    decimal: str | None = None
    seasons: bool | None = None


@dataclass(slots=True)
class Figures:
    """How the plain numbers of a column are written: the least and most characters of whole ones (0
    where one is negative), bits for the numbers of decimals, of all and of those that end in 0, and whether
    some begin with 0, as no part of a version does (1.05).
    """

    least: int = 99
    most: int = 0
    widths: int = 0
    zeros: int = 0
    padded: bool = False

    def add(self, text: str) -> None:
        """Take the text of a number into account, if it is plain."""
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
        """The same for numbers as `fields.Plain` has them."""
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


def has_commas(shapes: Shapes) -> bool:
    """Whether more cells can only be numbers with a comma before decimals than with a point."""
    english, european = _Evidence(shapes).decimals()
    return european[0] > english[0]


def has_points(shapes: Shapes) -> bool:
    """Whether more cells can only be numbers with a point before decimals than with a comma."""
    english, european = _Evidence(shapes).decimals()
    return english[0] > european[0]


def either_way(shapes: Shapes) -> bool:
    """Whether cells are one number with a point before decimals and another with a comma, and no
    cell says which it is.
    """
    evidence = _Evidence(shapes)
    english, european = evidence.decimals()
    both = evidence.count(lambda shape: "eu" in _tags(shape) and _tags(shape) & {"en", "comma"} != set())
    return both[0] > 0 == english[0] == european[0]


def decide(shapes: Shapes, figures: Figures, hints: Hints, declared: Declared, missing: frozenset[str]) -> ColumnType:
    """The type of a column whose cells have these shapes; see `cells` for the rules."""
    if declared == "text" or (declared == "auto" and not any(shapes)):
        return ColumnType("text", missing=missing)
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
        chosen = evidence.best((time, number, clock))
    chosen = replace(chosen, missing=missing | MISSING_NUMBERS if chosen.kind == "number" else missing)
    return evidence.finish(chosen, declared)


_NO_HINTS: Final = Hints()


class _Evidence:
    """What the shapes of a column say."""

    def __init__(self, shapes: Shapes, figures: Figures | None = None, hints: Hints = _NO_HINTS) -> None:
        self.shapes = shapes
        self.figures = figures or Figures()
        self.hints = hints
        self.header = " ".join(hints.header.casefold().split())
        self.words = frozenset(_WORD(self.header))
        #: What is to be reported where the column is of a kind.
        self.remarks: dict[str, str] = {}
        self.cells, self.distinct = self.count(lambda shape: True)

    def count(self, counts: Callable[[Shape], bool]) -> tuple[int, int]:
        """Cells, and distinct texts, of the shapes that `counts` takes."""
        cells = distinct = 0
        for shape, (some, different) in self.shapes.items():
            if counts(shape):
                cells += some
                distinct += different
        return cells, distinct

    def has(self, tag: str, *, note: str | None = None, but: str = "") -> tuple[int, int]:
        """Cells and distinct texts with a reading of this tag (and note), and none of the tag
        `but`.
        """
        return self.count(
            lambda shape: (
                any(reading.tag == tag and note in (None, reading.note) for reading in shape)
                and not any(reading.tag == but for reading in shape)
            )
        )

    def share(self, candidate: ColumnType) -> tuple[int, int]:
        return self.count(lambda shape: candidate.choose(shape) is not None)

    def best(self, candidates: Sequence[ColumnType]) -> ColumnType:
        """The candidate that reads more than half of the cells, or else of the distinct texts; text
        where none does.
        """
        shares = [(self.share(candidate), candidate) for candidate in candidates]
        for at, whole in ((0, self.cells), (1, self.distinct)):
            share, candidate = max(shares, key=lambda pair: pair[0][at])
            if share[at] * 2 > whole:
                return candidate
        # The order of days and months matters to a warning even where the column is text.
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
        """Whether a comma stands before decimals here."""
        if self.hints.decimal is not None:
            return self.hints.decimal == ","
        english, european = self.decimals()
        if european[0] > english[0] and (self.has("cont")[0] or (european[1] > 1 and not self.has("list")[0])):
            return True
        if english[0]:
            return False
        # 101,102,104 is no number there, so that 101,102 is none either.
        longer = self.has("comma", note=LISTS[1])[0] + self.has("comma", note=LISTS[2])[0]
        return (self.hints.commas and not longer) or self.whole_amounts()

    def whole_amounts(self) -> bool:
        """Whether 2.000 is two thousand: of euros because there are 500 € and no other decimals, of
        people because they are whole.
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
            found = certain[0] * 10 >= thousands
        elif thousands or self.words & AMOUNT_WORDS or MONEY_WORDS.search(self.header) or self.has("en", but="eu")[0]:
            return False
        elif self.whole()[0]:
            # Numbers up to 999 beside such of six digits or more, and none between them.
            found = (self.figures.least, self.figures.most) == (3, 3)
        else:
            several, ascending = self.has("comma", note=LISTS[1])[0], self.has("comma", note=LISTS[2])[0]
            found = ascending > several == 0
            if not found:
                self.remarks["number"] = _MAYBE_LISTS
        if found:
            self.remarks["number"] = _LISTS
        return found

    def whole(self) -> tuple[int, int]:
        """Cells, and distinct texts, that are digits alone."""
        return self.count(lambda shape: _PLAIN_SHAPES.get(shape) == "int")

    def versions(self) -> bool:
        """Whether 1.10 is another code than 1.1: the header speaks of versions or codes, and decimals
        are of several lengths, or end in 0 beside whole numbers.
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
        """Cells, and distinct texts, that are numbers only with a point before decimals, and only
        with a comma.
        """
        return (
            self.count(
                lambda shape: _tags(shape) & {"en", "comma"} != set() and "eu" not in _tags(shape) and shape[0].note not in LISTS
            ),
            self.count(lambda shape: _tags(shape) & {"eu", "cont"} != set() and not _tags(shape) & {"en", "comma"}),
        )

    def codes(self) -> bool:
        """Whether the column has digits with zeros in front, and no other numbers than digits."""
        plain = self.whole()
        numbers = self.count(lambda shape: any(reading.family == "number" for reading in shape))
        return self.has("code")[0] > 0 and plain[0] + self.has("code")[0] == numbers[0]

    def unread(self) -> int:
        """Cells that are a number or a time by themselves, where those are more than half of all, as
        in a column of 1.234,50 and 1,234.50.
        """
        if self.codes():
            return 0
        found = self.count(
            lambda shape: any(
                reading.family == "time" or (reading.family == "number" and reading.note in NO_WORD and reading.tag not in _CODES)
                for reading in shape
            )
        )[0]
        return found if found * 2 > self.cells else 0

    def money(self) -> bool:
        """Whether parentheses make a number negative here: of amounts of money, or of two cells beside
        others in a column of numbers alone.
        """
        several, numbers = self.has("paren"), self.count(lambda shape: any(reading.family == "number" for reading in shape))
        plain = several[1] > 1 and several[0] < numbers[0] == self.cells and not self.words & AMOUNT_WORDS
        return self.of_money() or plain

    def of_money(self) -> bool:
        """Whether header or cells are those of amounts of money."""
        return bool(MONEY_WORDS.search(self.header)) or any(
            reading.tag in ("comma", "cont")
            or reading.note in (MONEY, PERCENT)
            or (reading.tag == "paren" and reading.note in ("comma", "space", "cont"))
            for shape in self.shapes
            for reading in shape
        )

    def units(self) -> dict[str, str]:
        """The words that are units here, folded, with the spelling that most cells have."""
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
        """Whether 330 is a year here, beside 753 BC; `times` cells are times without that."""
        era, numbers = self.has("era")[0], self.count(lambda shape: any(r.family == "number" for r in shape))
        return era > 0 < numbers[0] and numbers == self.whole() and self.figures.most <= 4 and self.of_years(times, numbers[0])

    def basic(self, times: int) -> bool:
        """Whether 20240131 is a day here; `times` cells are times without that."""
        capable = self.has("basic")
        numbers = self.count(lambda shape: any(reading.family == "number" for reading in shape))
        if capable[0] * 2 <= numbers[0]:
            return False
        hinted = DAY_WORDS.search(self.header) and not self.words & AMOUNT_WORDS
        return bool(hinted) or (capable == numbers and times * 10 >= capable[0])

    def order(self) -> str:
        """Whether days or months stand first in dates such as 03/05/2010; "" where nothing says so,
        or the cells disagree.
        """
        if self.hints.day_first is not None:
            return "dmy" if self.hints.day_first else "mdy"
        notes = [{reading.note for reading in shape} & {"dmy", "mdy"} for shape in self.shapes]
        certain = {next(iter(orders)) for orders in notes if len(orders) == 1}
        return certain.pop() if len(certain) == 1 else ""

    def seasons(self) -> list[str]:
        """Which of `season` and `month` 2004-05 is."""
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
        """Whether four digits are a year here; `times` cells are times without that."""
        capable = self.has("year")[0]
        if not capable or self.count(lambda shape: {reading.family for reading in shape} == {"number"})[0]:
            return False
        return self.of_years(times, capable)

    def of_years(self, times: int, capable: int) -> bool:
        """Whether header or cells speak of years, where so many cells may be one."""
        hinted = self.words & CERTAIN_YEAR_WORDS or (self.words & YEAR_WORDS and not self.words & AMOUNT_WORDS)
        return bool(hinted) or self.header.rstrip(":") in YEAR_HEADERS or times * 10 >= capable

    def clock(self) -> ColumnType:
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
        if notes == {"2r"} and both[1] > 1:
            return ColumnType("clock", ("tod",))
        return ColumnType("clock", ("dur",) if both[1] > 1 or notes & {"3", "3r"} else ())

    def finish(self, chosen: ColumnType, declared: Declared) -> ColumnType:
        """Add what a loader warns about, and whether the column can be read at once."""
        cut = ambiguous = short = 0
        plain: set[str] = set()
        for shape, (cells, _) in self.shapes.items():
            at = chosen.choose(shape)
            # 1.234 is plain where the point is one before decimals.
            plain.add("float" if shape == THREE and at == 0 else _PLAIN_SHAPES.get(shape, ""))
            if any(reading.tag == "short" for reading in shape):
                short += cells
            elif at is None:
                # One that can only be read one way is left as well where another says the opposite.
                ambiguous += cells if {"dmy", "mdy"} & {reading.note for reading in shape} and not chosen.order else 0
            elif shape[at].tag == "cut":
                cut += cells
        whole = ""
        if chosen.kind == "number" and plain <= {"int", "float"}:
            whole = "float" if "float" in plain else "int"
        elif chosen.kind == "time" and plain == {"day"}:
            whole = "day"
        elif chosen.kind == "time" and self.shapes.keys() == {YEAR} and "year" in chosen.tags and not chosen.years:
            whole = "year"
        unread = self.unread() if chosen.kind == "text" and not ambiguous and "text" not in self.remarks else 0
        remarks = [remark for kind, remark in self.remarks.items() if kind == chosen.kind]
        sci = self.has("sci")[0]
        if chosen.kind == "text" and sci and (sci + self.whole()[0]) * 2 > self.cells:
            remarks.append("5E1 is read as a code and not as 50; types= with number overrules")
            unread = 0
        if short and declared == "time":
            remarks.append(f"{numbered(short, 'date has a year', 'dates have a year')} of two digits, read as {_HUNDRED}")
        elif short and (short * 2 > self.cells or chosen.kind == "time"):
            stay = numbered(short, "date stays text, as its year has", "dates stay text, as their years have")
            remarks.append(f"{stay} two digits; types= with time reads them as {_HUNDRED}")
            unread = 0
        if "paren" in chosen.tags and self.has("paren")[0] and chosen.kind == "number" and not self.of_money():
            remarks.append("(100) is read as -100; types= with text keeps the cells")
        if self.has("minus", but="time")[0] and chosen.kind == "number" and declared == "auto" and not self.of_money():
            read = "is read as -100; types= with text keeps the cells"
            remarks.append(
                f"100- {read if 'minus' in chosen.tags else 'stays text and may be -100; types= with number reads it so'}"
            )
        return replace(chosen, plain=whole, cut=cut, ambiguous=ambiguous, unread=unread, remarks=tuple(remarks))


def _tags(shape: Shape) -> set[str]:
    return {reading.tag for reading in shape}
