# ruff: noqa: E501
"""Tables whose rows hold at certain times, as SQL statements: days, seconds and years, exclusive and inclusive ends,
open and missing ones, ends before starts, and awkward names.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

STATEMENTS: Final = (
    'CREATE TABLE "good" ("code" VARCHAR(9) PRIMARY KEY, "name" VARCHAR(30), "made" INTEGER, "out of print" INTEGER, "Parent" VARCHAR(9) REFERENCES "good" ("code"))',
    'CREATE TABLE "Preis Ä" ("Nr" INTEGER PRIMARY KEY, "good" VARCHAR(9) REFERENCES "good" ("code"), "price" DECIMAL(8,2), "from" DATE, "to ""day""" DATE)',
    'CREATE TABLE "person" ("id" INTEGER PRIMARY KEY, "name" VARCHAR(30), "born" DATE)',
    'CREATE TABLE "owns" ("who" INTEGER REFERENCES "person" ("id"), "what" VARCHAR(9) REFERENCES "good" ("code"), "share" INTEGER, "since" DATE, "until" DATE)',
    'CREATE TABLE "seen" ("id" INTEGER PRIMARY KEY, "what" VARCHAR(9) REFERENCES "good" ("code"), "count" INTEGER, "at" TIMESTAMP)',
    'CREATE TABLE "shift" ("id" INTEGER PRIMARY KEY, "who" INTEGER REFERENCES "person" ("id"), "pay" INTEGER, "start" TIMESTAMP, "end" TIMESTAMP)',
    """INSERT INTO "good" VALUES ('a', 'Tea', 1980, 1990, NULL)""",
    """INSERT INTO "good" VALUES ('b+', 'Jam', 1985, NULL, 'a'), ('c', 'Tea', NULL, 1984, 'a')""",
    """INSERT INTO "good" VALUES ('d', 'Brot', 1990, 1980, 'b+'), ('e', 'Salz', NULL, NULL, 'b+')""",
    """INSERT INTO "good" VALUES ('f', 'Alt', -43, 9999, 'e'), ('g', 'Eis', 1984, 1984, NULL)""",
    """INSERT INTO "Preis Ä" VALUES (1, 'a', 9.90, '1980-01-01', '1984-06-01'), (2, 'a', 10.50, '1984-06-01', '9999-12-31'), (3, 'b+', 3, '1985-02-28', '1985-03-01')""",
    """INSERT INTO "Preis Ä" VALUES (4, 'b+', 4, '1985-03-01', NULL), (5, 'c', 5, NULL, '1984-02-29'), (6, 'e', 6, NULL, NULL), (7, 'g', 7, '1984-01-01', '1984-01-01'), (8, 'g', 8, '1990-01-01', '1980-01-01')""",
    """INSERT INTO "person" VALUES (1, 'Ann', '1950-05-01'), (2, 'Bob', NULL), (3, 'Ann', '1960-12-31')""",
    """INSERT INTO "owns" VALUES (1, 'a', 50, '1981-01-01', '1984-12-31'), (2, 'a', 50, '1981-01-01', NULL), (1, 'b+', 100, NULL, '1986-06-30'), (3, 'c', 10, NULL, NULL)""",
    """INSERT INTO "owns" VALUES (1, 'e', 1, '1990-01-01', '1980-01-01'), (2, 'e', 99, '1984-06-15', '1984-06-15'), (NULL, 'f', 5, '1984-01-01', NULL), (2, 'g', NULL, '1984-01-01', '9998-01-01')""",
    """INSERT INTO "seen" VALUES (1, 'a', 7, '1984-05-03T10:00:00'), (2, 'a', 8, '1984-05-03T23:59:59'), (3, 'b+', 9, NULL), (4, 'c', 7, '1990-01-01T00:00:01')""",
    """INSERT INTO "shift" VALUES (1, 1, 10, '1984-05-03T08:00:00', '1984-05-03T16:30:00'), (2, 1, 11, '1984-05-03T16:30:00', '1984-05-04T00:30:00'), (3, 2, 12, '1985-01-01T08:00:00', NULL)""",
    """INSERT INTO "shift" VALUES (4, 3, 13, '1985-01-01T08:00:01', '1985-01-01T08:00:01'), (5, 3, 14, NULL, '1984-05-03T08:00:01')""",
)  # fmt: skip

MAPPING: Final = """
[tables.good]
times = "[made, out of print]"
[tables."Preis Ä"]
times = '[from, to "day")'
[tables.owns]
relation = "owns"
times = "[since, until]"
[tables.seen]
times = "at"
[tables.shift]
times = "[start, end)"
"""

#: The notes about what the graph leaves out.
NOTES: Final = {
    "1 row of 'good' hold at no time, since 'out of print' is before 'made': their statements are left out",
    "2 rows of 'Preis Ä' hold at no time, since 'to \"day\"' is before 'from': their statements are left out",
    "1 row of 'owns' hold at no time, since 'until' is before 'since': their statements are left out",
    "1 row of 'shift' hold at no time, since 'end' is before 'start': their statements are left out",
    "1 row of 'owns' left out: an end of the relation is missing",
}


def by_hand(run: Callable[[str], int]) -> dict[tuple[str, str, bool], int]:
    """Return the results of SQL by program, time, and whether it holds for certain; `run` returns the number that a
    query gives.
    """
    day = "DATE '1984-05-03'"
    owned = 'SELECT count(DISTINCT "what") FROM "owns" WHERE "who" IN (1, 2, 3) AND ("since" IS NULL OR "until" IS NULL OR "since" <= "until") AND '
    priced = 'SELECT count(*) FROM "Preis Ä" WHERE "price" > 4 AND ("from" IS NULL OR "to ""day""" IS NULL OR "from" < "to ""day""") AND '
    return {
        ("FindAll() Relate(owns, forward) Count()", "1984-05-03", False): run(
            owned + f'("since" IS NULL OR "since" <= {day}) AND ("until" IS NULL OR "until" >= {day})'
        ),
        ("FindAll() Relate(owns, forward) Count()", "1984-05-03", True): run(
            owned
            + f'("since" IS NULL AND "until" IS NULL OR "since" <= {day} AND "until" >= {day} AND "until" < DATE \'9998-01-01\')'
        ),
        ("FindAll() FilterNum(price, 4, >) Count()", "1984-05-03", False): run(
            priced + f'("from" IS NULL OR "from" <= {day}) AND ("to ""day""" IS NULL OR "to ""day""" > {day})'
        ),
        ("FindAll() FilterNum(price, 4, >) Count()", "1984", False): run(
            priced
            + '("from" IS NULL OR "from" < DATE \'1985-01-01\') AND ("to ""day""" IS NULL OR "to ""day""" > DATE \'1984-01-01\')'
        ),
        ("FindAll() FilterNum(pay, 0, >) Count()", "1984-05-03T16:30:00", False): run(
            'SELECT count(*) FROM "shift" WHERE "pay" > 0 AND ("start" IS NULL OR "end" IS NULL OR "start" < "end") AND '
            '("start" IS NULL OR "start" <= TIMESTAMP \'1984-05-03 16:30:00\') AND ("end" IS NULL OR "end" > TIMESTAMP \'1984-05-03 16:30:00\')'
        ),
    }


def written(folder: Path) -> Path:
    """Write the mapping file into a folder."""
    path = folder / "given.toml"
    path.write_text(MAPPING, encoding="utf-8")
    return path
