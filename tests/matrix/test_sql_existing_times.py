"""True at a time, in tables of others: in DuckDB and PostgreSQL as in a load of the same tables, and as SQL by hand."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import condgraph
from condgraph import Graph
from condgraph.engine.errors import CondgraphError, LoadError, OptionError, UnsupportedError
from condgraph.remote_sql import NativeSqlGraph
from tests.matrix.test_sql_existing import random_rows
from tests.support import timed_tables
from tests.support.differential import full_message
from tests.support.lanes import by_lane
from tests.support.postgres import postgres
from tests.support.timed_programs import Maker
from tests.support.true_at import disagreements

Pair = tuple[Graph, NativeSqlGraph]


def _pair(place: str, folder: Path) -> Pair:
    """The tables as they are, and as a load of them has them."""
    with sqlite3.connect(folder / "shop.db") as lite:
        for statement in timed_tables.STATEMENTS:
            lite.execute(statement)
    lite.close()
    there = condgraph.open(place, mapping=timed_tables.written(folder))
    assert isinstance(there, NativeSqlGraph)
    declared = folder / "condgraph.toml"
    declared.write_text(there.mapping_file(), encoding="utf-8")
    here = condgraph.open("memory:")
    here.load(folder / "shop.db", declaration=declared, name="shop", on_error="skip")
    return here, there


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    folder = tmp_path_factory.mktemp("timed")
    with duckdb.connect(str(folder / "shop.duckdb")) as database:
        for statement in timed_tables.STATEMENTS:
            database.execute(statement)
    pair = _pair(f"duckdb:///{folder}/shop.duckdb", folder)
    yield pair
    pair[1].close()


@pytest.fixture(scope="module")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with postgres(tmp_path_factory.mktemp("server")) as url:
        yield url


@pytest.fixture(scope="module")
def postgres_pair(postgres_server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        for statement in timed_tables.STATEMENTS:
            connection.execute(statement.encode())
    pair = _pair(postgres_server, tmp_path_factory.mktemp("timed"))
    yield pair
    pair[1].close()


def _check(pair: Pair, number: int) -> None:
    """Random programs at random times: as in a graph that was cut by hand."""
    here, there = pair
    assert set(there.status().notes) >= timed_tables.NOTES
    local, counts = there.snapshot().current, here.current.counts
    assert {**local.counts, "sources": 0} == {**counts, "sources": 0}
    maker = Maker(here.current, 1)
    count, wrong = disagreements(
        here, [maker.program() for _ in range(number)], [maker.time() for _ in range(8)], [there], each=number // 4, lenient=True
    )
    assert not wrong, wrong
    assert count == 16 * (number // 4)
    for text in ("FindAll() QFilterYear(start time, 1984, <) Count()", "Find(Tea) Relate(owns, backward) QueryName()"):
        for time in (None, "1984", "1990-01-01"):
            answers = [_shown(graph, text, time) for graph in pair]
            assert answers[0] == answers[1], (text, time)


def _said(one: Any) -> str:
    """A statement without the numbers of rows, which a database does not have."""
    return f"{one.subject.id} {one.predicate} {getattr(one.object, 'id', one.object)}"


def _shown(graph: Graph, text: str, time: str | None) -> Any:
    try:
        answer = graph.query(text, at=time)
    except CondgraphError as error:
        return full_message(error)
    evidence = sorted(f"{_said(one)} {one.qualifiers}" for one in answer.evidence)
    return answer.texts, answer.warnings, evidence, answer.check()


def test_random_programs_at_random_times(pair: Pair) -> None:
    _check(pair, by_lane(15, 2_000, 10_000))


@pytest.mark.xdist_group("postgres")
def test_random_programs_on_postgres(postgres_pair: Pair) -> None:
    _check(postgres_pair, by_lane(15, 1_000, 5_000))
    assert postgres_pair[1].query("FindAll() Relate(owns, forward) Count()", at="1984-05-03").texts == ["4"]


@pytest.mark.xdist_group("postgres")
def test_infinite_times_on_postgres(postgres_server: str, tmp_path: Path) -> None:
    psycopg, given = pytest.importorskip("psycopg"), tmp_path / "given.toml"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(b"CREATE DATABASE ugly")
    place = postgres_server.removesuffix("test") + "ugly"
    with psycopg.connect(place, autocommit=True) as connection:
        connection.execute(b"CREATE TABLE a (id int PRIMARY KEY, f date, t timestamptz, y bigint)")
        connection.execute(
            b"INSERT INTO a VALUES (1, '-infinity', '2020-01-01 01:00:00+02', 2019), (2, '2020-01-01', 'infinity', -44), "
            b"(3, 'infinity', '-infinity', 9223372036854775807), (4, '2020-01-02', '2020-01-01 12:00:00+00', 0)"
        )
    asked = "FindAll() QueryAttr(id)"
    given.write_text('[tables.a]\ntimes = "[f, t)"\n')
    with condgraph.open(place, mapping=given) as graph:
        assert graph.query(asked, at="2019-12-31").texts == ["1", "3"]
        assert graph.query(asked, at="2019-12-31T23:00:00").texts == ["3"]
        assert graph.query(asked, at="2020-01-01").texts == ["2", "3"]
        assert graph.query(asked, at="2020-01-01", certain=True).texts == ["3"]
    given.write_text('[tables.a]\ntimes = "y"\n')
    with condgraph.open(place, mapping=given) as graph:
        assert graph.query(asked, at="-0044").texts == ["2", "3"]
        assert graph.query(asked, at="2019").texts == ["1", "3"]


def test_random_rows(pair: Pair) -> None:
    assert random_rows(pair[1], range(by_lane(15, 500, 5_000))) == []


def test_as_sql_by_hand(pair: Pair) -> None:
    place = str(pair[1].place).removeprefix("duckdb:///")
    with duckdb.connect(place, read_only=True) as database:
        numbers = timed_tables.by_hand(lambda query: int(database.execute(query).fetchall()[0][0]))
    for (program, time, certain), number in numbers.items():
        assert number > 0
        assert pair[1].query(program, at=time, certain=certain).texts == [str(number)], (program, time, certain)


def test_timelines_views_and_differences(pair: Pair) -> None:
    def shown(graph: Graph) -> Any:
        line = graph.timeline(predicate="owns")
        changed = graph.difference("1983", "1985-03-01")
        return (
            sorted(f"{one.subject.id} {one.object.id} {one.statement.qualifiers} {one.least} {one.most}" for one in line),
            [one.object.id for one in line.untimed],
            [sorted(map(_said, some)) for some in (changed.gone, changed.new)],
            graph.at("1984").query("FindAll() FilterConcept(shift) QueryAttr(pay)").texts,
            graph.query("MATCH (a)-[r:owns]->(b) WHERE allen(r, 1984) = 'contains' RETURN b.name ORDER BY b.name").texts,
            graph.query("FindAll() Relate(owns, forward) QueryName()", between=("1984-06-15", None), certain=True).texts,
            graph.query("FindAll() QueryAttr(count)", at="1984-05-03").texts,
        )

    here, there = map(shown, pair)
    assert here == there
    assert here[0]
    assert here[1] == ["good/c"]
    assert "Preis Ä/5 good good/c" in here[2][0]


def test_a_program_is_one_query_and_has_one_text(pair: Pair) -> None:
    there = pair[1]
    asked, read = list[Any](), there.store.engine.read
    there.store.engine.read = lambda query: (asked.append(query), read(query))[1]  # type: ignore[method-assign]
    try:
        for year in range(1980, 1990):
            there.query("FindAll() FilterNum(price, 4, >) Count()", at=str(year))
    finally:
        del there.store.engine.read
    assert len(asked) == 10
    before = len(there.store._plans._templates)
    there.query("FindAll() FilterNum(price, 4, >) Count()", at="1999")
    assert len(there.store._plans._templates) == before


def test_ugly_times(tmp_path: Path) -> None:
    place, given = tmp_path / "ugly.duckdb", tmp_path / "given.toml"
    with duckdb.connect(str(place)) as database:
        database.execute("CREATE TABLE a (id INTEGER PRIMARY KEY, f TIMESTAMPTZ, t TIMESTAMPTZ, ns TIMESTAMP_NS)")
        database.execute("SET TimeZone = 'America/New_York'")
        database.execute(
            "INSERT INTO a VALUES (1, '2020-01-01 01:30:00+02', 'infinity', '2020-01-01 10:00:00'), (2, '-infinity', "
            "'2020-01-01 00:00:00+00', NULL), (3, 'infinity', NULL, NULL), (4, '2020-01-01 00:00:00.7+00', "
            "'2020-01-01 00:00:00.2+00', NULL)"
        )
        database.execute("CREATE TABLE b (id INTEGER PRIMARY KEY, y BIGINT, u UBIGINT)")
        database.execute(
            "INSERT INTO b VALUES (1, -9223372036854775808, 18446744073709551615), (2, 0, 0), (3, 9223372036854775807, 5)"
        )

    def of(times: str, table: str = "a") -> Any:
        given.write_text(f"[tables.{table}]\ntimes = {times!r}\n")
        return condgraph.open(f"duckdb:///{place}", mapping=given)

    def at(graph: Any, time: str, certain: bool = False) -> list[str]:
        return graph.query("FindAll() FilterConcept(a) QueryAttr(id)", at=time, certain=certain).texts  # type: ignore[no-any-return]

    with of("[f, t)") as graph:
        assert at(graph, "2019-12-31") == ["1", "2", "3"]
        assert at(graph, "2020-01-01") == ["1", "3"]
        assert at(graph, "2019-12-31T23:29:59") == ["2", "3"]
        assert at(graph, "2019-12-31T23:30:00") == ["1", "2", "3"]
        assert at(graph, "2020", certain=True) == ["3"]
        assert any(note.startswith("1 row of 'a' hold at no time") for note in graph.status().notes)
    with of("[f, t]") as graph:
        assert at(graph, "2020-01-01T00:00:00") == ["1", "2", "3", "4"]
    with of("ns") as graph:
        assert at(graph, "2020-01-01T10:00:00") == ["1", "2", "3", "4"]
        assert at(graph, "2500") == ["2", "3", "4"]
        assert graph.query("FindAll() FilterDate(ns, 2500-01-01, <) Count()").texts == ["1"]
    with of("[y, u]", "b") as graph:
        assert graph.query("FindAll() FilterConcept(b) QueryAttr(id)", at="0005").texts == ["1", "3"]


def test_columns_that_cannot_be_times(tmp_path: Path) -> None:
    place, given = tmp_path / "wrong.duckdb", tmp_path / "given.toml"
    with duckdb.connect(str(place)) as database:
        database.execute("CREATE TABLE a (id INTEGER PRIMARY KEY, seen VARCHAR, b INTEGER REFERENCES a (id), x DOUBLE, d DATE)")
        database.execute('CREATE TABLE r (a INTEGER REFERENCES a (id), b INTEGER REFERENCES a (id), "start time" DATE)')

    def of(text: str) -> Any:
        given.write_text(text)
        return condgraph.open(f"duckdb:///{place}", mapping=given)

    for times, message in (
        ("seen", "a.seen is VARCHAR in the database, and cannot say when a row holds"), ("[b, d]", "a.b is a reference"),
        ("[x, ]", "a.x is DOUBLE"), ("[d, e)", "names the column 'e', which does not exist"),
        ("d, e", "does not say whether the end is included"),
    ):  # fmt: skip
        with pytest.raises((LoadError, OptionError), match=message):
            of(f"[tables.a]\ntimes = {times!r}\n")
    with pytest.raises(UnsupportedError, match="'start time' as a qualifier of 'r'"):
        of('[tables.r]\nrelation = true\ntimes = "[start time, ]"\n')
