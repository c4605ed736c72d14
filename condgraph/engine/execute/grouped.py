"""Groups of rows in process: grouping, tests of groups, order and limit."""

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
from condgraph.engine.execute.columns import MAX_BINDINGS, Bindings, GroupRows, PathEnds, PlacedValues, decoded, lead
from condgraph.engine.execute.grid import Column, Competing, Grid, Members, competing, group_of, order_of, size_of, text_cell
from condgraph.engine.execute.left_out import LeftOut, left_out, left_out_warnings
from condgraph.engine.execute.series import MAX_SUM, Cell, ListSeries, Places, dense, first_of_each, ranked, runs
from condgraph.engine.execute.sets import Mask
from condgraph.engine.execute.sums import Aggregate, bounds_of, counts, leaves_out
from condgraph.engine.facts import Entity, EntityKind, shown
from condgraph.engine.functions import OPERATORS, time_mask
from condgraph.engine.snapshot.snapshot import ranges
from condgraph.engine.units import clock_text
from condgraph.engine.values import NO_UNIT, Kind, Quantity, Time, collapse, exact

if TYPE_CHECKING:
    from condgraph.engine.execute.run import Run


# -- functions of a row ----------------------------------------------------------------------------
# Which entities a test in a table refers to: those with that name, and rows with that key.
#
# `where customerID = 'ALFKI'` tests the customers that orders refer to. As in SQL, users know their
# keys; as elsewhere in a graph, their names. Both match, and so does an id. A number may be the key of
# a row as well. The answer warns of a text that matches no entity, with the nearest names, and of one
# that is the name of one entity and the key of another.


#: The number of names and keys that are searched for the nearest.
_MAX_CANDIDATES: Final = 5_000
#: Keys that are numbers; 007 is a text, because it is not written 7.
_NUMBER: Final = re.compile(r"0|-?[1-9][0-9]*").fullmatch


def key_of(ident: str, source: str) -> str:
    """Return the key of a row of a source, from its id. Ids of rows of a folder lack the folder's name, and a row
    that was referred to before it was loaded may have its bare key as its id.

    >>> key_of("customers/ALFKI", "shop/customers"), key_of("AC/DC", "bands")
    ('ALFKI', 'AC/DC')
    """
    for prefix in (f"{source}/", f"{source.rpartition('/')[2]}/"):
        if ident.startswith(prefix):
            return ident[len(prefix) :]
    return ident


