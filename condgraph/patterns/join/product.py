"""Products of the parts of a pattern that nothing joins: each part by its nearest solutions, as long as none that was dropped
can be among those asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.bounds import check
from condgraph.patterns.distance.domains import BARRED, pair_costs
from condgraph.patterns.join.distinct import Between, apart
from condgraph.patterns.join.join import CHUNK
from condgraph.patterns.problem import Problem
from condgraph.patterns.ranking import Rows, best_of_groups, first, groups_of

#: The first rows of a connected part under a bound, and whether there are more.
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
    """Parts put together, each by its first `length` rows; whether nothing that was dropped can be
    among those asked for.

    Two rows of one part that stand in this order stand so with any row of another part beside them.
    So a pair with a dropped row comes after all pairs that have a kept row in its place, and is not
    asked for where enough of these are solutions. Of pairs that a further part is put beside, those
    alone go on that no such pair can stand before: the dropped ones come after them.
    """
    rank, least = problem.graph.rank, problem.least(range(len(problem.domains)))
    done = parts[0]
    own = bound - (least - problem.least(done))
    whole, cut = rows_of(done, own, length)
    for nodes in parts[1:]:
        own = bound - (least - problem.least(nodes))
        beside, beside_cut = rows_of(nodes, own, length)
        done = done + nodes
        own = bound - (least - problem.least(done))
        partners = _Partners(whole, beside, own, cut, beside_cut, by)
        inside = [node for node in by if node in done]
        kept: Rows | None = None
        for pairs, same in pairs_of(problem, whole, beside, own):
            # A pair that costs more than its rows do is no proof of what stands before.
            partners.see(pairs.take(same))
            both = pairs if kept is None else Rows.joined([kept, pairs])
            kept = best_of_groups(both, inside, rank, length) if inside else first(both, rank, length)
            cut = cut or len(kept) < len(both)
        sure = partners.fewest(length)
        if sure < need:
            return whole, False
        cut = cut or beside_cut
        if kept is not None and sure < length:
            kept = best_of_groups(kept, inside, rank, sure) if inside else first(kept, rank, sure)
        whole = kept if kept is not None else Rows(np.empty(0, np.int64), {node: np.empty(0, np.int32) for node in done})
        sofar.append(whole)
    return (best_of_groups(whole, by, rank) if by else whole), True


def pairs_of(problem: Problem, left: Rows, right: Rows, bound: int) -> Iterator[tuple[Rows, NDArray[np.int64]]]:
    """Rows of two parts side by side, as far as they keep to the bound, to injectivity, and to what
    must not be joined; and the places of those that cost what their rows do.
    """
    both = [*problem.bonds, *problem.loops.values()]
    old, fresh = ([b for b in both if b.first in side.columns and b.second in side.columns] for side in (left, right))
    block = max(1, CHUNK // max(len(right), 1))
    for start in range(0, len(left) if len(right) else 0, block):
        check()
        ones = np.arange(start, min(start + block, len(left))).repeat(len(right))
        others = np.tile(np.arange(len(right)), len(ones) // len(right))
        totals = left.totals[ones] + right.totals[others]
        keep = totals <= bound
        if problem.injective:
            for column in left.columns.values():
                for beside in right.columns.values():
                    keep &= column[ones] != beside[others]
        ones, others, totals = ones[keep], others[keep], totals[keep]
        columns = {node: column[ones] for node, column in left.columns.items()}
        columns |= {node: column[others] for node, column in right.columns.items()}
        pairs = Rows(totals, columns)
        for (one, two), prices in problem.forbidden.items():
            across = (one in left.columns and two in right.columns) or (one in right.columns and two in left.columns)
            if across and len(pairs):
                pairs = pairs.take(np.flatnonzero(~joined(problem, prices, pairs.columns[one], pairs.columns[two])))
        same = np.arange(len(pairs))
        if problem.distinct and len(pairs):
            priced = apart(problem, pairs, old, fresh, alone=False, between=_between(problem))
            keep = priced.totals <= min(bound, BARRED - 1)
            same = np.flatnonzero((priced.totals == pairs.totals)[keep])
            pairs = priced.take(np.flatnonzero(keep))
        if len(pairs):
            yield pairs, same


def _between(problem: Problem) -> Between | None:
    """The edges between pairs of nodes where a server holds them; None is over the graph here."""
    return None if problem.server is None else problem.server.between


def joined(problem: Problem, prices: NDArray[np.int64], ones: NDArray[Any], others: NDArray[Any]) -> NDArray[np.bool_]:
    """Which pairs an edge of these prices joins (induced subgraphs)."""
    if problem.server is not None:
        return problem.server.joined(problem, ones, others, bool(prices[0] < BARRED), bool(prices[1] < BARRED))
    found: NDArray[np.bool_] = pair_costs(problem.graph, prices[None, :], ones, others) < BARRED
    return found


class _Partners:
    """How many partners each row that a dropped one could stand beside has among the kept ones."""

    def __init__(self, left: Rows, right: Rows, bound: int, left_cut: bool, right_cut: bool, by: Sequence[int]) -> None:
        self._sides = []
        for rows, partners, dropped in ((left, right, right_cut), (right, left, left_cut)):
            if dropped:
                # Of each group of the partners, where they have groups.
                groups = [node for node in by if node in partners.columns]
                which = groups_of(partners, groups) if groups else np.zeros(len(partners), np.int64)
                which = np.unique(which, return_inverse=True)[1]
                least = np.full(int(which.max(initial=-1)) + 1, BARRED)
                np.minimum.at(least, which, partners.totals)
                # Where the nearest partner is beyond the bound, so is what was dropped.
                wanted = int(np.sort(rows.totals).searchsorted(bound - least, "right").sum())
                self._sides.append((list(rows.columns) + groups, wanted, dict[tuple[int, ...], int]()))

    def see(self, pairs: Rows) -> None:
        """Count the partners among these pairs."""
        for nodes, _, counts in self._sides:
            columns = [pairs.columns[node].astype(np.int64) for node in nodes]
            rows, sizes = np.unique(np.stack(columns, axis=1), axis=0, return_counts=True)
            for row, size in zip(map(tuple, rows.tolist()), sizes.tolist(), strict=True):
                counts[row] = counts.get(row, 0) + size

    def fewest(self, most: int) -> int:
        """The fewest partners of a row, at most `most`: so many first pairs, of each group, come
        before all that were dropped.
        """
        for _, wanted, counts in self._sides:
            if wanted:
                most = min(most, min(counts.values())) if len(counts) >= wanted else 0
        return most
