# ruff: noqa: E501
"""Questions over Northwind as SQL and as table clauses, and the tables in DuckDB.

Each is (SQL, concept of the rows, table clause). If the clause has an order, the order of the rows is compared as well,
so the SQL must order ties.
"""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Any, Final

from condgraph.engine.facts import Entity
from condgraph.engine.values import Quantity, Time
from condgraph.graph import Graph

KEYS: Final = {"orders.shipVia": "shippers.shipperID", "employees.reportsTo": "employees.employeeID"}
#: The columns that are not texts.
TYPES: Final = {
    **dict.fromkeys(("unitPrice", "freight", "discount"), "DECIMAL(18, 6)"),
    **dict.fromkeys(("quantity", "unitsInStock", "unitsOnOrder", "reorderLevel", "discontinued"), "INTEGER"),
    **dict.fromkeys(("orderDate", "requiredDate", "shippedDate", "birthDate", "hireDate"), "TIMESTAMP"),
}
_LINES = '"order-details" d JOIN orders o USING (orderID) JOIN products p USING (productID)'
_REVENUE = "sum(d.unitPrice * d.quantity * (1 - d.discount))"
_OURS = "sum(unitPrice * quantity * (1 - discount))"

QUESTIONS: Final[list[tuple[str, str, str]]] = [
    # Counts, and sums of everything.
    ("SELECT count(*) FROM orders", "orders", "show count()"),
    ("SELECT count(*), sum(freight), avg(freight), min(freight), max(freight), median(freight) FROM orders", "orders",
     "show count(), sum(freight), avg(freight), min(freight), max(freight), median(freight)"),
    ("SELECT count(DISTINCT customerID) FROM orders", "orders", "show count(distinct customerID)"),
    ("SELECT count(DISTINCT country), count(country), count(region) FROM customers", "customers",
     "show count(distinct country), count(country), count(region)"),
    ("SELECT count(*) FROM orders WHERE shippedDate IS NULL", "orders", "where shippedDate is null show count()"),
    ("SELECT count(*) FROM products WHERE unitPrice > 1000", "products", "where unitPrice > 1000 show count()"),
    ("SELECT coalesce(sum(unitPrice), 0), avg(unitPrice), max(unitPrice) FROM products WHERE unitPrice > 1000", "products",
     "where unitPrice > 1000 show sum(unitPrice), mean(unitPrice), max(unitPrice)"),
    # One key.
    ("SELECT country, count(*) FROM customers GROUP BY country", "customers", "group by country show count()"),
    ("SELECT region, count(*) FROM customers GROUP BY region", "customers", "group by region show count()"),
    ("SELECT city, count(*) FROM customers GROUP BY city HAVING count(*) > 1", "customers", "group by city show count() having count() > 1"),
    ("SELECT contactTitle, count(*) n FROM customers GROUP BY 1 ORDER BY n DESC, 1 LIMIT 3", "customers",
     "group by contactTitle show count() as n order by n desc, contactTitle limit 3"),
    ("SELECT discontinued, count(*), sum(unitsInStock) FROM products GROUP BY 1", "products",
     "group by discontinued show count(), sum(unitsInStock)"),
    ("SELECT shipCountry, avg(freight) FROM orders GROUP BY 1 HAVING avg(freight) > 100", "orders",
     "group by shipCountry show avg(freight) having avg(freight) > 100"),
    ("SELECT shipCountry, median(freight), min(freight), max(freight) FROM orders GROUP BY 1", "orders",
     "group by shipCountry show median(freight), min(freight), max(freight)"),
    ("SELECT shipCountry, stddev_samp(freight) FROM orders GROUP BY 1", "orders",
     "group by shipCountry show stdev(freight)"),
    ("SELECT shipCity, stddev(freight) FROM orders GROUP BY 1 HAVING stddev(freight) > 100", "orders",
     "group by shipCity show stddev(freight) having stddev(freight) > 100"),
    ("SELECT stddev_samp(n) FROM (SELECT count(orderID) n FROM customers LEFT JOIN orders USING (customerID) GROUP BY customerID)",
     "customers", "show stdev(count(^customerID))"),
    ("SELECT shipCountry, min(orderDate), max(orderDate) FROM orders GROUP BY 1", "orders",
     "group by shipCountry show min(orderDate), max(orderDate)"),
    ("SELECT country, count(*) FROM suppliers GROUP BY country HAVING count(*) >= 2 ORDER BY count(*) DESC, country", "suppliers",
     "group by country show count() having count() >= 2 order by count() desc, country"),
    ("SELECT shipRegion, count(*) FROM orders WHERE shipRegion IS NOT NULL GROUP BY 1", "orders",
     "where shipRegion is not null group by shipRegion show count()"),
    # Several keys.
    ("SELECT country, city, count(*) FROM customers GROUP BY 1, 2", "customers", "group by country, city show count()"),
    ("SELECT country, region, count(*) FROM customers GROUP BY 1, 2", "customers", "group by country, region show count()"),
    ("SELECT shipCountry, companyName, sum(freight) FROM orders JOIN shippers ON shipVia = shipperID GROUP BY 1, 2", "orders",
     "group by shipCountry, shipVia show sum(freight)"),
    ("SELECT title, country, count(*) FROM employees GROUP BY ALL", "employees", "group by title, country show count()"),
    # Dates.
    ("SELECT year(orderDate), count(*) FROM orders GROUP BY 1", "orders", "group by year(orderDate) show count()"),
    ("SELECT year(orderDate) y, month(orderDate) m, sum(freight) FROM orders GROUP BY 1, 2 ORDER BY y, m", "orders",
     "group by year(orderDate) as y, month(orderDate) as m show sum(freight) order by y, m"),
    ("SELECT day(orderDate), count(*) FROM orders GROUP BY 1 HAVING count(*) < 25", "orders",
     "group by day(orderDate) show count() having count() < 25"),
    ("SELECT count(*) FROM orders WHERE orderDate >= '1997-01-01' AND orderDate < '1998-01-01'", "orders",
     "where orderDate >= 1997-01-01 and orderDate < 1998-01-01 show count()"),
    ("SELECT count(*) FROM orders WHERE year(orderDate) = 1997", "orders", "where orderDate = 1997 show count()"),
    ("SELECT month(birthDate), count(*) FROM employees GROUP BY 1", "employees", "group by month(birthDate) show count()"),
    ("SELECT year(hireDate), list(lastName ORDER BY lastName) FROM employees GROUP BY 1", "employees",
     "group by year(hireDate) show values(lastName)"),
    # Joins.
    ("SELECT c.country, count(*) FROM orders o JOIN customers c USING (customerID) GROUP BY 1", "orders",
     "group by customerID.country show count()"),
    ("SELECT c.country, sum(freight) t FROM orders o JOIN customers c USING (customerID) GROUP BY 1 HAVING sum(freight) > 2000 "
     "ORDER BY t DESC LIMIT 5", "orders",
     "group by customerID.country show sum(freight) as t having t > 2000 order by t desc limit 5"),
    ("SELECT e.lastName, count(*) FROM orders o JOIN employees e USING (employeeID) GROUP BY 1", "orders",
     "group by employeeID.lastName show count()"),
    ("SELECT s.companyName, count(*), avg(freight) FROM orders JOIN shippers s ON shipVia = shipperID GROUP BY 1", "orders",
     "group by shipVia.companyName show count(), avg(freight)"),
    ("SELECT g.categoryName, count(*), avg(unitPrice) FROM products JOIN categories g USING (categoryID) GROUP BY 1", "products",
     "group by categoryID.categoryName show count(), avg(unitPrice)"),
    ("SELECT s.country, count(*) FROM products JOIN suppliers s USING (supplierID) GROUP BY 1 ORDER BY 2 DESC, 1", "products",
     "group by supplierID.country show count() order by count() desc, supplierID.country"),
    ("SELECT s.country, g.categoryName, max(unitPrice) FROM products JOIN suppliers s USING (supplierID) "
     "JOIN categories g USING (categoryID) GROUP BY 1, 2", "products",
     "group by supplierID.country, categoryID.categoryName show max(unitPrice)"),
    ("SELECT m.lastName, count(*) FROM employees e LEFT JOIN employees m ON e.reportsTo = m.employeeID GROUP BY 1", "employees",
     "group by reportsTo.lastName show count()"),
    ("SELECT r.regionDescription, count(*) FROM territories JOIN regions r USING (regionID) GROUP BY 1", "territories",
     "group by regionID.regionDescription show count()"),
    ("SELECT c.companyName, count(o.orderID) n FROM customers c LEFT JOIN orders o USING (customerID) GROUP BY 1 ORDER BY n, 1 LIMIT 6",
     "customers", "show companyName, count(^customerID) as n order by n, companyName limit 6"),
    ("SELECT c.companyName FROM customers c LEFT JOIN orders o USING (customerID) GROUP BY 1 HAVING count(o.orderID) = 0", "customers",
     "where ^customerID is missing show companyName"),
    ("SELECT c.country, count(o.orderID) FROM customers c LEFT JOIN orders o USING (customerID) GROUP BY 1", "customers",
     "group by country show count(^customerID)"),
    ("SELECT c.country, coalesce(sum(o.freight), 0) FROM customers c LEFT JOIN orders o USING (customerID) GROUP BY 1", "customers",
     "group by country show sum(^customerID.freight)"),
    ("SELECT p.productName, sum(d.quantity) q FROM products p JOIN \"order-details\" d USING (productID) GROUP BY 1 ORDER BY q DESC LIMIT 5",
     "products", "show productName, sum(^productID.quantity) as q order by q desc limit 5"),
    ("SELECT g.categoryName, sum(d.quantity) FROM categories g JOIN products USING (categoryID) JOIN \"order-details\" d USING (productID) "
     "GROUP BY 1", "categories", "show categoryName, sum(^categoryID.^productID.quantity)"),
    ("SELECT count(DISTINCT t.regionID) n, e.lastName FROM employees e JOIN \"employee-territories\" x USING (employeeID) "
     "JOIN territories t USING (territoryID) GROUP BY 2", "employees",
     "show count(distinct \"employee-territories\".regionID) as n, lastName"),
    # Calculated.
    (f"SELECT {_REVENUE} FROM {_LINES}", "order-details", f"show {_OURS}"),
    (f"SELECT p.productName, {_REVENUE} r FROM {_LINES} GROUP BY 1 ORDER BY r DESC LIMIT 10", "order-details",
     f"group by productID.productName show {_OURS} as r order by r desc limit 10"),
    (f"SELECT g.categoryName, {_REVENUE} r FROM {_LINES} JOIN categories g USING (categoryID) GROUP BY 1 ORDER BY r DESC", "order-details",
     f"group by productID.categoryID.categoryName show {_OURS} as r order by r desc"),
    (f"SELECT c.country, year(o.orderDate), {_REVENUE} FROM {_LINES} JOIN customers c USING (customerID) GROUP BY 1, 2", "order-details",
     f"group by orderID.customerID.country, year(orderID.orderDate) show {_OURS}"),
    (f"SELECT e.lastName, {_REVENUE} r FROM {_LINES} JOIN employees e USING (employeeID) GROUP BY 1 HAVING {_REVENUE} > 100000 ORDER BY r",
     "order-details", f"group by orderID.employeeID.lastName show {_OURS} as r having r > 100000 order by r"),
    ("SELECT CAST(o.orderID AS INTEGER), sum(d.unitPrice * d.quantity) v FROM orders o JOIN \"order-details\" d USING (orderID) GROUP BY 1 "
     "ORDER BY v DESC LIMIT 4", "orders", "show orderID, sum(^orderID.unitPrice * ^orderID.quantity) as v order by v desc limit 4"),
    ("SELECT productName, unitPrice * unitsInStock v FROM products ORDER BY v DESC, productName LIMIT 8", "products",
     "show productName, unitPrice * unitsInStock as v order by v desc, productName limit 8"),
    ("SELECT count(*) FROM products WHERE unitPrice * unitsInStock > 1000", "products", "where unitPrice * unitsInStock > 1000 show count()"),
    ("SELECT sum((unitsInStock + unitsOnOrder - reorderLevel) / 2) FROM products", "products",
     "show sum((unitsInStock + unitsOnOrder - reorderLevel) / 2)"),
    ("SELECT count(*) FROM \"order-details\" WHERE discount > 0 AND quantity >= 100", "order-details",
     "where discount > 0 and quantity >= 100 show count()"),
    ("SELECT d.discount > 0, count(*) FROM \"order-details\" d WHERE discount > 0 GROUP BY 1", "order-details",
     "where discount > 0 show distinct(discount) as ignored, count()"),
    # Rows in order, pages, ties.
    ("SELECT productName, unitPrice FROM products ORDER BY unitPrice DESC, productName LIMIT 10", "products",
     "show productName, unitPrice order by unitPrice desc, productName limit 10"),
    ("SELECT productName, unitPrice FROM products ORDER BY unitPrice, productName LIMIT 5 OFFSET 10", "products",
     "show productName, unitPrice order by unitPrice, productName limit 5 offset 10"),
    ("SELECT companyName, region FROM customers ORDER BY region NULLS LAST, companyName LIMIT 40", "customers",
     "show companyName, region order by region, companyName limit 40"),
    ("SELECT companyName, region FROM customers ORDER BY region DESC NULLS LAST, companyName LIMIT 40", "customers",
     "show companyName, region order by region desc, companyName limit 40"),
    ("SELECT country, count(*) n FROM customers GROUP BY 1 ORDER BY n DESC, 1 DESC", "customers",
     "group by country show count() as n order by n desc, country desc"),
    ("SELECT lastName, birthDate FROM employees ORDER BY birthDate LIMIT 3", "employees", "show lastName, birthDate order by birthDate limit 3"),
    ("SELECT country, n FROM (SELECT country, count(*) n, rank() OVER (ORDER BY count(*) DESC) r FROM customers GROUP BY 1) WHERE r <= 4 "
     "ORDER BY n DESC, country", "customers", "group by country show count() as n order by n desc limit 4 with ties"),
    ("SELECT DISTINCT country FROM customers ORDER BY country DESC LIMIT 5", "customers",
     "group by country show country order by country desc limit 5"),
    # The top of each group.
    ("SELECT g.categoryName, list(productName ORDER BY unitPrice DESC, productName)[1:2] FROM products "
     "JOIN categories g USING (categoryID) GROUP BY 1", "products", "group by categoryID.categoryName show top(2, unitPrice)"),
    ("SELECT s.country, list(productName ORDER BY unitPrice, productName)[1:1] FROM products JOIN suppliers s USING (supplierID) GROUP BY 1",
     "products", "group by supplierID.country show bottom(1, unitPrice)"),
    ("SELECT title, list(lastName ORDER BY birthDate DESC, lastName)[1:1] FROM employees GROUP BY 1", "employees",
     "group by title show max(birthDate) as b, values(lastName) as names having b > 1900"),
    # Tests of every kind.
    ("SELECT count(*) FROM customers WHERE country IN ('Germany', 'France', 'Spain')", "customers",
     "where country in ('Germany', 'France', 'Spain') show count()"),
    ("SELECT count(*) FROM customers WHERE country NOT IN ('USA', 'UK')", "customers", "where country not in ('USA', 'UK') show count()"),
    ("SELECT count(*) FROM orders WHERE (shipCountry = 'Germany' OR shipCountry = 'France') AND NOT freight < 100", "orders",
     "where (shipCountry = 'Germany' or shipCountry = 'France') and not freight < 100 show count()"),
    ("SELECT country, count(*) FROM customers GROUP BY 1 HAVING count(*) > 5 AND country < 'M'", "customers",
     "group by country show count() having count() > 5 and country < 'M'"),
    ("SELECT country FROM customers GROUP BY 1 HAVING count(*) > 8 ORDER BY count(*) DESC, country", "customers",
     "group by country show country having count() > 8 order by count() desc, country"),
    ("SELECT shipCountry, count(*) FROM orders WHERE freight > 200 GROUP BY 1 HAVING max(freight) > 500", "orders",
     "where freight > 200 group by shipCountry show count() having max(freight) > 500"),
    ("SELECT count(*) FROM orders WHERE shippedDate > requiredDate AND shippedDate IS NOT NULL", "orders", ""),
    # Keys of what is referred to.
    ("SELECT count(*), sum(freight) FROM orders WHERE customerID = 'ALFKI'", "orders", "where customerID = 'ALFKI' show count(), sum(freight)"),
    ("SELECT count(*) FROM orders WHERE customerID IN ('ALFKI', 'ANATR') AND employeeID <> 1", "orders",
     "where customerID in ('ALFKI', 'ANATR') and employeeID != 1 show count()"),
    (f"SELECT o.shipCountry, {_REVENUE} FROM {_LINES} WHERE d.productID = 11 AND o.employeeID = 4 GROUP BY 1", "order-details",
     f"where productID = 11 and orderID.employeeID = 4 group by orderID.shipCountry show {_OURS}"),
    # Parts of texts.
    ("SELECT quantityPerUnit, count(*) FROM products WHERE quantityPerUnit LIKE '%bottles%' OR quantityPerUnit LIKE '10 %' GROUP BY 1", "products",
     "where quantityPerUnit contains 'bottles' or quantityPerUnit starts with '10 ' group by quantityPerUnit"),
    ("SELECT companyName FROM customers WHERE companyName LIKE '%e' AND companyName NOT LIKE '% %'", "customers",
     "where companyName ends with 'e' and companyName not contains ' ' show companyName"),
    ("SELECT c.country, count(*) FROM orders JOIN customers c USING (customerID) WHERE c.contactTitle LIKE 'Sales%' GROUP BY 1", "orders",
     "where customerID.contactTitle starts with 'Sales' group by customerID.country"),
    # Sums of what each row has, summed up again, tested, and grouped by.
    ("SELECT count(*) FROM (SELECT customerID FROM orders GROUP BY 1 HAVING count(*) > 10)", "customers",
     "where count(^customerID) > 10 show count()"),
    ("SELECT avg(n), median(n), max(n) FROM (SELECT count(orderID) n FROM customers LEFT JOIN orders USING (customerID) GROUP BY customerID)",
     "customers", "show mean(count(^customerID)), median(count(^customerID)), max(count(^customerID))"),
    ("SELECT n, count(*) FROM (SELECT count(orderID) n FROM customers LEFT JOIN orders USING (customerID) GROUP BY customerID) GROUP BY 1",
     "customers", "group by count(^customerID) show count()"),
    ("SELECT c.country, max(n), avg(n) FROM customers c JOIN (SELECT customerID, count(orderID) n FROM customers LEFT JOIN orders USING "
     "(customerID) GROUP BY 1) USING (customerID) GROUP BY 1", "customers",
     "group by country show max(count(^customerID)), mean(count(^customerID))"),
    ("SELECT max(q), avg(q) FROM (SELECT sum(quantity) q FROM \"order-details\" GROUP BY orderID)", "orders",
     "show max(sum(^orderID.quantity)), mean(sum(^orderID.quantity))"),
    ("SELECT count(*) FROM (SELECT max(freight) - min(freight) d FROM orders GROUP BY customerID) WHERE d > 300", "customers",
     "where max(^customerID.freight) - min(^customerID.freight) > 300 show count()"),
    ("SELECT count(*) FROM (SELECT supplierID FROM products GROUP BY 1 HAVING count(DISTINCT categoryID) = 2 AND avg(unitPrice) < 20)", "suppliers",
     "where count(distinct ^supplierID.categoryID) = 2 and mean(^supplierID.unitPrice) < 20 show count()"),
    ("SELECT avg(v) FROM (SELECT sum(d.unitPrice * d.quantity * (1 - d.discount)) v FROM \"order-details\" d GROUP BY orderID)", "orders",
     "show mean(sum(^orderID.unitPrice * ^orderID.quantity * (1 - ^orderID.discount)))"),
    ("SELECT list(companyName ORDER BY n DESC, companyName)[1:3] FROM (SELECT companyName, count(orderID) n FROM customers JOIN orders USING "
     "(customerID) GROUP BY 1)", "customers", "show top(3, count(^customerID))"),
]  # fmt: skip
#: Questions without a clause are left out, and two kinds of clauses that have no comparable SQL.
QUESTIONS[:] = [
    question
    for question in QUESTIONS
    if question[2] and "ignored" not in question[2] and "values(lastName) as names" not in question[2]
]


