"""The rows of the neural adjacency matrix of each relation (M of QTO, section 3.2): what a relation
leads to from a node, with a score each.

A score is 1 where the graph has the edge and less otherwise. `Adjacency` has the edges of the graph
alone, so that answers are the exact symbolic ones; `condgraph.logic.predicted` adds those that a
model of links predicts. Only nodes that have a row take room.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.bounds import check
from condgraph.engine.pieces import changed, different
from condgraph.engine.snapshot.snapshot import Snapshot, ranges
from condgraph.logic.vector import Ids

#: A relation, and whether it is followed from object to subject.
Key = tuple[str, bool]


@dataclass(frozen=True, slots=True)
class Rows:
    """Some rows of a relation: that of `heads[i]` is `ids` and `values` in `[offsets[i], offsets[i +
    1])`.

    `heads` are sorted, and so are the ids of a row; a row may be empty. `values` are float32 or
    float64.
    """

    heads: Ids
    offsets: Ids
    ids: NDArray[Any]
    values: NDArray[Any]

    def counts(self) -> Ids:
        """The length of each row."""
        return np.diff(self.offsets)

    def places(self, heads: Ids) -> tuple[Ids, Ids]:
        """Which of some heads (sorted) have a row here: their places among these, and the rows."""
        if not len(self.heads):
            return _NO_IDS, _NO_IDS
        at = np.minimum(np.searchsorted(self.heads, heads), len(self.heads) - 1)
        known = np.flatnonzero(self.heads[at] == heads)
        return known, at[known]

    def take(self, heads: Ids) -> Rows:
        """The rows of these heads (sorted) that are here."""
        known, rows = self.places(heads)
        begin, end = self.offsets[rows], self.offsets[rows + 1]
        entries = ranges(begin, end)
        offsets = np.concatenate([[0], np.cumsum(end - begin)])
        return Rows(heads[known], offsets, self.ids[entries], self.values[entries])


_NO_IDS: Final = np.empty(0, np.int64)
NO_ROWS: Final = Rows(_NO_IDS, np.zeros(1, np.int64), _NO_IDS, np.empty(0))


class Matrix(Protocol):
    """The rows of all relations of one graph; nodes are numbers of its snapshot, 0 to `size`."""

    @property
    def size(self) -> int:
        """How many nodes there are."""
        ...

    @property
    def observed_only(self) -> bool:
        """Whether all that it has is in the graph."""
        ...

    def rows(self, key: Key, heads: Ids, least: float = 0.0) -> Rows:
        """The rows of some heads (sorted); entries below `least` may be missing, as may empty rows."""
        ...

    def whole(self, key: Key) -> Rows | None:
        """All rows of a relation, where they are at hand; None where they are not."""
        ...

    def every_row(self, key: Key, least: float = 0.0) -> Rows:
        """All rows of a relation, whatever it takes."""
        ...


class Adjacency:
    """The edges of a snapshot: a score is 1 or 0. A relation is put in order when it is first asked
    for.
    """

    observed_only: Final = True

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot, self.size = snapshot, snapshot.entities
        self._rows: dict[Key, Rows] = {}

    def whole(self, key: Key) -> Rows:
        """All rows of a relation."""
        found = self._rows.get(key)
        if found is None:
            found = self._rows[key] = self._made(key)
        return found

    def every_row(self, key: Key, least: float = 0.0) -> Rows:
        """All rows of a relation."""
        return self.whole(key)

    def rows(self, key: Key, heads: Ids, least: float = 0.0) -> Rows:
        """The rows of some heads."""
        return self.whole(key).take(heads)

    def has(self, key: Key, head: int, tail: int) -> bool:
        """Whether the graph has an edge."""
        rows = self.whole(key)
        known, places = rows.places(np.array([head]))
        if not len(known):
            return False
        row = rows.ids[rows.offsets[places[0]] : rows.offsets[places[0] + 1]]
        at = int(np.searchsorted(row, tail))
        return at < len(row) and int(row[at]) == tail

    def statements(self, key: Key, head: int, tail: int) -> list[int]:
        """The statements that say an edge, by number: more than one where they differ in qualifiers."""
        subject, object_ = (tail, head) if key[1] else (head, tail)
        found: list[int] = []
        for low, high in self.snapshot.runs((key[0],), True, False):
            out = self.snapshot.outgoing(subject, low, high)
            found.extend(out[self.snapshot.relation_object[out] == object_].tolist())
        return found

    def _made(self, key: Key) -> Rows:
        runs = self.snapshot.runs((key[0],), True, False)
        if not runs:
            return NO_ROWS
        subjects = np.concatenate([self.snapshot.relation_subject[low:high] for low, high in runs]).astype(np.int64)
        objects = np.concatenate([self.snapshot.relation_object[low:high] for low, high in runs]).astype(np.int64)
        heads, tails = (objects, subjects) if key[1] else (subjects, objects)
        # Statements that differ in qualifiers alone are one edge.
        pairs = different(heads * self.size + tails)
        check()
        heads, tails = pairs // self.size, pairs % self.size
        first = np.flatnonzero(changed(heads))
        return Rows(
            heads[first], np.append(first, len(heads)).astype(np.int64), tails.astype(np.int32), np.ones(len(tails), np.float32)
        )


_KEPT: Final = "logic.adjacency"


def adjacency(snapshot: Snapshot) -> Adjacency:
    """The adjacency of a snapshot, kept as long as that is open."""
    found = snapshot.schema.kept.get(_KEPT)
    if found is None:
        found = snapshot.schema.kept[_KEPT] = Adjacency(snapshot)
    assert isinstance(found, Adjacency)
    return found
