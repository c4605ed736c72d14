"""Statements as plain triples, with what is said about them: reified, as triple terms, or as
Wikibase's statement nodes; and lists as lists.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from condgraph.engine.facts import Ref
from condgraph.engine.identity import statement_ids
from condgraph.engine.snapshot.readback import place_raws, statements
from condgraph.engine.terms import DATATYPE, DIRECTION, GRAPH, LANGUAGE, LIST, POSITION, Property, Terms, is_iri, is_tag, natural
from condgraph.engine.values import NO_UNIT, UNKNOWN, Quantity, Time, Value
from condgraph.sparql.layout import LABEL, RDF, RDFS, STATEMENT, TYPE
from condgraph.sparql.literals import string
from condgraph.sparql.plain.terms import Quad, TermWriter, hashed, property_of
from condgraph.sparql.wikibase import ONTOLOGY, literal_of, value_node

if TYPE_CHECKING:
    from condgraph.engine.facts import Statement
    from condgraph.engine.snapshot.snapshot import Snapshot

_FIRST, _REST, _NIL = f"<{RDF}first>", f"<{RDF}rest>", f"<{RDF}nil>"
#: Predicates whose statements are memberships as well.
_IMPLYING: Final = frozenset(
    (f"{RDF}type", f"{RDFS}subClassOf", "http://www.wikidata.org/prop/P31", "http://www.wikidata.org/prop/P279")
)


class Statements:
    """The statements of a snapshot as triples. `terms` says of each source what its names are in RDF
    (None: it was no RDF); `everything` and `star` as for `Plain`.
    """

    def __init__(
        self, snapshot: Snapshot, write: TermWriter, terms: Sequence[Terms | None], *, everything: bool, star: bool
    ) -> None:
        self.snapshot, self._write, self._terms, self._everything, self._star = snapshot, write, terms, everything, star
        self._base = write.iris.base
        #: What could not be said, with how often.
        self.lost: Counter[str] = Counter()
        #: Properties of Wikibase that were met.
        self._properties: set[str] = set()
        #: Members of lists by what names the list: subject, predicate, graph, number.
        self._lists: dict[tuple[str, str, str, str], dict[int, str]] = {}
        #: Memberships and subclasses that a statement of the same row says: source, row, both ids.
        self.implied: set[tuple[int, int, str, str]] = set()

    def quads(self) -> Iterator[Quad]:
        """The triples of all statements, but for those with members of lists (`lists`)."""
        snapshot = self.snapshot
        sids = statement_ids(snapshot).view(np.uint64).tolist()
        every = np.arange(snapshot.statements, dtype=np.int32)
        raws = place_raws(snapshot)
        for number, (one, places) in enumerate(statements(snapshot, every)):
            done: set[tuple[int, str | None]] = set()
            for at, (source, row) in enumerate(places):
                raw = raws[number][at] if number in raws else one.raw
                terms = self._terms[source]
                if isinstance(one.object, Ref) and (own := property_of(one.predicate, terms)) is not None and own.iri in _IMPLYING:
                    self.implied.add((source, row, one.subject, one.object.id))
                if (source, raw) in done or (terms is None and not self._everything):
                    continue
                done.add((source, raw))
                # Each source writes a literal in its own way.
                yield from self._statement(one if raw == one.raw else replace(one, raw=raw), sids[number], terms)

    def _statement(self, one: Statement, sid: int, terms: Terms | None) -> Iterator[Quad]:
        write, own = self._write, property_of(one.predicate, terms)
        said: dict[str, str] = {}
        graph = number = ""
        position = 0
        about: list[tuple[str, Ref | Value]] = []
        for key, value in one.qualifiers:
            if terms is not None and key == GRAPH and isinstance(value, Ref) and not graph:
                graph = write.node(value.id, terms)
            elif terms is not None and key == POSITION and isinstance(value, Quantity) and isinstance(value.number, int):
                position = value.number
            elif terms is not None and key == LIST and isinstance(value, Quantity):
                number = str(value.number)
            elif _of_literal(one, key, value, terms):
                said[key] = str(value)
            else:
                about.append((key, value))
        subject = write.node(one.subject, terms)
        if own is not None and own.wikibase:
            yield from self._wikibase(one, sid, own, about, said, terms, graph)
            return
        predicate = write.predicate(one.predicate, terms)
        thing = write.node(one.object.id, terms) if isinstance(one.object, Ref) else write.literal(one.object, one.raw, own, said)
        if position:
            self._lists.setdefault((subject, predicate, graph, number), {})[position] = thing
            return
        yield Quad(subject, predicate, thing, graph)
        unit = one.object.unit if isinstance(one.object, Quantity) else NO_UNIT
        if own is None and unit != NO_UNIT:
            about.append(("unit", unit))
        if own is None and isinstance(one.object, Time) and natural(one.object, "") is None:
            self.lost["a time that is no year, month, day or second is written as text"] += 1
        if about:
            yield from self._about(sid, (subject, predicate, thing), about, terms, graph)

    def _about(
        self, sid: int, triple: tuple[str, str, str], about: list[tuple[str, Ref | Value]], terms: Terms | None, graph: str
    ) -> Iterator[Quad]:
        """What is said about a statement: of a blank node that reifies it, or of the statement's own
        node where it was no RDF.
        """
        write = self._write
        node = f"<{self._base}{STATEMENT}{sid:016x}>" if terms is None else f"_:s{sid:016x}"
        subject, predicate, thing = triple
        if terms is not None and terms.star and self._star:
            yield Quad(node, f"<{RDF}reifies>", f"<<( {subject} {predicate} {thing} )>>", graph)
        else:
            yield Quad(node, TYPE, f"<{RDF}Statement>", graph)
            yield Quad(node, f"<{RDF}subject>", subject, graph)
            yield Quad(node, f"<{RDF}predicate>", predicate, graph)
            yield Quad(node, f"<{RDF}object>", thing, graph)
        for key, value in about:
            other = write.node(value.id, terms) if isinstance(value, Ref) else write.literal(value, None, property_of(key, terms))
            yield Quad(node, write.predicate(key, terms), other, graph)

    def _wikibase(
        self,
        one: Statement,
        sid: int,
        own: Property,
        about: list[tuple[str, Ref | Value]],
        said: dict[str, str],
        terms: Terms | None,
        graph: str,
    ) -> Iterator[Quad]:
        """A statement of Wikibase's model: the direct claim, and the statement's node."""
        write = self._write
        subject, node = write.node(one.subject, terms), f"<{self._base}{STATEMENT}{sid:016x}>"
        language = said.get(LANGUAGE)
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
            known = property_of(name, terms)
            if known is None or not known.wikibase:
                other = write.node(value.id, terms) if isinstance(value, Ref) else write.literal(value, None, known)
                yield Quad(node, write.predicate(name, terms), other, graph)
                continue
            root, _, key = known.iri.rpartition("/")
            yield from self._declared(known, name, terms)
            other = self._object(value, f"u{sid:016x}{key}", terms)
            yield Quad(node, f"<{root}/qualifier/{key}>", other, graph)
            yield from self._value(node, f"<{root}/qualifier/value/{key}>", value, graph)
        if terms is None or not terms.entities:
            self.lost["a node of Wikibase's statements has a new name, and neither rank nor references"] += 1
            if any(isinstance(value, Quantity) and value.unit != NO_UNIT for value in (one.object, *(value for _, value in about))):
                self.lost["a unit stands under its name, and not under its IRI"] += 1

    def _object(self, value: Ref | Value, blank: str, terms: Terms | None, language: str | None = None) -> str:
        """An object in Wikibase's model, where an unknown value is a blank node."""
        if isinstance(value, Ref):
            return self._write.node(value.id, terms)
        return f"_:{blank}" if value is UNKNOWN else literal_of(value, language, wikibase=True)

    def _declared(self, own: Property, name: str, terms: Terms | None) -> Iterator[Quad]:
        """How the other IRIs of a property are written, once; and what it is called, where no label
        of RDF says it.
        """
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
        """The value node of a time or a quantity, which says its precision or its unit."""
        full = f"{self._base}.value/"
        for i, parts in enumerate(value_node(value, full)):
            if not i:
                yield Quad(node, predicate, parts[0], graph)
            yield Quad(*parts, graph)

    def lists(self) -> Iterator[Quad]:
        """The lists that stood in the statements, which were all written."""
        for (subject, predicate, graph, number), members in self._lists.items():
            key = hashed(" ".join((subject, predicate, graph, number)))
            places = sorted(members)
            yield Quad(subject, predicate, f"_:l{key}x{places[0]}", graph)
            for place, after in zip(places, [*places[1:], 0], strict=True):
                yield Quad(f"_:l{key}x{place}", _FIRST, members[place], graph)
                yield Quad(f"_:l{key}x{place}", _REST, f"_:l{key}x{after}" if after else _NIL, graph)


def _of_literal(one: Statement, key: str, value: Ref | Value, terms: Terms | None) -> bool:
    """Whether a qualifier is the language, direction or datatype of the statement's literal."""
    if terms is None or isinstance(one.object, Ref) or not isinstance(value, str):
        return False
    if key == LANGUAGE:
        return isinstance(one.object, str) and is_tag(value)
    return (key == DIRECTION and value in ("ltr", "rtl")) or (key == DATATYPE and is_iri(value))
