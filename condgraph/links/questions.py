"""What training asks of a graph: each of its (h, r) once, forward and inverse, with all its tails; in
batches of random order.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

import numpy as np

from condgraph.engine.bounds import cached
from condgraph.links.edges import Edges, Ints
from condgraph.links.step import Batch, sampled

#: How many relations a batch is of, about, where rivals are sampled. With one, vectors of relations
#: move seldom; with many, they lead almost everywhere.
RELATIONS: Final = 5


class Questions:
    """The questions of a graph, forward and inverse, with their tails."""

    def __init__(self, edges: Edges) -> None:
        n, m = len(edges.entities), len(edges.relations)
        both = (edges.forward, edges.backward)
        self.keys = np.concatenate([both[0].keys, both[1].keys + n * m])
        self.items = np.concatenate([one.items for one in both])
        begin = [np.asarray(one.offsets[:-1]) for one in both]
        self.begin = np.concatenate([begin[0], begin[1] + len(both[0].items)])
        self.end = np.append(self.begin[1:], len(self.items))
        self._n, self._relations = n, 2 * m

    @cached
    def _near(self) -> list[Ints]:
        """What each relation leads to, inverses after them, ascending."""
        begin = np.searchsorted(self.keys, np.arange(self._relations + 1) * self._n)
        edge = np.append(self.begin, len(self.items))[begin]
        return [np.unique(self.items[low:high]) for low, high in pairwise(edge.tolist())]

    def batches(self, rng: np.random.Generator, size: int, negatives: int | None, entities: int) -> Iterator[Batch]:
        """All questions once, in random order; where rivals are sampled, a batch is of few relations,
        so that most of what these lead to can be rivals.
        """
        from condgraph.engine.snapshot.snapshot import ranges

        for part in self._parts(rng, size, negatives is not None):
            relations, heads = np.divmod(self.keys[part], self._n)
            begin, end = self.begin[part], self.end[part]
            row: Ints = np.arange(len(part)).repeat(end - begin)
            tails = self.items.take(ranges(begin, end))
            sample, stands_for = None, None
            if negatives is not None and negatives + len(tails) < entities:
                near = [self._near[one] for one in np.unique(relations).tolist()]
                merged = near[0] if len(near) == 1 else np.unique(np.concatenate(near))
                sample, stands_for = sampled(rng, entities, tails, merged, negatives)
            yield Batch(heads, relations, row, tails, sample, stands_for)

    def _parts(self, rng: np.random.Generator, size: int, by_relation: bool) -> list[Ints]:
        order = rng.permutation(len(self.keys))
        if by_relation:
            shuffled = rng.permutation(self._relations)[self.keys[order] // self._n]
            order = order[np.argsort(shuffled, kind="stable")]
            runs = _cut(order, max(1, size // RELATIONS))
            order = np.concatenate([runs[one] for one in rng.permutation(len(runs)).tolist()])
        return _cut(order, size)


def _cut(order: Ints, size: int) -> list[Ints]:
    return [order[start : start + size] for start in range(0, len(order), size)]
