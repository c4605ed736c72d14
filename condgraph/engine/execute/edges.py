"""The parts of a graph pattern in process: the matches of each part alone, indexed by either end."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.algebra.operators import Entities
from condgraph.engine.algebra.solutions import MembershipPattern, StatementPattern, Variable
from condgraph.engine.bounds import changed, check, different, in_order
from condgraph.engine.execute.facts import pointing_at, satisfying
from condgraph.engine.execute.rowset import ENTITY, Places, Terms, object_terms, subjects
from condgraph.engine.execute.sets import FactSet, among, distinct, intersect
from condgraph.engine.execute.validity import holds_at

if TYPE_CHECKING:
    from condgraph.engine.execute.run import Run
    from condgraph.engine.snapshot.snapshot import Snapshot

Numbers = NDArray[np.int32]
#: The largest size in bytes of the indexes of whole predicates that are cached with a snapshot.
_MAX_INDEX_BYTES: Final = 256_000_000


# -- indexes -----------------------------------------------------------------------------------------


class Index:
    """The entries of an edge, indexed by one end: sorted near ends, and for each the far end (-1: a value) and the
    statement.
    """

    __slots__ = ("_pairs", "entries", "far", "near", "offsets", "size")

    def __init__(self, near: Numbers, far: Numbers, entries: NDArray[Any], entities: int) -> None:
        self.near, self.far, self.entries, self.size = near, far, entries, entities
        self.offsets: Places | None = None
        self._pairs: _Pairs | None = None
        if entities <= 16 * len(near) + 65_536:
            self.offsets = np.zeros(entities + 1, np.int64)
            np.cumsum(np.bincount(near, minlength=entities), out=self.offsets[1:])

    def bounds(self, ends: Numbers) -> tuple[Places, Places]:
        """Return the begin and end of the entries of each near end; an empty range for -1."""
        if self.offsets is not None:
            safe = np.maximum(ends, 0)
            low, high = self.offsets.take(safe), self.offsets.take(safe + 1)
            return low, np.where(ends < 0, low, high)
        return np.searchsorted(self.near, ends), np.searchsorted(self.near, ends, side="right")

    def between(self, near: Numbers, far: Numbers) -> tuple[Places, Places, Places]:
        """Return the positions of the pairs of ends that are connected, and the begin and end of their entries."""
        if self._pairs is None:
            self._pairs = _Pairs(self.near, self.far)
        return self._pairs.find(near, far)

    @property
    def nbytes(self) -> int:
        """The memory in bytes that it takes, including the index of pairs, which is made on demand."""
        return 12 * self.near.nbytes + 8 * self.size


#: The multiplier that spreads keys over buckets (64 bits of the golden ratio, odd).
_ODD: Final = np.uint64(0x9E3779B97F4A7C15)


class _Pairs:
    """A hash index from the distinct pairs of ends to their entries: a binary search would miss the cache at every
    step.
    """

    def __init__(self, near: Numbers, far: Numbers) -> None:
        keys = self._keys(near, far)
        first = np.flatnonzero(changed(keys)) if len(keys) else np.empty(0, np.int64)
        stop = np.append(first[1:], len(keys))
        keys = keys.take(first)
        self._shift = np.uint64(64 - max(4, (2 * len(keys)).bit_length()))
        buckets = self._bucket(keys)
        order = in_order([buckets])
        self._bounds = np.zeros((1 << (64 - int(self._shift))) + 1, np.int32)
        np.cumsum(np.bincount(buckets, minlength=len(self._bounds) - 1), out=self._bounds[1:])
        self._present, self._first, self._stop = keys.take(order), first.take(order), stop.take(order)

    @staticmethod
    def _keys(near: Numbers, far: Numbers) -> Places:
        return near.astype(np.int64) << 32 | (far.astype(np.int64) + 1)

    def _bucket(self, keys: Places) -> Places:
        return ((keys.view(np.uint64) * _ODD) >> self._shift).astype(np.int64)

    def find(self, near: Numbers, far: Numbers) -> tuple[Places, Places, Places]:
        """As `Index.between`; an end of -1 is not connected."""
        keys = self._keys(near, far)
        buckets = self._bucket(keys)
        place, last = self._bounds.take(buckets), self._bounds.take(buckets + 1)
        waiting = np.flatnonzero((place < last) & (far >= 0))
        place, last, keys = place.take(waiting), last.take(waiting), keys.take(waiting)
        found = np.full(len(near), -1, np.int32)
        while len(waiting):
            hit = self._present.take(place) == keys
            found[waiting[hit]] = place[hit]
            pending = np.flatnonzero(~hit & (place + 1 < last))
            waiting, place, last, keys = waiting.take(pending), place.take(pending) + 1, last.take(pending), keys.take(pending)
        pairs = np.flatnonzero(found >= 0)
        places = found.take(pairs)
        return pairs, self._first.take(places), self._stop.take(places)


def index_of(snapshot: Snapshot, key: tuple[Any, ...], make: Callable[[], Index]) -> Index:
    """Return the index of a whole predicate, cached with the snapshot by predicates, family and direction; the oldest
    are dropped to make room.
    """
    cache: dict[Any, Index] = snapshot.schema.kept.setdefault("row indexes", {})
    index = cache.get(key)
    if index is None:
        index = make()
        while cache and sum(cached.nbytes for cached in list(cache.values())) + index.nbytes > _MAX_INDEX_BYTES:
            cache.pop(next(iter(cache)), None)
        cache[key] = index
    return index


# -- edges -------------------------------------------------------------------------------------------


class Entries(NamedTuple):
    """The matches of an edge alone: its two ends, and the statement (-1: a membership)."""

    subject: Numbers
    object: Terms
    statement: Numbers


class Edge:
    """A part of a pattern. `subject` and `object` are the variables at its ends, or None."""

    def __init__(self, run: Run, part: StatementPattern | MembershipPattern, number: int) -> None:
        self.run, self.part, self.number = run, part, number
        self._entries: Entries | None = None
        self._indexes: dict[bool, Index] = {}
        ends = (part.subject, part.object) if isinstance(part, StatementPattern) else (part.member, part.concept)
        self.subject, self.object = (end.name if isinstance(end, Variable) else None for end in ends)
        self.sets = tuple(run.entities(end) if isinstance(end, Entities) else None for end in ends)
        self.whole = (
            isinstance(part, StatementPattern)
            and all(of is None for of in self.sets)
            and part.condition is None
            and part.among is None
            and not part.undirected
            and not (self.subject is not None and self.subject == self.object)
        )
        self.family = "relation"
        if isinstance(part, StatementPattern) and self.sets[1] is None and not part.undirected:
            self.family = part.family
            if part.family == "any" and isinstance(part.predicate, tuple):
                # Most predicates have objects of one family.
                snapshot = run.snapshot
                relations, attributes = (bool(snapshot.runs(part.predicate, relation, not relation)) for relation in (True, False))
                self.family = "relation" if not attributes else "attribute" if not relations else "any"

    @property
    def variables(self) -> tuple[str, ...]:
        return self.part.variables

    @property
    def inner(self) -> tuple[str, ...]:
        """The variables that it binds other than its ends."""
        part = self.part
        if isinstance(part, MembershipPattern):
            return ()
        return StatementPattern(None, part.predicate, None, None, part.statement, part.qualifiers).variables

    @property
    def predicates(self) -> tuple[str, ...] | None:
        """The predicates of its statements; None for any."""
        part = self.part
        return part.predicate if isinstance(part, StatementPattern) and isinstance(part.predicate, tuple) else None

    def runs(self) -> list[tuple[int, int]]:
        """Return its statements as runs."""
        part = self.part
        if self.sets[1] is not None and isinstance(part, StatementPattern) and part.family == "attribute" and not part.undirected:
            # No value is an entity.
            return []
        return self.run.snapshot.runs(self.predicates, self.family != "attribute", self.family != "relation")

    def size(self) -> int:
        """Return the number of entries, before qualifiers are tested."""
        return sum(high - low for low, high in self.runs()) if self.whole else len(self.entries().subject)

    # -- entries -----------------------------------------------------------------------------------

    def entries(self) -> Entries:
        if self._entries is None:
            self._entries = self._memberships() if isinstance(self.part, MembershipPattern) else self._statements(self.part)
        return self._entries

    def _statements(self, part: StatementPattern) -> Entries:
        scope = self.run.scope
        numbers = self._selected(part, *self.sets)
        entries = Entries(subjects(scope, numbers), object_terms(scope, numbers), numbers)
        if part.undirected:
            numbers = self._selected(part, *reversed(self.sets))
            snapshot = self.run.snapshot
            numbers = numbers[snapshot.relation_subject.take(numbers) != snapshot.relation_object.take(numbers)]
            reversed_entries = Entries(
                snapshot.relation_object.take(numbers), Terms(ENTITY, snapshot.relation_subject.take(numbers)), numbers
            )
            entries = Entries(
                np.concatenate([entries.subject, reversed_entries.subject]),
                Terms.joined([entries.object, reversed_entries.object]),
                np.concatenate([entries.statement, reversed_entries.statement]),
            )
        if self.subject is not None and self.subject == self.object:
            loops = np.flatnonzero(entries.subject == entries.object.entities())
            entries = Entries(entries.subject.take(loops), entries.object.take(loops), entries.statement.take(loops))
        return entries

    def _selected(self, part: StatementPattern, subject: Numbers | None, target: Numbers | None) -> Numbers:
        run = self.run
        facts = FactSet(run, "subject", runs=self.runs(), of=subject, anchor="subject")
        if target is not None:
            facts = facts.keep(pointing_at(facts, target))
        if part.condition is not None:
            facts = satisfying(run, facts, part.condition)
        if (during := part.during) is not None:
            numbers = facts.all()
            return numbers[holds_at(run.snapshot, during.relation, during.interval, numbers)]
        if part.among is not None:
            return intersect(facts.all(), run.facts(part.among).all(), run.snapshot.statements)
        return facts.all()

    def _memberships(self) -> Entries:
        part, snapshot = self.part, self.run.snapshot
        assert isinstance(part, MembershipPattern)
        get = snapshot.arrays.get
        if part.direct:
            pairs = different(get("mem.e").astype(np.int64) << 32 | get("mem.c"))
            members, concepts = (pairs >> 32).astype(np.int32), (pairs & 0xFFFFFFFF).astype(np.int32)
        else:
            offsets = np.asarray(get("con.offsets"))
            members, concepts = get("con.items"), np.asarray(get("con.entity")).repeat(np.diff(offsets)).astype(np.int32)
        for end, of in enumerate(self.sets):
            if of is not None:
                chosen = np.flatnonzero(among((members, concepts)[end], of, snapshot.entities))
                members, concepts = members.take(chosen), concepts.take(chosen)
        if self.subject is None or self.object is None or self.subject == self.object:
            # Each combination of what is bound once.
            if self.subject is not None and self.subject == self.object:
                loops = members == concepts
                members, concepts = members[loops], concepts[loops]
            bound = members if self.object is None or self.subject == self.object else concepts
            bound = distinct(bound, snapshot.entities) if self.subject is not None or self.object is not None else bound[:1]
            members = concepts = bound
        return Entries(members, Terms(ENTITY, concepts), np.full(len(members), -1, np.int32))

    def index(self, backward: bool) -> Index:
        """Return the entries indexed by subject, or with `backward` by object, if that is an entity."""
        index = self._indexes.get(backward)
        if index is None:
            make, key = partial(self._indexed, backward), (self.predicates, self.family, backward)
            index = self._indexes[backward] = index_of(self.run.snapshot, key, make) if self.whole else make()
        return index

    def _indexed(self, backward: bool) -> Index:
        check()
        snapshot, runs = self.run.snapshot, self.runs() if isinstance(self.part, StatementPattern) else []
        one_run = self.predicates is not None and len(runs) == 1
        if self.whole and one_run and runs[0][1] <= snapshot.relations and not backward:
            # Relations of one predicate are numbered by subject and object.
            low, high = runs[0]
            near, far = snapshot.relation_subject[low:high], snapshot.relation_object[low:high]
            return Index(near, far, np.arange(low, high, dtype=np.int32), snapshot.entities)
        entries = self.entries()
        far = entries.object.entities()
        near = entries.subject
        places: Places | None = None
        if backward:
            near, far = far, near
            if (near < 0).any():
                places = np.flatnonzero(near >= 0)
                near, far = near.take(places), far.take(places)
        order = in_order([near, far])
        rows = order if places is None else places.take(order)
        # For whole predicates the entry is the statement itself, because the index outlives the entries.
        entry_numbers = entries.statement.take(rows) if self.whole else rows
        return Index(near.take(order), far.take(order), entry_numbers, snapshot.entities)

    def statements(self, entries: NDArray[Any]) -> Numbers:
        """Return the statements of entries of an index."""
        return entries if self.whole else self.entries().statement.take(entries)

    def far_terms(self, entries: NDArray[Any], backward: bool) -> Terms:
        """Return the far ends of entries of an index."""
        if not self.whole:
            all_entries = self.entries()
            return Terms(ENTITY, all_entries.subject.take(entries)) if backward else all_entries.object.take(entries)
        scope = self.run.scope
        return Terms(ENTITY, subjects(scope, entries)) if backward else object_terms(scope, entries)


def may_meet(one: Edge, other: Edge) -> bool:
    """Return whether two parts may match the same statement."""
    if {one.family, other.family} == {"relation", "attribute"}:
        return False
    return one.predicates is None or other.predicates is None or not set(one.predicates).isdisjoint(other.predicates)
