"""A file of DuckDB with tables that somebody else made answers as a load of the same tables with the same declaration."""

from __future__ import annotations

import hashlib
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
import sqlglot
from typer.testing import CliRunner

import condgraph
from condgraph import Graph
from condgraph.cli.app import app
from condgraph.engine.errors import (
    CondgraphError,
    DeadlineError,
    LoadError,
    OptionError,
    ReadOnlyError,
)
from condgraph.engine.store import plan_answer
from condgraph.engine.values import collapse
from condgraph.overview.survey import survey
from condgraph.remote_sql import NativeSqlGraph
from tests.support.differential import full_message
from tests.support.graphs import Dice
from tests.support.lanes import by_lane
from tests.support.long_numbers import check_long_numbers, long_numbers
from tests.support.programs import as_text, program
from tests.support.row_plans import Maker
from tests.support.sql_by_hand import different, shop, statements
from tests.support.ugly_shop import ROW_WORDS, STATEMENTS, shop_words


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Graph, NativeSqlGraph]]:
    folder = tmp_path_factory.mktemp("existing")
    with duckdb.connect(str(folder / "shop.duckdb")) as duck, sqlite3.connect(folder / "shop.db") as lite:
        for statement in STATEMENTS:
            duck.execute(statement)
            lite.execute(statement)
        # SQLite has numbers for truth values.
        lite.execute("UPDATE \"order\" SET ok = CASE ok WHEN 1 THEN 'true' WHEN 0 THEN 'false' END")
    lite.close()
    (folder / "given.toml").write_text('[tables.rates]\nrelation = "rated"\n')
    there = condgraph.open(f"duckdb:///{folder}/shop.duckdb", mapping=folder / "given.toml")
    assert isinstance(there, NativeSqlGraph)
    declared = folder / "condgraph.toml"
    declared.write_text(there.mapping_file(), encoding="utf-8")
    here = condgraph.open("memory:")
    # A row of a table of relations that has no end is none in either.
    here.load(folder / "shop.db", declaration=declared, name="shop", on_error="skip")
    yield here, there
    there.close()


def _result(graph: Graph, text: str) -> tuple[list[str], list[str], str]:
    """Values without the numbers of rows, which a database does not have, and texts, or the error. Loads show white space as it
    was.
    """
    try:
        answer = graph.kopl(text)
        return [re.sub(r"row=\d+", "row=0", repr(value)) for value in answer.values], list(map(collapse, answer.texts)), ""
    except CondgraphError as error:
        return [], [], full_message(error)


def test_random_programs(pair: tuple[Graph, NativeSqlGraph]) -> None:
    here, there = pair
    local = there.snapshot()
    assert local.current.counts == here.current.counts
    words, different = shop_words(here), []
    for number in range(by_lane(100, 2_000, 20_000)):
        text = as_text(program(Dice(number), words=words, wrong=number % 5 == 0))
        answers = [_result(graph, text) for graph in (here, there)]
        if answers[0] != answers[1]:
            different.append((text, *map(str, answers)))
    assert not different, different[:3]


def random_rows(there: NativeSqlGraph, seeds: range) -> list[Any]:
    """The random plans over rows of these seeds that answer otherwise than in process."""

    def outcome(store: Any, plan: Any) -> list[Any]:
        try:
            answer = plan_answer(store, plan)
        except CondgraphError as error:
            return [full_message(error)]
        rows = [[re.sub(r"row=\d+", "row=0", repr(value)) for value in row] for row in answer.values]
        evidence = sorted(f"{item.subject.id} {item.predicate} {item.object} {item.qualifiers}" for item in answer.evidence)
        return [answer.columns, rows, answer.cells, sorted(entity.id for entity in answer.entities), evidence]

    local, different = there.snapshot()._store_of(None), []
    for seed in seeds:
        plan = Maker(seed, ROW_WORDS).plan()
        answers = [outcome(store, plan) for store in (local, there.store)]
        if answers[0] != answers[1]:
            different.append((seed, plan, *answers))
    return different


