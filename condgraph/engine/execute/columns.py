"""Columns of a table: the values at the end of a path from each row, and expressions over them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Facts, Group, grouped, passed
from condgraph.engine.bounds import check, different, watched
from condgraph.engine.errors import PlanError, numbered
from condgraph.engine.execute.facts import MAX_VALUES
from condgraph.engine.execute.series import (
    MAX_DECIMALS,
    MAX_EXACT,
    BagSeries,
    Cell,
    Decimals,
    DecimalSeries,
    EntitySeries,
    ListSeries,
    Places,
    Series,
    first_of_each,
)
from condgraph.engine.execute.sets import DENSE, EMPTY, Bag, FactSet, equal_runs
from condgraph.engine.execute.sums import Aggregate
from condgraph.engine.facts import shown
from condgraph.engine.functions import time_between
from condgraph.engine.operands import Inapplicable, alike, plain, quotient, unit_of_product
from condgraph.engine.snapshot.snapshot import ranges
from condgraph.engine.time_parts import in_zone, part_of_time, truncated
from condgraph.engine.units import clock_text, fold_unit
from condgraph.engine.values import NO_UNIT, Point, Quantity, Time, exact, read_point

if TYPE_CHECKING:
    from condgraph.engine.execute.run import Run


# -- paths -----------------------------------------------------------------------------------------


#: The largest number of paths from rows to keys, in addition to one for each row.
MAX_BINDINGS = 10_000_000


class PathEnds(NamedTuple):
    """The ends of a path: the row (or item) that each end belongs to, the entity there (-1: a value), and the
    statement that led there (-1: at the start).
    """

    of: Places
    at: NDArray[np.int32]
    by: NDArray[np.int32]


class Bindings(NamedTuple):
    """The row of each binding, and its end after each step."""

    row: Places
    ends: dict[int, PathEnds]


class PlacedValues(NamedTuple):
    """Values as positions in a series, with the row (or item) that each belongs to, ascending."""

    of: Places
    at: Places
    series: Series

    def cells(self) -> list[Cell]:
        return self.series.cells(self.at)


def decoded(of: Places | list[int], cells: list[Cell]) -> PlacedValues:
    """Return values that are already decoded."""
    return PlacedValues(np.asarray(of, np.int64), np.arange(len(cells)), ListSeries(cells))


class GroupRows:
    """The rows of a group and their values. `odd` counts values that could not be calculated, by reason."""

    def __init__(self, run: Run, node: Group, places: Places | None = None) -> None:
        self.run, self.node = run, node
        self.odd: Counter[str] = Counter()
        self._cache: dict[grouped.Expression, PlacedValues] = {}
        self._bags: dict[int, tuple[NDArray[np.int32], Places | None, Series]] = {}
        result = run.results[id(node.of)]
        #: The statement of each row, where rows are facts.
        self.statements: NDArray[np.int32] = EMPTY
        if isinstance(result, FactSet):
            self.statements = result.all()
            ends = _ends(run, self.statements, result.reach)
            #: The entity of each row; of a fact whose end is a value its subject.
            self.rows = np.where(ends < 0, run.snapshot.subjects(self.statements), ends)
            self._start = PathEnds(np.arange(len(ends)), ends, self.statements)
        else:
            self.rows = result
            self._start = PathEnds(np.arange(len(result)), result, np.full(len(result), -1, np.int32))
        if places is not None:
            of, at, by = self._start
            self._start = PathEnds(of.take(places), at.take(places), by.take(places))

    def __len__(self) -> int:
        return len(self.rows)

    def cells(self, expression: grouped.Expression) -> PlacedValues:
        """Return the values of an expression for all rows."""
        values = self._cache.get(expression)
        if values is None:
            values = self._cache[expression] = self.found(expression, self._start, 0)
        return values

    def bound(self, keys: Sequence[grouped.Expression]) -> Bindings:
        """Return the joined paths of keys: one binding for each way to follow them all, so that two keys that share
        their first steps refer to the same thing. A path that leads nowhere is bound to nothing.
        """
        row, ends = self._start.of, dict[int, PathEnds]()
        for key in keys:
            before: int | None = None
            for step in lead(key):
                if step not in ends:
                    start = self._start if before is None else ends[before]
                    at = start.at.take(row) if before is None else start.at
                    places, reached = self._outer(at, step)
                    if len(places) > MAX_BINDINGS + len(self):
                        raise PlanError(f"{len(places):,} ways from rows to keys are too many", hint="group by fewer keys")
                    row = row.take(places)
                    for earlier, end in ends.items():
                        ends[earlier] = PathEnds(end.of.take(places), end.at.take(places), end.by.take(places))
                    ends[step] = reached
                before = step
        return Bindings(row, ends)

    def at(self, bindings: Bindings, steps: Sequence[int]) -> PathEnds:
        """Return the end of each binding after these steps."""
        if not steps:
            start = self._start
            return PathEnds(np.arange(len(bindings.row)), start.at.take(bindings.row), start.by.take(bindings.row))
        end = bindings.ends[steps[-1]]
        return PathEnds(np.arange(len(bindings.row)), end.at, end.by)

    def warn(self) -> None:
        """Warn of the values that could not be calculated."""
        for reason, count in self.odd.items():
            self.run.warn(f"{reason}: {numbered(count, 'value is', 'values are')} left out")

    @property
    def chosen(self) -> NDArray[np.int32]:
        """The entities, or the statements, that the rows are."""
        return self._start.by if isinstance(self.node.of, Facts) else self._start.at

    def gone_over(self) -> dict[int, NDArray[np.int32]]:
        """Return the statements that the paths of these rows traverse, sorted, by index in `Group.facts`."""
        statements: dict[int, list[NDArray[np.int32]]] = {}
        expressions = [key.of for key in self.node.keys] + [measure.of for measure in self.node.measures if measure.of is not None]
        expressions += tested(self.node.where)
        for path in dict.fromkeys(path for expression in expressions for path in ways_of(expression)):
            for length in range(1, len(path.steps) + 1):
                statements.setdefault(path.steps[length - 1], []).append(self._follow(self._start, path.steps[:length]).by)
        return {number: different(np.concatenate(parts)) for number, parts in statements.items()}

    # -- joining -----------------------------------------------------------------------------------

    def found(self, expression: grouped.Expression, base: PathEnds, skip: int) -> PlacedValues:
        """Return the values of an expression, where `base` are the ends of paths `skip` steps from the rows."""
        if isinstance(expression, grouped.ValuePath):
            return self._values(expression, self._follow(base, expression.steps[skip:]))
        if isinstance(expression, grouped.RowTotal):
            return self._summed(expression, base)
        if isinstance(expression, grouped.FirstOf):
            return self._either(expression, base, skip)
        paths = list(dict.fromkeys(parts_of(expression)))
        if not paths:
            return self._calculated(expression, base.of.tolist(), [{}] * len(base.of))
        if len(paths) == 1:
            return self._unary(expression, paths[0], self.found(paths[0], base, skip))
        prefix = lead(expression)
        base = self._follow(base, prefix[skip:])
        here = PathEnds(np.arange(len(base.of)), base.at, base.by)
        parts = {path: self.found(path, here, len(prefix)) for path in paths}
        sizes = np.array([np.bincount(values.of, minlength=len(base.of)) for values in parts.values()])
        ambiguous = int((sizes > 1).any(axis=0).sum())
        if ambiguous:
            self.run.warn(
                f"{expression.name}: {numbered(ambiguous, 'row has', 'rows have')} several values to calculate with, "
                f"and {'is' if ambiguous == 1 else 'are'} left out"
            )
        single = (sizes == 1).all(axis=0)
        parts = {
            path: PlacedValues(values.of[single[values.of]], values.at[single[values.of]], values.series)
            for path, values in parts.items()
        }
        of = base.of[single]
        numbers = decimals(expression, {path: values.series.decimals(values.at) for path, values in parts.items()})
        if numbers is not None:
            return PlacedValues(of, np.arange(len(of)), DecimalSeries(numbers))
        items = zip(*[values.cells() for values in parts.values()], strict=True)
        return self._calculated(expression, of.tolist(), (dict(zip(paths, item, strict=True)) for item in items))

    def _unary(self, expression: grouped.Expression, way: Part, found: PlacedValues) -> PlacedValues:
        """Return values computed from one value each; equal values are computed once."""
        numbers = decimals(expression, {way: found.series.decimals(found.at)})
        if numbers is not None:
            return PlacedValues(found.of, np.arange(len(found.of)), DecimalSeries(numbers))
        first, inverse = first_of_each(found.series.codes(found.at))
        counts = np.bincount(inverse, minlength=len(first)).tolist()
        cells: list[Cell | None] = []
        results = calculated(expression, [{way: cell} for cell in found.series.cells(found.at.take(first))])
        for cell, count in watched(zip(results, counts, strict=True)):
            if isinstance(cell, Inapplicable):
                self.odd[str(cell)] += count
                cells.append(None)
            else:
                cells.append(cell)
        known = np.array([cell is not None for cell in cells], bool).take(inverse) if cells else np.zeros(0, bool)
        return PlacedValues(found.of[known], inverse[known], ListSeries(cells))

    def _outer(self, at: NDArray[np.int32], step: int) -> tuple[Places, PathEnds]:
        """Follow one step from the ends of bindings: return the binding that each result continues, and the new ends.
        A binding that leads nowhere stays, with the end -1.
        """
        reached = self._follow(PathEnds(np.arange(len(at)), at, at), (step,))
        if len(reached.of) == len(at) and (reached.of == np.arange(len(at))).all():
            return reached.of, reached
        is_lost = np.ones(len(at), bool)
        is_lost[reached.of] = False
        lost = np.flatnonzero(is_lost)
        no_end = np.full(len(lost), -1, np.int32)
        places = np.concatenate([reached.of, lost])
        order = places.argsort(kind="stable")
        ends = (np.concatenate([column, no_end]).take(order) for column in (reached.at, reached.by))
        return places.take(order), PathEnds(places.take(order), *ends)

    def _follow(self, start: PathEnds, steps: Iterable[int]) -> PathEnds:
        for number in steps:
            check()
            node = self.node.facts[number]
            facts = self.run.facts(node)
            statements = facts.all()
            anchored = _anchor(node)
            if anchored == "object":
                statements = statements[: self.run.snapshot.split(statements)]
                anchors = self.run.snapshot.relation_object.take(statements)
            else:
                anchors = self.run.snapshot.subjects(statements)
            places, chosen = _matching_pairs(start.at, anchors)
            by = int(statements[0]) + chosen.astype(np.int32) if _consecutive(statements) else statements.take(chosen)
            # An attribute leads back to its subject.
            at = start.at.take(places) if anchored == facts.reach == "subject" else _ends(self.run, by, facts.reach)
            start = PathEnds(start.of.take(places), at, by)
        return start

    def _values(self, way: grouped.ValuePath, arrived: PathEnds) -> PlacedValues:
        if way.values is None:
            known = arrived.at >= 0
            series = EntitySeries(self.run.snapshot, arrived.at)
            return PlacedValues(arrived.of[known], np.flatnonzero(known), series)
        carriers, order, values = self._bag(way.values)
        places, chosen = _matching_pairs(arrived.by, carriers, sort=False)
        return PlacedValues(arrived.of.take(places), chosen if order is None else order.take(chosen), values)

    def _bag(self, number: int) -> tuple[NDArray[np.int32], Places | None, Series]:
        """Return the sorted carriers of a bag, the position of each one's value (None: in sequence), and the values."""
        entry = self._bags.get(number)
        if entry is None:
            bag: Bag = self.run.values(self.node.values[number])
            parts = [part.carriers for part in bag.parts if part.kind != "given"]
            carriers = np.concatenate(parts) if parts else EMPTY
            order = None if (carriers[1:] >= carriers[:-1]).all() else carriers.argsort(kind="stable")
            entry = self._bags[number] = carriers if order is None else carriers.take(order), order, BagSeries(bag)
        return entry

    # -- calculating -------------------------------------------------------------------------------

    def _summed(self, expression: grouped.RowTotal, base: PathEnds) -> PlacedValues:
        """Return at most one value for each row."""
        size = len(base.of)
        values = self.found(expression.of, PathEnds(np.arange(size), base.at, base.by), 0)
        measure = grouped.Measure(expression.name, expression.function, expression.of)
        column = Aggregate(self.run, measure, "row").of_groups(size, values.of, values.at, values.series)
        known = column.there
        if expression.function in ("count", "distinct"):
            # Counts are numbers to calculate with.
            cells = [Cell(Quantity(cell.value), cell.text) for cell in watched(column.cells()) if cell is not None]
            return decoded(base.of[known], cells)
        return PlacedValues(base.of[known], column.at[known], column.series)

    def _either(self, expression: grouped.FirstOf, base: PathEnds, skip: int) -> PlacedValues:
        """Return the values of the first expression, and of the second for each end of the shared steps where the
        first has none.
        """
        base = self._follow(base, expression.steps[skip:])
        ends, done = PathEnds(np.arange(len(base.of)), base.at, base.by), len(expression.steps)
        first, second = (self.found(part, ends, done) for part in (expression.first, expression.second))
        is_missing = np.ones(len(base.of), bool)
        is_missing[first.of] = False
        is_used = is_missing[second.of]
        of = base.of.take(np.concatenate([first.of, second.of[is_used]]))
        if not is_used.any():
            return PlacedValues(of, first.at, first.series)
        cells = [*first.cells(), *second.series.cells(second.at[is_used])]
        order = of.argsort(kind="stable")
        return PlacedValues(of.take(order), order, ListSeries(cells))

    def _calculated(self, expression: grouped.Expression, of: list[int], items: Iterable[Mapping[Part, Cell]]) -> PlacedValues:
        """Return the value of the expression for each item."""
        places: list[int] = []
        cells: list[Cell] = []
        for place, cell in watched(zip(of, calculated(expression, list(items)), strict=True)):
            if isinstance(cell, Inapplicable):
                self.odd[str(cell)] += 1
            else:
                places.append(place)
                cells.append(cell)
        return decoded(places, cells)


