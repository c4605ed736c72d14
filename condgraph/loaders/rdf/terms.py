"""Terms of RDF for the loader: ids of nodes, values of literals, labels, and nodes that represent statements."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from condgraph.engine.errors import LoadError, shortened
from condgraph.engine.facts import Ref, Statement
from condgraph.engine.reading.times import read_duration
from condgraph.engine.terms import DATATYPE, DIRECTION, LANGUAGE, MAX_IRI, number_type
from condgraph.engine.values import Precision, Quantity, Time, Value, collapse, of_datatype, parse_number, text_of
from condgraph.loaders.base import Reading

if TYPE_CHECKING:
    import pyoxigraph


# -- values ------------------------------------------------------------------------------------------
# Numbers, times and durations are typed; other literals are text, with the language or datatype as a
# qualifier. `LiteralSpellings` handles equal values with different spellings.


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
_DURATIONS: Final = frozenset({XSD + "duration", XSD + "dayTimeDuration", XSD + "yearMonthDuration"})
_DURATION_READ: Final = "durations are read in seconds, or in months where they have only years and months; their texts are kept"
_FORM_READ: Final = "literals of {} are read as values of the type {}; their texts are kept"
_ZONE: Final = re.compile(r"(?:Z|[+-]\d\d:\d\d)$", re.ASCII)
_FRACTION: Final = re.compile(r"(:\d\d)\.\d+", re.ASCII)

#: A value, qualifiers for what the value does not contain, the raw text if it differs from the printed
#: value, and a warning.
Read = tuple[Value, tuple[tuple[str, Ref | Value], ...], str | None, str | None]


def read_literal(literal: pyoxigraph.Literal) -> Read:
    """Return the value of an RDF literal; an ill-typed one stays text with its datatype, with a warning."""
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
            reason = "" if text.strip() not in ("INF", "+INF", "-INF", "NaN") else ", which no quantity can be"
            warning = f"{_show(text)} cannot be read as {_short(datatype)}{reason}; kept as text"
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
    elif datatype in _DURATIONS and (duration := read_duration(text.strip())) is not None:
        return duration, ((DATATYPE, datatype),), _raw(text, text_of(duration)), _DURATION_READ
    elif (value := of_datatype(text.strip(), datatype)) is not None:
        return value, ((DATATYPE, datatype),), _raw(text, value), _FORM_READ.format(_short(datatype), value.form)
    plain, raw = _plain(text)
    return plain, ((DATATYPE, datatype),), raw, warning


def implied_datatype(text: str, datatype: str) -> str:
    """Return the datatype that a literal's value and text imply (`terms.natural`), if it can be parsed."""
    if datatype in _NUMERIC:
        return number_type(text)
    if datatype in _TIMES:
        return XSD + "dateTime" if datatype == XSD + "dateTimeStamp" else datatype
    return XSD + "string"


def _time(text: str, precision: Precision) -> tuple[Time, str | None]:
    """Return a time of this precision, and a warning if part of the literal is lost; raises ValueError."""
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


class LiteralSpellings:
    """Handles equal values that are written in several ways (1 and 1.0, "true" and true).

    Equal values are one fact, which keeps the first text, with a warning. A different datatype keeps them
    apart. Only consecutive triples of a subject are compared.
    """

    def __init__(self, reading: Reading) -> None:
        self._reading, self._subject = reading, ""
        self._texts: dict[Any, tuple[str, str]] = {}

    def distinguished(self, statement: Statement, literal: pyoxigraph.Literal) -> Statement:
        """Return the statement, distinguished from earlier ones with the same value."""
        if statement.subject != self._subject:
            self._subject, self._texts = statement.subject, {}
        datatype: str = literal.datatype.value
        spelling = literal.value, datatype
        first = self._texts.setdefault((statement.predicate, statement.object, statement.qualifiers), spelling)
        if first == spelling:
            return statement
        if first[1] != datatype and not any(key == DATATYPE for key, _ in statement.qualifiers):
            return self.distinguished(replace(statement, qualifiers=((DATATYPE, datatype), *statement.qualifiers)), literal)
        self._reading.warn(
            f"{shortened(repr(literal.value))} is {shortened(repr(first[0]))} written in another way, and one fact with it",
            row=statement.row,
            field=statement.predicate,
        )
        return statement


