# ruff: noqa: E501
"""A shop with awkward names, as SQL statements: spaces, quotes, keywords, other scripts; keys of several columns, of
texts with punctuation, and none; references to the same table; tables of relations; names that several rows share.
"""

from __future__ import annotations

from typing import Final

from condgraph import Graph
from condgraph.engine import algebra as alg
from condgraph.engine.facts import Ref
from condgraph.engine.values import Quantity, Time
from tests.support import programs
from tests.support.row_plans import Words

STATEMENTS: Final = (
    'CREATE TABLE "Kunden Ä" ("Nr" INTEGER PRIMARY KEY, "Full Name" VARCHAR, "select" VARCHAR, "geb. am" DATE, "rate" DECIMAL(8,2))',
    'CREATE TABLE "order" ("group" INTEGER PRIMARY KEY, "by ""whom""" INTEGER REFERENCES "Kunden Ä" ("Nr"), "placed" DATE, "total" DECIMAL(10,2), "ok" BOOLEAN)',
    'CREATE TABLE "товар" ("код" VARCHAR PRIMARY KEY, "name" VARCHAR, "вес" DOUBLE PRECISION, "Parent" VARCHAR REFERENCES "товар" ("код"))',
    'CREATE TABLE "Line+Item" ("order" INTEGER REFERENCES "order" ("group"), "код" VARCHAR REFERENCES "товар" ("код"), "n" INTEGER, PRIMARY KEY ("order", "код"))',
    'CREATE TABLE "notes" ("on" INTEGER, "Text" VARCHAR, FOREIGN KEY ("on") REFERENCES "order" ("group"))',
    'CREATE TABLE "likes" ("who" INTEGER REFERENCES "Kunden Ä" ("Nr"), "what" VARCHAR REFERENCES "товар" ("код"))',
    'CREATE TABLE "rates" ("who" INTEGER REFERENCES "Kunden Ä" ("Nr"), "what" VARCHAR REFERENCES "товар" ("код"), "stars" INTEGER, "seen on" DATE, "why" VARCHAR)',
    'CREATE TABLE "remark" ("id" INTEGER PRIMARY KEY, "order" INTEGER, "код" VARCHAR, "body" VARCHAR, FOREIGN KEY ("order", "код") REFERENCES "Line+Item" ("order", "код"))',
    """INSERT INTO "Kunden Ä" VALUES (1, 'Ann', 'x''y', '1990-05-01', 1.25), (2, 'Bob', NULL, NULL, 10.50), (3, 'Ann', 'a"b', '1985-12-31', NULL), (4, NULL, '(none)', '2001-01-01', 7), (5, ' Ann', 'x  y	', NULL, 3), (6, '  ', '
', NULL, 1)""",
    """INSERT INTO "order" VALUES (10, 1, '2020-01-05', 99.90, true), (11, 1, '2020-02-01', 5.00, false), (12, 3, NULL, 12.30, NULL), (13, NULL, '2021-07-09', NULL, true)""",
    """INSERT INTO "товар" VALUES ('a+b', 'Tea', 0.1, NULL)""",
    """INSERT INTO "товар" VALUES ('c\\d', 'Jam', 2.5, 'a+b'), ('e', 'Tea', NULL, 'a+b')""",
    """INSERT INTO "товар" VALUES ('ж', 'Хлеб', 1e3, 'c\\d')""",
    """INSERT INTO "товар" VALUES (' k	1 ', 'Black  tea', 2, 'e')""",
    """INSERT INTO "товар" VALUES ('m', ' Rye  bread ', 2, ' k	1 ')""",
    """INSERT INTO "Line+Item" VALUES (10, 'a+b', 2), (10, 'c\\d', 1), (11, 'e', 7), (12, 'ж', NULL), (12, ' k	1 ', 3)""",
    """INSERT INTO "notes" VALUES (10, 'late'), (10, 'again'), (NULL, 'lost'), (12, NULL)""",
    """INSERT INTO "likes" VALUES (1, 'a+b'), (1, 'e'), (2, 'a+b'), (NULL, 'e'), (1, 'a+b'), (5, ' k	1 ')""",
    """INSERT INTO "rates" VALUES (1, 'a+b', 5, '2020-03-01', 'good'), (2, 'e', 1, NULL, NULL), (1, 'a+b', 4, '2021-03-01', 'good'), (3, 'ж', NULL, '2022-02-02', 'so so'), (2, ' k	1 ', 3, NULL, ' so  so')""",
    """INSERT INTO "remark" VALUES (1, 10, 'a+b', 'first'), (2, 11, 'e', 'second'), (3, 10, NULL, 'third'), (4, 12, ' k	1 ', '  ')""",
)

#: The words of random plans over rows of this shop.
ROW_WORDS: Final = Words(
    predicates=("by \"whom\"", "Parent", "rated", "name", "Full Name", "placed", "total", "who", "n", "код", "order + код", "rate", "stars", "on"),
    relations=("by \"whom\"", "Parent", "rated", "order + код", "who"),
    keys=("stars", "seen on", "why", "what"),
    sets=(
        alg.ByName(("Ann",)), alg.ByName(("Tea", "order/10", "order")), alg.ById(("товар/a+b", "Kunden Ä/2", "likes/1")), alg.Members(alg.ByName(("Kunden Ä",))),
        alg.Reached(alg.Scan(alg.ByName(("Ann",)), ("rated",), "subject", "object", "relation")), alg.AllEntities(),
    ),
    conditions=(
        alg.Compare(">", Quantity(1.2)), alg.Compare("=", "Tea"), alg.Compare("<", Time.year(2021)), alg.Compare("!=", Quantity(5)),
        alg.AnyOf((alg.Compare("=", Quantity(4)), alg.Compare("=", "good"))), alg.Not(alg.Compare("=", "Ann")), alg.Compare("=", Time.year(2020)),
        alg.Among(alg.ByName(("Tea",))),
    ),
    terms=("good", "Tea", Quantity(5), Quantity(0.1), Time.day(2020, 3, 1), Ref("товар/e"), Ref("order/10"), Ref("nowhere"), None),
    concept="товар",
    attribute="name",
)  # fmt: skip


def shop_words(graph: Graph) -> programs.Words:
    """Return the words of random programs over this shop."""
    snapshot = graph.current
    return programs.Words(
        sorted({snapshot.name(number) for number in range(snapshot.entities)}),
        *(snapshot.schema.attributes, snapshot.schema.relations, snapshot.schema.qualifiers, ["1"]),
        *(["x", "late", "good", "Ann", "true"], [Quantity(2), Quantity(5), Quantity(1.25), Quantity(99.9)]),
        [Time.year(2020), Time.year(1990), Time.day(2020, 3, 1)],
    )