def test_random_programs_as_sql_by_hand(tmp_path: Path) -> None:
    tables, place = shop(postgres=False), tmp_path / "shop.duckdb"
    with duckdb.connect(str(place)) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for statement in statements(tables, postgres=False):
            connection.execute(statement)
    with duckdb.connect(str(place), read_only=True) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        programs, ask = by_lane(80, 2_000, 20_000), lambda query: connection.execute(query).fetchall()
        assert different(f"duckdb:///{place}", tables, False, ask, tmp_path, programs) == []


@pytest.mark.parametrize(
    "query",
    [
        "MATCH (n:order) RETURN count(*)", "MATCH (n:order) RETURN count(DISTINCT n) AS n, count(*) AS m",
        "MATCH (n) RETURN count(n)", "MATCH (n:order:notes) RETURN count(*)", "MATCH (n:order) RETURN count(*) + 1",
        "MATCH (n:order) RETURN count(*) SKIP 1",
    ],
)  # fmt: skip
def test_counts_run_on_the_server(pair: tuple[Graph, NativeSqlGraph], query: str) -> None:
    here, there = (graph.query(query) for graph in (pair[0], pair[1]))
    assert (there.columns, there.values, there.texts, there.warnings) == (here.columns, here.values, here.texts, here.warnings)
    assert list(map(str, there.trace)) == list(map(str, here.trace))
    assert len(there.evidence) == len(here.evidence)
    if "SKIP" not in query:
        assert len(pair[1].store.engine.read(there.sql)) == 1


def test_random_rows(pair: tuple[Graph, NativeSqlGraph]) -> None:
    assert random_rows(pair[1], range(by_lane(40, 1_000, 10_000))) == []


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ('FindAll() FilterConcept(order) FilterNum(total, "10", >) Count()', 'SELECT count(*) FROM "order" WHERE total > 10'),
        ('Find("Tea") Relate(Parent, backward) Count()',
         'SELECT count(*) FROM "товар" AS a JOIN "товар" AS b ON a."Parent" = b."код" WHERE b.name = \'Tea\''),
        ('FindAll() FilterConcept("Kunden Ä") FilterDate("geb. am", "1990-01-01", <) Count()',
         'SELECT count(*) FROM "Kunden Ä" WHERE "geb. am" < DATE \'1990-01-01\''),
        ('FindAll() FilterConcept("Line+Item") FilterNum(n, "1", >) Count()', 'SELECT count(*) FROM "Line+Item" WHERE n > 1'),
        ('FindAll() Relate("order + код", forward) Count()',
         'SELECT count(*) FROM "Line+Item" WHERE ("order", "код") IN (SELECT ("order", "код") FROM remark)'),
        ('Find("Ann") Relate(rated, forward) QFilterNum(stars, "4", >) Count()',
         'SELECT count(DISTINCT what) FROM rates JOIN "Kunden Ä" ON who = "Nr" WHERE "Full Name" = \'Ann\' AND stars > 4'),
    ],
)  # fmt: skip
def test_as_sql_by_hand(pair: tuple[Graph, NativeSqlGraph], text: str, query: str) -> None:
    _, there = pair
    answer = there.kopl(text)
    ((count,),) = duckdb.connect(str(there.place).removeprefix("duckdb:///"), read_only=True).execute(query).fetchall()
    assert answer.texts == [str(count)]
    assert count > 0


def test_sql_and_evidence(pair: tuple[Graph, NativeSqlGraph]) -> None:
    _, there = pair
    answer = there.kopl('Find("Jam") Relate(Parent, forward) QueryName()')
    assert answer.texts == ["Tea"]
    rows = duckdb.connect(str(there.place).removeprefix("duckdb:///"), read_only=True).execute(answer.sql).fetchall()
    assert [row[1] for row in rows] == ["Tea"]
    (statement,) = [item for item in answer.evidence if item.predicate == "Parent"]
    assert (statement.subject.id, statement.object.id) == ("товар/c\\d", "товар/a+b")
    assert statement.sources[0][0].name == "shop/товар"
    assert answer.check()
    assert answer.sql in there.kopl('Find("Jam") Relate(Parent, forward) QueryName()').explain()


