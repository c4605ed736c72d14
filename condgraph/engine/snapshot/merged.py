"""A snapshot with a few statements removed and a few added, without building it again: the columns of both are merged
on first access, in the order of `layout`.

Numbers keep their order, so each column of the first snapshot is renumbered, and the rows of the second are inserted.
That takes a copy of a column; queries are then as fast as on an unchanged snapshot.
"""

from __future__ import annotations

import operator
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, cached_property, partial
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

from condgraph.engine.bounds import in_order
from condgraph.engine.facts import EntityKind
from condgraph.engine.snapshot.build import DECLARED, NO_ONE, declared
from condgraph.engine.snapshot.cells import PARTS
from condgraph.engine.snapshot.container import MemoryArrays, Pool
from condgraph.engine.snapshot.snapshot import Numbers, Snapshot, ranges
from condgraph.engine.values import Kind

# -- partial arrays ----------------------------------------------------------------------------------
# Columns that compute single parts on access, for callers that read little between two changes of a graph.
#
# Arithmetic, functions of NumPy, and access to large parts compute the column as a whole.


#: Access to more than 1/32 of a column computes all of it.
_MIN_SHARE: Final = 32


class PartialArray(NDArrayOperatorsMixin):
    """An array of `length` numbers: `some` returns those at some positions, `whole` all of them. With `plain`, single
    items are Python numbers, as in a memoryview.
    """

    def __init__(
        self, some: Callable[[NDArray[Any]], NDArray[Any]], whole: Callable[[], NDArray[Any]], length: int, *, plain: bool = False
    ) -> None:
        self._some, self._whole, self._length, self._plain = some, whole, length, plain
        self.shape, self.size, self.ndim = (length,), length, 1

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Any]:
        return iter(self._whole().tolist() if self._plain else self._whole())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self._whole(), dtype=dtype, copy=copy)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return getattr(ufunc, method)(
            *(input_._whole() if isinstance(input_, PartialArray) else input_ for input_ in inputs), **options
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(memoryview(self._whole().data) if self._plain else self._whole(), name)

    def take(self, places: Any, **options: Any) -> NDArray[Any]:
        """Return the numbers at some positions."""
        places = np.asarray(places)
        if options or places.ndim != 1 or _MIN_SHARE * len(places) > self._length:
            return np.asarray(self._whole().take(places, **options))
        return self._some(np.where(places < 0, places + self._length, places))

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            first, last, step = at.indices(self._length)
            count = max(last - first, 0)
            if step != 1 or _MIN_SHARE * count <= self._length:
                return self._some(np.arange(first, last, step))
            return PartialArray(lambda places: self._some(places + first), lambda: self._whole()[at], count, plain=self._plain)
        if isinstance(at, (list, np.ndarray)) and np.ndim(at) == 1 and np.asarray(at).dtype != bool and len(at):
            return self.take(at)
        try:
            place = operator.index(at)
        except TypeError:
            return self._whole()[at]
        place += self._length if place < 0 else 0
        if not 0 <= place < self._length:
            raise IndexError(at)
        number = self._some(np.array([place]))[0]
        return number.item() if self._plain else number

    def view(self, dtype: Any) -> PartialArray:
        """Return the same bits as another type of the same size."""
        return PartialArray(lambda places: self._some(places).view(dtype), lambda: self._whole().view(dtype), self._length)

    @property
    def data(self) -> PartialArray:
        """The same array with Python numbers as single items."""
        return PartialArray(self._some, self._whole, self._length, plain=True)

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """The type of the numbers."""
        return self._some(np.empty(0, np.int64)).dtype

    @property
    def nbytes(self) -> int:
        """The size of the array in bytes."""
        return self._length * self.dtype.itemsize


# -- the merge ---------------------------------------------------------------------------------------


I32 = np.int32
_NO: Final = np.empty(0, np.int64)
#: The bits of a number within its block, the mark of blocks with several shifts, and the numbers processed at once.
_BITS: Final = 8
_MIXED: Final = np.iinfo(I32).min
_SOME: Final = 1 << 16
#: Shorter columns are always computed as a whole.
_MIN_PARTIAL: Final = 1 << 14
Array = NDArray[Any]


class CannotMergeError(Exception):
    """Raised for changes that cannot be merged: the snapshot must be built again."""


class Space:
    """A numbering merged from two: the numbers of the first snapshot without those `dropped`, and new ones, each
    inserted before the number `at` of the first. Both lists are sorted.
    """

    def __init__(self, size: int, dropped: Iterable[int] = (), at: Iterable[int] = ()) -> None:
        self._dropped_items, self.before = sorted(dropped), list(at)
        self._dropped, self._at = np.array(self._dropped_items, np.int64), np.array(self.before, np.int64)
        self.size = size - len(self._dropped) + len(self._at)
        self._places = self._at - self._dropped.searchsorted(self._at)
        #: The numbers of the inserted items.
        self.further = self._places + np.arange(len(self._at))

    @property
    def same(self) -> bool:
        """Whether the numbering is unchanged."""
        return not len(self._dropped) and not len(self._at)

    def new(self, numbers: Any) -> Any:
        """Return the new numbers for numbers of the first snapshot; -1 stays -1."""
        if self.same:
            return numbers
        numbers = np.asarray(numbers)
        changes = np.append(self._at, self._dropped + 1)
        if len(numbers) >> _BITS <= len(changes):
            return numbers + self._shifts(numbers).astype(numbers.dtype)
        # Most blocks of numbers have a single shift, which a short table stores; its last row is for -1.
        blocks = (int(numbers.max()) >> _BITS) + 1
        table = np.append(self._shifts(np.arange(blocks) << _BITS), 0).astype(numbers.dtype)
        table[(changes >> _BITS).clip(0, blocks - 1)] = _MIXED
        result = np.empty_like(numbers)
        for low in range(0, len(numbers), _SOME):
            chunk = numbers[low : low + _SOME]
            shifts = table.take(chunk >> _BITS)
            in_mixed_blocks = np.flatnonzero(shifts == _MIXED)
            if len(in_mixed_blocks):
                shifts[in_mixed_blocks] = self._shifts(chunk[in_mixed_blocks])
            np.add(chunk, shifts, out=result[low : low + _SOME])
        return result

    def _shifts(self, numbers: Array) -> Array:
        return self._at.searchsorted(numbers, "right") - self._dropped.searchsorted(numbers)

    def one(self, number: int) -> int:
        """Return the new number for a single number."""
        return number - bisect_left(self._dropped_items, number) + bisect_right(self.before, number) if number >= 0 else -1

    def order(self, number: int) -> tuple[int, int]:
        """Return a sort key in the order of the first snapshot, comparable with `_order` of new numbers: dropped
        numbers sort between their neighbours.
        """
        index = bisect_left(self._dropped_items, number)
        dropped = index < len(self._dropped_items) and self._dropped_items[index] == number
        return 2 * self.one(number) + (not dropped), number if dropped else 0

    def old(self, numbers: Array) -> Array:
        """Return the numbers in the first snapshot; for an inserted number, that of the item after it."""
        numbers = numbers - self.further.searchsorted(numbers)
        return numbers + (self._dropped - np.arange(len(self._dropped))).searchsorted(numbers, "right")

    def rows(self, first: Rows, second: Any, places: Array) -> Array:
        """Return some rows of `column`."""
        if not len(self.further):
            return first(self.old(places))
        positions = self.further.searchsorted(places)
        is_inserted = self.further.take(positions, mode="clip") == places
        result = first(self.old(places))
        result[is_inserted] = np.asarray(second, result.dtype)[positions[is_inserted]]
        return result

    def column(self, first: Array, second: Any) -> Array:
        """Return a column of the first snapshot with the rows of the second inserted; values already have new
        numbers.
        """
        if self.same:
            return first
        remaining = np.delete(first, self._dropped) if len(self._dropped) else first
        return np.insert(remaining, self._places, np.asarray(second, first.dtype)) if len(self._places) else remaining


class MergedPool(Pool):
    """The texts of two snapshots."""

    def __init__(self, first: Pool, space: Space, further: list[str]) -> None:
        self._first, self._space, self._further = first, space, further
        self._at = space.further.tolist()
        self._numbers = dict(zip(further, self._at, strict=True))

    def __len__(self) -> int:
        return self._space.size

    def __getitem__(self, number: int) -> str:
        before = bisect_left(self._at, number)
        if before < len(self._at) and self._at[before] == number:
            return self._further[before]
        return self._first[number - before]

    def take(self, numbers: Array) -> list[str]:
        """Return the texts with these numbers."""
        if len(numbers) <= 8:
            return [self[number] for number in numbers.tolist()]
        inserted = self._space.further
        before = inserted.searchsorted(numbers)
        is_inserted = inserted.take(before, mode="clip") == numbers if len(inserted) else np.zeros(len(numbers), bool)
        if not is_inserted.any():
            return self._first.take(numbers - before)
        result = iter(self._first.take((numbers - before)[~is_inserted]))
        return [
            self._further[index] if is_new else next(result)
            for is_new, index in zip(is_inserted.tolist(), before.tolist(), strict=True)
        ]

    def longer(self, size: int) -> NDArray[np.int64]:
        """Return the numbers of the texts of more than `size` bytes."""
        long_texts = [number for number, text in zip(self._at, self._further, strict=True) if len(text.encode()) > size]
        return np.sort(np.concatenate([self._space.new(self._first.longer(size)), np.array(long_texts, np.int64)]))

    def find(self, text: str) -> int:
        """Return the number of a text, or -1."""
        number = self._numbers.get(text)
        return self._space.one(self._first.find(text)) if number is None else number

    def rank(self, text: str) -> int:
        """Return the number of texts that sort before this one."""
        return self._first.rank(text) + bisect_left(self._further, text)

    def columns(self) -> dict[str, Array]:
        """Return the texts as columns of a pool."""
        from condgraph.engine.snapshot.container import build_pool

        return build_pool([self[number] for number in range(len(self))])[0]


#: Returns some rows of a column, or all.
Rows: TypeAlias = Callable[[Array | None], Array]


class Maker(NamedTuple):
    """How a column is computed: as a whole, and possibly some of its `length` rows."""

    whole: Callable[[], Array]
    some: Callable[[Array], Array] | None = None
    length: int = 0


class MergedArrays(MemoryArrays):
    """Columns that are computed on first access."""

    def __init__(self, makers: dict[str, Maker], pool: MergedPool, size: int) -> None:
        super().__init__({})
        self._makers, self.pool, self._size = makers, pool, size

    def get(self, name: str) -> Array:
        """Return a column, computed now or earlier."""
        result = self._arrays.get(name)
        if result is None:
            if name.startswith("pool."):
                for part, column in self.pool.columns().items():
                    self._arrays[part] = column
                return self._arrays[name]
            maker = self._makers.get(name)
            result = np.empty(0, I32) if maker is None else np.ascontiguousarray(maker.whole())
            self._arrays[name] = result
        return result

    @property
    def names(self) -> list[str]:
        return [*self._makers, "pool.bytes", "pool.offsets", "pool.buckets", "pool.items"]

    @property
    def size(self) -> int:
        """The size of the stored columns in bytes."""
        return self._size


class PartlyMerged(MergedArrays):
    """The same columns, computing only the accessed rows as long as these are few."""

    def __init__(self, arrays: MergedArrays) -> None:
        super().__init__(arrays._makers, arrays.pool, arrays.size)
        # Both share the computed columns.
        self.merged, self._arrays = arrays, arrays._arrays

    def get(self, name: str) -> Any:
        """Return a column, or a `PartialArray` in its place."""
        maker = self._makers.get(name)
        if maker is None or maker.some is None or name in self._arrays or maker.length < _MIN_PARTIAL:
            return super().get(name)
        return PartialArray(maker.some, lambda: self.merged.get(name), maker.length)

    def view(self, name: str) -> Any:
        """Return the same as a memoryview."""
        return self.get(name).data


def merged(first: Snapshot, removed: Numbers, second: Snapshot | None) -> Snapshot:
    """Return a snapshot without the `removed` statements (sorted), and with the content of a second one: statements
    that the first does not have, and entities, all of one source. Entities in both must have the same name, so that
    both have one order.

    Only accessed parts are computed: `whole` is faster for many queries. Raises `CannotMergeError` for other changes.
    """
    return _Merge(first, removed, second).result()


def whole(snapshot: Snapshot) -> Snapshot:
    """Return the same snapshot with every column computed completely on first access."""
    arrays = snapshot.arrays
    return Snapshot(arrays.merged, snapshot.about, snapshot.texts) if isinstance(arrays, PartlyMerged) else snapshot


class _Merge:
    def __init__(self, first: Snapshot, removed: Numbers, second: Snapshot | None) -> None:
        self.b, self.d, self.removed = first, second, removed.astype(np.int64)
        self.get = first.arrays.get
        if not len(self.get("dec.known")) or len(self.get("src.content")) != len(self.get("src.name")):
            raise CannotMergeError
        if len(self.get("src.terms")) != len(self.get("src.name")):
            raise CannotMergeError
        self._texts()
        self._owners()
        self._entities()
        self._predicates()
        self._statements()
        self._qualifiers()

    def of(self, name: str) -> Array:
        """Return a column of the second snapshot."""
        return np.empty(0, I32) if self.d is None else self.d.arrays.get(name)

    def _texts(self) -> None:
        b, d = self.b, self.d
        count = 0 if d is None else len(d.texts)
        texts = [] if d is None else [d.texts[number] for number in range(count)]
        known = [b.texts.find(text) for text in texts]
        new = [number for number in range(count) if known[number] < 0]
        self.text = Space(len(b.texts), (), [b.texts.rank(texts[number]) for number in new])
        self.pool = MergedPool(b.texts, self.text, [texts[number] for number in new])
        # The last item is for -1, no text.
        self.text_d = np.append(self.text.new(np.array(known, np.int64)), -1)
        self.text_d[new] = self.text.further

    def _owners(self) -> None:
        """Collect the removed statements as rows."""
        b, split = self.b, self.b.relations
        removed = self.removed
        self.gone_rels, self.gone_atts = removed[removed < split], removed[removed >= split] - split
        self.gone_predicates = b.predicates(removed.astype(I32)).astype(np.int64)
        self.gone_subjects = b.subjects(removed.astype(I32)).astype(np.int64)
        self.gone_objects = self.get("rel.o").take(self.gone_rels).astype(np.int64)
        offsets = self.get("q.offsets")
        self.gone_quals = (
            ranges(offsets.take(removed).astype(np.int64), offsets[1:].take(removed).astype(np.int64)) if len(offsets) else _NO
        )
        count = 0 if self.d is None else self.d.relations
        self.d_p = _NO if self.d is None else self.d.predicates(np.arange(self.d.statements, dtype=I32)).astype(np.int64)
        self.d_s = np.concatenate([self.of("rel.s"), self.of("att.s")]).astype(np.int64)
        self.d_r = count

    def _entities(self) -> None:
        b, d = self.b, self.d
        known: list[int] = []
        at: list[int] = []
        fresh: list[int] = []
        if d is not None:
            ids, names = b.arrays.view("ent.id"), b.arrays.view("ent.name")
            said = declared(d)
            named = {
                e: name for e, name, src in zip(said.e.tolist(), said.name.tolist(), said.src.tolist(), strict=True) if src >= 0
            }
            for i in range(d.entities):
                if d.entity_kind[i] != EntityKind.ENTITY:
                    raise CannotMergeError
                ident, name = d.ident(i), d.name(i)
                number = b.identified(ident)
                known.append(number)
                if number >= 0:
                    if named.get(i, -1) >= 0 and b.name(number) != d.texts[named[i]]:
                        raise CannotMergeError
                    continue
                fresh.append(i)
                text = b.texts.find(name)
                if text < 0:
                    at.append(bisect_left(names, b.texts.rank(name)))
                else:
                    low = bisect_left(names, text)
                    at.append(bisect_left(ids, b.texts.rank(ident), low, bisect_right(names, text, low)))
        dropped = self._orphans({number for number in known if number >= 0})
        self.ent = Space(b.entities, dropped, at)
        self.ent_d = self.ent.new(np.array(known, np.int64)) if known else _NO
        self.ent_d[fresh] = self.ent.further
        self.fresh, self.known, self.dropped = fresh, known, dropped
        by_id, ids = self.b.arrays.view("ent.by_id"), self.b.arrays.view("ent.id")
        order = sorted(fresh, key=lambda i: d.ident(i) if d is not None else "")
        places = [bisect_left(by_id, b.texts.rank(d.ident(i)), key=ids.__getitem__) for i in order] if d is not None else []
        gone = [bisect_left(by_id, ids[number], key=ids.__getitem__) for number in dropped]
        self.by_id, self.by_id_d = Space(b.entities, gone, places), self.ent_d[order]

    def _unused(self, entities: list[int]) -> set[int]:
        """Return the entities that only removed statements of the first snapshot refer to."""
        b = self.b
        ends = Counter(self.gone_subjects.tolist()) + Counter(self.gone_objects.tolist())
        result = set()
        for entity in entities:
            number = np.array([entity])
            if b.degree(number) + b.degree(number, backward=True) == ends[entity]:
                result.add(entity)
        for column in ("mem.e", "mem.c", "sub.c", "sub.p", "row.entity"):
            if result:
                result -= set(self.get(column)[np.isin(self.get(column), list(result))].tolist())
        if result:
            owner, kind, ref = self.get("q.owner"), self.get("q.kind"), self.get("q.ref")
            positions = np.flatnonzero((kind == Kind.ENTITY) & np.isin(ref, list(result)))
            result -= set(ref[positions[~np.isin(owner[positions], self.removed)]].tolist())
        return result

    def _never_used(self, entities: list[int]) -> set[int]:
        """Return the entities that nothing in the first snapshot refers to, not even removed statements."""
        in_removed = {*self.gone_subjects.tolist(), *self.gone_objects.tolist(), *self.get("q.ref")[self.gone_quals].tolist()}
        return self._unused([entity for entity in entities if entity not in in_removed])

    def _declared(self, entity: int) -> bool:
        """Return whether a source declares an entity, beyond what its statements imply."""
        b = self.b
        rows = self.get("dec.src")[self.get("dec.e") == entity]
        if len(rows):
            return bool((rows != NO_ONE).any())
        plain = b.arrays.view("ent.name")[entity] == b.arrays.view("ent.id")[entity]
        return not plain or int(b.entity_kind[entity]) != EntityKind.ENTITY

    def _orphans(self, used: set[int]) -> list[int]:
        refs = self.get("q.ref")[self.gone_quals][self.get("q.kind")[self.gone_quals] == Kind.ENTITY]
        candidates = {*self.gone_subjects.tolist(), *self.gone_objects.tolist(), *refs.tolist()} - used
        candidates = {entity for entity in candidates if not self._declared(entity)}
        return sorted(self._unused(sorted(candidates)))

    def _predicates(self) -> None:
        b, d = self.b, self.d
        names = [] if d is None else [d.predicate_name(i) for i in range(d.predicate_count)]
        texts = b.arrays.view("pred.text")
        known = [b.predicate(name) for name in names]
        fresh = [i for i, number in enumerate(known) if number < 0]
        at = [bisect_left(texts, b.texts.rank(names[i])) for i in fresh]
        left = np.zeros(b.predicate_count, np.int64)
        for offsets in ("rel.offsets", "att.offsets", "qkey.offsets"):
            left += np.diff(self.get(offsets))
        np.subtract.at(left, self.gone_predicates, 1)
        np.subtract.at(left, self.get("q.key")[self.gone_quals], 1)
        used = {number for number in known if number >= 0}
        dropped = [number for number in np.flatnonzero(left == 0).tolist() if number not in used]
        self.pred = Space(b.predicate_count, dropped, at)
        self.pred_d = self.pred.new(np.array(known, np.int64)) if known else _NO
        self.pred_d[fresh] = self.pred.further
        #: The predicate number in the first snapshot at which rows of each predicate of the second are inserted.
        places = iter(at)
        self.pred_at = [number if number >= 0 else next(places) for number in known]
        self.pred_known = known

    def _values(self, family: str, of: Callable[[str], Array], second: bool) -> dict[str, Array]:
        """Return the columns of cells with new numbers."""
        text, ent = (self.text_d.__getitem__, self.ent_d.__getitem__) if second else (self.text.new, self.ent.new)
        cells = {name: of(f"{family}.{name}") for name, _ in PARTS}
        kinds, refs = cells["kind"], cells["ref"]
        entity = kinds == Kind.ENTITY
        ref = np.asarray(text(np.where(entity, -1, refs))).astype(I32)
        if entity.any():
            ref[entity] = ent(refs[entity])
        cells["ref"], cells["unit"] = ref, np.asarray(text(cells["unit"])).astype(I32)
        return cells

    def _run(self, family: str, predicate: int) -> tuple[int, int]:
        offsets, at = self.b.arrays.view(f"{family}.offsets"), self.pred_at[predicate]
        return offsets[at], offsets[at + 1] if self.pred_known[predicate] >= 0 else offsets[at]

    def _statements(self) -> None:
        b, d = self.b, self.d
        places: list[int] = []
        s, o = b.arrays.view("rel.s"), b.arrays.view("rel.o")
        ent = self.ent.order

        # Cached, because searches in one run read the same statements.
        @cache
        def ends(at: int) -> tuple[Any, ...]:
            return ent(s[at]), ent(o[at])

        for i in range(self.d_r):
            low, high = self._run("rel", int(self.d_p[i]))
            key = _order(self.ent_d[self.d_s[i]]), _order(self.ent_d[self.of("rel.o")[i]])
            places.append(bisect_right(range(high), key, low, high, key=ends))
        parts = ("kind", "unit", "a", "b", "ref", "precision")
        self.att_d = self._values("att", self.of, True)
        views = [b.arrays.view(f"att.{part}") for part in parts]
        subjects = b.arrays.view("att.s")

        @cache
        def cell(at: int) -> tuple[Any, ...]:
            kind, unit, a, end, ref, precision = (view[at] for view in views)
            ref = self.text.one(ref)
            return kind, self.text.one(unit), _sortable(kind, a, ref), end, ref, precision, ent(subjects[at])

        for i in range(0 if d is None else d.statements - self.d_r):
            low, high = self._run("att", int(self.d_p[self.d_r + i]))
            kind, unit, a, end, ref, precision = (int(self.att_d[part][i]) for part in parts)
            own = kind, unit, _sortable(kind, a, ref), end, ref, precision, _order(self.ent_d[self.d_s[self.d_r + i]])
            places.append(b.relations + bisect_right(range(high), own, low, high, key=cell))
        self.at = places
        self.stmt = Space(b.statements, self.removed, places)
        self.rel = Space(b.relations, self.gone_rels, places[: self.d_r])
        self.att = Space(b.statements - b.relations, self.gone_atts, [at - b.relations for at in places[self.d_r :]])

    def _qualifiers(self) -> None:
        b, offsets = self.b, self.get("q.offsets")
        owners = self.of("q.owner").tolist()
        at = [int(offsets[self.at[owner]]) if len(offsets) else 0 for owner in owners]
        self.q = Space(len(self.get("q.owner")), self.gone_quals, at)
        self.q_at = at
        self.q_d = self._values("q", self.of, True)
        # By key, type, unit and value.
        parts = ("kind", "unit", "a", "b", "ref")
        views = [b.arrays.view(f"q.{part}") for part in parts]

        @cache
        def cell(at: int) -> tuple[Any, ...]:
            kind, unit, a, end, number = (view[at] for view in views)
            ref: Any = self.ent.order(number) if kind == Kind.ENTITY else self.text.one(number)
            return kind, self.text.one(unit), _sortable(kind, a, ref), end, at

        items, starts = b.arrays.view("qkey.items"), b.arrays.view("qkey.offsets")
        keys = self.get("q.key")
        gone = []
        for one in self.gone_quals.tolist():
            low, high = starts[keys[one]], starts[keys[one] + 1]
            gone.append(bisect_left(items, cell(one), low, high, key=cell))
            if items[gone[-1]] != one:
                raise CannotMergeError
        self.qkey_d = self.pred_d[self.of("q.key")] if len(owners) else _NO
        fresh = []
        for i in range(len(owners)):
            number = int(self.of("q.key")[i])
            begin = self.pred_at[number]
            low = starts[begin]
            high = starts[begin + 1] if self.pred_known[number] >= 0 else low
            kind, unit, a, end, ref = (int(self.q_d[part][i]) for part in parts)
            value = _sortable(kind, a, _order(ref) if kind == Kind.ENTITY else ref)
            own = kind, unit, value, end, at[i] - 0.5
            place = bisect_left(items, own, low, high, key=cell)
            fresh.append((place, int(self.qkey_d[i]), own, i))
        fresh.sort()
        self.qkey = Space(len(items), gone, [place for place, _, _, _ in fresh])
        self.qkey_items_d = self.q.further[[i for _, _, _, i in fresh]] if fresh else _NO

    # -- columns -----------------------------------------------------------------------------------

    def result(self) -> Snapshot:
        """Return the merged snapshot."""
        get, of = self.get, self.of
        makers: dict[str, Maker] = {}

        def put(
            name: str, space: Space, second: Any, new: Callable[[Array], Array] | None = None, first: Rows | None = None
        ) -> None:
            """Add a column with the rows of the second snapshot; rows of the first are renumbered by `new`, or read by `first`."""

            def own(places: Array | None) -> Array:
                column = get(name) if places is None else get(name).take(places, mode="clip")
                return column if new is None else np.asarray(new(column))

            rows = own if first is None else first
            some = (lambda places: space.rows(rows, second, places)) if self.b.arrays.length(name) else None
            makers[name] = Maker(lambda: space.column(rows(None), second), some, space.size)

        ent, text = self.ent, self.text
        new_entities = np.array(self.fresh, np.int64)
        put("ent.id", ent, self.text_d[of("ent.id")[new_entities]] if self.d else _NO, text.new)
        put("ent.name", ent, self.text_d[of("ent.name")[new_entities]] if self.d else _NO, text.new)
        put("ent.kind", ent, of("ent.kind")[new_entities] if self.d else _NO)
        put("ent.by_id", self.by_id, self.by_id_d, ent.new)
        for name, value in (("ent.source", -1), ("ent.row", 0)):
            if self.b.arrays.length(name):
                put(name, ent, np.full(len(new_entities), value))
        put("row.key", Space(self.b.arrays.length("row.key")), _NO)
        put("row.entity", Space(self.b.arrays.length("row.entity")), _NO, ent.new)
        put("pred.text", self.pred, self._fresh_predicates(), text.new)

        put("rel.s", self.rel, self.ent_d[self.d_s[: self.d_r]], ent.new)
        put("rel.o", self.rel, self.ent_d[of("rel.o")], ent.new)
        put("att.s", self.att, self.ent_d[self.d_s[self.d_r :]], ent.new)
        raws = of("att.raw")
        if self.b.arrays.length("att.raw") or (raws >= 0).any():
            raw_texts = self.text_d[raws] if len(raws) else np.full(len(self.at) - self.d_r, -1)
            no_raws = np.full(self.b.statements - self.b.relations, -1, I32)
            put("att.raw", self.att, raw_texts, text.new, None if self.b.arrays.length("att.raw") else lambda _: no_raws)
        for family, space, cells in (("att", self.att, self.att_d), ("q", self.q, self.q_d)):
            for part in ("kind", "a", "b", "precision"):
                put(f"{family}.{part}", space, cells[part])
            put(f"{family}.unit", space, cells["unit"], text.new)
            put(f"{family}.ref", space, cells["ref"], first=partial(self._references, family))
        source, sources = self._sources(makers)
        put("st.src", self.stmt, np.full(len(self.at), source))
        put("st.row", self.stmt, of("st.row"))
        places = get("prov.stmt")
        removed_places = np.concatenate(
            [_NO, ranges(places.searchsorted(self.removed), places.searchsorted(self.removed, "right"))]
        )
        prov = Space(len(places), removed_places.tolist())
        put("prov.stmt", prov, _NO, self.stmt.new)
        put("prov.src", prov, _NO)
        put("prov.row", prov, _NO)
        if self.b.arrays.length("prov.raw"):
            put("prov.raw", prov, _NO, text.new)

        put("q.owner", self.q, self.stmt.further[of("q.owner")], self.stmt.new)
        put("q.key", self.q, self.qkey_d, self.pred.new)
        put("qkey.items", self.qkey, self.qkey_items_d, self.q.new)
        self._offsets(makers)
        self._adjacent(put)
        self._groups(makers)
        # The validity of statements.
        val, second_statements = get("val.stmt"), of("val.stmt").tolist()
        positions = val.searchsorted(self.removed)
        dropped_rows = positions[val.take(positions, mode="clip") == self.removed] if len(val) else positions[:0]
        space = Space(len(val), dropped_rows.tolist(), [int(val.searchsorted(self.at[number])) for number in second_statements])
        put("val.stmt", space, self.stmt.further[second_statements] if second_statements else _NO, self.stmt.new)
        for part in ("val.start", "val.end"):
            put(part, space, of(part))

        for name in ("mem.e", "mem.c", "sub.c", "sub.p", "con.entity", "con.items"):
            put(name, Space(self.b.arrays.length(name)), _NO, ent.new)
        for name in ("mem.src", "mem.row", "sub.src", "sub.row", "con.offsets", "dec.known"):
            put(name, Space(self.b.arrays.length(name)), _NO)
        self._declarations(makers, source)
        self._schema(makers, source, sources, removed_places)
        arrays = PartlyMerged(MergedArrays(makers, self.pool, self.b.arrays.size))
        return Snapshot(arrays, {**self.b.about, "counts": self._counts(sources)}, texts=self.pool)

    def _fresh_predicates(self) -> Array:
        names = [] if self.d is None else [self.d.predicate_name(i) for i, n in enumerate(self.pred_known) if n < 0]
        return np.array([self.pool.find(name) for name in names], np.int64)

    def _references(self, family: str, places: Array | None) -> Array:
        """Return the texts and entities of cells by new numbers."""
        column, kinds = (
            cells if places is None else cells.take(places, mode="clip")
            for cells in (self.get(f"{family}.ref"), self.get(f"{family}.kind"))
        )
        entity = kinds == Kind.ENTITY
        if not entity.any():
            return np.asarray(self.text.new(column))
        result: Array = np.where(entity, self.ent.new(column), self.text.new(column)).astype(I32)
        return result

    def _sources(self, makers: dict[str, Maker]) -> tuple[int, int]:
        """Return the number of the source of the additions, and the number of sources."""
        names = self.get("src.name")
        number = -1 if self.d is None else self.pool.find(self.d.source_of(0).name) if len(self.of("src.name")) else -1
        positions = np.flatnonzero(self.text.new(names) == number)
        new = number >= 0 and not len(positions)
        for part in ("name", "location", "format", "content", "terms"):
            texts = self.text_d[self.of(f"src.{part}")] if new else _NO
            column = np.concatenate([self.text.new(self.get(f"src.{part}")), texts]).astype(I32)
            makers[f"src.{part}"] = Maker(lambda column=column: column)  # type: ignore[misc]
        return (len(names) if new else int(positions[0]) if len(positions) else -1), len(names) + new

    def _offsets(self, makers: dict[str, Maker]) -> None:
        """Compute the offsets of columns that are sorted by another number."""
        get, split, many = self.get, len(self.gone_rels), self.d_r
        p, s, o = (
            new[numbers] if len(numbers) else _NO
            for new, numbers in ((self.pred_d, self.d_p), (self.ent_d, self.d_s), (self.ent_d, self.of("rel.o")))
        )
        keys, owners = get("q.key")[self.gone_quals], get("q.owner")[self.gone_quals]
        added_owners = self.stmt.further[self.of("q.owner")]
        for name, removed, added, space in (
            ("rel", self.gone_predicates[:split], p[:many], self.pred),
            ("att", self.gone_predicates[split:], p[many:], self.pred),
            ("qkey", keys, self.qkey_d, self.pred),
            ("out", self.gone_subjects, s, self.ent),
            ("in", self.gone_objects, o, self.ent),
            ("q", owners, added_owners, self.stmt),
        ):
            if name != "q" or self.q.size:
                self._make_offsets(makers, f"{name}.offsets", np.sort(removed), np.sort(added), space)

    def _make_offsets(self, makers: dict[str, Maker], name: str, gone: Array, more: Array, space: Space) -> None:
        """Compute the offsets of a merged column, given the numbers of its removed rows (old) and added rows (new)."""

        def some(places: Array | None) -> Array:
            places = np.arange(space.size + 1) if places is None else places
            old_numbers = space.old(places)
            # A graph without qualifiers has no offsets for them.
            first = self.get(name).take(old_numbers) if self.b.arrays.length(name) else np.zeros(len(old_numbers), I32)
            result: Array = (first - gone.searchsorted(old_numbers) + more.searchsorted(places)).astype(first.dtype)
            return result

        makers[name] = Maker(lambda: some(None), some, space.size + 1)

    def _adjacent(self, put: Callable[..., None]) -> None:
        """Compute statements by subject, and relations by object."""
        b = self.b
        for name, gone, owners, mine, ends in (
            ("out", self.removed, self.gone_subjects, range(len(self.at)), self.d_s),
            ("in", self.gone_rels, self.gone_objects, range(self.d_r), self.of("rel.o")),
        ):
            items, offsets = b.arrays.view(f"{name}.items"), b.arrays.view(f"{name}.offsets")
            drop = [
                bisect_left(items, one, offsets[e], offsets[e + 1]) for one, e in zip(gone.tolist(), owners.tolist(), strict=True)
            ]
            fresh = []
            inserted = iter(self.ent.before)
            before = {i: next(inserted) for i in self.fresh}
            for i in mine:
                end = int(ends[i])
                known = self.known[end]
                if known >= 0:
                    place = bisect_left(items, self.at[i], offsets[known], offsets[known + 1])
                else:
                    place = offsets[before[end]]
                fresh.append((place, int(self.ent_d[end]), int(self.stmt.further[i])))
            fresh.sort()
            space = Space(len(items), drop, [place for place, _, _ in fresh])
            put(f"{name}.items", space, [number for _, _, number in fresh], self.stmt.new)

    def _groups(self, makers: dict[str, Maker]) -> None:
        """Compute runs of one predicate (or key), type and unit."""
        get, split, many = self.get, len(self.gone_rels), self.d_r
        p = self.pred_d[self.d_p[many:]] if len(self.d_p) else _NO
        for prefix, mark, family, removed, keys, added, cells in (
            ("grp", "pred", "att", self.gone_atts, self.gone_predicates[split:], p, self.att_d),
            ("qgrp", "key", "q", self.gone_quals, get("q.key")[self.gone_quals], self.qkey_d, self.q_d),
        ):
            gone = keys, get(f"{family}.kind")[removed], get(f"{family}.unit")[removed]
            news: dict[str, Callable[[int], int]] = {mark: self.pred.one, "kind": int, "unit": self.text.one}
            counts = self._tallied(
                makers, prefix, np.diff(get(f"{prefix}.start")), news, [gone], (added, cells["kind"], cells["unit"])
            )
            starts = np.append(0, np.cumsum(counts))
            makers[f"{prefix}.start"] = Maker(lambda starts=starts: starts)  # type: ignore[misc]

    def _tallied(
        self,
        makers: dict[str, Maker],
        prefix: str,
        counts: Array,
        news: dict[str, Callable[[int], int]],
        gone: Sequence[tuple[Array, ...]],
        added: tuple[Array, ...],
    ) -> Array:
        """Put the columns of a table of distinct rows, and return the count of each row, given the counts before.
        `news` has its columns with their new numbers; `gone` are columns of removed rows, `added` those of new ones.
        """
        columns = [self.get(f"{prefix}.{part}") for part in news]
        old = Counter(dict(zip(_rows(columns), counts.tolist(), strict=True)))
        for removed in gone:
            old.subtract(_rows(removed))
        new_of = tuple(news.values())
        tally = Counter({tuple(new(n) for new, n in zip(new_of, key, strict=True)): size for key, size in old.items() if size})
        tally.update(_rows(added))
        rows = sorted(key for key, size in tally.items() if size)
        for index, (part, column) in enumerate(zip(news, columns, strict=True)):
            merged_column = np.array([row[index] for row in rows], column.dtype)
            makers[f"{prefix}.{part}"] = Maker(lambda column=merged_column: column)  # type: ignore[misc]
        return np.array([tally[row] for row in rows], np.int64)

    def _declarations(self, makers: dict[str, Maker], source: int) -> None:
        """Compute declarations: those of the second snapshot, and the first source's for entities that were unused so
        far.
        """
        get = self.get
        rows: list[tuple[int, int, int, int, int]] = []
        if self.d is not None:
            declarations = declared(self.d)
            declarations = declarations.take(declarations.src >= 0)
            for entity, name, kind, row in zip(
                declarations.e.tolist(),
                declarations.name.tolist(),
                declarations.kind.tolist(),
                declarations.row.tolist(),
                strict=True,
            ):
                rows.append((int(self.ent_d[entity]), source, int(self.text_d[name]) if name >= 0 else -1, kind, row))
            ids, names = self.b.arrays.view("ent.id"), self.b.arrays.view("ent.name")
            plain = [number for number in self.known if number >= 0 and ids[number] == names[number]]
            stored = get("dec.e")[np.isin(get("dec.e"), plain)].tolist() if plain else ()
            plain = [number for number in plain if number not in stored and int(self.b.entity_kind[number]) == EntityKind.ENTITY]
            rows += [(self.ent.one(number), 0, -1, int(EntityKind.ENTITY), -1) for number in self._never_used(plain)]

        @cache
        def columns() -> list[Array]:
            table = np.array(rows, np.int64).reshape(-1, 5)
            first = [self.ent.new(get("dec.e")), get("dec.src"), self.text.new(get("dec.name")), get("dec.kind"), get("dec.row")]
            columns = [np.concatenate([one, table[:, i]]).astype(I32) for i, one in enumerate(first)]
            gone = np.isin(get("dec.e"), self.dropped) if self.dropped else np.zeros(len(get("dec.e")), bool)
            stays = np.concatenate([~gone, np.ones(len(table), bool)])
            columns = [column[stays] for column in columns]
            order = in_order(columns[:2]) if len(columns[0]) else _NO
            return [column[order] for column in columns]

        for i, part in enumerate(DECLARED):
            makers[f"dec.{part}"] = Maker(lambda i=i: columns()[i])  # type: ignore[misc]

    def _schema(self, makers: dict[str, Maker], source: int, sources: int, places: Array) -> None:
        get, of, removed = self.get, self.of, self.gone_quals
        p = self.pred_d[self.d_p] if len(self.d_p) else _NO
        news: dict[str, Callable[[int], int]] = {"pred": self.pred.one, "key": self.pred.one, "kind": int, "unit": self.text.one}
        positions = self.removed.searchsorted(get("q.owner")[removed])
        gone = self.gone_predicates[positions], *(get(f"q.{part}")[removed] for part in ("key", "kind", "unit"))
        owners = p[of("q.owner")] if len(of("q.owner")) else _NO
        added = owners, self.qkey_d, self.q_d["kind"], self.q_d["unit"]
        counts = self._tallied(makers, "sch.q", get("sch.q.count"), news, [gone], added)
        makers["sch.q.count"] = Maker(lambda: counts)

        positions = self.removed.searchsorted(get("prov.stmt")[places])
        first, further = self.b.source[self.removed], get("prov.src")[places]
        gone_pairs = [(self.gone_predicates, first), (self.gone_predicates[positions], further)]
        news = {"pred": self.pred.one, "src": int}
        by_source = self._tallied(makers, "sch.s", get("sch.s.count"), news, gone_pairs, (p, np.full(len(p), source)))
        makers["sch.s.count"] = Maker(lambda: by_source)
        if sources > 1:
            makers["bysrc.items"] = Maker(lambda: self._by_source(source, sources)[0])
            makers["bysrc.offsets"] = Maker(lambda: self._by_source(source, sources)[1])

    def _by_source(self, source: int, sources: int) -> tuple[Array, Array]:
        """Return the statements of each source, and their offsets."""
        items, offsets = self.get("bysrc.items"), self.get("bysrc.offsets")
        if len(self.get("src.name")) <= 1:
            items, offsets = np.arange(self.b.statements, dtype=I32), np.array([0, self.b.statements])
            offsets = offsets if len(self.get("src.name")) else offsets[:1]
        removed = np.zeros(self.b.statements, bool)
        removed[self.removed] = True
        parts, ends = [], [0]
        for number in range(sources):
            part = items[offsets[number] : offsets[number + 1]] if number < len(offsets) - 1 else items[:0]
            part = self.stmt.new(part[~removed[part]])
            if number == source:
                part = np.sort(np.concatenate([part, self.stmt.further])).astype(I32)
            parts.append(part)
            ends.append(ends[-1] + len(part))
        return np.concatenate(parts).astype(I32), np.array(ends, np.int64)

    def _counts(self, sources: int) -> dict[str, int]:
        counts = dict(self.b.counts)
        kinds, split = self.b.entity_kind, len(self.gone_rels)
        counts["entities"] += len(self.fresh) - len(self.dropped)
        counts["relations"], counts["attributes"] = self.rel.size, self.att.size
        counts["qualifiers"], counts["predicates"], counts["sources"] = self.q.size, self.pred.size, sources
        concept = [bool(number >= 0 and kinds[number] == EntityKind.CONCEPT) for number in self.known]
        for name, removed, added in (
            ("concept_subjects", self.gone_subjects[:split], self.d_s[: self.d_r]),
            ("concept_objects", self.gone_objects, self.of("rel.o")),
            ("concept_attributes", self.gone_subjects[split:], self.d_s[self.d_r :]),
        ):
            counts[name] += sum(concept[number] for number in added.tolist()) - int((kinds[removed] == EntityKind.CONCEPT).sum())
        for family, removed in (("att", self.gone_atts), ("q", self.gone_quals)):
            for read, rows in ((self.of, slice(None)), (self.get, removed)):
                count = int(((read(f"{family}.kind")[rows] == Kind.QUANTITY) & (read(f"{family}.ref")[rows] >= 0)).sum())
                counts["inexact"] += count if read == self.of else -count
        return counts


def _rows(columns: Iterable[Array]) -> Iterator[tuple[int, ...]]:
    return zip(*(column.tolist() for column in columns), strict=True)


def _order(number: Any) -> tuple[int, int]:
    """Return `Space.order` for a new number."""
    return 2 * int(number) + 1, 0


def _sortable(kind: int, a: int, ref: Any) -> Any:
    """Return `cells.sortable` for one cell."""
    if kind in (Kind.TEXT, Kind.ENTITY):
        return ref
    return a ^ 0x7FFF_FFFF_FFFF_FFFF if kind == Kind.QUANTITY and a < 0 else a
