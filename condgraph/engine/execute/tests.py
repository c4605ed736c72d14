"""Tests decided on columns: which cells satisfy a comparison, and which could not be compared.

`holds` takes cells (`snapshot.cells`) in any order. `runs` finds the cells of one sorted group (one predicate, type and unit) by
binary search; it is what the index of a snapshot answers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.algebra import AllOf, Among, AnyOf, Compare, Equals, Not, Operator, Test, Versus
from condgraph.engine.errors import PlanError
from condgraph.engine.execute.sets import Numbers
from condgraph.engine.values import NO_UNIT, Kind, Quantity, Time, parse_number

if TYPE_CHECKING:
    from condgraph.engine.execute.run import Run
    from condgraph.engine.snapshot.snapshot import Snapshot

Mask = NDArray[np.bool_]
_EXACT = 2**53


class Cells:
    """Columns of values, gathered when a test asks for them: `cells["kind"]`, "a", "b", "ref", "unit", "precision"."""

    __slots__ = ("_columns", "_length", "_read")

    def __init__(self, length: int, read: Callable[[str], NDArray[Any]] | None = None, columns: dict[str, NDArray[Any]] | None = None) -> None:
        self._length, self._read, self._columns = length, read, columns or {}

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, name: str) -> NDArray[Any]:
        found = self._columns.get(name)
        if found is None:
            assert self._read is not None
            found = self._columns[name] = self._read(name)
        return found

    def numbers(self) -> NDArray[np.float64]:
        """The column "a" read as floats."""
        return self["a"].view(np.float64)


def holds(run: Run, test: Test, cells: Cells) -> Mask:
    """For each cell, whether it satisfies the test. Cells of other types and units do not, and are counted for a warning."""
    if isinstance(test, Compare):
        value = test.value
        if isinstance(value, Time):
            return _time(test.operator, value, cells)
        if isinstance(value, Quantity):
            return _quantity(run, test.operator, value, cells)
        if isinstance(value, str):
            return _text(run, test.operator, value, cells)
        raise PlanError("nothing compares with a value that is not known")
    if isinstance(test, Among):
        found = run.entities(test.entities)
        entity = cells["kind"] == Kind.ENTITY
        return entity & run.among(np.where(entity, cells["ref"], 0), found)
    if isinstance(test, (AnyOf, AllOf)):
        masks = [holds(run, part, cells) for part in test.tests]
        return np.logical_or.reduce(masks) if isinstance(test, AnyOf) else np.logical_and.reduce(masks)
    if isinstance(test, Not):
        return ~holds(run, test.test, cells)
    if isinstance(test, Versus):
        from condgraph.engine.execute.versus import versus

        return versus(run, test.operator, cells, run.values(test.values))
    if isinstance(test, Equals):
        from condgraph.engine.execute.bags import equal_cells

        return equal_cells(run, cells, run.values(test.values))
    raise PlanError(f"no such test: {test!r}")


def compared_kinds(test: Test) -> set[tuple[Kind, str]]:
    """The types and units a test can hold of (a text test holds of entities, too); empty for tests that are no comparison."""
    if isinstance(test, Compare):
        value = test.value
        if isinstance(value, Time):
            return {(Kind.TIME, NO_UNIT)}
        if isinstance(value, Quantity):
            return {(Kind.QUANTITY, value.unit)}
        return {(Kind.TEXT, NO_UNIT), (Kind.ENTITY, NO_UNIT)}
    if isinstance(test, (AnyOf, AllOf)):
        return set().union(*(compared_kinds(part) for part in test.tests))
    return set()


def _time(operator: Operator, literal: Time, cells: Cells) -> Mask:
    return (cells["kind"] == Kind.TIME) & time_mask(operator, literal, cells["a"], cells["b"])


def time_mask(operator: Operator, literal: Time, start: NDArray[Any], end: NDArray[Any]) -> Mask:
    """Interval comparison (`SEMANTICS`, Values): `=` lies within, `!=` is disjoint, `<` ends before, `>` begins after."""
    low, high = literal.start, literal.end
    mask: Mask
    if operator == "=":
        mask = (start >= low) & (end <= high)
    elif operator == "!=":
        mask = (end <= low) | (start >= high)
    elif operator == "<":
        mask = end <= low
    elif operator == ">":
        mask = start >= high
    elif operator == "<=":
        mask = end <= high
    else:
        mask = start >= low
    return mask


def _number_mask(operator: Operator, numbers: NDArray[np.float64], literal: float) -> Mask:
    mask: Mask
    if operator == "=":
        mask = numbers == literal
    elif operator == "!=":
        mask = numbers != literal
    elif operator == "<":
        mask = numbers < literal
    elif operator == ">":
        mask = numbers > literal
    elif operator == "<=":
        mask = numbers <= literal
    else:
        mask = numbers >= literal
    return mask


def unit_number(snapshot: Snapshot, unit: str) -> int:
    """How a unit stands in columns: -1 for none, -2 for one the graph does not have."""
    if unit == NO_UNIT:
        return -1
    found = snapshot.texts.find(unit)
    return found if found >= 0 else -2


def as_float(quantity: Quantity) -> tuple[float, bool]:
    """The nearest float of a literal, and whether it is exact."""
    number = quantity.number
    if isinstance(number, float):
        return number, True
    try:
        nearest = float(number)
    except OverflowError:
        return (math.inf if number > 0 else -math.inf), False
    exact = Decimal(repr(nearest)) == number if isinstance(number, Decimal) else int(nearest) == number
    return nearest, exact


def _quantity(run: Run, operator: Operator, literal: Quantity, cells: Cells) -> Mask:
    numbers = cells.numbers()
    comparable: Mask = (cells["kind"] == Kind.QUANTITY) & (cells["unit"] == unit_number(run.snapshot, literal.unit))
    value, exact = as_float(literal)
    mask = comparable & _number_mask(operator, numbers, value)
    # Numbers a float cannot tell apart are compared as they were written.
    if exact and not run.snapshot.inexact:
        return mask
    close = comparable & (numbers == value) & ((cells["ref"] >= 0) | (not exact))
    for i in np.flatnonzero(close).tolist():
        ref = int(cells["ref"][i])
        mask[i] = _exactly(operator, parse_number(run.snapshot.texts[ref]) if ref >= 0 else float(numbers[i]), literal.number)
    return mask


def _exactly(operator: Operator, left: Any, right: Any) -> bool:
    # A float stands for its shortest text here as everywhere.
    a = Decimal(repr(left)) if isinstance(left, float) and not math.isinf(left) else left
    b = Decimal(repr(right)) if isinstance(right, float) and not math.isinf(right) else right
    return bool(
        {"=": a == b, "!=": a != b, "<": a < b, ">": a > b, "<=": a <= b, ">=": a >= b}[operator]
    )


def _text(run: Run, operator: Operator, literal: str, cells: Cells) -> Mask:
    snapshot = run.snapshot
    kind, refs = cells["kind"], cells["ref"]
    entity = kind == Kind.ENTITY
    if entity.any():
        refs = refs.copy()
        refs[entity] = snapshot.entity_name.take(refs[entity])
    return (entity | (kind == Kind.TEXT)) & text_mask(snapshot, operator, literal, refs)


def text_mask(snapshot: Snapshot, operator: Operator, literal: str, refs: NDArray[Any]) -> Mask:
    """Text comparison on the numbers of texts: equality, and order by code point."""
    mask: Mask
    if operator in ("=", "!="):
        found = snapshot.texts.find(literal)
        mask = refs == found if operator == "=" else refs != found
        return mask
    rank, known = snapshot.texts.rank(literal), snapshot.texts.find(literal) >= 0
    if operator == "<":
        mask = refs < rank
    elif operator == ">=":
        mask = refs >= rank
    elif operator == ">":
        mask = refs >= rank + known
    else:
        mask = refs < rank + known
    return mask


def group_matches(run: Run, test: Compare, kind: Kind, low: int, high: int) -> list[Numbers]:
    """The attributes (counted from 0) of the group `[low, high)`, which has the literal's type and unit, that satisfy the test.

    A group is sorted by value, so this is a binary search, and for times a look at the ends.
    """
    get = run.snapshot.arrays.get
    value, operator = test.value, test.operator
    if isinstance(value, Time):
        starts = get("att.a")[low:high]
        first, last = (low + int(i) for i in np.searchsorted(starts, (value.start, value.end)))
        if operator == ">":
            return [_run(last, high)]
        if operator == ">=":
            return [_run(first, high)]
        ends = get("att.b")
        if operator == "=":
            return [_some(first, last, ends[first:last] <= value.end)]
        if operator == "<":
            return [_some(low, first, ends[low:first] <= value.start)]
        if operator == "<=":
            return [_some(low, last, ends[low:last] <= value.end)]
        return [_some(low, first, ends[low:first] <= value.start), _run(last, high)]
    if isinstance(value, Quantity):
        number, exact = as_float(value)
        if not exact or run.snapshot.inexact:
            part = Cells(high - low, lambda name: get(f"att.{name}")[low:high])
            return [_some(low, high, _quantity(run, operator, value, part))]
        column: NDArray[Any] = get("att.a")[low:high].view(np.float64)
        first, last = low + int(column.searchsorted(number)), low + int(column.searchsorted(number, "right"))
    else:
        column = get("att.ref")[low:high]
        assert isinstance(value, str)
        rank, known = run.snapshot.texts.rank(value), run.snapshot.texts.find(value) >= 0
        first, last = low + int(column.searchsorted(rank)), low + int(column.searchsorted(rank + known))
    if operator == "=":
        return [_run(first, last)]
    if operator == "!=":
        return [_run(low, first), _run(last, high)]
    if operator == "<":
        return [_run(low, first)]
    if operator == ">":
        return [_run(last, high)]
    return [_run(low, last)] if operator == "<=" else [_run(first, high)]


def _run(low: int, high: int) -> Numbers:
    return np.arange(low, high, dtype=np.int32)


def _some(low: int, high: int, mask: Mask) -> Numbers:
    return (np.flatnonzero(mask) + low).astype(np.int32)
