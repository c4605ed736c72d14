"""Reads a snapshot back: items for an export, columns for an append, statements for evidence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.facts import Entity, EntityKind, Member, Ref, Source, Sourced, Statement, Subclass
from condgraph.engine.pieces import slices
from condgraph.engine.snapshot.build import declared
from condgraph.engine.snapshot.cells import PARTS, decode_values
from condgraph.engine.snapshot.snapshot import ranges
from condgraph.engine.snapshot.sources import without_sources
from condgraph.engine.values import Kind, Value

if TYPE_CHECKING:
    from condgraph.engine.snapshot.build import Builder
    from condgraph.engine.snapshot.snapshot import Numbers, Snapshot


def seed(
    snapshot: Snapshot,
    builder: Builder,
    without: Iterable[str] = (),
    stays: NDArray[np.bool_] | None = None,
    *,
    unused: bool = True,
) -> None:
    """Start a builder with everything a snapshot holds, but for what only the sources `without`
    say: what nobody else mentions goes with them. With a mask over the statements only these stay,
    and all entities, or only those that are not `unused` then.
    """
    sources = [snapshot.source_of(i) for i in range(len(snapshot.arrays.get("src.name")))]
    builder.sources = sources
    builder.source_numbers = {source.name: number for number, source in enumerate(sources)}
    builder.emptied = {builder.source_numbers[name] for name in without}
    rest = without_sources(snapshot, builder.emptied, stays, unused=unused)
    texts = snapshot.texts
    kept_texts, kept_entities = np.flatnonzero(rest.texts), np.flatnonzero(rest.entities)
    builder.texts.update(zip(texts.take(kept_texts), range(len(kept_texts)), strict=True))
    builder.texts.default_factory = count(len(kept_texts)).__next__
    idents = texts.take(snapshot.entity_id[kept_entities])
    builder.entities.update(zip(idents, range(len(kept_entities)), strict=True))
    builder.entities.default_factory = count(len(kept_entities)).__next__
    builder.seeded = rest.declared
    named, at = rest.declared.firsts(rest.declared.name)
    names = texts.take(kept_texts[rest.declared.name[at]])
    builder.names = dict(zip(named.tolist(), names, strict=True))
    builder.statements = rest.statements
    builder.relations += [rest.relations] if len(rest.relations["sid"]) else []
    builder.attributes += [rest.attributes] if len(rest.attributes["sid"]) else []
    builder.qualifiers += [rest.qualifiers] if len(rest.qualifiers["sid"]) else []
    builder.many_members.append(np.stack(rest.members, axis=1).astype(np.int64))
    builder.subclasses.extend(zip(*(column.tolist() for column in rest.subclasses), strict=True))
    builder.provenance.extend(zip(*(column.tolist() for column in rest.places), strict=True))


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
    positions, places = snapshot.qualifiers(numbers)
    values = decode_values({name: get(f"q.{name}").take(places) for name, _ in PARTS}, texts.__getitem__, snapshot.ident)
    keys = get("q.key").take(places).tolist()
    known = {key: snapshot.predicate_name(key) for key in set(keys)}
    for position, key, value in zip(positions.tolist(), keys, values, strict=True):
        qualifiers.setdefault(position, []).append((known[key], value))
    further = further_sources(snapshot, numbers)
    sources, rows = snapshot.source.take(numbers).tolist(), snapshot.row.take(numbers).tolist()
    for i, (subject, predicate, thing) in enumerate(zip(subjects, predicates, objects, strict=True)):
        raw = None if raws[i] < 0 else texts[raws[i]]
        statement = Statement(subject, names[predicate], thing, tuple(qualifiers.get(i, ())), rows[i], raw)
        yield statement, ((sources[i], rows[i]), *further.get(i, ()))


def further_sources(snapshot: Snapshot, numbers: Numbers) -> dict[int, list[tuple[int, int]]]:
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


def items(snapshot: Snapshot) -> Iterator[Source | Sourced]:
    """Everything the snapshot holds, as items that load to an equal graph: sources, entities,
    memberships, statements; read in parts.
    """
    get = snapshot.arrays.get
    sources = [snapshot.source_of(i) for i in range(len(get("src.name")))]
    yield from sources
    names = [source.name for source in sources]
    every = declared(snapshot)
    for part in slices(len(every.e)):
        said = every.take(part)
        ids = snapshot.entity_id.take(said.e)
        idents, names_of = (snapshot.texts.take(column) for column in (ids, np.where(said.name < 0, ids, said.name)))
        for ident, name, source, kind, row in zip(
            idents, names_of, said.src.tolist(), said.kind.tolist(), said.row.tolist(), strict=True
        ):
            entity = Entity(ident, name, EntityKind(kind), max(row, 0))
            yield Sourced(entity, ((names[source], entity.row),) if source >= 0 else ())
    none = np.empty(0, np.int64)
    for part in slices(len(get("mem.src"))):
        yield from _links(snapshot, names, np.arange(part.start, part.stop), none)
    for part in slices(len(get("sub.src"))):
        yield from _links(snapshot, names, none, np.arange(part.start, part.stop))
    raws = place_raws(snapshot)
    for part in slices(snapshot.statements):
        yield from _sourced(snapshot, names, np.arange(part.start, part.stop, dtype=np.int32), raws)


def some_items(
    snapshot: Snapshot, numbers: Numbers, entities: Numbers, members: NDArray[np.int64], subclasses: NDArray[np.int64]
) -> Iterator[Source | Sourced | Entity]:
    """Some of what a snapshot holds, as items: its sources, statements and entities by their sorted numbers, memberships
    and subclasses by their places in the columns, and all entities in these.
    """
    get = snapshot.arrays.get
    sources = [snapshot.source_of(i) for i in range(len(get("src.name")))]
    yield from sources
    names = [source.name for source in sources]
    _, places = snapshot.qualifiers(numbers)
    values = get("q.ref").take(places)[get("q.kind").take(places) == Kind.ENTITY]
    ends = [entities, snapshot.subjects(numbers), snapshot.relation_object.take(numbers[: snapshot.split(numbers)]), values]
    ends += [get(f"mem.{end}").take(members) for end in "ec"] + [get(f"sub.{end}").take(subclasses) for end in "cp"]
    rows = get("ent.source")
    for number in np.unique(np.concatenate(ends)).tolist():
        entity = snapshot.entity(number)
        source = int(rows[number]) if entity.kind is EntityKind.ROW and len(rows) else -1
        yield entity if source < 0 else Sourced(entity, ((names[source], entity.row),))
    yield from _links(snapshot, names, members, subclasses)
    yield from _sourced(snapshot, names, numbers, place_raws(snapshot, numbers))


def _links(snapshot: Snapshot, names: list[str], members: NDArray[np.int64], subclasses: NDArray[np.int64]) -> Iterator[Sourced]:
    """Memberships and subclasses, by their places in the columns."""
    for prefix, first, second, build, places in (("mem", "e", "c", Member, members), ("sub", "c", "p", Subclass, subclasses)):
        columns = [snapshot.arrays.get(f"{prefix}.{name}").take(places).tolist() for name in (first, second, "src", "row")]
        for left, right, source, row in zip(*columns, strict=True):
            yield Sourced(build(snapshot.ident(left), snapshot.ident(right), row), ((names[source], row),))


def _sourced(snapshot: Snapshot, names: list[str], numbers: Numbers, raws: dict[int, list[str | None]]) -> Iterator[Sourced]:
    """Statements with their sources."""
    for number, (statement, found) in zip(numbers.tolist(), statements(snapshot, numbers), strict=True):
        places = tuple((names[source], row) for source, row in found)
        if number not in raws:
            yield Sourced(statement, places)
            continue
        # What sources write in other ways is given once for each of these.
        for raw in dict.fromkeys(raws[number]):
            some = tuple(place for place, written in zip(places, raws[number], strict=True) if written == raw)
            yield Sourced(replace(statement, raw=raw), some)


def place_raws(snapshot: Snapshot, numbers: Numbers | None = None) -> dict[int, list[str | None]]:
    """The raw text at every place of those attributes (of some sorted statements, or of all) that stand in several, and are
    not written alike there.
    """
    get, first = snapshot.arrays.get, snapshot.relations
    raws = get("prov.raw")
    if not len(raws):
        return {}
    owners, own = get("prov.stmt"), get("att.raw")
    if numbers is None:
        attributes = np.flatnonzero(owners >= first)
    else:
        low, high = (owners.searchsorted(numbers[snapshot.split(numbers) :], side=side) for side in ("left", "right"))
        attributes = ranges(low, high)
    at = owners[attributes] - first
    before = own[at] if len(own) else np.full(len(at), -1, np.int32)
    result: dict[int, list[str | None]] = {}
    for owner in np.unique(owners[attributes[before != raws[attributes]]]).tolist():
        low, high = np.searchsorted(owners, [owner, owner + 1])
        places = [int(own[owner - first]) if len(own) else -1, *raws[low:high].tolist()]
        result[owner] = [None if number < 0 else snapshot.texts[number] for number in places]
    return result
