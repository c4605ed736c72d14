"""When something holds, with what is not known about it, and how that stands to something else: Allen's thirteen
relations between intervals (Allen 1983, Maintaining knowledge about temporal intervals, Figure 2).

Times of days and seconds are exact: a start is the beginning of its day, an end the end of it. A start or an end of a
month or a year is some moment of it, one that is not stated or not known any moment. A point in time is all of its
time, as for `engine.period`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from condgraph.engine.facts import END_TIME, POINT_IN_TIME, START_TIME
from condgraph.engine.values import DAY_SECONDS, OPEN_END, OPEN_START, UNKNOWN, UNKNOWN_END, UNKNOWN_START, Precision, Time

#: Before and after all times of seconds that values have; exact in arithmetic.
NEVER_BEFORE: Final = OPEN_START + 1
NEVER_AFTER: Final = UNKNOWN_END - 2
#: The relations of an interval [a, b) to [c, d) as the order of the ends: groups of equal ones, ascending.
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
    """An interval whose ends are known as far as they are: it starts between `start[0]` and `start[1]` and ends, exclusive,
    between `end[0]` and `end[1]`, in seconds since 1970, all of them inclusive.
    """

    start: tuple[int, int]
    end: tuple[int, int]

    @classmethod
    def of(cls, time: Time) -> Bounds:
        """All of a time."""
        start, end = max(time.start, NEVER_BEFORE), min(time.end, NEVER_AFTER)
        unknown = time.start in (OPEN_START, UNKNOWN_START), time.end in (OPEN_END, UNKNOWN_END)
        first = (NEVER_BEFORE, end - 1) if unknown[0] else (start, start)
        return cls(first, (first[0] + 1, NEVER_AFTER) if unknown[1] else (end, end))

    @classmethod
    def stated(cls, qualifiers: Iterable[tuple[str, Any]]) -> Bounds | None:
        """When a statement holds by its qualifiers; None where they say nothing. Of several starts the earliest counts, of
        several ends the latest.
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
        # It starts before it ends.
        start, end = (start[0], min(start[1], end[1] - 1)), (max(end[0], start[0] + 1), end[1])
        # Ends in the wrong order are not known, as for `engine.period`.
        if start[0] > start[1] or end[0] > end[1]:
            return cls((NEVER_BEFORE, NEVER_AFTER - 1), (NEVER_BEFORE + 1, NEVER_AFTER))
        return cls(start, end)

    def relations(self, other: Bounds) -> tuple[str, ...]:
        """The relations that this may have to another, in the order of `RELATIONS`: of intervals that are known, one."""
        ends = {"a": self.start, "b": self.end, "c": other.start, "d": other.end}
        return tuple(name for name, order in RELATIONS.items() if _possible(order, ends))

    def together(self, other: Bounds) -> bool | None:
        """Whether there is a moment in both; None where that is not known."""
        apart = {"before", "meets", "met by", "after"}
        possible = set(self.relations(other))
        return None if possible & apart and possible - apart else not possible & apart

    def shortest(self) -> float:
        """The least days that it lasts: whole ones, where an end is not exact."""
        least = max(self.end[0] - self.start[1], 0)
        exact = self.start[0] == self.start[1] and self.end[0] == self.end[1]
        return _days(least) if exact else least // DAY_SECONDS

    def longest(self) -> float | None:
        """The most days that it lasts; None where an end is not known."""
        if self.start[0] <= NEVER_BEFORE or self.end[1] >= NEVER_AFTER:
            return None
        return _days(self.end[1] - self.start[0])


def _exact(time: Time) -> bool:
    return time.precision in (Precision.DAY, Precision.SECOND)


def _possible(order: tuple[str, ...], ends: dict[str, tuple[int, int]]) -> bool:
    """Whether ends within their bounds can stand in an order: the least value that each group can have is tried."""
    last: int | None = None
    for group in order:
        low, high = max(ends[name][0] for name in group), min(ends[name][1] for name in group)
        last = low if last is None else max(low, last + 1)
        if last > high:
            return False
    return True


def _days(seconds: int) -> float:
    return seconds // DAY_SECONDS if seconds % DAY_SECONDS == 0 else seconds / DAY_SECONDS
