"""RDF: Turtle, TriG, N-Triples, N-Quads, RDF/XML, N3 and JSON-LD.

A source is read twice: first for names (a predicate is called by its label, or the end of its IRI, wherever in the file the label
stands) and for statements about statements; then for its items, in the file's order. `rdf:type` and `rdfs:subClassOf` give
membership; a label gives a name; a triple of a named graph has the qualifier `graph`. Statements that are reified, in RDF 1.2
(`rdf:reifies`, annotations) or in RDF 1.0 (`rdf:Statement`), get what is said about them as qualifiers, and come last.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from condgraph.engine.facts import Entity, EntityKind, Item, Member, Ref, Statement, Subclass
from condgraph.engine.values import Value, collapse
from condgraph.loaders.base import Format, Options, Reading
from condgraph.loaders.names import PredicateNames, option_choice, option_names, option_text
from condgraph.loaders.rdf_parse import SYNTAXES, is_graph_object, open_source, quads, syntax_of
from condgraph.loaders.rdf_values import DATATYPE, DIRECTION, LANGUAGE, RDF, read_literal

if TYPE_CHECKING:
    import pyoxigraph

RDFS: Final = "http://www.w3.org/2000/01/rdf-schema#"
GRAPH: Final = "graph"
#: What `labels=` may abbreviate.
PREFIXES: Final = {
    "rdfs": RDFS,
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "schema": "http://schema.org/",
    "schemas": "https://schema.org/",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "dc": "http://purl.org/dc/elements/1.1/",
    "dcterms": "http://purl.org/dc/terms/",
}

_TYPE: Final = RDF + "type"
_LABEL: Final = RDFS + "label"
_SUBCLASS: Final = RDFS + "subClassOf"
_REIFIES: Final = RDF + "reifies"
_PARTS: Final = {RDF + "subject": 0, RDF + "predicate": 1, RDF + "object": 2}
_STATEMENT: Final = RDF + "Statement"
_CLASSES: Final = frozenset({RDFS + "Class", "http://www.w3.org/2002/07/owl#Class"})
#: Blank nodes without a label in the file get a random one from the parser, another each time.
_RANDOM: Final = re.compile(r"[0-9a-f]{24,32}").fullmatch
_LOCAL: Final = re.compile(r"[^/#:]+$").search

_Term: TypeAlias = "pyoxigraph.NamedNode | pyoxigraph.BlankNode | pyoxigraph.Literal | pyoxigraph.Triple"
#: Subject, predicate and object of a reified statement, terms as they were parsed.
_Parts = tuple[str, str, "_Object"]


@dataclass(frozen=True, slots=True)
class _Object:
    """An object: the id of a node, or a literal."""

    id: str
    literal: pyoxigraph.Literal | None = None


@dataclass(slots=True)
class _Label:
    """The best label of a node so far; lower ranks are better."""

    rank: tuple[int, int]
    text: str
    predicate: str
    language: str | None

    def is_from(self, predicate: str, other: _Object) -> bool:
        """Whether a triple with this predicate and object is the one that gave the label."""
        literal = other.literal
        return (
            literal is not None and predicate == self.predicate and literal.value == self.text and literal.language == self.language
        )


@dataclass(slots=True)
class _Reified:
    """A node that stands for statements: which ones, where, in which graph, and what is said about them."""

    row: int
    graph: str | None
    triples: list[_Parts] = field(default_factory=list)
    parts: dict[int, _Object] = field(default_factory=dict)
    broken: bool = False
    qualifiers: list[tuple[str, Ref | Value]] = field(default_factory=list)


def _read(source: Any, reading: Reading, options: Options) -> Iterator[Item]:
    open_stream, path = open_source(source)
    survey = _Survey(reading, options)
    for row, quad in quads(open_stream, path, reading, options, aloud=False):
        survey.see(row, quad)
    if not survey.predicates and not survey.reified:
        reading.warn("the source has no triples")
    survey.settle()
    writer = _Writer(survey, reading, options)
    for row, quad in quads(open_stream, path, reading, options, aloud=True):
        yield from writer.items(row, quad)
    yield from writer.reified()


class _Nodes:
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
        if type(node) is self._iri:
            return value
        if _RANDOM(value):
            # By order of appearance, so that two passes, and two loads of one file, agree. No label in a file begins with a dot.
            value = f".{self._numbers.setdefault(value, len(self._numbers) + 1)}"
        return f"_:{self._scope}/{value}"

    def object(self, term: Any) -> _Object | None:
        """The object of a triple; None for a triple term."""
        kind = type(term)
        if kind is self._literal:
            return _Object("", term)
        return None if kind is self._triple else _Object(term.value if kind is self._iri else self.id(term))

    def graph(self, quad: pyoxigraph.Quad) -> str | None:
        """The id of a quad's graph; None for the default graph."""
        name = quad.graph_name
        return None if type(name) is self._default else self.id(name)

    def triple(self, term: Any) -> _Parts | None:
        """The parts of a triple term; None when there is another one inside."""
        other = self.object(term.object)
        return None if other is None else (self.id(term.subject), term.predicate.value, other)


