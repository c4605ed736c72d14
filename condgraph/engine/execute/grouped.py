"""Operators that give tables: groups, tests of them, their order, a part of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from condgraph.engine.algebra import Group, Having, Limit, Order, Scan
from condgraph.engine.algebra.expressions import TEXT_OPERATORS, CellTest, Every, Measure, No, Test
from condgraph.engine.bounds import check
from condgraph.engine.comparisons import OPERATORS
from condgraph.engine.errors import PlanError, numbered
from condgraph.engine.execute.bags import shown
from condgraph.engine.execute.called import Called
from condgraph.engine.execute.expressions import lead
from condgraph.engine.execute.grid import Cell, Cells, Grid, competing, group_of, identity, order_of, size_of, text_cell
from condgraph.engine.execute.left_out import LeftOut, left_out, left_out_warnings
from condgraph.engine.execute.sums import NO_SUM, Column, each_once, leaves_out
from condgraph.engine.execute.ways import Bindings, Found, Reached, Ways
from condgraph.engine.facts import Entity
from condgraph.engine.operands import exact
from condgraph.engine.pieces import places_in_order, watched
from condgraph.engine.values import NO_UNIT, Kind, Quantity, Time, collapse

if TYPE_CHECKING:
    from condgraph.engine.execute.run import Run

#: Groups that one row may stand in, and groups of a table.
_MOST_KEYS: Final = 10_000
_MOST_GROUPS: Final = 5_000_000
#: Rows of groups that are summed up between two looks at the clock.
_HANDLED: Final = 1 << 11
Answers = Callable[[Any], Sequence[Cell]]


def group(run: Run, node: Group) -> Grid:
    """Rows put into groups, in the fixed order of their keys."""
    ways = Ways(run, node)
    bindings = ways.bound([key.of for key in node.keys])
    rows = bindings.row.tolist()
    keys = [_by_place(ways.found(key.of, ways.at(bindings, lead(key.of)), len(lead(key.of)))) for key in node.keys]
    groups: dict[Any, list[int]] = {}
    cells: dict[Any, list[Cell | None]] = {}
    for place in watched(_where(run, node, ways, rows)):
        for at in _keys_of(node, keys, place):
            identities = tuple([None if cell is None else (identity(cell.value),) for cell in at])
            key = (place, identities) if node.each else identities
            groups.setdefault(key, []).append(place)
            known = cells.setdefault(key, list(at))
            for column, cell in enumerate(at):
                # Of equal values that are written in several ways, one is shown.
                if cell is not None and cell.text < known[column].text:  # type: ignore[union-attr]
                    known[column] = cell
            if len(groups) > _MOST_GROUPS:
                raise PlanError(f"more than {_MOST_GROUPS:,} groups", hint="group by something that has fewer values")
    if not node.keys and not node.each and not groups:
        # Of nothing there is one sum, as without groups.
        groups[()], cells[()] = [], []
    members: list[Sequence[int]] = [list(dict.fromkeys([rows[place] for place in places])) for places in watched(groups.values())]
    if node.unsure and len(ways):
        _warn_of_empty(run, node, len(ways))
    found = [_measured(run, ways, bindings, measure, list(groups.values()), members) for measure in node.measures]
    ways.warn()
    table: list[Cells] = [(*cells[key], *(column[at] for column in found)) for at, key in enumerate(watched(groups))]
    columns = (*(key.name for key in node.keys), *(measure.name for measure in node.measures))
    order = places_in_order(len(table), lambda at: [order_of(cell) for cell in table[at][: len(node.keys)]])
    return Grid(columns, len(columns) - node.hidden, table, members).take(order)


def _warn_of_empty(run: Run, node: Group, rows: int) -> None:
    """Say which columns none of the rows has."""
    for facts in (node.facts[place] for place in node.unsure):
        if isinstance(facts, Scan) and not len(run.facts(facts).all()):
            name = ("^" if facts.anchor == "object" else "") + " or ".join(facts.predicates or ())
            run.warn(f"{name}: the row has no such value" if rows == 1 else f"{name}: none of the {rows:,} rows has such a value")


def _keys_of(node: Group, keys: list[dict[int, list[Cell]]], place: int) -> Iterator[tuple[Cell | None, ...]]:
    """The groups that a binding stands in: those of its values, that of no value where it has none."""
    of_place: list[list[Cell | None]] = [[*each_once(of.get(place, ()))] or [None] for of in keys]
    total = 1
    for values in of_place:
        total *= len(values)
    if total > _MOST_KEYS:
        raise PlanError(f"one row stands in {total:,} groups", hint="group by fewer keys that have many values")
    yield from product(*of_place)


def _by_place(found: Found) -> dict[int, list[Cell]]:
    """The cells of each row, or binding."""
    cells: dict[int, list[Cell]] = {}
    for place, value, text in watched(zip(found.of, found.values, found.texts, strict=True)):
        # A text is itself: the blanks around it in its file are no part of it.
        cells.setdefault(place, []).append(Cell(value, value if isinstance(value, str) else text))
    return cells


def _measured(
    run: Run, ways: Ways, bindings: Bindings, measure: Measure, groups: list[list[int]], members: list[Sequence[int]]
) -> list[Cell | None]:
    """One column: the measure of each group. What it has in common with the ways of keys is gone once:
    `group by team show sum(team.size)` takes the size of the team of the group alone.
    """
    column, of = Column(run, measure), measure.of
    if of is None and measure.function in ("count", "distinct"):
        return [text_cell(len(rows)) for rows in watched(members)]
    assert of is not None
    steps = lead(of)
    shared = 0
    while shared < len(steps) and steps[shared] in bindings.ends:
        shared += 1
    # Rows that stand there by the same statement are there once.
    base = ways.at(bindings, steps[:shared])
    pairs = bindings.row * (1 << 32) + (base.by if shared else 0)
    once: Any = np.unique(pairs, return_index=True, return_inverse=True)
    first, item = once[1], once[2]
    start = Reached(np.arange(len(first)), base.at.take(first), base.by.take(first))
    cells, items = _by_place(ways.found(of, start, shared)), item.tolist()
    row_of = bindings.row.take(first).tolist()
    best = measure.function in ("top", "bottom")
    entities = [Cell(entity, entity.name) for entity in map(run.snapshot.entity, watched(ways.rows.tolist()))] if best else []
    found: list[Cell | None] = []
    handled = 0
    for places in groups:
        here = dict.fromkeys([items[place] for place in places])
        if best:
            found.append(column.best([(entities[row_of[one]], cell) for one in here for cell in cells.get(one, ())]))
        else:
            found.append(column.of([cell for one in here for cell in cells.get(one, ())]))
        handled += len(places) + 1
        if handled > _HANDLED:
            check()
            handled = 0
    column.warn()
    return zeros(found) if measure.function == "sum" else found


def zeros(sums: list[Cell | None]) -> list[Cell | None]:
    """Sums with those of nothing in the unit of the others, so that 0 € stands among sums in €."""
    unit = competing([cell.value for cell in sums if cell is not None and cell is not NO_SUM]).unit
    return sums if unit == NO_UNIT else [text_cell(Quantity(0, unit)) if cell is NO_SUM else cell for cell in watched(sums)]


# -- tests -----------------------------------------------------------------------------------------


def _where(run: Run, node: Group, ways: Ways, rows: list[int]) -> list[int]:
    """The places of the bindings whose rows the test holds of."""
    if node.where is None:
        return list(range(len(rows)))
    cells: dict[Any, dict[int, list[Cell]]] = {}

    def of_row(row: int) -> Answers:
        def answers(of: Any) -> Sequence[Cell]:
            if of not in cells:
                cells[of] = _by_place(ways.cells(of))
            return cells[of].get(row, ())

        return answers

    left, called = LeftOut(), Called(run)
    chosen = {row for row in watched(range(len(ways))) if holds(left, called, node.where, of_row(row))}
    _tell(run, left)
    called.warn(lambda of: str(of.name))
    return [place for place, row in enumerate(watched(rows)) if row in chosen]


def _tell(run: Run, left: LeftOut) -> None:
    """Say what could not be compared."""
    for warning in left_out_warnings(left):
        run.warn(warning)


def having(run: Run, node: Having) -> Grid:
    """The rows that the test holds of."""
    grid: Grid = run.results[id(node.table)]

    def of_row(cells: Cells) -> Answers:
        def answers(of: Any) -> Sequence[Cell]:
            cell = cells[of]
            if cell is None or not isinstance(cell.value, tuple):
                return () if cell is None else (cell,)
            return [text_cell(value) for value in cell.value]

        return answers

    left, called = LeftOut(), Called(run)
    places = [place for place, row in enumerate(watched(grid.rows)) if holds(left, called, node.test, of_row(row))]
    _tell(run, left)
    called.warn(lambda at: grid.columns[at])
    return grid.take(places, [grid.tied[place] for place in places])


def holds(left: LeftOut, called: Called, test: Test, answers: Answers) -> bool:
    """Whether a test holds of a row: any of its values satisfies a comparison; what cannot be
    compared does not, and is told.
    """
    if isinstance(test, CellTest):
        cells = answers(test.of)
        if test.operator in ("missing", "known"):
            return bool(cells) == (test.operator == "known")
        # Every value is looked at, so that what cannot be compared is counted whatever the order.
        return sum([_satisfies(left, called, test, cell) for cell in cells]) > 0
    if isinstance(test, No):
        return not holds(left, called, test.test, answers)
    found = [holds(left, called, part, answers) for part in test.tests]
    return all(found) if isinstance(test, Every) else any(found)


def _satisfies(left: LeftOut, called: Called, test: CellTest, cell: Cell) -> bool:
    value = cell.value
    if isinstance(value, Entity) and test.operator in ("=", "!="):
        means = called.means(test, value)
        if means is not None:
            return means == (test.operator == "=")
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = Quantity(value)
    kind = _kind(value)
    alike = [reading for reading in test.readings if _kind(reading) == kind]
    if not alike:
        left_out(left, *kind, 1, {_kind(reading) for reading in test.readings})
    return any(_compares(value, reading, test.operator) for reading in alike)


def _kind(value: Any) -> tuple[Kind, str]:
    """The type and unit of a value; an entity compares by its name, and as `called` says."""
    if isinstance(value, str | Entity):
        return Kind.TEXT, NO_UNIT
    found = group_of(value)
    return (Kind.UNKNOWN, NO_UNIT) if found is None else (found[0], found[1] or NO_UNIT)


def _compares(value: Any, wanted: Any, operator: str) -> bool:
    if isinstance(value, Time):
        return span_holds(value, wanted, operator)
    if isinstance(value, Quantity):
        return OPERATORS[operator](exact(value.number), exact(wanted.number))
    if operator in TEXT_OPERATORS:
        text = collapse(shown(value))
        found = {"contains": wanted in text, "starts with": text.startswith(wanted), "ends with": text.endswith(wanted)}
        return found[operator]
    return OPERATORS[operator](collapse(shown(value)), collapse(wanted))


def span_holds(value: Time, wanted: Time, operator: str) -> bool:
    """Whether an interval compares so with another: within, disjoint, before, after, and so on."""
    return {
        "=": value.start >= wanted.start and value.end <= wanted.end,
        "!=": value.end <= wanted.start or value.start >= wanted.end,
        "<": value.end <= wanted.start,
        ">": value.start >= wanted.end,
        "<=": value.end <= wanted.end,
        ">=": value.start >= wanted.start,
    }[operator]


# -- order and limit -------------------------------------------------------------------------------


def order(run: Run, node: Order) -> Grid:
    """The rows in order: what competes first, then what does not, what is missing last."""
    grid: Grid = run.results[id(node.table)]
    places = list(range(len(grid)))
    columns: list[list[tuple[int, Any]]] = []
    for by in reversed(node.by):
        cells = grid.column(by.column)
        wins = competing([cell.value for cell in cells if cell is not None])
        if wins.kind is not None and wins.others:
            run.warn(leaves_out(grid.columns[by.column], wins))
        group = None if wins.kind is None else (wins.kind, wins.unit)
        ranks = [_rank(cell, group, largest=by.descending) for cell in watched(cells)]
        columns.append(ranks)
        # The last key first, as sorting keeps the order of what is equal.
        parts: list[list[int]] = [[], [], []]
        for place in watched(places):
            parts[ranks[place][0]].append(place)
        places = []
        for part in parts:
            sizes = [ranks[place][1] for place in part]
            places += [part[at] for at in places_in_order(len(part), sizes.__getitem__, reverse=by.descending)]
    ordered = [tuple([ranks[place] for ranks in columns]) for place in watched(places)]
    return grid.take(places, [at > 0 and ordered[at] == ordered[at - 1] for at in watched(range(len(ordered)))])


def _rank(cell: Cell | None, wins: tuple[Kind, str] | None, *, largest: bool) -> tuple[int, Any]:
    """Which part of the rows a cell stands in (what competes, other values, none), and its size
    there.
    """
    if cell is None:
        return 2, ()
    if wins is None:
        return 0, order_of(cell)
    return (0, size_of(cell.value, largest=largest)) if group_of(cell.value) == wins else (1, order_of(cell))


def limit(run: Run, node: Limit) -> Grid:
    """The rows from an offset on; where the cut is among equal ones, the answer says so, or has them
    all.
    """
    grid: Grid = run.results[id(node.table)]
    end = min(node.offset + node.number, len(grid))
    after = end
    while node.offset < end <= after < len(grid) and grid.tied[after]:
        after += 1
    if node.ties:
        end = after
    elif after > end:
        more = numbered(after - end, "more row is", "more rows are")
        run.warn(f"limit {node.number}: {more} equal to the last one shown, in the order asked for")
    return grid.take(range(node.offset, end), grid.tied[node.offset : end])
