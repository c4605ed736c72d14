"""Properties of Neo4j as values of the engine, by the same table in Python and in Cypher; and formats of dates in text."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

from condgraph.cypher.answer import literal
from condgraph.cypher.layout.base import Field
from condgraph.cypher.native.mapping import Property
from condgraph.engine.errors import OptionError
from condgraph.engine.reading.times import MONTH, SECOND, SECOND_OF_DAY, read_duration
from condgraph.engine.row_times import last_before
from condgraph.engine.values import DAY_SECONDS, NO_UNIT, UNKNOWN, Kind, Precision, Quantity, Time, Value, parse_number, text_of

# -- Formats of dates --------------------------------------------------------------------------------
# Dates stored as text. A format such as "%d/%m/%Y" becomes a regular expression for both Python and the server, and expressions
# that take out the parts, in Python and in Cypher.
#
# Text that does not match, or is a day that does not exist, is no date, but never an error: the server only computes with
# numbers that the expression accepted.


ISO_DATE: Final = "%Y-%m-%d"
#: The default format of a datetime; the text may also have a fraction of a second and a zone.
ISO_DATETIME: Final = "%Y-%m-%dT%H:%M:%S"
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_FULL: Final = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
#: What a directive matches if something separates it from the next (loose), and if nothing does (strict).
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
    """How a text is read as a time: all of it must match `pattern`."""

    format: str
    #: Directives ("Y") in their order.
    directives: tuple[str, ...]
    pattern: str
    #: Characters between the directives; empty if `places` separate them.
    between: tuple[str, ...]
    places: tuple[int, ...]
    precision: Precision
    iso: bool = False

    # -- in Python ---------------------------------------------------------------------------------

    def read(self, text: str) -> Time | None:
        """Return the time that a text states, or None if it states none."""
        if not re.fullmatch(self.pattern, text):
            return None
        try:
            return self._iso(text) if self.iso else self._parts(text)
        except ValueError:
            # The month does not have this day.
            return None

    def _iso(self, text: str) -> Time:
        day, clock = Time.day(int(text[:4]), int(text[5:7]), int(text[8:10])), text[11:]
        seconds = int(clock[6:8]) if clock[5:6] == ":" else 0
        start = day.start + int(clock[:2]) * 3600 + int(clock[3:5]) * 60 + seconds - _shift(text)
        return Time(start, start + 1, Precision.SECOND)

    def _parts(self, text: str) -> Time:
        result = dict(zip(self.directives, self._split(text), strict=True))
        month = next((_number(name, result[name]) for name in "mbB" if name in result), 1)
        year, day = int(result["Y"]), int(result.get("d", 1))
        if self.precision is Precision.YEAR:
            return Time.year(year)
        if self.precision is Precision.MONTH:
            return Time.month(year, month)
        if self.precision is Precision.DAY:
            return Time.day(year, month, day)
        hour, minute, second = (int(result.get(name, 0)) for name in "HMS")
        return Time.second(year, month, day, hour, minute, second)

    def _split(self, text: str) -> list[str]:
        if self.between:
            return [part for part in re.split(f"[{re.escape(''.join(self.between))}]", text) if part]
        return [text[at : at + _WIDTH[name]] for at, name in zip(self.places, self.directives, strict=True)]

    # -- in Cypher ---------------------------------------------------------------------------------

    def start(self, text: str) -> str:
        """Return the first second of the time that a text expression states; null if it states none."""
        if self.iso:
            parts = {name: f"toInteger(substring(x, {at}, {width}))" for name, at, width in _PLACES}
            parts["S"] = "CASE WHEN substring(x, 16, 1) = ':' THEN toInteger(substring(x, 17, 2)) ELSE 0 END"
        elif self.between:
            parts = {name: _as_number(name, f"x[{at}]") for at, name in enumerate(self.directives)}
        else:
            positioned = zip(self.places, self.directives, strict=True)
            parts = {name: f"toInteger(substring(x, {at}, {_WIDTH[name]}))" for at, name in positioned}
        split = f"[x IN split({text}, [{', '.join(map(literal, self.between))}]) WHERE x <> '']" if self.between else text
        month = next((parts[name] for name in "mbB" if name in parts), "1")
        day = parts.get("d", "1")
        # Adding days to the first of the month never fails; if the result is in another month, this month does not have the
        # day.
        days = f"date({{year: {parts['Y']}, month: {month}}}) + duration({{days: {day} - 1}})"
        clock = "".join(f" + {seconds} * ({parts[name]})" for name, seconds in (("H", 3600), ("M", 60), ("S", 1)) if name in parts)
        shift = f" - ({_SHIFT})" if self.iso else ""
        return (
            f"CASE WHEN {text} =~ {literal(self.pattern)} THEN head([x IN [{split}] | head([d IN [{days}] "
            f"WHERE d.month = {month} | datetime({{date: d, timezone: 'Z'}}).epochSeconds{clock}{shift}])]) END"
        )

    def end(self, start: str) -> str:
        """Return the second after the time that begins at a second, given as an expression."""
        if self.precision is Precision.SECOND:
            return f"{start} + 1"
        if self.precision is Precision.DAY:
            return f"{start} + 86400"
        unit = "years" if self.precision is Precision.YEAR else "months"
        return f"(datetime({{epochSeconds: {start}}}) + duration({{{unit}: 1}})).epochSeconds"


_PLACES: Final = (("Y", 0, 4), ("m", 5, 2), ("d", 8, 2), ("H", 11, 2), ("M", 14, 2))
#: How many seconds the zone at the end of `x` is ahead.
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
    """Return a format of `strptime`; `moment` tells that it is that of a datetime.

    It may only have directives that are the same in every language; raise `OptionError` for others.

    >>> str(time_format("%d/%m/%Y").read("7/08/2017")), time_format("%d/%m/%Y").read("31/02/2017")
    ('2017-08-07', None)
    """
    if moment and text == ISO_DATETIME:
        return TimeFormat(text, ("Y", "m", "d", "H", "M", "S"), _ISO_MOMENT, (), (), Precision.SECOND, iso=True)
    result = re.split(r"%(.)", text, flags=re.DOTALL)
    literals, directives = result[::2], tuple(result[1::2])
    unknown = next((name for name in directives if name not in _LOOSE), None)
    if unknown is not None:
        raise OptionError(f"the format {text!r} has %{unknown}, which is not read", hint=_HINT)
    if "Y" not in directives or len(set(directives)) < len(directives) or len(set(directives) & set("mbB")) > 1:
        raise OptionError(f"the format {text!r} needs each part once, and the year %Y", hint=_HINT)
    month = any(name in directives for name in "mbB")
    for part, required in (("S", "M"), ("M", "H"), ("H", "d")):
        if part in directives and required not in directives:
            raise OptionError(f"the format {text!r} has %{part} and no %{required}", hint=_HINT)
    if "d" in directives and not month:
        raise OptionError(f"the format {text!r} has %d and no month", hint=_HINT)
    has_month_names = any(name in directives for name in "bB")
    between = tuple(sorted(set("".join(literals))))
    if any(not 32 <= ord(c) < 127 for c in between):
        raise OptionError(f"the format {text!r} has a character that dates are not written with", hint=_HINT)
    loose = (
        all(literals[1:-1]) and not any(c.isdigit() or (has_month_names and c.isalpha()) for c in between) and len(directives) > 1
    )
    if has_month_names and not loose:
        raise OptionError(f"the format {text!r} has a month in words next to letters, digits or nothing", hint=_HINT)
    patterns = _LOOSE if loose else _STRICT
    pattern = "".join(re.escape(literal) + patterns[name] for literal, name in zip(literals, directives, strict=False)) + re.escape(
        literals[-1]
    )
    precision = Precision.SECOND if "H" in directives else Precision.DAY if "d" in directives else Precision.MONTH
    if not month:
        precision = Precision.YEAR
    places = tuple(
        len("".join(literals[: index + 1])) + sum(_WIDTH.get(name, 0) for name in directives[:index])
        for index in range(len(directives))
    )
    return TimeFormat(text, directives, pattern, between if loose else (), places, precision)


# -- Types of the server -----------------------------------------------------------------------------
# | type of the server | value |
# |---|---|
# | STRING | text; a number or a time if the mapping reads it so and the text allows it |
# | INTEGER, FLOAT | quantity without unit; NaN and infinities are texts, as the server prints them |
# | BOOLEAN | text: "true", "false" |
# | DATE | time of a day |
# | LOCAL DATETIME, ZONED DATETIME | time of a second, in UTC; a local one counts as UTC. Fraction and zone stay in the raw text |
# | LOCAL TIME, ZONED TIME | quantity in "second of the day", in UTC if it has a zone |
# | DURATION | quantity: in "month" if it has only months, in "second" if it has no months; else text |
# | POINT | text, as the server prints it |
# | LIST of these | its distinct values; none for an empty list |
# | byte array, VECTOR | unknown: a value that cannot be compared |
#
# The server reports a byte array as a list of integers. If a property has a byte array in the sample (`BYTES` among its types),
# all of its lists of integers count as byte arrays; otherwise they are numbers.
#
# Texts are equal if they differ only in white space. A property whose texts have white space other than single blanks is
# `untidy`; for others, the database's text is compared as it is.


#: The type of a byte array, which `valueType` calls a list of integers.
BYTES: Final = "BYTES"
#: The type of a float that is not a number, or infinite.
INFINITE: Final = "INFINITE FLOAT"
#: How `valueType` calls a byte array.
INTEGERS: Final = "LIST<INTEGER NOT NULL>"
#: Text that is read as a number if the mapping says so: a float keeps all of its digits. Numbers with leading zeros are codes.
NUMBER: Final = "(?=.{1,16}$)-?(?:0|[1-9][0-9]*)(?:\\.[0-9]+)?"
#: The kinds and units that values of a type can have.
_KINDS: Final[dict[str, tuple[tuple[Kind, str], ...]]] = {
    "STRING": ((Kind.TEXT, NO_UNIT),),
    "INTEGER": ((Kind.QUANTITY, NO_UNIT),),
    "FLOAT": ((Kind.QUANTITY, NO_UNIT),),
    INFINITE: ((Kind.TEXT, NO_UNIT),),
    "BOOLEAN": ((Kind.TEXT, NO_UNIT),),
    "DATE": ((Kind.TIME, NO_UNIT),),
    "LOCAL DATETIME": ((Kind.TIME, NO_UNIT),),
    "ZONED DATETIME": ((Kind.TIME, NO_UNIT),),
    "LOCAL TIME": ((Kind.QUANTITY, SECOND_OF_DAY),),
    "ZONED TIME": ((Kind.QUANTITY, SECOND_OF_DAY),),
    "DURATION": ((Kind.QUANTITY, SECOND), (Kind.QUANTITY, MONTH), (Kind.TEXT, NO_UNIT)),
    "POINT": ((Kind.TEXT, NO_UNIT),),
}


def elements(type_name: str) -> tuple[str, ...]:
    """Return the types of single values in a type; for a list, those of its elements.

    >>> elements("LIST<STRING NOT NULL>"), elements("ZONED DATETIME"), elements("LIST<NOTHING>")
    (('STRING',), ('ZONED DATETIME',), ())
    """
    inner = re.fullmatch(r"LIST<(.*)>", type_name)
    types = [part.strip().removesuffix(" NOT NULL") for part in (inner[1] if inner else type_name).split(" | ")]
    return tuple(type_part for type_part in types if type_part != "NOTHING")


def is_list(type_name: str) -> bool:
    """Tell whether a type is a list, whose elements are several values."""
    return type_name.startswith("LIST<")


def kinds_of(prop: Property) -> dict[tuple[Kind, str], int]:
    """Return the kinds and units of a property's values, with how many of the sample may have each."""
    result: dict[tuple[Kind, str], int] = {}
    opaque = any(name == BYTES for name, _ in prop.types)
    for name, count in prop.types:
        for element in elements(name):
            kinds = _KINDS.get(element, ((Kind.UNKNOWN, NO_UNIT),))
            if element == BYTES or (opaque and name == INTEGERS):
                kinds = ((Kind.UNKNOWN, NO_UNIT),)
            elif element == "STRING" and prop.reading == "number":
                kinds = ((Kind.QUANTITY, NO_UNIT),)
            elif element in ("STRING", "INTEGER") and prop.reading in ("date", "datetime"):
                kinds = ((Kind.TIME, NO_UNIT),)
            for kind in kinds:
                result[kind] = result.get(kind, 0) + count
    return result


