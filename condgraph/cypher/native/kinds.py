"""What a property of Neo4j is as a value: one table from the types of the server to the values of
the engine, worked out here in Python (`values_in`) and beside it in Cypher (`fields`).

| type of the server | value |
|---|---|
| STRING | text; a number or a time where the mapping reads it so and this text can be |
| INTEGER, FLOAT | quantity without unit; NaN and the infinite ones are texts, as the server prints them |
| BOOLEAN | text: "true", "false" |
| DATE | time of a day |
| LOCAL DATETIME, ZONED DATETIME | time of a second, in UTC; a local one is taken for UTC. Fraction and zone are in the raw text |
| LOCAL TIME, ZONED TIME | quantity in "second of the day", in UTC where it has a zone |
| DURATION | quantity: in "month" where it has nothing but months, in "second" where it has none; else text |
| POINT | text, as the server prints it |
| LIST of these | several values, each once; an empty one is none |
| byte array, VECTOR | unknown: it is there, and cannot be compared |

The server says of a byte array that it is a list of integers. A property of which the sample has a
byte array (`BYTES` among its types) is taken for one wherever it is a list of integers; another one
for the numbers.

Texts are equal by white space made single. A property with texts that have other white space is
`untidy`; elsewhere the text of the database is compared as it stands.
"""

from __future__ import annotations

import math
import re
from typing import Any, Final

from condgraph.cypher.answer import literal
from condgraph.cypher.layout.cells import Field
from condgraph.cypher.native.formats import ISO_DATE, ISO_DATETIME, TimeFormat, time_format
from condgraph.cypher.native.mapping import Property
from condgraph.engine.reading.times import SECOND, SECOND_OF_DAY
from condgraph.engine.values import (
    DAY_SECONDS,
    NO_UNIT,
    UNKNOWN,
    Kind,
    Precision,
    Quantity,
    Time,
    Value,
    parse_number,
    text_of,
)

