"""Access to cells: as columns, one at a time as Python numbers, and as runs in the order of their values.

Attributes are numbered by predicate, type, unit and value, so that every run of equal type and unit is sorted.
Qualifiers are numbered by statement; `qkey.items` lists them by key, type, unit and value, and is sorted in the same
way.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.bounds import check, watched

if TYPE_CHECKING:
    from condgraph.engine.snapshot.container import ArrayFile


class Ordered:
    """The cells of attributes ("att") or qualifiers ("q"): one memoryview for each part (`x` is the part "a" as
    floats), and their order.

    A place is the position of a cell in the order: the number of an attribute, the position of a qualifier in
    `qkey.items`.
    """

    def __init__(self, arrays: ArrayFile, family: str, items: str = "") -> None:
        self._arrays, self._family = arrays, family
        #: The cells in order; None where the numbers of the cells are the order.
        self.items: NDArray[Any] | None = arrays.get(items) if items else None
        self.order: memoryview | None = arrays.view(items) if items else None

    # Computed on first access; from then on a plain attribute.

    @cached_property
    def kind(self) -> memoryview:
        """The type of each cell."""
        return self._arrays.view(f"{self._family}.kind")

    @cached_property
    def a(self) -> memoryview:
        """The bits of the number, or the start, of each cell."""
        return self._arrays.view(f"{self._family}.a")

    @cached_property
    def b(self) -> memoryview:
        """The end of each cell."""
        return self._arrays.view(f"{self._family}.b")

    @cached_property
    def ref(self) -> memoryview:
        """The text or entity of each cell."""
        return self._arrays.view(f"{self._family}.ref")

    @cached_property
    def unit(self) -> memoryview:
        """The unit of each cell."""
        return self._arrays.view(f"{self._family}.unit")

    @cached_property
    def precision(self) -> memoryview:
        """The precision of each cell."""
        return self._arrays.view(f"{self._family}.precision")

    @cached_property
    def x(self) -> memoryview:
        """The number of each cell, as a float."""
        return self._arrays.get(f"{self._family}.a").view(np.float64).data

    def left(self, part: memoryview, value: float, low: int, high: int) -> int:
        """Return the first place in the sorted run `[low, high)` whose part is not less than the value."""
        if self.order is None:
            return bisect_left(part, value, low, high)
        return bisect_left(self.order, value, low, high, key=part.__getitem__)

    def right(self, part: memoryview, value: float, low: int, high: int) -> int:
        """Return the first place in the sorted run `[low, high)` whose part is greater than the value."""
        if self.order is None:
            return bisect_right(part, value, low, high)
        return bisect_right(self.order, value, low, high, key=part.__getitem__)

    def numbers(self, low: int, high: int) -> NDArray[Any]:
        """Return the numbers of the cells at the places `[low, high)`."""
        return np.arange(low, high, dtype=np.int32) if self.items is None else self.items[low:high]

    def column(self, part: str, low: int, high: int) -> NDArray[Any]:
        """Return a part of the cells at the places `[low, high)`."""
        column = self._arrays.get(f"{self._family}.{part}")
        return column[low:high] if self.items is None else column.take(self.items[low:high])


class Cells:
    """Columns of values, read on access: `cells["kind"]`, "a", "b", "ref", "unit", "precision"."""

    __slots__ = ("_columns", "_length", "_read")

    def __init__(
        self, length: int, read: Callable[[str], NDArray[Any]] | None = None, columns: dict[str, NDArray[Any]] | None = None
    ) -> None:
        self._length, self._read, self._columns = length, read, columns or {}

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, name: str) -> NDArray[Any]:
        result = self._columns.get(name)
        if result is None:
            assert self._read is not None
            check()
            result = self._columns[name] = self._read(name)
        return result

    def numbers(self) -> Any:
        """Return the column "a" as floats."""
        return self["a"].view(np.float64)

    def types(self) -> dict[tuple[int, int], int]:
        """Return the number of cells of each type and unit (both by number)."""
        kinds, units = self["kind"], self["unit"]
        first = int(kinds[0]), int(units[0])
        if (kinds == first[0]).all() and (units == first[1]).all():
            return {first: len(self)}
        return Counter(watched(zip(kinds.tolist(), units.tolist(), strict=True)))


class Cell(Cells):
    """One attribute or qualifier: its parts are Python numbers, ten times faster to compare than arrays of length
    one.
    """

    __slots__ = ("_at", "_of")

    def __init__(self, of: Ordered, at: int) -> None:
        self._of, self._at = of, at

    def __len__(self) -> int:
        return 1

    def __getitem__(self, name: str) -> Any:
        return getattr(self._of, name)[self._at]

    def numbers(self) -> Any:
        """Return the part "a" as a float."""
        return self._of.x[self._at]

    def types(self) -> dict[tuple[int, int], int]:
        return {(self._of.kind[self._at], self._of.unit[self._at]): 1}


def add_types(cells: Ordered, numbers: list[int]) -> dict[tuple[int, int], int]:
    """Count cells by type and unit (both by number), one at a time."""
    result: dict[tuple[int, int], int] = {}
    for number in numbers:
        key = cells.kind[number], cells.unit[number]
        result[key] = result.get(key, 0) + 1
    return result
