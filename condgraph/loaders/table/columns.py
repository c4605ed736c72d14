"""Which type a column has: `decide` chooses it from the shapes of its cells, by the rules of
`cells`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from condgraph.engine.reading.numbers import MONEY
from condgraph.engine.reading.shapes import INT, ISO, POINT, THREE, YEAR, Shape
from condgraph.engine.reading.words import (
    AMOUNT_WORDS,
    CERTAIN_YEAR_WORDS,
    CLOCK_WORDS,
    DURATION_WORDS,
    MISSING_NUMBERS,
    MONEY_WORDS,
    SEASON_WORDS,
    YEAR_HEADERS,
    YEAR_WORDS,
)
from condgraph.loaders.table.column_type import NO_WORD, ColumnType, Declared, folded_unit

#: Shapes of a column with the number of cells, and of distinct texts, that have it.
Shapes: TypeAlias = Mapping[Shape, Sequence[int]]
_PLAIN_SHAPES: Final[dict[Shape, str]] = {INT: "int", YEAR: "int", POINT: "float", ISO: "day"}
_WORD: Final = re.compile(r"[^\W\d_]+").findall


def has_commas(shapes: Shapes) -> bool:
    """Whether more cells can only be numbers with a comma before decimals than with a point."""
    english, european = _Evidence(shapes, "", None).decimals()
    return european[0] > english[0]


def has_points(shapes: Shapes) -> bool:
    """Whether more cells can only be numbers with a point before decimals than with a comma."""
    english, european = _Evidence(shapes, "", None).decimals()
    return english[0] > european[0]


def either_way(shapes: Shapes) -> bool:
    """Whether cells are one number with a point before decimals and another with a comma, and no
    cell says which it is.
    """
    evidence = _Evidence(shapes, "", None)
    english, european = evidence.decimals()
    both = evidence.count(lambda shape: "eu" in _tags(shape) and _tags(shape) & {"en", "comma"} != set())
    return both[0] > 0 == english[0] == european[0]


def decide(
    shapes: Shapes, header: str, declared: Declared, day_first: bool | None, missing: frozenset[str], *, commas: bool = False
) -> ColumnType:
    """The type of a column whose cells have these shapes; see `cells` for the rules. `commas` says
    that other columns of the file have commas before decimals.
    """
    if declared == "text" or (declared == "auto" and not any(shapes)):
        return ColumnType("text", missing=missing)
    evidence = _Evidence(shapes, " ".join(header.casefold().split()), day_first, commas=commas)
    time, number, clock = evidence.time(), evidence.number(), evidence.clock()
    if declared == "number":
        chosen = replace(number, tags=(*number.tags, "space", "paren", "code", *clock.tags), units=None, half_day=clock.half_day)
    elif declared == "time":
        chosen = replace(time, tags=(*time.tags, "year", "num"), years=True)
    else:
        if "year" in time.tags or evidence.codes():
            number = replace(number, tags=())
        chosen = evidence.best((number, time, clock))
    chosen = replace(chosen, missing=missing | MISSING_NUMBERS if chosen.kind == "number" else missing)
    finished = evidence.finish(chosen)
    return replace(finished, unread=evidence.unread()) if chosen.kind == "text" and not finished.ambiguous else finished


class _Evidence:
    """What the shapes of a column say."""

    def __init__(self, shapes: Shapes, header: str, day_first: bool | None, *, commas: bool = False) -> None:
        self.shapes = shapes
        self.commas = commas
        self.header = header
        self.day_first = day_first
        self.words = frozenset(_WORD(header))
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
        return ColumnType("text", order=candidates[1].order)

    def number(self) -> ColumnType:
        numbers = self.count(lambda shape: any(reading.family == "number" for reading in shape))
        english, european = self.decimals()
        continental = (european[1] > 1 and european[0] > english[0]) or (self.commas and not english[0])
        tags = ["num", *(("eu", "en") if continental else ("comma", "en")), "ord"]
        if self.has("space")[0] * 10 >= numbers[0]:
            tags.append("space")
        if self.money():
            tags.append("paren")
        return ColumnType("number", tuple(tags), units=self.units())

    def decimals(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Cells, and distinct texts, that are numbers only with a point before decimals, and only
        with a comma.
        """
        return (
            self.count(lambda shape: _tags(shape) & {"en", "comma"} != set() and "eu" not in _tags(shape)),
            self.count(lambda shape: "eu" in _tags(shape) and not _tags(shape) & {"en", "comma"}),
        )

    def codes(self) -> bool:
        """Whether the column has digits with zeros in front, and no other numbers than digits."""
        plain = self.count(lambda shape: _PLAIN_SHAPES.get(shape) == "int")
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
                reading.family == "time" or (reading.family == "number" and reading.note in NO_WORD and reading.tag != "code")
                for reading in shape
            )
        )[0]
        return found if found * 2 > self.cells else 0

    def money(self) -> bool:
        """Whether parentheses make a number negative here."""
        return bool(MONEY_WORDS.search(self.header)) or any(
            reading.tag == "comma" or reading.note == MONEY or (reading.tag == "paren" and reading.note in ("comma", "space"))
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
        tags = ["iso", "time", "second", "cut"]
        tags.append("second0" if self.has("second")[0] + self.has("cut")[0] else "day0")
        tags.extend(self.seasons())
        candidate = ColumnType("time", tuple(tags), order=self.order())
        if self.years(self.share(candidate)[0]):
            candidate = replace(candidate, tags=(*tags, "year"))
        return candidate

    def order(self) -> str:
        """Whether days or months stand first in dates such as 03/05/2010; "" where nothing says so,
        or the cells disagree.
        """
        if self.day_first is not None:
            return "dmy" if self.day_first else "mdy"
        notes = [{reading.note for reading in shape} & {"dmy", "mdy"} for shape in self.shapes]
        certain = {next(iter(orders)) for orders in notes if len(orders) == 1}
        return certain.pop() if len(certain) == 1 else ""

    def seasons(self) -> list[str]:
        """Which of `season` and `month` 2004-05 is."""
        season, month = self.has("season", but="month"), self.has("month", but="season")
        if season[0] or month[0]:
            return [tag for tag, count in (("season", season), ("month", month)) if count[0] >= max(season[0], month[0])]
        both = self.has("season")
        if self.words & SEASON_WORDS or (both[1] > 1 and self.has("season", note="next") == both):
            return ["season"]
        return ["month"] if both[1] > 1 or "month" in self.words else []

    def years(self, times: int) -> bool:
        """Whether four digits are a year here; `times` cells are times without that."""
        capable = self.has("year")[0]
        if not capable or self.count(lambda shape: any(r.family == "number" for r in shape) and "year" not in _tags(shape))[0]:
            return False
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

    def finish(self, chosen: ColumnType) -> ColumnType:
        """Add what a loader warns about, and whether the column can be read at once."""
        cut = ambiguous = 0
        plain: set[str] = set()
        for shape, (cells, _) in self.shapes.items():
            at = chosen.choose(shape)
            # 1.234 is plain where the point is one before decimals.
            plain.add("float" if shape == THREE and at == 0 else _PLAIN_SHAPES.get(shape, ""))
            if at is None:
                # One that can only be read one way is left as well where another says the opposite.
                ambiguous += cells if {"dmy", "mdy"} & {reading.note for reading in shape} and not chosen.order else 0
            elif shape[at].tag == "cut":
                cut += cells
        whole = ""
        if chosen.kind == "number" and plain <= {"int", "float"}:
            whole = "float" if "float" in plain else "int"
        elif chosen.kind == "time" and plain == {"day"}:
            whole = "day"
        return replace(chosen, plain=whole, cut=cut, ambiguous=ambiguous)


def _tags(shape: Shape) -> set[str]:
    return {reading.tag for reading in shape}
