"""Terms computed on demand: for dense vectors, one product in float32 bounds them all first.

The exact distances of a text from 43,000 names take some hundred milliseconds, their bounds a few; a search needs the
exact terms only of the nodes within its bound.
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
    """All nodes, each with the term of its name. `places` gives for each node the position of its name's vector."""

    def __init__(self, vectors: DenseVectors, query: Query, places: Numbers) -> None:
        super().__init__()
        self._vectors, self._query, self._places = vectors, query, places
        squared, error = vectors.bounds(query)
        bounds = np.maximum(np.stack([squared - error, squared + error]).astype(np.float64), 0.0)
        # A millionth more on both sides, since terms are rounded.
        low, high = np.sqrt(bounds) * 1e6
        self._exact: NDArray[np.int64] = np.full(len(squared), -1, np.int64)
        self._floor: Costs = (np.maximum(np.floor(low) - 1, 0).astype(np.int64)).take(places)
        self._ceiling: Costs = (np.ceil(high) + 1).astype(np.int64).take(places)
        self._barred: Numbers | None = None
        self._least()

    def _least(self) -> None:
        candidates = np.flatnonzero(self._floor <= self._ceiling.min(initial=BARRED - 1))
        self.least = int(self._terms(candidates).min(initial=BARRED))

    def _terms(self, nodes: NDArray[Any]) -> Costs:
        """Return the exact terms of nodes, computed once per name."""
        positions = self._places.take(nodes)
        terms = self._exact.take(positions)
        if (terms < 0).any():
            missing = np.unique(positions[terms < 0]).astype(np.int64)
            self._exact[missing] = self._vectors.distances(self._query, missing)
            terms = self._exact.take(positions)
        if self._barred is not None:
            terms = np.where(np.isin(nodes, self._barred), BARRED, terms)
        return terms

    @property
    def open(self) -> bool:
        """False: every node has a term."""
        return False

    @property
    def size(self) -> int:
        """The number of candidates."""
        return int((self._floor < BARRED).sum())

    def without(self, excluded: Numbers | None) -> Domain:
        """Return the domain without these nodes."""
        if excluded is None or not len(excluded):
            return self
        domain = copy.copy(self)
        domain._floor, domain._ceiling = self._floor.copy(), self._ceiling.copy()
        domain._floor[excluded] = domain._ceiling[excluded] = BARRED
        domain._barred = excluded
        domain._least()
        return domain

    def nearest(self, k: int, rank: NDArray[Any]) -> Domain:
        """Return the domain of the k nearest candidates, ties by rank."""
        at = np.flatnonzero(self._floor < BARRED)
        if k < len(at):
            at = np.flatnonzero(self._floor <= np.partition(self._ceiling, k - 1)[k - 1])
        costs = self._terms(at)
        chosen = nearest(costs, k, rank.take(at))
        return Domain(costs[chosen], at[chosen].astype(np.int32))

    def at(self, nodes: NDArray[Any]) -> Costs | None:
        """Return the terms of these nodes."""
        return self._terms(nodes)

    def within(self, limit: int) -> tuple[Numbers, Costs]:
        """Return the nodes with at most this term, ascending, and their terms."""
        candidates = np.flatnonzero(self._floor <= min(limit, BARRED - 1))
        costs = self._terms(candidates)
        keep = costs <= limit
        return candidates[keep].astype(np.int32), costs[keep]

    def step(self, position: int) -> int | None:
        """Return an upper bound of the term of the candidate at this position by term, so that a search bound includes it."""
        if position >= len(self._ceiling):
            return None
        term = self._steps.get(position)
        if term is None:
            term = self._steps[position] = int(np.partition(self._ceiling, position)[position])
        return None if term >= BARRED else term
