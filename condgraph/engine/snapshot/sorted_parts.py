"""Sorted tables that come in parts: which rows are new, where groups begin, and how often each row comes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.pieces import changed, in_order
from condgraph.engine.snapshot.spill import I32, ROWS, Part, SpilledColumn

#: Parts of counts that are gathered before they are added up.
_TOGETHER: Final = 64


class NewRows:
    """Which rows are not the row before, in a sorted table that comes in parts."""

    def __init__(self) -> None:
        self._last: list[Any] | None = None

    def __call__(self, *columns: NDArray[Any]) -> NDArray[np.bool_]:
        """Which rows of the next part are not the row before."""
        fresh = changed(*columns)
        if self._last is not None:
            fresh[0] = any(column[0] != last for column, last in zip(columns, self._last, strict=True))
        self._last = [column[-1] for column in columns]
        return fresh


class Groups:
    """Runs of rows with equal marks in a table that comes in parts: the marks, and where each starts."""

    def __init__(self, *names: str) -> None:
        self._names, self._fresh, self._length = names, NewRows(), 0
        self._found: dict[str, list[NDArray[Any]]] = {name: [] for name in (*names, "start")}

    def add(self, part: Part) -> None:
        """Take the next part."""
        marks = [part[name] for name in self._names]
        starts = np.flatnonzero(self._fresh(*marks))
        for name, mark in zip(self._names, marks, strict=True):
            self._found[name].append(mark[starts])
        self._found["start"].append(starts + self._length)
        self._length += len(marks[0])

    def columns(self, prefix: str, kind_of: Mapping[str, Any], called: Mapping[str, str]) -> Part:
        """The marks of all groups and where each starts, with the end of the last, by names of columns."""
        self._found["start"].append(np.array([self._length]))
        types = {**dict.fromkeys(self._names, I32), **kind_of, "start": np.int64}
        return {f"{prefix}.{called.get(name, name)}": joined_parts(found, types[name]) for name, found in self._found.items()}


def joined_parts(parts: Sequence[NDArray[Any]], dtype: Any) -> NDArray[Any]:
    """Parts as one array."""
    return np.concatenate([np.empty(0, dtype), *parts]).astype(dtype, copy=False)


class Offsets:
    """Where each number begins in a sorted column that comes in parts, written as it comes."""

    def __init__(self, column: SpilledColumn) -> None:
        self._column, self._next, self._seen = column, 0, 0

    def add(self, numbers: NDArray[Any]) -> None:
        """Take the next part."""
        last = int(numbers[-1])
        for low in range(self._next, last + 1, ROWS):
            high = min(low + ROWS, last + 1)
            self._column.add(self._seen + np.searchsorted(numbers, np.arange(low, high)))
        self._next, self._seen = max(self._next, last + 1), self._seen + len(numbers)

    def end(self, size: int) -> None:
        """Write the offsets of what is left of `size` numbers, and the end."""
        for low in range(self._next, size + 1, ROWS):
            self._column.add(np.full(min(low + ROWS, size + 1) - low, self._seen))


def whole(parts: Iterable[Part], *keys: str) -> Iterator[Part]:
    """The same rows, in parts that end where a group of rows with equal keys ends."""
    held: Part | None = None
    for part in parts:
        if held is not None:
            part = {name: np.concatenate([held[name], column]) for name, column in part.items()}
        starts = np.flatnonzero(changed(*(part[key] for key in keys)))
        cut = int(starts[-1])
        if cut:
            yield {name: column[:cut] for name, column in part.items()}
        held = {name: column[cut:] for name, column in part.items()}
    if held is not None:
        yield held


class Counts:
    """How often each row of some columns comes."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._found: list[tuple[list[NDArray[Any]], NDArray[Any]]] = []

    def add(self, columns: Sequence[NDArray[Any]], counts: NDArray[Any] | None = None) -> None:
        """Count rows, each once, or so often."""
        columns = [np.asarray(column, np.int64) for column in columns]
        order = in_order(columns)
        columns = [column[order] for column in columns]
        starts = np.flatnonzero(changed(*columns))
        each = np.ones(len(order), np.int64) if counts is None else counts[order]
        self._found.append(([column[starts] for column in columns], np.add.reduceat(each, starts) if len(starts) else each))
        if len(self._found) > _TOGETHER:
            self.found()

    def found(self) -> tuple[list[NDArray[Any]], NDArray[np.int64]]:
        """The different rows in order, and their counts."""
        found, self._found = self._found, []
        columns = [joined_parts([one[0][at] for one in found], np.int64) for at in range(self._width)]
        self.add(columns, joined_parts([one[1] for one in found], np.int64))
        return self._found[0]
