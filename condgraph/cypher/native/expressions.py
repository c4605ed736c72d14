"""Properties of Neo4j as values of the engine, in Cypher: expressions that give the fields of a value
by the table of `kinds`. `values` says the same in Python.
"""

from __future__ import annotations

import re
from typing import Final

from condgraph.cypher.answer import literal
from condgraph.cypher.layout.base import Field
from condgraph.cypher.native.kinds import BYTES, INFINITE, MONTH, NUMBER, format_of
from condgraph.cypher.native.mapping import Property
from condgraph.engine.reading.times import SECOND, SECOND_OF_DAY
from condgraph.engine.values import DAY_SECONDS, NO_UNIT, Precision

#: Types whose raw text is what the server prints.
PRINTED: Final = ("DATE", "LOCAL DATETIME", "ZONED DATETIME", "LOCAL TIME", "ZONED TIME", "DURATION", "POINT")
_PRINTED: Final = " | ".join(PRINTED)
_MOMENTS: Final = "LOCAL DATETIME | ZONED DATETIME"
_CLOCKS: Final = "LOCAL TIME | ZONED TIME"
#: White space as Python has it, as escapes of Cypher.
_SPACES: Final = (
    *(" ", "\\t", "\\n", "\\r", "\\f", "\\u000B", "\\u001C", "\\u001D", "\\u001E", "\\u001F", "\\u0085", "\\u00A0", "\\u1680"),
    *(f"\\u{code:04X}" for code in (*range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000)),
)
#: A text that has one of these, or a blank at its ends, is not equal to itself with white space made single.
_SPACED: Final = ", ".join(f"'{escape}'" for escape in ("  ", *_SPACES[1:]))


def type_of(v: str) -> str:
    """The type of a value that is not null, as the server says it; of a float that is none of the numbers
    `INFINITE`.
    """
    return f"CASE WHEN {v} IS :: FLOAT NOT NULL AND NOT {v} - {v} = 0 THEN '{INFINITE}' ELSE valueType({v}) END"


def spaced(text: str) -> str:
    """A condition: a text has white space to fold. A regular expression takes the server several times as
    long.
    """
    return f"(size(split({text}, [{_SPACED}])) > 1 OR trim({text}) <> {text})"


def any_spaced(v: str, longer: int = -1) -> str:
    """An aggregate: whether some text of more than `longer` characters, or some text in a list, is equal
    to what it is not written like.
    """

    return (
        f"any(x IN collect(DISTINCT CASE WHEN {v} IS :: STRING NOT NULL AND size({v}) > {longer} THEN {spaced(v)} "
        f"WHEN {v} IS :: LIST<STRING NOT NULL> NOT NULL THEN any(x IN {v} WHERE {spaced('x')}) END) WHERE x)"
    )


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
    return _Fields(p, prop, types).all()


class _Fields:
    """What `fields` gives, a method for each kind of field."""

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
        return {
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

    def _case(self, *pairs: tuple[str | None, str], otherwise: str = "null") -> str:
        types = self._types
        return _case(*((test, found) for test, found in pairs if types is None or _meets(test, types)), otherwise=otherwise)

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
        """Where a time begins, and where it ends."""
        p, form, read = self._p, self._form, self._read
        moment = f"localdatetime.truncate('second', {p})"
        start = self._case(
            (f"{p} IS :: DATE", f"datetime({{date: {p}, timezone: 'Z'}}).epochSeconds"),
            # Before 1970 the server rounds a part of a second up.
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
            *((f"{p} IS :: {one}", "'time'") for one in ("DATE", *_MOMENTS.split(" | "))),
            (f"{p} IS :: DURATION", f"CASE WHEN {p}.months = 0 OR ({self._only_months}) THEN 'quantity' ELSE 'text' END"),
            # What has come since the types were looked at is what the server prints.
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
