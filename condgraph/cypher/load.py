"""Writing a snapshot to Neo4j in batches: idempotent, resumable, a batch at a time.

A `:Load` node for each batch is merged first in the batch's own transaction and the batch is written only where it is new, so that a
load that was killed goes on where it stopped, and a second one finds everything done. A reader sees the graph once `Graph.complete` is
true.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from condgraph.cypher.layout import FORMAT, INDEXES, index_key, type_of, value_properties
from condgraph.engine.facts import EntityKind, Ref
from condgraph.engine.identity import statement_ids
from condgraph.engine.snapshot.cells import PARTS, decode_values

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot

#: Records a transaction writes.
BATCH: Final = 10_000
Execute = Callable[[str, dict[str, Any]], None]
Told = Callable[[int], None]

_ONCE: Final = "MERGE (l:Load {graph: $graph, batch: $batch}) ON CREATE SET l.fresh = true WITH l WHERE l.fresh REMOVE l.fresh WITH l "
_ENTITY: Final = "UNWIND $rows AS r CREATE (e:Entity%s {graph: $graph, id: r[0], name: r[1], key: r[2], kind: r[3]})"
_RELATION: Final = (
    "UNWIND $rows AS r MATCH (a:Entity {graph: $graph, id: r[0]}) MATCH (b:Entity {graph: $graph, id: r[1]}) "
    "CREATE (a)-[f:$(r[2]) {sid: r[3]}]->(b)"
)
_ATTRIBUTE: Final = (
    "UNWIND $rows AS r MATCH (a:Entity {graph: $graph, id: r[0]}) "
    "CREATE (a)-[:$(r[1]) {sid: r[2]}]->(v:Value {graph: $graph, sid: r[2], predicate: r[3]}) SET v += r[4]"
)
_STATEMENT: Final = "UNWIND $rows AS r CREATE (:Statement {graph: $graph, sid: r[0]})"
_QUALIFIER: Final = (
    "UNWIND $rows AS r MATCH (o:%s {graph: $graph, sid: r[0]}) "
    "CREATE (o)-[:QUALIFIER]->(q:Qualifier {graph: $graph, name: r[1]}) SET q += r[2]"
)
_REFERENCE: Final = (
    "UNWIND $rows AS r MATCH (o:%s {graph: $graph, sid: r[0]}) MATCH (e:Entity {graph: $graph, id: r[2]}) "
    "CREATE (o)-[:QUALIFIER]->(q:Qualifier {graph: $graph, name: r[1], kind: 'entity', key: e.key})-[:IS]->(e)"
)
_MEMBER: Final = (
    "UNWIND $rows AS r MATCH (a:Entity {graph: $graph, id: r[0]}) MATCH (c:Entity {graph: $graph, id: r[1]}) "
    "CREATE (a)-[:MEMBER_OF {direct: r[2]}]->(c)"
)
_SUBCLASS: Final = (
    "UNWIND $rows AS r MATCH (a:Entity {graph: $graph, id: r[0]}) MATCH (c:Entity {graph: $graph, id: r[1]}) "
    "CREATE (a)-[:SUBCLASS_OF]->(c)"
)


def write_snapshot(snapshot: Snapshot, graph: str, execute: Execute, told: Told = lambda written: None) -> None:
    """Write everything. `execute` runs one statement in one transaction; `told` hears how many records are written so far."""
    for statement in INDEXES:
        execute(statement, {})
    execute("CALL db.awaitIndexes(300)", {})
    execute(
        "MERGE (g:Graph {name: $graph}) SET g.format = $format, g.complete = false", {"graph": graph, "format": FORMAT}
    )
    written = 0
    for name, text, rows in _batches(snapshot):
        execute(_ONCE + text, {"graph": graph, "batch": name, "rows": rows})
        written += len(rows)
        told(written)
    about = {"counts": json.dumps(snapshot.counts), "schema": json.dumps(describe_schema(snapshot))}
    execute("MATCH (g:Graph {name: $graph}) SET g.complete = true, g.counts = $counts, g.schema = $schema", {"graph": graph, **about})


def _batches(snapshot: Snapshot) -> Iterator[tuple[str, str, list[Any]]]:
    """Batches of records: a name that is the same for the same batch, the text that writes it, the rows."""
    for kind, label in ((EntityKind.ENTITY, ""), (EntityKind.CONCEPT, ":Concept"), (EntityKind.ROW, ":Row")):
        yield from _cut(f"entities {kind.name}", _ENTITY % label, _entities(snapshot, kind))
    sids = statement_ids(snapshot).tolist()
    idents = snapshot.texts.take(snapshot.entity_id)
    yield from _cut("relations", _RELATION, _relations(snapshot, sids, idents))
    yield from _cut("attributes", _ATTRIBUTE, _attributes(snapshot, sids, idents))
    owners = np.unique(snapshot.arrays.get("q.owner"))
    qualified = owners[: int(owners.searchsorted(snapshot.relations))].tolist()
    yield from _cut("statements", _STATEMENT, ([sids[number]] for number in qualified))
    for label in ("Statement", "Value"):
        for text, references in ((_QUALIFIER, False), (_REFERENCE, True)):
            yield from _cut(f"qualifiers {label} {references}", text % label, _qualifiers(snapshot, sids, label, references))
    yield from _cut("members", _MEMBER, _members(snapshot, idents))
    get = snapshot.arrays.get
    pairs = sorted(set(zip(get("sub.c").tolist(), get("sub.p").tolist(), strict=True)))
    yield from _cut("subclasses", _SUBCLASS, ([idents[c], idents[p]] for c, p in pairs))


def _cut(name: str, text: str, rows: Iterator[list[Any]]) -> Iterator[tuple[str, str, list[Any]]]:
    batch: list[Any] = []
    number = 0
    for row in rows:
        batch.append(row)
        if len(batch) == BATCH:
            yield f"{name} {number}", text, batch
            batch, number = [], number + 1
    if batch:
        yield f"{name} {number}", text, batch


def _entities(snapshot: Snapshot, kind: EntityKind) -> Iterator[list[Any]]:
    for number in np.flatnonzero(snapshot.entity_kind == kind).tolist():
        name = snapshot.name(number)
        yield [snapshot.ident(number), name, index_key(name), int(kind)]


def _relations(snapshot: Snapshot, sids: list[int], idents: list[str]) -> Iterator[list[Any]]:
    subjects, objects = snapshot.relation_subject.tolist(), snapshot.relation_object.tolist()
    for predicate in range(snapshot.predicate_count):
        name = type_of(snapshot.predicate_name(predicate))
        for i in range(snapshot.relation_offsets[predicate], snapshot.relation_offsets[predicate + 1]):
            yield [idents[subjects[i]], idents[objects[i]], name, sids[i]]


def _attributes(snapshot: Snapshot, sids: list[int], idents: list[str]) -> Iterator[list[Any]]:
    get = snapshot.arrays.get
    subjects = snapshot.attribute_subject.tolist()
    raws = get("att.raw")
    for predicate in range(snapshot.predicate_count):
        low, high = snapshot.attribute_offsets[predicate], snapshot.attribute_offsets[predicate + 1]
        name = snapshot.predicate_name(predicate)
        cells = {part: get(f"att.{part}")[low:high] for part, _ in PARTS}
        for i, value in enumerate(decode_values(cells, snapshot.texts.__getitem__, snapshot.ident), low):
            assert not isinstance(value, Ref)
            properties = value_properties(value)
            if len(raws) and raws[i] >= 0:
                properties["raw"] = snapshot.texts[int(raws[i])]
            yield [idents[subjects[i]], type_of(name), sids[snapshot.relations + i], name, properties]


def _qualifiers(snapshot: Snapshot, sids: list[int], label: str, references: bool) -> Iterator[list[Any]]:
    get = snapshot.arrays.get
    owners, keys = get("q.owner").tolist(), get("q.key").tolist()
    cells = {part: get(f"q.{part}") for part, _ in PARTS}
    names = {key: snapshot.predicate_name(key) for key in set(keys)}
    for owner, key, value in zip(owners, keys, decode_values(cells, snapshot.texts.__getitem__, snapshot.ident), strict=True):
        if (owner < snapshot.relations) == (label == "Statement") and isinstance(value, Ref) == references:
            yield [sids[owner], names[key], value.id if isinstance(value, Ref) else value_properties(value)]


def _members(snapshot: Snapshot, idents: list[str]) -> Iterator[list[Any]]:
    """Closed membership of entities, and the direct one of concepts, which the closure leaves out."""
    get = snapshot.arrays.get
    direct = set(zip(get("mem.e").tolist(), get("mem.c").tolist(), strict=True))
    concepts, offsets, items = get("con.entity").tolist(), get("con.offsets").tolist(), get("con.items")
    for at, concept in enumerate(concepts):
        for entity in items[offsets[at] : offsets[at + 1]].tolist():
            yield [idents[entity], idents[concept], (entity, concept) in direct]


def describe_schema(snapshot: Snapshot) -> dict[str, Any]:
    """The schema as it is kept with the graph: predicates with their types, qualifier keys, concepts, sources."""
    schema = snapshot.schema

    def kinds(found: Any) -> list[list[Any]]:
        return [[int(kind), unit, count] for (kind, unit), count in found.items()]

    return {
        "relations": list(schema.relations),
        "attributes": {name: kinds(schema.attribute_kinds(name)) for name in schema.attributes},
        "qualifiers": {name: kinds(schema.qualifier_kinds(name)) for name in schema.qualifiers},
        "concepts": list(schema.concepts),
        "sources": list(schema.sources),
    }


