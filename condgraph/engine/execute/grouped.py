"""Groups of rows in process, and functions called on them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from condgraph.engine.algebra import Facts, Group, Having, Limit, Order, Scan
from condgraph.engine.algebra.grouped import TEXT_OPERATORS, CellTest, Every, Measure, No, Test
from condgraph.engine.bounds import check
from condgraph.engine.errors import PlanError, nearest, numbered, shortened
from condgraph.engine.execute.bags import shown
from condgraph.engine.execute.columns import Bindings, Found, Reached, Ways, lead
from condgraph.engine.execute.grid import Cell, Grid, Row, competing, group_of, identity, order_of, size_of, text_cell
from condgraph.engine.execute.left_out import LeftOut, left_out, left_out_warnings
from condgraph.engine.execute.sums import NO_SUM, Column, each_once, leaves_out
from condgraph.engine.facts import Entity, EntityKind
from condgraph.engine.functions import OPERATORS
from condgraph.engine.operands import exact
from condgraph.engine.pieces import places_in_order, watched
from condgraph.engine.values import NO_UNIT, Kind, Quantity, Time, collapse

if TYPE_CHECKING:
    from condgraph.engine.execute.run import Run


# -- functions of a row ----------------------------------------------------------------------------
# Which entities a test of a table means: those of that name, and rows of that key.
#
# `where customerID = 'ALFKI'` is asked of the customers that orders refer to. As in SQL, who asks
# knows their keys; as elsewhere in a graph, their names. Both find them, and so does an id. A number
# is the key of a row as well. What no entity at hand is called is said with the nearest, and what is
# the name of one and the key of another as well.


#: Names and keys that are looked through for the nearest.
_MOST_SEEN: Final = 5_000
#: Keys that are numbers: 007 is none, as it is not 7.
_NUMBER: Final = re.compile(r"0|-?[1-9][0-9]*").fullmatch


def key_of(ident: str, source: str) -> str:
    """The key of a row of a source, from its id. Rows of a folder have no name of it in front, and
    rows that something referred to before they came may have their key alone.

    >>> key_of("customers/ALFKI", "shop/customers"), key_of("AC/DC", "bands")
    ('ALFKI', 'AC/DC')
    """
    for prefix in (f"{source}/", f"{source.rpartition('/')[2]}/"):
        if ident.startswith(prefix):
            return ident[len(prefix) :]
    return ident


class Called:
    """The entities that some tests compare with names and keys, while they are looked at."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._keys: dict[str, str] = {}
        #: Tests by identity: what they ask for, and names and keys that were none; None once one was.
        self._missed: dict[int, tuple[CellTest, dict[str, None] | None]] = {}
        #: The least ids of what a test found by name and not by key, and by key and not by name.
        self._ways: dict[tuple[int, str], dict[str, str]] = {}

    def means(self, test: CellTest, entity: Entity) -> bool | None:
        """Whether an entity is what a test with = or != names; None where it names by what no
        entity is called: a time, a number with a unit, or a number where keys are texts.
        """
        key = self._key(entity)
        texts = [reading for reading in test.readings if isinstance(reading, str)]
        if texts:
            name = collapse(entity.name)
            matched = [one for one in map(collapse, texts) if one in (name, key, entity.id)]
            found = bool(matched)
            for one in matched:
                if (one == name) != (one == key):
                    ways = self._ways.setdefault((id(test), one), {})
                    way = "name" if one == name else "key"
                    ways[way] = min(ways.get(way, entity.id), entity.id)
        else:
            numbers = [number for number in map(_whole, test.readings) if number is not None]
            if not numbers or not _NUMBER(key):
                return None
            found = key in numbers
        _, missed = self._missed.setdefault(id(test), (test, {}))
        if found:
            self._missed[id(test)] = test, None
        elif missed is not None and len(missed) < _MOST_SEEN:
            missed[key] = missed[entity.name] = None
        return found

    def _key(self, entity: Entity) -> str:
        known = self._keys.get(entity.id)
        if known is None:
            known = self._keys[entity.id] = self._found(entity)
        return known

    def _found(self, entity: Entity) -> str:
        snapshot = self._run.snapshot
        owners, number = snapshot.arrays.get("ent.source"), snapshot.identified(entity.id)
        if entity.kind is not EntityKind.ROW or number < 0 or not len(owners) or owners[number] < 0:
            return entity.id
        return key_of(entity.id, snapshot.source_of(int(owners[number])).name)

    def warn(self, column: Callable[[Any], str]) -> None:
        """Say what tests with = named that nothing was, and what is the name of one and the key of
        another; `column` has words for what they compare.
        """
        for (at, text), ways in self._ways.items():
            if len(ways) > 1:
                ids = f"the name of {shortened(ways['name'], 60)!r} and the key of {shortened(ways['key'], 60)!r}"
                self._run.warn(f"{column(self._missed[at][0].of)}: {shortened(text, 60)!r} is {ids}, and means both")
        for test, missed in self._missed.values():
            if missed is None or test.operator != "=":
                continue
            asked = list(dict.fromkeys([str(one) for one in test.readings if isinstance(one, str)]))
            asked = asked or [number for number in map(_whole, test.readings) if number is not None]
            like = [name for one in asked[:3] for name in nearest(one, sorted(missed), most=3)]
            found = ", ".join([repr(shortened(name, 60)) for name in dict.fromkeys(like)])
            found = f"; nearest: {found}" if found else ""
            wanted = " or ".join([repr(shortened(one, 60)) for one in asked[:3]]) + (" or others" if len(asked) > 3 else "")
            self._run.warn(f"{column(test.of)}: nothing has {wanted} for its name or key{found}")


def _whole(value: Any) -> str | None:
    """A whole number without a unit as keys are written; None for everything else."""
    if not isinstance(value, Quantity) or value.unit != NO_UNIT:
        return None
    number = exact(value.number)
    return str(int(number)) if number == int(number) else None


# -- groups ----------------------------------------------------------------------------------------


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
        for place in node.unsure:
            if not len(run.facts(node.facts[place]).all()):
                warn_of_empty(run, node.facts[place])
    found = [_measured(run, ways, bindings, measure, list(groups.values()), members) for measure in node.measures]
    ways.warn()
    table: list[Row] = [(*cells[key], *(column[at] for column in found)) for at, key in enumerate(watched(groups))]
    columns = (*(key.name for key in node.keys), *(measure.name for measure in node.measures))
    order = places_in_order(len(table), lambda at: [order_of(cell) for cell in table[at][: len(node.keys)]])
    return Grid(columns, len(columns) - node.hidden, table, members).take(order)


def warn_of_empty(run: Run, facts: Facts) -> None:
    """Say that none of the rows has a column."""
    if isinstance(facts, Scan):
        name = ("^" if facts.anchor == "object" else "") + " or ".join(facts.predicates or ())
        run.warn(f"{name}: none of the rows has such a value")


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


# -- tests of groups -------------------------------------------------------------------------------


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

    def of_row(cells: Row) -> Answers:
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
