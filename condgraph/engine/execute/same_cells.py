"""Equality of values by their cells: the distinct ones of a column, and those that another column has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.bounds import changed, in_order
from condgraph.engine.execute.sets import Bag, Mask
from condgraph.engine.snapshot.ordered import Cells
from condgraph.engine.values import Kind

if TYPE_CHECKING:
    from condgraph.engine.execute.sets import Scoped

_IDENTITY: Final = ("ref", "a", "kind", "b", "unit", "precision")
#: What can tell values of one type apart; parts that a type does not fill are all the same.
_TELLING: Final[dict[int, tuple[str, ...]]] = {
    Kind.TEXT: ("ref",),
    Kind.ENTITY: ("ref",),
    Kind.QUANTITY: ("a", "unit", "ref"),
    Kind.TIME: ("a", "b", "precision"),
    Kind.UNKNOWN: _IDENTITY,
}


def distinct_positions(cells: Cells, *, ordered: bool = False) -> NDArray[np.int64]:
    """The first position of each distinct value, ascending; `ordered` says that equal values stand
    together already.
    """
    n = len(cells)
    if n < 2:
        return np.arange(n)
    kinds = cells["kind"]
    parts = _TELLING[int(kinds[0])] if np.count_nonzero(kinds == kinds[0]) == n else _IDENTITY
    if ordered:
        return changed(*(cells[name] for name in parts)).nonzero()[0]
    varying = [mark for mark in (cells[name] for name in parts) if np.count_nonzero(mark != mark[0])]
    if not varying:
        return np.zeros(1, np.int64)
    # Equal ones are ascending, so the first of them is the first position.
    order = in_order(varying)
    return np.sort(order[changed(*(mark.take(order) for mark in varying))])


def equal_cells(run: Scoped, cells: Cells, other: Bag) -> Mask:
    """For each cell, whether it is one of the values of a bag; an entity and a text meet by name."""
    left, right = by_name(run, cells), by_name(run, other.cells())
    size = len(left)
    found: Mask = np.zeros(size, bool)
    if not size or not len(right):
        return found
    marks = [np.concatenate([left[name], right[name]]) for name in _IDENTITY[:5]]
    order = in_order(marks)
    group, ours = changed(*(mark.take(order) for mark in marks)).cumsum() - 1, order < size
    there = np.zeros(int(group[-1]) + 1, bool)
    there[group[~ours]] = True
    found[order[ours]] = there[group[ours]]
    return found


def by_name(run: Scoped, cells: Cells) -> Cells:
    """Entities turned into the texts of their names."""
    entity = cells["kind"] == Kind.ENTITY
    if not entity.any():
        return cells
    refs = cells["ref"].copy()
    refs[entity] = run.scope.snapshot.entity_name[refs[entity]]
    return Cells(len(cells), cells.__getitem__, {"kind": np.where(entity, np.int8(Kind.TEXT), cells["kind"]), "ref": refs})
