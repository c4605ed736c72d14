"""How well a model ranks the ends of edges: filtered ranks, where ties share their mean rank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.bounds import check
from condgraph.links.edges import Edges, Ints
from condgraph.links.embeddings import check_scores, rows_of
from condgraph.links.model import LinkModel

#: Up to so many scores are compared with all others without sorting.
_FEW: Final = 40


@dataclass(frozen=True, slots=True)
class Ranking:
    """The mean reciprocal rank and Hits@k of some ranks."""

    mrr: float
    hits1: float
    hits3: float
    hits10: float
    ranks: int

    @classmethod
    def of(cls, ranks: NDArray[np.float64]) -> Ranking:
        """Of ranks, each counted once; zeros where there are none."""
        if not len(ranks):
            return cls(0.0, 0.0, 0.0, 0.0, 0)
        hits = [float((ranks <= most).mean()) for most in (1, 3, 10)]
        return cls(float((1 / ranks).mean()), hits[0], hits[1], hits[2], len(ranks))

    def __str__(self) -> str:
        return f"MRR {self.mrr:.4f}, Hits@1 {self.hits1:.3f}, @3 {self.hits3:.3f}, @10 {self.hits10:.3f} ({self.ranks:,} ranks)"


def rank_among(scores: NDArray[Any], right: Ints, others: Ints) -> NDArray[np.float64]:
    """The rank of each of `right` by its score, against all that are neither in `right` nor in
    `others`: 1 + how many are greater + how many are equal / 2. Shape of `right`.
    """
    rivals = np.ones(len(scores), bool)
    rivals[right] = rivals[others] = False
    scored, mine = scores[rivals], scores[right]
    if len(right) <= _FEW:
        greater = np.fromiter((np.count_nonzero(scored > item) for item in mine), np.int64, len(mine))
        equal = np.fromiter((np.count_nonzero(scored == item) for item in mine), np.int64, len(mine))
        return 1.0 + greater + equal / 2
    scored.sort()
    below, upto = np.searchsorted(scored, mine, side="left"), np.searchsorted(scored, mine, side="right")
    return 1.0 + (len(scored) - upto) + (upto - below) / 2


def rank_edges(model: LinkModel, edges: Edges, known: Sequence[Edges]) -> Ranking:
    """The filtered ranking of `edges` from both ends; `known` are all edges that are true (those of
    `edges` count as such anyway).

    Entities and relations of the edges have the numbers of the model.
    """
    n = len(model.entities)
    result: list[NDArray[np.float64]] = []
    for inverse in (False, True):
        ends = edges.ends(inverse)
        relation, node = np.divmod(ends.keys, n)
        for item in np.unique(relation):
            groups = np.flatnonzero(relation == item)
            step = rows_of(len(groups), n)
            for start in range(0, len(groups), step):
                check()
                part = groups[start : start + step]
                nodes = node[part]
                scores = model.score_tails(nodes, int(item), inverse=inverse)
                check_scores(scores, model, int(item))
                others = [other.ends(inverse).of(nodes, int(item)) for other in known]
                for row, group in enumerate(part):
                    right = ends.items[ends.offsets[group] : ends.offsets[group + 1]]
                    true = [items[offsets[row] : offsets[row + 1]] for offsets, items in others]
                    result.append(rank_among(scores[row], right, np.concatenate([right, *true])))
    return Ranking.of(np.concatenate(result) if result else np.empty(0))
