"""Read dates, ranges, durations and times of day in cells.

The tags of the readings; the column decides if a cell has several (`loaders.table.column_types.Profile`):

- `year`    four digits from 1000 to 2100 alone: a year, or a number
- `iso`     a day as ISO 8601 writes it; `basic` without hyphens, which is a number of eight digits as well
- `time`    an unambiguous date, month, year with its era, decade or range
- `era`     a year with its era: 44 BC
- `short`   a day whose year has two digits, in the hundred years from `FIRST_SHORT`; taken only where times are declared
- `season`  2004-05 or 2004/05 as two years (the note `next` where the second follows the first, `edtf` where another standard
  has a season of one year: 2004-21), `month` as May 2004; only a bare hyphen is also how a month is written
- `second`  a date with its time of day; `cut` if it has a fraction of a second, which is cut off
- `day0` `second0`  a date with the time 00:00:00, as a day and as a second
- `dur` `tod`  a duration in seconds, and a time of day in seconds since midnight. The note of a duration says
  whether it has "2" or "3" parts, and "r" where the second is a multiple of five. The note of a time of day is its zone.
- `period`  a duration as ISO 8601 writes it (PT1H30M, P1Y2M), in seconds or in months (`read_duration`)
- `ratio`   two numbers with a colon that are not a clock time (3:2); a column with such cells has no durations

The note `dmy` or `mdy` tells whether the day or the month comes first in 03/05/2010; a day after the
12th rules one of them out.
"""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

from condgraph.engine.reading.numbers import Reading
from condgraph.engine.temporal import duration_parts
from condgraph.engine.values import DAY_SECONDS, Precision, Quantity, Time, as_number, parse_number

SECOND: Final = "second"
SECOND_OF_DAY: Final = "second of the day"
MONTH: Final = "month"
FIRST_YEAR: Final = 1000
LAST_YEAR: Final = 2100
#: Years of two digits are in the hundred years from here.
FIRST_SHORT: Final = 1970

_SHORT_MONTHS: Final = re.findall("...", "janfebmaraprmayjunjulaugsepoctnovdec")
_MONTHS: Final = {name: n for n, name in enumerate(_SHORT_MONTHS, 1)}
_MONTH: Final = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\.?"
)
_DAY: Final = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR: Final = r"(?P<year>\d{4})"
_FLAGS: Final = re.ASCII | re.IGNORECASE
_LETTER: Final = re.compile("[A-Za-z]").search
_YEARS: Final = re.compile(r"(\d{4})\s?[-–—]\s?(\d{4})", re.ASCII)
_HAS_YEAR: Final = re.compile(r"\d{4}", re.ASCII).search
_DAY_YEAR: Final = re.compile(rf"{_DAY},\s?{_YEAR}", _FLAGS)
_WORDS: Final = tuple(
    re.compile(pattern, _FLAGS)
    for pattern in (
        rf"{_MONTH}\s?{_DAY}(?:,\s?|\s){_YEAR}",
        rf"{_DAY}(?:\s(?:of\s)?|-|\.\s?){_MONTH}(?:,\s?|\s|-){_YEAR}",
        rf"{_MONTH},?[\s-]{_YEAR}",
        rf"{_YEAR}[\s-]{_MONTH}(?:[\s-]{_DAY})?",
    )
)
#: A month, with or without a day, whose year is at the other end of a range.
_YEARLESS: Final = tuple(re.compile(pattern, _FLAGS) for pattern in (rf"{_MONTH}(?:\s{_DAY})?", rf"{_DAY}\s{_MONTH}"))
_WEEKDAY: Final = re.compile(r"(?:mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:day)?\.?,?\s", _FLAGS)
_ISO_DAY: Final = re.compile(r"(\d{4})-(\d{2})-(\d{2})", re.ASCII)
_YEAR_FIRST: Final = re.compile(r"(\d{4})([/.])(\d{1,2})\2(\d{1,2})", re.ASCII)
_NUMERIC: Final = re.compile(r"(\d{1,2})([/.-])(\d{1,2})\2(\d{4})", re.ASCII)
_BASIC_SECOND: Final = re.compile(r"(\d{4})(\d{2})(\d{2})T(\d{2})(\d{2})(?:(\d{2}))?(Z)?", re.ASCII)
_SHORT: Final = re.compile(r"(\d{1,2})([/.-])(\d{1,2})\2(\d{2})", re.ASCII)
_SHORT_WORDS: Final = re.compile(rf"{_DAY}[-\s.]{_MONTH}[-\s](?P<year>'?\d{{2}})", _FLAGS)
_MONTH_YEAR: Final = re.compile(r"(\d{1,2})/(\d{4})", re.ASCII)
_TWO_YEARS: Final = re.compile(r"(\d{4})(\s?[-–—/]\s?)(\d{2})", re.ASCII)
_ERA: Final = re.compile(
    r"(?:(?P<ad>AD|BC)\s?(?P<n>\d{1,4})|(?P<m>\d{1,4})\s?(?P<era>(?i:BCE?)|CE|AD|B\.C\.(?:E\.)?|A\.D\.))", re.ASCII
)
#: Spring to winter of a year, where a month would be, in the Extended Date/Time Format.
_EDTF: Final = frozenset(("21", "22", "23", "24"))
_DECADE: Final = re.compile(r"(\d{3}0)'?s", re.ASCII)
_AGE: Final = re.compile(r"\s?\((?:aged?\s\d{1,3}|#\d+)\)$")
_DASH: Final = re.compile(r"\s?[–—]\s?|\s-\s?|-\s|\sto\s|(?<=\d)-(?=\d{4}$|[a-z]|\d{1,2},?\s)|-$", re.IGNORECASE)
_NOW: Final = frozenset(("present", "now", "today", "current", "date", ""))

