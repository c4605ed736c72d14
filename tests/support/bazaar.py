# ruff: noqa: E501
"""A small untidy data set, as a graph and as DuckDB tables: mixed units, missing cells, ties, negative and huge
numbers, dates of several precisions, several values of one attribute, two entities with one name.
"""

from __future__ import annotations

import random
from typing import Any, Final

import condgraph
from condgraph.engine.facts import Entity, EntityKind, Item, Member, Ref, Statement
from condgraph.engine.values import Quantity, Time, parse_number
from condgraph.graph import Graph

UNITS: Final = ("1", "€", "kg", "$")
#: SQL for a measure of the prices in each group's most frequent unit: {0} is the group, {1} the measure.
_OF_UNIT: Final = """
    WITH units AS (SELECT {0} g, unit, count(*) n FROM items i JOIN prices p ON p.item = i.id GROUP BY ALL),
    best AS (SELECT g, unit FROM (SELECT *, row_number() OVER (PARTITION BY g ORDER BY n DESC, unit <> '1', unit) r FROM units) WHERE r = 1)
    SELECT b.g, {1} FROM (SELECT {0} g, unit, number FROM items i JOIN prices p ON p.item = i.id) b JOIN best ON b.g IS NOT DISTINCT FROM best.g AND b.unit = best.unit GROUP BY b.g
"""

QUESTIONS: Final[list[tuple[str, str]]] = [
    ("SELECT shop, count(*) FROM items GROUP BY shop, shop_id", "group by shop show count()"),
    ("SELECT s.town, count(*) FROM items i LEFT JOIN shops s ON i.shop = s.name AND i.shop_id = s.id GROUP BY 1", "group by shop.town show count()"),
    ("SELECT colour, count(DISTINCT id) FROM items LEFT JOIN colours ON item = id GROUP BY 1",
     "group by colour show count()"),
    ("SELECT colour, shop, count(*) FROM items LEFT JOIN colours ON item = id GROUP BY ALL", "group by colour, name(shop) show count()"),
    ("SELECT count(colour), count(DISTINCT colour) FROM colours", "show count(colour), count(distinct colour)"),
    ("SELECT stock, count(*) FROM items GROUP BY 1 ORDER BY 1 NULLS LAST", "group by stock show count() order by stock"),
    ("SELECT stock, count(*) n FROM items GROUP BY 1 ORDER BY n DESC, 1 DESC NULLS LAST LIMIT 4",
     "group by stock show count() as n order by n desc, stock desc limit 4"),
    ("SELECT shop, sum(stock), min(stock), max(stock), median(stock), avg(stock) FROM items GROUP BY shop, shop_id HAVING count(stock) > 0",
     "group by shop show sum(stock), min(stock), max(stock), median(stock), mean(stock) having count(stock) > 0"),
    ("SELECT shop, coalesce(sum(stock), 0) FROM items GROUP BY shop, shop_id", "group by shop show sum(stock)"),
    (_OF_UNIT.format("shop", "sum(number)"), "where price is known group by name(shop) show sum(price)"),
    (_OF_UNIT.format("shop", "max(number)"), "where price is known group by name(shop) show max(price)"),
    (_OF_UNIT.format("shop", "min(number)"), "where price is known group by name(shop) show min(price)"),
    (_OF_UNIT.format("shop", "median(number)"), "where price is known group by name(shop) show median(price)"),
    (_OF_UNIT.format("stock", "avg(number)"), "where price is known group by stock show mean(price)"),
    ("SELECT count(DISTINCT item) FROM prices WHERE unit = '€' AND number > 50", "where price > 50 € show count()"),
    ("SELECT year(date), count(*) FROM items WHERE date IS NOT NULL GROUP BY 1", "where year(made) is known group by year(made) show count()"),
    ("SELECT month(date), count(*) FROM items WHERE date IS NOT NULL AND exact >= 2 GROUP BY 1",
     "where month(made) is known group by month(made) show count()"),
    ("SELECT count(*) FROM items WHERE date IS NOT NULL AND year(date) < 1950", "where made < 1950 show count()"),
    ("SELECT shop, count(*) FROM items WHERE stock < 0 GROUP BY shop, shop_id HAVING count(*) > 1",
     "where stock < 0 group by shop show count() having count() > 1"),
    ("SELECT huge, count(*) FROM items WHERE huge IS NOT NULL GROUP BY 1 ORDER BY huge DESC",
     "where huge is known group by huge show count() order by huge desc"),
    ("SELECT sum(huge), max(huge), min(huge) FROM items", "show sum(huge), max(huge), min(huge)"),
    ("SELECT shop, n FROM (SELECT shop, count(*) n, rank() OVER (ORDER BY count(*) DESC) r FROM items GROUP BY shop, shop_id) WHERE r <= 2 "
     "ORDER BY n DESC, shop NULLS LAST", "group by shop show count() as n order by n desc limit 2 with ties"),
    ("SELECT count(*) FROM items WHERE stock IN (0, 7, -3) OR (shop IS NULL AND NOT stock > 2)",
     "where stock in (0, 7, -3) or (shop is missing and stock is known and not stock > 2) show count()"),
    ("SELECT s.town, coalesce(sum(i.stock), 0) FROM shops s LEFT JOIN items i ON i.shop_id = s.id GROUP BY s.id, s.town", ""),
    ("SELECT stock * 2 + 1, count(*) FROM items WHERE stock IS NOT NULL GROUP BY 1",
     "where stock is known group by stock * 2 + 1 show count()"),
    ("SELECT id, stock FROM items ORDER BY stock NULLS LAST, id LIMIT 12", "show number, stock order by stock, number limit 12"),
    ("SELECT id, stock FROM items ORDER BY stock DESC NULLS LAST, id LIMIT 12 OFFSET 3",
     "show number, stock order by stock desc, number limit 12 offset 3"),
]  # fmt: skip
QUESTIONS[:] = [question for question in QUESTIONS if question[1]]


