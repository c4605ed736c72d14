"""An open snapshot: the access paths for execution, lowering and reading back, and the numbers of entities, concepts,
predicates and sources by name and id.

Everything is a number: entities 0..E-1 in the order of answers (name, then id), statements 0..N-1 (relations before
attributes), predicates 0..P-1 by name. `layout` documents the columns.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.bounds import different, remembered
from condgraph.engine.facts import Entity, EntityKind, Ref, Source
from condgraph.engine.snapshot.cells import PARTS, decode_values
from condgraph.engine.snapshot.container import ArrayFile, MemoryArrays, Pool
from condgraph.engine.snapshot.directory import read_generation
from condgraph.engine.snapshot.ordered import Ordered
from condgraph.engine.values import NO_UNIT, Kind, Value

if TYPE_CHECKING:
    from condgraph.engine.algebra import Node
    from condgraph.engine.schema import Schema
    from condgraph.engine.snapshot.build import Builder


Numbers = NDArray[np.int32]
NONE: Final = np.empty(0, np.int32)
#: The number of names of entities that are cached.
_MAX_CACHED_NAMES: Final = 65_536


def make_room(cache: dict[Any, Any]) -> None:
    """Clear a cache if it has grown too large."""
    if len(cache) > 4096:
        cache.clear()


#: The size in bytes of the cached ends of predicates.
_MAX_ENDS_BYTES: Final = 64_000_000


class Snapshot:
    """One generation of a graph, read-only. Opening maps it; nothing is read before it is accessed."""

    #: Returns the query of a plan in a server's language; None if the snapshot is only a part of a graph.
    translate: Callable[[Snapshot, Node, str], str] | None = None

    def __init__(self, arrays: ArrayFile, about: dict[str, Any] | None = None, texts: Pool | None = None) -> None:
        self.arrays = arrays
        self.texts = Pool(arrays) if texts is None else texts
        self._predicates = arrays.view("pred.text")
        self._name_cache: dict[int, str] = {}
        self._differ: bool | None = None
        self.about = about or {}
        self.counts: dict[str, int] = self.about.get("counts", {})
        get, view = arrays.get, arrays.view
        self.relation_subject, self.relation_object = get("rel.s"), get("rel.o")
        self.attribute_subject = get("att.s")
        self.relation_offsets, self.attribute_offsets = view("rel.offsets"), view("att.offsets")
        self.out_items, self.in_items = get("out.items"), get("in.items")
        self._out_view, self._in_view = view("out.items"), view("in.items")
        self._concepts, self._con_offsets = view("con.entity"), view("con.offsets")
        #: The numbers of entities, relations and statements.
        self.entities = arrays.length("ent.id")
        self.relations = len(self.relation_subject)
        self.statements = self.relations + len(self.attribute_subject)
        #: Whether some number is not exactly its float.
        self.inexact = self.counts.get("inexact", 0) > 0
        self._masks: dict[tuple[int, ...], NDArray[np.bool_]] = {}
        self._set_cache: dict[int, tuple[int, ...]] = {}
        self._members: dict[tuple[int, ...], Numbers] = {}
        self._ends: dict[tuple[tuple[str, ...] | None, bool], tuple[Numbers, Numbers]] = {}
        self._schema: Schema | None = None

    @cached_property
    def entity_id(self) -> Numbers:
        """The id of each entity, as the number of its text."""
        return self.arrays.get("ent.id")

    @cached_property
    def entity_name(self) -> Numbers:
        """The name of each entity, as the number of its text."""
        return self.arrays.get("ent.name")

    @cached_property
    def entity_kind(self) -> NDArray[np.int8]:
        """The kind of each entity (`EntityKind`)."""
        return self.arrays.get("ent.kind")

    @cached_property
    def _name_view(self) -> memoryview:
        return self.arrays.view("ent.name")

    @cached_property
    def _id_view(self) -> memoryview:
        return self.arrays.view("ent.id")

    @cached_property
    def _by_id(self) -> memoryview:
        return self.arrays.view("ent.by_id")

    @remembered
    def named(self, name: str) -> Numbers:
        """Return the entities and concepts with exactly this name, in order; empty if there are none."""
        text = self.texts.find(name)
        if text < 0:
            return NONE
        low = bisect_left(self._name_view, text)
        return np.arange(low, bisect_right(self._name_view, text, low), dtype=np.int32)

    def name_rank(self, text: int) -> int:
        """Return the first entity whose name is not before the text of this number; entities are numbered by name."""
        return bisect_left(self._name_view, text)

    @remembered
    def concepts_named(self, name: str) -> tuple[int, ...]:
        """Return the concepts with exactly this name."""
        kinds = self.entity_kind
        return tuple(number for number in self.named(name).tolist() if kinds[number] == EntityKind.CONCEPT)

    def identified(self, ident: str) -> int:
        """Return the entity with this id, or -1."""
        text = self.texts.find(ident)
        if text < 0:
            return -1
        ids = self._id_view
        position = bisect_left(self._by_id, text, key=ids.__getitem__)
        return self._by_id[position] if position < len(self._by_id) and ids[self._by_id[position]] == text else -1

    def entity(self, number: int) -> Entity:
        """Return an entity as a record."""
        rows = self.arrays.get("ent.row")
        return Entity(
            self.texts[self._id_view[number]],
            self.texts[self._name_view[number]],
            EntityKind(int(self.entity_kind[number])),
            int(rows[number]) if len(rows) else 0,
        )

    def name(self, number: int) -> str:
        return self.texts[self._name_view[number]]

    def names_of(self, numbers: list[int]) -> list[str]:
        """Return the names of some entities; recent ones are cached."""
        cache = self._name_cache
        try:
            return [cache[number] for number in numbers]
        except KeyError:
            result = self.texts.take(self.entity_name[numbers])
            if len(cache) + len(result) > _MAX_CACHED_NAMES:
                self._name_cache = {}
            if len(result) <= _MAX_CACHED_NAMES:
                self._name_cache.update(zip(numbers, result, strict=True))
            return result

    @property
    def names_differ(self) -> bool:
        """Whether no two entities share a name."""
        if self._differ is None:
            names = self.entity_name
            self._differ = bool((names[1:] != names[:-1]).all())
        return self._differ

    def ident(self, number: int) -> str:
        return self.texts[self._id_view[number]]

    @remembered
    def predicate(self, name: str) -> int:
        """Return the number of a predicate or qualifier key, or -1."""
        text = self.texts.find(name)
        position = bisect_left(self._predicates, text) if text >= 0 else 0
        is_known = text >= 0 and position < len(self._predicates) and self._predicates[position] == text
        return position if is_known else -1

    def predicate_name(self, number: int) -> str:
        """Return the name of a predicate or qualifier key."""
        return self.texts[self._predicates[number]]

    @property
    def folder(self) -> Path | None:
        """The folder of the generation; None in memory."""
        return None if isinstance(self.arrays, MemoryArrays) else self.arrays.path.parent

    @cached_property
    def formed(self) -> bool:
        """Whether any text has a form (`values.FORMS`)."""
        get = self.arrays.get
        return any(bool(((get(f"{prefix}.kind") == Kind.TEXT) & (get(f"{prefix}.unit") >= 0)).any()) for prefix in ("grp", "qgrp"))

    @property
    def predicate_count(self) -> int:
        """The number of predicates and qualifier keys."""
        return len(self._predicates)

    def source_of(self, number: int) -> Source:
        """Return a source by its number."""
        columns = (self.arrays.get(f"src.{part}") for part in ("name", "location", "format", "content", "terms"))
        # Stores of earlier versions lack the content, or the terms.
        parts = [self.texts[int(column[number])] if len(column) else "" for column in columns]
        loaded = self.about.get("loads", {}).get(parts[0])
        load_time = None if loaded is None else datetime.fromtimestamp(loaded, UTC)
        return Source(*parts, loaded=load_time, store=self.about.get("stores", {}).get(parts[0], ""))

    @classmethod
    def open(cls, directory: Path, version: str | None = None) -> Snapshot | None:
        """Map the current generation of a graph's directory, or a stored earlier version; None if there is none."""
        generation = read_generation(directory, version)
        return None if generation is None else cls(generation[1], generation[0])

    @classmethod
    def of(cls, columns: Mapping[str, NDArray[Any]], counts: dict[str, int], further: Mapping[str, Any] | None = None) -> Snapshot:
        """Return a snapshot in memory; `further` is stored in `about`."""
        return cls(MemoryArrays(columns), {"counts": counts, "generation": "memory", **(further or {})})

    @property
    def further(self) -> dict[str, Any]:
        """The data stored with a generation in addition to its columns: `settings` of the graph, and `loads` with the
        time of the last load of each source, in seconds of Unix time.
        """
        return {part: self.about[part] for part in ("settings", "loads") if part in self.about}

    def with_settings(self, settings: Mapping[str, Any]) -> Snapshot:
        """Return the same snapshot with other settings of the graph."""
        return Snapshot(self.arrays, {**self.about, "settings": dict(settings)})

    # Columns that must be decoded are read on first access.

    @cached_property
    def source(self) -> Numbers:
        """The first source of each statement."""
        return self.arrays.get("st.src")

    @cached_property
    def row(self) -> Numbers:
        """The row of each statement in its first source."""
        return self.arrays.get("st.row")

    @cached_property
    def _out_offsets(self) -> memoryview:
        return self.arrays.view("out.offsets")

    @cached_property
    def _in_offsets(self) -> memoryview:
        return self.arrays.view("in.offsets")

    @property
    def schema(self) -> Schema:
        """The schema of this graph, for lowering."""
        if self._schema is None:
            from condgraph.engine.schema import Schema

            self._schema = Schema(self)
        return self._schema

    # -- sets of entities --------------------------------------------------------------------------

    @remembered
    def every(self, kinds: tuple[int, ...]) -> Numbers:
        """Return all entities of these kinds."""
        return np.flatnonzero(np.isin(self.entity_kind, kinds)).astype(np.int32)

    def members(self, concepts: tuple[int, ...]) -> Numbers:
        """Return the entities (not concepts) in any of these concepts (entity numbers), including subclasses."""
        result = self._members.get(concepts)
        if result is None:
            items, parts = self.arrays.get("con.items"), []
            for concept in concepts:
                position = bisect_left(self._concepts, concept)
                if position < len(self._concepts) and self._concepts[position] == concept:
                    parts.append(items[self._con_offsets[position] : self._con_offsets[position + 1]])
            result = parts[0] if len(parts) == 1 else different(np.concatenate(parts)) if parts else NONE
            self._members[concepts] = result
            self._set_cache[id(result)] = concepts
        return result

    def mask_of(self, numbers: Numbers) -> NDArray[np.bool_] | None:
        """Return the mask of a set that `members` cached, by identity; None for other sets."""
        concepts = self._set_cache.get(id(numbers))
        return None if concepts is None else self.member_mask(concepts)

    def member_mask(self, concepts: tuple[int, ...]) -> NDArray[np.bool_]:
        """Return `members` as one truth value for each entity; the last few are cached."""
        result = self._masks.get(concepts)
        if result is None:
            result = np.zeros(self.entities, bool)
            result[self.members(concepts).astype(np.intp)] = True
            # Bounded in bytes, so that masks do not fill the memory for large graphs.
            while self._masks and (len(self._masks) + 1) * self.entities > 64_000_000:
                del self._masks[next(iter(self._masks))]
            self._masks[concepts] = result
        return result

    # -- statements of entities --------------------------------------------------------------------

    def outgoing(self, entity: int, low: int, high: int) -> Numbers:
        """Return the statements numbered `[low, high)` with this subject."""
        return self._slice(self._out_view, self.out_items, self._out_offsets, entity, low, high)

    def incoming(self, entity: int, low: int, high: int) -> Numbers:
        """Return the relations numbered `[low, high)` with this object."""
        return self._slice(self._in_view, self.in_items, self._in_offsets, entity, low, high)

    @staticmethod
    def _slice(view: memoryview, items: Numbers, offsets: memoryview, entity: int, low: int, high: int) -> Numbers:
        first, last = offsets[entity], offsets[entity + 1]
        begin = bisect_left(view, low, first, last)
        return items[begin : bisect_left(view, high, begin, last)]

    def ends(self, predicates: tuple[str, ...] | None, *, backward: bool = False) -> tuple[Numbers, Numbers] | None:
        """Return the ends of the relations of these predicates from each entity: offsets by entity, and the distinct
        ends, sorted for each. `backward` leads from object to subject. The last few are cached; None if they need too
        much memory.
        """
        result = self._ends.get((predicates, backward))
        if result is None:
            runs = self.runs(predicates, True, False)
            if 4 * (self.entities + sum(high - low for low, high in runs)) > _MAX_ENDS_BYTES // 4:
                return None
            near = np.concatenate([self.relation_subject[low:high] for low, high in runs] or [NONE])
            far = np.concatenate([self.relation_object[low:high] for low, high in runs] or [NONE])
            if backward:
                near, far = far, near
            pairs = different(near.astype(np.int64) << 32 | far)
            offsets = np.zeros(self.entities + 1, np.int32)
            np.cumsum(np.bincount(pairs >> 32, minlength=self.entities), out=offsets[1:])
            result = offsets, (pairs & 0xFFFFFFFF).astype(np.int32)
            while (
                self._ends
                and sum(starts.nbytes + entries.nbytes for starts, entries in [*self._ends.values(), result]) > _MAX_ENDS_BYTES
            ):
                self._ends.pop(next(iter(self._ends)), None)
            self._ends[predicates, backward] = result
        return result

    def touching(self, entities: Numbers, *, backward: bool = False) -> Numbers:
        """Return all statements with a subject (backward: relations with an object) among these entities, unordered."""
        offsets = self.arrays.get("in.offsets" if backward else "out.offsets")
        return take_ranges(self.in_items if backward else self.out_items, offsets.take(entities), offsets[1:].take(entities))

    def degree(self, entities: Numbers, *, backward: bool = False) -> int:
        """Return the number of statements of `touching`."""
        offsets = self.arrays.get("in.offsets" if backward else "out.offsets")
        return int((offsets[1:].take(entities) - offsets.take(entities)).sum())

    def split(self, statements: Numbers) -> int:
        """Return how many of the sorted statements are relations."""
        if not len(statements) or statements[0] >= self.relations:
            return 0
        if statements[-1] < self.relations:
            return len(statements)
        return int(statements.searchsorted(self.relations))

    def subjects(self, statements: Numbers) -> Numbers:
        """Return the subject of each of the sorted statements."""
        split = self.split(statements)
        if split == len(statements):
            return self.relation_subject.take(statements)
        attributes = self.attribute_subject.take(statements[split:] - np.int32(self.relations))
        return attributes if not split else np.concatenate([self.relation_subject.take(statements[:split]), attributes])

    def predicates(self, statements: Numbers) -> Numbers:
        """Return the predicate of each statement."""
        out = np.empty(len(statements), np.int32)
        relation = statements < self.relations
        for family, mask, base in (("rel", relation, 0), ("att", ~relation, self.relations)):
            offsets = self.arrays.get(f"{family}.offsets")
            out[mask] = np.searchsorted(offsets, statements[mask] - base, side="right") - 1
        return out

    def predicate_of(self, statement: int) -> int:
        """Return the predicate of one statement."""
        if statement < self.relations:
            return bisect_right(self.relation_offsets, statement) - 1
        return bisect_right(self.attribute_offsets, statement - self.relations) - 1

    @remembered
    def runs(self, predicates: tuple[str, ...] | None, relations: bool, attributes: bool) -> list[tuple[int, int]]:
        """Return the runs of statements with these predicates (None: any), relations and attributes separately. The
        list must not be changed.
        """
        families = []
        if relations:
            families.append((0, self.relation_offsets))
        if attributes:
            families.append((self.relations, self.attribute_offsets))
        if predicates is None:
            runs = [(base, base + offsets[-1]) for base, offsets in families if len(offsets)]
        else:
            numbers = sorted({number for name in predicates if (number := self.predicate(name)) >= 0})
            runs = [(base + offsets[at], base + offsets[at + 1]) for base, offsets in families for at in numbers]
        return [(low, high) for low, high in runs if low < high]

    @remembered
    def groups(self, low: int, high: int) -> list[tuple[Kind, str, int, int]]:
        """Return the runs of the attributes `[low, high)` (counted from 0) of one type and unit: (type, unit, begin,
        end).
        """
        starts = self.arrays.view("grp.start")
        runs = self._typed_runs("grp", bisect_right(starts, low) - 1, bisect_left(starts, high))
        return [(kind, unit, max(begin, low), min(end, high)) for kind, unit, begin, end in runs]

    @remembered
    def qualifier_groups(self, key: int) -> list[tuple[Kind, str, int, int]]:
        """Return the runs of the qualifiers of a key of one type and unit: (type, unit, begin, end), as places in
        their order.
        """
        keys = self.arrays.view("qgrp.key")
        return self._typed_runs("qgrp", bisect_left(keys, key), bisect_right(keys, key))

    def _typed_runs(self, prefix: str, first: int, last: int) -> list[tuple[Kind, str, int, int]]:
        kinds, units, starts = (self.arrays.view(f"{prefix}.{name}") for name in ("kind", "unit", "start"))
        return [
            (Kind(kinds[run]), self.texts[units[run]] if units[run] >= 0 else NO_UNIT, starts[run], starts[run + 1])
            for run in range(first, last)
        ]

    def qualifiers(self, statements: Numbers) -> tuple[Numbers, NDArray[np.int64]]:
        """Return the qualifiers of sorted statements: the position of each one's statement in the input, and its
        number.
        """
        offsets = self.arrays.get("q.offsets")
        if not len(offsets):
            return NONE, np.empty(0, np.int64)
        begin, end = offsets.take(statements), offsets[1:].take(statements)
        counts = end - begin
        return np.repeat(np.arange(len(statements), dtype=np.int32), counts), ranges(begin, end)

    def sourced(self, source: int) -> Numbers:
        """Return the statements of one source, sorted."""
        several = len(self.arrays.get("src.name")) > 1
        return self._of_source(source) if several else np.arange(self.statements, dtype=np.int32)

    @remembered
    def _of_source(self, source: int) -> Numbers:
        offsets = self.arrays.get("bysrc.offsets")
        result: Numbers = self.arrays.get("bysrc.items")[offsets[source] : offsets[source + 1]]
        # Generations of version 0.1 repeat a statement for each of its rows.
        return result if (result[1:] > result[:-1]).all() else different(result)

    # -- values ------------------------------------------------------------------------------------

    @remembered
    def ordered(self, family: str) -> Ordered:
        """Return the cells of attributes ("att") or qualifiers ("q"), for access one at a time and by value."""
        return Ordered(self.arrays, family, "qkey.items" if family == "q" else "")

    def value(self, family: str, number: int) -> Ref | Value:
        """Return the cell of an attribute ("att", counted from 0) or a qualifier ("q") as a value."""
        return self.values(family, slice(number, number + 1))[0]

    def values(self, family: str, numbers: NDArray[Any] | slice) -> list[Ref | Value]:
        """Return the cells with these numbers as values."""
        cells = {part: self.arrays.get(f"{family}.{part}")[numbers] for part, _ in PARTS}
        return decode_values(cells, self.texts.__getitem__, self.ident)

    def seed(
        self, builder: Builder, without: Iterable[str] = (), stays: NDArray[np.bool_] | None = None, *, unused: bool = True
    ) -> None:
        """Fill a builder with the content of this snapshot (see `readback.seed`)."""
        from condgraph.engine.snapshot.readback import seed

        seed(self, builder, without, stays, unused=unused)


def ranges(begin: NDArray[Any], end: NDArray[Any]) -> NDArray[np.int64]:
    """Return the numbers of `[begin[0], end[0])`, `[begin[1], end[1])`, ... concatenated."""
    counts = end - begin
    ends = counts.cumsum()
    total = int(ends[-1]) if len(ends) else 0
    numbers = np.arange(total, dtype=np.int64)
    numbers += (begin - ends + counts).repeat(counts)
    return numbers


def take_ranges(items: Numbers, begin: NDArray[Any], end: NDArray[Any]) -> Numbers:
    """Return the items at these ranges."""
    return items.take(ranges(begin, end))
