"""`condgraph serve --bolt` as Neo4j's drivers use it: values, errors, transactions, logins, what tools send first."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import condgraph
from condgraph.engine.facts import Entity, EntityKind, Member, Ref, Statement
from condgraph.engine.values import Quantity, Time
from tests.support.samples import load_samples
from tests.support.servers import watched

neo4j = pytest.importorskip("neo4j")
pytestmark = pytest.mark.service


@contextmanager
def served(folder: Path, *arguments: str) -> Iterator[str]:
    """The host and port of Bolt of a running `condgraph serve`."""
    serve = [sys.executable, "-m", "condgraph", "serve", "-d", str(folder), "--port", "0", "--bolt", "0", "-q", *arguments]
    process = subprocess.Popen(
        watched(serve), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        match = re.search(r"; Bolt at bolt://([^\s;]+)", line)
        assert match, line + process.communicate()[1]
        yield match[1]
    finally:
        process.terminate()
        process.communicate(timeout=20)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bolt") / "world"
    with condgraph.open(folder) as graph:
        load_samples(graph)
    return folder


@pytest.fixture(scope="module")
def address(world: Path) -> Iterator[str]:
    with served(world) as place:
        yield place


@pytest.fixture
def session(address: str) -> Iterator[Any]:
    with neo4j.GraphDatabase.driver(f"bolt://{address}") as driver, driver.session() as opened:
        yield opened


def noted(summary: Any) -> list[dict[str, Any]]:
    """The notifications of a summary, in the form that all versions of the driver have."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return summary.notifications or []


@pytest.mark.parametrize("scheme", ["bolt", "neo4j"])
def test_drivers_ask_and_get_rows_with_parameters(address: str, scheme: str) -> None:
    with neo4j.GraphDatabase.driver(f"{scheme}://{address}", auth=("neo4j", "any")) as driver:
        driver.verify_connectivity()
        text = "MATCH (c:country {name: $name})-[:continent]->(k) RETURN c.name AS country, k.name AS continent"
        records, summary, keys = driver.execute_query(text, name="Nepal", database_="neo4j")
    assert [tuple(record) for record in records] == [("Nepal", "Asia")]
    assert keys == ["country", "continent"]
    assert (summary.query_type, summary.database) == ("r", "default")
    assert summary.result_available_after >= 0


def test_answers_equal_those_in_process(world: Path, session: Any) -> None:
    texts = [
        "MATCH (m:mountains) RETURN m.name AS name, number(m.height) AS height ORDER BY height DESC, name LIMIT 20",
        "MATCH (c:country)-[r:`head of government`]->(p) RETURN c.name, p.name, r.`start time`.year",
        "MATCH (n)-[r]->() RETURN type(r) AS type, count(*) AS n ORDER BY n, type",
        "UNWIND range(1, 3000) AS x RETURN x, x / 7.0 AS y",
    ]
    with condgraph.open(world, read_only=True) as graph:
        for text in texts:
            rows = [tuple(getattr(cell, "number", cell) for cell in row) for row in graph.query(text, language="cypher").values]
            assert [tuple(record) for record in session.run(text)] == rows


def test_nodes_relationships_and_paths_are_those_of_drivers(session: Any) -> None:
    record = session.run("MATCH p = (c:country {name: 'Nepal'})-[r:continent]->(k) RETURN c, r, k, p, elementId(c) AS id").single()
    node, relationship, path = record["c"], record["r"], record["p"]
    assert node.labels == {"country", "place"}
    assert node["name"] == "Nepal"
    assert node["driving side"] == "left"
    assert node.element_id == record["id"]
    assert relationship.type == "continent"
    assert (relationship.start_node.element_id, relationship.end_node.element_id) == (node.element_id, record["k"].element_id)
    assert [step["name"] for step in path.nodes] == ["Nepal", "Asia"]
    assert path.relationships[0].element_id == relationship.element_id
    backwards = session.run("MATCH p = (:continent {name: 'Asia'})<-[:continent]-(:country {name: 'Nepal'}) RETURN p").single()["p"]
    assert [step["name"] for step in backwards.nodes] == ["Asia", "Nepal"]
    assert backwards.relationships[0].start_node["name"] == "Nepal"


