"""From raw scores of links to how true they are (QTO, Eq. 3 and 4), and which are kept.

    r(h, t) = min(exp f(h, t) * N / sum over e of exp f(h, e), 1 - delta),    N = max(1, tails that h has)

An edge of the graph is 1 whatever a model says; that is left to those who know the graph, since no
score may mean "observed".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.errors import OptionError
from condgraph.links.edges import Ints

#: The defaults of the paper for how far below 1 a prediction stays, and of the least that is kept.
DELTA: Final = 1e-4
EPSILON: Final = 1e-3


@dataclass(frozen=True, slots=True)
class Threshold:
    """What is kept of a row: scores of at least `epsilon`, at most `cap` of them, the best (all
    where None), none above 1 - `delta`.
    """

    epsilon: float = EPSILON
    delta: float = DELTA
    cap: int | None = None

    def __post_init__(self) -> None:
        if not 0 < self.epsilon < 1:
            raise OptionError(f"epsilon is more than 0 and less than 1, not {self.epsilon}")
        # Scores are float32, whose next number below 1 is 6e-8 away.
        if not 1e-6 <= self.delta < 1:
            raise OptionError(f"delta is at least 0.000001 and less than 1, not {self.delta}")
        if self.epsilon > 1 - self.delta:
            raise OptionError(f"no score is {self.epsilon} or more, since none is above 1 - delta, {1 - self.delta}")
        if self.cap is not None and self.cap < 1:
            raise OptionError(f"cap is at least 1, or None for no limit, not {self.cap}")


def calibrated(scores: NDArray[Any], tails: Ints, delta: float = DELTA) -> NDArray[np.float64]:
    """Scores in [0, 1 - delta] of raw scores, shape (heads, entities); `tails` (heads,) is how many
    tails each head has in the graph.
    """
    found = scores.astype(np.float64)
    found -= found.max(axis=1, keepdims=True)
    np.exp(found, out=found)
    found *= np.maximum(tails, 1)[:, None] / found.sum(axis=1, keepdims=True)
    return np.minimum(found, 1 - delta, out=found)


def kept_of(scores: NDArray[np.float32], tails: Ints, epsilon: float) -> tuple[Ints, Ints, NDArray[np.float64]]:
    """The entries of raw scores whose calibrated score is at least `epsilon`: row, entity and score
    (not yet held below 1), by row. As `calibrated`, without float64 for all that is not kept.
    """
    top = scores.max(axis=1, keepdims=True)
    powers = scores - top
    np.exp(powers, out=powers)
    share = np.maximum(tails, 1) / powers.sum(axis=1, dtype=np.float64)
    # A little less, so that rounding loses nothing; what is kept is looked at again.
    row, entity = np.nonzero(powers >= (0.9999 * epsilon / share)[:, None].astype(np.float32))
    found = np.exp(scores[row, entity].astype(np.float64) - top[row, 0]) * share[row]
    right = (found >= epsilon) & (found > 0)
    return row[right], entity[right], found[right]


def thresholded(
    heads: int, row: Ints, column: Ints, values: NDArray[np.float64], keep: Threshold
) -> tuple[Ints, Ints, NDArray[np.float32]]:
    """What a threshold keeps of the entries of calibrated rows, ascending by row and entity:
    offsets (heads + 1), entities, values. Equal values at the cap are kept by the smaller number.
    """
    found = np.minimum(values, 1 - keep.delta)
    if keep.cap is not None and len(row):
        order = np.lexsort((column, -found, row))
        counts = np.bincount(row, minlength=heads)
        place = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
        order = np.sort(order[place < keep.cap])
        row, column, found = row[order], column[order], found[order]
    offsets = np.append(0, np.cumsum(np.bincount(row, minlength=heads)))
    return offsets.astype(np.int64), column.astype(np.int64), found.astype(np.float32)