def format_of(prop: Property) -> TimeFormat | None:
    """Return how a property's text is read as a time, or None if it is not."""
    if prop.reading == "date":
        return time_format(prop.format or ISO_DATE)
    if prop.reading == "datetime":
        return time_format(prop.format or ISO_DATETIME, moment=True)
    return None


# -- In Python ---------------------------------------------------------------------------------------


_NUMBER: Final = re.compile(NUMBER).fullmatch
_PLAIN: Final = " | ".join(
    form.format(item) for form in ("{}", "LIST<{} NOT NULL>") for item in ("STRING", "INTEGER", "FLOAT", "BOOLEAN")
)


def sent(p: str) -> str:
    """Return an expression for a property, as a query sends it to `values_in`.

    It has the type (null if the value is sent unchanged), the value (for other lists, the types of the elements), and what the
    server prints. The driver cannot read all of the server's times and then fails on the whole row, so times are sent as they
    print.
    """
    printed = f"CASE WHEN {p} IS :: LIST<ANY> THEN [x IN {p} | toStringOrNull(x)] ELSE toStringOrNull({p}) END"
    types = f"CASE WHEN {p} IS :: LIST<ANY> THEN [x IN {p} | valueType(x)] END"
    return f"CASE WHEN {p} IS :: {_PLAIN} THEN [null, {p}, null] ELSE [valueType({p}), {types}, {printed}] END"


