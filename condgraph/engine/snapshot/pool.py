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
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.bounds import current
from condgraph.engine.errors import LoadError
from condgraph.engine.pieces import in_order, pieces
from condgraph.engine.snapshot.container import ArrayFile
from condgraph.engine.text_bytes import SPARE, bytes_of, checksums, put_together, sorted_texts

#: Up to this many texts, their places are looked up one by one.
_FEW: Final = 8
_SURROGATE: Final = re.compile("[\ud800-\udfff]").search
#: Texts that are read between two looks at the clock.
_SOME: Final = 1 << 15


def build_pool(
    texts: list[str], more: Sequence[tuple[NDArray[np.uint8], NDArray[np.int64]]] = ()
) -> tuple[dict[str, NDArray[Any]], NDArray[np.int32]]:
    """Lay out texts, each once, and `more` of them as bytes back to back, with their lengths.
    Returns the columns, and for each given text its number in the pool.
    """
    raw, lengths = bytes_of_texts(texts)
    data = np.concatenate([np.frombuffer(raw, np.uint8), *(one for one, _ in more), np.zeros(SPARE, np.uint8)])
    lengths = np.concatenate([lengths, *(sizes for _, sizes in more)])
    begins = np.cumsum(lengths) - lengths
    # What is there twice stands side by side: looking there is cheaper than looking each text up before.
    order, fresh = sorted_texts(data, begins, lengths)
    number = np.empty(len(order), np.int32)
    number[order] = np.cumsum(fresh, dtype=np.int32) - 1
    kept = order[fresh]
    lengths = lengths[kept]
    data = put_together(data, begins[kept], lengths)
    offsets = np.zeros(len(kept) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    hashes = checksums(data, offsets[:-1], lengths)
    data = data[: len(data) - SPARE]
    if len(data) < 2**31:
        offsets = offsets.astype(np.int32)
    size = buckets_of(len(kept))
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


def bytes_of_texts(texts: list[str]) -> tuple[bytes, NDArray[Any]]:
    """Texts as bytes back to back, and how many each has; raises `LoadError` for half of a surrogate pair."""
    try:
        return bytes_of(texts)
    except UnicodeEncodeError:
        broken = next(text for text in texts if _SURROGATE(text))
        raise LoadError(f"a text holds half a surrogate pair, which is no character: {broken!r}") from None


def buckets_of(texts: int) -> int:
    """The number of buckets. Two or three texts share one: finer ones would cost more to keep than to tell apart."""
    return 1 << max(4, texts.bit_length() - 2)


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
        self._blocks = arrays.blocks("pool.bytes")

    def __len__(self) -> int:
        return max(len(self._offsets) - 1, 0)

    def __getitem__(self, number: int) -> str:
        begin = self._begin
        if self._blocks:
            self._blocks.need(self._offsets[number], self._offsets[number + 1])
        return self._bytes[begin + self._offsets[number] : begin + self._offsets[number + 1]].decode()

    def take(self, numbers: NDArray[Any]) -> list[str]:
        """The texts of many numbers."""
        data, begin = self._bytes, self._begin
        if len(numbers) <= _FEW:
            offsets = self._offsets
            if self._blocks:
                for n in numbers.tolist():
                    self._blocks.need(offsets[n], offsets[n + 1])
            return [data[begin + offsets[n] : begin + offsets[n + 1]].decode() for n in numbers.tolist()]
        if len(numbers) > _SOME and current() is not None:
            return [text for some in pieces(numbers, _SOME) for text in self.take(some)]
        first, last = self._ends.take(numbers).astype(np.int64), self._ends[1:].take(numbers).astype(np.int64)
        if self._blocks:
            self._blocks.need_all(first, last)
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
            if self._blocks:
                self._blocks.need(offsets[number], offsets[number + 1])
            if self._bytes[begin + offsets[number] : begin + offsets[number + 1]] == key:
                return number
        return -1

    def rank(self, text: str) -> int:
        """How many texts of the pool sort before this one, which need not be in it."""
        return bisect_left(range(len(self)), text.encode("utf-8", "surrogatepass"), key=self._raw)

    def _raw(self, number: int) -> bytes:
        if self._blocks:
            self._blocks.need(self._offsets[number], self._offsets[number + 1])
        return self._bytes[self._begin + self._offsets[number] : self._begin + self._offsets[number + 1]]
