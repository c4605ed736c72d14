"""Wikibase's statement model in RDF, as Wikidata publishes it: statement nodes with qualifiers,
ranks, and full values.

    wd:Q42 p:P69 s .   s ps:P69 wd:Q691283 ; pq:P580 "1971-01-01T00:00:00Z" ; pqv:P580 v ; wikibase:rank wikibase:NormalRank .
    v wikibase:timeValue "1971-01-01T00:00:00Z" ; wikibase:timePrecision 9 .

is the statement (Q42, "educated at", Q691283) with the qualifier "start time" 1971. Every Wikibase
is read so, and recognised by the ends of its IRIs (`/prop/P69`, `/prop/statement/P69`, ...). Values
are kept at the precision of their value nodes, quantities with their units, "some value" is
`UNKNOWN`. Deprecated statements and "no value", of a statement or of a qualifier (a class of the
node, `wdno:P582`), are left out and counted, as are references; a
direct claim (`wdt:`) is left out where the same property of the same subject has a statement.
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
#: Types that only say which part of the model a node is.
_PARTS: Final = frozenset(
    ONTOLOGY + name
    for name in ("Statement", "BestRank", "TimeValue", "QuantityValue", "GlobecoordinateValue", "GeoAutoPrecision", "Reference")
)
#: Predicates of a property that say how its other IRIs are written.
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
#: Years that a time of Wikibase's precision 0 to 8 stands for, in powers of ten.
_YEARS: Final = {0: 9, 1: 8, 2: 7, 3: 6, 4: 5, 5: 4, 6: 3, 7: 2, 8: 1}


@dataclass(slots=True)
class Node:
    """A statement node: what is said about what, with which qualifiers."""

    row: int
    graph: str | None
    subject: str = ""
    key: str = ""
    value: Object | None = None
    full: str = ""
    rank: str = ""
    #: The properties that have "no value" here: its own, or those of qualifiers.
    nones: set[str] = field(default_factory=set)
    qualifiers: list[tuple[str, Object]] = field(default_factory=list)
    fulls: dict[str, list[str]] = field(default_factory=dict)

    @property
    def none(self) -> bool:
        """Whether it says that the property itself has no value."""
        return self.value is None and self.key in self.nones

    @property
    def whole(self) -> bool:
        """Whether subject and value are there."""
        return bool(self.subject) and (self.value is not None or self.none)

    @property
    def bare(self) -> bool:
        """Whether nothing is known of it but properties without a value: an entity or a reference."""
        return not (self.subject or self.value or self.full or self.rank or self.qualifiers or self.fulls)


@dataclass(frozen=True, slots=True)
class LoadedStatement:
    """A statement as it is loaded: the object is a node's id or a value."""

    subject: str
    key: str
    object: Ref | Value
    qualifiers: tuple[tuple[str, Ref | Value], ...]
    graph: str | None
    row: int
    raw: str | None


class Wikibase:
    """What a source says in Wikibase's model; nothing where it says nothing so."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self.nodes: dict[str, Node] = {}
        self._values: dict[str, dict[str, str]] = {}
        self._direct: set[tuple[str, str]] = set()
        self._references: set[str] = set()
        #: Entities and references of which only properties without a value are known.
        self._bare: set[str] = set()
        self._forms: dict[str, tuple[str, str] | None] = {}
        #: The entity of a property, by the IRI that its statements have (`/prop/P69`).
        self._entities: dict[str, str] = {}

    # -- the first pass ----------------------------------------------------------------------------

    def form(self, predicate: str) -> tuple[str, str] | None:
        """Which form of which property a predicate is: `("statement", ".../prop/P69")`; None for
        any other predicate.
        """
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
        """The IRI of the entity that a property is, whose label names it."""
        return self._entities[key]

    def see(self, row: int, subject: str, predicate: str, other: Object | None, graph: str | None) -> bool:
        """Look at a triple; whether it may be one of the model."""
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
        """Decide which nodes are statements; report what is left out."""
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
        for (singular, many), count in (
            (("qualifier says", "qualifiers say"), qualifiers),
            (("direct claim says", "direct claims say"), direct),
        ):
            if count:
                self._reading.warn(
                    f'{numbered(count, f"""{singular} "no value" and is""", f"""{many} "no value" and are""")} left out'
                )
        for (singular, many), count in counts.items():
            if count:
                why = numbered(count, f"statement {singular} and is", f"statements {many} and are")
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
        """Whether a statement of the model says the same as a triple, or the triple only says how
        the model is written.
        """
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
        """The statements, in the order of the file."""
        warned = False
        for node in self.nodes.values():
            if node.none or node.rank == "DeprecatedRank" or node.value is None:
                continue
            value, extra, raw = self._value(node.value, [node.full] if node.full else [], labels, node.row)
            pairs = list(extra)
            for key, other in node.qualifiers:
                # What a value says beside itself (its language, say) is the statement's only where
                # it is the statement's object.
                item, beside, _ = self._value(other, node.fulls.get(key, []), labels, node.row)
                if beside and not warned:
                    warned = True
                    self._reading.warn(
                        "the language or datatype of a value said about a statement is not kept; reported once", row=node.row
                    )
                pairs.append((called[key], item))
            yield LoadedStatement(node.subject, node.key, value, tuple(pairs), node.graph, node.row, raw)

    def _value(
        self, other: Object, fulls: list[str], labels: dict[str, Label], row: int
    ) -> tuple[Ref | Value, tuple[tuple[str, Ref | Value], ...], str | None]:
        """A value: from the value node that says the same in full, where there is one (and then
        without raw text).
        """
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
            # The model writes every time as a moment; without its value node only the day can be
            # meant.
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
    """A time of Wikibase at its precision: 14 a second, 11 a day, 10 a month, 9 a year, 8 a decade,
    7 a century, 6 a millennium.

    Raises ValueError.

    >>> str(full_time("1971-01-01T00:00:00Z", 9)), str(full_time("1850-01-01T00:00:00Z", 7))
    ('1971', '1801/1900')
    """
    match = re.fullmatch(r"([+-]?\d+)-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)Z?", text.strip())
    if match is None:
        raise ValueError(f"{text!r} is no time")
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
        raise ValueError(f"there is no precision {precision}")
    # Centuries and millennia end with their round year, decades begin with it.
    first_year = year // 10 * 10 if size == 10 else (year - 1) // size * size + 1
    return Time.span(Time.year(first_year), Time.year(first_year + size - 1))


def unit_name(iri: str, labels: dict[str, Label]) -> str:
    """The name of a unit: its label, else the end of its IRI; `NO_UNIT` for Wikidata's Q199, the
    pure number.
    """
    if not iri or iri.endswith("/Q199"):
        return NO_UNIT
    label = labels.get(iri)
    return collapse(label.text) if label is not None else iri.rpartition("/")[2]