def values_in(cells: list[Any], prop: Property) -> list[tuple[Value, str | None]]:
    """Return the distinct values of a property that `sent` gave, with the raw text if the value prints differently."""
    type_name, value, printed = cells
    opaque = any(name == BYTES for name, _ in prop.types)
    if isinstance(value, (bytes, bytearray)):
        value = list(value)
    if type_name is None:
        if isinstance(value, list) and opaque and all(type(element) is int for element in value):
            return [(UNKNOWN, None)]
        pairs = [_value(item, prop) for item in (value if isinstance(value, list) else [value])]
    elif isinstance(printed, list):
        # Some servers have lists of several types.
        pairs = [_printed(inner.removesuffix(" NOT NULL"), entry) for inner, entry in zip(value, printed, strict=True)]
    else:
        pairs = [_printed(type_name.removesuffix(" NOT NULL"), printed)]
    distinct: dict[Value, str | None] = {}
    for read_value, raw in pairs:
        if prop.excluded and isinstance(read_value, Time):
            read_value, raw = last_before(read_value), None
        distinct.setdefault(read_value, raw)
    return list(distinct.items())


def _value(value: Any, prop: Property) -> tuple[Value, str | None]:
    """Return the value of what arrives unchanged."""
    if isinstance(value, bool):
        return ("true" if value else "false"), None
    form = format_of(prop)
    if isinstance(value, float):
        if math.isfinite(value):
            return Quantity(value), None
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity", None
    moment = None if form is None else form.read(str(value))
    if moment is not None:
        return _with_raw(moment, str(value))
    if isinstance(value, int):
        return Quantity(value), None
    if prop.reading == "number" and _NUMBER(value):
        return _with_raw(Quantity(parse_number(value)), value)
    # The snapshot's builder collapses white space in a text and keeps the original as its raw text.
    return value, None


