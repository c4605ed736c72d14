"""How the cells of a column are read: `ColumnType`, which `columns` chooses."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Literal, TypeAlias

from condgraph.engine.reading.numbers import LISTS, MONEY, PERCENT, Reading
from condgraph.engine.reading.shapes import readings
from condgraph.engine.reading.words import (
    MISSING,
)
from condgraph.engine.values import NO_UNIT, Quantity, Time, Value, collapse, text_of

Declared: TypeAlias = Literal["auto", "text", "number", "time"]
DECLARED: Final = ("auto", "text", "number", "time")
#: A typed cell: its value, and its source text where the value prints differently.
Cell: TypeAlias = tuple[Value, str | None]


@dataclass(frozen=True, slots=True)
class ColumnType:
    """How the cells of a column are read; made by `Profile.decide`.

    `kind` is what most cells are; `tags` are the readings taken, best first; `order` is "dmy",
    "mdy" or "" (not known); `units` maps folded unit words to their spelling (None: any word is a
    unit). `plain` is "int", "float", "year" or "day" where every cell is a plain number, a year of
    four digits or an ISO day, so that the column can be read at once; `years` makes every number a year. `cut` cells lose a part
    of a second, `ambiguous` ones are dates whose order of day and month is not known. `unread` cells
    of a column that stays text are numbers and times, more than half of all, that do not go together.
    `lists`: digits with commas between them are several numbers (`parts`). `remarks` are about
    readings that the cells leave open.
    """

    kind: Literal["text", "number", "time", "clock"]
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
    remarks: tuple[str, ...] = ()

    def read(self, cell: str) -> Cell | None:
        """The value of a cell and its raw text where that differs from the printed value; None
        where the cell is missing.
        """
        text = collapse(cell)
        if text.casefold() in self.missing:
            return None
        value: Value = text
        if self.tags:
            found = readings(text)
            at = self.choose(found)
            if at is not None and not self._is_list(found):
                value = self._value(found[at]) or text
        if isinstance(value, Time) and not _PRINTED_TIME(cell):
            return value, cell
        if isinstance(value, Quantity) and "," in cell and "," not in value.unit:
            return value, cell
        return value, None if text_of(value) == cell else cell

    @property
    def numbers_are(self) -> str:
        """What numbers of a column that has no texts are: "day" (20240131), "year", or "" (numbers)."""
        if self.kind != "time":
            return ""
        return "day" if "basic" in self.tags else "year" if "year" in self.tags else ""

    def parts(self, cell: str) -> list[str]:
        """The numbers of a cell that is a list of them; the cell itself where it is none."""
        if not self.lists or "," not in cell:
            return [cell]
        text = collapse(cell)
        return text.replace(" ", "").split(",") if self._is_list(readings(text)) else [cell]

    def elements(self, cells: Sequence[str]) -> tuple[Sequence[int], Sequence[str]]:
        """The `parts` of several cells, and the place of the cell that each is of."""
        if not self.lists:
            return range(len(cells)), cells
        several = [(at, part) for at, cell in enumerate(cells) for part in self.parts(cell)]
        return [at for at, _ in several], [part for _, part in several]

    def _is_list(self, found: Sequence[Reading]) -> bool:
        return self.lists and any(
            reading.tag in ("list", "eu") or reading.note in LISTS for reading in found if found[0].tag != "en"
        )

    def reader(self) -> Callable[[str], Cell | None]:
        """`read` with a bounded memory of the texts it has seen."""
        return lru_cache(maxsize=1 << 16)(self.read)

    def choose(self, found: Sequence[Reading]) -> int | None:
        """Which of a cell's readings, or of a shape's, the column takes; None where the cell stays
        text.
        """
        if self.lists and self._is_list(found):
            return 0
        if len(found) == 1:
            return 0 if found[0].tag in self.tags and self._takes(found[0], 1) else None
        for tag in self.tags:
            for at, reading in enumerate(found):
                if reading.tag == tag and self._takes(reading, len(found)):
                    return at
        return None

    def _takes(self, reading: Reading, of: int) -> bool:
        if reading.family == "number":
            return reading.note in NO_WORD or self.units is None or folded_unit(reading.note) in self.units
        if reading.family == "time":
            return reading.note not in ("dmy", "mdy") or reading.note == self.order
        # 7:00 beside 7:30 PM may be either half of the day.
        return not (self.half_day and of > 1)

    def _value(self, reading: Reading) -> Value | None:
        value = reading.value
        if isinstance(value, Quantity) and reading.family == "number":
            if self.years:
                year = value.number
                return Time.year(year) if isinstance(year, int) and 1 <= year <= 9999 and value.unit == NO_UNIT else None
            if self.units and reading.note not in NO_WORD:
                return Quantity(value.number, self.units[folded_unit(reading.note)])
        return value


_PRINTED_TIME: Final = re.compile(r"[-\d/T:]*", re.ASCII).fullmatch
#: Notes of numbers that name no unit.
NO_WORD: Final = frozenset(("", MONEY, PERCENT, *LISTS, "num", "en", "comma", "space", "cont", "eu"))


def folded_unit(unit: str) -> str:
    """Units that are the same word: case, a final point and a plural "s" do not count."""
    unit = unit.casefold().rstrip(".")
    return unit[:-1] if len(unit) > 3 and unit.endswith("s") else unit
