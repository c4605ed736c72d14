"""Memberships and subclasses as pairs of entities, each once with all that says so: what loads and
the files of an import write.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot


class Pairs:
    """Direct membership ("mem") or subclasses ("sub"), and for membership what follows from it,
    without sources.

    `keys` [K] int64, sorted: the first entity times the number of entities, plus the second.
    `bounds` [K + 1]: where the `sources` and `rows` of each stand. `numbers` and `entities` say
    other numbers for the entities.
    """

    def __init__(self, snapshot: Snapshot, prefix: str, numbers: NDArray[Any] | None = None, entities: int | None = None) -> None:
        get = snapshot.arrays.get
        width = snapshot.entities if entities is None else entities
        first, second = (get(f"{prefix}.{name}").astype(np.int64) for name in (("e", "c") if prefix == "mem" else ("c", "p")))
        lists, members = np.empty(0, np.int64), np.empty(0, np.int64)
        if prefix == "mem":
            lists = np.repeat(get("con.entity"), np.diff(get("con.offsets"))).astype(np.int64)
            members = get("con.items").astype(np.int64)
        if numbers is not None:
            first, second, lists, members = (numbers[column] for column in (first, second, lists, members))
        stated = first * width + second
        order = np.argsort(stated, kind="stable")
        stated = stated[order]
        self.keys = np.unique(np.concatenate([stated, members * width + lists]))
        self.bounds = np.searchsorted(stated, np.append(self.keys, np.iinfo(np.int64).max))
        self.sources, self.rows = get(f"{prefix}.src")[order], get(f"{prefix}.row")[order]
