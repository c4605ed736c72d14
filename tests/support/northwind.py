"""Northwind, a folder of related CSV files, as other sources have it: an SQLite file, a PostgreSQL
database, a workbook; and what graphs of it hold, to be compared.
"""

from __future__ import annotations

import csv
import datetime
import sqlite3
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from condgraph.graph import Graph

#: Columns of what names and types do not say.
JOINS = {"orders.shipVia": "shippers.shipperID", "employees.reportsTo": "employees.employeeID"}
PRIMARY = {
    "order-details": ["orderID", "productID"],
    "employee-territories": ["employeeID", "territoryID"],
}
#: How the folder is loaded, so that it says what the databases say.
OPTIONS: dict[str, Any] = {"join": JOINS, "primary": PRIMARY}
KEYS = {
    "categories": "categoryID", "customers": "customerID", "employees": "employeeID", "orders": "orderID",
    "products": "productID", "regions": "regionID", "shippers": "shipperID", "suppliers": "supplierID",
    "territories": "territoryID",
}  # fmt: skip
FOREIGN = {
    "employee-territories": {"employeeID": "employees", "territoryID": "territories"},
    "employees": {"reportsTo": "employees"},
    "order-details": {"orderID": "orders", "productID": "products"},
    "orders": {"customerID": "customers", "employeeID": "employees", "shipVia": "shippers"},
    "products": {"supplierID": "suppliers", "categoryID": "categories"},
    "territories": {"regionID": "regions"},
}
_NUMBERS = frozenset(
    ("categoryID", "discontinued", "employeeID", "orderID", "productID", "quantity", "regionID", "reorderLevel", "reportsTo",
     "shipVia", "shipperID", "supplierID", "unitsInStock", "unitsOnOrder")
)  # fmt: skip
_DECIMALS = frozenset(("unitPrice", "discount", "freight"))

Rows = list[list[str | None]]
Tables = dict[str, tuple[list[str], Rows]]


def tables_of(folder: Path) -> Tables:
    """The files of the folder: header and rows, with addresses that lack their quotes put right."""
    tables: Tables = {}
    for path in sorted(folder.glob("*.csv")):
        with path.open(encoding="utf-8", newline="") as stream:
            header, *rows = csv.reader(stream)
        whole: Rows = []
        for row in rows:
            fields: list[str] = []
            for cell in row:
                if len(row) != len(header) and cell[:1] == " ":
                    fields[-1] += "," + cell
                else:
                    fields.append(cell)
            assert len(fields) == len(header)
            whole.append([None if cell in ("", "NULL") else cell for cell in fields])
        tables[path.stem] = header, whole
    return tables


def kind(column: str) -> str:
    """The SQL type of a column."""
    if column in _NUMBERS:
        return "integer"
    return "numeric" if column in _DECIMALS else "timestamp" if column.endswith("Date") else "text"


def python(column: str, cell: str | None) -> Any:
    """A cell as a spreadsheet holds it."""
    if cell is None:
        return None
    of = kind(column)
    if of == "timestamp":
        return datetime.datetime.fromisoformat(cell)
    return int(cell) if of == "integer" else float(cell) if of == "numeric" else cell


def schema(tables: Tables) -> str:
    """The tables with their keys, as SQL."""
    made = []
    order = [name for name in tables if name not in FOREIGN] + ["territories", "employees", "products", "orders"]
    for name in [*order, *(name for name in tables if name not in order)]:
        header, _ = tables[name]
        primary = ", ".join(f'"{one}"' for one in ([KEYS[name]] if name in KEYS else PRIMARY[name]))
        lines = [f'"{column}" {kind(column)}' for column in header] + [f"PRIMARY KEY ({primary})"]
        lines += [
            f'FOREIGN KEY ("{column}") REFERENCES "{target}" ("{KEYS[target]}")' for column, target in FOREIGN.get(name, {}).items()
        ]
        made.append(f'CREATE TABLE "{name}" ({", ".join(lines)});')
    return "\n".join(made)