def _ends(run: Run, statements: NDArray[np.int32], reach: str) -> NDArray[np.int32]:
    """Return the entity that each statement reaches, -1 for a value."""
    if reach == "subject":
        return run.snapshot.subjects(statements)
    ends = np.full(len(statements), -1, np.int32)
    relation = statements < run.snapshot.relations
    ends[relation] = run.snapshot.relation_object.take(statements[relation])
    return ends


def _anchor(node: Facts) -> str:
    while (inner := passed(node)) is not None:
        node = inner
    return node.anchor if isinstance(node, alg.Scan) else "subject"


def _matching_pairs(left: NDArray[np.int32], right: NDArray[np.int32], *, sort: bool = True) -> tuple[Places, Places]:
    """Return all pairs of positions of equal numbers in `left` and `right`; `right` must be sorted unless `sort` is
    set.
    """
    pairs = _matching_unique(left, right, sort=sort)
    if pairs is not None:
        return pairs
    low, sizes = equal_runs(left, right, sort=sort)
    total = int(sizes.sum())
    if total > MAX_VALUES:
        raise PlanError(f"{total} ways from rows to values are too many", hint="ask it of fewer rows, or over fewer steps")
    if total == len(left) and (sizes == 1).all():
        places, chosen = np.arange(total), low
    else:
        places, chosen = np.arange(len(left)).repeat(sizes), ranges(low, low + sizes)
    return places, right.argsort(kind="stable").take(chosen) if sort else chosen


