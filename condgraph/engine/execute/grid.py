"""Tables as operators give them: cells under columns, with the rows of the graph behind each.

A cell is a value with its text; None where there is no value. What a cell lists (`values`, `top`)
is a tuple of values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Final, NamedTuple

from condgraph.engine.execute.bags import order_key, shown
from condgraph.engine.execute.left_out import most_frequent
from condgraph.engine.facts import Entity
from condgraph.engine.operands import exact
from condgraph.engine.pieces import PIECE, watched
from condgraph.engine.values import NO_UNIT, Kind, Quantity, Time

#: What stands between the cells of a row, and between the values of a cell, in a text.
BETWEEN: Final = " | "
LISTED: Final = "; "


class Cell(NamedTuple):
    """A value and how a user sees it."""

    value: Any
    text: str


Row = tuple[Cell | None, ...]


class Grid:
    """A table while a plan is run. `shown` is how many of its columns an answer has; `members` are the
    places of the rows behind each of its own, `tied` says which rows are equal to the one before in
    the order asked for.
    """

    __slots__ = ("columns", "members", "rows", "shown", "tied")

    def __init__(
        self,
        columns: tuple[str, ...],
        shown: int,
        rows: list[Row],
        members: list[Sequence[int]],
        tied: list[bool] | None = None,
    ) -> None:
        self.columns, self.shown, self.rows, self.members = columns, shown, rows, members
        self.tied = [False] * len(rows) if tied is None else tied

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, places: Sequence[int], tied: list[bool] | None = None) -> Grid:
        """Some of the rows, in this order."""
        rows = [self.rows[place] for place in watched(places)]
        return Grid(self.columns, self.shown, rows, [self.members[place] for place in places], tied)

    def column(self, place: int) -> list[Cell | None]:
        """All cells of a column."""
        return [row[place] for row in watched(self.rows)]

    def values(self) -> list[tuple[Any, ...]]:
        """The values of each row that are shown."""
        return [tuple([None if cell is None else cell.value for cell in row[: self.shown]]) for row in watched(self.rows)]

    def values_and_texts(self) -> tuple[list[Any], list[str]]:
        """Every row, and its cells as one text."""
        return self.values(), [BETWEEN.join(texts) for texts in watched(self.cell_texts())]

    def cell_texts(self) -> list[tuple[str, ...]]:
        """The texts of each row that are shown; "" where there is no value."""
        return [tuple(["" if cell is None else cell.text for cell in row[: self.shown]]) for row in watched(self.rows)]


def grid_size(grid: Grid) -> tuple[int, tuple[str, ...]]:
    """How many rows a table has, and the first of them as texts."""
    return len(grid), tuple(map(BETWEEN.join, grid.take(range(min(3, len(grid)))).cell_texts()))


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
    # Numbers by all their digits.
    return (1, value.unit, exact(value.number)) if isinstance(value, Quantity) else found


def identity(value: Any) -> Any:
    """What tells a value from others: entities by their ids."""
    return ("id", value.id) if isinstance(value, Entity) else value


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
    return number if isinstance(number, int) else Fraction(exact(number))


def text_cell(value: Any) -> Cell:
    """A value with its own text."""
    return Cell(value, shown(value))
