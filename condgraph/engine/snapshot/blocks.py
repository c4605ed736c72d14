"""Columns of whole numbers in few bytes: cut into blocks, each kept as differences in as many bytes
as they need.

A block is its first number and, for each number, how far it is from the first ("apart") or from the
one before ("steps"), divided by what all of these distances are multiples of. Floats that are
decimals of few digits are kept as whole numbers (12.5 as 125, one digit): every float is compared
bit by bit with what is read back, and where one differs the block is kept as it is. A block that is
close to the same block of another column (the end of a day to its start) is kept as what lies
between them.

Cost: some nanoseconds a number to write, and as many to read.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

#: A block has so many numbers at most, and at least (but for the last).
LONGEST: Final = 1 << 16
SHORTEST: Final = 1 << 10
_PLAIN, _APART, _STEPS = 0, 1, 2
_DIGITS: Final = 4
#: Whole numbers that a float tells apart.
_EXACT: Final = 2**53
#: Numbers that are looked at before all are.
_SAMPLE: Final = 64
#: Of each block: how it is kept, bytes a number, decimal digits (-1: whole numbers, no floats), and
#: whether the other column is added.
_HOW: Final = 4


class Packed(NamedTuple):
    """A column in blocks: `how` [4 a block] as above, `numbers` [4 a block] (where it begins, first
    number, step, unit), `body` the bytes.
    """

    how: NDArray[np.int8]
    numbers: NDArray[np.int64]
    body: NDArray[np.uint8]

    @property
    def size(self) -> int:
        """Bytes of all of it."""
        return self.how.nbytes + self.numbers.nbytes + self.body.nbytes


class _Block(NamedTuple):
    how: tuple[int, int, int, int]
    first: int
    step: int
    unit: int
    body: NDArray[np.uint8]


def cuts(length: int, edges: Iterable[int] = ()) -> list[int]:
    """Where blocks begin, and the length: at the edges that leave room for a block between them,
    and where a block would be too long.
    """
    found = [0]
    for edge in [*edges, length]:
        if edge == found[-1] or (edge - found[-1] < SHORTEST and edge != length):
            continue
        found.extend(range(found[-1] + LONGEST, edge, LONGEST))
        found.append(edge)
    return found


def pack(column: NDArray[Any], edges: Iterable[int] = (), beside: NDArray[Any] | None = None) -> Packed:
    """A column of whole numbers in blocks. `beside` is a column of as many 64-bit numbers that is
    there when this one is read.
    """
    places = cuts(len(column), edges)
    blocks = []
    for low, high in pairwise(places):
        block = _packed(column[low:high])
        if beside is not None and block.how[1]:
            # Differences wrap around in 64 bits, and so do the sums that take them back.
            other = _whole(column[low:high] - beside[low:high], column.itemsize, -1)
            if other.how[1] < block.how[1]:
                block = other._replace(how=(*other.how[:3], 1))
        blocks.append(block)
    numbers = [(low, block.first, block.step, block.unit) for low, block in zip(places, blocks, strict=False)]
    return Packed(
        np.array([block.how for block in blocks], np.int8).reshape(-1),
        np.array(numbers, np.int64).reshape(-1),
        np.concatenate([block.body for block in blocks]) if blocks else np.empty(0, np.uint8),
    )


def unpack(packed: Packed, length: int, dtype: np.dtype[Any], beside: NDArray[Any] | None = None) -> NDArray[Any]:
    """The column as it was."""
    out, at = np.empty(length, dtype), 0
    rows = packed.numbers.reshape(-1, 4).tolist()
    ends = [*(row[0] for row in rows[1:]), length]
    for (kept, width, digits, added), (low, first, step, unit), high in zip(
        packed.how.reshape(-1, _HOW).tolist(), rows, ends, strict=True
    ):
        body = packed.body[at : at + (high - low) * width]
        at += len(body)
        if kept == _PLAIN:
            out[low:high] = body.view(dtype)
            continue
        numbers = _from_bytes(body, width, high - low)
        if unit != 1:
            numbers *= unit
        if kept == _STEPS:
            # The first of the steps leads from nowhere to the first number.
            numbers[1:] += step
            np.cumsum(numbers, out=numbers)
        numbers += first
        if digits >= 0:
            numbers = (numbers / 10.0**digits).view(np.int64)
        if added:
            assert beside is not None
            numbers = numbers + beside[low:high]
        out[low:high] = numbers
    return out


def _packed(block: NDArray[Any]) -> _Block:
    """One block in the fewest bytes."""
    if block.itemsize == 8:
        for digits in range(_DIGITS + 1):
            whole = _decimals(block, digits)
            if whole is not None:
                return _whole(whole, 8, digits)
    return _whole(block, block.itemsize, -1)


def _decimals(block: NDArray[Any], digits: int) -> NDArray[np.int64] | None:
    """The floats whose bits these are, times ten to the digits, if that loses none of them."""
    scale = 10.0**digits
    for part in (block[:: max(len(block) // _SAMPLE, 1)], block):
        with np.errstate(all="ignore"):
            scaled = np.rint(np.ascontiguousarray(part).view(np.float64) * scale)
            if not (np.abs(scaled) < _EXACT).all():
                return None
            # As whole numbers, since -0.0 is none.
            whole = scaled.astype(np.int64)
            if not ((whole / scale).view(np.int64) == part).all():
                return None
    # Times in seconds are no floats: as floats they are all but nothing.
    return whole if whole.any() or not block.any() else None


def _whole(block: NDArray[Any], itemsize: int, digits: int) -> _Block:
    """Whole numbers by their distances, or as they are where that is no shorter."""
    wide = block.astype(np.int64)
    low, high = int(wide.min()), int(wide.max())
    if low == high:
        return _Block((_APART, 0, digits, 0), low, 0, 1, np.empty(0, np.uint8))
    best: tuple[int, int, int, int, int, NDArray[Any]] | None = None
    if high - low < 2**62:
        apart = wide - low
        unit = _unit(apart) if itemsize == 8 else 1
        best = (_width((high - low) // unit), _APART, low, 0, unit, apart)
        steps = np.diff(wide)
        least, most = int(steps.min()), int(steps.max())
        rest = steps - least
        step_unit = (_unit(rest) if itemsize == 8 else 1) if most > least else 1
        width = _width((most - least) // step_unit)
        if width < best[0]:
            best = (width, _STEPS, int(wide[0]), least, step_unit, np.concatenate([[0], rest]))
    if best is None or best[0] >= itemsize:
        if digits >= 0:
            floats = (wide / 10.0**digits).view(np.uint8)
            return _Block((_PLAIN, itemsize, -1, 0), 0, 0, 1, floats)
        return _Block((_PLAIN, itemsize, -1, 0), 0, 0, 1, np.ascontiguousarray(block).view(np.uint8))
    width, kept, first, step, unit, numbers = best
    return _Block((kept, width, digits, 0), first, step, unit, _to_bytes(numbers // unit if unit != 1 else numbers, width))


def _unit(distances: NDArray[np.int64]) -> int:
    """What all of these are multiples of."""
    unit = int(np.gcd.reduce(distances[:: max(len(distances) // _SAMPLE, 1)]))
    while unit > 1:
        rest = distances % unit
        other = rest[rest > 0][:_SAMPLE]
        if not len(other):
            return unit
        unit = int(np.gcd.reduce(np.append(other, unit)))
    return 1


def _width(most: int) -> int:
    return (most.bit_length() + 7) // 8


def _to_bytes(numbers: NDArray[Any], width: int) -> NDArray[np.uint8]:
    if width in (1, 2, 4):
        return numbers.astype(f"<u{width}").view(np.uint8)
    return np.ascontiguousarray(numbers.astype("<u8").view(np.uint8).reshape(-1, 8)[:, :width]).reshape(-1)


def _from_bytes(body: NDArray[np.uint8], width: int, length: int) -> NDArray[np.int64]:
    if width in (1, 2, 4):
        return body.view(f"<u{width}").astype(np.int64)
    wide = np.zeros((length, 8), np.uint8)
    wide[:, :width] = body.reshape(length, width)
    return wide.view("<i8").reshape(-1)
