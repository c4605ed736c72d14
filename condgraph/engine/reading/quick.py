"""The readings of the commonest numbers, dates and clocks, by one look each.

`quick` gives what `numbers` and `times` give, or nothing: they know every form, this knows those
that most cells of real tables have. A test holds it against them.
"""

from __future__ import annotations

import re
from typing import Final

from condgraph.engine.reading.numbers import LISTS, MONEY, PERCENT, Reading
from condgraph.engine.reading.times import SECOND, SECOND_OF_DAY
from condgraph.engine.reading.words import KNOWN_UNITS
from condgraph.engine.values import NO_UNIT, Number, Quantity, Time

_NUMBER: Final = re.compile(
    r"(?P<money>[$£€¥])?(?:(?P<groups>[1-9]\d{0,2}(?:,\d{3}){1,4})|(?P<digits>0|[1-9]\d{0,14}))(?P<part>\.\d{1,9})?"
    r"(?P<unit>%| ?[a-z]{1,3})?(?P<mark>\[\w{1,9}\])?",
    re.ASCII,
).fullmatch
_DATE: Final = re.compile(r"(?:([A-Z][a-z]{2,8}) (\d{1,2}),|(\d{1,2}) ([A-Z][a-z]{2,8})) (\d{4})", re.ASCII).fullmatch
_CLOCK: Final = re.compile(r"(\d{1,2}):([0-5]\d)(?::([0-5]\d))?", re.ASCII).fullmatch
_NAMES: Final = "January February March April May June July August September October November December"
_MONTHS: Final = {name: number for number, full in enumerate(_NAMES.split(), 1) for name in (full, full[:3])}
#: Words behind a number that may be more than its unit: ordinals, halves of the day, and the s of a
#: decade.
_DOUBTFUL: Final = frozenset(("s", "st", "nd", "rd", "th", "am", "pm"))
#: The constructor of a named tuple is a function of Python, this one is not.
_new: Final = tuple.__new__


def quick(text: str) -> tuple[Reading, ...] | None:
    """Every reading of a text whose white space is collapsed; None where that takes a longer look.

    >>> quick("$1,234.50"), quick("12 apples")
    ((Reading(family='number', tag='comma', value=Quantity(number=1234.5, unit='$'), note='¤'),), None)
    """
    found = _NUMBER(text)
    if found is not None:
        return _number(found)
    found = _DATE(text)
    if found is not None:
        before, first, second, after, year = found.groups()
        month = _MONTHS.get(before or after)
        # Every month has 28 days.
        if month is None or not 1 <= (day := int(first or second)) <= 28:
            return None
        return (_new(Reading, ("time", "time", Time.day(int(year), month, day), "")),)
    found = _CLOCK(text)
    return None if found is None else _clock(*found.groups())


def _number(found: re.Match[str]) -> tuple[Reading, ...] | None:
    money, groups, digits, part, unit, mark = found.groups()
    if len(found[0]) - len(mark or "") == 4:
        return None  # perhaps a year
    if len(found[0]) - len(mark or "") == 8 and digits and len(digits) == 8:
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
        one = _new(Reading, ("number", "comma", Quantity(number, unit), note))
        if part or len(groups) > 7:
            return (one,)
        # One comma: it may stand before decimals.
        note = "" if note in LISTS else note
        return one, _new(Reading, ("number", "eu", Quantity(float(groups.replace(",", ".")), unit), note))
    if part is None:
        return (_new(Reading, ("number", "num", Quantity(int(digits), unit), note)),)
    if (len(part) == 4 and len(digits) < 4) or len(digits) + len(part) > 16:
        return None  # perhaps a point between thousands; or more digits than a float keeps
    return (_new(Reading, ("number", "en", Quantity(float(digits + part), unit), note)),)


def _clock(first: str, second: str, third: str | None) -> tuple[Reading, ...]:
    total = int(first) * 60 + int(second)
    note = ("3" if third else "2") + ("r" if second[1] in "05" else "")
    duration = total * 60 + int(third) if third else total
    one = _new(Reading, ("clock", "dur", Quantity(duration, SECOND), note))
    if int(first) > 23:
        return (one,)
    return one, _new(Reading, ("clock", "tod", Quantity(duration if third else total * 60, SECOND_OF_DAY), ""))
