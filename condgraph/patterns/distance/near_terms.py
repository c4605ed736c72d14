"""Terms of only the nearest candidates, found by an approximate index; their distances are exact (`terms.Terms`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from condgraph.patterns.distance.domains import Domain
from condgraph.patterns.distance.terms import TextTerms
from condgraph.patterns.graph import Costs, Numbers, text_nodes
from condgraph.vectors.stored import GraphVectors

#: How many names to request from an index if the search sets no limit.
CANDIDATES: Final = 256


class NearTerms:
    """Terms from callables: `candidates` returns the nodes (ascending) near a text with their terms; `predicates` the
    terms of all predicates; `prepare` encodes texts in one batch.
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
        """Return the candidates with their terms."""
        domain = self._found.get(text)
        if domain is None:
            nodes, costs = self._candidates(text)
            domain = self._found[text] = Domain(costs, nodes)
        return domain


def near_terms(vectors: GraphVectors, exact: TextTerms, k: int) -> NearTerms:
    """Return the terms of the k names nearest to each text by the approximate index of a snapshot's vectors."""
    snapshot = vectors.snapshot
    texts = vectors.positions_of(text_nodes(snapshot))

    def candidates(text: str) -> tuple[Numbers, Costs]:
        positions, distances, _ = vectors.nearest_nodes(text, k, exact=False)
        nodes, costs = [], []
        for position, distance in zip(positions.tolist(), distances.tolist(), strict=True):
            at_position = list(vectors.entities_at(position))
            at = int(texts.searchsorted(position))
            if at < len(texts) and texts[at] == position:
                at_position.append(snapshot.entities + at)
            nodes += at_position
            costs += [distance] * len(at_position)
        order = np.argsort(nodes)
        return np.array(nodes, np.int32)[order], np.array(costs, np.int64)[order]

    return NearTerms(vectors.about.id, candidates, exact.predicates, exact.passed_over, exact.prepare, exact.every)
