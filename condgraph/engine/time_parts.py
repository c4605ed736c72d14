"""Parts of times, truncation of times, and conversion to time zones."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

from condgraph.engine import temporal
from condgraph.engine.errors import LiteralError, OptionError, nearest
from condgraph.engine.operands import Inapplicable
from condgraph.engine.values import DAY_SECONDS, OPEN_START, Precision, Quantity, Time, civil

#: The units that a time can be truncated to.
TRUNCATIONS: Final = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
#: The precision that a time must have for each part; otherwise the second.
_EXACTLY: Final = {
    "year": Precision.YEAR,
    "quarter": Precision.MONTH,
    "month": Precision.MONTH,
    "week": Precision.DAY,
    "day": Precision.DAY,
    "weekday": Precision.DAY,
}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
#: The moments with known time zones: the years from 1 to 9999, less a day at each end.
_FIRST_MOMENT: Final = int((datetime(1, 1, 2, tzinfo=UTC) - _EPOCH).total_seconds())
_LAST_MOMENT: Final = int((datetime(9999, 12, 31, tzinfo=UTC) - _EPOCH).total_seconds())


def _begin(value: Time, what: str, name: str) -> tuple[int, int]:
    """Return the day in which a time begins, and the second of that day; raise `Inapplicable` if the time is not
    precise enough.
    """
    exactly = _EXACTLY.get(what, Precision.SECOND)
    known = value.start > OPEN_START and (value.precision is Precision.SPAN or value.precision >= exactly)
    if not known or (exactly is Precision.SECOND and value.precision is Precision.SPAN):
        raise Inapplicable(f"{name}: no {what} in the time")
    return divmod(value.start, DAY_SECONDS)


def part_of_time(value: Time, what: str, name: str) -> Quantity:
    """Return a part of the moment at which a time begins: weekdays count from Monday, which is 1, as in ISO 8601."""
    days, seconds = _begin(value, what, name)
    if what == "weekday":
        return Quantity(temporal.weekday_of(days))
    if what not in _EXACTLY:
        return Quantity({"hour": seconds // 3600, "minute": seconds // 60 % 60, "second": seconds % 60}[what])
    year, month, day = civil(days)
    return Quantity({"year": year, "quarter": (month + 2) // 3, "month": month, "day": day}[what])


def truncated(value: Time, unit: str, name: str) -> Time:
    """Return the year, month or day in which a time begins; the first day of its quarter or week (from Monday); the
    first second of its hour or minute.
    """
    days, seconds = _begin(value, unit, name)
    if unit not in _EXACTLY:
        start = value.start - seconds % (temporal.CLOCK_UNITS[unit] // temporal.NANOS)
        return Time(start, start + 1, Precision.SECOND)
    year, month, _ = civil(days)
    if unit in ("year", "month"):
        return Time.year(year) if unit == "year" else Time.month(year, month)
    return temporal.day_of(temporal.first_day(unit, days))


def zone_of(name: str) -> ZoneInfo:
    """Return a time zone by its IANA name; raise `OptionError` for an unknown one."""
    try:
        return temporal.zone_info(name)
    except LiteralError:
        known = sorted(available_timezones())
        similar = nearest(name, known)
        hint = f"like it: {', '.join(similar)}" if similar else "names are those of the IANA database, as in Europe/Berlin"
        raise OptionError(f"there is no time zone {name[:60]!r}", hint=hint) from None


def in_zone(value: Time, zone: str, name: str) -> Time:
    """Return a moment of UTC in the local time of a zone."""
    if value.precision is not Precision.SECOND:
        raise Inapplicable(f"{name}: no moment to the second")
    if not _FIRST_MOMENT <= value.start < _LAST_MOMENT:
        raise Inapplicable(f"{name}: no time zone is known for the year")
    offset = (_EPOCH + timedelta(seconds=value.start)).astimezone(zone_of(zone)).utcoffset()
    assert offset is not None
    start = value.start + int(offset.total_seconds())
    return Time(start, start + 1, Precision.SECOND)