class _Survey:
    """The first pass: labels, predicates in order, reified statements."""

    def __init__(self, reading: Reading, options: Options) -> None:
        self._nodes = _Nodes(reading.source.name)
        self._reading = reading
        self._labels = {_expand(name): rank for rank, name in enumerate(option_names(options, "labels", ("rdfs:label",)))}
        self._language = option_text(options, "language", "en").lower()
        self.labels: dict[str, _Label] = {}
        self.predicates: dict[str, int] = {}
        self.reified: dict[str, _Reified] = {}
        self.called: dict[str, str] = {}
        self._names = PredicateNames(reading, whole=True)

    def see(self, row: int, quad: pyoxigraph.Quad) -> None:
        nodes = self._nodes
        subject, predicate = nodes.id(quad.subject), quad.predicate.value
        term = quad.object
        other = nodes.object(term)
        graph = nodes.graph(quad)
        if predicate in _PARTS or predicate == _REIFIES:
            self._see_reified(subject, predicate, term, other, row, graph)
        else:
            self.predicates.setdefault(predicate, row)
        rank = self._labels.get(predicate)
        if rank is not None and other is not None and other.literal is not None:
            self._see_label(subject, predicate, other.literal, rank)

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
            self.labels[subject] = _Label((rank, order), literal.value, predicate, literal.language)

    def _see_reified(self, node: str, predicate: str, term: Any, other: _Object | None, row: int, graph: str | None) -> None:
        about = self.reified.setdefault(node, _Reified(row, graph))
        if predicate == _REIFIES:
            parts = self._nodes.triple(term) if other is None else None
            if parts is not None:
                about.triples.append(parts)
        elif other is not None:
            about.broken |= about.parts.setdefault(_PARTS[predicate], other) != other

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
                for predicate in _PARTS:
                    self.predicates.setdefault(predicate, about.row)
            if not about.triples:
                del self.reified[node]
        for about in self.reified.values():
            for _, predicate, _ in about.triples:
                self.predicates.setdefault(predicate, about.row)
        # These two have names of their own here, whatever other predicates are called.
        self.called = {_TYPE: self._names.name(_TYPE, "type"), _LABEL: self._names.name(_LABEL, "label")}
        for predicate, row in self.predicates.items():
            label = self.labels.get(predicate)
            called = collapse(label.text) if label else local_name(predicate)
            self.called[predicate] = self._names.name(predicate, called, row=row)


