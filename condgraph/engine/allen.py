"""Temporal relations of intervals with uncertain ends: Allen's thirteen relations (Allen 1983, Maintaining knowledge
about temporal intervals, Figure 2).

Times of days and seconds are exact: a start is the beginning of its day, an end the end of it. A start or end given
as a month or a year is some moment of it; one that is missing or unknown is any moment. A point in time covers its
whole time, as for `engine.period`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from condgraph.engine.facts import END_TIME, POINT_IN_TIME, START_TIME
from condgraph.engine.values import DAY_SECONDS, OPEN_END, OPEN_START, UNKNOWN, UNKNOWN_END, UNKNOWN_START, Precision, Time

#: Earlier and later than all times of values, in seconds, without overflow in arithmetic.
NEVER_BEFORE: Final = OPEN_START + 1
NEVER_AFTER: Final = UNKNOWN_END - 2
#: The relations of an interval [a, b) to [c, d) as the order of their ends: groups of equal ends, ascending.
RELATIONS: Final[dict[str, tuple[str, ...]]] = {
    "before": ("a", "b", "c", "d"),
    "meets": ("a", "bc", "d"),
    "overlaps": ("a", "c", "b", "d"),
    "starts": ("ac", "b", "d"),
    "during": ("c", "a", "b", "d"),
    "finishes": ("c", "a", "bd"),
    "equals": ("ac", "bd"),
    "finished by": ("a", "c", "bd"),
    "contains": ("a", "c", "d", "b"),
    "started by": ("ac", "d", "b"),
    "overlapped by": ("c", "a", "d", "b"),
    "met by": ("c", "ad", "b"),
    "after": ("c", "d", "a", "b"),
}
_VALIDITY: Final = (START_TIME, END_TIME, POINT_IN_TIME)


@dataclass(frozen=True, slots=True)
class Bounds:
    """An interval with bounds on its ends: it starts between `start[0]` and `start[1]` and ends, exclusive, between
    `end[0]` and `end[1]`, all inclusive, in seconds since 1970.
    """

    start: tuple[int, int]
    end: tuple[int, int]

    @classmethod
    def of(cls, time: Time) -> Bounds:
        """Return the bounds of a time."""
        start, end = max(time.start, NEVER_BEFORE), min(time.end, NEVER_AFTER)
        unknown = time.start in (OPEN_START, UNKNOWN_START), time.end in (OPEN_END, UNKNOWN_END)
        first = (NEVER_BEFORE, end - 1) if unknown[0] else (start, start)
        return cls(first, (first[0] + 1, NEVER_AFTER) if unknown[1] else (end, end))

    @classmethod
    def stated(cls, qualifiers: Iterable[tuple[str, Any]]) -> Bounds | None:
        """Return when a statement holds according to its qualifiers, or None if they say nothing, or if it ends before it
        starts, and so holds at no time. Of several starts the earliest counts, of several ends the latest.
        """
        stated: dict[str, list[Any]] = {}
        for key, value in qualifiers:
            if key in _VALIDITY and (isinstance(value, Time) or value is UNKNOWN):
                stated.setdefault(key, []).append(value)
        if not stated:
            return None
        if START_TIME not in stated and END_TIME not in stated:
            points = stated[POINT_IN_TIME]
            if UNKNOWN in points:
                return cls((NEVER_BEFORE, NEVER_AFTER - 1), (NEVER_BEFORE + 1, NEVER_AFTER))
            return cls.of(Time(min(time.start for time in points), max(time.end for time in points), Precision.SPAN))
        start, end = (NEVER_BEFORE, NEVER_AFTER - 1), (NEVER_BEFORE + 1, NEVER_AFTER)
        starts, ends = stated.get(START_TIME, [UNKNOWN]), stated.get(END_TIME, [UNKNOWN])
        if UNKNOWN not in starts:
            sides = [(time.start, time.start if _exact(time) else time.end - 1) for time in starts]
            start = min(side[0] for side in sides), min(side[1] for side in sides)
        if UNKNOWN not in ends:
            sides = [(time.end if _exact(time) else time.start + 1, time.end) for time in ends]
            end = max(side[0] for side in sides), max(side[1] for side in sides)
        # The start is before the end.
        start, end = (start[0], min(start[1], end[1] - 1)), (max(end[0], start[0] + 1), end[1])
        return None if start[0] > start[1] or end[0] > end[1] else cls(start, end)

    def relations(self, other: Bounds) -> tuple[str, ...]:
        """Return the possible relations to another interval, in the order of `RELATIONS`; a single one if both are
        exact.
        """
        ends = {"a": self.start, "b": self.end, "c": other.start, "d": other.end}
        return tuple(name for name, order in RELATIONS.items() if _possible(order, ends))

    def together(self, other: Bounds) -> bool | None:
        """Return whether the intervals share a moment; None if unknown."""
        disjoint = {"before", "meets", "met by", "after"}
        possible = set(self.relations(other))
        return None if possible & disjoint and possible - disjoint else not possible & disjoint

    def shortest(self) -> float:
        """Return the minimum duration in days; whole days if an end is not exact."""
        least = max(self.end[0] - self.start[1], 0)
        exact = self.start[0] == self.start[1] and self.end[0] == self.end[1]
        return _days(least) if exact else least // DAY_SECONDS

    def longest(self) -> float | None:
        """Return the maximum duration in days; None if an end is unknown."""
        if self.start[0] <= NEVER_BEFORE or self.end[1] >= NEVER_AFTER:
            return None
        return _days(self.end[1] - self.start[0])


def _exact(time: Time) -> bool:
    return time.precision in (Precision.DAY, Precision.SECOND)


def _possible(order: tuple[str, ...], ends: dict[str, tuple[int, int]]) -> bool:
    """Return whether ends within their bounds can have an order, trying the smallest possible value for each group."""
    last: int | None = None
    for group in order:
        low, high = max(ends[name][0] for name in group), min(ends[name][1] for name in group)
        last = low if last is None else max(low, last + 1)
        if last > high:
            return False
    return True


def _days(seconds: int) -> float:
    return seconds // DAY_SECONDS if seconds % DAY_SECONDS == 0 else seconds / DAY_SECONDS
