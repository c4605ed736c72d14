"""Properties of Neo4j as values of the engine, in Python: how a query sends them, and what they are
by the table of `kinds`. `expressions` says the same in Cypher.
"""

from __future__ import annotations

import math
import re
from typing import Any, Final

from condgraph.cypher.native.kinds import BYTES, MONTH, NUMBER, elements, format_of
from condgraph.cypher.native.mapping import Property
from condgraph.engine.reading.times import SECOND, SECOND_OF_DAY
from condgraph.engine.values import DAY_SECONDS, UNKNOWN, Precision, Quantity, Time, Value, parse_number, text_of

_NUMBER: Final = re.compile(NUMBER).fullmatch
_PLAIN: Final = " | ".join(
    form.format(one) for form in ("{}", "LIST<{} NOT NULL>") for one in ("STRING", "INTEGER", "FLOAT", "BOOLEAN")
)


def sent(p: str) -> str:
    """An expression for a property as a query sends it to `values_in`: its type (null: it comes as
    it is), what it is, and what the server prints of it. The driver cannot read all times that the
    server has, and fails on a whole row: they come as they print.
    """
    printed = f"CASE WHEN {p} IS :: LIST<ANY> THEN [x IN {p} | toStringOrNull(x)] ELSE toStringOrNull({p}) END"
    return f"CASE WHEN {p} IS :: {_PLAIN} THEN [null, {p}, null] ELSE [valueType({p}), null, {printed}] END"


def values_in(found: list[Any], prop: Property) -> list[tuple[Value, str | None]]:
    """The values that a property has, each once, with the raw text where the value prints
    otherwise; of what `sent` gave.
    """
    type_name, value, printed = found
    opaque = any(name == BYTES for name, _ in prop.types)
    if isinstance(value, (bytes, bytearray)):
        value = list(value)
    if type_name is None:
        if not isinstance(value, list):
            return [_value(value, prop)]
        if opaque and all(type(one) is int for one in value):
            return [(UNKNOWN, None)]
        pairs = [_value(one, prop) for one in value]
    elif isinstance(printed, list):
        inner = next(iter(elements(type_name.removesuffix(" NOT NULL"))), "")
        pairs = [_printed(inner, one) for one in printed]
    else:
        pairs = [_printed(type_name.removesuffix(" NOT NULL"), printed)]
    distinct: dict[Value, str | None] = {}
    for one, raw in pairs:
        distinct.setdefault(one, raw)
    return list(distinct.items())


def _value(value: Any, prop: Property) -> tuple[Value, str | None]:
    """What comes as it is."""
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
    # The builder of a snapshot collapses a text, and keeps how it stood.
    return value, None


def _with_raw(value: Value, raw: str) -> tuple[Value, str | None]:
    return value, None if text_of(value) == raw else raw


def _printed(type_name: str, text: str | None) -> tuple[Value, str | None]:
    """What comes as the server prints it."""
    if text is None:
        return UNKNOWN, None
    if type_name == "POINT":
        return text, None
    value = _duration(text) if type_name == "DURATION" else _temporal(type_name, text)
    return (text, None) if value is None else _with_raw(value, text)


_DURATION: Final = re.compile(
    r"P(?:(-?\d+)Y)?(?:(-?\d+)M)?(?:(-?\d+)W)?(?:(-?\d+)D)?(?:T(?:(-?\d+)H)?(?:(-?\d+)M)?(?:(-?)(\d+)(?:\.(\d+))?S)?)?"
).fullmatch
_CLOCK: Final = re.compile(r"(\d\d):(\d\d)(?::(\d\d)(?:\.(\d+))?)?(Z|[+-][\d:]+)?").fullmatch
_ZONE: Final = re.compile(r"(?:\[[^\]]*\])?$")


def _duration(text: str) -> Quantity | None:
    found = _DURATION(text)
    if found is None:
        return None
    years, months, weeks, days, hours, minutes = (int(part or 0) for part in found.groups()[:6])
    sign, seconds, fraction = found.group(7, 8, 9)
    rest = (weeks * 7 + days) * DAY_SECONDS + hours * 3600 + minutes * 60
    nanoseconds = int((fraction or "").ljust(9, "0"))
    whole = int(seconds or 0)
    if sign:
        # As the server keeps it: whole seconds below, and what is above them.
        whole, nanoseconds = (-whole, 0) if not nanoseconds else (-whole - 1, 10**9 - nanoseconds)
    if total := years * 12 + months:
        # A day and as many hours back are not nothing.
        plain = not (weeks or days or hours or minutes or whole or nanoseconds)
        return Quantity(total, MONTH) if plain else None
    return _seconds(rest + whole, nanoseconds, SECOND)


def _temporal(type_name: str, text: str) -> Time | Quantity | None:
    if type_name == "DATE":
        return Time.parse(text)
    day, mark, clock = text.rpartition("T") if "[" not in text else text.partition("[")[0].rpartition("T")
    found = _CLOCK(_ZONE.sub("", clock))
    if found is None:
        return None
    hours, minutes, seconds, fraction, zone = found.groups()
    rest = int(hours) * 3600 + int(minutes) * 60 + int(seconds or 0) - _ahead(zone)
    if mark:
        start = Time.parse(day).start + rest
        return Time(start, start + 1, Precision.SECOND)
    return _seconds(rest % DAY_SECONDS, int((fraction or "").ljust(9, "0")), SECOND_OF_DAY)


def _ahead(zone: str | None) -> int:
    if zone is None or zone == "Z":
        return 0
    hours, minutes, seconds = (*map(int, zone[1:].split(":")), 0, 0)[:3]
    return (-1 if zone[0] == "-" else 1) * (hours * 3600 + minutes * 60 + seconds)


def _seconds(whole: int, nanoseconds: int, unit: str) -> Quantity:
    number = float(whole) + nanoseconds / 1e9
    return Quantity(int(number) if number.is_integer() else number, unit)