def test_a_query_reads_the_tables_that_it_needs(pair: tuple[Graph, NativeSqlGraph]) -> None:
    _, there = pair
    for text, tables in (
        ('Find("Jam") Relate(Parent, forward) FilterConcept("товар") QueryName()', {"товар"}),
        ('FindAll() FilterConcept(order) FilterNum(total, "10", >) Count()', {"order"}),
        ('Find("Ann") Relate(rated, forward) QFilterNum(stars, "4", >) QueryName()', {"Kunden Ä", "rates", "товар"}),
        ("FindAll() FilterConcept(order) SelectAmong(total, largest)", {"order"}),
    ):
        query = sqlglot.parse_one(there.kopl(text).sql, dialect="duckdb")
        assert {table.name for table in query.find_all(sqlglot.exp.Table)} == tables, text


def test_texts_of_queries_are_filled_with_other_values(pair: tuple[Graph, NativeSqlGraph]) -> None:
    _, there = pair
    asked = 'FindAll() FilterConcept("Kunden Ä") FilterStr(select, {}) QueryName()'
    values = ["x'y", 'a\\"b', "'; DROP TABLE likes; --", "condgraph0:text:0;", "(none)"]
    answers = [there.kopl(asked.format(f'"{value}"')) for value in values]
    assert [answer.texts for answer in answers] == [["Ann"], ["Ann"], [], [], ["Kunden Ä/4"]]
    assert "'''; DROP TABLE likes; --'" in answers[2].sql
    asked = 'FindAll() FilterConcept(order) FilterDate(placed, "{}", >) Count()'
    days = ["2020-01-05", "2020-01-04", "2021-07-09", "9999-12-31", "0001-01-01"]
    assert [there.kopl(asked.format(day)).texts for day in days] == [["2"], ["3"], ["0"], ["0"], ["3"]]


def test_nothing_is_written(pair: tuple[Graph, NativeSqlGraph]) -> None:
    _, there = pair
    path = Path(str(there.place).removeprefix("duckdb:///"))
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    with pytest.raises(ReadOnlyError):
        there.add([condgraph.Entity("x", "x")])
    there.kopl("FindAll() Count()")
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before


def test_survey_equals_that_of_a_snapshot(pair: tuple[Graph, NativeSqlGraph]) -> None:
    _, there = pair
    counted, local = there.store.survey(), survey(there.snapshot().current)
    assert {name: counted[name] for name in ("counts", "sources")} == {name: local[name] for name in ("counts", "sources")}
    # Of members and statements others may be shown.
    assert [item[:4] for item in counted["kinds"]] == [item[:4] for item in local["kinds"]]
    assert [item[:6] for item in counted["predicates"]] == [item[:6] for item in local["predicates"]]
    for name in ("subjects", "objects"):
        assert [part.tolist() for part in counted[name]] == [part.tolist() for part in local[name]]
    examples = {predicate: shown for predicate, *_, shown in counted["predicates"]}
    assert examples["Parent"] == [["Jam", "Tea"], ["Tea", "Tea"], ["Хлеб", "Jam"]]
    assert '"Kunden Ä" 6, e.g. "Ann"' in str(there.schema())


def test_what_is_refused(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "bare.duckdb")) as connection:
        connection.execute("CREATE TABLE a (b INTEGER)")
    with pytest.raises(OptionError, match="nor a table with a key"):
        condgraph.open(f"duckdb:///{tmp_path}/bare.duckdb")
    (tmp_path / "wrong.toml").write_text('[tables.a]\nkey = "b"\ntypes = { b = "time" }\n')
    with pytest.raises(LoadError, match="cannot be read as time"):
        condgraph.open(f"duckdb:///{tmp_path}/bare.duckdb", mapping=tmp_path / "wrong.toml")