def test_rows_of_union_all_come_branch_by_branch(session: Any) -> None:
    result = session.run("RETURN 2 AS x UNION ALL UNWIND [3, 0] AS x RETURN x ORDER BY x DESC UNION ALL RETURN 1 AS x")
    assert [record["x"] for record in result] == [2, 3, 0, 1]
    assert not noted(result.consume())
    names = "CALL db.{0}() YIELD {1} RETURN {{name: '{0}', data: collect({1})}} AS result"
    called = {"labels": "label", "relationshipTypes": "relationshipType", "propertyKeys": "propertyKey"}
    result = session.run(" UNION ALL ".join(names.format(*item) for item in called.items()))
    assert [record["result"]["name"] for record in result] == list(called)
    for text in ("RETURN 1 AS x UNION ALL RETURN 2 AS y", "RETURN 1 AS x UNION ALL CREATE (n) RETURN n AS x"):
        with pytest.raises(neo4j.exceptions.ClientError):
            session.run(text).consume()
    empty = session.run(
        "MATCH (c:country {name: 'a'}) RETURN c.name AS n UNION ALL MATCH (c:country {name: 'b'}) RETURN c.name AS n"
    )
    assert not empty.values()
    assert noted(empty.consume())


def test_the_database_of_the_system_answers_what_administers(address: str) -> None:
    with neo4j.GraphDatabase.driver(f"bolt://{address}") as driver:
        for name in ("system", "SYSTEM"):
            records, _, _ = driver.execute_query("SHOW DATABASES YIELD name RETURN name", database_=name)
            assert [record["name"] for record in records] == ["default"]
            with pytest.raises(neo4j.exceptions.ClientError, match="there is no database"):
                driver.execute_query("MATCH (n) RETURN count(n)", database_=name)


def test_values_of_every_type_come_and_go(session: Any) -> None:
    from neo4j.time import DateTime, Duration
    from neo4j.time import Time as TimeOfDay

    moment = datetime(2020, 6, 1, 12, 30, tzinfo=UTC)
    given = [
        None, True, 1, -1, -17, 128, 40_000, -(2**31) - 1, 2**63 - 1, -(2**63), 0.5, float("inf"), "", "ä" * 300,
        "x" * 70_000, [1, [2, []]],
        {"a": {"b": None}}, date(1960, 2, 29), moment, datetime(1999, 1, 1, 0, 0, 0, 5), TimeOfDay(1, 2, 3, 4),
        Duration(months=14, days=-3, seconds=5, nanoseconds=7), DateTime(2020, 1, 1, 1, 1, 1, 999_999_999), list(range(20_000)),
    ]  # fmt: skip
    for value in given:
        got = session.run("RETURN $value AS value", value=value).single()["value"]
        native = got.to_native() if isinstance(value, date | datetime) and hasattr(got, "to_native") else got
        assert native == value, value
    record = session.run(
        "RETURN datetime('2020-07-01T00:00[Europe/Paris]') AS zoned, time('10:00+02:00') AS clock, duration('-P1DT0.5S') AS before"
    ).single()
    assert record["zoned"].utcoffset() == timedelta(hours=2)
    assert record["clock"].utcoffset() == timedelta(hours=2)
    assert record["before"] == Duration(days=-1, milliseconds=-500)


def test_points_come_and_go_and_are_measured(session: Any) -> None:
    berlin = neo4j.spatial.WGS84Point((13.4, 52.5))
    record = session.run(
        "RETURN $p AS p, [$p] AS several, $p.latitude AS latitude, point({longitude: 2.35, latitude: 48.85}) AS paris, "
        "point.distance($p, point({longitude: 2.35, latitude: 48.85})) AS metres, "
        "$p = point({x: 13.4, y: 52.5, srid: 4326}) AS same",
        p=berlin,
    ).single()
    assert record["p"] == berlin
    assert (type(record["p"]), record["p"].srid) == (neo4j.spatial.WGS84Point, 4326)
    assert record["several"] == [berlin]
    assert record["paris"] == neo4j.spatial.WGS84Point((2.35, 48.85))
    assert (record["latitude"], record["same"]) == (52.5, True)
    assert record["metres"] == pytest.approx(876_800, abs=1_000)


