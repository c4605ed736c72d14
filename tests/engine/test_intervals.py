"""Intervals: as few as cover the same time, and how exact each of them is."""

from __future__ import annotations

import numpy as np
import pytest

from condgraph.engine.execute.operators import merged
from condgraph.engine.execute.validity import span_precision
from condgraph.engine.values import OPEN_START, UNKNOWN_END, Precision, Time

DAY = 86_400


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ([], []),
        ([(1, 2)], [(1, 2)]),
        ([(1, 2), (3, 4)], [(1, 2), (3, 4)]),
        ([(1, 3), (2, 4)], [(1, 4)]),
        # Two that touch are one.
        ([(1, 2), (2, 4)], [(1, 4)]),
        ([(1, 9), (2, 3), (4, 5)], [(1, 9)]),
        ([(1, 9), (2, 3), (10, 12), (11, 13)], [(1, 9), (10, 13)]),
        ([(1, 2), (1, 5), (7, 8)], [(1, 5), (7, 8)]),
    ],
)
def test_merged(given: list[tuple[int, int]], wanted: list[tuple[int, int]]) -> None:
    pairs = np.array(given, np.int64).reshape(-1, 2)
    start, end = merged(pairs[:, 0], pairs[:, 1])
    assert list(zip(start.tolist(), end.tolist(), strict=True)) == wanted


SPANS = [
    (Time.year(1999), Precision.YEAR),
    (Time.year(2000), Precision.YEAR),
    (Time.year(-43), Precision.YEAR),
    (Time.month(2000, 2), Precision.MONTH),
    (Time.month(2001, 2), Precision.MONTH),
    (Time.month(2001, 12), Precision.MONTH),
    (Time.day(2000, 2, 29), Precision.DAY),
    (Time.day(1999, 1, 1), Precision.DAY),
    (Time.parse("1979/1981"), Precision.SPAN),
    # As long as a month, a year or a day, and none.
    (Time.span(Time.day(2001, 1, 15), Time.day(2001, 2, 14)), Precision.SPAN),
    (Time.span(Time.day(2001, 3, 1), Time.day(2002, 2, 28)), Precision.SPAN),
    (Time.span(Time.day(2001, 3, 1), Time.day(2001, 3, 2)), Precision.SPAN),
]


@pytest.mark.parametrize(
    "chosen", [SPANS, *([one] for one in SPANS)], ids=lambda chosen: str(chosen[0][0]) if len(chosen) == 1 else "all"
)
def test_how_exact_intervals_are(chosen: list[tuple[Time, Precision]]) -> None:
    start, end = (np.array([getattr(time, side) for time, _ in chosen], np.int64) for side in ("start", "end"))
    assert span_precision(start, end).tolist() == [precision for _, precision in chosen]


@pytest.mark.parametrize(
    ("start", "end"),
    [(OPEN_START, 0), (0, UNKNOWN_END), (OPEN_START, UNKNOWN_END), (1, 1 + DAY), (0, DAY + 1), (0, 400 * DAY), (0, 0)],
)
def test_no_day_month_or_year(start: int, end: int) -> None:
    assert span_precision(np.array([start], np.int64), np.array([end], np.int64)).tolist() == [Precision.SPAN]
    # Beside one that is.
    day = Time.day(2000, 1, 1)
    found = span_precision(np.array([day.start, start], np.int64), np.array([day.end, end], np.int64))
    assert found.tolist() == [Precision.DAY, Precision.SPAN]
