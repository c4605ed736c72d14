"""How true it is of every node of a graph that it is the value of a variable (T* of QTO, section
3.2), as a default and the exceptions to it.

A complement of a set of few is a set of almost all; with a default it takes as little room. Scores
are float64 throughout: in float32 the union of two 0.9999 is 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.pieces import different

Ids = NDArray[np.int64]
Scores = NDArray[np.float64]
_NO_IDS: Final = np.empty(0, np.int64)
_NO_SCORES: Final = np.empty(0, np.float64)


@dataclass(frozen=True, slots=True)
class Vector:
    """Scores in [0, 1]: `values[i]` of the node `ids[i]` (sorted, each once), `default` of all
    others.
    """

    default: float
    ids: Ids
    values: Scores

    def at(self, ids: Ids) -> Scores:
        """The scores of some nodes, in any order."""
        found = np.full(len(ids), self.default)
        if len(self.ids):
            place = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
            known = self.ids[place] == ids
            found[known] = self.values[place[known]]
        return found

    def one(self, node: int) -> float:
        """The score of one node."""
        place = int(np.searchsorted(self.ids, node))
        return float(self.values[place]) if place < len(self.ids) and self.ids[place] == node else self.default

    def pruned(self, least: float) -> Vector:
        """Without exceptions below `least`, and without those of score 0; only of a vector whose
        default is 0.
        """
        kept = self.values >= least if least > 0 else self.values > 0
        return self if kept.all() else Vector(0.0, self.ids[kept], self.values[kept])

    def complement(self, alpha: float) -> Vector:
        """1 - min(1, alpha * v), and 0 where v is 1 (QTO, section 4.1: the negation scale)."""
        return Vector(1.0 - scaled(self.default, alpha), self.ids, 1.0 - scaled_all(self.values, alpha))


def scaled(score: float, alpha: float) -> float:
    """A negated score on the negation scale; what is certain stays so."""
    return 1.0 if score >= 1.0 else min(1.0, alpha * score)


def scaled_all(scores: Scores, alpha: float) -> Scores:
    """The same of many."""
    return np.where(scores >= 1.0, 1.0, np.minimum(1.0, alpha * scores))


NOTHING: Final = Vector(0.0, _NO_IDS, _NO_SCORES)
EVERYTHING: Final = Vector(1.0, _NO_IDS, _NO_SCORES)


def certain(ids: Ids) -> Vector:
    """Score 1 for sorted nodes, 0 for all others."""
    return Vector(0.0, ids.astype(np.int64), np.ones(len(ids)))


def product(vectors: Sequence[Vector]) -> Vector:
    """The intersection under the product t-norm (Eq. 5), by the sparsest vector that is 0 outside."""
    sparse = [vector for vector in vectors if vector.default == 0.0]
    if sparse:
        ids = min(sparse, key=lambda vector: len(vector.ids)).ids
        values = np.ones(len(ids))
        # In one order whichever is the sparsest, so that rounding is always the same.
        for vector in vectors:
            values *= vector.values if vector.ids is ids else vector.at(ids)
        return Vector(0.0, ids, values).pruned(0.0)
    ids, default = _all_ids(vectors), 1.0
    values = np.ones(len(ids))
    for vector in vectors:
        default *= vector.default
        values *= vector.at(ids)
    return Vector(default, ids, values)


def either(vectors: Sequence[Vector]) -> Vector:
    """The union, 1 - (1 - a)(1 - b)... (Eq. 6)."""
    ids, default = _all_ids(vectors), 1.0
    values = np.ones(len(ids))
    for vector in vectors:
        default *= 1.0 - vector.default
        values *= 1.0 - vector.at(ids)
    return Vector(1.0 - default, ids, 1.0 - values)


def _all_ids(vectors: Sequence[Vector]) -> Ids:
    parts = [vector.ids for vector in vectors]
    return parts[0] if len(parts) == 1 else different(np.concatenate(parts))
