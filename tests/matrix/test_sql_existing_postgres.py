"""Tables of others on a real PostgreSQL answer as a load of the same tables, and as SQL by hand; nothing is written."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

import condgraph
from condgraph import Graph
from condgraph.engine.bounds import within
from condgraph.engine.errors import CancelledError, CondgraphError, DeadlineError, ReadOnlyError, StoreError
from condgraph.engine.values import Quantity, Time
from condgraph.overview.survey import survey
from condgraph.remote_sql import NativeSqlGraph
from tests.matrix.test_sql_existing import MIXED, MIXED_MAP, _result, check_readings, random_rows
from tests.support import northwind, sql_by_hand
from tests.support.graphs import Dice
from tests.support.lanes import by_lane
from tests.support.long_numbers import check_long_numbers, long_numbers
from tests.support.postgres import postgres, program
from tests.support.programs import Words, as_text
from tests.support.programs import program as random_program
from tests.support.ugly_shop import STATEMENTS

pytestmark = [pytest.mark.service, pytest.mark.xdist_group("postgres")]
psycopg = pytest.importorskip("psycopg")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with postgres(tmp_path_factory.mktemp("existing")) as url:
        yield url


def _database(server: str, name: str, statements: tuple[str, ...] = ()) -> str:
    """The address of a new database."""
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"'.encode())
    url = server.removesuffix("test") + name
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())
    return url


@pytest.fixture(scope="module")
def shop(server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Graph, NativeSqlGraph]]:
    folder = tmp_path_factory.mktemp("shop")
    with sqlite3.connect(folder / "shop.db") as lite:
        for statement in STATEMENTS:
            lite.execute(statement)
        # SQLite has numbers for truth values.
        lite.execute("UPDATE \"order\" SET ok = CASE ok WHEN 1 THEN 'true' WHEN 0 THEN 'false' END")
    lite.close()
    (folder / "given.toml").write_text('[tables.rates]\nrelation = "rated"\n')
    there = condgraph.open(_database(server, "shop", STATEMENTS), mapping=folder / "given.toml")
    assert isinstance(there, NativeSqlGraph)
    declared = folder / "condgraph.toml"
    declared.write_text(there.mapping_file(), encoding="utf-8")
    here = condgraph.open("memory:")
    here.load(folder / "shop.db", declaration=declared, name="shop", on_error="skip")
    yield here, there
    there.close()


def _random(pair: tuple[Graph, NativeSqlGraph], words: Words, number: int) -> list[Any]:
    different = []
    for seed in range(number):
        text = as_text(random_program(Dice(seed), words=words, wrong=seed % 5 == 0))
        answers = [_result(graph, text) for graph in pair]
        if answers[0] != answers[1]:
            different.append((text, *map(str, answers)))
    return different


def _words(graph: Graph, texts: list[str], quantities: list[Quantity], times: list[Time]) -> Words:
    snapshot = graph.current
    names = sorted({snapshot.name(number) for number in range(snapshot.entities)})
    schema = snapshot.schema
    return Words(names, schema.attributes, schema.relations, schema.qualifiers, ["1"], texts, quantities, times)


def test_random_programs_on_ugly_names(shop: tuple[Graph, NativeSqlGraph]) -> None:
    here, there = shop
    assert there.snapshot().current.counts == here.current.counts
    quantities = [Quantity(2), Quantity(5), Quantity(1.25), Quantity(99.9)]
    words = _words(here, ["x", "late", "good", "Ann", "true"], quantities, [Time.year(2020), Time.year(1990), Time.day(2020, 3, 1)])
    assert _random(shop, words, by_lane(60, 2_000, 20_000)) == []


def test_random_rows_on_ugly_names(shop: tuple[Graph, NativeSqlGraph]) -> None:
    assert random_rows(shop[1], range(50_000, 50_000 + by_lane(15, 500, 5_000))) == []


def test_random_programs_on_northwind(server: str, shared: Path, tmp_path: Path) -> None:
    url = _database(server, "northwind")
    tables = northwind.tables_of(shared / "data" / "lpg_northwind" / "import")
    # Loads make one blank of several, and read times at midnight as days.
    for _, rows in tables.values():
        rows[:] = [[cell and " ".join(cell.removesuffix(" 00:00:00.000").split()) for cell in row] for row in rows]
    northwind.to_postgres(tables, url)
    with psycopg.connect(url, autocommit=True) as connection:
        for name, (header, _) in tables.items():
            for column in header:
                if northwind.kind(column) == "timestamp":
                    connection.execute(f'ALTER TABLE "{name}" ALTER COLUMN "{column}" TYPE date'.encode())
    (tmp_path / "given.toml").write_text('[tables.order-details]\nrelation = "contains"\n')
    with condgraph.open(url, mapping=tmp_path / "given.toml") as there:
        assert isinstance(there, NativeSqlGraph)
        declared = tmp_path / "condgraph.toml"
        declared.write_text(there.mapping_file(), encoding="utf-8")
        here = condgraph.open("memory:")
        here.load(northwind.to_sqlite(tables, tmp_path / "northwind.db"), declaration=declared, name="northwind")
        assert there.snapshot().current.counts == here.current.counts
        quantities = [Quantity(10), Quantity(18), Quantity(0.05), Quantity(32.38)]
        words = _words(here, ["London", "Sales Manager", "USA", "1"], quantities, [Time.year(1997), Time.day(1996, 7, 4)])
        assert _random((here, there), words, by_lane(30, 2_000, 2_000)) == []


def test_random_programs_as_sql_by_hand(server: str, tmp_path: Path) -> None:
    tables = sql_by_hand.shop(postgres=True)
    url = _database(server, "by_hand", ("SET TimeZone = 'UTC'", *sql_by_hand.statements(tables, postgres=True)))
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        # What a database is set to is not how its numbers are read.
        connection.execute("ALTER DATABASE by_hand SET extra_float_digits = 0")
        programs, ask = by_lane(80, 2_000, 20_000), lambda query: connection.execute(query.encode()).fetchall()
        assert sql_by_hand.different(url, tables, True, ask, tmp_path, programs) == []


_TYPES = (
    "CREATE TYPE \"Mood\" AS ENUM ('sad', 'so ''so', 'Ok')",
    "CREATE DOMAIN small AS numeric(6, 2)",
    "CREATE DOMAIN smaller AS small CHECK (VALUE < 100)",
    """CREATE TABLE "Typ Ä" (id bigint PRIMARY KEY, "day" date, "seen at" timestamptz, local timestamp, price smaller,
      anything numeric, half real, tags text[], doc jsonb, plain json, mood "Mood", ident uuid, "how long" interval,
      raw bytea, cash money, fixed char(5), ok boolean, word text COLLATE "en-x-icu", address inet)""",
    """INSERT INTO "Typ Ä" VALUES
      (1, '2020-02-29', '2020-01-01 01:30:00+02', '2020-01-01 10:00:00', 12.50, 0.1, 0.1, ARRAY['a', 'b c'], '{"k": [1, 2]}',
       '{"k":  1}', 'so ''so', 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11', '1 day 02:00:00', '\\xdeadbeef', '$1,234.50', 'ab',
       true, 'b', '10.0.0.0/8'),
      (2, 'infinity', '-infinity', NULL, NULL, 'NaN', 'NaN', '{}', NULL, NULL, 'Ok', NULL, NULL, NULL, NULL, '', false, 'B', NULL),
      (9007199254740992, '0044-03-15 BC', NULL, NULL, 99.99, 'Infinity', '-Infinity', NULL, NULL, NULL, NULL, NULL, NULL,
       NULL, NULL, NULL, NULL, 'a', NULL)""",
    'CREATE VIEW dear AS SELECT id, price FROM "Typ Ä" WHERE price > 50',
    'CREATE MATERIALIZED VIEW moods AS SELECT mood::text AS mood, count(*) AS n FROM "Typ Ä" WHERE mood IS NOT NULL GROUP BY 1',
    "CREATE MATERIALIZED VIEW empty AS SELECT 1 AS one WITH NO DATA",
    "CREATE TABLE measured (at date, n integer, PRIMARY KEY (at, n)) PARTITION BY RANGE (at)",
    "CREATE TABLE measured_1 PARTITION OF measured FOR VALUES FROM ('2020-01-01') TO ('2021-01-01')",
    "INSERT INTO measured VALUES ('2020-05-05', 1), ('2020-06-06', 2)",
    "CREATE TABLE hidden (id integer PRIMARY KEY)",
    "CREATE TABLE prices (p numeric(8, 2) PRIMARY KEY)",
    "INSERT INTO prices VALUES (1)",
    'CREATE TABLE seen (id integer PRIMARY KEY, hidden integer REFERENCES hidden, "of" numeric(8, 1) REFERENCES prices)',
    "INSERT INTO hidden VALUES (7)",
    "INSERT INTO seen VALUES (1, 7, 1)",
    "CREATE SCHEMA other",
    "CREATE TABLE other.seen (id integer PRIMARY KEY)",
    "CREATE ROLE reader LOGIN PASSWORD 'sekret9'",
    "GRANT USAGE ON SCHEMA other TO reader",
    'GRANT SELECT ON "Typ Ä", dear, moods, empty, measured, prices, seen, other.seen TO reader',
)


@pytest.fixture(scope="module")
def typed(server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, NativeSqlGraph]]:
    url = _database(server, "typed", _TYPES)
    given = tmp_path_factory.mktemp("typed") / "condgraph.toml"
    given.write_text('[tables.moods]\nkey = "mood"\n[tables.dear]\nkey = "id"\n[joins]\n"dear.id" = "Typ Ä.id"\n')
    address = url.replace("test:a%40secret@", "")
    with condgraph.open(address, user="reader", password="sekret9", mapping=given) as graph:
        assert isinstance(graph, NativeSqlGraph)
        yield url, graph


@pytest.mark.parametrize(
    ("column", "texts"),
    [
        ("day", ["-0043-03-15", "2020-02-29", "infinity"]), ("seen at", ["2019-12-31T23:30:00", "-infinity"]),
        ("local", ["2020-01-01T10:00:00"]), ("price", ["12.5", "99.99"]), ("anything", ["0.1", "Infinity"]),
        ("half", ["0.1", "-Infinity"]), ("tags", ['["a","b c"]', "[]"]), ("doc", ['{"k": [1, 2]}']), ("plain", ['{"k": 1}']),
        ("mood", ["Ok", "so 'so"]), ("ident", ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"]), ("how long", ["1 day 02:00:00"]),
        ("raw", ["0xDEADBEEF"]), ("cash", ["1234.5"]), ("fixed", ["ab"]), ("ok", ["false", "true"]), ("address", ["10.0.0.0/8"]),
    ],
)  # fmt: skip
def test_types(typed: tuple[str, NativeSqlGraph], column: str, texts: list[str]) -> None:
    _, graph = typed
    assert sorted(graph.kopl(f'FindAll() FilterConcept("Typ Ä") QueryAttr("{column}")').texts) == sorted(texts)


def test_views_partitions_and_what_is_left_out(typed: tuple[str, NativeSqlGraph]) -> None:
    _, graph = typed
    assert graph.kopl('FindAll() FilterConcept("Typ Ä") Relate(id, backward) QueryName()').texts == ["dear/9007199254740992"]
    assert graph.kopl("FindAll() FilterConcept(moods) FilterNum(n, 1, =) QueryName()").texts == ["moods/Ok", "moods/so 'so"]
    assert graph.kopl("FindAll() FilterConcept(measured) FilterNum(n, 1, >) QueryName()").texts == ["measured/2020-06-06+2"]
    # The number that refers is written in another way than the key.
    assert graph.kopl('Find("public.seen/1") Relate(of, forward) QueryName()').texts == ["prices/1.00"]
    assert graph.kopl('Find("public.seen/1") QueryAttr(hidden)').texts == ["7"]
    assert {
        "'public.hidden' may not be read by this user: left out",
        "'public.empty' is a materialised view that was not filled: left out",
        "'hidden' of 'public.seen' refers to 'public.hidden', which is left out: values",
        "whether the key 'id' of 'dear' is in each row, and is different in each, was not looked at",
    } <= set(graph.status().notes)
    # By code points, as everywhere: the language of the column has b before B.
    assert graph.query("MATCH (n:`Typ Ä`) WHERE n.word < 'a' RETURN n.word").texts == ["B"]
    assert graph.query("MATCH (n:`Typ Ä`) WHERE n.mood < 'a' RETURN n.mood").texts == ["Ok"]
    counted, local = graph.store.survey(), survey(graph.snapshot().current)
    assert counted["counts"] == local["counts"]


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ('FindAll() FilterConcept("Kunden Ä") FilterDate("geb. am", "1990-01-01", <) Count()',
         'SELECT count(*) FROM "Kunden Ä" WHERE "geb. am" < DATE \'1990-01-01\''),
        ('FindAll() Relate("order + код", forward) Count()',
         'SELECT count(*) FROM "Line+Item" WHERE ("order", "код") IN (SELECT "order", "код" FROM remark)'),
        ('Find("Ann") Relate(rated, forward) QFilterNum(stars, "4", >) Count()',
         'SELECT count(DISTINCT what) FROM rates JOIN "Kunden Ä" ON who = "Nr" WHERE "Full Name" = \'Ann\' AND stars > 4'),
    ],
)  # fmt: skip
def test_as_sql_by_hand(shop: tuple[Graph, NativeSqlGraph], server: str, text: str, query: str) -> None:
    answer = shop[1].kopl(text)
    with psycopg.connect(server.removesuffix("test") + "shop") as connection:
        assert [answer.texts] == [[str(count)] for (count,) in connection.execute(query.encode()).fetchall()]
        connection.execute(answer.sql.encode())
    assert answer.texts != ["0"]


def test_nothing_is_written(typed: tuple[str, NativeSqlGraph]) -> None:
    url, graph = typed
    dump = program("pg_dump")
    assert dump is not None

    def state() -> tuple[Any, Any]:
        text = subprocess.run([dump, url], check=True, capture_output=True, text=True).stdout
        with psycopg.connect(url) as connection:
            rows = connection.execute(
                "SELECT relname, n_tup_ins, n_tup_upd, n_tup_del, n_tup_hot_upd FROM pg_stat_all_tables"
                " WHERE schemaname !~ '^pg_(catalog|toast)' ORDER BY relid"
            ).fetchall()
            (temporary,) = connection.execute("SELECT temp_files FROM pg_stat_database WHERE datname = 'typed'").fetchone()
        # Dumps of newer servers begin with a word of their own each time.
        return re.sub(r"(?m)^\\(un)?restrict .*$", "", text), (rows, temporary)

    before = state()
    for text in ("FindAll() Count()", 'FindAll() FilterConcept("Typ Ä") FilterNum(price, 1, >) QueryName()'):
        answer = graph.kopl(text)
        assert answer.evidence is not None
        assert answer.explain()
    graph.schema()
    graph.snapshot()
    with pytest.raises(ReadOnlyError):
        graph.add([condgraph.Entity("x", "x")])
    with pytest.raises(ReadOnlyError):
        graph.delete()
    # The server says what connections did once they are idle for a second.
    time.sleep(1.2)
    assert state() == before


def _running(server: str) -> int:
    text = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND application_name = 'condgraph'"
    with psycopg.connect(server) as connection:
        ((count,),) = connection.execute(text).fetchall()
    return int(count)


_ONE = ("CREATE TABLE a (id integer PRIMARY KEY, name text)", "INSERT INTO a VALUES (1, 'one')")
_LONG = "CREATE VIEW long AS SELECT (a + b) % 7 AS id FROM generate_series(1, 300000) a, generate_series(1, 300000) b"


def test_deadlines_cancels_and_lost_connections(server: str) -> None:
    url = _database(
        server, "long", ("CREATE TABLE a (id integer PRIMARY KEY, name text)", "INSERT INTO a VALUES (1, 'one')", _LONG)
    )
    with condgraph.open(url) as graph:
        text = "FindAll() FilterConcept(long) Count()"
        with pytest.raises(DeadlineError):
            graph.kopl(text, timeout=0.3)
        assert _running(server) == 0
        caught: list[CondgraphError] = []
        event = Event()

        def ask() -> None:
            try:
                with within(None, event):
                    graph.kopl(text)
            except CondgraphError as error:
                caught.append(error)

        def started() -> Thread:
            thread = Thread(target=ask)
            thread.start()
            until = time.monotonic() + 20
            while not _running(server):
                assert time.monotonic() < until
                time.sleep(0.02)
            return thread

        thread = started()
        event.set()
        thread.join(20)
        assert isinstance(caught[0], CancelledError)
        assert _running(server) == 0
        event.clear()
        thread = started()
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'condgraph'")
        thread.join(20)
        assert isinstance(caught[1], StoreError)
        assert "has lost the connection" in str(caught[1])
        assert "secret" not in f"{caught[1]}{caught[1].hint}{graph!r}{graph.store!r}{graph.status()}"
        # The next call connects again, and reads no view that it does not need.
        assert graph.kopl('Find("one") QueryName()').texts == ["one"]


def test_an_idle_connection_that_was_lost_is_opened_again(server: str) -> None:
    url = _database(server, "idle", _ONE)
    with condgraph.open(url) as graph:
        assert graph.kopl('Find("one") QueryName()').texts == ["one"]
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'condgraph'")
        assert graph.kopl('Find("one") QueryName()').texts == ["one"]


def test_readings(server: str, tmp_path: Path) -> None:
    (tmp_path / "map.toml").write_text(MIXED_MAP)
    with condgraph.open(_database(server, "mixed", MIXED), mapping=tmp_path / "map.toml") as graph:
        check_readings(graph)


def test_a_load_keeps_the_types_of_columns(server: str) -> None:
    """A decimal comma in a column of texts, and times that are few among infinity and years BC, change no other column."""
    rows = (
        "CREATE DOMAIN amount AS numeric(9, 3)",
        "CREATE DOMAIN price AS amount",
        "CREATE TABLE a (id integer PRIMARY KEY, n numeric(9, 3), f float8, d price, day date, at timestamptz, word text, t time)",
        "INSERT INTO a VALUES (1, 1.234, 1e308, 1.234, 'infinity', '-infinity', '12,5', '09:00'),"
        " (2, 2.345, -2.345, 2.345, '0044-03-15 BC', '0044-03-15 10:00:00+00 BC', '1,75', '23:59:59'),"
        " (3, NULL, 'NaN', NULL, '2020-01-01', 'infinity', NULL, NULL)",
    )
    url, loaded = _database(server, "kept", rows), condgraph.open("memory:")
    loaded.load(url)
    with condgraph.open(url) as graph:
        assert [float(value.number) for value in loaded.kopl("FindAll() QueryAttr(f)").values] == [-2.345, 1e308]
        day = [Quantity(32400, "second of the day"), Quantity(86399, "second of the day")]
        assert loaded.kopl("FindAll() QueryAttr(t)").values == day
        for column in ("n", "d", "day", "at"):
            program = f"FindAll() QueryAttr({column})"
            assert loaded.kopl(program).values == graph.kopl(program).values


def test_numbers_beyond_floats(server: str) -> None:
    rows = (
        "CREATE TABLE a (id integer PRIMARY KEY, long numeric, tiny numeric, wide numeric(30, 2))",
        "INSERT INTO a VALUES (1, 1e400, 0.1234567890123456789, 12345678901234567890.25)",
        "INSERT INTO a VALUES (2, 1e20, 0.5, 19.99)",
    )
    with condgraph.open(_database(server, "large", rows)) as graph:
        with pytest.raises(StoreError, match="long: a number is too large"):
            graph.kopl("FindAll() QueryAttr(long)")
        assert graph.kopl("FindAll() QueryAttr(tiny)").texts == ["0.1234567890123456789", "0.5"]
        assert graph.kopl("FindAll() QueryAttr(wide)").texts == ["19.99", "12345678901234567890.25"]
        assert graph.kopl("FindAll() FilterNum(wide, 12345678901234567890.2, >) Count()").texts == ["1"]
        assert graph.kopl('Find("a/2") QueryAttr(long)').texts == ["100000000000000000000"]


def test_integers_inexact_as_floats(server: str) -> None:
    numbers = long_numbers("BIGINT")
    rows = [f"({at}, {number})" for at, number in enumerate(numbers)]
    made = ("CREATE TABLE a (id integer PRIMARY KEY, n bigint)", f"INSERT INTO a VALUES {', '.join(rows)}")
    with condgraph.open(_database(server, "whole", made)) as graph:
        check_long_numbers(graph, numbers)


def test_wrong_logins_and_missing_databases(server: str) -> None:
    for address in (server.replace("/test", "/missing"), "postgresql://test:a%40secret@127.0.0.1:1/test"):
        with pytest.raises(StoreError) as caught:
            condgraph.open(address)
        assert "secret" not in f"{caught.value}{caught.value.hint}"