_CLOCK: Final = re.compile(r"([+-]\s?)?(\d{1,4}):(\d{2})(?::(\d{2}))?(?:[.,](\d{1,9}))?", re.ASCII)
_HALF_DAY: Final = re.compile(r"(\d{1,2})(?::(\d{2})(?::(\d{2}))?)?\s?([ap])\.?m\.?(?:\s\(?([A-Z]{2,4})\)?)?", _FLAGS)
#: Seconds of the parts of a duration that are always the same.
_FIXED: Final = {"weeks": 7 * DAY_SECONDS, "days": DAY_SECONDS, "hours": 3600, "minutes": 60, "seconds": 1}
#: Days and moments before Christ, as PostgreSQL prints them.
_BEFORE: Final = re.compile(r"(\d{4,6})-(\d\d)-(\d\d)(?: ([01]\d|2[0-3]):([0-5]\d):([0-5]\d))? BC", re.ASCII)
#: Digits of a part of a duration before and after the point.
_WHOLE_DIGITS, _DECIMALS = 19, 9
_RATIO: Final = re.compile(r"\d+\s?:\s?\d+", re.ASCII)
_DAY_CLOCK: Final = re.compile(
    r"(?P<date>.{6,24}?)(?:T|,?\s|,\s?at\s|\sat\s)(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,](?P<part>\d{1,9}))?)?"
    r"\s?(?:(?P<half>[ap])\.?m\.?)?\s?(?P<zone>Z|UTC|GMT|[+-]\d{2}:?\d{2})?",
    _FLAGS,
)


#: How numbers are read that `digits_time` takes for moments.
EPOCHS: Final = "numbers of 9 or 10 digits are read as seconds, and of 12 or 13 as milliseconds, since 1970"


def epoch(text: str) -> bool:
    """Return whether `digits_time` reads a text as seconds or milliseconds since 1970."""
    return len(text) in (9, 10, 12, 13) and text.isascii() and text.isdecimal()


def digits_time(text: str) -> Time | None:
    """Read digits: 20240131, 20240131235959, or seconds or milliseconds since 1970 (from 1973 on); None for others.

    >>> str(digits_time("1577836800")), str(digits_time("1577836800999")), str(digits_time("20200101")), digits_time("2020")
    ('2020-01-01T00:00:00', '2020-01-01T00:00:00', '2020-01-01', None)
    """
    if epoch(text):
        start = int(text) // (1000 if len(text) > 10 else 1)
        return Time(start, start + 1, Precision.SECOND)
    if len(text) not in (8, 14) or not (text.isascii() and text.isdecimal()):
        return None
    clock = f"T{text[8:10]}:{text[10:12]}:{text[12:]}" if len(text) == 14 else ""
    try:
        return Time.parse(f"{text[:4]}-{text[4:6]}-{text[6:8]}{clock}")
    except ValueError:
        return None


