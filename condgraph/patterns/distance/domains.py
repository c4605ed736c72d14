"""What a node or an edge of the pattern may be, and its term of the distance there (candidate sets
of section 5.1, Eq. 9 and 10).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.bounds import changed, check, current, watched
from condgraph.patterns.graph import Costs, Numbers, SearchGraph
from condgraph.patterns.options import AGAINST

#: The cost of what is not allowed: more than any sum of terms.
BARRED: Final = 1 << 40


class Domain:
    """The nodes that a node of the pattern may be, each with its term in millionths; without
    `costs`, any node, at no cost.

    `nodes` None means that `costs` has one entry a node of the graph; else `nodes` are the only
    ones allowed, ascending, and `costs` are theirs.
    """

    def __init__(self, costs: Costs | None = None, nodes: Numbers | None = None) -> None:
        self.nodes, self.costs = nodes, costs
        self.excluded: Numbers | None = None
        #: Ids of concepts, where an open domain is what is in one of them; for servers, which know
        #: their members.
        self.types: tuple[str, ...] | None = None
        #: The least term of all; `BARRED` where nothing is allowed.
        self.least = 0 if costs is None else int(costs.min(initial=BARRED))
        self._steps: dict[int, int] = {}

    def without(self, excluded: Numbers | None) -> Domain:
        """The same without these nodes."""
        if excluded is None or not len(excluded):
            return self
        if self.costs is None:
            found = Domain()
            found.excluded, found.types = excluded, self.types
        elif self.nodes is not None:
            keep = ~np.isin(self.nodes, excluded)
            found = Domain(self.costs[keep], self.nodes[keep])
        else:
            costs = self.costs.copy()
            costs[excluded] = BARRED
            found = Domain(costs)
            # A few candidates fewer: the steps only say how far to look next.
            found._steps = self._steps
        return found

    def nearest(self, k: int, rank: NDArray[Any]) -> Domain:
        """The k nearest candidates alone, ties by rank."""
        assert self.costs is not None
        at = nearest(self.costs, k, rank if self.nodes is None else rank.take(self.nodes))
        return Domain(self.costs[at], at.astype(np.int32) if self.nodes is None else self.nodes[at])

    @property
    def open(self) -> bool:
        """Whether any node may stand here (but the excluded ones), so that a search does not begin
        here.
        """
        return self.costs is None

    @property
    def size(self) -> int:
        """How many candidates there are. Not for an open domain."""
        assert self.costs is not None
        return int((self.costs < BARRED).sum())

    def at(self, nodes: NDArray[Any]) -> Costs | None:
        """The terms of these nodes, `BARRED` where one is not allowed; None where all are free."""
        if self.costs is None:
            if self.excluded is None:
                return None
            return np.where(np.isin(nodes, self.excluded), BARRED, 0)
        if self.nodes is None:
            return self.costs.take(nodes)
        if not len(self.nodes):
            return np.full(len(nodes), BARRED, np.int64)
        place = np.minimum(self.nodes.searchsorted(nodes), len(self.nodes) - 1)
        return np.where(self.nodes.take(place) == nodes, self.costs.take(place), BARRED)

    def within(self, limit: int) -> tuple[Numbers, Costs]:
        """The nodes of at most this term, ascending, with their terms. Not for an open domain."""
        assert self.costs is not None
        at = np.flatnonzero(self.costs <= min(limit, BARRED - 1))
        costs = self.costs.take(at)
        return (at.astype(np.int32) if self.nodes is None else self.nodes.take(at)), costs

    def step(self, position: int) -> int | None:
        """The term of the candidate at this place of their order; None where there are fewer."""
        if self.costs is None or position >= len(self.costs):
            return None
        found = self._steps.get(position)
        if found is None:
            found = self._steps[position] = int(np.partition(self.costs, position)[position])
        return None if found >= BARRED else found


def nearest(costs: Costs, k: int, rank: NDArray[Any]) -> NDArray[np.int64]:
    """The places of the k least costs, ties by rank, ascending by place."""
    if k >= len(costs):
        return np.flatnonzero(costs < BARRED)
    limit = np.partition(costs, k - 1)[k - 1]
    inside = np.flatnonzero(costs <= limit)
    order = np.lexsort((rank[inside], costs[inside]))[:k]
    chosen = np.sort(inside[order])
    return chosen[costs[chosen] < BARRED]


def weights(terms: Costs | None, predicates: int, *, outward: bool, directed: bool | None) -> Costs:
    """The price of every label (`graph`) for an edge of the pattern, seen from one of its nodes.

    `terms` are those of all predicates; None for an unknown relation. `outward` says that the node
    is the edge's head. With `directed` None an edge that runs against the pattern costs a little
    more (`options.AGAINST`).
    """
    prices = np.zeros(predicates, np.int64) if terms is None else terms
    found = np.full(3 * predicates + 1, BARRED, np.int64)
    against = np.minimum(prices + AGAINST, BARRED) if directed is None else prices
    if outward or not directed:
        found[0 : 2 * predicates : 2] = prices if outward else against
    if not outward or not directed:
        found[1 : 2 * predicates : 2] = against if outward else prices
    found[2 * predicates : 3 * predicates] = prices
    return found


class PairEdges:
    """All edges of the pattern between two of its nodes (or at one: a loop), priced from either
    side.
    """

    def __init__(self, first: int, second: int, edges: Sequence[int]) -> None:
        self.first, self.second, self.edges = first, second, tuple(edges)
        self._weights: dict[int, NDArray[np.int64]] = {}
        #: The least that the edges can cost together (Eq. 10), and the steps in which one of them
        #: grows dearer.
        self.least = 0
        self.steps: tuple[int, ...] = ()

    def price(self, side: int, found: list[Costs]) -> None:
        """Set the weights as seen from a side, one array of labels an edge."""
        self._weights[side] = np.stack(found)

    def weights(self, side: int) -> NDArray[np.int64]:
        """Prices of labels at node `side`: shape (edges, labels)."""
        return self._weights[side]

    def other(self, side: int) -> int:
        """The node at the other end."""
        return self.second if side == self.first else self.first


def neighbours_of(
    graph: SearchGraph, nodes: NDArray[Any], prices: NDArray[np.int64], limit: int
) -> tuple[NDArray[np.int64], Numbers, Costs]:
    """The neighbours of `nodes` that the edges of a bond lead to at a cost of at most `limit`.

    `prices` has one row an edge. Edges of one bond take different statements, so that the cost is
    that of the best assignment. Returns position in `nodes`, neighbour and cost, each pair once,
    ascending.
    """
    degrees = graph.degrees(nodes)
    # Choosing statements for several edges takes twice as long for each.
    together = max(_ENTRIES >> len(prices) - 1, 1)
    if current() is None or int(degrees.sum()) <= 2 * together:
        return _neighbours(graph, nodes, prices, limit)
    # In parts, with a look at the clock between them.
    ends = np.flatnonzero(np.diff(degrees.cumsum() // together, append=-1)) + 1
    parts, start = [], 0
    for end in ends.tolist():
        check()
        owner, found, costs = _neighbours(graph, nodes[start:end], prices, limit)
        parts.append((owner + start, found, costs))
        start = end
    owners, others, sums = zip(*parts, strict=True)
    return np.concatenate(owners), np.concatenate(others), np.concatenate(sums)


def _neighbours(
    graph: SearchGraph, nodes: NDArray[Any], prices: NDArray[np.int64], limit: int
) -> tuple[NDArray[np.int64], Numbers, Costs]:
    owner, found, labels = graph.expand(nodes)
    if len(prices) == 1:
        costs = prices[0].take(labels)
        keep = costs <= limit
        if not keep.all():
            owner, found, costs = owner[keep], found[keep], costs[keep]
        starts = np.flatnonzero(changed(found, owner))
        if len(starts) == len(owner):
            return owner, found, costs
        return owner[starts], found[starts], np.minimum.reduceat(costs, starts)
    keep = labels < prices.shape[1] - 1
    owner, found, labels = owner[keep], found[keep], labels[keep]
    starts = starts_of(owner << 32 | found)
    costs = assignment(prices[:, labels], starts)
    keep = costs <= limit
    return owner[starts[keep]], found[starts[keep]], costs[keep]


def pair_costs(graph: SearchGraph, prices: NDArray[np.int64], ones: NDArray[Any], others: NDArray[Any]) -> Costs:
    """The cost of a bond between given pairs of nodes, `prices` as seen from the first; `BARRED`
    where it is not there.
    """
    together = max(_PAIRED >> len(prices) - 1, 1)
    if current() is not None and len(ones) > together:
        parts = [slice(start, start + together) for start in range(0, len(ones), together)]
        return np.concatenate([_pair_costs(graph, prices, ones[part], others[part]) for part in watched(parts, 1)])
    return _pair_costs(graph, prices, ones, others)


def _pair_costs(graph: SearchGraph, prices: NDArray[np.int64], ones: NDArray[Any], others: NDArray[Any]) -> Costs:
    costs = np.full(len(ones), BARRED, np.int64)
    pair, labels = graph.between(ones, others)
    if len(pair):
        starts = starts_of(pair)
        if len(prices) == 1:
            found = np.minimum.reduceat(prices[0].take(labels), starts)
        else:
            found = assignment(prices[:, labels], starts)
        costs[pair[starts]] = np.minimum(found, BARRED)
    return costs


def joined(
    graph: SearchGraph, ones: NDArray[Any], others: NDArray[Any], prices: NDArray[np.int64], back: NDArray[np.int64], limit: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], Costs]:
    """All pairs of two ascending sets that a bond joins at a cost of at most `limit`: places in
    both sets, and cost.

    `back` are the prices as seen from `others`. Looked for from the set with fewer neighbours;
    where both have many, from each node of few neighbours, and hubs are asked about each other pair
    by pair.
    """
    degrees, back_degrees = graph.degrees(ones), graph.degrees(others)
    if min(int(degrees.sum()), int(back_degrees.sum())) <= _SMALL:
        if int(degrees.sum()) <= int(back_degrees.sum()):
            return _from(graph, np.arange(len(ones)), ones, others, prices, limit)
        theirs, mine, costs = _from(graph, np.arange(len(others)), others, ones, back, limit)
        return mine, theirs, costs
    hubs, back_hubs = np.flatnonzero(degrees > _HUB), np.flatnonzero(back_degrees > _HUB)
    few, back_few = np.flatnonzero(degrees <= _HUB), np.flatnonzero(back_degrees <= _HUB)
    parts = [_from(graph, few, ones, others, prices, limit)]
    theirs, place, costs = _from(graph, back_few, others, ones[hubs], back, limit)
    parts.append((hubs[place], theirs, costs))
    if len(hubs) * len(back_hubs) <= _PAIRS:
        mine, theirs = np.repeat(hubs, len(back_hubs)), np.tile(back_hubs, len(hubs))
        costs = pair_costs(graph, prices, ones[mine], others[theirs])
        keep = costs <= limit
        parts.append((mine[keep], theirs[keep], costs[keep]))
    else:
        mine, place, costs = _from(graph, hubs, ones, others[back_hubs], prices, limit)
        parts.append((mine, back_hubs[place], costs))
    return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts]), np.concatenate([p[2] for p in parts])


#: Neighbours that are looked at without further thought; from how many on a node is a hub; pairs of
#: hubs looked up.
_SMALL: Final = 20_000
_HUB: Final = 256
_PAIRS: Final = 500_000
#: Entries of the adjacency, and pairs of nodes, that are looked at between two looks at the clock.
_ENTRIES: Final = 1 << 18
_PAIRED: Final = 1 << 16
#: Statements between two nodes from which on the cheapest are picked first.
_PARALLEL: Final = 64


def _from(
    graph: SearchGraph, chosen: NDArray[np.int64], ones: NDArray[Any], others: NDArray[Any], prices: NDArray[np.int64], limit: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], Costs]:
    """The pairs of chosen nodes of `ones` with nodes of `others`."""
    owner, found, costs = neighbours_of(graph, ones[chosen], prices, limit)
    if not len(owner) or not len(others):
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64)
    place = np.minimum(others.searchsorted(found), len(others) - 1)
    keep = others.take(place) == found
    return chosen[owner[keep]], place[keep], costs[keep]


def assignment(prices: NDArray[np.int64], starts: NDArray[np.int64]) -> Costs:
    """The least cost of giving each edge a statement of its own, for every group of statements.

    `prices` has one row an edge and one column a statement; groups of columns begin at `starts`. A
    group with fewer statements than edges costs at least `BARRED`. Subsets of edges that have a
    statement are grown one statement of every group at a time.
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
    found: Costs = best[-1]
    return found


def _cheapest(
    prices: NDArray[np.int64], starts: NDArray[np.int64], sizes: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The same groups with those statements alone that are among the first q of some edge, q being
    how many edges there are: with the others all of a best choice can be exchanged for one of
    these.
    """
    edges, total = prices.shape
    group = np.arange(len(starts)).repeat(sizes)
    keep = np.zeros(total, bool)
    for row in prices:
        check()
        order = np.lexsort((row, group))
        # Groups stand in their order still, each with its statements by price.
        keep[order[np.arange(total) - starts.repeat(sizes) < edges]] = True
    sizes = np.bincount(group[keep], minlength=len(starts))
    return prices[:, keep], np.concatenate([[0], sizes.cumsum()[:-1]]), sizes


def starts_of(keys: NDArray[Any]) -> NDArray[np.int64]:
    """Where runs of equal keys begin."""
    return np.flatnonzero(changed(keys))
