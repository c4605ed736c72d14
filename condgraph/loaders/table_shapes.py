"""The words and shapes that the typing of columns goes by: missing cells, header words, and what a column counts a cell as."""

from __future__ import annotations

import re
from datetime import date
from functools import lru_cache
from typing import Final, TypeAlias

from condgraph.loaders.table_numbers import Reading, read_number
from condgraph.loaders.table_times import read_time

#: Longer texts are not looked at: no number or date is.
LONGEST: Final = 80
_PLAIN: Final = re.compile(r"-?(?:0|[1-9]\d{0,17})", re.ASCII).fullmatch
_DECIMAL: Final = re.compile(r"-?(?:0|[1-9]\d{0,14})\.\d{1,15}", re.ASCII).fullmatch
_ISO_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII).fullmatch
_MARKS: Final = re.compile(r"(?:\s?(?:\[[^\[\]]{1,20}\]|[*†‡§¶^=]))+$")
#: How a text that can be anything but text begins: digits, signs, currencies, months, days of the week.
_START: Final = re.compile(
    r"[^A-Za-z]|[A-Z]{1,3}\s?[$\d+-]|Rs|AD\s?\d|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|mon|tue|wed|thu|fri|sat|sun)[a-z]*[\s.,–—-]",
    re.IGNORECASE,
).match
_DIGIT: Final = re.compile(r"\d", re.ASCII).search

#: What a column counts a cell as: its readings without their values.
Shape: TypeAlias = tuple[Reading, ...]
INT: Final[Shape] = (Reading("number", "num", ""),)
YEAR: Final[Shape] = (Reading("number", "num", ""), Reading("time", "year", ""))
POINT: Final[Shape] = (Reading("number", "en", ""),)
ISO: Final[Shape] = (Reading("time", "iso", ""),)


def readings(text: str) -> tuple[Reading, ...]:
    """Every reading of a text, white space collapsed; empty where it can only be text."""
    if len(text) > LONGEST or not _DIGIT(text) or not _START(text):
        return ()
    return _readings(text)


@lru_cache(maxsize=1 << 16)
def _readings(text: str) -> tuple[Reading, ...]:
    bare = _MARKS.sub("", text)
    if not bare:
        return ()
    return (*read_number(bare), *read_time(bare))


def shape(text: str) -> Shape:
    """What a column counts a text by, white space collapsed: () where it can only be text."""
    if _PLAIN(text):
        return YEAR if len(text) == 4 and "1000" <= text <= "2100" else INT
    if _DECIMAL(text) and (text[-4:-3] != "." or text.startswith(("0", "-0"))):
        return POINT
    if _ISO_DAY(text):
        try:
            date.fromisoformat(text)
        except ValueError:
            # The year 0 and days that no calendar has; the slow way tells them apart.
            pass
        else:
            return ISO
    return tuple(reading._replace(value="") for reading in readings(text))
