"""What a server is kept from and what is kept from callers: foreign text, deadlines, logins,
versions; on a real server.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Timer
from types import SimpleNamespace
from typing import Any

import neo4j
import pytest

import condgraph
from condgraph import CondgraphError, Graph
from condgraph.engine.errors import (
    CancelledError,
    DeadlineError,
    OptionError,
    ReadOnlyError,
    StoreError,
    StoreMissingError,
    StoreVersionError,
)
from condgraph.engine.facts import Ref, Statement
from condgraph.remote_neo4j import Neo4jGraph
from tests.support.neo4j_servers import pushed
from tests.support.pace import quick_enough
from tests.support.servers import running
from tests.support.world import world as small_world

pytestmark = pytest.mark.xdist_group("neo4j")
LOGIN = ("NEO4J_URI", "NEO4J_URL", "NEO4J_USERNAME", "NEO4J_USER", "NEO4J_PASSWORD", "NEO4J_DATABASE")


@pytest.fixture(scope="module")
def world(each_neo4j_uri: str) -> Iterator[tuple[Graph, Neo4jGraph]]:
    """On every supported version: what a server lets through differs between them."""
    with pushed(small_world(), each_neo4j_uri, "safe world") as pair:
        yield pair


@pytest.mark.parametrize(
    "attack",
    [
        "CREATE (n) RETURN n",
        "MATCH (n) SET n.x = 1",
        "MATCH (n) CALL (n) { DETACH DELETE n }",
        "LOAD CSV FROM 'file:///etc/passwd' AS line RETURN line",
        "SHOW SETTINGS",
        "SHOW TRANSACTIONS",
        "TERMINATE TRANSACTIONS 'neo4j-transaction-1'",
        "CALL dbms.listConfig() YIELD name RETURN name",
        "CALL db.createLabel('x')",
        "EXPLAIN PROFILE MATCH (n) DELETE n",
        "/* a comment */ PROFILE MATCH (n) DELETE n",
        "// a comment\nEXPLAIN MATCH (n) RETURN n",
        "CALL { LOAD CSV FROM 'file:///etc/passwd' AS line RETURN line } RETURN line",
        "MATCH (n) FOREACH (x IN [1] | SET n.x = x) RETURN n",
        "MATCH (n) CALL (n) { SET n.x = 1 } IN TRANSACTIONS OF 10 ROWS",
        "CALL tx.setMetaData({a: 1})",
        "PROFILE MATCH (n) DELETE n",
        "CREATE INDEX x FOR (n:X) ON (n.x)",
        "DROP CONSTRAINT condgraph_4_entity",
    ],
)
def test_foreign_text_can_only_read(world: tuple[Graph, Neo4jGraph], attack: str) -> None:
    local, remote = world
    with pytest.raises(ReadOnlyError):
        remote.cypher(attack)
    assert remote.snapshot().status().counts == local.status().counts


def test_foreign_text_reads(world: tuple[Graph, Neo4jGraph]) -> None:
    _, remote = world
    rows = remote.cypher("MATCH (e:CondgraphEntity {graph: $graph, id: 'a'}) RETURN e.name AS name", {"graph": "safe world"})
    assert rows == [{"name": "Ann"}]


@pytest.mark.parametrize(
    "endless",
    [
        "UNWIND range(1, 2000000000) AS x WITH x WHERE x % 7 = 8 RETURN count(x) AS n",
        # A reduce cannot be interrupted by the server: the caller has the error at the deadline all
        # the same.
        "RETURN reduce(s = 0, x IN range(1, 2000000000) | s + x) AS s",
    ],
)
def test_deadlines(world: tuple[Graph, Neo4jGraph], endless: str) -> None:
    _, remote = world
    begin = time.monotonic()
    with pytest.raises(DeadlineError):
        remote.cypher(endless, timeout=0.5)
    assert quick_enough(time.monotonic() - begin, 5)


def test_clear_errors(neo4j_uri: str) -> None:
    with pytest.raises(StoreMissingError, match="no graph 'nothing'"):
        condgraph.open(neo4j_uri, graph="nothing").kopl("FindAll() Count()")
    with pytest.raises(StoreError, match="no server answers"):
        condgraph.open("bolt://127.0.0.1:9")
    with pytest.raises(StoreError, match="no server answers"):
        condgraph.open("bolt://127.0.0.1:9", graph="other")
    for graph in ("default", "other"):
        with pytest.raises(StoreMissingError, match="no database 'nowhere'"):
            condgraph.open(neo4j_uri, graph=graph, database="nowhere")
    for scheme in ("bolt+s", "bolt+ssc", "neo4j+s", "neo4j+ssc"):
        place = neo4j_uri.replace("bolt", scheme, 1)
        with pytest.raises(StoreError, match=r"does not use TLS.*bolt://|does not use TLS.*neo4j://"):
            condgraph.open(place)
    with pytest.raises(CondgraphError, match="not a kind of address"):
        condgraph.open("ftp://somewhere")
    with pytest.raises(ReadOnlyError):
        condgraph.open(neo4j_uri, graph="x", read_only=True).add([Statement("a", "p", Ref("b"))])


def test_a_deadline_frees_the_server(world: tuple[Graph, Neo4jGraph]) -> None:
    _, remote = world
    endless = "UNWIND range(1, 2000000000) AS x WITH x WHERE x % 7 = 8 RETURN count(x) AS condgraph_endless"
    with pytest.raises(DeadlineError):
        remote.cypher(endless, timeout=0.5)
    assert settles(remote, "condgraph_endless")


def test_cancelling_frees_the_server(world: tuple[Graph, Neo4jGraph]) -> None:
    _, remote = world
    cancelled = Event()
    Timer(0.5, cancelled.set).start()
    begin = time.monotonic()
    with pytest.raises(CancelledError):
        remote.store.connection.read(
            "UNWIND range(1, 2000000000) AS x WITH x WHERE x % 7 = 8 RETURN count(x) AS condgraph_cancelled",
            {},
            cancelled=cancelled,
        )
    assert quick_enough(time.monotonic() - begin, 5)
    assert settles(remote, "condgraph_cancelled")


def settles(remote: Neo4jGraph, word: str) -> bool:
    """Whether no query that holds a word runs any more, within some seconds."""
    text = "SHOW TRANSACTIONS YIELD currentQuery AS query WHERE query CONTAINS $word AND NOT query STARTS WITH 'SHOW' RETURN query"
    until = time.monotonic() + 10
    while time.monotonic() < until:
        if not remote.store.connection.read(text, {"word": word}):
            return True
        time.sleep(0.1)
    return False


@pytest.fixture(scope="module")
def guarded(neo4j_version: str) -> Iterator[Any]:
    """A server that asks for a password."""
    from neo4j_server import Neo4jServer

    with running(
        Neo4jServer(
            neo4j_version,
            short=True,
            memory="512m",
            password="correct-horse",
            settings={"dbms.security.procedures.allowlist": "none"},
        ),
        "Neo4j",
    ) as server:
        yield server


def test_logins(guarded: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in LOGIN:
        monkeypatch.delenv(name, raising=False)
    place = guarded.uri.removeprefix("bolt://")
    with pytest.raises(StoreError, match="refuses the user or the password"):
        condgraph.open(f"bolt://neo4j:wrong@{place}", graph="g").status()
    with pytest.raises(StoreError, match="refuses"):
        condgraph.open(f"bolt://{place}", graph="g").status()
    with pytest.raises(StoreMissingError, match="no graph 'g'"):
        condgraph.open(f"bolt://neo4j:correct-horse@{place}", graph="g").status()
    assert "correct-horse" not in repr(condgraph.open(f"bolt://neo4j:correct-horse@{place}", graph="g"))
    for user in ("NEO4J_USERNAME", "NEO4J_USER"):
        for uri in ("NEO4J_URI", "NEO4J_URL"):
            with monkeypatch.context() as environment:
                environment.setenv(user, "neo4j")
                environment.setenv("NEO4J_PASSWORD", "correct-horse")
                environment.setenv(uri, guarded.uri)
                with condgraph.open("neo4j://", graph="from the environment") as remote:
                    remote.add([Statement("a", "p", Ref("b"))])
                    assert remote.kopl("Find(a) Relate(p, forward) QueryName()").texts == ["b"]
    with monkeypatch.context() as environment:
        environment.setenv("NEO4J_DATABASE", "nowhere")
        with pytest.raises(StoreMissingError, match="no database 'nowhere'"):
            condgraph.open(f"bolt://neo4j:correct-horse@{place}", graph="g").status()


def test_what_the_page_says_of_the_allowlist(guarded: Any) -> None:
    """It keeps built-in procedures from nothing, not from writing either; the checks here do."""
    with neo4j.GraphDatabase.driver(guarded.uri, auth=("neo4j", "correct-horse")) as driver, driver.session() as session:
        assert session.run("SHOW SETTINGS 'dbms.security.procedures.allowlist' YIELD value").values() == [["none"]]
        # It is not refused.
        session.run("CALL db.createLabel('made')").consume()
    with condgraph.open(guarded.uri, user="neo4j", password="correct-horse", graph="g") as graph:
        assert isinstance(graph, Neo4jGraph)
        with pytest.raises(ReadOnlyError):
            graph.cypher("CALL db.createLabel('other')")


@pytest.mark.slow
def test_the_commands_of_the_page_on_browser(guarded: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As they stand there, but for the address and the password of this server."""
    for name in LOGIN:
        monkeypatch.delenv(name, raising=False)
    root = Path(condgraph.__file__).parent.parent
    page = (root / "docs" / "how-to" / "neo4j-browser.md").read_text(encoding="utf-8")
    lines = [line.removeprefix("$ ") for line in page.splitlines() if line.startswith("$ ") and "docker" not in line]
    script = "\n".join(lines).replace("neo4j://localhost:7687", guarded.uri).replace("condgraph-password", "correct-horse")
    assert "correct-horse" in script
    assert guarded.uri in script
    for name, line in (("python", '"$@"'), ("condgraph", '-m condgraph "$@"')):
        (tmp_path / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {line}\n')
        (tmp_path / name).chmod(0o755)
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": str(root)}
    said = subprocess.run(["sh", "-eu", "-c", script], env=environment, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert said.returncode == 0, said.stderr
    assert "correct-horse" not in said.stdout + said.stderr
    with condgraph.open(guarded.uri, user="neo4j", password="correct-horse") as graph:
        assert graph.kopl("Find(United Kingdom) Relate(capital, forward) QueryName()").texts == ["London"]


def test_addresses_that_lead_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in LOGIN:
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(OptionError, match="names no server"):
        condgraph.open("neo4j://")
    with pytest.raises(OptionError, match="is not a number up to 65535"):
        condgraph.open("bolt://host:port")
    with pytest.raises(StoreError, match="no server answers"):
        condgraph.open("bolt://127.0.0.1:9")


@pytest.mark.parametrize(
    ("agent", "old"), [("Neo4j/4.4.38", True), ("Neo4j/5.25.1", True), ("Neo4j/5.26.0", False), ("Neo4j/2026.08.1", False)]
)
def test_old_servers_are_refused(world: tuple[Graph, Neo4jGraph], agent: str, old: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    _, remote = world
    connection = remote.store.connection
    monkeypatch.setattr(connection, "_version", None)
    monkeypatch.setattr(connection.driver, "get_server_info", lambda: SimpleNamespace(agent=agent))
    if old:
        with pytest.raises(StoreVersionError, match="or later is needed"):
            remote.cypher("RETURN 1 AS one")
    else:
        assert remote.cypher("RETURN 1 AS one") == [{"one": 1}]


@pytest.mark.parametrize(
    ("agent", "message"),
    [
        ("Neo4j/v5.11.0 compatible graph database server - Memgraph", "is Memgraph: condgraph was never tested on it.*ArcadeDB"),
        ("Neo4j/5.13.0", "5.26 or later is needed.*FalkorDB calls itself that as well"),
    ],
)
def test_other_servers_are_refused(
    world: tuple[Graph, Neo4jGraph], agent: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = world[1].store.connection
    monkeypatch.setattr(connection, "_version", None)
    monkeypatch.setattr(connection.driver, "get_server_info", lambda: SimpleNamespace(agent=agent))
    with pytest.raises(StoreVersionError) as raised:
        world[1].cypher("RETURN 1 AS one")
    assert re.search(message, f"{raised.value} {raised.value.hint}", re.DOTALL)