def to_sqlite(tables: Tables, path: Path) -> Path:
    """Northwind in an SQLite file."""
    with sqlite3.connect(path) as connection:
        connection.executescript(schema(tables))
        for name, (header, rows) in tables.items():
            connection.executemany(f'INSERT INTO "{name}" VALUES ({", ".join("?" * len(header))})', rows)
    connection.close()
    return path


def to_postgres(tables: Tables, url: str) -> None:
    """Northwind in a PostgreSQL database; rows before those that refer to them, as a server wants
    it.
    """
    import psycopg

    with psycopg.connect(url) as connection:
        connection.execute(schema(tables).encode())
        for line in schema(tables).splitlines():
            name = line.split('"')[1]
            header, rows = tables[name]
            rows = managers_first(name, header, rows)
            with connection.cursor() as cursor:
                cursor.executemany(f'INSERT INTO "{name}" VALUES ({", ".join(["%s"] * len(header))})'.encode(), rows)


def managers_first(name: str, header: list[str], rows: Rows) -> Rows:
    """Rows in an order in which each refers to one before it."""
    if name != "employees":
        return rows
    return sorted(rows, key=lambda row: (row[header.index("reportsTo")] is not None, row[0] != "5", row[0]))


def to_mysql(tables: Tables, url: str) -> None:
    """Northwind in a MySQL or MariaDB database."""
    import pymysql

    from condgraph.loaders.database.server import DatabaseUrl

    user, password, host, port, name, _ = DatabaseUrl(url)._parts()
    made = schema(tables).replace('"', "`").replace("numeric", "decimal(20, 6)").replace("timestamp", "datetime")
    for column in ("customerID", "territoryID"):
        made = made.replace(f"`{column}` text", f"`{column}` varchar(100)")
    made = made.replace(" text", " longtext")
    with (
        pymysql.connect(host=host, port=port or 3306, user=user, password=password, database=name, autocommit=True) as connection,
        connection.cursor() as cursor,
    ):
        for line in made.splitlines():
            cursor.execute(line)
            table = line.split("`")[1]
            header, rows = tables[table]
            values = ", ".join(["%s"] * len(header))
            cursor.executemany(f"INSERT INTO `{table}` VALUES ({values})", managers_first(table, header, rows))


def to_excel(tables: Tables, path: Path) -> Path:
    """Northwind as one workbook, a sheet a table; keys and dates as Excel has them."""
    import openpyxl

    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, (header, rows) in tables.items():
        sheet = book.create_sheet(name)
        sheet.append(header)
        for row in rows:
            sheet.append([python(column, cell) for column, cell in zip(header, row, strict=True)])
    book.save(path)
    return path


def contents(graph: Graph) -> tuple[Counter[Any], Counter[Any]]:
    """The entities and the statements of a graph without sources, rows and raw texts."""
    snapshot = graph.current
    entities = Counter((one.id, one.name, one.kind.name) for one in map(snapshot.entity, range(snapshot.entities)))
    return entities, statements(graph)


def statements(graph: Graph) -> Counter[Any]:
    """The statements of a graph, and what is an instance of what."""
    import io
    import json

    out = io.StringIO()
    graph.export(out)
    found: Counter[Any] = Counter()
    for line in out.getvalue().splitlines():
        one = json.loads(line)
        for key in ("src", "raw"):
            one.pop(key, None)
        if not {"condgraph", "source"} & one.keys():
            found[json.dumps(one, sort_keys=True)] += 1
    return found


def compare(one: Graph, other: Graph) -> Sequence[Any]:
    """What one graph has and the other lacks, and the other way round; nothing where they are
    equal.
    """
    found = []
    for left, right in zip(contents(one), contents(other), strict=True):
        found += [("lacks", *item) for item in (left - right).items()][:10]
        found += [("has more", *item) for item in (right - left).items()][:10]
    return found
