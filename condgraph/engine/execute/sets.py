"""Sets of entity or statement numbers as sorted int32 arrays without repeats."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.bounds import check
from condgraph.engine.pieces import ROWS, different

Numbers = NDArray[np.int32]
#: One truth value a number, a cell or a value.
Mask: TypeAlias = NDArray[np.bool_]
EMPTY: Final[Numbers] = np.empty(0, np.int32)
EMPTY.flags.writeable = False


def distinct(numbers: Numbers, size: int) -> Numbers:
    """The distinct numbers, sorted; `size` is one more than the largest possible."""
    n = len(numbers)
    if n < 2:
        return numbers
    if n <= 8:
        return np.array(sorted(set(numbers.tolist())), np.int32)
    if ascending(numbers):
        return numbers
    if not by_mask(n, size):
        return different(numbers)
    return mask_of(numbers, size).nonzero()[0].astype(np.int32)


def ascending(numbers: NDArray[Any]) -> bool:
    """Whether each number is more than the one before, as the ends of one entity's statements are:
    far quicker than sorting.
    """
    return int(np.count_nonzero(numbers[1:] > numbers[:-1])) == len(numbers) - 1


def by_mask(numbers: int, size: int) -> bool:
    """Whether marking beats sorting, which it does once there are enough numbers for the size of
    the space.
    """
    return numbers * 32 >= size and numbers > 16


def mask_of(numbers: Numbers, size: int) -> NDArray[np.bool_]:
    """One truth value for each possible number."""
    mask = np.zeros(size, bool)
    # NumPy assigns through int32 indices five times slower than through its own integers.
    mask[numbers.astype(np.intp)] = True
    return mask


def among(numbers: NDArray[Any], of: Numbers, size: int) -> NDArray[np.bool_]:
    """For each number (in any order), whether it is in the sorted set `of`."""
    if not len(of):
        return np.zeros(len(numbers), bool)
    if len(of) == 1:
        one: NDArray[np.bool_] = numbers == of[0]
        return one
    if len(numbers) * 512 > size:
        # A binary search misses the branch predictor at every step; a mask costs its size once.
        return mask_of(of, size).take(numbers)
    at = np.searchsorted(of, numbers)
    at[at == len(of)] = 0
    found: NDArray[np.bool_] = of[at] == numbers
    return found


def intersect(left: Numbers, right: Numbers, size: int) -> Numbers:
    """Both sorted; the smaller is looked up in the larger."""
    if len(left) > len(right):
        left, right = right, left
    return left[among(left, right, size)]


def minus(left: Numbers, right: Numbers, size: int) -> Numbers:
    """`left` without `right`, both sorted."""
    return left[~among(left, right, size)]


def union(parts: list[Numbers], size: int) -> Numbers:
    """All of the parts, each sorted."""
    # A program may name one set a thousand times.
    parts = [part for part in {id(part): part for part in parts}.values() if len(part)]
    if not parts:
        return EMPTY
    if len(parts) == 1:
        return parts[0]
    total = sum(map(len, parts))
    if total <= ROWS or not by_mask(total, size):
        return distinct(np.concatenate(parts), size)
    mask = np.zeros(size, bool)
    for part in parts:
        check()
        mask[part.astype(np.intp)] = True
    return mask.nonzero()[0].astype(np.int32)
