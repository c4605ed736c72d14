"""Columns of texts that stay bytes until somebody asks, beside the same as texts: numbered, counted,
recognised alike.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

from condgraph.engine.facts import Batch, Column, Numbers, Raws, Rows, Texts
from condgraph.engine.snapshot.build import Builder
from condgraph.engine.snapshot.layout import lay_out
from condgraph.loaders.statements.facts import MARKS, _widths, split
from condgraph.loaders.table.column_types import Profile
from condgraph.loaders.table.fields import Fields


def laid(columns: list[Column]) -> dict[str, list[object]]:
    """The columns of a graph of a few hundred rows and these columns; chunks of text say the same
    predicates, so that texts come again.
    """
    builder = Builder()
    for column, objects in enumerate(columns):
        size = len(objects.texts) if isinstance(objects, Texts) else len(objects.numbers)  # type: ignore[union-attr]
        ids = tuple(f"t/{column}/{row}" for row in range(size))
        builder.add([Rows(ids, [f"row {one}" for one in ids], range(1, size + 1))])
        builder.add([Batch(ids, f"says {column % 2}", objects, range(1, size + 1))])
    found, counts = lay_out(builder)
    return {name: column.tolist() for name, column in found.items()} | {"counts": [counts]}


@pytest.mark.parametrize("different", [3, 40, 100_000])
def test_texts_as_bytes_are_numbered_as_texts(different: int) -> None:
    draw = random.Random(different)
    cells = [[f"{draw.choice('aé漢')} {draw.randrange(different)}" for _ in range(300)] for _ in range(3)]
    # Words that are predicates, ids and names as well.
    cells[0][:3] = ["says 0", "t/1/5", "row t/1/6"]
    cells.append(["long " * 20 + str(draw.randrange(different)) for _ in range(300)])
    spelled = [Fields.of(some) for some in cells]
    assert all(one is not None for one in spelled)
    assert laid([Texts(some, collapsed=True) for some in cells]) == laid([Texts(one, collapsed=True) for one in spelled if one])


def test_raw_texts_stand_where_they_differ() -> None:
    every = ["1.50", None, "2.0", None, None]
    raws = Raws(5, np.array([0, 2]), ["1.50", "2.0"])
    assert list(raws) == every == [raws[at] for at in range(-5, 0)]
    assert (raws[1:3], len(raws)) == (every[1:3], 5)
    with pytest.raises(IndexError):
        raws[5]

    def att(some: object) -> dict[str, list[int]]:
        builder = Builder()
        numbers = Numbers(np.array([1.5, 3, 2, 4, 5]))
        builder.add([Batch(tuple("abcde"), "is", numbers, range(1, 6), some)])  # type: ignore[arg-type]
        return {name: column.tolist() for name, column in lay_out(builder)[0].items()}

    assert att(every) == att(raws)


@pytest.mark.parametrize(
    "cells",
    [
        [f"text {at % 17}" for at in range(300)],
        [["jan 5", "5 kg", "n/a", "", "plain", "12"][at % 6] for at in range(300)],
        [f"two\nlines {at}" if at % 50 == 0 else f"one {at}" for at in range(300)],
        [f"x\ud800{at}" if at % 50 == 0 else f"one {at}" for at in range(300)],
        [f"wide\u00a0{at}" for at in range(300)],
        ["a\rb", "a\0", " lead", "two  spaces", "Größe 5"] * 60,
    ],
)
def test_cells_of_any_source_are_counted_as_one_by_one(cells: list[str]) -> None:
    at_once, each = Profile(), Profile()
    at_once.add(cells)
    each._add_each(cells)
    assert at_once.shapes == each.shapes
    found = Fields.of(cells)
    assert found is None or list(found) == cells


def test_widths_of_lines_are_those_of_splitting_them() -> None:
    lines = ["", " ", "a,b;c", '"a,b",c', '"open,b', "a\tb | c|d", "a\0,b", " | | x | ", "a,,b,", "x" * 140_000 + ",b", "\u3000a b"]
    for line in lines:
        assert [_widths([line], mark)[0] for mark in MARKS] == [len(split(line, mark)) for mark in MARKS]