def _matching_unique(left: NDArray[np.int32], right: NDArray[np.int32], *, sort: bool) -> tuple[Places, Places] | None:
    """Return the same if the numbers of `right` are distinct and dense, else None. Most columns are like this, and
    every pass over a million unordered rows counts.
    """
    if not len(right):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    chosen: NDArray[Any]
    if _consecutive(right):
        chosen = left.astype(np.int64) - int(right[0])
        inside = (chosen >= 0) & (chosen < len(right))
    else:
        maximum = int(right.max())
        if not sort or maximum >= DENSE * (len(left) + len(right)):
            return None
        place = np.full(maximum + 1, -1, np.int32)
        place[right] = np.arange(len(right), dtype=np.int32)
        if np.count_nonzero(place >= 0) < len(right):
            return None
        if _consecutive(left) and left[0] >= 0:
            chosen = place[int(left[0]) : int(left[-1]) + 1]
            if len(chosen) < len(left):
                chosen = np.concatenate([chosen, np.full(len(left) - len(chosen), -1, np.int32)])
        else:
            chosen = np.where((left >= 0) & (left <= maximum), place.take(left, mode="clip"), -1)
        inside = chosen >= 0
    chosen = chosen.astype(np.int64, copy=False)
    if inside.all():
        return np.arange(len(left)), chosen
    places = np.flatnonzero(inside)
    return places, chosen.take(places)


