"""Corrects the cost of rows in which several bonds join the same two nodes: edges that meet take different statements.

While rows grow, each bond is priced alone, which is never too much. If several bonds of a row join the same two nodes
of the graph (a path that goes back), the row costs as much as the best assignment of statements to all their edges.

A path may return: the spouse of a spouse of Ann is Ann, and her spouse is reached by the statement of the first step.
So edges of one connected part of the pattern may share a statement if they have no node in common. Edges that meet may
not: two films of a director are two, and a path does not turn back over the statement it came by. A statement from a
node to itself is used as often as a path passes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.bounds import check
from condgraph.patterns.distance.domains import BARRED, PairEdges, assignment, starts_of
from condgraph.patterns.graph import Costs, SearchGraph
from condgraph.patterns.problem import Ends, Problem
from condgraph.patterns.ranking import Rows

#: If more edges than this join one pair of nodes, they are assigned row by row.
_TOGETHER: Final = 6
#: The number of edges on one pair for which all ways of sharing are tried; a further edge joins the first group that it may share.
_SHARED: Final = 6


def differ(one: Ends, other: Ends, loop: bool) -> bool:
    """Return whether two edges on the same two nodes must take different statements: if they share a node of the
    pattern, or, on a loop (the two nodes are one), both nodes; and if they are in different connected parts.
    """
    ends, other_ends = {one.head, one.tail}, {other.head, other.tail}
    return one.part != other.part or (ends == other_ends if loop else bool(ends & other_ends))


def groupings(edges: Sequence[Ends], loop: bool) -> list[list[list[int]]]:
    """Return all ways in which edges on the same two nodes may share statements.

    Each is a list of groups; the edges of a group, given by position in `edges`, take one statement.

    >>> path = [Ends(n, n + 1, 0) for n in range(3)]
    >>> groupings(path, False)
    [[[0, 2], [1]], [[0], [1], [2]]]
    >>> groupings([Ends(0, n, 0) for n in (1, 2)], False)
    [[[0], [1]]]
    """
    ways: list[list[list[int]]] = [[]]
    for position, edge in enumerate(edges):
        extended_ways = []
        for groups in ways:
            for number, group in enumerate(groups):
                if not any(differ(edges[member], edge, loop) for member in group):
                    extended_ways.append([*groups[:number], [*group, position], *groups[number + 1 :]])
                    if position >= _SHARED:
                        break
            else:
                extended_ways.append([*groups, [position]])
        ways = extended_ways
    return ways


def _shared_costs(graph: SearchGraph, prices: NDArray[np.int64], edges: Sequence[Ends], loop: bool, a: Any, b: Any) -> Costs:
    """Return the total cost of edges, in the cheapest way of sharing statements."""
    ways = groupings(edges, loop)
    costs = [costs_of(graph, np.stack([prices[group].sum(axis=0) for group in groups]), a, b) for groups in ways]
    least: Costs = np.minimum.reduce(costs)
    return least


def apart(
    problem: Problem,
    rows: Rows,
    old: Sequence[PairEdges],
    fresh: Sequence[PairEdges],
    *,
    alone: bool,
) -> Rows:
    """Return the rows with their totals corrected; rows above the bound and impossible ones are not removed.

    `rows` are already correct among the bonds `old`. With `alone`, each bond of `fresh` was priced by itself; else they
    are correct among themselves, too.
    """
    if not len(rows) or not fresh:
        return rows
    totals = rows.totals.copy()
    corrected = list(old)
    for position, bond in enumerate(fresh):
        earlier = list(old) if not alone else corrected
        siblings = [] if alone else list(fresh)
        overlaps = _same(rows, bond, earlier)
        sibling_overlaps = _same(rows, bond, siblings)
        if overlaps is not None:
            affected = overlaps.any(axis=0)
            if not alone and sibling_overlaps is not None:
                # Bonds of one group are corrected once, with the first of them.
                affected &= ~sibling_overlaps[:position].any(axis=0)
            at = np.flatnonzero(affected)
            if len(at):
                sibling_marks = np.zeros((0, len(at)), bool) if sibling_overlaps is None else sibling_overlaps[:, at]
                _put_right(problem, rows, totals, at, bond, earlier, overlaps[:, at], siblings, sibling_marks)
        if alone:
            corrected.append(bond)
    return Rows(totals, rows.columns)


def _same(rows: Rows, bond: PairEdges, others: Sequence[PairEdges]) -> NDArray[np.bool_] | None:
    """Return which of the other bonds join the same two nodes as a bond, shape (others, rows); None if none does."""
    one, two = rows.columns[bond.first], rows.columns[bond.second]
    hits, any_hit = [], False
    for other in others:
        a, b = rows.columns[other.first], rows.columns[other.second]
        hit = ((one == a) & (two == b)) | ((one == b) & (two == a))
        any_hit = any_hit or bool(hit.any())
        hits.append(hit)
    return np.array(hits) if any_hit else None


def _put_right(
    problem: Problem, rows: Rows, totals: Costs, at: NDArray[np.int64], bond: PairEdges,
    others: Sequence[PairEdges], hits: NDArray[np.bool_], beside: Sequence[PairEdges], mine: NDArray[np.bool_],
) -> None:  # fmt: skip
    """Add to the totals of the rows `at` what all their bonds on these nodes cost together beyond the costs of their
    two groups.
    """
    edges = problem.edges
    for kind, members in _kinds(np.concatenate([hits, mine])):
        check()
        part = at[members]
        ones, twos = rows.columns[bond.first][part], rows.columns[bond.second][part]
        graph = problem.around(ones)
        left = [other for other, hit in zip(others, kind[: len(others)], strict=True) if hit]
        right = [other for other, hit in zip(beside, kind[len(others) :], strict=True) if hit] or [bond]
        # For each bond, whether it begins at the second node; and last, whether the two nodes are one.
        ways = np.array([*(_oriented(rows, member, part, ones) for member in (*left, *right)), ones == twos])
        size = sum(len(member.edges) for member in left)
        for turned, positions in _kinds(ways):
            table = np.concatenate(
                [
                    member.weights(member.second if back else member.first)
                    for member, back in zip((*left, *right), turned[:-1], strict=True)
                ]
            )
            edge_numbers = [edge for member in (*left, *right) for edge in member.edges]
            # By number, as when solutions are read: their order may decide which edges share.
            order = sorted(range(len(edge_numbers)), key=edge_numbers.__getitem__)
            loop, a, b = bool(turned[-1]), ones[positions], twos[positions]
            parts = order, [at for at in order if at < size], [at for at in order if at >= size]
            if not any(differ(edges[edge_numbers[x]], edges[edge_numbers[y]], loop) for x in parts[1] for y in parts[2]):
                continue
            total, *separate = (
                _shared_costs(graph, table[columns], [edges[edge_numbers[at]] for at in columns], loop, a, b) for columns in parts
            )
            apart_costs = separate[0] + separate[1]
            row_at = part[positions]
            totals[row_at] = np.where(total >= BARRED, BARRED, totals[row_at] + total - np.minimum(apart_costs, BARRED))


def _kinds(marks: NDArray[np.bool_]) -> Iterator[tuple[NDArray[np.bool_], NDArray[np.int64]]]:
    """Yield the distinct columns of a table of marks, each with its positions."""
    # Packed into one number: sorting rows of a table takes ten times as long.
    packed = np.packbits(marks, axis=0)
    code = np.zeros(marks.shape[1], np.int64)
    for row in packed:
        code = np.unique(code << 8 | row, return_inverse=True)[1] if len(packed) > 7 else code << 8 | row
    for value in np.unique(code).tolist():
        members = np.flatnonzero(code == value)
        yield marks[:, members[0]], members


def _oriented(rows: Rows, bond: PairEdges, part: NDArray[np.int64], ones: NDArray[Any]) -> NDArray[np.bool_]:
    """Return, row by row, whether a bond begins at the second of the two nodes."""
    turned: NDArray[np.bool_] = rows.columns[bond.first][part] != ones
    return turned


def costs_of(graph: SearchGraph, prices: NDArray[np.int64], ones: NDArray[Any], others: NDArray[Any]) -> Costs:
    """Return the total cost of edges between pairs of nodes; `BARRED` if there are too few statements."""
    pair, labels = graph.between(ones, others)
    costs = np.full(len(ones), BARRED, np.int64)
    is_edge = labels < prices.shape[1] - 1
    pair, labels = pair[is_edge], labels[is_edge]
    if not len(pair):
        return costs
    if len(prices) <= _TOGETHER:
        starts = starts_of(pair)
        costs[pair[starts]] = np.minimum(assignment(prices[:, labels], starts), BARRED)
        return costs
    for number in np.unique(pair).tolist():
        check()
        costs[number] = least_sum(prices[:, labels[pair == number]].T.tolist(), BARRED)
    return costs


def least_sum(table: Sequence[Sequence[int]], barred: int) -> int:
    """Return the least sum of giving each edge (column) a statement (row) of its own; `barred` if that is impossible."""
    if not table or len(table) < len(table[0]):
        return barred
    rows = assigned(table)
    return min(sum(table[row][edge] for edge, row in enumerate(rows)), barred)


def assigned(table: Sequence[Sequence[int]]) -> list[int]:
    """Return the row of each column in an assignment of least sum, by the Hungarian method.

    It finds shortest augmenting paths with potentials. There must be at least as many rows as columns; costs are
    integers of any size.

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
    row_of_column = [0] * edges
    for row in range(1, statements + 1):
        if owner[row]:
            row_of_column[owner[row] - 1] = row - 1
    return row_of_column