def _with_raw(value: Value, raw: str) -> tuple[Value, str | None]:
    return value, None if text_of(value) == raw else raw


def _printed(type_name: str, text: str | None) -> tuple[Value, str | None]:
    """Return the value of what arrives as the server prints it."""
    if text is None:
        return UNKNOWN, None
    if type_name in ("POINT", "STRING", "BOOLEAN"):
        return text, None
    if type_name in ("INTEGER", "FLOAT"):
        number = int(text) if type_name == "INTEGER" else float(text)
        return Quantity(number) if math.isfinite(number) else text, None
    value = _duration(text) if type_name == "DURATION" else _temporal(type_name, text)
    return (text, None) if value is None else _with_raw(value, text)


_CLOCK: Final = re.compile(r"(\d\d):(\d\d)(?::(\d\d)(?:\.(\d+))?)?(Z|[+-][\d:]+)?").fullmatch
_ZONE: Final = re.compile(r"(?:\[[^\]]*\])?$")


def _duration(text: str) -> Quantity | None:
    value = read_duration(text)
    if value is None or value.unit != SECOND:
        return value
    # The same float as the server's, which adds whole seconds and nanoseconds.
    seconds, fraction = divmod(Fraction(str(value.number)), 1)
    return _seconds(seconds, int(fraction * 10**9), SECOND)


