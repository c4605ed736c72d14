"""Hundreds of texts that do more than read, on real servers of both versions: nothing arrives,
nothing changes, each is refused.

The server is as careless as it can be: no login, files and addresses open to `LOAD CSV`. A listener
on this machine and a file beside the server show what gets out. `test_they_are_attacks` runs the
same texts without the check, so that the others can fail.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

import neo4j
import pytest
from typer.testing import CliRunner

import condgraph
from condgraph.cli.app import app
from condgraph.cypher.guard import PROCEDURES, check_plan
from condgraph.engine.errors import CondgraphError, ReadOnlyError
from condgraph.remote_neo4j import Neo4jGraph
from tests.support.cypher_attacks import CANARY, HARMLESS, Attack, attacks
from tests.support.lanes import by_lane
from tests.support.servers import running

pytestmark = [pytest.mark.xdist_group("neo4j-attacks"), pytest.mark.service]
_WORLD = "CREATE (:Canary {word: $canary, x: 1})-[:KEPT {x: 2}]->(:Cage {word: 'cage', x: 3})"


class Listener:
    """Takes requests, and remembers their paths."""

    def __init__(self) -> None:
        paths = self.paths = []  # type: list[str]

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                paths.append(self.path)
                body = b"a,b\n1,2\n"
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_HEAD = do_POST = do_GET

            def log_message(self, format: str, *args: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()


class Careless(NamedTuple):
    """A server that is open to everything, what listens, and what is to be tried."""

    uri: str
    driver: neo4j.Driver
    listener: Listener
    attacks: list[Attack]

    def content(self) -> str:
        """A hash of all that the database holds: nodes, relationships, indexes, constraints, names
        that were ever used.
        """
        found = []
        texts = (
            "MATCH (n) RETURN elementId(n), labels(n), properties(n)",
            "MATCH (a)-[r]->(b) RETURN elementId(r), type(r), properties(r), elementId(a), elementId(b)",
            "SHOW INDEXES YIELD name, type, labelsOrTypes, properties",
            "SHOW CONSTRAINTS YIELD name, type, labelsOrTypes, properties",
            "CALL db.labels() YIELD label RETURN label",
            "CALL db.propertyKeys() YIELD propertyKey RETURN propertyKey",
        )
        for text in texts:
            records, _, _ = self.driver.execute_query(text)
            found.append(sorted(repr(record.values()) for record in records))
        return hashlib.sha256(repr(found).encode()).hexdigest()


@pytest.fixture(scope="module", params=["lts", pytest.param("current", marks=pytest.mark.slow)])
def careless(request: pytest.FixtureRequest) -> Iterator[Careless]:
    """A server of each version, with a canary in its database and one in a file beside it."""
    from neo4j_server import CURRENT, LTS, Neo4jServer

    version = LTS if request.param == "lts" else CURRENT
    settings = {"dbms.security.allow_csv_import_from_file_urls": "true"}
    server = Neo4jServer(version, short=True, memory="512m", settings=settings)

    def canary() -> None:
        (server.home / "import").mkdir()
        (server.home / "import" / "canary.csv").write_text(f"{CANARY}\n")

    with (
        running(server, "Neo4j", canary),
        neo4j.GraphDatabase.driver(server.uri, notifications_min_severity="OFF") as driver,
    ):
        driver.execute_query(_WORLD, canary=CANARY)
        driver.execute_query("CREATE CONSTRAINT canary_word FOR (n:Canary) REQUIRE n.word IS UNIQUE")
        listener = Listener()
        yield Careless(server.uri, driver, listener, list(attacks(listener.url)))
        listener.server.shutdown()
        listener.server.server_close()


def refused(careless: Careless, graph: Neo4jGraph) -> None:
    """Try everything; nothing may come of it."""
    before, heard = careless.content(), len(careless.listener.paths)
    through, said = [], []
    for attack in careless.attacks:
        try:
            rows = graph.cypher(attack.text, {"p": 2}, timeout=10)
        except ReadOnlyError as error:
            said.append((attack, error))
        else:
            through.append((attack, rows[:2]))
    assert not through
    assert not [attack for attack, error in said if error.span is None or CANARY in str(error)]
    assert careless.listener.paths[heard:] == []
    assert careless.content() == before


def test_nothing_arrives(careless: Careless) -> None:
    with condgraph.open(careless.uri) as graph:
        assert isinstance(graph, Neo4jGraph)
        refused(careless, graph)


def test_nothing_arrives_with_read_only(careless: Careless) -> None:
    with condgraph.open(careless.uri, read_only=True) as graph:
        assert isinstance(graph, Neo4jGraph)
        refused(careless, graph)


def test_nothing_arrives_from_the_command_line(careless: Careless) -> None:
    """Some of them, which all meet the check that the others try in full; the whole run takes all."""
    before, heard = careless.content(), len(careless.listener.paths)
    runner = CliRunner()
    for attack in careless.attacks[:: by_lane(48, 8, 1)]:
        found = runner.invoke(app, ["cypher", "-d", careless.uri, attack.text])
        assert found.exit_code == 3, (attack, found.output)
        assert "error[read-only]" in found.stderr, attack
        assert CANARY not in found.output, attack
    assert careless.listener.paths[heard:] == []
    assert careless.content() == before


def test_the_plan_alone_refuses(careless: Careless) -> None:
    """The second look knows nothing of the first, and refuses all that the server would run."""
    planned, through = 0, []
    with careless.driver.session(default_access_mode="READ") as session:
        for attack in careless.attacks[:: by_lane(12, 1, 1)]:
            try:
                result = session.run("EXPLAIN " + attack.text, {"p": 2})
                columns, summary = result.keys(), result.consume()
            except neo4j.exceptions.Neo4jError:
                continue
            if not attack.planned:
                continue
            planned += 1
            try:
                check_plan(summary.query_type, summary.plan, columns)
            except ReadOnlyError:
                continue
            through.append((attack, summary.query_type, summary.plan))
    assert not through
    assert planned > by_lane(33, 400, 400)
    assert careless.listener.paths == []


def test_what_only_reads_is_let_through(careless: Careless) -> None:
    with condgraph.open(careless.uri, read_only=True) as graph:
        assert isinstance(graph, Neo4jGraph)
        stopped = []
        for text in HARMLESS:
            parameters = {name: [] for name in re.findall(r"\$\(?\$?(\w+)", text)}
            try:
                graph.cypher(text, parameters)
            except CondgraphError as error:
                stopped.append((text, error))
        assert not stopped


def test_the_settings_that_the_page_names(careless: Careless) -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "run-cypher.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:dbms|db|server)\.[\w.]+\w)(?:=[^`]*)?`", page)) - PROCEDURES
    known = {
        record["name"]
        for kind in ("SETTINGS", "PROCEDURES")
        for record in careless.driver.execute_query(f"SHOW {kind} YIELD name").records
    }
    assert len(named) > 6
    assert named <= known


def test_they_are_attacks(careless: Careless) -> None:
    """Without the check they reach the listener and the file, in a session that may only read. This
    test comes last, and tries a third of them in the gate.
    """
    sent, seen, ran = 0, 0, 0
    step = by_lane(3, 1, 1)
    with careless.driver.session(default_access_mode="READ") as session:
        for attack in careless.attacks[::step]:
            if attack.wants not in ("send", "file", "procedure") or "kill" in attack.text:
                continue
            heard = len(careless.listener.paths)
            try:
                rows = session.run(attack.text, {"p": 2}).data()
            except neo4j.exceptions.Neo4jError:
                continue
            ran += 1
            sent += len(careless.listener.paths) > heard
            seen += CANARY in repr(rows)
    assert ran > 300 // step
    assert sent > 150 // step
    assert seen > 5 // step
    assert any(CANARY in path for path in careless.listener.paths)
