"""The words and shapes that the typing of columns goes by: missing cells, header words, and what a
column counts a cell as.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import date
from functools import lru_cache
from typing import Final, TypeAlias

from condgraph.engine.reading.numbers import CODES, Reading, read_number
from condgraph.engine.reading.quick import quick
from condgraph.engine.reading.times import basic_day, read_time
from condgraph.engine.reading.words import words
from condgraph.engine.values import Value

#: What a column counts a cell as: its readings without their values.
Shape: TypeAlias = tuple[Reading, ...]
#: Tags of readings that only a column makes likely; of a text alone they are none.
UNSURE: Final = frozenset(("sci", "minus", "basic", "short"))
#: Longer texts are not looked at: no number or date is.
LONGEST: Final = 80
_PLAIN: Final = re.compile(r"-?(?:0|[1-9]\d{0,17})", re.ASCII).fullmatch
_DECIMAL: Final = re.compile(r"-?(?:0|[1-9]\d{0,14})\.\d{1,25}", re.ASCII).fullmatch
_ISO_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII).fullmatch
# The shape of a text rarely depends on which digits it has: only on zeros in front, and in years,
# clocks, ordinals and behind letters (km2 is a unit, km5 is none) on all.
_PATTERN: Final = str.maketrans("12345678", "9" * 8)
_DIGITS_MATTER: Final = re.compile(
    r"\d{4}|:|,\d{3},"
    r"|([-./])\d\d?\1\d\d|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?[-\s]'?\d\d$"
    r"|\d ?(?:st|nd|rd|th|[ap]\.?m)|BC|AD|CE|B\.C|A\.D|[^\x00-@\[-`{-\x7f€£¥–—−]\d",
    re.ASCII | re.IGNORECASE,
).search
_PATTERNS: Final[dict[str, Shape]] = {}
_MOST_PATTERNS: Final = 20_000
_COMMON: Final = re.compile(
    r"(?:(?P<month>[A-Z][a-z]{2,8}) )?(?P<day>\d{1,2})(?:,| (?P<after>[A-Z][a-z]{2,8})) \d{4}"
    r"|(?P<first>\d{4})[–-](?P<last>\d{4})|(?P<minutes>\d{1,2}):(?P<seconds>\d\d)(?::(?P<third>\d\d))?(?P<part>\.\d{1,9})?",
    re.ASCII,
).fullmatch
_MONTHS: Final = words("January February March April May June July August September October November December")
#: Lengths of digits that may be a year, or a day.
_BOTH: Final = (4, 8)
_TIME: Final[Shape] = (Reading("time", "time", ""),)
_MARKS: Final = re.compile(r"(?:\s?(?:\[[^\[\]]{1,20}\]|[*†‡§¶^=]))+$")
#: How a text that can be anything but text begins: digits, signs, currencies, months, days of the
#: week.
_START: Final = re.compile(
    rf"[^A-Za-z]|(?:[A-Z]{{1,2}})?\$|Rs|(?:{CODES})\b|(?:AD|BC)\s?\d"
    r"|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|mon|tue|wed|thu|fri|sat|sun)[a-z]*[\s.,–—-]",
    re.IGNORECASE,
).match
_LIST: Final = re.compile(r"\d{1,9}(?:,\d{1,9})+", re.ASCII).fullmatch
_DIGIT: Final = re.compile(r"\d", re.ASCII).search

INT: Final[Shape] = (Reading("number", "num", ""),)
YEAR: Final[Shape] = (Reading("number", "num", ""), Reading("time", "year", ""))
POINT: Final[Shape] = (Reading("number", "en", ""),)
#: 1.234: a decimal, or a number of four digits.
THREE: Final[Shape] = (Reading("number", "en", ""), Reading("number", "eu", ""))
#: 20240131: a day, or a number of eight digits.
BASIC: Final[Shape] = (Reading("number", "num", ""), Reading("time", "basic", ""))
ISO: Final[Shape] = (Reading("time", "iso", ""),)


def readings(text: str) -> tuple[Reading, ...]:
    """Every reading of a text, white space collapsed; empty where it can only be text."""
    if len(text) > LONGEST or not _DIGIT(text) or not _START(text):
        return ()
    found = quick(text)
    return careful(text) if found is None else found


def ambiguous(text: str) -> bool:
    """Whether a text is another number where a comma stands before decimals: "1.234"."""
    tags = {reading.tag for reading in readings(text) if reading.family == "number"}
    return "eu" in tags and len(tags) > 1


def written_with_comma(text: str, values: Collection[Value] = ()) -> bool:
    """Whether a cell can only be a number with a comma before its decimals, "1.234,5", or is such a
    one by its value: "1.234" where that is 1234.
    """
    found = {reading.tag: reading.value for reading in readings(text) if reading.family == "number"}
    if "eu" not in found or len(found) == 1:
        return found.keys() in ({"eu"}, {"cont"})
    return found.pop("eu") in values and not any(value in values for value in found.values())


@lru_cache(maxsize=1 << 16)
def careful(text: str) -> tuple[Reading, ...]:
    """The readings of a text that is not one of the commonest."""
    bare = _MARKS.sub("", text)
    if not bare:
        return ()
    numbers = read_number(bare) if ":" not in bare else []
    if not numbers and "," in bare and _LIST(bare):
        return (Reading("list", "list", bare),)
    # Only bare digits and a year with an open end are both; any other number needs no second look.
    return (*numbers, *read_time(bare)) if not numbers or len(bare) in _BOTH or numbers[0].tag == "minus" else tuple(numbers)


def _common(text: str) -> Shape | None:
    """The shape of the commonest dates, years and clocks, as `readings` has it and without making
    values; None for others.
    """
    found = _COMMON(text)
    if found is None:
        return None
    month, day, after, first, last, minutes, seconds, third, part = found.groups()
    if day:
        # Every month has 28 days. A month stands on one side of the day.
        one = (month or after) in _MONTHS and not (month and after)
        return _TIME if one and 1 <= int(day) <= 28 else None
    if first:
        return _TIME if "1000" <= first <= last <= "2100" else None
    if seconds > "59" or (third or "") > "59":
        return None
    note = ("3" if third else "2") + ("r" if seconds[1] in "05" else "")
    if part or int(minutes) > 23:
        return (Reading("clock", "dur", "", note),)
    return (Reading("clock", "dur", "", note), Reading("clock", "tod", ""))


def shape(text: str) -> Shape:
    """What a column counts a text by, white space collapsed: () where it can only be text."""
    if _PLAIN(text):
        if len(text) == 4 and "1000" <= text <= "2100":
            return YEAR
        return BASIC if len(text) == 8 and text[0] != "-" and basic_day(text) is not None else INT
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
    if len(text) > LONGEST:
        return ()
    common = _common(text)
    if common is not None:
        return common
    pattern = text.translate(_PATTERN)
    known = _PATTERNS.get(pattern)
    if known is None:
        known = tuple(reading._replace(value="") for reading in readings(text))
        if not _DIGITS_MATTER(pattern):
            if len(_PATTERNS) >= _MOST_PATTERNS:
                _PATTERNS.clear()
            _PATTERNS[pattern] = known
    return known
