"""Which source declared which entity, and how, so that a source can be removed without losing what
others declare.

Every declaration is one row: the entity, the source (-1: nobody knows which), the text of its name
(-1: its id), its kind, and its row in a table (-1: none). A source declares an entity once. A
declaration that says no more than the source's own statements and memberships do is left out.

Most graphs have one source, or one large one and small ones beside. So a snapshot keeps rows only
of entities that are not what the first source would have declared alone (`default`); `NO_ONE` as
the source stands for an entity that would be, and that nobody declares.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.errors import numbered
from condgraph.engine.facts import Entity, EntityKind, Sourced
from condgraph.engine.pieces import changed, different, in_order, slices
from condgraph.engine.values import Kind

if TYPE_CHECKING:
    from condgraph.engine.snapshot.build import Builder
    from condgraph.engine.snapshot.layout import Columns
    from condgraph.engine.snapshot.snapshot import Snapshot

I32 = np.int32
#: The source of declarations of which nobody knows who made them, and the mark of none.
UNKNOWN, NO_ONE = -1, -2
PARTS: Final = ("e", "src", "name", "kind", "row")


class Declared(NamedTuple):
    """Declarations side by side, sorted by entity and source; int32."""

    e: NDArray[Any]
    src: NDArray[Any]
    name: NDArray[Any]
    kind: NDArray[Any]
    row: NDArray[Any]

    def take(self, at: NDArray[Any] | slice) -> Declared:
        """Those at some places, or where a mask is set."""
        return Declared(*(column[at] for column in self))

    def firsts(self, column: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """The entities that have something (from 0) in a column, and the place of the first of
        each.
        """
        at = np.flatnonzero(column >= 0)
        entities = self.e[at]
        fresh = changed(entities)
        return entities[fresh], at[fresh]


def joined(parts: list[Declared]) -> Declared:
    """Declarations together: what one source says of an entity several times becomes one, its first
    name, its strongest kind, its first row.
    """
    result = Declared(*(np.concatenate([np.empty(0, I32), *columns]) for columns in zip(*parts, strict=True)))
    result = result.take(in_order([result.e, result.src]))
    fresh = changed(result.e, result.src)
    if fresh.all():
        return result
    group = np.cumsum(fresh) - 1
    kept = result.take(fresh)
    name, row, kind = (np.full(len(kept.e), low, I32) for low in (-1, -1, EntityKind.ENTITY))
    for into, column in ((name, result.name), (row, result.row)):
        at = np.flatnonzero(column >= 0)[::-1]
        into[group[at]] = column[at]  # the first one is written last
    for strongest in (EntityKind.ROW, EntityKind.CONCEPT):
        kind[group[result.kind == strongest]] = strongest
    return kept._replace(name=name, kind=kind, row=row)


def gathered(builder: Builder) -> Declared:
    """All declarations of a builder, by its own numbers; their names become texts of it."""
    parts = [] if builder.seeded is None else [builder.seeded]
    for source, e, names, rows in builder.rows:
        # Before what the source says of them later.
        parts.append(Declared(e, np.full(len(e), source, I32), names, np.full(len(e), int(EntityKind.ROW), I32), rows))
    for source, entities in builder.declared.items():
        if entities:
            texts = builder.texts
            said = [(-1 if name is None else texts[name], kind, row) for name, kind, row in entities.values()]
            e = np.fromiter(entities, I32, len(entities))
            parts.append(Declared(e, np.full(len(e), source, I32), *np.array(said, I32).T))
    return joined(parts) if parts else Declared(*(np.empty(0, I32) for _ in PARTS))


def places_of(columns: Any, statements: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Every source of some statements: the place of the statement among them, and the source."""
    owners = columns["prov.stmt"]
    low, high = np.searchsorted(owners, statements), np.searchsorted(owners, statements, side="right")
    more = high - low
    further = np.repeat(low - np.concatenate([[0], np.cumsum(more)[:-1]]), more) + np.arange(more.sum()) if len(more) else more
    every = np.arange(len(statements))
    return np.concatenate([every, np.repeat(every, more)]), np.concatenate(
        [columns["st.src"][statements], columns["prov.src"][further.astype(np.int64)]]
    )