class NamedEntities:
    """Matches entities with the names and keys in tests, and records what is missing or ambiguous."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._keys: dict[str, str] = {}
        #: By the identity of a test: the test, and the names and keys that did not match; None after a match.
        self._missed: dict[int, tuple[CellTest, dict[str, None] | None]] = {}
        #: By test and text: the least id matched only by "name", and the least id matched only by "key".
        self._routes: dict[tuple[int, str], dict[str, str]] = {}

    def means(self, test: CellTest, entity: Entity) -> bool | None:
        """Return whether a test with = or != refers to an entity; None if none of its readings can name one: a time,
        a number with a unit, or a number where keys are texts.
        """
        key = self._key(entity)
        texts = [reading for reading in test.readings if isinstance(reading, str)]
        if texts:
            name = collapse(entity.name)
            matched = [text for text in map(collapse, texts) if text in (name, key, entity.id)]
            is_match = bool(matched)
            for text in matched:
                if (text == name) != (text == key):
                    least_ids = self._routes.setdefault((id(test), text), {})
                    way = "name" if text == name else "key"
                    least_ids[way] = min(least_ids.get(way, entity.id), entity.id)
        else:
            numbers = [number for number in map(_integer_text, test.readings) if number is not None]
            if not numbers or not _NUMBER(key):
                return None
            is_match = key in numbers
        _, missed = self._missed.setdefault(id(test), (test, {}))
        if is_match:
            self._missed[id(test)] = test, None
        elif missed is not None and len(missed) < _MAX_CANDIDATES:
            missed[key] = missed[entity.name] = None
        return is_match

    def _key(self, entity: Entity) -> str:
        key = self._keys.get(entity.id)
        if key is None:
            key = self._keys[entity.id] = self._look_up(entity)
        return key

    def _look_up(self, entity: Entity) -> str:
        snapshot = self._run.snapshot
        owners, number = snapshot.arrays.get("ent.source"), snapshot.identified(entity.id)
        if entity.kind is not EntityKind.ROW or number < 0 or not len(owners) or owners[number] < 0:
            return entity.id
        return key_of(entity.id, snapshot.source_of(int(owners[number])).name)

    def warn(self, column: Callable[[Any], str]) -> None:
        """Warn of names in tests with = that matched nothing, and of texts that are the name of one entity and the
        key of another; `column` returns the name of what a test compares.
        """
        for (test_id, text), least_ids in self._routes.items():
            if len(least_ids) > 1:
                ids = f"the name of {shortened(least_ids['name'], 60)!r} and the key of {shortened(least_ids['key'], 60)!r}"
                self._run.warn(f"{column(self._missed[test_id][0].of)}: {shortened(text, 60)!r} is {ids}, and refers to both")
        for test, missed in self._missed.values():
            if missed is None or test.operator != "=":
                continue
            names = list(dict.fromkeys([str(word) for word in test.readings if isinstance(word, str)]))
            names = names or [number for number in map(_integer_text, test.readings) if number is not None]
            similar = [name for word in names[:3] for name in nearest(word, sorted(missed), most=3)]
            nearest_names = ", ".join([repr(shortened(name, 60)) for name in dict.fromkeys(similar)])
            nearest_names = f"; nearest: {nearest_names}" if nearest_names else ""
            wanted = " or ".join([repr(shortened(word, 60)) for word in names[:3]]) + (" or others" if len(names) > 3 else "")
            self._run.warn(f"{column(test.of)}: nothing has the name or key {wanted}{nearest_names}")


def _integer_text(value: Any) -> str | None:
    """Return an integer without a unit as the text of a key; None for everything else."""
    if not isinstance(value, Quantity) or value.unit != NO_UNIT:
        return None
    number = exact(value.number)
    return str(int(number)) if number == int(number) else None


# -- groups ----------------------------------------------------------------------------------------


#: The largest number of groups that a row may be in, and of groups of a table.
_MAX_KEYS: Final = 10_000
_MAX_GROUPS: Final = 5_000_000


def group(run: Run, node: Group) -> Grid:
    """Return rows grouped by their keys, in the fixed order of these."""
    group_rows = GroupRows(run, node)
    bindings = group_rows.bound([key.of for key in node.keys])
    rows = bindings.row
    place = np.arange(len(rows))
    if node.where is not None:
        place = np.flatnonzero(_where_mask(run, node, group_rows).take(rows))
    key_values = [group_rows.found(key.of, group_rows.at(bindings, lead(key.of)), len(lead(key.of))) for key in node.keys]
    keys = [_Key(values, len(rows)) for values in key_values]
    place, picks = _combined_keys(keys, place)
    groups = place if node.each else np.zeros(len(place), np.int64)
    if keys:
        groups = dense(*([place] if node.each else []), *(key.codes_at(pick) for key, pick in zip(keys, picks, strict=True)))
    elif node.each:
        groups = np.arange(len(place))
    size = int(groups.max(initial=-1)) + 1
    if size > _MAX_GROUPS:
        raise PlanError(f"more than {_MAX_GROUPS:,} groups", hint="group by something that has fewer values")
    if not node.keys and not node.each:
        # Without keys there is one group, even if it is empty.
        size = 1
    members = Members(groups, rows.take(place), size)
    columns = [key.column(groups, size, pick) for key, pick in zip(keys, picks, strict=True)]
    if node.unsure and len(group_rows):
        for number in node.unsure:
            if not len(run.facts(node.facts[number]).all()):
                warn_of_empty(run, node.facts[number])
    for measure in node.measures:
        column = _measured(run, group_rows, bindings, measure, size, groups, place)
        columns.append(_as_clock_times(run, measure, column) if measure.clock else column)
    group_rows.warn()
    names = (*(key.name for key in node.keys), *(measure.name for measure in node.measures))
    grid = Grid(names, len(names) - node.hidden, columns, members)
    return grid.take(in_fixed_order(columns[: len(keys)])) if keys else grid


def warn_of_empty(run: Run, facts: Facts) -> None:
    """Warn that none of the rows has a value in a column."""
    if isinstance(facts, Scan):
        name = ("^" if facts.anchor == "object" else "") + " or ".join(facts.predicates or ())
        run.warn(f"{name}: none of the rows has such a value")


class _Key:
    """The distinct values of a key for each binding. Of equal values that are written in several ways, the first text
    is used.
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
        #: The begin and number of the values of each binding.
        self.low, self.sizes = runs(of, bindings)

    def codes_at(self, pick: Places) -> Places:
        """Return the codes of some of the values, -1 for none."""
        return _take(self._codes, pick)

    def column(self, group: Places, size: int, pick: Places) -> Column:
        """Return the value of each of `size` groups, given the group of each row and the value picked for it."""
        if self._spellings is None:
            # NumPy keeps the last of several assignments to one position.
            first = np.empty(size, np.int64)
            first[group[::-1]] = np.arange(len(group))[::-1]
        else:
            order = in_order((group, _take(self._spellings, pick)))
            first = order[changed(group.take(order))]
        return Column(self._series, _take(self._at, pick.take(first)))


