"""Cells one at a time as Python numbers, and runs of cells in the order of their values.

Attributes are numbered by predicate, type, unit and value, so that every run of equal type and unit is sorted. Qualifiers are
numbered by statement; `qkey.items` lists them by key, type, unit and value, and is sorted in the same way.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from condgraph.engine.snapshot.container import ArrayFile


class Ordered:
    """The cells of a family ("att" or "q"): a memoryview a part (`x` is the part "a" read as floats), and their order.

    A place is where a cell stands in the order: of an attribute its number, of a qualifier its position in `qkey.items`.
    """

    __slots__ = ("_arrays", "_family", "a", "b", "items", "kind", "order", "precision", "ref", "unit", "x")

    def __init__(self, arrays: ArrayFile, family: str, items: str = "") -> None:
        self._arrays, self._family = arrays, family
        view = arrays.view
        self.kind, self.a, self.b = view(f"{family}.kind"), view(f"{family}.a"), view(f"{family}.b")
        self.ref, self.unit, self.precision = view(f"{family}.ref"), view(f"{family}.unit"), view(f"{family}.precision")
        self.x: memoryview = arrays.get(f"{family}.a").view(np.float64).data
        #: The cells in order; None where the numbers of the cells are the order.
        self.items: NDArray[Any] | None = arrays.get(items) if items else None
        self.order: memoryview | None = view(items) if items else None

    def left(self, part: memoryview, value: float, low: int, high: int) -> int:
        """The first place of the sorted run `[low, high)` whose part is not less than the value."""
        if self.order is None:
            return bisect_left(part, value, low, high)
        return bisect_left(self.order, value, low, high, key=part.__getitem__)

    def right(self, part: memoryview, value: float, low: int, high: int) -> int:
        """The first place of the sorted run `[low, high)` whose part is more than the value."""
        if self.order is None:
            return bisect_right(part, value, low, high)
        return bisect_right(self.order, value, low, high, key=part.__getitem__)

    def numbers(self, low: int, high: int) -> NDArray[Any]:
        """The numbers of the cells at the places `[low, high)`."""
        return np.arange(low, high, dtype=np.int32) if self.items is None else self.items[low:high]

    def column(self, part: str, low: int, high: int) -> NDArray[Any]:
        """A part of the cells at the places `[low, high)`."""
        column = self._arrays.get(f"{self._family}.{part}")
        return column[low:high] if self.items is None else column.take(self.items[low:high])