def _temporal(type_name: str, text: str) -> Time | Quantity | None:
    if type_name == "DATE":
        return Time.parse(text)
    day, mark, clock = text.rpartition("T") if "[" not in text else text.partition("[")[0].rpartition("T")
    match = _CLOCK(_ZONE.sub("", clock))
    if match is None:
        return None
    hours, minutes, seconds, fraction, zone = match.groups()
    second_of_day = int(hours) * 3600 + int(minutes) * 60 + int(seconds or 0) - _offset(zone)
    if mark:
        start = Time.parse(day).start + second_of_day
        return Time(start, start + 1, Precision.SECOND)
    return _seconds(second_of_day % DAY_SECONDS, int((fraction or "").ljust(9, "0")), SECOND_OF_DAY)


def _offset(zone: str | None) -> int:
    if zone is None or zone == "Z":
        return 0
    hours, minutes, seconds = (*map(int, zone[1:].split(":")), 0, 0)[:3]
    return (-1 if zone[0] == "-" else 1) * (hours * 3600 + minutes * 60 + seconds)


def _seconds(whole: int, nanoseconds: int, unit: str) -> Quantity:
    number = float(whole) + nanoseconds / 1e9
    return Quantity(int(number) if number.is_integer() else number, unit)


# -- In Cypher ---------------------------------------------------------------------------------------
# Expressions for the fields of a value, by the same table.


#: Types whose raw text is what the server prints.
PRINTED: Final = ("DATE", "LOCAL DATETIME", "ZONED DATETIME", "LOCAL TIME", "ZONED TIME", "DURATION", "POINT")
_PRINTED: Final = " | ".join(PRINTED)
_MOMENTS: Final = "LOCAL DATETIME | ZONED DATETIME"
_CLOCKS: Final = "LOCAL TIME | ZONED TIME"
#: White space as Python defines it, as Cypher escapes.
_SPACES: Final = (
    *(" ", "\\t", "\\n", "\\r", "\\f", "\\u000B", "\\u001C", "\\u001D", "\\u001E", "\\u001F", "\\u0085", "\\u00A0", "\\u1680"),
    *(f"\\u{code:04X}" for code in (*range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000)),
)
#: A text with one of these, or with a blank at its ends, changes when its white space is folded.
_SPACED: Final = ", ".join(f"'{escape}'" for escape in ("  ", *_SPACES[1:]))


def type_of(v: str) -> str:
    """Return the type of a value that is not null, as the server names it, or `INFINITE` for floats that are not numbers."""
    return f"CASE WHEN {v} IS :: FLOAT NOT NULL AND NOT {v} - {v} = 0 THEN '{INFINITE}' ELSE valueType({v}) END"


def spaced(text: str) -> str:
    """Return a test that a text has white space to fold; a regular expression would take several times as long."""
    return f"(size(split({text}, [{_SPACED}])) > 1 OR trim({text}) <> {text})"


