"""Operators that pick: one value of a bag by its place, values that stand for rows, entities of the
same names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.algebra import Nth, SameName, Shown
from condgraph.engine.execute.bags import Bag, order_key
from condgraph.engine.execute.entities import named_runs
from condgraph.engine.execute.sets import Numbers, distinct
from condgraph.engine.pieces import places_in_order, watched

if TYPE_CHECKING:
    from condgraph.engine.execute.run import Run


def namesakes(run: Run, node: SameName) -> Numbers:
    """All entities that share a name with these; entities are numbered by name, so that each name
    is a run of numbers.
    """
    snapshot = run.snapshot
    found = run.entities(node.of)
    names = distinct(snapshot.entity_name.take(found), len(snapshot.texts))
    return named_runs(snapshot, names)


def nth(run: Run, node: Nth) -> Bag:
    """The value at a place, in the order of rows or by value; equal values count once where the
    order is by value.
    """
    bag = run.values(node.values)
    if not len(bag):
        run.warn("there is no first or last value of nothing")
        return bag
    values = bag.values()
    groups: list[list[int]] = []
    if node.order == "row":
        rows = row_keys(run, bag)
        # Of one row in the fixed order of values.
        order = places_in_order(len(values), lambda i: (rows[i], order_key(values[i])))
        if -len(order) <= node.place < len(order):
            return bag.take(np.array([order[node.place]], np.int64))
        groups = [[]] * len(order)
    else:
        order = places_in_order(len(values), lambda i: order_key(values[i]), reverse=node.order == "descending")
        for i in watched(order):
            if groups and order_key(values[groups[-1][0]]) == order_key(values[i]):
                groups[-1].append(i)
            else:
                groups.append([i])
    if not -len(groups) <= node.place < len(groups):
        run.warn(f"there is no value at place {node.place + 1}: there are {len(groups)}")
        return bag.take(np.empty(0, np.int64))
    return bag.take(np.array(sorted(groups[node.place]), np.int64))


def row_keys(run: Run, bag: Bag) -> list[int]:
    """Where each value's carrier stands in its source: the row of a table's cell, the line of
    another statement.
    """
    snapshot = run.snapshot
    rows: list[NDArray[np.int64]] = []
    for part in bag.parts:
        if part.kind in ("name", "row"):
            of = snapshot.arrays.get("ent.row")
            rows.append(of[part.carriers].astype(np.int64) if len(of) else np.zeros(len(part.ids), np.int64))
        elif part.kind == "given":
            rows.append(part.ids.astype(np.int64))
        else:
            rows.append(snapshot.row[part.carriers].astype(np.int64))
    found: list[int] = np.concatenate(rows).tolist() if rows else []
    return found


def shown(run: Run, node: Shown) -> Bag:
    """The values; the rows stay with the answer."""
    return run.values(node.values)
