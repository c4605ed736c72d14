"""The k best answers, exactly: by a threshold that falls until more than k answers reach it.

A score below the threshold cannot lead to an answer above it (`Forward`), so that the first
propagations look at few nodes. The order is total: answers that the graph alone gives, then by
score, then by name and id.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.languages.logic.tree import Tree, negates
from condgraph.logic.forward import Forward
from condgraph.logic.matrix import Matrix, adjacency
from condgraph.logic.vector import Ids, Scores, Vector

#: The thresholds that are tried, and then none.
THRESHOLDS: Final = (1.0, 0.5, 0.1, 0.02, 0.004)


@dataclass(frozen=True, slots=True)
class Ranked:
    """Nodes in the order of answers, with their scores, and whether the graph alone gives them;
    `more` are left out by k. `forward` is what they came from, `least` the threshold it was done
    with.
    """

    ids: Ids
    scores: Scores
    observed: NDArray[np.bool_]
    more: bool
    forward: Forward


def ranked(tree: Tree, snapshot: Snapshot, matrix: Matrix, *, k: int | None, alpha: float = 1.0, pruned: bool = True) -> Ranked:
    """The k best answers (None: all of a score above 0). With `pruned=False` all scores are worked
    out, which gives the same.
    """
    falling = THRESHOLDS if pruned and k is not None and not matrix.observed_only else ()
    forward, found = None, None
    for least in (*falling, 0.0):
        forward = Forward(snapshot, matrix, alpha=alpha, least=least)
        found = forward.run(tree)
        if found.default > 0.0:
            if least > 0.0:
                continue
            break
        # One more than k, so that it is known whether k leaves some out.
        if least > 0.0 and k is not None and np.count_nonzero(found.values >= least) > k and _has_observed(found, tree, snapshot):
            break
    assert forward is not None and found is not None  # noqa: PT018
    if found.default > 0.0:
        found = _spelled(found, snapshot.entities)
    found = found.pruned(max(forward.least, 0.0))
    own = observed(tree, snapshot, found)
    order = np.lexsort((found.ids, -found.values, ~own))
    kept = order if k is None else order[:k]
    return Ranked(found.ids[kept], _below_one(found.values[kept], own[kept]), own[kept], len(kept) < len(order), forward)


def observed(tree: Tree, snapshot: Snapshot, found: Vector) -> NDArray[np.bool_]:
    """Which answers the graph alone gives; never told from a score of 1."""
    suspects = np.arange(len(found.ids)) if negates(tree) else np.flatnonzero(found.values >= 1.0)
    own = np.zeros(len(found.ids), bool)
    if len(suspects):
        known = Forward(snapshot, adjacency(snapshot)).run(tree, found.ids[suspects])
        own[suspects] = known.at(found.ids[suspects]) >= 1.0
    return own


def _has_observed(found: Vector, tree: Tree, snapshot: Snapshot) -> bool:
    """Whether all answers that the graph alone gives are there. Without a negation they have score 1;
    with one, an edge that is not in the graph and may well be true lowers them.
    """
    if not negates(tree):
        return True
    known = Forward(snapshot, adjacency(snapshot)).run(tree)
    return bool(np.isin(known.ids[known.values > 0.0], found.ids, assume_unique=True).all())


def _spelled(found: Vector, size: int) -> Vector:
    """A vector with all nodes named: of a query that says only what its answers are not."""
    every = np.arange(size)
    return Vector(0.0, every, found.at(every))


def _below_one(scores: Scores, own: NDArray[np.bool_]) -> Scores:
    """A union of many near-certain predictions is rounded to 1, which no prediction is."""
    return np.where(own, scores, np.minimum(scores, np.nextafter(1.0, 0.0)))