def read_time(text: str) -> list[Reading]:
    """Return the time and clock readings of a cell, with white space collapsed and without footnote marks.

    >>> [(reading.note, str(reading.value)) for reading in read_time("03/05/2010")]
    [('dmy', '2010-05-03'), ('mdy', '2010-03-05')]
    >>> [(reading.tag, str(reading.value)) for reading in read_time("1999–2003")]
    [('time', '1999/2003')]
    """
    if len(text) == 4 and text.isdigit() and text.isascii():
        return [Reading("time", "year", Time.year(int(text)))] if FIRST_YEAR <= int(text) <= LAST_YEAR else []
    if len(text) == 8 and (day := basic_day(text)) is not None:
        return [Reading("time", "basic", day)]
    try:
        years = _YEARS.fullmatch(text)
        if years:
            first, last = _only_time(years[1]), _only_time(years[2])
            return _both(first, last)
        if _HAS_YEAR(text):
            return _point(text) or _with_clock(text) or _range(text) or _clock(text)
        return _era(text) or _short(text) or _clock(text)
    except ValueError:
        # An invalid day, or a range that ends before it begins, is not a time, whatever its shape.
        return []


def basic_day(text: str) -> Time | None:
    """Return the day of eight digits, YYYYMMDD; None if they are not one, or of an unusual year."""
    if not (text.isdigit() and text.isascii() and FIRST_YEAR <= int(text[:4]) <= LAST_YEAR):
        return None
    try:
        return Time.day(int(text[:4]), int(text[4:6]), int(text[6:]))
    except ValueError:
        return None


def _short(text: str) -> list[Reading]:
    """Return the reading of a day whose year has two digits."""
    match = _SHORT.fullmatch(text)
    if match is not None:
        readings = _numeric(int(match[1]), int(match[3]), _of_two(match[4]), match[2] == ".")
        return [reading._replace(tag="short") for reading in readings]
    match = _SHORT_WORDS.fullmatch(text)
    if match is None:
        return []
    month = _MONTHS[match["month"][:3].lower()]
    return [Reading("time", "short", Time.day(_of_two(match["year"][-2:]), month, int(match["day"])))]


def _of_two(digits: str) -> int:
    return FIRST_SHORT + (int(digits) - FIRST_SHORT) % 100


def _point(text: str) -> list[Reading]:
    if text[-1:] == ")":
        text = _AGE.sub("", text)
    if _LETTER(text):
        words = _words(text)
        if words is not None:
            return [_time_reading(words)]
        match = _DECADE.fullmatch(text)
        if match:
            return [_time_reading(Time.span(Time.year(int(match[1])), Time.year(int(match[1]) + 9)))]
        return _era(text)
    match = _ISO_DAY.fullmatch(text)
    if match:
        return [Reading("time", "iso", Time.day(int(match[1]), int(match[2]), int(match[3])))]
    match = _NUMERIC.fullmatch(text)
    if match:
        return _numeric(int(match[1]), int(match[3]), int(match[4]), match[2] == ".")
    match = _YEAR_FIRST.fullmatch(text)
    if match:
        return [_time_reading(Time.day(int(match[1]), int(match[3]), int(match[4])))]
    match = _TWO_YEARS.fullmatch(text)
    if match:
        return _two_years(int(match[1]), match[2], match[3])
    match = _MONTH_YEAR.fullmatch(text)
    if match:
        return [_time_reading(Time.month(int(match[2]), int(match[1])))]
    return []


def _era(text: str) -> list[Reading]:
    match = _ERA.fullmatch(text)
    if match is None:
        match = _BEFORE.fullmatch(text)
        if match is None:
            return []
        day = Time.day(1 - int(match[1]), int(match[2]), int(match[3]))
        start = day.start + sum(int(part or 0) * unit for part, unit in zip(match.groups()[3:], (3600, 60, 1), strict=True))
        moment = Reading("time", "second" if start > day.start else "second0", Time(start, start + 1, Precision.SECOND))
        if not match[4]:
            return [_time_reading(day)]
        return [moment] if start > day.start else [Reading("time", "day0", day), moment]
    year = int(match["n"] or match["m"])
    before = (match["era"] or match["ad"])[0] in "Bb"
    return [Reading("time", "era", Time.year(1 - year if before else year))] if year else []