def northwind(folder: Path) -> Graph:
    """Return Northwind as a graph: its keys are found by their names, except for two."""
    import condgraph

    graph = condgraph.open()
    graph.load(folder, keys=KEYS)
    return graph


def tables(folder: Path) -> Any:
    """Return Northwind in DuckDB, with types given by hand."""
    import duckdb

    connection = duckdb.connect()
    for path in sorted(folder.glob("*.csv")):
        with path.open(encoding="utf-8", newline="") as stream:
            header, *rows = csv.reader(stream)
        # Unquoted commas: each is followed by a space.
        repaired = [next(csv.reader([",".join(row).replace(", ", "\x00")])) if len(row) != len(header) else row for row in rows]
        columns = ", ".join(f'"{name}" {TYPES.get(name, "VARCHAR")}' for name in header)
        connection.execute(f'CREATE TABLE "{path.stem}" ({columns})')
        literals = ", ".join(
            "("
            + ", ".join("NULL" if cell == "NULL" else "'" + cell.replace("\x00", ", ").replace("'", "''") + "'" for cell in row)
            + ")"
            for row in repaired
        )
        connection.execute(f'INSERT INTO "{path.stem}" VALUES {literals}')
    return connection


def plain(value: Any) -> Any:
    """Return a cell of an answer in the form of SQL."""
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    if isinstance(value, Quantity):
        return float(value.number)
    if isinstance(value, Entity):
        return value.name
    return str(value) if isinstance(value, Time) else value


