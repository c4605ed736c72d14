"""The second pass over an RDF source: its triples as items, in the file's order, by what the first
pass (`survey`) found out.

What is reified, and the statements of Wikidata's model, come last, when all that is said about them
is known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from condgraph.engine.errors import numbered
from condgraph.engine.facts import Entity, EntityKind, Item, Member, Ref, Statement, Subclass
from condgraph.engine.terms import DATATYPE, DIRECTION, GRAPH, LANGUAGE, LIST, POSITION, Terms
from condgraph.engine.values import Value, collapse
from condgraph.loaders.base import Options, Reading
from condgraph.loaders.rdf.intermediate import Collapsed
from condgraph.loaders.rdf.lists import FIRST, REST
from condgraph.loaders.rdf.nodes import Object
from condgraph.loaders.rdf.reified import Nodes, Reified, key_of
from condgraph.loaders.rdf.survey import (
    CLASSES,
    PARTS,
    REIFIES,
    STATEMENT,
    SUBCLASS,
    TYPE,
    Survey,
    local_name,
)
from condgraph.loaders.rdf.values import XSD, Written, datatype_told, read_literal
from condgraph.loaders.statements.names import option_choice

if TYPE_CHECKING:
    import pyoxigraph

#: Wikidata's own properties for membership.
WIKIDATA: Final = {"http://www.wikidata.org/prop/P31": TYPE, "http://www.wikidata.org/prop/P279": SUBCLASS}


class Writer:
    """The second pass: items, quad by quad."""

    def __init__(self, survey: Survey, reading: Reading, options: Options) -> None:
        self._survey = survey
        self._called = survey.called
        self._reading = reading
        self._nodes = Nodes(reading.within)
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
        #: Nodes whose label is their name and no fact besides.
        self._consumed: set[str] = set()
        self._written = Written(reading)
        #: What the graph has already, where this is added to a source of it.
        self._there = reading.known() if survey.before is not None and reading.known is not None else None

    def items(self, row: int, quad: pyoxigraph.Quad) -> Iterator[Item]:
        """The items of one triple; of what comes last, none yet."""
        nodes = self._nodes
        subject, predicate = nodes.id(quad.subject), quad.predicate.value
        other = nodes.object(quad.object)
        graph = nodes.graph(quad)
        if self._survey.wikibase.owns(subject, predicate, other):
            return
        lists = self._survey.lists
        if predicate in (FIRST, REST) and subject in lists.cells:
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
        if subject in self._survey.intermediate.nodes:
            return
        if other.literal is None and (found := self._survey.intermediate.nodes.get(other.id)):
            yield from self._collapsed(subject, predicate, found, graph, row)
            return
        label = self._survey.labels.get(subject)
        if label is not None and label.is_from(predicate, other):
            yield from self._named(subject)
            if graph is None and _is_name(other, self._survey.consumed, predicate):
                self._consumed.add(subject)
                return
        if about is None and other.literal is None and other.id in self._survey.reified:
            self._once("a statement is referred to as a whole, which a graph cannot say: its node stands for it as an entity", row)
        qualifiers: tuple[tuple[str, Ref | Value], ...] = ((GRAPH, Ref(graph)),) if graph is not None else ()
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
        """The statements about which something is said, with what is said as qualifiers."""
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
            graph: tuple[tuple[str, Ref | Value], ...] = ((GRAPH, Ref(about.graph)),) if about.graph is not None else ()
            for subject, predicate, other in about.triples:
                label = self._survey.labels.get(subject)
                if label is not None and label.is_from(predicate, other):
                    yield from self._named(subject)
                yield from self._statement(subject, predicate, other, tuple(about.qualifiers) + graph, about.row)

    def wikibase(self) -> Iterator[Item]:
        """The statements of Wikibase's model; of Wikidata, P31 and P279 are memberships besides."""
        for said in self._survey.wikibase.statements(self._survey.labels, self._called):
            yield from self._known(said.subject)
            if isinstance(said.object, Ref):
                yield from self._known(said.object.id)
                yield from self._membership(said.subject, WIKIDATA.get(said.key, ""), Object(said.object.id), said.row)
            graph: tuple[tuple[str, Ref | Value], ...] = ((GRAPH, Ref(said.graph)),) if said.graph is not None else ()
            qualifiers = said.qualifiers + graph
            for _, other in qualifiers:
                if isinstance(other, Ref):
                    yield from self._known(other.id)
            yield Statement(said.subject, self._called[said.key], said.object, qualifiers, said.row, said.raw)

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
        if graph != about.graph:
            self._once("what is said about a statement stands in another graph than the statement; that graph is not kept", row)
        about.qualifiers.append(self._qualifier(predicate, other, row))
        return True

    def _qualifier(self, predicate: str, other: Object, row: int) -> tuple[str, Ref | Value]:
        name = self._called[predicate]
        if name in (GRAPH, LANGUAGE, DATATYPE, DIRECTION, POSITION, LIST):
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

    def _collapsed(self, subject: str, predicate: str, found: Collapsed, graph: str | None, row: int) -> Iterator[Item]:
        """The statement that an intermediate node is."""
        qualifiers = tuple(self._qualifier(by, other, row) for by, other in found.qualifiers)
        place: tuple[tuple[str, Ref | Value], ...] = ((GRAPH, Ref(graph)),) if graph is not None else ()
        yield from self._statement(subject, predicate, found.object, qualifiers + place, row)

    def _statement(
        self, subject: str, predicate: str, other: Object, qualifiers: tuple[tuple[str, Ref | Value], ...], row: int
    ) -> Iterator[Item]:
        if other.literal is None:
            form = self._survey.wikibase.form(predicate)
            meant = predicate if form is None else WIKIDATA.get(form[1], "")
            yield from self._membership(subject, meant, other, row)
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
        yield self._written.apart(Statement(subject, name, value, extra + qualifiers, row, raw), other.literal)

    def _datatype(self, predicate: str, literal: pyoxigraph.Literal) -> str | None:
        """The datatype of a literal where its value, its text and its predicate tell another one."""
        datatype: str = literal.datatype.value
        return None if self._survey.datatype(predicate, datatype_told(literal.value, datatype)) == datatype else datatype

    def terms(self) -> Terms:
        """What the source calls its predicates, and which labels gave names; call it last."""
        terms, before = self._survey.terms(), self._survey.before
        terms.local = self._local
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
                # Its label is the predicate's.
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
        """Whether a node has a name already, which stays."""
        number = -1 if self._there is None else self._there.identified(node)
        return number >= 0 and self._there is not None and self._there.name(number) != node

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


def _is_name(other: Object, consumed: frozenset[str], predicate: str) -> bool:
    """Whether a label is known by its text and its language."""
    literal = other.literal
    if literal is None or predicate not in consumed:
        return False
    plain = literal.language is not None or literal.datatype.value == XSD + "string"
    return plain and getattr(literal, "direction", None) is None
