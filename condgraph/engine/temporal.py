"""Times of day, datetimes and durations to the nanosecond, for expressions. A date is a `values.Time` of a day.

Fields, ISO 8601 forms, truncation and arithmetic follow Cypher's temporal types: a duration has months, days and
seconds, which are not converted into each other.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache, total_ordering
from typing import Any, Final, TypeAlias
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from condgraph.engine.errors import LiteralError, shortened
from condgraph.engine.values import DAY_SECONDS, OPEN_START, UNKNOWN_END, Precision, Time, civil, days_in_month, exact

NANOS: Final = 1_000_000_000
DAY_NANOS: Final = DAY_SECONDS * NANOS
#: Seconds of an average month, for converting fractions of months to days.
_MONTH_SECONDS: Final = 2_629_746


@dataclass(frozen=True, slots=True, order=True)
class LocalTime:
    """A time of day without a zone: nanoseconds from midnight."""

    nanos: int

    def __str__(self) -> str:
        return _clock_text(self.nanos)


@total_ordering
@dataclass(frozen=True, slots=True)
class ZonedTime:
    """A time of day with the offset of its zone in seconds."""

    nanos: int
    offset: int

    @property
    def instant(self) -> int:
        """Nanoseconds from midnight in UTC."""
        return self.nanos - self.offset * NANOS

    def __lt__(self, other: ZonedTime) -> bool:
        return (self.instant, self.offset) < (other.instant, other.offset)

    def __str__(self) -> str:
        return _clock_text(self.nanos) + _offset_text(self.offset)


@dataclass(frozen=True, slots=True, order=True)
class LocalDateTime:
    """A day, counted from 1970-01-01, and a time of day in nanoseconds, without a zone."""

    days: int
    nanos: int

    def __str__(self) -> str:
        return f"{day_of(self.days)}T{_clock_text(self.nanos)}"


@total_ordering
@dataclass(frozen=True, slots=True)
class ZonedDateTime:
    """A day and time of day in a zone: its offset in seconds and the name of its region, if it has one."""

    days: int
    nanos: int
    offset: int
    region: str | None = None

    @property
    def instant(self) -> int:
        """Nanoseconds from 1970-01-01 in UTC."""
        return self.days * DAY_NANOS + self.nanos - self.offset * NANOS

    def __lt__(self, other: ZonedDateTime) -> bool:
        return (self.instant, self.offset) < (other.instant, other.offset)

    def __str__(self) -> str:
        region = "" if self.region is None else f"[{self.region}]"
        return f"{day_of(self.days)}T{_clock_text(self.nanos)}{_offset_text(self.offset)}{region}"


@dataclass(frozen=True, slots=True)
class Duration:
    """Months, days, seconds, and 0 to 999,999,999 nanoseconds."""

    months: int
    days: int
    seconds: int
    nanos: int

    @classmethod
    def of(cls, months: Fraction | int = 0, days: Fraction | int = 0, seconds: Fraction | int = 0) -> Duration:
        """Build a duration from exact numbers: a fraction of a month becomes days, a fraction of a day becomes
        seconds.
        """
        whole_months = int(months)
        days = days + (months - whole_months) * Fraction(_MONTH_SECONDS, DAY_SECONDS)
        whole_days = int(days)
        seconds = seconds + (days - whole_days) * DAY_SECONDS
        return cls(whole_months, whole_days, *divmod(int(seconds * NANOS), NANOS))

    @property
    def order(self) -> tuple[int, int]:
        """The sort key of durations: the length in seconds, with average months, and the nanoseconds."""
        return self.months * _MONTH_SECONDS + self.days * DAY_SECONDS + self.seconds, self.nanos

    @property
    def total_nanos(self) -> int:
        """The seconds and nanoseconds, in nanoseconds."""
        return self.seconds * NANOS + self.nanos

    def __neg__(self) -> Duration:
        return Duration(-self.months, -self.days, *divmod(-self.total_nanos, NANOS))

    def plus(self, other: Duration) -> Duration:
        """Add two durations part by part."""
        nanos = self.total_nanos + other.total_nanos
        return Duration(self.months + other.months, self.days + other.days, *divmod(nanos, NANOS))

    def times(self, factor: Any, *, divided: bool = False) -> Duration:
        """Multiply by a number, or divide by it."""
        scale = _exact(factor)
        if divided:
            scale = 1 / scale
        return Duration.of(self.months * scale, self.days * scale, Fraction(self.total_nanos, NANOS) * scale)

    def __str__(self) -> str:
        years, months = _split(self.months, 12)
        text = "P" + "".join(f"{n}{unit}" for n, unit in ((years, "Y"), (months, "M"), (self.days, "D")) if n)
        minutes, nanos_left = _split(self.total_nanos, 60 * NANOS)
        hours, minutes = _split(minutes, 60)
        clock = "".join(f"{n}{unit}" for n, unit in ((hours, "H"), (minutes, "M")) if n)
        if nanos_left:
            seconds, nanos = _split(abs(nanos_left), NANOS)
            fraction = f".{nanos:09d}".rstrip("0") if nanos else ""
            clock += f"{'-' * (nanos_left < 0)}{seconds}{fraction}S"
        if clock:
            return f"{text}T{clock}"
        return text if len(text) > 1 else "PT0S"


Temporal: TypeAlias = Time | LocalTime | ZonedTime | LocalDateTime | ZonedDateTime
#: The types with `<` between values of the same type.
ORDERED: Final = frozenset((LocalTime, ZonedTime, LocalDateTime, ZonedDateTime))


def _split(number: int, by: int) -> tuple[int, int]:
    """Return quotient and remainder, both with the sign of the number."""
    quotient, remainder = divmod(abs(number), by)
    return (quotient, remainder) if number >= 0 else (-quotient, -remainder)


def _exact(number: Any) -> Fraction:
    if not abs(number) < math.inf:
        raise _literal_error(f"a duration has no part of {number}")
    return exact(number)


def day_of(days: int) -> Time:
    """Return the day with a number, counted from 1970-01-01."""
    return Time(days * DAY_SECONDS, (days + 1) * DAY_SECONDS, Precision.DAY)


def _clock_text(nanos: int) -> str:
    seconds, fraction = divmod(nanos, NANOS)
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}"
    if seconds % 60 or fraction:
        text += f":{seconds % 60:02d}"
    if fraction:
        digits = f"{fraction:09d}"
        text += "." + (digits[:3] if digits[3:] == "000000" else digits[:6] if digits[6:] == "000" else digits).rstrip("0")
    return text


def _offset_text(offset: int) -> str:
    if not offset:
        return "Z"
    size = abs(offset)
    seconds = f":{size % 60:02d}" if size % 60 else ""
    return f"{'-' if offset < 0 else '+'}{size // 3600:02d}:{size // 60 % 60:02d}{seconds}"


def _literal_error(what: str) -> LiteralError:
    return LiteralError(shortened(what, 300))


# -- Parts -------------------------------------------------------------------------------------------


def _day_number(year: int, month: int, day: int) -> int:
    try:
        return Time.day(year, month, day).start // DAY_SECONDS
    except ValueError as error:
        raise _literal_error(str(error)) from None


def weekday_of(days: int) -> int:
    """Return the weekday, 1 for Monday to 7 for Sunday; 1970-01-01 was a Thursday."""
    return (days + 3) % 7 + 1


def _week(days: int) -> tuple[int, int]:
    """Return the ISO year and week of a day."""
    thursday = days - weekday_of(days) + 4
    year = civil(thursday)[0]
    return year, (thursday - _day_number(year, 1, 1)) // 7 + 1


def _of_week(year: int, week: int, weekday: int) -> int:
    first = _day_number(year, 1, 4)
    last = _week(_day_number(year, 12, 28))[1]
    if not 1 <= week <= last or not 1 <= weekday <= 7:
        raise _literal_error(f"there is no day {weekday} of week {week} in {year}")
    return first - weekday_of(first) + 1 + (week - 1) * 7 + weekday - 1


def _day_part(value: Any) -> int | None:
    """Return the day of a value with a date, from 1970-01-01."""
    if isinstance(value, LocalDateTime | ZonedDateTime):
        return value.days
    if isinstance(value, Time):
        return value.start // DAY_SECONDS
    return None


def _clock_part(value: Any) -> int | None:
    """Return the nanoseconds of the day of a value with a time; 0 for a date."""
    if isinstance(value, LocalTime | ZonedTime | LocalDateTime | ZonedDateTime):
        return value.nanos
    if isinstance(value, Time):
        return value.start % DAY_SECONDS * NANOS
    return None


def _needed_day(value: Any) -> int:
    """Return the day of a value; raise `LiteralError` if it has no date."""
    if (day := _day_part(value)) is None:
        raise _literal_error(f"{value} has no date")
    return day


def _needed_clock(value: Any) -> int:
    """Return the nanoseconds of the day of a value; raise `LiteralError` if it has no time."""
    if (nanos := _clock_part(value)) is None:
        raise _literal_error(f"{value} has no time of day")
    return nanos


def interval(value: Any) -> Time | None:
    """Return a value as an interval of seconds: times, datetimes, and integers as years; None for others."""
    if type(value) is Time:
        return value
    if type(value) is int:
        try:
            return Time.year(value)
        except ValueError:
            return None
    if type(value) is LocalDateTime or type(value) is ZonedDateTime:
        start = (value.days * DAY_NANOS + value.nanos - (value.offset if isinstance(value, ZonedDateTime) else 0) * NANOS) // NANOS
        return Time(start, start + 1, Precision.SECOND)
    return None


_DATE_PARTS: Final[dict[str, Callable[[int], int]]] = {
    "year": lambda d: civil(d)[0],
    "quarter": lambda d: (civil(d)[1] + 2) // 3,
    "month": lambda d: civil(d)[1],
    "week": lambda d: _week(d)[1],
    "weekyear": lambda d: _week(d)[0],
    "day": lambda d: civil(d)[2],
    "ordinalday": lambda d: d - _day_number(civil(d)[0], 1, 1) + 1,
    "weekday": weekday_of,
    "dayofweek": weekday_of,
    "dayofquarter": lambda d: d - _day_number(civil(d)[0], (civil(d)[1] - 1) // 3 * 3 + 1, 1) + 1,
}
_CLOCK_PARTS: Final[dict[str, Callable[[int], int]]] = {
    "hour": lambda n: n // (3600 * NANOS),
    "minute": lambda n: n // (60 * NANOS) % 60,
    "second": lambda n: n // NANOS % 60,
    "millisecond": lambda n: n % NANOS // 1_000_000,
    "microsecond": lambda n: n % NANOS // 1000,
    "nanosecond": lambda n: n % NANOS,
}
_DURATION_PARTS: Final[dict[str, Callable[[Duration], int]]] = {
    "years": lambda d: _split(d.months, 12)[0],
    "quarters": lambda d: _split(d.months, 3)[0],
    "months": lambda d: d.months,
    "weeks": lambda d: _split(d.days, 7)[0],
    "days": lambda d: d.days,
    "hours": lambda d: _split(d.seconds, 3600)[0],
    "minutes": lambda d: _split(d.seconds, 60)[0],
    "seconds": lambda d: d.seconds,
    "milliseconds": lambda d: d.total_nanos // 1_000_000,
    "microseconds": lambda d: d.total_nanos // 1000,
    "nanoseconds": lambda d: d.total_nanos,
    "quartersofyear": lambda d: _split(d.months, 3)[0] % 4,
    "monthsofquarter": lambda d: _split(d.months, 3)[1],
    "monthsofyear": lambda d: _split(d.months, 12)[1],
    "daysofweek": lambda d: _split(d.days, 7)[1],
    "minutesofhour": lambda d: _split(d.seconds, 60)[0] % 60,
    "secondsofminute": lambda d: _split(d.seconds, 60)[1],
    "millisecondsofsecond": lambda d: d.nanos // 1_000_000,
    "microsecondsofsecond": lambda d: d.nanos // 1000,
    "nanosecondsofsecond": lambda d: d.nanos,
}
#: The least precision of times that have a part; otherwise the day.
_MIN_PRECISION: Final = {"year": Precision.YEAR, "quarter": Precision.MONTH, "month": Precision.MONTH}


def component(value: Any, name: str) -> Any:
    """Return a part of a time, datetime or duration by its name in Cypher; None if a time is not precise enough.
    Raises `KeyError` for a part that the value does not have.
    """
    key = name.casefold()
    if isinstance(value, Duration):
        return _DURATION_PARTS[key](value)
    if isinstance(value, Time):
        if key in ("start", "end") and value.precision is Precision.SPAN:
            moment = value.start if key == "start" else value.end - 1
            return None if moment <= OPEN_START or (value.end >= UNKNOWN_END and key == "end") else day_of(moment // DAY_SECONDS)
        if key in _DATE_PARTS:
            least = _MIN_PRECISION.get(key, Precision.DAY)
            return _DATE_PARTS[key](value.start // DAY_SECONDS) if value.precision >= least else None
        part = _CLOCK_PARTS[key]
        return part(value.start % DAY_SECONDS * NANOS) if value.precision is Precision.SECOND else None
    if isinstance(value, LocalDateTime | ZonedDateTime) and key in _DATE_PARTS:
        return _DATE_PARTS[key](value.days)
    if isinstance(value, ZonedTime | ZonedDateTime):
        if key == "timezone":
            return (value.region if isinstance(value, ZonedDateTime) else None) or _offset_text(value.offset)
        if key in ("offset", "offsetminutes", "offsetseconds"):
            return {"offset": _offset_text(value.offset), "offsetminutes": value.offset // 60}.get(key, value.offset)
        if isinstance(value, ZonedDateTime) and key in ("epochseconds", "epochmillis"):
            return value.instant // (NANOS if key == "epochseconds" else 1_000_000)
    if isinstance(value, LocalTime | ZonedTime | LocalDateTime | ZonedDateTime):
        return _CLOCK_PARTS[key](value.nanos)
    raise KeyError(name)


# -- Zones -------------------------------------------------------------------------------------------

_OFFSET: Final = re.compile(r"([+-])(\d{2})(?::?(\d{2})(?::?(\d{2}))?)?")


@lru_cache(maxsize=256)
def zone_info(name: str) -> ZoneInfo:
    """Return a time zone by its IANA name; raise `LiteralError` for an unknown one."""
    if len(name) > 60 or not re.fullmatch(r"[A-Za-z][\w+-]*(?:/[\w+-]+)*", name, re.ASCII):
        raise _literal_error(f"{name!r} is not a time zone")
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, OSError, ValueError):
        raise _literal_error(f"{name!r} is not a time zone, or its data is not installed") from None


def _offset_of(text: str) -> int | None:
    """Return the seconds of "Z" and "+01:00"; None for other texts."""
    if text in ("Z", "z"):
        return 0
    match = _OFFSET.fullmatch(text)
    if match is None:
        return None
    hours, minutes, seconds = (int(part or 0) for part in match.groups()[1:])
    if hours > 18 or minutes > 59 or seconds > 59:
        raise _literal_error(f"{text!r} is not an offset of a time zone")
    size = hours * 3600 + minutes * 60 + seconds
    return -size if match[1] == "-" else size


def _zoned(days: int, nanos: int, zone: str) -> ZonedDateTime:
    """Return a local day and time in a zone."""
    offset = _offset_of(zone)
    if offset is not None:
        return ZonedDateTime(days, nanos, offset)
    return ZonedDateTime(days, nanos, _region_offset(zone, days, nanos), zone)


def _region_offset(name: str, days: int, nanos: int) -> int:
    """Return the offset of a region at a local day and time, in seconds."""
    try:
        local = datetime(1970, 1, 1) + timedelta(days=days, seconds=nanos // NANOS)
    except OverflowError:
        # Python's calendar ends with the year 9999; the rules of zones repeat.
        local = datetime(2000 if days < 0 else 9996, 1, 1) + timedelta(days=days % 1461, seconds=nanos // NANOS)
    offset = local.replace(tzinfo=zone_info(name)).utcoffset()
    assert offset is not None
    return int(offset.total_seconds())


def _at_instant(instant: int, zone: str) -> ZonedDateTime:
    """Return a moment in a zone."""
    offset = _offset_of(zone)
    region = None
    if offset is None:
        region = zone
        try:
            moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=instant // NANOS)
            delta = moment.astimezone(zone_info(zone)).utcoffset()
            offset = 0 if delta is None else int(delta.total_seconds())
        except OverflowError:
            offset = _region_offset(zone, *divmod(instant, DAY_NANOS))
    return ZonedDateTime(*divmod(instant + offset * NANOS, DAY_NANOS), offset, region)


def _zone_of(value: Any) -> str | None:
    """Return the zone of a value as text; None if it has none."""
    if isinstance(value, ZonedDateTime):
        return value.region or _offset_text(value.offset)
    return _offset_text(value.offset) if isinstance(value, ZonedTime) else None


# -- From text ---------------------------------------------------------------------------------------

_DATE_TEXT: Final = re.compile(
    r"(?P<year>[+-]\d{4,12}|\d{4})(?:-?W(?P<week>\d{2})(?:-?(?P<weekday>\d))?|-?Q(?P<quarter>\d)(?:-?(?P<of_quarter>\d{2}))?"
    r"|-(?P<ordinal>\d{3})|(?P<ordinal2>\d{3})|-(?P<month>\d{2})(?:-(?P<day>\d{2}))?|(?P<month2>\d{2})(?P<day2>\d{2})?)?"
)
_CLOCK_TEXT: Final = re.compile(
    r"(?P<hour>\d{2})(?::(?P<minute>\d{2})(?::(?P<second>\d{2}))?|(?P<minute2>\d{2})(?P<second2>\d{2})?)?(?:[.,](?P<fraction>\d{1,9}))?"
    r"(?P<zone>Z|z|[+-]\d{2}(?::?\d{2}(?::?\d{2})?)?)?(?:\[(?P<region>[^\[\]]{1,60})\])?"
)


def _date_of_text(text: str) -> int:
    match = _DATE_TEXT.fullmatch(text)
    if match is None:
        raise _literal_error(f"{text!r} is not a date, such as 2015-07-21")
    part = match.groupdict()
    fields: dict[str, Any] = {
        "year": part["year"], "week": part["week"], "dayofweek": part["weekday"], "quarter": part["quarter"],
        "dayofquarter": part["of_quarter"], "ordinalday": part["ordinal"] or part["ordinal2"],
        "month": part["month"] or part["month2"], "day": part["day"] or part["day2"],
    }  # fmt: skip
    return _date_of_fields({name: int(value) for name, value in fields.items() if value is not None}, None)


def _clock_of_text(text: str) -> tuple[int, str | None]:
    match = _CLOCK_TEXT.fullmatch(text)
    if match is None:
        raise _literal_error(f"{text!r} is not a time of day, such as 21:40:32.142")
    hour = int(match["hour"])
    minute, second = (int(match[name] or match[f"{name}2"] or 0) for name in ("minute", "second"))
    if hour > 23 or minute > 59 or second > 59:
        raise _literal_error(f"{text!r} is not a time of day")
    nanos = (hour * 3600 + minute * 60 + second) * NANOS + int((match["fraction"] or "0").ljust(9, "0"))
    return nanos, match["region"] or match["zone"]


_DURATION_TEXT: Final = re.compile(
    r"(?P<sign>[+-])?P(?:(?P<years>[-+]?\d+(?:[.,]\d+)?)Y)?(?:(?P<months>[-+]?\d+(?:[.,]\d+)?)M)?(?:(?P<weeks>[-+]?\d+(?:[.,]\d+)?)W)?"
    r"(?:(?P<days>[-+]?\d+(?:[.,]\d+)?)D)?"
    r"(?:T(?:(?P<hours>[-+]?\d+(?:[.,]\d+)?)H)?(?:(?P<minutes>[-+]?\d+(?:[.,]\d+)?)M)?(?:(?P<seconds>[-+]?\d+(?:[.,]\d+)?)S)?)?",
    re.ASCII,
)
_DURATION_DATE: Final = re.compile(r"P(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2}):(\d{2}(?:[.,]\d{1,9})?)")
_MAX_LENGTH: Final = 200


def duration(value: Any) -> Duration:
    """Return a duration from ISO 8601 text (`P1Y2M10DT2H30M`) or from a map of its parts."""
    if isinstance(value, Duration):
        return value
    if isinstance(value, Mapping):
        return _duration_of(value)
    if not isinstance(value, str):
        raise _literal_error(f"a duration is made from a text or a map, not from {value!r}")
    text = value.strip()
    if len(text) <= _MAX_LENGTH and (dated := _DURATION_DATE.fullmatch(text)) is not None:
        names = ("years", "months", "days", "hours", "minutes", "seconds")
        return _duration_of({name: Decimal(part.replace(",", ".")) for name, part in zip(names, dated.groups(), strict=True)})
    parts = duration_parts(text)
    if parts is None:
        raise _literal_error(f"{value!r} is not a duration, such as P1Y2M10DT2H30M")
    return _duration_of(parts)


def duration_parts(text: str) -> dict[str, Decimal] | None:
    """Return the parts of an ISO 8601 duration (`P1Y2M10DT2H30M`), largest first, by their plural names; None for
    other text.

    >>> duration_parts("-PT1H1.5M")
    {'hours': Decimal('-1'), 'minutes': Decimal('-1.5')}
    """
    match = _DURATION_TEXT.fullmatch(text) if len(text) <= _MAX_LENGTH else None
    if match is None or text[-1] in "PT":
        return None
    parts = {name: Decimal(part.replace(",", ".")) for name, part in match.groupdict().items() if part and name != "sign"}
    return {name: part.copy_negate() for name, part in parts.items()} if match["sign"] == "-" else parts


_DURATION_FIELDS: Final[dict[str, tuple[int, int, int | Fraction]]] = {
    "years": (12, 0, 0), "quarters": (3, 0, 0), "months": (1, 0, 0), "weeks": (0, 7, 0), "days": (0, 1, 0),
    "hours": (0, 0, 3600), "minutes": (0, 0, 60), "seconds": (0, 0, 1),
    "milliseconds": (0, 0, Fraction(1, 1000)), "microseconds": (0, 0, Fraction(1, 10**6)),
    "nanoseconds": (0, 0, Fraction(1, 10**9)),
}  # fmt: skip


def _duration_of(fields: Mapping[str, Any]) -> Duration:
    months, days, seconds = Fraction(0), Fraction(0), Fraction(0)
    for name, value in fields.items():
        part = _DURATION_FIELDS.get(name.casefold())
        if part is None:
            raise _literal_error(f"a duration has no part {name!r}; it has {', '.join(_DURATION_FIELDS)}")
        if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
            raise _literal_error(f"the part {name!r} of a duration is a number, not {value!r}")
        amount = _exact(value)
        months, days, seconds = months + amount * part[0], days + amount * part[1], seconds + amount * part[2]
    return Duration.of(months, days, seconds)


# -- From maps ---------------------------------------------------------------------------------------

_DATE_FIELDS: Final = frozenset(
    ("year", "month", "day", "week", "dayofweek", "quarter", "dayofquarter", "ordinalday", "date", "datetime")
)
_CLOCK_FIELDS: Final = frozenset(("hour", "minute", "second", "millisecond", "microsecond", "nanosecond", "time", "datetime"))


def _fields_of(value: Mapping[str, Any], known: frozenset[str], what: str) -> dict[str, Any]:
    fields = {name.casefold(): part for name, part in value.items()}
    for name in value:
        if name.casefold() not in known:
            raise _literal_error(f"{what} has no part {name!r}; it has {', '.join(sorted(known))}")
    for name, part in fields.items():
        if name not in ("date", "time", "datetime", "timezone") and (isinstance(part, bool) or not isinstance(part, int)):
            raise _literal_error(f"the part {name!r} of {what} is an integer, not {part!r}")
    return fields


def _date_of_fields(fields: Mapping[str, Any], base: int | None) -> int:
    """Return a day from fields with lower-case names; missing parts are taken from `base`."""
    year: int
    if base is None and "year" not in fields:
        raise _literal_error("a date needs at least a year")
    if "week" in fields or ("dayofweek" in fields and base is not None):
        known_year, known_week = (fields.get("year"), 1) if base is None else _week(base)
        weekday = fields.get("dayofweek", 1 if base is None else weekday_of(base))
        return _of_week(fields.get("year", known_year), fields.get("week", known_week), weekday)
    year = fields["year"] if "year" in fields else civil(base or 0)[0]
    if "quarter" in fields or "dayofquarter" in fields:
        quarter = fields["quarter"] if "quarter" in fields else 1 if base is None else _DATE_PARTS["quarter"](base)
        if not 1 <= quarter <= 4:
            raise _literal_error(f"there is no quarter {quarter}")
        day = fields["dayofquarter"] if "dayofquarter" in fields else 1 if base is None else _DATE_PARTS["dayofquarter"](base)
        first = _day_number(year, quarter * 3 - 2, 1)
        following = _day_number(year + quarter // 4, quarter % 4 * 3 + 1, 1)
        if not 1 <= day <= following - first:
            raise _literal_error(f"there is no day {day} of quarter {quarter} in {year}")
        return first + day - 1
    if "ordinalday" in fields:
        first, day = _day_number(year, 1, 1), fields["ordinalday"]
        if not 1 <= day <= _day_number(year + 1, 1, 1) - first:
            raise _literal_error(f"there is no day {day} in {year}")
        return first + int(day) - 1
    known = (0, 1, 1) if base is None else civil(base)
    month = fields.get("month", known[1])
    return _day_number(year, month, fields.get("day", known[2]))


_LIMITS: Final = {"hour": 24, "minute": 60, "second": 60, "millisecond": 1000, "microsecond": 1_000_000, "nanosecond": NANOS}


def _clock_of_fields(fields: Mapping[str, Any], base: int | None) -> int:
    """Return the nanoseconds of a day from fields with lower-case names; missing parts are taken from `base`."""
    for name, limit in _LIMITS.items():
        if name in fields and not 0 <= fields[name] < limit:
            raise _literal_error(f"there is no {name} {fields[name]}")
    known = base or 0
    seconds = sum(
        fields.get(name, _CLOCK_PARTS[name](known)) * size for name, size in (("hour", 3600), ("minute", 60), ("second", 1))
    )
    fraction = known % NANOS
    parts = {"millisecond": fraction // 1_000_000, "microsecond": fraction // 1000 % 1000, "nanosecond": fraction % 1000}
    if "microsecond" in fields and "millisecond" not in fields and fields["microsecond"] > 999:
        parts["millisecond"] = 0
    if "nanosecond" in fields and fields["nanosecond"] > 999:
        parts = {name: 0 if name not in fields else size for name, size in parts.items()}
    sizes = {"millisecond": 1_000_000, "microsecond": 1000, "nanosecond": 1}
    return int(seconds * NANOS + sum(fields.get(name, parts[name]) * size for name, size in sizes.items()))


def _base_day(fields: Mapping[str, Any]) -> int | None:
    base = fields.get("date", fields.get("datetime"))
    return None if base is None else _needed_day(base)


def _clock_base(fields: Mapping[str, Any]) -> Any:
    base = fields.get("time", fields.get("datetime"))
    if base is not None:
        _needed_clock(base)
    return base


def date(value: Any) -> Time:
    """Return a date from ISO text, a map of its parts, or a value that has one."""
    if isinstance(value, str):
        return day_of(_date_of_text(value.strip()))
    if isinstance(value, Mapping):
        fields = _fields_of(value, _DATE_FIELDS, "a date")
        return day_of(_date_of_fields(fields, _base_day(fields)))
    return day_of(_needed_day(value))


def localtime(value: Any) -> LocalTime:
    """Return a time of day without a zone from text, a map, or a value that has one."""
    if isinstance(value, str):
        return LocalTime(_clock_of_text(value.strip())[0])
    if isinstance(value, Mapping):
        fields = _fields_of(value, _CLOCK_FIELDS, "a local time")
        return LocalTime(_clock_of_fields(fields, _clock_part(_clock_base(fields))))
    return LocalTime(_needed_clock(value))


def time(value: Any) -> ZonedTime:
    """Return a time of day with the offset of its zone, UTC by default, from text, a map, or a value that has one."""
    if isinstance(value, str):
        nanos, zone = _clock_of_text(value.strip())
        offset = _offset_of(zone or "Z")
        if offset is None:
            raise _literal_error(f"the zone of the time {value!r} is not an offset, such as +01:00")
        return ZonedTime(nanos, offset)
    if isinstance(value, Mapping):
        fields = _fields_of(value, _CLOCK_FIELDS | {"timezone"}, "a time")
        base = _clock_base(fields)
        zoned = _offset_at(base, fields.get("timezone"))
        return ZonedTime(_clock_of_fields(fields, None if base is None else zoned.nanos), zoned.offset)
    _needed_clock(value)
    return _offset_at(value, None)


def _offset_at(base: Any, zone: str | None) -> ZonedTime:
    """Return the time of day of a value (None: midnight) in a zone (None: its own, or UTC)."""
    own_zone = _zone_of(base)
    nanos = _clock_part(base) or 0
    if zone is not None and not isinstance(zone, str):
        raise _literal_error(f"a time zone is a text, not {zone!r}")
    if isinstance(base, ZonedTime):
        zoned = ZonedDateTime(0, nanos, base.offset)
    else:
        zoned = _zoned(_day_part(base) or 0, nanos, own_zone or zone or "Z")
    if zone is not None and own_zone is not None:
        zoned = _at_instant(zoned.instant, zone)
    return ZonedTime(zoned.nanos, zoned.offset)


def localdatetime(value: Any) -> LocalDateTime:
    """Return a datetime without a zone from text, a map, or a value with a date."""
    if isinstance(value, str):
        day, _, clock = value.strip().partition("T")
        return LocalDateTime(_date_of_text(day), _clock_of_text(clock)[0] if clock else 0)
    if isinstance(value, Mapping):
        fields = _fields_of(value, _DATE_FIELDS | _CLOCK_FIELDS, "a local datetime")
        days = _date_of_fields(fields, _base_day(fields))
        return LocalDateTime(days, _clock_of_fields(fields, _clock_part(_clock_base(fields))))
    return LocalDateTime(_needed_day(value), _needed_clock(value))


def zoned_datetime(value: Any) -> ZonedDateTime:
    """Return a datetime in a zone, UTC by default, from text, a map, or a value with a date."""
    if isinstance(value, str):
        return _datetime_of_text(value.strip())
    if isinstance(value, Mapping):
        return _datetime_of_map(value)
    return value if isinstance(value, ZonedDateTime) else ZonedDateTime(_needed_day(value), _needed_clock(value), 0)


def _datetime_of_text(text: str) -> ZonedDateTime:
    day, _, clock = text.partition("T")
    nanos, zone = _clock_of_text(clock) if clock else (0, None)
    zoned = _zoned(_date_of_text(day), nanos, zone or "Z")
    match = _CLOCK_TEXT.fullmatch(clock) if clock else None
    if match is not None and match["region"] and match["zone"]:
        # With both an offset and a region, the offset determines the moment.
        offset = _offset_of(match["zone"]) or 0
        return _at_instant(zoned.days * DAY_NANOS + zoned.nanos - offset * NANOS, match["region"])
    return zoned


def _datetime_of_map(value: Mapping[str, Any]) -> ZonedDateTime:
    epochs = {"epochseconds": NANOS, "epochmillis": 1_000_000}
    lowered = {name.casefold(): part for name, part in value.items()}
    for name, size in epochs.items():
        if name in lowered:
            parts = ((name, size), ("millisecond", 10**6), ("nanosecond", 1))
            return _at_instant(sum(_epoch(lowered.get(part, 0), part) * n for part, n in parts), lowered.get("timezone", "Z"))
    fields = _fields_of(value, _DATE_FIELDS | _CLOCK_FIELDS | {"timezone"}, "a datetime")
    base_day, clock_base = _base_day(fields), _clock_base(fields)
    own_zone, zone = _zone_of(clock_base), fields.get("timezone")
    if zone is not None and not isinstance(zone, str):
        raise _literal_error(f"a time zone is a text, not {zone!r}")
    day, nanos = _date_of_fields(fields, base_day), _clock_part(clock_base)
    if zone is not None and own_zone is not None and nanos is not None:
        # The moment is converted to the other zone before parts of its time are replaced.
        moved = _at_instant(_zoned(day, nanos, own_zone).instant, zone)
        day, nanos = moved.days, moved.nanos
    return _zoned(day, _clock_of_fields(fields, nanos), zone or own_zone or "Z")


def _epoch(value: Any, name: str) -> int:
    """Return an integer number of seconds, or of a part of them; a text or a list times a billion would fill the
    memory.
    """
    if type(value) is not int:
        raise _literal_error(f"{name!r} of a datetime is an integer, not {value!r}")
    return value


def from_epoch(seconds: Any, nanos: Any) -> ZonedDateTime:
    """Return a datetime in UTC from seconds and nanoseconds since 1970."""
    return _at_instant(_epoch(seconds, "seconds") * NANOS + _epoch(nanos, "nanoseconds"), "Z")


def from_epoch_millis(millis: Any) -> ZonedDateTime:
    """Return a datetime in UTC from milliseconds since 1970."""
    return _at_instant(_epoch(millis, "milliseconds") * 1_000_000, "Z")


#: The constructors of temporal values, by their names in Cypher.
MAKERS: Final[dict[str, Callable[[Any], Any]]] = {
    "date": date, "localtime": localtime, "time": time, "localdatetime": localdatetime, "datetime": zoned_datetime,
}  # fmt: skip


def now(kind: str, moment: int, zone: str | None = None) -> Any:
    """Return the value of a clock function (`MAKERS`) at a moment in nanoseconds, in a zone (None: UTC)."""
    return MAKERS[kind](_at_instant(moment, zone or "Z"))


# -- Truncation --------------------------------------------------------------------------------------


def first_day(unit: str, days: int) -> int:
    """Return the first day of the year, quarter, week or other unit that contains a day."""
    year, month, _ = civil(days)
    if unit in ("millennium", "century", "decade"):
        size = {"millennium": 1000, "century": 100, "decade": 10}[unit]
        return _day_number(year // size * size, 1, 1)
    if unit == "week":
        return days - weekday_of(days) + 1
    if unit == "weekyear":
        return _of_week(_week(days)[0], 1, 1)
    if unit == "day":
        return days
    return _day_number(year, {"year": 1, "quarter": (month - 1) // 3 * 3 + 1, "month": month}[unit], 1)


_DAY_UNITS: Final = ("millennium", "century", "decade", "year", "weekyear", "quarter", "month", "week", "day")
CLOCK_UNITS: Final = {
    "day": DAY_NANOS, "hour": 3600 * NANOS, "minute": 60 * NANOS, "second": NANOS, "millisecond": 1_000_000, "microsecond": 1000,
}  # fmt: skip


def truncate(kind: str, unit: Any, value: Any, fields: Any = None) -> Any:
    """Return a value as the type `kind` (`MAKERS`), truncated to a `unit` ("month"), with some parts replaced."""
    if not isinstance(unit, str) or (unit.casefold() not in _DAY_UNITS and unit.casefold() not in CLOCK_UNITS):
        raise _literal_error(f"{unit!r} is not a unit of time; they are {', '.join((*_DAY_UNITS, *list(CLOCK_UNITS)[1:]))}")
    if fields is not None and not isinstance(fields, Mapping):
        raise _literal_error(f"the parts to replace are a map, not {fields!r}")
    unit = unit.casefold()
    fields = dict(fields or {})
    days, nanos = _day_part(value), _clock_part(value)
    if kind in ("date", "localdatetime", "datetime") and days is None:
        raise _literal_error(f"{value} has no date")
    if kind in ("localtime", "time", "date") and (unit not in CLOCK_UNITS if kind != "date" else unit not in _DAY_UNITS):
        raise _literal_error(f"a {kind} is not truncated to a {unit}")
    if unit in _DAY_UNITS and days is not None:
        days = first_day(unit, days)
    nanos = 0 if unit in _DAY_UNITS else (nanos or 0) // CLOCK_UNITS[unit] * CLOCK_UNITS[unit]
    if kind == "date":
        return date({"date": day_of(days or 0)} | fields)
    if kind == "localtime":
        return localtime({"time": LocalTime(nanos)} | fields)
    zone = {name.casefold(): part for name, part in fields.items()}.get("timezone") or _zone_of(value) or "Z"
    if kind == "time":
        offset = zone if _offset_of(zone) is not None else _offset_text(_zoned(days or 0, nanos, zone).offset)
        return time({"time": LocalTime(nanos)} | fields | {"timezone": offset})
    parts = {"datetime": LocalDateTime(days or 0, nanos)} | fields
    return localdatetime(parts) if kind == "localdatetime" else zoned_datetime(parts | {"timezone": zone})


# -- Arithmetic --------------------------------------------------------------------------------------


def _plus_months(days: int, months: int) -> int:
    year, month, day = civil(days)
    year, month = year + (month - 1 + months) // 12, (month - 1 + months) % 12 + 1
    return _day_number(year, month, min(day, days_in_month(year, month)))


def add(a: Any, b: Any) -> Any:
    """Return the sum of a duration and a temporal value or duration; None for other types."""
    if isinstance(a, Duration) and not isinstance(b, Duration):
        a, b = b, a
    if not isinstance(b, Duration):
        return None
    if isinstance(a, Duration):
        return a.plus(b)
    if isinstance(a, LocalTime):
        return LocalTime((a.nanos + b.total_nanos) % DAY_NANOS)
    if isinstance(a, ZonedTime):
        return ZonedTime((a.nanos + b.total_nanos) % DAY_NANOS, a.offset)
    if isinstance(a, Time) and a.precision is not Precision.SECOND:
        if a.precision is not Precision.DAY:
            raise _literal_error(f"{a} is not a day that a duration can be added to")
        return day_of(_plus_months(a.start // DAY_SECONDS, b.months) + b.days + _split(b.seconds, DAY_SECONDS)[0])
    if isinstance(a, LocalDateTime | ZonedDateTime | Time):
        day, clock = _plus_months(_needed_day(a), b.months) + b.days, _needed_clock(a)
        if isinstance(a, ZonedDateTime):
            zone = _zone_of(a) or "Z"
            return _at_instant(_zoned(day, clock, zone).instant + b.total_nanos, zone)
        return LocalDateTime(*divmod(day * DAY_NANOS + clock + b.total_nanos, DAY_NANOS))
    return None


def _both(a: Any, b: Any) -> tuple[tuple[int, int, str], tuple[int, int, str], bool]:
    """Return two values as (day, nanoseconds, zone), in the zone of the first that has one, and whether both have
    dates. A value without a date takes the day of the other one, or 0.
    """
    days = _day_part(a), _day_part(b)
    clocks = _clock_part(a), _clock_part(b)
    for value, clock in ((a, clocks[0]), (b, clocks[1])):
        if clock is None:
            raise _literal_error(f"{value} has no date and no time of day")
    dated = None not in days
    zones = _zone_of(a), _zone_of(b)
    zone = zones[0] or zones[1] or "Z"
    # A time of day is taken to be on the day of the other value.
    day = next((known_day for known_day in days if known_day is not None), 0)
    first = day if days[0] is None else days[0], clocks[0] or 0, zone
    last = day if days[1] is None else days[1], clocks[1] or 0, zone
    if not dated and None in zones:
        return first, last, False
    if zones[0] is not None and zones[1] is not None:
        if dated:
            moved = _at_instant(_zoned(last[0], last[1], zones[1]).instant, zone)
            last = moved.days, moved.nanos, zone
        else:
            shift = _fixed(b) - _fixed(a)
            last = last[0], last[1] - shift * NANOS, zone
    return first, last, dated


def _fixed(value: Any) -> int:
    return int(getattr(value, "offset", 0))


def _instant(part: tuple[int, int, str], dated: bool) -> int:
    if not dated and _offset_of(part[2]) is not None:
        return part[0] * DAY_NANOS + part[1]
    return _zoned(*part).instant if 0 <= part[1] < DAY_NANOS else part[0] * DAY_NANOS + part[1]


def _months_between(first: tuple[int, int, str], last: tuple[int, int, str]) -> int:
    end = last[0]
    if end > first[0] and last[1] < first[1]:
        end -= 1
    elif end < first[0] and last[1] > first[1]:
        end += 1
    (y1, m1, d1), (y2, m2, d2) = civil(first[0]), civil(end)
    return _split(((y2 * 12 + m2) * 32 + d2) - ((y1 * 12 + m1) * 32 + d1), 32)[0]


def between(a: Any, b: Any) -> Duration:
    """Return the duration from one value to another in months, then days, then seconds; in seconds alone if either
    has no date.
    """
    first, last, dated = _both(a, b)
    if not dated:
        return Duration(0, 0, *divmod(_instant(last, False) - _instant(first, False), NANOS))
    months = _months_between(first, last)
    first = _plus_months(first[0], months), first[1], first[2]
    days = _split((last[0] - first[0]) * DAY_NANOS + last[1] - first[1], DAY_NANOS)[0]
    first = first[0] + days, first[1], first[2]
    return Duration(months, days, *divmod(_instant(last, True) - _instant(first, True), NANOS))


def in_months(a: Any, b: Any) -> Duration:
    """Return the complete months from one value to another."""
    first, last, dated = _both(a, b)
    return Duration(_months_between(first, last) if dated else 0, 0, 0, 0)


def in_days(a: Any, b: Any) -> Duration:
    """Return the complete days from one value to another."""
    first, last, dated = _both(a, b)
    return Duration(0, _split((last[0] - first[0]) * DAY_NANOS + last[1] - first[1], DAY_NANOS)[0] if dated else 0, 0, 0)


def in_seconds(a: Any, b: Any) -> Duration:
    """Return the seconds from one value to another."""
    first, last, dated = _both(a, b)
    return Duration(0, 0, *divmod(_instant(last, dated) - _instant(first, dated), NANOS))
