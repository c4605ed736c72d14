"""The first pass over an RDF source: names of nodes and predicates, and statements about
statements.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from condgraph.engine.errors import OptionError
from condgraph.engine.terms import Property, Terms, loads
from condgraph.engine.values import collapse
from condgraph.loaders.base import Options, Reading
from condgraph.loaders.rdf.intermediate import CHOICES, VALUE, Intermediate
from condgraph.loaders.rdf.lists import FIRST, REST, Lists
from condgraph.loaders.rdf.nodes import Label, Object
from condgraph.loaders.rdf.reified import Nodes, Reified
from condgraph.loaders.rdf.values import RDF, datatype_told
from condgraph.loaders.rdf.wikibase import Wikibase
from condgraph.loaders.statements.names import PredicateNames, option_choice, option_names, option_text

if TYPE_CHECKING:
    import pyoxigraph

RDFS: Final = "http://www.w3.org/2000/01/rdf-schema#"
#: What `labels=` may abbreviate.
PREFIXES: Final = {
    "rdf": RDF,
    "rdfs": RDFS,
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "schema": "http://schema.org/",
    "schemas": "https://schema.org/",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "dc": "http://purl.org/dc/elements/1.1/",
    "dcterms": "http://purl.org/dc/terms/",
    "dct": "http://purl.org/dc/terms/",
}
#: Predicates that give names where `labels=` names none, best first. Of these only rdfs:label is
#: nothing but a name.
NAMING: Final = ("rdfs:label", "skos:prefLabel", "schema:name", "schemas:name", "foaf:name", "dct:title")

TYPE: Final = RDF + "type"
LABEL: Final = RDFS + "label"
SUBCLASS: Final = RDFS + "subClassOf"
REIFIES: Final = RDF + "reifies"
PARTS: Final = {RDF + "subject": 0, RDF + "predicate": 1, RDF + "object": 2}
STATEMENT: Final = RDF + "Statement"
CLASSES: Final = frozenset({RDFS + "Class", "http://www.w3.org/2002/07/owl#Class"})
_LOCAL: Final = re.compile(r"[^/#:]+$").search


class Survey:
    """The first pass: labels, predicates in order, reified statements."""

    def __init__(self, reading: Reading, options: Options) -> None:
        self._nodes = Nodes(reading.within)
        self._reading = reading
        chosen = options.get("labels") is not None
        self._labels = {_expand(name): rank for rank, name in enumerate(option_names(options, "labels", NAMING))}
        #: Predicates of labels that are names and no facts besides.
        self.consumed = frozenset(self._labels) if chosen else frozenset({LABEL})
        self._language = option_text(options, "language", "en").lower()
        self.labels: dict[str, Label] = {}
        self.predicates: dict[str, int] = {}
        self.reified: dict[str, Reified] = {}
        self.called: dict[str, str] = {}
        self._names = PredicateNames(reading, whole=True)
        #: What the source calls its predicates that this is added to.
        self.before = loads(reading.source.terms) if reading.source.terms else None
        for called, known in self.before.predicates.items() if self.before is not None else ():
            self._names.keep(known.iri, called)
        self.wikibase = Wikibase(reading)
        self.lists = Lists()
        leading = tuple(_expand(name) for name in option_names(options, "collapse_to", (VALUE,)))
        self.intermediate = Intermediate(reading, option_choice(options, "collapse", CHOICES), leading)
        if options.get("collapse_to") is not None and not self.intermediate.wanted:
            raise OptionError(
                "collapse_to= says how nodes are collapsed, and none are", hint="collapse='blank' or collapse='unnamed'"
            )
        self._types: dict[tuple[str, str, str], int] = {}
        self._star = 0
        #: Subjects of triples that are no part of a list, where they are blank.
        self._blank: set[str] = set()

    def see(self, row: int, quad: pyoxigraph.Quad) -> None:
        """Look at one quad."""
        nodes = self._nodes
        subject, predicate = nodes.id(quad.subject), quad.predicate.value
        term = quad.object
        other = nodes.object(term)
        graph = nodes.graph(quad)
        ordinary = False
        if self.wikibase.see(row, subject, predicate, other, graph):
            self.predicates.setdefault(predicate, row)
        elif predicate in PARTS or predicate == REIFIES:
            self._see_reified(subject, predicate, term, other, row, graph)
        elif not self.lists.see(row, subject, predicate, other, graph):
            ordinary = True
            self.predicates.setdefault(predicate, row)
            if subject.startswith("_:"):
                self._blank.add(subject)
        if self.intermediate.wanted:
            self._see_intermediate(row, subject, predicate, other, graph, ordinary)
        if other is not None and other.literal is not None and not other.literal.language:
            datatype = other.literal.datatype.value
            key = predicate, datatype_told(other.literal.value, datatype), datatype
            self._types[key] = self._types.get(key, 0) + 1
        rank = self._labels.get(predicate)
        if rank is not None and other is not None and other.literal is not None:
            self._see_label(subject, predicate, other.literal, rank)

    def _see_intermediate(
        self, row: int, subject: str, predicate: str, other: Object | None, graph: str | None, ordinary: bool
    ) -> None:
        node = other.id if other is not None else None
        self.intermediate.block(graph)
        if not ordinary:
            self.intermediate.block(subject, node)
        elif predicate in (TYPE, SUBCLASS):
            self.intermediate.typed(subject)
            self.intermediate.block(node)
        else:
            self.intermediate.see(row, subject, predicate, other, graph)

    def _see_label(self, subject: str, predicate: str, literal: pyoxigraph.Literal, rank: int) -> None:
        text = collapse(literal.value)
        if not text:
            return
        language = literal.language.lower() if literal.language else None
        if language is None:
            order = 2
        elif language == self._language:
            order = 0
        else:
            order = 1 if language.partition("-")[0] == self._language.partition("-")[0] else 3
        best = self.labels.get(subject)
        if best is None or (rank, order) < best.rank:
            self.labels[subject] = Label((rank, order), literal.value, predicate, literal.language)

    def _see_reified(self, node: str, predicate: str, term: Any, other: Object | None, row: int, graph: str | None) -> None:
        about = self.reified.setdefault(node, Reified(row, graph))
        if predicate == REIFIES:
            self._star += 1
            parts = self._nodes.triple(term) if other is None else None
            if parts is not None:
                about.triples.append(parts)
        elif other is not None:
            about.broken |= about.parts.setdefault(PARTS[predicate], other) != other

    def settle(self) -> None:
        """Decide what is a reified statement, and how predicates are called."""
        for node, about in list(self.reified.items()):
            parts = about.parts
            about.broken |= len(parts) != 3 or parts[0].literal is not None or parts[1].literal is not None
            if not about.broken:
                about.triples.append((parts[0].id, parts[1].id, parts[2]))
            elif parts:
                self._reading.warn(
                    f"{node!r} has rdf:subject, rdf:predicate or rdf:object, but not one node for each; kept as ordinary facts",
                    row=about.row,
                )
                for predicate in PARTS:
                    self.predicates.setdefault(predicate, about.row)
            if not about.triples:
                del self.reified[node]
        for about in self.reified.values():
            for subject, predicate, other in about.triples:
                self.predicates.setdefault(predicate, about.row)
                self.intermediate.block(subject, other.id)
        self.wikibase.settle()
        # What these say of a node, it says of a node.
        kept = {TYPE, SUBCLASS, REIFIES, *PARTS, *(about[1] for one in self.reified.values() for about in one.triples)}
        self.lists.settle(self._blank, self.reified.keys() | self.wikibase.nodes.keys(), kept)
        if self.lists.left is not None:
            self._reading.warn(
                "lists that have a name, stand in several places or hold other lists are kept as their nodes, with the first and "
                "the rest of each; reported once",
                row=self.lists.left,
            )
            for predicate in (FIRST, REST):
                self.predicates.setdefault(predicate, self.lists.left)
        # These two have names of their own here, whatever other predicates are called.
        self.called = {TYPE: self._names.name(TYPE, "type"), LABEL: self._names.name(LABEL, "label")}
        for predicate, row in self.predicates.items():
            form = self.wikibase.form(predicate)
            if form is not None:
                self._call_property(predicate, form[1], row)
                continue
            label = self.labels.get(predicate)
            called = collapse(label.text) if label else local_name(predicate)
            self.called[predicate] = self._names.name(predicate, called, row=row)
        self._properties = _Properties()
        for predicate in self.called:
            form = self.wikibase.form(predicate)
            if form is not None:
                self._properties.setdefault(form[1], Property(form[1], wikibase=True, direct=True))
        self._settle_types()
        if self.intermediate.wanted:
            self.intermediate.settle(lambda node: node in self.labels or node in self.predicates, self.called.__getitem__)

    def datatype(self, predicate: str, told: str | None) -> str | None:
        """The datatype that literals of a predicate have whose text tells another one."""
        return self._properties[predicate].types.get(told, told) if told and predicate in self._properties else told

    def terms(self) -> Terms:
        """What the source calls its predicates; names are for the second pass to add."""
        terms = Terms(star=self._star > 0)
        for predicate, called in self.called.items():
            form = self.wikibase.form(predicate)
            if form is None:
                # A property of Wikibase is called by the IRI of its statements as well.
                terms.predicates.setdefault(called, self._properties.get(predicate) or Property(predicate))
            else:
                known = self._properties[form[1]]
                known.direct &= form[0].startswith("direct")
                terms.predicates[called] = known
        return terms

    def _settle_types(self) -> None:
        """Which datatypes the predicates have; the commonest where there are several."""
        most: dict[tuple[str, str], int] = {}
        for (predicate, told, datatype), count in self._types.items():
            if count > most.get((predicate, told), 0):
                most[predicate, told] = count
                if datatype != told:
                    self._properties[predicate].types[told] = datatype
                else:
                    self._properties[predicate].types.pop(told, None)
        for known in self.before.predicates.values() if self.before is not None else ():
            # Literals that are there already are of these types.
            self._properties[known.iri].types = dict(known.types)
        self._types = {}

    def _call_property(self, predicate: str, key: str, row: int) -> None:
        """All forms of a property of Wikibase have one name: the label of its entity, else its id."""
        if key not in self.called:
            label = self.labels.get(self.wikibase.entity(key))
            self.called[key] = self._names.name(key, collapse(label.text) if label else local_name(key), row=row)
        self.called[predicate] = self.called[key]


class _Properties(dict[str, Property]):
    """Properties by their IRI, made when they are looked for."""

    def __missing__(self, iri: str) -> Property:
        self[iri] = Property(iri)
        return self[iri]


def local_name(iri: str) -> str:
    """The end of an IRI, after its last `#`, `/` or `:`; the whole of it where nothing stands
    there.

    >>> local_name("http://xmlns.com/foaf/0.1/knows"), local_name("http://example.org/")
    ('knows', 'http://example.org/')
    """
    found = _LOCAL(iri)
    return found.group() if found else iri


def _expand(name: str) -> str:
    prefix, found, rest = name.partition(":")
    return PREFIXES[prefix] + rest if found and prefix in PREFIXES else name
