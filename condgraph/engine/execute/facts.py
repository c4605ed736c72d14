"""Sets of statements: scanned lazily, tested where an index or a gather is cheaper, reached from either end.

A `FactSet` is either the sorted numbers of its statements, or not yet looked at: the runs of numbers its predicates occupy, and the
entities one end must lie in. Which of the two a step turns into the other is the one physical choice made here, by counting.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from condgraph.engine.algebra import (
    AllOf,
    Among,
    AnyOf,
    Compare,
    During,
    End,
    Equals,
    Every,
    Not,
    Scan,
    Test,
    Turn,
    Versus,
    Where,
    WhereQualifier,
)
from condgraph.engine.execute.sets import EMPTY, Numbers, distinct, intersect, union
from condgraph.engine.execute.tests import Cells, Mask, compared_kinds, group_matches, holds
from condgraph.engine.values import NO_UNIT, OPEN_END, OPEN_START, UNKNOWN_END, UNKNOWN_START, Kind, Time

if TYPE_CHECKING:
    from condgraph.engine.execute.run import Run

#: Up to this many entities, statements are looked up entity by entity.
FEW: Final = 8


class FactSet:
    """Statements with the end that was reached. `of` is None where the anchor may be any entity."""

    __slots__ = ("anchor", "numbers", "of", "reach", "run", "runs", "source")

    def __init__(
        self,
        run: Run,
        reach: End,
        *,
        numbers: Numbers | None = None,
        runs: list[tuple[int, int]] | None = None,
        of: Numbers | None = None,
        anchor: End = "subject",
        source: int = -1,
    ) -> None:
        self.run, self.reach, self.numbers = run, reach, numbers
        self.runs, self.of, self.anchor, self.source = runs or [], of, anchor, source

    def all(self) -> Numbers:
        """The sorted numbers of the statements."""
        if self.numbers is None:
            if self.source < 0:
                self.numbers = _scan(self)
            elif self.of is not None and len(self.of) == 1:
                scoped = self.run.snapshot.sourced(self.source)
                self.numbers = intersect(_scan(self), scoped, self.run.snapshot.statements)
            else:
                self.numbers = _scan_source(self)
        return self.numbers

    def __len__(self) -> int:
        return len(self.all())

    def ends(self) -> Numbers:
        """The distinct entities that were reached."""
        snapshot, numbers = self.run.snapshot, self.all()
        if len(numbers) == 1 and self.reach == "subject" and self.anchor == "subject" and self.of is not None and len(self.of) == 1:
            return self.of
        ends = snapshot.relation_object.take(numbers) if self.reach == "object" else snapshot.subjects(numbers)
        return distinct(ends, snapshot.entities)

    def only(self, kinds: set[tuple[Kind, str]]) -> bool:
        """Whether the objects can only be of these types and units, as far as the runs tell."""
        snapshot = self.run.snapshot
        base = snapshot.relations
        for low, high in self.runs:
            if low < base and (Kind.ENTITY, NO_UNIT) not in kinds:
                return False
            if high > base and any((kind, unit) not in kinds for kind, unit, _, _ in snapshot.groups(max(low, base) - base, high - base)):
                return False
        return bool(self.runs)

    def keep(self, numbers: Numbers) -> FactSet:
        """Some of these statements."""
        return FactSet(self.run, self.reach, numbers=numbers, runs=self.runs, anchor=self.anchor)

    def admits(self, numbers: Numbers) -> Numbers:
        """Those of the sorted statements `numbers` that this set has."""
        snapshot = self.run.snapshot
        if self.numbers is not None:
            return intersect(numbers, self.numbers, snapshot.statements)
        inside = np.zeros(len(numbers), bool)
        for low, high in self.runs:
            first, last = np.searchsorted(numbers, (low, high))
            inside[first:last] = True
        numbers = numbers[inside]
        if self.of is not None and len(numbers):
            ends = snapshot.relation_object.take(numbers) if self.anchor == "object" else snapshot.subjects(numbers)
            numbers = numbers[self.run.among(ends, self.of)]
        if self.source >= 0:
            numbers = intersect(numbers, snapshot.sourced(self.source), snapshot.statements)
        return numbers


def scan(run: Run, node: Scan) -> FactSet:
    """The statements of `Scan`, not yet looked at."""
    snapshot = run.snapshot
    relations = node.family != "attribute"
    attributes = node.family != "relation" and node.reach == "subject" == node.anchor
    if node.family == "any" and node.anchor == "subject":
        attributes = True
    runs: list[tuple[int, int]] = []
    base = snapshot.relations
    if node.predicates is None:
        if relations and base:
            runs.append((0, base))
        if attributes and base < snapshot.statements:
            runs.append((base, snapshot.statements))
    else:
        numbers = sorted({number for name in node.predicates if (number := snapshot.predicate(name)) >= 0})
        if relations:
            offsets = snapshot.relation_offsets
            runs.extend((offsets[p], offsets[p + 1]) for p in numbers if offsets[p] < offsets[p + 1])
        if attributes:
            offsets = snapshot.attribute_offsets
            runs.extend((base + offsets[p], base + offsets[p + 1]) for p in numbers if offsets[p] < offsets[p + 1])
    of = None if node.of is None else run.entities(node.of)
    if isinstance(node.of, Every) and node.of.source is None and len(node.of.kinds) > 1 and not _concepts_at(run, node.anchor, runs):
        of = None  # every entity is every anchor: nothing to look up
    return FactSet(run, node.reach, runs=runs, of=of, anchor=node.anchor, source=run.source(node.source))


def _concepts_at(run: Run, anchor: End, runs: list[tuple[int, int]]) -> bool:
    """Whether concepts are anchors of any statement in the families of these runs."""
    counts, base = run.snapshot.counts, run.snapshot.relations
    if anchor == "object":
        return counts["concept_objects"] > 0
    relations = any(low < base for low, _ in runs) and counts["concept_subjects"] > 0
    return relations or (any(high > base for _, high in runs) and counts["concept_attributes"] > 0)


def _scan(facts: FactSet) -> Numbers:
    snapshot, of, runs = facts.run.snapshot, facts.of, facts.runs
    if of is None:
        parts = [np.arange(low, high, dtype=np.int32) for low, high in runs]
        return parts[0] if len(parts) == 1 else np.concatenate(parts) if parts else EMPTY
    if not len(of) or not runs:
        return EMPTY
    backward = facts.anchor == "object"
    lookup = snapshot.incoming if backward else snapshot.outgoing
    if len(of) == 1:
        entity = int(of[0])
        if len(runs) == 1:
            return lookup(entity, *runs[0])
        return np.concatenate([lookup(entity, low, high) for low, high in runs])
    if len(of) <= FEW:
        found = np.concatenate([lookup(entity, low, high) for entity in of.tolist() for low, high in runs])
        return np.sort(found)
    total = sum(high - low for low, high in runs)
    # Looking the degrees up is worth it only where they are likely to be the smaller side.
    likely = len(of) * snapshot.statements < total * snapshot.entities
    if likely and snapshot.degree(of, backward=backward) * 4 < total + snapshot.entities // 16:
        found = np.sort(snapshot.touching(of, backward=backward))
        parts = []
        for low, high in runs:
            first, last = found.searchsorted((low, high))
            parts.append(found[first:last])
        return np.concatenate(parts)
    mask = facts.run.mask(of)
    parts = []
    for low, high in runs:
        found = mask.take(_ends(facts, low, high, backward)).nonzero()[0].astype(np.int32)
        parts.append(found + np.int32(low))
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _scan_source(facts: FactSet) -> Numbers:
    """The statements of one source: its own are looked through, which are few where a graph has many sources."""
    snapshot, of = facts.run.snapshot, facts.of
    scoped = snapshot.sourced(facts.source)
    bounds = scoped.searchsorted(np.array(facts.runs, np.int32).ravel()).tolist()
    parts = [scoped[low:high] for low, high in zip(bounds[::2], bounds[1::2], strict=True)]
    found = parts[0] if len(parts) == 1 else np.concatenate(parts) if parts else EMPTY
    if of is None or not len(found):
        return found
    ends = snapshot.relation_object.take(found) if facts.anchor == "object" else snapshot.subjects(found)
    return found[facts.run.among(ends, of)]


def _ends(facts: FactSet, low: int, high: int, backward: bool) -> Numbers:
    """The anchors of a run, which lies in one family."""
    snapshot = facts.run.snapshot
    if backward:
        return snapshot.relation_object[low:high]
    base = snapshot.relations
    return snapshot.attribute_subject[low - base : high - base] if low >= base else snapshot.relation_subject[low:high]


# -- tests on the object --------------------------------------------------------------------------------------------------


def where(run: Run, node: Where) -> FactSet:
    """The facts whose object satisfies the test."""
    facts, test = run.facts(node.facts), node.test
    if isinstance(test, Among):
        return facts.keep(_pointing_at(facts, run.entities(test.entities)))
    # Many anchors, or any: the sorted values answer, and the anchors are looked at only for what is left.
    lazy = facts.numbers is None and facts.source < 0 and (facts.of is None or len(facts.of) > FEW)
    if lazy and not _has_node(test):
        return facts.keep(_by_value(run, facts, test))
    numbers = facts.all()
    cells = object_cells(run, numbers)
    if not facts.only(compared_kinds(test)):
        run.warn_incomparable(cells, test)
    return facts.keep(numbers[holds(run, test, cells)])


def _has_node(test: Test) -> bool:
    if isinstance(test, (AnyOf, AllOf)):
        return any(_has_node(part) for part in test.tests)
    # The opposite of a test is no run of a sorted column, nor is a comparison with a bag.
    return isinstance(test, (Among, Equals, Not, Versus))


def object_cells(run: Run, numbers: Numbers) -> Cells:
    """The objects of sorted statements as cells."""
    snapshot = run.snapshot
    split = snapshot.split(numbers)
    get = snapshot.arrays.get
    attributes = numbers[split:] - snapshot.relations
    if not split:
        return Cells(len(numbers), lambda name: get(f"att.{name}").take(attributes))
    objects = snapshot.relation_object.take(numbers[:split])
    filler = {"kind": np.int8(Kind.ENTITY), "a": np.int64(0), "b": np.int64(0), "unit": np.int32(-1), "precision": np.int8(0)}

    def read(name: str) -> Any:
        relations = objects if name == "ref" else np.full(split, filler[name])
        return np.concatenate([relations, get(f"att.{name}").take(attributes)])

    return Cells(len(numbers), read)


def _pointing_at(facts: FactSet, targets: Numbers) -> Numbers:
    """The relations among the facts whose object is one of `targets`."""
    snapshot = facts.run.snapshot
    if not len(targets):
        return EMPTY
    small = facts.of is not None and len(facts.of) <= len(targets)
    if facts.numbers is None and not small and len(targets) * 16 < snapshot.entities:
        runs = [(low, min(high, snapshot.relations)) for low, high in facts.runs if low < snapshot.relations]
        found = _scan(FactSet(facts.run, "subject", runs=runs, of=targets, anchor="object"))
        return facts.admits(found)
    numbers = facts.all()
    numbers = numbers[: snapshot.split(numbers)]
    return numbers[facts.run.among(snapshot.relation_object.take(numbers), targets)]


def _by_value(run: Run, facts: FactSet, test: Test) -> Numbers:
    """The facts that satisfy a test on literals, found through the sorted values of each predicate."""
    snapshot = run.snapshot
    base = snapshot.relations
    wanted = compared_kinds(test)
    parts: list[Numbers] = []
    left_out: list[tuple[int, int]] = []
    for low, high in facts.runs:
        if low < base:
            parts.append(_relations_by_name(run, facts, test, low, min(high, base)))
        if high <= base:
            continue
        for kind, unit, begin, end in snapshot.groups(max(low, base) - base, high - base):
            if (kind, unit) in wanted:
                parts.append(_matches(run, test, kind, begin, end) + np.int32(base))
            else:
                left_out.append((begin + base, end + base))
    if left_out:
        rest = FactSet(run, "subject", runs=left_out, of=facts.of, anchor=facts.anchor)
        run.warn_incomparable(object_cells(run, rest.all()), test)
    found = parts[0] if len(parts) == 1 else np.concatenate(parts) if parts else EMPTY
    if facts.of is None or not len(found):
        return found
    return found[run.among(snapshot.subjects(found), facts.of)]


def _matches(run: Run, test: Test, kind: Kind, low: int, high: int) -> Numbers:
    """The attributes of one group that satisfy a test, sorted."""
    if isinstance(test, Compare):
        if not _comparable(test, kind):
            return EMPTY
        found = [part for part in group_matches(run, test, kind, low, high) if len(part)]
        return found[0] if len(found) == 1 else np.concatenate(found) if found else EMPTY
    assert isinstance(test, (AnyOf, AllOf))
    parts = [_matches(run, part, kind, low, high) for part in test.tests]
    size = run.snapshot.statements
    if isinstance(test, AnyOf):
        return union(parts, size)
    result = parts[0]
    for part in parts[1:]:
        result = intersect(result, part, size)
    return result


def _comparable(test: Compare, kind: Kind) -> bool:
    if isinstance(test.value, Time):
        return kind is Kind.TIME
    return kind is (Kind.TEXT if isinstance(test.value, str) else Kind.QUANTITY)


def _relations_by_name(run: Run, facts: FactSet, test: Test, low: int, high: int) -> Numbers:
    """Relations of a run whose object's name satisfies the test."""
    part = FactSet(run, "object", runs=[(low, high)], of=facts.of, anchor=facts.anchor)
    if isinstance(test, Compare) and test.operator == "=" and isinstance(test.value, str):
        return _pointing_at(part, run.snapshot.named(test.value))
    numbers = part.all()
    return numbers[holds(run, test, object_cells(run, numbers))]


