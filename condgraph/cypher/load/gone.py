"""What a load takes away, as batches that mark it: it is removed when all else is done (`lock`)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from condgraph.cypher.layout.schema import index_key, predicate_key, type_of
from condgraph.cypher.load.batch import BATCH, Batch, Ids
from condgraph.cypher.load.before import mapped_pairs
from condgraph.cypher.load.pairs import Pairs
from condgraph.engine.identity import statement_ids

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot


class Gone:
    """Batches that mark what `previous` has and `snapshot` has not."""

    def __init__(self, previous: Snapshot, snapshot: Snapshot) -> None:
        self.previous, self.snapshot = previous, snapshot
        self._types = [type_of(previous.predicate_name(i)) for i in range(previous.predicate_count)]

    def batches(self) -> Iterator[Batch]:
        """All of them; statements before the entities that they are about."""
        previous, snapshot = self.previous, self.snapshot
        sids = statement_ids(previous)
        gone = np.flatnonzero(~np.isin(sids, statement_ids(snapshot))).astype(np.int32)
        split = previous.split(gone)
        owners = np.zeros(previous.statements, bool)
        owners[previous.arrays.get("q.owner")] = True
        relations, attributes = gone[:split], gone[split:] - np.int32(previous.relations)
        types = self._types
        for some in _pieces(relations):
            ids = Ids(previous)
            ends = ids.places(previous.relation_subject[some]), ids.places(previous.relation_object[some])
            kinds = [types[p] for p in previous.predicates(some).tolist()]
            yield self._batch("relations", ids, zip(*ends, kinds, sids[some].tolist(), strict=True))
        for some in _pieces(relations[owners[relations]]):
            yield self._batch("statements", None, ((sid,) for sid in sids[some].tolist()))
        for some in _pieces(attributes):
            ids, numbers = Ids(previous), some + np.int32(previous.relations)
            kinds = [types[p] for p in previous.predicates(numbers).tolist()]
            subjects = ids.places(previous.attribute_subject[some])
            yield self._batch("attributes", ids, zip(subjects, kinds, sids[numbers].tolist(), strict=True))
        for prefix, edge in (("mem", "MEMBER_OF"), ("sub", "SUBCLASS_OF")):
            mapped, own = mapped_pairs(previous, prefix, snapshot)[0], Pairs(previous, prefix)
            for some in _pieces(np.flatnonzero(~np.isin(mapped, Pairs(snapshot, prefix).keys))):
                ids = Ids(previous)
                below, above = (ids.places(numbers) for numbers in np.divmod(own.keys[some], previous.entities))
                yield self._batch("members", ids, ((a, b, edge) for a, b in zip(below, above, strict=True)), edge)
        idents = previous.texts.take(previous.entity_id)
        keys = [index_key(ident) for ident in idents if snapshot.identified(ident) < 0]
        kept = {snapshot.predicate_name(i) for i in range(snapshot.predicate_count)}
        names = (previous.predicate_name(i) for i in range(previous.predicate_count))
        predicates = [predicate_key(name) for name in names if name not in kept]
        left = {snapshot.source_of(i).name for i in range(len(snapshot.arrays.get("src.name")))}
        listed = (previous.source_of(i).name for i in range(len(previous.arrays.get("src.name"))))
        sources = [name for name in listed if name not in left]
        for kind, found in (("entities", keys), ("predicates", predicates), ("sources", sources)):
            for at in range(0, len(found), BATCH):
                yield self._batch(kind, None, ((key,) for key in found[at : at + BATCH]))

    def _batch(self, kind: str, ids: Ids | None, rows: Iterable[Iterable[Any]], more: str = "") -> Batch:
        # The name has the rows in it: what is left to mark differs where a load goes on.
        listed = [list(row) for row in rows]
        texts = [] if ids is None else ids.texts()
        digest = blake2b(json.dumps([texts, listed]).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
        return Batch(f"gone {kind}", f"gone {kind} {more} {digest}", texts, listed)


def _pieces(numbers: NDArray[Any]) -> Iterator[NDArray[Any]]:
    for at in range(0, len(numbers), BATCH):
        yield numbers[at : at + BATCH]
