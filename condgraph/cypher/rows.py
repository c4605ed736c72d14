"""A snapshot as batches of rows: lists of plain values as they travel to the server, made from columns a batch at a time.

A batch names its entities once (`ids`), and its rows say them by their place there, so that the server looks each up once a batch.
Statements come sorted by subject, which keeps the relationships of a node together in the store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from condgraph.cypher.layout import CAPTION, index_key, inner_ranks, text_order, tie_break, type_of
from condgraph.engine.execute.bags import span_precision
from condgraph.engine.facts import EntityKind
from condgraph.engine.identity import statement_ids
from condgraph.engine.snapshot.cells import PARTS
from condgraph.engine.values import NO_UNIT, UNKNOWN, UNKNOWN_END, UNKNOWN_START, Kind, Precision, Quantity, Time, parse_number

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot

#: Records a transaction writes. The first ones are small: until the server has warmed up, a large one only makes others wait.
BATCH: Final = 10_000
_FIRST: Final = 2_000

#: The properties of a value, in the order in which rows have them.
CELL: Final = ("kind", "text", "key", "number", "exact", "unit", "start", "end", "precision", "order", "ranks")
_NOTHING: Final = (None,) * len(CELL)
_WORDS: Final = tuple(kind.name.lower() for kind in Kind)

Numbers = NDArray[np.int32]
Rows = list[list[Any]]


@dataclass(frozen=True, slots=True)
class Batch:
    """Records of one kind: a `name` that is the same for the same batch, the `ids` that rows name by place, the `rows`.

    `nodes` and `edges` are how many the server has to make of it; None where it may find them there.
    """

    kind: str
    name: str
    ids: list[str]
    rows: Rows
    nodes: int | None = None
    edges: int | None = None


class RowMaker:
    """Makes batches of what `snapshot` has and `previous` has not."""

    def __init__(self, snapshot: Snapshot, previous: Snapshot | None = None) -> None:
        self.snapshot, self.previous = snapshot, previous
        self._predicates = [snapshot.predicate_name(i) for i in range(snapshot.predicate_count)]
        self._types = list(map(type_of, self._predicates))
        self._sources_named = [snapshot.source_of(i).name for i in range(len(snapshot.arrays.get("src.name")))]
        self._further: dict[int, list[tuple[int, int]]] = {}
        get = snapshot.arrays.get
        for statement, source, row in zip(*(get(f"prov.{n}").tolist() for n in ("stmt", "src", "row")), strict=True):
            self._further.setdefault(statement, []).append((source, row))
        self.sids = statement_ids(snapshot)
        known = np.empty(0, np.int64) if previous is None else statement_ids(previous)
        self._known = known
        self._fresh = ~np.isin(self.sids, known) if len(known) else np.ones(len(self.sids), bool)

    @cached_property
    def total(self) -> int | None:
        """How many records all batches hold; not known before they are made where there is a previous snapshot."""
        if self.previous is not None:
            return None
        get, snapshot = self.snapshot.arrays.get, self.snapshot
        pairs = len(concept_pairs(snapshot, "mem")) + len(concept_pairs(snapshot, "sub"))
        return len(get("src.name")) + len(self._predicates) + snapshot.entities + snapshot.statements + pairs

    def batches(self) -> Iterator[Batch]:
        """All of them, in the order in which they have to be written."""
        yield from self._cut("sources", np.arange(len(self.snapshot.arrays.get("src.name")), dtype=np.int32), self._sources)
        yield from self._cut("predicates", np.arange(len(self._predicates), dtype=np.int32), self._counted_predicates)
        changed = self._changed_entities()
        for kind, one in (("entities", EntityKind.ENTITY), ("concepts", EntityKind.CONCEPT), ("rows", EntityKind.ROW)):
            for part, numbers in zip(("", " that changed"), changed, strict=True):
                yield from self._cut(kind + part, numbers[self.snapshot.entity_kind[numbers] == one], self._entities)
        yield from self._statements()
        yield from self._more_sources()
        yield from self._concepts()

    def _cut(self, kind: str, numbers: Numbers, make: Callable[[str, str, Numbers], Batch]) -> Iterator[Batch]:
        """Batches of records by number; the first ones are smaller."""
        at, size = 0, _FIRST
        while at < len(numbers):
            yield make(kind, f"{kind} {at}", numbers[at : at + size])
            at, size = at + size, min(size * 2, BATCH)

    # -- sources, predicates, entities ------------------------------------------------------------------------------------

    def _sources(self, kind: str, name: str, numbers: Numbers) -> Batch:
        found = [(number, self.snapshot.source_of(number)) for number in numbers.tolist()]
        return Batch(kind, name, [], [[one.name, number, one.location, one.format] for number, one in found])

    def _counted_predicates(self, kind: str, name: str, numbers: Numbers) -> Batch:
        get, rows = self.snapshot.arrays.get, []
        keys = np.bincount(get("q.key"), minlength=len(self._predicates))
        for number in numbers.tolist():
            counts = [int(np.diff(get(f"{family}.offsets")[number : number + 2])[0]) for family in ("rel", "att")]
            rows.append([self._predicates[number], *counts, int(keys[number])])
        return Batch(kind, name, [], rows)

    def _changed_entities(self) -> tuple[Numbers, Numbers]:
        """Entities that are new, and those that are called or are otherwise than before."""
        every = np.arange(self.snapshot.entities, dtype=np.int32)
        previous = self.previous
        if previous is None:
            return every, every[:0]
        new, changed = [], []
        for number in every.tolist():
            entity = self.snapshot.entity(number)
            before = previous.identified(entity.id)
            if before < 0:
                new.append(number)
            elif previous.entity(before) != entity:
                changed.append(number)
        return np.array(new, np.int32), np.array(changed, np.int32)

    def _entities(self, kind: str, name: str, numbers: Numbers) -> Batch:
        snapshot, kinds = self.snapshot, self.snapshot.entity_kind[numbers].tolist()
        idents = snapshot.texts.take(snapshot.entity_id[numbers])
        called = snapshot.texts.take(snapshot.entity_name[numbers])
        orders, ranks = map(_order, called), map(inner_ranks, called)
        rows: Rows = [list(row) for row in zip(idents, called, map(index_key, called), kinds, orders, ranks, strict=True)]
        if kind.startswith("rows"):
            places, at = (snapshot.arrays.get(column)[numbers].tolist() for column in ("ent.source", "ent.row"))
            for row, source, number in zip(rows, places, at, strict=True):
                row += [self._sources_named[source], number] if source >= 0 else [None, None]
        return Batch(kind, name, [], rows, nodes=None if kind.endswith("changed") else len(rows))

    # -- statements -------------------------------------------------------------------------------------------------------

    def _statements(self) -> Iterator[Batch]:
        """Relations and attributes, each without qualifiers and with them, by subject."""
        snapshot = self.snapshot
        owners = np.zeros(snapshot.statements, bool)
        owners[snapshot.arrays.get("q.owner")] = True
        for family, first, subjects, make in (
            ("relations", 0, snapshot.relation_subject, self._relations),
            ("attributes", snapshot.relations, snapshot.attribute_subject, self._attributes),
        ):
            order = np.argsort(subjects, kind="stable").astype(np.int32) + np.int32(first)
            order = order[self._fresh[order]]
            for kind, numbers in ((family, order[~owners[order]]), (f"{family} with qualifiers", order[owners[order]])):
                yield from self._cut(kind, numbers, make)

    def _relations(self, kind: str, name: str, numbers: Numbers) -> Batch:
        snapshot = self.snapshot
        ids = _Ids(snapshot)
        predicates = snapshot.predicates(numbers).tolist()
        subjects, objects = ids.places(snapshot.relation_subject[numbers]), ids.places(snapshot.relation_object[numbers])
        types, sids = [self._types[p] for p in predicates], self.sids[numbers].tolist()
        rows: Rows = [
            [s, o, t, sid, *places, *valid]
            for s, o, t, sid, places, valid in zip(
                subjects, objects, types, sids, self._places(numbers), self._validity(numbers), strict=True
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
        get, ids = snapshot.arrays.get, _Ids(snapshot)
        predicates = snapshot.predicates(numbers).tolist()
        at = numbers - np.int32(snapshot.relations)
        subjects = ids.places(snapshot.attribute_subject[at])
        raws = get("att.raw")[at].tolist() if len(get("att.raw")) else [-1] * len(at)
        cells = self._cells("att", at)
        rows: Rows = []
        for s, p, sid, places, valid, cell, raw in zip(
            subjects,
            predicates,
            self.sids[numbers].tolist(),
            self._places(numbers),
            self._validity(numbers),
            cells,
            raws,
            strict=True,
        ):
            shown = None if raw < 0 else snapshot.texts[raw]
            caption = caption_of(cell[1] if shown is None else shown)
            rows.append([s, self._types[p], sid, *places, *valid, self._predicates[p], caption, shown, *cell])
        if not kind.endswith("qualifiers"):
            return Batch(kind, name, ids.texts(), rows, len(rows), len(rows))
        references, qualifiers = self._qualify(rows, numbers, ids)
        return Batch(kind, name, ids.texts(), rows, len(rows) + qualifiers, len(rows) + qualifiers + references)

    def _places(self, numbers: Numbers) -> Iterator[tuple[list[str], list[int]]]:
        """The sources of each statement, and the rows there, side by side."""
        sources, rows, names = self.snapshot.source[numbers].tolist(), self.snapshot.row[numbers].tolist(), self._sources_named
        for number, source, row in zip(numbers.tolist(), sources, rows, strict=True):
            more = self._further.get(number)
            if more is None:
                yield [names[source]], [row]
            else:
                yield [names[source], *(names[one] for one, _ in more)], [row, *(one for _, one in more)]

    def _validity(self, numbers: Numbers) -> Iterator[tuple[int | None, int | None, int | None, str | None]]:
        """`since`, `until`, `span` and `valid` of each statement that has a validity."""
        get = self.snapshot.arrays.get
        owners, starts, ends = get("val.stmt"), get("val.start"), get("val.end")
        if not len(owners):
            yield from ((None, None, None, None),) * len(numbers)
            return
        at = np.minimum(owners.searchsorted(numbers), len(owners) - 1)
        starts, ends = starts[at], ends[at]
        columns = (owners[at] == numbers, starts, ends, span_precision(starts, ends))
        for has, start, end, precision in zip(*(column.tolist() for column in columns), strict=True):
            if not has:
                yield None, None, None, None
            else:
                known = start != UNKNOWN_START and end != UNKNOWN_END
                yield start, end, precision, str(Time(start, end, Precision(precision))) if known else None

    def _qualify(self, rows: Rows, numbers: Numbers, ids: _Ids) -> tuple[int, int]:
        """Append the qualifiers of each statement to its row; how many of them name entities, and how many there are."""
        snapshot = self.snapshot
        get = snapshot.arrays.get
        order = np.argsort(numbers, kind="stable")
        positions, found = snapshot.qualifiers(numbers[order])
        refs = get("q.ref")[found]
        named = get("q.kind")[found] == Kind.ENTITY
        places = iter(ids.places(refs[named]))
        for row in rows:
            row.append([])
        keys = get("q.key")[found].tolist()
        for position, key, cell, ref, name in zip(
            order[positions].tolist(), keys, self._cells("q", found), refs.tolist(), named.tolist(), strict=True
        ):
            ident, place = (snapshot.ident(ref), next(places)) if name else (None, None)
            rows[position][-1].append([self._predicates[key], *cell, ident, place])
        return int(named.sum()), len(keys)

    def _cells(self, family: str, numbers: NDArray[Any]) -> Iterator[tuple[Any, ...]]:
        """The properties of each cell, as `CELL` names them."""
        get, texts = self.snapshot.arrays.get, self.snapshot.texts
        columns = {part: get(f"{family}.{part}")[numbers] for part, _ in PARTS}
        floats = columns["a"].view(np.float64).tolist()
        units: dict[int, str] = {-1: NO_UNIT}
        for x, kind, a, b, ref, unit, precision in zip(floats, *(columns[part].tolist() for part, _ in PARTS), strict=True):
            word = _WORDS[kind]
            if kind == Kind.TEXT:
                text = texts[ref]
                yield word, text, index_key(text), None, None, None, None, None, None, _order(text), inner_ranks(text)
            elif kind == Kind.QUANTITY:
                named = units.get(unit)
                if named is None:
                    named = units[unit] = texts[unit]
                number = x if ref < 0 else parse_number(texts[ref])
                order = None if ref < 0 else tie_break(number)
                exact = str(number) if order not in (None, "1") else None
                yield word, str(Quantity(number, named)), None, x, exact, named, None, None, None, exact and order, None
            elif kind == Kind.TIME:
                text = str(Time(a, b, Precision(precision)))
                yield word, text, None, None, None, None, a, b, precision, None, None
            elif kind == Kind.ENTITY:
                name = self.snapshot.name(ref)
                yield word, name, index_key(name), *_NOTHING[3:]
            else:
                yield word, str(UNKNOWN), *_NOTHING[2:]

    def _more_sources(self) -> Iterator[Batch]:
        """Statements that were there and have a further source now."""
        snapshot, previous, known = self.snapshot, self.previous, self._known
        if previous is None or not len(known):
            return
        before = np.bincount(previous.arrays.get("prov.stmt"), minlength=previous.statements)
        now = np.bincount(snapshot.arrays.get("prov.stmt"), minlength=snapshot.statements)
        order = np.argsort(known)
        at = order[np.minimum(np.searchsorted(known, self.sids, sorter=order), len(known) - 1)]
        changed = np.flatnonzero((known[at] == self.sids) & (before[at] != now)).astype(np.int32)
        split = snapshot.split(changed)

        def relations(kind: str, name: str, numbers: Numbers) -> Batch:
            ids = _Ids(snapshot)
            types = [self._types[p] for p in snapshot.predicates(numbers).tolist()]
            ends = ids.places(snapshot.relation_subject[numbers]), ids.places(snapshot.relation_object[numbers])
            rows: Rows = [
                [s, o, t, sid, *places]
                for s, o, t, sid, places in zip(*ends, types, self.sids[numbers].tolist(), self._places(numbers), strict=True)
            ]
            return Batch(kind, name, ids.texts(), rows)

        def attributes(kind: str, name: str, numbers: Numbers) -> Batch:
            sids = self.sids[numbers].tolist()
            return Batch(kind, name, [], [[sid, *places] for sid, places in zip(sids, self._places(numbers), strict=True)])

        yield from self._cut("sources of relations", changed[:split], relations)
        yield from self._cut("sources of attributes", changed[split:], attributes)

    # -- concepts ---------------------------------------------------------------------------------------------------------

    def _concepts(self) -> Iterator[Batch]:
        """Membership, also what follows from it, and subclasses: those that are new, and those with other sources."""
        for prefix, kind in (("mem", "members"), ("sub", "subclasses")):
            now = concept_pairs(self.snapshot, prefix)
            before: dict[tuple[str, str], tuple[tuple[str, int], ...]] = {}
            if self.previous is not None:
                before = {
                    _named(self.previous, pair): _sourced(self.previous, at)
                    for pair, at in concept_pairs(self.previous, prefix).items()
                }
            new, changed = [], []
            for pair, at in now.items():
                known = before.get(_named(self.snapshot, pair)) if before else None
                if known is None:
                    new.append((*pair, at))
                elif known != _sourced(self.snapshot, at):
                    changed.append((*pair, at))
            for word, found in ((kind, new), (f"{kind} that changed", changed)):
                every = np.arange(len(found), dtype=np.int32)
                yield from self._cut(word, every, lambda kind, name, numbers, found=found: self._pairs(kind, name, numbers, found))  # type: ignore[misc]

    def _pairs(self, kind: str, name: str, numbers: Numbers, found: list[tuple[int, int, list[tuple[int, int]]]]) -> Batch:
        ids = _Ids(self.snapshot)
        part = [found[i] for i in numbers.tolist()]
        ends = [ids.places(np.array([one[side] for one in part], np.int32)) for side in (0, 1)]
        rows: Rows = [
            [one, other, [self._sources_named[source] for source, _ in at], [row for _, row in at]]
            for one, other, (_, _, at) in zip(*ends, part, strict=True)
        ]
        return Batch(kind, name, ids.texts(), rows, *((None, None) if kind.endswith("changed") else (0, len(rows))))


class _Ids:
    """The entities of a batch, each once."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._places: dict[int, int] = {}

    def places(self, numbers: NDArray[Any]) -> list[int]:
        """The place of each entity in the batch's list."""
        places = self._places
        return [places.setdefault(number, len(places)) for number in numbers.tolist()]

    def texts(self) -> list[str]:
        """Their ids, in the order of places."""
        numbers = np.fromiter(self._places, np.int32, len(self._places))
        return self._snapshot.texts.take(self._snapshot.entity_id[numbers])


