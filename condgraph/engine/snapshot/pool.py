"""The string pool: every distinct text of a graph once, sorted by code point, so that comparing
numbers compares texts.

Columns: `pool.bytes` (UTF-8 back to back), `pool.offsets` (one more than texts; 32 bits wide, 64
where they have to be), and a hash index, `pool.buckets` and `pool.items`: the texts whose CRC-32 ends in the bits b are
`items[buckets[b]:buckets[b + 1]]`. UTF-8 keeps code-point order, so the number of a text is its
rank.
"""

from __future__ import annotations

import re
import zlib
from bisect import bisect_left
from collections.abc import Sequence
from itertools import compress, islice
from operator import ne
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.bounds import current
from condgraph.engine.errors import LoadError
from condgraph.engine.pieces import in_order, pieces
from condgraph.engine.snapshot.container import ArrayFile

#: Up to this many texts, their places are looked up one by one.
_FEW: Final = 8
_SURROGATE: Final = re.compile("[\ud800-\udfff]").search
#: Texts that are read between two looks at the clock.
_SOME: Final = 1 << 15


def build_pool(texts: Sequence[str]) -> tuple[dict[str, NDArray[Any]], NDArray[np.int32]]:
    """Lay out texts, each once. Returns the columns, and for each given text its number in the pool."""
    # UTF-8 keeps the order of code points, in which strings compare; sorting has a way of its own
    # for them.
    order = sorted(range(len(texts)), key=texts.__getitem__)
    number = np.empty(len(order), np.int32)
    ordered = list(map(texts.__getitem__, order))
    # What is there twice stands side by side: looking there is cheaper than looking each text up before.
    fresh = list(map(ne, ordered, islice(ordered, 1, None)))
    if all(fresh):
        number[order] = np.arange(len(order), dtype=np.int32)
    else:
        fresh.insert(0, True)
        number[order] = np.cumsum(fresh, dtype=np.int32) - 1
        ordered = list(compress(ordered, fresh))
    offsets = np.zeros(len(ordered) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, ordered), np.int64, len(ordered)), out=offsets[1:])
    joined = "".join(ordered)
    try:
        data = np.frombuffer(joined.encode(), np.uint8)
    except UnicodeEncodeError:
        broken = next(text for text in texts if _SURROGATE(text))
        raise LoadError(f"a text holds half a surrogate pair, which is no character: {broken!r}") from None
    if len(data) > len(joined):
        # From characters to bytes: each begins with a byte that continues none.
        offsets = np.append(np.flatnonzero((data & 0xC0) != 0x80), len(data))[offsets]
    if len(data) < 2**31:
        offsets = offsets.astype(np.int32)
    # Two or three texts share a bucket: finer ones would cost more to keep than to tell apart.
    size = 1 << max(4, len(ordered).bit_length() - 2)
    hashes = np.fromiter(map(zlib.crc32, map(str.encode, ordered)), np.uint32, len(ordered))
    slots = (hashes & np.uint32(size - 1)).astype(np.int64)
    buckets = np.zeros(size + 1, np.int32)
    np.cumsum(np.bincount(slots, minlength=size), out=buckets[1:])
    columns: dict[str, NDArray[Any]] = {
        "pool.bytes": data,
        "pool.offsets": offsets,
        "pool.buckets": buckets,
        "pool.items": in_order([slots]).astype(np.int32),
    }
    return columns, number


class Pool:
    """The texts of an open snapshot. Numbers run from 0 to `len(pool) - 1`, in code-point order."""

    def __init__(self, arrays: ArrayFile) -> None:
        # Slices of what the array lies in are twice as fast as those of a view of it.
        self._bytes, self._begin = arrays.raw("pool.bytes")
        self._offsets = arrays.view("pool.offsets")
        self._ends = arrays.get("pool.offsets")
        self._buckets = arrays.view("pool.buckets")
        self._items = arrays.view("pool.items")
        self._mask = max(len(self._buckets) - 2, 0)

    def __len__(self) -> int:
        return max(len(self._offsets) - 1, 0)

    def __getitem__(self, number: int) -> str:
        begin = self._begin
        return self._bytes[begin + self._offsets[number] : begin + self._offsets[number + 1]].decode()

    def take(self, numbers: NDArray[Any]) -> list[str]:
        """The texts of many numbers."""
        data, begin = self._bytes, self._begin
        if len(numbers) <= _FEW:
            offsets = self._offsets
            return [data[begin + offsets[n] : begin + offsets[n + 1]].decode() for n in numbers.tolist()]
        if len(numbers) > _SOME and current() is not None:
            return [text for some in pieces(numbers, _SOME) for text in self.take(some)]
        first, last = self._ends.take(numbers).astype(np.int64), self._ends[1:].take(numbers).astype(np.int64)
        if begin:
            first += begin
            last += begin
        return [data[low:high].decode() for low, high in zip(first.tolist(), last.tolist(), strict=True)]

    def longer(self, size: int) -> NDArray[np.int64]:
        """The numbers of the texts of more than `size` bytes."""
        return np.flatnonzero(self._ends[1:] - self._ends[:-1] > size)

    def find(self, text: str) -> int:
        """The number of a text, or -1."""
        if not len(self):
            return -1
        try:
            key = text.encode()
        except UnicodeEncodeError:
            return -1
        slot = zlib.crc32(key) & self._mask
        offsets, begin = self._offsets, self._begin
        for at in range(self._buckets[slot], self._buckets[slot + 1]):
            number: int = self._items[at]
            if self._bytes[begin + offsets[number] : begin + offsets[number + 1]] == key:
                return number
        return -1

    def rank(self, text: str) -> int:
        """How many texts of the pool sort before this one, which need not be in it."""
        return bisect_left(range(len(self)), text.encode("utf-8", "surrogatepass"), key=self._raw)

    def _raw(self, number: int) -> bytes:
        return self._bytes[self._begin + self._offsets[number] : self._begin + self._offsets[number + 1]]
