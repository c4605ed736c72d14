"""Under which names an open generation keeps its vectors, and how those of a graph in memory survive a
load. Apart from `stored`, since every graph imports it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot

#: The keys of vectors in the cache of an open generation: its own, and those of the one before.
KEPT: Final = "vectors"
BEFORE: Final = "vectors before"


def carry_over(before: Snapshot | None, now: Snapshot) -> Snapshot:
    """The new generation of a graph in memory, with the index of the one before until vectors are
    needed.

    Then only what is new is encoded.
    """
    if before is not None:
        vectors = before.schema.kept.get(KEPT, before.schema.kept.get(BEFORE))
        if vectors is not None:
            now.schema.kept[BEFORE] = vectors
    return now
