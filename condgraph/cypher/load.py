"""Writing a snapshot to Neo4j in batches: idempotent, resumable, a batch at a time.

A `:Load` node for each batch is merged first in the batch's own transaction and the batch is written only where it is new, so that
a load that was killed goes on where it stopped, and a second one finds everything done. A reader sees the graph once
`Graph.complete` is true.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from condgraph.cypher.layout import FORMAT, INDEXES, entity_properties, type_of, validity_properties, value_properties
from condgraph.engine.execute.bags import span_precision
from condgraph.engine.facts import EntityKind, Ref
from condgraph.engine.identity import statement_ids
from condgraph.engine.snapshot.readback import statements
from condgraph.engine.stored_schema import describe_schema

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot

#: Records a transaction writes.
BATCH: Final = 10_000
Execute = Callable[[str, dict[str, Any]], None]
Told = Callable[[int], None]

_ONCE: Final = (
    "MERGE (l:Load {graph: $graph, batch: $batch}) ON CREATE SET l.fresh = true WITH l WHERE l.fresh REMOVE l.fresh WITH l "
)
_BETWEEN: Final = "UNWIND $rows AS r MATCH (a:Entity {graph: $graph, id: r[0]}) MATCH (b:Entity {graph: $graph, id: r[1]}) "
_SOURCE: Final = "UNWIND $rows AS r MERGE (s:Source {graph: $graph, name: r[0]}) SET s.location = r[1], s.format = r[2]"
_ENTITY: Final = "UNWIND $rows AS r MERGE (e:Entity {graph: $graph, id: r[0]}) SET e%s, e += r[1]"
_RELATION: Final = _BETWEEN + "CREATE (a)-[f:$(r[2]) {sid: r[3], sources: r[4], rows: r[5]}]->(b) SET f += r[6]"
_ATTRIBUTE: Final = (
    "UNWIND $rows AS r MATCH (a:Entity {graph: $graph, id: r[0]}) CREATE (a)-[f:$(r[1]) {sid: r[2]}]->"
    "(v:Value {graph: $graph, sid: r[2], predicate: r[3], sources: r[5], rows: r[6]}) SET v += r[4], f += r[7]"
)
_STATEMENT: Final = "UNWIND $rows AS r CREATE (:Statement {graph: $graph, sid: r[0]})"
_QUALIFIER: Final = (
    "UNWIND $rows AS r MATCH (o:%s {graph: $graph, sid: r[0]}) "
    "CREATE (o)-[:QUALIFIER]->(q:Qualifier {graph: $graph, name: r[1]}) SET q += r[2]"
)
_REFERENCE: Final = (
    "UNWIND $rows AS r MATCH (o:%s {graph: $graph, sid: r[0]}) MATCH (e:Entity {graph: $graph, id: r[2]}) "
    "CREATE (o)-[:QUALIFIER]->(q:Qualifier {graph: $graph, name: r[1], kind: 'entity', key: e.key, text: e.name, id: e.id}) "
    "CREATE (q)-[:IS]->(e)"
)
_MORE_SOURCES: Final = _BETWEEN + "MATCH (a)-[f:$(r[2])]->(b) WHERE f.sid = r[3] SET f.sources = r[4], f.rows = r[5]"
_MORE_SOURCES_OF_VALUES: Final = "UNWIND $rows AS r MATCH (v:Value {graph: $graph, sid: r[0]}) SET v.sources = r[1], v.rows = r[2]"
_MEMBER: Final = _BETWEEN + "MERGE (a)-[m:MEMBER_OF]->(b) SET m.sources = r[2], m.rows = r[3]"
_SUBCLASS: Final = _BETWEEN + "MERGE (a)-[m:SUBCLASS_OF]->(b) SET m.sources = r[2], m.rows = r[3]"


def load_id(snapshot: Snapshot) -> str:
    """A name for the load of this content: the same content gives the same name."""
    digest = blake2b(np.sort(statement_ids(snapshot)).tobytes(), digest_size=12)
    digest.update(json.dumps(snapshot.counts, sort_keys=True).encode())
    return digest.hexdigest()


def write_snapshot(
    snapshot: Snapshot, graph: str, execute: Execute, *, previous: Snapshot | None = None, told: Told = lambda written: None
) -> None:
    """Write what `snapshot` has and `previous`, which the server holds already, has not.

    `execute` runs one text in one transaction; `told` hears how many records are written so far.
    """
    for statement in INDEXES:
        execute(statement, {})
    execute("CALL db.awaitIndexes(300)", {})
    load = load_id(snapshot)
    execute(
        "MERGE (g:Graph {name: $graph}) SET g.format = $format, g.complete = false, g.loading = $load",
        {"graph": graph, "format": FORMAT, "load": load},
    )
    written = 0
    for name, text, rows in _batches(snapshot, previous):
        execute(_ONCE + text, {"graph": graph, "batch": f"{load} {name}", "rows": rows})
        written += len(rows)
        told(written)
    about = {"counts": json.dumps(snapshot.counts), "schema": json.dumps(describe_schema(snapshot))}
    execute(
        "MATCH (g:Graph {name: $graph}) SET g.complete = true, g.loading = null, g.counts = $counts, g.schema = $schema",
        {"graph": graph, **about},
    )


def _batches(snapshot: Snapshot, previous: Snapshot | None) -> Iterator[tuple[str, str, list[Any]]]:
    """Batches of records: a name that is the same for the same batch, the text that writes it, the rows."""
    get = snapshot.arrays.get
    sources = [snapshot.source_of(i) for i in range(len(get("src.name")))]
    yield from _cut("sources", _SOURCE, ([one.name, one.location, one.format] for one in sources))
    for kind, label in ((EntityKind.ENTITY, ":Entity"), (EntityKind.CONCEPT, ":Concept"), (EntityKind.ROW, ":Row")):
        text = _ENTITY % label
        yield from _cut(f"entities {kind.name}", text, _entities(snapshot, previous, kind))
    sids = statement_ids(snapshot)
    known = np.empty(0, np.int64) if previous is None else statement_ids(previous)
    fresh = np.flatnonzero(~np.isin(sids, known)).astype(np.int32)
    names = [source.name for source in sources]
    yield from _statements(snapshot, fresh, sids.tolist(), names)
    if previous is not None:
        yield from _more_sources(snapshot, previous, sids, known, names)
    for prefix, text in (("mem", _MEMBER), ("sub", _SUBCLASS)):
        yield from _cut(prefix, text, _concepts(snapshot, prefix, names))


def _cut(name: str, text: str, rows: Iterable[list[Any]]) -> Iterator[tuple[str, str, list[Any]]]:
    """Rows in batches."""
    remaining = iter(rows)
    number = 0
    while batch := list(islice(remaining, BATCH)):
        yield f"{name} {number}", text, batch
        number += 1


def _entities(snapshot: Snapshot, previous: Snapshot | None, kind: EntityKind) -> Iterator[list[Any]]:
    """Entities that are new, or are called or are otherwise than before."""
    places, rows = snapshot.arrays.get("ent.source"), snapshot.arrays.get("ent.row")
    for number in np.flatnonzero(snapshot.entity_kind == kind).tolist():
        entity = snapshot.entity(number)
        before = -1 if previous is None else previous.identified(entity.id)
        if previous is not None and before >= 0 and previous.entity(before) == entity:
            continue
        record = entity_properties(entity.name, int(kind))
        if len(places) and places[number] >= 0:
            record |= {"source": snapshot.source_of(int(places[number])).name, "row": int(rows[number])}
        yield [entity.id, record]


def _statements(
    snapshot: Snapshot, fresh: NDArray[np.int32], sids: list[int], names: list[str]
) -> Iterator[tuple[str, str, list[Any]]]:
    """Relations, attributes, then the qualifiers of both."""
    split = snapshot.split(fresh)
    holds = _validities(snapshot)

    def relations() -> Iterator[list[Any]]:
        for number, (one, places) in zip(fresh[:split].tolist(), statements(snapshot, fresh[:split]), strict=True):
            assert isinstance(one.object, Ref)
            valid = holds.get(number, {})
            yield [one.subject, one.object.id, type_of(one.predicate), sids[number], *_places(places, names), valid]

    def attributes() -> Iterator[list[Any]]:
        for number, (one, places) in zip(fresh[split:].tolist(), statements(snapshot, fresh[split:]), strict=True):
            assert not isinstance(one.object, Ref)
            properties = value_properties(one.object) | ({} if one.raw is None else {"raw": one.raw})
            valid = holds.get(number, {})
            yield [one.subject, type_of(one.predicate), sids[number], one.predicate, properties, *_places(places, names), valid]

    yield from _cut("relations", _RELATION, relations())
    yield from _cut("attributes", _ATTRIBUTE, attributes())
    positions, _ = snapshot.qualifiers(fresh)
    qualified = fresh[np.unique(positions)]
    at = snapshot.split(qualified)
    yield from _cut("statements", _STATEMENT, ([sids[number]] for number in qualified[:at].tolist()))
    for label, part in (("Statement", qualified[:at]), ("Value", qualified[at:])):
        for text, references in ((_QUALIFIER, False), (_REFERENCE, True)):
            yield from _cut(f"qualifiers {label} {references}", text % label, _qualifiers(snapshot, part, sids, references))


def _validities(snapshot: Snapshot) -> dict[int, dict[str, Any]]:
    """When statements hold, by number, for those of which it is said."""
    numbers, start, end = (snapshot.arrays.get(f"val.{name}") for name in ("stmt", "start", "end"))
    columns = (numbers, start, end, span_precision(start, end))
    return {
        number: validity_properties(first, last, precision)
        for number, first, last, precision in zip(*(column.tolist() for column in columns), strict=True)
    }


def _more_sources(
    snapshot: Snapshot, previous: Snapshot, sids: NDArray[np.int64], known: NDArray[np.int64], names: list[str]
) -> Iterator[tuple[str, str, list[Any]]]:
    """Statements that were there and have a further source now."""
    before = np.bincount(previous.arrays.get("prov.stmt"), minlength=previous.statements)
    now = np.bincount(snapshot.arrays.get("prov.stmt"), minlength=snapshot.statements)
    order = np.argsort(known)
    at = order[np.minimum(np.searchsorted(known, sids, sorter=order), len(known) - 1)] if len(known) else np.empty(0, np.int64)
    changed = np.flatnonzero((known[at] == sids) & (before[at] != now)).astype(np.int32) if len(known) else np.empty(0, np.int32)
    split = snapshot.split(changed)

    def relations() -> Iterator[list[Any]]:
        for number, (one, places) in zip(changed[:split].tolist(), statements(snapshot, changed[:split]), strict=True):
            assert isinstance(one.object, Ref)
            yield [one.subject, one.object.id, type_of(one.predicate), int(sids[number]), *_places(places, names)]

    def attributes() -> Iterator[list[Any]]:
        for number, (_, places) in zip(changed[split:].tolist(), statements(snapshot, changed[split:]), strict=True):
            yield [int(sids[number]), *_places(places, names)]

    yield from _cut("sources of relations", _MORE_SOURCES, relations())
    yield from _cut("sources of attributes", _MORE_SOURCES_OF_VALUES, attributes())


def _places(places: Iterable[tuple[int, int]], names: list[str]) -> tuple[list[str], list[int]]:
    return [names[source] for source, _ in places], [row for _, row in places]


def _qualifiers(snapshot: Snapshot, numbers: NDArray[np.int32], sids: list[int], references: bool) -> Iterator[list[Any]]:
    for number, (one, _) in zip(numbers.tolist(), statements(snapshot, numbers), strict=True):
        for key, value in one.qualifiers:
            if isinstance(value, Ref) == references:
                yield [sids[number], key, value.id if isinstance(value, Ref) else value_properties(value)]


def _concepts(snapshot: Snapshot, prefix: str, names: list[str]) -> Iterator[list[Any]]:
    """Direct membership (or subclasses) with sources, and for membership what follows from it, without."""
    get = snapshot.arrays.get
    found: dict[tuple[int, int], list[tuple[int, int]]] = {}
    columns = ("mem.e", "mem.c", "mem.src", "mem.row") if prefix == "mem" else ("sub.c", "sub.p", "sub.src", "sub.row")
    for one, other, source, row in zip(*(get(name).tolist() for name in columns), strict=True):
        found.setdefault((one, other), []).append((source, row))
    if prefix == "mem":
        offsets, items = get("con.offsets"), get("con.items")
        for at, concept in enumerate(get("con.entity").tolist()):
            for entity in items[offsets[at] : offsets[at + 1]].tolist():
                found.setdefault((entity, concept), [])
    for (one, other), places in found.items():
        yield [snapshot.ident(one), snapshot.ident(other), *_places(places, names)]
