"""Joins between tables: declared in options and files, keys of several columns, several tables,
self references, tables of relations, what dangles; `refs=` and `key=` across loads; what `guess`
writes.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import condgraph
from condgraph.engine.bounds import within
from condgraph.engine.errors import DeadlineError, FormatError, LoadError, OptionError, UnknownNameError
from condgraph.engine.facts import Entity, EntityKind, Member
from condgraph.graph import Graph
from condgraph.loaders.declaring import guess


def folder_of(path: Path, files: Mapping[str, str]) -> Path:
    path.mkdir(exist_ok=True)
    for name, text in files.items():
        (path / name).write_text(text, encoding="utf-8")
    return path


def loaded(source: Any, **options: Any) -> tuple[Graph, list[str]]:
    """A graph, and what was said, without the place."""
    graph = condgraph.open("memory:")
    report = graph.load(source, **options)
    return graph, [str(problem).partition(".csv")[2].lstrip(", ") for problem in report.problems]


def names(graph: Graph, program: str) -> list[str]:
    return sorted(graph.kopl(program).texts)


PEAKS = (
    "mountain,country,height\nEiger,Switzerland,3967 m\nMonte Rosa,Switzerland,4634 m\nZugspitze,Germany,2962 m\nK9,Atlantis,1 m\n"
)
COUNTRIES = "country,capital\nSwitzerland,Bern\nGermany,Berlin\nFrance,Paris\n"


@pytest.mark.parametrize("order", ["pc", "cp", "pcp", "cpc", "pcpc"])
@pytest.mark.parametrize(
    "options", [{"refs": ["country"]}, {"join": {"country": "countries.country"}}, {"join": {"country": "countries"}}]
)
def test_a_reference_and_a_key_are_one_thing(order: str, options: dict[str, Any], tmp_path: Path) -> None:
    """Whichever is loaded first, and however often: one Switzerland."""
    folder_of(tmp_path, {"peaks.csv": PEAKS, "countries.csv": COUNTRIES})
    graph = condgraph.open("memory:")
    for one in order:
        if one == "p":
            graph.load(tmp_path / "peaks.csv", key="mountain", **options)
        else:
            graph.load(tmp_path / "countries.csv", key="country")
    assert names(graph, "Find(Eiger) Relate(country, forward) QueryAttr(capital)") == ["Bern"]
    assert names(graph, "Find(Switzerland) Relate(country, backward) QueryName()") == ["Eiger", "Monte Rosa"]
    assert len(graph.current.named("Switzerland")) == 1
    assert graph.status().counts["entities"] == 8


def test_a_reference_that_the_key_lacks_is_said(tmp_path: Path) -> None:
    folder_of(tmp_path, {"peaks.csv": PEAKS, "countries.csv": COUNTRIES})
    graph, _ = loaded(tmp_path / "countries.csv", key="country")
    (problem,) = graph.load(tmp_path / "peaks.csv", key="mountain", refs=["country"]).problems
    assert (problem.row, problem.field, problem.message) == (4, "country", "'Atlantis' is not a key of 'countries'")


def test_references_meet_frames_and_records(tmp_path: Path) -> None:
    import pandas

    graph = condgraph.open("memory:")
    graph.load([{"country": "Nepal", "capital": "Kathmandu"}], name="countries", key="country")
    graph.load(pandas.DataFrame({"peak": ["Annapurna I"], "country": ["Nepal"]}), name="peaks", key="peak", refs=["country"])
    assert names(graph, "Find(Annapurna I) Relate(country, forward) QueryAttr(capital)") == ["Kathmandu"]


def test_numbers_of_rows_are_no_keys() -> None:
    """Keys 1, 2, 3 of one table say nothing of numbers in a column of another name."""
    graph = condgraph.open("memory:")
    graph.load([{"id": 1, "name": "Ann"}, {"id": 2, "name": "Bob"}], name="people", key="id", name_column="name")
    graph.load([{"item": "x", "size": 1}], name="items", key="item", refs=["size"])
    assert names(graph, "Find(x) Relate(size, forward) QueryName()") == ["1"]


SHOP = {
    "people.csv": "id,name,boss\n007,Bond,\n008,Bill,007\n 9 a ,Eve,007\nx,Tim,zz\n",
    "orders.csv": "order,line,what,buyer\n1,1,pen,007\n1,2,ink,008\n2,1,cup, 9 a\n",
    "parcels.csv": "parcel,order,line\nA,1,2\nB,2,1\nC,2,9\nD,1,\n",
    "notes.csv": "note,about\nfirst,007\nsecond,A\nthird,nothing\n",
}
JOIN: dict[str, Any] = {
    "people.boss": "people.id",
    "orders.buyer": "people",
    "parcels.(order, line)": "orders.(order, line)",
    "notes.about": ["people.id", "parcels.parcel"],
}
PRIMARY: dict[str, Any] = {"orders": ["order", "line"], "parcels": "parcel"}


def test_keys_of_several_columns_several_tables_and_ones_own(tmp_path: Path) -> None:
    graph, said = loaded(folder_of(tmp_path / "shop", SHOP), join=JOIN, primary=PRIMARY)
    assert names(graph, "Find(Bond) Relate(boss, backward) QueryName()") == ["Bill", "Eve"]
    assert names(graph, "Find(Eve) Relate(buyer, backward) QueryAttr(what)") == ["cup"]
    assert names(graph, "Find(parcels/A) Relate(order + line, forward) QueryAttr(what)") == ["ink"]
    assert names(graph, "Find(parcels/A) Relate(about, backward) QueryAttr(note)") == ["second"]
    assert names(graph, "Find(Bond) Relate(about, backward) QueryAttr(note)") == ["first"]
    # A part of a key that is missing refers to nothing, and says nothing.
    assert sorted(said) == sorted(
        [
            "row 4, field 'boss': 'zz' is not a key of 'people'; the cell is kept as text",
            "row 3, field 'about': 'nothing' is not a key of 'people' or 'parcels'; the cell is kept as text",
            "row 3, field 'order + line': '2+9' is not a key of 'orders'; the cells are kept",
        ]
    )
    assert names(graph, "Find(Tim) QueryAttr(boss)") == ["zz"]
    assert names(graph, "Find(parcels/C) QueryAttr(line)") == ["9"]


def test_the_same_in_a_file(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "shop", SHOP)
    by_options = loaded(folder, join=JOIN, primary=PRIMARY)
    (folder / "condgraph.toml").write_text(
        """
        [tables.orders]
        key = ["order", "line"]
        [tables.parcels]
        key = "parcel"
        [joins]
        "people.boss" = "people.id"
        "orders.buyer" = "people"
        "parcels.(order, line)" = "orders.(order, line)"
        "notes.about" = ["people.id", "parcels.parcel"]
        """
    )
    by_file = loaded(folder)
    assert by_file[1] == by_options[1]
    assert by_file[0].status().counts == by_options[0].status().counts
    file = (folder / "condgraph.toml").rename(folder.parent / "tables.toml")
    assert loaded(folder, declaration=str(file))[1] == by_options[1]
    with pytest.raises(OptionError, match="is the path of a file"):
        loaded(folder, declaration=5)
    # Without the file, names alone.
    assert loaded(folder, declaration=False)[0].status().counts != by_file[0].status().counts


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[joins\n", "not TOML"),
        ("[tables.order]\nkey = 'id'\n", "'order', which does not exist"),
        ("[tables.people]\nkey = 'ident'\n", "'ident', which 'people' does not have"),
        ("[tables.people]\nkeys = 'id'\n", "has no 'keys'"),
        ("[joins]\n'people.boss' = 'people.nam'\n", "'nam'"),
        ("[joins]\n'people.boss' = 5\n", "to a column, or to a list"),
        ("[joins]\n'people.boss' = 'orders'\n", "a table without a key"),
        ("[joins]\n'people.boss' = 'orders.(order, line)'\n", "1 columns to 2"),
        ("[joins]\n'people.boss' = 'orders.order'\n", "repeat others"),
        ("[tables.people]\ntypes = { id = 'float' }\n", "column type 'float'"),
        ("[tables.people]\nrelation = true\n", "fewer than two"),
        ("guess = 'yes'\n", "true or false"),
        ("joins = 1\n", "not a section"),
        ("\x00", "TOML"),
    ],
)
def test_a_declaration_that_cannot_be_names_the_file(text: str, said: str, tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "shop", {**SHOP, "condgraph.toml": text})
    with pytest.raises(LoadError) as caught:
        loaded(folder)
    assert said in str(caught.value)
    assert str(caught.value.file).endswith("condgraph.toml")
    with pytest.raises(OptionError):
        loaded(folder, declaration=False, join={"people.boss": "people.nam"})


def test_tables_of_relations(tmp_path: Path) -> None:
    """Two references and one word are a relation; with more columns, where it is said."""
    files = {
        "people.csv": "id,name\n1,Ann\n2,Bob\n",
        "clubs.csv": "id,name\nc,Chess\nd,Dance\n",
        "members.csv": "person_id,club_id,since,fee\n1,c,2001-05-01,5 EUR\n2,d,2002-01-01,\n1,c,2001-05-01,5 EUR\n",
        "visits.csv": "person_id,type,club_id\n1,visited,d\n2,visited,c\n2,visited,c\n",
    }
    folder = folder_of(tmp_path / "clubs", files)
    graph, said = loaded(folder, relations={"members": "member of"})
    assert names(graph, "Find(Chess) Relate(member of, backward) QueryName()") == ["Ann"]
    assert names(graph, "Find(Ann) Find(Chess) QueryRelationQualifier(member of, fee)") == ["5 EUR"]
    assert names(graph, "Find(Ann) Relate(visited, forward) QueryName()") == ["Dance"]
    assert sorted(said) == [
        "row 3: the row repeats row 1; equal statements count once",
        "row 3: the row repeats row 2; equal statements count once",
    ]
    assert not any(entity.startswith("members/") for entity in names(graph, "FindAll() QueryName()"))
    rows, _ = loaded(folder)
    assert names(rows, "FindAll() FilterConcept(members) Relate(club_id, forward) QueryName()") == ["Chess", "Dance"]
    (folder / "members.csv").write_text("person_id,club_id\n1,c\n2,\n9,d\n")
    with pytest.raises(LoadError, match=r"row 2, field 'club_id': the key is missing"):
        loaded(folder)
    report = condgraph.open("memory:").load(folder, on_error="skip")
    assert report.skipped == 2


def test_options_about_keys_make_a_folder_one_source(tmp_path: Path) -> None:
    """Though no column is called like a key of another table."""
    files = {"nodes.csv": "id,name\n1,x\n2,y\n", "links.csv": "from,to,weight\n1,2,5\n2,2,6\n"}
    graph, said = loaded(
        folder_of(tmp_path / "links", files), join={"links.from": "nodes", "links.to": "nodes"}, relations=["links"]
    )
    assert not said
    assert names(graph, "Find(x) Relate(links, forward) QueryName()") == ["y"]
    assert names(graph, "Find(y) Find(y) QueryRelationQualifier(links, weight)") == ["6"]


def test_guess_gives_reasons_and_loads(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "shop", SHOP)
    text = guess(folder)
    for line in (
        'key = ["order", "line"]',
        '"people.boss" = "people.id"  # ',
        'key = "parcel"  # 4 rows, all there and all different',
    ):
        assert line in text, text
    (folder / "condgraph.toml").write_text(text, encoding="utf-8")
    graph, _ = loaded(folder)
    assert names(graph, "Find(Bond) Relate(boss, backward) QueryName()") == ["Bill", "Eve"]
    with pytest.raises(FormatError, match="not several tables"):
        guess(folder / "people.csv")


def test_names_of_any_kind_survive_a_guess(tmp_path: Path) -> None:
    """Headers and files with quotes, points, number signs and line ends."""
    folder = folder_of(
        tmp_path / "odd",
        {'a"b.c.csv': 'id,"x ""y"".z","#\nq"\n1,5,\x7f\n2,6,u\n', "d e.csv": 'id,name,"a""b.c_id"\n1,k,1\n2,l,2\n'},
    )
    (folder / "condgraph.toml").write_text(guess(folder), encoding="utf-8")
    graph, said = loaded(folder)
    assert not said
    assert names(graph, 'Find(k) Relate(a"b.c_id, forward) QueryName()') == ['a"b.c/1']


def sqlite_of(path: Path, script: str) -> Path:
    connection = sqlite3.connect(path)
    connection.executescript(script)
    connection.commit()
    connection.close()
    return path


def test_sqlite_as_people_have_it(tmp_path: Path) -> None:
    """Keys in other cases than columns, keys that are said by no column, cells of any type, views."""
    path = sqlite_of(
        tmp_path / "odd.db",
        """
        CREATE TABLE "Team" (Id INTEGER PRIMARY KEY, name TEXT, logo BLOB, size REAL);
        CREATE TABLE player (nick TEXT PRIMARY KEY, team_id INT REFERENCES team(ID), mentor TEXT REFERENCES PLAYER, score);
        CREATE TABLE empty (x INT);
        CREATE VIEW tall AS SELECT nick FROM player;
        INSERT INTO Team VALUES (1, 'Reds', X'00FF', 1.5), (2, 'Blues', NULL, 2e300);
        INSERT INTO player VALUES ('007', 1, NULL, 5), ('ö x', 2, '007', 'five'), ('z', 9, 'nobody', NULL);
        """,
    )
    graph, _ = loaded(path)
    assert names(graph, "Find(Reds) Relate(team_id, backward) QueryName()") == ["player/007"]
    assert names(graph, "Find(player/ö x) Relate(mentor, forward) QueryName()") == ["player/007"]
    assert names(graph, "Find(Reds) QueryAttr(logo)") == ["0x00FF"]
    assert names(graph, "Find(player/z) QueryAttr(mentor)") == ["nobody"]
    assert [source.name for source in graph.status().sources] == ["odd/Team", "odd/empty", "odd/player"] or len(
        graph.status().sources
    ) == 2
    only, _ = loaded(path, tables=["tall"])
    assert only.status().counts["attributes"] == 3
    with pytest.raises(LoadError, match="no table 'Teem'"):
        loaded(path, tables="Teem")
    damaged = tmp_path / "damaged.db"
    damaged.write_bytes(path.read_bytes()[:4500] + b"\x37" * 3000)
    with pytest.raises(LoadError):
        loaded(damaged)
    with within(1e-9), pytest.raises(DeadlineError):
        loaded(path)


def test_addresses_of_databases_show_no_password(tmp_path: Path) -> None:
    for address in (
        "postgresql://me:topsecret@127.0.0.1:1/db",
        "mysql://me:topsecret@127.0.0.1:1/db",
        "postgresql://me:topsecret@[::1/db",
    ):
        with pytest.raises((LoadError, OptionError)) as caught:
            loaded(address)
        assert "topsecret" not in str(caught.value)
        assert "topsecret" not in repr(caught.value.__cause__)


def workbook(path: Path, **sheets: Any) -> Path:
    import openpyxl

    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, (rows, merged) in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
        for one in merged:
            sheet.merge_cells(one)
    book.save(path)
    return path


def test_workbooks_as_people_have_them(tmp_path: Path) -> None:
    """A title, merged headers and bodies, dates, blank rows and columns, formulas without values."""
    from datetime import date, datetime, time

    path = workbook(
        tmp_path / "sales.xlsx",
        Shops=(
            [["Sales of 2020"], [None],
             ["Region", "Shop", "Sales", None, "Opened", None], [None, None, "first", "second", None, None],
             ["North", "A 1", 5.0, 6.25, date(2001, 2, 3), None],
             [None, "007", 7, None, datetime(2001, 2, 4, 5, 6, 7), None],
             [None] * 6,
             ["South", "C", True, "=1+1", time(4, 5), None]],
            ["C3:D3", "A3:A4", "B3:B4", "E3:E4", "A5:A6"],
        ),
        Staff=([["name", "Shop"], ["Ann", "A 1"], ["Bob", "007"]], []),
        Nothing=([], []),
    )  # fmt: skip
    graph = condgraph.open("memory:")
    report = graph.load(path, primary={"Shops": "Shop"}, name_columns={"Shops": "Shop"})
    said = " ".join(problem.message for problem in report.problems)
    for part in ("Sales of 2020", "'Nothing' is empty", "1 formula has no value", "1 merged cell of the body"):
        assert part in said, said
    assert names(graph, "Find(007) QueryAttr(Region)") == ["North"]
    assert names(graph, "Find(A 1) QueryAttr(Sales second)") == ["6.25"]
    assert names(graph, "Find(A 1) QueryAttr(Opened)") == ["2001-02-03"]
    assert names(graph, "Find(Ann) Relate(Shop, forward) QueryAttr(Sales first)") == ["5"]
    (tmp_path / "broken.xlsx").write_bytes(path.read_bytes()[:3000])
    (tmp_path / "other.xlsx").write_bytes(b"PK\x03\x04 no zip")
    for name in ("broken.xlsx", "other.xlsx"):
        with pytest.raises(LoadError):
            loaded(tmp_path / name)


def test_pieces_of_parquet_are_one_table(tmp_path: Path) -> None:
    import pyarrow
    import pyarrow.parquet as pq

    for year in (2019, 2020):
        folder = tmp_path / "sales" / f"year={year}"
        folder.mkdir(parents=True)
        for part in range(2):
            pq.write_table(pyarrow.table({"item": [f"{year}-{part}"], "price": [part + 1.5]}), folder / f"part-{part}.parquet")
    graph, _ = loaded(tmp_path / "sales", key="item")
    assert [source.name for source in graph.status().sources] == ["sales"]
    assert names(graph, "FindAll() FilterNum(price, 2, >) QueryName()") == ["2019-1", "2020-1"]
    assert names(graph, "Find(2019-1) QueryAttr(year)") == ["2019"]


def test_a_problem_names_the_table_of_a_database(tmp_path: Path) -> None:
    """In one file with several tables, a row alone says little."""
    path = tmp_path / "shop.db"
    database = sqlite3.connect(path)
    database.executescript("""
        CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT);
        CREATE TABLE purchase (id INTEGER PRIMARY KEY, customer INTEGER REFERENCES customer);
        INSERT INTO customer VALUES (1, 'Ann');
        INSERT INTO purchase VALUES (10, 1), (11, 7);
    """)
    database.close()
    (problem,) = condgraph.open().load(path).problems
    assert (problem.table, problem.row, problem.field) == ("purchase", 2, "customer")
    assert "shop.db, table 'purchase', row 2, field 'customer': '7' is not a key of 'customer'" in str(problem)


def test_references_that_may_be_rows_of_their_own_table_are_said(tmp_path: Path) -> None:
    """A manager is an employee, and Singapore is not the capital of itself: only people know."""
    path = tmp_path / "staff.csv"
    path.write_text("name,manager,place\nAnn,,Bern\nBob,Ann,Rome\nCid,Ann,Bern\nDee,Bob,Bob\n")
    graph = condgraph.open("memory:")
    report = graph.load(path, key="name", refs=["manager", "place"])
    assert [(one.field, one.message) for one in report.problems] == [
        (
            "manager",
            "2 of the 2 entities in this column have the keys of rows of this table, but are separate from the rows: 'Ann', 'Bob' "
            "(join={'manager': 'staff'} makes the column refer to the rows)",
        ),
        (
            "place",
            "1 of the 3 entities in this column has the key of a row of this table, but is separate from the rows: 'Bob' "
            "(join={'place': 'staff'} makes the column refer to the rows)",
        ),
    ]
    assert names(graph, "Find(Dee) Relate(manager, forward) QueryAttr(name)") == []
    report = graph.load(path, key="name", join={"manager": "staff"}, refs=["place"], replace=True)
    assert [one.field for one in report.problems] == ["place"]
    assert names(graph, "Find(Dee) Relate(manager, forward) Relate(manager, forward) QueryAttr(name)") == ["Ann"]


def test_a_table_is_a_concept() -> None:
    graph = condgraph.open("memory:")
    graph.load([{"place": "Oslo"}], name="places", key="place")
    graph.load([{"name": "Ann", "pay": 3, "place": "Oslo"}], name="staff", key="name", join={"place": "places"})
    assert names(graph, "FindAll() FilterConcept(staff) QueryName()") == ["Ann"]
    # What a table refers to is no row of it.
    assert names(graph, "FindAll() FilterConcept(staff) FilterConcept(places) QueryName()") == []
    assert names(graph, "Find(Oslo) Relate(place, backward) FilterConcept(staff) QueryName()") == ["Ann"]
    assert names(graph, "FindAll() FilterConcept(staff) FindAll() FilterConcept(places) Or() Count()") == ["2"]
    assert graph.kopl("FindAll() FilterConcept(staff) FilterNum(pay, 3, =) Count()").check()
    with pytest.raises(UnknownNameError, match=r"unknown concept 'stuff'.*nearest: 'staff'"):
        graph.kopl("FindAll() FilterConcept(stuff) Count()")
    # A concept comes first, and of two tables with one name none is meant.
    graph.load([{"name": "Bob"}], name="b/people", key="name")
    assert names(graph, "FindAll() FilterConcept(people) QueryName()") == ["Bob"]
    graph.load([{"name": "Cy"}], name="c/people", key="name")
    with pytest.raises(UnknownNameError, match="unknown concept 'people'"):
        graph.kopl("FindAll() FilterConcept(people) Count()")
    graph.add([Entity("s", "staff", EntityKind.CONCEPT), Entity("z", "Zoe"), Member("z", "s")])
    assert names(graph, "FindAll() FilterConcept(staff) QueryName()") == ["Zoe"]


def table_of(header: str, rows: Any) -> str:
    """A CSV file: its header, and rows of cells."""
    return "\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n"


STATIONS = table_of("station,stop", [(f"S{i:02}", f"Stop {i}") for i in range(12)])
TRIPS = table_of("trip,start,minutes", [(f"T{i}", f"S{i % 12:02}", i % 7) for i in range(30)])
#: Files, the columns that are joined, and those that are asked about.
SEVERAL: dict[str, tuple[dict[str, str], list[str], list[str]]] = {
    "codes that are keys of one table": ({"stations": STATIONS, "trips": TRIPS}, ["trips.start"], []),
    "names that agree": (
        {"customers": "customerID,name\n1,Ann\n2,Bob\n", "orders": "orderID,customerID\n10,1\n11,1\n12,2\n"},
        ["orders.customerID"],
        [],
    ),
    "a few codes": ({"stations": "station,stop\nA,x\nB,y\nC,z\n", "trips": "trip,start\n1,A\n2,C\n3,A\n"}, [], ["start"]),
    "a number that may be a key": (
        {"shippers": "shipperID,firm\n1,a\n2,b\n3,c\n", "orders": table_of("orderID,via", [(i, i % 3 + 1) for i in range(9)])},
        [],
        ["via"],
    ),
    "two tables with id": ({name: table_of("id,x", [(i, f"{name}{i}") for i in range(1, 30)]) for name in "ab"}, [], []),
    "numbers that count": (
        {
            "a": table_of("id,x", [(i, f"x{i}") for i in range(1, 30)]),
            "b": table_of("id,rank,score", [(i, 30 - i, i * 1.5) for i in range(1, 30)]),
        },
        [],
        [],
    ),
    "its own table": (
        {
            "staff": table_of("id,name,manager", [(f"E{i}", f"n{i}", f"E{i // 2}" if i > 1 else "") for i in range(1, 30)]),
            "x": "k\n1\n",
        },
        ["staff.manager"],
        [],
    ),
    "codes of two tables": (
        {
            "grades": table_of("grade,text", [(c, f"g{c}") for c in "ABCDEFGHIJKL"]),
            "parts": table_of("part,class", [(f"p{i}", "ABCDEFGHIJKL"[i % 12]) for i in range(50)]),
            "letters": table_of("letter,place", [(c, i) for i, c in enumerate("ABCDEFGHIJKLMN")]),
        },
        [],
        ["class"],
    ),
    "leading zeros on one side": (
        {
            "zips": table_of("zip,town", [(f"{i:05}", f"t{i}") for i in range(1, 40)]),
            "people": table_of("person,code", [(f"p{i}", i) for i in range(1, 40)]),
        },
        [],
        [],
    ),
    "leading zeros on both": (
        {
            "zips": table_of("zip,town", [(f"{i:05}", f"t{i}") for i in range(1, 40)]),
            "people": table_of("person,code", [(f"p{i}", f"{i:05}") for i in range(1, 40)]),
        },
        ["people.code"],
        [],
    ),
    "another case": (
        {
            "zones": table_of("code,town", [(f"A{i}", f"t{i}") for i in range(1, 40)]),
            "people": table_of("person,place", [(f"p{i}", f"a{i}") for i in range(1, 40)]),
        },
        [],
        [],
    ),
    "cells that are missing": (
        {
            "zones": table_of("code,town", [(f"A{i}", f"t{i}") for i in range(1, 40)]),
            "people": table_of("person,place", [(f"p{i}", f"A{i}" if i % 3 else "") for i in range(1, 40)]),
        },
        ["people.place"],
        [],
    ),
    "a key that repeats": ({"zones": "code,town\nA1,x\nA1,y\nA2,z\n", "people": "person,code\np1,A1\np2,A2\n"}, [], []),
    "rows that repeat": (
        {"stations": STATIONS, "trips": table_of("start,end", [(f"S{i % 12:02}", f"S{i * 5 % 12:02}") for i in range(30)])},
        ["trips.start", "trips.end"],
        [],
    ),
}


@pytest.mark.parametrize("name", SEVERAL)
@pytest.mark.parametrize("listed", [False, True])
def test_several_tables_are_joined_where_that_is_certain(name: str, listed: bool, tmp_path: Path) -> None:
    files, joined, asked = SEVERAL[name]
    place = folder_of(tmp_path / "town", {f"{stem}.csv": text for stem, text in files.items()})
    graph = condgraph.open("memory:")
    source: Any = sorted(place.iterdir()) if listed else place
    report = graph.load(source)
    assert [one.partition(" = ")[0] for one in report.joins] == joined
    questions = [problem for problem in report.problems if "makes it a reference" in problem.message]
    assert [problem.field for problem in questions] == asked
    assert f"{len(joined)} column" in str(report) if joined else "joined" not in str(report)
    # Every row is there, whatever was joined.
    for stem, text in files.items():
        if listed or joined or asked:
            assert names(graph, f"FindAll() FilterConcept({stem}) Count()") == [str(text.count("\n") - 1)]
    for column in joined:
        table, _, at = column.partition(".")
        assert graph.kopl(f"FindAll() FilterConcept({table}) Relate({at}, forward) Count()").values[0] > 0
    none = condgraph.open("memory:")
    report = none.load(source, join=False)
    assert (report.joins, [one for one in report.problems if "makes it" in one.message]) == ((), [])
    assert none.status().counts["relations"] == 0


def test_what_is_asked_about_is_joined_when_it_is_said(tmp_path: Path) -> None:
    files = {
        "stations.csv": "station,stop\nA,x\nB,y\nC,z\n",
        "trips.csv": "trip,start\n1,A\n2,C\n3,A\n",
        "words.csv": "word\nfoo\n",
    }
    place = folder_of(tmp_path / "town", files)
    listed = sorted(place.iterdir())
    graph = condgraph.open("memory:")
    (problem,) = graph.load(listed).problems
    assert "join={'trips.start': 'stations.station'} makes it a reference" in problem.message
    assert "its 2 different values (A, C) are keys of 'stations'" in problem.message
    graph = condgraph.open("memory:")
    assert graph.load(listed, join={"trips.start": "stations.station"}).problems == ()
    assert names(graph, "FindAll() FilterConcept(trips) Relate(start, forward) QueryAttr(stop)") == ["x", "z"]


def test_files_that_refer_to_none_stay_what_they_are(tmp_path: Path) -> None:
    files = {"stations.csv": STATIONS, "trips.csv": TRIPS, "words.csv": "word,length\nfoo,3\n"}
    listed = sorted(folder_of(tmp_path / "town", files).iterdir())
    graph = condgraph.open("memory:")
    assert graph.load(listed).sources == ("town", "words")
    # The same adds nothing; other files of that folder are another source.
    assert graph.load(listed).added["relations"] == 0
    more = folder_of(tmp_path / "town", {"lines.csv": STATIONS.replace("S", "L"), "buses.csv": TRIPS.replace("S", "L")})
    assert graph.load([more / "buses.csv", more / "lines.csv"]).sources == ("town 2",)
    assert graph.load([more / "buses.csv", more / "lines.csv"], name="lines").sources == ("lines",)
    # An option of single tables leaves them so.
    graph = condgraph.open("memory:")
    assert graph.load(listed[:2], delimiter=",").sources == ("stations", "trips")


def test_many_columns_are_asked_about_in_few_lines(tmp_path: Path) -> None:
    columns = [f"c{i}" for i in range(9)]
    place = folder_of(
        tmp_path / "town",
        {
            "stations.csv": "station\nA\nB\n",
            "trips.csv": table_of(",".join(["trip", *columns]), [(i, *"AB"[i % 2] * 9) for i in range(4)]),
        },
    )
    graph = condgraph.open("memory:")
    report = graph.load(place)
    assert [one.field for one in report.problems] == columns[:5]
    assert "the same holds for 4 further columns" in report.problems[-1].message


def test_too_many_files_are_not_looked_through(tmp_path: Path) -> None:
    place = folder_of(tmp_path / "town", {f"t{i}.csv": f"code{i},x\nA,1\nB,2\n" for i in range(101)})
    graph = condgraph.open("memory:")
    report = graph.load(place)
    assert len(report.sources) == 101
    assert "101 tables are too many to search for references" in report.problems[0].message


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "its 12 different values (S00, S01, S02) are keys of 'stations': join={'start': 'stations'} makes it refer"),
        ({"refs": ["start"]}, "are keys of 'stations', but name other entities: join={'start': 'stations'}"),
        ({"join": {"start": "stations"}}, ""),
        ({"join": False}, ""),
    ],
)
@pytest.mark.parametrize("named", [{}, {"name_column": "stop"}])
def test_a_table_that_comes_alone_is_asked_about(options: dict[str, Any], said: str, named: dict[str, str], tmp_path: Path) -> None:
    place = folder_of(tmp_path, {"stations.csv": STATIONS, "trips.csv": TRIPS})
    rows = [dict(zip(("trip", "start", "minutes"), line.split(","), strict=True)) for line in TRIPS.splitlines()[1:]]
    for source in (place / "trips.csv", rows):
        graph = condgraph.open("memory:")
        assert graph.load(place / "stations.csv", key="station", **named).problems == ()
        problems = graph.load(source, name="trips", key="trip", **options).problems
        assert [one.field for one in problems] == (["start"] if said else [])
        assert all(said in one.message for one in problems)


def test_what_a_table_alone_is_not_asked_about() -> None:
    graph = condgraph.open("memory:")
    graph.load([{"id": i, "x": f"x{i}"} for i in range(1, 9)], name="customers", key="id")
    graph.load([{"letter": letter} for letter in "ABCDEFGH"], name="letters")
    # Numbers are keys by their name alone, half of them at least; and rows without a key have none.
    rows = [{"no": 10 + i, "customer_id": i + 4, "rank": i, "mark": "ABCDEFGH"[i - 1]} for i in range(1, 9)]
    (problem,) = graph.load(rows, name="orders", key="no").problems
    assert (problem.field, problem.message.partition(":")[0]) == (
        "customer_id",
        "4 of its 8 different values are keys of 'customers'",
    )
    assert graph.load([{"no": 10 + i, "customer_id": i + 5} for i in range(1, 9)], name="further", key="no").problems == ()


def test_a_folder_of_one_table_that_refers_to_itself(tmp_path: Path) -> None:
    place = folder_of(tmp_path / "firm", {"staff.csv": "id,name,boss\n1,Ann,\n2,Bob,1\n3,Cy,1\n"})
    graph, _ = loaded(place)
    assert names(graph, "Find(Ann) Relate(boss, backward) QueryName()") == ["Bob", "Cy"]
    # The file alone is a table whose rows go by number.
    graph, _ = loaded(place / "staff.csv")
    assert names(graph, "FindAll() FilterStr(name, Bob) QueryAttr(boss)") == ["1"]


def test_a_key_finds_rows_that_are_called_otherwise(tmp_path: Path) -> None:
    place = folder_of(tmp_path / "town", {"stations.csv": STATIONS, "trips.csv": TRIPS.replace("minutes", "name")})
    graph = condgraph.open("memory:")
    graph.load(place / "stations.csv", key="station", name_column="stop")
    assert names(graph, "Find(S09) QueryName()") == ["Stop 9"]
    assert names(graph, "Find(Stop 9) QueryAttr(station)") == ["S09"]
    assert graph.query("Find(S09)", table="show stop").cells == [("Stop 9",)]
    assert graph.kopl("Find(S09) QueryName()").check()
    with pytest.raises(UnknownNameError, match="unknown entity 'S99'"):
        graph.kopl("Find(S99) QueryName()")
    # Of a text that is a value, the error names the attribute.
    graph.load([{"text": "Stop 99"}], name="notes")
    with pytest.raises(UnknownNameError, match=r"it is a value of 'text': FilterStr\(text, \.\.\.\) finds what has it"):
        graph.kopl("Find(Stop 99) QueryName()")
    # A name comes first, and the number of a row is no key.
    graph.load([{"name": "S09", "n": 7}, {"name": "x", "n": 8}], name="others", name_column="name")
    assert names(graph, "Find(S09) QueryAttr(n)") == ["7"]
    with pytest.raises(UnknownNameError, match="unknown entity '2'"):
        graph.kopl("Find(2) QueryName()")
    # Of a folder too, and of several tables all.
    graph = condgraph.open("memory:")
    graph.load(place, name_columns={"stations": "stop"})
    assert names(graph, "Find(S09) QueryName()") == ["Stop 9"]
    graph.load([{"code": "S09", "title": "Nine"}], name="codes", key="code", name_column="title")
    answer = graph.kopl("Find(S09) QueryName()")
    assert sorted(answer.texts) == ["Nine", "Stop 9"]
    (warning,) = answer.warnings
    assert "'S09'; it is the key of several rows, and means all: 'codes/S09', 'stations/S09'" in warning


def test_what_the_data_declare_is_in_the_report(tmp_path: Path) -> None:
    path = tmp_path / "bus.sqlite"
    with sqlite3.connect(path) as database:
        database.executescript(
            "CREATE TABLE stations (code TEXT PRIMARY KEY, stop TEXT);"
            "CREATE TABLE trips (trip TEXT, start TEXT REFERENCES stations, minutes INTEGER);"
            "INSERT INTO stations VALUES ('A', 'x'), ('B', 'y'); INSERT INTO trips VALUES ('T', 'A', 3);"
        )
    graph = condgraph.open("memory:")
    report = graph.load(path)
    assert [one.partition(":")[0] for one in report.joins] == ["trips.start = stations.code"]
    assert condgraph.open("memory:").load(path, join=False).joins == ()


UNRELATED = {
    "ranks": ("Rank,Team\n1,Ajax\n2,Celtic\n3,Porto\n", "Rank,Rider,Laps\n3,Ann,12\n1,Bo,9\n2,Cy,8\n"),
    "grids": ("Grid,Driver\n1,Hill\n2,Prost\n3,Senna\n", "Pos,Grid,Car\na,1,Lotus\nb,2,Ford\nc,7,Honda\n"),
    "places": (
        "Position,Name\n" + "".join(f"{n}th,p{n}\n" for n in range(4, 18)),
        ",Position,Year\n" + "".join(f"r{n},{n}th,19{n:02}\n" for n in range(4, 18)),
    ),
}


@pytest.mark.parametrize("kind", UNRELATED)
def test_tables_that_only_count_alike_are_not_joined(kind: str, tmp_path: Path) -> None:
    files = folder_of(tmp_path, {f"{name}.csv": text for name, text in zip("ab", UNRELATED[kind], strict=True)})
    for source in (files, sorted(files.iterdir())):
        report = condgraph.open("memory:").load(source)
        assert report.joins == ()


def test_a_key_with_missing_cells_is_named_with_its_join(tmp_path: Path) -> None:
    """As people export timetables: a byte order mark, semicolons, headers twice, a stop without a number."""
    stops = '\ufeffstop_id;stop_name;zone;zone\r\n001;Central;A;1\r\n002;Zoo;A;\r\n;No number;B;2\r\n004;"Old; Town";B;2\r\n'
    calls = "\ufefftrip;stop_id;minutes\r\nT1;001;12,5\r\nT1;002;3,25\r\n;002;\r\nT3;099;4,5\r\n"
    place = folder_of(tmp_path / "tram", {"places.csv": stops, "calls.csv": calls})
    join = {"calls.stop_id": "places.stop_id"}
    said = [one.message for one in condgraph.open("memory:").load(place).problems]
    assert (
        f"this may refer to places.stop_id, which is not a key because of 1 missing cell: join={join!r} makes it a reference"
        in said
    )
    graph = condgraph.open("memory:")
    graph.load(place, join=join, decimal=",", name_columns={"places": "stop_name"})
    assert graph.query("Find(Zoo) Relate(stop_id, backward) Count()").texts == ["2"]
    assert names(graph, "Find(No number) QueryAttr(zone (2))") == ["2"]