# -- tests on qualifiers and validity -------------------------------------------------------------------------------------


def qualifier_cells(run: Run, numbers: Any) -> Cells:
    """Qualifiers by their numbers, as cells."""
    get = run.snapshot.arrays.get
    return Cells(len(numbers), lambda name: get(f"q.{name}").take(numbers))


def where_qualifier(run: Run, node: WhereQualifier) -> FactSet:
    """The facts of which some qualifier of the key satisfies the test."""
    snapshot = run.snapshot
    facts = run.facts(node.facts)
    key = snapshot.predicate(node.key)
    if key < 0:
        return facts.keep(EMPTY)
    get = snapshot.arrays.get
    with_key, owners, cells = snapshot.keyed(key)
    expected = compared_kinds(node.test)
    plain = run.qualifier_kinds(key) <= expected
    size = sum(high - low for low, high in facts.runs) if facts.numbers is None else len(facts.numbers)
    if facts.numbers is None and facts.of is not None and len(facts.of) <= FEW:
        size = len(facts.all())
    if size > len(with_key):
        # Fewer qualifiers of the key than facts: test them, and see whose they are.
        found = distinct(owners[holds(run, node.test, cells)], snapshot.statements)
        if not plain and expected:
            _, numbers = snapshot.qualifiers(facts.admits(distinct(owners, snapshot.statements)))
            run.warn_incomparable(qualifier_cells(run, numbers[get("q.key").take(numbers) == key]), node.test)
        return facts.keep(facts.admits(found))
    statements = facts.all()
    positions, numbers = snapshot.qualifiers(statements)
    chosen = get("q.key").take(numbers) == key
    positions, numbers = positions[chosen], numbers[chosen]
    cells = qualifier_cells(run, numbers)
    if not plain:
        run.warn_incomparable(cells, node.test)
    return facts.keep(statements[distinct(positions[holds(run, node.test, cells)], len(statements))])