def test_what_is_left_out_is_noted(tmp_path: Path) -> None:
    place, given = tmp_path / "loose.duckdb", tmp_path / "given.toml"
    with duckdb.connect(str(place)) as connection:
        connection.execute('CREATE TABLE a (k INTEGER, name VARCHAR); CREATE TABLE "{}" (q INTEGER)')
        connection.execute("CREATE TABLE b (x INTEGER PRIMARY KEY, a INTEGER); CREATE VIEW v AS FROM b")
        connection.execute("CREATE TABLE rel (a INTEGER, b INTEGER REFERENCES b, z VARCHAR)")
        connection.execute("INSERT INTO a VALUES (1, 'a'), (NULL, 'b'); INSERT INTO b VALUES (5, 1), (6, 99), (7, NULL)")
        connection.execute("INSERT INTO rel VALUES (1, 5, 'u'), (99, 5, 'v'), (NULL, 6, 'w'), (1, NULL, NULL)")
    given.write_text(
        '[tables.a]\nkey = "k"\n[tables.v]\nkey = "x"\n[tables.rel]\nrelation = "rel"\n[single_valued]\nname = true\n'
        '[joins]\n"b.a" = "a.k"\n"rel.a" = "a.k"\n"v.a" = "a.k"\n'
    )
    with condgraph.open(f"duckdb:///{place}", mapping=given) as graph:
        assert set(graph.status().notes[1:]) == {
            "`single_valued` of the mapping file is not used: conflicts are looked for in a graph that is loaded",
            "whether the key 'x' of 'v' is in each row, and is different in each, was not looked at",
            "'a' of 'v' that lead to no row of 'a' are left out, and were not counted",
            "'{}' has no key: its rows are numbered as they lie; a mapping file gives a key",
            "1 row of 'a' left out: no key 'k'",
            "1 row of 'b' without 'a': no row of 'a' has that key",
            "3 rows of 'rel' left out: an end of the relation is missing",
        }
        assert graph.kopl("FindAll() FilterConcept(a) QueryName()").texts == ["a"]
        assert graph.kopl("FindAll() Relate(a, backward) QueryName()").texts == ["b/5", "v/5"]
        assert graph.kopl("FindAll() Relate(rel, backward) QueryName()").texts == ["a"]
        with pytest.raises(ReadOnlyError, match="did not write"):
            graph.delete()
    with duckdb.connect(str(place)) as connection:
        connection.execute("INSERT INTO a VALUES (1, 'c')")
    with pytest.raises(LoadError, match="1 row of 'a' with the key 'k' of another row"):
        condgraph.open(f"duckdb:///{place}", mapping=given)


def test_names_and_times_that_are_in_the_way(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "names.duckdb")) as connection:
        connection.execute('CREATE TABLE a ("Row" INTEGER, row_ INTEGER); INSERT INTO a VALUES (7, 7), (7, 7)')
        connection.execute('CREATE TABLE "a/b" (id INTEGER PRIMARY KEY, seen TIMESTAMP)')
        connection.execute("INSERT INTO \"a/b\" VALUES (1, '2020-01-01 10:00:00.5'), (2, '2020-01-01'), (3, 'infinity'), (4, NULL)")
    with condgraph.open(f"duckdb:///{tmp_path}/names.duckdb") as graph:
        assert set(graph.status().notes[1:]) == {
            "'a' has no key: its rows are numbered as they lie; a mapping file gives a key",
            "1 row of 'a/b' without the fraction of a second in 'seen'",
        }
        assert graph.kopl("FindAll() FilterConcept(a) QueryName()").texts == ["a/1", "a/2"]
        assert graph.kopl("FindAll() QueryAttr(seen)").texts == ["2020-01-01T00:00:00", "2020-01-01T10:00:00", "infinity"]


