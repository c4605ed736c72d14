"""A graph in a remote RDF store read back as items: the inverse of `write`, in one pass over its
triples as they arrive.

The result is compared with what was loaded: the name of a statement's node is the hash of its
content, that of a value's the hash of its value, so that a store that changes its content is
noticed. Virtuoso prints 6 digits of a double, and 16 when queried for the text; the hash tells which
of the neighbouring ones it is.
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

#: Runs a SELECT over the graph, and gives its rows.
Select = Callable[[str], "Iterator[pyoxigraph.QuerySolution]"]

_TYPE: Final = RDF + "type"
_KINDS: Final = {name: kind for kind, name in layout.ENTITY_CLASSES.items()}
_EXACTLY: Final = f"SELECT ?v (STR(?x) AS ?o) WHERE {{ ?v <{_TYPE}> <pred:Quantity> ; <pred:value> ?x }}"
#: The query for everything in the graph.
EVERYTHING: Final = "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }"

#: The triples of a node by the term of the vocabulary; of several with one term the last.
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
    #: Whether the graph says who declared which entity.
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
        """The items that the triples state."""
        listed = _in_order(self.nodes[layout.SOURCE].values())
        yield from listed
        yield from self.declared([one.name for one in listed])
        yield from self.links()
        yield from self.stated(self._values(select, lenient))

    def declared(self, called: Sequence[str]) -> Iterator[Sourced]:
        """The entities, as the sources of these names declare them."""
        names, entity = self.names, self.names.name_of
        for iri, terms in self.entities.items():
            kind = _KINDS.get(terms.get("type", ""))
            if kind is None or "name" not in terms:
                # A predicate that is no entity, or a remainder of an interrupted load.
                continue
            place = names.source_of(terms["source"]) if "source" in terms else None
            one = Entity(entity(iri), terms["name"], kind, int(terms.get("row", "0")))
            yield from read_entity(one, place, terms.get("declared"), called, known=self.declares)

    def links(self) -> Iterator[Sourced]:
        """Memberships and subclasses, as they were stated."""
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
        """The statements, with values by their nodes."""
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
                some = tuple(place for place, one in zip(places, raws, strict=False) if one == raw) if len(raws) > 1 else places
                first = some[0][1] if some else 0
                one = Statement(entity(terms["fact_h"]), entity(terms["fact_r"]), other, qualifiers, first, raw)
                yield Sourced(one, some) if some else one


def _number(record: str) -> int:
    return int(record.rpartition(".")[2])


def _in_order(found: Iterable[Terms]) -> list[Source]:
    whole = (terms for terms in found if {"place", "label", "location", "format"} <= terms.keys())
    ordered = sorted(whole, key=lambda one: int(one["place"]))
    return [Source(one["label"], one["location"], one["format"], one.get("content", ""), one.get("terms", "")) for one in ordered]


def sources(select: Select) -> list[Source]:
    """The sources of a graph, in the order they were loaded in."""
    text = f"SELECT ?s ?p ?o WHERE {{ ?s <{_TYPE}> <pred:Source> ; ?p ?o }}"
    found: dict[str, Terms] = {}
    for row in select(text):
        found.setdefault(row["s"].value, {})[row["p"].value.removeprefix(PRED)] = row["o"].value
    return _in_order(found.values())


def read_file(triples: Iterable[Any], base: str) -> Iterator[Item]:
    """The items of a file in the layout; triples of other graphs are left out."""

    def nothing(text: str) -> Iterator[Any]:
        return iter(())

    yield from Triples(layout.GraphIris(base)).read(one for one in triples if one.subject.value.startswith(base)).items(nothing)


def pull(triples: Iterable[Any], select: Select, base: str, *, lenient: bool = False) -> Snapshot:
    """The graph as a snapshot in memory, equal to the one that was pushed, from all its triples.

    Raises `StoreDamagedError` where the store gives back another statement than was written;
    `lenient` leaves it out.
    """
    read = Triples(layout.GraphIris(base)).read(triples)
    snapshot = _built(read.items(select, lenient=lenient))
    written = {read.names.sid_of(node) for node in read.statements}
    found = statement_ids(snapshot).tolist()
    if written == set(found):
        return snapshot
    if not lenient:
        raise StoreDamagedError(
            f"{len(written.symmetric_difference(found))} statements of {base} are not what was written", hint="load it again"
        )
    ids = iter(found)
    return _built(item for item in items(snapshot) if not _is_statement(item) or next(ids) in written)


def _built(found: Iterable[Item]) -> Snapshot:
    builder = Builder()
    builder.begin(Source(""))
    builder.add(found)
    return Snapshot.of(*lay_out(builder))


def _is_statement(item: Any) -> bool:
    return isinstance(item, Sourced) and isinstance(item.item, Statement)


def exact_value(node: str, terms: Terms, names: layout.GraphIris) -> Value:
    """The value of a node, whose hash is in the node's name; raises `StoreDamagedError` where it is
    another one.
    """
    wanted = node[len(names.base) + len(VALUE) :]
    value = layout.exactly(layout.read_value(terms), wanted)
    if value_name(value) != wanted:
        raise StoreDamagedError(f"the value {value} of {node} is not what was written", hint="load the graph again")
    return value


# -- Parts -------------------------------------------------------------------------------------------
# What a single change asks (`condgraph.remote.PartStore`).


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
        """The triples of SELECTs of ?s ?p ?o."""
        rows = (row for text in texts for row in self._rows(text))
        triples = Triples(self._names, declares=True)
        return triples.read(_Triple(*map(_Term, row)) for row in rows)

    def _entities(self, nodes: Collection[str]) -> Triples:
        return self._triples(f"SELECT ?s ?p ?o WHERE {{ VALUES ?s {{ {' '.join(nodes)} }} VALUES ?p {{ {_ENTITY} }} ?s ?p ?o }}")

    def sources(self) -> list[Source]:
        """The sources in the order they were loaded."""
        return sources(self._select)

    def called(self, text: str) -> list[Entity]:
        """The entities that have a text as their id or name."""
        named = [f"<{node}>" for (node,) in self._rows(f"SELECT ?s WHERE {{ ?s <pred:name> {layout.string(text)} }}")]
        result = []
        for iri, terms in self._entities(dict.fromkeys((self._names.entity(text), *named))).entities.items():
            kind = _KINDS.get(terms.get("type", ""))
            if kind is not None and "name" in terms:
                result.append(Entity(self._names.name_of(iri), terms["name"], kind, int(terms.get("row", "0"))))
        return result

    def some_names(self, most: int) -> list[str]:
        """The names of all entities; none where there are more than `most`."""
        rows = self._rows(f"SELECT ?n WHERE {{ ?s <pred:name> ?n }} LIMIT {most + 1}")
        return [name for (name,) in rows] if len(rows) <= most else []

    def entities_about(self, ids: Sequence[str], sources: Sequence[str]) -> list[Item]:
        """Entities by their ids, and the concepts that they are stated to be in; `sources` are the names of all sources."""
        nodes = list(map(self._names.entity, ids))
        listed = " ".join(nodes)
        links = self._triples(
            *(
                f"SELECT ?s ?p ?o WHERE {{ VALUES ?e {{ {listed} }} ?s <pred:{end}> ?e . ?s ?p ?o }}"
                for end in ("member", "subclass")
            )
        )
        result: list[Item] = list(links.links())
        above = [
            self._names.entity(one.item.concept if isinstance(one.item, Member) else one.item.parent)
            for one in links.links()
            if isinstance(one.item, (Member, Subclass))
        ]
        return [*self._entities(dict.fromkeys((*nodes, *above))).declared(sources), *result]

    def statements_about(self, subject: str, predicate: str) -> list[Sourced]:
        """The statements of a subject and a predicate."""
        subject, predicate = self._names.entity(subject), self._names.predicate(predicate)
        # A filter, so that no store begins with all statements of the predicate.
        return self._stated(
            f"SELECT ?s ?p ?o WHERE {{ ?s <pred:fact_h> {subject} . ?s <pred:fact_r> ?r FILTER(?r = {predicate}) ?s ?p ?o }}"
        )

    def some_about(self, subject: str) -> list[Statement]:
        """Statements of a subject: up to 100."""
        rows = self._rows(f"SELECT ?s WHERE {{ ?s <pred:fact_h> {self._names.entity(subject)} }} LIMIT 100")
        nodes = " ".join(f"<{node}>" for (node,) in rows)
        found = self._stated(f"SELECT ?s ?p ?o WHERE {{ VALUES ?s {{ {nodes} }} ?s ?p ?o }}") if rows else []
        return [one.item for one in found if isinstance(one.item, Statement)]

    def _stated(self, text: str) -> list[Sourced]:
        """The statements whose triples a SELECT gives."""
        rows = self._rows(text)
        records, values = (self._names.base + kind for kind in (layout.RECORD, VALUE))
        nodes = dict.fromkeys(thing for _, _, thing in rows if thing.startswith((records, values)))
        if nodes:
            rows += self._rows(f"SELECT ?s ?p ?o WHERE {{ VALUES ?s {{ {' '.join(f'<{n}>' for n in nodes)} }} ?s ?p ?o }}")
        triples = Triples(self._names, declares=True).read(_Triple(*map(_Term, row)) for row in rows)
        values_of = {node: exact_value(node, terms, self._names) for node, terms in triples.nodes[VALUE].items()}
        return [one for one in triples.stated(values_of) if isinstance(one, Sourced)]

    def _others(self, without: Removed) -> str:
        """A condition: ?s is a statement, but for some."""
        gone = ", ".join(map(self._names.statement, without.identities))
        return f"FILTER({self._statements}{f' && ?s NOT IN ({gone})' if gone else ''})"

    def uses(self, ident: str, without: Removed) -> Iterable[SourceUse]:
        """A source that uses an entity in statements, but for those `without`, and one that uses it as a concept."""
        node = self._names.entity(ident)
        texts = {
            False: [f"?s ?p {node} {self._others(without)}"],
            True: [f"?s <pred:{end}> {node}" for end in ("concept", "subclass", "superclass")],
        }
        for concept, some in texts.items():
            users = (self._rows(f"SELECT ?s WHERE {{ {text} }} LIMIT 1") for text in some)
            for (user,) in next(filter(None, users), []):
                for (source,) in self._rows(f"SELECT ?o WHERE {{ <{user}> <pred:source> ?o }} LIMIT 1"):
                    yield SourceUse(self._names.source_of(source), concept)

    def value_used(self, value: Value, without: Removed) -> bool:
        """Whether other statements have a value."""
        node = self._names.value(value)
        return bool(self._rows(f"SELECT ?s WHERE {{ ?s ?p {node} {self._others(without)} }} LIMIT 1"))

    def unused(self, most: int) -> list[str]:
        """The ids of entities that are called as their ids, and that nothing but a declaration mentions as what they are."""
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
        """Whether some entity has several values of an attribute, but for some `subjects`; or some statement of a qualifier."""
        node = self._names.predicate(name)
        if qualifier:
            text = f"SELECT ?s WHERE {{ ?s {node} ?o {self._others(without)} }} GROUP BY ?s HAVING(COUNT(?o) > 1) LIMIT 1"
        else:
            gone = ", ".join(map(self._names.entity, subjects))
            values = f"FILTER(STRSTARTS(STR(?v), {layout.string(self._names.base + VALUE)}) && ?o NOT IN ({gone}))"
            text = (
                f"SELECT ?o WHERE {{ ?s <pred:fact_r> {node} ; <pred:fact_t> ?v ; <pred:fact_h> ?o {values} }} "
                "GROUP BY ?o HAVING(COUNT(?s) > 1) LIMIT 1"
            )
        return bool(self._rows(text))