# -- nodes -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Object:
    """The object of a triple: the id of a node, or a literal."""

    id: str
    literal: pyoxigraph.Literal | None = None


@dataclass(slots=True)
class Label:
    """The best label of a node so far; lower ranks are better."""

    rank: tuple[int, int, str, str]
    text: str
    predicate: str
    language: str | None

    @property
    def form(self) -> tuple[str, str | None]:
        """Its predicate and its language."""
        return self.predicate, self.language

    def is_from(self, predicate: str, other: Object) -> bool:
        """Whether the label comes from a triple with this predicate and object."""
        literal = other.literal
        return (
            literal is not None and predicate == self.predicate and literal.value == self.text and literal.language == self.language
        )


# -- ids, and nodes of statements --------------------------------------------------------------------


#: The random label that the parser gives to a blank node without one.
_RANDOM: Final = re.compile(r"[0-9a-f]{24,32}").fullmatch

#: The subject, predicate and object of a reified statement, as parsed.
Parts: TypeAlias = "tuple[str, str, Object]"


@dataclass(slots=True)
class Reified:
    """A node that represents statements: these, its row and graph, and what is stated about them."""

    row: int
    graph: str | None
    triples: list[Parts] = field(default_factory=list)
    parts: dict[int, Object] = field(default_factory=dict)
    broken: bool = False
    #: Its predicates that lead to the ends of its statements.
    leading: frozenset[str] = frozenset()
    #: The predicate that leads from a subject to it; "" if it leads to both ends itself.
    reached_by: str = ""
    qualifiers: list[tuple[str, Ref | Value]] = field(default_factory=list)


class Nodes:
    """Ids of nodes: an IRI is unchanged, a blank node gets the source's scope."""

    def __init__(self, scope: str) -> None:
        import pyoxigraph

        self._iri: type = pyoxigraph.NamedNode
        self._literal: type = pyoxigraph.Literal
        self._triple: type = pyoxigraph.Triple
        self._default: type = pyoxigraph.DefaultGraph
        self._scope = scope
        self._numbers: dict[str, int] = {}

    def id(self, node: Any) -> str:
        """Return the id of an IRI or a blank node."""
        value: str = node.value
        if len(value) > MAX_IRI:
            raise LoadError(f"an IRI has {len(value):,} characters, and may have {MAX_IRI:,}: {value[:60]!r}...")
        if type(node) is self._iri:
            return value
        if _RANDOM(value):
            # Numbered by appearance, so that passes and loads of one file agree. Labels in files never
            # begin with a dot.
            value = f".{self._numbers.setdefault(value, len(self._numbers) + 1)}"
        return f"_:{self._scope}/{value}"

    def object(self, term: Any) -> Object | None:
        """Return the object of a triple; None for a triple term."""
        kind = type(term)
        if kind is self._literal:
            return Object("", term)
        return None if kind is self._triple else Object(self.id(term))

    def graph(self, quad: pyoxigraph.Quad) -> str | None:
        """Return the id of a quad's graph; None for the default graph."""
        name = quad.graph_name
        return None if type(name) is self._default else self.id(name)

    def triple(self, term: Any) -> Parts | None:
        """Return the parts of a triple term; None if it contains another one."""
        other = self.object(term.object)
        return None if other is None else (self.id(term.subject), term.predicate.value, other)


def key_of(parts: Parts) -> tuple[str, str, str]:
    """Return a hashable key of a triple."""
    subject, predicate, other = parts
    return subject, predicate, other.id if other.literal is None else str(other.literal)