def _mentioned(
    columns: Any, wanted: NDArray[np.bool_], perhaps: NDArray[np.bool_], sources: int
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Of the wanted entities, who mentions them at all, and of those that `perhaps` are concepts,
    who uses them so: sorted keys, the entity times the number of sources, plus the source.
    """
    relations = len(columns["rel.s"])
    found: list[NDArray[Any]] = []
    concepts: list[NDArray[Any]] = []
    for name, first in (("rel.s", 0), ("rel.o", 0), ("att.s", relations), ("q.ref", -1)):
        entities = columns[name]
        kind, owner = (columns["q.kind"], columns["q.owner"]) if first < 0 else (None, None)
        for part in slices(len(entities)) if wanted.any() else ():
            some = np.array(entities[part])
            if kind is not None:
                some[kind[part] != Kind.ENTITY] = -1
            at = np.flatnonzero((some >= 0) & wanted[some])
            owners = at + (part.start + first) if owner is None else owner[part][at]
            position, source = places_of(columns, owners)
            found.append(different(some[at][position].astype(np.int64) * sources + source))
    for prefix, ends in (("mem", "ec"), ("sub", "cp")):
        for end in ends:
            entities = columns[f"{prefix}.{end}"]
            into, which = (found, wanted) if end == "e" else (concepts, perhaps)
            at = which[entities] if len(which) else np.zeros(0, bool)
            into.append(entities[at].astype(np.int64) * sources + columns[f"{prefix}.src"][at].astype(np.int64))
    concept = different(np.concatenate(concepts))
    return different(np.concatenate([*found, concept])), concept


def default(columns: Any) -> Declared:
    """What the first source would declare if the graph were its alone."""
    plain = columns["ent.name"] == columns["ent.id"]
    used, concept = np.zeros(len(plain), bool), np.zeros(len(plain), bool)
    for ends in ("rel.s", "rel.o", "att.s", "mem.e"):
        entities = columns[ends]
        for part in slices(len(entities)):
            used[entities[part]] = True
    kinds, refs = columns["q.kind"], columns["q.ref"]
    for part in slices(len(kinds)):
        used[refs[part][kinds[part] == Kind.ENTITY]] = True
    for ends in ("mem.c", "sub.c", "sub.p"):
        concept[columns[ends]] = True
    kind = columns["ent.kind"].astype(I32)
    implied = np.where(kind == EntityKind.CONCEPT, concept, (kind == EntityKind.ENTITY) & (used | concept))
    e = np.flatnonzero(~(plain & implied)).astype(I32)
    rows = columns["ent.row"]
    row = np.full(len(e), -1, I32)
    if len(rows):
        row = np.where(columns["ent.source"][e] >= 0, rows[e], -1).astype(I32)
    name = np.where(plain[e], -1, columns["ent.name"][e]).astype(I32)
    return Declared(e, np.zeros(len(e), I32), name, kind[e], row)


def canonical(columns: Any, declared: Declared, sources: int) -> Declared:
    """Without what the sources' own statements and memberships say already."""
    bare = (declared.name < 0) | (declared.kind != EntityKind.CONCEPT)
    wanted, perhaps = np.zeros((2, len(columns["ent.id"])), bool)
    perhaps[declared.e[bare & (declared.src >= 0)]] = True
    if not perhaps.any():
        return declared
    # Rows say where they stand, whoever mentions them.
    wanted[declared.e[bare & (declared.src >= 0) & (declared.row < 0)]] = True
    width = max(sources, 1)
    mentioned, concept = _mentioned(columns, wanted, perhaps, width)
    key = declared.e.astype(np.int64) * width + declared.src
    known = declared.src >= 0
    as_concept = known & np.isin(key, concept)
    kind = np.where(as_concept, int(EntityKind.CONCEPT), declared.kind).astype(I32)
    said = np.where(kind == EntityKind.CONCEPT, as_concept, (kind == EntityKind.ENTITY) & known & np.isin(key, mentioned))
    return declared._replace(kind=kind).take(~(said & (declared.name < 0) & (declared.row < 0)))


def lay_declared(columns: Columns, declared: Declared) -> None:
    """Keep the declarations, by the final numbers, where they are not the default."""
    sources = len(columns["src.name"])
    columns["dec.known"] = np.ones(1, I32)
    if sources == 1 and (declared.src == 0).all():
        declared = declared.take(declared.e[:0])
    else:
        declared = _unlike(canonical(columns, declared, sources), default(columns), len(columns["ent.id"]))
    for name, column in zip(PARTS, declared, strict=True):
        columns[f"dec.{name}"] = column.astype(I32)


def _unlike(declared: Declared, usual: Declared, entities: int) -> Declared:
    """The declarations of entities that have others than usual; `NO_ONE` for those that have none."""
    number = np.bincount(declared.e, minlength=entities)
    first = np.searchsorted(declared.e, usual.e)
    same = number[usual.e] == 1
    at = first[same]
    for mine, theirs in zip(declared[1:], usual[1:], strict=True):
        same[same] &= mine[at] == theirs[same]
        at = first[same]
    unlike = number > 0
    unlike[usual.e[same]] = False
    nobody = usual.take(number[usual.e] == 0)
    parts = [declared.take(unlike[declared.e]), nobody._replace(src=np.full(len(nobody.e), NO_ONE, I32))]
    return joined(parts)


class _Arrays:
    """The arrays of a snapshot as columns."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._get = snapshot.arrays.get

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._get(name)


def kept(snapshot: Snapshot) -> Declared:
    """The rows that a snapshot keeps: of entities that have other declarations than `default`."""
    return Declared(*(snapshot.arrays.get(f"dec.{name}") for name in PARTS))


def declared(snapshot: Snapshot) -> Declared:
    """All declarations of a snapshot. Of a graph of several sources that an earlier version wrote
    nobody knows who declared what, but for rows of tables.
    """
    arrays, usual, stored = _Arrays(snapshot), default(_Arrays(snapshot)), kept(snapshot)
    sources = len(arrays["src.name"])
    if not len(arrays["dec.known"]) and sources != 1:
        places = arrays["ent.source"]
        row = places[usual.e] if len(places) else np.full(len(usual.e), UNKNOWN, I32)
        return usual._replace(src=np.where(usual.row >= 0, row, UNKNOWN).astype(I32))
    if not len(stored.e):
        return usual
    other = np.zeros(snapshot.entities, bool)
    other[stored.e] = True
    return joined([usual.take(~other[usual.e]), stored.take(stored.src != NO_ONE)])


def rows_of_several(snapshot: Snapshot, fresh: Collection[int]) -> list[str]:
    """What to say of entities that are rows of several sources, of which one at least is among
    `fresh`.
    """
    rows = kept(snapshot)
    rows = rows.take((rows.kind == EntityKind.ROW) & (rows.src >= 0))
    rows = joined([rows])
    same = np.flatnonzero(rows.e[1:] == rows.e[:-1])
    first, second = rows.src[same], rows.src[same + 1]
    said = []
    for one, other in sorted(set(zip(first.tolist(), second.tolist(), strict=True))):
        if one in fresh or other in fresh:
            entities = rows.e[same[(first == one) & (second == other)]]
            names = [snapshot.source_of(number).name for number in (one, other)]
            what = numbered(len(entities), "entity is a row", "entities are rows")
            said.append(f"{what} of {names[0]!r} and of {names[1]!r}, by one id: {snapshot.ident(int(entities[0]))!r}")
    return said


# -- as texts, which servers keep ------------------------------------------------------------------


def texts_of(snapshot: Snapshot) -> dict[int, str]:
    """What a server keeps of declarations: by entity, `[[source, name, kind, row], ...]` as JSON
    (null: nobody, its id), for those that `read_entity` would not know without.
    """
    sources = len(snapshot.arrays.get("src.name"))
    if sources == 1 and not len(kept(snapshot).e):
        return {}
    other = kept(snapshot)
    plain = default(_Arrays(snapshot))
    told = np.zeros(snapshot.entities, bool)
    told[other.e] = True
    plain = plain.take((plain.name < 0) & ~told[plain.e])
    names = [snapshot.source_of(i).name for i in range(sources)]
    found: dict[int, list[Any]] = {}
    for item in (other, plain):
        for e, source, name, kind, row in zip(*(column.tolist() for column in item), strict=True):
            said = found.setdefault(e, [])
            if source != NO_ONE:
                said.append([None if source < 0 else names[source], None if name < 0 else snapshot.texts[name], kind, row])
    return {e: json.dumps(said, ensure_ascii=False) for e, said in found.items()}


def read_entity(entity: Entity, place: str | None, text: str | None, sources: Sequence[str], *, known: bool) -> Iterator[Sourced]:
    """Who declares an entity of a server, and as what. `place` is the source that it is a row of,
    `text` what `texts_of` has of it; `known`: the graph says who declared what.
    """
    if text is not None:
        for source, name, kind, row in json.loads(text):
            one = Entity(entity.id, entity.id if name is None else name, EntityKind(kind), max(row, 0))
            yield Sourced(one, () if source is None else ((source, one.row),))
    elif entity.kind is EntityKind.ROW and place is not None:
        yield Sourced(entity, ((place, entity.row),))
    elif len(sources) == 1 or (known and entity.name != entity.id and sources):
        yield Sourced(entity, ((sources[0], entity.row),))
    elif not known or not sources:
        yield Sourced(entity, ())
