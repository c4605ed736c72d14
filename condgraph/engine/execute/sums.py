"""What a group is summed up to: each measure of the values or the rows of one group.

A measure of a group is what the operator of the same name gives of that group alone: the most
frequent unit counts, sums are exact, texts are read by the numbers they begin with. What is left
out is told once for the whole column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, TypeVar

from condgraph.engine.algebra.grouped import Measure
from condgraph.engine.errors import numbered
from condgraph.engine.execute.aggregates import exact_sum, middle
from condgraph.engine.execute.grid import Cell, Competing, competing, fixed_order, group_of, identity, listed, size_of, text_cell
from condgraph.engine.execute.left_out import in_unit
from condgraph.engine.execute.number_texts import inner_numbers, leading_numbers, read_as_numbers, summed_numbers
from condgraph.engine.operands import Inapplicable, plain, quotient
from condgraph.engine.pieces import PIECE, places_in_order, watched
from condgraph.engine.values import NO_UNIT, Kind, Number, Quantity, collapse

if TYPE_CHECKING:
    from condgraph.engine.execute.run import Run

T = TypeVar("T")
#: The sum of nothing, which is told from a sum that happens to be 0.
NO_SUM: Final = text_cell(Quantity(0))


def some(items: Sequence[T]) -> Iterable[T]:
    """The items, with a look at the clock where they are many: most groups are small."""
    return items if len(items) <= PIECE else watched(items)


class Column:
    """One measure over all groups, or rows, as `noun` says: what it has to say is kept until the end."""

    def __init__(self, run: Run, measure: Measure, noun: str = "group") -> None:
        self.run, self.measure, self.noun = run, measure, noun
        #: Values that are left out, of how many; the units that count; groups without any.
        self.left = self.total = self.empty = 0
        self.units: set[tuple[str, str]] = set()
        self.tied = 0

    def warn(self) -> None:
        """Say what was left out."""
        name, warn = self.measure.name, self.run.warn
        if self.left:
            nouns = {f"{noun}{in_unit(unit)}" for noun, unit in self.units}
            wanted = nouns.pop() if len(nouns) == 1 else "of the type and unit that most in their group have"
            if self.left == 1:
                one = wanted.replace("numbers", "a number", 1).replace("times", "a time", 1)
                warn(f"{name}: 1 of {self.total} values is not {one}, and is left out")
            else:
                warn(f"{name}: {self.left} of {self.total} values are not {wanted}, and are left out")
        if self.empty:
            warn(f"{name}: {numbered(self.empty, f'{self.noun} has', f'{self.noun}s have')} nothing to work it out from")
        if self.tied:
            more = f"{numbered(self.tied, 'group has', 'groups have')} more rows that are equal to the last one shown"
            warn(f"{name}: {more}; they are cut by name")

    # -- measures of values ------------------------------------------------------------------------

    def of(self, cells: Sequence[Cell]) -> Cell | None:
        """What a group with these values is summed up to."""
        return _VALUES[self.measure.function](self, cells)

    def of_summed(self, count: int, total: Any = 0, best: Cell | None = None) -> Cell | None:
        """The same of a group that a store has summed up: how many values it has, all numbers without a
        unit or all of one type, their exact sum, the largest or the smallest.
        """
        function = self.measure.function
        if function in ("count", "distinct"):
            return text_cell(count)
        if function == "sum":
            return self._number(lambda: total, NO_UNIT) if count else NO_SUM
        if not count:
            return self._nothing()
        return self._number(lambda: Fraction(total) / count, NO_UNIT) if function == "mean" else best

    def _count(self, cells: Sequence[Cell]) -> Cell:
        return text_cell(len(cells))

    def _distinct(self, cells: Sequence[Cell]) -> Cell:
        return text_cell(len({identity(cell.value) for cell in some(cells)}))

    def _values(self, cells: Sequence[Cell]) -> Cell | None:
        found = each_once(cells)
        return listed([found[at] for at in places_in_order(len(found), lambda at: fixed_order(found[at]))])

    def numbers(self, cells: Sequence[Cell]) -> tuple[list[Any], str]:
        """The numbers of the most frequent unit."""
        quantities = [cell.value for cell in some(cells) if isinstance(cell.value, Quantity)]
        if not quantities and cells and (found := summed_numbers([cell.text for cell in cells])) is not None:
            self.run.warn(f"{self.measure.name}: {read_as_numbers(cell.value for cell in cells)}")
            return found, NO_UNIT
        _, unit, _ = competing(quantities)
        chosen = [value.number for value in some(quantities) if value.unit == unit]
        unitless = unit == NO_UNIT and len(quantities) > len(chosen)
        self._leave(len(cells), len(cells) - len(chosen), "numbers without a unit" if unitless else "numbers", unit)
        return chosen, unit

    def _sum(self, cells: Sequence[Cell]) -> Cell | None:
        numbers, unit = self.numbers(cells)
        return self._number(lambda: exact_sum(numbers), unit) if numbers else NO_SUM

    def _mean(self, cells: Sequence[Cell]) -> Cell | None:
        numbers, unit = self.numbers(cells)
        return self._number(lambda: exact_sum(numbers) / len(numbers), unit, quotient) if numbers else self._nothing()

    def _median(self, cells: Sequence[Cell]) -> Cell | None:
        numbers, unit = self.numbers(cells)
        return self._number(lambda: middle(numbers), unit) if numbers else self._nothing()

    def _number(self, work: Callable[[], Any], unit: str, of: Callable[[Any], Number] = plain) -> Cell | None:
        try:
            return text_cell(Quantity(of(work()), unit))
        except Inapplicable as error:
            self.run.warn(f"{self.measure.name}: {error}")
            return None

    def _nothing(self) -> Cell | None:
        self.empty += 1
        return None

    def _leave(self, total: int, left: int, noun: str, unit: str) -> None:
        self.total += total
        self.left += left
        if left:
            self.units.add((noun, unit))

    def _largest(self, cells: Sequence[Cell]) -> Cell | None:
        return self._extreme(cells, largest=True)

    def _smallest(self, cells: Sequence[Cell]) -> Cell | None:
        return self._extreme(cells, largest=False)

    def _extreme(self, cells: Sequence[Cell], *, largest: bool) -> Cell | None:
        if not cells:
            return self._nothing()
        ranked = self.ranked(cells, largest=largest)
        best = (max if largest else min)(rank for rank, _ in some(ranked))
        # Of equal values that are written in several ways, one is shown.
        return min((cell for rank, cell in some(ranked) if rank == best), key=fixed_order)

    def ranked(self, cells: Sequence[Cell], *, largest: bool) -> list[tuple[Any, Cell]]:
        """The cells that compete, with what they are compared by."""
        wins = competing([cell.value for cell in cells])
        if wins.kind is not None:
            chosen = [cell for cell in some(cells) if group_of(cell.value) == (wins.kind, wins.unit)]
            noun = "numbers" if wins.kind is Kind.QUANTITY else "times"
            self._leave(len(cells), len(cells) - len(chosen), noun, wins.unit)
            return [(size_of(cell.value, largest=largest), cell) for cell in some(chosen)]
        texts = [collapse(cell.text) for cell in cells]
        if leading_numbers(texts) is not None:
            self.run.warn(f"{self.measure.name}: the values are texts and are compared by the numbers in them")
            return [(inner_numbers(cell.text) or [], cell) for cell in some(cells)]
        self.run.warn(f"{self.measure.name}: the values are texts and are compared by code point")
        return list(zip(texts, cells, strict=True))

    # -- measures of rows --------------------------------------------------------------------------

    def best(self, rows: Sequence[tuple[Cell, Cell]]) -> Cell | None:
        """The rows (each with a value that it has) that have the largest or smallest; ties by name."""
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
        named = [pairs[at] for at in places_in_order(len(pairs), lambda at: fixed_order(pairs[at][1]))]
        order = [named[at] for at in places_in_order(len(named), lambda at: named[at][0], reverse=largest)]
        if len(order) > number and order[number][0] == order[number - 1][0]:
            self.tied += 1
        return listed([row for _, row in order[:number]])


def each_once(cells: Sequence[Cell]) -> list[Cell]:
    """Each value once, with the first of its texts in order."""
    found: dict[Any, Cell] = {}
    for cell in some(cells):
        key = identity(cell.value)
        known = found.get(key)
        if known is None or cell.text < known.text:
            found[key] = cell
    return list(found.values())


_VALUES: Final[dict[str, Callable[[Column, Sequence[Cell]], Cell | None]]] = {
    "count": Column._count,
    "distinct": Column._distinct,
    "sum": Column._sum,
    "mean": Column._mean,
    "median": Column._median,
    "min": Column._smallest,
    "max": Column._largest,
    "values": Column._values,
}


def leaves_out(name: str, wins: Competing) -> str:
    """The warning of cells that do not compete for their place in an order."""
    noun = "a number" if wins.kind is Kind.QUANTITY else "a time"
    one = wins.others == 1
    what = f"{numbered(wins.others, 'cell is', 'cells are')} not {noun}{in_unit(wins.unit)}"
    return f"order by {name}: {what}, and {'stands' if one else 'stand'} behind"
