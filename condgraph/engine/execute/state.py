"""The interface of an execution that operators and conditions use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from condgraph.engine import algebra
from condgraph.engine.execute.bags import Bag
from condgraph.engine.execute.scope import Scope
from condgraph.engine.execute.sets import Numbers

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot


class State(Protocol):
    """The results so far, by operator, and what they refer to (`run.Run`)."""

    snapshot: Snapshot
    scope: Scope

    def entities(self, node: algebra.Entities) -> Numbers:
        """The outcome of an operator of that sort."""

    def values(self, node: algebra.Values) -> Bag:
        """The outcome of an operator of that sort."""

    def among(self, entities: Numbers, of: Numbers) -> NDArray[np.bool_]:
        """For each entity (in any order), whether it is in the sorted set `of`."""

    def warn(self, message: str) -> None:
        """Add a warning, once."""
