"""Values that differ, and values that are like one: what wrong choices are taken from.

A snapshot keeps the values of a predicate by type, unit and size, so that each different one is
where the one before ends, and those near a number stand beside it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.values import NO_UNIT, Kind, Quantity, Time
from condgraph.questions.description import Cell

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot

#: How many predicates are remembered, and how many different values of each.
_KEPT: Final = 256
_MOST: Final = 2_000


class Group(NamedTuple):
    """Statements of an attribute with one type and unit, counted from the first attribute, and the
    starts or sizes that they are in order of.
    """

    low: int
    high: int
    keys: NDArray[Any]


class Alike:
    """Finds values beside others; `cell` is how a value is asked about. What is remembered does not
    grow with the graph.
    """

    def __init__(self, snapshot: Snapshot, cell: Callable[[Any], Cell | None]) -> None:
        self._snapshot, self._cell = snapshot, cell
        self._kept: dict[tuple[str, int], NDArray[np.int64]] = {}

    def values(self, predicate: int, pick: random.Random, most: int) -> list[int]:
        """Statements of an attribute with values that differ, drawn from all of its values."""
        low, high = self._snapshot.attribute_offsets[predicate : predicate + 2]
        found = self._different("att", predicate, np.arange(low, high))
        return [self._snapshot.relations + int(found[at]) for at in pick.sample(range(len(found)), min(most, len(found)))]

    def qualifiers(self, key: int, pick: random.Random, most: int) -> list[Cell]:
        """Values of a qualifier that differ, drawn from all of them."""
        get = self._snapshot.arrays.get
        low, high = get("qkey.offsets")[key : key + 2].tolist()
        found = self._different("q", key, get("qkey.items")[low:high])
        drawn = pick.sample(range(len(found)), min(most, len(found)))
        values = (self._cell(self._snapshot.value("q", int(found[at]))) for at in drawn)
        return [value for value in values if value is not None]

    def _different(self, family: str, predicate: int, cells: NDArray[Any]) -> NDArray[np.int64]:
        """One of the cells, which are in order, for each value."""
        found = self._kept.get((family, predicate))
        if found is None:
            parts = [self._snapshot.arrays.get(f"{family}.{part}")[cells] for part in ("kind", "a", "ref", "unit")]
            new = np.ones(len(cells), bool)
            new[1:] = np.any([part[1:] != part[:-1] for part in parts], axis=0)
            found = cells[new]
            found = found[:: max(1, len(found) // _MOST)].astype(np.int64)
            if len(self._kept) >= _KEPT:
                self._kept.clear()
            self._kept[family, predicate] = found
        return found

    def groups(self, value: Quantity | Time) -> list[Group]:
        """The runs of attributes with values of the type and unit of one."""
        get, time = self._snapshot.arrays.get, isinstance(value, Time)
        unit = -1 if isinstance(value, Time) or value.unit == NO_UNIT else self._snapshot.texts.find(value.unit)
        kinds, units, starts = get("grp.kind"), get("grp.unit"), get("grp.start").tolist()
        keys = get("att.a") if time else get("att.a").view(np.float64)
        wanted = np.flatnonzero((kinds == (Kind.TIME if time else Kind.QUANTITY)) & (units == unit)).tolist()
        return [Group(starts[at], starts[at + 1], keys[starts[at] : starts[at + 1]]) for at in wanted]
