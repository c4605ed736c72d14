"""Loader of RDF: Turtle, TriG, N-Triples, N-Quads, RDF/XML, N3 and JSON-LD.

A source is read twice, except for complete exports of condgraph. The first pass finds names (a
predicate is named by its label, wherever it is in the file, or by the end of its IRI) and statements
about statements; the second pass yields items in the file's order. `rdf:type` and `rdfs:subClassOf`
give membership; a label gives a name; a triple of a named graph has the qualifier `graph`. For
statements that are reified in RDF 1.2 (`rdf:reifies`, annotations), in RDF 1.0 (`rdf:Statement`) or by
singleton properties, triples about them become qualifiers. They come last, and so do the statements of
Wikidata's model (`wikibase`). `statements=` treats named graphs and nodes of declared paths in the same
way. The members of a list are statements of the triple whose object is the list, and `collapse=`
converts nodes that only hold a fact of several parts together (`structures`).

The IRIs of predicates and the forms of literals are stored with the source (`engine.terms`), so that
the graph can be exported as the original RDF.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from condgraph.engine.errors import OptionError, numbered
from condgraph.engine.facts import Entity, EntityKind, Item, Member, Ref, Statement, Subclass
from condgraph.engine.terms import DATATYPE, DIRECTION, GRAPH, INFERRED, LANGUAGE, LIST, POSITION, Property, Terms, loads
from condgraph.engine.values import Value, collapse
from condgraph.loaders.base import Format, Options, Reading, option_choice, option_text, option_texts
from condgraph.loaders.rdf import structures
from condgraph.loaders.rdf.inference import OWL, RULES, Inference, rules_of
from condgraph.loaders.rdf.parse import EXTENSIONS, SYNTAXES, is_graph_object, open_source, quads, syntax_of
from condgraph.loaders.rdf.terms import (
    RDF,
    XSD,
    Label,
    LiteralSpellings,
    Nodes,
    Object,
    Reified,
    implied_datatype,
    key_of,
    read_literal,
)
from condgraph.loaders.rdf.wikibase import Wikibase
from condgraph.loaders.statements.names import PredicateNames

if TYPE_CHECKING:
    import pyoxigraph


# -- first pass --------------------------------------------------------------------------------------
# It finds names of nodes and predicates, and statements about statements.
RDFS: Final = "http://www.w3.org/2000/01/rdf-schema#"
#: Prefixes that `labels=` may use.
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
#: The default predicates of names, best first. Only rdfs:label is just a name, and no fact as well.
NAMING: Final = ("rdfs:label", "skos:prefLabel", "schema:name", "schemas:name", "foaf:name", "dct:title")

TYPE: Final = RDF + "type"
LABEL: Final = RDFS + "label"
SUBCLASS: Final = RDFS + "subClassOf"
REIFIES: Final = RDF + "reifies"
#: Predicates from a statement's node to its parts: in RDF 1.0, and in annotated axioms of OWL 2.
PARTS: Final = {RDF + "subject": 0, RDF + "predicate": 1, RDF + "object": 2}
AXIOM_PARTS: Final = {f"{OWL}annotated{part}": place for place, part in enumerate(("Source", "Property", "Target"))}
_ALL_PARTS: Final = {**PARTS, **AXIOM_PARTS}
#: Classes of such nodes.
STATEMENTS: Final = frozenset({RDF + "Statement", OWL + "Axiom", OWL + "Annotation"})
CLASSES: Final = frozenset({RDFS + "Class", "http://www.w3.org/2002/07/owl#Class"})
_LOCAL: Final = re.compile(r"[^/#:]+$").search


class Survey:
    """The first pass: labels, predicates in order, reified statements."""

    def __init__(self, reading: Reading, options: Options) -> None:
        self._nodes = Nodes(reading.within)
        self._reading = reading
        chosen = options.get("labels") is not None
        self._labels = {_expand(name): rank for rank, name in enumerate(option_texts(options, "labels", NAMING))}
        #: Predicates whose labels are only names, and no facts.
        self.consumed = frozenset(self._labels) if chosen else frozenset({LABEL})
        self._language = option_text(options, "language", "en").lower()
        self.labels: dict[str, Label] = {}
        self.predicates: dict[str, int] = {}
        self.reified: dict[str, Reified] = {}
        #: The predicates of statement parts that occur, with their first rows.
        self._parts: dict[str, int] = {}
        #: Singleton properties with the property that each represents, and the only triple of each predicate (None: several).
        self.singletons: dict[str, str] = {}
        self._alone: dict[str, tuple[str, Object, int, str | None] | None] = {}
        declared = option_texts(options, "statements", ())
        self._paths = [structures.path_of(text) for text in declared if text != structures.GRAPHS]
        #: Whether triples about a named graph apply to its statements; if so, the names of all graphs, and these triples.
        self.about_graphs = structures.GRAPHS in declared
        self.graphs: set[str] = set()
        self.said: dict[str, list[tuple[str, Object, int]]] = {}
        #: The ends of triples on declared paths: by predicate and node, the other ends.
        self._ends: dict[str, dict[str, list[tuple[Object, int, str | None]]]] = {}
        for path in self._paths:
            self._ends |= {path.first: {}, path.last: {}}
        self._leading = {path.first for path in self._paths if not path.inverse}
        self.called: dict[str, str] = {}
        self._names = PredicateNames(reading, whole=True)
        #: Terms of the existing source that this load adds to.
        self.before = loads(reading.source.terms) if reading.source.terms else None
        for called, known in self.before.predicates.items() if self.before is not None else ():
            self._names.keep(known.iri, called)
        self.wikibase = Wikibase(reading)
        self.lists = structures.Lists()
        self.inference = Inference(rules_of(option_texts(options, "infer", ())), self._labels)
        leading = tuple(_expand(name) for name in option_texts(options, "collapse_to", (structures.VALUE,)))
        self.intermediate = structures.Intermediate(reading, option_choice(options, "collapse", structures.CHOICES), leading)
        if options.get("collapse_to") is not None and not self.intermediate.wanted:
            raise OptionError(
                "collapse_to= has no effect, as no nodes are collapsed", hint="collapse='blank' or collapse='unnamed'"
            )
        self._types: dict[tuple[str, str, str], int] = {}
        self._star = 0
        #: Blank subjects of triples that are not part of a list.
        self._blank: set[str] = set()

    def see(self, row: int, quad: pyoxigraph.Quad) -> None:
        """Record one quad."""
        nodes = self._nodes
        subject, predicate = nodes.id(quad.subject), quad.predicate.value
        term = quad.object
        other = nodes.object(term)
        graph = nodes.graph(quad)
        ordinary = False
        if other is not None and predicate in self._ends:
            self._see_end(subject, predicate, other, row, graph)
        if subject in self.graphs:
            if other is not None:
                self.said.setdefault(subject, []).append((predicate, other, row))
                self.predicates.setdefault(predicate, row)
        elif self.wikibase.see(row, subject, predicate, other, graph):
            self.predicates.setdefault(predicate, row)
        elif predicate in _ALL_PARTS or predicate == REIFIES:
            self._see_reified(subject, predicate, term, other, row, graph)
        elif not self.lists.see(row, subject, predicate, other, graph):
            ordinary = True
            self.predicates.setdefault(predicate, row)
            if predicate not in self._alone:
                self._alone[predicate] = None if other is None else (subject, other, row, graph)
            else:
                self._alone[predicate] = None
            if predicate == structures.SINGLETON and other is not None and other.literal is None:
                self.singletons[subject] = other.id
            if subject.startswith("_:"):
                self._blank.add(subject)
        if self.intermediate.wanted:
            self._see_intermediate(row, subject, predicate, other, graph, ordinary)
        if other is not None and other.literal is not None and not other.literal.language:
            datatype = other.literal.datatype.value
            key = predicate, implied_datatype(other.literal.value, datatype), datatype
            self._types[key] = self._types.get(key, 0) + 1
        if self.inference and other is not None and other.literal is None:
            self.inference.see(subject, predicate, other.id)
        rank = self._labels.get(predicate)
        if rank is not None and other is not None and other.literal is not None:
            self._see_label(subject, predicate, other.literal, rank)

    def see_graph(self, quad: pyoxigraph.Quad) -> None:
        """Record the graph of a quad; call it for all quads before `see`."""
        if (graph := self._nodes.graph(quad)) is not None:
            self.graphs.add(graph)

    def _see_end(self, subject: str, predicate: str, other: Object, row: int, graph: str | None) -> None:
        if predicate in self._leading:
            if other.literal is None:
                self._ends[predicate].setdefault(other.id, []).append((Object(subject), row, graph))
        else:
            self._ends[predicate].setdefault(subject, []).append((other, row, graph))

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
        # The choice among equally good labels must not depend on their order, since stores have none.
        key = rank, order, language or "", literal.value
        if best is None or key < best.rank:
            self.labels[subject] = Label(key, literal.value, predicate, literal.language)

    def _see_reified(self, node: str, predicate: str, term: Any, other: Object | None, row: int, graph: str | None) -> None:
        about = self.reified.setdefault(node, Reified(row, graph))
        if predicate == REIFIES:
            self._star += 1
            parts = self._nodes.triple(term) if other is None else None
            if parts is not None:
                about.triples.append(parts)
        elif other is not None:
            self._parts.setdefault(predicate, row)
            about.broken |= about.parts.setdefault(_ALL_PARTS[predicate], other) != other

    def settle(self) -> None:
        """Decide which statements are reified, and name the predicates."""
        self._settle_singletons()
        self._settle_paths()
        for node, about in list(self.reified.items()):
            parts = about.parts
            about.broken |= len(parts) != 3 or parts[0].literal is not None or parts[1].literal is not None
            if not about.broken:
                about.triples.append((parts[0].id, parts[1].id, parts[2]))
            elif parts:
                self._reading.warn(
                    f"{node!r} has rdf:subject, rdf:predicate or rdf:object, or those of an owl:Axiom, but "
                    "not one node for each; kept as ordinary facts",
                    row=about.row,
                )
                for predicate in self._parts:
                    self.predicates.setdefault(predicate, about.row)
            if not about.triples:
                del self.reified[node]
        if self._parts.keys() & AXIOM_PARTS:
            self._reading.warn("annotated axioms (owl:Axiom) are statements with qualifiers; exported RDF has rdf:Statement")
        for about in self.reified.values():
            for subject, predicate, other in about.triples:
                self.predicates.setdefault(predicate, about.row)
                self.intermediate.block(subject, other.id)
        self.wikibase.settle()
        # The objects of these predicates must stay nodes.
        kept = {TYPE, SUBCLASS, REIFIES, *_ALL_PARTS, *(about[1] for item in self.reified.values() for about in item.triples)}
        self.lists.settle(self._blank, self.reified.keys() | self.wikibase.nodes.keys(), kept)
        if self.lists.left is not None:
            self._reading.warn(
                "lists that have a name, appear in several places or contain other lists are kept as their nodes, with the first "
                "and the rest of each; reported once",
                row=self.lists.left,
            )
            for predicate in (structures.FIRST, structures.REST):
                self.predicates.setdefault(predicate, self.lists.left)
        for predicate, row in list(self.predicates.items()):
            for implied in self.inference.implied(predicate):
                self.predicates.setdefault(implied.property, row)
        # These two have fixed names, whatever the names of other predicates.
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

    def _settle_singletons(self) -> None:
        """Make the only triple of a singleton property a statement of the property that it represents."""
        several = 0
        for node, predicate in list(self.singletons.items()):
            triple = self._alone.get(node)
            if triple is None or node in self.reified or predicate in self.singletons:
                several += 1
                del self.singletons[node]
                continue
            subject, other, row, graph = triple
            about = self.reified[node] = Reified(row, graph)
            about.triples.append((subject, predicate, other))
            self.predicates.pop(node, None)
        if several:
            properties = numbered(several, "singleton property has", "singleton properties have")
            self._reading.warn(f"{properties} no triple or several, or are about each other; kept as ordinary predicates")
        if self.singletons and not several:
            self.predicates.pop(structures.SINGLETON, None)
        self._alone = {}

    def _settle_paths(self) -> None:
        """Make nodes of declared paths statements between their ends."""
        for path in self._paths:
            lasts, nodes = self._ends[path.last], 0
            for node, firsts in self._ends[path.first].items():
                subjects = [end for end in firsts if end[0].literal is None]
                if node in self.reified or node not in lasts or not subjects:
                    continue
                leading = frozenset({path.last, path.first} if path.inverse else {path.last})
                about = self.reified[node] = Reified(*subjects[0][1:], leading=leading)
                about.reached_by = "" if path.inverse else path.first
                about.triples += [(end[0].id, path.predicate, last[0]) for end in subjects for last in lasts[node]]
                self.intermediate.block(node)
                nodes += 1
            prefix = f"statements= declares {path.first!r} / {path.last!r}"
            self._reading.warn(
                f"{prefix}: RDF that is exported has the statements of {numbered(nodes, 'node', 'nodes')}, with qualifiers, in the "
                "place of their triples"
                if nodes
                else f"{prefix}, and no node is between these"
            )
        self._ends = {}

    def datatype(self, predicate: str, implied: str | None) -> str | None:
        """Return the datatype of a predicate's literals whose text implies `implied`."""
        return self._properties[predicate].types.get(implied, implied) if implied and predicate in self._properties else implied

    def terms(self) -> Terms:
        """Return the terms of the source's predicates; the second pass adds names."""
        terms = Terms(star=self._star > 0)
        for predicate, called in self.called.items():
            form = self.wikibase.form(predicate)
            if form is None:
                # A Wikibase property also has the IRI of its statements.
                terms.predicates.setdefault(called, self._properties.get(predicate) or Property(predicate))
            else:
                known = self._properties[form[1]]
                known.direct &= form[0].startswith("direct")
                terms.predicates[called] = known
        return terms

    def _settle_types(self) -> None:
        """Set the datatypes of predicates; the most frequent one counts."""
        highest: dict[tuple[str, str], int] = {}
        for (predicate, told, datatype), count in self._types.items():
            if count > highest.get((predicate, told), 0):
                highest[predicate, told] = count
                if datatype != told:
                    self._properties[predicate].types[told] = datatype
                else:
                    self._properties[predicate].types.pop(told, None)
        for known in self.before.predicates.values() if self.before is not None else ():
            # Existing literals have these types.
            self._properties[known.iri].types = dict(known.types)
        self._types = {}

    def _call_property(self, predicate: str, key: str, row: int) -> None:
        """Name all forms of a Wikibase property by the label of its entity, or else its id."""
        if key not in self.called:
            label = self.labels.get(self.wikibase.entity(key))
            self.called[key] = self._names.name(key, collapse(label.text) if label else local_name(key), row=row)
        self.called[predicate] = self.called[key]