def _time_reading(time: Time) -> Reading:
    return Reading("time", "time", time)


def _numeric(first: int, second: int, year: int, dotted: bool) -> list[Reading]:
    if dotted:
        # Dates with points have the day first.
        return [_time_reading(Time.day(year, second, first))]
    readings = []
    for tag, day, month in (("dmy", first, second), ("mdy", second, first)):
        try:
            readings.append(Reading("time", "time", Time.day(year, month, day), tag))
        except ValueError:
            continue
    if len(readings) == 2 and readings[0].value == readings[1].value:
        return [Reading("time", "time", readings[0].value)]
    return readings


def _two_years(first: int, dash: str, digits: str) -> list[Reading]:
    if not FIRST_YEAR <= first <= LAST_YEAR:
        return []
    last = first - first % 100 + int(digits)
    if last <= first:
        last += 100
    readings = []
    if last - first <= 60 and last <= LAST_YEAR:
        span = Time.span(Time.year(first), Time.year(last))
        edtf = "edtf" if dash == "-" and digits in _EDTF else ""
        readings.append(Reading("time", "season", span, "next" if last == first + 1 else edtf))
    if dash == "-" and 1 <= int(digits) <= 12:
        readings.append(Reading("time", "month", Time.month(first, int(digits))))
    return readings


def _words(text: str, year: str = "") -> Time | None:
    """Return a date with the month in letters; `year` is used if the text has none."""
    day_name = _WEEKDAY.match(text)
    if day_name:
        text = text[day_name.end() :]
    for pattern in _YEARLESS if year else _WORDS:
        match = pattern.fullmatch(text)
        if match:
            parts: dict[str, Any] = match.groupdict()
            in_year, month, day = int(parts.get("year") or year), _MONTHS[parts["month"][:3].lower()], parts.get("day")
            return Time.day(in_year, month, int(day)) if day else Time.month(in_year, month)
    return None


def _with_clock(text: str) -> list[Reading]:
    match = _DAY_CLOCK.fullmatch(text) if ":" in text else None
    if match is None:
        basic = _BASIC_SECOND.fullmatch(text)
        if basic is None:
            return []
        year, month, day, hours, minutes, seconds = (int(part or 0) for part in basic.groups()[:6])
        return [Reading("time", "second", Time.second(year, month, day, hours, minutes, seconds))]
    hour = _hour(int(match["hour"]), match["half"])
    readings: list[Reading] = []
    for point in _point(match["date"]):
        time = point.value
        if not isinstance(time, Time) or time.end - time.start != 86_400 or hour is None:
            continue
        if int(match["minute"]) > 59 or int(match["second"] or 0) > 59:
            continue
        zone = match["zone"] or ""
        start = time.start + hour * 3600 + int(match["minute"]) * 60 + int(match["second"] or 0)
        if zone[:1] in ("+", "-"):
            start -= (int(zone[1:3]) * 60 + int(zone[-2:])) * (-60 if zone[0] == "-" else 60)
        moment = Time(start, start + 1, Precision.SECOND)
        part = (match["part"] or "").strip("0")
        if start == time.start and not zone and not part:
            readings.append(Reading("time", "day0", time, point.note))
            readings.append(Reading("time", "second0", moment, point.note))
        else:
            readings.append(Reading("time", "cut" if part else "second", moment, point.note))
    return readings


def _hour(hour: int, half: str | None) -> int | None:
    """Return the hour of a 24-hour clock; None if it is invalid."""
    if half is None:
        return hour if hour < 24 else None
    return hour % 12 + (12 if half in "pP" else 0) if 1 <= hour <= 12 else None


