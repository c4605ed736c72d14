"""An open snapshot: the access paths that execution, lowering and reading back use, and which entity,
concept, predicate and source has which name, id and number.

Everything is a number: entities 0..E-1 in the order of answers (name, then id), statements 0..N-1
(relations before attributes), predicates 0..P-1 by name. `layout` says what each column holds.
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

from condgraph.engine.bounds import different
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
#: Names of entities that are kept as texts.
_MOST_NAMES: Final = 65_536


def make_room(cache: dict[Any, Any]) -> None:
    """Keep a cache of what is quickly worked out again within bounds."""
    if len(cache) > 4096:
        cache.clear()


#: Bytes of the ends of predicates that are kept.
_MOST_ENDS: Final = 64_000_000


class Snapshot:
    """One generation of a graph, read-only. Opening maps it; nothing is read until it is asked for."""

    #: Gives the query of a plan in a server's language; None where the snapshot is a part of a graph.
    translate: Callable[[Snapshot, Node, str], str] | None = None

    def __init__(self, arrays: ArrayFile, about: dict[str, Any] | None = None, texts: Pool | None = None) -> None:
        self.arrays = arrays
        self.texts = Pool(arrays) if texts is None else texts
        self._predicates = arrays.view("pred.text")
        self._names: dict[str, Numbers] = {}
        self._concept_names: dict[str, tuple[int, ...]] = {}
        self._predicate_numbers: dict[str, int] = {}
        self._known_names: dict[int, str] = {}
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
        #: How many entities, relations and statements there are.
        self.entities = arrays.length("ent.id")
        self.relations = len(self.relation_subject)
        self.statements = self.relations + len(self.attribute_subject)
        #: Whether some number is not exactly its float.
        self.inexact = self.counts.get("inexact", 0) > 0
        self._masks: dict[tuple[int, ...], NDArray[np.bool_]] = {}
        self._kept_sets: dict[int, tuple[int, ...]] = {}
        self._members: dict[tuple[int, ...], Numbers] = {}
        self._everything: dict[tuple[int, ...], Numbers] = {}
        self._groups: dict[tuple[int, int], list[tuple[Kind, str, int, int]]] = {}
        self._qualifier_groups: dict[int, list[tuple[Kind, str, int, int]]] = {}
        self._runs: dict[tuple[tuple[str, ...] | None, bool, bool], list[tuple[int, int]]] = {}
        self._ordered: dict[str, Ordered] = {}
        self._sourced: dict[int, Numbers] = {}
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
        """What each entity is (`EntityKind`)."""
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

    def named(self, name: str) -> Numbers:
        """The entities and concepts of exactly this name, in order; empty where there are none."""
        result = self._names.get(name)
        if result is None:
            text = self.texts.find(name)
            if text < 0:
                return NONE
            low = bisect_left(self._name_view, text)
            result = np.arange(low, bisect_right(self._name_view, text, low), dtype=np.int32)
            make_room(self._names)
            self._names[name] = result
        return result

    def name_rank(self, text: int) -> int:
        """The first entity whose name is not before the text of this number; entities are numbered
        by name.
        """
        return bisect_left(self._name_view, text)

    def concepts_named(self, name: str) -> tuple[int, ...]:
        """The concepts of exactly this name."""
        result = self._concept_names.get(name)
        if result is None:
            kinds = self.entity_kind
            result = tuple(n for n in self.named(name).tolist() if kinds[n] == EntityKind.CONCEPT)
            make_room(self._concept_names)
            self._concept_names[name] = result
        return result

    def identified(self, ident: str) -> int:
        """The entity of this id, or -1."""
        text = self.texts.find(ident)
        if text < 0:
            return -1
        ids = self._id_view
        at = bisect_left(self._by_id, text, key=ids.__getitem__)
        return self._by_id[at] if at < len(self._by_id) and ids[self._by_id[at]] == text else -1

    def entity(self, number: int) -> Entity:
        """An entity as a record."""
        rows = self.arrays.get("ent.row")
        return Entity(
            self.texts[self._id_view[number]],
            self.texts[self._name_view[number]],
            EntityKind(int(self.entity_kind[number])),
            int(rows[number]) if len(rows) else 0,
        )

    def name(self, number: int) -> str:
        """The name of an entity."""
        return self.texts[self._name_view[number]]

    def names_of(self, numbers: list[int]) -> list[str]:
        """The names of some entities; those that were asked for lately are kept."""
        kept = self._known_names
        try:
            return [kept[number] for number in numbers]
        except KeyError:
            result = self.texts.take(self.entity_name[numbers])
            if len(kept) + len(result) > _MOST_NAMES:
                self._known_names = {}
            if len(result) <= _MOST_NAMES:
                self._known_names.update(zip(numbers, result, strict=True))
            return result

    @property
    def names_differ(self) -> bool:
        """Whether no two entities have one name."""
        if self._differ is None:
            names = self.entity_name
            self._differ = bool((names[1:] != names[:-1]).all())
        return self._differ

    def ident(self, number: int) -> str:
        """The id of an entity."""
        return self.texts[self._id_view[number]]

    def predicate(self, name: str) -> int:
        """The number of a predicate or qualifier key, or -1."""
        result = self._predicate_numbers.get(name)
        if result is None:
            text = self.texts.find(name)
            at = bisect_left(self._predicates, text) if text >= 0 else 0
            known = text >= 0 and at < len(self._predicates) and self._predicates[at] == text
            result = self._predicate_numbers[name] = at if known else -1
        return result

    def predicate_name(self, number: int) -> str:
        """The name of a predicate or qualifier key."""
        return self.texts[self._predicates[number]]

    @property
    def folder(self) -> Path | None:
        """The folder of the generation; None in memory."""
        return None if isinstance(self.arrays, MemoryArrays) else self.arrays.path.parent

    @cached_property
    def formed(self) -> bool:
        """Whether some texts have a form of their own (`forms`)."""
        get = self.arrays.get
        return any(bool(((get(f"{f}.kind") == Kind.TEXT) & (get(f"{f}.unit") >= 0)).any()) for f in ("grp", "qgrp"))

    @property
    def predicate_count(self) -> int:
        """How many predicates and qualifier keys there are."""
        return len(self._predicates)

    def source_of(self, number: int) -> Source:
        """A source by its number."""
        columns = (self.arrays.get(f"src.{part}") for part in ("name", "location", "format", "content", "terms"))
        # Stores of earlier versions say nothing of the content, or of the terms.
        parts = [self.texts[int(column[number])] if len(column) else "" for column in columns]
        loaded = self.about.get("loads", {}).get(parts[0])
        when = None if loaded is None else datetime.fromtimestamp(loaded, UTC)
        return Source(*parts, loaded=when, store=self.about.get("stores", {}).get(parts[0], ""))

    @classmethod
    def open(cls, directory: Path, version: str | None = None) -> Snapshot | None:
        """Map the current generation of a graph's directory, or an earlier one that is stored; None where there is none."""
        generation = read_generation(directory, version)
        return None if generation is None else cls(generation[1], generation[0])

    @classmethod
    def of(cls, columns: Mapping[str, NDArray[Any]], counts: dict[str, int], further: Mapping[str, Any] | None = None) -> Snapshot:
        """A snapshot in memory; `further` is stored in `about`."""
        return cls(MemoryArrays(columns), {"counts": counts, "generation": "memory", **(further or {})})

    @property
    def further(self) -> dict[str, Any]:
        """What is stored with a generation next to its columns: `settings` of the graph, `loads` with the time of the last
        load of each source, in seconds of Unix time.
        """
        return {part: self.about[part] for part in ("settings", "loads") if part in self.about}

    def with_settings(self, settings: Mapping[str, Any]) -> Snapshot:
        """The same with other settings of the graph."""
        return Snapshot(self.arrays, {**self.about, "settings": dict(settings)})

    # What has to be worked out from the file waits until it is asked for.

    @cached_property
    def source(self) -> Numbers:
        """The first source of each statement."""
        return self.arrays.get("st.src")

    @cached_property
    def row(self) -> Numbers:
        """The row there."""
        return self.arrays.get("st.row")

    @cached_property
    def _out_offsets(self) -> memoryview:
        return self.arrays.view("out.offsets")

    @cached_property
    def _in_offsets(self) -> memoryview:
        return self.arrays.view("in.offsets")

    @property
    def schema(self) -> Schema:
        """What lowering knows of this graph."""
        if self._schema is None:
            from condgraph.engine.schema import Schema

            self._schema = Schema(self)
        return self._schema

    # -- sets of entities --------------------------------------------------------------------------

    def every(self, kinds: tuple[int, ...]) -> Numbers:
        """All entities of these kinds."""
        result = self._everything.get(kinds)
        if result is None:
            result = self._everything[kinds] = np.flatnonzero(np.isin(self.entity_kind, kinds)).astype(np.int32)
        return result

    def members(self, concepts: tuple[int, ...]) -> Numbers:
        """The entities (no concepts) in any of these concepts, closed under subclass. `concepts`
        are entity numbers.
        """
        result = self._members.get(concepts)
        if result is None:
            items, parts = self.arrays.get("con.items"), []
            for concept in concepts:
                at = bisect_left(self._concepts, concept)
                if at < len(self._concepts) and self._concepts[at] == concept:
                    parts.append(items[self._con_offsets[at] : self._con_offsets[at + 1]])
            result = parts[0] if len(parts) == 1 else different(np.concatenate(parts)) if parts else NONE
            self._members[concepts] = result
            self._kept_sets[id(result)] = concepts
        return result

    def mask_of(self, numbers: Numbers) -> NDArray[np.bool_] | None:
        """The mask of a set that is kept here (`members`, `every`), known by identity; None for
        others.
        """
        concepts = self._kept_sets.get(id(numbers))
        return None if concepts is None else self.member_mask(concepts)

    def member_mask(self, concepts: tuple[int, ...]) -> NDArray[np.bool_]:
        """`members` as one truth value an entity; the last few are kept."""
        result = self._masks.get(concepts)
        if result is None:
            result = np.zeros(self.entities, bool)
            result[self.members(concepts).astype(np.intp)] = True
            # Bounded by bytes, so that large graphs do not fill the memory with masks.
            while self._masks and (len(self._masks) + 1) * self.entities > 64_000_000:
                del self._masks[next(iter(self._masks))]
            self._masks[concepts] = result
        return result

    # -- statements of entities --------------------------------------------------------------------

    def outgoing(self, entity: int, low: int, high: int) -> Numbers:
        """Statements numbered `[low, high)` with this subject."""
        return self._slice(self._out_view, self.out_items, self._out_offsets, entity, low, high)

    def incoming(self, entity: int, low: int, high: int) -> Numbers:
        """Relations numbered `[low, high)` with this object."""
        return self._slice(self._in_view, self.in_items, self._in_offsets, entity, low, high)

    @staticmethod
    def _slice(view: memoryview, items: Numbers, offsets: memoryview, entity: int, low: int, high: int) -> Numbers:
        first, last = offsets[entity], offsets[entity + 1]
        begin = bisect_left(view, low, first, last)
        return items[begin : bisect_left(view, high, begin, last)]

    def ends(self, predicates: tuple[str, ...] | None, *, backward: bool = False) -> tuple[Numbers, Numbers] | None:
        """Where the relations of these predicates lead from each entity: offsets, by entity, into
        the distinct ends, sorted for each. Backward from object to subject. The last few are kept;
        None where they take too much memory.
        """
        result = self._ends.get((predicates, backward))
        if result is None:
            runs = self.runs(predicates, True, False)
            if 4 * (self.entities + sum(high - low for low, high in runs)) > _MOST_ENDS // 4:
                return None
            near = np.concatenate([self.relation_subject[low:high] for low, high in runs] or [NONE])
            far = np.concatenate([self.relation_object[low:high] for low, high in runs] or [NONE])
            if backward:
                near, far = far, near
            pairs = different(near.astype(np.int64) << 32 | far)
            offsets = np.zeros(self.entities + 1, np.int32)
            np.cumsum(np.bincount(pairs >> 32, minlength=self.entities), out=offsets[1:])
            result = offsets, (pairs & 0xFFFFFFFF).astype(np.int32)
            while self._ends and sum(a.nbytes + b.nbytes for a, b in [*self._ends.values(), result]) > _MOST_ENDS:
                self._ends.pop(next(iter(self._ends)), None)
            self._ends[predicates, backward] = result
        return result

    def touching(self, entities: Numbers, *, backward: bool = False) -> Numbers:
        """All statements with a subject (backward: relations with an object) among these entities,
        in no order.
        """
        offsets = self.arrays.get("in.offsets" if backward else "out.offsets")
        return take_ranges(self.in_items if backward else self.out_items, offsets.take(entities), offsets[1:].take(entities))

    def degree(self, entities: Numbers, *, backward: bool = False) -> int:
        """How many statements `touching` would give."""
        offsets = self.arrays.get("in.offsets" if backward else "out.offsets")
        return int((offsets[1:].take(entities) - offsets.take(entities)).sum())

    def split(self, statements: Numbers) -> int:
        """How many of the sorted statements are relations."""
        if not len(statements) or statements[0] >= self.relations:
            return 0
        if statements[-1] < self.relations:
            return len(statements)
        return int(statements.searchsorted(self.relations))

    def subjects(self, statements: Numbers) -> Numbers:
        """The subject of each of the sorted statements."""
        at = self.split(statements)
        if at == len(statements):
            return self.relation_subject.take(statements)
        attributes = self.attribute_subject.take(statements[at:] - np.int32(self.relations))
        return attributes if not at else np.concatenate([self.relation_subject.take(statements[:at]), attributes])

    def predicates(self, statements: Numbers) -> Numbers:
        """The predicate of each statement."""
        out = np.empty(len(statements), np.int32)
        relation = statements < self.relations
        for family, mask, base in (("rel", relation, 0), ("att", ~relation, self.relations)):
            offsets = self.arrays.get(f"{family}.offsets")
            out[mask] = np.searchsorted(offsets, statements[mask] - base, side="right") - 1
        return out

    def predicate_of(self, statement: int) -> int:
        """The predicate of one statement."""
        if statement < self.relations:
            return bisect_right(self.relation_offsets, statement) - 1
        return bisect_right(self.attribute_offsets, statement - self.relations) - 1

    def runs(self, predicates: tuple[str, ...] | None, relations: bool, attributes: bool) -> list[tuple[int, int]]:
        """The runs of statements with these predicates (None: any), each within one family; not to
        be changed.
        """
        result = self._runs.get((predicates, relations, attributes))
        if result is None:
            families = []
            if relations:
                families.append((0, self.relation_offsets))
            if attributes:
                families.append((self.relations, self.attribute_offsets))
            if predicates is None:
                runs = [(base, base + offsets[-1]) for base, offsets in families if len(offsets)]
            else:
                numbers = sorted({number for name in predicates if (number := self.predicate(name)) >= 0})
                runs = [(base + offsets[p], base + offsets[p + 1]) for base, offsets in families for p in numbers]
            result = [(low, high) for low, high in runs if low < high]
            make_room(self._runs)
            self._runs[predicates, relations, attributes] = result
        return result

    def groups(self, low: int, high: int) -> list[tuple[Kind, str, int, int]]:
        """The runs of the attributes `[low, high)` (counted from 0) of one type and unit: (type,
        unit, begin, end).
        """
        result = self._groups.get((low, high))
        if result is None:
            starts = self.arrays.view("grp.start")
            first, last = bisect_right(starts, low) - 1, bisect_left(starts, high)
            result = [
                (kind, unit, max(begin, low), min(end, high)) for kind, unit, begin, end in self._typed_runs("grp", first, last)
            ]
            make_room(self._groups)
            self._groups[low, high] = result
        return result

    def qualifier_groups(self, key: int) -> list[tuple[Kind, str, int, int]]:
        """The runs of the qualifiers of a key of one type and unit: (type, unit, begin, end), as
        places in their order.
        """
        result = self._qualifier_groups.get(key)
        if result is None:
            keys = self.arrays.view("qgrp.key")
            result = self._typed_runs("qgrp", bisect_left(keys, key), bisect_right(keys, key))
            make_room(self._qualifier_groups)
            self._qualifier_groups[key] = result
        return result

    def _typed_runs(self, prefix: str, first: int, last: int) -> list[tuple[Kind, str, int, int]]:
        kinds, units, starts = (self.arrays.view(f"{prefix}.{name}") for name in ("kind", "unit", "start"))
        return [
            (Kind(kinds[i]), self.texts[units[i]] if units[i] >= 0 else NO_UNIT, starts[i], starts[i + 1])
            for i in range(first, last)
        ]

    def qualifiers(self, statements: Numbers) -> tuple[Numbers, NDArray[np.int64]]:
        """The qualifiers of sorted statements: for each the position of its statement in the input,
        and its own number.
        """
        offsets = self.arrays.get("q.offsets")
        if not len(offsets):
            return NONE, np.empty(0, np.int64)
        begin, end = offsets.take(statements), offsets[1:].take(statements)
        counts = end - begin
        return np.repeat(np.arange(len(statements), dtype=np.int32), counts), ranges(begin, end)

    def sourced(self, source: int) -> Numbers:
        """The statements of one source, sorted."""
        if len(self.arrays.get("src.name")) <= 1:
            return np.arange(self.statements, dtype=np.int32)
        result = self._sourced.get(source)
        if result is None:
            offsets = self.arrays.get("bysrc.offsets")
            result = self.arrays.get("bysrc.items")[offsets[source] : offsets[source + 1]]
            if not (result[1:] > result[:-1]).all():
                # Generations of 0.1 hold a statement once for each of its rows.
                result = different(result)
            self._sourced[source] = result
        return result

    # -- values ------------------------------------------------------------------------------------

    def ordered(self, family: str) -> Ordered:
        """The cells of attributes ("att") or qualifiers ("q"), one at a time and by value."""
        result = self._ordered.get(family)
        if result is None:
            result = self._ordered[family] = Ordered(self.arrays, family, "qkey.items" if family == "q" else "")
        return result

    def value(self, family: str, number: int) -> Ref | Value:
        """The cell of an attribute (`family` "att", counted from 0) or a qualifier ("q"), with its
        number, as a value.
        """
        return self.values(family, slice(number, number + 1))[0]

    def values(self, family: str, numbers: NDArray[Any] | slice) -> list[Ref | Value]:
        """The cells with some numbers as values."""
        cells = {part: self.arrays.get(f"{family}.{part}")[numbers] for part, _ in PARTS}
        return decode_values(cells, self.texts.__getitem__, self.ident)

    def seed(
        self, builder: Builder, without: Iterable[str] = (), stays: NDArray[np.bool_] | None = None, *, unused: bool = True
    ) -> None:
        """Give a builder everything this snapshot holds, but for what only some sources say, and the
        statements that a mask leaves out; entities that are `unused` then stay, or go.
        """
        from condgraph.engine.snapshot.readback import seed

        seed(self, builder, without, stays, unused=unused)


def ranges(begin: NDArray[Any], end: NDArray[Any]) -> NDArray[np.int64]:
    """The numbers of `[begin[0], end[0])`, `[begin[1], end[1])`, ... one after the other."""
    counts = end - begin
    ends = counts.cumsum()
    total = int(ends[-1]) if len(ends) else 0
    numbers = np.arange(total, dtype=np.int64)
    numbers += (begin - ends + counts).repeat(counts)
    return numbers


def take_ranges(items: Numbers, begin: NDArray[Any], end: NDArray[Any]) -> Numbers:
    """The items of those ranges."""
    return items.take(ranges(begin, end))
