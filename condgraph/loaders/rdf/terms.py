"""Terms of RDF as the loader has them: ids of nodes, literals as values, labels, and nodes that stand
for statements.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from condgraph.engine.errors import LoadError, shortened
from condgraph.engine.facts import Ref, Statement
from condgraph.engine.forms import of_datatype
from condgraph.engine.reading.times import read_duration
from condgraph.engine.terms import DATATYPE, DIRECTION, LANGUAGE, number_type
from condgraph.engine.values import Precision, Quantity, Time, Value, collapse, parse_number, text_of
from condgraph.loaders.base import Reading

if TYPE_CHECKING:
    import pyoxigraph


# -- values ------------------------------------------------------------------------------------------
# Literals as values: numbers, times and durations are typed, everything else is text with its language or
# datatype as a qualifier. `LiteralSpellings` handles literals of one value that are written in several ways.


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

#: Value, qualifiers with what the value does not hold, the raw text where the value prints another, and a
#: warning.
Read = tuple[Value, tuple[tuple[str, Ref | Value], ...], str | None, str | None]


def read_literal(literal: pyoxigraph.Literal) -> Read:
    """The value of an RDF literal. An ill-typed one stays text with its datatype, with a warning."""
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
    elif datatype in _DURATIONS and (duration := read_duration(text.strip())) is not None:
        return duration, ((DATATYPE, datatype),), _raw(text, text_of(duration)), _DURATION_READ
    elif (value := of_datatype(text.strip(), datatype)) is not None:
        return value, ((DATATYPE, datatype),), _raw(text, value), _FORM_READ.format(_short(datatype), value.form)
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


class LiteralSpellings:
    """Literals of one value that are written in several ways (1 and 1.0, "true" and true): equal values
    are one fact, which keeps the first text. Another datatype keeps them apart; otherwise there is a
    warning. They are compared among consecutive triples of a subject.
    """

    def __init__(self, reading: Reading) -> None:
        self._reading, self._subject = reading, ""
        self._texts: dict[Any, tuple[str, str]] = {}

    def apart(self, statement: Statement, literal: pyoxigraph.Literal) -> Statement:
        """The statement, distinguished from those before it with the same value."""
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


# -- nodes -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Object:
    """An object: the id of a node, or a literal."""

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
        """Whether a triple with this predicate and object is the one that gave the label."""
        literal = other.literal
        return (
            literal is not None and predicate == self.predicate and literal.value == self.text and literal.language == self.language
        )


# -- ids, and nodes of statements --------------------------------------------------------------------


#: Characters of an IRI: a prefix of a megabyte is a megabyte wherever it stands.
LONGEST_IRI: Final = 65_536
#: Blank nodes without a label in the file get a random one from the parser, another each time.
_RANDOM: Final = re.compile(r"[0-9a-f]{24,32}").fullmatch

#: Subject, predicate and object of a reified statement, terms as they were parsed.
Parts: TypeAlias = "tuple[str, str, Object]"


@dataclass(slots=True)
class Reified:
    """A node that stands for statements: which ones, where, in which graph, and what is said about
    them.
    """

    row: int
    graph: str | None
    triples: list[Parts] = field(default_factory=list)
    parts: dict[int, Object] = field(default_factory=dict)
    broken: bool = False
    #: Predicates of its triples that lead to the ends of its statements.
    leading: frozenset[str] = frozenset()
    #: The predicate that leads from a subject to it; "" where it leads to both ends.
    reached_by: str = ""
    qualifiers: list[tuple[str, Ref | Value]] = field(default_factory=list)


class Nodes:
    """Ids of nodes: an IRI is its own, a blank node's is scoped by the source."""

    def __init__(self, scope: str) -> None:
        import pyoxigraph

        self._iri: type = pyoxigraph.NamedNode
        self._literal: type = pyoxigraph.Literal
        self._triple: type = pyoxigraph.Triple
        self._default: type = pyoxigraph.DefaultGraph
        self._scope = scope
        self._numbers: dict[str, int] = {}

    def id(self, node: Any) -> str:
        """The id of an IRI or a blank node."""
        value: str = node.value
        if len(value) > LONGEST_IRI:
            raise LoadError(f"an IRI has {len(value):,} characters, and may have {LONGEST_IRI:,}: {value[:60]!r}...")
        if type(node) is self._iri:
            return value
        if _RANDOM(value):
            # By order of appearance, so that two passes, and two loads of one file, agree. No label
            # in a file begins with a dot.
            value = f".{self._numbers.setdefault(value, len(self._numbers) + 1)}"
        return f"_:{self._scope}/{value}"

    def object(self, term: Any) -> Object | None:
        """The object of a triple; None for a triple term."""
        kind = type(term)
        if kind is self._literal:
            return Object("", term)
        return None if kind is self._triple else Object(self.id(term))

    def graph(self, quad: pyoxigraph.Quad) -> str | None:
        """The id of a quad's graph; None for the default graph."""
        name = quad.graph_name
        return None if type(name) is self._default else self.id(name)

    def triple(self, term: Any) -> Parts | None:
        """The parts of a triple term; None when there is another one inside."""
        other = self.object(term.object)
        return None if other is None else (self.id(term.subject), term.predicate.value, other)


def key_of(parts: Parts) -> tuple[str, str, str]:
    """A triple as something to look up: equal for equal triples."""
    subject, predicate, other = parts
    return subject, predicate, other.id if other.literal is None else str(other.literal)
