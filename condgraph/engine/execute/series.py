"""Series: typed values of one column, kept as arrays as long as possible and decoded for display.

Grouping, summing, comparing and ordering 100,000 rows take a few passes over arrays if the values are numbers of one
unit, times, or texts of the pool. Other values (several units, digits beyond a float, texts that are read as numbers)
are decoded and follow the rules of single values in `sums` and `grouped`; both give the same results.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.bounds import changed, in_order, places_in_order, watched
from condgraph.engine.execute.sets import Bag, Numbers
from condgraph.engine.facts import Entity, shown
from condgraph.engine.operands import plain
from condgraph.engine.values import NO_UNIT, Kind, Quantity

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot

#: Positions in a series, or numbers that stand for values.
Places = NDArray[np.int64]
#: Decimals of at most fifteen digits and their nearest floats correspond one to one.
MAX_EXACT: Final = 10**15
#: The largest power of ten that a float represents exactly.
MAX_DECIMALS: Final = 22
#: The bound for sums of 64-bit integers.
MAX_SUM: Final = 1 << 62
#: From this many values on, equal ones are decoded once.
_MIN_DEDUPLICATED: Final = 256


class Cell(NamedTuple):
    """A value and its text for display."""

    value: Any
    text: str


class Decimals(NamedTuple):
    """Exact numbers of one unit: `integers` divided by ten to the power of `digits`."""

    integers: Places
    digits: int
    unit: str

    def exact(self, integer: int, parts: int = 1) -> Fraction:
        """Return one of the numbers, or a sum of them, divided by `parts`."""
        return Fraction(integer, 10**self.digits * parts)


def decimals_of(numbers: NDArray[np.float64]) -> tuple[Places, int] | None:
    """Return floats as integers and the number of their decimals; None unless each is a decimal of at most fifteen
    digits.

    >>> decimals_of(np.array([12.5, 3.0, -0.25]))
    (array([1250,  300,  -25]), 2)
    """
    largest = float(np.abs(numbers).max(initial=0))
    for digits in range(16):
        scale = 10.0**digits
        if not largest * scale < MAX_EXACT:
            return None
        # The first values mostly decide how many digits are needed.
        for part in (numbers[:64], numbers):
            scaled = np.rint(part * scale)
            if not (scaled / scale == part).all():
                break
        else:
            return scaled.astype(np.int64), digits
    return None


def dense(*columns: NDArray[Any]) -> Places:
    """Return consecutive numbers from 0 for the rows of integer columns: equal rows have one number, in the order of
    the columns.

    >>> dense(np.array([7, 5, 7]), np.array([1, 1, 1])).tolist()
    [1, 0, 1]
    """
    if len(columns) == 1 and len(columns[0]):
        (column,) = columns
        low, high = int(column.min()), int(column.max())
        if high - low < 2 * len(column):
            # Counted instead of sorted.
            offsets = column - low
            occurs = np.zeros(high - low + 1, bool)
            occurs[offsets] = True
            return (occurs.cumsum() - 1).take(offsets)
    order = in_order(columns)
    numbers = np.empty(len(order), np.int64)
    numbers[order] = changed(*(column.take(order) for column in columns)).cumsum() - 1
    return numbers


def once(numbers: NDArray[Any]) -> tuple[NDArray[Any], Places]:
    """Return the distinct numbers, ascending, and the index of each number among them: `np.unique`, several times
    faster.

    >>> [part.tolist() for part in once(np.array([7, 5, 7]))]
    [[5, 7], [1, 0, 1]]
    """
    inverse = dense(numbers)
    values = np.empty(int(inverse.max(initial=-1)) + 1, numbers.dtype)
    values[inverse] = numbers
    return values, inverse


def runs(numbers: Places, size: int) -> tuple[Places, Places]:
    """Return the begin and count of each number below `size` in sorted numbers.

    >>> [part.tolist() for part in runs(np.array([0, 0, 2]), 4)]
    [[0, 2, 2, 3], [2, 0, 1, 0]]
    """
    counts = np.bincount(numbers, minlength=size)
    return counts.cumsum() - counts, counts


def first_of_each(codes: Places) -> tuple[Places, Places]:
    """Return the position of the first occurrence of each distinct number, ascending, and the index of each number
    among them.

    >>> [part.tolist() for part in first_of_each(np.array([7, 5, 7, 9]))]
    [[0, 1, 3], [0, 1, 0, 2]]
    """
    numbers = dense(codes)
    first = np.empty(int(numbers.max(initial=-1)) + 1, np.int64)
    first[numbers[::-1]] = np.arange(len(numbers))[::-1]
    order = first.argsort()
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return first.take(order), rank.take(numbers)


class Series:
    """Values by position. `cells` decodes them; the other methods work on arrays of positions without decoding."""

    def __len__(self) -> int:
        raise NotImplementedError

    def cells(self, at: Places) -> list[Cell]:
        """Return the values at these positions, with their texts."""
        raise NotImplementedError

    def codes(self, at: Places) -> Places:
        """Return numbers that are equal for equal values."""
        raise NotImplementedError

    def spellings(self, at: Places) -> Places | None:
        """Return numbers in the order of the texts, if equal values may have several texts; else None."""
        return None

    def decimals(self, at: Places) -> Decimals | None:
        """Return the numbers, if all are exact decimals of one unit; else None."""
        return None

    def times(self, at: Places) -> tuple[Places, Places] | None:
        """Return starts and ends, if all are times; else None."""
        return None

    def ranks(self, at: Places) -> Places | None:
        """Return numbers in the fixed order of values, equal for equal values; None if arrays do not suffice."""
        return None


class BagSeries(Series):
    """The values of a bag."""

    def __init__(self, bag: Bag) -> None:
        self._bag = bag
        self._columns = bag.cells()

    def __len__(self) -> int:
        return len(self._bag)

    def _column(self, name: str, at: Places) -> NDArray[Any]:
        return self._columns[name].take(at)

    def _type_of(self, at: Places) -> int | None:
        """Return the type of the values, or None if there are several."""
        if self._type is not None or not len(at):
            return self._type
        kinds = self._column("kind", at)
        return int(kinds[0]) if (kinds == kinds[0]).all() else None

    @cached_property
    def _type(self) -> int | None:
        kinds = self._columns["kind"]
        return int(kinds[0]) if len(kinds) and (kinds == kinds[0]).all() else None

    @cached_property
    def _unit(self) -> int | None:
        """The unit of all values, if they share one and none has digits beyond a float."""
        units, refs = self._columns["unit"], self._columns["ref"]
        return int(units[0]) if len(units) and (units == units[0]).all() and not (refs >= 0).any() else None

    @cached_property
    def _raws(self) -> NDArray[Any] | None:
        """The raw texts of cells, -1 where the value has its own text; None if all have."""
        raws = self._bag.scope.snapshot.arrays.get("att.raw")
        if not len(raws):
            return None
        parts = [raws.take(part.ids) if part.kind == "att" else np.full(len(part.ids), -1, np.int32) for part in self._bag.parts]
        texts = np.concatenate(parts) if parts else raws[:0]
        return texts if (texts >= 0).any() else None

    def cells(self, at: Places) -> list[Cell]:
        if len(at) > _MIN_DEDUPLICATED:
            # Equal values share one object.
            codes = self.codes(at) if self._raws is None else dense(self.codes(at), self._raws.take(at))
            first, inverse = first_of_each(codes)
            if len(first) <= len(at) // 2:
                distinct_cells = self._decoded(at.take(first))
                return [distinct_cells[number] for number in watched(inverse.tolist())]
        return self._decoded(at)

    def _decoded(self, at: Places) -> list[Cell]:
        if len(self._bag.parts) == 1:
            values, texts = self._bag.take(at).values_and_texts()
            order = None
        else:
            places, order = np.unique(at, return_inverse=True)
            values, texts = self._bag.take(places).values_and_texts()
        # A text is its own text, without the blanks around it in its file.
        cells = [Cell(value, value if type(value) is str else text) for value, text in watched(zip(values, texts, strict=True))]
        return cells if order is None else [cells[number] for number in watched(order.tolist())]

    def codes(self, at: Places) -> Places:
        kind = self._type_of(at)
        refs = self._column("ref", at)
        if kind in (Kind.TEXT, Kind.ENTITY):
            return refs.astype(np.int64)
        if kind == Kind.TIME:
            return dense(*(self._column(name, at) for name in ("a", "b", "precision")))
        # Adding 0.0 makes -0 equal to 0.
        if kind == Kind.QUANTITY and self._unit is not None:
            bits: Places = (self._columns.numbers().take(at) + 0.0).view(np.int64)
            return bits
        kinds = self._column("kind", at)
        if ((kinds == Kind.QUANTITY) & (refs >= 0)).any():
            # Digits beyond a float: equal as values, not as texts.
            return hashed([(("id", cell.value.id) if isinstance(cell.value, Entity) else cell.value) for cell in self._decoded(at)])
        numbers = np.where(kinds == Kind.QUANTITY, (self._columns.numbers().take(at) + 0.0).view(np.int64), self._column("a", at))
        if kind == Kind.QUANTITY:
            units = self._column("unit", at)
            return numbers if not len(units) or (units == units[0]).all() else dense(numbers, units)
        return dense(kinds, numbers, refs, *(self._column(name, at) for name in ("b", "unit", "precision")))

    def spellings(self, at: Places) -> Places | None:
        if self._raws is None or self._type_of(at) in (Kind.TEXT, Kind.ENTITY):
            return None
        codes, raws = dense(self.codes(at)), self._raws.take(at)
        pairs = dense(codes, raws)
        if not len(at) or pairs.max() == codes.max():
            return None
        first, inverse = first_of_each(pairs)
        return ranked([cell.text for cell in self._decoded(at.take(first))]).take(inverse)

    def decimals(self, at: Places) -> Decimals | None:
        if self._type_of(at) != Kind.QUANTITY or not len(at):
            return None
        unit = self._unit
        if unit is None:
            units, refs = self._column("unit", at), self._column("ref", at)
            if not (units == units[0]).all() or (refs >= 0).any():
                return None
            unit = int(units[0])
        scaled = decimals_of(self._columns.numbers().take(at))
        return None if scaled is None else Decimals(*scaled, self._bag.scope.text(unit) if unit != -1 else NO_UNIT)

    def times(self, at: Places) -> tuple[Places, Places] | None:
        return (self._column("a", at), self._column("b", at)) if self._type_of(at) == Kind.TIME else None

    def ranks(self, at: Places) -> Places | None:
        kind = self._type_of(at)
        if kind in (Kind.TEXT, Kind.ENTITY, Kind.TIME):
            codes = self.codes(at)
            # The pool and the entities are sorted; negative numbers are texts outside the pool.
            return codes if not (codes < 0).any() else None
        if kind == Kind.QUANTITY:
            decimals = self.decimals(at)
            return None if decimals is None else decimals.integers
        return None


class EntitySeries(Series):
    """Entities by their numbers in a snapshot, which are ordered by name and id."""

    def __init__(self, snapshot: Snapshot, numbers: Numbers) -> None:
        self._snapshot, self._numbers = snapshot, numbers

    def __len__(self) -> int:
        return len(self._numbers)

    def cells(self, at: Places) -> list[Cell]:
        entities = list(map(self._snapshot.entity, watched(self._numbers.take(at).tolist())))
        return [Cell(entity, entity.name) for entity in watched(entities)]

    def codes(self, at: Places) -> Places:
        return self._numbers.take(at).astype(np.int64)

    def ranks(self, at: Places) -> Places | None:
        return self.codes(at)


class DecimalSeries(Series):
    """Calculated numbers."""

    def __init__(self, numbers: Decimals) -> None:
        self._numbers = numbers

    def __len__(self) -> int:
        return len(self._numbers.integers)

    def cells(self, at: Places) -> list[Cell]:
        numbers = self._numbers
        values = [Quantity(plain(numbers.exact(integer)), numbers.unit) for integer in watched(numbers.integers.take(at).tolist())]
        return [Cell(value, shown(value)) for value in watched(values)]

    def codes(self, at: Places) -> Places:
        return self._numbers.integers.take(at)

    def decimals(self, at: Places) -> Decimals | None:
        return self._numbers._replace(integers=self._numbers.integers.take(at)) if len(at) else None

    def ranks(self, at: Places) -> Places | None:
        return self._numbers.integers.take(at)


class ListSeries(Series):
    """Decoded values; None where there is none, at positions that no column refers to."""

    def __init__(self, cells: Sequence[Cell | None]) -> None:
        self._cells = cells

    def __len__(self) -> int:
        return len(self._cells)

    def cells(self, at: Places) -> list[Cell]:
        return [cell for position in watched(at.tolist()) if (cell := self._cells[position]) is not None]

    def _values(self, at: Places) -> list[Any]:
        return [cell.value for cell in self.cells(at)]

    def codes(self, at: Places) -> Places:
        return hashed([identity(value) for value in watched(self._values(at))])

    def spellings(self, at: Places) -> Places | None:
        return ranked([cell.text for cell in self.cells(at)])

    def decimals(self, at: Places) -> Decimals | None:
        units: set[str] = set()
        numbers: list[float] = []
        for value in watched(self._values(at)):
            unit, number = (value.unit, value.number) if isinstance(value, Quantity) else (NO_UNIT, value)
            units.add(unit)
            if type(number) not in (int, float) or len(units) > 1 or not abs(number) < MAX_EXACT:
                return None
            numbers.append(float(number))
        scaled = decimals_of(np.array(numbers, np.float64)) if numbers else None
        return None if scaled is None else Decimals(*scaled, units.pop())

    def ranks(self, at: Places) -> Places | None:
        decimals = self.decimals(at)
        return None if decimals is None else decimals.integers


def identity(value: Any) -> Any:
    """Return a hashable key of a value: entities are compared by id."""
    return ("id", value.id) if isinstance(value, Entity) else value


def hashed(values: Sequence[Hashable]) -> Places:
    """Return a number for each value, equal for equal values."""
    numbers: dict[Hashable, int] = {}
    return np.fromiter((numbers.setdefault(value, len(numbers)) for value in watched(values)), np.int64, len(values))


def ranked(keys: Sequence[Any]) -> Places:
    """Return the ranks of comparable keys, equal for equal keys."""
    order = places_in_order(len(keys), keys.__getitem__)
    numbers = np.empty(len(keys), np.int64)
    rank = -1
    previous: Any = None
    for place in watched(order):
        if rank < 0 or keys[place] != previous:
            rank, previous = rank + 1, keys[place]
        numbers[place] = rank
    return numbers
