"""Existing databases, for tests that query a Neo4j database in place: Movies and Northwind by their own scripts, and
two with awkward data.

`social`: people, some without a label, who know each other and themselves; lists, points, mixed types, embeddings, byte
arrays, durations, names with backticks and blanks, parallel relationships. Its size is a number of relationships: 600
in CI, 2,000,000 on request (`python -m tests.support.native_databases bolt://... 2000000`).

`ledger`: accounts and postings with two times each (when it held, when it was recorded), dates as text of three forms,
money, corrections of corrections.
"""

from __future__ import annotations

import csv
import fcntl
import hashlib
import json
import random
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import neo4j
import pytest

from condgraph.engine.store import Request
from condgraph.languages.registry import lower
from condgraph.remote_native import NativeGraph
from tests.support.asking import benchmark_data
from tests.support.awkward_database import awkward

Load = Callable[[neo4j.Driver], None]
_BATCH = 10_000


def reading_data(*names: str, nightly: tuple[str, ...] = ()) -> list[Any]:
    """Return databases as parameters of a fixture, marked `reads_data`; those in `nightly` are left to the nightly run."""
    return [pytest.param(name, marks=pytest.mark.reads_data) for name in names] + [
        pytest.param(name, marks=[pytest.mark.reads_data, pytest.mark.slow]) for name in nightly
    ]


def _data() -> Path:
    return benchmark_data() / "data"


def movies(driver: neo4j.Driver) -> None:
    """Create 171 nodes and 253 relationships."""
    _statements(driver, (_data() / "lpg_movies" / "scripts" / "movies.cypher").read_text(), None)


def northwind(driver: neo4j.Driver) -> None:
    """Create 1,035 nodes and 3,139 relationships; the rows of its files are sent as parameters."""
    folder = _data() / "lpg_northwind"
    _statements(driver, (folder / "scripts" / "northwind.cypher").read_text(), folder / "import")


def _statements(driver: neo4j.Driver, script: str, folder: Path | None) -> None:
    with driver.session() as session:
        for text in re.split(r";\s*(?:\n|$)", script):
            if not text.strip() or text.strip().startswith(":"):
                continue
            rows: list[dict[str, Any]] = []
            load = re.search(r'LOAD CSV WITH HEADERS FROM "[^"]*/([\w-]+\.csv)" AS row', text)
            if load and folder is not None:
                with (folder / load[1]).open(encoding="utf-8", newline="") as lines:
                    rows = [{key: cell or None for key, cell in row.items() if key} for row in csv.DictReader(lines)]
                text = text.replace(load[0], "UNWIND $rows AS row")
            session.run(text, {"rows": rows}).consume()


