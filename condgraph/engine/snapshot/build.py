"""From items of loaders to columns in load order: the first half of building a snapshot."""

from __future__ import annotations

import gc
import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import compress, count, repeat
from operator import is_not, ne
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from condgraph.engine import facts as model
from condgraph.engine.bounds import changed, different, in_order, slices
from condgraph.engine.errors import LoadError, numbered
from condgraph.engine.facts import Entity, EntityKind, Sourced
from condgraph.engine.origins import ALSO, check_source
from condgraph.engine.snapshot.cells import PARTS, CellColumns, encode_column, encode_values
from condgraph.engine.snapshot.container import SPARE, put_together
from condgraph.engine.values import Kind, Value, collapse

if TYPE_CHECKING:
    from condgraph.engine.snapshot.layout import Columns
    from condgraph.engine.snapshot.snapshot import Snapshot


# -- declarations ------------------------------------------------------------------------------------
# Which source declared which entity, and how, so that a source can be removed without losing what
# others declare.
#
# Every declaration is one row: the entity, the source (-1: nobody knows which), the text of its name
# (-1: its id), its kind, and its row in a table (-1: none). A source declares an entity once. A
# declaration that says no more than the source's own statements and memberships do is left out.
#
# Most graphs have one source, or one large one and small ones beside. So a snapshot keeps rows only
# of entities that are not what the first source would have declared alone (`default`); `NO_ONE` as
# the source stands for an entity that would be, and that nobody declares.


#: The source of declarations of which nobody knows who made them, and the mark of none.
UNKNOWN, NO_ONE = -1, -2
DECLARED: Final = ("e", "src", "name", "kind", "row")


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
    result = Declared(*(np.concatenate([np.empty(0, np.int32), *columns]) for columns in zip(*parts, strict=True)))
    result = result.take(in_order([result.e, result.src]))
    fresh = changed(result.e, result.src)
    if fresh.all():
        return result
    group = np.cumsum(fresh) - 1
    kept = result.take(fresh)
    name, row, kind = (np.full(len(kept.e), low, np.int32) for low in (-1, -1, EntityKind.ENTITY))
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
        parts.append(Declared(e, np.full(len(e), source, np.int32), names, np.full(len(e), int(EntityKind.ROW), np.int32), rows))
    for source, entities in builder.declared.items():
        if entities:
            texts = builder.texts
            said = [(-1 if name is None else texts[name], kind, row) for name, kind, row in entities.values()]
            e = np.fromiter(entities, np.int32, len(entities))
            parts.append(Declared(e, np.full(len(e), source, np.int32), *np.array(said, np.int32).T))
    return joined(parts) if parts else Declared(*(np.empty(0, np.int32) for _ in DECLARED))


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
    kind = columns["ent.kind"].astype(np.int32)
    implied = np.where(kind == EntityKind.CONCEPT, concept, (kind == EntityKind.ENTITY) & (used | concept))
    e = np.flatnonzero(~(plain & implied)).astype(np.int32)
    rows = columns["ent.row"]
    row = np.full(len(e), -1, np.int32)
    if len(rows):
        row = np.where(columns["ent.source"][e] >= 0, rows[e], -1).astype(np.int32)
    name = np.where(plain[e], -1, columns["ent.name"][e]).astype(np.int32)
    return Declared(e, np.zeros(len(e), np.int32), name, kind[e], row)


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
    kind = np.where(as_concept, int(EntityKind.CONCEPT), declared.kind).astype(np.int32)
    said = np.where(kind == EntityKind.CONCEPT, as_concept, (kind == EntityKind.ENTITY) & known & np.isin(key, mentioned))
    return declared._replace(kind=kind).take(~(said & (declared.name < 0) & (declared.row < 0)))


def lay_declared(columns: Columns, declared: Declared) -> None:
    """Keep the declarations, by the final numbers, where they are not the default."""
    sources = len(columns["src.name"])
    columns["dec.known"] = np.ones(1, np.int32)
    if sources == 1 and (declared.src == 0).all():
        declared = declared.take(declared.e[:0])
    else:
        declared = _unlike(canonical(columns, declared, sources), default(columns), len(columns["ent.id"]))
    for name, column in zip(DECLARED, declared, strict=True):
        columns[f"dec.{name}"] = column.astype(np.int32)


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
    parts = [declared.take(unlike[declared.e]), nobody._replace(src=np.full(len(nobody.e), NO_ONE, np.int32))]
    return joined(parts)


