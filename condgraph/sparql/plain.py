"""A graph as plain RDF: the triples that it was loaded from, with their own IRIs and literals.

The layout (`layout`) represents everything in a graph, in a vocabulary of its own. This is the RDF itself: entities by their
IRIs, literals with language and datatype, lists as lists, statements about statements as in the source (reified, triple terms,
or Wikibase's statement nodes). The names in RDF are stored with the source (`engine.terms`).

Other sources get IRIs under the base of the graph; these are written only if everything is requested. Parts of statements that
RDF cannot express are counted in `Plain.warnings`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from condgraph.engine import terms as rdf
from condgraph.engine.errors import numbered
from condgraph.engine.facts import EntityKind, Ref
from condgraph.engine.identity import statement_ids
from condgraph.engine.iris import RDF, RDFS, XSD, value_name
from condgraph.engine.snapshot.build import declared
from condgraph.engine.snapshot.readback import place_raws, statements
from condgraph.engine.values import (
    DAY_SECONDS,
    FORMS,
    NO_UNIT,
    UNKNOWN,
    FormedText,
    Precision,
    Quantity,
    Time,
    Value,
    civil,
    collapse,
    format_number,
)
from condgraph.sparql.layout import LABEL, STATEMENT, TYPE, GraphIris, string

if TYPE_CHECKING:
    from condgraph.engine.facts import Statement
    from condgraph.engine.snapshot.snapshot import Snapshot


# -- wikibase ----------------------------------------------------------------------------------------
# Values as plain literals, and in Wikibase's model: the direct literal, and the value node with precision
# or unit.


ONTOLOGY: Final = "http://wikiba.se/ontology#"
#: Wikibase's codes of precisions.
_PRECISIONS: Final = {Precision.YEAR: 9, Precision.MONTH: 10, Precision.DAY: 11, Precision.SECOND: 14}
_TIMES: Final = {
    Precision.YEAR: ("gYear", 1),
    Precision.MONTH: ("gYearMonth", 2),
    Precision.DAY: ("date", 3),
    Precision.SECOND: ("dateTime", 6),
}


def literal_of(value: Value, language: str | None = None, *, wikibase: bool = False) -> str:
    """Return a value as a literal of XML Schema, without the unit of a quantity.

    In Wikibase's model, numbers are decimals, and times moments.

    >>> literal_of(Quantity(1.5, "metre")), literal_of(Time.year(-44))
    ('"1.5"^^<http://www.w3.org/2001/XMLSchema#decimal>', '"-0044"^^<http://www.w3.org/2001/XMLSchema#gYear>')
    """
    if isinstance(value, Quantity):
        text = format_number(value.number)
        if wikibase:
            return f'"{text if text.startswith("-") else "+" + text}"^^<{XSD}decimal>'
        return f'"{text}"^^<{rdf.number_type(text)}>'
    if isinstance(value, Time):
        if wikibase and value.precision in _PRECISIONS:
            return f'"{_moment(value)}Z"^^<{XSD}dateTime>'
        name, parts = _TIMES.get(value.precision, ("", 0))
        if not name:
            return string(str(value))
        size = (0, 1, 2, 3)[min(parts, 3)]
        date, _, clock = _moment(value).partition("T")
        sign, plain = ("-", date[1:]) if date.startswith("-") else ("", date)
        short = sign + "-".join(plain.split("-")[:size])
        return f'"{short}{"T" + clock + "Z" if parts > 3 else ""}"^^<{XSD}{name}>'
    text = string(str(value))
    if isinstance(value, FormedText):
        return f"{text}^^<{FORMS[value.form].datatype}>"
    return text if language is None else f"{text}@{language}"


def _moment(value: Time) -> str:
    year, month, day = civil(value.start // DAY_SECONDS)
    seconds = value.start % DAY_SECONDS
    sign = "-" if year < 0 else ""
    return f"{sign}{abs(year):04d}-{month:02d}-{day:02d}T{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"


def value_node(value: Ref | Value, place: str) -> Iterator[tuple[str, str, str]]:
    """Yield the triples of Wikibase's value node for a time or a quantity with a unit; none for other values.

    `place` is the prefix of its IRI.
    """
    a = f"<{RDF}type>"
    if isinstance(value, Time) and value.precision in _PRECISIONS:
        node = f"<{place}{value_name(value)}>"
        yield node, a, f"<{ONTOLOGY}TimeValue>"
        yield node, f"<{ONTOLOGY}timeValue>", literal_of(value, wikibase=True)
        yield node, f"<{ONTOLOGY}timePrecision>", f'"{_PRECISIONS[value.precision]}"^^<{XSD}integer>'
    elif isinstance(value, Quantity) and value.unit != NO_UNIT:
        node = f"<{place}{value_name(value)}>"
        yield node, a, f"<{ONTOLOGY}QuantityValue>"
        yield node, f"<{ONTOLOGY}quantityAmount>", literal_of(value, wikibase=True)
        yield node, f"<{ONTOLOGY}quantityUnit>", string(value.unit)


# -- terms -------------------------------------------------------------------------------------------
# Terms of plain RDF in the form of N-Quads: entities, predicates and literals as in the source, or under
# the base of the graph.


_STRING: Final = XSD + "string"


class Quad(NamedTuple):
    """Terms in the form of N-Quads; `graph` is empty for the default graph."""

    subject: str
    predicate: str
    object: str
    graph: str = ""


class TermWriter:
    """Writes the terms of a graph; its own names are under `base`."""

    def __init__(self, base: str) -> None:
        self.iris = GraphIris(base)
        #: Predicates that were written and only have an IRI under the base.
        self.called: set[str] = set()

    def node(self, ident: str, terms: rdf.Terms | None) -> str:
        """Return an entity: its IRI, a blank node, or its name under the base."""
        if terms is not None and terms.entities and _is_wikidata(ident):
            return f"<{terms.entities}{ident}>"
        if ident.startswith("_:"):
            return f"_:b{hashed(ident)}"
        if rdf.is_iri(ident) and (terms is not None or "://" in ident or ident.startswith("urn:")):
            return f"<{ident}>"
        return self.iris.entity(ident)

    def predicate(self, name: str, terms: rdf.Terms | None) -> str:
        """Return a predicate: its IRI, or its name under the base."""
        known = property_of(name, terms)
        if known is None:
            self.called.add(name)
            return self.iris.predicate(name)
        return f"<{known.iri}>"

    def literal(self, value: Value, raw: str | None, own: rdf.Property | None, said: dict[str, str] | None = None) -> str:
        """Return a literal as in the source; `said` has its language, direction and datatype."""
        said = said or {}
        if own is None:
            # The text of a table's number need not be a number for others; other text stays unchanged.
            return literal_of(raw if isinstance(value, str) and raw is not None and collapse(raw) == value else value)
        text = rdf.lexical(value, raw)
        if rdf.LANGUAGE in said:
            direction = f"--{said[rdf.DIRECTION]}" if rdf.DIRECTION in said else ""
            return f"{string(text)}@{said[rdf.LANGUAGE]}{direction}"
        natural_type = rdf.natural(value, text)
        if natural_type is None:
            return literal_of(value)
        datatype = said.get(rdf.DATATYPE) or own.types.get(natural_type, natural_type)
        return string(text) if datatype == _STRING else f"{string(text)}^^<{datatype}>"


def property_of(name: str, terms: rdf.Terms | None) -> rdf.Property | None:
    """Return a source's record of a predicate; None if it was no RDF, or lacks the predicate."""
    return None if terms is None else terms.predicates.get(name)


