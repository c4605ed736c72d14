# ruff: noqa: E501
"""A shop with awkward keys: letters, numbers, a leading zero, a slash, a quote, spaces and other scripts; customers
named like the keys of others; references by columns of other names. The questions test keys, as SQL and as table
clauses.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import condgraph
from condgraph.graph import Graph

FILES: Final = {
    "customers": "customerID,name,city\nALFKI,Alfred,Berlin\nANATR,Ana,Mexico\n7,Seven,Rome\n007,Bond,London\n"
    "AC/DC,Young,Sydney\nDC,Direct,Oslo\nO'Neil,Shaq,Oslo\nÅSA  1,Åsa,Luleå\n",
    "orders": "orderID,customerID,handler,amount\n10,ALFKI,2,120\n11,ALFKI,1,80\n12,ANATR,1,200\n13,7,3,5\n14,007,3,6\n15,AC/DC,,7\n"
    "16,DC,1,8\n17,O'Neil,2,9\n18,ÅSA 1,2,10\n",
    "lines": "orderID,lineNo,item\n10,1,tea\n10,2,jam\n12,1,tea\n13,1,bread\n",
    # The third one's name is the key of the second.
    "employees": "employeeID,name,boss\n1,Bo,\n2,Kim,1\n3,2,1\n",
}
JOIN: Final = {"orders.handler": "employees.employeeID", "employees.boss": "employees.employeeID"}
#: SQL, the concept of the rows, and the clause.
QUESTIONS: Final = [
    ("SELECT orderID FROM orders WHERE customerID = 'ALFKI'", "orders", "where customerID = 'ALFKI' show orderID"),
    ("SELECT orderID FROM orders WHERE customerID = '7'", "orders", "where customerID = 7 show orderID"),
    ("SELECT orderID FROM orders WHERE customerID = '007'", "orders", "where customerID = '007' show orderID"),
    ("SELECT orderID FROM orders WHERE customerID = 'AC/DC'", "orders", "where customerID = 'AC/DC' show orderID"),
    ("SELECT orderID FROM orders WHERE customerID = 'DC'", "orders", "where customerID = 'DC' show orderID"),
    ("SELECT orderID FROM orders WHERE customerID = 'O''Neil'", "orders", "where customerID = 'O''Neil' show orderID"),
    ("SELECT orderID FROM orders WHERE customerID = 'ÅSA 1'", "orders", "where customerID = 'ÅSA  1' show orderID"),
    ("SELECT orderID FROM orders WHERE customerID IN ('7', 'ANATR', 'nobody')", "orders",
     "where customerID in ('7', 'ANATR', 'nobody') show orderID"),
    ("SELECT orderID FROM orders WHERE customerID != 'ALFKI'", "orders", "where customerID != 'ALFKI' show orderID"),
    ("SELECT orderID FROM orders WHERE customerID NOT IN ('ALFKI', '7')", "orders", "where customerID not in ('ALFKI', '7') show orderID"),
    ("SELECT orderID FROM orders WHERE handler = 3", "orders", "where handler = 3 show orderID"),
    ("SELECT orderID FROM orders WHERE handler != 3", "orders", "where handler != 3 show orderID"),
    ("SELECT o.orderID FROM orders o JOIN employees e ON handler = employeeID WHERE boss = 1", "orders", "where handler.boss = 1 show orderID"),
    # A text that is a key and a name: Kim has the key 2, and another employee is named 2.
    ("SELECT orderID FROM orders JOIN employees ON handler = employeeID WHERE handler = 2 OR name = '2'", "orders",
     "where handler = '2' show orderID"),
    ("SELECT item FROM lines WHERE orderID = 10", "lines", "where orderID = 10 show item"),
    ("SELECT l.item FROM lines l JOIN orders USING (orderID) WHERE customerID = 'ANATR'", "lines", "where orderID.customerID = 'ANATR' show item"),
    ("SELECT DISTINCT c.name FROM customers c JOIN orders o USING (customerID) WHERE o.orderID IN (10, 13)", "customers",
     "where ^customerID in (10, 13) show name"),
    ("SELECT count(*) FROM orders WHERE customerID = 'ALFKI' GROUP BY customerID", "orders",
     "group by customerID as c show count() as n having c = 'ALFKI'"),
]  # fmt: skip

#: The condition in SQL, and in an LLM query for orders.
QUERIES: Final = [
    ("customerID = 'ALFKI'", "relation='customerID', tail_entity='ALFKI'"),
    ("customerID = 'ALFKI'", "relation='customerID', tail_entity='customers/ALFKI'"),
    ("customerID = '7'", "relation='customerID', tail_entity='7'"),
    ("customerID = '007'", "relation='customerID', tail_entity='007'"),
    ("customerID = 'AC/DC'", "relation='customerID', tail_entity='AC/DC'"),
    ("customerID = 'DC'", "relation='customerID', tail_entity='DC'"),
    ("customerID = 'ÅSA 1'", "relation='customerID', tail_entity='ÅSA  1'"),
    ("customerID != 'ALFKI'", "relation='customerID', tail_entity!='ALFKI'"),
    ("customerID IN ('7', 'ANATR')", "relation='customerID', tail_entity=['7', 'ANATR']"),
    ("handler = 3", "relation='handler', tail_entity='3'"),
    ("handler = 1 AND amount > 20", "relation='amount', tail_entity>'20', key='handler', value='1'"),
    # A text that is a key and a name: Kim has the key 2, and another employee is named 2.
    ("handler IN (2, 3)", "relation='handler', tail_entity='2'"),
]


def query(condition: str) -> str:
    """Return an LLM query for the numbers of the orders that meet a condition."""
    orders = "source='shop/orders'"
    lines = (
        f"get_information({condition}, {orders})",
        f"get_information(relation='orderID', head_entity='output_of_query1', {orders})",
    )
    return "\n".join(f'Query{at}: "{line}"' for at, line in enumerate(lines, 1))


def folder(path: Path) -> Path:
    """Write the shop as a folder of CSV files."""
    path.mkdir(exist_ok=True)
    for name, text in FILES.items():
        (path / f"{name}.csv").write_text(text, encoding="utf-8")
    return path


def shop(path: Path) -> Graph:
    """Return the shop in memory."""
    graph = condgraph.open("memory:")
    graph.load(folder(path), name="shop", join=JOIN)
    return graph


def tables(path: Path) -> Any:
    """Return the shop in DuckDB, with repeated white space collapsed as in graphs."""
    import duckdb

    connection = duckdb.connect()
    for name in FILES:
        connection.read_csv(
            str(path / f"{name}.csv"), dtype={"customerID": "VARCHAR"} if "customerID" in FILES[name] else None
        ).to_table(name)
    connection.execute("UPDATE customers SET customerID = regexp_replace(customerID, '\\s+', ' ', 'g')")
    return connection
