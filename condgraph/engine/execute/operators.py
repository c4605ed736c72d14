"""The table of operators in process, and the operators on order, validity and times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.algebra import Bound, Clip, DuringAny, Nth, SameName, Shown, Validity, WhereValidity
from condgraph.engine.algebra.tables import EntityTable, FactTable, GroupTable, ScalarTable, ValueTable, by_type
from condgraph.engine.bounds import changed, check, in_order, places_in_order, watched
from condgraph.engine.execute import aggregates, apply, facts, grouped
from condgraph.engine.execute.conditions import holds
from condgraph.engine.execute.facts import named_runs
from condgraph.engine.execute.left_out import no_such
from condgraph.engine.execute.run import Outcome, Run
from condgraph.engine.execute.sets import Bag, FactSet, Mask, Numbers, Part, distinct, order_key
from condgraph.engine.execute.validity import interval_mask, span_part, span_precision, validity_in
from condgraph.engine.facts import END_TIME, POINT_IN_TIME, START_TIME
from condgraph.engine.snapshot.ordered import Cells
from condgraph.engine.values import DAY_SECONDS, OPEN_END, OPEN_START, UNKNOWN_END, UNKNOWN_START, Kind, Precision, Time

if TYPE_CHECKING:
    from condgraph.engine.execute.run import Run


# -- selection -------------------------------------------------------------------------------------
# Operators that select: one value of a bag by its index, values shown for rows, entities with the
# same names.


def namesakes(run: Run, node: SameName) -> Numbers:
    """Return all entities that share a name with these. Entities are numbered by name, so each name is a run."""
    snapshot = run.snapshot
    return named_runs(snapshot, distinct(snapshot.entity_name.take(run.entities(node.of)), len(snapshot.texts)))


def nth(run: Run, node: Nth) -> Bag:
    """Return the value at an index, in the order of rows or by value; equal values count once in an order by value."""
    bag = run.values(node.values)
    if not len(bag):
        run.warn("an empty set has no first or last value")
        return bag
    values = bag.values()
    groups: list[list[int]] = []
    if node.order == "row":
        rows = row_keys(run, bag)
        # Values of one row are in the fixed order of values.
        order = places_in_order(len(values), lambda position: (rows[position], order_key(values[position])))
        if -len(order) <= node.place < len(order):
            return bag.take(np.array([order[node.place]], np.int64))
        groups = [[]] * len(order)
    else:
        order = places_in_order(len(values), lambda position: order_key(values[position]), reverse=node.order == "descending")
        for position in watched(order):
            if groups and order_key(values[groups[-1][0]]) == order_key(values[position]):
                groups[-1].append(position)
            else:
                groups.append([position])
    if not -len(groups) <= node.place < len(groups):
        run.warn(f"there is no value at index {node.place + 1}: there are {len(groups)}")
        return bag.take(np.empty(0, np.int64))
    return bag.take(np.array(sorted(groups[node.place]), np.int64))


def row_keys(run: Run, bag: Bag) -> list[int]:
    """Return the position of each value's carrier in its source: the row of a table's cell, the line of another
    statement.
    """
    snapshot = run.snapshot
    rows: list[NDArray[np.int64]] = []
    for part in bag.parts:
        if part.kind in ("name", "row"):
            entity_rows = snapshot.arrays.get("ent.row")
            rows.append(entity_rows[part.carriers].astype(np.int64) if len(entity_rows) else np.zeros(len(part.ids), np.int64))
        elif part.kind == "given":
            rows.append(part.ids.astype(np.int64))
        else:
            rows.append(snapshot.row[part.carriers].astype(np.int64))
    keys: list[int] = np.concatenate(rows).tolist() if rows else []
    return keys


def shown(run: Run, node: Shown) -> Bag:
    """Return the values; the answer keeps the rows."""
    return run.values(node.values)


# -- times -----------------------------------------------------------------------------------------
# Operators on validity and on bags of times: when facts hold, cutting times to limits, and the ends
# of times.


Ints = NDArray[np.int64]


def validity(run: Run, node: Validity) -> Bag:
    """Return when each fact holds: intervals, or the starts or ends as they were written."""
    statements = run.facts(node.facts).all()
    if node.part == "interval":
        positions, start, end = validity_in(run.snapshot, statements)
        return Bag(run, [span_part(statements[positions], start, end)])
    return Bag(run, [_validity_part(run, statements, node.part)])


def _validity_part(run: Run, statements: Numbers, part: str) -> Part:
    """Return the start or end of each fact as in its qualifiers; a point in time is both."""
    snapshot = run.snapshot
    positions, numbers = snapshot.qualifiers(statements)
    if len(numbers):
        get = snapshot.arrays.get
        keys = [snapshot.predicate(name) for name in (START_TIME if part == "start" else END_TIME, POINT_IN_TIME)]
        chosen = np.isin(get("q.key").take(numbers), [key for key in keys if key >= 0])
        chosen &= get("q.kind").take(numbers) == Kind.TIME
        positions, numbers = positions[chosen], numbers[chosen]
        # Bounds in the wrong order are unknown, so their qualifiers do not count.
        known, start, end = validity_in(snapshot, statements)
        invalid = known[(start == UNKNOWN_START) & (end == UNKNOWN_END)]
        if len(invalid):
            is_valid = ~np.isin(positions, invalid)
            positions, numbers = positions[is_valid], numbers[is_valid]
    return Part("q", numbers, statements[positions])


def times_of(run: Run, bag: Bag, what: str) -> tuple[Ints, Ints]:
    """Return the starts and ends of the distinct times of a bag. Warn of other values."""
    cells = bag.cells()
    is_time = cells["kind"] == Kind.TIME
    ignored = len(cells) - int(is_time.sum())
    if ignored:
        verb = "is not a time and is" if ignored == 1 else "are not times and are"
        run.warn(f"{what}: {ignored} of {len(cells)} values {verb} ignored")
    start, end = cells["a"][is_time].astype(np.int64), cells["b"][is_time].astype(np.int64)
    order = in_order([start, end])
    order = order[changed(start[order], end[order])]
    return start[order], end[order]


def merged(start: Ints, end: Ints) -> tuple[Ints, Ints]:
    """Merge overlapping intervals, which are sorted by start."""
    if len(start) < 2:
        return start, end
    reach = np.maximum.accumulate(end)
    is_new = np.concatenate(([True], start[1:] > reach[:-1]))
    begins = np.flatnonzero(is_new)
    return start[begins], np.maximum.reduceat(end, begins)


def during_any(run: Run, node: DuringAny) -> FactSet:
    """Return the facts whose validity has the relation to any of the times."""
    facts = run.facts(node.facts)
    low, high = times_of(run, run.values(node.values), "time")
    statements = facts.all()
    if not len(low) or not len(statements):
        return facts.keep(statements[:0])
    # For a relation with a direction, one limit decides.
    if node.relation in ("before", "until"):
        low, high = low.max(keepdims=True), high.max(keepdims=True)
    elif node.relation in ("after", "from"):
        low, high = low.min(keepdims=True), high.min(keepdims=True)
    elif node.relation == "overlaps":
        low, high = merged(low, high)
    positions, start, end = validity_in(run.snapshot, statements)
    mask = np.zeros(len(positions), bool)
    for begin, stop in zip(low.tolist(), high.tolist(), strict=True):
        check()
        mask |= interval_mask(node.relation, Time(begin, stop, Precision.SPAN), start, end)
    return facts.keep(statements[positions[mask]])


def where_validity(run: Run, node: WhereValidity) -> FactSet:
    """Return the facts whose start (or end) satisfies the condition."""
    facts = run.facts(node.facts)
    statements = facts.all()
    part = _validity_part(run, statements, node.part)
    cells = Bag(run, [part]).cells()
    run.warn_incomparable(cells, node.condition)
    return facts.keep(distinct(part.carriers[holds(run, node.condition, cells)], run.snapshot.statements))


def clip(run: Run, node: Clip) -> Bag:
    """Return times cut to the limits. Times that are not cut keep their cells, and so their text."""
    bag = run.values(node.values)
    low, high = times_of(run, run.values(node.limits), "keep")
    if node.operator == "=":
        low, high = merged(low, high)
    parts: list[Part] = []
    ignored = 0
    for part in bag.parts:
        cells = bag.part_cells(part)
        times = np.flatnonzero(cells["kind"] == Kind.TIME)
        ignored += len(cells) - len(times)
        parts.extend(_clipped(part.take(times), cells, times, node.operator, low, high))
    if ignored:
        run.warn(no_such("keep", ignored, len(bag), "time"))
    return Bag(run, parts)


def _clipped(part: Part, cells: Cells, time: NDArray[Any], operator: str, low: Ints, high: Ints) -> list[Part]:
    start, end = cells["a"][time].astype(np.int64), cells["b"][time].astype(np.int64)
    if not len(start) or not len(low):
        return []
    windows: list[tuple[int, int]] = [(OPEN_START, OPEN_END)]
    if operator == "=":
        windows = list(zip(low.tolist(), high.tolist(), strict=True))
    elif operator in ("<", "<="):
        windows = [(OPEN_START, int((low if operator == "<" else high).max()))]
    elif operator in (">", ">="):
        windows = [(int((high if operator == ">" else low).min()), OPEN_END)]
    outside: Mask = np.ones(len(start), bool)
    if operator == "!=":
        for interval_low, interval_high in zip(low.tolist(), high.tolist(), strict=True):
            check()
            outside &= (end <= interval_low) | (start >= interval_high)
    parts: list[Part] = []
    for begin, stop in windows:
        check()
        first, last = np.maximum(start, begin), np.minimum(end, stop)
        overlaps = (first < last) & outside
        is_whole = overlaps & (first == start) & (last == end)
        cut = np.flatnonzero(overlaps & ~is_whole)
        parts.append(part.take(np.flatnonzero(is_whole)))
        if len(cut):
            first, last = first[cut], last[cut]
            parts.append(_intervals(part, cut, first, last, span_precision(first, last)))
    return [piece for piece in parts if len(piece.ids)]


def _intervals(part: Part, of: NDArray[np.int64], start: Ints, end: Ints, precision: NDArray[Any]) -> Part:
    """Return intervals made from some values of a part, with the carriers of these, if any."""
    if part.kind == "given":
        columns = zip(start.tolist(), end.tolist(), precision.tolist(), strict=True)
        times = tuple(Time(first, last, Precision(exactly)) for first, last, exactly in columns)
        return Part("given", np.arange(len(times)), part.carriers, times)
    return Part("span", np.arange(len(start)), part.carriers[of], (start, end, precision))


def bound(run: Run, node: Bound) -> Bag:
    """Return the first or last year, month or day of intervals; times that are already one of these are unchanged."""
    bag = run.values(node.values)
    parts: list[Part] = []
    for part in bag.parts:
        cells = bag.part_cells(part)
        is_span = (cells["kind"] == Kind.TIME) & (cells["precision"] == Precision.SPAN)
        if not is_span.any():
            parts.append(part)
            continue
        parts.append(part.take(np.flatnonzero(~is_span)))
        start, end = cells["a"][is_span].astype(np.int64), cells["b"][is_span].astype(np.int64)
        edge = start if node.part == "start" else end
        known = (edge > OPEN_START) & (edge < UNKNOWN_END)
        pairs = zip(start[known].tolist(), end[known].tolist(), strict=True)
        times = [_edge(a, b, node.part) for a, b in watched(pairs, 1 << 10)]
        first, last = (np.array([getattr(time, side) for time in times], np.int64) for side in ("start", "end"))
        precision = np.array([time.precision for time in times], np.int8)
        parts.append(_intervals(part, np.flatnonzero(is_span)[known], first, last, precision))
    return Bag(run, parts)


def _edge(start: int, end: int, part: str) -> Time:
    """Return the first or last unit of an interval, in the largest unit of which the known ends are multiples."""
    moment = start if part == "start" else end
    ends = [edge for edge in (start, end) if OPEN_START < edge < UNKNOWN_END]
    days = np.array([edge // DAY_SECONDS for edge in ends], np.int64).astype("M8[D]")
    if any(edge % DAY_SECONDS for edge in ends):
        return Time(moment, moment + 1, Precision.SECOND) if part == "start" else Time(moment - 1, moment, Precision.SECOND)
    if (days == days.astype("M8[Y]")).all():
        unit, precision = "Y", Precision.YEAR
    elif (days == days.astype("M8[M]")).all():
        unit, precision = "M", Precision.MONTH
    else:
        unit, precision = "D", Precision.DAY
    unit_number = np.array([moment // DAY_SECONDS], np.int64).astype("M8[D]").astype(f"M8[{unit}]").astype(np.int64)
    bounds = np.concatenate([unit_number, unit_number + 1]) - (part == "end")
    seconds = (bounds.astype(f"M8[{unit}]").astype("M8[D]").astype(np.int64) * DAY_SECONDS).tolist()
    return Time(seconds[0], seconds[1], precision)


# -- the table -------------------------------------------------------------------------------------


_SETS: Final[EntityTable[Run, [], Outcome]] = {
    "AllEntities": facts.every,
    "ById": facts.known,
    "ByName": facts.named,
    "Members": facts.members,
    "Union": facts.union_of,
    "Intersect": facts.intersect_of,
    "Minus": facts.minus_of,
    "Neighbour": facts.neighbour,
    "Reached": facts.reached,
    "SubjectsOf": facts.holders,
    "Referents": facts.referents,
    "SameName": namesakes,
    "ArgExtreme": aggregates.best,
}
_STATEMENTS: Final[FactTable[Run, [], Outcome]] = {
    "Scan": facts.scan,
    "Where": facts.where,
    "WhereQualifier": facts.where_qualifier,
    "During": facts.during,
    "DuringAny": during_any,
    "WhereValidity": where_validity,
    "OtherEnd": facts.turn,
}
_BAGS: Final[ValueTable[Run, [], Outcome]] = {
    "Objects": facts.objects,
    "Qualifiers": facts.qualifiers,
    "Validity": validity,
    "Predicates": facts.predicates,
    "QualifierKeys": facts.qualifier_keys,
    "Names": facts.names,
    "RowNumbers": facts.row_numbers,
    "FilterValues": facts.keep,
    "Distinct": facts.distinct_values,
    "Concat": facts.concat,
    "Constants": facts.given,
    "Nth": nth,
    "Clip": clip,
    "Bound": bound,
    "Shown": shown,
    "Apply": apply.apply,
    "Choose": apply.choose,
    "External": apply.external,
    "Extreme": aggregates.extreme,
    "Mode": aggregates.mode,
}
_SINGLE: Final[ScalarTable[Run, [], Outcome]] = {
    "Count": aggregates.count,
    "Sum": aggregates.total,
    "Mean": aggregates.mean,
    "Median": aggregates.median,
    "Deviation": aggregates.deviation,
    "AnySatisfies": aggregates.some,
    "Exists": aggregates.exists,
}
_GROUPED: Final[GroupTable[Run, [], Outcome]] = {
    "Group": grouped.group,
    "Having": grouped.having,
    "Order": grouped.order,
    "Limit": grouped.limit,
}
for _table in (_SETS, _STATEMENTS, _BAGS, _SINGLE, _GROUPED):
    Run.operators.update(by_type(_table))
