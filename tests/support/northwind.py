"""Northwind, a folder of related CSV files, in other formats: an SQLite file, PostgreSQL and MySQL databases, a
workbook; and the contents of its graphs, for comparison.
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

#: References that names and types do not show.
JOINS = {"orders.shipVia": "shippers.shipperID", "employees.reportsTo": "employees.employeeID"}
PRIMARY = {
    "order-details": ["orderID", "productID"],
    "employee-territories": ["employeeID", "territoryID"],
}
#: The options with which the folder declares what the databases declare.
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
    """Return header and rows of each file in the folder; addresses without their quotes are repaired."""
    tables: Tables = {}
    for path in sorted(folder.glob("*.csv")):
        with path.open(encoding="utf-8", newline="") as stream:
            header, *rows = csv.reader(stream)
        repaired: Rows = []
        for row in rows:
            fields: list[str] = []
            for cell in row:
                if len(row) != len(header) and cell[:1] == " ":
                    fields[-1] += "," + cell
                else:
                    fields.append(cell)
            assert len(fields) == len(header)
            repaired.append([None if cell in ("", "NULL") else cell for cell in fields])
        tables[path.stem] = header, repaired
    return tables


def kind(column: str) -> str:
    """Return the SQL type of a column."""
    if column in _NUMBERS:
        return "integer"
    return "numeric" if column in _DECIMALS else "timestamp" if column.endswith("Date") else "text"


def python(column: str, cell: str | None) -> Any:
    """Return a cell as a spreadsheet stores it."""
    if cell is None:
        return None
    sql_type = kind(column)
    if sql_type == "timestamp":
        return datetime.datetime.fromisoformat(cell)
    return int(cell) if sql_type == "integer" else float(cell) if sql_type == "numeric" else cell


def schema(tables: Tables) -> str:
    """Return the tables with their keys as SQL."""
    statements = []
    order = [name for name in tables if name not in FOREIGN] + ["territories", "employees", "products", "orders"]
    for name in [*order, *(name for name in tables if name not in order)]:
        header, _ = tables[name]
        primary = ", ".join(f'"{column}"' for column in ([KEYS[name]] if name in KEYS else PRIMARY[name]))
        lines = [f'"{column}" {kind(column)}' for column in header] + [f"PRIMARY KEY ({primary})"]
        lines += [
            f'FOREIGN KEY ("{column}") REFERENCES "{target}" ("{KEYS[target]}")' for column, target in FOREIGN.get(name, {}).items()
        ]
        statements.append(f'CREATE TABLE "{name}" ({", ".join(lines)});')
    return "\n".join(statements)


def to_sqlite(tables: Tables, path: Path) -> Path:
    """Write Northwind into an SQLite file."""
    with sqlite3.connect(path) as connection:
        connection.executescript(schema(tables))
        for name, (header, rows) in tables.items():
            connection.executemany(f'INSERT INTO "{name}" VALUES ({", ".join("?" * len(header))})', rows)
    connection.close()
    return path


def to_postgres(tables: Tables, url: str) -> None:
    """Write Northwind into a PostgreSQL database; rows come before those that refer to them, as the server requires."""
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
    """Order rows so that each refers only to earlier ones."""
    if name != "employees":
        return rows
    return sorted(rows, key=lambda row: (row[header.index("reportsTo")] is not None, row[0] != "5", row[0]))


def to_mysql(tables: Tables, url: str) -> None:
    """Write Northwind into a MySQL or MariaDB database."""
    import pymysql

    from condgraph.loaders.database.server import DatabaseUrl

    user, password, host, port, name, _ = DatabaseUrl(url)._parts()
    statements = schema(tables).replace('"', "`").replace("numeric", "decimal(20, 6)").replace("timestamp", "datetime")
    for column in ("customerID", "territoryID"):
        statements = statements.replace(f"`{column}` text", f"`{column}` varchar(100)")
    statements = statements.replace(" text", " longtext")
    with (
        pymysql.connect(host=host, port=port or 3306, user=user, password=password, database=name, autocommit=True) as connection,
        connection.cursor() as cursor,
    ):
        for line in statements.splitlines():
            cursor.execute(line)
            table = line.split("`")[1]
            header, rows = tables[table]
            values = ", ".join(["%s"] * len(header))
            cursor.executemany(f"INSERT INTO `{table}` VALUES ({values})", managers_first(table, header, rows))


def to_excel(tables: Tables, path: Path) -> Path:
    """Write Northwind as one workbook with a sheet for each table; keys and dates are typed as in Excel."""
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
    """Return the entities and the statements of a graph without sources, rows and raw texts."""
    snapshot = graph.current
    entities = Counter((entity.id, entity.name, entity.kind.name) for entity in map(snapshot.entity, range(snapshot.entities)))
    return entities, statements(graph)


def statements(graph: Graph) -> Counter[Any]:
    """Return the statements and memberships of a graph."""
    import io
    import json

    out = io.StringIO()
    graph.export(out)
    counts: Counter[Any] = Counter()
    for line in out.getvalue().splitlines():
        record = json.loads(line)
        for key in ("src", "raw"):
            record.pop(key, None)
        if not {"condgraph", "source"} & record.keys():
            counts[json.dumps(record, sort_keys=True)] += 1
    return counts


def compare(one: Graph, other: Graph) -> Sequence[Any]:
    """Return what one graph has and the other lacks, in both directions; nothing if they are equal."""
    differences = []
    for left, right in zip(contents(one), contents(other), strict=True):
        differences += [("lacks", *item) for item in (left - right).items()][:10]
        differences += [("has more", *item) for item in (right - left).items()][:10]
    return differences
