"""Writes a snapshot to a server in idempotent batches."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, wait
from functools import cached_property, partial
from hashlib import blake2b
from itertools import chain
from queue import Full, Queue
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from condgraph.cypher.labels import Labelling, Labels
from condgraph.cypher.layout import schema as layout
from condgraph.cypher.load.batches import BATCH, Batch, Ids, Numbers, Rows, caption_of, cells, cut, order_of
from condgraph.engine.changes import OnWritten
from condgraph.engine.execute.validity import span_precision
from condgraph.engine.facts import EntityKind
from condgraph.engine.identity import statement_ids, text_hashes
from condgraph.engine.snapshot.build import fewer_collections, texts_of
from condgraph.engine.snapshot.cells import mix
from condgraph.engine.snapshot.readback import place_raws
from condgraph.engine.values import UNKNOWN_END, UNKNOWN_START, Kind

if TYPE_CHECKING:
    from condgraph.cypher.connection import Connection
    from condgraph.cypher.load.lock import Loading
    from condgraph.engine.snapshot.snapshot import Snapshot


# -- Memberships as pairs ----------------------------------------------------------------------------
# Memberships and subclasses as distinct pairs of entities, each with all its places.


class Pairs:
    """Direct memberships ("mem") with those that follow from subclasses (without sources), or subclasses ("sub").

    `keys` [K] int64, sorted: the first entity times the number of entities, plus the second. `bounds` [K + 1]: the ranges of
    `sources` and `rows` of each pair. `numbers` and `entities` renumber the entities.
    """

    def __init__(self, snapshot: Snapshot, prefix: str, numbers: NDArray[Any] | None = None, entities: int | None = None) -> None:
        get = snapshot.arrays.get
        width = snapshot.entities if entities is None else entities
        first, second = (get(f"{prefix}.{name}").astype(np.int64) for name in (("e", "c") if prefix == "mem" else ("c", "p")))
        lists, members = np.empty(0, np.int64), np.empty(0, np.int64)
        if prefix == "mem":
            lists = np.repeat(get("con.entity"), np.diff(get("con.offsets"))).astype(np.int64)
            members = get("con.items").astype(np.int64)
        if numbers is not None:
            first, second, lists, members = (numbers[column] for column in (first, second, lists, members))
        stated = first * width + second
        order = np.argsort(stated, kind="stable")
        stated = stated[order]
        self.keys = np.unique(np.concatenate([stated, members * width + lists]))
        self.bounds = np.searchsorted(stated, np.append(self.keys, np.iinfo(np.int64).max))
        self.sources, self.rows = get(f"{prefix}.src")[order], get(f"{prefix}.row")[order]


# -- What the server holds already -------------------------------------------------------------------
# Compares the graph on a server with the new one, by hashes of the places of each statement and
# membership.


def row_sources(snapshot: Snapshot) -> Callable[[int], str | None]:
    """Return a function that gives the source of a table row, or None."""
    places = snapshot.arrays.get("ent.source")
    names = [snapshot.source_of(i).name for i in range(len(snapshot.arrays.get("src.name")))]
    return lambda number: names[places[number]] if len(places) and places[number] >= 0 else None


def _hashed(snapshot: Snapshot) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return hashes of the texts of a snapshot, followed by a 0 for none, and hashes of the names of its sources."""
    texts = np.append(text_hashes(snapshot), np.uint64(0))
    return texts, texts[snapshot.arrays.get("src.name")]