class _Writer:
    """The second pass: items, quad by quad."""

    def __init__(self, survey: _Survey, reading: Reading, options: Options) -> None:
        self._survey = survey
        self._called = survey.called
        self._reading = reading
        self._nodes = _Nodes(reading.source.name)
        self._local = option_choice(options, "names", ("iri", "local")) == "local"
        self._declared: set[str] = set()
        self._concepts: set[str] = set()
        # A predicate's label names the predicate; its IRI is an entity only where something else is said about it.
        self._predicates = survey.predicates
        # Triples that are reified, with the graphs they are reified in.
        self._annotated: dict[tuple[str, str, str], set[str | None]] = {}
        for about in survey.reified.values():
            for parts in about.triples:
                self._annotated.setdefault(_key(parts), set()).add(about.graph)
        self._asserted: set[tuple[str, str, str]] = set()
        self._told: set[str] = set()

    def items(self, row: int, quad: pyoxigraph.Quad) -> Iterator[Item]:
        nodes = self._nodes
        subject, predicate = nodes.id(quad.subject), quad.predicate.value
        other = nodes.object(quad.object)
        graph = nodes.graph(quad)
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
        if self._annotated and (key := _key((subject, predicate, other))) in self._annotated:
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
        if predicate in (_TYPE, _SUBCLASS) and not qualifiers and other.literal is None:
            yield from self._membership(subject, predicate, other, row)
            return
        yield from self._statement(subject, predicate, other, qualifiers, row)

    def reified(self) -> Iterator[Item]:
        """The statements about which something is said, with what is said as qualifiers."""
        unasserted = len(self._annotated) - len(self._asserted)
        if unasserted:
            self._reading.warn(
                f"{unasserted} statements are only spoken about, not asserted by the file; they are loaded all the same"
            )
        for about in self._survey.reified.values():
            graph: tuple[tuple[str, Ref | Value], ...] = ((GRAPH, Ref(about.graph)),) if about.graph is not None else ()
            for subject, predicate, other in about.triples:
                yield from self._statement(subject, predicate, other, tuple(about.qualifiers) + graph, about.row)

    def _said_about(self, about: _Reified, predicate: str, other: _Object | None, graph: str | None, row: int) -> bool:
        """Take a triple about a reified statement; False when it has to stand for itself."""
        if predicate == _REIFIES:
            return other is None
        if predicate in _PARTS:
            return not about.broken
        if other is None:
            return False
        if predicate == _TYPE and other.id == _STATEMENT:
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
        self, subject: str, predicate: str, other: _Object, qualifiers: tuple[tuple[str, Ref | Value], ...], row: int
    ) -> Iterator[Item]:
        if other.literal is None:
            yield from self._membership(subject, predicate, other, row)
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

    def _membership(self, subject: str, predicate: str, other: _Object, row: int) -> Iterator[Item]:
        if predicate == _TYPE:
            yield from self._known(subject)
            yield from self._concept(other.id)
            if other.id in _CLASSES:
                yield from self._concept(subject)
            yield Member(subject, other.id, row)
        elif predicate == _SUBCLASS:
            yield from self._concept(subject)
            yield from self._concept(other.id)
            yield Subclass(subject, other.id, row)

    def _named(self, subject: str) -> Iterator[Entity]:
        """Declare a node by its label, unless it is a predicate of which nothing else is said (yet)."""
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
        if message not in self._told:
            self._told.add(message)
            self._reading.warn(f"{message}; told once", row=row)


def _key(parts: _Parts) -> tuple[str, str, str]:
    subject, predicate, other = parts
    return subject, predicate, other.id if other.literal is None else str(other.literal)


def local_name(iri: str) -> str:
    """The end of an IRI, after its last `#`, `/` or `:`; the whole of it where nothing stands there.

    >>> local_name("http://xmlns.com/foaf/0.1/knows"), local_name("http://example.org/")
    ('knows', 'http://example.org/')
    """
    found = _LOCAL(iri)
    return found.group() if found else iri


def _expand(name: str) -> str:
    prefix, found, rest = name.partition(":")
    return PREFIXES[prefix] + rest if found and prefix in PREFIXES else name


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