def any_spaced(v: str, longer: int = -1) -> str:
    """Return an aggregate that tells whether some text longer than `longer`, or in a list, has white space to fold."""

    return (
        f"any(x IN collect(DISTINCT CASE WHEN {v} IS :: STRING NOT NULL AND size({v}) > {longer} THEN {spaced(v)} "
        f"WHEN {v} IS :: LIST<STRING NOT NULL> NOT NULL THEN any(x IN {v} WHERE {spaced('x')}) END) WHERE x)"
    )


def as_list(p: str, prop: Property) -> str:
    """Return an expression for the list of single values of a property that is not null; a value may occur twice."""
    if any(name == BYTES for name, _ in prop.types):
        # A nested list stays as it is, and `fields` reads it as unknown.
        return f"CASE WHEN {p} IS :: LIST<INTEGER NOT NULL> THEN [{p}] WHEN {p} IS :: LIST<ANY> THEN {p} ELSE [{p}] END"
    return f"CASE WHEN {p} IS :: LIST<ANY> THEN {p} ELSE [{p}] END"


def collapsed(p: str) -> str:
    """Return a text expression with folded white space, for `untidy` properties."""
    spaces = ", ".join(f"'{escape}'" for escape in _SPACES)
    return f"reduce(t = '', w IN [w IN split({p}, [{spaces}]) WHERE w <> ''] | CASE WHEN t = '' THEN w ELSE t + ' ' + w END)"


def fields(p: str, prop: Property, types: frozenset[str] | None = None) -> dict[Field, str]:
    """Return the fields of a single value as expressions of `p`, which should be a variable, since they repeat it often.

    They are valid whatever type the value has, even one missing from the sample. With `types` they cover only these and are far
    shorter; a value of another type becomes what the server prints.
    """
    return _Fields(p, prop, types).all()


