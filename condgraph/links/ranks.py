"""Filtered ranks of the ends of edges under a model; ties share their mean rank."""

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

#: The largest number of scores that are ranked without sorting all others.
_MAX_SELECTED: Final = 40


@dataclass(frozen=True, slots=True)
class Ranking:
    """The mean reciprocal rank and Hits@k, and the number of `ranks`."""

    mrr: float
    hits1: float
    hits3: float
    hits10: float
    ranks: int

    @classmethod
    def of(cls, ranks: NDArray[np.float64]) -> Ranking:
        """Compute the metrics from ranks; all are 0 if there are none."""
        if not len(ranks):
            return cls(0.0, 0.0, 0.0, 0.0, 0)
        hits = [float((ranks <= most).mean()) for most in (1, 3, 10)]
        return cls(float((1 / ranks).mean()), hits[0], hits[1], hits[2], len(ranks))

    def __str__(self) -> str:
        return f"MRR {self.mrr:.4f}, Hits@1 {self.hits1:.3f}, @3 {self.hits3:.3f}, @10 {self.hits10:.3f} ({self.ranks:,} ranks)"


def rank_among(scores: NDArray[Any], right: Ints, others: Ints) -> NDArray[np.float64]:
    """Return the rank of each of `right` by score among the entities that are neither in `right` nor in `others`: 1 +
    the number of greater scores + half the number of equal ones. Same shape as `right`.
    """
    rivals = np.ones(len(scores), bool)
    rivals[right] = rivals[others] = False
    rival_scores, right_scores = scores[rivals], scores[right]
    if len(right) <= _MAX_SELECTED:
        greater = np.fromiter((np.count_nonzero(rival_scores > score) for score in right_scores), np.int64, len(right_scores))
        equal = np.fromiter((np.count_nonzero(rival_scores == score) for score in right_scores), np.int64, len(right_scores))
        return 1.0 + greater + equal / 2
    rival_scores.sort()
    below, at_most = (np.searchsorted(rival_scores, right_scores, side=side) for side in ("left", "right"))
    return 1.0 + (len(rival_scores) - at_most) + (at_most - below) / 2


def rank_edges(model: LinkModel, edges: Edges, known: Sequence[Edges]) -> Ranking:
    """Rank `edges` from both ends, filtered: all edges of `known` and of `edges` count as true, so they never compete.

    Entities and relations of the edges have the numbers of the model.
    """
    n = len(model.entities)
    ranks: list[NDArray[np.float64]] = []
    for inverse in (False, True):
        ends = edges.ends(inverse)
        relation, node = np.divmod(ends.keys, n)
        for number in np.unique(relation):
            groups = np.flatnonzero(relation == number)
            step = rows_of(len(groups), n)
            for start in range(0, len(groups), step):
                check()
                batch = groups[start : start + step]
                nodes = node[batch]
                scores = model.score_tails(nodes, int(number), inverse=inverse)
                check_scores(scores, model, int(number))
                known_tails = [true_edges.ends(inverse).of(nodes, int(number)) for true_edges in known]
                for row, group in enumerate(batch):
                    right = ends.items[ends.offsets[group] : ends.offsets[group + 1]]
                    true_tails = [items[offsets[row] : offsets[row + 1]] for offsets, items in known_tails]
                    ranks.append(rank_among(scores[row], right, np.concatenate([right, *true_tails])))
    return Ranking.of(np.concatenate(ranks) if ranks else np.empty(0))
