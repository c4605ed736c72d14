"""Long work in pieces, with a look at the clock (`bounds`) between them: an operator of millions of
values ends at a deadline, too.

Where nothing bounds the call, things are done at once, as they would be without this module.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.bounds import check, current

T = TypeVar("T")
H = TypeVar("H", bound=Hashable)
#: Things of Python (values, texts) that are handled between two looks at the clock: a hundredth of
#: a second or two.
PIECE: Final = 1 << 13
#: Rows of columns that are sorted at once, for the same.
ROWS: Final = 1 << 17


def pieces(items: Any, size: int = PIECE) -> Iterator[Any]:
    """A list or an array in slices, with a look at the clock before each."""
    if current() is None or len(items) <= size:
        yield items
        return
    for start in range(0, len(items), size):
        check()
        yield items[start : start + size]


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


def mapped(call: Callable[[Any], T], items: Sequence[Any], size: int = PIECE) -> list[T]:
    """`call` of each of the items."""
    if current() is None or len(items) <= size:
        return list(map(call, items))
    found: list[T] = []
    for piece in pieces(items, size):
        found.extend(map(call, piece))
    return found


def each_once(items: Sequence[H]) -> list[H]:
    """The distinct items, in the order in which they first come."""
    if current() is None or len(items) <= PIECE:
        return list(dict.fromkeys(items))
    found: dict[H, None] = {}
    for piece in pieces(items, 1 << 16):
        found.update(dict.fromkeys(piece))
    return list(found)


def set_of(items: Sequence[H]) -> set[H]:
    """The distinct items."""
    if current() is None or len(items) <= PIECE:
        return set(items)
    found: set[H] = set()
    for piece in pieces(items, 1 << 16):
        found.update(piece)
    return found


def tally(items: Iterable[H]) -> Counter[H]:
    """How often each of the items comes."""
    return Counter(watched(items))


def places_in_order(count: int, key: Callable[[int], Any], *, reverse: bool = False) -> list[int]:
    """The places `0 .. count - 1` sorted by a key, as `sorted` does, equal ones in the order of
    their places.

    Many are spread over buckets by a sample of their keys, and each bucket is sorted by itself.
    """
    if current() is None or count <= 2 * PIECE:
        return sorted(range(count), key=key, reverse=reverse)
    keys = mapped(key, range(count))
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
    fresh = np.ones(len(ordered), bool)
    fresh[1:] = ordered[1:] != ordered[:-1]
    return ordered[fresh]


def stable_order(numbers: NDArray[Any], largest: int = 2**63 - 1) -> NDArray[np.int64]:
    """The places of whole numbers in their order, equal ones by place, as `argsort(kind="stable")`
    gives them, and quicker: numbers that are all different may be sorted in any way. Those from 0
    to a `largest` that leaves room for a place in 64 bits are sorted with it.

    >>> stable_order(np.array([2, 0, 2, 1])).tolist(), stable_order(np.array([2, 0, 2, 1]), 2).tolist()
    ([1, 3, 0, 2], [1, 3, 0, 2])
    """
    bits = len(numbers).bit_length()
    if largest.bit_length() + bits <= 62:
        packed = numbers.astype(np.int64) << bits
        packed |= np.arange(len(numbers))
    else:
        order = np.argsort(numbers)
        ordered = numbers[order]
        fresh = ordered[1:] != ordered[:-1]
        if fresh.all():
            return order
        packed = np.zeros(len(order), np.int64)
        np.cumsum(fresh, out=packed[1:])
        packed <<= bits
        packed |= order
    packed.sort()
    packed &= (1 << bits) - 1
    return packed


def ranked(numbers: NDArray[Any]) -> NDArray[np.int64]:
    """How many smaller ones there are among the distinct numbers, of each.

    >>> ranked(np.array([9, 4, 9, 7])).tolist()
    [2, 0, 2, 1]
    """
    order = np.argsort(numbers)
    ordered = numbers[order]
    steps = np.zeros(len(order), np.int64)
    np.cumsum(ordered[1:] != ordered[:-1], out=steps[1:])
    ranks = np.empty(len(order), np.int64)
    ranks[order] = steps
    return ranks


def alike(columns: Sequence[NDArray[Any]]) -> Iterator[tuple[NDArray[np.int64], NDArray[np.bool_]]]:
    """Rows side by side with those equal to them, in parts: places of rows, equal ones together and
    ascending, and whether a row is the first of its equals. `columns` are the parts of the rows,
    integers of any size, each of shape (rows,).

    Rows are spread over parts by a hash of what they hold, so that equal ones meet in one part.
    """
    count = len(columns[0])
    if count <= 2 * ROWS:
        yield _sorted(columns, np.arange(count))
        return
    bits = (count // ROWS).bit_length()
    part = np.empty(count, np.uint16)
    for start in range(0, count, ROWS):
        check()
        mixed = np.zeros(min(ROWS, count - start), np.uint64)
        for column in columns:
            mixed = (mixed ^ column[start : start + ROWS].astype(np.int64).view(np.uint64)) * _ODD
            mixed ^= mixed >> np.uint64(29)
        part[start : start + ROWS] = (mixed * _ODD) >> np.uint64(64 - bits)
    check()
    # Sorting such small numbers takes one pass over them.
    order = part.argsort(kind="stable")
    ends = np.bincount(part, minlength=1 << bits).cumsum().tolist()
    for low, high in zip([0, *ends[:-1]], ends, strict=True):
        check()
        if low < high:
            yield _sorted(columns, order[low:high])


_ODD: Final = np.uint64(0x9E3779B97F4A7C15)


def _sorted(columns: Sequence[NDArray[Any]], places: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    rows = [column.take(places) for column in columns]
    order = rows[0].argsort(kind="stable") if len(rows) == 1 else np.lexsort(rows)
    fresh = np.zeros(len(places), bool)
    fresh[:1] = True
    for row in rows:
        there = row.take(order)
        fresh[1:] |= there[1:] != there[:-1]
    return places.take(order), fresh
