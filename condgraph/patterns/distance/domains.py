"""The candidates of a pattern's nodes and edges, with their terms of the distance (candidate sets of section 5.1, Eq. 9
and 10).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.bounds import changed, check, current, watched
from condgraph.patterns.graph import Costs, Numbers, SearchGraph
from condgraph.patterns.options import AGAINST

#: The cost of a forbidden choice: more than any sum of terms.
BARRED: Final = 1 << 40


class Domain:
    """The candidates of a node of the pattern, each with its term in millionths; without `costs`, any node at no cost.

    If `nodes` is None, `costs` has one entry per node of the graph; else only `nodes` (ascending) are allowed, with
    their `costs`.
    """

    def __init__(self, costs: Costs | None = None, nodes: Numbers | None = None) -> None:
        self.nodes, self.costs = nodes, costs
        self.excluded: Numbers | None = None
        #: Ids of concepts to one of which the nodes of an open domain must belong; for servers, which look up the members.
        self.types: tuple[str, ...] | None = None
        #: The least term; `BARRED` if there is no candidate.
        self.least = 0 if costs is None else int(costs.min(initial=BARRED))
        self._steps: dict[int, int] = {}

    def without(self, excluded: Numbers | None) -> Domain:
        """Return the domain without these nodes."""
        if excluded is None or not len(excluded):
            return self
        if self.costs is None:
            domain = Domain()
            domain.excluded, domain.types = excluded, self.types
        elif self.nodes is not None:
            keep = ~np.isin(self.nodes, excluded)
            domain = Domain(self.costs[keep], self.nodes[keep])
        else:
            costs = self.costs.copy()
            costs[excluded] = BARRED
            domain = Domain(costs)
            # Still good enough with a few candidates fewer: steps only choose the next bound.
            domain._steps = self._steps
        return domain

    def nearest(self, k: int, rank: NDArray[Any]) -> Domain:
        """Return the domain of the k nearest candidates, ties by rank."""
        assert self.costs is not None
        at = nearest(self.costs, k, rank if self.nodes is None else rank.take(self.nodes))
        return Domain(self.costs[at], at.astype(np.int32) if self.nodes is None else self.nodes[at])

    @property
    def open(self) -> bool:
        """Whether any node but the excluded ones is allowed. A search cannot begin at such a node."""
        return self.costs is None

    @property
    def size(self) -> int:
        """The number of candidates; not for an open domain."""
        assert self.costs is not None
        return int((self.costs < BARRED).sum())

    def at(self, nodes: NDArray[Any]) -> Costs | None:
        """Return the terms of these nodes, `BARRED` for forbidden ones; None if all are free."""
        if self.costs is None:
            if self.excluded is None:
                return None
            return np.where(np.isin(nodes, self.excluded), BARRED, 0)
        if self.nodes is None:
            return self.costs.take(nodes)
        if not len(self.nodes):
            return np.full(len(nodes), BARRED, np.int64)
        positions = np.minimum(self.nodes.searchsorted(nodes), len(self.nodes) - 1)
        return np.where(self.nodes.take(positions) == nodes, self.costs.take(positions), BARRED)

    def within(self, limit: int) -> tuple[Numbers, Costs]:
        """Return the nodes with at most this term, ascending, and their terms; not for an open domain."""
        assert self.costs is not None
        at = np.flatnonzero(self.costs <= min(limit, BARRED - 1))
        costs = self.costs.take(at)
        return (at.astype(np.int32) if self.nodes is None else self.nodes.take(at)), costs

    def step(self, position: int) -> int | None:
        """Return the term of the candidate at this position by term; None if there are fewer."""
        if self.costs is None or position >= len(self.costs):
            return None
        term = self._steps.get(position)
        if term is None:
            term = self._steps[position] = int(np.partition(self.costs, position)[position])
        return None if term >= BARRED else term


def nearest(costs: Costs, k: int, rank: NDArray[Any]) -> NDArray[np.int64]:
    """Return the positions, ascending, of the k least costs, ties by rank."""
    if k >= len(costs):
        return np.flatnonzero(costs < BARRED)
    limit = np.partition(costs, k - 1)[k - 1]
    inside = np.flatnonzero(costs <= limit)
    order = np.lexsort((rank[inside], costs[inside]))[:k]
    chosen = np.sort(inside[order])
    return chosen[costs[chosen] < BARRED]


def weights(terms: Costs | None, predicates: int, *, outward: bool, directed: bool | None) -> Costs:
    """Return the price of every label (`patterns.graph`) for an edge of the pattern, seen from one of its nodes.

    `terms` has one entry per predicate; None for an unknown relation. `outward` means that the node is the edge's head.
    With `directed` None, an edge that runs against the pattern costs a little more (`options.AGAINST`).
    """
    prices = np.zeros(predicates, np.int64) if terms is None else terms
    result = np.full(3 * predicates + 1, BARRED, np.int64)
    against = np.minimum(prices + AGAINST, BARRED) if directed is None else prices
    if outward or not directed:
        result[0 : 2 * predicates : 2] = prices if outward else against
    if not outward or not directed:
        result[1 : 2 * predicates : 2] = against if outward else prices
    result[2 * predicates : 3 * predicates] = prices
    return result


class PairEdges:
    """All edges of the pattern between two of its nodes (or at one: a loop), priced from either side."""

    def __init__(self, first: int, second: int, edges: Sequence[int]) -> None:
        self.first, self.second, self.edges = first, second, tuple(edges)
        self._weights: dict[int, NDArray[np.int64]] = {}
        #: The least total cost of the edges (Eq. 10), and the other costs of single edges, as excess over their least.
        self.least = 0
        self.steps: tuple[int, ...] = ()

    def price(self, side: int, found: list[Costs]) -> None:
        """Set the weights as seen from a side: one array over labels per edge."""
        self._weights[side] = np.stack(found)

    def weights(self, side: int) -> NDArray[np.int64]:
        """Return the prices of labels seen from node `side`, shape (edges, labels)."""
        return self._weights[side]

    def other(self, side: int) -> int:
        return self.second if side == self.first else self.first


def neighbours_of(
    graph: SearchGraph, nodes: NDArray[Any], prices: NDArray[np.int64], limit: int
) -> tuple[NDArray[np.int64], Numbers, Costs]:
    """Return the neighbours of `nodes` over the edges of a bond at a cost of at most `limit`.

    `prices` has one row per edge. Edges of one bond take different statements, so the cost is that of the best
    assignment. Returns position in `nodes`, neighbour and cost, each pair once, ascending.
    """
    degrees = graph.degrees(nodes)
    # Each further edge doubles the time to assign statements.
    chunk = max(_ENTRIES >> len(prices) - 1, 1)
    if current() is None or int(degrees.sum()) <= 2 * chunk:
        return _neighbours(graph, nodes, prices, limit)
    # In parts, with a check of the deadline between them.
    ends = np.flatnonzero(np.diff(degrees.cumsum() // chunk, append=-1)) + 1
    parts, start = [], 0
    for end in ends.tolist():
        check()
        owner, neighbours, costs = _neighbours(graph, nodes[start:end], prices, limit)
        parts.append((owner + start, neighbours, costs))
        start = end
    owners, neighbour_parts, cost_parts = zip(*parts, strict=True)
    return np.concatenate(owners), np.concatenate(neighbour_parts), np.concatenate(cost_parts)


def _neighbours(
    graph: SearchGraph, nodes: NDArray[Any], prices: NDArray[np.int64], limit: int
) -> tuple[NDArray[np.int64], Numbers, Costs]:
    owner, neighbours, labels = graph.expand(nodes)
    if len(prices) == 1:
        costs = prices[0].take(labels)
        keep = costs <= limit
        if not keep.all():
            owner, neighbours, costs = owner[keep], neighbours[keep], costs[keep]
        starts = np.flatnonzero(changed(neighbours, owner))
        if len(starts) == len(owner):
            return owner, neighbours, costs
        return owner[starts], neighbours[starts], np.minimum.reduceat(costs, starts)
    keep = labels < prices.shape[1] - 1
    owner, neighbours, labels = owner[keep], neighbours[keep], labels[keep]
    starts = starts_of(owner << 32 | neighbours)
    costs = assignment(prices[:, labels], starts)
    keep = costs <= limit
    return owner[starts[keep]], neighbours[starts[keep]], costs[keep]


def pair_costs(graph: SearchGraph, prices: NDArray[np.int64], ones: NDArray[Any], others: NDArray[Any]) -> Costs:
    """Return the cost of a bond between pairs of nodes, `prices` as seen from the first; `BARRED` if they lack the edges."""
    chunk = max(_PAIRED >> len(prices) - 1, 1)
    if current() is not None and len(ones) > chunk:
        parts = [slice(start, start + chunk) for start in range(0, len(ones), chunk)]
        return np.concatenate([_pair_costs(graph, prices, ones[part], others[part]) for part in watched(parts, 1)])
    return _pair_costs(graph, prices, ones, others)


def _pair_costs(graph: SearchGraph, prices: NDArray[np.int64], ones: NDArray[Any], others: NDArray[Any]) -> Costs:
    costs = np.full(len(ones), BARRED, np.int64)
    pair, labels = graph.between(ones, others)
    if len(pair):
        starts = starts_of(pair)
        if len(prices) == 1:
            least = np.minimum.reduceat(prices[0].take(labels), starts)
        else:
            least = assignment(prices[:, labels], starts)
        costs[pair[starts]] = np.minimum(least, BARRED)
    return costs


def joined(
    graph: SearchGraph, ones: NDArray[Any], others: NDArray[Any], prices: NDArray[np.int64], back: NDArray[np.int64], limit: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], Costs]:
    """Return all pairs of two ascending sets that a bond joins at a cost of at most `limit`: positions in both sets,
    and cost.

    `back` are the prices as seen from `others`. The search starts from the set with fewer neighbours. If both have
    many, it starts from each node with few neighbours, and pairs of hubs are looked up one by one.
    """
    degrees, back_degrees = graph.degrees(ones), graph.degrees(others)
    if min(int(degrees.sum()), int(back_degrees.sum())) <= _SMALL:
        if int(degrees.sum()) <= int(back_degrees.sum()):
            return _from(graph, np.arange(len(ones)), ones, others, prices, limit)
        other_at, one_at, costs = _from(graph, np.arange(len(others)), others, ones, back, limit)
        return one_at, other_at, costs
    hubs, back_hubs = np.flatnonzero(degrees > _HUB), np.flatnonzero(back_degrees > _HUB)
    few, back_few = np.flatnonzero(degrees <= _HUB), np.flatnonzero(back_degrees <= _HUB)
    parts = [_from(graph, few, ones, others, prices, limit)]
    other_at, position, costs = _from(graph, back_few, others, ones[hubs], back, limit)
    parts.append((hubs[position], other_at, costs))
    if len(hubs) * len(back_hubs) <= _PAIRS:
        one_at, other_at = np.repeat(hubs, len(back_hubs)), np.tile(back_hubs, len(hubs))
        costs = pair_costs(graph, prices, ones[one_at], others[other_at])
        keep = costs <= limit
        parts.append((one_at[keep], other_at[keep], costs[keep]))
    else:
        one_at, position, costs = _from(graph, hubs, ones, others[back_hubs], prices, limit)
        parts.append((one_at, back_hubs[position], costs))
    return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts]), np.concatenate([p[2] for p in parts])


#: Neighbours that are simply expanded; more than this many neighbours make a hub; the most pairs of hubs that are looked up.
_SMALL: Final = 20_000
_HUB: Final = 256
_PAIRS: Final = 500_000
#: Entries of the adjacency, and pairs of nodes, between two checks of the deadline.
_ENTRIES: Final = 1 << 18
_PAIRED: Final = 1 << 16
#: If more statements than this join two nodes, the cheapest are selected first.
_PARALLEL: Final = 64


def _from(
    graph: SearchGraph, chosen: NDArray[np.int64], ones: NDArray[Any], others: NDArray[Any], prices: NDArray[np.int64], limit: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], Costs]:
    """Return the pairs of chosen nodes of `ones` with nodes of `others`: positions in both, and cost."""
    owner, neighbours, costs = neighbours_of(graph, ones[chosen], prices, limit)
    if not len(owner) or not len(others):
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64)
    position = np.minimum(others.searchsorted(neighbours), len(others) - 1)
    keep = others.take(position) == neighbours
    return chosen[owner[keep]], position[keep], costs[keep]


def assignment(prices: NDArray[np.int64], starts: NDArray[np.int64]) -> Costs:
    """Return the least cost of giving each edge a statement of its own, for every group of statements.

    `prices` has one row per edge and one column per statement; groups of columns begin at `starts`. A group with fewer
    statements than edges costs at least `BARRED`. The dynamic program runs over subsets of edges with a statement,
    adding one statement of every group at a time.
    """
    edges, total = prices.shape
    sizes = np.diff(np.append(starts, total))
    best = np.full((1 << edges, len(starts)), BARRED, np.int64)
    best[0] = 0
    if int(sizes.max(initial=0)) > _PARALLEL:
        prices, starts, sizes = _cheapest(prices, starts, sizes)
    for turn in range(int(sizes.max(initial=0))):
        check()
        groups = np.flatnonzero(sizes > turn)
        columns = prices[:, starts[groups] + turn]
        before = best[:, groups]
        after = before.copy()
        for subset in range(1, 1 << edges):
            check()
            for edge in range(edges):
                if subset >> edge & 1:
                    np.minimum(after[subset], before[subset ^ 1 << edge] + columns[edge], out=after[subset])
        best[:, groups] = after
    costs: Costs = best[-1]
    return costs


def _cheapest(
    prices: NDArray[np.int64], starts: NDArray[np.int64], sizes: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the same groups, reduced to statements among the first q of some edge, where q is the number of edges.

    Any other statement of a best choice can be exchanged for one of these.
    """
    edges, total = prices.shape
    group = np.arange(len(starts)).repeat(sizes)
    keep = np.zeros(total, bool)
    for row in prices:
        check()
        order = np.lexsort((row, group))
        # Groups keep their order, each with its statements by price.
        keep[order[np.arange(total) - starts.repeat(sizes) < edges]] = True
    sizes = np.bincount(group[keep], minlength=len(starts))
    return prices[:, keep], np.concatenate([[0], sizes.cumsum()[:-1]]), sizes


def starts_of(keys: NDArray[Any]) -> NDArray[np.int64]:
    """Return where runs of equal keys begin."""
    return np.flatnonzero(changed(keys))