def labelled(text: str, language: str | None) -> str:
    """Return a text as a literal, with its language if it has one."""
    return string(text) if language is None else f"{string(text)}@{language}"


def hashed(text: str) -> str:
    """Return a label for a blank node, equal for equal texts."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def _is_wikidata(ident: str) -> bool:
    return ident[:1] in ("Q", "P", "L") and ident[1:].isascii() and ident[1:].isdigit()


# -- labels ------------------------------------------------------------------------------------------
# Labels that are names, not facts: what each source calls entities and predicates, in its own form.


class Labels:
    """The labels of a snapshot as triples.

    `terms` has the RDF names of each source (None: it was no RDF); `everything` as for `Plain`.
    """

    def __init__(self, snapshot: Snapshot, write: TermWriter, terms: Sequence[rdf.Terms | None], *, everything: bool) -> None:
        self.snapshot, self._write, self._terms, self._everything = snapshot, write, terms, everything

    def quads(self) -> Iterator[Quad]:
        """Yield the labels of entities, and of the predicates that were written."""
        snapshot = self.snapshot
        predicates: set[str] = set()
        for terms in self._terms:
            for own in terms.predicates.values() if terms is not None else ():
                if own.wikibase:
                    continue
                predicates.add(own.iri)
                for predicate, language, text in own.labels:
                    yield Quad(f"<{own.iri}>", f"<{predicate}>", labelled(text, language))
        for name in sorted(self._write.called):
            yield Quad(self._write.iris.predicate(name), LABEL, string(name))
        declarations = declared(snapshot)
        named, foreign = (
            (declarations.name >= 0) & (declarations.src >= 0),
            np.array([one is not None for one in self._terms], bool),
        )
        # Every RDF source names an entity in its own form.
        own = named & foreign[declarations.src]
        idents = snapshot.texts.take(snapshot.entity_id[declarations.e[own]])
        for ident, name, source in zip(
            idents, snapshot.texts.take(declarations.name[own]), declarations.src[own].tolist(), strict=True
        ):
            yield from self._label_of(ident, name, self._terms[source], self._terms[source])
        unlabelled = np.ones(snapshot.entities, bool)
        unlabelled[declarations.e[own]] = False
        named_elsewhere = np.zeros(snapshot.entities, bool)
        named_elsewhere[declarations.e[named]] = True
        sources = np.array(self._first_sources(), np.int32)[unlabelled].tolist()
        idents, names = (snapshot.texts.take(column[unlabelled]) for column in (snapshot.entity_id, snapshot.entity_name))
        rows = (snapshot.entity_kind[unlabelled] == EntityKind.ROW).tolist()
        for ident, name, source, row, other in zip(idents, names, sources, rows, named_elsewhere[unlabelled].tolist(), strict=True):
            found = self._terms[source] if source >= 0 else None
            if (found is None or other) and not self._everything:
                continue
            if not ((found is None and row) or ident in predicates):
                yield from self._label_of(ident, name, None if other else found, found)

    def _label_of(self, ident: str, name: str, said: rdf.Terms | None, terms: rdf.Terms | None) -> Iterator[Quad]:
        """Yield the label of an entity, in the form of the source `said` that states it (None: it was no RDF).

        `terms` are those of the source with the entity's IRI.
        """
        if said is None:
            if name != ident:
                yield Quad(self._write.node(ident, terms), LABEL, string(name))
            return
        form = said.apart.get(ident, said.naming) if name != ident or ident in said.apart else None
        if form is not None and (ident in said.apart or not (said.local and name == _local(ident))):
            yield Quad(self._write.node(ident, terms), f"<{form[0]}>", labelled(said.texts.get(ident, name), form[1]))

    def _first_sources(self) -> list[int]:
        """Return for each entity the source that names it.

        This is the first RDF source that mentions it, otherwise the first source; if none does, and the id is an IRI,
        the first RDF source.
        """
        snapshot, get = self.snapshot, self.snapshot.arrays.get
        first = np.full(snapshot.entities, -1, np.int32)
        rdf_sources = [number for number, terms in enumerate(self._terms) if terms is not None]
        if len(self._terms) == 1:
            first[:] = 0
            return first.tolist()
        numbers = np.arange(snapshot.statements, dtype=np.int32)
        subjects, objects = snapshot.subjects(numbers), snapshot.relation_object
        other_sources = [number for number in range(len(self._terms)) if number not in rdf_sources]
        for number in reversed([*rdf_sources, *other_sources]):
            mask = snapshot.source == number
            first[subjects[mask]] = number
            first[objects[mask[: len(objects)]]] = number
            for prefix, ends in (("mem", "ec"), ("sub", "cp")):
                rows = get(f"{prefix}.src") == number
                for end in ends:
                    first[get(f"{prefix}.{end}")[rows]] = number
        if rdf_sources:
            for entity in np.flatnonzero(first < 0).tolist():
                ident = snapshot.ident(entity)
                if rdf.is_iri(ident) or ident.startswith("_:"):
                    first[entity] = rdf_sources[0]
        return first.tolist()


def _local(iri: str) -> str:
    """Return the end of an IRI, as the RDF loader takes it for a name."""
    end = max(iri.rfind(mark) for mark in "/#:")
    return iri[end + 1 :] or iri


# -- statements --------------------------------------------------------------------------------------
# Statements as plain triples, with statements about them: reified, as triple terms, or as Wikibase's
# statement nodes; and lists as lists.


_FIRST, _REST, _NIL = f"<{RDF}first>", f"<{RDF}rest>", f"<{RDF}nil>"
#: Predicates whose statements are also memberships.
_IMPLYING: Final = frozenset(
    (f"{RDF}type", f"{RDFS}subClassOf", "http://www.wikidata.org/prop/P31", "http://www.wikidata.org/prop/P279")
)


class Statements:
    """The statements of a snapshot as triples.

    `terms` has the RDF names of each source (None: it was no RDF); `everything`, `star` and `reifiers` as for `Plain`.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        write: TermWriter,
        terms: Sequence[rdf.Terms | None],
        *,
        everything: bool,
        star: bool,
        reifiers: bool,
    ) -> None:
        self.snapshot, self._write, self._terms, self._everything = snapshot, write, terms, everything
        self._star, self._reifiers = star, reifiers
        self._base = write.iris.base
        #: What RDF could not express, with counts.
        self.lost: Counter[str] = Counter()
        #: Properties of Wikibase that have occurred.
        self._properties: set[str] = set()
        #: Members of lists by the key of the list: subject, predicate, graph, number.
        self._lists: dict[tuple[str, str, str, str], dict[int, str]] = {}
        #: Memberships and subclasses that a statement of the same row implies: source, row, both ids.
        self.implied: set[tuple[int, int, str, str]] = set()

    def quads(self) -> Iterator[Quad]:
        """Yield the triples of all statements, except members of lists (see `lists`)."""
        snapshot = self.snapshot
        sids = statement_ids(snapshot).view(np.uint64).tolist()
        numbers = np.arange(snapshot.statements, dtype=np.int32)
        raws = place_raws(snapshot)
        for number, (statement, places) in enumerate(statements(snapshot, numbers)):
            written: set[tuple[int, str | None]] = set()
            for index, (source, row) in enumerate(places):
                raw = raws[number][index] if number in raws else statement.raw
                terms = self._terms[source]
                if (
                    isinstance(statement.object, Ref)
                    and (record := property_of(statement.predicate, terms)) is not None
                    and record.iri in _IMPLYING
                ):
                    self.implied.add((source, row, statement.subject, statement.object.id))
                if (source, raw) in written or (terms is None and not self._everything):
                    continue
                written.add((source, raw))
                if (
                    terms is not None
                    and rdf.INFERRED not in terms.predicates
                    and any(key == rdf.INFERRED for key, _ in statement.qualifiers)
                ):
                    self.lost["an inferred statement is left out: its axioms are there"] += 1
                    continue
                # Each source writes a literal in its own way.
                yield from self._statement(statement if raw == statement.raw else replace(statement, raw=raw), sids[number], terms)

    def _statement(self, one: Statement, sid: int, terms: rdf.Terms | None) -> Iterator[Quad]:
        write, own = self._write, property_of(one.predicate, terms)
        literal_parts: dict[str, str] = {}
        graph = number = ""
        position = 0
        about: list[tuple[str, Ref | Value]] = []
        for key, value in one.qualifiers:
            if terms is not None and key == rdf.GRAPH and isinstance(value, Ref) and not graph:
                graph = write.node(value.id, terms)
            elif terms is not None and key == rdf.POSITION and isinstance(value, Quantity) and isinstance(value.number, int):
                position = value.number
            elif terms is not None and key == rdf.LIST and isinstance(value, Quantity):
                number = str(value.number)
            elif _of_literal(one, key, value, terms):
                literal_parts[key] = str(value)
            else:
                about.append((key, value))
        subject = write.node(one.subject, terms)
        if own is not None and own.wikibase:
            yield from self._wikibase(one, sid, own, about, literal_parts, terms, graph)
            return
        predicate = write.predicate(one.predicate, terms)
        thing = (
            write.node(one.object.id, terms)
            if isinstance(one.object, Ref)
            else write.literal(one.object, one.raw, own, literal_parts)
        )
        if position:
            self._lists.setdefault((subject, predicate, graph, number), {})[position] = thing
            return
        yield Quad(subject, predicate, thing, graph)
        unit = one.object.unit if isinstance(one.object, Quantity) else NO_UNIT
        if own is None and unit != NO_UNIT:
            about.append(("unit", unit))
        if own is None and isinstance(one.object, Time) and rdf.natural(one.object, "") is None:
            self.lost["a time that is not a year, month, day or second is written as text"] += 1
        if about:
            yield from self._about(sid, (subject, predicate, thing), about, terms, graph)

    def _about(
        self, sid: int, triple: tuple[str, str, str], about: list[tuple[str, Ref | Value]], terms: rdf.Terms | None, graph: str
    ) -> Iterator[Quad]:
        """Yield the triples about a statement.

        Their subject is a blank node that reifies it, or the statement's own node if the source was no RDF.
        """
        write = self._write
        has_node = terms is None and not self._reifiers
        node = f"<{self._base}{STATEMENT}{sid:016x}>" if has_node else f"_:s{sid:016x}"
        subject, predicate, thing = triple
        if self._reifiers or (terms is not None and terms.star and self._star):
            yield Quad(node, f"<{RDF}reifies>", f"<<( {subject} {predicate} {thing} )>>", graph)
        else:
            yield Quad(node, TYPE, f"<{RDF}Statement>", graph)
            yield Quad(node, f"<{RDF}subject>", subject, graph)
            yield Quad(node, f"<{RDF}predicate>", predicate, graph)
            yield Quad(node, f"<{RDF}object>", thing, graph)
        for key, value in about:
            value_term = (
                write.node(value.id, terms) if isinstance(value, Ref) else write.literal(value, None, property_of(key, terms))
            )
            yield Quad(node, write.predicate(key, terms), value_term, graph)

    def _wikibase(
        self,
        one: Statement,
        sid: int,
        own: rdf.Property,
        about: list[tuple[str, Ref | Value]],
        said: dict[str, str],
        terms: rdf.Terms | None,
        graph: str,
    ) -> Iterator[Quad]:
        """Yield a statement in Wikibase's model: the direct claim, and the statement's node."""
        write = self._write
        subject, node = write.node(one.subject, terms), f"<{self._base}{STATEMENT}{sid:016x}>"
        language = said.get(rdf.LANGUAGE)
        yield from self._declared(own, one.predicate, terms)
        thing = self._object(one.object, f"u{sid:016x}", terms, language)
        root, _, key = own.iri.rpartition("/")
        yield Quad(subject, f"<{root}/direct/{key}>", thing, graph)
        if own.direct and not about:
            return
        yield Quad(subject, f"<{own.iri}>", node, graph)
        yield Quad(node, TYPE, f"<{ONTOLOGY}Statement>", graph)
        yield Quad(node, f"<{root}/statement/{key}>", thing, graph)
        yield from self._value(node, f"<{root}/statement/value/{key}>", one.object, graph)
        for name, value in about:
            property_record = property_of(name, terms)
            if property_record is None or not property_record.wikibase:
                value_term = write.node(value.id, terms) if isinstance(value, Ref) else write.literal(value, None, property_record)
                yield Quad(node, write.predicate(name, terms), value_term, graph)
                continue
            root, _, key = property_record.iri.rpartition("/")
            yield from self._declared(property_record, name, terms)
            value_term = self._object(value, f"u{sid:016x}{key}", terms)
            yield Quad(node, f"<{root}/qualifier/{key}>", value_term, graph)
            yield from self._value(node, f"<{root}/qualifier/value/{key}>", value, graph)
        if terms is None or not terms.entities:
            self.lost["a node of Wikibase's statements has a new name, and neither rank nor references"] += 1
            if any(isinstance(value, Quantity) and value.unit != NO_UNIT for value in (one.object, *(value for _, value in about))):
                self.lost["a unit is written by its name, and not by its IRI"] += 1

    def _object(self, value: Ref | Value, blank: str, terms: rdf.Terms | None, language: str | None = None) -> str:
        """Return an object in Wikibase's model, where an unknown value is a blank node."""
        if isinstance(value, Ref):
            return self._write.node(value.id, terms)
        return f"_:{blank}" if value is UNKNOWN else literal_of(value, language, wikibase=True)

    def _declared(self, own: rdf.Property, name: str, terms: rdf.Terms | None) -> Iterator[Quad]:
        """Yield, once, the further IRIs of a property, and its name if no RDF label states it."""
        if own.iri in self._properties:
            return
        self._properties.add(own.iri)
        root, _, key = own.iri.rpartition("/")
        entity = f"<{root.removesuffix('/prop')}/entity/{key}>"
        if terms is not None and terms.entities:
            yield Quad(entity, LABEL, string(name))
        yield Quad(entity, f"<{ONTOLOGY}directClaim>", f"<{root}/direct/{key}>")
        if not own.direct:
            yield Quad(entity, f"<{ONTOLOGY}claim>", f"<{own.iri}>")
            yield Quad(entity, f"<{ONTOLOGY}statementProperty>", f"<{root}/statement/{key}>")
            yield Quad(entity, f"<{ONTOLOGY}qualifier>", f"<{root}/qualifier/{key}>")

    def _value(self, node: str, predicate: str, value: Ref | Value, graph: str) -> Iterator[Quad]:
        """Yield the value node of a time or a quantity, with its precision or unit."""
        full = f"{self._base}.value/"
        for i, parts in enumerate(value_node(value, full)):
            if not i:
                yield Quad(node, predicate, parts[0], graph)
            yield Quad(*parts, graph)

    def lists(self) -> Iterator[Quad]:
        """Yield the lists of the statements, after all of these were written."""
        for (subject, predicate, graph, number), members in self._lists.items():
            key = hashed(" ".join((subject, predicate, graph, number)))
            positions = sorted(members)
            yield Quad(subject, predicate, f"_:l{key}x{positions[0]}", graph)
            for position, following in zip(positions, [*positions[1:], 0], strict=True):
                yield Quad(f"_:l{key}x{position}", _FIRST, members[position], graph)
                yield Quad(f"_:l{key}x{position}", _REST, f"_:l{key}x{following}" if following else _NIL, graph)


