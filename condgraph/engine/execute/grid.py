"""Tables as operators give them: cells under columns, with the rows of the graph behind each.

A cell is a value with its text; None where there is no value. What a cell lists (`values`, `top`)
is a tuple of values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import inf, isfinite, isnan
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.bounds import PIECE, different, in_order, watched
from condgraph.engine.execute.left_out import most_frequent
from condgraph.engine.execute.series import Cell, ListSeries, Places, Series
from condgraph.engine.execute.sets import order_key
from condgraph.engine.facts import shown
from condgraph.engine.operands import exact
from condgraph.engine.values import NO_UNIT, Kind, Quantity, Time

#: What stands between the cells of a row, and between the values of a cell, in a text.
BETWEEN: Final = " | "
LISTED: Final = "; "


class Column:
    """The cells of a column of a table: places in a series, -1 where there is no value."""

    __slots__ = ("at", "series")

    def __init__(self, series: Series, at: Places) -> None:
        self.series, self.at = series, at

    @classmethod
    def of(cls, cells: Sequence[Cell | None]) -> Column:
        """A column of cells that are decoded already."""
        at = np.fromiter((-1 if cell is None else place for place, cell in enumerate(cells)), np.int64, len(cells))
        return cls(ListSeries(cells), at)

    def __len__(self) -> int:
        return len(self.at)

    @property
    def there(self) -> NDArray[np.bool_]:
        """Which cells have a value."""
        return self.at >= 0

    def take(self, places: Places) -> Column:
        """Some of the cells, in this order."""
        return Column(self.series, self.at.take(places))

    def numbers(self) -> tuple[NDArray[np.float64], str] | None:
        """Floats, 0 where there is no value, and their unit; None where the values are not numbers of one unit, or
        are decoded already.
        """
        there = self.there
        found = None if isinstance(self.series, ListSeries) else self.series.decimals(self.at[there])
        if found is None:
            return None
        numbers = np.zeros(len(there))
        numbers[there] = found.integers / 10.0**found.digits
        return numbers, found.unit

    def cells(self) -> list[Cell | None]:
        """All cells."""
        there = self.there
        if there.all():
            return list(self.series.cells(self.at))
        found = iter(self.series.cells(self.at[there]))
        return [next(found) if one else None for one in watched(there.tolist())]


class Grid:
    """A table while a plan is run. `shown` is how many of its columns an answer has; `members` are the
    places of the rows behind each of its own, `tied` says which rows are equal to the one before in
    the order asked for.
    """

    __slots__ = ("_rows", "columns", "members", "names", "shown", "tied")

    def __init__(
        self,
        names: tuple[str, ...],
        shown: int,
        columns: Sequence[Column],
        members: Members,
        tied: NDArray[np.bool_] | None = None,
    ) -> None:
        self.names, self.shown, self.columns, self.members = names, shown, columns, members
        self.tied = np.zeros(len(members), bool) if tied is None else tied
        self._rows: tuple[list[tuple[Any, ...]], list[tuple[str, ...]]] | None = None

    def __len__(self) -> int:
        return len(self.members)

    def take(self, places: Places, tied: NDArray[np.bool_] | None = None) -> Grid:
        """Some of the rows, in this order."""
        columns = [column.take(places) for column in self.columns]
        return Grid(self.names, self.shown, columns, self.members.take(places), tied)

    def _decoded(self) -> tuple[list[tuple[Any, ...]], list[tuple[str, ...]]]:
        """The values and the texts of each row that are shown."""
        if self._rows is None:
            columns = [column.cells() for column in self.columns[: self.shown]]
            values = [[None if cell is None else cell.value for cell in watched(cells)] for cells in columns]
            texts = [["" if cell is None else cell.text for cell in watched(cells)] for cells in columns]
            if not columns:
                self._rows = [()] * len(self), [()] * len(self)
            else:
                self._rows = list(zip(*values, strict=True)), list(zip(*texts, strict=True))
        return self._rows

    def values(self) -> list[tuple[Any, ...]]:
        """The values of each row that are shown."""
        return self._decoded()[0]

    def values_and_texts(self) -> tuple[list[Any], list[str]]:
        """Every row, and its cells as one text."""
        return self.values(), list(map(BETWEEN.join, watched(self.cell_texts())))

    def cell_texts(self) -> list[tuple[str, ...]]:
        """The texts of each row that are shown; "" where there is no value."""
        return self._decoded()[1]


class Members:
    """The rows of the graph behind each row of a table. They are put together when the first is looked at, since most
    answers are read without their evidence.
    """

    __slots__ = ("_of", "_places", "_runs")

    def __init__(self, group: Places, rows: Places, size: int) -> None:
        """`rows`, some of them repeatedly, each with its group below `size`."""
        self._places = np.arange(size)
        self._of: tuple[Places, Places] = group, rows
        self._runs: tuple[Places, Places, Places] | None = None

    @classmethod
    def unknown(cls, count: int) -> Members:
        """Of so many rows nothing is known."""
        none = np.zeros(0, np.int64)
        return cls(none, none, count)

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, row: int) -> Places:
        if self._runs is None:
            group, rows = self._of
            order = in_order((group,))
            ends = np.bincount(group, minlength=int(self._places.max(initial=-1)) + 1).cumsum()
            self._runs = np.concatenate([[0], ends[:-1]]), ends, rows.take(order)
        low, high, rows = self._runs
        place = self._places[row]
        return different(rows[low[place] : high[place]])

    def take(self, places: Places) -> Members:
        """Those of some rows."""
        taken = Members.unknown(0)
        taken._places, taken._of, taken._runs = self._places.take(places), self._of, self._runs
        return taken


def grid_size(grid: Grid) -> tuple[int, tuple[str, ...]]:
    """How many rows a table has, and the first of them as texts."""
    return len(grid), tuple(map(BETWEEN.join, grid.take(np.arange(min(3, len(grid)))).cell_texts()))


def listed(cells: Sequence[Cell]) -> Cell | None:
    """Several values in one cell: one is itself, none is no value."""
    if len(cells) < 2:
        return cells[0] if cells else None
    return Cell(tuple(cell.value for cell in cells), LISTED.join(cell.text for cell in cells))


def order_of(cell: Cell | None) -> tuple[Any, ...]:
    """The order of cells by their values, what is missing last; equal values are equal, however they
    are written.
    """
    if cell is None:
        return (9,)
    if isinstance(cell.value, tuple):
        return (8, *[_key(value) for value in cell.value])
    return _key(cell.value)


def fixed_order(cell: Cell | None) -> tuple[Any, ...]:
    """The same, equal values by their texts."""
    return order_of(cell) if cell is None or isinstance(cell.value, tuple) else (*order_of(cell), cell.text)


def _key(value: Any) -> tuple[Any, ...]:
    found = order_key(value)
    return (1, value.unit, _all_digits(value.number)) if isinstance(value, Quantity) else found


def _all_digits(number: Any) -> Any:
    """A number as numbers are compared: without loss, infinities as they are, and what is no number as the largest."""
    if isinstance(number, float) and not isfinite(number):
        return inf if isnan(number) else number
    return exact(number)


class Competing(NamedTuple):
    """Which type and unit compete in a column of values: the most frequent one; `others` do not.
    `kind` is None where nothing is a number or a time.
    """

    kind: Kind | None
    unit: str
    others: int


def competing(values: Sequence[Any]) -> Competing:
    """What competes among values; counts are numbers without a unit."""
    some = values if len(values) <= PIECE else watched(values)
    groups = Counter(group for value in some if (group := group_of(value)) is not None)
    if not groups:
        return Competing(None, NO_UNIT, 0)
    kind, unit = most_frequent(groups)
    return Competing(kind, unit, len(values) - groups[kind, unit])


def group_of(value: Any) -> tuple[Kind, str] | None:
    """The type and unit by which a value competes with others; None for what is only a text."""
    if isinstance(value, Quantity):
        return Kind.QUANTITY, value.unit
    if isinstance(value, Time):
        return Kind.TIME, ""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return Kind.QUANTITY, NO_UNIT
    return None


def size_of(value: Any, *, largest: bool) -> Any:
    """What numbers and times are compared by: all their digits, the end of times for the largest and
    the start for the smallest.
    """
    if isinstance(value, Time):
        return value.end if largest else value.start
    number = value.number if isinstance(value, Quantity) else value
    # A float is as quickly compared as it is.
    return number if isinstance(number, int) else _all_digits(number)


def text_cell(value: Any) -> Cell:
    """A value with its own text."""
    return Cell(value, shown(value))
