"""How rows are ordered and texts are numbered while a snapshot is built: as by sorting mark by mark,
and as one text after the other.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from condgraph.engine.bounds import in_order
from condgraph.engine.snapshot.build import Chunks
from condgraph.engine.snapshot.layout import join_equal, sorted_by
from condgraph.loaders.table.column_types import _different


def some_marks(rng: np.random.Generator, count: int) -> list[NDArray[Any]]:
    """Marks of some rows, of several types and widths, with equal ones among them."""
    marks: list[NDArray[Any]] = []
    for kind in rng.integers(0, 8, rng.integers(1, 5)):
        mark: NDArray[Any] = [
            lambda: rng.integers(-(2**63), 2**63 - 1, count),
            lambda: rng.integers(0, 2**64 - 1, count, dtype=np.uint64),
            lambda: rng.integers(-5, 5, count).astype(np.int32),
            lambda: rng.integers(-(2**31), 2**31 - 1, count).astype(np.int32),
            lambda: rng.integers(0, 3, count).astype(np.int8),
            lambda: (rng.integers(-50, 50, count) * 0.5).view(np.int64),
            lambda: np.full(count, 7, np.int32),
            lambda: np.arange(count),
        ][kind]()
        mark[::3] = mark[0]
        marks.append(mark)
        if mark.dtype == np.int64 and rng.random() < 0.4:
            with np.errstate(over="ignore"):
                marks.append(mark + 86_400)
    return marks


def test_orders_are_those_of_sorting_by_each_mark() -> None:
    rng = np.random.default_rng(2)
    for _ in range(300):
        marks = some_marks(rng, int(rng.integers(1, 400)))
        assert in_order(marks).tolist() == np.lexsort(marks[::-1]).tolist()
        large = [np.resize(mark, 30_000) for mark in marks[:2]]
        assert sorted_by(large).tolist() == np.lexsort(large[::-1]).tolist()
    assert in_order([np.empty(0, np.int32), np.empty(0)]).tolist() == []


def test_equal_statements_are_told_by_all_of_their_marks() -> None:
    rng = np.random.default_rng(3)
    for _ in range(100):
        count = int(rng.integers(1, 60))
        family = {"sid": np.arange(count, dtype=np.int32), "p": rng.integers(0, 3, count), "s": rng.integers(0, 4, count)}
        number = np.full(count, -1, np.int32)
        kept = join_equal(family, ("p", "s"), None, number, 10)
        rows = list(zip(family["p"].tolist(), family["s"].tolist(), strict=True))
        assert [rows[at] for at in kept.tolist()] == sorted(set(rows))
        assert number.tolist() == [10 + sorted(set(rows)).index(row) for row in rows]


@pytest.mark.parametrize(
    "numbers", [[], [5], [3, 3, 3], [-4, 0, 4, 8, 0], [1, 10**14, 7, 1], [48, 16, 48, 160], [-(2**63), 2**63 - 1]]
)
def test_different_numbers_are_counted(numbers: list[int]) -> None:
    assert _different(np.array(numbers, np.int64)) == len(set(numbers))


def test_texts_are_numbered_in_the_order_they_come() -> None:
    rng = np.random.default_rng(4)
    chunks, expected = Chunks(), {}
    for _ in range(50):
        names = [str(one) for one in rng.integers(0, 60, rng.integers(0, 12))]
        for name in names:
            expected.setdefault(name, len(expected))
        assert chunks._numbers(chunks.texts, names).tolist() == [expected[name] for name in names]
        one = str(rng.integers(0, 60))
        assert chunks.texts[one] == expected.setdefault(one, len(expected))
    assert dict(chunks.texts) == expected