def _of_literal(one: Statement, key: str, value: Ref | Value, terms: rdf.Terms | None) -> bool:
    """Tell whether a qualifier is the language, direction or datatype of the statement's literal."""
    if terms is None or isinstance(one.object, Ref) or not isinstance(value, str):
        return False
    if key == rdf.LANGUAGE:
        return isinstance(one.object, str) and rdf.is_tag(value)
    return (key == rdf.DIRECTION and value in ("ltr", "rtl")) or (key == rdf.DATATYPE and rdf.is_iri(value))


# -- quads -------------------------------------------------------------------------------------------


_SUBCLASS: Final = f"<{RDFS}subClassOf>"


class Plain:
    """The plain triples of a snapshot.

    `everything` includes sources that were no RDF. Without `star`, statements about statements are reified, whatever
    the source had; with `reifiers`, they are triple terms of RDF 1.2, except in Wikibase's model. `quads` yields each
    triple at least once; `warnings` is complete after the last one.
    """

    def __init__(
        self, snapshot: Snapshot, base: str, *, everything: bool = True, star: bool = True, reifiers: bool = False
    ) -> None:
        self.snapshot, self._everything = snapshot, everything
        sources = [snapshot.source_of(i) for i in range(len(snapshot.arrays.get("src.name")))]
        self._terms: list[rdf.Terms | None] = [rdf.loads(one.terms) if one.terms else None for one in sources]
        self._write = TermWriter(base)
        self._statements = Statements(snapshot, self._write, self._terms, everything=everything, star=star, reifiers=reifiers)
        self._labels = Labels(snapshot, self._write, self._terms, everything=everything)

    @property
    def warnings(self) -> list[str]:
        """What RDF could not express, with counts."""
        return [f"{numbered(count, 'statement', 'statements')}: {what}" for what, count in sorted(self._statements.lost.items())]

    def quads(self) -> Iterator[Quad]:
        """Yield all triples, with their graphs."""
        # After the statements, which tell what they imply, and which predicates they use.
        yield from self._statements.quads()
        yield from self._statements.lists()
        yield from self._members()
        yield from self._labels.quads()

    def lines(self) -> Iterator[str]:
        """Yield all triples as lines of N-Quads, without line ends."""
        for quad in self.quads():
            yield " ".join(part for part in (*quad, ".") if part)

    def _members(self) -> Iterator[Quad]:
        get, snapshot = self.snapshot.arrays.get, self.snapshot
        inferred = {(source, *pair[:2]) for source, terms in enumerate(self._terms) if terms is not None for pair in terms.inferred}
        for prefix, first, second, predicate in (("mem", "e", "c", TYPE), ("sub", "c", "p", _SUBCLASS)):
            columns = [get(f"{prefix}.{name}").tolist() for name in (first, second, "src", "row")]
            for left, right, source, row in zip(*columns, strict=True):
                terms, below, above = self._terms[source], snapshot.ident(left), snapshot.ident(right)
                if prefix == "mem" and (source, below, above) in inferred:
                    continue
                if (terms is not None or self._everything) and (source, row, below, above) not in self._statements.implied:
                    yield Quad(self._write.node(below, terms), predicate, self._write.node(above, terms))


