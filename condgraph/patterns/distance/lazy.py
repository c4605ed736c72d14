"""Terms that are worked out when they are asked for: of dense vectors, one product in float32
bounds them all first.

The exact distances of a text from 43,000 names take some hundred milliseconds, their bounds a few;
a search needs the exact terms of the nodes within its bound alone.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from condgraph.patterns.distance.domains import BARRED, Domain, nearest

if TYPE_CHECKING:
    from condgraph.patterns.graph import Costs, Numbers
    from condgraph.vectors.nearest import DenseVectors, Query


class LateDomain(Domain):
    """All nodes, each with the term of its name. `places` says for each node which of the vectors
    its name has.
    """

    def __init__(self, vectors: DenseVectors, query: Query, places: Numbers) -> None:
        super().__init__()
        self._vectors, self._query, self._places = vectors, query, places
        squared, error = vectors.bounds(query)
        bounds = np.maximum(np.stack([squared - error, squared + error]).astype(np.float64), 0.0)
        # A millionth more on both sides, for the rounding of terms.
        low, high = np.sqrt(bounds) * 1e6
        self._exact: NDArray[np.int64] = np.full(len(squared), -1, np.int64)
        self._floor: Costs = (np.maximum(np.floor(low) - 1, 0).astype(np.int64)).take(places)
        self._ceiling: Costs = (np.ceil(high) + 1).astype(np.int64).take(places)
        self._barred: Numbers | None = None
        self._least()

    def _least(self) -> None:
        near = np.flatnonzero(self._floor <= self._ceiling.min(initial=BARRED - 1))
        self.least = int(self._terms(near).min(initial=BARRED))

    def _terms(self, nodes: NDArray[Any]) -> Costs:
        """The exact terms of nodes; worked out once for each name."""
        places = self._places.take(nodes)
        found = self._exact.take(places)
        if (found < 0).any():
            missing = np.unique(places[found < 0]).astype(np.int64)
            self._exact[missing] = self._vectors.distances(self._query, missing)
            found = self._exact.take(places)
        if self._barred is not None:
            found = np.where(np.isin(nodes, self._barred), BARRED, found)
        return found

    @property
    def open(self) -> bool:
        """Nodes have terms here."""
        return False

    @property
    def size(self) -> int:
        """How many candidates there are."""
        return int((self._floor < BARRED).sum())

    def without(self, excluded: Numbers | None) -> Domain:
        """The same without these nodes."""
        if excluded is None or not len(excluded):
            return self
        found = copy.copy(self)
        found._floor, found._ceiling = self._floor.copy(), self._ceiling.copy()
        found._floor[excluded] = found._ceiling[excluded] = BARRED
        found._barred = excluded
        found._least()
        return found

    def nearest(self, k: int, rank: NDArray[Any]) -> Domain:
        """The k nearest candidates alone, ties by rank."""
        at = np.flatnonzero(self._floor < BARRED)
        if k < len(at):
            at = np.flatnonzero(self._floor <= np.partition(self._ceiling, k - 1)[k - 1])
        costs = self._terms(at)
        chosen = nearest(costs, k, rank.take(at))
        return Domain(costs[chosen], at[chosen].astype(np.int32))

    def at(self, nodes: NDArray[Any]) -> Costs | None:
        """The terms of these nodes."""
        return self._terms(nodes)

    def within(self, limit: int) -> tuple[Numbers, Costs]:
        """The nodes of at most this term, ascending, with their terms."""
        near = np.flatnonzero(self._floor <= min(limit, BARRED - 1))
        costs = self._terms(near)
        keep = costs <= limit
        return near[keep].astype(np.int32), costs[keep]

    def step(self, position: int) -> int | None:
        """About the term of the candidate at this place of their order: at least it, so that it is
        let in.
        """
        if position >= len(self._ceiling):
            return None
        found = self._steps.get(position)
        if found is None:
            found = self._steps[position] = int(np.partition(self._ceiling, position)[position])
        return None if found >= BARRED else found
