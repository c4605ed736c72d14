"""A graph in a remote RDF store read back as items: the inverse of `write`, in one pass over its
triples as they arrive.

The result is compared with what was loaded: the name of a statement's node is the hash of its
content, that of a value's the hash of its value, so that a store that changes its content is
noticed. Virtuoso prints 6 digits of a double, and 16 when queried for the text; the hash tells which
of the neighbouring ones it is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from condgraph.engine.errors import StoreDamagedError
from condgraph.engine.facts import Entity, Item, Member, Ref, Source, Sourced, Statement, Subclass
from condgraph.engine.identity import statement_ids
from condgraph.engine.snapshot.build import Builder
from condgraph.engine.snapshot.declared import read_entity
from condgraph.engine.snapshot.layout import lay_out
from condgraph.engine.snapshot.readback import items
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.values import Value
from condgraph.sparql.layout import (
    ENTITY_CLASSES,
    MEMBER,
    PRED,
    RDF,
    RECORD,
    SOURCE,
    STATEMENT,
    SUBCLASS,
    VALUE,
    GraphIris,
    exactly,
    read_value,
    value_name,
)

if TYPE_CHECKING:
    import pyoxigraph

#: Runs a SELECT over the graph, and gives its rows.
Select = Callable[[str], "Iterator[pyoxigraph.QuerySolution]"]

_TYPE: Final = RDF + "type"
_KINDS: Final = {name: kind for kind, name in ENTITY_CLASSES.items()}
_EXACTLY: Final = f"SELECT ?v (STR(?x) AS ?o) WHERE {{ ?v <{_TYPE}> <pred:Quantity> ; <pred:value> ?x }}"
#: The query for everything in the graph.
EVERYTHING: Final = "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }"

#: The triples of a node by the term of the vocabulary; of several with one term the last.
Terms = dict[str, str]


@dataclass(slots=True)
class Triples:
    """The triples of a graph, by the kind of their subject."""

    names: GraphIris
    entities: dict[str, Terms] = field(default_factory=dict)
    nodes: dict[str, dict[str, Terms]] = field(default_factory=lambda: {k: {} for k in (SOURCE, RECORD, MEMBER, SUBCLASS, VALUE)})
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
            if kind != STATEMENT:
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
        names, nodes = self.names, self.nodes
        entity = names.name_of
        listed = _in_order(nodes[SOURCE].values())
        yield from listed
        called = [one.name for one in listed]
        for iri, terms in self.entities.items():
            kind = _KINDS.get(terms.get("type", ""))
            if kind is None or "name" not in terms:
                # A predicate that is no entity, or a remainder of an interrupted load.
                continue
            place = names.source_of(terms["source"]) if "source" in terms else None
            one = Entity(entity(iri), terms["name"], kind, int(terms.get("row", "0")))
            yield from read_entity(one, place, terms.get("declared"), called, known=self.declares)
        for build, kind_of, (left, right) in (
            (Member, MEMBER, ("member", "concept")),
            (Subclass, SUBCLASS, ("subclass", "superclass")),
        ):
            for terms in nodes[kind_of].values():
                if left in terms and right in terms and "source" in terms:
                    row = int(terms.get("row", "0"))
                    yield Sourced(build(entity(terms[left]), entity(terms[right]), row), ((names.source_of(terms["source"]), row),))
        yield from self._statements(self._values(select, lenient))

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

    def _statements(self, values: dict[str, Value]) -> Iterator[Item]:
        names, entity = self.names, self.names.name_of

        def thing(iri: str) -> Ref | Value | None:
            return values.get(iri) if names.is_value(iri) else Ref(entity(iri))

        for node, terms in self.statements.items():
            if not {"fact_h", "fact_r", "fact_t"} <= terms.keys() or (other := thing(terms["fact_t"])) is None:
                continue
            row = int(terms.get("row", "0"))
            places = tuple((names.source_of(source), row) for source in self.sources.get(node, ()))
            if node in self.records:
                records = (self.nodes[RECORD].get(record, {}) for record in sorted(self.records[node], key=_number))
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

    yield from Triples(GraphIris(base)).read(one for one in triples if one.subject.value.startswith(base)).items(nothing)


def pull(triples: Iterable[Any], select: Select, base: str, *, lenient: bool = False) -> Snapshot:
    """The graph as a snapshot in memory, equal to the one that was pushed, from all its triples.

    Raises `StoreDamagedError` where the store gives back another statement than was written;
    `lenient` leaves it out.
    """
    read = Triples(GraphIris(base)).read(triples)
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


def exact_value(node: str, terms: Terms, names: GraphIris) -> Value:
    """The value of a node, whose hash is in the node's name; raises `StoreDamagedError` where it is
    another one.
    """
    wanted = node[len(names.base) + len(VALUE) :]
    value = exactly(read_value(terms), wanted)
    if value_name(value) != wanted:
        raise StoreDamagedError(f"the value {value} of {node} is not what was written", hint="load the graph again")
    return value