def _take(numbers: Places, pick: Places) -> Places:
    """Return some of the numbers; -1 where `pick` is negative."""
    if not len(numbers):
        return np.full(len(pick), -1, np.int64)
    return np.where(pick < 0, -1, numbers.take(pick))


def _combined_keys(keys: Sequence[_Key], place: Places) -> tuple[Places, list[Places]]:
    """Return the groups of each binding: one for each combination of its values, where having none counts as a value.
    The result is the binding of each group, and for each key the position of the value, or -1.
    """
    low, sizes = [key.low.take(place) for key in keys], [key.sizes.take(place) for key in keys]
    total = np.ones(len(place), np.float64)
    for size in sizes:
        total *= np.maximum(size, 1)
    if total.max(initial=0) > _MAX_KEYS:
        raise PlanError(f"one row stands in {int(total.max()):,} groups", hint="group by fewer keys that have many values")
    if total.sum() > MAX_BINDINGS + len(place):
        raise PlanError(f"{int(total.sum()):,} ways from rows to keys are too many", hint="group by fewer keys")
    picks: list[Places] = []
    current = np.arange(len(place))
    for start, size in zip(low, sizes, strict=True):
        begins, counts = start.take(current), size.take(current)
        if (counts == 1).all():
            picks.append(begins)
            continue
        repeats = np.maximum(counts, 1)
        current, picks = current.repeat(repeats), [pick.repeat(repeats) for pick in picks]
        picks.append(np.where(counts.repeat(repeats) == 0, -1, ranges(begins, begins + repeats)))
    return place.take(current), picks


