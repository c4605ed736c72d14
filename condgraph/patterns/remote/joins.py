"""The joins of a search that a store does itself: the first solutions of a connected part, and which
edges lie between pairs of nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.bounds import check
from condgraph.patterns.distance.domains import BARRED
from condgraph.patterns.join.distinct import apart
from condgraph.patterns.problem import Problem
from condgraph.patterns.ranking import Rows, best_of_groups, first
from condgraph.patterns.remote.catalogue import Catalogue
from condgraph.patterns.remote.parts import PartPlan, Tally, part_plans
from condgraph.patterns.remote.solutions import TOGETHER, SmallNumbers

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot


class JoiningStore(Protocol):
    """A store that joins parts itself."""

    def rows(self, plan: PartPlan, catalogue: Catalogue, tally: Tally) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The solutions of a plan: sums, shape (n,), and numbers of nodes, shape (n, nodes of the
        plan).
        """
        ...

    def joined(
        self, catalogue: Catalogue, ones: Sequence[int], others: Sequence[int], forward: bool, backward: bool
    ) -> Sequence[bool]:
        """Which pairs of nodes an edge joins, from the first to the second, or back."""
        ...

    def between(self, catalogue: Catalogue, pairs: Sequence[tuple[int, int]]) -> Snapshot:
        """All statements and memberships between these pairs of nodes, in either direction."""
        ...


class Parts:
    """The joins of a search on a store (`patterns.join.join.Server`)."""

    def __init__(self, store: JoiningStore, catalogue: Catalogue, tally: Tally) -> None:
        self.store, self.catalogue, self.tally = store, catalogue, tally
        self._labels: dict[tuple[int, int], list[int]] = {}

    def part(
        self, problem: Problem, nodes: Sequence[int], bound: int, length: int | None, by: Sequence[int], top: int | None
    ) -> tuple[Rows, bool]:
        """The first `length` solutions of a part, of each group where it has nodes of `by`.

        The server prices each bond alone. Where bonds of a row lie on the same two nodes, the row
        is put right here: it moves back, and what stood behind it comes first, so that more is
        asked for until enough stand before all that the server did not give.
        """
        bonds = [bond for bond in [*problem.bonds, *problem.loops.values()] if bond.first in nodes]
        if not problem.distinct or len(bonds) < 2:
            return self._part(problem, nodes, bound, length, by, top)
        rank, groups = problem.graph.rank, [node for node in by if node in nodes]
        wanted = length
        while True:
            rows, cut = self._part(problem, nodes, bound, wanted, by, top)
            right = apart(problem, rows, [], bonds, alone=True, between=self.between)
            changed = bool((right.totals != rows.totals).any())
            kept = right.take(np.flatnonzero(right.totals <= min(bound, BARRED - 1)))
            if not changed or wanted is None:
                if length is None or not groups:
                    return kept if length is None else first(kept, rank, length), cut or (length is not None and len(kept) > length)
                best = best_of_groups(kept, groups, rank, length)
                return best, cut or len(best) < len(kept)
            if groups or not cut:
                if not groups:
                    ordered = first(kept, rank, length or len(kept))
                    return ordered, len(ordered) < len(kept)
                wanted = None
                continue
            # What the server did not give stands behind the last row that it gave.
            ahead = first(_until(kept, rows.take(np.array([len(rows) - 1])), rank), rank, len(kept))
            if length is not None and len(ahead) >= length:
                return first(ahead, rank, length), True
            wanted *= 4

    def _part(
        self, problem: Problem, nodes: Sequence[int], bound: int, length: int | None, by: Sequence[int], top: int | None
    ) -> tuple[Rows, bool]:
        """The same with each bond priced alone."""
        rank, groups = problem.graph.rank, [node for node in by if node in nodes]
        few = None if length is None else length + problem.spare
        # One more than asked for tells whether there are more; of groups the server gives the best,
        # or all rows to choose from.
        limit = None if length is None else length + 1
        if groups:
            limit = top if length == 1 else None
        grouped = groups if groups and length == 1 else []
        found = [Rows(np.empty(0, np.int64), {node: np.empty(0, np.int32) for node in nodes})]
        for plan in part_plans(problem, self.catalogue, nodes, bound, few=few, limit=limit, by=grouped, kept=groups):
            check()
            totals, numbers = self.store.rows(plan, self.catalogue, self.tally)
            self.tally.rows += len(totals)
            found.append(Rows(totals, {node: numbers[:, place] for place, node in enumerate(plan.nodes)}))
        rows = Rows.joined(found)
        if length is None:
            return rows, False
        before = len(rows)
        if groups:
            rows = best_of_groups(rows, groups, rank, length)
            # Groups of which the server gave the best alone: that others are there is not known,
            # and matters to pairs only.
            return rows, len(rows) < before or bool(grouped)
        rows = first(rows, rank, length)
        return rows, len(rows) < before

    def joined(
        self, problem: Problem, ones: NDArray[Any], others: NDArray[Any], forward: bool, backward: bool
    ) -> NDArray[np.bool_]:
        """Which of these pairs of nodes some edge joins."""
        keys, which = np.unique(ones.astype(np.int64) << 32 | others, return_inverse=True)
        first_ones, second_ones = (keys >> 32).tolist(), (keys & 0xFFFFFFFF).tolist()
        found = self.store.joined(self.catalogue, first_ones, second_ones, forward, backward)
        self.tally.queries += 1
        return np.array(found, bool)[which]

    def between(self, ones: NDArray[Any], others: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """The edges between pairs of nodes: position of the pair, ascending, and label."""
        pairs = list(zip(ones.tolist(), others.tolist(), strict=True))
        fresh = sorted({pair for pair in pairs if pair not in self._labels})
        for start in range(0, len(fresh), TOGETHER):
            some = fresh[start : start + TOGETHER]
            small = self.store.between(self.catalogue, some)
            self.tally.queries += 1
            numbers = SmallNumbers(small, self.catalogue)
            self._labels.update((pair, numbers.labels(*pair)) for pair in some)
        sizes = [len(self._labels[pair]) for pair in pairs]
        labels = [label for pair in pairs for label in self._labels[pair]]
        return np.arange(len(pairs)).repeat(sizes), np.array(labels, np.int64)


def _until(rows: Rows, last: Rows, rank: NDArray[Any]) -> Rows:
    """The rows that do not stand behind another one in the order of solutions."""
    after = rows.totals > last.totals[0]
    same = rows.totals == last.totals[0]
    for node in sorted(rows.columns):
        own, other = rank.take(rows.columns[node]), rank.take(last.columns[node][:1])[0]
        after |= same & (own > other)
        same &= own == other
    return rows.take(np.flatnonzero(~after))