def _consecutive(numbers: NDArray[np.int32]) -> bool:
    """Return whether each number is its predecessor plus 1."""
    return bool(len(numbers)) and int(numbers[-1]) - int(numbers[0]) == len(numbers) - 1 and bool((np.diff(numbers) == 1).all())


# -- expressions -----------------------------------------------------------------------------------
# The parts of expressions over rows (paths, and aggregates within a row), and computing with the
# values at the ends of these: arithmetic with units, and parts of times.


#: The parts of an expression that have values of their own.
Part: TypeAlias = grouped.ValuePath | grouped.RowTotal | grouped.FirstOf


def parts_of(expression: grouped.Expression) -> Iterable[Part]:
    """Yield the parts of an expression that have values of their own."""
    if isinstance(expression, grouped.ValuePath | grouped.RowTotal | grouped.FirstOf):
        yield expression
    elif isinstance(expression, grouped.Computed):
        for part in expression.parts:
            yield from parts_of(part)


def ways_of(expression: grouped.Expression) -> Iterable[grouped.ValuePath]:
    """Yield all paths of an expression, also those aggregated within a row."""
    for part in parts_of(expression):
        if isinstance(part, grouped.RowTotal):
            yield from ways_of(part.of)
        elif isinstance(part, grouped.FirstOf):
            yield part.first
            yield from ways_of(part.second)
        else:
            yield part


