"""Groups of rows in process, and functions called on them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from math import floor
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from condgraph.engine.algebra import Facts, Group, Having, Limit, Order, Scan
from condgraph.engine.algebra.grouped import TEXT_OPERATORS, AllTests, CellTest, Measure, NotTest, Test
from condgraph.engine.bounds import changed, in_order, watched
from condgraph.engine.errors import PlanError, nearest, numbered, shortened
from condgraph.engine.execute.columns import MOST_BINDINGS, Bindings, GroupRows, PathEnds, PlacedValues, decoded, lead
from condgraph.engine.execute.grid import Column, Competing, Grid, Members, competing, group_of, order_of, size_of, text_cell
from condgraph.engine.execute.left_out import LeftOut, left_out, left_out_warnings
from condgraph.engine.execute.series import LARGEST, Cell, ListSeries, Places, dense, first_of_each, ranked, runs
from condgraph.engine.execute.sets import Mask
from condgraph.engine.execute.sums import Aggregate, bounds_of, counts, leaves_out
from condgraph.engine.facts import Entity, EntityKind, shown
from condgraph.engine.functions import OPERATORS, time_mask
from condgraph.engine.operands import exact
from condgraph.engine.snapshot.snapshot import ranges
from condgraph.engine.units import clock_text
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


class NamedEntities:
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


def group(run: Run, node: Group) -> Grid:
    """Rows put into groups, in the fixed order of their keys."""
    ways = GroupRows(run, node)
    bindings = ways.bound([key.of for key in node.keys])
    rows = bindings.row
    place = np.arange(len(rows))
    if node.where is not None:
        place = np.flatnonzero(_where(run, node, ways).take(rows))
    found = [ways.found(key.of, ways.at(bindings, lead(key.of)), len(lead(key.of))) for key in node.keys]
    keys = [_Key(values, len(rows)) for values in found]
    place, picks = _joined_keys(keys, place)
    group = place if node.each else np.zeros(len(place), np.int64)
    if keys:
        group = dense(*([place] if node.each else []), *(key.codes_at(pick) for key, pick in zip(keys, picks, strict=True)))
    elif node.each:
        group = np.arange(len(place))
    size = int(group.max(initial=-1)) + 1
    if size > _MOST_GROUPS:
        raise PlanError(f"more than {_MOST_GROUPS:,} groups", hint="group by something that has fewer values")
    if not node.keys and not node.each:
        # Of nothing there is one sum, as without groups.
        size = 1
    members = Members(group, rows.take(place), size)
    columns = [key.column(group, size, pick) for key, pick in zip(keys, picks, strict=True)]
    if node.unsure and len(ways):
        for number in node.unsure:
            if not len(run.facts(node.facts[number]).all()):
                warn_of_empty(run, node.facts[number])
    for measure in node.measures:
        column = _measured(run, ways, bindings, measure, size, group, place)
        columns.append(_on_clocks(run, measure, column) if measure.clock else column)
    ways.warn()
    names = (*(key.name for key in node.keys), *(measure.name for measure in node.measures))
    grid = Grid(names, len(names) - node.hidden, columns, members)
    return grid.take(in_fixed_order(columns[: len(keys)])) if keys else grid


def warn_of_empty(run: Run, facts: Facts) -> None:
    """Say that none of the rows has a column."""
    if isinstance(facts, Scan):
        name = ("^" if facts.anchor == "object" else "") + " or ".join(facts.predicates or ())
        run.warn(f"{name}: none of the rows has such a value")


class _Key:
    """The values of a key, each once for a binding. Of equal values that are written in several ways, the first text
    is taken.
    """

    def __init__(self, found: PlacedValues, bindings: int) -> None:
        codes, spellings = found.series.codes(found.at), found.series.spellings(found.at)
        of, at = found.of, found.at
        if (of[1:] == of[:-1]).any():
            order = in_order((of, codes) if spellings is None else (of, codes, spellings))
            order = order[changed(of.take(order), codes.take(order))]
            of, at, codes = of.take(order), at.take(order), codes.take(order)
            spellings = None if spellings is None else spellings.take(order)
        self._at, self._series, self._codes, self._spellings = at, found.series, dense(codes), spellings
        #: Where the values of each binding begin, and how many they are.
        self.low, self.sizes = runs(of, bindings)

    def codes_at(self, pick: Places) -> Places:
        """The codes of some of the values, -1 for none."""
        return _taken(self._codes, pick)

    def column(self, group: Places, size: int, pick: Places) -> Column:
        """The value of each of `size` groups, from the group of each place and the value picked for it."""
        if self._spellings is None:
            # Of several numbers for one place, the last is kept.
            first = np.empty(size, np.int64)
            first[group[::-1]] = np.arange(len(group))[::-1]
        else:
            order = in_order((group, _taken(self._spellings, pick)))
            first = order[changed(group.take(order))]
        return Column(self._series, _taken(self._at, pick.take(first)))


def _taken(numbers: Places, pick: Places) -> Places:
    """Some of the numbers; -1 where nothing is picked."""
    if not len(numbers):
        return np.full(len(pick), -1, np.int64)
    return np.where(pick < 0, -1, numbers.take(pick))


def _joined_keys(keys: Sequence[_Key], place: Places) -> tuple[Places, list[Places]]:
    """The groups that each binding is in: those of its values, that of no value where it has none. Gives the binding
    of each, and for each key the place of the value, or -1.
    """
    low, sizes = [key.low.take(place) for key in keys], [key.sizes.take(place) for key in keys]
    total = np.ones(len(place), np.float64)
    for size in sizes:
        total *= np.maximum(size, 1)
    if total.max(initial=0) > _MOST_KEYS:
        raise PlanError(f"one row stands in {int(total.max()):,} groups", hint="group by fewer keys that have many values")
    if total.sum() > MOST_BINDINGS + len(place):
        raise PlanError(f"{int(total.sum()):,} ways from rows to keys are too many", hint="group by fewer keys")
    picks: list[Places] = []
    at = np.arange(len(place))
    for start, size in zip(low, sizes, strict=True):
        here, many = start.take(at), size.take(at)
        if (many == 1).all():
            picks.append(here)
            continue
        often = np.maximum(many, 1)
        at, picks = at.repeat(often), [pick.repeat(often) for pick in picks]
        picks.append(np.where(many.repeat(often) == 0, -1, ranges(here, here + often)))
    return place.take(at), picks


def _measured(run: Run, ways: GroupRows, bindings: Bindings, measure: Measure, size: int, group: Places, place: Places) -> Column:
    """One column: the measure of each group. What it has in common with the ways of keys is gone once:
    `group by team show sum(team.size)` takes the size of the team of the group alone. `group` has the group of each
    binding at `place`; `place` ascends.
    """
    aggregate, of = Aggregate(run, measure), measure.of
    if of is None and measure.function in ("count", "distinct"):
        rows = bindings.row.take(place)
        if (rows[1:] > rows[:-1]).all():
            return counts(np.bincount(group, minlength=size))
        order = in_order((group, rows))
        group, rows = group.take(order), rows.take(order)
        return counts(np.bincount(group[changed(group, rows)], minlength=size))
    assert of is not None
    steps = lead(of)
    shared = 0
    while shared < len(steps) and steps[shared] in bindings.ends:
        shared += 1
    # Rows that came there by the same statement are there once.
    base = ways.at(bindings, steps[:shared])
    if shared or len(bindings.row) > len(ways):
        first, item = first_of_each(bindings.row * (1 << 32) + (base.by if shared else 0))
    else:
        first = item = np.arange(len(bindings.row))
    found = ways.found(of, PathEnds(np.arange(len(first)), base.at.take(first), base.by.take(first)), shared)
    items = item.take(place)
    if len(first) < len(bindings.row):
        order = in_order((group, items))
        # Each once, in the order in which they come.
        order = np.sort(order[changed(group.take(order), items.take(order))])
        group, items = group.take(order), items.take(order)
    if len(found.of) == len(first) and (found.of == np.arange(len(first))).all():
        values = found.at.take(items)
    else:
        low, sizes = (part.take(items) for part in runs(found.of, len(first)))
        values, group, items = found.at.take(ranges(low, low + sizes)), group.repeat(sizes), items.repeat(sizes)
    if measure.function not in ("top", "bottom"):
        return aggregate.of_groups(size, group, values, found.series)
    order = in_order((group,))
    group, items, values = group.take(order), items.take(order), values.take(order)
    entities = list(map(run.snapshot.entity, watched(ways.rows.take(bindings.row.take(first).take(items)).tolist())))
    cells = list(zip([Cell(entity, entity.name) for entity in entities], found.series.cells(values), strict=True))
    best = [aggregate.best(cells[low:high]) for low, high in watched(bounds_of(group, size))]
    aggregate.warn()
    return Column.of(best)


def _on_clocks(run: Run, measure: Measure, column: Column) -> Column:
    """The same values, shown as clocks show them."""
    cells: list[Cell | None] = []
    others = 0
    for cell in watched(column.cells()):
        clock = clock_text(cell.value) if cell is not None and isinstance(cell.value, Quantity) else None
        others += cell is not None and clock is None
        cells.append(cell if clock is None or cell is None else Cell(cell.value, clock))
    if others:
        values = numbered(others, "value is no duration", "values are no durations")
        run.warn(f"{measure.name}: {values} in seconds, minutes, hours, days or weeks, and shown as it is")
    return Column.of(cells)


# -- tests of groups -------------------------------------------------------------------------------


def _where(run: Run, node: Group, ways: GroupRows) -> Mask:
    """Which rows the test holds of."""
    assert node.where is not None
    return _tested(run, node.where, len(ways), ways.cells, lambda of: str(of.name))


def having(run: Run, node: Having) -> Grid:
    """The rows that the test holds of."""
    grid: Grid = run.results[id(node.table)]

    def found(at: Any) -> PlacedValues:
        column = grid.columns[at]
        cells = column.cells() if isinstance(column.series, ListSeries) else []
        if any(cell is not None and isinstance(cell.value, tuple) for cell in watched(cells)):
            several = [() if cell is None else cell.value if isinstance(cell.value, tuple) else (cell.value,) for cell in cells]
            sizes = np.fromiter(map(len, several), np.int64, len(several))
            return decoded(np.arange(len(several)).repeat(sizes), [text_cell(value) for values in several for value in values])
        there = np.flatnonzero(column.there)
        return PlacedValues(there, column.at.take(there), column.series)

    places = np.flatnonzero(_tested(run, node.test, len(grid), found, lambda at: grid.names[at]))
    return grid.take(places, grid.tied.take(places))


def _tested(run: Run, test: Test, size: int, found: Callable[[Any], PlacedValues], name: Callable[[Any], str]) -> Mask:
    """Which of `size` rows a test holds of; what cannot be compared, and what nothing is called, is a warning."""
    left, called = LeftOut(), NamedEntities(run)
    mask = _holds(left, called, test, size, found)
    for warning in left_out_warnings(left):
        run.warn(warning)
    called.warn(name)
    return mask


def _holds(left: LeftOut, called: NamedEntities, test: Test, size: int, found: Callable[[Any], PlacedValues]) -> Mask:
    """Which rows a test holds of: any of their values satisfies a comparison; what cannot be
    compared does not, and is counted. Every part of a test looks at all rows, whatever the order.
    """
    if isinstance(test, CellTest):
        values = found(test.of)
        of = values.of
        if test.operator not in ("missing", "known"):
            of = of[_satisfied(left, called, test, values)]
        mask = np.zeros(size, bool)
        mask[of] = True
        return ~mask if test.operator == "missing" else mask
    if isinstance(test, NotTest):
        return ~_holds(left, called, test.test, size, found)
    masks = [_holds(left, called, part, size, found) for part in test.tests]
    joined: Mask = (np.logical_and if isinstance(test, AllTests) else np.logical_or).reduce(masks)
    return joined


def _satisfied(left: LeftOut, called: NamedEntities, test: CellTest, values: PlacedValues) -> Mask:
    """Which values compare so; of equal ones one is looked at."""
    numbers = values.series.decimals(values.at)
    if numbers is not None:
        wanted = [exact(one.number) for one in test.readings if isinstance(one, Quantity) and one.unit == numbers.unit]
        scaled = [number * 10**numbers.digits for number in wanted]
        if scaled and test.operator in OPERATORS and all(abs(number) < LARGEST for number in scaled):
            mask = np.zeros(len(values.at), bool)
            for number in scaled:
                mask |= _compared(numbers.integers, test.operator, number)
            return mask
    codes = values.series.codes(values.at)
    first, which = first_of_each(codes)
    often = np.bincount(which, minlength=len(first)).tolist()
    cells = values.series.cells(values.at.take(first))
    some = [_satisfies(left, called, test, cell.value, count) for cell, count in watched(zip(cells, often, strict=True))]
    return np.array(some, bool).take(which) if some else np.zeros(len(which), bool)


def _compared(integers: Places, operator: str, wanted: Fraction) -> Mask:
    """Integers compared with an exact number, which may lie between two of them."""
    below = floor(wanted)
    if below == wanted:
        found: Mask = OPERATORS[operator](integers, below)
        return found
    if operator in ("=", "!="):
        return np.full(len(integers), operator == "!=")
    return integers > below if operator in (">", ">=") else integers <= below


def _satisfies(left: LeftOut, called: NamedEntities, test: CellTest, value: Any, count: int) -> bool:
    if isinstance(value, Entity) and test.operator in ("=", "!="):
        means = called.means(test, value)
        if means is not None:
            return means == (test.operator == "=")
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = Quantity(value)
    kind = _kind(value)
    alike = [reading for reading in test.readings if _kind(reading) == kind]
    if not alike:
        left_out(left, *kind, count, {_kind(reading) for reading in test.readings})
    return any(_compares(value, reading, test.operator) for reading in alike)


def _kind(value: Any) -> tuple[Kind, str]:
    """The type and unit of a value; an entity compares by its name, and as `called` says."""
    if isinstance(value, str | Entity):
        return Kind.TEXT, NO_UNIT
    found = group_of(value)
    return (Kind.UNKNOWN, NO_UNIT) if found is None else (found[0], found[1] or NO_UNIT)


def _compares(value: Any, wanted: Any, operator: str) -> bool:
    if isinstance(value, Time):
        return bool(time_mask(operator, wanted, value.start, value.end))
    if isinstance(value, Quantity):
        return bool(OPERATORS[operator](exact(value.number), exact(wanted.number)))
    if operator in TEXT_OPERATORS:
        text = collapse(shown(value))
        found = {"contains": wanted in text, "starts with": text.startswith(wanted), "ends with": text.endswith(wanted)}
        return found[operator]
    return bool(OPERATORS[operator](collapse(shown(value)), collapse(wanted)))


# -- order and limit -------------------------------------------------------------------------------


def order(run: Run, node: Order) -> Grid:
    """The rows in order: what competes first, then what does not, what is missing last."""
    grid: Grid = run.results[id(node.table)]
    ranks: list[Places] = []
    for by in node.by:
        part, rank, wins = _competing_ranks(grid.columns[by.column], largest=by.descending)
        if wins.kind is not None and wins.others:
            run.warn(leaves_out(grid.names[by.column], wins))
        ranks += [part, ~rank if by.descending else rank]
    places = np.lexsort(ranks[::-1]) if ranks else np.arange(len(grid))
    return grid.take(places, ~changed(*(rank.take(places) for rank in ranks)) if ranks and len(places) else None)


def _competing_ranks(column: Column, *, largest: bool) -> tuple[Places, Places, Competing]:
    """Which part of a column each cell is in (0 what competes, 1 other values, 2 none), its rank there, and what
    competes.
    """
    there = column.there
    part, rank = np.where(there, 0, 2), np.zeros(len(there), np.int64)
    at = column.at[there]
    numbers, times = column.series.decimals(at), column.series.times(at)
    if numbers is not None:
        rank[there] = numbers.integers
        return part, rank, Competing(Kind.QUANTITY, numbers.unit, 0)
    if times is not None:
        rank[there] = times[1 if largest else 0]
        return part, rank, Competing(Kind.TIME, "", 0)
    found = column.series.ranks(at)
    if found is not None:
        rank[there] = found
        return part, rank, Competing(None, NO_UNIT, 0)
    cells = column.series.cells(at)
    wins = competing([cell.value for cell in cells])
    group = (wins.kind, wins.unit)
    first = [wins.kind is None or group_of(cell.value) == group for cell in watched(cells)]
    part[there] = np.where(first, 0, 1)
    for chosen, key in ((True, lambda cell: size_of(cell.value, largest=largest)), (False, order_of)):
        here = [at for at, one in enumerate(first) if one is chosen]
        some = ranked(list(map(order_of if wins.kind is None else key, watched([cells[at] for at in here]))))
        rank[np.flatnonzero(there).take(here)] = some
    return part, rank, wins


def in_fixed_order(columns: Sequence[Column]) -> Places:
    """The places of rows by the values of their columns, what is missing last."""
    return np.lexsort([_ranks(column) for column in reversed(columns)])


def _ranks(column: Column) -> Places:
    """Numbers in the order of the values of a column, equal where these are, what is missing last."""
    there = column.there
    at = column.at[there]
    found = column.series.ranks(at)
    if found is None:
        found = ranked(list(map(order_of, watched(column.series.cells(at)))))
    rank = np.full(len(there), int(found.max(initial=0)) + 1, np.int64)
    rank[there] = found
    return rank


def limit(run: Run, node: Limit) -> Grid:
    """The rows from an offset on; where the cut is among equal ones, the answer says so, or has them
    all.
    """
    grid: Grid = run.results[id(node.table)]
    if node.per:
        return _limit_per(run, node, grid)
    end = min(node.offset + node.number, len(grid))
    after = end
    while node.offset < end <= after < len(grid) and grid.tied[after]:
        after += 1
    if node.ties:
        end = after
    elif after > end:
        more = numbered(after - end, "more row is", "more rows are")
        run.warn(f"limit {node.number}: {more} equal to the last one shown, in the order asked for")
    return grid.take(np.arange(min(node.offset, end), end), grid.tied[node.offset : end])


def _limit_per(run: Run, node: Limit, grid: Grid) -> Grid:
    """So many rows of each group, in the order of the table."""
    group = dense(*(_ranks(grid.columns[at]) for at in node.per))
    order = in_order((group,))
    low, sizes = runs(group.take(order), int(group.max(initial=-1)) + 1)
    position = np.empty(len(grid), np.int64)
    position[order] = np.arange(len(grid)) - low.repeat(sizes)
    end = node.offset + node.number
    # Rows that are equal in the order have one number.
    equal = (~grid.tied).cumsum()
    last = np.full(len(low), -1, np.int64)
    cut = position == end - 1
    last[group[cut]] = equal[cut]
    more = (position >= max(end, node.offset)) & (equal == last.take(group))
    chosen = (position >= node.offset) & (position < end)
    if node.ties:
        chosen |= more
    elif more.any():
        groups = numbered(len(np.unique(group[more])), "group has", "groups have")
        run.warn(f"limit {node.number}: {groups} more rows that are equal to the last one shown, in the order asked for")
    places = np.flatnonzero(chosen)
    kept = equal.take(places)
    return grid.take(places, np.concatenate([np.zeros(min(len(kept), 1), bool), kept[1:] == kept[:-1]]))
