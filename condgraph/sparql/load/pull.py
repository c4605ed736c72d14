"""Reads a graph from a remote RDF store as items, in one pass over its triples as they arrive (the inverse of `write`).

The result is compared with what was loaded: the name of a statement's node is the hash of its content, that of a value's node
the hash of the value, so that changes by the store are noticed. Virtuoso prints 6 digits of a double, and 16 of its text; the
hash tells which of the neighbouring doubles it is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from condgraph.edits import Removed, SourceUse
from condgraph.engine.errors import StoreDamagedError
from condgraph.engine.facts import Entity, Item, Member, Ref, Source, Sourced, Statement, Subclass
from condgraph.engine.identity import statement_ids
from condgraph.engine.iris import PRED, RDF, VALUE, value_name
from condgraph.engine.snapshot.build import Builder, read_entity
from condgraph.engine.snapshot.layout import lay_out
from condgraph.engine.snapshot.readback import items
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.values import Value
from condgraph.sparql import layout

if TYPE_CHECKING:
    import pyoxigraph

#: Runs a SELECT over the graph and returns its rows.
Select = Callable[[str], "Iterator[pyoxigraph.QuerySolution]"]

_TYPE: Final = RDF + "type"
_KINDS: Final = {name: kind for kind, name in layout.ENTITY_CLASSES.items()}
_EXACTLY: Final = f"SELECT ?v (STR(?x) AS ?o) WHERE {{ ?v <{_TYPE}> <pred:Quantity> ; <pred:value> ?x }}"
#: The query for everything in the graph.
EVERYTHING: Final = "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }"

#: The triples of a node by the term of the vocabulary; the last one if a term occurs several times.
Terms = dict[str, str]


@dataclass(slots=True)
class Triples:
    """The triples of a graph, by the kind of their subject."""

    names: layout.GraphIris
    entities: dict[str, Terms] = field(default_factory=dict)
    nodes: dict[str, dict[str, Terms]] = field(
        default_factory=lambda: {k: {} for k in (layout.SOURCE, layout.RECORD, layout.MEMBER, layout.SUBCLASS, VALUE)}
    )
    statements: dict[str, Terms] = field(default_factory=dict)
    qualifiers: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    sources: dict[str, list[str]] = field(default_factory=dict)
    records: dict[str, list[str]] = field(default_factory=dict)
    #: Whether the graph states who declared which entity.
    declares: bool = False

    def read(self, found: Iterable[Any]) -> Triples:
        """Read all triples, in any order and with repetitions."""
        base, size = self.names.base, len(self.names.base)
        for triple in found:
            subject, predicate, thing = triple.subject.value, triple.predicate.value, triple.object.value
            if predicate == _TYPE:
                name, thing = "type", thing.removeprefix(PRED)
            elif predicate.startswith(PRED):
                name = predicate[len(PRED) :]
            else:
                name = ""
            if subject[size : size + 1] != "." or subject == f"{base}.empty":
                if name and len(subject) > size:
                    self.entities.setdefault(subject, {})[name] = thing
                self.declares |= name == "declares" and len(subject) == size
                continue
            kind = subject[size : subject.find("/", size) + 1]
            if kind != layout.STATEMENT:
                self.nodes[kind].setdefault(subject, {})[name] = thing
            elif not name:
                self.qualifiers.setdefault(subject, []).append((predicate, thing))
            elif name == "source":
                self.sources.setdefault(subject, []).append(thing)
            elif name == "record":
                self.records.setdefault(subject, []).append(thing)
            else:
                self.statements.setdefault(subject, {})[name] = thing
        return self

    def items(self, select: Select, *, lenient: bool = False) -> Iterator[Item]:
        """Yield the items that the triples state."""
        listed = _in_order(self.nodes[layout.SOURCE].values())
        yield from listed
        yield from self.declared([source.name for source in listed])
        yield from self.links()
        yield from self.stated(self._values(select, lenient))

    def declared(self, called: Sequence[str]) -> Iterator[Sourced]:
        """Yield the entities as declared by sources; `called` are the names of all sources."""
        names, entity = self.names, self.names.name_of
        for iri, terms in self.entities.items():
            kind = _KINDS.get(terms.get("type", ""))
            if kind is None or "name" not in terms:
                # A predicate that is not an entity, or a remainder of an interrupted load.
                continue
            source = names.source_of(terms["source"]) if "source" in terms else None
            plain_entity = Entity(entity(iri), terms["name"], kind, int(terms.get("row", "0")))
            yield from read_entity(plain_entity, source, terms.get("declared"), called, known=self.declares)

    def links(self) -> Iterator[Sourced]:
        """Yield the stated memberships and subclasses."""
        names, nodes, entity = self.names, self.nodes, self.names.name_of
        for build, kind_of, (left, right) in (
            (Member, layout.MEMBER, ("member", "concept")),
            (Subclass, layout.SUBCLASS, ("subclass", "superclass")),
        ):
            for terms in nodes[kind_of].values():
                if left in terms and right in terms and "source" in terms:
                    row = int(terms.get("row", "0"))
                    yield Sourced(build(entity(terms[left]), entity(terms[right]), row), ((names.source_of(terms["source"]), row),))

    def _values(self, select: Select, lenient: bool) -> dict[str, Value]:
        values: dict[str, Value] = {}
        exact: dict[str, str] | None = None
        for node, terms in self.nodes[VALUE].items():
            try:
                values[node] = exact_value(node, terms, self.names)
                continue
            except (KeyError, StoreDamagedError):
                if lenient and "type" not in terms:
                    continue
            if exact is None:
                exact = {row["v"].value: row["o"].value for row in select(_EXACTLY)}
            try:
                values[node] = exact_value(node, {**terms, "value": exact.get(node, "0")}, self.names)
            except (KeyError, StoreDamagedError):
                if not lenient:
                    raise StoreDamagedError(f"the value {node} is not what was written", hint="load the graph again") from None
        return values

    def stated(self, values: dict[str, Value]) -> Iterator[Statement | Sourced]:
        """Yield the statements, with values looked up by node."""
        names, entity = self.names, self.names.name_of

        def thing(iri: str) -> Ref | Value | None:
            return values.get(iri) if names.is_value(iri) else Ref(entity(iri))

        for node, terms in self.statements.items():
            if not {"fact_h", "fact_r", "fact_t"} <= terms.keys() or (other := thing(terms["fact_t"])) is None:
                continue
            row = int(terms.get("row", "0"))
            places = tuple((names.source_of(source), row) for source in self.sources.get(node, ()))
            if node in self.records:
                records = (self.nodes[layout.RECORD].get(record, {}) for record in sorted(self.records[node], key=_number))
                places = tuple((names.source_of(one["source"]), int(one["row"])) for one in records if len(one) > 1)
            pairs = ((entity(key), thing(value)) for key, value in self.qualifiers.get(node, ()))
            qualifiers = tuple((key, value) for key, value in pairs if value is not None)
            raws = json.loads(terms["raws"]) if "raws" in terms else [terms.get("raw")]
            for raw in dict.fromkeys(raws):
                raw_places = (
                    tuple(place for place, one in zip(places, raws, strict=False) if one == raw) if len(raws) > 1 else places
                )
                first_row = raw_places[0][1] if raw_places else 0
                one = Statement(entity(terms["fact_h"]), entity(terms["fact_r"]), other, qualifiers, first_row, raw)
                yield Sourced(one, raw_places) if raw_places else one


def _number(record: str) -> int:
    return int(record.rpartition(".")[2])


def _in_order(found: Iterable[Terms]) -> list[Source]:
    complete = (terms for terms in found if {"place", "label", "location", "format"} <= terms.keys())
    ordered = sorted(complete, key=lambda one: int(one["place"]))
    return [Source(one["label"], one["location"], one["format"], one.get("content", ""), one.get("terms", "")) for one in ordered]


def sources(select: Select) -> list[Source]:
    """Return the sources of a graph, in the order of loading."""
    text = f"SELECT ?s ?p ?o WHERE {{ ?s <{_TYPE}> <pred:Source> ; ?p ?o }}"
    terms_by_node: dict[str, Terms] = {}
    for row in select(text):
        terms_by_node.setdefault(row["s"].value, {})[row["p"].value.removeprefix(PRED)] = row["o"].value
    return _in_order(terms_by_node.values())


def read_file(triples: Iterable[Any], base: str) -> Iterator[Item]:
    """Yield the items of a file in the layout; triples of other graphs are left out."""

    def nothing(text: str) -> Iterator[Any]:
        return iter(())

    yield from (
        Triples(layout.GraphIris(base)).read(triple for triple in triples if triple.subject.value.startswith(base)).items(nothing)
    )


def pull(triples: Iterable[Any], select: Select, base: str, *, lenient: bool = False) -> Snapshot:
    """Return the graph as a snapshot in memory, equal to the one that was pushed, from all its triples.

    Raises `StoreDamagedError` if a statement of the store differs from what was written; with `lenient`, it is left out.
    """
    graph_triples = Triples(layout.GraphIris(base)).read(triples)
    snapshot = _built(graph_triples.items(select, lenient=lenient))
    written = {graph_triples.names.sid_of(node) for node in graph_triples.statements}
    sids = statement_ids(snapshot).tolist()
    if written == set(sids):
        return snapshot
    if not lenient:
        raise StoreDamagedError(
            f"{len(written.symmetric_difference(sids))} statements of {base} are not what was written", hint="load it again"
        )
    ids = iter(sids)
    return _built(item for item in items(snapshot) if not _is_statement(item) or next(ids) in written)


def _built(found: Iterable[Item]) -> Snapshot:
    builder = Builder()
    builder.begin(Source(""))
    builder.add(found)
    return Snapshot.of(*lay_out(builder))


def _is_statement(item: Any) -> bool:
    return isinstance(item, Sourced) and isinstance(item.item, Statement)


def exact_value(node: str, terms: Terms, names: layout.GraphIris) -> Value:
    """Return the value of a node; raises `StoreDamagedError` if its hash is not the one in the node's name."""
    wanted = node[len(names.base) + len(VALUE) :]
    value = layout.exactly(layout.read_value(terms), wanted)
    if value_name(value) != wanted:
        raise StoreDamagedError(f"the value {value} of {node} is not what was written", hint="load the graph again")
    return value


