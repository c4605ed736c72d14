"""Joins the disconnected parts of a pattern: products of each part's nearest solutions, as many as are needed to prove
that no dropped one is among the requested solutions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.bounds import check
from condgraph.patterns.distance.domains import BARRED, pair_costs
from condgraph.patterns.join.distinct import apart
from condgraph.patterns.join.join import CHUNK
from condgraph.patterns.problem import Problem
from condgraph.patterns.ranking import Rows, best_of_groups, first, groups_of

#: Returns the first rows of a connected part (nodes, bound, length), and whether there are more.
FirstRows: TypeAlias = Callable[[list[int], int, int], tuple[Rows, bool]]


def together(
    problem: Problem,
    parts: list[list[int]],
    bound: int,
    need: int,
    length: int,
    by: Sequence[int],
    sofar: list[Rows],
    rows_of: FirstRows,
) -> tuple[Rows, bool]:
    """Join parts, each by its first `length` rows; return the rows, and whether none that was dropped can be among
    those requested.

    If one row of a part precedes another, it also does so when both are paired with the same row of another part. So a
    pair with a dropped row comes after all pairs that have a kept row in its place, and is not needed if enough of
    these are solutions. Before a further part is joined, only those pairs are kept that no pair with a dropped row can
    precede.
    """
    rank, least = problem.graph.rank, problem.least(range(len(problem.domains)))
    joined_nodes = parts[0]
    part_bound = bound - (least - problem.least(joined_nodes))
    rows, cut = rows_of(joined_nodes, part_bound, length)
    for nodes in parts[1:]:
        part_bound = bound - (least - problem.least(nodes))
        part_rows, part_cut = rows_of(nodes, part_bound, length)
        joined_nodes = joined_nodes + nodes
        part_bound = bound - (least - problem.least(joined_nodes))
        partners = _Partners(rows, part_rows, part_bound, cut, part_cut, by)
        group_nodes = [node for node in by if node in joined_nodes]
        best: Rows | None = None
        for pairs, exact in pairs_of(problem, rows, part_rows, part_bound):
            # A pair that costs more than its two rows proves nothing about what precedes.
            partners.see(pairs.take(exact))
            merged = pairs if best is None else Rows.joined([best, pairs])
            best = best_of_groups(merged, group_nodes, rank, length) if group_nodes else first(merged, rank, length)
            cut = cut or len(best) < len(merged)
        proved = partners.fewest(length)
        if proved < need:
            return rows, False
        cut = cut or part_cut
        if best is not None and proved < length:
            best = best_of_groups(best, group_nodes, rank, proved) if group_nodes else first(best, rank, proved)
        rows = best if best is not None else Rows(np.empty(0, np.int64), {node: np.empty(0, np.int32) for node in joined_nodes})
        sofar.append(rows)
    return (best_of_groups(rows, by, rank) if by else rows), True


def pairs_of(problem: Problem, left: Rows, right: Rows, bound: int) -> Iterator[tuple[Rows, NDArray[np.int64]]]:
    """Yield pairs of rows of two parts that satisfy the bound, injectivity and forbidden edges; with the positions of
    pairs that cost exactly the sum of their rows.
    """
    bonds = [*problem.bonds, *problem.loops.values()]
    old, new = ([b for b in bonds if b.first in side.columns and b.second in side.columns] for side in (left, right))
    block = max(1, CHUNK // max(len(right), 1))
    for start in range(0, len(left) if len(right) else 0, block):
        check()
        ones = np.arange(start, min(start + block, len(left))).repeat(len(right))
        others = np.tile(np.arange(len(right)), len(ones) // len(right))
        totals = left.totals[ones] + right.totals[others]
        keep = totals <= bound
        if problem.injective:
            for column in left.columns.values():
                for other_column in right.columns.values():
                    keep &= column[ones] != other_column[others]
        ones, others, totals = ones[keep], others[keep], totals[keep]
        columns = {node: column[ones] for node, column in left.columns.items()}
        columns |= {node: column[others] for node, column in right.columns.items()}
        pairs = Rows(totals, columns)
        for (one, two), prices in problem.forbidden.items():
            across = (one in left.columns and two in right.columns) or (one in right.columns and two in left.columns)
            if across and len(pairs):
                pairs = pairs.take(np.flatnonzero(~joined(problem, prices, pairs.columns[one], pairs.columns[two])))
        exact = np.arange(len(pairs))
        if problem.distinct and len(pairs):
            priced = apart(problem, pairs, old, new, alone=False)
            keep = priced.totals <= min(bound, BARRED - 1)
            exact = np.flatnonzero((priced.totals == pairs.totals)[keep])
            pairs = priced.take(np.flatnonzero(keep))
        if len(pairs):
            yield pairs, exact


def joined(problem: Problem, prices: NDArray[np.int64], ones: NDArray[Any], others: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which pairs are joined by an edge at these prices (induced subgraphs)."""
    mask: NDArray[np.bool_] = pair_costs(problem.around(ones), prices[None, :], ones, others) < BARRED
    return mask


class _Partners:
    """Counts, for each row that could be paired with a dropped row, its partners among the kept ones."""

    def __init__(self, left: Rows, right: Rows, bound: int, left_cut: bool, right_cut: bool, by: Sequence[int]) -> None:
        self._sides = []
        for rows, partners, dropped in ((left, right, right_cut), (right, left, left_cut)):
            if dropped:
                # Per group of the partners, if they have groups.
                groups = [node for node in by if node in partners.columns]
                group_of = groups_of(partners, groups) if groups else np.zeros(len(partners), np.int64)
                group_of = np.unique(group_of, return_inverse=True)[1]
                least = np.full(int(group_of.max(initial=-1)) + 1, BARRED)
                np.minimum.at(least, group_of, partners.totals)
                # If the nearest partner exceeds the bound, so do the dropped ones.
                expected = int(np.sort(rows.totals).searchsorted(bound - least, "right").sum())
                self._sides.append((list(rows.columns) + groups, expected, dict[tuple[int, ...], int]()))

    def see(self, pairs: Rows) -> None:
        """Count the partners among these pairs."""
        for nodes, _, counts in self._sides:
            columns = [pairs.columns[node].astype(np.int64) for node in nodes]
            rows, sizes = np.unique(np.stack(columns, axis=1), axis=0, return_counts=True)
            for row, size in zip(map(tuple, rows.tolist()), sizes.tolist(), strict=True):
                counts[row] = counts.get(row, 0) + size

    def fewest(self, most: int) -> int:
        """Return the fewest partners of a row, at most `most`: so many first pairs, per group, precede all that were
        dropped.
        """
        for _, expected, counts in self._sides:
            if expected:
                most = min(most, min(counts.values())) if len(counts) >= expected else 0
        return most
