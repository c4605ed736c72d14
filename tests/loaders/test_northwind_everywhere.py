"""Northwind as a folder, an SQLite file, a PostgreSQL and a MariaDB database, and a workbook: one
graph; and questions of several hops, asked in KoPL of the graph and in SQL of DuckDB.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import condgraph
from condgraph.graph import Graph
from condgraph.loaders.declaring import guess
from tests.support import northwind
from tests.support.mariadb import mariadb as mariadb_server
from tests.support.postgres import postgres as postgres_server


@pytest.fixture(scope="module")
def tables(shared: Path) -> northwind.Tables:
    return northwind.tables_of(shared / "data" / "lpg_northwind" / "import")


@pytest.fixture(scope="module")
def graph(shared: Path) -> Graph:
    found = condgraph.open("memory:")
    found.load(shared / "data" / "lpg_northwind" / "import", **northwind.OPTIONS)
    return found


@pytest.fixture(scope="module")
def postgres_uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with postgres_server(tmp_path_factory.mktemp("postgres")) as url:
        yield url


@pytest.fixture(scope="module")
def mariadb_uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with mariadb_server(tmp_path_factory.mktemp("mariadb")) as url:
        yield url


def same(graph: Graph, source: Any, **options: Any) -> Graph:
    """A graph of another source, equal to that of the folder."""
    other = condgraph.open("memory:")
    report = other.load(source, **options)
    assert report.skipped == 0
    # Three columns of postal codes are mostly numbers; nothing else is said.
    assert {problem.field for problem in report.problems} == {"postalCode", "shipPostalCode"} or {
        problem.field for problem in report.problems
    } == {"postalCode"}
    assert northwind.compare(graph, other) == []
    return other


def test_sqlite(graph: Graph, tables: northwind.Tables, tmp_path: Path) -> None:
    same(graph, northwind.to_sqlite(tables, tmp_path / "northwind.db"))


@pytest.mark.data
def test_a_workbook(graph: Graph, tables: northwind.Tables, tmp_path: Path) -> None:
    same(graph, northwind.to_excel(tables, tmp_path / "northwind.xlsx"), **northwind.OPTIONS)


@pytest.mark.data
def test_a_folder_of_parquet(graph: Graph, tables: northwind.Tables, tmp_path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    for name, (header, rows) in tables.items():
        columns = [
            [northwind.python(column, cell) for cell in cells]
            for column, cells in zip(header, zip(*rows, strict=True), strict=True)
        ]
        pyarrow.parquet.write_table(pyarrow.table(dict(zip(header, columns, strict=True))), tmp_path / f"{name}.parquet")
    same(graph, tmp_path, **northwind.OPTIONS)


def test_postgres(graph: Graph, tables: northwind.Tables, postgres_uri: str) -> None:
    northwind.to_postgres(tables, postgres_uri)
    other = same(graph, postgres_uri)
    assert other.load(postgres_uri).added["relations"] == 0
    shown = repr(other.status().sources) + repr(other.load(postgres_uri))
    assert "postgresql://127.0.0.1" in shown
    assert "secret" not in shown


@pytest.mark.slow
def test_mariadb(graph: Graph, tables: northwind.Tables, mariadb_uri: str) -> None:
    northwind.to_mysql(tables, mariadb_uri)
    same(graph, mariadb_uri)


@pytest.mark.data
def test_a_declaration_that_is_guessed_gives_the_same_graph(graph: Graph, tables: northwind.Tables, tmp_path: Path) -> None:
    """The reference that names do not say stands as a comment, with its reason."""
    import csv

    folder = tmp_path / "northwind"
    folder.mkdir()
    for name, (header, rows) in tables.items():
        with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as stream:
            csv.writer(stream).writerows([header, *([cell or "" for cell in row] for row in rows)])
    text = guess(folder)
    perhaps = [line for line in text.splitlines() if line.startswith('# "')]
    assert [line.partition("  #")[0] for line in perhaps] == ['# "orders.shipVia" = "shippers.shipperID"']
    (folder / "condgraph.toml").write_text(text.replace(perhaps[0], perhaps[0][2:]), encoding="utf-8")
    same(graph, folder)


COUNTRIES = ("Germany", "France", "UK", "Brazil", "USA", "Spain")
CUSTOMERS = ("Alfreds Futterkiste", "Around the Horn", "Ernst Handel", "QUICK-Stop", "Save-a-lot Markets")
EMPLOYEES = ("Davolio", "Fuller", "King", "Suyama")
CATEGORIES = ("Beverages", "Seafood", "Confections")
#: KoPL with `{}`, and SQL with `?`.
QUESTIONS: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (
        COUNTRIES,
        "FindAll() FilterStr(country, {}) FilterConcept(suppliers) Relate(supplierID, backward) QueryName()",
        "SELECT DISTINCT productName FROM products JOIN suppliers USING (supplierID) WHERE country = ?",
    ),
    (
        COUNTRIES,
        "FindAll() FilterStr(country, {}) FilterConcept(customers) Relate(customerID, backward)"
        " Relate(employeeID, forward) QueryName()",
        "SELECT DISTINCT lastName FROM orders JOIN customers USING (customerID)"
        " JOIN employees e ON e.employeeID = orders.employeeID WHERE customers.country = ?",
    ),
    (
        COUNTRIES,
        "FindAll() FilterStr(country, {}) FilterConcept(customers) Relate(customerID, backward) Relate(orderID, backward)"
        " Relate(productID, forward) Relate(categoryID, forward) QueryName()",
        'SELECT DISTINCT categoryName FROM customers JOIN orders USING (customerID) JOIN "order-details" USING (orderID)'
        " JOIN products USING (productID) JOIN categories USING (categoryID) WHERE country = ?",
    ),
    (
        CUSTOMERS,
        "Find({}) Relate(customerID, backward) Find(Speedy Express) Relate(shipVia, backward) And() Count()",
        "SELECT count(*) FROM orders JOIN customers USING (customerID) JOIN shippers ON shipVia = shipperID"
        " WHERE customers.companyName = ? AND shippers.companyName = 'Speedy Express'",
    ),
    (
        CUSTOMERS,
        "Find({}) Relate(customerID, backward) Relate(orderID, backward) Relate(productID, forward)"
        " Relate(supplierID, forward) QueryAttr(country)",
        'SELECT DISTINCT suppliers.country FROM customers JOIN orders USING (customerID) JOIN "order-details" USING (orderID)'
        " JOIN products USING (productID) JOIN suppliers USING (supplierID) WHERE customers.companyName = ?",
    ),
    (
        CUSTOMERS,
        "Find({}) Relate(customerID, backward) FilterNum(freight, 50, >) Count()",
        "SELECT count(*) FROM orders JOIN customers USING (customerID) WHERE companyName = ? AND freight > 50",
    ),
    (
        CUSTOMERS,
        "Find({}) Relate(customerID, backward) FilterYear(orderDate, 1997, =) Relate(employeeID, forward)"
        " Relate(reportsTo, forward) QueryName()",
        "SELECT DISTINCT m.lastName FROM orders o JOIN customers USING (customerID)"
        " JOIN employees e ON e.employeeID = o.employeeID"
        " JOIN employees m ON m.employeeID = e.reportsTo WHERE companyName = ? AND year(orderDate) = 1997",
    ),
    (
        EMPLOYEES,
        "Find({}) Relate(employee-territories, forward) Relate(regionID, forward) QueryAttr(regionDescription)",
        'SELECT DISTINCT regionDescription FROM employees JOIN "employee-territories" USING (employeeID)'
        " JOIN territories USING (territoryID) JOIN regions USING (regionID) WHERE lastName = ?",
    ),
    (
        EMPLOYEES,
        "Find({}) Relate(reportsTo, backward) Relate(employee-territories, forward) Count()",
        'SELECT count(DISTINCT territoryID) FROM employees e JOIN employees m ON e.reportsTo = m.employeeID'
        ' JOIN "employee-territories" t ON t.employeeID = e.employeeID WHERE m.lastName = ?',
    ),
    (
        CATEGORIES,
        "Find({}) Relate(categoryID, backward) FilterNum(unitPrice, 20, >) QueryName()",
        "SELECT productName FROM products JOIN categories USING (categoryID) WHERE categoryName = ? AND unitPrice > 20",
    ),
    (
        CATEGORIES,
        "Find({}) Relate(categoryID, backward) Relate(productID, backward) FilterNum(discount, 0.2, >) Relate(orderID, forward)"
        " Relate(customerID, forward) QueryName()",
        'SELECT DISTINCT companyName FROM categories JOIN products USING (categoryID) JOIN "order-details" d USING (productID)'
        " JOIN orders USING (orderID) JOIN customers USING (customerID) WHERE categoryName = ? AND d.discount > 0.2",
    ),
)  # fmt: skip


@pytest.mark.data
def test_questions_of_several_hops_have_the_answers_of_sql(graph: Graph, tables: northwind.Tables) -> None:
    import duckdb

    database = duckdb.connect()
    database.execute(northwind.schema(tables).replace("text", "varchar"))
    for line in northwind.schema(tables).splitlines():
        name = line.split('"')[1]
        header, rows = tables[name]
        database.executemany(
            f'INSERT INTO "{name}" VALUES ({", ".join("?" * len(header))})', northwind.managers_first(name, header, rows)
        )
    asked = answered = 0
    for words, program, sql in QUESTIONS:
        for word in words:
            expected = sorted(str(row[0]) for row in database.execute(sql, [word]).fetchall())
            found = sorted(set(graph.kopl(program.format(word)).texts))
            assert found == expected, (program.format(word), sql)
            asked += 1
            answered += bool(expected) and expected != ["0"]
    assert asked >= 50
    assert answered >= 45
