"""A snapshot turned back into what it was built from: items for an export, columns for an append, statements for evidence."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import TYPE_CHECKING

import numpy as np

from condgraph.engine.facts import Entity, EntityKind, Member, Ref, Source, Sourced, Statement, Subclass
from condgraph.engine.snapshot.cells import PARTS
from condgraph.engine.values import Value

if TYPE_CHECKING:
    from condgraph.engine.snapshot.build import Builder
    from condgraph.engine.snapshot.snapshot import Numbers, Snapshot


def seed(snapshot: Snapshot, builder: Builder) -> None:
    """Start a builder with everything a snapshot holds: numbers in load order are the snapshot's own."""
    get = snapshot.arrays.get
    texts = snapshot.texts
    builder.texts.update((texts[i], i) for i in range(len(texts)))
    builder.texts.default_factory = count(len(texts)).__next__
    builder.entities.update((texts[int(i)], number) for number, i in enumerate(snapshot.entity_id.tolist()))
    builder.entities.default_factory = count(snapshot.entities).__next__
    named = np.flatnonzero(snapshot.entity_name != snapshot.entity_id)
    builder.names = dict(zip(named.tolist(), texts.take(snapshot.entity_name[named]), strict=True))
    kinds = snapshot.entity_kind
    builder.kinds = {i: EntityKind(int(kinds[i])) for i in np.flatnonzero(kinds).tolist()}
    places, rows = get("ent.source"), get("ent.row")
    if len(rows):
        builder.rows = {i: (int(places[i]), int(rows[i])) for i in np.flatnonzero(places >= 0).tolist()}
    builder.sources = [snapshot.source_of(i) for i in range(len(get("src.name")))]
    sid = np.arange(snapshot.statements, dtype=np.int32)
    builder.statements = snapshot.statements
    predicate = get("pred.text")
    for family, chunks, begin, end in (
        ("rel", builder.relations, 0, snapshot.relations),
        ("att", builder.attributes, snapshot.relations, snapshot.statements),
    ):
        if begin == end:
            continue
        chunk = {"sid": sid[begin:end], "row": snapshot.row[begin:end], "src": snapshot.source[begin:end], "s": get(f"{family}.s")}
        chunk["p"] = predicate[np.repeat(np.arange(len(predicate)), np.diff(get(f"{family}.offsets")))]
        if family == "rel":
            chunk["o"] = get("rel.o")
        else:
            raws = get("att.raw")
            chunk["raw"] = raws if len(raws) else np.full(end - begin, -1, np.int32)
            chunk |= {name: get(f"att.{name}") for name, _ in PARTS}
        chunks.append(chunk)
    if len(get("q.owner")):
        builder.qualifiers.append(
            {"sid": get("q.owner"), "key": predicate[get("q.key")]} | {name: get(f"q.{name}") for name, _ in PARTS}
        )
    for prefix, first, second, into in (("mem", "e", "c", builder.members), ("sub", "c", "p", builder.subclasses)):
        columns = [get(f"{prefix}.{name}").tolist() for name in (first, second, "src", "row")]
        into.extend(zip(*columns, strict=True))
    builder.provenance.extend(zip(*(get(f"prov.{n}").tolist() for n in ("stmt", "src", "row")), strict=True))


def statement(snapshot: Snapshot, number: int) -> Statement:
    """One statement with its qualifiers, its first row, and its raw text."""
    predicate = int(snapshot.predicates(np.array([number], np.int32))[0])
    raw = None
    thing: Ref | Value
    if number < snapshot.relations:
        subject = int(snapshot.relation_subject[number])
        thing = Ref(snapshot.ident(int(snapshot.relation_object[number])))
    else:
        at = number - snapshot.relations
        subject = int(snapshot.attribute_subject[at])
        thing = snapshot.value("att", at)
        raws = snapshot.arrays.view("att.raw")
        raw = snapshot.texts[raws[at]] if len(raws) and raws[at] >= 0 else None
    _, found = snapshot.qualifiers(np.array([number], np.int32))
    keys = snapshot.arrays.view("q.key")
    qualifiers = tuple((snapshot.predicate_name(keys[q]), snapshot.value("q", q)) for q in found.tolist())
    name = snapshot.predicate_name(predicate)
    return Statement(snapshot.ident(subject), name, thing, qualifiers, int(snapshot.row[number]), raw)


def sources_of(snapshot: Snapshot, number: int) -> list[tuple[int, int]]:
    """Every `(source, row)` of a statement, the first one first."""
    found = [(int(snapshot.source[number]), int(snapshot.row[number]))]
    extra = snapshot.arrays.get("prov.stmt")
    if len(extra):
        begin, end = np.searchsorted(extra, number), np.searchsorted(extra, number, side="right")
        sources, rows = snapshot.arrays.get("prov.src"), snapshot.arrays.get("prov.row")
        found.extend((int(sources[i]), int(rows[i])) for i in range(begin, end))
    return found


def membership_sources(snapshot: Snapshot, entity: int, concept: int) -> list[tuple[int, int]]:
    """Every `(source, row)` that says the entity is a direct member of the concept."""
    get = snapshot.arrays.get
    low, high = np.searchsorted(get("mem.c"), [concept, concept + 1])
    at = np.flatnonzero(get("mem.e")[low:high] == entity) + low
    return [(int(get("mem.src")[i]), int(get("mem.row")[i])) for i in at]


def items(snapshot: Snapshot) -> Iterator[Source | Sourced | Entity]:
    """Everything the snapshot holds, as items that load to an equal graph: sources, entities, memberships, statements."""
    get = snapshot.arrays.get
    sources = [snapshot.source_of(i) for i in range(len(get("src.name")))]
    yield from sources
    names = [source.name for source in sources]
    places = get("ent.source")
    for number in range(snapshot.entities):
        entity = snapshot.entity(number)
        if entity.kind is EntityKind.ROW and places[number] >= 0:
            yield Sourced(entity, ((names[int(places[number])], entity.row),))
        elif entity.kind is not EntityKind.ENTITY or entity.name != entity.id or not _used(snapshot, number):
            yield entity
    for prefix, first, second, build in (("mem", "e", "c", Member), ("sub", "c", "p", Subclass)):
        columns = [get(f"{prefix}.{name}").tolist() for name in (first, second, "src", "row")]
        for left, right, source, row in zip(*columns, strict=True):
            yield Sourced(build(snapshot.ident(left), snapshot.ident(right), row), ((names[source], row),))
    for number in range(snapshot.statements):
        found = tuple((names[source], row) for source, row in sources_of(snapshot, number))
        yield Sourced(statement(snapshot, number), found)


def _used(snapshot: Snapshot, entity: int) -> bool:
    """Does any statement name the entity, so that it need not be declared."""
    one: Numbers = np.array([entity], np.int32)
    return snapshot.degree(one) > 0 or snapshot.degree(one, backward=True) > 0
