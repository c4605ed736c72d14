"""Tables as operators return them: cells under columns, with the rows of the graph behind each row.

A cell is a value with its text, or None. A cell that lists values (`values`, `top`) has a tuple as its value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import inf, isfinite, isnan
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.bounds import CHUNK, different, in_order, watched
from condgraph.engine.execute.left_out import most_frequent
from condgraph.engine.execute.series import Cell, ListSeries, Places, Series
from condgraph.engine.execute.sets import order_key
from condgraph.engine.facts import shown
from condgraph.engine.values import NO_UNIT, Kind, Quantity, Time, exact

#: Separators of the cells of a row, and of the values of a cell, in a text.
SEPARATOR: Final = " | "
LISTED: Final = "; "


class Column:
    """The cells of a column: positions in a series, -1 where there is no value."""

    __slots__ = ("at", "series")

    def __init__(self, series: Series, at: Places) -> None:
        self.series, self.at = series, at

    @classmethod
    def of(cls, cells: Sequence[Cell | None]) -> Column:
        """Return a column of decoded cells."""
        positions = np.fromiter((-1 if cell is None else position for position, cell in enumerate(cells)), np.int64, len(cells))
        return cls(ListSeries(cells), positions)

    def __len__(self) -> int:
        return len(self.at)

    @property
    def there(self) -> NDArray[np.bool_]:
        """A mask of the cells that have a value."""
        return self.at >= 0

    def take(self, places: Places) -> Column:
        """Return some of the cells, in this order."""
        return Column(self.series, self.at.take(places))

    def numbers(self) -> tuple[NDArray[np.float64], str] | None:
        """Return the values as floats (0 where there is none) and their unit; None if they are not numbers of one
        unit, or already decoded.
        """
        has_value = self.there
        decimals = None if isinstance(self.series, ListSeries) else self.series.decimals(self.at[has_value])
        if decimals is None:
            return None
        numbers = np.zeros(len(has_value))
        numbers[has_value] = decimals.integers / 10.0**decimals.digits
        return numbers, decimals.unit

    def cells(self) -> list[Cell | None]:
        has_value = self.there
        if has_value.all():
            return list(self.series.cells(self.at))
        known = iter(self.series.cells(self.at[has_value]))
        return [next(known) if is_known else None for is_known in watched(has_value.tolist())]


class Grid:
    """A table during execution. `shown` is the number of its columns that an answer has; `members` are the positions
    of the rows of the graph behind each row, `tied` marks rows that are equal to the previous one in the requested
    order.
    """

    __slots__ = ("_rows", "columns", "members", "names", "shown", "tied")

    def __init__(
        self, names: tuple[str, ...], shown: int, columns: Sequence[Column], members: Members, tied: NDArray[np.bool_] | None = None
    ) -> None:
        self.names, self.shown, self.columns, self.members = names, shown, columns, members
        self.tied = np.zeros(len(members), bool) if tied is None else tied
        self._rows: tuple[list[tuple[Any, ...]], list[tuple[str, ...]]] | None = None

    def __len__(self) -> int:
        return len(self.members)

    def take(self, places: Places, tied: NDArray[np.bool_] | None = None) -> Grid:
        """Return some of the rows, in this order."""
        columns = [column.take(places) for column in self.columns]
        return Grid(self.names, self.shown, columns, self.members.take(places), tied)

    def _decoded(self) -> tuple[list[tuple[Any, ...]], list[tuple[str, ...]]]:
        """Return the shown values and texts of each row."""
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
        """Return the shown values of each row."""
        return self._decoded()[0]

    def values_and_texts(self) -> tuple[list[Any], list[str]]:
        """Return the rows, and each row's cells as one text."""
        return self.values(), list(map(SEPARATOR.join, watched(self.cell_texts())))

    def cell_texts(self) -> list[tuple[str, ...]]:
        """Return the shown texts of each row; "" where there is no value."""
        return self._decoded()[1]