def made() -> tuple[list[Item], dict[str, list[tuple[Any, ...]]]]:
    """Return the items of the graph, and the same data as rows of tables."""
    dice = random.Random(7)
    # Two shops with one name are two entities, but one text.
    shops = [("s1", "North", "Oslo"), ("s2", "South", "Rome"), ("s3", "South", "Rome"), ("s4", "Île d'Or", None)]
    items: list[Item] = [Entity("item", "item", EntityKind.CONCEPT)]
    for entity_id, name, town in shops:
        items.append(Entity(entity_id, name))
        if town is not None:
            items.append(Statement(entity_id, "town", town))
    rows: dict[str, list[tuple[Any, ...]]] = {"shops": list(shops), "items": [], "prices": [], "colours": []}
    huge = ["123456789012345678901234567890", "-99999999999999999999", "9007199254740993", "9007199254740992", None, None]
    for number in range(60):
        entity_id = f"i{number:02}"
        items += [
            Entity(entity_id, f"thing {number % 50:02}"),
            Member(entity_id, "item"),
            Statement(entity_id, "number", Quantity(number)),
        ]
        shop = dice.choice([*shops, None])
        stock = dice.choice([None, 0, 7, -3, 2, 2, 100])
        large = dice.choice(huge)
        if shop is not None:
            items.append(Statement(entity_id, "shop", Ref(shop[0])))
        if stock is not None:
            items.append(Statement(entity_id, "stock", Quantity(stock)))
        if large is not None:
            items.append(Statement(entity_id, "huge", Quantity(parse_number(large))))
        year, month, day, exact = dice.randint(1890, 1990), dice.randint(1, 12), dice.randint(1, 28), dice.choice([0, 0, 1, 2, 3])
        date = None
        if exact:
            time = (Time.year(year), Time.month(year, month), Time.day(year, month, day))[exact - 1]
            items.append(Statement(entity_id, "made", time))
            date = f"{year}-{month if exact > 1 else 1:02}-{day if exact > 2 else 1:02}"
        elif dice.random() < 0.5:
            items.append(Statement(entity_id, "made", "long ago"))
        rows["items"].append(
            (number, None if shop is None else shop[1], None if shop is None else shop[0], stock, large, date, exact)
        )
        for colour in dice.sample(["red", "green", "blue", "Ünder-tone"], dice.choice([0, 1, 1, 2, 3])):
            items.append(Statement(entity_id, "colour", colour))
            rows["colours"].append((number, colour))
        for price, unit in {(dice.randint(-5, 90), dice.choice(UNITS[: 1 + number % 4])) for _ in range(dice.choice([0, 1, 1, 2]))}:
            items.append(Statement(entity_id, "price", Quantity(price, unit)))
            rows["prices"].append((number, price, unit))
    return items, rows


def bazaar() -> Graph:
    graph = condgraph.open()
    graph.add(made()[0], source="bazaar")
    return graph


def tables() -> Any:
    """Return a DuckDB connection with the same data."""
    import duckdb

    connection = duckdb.connect()
    connection.execute("CREATE TABLE shops (id VARCHAR, name VARCHAR, town VARCHAR)")
    connection.execute(
        "CREATE TABLE items (id INTEGER, shop VARCHAR, shop_id VARCHAR, stock INTEGER, huge DECIMAL(38, 0), date DATE, exact INTEGER)"
    )
    connection.execute("CREATE TABLE prices (item INTEGER, number INTEGER, unit VARCHAR)")
    connection.execute("CREATE TABLE colours (item INTEGER, colour VARCHAR)")
    for name, rows in made()[1].items():
        connection.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(rows[0]))})", rows)
    return connection