def validity(run: Run, numbers: Numbers) -> tuple[Numbers, Any, Any]:
    """Of sorted statements, those that have a validity (as positions), with its start and end."""
    get = run.snapshot.arrays.get
    owners = get("val.stmt")
    if not len(owners) or not len(numbers):
        return EMPTY, np.empty(0, np.int64), np.empty(0, np.int64)
    at = np.searchsorted(owners, numbers)
    at[at == len(owners)] = 0
    positions = np.flatnonzero(owners[at] == numbers).astype(np.int32)
    return positions, get("val.start")[at[positions]], get("val.end")[at[positions]]


def during(run: Run, node: During) -> FactSet:
    """The facts whose validity stands in the relation to the interval."""
    facts = run.facts(node.facts)
    statements = facts.all()
    positions, start, end = validity(run, statements)
    return facts.keep(statements[positions[interval_mask(node.relation, node.interval, start, end)]])


def interval_mask(relation: str, interval: Time, start: Any, end: Any) -> Mask:
    """Validity against an interval; an unknown bound is taken at its least favourable, so that only certain facts stay."""
    low, high = interval.start, interval.end
    no_start, no_end = start == UNKNOWN_START, end == UNKNOWN_END
    # What is certain of an unknown bound: it lies on its side of the known one.
    latest_start = np.where(no_start, np.where(no_end, OPEN_END, end), start)
    earliest_start = np.where(no_start, OPEN_START, start)
    earliest_end = np.where(no_end, np.where(no_start, OPEN_START, start), end)
    latest_end = np.where(no_end, OPEN_END, end)
    mask: Mask
    if relation == "overlaps":
        # With one bound known the fact holds at that bound at least.
        inside_start = ~no_start & (start >= low) & (start < high)
        inside_end = ~no_end & (end > low) & (end <= high)
        both = ~no_start & ~no_end & (start < high) & (end > low)
        mask = inside_start | inside_end | both
    elif relation == "disjoint":
        mask = (latest_end <= low) | (earliest_start >= high)
    elif relation == "within":
        mask = (earliest_start >= low) & (latest_end <= high)
    elif relation == "contains":
        mask = (latest_start <= low) & (earliest_end >= high)
    elif relation == "before":
        mask = latest_end <= low
    elif relation == "after":
        mask = earliest_start >= high
    elif relation == "until":
        mask = latest_end <= high
    else:
        mask = earliest_start >= low
    return mask


def turn(run: Run, node: Turn) -> FactSet:
    """The same statements, with the other end reached; attributes have no entity at their object."""
    facts = run.facts(node.facts)
    numbers = facts.all()
    if node.reach == "object":
        numbers = numbers[: run.snapshot.split(numbers)]
    return FactSet(run, node.reach, numbers=numbers, anchor=facts.anchor)
