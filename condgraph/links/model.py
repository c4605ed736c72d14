"""What condgraph asks of a model of links: scores of all entities as the other end of an edge.
Everything that predicts links knows this module alone; embeddings and adapters stand beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray


@runtime_checkable
class LinkModel(Protocol):
    """A model of links between entities. What it knows is said by `entities` (ids, as the graph has
    them) and `relations` (names of predicates); numbers in its calls are places in these two.
    """

    @property
    def entities(self) -> Sequence[str]:
        """The ids of the entities that it scores, each once."""

    @property
    def relations(self) -> Sequence[str]:
        """The names of the predicates that it knows, each once; an inverse is asked for by `inverse`."""

    @property
    def calibrated(self) -> bool:
        """Whether its scores are in [0, 1] and mean how true a link is; else they are raw scores
        (logits) that a calibration has yet to turn into such (`links.calibration`).
        """

    def score_tails(self, heads: NDArray[np.int64], relation: int, *, inverse: bool = False) -> NDArray[np.float32]:
        """The scores of every entity as the tail of an edge from each head; shape (heads, entities).

        `inverse` asks for edges that point to the heads: row i has the scores of (e, relation,
        heads[i]) for every entity e.
        """