#: A byte array, which `valueType` calls a list of integers.
BYTES: Final = "BYTES"
#: What a list that a byte array looks like is called.
INTEGERS: Final = "LIST<INTEGER NOT NULL>"
MONTH: Final = "month"
#: Text that is a number where the mapping says so: as a float it keeps all of its digits. Numbers
#: with zeros in front are codes.
NUMBER: Final = "(?=.{1,16}$)-?(?:0|[1-9][0-9]*)(?:\\.[0-9]+)?"
_NUMBER: Final = re.compile(NUMBER).fullmatch
#: Types whose raw text is what the server prints.
PRINTED: Final = ("DATE", "LOCAL DATETIME", "ZONED DATETIME", "LOCAL TIME", "ZONED TIME", "DURATION", "POINT")
_PLAIN: Final = " | ".join(
    form.format(one) for form in ("{}", "LIST<{} NOT NULL>") for one in ("STRING", "INTEGER", "FLOAT", "BOOLEAN")
)
_PRINTED: Final = " | ".join(PRINTED)
_MOMENTS: Final = "LOCAL DATETIME | ZONED DATETIME"
_CLOCKS: Final = "LOCAL TIME | ZONED TIME"
#: White space as Python has it, as escapes of Cypher.
_SPACES: Final = (
    *(" ", "\\t", "\\n", "\\r", "\\f", "\\u000B", "\\u001C", "\\u001D", "\\u001E", "\\u001F", "\\u0085", "\\u00A0", "\\u1680"),
    *(f"\\u{code:04X}" for code in (*range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000)),
)
#: The kinds and units that values of a type can have.
_KINDS: Final[dict[str, tuple[tuple[Kind, str], ...]]] = {
    "STRING": ((Kind.TEXT, NO_UNIT),),
    "INTEGER": ((Kind.QUANTITY, NO_UNIT),),
    "FLOAT": ((Kind.QUANTITY, NO_UNIT),),
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
    """The types of single values that a type has: of a list those in it.

    >>> elements("LIST<STRING NOT NULL>"), elements("ZONED DATETIME"), elements("LIST<NOTHING>")
    (('STRING',), ('ZONED DATETIME',), ())
    """
    inner = re.fullmatch(r"LIST<(.*)>", type_name)
    found = [part.strip().removesuffix(" NOT NULL") for part in (inner[1] if inner else type_name).split(" | ")]
    return tuple(one for one in found if one != "NOTHING")


def is_list(type_name: str) -> bool:
    """Whether a type is a list, whose elements are several values."""
    return type_name.startswith("LIST<")


def kinds_of(prop: Property) -> dict[tuple[Kind, str], int]:
    """The kinds and units of the values of a property, with how many of the sample may have each."""
    found: dict[tuple[Kind, str], int] = {}
    opaque = any(name == BYTES for name, _ in prop.types)
    for name, count in prop.types:
        for one in elements(name):
            kinds = _KINDS.get(one, ((Kind.UNKNOWN, NO_UNIT),))
            if one == BYTES or (opaque and name == INTEGERS):
                kinds = ((Kind.UNKNOWN, NO_UNIT),)
            elif one == "STRING" and prop.reading == "number":
                kinds = ((Kind.QUANTITY, NO_UNIT),)
            elif one in ("STRING", "INTEGER") and prop.reading in ("date", "datetime"):
                kinds = ((Kind.TIME, NO_UNIT),)
            for kind in kinds:
                found[kind] = found.get(kind, 0) + count
    return found


def format_of(prop: Property) -> TimeFormat | None:
    """How the text of a property is read as a time; None where it is not."""
    if prop.reading == "date":
        return time_format(prop.format or ISO_DATE)
    if prop.reading == "datetime":
        return time_format(prop.format or ISO_DATETIME, moment=True)
    return None


# -- in Python -------------------------------------------------------------------------------------


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


# -- in Cypher -------------------------------------------------------------------------------------


def each(p: str, prop: Property) -> str:
    """An expression for the list of the single values of a property expression, which is not null.
    The same value may stand in it twice.
    """
    if any(name == BYTES for name, _ in prop.types):
        # A list within a list stays what it is: `fields` finds it unknown.
        return f"CASE WHEN {p} IS :: LIST<INTEGER NOT NULL> THEN [{p}] WHEN {p} IS :: LIST<ANY> THEN {p} ELSE [{p}] END"
    return f"CASE WHEN {p} IS :: LIST<ANY> THEN {p} ELSE [{p}] END"


def collapsed(p: str) -> str:
    """A text expression with white space made single, for what is `untidy`."""
    spaces = ", ".join(f"'{escape}'" for escape in _SPACES)
    return f"reduce(t = '', w IN [w IN split({p}, [{spaces}]) WHERE w <> ''] | CASE WHEN t = '' THEN w ELSE t + ' ' + w END)"


def fields(p: str, prop: Property, types: frozenset[str] | None = None) -> dict[Field, str]:
    """The fields of a single value as expressions of `p`, which should be a variable: it stands in
    them often. They hold whatever type the value has, also one that the sample has not; with `types`, of
    these alone, which is far shorter: a value of another type is what the server prints.
    """
    form = format_of(prop)

    def case(*pairs: tuple[str | None, str], otherwise: str = "null") -> str:
        return _case(*((test, found) for test, found in pairs if types is None or _meets(test, types)), otherwise=otherwise)

    read = None if form is None else form.start(f"toString({p})")
    is_number = f"{p} IS :: STRING AND {p} =~ {literal(NUMBER)}" if prop.reading == "number" else None
    is_time = None if read is None else f"{p} IS :: STRING | INTEGER AND {read} IS NOT NULL"
    dated = None if form is None else f"{p} IS :: STRING | INTEGER"
    only_months = f"{p}.days = 0 AND {p}.seconds = 0 AND {p}.nanosecondsOfSecond = 0"
    clock = f"{p}.hour * 3600 + {p}.minute * 60 + {p}.second"
    number = case(
        (is_number, f"toFloat({p})"),
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
        (f"{p} IS :: DURATION AND {only_months}", f"toFloat({p}.months)"),
    )
    start = case(
        (f"{p} IS :: DATE", f"datetime({{date: {p}, timezone: 'Z'}}).epochSeconds"),
        # Before 1970 the server rounds a part of a second up.
        (f"{p} IS :: LOCAL DATETIME", f"datetime({{datetime: localdatetime.truncate('second', {p}), timezone: 'Z'}}).epochSeconds"),
        (f"{p} IS :: ZONED DATETIME", f"datetime.truncate('second', {p}).epochSeconds"),
        (dated, read or ""),
    )
    end = case(
        (f"{p} IS :: DATE", f"datetime({{date: {p}, timezone: 'Z'}}).epochSeconds + {DAY_SECONDS}"),
        (f"{p} IS :: {_MOMENTS}", f"{start} + 1"),
        (
            dated,
            f"head([s IN [{read}] WHERE s IS NOT NULL | {form.end('s')}])" if form is not None else "",
        ),
    )
    with_unit = f"head([x IN [{number}] | {number_text('x')}]) + ' '"
    in_seconds, in_months = f"{with_unit} + '{SECOND}'", f"{with_unit} + '{MONTH}'"
    duration = f"CASE WHEN {p}.months = 0 THEN {in_seconds} WHEN {only_months} THEN {in_months} ELSE toString({p}) END"
    text = case(
        (is_time or is_number, p if prop.reading == "number" else f"toString({p})"),
        (f"{p} IS :: STRING", collapsed(p) if prop.untidy else p),
        (f"{p} IS :: FLOAT AND {p} - {p} = 0", number_text(p)),
        (f"{p} IS :: {_CLOCKS}", f"{with_unit} + '{SECOND_OF_DAY}'"),
        (f"{p} IS :: DURATION", duration),
        (f"{p} IS :: DATE", f"ltrim(toString({p}), '+')"),
        (f"{p} IS :: {_MOMENTS}", f"replace(toString(datetime({{epochSeconds: {start}}})), 'Z', '')"),
        (f"{p} IS :: LIST<ANY>", "'unknown'"),
        otherwise=f"coalesce(toStringOrNull({p}), 'unknown')",
    )
    return {
        "kind": case(
            (is_time, "'time'"),
            (is_number, "'quantity'"),
            (f"{p} IS :: STRING | BOOLEAN | POINT", "'text'"),
            (f"{p} IS :: INTEGER | {_CLOCKS}", "'quantity'"),
            (f"{p} IS :: FLOAT", f"CASE WHEN {p} - {p} = 0 THEN 'quantity' ELSE 'text' END"),
            (f"{p} IS :: DATE | {_MOMENTS}", "'time'"),
            (f"{p} IS :: DURATION", f"CASE WHEN {p}.months = 0 OR ({only_months}) THEN 'quantity' ELSE 'text' END"),
            otherwise="'unknown'",
        ),
        "text": text,
        "key": text,
        "raw": case(
            (is_time or is_number, f"toString({p})"),
            (f"{p} IS :: {_PRINTED}", f"toString({p})"),
            (f"{p} IS :: STRING" if prop.untidy else None, p),
        ),
        "number": number,
        "unit": case(
            (f"{p} IS :: {_CLOCKS}", f"'{SECOND_OF_DAY}'"),
            (f"{p} IS :: DURATION", f"CASE WHEN {p}.months = 0 THEN '{SECOND}' ELSE '{MONTH}' END"),
            otherwise=f"'{NO_UNIT}'",
        ),
        "exact": f"CASE WHEN {p} IS :: INTEGER AND {_inexact(p)} THEN toString({p}) END",
        "order": f"CASE WHEN {p} IS :: INTEGER AND {_inexact(p)} THEN {_order(p)} END",
        "start": start,
        "end": end,
        "precision": case(
            (f"{p} IS :: DATE", str(int(Precision.DAY))),
            (f"{p} IS :: {_MOMENTS}", str(int(Precision.SECOND))),
            (dated, str(int(form.precision)) if form is not None else ""),
        ),
    }


def _case(*pairs: tuple[str | None, str], otherwise: str = "null") -> str:
    """The first expression whose condition holds; pairs without a condition are left out."""
    cases = " ".join(f"WHEN {test} THEN {found}" for test, found in pairs if test)
    return f"CASE {cases} ELSE {otherwise} END" if cases else otherwise


def _meets(test: str | None, types: frozenset[str]) -> bool:
    """Whether a test of types can hold of a value of some of these."""
    found = re.search(r" IS :: ([A-Z |]+?)(?: AND |$)", test or "")
    return found is None or not types.isdisjoint(found[1].split(" | "))


def number_text(number: str) -> str:
    """A float as it prints, mostly: whole ones without a point."""
    whole = f"abs({number}) < 1e15 AND {number} = toInteger({number})"
    return f"CASE WHEN {whole} THEN toString(toInteger({number})) ELSE toString({number}) END"


#: The float behind the largest integer.
_BEYOND: Final = "9.223372036854775807e18"


def _inexact(p: str) -> str:
    """Whether an integer is none that a float can be. The float of the largest ones is no integer
    of the server.
    """
    return f"abs({p} / 2) >= {2**52} AND (toFloat({p}) >= {_BEYOND} OR toInteger(toFloat({p})) <> {p})"


def _order(p: str) -> str:
    """What breaks the tie of an integer among numbers of its float, as `layout.schema.tie_break` has
    it: whether it is above the float, its number of digits, and the digits.
    """
    above = f"CASE WHEN toFloat({p}) >= {_BEYOND} OR {p} < toInteger(toFloat({p})) THEN '0' ELSE '2' END"
    digits = f"ltrim(toString({p}), '-')"
    # A negative number is the greater the smaller its digits are: each is taken from nine.
    nines = "reduce(t = '', i IN range(0, size(d) - 1) | t + toString(9 - toInteger(substring(d, i, 1))))"
    negative = f"head([d IN [rtrim({digits}, '0')] | '0' + toString({999_999 - 50_000} - size({digits}) + 1) + {nines} + '~'])"
    return (
        f"{above} + CASE WHEN {p} > 0 THEN '20' + toString(50000 + size({digits}) - 1) + rtrim({digits}, '0') ELSE {negative} END"
    )
