"""Workbooks that are damaged: a typed error, whatever the archive's own reader raises. Tables side by
side in a sheet.
"""

from __future__ import annotations

import json
import random
import zipfile
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import pytest

import condgraph
from condgraph.engine.bounds import within
from condgraph.engine.errors import CondgraphError, DeadlineError, LoadError
from condgraph.engine.values import Quantity
from condgraph.loaders import spreadsheet
from condgraph.loaders.spreadsheet_reader import parts

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


# -- workbooks that say more of themselves than they hold ------------------------------------------

_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_RELS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_ROWS = (
    '<sheetData><row r="1"><c r="A1" t="str"><v>name</v></c></row><row r="2"><c r="A2" t="str"><v>Ann</v></c></row>{}</sheetData>'
)
_LAST = '<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'


def packed(path: Path, sheet: str, *, strings: str = "", member: str = "worksheets/sheet1.xml", encoding: str = "utf-8") -> Path:
    """A workbook of one sheet, written by hand."""
    relations = f'<Relationship Id="r1" Type="{_RELS}/worksheet" Target="{member}"/>'
    relations += f'<Relationship Id="r2" Type="{_RELS}/sharedStrings" Target="sharedStrings.xml"/>' if strings else ""
    types = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    package = "http://schemas.openxmlformats.org/package/2006"
    sheets = '<sheets><sheet name="S" sheetId="1" r:id="r1"/></sheets>'
    members = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types">'
        f'<Default Extension="xml" ContentType="{types}.worksheet+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{types}.sheet.main+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{package}/relationships">'
        f'<Relationship Id="r1" Type="{_RELS}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{_MAIN}" xmlns:r="{_RELS}">{sheets}</workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}/relationships">{relations}</Relationships>',
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(name, text)
        archive.writestr(f"xl/{member}", f'<worksheet xmlns="{_MAIN}" xmlns:x="{_MAIN}">{sheet}</worksheet>'.encode(encoding))
        if strings:
            archive.writestr("xl/sharedStrings.xml", strings)
    return path


