"""Reads Wikibase's statement model in RDF, as Wikidata publishes it: statement nodes, qualifiers, ranks, full values.

    wd:Q42 p:P69 s .   s ps:P69 wd:Q691283 ; pq:P580 "1971-01-01T00:00:00Z" ; pqv:P580 v ; wikibase:rank wikibase:NormalRank .
    v wikibase:timeValue "1971-01-01T00:00:00Z" ; wikibase:timePrecision 9 .

is the statement (Q42, "educated at", Q691283) with the qualifier "start time" 1971. Any Wikibase is
recognised by the ends of its IRIs (`/prop/P69`, `/prop/statement/P69`, ...). Values have the precision
of their value nodes, quantities have their units, and "some value" is `UNKNOWN`. Deprecated statements,
"no value" of a statement or of a qualifier (a class of the node, `wdno:P582`), and references are
skipped and counted. A direct claim (`wdt:`) is skipped if the subject has a statement of the property.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from condgraph.engine.errors import numbered
from condgraph.engine.facts import Ref
from condgraph.engine.values import NO_UNIT, UNKNOWN, Quantity, Time, Value, collapse, parse_number
from condgraph.loaders.rdf.terms import RDF, XSD, read_literal

if TYPE_CHECKING:
    from condgraph.loaders.base import Reading
    from condgraph.loaders.rdf.terms import Label, Object

ONTOLOGY: Final = "http://wikiba.se/ontology#"
_TYPE: Final = RDF + "type"
_DERIVED: Final = "http://www.w3.org/ns/prov#wasDerivedFrom"
_PROPERTY: Final = re.compile(
    r"(.+)/prop/((?:direct|direct-normalized|novalue|statement(?:/value(?:-normalized)?)?"
    r"|qualifier(?:/value(?:-normalized)?)?|reference(?:/value(?:-normalized)?)?)/)?(P\d+)",
    re.ASCII,
).fullmatch
#: Types that only mark a node as a part of the model.
_PARTS: Final = frozenset(
    ONTOLOGY + name
    for name in ("Statement", "BestRank", "TimeValue", "QuantityValue", "GlobecoordinateValue", "GeoAutoPrecision", "Reference")
)
#: Predicates that link a property to its other IRIs.
_FORMS: Final = frozenset(
    ONTOLOGY + name
    for name in (
        *("directClaim", "directClaimNormalized", "claim", "statementProperty", "statementValue", "statementValueNormalized"),
        *("qualifier", "qualifierValue", "qualifierValueNormalized", "reference", "referenceValue", "referenceValueNormalized"),
        "novalue",
    )
)
_VALUE_PARTS: Final = (
    *("timeValue", "timePrecision", "timeTimezone", "timeCalendarModel"),
    *("quantityAmount", "quantityUnit", "quantityUpperBound", "quantityLowerBound", "quantityNormalized"),
    *("geoLatitude", "geoLongitude", "geoPrecision", "geoGlobe"),
)
_OF_VALUES: Final = frozenset(ONTOLOGY + name for name in _VALUE_PARTS)
_UNKNOWN_NODE: Final = re.compile(r"/(?:\.well-known/)?genid/").search
#: The years that Wikibase's precisions 0 to 8 cover, as powers of ten.
_YEARS: Final = {0: 9, 1: 8, 2: 7, 3: 6, 4: 5, 5: 4, 6: 3, 7: 2, 8: 1}


@dataclass(slots=True)
class Node:
    """A statement node: its subject, property, value and qualifiers."""

    row: int
    graph: str | None
    subject: str = ""
    key: str = ""
    value: Object | None = None
    full: str = ""
    rank: str = ""
    #: The properties with "no value": its own, or those of qualifiers.
    nones: set[str] = field(default_factory=set)
    qualifiers: list[tuple[str, Object]] = field(default_factory=list)
    fulls: dict[str, list[str]] = field(default_factory=dict)

    @property
    def none(self) -> bool:
        """Whether the property itself has no value."""
        return self.value is None and self.key in self.nones

    @property
    def whole(self) -> bool:
        """Whether subject and value are present."""
        return bool(self.subject) and (self.value is not None or self.none)

    @property
    def bare(self) -> bool:
        """Whether only properties without a value are known: it is an entity or a reference."""
        return not (self.subject or self.value or self.full or self.rank or self.qualifiers or self.fulls)


@dataclass(frozen=True, slots=True)
class LoadedStatement:
    """A statement to load: the object is a node's id or a value."""

    subject: str
    key: str
    object: Ref | Value
    qualifiers: tuple[tuple[str, Ref | Value], ...]
    graph: str | None
    row: int
    raw: str | None


