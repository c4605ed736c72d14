"""RDF literals as values: numbers and times are typed, everything else is text that keeps its
language or datatype beside it. `Written` tells literals of one value that are written in several
ways.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from condgraph.engine.errors import shortened
from condgraph.engine.facts import Ref, Statement
from condgraph.engine.terms import DATATYPE, DIRECTION, LANGUAGE, number_type
from condgraph.engine.values import Precision, Quantity, Time, Value, collapse, parse_number, text_of
from condgraph.loaders.base import Reading

if TYPE_CHECKING:
    import pyoxigraph

XSD: Final = "http://www.w3.org/2001/XMLSchema#"
RDF: Final = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"

_EXPONENT: Final = frozenset({XSD + "double", XSD + "float"})
_WHOLE: Final = frozenset(
    f"{XSD}{sign}{size}"
    for sign, sizes in (
        ("", ("integer", "long", "int", "short", "byte")),
        ("unsigned", ("Long", "Int", "Short", "Byte")),
        ("nonNegative", ("Integer",)),
        ("nonPositive", ("Integer",)),
        ("positive", ("Integer",)),
        ("negative", ("Integer",)),
    )
    for size in sizes
)
_NUMERIC: Final = _WHOLE | _EXPONENT | {XSD + "decimal"}
_TIMES: Final = {
    XSD + "date": Precision.DAY,
    XSD + "gYear": Precision.YEAR,
    XSD + "gYearMonth": Precision.MONTH,
    XSD + "dateTime": Precision.SECOND,
    XSD + "dateTimeStamp": Precision.SECOND,
}
_ZONE: Final = re.compile(r"(?:Z|[+-]\d\d:\d\d)$", re.ASCII)
_FRACTION: Final = re.compile(r"(:\d\d)\.\d+", re.ASCII)

#: Value, qualifiers that keep what the value cannot say, the raw text where it is printed
#: otherwise, and a warning.
Read = tuple[Value, tuple[tuple[str, Ref | Value], ...], str | None, str | None]


def read_literal(literal: pyoxigraph.Literal) -> Read:
    """The value of an RDF literal. An ill-typed one stays text with its datatype, and says so in
    the warning.
    """
    text = literal.value
    if literal.language:
        plain, raw = _plain(text)
        pairs: tuple[tuple[str, Ref | Value], ...] = ((LANGUAGE, literal.language),)
        direction = getattr(literal, "direction", None)
        if direction is not None:
            pairs += ((DIRECTION, direction.value),)
        return plain, pairs, raw, None
    datatype = literal.datatype.value
    if datatype == XSD + "string":
        plain, raw = _plain(text)
        return plain, (), raw, None
    warning = None
    if datatype in _NUMERIC:
        try:
            number = parse_number(text)
            if (datatype in _WHOLE and not isinstance(number, int)) or (datatype not in _EXPONENT and "e" in text.lower()):
                raise ValueError
            return Quantity(number), (), _raw(text, text_of(number)), None
        except ValueError:
            known = "" if text.strip() not in ("INF", "+INF", "-INF", "NaN") else ", which no quantity can be"
            warning = f"{_show(text)} cannot be read as {_short(datatype)}{known}; kept as text"
    elif datatype in _TIMES:
        try:
            time, warning = _time(text, _TIMES[datatype])
            return time, (), _raw(text, str(time)), warning
        except ValueError:
            warning = f"{_show(text)} cannot be read as {_short(datatype)}; kept as text"
    elif datatype == XSD + "boolean":
        truth = {"true": "true", "1": "true", "false": "false", "0": "false"}.get(text.strip())
        if truth is not None:
            return truth, (), _raw(text, truth), None
        warning = f"{_show(text)} cannot be read as {_short(datatype)}; kept as text"
    plain, raw = _plain(text)
    return plain, ((DATATYPE, datatype),), raw, warning


def datatype_told(text: str, datatype: str) -> str:
    """The datatype that the value of a literal tells with its text (`terms.natural`), if it can be
    read.
    """
    if datatype in _NUMERIC:
        return number_type(text)
    if datatype in _TIMES:
        return XSD + "dateTime" if datatype == XSD + "dateTimeStamp" else datatype
    return XSD + "string"


def _time(text: str, precision: Precision) -> tuple[Time, str | None]:
    """A time of this precision, with a warning where part of the literal does not fit in it. Raises
    ValueError.
    """
    warning = None
    plain = text.strip()
    if precision is Precision.SECOND:
        fraction = _FRACTION.search(plain)
        if fraction is not None:
            plain = plain[: fraction.end(1)] + plain[fraction.end() :]
            if fraction.group().rstrip("0") != fraction.group(1) + ".":
                warning = f"the fraction of a second in {_show(text)} is only in the raw text"
    else:
        zone = _ZONE.search(plain[1:])
        if zone is not None:
            plain = plain[: 1 + zone.start()]
            if zone.group() not in ("Z", "+00:00", "-00:00"):
                warning = f"the time zone of {_show(text)} is only in the raw text"
    time = Time.parse(plain)
    if time.precision is not precision:
        raise ValueError(plain)
    return time, warning


def _plain(text: str) -> tuple[str, str | None]:
    plain = collapse(text)
    return plain, None if plain == text else text


def _raw(text: str, printed: str) -> str | None:
    return None if text == printed else text


def _short(datatype: str) -> str:
    return datatype.replace(XSD, "xsd:")


def _show(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")


class Written:
    """Literals of one value that are written in several ways (1 and 1.0, "true" and true): what is
    equal is one fact, whose first text is kept. Those of another datatype are kept apart by it; of
    others it is said. They are looked for among the triples of a subject that follow each other.
    """

    def __init__(self, reading: Reading) -> None:
        self._reading, self._subject = reading, ""
        self._texts: dict[Any, tuple[str, str]] = {}

    def apart(self, statement: Statement, literal: pyoxigraph.Literal) -> Statement:
        """The statement, told from those before it that are of the same value."""
        if statement.subject != self._subject:
            self._subject, self._texts = statement.subject, {}
        datatype: str = literal.datatype.value
        written = literal.value, datatype
        first = self._texts.setdefault((statement.predicate, statement.object, statement.qualifiers), written)
        if first == written:
            return statement
        if first[1] != datatype and not any(key == DATATYPE for key, _ in statement.qualifiers):
            return self.apart(replace(statement, qualifiers=((DATATYPE, datatype), *statement.qualifiers)), literal)
        self._reading.warn(
            f"{shortened(repr(literal.value))} is {shortened(repr(first[0]))} written in another way, and one fact with it",
            row=statement.row,
            field=statement.predicate,
        )
        return statement
