"""Realistic tables that refer to each other, with mixed case, money, percent and missing cells; and questions with
their answers.

The answers were worked out by hand from the tables below.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import condgraph
from condgraph.engine.facts import Entity, Ref, Statement
from condgraph.engine.values import Quantity
from condgraph.graph import Graph

CUSTOMERS = """\
id,name,city,since,budget,discount
1,Ann,Oslo,2019-03-01,$1.2M,10%
2,Bob,OSLO,2020-07-15,$900k,12.5%
3,Cid,Rome,2018-01-31,$2M,
4,Dóra,Oslo,n/a,$3.5M,50%
5,Ann,rome,2021-11-02,-,5%
"""
ORDERS = """\
number,customer,item,amount,paid
10,1,Tea,5,"1,000"
11,4,tea,10,"2,500"
12,3,Coffee,7,25000000
13,1,Tea,3,
14,4,Milk,2,950
15,2,Coffee,1,30000000
"""
ITEMS = "item,vendor\nTea,Ann\nCoffee,Cid\nMilk,Ann\n"
#: Pairs of person and thing; X several times, and Y and y, which differ only in case.
LIKES = (("Ann", "X"), ("Bob", "X"), ("Cid", "Y"), ("Dora", "y"), ("Eve", "X"))
#: As many values without a unit as with one: then those without compete.
FEES = (Statement("Ann", "fee", Quantity(9)), Statement("Bob", "fee", Quantity(7, "$")))
RATED = (("Ann", "5"), ("Bob", "5"), ("Cid", "2"), ("Eve", "4"))


def plain(folder: Path) -> Graph:
    """Return three tables with no references, only equal values in their columns."""
    graph = condgraph.open()
    for name, text in (("customers", CUSTOMERS), ("orders", ORDERS), ("items", ITEMS)):
        (folder / f"{name}.csv").write_text(text, "utf-8")
        graph.load(folder / f"{name}.csv")
    return graph


def keyed(folder: Path) -> Graph:
    """Return the same tables with keys, where orders refer to customers."""
    graph = condgraph.open()
    for name, text in (("customers", CUSTOMERS), ("orders", ORDERS), ("items", ITEMS)):
        (folder / f"{name}.csv").write_text(text, "utf-8")
    graph.load(folder / "customers.csv", key="id")
    graph.load(folder / "orders.csv", refs=["customer"])
    graph.load(folder / "items.csv", key="item")
    return graph


def folder_of(folder: Path) -> Graph:
    """Return a folder with keys: rows of orders refer to rows of customers."""
    shop = folder / "shop"
    shop.mkdir(exist_ok=True)
    (shop / "customers.csv").write_text(CUSTOMERS.replace("id,", "customerID,", 1), "utf-8")
    (shop / "orders.csv").write_text(ORDERS.replace("number,customer,", "orderID,customerID,", 1), "utf-8")
    graph = condgraph.open()
    graph.load(shop)
    return graph


def likes() -> Graph:
    """Return a graph whose relations lead to entities."""
    graph = condgraph.open()
    things = [Entity("x", "X"), Entity("Y1", "Y"), Entity("Y2", "y"), *(Entity(f"r{n}", n) for n in "245")]
    ids = {"X": "x", "Y": "Y1", "y": "Y2"}
    liked = [Statement(person, "likes", Ref(ids[thing])) for person, thing in LIKES]
    graph.add([*things, *liked, *(Statement(person, "rated", Ref(f"r{n}")) for person, n in RATED), *FEES], source="s")
    return graph


def get(relation: str, rest: str = "", source: str = "") -> str:
    """Return a get_information query; `rest` is a condition with its operator, or another parameter."""
    tail = f", tail_entity{rest}" if rest[:1] in "=<>!" and rest else f", {rest}" if rest else ""
    scope = f", source='{source}'" if source else ""
    return f"get_information(relation='{relation}'{tail}{scope})"


def of(query: int, relation: str, source: str = "") -> str:
    """Return a query for a relation of an earlier query's output."""
    return get(relation, f"head_entity='output_of_query{query}'", source)


def count(query: int) -> str:
    """Return a query that counts an earlier query's output."""
    return f"count(set='output_of_query{query}')"


