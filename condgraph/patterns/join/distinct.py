"""What rows cost whose bonds come to lie on the same two nodes: edges that meet take different
statements.

While rows grow, each bond is priced alone, which is never too much. Where several bonds of a row
join the same two nodes of the graph (a path that goes back), the row costs what the best assignment
of statements to all their edges costs.

A path may go round: the spouse of a spouse of Ann is Ann, and her spouse is reached by the statement
of the first step. So edges of one connected part of the pattern that have no node in common may share
a statement. Edges that meet may not: two films of a director are two, and a path does not turn back over the statement
that it came by. A statement from a node to itself is used as often as a path goes round it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.bounds import check
from condgraph.patterns.distance.domains import BARRED, PairEdges, assignment, starts_of
from condgraph.patterns.graph import Costs
from condgraph.patterns.problem import Ends, Problem
from condgraph.patterns.ranking import Rows

#: The edges between pairs of nodes, as `SearchGraph.between` gives them: position of the pair,
#: ascending, and label.
Between: TypeAlias = Callable[[NDArray[Any], NDArray[Any]], tuple[NDArray[np.int64], NDArray[Any]]]
#: More edges on one pair than this are assigned row by row.
_TOGETHER: Final = 6
#: Edges on one pair whose shared statements are tried in all ways; a further one joins the first edges
#: that it may share with.
_SHARED: Final = 6


def differ(one: Ends, other: Ends, loop: bool) -> bool:
    """Whether two edges on the same two nodes take different statements: where they have a node of the
    pattern in common, or, on a loop (the two nodes are one), both; and where nothing joins them.
    """
    mine, others = {one.head, one.tail}, {other.head, other.tail}
    return one.part != other.part or (mine == others if loop else bool(mine & others))


def groupings(edges: Sequence[Ends], loop: bool) -> list[list[list[int]]]:
    """All ways in which edges on the same two nodes may share statements: each a list of groups of
    places in `edges` that take one statement.

    >>> path = [Ends(n, n + 1, 0) for n in range(3)]
    >>> groupings(path, False)
    [[[0, 2], [1]], [[0], [1], [2]]]
    >>> groupings([Ends(0, n, 0) for n in (1, 2)], False)
    [[[0], [1]]]
    """
    found: list[list[list[int]]] = [[]]
    for place, edge in enumerate(edges):
        grown = []
        for groups in found:
            for number, group in enumerate(groups):
                if not any(differ(edges[member], edge, loop) for member in group):
                    grown.append([*groups[:number], [*group, place], *groups[number + 1 :]])
                    if place >= _SHARED:
                        break
            else:
                grown.append([*groups, [place]])
        found = grown
    return found


def _shared_costs(between: Between, prices: NDArray[np.int64], edges: Sequence[Ends], loop: bool, a: Any, b: Any) -> Costs:
    """What edges cost together, in the cheapest way of sharing statements."""
    ways = groupings(edges, loop)
    costs = [costs_of(between, np.stack([prices[group].sum(axis=0) for group in groups]), a, b) for groups in ways]
    least: Costs = np.minimum.reduce(costs)
    return least


def apart(
    problem: Problem,
    rows: Rows,
    old: Sequence[PairEdges],
    fresh: Sequence[PairEdges],
    *,
    alone: bool,
    between: Between | None = None,
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
                _put_right(problem.edges, rows, totals, at, bond, others, hits[:, at], beside, mine, between)
        if alone:
            done.append(bond)
    return Rows(totals, rows.columns)


def _same(rows: Rows, bond: PairEdges, others: Sequence[PairEdges]) -> NDArray[np.bool_] | None:
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
    edges: Sequence[Ends], rows: Rows, totals: Costs, at: NDArray[np.int64], bond: PairEdges,
    others: Sequence[PairEdges], hits: NDArray[np.bool_], beside: Sequence[PairEdges], mine: NDArray[np.bool_], between: Between,
) -> None:  # fmt: skip
    """Add to the totals of the rows `at` what all their bonds cost together beyond what they cost
    in their groups.
    """
    for kind, members in _kinds(np.concatenate([hits, mine])):
        check()
        part = at[members]
        ones, twos = rows.columns[bond.first][part], rows.columns[bond.second][part]
        left = [other for other, hit in zip(others, kind[: len(others)], strict=True) if hit]
        right = [other for other, hit in zip(beside, kind[len(others) :], strict=True) if hit] or [bond]
        # Of each bond whether it begins at the second node, and whether the two nodes are one.
        ways = np.array([*(_oriented(rows, one, part, ones) for one in (*left, *right)), ones == twos])
        size = sum(len(one.edges) for one in left)
        for turned, same in _kinds(ways):
            table = np.concatenate(
                [one.weights(one.second if back else one.first) for one, back in zip((*left, *right), turned[:-1], strict=True)]
            )
            numbers = [edge for one in (*left, *right) for edge in one.edges]
            # By number, as solutions are read back: which edges share may depend on their order.
            order = sorted(range(len(numbers)), key=numbers.__getitem__)
            loop, a, b = bool(turned[-1]), ones[same], twos[same]
            parts = order, [at for at in order if at < size], [at for at in order if at >= size]
            if not any(differ(edges[numbers[x]], edges[numbers[y]], loop) for x in parts[1] for y in parts[2]):
                continue
            whole, *own = (_shared_costs(between, table[some], [edges[numbers[at]] for at in some], loop, a, b) for some in parts)
            apart_costs = own[0] + own[1]
            spot = part[same]
            totals[spot] = np.where(whole >= BARRED, BARRED, totals[spot] + whole - np.minimum(apart_costs, BARRED))


def _kinds(marks: NDArray[np.bool_]) -> Iterator[tuple[NDArray[np.bool_], NDArray[np.int64]]]:
    """The distinct columns of a table of marks, each with the places that have it."""
    # Bytes as one number: sorting rows of a table takes ten times as long.
    packed = np.packbits(marks, axis=0)
    code = np.zeros(marks.shape[1], np.int64)
    for row in packed:
        code = np.unique(code << 8 | row, return_inverse=True)[1] if len(packed) > 7 else code << 8 | row
    for one in np.unique(code).tolist():
        members = np.flatnonzero(code == one)
        yield marks[:, members[0]], members


def _oriented(rows: Rows, bond: PairEdges, part: NDArray[np.int64], ones: NDArray[Any]) -> NDArray[np.bool_]:
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