def test_what_bolt_has_no_type_for_is_a_text_or_an_error(session: Any) -> None:
    height = session.run("MATCH (m:mountains {name: 'Annapurna I'}) RETURN m.height AS height, number(m.height) AS number").single()
    assert height["height"] == f"{height['number']} m"
    with pytest.raises(neo4j.exceptions.ClientError, match="more than 64 bits"):
        session.run("RETURN 9223372036854775807 + 1 AS x").consume()
    for wrong, named in (
        (neo4j.spatial.CartesianPoint((1.0, 2.0)), "cartesian \\(7203\\)"),
        (neo4j.spatial.WGS84Point((1.0, 2.0, 3.0)), "wgs-84-3d \\(4979\\)"),
        (neo4j.spatial.WGS84Point((1.0, 91.0)), "latitude 91"),
    ):
        with pytest.raises(neo4j.exceptions.ClientError, match=named) as raised:
            session.run("RETURN $p AS p", p=wrong).consume()
        assert raised.value.code == "Neo.ClientError.Statement.SemanticError"
    with pytest.raises(neo4j.exceptions.ClientError, match="bytes"):
        session.run("RETURN $p AS p", p=b"ab").consume()


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("CREATE (n:place) RETURN n", "Statement.AccessMode"),
        ("MATCH (n) DETACH DELETE n", "Statement.AccessMode"),
        ("MATCH (n) SET n.x = 1 RETURN n", "Statement.AccessMode"),
        ("LOAD CSV FROM 'file:///etc/passwd' AS row RETURN row", "Statement.AccessMode"),
        ("DROP DATABASE neo4j", "Statement.AccessMode"),
        ("MATCH (n RETURN n", "Statement.SyntaxError"),
        ("RETURN $missing", "Statement.ParameterMissing"),
        ("RETURN x", "Statement.SemanticError"),
        ("CALL apoc.cypher.runFile('x')", "Procedure.ProcedureNotFound"),
        ("CALL dbms.killQuery('1')", "Procedure.ProcedureNotFound"),
    ],
)
def test_refusals_have_codes_of_neo4j_and_the_session_goes_on(session: Any, text: str, code: str) -> None:
    with pytest.raises(neo4j.exceptions.Neo4jError) as raised:
        session.run(text).consume()
    assert raised.value.code == f"Neo.ClientError.{code}"
    assert session.run("RETURN 1 AS one").single()["one"] == 1


def test_warnings_are_notifications(address: str, session: Any) -> None:
    notes = noted(session.run("MATCH (n:contry) RETURN n").consume())
    assert [note["code"] for note in notes if note["severity"] == "WARNING"] == [
        "Neo.ClientNotification.Statement.UnknownLabelWarning"
    ]
    with (
        neo4j.GraphDatabase.driver(f"bolt://{address}", notifications_min_severity="OFF") as driver,
        driver.session() as quiet,
    ):
        assert not noted(quiet.run("MATCH (n:contry) RETURN n").consume())
    cut = session.run("UNWIND range(1, 10001) AS x RETURN x")
    assert len(list(cut)) == 10_000
    assert any("1 more value is not shown (limit 10000)" in note["description"] for note in noted(cut.consume()))