#: Each ended the process that read it.
HOSTILE: dict[str, dict[str, str]] = {
    "a cell far away": {"sheet": _ROWS.format(_LAST)},
    "a row far away": {"sheet": _ROWS.format('<row r="4294967290"><c r="ZZZZ4294967290"><v>1</v></c></row>')},
    "other spaces and quotes": {"sheet": _ROWS.format("<row\tr = '1048576' ><c\nr='XFD1048576'><v>1</v></c></row>")},
    "a prefix": {"sheet": _ROWS.format('<x:row r="1048576"><x:c r="XFD1048576"><x:v>1</x:v></x:c></x:row>')},
    "one cell in the last column": {
        "sheet": _ROWS.format(
            "".join(f'<row r="{at}"><c r="A{at}"><v>1</v></c></row>' for at in range(3, 99_999))
            + '<row r="99999"><c r="XFD99999"><v>1</v></c></row>'
        )
    },
    "cells without a place": {
        "sheet": "<sheetData><row>"
        + "<c/>" * 300_000
        + "<c><v>1</v></c></row>"
        + "<row/>" * 9_000
        + "<row><c><v>1</v></c></row></sheetData>"
    },
    "a number of strings": {
        "sheet": '<sheetData><row r="1"><c r="A1" t="s"><v>0</v></c></row></sheetData>',
        "strings": f'<sst xmlns="{_MAIN}" count="4294967295" uniqueCount="4294967295"><si><t>name</t></si></sst>',
    },
    "a sheet in another member": {"sheet": _ROWS.format(_LAST), "member": "media/image1.png"},
    "a sheet in UTF-16": {"sheet": _ROWS.format(_LAST), "encoding": "utf-16"},
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_workbook_that_asks_for_more_memory_than_it_may_have(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read where it may end a process, if at all, with little memory: a typed error, or what it holds."""
    here: list[str] = []
    monkeypatch.setattr(spreadsheet, "parts", lambda path, wanted: here.append(path) or parts(path, wanted))
    assert condgraph.open("memory:").load(packed(tmp_path / "plain.xlsx", _ROWS.format(""))).entities == 2
    assert len(here) == 1
    here.clear()
    path = packed(tmp_path / "book.xlsx", **HOSTILE[name])
    with suppress(LoadError):
        graph = condgraph.open("memory:")
        graph.load(path)
        assert len(graph.kopl("FindAll() QueryName()").values) < 10
    assert here == []


def test_the_error_says_what_there_is_not_enough_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = packed(tmp_path / "book.xlsx", _ROWS.format(_LAST))
    with pytest.raises(LoadError, match="more than 1024 MiB of memory"):
        condgraph.open("memory:").load(path)
    monkeypatch.setattr(spreadsheet, "_SECONDS", 1)
    path = packed(tmp_path / "long.xlsx", _ROWS.format('<row r="1048576"><c r="Z1048576"><v>1</v></c></row>'))
    with pytest.raises(LoadError, match="more than 1 seconds"):
        condgraph.open("memory:").load(path)


def test_a_usual_workbook_is_read_here_and_apart_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dates, times, durations, numbers, truth values, texts of any script, merged cells, hidden sheets."""
    path = tmp_path / "book.xlsx"
    book = openpyxl.Workbook()
    book.active.append(["name", "born", "at", "took", "size", "member", "ß ≠ 漢 \U0001f600"])
    for row in range(300):
        born = datetime(1900 + row % 100, 1 + row % 12, 1 + row % 28)
        took = timedelta(hours=30 + row, minutes=1)
        book.active.append(
            [f"name {row}", born.date() if row % 2 else born, time(row % 24, 5), took, row / 7, bool(row % 2), "x" * (row % 9)]
        )
    book.active.merge_cells("G3:G5")
    book.create_sheet("hidden").append(["a", "b"])
    book["hidden"].append([1, 2])
    book["hidden"].sheet_state = "hidden"
    book.create_chartsheet("chart")
    book.save(path)
    apart = list(spreadsheet._parts_apart(path, [], 1 << 20))
    here = list(parts(str(path), []))
    assert json.dumps(here, default=str) == json.dumps(apart, default=str)
    rows = [row for kind, *what in here if kind == "rows" for row in what[0]]
    assert rows == [row for kind, *what in apart if kind == "rows" for row in what[0]]
    assert {type(cell) for row in rows for cell in row} >= {date, time, timedelta, float, bool, str}
    used: list[str] = []
    monkeypatch.setattr(spreadsheet, "parts", lambda path, wanted: used.append(path) or parts(path, wanted))
    condgraph.open("memory:").load(path)
    assert used == [str(path)]


def test_times_of_day_and_durations_keep_their_type(tmp_path: Path) -> None:
    """Whatever the header and the seconds suggest."""
    book = openpyxl.Workbook()
    for row in (["n", "took", "start"], [1, time(9), timedelta(minutes=65)], [2, time(23, 59, 59), timedelta(hours=30)]):
        book.active.append(row)
    book.save(tmp_path / "book.xlsx")
    graph = condgraph.open("memory:")
    assert not graph.load(tmp_path / "book.xlsx").problems
    assert graph.kopl("FindAll() QueryAttr(took)").values == [Quantity(at, "second of the day") for at in (32400, 86399)]
    assert graph.kopl("FindAll() QueryAttr(start)").values == [Quantity(length, "second") for length in (3900, 108000)]


def test_what_a_sheet_hides_or_shows_as_percentages_is_said(tmp_path: Path) -> None:
    path = tmp_path / "book.xlsx"
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "A & B"
    for row in (
        ["country", "vat", "weight", "share", "note"],
        ["France", 0.2, 1.5, 25, "12,5"],
        ["Italy", 0.22, 2.375, 30, "1,75"],
    ):
        sheet.append(row)
    for row in (2, 3):
        sheet.cell(row, 2).number_format = '[Red]0.0%;"off"'
        sheet.cell(row, 4).number_format = '0"%"'
    sheet.row_dimensions[3].hidden = sheet.row_dimensions[90].hidden = sheet.column_dimensions["C"].hidden = True
    book.save(path)
    graph = condgraph.open("memory:")
    hidden = "the sheet {} has hidden {}, which are loaded like the others"
    percent = "percentages{} of the sheet {} are loaded as the workbook stores them, 25 % as 0.25"
    assert [item.message for item in graph.load(path).problems] == [
        hidden.format("'A & B'", "row 3 and column C"),
        percent.format(" in column B", "'A & B'"),
    ]
    # Numbers of the workbook have points, even if a column of texts has commas.
    assert graph.kopl("FindAll() QueryAttr(weight)").texts == ["1.5", "2.375"]
    assert graph.kopl("FindAll() QueryAttr(vat)").texts == ["0.2", "0.22"]
    header = '<table:table-cell office:value-type="string"><text:p>a</text:p></table:table-cell>'
    cell = '<table:table-cell office:value-type="percentage" office:value="0.2"><text:p>20%</text:p></table:table-cell>'
    rows = "<table:table-row{}>" + cell + "</table:table-row>"
    with zipfile.ZipFile(tmp_path / "book.ods", "w") as packed_book:
        packed_book.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        packed_book.writestr("META-INF/manifest.xml", '<manifest:manifest xmlns:manifest="urn:oasis"/>')
        packed_book.writestr(
            "content.xml",
            '<?xml version="1.0"?><office:document-content xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
            'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" '
            'xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"><office:body><office:spreadsheet>'
            f'<table:table table:name="t"><table:table-row>{header}</table:table-row>{rows.format("")}'
            + rows.format(' table:visibility="filter"')
            + "</table:table></office:spreadsheet></office:body></office:document-content>",
        )
    messages = [item.message for item in condgraph.open("memory:").load(tmp_path / "book.ods").problems]
    assert messages == [hidden.format("'t'", "1 row"), percent.format("", "'t'")]


def test_a_deadline_ends_the_reader(tmp_path: Path) -> None:
    path = packed(tmp_path / "book.xlsx", _ROWS.format('<row r="1048576"><c r="Z1048576"><v>1</v></c></row>'))
    with pytest.raises(DeadlineError), within(0.2):
        condgraph.open("memory:").load(path)
