"""A snapshot with a few statements taken away and a few added, without building it again: the columns
of both are merged, each when it is first asked for, in the order that `layout` gives them.

Numbers keep their order, so that each column of the first snapshot is renumbered, and the rows of
the second are put in where they belong. That takes a copy of a column; queries are then as quick as
without a change.
"""

from __future__ import annotations

import operator
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
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

# -- arrays that are read in part --------------------------------------------------------------------
# Columns of which a part is worked out when it is asked for, for who reads little of a graph between two changes of it.
#
# To arithmetic, to functions of NumPy and to everything else that asks for much of one, a column is the array that it
# stands for, which is then worked out as a whole.


#: Who asks for more than this part of a column gets the whole of it.
_PART: Final = 32


class PartialArray(NDArrayOperatorsMixin):
    """An array of `length` numbers: `some` gives those at some places, `whole` all of them. With `plain` a single one is a
    number of Python, as in a memoryview.
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
        return getattr(ufunc, method)(*(one._whole() if isinstance(one, PartialArray) else one for one in inputs), **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(memoryview(self._whole().data) if self._plain else self._whole(), name)

    def take(self, places: Any, **options: Any) -> NDArray[Any]:
        """The numbers at some places."""
        places = np.asarray(places)
        if options or places.ndim != 1 or _PART * len(places) > self._length:
            return np.asarray(self._whole().take(places, **options))
        return self._some(np.where(places < 0, places + self._length, places))

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            first, last, step = at.indices(self._length)
            count = max(last - first, 0)
            if step != 1 or _PART * count <= self._length:
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
        """The same bits as numbers of another type of this size."""
        return PartialArray(lambda places: self._some(places).view(dtype), lambda: self._whole().view(dtype), self._length)

    @property
    def data(self) -> PartialArray:
        """The same, whose single numbers are numbers of Python."""
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
#: The bits of a number within its block, the mark of blocks that are not shifted by one number, and numbers taken at once.
_BITS: Final = 8
_MIXED: Final = np.iinfo(I32).min
_SOME: Final = 1 << 16
#: Columns of fewer rows are made as a whole.
_FEW: Final = 1 << 14
Array = NDArray[Any]


class CannotMergeError(Exception):
    """Changes that this module does not merge: the snapshot has to be built again."""


class Space:
    """One numbering, merged of two: numbers of the first snapshot without those `dropped`, and further
    ones, each before the number `at` of the first. Both are sorted.
    """

    def __init__(self, size: int, dropped: Iterable[int] = (), at: Iterable[int] = ()) -> None:
        self._without, self.before = sorted(dropped), list(at)
        self._dropped, self._at = np.array(self._without, np.int64), np.array(self.before, np.int64)
        self.size = size - len(self._dropped) + len(self._at)
        self._places = self._at - self._dropped.searchsorted(self._at)
        #: The new numbers of the further ones.
        self.further = self._places + np.arange(len(self._at))

    @property
    def same(self) -> bool:
        """Whether nothing changes."""
        return not len(self._dropped) and not len(self._at)

    def new(self, numbers: Any) -> Any:
        """The new numbers of those of the first snapshot; -1 stays -1."""
        if self.same:
            return numbers
        numbers = np.asarray(numbers)
        changes = np.append(self._at, self._dropped + 1)
        if len(numbers) >> _BITS <= len(changes):
            return numbers + self._shifts(numbers).astype(numbers.dtype)
        # Most blocks of numbers are shifted by one number: a short table has these. -1 is its last row.
        blocks = (int(numbers.max()) >> _BITS) + 1
        table = np.append(self._shifts(np.arange(blocks) << _BITS), 0).astype(numbers.dtype)
        table[(changes >> _BITS).clip(0, blocks - 1)] = _MIXED
        result = np.empty_like(numbers)
        for low in range(0, len(numbers), _SOME):
            some = numbers[low : low + _SOME]
            shifts = table.take(some >> _BITS)
            mixed = np.flatnonzero(shifts == _MIXED)
            if len(mixed):
                shifts[mixed] = self._shifts(some[mixed])
            np.add(some, shifts, out=result[low : low + _SOME])
        return result

    def _shifts(self, numbers: Array) -> Array:
        return self._at.searchsorted(numbers, "right") - self._dropped.searchsorted(numbers)

    def one(self, number: int) -> int:
        """The new number of one."""
        return number - bisect_left(self._without, number) + bisect_right(self.before, number) if number >= 0 else -1

    def order(self, number: int) -> tuple[int, int]:
        """What sorts as the numbers of the first snapshot do, and as `_order` of new ones: dropped numbers
        come between their neighbours.
        """
        at = bisect_left(self._without, number)
        dropped = at < len(self._without) and self._without[at] == number
        return 2 * self.one(number) + (not dropped), number if dropped else 0

    def old(self, numbers: Array) -> Array:
        """The numbers in the first snapshot of those that come first among the new numbers from some on."""
        numbers = numbers - self.further.searchsorted(numbers)
        return numbers + (self._dropped - np.arange(len(self._dropped))).searchsorted(numbers, "right")

    def rows(self, first: Rows, second: Any, places: Array) -> Array:
        """Some rows of `column`."""
        if not len(self.further):
            return first(self.old(places))
        at = self.further.searchsorted(places)
        mine = self.further.take(at, mode="clip") == places
        result = first(self.old(places))
        result[mine] = np.asarray(second, result.dtype)[at[mine]]
        return result

    def column(self, first: Array, second: Any) -> Array:
        """A column of the first snapshot with the rows of the second; values have their new numbers."""
        if self.same:
            return first
        kept = np.delete(first, self._dropped) if len(self._dropped) else first
        return np.insert(kept, self._places, np.asarray(second, first.dtype)) if len(self._places) else kept


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
        """The texts of many numbers."""
        if len(numbers) <= 8:
            return [self[number] for number in numbers.tolist()]
        at = self._space.further
        before = at.searchsorted(numbers)
        mine = at.take(before, mode="clip") == numbers if len(at) else np.zeros(len(numbers), bool)
        if not mine.any():
            return self._first.take(numbers - before)
        result = iter(self._first.take((numbers - before)[~mine]))
        return [self._further[i] if own else next(result) for own, i in zip(mine.tolist(), before.tolist(), strict=True)]

    def longer(self, size: int) -> NDArray[np.int64]:
        """The numbers of the texts of more than `size` bytes."""
        mine = [at for at, text in zip(self._at, self._further, strict=True) if len(text.encode()) > size]
        return np.sort(np.concatenate([self._space.new(self._first.longer(size)), np.array(mine, np.int64)]))

    def find(self, text: str) -> int:
        """The number of a text, or -1."""
        found = self._numbers.get(text)
        return self._space.one(self._first.find(text)) if found is None else found

    def rank(self, text: str) -> int:
        """How many texts sort before this one."""
        return self._first.rank(text) + bisect_left(self._further, text)

    def columns(self) -> dict[str, Array]:
        """The texts as columns, for who reads these."""
        from condgraph.engine.snapshot.container import build_pool

        return build_pool([self[number] for number in range(len(self))])[0]


#: Some rows of a column, or all.
Rows: TypeAlias = Callable[[Array | None], Array]


class Maker(NamedTuple):
    """How a column is made: as a whole, and perhaps some of its rows, of which it has `length`."""

    whole: Callable[[], Array]
    some: Callable[[Array], Array] | None = None
    length: int = 0


class MergedArrays(MemoryArrays):
    """Columns that are made when they are first asked for."""

    def __init__(self, makers: dict[str, Maker], pool: MergedPool, size: int) -> None:
        super().__init__({})
        self._makers, self.pool, self._size = makers, pool, size

    def get(self, name: str) -> Array:
        """The column, made now or before."""
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
        """All columns."""
        return [*self._makers, "pool.bytes", "pool.offsets", "pool.buckets", "pool.items"]

    @property
    def size(self) -> int:
        """Bytes of the columns that are stored."""
        return self._size


class PartlyMerged(MergedArrays):
    """The same columns, of which only those rows are made that are asked for, as long as these are few."""

    def __init__(self, arrays: MergedArrays) -> None:
        super().__init__(arrays._makers, arrays.pool, arrays.size)
        # What one of both makes, both have.
        self.merged, self._arrays = arrays, arrays._arrays

    def get(self, name: str) -> Any:
        """The column, or what stands for it."""
        maker = self._makers.get(name)
        if maker is None or maker.some is None or name in self._arrays or maker.length < _FEW:
            return super().get(name)
        return PartialArray(maker.some, lambda: self.merged.get(name), maker.length)

    def view(self, name: str) -> Any:
        """The same, as a memoryview."""
        return self.get(name).data


def merged(first: Snapshot, removed: Numbers, second: Snapshot | None) -> Snapshot:
    """A snapshot without the `removed` statements (sorted), and with what a second one holds: statements
    that the first does not have, and entities, all of one source. The second calls entities of the first
    as that does, so that both have one order.

    Little of it is made while little of it is asked for: `whole` is quicker for many queries. Raises `CannotMergeError` for
    anything else.
    """
    return _Merge(first, removed, second).result()


def whole(snapshot: Snapshot) -> Snapshot:
    """The same snapshot, with each column made as a whole when it is first asked for."""
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
        """A column of the second snapshot."""
        return np.empty(0, I32) if self.d is None else self.d.arrays.get(name)

    def _texts(self) -> None:
        b, d = self.b, self.d
        count = 0 if d is None else len(d.texts)
        texts = [] if d is None else [d.texts[i] for i in range(count)]
        known = [b.texts.find(text) for text in texts]
        fresh = [i for i in range(count) if known[i] < 0]
        self.text = Space(len(b.texts), (), [b.texts.rank(texts[i]) for i in fresh])
        self.pool = MergedPool(b.texts, self.text, [texts[i] for i in fresh])
        # The last stands for no text.
        self.text_d = np.append(self.text.new(np.array(known, np.int64)), -1)
        self.text_d[fresh] = self.text.further

    def _owners(self) -> None:
        """The removed statements, as rows."""
        b, split = self.b, self.b.relations
        gone = self.removed
        self.gone_r, self.gone_a = gone[gone < split], gone[gone >= split] - split
        self.gone_p = b.predicates(gone.astype(I32)).astype(np.int64)
        self.gone_s = b.subjects(gone.astype(I32)).astype(np.int64)
        self.gone_o = self.get("rel.o").take(self.gone_r).astype(np.int64)
        q = self.get("q.offsets")
        self.gone_q = ranges(q.take(gone).astype(np.int64), q[1:].take(gone).astype(np.int64)) if len(q) else _NO
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
        """Of some entities those that nothing of the first snapshot names, but for removed statements."""
        b = self.b
        ends = Counter(self.gone_s.tolist()) + Counter(self.gone_o.tolist())
        result = set()
        for one in entities:
            number = np.array([one])
            if b.degree(number) + b.degree(number, backward=True) == ends[one]:
                result.add(one)
        for column in ("mem.e", "mem.c", "sub.c", "sub.p", "row.entity"):
            if result:
                result -= set(self.get(column)[np.isin(self.get(column), list(result))].tolist())
        if result:
            owner, kind, ref = self.get("q.owner"), self.get("q.kind"), self.get("q.ref")
            at = np.flatnonzero((kind == Kind.ENTITY) & np.isin(ref, list(result)))
            result -= set(ref[at[~np.isin(owner[at], self.removed)]].tolist())
        return result

    def _never_used(self, entities: list[int]) -> set[int]:
        """Of some entities those that nothing of the first snapshot names, removed statements included."""
        gone = {*self.gone_s.tolist(), *self.gone_o.tolist(), *self.get("q.ref")[self.gone_q].tolist()}
        return self._unused([one for one in entities if one not in gone])

    def _declared(self, entity: int) -> bool:
        """Whether a source declares an entity, as more than its statements do."""
        b = self.b
        rows = self.get("dec.src")[self.get("dec.e") == entity]
        if len(rows):
            return bool((rows != NO_ONE).any())
        plain = b.arrays.view("ent.name")[entity] == b.arrays.view("ent.id")[entity]
        return not plain or int(b.entity_kind[entity]) != EntityKind.ENTITY

    def _orphans(self, used: set[int]) -> list[int]:
        refs = self.get("q.ref")[self.gone_q][self.get("q.kind")[self.gone_q] == Kind.ENTITY]
        perhaps = {*self.gone_s.tolist(), *self.gone_o.tolist(), *refs.tolist()} - used
        perhaps = {one for one in perhaps if not self._declared(one)}
        return sorted(self._unused(sorted(perhaps)))

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
        np.subtract.at(left, self.gone_p, 1)
        np.subtract.at(left, self.get("q.key")[self.gone_q], 1)
        used = {number for number in known if number >= 0}
        dropped = [number for number in np.flatnonzero(left == 0).tolist() if number not in used]
        self.pred = Space(b.predicate_count, dropped, at)
        self.pred_d = self.pred.new(np.array(known, np.int64)) if known else _NO
        self.pred_d[fresh] = self.pred.further
        #: Where the rows of each predicate of the second snapshot begin in the first.
        places = iter(at)
        self.pred_at = [number if number >= 0 else next(places) for number in known]
        self.pred_known = known

    def _values(self, family: str, of: Callable[[str], Array], second: bool) -> dict[str, Array]:
        """The parts of cells by their new numbers."""
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

        # Searches in the same run begin with the same statements.
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
        self.rel = Space(b.relations, self.gone_r, places[: self.d_r])
        self.att = Space(b.statements - b.relations, self.gone_a, [at - b.relations for at in places[self.d_r :]])

    def _qualifiers(self) -> None:
        b, offsets = self.b, self.get("q.offsets")
        owners = self.of("q.owner").tolist()
        at = [int(offsets[self.at[owner]]) if len(offsets) else 0 for owner in owners]
        self.q = Space(len(self.get("q.owner")), self.gone_q, at)
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
        for one in self.gone_q.tolist():
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
        """The snapshot."""
        get, of = self.get, self.of
        makers: dict[str, Maker] = {}

        def put(
            name: str, space: Space, second: Any, new: Callable[[Array], Array] | None = None, first: Rows | None = None
        ) -> None:
            """A column with the rows of the second snapshot; those of the first are given their `new` numbers, or are others."""

            def own(places: Array | None) -> Array:
                column = get(name) if places is None else get(name).take(places, mode="clip")
                return column if new is None else np.asarray(new(column))

            rows = own if first is None else first
            some = (lambda places: space.rows(rows, second, places)) if self.b.arrays.length(name) else None
            makers[name] = Maker(lambda: space.column(rows(None), second), some, space.size)

        ent, text = self.ent, self.text
        fresh = np.array(self.fresh, np.int64)
        put("ent.id", ent, self.text_d[of("ent.id")[fresh]] if self.d else _NO, text.new)
        put("ent.name", ent, self.text_d[of("ent.name")[fresh]] if self.d else _NO, text.new)
        put("ent.kind", ent, of("ent.kind")[fresh] if self.d else _NO)
        put("ent.by_id", self.by_id, self.by_id_d, ent.new)
        for name, value in (("ent.source", -1), ("ent.row", 0)):
            if self.b.arrays.length(name):
                put(name, ent, np.full(len(fresh), value))
        put("row.key", Space(self.b.arrays.length("row.key")), _NO)
        put("row.entity", Space(self.b.arrays.length("row.entity")), _NO, ent.new)
        put("pred.text", self.pred, self._fresh_predicates(), text.new)

        put("rel.s", self.rel, self.ent_d[self.d_s[: self.d_r]], ent.new)
        put("rel.o", self.rel, self.ent_d[of("rel.o")], ent.new)
        put("att.s", self.att, self.ent_d[self.d_s[self.d_r :]], ent.new)
        raws = of("att.raw")
        if self.b.arrays.length("att.raw") or (raws >= 0).any():
            more = self.text_d[raws] if len(raws) else np.full(len(self.at) - self.d_r, -1)
            none = np.full(self.b.statements - self.b.relations, -1, I32)
            put("att.raw", self.att, more, text.new, None if self.b.arrays.length("att.raw") else lambda _: none)
        for family, space, cells in (("att", self.att, self.att_d), ("q", self.q, self.q_d)):
            for part in ("kind", "a", "b", "precision"):
                put(f"{family}.{part}", space, cells[part])
            put(f"{family}.unit", space, cells["unit"], text.new)
            put(f"{family}.ref", space, cells["ref"], first=partial(self._references, family))
        source, sources = self._sources(makers)
        put("st.src", self.stmt, np.full(len(self.at), source))
        put("st.row", self.stmt, of("st.row"))
        places = get("prov.stmt")
        gone = np.concatenate([_NO, ranges(places.searchsorted(self.removed), places.searchsorted(self.removed, "right"))])
        prov = Space(len(places), gone.tolist())
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
        val, mine = get("val.stmt"), of("val.stmt").tolist()
        at = val.searchsorted(self.removed)
        stays = at[val.take(at, mode="clip") == self.removed] if len(val) else at[:0]
        space = Space(len(val), stays.tolist(), [int(val.searchsorted(self.at[i])) for i in mine])
        put("val.stmt", space, self.stmt.further[mine] if mine else _NO, self.stmt.new)
        for part in ("val.start", "val.end"):
            put(part, space, of(part))

        for name in ("mem.e", "mem.c", "sub.c", "sub.p", "con.entity", "con.items"):
            put(name, Space(self.b.arrays.length(name)), _NO, ent.new)
        for name in ("mem.src", "mem.row", "sub.src", "sub.row", "con.offsets", "dec.known"):
            put(name, Space(self.b.arrays.length(name)), _NO)
        self._declarations(makers, source)
        self._schema(makers, source, sources, gone)
        arrays = PartlyMerged(MergedArrays(makers, self.pool, self.b.arrays.size))
        return Snapshot(arrays, {**self.b.about, "counts": self._counts(sources)}, texts=self.pool)

    def _fresh_predicates(self) -> Array:
        names = [] if self.d is None else [self.d.predicate_name(i) for i, n in enumerate(self.pred_known) if n < 0]
        return np.array([self.pool.find(name) for name in names], np.int64)

    def _references(self, family: str, places: Array | None) -> Array:
        """The texts and entities that cells name, by their new numbers."""
        column, kinds = (
            one if places is None else one.take(places, mode="clip")
            for one in (self.get(f"{family}.ref"), self.get(f"{family}.kind"))
        )
        entity = kinds == Kind.ENTITY
        if not entity.any():
            return np.asarray(self.text.new(column))
        result: Array = np.where(entity, self.ent.new(column), self.text.new(column)).astype(I32)
        return result

    def _sources(self, makers: dict[str, Maker]) -> tuple[int, int]:
        """The number of the source of what is added, and how many sources there are."""
        names = self.get("src.name")
        number = -1 if self.d is None else self.pool.find(self.d.source_of(0).name) if len(self.of("src.name")) else -1
        at = np.flatnonzero(self.text.new(names) == number)
        new = number >= 0 and not len(at)
        for part in ("name", "location", "format", "content", "terms"):
            more = self.text_d[self.of(f"src.{part}")] if new else _NO
            column = np.concatenate([self.text.new(self.get(f"src.{part}")), more]).astype(I32)
            makers[f"src.{part}"] = Maker(lambda column=column: column)  # type: ignore[misc]
        return (len(names) if new else int(at[0]) if len(at) else -1), len(names) + new

    def _offsets(self, makers: dict[str, Maker]) -> None:
        """Where the rows of each number begin in columns that are sorted by these."""
        get, split, many = self.get, len(self.gone_r), self.d_r
        p, s, o = (
            new[numbers] if len(numbers) else _NO
            for new, numbers in ((self.pred_d, self.d_p), (self.ent_d, self.d_s), (self.ent_d, self.of("rel.o")))
        )
        keys, owners, mine = get("q.key")[self.gone_q], get("q.owner")[self.gone_q], self.stmt.further[self.of("q.owner")]
        for name, gone, more, space in (
            ("rel", self.gone_p[:split], p[:many], self.pred),
            ("att", self.gone_p[split:], p[many:], self.pred),
            ("qkey", keys, self.qkey_d, self.pred),
            ("out", self.gone_s, s, self.ent),
            ("in", self.gone_o, o, self.ent),
            ("q", owners, mine, self.stmt),
        ):
            if name != "q" or self.q.size:
                self._counted(makers, f"{name}.offsets", np.sort(gone), np.sort(more), space)

    def _counted(self, makers: dict[str, Maker], name: str, gone: Array, more: Array, space: Space) -> None:
        """Offsets of a merged column: rows of some numbers of the first snapshot are `gone`, and there are `more` of new ones."""

        def some(places: Array | None) -> Array:
            places = np.arange(space.size + 1) if places is None else places
            at = space.old(places)
            # A graph without any qualifiers has no offsets of these.
            first = self.get(name).take(at) if self.b.arrays.length(name) else np.zeros(len(at), I32)
            result: Array = (first - gone.searchsorted(at) + more.searchsorted(places)).astype(first.dtype)
            return result

        makers[name] = Maker(lambda: some(None), some, space.size + 1)

    def _adjacent(self, put: Callable[..., None]) -> None:
        """Statements by subject, relations by object."""
        b = self.b
        for name, gone, owners, mine, ends in (
            ("out", self.removed, self.gone_s, range(len(self.at)), self.d_s),
            ("in", self.gone_r, self.gone_o, range(self.d_r), self.of("rel.o")),
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
        """Runs of one predicate (or key), type and unit."""
        get, split, many = self.get, len(self.gone_r), self.d_r
        p = self.pred_d[self.d_p[many:]] if len(self.d_p) else _NO
        for prefix, mark, family, gone, keys, more, cells in (
            ("grp", "pred", "att", self.gone_a, self.gone_p[split:], p, self.att_d),
            ("qgrp", "key", "q", self.gone_q, get("q.key")[self.gone_q], self.qkey_d, self.q_d),
        ):
            firsts = [get(f"{prefix}.{part}").tolist() for part in (mark, "kind", "unit")]
            before = Counter(dict(zip(zip(*firsts, strict=True), np.diff(get(f"{prefix}.start")).tolist(), strict=True)))
            columns = [keys, get(f"{family}.kind")[gone], get(f"{family}.unit")[gone]]
            before.subtract(zip(*(column.tolist() for column in columns), strict=True))
            counts = _renumbered(before, (self.pred.one, int, self.text.one))
            counts.update(zip(more.tolist(), cells["kind"].tolist(), cells["unit"].tolist(), strict=True))
            rows = sorted(key for key, count in counts.items() if count)
            starts = np.zeros(len(rows) + 1, np.int64)
            np.cumsum([counts[row] for row in rows], out=starts[1:])
            for i, part in enumerate((mark, "kind", "unit")):
                column = np.array([row[i] for row in rows], get(f"{prefix}.{part}").dtype)
                makers[f"{prefix}.{part}"] = Maker(lambda column=column: column)  # type: ignore[misc]
            makers[f"{prefix}.start"] = Maker(lambda starts=starts: starts)  # type: ignore[misc]

    def _declarations(self, makers: dict[str, Maker], source: int) -> None:
        """Who declares what: what the second snapshot declares, and what the first source does of
        entities that are in use only now.
        """
        get = self.get
        rows: list[tuple[int, int, int, int, int]] = []
        if self.d is not None:
            said = declared(self.d)
            said = said.take(said.src >= 0)
            for e, name, kind, row in zip(said.e.tolist(), said.name.tolist(), said.kind.tolist(), said.row.tolist(), strict=True):
                rows.append((int(self.ent_d[e]), source, int(self.text_d[name]) if name >= 0 else -1, kind, row))
            ids, names = self.b.arrays.view("ent.id"), self.b.arrays.view("ent.name")
            plain = [n for n in self.known if n >= 0 and ids[n] == names[n]]
            stored = get("dec.e")[np.isin(get("dec.e"), plain)].tolist() if plain else ()
            plain = [n for n in plain if n not in stored and int(self.b.entity_kind[n]) == EntityKind.ENTITY]
            rows += [(self.ent.one(n), 0, -1, int(EntityKind.ENTITY), -1) for n in self._never_used(plain)]

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
        get, of = self.get, self.of
        parts = ("pred", "key", "kind", "unit")
        firsts = [get(f"sch.q.{part}").tolist() for part in parts]
        before = Counter(dict(zip(zip(*firsts, strict=True), get("sch.q.count").tolist(), strict=True)))
        gone = self.gone_q
        at = self.removed.searchsorted(get("q.owner")[gone])
        columns = [self.gone_p[at], *(get(f"q.{part}")[gone] for part in parts[1:])]
        before.subtract(zip(*(column.tolist() for column in columns), strict=True))
        counts = _renumbered(before, (self.pred.one, self.pred.one, int, self.text.one))
        p = self.pred_d[self.d_p] if len(self.d_p) else _NO
        mine = p[of("q.owner")] if len(of("q.owner")) else _NO
        counts.update(zip(mine.tolist(), self.qkey_d.tolist(), self.q_d["kind"].tolist(), self.q_d["unit"].tolist(), strict=True))
        rows = sorted(key for key, count in counts.items() if count)
        for i, part in enumerate(parts):
            column = np.array([row[i] for row in rows], I32)
            makers[f"sch.q.{part}"] = Maker(lambda column=column: column)  # type: ignore[misc]
        makers["sch.q.count"] = Maker(lambda: np.array([counts[row] for row in rows], np.int64))

        firsts = [get("sch.s.pred").tolist(), get("sch.s.src").tolist()]
        before = Counter(dict(zip(zip(*firsts, strict=True), get("sch.s.count").tolist(), strict=True)))
        before.subtract(zip(self.gone_p.tolist(), self.b.source[self.removed].tolist(), strict=True))
        at = self.removed.searchsorted(get("prov.stmt")[places])
        before.subtract(zip(self.gone_p[at].tolist(), get("prov.src")[places].tolist(), strict=True))
        pairs = _renumbered(before, (self.pred.one, int))
        pairs.update((one, source) for one in p.tolist())
        twos = sorted(key for key, count in pairs.items() if count)
        for i, part in enumerate(("pred", "src")):
            column = np.array([row[i] for row in twos], I32)
            makers[f"sch.s.{part}"] = Maker(lambda column=column: column)  # type: ignore[misc]
        makers["sch.s.count"] = Maker(lambda: np.array([pairs[row] for row in twos], np.int64))
        if sources > 1:
            makers["bysrc.items"] = Maker(lambda: self._by_source(source, sources)[0])
            makers["bysrc.offsets"] = Maker(lambda: self._by_source(source, sources)[1])

    def _by_source(self, source: int, sources: int) -> tuple[Array, Array]:
        """The statements of each source."""
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
        kinds, split = self.b.entity_kind, len(self.gone_r)
        counts["entities"] += len(self.fresh) - len(self.dropped)
        counts["relations"], counts["attributes"] = self.rel.size, self.att.size
        counts["qualifiers"], counts["predicates"], counts["sources"] = self.q.size, self.pred.size, sources
        concept = [bool(n >= 0 and kinds[n] == EntityKind.CONCEPT) for n in self.known]
        for name, gone, more in (
            ("concept_subjects", self.gone_s[:split], self.d_s[: self.d_r]),
            ("concept_objects", self.gone_o, self.of("rel.o")),
            ("concept_attributes", self.gone_s[split:], self.d_s[self.d_r :]),
        ):
            counts[name] += sum(concept[n] for n in more.tolist()) - int((kinds[gone] == EntityKind.CONCEPT).sum())
        for family, gone in (("att", self.gone_a), ("q", self.gone_q)):
            for of, at in ((self.of, slice(None)), (self.get, gone)):
                count = int(((of(f"{family}.kind")[at] == Kind.QUANTITY) & (of(f"{family}.ref")[at] >= 0)).sum())
                counts["inexact"] += count if of == self.of else -count
        return counts


def _renumbered(counts: Counter[tuple[int, ...]], news: tuple[Callable[[int], int], ...]) -> Counter[tuple[int, ...]]:
    """What is left of some counts, by new numbers."""
    left = {key: count for key, count in counts.items() if count}
    return Counter({tuple(new(one) for new, one in zip(news, key, strict=True)): count for key, count in left.items()})


def _order(number: Any) -> tuple[int, int]:
    """`Space.order` of a new number."""
    return 2 * int(number) + 1, 0


def _sortable(kind: int, a: int, ref: Any) -> Any:
    """`cells.sortable` of one cell."""
    if kind in (Kind.TEXT, Kind.ENTITY):
        return ref
    return a ^ 0x7FFF_FFFF_FFFF_FFFF if kind == Kind.QUANTITY and a < 0 else a
