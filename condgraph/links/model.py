"""The contract of a link prediction model: scores of all entities as the other end of an edge.
Everything that predicts links depends on this module alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray


@runtime_checkable
class LinkModel(Protocol):
    """A link prediction model between `entities` (ids of the graph) by `relations` (names of
    predicates). Numbers in its calls are positions in these two.
    """

    @property
    def entities(self) -> Sequence[str]:
        """The ids of the entities that it scores, each once."""

    @property
    def relations(self) -> Sequence[str]:
        """The names of the predicates that it knows, each once; `inverse` selects an inverse."""

    @property
    def calibrated(self) -> bool:
        """Whether its scores are in [0, 1], as degrees of truth; else they are raw scores (logits),
        which need calibration.
        """

    def score_tails(self, heads: NDArray[np.int64], relation: int, *, inverse: bool = False) -> NDArray[np.float32]:
        """The scores of every entity as the tail of an edge from each head; shape (heads, entities).

        `inverse` asks for edges that point to the heads: row i has the scores of (e, relation,
        heads[i]) for every entity e.
        """
