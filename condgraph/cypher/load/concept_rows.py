"""Membership and subclasses as batches of rows: those that are new, and those with further sources."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np

from condgraph.cypher.load.batch import Batch, Ids, Numbers, Rows, cut
from condgraph.cypher.load.before import mapped_pairs, pairs_said
from condgraph.cypher.load.pairs import Pairs

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot


class ConceptRows:
    """Makes batches of what `snapshot` has and `previous` has not; `sources` are the names of the
    sources of `snapshot`.
    """

    def __init__(self, snapshot: Snapshot, previous: Snapshot | None, sources: Sequence[str]) -> None:
        self.snapshot, self.previous, self._sources_named = snapshot, previous, sources

    def batches(self) -> Iterator[Batch]:
        """Membership, also what follows from it, and subclasses: those that are new, and those with
        further sources.
        """
        snapshot, previous = self.snapshot, self.previous
        for prefix, edge in (("mem", "MEMBER_OF"), ("sub", "SUBCLASS_OF")):
            pairs = Pairs(snapshot, prefix)
            every = np.arange(len(pairs.keys))
            parts = (("members", every), ("members that changed", every[:0]))
            if previous is not None:
                mapped, where = mapped_pairs(previous, prefix, snapshot)
                order = np.argsort(mapped)
                at = (
                    order[np.minimum(np.searchsorted(mapped, pairs.keys, sorter=order), len(mapped) - 1)]
                    if len(mapped)
                    else every[:0]
                )
                known = mapped[at] == pairs.keys if len(mapped) else np.zeros(len(every), bool)
                more = known & (pairs_said(snapshot, pairs) != (where[at] if len(mapped) else 0))
                parts = (("members", every[~known]), ("members that changed", every[more]))
            for kind, places in parts:

                def make(kind: str, name: str, at: Numbers, pairs: Pairs = pairs, edge: str = edge) -> Batch:
                    return self._pairs(kind, name, at, pairs, edge)

                yield from cut(kind, places.astype(np.int32), make, f"{kind} {edge}")

    def _pairs(self, kind: str, name: str, at: Numbers, pairs: Pairs, edge: str) -> Batch:
        ids = Ids(self.snapshot)
        ends = [ids.places(numbers) for numbers in np.divmod(pairs.keys[at], self.snapshot.entities)]
        begin, end = pairs.bounds[at].tolist(), pairs.bounds[at + 1].tolist()
        rows: Rows = [
            [one, other, edge, None, [self._sources_named[i] for i in pairs.sources[low:high]], pairs.rows[low:high].tolist()]
            + [None] * 4
            for one, other, low, high in zip(*ends, begin, end, strict=True)
        ]
        if kind.endswith("changed"):
            for row, pair in zip(rows, pairs.keys[at].tolist(), strict=True):
                row.append(self._pair_key(edge, *divmod(pair, self.snapshot.entities)))
        return Batch(kind, name, ids.texts(), rows, *((None, None) if kind.endswith("changed") else (0, len(rows))))

    def _pair_key(self, edge: str, one: int, other: int) -> str:
        """A name for a membership, for what is noted of it."""
        ends = json.dumps([edge, self.snapshot.ident(one), self.snapshot.ident(other)])
        return blake2b(ends.encode(), digest_size=16).hexdigest()