class _Properties(dict[str, Property]):
    """Properties by IRI, created on first access."""

    def __missing__(self, iri: str) -> Property:
        self[iri] = Property(iri)
        return self[iri]


def local_name(iri: str) -> str:
    """Return the end of an IRI after its last `#`, `/` or `:`, or the whole IRI if nothing follows.

    >>> local_name("http://xmlns.com/foaf/0.1/knows"), local_name("http://example.org/")
    ('knows', 'http://example.org/')
    """
    match = _LOCAL(iri)
    return match.group() if match else iri


def _expand(name: str) -> str:
    prefix, colon, local = name.partition(":")
    return PREFIXES[prefix] + local if colon and prefix in PREFIXES else name


# -- second pass -------------------------------------------------------------------------------------
# It yields triples as items in the file's order, using the `Survey`. Reified statements and those of
# Wikidata's model come last, when all their parts are known.


#: Wikidata's own properties for membership.
WIKIDATA: Final = {"http://www.wikidata.org/prop/P31": TYPE, "http://www.wikidata.org/prop/P279": SUBCLASS}


class Writer:
    """The second pass: converts quads to items."""

    def __init__(self, survey: Survey, reading: Reading, options: Options) -> None:
        self._survey = survey
        self._called = survey.called
        self._reading = reading
        self._nodes = Nodes(reading.within)
        self._local = option_choice(options, "names", ("iri", "local")) == "local"
        self._declared: set[str] = set()
        self._concepts: set[str] = set()
        # A predicate's label names the predicate; its IRI becomes an entity only with other triples.
        self._predicates = survey.predicates
        # Reified triples, with the graphs in which they are reified.
        self._annotated: dict[tuple[str, str, str], set[str | None]] = {}
        for about in survey.reified.values():
            for parts in about.triples:
                self._annotated.setdefault(key_of(parts), set()).add(about.graph)
        # The triples of a declared path assert its statements.
        self._asserted = {key_of(parts) for about in survey.reified.values() if about.leading for parts in about.triples}
        self._warned: set[str] = set()
        self._graphs: dict[str, tuple[tuple[str, Ref | Value], ...]] = {}
        #: Nodes whose label is only a name, and no fact.
        self._consumed: set[str] = set()
        self._written = LiteralSpellings(reading)
        #: The present content of the graph, if this load adds to a source.
        self._there = reading.known() if survey.before is not None and reading.known is not None else None

    def items(self, row: int, quad: pyoxigraph.Quad) -> Iterator[Item]:
        """Yield the items of one triple; nothing for triples whose statements come last."""
        nodes = self._nodes
        subject, predicate = nodes.id(quad.subject), quad.predicate.value
        other = nodes.object(quad.object)
        graph = nodes.graph(quad)
        if self._survey.wikibase.owns(subject, predicate, other):
            return
        lists = self._survey.lists
        if (predicate in (structures.FIRST, structures.REST) and subject in lists.cells) or subject in self._survey.graphs:
            return
        if other is not None and (node := self._survey.reified.get(other.id)) is not None and node.reached_by == predicate:
            return
        singletons = self._survey.singletons
        if predicate in singletons and other is not None:
            self._asserted.add(key_of((subject, singletons[predicate], other)))
            return
        if predicate == structures.SINGLETON and subject in singletons:
            return
        about = self._survey.reified.get(subject)
        if about is not None and self._statements_about(about, predicate, other, graph, row):
            return
        if other is None:
            self._reading.bad(
                "a triple term is allowed only after rdf:reifies (as << s p o >> writes it), and cannot contain another one",
                row=row,
                field=local_name(predicate),
            )
            return
        if self._annotated and (key := key_of((subject, predicate, other))) in self._annotated:
            self._asserted.add(key)
            if graph in self._annotated[key]:
                return
        if subject in self._survey.intermediate.nodes:
            return
        if other.literal is None and (collapsed := self._survey.intermediate.nodes.get(other.id)):
            yield from self._collapsed(subject, predicate, collapsed, graph, row)
            return
        label = self._survey.labels.get(subject)
        if label is not None and label.is_from(predicate, other):
            yield from self._named(subject)
            if graph is None and _is_name(other, self._survey.consumed, predicate):
                self._consumed.add(subject)
                return
        if about is None and other.literal is None and other.id in self._survey.reified:
            self._once("a statement is referred to as a whole, which a graph cannot express: its node becomes an entity", row)
        qualifiers = self._of_graph(graph)
        if other.literal is None and (members := lists.members.get(other.id)):
            for position, member in enumerate(members, 1):
                place = lists.qualifiers((subject, predicate, graph), other.id, position)
                yield from self._statement(subject, predicate, member, place + qualifiers, row)
            return
        if predicate in (TYPE, SUBCLASS) and not qualifiers and other.literal is None:
            yield from self._membership(subject, predicate, other, row)
            return
        yield from self._statement(subject, predicate, other, qualifiers, row)

    def reified(self) -> Iterator[Item]:
        """Yield the reified statements, with the triples about them as qualifiers."""
        unasserted = len(self._annotated) - len(self._asserted)
        if unasserted:
            statements = numbered(unasserted, "statement is", "statements are")
            self._reading.warn(f"{statements} only spoken about, not asserted by the file, and loaded all the same")
        reified = self._survey.reified.items()
        named = sum(not node.startswith("_:") for node, _ in reified)
        if named:
            statements = numbered(named, "statement has an IRI", "statements have IRIs")
            self._reading.warn(f"{statements} of {'its' if named == 1 else 'their'} own, not kept")
        silent = sum(not about.qualifiers for _, about in reified)
        if silent:
            self._reading.warn(f"of {numbered(silent, 'statement', 'statements')} nothing is said: only the plain triple is kept")
        for about in self._survey.reified.values():
            graph = self._of_graph(about.graph)
            for subject, predicate, other in about.triples:
                label = self._survey.labels.get(subject)
                if label is not None and label.is_from(predicate, other):
                    yield from self._named(subject)
                yield from self._statement(subject, predicate, other, tuple(about.qualifiers) + graph, about.row)

    def wikibase(self) -> Iterator[Item]:
        """Yield the statements of Wikibase's model; Wikidata's P31 and P279 also give memberships."""
        for loaded in self._survey.wikibase.statements(self._survey.labels, self._called):
            yield from self._known(loaded.subject)
            if isinstance(loaded.object, Ref):
                yield from self._known(loaded.object.id)
                yield from self._membership(loaded.subject, WIKIDATA.get(loaded.key, ""), Object(loaded.object.id), loaded.row)
            qualifiers = loaded.qualifiers + self._of_graph(loaded.graph)
            for _, other in qualifiers:
                if isinstance(other, Ref):
                    yield from self._known(other.id)
            yield Statement(loaded.subject, self._called[loaded.key], loaded.object, qualifiers, loaded.row, loaded.raw)

    def _statements_about(self, about: Reified, predicate: str, other: Object | None, graph: str | None, row: int) -> bool:
        """Use a triple about a reified statement; returns False if it must stay a triple."""
        if predicate == REIFIES:
            return other is None
        if predicate in _ALL_PARTS:
            return not about.broken
        if predicate in about.leading:
            return True
        if other is None:
            return False
        if predicate == TYPE and other.id in STATEMENTS:
            return True
        if graph != about.graph:
            self._once("an annotation is in another graph than its statement; that graph is not kept", row)
        about.qualifiers.append(self._qualifier(predicate, other, row))
        return True

    def _qualifier(self, predicate: str, other: Object, row: int) -> tuple[str, Ref | Value]:
        name = self._called[predicate]
        if name in (GRAPH, LANGUAGE, DATATYPE, DIRECTION, POSITION, LIST) or (name == INFERRED and self._survey.inference):
            name = predicate
        if other.literal is None:
            return name, Ref(other.id)
        value, extra, raw, warning = read_literal(other.literal)
        if warning:
            self._reading.warn(warning, row=row, field=name)
        if extra or self._datatype(predicate, other.literal):
            self._once("the language or datatype of a value said about a statement is not kept", row)
        elif raw is not None:
            self._once("how a value said about a statement was written is not kept", row)
        return name, value

    def _of_graph(self, graph: str | None) -> tuple[tuple[str, Ref | Value], ...]:
        """Return the qualifiers of a graph's statements: its name, and triples about it if requested."""
        if graph is None:
            return ()
        if graph not in self._graphs:
            about_graph = (self._qualifier(predicate, other, row) for predicate, other, row in self._survey.said.get(graph, ()))
            self._graphs[graph] = ((GRAPH, Ref(graph)), *dict.fromkeys(about_graph))
        return self._graphs[graph]

    def _collapsed(self, subject: str, predicate: str, node: structures.Collapsed, graph: str | None, row: int) -> Iterator[Item]:
        """Yield the statement of an intermediate node."""
        qualifiers = tuple(self._qualifier(by, other, row) for by, other in node.qualifiers)
        yield from self._statement(subject, predicate, node.object, qualifiers + self._of_graph(graph), row)

    def _statement(
        self, subject: str, predicate: str, other: Object, qualifiers: tuple[tuple[str, Ref | Value], ...], row: int
    ) -> Iterator[Item]:
        if other.literal is None:
            form = self._survey.wikibase.form(predicate)
            membership_predicate = predicate if form is None else WIKIDATA.get(form[1], "")
            yield from self._membership(subject, membership_predicate, other, row)
        yield from self._known(subject)
        for _, value in qualifiers:
            if isinstance(value, Ref):
                yield from self._known(value.id)
        name = self._called[predicate]
        if other.literal is None:
            yield from self._known(other.id)
            yield Statement(subject, name, Ref(other.id), qualifiers, row)
            return
        value, extra, raw, warning = read_literal(other.literal)
        if warning:
            self._reading.warn(warning, row=row, field=name)
        if not extra and (datatype := self._datatype(predicate, other.literal)):
            extra = ((DATATYPE, datatype),)
        yield self._written.distinguished(Statement(subject, name, value, extra + qualifiers, row, raw), other.literal)

    def _datatype(self, predicate: str, literal: pyoxigraph.Literal) -> str | None:
        """Return the datatype of a literal, unless its value, text and predicate imply it."""
        datatype: str = literal.datatype.value
        return None if self._survey.datatype(predicate, implied_datatype(literal.value, datatype)) == datatype else datatype

    def terms(self) -> Terms:
        """Return the terms of the source's predicates and labels; call it last."""
        terms, before = self._survey.terms(), self._survey.before
        terms.local, terms.inferred = self._local, self._survey.inference.memberships
        labels, consumed, predicates = self._survey.labels, self._consumed, self._predicates
        for node in consumed & predicates.keys():
            label = labels[node]
            terms.predicates[self._called[node]].labels.append((label.predicate, label.language, label.text))
        forms = Counter(labels[node].form for node in labels if node in consumed and node not in predicates)
        if before is not None:
            terms.naming = before.naming
            if self._local and not before.local:
                terms.apart = dict.fromkeys(self._declared - labels.keys())
        elif forms:
            terms.naming = forms.most_common(1)[0][0]
        else:
            return terms
        local = self._local or (before is not None and before.local)
        for node, label in labels.items():
            if before is not None and self._is_named(node):
                continue
            if node in predicates:
                # Its label belongs to the predicate.
                terms.apart[node] = None
                continue
            name = collapse(label.text)
            if node not in consumed:
                terms.apart[node] = None
            elif label.form != terms.naming or name == node or (local and name == local_name(node)):
                terms.apart[node] = label.form
            if name != label.text:
                terms.texts[node] = label.text
        return terms if before is None else before.with_more(terms)

    def _is_named(self, node: str) -> bool:
        """Whether a node already has a name in the graph, which stays."""
        number = -1 if self._there is None else self._there.identified(node)
        return number >= 0 and self._there is not None and self._there.name(number) != node

    def _membership(self, subject: str, predicate: str, other: Object, row: int) -> Iterator[Item]:
        if predicate == TYPE:
            yield from self._known(subject)
            yield from self.concept(other.id)
            if other.id in CLASSES:
                yield from self.concept(subject)
            yield Member(subject, other.id, row)
        elif predicate == SUBCLASS:
            yield from self.concept(subject)
            yield from self.concept(other.id)
            yield Subclass(subject, other.id, row)

    def _named(self, subject: str) -> Iterator[Entity]:
        """Yield a node with its label, unless it is a predicate without other triples so far."""
        if subject not in self._predicates and subject not in self._declared:
            self._declared.add(subject)
            yield Entity(subject, self._name(subject))

    def _known(self, node: str) -> Iterator[Entity]:
        """Yield a node if its name differs from its id and no label declares it."""
        if node in self._declared:
            return
        if node in self._predicates or (self._local and node not in self._survey.labels):
            self._declared.add(node)
            yield Entity(node, self._name(node))

    def concept(self, node: str) -> Iterator[Entity]:
        """Yield a node as a concept, once."""
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


