"""No statement is used twice: what rows cost whose bonds come to lie on the same two nodes.

While rows grow, each bond is priced alone, which is never too much. Where several bonds of a row
join the same two nodes of the graph (a path that goes back), their edges take different statements
together, so that the row costs what the best assignment of all of them costs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.bounds import check
from condgraph.patterns.distance.domains import BARRED, Bond, assignment, starts_of
from condgraph.patterns.graph import Costs
from condgraph.patterns.problem import Problem
from condgraph.patterns.ranking import Rows

#: The edges between pairs of nodes, as `SearchGraph.between` gives them: position of the pair,
#: ascending, and label.
Between: TypeAlias = Callable[[NDArray[Any], NDArray[Any]], tuple[NDArray[np.int64], NDArray[Any]]]
#: More edges on one pair than this are assigned row by row.
_TOGETHER: Final = 6


def apart(
    problem: Problem, rows: Rows, old: Sequence[Bond], fresh: Sequence[Bond], *, alone: bool, between: Between | None = None
) -> Rows:
    """The rows with the sums of their bonds put right, dear ones and impossible ones included.

    `old` are bonds among which rows are right already. With `alone` each of `fresh` was priced by
    itself; else they are right among themselves, too.
    """
    if not len(rows) or not fresh:
        return rows
    between = between or problem.graph.between
    totals = rows.totals.copy()
    done = list(old)
    for place, bond in enumerate(fresh):
        others = list(old) if not alone else done
        beside = [] if alone else list(fresh)
        hits = _same(rows, bond, others)
        own = _same(rows, bond, beside)
        if hits is not None:
            affected = hits.any(axis=0)
            if not alone and own is not None:
                # Bonds of one group are looked at once, by the first of them.
                affected &= ~own[:place].any(axis=0)
            at = np.flatnonzero(affected)
            if len(at):
                mine = np.zeros((0, len(at)), bool) if own is None else own[:, at]
                _put_right(rows, totals, at, bond, others, hits[:, at], beside, mine, between)
        if alone:
            done.append(bond)
    return Rows(totals, rows.columns)


def _same(rows: Rows, bond: Bond, others: Sequence[Bond]) -> NDArray[np.bool_] | None:
    """Which of the other bonds lie on the nodes that a bond lies on: shape (others, rows); None
    where none does.
    """
    one, two = rows.columns[bond.first], rows.columns[bond.second]
    found, some = [], False
    for other in others:
        a, b = rows.columns[other.first], rows.columns[other.second]
        hit = ((one == a) & (two == b)) | ((one == b) & (two == a))
        some = some or bool(hit.any())
        found.append(hit)
    return np.array(found) if some else None


def _put_right(
    rows: Rows, totals: Costs, at: NDArray[np.int64], bond: Bond, others: Sequence[Bond], hits: NDArray[np.bool_],
    beside: Sequence[Bond], mine: NDArray[np.bool_], between: Between,
) -> None:  # fmt: skip
    """Add to the totals of the rows `at` what all their bonds cost together beyond what they cost
    in their groups.
    """
    kinds, which = np.unique(np.concatenate([hits, mine]).T, axis=0, return_inverse=True)
    which = which.reshape(-1)
    for number, kind in enumerate(kinds):
        check()
        part = at[which == number]
        ones, twos = rows.columns[bond.first][part], rows.columns[bond.second][part]
        left = [other for other, hit in zip(others, kind[: len(others)], strict=True) if hit]
        right = [other for other, hit in zip(beside, kind[len(others) :], strict=True) if hit] or [bond]
        prices = [_oriented(rows, one, part, ones) for one in (*left, *right)]
        size = sum(len(one.edges) for one in left)
        for turned in np.unique(np.array(prices), axis=1).T:
            same = np.flatnonzero((np.array(prices) == turned[:, None]).all(axis=0))
            table = np.concatenate(
                [one.weights(one.second if back else one.first) for one, back in zip((*left, *right), turned, strict=True)]
            )
            a, b = ones[same], twos[same]
            whole = costs_of(between, table, a, b)
            apart_costs = costs_of(between, table[:size], a, b) + costs_of(between, table[size:], a, b)
            spot = part[same]
            totals[spot] = np.where(whole >= BARRED, BARRED, totals[spot] + whole - np.minimum(apart_costs, BARRED))


def _oriented(rows: Rows, bond: Bond, part: NDArray[np.int64], ones: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether a bond begins at the second of the two nodes, row by row."""
    found: NDArray[np.bool_] = rows.columns[bond.first][part] != ones
    return found


def costs_of(between: Between, prices: NDArray[np.int64], ones: NDArray[Any], others: NDArray[Any]) -> Costs:
    """What edges cost together between pairs of nodes; `BARRED` where there are too few statements."""
    pair, labels = between(ones, others)
    found = np.full(len(ones), BARRED, np.int64)
    edge = labels < prices.shape[1] - 1
    pair, labels = pair[edge], labels[edge]
    if not len(pair):
        return found
    if len(prices) <= _TOGETHER:
        starts = starts_of(pair)
        found[pair[starts]] = np.minimum(assignment(prices[:, labels], starts), BARRED)
        return found
    for number in np.unique(pair).tolist():
        check()
        found[number] = least_sum(prices[:, labels[pair == number]].T.tolist(), BARRED)
    return found


def least_sum(table: Sequence[Sequence[int]], barred: int) -> int:
    """The least sum of giving each edge (column) a statement (row) of its own; `barred` where that
    cannot be.
    """
    if not table or len(table) < len(table[0]):
        return barred
    places = assigned(table)
    return min(sum(table[place][edge] for edge, place in enumerate(places)), barred)


def assigned(table: Sequence[Sequence[int]]) -> list[int]:
    """The row of each column in an assignment of least sum (the Hungarian method: shortest
    augmenting paths with potentials). There are at least as many rows as columns; costs are whole
    numbers of any size.

    >>> assigned([[5, 0], [3, 1], [3, 9]])
    [1, 0]
    """
    edges, statements = len(table[0]), len(table)
    top = max(max(row) for row in table) * (edges + statements + 1) + 1
    of_edge, of_row = [0] * (edges + 1), [0] * (statements + 1)
    owner, way = [0] * (statements + 1), [0] * (statements + 1)
    for edge in range(1, edges + 1):
        check()
        owner[0] = edge
        at = 0
        least, used = [top] * (statements + 1), [False] * (statements + 1)
        while True:
            used[at] = True
            current, delta, ahead = owner[at], top, 0
            for row in range(1, statements + 1):
                if used[row]:
                    continue
                reduced = table[row - 1][current - 1] - of_edge[current] - of_row[row]
                if reduced < least[row]:
                    least[row], way[row] = reduced, at
                if least[row] < delta:
                    delta, ahead = least[row], row
            for row in range(statements + 1):
                if used[row]:
                    of_edge[owner[row]] += delta
                    of_row[row] -= delta
                else:
                    least[row] -= delta
            at = ahead
            if not owner[at]:
                break
        while at:
            owner[at] = owner[way[at]]
            at = way[at]
    found = [0] * edges
    for row in range(1, statements + 1):
        if owner[row]:
            found[owner[row] - 1] = row - 1
    return found