def place_hashes(snapshot: Snapshot) -> NDArray[np.uint64]:
    """Hash the places of each statement, with the raw texts there."""
    get = snapshot.arrays.get
    texts, names = _hashed(snapshot)
    raws = np.full(snapshot.statements, -1, np.int32)
    if len(get("att.raw")):
        raws[snapshot.relations :] = get("att.raw")
    result = np.zeros(snapshot.statements, np.uint64)
    owners = get("prov.stmt")
    further_raws = get("prov.raw") if len(get("prov.raw")) else np.full(len(owners), -1, np.int32)
    for statements, sources, rows, raw_texts in (
        (np.arange(snapshot.statements), snapshot.source, snapshot.row, raws),
        (owners, get("prov.src"), get("prov.row"), further_raws),
    ):
        if len(statements):
            np.add.at(result, statements, mix(mix(names[sources], rows.astype(np.uint64)), texts[raw_texts]))
    return result


def pair_hashes(snapshot: Snapshot, pairs: Pairs) -> NDArray[np.uint64]:
    """Hash the places of each pair."""
    result = np.zeros(len(pairs.keys), np.uint64)
    if len(pairs.sources):
        owners = np.repeat(np.arange(len(pairs.keys)), np.diff(pairs.bounds))
        np.add.at(result, owners, mix(_hashed(snapshot)[1][pairs.sources], pairs.rows.astype(np.uint64)))
    return result


