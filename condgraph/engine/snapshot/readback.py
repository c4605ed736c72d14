"""A snapshot turned back into what it was built from: items for an export, columns for an append,
statements for evidence.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import TYPE_CHECKING, Literal

import numpy as np

from condgraph.engine.facts import Entity, EntityKind, Member, Ref, Source, Sourced, Statement, Subclass
from condgraph.engine.snapshot.cells import PARTS, decode_values
from condgraph.engine.values import Value

if TYPE_CHECKING:
    from condgraph.engine.snapshot.build import Builder
    from condgraph.engine.snapshot.snapshot import Numbers, Snapshot


def seed(snapshot: Snapshot, builder: Builder) -> None:
    """Start a builder with everything a snapshot holds: numbers in load order are the snapshot's
    own.
    """
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
    builder.source_numbers = {source.name: number for number, source in enumerate(builder.sources)}
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


#: Statements that are read together.
_TOGETHER = 20_000


def statements(snapshot: Snapshot, numbers: Numbers) -> Iterator[tuple[Statement, tuple[tuple[int, int], ...]]]:
    """Sorted statements with their qualifiers and raw texts, each with every `(source, row)`, the
    first one first.
    """
    for start in range(0, len(numbers), _TOGETHER):
        yield from _read_together(snapshot, numbers[start : start + _TOGETHER])


def _read_together(snapshot: Snapshot, numbers: Numbers) -> Iterator[tuple[Statement, tuple[tuple[int, int], ...]]]:
    get, texts = snapshot.arrays.get, snapshot.texts
    split = snapshot.split(numbers)
    subjects = texts.take(snapshot.entity_id.take(snapshot.subjects(numbers)))
    predicates = snapshot.predicates(numbers).tolist()
    names = {number: snapshot.predicate_name(number) for number in set(predicates)}
    objects: list[Ref | Value] = [
        Ref(ident) for ident in texts.take(snapshot.entity_id.take(snapshot.relation_object.take(numbers[:split])))
    ]
    attributes = numbers[split:] - np.int32(snapshot.relations)
    cells = {name: get(f"att.{name}").take(attributes) for name, _ in PARTS}
    objects.extend(decode_values(cells, texts.__getitem__, snapshot.ident))
    raws = [-1] * split + (get("att.raw").take(attributes).tolist() if len(get("att.raw")) else [-1] * len(attributes))
    qualifiers: dict[int, list[tuple[str, Ref | Value]]] = {}
    positions, found = snapshot.qualifiers(numbers)
    values = decode_values({name: get(f"q.{name}").take(found) for name, _ in PARTS}, texts.__getitem__, snapshot.ident)
    keys = get("q.key").take(found).tolist()
    known = {key: snapshot.predicate_name(key) for key in set(keys)}
    for position, key, value in zip(positions.tolist(), keys, values, strict=True):
        qualifiers.setdefault(position, []).append((known[key], value))
    further = _further_sources(snapshot, numbers)
    sources, rows = snapshot.source.take(numbers).tolist(), snapshot.row.take(numbers).tolist()
    for i, (subject, predicate, thing) in enumerate(zip(subjects, predicates, objects, strict=True)):
        raw = None if raws[i] < 0 else texts[raws[i]]
        statement = Statement(subject, names[predicate], thing, tuple(qualifiers.get(i, ())), rows[i], raw)
        yield statement, ((sources[i], rows[i]), *further.get(i, ()))


def _further_sources(snapshot: Snapshot, numbers: Numbers) -> dict[int, list[tuple[int, int]]]:
    """The sources beyond the first, by position."""
    owners = snapshot.arrays.get("prov.stmt")
    if not len(owners):
        return {}
    begin, end = owners.searchsorted(numbers), owners.searchsorted(numbers, side="right")
    sources, rows = snapshot.arrays.get("prov.src"), snapshot.arrays.get("prov.row")
    return {
        int(i): list(zip(sources[begin[i] : end[i]].tolist(), rows[begin[i] : end[i]].tolist(), strict=True))
        for i in np.flatnonzero(end > begin)
    }


def link_sources(snapshot: Snapshot, table: Literal["mem", "sub"], below: int, above: int) -> list[tuple[int, int]]:
    """Every `(source, row)` that says that an entity is a member of a concept ("mem"), or a concept
    lies under another ("sub").
    """
    first, second = (snapshot.arrays.get(f"{table}.{name}") for name in ("ec" if table == "mem" else "cp"))
    # Each table is sorted by its concepts: memberships by the one above, subclasses by the one
    # below.
    key, wanted = (second, above) if table == "mem" else (first, below)
    low, high = np.searchsorted(key, [wanted, wanted + 1])
    at = np.flatnonzero((first[low:high] == below) & (second[low:high] == above)) + low
    sources, rows = (snapshot.arrays.get(f"{table}.{name}") for name in ("src", "row"))
    return [(int(sources[i]), int(rows[i])) for i in at]


def items(snapshot: Snapshot) -> Iterator[Source | Sourced | Entity]:
    """Everything the snapshot holds, as items that load to an equal graph: sources, entities,
    memberships, statements.
    """
    get = snapshot.arrays.get
    sources = [snapshot.source_of(i) for i in range(len(get("src.name")))]
    yield from sources
    names = [source.name for source in sources]
    places, rows = get("ent.source"), get("ent.row")
    used = np.diff(get("out.offsets")) > 0
    used |= np.diff(get("in.offsets")) > 0
    # An entity without a name of its own that some statement names need not be declared.
    declared = np.flatnonzero((snapshot.entity_kind != 0) | (snapshot.entity_name != snapshot.entity_id) | ~used)
    idents, called = (snapshot.texts.take(column.take(declared)) for column in (snapshot.entity_id, snapshot.entity_name))
    for number, ident, name in zip(declared.tolist(), idents, called, strict=True):
        kind = EntityKind(int(snapshot.entity_kind[number]))
        row = int(rows[number]) if len(rows) else 0
        entity = Entity(ident, name, kind, row)
        if kind is EntityKind.ROW and places[number] >= 0:
            yield Sourced(entity, ((names[int(places[number])], row),))
        else:
            yield entity
    for prefix, first, second, build in (("mem", "e", "c", Member), ("sub", "c", "p", Subclass)):
        columns = [get(f"{prefix}.{name}").tolist() for name in (first, second, "src", "row")]
        for left, right, source, row in zip(*columns, strict=True):
            yield Sourced(build(snapshot.ident(left), snapshot.ident(right), row), ((names[source], row),))
    every = np.arange(snapshot.statements, dtype=np.int32)
    for statement, found in statements(snapshot, every):
        yield Sourced(statement, tuple((names[source], row) for source, row in found))
