"""What is kept and may not be what its author meant, said: totals below a table, numbers written in
ways that do not go together, blank rows within a sheet, tables of an extension.
"""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

import condgraph
from condgraph.engine.reading.times import EPOCHS


def warnings_of(path: Path, **options: object) -> list[str]:
    report = condgraph.open("memory:").load(path, **options)
    return [str(problem) for problem in report.problems]


@pytest.mark.parametrize("called", ["Total", "total:", "GRAND TOTAL", "Sub-total", "Summe", "Total général"])
def test_totals_below_a_table(called: str, tmp_path: Path) -> None:
    path = tmp_path / "sales.csv"
    path.write_text(f"region,sales\nNorth,100\nSouth,200\n{called},300\n", encoding="utf-8")
    (said,) = warnings_of(path)
    assert "row 3, field 'region': the row looks like a total" in said
    path.write_text(f"region,sales\nNorth,100\n{called},100\n,\nsource: the ministry,\n", encoding="utf-8")
    assert any("row 2" in said and "looks like a total" in said for said in warnings_of(path))
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "regions.csv").write_text("region,land\nNorth,A\nSouth,B\n")
    (folder / "sales.csv").write_text(f"region,sales\nNorth,100\nSouth,200\n{called},300\n", encoding="utf-8")
    assert any("sales.csv, row 3" in said and "looks like a total" in said for said in warnings_of(folder))


@pytest.mark.parametrize("suffix", [".csv", ".json"])
def test_numbers_that_may_be_moments(suffix: str, tmp_path: Path) -> None:
    path, rows = tmp_path / f"log{suffix}", [(1, 1577836800000), (2, 1577836801000)]
    if suffix == ".csv":
        path.write_text("id,created_at\n" + "".join(f"{number},{at}\n" for number, at in rows))
    else:
        path.write_text(json.dumps([{"id": number, "created_at": at} for number, at in rows]))
    (said,) = warnings_of(path)
    assert "field 'created_at': numbers stay numbers and may be seconds or milliseconds since 1970" in said
    graph = condgraph.open()
    (problem,) = graph.load(path, types={"created_at": "time"}).problems
    assert problem.message == EPOCHS
    assert graph.kopl("FindAll() FilterYear(created_at, 2020, =) Count()").texts == ["2"]
    path = tmp_path / f"calls{suffix}"
    path.write_text("id,phone\n1,2125550123\n2,2125550124\n" if suffix == ".csv" else '[{"id": 1, "phone": 2125550123}]')
    assert warnings_of(path) == []


@pytest.mark.parametrize("options", [{"times": "[start, end)"}, {"types": {"start": "time", "end": "time"}}])
def test_typed_numbers_read_as_moments(options: dict[str, Any], tmp_path: Path) -> None:
    pa, path = pytest.importorskip("pyarrow"), tmp_path / "q.parquet"
    rows = {"v": [1, 2], "start": [1577836800, 1577923200], "end": [1577923200, 1578009600]}
    pytest.importorskip("pyarrow.parquet").write_table(pa.table(rows), path)
    for source, name in ((path, None), ([dict(zip(rows, row, strict=True)) for row in zip(*rows.values(), strict=True)], "rows")):
        problems = condgraph.open("memory:").load(source, name=name, **options).problems
        assert {(problem.field, problem.message) for problem in problems} == {("start", EPOCHS), ("end", EPOCHS)}
    (said, _) = warnings_of(path)
    assert "field 'start': numbers stay numbers and may be seconds" in said


def test_what_is_no_total(tmp_path: Path) -> None:
    path = tmp_path / "films.csv"
    path.write_text("film,year\nTotal Recall,1990\nSummer,2009\nTotally,2001\n")
    assert warnings_of(path) == []
    # Further up it is a name like others: nobody sums up what comes below.
    path.write_text("film,year\nTotal,1990\nA,1\nB,2\nC,3\n")
    assert warnings_of(path) == []
    path.write_text("film,kind\nA,x\nTotal,y\n")
    assert warnings_of(path) == []


def test_rows_that_repeat_the_header(tmp_path: Path) -> None:
    path = tmp_path / "joined.csv"
    path.write_text("näme,city\na,x\nnäme,city\nnäme,y\nb,city\n", encoding="utf-8")
    (said,) = warnings_of(path)
    assert "row 2: the row repeats the header" in said
    path.write_text("name\na\nname\n")
    assert warnings_of(path) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Ann\tin\tParis\t2001\nBob\tin\tRome\ta\nCid\tin\tRome\tb\nDan\tin\tOslo\t2004\n", 1),
        ("a\t1999\nc\t2001\ne\t2002\n", 1),
        ("a\tb\t1999\t2000\nc\td\t1801\t2001\ne\tf\t2002\t2003\n", 0),
        ("a\tb\tn\na\tb\t5\na\tb\t6\n", 0),
    ],
)
def test_headers_that_look_like_data(tmp_path: Path, text: str, said: int) -> None:
    path = tmp_path / "rows.tsv"
    path.write_text(text)
    assert sum("looks like data" in one for one in warnings_of(path)) == said