def concept_pairs(snapshot: Snapshot, prefix: str) -> dict[tuple[int, int], list[tuple[int, int]]]:
    """Direct membership ("mem") or subclasses ("sub") with their sources, and for membership what follows from it, without."""
    get = snapshot.arrays.get
    found: dict[tuple[int, int], list[tuple[int, int]]] = {}
    columns = ("mem.e", "mem.c", "mem.src", "mem.row") if prefix == "mem" else ("sub.c", "sub.p", "sub.src", "sub.row")
    for one, other, source, row in zip(*(get(name).tolist() for name in columns), strict=True):
        found.setdefault((one, other), []).append((source, row))
    if prefix == "mem":
        offsets, items = get("con.offsets"), get("con.items")
        for at, concept in enumerate(get("con.entity").tolist()):
            for entity in items[offsets[at] : offsets[at + 1]].tolist():
                found.setdefault((entity, concept), [])
    return found


def _named(snapshot: Snapshot, pair: tuple[int, int]) -> tuple[str, str]:
    return snapshot.ident(pair[0]), snapshot.ident(pair[1])


def _sourced(snapshot: Snapshot, places: list[tuple[int, int]]) -> tuple[tuple[str, int], ...]:
    return tuple((snapshot.source_of(source).name, row) for source, row in places)


def _order(text: str) -> str | None:
    order = text_order(text)
    return None if order == text else order


def cell_properties(variable: str, first: int) -> str:
    """The properties of a value in Cypher, where a list has them from a place on."""
    return ", ".join(f"{name}: {variable}[{place}]" for place, name in enumerate(CELL, first))


def caption_of(text: str) -> str:
    """A text as Browser shows it in a node."""
    return text if len(text) <= CAPTION else text[: CAPTION - 1] + "…"
