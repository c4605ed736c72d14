"""Patterns of statements in process: every way to match all parts of a `Pattern` at once.

Each part is an edge between two ends. The rows grow one variable at a time: of the variables that lead on from what is
bound, the one with the fewest candidates, counted exactly. Where several edges lead to it, every row takes the edge
with the fewest statements, and looks its candidates up in the others, so that a cycle costs no more than the smaller
of its sides (a worst-case optimal join, after Ngo, Porat, Ré and Rudra, 2012, over columns). Rows are expanded in
chunks. Parts that share no variable are matched by themselves, and joined last.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.algebra.expressions import variables
from condgraph.engine.algebra.operators import Entities, Node
from condgraph.engine.algebra.solutions import (
    AntiJoin,
    EntitiesOf,
    FactsOf,
    Filter,
    GroupRows,
    Join,
    LeftJoin,
    MarkJoin,
    MembershipPattern,
    MinusRows,
    Pattern,
    Project,
    QualifierPattern,
    SemiJoin,
    StatementPattern,
    Variable,
)
from condgraph.engine.bounds import check
from condgraph.engine.errors import PlanError
from condgraph.engine.execute.conditions import holds
from condgraph.engine.execute.facts import pointing_at, satisfying
from condgraph.engine.execute.factset import FactSet
from condgraph.engine.execute.rowset import (
    CHUNK,
    ENTITY,
    MOST_ROWS,
    PREDICATE,
    STATEMENT,
    Places,
    RowSet,
    Terms,
    chunks,
    codes,
    compatible,
    concatenated,
    merged,
    object_terms,
    qualifier_terms,
    subjects,
    too_many,
)
from condgraph.engine.execute.sets import among, distinct, intersect
from condgraph.engine.execute.validity import holds_at
from condgraph.engine.pieces import changed, different, in_order
from condgraph.engine.snapshot.ordered import Cells
from condgraph.engine.snapshot.snapshot import ranges

if TYPE_CHECKING:
    from condgraph.engine.execute.run import Run
    from condgraph.engine.snapshot.snapshot import Snapshot

Numbers = NDArray[np.int32]
#: Bytes of the indexes of whole predicates that are kept with a snapshot.
_MOST_INDEXED: Final = 256_000_000


# -- indexes -----------------------------------------------------------------------------------------


class Index:
    """The entries of an edge by one end: near ends sorted, the far end (-1: a value) and the statement next to each."""

    __slots__ = ("_pairs", "entries", "far", "near", "offsets", "size")

    def __init__(self, near: Numbers, far: Numbers, entries: NDArray[Any], entities: int) -> None:
        self.near, self.far, self.entries, self.size = near, far, entries, entities
        self.offsets: Places | None = None
        self._pairs: _Pairs | None = None
        if entities <= 16 * len(near) + 65_536:
            self.offsets = np.zeros(entities + 1, np.int64)
            np.cumsum(np.bincount(near, minlength=entities), out=self.offsets[1:])

    def bounds(self, ends: Numbers) -> tuple[Places, Places]:
        """Where the entries of each of these ends begin and stop; of -1 there are none."""
        if self.offsets is not None:
            safe = np.maximum(ends, 0)
            low, high = self.offsets.take(safe), self.offsets.take(safe + 1)
            return low, np.where(ends < 0, low, high)
        return np.searchsorted(self.near, ends), np.searchsorted(self.near, ends, side="right")

    def between(self, near: Numbers, far: Numbers) -> tuple[Places, Places, Places]:
        """The places of the pairs of ends that entries connect, and where these entries begin and stop."""
        if self._pairs is None:
            self._pairs = _Pairs(self.near, self.far)
        return self._pairs.find(near, far)

    @property
    def nbytes(self) -> int:
        """How much memory it takes, with what may still be made."""
        return 12 * self.near.nbytes + 8 * self.size


#: An odd number by which keys are spread over buckets (the golden ratio of 64 bits).
_ODD: Final = np.uint64(0x9E3779B97F4A7C15)


class _Pairs:
    """The distinct pairs of ends of an index by a hash, and the entries of each: a binary search would miss the cache at
    every step.
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
        self._known, self._first, self._stop = keys.take(order), first.take(order), stop.take(order)

    @staticmethod
    def _keys(near: Numbers, far: Numbers) -> Places:
        return near.astype(np.int64) << 32 | (far.astype(np.int64) + 1)

    def _bucket(self, keys: Places) -> Places:
        return ((keys.view(np.uint64) * _ODD) >> self._shift).astype(np.int64)

    def find(self, near: Numbers, far: Numbers) -> tuple[Places, Places, Places]:
        """As `Index.between`; an end of -1 is connected to nothing."""
        keys = self._keys(near, far)
        buckets = self._bucket(keys)
        place, last = self._bounds.take(buckets), self._bounds.take(buckets + 1)
        waiting = np.flatnonzero((place < last) & (far >= 0))
        place, last, keys = place.take(waiting), last.take(waiting), keys.take(waiting)
        found = np.full(len(near), -1, np.int32)
        while len(waiting):
            hit = self._known.take(place) == keys
            found[waiting[hit]] = place[hit]
            rest = np.flatnonzero(~hit & (place + 1 < last))
            waiting, place, last, keys = waiting.take(rest), place.take(rest) + 1, last.take(rest), keys.take(rest)
        pairs = np.flatnonzero(found >= 0)
        places = found.take(pairs)
        return pairs, self._first.take(places), self._stop.take(places)


