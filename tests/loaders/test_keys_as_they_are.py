"""Keys as people's files and databases have them: numbers that programs wrote with a point, keys that
repeat, foreign keys that lead to no key.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import condgraph
from condgraph.engine.errors import OptionError
from condgraph.graph import Graph
from condgraph.loaders.declaring import guess

CUSTOMERS = "customer_id,name\n1,Ann\n2,Bob\n3,Cy\n"


def loaded(path: Path, files: dict[str, str], **options: Any) -> tuple[Graph, list[str]]:
    """A graph of a folder of these files, and what was said."""
    for name, text in files.items():
        (path / f"{name}.csv").write_text(text, encoding="utf-8")
    graph = condgraph.open()
    return graph, [one.message for one in graph.load(path, **options).problems]


def cells(graph: Graph, clause: str, concept: str = "orders") -> list[tuple[str, ...]]:
    return [tuple(row) for row in graph.query(f"FindAll() FilterConcept({concept})", table=clause).cells]


@pytest.mark.parametrize("options", [{}, {"join": {"orders.customer_id": "customers.customer_id"}}])
def test_whole_numbers_with_a_point_meet_keys_without(options: dict[str, Any], tmp_path: Path) -> None:
    """What pandas writes of a column of numbers some of which are missing."""
    orders = "order_id,customer_id\n10,1.0\n11,3.00\n12,\n"
    graph, said = loaded(tmp_path, {"customers": CUSTOMERS, "orders": orders}, **options)
    assert said == ["whole numbers with a point, such as 1.0, match the keys of 'customers' without it"]
    assert cells(graph, "show order_id, customer_id") == [("10", "Ann"), ("11", "Cy"), ("12", "")]


def test_a_guessed_declaration_says_how_they_meet(tmp_path: Path) -> None:
    orders = "order_id,customer_id\n10,1.0\n11,3.00\n12,7.0\n13,\n"
    loaded(tmp_path, {"customers": CUSTOMERS, "orders": orders})
    why = "2 of its 3 different values are keys there, not '7', without the point of 1.0"
    text = guess(tmp_path)
    assert f'"orders.customer_id" = "customers.customer_id"  # {why}\n' in text
    (tmp_path / "condgraph.toml").write_text(text, encoding="utf-8")
    graph, _ = loaded(tmp_path, {})
    assert cells(graph, "show order_id, customer_id") == [("10", "Ann"), ("11", "Cy"), ("12", "7.0"), ("13", "")]


def test_keys_with_a_point_meet_themselves(tmp_path: Path) -> None:
    """Versions, say."""
    files = {"version": "version,name\n1.0,first\n2.0,second\n1,other\n", "bugs": "bug,version\na,2.0\nb,1.0\nc,1\n"}
    graph, said = loaded(tmp_path, files)
    assert said == ["decimals are read as codes, as 1.10 and 1.1 would be one number; types= with number overrules"]
    assert cells(graph, "show bug, version", "bugs") == [("a", "second"), ("b", "first"), ("c", "other")]


def test_a_column_that_meets_no_key_is_said(tmp_path: Path) -> None:
    graph, said = loaded(tmp_path, {"customers": CUSTOMERS, "orders": "order_id,customer_id\n10,7\n11,8\n"})
    why = "2 of its 2 values are not keys of 'customers'"
    assert said == [f"this looks like a reference, but {why}; its cells are values (join= makes it a reference)"]
    assert cells(graph, "show customer_id") == [("7",), ("8",)]


@pytest.mark.parametrize("regions", ["id,name\n1,North\n2,South\n", "id,name\n1,North\n1,South\n"])
def test_a_column_of_names_that_is_called_like_a_table_is_none(regions: str, tmp_path: Path) -> None:
    (tmp_path / "condgraph.toml").write_text("[tables.shops]\nkey = 'shop'\n")
    assert loaded(tmp_path, {"regions": regions, "shops": "shop,region\nA,WA\nB,OR\n"})[1] == []


@pytest.mark.parametrize(
    ("customers", "why"),
    [("1,Ann\n1,Anna\n2,Bob\n", "1 of its cells repeat others"), ("1,Ann\n,Eve\n,Zoe\n2,Bob\n", "2 of its cells are missing")],
)
def test_a_key_that_is_none_is_said_where_others_refer_to_it(customers: str, why: str, tmp_path: Path) -> None:
    files = {"customers": f"customer_id,name\n{customers}", "orders": "order_id,customer_id\n10,1\n11,2\n"}
    graph, said = loaded(tmp_path, files)
    assert said == [f"this looks like a reference, but customers.customer_id is not a key: {why}; its cells are values"]
    assert cells(graph, "show customer_id") == [("1",), ("2",)]
    # A declaration that a table has no key is believed.
    (tmp_path / "condgraph.toml").write_text("[tables.customers]\nkey = []\n")
    assert loaded(tmp_path, files)[1] == []


def test_foreign_keys_that_lead_to_no_key_are_said(tmp_path: Path) -> None:
    """SQLite keeps what its tables were declared with, whatever that leads to."""
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path)) as database:
        database.executescript("""
            CREATE TABLE place (code TEXT, area TEXT, PRIMARY KEY (code, area));
            CREATE TABLE person (id INTEGER PRIMARY KEY, team INT, nick TEXT);
            CREATE TABLE bare (a INT);
            CREATE TABLE note (
                id INTEGER PRIMARY KEY, one INT REFERENCES person (team), two INT REFERENCES bare,
                three INT REFERENCES person (size), four TEXT REFERENCES place,
                five INT REFERENCES person, six TEXT REFERENCES person (nick)
            );
            INSERT INTO person VALUES (1, 7, '4'), (2, 7, '5');
            INSERT INTO bare VALUES (1);
            INSERT INTO note VALUES (1, 7, 1, 3, 'x', 2, '4.0');
        """)
    graph = condgraph.open()
    said = {one.field: one.message.removesuffix("; its cells are values") for one in graph.load(path).problems}
    assert said == {
        "one": "this uses person.team as a key, but 1 of its cells repeat others",
        "two": "this refers to the key of 'bare', a table without a key",
        "three": "this refers to 'size' of 'person', a missing column",
        "four": "this refers to 'place' with another number of columns than its key",
        "six": "'4.0' is not a key of 'person'; the cell is kept as text",
    }
    assert cells(graph, "show one, two, three, four, five, six", "note") == [("7", "1", "3", "x", "person/2", "4.0")]
    with pytest.raises(OptionError, match=r"uses person\.team as a key"):
        condgraph.open().load(path, join={"note.id": "person.team"})
