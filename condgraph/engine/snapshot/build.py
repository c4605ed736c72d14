"""Collect the items of loaders as columns in load order: the first half of building a snapshot."""

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
from condgraph.engine.origins import ADDITION, check_source
from condgraph.engine.snapshot.cells import PARTS, CellColumns, encode_column, encode_values
from condgraph.engine.snapshot.container import SPARE, put_together
from condgraph.engine.values import Kind, Value, collapse

if TYPE_CHECKING:
    from condgraph.engine.snapshot.layout import Columns
    from condgraph.engine.snapshot.snapshot import Snapshot


# -- declarations ------------------------------------------------------------------------------------
# Which source declared which entity, and how, so that a source can be removed without losing the
# declarations of others.
#
# A declaration is one row: the entity, the source (-1: unknown), the text of its name (-1: its id),
# its kind, and its row in a table (-1: none). A source declares an entity once. A declaration that is
# implied by the source's own statements and memberships is not stored.
#
# Most graphs have one source, or one large and several small ones. So a snapshot stores declarations
# only of entities for which they differ from what the first source alone would have declared
# (`default`); the source `NO_ONE` marks an entity that is in the default, but that nobody declares.


#: The source of declarations of unknown origin, and the mark for no declaration.
UNKNOWN, NO_ONE = -1, -2
DECLARED: Final = ("e", "src", "name", "kind", "row")