class Indexes:
    """The indexes of whole predicates that a snapshot keeps, by what they are of."""

    def __init__(self) -> None:
        self._kept: dict[Any, Index] = {}

    def get(self, key: Any) -> Index | None:
        """An index, if it is kept."""
        return self._kept.get(key)

    def keep(self, key: Any, index: Index) -> None:
        """Keep an index; the oldest ones go where there is no room."""
        while self._kept and sum(one.nbytes for one in list(self._kept.values())) + index.nbytes > _MOST_INDEXED:
            self._kept.pop(next(iter(self._kept)), None)
        self._kept[key] = index


def indexes(snapshot: Snapshot) -> Indexes:
    """Those of a snapshot."""
    kept = snapshot.schema.kept
    found = kept.get("row indexes")
    if found is None:
        found = kept.setdefault("row indexes", Indexes())
    assert isinstance(found, Indexes)
    return found


# -- edges -------------------------------------------------------------------------------------------


class Entries(NamedTuple):
    """What matches an edge by itself: its two ends, and the statement (-1: a membership)."""

    subject: Numbers
    object: Terms
    statement: Numbers


class Edge:
    """A part of a pattern. `subject` and `object` are the variables at its ends, None where nothing is bound there."""

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
        if isinstance(part, StatementPattern):
            self.family = part.family
            if self.sets[1] is not None or part.undirected:
                self.family = "relation"
            elif part.family == "any" and isinstance(part.predicate, tuple):
                # Most predicates have objects of one family.
                snapshot = run.snapshot
                relations, attributes = (bool(snapshot.runs(part.predicate, one, not one)) for one in (True, False))
                self.family = "relation" if not attributes else "attribute" if not relations else "any"

    @property
    def variables(self) -> tuple[str, ...]:
        """What it binds."""
        return self.part.variables

    @property
    def inner(self) -> tuple[str, ...]:
        """What its statements bind beside their ends."""
        part = self.part
        if isinstance(part, MembershipPattern):
            return ()
        return StatementPattern(None, part.predicate, None, None, part.statement, part.qualifiers).variables

    @property
    def predicates(self) -> tuple[str, ...] | None:
        """The predicates that its statements may have; None for any."""
        part = self.part
        return part.predicate if isinstance(part, StatementPattern) and isinstance(part.predicate, tuple) else None

    def runs(self) -> list[tuple[int, int]]:
        """The runs of its statements."""
        if self.sets[1] is not None and isinstance(self.part, StatementPattern) and self.part.family == "attribute":
            # No value is an entity.
            return []
        return self.run.snapshot.runs(self.predicates, self.family != "attribute", self.family != "relation")

    def size(self) -> int:
        """How many entries there are, before qualifiers are looked at."""
        return sum(high - low for low, high in self.runs()) if self.whole else len(self.entries().subject)

    # -- entries -----------------------------------------------------------------------------------

    def entries(self) -> Entries:
        """All entries."""
        if self._entries is None:
            self._entries = self._memberships() if isinstance(self.part, MembershipPattern) else self._statements(self.part)
        return self._entries

    def _statements(self, part: StatementPattern) -> Entries:
        scope = self.run.scope
        numbers = self._chosen(part, *self.sets)
        found = Entries(subjects(scope, numbers), object_terms(scope, numbers), numbers)
        if part.undirected:
            numbers = self._chosen(part, *reversed(self.sets))
            snapshot = self.run.snapshot
            numbers = numbers[snapshot.relation_subject.take(numbers) != snapshot.relation_object.take(numbers)]
            turned = Entries(
                snapshot.relation_object.take(numbers), Terms(ENTITY, snapshot.relation_subject.take(numbers)), numbers
            )
            found = Entries(
                np.concatenate([found.subject, turned.subject]),
                Terms.joined([found.object, turned.object]),
                np.concatenate([found.statement, turned.statement]),
            )
        if self.subject is not None and self.subject == self.object:
            loops = np.flatnonzero(found.subject == found.object.entities())
            found = Entries(found.subject.take(loops), found.object.take(loops), found.statement.take(loops))
        return found

    def _chosen(self, part: StatementPattern, subject: Numbers | None, target: Numbers | None) -> Numbers:
        run = self.run
        facts = FactSet(run, "subject", runs=self.runs(), of=subject, anchor="subject")
        if target is not None:
            facts = facts.keep(pointing_at(facts, target))
        if part.condition is not None:
            if part.undirected:
                raise PlanError("a pattern of both directions has no condition on its object")
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
        for at, of in enumerate(self.sets):
            if of is not None:
                there = np.flatnonzero(among((members, concepts)[at], of, snapshot.entities))
                members, concepts = members.take(there), concepts.take(there)
        if self.subject is None or self.object is None or self.subject == self.object:
            # Each combination of what is bound once.
            if self.subject is not None and self.subject == self.object:
                loops = members == concepts
                members, concepts = members[loops], concepts[loops]
            kept = members if self.object is None or self.subject == self.object else concepts
            kept = distinct(kept, snapshot.entities) if self.subject is not None or self.object is not None else kept[:1]
            members = concepts = kept
        return Entries(members, Terms(ENTITY, concepts), np.full(len(members), -1, np.int32))

    def index(self, backward: bool) -> Index:
        """The entries by their subject, or backward by their object, if that is an entity."""
        known = self._indexes.get(backward)
        if known is None:
            snapshot = self.run.snapshot
            key = (self.predicates, self.family, backward)
            known = indexes(snapshot).get(key) if self.whole else None
            if known is None:
                known = self._indexed(backward)
                if self.whole:
                    indexes(snapshot).keep(key, known)
            self._indexes[backward] = known
        return known

    def _indexed(self, backward: bool) -> Index:
        check()
        snapshot, runs = self.run.snapshot, self.runs() if isinstance(self.part, StatementPattern) else []
        one = self.predicates is not None and len(runs) == 1
        if self.whole and one and runs[0][1] <= snapshot.relations and not backward:
            # Relations of one predicate are numbered by subject and object.
            low, high = runs[0]
            return Index(
                snapshot.relation_subject[low:high],
                snapshot.relation_object[low:high],
                np.arange(low, high, dtype=np.int32),
                snapshot.entities,
            )
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
        at = order if places is None else places.take(order)
        # Of whole predicates statements are entries, whose places nobody knows later.
        of = entries.statement.take(at) if self.whole else at
        return Index(near.take(order), far.take(order), of, snapshot.entities)

    def statements(self, entries: NDArray[Any]) -> Numbers:
        """The statements of entries of an index."""
        return entries if self.whole else self.entries().statement.take(entries)

    def far_terms(self, entries: NDArray[Any], backward: bool) -> Terms:
        """The far ends of entries of an index."""
        if not self.whole:
            found = self.entries()
            return Terms(ENTITY, found.subject.take(entries)) if backward else found.object.take(entries)
        scope = self.run.scope
        return Terms(ENTITY, subjects(scope, entries)) if backward else object_terms(scope, entries)