def test_transactions_read_and_hold_several_results(session: Any) -> None:
    with session.begin_transaction() as transaction:
        first = transaction.run("UNWIND range(1, 2500) AS x RETURN x")
        second = transaction.run("UNWIND range(1, 2500) AS x RETURN -x AS x ORDER BY x DESC")
        mixed = [(next(iter(first))["x"], next(iter(second))["x"]) for _ in range(2500)]
        assert mixed == [(x, -x) for x in range(1, 2501)]
        transaction.commit()
    assert session.last_bookmarks().raw_values
    with session.begin_transaction() as transaction:
        transaction.run("RETURN 1").consume()
        transaction.rollback()
    with pytest.raises(neo4j.exceptions.ClientError, match="CREATE"):
        session.execute_write(lambda tx: tx.run("CREATE (n)").consume())
    rows = session.run("UNWIND range(1, 9000) AS x RETURN x")
    assert next(iter(rows))["x"] == 1
    rows.consume()  # discards the rest
    assert session.execute_read(lambda tx: tx.run("RETURN 2 AS x").single()["x"]) == 2


def test_deadlines_end_queries(world: Path) -> None:
    slow = "UNWIND range(1, 3000) AS a UNWIND range(1, 3000) AS b WITH a, b WHERE a * b % 9 = 10 RETURN count(*) AS n"
    with served(world, "--timeout", "1") as place, neo4j.GraphDatabase.driver(f"bolt://{place}") as driver:
        with driver.session() as session:
            begin = time.monotonic()
            with pytest.raises(neo4j.exceptions.Neo4jError) as raised:
                session.run(slow).consume()
            assert raised.value.code == "Neo.ClientError.Transaction.TransactionTimedOut"
            assert time.monotonic() - begin < 5
            with pytest.raises(neo4j.exceptions.Neo4jError) as raised:
                session.run(neo4j.Query(slow, timeout=0.2)).consume()
            assert raised.value.code == "Neo.ClientError.Transaction.TransactionTimedOut"
            assert session.run("RETURN 1 AS x").single()["x"] == 1
        with pytest.raises(neo4j.exceptions.ClientError) as missing, driver.session(database="other") as session:
            session.run("RETURN 1").consume()
        assert missing.value.code == "Neo.ClientError.Database.DatabaseNotFound"


