"""Terms of the nearest candidates alone, which an approximate index finds; their distances are
exact (`terms.Terms`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from condgraph.patterns.distance.domains import Domain
from condgraph.patterns.distance.terms import TextTerms
from condgraph.patterns.graph import Costs, Numbers, text_nodes
from condgraph.vectors.stored import GraphVectors

#: Names that an index is asked for, where the search does not limit them.
CANDIDATES: Final = 256


class NearTerms:
    """`candidates` gives the nodes (ascending) near to a text, with their terms; `predicates` the
    terms of all predicates.

    `prepare` encodes texts together.
    """

    def __init__(
        self,
        ident: str,
        candidates: Callable[[str], tuple[Numbers, Costs]],
        predicates: Callable[[str], Costs],
        passed_over: Callable[[str], str | None],
        prepare: Callable[[Sequence[str], Sequence[str]], None],
        every: Callable[[str], Costs],
    ) -> None:
        self.id, self._candidates, self.predicates, self.passed_over = ident, candidates, predicates, passed_over
        self.prepare, self.every = prepare, every
        self._found: dict[str, Domain] = {}

    def nodes(self, text: str) -> Domain:
        """The candidates with their terms."""
        found = self._found.get(text)
        if found is None:
            nodes, costs = self._candidates(text)
            found = self._found[text] = Domain(costs, nodes)
        return found


def near_terms(vectors: GraphVectors, exact: TextTerms, k: int) -> NearTerms:
    """The terms of the k names nearest to each text by the approximate index of a snapshot's
    vectors.
    """
    snapshot = vectors.snapshot
    texts = vectors.positions_of(text_nodes(snapshot))

    def candidates(text: str) -> tuple[Numbers, Costs]:
        positions, distances, _ = vectors.nearest_nodes(text, k, exact=False)
        nodes, costs = [], []
        for position, distance in zip(positions.tolist(), distances.tolist(), strict=True):
            own = list(vectors.entities_at(position))
            at = int(texts.searchsorted(position))
            if at < len(texts) and texts[at] == position:
                own.append(snapshot.entities + at)
            nodes += own
            costs += [distance] * len(own)
        order = np.argsort(nodes)
        return np.array(nodes, np.int32)[order], np.array(costs, np.int64)[order]

    return NearTerms(vectors.about.id, candidates, exact.predicates, exact.passed_over, exact.prepare, exact.every)