def of_sql(value: Any) -> Any:
    """Return a cell of SQL in the form of an answer."""
    import datetime
    from decimal import Decimal

    if isinstance(value, list):
        items = [of_sql(item) for item in value]
        return items[0] if len(items) == 1 else items
    if isinstance(value, datetime.datetime):
        return value.date().isoformat() if value.time() == datetime.time() else value.isoformat()
    if isinstance(value, datetime.date):
        return value.isoformat()
    return float(value) if isinstance(value, Decimal) else value


def same(ours: list[tuple[Any, ...]], theirs: list[tuple[Any, ...]], *, ordered: bool) -> bool:
    """Return whether two tables have the same rows, with numbers equal to a relative 1e-9."""
    if len(ours) != len(theirs):
        return False
    our_rows = [tuple(map(plain, row)) for row in ours]
    their_rows = [tuple(map(of_sql, row)) for row in theirs]
    if not ordered:
        our_rows, their_rows = sorted(our_rows, key=_sortable), sorted(their_rows, key=_sortable)
    return all(len(a) == len(b) and all(map(_alike, a, b)) for a, b in zip(our_rows, their_rows, strict=True))


def _sortable(row: tuple[Any, ...]) -> list[tuple[str, Any]]:
    return [("0", round(cell, 6)) if isinstance(cell, int | float) else ("1", str(cell)) for cell in row]


def _alike(a: Any, b: Any) -> bool:
    if isinstance(a, int | float) and isinstance(b, int | float):
        return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)
    return bool(a == b)
