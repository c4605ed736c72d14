"""Workbooks that are damaged: a typed error, whatever the archive's own reader raises."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import condgraph
from condgraph.engine.errors import CondgraphError, LoadError

openpyxl = pytest.importorskip("openpyxl")
pytest.importorskip("python_calamine")


@pytest.fixture(scope="module")
def workbook(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("sheets") / "book.xlsx"
    book = openpyxl.Workbook()
    for row in range(200):
        book.active.append([f"name {row}", row * 1.5, None if row % 7 else "x" * row])
    book.save(path)
    return path.read_bytes()


def test_packed_data_that_cannot_be_unpacked(workbook: bytes, tmp_path: Path) -> None:
    """The packed bytes of the sheet, not the archive around them."""
    at = workbook.index(b"xl/worksheets/sheet1.xml") + len("xl/worksheets/sheet1.xml")
    file = tmp_path / "book.xlsx"
    file.write_bytes(workbook[: at + 30] + b"\xff" * 30 + workbook[at + 60 :])
    with pytest.raises(LoadError, match="cannot be unpacked"):
        condgraph.open("memory:").load(file)


def test_bytes_changed_anywhere(workbook: bytes, tmp_path: Path) -> None:
    dice, file = random.Random(7), tmp_path / "book.xlsx"
    refused = 0
    for _ in range(60):
        broken = bytearray(workbook)
        for _ in range(dice.randrange(1, 30)):
            broken[dice.randrange(len(broken))] = dice.randrange(256)
        file.write_bytes(broken)
        try:
            condgraph.open("memory:").load(file)
        except CondgraphError:
            refused += 1
    assert refused > 20
