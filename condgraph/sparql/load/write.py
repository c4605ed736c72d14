"""A snapshot as RDF: triples streamed in batches of N-Triples or N-Quads lines, the memory bounded
by the distinct values.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, Final

import numpy as np

from condgraph.engine.facts import Ref
from condgraph.engine.identity import statement_ids
from condgraph.engine.snapshot.declared import texts_of
from condgraph.engine.snapshot.readback import place_raws, statements
from condgraph.engine.values import Value
from condgraph.sparql.layout import (
    ENTITY_CLASSES,
    LABEL,
    LAYOUT,
    LONGEST,
    MEMBER,
    RECORD,
    STATEMENT,
    SUBCLASS,
    TYPE,
    GraphIris,
    encode,
    value_triples,
)
from condgraph.sparql.literals import integer, string

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot

#: Triples that a batch of lines holds.
BATCH: Final = 50_000


def triples(snapshot: Snapshot, base: str, *, graph: str = "default") -> Iterator[str]:
    """Everything the snapshot holds as `subject predicate object` without the final dot; what does
    not depend on order stands once.

    The graph's own node comes last, so that a reader who finds it finds everything.
    """
    names = GraphIris(base)
    yield from _sources(snapshot, names)
    yield from _entities(snapshot, names)
    yield from _concepts(snapshot, names)
    yield from _statements(snapshot, names)
    node = names.graph
    yield f"{node} {TYPE} <pred:Graph>"
    yield f"{node} <pred:label> {string(graph)}"
    yield f"{node} <pred:layout> {integer(LAYOUT)}"
    yield f"{node} <pred:declares> {integer(1)}"
    yield f"{node} <pred:counts> {string(json.dumps(counts(snapshot), sort_keys=True))}"


def quads(snapshot: Snapshot, base: str, *, graph: str = "default") -> Iterator[str]:
    """The same in the named graph `base`: batches of N-Quads lines, each a text that ends with a
    newline.
    """
    end = f" <{base}> .\n"
    return _batches(triples(snapshot, base, graph=graph), end)


def ntriples(snapshot: Snapshot, base: str, *, graph: str = "default") -> Iterator[str]:
    """The same without a named graph: batches of N-Triples lines."""
    return _batches(triples(snapshot, base, graph=graph), " .\n")


def _batches(found: Iterator[str], end: str) -> Iterator[str]:
    while batch := list(islice(found, BATCH)):
        yield end.join(batch) + end


def _sources(snapshot: Snapshot, names: GraphIris) -> Iterator[str]:
    for place in range(len(snapshot.arrays.get("src.name"))):
        source = snapshot.source_of(place)
        node = names.source(source.name)
        yield f"{node} {TYPE} <pred:Source>"
        yield f"{node} <pred:label> {string(source.name)}"
        yield f"{node} <pred:location> {string(source.location)}"
        yield f"{node} <pred:format> {string(source.format)}"
        if source.content:
            yield f"{node} <pred:content> {string(source.content)}"
        if source.terms:
            yield f"{node} <pred:terms> {string(source.terms)}"
        yield f"{node} <pred:place> {integer(place)}"


def _source_nodes(snapshot: Snapshot, names: GraphIris) -> list[str]:
    return [names.source(snapshot.source_of(i).name) for i in range(len(snapshot.arrays.get("src.name")))]


def _entity_nodes(snapshot: Snapshot, names: GraphIris) -> list[str]:
    base = names.base
    return [f"<{base}{encode(ident)}>" for ident in snapshot.texts.take(snapshot.entity_id)]


def _entities(snapshot: Snapshot, names: GraphIris) -> Iterator[str]:
    sources = _source_nodes(snapshot, names)
    places, rows = snapshot.arrays.get("ent.source"), snapshot.arrays.get("ent.row")
    classes = {int(kind): f" {TYPE} <pred:{name}>" for kind, name in ENTITY_CLASSES.items()}
    called = snapshot.texts.take(snapshot.entity_name)
    kinds = snapshot.entity_kind.tolist()
    positions, said = _positions(snapshot), texts_of(snapshot)
    for number, (node, name, kind) in enumerate(zip(_entity_nodes(snapshot, names), called, kinds, strict=True)):
        yield node + classes[kind]
        yield f"{node} <pred:name> {string(name)}"
        if number in positions:
            yield f"{node} <pred:source> {sources[int(places[number])]}"
            yield f"{node} <pred:row> {integer(int(rows[number]))}"
            yield f"{node} <pred:position> {integer(positions[number])}"
        if number in said:
            yield f"{node} <pred:declared> {string(said[number])}"


def _positions(snapshot: Snapshot) -> dict[int, int]:
    """The 1-based place of each table row among the rows of its source: rows of a source need not
    be numbered without gaps.
    """
    keys, entities = snapshot.arrays.get("row.key"), snapshot.arrays.get("row.entity")
    if not len(keys):
        return {}
    # Rows of the same number are at the place of the first of them.
    first = np.searchsorted(keys, keys)
    begin = np.searchsorted(keys, keys >> 32 << 32)
    return dict(zip(entities.tolist(), (first - begin + 1).tolist(), strict=True))


def _concepts(snapshot: Snapshot, names: GraphIris) -> Iterator[str]:
    get, nodes, sources = snapshot.arrays.get, _entity_nodes(snapshot, names), _source_nodes(snapshot, names)
    offsets, items = get("con.offsets").tolist(), get("con.items")
    for at, concept in enumerate(get("con.entity").tolist()):
        of = f" <pred:instance_of> {nodes[concept]}"
        for entity in items[offsets[at] : offsets[at + 1]].tolist():
            yield nodes[entity] + of
    for kind, prefix, first, second, words in (
        (MEMBER, "mem", "e", "c", ("Membership", "member", "concept")),
        (SUBCLASS, "sub", "c", "p", ("Subclassing", "subclass", "superclass")),
    ):
        columns = [get(f"{prefix}.{name}").tolist() for name in (first, second, "src", "row")]
        for left, right, source, row in zip(*columns, strict=True):
            node = names.stated(kind, nodes[left], nodes[right], sources[source], row)
            if kind is SUBCLASS:
                yield f"{nodes[left]} <pred:subclass_of> {nodes[right]}"
            yield f"{node} {TYPE} <pred:{words[0]}>"
            yield f"{node} <pred:{words[1]}> {nodes[left]}"
            yield f"{node} <pred:{words[2]}> {nodes[right]}"
            yield f"{node} <pred:source> {sources[source]}"
            if row:
                yield f"{node} <pred:row> {integer(row)}"


def _statements(snapshot: Snapshot, names: GraphIris) -> Iterator[str]:
    base = names.base
    sources = _source_nodes(snapshot, names)
    sids = statement_ids(snapshot).view(np.uint64).tolist()
    predicates = {name: names.predicate(name) for name in map(snapshot.predicate_name, range(snapshot.predicate_count))}
    for name, node in predicates.items():
        yield f"{node} {LABEL} {string(name)}"
    get = snapshot.arrays.get
    validity = dict(
        zip(get("val.stmt").tolist(), zip(get("val.start").tolist(), get("val.end").tolist(), strict=True), strict=True)
    )
    known: dict[Value, str] = {}
    ordered = snapshot.inexact
    fresh: list[str] = []

    def node_of(thing: Ref | Value) -> str:
        if isinstance(thing, Ref):
            return f"<{base}{encode(thing.id)}>"
        found = known.get(thing)
        if found is None:
            found = known[thing] = names.value(thing)
            fresh.extend(value_triples(found, thing, ordered=ordered))
        return found

    every, raws = np.arange(snapshot.statements, dtype=np.int32), place_raws(snapshot)
    for number, (one, places) in enumerate(statements(snapshot, every)):
        node = f"<{base}{STATEMENT}{sids[number]:016x}>"
        subject, predicate, thing = f"<{base}{encode(one.subject)}>", predicates[one.predicate], node_of(one.object)
        yield f"{subject} {predicate} {thing}"
        yield f"{node} <pred:fact_h> {subject}"
        yield f"{node} <pred:fact_r> {predicate}"
        yield f"{node} <pred:fact_t> {thing}"
        for key, value in one.qualifiers:
            yield f"{node} {predicates[key]} {node_of(value)}"
        if fresh:
            yield from fresh
            fresh.clear()
        if one.raw is not None:
            yield f"{node} <pred:raw> {string(one.raw)}"
        if number in raws:
            yield f"{node} <pred:raws> {string(json.dumps(raws[number], ensure_ascii=False))}"
        if number in validity:
            start, end = validity[number]
            yield f"{node} <pred:valid_start> {integer(start)}"
            yield f"{node} <pred:valid_end> {integer(end)}"
        for source in dict.fromkeys(source for source, _ in places):
            yield f"{node} <pred:source> {sources[source]}"
        if len(places) == 1:
            if places[0][1]:
                yield f"{node} <pred:row> {integer(places[0][1])}"
            continue
        for i, (source, row) in enumerate(places):
            record = f"<{base}{RECORD}{sids[number]:016x}.{i}>"
            yield f"{node} <pred:record> {record}"
            yield from (f"{record} <pred:source> {sources[source]}", f"{record} <pred:row> {integer(row)}")


def counts(snapshot: Snapshot) -> dict[str, int]:
    """What the snapshot holds, and what lets the compiler leave out work: how many raw texts,
    validities and long texts.
    """
    get = snapshot.arrays.get
    raws = get("att.raw")
    # A character takes twelve at most. A number and its unit share a name, so that half of it is
    # long for them.
    long = (text for i in range(len(snapshot.texts)) if len(text := snapshot.texts[i]) * 24 > LONGEST)
    return {
        **snapshot.counts,
        "raws": int((raws >= 0).sum()) if len(raws) else 0,
        "validities": len(get("val.stmt")),
        "long": sum(1 for text in long if len(encode(text)) * 2 + 8 > LONGEST),
    }


def count(snapshot: Snapshot, base: str) -> int:
    """How many triples a snapshot is, written twice ones counted twice."""
    return sum(1 for _ in chain(triples(snapshot, base)))
