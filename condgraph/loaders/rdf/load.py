"""RDF: Turtle, TriG, N-Triples, N-Quads, RDF/XML, N3 and JSON-LD.

A source is read twice: first for names (a predicate is called by its label, or the end of its IRI,
wherever in the file the label stands) and for statements about statements; then for its items, in
the file's order. `rdf:type` and `rdfs:subClassOf` give membership; a label gives a name; a triple
of a named graph has the qualifier `graph`. Statements that are reified, in RDF 1.2 (`rdf:reifies`,
annotations) or in RDF 1.0 (`rdf:Statement`), get what is said about them as qualifiers, and come
last, as do the statements of Wikidata's model (`wikibase`).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from condgraph.engine.errors import numbered
from condgraph.engine.facts import Entity, EntityKind, Item, Member, Ref, Statement, Subclass
from condgraph.engine.values import Value, collapse
from condgraph.loaders.base import Format, Options, Reading
from condgraph.loaders.rdf.nodes import Object
from condgraph.loaders.rdf.parse import SYNTAXES, is_graph_object, open_source, quads, syntax_of
from condgraph.loaders.rdf.survey import (
    CLASSES,
    GRAPH,
    PARTS,
    REIFIES,
    STATEMENT,
    SUBCLASS,
    TYPE,
    Nodes,
    Reified,
    Survey,
    key_of,
    local_name,
)
from condgraph.loaders.rdf.values import DATATYPE, DIRECTION, LANGUAGE, read_literal
from condgraph.loaders.statements.names import option_choice

if TYPE_CHECKING:
    import pyoxigraph

#: What an export of condgraph's ends with, and what its statements have.
LAYOUT: Final = "pred:layout"
FACT: Final = "pred:fact_h"
#: Wikidata's own properties for membership.
WIKIDATA: Final = {"http://www.wikidata.org/prop/P31": TYPE, "http://www.wikidata.org/prop/P279": SUBCLASS}


def _read(source: Any, reading: Reading, options: Options) -> Iterator[Item]:
    open_stream, path = open_source(source)
    survey = Survey(reading, options)
    own: dict[str, None] = {}
    half = False
    for row, quad in quads(open_stream, path, reading, options, aloud=False):
        survey.see(row, quad)
        if quad.predicate.value == LAYOUT:
            own[str(getattr(quad.subject, "value", ""))] = None
        half |= quad.predicate.value == FACT
    if own and reading.own_rdf is not None:
        # An export of condgraph's: it says more than its triples do, and is read as what it was
        # written from.
        for base in own:
            yield from reading.own_rdf((quad for _, quad in quads(open_stream, path, reading, options, aloud=True)), base)
        return
    if half and not own:
        reading.warn(f"the source has <{FACT}> and no <{LAYOUT}>: it is no whole export, and read as any other RDF")
    if not survey.predicates and not survey.reified:
        reading.warn("the source has no triples")
    survey.settle()
    writer = _Writer(survey, reading, options)
    for row, quad in quads(open_stream, path, reading, options, aloud=True):
        yield from writer.items(row, quad)
    yield from writer.reified()
    yield from writer.wikibase()


class _Writer:
    """The second pass: items, quad by quad."""

    def __init__(self, survey: Survey, reading: Reading, options: Options) -> None:
        self._survey = survey
        self._called = survey.called
        self._reading = reading
        self._nodes = Nodes(reading.source.name)
        self._local = option_choice(options, "names", ("iri", "local")) == "local"
        self._declared: set[str] = set()
        self._concepts: set[str] = set()
        # A predicate's label names the predicate; its IRI is an entity only where something else is
        # said about it.
        self._predicates = survey.predicates
        # Triples that are reified, with the graphs they are reified in.
        self._annotated: dict[tuple[str, str, str], set[str | None]] = {}
        for about in survey.reified.values():
            for parts in about.triples:
                self._annotated.setdefault(key_of(parts), set()).add(about.graph)
        self._asserted: set[tuple[str, str, str]] = set()
        self._warned: set[str] = set()

    def items(self, row: int, quad: pyoxigraph.Quad) -> Iterator[Item]:
        nodes = self._nodes
        subject, predicate = nodes.id(quad.subject), quad.predicate.value
        other = nodes.object(quad.object)
        graph = nodes.graph(quad)
        if self._survey.wikibase.owns(subject, predicate, other):
            return
        about = self._survey.reified.get(subject)
        if about is not None and self._said_about(about, predicate, other, graph, row):
            return
        if other is None:
            self._reading.bad(
                "a triple term can stand only behind rdf:reifies (as << s p o >> writes it), and hold no triple term itself",
                row=row,
                field=local_name(predicate),
            )
            return
        if self._annotated and (key := key_of((subject, predicate, other))) in self._annotated:
            self._asserted.add(key)
            if graph in self._annotated[key]:
                return
        label = self._survey.labels.get(subject)
        if label is not None and label.is_from(predicate, other):
            yield from self._named(subject)
            if graph is None:
                return
        if about is None and other.literal is None and other.id in self._survey.reified:
            self._once("a statement is referred to as a whole, which a graph cannot say: its node stands for it as an entity", row)
        qualifiers: tuple[tuple[str, Ref | Value], ...] = ((GRAPH, Ref(graph)),) if graph is not None else ()
        if predicate in (TYPE, SUBCLASS) and not qualifiers and other.literal is None:
            yield from self._membership(subject, predicate, other, row)
            return
        yield from self._statement(subject, predicate, other, qualifiers, row)

    def reified(self) -> Iterator[Item]:
        """The statements about which something is said, with what is said as qualifiers."""
        unasserted = len(self._annotated) - len(self._asserted)
        if unasserted:
            statements = numbered(unasserted, "statement is", "statements are")
            self._reading.warn(f"{statements} only spoken about, not asserted by the file, and loaded all the same")
        for about in self._survey.reified.values():
            graph: tuple[tuple[str, Ref | Value], ...] = ((GRAPH, Ref(about.graph)),) if about.graph is not None else ()
            for subject, predicate, other in about.triples:
                yield from self._statement(subject, predicate, other, tuple(about.qualifiers) + graph, about.row)

    def wikibase(self) -> Iterator[Item]:
        """The statements of Wikibase's model; of Wikidata, P31 and P279 are memberships besides."""
        for said in self._survey.wikibase.statements(self._survey.labels, self._called):
            yield from self._known(said.subject)
            if isinstance(said.object, Ref):
                yield from self._known(said.object.id)
                yield from self._membership(said.subject, WIKIDATA.get(said.key, ""), Object(said.object.id), said.row)
            for _, other in said.qualifiers:
                if isinstance(other, Ref):
                    yield from self._known(other.id)
            graph: tuple[tuple[str, Ref | Value], ...] = ((GRAPH, Ref(said.graph)),) if said.graph is not None else ()
            yield Statement(said.subject, self._called[said.key], said.object, said.qualifiers + graph, said.row, said.raw)

    def _said_about(self, about: Reified, predicate: str, other: Object | None, graph: str | None, row: int) -> bool:
        """Take a triple about a reified statement; False when it has to stand for itself."""
        if predicate == REIFIES:
            return other is None
        if predicate in PARTS:
            return not about.broken
        if other is None:
            return False
        if predicate == TYPE and other.id == STATEMENT:
            return True
        name = self._called[predicate]
        if name in (GRAPH, LANGUAGE, DATATYPE, DIRECTION):
            name = predicate
        if graph != about.graph:
            self._once("what is said about a statement stands in another graph than the statement; that graph is not kept", row)
        if other.literal is None:
            about.qualifiers.append((name, Ref(other.id)))
            return True
        value, extra, _, warning = read_literal(other.literal)
        if warning:
            self._reading.warn(warning, row=row, field=name)
        if extra:
            self._once("the language or datatype of a value said about a statement is not kept", row)
        about.qualifiers.append((name, value))
        return True

    def _statement(
        self, subject: str, predicate: str, other: Object, qualifiers: tuple[tuple[str, Ref | Value], ...], row: int
    ) -> Iterator[Item]:
        if other.literal is None:
            form = self._survey.wikibase.form(predicate)
            meant = predicate if form is None else WIKIDATA.get(form[1], "")
            yield from self._membership(subject, meant, other, row)
        yield from self._known(subject)
        name = self._called[predicate]
        if other.literal is None:
            yield from self._known(other.id)
            yield Statement(subject, name, Ref(other.id), qualifiers, row)
            return
        value, extra, raw, warning = read_literal(other.literal)
        if warning:
            self._reading.warn(warning, row=row, field=name)
        yield Statement(subject, name, value, extra + qualifiers, row, raw)

    def _membership(self, subject: str, predicate: str, other: Object, row: int) -> Iterator[Item]:
        if predicate == TYPE:
            yield from self._known(subject)
            yield from self._concept(other.id)
            if other.id in CLASSES:
                yield from self._concept(subject)
            yield Member(subject, other.id, row)
        elif predicate == SUBCLASS:
            yield from self._concept(subject)
            yield from self._concept(other.id)
            yield Subclass(subject, other.id, row)

    def _named(self, subject: str) -> Iterator[Entity]:
        """Declare a node by its label, unless it is a predicate of which nothing else is said
        (yet).
        """
        if subject not in self._predicates and subject not in self._declared:
            self._declared.add(subject)
            yield Entity(subject, self._name(subject))

    def _known(self, node: str) -> Iterator[Entity]:
        """Declare a node where its name is not its id and no label of its own declares it."""
        if node in self._declared:
            return
        if node in self._predicates or (self._local and node not in self._survey.labels):
            self._declared.add(node)
            yield Entity(node, self._name(node))

    def _concept(self, node: str) -> Iterator[Entity]:
        if node not in self._concepts:
            self._concepts.add(node)
            yield Entity(node, self._name(node), EntityKind.CONCEPT)

    def _name(self, node: str) -> str:
        label = self._survey.labels.get(node)
        if label is not None:
            return collapse(label.text)
        return local_name(node) if self._local else node

    def _once(self, message: str, row: int) -> None:
        if message not in self._warned:
            self._warned.add(message)
            self._reading.warn(f"{message}; reported once", row=row)


def _sniff(path: Path, head: bytes) -> int:
    return syntax_of(path, head)[1]


FORMAT: Final = Format(
    name="rdf",
    about="RDF: Turtle, TriG, N-Triples, N-Quads, RDF/XML, N3, JSON-LD, with RDF 1.2 reifiers and classical reification",
    read=_read,
    options={
        "syntax": f"one of {', '.join(SYNTAXES)} (default: found out)",
        "base": "the absolute IRI that relative ones start from",
        "labels": "predicates that give names, best first: IRIs, or rdfs:label (default), skos:prefLabel, schema:name, foaf:name",
        "language": "language of the labels that are preferred as names (default: en)",
        "names": 'what nodes without a label are called: "iri" (default) or "local", the end of the IRI',
    },
    sniff=_sniff,
    claims=is_graph_object,
)
