"""A snapshot as RDF: triples streamed in batches of N-Triples or N-Quads lines, the memory bounded
by the distinct values.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, Final

import numpy as np

from condgraph.engine.snapshot.declared import texts_of
from condgraph.sparql.layout import (
    ENTITY_CLASSES,
    LAYOUT,
    LONGEST,
    MEMBER,
    SUBCLASS,
    TYPE,
    GraphIris,
    encode,
)
from condgraph.sparql.literals import integer, string
from condgraph.sparql.load.statements import statements

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot

#: Texts that a batch holds: what is written of so many statements, or so many lines of entities.
BATCH: Final = 8_000


def triples(snapshot: Snapshot, base: str, *, graph: str = "default") -> Iterator[str]:
    """Everything the snapshot holds as `subject predicate object` without the final dot; what does
    not depend on order stands once.

    The graph's own node comes last, so that a reader who finds it finds everything.
    """
    for lines in _written(snapshot, base, graph, "\n"):
        yield from lines.split("\n")[:-1]


def quads(snapshot: Snapshot, base: str, *, graph: str = "default") -> Iterator[str]:
    """The same in the named graph `base`: batches of N-Quads lines, each a text that ends with a
    newline.
    """
    return _batches(_written(snapshot, base, graph, f" <{base}> .\n"))


def ntriples(snapshot: Snapshot, base: str, *, graph: str = "default") -> Iterator[str]:
    """The same without a named graph: batches of N-Triples lines."""
    return _batches(_written(snapshot, base, graph, " .\n"))


def _batches(found: Iterator[str]) -> Iterator[str]:
    while batch := "".join(islice(found, BATCH)):
        yield batch


def _written(snapshot: Snapshot, base: str, graph: str, end: str) -> Iterator[str]:
    """Texts of one line or several that belong together, each line with `end`. No term holds a
    newline.
    """
    names = GraphIris(base)
    nodes, sources = _entity_nodes(snapshot, names), _source_nodes(snapshot, names)
    for some in (_sources(snapshot, names), _entities(snapshot, nodes, sources), _concepts(snapshot, names, nodes, sources)):
        yield from (f"{line}{end}" for line in some)
    yield from statements(snapshot, base, nodes, sources, end)
    node = names.graph
    yield f"{node} {TYPE} <pred:Graph>{end}"
    yield f"{node} <pred:label> {string(graph)}{end}"
    yield f"{node} <pred:layout> {integer(LAYOUT)}{end}"
    yield f"{node} <pred:declares> {integer(1)}{end}"
    yield f"{node} <pred:counts> {string(json.dumps(counts(snapshot), sort_keys=True))}{end}"


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


def _entities(snapshot: Snapshot, nodes: list[str], sources: list[str]) -> Iterator[str]:
    places, rows = snapshot.arrays.get("ent.source"), snapshot.arrays.get("ent.row")
    classes = {int(kind): f" {TYPE} <pred:{name}>" for kind, name in ENTITY_CLASSES.items()}
    called = snapshot.texts.take(snapshot.entity_name)
    kinds = snapshot.entity_kind.tolist()
    positions, said = _positions(snapshot), texts_of(snapshot)
    for number, (node, name, kind) in enumerate(zip(nodes, called, kinds, strict=True)):
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


def _concepts(snapshot: Snapshot, names: GraphIris, nodes: list[str], sources: list[str]) -> Iterator[str]:
    get = snapshot.arrays.get
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


def counts(snapshot: Snapshot) -> dict[str, int]:
    """What the snapshot holds, and what lets the compiler leave out work: how many raw texts,
    validities and long texts.
    """
    get = snapshot.arrays.get
    raws = get("att.raw")
    # A character takes twelve at most, and is a byte or more. A number and its unit share a name, so
    # that half of it is long for them.
    long = (encode(text) for text in snapshot.texts.take(snapshot.texts.longer(LONGEST // 24)))
    return {
        **snapshot.counts,
        "raws": int((raws >= 0).sum()) if len(raws) else 0,
        "validities": len(get("val.stmt")),
        "long": sum(1 for text in long if len(text) * 2 + 8 > LONGEST),
    }


def count(snapshot: Snapshot, base: str) -> int:
    """How many triples a snapshot is, written twice ones counted twice."""
    return sum(1 for _ in chain(triples(snapshot, base)))
