"""Conditions on columns: which cells satisfy a comparison.

`holds` takes cells (`snapshot.ordered`) in any order, as columns or one at a time: the comparisons are written once,
and work on arrays and on Python numbers. `matches` finds the matching cells of one sorted group (one predicate or
key, type and unit) by binary search, for the index of a snapshot.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from condgraph.engine import algebra
from condgraph.engine.algebra import AllOf, Among, AnyOf, Compare, Condition, Equals, Not, Operator, Versus
from condgraph.engine.bounds import check, watched
from condgraph.engine.errors import PlanError
from condgraph.engine.execute.sets import EMPTY, Bag, Mask, Numbers, Scope, by_name, equal_cells
from condgraph.engine.facts import Entity
from condgraph.engine.functions import OPERATORS, time_mask
from condgraph.engine.operands import year_of
from condgraph.engine.snapshot.ordered import Cell, Cells
from condgraph.engine.values import NO_UNIT, Kind, Number, Precision, Quantity, Time, Unknown, as_float, format_number, parse_number

if TYPE_CHECKING:
    from condgraph.engine.snapshot.ordered import Ordered
    from condgraph.engine.snapshot.snapshot import Snapshot


# -- the execution -----------------------------------------------------------------------------------
# The interface of an execution that operators and conditions use.


class State(Protocol):
    """The results so far, by operator, and the graph that they refer to (`run.Run`)."""

    snapshot: Snapshot
    scope: Scope

    def entities(self, node: algebra.Entities) -> Numbers:
        """Return the result of an operator that returns entities."""

    def values(self, node: algebra.Values) -> Bag:
        """Return the result of an operator that returns values."""

    def among(self, entities: Numbers, of: Numbers) -> NDArray[np.bool_]:
        """Return for each entity (in any order) whether it is in the sorted set `of`."""

    def warn(self, message: str) -> None:
        """Add a warning, once."""


# -- comparison with values of a bag -----------------------------------------------------------------
# Comparison with the values of a bag: the result of an earlier step in the place of a literal.


#: The largest number of values that a cell is compared with.
_MAX_COMPARED = 10_000


def versus(run: State, operator: Operator, cells: Cells, bag: Bag, holds: Callable[..., Any]) -> Mask:
    """Return a mask of the cells for which the comparison holds with at least one value; numbers without a unit
    compare with every unit. `holds` decides a single comparison.
    """
    mask = np.zeros(len(cells), bool)
    values: list[Any] = list(dict.fromkeys(watched(bag.values())))
    if len(values) > _MAX_COMPARED:
        run.warn(f"a comparison with {len(values)} values uses the first {_MAX_COMPARED}")
        values = values[:_MAX_COMPARED]
    cells = by_name(run, cells)
    for value in values:
        check()
        for reading in readings_of(value):
            mask |= _holds(run, operator, reading, cells, holds)
    return mask


def readings_of(value: Any) -> list[str | Quantity | Time]:
    """Return the forms in which a value is compared: a year is also a number, and a number that can be a year also a
    year.
    """
    if isinstance(value, Entity):
        return [value.name]
    if isinstance(value, (bool, Unknown)):
        return []
    if isinstance(value, (int, float)):
        value = Quantity(value)
    if isinstance(value, Quantity):
        year = value.number
        if value.unit == NO_UNIT and isinstance(year, int) and 1000 <= year <= 2999:
            return [value, Time.year(year)]
        return [value]
    if isinstance(value, Time) and value.precision is Precision.YEAR:
        return [value, Quantity(year_of(value))]
    return [value]


def _holds(run: State, operator: Operator, value: str | Quantity | Time, cells: Cells, holds: Callable[..., Any]) -> Mask:
    if isinstance(value, Quantity) and value.unit == NO_UNIT:
        units = np.unique(cells["unit"][cells["kind"] == Kind.QUANTITY])
        masks = [
            holds(run, Compare(operator, Quantity(value.number, run.scope.text(unit) if unit != -1 else NO_UNIT)), cells)
            for unit in units.tolist()
        ]
        return np.logical_or.reduce(masks) if masks else np.zeros(len(cells), bool)
    mask: Mask = holds(run, Compare(operator, value), cells)
    return mask


# -- conditions --------------------------------------------------------------------------------------


Runs = list[tuple[int, int]]
_EXACT = 2**53


def holds(run: State, condition: Condition, cells: Cells) -> Any:
    """Return for each cell whether it satisfies the condition: a mask, or for one `Cell` a truth value. Cells of
    other types and units do not.
    """
    if isinstance(condition, Compare):
        value = condition.value
        if isinstance(value, Time):
            return _time(condition.operator, value, cells)
        if isinstance(value, Quantity):
            return _quantity(run, condition.operator, value, cells)
        if isinstance(value, str):
            return _text(run, condition.operator, value, cells)
        raise PlanError("an unknown value cannot be compared")
    if isinstance(condition, Among):
        entities = run.entities(condition.entities)
        entity = cells["kind"] == Kind.ENTITY
        return entity & run.among(np.where(entity, cells["ref"], 0), entities)
    if isinstance(condition, (AnyOf, AllOf)):
        masks = [holds(run, part, cells) for part in condition.conditions]
        return np.logical_or.reduce(masks) if isinstance(condition, AnyOf) else np.logical_and.reduce(masks)
    if isinstance(condition, Not):
        return ~holds(run, condition.condition, cells)
    if isinstance(condition, Versus):
        return versus(run, condition.operator, cells, run.values(condition.values), holds)
    if isinstance(condition, Equals):
        return equal_cells(run, cells, run.values(condition.values))
    raise PlanError(f"no such test: {condition!r}")


def decide(run: State, condition: Condition) -> Callable[[Ordered, int], Any]:
    """Return `holds` for one attribute or qualifier at a time, by number, with all lookups of the condition done
    once.
    """
    if not isinstance(condition, Compare):
        return lambda cells, at: holds(run, condition, Cell(cells, at))
    value, operator = condition.value, condition.operator
    if isinstance(value, str) and operator == "=":
        text_number, names = run.snapshot.texts.find(value), run.snapshot.entity_name

        def same(cells: Ordered, at: int) -> bool:
            kind, ref = cells.kind[at], cells.ref[at]
            return bool(ref == text_number if kind == 0 else kind == 3 and names[ref] == text_number)

        return same if text_number >= 0 else lambda cells, at: False
    if isinstance(value, Quantity) and not run.snapshot.inexact:
        unit, compare = run.scope.unit_number(value.unit), OPERATORS[operator]
        number, exact = as_float(value)
        if exact:
            return lambda cells, at: cells.kind[at] == 1 and cells.unit[at] == unit and compare(cells.x[at], number)
    if isinstance(value, Time):
        return lambda cells, at: cells.kind[at] == 2 and time_mask(operator, value, cells.a[at], cells.b[at])
    return lambda cells, at: holds(run, condition, Cell(cells, at))


def compared_kinds(condition: Condition) -> set[tuple[Kind, str]]:
    """Return the types and units for which a condition can hold (a text condition also holds of entities); empty for
    conditions that are not comparisons.
    """
    if isinstance(condition, Compare):
        value = condition.value
        if isinstance(value, Time):
            return {(Kind.TIME, NO_UNIT)}
        if isinstance(value, Quantity):
            return {(Kind.QUANTITY, value.unit)}
        return {(Kind.TEXT, NO_UNIT), (Kind.ENTITY, NO_UNIT)}
    if isinstance(condition, (AnyOf, AllOf)):
        return set().union(*(compared_kinds(part) for part in condition.conditions))
    return set()


def _time(operator: Operator, literal: Time, cells: Cells) -> Any:
    return (cells["kind"] == Kind.TIME) & time_mask(operator, literal, cells["a"], cells["b"])


def _quantity(run: State, operator: Operator, literal: Quantity, cells: Cells) -> Any:
    numbers = cells.numbers()
    comparable = (cells["kind"] == Kind.QUANTITY) & (cells["unit"] == run.scope.unit_number(literal.unit))
    value, exact = as_float(literal)
    mask = comparable & OPERATORS[operator](numbers, value)
    # Numbers that are equal as floats are compared as they were written.
    if exact and not run.scope.inexact:
        return mask
    close = comparable & (numbers == value) & ((cells["ref"] != -1) | (not exact))
    if isinstance(cells, Cell):
        return _exactly(operator, _exact_number(run, cells["ref"], numbers), literal.number) if close else mask
    for i in watched(np.flatnonzero(close).tolist()):
        mask[i] = _exactly(operator, _exact_number(run, int(cells["ref"][i]), float(numbers[i])), literal.number)
    return mask


def _exact_number(run: State, ref: int, number: float) -> Number:
    """Return a number as it was loaded."""
    return parse_number(run.scope.text(ref)) if ref != -1 else number


def _exactly(operator: Operator, left: Any, right: Any) -> bool:
    # A float stands for its shortest text, as everywhere.
    a, b = (Decimal(format_number(n)) if isinstance(n, float) and not math.isinf(n) else n for n in (left, right))
    return bool(OPERATORS[operator](a, b))


def _text(run: State, operator: Operator, literal: str, cells: Cells) -> Any:
    snapshot = run.snapshot
    kind, refs = cells["kind"], cells["ref"]
    entity = kind == Kind.ENTITY
    if isinstance(cells, Cell):
        refs = snapshot.entity_name[refs] if entity else refs
    elif entity.any():
        refs = refs.copy()
        refs[entity] = snapshot.entity_name.take(refs[entity])
    mask = text_mask(snapshot, operator, literal, refs)
    if not isinstance(cells, Cell):
        # Texts that the graph does not have are numbered in order of appearance.
        for i in watched(np.flatnonzero(refs < -1).tolist()):
            mask[i] = OPERATORS[operator](run.scope.given_text(int(refs[i])), literal)
    return (entity | (kind == Kind.TEXT)) & mask


def text_mask(snapshot: Snapshot, operator: Operator, literal: str, refs: NDArray[Any]) -> Mask:
    """Compare texts by their numbers: equality, and order by code point."""
    text_number = snapshot.texts.find(literal)
    mask: Mask
    if operator in ("=", "!="):
        mask = OPERATORS[operator](refs, text_number)
        return mask
    # Texts are numbered in order: smaller numbers are lesser texts.
    limit = snapshot.texts.rank(literal) + (operator in ("<=", ">") and text_number >= 0)
    mask = refs < limit if operator[0] == "<" else refs >= limit
    return mask


def matches(run: State, condition: Compare, cells: Ordered, low: int, high: int, *, entities: bool = False) -> Runs | Numbers:
    """Return the cells of the group `[low, high)` that satisfy the condition, as runs or single positions. The group
    has the literal's type and unit.

    A group is sorted by value, so this is a binary search, for times followed by a look at their ends. In a group of
    `entities`, which are numbered by name, a text is looked up among the names.
    """
    value, operator = condition.value, condition.operator
    if isinstance(value, Time):
        return _time_matches(operator, value, cells, low, high)
    if isinstance(value, Quantity):
        number, exact = as_float(value)
        if not exact or run.snapshot.inexact:
            part = Cells(high - low, lambda name: cells.column(name, low, high))
            return _positions(low, _quantity(run, operator, value, part))
        first = cells.left(cells.x, number, low, high)
        last = cells.right(cells.x, number, first, high)
    else:
        if not isinstance(value, str):
            raise PlanError("an unknown value cannot be compared")
        texts = run.snapshot.texts
        text_number = texts.find(value)
        if text_number < 0 and operator in ("=", "!="):
            first = last = high
        else:
            after = text_number + 1 if text_number >= 0 else texts.rank(value)
            begin = text_number if text_number >= 0 else after
            if entities:
                begin, after = run.snapshot.name_rank(begin), run.snapshot.name_rank(after)
            first = cells.left(cells.ref, begin, low, high)
            last = cells.left(cells.ref, after, first, high)
    if operator == "=":
        runs = [(first, last)]
    elif operator == "!=":
        runs = [(low, first), (last, high)]
    else:
        runs = {"<": [(low, first)], "<=": [(low, last)], ">": [(last, high)], ">=": [(first, high)]}[operator]
    return [run for run in runs if run[0] < run[1]]


def _time_matches(operator: Operator, literal: Time, cells: Ordered, low: int, high: int) -> Runs | Numbers:
    begin, end = low, high
    if operator in (">", "=", "!=", "<="):
        end = cells.left(cells.a, literal.end, low, high)
    if operator in (">=", "=", "<", "!="):
        begin = cells.left(cells.a, literal.start, low, high)
    if operator == ">":
        return [(end, high)] if end < high else []
    if operator == ">=":
        return [(begin, high)] if begin < high else []
    # Times that begin within the range must end within it, too.
    first = begin if operator == "=" else low
    last, limit = (end, literal.end) if operator in ("=", "<=") else (begin, literal.start)
    if first >= last:
        places: Runs | Numbers = []
    else:
        ended = cells.column("b", first, last) <= limit
        places = [(first, last)] if np.count_nonzero(ended) == last - first else _positions(first, ended)
    if operator == "!=" and end < high:
        places = [*places, (end, high)] if isinstance(places, list) else np.append(places, np.arange(end, high, dtype=np.int32))
    return places


def _positions(low: int, mask: Mask) -> Numbers:
    return (mask.nonzero()[0] + low).astype(np.int32)


def as_places(found: Runs | Numbers) -> Numbers:
    """Expand runs to single positions."""
    if not isinstance(found, list):
        return found
    return np.concatenate([np.arange(low, high, dtype=np.int32) for low, high in found]) if found else EMPTY