def _is_name(other: Object, consumed: frozenset[str], predicate: str) -> bool:
    """Whether a label is determined by its text and language."""
    literal = other.literal
    if literal is None or predicate not in consumed:
        return False
    plain = literal.language is not None or literal.datatype.value == XSD + "string"
    return plain and getattr(literal, "direction", None) is None


# -- the format --------------------------------------------------------------------------------------


#: The predicate that ends an export of condgraph, and a predicate of its statements.
LAYOUT: Final = "pred:layout"
FACT: Final = "pred:fact_h"
#: How many bytes at the end of a file contain the mark; the base in an export as Turtle; the base and
#: mark in one as N-Quads.
_END: Final = 1 << 16
_BASE: Final = re.compile(rb"@base <([^<>\\\s]+)> \.\n")
_MARK: Final = re.compile(rb"^<([^<>\\\s]+)> <pred:layout> ", re.MULTILINE)


def _read(source: Any, reading: Reading, options: Options) -> Iterator[Item]:
    open_stream, path = open_source(source)
    survey = Survey(reading, options)
    if (
        not survey.inference
        and reading.own_rdf is not None
        and reading.on_error == "raise"
        and (own_base := _own_base(path)) is not None
    ):
        # A complete export needs no first pass; whether the file is one shows before its first item.
        try:
            parsed = quads(open_stream, path, reading, options, aloud=True)
            yield from reading.own_rdf(_one_export(parsed, own_base), own_base)
            return
        except _OtherwiseError:
            pass
    export_bases: dict[str, None] = {}
    has_facts = False
    for _, quad in quads(open_stream, path, reading, options, aloud=False) if survey.about_graphs else ():
        survey.see_graph(quad)
    for row, quad in quads(open_stream, path, reading, options, aloud=False):
        survey.see(row, quad)
        if quad.predicate.value == LAYOUT:
            export_bases[str(getattr(quad.subject, "value", ""))] = None
        has_facts |= quad.predicate.value == FACT
    if export_bases and reading.own_rdf is not None:
        # An export of condgraph holds more than its triples, and is read back as the original graph.
        if survey.inference:
            reading.warn("infer= is not used: an export of condgraph is read back as the graph that it was")
        for base in export_bases:
            yield from reading.own_rdf((quad for _, quad in quads(open_stream, path, reading, options, aloud=True)), base)
        return
    if has_facts and not export_bases:
        reading.warn(f"the source has <{FACT}> and no <{LAYOUT}>: it is not a complete export, and is read like any other RDF")
    if not survey.predicates and not survey.reified:
        reading.warn("the source has no triples")
    for rule in survey.inference.unused():
        reading.warn(f"infer= names {rule}, and the source has no triple of it: axioms are those of the same source")
    for axiom, why in survey.inference.left.items():
        reading.warn(f"the axiom {axiom} is not followed: {why}")
    yield from _second(survey, reading, options, quads(open_stream, path, reading, options, aloud=True))


