"""Literals of LLM queries as language models write them: "1,200", "$5 million", "3rd", "425 kg", "4:27", "March 8, 2003".

A literal has several readings; which of them count is decided by the types of the column it is compared with (`tests_for`).
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final

from condgraph.engine.algebra import Compare, Equals, Given, Operator, Test
from condgraph.engine.schema import Kinds
from condgraph.engine.units import conversions, fold_unit
from condgraph.engine.values import NO_UNIT, Kind, Number, Precision, Quantity, Time, Value, collapse, format_number, parse_number

#: Units of durations and of times of day, in which table cells like 4:27 and 7:30 PM are loaded.
SECOND: Final = "second"
SECOND_OF_DAY: Final = "second of the day"

_MONTHS: Final = {name: n for n, name in enumerate(re.findall("...", "janfebmaraprmayjunjulaugsepoctnovdec"), 1)}
_MONTH: Final = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\.?"
)
_DAY: Final = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_FLAGS: Final = re.ASCII | re.IGNORECASE
_DATES: Final = tuple(
    re.compile(pattern, _FLAGS)
    for pattern in (
        rf"(?:\w+day,? )?{_MONTH} ?{_DAY},? ?(?P<year>\d{{4}})",
        rf"(?:\w+day,? )?{_DAY}[ -](?:of )?{_MONTH},?[ -](?P<year>\d{{4}})",
        rf"{_MONTH},?[ -](?:of )?(?P<year>\d{{4}})",
        r"(?P<year>\d{4})[-/.](?P<m>\d{1,2})(?:[-/.](?P<day>\d{1,2}))?",
    )
)
_SLASHED: Final = re.compile(r"(\d{1,2})([/.-])(\d{1,2})\2(\d{4})", re.ASCII)
_RANGE: Final = re.compile(r"(\d{4}) ?(?:[-–—/]|to|until) ?(\d{4}|\d{1,2})", _FLAGS)
_ISO_SPAN: Final = re.compile(r"-?\d{4,}(?:-\d\d){0,2}/-?\d{4,}(?:-\d\d){0,2}", re.ASCII).fullmatch
_DECADE: Final = re.compile(r"(?:the )?(\d{3}0)'?s", _FLAGS)
_CLOCK: Final = re.compile(r"(\d{1,4}):([0-5]\d)(?::([0-5]\d))?(\.\d{1,9})?(?: ?([ap])\.?m\.?)?", _FLAGS)
_NUMBER: Final = re.compile(
    r"[~≈]? ?(?P<sign>[-+−])? ?(?P<money>(?:US|A|C|NZ|HK)?\$|[€£¥₹₩])? ?"
    r"(?P<digits>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)(?P<ordinal>st|nd|rd|th)?"
    r"(?: ?(?P<scale>hundred|thousand|million|billion|trillion)\b)?(?: ?(?P<unit>[^\d\s](?:.*[^.\s])?)\.?)?",
    _FLAGS,
)
_SCALES: Final = {"hundred": 2, "thousand": 3, "million": 6, "billion": 9, "trillion": 12}
_LEADING: Final = re.compile(r"[^\w+\-−]{0,3}([-+−]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?)(?![\d:])", re.ASCII)
_INNER: Final = re.compile(r"(?<![\w.,])[-−+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?![\w])", re.ASCII)


@dataclass(slots=True)
class Typed:
    """The tests that a literal becomes for a column, and remarks on how it was read."""

    tests: list[Test] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


def tests_for(operator: Operator, text: str, kinds: Kinds) -> Typed:
    """A test for each type and unit of a column that the literal can be read as; texts are not among them."""
    found = Typed()
    types = {kind for kind, _ in kinds}
    if Kind.TIME in types:
        found.tests.extend(Compare(operator, time) for time in read_times(text))
    if Kind.QUANTITY in types:
        units = {unit: count for (kind, unit), count in kinds.items() if kind is Kind.QUANTITY}
        found.tests.extend(Compare(operator, one) for one in quantities(text, units, found.remarks))
    return found


def quantities(text: str, units: dict[str, int], remarks: list[str]) -> list[Quantity]:
    """A literal as quantities in the units of a column; a bare number is taken in the unit that most of its values have."""
    clock = read_clock(text)
    if clock is not None:
        return [Quantity(clock[unit], unit) for unit in units if unit in clock]
    read = read_quantity(text)
    if read is None:
        return []
    if read.unit in units:
        return [read]
    worded = {unit: count for unit, count in units.items() if unit != NO_UNIT}
    if read.unit == NO_UNIT:
        unit = max(worded, key=lambda one: (worded[one], one))
        more = "" if len(worded) == 1 else f", the unit of most of {len(units)}"
        remarks.append(f"{text!r} is read as {Quantity(read.number, unit)}{more}")
        return [Quantity(read.number, unit)]
    same = [unit for unit in worded if fold_unit(unit) == fold_unit(read.unit)]
    if same:
        return [Quantity(read.number, unit) for unit in same]
    converted = conversions(read, list(worded))
    if converted:
        return converted
    if NO_UNIT in units:
        remarks.append(f"the unit of {text!r} is left out: the values it is compared with have none")
        return [Quantity(read.number)]
    return []


def read_quantity(text: str) -> Quantity | None:
    """A number with its unit (a word, a currency, a percent sign) as it was written; None where it is none.

    >>> str(read_quantity("$1.5 million")), str(read_quantity("3rd")), str(read_quantity("425 kg")), read_quantity("kg")
    ('1500000 $', '3', '425 kg', None)
    """
    found = _NUMBER.fullmatch(collapse(text))
    if found is None or (found["unit"] and (found["money"] or len(found["unit"]) > 30 or found["unit"][0] in "-–/:,([")):
        return None
    digits = found["digits"].replace(",", "")
    number: Number = parse_number(digits)
    if found["scale"]:
        number = parse_number(format_number(Decimal(f"{digits}e{_SCALES[found['scale'].casefold()]}")))
    if (found["sign"] or "+") in "-−":
        number = -number
    return Quantity(number, found["money"] or found["unit"] or NO_UNIT)


def leading_number(text: str) -> Number | None:
    """The number a text begins with, but for a sign or a mark: "1,200 (estimate)" is 1200; None where it begins otherwise."""
    found = _LEADING.match(text)
    return None if found is None else parse_number(found[1].replace(",", "").replace("−", "-"))


def inner_number(text: str) -> Quantity | None:
    """The only number in a text: "Round 7" is 7; None where there are none or several."""
    found = _INNER.findall(text)
    if len(found) != 1:
        return None
    return Quantity(parse_number(found[0].replace(",", "").replace("−", "-").lstrip("+")))


def read_clock(text: str) -> dict[str, Number] | None:
    """A duration in seconds and a time of day in seconds since midnight, by unit: 4:27, 1:02:03.5, 7:30 PM; None for others."""
    found = _CLOCK.fullmatch(text.strip())
    if found is None:
        return None
    first, second, third, part, half = found.groups()
    whole = int(first) * 60 + int(second)
    if third:
        whole = whole * 60 + int(third)
    clock: dict[str, Number] = {}
    if not half:
        clock[SECOND] = parse_number(f"{whole}{part or ''}")
    hour = int(first)
    if half:
        hour = hour % 12 + (12 if half in "pP" else 0)
    if hour < 24 and not part:
        clock[SECOND_OF_DAY] = hour * 3600 + int(second) * 60 + int(third or 0)
    return clock


def read_times(text: str) -> list[Time]:
    """A literal as times: ISO forms, months in words, decades, ranges of years; both readings of 3/5/2010.

    >>> [str(time) for time in read_times("March 8, 2003")], [str(time) for time in read_times("1999-2003")]
    (['2003-03-08'], ['1999/2003'])
    """
    text = collapse(text)
    ranged = _RANGE.fullmatch(text)
    if ranged is not None:
        last = ranged[1][: -len(ranged[2])] + ranged[2] if len(ranged[2]) < 4 else ranged[2]
        # 2004-05 may be a month; only a column says so, and its cells are found by their text.
        if int(ranged[1]) < int(last):
            return [Time.span(Time.year(int(ranged[1])), Time.year(int(last)))]
    # An interval needs whole years on both sides: 2006/7 and 11/25/2013 are none.
    if "/" not in text or _ISO_SPAN(text):
        with suppress(ValueError):
            return [Time.parse(text)]
    decade = _DECADE.fullmatch(text)
    if decade is not None:
        return [Time.span(Time.year(int(decade[1])), Time.year(int(decade[1]) + 9))]
    for pattern in _DATES:
        found = pattern.fullmatch(text)
        if found is not None:
            parts = found.groupdict()
            month = int(parts["m"]) if parts.get("m") else _MONTHS[parts["month"][:3].casefold()]
            with suppress(ValueError):
                year = int(parts["year"])
                return [Time.day(year, month, int(parts["day"])) if parts.get("day") else Time.month(year, month)]
            return []
    slashed = _SLASHED.fullmatch(text)
    times: list[Time] = []
    if slashed is not None:
        for first, second in ((1, 3), (3, 1)):
            with suppress(ValueError):
                time = Time.day(int(slashed[4]), int(slashed[second]), int(slashed[first]))
                if time not in times:
                    times.append(time)
    return times


def exactly(value: Value) -> Test:
    """A test for a value that a cell was found to have: the same interval, where `=` would also take what lies within it."""
    if isinstance(value, Time) and value.precision is Precision.SPAN:
        return Equals(Given((value,)))
    return Compare("=", value)