def test_infinite_numbers_and_times_are_left_out_with_a_warning(tmp_path: Path) -> None:
    """As in process, where they are texts."""
    with duckdb.connect(str(tmp_path / "far.duckdb")) as connection:
        connection.execute("CREATE TABLE a (id INTEGER PRIMARY KEY, x DOUBLE, seen DATE)")
        connection.execute(
            "INSERT INTO a VALUES (1, 1.5, '2020-01-01'), (2, 'inf', 'infinity'), (3, '-inf', NULL), (4, 'nan', NULL)"
        )
        connection.execute("CREATE VIEW v AS FROM a")
    with condgraph.open(f"duckdb:///{tmp_path}/far.duckdb") as graph:
        copy = graph.snapshot()
        for program, left, kind in (
            ("FilterNum(x, 0, >)", "2 values (text)", "quantity and are"),
            ("FilterYear(seen, 1900, >)", "1 value (text)", "time and is"),
        ):
            text = f"FindAll() FilterConcept(a) {program} Count()"
            said = f"{left} cannot be compared with a {kind} left out"
            assert graph.kopl(text).texts == ["1"]
            assert [answer.kopl(text).warnings for answer in (graph, copy)] == [[said]] * 2
        notes = graph.status().notes
        assert "infinite numbers and times of 'v' were not looked for; tests leave them out without a warning" in notes


@pytest.mark.parametrize("key", ["b", "b/1"])
def test_colliding_ids_are_refused(tmp_path: Path, key: str) -> None:
    with duckdb.connect(str(tmp_path / "meet.duckdb")) as connection:
        connection.execute('CREATE TABLE a (k VARCHAR PRIMARY KEY); CREATE TABLE "a/b" (id INTEGER PRIMARY KEY)')
        connection.execute("INSERT INTO a VALUES ('c'), (?)", [key])
    with pytest.raises(LoadError, match="1 row of 'a' with the id of 'a/b' or of one of its rows"):
        condgraph.open(f"duckdb:///{tmp_path}/meet.duckdb")


#: Numbers and texts that others of their column say how to read, as columns of rows and as qualifiers.
MIXED = (
    "CREATE TABLE item (id INTEGER PRIMARY KEY, a DOUBLE PRECISION, b DOUBLE PRECISION, c DECIMAL(9, 2), d TEXT, e TEXT, f TEXT, "
    "g DOUBLE PRECISION)",
    "INSERT INTO item VALUES (1, 1.5, 1, 2, 'yes', 'true', 'x', 'infinity'), (2, 2, 2, 3, 'true', 'false', 'y', 2), "
    "(3, 3, 9.3e18, 3.25, 'true', 'true', 'z', 3), (4, 0.5, NULL, 3.25, ' ', NULL, 'true', 4)",
    "CREATE TABLE pair (a INTEGER REFERENCES item(id), b INTEGER REFERENCES item(id), w DOUBLE PRECISION, t TEXT, "
    "PRIMARY KEY (a, b))",
    "INSERT INTO pair VALUES (1, 2, 2.5, 'no'), (2, 3, 2, 'false'), (3, 4, 4, 'true')",
)
MIXED_MAP = '[tables.pair]\nrelation = "pair"\n'


def check_readings(there: Graph) -> None:
    """Each cell is read as it is among all of its column, though only its row is fetched, with the same evidence."""
    here = there.snapshot()
    for ident in range(1, 5):
        texts = [f"MATCH (n) WHERE id(n) = 'item/{ident}' RETURN n.{column}" for column in "abcdefg"]
        texts += [f"MATCH (n)-[r:pair]->(m) WHERE id(n) = 'item/{ident}' RETURN r.w, r.t, m.d, m.a"]
        texts += [f"MATCH (n:item) WHERE n.id = {ident} RETURN n.a + 0, n.d = 'true'"]
        for text in texts:
            answers = [graph.cypher(text) for graph in (here, there)]
            assert (answers[0].values, answers[0].texts) == (answers[1].values, answers[1].texts), text
            assert {*map(str, answers[0].evidence)} == {*map(str, answers[1].evidence)}, text
            assert answers[1].check() == answers[0].check(), text


