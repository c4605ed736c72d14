"""Dates that stand as text: a format such as "%d/%m/%Y", as a regular expression that Python and
the server both take, and how the parts are taken out, in Python and in Cypher.

What does not match, or is a day that no calendar has, is no date, and never a failure: the server
only meets numbers that the expression has let through.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from condgraph.cypher.answer import literal
from condgraph.engine.errors import OptionError
from condgraph.engine.values import Precision, Time

ISO_DATE: Final = "%Y-%m-%d"
#: The form of text that is read as a moment where no format is given; it may have a fraction of a
#: second and a zone.
ISO_DATETIME: Final = "%Y-%m-%dT%H:%M:%S"
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_FULL: Final = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
#: What a directive matches: where something stands between it and the next, and where nothing does.
_LOOSE: Final = {
    "Y": "[0-9]{4}",
    "m": "(?:0?[1-9]|1[0-2])",
    "d": "(?:0?[1-9]|[12][0-9]|3[01])",
    "H": "(?:[01]?[0-9]|2[0-3])",
    "M": "[0-5]?[0-9]",
    "S": "[0-5]?[0-9]",
    "b": f"(?:{'|'.join(_MONTHS)})",
    "B": f"(?:{'|'.join(_FULL)})",
}
_STRICT: Final = {"Y": "[0-9]{4}", "m": "(?:0[1-9]|1[0-2])", "d": "(?:0[1-9]|[12][0-9]|3[01])"} | {
    "H": "(?:[01][0-9]|2[0-3])",
    "M": "[0-5][0-9]",
    "S": "[0-5][0-9]",
}
_WIDTH: Final = {"Y": 4, "m": 2, "d": 2, "H": 2, "M": 2, "S": 2}
_ISO_MOMENT: Final = (
    "[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])[T ](?:[01][0-9]|2[0-3]):[0-5][0-9]"
    r"(?::[0-5][0-9](?:\.[0-9]{1,9})?)?(?:Z|[+-](?:0[0-9]|1[0-8]):?[0-5][0-9])?"
)
_HINT: Final = "it has %Y and may have %m (or %b, %B), %d, %H, %M and %S, as in %d/%m/%Y"


@dataclass(frozen=True, slots=True)
class TimeFormat:
    """How a text is read as a time: `pattern` is what all of it has to match."""

    format: str
    #: Directives ("Y") in their order.
    directives: tuple[str, ...]
    pattern: str
    #: Characters that stand between the directives; none where `places` tell them apart.
    between: tuple[str, ...]
    places: tuple[int, ...]
    precision: Precision
    iso: bool = False

    # -- in Python ---------------------------------------------------------------------------------

    def read(self, text: str) -> Time | None:
        """The time that a text is; None where it is none."""
        if not re.fullmatch(self.pattern, text):
            return None
        try:
            return self._iso(text) if self.iso else self._parts(text)
        except ValueError:
            # A day that the month does not have.
            return None

    def _iso(self, text: str) -> Time:
        day, clock = Time.day(int(text[:4]), int(text[5:7]), int(text[8:10])), text[11:]
        seconds = int(clock[6:8]) if clock[5:6] == ":" else 0
        start = day.start + int(clock[:2]) * 3600 + int(clock[3:5]) * 60 + seconds - _shift(text)
        return Time(start, start + 1, Precision.SECOND)

    def _parts(self, text: str) -> Time:
        found = dict(zip(self.directives, self._split(text), strict=True))
        month = next((_number(name, found[name]) for name in "mbB" if name in found), 1)
        year, day = int(found["Y"]), int(found.get("d", 1))
        if self.precision is Precision.YEAR:
            return Time.year(year)
        if self.precision is Precision.MONTH:
            return Time.month(year, month)
        if self.precision is Precision.DAY:
            return Time.day(year, month, day)
        hour, minute, second = (int(found.get(name, 0)) for name in "HMS")
        return Time.second(year, month, day, hour, minute, second)

    def _split(self, text: str) -> list[str]:
        if self.between:
            return [part for part in re.split(f"[{re.escape(''.join(self.between))}]", text) if part]
        return [text[at : at + _WIDTH[name]] for at, name in zip(self.places, self.directives, strict=True)]

    # -- in Cypher ---------------------------------------------------------------------------------

    def start(self, text: str) -> str:
        """The first second of the time that a text expression is; null where it is none."""
        if self.iso:
            parts = {name: f"toInteger(substring(x, {at}, {width}))" for name, at, width in _PLACES}
            parts["S"] = "CASE WHEN substring(x, 16, 1) = ':' THEN toInteger(substring(x, 17, 2)) ELSE 0 END"
        elif self.between:
            parts = {name: _as_number(name, f"x[{at}]") for at, name in enumerate(self.directives)}
        else:
            placed = zip(self.places, self.directives, strict=True)
            parts = {name: f"toInteger(substring(x, {at}, {_WIDTH[name]}))" for at, name in placed}
        split = f"[x IN split({text}, [{', '.join(map(literal, self.between))}]) WHERE x <> '']" if self.between else text
        month = next((parts[name] for name in "mbB" if name in parts), "1")
        day = parts.get("d", "1")
        # Days are added to the first of the month, which never fails; what is then another month
        # was no day of this one.
        days = f"date({{year: {parts['Y']}, month: {month}}}) + duration({{days: {day} - 1}})"
        clock = "".join(f" + {seconds} * ({parts[name]})" for name, seconds in (("H", 3600), ("M", 60), ("S", 1)) if name in parts)
        shift = f" - ({_SHIFT})" if self.iso else ""
        return (
            f"CASE WHEN {text} =~ {literal(self.pattern)} THEN head([x IN [{split}] | head([d IN [{days}] "
            f"WHERE d.month = {month} | datetime({{date: d, timezone: 'Z'}}).epochSeconds{clock}{shift}])]) END"
        )

    def end(self, start: str) -> str:
        """The second behind the time that begins at a second, given as an expression."""
        if self.precision is Precision.SECOND:
            return f"{start} + 1"
        if self.precision is Precision.DAY:
            return f"{start} + 86400"
        unit = "years" if self.precision is Precision.YEAR else "months"
        return f"(datetime({{epochSeconds: {start}}}) + duration({{{unit}: 1}})).epochSeconds"


_PLACES: Final = (("Y", 0, 4), ("m", 5, 2), ("d", 8, 2), ("H", 11, 2), ("M", 14, 2))
#: Seconds that the zone at the end of `x` is ahead.
_SHIFT: Final = (
    "CASE WHEN x =~ '.{16,}[+-][0-9]{2}:?[0-9]{2}' THEN head([z IN [replace(substring(x, 16), ':', '')] | "
    "CASE WHEN z CONTAINS '-' THEN -60 ELSE 60 END * (60 * toInteger(left(right(z, 4), 2)) + toInteger(right(z, 2)))]) "
    "ELSE 0 END"
)


def _shift(text: str) -> int:
    if not re.fullmatch(".{16,}[+-][0-9]{2}:?[0-9]{2}", text):
        return 0
    zone = text[16:].replace(":", "")
    return (-60 if "-" in zone else 60) * (60 * int(zone[-4:-2]) + int(zone[-2:]))


def _number(name: str, part: str) -> int:
    if name == "m":
        return int(part)
    return (_MONTHS if name == "b" else _FULL).index(part) + 1


def _as_number(name: str, part: str) -> str:
    if name not in "bB":
        return f"toInteger({part})"
    names = _MONTHS if name == "b" else _FULL
    return f"{{{', '.join(f'{month}: {number}' for number, month in enumerate(names, 1))}}}[{part}]"


@lru_cache(maxsize=256)
def time_format(text: str, *, moment: bool = False) -> TimeFormat:
    """A format of `strptime`, of those directives that are the same in every language; raises
    `OptionError` for another one. `moment` says that it is that of a datetime.

    >>> str(time_format("%d/%m/%Y").read("7/08/2017")), time_format("%d/%m/%Y").read("31/02/2017")
    ('2017-08-07', None)
    """
    if moment and text == ISO_DATETIME:
        return TimeFormat(text, ("Y", "m", "d", "H", "M", "S"), _ISO_MOMENT, (), (), Precision.SECOND, iso=True)
    found = re.split(r"%(.)", text, flags=re.DOTALL)
    literals, directives = found[::2], tuple(found[1::2])
    wrong = next((name for name in directives if name not in _LOOSE), None)
    if wrong is not None:
        raise OptionError(f"the format {text!r} has %{wrong}, which is not read", hint=_HINT)
    if "Y" not in directives or len(set(directives)) < len(directives) or len(set(directives) & set("mbB")) > 1:
        raise OptionError(f"the format {text!r} needs each part once, and the year %Y", hint=_HINT)
    month = any(name in directives for name in "mbB")
    for part, before in (("S", "M"), ("M", "H"), ("H", "d")):
        if part in directives and before not in directives:
            raise OptionError(f"the format {text!r} has %{part} and no %{before}", hint=_HINT)
    if "d" in directives and not month:
        raise OptionError(f"the format {text!r} has %d and no month", hint=_HINT)
    named = any(name in directives for name in "bB")
    between = tuple(sorted(set("".join(literals))))
    if any(not 32 <= ord(c) < 127 for c in between):
        raise OptionError(f"the format {text!r} has a character that dates are not written with", hint=_HINT)
    loose = all(literals[1:-1]) and not any(c.isdigit() or (named and c.isalpha()) for c in between) and len(directives) > 1
    if named and not loose:
        raise OptionError(f"the format {text!r} has a month in words next to letters, digits or nothing", hint=_HINT)
    taken = _LOOSE if loose else _STRICT
    pattern = "".join(re.escape(one) + taken[name] for one, name in zip(literals, directives, strict=False)) + re.escape(
        literals[-1]
    )
    precision = Precision.SECOND if "H" in directives else Precision.DAY if "d" in directives else Precision.MONTH
    if not month:
        precision = Precision.YEAR
    places = tuple(
        len("".join(literals[: at + 1])) + sum(_WIDTH.get(name, 0) for name in directives[:at]) for at in range(len(directives))
    )
    return TimeFormat(text, directives, pattern, between if loose else (), places, precision)