# -- served ------------------------------------------------------------------------------------------
# Triples of the embedded store in addition to the layout: names as labels, and the plain triples.


#: Suffix of the named graph for plain triples, after the base of a graph.
PLAIN: Final = ".rdf/"


def plain_graph(base: str) -> str:
    """Return the IRI of the named graph with a graph's plain triples."""
    return f"{base}{PLAIN}"


def has_terms(snapshot: Snapshot) -> bool:
    """Tell whether some source of a snapshot came as RDF, or has RDF names."""
    return any(snapshot.source_of(i).terms for i in range(len(snapshot.arrays.get("src.name"))))


def labels(snapshot: Snapshot, base: str) -> Iterator[str]:
    """Yield names of the graph's own nodes as labels: `subject predicate object` without the final dot."""
    names = GraphIris(base)
    for ident, name in zip(snapshot.texts.take(snapshot.entity_id), snapshot.texts.take(snapshot.entity_name), strict=True):
        yield f"{names.entity(ident)} {LABEL} {string(name)}"
    for number in range(len(snapshot.arrays.get("src.name"))):
        name = snapshot.source_of(number).name
        yield f"{names.source(name)} {LABEL} {string(name)}"


def plain(snapshot: Snapshot, base: str, end: str) -> Iterator[str]:
    """Yield plain triples as lines of N-Quads: in a graph of their own, and again in their named graphs.

    A line ends with `end` if its graph is that of the layout.
    """
    suffix, own_graph = f" <{plain_graph(base)}> .\n", GraphIris(base).graph
    for quad in Plain(snapshot, base, everything=False).quads():
        triple = " ".join(quad[:3])
        yield triple + suffix
        if quad.graph:
            yield triple + (end if quad.graph == own_graph else f" {quad.graph} .\n")