class Wikibase:
    """The parts of a source that use Wikibase's model."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self.nodes: dict[str, Node] = {}
        self._values: dict[str, dict[str, str]] = {}
        self._direct: set[tuple[str, str]] = set()
        self._references: set[str] = set()
        #: Entities and references with only properties without a value.
        self._bare: set[str] = set()
        self._forms: dict[str, tuple[str, str] | None] = {}
        #: The entity of a property, by the property's IRI in statements (`/prop/P69`).
        self._entities: dict[str, str] = {}

    # -- the first pass ----------------------------------------------------------------------------

    def form(self, predicate: str) -> tuple[str, str] | None:
        """Return the form and property of a predicate: `("statement", ".../prop/P69")`; None for others."""
        try:
            return self._forms[predicate]
        except KeyError:
            match = _PROPERTY(predicate)
            form = None if match is None else ((match[2] or "claim/")[:-1], f"{match[1]}/prop/{match[3]}")
            if form is not None and form[1] not in self._entities:
                self._entities[form[1]] = f"{match[1]}/entity/{match[3]}"  # type: ignore[index]
            self._forms[predicate] = form
            return form

    def entity(self, key: str) -> str:
        """Return the IRI of a property's entity, whose label names it."""
        return self._entities[key]

    def see(self, row: int, subject: str, predicate: str, other: Object | None, graph: str | None) -> bool:
        """Record a triple; returns whether it may be part of the model."""
        if other is None:
            return False
        form = self.form(predicate)
        if form is not None:
            self._see_form(*form, row, subject, other, graph)
            return True
        if predicate.startswith(ONTOLOGY):
            if predicate == ONTOLOGY + "claim":
                self._entities[other.id] = subject
            elif predicate == ONTOLOGY + "rank":
                self._node(subject, row, graph).rank = other.id.removeprefix(ONTOLOGY)
            elif predicate in _OF_VALUES:
                text = other.id if other.literal is None else other.literal.value
                self._values.setdefault(subject, {})[predicate.removeprefix(ONTOLOGY)] = text
            return predicate in _FORMS or predicate in _OF_VALUES or predicate == ONTOLOGY + "rank"
        if predicate == _TYPE and other.literal is None:
            novalue = self.form(other.id)
            if novalue is not None and novalue[0] == "novalue":
                self._node(subject, row, graph).nones.add(novalue[1])
                return True
            if other.id == ONTOLOGY + "Reference":
                self._references.add(subject)
            return other.id in _PARTS
        return False

    def _see_form(self, form: str, key: str, row: int, subject: str, other: Object, graph: str | None) -> None:
        if form == "claim" and other.literal is None:
            node = self._node(other.id, row, graph)
            node.subject, node.key, node.row, node.graph = subject, key, row, graph
            self._direct.add((subject, key))
        elif form == "statement":
            self._node(subject, row, graph).value = other
        elif form == "statement/value":
            self._node(subject, row, graph).full = other.id
        elif form == "qualifier":
            self._node(subject, row, graph).qualifiers.append((key, other))
        elif form == "qualifier/value":
            self._node(subject, row, graph).fulls.setdefault(key, []).append(other.id)

    def _node(self, name: str, row: int, graph: str | None) -> Node:
        return self.nodes.setdefault(name, Node(row, graph))

    def settle(self) -> None:
        """Decide which nodes are statements, and report what is skipped."""
        self._bare = {name for name, node in self.nodes.items() if node.bare}
        bare = [(name, self.nodes.pop(name)) for name in self._bare]
        direct = sum(len(node.nones) for name, node in bare if name not in self._references)
        broken = [name for name, node in self.nodes.items() if not node.whole]
        for name in broken:
            node = self.nodes.pop(name)
            self._reading.warn(f"the statement {name!r} has no subject or no value; kept as ordinary facts", row=node.row)
        counts = {
            ("is deprecated", "are deprecated"): sum(node.rank == "DeprecatedRank" for node in self.nodes.values()),
            ('says "no value"', 'say "no value"'): sum(node.none and node.rank != "DeprecatedRank" for node in self.nodes.values()),
        }
        qualifiers = sum(len(node.nones) - node.none for node in self.nodes.values() if node.rank != "DeprecatedRank")
        for (singular, plural), count in (
            (("qualifier says", "qualifiers say"), qualifiers),
            (("direct claim says", "direct claims say"), direct),
        ):
            if count:
                self._reading.warn(
                    f'{numbered(count, f"""{singular} "no value" and is""", f"""{plural} "no value" and are""")} left out'
                )
        for (singular, plural), count in counts.items():
            if count:
                why = numbered(count, f"statement {singular} and is", f"statements {plural} and are")
                self._reading.warn(f"{why} left out")
        preferred = sum(node.rank == "PreferredRank" for node in self.nodes.values())
        if preferred:
            statements = numbered(preferred, "statement has", "statements have")
            self._reading.warn(f"{statements} the preferred rank; those of normal rank are loaded as well")
        if self._references and self.nodes:
            references = numbered(len(self._references), "reference of statements is", "references of statements are")
            self._reading.warn(f"{references} left out")

    # -- the second pass ---------------------------------------------------------------------------

    def owns(self, subject: str, predicate: str, other: Object | None) -> bool:
        """Whether a triple is redundant: a statement has its content, or it only describes the model."""
        if other is None:
            return False
        form = self.form(predicate)
        if form is not None:
            kind, key = form
            if kind == "claim":
                return other.id in self.nodes
            if kind == "direct":
                return (subject, key) in self._direct
            if kind == "direct-normalized":
                return True
            return subject in self.nodes or (kind.startswith("reference") and subject in self._references)
        if predicate == _TYPE and other.literal is None and self.form(other.id) is not None:
            return subject in self.nodes or subject in self._bare
        if not self.nodes:
            return False
        if predicate == _TYPE and other.literal is None:
            return other.id in _PARTS
        if predicate == _DERIVED:
            return subject in self.nodes
        return predicate in _FORMS or (predicate == ONTOLOGY + "rank" and subject in self.nodes) or subject in self._values

    def statements(self, labels: dict[str, Label], called: dict[str, str]) -> Iterator[LoadedStatement]:
        """Yield the statements, in the order of the file."""
        warned = False
        for node in self.nodes.values():
            if node.none or node.rank == "DeprecatedRank" or node.value is None:
                continue
            value, extra, raw = self._value(node.value, [node.full] if node.full else [], labels, node.row)
            pairs = list(extra)
            for key, other in node.qualifiers:
                # Qualifiers of a value, such as its language, are kept only for the statement's object.
                item, lost, _ = self._value(other, node.fulls.get(key, []), labels, node.row)
                if lost and not warned:
                    warned = True
                    self._reading.warn(
                        "the language or datatype of a value said about a statement is not kept; reported once", row=node.row
                    )
                pairs.append((called[key], item))
            yield LoadedStatement(node.subject, node.key, value, tuple(pairs), node.graph, node.row, raw)

    def _value(
        self, other: Object, fulls: list[str], labels: dict[str, Label], row: int
    ) -> tuple[Ref | Value, tuple[tuple[str, Ref | Value], ...], str | None]:
        """Return a value; a matching value node gives the full value, without raw text."""
        literal = other.literal
        if literal is None:
            unknown = other.id.startswith("_:") or _UNKNOWN_NODE(other.id)
            return (UNKNOWN if unknown else Ref(other.id)), (), None
        for name in fulls:
            parts = self._values.get(name, {})
            try:
                if parts.get("timeValue") == literal.value:
                    time = full_time(literal.value, int(parts.get("timePrecision", "11")))
                    return time, (), None
                if "quantityAmount" in parts and Decimal(parts["quantityAmount"]) == Decimal(literal.value):
                    if "quantityUpperBound" in parts or "quantityLowerBound" in parts:
                        self._reading.warn("bounds of quantities are not kept", row=row)
                    quantity = Quantity(parse_number(literal.value), unit_name(parts.get("quantityUnit", ""), labels))
                    return quantity, (), None
            except (ValueError, ArithmeticError) as error:
                self._reading.warn(f"a value node cannot be read: {error}", row=row)
        if literal.datatype.value == XSD + "dateTime" and literal.value.endswith("T00:00:00Z"):
            # The model writes every time as an instant; without a value node it is taken as the day.
            try:
                day = full_time(literal.value, 11)
                self._reading.warn("a time without its precision is taken as the day", row=row)
                return day, (), None
            except ValueError:
                pass
        value, extra, raw, warning = read_literal(literal)
        if warning:
            self._reading.warn(warning, row=row)
        return value, extra, raw


