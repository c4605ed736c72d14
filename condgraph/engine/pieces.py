"""Long work in pieces, with a check of the deadline (`bounds`) between them, so that an operator over
millions of values ends in time.

Where nothing bounds the call, things are done at once, as they would be without this module.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from mmap import mmap
from tempfile import TemporaryFile
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.bounds import check, current

T = TypeVar("T")
#: Things of Python (values, texts) that are handled between two looks at the clock: a hundredth of
#: a second or two.
PIECE: Final = 1 << 13
#: Rows of columns that are sorted at once, for the same.
ROWS: Final = 1 << 17
#: Numbers of `scratch` that are held in memory.
_HELD: Final = 1 << 20
#: Of so few rows, one call that compares is quicker than several that count.
_LEAST: Final = 64


def pieces(items: Any, size: int = PIECE) -> Iterator[Any]:
    """A list or an array in slices, with a look at the clock before each."""
    if current() is None or len(items) <= size:
        yield items
        return
    for start in range(0, len(items), size):
        check()
        yield items[start : start + size]


def slices(length: int, size: int = ROWS) -> Iterator[slice]:
    """A range in slices of so many rows, for columns that may be longer than memory."""
    return (slice(low, min(low + size, length)) for low in range(0, length, size))


def scratch(length: int, dtype: Any) -> NDArray[Any]:
    """An array of zeros to work in: a long one in a file without a name, which is not held in memory as others are."""
    if length <= _HELD:
        return np.zeros(length, dtype)
    size = length * np.dtype(dtype).itemsize
    try:
        with TemporaryFile() as file:
            # A file with holes would end the process where the disk is full.
            os.posix_fallocate(file.fileno(), 0, size)
            return np.frombuffer(mmap(file.fileno(), size), dtype)
    except (OSError, AttributeError):
        return np.zeros(length, dtype)


def watched(items: Iterable[T], size: int = PIECE) -> Iterable[T]:
    """The same items, with a look at the clock every so many."""
    return items if current() is None else chain.from_iterable(_some(iter(items), size))


def _some(items: Iterator[T], size: int) -> Iterator[list[T]]:
    while True:
        check()
        found = list(islice(items, size))
        if not found:
            return
        yield found


def places_in_order(count: int, key: Callable[[int], Any], *, reverse: bool = False) -> list[int]:
    """The places `0 .. count - 1` sorted by a key, as `sorted` does, equal ones in the order of
    their places.

    Many are spread over buckets by a sample of their keys, and each bucket is sorted by itself.
    """
    if current() is None or count <= 2 * PIECE:
        return sorted(range(count), key=key, reverse=reverse)
    keys = list(map(key, watched(range(count))))
    # Thirty-two keys of each bucket tell well enough where it begins.
    sample = sorted(keys[:: PIECE // 32])
    check()
    pivots = sample[32::32]
    buckets: list[list[int]] = [[] for _ in range(len(pivots) + 1)]
    for place in watched(range(count)):
        buckets[bisect_right(pivots, keys[place])].append(place)
    found: list[int] = []
    for bucket in reversed(buckets) if reverse else buckets:
        check()
        bucket.sort(key=keys.__getitem__, reverse=reverse)
        found.extend(bucket)
    return found


def different(numbers: NDArray[Any]) -> NDArray[Any]:
    """The different ones of some numbers, sorted: `np.unique`, which hashes many numbers first and is
    slower for that.
    """
    ordered = np.sort(numbers)
    return ordered[changed(ordered)]


def changed(*columns: NDArray[Any]) -> NDArray[np.bool_]:
    """Which rows are not the row before, in columns of one length; the first is none.

    >>> changed(np.array([1, 1, 1, 2]), np.array([5, 5, 6, 6])).tolist()
    [True, False, True, True]
    """
    fresh = np.ones(len(columns[0]), bool)
    fresh[1:] = columns[0][1:] != columns[0][:-1]
    for column in columns[1:]:
        fresh[1:] |= column[1:] != column[:-1]
    return fresh


def in_order(marks: Sequence[NDArray[Any]]) -> NDArray[np.int64]:
    """The places of rows in the order of their marks, whole numbers of any type, the first mark the
    most significant, equal rows by place: `np.lexsort(marks[::-1])`, several times quicker. Numbers
    of up to 16 bits are sorted by counting, longer ones together with their places where both fit
    into one number, else by 16 bits at once, the lowest first; a mark that is the same everywhere
    costs nothing, and one that follows the mark before it at one distance little.

    >>> in_order([np.array([2, 0, 2, 1])]).tolist(), in_order([np.array([7, 7, 7]), np.array([3, -1, 3])]).tolist()
    ([1, 3, 0, 2], [1, 0, 2])
    """
    if len(marks[0]) <= _LEAST:
        return np.lexsort(marks[::-1])
    order: NDArray[np.int64] | None = None
    for at in reversed(range(len(marks))):
        mark = marks[at]
        low, high = (int(mark.min()), int(mark.max())) if len(mark) else (0, 0)
        if low == high or (at and _follows(mark, marks[at - 1])):
            continue
        if order is None and (mark[1:] >= mark[:-1]).all():
            continue
        above = _above(mark, low, high)
        # Of floats as bits the last ones are often 0.
        used = int(np.bitwise_or.reduce(above)) if high - low >= 1 << 32 else high - low
        first = (used & -used).bit_length() - 1 if high - low >= 1 << 32 else 0
        if 16 < used.bit_length() - first <= 63 - len(mark).bit_length():
            within = _order_beside(above >> first if first else above, order)
            order = within if order is None else order[within]
            continue
        for shift in range(first, used.bit_length(), 16):
            part = (above >> shift if shift else above).astype(np.uint8 if used >> shift < 256 else np.uint16)
            order = np.argsort(part, kind="stable") if order is None else order[np.argsort(part[order], kind="stable")]
    return np.arange(len(marks[0])) if order is None else order


def _order_beside(above: NDArray[Any], order: NDArray[np.int64] | None) -> NDArray[np.int64]:
    """The places of numbers in their order, taken in another one: each is sorted together with its
    place, which stands in the bits below.
    """
    bits = len(above).bit_length()
    both = (above if order is None else above[order]).astype(np.int64)
    both <<= bits
    both |= np.arange(len(both))
    both.sort()
    both &= (1 << bits) - 1
    return both


def _above(mark: NDArray[Any], low: int, high: int) -> NDArray[Any]:
    """How much more whole numbers are than the least of them, without a sign."""
    if high - low < 1 << 31 and mark.dtype == np.int32:
        return (mark - np.int32(low)).view(np.uint32)
    wide = mark if mark.dtype == np.uint64 else mark.astype(np.int64).view(np.uint64)
    return wide - np.uint64(low % 2**64)


def _follows(mark: NDArray[Any], before: NDArray[Any]) -> bool:
    """Whether a mark is the one before and always the same number, so that it tells no more."""
    if mark.dtype != np.int64 or before.dtype != np.int64:
        return False
    apart = mark - before
    return bool((apart == apart[0]).all())