def _joined(customers: str, orders: str, refer: str, total: str = "amount") -> list[tuple[list[str], list[str]]]:
    """Return questions about the orders of customers in a city, in both directions, for tables with these names."""
    oslo, orders_of = get("city", "='Oslo'", customers), get(refer, "='output_of_query1'", orders)
    large = get("amount", ">='7'", orders)
    return [
        ([oslo, orders_of, of(2, total), "sum(set='output_of_query3')"], ["20"]),
        ([oslo, orders_of, count(2)], ["4"]),
        ([oslo, get(refer, "!='output_of_query1'", orders), count(2)], ["2"]),
        ([oslo, of(1, total, orders), "sum(set='output_of_query2')"], ["20"]),
        ([large, of(1, "name", customers)], ["Cid", "Dóra"]),
        # Of the four, one has no budget.
        (
            [get("since", ">='2018'", customers), "bottom(set='output_of_query1', n='9', key='budget')"],
            ["2020-07-15 | $900k", "2019-03-01 | $1.2M", "2018-01-31 | $2M"],
        ),
        ([get("city", "='Bergen'", customers)], []),
    ]


#: Questions with their answers, by graph.
ASKED: dict[str, list[tuple[list[str], list[str]]]] = {
    "plain": [
        *_joined("customers", "orders", "customer")[:-1],
        ([get("item", "='Tea'", "orders"), count(1)], ["2"]),
        ([get("item", "!='Tea'", "orders"), count(1)], ["4"]),
        ([get("item", "='TEA'", "orders"), count(1)], ["3"]),
        ([get("city", "='Oslo'"), count(1)], ["2"]),
        ([get("city", "='oslo'"), count(1)], ["3"]),
        ([get("city", "!='Rome'"), count(1)], ["4"]),
        ([get("name", "='Dora'"), of(1, "city")], ["Oslo"]),
        ([get("paid", ">'2e7'"), count(1)], ["2"]),
        ([get("paid", ">'2.5E7'"), count(1)], ["1"]),
        ([get("paid", ">='25M'"), count(1)], ["2"]),
        ([get("paid", "<'1k'"), count(1)], ["1"]),
        ([get("paid", "='2,500'"), count(1)], ["1"]),
        ([get("paid", "<'(5)'"), count(1)], ["0"]),
        ([get("budget", ">='$2M'"), of(1, "name")], ["Cid", "Dóra"]),
        ([get("budget", "='$1,200,000'"), of(1, "name")], ["Ann"]),
        ([get("budget", "<'USD 1m'"), of(1, "name")], ["Bob"]),
        ([get("budget"), "sum(set='output_of_query1')"], ["7600000 $"]),
        ([get("budget"), "median(set='output_of_query1')"], ["1600000 $"]),
        ([get("amount"), "median(set='output_of_query1')"], ["4"]),
        ([get("paid"), "median(set='output_of_query1')"], ["2500"]),
        ([get("discount"), "get_median('output_of_query1')"], ["11.25 %"]),
        # Texts count as the numbers that they begin with; names count as nothing.
        ([get("since"), "median(set='output_of_query1')"], ["2019.5"]),
        ([get("city"), "median(set='output_of_query1')"], []),
        ([get("paid", ">'9e9'"), of(1, "amount"), "median(set='output_of_query2')"], []),
        (["median(set=['3', '10', '7', '4'])"], ["5.5"]),
        ([get("amount"), "median(set1='output_of_query1', set2='9007199254740993')"], ["5"]),
        (
            [get("amount", "='10'"), of(1, "amount"), "median(set1='output_of_query2', set2='9007199254740993')"],
            ["4503599627370501.5"],
        ),
        ([get("amount"), "stdev(set='output_of_query1')"], ["3.3862466931200785"]),
        ([get("discount"), "stddev_samp('output_of_query1')"], ["20.65338955232288 %"]),
        ([get("city"), "stdev(set='output_of_query1')"], []),
        (["stdev(set=['7'])"], []),
        (["stdev(set=['3', '10', '7', '4'])"], ["3.1622776601683795"]),
        ([get("amount"), "stdev(set='output_of_query1')", get("amount", ">'output_of_query2'"), count(3)], ["3"]),
        # If the program goes on with the median, the client finishes it.
        ([get("amount"), "median(set='output_of_query1')", get("amount", ">'output_of_query2'"), count(3)], ["3"]),
        ([get("amount"), "median(set='output_of_query1')", "difference(a='output_of_query2', b='10')"], ["6"]),
        ([get("amount"), "median(set='output_of_query1')", "if(output_of_query2 > 3, 'many', 'few')"], ["many"]),
        ([get("discount", ">='12.5 percent'"), of(1, "name")], ["Bob", "Dóra"]),
        ([get("discount", "='n/a'"), of(1, "name")], ["Cid"]),
        ([get("paid", ">'9e9'"), of(1, "amount"), "sum(set='output_of_query2')"], ["0"]),
        ([get("paid", ">'9e9'"), count(1), "difference(a='output_of_query2', b='3')"], ["3"]),
        ([get("customer", source="orders"), "most(set='output_of_query1')"], ["1", "4"]),
        ([get("vendor"), "most(set='output_of_query1')"], ["Ann"]),
        # A list without items is the empty set.
        (["[]"], []),
        (["set_union(a=[], b=['Tea', 'Milk'])"], ["Milk", "Tea"]),
        ([get("item", "='Tea'", "orders"), "set_intersection('output_of_query1', [])"], []),
        ([get("item", "='Tea'", "orders"), "set_difference('output_of_query1', [])", count(2)], ["2"]),
        (["max(set=[])"], []),
        # A list with another operand is a set; a single list holds the sets.
        (["set_intersection(['a', 'b'], ['b', 'c'])"], ["b"]),
        (["set_intersection([['a', 'b'], ['b', 'c']])"], ["b"]),
        (["set_intersection(['a', 'b'])"], []),
        (["set_difference([], ['a'])"], []),
        (["set_difference(['a', 'b'], ['b', 'c'])"], ["a"]),
        (["sum([[], []])"], ["0"]),
        (["count([])"], ["0"]),
        (["[] == []"], ["no"]),
    ],
    "keyed": [
        *_joined("customers", "orders", "customer")[:-1],
        ([get("city", "='Rome'"), get("customer", "='output_of_query1'"), of(2, "amount")], ["7"]),
        ([get("amount", "='10'"), of(1, "customer", "orders"), of(2, "city", "customers")], ["Oslo"]),
    ],
    "folder": [
        *_joined("shop/customers", "shop/orders", "customerID")[:-1],
        ([get("amount", "='10'"), of(1, "customerID", "shop/orders"), of(2, "city", "shop/customers")], ["Oslo"]),
    ],
    "likes": [
        ([get("fee"), "max(set='output_of_query1')"], ["9"]),
        ([get("fee"), "min(set='output_of_query1')"], ["9"]),
        ([get("fee"), "median(set='output_of_query1')"], ["9"]),
        ([get("likes"), "most(set='output_of_query1')"], ["X"]),
        ([get("likes"), "least(set='output_of_query1')"], ["Y", "y"]),
        ([get("likes"), "mode(set='output_of_query1')"], ["X"]),
        ([get("likes"), "keep(set='output_of_query1', value!='X')", "most(set='output_of_query2')"], ["Y", "y"]),
        ([get("likes", "='most'")], ["Ann", "Bob", "Eve"]),
        ([get("rated"), "mean(set='output_of_query1')"], ["4"]),
        ([get("rated"), "sum(set='output_of_query1')"], ["16"]),
        ([get("rated"), count(1)], ["3"]),
        ([get("rated"), "most(set='output_of_query1')", get("rated", "='output_of_query2'")], ["Ann", "Bob"]),
        ([get("rated"), "argmax(set='output_of_query1')"], ["Ann", "Bob"]),
        ([get("rated", "='5'"), of(1, "likes"), "most(set='output_of_query2')"], ["X"]),
        ([get("likes", "='Y'")], ["Cid"]),
        ([get("likes", "!='Y'"), count(1)], ["4"]),
        ([get("likes", "='x'"), count(1)], ["3"]),
    ],
}
GRAPHS: dict[str, Any] = {"plain": plain, "keyed": keyed, "folder": folder_of, "likes": lambda folder: likes()}


def program(queries: list[str]) -> str:
    """Number queries as the lines of a program."""
    return "\n".join(f'Query{number}: "{query}"' for number, query in enumerate(queries, 1))