def test_a_login_needs_a_known_token_where_there_are_tokens(world: Path, tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("ann:0123456789abcdef\n")
    with served(world, "--token-file", str(tokens)) as place:
        for auth in [None, ("ann", "wrong"), neo4j.bearer_auth("0123456789abcde")]:
            with pytest.raises(neo4j.exceptions.AuthError), neo4j.GraphDatabase.driver(f"bolt://{place}", auth=auth) as driver:
                driver.verify_connectivity()
        for auth in [("ann", "0123456789abcdef"), neo4j.bearer_auth("0123456789abcdef")]:
            with neo4j.GraphDatabase.driver(f"bolt://{place}", auth=auth) as driver:
                assert driver.execute_query("SHOW CURRENT USER YIELD user").records[0]["user"] == "ann"


def test_what_tools_send_first_is_answered(session: Any) -> None:
    def rows(text: str) -> list[dict[str, Any]]:
        return session.run(text).data()  # type: ignore[no-any-return]

    assert rows("CALL dbms.components() YIELD name, versions, edition UNWIND versions AS version RETURN name, version, edition")
    assert rows("SHOW DATABASES YIELD name, default, aliases WHERE default")[0] == {
        "name": "default", "default": True, "aliases": ["neo4j"],
    }  # fmt: skip
    assert {"label": "country"} in rows("CALL db.labels()")
    assert {"relationshipType": "continent"} in rows("call db.relationshipTypes() yield relationshipType return relationshipType")
    assert {"propertyKey": "height"} in rows("CALL db.propertyKeys()")
    union = (
        "CALL db.labels() YIELD label RETURN {name: 'labels', data: COLLECT(label)[..1000]} AS result UNION ALL "
        "CALL db.relationshipTypes() YIELD relationshipType RETURN {name: 'types', data: COLLECT(relationshipType)[..9]} AS result "
        "UNION ALL MATCH () RETURN {name: 'nodes', data: count(*)} AS result"
    )
    assert {row["result"]["name"] for row in rows(union)} == {"labels", "types", "nodes"}
    for text in [
        "CALL dbms.clientConfig()", "CALL db.ping()", "SHOW PROCEDURES YIELD *", "SHOW FUNCTIONS", "SHOW CURRENT USER",
        "CALL db.schema.nodeTypeProperties()", "CALL db.schema.relTypeProperties()", "SHOW DEFAULT DATABASE",
    ]:  # fmt: skip
        assert rows(text), text
    assert rows("SHOW INDEXES") == rows("SHOW CONSTRAINTS") == rows("SHOW TRANSACTIONS") == []
    drawn = session.run("CALL db.schema.visualization()").single()
    triples = {(r.start_node["name"], r.type, r.end_node["name"]) for r in drawn["relationships"]}
    asked = "MATCH (a)-[r]->(b) UNWIND labels(a) AS x UNWIND labels(b) AS y RETURN DISTINCT x, type(r) AS t, y"
    closed = {(row["x"], row["t"], row["y"]) for row in rows(asked)}
    # Labels without those above them.
    assert triples < closed
    assert {triple[1] for triple in triples} == {triple[1] for triple in closed}
    assert ("country", "continent", "continent") in triples
    assert ("place", "continent", "place") not in triples
    plan = session.run("EXPLAIN MATCH (n:country) RETURN n").consume().plan
    assert "country" in plan["args"]["Details"]


def test_a_reset_ends_a_query_and_many_clients_ask_at_once(address: str) -> None:
    async def ask() -> list[int]:
        async with neo4j.AsyncGraphDatabase.driver(f"neo4j://{address}") as driver:
            slow = "UNWIND range(1, 3000) AS a UNWIND range(1, 3000) AS b WITH a, b WHERE a * b % 9 = 10 RETURN count(*) AS n"
            for _ in range(6):  # more than there are places for
                with pytest.raises((asyncio.TimeoutError, TimeoutError)):
                    async with asyncio.timeout(0.2):
                        await driver.execute_query(slow)

            async def one(number: int) -> int:
                result = await driver.execute_query("RETURN $n AS n", n=number)
                return int(result.records[0]["n"])

            return await asyncio.gather(*map(one, range(60)))

    begin = time.monotonic()
    assert asyncio.run(ask()) == list(range(60))
    assert time.monotonic() - begin < 20


def test_a_load_is_seen_and_ends_a_transaction_that_began_before(tmp_path: Path) -> None:
    folder = tmp_path / "graph"

    def load(size: int) -> None:
        items: list[Any] = [Entity("c", "part", EntityKind.CONCEPT)]
        for number in range(size):
            items += [
                Entity(f"e{number}", f"e{number}"),
                Member(f"e{number}", "c"),
                Statement(f"e{number}", "size", Quantity(number)),
            ]
        items += [Statement("e1", "next", Ref("e2"), (("since", Time.year(1999)),))]
        with condgraph.open(folder) as graph:
            graph.add(items)

    load(10)
    with served(folder) as place, neo4j.GraphDatabase.driver(f"bolt://{place}") as driver, driver.session() as session:
        count = "MATCH (n:part) RETURN count(n) AS n"
        assert session.run(count).single()["n"] == 10
        transaction = session.begin_transaction()
        assert transaction.run(count).single()["n"] == 10
        load(20)
        until = time.monotonic() + 20
        with driver.session() as other:
            while other.run(count).single()["n"] != 20 and time.monotonic() < until:
                time.sleep(0.1)
        with pytest.raises(neo4j.exceptions.TransientError, match="loaded again"):
            transaction.run(count).consume()
        transaction.close()
        assert session.run(count).single()["n"] == 20
        since = session.run("MATCH ()-[r:next]->() RETURN r.since AS since, r").single()
        assert since["since"] == since["r"]["since"] == "1999"


def test_py2neo_asks(address: str) -> None:
    py2neo = pytest.importorskip("py2neo")
    graph = py2neo.Graph(f"bolt://{address}")
    assert graph.run("MATCH (c:country {name: $name}) RETURN c.name AS name", name="Nepal").data() == [{"name": "Nepal"}]
    node = graph.evaluate("MATCH (c:country {name: 'Nepal'}) RETURN c")
    assert node["driving side"] == "left"
    assert set(node.labels) == {"country", "place"}
    assert threading.active_count() < 50
