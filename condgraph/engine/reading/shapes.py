"""All readings of a text, with shortcuts for the most frequent numbers, dates and clock times, and the shapes that
columns count.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from datetime import date
from functools import lru_cache
from typing import Final, TypeAlias

from condgraph.engine.reading.numbers import CODES, LISTS, MONEY, PERCENT, Reading, read_number, read_side
from condgraph.engine.reading.times import SECOND, SECOND_OF_DAY, basic_day, read_time
from condgraph.engine.reading.words import KNOWN_UNITS, words
from condgraph.engine.values import FORMS, NO_UNIT, Number, Quantity, Time, Value

# -- quick readings --------------------------------------------------------------------------------
# Readings of the most frequent numbers, dates and clock times, by one regular expression each.
#
# `quick` returns the same as `numbers` and `times`, or None: those modules handle every format, `quick`
# the formats of most cells in real tables. A test compares them.


_NUMBER: Final = re.compile(
    r"(?P<money>[$£€¥])?(?:(?P<groups>[1-9]\d{0,2}(?:,\d{3}){1,4})|(?P<digits>0|[1-9]\d{0,14}))(?P<part>\.\d{1,9})?"
    r"(?P<unit>%| ?[a-z]{1,3})?(?P<mark>\[\w{1,9}\])?",
    re.ASCII,
).fullmatch
_DATE: Final = re.compile(r"(?:([A-Z][a-z]{2,8}) (\d{1,2}),|(\d{1,2}) ([A-Z][a-z]{2,8})) (\d{4})", re.ASCII).fullmatch
_CLOCK: Final = re.compile(r"(\d{1,2}):([0-5]\d)(?::([0-5]\d))?", re.ASCII).fullmatch
_NAMES: Final = "January February March April May June July August September October November December"
_MONTHS: Final = {name: number for number, full in enumerate(_NAMES.split(), 1) for name in (full, full[:3])}
#: Words after a number that may not be its unit: ordinal suffixes, halves of the day, and the s of a
#: decade.
_DOUBTFUL: Final = frozenset(("s", "st", "nd", "rd", "th", "am", "pm"))
#: Faster than the constructor of a named tuple, which is a Python function.
_new: Final = tuple.__new__


def quick(text: str) -> tuple[Reading, ...] | None:
    """Return every reading of a text with collapsed white space; None if the other modules must read it.

    >>> quick("$1,234.50"), quick("12 apples")
    ((Reading(family='number', tag='comma', value=Quantity(number=1234.5, unit='$'), note='¤'),), None)
    """
    match = _NUMBER(text)
    if match is not None:
        return _number(match)
    match = _DATE(text)
    if match is not None:
        before, first, second, after, year = match.groups()
        month = _MONTHS.get(before or after)
        # Every month has 28 days.
        if month is None or not 1 <= (day := int(first or second)) <= 28:
            return None
        return (_new(Reading, ("time", "time", Time.day(int(year), month, day), "")),)
    match = _CLOCK(text)
    return None if match is None else _clock(*match.groups())


def _number(match: re.Match[str]) -> tuple[Reading, ...] | None:
    money, groups, digits, part, unit, mark = match.groups()
    if len(match[0]) - len(mark or "") == 4:
        return None  # perhaps a year
    if len(match[0]) - len(mark or "") == 8 and digits and len(digits) == 8:
        return None  # perhaps a day
    note = ""
    if unit is None:
        unit = NO_UNIT
        if money:
            unit, note = money, MONEY
    elif money:
        return None
    elif unit == "%":
        note = PERCENT
    else:
        unit = unit.lstrip()
        if unit not in KNOWN_UNITS or unit in _DOUBTFUL:
            return None
    number: Number
    if groups:
        plain = groups.replace(",", "")
        if part:
            if len(plain) + len(part) > 16:
                return None
            number = float(plain + part)
        else:
            number = int(plain)
        bare = not (part or note or unit != NO_UNIT)
        if bare and len(groups) > 7 and len(groups) % 4 == 3:
            return None  # perhaps a list
        if bare and len(groups) == 7 and groups[4] != "0":
            note = LISTS[0]
        reading = _new(Reading, ("number", "comma", Quantity(number, unit), note))
        if part or len(groups) > 7:
            return (reading,)
        # A single comma may be a decimal comma.
        note = "" if note in LISTS else note
        return reading, _new(Reading, ("number", "eu", Quantity(float(groups.replace(",", ".")), unit), note))
    if part is None:
        return (_new(Reading, ("number", "num", Quantity(int(digits), unit), note)),)
    if (len(part) == 4 and len(digits) < 4) or len(digits) + len(part) > 16:
        return None  # perhaps a point between thousands; or more digits than a float keeps
    return (_new(Reading, ("number", "en", Quantity(float(digits + part), unit), note)),)


def _clock(first: str, second: str, third: str | None) -> tuple[Reading, ...]:
    total = int(first) * 60 + int(second)
    note = ("3" if third else "2") + ("r" if second[1] in "05" else "")
    duration = total * 60 + int(third) if third else total
    duration_reading = _new(Reading, ("clock", "dur", Quantity(duration, SECOND), note))
    if int(first) > 23:
        return (duration_reading,)
    return duration_reading, _new(Reading, ("clock", "tod", Quantity(duration if third else total * 60, SECOND_OF_DAY), ""))


# -- shapes ----------------------------------------------------------------------------------------


#: The readings of a cell without their values, which a column counts.
Shape: TypeAlias = tuple[Reading, ...]
#: Tags of readings that are likely only in a column of the same, not for a single text.
UNSURE: Final = frozenset(("sci", "minus", "basic", "short"))
#: The beginnings of amounts with a mark of debit or credit.
_DEBIT_CREDIT: Final = frozenset(item + two for item in "DdCc" for two in "Rr")
#: Longer texts are not read: no number or date has this length.
MAX_LENGTH: Final = 80
_is_integer: Final = re.compile(r"-?(?:0|[1-9]\d{0,17})", re.ASCII).fullmatch
_DECIMAL: Final = re.compile(r"-?(?:0|[1-9]\d{0,14})\.\d{1,25}", re.ASCII).fullmatch
_ISO_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII).fullmatch
# The shape of a text rarely depends on its digits: only on leading zeros, and on all digits in years,
# clock times, ordinals and after letters (km2 is a unit, km5 is not).
_PATTERN: Final = str.maketrans("12345678", "9" * 8)
_DIGITS_MATTER: Final = re.compile(
    r"\d{4}|:|,\d{3},"
    r"|([-./])\d\d?\1\d\d|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?[-\s]'?\d\d$"
    r"|\d ?(?:st|nd|rd|th|[ap]\.?m)|BC|AD|CE|B\.C|A\.D|[^\x00-@\[-`{-\x7f€£¥–—−]\d",
    re.ASCII | re.IGNORECASE,
).search
_PATTERNS: Final[dict[str, Shape]] = {}
_MAX_PATTERNS: Final = 20_000
_COMMON: Final = re.compile(
    r"(?:(?P<month>[A-Z][a-z]{2,8}) )?(?P<day>\d{1,2})(?:,| (?P<after>[A-Z][a-z]{2,8})) \d{4}"
    r"|(?P<first>\d{4})[–-](?P<last>\d{4})|(?P<minutes>\d{1,2}):(?P<seconds>\d\d)(?::(?P<third>\d\d))?(?P<part>\.\d{1,9})?",
    re.ASCII,
).fullmatch
_SHAPES_MONTHS: Final = words("January February March April May June July August September October November December")
#: Lengths of digits that may be a year, or a day.
_BOTH: Final = (4, 8)
_TIME: Final[Shape] = (Reading("time", "time", ""),)
_MARKS: Final = re.compile(r"(?:\s?(?:\[[^\[\]]{1,20}\]|[*†‡§¶^=]))+$")
#: The beginnings of texts that may be more than text: digits, signs, currencies, months, days of the
#: week.
_START: Final = re.compile(
    rf"[^A-Za-z]|(?:[A-Z]{{1,2}})?\$|Rs|(?:{CODES})\b|(?:AD|BC)\s?\d|[CD]R(?:[.\s]|[^\w.]|\d)|P[T\d+-]|POINT|SRID="
    r"|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|mon|tue|wed|thu|fri|sat|sun)[a-z]*[\s.,–—-]",
    re.IGNORECASE,
).match
_FORM_STARTS: Final = frozenset("Pp<{Ss")
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
    """Return every reading of a text with collapsed white space; empty if it can only be text."""
    if len(text) > MAX_LENGTH or not _DIGIT(text) or not _START(text):
        return ()
    reading = quick(text)
    return careful(text) if reading is None else reading


def ambiguous(text: str) -> bool:
    """Return whether a text is another number if the comma is the decimal mark: "1.234"."""
    tags = {reading.tag for reading in readings(text) if reading.family == "number"}
    return "eu" in tags and len(tags) > 1


def written_with_comma(text: str, values: Collection[Value] = ()) -> bool:
    """Return whether a cell must be a number with a decimal comma, "1.234,5", or is one according to its value:
    "1.234" with the value 1234.
    """
    values_by_tag = {reading.tag: reading.value for reading in readings(text) if reading.family == "number"}
    if "eu" not in values_by_tag or len(values_by_tag) == 1:
        return values_by_tag.keys() in ({"eu"}, {"cont"})
    return values_by_tag.pop("eu") in values and not any(value in values for value in values_by_tag.values())


@lru_cache(maxsize=1 << 16)
def careful(text: str) -> tuple[Reading, ...]:
    """Return the readings of a text that `quick` does not handle."""
    if (form := _formed(text)) is not None:
        return form
    bare = _MARKS.sub("", text)
    if not bare:
        return ()
    numbers = read_number(bare) if ":" not in bare else []
    if not numbers and "," in bare and _LIST(bare):
        return (Reading("list", "list", bare),)
    # Only bare digits and a year with an open end are both; any other number needs no second look.
    if (bare[-1] in "RrSH." or bare[:2] in _DEBIT_CREDIT) and (sides := read_side(bare)):
        return (*numbers, *sides)
    return (*numbers, *read_time(bare)) if not numbers or len(bare) in _BOTH or numbers[0].tag == "minus" else tuple(numbers)


def _formed(text: str) -> tuple[Reading, ...] | None:
    """Return the reading of a text that has a form; None for other texts."""
    if text[:1] not in _FORM_STARTS:
        return None
    for name, form in FORMS.items():
        value = form.read(text)
        if value is not None:
            return (Reading("form", name, value),)
    return None


def _common(text: str) -> Shape | None:
    """Return the shape of the most frequent dates, years and clock times, as `readings` but without creating values;
    None for other texts.
    """
    match = _COMMON(text)
    if match is None:
        return None
    month, day, after, first, last, minutes, seconds, third, part = match.groups()
    if day:
        # Every month has 28 days. The month is on one side of the day.
        is_month = (month or after) in _SHAPES_MONTHS and not (month and after)
        return _TIME if is_month and 1 <= int(day) <= 28 else None
    if first:
        return _TIME if "1000" <= first <= last <= "2100" else None
    if seconds > "59" or (third or "") > "59":
        return None
    note = ("3" if third else "2") + ("r" if seconds[1] in "05" else "")
    if part or int(minutes) > 23:
        return (Reading("clock", "dur", "", note),)
    return (Reading("clock", "dur", "", note), Reading("clock", "tod", ""))


def shapes(texts: Iterable[str]) -> list[Shape]:
    """Return the `shape` of each text."""
    return [*map(shape, texts)]


def shape(text: str) -> Shape:
    """Return the shape of a text with collapsed white space: () if it can only be text."""
    if _is_integer(text):
        if len(text) == 4 and "1000" <= text <= "2100":
            return YEAR
        return BASIC if len(text) == 8 and text[0] != "-" and basic_day(text) is not None else INT
    if _DECIMAL(text) and (text[-4:-3] != "." or text.startswith(("0", "-0"))):
        return POINT
    if _ISO_DAY(text):
        try:
            date.fromisoformat(text)
        except ValueError:
            # The year 0 and invalid days; the slow path tells them apart.
            pass
        else:
            return ISO
    if len(text) > MAX_LENGTH:
        return ()
    common = _common(text)
    if common is not None:
        return common
    if (form := _formed(text)) is not None:
        # Whether it is one depends on all digits.
        return tuple(reading._replace(value="") for reading in form)
    pattern = text.translate(_PATTERN)
    result = _PATTERNS.get(pattern)
    if result is None:
        result = tuple(reading._replace(value="") for reading in readings(text))
        if not _DIGITS_MATTER(pattern):
            if len(_PATTERNS) >= _MAX_PATTERNS:
                _PATTERNS.clear()
            _PATTERNS[pattern] = result
    return result