def mapped_pairs(previous: Snapshot, prefix: str, snapshot: Snapshot) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Map the pairs of an earlier snapshot to the entities of a later one (-1: an end is missing), and hash their places."""
    pairs = Pairs(previous, prefix)
    numbers = np.array([snapshot.identified(ident) for ident in previous.texts.take(previous.entity_id)], np.int64)
    first, second = np.divmod(pairs.keys, max(previous.entities, 1))
    first, second = numbers[first] if len(first) else first, numbers[second] if len(second) else second
    return np.where((first < 0) | (second < 0), -1, first * snapshot.entities + second), pair_hashes(previous, pairs)


# -- What a load takes away ------------------------------------------------------------------------
# What a load removes, as batches that mark it; it is deleted after everything else is done (`lock`).


class RemovalBatches:
    """Batches that mark what is in `previous` but not in `snapshot`."""

    def __init__(self, previous: Snapshot, snapshot: Snapshot) -> None:
        self.previous, self.snapshot = previous, snapshot
        self._types = [layout.type_of(previous.predicate_name(i)) for i in range(previous.predicate_count)]

    def batches(self) -> Iterator[Batch]:
        """Yield all batches; statements before the entities they mention."""
        previous, snapshot = self.previous, self.snapshot
        sids = statement_ids(previous)
        removed = np.flatnonzero(~np.isin(sids, statement_ids(snapshot))).astype(np.int32)
        split = previous.split(removed)
        owners = np.zeros(previous.statements, bool)
        owners[previous.arrays.get("q.owner")] = True
        relations, attributes = removed[:split], removed[split:] - np.int32(previous.relations)
        types = self._types
        for part in _slices(relations):
            ids = Ids(previous)
            ends = ids.places(previous.relation_subject[part]), ids.places(previous.relation_object[part])
            kinds = [types[p] for p in previous.predicates(part).tolist()]
            yield self._batch("relations", ids, zip(*ends, kinds, sids[part].tolist(), strict=True))
        for part in _slices(relations[owners[relations]]):
            yield self._batch("statements", None, ((sid,) for sid in sids[part].tolist()))
        for part in _slices(attributes):
            ids, numbers = Ids(previous), part + np.int32(previous.relations)
            kinds = [types[p] for p in previous.predicates(numbers).tolist()]
            subjects = ids.places(previous.attribute_subject[part])
            yield self._batch("attributes", ids, zip(subjects, kinds, sids[numbers].tolist(), strict=True))
        for prefix, edge in (("mem", "MEMBER_OF"), ("sub", "SUBCLASS_OF")):
            mapped, pairs = mapped_pairs(previous, prefix, snapshot)[0], Pairs(previous, prefix)
            for part in _slices(np.flatnonzero(~np.isin(mapped, Pairs(snapshot, prefix).keys))):
                ids = Ids(previous)
                below, above = (ids.places(numbers) for numbers in np.divmod(pairs.keys[part], previous.entities))
                yield self._batch("members", ids, ((a, b, edge) for a, b in zip(below, above, strict=True)), edge)
        idents = previous.texts.take(previous.entity_id)
        keys = [layout.index_key(ident) for ident in idents if snapshot.identified(ident) < 0]
        kept_names = {snapshot.predicate_name(i) for i in range(snapshot.predicate_count)}
        names = (previous.predicate_name(i) for i in range(previous.predicate_count))
        predicates = [layout.predicate_key(name) for name in names if name not in kept_names]
        kept_sources = {snapshot.source_of(i).name for i in range(len(snapshot.arrays.get("src.name")))}
        listed = (previous.source_of(i).name for i in range(len(previous.arrays.get("src.name"))))
        sources = [name for name in listed if name not in kept_sources]
        for kind, gone_keys in (("entities", keys), ("predicates", predicates), ("sources", sources)):
            for start in range(0, len(gone_keys), BATCH):
                yield self._batch(kind, None, ((key,) for key in gone_keys[start : start + BATCH]))

    def _batch(self, kind: str, ids: Ids | None, rows: Iterable[Iterable[Any]], more: str = "") -> Batch:
        # The rows are part of the name: when a load continues, other rows remain to be marked.
        listed = [list(row) for row in rows]
        texts = [] if ids is None else ids.texts()
        digest = blake2b(json.dumps([texts, listed]).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
        return Batch(f"gone {kind}", f"gone {kind} {more} {digest}", texts, listed)


def _slices(numbers: NDArray[Any]) -> Iterator[NDArray[Any]]:
    for start in range(0, len(numbers), BATCH):
        yield numbers[start : start + BATCH]


# -- Memberships and subclasses --------------------------------------------------------------------
# Memberships and subclasses as batches of rows: new ones, and those with further sources.


class ConceptRows:
    """Batches of memberships and subclasses that are in `snapshot` but not in `previous`;

    `sources` are the names of its sources.
    """

    def __init__(self, snapshot: Snapshot, previous: Snapshot | None, sources: Sequence[str]) -> None:
        self.snapshot, self.previous, self._sources_named = snapshot, previous, sources

    def batches(self) -> Iterator[Batch]:
        """Yield batches of new memberships (with those through subclasses) and subclasses, and of those with further sources."""
        snapshot, previous = self.snapshot, self.previous
        for prefix, edge in (("mem", "MEMBER_OF"), ("sub", "SUBCLASS_OF")):
            pairs = Pairs(snapshot, prefix)
            indices = np.arange(len(pairs.keys))
            parts = (("members", indices), ("members that changed", indices[:0]))
            if previous is not None:
                mapped, hashes = mapped_pairs(previous, prefix, snapshot)
                order = np.argsort(mapped)
                at = (
                    order[np.minimum(np.searchsorted(mapped, pairs.keys, sorter=order), len(mapped) - 1)]
                    if len(mapped)
                    else indices[:0]
                )
                known = mapped[at] == pairs.keys if len(mapped) else np.zeros(len(indices), bool)
                changed = known & (pair_hashes(snapshot, pairs) != (hashes[at] if len(mapped) else 0))
                parts = (("members", indices[~known]), ("members that changed", indices[changed]))
            for kind, places in parts:

                def make(kind: str, name: str, at: Numbers, pairs: Pairs = pairs, edge: str = edge) -> Batch:
                    return self._pairs(kind, name, at, pairs, edge)

                yield from cut(kind, places.astype(np.int32), make, f"{kind} {edge}")

    def _pairs(self, kind: str, name: str, at: Numbers, pairs: Pairs, edge: str) -> Batch:
        ids = Ids(self.snapshot)
        ends = [ids.places(numbers) for numbers in np.divmod(pairs.keys[at], self.snapshot.entities)]
        begin, end = pairs.bounds[at].tolist(), pairs.bounds[at + 1].tolist()
        rows: Rows = [
            [item, other, edge, None, [self._sources_named[i] for i in pairs.sources[low:high]], pairs.rows[low:high].tolist()]
            + [None] * 4
            for item, other, low, high in zip(*ends, begin, end, strict=True)
        ]
        if kind.endswith("changed"):
            for row, pair in zip(rows, pairs.keys[at].tolist(), strict=True):
                row.append(self._pair_key(edge, *divmod(pair, self.snapshot.entities)))
        return Batch(kind, name, ids.texts(), rows, *((None, None) if kind.endswith("changed") else (0, len(rows))))

    def _pair_key(self, edge: str, one: int, other: int) -> str:
        """Return a key of a membership, under which its earlier state is recorded."""
        ends = json.dumps([edge, self.snapshot.ident(one), self.snapshot.ident(other)])
        return blake2b(ends.encode(), digest_size=16).hexdigest()


# -- Rows ------------------------------------------------------------------------------------------
# A snapshot as batches of rows: lists of plain values as they travel to the server, built from columns a
# batch at a time.
#
# A batch lists its entities once (`ids`), and its rows refer to them by position, so that the server
# looks up each once a batch. Statements are sorted by subject, which keeps the relationships of a node
# together in the store.


_LABELS: Final = {EntityKind.ENTITY: [], EntityKind.CONCEPT: [layout.CONCEPT], EntityKind.ROW: [layout.ROW]}


def validity_of(snapshot: Snapshot, numbers: Numbers) -> Iterator[tuple[int | None, int | None, int | None, str | None]]:
    """Yield `since`, `until`, `span` and `valid` of each statement, None without a validity."""
    get = snapshot.arrays.get
    owners, starts, ends = get("val.stmt"), get("val.start"), get("val.end")
    if not len(owners):
        yield from ((None, None, None, None),) * len(numbers)
        return
    index = np.minimum(owners.searchsorted(numbers), len(owners) - 1)
    starts, ends = starts[index], ends[index]
    columns = (owners[index] == numbers, starts, ends, span_precision(starts, ends))
    for valid, start, end, precision in zip(*(column.tolist() for column in columns), strict=True):
        if not valid:
            yield None, None, None, None
        else:
            known = start != UNKNOWN_START and end != UNKNOWN_END
            yield start, end, precision, layout.time_text(start, end, precision) if known else None


class RowMaker:
    """Batches of what is in `snapshot` but not in `previous`."""

    def __init__(self, snapshot: Snapshot, previous: Snapshot | None = None, labelling: Labelling | None = None) -> None:
        self.snapshot, self.previous = snapshot, previous
        self._labelling = Labelling() if labelling is None else labelling
        self._labels = Labels(snapshot, set(self._labelling.after or ()))
        self._predicates = [snapshot.predicate_name(i) for i in range(snapshot.predicate_count)]
        self._types = list(map(layout.type_of, self._predicates))
        self._keys = list(map(layout.predicate_key, self._predicates))
        self._sources_named = [snapshot.source_of(i).name for i in range(len(snapshot.arrays.get("src.name")))]
        self._further: dict[int, list[tuple[int, int]]] = {}
        get = snapshot.arrays.get
        for statement, source, row in zip(*(get(f"prov.{n}").tolist() for n in ("stmt", "src", "row")), strict=True):
            self._further.setdefault(statement, []).append((source, row))
        self._declared, self._raws = texts_of(snapshot), place_raws(snapshot)
        self.sids = statement_ids(snapshot)
        known = np.empty(0, np.int64) if previous is None else statement_ids(previous)
        self._known = known
        self._fresh = ~np.isin(self.sids, known) if len(known) else np.ones(len(self.sids), bool)

    @cached_property
    def total(self) -> int | None:
        """The number of records in all batches; None, as unknown before they are built, if there is a previous snapshot."""
        if self.previous is not None:
            return None
        get, snapshot = self.snapshot.arrays.get, self.snapshot
        pairs = sum(len(Pairs(snapshot, prefix).keys) for prefix in ("mem", "sub"))
        return len(get("src.name")) + len(self._predicates) + snapshot.entities + snapshot.statements + pairs

    def batches(self) -> Iterator[Batch]:
        """Yield all batches, in the order in which they have to be written."""
        snapshot = self.snapshot
        yield from cut("sources", np.arange(len(self.snapshot.arrays.get("src.name")), dtype=np.int32), self._sources)
        yield from cut("predicates", np.arange(len(self._predicates), dtype=np.int32), self._predicate_counts)
        for kind, numbers in zip(("entities", "entities that changed"), self._changed_entities(), strict=True):
            yield from cut(kind, numbers, self._entities)
        if self.previous is not None:
            yield from cut("labels", self._labelling.changed(self.previous, self.snapshot), self._labelled)
        yield from self._statements()
        yield from self._changed_places()
        yield from ConceptRows(snapshot, self.previous, self._sources_named).batches()

    # -- sources, predicates, entities -------------------------------------------------------------

    def _sources(self, kind: str, name: str, numbers: Numbers) -> Batch:
        sources = [(number, self.snapshot.source_of(number)) for number in numbers.tolist()]
        rows = [[item.name, at, item.location, item.format, item.content or None, item.terms or None] for at, item in sources]
        return Batch(kind, name, [], rows)

    def _predicate_counts(self, kind: str, name: str, numbers: Numbers) -> Batch:
        get, rows = self.snapshot.arrays.get, []
        keys = np.bincount(get("q.key"), minlength=len(self._predicates))
        for number in numbers.tolist():
            counts = [int(np.diff(get(f"{family}.offsets")[number : number + 2])[0]) for family in ("rel", "att")]
            rows.append([self._predicates[number], *counts, int(keys[number]), self._keys[number]])
        return Batch(kind, name, [], rows)

    def _changed_entities(self) -> tuple[Numbers, Numbers]:
        """Return the new entities, and those whose name, kind, declaration or source differs."""
        numbers = np.arange(self.snapshot.entities, dtype=np.int32)
        previous = self.previous
        if previous is None:
            return numbers, numbers[:0]
        new, changed = [], []
        before_declared, sources_of = texts_of(previous), (row_sources(previous), row_sources(self.snapshot))
        for number in numbers.tolist():
            entity = self.snapshot.entity(number)
            before = previous.identified(entity.id)
            if before < 0:
                new.append(number)
            elif (
                previous.entity(before) != entity
                or before_declared.get(before) != self._declared.get(number)
                or sources_of[0](before) != sources_of[1](number)
            ):
                changed.append(number)
        return np.array(new, np.int32), np.array(changed, np.int32)

    def _entities(self, kind: str, name: str, numbers: Numbers) -> Batch:
        snapshot, kinds = self.snapshot, self.snapshot.entity_kind[numbers].tolist()
        idents = snapshot.texts.take(snapshot.entity_id[numbers])
        called = snapshot.texts.take(snapshot.entity_name[numbers])
        orders, ranks = map(order_of, called), map(layout.inner_ranks, called)
        rows: Rows = [list(row) for row in zip(idents, called, map(layout.index_key, called), kinds, orders, ranks, strict=True)]
        if len(snapshot.arrays.get("ent.row")):
            places, at = (snapshot.arrays.get(column)[numbers].tolist() for column in ("ent.source", "ent.row"))
        else:
            places = at = [-1] * len(rows)
        for row, source, number, entity in zip(rows, places, at, numbers.tolist(), strict=True):
            row += [self._sources_named[source], number] if source >= 0 else [None, None]
            row += [self._declared.get(entity), layout.index_key(row[0]), _LABELS[row[3]]]
        if kind.endswith("changed"):
            return Batch(kind, name, [], rows)
        for row, labels in zip(rows, self._labels.of(numbers), strict=True):
            if labels:
                row[-1] = [*row[-1], *labels]
        return Batch(kind, name, [], rows, nodes=len(rows))

    def _labelled(self, kind: str, name: str, numbers: Numbers) -> Batch:
        """Return existing entities with their new labels."""
        labels_used = self._labelling.every
        positions = {label: position for position, label in enumerate(labels_used)}
        idents = self.snapshot.texts.take(self.snapshot.entity_id[numbers])
        rows: Rows = [
            [layout.index_key(ident), [positions[label] for label in labels]]
            for ident, labels in zip(idents, self._labels.of(numbers), strict=True)
        ]
        return Batch(kind, name, labels_used, rows)

    # -- statements --------------------------------------------------------------------------------

    def _statements(self) -> Iterator[Batch]:
        """Yield relations and attributes without and with qualifiers, by subject."""
        snapshot = self.snapshot
        owners = np.zeros(snapshot.statements, bool)
        owners[snapshot.arrays.get("q.owner")] = True
        for family, first, subjects, make in (
            ("relations", 0, snapshot.relation_subject, self._relations),
            ("attributes", snapshot.relations, snapshot.attribute_subject, self._attributes),
        ):
            order = np.argsort(subjects, kind="stable").astype(np.int32) + np.int32(first)
            order = order[self._fresh[order]]
            if family == "attributes":
                yield from cut(family, order, make)
                continue
            for kind, numbers in ((family, order[~owners[order]]), (f"{family} with qualifiers", order[owners[order]])):
                yield from cut(kind, numbers, make)

    def _relations(self, kind: str, name: str, numbers: Numbers) -> Batch:
        snapshot = self.snapshot
        ids = Ids(snapshot)
        predicates = snapshot.predicates(numbers).tolist()
        subjects, objects = ids.places(snapshot.relation_subject[numbers]), ids.places(snapshot.relation_object[numbers])
        types, sids = [self._types[p] for p in predicates], self.sids[numbers].tolist()
        rows: Rows = [
            [s, o, t, sid, *places, *valid]
            for s, o, t, sid, places, valid in zip(
                subjects, objects, types, sids, self._places(numbers), validity_of(snapshot, numbers), strict=True
            )
        ]
        if not kind.endswith("qualifiers"):
            return Batch(kind, name, ids.texts(), rows, 0, len(rows))
        for row, predicate in zip(rows, predicates, strict=True):
            row.append(self._predicates[predicate])
        references, qualifiers = self._qualify(rows, numbers, ids)
        return Batch(kind, name, ids.texts(), rows, len(rows) + qualifiers, 3 * len(rows) + qualifiers + references)

    def _attributes(self, kind: str, name: str, numbers: Numbers) -> Batch:
        snapshot = self.snapshot
        get, ids = snapshot.arrays.get, Ids(snapshot)
        predicates = snapshot.predicates(numbers).tolist()
        at = numbers - np.int32(snapshot.relations)
        subjects = ids.places(snapshot.attribute_subject[at])
        raws = get("att.raw")[at].tolist() if len(get("att.raw")) else [-1] * len(at)
        rows: Rows = []
        for number, s, p, sid, places, valid, cell, raw in zip(
            numbers.tolist(),
            subjects,
            predicates,
            self.sids[numbers].tolist(),
            self._places(numbers),
            validity_of(snapshot, numbers),
            cells(snapshot, "att", at),
            raws,
            strict=True,
        ):
            shown = None if raw < 0 else snapshot.texts[raw]
            caption = caption_of(cell[1] if shown is None else shown)
            rows.append([s, self._types[p], sid, *places, *valid, self._keys[p], caption, shown, self._raws_of(number), *cell])
        references, qualifiers = self._qualify(rows, numbers, ids)
        return Batch(kind, name, ids.texts(), rows, len(rows) + qualifiers, len(rows) + qualifiers + references)

    def _raws_of(self, number: int) -> str | None:
        """Return the texts of a statement at its places as JSON, where they differ."""
        raws = self._raws.get(number)
        return None if raws is None else json.dumps(raws, ensure_ascii=False)

    def _places(self, numbers: Numbers) -> Iterator[tuple[list[str], list[int]]]:
        """Yield the sources of each statement, and the rows in them, in parallel lists."""
        sources, rows, names = self.snapshot.source[numbers].tolist(), self.snapshot.row[numbers].tolist(), self._sources_named
        if not self._further:
            single = [[name] for name in names]
            yield from ((single[source], [row]) for source, row in zip(sources, rows, strict=True))
            return
        for number, source, row in zip(numbers.tolist(), sources, rows, strict=True):
            further = self._further.get(number)
            if further is None:
                yield [names[source]], [row]
            else:
                yield [names[source], *(names[item] for item, _ in further)], [row, *(entry for _, entry in further)]

    def _qualify(self, rows: Rows, numbers: Numbers, ids: Ids) -> tuple[int, int]:
        """Append the qualifiers of each statement to its row; return how many name entities, and how many there are."""
        snapshot = self.snapshot
        get = snapshot.arrays.get
        order = np.argsort(numbers, kind="stable")
        positions, result = snapshot.qualifiers(numbers[order])
        refs = get("q.ref")[result]
        named = get("q.kind")[result] == Kind.ENTITY
        places = iter(ids.places(refs[named]))
        for row in rows:
            row.append([])
        keys = get("q.key")[result].tolist()
        for position, key, cell, ref, name in zip(
            order[positions].tolist(), keys, cells(self.snapshot, "q", result), refs.tolist(), named.tolist(), strict=True
        ):
            ident, place = (snapshot.ident(ref), next(places)) if name else (None, None)
            rows[position][-1].append([self._predicates[key], *cell, ident, place])
        return int(named.sum()), len(keys)

    def _changed_places(self) -> Iterator[Batch]:
        """Yield existing statements whose places, or texts there, have changed."""
        snapshot, previous, known = self.snapshot, self.previous, self._known
        if previous is None or not len(known):
            return
        before, now = place_hashes(previous), place_hashes(snapshot)
        order = np.argsort(known)
        matches = order[np.minimum(np.searchsorted(known, self.sids, sorter=order), len(known) - 1)]
        changed = np.flatnonzero((known[matches] == self.sids) & (before[matches] != now)).astype(np.int32)
        split = snapshot.split(changed)

        def relations(kind: str, name: str, numbers: Numbers) -> Batch:
            ids = Ids(snapshot)
            types = [self._types[p] for p in snapshot.predicates(numbers).tolist()]
            ends = ids.places(snapshot.relation_subject[numbers]), ids.places(snapshot.relation_object[numbers])
            rows: Rows = [
                [s, o, t, sid, *places]
                for s, o, t, sid, places in zip(*ends, types, self.sids[numbers].tolist(), self._places(numbers), strict=True)
            ]
            return Batch(kind, name, ids.texts(), rows)

        def attributes(kind: str, name: str, numbers: Numbers) -> Batch:
            ids = Ids(snapshot)
            types = [self._types[p] for p in snapshot.predicates(numbers).tolist()]
            subjects = ids.places(snapshot.attribute_subject[numbers - np.int32(snapshot.relations)])
            matches = numbers - np.int32(snapshot.relations)
            raws = snapshot.arrays.get("att.raw")[matches].tolist() if len(snapshot.arrays.get("att.raw")) else [-1] * len(matches)
            shown = [None if raw < 0 else snapshot.texts[raw] for raw in raws]
            captions = [
                caption_of(cell[1] if raw is None else raw)
                for cell, raw in zip(cells(snapshot, "att", matches), shown, strict=True)
            ]
            texts = map(list, zip(shown, map(self._raws_of, numbers.tolist()), captions, strict=True))
            columns = subjects, types, self.sids[numbers].tolist(), self._places(numbers), texts
            rows: Rows = [[s, t, sid, *places, *text] for s, t, sid, places, text in zip(*columns, strict=True)]
            return Batch(kind, name, ids.texts(), rows)

        yield from cut("sources of relations", changed[:split], relations)
        yield from cut("sources of attributes", changed[split:], attributes)


# -- Writing ---------------------------------------------------------------------------------------
# A batch is one transaction, which also writes a `Load` node with the batch's name; a batch whose node
# exists was written before and is skipped. So a load that was killed continues where it stopped. The
# server's counts are compared with the batch before it is committed. Readers see the graph once its node
# is marked as complete.
#
# If the graph had content before, every record that a load adds has its stamp (`write`), and the earlier state of what it
# changes is recorded in a `Former` node: so an unfinished load can be taken back (`abandon`).
#
# Two batches run at once: while the server commits one, it processes the rows of the other.


#: Batches that run at once. More would wait for each other: about half of a batch's time is its commit.
WRITERS: Final = 2
T = TypeVar("T")


def earlier_content_id(snapshot: Snapshot) -> str:
    """Return the name of a content in earlier versions, which hashed statements and counts alone."""
    digest = blake2b(np.sort(statement_ids(snapshot)).tobytes(), digest_size=12)
    digest.update(json.dumps(snapshot.counts, sort_keys=True).encode())
    return digest.hexdigest()


def write_snapshot(
    snapshot: Snapshot,
    loading: Loading,
    connection: Connection,
    *,
    previous: Snapshot | None,
    on_progress: OnWritten,
    attempt: str = "",
    labelling: Labelling | None = None,
) -> None:
    """Write what is in `snapshot` but not in `previous`, the server's present content, and mark what is only in the latter."""
    maker, written, named = RowMaker(snapshot, previous, labelling), 0, False
    gone: Iterator[Batch] = iter(()) if previous is None else RemovalBatches(previous, snapshot).batches()
    under_way: deque[tuple[Future[None], int]] = deque()
    # Each batch writes the graph's node: if the server does not wait for locks, all but one would be
    # refused.
    writers = WRITERS if connection.engine.locks else 1

    def settle(most: int) -> None:
        """Wait until at most `most` batches are running."""
        nonlocal written
        while len(under_way) > most:
            future, records = under_way.popleft()
            future.result()
            written += records
            on_progress(written, None if maker.total is None else written / maker.total)

    try:
        with fewer_collections():
            for batch in ahead(chain(maker.batches(), gone)):
                if batch.ids and not named:
                    # Entities have to exist before rows refer to them.
                    settle(0)
                    named = True
                settle(writers - 1)
                under_way.append((connection.submit(partial(loading.write, batch, attempt)), len(batch.rows)))
            settle(0)
    finally:
        # Wait, so that nothing of a failed load continues unnoticed.
        wait(future for future, _ in under_way)


def ahead(batches: Iterator[T]) -> Iterator[T]:
    """Yield the same batches, built in a thread while earlier ones are written; at most two wait."""
    queue: Queue[tuple[T | None, BaseException | None]] = Queue(2)
    stopped = Event()

    def put(item: tuple[T | None, BaseException | None]) -> None:
        while not stopped.is_set():
            try:
                queue.put(item, timeout=0.2)
                return
            except Full:
                continue

    def make() -> None:
        try:
            for batch in batches:
                put((batch, None))
                if stopped.is_set():
                    return
            put((None, None))
        except BaseException as error:  # noqa: BLE001 - raised again where the batches are taken
            put((None, error))

    thread = Thread(target=make, name="condgraph-neo4j-rows", daemon=True)
    thread.start()
    try:
        while True:
            batch, error = queue.get()
            if error is not None:
                raise error
            if batch is None:
                return
            yield batch
    finally:
        stopped.set()
        thread.join()