def _second(
    survey: Survey, reading: Reading, options: Options, reread: Iterable[tuple[int, pyoxigraph.Quad]], concepts: Iterable[str] = ()
) -> Iterator[Item]:
    """Yield the items of surveyed quads; `concepts` are concepts, whatever the quads say."""
    survey.settle()
    writer = Writer(survey, reading, options)

    def stated() -> Iterator[Item]:
        for node in concepts:
            yield from writer.concept(node)
        for row, quad in reread:
            yield from writer.items(row, quad)
        yield from writer.reified()
        yield from writer.wikibase()

    yield from survey.inference.items(stated(), survey.called) if survey.inference else stated()
    if survey.predicates:
        yield replace(reading.source, terms=writer.terms().dumps())


def items_of(
    quads: Sequence[pyoxigraph.Quad],
    reading: Reading,
    options: Options,
    nodes: Iterable[Any] = (),
    concepts: Iterable[str] = (),
    axioms: Iterable[tuple[str, str, str]] = (),
) -> Iterator[Item]:
    """Yield the items of quads in memory, part of a larger source, all with row 0.

    `nodes` become entities even if they only have a label, `concepts` become concepts, and `axioms` are
    those of properties, by IRI. The terms of the source have the names of its predicates.
    """
    survey = Survey(reading, options)
    for axiom in axioms:
        survey.inference.see(*axiom)
    for quad in quads if survey.about_graphs else ():
        survey.see_graph(quad)
    for quad in quads:
        survey.see(0, quad)
    local = option_choice(options, "names", ("iri", "local")) == "local"
    yield from _second(survey, reading, options, ((0, quad) for quad in quads), concepts)
    # After the quads, which determine the concepts.
    for node in map(Nodes(reading.within).id, nodes):
        label = survey.labels.get(node)
        yield Entity(node, collapse(label.text) if label is not None else local_name(node) if local else node)