class Members:
    """The rows of the graph behind each row of a table, computed on first access, because most answers are read
    without their evidence.
    """

    __slots__ = ("_of", "_positions", "_runs")

    def __init__(self, group: Places, rows: Places, size: int) -> None:
        """`rows` may repeat; `group` is the group (below `size`) of each."""
        self._positions = np.arange(size)
        self._of: tuple[Places, Places] = group, rows
        self._runs: tuple[Places, Places, Places] | None = None

    @classmethod
    def unknown(cls, count: int) -> Members:
        """Return the members of `count` rows of which nothing is known."""
        none = np.zeros(0, np.int64)
        return cls(none, none, count)

    def __len__(self) -> int:
        return len(self._positions)

    def __getitem__(self, row: int) -> Places:
        if self._runs is None:
            group, rows = self._of
            order = in_order((group,))
            ends = np.bincount(group, minlength=int(self._positions.max(initial=-1)) + 1).cumsum()
            self._runs = np.concatenate([[0], ends[:-1]]), ends, rows.take(order)
        low, high, rows = self._runs
        place = self._positions[row]
        return different(rows[low[place] : high[place]])

    def take(self, places: Places) -> Members:
        """Return the members of some rows."""
        taken = Members.unknown(0)
        taken._positions, taken._of, taken._runs = self._positions.take(places), self._of, self._runs
        return taken


def grid_size(grid: Grid) -> tuple[int, tuple[str, ...]]:
    """Return the number of rows, and the first three as texts."""
    return len(grid), tuple(map(SEPARATOR.join, grid.take(np.arange(min(3, len(grid)))).cell_texts()))


def listed(cells: Sequence[Cell]) -> Cell | None:
    """Join several values in one cell; one value is itself, none is None."""
    if len(cells) < 2:
        return cells[0] if cells else None
    return Cell(tuple(cell.value for cell in cells), LISTED.join(cell.text for cell in cells))


def order_of(cell: Cell | None) -> tuple[Any, ...]:
    """Return the sort key of a cell by its value, missing values last; equal values have equal keys, however they are
    written.
    """
    if cell is None:
        return (9,)
    if isinstance(cell.value, tuple):
        return (8, *[_key(value) for value in cell.value])
    return _key(cell.value)


def fixed_order(cell: Cell | None) -> tuple[Any, ...]:
    """Return the same key, with ties broken by the text."""
    return order_of(cell) if cell is None or isinstance(cell.value, tuple) else (*order_of(cell), cell.text)


def _key(value: Any) -> tuple[Any, ...]:
    key = order_key(value)
    return (1, value.unit, _all_digits(value.number)) if isinstance(value, Quantity) else key


def _all_digits(number: Any) -> Any:
    """Return a number that compares without loss; infinities stay, NaN counts as the largest."""
    if isinstance(number, float) and not isfinite(number):
        return inf if isnan(number) else number
    return exact(number)


class Competing(NamedTuple):
    """The most frequent type and unit of a column, whose values compete; `others` is the number of other values.
    `kind` is None if no value is a number or a time.
    """

    kind: Kind | None
    unit: str
    others: int


def competing(values: Sequence[Any]) -> Competing:
    """Return the type and unit that compete among values; counts are numbers without a unit."""
    checked = values if len(values) <= CHUNK else watched(values)
    groups = Counter(group for value in checked if (group := group_of(value)) is not None)
    if not groups:
        return Competing(None, NO_UNIT, 0)
    kind, unit = most_frequent(groups)
    return Competing(kind, unit, len(values) - groups[kind, unit])


def group_of(value: Any) -> tuple[Kind, str] | None:
    """Return the type and unit in which a value competes; None for texts."""
    if isinstance(value, Quantity):
        return Kind.QUANTITY, value.unit
    if isinstance(value, Time):
        return Kind.TIME, ""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return Kind.QUANTITY, NO_UNIT
    return None


def size_of(value: Any, *, largest: bool) -> Any:
    """Return the exact sort key of a number or time: for times, the end for the largest and the start for the
    smallest.
    """
    if isinstance(value, Time):
        return value.end if largest else value.start
    number = value.number if isinstance(value, Quantity) else value
    # Integers compare exactly with each other and with fractions.
    return number if isinstance(number, int) else _all_digits(number)


def text_cell(value: Any) -> Cell:
    """Return a value with its own text."""
    return Cell(value, shown(value))
