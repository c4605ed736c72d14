"""The table of groups that the server summed up (`cypher.compile.groups`), with what is tested,
ordered and cut of it in process.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from condgraph.cypher.compile.plan import PART, Columns, group_of
from condgraph.cypher.records import entity_of
from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Node
from condgraph.engine.algebra.expressions import Way
from condgraph.engine.execute.grid import Cell, Grid, order_of, text_cell
from condgraph.engine.execute.grouped import warn_of_empty, zeros
from condgraph.engine.execute.run import Run
from condgraph.engine.execute.sums import Column
from condgraph.engine.operands import exact
from condgraph.engine.pieces import places_in_order, watched
from condgraph.engine.snapshot.build import Builder
from condgraph.engine.snapshot.layout import lay_out
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.values import Quantity, Time, text_of


def tables_of(plan: Node, columns: Columns, rows: Sequence[list[Any]]) -> Run | None:
    """An execution that has every table of a plan; None where some value was odd. Rows are lists as
    `Columns` says.
    """
    if any(row[0] for row in watched(rows)):
        return None
    group = group_of(plan)
    assert group is not None
    run = Run(Snapshot.of(*lay_out(Builder())))
    run.results[id(group)] = _grid(run, group, columns, rows)
    above: list[Node] = []
    while plan is not group:
        above.append(plan)
        (plan,) = plan.inputs()
    for node in reversed(above):
        run.results[id(node)] = run.operators[type(node)](run, node)
    return run


def _grid(run: Run, group: alg.Group, columns: Columns, rows: Sequence[list[Any]]) -> Grid:
    width = len(columns.keys)
    keys = [[_cell(kind, row[1 + at]) for row in watched(rows)] for at, kind in enumerate(columns.keys)]
    for at, (measure, kind) in enumerate(zip(group.measures, columns.measures, strict=True), 1 + width):
        column = Column(run, measure)
        found = [_summed(column, kind, row[at]) for row in watched(rows)]
        column.warn()
        keys.append(zeros(found) if measure.function == "sum" else found)
    ways = [*(key.of for key in group.keys), *(measure.of for measure in group.measures)]
    for place in group.unsure if rows else ():
        columns_of = [at for at, way in enumerate(ways, 1) if isinstance(way, Way) and way.steps[:1] == (place,)]
        cells = [row[at] for row in watched(rows) for at in columns_of]
        if cells and not any(cell[0] if isinstance(cell, list) else cell is not None for cell in cells):
            warn_of_empty(run, group.facts[place])
    names = (*(key.name for key in group.keys), *(measure.name for measure in group.measures))
    table = list(zip(*keys, strict=True)) if keys else []
    order = places_in_order(len(table), lambda place: [order_of(cell) for cell in table[place][:width]])
    return Grid(names, len(names) - group.hidden, table, [()] * len(table)).take(order)


def _cell(kind: str, value: Any) -> Cell | None:
    """A key, or an extreme."""
    if value is None:
        return None
    if kind == "entity":
        entity = entity_of(*value)
        return Cell(entity, entity.name)
    if kind == "day":
        day = Time.parse(value.removeprefix("+"))
        return Cell(day, value if text_of(day) != value else text_of(day))
    return text_cell(value if isinstance(value, str) else Quantity(value))


def _summed(column: Column, kind: str, parts: list[Any]) -> Cell | None:
    count, *more = parts
    function = column.measure.function
    if function in ("sum", "mean"):
        # Integers in two parts; of other numbers all.
        return column.of_summed(count, more[0] * PART + more[1] if kind == "integer" else _exact(more[0]))
    return column.of_summed(count, best=_cell(kind, more[0]) if more else None)


def _exact(numbers: list[Any]) -> Fraction:
    """The exact sum of numbers, as they are written."""
    return sum((exact(number) * times for number, times in watched(Counter(numbers).items())), Fraction(0))
