"""The total order of solutions: their distance, then the ids of their nodes by first mention.

Solutions are rows: `totals` and one column of node numbers for each node of the pattern. Since all rows differ, and each edge
takes the same statements for the same nodes, the order is fully determined.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.bounds import changed
from condgraph.patterns.graph import Costs, Numbers

#: Up to this many rows are simply sorted; from more, the first k are selected first.
_FEW = 512


@dataclass(slots=True)
class Rows:
    """Solutions of (part of) a pattern: `columns` by the number of the pattern's node."""

    totals: Costs
    columns: dict[int, Numbers]

    def __len__(self) -> int:
        return len(self.totals)

    def take(self, at: NDArray[Any]) -> Rows:
        """Return some of the rows."""
        return Rows(self.totals[at], {number: column[at] for number, column in self.columns.items()})

    @classmethod
    def joined(cls, parts: Sequence[Rows]) -> Rows:
        """Return several sets of rows, one after the other."""
        if len(parts) == 1:
            return parts[0]
        columns = {number: np.concatenate([part.columns[number] for part in parts]) for number in parts[0].columns}
        return cls(np.concatenate([part.totals for part in parts]), columns)


def first(rows: Rows, rank: NDArray[Any], k: int) -> Rows:
    """Return the first k rows, in order."""
    columns = [rank.take(rows.columns[number]) for number in sorted(rows.columns)]
    keys: list[NDArray[Any]] = [rows.totals, *columns]
    at = np.arange(len(rows))
    selected: list[NDArray[Any]] = []
    needed = k
    # Select by one key after the other: only rows that tie at the last place go on to the next key.
    for key in keys:
        if len(at) <= max(needed, _FEW):
            break
        values = key[at]
        limit = np.partition(values, needed - 1)[needed - 1]
        less = at[values < limit]
        selected.append(less)
        needed -= len(less)
        at = at[values == limit]
    order = np.concatenate([*selected, at]) if selected else at
    order = order[np.lexsort([key[order] for key in reversed(keys)])]
    return rows.take(order[:k])


def best_of_groups(rows: Rows, by: Sequence[int], rank: NDArray[Any], n: int = 1) -> Rows:
    """Return the first n rows of each group of rows with the same nodes `by`; groups are in order of their numbers."""
    if len(rows) < 2:
        return rows
    group = groups_of(rows, by)
    if n == 1:
        return rows.take(_least(group, [rows.totals, *(rank.take(rows.columns[number]) for number in sorted(rows.columns))]))
    keys = [group, rows.totals, *(rank.take(rows.columns[number]) for number in sorted(rows.columns))]
    order = np.lexsort(keys[::-1])
    return rows.take(order[places_among(group[order]) < n])


def places_among(*keys: NDArray[Any]) -> NDArray[np.int64]:
    """Return the place of each row among the earlier ones with the same keys."""
    order = np.lexsort(keys[::-1])
    starts = np.flatnonzero(changed(*(key[order] for key in keys)))
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order)) - starts.repeat(np.diff(np.append(starts, len(order))))
    return places


def groups_of(rows: Rows, by: Sequence[int]) -> NDArray[np.int64]:
    """Return one number per row, equal for equal nodes."""
    groups = rows.columns[by[0]].astype(np.int64)
    for number in by[1:]:
        # Renumbered before the next column is added, to avoid overflow.
        groups = np.unique(groups, return_inverse=True)[1].astype(np.int64) << 32 | rows.columns[number]
    return groups


def _least(group: NDArray[np.int64], keys: Sequence[NDArray[Any]]) -> NDArray[np.int64]:
    """Return the least row of each group by the keys; rows that are not least by one key are dropped before the next."""
    order = np.argsort(group, kind="stable")
    ordered = group[order]
    for key in keys:
        starts = np.flatnonzero(changed(ordered))
        if len(starts) == len(order):
            break
        values = key[order]
        least = np.minimum.reduceat(values, starts)
        keep = values == least.repeat(np.diff(np.append(starts, len(order))))
        order, ordered = order[keep], ordered[keep]
    return order