def tested(test: grouped.Test | None) -> list[grouped.Expression]:
    """Return the expressions in a test of rows."""
    if isinstance(test, grouped.CellTest):
        return [] if isinstance(test.of, int) else [test.of]
    if isinstance(test, grouped.NotTest):
        return tested(test.test)
    return [] if test is None else [expression for part in test.tests for expression in tested(part)]


def lead(expression: grouped.Expression) -> tuple[int, ...]:
    """Return the steps that all paths of an expression begin with."""
    ways = [part.steps for part in parts_of(expression)]
    return tuple(steps[0] for steps in takewhile(lambda steps: len(set(steps)) == 1, zip(*ways, strict=False)))


def calculate(expression: grouped.Expression, item: Mapping[Part, Cell], *, seconds: bool = True) -> Any:
    """Return the value of an expression, given the value and text of each of its parts. With `seconds`, differences
    of times are in seconds, not in days. Raise `Inapplicable` if the values have the wrong types.
    """
    if isinstance(expression, grouped.GivenValue):
        return expression.value
    if isinstance(expression, grouped.ValuePath | grouped.RowTotal | grouped.FirstOf):
        return item[expression].value
    function, values = expression.function, [calculate(part, item, seconds=seconds) for part in expression.parts]
    if function == "name":
        return shown(values[0])
    if function == "clock":
        if not isinstance(values[0], Quantity) or clock_text(values[0]) is None:
            raise Inapplicable(f"{expression.name}: no duration in seconds, minutes, hours, days or weeks")
        return values[0]
    if function in grouped.TIME_PARTS or function in grouped.CHOSEN:
        if not isinstance(values[-1], Time):
            raise Inapplicable(f"{expression.name}: no time")
        if function in grouped.TIME_PARTS:
            return part_of_time(values[0], function, expression.name)
        return (truncated if function == "date_trunc" else in_zone)(values[1], values[0], expression.name)
    if function in (*grouped.POINT_PARTS, *grouped.PAIRED):
        return _point_function(expression, values)
    left, right = values
    if function == "-" and isinstance(left, Time) and isinstance(right, Time):
        between = time_between(left, right, {"absolute": "false"})
        if between.unit != "day" or (not seconds and (left.start - right.start) % _EXACT_DAYS == 0):
            return between
        if not seconds:
            raise _InSeconds
        return time_between(left, right, {"absolute": "false", "unit": "second"})
    return _arithmetic(expression, left, right)


def _point_function(expression: grouped.Computed, values: Sequence[Any]) -> Any:
    """Return a coordinate of a point, the distance of two points, or the point at two numbers of degrees."""
    function, name = expression.function, expression.name
    if function == "point":
        numbers = [value.number for value in values if isinstance(value, Quantity) and fold_unit(value.unit) in _DEGREES]
        if len(numbers) != len(values):
            raise Inapplicable(f"{name}: no number of degrees")
        try:
            return Point.of(*map(float, numbers))
        except (ValueError, OverflowError):
            raise Inapplicable(f"{name}: no longitude from -180 to 180 and latitude from -90 to 90") from None
    points = [value if isinstance(value, Point) else read_point(value) if isinstance(value, str) else None for value in values]
    known = [point for point in points if point is not None]
    if len(known) < len(points):
        raise Inapplicable(f"{name}: no point")
    if function == "distance":
        return Quantity(plain(exact(known[0].distance(known[1]))), "metre")
    return Quantity(plain(exact(known[0].longitude if function == "longitude" else known[0].latitude)))