# -- matching ----------------------------------------------------------------------------------------


def hidden(number: int) -> str:
    """The name of the column of the statements that match a part."""
    return f"\0{number}"


class Solver:
    """One matching of a pattern. `seed` are rows that it extends; with `trace` the statement of every part is kept, in a
    column of the name `hidden` gives. Only variables that are `needed` (None: all) have columns in the end.
    """

    def __init__(
        self, run: Run, pattern: Pattern, seed: RowSet | None = None, *, trace: bool = False, needed: Set[str] | None = None
    ) -> None:
        self.run, self.pattern, self.seed, self.trace, self.needed = run, pattern, seed, trace, needed
        parts: tuple[StatementPattern | MembershipPattern, ...] = (*pattern.statements, *pattern.memberships)
        self.edges = [Edge(run, part, number) for number, part in enumerate(parts)]
        #: Parts whose statements have to differ.
        self.apart: list[tuple[int, int]] = []
        if pattern.different:
            for number in range(len(pattern.statements)):
                for other in range(number):
                    if may_meet(self.edges[number], self.edges[other]):
                        self.apart.append((other, number))
        self.kept = {number for pair in self.apart for number in pair}
        if trace:
            self.kept = set(range(len(pattern.statements)))
        #: The edges that are still to be matched while one is.
        self._left: list[Edge] = []
        #: Entities that a variable may be, by its name.
        self.within: dict[str, Numbers] = {}
        self.rest: list[Edge] = []
        for edge in self.edges:
            if not self._restricts(edge):
                self.rest.append(edge)

    def _restricts(self, edge: Edge) -> bool:
        """Whether a membership says no more than that a variable lies in a set."""
        if not isinstance(edge.part, MembershipPattern) or (edge.subject is not None) == (edge.object is not None):
            return False
        name = edge.subject or edge.object
        assert name is not None
        entries = edge.entries()
        if edge.subject is not None and edge.sets[1] is not None and not edge.part.direct:
            found = self.run.snapshot.members(tuple(edge.sets[1].tolist()))
        else:
            found = distinct(entries.subject, self.run.snapshot.entities)
        known = self.within.get(name)
        self.within[name] = found if known is None else intersect(known, found, self.run.snapshot.entities)
        return True

    def rows(self) -> RowSet:
        """All rows, with the variables of the seed and the pattern."""
        seed = self.seed
        names = list(dict.fromkeys([*(() if seed is None else seed.columns), *self.pattern.variables]))
        names += [hidden(number) for number in sorted(self.kept) if self.trace]
        parts = self._components()
        result: RowSet | None = None
        if seed is not None and not any(group_seed for _, group_seed, _ in parts):
            result = seed
        for edges, seeded, sets in sorted(parts, key=lambda part: not part[1]):
            rows = self._component(edges, seed if seeded else None, sets)
            if result is not None:
                one, other = compatible(result, rows, ())
                rows = self._differing(merged(result, rows, one, other, list({**result.columns, **rows.columns})))
            result = rows
            if not result.size:
                break
        if result is None:
            result = RowSet(self.run.scope, 1, {})
        if self.trace:
            return result.only(names)
        shown = [name for name in names if not name.startswith("\0") and (self.needed is None or name in self.needed)]
        return result.only(shown)

    def _components(self) -> list[tuple[list[Edge], bool, list[str]]]:
        """The parts by the variables that connect them: edges, whether the seed is among them, and variables that only
        lie in sets.
        """
        seeded = set() if self.seed is None else set(self.seed.columns)
        groups: list[tuple[set[str], list[Edge], bool, list[str]]] = []
        if seeded:
            groups.append((set(seeded), [], True, []))
        for edge in self.rest:
            names = set(edge.variables)
            joined: tuple[set[str], list[Edge], bool, list[str]] = (names, [edge], False, [])
            apart = []
            for group in groups:
                if group[0] & joined[0]:
                    joined = (group[0] | joined[0], group[1] + joined[1], group[2] or joined[2], [])
                else:
                    apart.append(group)
            groups = [*apart, joined]
        known = {name for group in groups for name in group[0]}
        for name in self.within:
            if name not in known:
                groups.append(({name}, [], False, [name]))
        return [(edges, is_seeded, sets) for _, edges, is_seeded, sets in groups]

    def _component(self, edges: list[Edge], seed: RowSet | None, sets: list[str]) -> RowSet:
        scope = self.run.scope
        if sets:
            (name,) = sets
            return RowSet(scope, len(self.within[name]), {name: Terms(ENTITY, self.within[name])})
        waiting = list(edges)
        if seed is not None:
            rows = self._inside(seed, list(seed.columns))
        else:
            rows = self._start(waiting)
        while waiting and rows.size:
            rows = self._step(self._without(rows, waiting), waiting)
        rows = self._without(rows, waiting)
        if waiting:
            names = dict.fromkeys(name for edge in edges for name in [*edge.variables, *self._hidden(edge)])
            return concatenated([rows], [*rows.columns, *(name for name in names if name not in rows.columns)], scope)
        return rows

    def _without(self, rows: RowSet, waiting: list[Edge], matched: Sequence[Edge] = ()) -> RowSet:
        """The rows without the columns that nobody asks for any more; of edges that are being matched, whose ends are
        known, their statements still do.
        """
        if self.needed is None:
            return rows
        asked = {name for edge in waiting for name in edge.variables} | {name for edge in matched for name in edge.inner}
        kept = {name: one for name, one in rows.columns.items() if name in self.needed or name in asked or name.startswith("\0")}
        return rows if len(kept) == len(rows.columns) else RowSet(rows.scope, rows.size, kept)

    def _hidden(self, edge: Edge) -> list[str]:
        return [hidden(edge.number)] if edge.number in self.kept else []

    # -- start -------------------------------------------------------------------------------------

    def _start(self, waiting: list[Edge]) -> RowSet:
        """The rows of the smallest edge, or of the smallest set that an edge leads on from."""
        smallest = min(waiting, key=lambda edge: (edge.size(), edge.number))
        names = {name for edge in waiting for name in (edge.subject, edge.object) if name is not None}
        sets = [(len(self.within[name]), name) for name in sorted(names) if name in self.within]
        if sets and min(sets)[0] < smallest.size():
            name = min(sets)[1]
            return RowSet(self.run.scope, len(self.within[name]), {name: Terms(ENTITY, self.within[name])})
        waiting.remove(smallest)
        return self._first(smallest)

    def _first(self, edge: Edge) -> RowSet:
        """The rows of one edge."""
        entries = edge.entries()
        columns: dict[str, Terms] = {}
        if edge.subject is not None:
            columns[edge.subject] = Terms(ENTITY, entries.subject)
        if edge.object is not None and edge.object != edge.subject:
            columns[edge.object] = entries.object
        if self._needs_statements(edge):
            columns[hidden(edge.number)] = Terms(STATEMENT, entries.statement)
        rows = RowSet(self.run.scope, len(entries.subject), columns)
        return self._about(self._inside(rows, list(columns)), edge)

    # -- steps -------------------------------------------------------------------------------------

    def _step(self, rows: RowSet, waiting: list[Edge]) -> RowSet:
        """The rows with one more variable, or checked by an edge whose ends are bound."""
        ends = {
            name: rows.columns[name].entities() for edge in waiting for name in (edge.subject, edge.object) if name in rows.columns
        }
        for edge in waiting:
            if edge.subject in ends and edge.object in ends and edge.subject != edge.object:
                if (ends[edge.object] < 0).any() and edge.family != "relation":
                    continue
                waiting.remove(edge)
                return self._checked(rows, edge, ends)
        # The edges that lead to each variable, with whether they are followed backward.
        leading: dict[tuple[str | None, int], list[tuple[Edge, bool]]] = {}
        for edge in waiting:
            for near, far, backward in ((edge.subject, edge.object, False), (edge.object, edge.subject, True)):
                if near not in ends or (backward and far in ends):
                    continue
                # Only entities have an index: edges that share a value are joined.
                if not backward or edge.family == "relation" or (edge.family == "any" and (ends[near] >= 0).all()):
                    key = (
                        (far, -1)
                        if far is not None and far not in rows.columns and edge.family == "relation"
                        else (far, edge.number)
                    )
                    if not any(edge is other for other, _ in leading.get(key, ())):
                        leading.setdefault(key, []).append((edge, backward))
        if not leading:
            return self._joined(rows, waiting)
        best: tuple[int, int] | None = None
        chosen: list[tuple[Edge, bool]] = []
        limits: list[tuple[Places, Places]] = []
        for options in leading.values():
            bounds = [edge.index(backward).bounds(ends[self._near(edge, backward)]) for edge, backward in options]
            counts = np.min([high - low for low, high in bounds], axis=0)
            cost = (int(counts.sum()), options[0][0].number)
            if best is None or cost < best:
                best, chosen, limits = cost, options, bounds
        for edge, _ in chosen:
            waiting.remove(edge)
        self._left = waiting
        rows = self._without(rows, waiting, [edge for edge, _ in chosen])
        return self._expanded(rows, chosen, limits, ends)

    @staticmethod
    def _near(edge: Edge, backward: bool) -> str:
        name = edge.object if backward else edge.subject
        assert name is not None
        return name

    def _expanded(
        self,
        rows: RowSet,
        options: list[tuple[Edge, bool]],
        limits: list[tuple[Places, Places]],
        ends: dict[str, Numbers],
    ) -> RowSet:
        """The rows with each candidate of a variable that edges lead to, which the other edges have as well."""
        counts = [high - low for low, high in limits]
        which = np.argmin(counts, axis=0) if len(options) > 1 else None
        parts: list[RowSet] = []
        total = 0
        for number, (edge, backward) in enumerate(options):
            places = None if which is None else np.flatnonzero(which == number)
            low, high = limits[number] if places is None else (limits[number][0].take(places), limits[number][1].take(places))
            others = [option for at, option in enumerate(options) if at != number]
            for start, stop in chunks(high - low):
                sizes = high[start:stop] - low[start:stop]
                at = np.arange(start, stop).repeat(sizes)
                if places is not None:
                    at = places.take(at)
                part = self._candidates(rows, edge, backward, at, ranges(low[start:stop], high[start:stop]), others, ends)
                total += part.size
                if total > MOST_ROWS:
                    raise self._too_many()
                if part.size:
                    parts.append(part)
        names = dict.fromkeys([*rows.columns, *(name for edge, _ in options for name in [*edge.variables, *self._hidden(edge)])])
        return concatenated(parts, [name for name in names if not parts or name in parts[0].columns], self.run.scope)

    def _candidates(
        self,
        rows: RowSet,
        edge: Edge,
        backward: bool,
        at: Places,
        places: Places,
        others: list[tuple[Edge, bool]],
        ends: dict[str, Numbers],
    ) -> RowSet:
        index = edge.index(backward)
        far = edge.subject if backward else edge.object
        targets = index.far.take(places)
        if far is not None and far in self.within:
            inside = np.flatnonzero((targets >= 0) & self.run.among(np.maximum(targets, 0), self.within[far]))
            at, places, targets = at.take(inside), places.take(inside), targets.take(inside)
        matches: list[tuple[Edge, bool, Places]] = [(edge, backward, places)]
        for other, reverse in others:
            there, low, high = other.index(reverse).between(ends[self._near(other, reverse)].take(at), targets)
            sizes = high - low
            repeat = there if int(sizes.max(initial=0)) < 2 else there.repeat(sizes)
            at, targets = at.take(repeat), targets.take(repeat)
            matches = [(one, turned, found.take(repeat)) for one, turned, found in matches]
            matches.append((other, reverse, ranges(low, high)))
        # A variable that nobody asks for has no column, but for how often it is there.
        unasked = far is not None and self.needed is not None and not far.startswith("\0") and far not in self.needed
        if unasked and far not in rows.columns and all(far not in edge.variables for edge in self._left):
            far = far if any(far in one.inner for one in (edge, *(other for other, _ in others))) else None
        part = rows.take(at)
        for one, turned, found in matches:
            if self._needs_statements(one):
                statements = one.statements(one.index(turned).entries.take(found))
                part.columns[hidden(one.number)] = Terms(STATEMENT, statements)
        if far is not None:
            relations = edge.family == "relation"
            terms = Terms(ENTITY, targets) if relations else edge.far_terms(index.entries.take(matches[0][2]), backward)
            part = self._bind(part, far, terms)
        for one, _, _ in matches:
            part = self._about(part, one)
        return part

    def _checked(self, rows: RowSet, edge: Edge, ends: dict[str, Numbers]) -> RowSet:
        """The rows whose ends an edge connects, once for each of its entries between them."""
        assert edge.subject is not None
        assert edge.object is not None
        index = edge.index(False)
        parts: list[RowSet] = []
        total = 0
        for start in range(0, rows.size, CHUNK):
            check()
            near, far = (ends[name][start : start + CHUNK] for name in (edge.subject, edge.object))
            there, low, high = index.between(near, far)
            sizes = high - low
            part = rows.take((there + start).repeat(sizes))
            if self._needs_statements(edge):
                entries = index.entries.take(ranges(low, high))
                part.columns[hidden(edge.number)] = Terms(STATEMENT, edge.statements(entries))
            part = self._about(part, edge)
            total += part.size
            if total > MOST_ROWS:
                raise self._too_many()
            parts.append(part)
        names = dict.fromkeys([*rows.columns, *edge.variables, *self._hidden(edge)])
        return concatenated(parts, list(names), self.run.scope)

    def _joined(self, rows: RowSet, waiting: list[Edge]) -> RowSet:
        """The rows joined with an edge that shares a value, a predicate or a statement with them."""
        sharing = [edge for edge in waiting if not set(edge.variables).isdisjoint(rows.columns)]
        edge = min(sharing, key=lambda one: (one.size(), one.number))
        waiting.remove(edge)
        other = self._first(edge)
        shared = [name for name in other.columns if name in rows.columns]
        one, two = compatible(rows, other, shared)
        return self._differing(merged(rows, other, one, two, list({**rows.columns, **other.columns})))

    def _too_many(self) -> PlanError:
        return too_many(None, "a pattern", "restrict its variables, or add statements that connect them")

    # -- what else is bound ------------------------------------------------------------------------

    def _inside(self, rows: RowSet, names: Sequence[str]) -> RowSet:
        """The rows whose new variables lie in their sets."""
        for name in names:
            if name in self.within and name in rows.columns:
                entities = rows.columns[name].entities()
                rows = rows.where((entities >= 0) & self.run.among(np.maximum(entities, 0), self.within[name]))
        return rows

    def _needs_statements(self, edge: Edge) -> bool:
        part = edge.part
        if isinstance(part, MembershipPattern):
            return False
        return (
            edge.number in self.kept or part.statement is not None or isinstance(part.predicate, Variable) or bool(part.qualifiers)
        )

    def _bind(self, rows: RowSet, name: str, terms: Terms) -> RowSet:
        """The rows with a variable bound; if it is bound already, those in which the terms are equal."""
        if name not in rows.columns:
            return rows.having(**{name: terms})
        one, other = codes(self.run.scope, [rows.columns[name], terms])
        # A seed may leave it unbound.
        unbound = one < 0
        if unbound.any():
            column = rows.columns[name]
            numbers = np.where(unbound, terms.marked(), column.marked())
            rows = rows.having(**{name: Terms(None, numbers).narrowed()})
        return rows.where(unbound | (one == other))

    def _about(self, rows: RowSet, edge: Edge) -> RowSet:
        """The rows with what the statements of an edge bind: themselves, their predicates, their qualifiers."""
        part, name = edge.part, hidden(edge.number)
        if not isinstance(part, StatementPattern) or name not in rows.columns:
            return rows
        snapshot = self.run.snapshot
        if isinstance(part.predicate, Variable):
            predicates = Terms(PREDICATE, snapshot.predicates(rows.columns[name].numbers))
            rows = self._bind(rows, part.predicate.name, predicates)
        if part.statement is not None:
            rows = self._bind(rows, part.statement.name, rows.columns[name])
        for qualifier in part.qualifiers:
            rows = self._qualified(rows, rows.columns[name].numbers, qualifier)
        # Its ends lie in their sets already.
        also = [other for other in part.variables if other not in (edge.subject, edge.object)]
        rows = self._differing(self._inside(rows, also))
        if edge.number not in self.kept:
            rows = RowSet(rows.scope, rows.size, {key: column for key, column in rows.columns.items() if key != name})
        return rows

    def _qualified(self, rows: RowSet, statements: NDArray[Any], qualifier: QualifierPattern) -> RowSet:
        run, snapshot = self.run, self.run.snapshot
        places, numbers = snapshot.qualifiers(statements)
        keys = snapshot.arrays.get("q.key").take(numbers)
        if not isinstance(qualifier.key, Variable):
            chosen = np.flatnonzero(keys == snapshot.predicate(qualifier.key))
            places, numbers, keys = places.take(chosen), numbers.take(chosen), keys.take(chosen)
        if qualifier.condition is not None:
            of = numbers
            cells = Cells(len(of), lambda name: snapshot.arrays.get(f"q.{name}").take(of))
            run.warn_incomparable(cells, qualifier.condition)
            chosen = np.flatnonzero(holds(run, qualifier.condition, cells))
            places, numbers, keys = places.take(chosen), numbers.take(chosen), keys.take(chosen)
        terms = qualifier_terms(run.scope, numbers)
        if isinstance(qualifier.value, Entities):
            entities = terms.entities()
            chosen = np.flatnonzero((entities >= 0) & run.among(np.maximum(entities, 0), run.entities(qualifier.value)))
            places, numbers, keys, terms = places.take(chosen), numbers.take(chosen), keys.take(chosen), terms.take(chosen)
        if not qualifier.variables:
            mask = np.zeros(rows.size, bool)
            mask[places] = True
            return rows.where(mask)
        # The terms ride along as columns, so that each binding drops rows of both.
        rows = rows.take(places).having(**{"\0key": Terms(PREDICATE, keys), "\0value": terms})
        if isinstance(qualifier.key, Variable):
            rows = self._bind(rows, qualifier.key.name, rows.columns["\0key"])
        if isinstance(qualifier.value, Variable):
            rows = self._bind(rows, qualifier.value.name, rows.columns["\0value"])
        return RowSet(rows.scope, rows.size, {name: one for name, one in rows.columns.items() if name not in ("\0key", "\0value")})

    def _differing(self, rows: RowSet) -> RowSet:
        """The rows in which parts that must not match the same statement do not."""
        for one, other in self.apart:
            left, right = rows.columns.get(hidden(one)), rows.columns.get(hidden(other))
            if left is not None and right is not None:
                rows = rows.where(left.numbers != right.numbers)
        return rows