def social(driver: neo4j.Driver, relationships: int = 600, *, seed: int = 7) -> None:
    """Create people, places and tags, as described above. The same size and seed give the same content."""
    dice = random.Random(seed)
    people = max(60, relationships // 8)
    with driver.session() as session:
        session.run("CREATE CONSTRAINT social_person IF NOT EXISTS FOR (n:Person) REQUIRE n.handle IS UNIQUE").consume()
        session.run("CREATE INDEX social_score IF NOT EXISTS FOR (n:Person) ON (n.score)").consume()
        session.run("CALL db.awaitIndexes(60)").consume()
        for at in range(0, people, _BATCH):
            rows = [_person(dice, number) for number in range(at, min(people, at + _BATCH))]
            session.run("UNWIND $rows AS row CREATE (n:Person) SET n = row", {"rows": rows}).consume()
        session.run(
            "MATCH (n:Person) WHERE n.number % 5 = 0 SET n:Employee, n.badge = toString(1000 + n.number), "
            "n.hired = date({year: 2000 + n.number % 20, month: 1 + n.number % 12, day: 1 + n.number % 28})"
        ).consume()
        session.run(
            "MATCH (n:Person) WHERE n.number % 7 = 0 SET n.home = point({latitude: n.number % 90, longitude: n.number % 180}), "
            "n.seen = localdatetime({year: 2020, month: 1 + n.number % 12, day: 3, hour: n.number % 24, "
            "minute: 5, second: 7, nanosecond: 500000000}), "
            "n.woke = time({hour: n.number % 24, minute: 30, timezone: '+02:00'}), "
            "n.slept = duration({minutes: n.number}), n.stay = duration({months: 1 + n.number % 3, days: n.number % 2})"
        ).consume()
        places = [
            ("København", 44.5),
            ("Zürich", 47.4),
            ("  New   York ", 40.7),
            ("", 0.0),
            ("O'Brien's `pub`", -1.5),
            ("東京", 35.7),
        ]
        rows = [{"title": title, "height": height, "open": height > 40} for title, height in places]
        session.run("UNWIND $rows AS row CREATE (n:`Place ``of`` interest`) SET n = row", {"rows": rows}).consume()
        session.run("UNWIND range(1, 12) AS i CREATE ({note: 'loose ' + toString(i), weight: i})").consume()
        session.run(
            "UNWIND range(1, 5) AS i CREATE (n:Photo {data: $data, taken: '2015-06-24T12:50:0' + toString(i) + 'Z'})",
            {"data": b"\x00\xff\x10"},
        )
        ids = range(people)
        for at in range(0, relationships, _BATCH):
            rows = [
                {
                    "a": dice.choice(ids),
                    "b": dice.choice(ids),
                    "since": dice.randrange(1990, 2024),
                    "how": dice.choice(["work", "school", "family"]),
                    "tags": dice.sample(["a", "b", "c"], dice.randrange(3)),
                }
                for _ in range(min(_BATCH, relationships - at))
            ]
            # Every twentieth relationship is a loop; a few pairs know each other twice.
            for row in rows[::20]:
                row["b"] = row["a"]
            rows[5::50] = rows[4 : 4 + len(rows[5::50])]
            session.run(
                "UNWIND $rows AS row MATCH (a:Person {handle: 'p' + toString(row.a)}), (b:Person {handle: 'p' + toString(row.b)}) "
                "CREATE (a)-[:KNOWS {since: row.since, how: row.how, tags: row.tags}]->(b)",
                {"rows": rows},
            ).consume()
        session.run(
            "MATCH (p:Person) WHERE p.number % 3 = 0 MATCH (q:`Place ``of`` interest` {height: $heights[p.number % 6]}) "
            "CREATE (p)-[:`lives ``in``` {since: date('2010-01-01') + duration({days: p.number})}]->(q)",
            {"heights": [height for _, height in places]},
        ).consume()
        session.run(
            "MATCH (n) WHERE size(labels(n)) = 0 MATCH (p:Person {handle: 'p' + toString(n.weight)}) CREATE (n)-[:ABOUT]->(p)"
        ).consume()


def _person(dice: random.Random, number: int) -> dict[str, Any]:
    first, last = dice.choice(["Ada", "Bo", "Cyd", "Dee", "Eli"]), dice.choice(["Li", "Moe", "Nye", "Orr", "Poe", "Que"])
    mixed: Any = [number, number / 4, str(number), number % 3 == 0, [number, number + 1]][number % 5]
    properties = {
        "handle": f"p{number}",
        "number": number,
        "firstName": first,
        "surname": last,
        "score": round(dice.gauss(50, 15), 2),
        "big": 2**53 + number,
        "langs": dice.sample(["de", "en", "fr", "it"], dice.randrange(4)),
        "lucky": [dice.randrange(9) for _ in range(dice.randrange(3))],
        "mixed": mixed,
        "size` of": dice.choice(["S", "M", "L", "x  l"]),
        "vector": [dice.random() for _ in range(64)],
        "born": f"{dice.randrange(1, 29)}/{dice.randrange(1, 13):02d}/{dice.randrange(1950, 2005)}",
        "zip": f"{dice.randrange(1000, 99999):05d}",
        "points": str(dice.randrange(-20, 500)),
    }
    if number % 9 == 0:
        properties["ratio"] = [float("nan"), float("inf"), -0.0, 1e300][number // 9 % 4]
    return {key: value for key, value in properties.items() if value is not None}


def ledger(driver: neo4j.Driver, postings: int = 200, *, seed: int = 11) -> None:
    """Create accounts with postings, each with the days when it held and when it was known."""
    dice = random.Random(seed)
    with driver.session() as session:
        session.run("CREATE CONSTRAINT ledger_account IF NOT EXISTS FOR (n:Account) REQUIRE n.iban IS UNIQUE").consume()
        session.run(
            "UNWIND range(0, 19) AS i CREATE (:Account {iban: 'XX' + toString(100 + i), opened: date('2001-01-31') + "
            "duration({months: i}), owner: CASE WHEN i % 4 = 0 THEN 'Same Ltd' ELSE 'Owner ' + toString(i) END, `type`: 'giro'})"
        ).consume()
        rows = [
            {
                "a": dice.randrange(20),
                "b": dice.randrange(20),
                "amount": f"{dice.randrange(1, 10**6) / 100:.2f}",
                "held": f"{2010 + dice.randrange(10)}-{1 + dice.randrange(12):02d}-{1 + dice.randrange(28):02d}",
                "known": f"{1 + dice.randrange(28):02d}.{1 + dice.randrange(12):02d}.{2020 + dice.randrange(4)}",
                "number": number,
            }
            for number in range(postings)
        ]
        session.run(
            "UNWIND $rows AS row MATCH (a:Account {iban: 'XX' + toString(100 + row.a)}), "
            "(b:Account {iban: 'XX' + toString(100 + row.b)}) "
            "CREATE (p:Posting {amount: row.amount, booked: row.held, known: row.known, "
            "at: datetime({date: date(row.held), hour: row.number % 24, timezone: '+01:00'})}) "
            "CREATE (a)-[:DEBIT {from: date(row.held), to: date(row.held) + duration({months: row.number % 5 + 1}), "
            "memo: row.amount}]->(p) "
            "CREATE (p)-[:CREDIT]->(b)",
            {"rows": rows},
        ).consume()
        session.run(
            "MATCH (p:Posting) WITH collect(p) AS ps UNWIND range(0, size(ps) - 2, 9) AS i WITH ps[i] AS p, ps[i + 1] AS q "
            "CREATE (q)-[:CORRECTS {why: 'typo'}]->(p)"
        ).consume()


DATABASES: dict[str, Load] = {"movies": movies, "northwind": northwind, "social": social, "ledger": ledger, "awkward": awkward}


def emptied(driver: neo4j.Driver) -> None:
    """Delete all nodes, constraints and indexes, except the server's own indexes."""
    with driver.session() as session:
        session.run("MATCH (n) CALL (n) { DETACH DELETE n } IN TRANSACTIONS OF 5000 ROWS").consume()
        for row in list(session.run("SHOW CONSTRAINTS YIELD name RETURN name")):
            session.run(f"DROP CONSTRAINT `{row['name']}` IF EXISTS").consume()
        for row in list(session.run("SHOW INDEXES YIELD name, type WHERE type <> 'LOOKUP' RETURN name")):
            session.run(f"DROP INDEX `{row['name']}` IF EXISTS").consume()


#: Servers whose databases this process has locked.
_HELD: set[str] = set()


@contextmanager
def database(uri: str, *names: str) -> Iterator[neo4j.Driver]:
    """Fill the database of a dedicated server with the named databases, under a lock: other processes on this machine
    wait.

    If this process holds the lock already, for instance in a fixture of the module of the test, it would wait for
    itself, so `RuntimeError` is raised.
    """
    if uri in _HELD:
        raise RuntimeError(f"the database at {uri} is held by this process: by a fixture of a wider scope?")
    lock_file = Path(tempfile.gettempdir()) / f"condgraph-native-{hashlib.sha256(uri.encode()).hexdigest()[:12]}.lock"
    with lock_file.open("w") as lock, neo4j.GraphDatabase.driver(uri, notifications_min_severity="OFF") as driver:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _HELD.add(uri)
        try:
            emptied(driver)
            for name in names:
                DATABASES[name](driver)
            with driver.session() as session:
                session.run("CALL db.awaitIndexes(60)").consume()
            yield driver
        finally:
            _HELD.discard(uri)


def planned(session: neo4j.Session, graph: NativeGraph, program: str) -> tuple[str, str]:
    """Return the Cypher of a KoPL program, and the server's plan for it."""
    compiled = graph.store._query(Request(program, "kopl", {}, None, lower)).compiled
    return compiled.text, str(session.run(f"EXPLAIN {compiled.text}", compiled.parameters).consume().plan)


def content(driver: neo4j.Driver) -> dict[str, Any]:
    """Return everything in a database, so that any change shows: nodes and relationships with ids and properties,
    constraints, indexes, and all names ever used.
    """
    values = (
        "[k IN keys(x) | [k, valueType(x[k]), toStringOrNull(x[k]), "
        "CASE WHEN x[k] IS :: LIST<ANY> THEN [y IN x[k] | toStringOrNull(y)] END]]"
    )
    texts = {
        "nodes": f"MATCH (x) RETURN elementId(x) AS id, labels(x) AS labels, {values} AS found ORDER BY id",
        "relationships": "MATCH (a)-[x]->(b) RETURN elementId(x) AS id, elementId(a) AS a, type(x) AS t, "
        f"elementId(b) AS b, {values} AS found ORDER BY id",
        "constraints": "SHOW CONSTRAINTS YIELD name, type, labelsOrTypes, properties RETURN * ORDER BY name",
        "indexes": "SHOW INDEXES YIELD name, type, labelsOrTypes, properties RETURN * ORDER BY name",
        "tokens": "CALL db.labels() YIELD label RETURN label ORDER BY label",
        "keys": "CALL db.propertyKeys() YIELD propertyKey RETURN propertyKey ORDER BY propertyKey",
    }
    result: dict[str, Any] = {}
    with driver.session(default_access_mode="READ") as session:
        for name, text in texts.items():
            rows = [row.data() for row in session.run(text)]
            large = name in ("nodes", "relationships")
            result[name] = (len(rows), hashlib.sha256(json.dumps(rows, default=str).encode()).hexdigest()) if large else rows
    return result


if __name__ == "__main__":
    with neo4j.GraphDatabase.driver(sys.argv[1]) as opened:
        social(opened, int(sys.argv[2]))