class _Fields:
    """The fields that `fields` returns, one method for each kind of field."""

    def __init__(self, p: str, prop: Property, types: frozenset[str] | None) -> None:
        self._p, self._prop, self._types = p, prop, types
        self._form = form = format_of(prop)
        self._read = None if form is None else form.start(f"toString({p})")
        self._is_number = f"{p} IS :: STRING AND {p} =~ {literal(NUMBER)}" if prop.reading == "number" else None
        self._is_time = None if self._read is None else f"{p} IS :: STRING | INTEGER AND {self._read} IS NOT NULL"
        self._dated = None if form is None else f"{p} IS :: STRING | INTEGER"
        self._only_months = f"{p}.days = 0 AND {p}.seconds = 0 AND {p}.nanosecondsOfSecond = 0"

    def all(self) -> dict[Field, str]:
        number, (start, end) = self._number(), self._bounds()
        text, p = self._text(number, start), self._p
        cells: dict[Field, str] = {
            "kind": self._kind(),
            "text": text,
            "key": text,
            "raw": self._raw(),
            "number": number,
            "unit": self._unit(),
            "exact": f"CASE WHEN {p} IS :: INTEGER AND {_inexact(p)} THEN toString({p}) END",
            "order": f"CASE WHEN {p} IS :: INTEGER AND {_inexact(p)} THEN {_order(p)} END",
            "start": start,
            "end": end,
            "precision": self._precision(),
        }
        return self._before(cells) if self._prop.excluded else cells

    def _before(self, cells: dict[Field, str]) -> dict[Field, str]:
        """Return the fields of the last day or second before a time, for an excluded end as in `row_times`."""
        start, day = cells["start"], f"{cells['precision']} = {int(Precision.DAY)}"
        last_moment = f"{start} - CASE WHEN {day} THEN {DAY_SECONDS} ELSE 1 END"
        shown = f"CASE WHEN {day} THEN ltrim(toString(date(s)), '+') ELSE replace(toString(s), 'Z', '') END"
        text = f"coalesce(head([s IN [datetime({{epochSeconds: {last_moment}}})] WHERE s IS NOT NULL | {shown}]), {cells['text']})"
        shifted: dict[Field, str] = {
            "start": last_moment,
            "end": start,
            "precision": f"CASE WHEN {day} THEN {int(Precision.DAY)} WHEN {start} IS NOT NULL THEN {int(Precision.SECOND)} END",
            "text": text,
            "key": text,
            "raw": f"CASE WHEN {start} IS NULL THEN {cells['raw']} END",
        }
        return cells | shifted

    def _case(self, *pairs: tuple[str | None, str], otherwise: str = "null") -> str:
        types = self._types
        return _case(
            *((test, expression) for test, expression in pairs if types is None or _may_hold(test, types)), otherwise=otherwise
        )

    def _number(self) -> str:
        p = self._p
        clock = f"{p}.hour * 3600 + {p}.minute * 60 + {p}.second"
        return self._case(
            (self._is_number, f"toFloat({p})"),
            (f"{p} IS :: INTEGER", f"toFloat({p})"),
            (f"{p} IS :: FLOAT AND {p} - {p} = 0", p),
            (f"{p} IS :: LOCAL TIME", f"toFloat({clock}) + {p}.nanosecond / 1e9"),
            (
                f"{p} IS :: ZONED TIME",
                f"toFloat(({clock} - {p}.offsetSeconds + {2 * DAY_SECONDS}) % {DAY_SECONDS}) + {p}.nanosecond / 1e9",
            ),
            (
                f"{p} IS :: DURATION AND {p}.months = 0",
                f"toFloat({p}.days * {DAY_SECONDS} + {p}.seconds) + {p}.nanosecondsOfSecond / 1e9",
            ),
            (f"{p} IS :: DURATION AND {self._only_months}", f"toFloat({p}.months)"),
        )

    def _bounds(self) -> tuple[str, str]:
        """Return where a time begins and ends."""
        p, form, read = self._p, self._form, self._read
        moment = f"localdatetime.truncate('second', {p})"
        start = self._case(
            (f"{p} IS :: DATE", f"datetime({{date: {p}, timezone: 'Z'}}).epochSeconds"),
            # Before 1970 the server rounds a fraction of a second up.
            (f"{p} IS :: LOCAL DATETIME", f"datetime({{datetime: {moment}, timezone: 'Z'}}).epochSeconds"),
            (f"{p} IS :: ZONED DATETIME", f"datetime.truncate('second', {p}).epochSeconds"),
            (self._dated, read or ""),
        )
        end = self._case(
            (f"{p} IS :: DATE", f"datetime({{date: {p}, timezone: 'Z'}}).epochSeconds + {DAY_SECONDS}"),
            (f"{p} IS :: {_MOMENTS}", f"{start} + 1"),
            (self._dated, f"head([s IN [{read}] WHERE s IS NOT NULL | {form.end('s')}])" if form is not None else ""),
        )
        return start, end

    def _text(self, number: str, start: str) -> str:
        p, prop = self._p, self._prop
        with_unit = f"head([x IN [{number}] | {number_text('x')}]) + ' '"
        in_seconds, in_months = f"{with_unit} + '{SECOND}'", f"{with_unit} + '{MONTH}'"
        months = f"WHEN {self._only_months} THEN {in_months}"
        duration = f"CASE WHEN {p}.months = 0 THEN {in_seconds} {months} ELSE toString({p}) END"
        return self._case(
            (self._is_time or self._is_number, p if prop.reading == "number" else f"toString({p})"),
            (f"{p} IS :: STRING", collapsed(p) if prop.untidy else p),
            (f"{p} IS :: FLOAT AND {p} - {p} = 0", number_text(p)),
            (f"{p} IS :: {_CLOCKS}", f"{with_unit} + '{SECOND_OF_DAY}'"),
            (f"{p} IS :: DURATION", duration),
            (f"{p} IS :: DATE", f"ltrim(toString({p}), '+')"),
            (f"{p} IS :: {_MOMENTS}", f"replace(toString(datetime({{epochSeconds: {start}}})), 'Z', '')"),
            (f"{p} IS :: LIST<ANY>", "'unknown'"),
            otherwise=f"coalesce(toStringOrNull({p}), 'unknown')",
        )

    def _kind(self) -> str:
        p = self._p
        return self._case(
            (self._is_time, "'time'"),
            (self._is_number, "'quantity'"),
            (f"{p} IS :: STRING | BOOLEAN | POINT", "'text'"),
            (f"{p} IS :: INTEGER | {_CLOCKS}", "'quantity'"),
            (f"{p} IS :: FLOAT", f"CASE WHEN {p} - {p} = 0 THEN 'quantity' ELSE 'text' END"),
            *((f"{p} IS :: {item}", "'time'") for item in ("DATE", *_MOMENTS.split(" | "))),
            (f"{p} IS :: DURATION", f"CASE WHEN {p}.months = 0 OR ({self._only_months}) THEN 'quantity' ELSE 'text' END"),
            # A value of a type that appeared after the look is what the server prints.
            otherwise="'unknown'"
            if self._types is None
            else f"CASE WHEN toStringOrNull({p}) IS NULL THEN 'unknown' ELSE 'text' END",
        )

    def _raw(self) -> str:
        p = self._p
        return self._case(
            (self._is_time or self._is_number, f"toString({p})"),
            (f"{p} IS :: {_PRINTED}", f"toString({p})"),
            (f"{p} IS :: STRING" if self._prop.untidy else None, p),
        )

    def _unit(self) -> str:
        p = self._p
        return self._case(
            (f"{p} IS :: {_CLOCKS}", f"'{SECOND_OF_DAY}'"),
            (f"{p} IS :: DURATION", f"CASE WHEN {p}.months = 0 THEN '{SECOND}' ELSE '{MONTH}' END"),
            otherwise=f"'{NO_UNIT}'",
        )

    def _precision(self) -> str:
        p, form = self._p, self._form
        return self._case(
            (f"{p} IS :: DATE", str(int(Precision.DAY))),
            (f"{p} IS :: {_MOMENTS}", str(int(Precision.SECOND))),
            (self._dated, str(int(form.precision)) if form is not None else ""),
        )


