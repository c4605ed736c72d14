"""The period that a query asks about: a time, or the interval between two."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Final, Literal, TypeAlias

from condgraph.engine.errors import OptionError
from condgraph.engine.reading.times import read_time
from condgraph.engine.values import OPEN_END, OPEN_START, Precision, Time

#: Accepted forms of a time: "1984", "1984-05-03", 1984, a Python date, or a `Time`.
TimeLike: TypeAlias = str | int | date | Time
#: The longest text that is read as a time, in characters.
_MAX_LENGTH: Final = 100
_ISO_MONTH: Final = re.compile(r"\d{4}-\d{2}", re.ASCII)
_FORMS: Final = "a time is a year ('1984', '44 BC'), a month ('1984-05'), a day ('1984-05-03') or '1984-05-03T12:00:00'"


@dataclass(frozen=True, slots=True)
class Period:
    """The interval of a query, and whether statements must certainly hold in all of it."""

    interval: Time
    certain: bool = False

    @classmethod
    def of(cls, at: TimeLike | Period | None, between: Sequence[TimeLike | None] | None, certain: bool) -> Period | None:
        """Return the period from the options of a query, None if they have none.

        Raises `OptionError` for invalid times, for both `at` and `between`, for an end before its start, and for
        `certain` without a time.
        """
        if isinstance(at, Period):
            if between is not None or certain:
                raise OptionError(f"the time is {at} already", hint="name the other time alone")
            return at
        if at is not None and between is not None:
            raise OptionError(
                "at and between are two ways to name a time", hint="give one of them: at='1984', or between=('1980', '1990')"
            )
        if at is not None:
            return cls(time_of(at, "at"), bool(certain))
        if between is None:
            if certain:
                raise OptionError("certain=True needs a time", hint="name it: at='1984', or between=('1980', '1990')")
            return None
        if not isinstance(between, list | tuple) or len(between) != 2:
            raise OptionError(f"between is two times, not {_short(between)}", hint="between=('1980', '1990')")
        first, last = (None if end is None or end == "" else time_of(end, "between") for end in between)
        if first is None and last is None:
            raise OptionError("between has no time", hint="between=('1980', '1990'); one of them may be None")
        start, end = OPEN_START if first is None else first.start, OPEN_END if last is None else last.end
        if start >= end or (first is not None and last is not None and first.start > last.start):
            raise OptionError(
                f"between ends before it starts: {between[0]} is after {between[1]}",
                hint=f"the earlier time comes first: between=({str(between[1])!r}, {str(between[0])!r})",
            )
        return cls(first if first == last and first is not None else Time(start, end, Precision.SPAN), bool(certain))

    @property
    def relation(self) -> Literal["may", "must"]:
        """The relation that the validity of a statement must have to the interval (`algebra.During`)."""
        return "must" if self.certain else "may"

    def __str__(self) -> str:
        return f"{self.interval}, for certain" if self.certain else str(self.interval)


def time_of(value: object, option: str) -> Time:
    """Return a time from a user's option; raise `OptionError` if it is invalid or ambiguous."""
    if isinstance(value, Time):
        return value
    if isinstance(value, datetime):
        return Time.parse(value.replace(microsecond=0).isoformat())
    if isinstance(value, date):
        return Time.day(value.year, value.month, value.day)
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or len(value) > _MAX_LENGTH:
        raise OptionError(f"{option}={_short(value)} is not a time", hint=_FORMS)
    try:
        return Time.parse(value)
    except ValueError as error:
        # In tables 1984-85 means two years; in an option it is as likely a mistake.
        if _ISO_MONTH.fullmatch(value.strip()):
            years = f"between=({value.strip()[:4]!r}, ...)"
            raise OptionError(f"{option}={value!r} is not a time: {error}", hint=f"{years} is several years; {_FORMS}") from None
    readings = read_time(value.strip())
    if any(item.tag == "short" for item in readings):
        raise OptionError(f"{option}={value!r} has a year of two digits", hint=f"write the year with four; {_FORMS}")
    times = {item.value for item in readings if isinstance(item.value, Time)}
    if not times:
        raise OptionError(f"{option}={value!r} is not a time", hint=_FORMS)
    if len(times) > 1:
        texts = [str(time) for time in sorted(times)]
        raise OptionError(f"{option}={value!r} may be {' or '.join(texts)}", candidates=texts, hint=_FORMS)
    return times.pop()


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _MAX_LENGTH else f"{text[:_MAX_LENGTH]}..."