def test_readings(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "mixed.duckdb")) as connection:
        for statement in MIXED:
            connection.execute(statement)
    (tmp_path / "map.toml").write_text(MIXED_MAP)
    with condgraph.open(f"duckdb:///{tmp_path}/mixed.duckdb", mapping=tmp_path / "map.toml") as graph:
        check_readings(graph)


def test_numbers_beyond_floats(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "big.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE a (id INTEGER PRIMARY KEY, fits BIGINT, price DECIMAL(18, 2), big DECIMAL(18, 2), most HUGEINT)"
        )
        connection.execute(f"INSERT INTO a VALUES (1, 9007199254740992, 19.99, 1234567890123456.78, {2**127 - 1}), (2, 1, 1, 1, 1)")
    with condgraph.open(f"duckdb:///{tmp_path}/big.duckdb") as graph:
        assert graph.kopl('Find("a/1") QueryAttr(fits)').texts == ["9007199254740992"]
        assert graph.kopl('Find("a/1") QueryAttr(price)').texts == ["19.99"]
        assert graph.kopl(f"FindAll() FilterNum(most, {2**127 - 2}, >) QueryAttr(most)").texts == [str(2**127 - 1)]
        assert graph.cypher("MATCH (n:a) WHERE n.id = 2 RETURN n.big").texts == ["1"]
        assert graph.kopl("FindAll() QueryAttr(big)").texts == ["1", "1234567890123456.78"]
        assert graph.kopl("FindAll() FilterNum(big, 1234567890123456.77, >) Count()").texts == ["1"]
        assert graph.kopl("FindAll() FilterNum(big, 1234567890123456.79, >) Count()").texts == ["0"]


@pytest.mark.parametrize("kind", ["BIGINT", "HUGEINT", "UBIGINT"])
def test_integers_inexact_as_floats(tmp_path: Path, kind: str) -> None:
    numbers = long_numbers(kind)
    with duckdb.connect(str(tmp_path / "long.duckdb")) as connection:
        connection.execute(f"CREATE TABLE a (id INTEGER PRIMARY KEY, n {kind})")
        connection.executemany("INSERT INTO a VALUES (?, ?)", list(enumerate(numbers)))
    with condgraph.open(f"duckdb:///{tmp_path}/long.duckdb") as graph:
        check_long_numbers(graph, numbers)


def test_deadline(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "long.duckdb")) as connection:
        connection.execute("CREATE TABLE a (id BIGINT PRIMARY KEY, name VARCHAR)")
        connection.execute(
            "CREATE VIEW v AS SELECT a.id FROM a, range(1000000) x, range(100000) y WHERE hash(x.range, y.range) = 1"
        )
        connection.execute("INSERT INTO a VALUES (1, 'one')")
    with condgraph.open(f"duckdb:///{tmp_path}/long.duckdb") as graph, pytest.raises(DeadlineError):
        graph.kopl("FindAll() FilterConcept(v) Count()", timeout=0.3)


def test_a_command_reads_a_mapping_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with duckdb.connect(tmp_path / "a.duckdb") as database:
        database.execute("CREATE TABLE film AS SELECT 'a' AS k, 'Alien' AS title")
    (tmp_path / "condgraph.toml").write_text('[tables.film]\nkey = ["k"]\n')
    monkeypatch.setenv("CONDGRAPH_MAPPING", str(tmp_path / "condgraph.toml"))
    command = ["query", "FindAll() QueryName()", "-a", f"duckdb:///{tmp_path}/a.duckdb"]
    assert CliRunner().invoke(app, command, catch_exceptions=False).stdout.split() == ["Alien"]
