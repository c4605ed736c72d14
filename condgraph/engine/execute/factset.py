"""Sets of statements, computed as late as possible.

A `FactSet` is either the sorted numbers of its statements, or not yet looked at: runs of numbers,
and the entities that one end must lie in. A scan is the runs of its predicates; as attributes are
numbered by value, a test on the value makes the runs shorter. How the statements are then found
(entity by entity, through the adjacency of all entities, or through the runs) is the one physical
choice of execution, and is made here, by counting.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from condgraph.engine.algebra import End
from condgraph.engine.execute.sets import EMPTY, Numbers, among, intersect

if TYPE_CHECKING:
    from condgraph.engine.execute.scope import Scoped

#: Up to this many entities, statements are looked up entity by entity; up to this many statements
#: are looked at one by one.
FEW: Final = 8

Runs = list[tuple[int, int]]


class FactSet:
    """Statements with the end that was reached. `of` is None where the anchor may be any entity; a
    run lies in one family.
    """

    __slots__ = ("anchor", "numbers", "of", "reach", "runs", "scope", "source")

    def __init__(
        self,
        run: Scoped,
        reach: End,
        *,
        numbers: Numbers | None = None,
        runs: Runs | None = None,
        of: Numbers | None = None,
        anchor: End = "subject",
        source: int = -1,
    ) -> None:
        self.scope, self.reach, self.numbers = run.scope, reach, numbers
        self.runs, self.of, self.anchor, self.source = runs or [], of, anchor, source

    def __len__(self) -> int:
        if self.numbers is None and self.of is None and self.source < 0:
            return sum(high - low for low, high in self.runs)
        return len(self.all())

    def all(self) -> Numbers:
        """The sorted numbers of the statements."""
        if self.numbers is None:
            if self.source < 0:
                self.numbers = _scan(self)
            elif self.of is not None and len(self.of) == 1:
                self.numbers = intersect(_scan(self), self.scope.snapshot.sourced(self.source), self.scope.snapshot.statements)
            else:
                self.numbers = _scan_source(self)
        return self.numbers

    def ends(self) -> Numbers:
        """The distinct entities that were reached."""
        snapshot, of, numbers = self.scope.snapshot, self.of, self.numbers
        if numbers is None:
            lazy = self.source < 0 and len(self.runs) == 1
            if lazy and (of is None or (len(of) > FEW and not _spread(self))):
                # The numbers of the statements are not needed: one end is read where the other one
                # fits.
                low, high = self.runs[0]
                if self.reach == "object" and low >= snapshot.relations:
                    return EMPTY  # values are no entities
                ends = column(self, self.reach, low, high)
                if of is not None:
                    anchors = ends if self.anchor == self.reach else column(self, self.anchor, low, high)
                    ends = ends[self.scope.mask(of).take(anchors)]
                return self.scope.distinct(ends)
            numbers = self.all()
        if self.reach == "object":
            # Values are no entities.
            relations = numbers if not self.runs or self.runs[-1][1] <= snapshot.relations else numbers[: snapshot.split(numbers)]
            return self.scope.distinct(snapshot.relation_object.take(relations))
        if of is not None and len(of) == 1 and self.anchor == "subject":
            return of if len(numbers) else numbers
        return self.scope.distinct(snapshot.subjects(numbers))

    def few(self) -> bool:
        """Whether the statements are quickly looked at: they are known, or those of a few entities."""
        return self.numbers is not None or (self.of is not None and len(self.of) <= FEW)

    def small(self) -> bool:
        """Whether there are so few statements that they are better looked at one by one."""
        return self.few() and len(self.all()) <= FEW

    def narrowed(self, runs: Runs) -> FactSet:
        """The statements of shorter runs."""
        if self.numbers is not None:
            return self.keep(self.within(runs))
        return FactSet(self.scope, self.reach, runs=runs, of=self.of, anchor=self.anchor, source=self.source)

    def within(self, runs: Runs) -> Numbers:
        """The known statements that lie in one of the sorted runs."""
        numbers = self.all()
        bounds = numbers.searchsorted(np.array(runs, np.int32).ravel()).tolist()
        return _joined([numbers[low:high] for low, high in zip(bounds[::2], bounds[1::2], strict=True)])

    def keep(self, numbers: Numbers) -> FactSet:
        """Some of these statements, sorted."""
        return FactSet(self.scope, self.reach, numbers=numbers, runs=self.runs, anchor=self.anchor)

    def having(self, numbers: Numbers) -> Numbers:
        """Those of the statements `numbers` (in any order, repeats stay) that this set has."""
        snapshot = self.scope.snapshot
        if self.numbers is not None:
            return numbers[among(numbers, self.numbers, snapshot.statements)]
        parts = []
        for low, high in self.runs if len(numbers) else ():
            part = numbers[(numbers >= low) & (numbers < high)] if low or high < snapshot.statements else numbers
            if self.of is not None and len(part):
                anchors = column(self, self.anchor, low, high).take(part - np.int32(low))
                part = part[self.scope.among(anchors, self.of)]
            parts.append(part)
        found = _joined(parts)
        if self.source >= 0:
            found = found[among(found, snapshot.sourced(self.source), snapshot.statements)]
        return found


def column(facts: FactSet, end: End, low: int, high: int) -> Numbers:
    """The subjects or objects of a run, which lies in one family."""
    snapshot = facts.scope.snapshot
    if end == "object":
        return snapshot.relation_object[low:high]
    base = snapshot.relations
    return snapshot.attribute_subject[low - base : high - base] if low >= base else snapshot.relation_subject[low:high]


def _joined(parts: list[Numbers]) -> Numbers:
    return parts[0] if len(parts) == 1 else np.concatenate(parts) if parts else EMPTY


def _spread(facts: FactSet) -> bool:
    """Whether the statements of the anchors are likely fewer than those of the runs, so that they
    are better looked up.
    """
    snapshot, of = facts.scope.snapshot, facts.of
    if of is None:
        return False
    total = sum(high - low for low, high in facts.runs)
    # Looking the degrees up is worth it only where they are likely to be the smaller side.
    if len(of) * snapshot.statements >= total * snapshot.entities:
        return False
    return snapshot.degree(of, backward=facts.anchor == "object") * 4 < total + snapshot.entities // 16


def _scan(facts: FactSet) -> Numbers:
    snapshot, of, runs = facts.scope.snapshot, facts.of, facts.runs
    if of is None:
        return _joined([np.arange(low, high, dtype=np.int32) for low, high in runs])
    if not len(of) or not runs:
        return EMPTY
    backward = facts.anchor == "object"
    if len(of) <= FEW:
        lookup = snapshot.incoming if backward else snapshot.outgoing
        if len(of) == 1:
            entity = int(of[0])
            return lookup(entity, *runs[0]) if len(runs) == 1 else np.concatenate([lookup(entity, low, high) for low, high in runs])
        found = np.concatenate([lookup(entity, low, high) for entity in of.tolist() for low, high in runs])
        found.sort()
        return found
    if _spread(facts):
        touching = snapshot.touching(of, backward=backward)
        found = _joined([touching[(touching >= low) & (touching < high)] for low, high in runs])
        found.sort()
        return found
    mask = facts.scope.mask(of)
    parts = []
    for low, high in runs:
        found = mask.take(column(facts, facts.anchor, low, high)).nonzero()[0].astype(np.int32)
        parts.append(found + np.int32(low))
    return _joined(parts)


def _scan_source(facts: FactSet) -> Numbers:
    """The statements of one source: its own are looked through, which are few where a graph has
    many sources.
    """
    snapshot, of = facts.scope.snapshot, facts.of
    scoped = snapshot.sourced(facts.source)
    found = FactSet(facts.scope, facts.reach, numbers=scoped).within(facts.runs) if facts.runs else EMPTY
    if of is None or not len(found):
        return found
    ends = snapshot.relation_object.take(found) if facts.anchor == "object" else snapshot.subjects(found)
    return found[facts.scope.among(ends, of)]
