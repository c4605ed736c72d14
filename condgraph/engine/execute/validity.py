"""The validity of statements, and its relations to intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.execute.sets import EMPTY, Mask, Numbers, Part
from condgraph.engine.functions import time_mask
from condgraph.engine.values import DAY_SECONDS, OPEN_END, OPEN_START, UNKNOWN_END, UNKNOWN_START, Precision, Time

if TYPE_CHECKING:
    from condgraph.engine.period import Period
    from condgraph.engine.snapshot.snapshot import Snapshot


#: The number of cuts that are cached with a snapshot.
_MAX_CUTS: Final = 4


def validity_in(snapshot: Snapshot, numbers: Numbers) -> tuple[Numbers, Any, Any]:
    """Return the positions of the statements that have a validity, with its start and end."""
    get = snapshot.arrays.get
    owners = get("val.stmt")
    if not len(owners) or not len(numbers):
        return EMPTY, np.empty(0, np.int64), np.empty(0, np.int64)
    places = np.searchsorted(owners, numbers)
    places[places == len(owners)] = 0
    positions = np.flatnonzero(owners[places] == numbers).astype(np.int32)
    return positions, get("val.start")[places[positions]], get("val.end")[places[positions]]


def holds_at(snapshot: Snapshot, relation: str, interval: Time, statements: Numbers) -> Mask:
    """Return which statements may (must) hold in an interval; those without a validity always do."""
    mask = np.ones(len(statements), bool)
    positions, start, end = validity_in(snapshot, statements)
    mask[positions] = interval_mask(relation, interval, start, end)
    return mask


def interval_mask(relation: str, interval: Time, start: Any, end: Any) -> Mask:
    """Return which validities have a relation to an interval. Unknown bounds are taken at their least favourable, so
    that only certain facts pass.
    """
    low, high = interval.start, interval.end
    if relation == "may":
        # An open or unknown start is less than every other bound, an open or unknown end greater.
        may: Mask = (start < high) & (end > low)
        return may
    if relation == "must":
        must: Mask = (start > OPEN_START) & (start <= low) & (end < UNKNOWN_END) & (end >= high)
        return must
    no_start, no_end = start == UNKNOWN_START, end == UNKNOWN_END
    # The only certainty about an unknown bound: it is on its side of the known one.
    latest_start = np.where(no_start, np.where(no_end, OPEN_END, end), start)
    earliest_start = np.where(no_start, OPEN_START, start)
    earliest_end = np.where(no_end, np.where(no_start, OPEN_START, start), end)
    latest_end = np.where(no_end, OPEN_END, end)
    mask: Mask
    if relation == "overlaps":
        # If one bound is known, the fact holds at least at that bound.
        inside_start = ~no_start & (start >= low) & (start < high)
        inside_end = ~no_end & (end > low) & (end <= high)
        both = ~no_start & ~no_end & (start < high) & (end > low)
        mask = inside_start | inside_end | both
    elif relation == "contains":
        mask = (latest_start <= low) & (earliest_end >= high)
    else:
        mask = time_mask(_AS_COMPARED[relation], interval, earliest_start, latest_end)
    return mask


#: Relations that are comparisons of times, with their operators.
_AS_COMPARED: Final = {"disjoint": "!=", "within": "=", "before": "<", "after": ">", "until": "<=", "from": ">="}


def cut(snapshot: Snapshot, period: Period) -> Snapshot:
    """Return a snapshot of the statements that hold in a period, with all entities, concepts and sources."""
    from condgraph.engine.snapshot.build import Builder
    from condgraph.engine.snapshot.layout import lay_out
    from condgraph.engine.snapshot.snapshot import Snapshot

    cuts: dict[Period, Snapshot] = snapshot.schema.kept.setdefault("cuts", {})
    result = cuts.get(period)
    if result is None:
        all_statements = np.arange(snapshot.statements, dtype=np.int32)
        holds = holds_at(snapshot, period.relation, period.interval, all_statements)
        result = Snapshot.of(*lay_out(Builder(snapshot, stays=holds)), snapshot.further)
        if len(cuts) >= _MAX_CUTS:
            cuts.pop(next(iter(cuts)), None)
        cuts[period] = result
    return result


# -- spans -------------------------------------------------------------------------------------------
# Validity as values: intervals of time, and their precision.


def span_part(statements: Numbers, start: NDArray[Any], end: NDArray[Any]) -> Part:
    """Return validities as intervals, without those with an unknown side."""
    known = (start != UNKNOWN_START) & (end != UNKNOWN_END)
    start, end, statements = start[known], end[known], statements[known]
    return Part("span", np.arange(len(start)), statements, (start, end, span_precision(start, end)))


def span_precision(start: NDArray[Any], end: NDArray[Any]) -> NDArray[np.int8]:
    """Return the precision of intervals as int8: that of a year, a month or a day if the interval is exactly one,
    else `Precision.SPAN`.
    """
    precisions = np.full(len(start), Precision.SPAN, np.int8)
    # Without open sides, which would overflow, and longer intervals.
    short = np.flatnonzero((start > OPEN_START) & (end < UNKNOWN_END))
    short = short[(end[short] - start[short] <= 366 * DAY_SECONDS) & (start[short] % DAY_SECONDS == 0)]
    days = (end[short] - start[short]) // DAY_SECONDS
    is_candidate = (end[short] % DAY_SECONDS == 0) & ((days == 1) | (days >= 28))
    short, days = short[is_candidate], days[is_candidate]
    if not len(short):
        return precisions
    precisions[short[days == 1]] = Precision.DAY
    first = (start[short] // DAY_SECONDS).astype("M8[D]")
    for unit, precision in (("M8[M]", Precision.MONTH), ("M8[Y]", Precision.YEAR)):
        begins = first.astype(unit)
        length = ((begins + 1).astype("M8[D]") - begins.astype("M8[D]")).astype(np.int64)
        precisions[short[(begins.astype("M8[D]") == first) & (length == days)]] = precision
    return precisions