def may_meet(one: Edge, other: Edge) -> bool:
    """Whether two parts may match the same statement."""
    if {one.family, other.family} == {"relation", "attribute"}:
        return False
    return one.predicates is None or other.predicates is None or not set(one.predicates).isdisjoint(other.predicates)


def solve(run: Run, node: Pattern) -> RowSet:
    """The rows of a pattern, as far as the plan goes on with them."""
    return Solver(run, node, _meeting(run, node), needed=needed(run, node)).rows()


def _taker(run: Run, node: Node) -> Node | None:
    """The one operator that takes the rows of another; None if there are several, or none."""
    takers = [other for other in run.order if any(child is node for child in other.inputs())]
    return takers[0] if len(takers) == 1 else None


#: Joins that look at right rows only where they meet a left one.
_MEETING: Final = (Join, LeftJoin, SemiJoin, AntiJoin, MarkJoin, MinusRows)


def _meeting(run: Run, node: Pattern) -> RowSet | None:
    """What the left rows of a join bind of the pattern on its right, if they are few: other rows of the pattern meet none."""
    taker = _taker(run, node)
    if not isinstance(taker, _MEETING) or taker.right is not node or id(taker.left) not in run.results:
        return None
    left = run.rows(taker.left)
    if left.size * 8 > run.snapshot.statements:
        return None
    shared = [name for name in node.variables if name in left.columns and left.columns[name].bound.all()]
    return left.only(shared).distinct() if shared else None


def needed(run: Run, node: Node) -> Set[str] | None:
    """The variables that the one operator which takes the rows of another needs of them; None for all."""
    taker = _taker(run, node)
    if isinstance(taker, Project):
        return {old for _, old in taker.names}
    if isinstance(taker, GroupRows):
        if any(one.of is None and one.distinct for one in taker.aggregates):
            return None
        return {*taker.keys, *(one.of for one in taker.aggregates if one.of is not None)}
    if isinstance(taker, EntitiesOf | FactsOf):
        return {taker.variable}
    if isinstance(taker, Filter):
        onward = needed(run, taker)
        return None if onward is None else onward | variables(taker.test)
    return None