class _OtherwiseError(Exception):
    """The file is not a single export of condgraph with the expected base."""


def _own_base(path: Path | None) -> str | None:
    """Return the base of the export that a file seems to be by its start and end, or None."""
    if path is None or not path.is_file():
        return None
    with path.open("rb") as stream:
        head = _BASE.match(stream.read(_END))
        stream.seek(max(0, path.stat().st_size - _END))
        tail = stream.read()
    marks = _MARK.findall(tail)
    base = marks[-1] if marks else head[1] if head is not None and b"pred:layout " in tail else None
    return base.decode("utf-8", "replace") if base is not None else None


def _one_export(quads: Iterable[tuple[int, Any]], base: str) -> Iterator[Any]:
    """Yield the quads of a file; raises `_OtherwiseError` at the end unless its only mark is that of this base."""
    marks: set[str] = set()
    for _, quad in quads:
        if quad.predicate.value == LAYOUT:
            marks.add(str(getattr(quad.subject, "value", "")))
        yield quad
    if marks != {base}:
        raise _OtherwiseError


def _sniff(path: Path, head: bytes) -> int:
    return syntax_of(path, head)[1]


FORMAT: Final = Format(
    name="rdf",
    about="RDF: Turtle, TriG, N-Triples, N-Quads, RDF/XML, N3, JSON-LD, with RDF 1.2 reifiers and classical reification",
    read=_read,
    options={
        "syntax": f"one of {', '.join(SYNTAXES)} (default: detected)",
        "base": "the absolute IRI that relative ones start from",
        "labels": "predicates that give names, best first, as IRIs or as rdfs:label "
        "(default: rdfs:label, skos:prefLabel, schema:name, foaf:name, dct:title)",
        "language": "language of the labels that are preferred as names (default: en)",
        "infer": f"axioms whose consequences also become statements: some of {', '.join(RULES)} (default: none)",
        "collapse": "which intermediate nodes become statements with qualifiers: one of "
        f"{', '.join(structures.CHOICES)} (default: no; unnamed: also IRIs without a label)",
        "collapse_to": "predicates that lead from an intermediate node to the object of its statement "
        "(default: rdf:value, else the only node)",
        "statements": f"other representations of statements, whose further triples are qualifiers: {structures.GRAPHS!r} "
        "(named graphs), paths over nodes as 'IRI / IRI' or '^IRI / IRI' (default: none)",
        "names": 'what nodes without a label are called: "iri" (default) or "local", the end of the IRI',
    },
    sniff=_sniff,
    sign=re.compile(rb'<|"@|@pref|@ba|ver', re.IGNORECASE).search,
    suffixes=EXTENSIONS,
    claims=is_graph_object,
)