def full_time(text: str, precision: int) -> Time:
    """Return a time of Wikibase at its precision; raises ValueError.

    Precision 14 is a second, 11 a day, 10 a month, 9 a year, 8 a decade, 7 a century, 6 a millennium.

    >>> str(full_time("1971-01-01T00:00:00Z", 9)), str(full_time("1850-01-01T00:00:00Z", 7))
    ('1971', '1801/1900')
    """
    match = re.fullmatch(r"([+-]?\d+)-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)Z?", text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a time")
    year, month, day, hour, minute, second = map(int, match.groups())
    if precision == 14:
        return Time.second(year, month, day, hour, minute, second)
    if precision in (12, 13):
        first = Time.second(year, month, day, hour, minute if precision == 13 else 0)
        last = Time.second(year, month, day, hour, minute if precision == 13 else 59, 59)
        return Time.span(first, last)
    if precision == 11:
        return Time.day(year, month, day)
    if precision == 10:
        return Time.month(year, month)
    if precision == 9:
        return Time.year(year)
    size = 10 ** _YEARS[precision] if precision in _YEARS else 0
    if not size:
        raise ValueError(f"unknown precision {precision}")
    # Centuries and millennia end with the round year, decades begin with it.
    first_year = year // 10 * 10 if size == 10 else (year - 1) // size * size + 1
    return Time.span(Time.year(first_year), Time.year(first_year + size - 1))


def unit_name(iri: str, labels: dict[str, Label]) -> str:
    """Return the name of a unit: its label, else the end of its IRI.

    `NO_UNIT` for Wikidata's Q199, the pure number.
    """
    if not iri or iri.endswith("/Q199"):
        return NO_UNIT
    label = labels.get(iri)
    return collapse(label.text) if label is not None else iri.rpartition("/")[2]