class _Arrays:
    """The arrays of a snapshot as columns."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._get = snapshot.arrays.get

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._get(name)


def kept(snapshot: Snapshot) -> Declared:
    """The rows that a snapshot keeps: of entities that have other declarations than `default`."""
    return Declared(*(snapshot.arrays.get(f"dec.{name}") for name in DECLARED))


def declared(snapshot: Snapshot) -> Declared:
    """All declarations of a snapshot. Of a graph of several sources that an earlier version wrote
    nobody knows who declared what, but for rows of tables.
    """
    arrays, usual, stored = _Arrays(snapshot), default(_Arrays(snapshot)), kept(snapshot)
    sources = len(arrays["src.name"])
    if not len(arrays["dec.known"]) and sources != 1:
        places = arrays["ent.source"]
        row = places[usual.e] if len(places) else np.full(len(usual.e), UNKNOWN, np.int32)
        return usual._replace(src=np.where(usual.row >= 0, row, UNKNOWN).astype(np.int32))
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


# -- the builder -------------------------------------------------------------------------------------


#: Objects between two collections, and collections of each generation between two of the next.
_THRESHOLDS: Final = (200_000, 50, 100)
_lock = Lock()
_before: list[tuple[int, int, int]] = []


@contextmanager
def fewer_collections() -> Iterator[None]:
    """Collect less often; what was set before is set again when the last of several loads ends."""
    with _lock:
        _before.append(gc.get_threshold())
        if gc.get_threshold()[0]:  # whoever switched it off means it
            gc.set_threshold(*_THRESHOLDS)
    try:
        yield
    finally:
        with _lock:
            # The first in the list is what was set before any of them; loads may end in any order.
            if len(_before) == 1:
                gc.set_threshold(*_before[0])
                _before.clear()
            else:
                _before.pop()


# -- columns under construction --------------------------------------------------------------------
# Statements as columns while a snapshot is built: chunks of NumPy arrays in load order, of single
# statements and of batches.
#
# Texts and entities get numbers in the order they come. Every statement has a number too (`sid`), by
# which qualifiers and sources find it.


#: Texts of a column that come so often, on average, are looked for among those that are known.
_OFTEN: Final = 16

#: Columns by name, of one length.
Chunk = dict[str, NDArray[Any]]


class Chunks:
    """The statements that were taken so far."""

    def __init__(self) -> None:
        self.texts: defaultdict[str, int] = defaultdict(count().__next__)
        #: Further texts, as bytes back to back with their lengths, by the number of the first of
        #: them; they may be among the others, too. And how many they are.
        self.spelled: list[tuple[int, NDArray[np.uint8], NDArray[np.int64]]] = []
        self.spelled_texts = 0
        self.entities: defaultdict[str, int] = defaultdict(count().__next__)
        self.statements = 0
        self.relations: list[Chunk] = []
        self.attributes: list[Chunk] = []
        self.qualifiers: list[Chunk] = []
        #: Further places of statements: the statement, the source, the row, the raw text (-1: none).
        self.provenance: list[tuple[int, int, int, int]] = []
        #: The same without raw texts, of single statements, and those themselves with their number
        #: and source, until they are turned into chunks.
        self._more: list[tuple[int, int, int]] = []
        self._pending: list[tuple[int, int, model.Statement]] = []
        #: The subjects that were numbered last.
        self._numbered: tuple[Sequence[str], NDArray[np.int32]] = ((), np.empty(0, np.int32))
        #: The names of rows that were numbered last, which may be the texts of a column as well.
        self._named: tuple[Sequence[str], NDArray[np.int32]] = ((), np.empty(0, np.int32))

    def _flush(self) -> None:
        """Turn the single statements gathered so far into chunks."""
        pending = self._pending
        if not pending:
            return
        texts, entities = self.texts, self.entities
        relations: list[tuple[int, int, int, int, int, int]] = []
        attributes: list[tuple[int, int, int, int, int, int]] = []
        objects: list[model.Ref | Value] = []
        owners: list[int] = []
        keys: list[int] = []
        values: list[model.Ref | Value] = []
        raws: dict[int, int] = {}
        for sid, source, statement in pending:
            thing = statement.object
            if isinstance(thing, model.Ref):
                relations.append(
                    (sid, texts[statement.predicate], entities[statement.subject], entities[thing.id], statement.row, source)
                )
            else:
                raw = -1 if statement.raw is None else texts[statement.raw]
                if isinstance(thing, str) and (plain := collapse(thing)) != thing:
                    # Texts compare with their white space collapsed; how it stood is kept beside.
                    raw, thing = (texts[thing] if raw < 0 else raw), plain
                attributes.append((sid, texts[statement.predicate], entities[statement.subject], raw, statement.row, source))
                objects.append(thing)
                if raw >= 0 and self._more:
                    raws[sid] = raw
            for key, value in statement.qualifiers:
                owners.append(sid)
                keys.append(texts[key])
                values.append(value)
        pending.clear()
        self.provenance.extend((*place, raws.get(place[0], -1)) for place in self._more)
        self._more.clear()
        if relations:
            columns = np.array(relations, np.int32).T
            self.relations.append(dict(zip(("sid", "p", "s", "o", "row", "src"), columns, strict=True)))
        if attributes:
            columns = np.array(attributes, np.int32).T
            cells = encode_values(objects, texts.__getitem__, entities.__getitem__)
            self.attributes.append(dict(zip(("sid", "p", "s", "raw", "row", "src"), columns, strict=True)) | cells)
        if owners:
            self._qualify(np.array(owners, np.int32), np.array(keys, np.int32), self._encode(values))

    def _encode(self, values: list[model.Ref | Value]) -> CellColumns:
        return encode_values(values, self.texts.__getitem__, self.entities.__getitem__)

    def _qualify(self, owners: NDArray[np.int32], keys: NDArray[np.int32], cells: CellColumns) -> None:
        self.qualifiers.append({"sid": owners, "key": keys, **cells})

    def _numbers(self, index: defaultdict[str, int], names: Sequence[str]) -> NDArray[np.int32]:
        """The numbers of texts or of entities; new ones get theirs in the order they come."""
        # Each is looked for and put in at once, by its place among all; then places without one are
        # closed up.
        others = self.spelled_texts if index is self.texts else 0
        begin, end = others + len(index), others + len(index) + len(names)
        numbers = np.fromiter(map(index.setdefault, names, range(begin, end)), np.int32, len(names))
        known = others + len(index)
        if known > begin:
            index.default_factory = count(known).__next__
        if begin < known < end:
            fresh = numbers == np.arange(begin, end)
            later = numbers >= begin
            numbers[later] = (begin - 1 + np.cumsum(fresh, dtype=np.int32))[numbers[later] - begin]
            index.update(zip(compress(names, fresh), range(begin, known), strict=True))
        return numbers

    def _text_numbers(self, texts: Sequence[str]) -> NDArray[np.int32]:
        """The numbers of texts that are no predicates. Of those that are bytes, each is taken once;
        where they rarely come again, they are not looked for among the others, which the pool does.
        """
        if texts is self._named[0]:
            return self._named[1]
        found = texts.sorted() if isinstance(texts, model.LazyTexts) else None
        if found is None:
            return self._numbers(self.texts, texts)
        assert isinstance(texts, model.LazyTexts)
        (data, begins, lengths), (order, fresh) = texts.utf8(), found
        once = order[fresh]
        bare, sizes = put_together(data, begins[once], lengths[once])[:-SPARE], lengths[once]
        if _OFTEN * len(once) <= len(order):
            whole, ends = bare.tobytes(), np.cumsum(sizes)
            pairs = zip((ends - sizes).tolist(), ends.tolist(), strict=True)
            each = self._numbers(self.texts, [whole[low:high].decode() for low, high in pairs])
        else:
            first = len(self.texts) + self.spelled_texts
            self.spelled.append((first, bare, sizes))
            self.spelled_texts += len(once)
            self.texts.default_factory = count(first + len(once)).__next__
            each = np.arange(first, first + len(once), dtype=np.int32)
        numbers = np.empty(len(order), np.int32)
        numbers[order] = each[np.cumsum(fresh) - 1]
        return numbers

    def _subjects(self, ids: Sequence[str]) -> NDArray[np.int32]:
        """The numbers of entities; those of one tuple, the rows of a chunk, are looked up once."""
        if ids is not self._numbered[0]:
            numbers = self._numbers(self.entities, ids)
            if not isinstance(ids, tuple):
                return numbers
            self._numbered = ids, numbers
        return self._numbered[1]

    def _add_batch(self, batch: model.Batch, source: int) -> None:
        """Take the statements of a batch, which come from this source."""
        n = len(batch)
        self._flush()
        sid = np.arange(self.statements, self.statements + n, dtype=np.int32)
        self.statements += n
        one = isinstance(batch.predicates, str)
        chunk: Chunk = {
            "sid": sid,
            "p": np.full(n, self.texts[batch.predicates], np.int32)  # type: ignore[index]
            if one
            else self._numbers(self.texts, batch.predicates),
            "s": self._subjects(batch.subjects),
            "row": np.asarray(batch.rows, np.int32),
            "src": np.full(n, source, np.int32),
        }
        raw = np.full(n, -1, np.int32)
        if isinstance(batch.raws, model.Raws):
            raw[batch.raws.at] = self._text_numbers(batch.raws.texts)
        elif batch.raws is not None:
            differs = np.fromiter(map(is_not, batch.raws, repeat(None)), bool, n)
            raw[differs] = self._numbers(self.texts, [text for text in batch.raws if text is not None])
        objects = batch.objects
        if isinstance(objects, model.Values) or (isinstance(objects, model.Texts) and not objects.collapsed):
            for i, value in enumerate(objects.texts if isinstance(objects, model.Texts) else objects.values):
                if isinstance(value, str) and raw[i] < 0 and collapse(value) != value:
                    raw[i] = self.texts[value]
        if isinstance(objects, model.Ids):
            self.relations.append(chunk | {"o": self._numbers(self.entities, objects.ids)})
        else:
            cells = encode_column(objects, self._text_numbers, self.texts.__getitem__, self.entities.__getitem__)
            if isinstance(objects, model.Values) and (cells["kind"] == 3).any():
                self._split(chunk, raw, cells)
            else:
                self.attributes.append(chunk | {"raw": raw} | cells)
        for key, values in batch.qualifiers:
            given = [i for i, value in enumerate(values) if value is not None]
            if given:
                cells = self._encode([value for value in values if value is not None])
                self._qualify(sid[given], np.full(len(given), self.texts[key], np.int32), cells)

    def _split(self, chunk: Chunk, raw: NDArray[np.int32], cells: CellColumns) -> None:
        """A mixed column: objects that are entities are relations, the others attributes."""
        entity = cells["kind"] == 3
        relations = {name: column[entity] for name, column in chunk.items()}
        self.relations.append(relations | {"o": cells["ref"][entity]})
        rest = {name: column[~entity] for name, column in chunk.items()}
        rest |= {"raw": raw[~entity]} | {name: cells[name][~entity] for name, _ in PARTS}
        self.attributes.append(rest)


def gather(chunks: list[Chunk], names: Sequence[tuple[str, Any]]) -> Chunk:
    """Join chunks into one column a name; empty columns of the right type where there are no
    chunks.
    """
    return {name: np.concatenate([chunk[name] for chunk in chunks]) if chunks else np.empty(0, dtype) for name, dtype in names}


#: Single statements are gathered in lists, and turned into chunks when there are this many.
_FLUSH = 1 << 16
#: Numbers of statements, texts and entities are 32 bits wide.
_MOST = 2**31 - 1


class Builder(Chunks):
    """Gathers items. `begin` names the source of what follows; `add` takes items;
    `layout.lay_out(builder)` gives the columns.

    It begins with what `previous` holds, but for what only the sources `without` say. Such a source
    keeps its place among the others, which is empty until something comes from it again. With a mask
    `stays` over the statements of `previous` only these stay, and all entities, or only those that
    are not `unused` then.
    """

    def __init__(
        self,
        previous: Snapshot | None = None,
        without: Iterable[str] = (),
        stays: NDArray[np.bool_] | None = None,
        *,
        unused: bool = True,
    ) -> None:
        super().__init__()
        #: The first name of each entity that has one, by which a second one is told.
        self.names: dict[int, str] = {}
        #: By source (-1: nobody knows which), what it declares of each entity: name (None: its id),
        #: kind and row (-1: none); and what the snapshot that this begins with has of that.
        self.declared: dict[int, dict[int, tuple[str | None, int, int]]] = {}
        self.seeded: Declared | None = None
        #: Rows of tables that were new when they came, by source: entities, names, rows.
        self.rows: list[tuple[int, NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]] = []
        self.sources: list[model.Source] = []
        self.source_numbers: dict[str, int] = {}
        self.warnings: list[str] = []
        #: Memberships one by one, and many at once, shape (memberships, 4): entity, concept,
        #: source, row.
        self.members: list[tuple[int, int, int, int]] = []
        self.many_members: list[NDArray[np.int64]] = []
        self.subclasses: list[tuple[int, int, int, int]] = []
        #: Sources whose content was taken away, and to which nothing was added since.
        self.emptied: set[int] = set()
        #: The names of the sources that were begun, and the declarations that were read with them.
        self.begun: set[str] = set()
        self.single_valued: dict[str, Any] = {}
        self._source = model.Source("")
        self._source_at, self._nobody = -1, True
        self._more_of: set[str] = set()
        #: Names of rows that are not among `names` yet.
        self._called: list[tuple[NDArray[np.int32], Sequence[str]]] = []
        #: Which entities are among `rows`; how many the snapshot that this begins with has.
        self._is_row, self._seeded = np.empty(0, bool), 0
        if previous is not None:
            previous.seed(self, without, stays, unused=unused)
            self._seeded = len(self.entities)

    def added_to(self, names: Iterable[str]) -> None:
        """What comes from these sources is added to what is there of them, and takes the place of
        what is known of them.
        """
        self._more_of.update(names)

    def begin(self, source: model.Source) -> None:
        """Everything that follows comes from this source. A source of the same name is the same
        source; what comes from one without a name declares entities for nobody.

        It becomes a source of the graph with the first item that it gives.
        """
        self._source, self._source_at, self._nobody = source, -1, not source.name
        self.begun.add(source.name)

    def _current(self) -> int:
        if self._source_at < 0:
            self._source_at = self._source_number(self._source)
        return self._source_at

    def _source_number(self, source: model.Source) -> int:
        number = self.source_numbers.setdefault(source.name, len(self.sources))
        if number == len(self.sources):
            self.sources.append(source)
        elif number in self.emptied:
            self.emptied.discard(number)
            self.sources[number] = source
        elif source.name in self._more_of:
            if source.format:
                self.sources[number] = source
        else:
            check_source(self.sources[number], source)
            # One that was added to holds more than what is read again.
            if (source.location or source.content or source.terms) and ALSO not in self.sources[number].content:
                self.sources[number] = source
        return number

    def add(self, items: Iterable[model.Item]) -> None:
        """Take all items of a loader; raises what the loader raises."""
        with fewer_collections():
            self._add(items)

    def _add(self, items: Iterable[model.Item]) -> None:
        pending = self._pending
        for item in items:
            if isinstance(item, model.Statement):
                pending.append((self.statements, self._current(), item))
                self.statements += 1
                if len(pending) >= _FLUSH:
                    self._flush()
            elif isinstance(item, model.MANY):
                self._add_many(item)
            elif isinstance(item, model.Entity):
                self._declare(item)
            elif isinstance(item, model.Member):
                self.members.append((self.entities[item.entity], self._concept(item.concept), self._current(), item.row))
            elif isinstance(item, model.Subclass):
                self.subclasses.append((self._concept(item.concept), self._concept(item.parent), self._current(), item.row))
            elif isinstance(item, model.Sourced):
                self._add_sourced(item)
            elif isinstance(item, model.Source):
                self._source_number(item)
            else:
                raise LoadError(f"{item!r} is no item of a condition graph")

    def finish(self) -> None:
        """Call when all items were added; raises `LoadError` for more than a graph can number."""
        self._flush()
        for what, size in (
            ("statements", self.statements),
            ("texts", len(self.texts) + self.spelled_texts),
            ("entities", len(self.entities)),
        ):
            if size >= _MOST:
                raise LoadError(f"a graph holds fewer than {_MOST:,} {what}, and this one has {size:,}")

    # -- entities ----------------------------------------------------------------------------------

    def _concept(self, ident: str) -> int:
        return self.entities[ident]

    def _declare(self, entity: model.Entity) -> None:
        # Without a source of its own, and in no named one, it is nobody's.
        source = UNKNOWN if self._nobody and entity.kind is not model.EntityKind.ROW else self._current()
        mine = self.declared.get(source)
        if mine is None:
            mine = self.declared[source] = {}
        number = self.entities[entity.id]
        name = None if entity.name == entity.id else entity.name
        if name is not None:
            for numbers, names in self._called:
                self.names.update(zip(numbers.tolist(), names, strict=True))
            self._called.clear()
            known = self.names.setdefault(number, name)
            if known != name:
                self.warnings.append(f"entity {entity.id!r} is called {known!r} and {name!r}; the first name stays")
        row = entity.row if entity.kind is model.EntityKind.ROW else -1
        before = mine.get(number)
        if before is None:
            mine[number] = name, int(entity.kind), row
        else:
            # Concepts win over rows, and rows over others: 1, 2, 0.
            kind = (
                model.EntityKind.CONCEPT
                if model.EntityKind.CONCEPT in (before[1], entity.kind)
                else max(before[1], int(entity.kind))
            )
            mine[number] = name if before[0] is None else before[0], int(kind), row if before[2] < 0 else before[2]

    def _declare_rows(self, rows: model.Rows) -> None:
        """Rows of a table. Those that are known by no one yet need not be looked at one by one."""
        before = len(self.entities)
        numbers = self._subjects(rows.ids)
        if len(self.entities) - before != len(rows) and not self._undeclared(numbers, before):
            for entity in rows.entities():
                self._declare(entity)
            return
        source = self._current()
        self.declared.setdefault(source, {})
        own = np.zeros(len(rows), bool)
        if rows.names is not rows.ids:
            own = np.fromiter(map(ne, rows.ids, rows.names), bool, len(rows))
        called = rows.names if own.all() else list(compress(rows.names, own))
        names = np.full(len(rows), -1, np.int32)
        names[own] = numbered = self._text_numbers(called)
        self._named = called, numbered
        self._called.append((numbers[own], list(called)))
        self.rows.append((source, numbers, names, np.asarray(rows.rows, np.int32)))
        if len(self._is_row) < len(self.entities):
            self._is_row = np.concatenate([self._is_row, np.zeros(len(self.entities), bool)])
        self._is_row[numbers] = True

    def _undeclared(self, numbers: NDArray[np.int32], before: int) -> bool:
        """Whether entities are all different, and what is known of them is that they are mentioned;
        `before` entities were known.
        """
        old = numbers[numbers < before]
        if (old < self._seeded).any() or self._is_row[old[old < len(self._is_row)]].any():
            return False
        if len(different(numbers)) < len(numbers):
            return False
        mentioned = set(old.tolist())
        return all(mine.keys().isdisjoint(mentioned) for mine in self.declared.values())

    # -- items side by side, and with sources of their own -----------------------------------------

    def _add_many(self, items: model.Many) -> None:
        if not len(items):
            return
        outer, nobody = self._source_at, self._nobody
        if items.source:
            self._source_at, self._nobody = self._source_number(model.Source(items.source)), False
        if isinstance(items, model.Batch):
            self._add_batch(items, self._current())
        elif isinstance(items, model.Rows):
            self._declare_rows(items)
        else:
            found = np.empty((len(items), 4), np.int64)
            found[:, 0], found[:, 1] = self._subjects(items.entities), self._concept(items.concept)
            found[:, 2], found[:, 3] = self._current(), items.rows
            self.many_members.append(found)
        if items.source:
            self._source_at, self._nobody = outer, nobody

    def _add_sourced(self, sourced: model.Sourced) -> None:
        item = sourced.item
        numbers = [(self._source_number(model.Source(name)), row) for name, row in sourced.sources]
        if not numbers:
            nobody, self._nobody = self._nobody, self._nobody or isinstance(item, model.Entity)
            self._add((item,))
            self._nobody = nobody
            return
        outer, nobody = self._source_at, self._nobody
        self._nobody = False
        if isinstance(item, model.Statement):
            self._source_at, row = numbers[0]
            self._more.extend((self.statements, source, at) for source, at in numbers[1:])
            self._add((item if item.row == row else replace(item, row=row),))
        else:
            for self._source_at, row in numbers:
                self._add((item if item.row == row else replace(item, row=row),))
        self._source_at, self._nobody = outer, nobody