def _case(*pairs: tuple[str | None, str], otherwise: str = "null") -> str:
    """Return the first expression whose condition holds; pairs without a condition are dropped."""
    cases = " ".join(f"WHEN {test} THEN {expression}" for test, expression in pairs if test)
    return f"CASE {cases} ELSE {otherwise} END" if cases else otherwise


def _may_hold(test: str | None, types: frozenset[str]) -> bool:
    """Tell whether a test of types can hold for a value of one of these types."""
    match = re.search(r" IS :: ([A-Z |]+?)(?: AND |$)", test or "")
    return match is None or not types.isdisjoint(match[1].split(" | "))


def number_text(number: str) -> str:
    """Return a float as text, almost as it prints: whole numbers have no point."""
    is_whole = f"abs({number}) < 1e15 AND {number} = toInteger({number})"
    return f"CASE WHEN {is_whole} THEN toString(toInteger({number})) ELSE toString({number}) END"


#: The float above the largest integer.
_MAX_LONG: Final = "9.223372036854775807e18"


def _inexact(p: str) -> str:
    """Return a test that no float equals an integer; the float of the largest ones exceeds the server's integers."""
    return f"abs({p} / 2) >= {2**52} AND (toFloat({p}) >= {_MAX_LONG} OR toInteger(toFloat({p})) <> {p})"


def _order(p: str) -> str:
    """Return what orders an integer among numbers with the same float, as `engine.values.tie_break` does.

    It tells whether the integer is above the float, then its number of digits, then the digits.
    """
    above = f"CASE WHEN toFloat({p}) >= {_MAX_LONG} OR {p} < toInteger(toFloat({p})) THEN '0' ELSE '2' END"
    digits = f"ltrim(toString({p}), '-')"
    # Among negative numbers, smaller digits mean a greater number, so each digit is taken from nine.
    nines = "reduce(t = '', i IN range(0, size(d) - 1) | t + toString(9 - toInteger(substring(d, i, 1))))"
    negative = f"head([d IN [rtrim({digits}, '0')] | '0' + toString({999_999 - 50_000} - size({digits}) + 1) + {nines} + '~'])"
    return (
        f"{above} + CASE WHEN {p} > 0 THEN '20' + toString(50000 + size({digits}) - 1) + rtrim({digits}, '0') ELSE {negative} END"
    )