def _measured(run: Run, ways: GroupRows, bindings: Bindings, measure: Measure, size: int, group: Places, place: Places) -> Column:
    """Return the column of a measure for each group. Steps that it shares with the paths of keys are taken once:
    `group by team show sum(team.size)` uses the size of the team of the group alone. `group` has the group of each
    binding in `place`; `place` is ascending.
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
    # Rows that arrived by the same statement count once.
    base = ways.at(bindings, steps[:shared])
    if shared or len(bindings.row) > len(ways):
        first, items_of_binding = first_of_each(bindings.row * (1 << 32) + (base.by if shared else 0))
    else:
        first = items_of_binding = np.arange(len(bindings.row))
    ends = ways.found(of, PathEnds(np.arange(len(first)), base.at.take(first), base.by.take(first)), shared)
    items = items_of_binding.take(place)
    if len(first) < len(bindings.row):
        order = in_order((group, items))
        # Each once, in order of appearance.
        order = np.sort(order[changed(group.take(order), items.take(order))])
        group, items = group.take(order), items.take(order)
    if len(ends.of) == len(first) and (ends.of == np.arange(len(first))).all():
        values = ends.at.take(items)
    else:
        low, sizes = (part.take(items) for part in runs(ends.of, len(first)))
        values, group, items = ends.at.take(ranges(low, low + sizes)), group.repeat(sizes), items.repeat(sizes)
    if measure.function not in ("top", "bottom"):
        return aggregate.of_groups(size, group, values, ends.series)
    order = in_order((group,))
    group, items, values = group.take(order), items.take(order), values.take(order)
    entities = list(map(run.snapshot.entity, watched(ways.rows.take(bindings.row.take(first).take(items)).tolist())))
    cells = list(zip([Cell(entity, entity.name) for entity in entities], ends.series.cells(values), strict=True))
    best_cells = [aggregate.best(cells[low:high]) for low, high in watched(bounds_of(group, size))]
    aggregate.warn()
    return Column.of(best_cells)


def _as_clock_times(run: Run, measure: Measure, column: Column) -> Column:
    """Return the same values, displayed as clock times."""
    cells: list[Cell | None] = []
    others = 0
    for cell in watched(column.cells()):
        clock = clock_text(cell.value) if cell is not None and isinstance(cell.value, Quantity) else None
        others += cell is not None and clock is None
        cells.append(cell if clock is None or cell is None else Cell(cell.value, clock))
    if others:
        values = numbered(others, "value is not a duration", "values are not durations")
        run.warn(f"{measure.name}: {values} in seconds, minutes, hours, days or weeks, and shown unchanged")
    return Column.of(cells)


# -- tests of groups -------------------------------------------------------------------------------


def _where_mask(run: Run, node: Group, ways: GroupRows) -> Mask:
    """Return the rows for which the test holds."""
    assert node.where is not None
    return _tested(run, node.where, len(ways), ways.cells, lambda of: str(of.name))


def having(run: Run, node: Having) -> Grid:
    """Return the rows of a table for which the test holds."""
    grid: Grid = run.results[id(node.table)]

    def values_of(at: Any) -> PlacedValues:
        column = grid.columns[at]
        cells = column.cells() if isinstance(column.series, ListSeries) else []
        if any(cell is not None and isinstance(cell.value, tuple) for cell in watched(cells)):
            values_by_row = [
                () if cell is None else cell.value if isinstance(cell.value, tuple) else (cell.value,) for cell in cells
            ]
            rows = [row for row, values in enumerate(values_by_row) for _ in values]
            return decoded(rows, [text_cell(value) for values in values_by_row for value in values])
        known = np.flatnonzero(column.there)
        return PlacedValues(known, column.at.take(known), column.series)

    places = np.flatnonzero(_tested(run, node.test, len(grid), values_of, lambda at: grid.names[at]))
    return grid.take(places, grid.tied.take(places))


def _tested(run: Run, test: Test, size: int, found: Callable[[Any], PlacedValues], name: Callable[[Any], str]) -> Mask:
    """Return a mask of the rows for which a test holds; warn of values that cannot be compared and names that match
    nothing.
    """
    ignored, names = LeftOut(), NamedEntities(run)
    mask = _holds(ignored, names, test, size, found)
    for warning in left_out_warnings(ignored):
        run.warn(warning)
    names.warn(name)
    return mask


def _holds(left: LeftOut, called: NamedEntities, test: Test, size: int, found: Callable[[Any], PlacedValues]) -> Mask:
    """Return a mask of the rows for which a test holds: one of their values satisfies it. Values that cannot be
    compared do not, and are counted. Every part of a test is applied to all rows, whatever the order.
    """
    if isinstance(test, CellTest):
        values = found(test.of)
        rows = values.of
        if test.operator not in ("missing", "known"):
            rows = rows[_satisfied(left, called, test, values)]
        mask = np.zeros(size, bool)
        mask[rows] = True
        return ~mask if test.operator == "missing" else mask
    if isinstance(test, NotTest):
        return ~_holds(left, called, test.test, size, found)
    masks = [_holds(left, called, part, size, found) for part in test.tests]
    joined: Mask = (np.logical_and if isinstance(test, AllTests) else np.logical_or).reduce(masks)
    return joined


def _satisfied(left: LeftOut, called: NamedEntities, test: CellTest, values: PlacedValues) -> Mask:
    """Return a mask of the values that satisfy a test; equal values are tested once."""
    numbers = values.series.decimals(values.at)
    if numbers is not None:
        wanted = [
            exact(reading.number) for reading in test.readings if isinstance(reading, Quantity) and reading.unit == numbers.unit
        ]
        scaled = [number * 10**numbers.digits for number in wanted]
        if scaled and test.operator in OPERATORS and all(abs(number) < MAX_SUM for number in scaled):
            mask = np.zeros(len(values.at), bool)
            for number in scaled:
                mask |= _compared(numbers.integers, test.operator, number)
            return mask
    codes = values.series.codes(values.at)
    first, inverse = first_of_each(codes)
    counts = np.bincount(inverse, minlength=len(first)).tolist()
    cells = values.series.cells(values.at.take(first))
    results = [_satisfies(left, called, test, cell.value, count) for cell, count in watched(zip(cells, counts, strict=True))]
    return np.array(results, bool).take(inverse) if results else np.zeros(len(inverse), bool)


def _compared(integers: Places, operator: str, wanted: Fraction) -> Mask:
    """Compare integers with an exact number, which may lie between two of them."""
    below = floor(wanted)
    if below == wanted:
        mask: Mask = OPERATORS[operator](integers, below)
        return mask
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
    kind = _value_type(value)
    comparable = [reading for reading in test.readings if _value_type(reading) == kind]
    if not comparable:
        left_out(left, *kind, count, {_value_type(reading) for reading in test.readings})
    return any(_compares(value, reading, test.operator) for reading in comparable)


def _value_type(value: Any) -> tuple[Kind, str]:
    """Return the type and unit of a value; an entity counts as a text, its name."""
    if isinstance(value, str | Entity):
        return Kind.TEXT, NO_UNIT
    group = group_of(value)
    return (Kind.UNKNOWN, NO_UNIT) if group is None else (group[0], group[1] or NO_UNIT)


def _compares(value: Any, wanted: Any, operator: str) -> bool:
    if isinstance(value, Time):
        return bool(time_mask(operator, wanted, value.start, value.end))
    if isinstance(value, Quantity):
        return bool(OPERATORS[operator](exact(value.number), exact(wanted.number)))
    if operator in TEXT_OPERATORS:
        text = collapse(shown(value))
        results = {"contains": wanted in text, "starts with": text.startswith(wanted), "ends with": text.endswith(wanted)}
        return results[operator]
    return bool(OPERATORS[operator](collapse(shown(value)), collapse(wanted)))


# -- order and limit -------------------------------------------------------------------------------


def order(run: Run, node: Order) -> Grid:
    """Return the rows in order: competing values first, then other values, missing ones last."""
    grid: Grid = run.results[id(node.table)]
    ranks: list[Places] = []
    for by in node.by:
        section, rank, winner = _competing_ranks(grid.columns[by.column], largest=by.descending)
        if winner.kind is not None and winner.others:
            run.warn(leaves_out(grid.names[by.column], winner))
        ranks += [section, ~rank if by.descending else rank]
    places = np.lexsort(ranks[::-1]) if ranks else np.arange(len(grid))
    return grid.take(places, ~changed(*(rank.take(places) for rank in ranks)) if ranks and len(places) else None)


def _competing_ranks(column: Column, *, largest: bool) -> tuple[Places, Places, Competing]:
    """Return the section of each cell (0: competing, 1: other values, 2: missing), its rank within it, and what
    competes.
    """
    known = column.there
    section, rank = np.where(known, 0, 2), np.zeros(len(known), np.int64)
    at = column.at[known]
    numbers, times = column.series.decimals(at), column.series.times(at)
    if numbers is not None:
        rank[known] = numbers.integers
        return section, rank, Competing(Kind.QUANTITY, numbers.unit, 0)
    if times is not None:
        rank[known] = times[1 if largest else 0]
        return section, rank, Competing(Kind.TIME, "", 0)
    ranks = column.series.ranks(at)
    if ranks is not None:
        rank[known] = ranks
        return section, rank, Competing(None, NO_UNIT, 0)
    cells = column.series.cells(at)
    winner = competing([cell.value for cell in cells])
    group = (winner.kind, winner.unit)
    competes = [winner.kind is None or group_of(cell.value) == group for cell in watched(cells)]
    section[known] = np.where(competes, 0, 1)
    for chosen, key in ((True, lambda cell: size_of(cell.value, largest=largest)), (False, order_of)):
        positions = [at for at, flag in enumerate(competes) if flag is chosen]
        section_ranks = ranked(list(map(order_of if winner.kind is None else key, watched([cells[at] for at in positions]))))
        rank[np.flatnonzero(known).take(positions)] = section_ranks
    return section, rank, winner


def in_fixed_order(columns: Sequence[Column]) -> Places:
    """Return the positions of rows ordered by the values of their columns, missing ones last."""
    return np.lexsort([_ranks(column) for column in reversed(columns)])


def _ranks(column: Column) -> Places:
    """Return ranks in the order of the values of a column; equal values have equal ranks, missing ones are last."""
    known = column.there
    at = column.at[known]
    ranks = column.series.ranks(at)
    if ranks is None:
        ranks = ranked(list(map(order_of, watched(column.series.cells(at)))))
    rank = np.full(len(known), int(ranks.max(initial=0)) + 1, np.int64)
    rank[known] = ranks
    return rank


def limit(run: Run, node: Limit) -> Grid:
    """Return the rows from an offset on. If the cut separates equal rows, warn, or with `ties` include them."""
    grid: Grid = run.results[id(node.table)]
    if node.per:
        return _limit_per(run, node, grid)
    end = min(node.offset + node.number, len(grid))
    tied_end = end
    while node.offset < end <= tied_end < len(grid) and grid.tied[tied_end]:
        tied_end += 1
    if node.ties:
        end = tied_end
    elif tied_end > end:
        more = numbered(tied_end - end, "more row ties", "more rows tie")
        run.warn(f"limit {node.number}: {more} with the last one shown")
    return grid.take(np.arange(min(node.offset, end), end), grid.tied[node.offset : end])


def _limit_per(run: Run, node: Limit, grid: Grid) -> Grid:
    """Return the first rows of each group, in the order of the table."""
    group = dense(*(_ranks(grid.columns[at]) for at in node.per))
    order = in_order((group,))
    low, sizes = runs(group.take(order), int(group.max(initial=-1)) + 1)
    position = np.empty(len(grid), np.int64)
    position[order] = np.arange(len(grid)) - low.repeat(sizes)
    end = node.offset + node.number
    # Rows that are tied in the order share a number.
    equal = (~grid.tied).cumsum()
    last = np.full(len(low), -1, np.int64)
    cut = position == end - 1
    last[group[cut]] = equal[cut]
    further = (position >= max(end, node.offset)) & (equal == last.take(group))
    chosen = (position >= node.offset) & (position < end)
    if node.ties:
        chosen |= further
    elif further.any():
        groups = numbered(len(np.unique(group[further])), "group has", "groups have")
        run.warn(f"limit {node.number}: {groups} more rows that tie with the last one shown")
    places = np.flatnonzero(chosen)
    ranks = equal.take(places)
    return grid.take(places, np.concatenate([np.zeros(min(len(ranks), 1), bool), ranks[1:] == ranks[:-1]]))
