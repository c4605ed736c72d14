"""The contract of a link prediction model: it scores all entities as the other end of an edge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray


@runtime_checkable
class LinkModel(Protocol):
    """A link prediction model between `entities` (ids of the graph) by `relations` (names of predicates). The numbers
    in its calls are positions in these two.
    """

    @property
    def entities(self) -> Sequence[str]:
        """The ids of the entities that it scores, without duplicates."""

    @property
    def relations(self) -> Sequence[str]:
        """The names of the predicates that it knows, without duplicates."""

    @property
    def calibrated(self) -> bool:
        """Whether its scores are in [0, 1], as degrees of truth. Otherwise they are raw (logits) and need calibration."""

    def score_tails(self, heads: NDArray[np.int64], relation: int, *, inverse: bool = False) -> NDArray[np.float32]:
        """Return the scores of every entity as the tail of an edge from each head; shape (heads, entities).

        With `inverse` the edges point to the heads: row i has the scores of (e, relation, heads[i]) for every entity e.
        """
