"""Measures of groups: counts, sums, means, extremes, lists and top rows.

A measure of a group equals the operator of the same name on that group alone: the most frequent unit counts, sums are
exact, texts are read by the numbers they begin with. Warnings about ignored values are given once for the whole
column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.algebra.grouped import Measure
from condgraph.engine.bounds import CHUNK, changed, in_order, places_in_order, watched
from condgraph.engine.errors import numbered
from condgraph.engine.execute.aggregates import exact_sum, middle, sample_deviation
from condgraph.engine.execute.grid import Column, Competing, competing, fixed_order, group_of, listed, size_of, text_cell
from condgraph.engine.execute.left_out import in_unit
from condgraph.engine.execute.number_texts import inner_numbers, leading_numbers, read_as_numbers, summed_numbers
from condgraph.engine.execute.series import MAX_EXACT, MAX_SUM, Cell, ListSeries, Places, Series, identity, runs
from condgraph.engine.operands import Inapplicable, plain, quotient
from condgraph.engine.values import NO_UNIT, Kind, Number, Quantity, collapse

if TYPE_CHECKING:
    from condgraph.engine.execute.run import Run

T = TypeVar("T")
#: The sum of no values, distinct (by identity) from a sum that happens to be 0.
NO_SUM: Final = text_cell(Quantity(0))


def some(items: Sequence[T]) -> Iterable[T]:
    """Return the items, with checks of the deadline if they are many; most groups are small."""
    return items if len(items) <= CHUNK else watched(items)


class Aggregate:
    """One measure over all groups, or rows (`noun`). Warnings are collected until the end."""

    def __init__(self, run: Run, measure: Measure, noun: str = "group") -> None:
        self.run, self.measure, self.noun = run, measure, noun
        #: The numbers of ignored values, of all values, and of groups without values; the units that count.
        self.left = self.total = self.empty = 0
        self.units: set[tuple[str, str]] = set()
        self.tied = 0

    def warn(self) -> None:
        """Warn of ignored values, empty groups and ties."""
        name, warn = self.measure.name, self.run.warn
        if self.left:
            nouns = {f"{noun}{in_unit(unit)}" for noun, unit in self.units}
            wanted = nouns.pop() if len(nouns) == 1 else "of the most common type and unit of their group"
            if self.left == 1:
                single = wanted.replace("numbers", "a number", 1).replace("times", "a time", 1)
                warn(f"{name}: 1 of {self.total} values is not {single}, and is left out")
            else:
                warn(f"{name}: {self.left} of {self.total} values are not {wanted}, and are left out")
        if self.empty:
            warn(f"{name}: {numbered(self.empty, f'{self.noun} has', f'{self.noun}s have')} no values to compute it from")
        if self.tied:
            more = f"{numbered(self.tied, 'group has', 'groups have')} more rows that tie with the last one shown"
            warn(f"{name}: {more}; ties are cut by name")

    # -- measures of values as arrays --------------------------------------------------------------

    def of_groups(self, size: int, group: Places, at: Places, series: Series) -> Column:
        """Return the measure of each of `size` groups, given the group of each value and its position in a series,
        and give its warnings.
        """
        arrays = _ARRAYS.get(self.measure.function)
        column = None if arrays is None else arrays(self, size, group, at, series)
        if column is None:
            order = in_order((group,))
            group, at = group.take(order), at.take(order)
            cells = series.cells(at)
            column = Column.of([self.of(cells[low:high]) for low, high in watched(bounds_of(group, size))])
        self.warn()
        return zeros(column) if self.measure.function == "sum" else column

    def _counts(self, size: int, group: Places, at: Places, series: Series) -> Column:
        return counts(np.bincount(group, minlength=size))

    def _differents(self, size: int, group: Places, at: Places, series: Series) -> Column:
        if not len(at):
            return counts(np.zeros(size, np.int64))
        codes = series.codes(at)
        order = in_order((group, codes))
        group, codes = group.take(order), codes.take(order)
        return counts(np.bincount(group[changed(group, codes)], minlength=size))

    def _sums(self, size: int, group: Places, at: Places, series: Series) -> Column | None:
        numbers = series.decimals(at)
        if numbers is None:
            return None
        bound = int(np.abs(numbers.integers).max()) * len(at)
        if bound >= MAX_SUM:
            return None
        if bound < MAX_EXACT:
            # Floats add integers of this size exactly.
            totals = np.bincount(group, weights=numbers.integers, minlength=size).astype(np.int64)
        else:
            totals = np.zeros(size, np.int64)
            np.add.at(totals, group, numbers.integers)
        cells: list[Cell | None] = []
        sizes = np.bincount(group, minlength=size)
        for total, count in watched(zip(totals.tolist(), sizes.tolist(), strict=True)):
            if not count:
                cells.append(NO_SUM if self.measure.function == "sum" else self._empty())
            elif self.measure.function == "sum":
                cells.append(self._number(numbers.exact(total), numbers.unit))
            else:
                cells.append(self._number(numbers.exact(total, count), numbers.unit, quotient))
        return Column.of(cells)

    def _middles(self, size: int, group: Places, at: Places, series: Series) -> Column | None:
        numbers = series.decimals(at)
        if numbers is None:
            return None
        order = in_order((group, numbers.integers))
        ordered = numbers.integers.take(order).tolist()
        cells: list[Cell | None] = []
        low = 0
        for count in watched(np.bincount(group, minlength=size).tolist()):
            if count:
                total = ordered[low + (count - 1) // 2] + ordered[low + count // 2]
                cells.append(self._number(numbers.exact(total, 2), numbers.unit))
            else:
                cells.append(self._empty())
            low += count
        return Column.of(cells)

    def _extremes(self, size: int, group: Places, at: Places, series: Series) -> Column | None:
        largest = self.measure.function == "max"
        numbers, times = series.decimals(at), series.times(at)
        if numbers is None and times is None:
            return None
        # The first of equal values with several texts, and of times that begin or end together.
        sizes = numbers.integers if numbers is not None else times[1 if largest else 0]  # type: ignore[index]
        ties = [series.ranks(at), series.spellings(at)]
        order = in_order([group, ~sizes if largest else sizes, *(tie for tie in ties if tie is not None)])
        first = order[changed(group.take(order))]
        places = np.full(size, -1, np.int64)
        places[group.take(first)] = at.take(first)
        for _ in range(size - len(first)):
            self._empty()
        return Column(series, places)

    def _lists(self, size: int, group: Places, at: Places, series: Series) -> Column | None:
        if len(group) > size or (np.bincount(group, minlength=size) > 1).any():
            codes, spellings = series.codes(at), series.spellings(at)
            order = in_order((group, codes) if spellings is None else (group, codes, spellings))
            is_first = changed(group.take(order), codes.take(order))
            group, at = group.take(order[is_first]), at.take(order[is_first])
            if (group[1:] == group[:-1]).any():
                return None
        places = np.full(size, -1, np.int64)
        places[group] = at
        return Column(series, places)

    # -- measures of values, group by group --------------------------------------------------------

    def of(self, cells: Sequence[Cell]) -> Cell | None:
        """Return the measure of a group with these values."""
        return _VALUES[self.measure.function](self, cells)

    def of_summed(self, count: int, total: Any = 0, best: Cell | None = None) -> Cell | None:
        """Return the measure of a group that a store aggregated: the count of its values (all numbers without a unit,
        or all of one type), their exact sum, and the largest or smallest.
        """
        function = self.measure.function
        if function in ("count", "distinct"):
            return text_cell(count)
        if function == "sum":
            return self._number(total, NO_UNIT) if count else NO_SUM
        if not count:
            return self._empty()
        return self._number(Fraction(total) / count, NO_UNIT) if function == "mean" else best

    def _values(self, cells: Sequence[Cell]) -> Cell | None:
        values = each_once(cells)
        return listed(
            [values[position] for position in places_in_order(len(values), lambda position: fixed_order(values[position]))]
        )

    def numbers(self, cells: Sequence[Cell]) -> tuple[list[Any], str]:
        """Return the numbers of the most frequent unit, and the unit."""
        quantities = [cell.value for cell in some(cells) if isinstance(cell.value, Quantity)]
        if not quantities and cells and (numbers := summed_numbers([cell.text for cell in cells])) is not None:
            self.run.warn(f"{self.measure.name}: {read_as_numbers(cell.value for cell in cells)}")
            return numbers, NO_UNIT
        _, unit, _ = competing(quantities)
        chosen = [value.number for value in some(quantities) if value.unit == unit]
        unitless = unit == NO_UNIT and len(quantities) > len(chosen)
        self._omit(len(cells), len(cells) - len(chosen), "numbers without a unit" if unitless else "numbers", unit)
        return chosen, unit

    def _sum(self, cells: Sequence[Cell]) -> Cell | None:
        numbers, unit = self.numbers(cells)
        return self._number(exact_sum(numbers), unit) if numbers else NO_SUM

    def _mean(self, cells: Sequence[Cell]) -> Cell | None:
        numbers, unit = self.numbers(cells)
        return self._number(exact_sum(numbers) / len(numbers), unit, quotient) if numbers else self._empty()

    def _median(self, cells: Sequence[Cell]) -> Cell | None:
        numbers, unit = self.numbers(cells)
        return self._number(middle(numbers), unit) if numbers else self._empty()

    def _deviation(self, cells: Sequence[Cell]) -> Cell | None:
        numbers, unit = self.numbers(cells)
        return self._number(sample_deviation(numbers), unit, quotient) if len(numbers) > 1 else self._empty()

    def _number(self, number: Any, unit: str, of: Callable[[Any], Number] = plain) -> Cell | None:
        try:
            return text_cell(Quantity(of(number), unit))
        except Inapplicable as error:
            self.run.warn(f"{self.measure.name}: {error}")
            return None

    def _empty(self) -> Cell | None:
        self.empty += 1
        return None

    def _omit(self, total: int, left: int, noun: str, unit: str) -> None:
        self.total += total
        self.left += left
        if left:
            self.units.add((noun, unit))

    def _extreme(self, cells: Sequence[Cell]) -> Cell | None:
        if not cells:
            return self._empty()
        largest = self.measure.function == "max"
        ranked = self.ranked(cells, largest=largest)
        best = (max if largest else min)(rank for rank, _ in some(ranked))
        # One of equal values with several texts.
        return min((cell for rank, cell in some(ranked) if rank == best), key=fixed_order)

    def ranked(self, cells: Sequence[Cell], *, largest: bool) -> list[tuple[Any, Cell]]:
        """Return the competing cells, each with its sort key."""
        winner = competing([cell.value for cell in cells])
        if winner.kind is not None:
            chosen = [cell for cell in some(cells) if group_of(cell.value) == (winner.kind, winner.unit)]
            noun = "numbers" if winner.kind is Kind.QUANTITY else "times"
            self._omit(len(cells), len(cells) - len(chosen), noun, winner.unit)
            return [(size_of(cell.value, largest=largest), cell) for cell in some(chosen)]
        texts = [collapse(cell.text) for cell in cells]
        if leading_numbers(texts) is not None:
            self.run.warn(f"{self.measure.name}: the values are texts and are compared by the numbers in them")
            return [(inner_numbers(cell.text) or [], cell) for cell in some(cells)]
        self.run.warn(f"{self.measure.name}: the values are texts and are compared by code point")
        return list(zip(texts, cells, strict=True))

    # -- measures of rows --------------------------------------------------------------------------

    def best(self, rows: Sequence[tuple[Cell, Cell]]) -> Cell | None:
        """Return the rows with the largest or smallest values, given each row with one of its values; ties are
        ordered by name.
        """
        largest, number = self.measure.function == "top", self.measure.number
        of_value: dict[int, list[Cell]] = {}
        for row, value in some(rows):
            of_value.setdefault(id(value), []).append(row)
        best: dict[Any, tuple[Any, Cell]] = {}
        for rank, value in some(self.ranked([value for _, value in some(rows)], largest=largest)) if rows else ():
            for row in of_value[id(value)]:
                key = identity(row.value)
                if key not in best or (rank > best[key][0] if largest else rank < best[key][0]):
                    best[key] = rank, row
        # By name first, then stably by value.
        pairs = list(best.values())
        named = [pairs[position] for position in places_in_order(len(pairs), lambda position: fixed_order(pairs[position][1]))]
        order = [named[position] for position in places_in_order(len(named), lambda position: named[position][0], reverse=largest)]
        if len(order) > number and order[number][0] == order[number - 1][0]:
            self.tied += 1
        return listed([row for _, row in order[:number]])


def each_once(cells: Sequence[Cell]) -> list[Cell]:
    """Return each value once, with the first of its texts in order."""
    distinct_cells: dict[Any, Cell] = {}
    for cell in some(cells):
        key = identity(cell.value)
        previous = distinct_cells.get(key)
        if previous is None or cell.text < previous.text:
            distinct_cells[key] = cell
    return list(distinct_cells.values())


#: Measures of all groups at once, for uniform values; they return None for others. Counts always work.
_ARRAYS: Final[dict[str, Callable[[Aggregate, int, Places, Places, Series], Column | None]]] = {
    "count": Aggregate._counts,
    "distinct": Aggregate._differents,
    "sum": Aggregate._sums,
    "mean": Aggregate._sums,
    "median": Aggregate._middles,
    "min": Aggregate._extremes,
    "max": Aggregate._extremes,
    "values": Aggregate._lists,
}
_VALUES: Final[dict[str, Callable[[Aggregate, Sequence[Cell]], Cell | None]]] = {
    "sum": Aggregate._sum,
    "mean": Aggregate._mean,
    "median": Aggregate._median,
    "stdev": Aggregate._deviation,
    "min": Aggregate._extreme,
    "max": Aggregate._extreme,
    "values": Aggregate._values,
}


def bounds_of(group: Places, size: int) -> list[tuple[int, int]]:
    """Return the begin and end of the values of each of `size` groups; `group` is sorted."""
    low, sizes = runs(group, size)
    return list(zip(low.tolist(), (low + sizes).tolist(), strict=True))


def counts(numbers: NDArray[Any]) -> Column:
    """Return a column of counts."""
    distinct_counts, inverse = np.unique(numbers, return_inverse=True)
    return Column(ListSeries([text_cell(count) for count in distinct_counts.tolist()]), inverse.astype(np.int64))


def zeros(sums: Column) -> Column:
    """Replace sums of nothing by 0 in the unit of the other sums, so that 0 € appears among sums in €."""
    cells = sums.cells()
    if not any(cell is NO_SUM for cell in cells):
        return sums
    unit = competing([cell.value for cell in cells if cell is not None and cell is not NO_SUM]).unit
    if unit == NO_UNIT:
        return sums
    return Column.of([text_cell(Quantity(0, unit)) if cell is NO_SUM else cell for cell in watched(cells)])


def leaves_out(name: str, wins: Competing) -> str:
    """Return the warning about cells that cannot be ordered with the others."""
    noun = "a number" if wins.kind is Kind.QUANTITY else "a time"
    single = wins.others == 1
    what = f"{numbered(wins.others, 'cell is', 'cells are')} not {noun}{in_unit(wins.unit)}"
    return f"order by {name}: {what}, and {'is' if single else 'are'} sorted last"
