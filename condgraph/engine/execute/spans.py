"""Validity as values: intervals of time, and how precise they are."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.execute.sets import Numbers, Part
from condgraph.engine.values import DAY_SECONDS, OPEN_START, UNKNOWN_END, UNKNOWN_START, Precision


def span_part(statements: Numbers, start: NDArray[Any], end: NDArray[Any]) -> Part:
    """Validity as intervals; those with a side that is not known are no value."""
    known = (start != UNKNOWN_START) & (end != UNKNOWN_END)
    start, end, statements = start[known], end[known], statements[known]
    return Part("span", np.arange(len(start)), statements, (start, end, span_precision(start, end)))


def span_precision(start: NDArray[Any], end: NDArray[Any]) -> NDArray[np.int8]:
    """The precision of intervals, int8: that of a year, a month or a day where one is exactly that,
    else `Precision.SPAN`.
    """
    found = np.full(len(start), Precision.SPAN, np.int8)
    # Open sides would overflow, and longer intervals are none of these.
    short = np.flatnonzero((start > OPEN_START) & (end < UNKNOWN_END))
    short = short[(end[short] - start[short] <= 366 * DAY_SECONDS) & (start[short] % DAY_SECONDS == 0)]
    days = (end[short] - start[short]) // DAY_SECONDS
    whole = (end[short] % DAY_SECONDS == 0) & ((days == 1) | (days >= 28))
    short, days = short[whole], days[whole]
    if not len(short):
        return found
    found[short[days == 1]] = Precision.DAY
    first = (start[short] // DAY_SECONDS).astype("M8[D]")
    for unit, precision in (("M8[M]", Precision.MONTH), ("M8[Y]", Precision.YEAR)):
        begins = first.astype(unit)
        length = ((begins + 1).astype("M8[D]") - begins.astype("M8[D]")).astype(np.int64)
        found[short[(begins.astype("M8[D]") == first) & (length == days)]] = precision
    return found