# -- Parts -------------------------------------------------------------------------------------------
# Queries for a single change (`condgraph.remote.PartStore`).


#: The terms of an entity's node.
_ENTITY: Final = f"<{_TYPE}> <pred:name> <pred:source> <pred:row> <pred:declared>"


class _Term(NamedTuple):
    value: str


class _Triple(NamedTuple):
    subject: _Term
    predicate: _Term
    object: _Term


class SparqlParts:
    """Parts of one graph; `select` runs a SELECT over it."""

    def __init__(self, select: Select, base: str) -> None:
        self._select, self._names = select, layout.GraphIris(base)
        self._statements = f"STRSTARTS(STR(?s), {layout.string(base + layout.STATEMENT)})"

    def _rows(self, text: str) -> list[tuple[str, ...]]:
        return [tuple(term.value for term in row if term is not None) for row in self._select(text)]

    def _triples(self, *texts: str) -> Triples:
        """Return the triples of SELECT queries for ?s ?p ?o."""
        rows = (row for text in texts for row in self._rows(text))
        triples = Triples(self._names, declares=True)
        return triples.read(_Triple(*map(_Term, row)) for row in rows)

    def _entities(self, nodes: Collection[str]) -> Triples:
        return self._triples(f"SELECT ?s ?p ?o WHERE {{ VALUES ?s {{ {' '.join(nodes)} }} VALUES ?p {{ {_ENTITY} }} ?s ?p ?o }}")

    def sources(self) -> list[Source]:
        """Return the sources in the order of loading."""
        return sources(self._select)

    def called(self, text: str) -> list[Entity]:
        """Return the entities whose id or name is a text."""
        named = [f"<{node}>" for (node,) in self._rows(f"SELECT ?s WHERE {{ ?s <pred:name> {layout.string(text)} }}")]
        result = []
        for iri, terms in self._entities(dict.fromkeys((self._names.entity(text), *named))).entities.items():
            kind = _KINDS.get(terms.get("type", ""))
            if kind is not None and "name" in terms:
                result.append(Entity(self._names.name_of(iri), terms["name"], kind, int(terms.get("row", "0"))))
        return result

    def some_names(self, most: int) -> list[str]:
        """Return the names of all entities; none if there are more than `most`."""
        rows = self._rows(f"SELECT ?n WHERE {{ ?s <pred:name> ?n }} LIMIT {most + 1}")
        return [name for (name,) in rows] if len(rows) <= most else []

    def entities_about(self, ids: Sequence[str], sources: Sequence[str]) -> list[Item]:
        """Return entities by id, with the concepts they are stated to be in; `sources` are the names of all sources."""
        nodes = list(map(self._names.entity, ids))
        listed = " ".join(nodes)
        links = self._triples(
            *(
                f"SELECT ?s ?p ?o WHERE {{ VALUES ?e {{ {listed} }} ?s <pred:{end}> ?e . ?s ?p ?o }}"
                for end in ("member", "subclass")
            )
        )
        memberships: list[Item] = list(links.links())
        concepts = [
            self._names.entity(link.item.concept if isinstance(link.item, Member) else link.item.parent)
            for link in links.links()
            if isinstance(link.item, (Member, Subclass))
        ]
        return [*self._entities(dict.fromkeys((*nodes, *concepts))).declared(sources), *memberships]

    def statements_about(self, subject: str, predicate: str) -> list[Sourced]:
        """Return the statements of a subject and a predicate."""
        subject, predicate = self._names.entity(subject), self._names.predicate(predicate)
        # A filter, so that no store starts from all statements of the predicate.
        return self._stated(
            f"SELECT ?s ?p ?o WHERE {{ ?s <pred:fact_h> {subject} . ?s <pred:fact_r> ?r FILTER(?r = {predicate}) ?s ?p ?o }}"
        )

    def some_about(self, subject: str) -> list[Statement]:
        """Return up to 100 statements of a subject."""
        rows = self._rows(f"SELECT ?s WHERE {{ ?s <pred:fact_h> {self._names.entity(subject)} }} LIMIT 100")
        nodes = " ".join(f"<{node}>" for (node,) in rows)
        stated = self._stated(f"SELECT ?s ?p ?o WHERE {{ VALUES ?s {{ {nodes} }} ?s ?p ?o }}") if rows else []
        return [sourced.item for sourced in stated if isinstance(sourced.item, Statement)]

    def _stated(self, text: str) -> list[Sourced]:
        """Return the statements whose triples a SELECT returns."""
        rows = self._rows(text)
        records, values = (self._names.base + kind for kind in (layout.RECORD, VALUE))
        nodes = dict.fromkeys(thing for _, _, thing in rows if thing.startswith((records, values)))
        if nodes:
            rows += self._rows(f"SELECT ?s ?p ?o WHERE {{ VALUES ?s {{ {' '.join(f'<{n}>' for n in nodes)} }} ?s ?p ?o }}")
        triples = Triples(self._names, declares=True).read(_Triple(*map(_Term, row)) for row in rows)
        values_of = {node: exact_value(node, terms, self._names) for node, terms in triples.nodes[VALUE].items()}
        return [statement for statement in triples.stated(values_of) if isinstance(statement, Sourced)]

    def _others(self, without: Removed) -> str:
        """Return a condition that ?s is a statement other than `without`."""
        removed = ", ".join(map(self._names.statement, without.identities))
        return f"FILTER({self._statements}{f' && ?s NOT IN ({removed})' if removed else ''})"

    def uses(self, ident: str, without: Removed) -> Iterable[SourceUse]:
        """Yield a source that uses an entity in statements other than `without`, and one that uses it as a concept."""
        node = self._names.entity(ident)
        texts = {
            False: [f"?s ?p {node} {self._others(without)}"],
            True: [f"?s <pred:{end}> {node}" for end in ("concept", "subclass", "superclass")],
        }
        for concept, patterns in texts.items():
            users = (self._rows(f"SELECT ?s WHERE {{ {text} }} LIMIT 1") for text in patterns)
            for (user,) in next(filter(None, users), []):
                for (source,) in self._rows(f"SELECT ?o WHERE {{ <{user}> <pred:source> ?o }} LIMIT 1"):
                    yield SourceUse(self._names.source_of(source), concept)

    def value_used(self, value: Value, without: Removed) -> bool:
        """Tell whether statements other than `without` have a value."""
        node = self._names.value(value)
        return bool(self._rows(f"SELECT ?s WHERE {{ ?s ?p {node} {self._others(without)} }} LIMIT 1"))

    def unused(self, most: int) -> list[str]:
        """Return up to `most` ids of entities that are named by their id and occur nowhere but in a declaration."""
        named = "<pred:name> ?n FILTER NOT EXISTS { ?s <pred:declared> ?d } FILTER NOT EXISTS"
        texts = (
            f"?s a <pred:Entity> ; {named} {{ ?x ?p ?s }}",
            f"?s a <pred:Concept> ; {named} {{ ?x <pred:concept> ?s }} FILTER NOT EXISTS {{ ?x <pred:subclass> ?s }} "
            "FILTER NOT EXISTS { ?x <pred:superclass> ?s }",
        )
        rows = [row for text in texts for row in self._rows(f"SELECT ?s ?n WHERE {{ {text} }} LIMIT {most}")]
        idents = [(self._names.name_of(node), name) for node, name in rows]
        return [ident for ident, name in idents if ident == name or len(rows) >= most]

    def has_several(self, name: str, qualifier: bool, subjects: Sequence[str], without: Removed) -> bool:
        """Tell whether some entity, other than `subjects`, has several values of an attribute, or some statement of a
        qualifier.
        """
        node = self._names.predicate(name)
        if qualifier:
            text = f"SELECT ?s WHERE {{ ?s {node} ?o {self._others(without)} }} GROUP BY ?s HAVING(COUNT(?o) > 1) LIMIT 1"
        else:
            excluded = ", ".join(map(self._names.entity, subjects))
            values = f"FILTER(STRSTARTS(STR(?v), {layout.string(self._names.base + VALUE)}) && ?o NOT IN ({excluded}))"
            text = (
                f"SELECT ?o WHERE {{ ?s <pred:fact_r> {node} ; <pred:fact_t> ?v ; <pred:fact_h> ?o {values} }} "
                "GROUP BY ?o HAVING(COUNT(?s) > 1) LIMIT 1"
            )
        return bool(self._rows(text))
