"""Comparison with the values of a bag: the result of an earlier step in the place of a literal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from condgraph.engine.algebra import Compare, Operator
from condgraph.engine.bounds import check
from condgraph.engine.execute.bags import Bag
from condgraph.engine.execute.same_cells import by_name
from condgraph.engine.execute.sets import Mask
from condgraph.engine.facts import Entity
from condgraph.engine.operands import year_of
from condgraph.engine.pieces import watched
from condgraph.engine.snapshot.ordered import Cells
from condgraph.engine.values import NO_UNIT, Kind, Precision, Quantity, Time, Unknown

if TYPE_CHECKING:
    from collections.abc import Callable

    from condgraph.engine.execute.state import State

#: More values than this are compared with only where that is what a program says, which no question
#: needs.
_MANY = 10_000


def versus(run: State, operator: Operator, cells: Cells, bag: Bag, holds: Callable[..., Any]) -> Mask:
    """For each cell, whether it compares so with at least one value; numbers without a unit compare
    with every unit. `holds` decides a single comparison.
    """
    found = np.zeros(len(cells), bool)
    values: list[Any] = list(dict.fromkeys(watched(bag.values())))
    if len(values) > _MANY:
        run.warn(f"a comparison with {len(values)} values looks at the first {_MANY}")
        values = values[:_MANY]
    cells = by_name(run, cells)
    for value in values:
        check()
        for reading in readings_of(value):
            found |= _holds(run, operator, reading, cells, holds)
    return found


def readings_of(value: Any) -> list[str | Quantity | Time]:
    """What a value is compared as: a year is a number as well, and a number that can be a year a
    year.
    """
    if isinstance(value, Entity):
        return [value.name]
    if isinstance(value, (bool, Unknown)):
        return []
    if isinstance(value, (int, float)):
        value = Quantity(value)
    if isinstance(value, Quantity):
        year = value.number
        if value.unit == NO_UNIT and isinstance(year, int) and 1000 <= year <= 2999:
            return [value, Time.year(year)]
        return [value]
    if isinstance(value, Time) and value.precision is Precision.YEAR:
        return [value, Quantity(year_of(value))]
    return [value]


def _holds(run: State, operator: Operator, value: str | Quantity | Time, cells: Cells, holds: Callable[..., Any]) -> Mask:
    if isinstance(value, Quantity) and value.unit == NO_UNIT:
        units = np.unique(cells["unit"][cells["kind"] == Kind.QUANTITY])
        masks = [
            holds(run, Compare(operator, Quantity(value.number, run.scope.text(u) if u != -1 else NO_UNIT)), cells)
            for u in units.tolist()
        ]
        return np.logical_or.reduce(masks) if masks else np.zeros(len(cells), bool)
    found: Mask = holds(run, Compare(operator, value), cells)
    return found