def _range(text: str) -> list[Reading]:
    """Return the reading of a range of two times, of which only one may have the year or the month."""
    if text[-1:] == ")":
        text = _AGE.sub("", text)
    dashes = list(_DASH.finditer(text))
    if len(dashes) != 1:
        return []
    left, right = text[: dashes[0].start()].strip(), text[dashes[0].end() :].strip()
    first, last = _only_time(left), _only_time(right)
    if first is not None and (last is not None or right.lower() in _NOW):
        return [_time_reading(Time.span(first, last))]
    short = _DAY_YEAR.fullmatch(right)
    if short:
        # October 20-22, 1982
        return _both(_words(left, short["year"]), _words(f"{left.rpartition(' ')[0]} {short['day']}, {short['year']}"))
    if last is None or not right[-4:].isdigit():
        return []
    if left.isdigit() and len(left) <= 2:
        # 20-22 October 1982
        left += " " + right.partition(" ")[2][:-4].strip(" ,")
    return _both(_words(left, right[-4:]), last)


def _both(first: Time | None, last: Time | None) -> list[Reading]:
    return [] if first is None or last is None else [_time_reading(Time.span(first, last))]


def _only_time(text: str) -> Time | None:
    """Return an unambiguous time, or a year."""
    if len(text) == 4 and text.isdigit():
        return Time.year(int(text)) if FIRST_YEAR <= int(text) <= LAST_YEAR else None
    for reading in _point(text):
        if reading.tag in ("iso", "time", "era") and not reading.note and isinstance(reading.value, Time):
            return reading.value
    return None


def read_duration(text: str) -> Quantity | None:
    """Return an ISO 8601 duration as a quantity: in seconds, or in months if it has only years and months. None for a
    mixture, since a month has no fixed number of days, and for other texts.

    >>> read_duration("PT1H30M"), read_duration("P1Y2M"), read_duration("P1M3D"), read_duration("PT")
    (Quantity(number=5400, unit='second'), Quantity(number=14, unit='month'), None, None)
    """
    parts = duration_parts(text)
    if parts is None or any(part.adjusted() >= _WHOLE_DIGITS or _decimals(part) > _DECIMALS for part in parts.values()):
        return None
    exact = {name: Fraction(part) for name, part in parts.items()}
    months = exact.get("years", Fraction(0)) * 12 + exact.get("months", Fraction(0))
    fixed = [exact.get(name, Fraction(0)) for name in _FIXED]
    # Only the last part may have a fraction, and years and months may not.
    if any(part % 1 and any(fixed[position + 1 :]) for position, part in enumerate(fixed)) or any(
        _decimals(parts[name]) for name in ("years", "months") if name in parts
    ):
        return None
    if months:
        # Even parts that add up to 0 seconds rule out months alone.
        return None if any(fixed) else Quantity(int(months), MONTH)
    seconds = sum((part * size for part, size in zip(fixed, _FIXED.values(), strict=True)), Fraction(0))
    return Quantity(as_number(seconds), SECOND)


def _decimals(part: Decimal) -> int:
    return -int(part.as_tuple().exponent)


def _clock(text: str) -> list[Reading]:
    if text.lstrip("+-")[:1] == "P":
        period = read_duration(text)
        return [] if period is None else [Reading("clock", "period", period)]
    if ":" not in text and "m" not in text and "M" not in text:
        return []
    match = _CLOCK.fullmatch(text)
    if match:
        sign, first, second, third, part = match.groups()
        if int(second) > 59 or int(third or 0) > 59:
            return [Reading("clock", "ratio", text)]
        total = int(first) * 60 + int(second)
        total = total * 60 + int(third) if third else total
        number = parse_number(f"{total}.{part}" if part else str(total))
        note = ("3" if third else "2") + ("r" if int(second) % 5 == 0 else "")
        readings = [Reading("clock", "dur", Quantity(-number if sign and sign[0] == "-" else number, SECOND), note)]
        if int(first) < 24 and len(first) <= 2 and not sign and not part:
            readings.append(Reading("clock", "tod", Quantity(total if third else total * 60, SECOND_OF_DAY)))
        return readings
    half = _HALF_DAY.fullmatch(text)
    if half:
        hour = _hour(int(half[1]), half[4])
        if hour is None or int(half[2] or 0) > 59 or int(half[3] or 0) > 59:
            return []
        seconds = hour * 3600 + int(half[2] or 0) * 60 + int(half[3] or 0)
        return [Reading("clock", "tod", Quantity(seconds, SECOND_OF_DAY), half[5] or "")]
    return [Reading("clock", "ratio", text)] if _RATIO.fullmatch(text) else []
