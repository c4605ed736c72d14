"""Workbooks that are damaged: a typed error, whatever the archive's own reader raises. Tables side by
side in a sheet.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

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


SIDE = [
    ["rep", "sales", None, "product", "price"],
    ["Ann", 10, None, "pen", 3],
    ["Bob", 20, None, "ink", 8],
    [None] * 3 + ["cap", 5],
]
LEVEL = SIDE[:3]
TWINS = [["rep", "sales", None, "rep", "sales"], ["Ann", 10, None, "Cleo", 30], ["Bob", 20, None, "Dan", 40]]
TITLED = [["Sales", None, None, "Goods", None], *SIDE]
NOTES = [["rep", "sales", None, "note"], ["Ann", 10, None, "new"], ["Bob", 20, None, None]]
GAPS = [
    ["rep", "sales", None, "off", "why"],
    ["Ann", 10, None, 5, "new"],
    ["Bob", 20, None, None, None],
    ["Cy", 30, None, 7, "old"],
]
TOTAL = [*LEVEL, ["Total", 30, None, None, None]]


@pytest.mark.parametrize(
    ("rows", "options", "tables", "said"),
    [
        (SIDE, {}, 2, "'s', 's (2)' (split=false makes one)"),
        (TITLED, {}, 2, "'s', 's (2)' (split=false makes one)"),
        (TWINS, {}, 2, "'s', 's (2)' (split=false makes one)"),
        (SIDE, {"split": False}, 1, ""),
        (LEVEL, {}, 1, "read as one table (split=true makes several)"),
        (TOTAL, {}, 1, "read as one table (split=true makes several)"),
        (LEVEL, {"split": True}, 2, "'s', 's (2)'"),
        (NOTES, {}, 1, ""),
        (GAPS, {}, 1, ""),
    ],
)
def test_tables_side_by_side(tmp_path: Path, rows: list[list[Any]], options: dict[str, Any], tables: int, said: str) -> None:
    book = openpyxl.Workbook()
    book.active.title = "s"
    for row in rows:
        book.active.append(row)
    book.save(tmp_path / "b.xlsx")
    graph = condgraph.open("memory:")
    report = graph.load(tmp_path / "b.xlsx", **options)
    assert len(graph.kopl("FindAll() FilterStr(rep, Ann) QueryAttr(sales)").texts) == 1
    assert len([one for one in graph.status().sources if one.name.startswith("b/")]) == tables
    if "product" in rows[0]:
        beside = graph.kopl("FindAll() FilterStr(rep, Ann) QueryAttr(product)").texts
        assert beside == (["pen"] if tables == 1 else [])
    dividing = [one.message for one in report.problems if "blank columns divide" in one.message]
    assert len(dividing) == bool(said)
    assert said in "".join(dividing)
