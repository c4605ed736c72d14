"""The cache keys of a snapshot's vectors, and how the vectors of a graph in memory survive a load.

Every graph imports this module, so it is separate from `stored`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot

#: The keys in the cache of an open generation: of its own vectors, and of those of the previous generation.
KEPT: Final = "vectors"
PREVIOUS: Final = "vectors before"


def carry_over(before: Snapshot | None, now: Snapshot) -> Snapshot:
    """Pass the vectors of a graph in memory on to its new generation, which is returned. When vectors are needed, only
    new texts are encoded.
    """
    if before is not None:
        vectors = before.schema.kept.get(KEPT, before.schema.kept.get(PREVIOUS))
        if vectors is not None:
            now.schema.kept[PREVIOUS] = vectors
    return now