class Declared(NamedTuple):
    """Declarations as parallel int32 columns, sorted by entity and source."""

    e: NDArray[Any]
    src: NDArray[Any]
    name: NDArray[Any]
    kind: NDArray[Any]
    row: NDArray[Any]

    def take(self, at: NDArray[Any] | slice) -> Declared:
        """Return the declarations at some positions, or where a mask is set."""
        return Declared(*(column[at] for column in self))

    def firsts(self, column: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the entities with a non-negative number in a column, and the position of the first of each."""
        positions = np.flatnonzero(column >= 0)
        entities = self.e[positions]
        is_first = changed(entities)
        return entities[is_first], positions[is_first]


def joined(parts: list[Declared]) -> Declared:
    """Concatenate declarations; several by one source of one entity are merged: its first name, its strongest kind,
    its first row.
    """
    result = Declared(*(np.concatenate([np.empty(0, np.int32), *columns]) for columns in zip(*parts, strict=True)))
    result = result.take(in_order([result.e, result.src]))
    is_first = changed(result.e, result.src)
    if is_first.all():
        return result
    group = np.cumsum(is_first) - 1
    merged = result.take(is_first)
    name, row, kind = (np.full(len(merged.e), low, np.int32) for low in (-1, -1, EntityKind.ENTITY))
    for target, column in ((name, result.name), (row, result.row)):
        positions = np.flatnonzero(column >= 0)[::-1]
        target[group[positions]] = column[positions]  # the first one is written last
    for strongest in (EntityKind.ROW, EntityKind.CONCEPT):
        kind[group[result.kind == strongest]] = strongest
    return merged._replace(name=name, kind=kind, row=row)


def gathered(builder: Builder) -> Declared:
    """Return all declarations of a builder, by its own numbers; their names are added to its texts."""
    parts = [] if builder.seeded is None else [builder.seeded]
    for source, e, names, rows in builder.rows:
        # Before later declarations by the same source.
        parts.append(Declared(e, np.full(len(e), source, np.int32), names, np.full(len(e), int(EntityKind.ROW), np.int32), rows))
    for source, entities in builder.declared.items():
        if entities:
            texts = builder.texts
            said = [(-1 if name is None else texts[name], kind, row) for name, kind, row in entities.values()]
            e = np.fromiter(entities, np.int32, len(entities))
            parts.append(Declared(e, np.full(len(e), source, np.int32), *np.array(said, np.int32).T))
    return joined(parts) if parts else Declared(*(np.empty(0, np.int32) for _ in DECLARED))


def places_of(columns: Any, statements: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return every source of some statements, as the statement's position and the source."""
    owners = columns["prov.stmt"]
    low, high = np.searchsorted(owners, statements), np.searchsorted(owners, statements, side="right")
    counts = high - low
    further = (
        np.repeat(low - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts) + np.arange(counts.sum()) if len(counts) else counts
    )
    all_positions = np.arange(len(statements))
    return np.concatenate([all_positions, np.repeat(all_positions, counts)]), np.concatenate(
        [columns["st.src"][statements], columns["prov.src"][further.astype(np.int64)]]
    )


def _mentioned(
    columns: Any, wanted: NDArray[np.bool_], perhaps: NDArray[np.bool_], sources: int
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return which sources mention the wanted entities at all, and which use those in `perhaps` as concepts, as
    sorted keys: entity × number of sources + source.
    """
    relations = len(columns["rel.s"])
    mentions: list[NDArray[Any]] = []
    concepts: list[NDArray[Any]] = []
    for name, first in (("rel.s", 0), ("rel.o", 0), ("att.s", relations), ("q.ref", -1)):
        entities = columns[name]
        kind, owner = (columns["q.kind"], columns["q.owner"]) if first < 0 else (None, None)
        for chunk in slices(len(entities)) if wanted.any() else ():
            numbers = np.array(entities[chunk])
            if kind is not None:
                numbers[kind[chunk] != Kind.ENTITY] = -1
            chosen = np.flatnonzero((numbers >= 0) & wanted[numbers])
            owners = chosen + (chunk.start + first) if owner is None else owner[chunk][chosen]
            position, source = places_of(columns, owners)
            mentions.append(different(numbers[chosen][position].astype(np.int64) * sources + source))
    for prefix, ends in (("mem", "ec"), ("sub", "cp")):
        for end in ends:
            entities = columns[f"{prefix}.{end}"]
            target, mask = (mentions, wanted) if end == "e" else (concepts, perhaps)
            chosen = mask[entities] if len(mask) else np.zeros(0, bool)
            target.append(entities[chosen].astype(np.int64) * sources + columns[f"{prefix}.src"][chosen].astype(np.int64))
    concept = different(np.concatenate(concepts))
    return different(np.concatenate([*mentions, concept])), concept


def default(columns: Any) -> Declared:
    """Return the declarations as if the first source were the only one."""
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
    """Return the declarations without those implied by the sources' own statements and memberships."""
    bare = (declared.name < 0) | (declared.kind != EntityKind.CONCEPT)
    wanted, perhaps = np.zeros((2, len(columns["ent.id"])), bool)
    perhaps[declared.e[bare & (declared.src >= 0)]] = True
    if not perhaps.any():
        return declared
    # Rows are stored with their position, so mentions do not matter.
    wanted[declared.e[bare & (declared.src >= 0) & (declared.row < 0)]] = True
    width = max(sources, 1)
    mentioned, concept = _mentioned(columns, wanted, perhaps, width)
    key = declared.e.astype(np.int64) * width + declared.src
    has_source = declared.src >= 0
    as_concept = has_source & np.isin(key, concept)
    kind = np.where(as_concept, int(EntityKind.CONCEPT), declared.kind).astype(np.int32)
    implied = np.where(kind == EntityKind.CONCEPT, as_concept, (kind == EntityKind.ENTITY) & has_source & np.isin(key, mentioned))
    return declared._replace(kind=kind).take(~(implied & (declared.name < 0) & (declared.row < 0)))


def lay_declared(columns: Columns, declared: Declared) -> None:
    """Store the declarations that differ from the default, by final numbers."""
    sources = len(columns["src.name"])
    columns["dec.known"] = np.ones(1, np.int32)
    if sources == 1 and (declared.src == 0).all():
        declared = declared.take(declared.e[:0])
    else:
        declared = _unlike(canonical(columns, declared, sources), default(columns), len(columns["ent.id"]))
    for name, column in zip(DECLARED, declared, strict=True):
        columns[f"dec.{name}"] = column.astype(np.int32)


def _unlike(declared: Declared, usual: Declared, entities: int) -> Declared:
    """Return the declarations of entities for which they differ from the default; `NO_ONE` for those without any."""
    counts = np.bincount(declared.e, minlength=entities)
    first = np.searchsorted(declared.e, usual.e)
    same = counts[usual.e] == 1
    positions = first[same]
    for actual, expected in zip(declared[1:], usual[1:], strict=True):
        same[same] &= actual[positions] == expected[same]
        positions = first[same]
    differs = counts > 0
    differs[usual.e[same]] = False
    undeclared = usual.take(counts[usual.e] == 0)
    parts = [declared.take(differs[declared.e]), undeclared._replace(src=np.full(len(undeclared.e), NO_ONE, np.int32))]
    return joined(parts)


class _Arrays:
    """The arrays of a snapshot under the interface of columns."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._get = snapshot.arrays.get

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._get(name)


def kept(snapshot: Snapshot) -> Declared:
    """Return the stored declarations of a snapshot: those that differ from `default`."""
    return Declared(*(snapshot.arrays.get(f"dec.{name}") for name in DECLARED))


def declared(snapshot: Snapshot) -> Declared:
    """Return all declarations of a snapshot. For a graph of several sources in the format of an earlier version only
    those of table rows have a known source.
    """
    arrays, usual, stored = _Arrays(snapshot), default(_Arrays(snapshot)), kept(snapshot)
    sources = len(arrays["src.name"])
    if not len(arrays["dec.known"]) and sources != 1:
        places = arrays["ent.source"]
        row = places[usual.e] if len(places) else np.full(len(usual.e), UNKNOWN, np.int32)
        return usual._replace(src=np.where(usual.row >= 0, row, UNKNOWN).astype(np.int32))
    if not len(stored.e):
        return usual
    is_stored = np.zeros(snapshot.entities, bool)
    is_stored[stored.e] = True
    return joined([usual.take(~is_stored[usual.e]), stored.take(stored.src != NO_ONE)])


def rows_of_several(snapshot: Snapshot, fresh: Collection[int]) -> list[str]:
    """Return warnings about entities that are rows of several sources, at least one of them in `fresh`."""
    rows = kept(snapshot)
    rows = rows.take((rows.kind == EntityKind.ROW) & (rows.src >= 0))
    rows = joined([rows])
    repeated = np.flatnonzero(rows.e[1:] == rows.e[:-1])
    first, second = rows.src[repeated], rows.src[repeated + 1]
    warnings = []
    for source, other_source in sorted(set(zip(first.tolist(), second.tolist(), strict=True))):
        if source in fresh or other_source in fresh:
            entities = rows.e[repeated[(first == source) & (second == other_source)]]
            names = [snapshot.source_of(number).name for number in (source, other_source)]
            what = numbered(len(entities), "entity is a row", "entities are rows")
            warnings.append(f"{what} of {names[0]!r} and of {names[1]!r}, by one id: {snapshot.ident(int(entities[0]))!r}")
    return warnings


# -- as texts, for servers -------------------------------------------------------------------------


def texts_of(snapshot: Snapshot) -> dict[int, str]:
    """Return the declarations to store on a server: by entity, `[[source, name, kind, row], ...]` as JSON (null:
    source unknown, name is the id), where `read_entity` needs them.
    """
    sources = len(snapshot.arrays.get("src.name"))
    if sources == 1 and not len(kept(snapshot).e):
        return {}
    stored = kept(snapshot)
    plain = default(_Arrays(snapshot))
    has_stored = np.zeros(snapshot.entities, bool)
    has_stored[stored.e] = True
    plain = plain.take((plain.name < 0) & ~has_stored[plain.e])
    names = [snapshot.source_of(number).name for number in range(sources)]
    rows: dict[int, list[Any]] = {}
    for item in (stored, plain):
        for e, source, name, kind, row in zip(*(column.tolist() for column in item), strict=True):
            entries = rows.setdefault(e, [])
            if source != NO_ONE:
                entries.append([None if source < 0 else names[source], None if name < 0 else snapshot.texts[name], kind, row])
    return {e: json.dumps(entries, ensure_ascii=False) for e, entries in rows.items()}


def read_entity(entity: Entity, place: str | None, text: str | None, sources: Sequence[str], *, known: bool) -> Iterator[Sourced]:
    """Yield the declarations of an entity on a server. `place` is the source that it is a row of, `text` its entry in
    `texts_of`; `known`: the graph stores who declared what.
    """
    if text is not None:
        for source, name, kind, row in json.loads(text):
            declared_entity = Entity(entity.id, entity.id if name is None else name, EntityKind(kind), max(row, 0))
            yield Sourced(declared_entity, () if source is None else ((source, declared_entity.row),))
    elif entity.kind is EntityKind.ROW and place is not None:
        yield Sourced(entity, ((place, entity.row),))
    elif len(sources) == 1 or (known and entity.name != entity.id and sources):
        yield Sourced(entity, ((sources[0], entity.row),))
    elif not known or not sources:
        yield Sourced(entity, ())


# -- the builder -------------------------------------------------------------------------------------


#: Thresholds of the garbage collector: objects, and collections of each generation.
_THRESHOLDS: Final = (200_000, 50, 100)
_lock = Lock()
_before: list[tuple[int, int, int]] = []


@contextmanager
def fewer_collections() -> Iterator[None]:
    """Collect garbage less often; the previous thresholds are restored when the last of several loads ends."""
    with _lock:
        _before.append(gc.get_threshold())
        if gc.get_threshold()[0]:  # whoever switched it off means it
            gc.set_threshold(*_THRESHOLDS)
    try:
        yield
    finally:
        with _lock:
            # The first in the list are the original thresholds; loads may end in any order.
            if len(_before) == 1:
                gc.set_threshold(*_before[0])
                _before.clear()
            else:
                _before.pop()


# -- columns under construction --------------------------------------------------------------------
# Statements as columns during a load: chunks of NumPy arrays in load order, from single statements and
# from batches.
#
# Texts and entities are numbered in order of appearance. Every statement has a number too (`sid`),
# which qualifiers and sources refer to.


#: Texts of a column that repeat this often, on average, are looked up among the known ones.
_OFTEN: Final = 16

#: Columns by name, of one length.
Chunk = dict[str, NDArray[Any]]


class Chunks:
    """The statements collected so far."""

    def __init__(self) -> None:
        self.texts: defaultdict[str, int] = defaultdict(count().__next__)
        #: Further texts, as concatenated bytes with their lengths, by the number of the first; they may
        #: also be in `texts`. And their count.
        self.spelled: list[tuple[int, NDArray[np.uint8], NDArray[np.int64]]] = []
        self.spelled_texts = 0
        self.entities: defaultdict[str, int] = defaultdict(count().__next__)
        self.statements = 0
        self.relations: list[Chunk] = []
        self.attributes: list[Chunk] = []
        self.qualifiers: list[Chunk] = []
        #: Further places of statements: the statement, the source, the row, the raw text (-1: none).
        self.provenance: list[tuple[int, int, int, int]] = []
        #: The same for single statements, without raw texts, and these statements with their number
        #: and source, until they are turned into chunks.
        self._added: list[tuple[int, int, int]] = []
        self._pending: list[tuple[int, int, model.Statement]] = []
        #: The last sequence of subjects, and their numbers.
        self._numbered: tuple[Sequence[str], NDArray[np.int32]] = ((), np.empty(0, np.int32))
        #: The last sequence of row names, which may also be the texts of a column, and their numbers.
        self._named: tuple[Sequence[str], NDArray[np.int32]] = ((), np.empty(0, np.int32))

    def _flush(self) -> None:
        """Turn the collected single statements into chunks."""
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
            object_ = statement.object
            if isinstance(object_, model.Ref):
                relations.append(
                    (sid, texts[statement.predicate], entities[statement.subject], entities[object_.id], statement.row, source)
                )
            else:
                raw = -1 if statement.raw is None else texts[statement.raw]
                if isinstance(object_, str) and (plain := collapse(object_)) != object_:
                    # Texts are compared with collapsed white space; the original is kept as raw text.
                    raw, object_ = (texts[object_] if raw < 0 else raw), plain
                attributes.append((sid, texts[statement.predicate], entities[statement.subject], raw, statement.row, source))
                objects.append(object_)
                if raw >= 0 and self._added:
                    raws[sid] = raw
            for key, value in statement.qualifiers:
                owners.append(sid)
                keys.append(texts[key])
                values.append(value)
        pending.clear()
        self.provenance.extend((*place, raws.get(place[0], -1)) for place in self._added)
        self._added.clear()
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
        """Return the numbers of texts or entities; new ones are numbered in order of appearance."""
        # One pass looks each up or inserts it with its position as a provisional number; the gaps in
        # these numbers are closed afterwards.
        spelled = self.spelled_texts if index is self.texts else 0
        begin, end = spelled + len(index), spelled + len(index) + len(names)
        numbers = np.fromiter(map(index.setdefault, names, range(begin, end)), np.int32, len(names))
        next_number = spelled + len(index)
        if next_number > begin:
            index.default_factory = count(next_number).__next__
        if begin < next_number < end:
            is_new = numbers == np.arange(begin, end)
            provisional = numbers >= begin
            numbers[provisional] = (begin - 1 + np.cumsum(is_new, dtype=np.int32))[numbers[provisional] - begin]
            index.update(zip(compress(names, is_new), range(begin, next_number), strict=True))
        return numbers

    def _text_numbers(self, texts: Sequence[str]) -> NDArray[np.int32]:
        """Return the numbers of texts other than predicates. Of texts given as bytes, each is processed once; if they
        rarely repeat, the lookup among known texts is left to the pool.
        """
        if texts is self._named[0]:
            return self._named[1]
        sorted_ = texts.sorted() if isinstance(texts, model.LazyTexts) else None
        if sorted_ is None:
            return self._numbers(self.texts, texts)
        assert isinstance(texts, model.LazyTexts)
        (data, begins, lengths), (order, is_first) = texts.utf8(), sorted_
        distinct = order[is_first]
        joined_bytes, sizes = put_together(data, begins[distinct], lengths[distinct])[:-SPARE], lengths[distinct]
        if _OFTEN * len(distinct) <= len(order):
            all_bytes, ends = joined_bytes.tobytes(), np.cumsum(sizes)
            pairs = zip((ends - sizes).tolist(), ends.tolist(), strict=True)
            distinct_numbers = self._numbers(self.texts, [all_bytes[low:high].decode() for low, high in pairs])
        else:
            first = len(self.texts) + self.spelled_texts
            self.spelled.append((first, joined_bytes, sizes))
            self.spelled_texts += len(distinct)
            self.texts.default_factory = count(first + len(distinct)).__next__
            distinct_numbers = np.arange(first, first + len(distinct), dtype=np.int32)
        numbers = np.empty(len(order), np.int32)
        numbers[order] = distinct_numbers[np.cumsum(is_first) - 1]
        return numbers

    def _subjects(self, ids: Sequence[str]) -> NDArray[np.int32]:
        """Return the numbers of entities; the same tuple (the rows of a chunk) is looked up only once."""
        if ids is not self._numbered[0]:
            numbers = self._numbers(self.entities, ids)
            if not isinstance(ids, tuple):
                return numbers
            self._numbered = ids, numbers
        return self._numbered[1]

    def _add_batch(self, batch: model.Batch, source: int) -> None:
        """Add the statements of a batch from this source."""
        size = len(batch)
        self._flush()
        sid = np.arange(self.statements, self.statements + size, dtype=np.int32)
        self.statements += size
        one_predicate = isinstance(batch.predicates, str)
        chunk: Chunk = {
            "sid": sid,
            "p": np.full(size, self.texts[batch.predicates], np.int32)  # type: ignore[index]
            if one_predicate
            else self._numbers(self.texts, batch.predicates),
            "s": self._subjects(batch.subjects),
            "row": np.asarray(batch.rows, np.int32),
            "src": np.full(size, source, np.int32),
        }
        raw = np.full(size, -1, np.int32)
        if isinstance(batch.raws, model.Raws):
            raw[batch.raws.at] = self._text_numbers(batch.raws.texts)
        elif batch.raws is not None:
            differs = np.fromiter(map(is_not, batch.raws, repeat(None)), bool, size)
            raw[differs] = self._numbers(self.texts, [text for text in batch.raws if text is not None])
        objects = batch.objects
        if isinstance(objects, model.Values) or (isinstance(objects, model.Texts) and not objects.collapsed):
            for position, value in enumerate(objects.texts if isinstance(objects, model.Texts) else objects.values):
                if isinstance(value, str) and raw[position] < 0 and collapse(value) != value:
                    raw[position] = self.texts[value]
        if isinstance(objects, model.Ids):
            self.relations.append(chunk | {"o": self._numbers(self.entities, objects.ids)})
        else:
            cells = encode_column(objects, self._text_numbers, self.texts.__getitem__, self.entities.__getitem__)
            if isinstance(objects, model.Values) and (cells["kind"] == 3).any():
                self._split(chunk, raw, cells)
            else:
                self.attributes.append(chunk | {"raw": raw} | cells)
        for key, values in batch.qualifiers:
            rows = [position for position, value in enumerate(values) if value is not None]
            if rows:
                cells = self._encode([value for value in values if value is not None])
                self._qualify(sid[rows], np.full(len(rows), self.texts[key], np.int32), cells)

    def _split(self, chunk: Chunk, raw: NDArray[np.int32], cells: CellColumns) -> None:
        """Split a mixed column: objects that are entities are relations, the others attributes."""
        entity = cells["kind"] == 3
        relations = {name: column[entity] for name, column in chunk.items()}
        self.relations.append(relations | {"o": cells["ref"][entity]})
        attributes = {name: column[~entity] for name, column in chunk.items()}
        attributes |= {"raw": raw[~entity]} | {name: cells[name][~entity] for name, _ in PARTS}
        self.attributes.append(attributes)


def gather(chunks: list[Chunk], names: Sequence[tuple[str, Any]]) -> Chunk:
    """Join chunks to one column for each name; without chunks, empty columns of the right type."""
    return {name: np.concatenate([chunk[name] for chunk in chunks]) if chunks else np.empty(0, dtype) for name, dtype in names}


#: Single statements are collected in lists, and turned into chunks of this size.
_FLUSH = 1 << 16
#: Numbers of statements, texts and entities are 32 bits wide.
_MAX_NUMBER = 2**31 - 1


class Builder(Chunks):
    """Collects items. `begin` names the source of the following items; `add` takes items; `layout.lay_out(builder)`
    returns the columns.

    It starts with the content of `previous`, except for what only the sources `without` state. Such a source keeps
    its position and is empty until something is added to it. With a mask `stays` over the statements of `previous`
    only these are kept, with all entities, or without those that become `unused`.
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
        #: The first name of each entity that has one, to detect a second.
        self.names: dict[int, str] = {}
        #: By source (-1: unknown), its declaration of each entity: name (None: its id), kind and row
        #: (-1: none); and the declarations of the previous snapshot.
        self.declared: dict[int, dict[int, tuple[str | None, int, int]]] = {}
        self.seeded: Declared | None = None
        #: Rows of tables whose entities were new, by source: entities, names, rows.
        self.rows: list[tuple[int, NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]] = []
        self.sources: list[model.Source] = []
        self.source_numbers: dict[str, int] = {}
        self.warnings: list[str] = []
        #: Memberships one by one, and many at once, shape (memberships, 4): entity, concept,
        #: source, row.
        self.members: list[tuple[int, int, int, int]] = []
        self.many_members: list[NDArray[np.int64]] = []
        self.subclasses: list[tuple[int, int, int, int]] = []
        #: Sources whose content was removed, and to which nothing has been added since.
        self.emptied: set[int] = set()
        #: The names of the sources that were begun.
        self.begun: set[str] = set()
        self.single_valued: dict[str, Any] = {}
        self._source = model.Source("")
        self._source_at, self._nobody = -1, True
        self._more_of: set[str] = set()
        #: Names of rows that are not among `names` yet.
        self._called: list[tuple[NDArray[np.int32], Sequence[str]]] = []
        #: Which entities are among `rows`; the number of entities of the previous snapshot.
        self._is_row, self._seeded = np.empty(0, bool), 0
        if previous is not None:
            previous.seed(self, without, stays, unused=unused)
            self._seeded = len(self.entities)

    def added_to(self, names: Iterable[str]) -> None:
        """Mark sources to which the following items are added; their metadata is replaced."""
        self._more_of.update(names)

    def begin(self, source: model.Source) -> None:
        """Set the source of all following items. Sources with the same name are one source; items from a source
        without a name declare entities without a source.

        It becomes a source of the graph with its first item.
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
            # A source that was added to contains more than the one read now.
            if (source.location or source.content or source.terms) and ADDITION not in self.sources[number].content:
                self.sources[number] = source
        return number

    def add(self, items: Iterable[model.Item]) -> None:
        """Add all items of a loader; exceptions of the loader propagate."""
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
                self._add_columns(item)
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
                raise LoadError(f"{item!r} is not an item of a condition graph")

    def finish(self) -> None:
        """Complete the columns after all items were added; raise `LoadError` if there are too many to number."""
        self._flush()
        for noun, size in (
            ("statements", self.statements),
            ("texts", len(self.texts) + self.spelled_texts),
            ("entities", len(self.entities)),
        ):
            if size >= _MAX_NUMBER:
                raise LoadError(f"a graph holds fewer than {_MAX_NUMBER:,} {noun}, and this one has {size:,}")

    # -- entities ----------------------------------------------------------------------------------

    def _concept(self, ident: str) -> int:
        return self.entities[ident]

    def _declare(self, entity: model.Entity) -> None:
        # Outside of a named source, an entity has no declaring source.
        source = UNKNOWN if self._nobody and entity.kind is not model.EntityKind.ROW else self._current()
        declarations = self.declared.get(source)
        if declarations is None:
            declarations = self.declared[source] = {}
        number = self.entities[entity.id]
        name = None if entity.name == entity.id else entity.name
        if name is not None:
            for numbers, names in self._called:
                self.names.update(zip(numbers.tolist(), names, strict=True))
            self._called.clear()
            first_name = self.names.setdefault(number, name)
            if first_name != name:
                self.warnings.append(f"entity {entity.id!r} is called {first_name!r} and {name!r}; the first name stays")
        row = entity.row if entity.kind is model.EntityKind.ROW else -1
        previous = declarations.get(number)
        if previous is None:
            declarations[number] = name, int(entity.kind), row
        else:
            # Concepts take precedence over rows, and rows over other entities: 1, 2, 0.
            kinds = previous[1], int(entity.kind)
            kind = model.EntityKind.CONCEPT if model.EntityKind.CONCEPT in kinds else max(kinds)
            declarations[number] = name if previous[0] is None else previous[0], int(kind), row if previous[2] < 0 else previous[2]

    def _declare_rows(self, rows: model.Rows) -> None:
        """Declare the rows of a table. Rows that are new need not be processed one by one."""
        known_count = len(self.entities)
        numbers = self._subjects(rows.ids)
        if len(self.entities) - known_count != len(rows) and not self._undeclared(numbers, known_count):
            for entity in rows.entities():
                self._declare(entity)
            return
        source = self._current()
        self.declared.setdefault(source, {})
        has_name = np.zeros(len(rows), bool)
        if rows.names is not rows.ids:
            has_name = np.fromiter(map(ne, rows.ids, rows.names), bool, len(rows))
        own_names = rows.names if has_name.all() else list(compress(rows.names, has_name))
        names = np.full(len(rows), -1, np.int32)
        names[has_name] = name_numbers = self._text_numbers(own_names)
        self._named = own_names, name_numbers
        self._called.append((numbers[has_name], list(own_names)))
        self.rows.append((source, numbers, names, np.asarray(rows.rows, np.int32)))
        if len(self._is_row) < len(self.entities):
            self._is_row = np.concatenate([self._is_row, np.zeros(len(self.entities), bool)])
        self._is_row[numbers] = True

    def _undeclared(self, numbers: NDArray[np.int32], before: int) -> bool:
        """Return whether entities are distinct and not declared yet, only mentioned; `before` entities were known."""
        known = numbers[numbers < before]
        if (known < self._seeded).any() or self._is_row[known[known < len(self._is_row)]].any():
            return False
        if len(different(numbers)) < len(numbers):
            return False
        mentioned = set(known.tolist())
        return all(declarations.keys().isdisjoint(mentioned) for declarations in self.declared.values())

    # -- batches, and items with sources of their own ----------------------------------------------

    def _add_columns(self, items: model.Many) -> None:
        if not len(items):
            return
        outer_source, nobody = self._source_at, self._nobody
        if items.source:
            self._source_at, self._nobody = self._source_number(model.Source(items.source)), False
        if isinstance(items, model.Batch):
            self._add_batch(items, self._current())
        elif isinstance(items, model.Rows):
            self._declare_rows(items)
        else:
            memberships = np.empty((len(items), 4), np.int64)
            memberships[:, 0], memberships[:, 1] = self._subjects(items.entities), self._concept(items.concept)
            memberships[:, 2], memberships[:, 3] = self._current(), items.rows
            self.many_members.append(memberships)
        if items.source:
            self._source_at, self._nobody = outer_source, nobody

    def _add_sourced(self, sourced: model.Sourced) -> None:
        item = sourced.item
        numbers = [(self._source_number(model.Source(name)), row) for name, row in sourced.sources]
        if not numbers:
            nobody, self._nobody = self._nobody, self._nobody or isinstance(item, model.Entity)
            self._add((item,))
            self._nobody = nobody
            return
        outer_source, nobody = self._source_at, self._nobody
        self._nobody = False
        if isinstance(item, model.Statement):
            self._source_at, row = numbers[0]
            self._added.extend((self.statements, source, further_row) for source, further_row in numbers[1:])
            self._add((item if item.row == row else replace(item, row=row),))
        else:
            for self._source_at, row in numbers:
                self._add((item if item.row == row else replace(item, row=row),))
        self._source_at, self._nobody = outer_source, nobody