def test_references_that_differ_in_case(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("name,country\na,France\nb,france\nc,Spain\nd,FRANCE\n")
    (said,) = warnings_of(path, refs=["country"])
    assert "'france' ('France') and 'FRANCE' ('France')" in said


def test_json_of_records_under_keys(tmp_path: Path) -> None:
    path = tmp_path / "people.json"
    path.write_text('{"7": {"name": "Ann"}, "8": {"name": "Bob", "age": 3}}')
    graph = condgraph.open("memory:")
    (said,) = graph.load(path, key="key").problems
    assert "records under keys, and is read as 2 rows with their keys in the column 'key'" in str(said)
    assert graph.kopl("Find(8) QueryAttr(name)").texts == ["Bob"]
    path.write_text('{"a": {"name": "Ann"}, "b": {"town": "Oslo"}}')
    assert warnings_of(path) == []


def test_numbers_that_do_not_go_together(tmp_path: Path) -> None:
    path = tmp_path / "prices.csv"
    path.write_text('item,price\na,"1.234,50"\nb,"1,234.50"\nc,12.5\nd,"12,5"\ne,n/a\n')
    (said,) = warnings_of(path)
    assert "field 'price': 4 cells are numbers or times, in formats that do not go together" in said
    assert warnings_of(path, types={"price": "text"}) == []
    # Codes, sentences with numbers and mostly words are texts.
    path.write_text("item,zip,about\na,01234,5 apples\nb,90210,12 High Street\nc,00501,none\nd,10001,7 up\n")
    assert warnings_of(path) == []


def test_two_tables_on_a_sheet(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["a title"], [], ["k", "v"], ["x", 1], ["y", 2], [], [], ["other", "w"], ["z", 3]):
        book.active.append(row)
    book.save(tmp_path / "book.xlsx")
    said = warnings_of(tmp_path / "book.xlsx")
    assert any("blank rows divide the sheet: what follows from row 8 on" in one for one in said)
    book = openpyxl.Workbook()
    for row in (["k", "v"], ["x", 1], ["y", 2], []):
        book.active.append(row)
    book.save(tmp_path / "plain.xlsx")
    assert warnings_of(tmp_path / "plain.xlsx") == []


def test_tables_of_an_extension(tmp_path: Path) -> None:
    database = sqlite3.connect(tmp_path / "shop.db")
    database.execute("CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT)")
    database.execute("INSERT INTO items VALUES (1, 'pen')")
    try:
        database.execute("CREATE VIRTUAL TABLE found USING fts5(body)")
    except sqlite3.OperationalError:
        pytest.skip("SQLite has no full-text search here")
    database.commit()
    database.close()
    (said,) = warnings_of(tmp_path / "shop.db")
    assert "virtual tables are left out: 'found'" in said


def test_problems_are_one_line_a_kind(tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "customers.csv").write_text("customerID,name\n" + "".join(f"c{at},n{at}\n" for at in range(2000)))
    keys = [f"c{at}" if at < 2500 else f"{at}'" for at in range(4000)]
    rows = [f"{at},{key},1\n" for at, key in enumerate(keys)]
    (folder / "orders.csv").write_text("orderID,customerID,n\n" + "".join(rows) + "x,c1\ny,c2\n")
    report = condgraph.open("memory:").load(folder)
    assert sum(one.count for one in report.kinds) == report.warned
    assert len(report.problems) == 1000
    assert len(report.kinds) < 5
    lines = [str(one) for one in report.kinds]
    (dangling,) = [line for line in lines if "is not a key of" in line]
    assert "row 2001, field 'customerID': 'c2000' is not a key of 'customers'" in dangling
    assert "(2,000 of this kind; another is: " in dangling
    assert "row 2002" in dangling


def test_names_that_differ_are_one_line(tmp_path: Path) -> None:
    graph = condgraph.open("memory:")
    graph.load([{"id": str(at), "name": f"a{at}"} for at in range(50)], key="id", name_column="name", name="t")
    report = graph.load(
        [{"id": str(at), "name": f"b{at}"} for at in range(50)], key="id", name_column="name", name="t", append=True
    )
    (said,) = [warning for warning in report.warnings if "the first name stays" in warning]
    assert "(50 of this kind; another is: entity 't/1'" in said