#: Units of numbers that may be degrees.
_DEGREES: Final = frozenset((NO_UNIT, "°", "deg", "degree"))
#: Multiples of 27 seconds are finite decimal fractions of a day.
_EXACT_DAYS: Final = 27


class _InSeconds(Exception):
    """Raised if a difference of times is not an exact number of days: the whole column is then in seconds."""


def calculated(expression: grouped.Expression, items: Sequence[Mapping[Part, Cell]]) -> list[Cell | Inapplicable]:
    """Return the cell of an expression for each item, or the reason why there is none. Differences of times are in
    days if all are exact in days, otherwise in seconds.
    """
    try:
        return [_cell(expression, item, seconds=False) for item in watched(items)]
    except _InSeconds:
        return [_cell(expression, item, seconds=True) for item in watched(items)]


def _cell(expression: grouped.Expression, item: Mapping[Part, Cell], *, seconds: bool) -> Cell | Inapplicable:
    try:
        value = calculate(expression, item, seconds=seconds)
    except Inapplicable as error:
        return error
    clock = clock_text(value) if isinstance(expression, grouped.Computed) and expression.function == "clock" else None
    return Cell(value, clock or shown(value))


def decimals(expression: grouped.Expression, of: Mapping[Part, Decimals | None]) -> Decimals | None:
    """Return sums, differences and products of exact numbers, each of one unit, as arrays; None if `calculate` must
    handle them one by one.
    """
    if isinstance(expression, grouped.GivenValue):
        return ListSeries([Cell(expression.value, "")]).decimals(np.zeros(1, np.int64))
    if isinstance(expression, grouped.ValuePath | grouped.RowTotal | grouped.FirstOf):
        return of[expression]
    if expression.function not in ("+", "-", "*"):
        return None
    left, right = (decimals(part, of) for part in expression.parts)
    if left is None or right is None:
        return None
    if expression.function == "*":
        product, digits = unit_of_product(left.unit, right.unit), left.digits + right.digits
        if product is None or product[1] != 1 or digits > MAX_DECIMALS or largest(left) * largest(right) >= MAX_EXACT:
            return None
        return Decimals(left.integers * right.integers, digits, product[0])
    if NO_UNIT not in (left.unit, right.unit) and left.unit != right.unit:
        return None
    digits = max(left.digits, right.digits)
    if (largest(left) + largest(right)) * 10 ** (digits - min(left.digits, right.digits)) >= MAX_EXACT:
        return None
    a, b = (number.integers * 10 ** (digits - number.digits) for number in (left, right))
    return Decimals(a + b if expression.function == "+" else a - b, digits, right.unit if left.unit == NO_UNIT else left.unit)


def largest(numbers: Decimals) -> int:
    """Return the largest absolute value of the integers."""
    return int(np.abs(numbers.integers).max(initial=0))


def _arithmetic(expression: grouped.Computed, left: Any, right: Any) -> Quantity:
    if not isinstance(left, Quantity) or not isinstance(right, Quantity):
        raise Inapplicable(f"{expression.name}: no number")
    function = expression.function
    # A text without the numbers, so that rows with the same units share a warning.
    by = f"{expression.name}: numbers in {left.unit} by numbers in {right.unit}"
    if function == "*":
        product = unit_of_product(left.unit, right.unit)
        if product is None:
            raise Inapplicable(by)
        return Quantity(plain(exact(left.number) * exact(right.number) / product[1]), product[0])
    if function == "/":
        if not right.number:
            raise Inapplicable(f"{expression.name}: divided by 0")
        unit = left.unit
        if right.unit != NO_UNIT:
            if left.unit == NO_UNIT:
                raise Inapplicable(by)
            left, right = _in_one_unit(left, right, by)
            unit = NO_UNIT
        return Quantity(quotient(exact(left.number) / exact(right.number)), unit)
    left, right = _in_one_unit(left, right, f"{expression.name}: numbers in {left.unit} and in {right.unit}")
    a, b = exact(left.number), exact(right.number)
    return Quantity(plain(a + b if function == "+" else a - b), right.unit if left.unit == NO_UNIT else left.unit)


def _in_one_unit(left: Quantity, right: Quantity, otherwise: str) -> tuple[Quantity, Quantity]:
    """Convert two numbers to the unit of the first; raise `Inapplicable` with `otherwise` as its text if that is
    impossible.
    """
    try:
        return alike(left, right, "")[:2]
    except Inapplicable:
        raise Inapplicable(otherwise) from None
