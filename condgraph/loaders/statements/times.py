"""Times as graph files write them: ISO forms, slashes, and `#` for digits that are not known."""

from __future__ import annotations

import re
from typing import Final, Literal

from condgraph.engine.reading.times import read_time as cell_times
from condgraph.engine.values import UNKNOWN, Time, Unknown

_SLASHED: Final = re.compile(r"([+-]?\d{1,6})/(\d{1,2})/(\d{1,2})").fullmatch
_MASKED: Final = re.compile(r"([+-]?)([\d#]{1,12})(?:-(##|\d{1,2}))?(?:-(##|\d{1,2}))?").fullmatch
_YEAR_LIKE: Final = re.compile(r"[+-]?\d{1,5}", re.ASCII).fullmatch


def read_time(text: str) -> Time:
    """Read an ISO year, month, day or second, a day as YYYY/MM/DD, or a year with its era; raises
    ValueError saying what is wrong.

    >>> str(read_time("1984/12/30")), str(read_time("-0043")), str(read_time("44 BC"))
    ('1984-12-30', '-43', '-43')
    """
    slashed = _SLASHED(text.strip())
    if slashed:
        year, month, day = (int(part) for part in slashed.groups())
        return Time.day(year, month, day)
    if text.strip()[-1:] in ("C", "E", "D", "."):
        era = next((one.value for one in cell_times(text.strip()) if one.tag == "era"), None)
        if isinstance(era, Time):
            return era
    if "/" in text:
        raise ValueError(f"{text!r} is not a time")
    return Time.parse(text)


def read_bound(text: str) -> Time | Unknown | None:
    """Read one end of a validity: a time, `UNKNOWN` for `####`, None for an open end (empty or
    `-`).

    `2012-##-##` is the year, `1850-05-##` the month, `18##` the whole century. Raises ValueError
    for anything else, also for a known day in an unknown month.

    >>> str(read_bound("1850-05-##")), str(read_bound("18##-##-##")), read_bound("####-##-##"), read_bound("-")
    ('1850-05', '1800/1899', UNKNOWN, None)
    """
    text = text.strip()
    if text in ("", "-"):
        return None
    if "#" not in text:
        return read_time(text)
    found = _MASKED(text)
    if found is None:
        raise ValueError(f"{text!r} is not a time")
    sign, year, month, day = found.groups()
    unknown_month = month in (None, "##")
    unknown_day = day in (None, "##")
    digits = year.rstrip("#")
    if "#" in digits:
        raise ValueError(f"{text!r} has unknown digits before known ones")
    if unknown_month and not unknown_day:
        raise ValueError(f"{text!r} has a day and no month")
    if not digits:
        if sign or not unknown_month:
            raise ValueError(f"{text!r} has no year")
        return UNKNOWN
    if len(digits) == len(year):
        whole = int(sign + year)
        if unknown_month:
            return Time.year(whole)
        return Time.month(whole, int(month)) if unknown_day else Time.day(whole, int(month), int(day))
    if not unknown_month:
        raise ValueError(f"{text!r} has a month and no exact year")
    missing = len(year) - len(digits)
    ends = sorted(int(sign + digits + filler * missing) for filler in "09")
    return Time.span(Time.year(ends[0]), Time.year(ends[1]))


def bound_kind(text: str) -> Literal["time", "open", "signed", "small", ""]:
    """What a field could be as one end of a validity: a time, an open end, a number of one or two
    digits with or without a sign (a year perhaps), or nothing of the kind.
    """
    text = text.strip()
    if text in ("", "-"):
        return "open"
    if _YEAR_LIKE(text) and len(text.lstrip("+-")) < 3:
        return "signed" if text[0] == "-" else "small"
    try:
        read_bound(text)
    except ValueError:
        return ""
    return "time"


def looks_like_bound(text: str) -> bool:
    """Whether a field could be one end of a validity: used to recognise files, so open ends count
    and bare small numbers do not.
    """
    return bound_kind(text) in ("time", "open")
