"""The known edges of a graph by number, with look-ups by head or tail and relation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.bounds import cached
from condgraph.engine.errors import LinkModelError, nearest

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot

Ints = NDArray[np.int64]
#: The end of the range of edge numbers, (relation * entities + head) * entities + tail.
_END = 2**62


@dataclass(frozen=True, eq=False)
class Edges:
    """Distinct edges between numbered entities: `triples` has shape (n, 3) with head, relation, tail."""

    entities: Sequence[str]
    relations: Sequence[str]
    triples: Ints

    @classmethod
    def of(cls, triples: Iterable[tuple[str, str, str]]) -> Edges:
        """Return the edges of (head, relation, tail) texts, numbered in the order of code points."""
        edge_texts = list(triples)
        entities = sorted({item for head, _, tail in edge_texts for item in (head, tail)})
        relations = sorted({relation for _, relation, _ in edge_texts})
        return cls(entities, relations, np.empty((0, 3), np.int64)).numbered(edge_texts)

    @classmethod
    def of_snapshot(cls, snapshot: Snapshot) -> Edges:
        """Return the relations of a graph. Entities keep the numbers of the snapshot and are named by id; relations are
        the predicates with at least one edge, in the order of the snapshot.
        """
        offsets = np.asarray(snapshot.relation_offsets, np.int64)
        counts = np.diff(offsets)
        used = np.flatnonzero(counts)
        relation_of_edge = np.arange(len(used), dtype=np.int64).repeat(counts[used])
        triples = np.stack([snapshot.relation_subject, relation_of_edge, snapshot.relation_object], axis=1).astype(np.int64)
        entities = snapshot.texts.take(snapshot.entity_id)
        return cls(entities, [snapshot.predicate_name(int(predicate)) for predicate in used], triples)

    def numbered(self, triples: Iterable[tuple[str, str, str]]) -> Edges:
        """Return other edges with the same entities and relations. Raises `LinkModelError` for an unknown entity or
        relation, with the number of edges that have one.
        """
        entities, relations = self.entity_numbers.get, self.relation_numbers.get
        texts = list(triples)
        rows = np.array([(entities(h, -1), relations(r, -1), entities(t, -1)) for h, r, t in texts], np.int64).reshape(-1, 3)
        unknown = np.flatnonzero((rows < 0).any(axis=1))
        if len(unknown):
            head, relation, tail = texts[unknown[0]]
            # Looking up the names of the first unknown edge raises the error for the unknown one.
            try:
                self._entity(head), self._relation(relation), self._entity(tail)
            except LinkModelError as error:
                if len(texts) > 1:
                    error.hint = f"{len(unknown):,} of these {len(texts):,} edges have such a name; leave them out"
                raise
        return self.with_triples(rows)

    def with_triples(self, triples: Ints) -> Edges:
        """Return other edges in the same numbers, without duplicates."""
        return Edges(self.entities, self.relations, np.unique(triples, axis=0) if len(triples) else triples.reshape(-1, 3))

    def _entity(self, text: str) -> int:
        number = self.entity_numbers.get(text)
        if number is None:
            raise LinkModelError(f"there is no entity {text!r} among the edges", candidates=nearest(text, self.entities))
        return number

    def _relation(self, text: str) -> int:
        number = self.relation_numbers.get(text)
        if number is None:
            raise LinkModelError(f"there is no relation {text!r} among the edges", candidates=nearest(text, self.relations))
        return number

    @cached
    def entity_numbers(self) -> dict[str, int]:
        return {text: number for number, text in enumerate(self.entities)}

    @cached
    def relation_numbers(self) -> dict[str, int]:
        return {text: number for number, text in enumerate(self.relations)}

    @cached
    def fingerprint(self) -> str:
        """A hash of the edges, their entities and relations."""
        digest = blake2b(digest_size=16)
        for texts in (self.entities, self.relations):
            for text in texts:
                digest.update(text.encode("utf-8", "surrogatepass") + b"\0")
            digest.update(b"\1")
        digest.update(np.ascontiguousarray(self.triples).data.cast("B") if self.triples.size else b"")
        return digest.hexdigest()

    @cached
    def forward(self) -> Ends:
        """The tails of each (head, relation)."""
        return Ends(self.triples, len(self.relations), len(self.entities))

    @cached
    def backward(self) -> Ends:
        """The heads of each (tail, relation)."""
        return Ends(self.triples[:, ::-1], len(self.relations), len(self.entities))

    def ends(self, inverse: bool) -> Ends:
        """Return `backward` for the inverses of relations, else `forward`."""
        return self.backward if inverse else self.forward


class Ends:
    """The nodes at the other end of each (node, relation), ascending."""

    def __init__(self, triples: Ints, relations: int, entities: int) -> None:
        if relations * max(entities, 1) ** 2 >= _END:
            raise LinkModelError(f"{entities} entities and {relations} relations are more than edges can be numbered for")
        key = triples[:, 1] * entities + triples[:, 0]
        order = np.unique(key * entities + triples[:, 2])
        #: node + entities * relation of each group, ascending and distinct.
        self.keys, begin = np.unique(order // max(entities, 1), return_index=True)
        self.offsets = np.append(begin, len(order)).astype(np.int64)
        self.items: Ints = order % max(entities, 1)
        self._entities = entities

    def of(self, nodes: Ints, relation: int) -> tuple[Ints, Ints]:
        """Return the other ends of each node by a relation: offsets (n + 1), and the ends."""
        from condgraph.engine.snapshot.snapshot import ranges

        keys = nodes + relation * self._entities
        at = np.searchsorted(self.keys, keys)
        present = self.keys.take(at, mode="clip") == keys if len(self.keys) else np.zeros(len(keys), bool)
        begin = np.where(present, self.offsets.take(at, mode="clip"), 0)
        end = np.where(present, self.offsets.take(at + 1, mode="clip"), 0)
        return np.append(0, np.cumsum(end - begin)), self.items.take(ranges(begin, end))
