"""When things go wrong, on a real server: it is killed in the middle of a load and of a query,
loaders meet, clients crowd.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

import condgraph
from condgraph import Graph
from condgraph.cypher.layout.schema import Index, prepare
from condgraph.cypher.load import batches
from condgraph.cypher.load import lock as loading
from condgraph.cypher.load.batches import Batch
from condgraph.cypher.load.write import RowMaker
from condgraph.engine.errors import StoreBusyError, StoreError
from condgraph.engine.facts import Entity, EntityKind, Item, Member, Ref, Statement
from condgraph.engine.values import Quantity, Time
from condgraph.remote_neo4j import Neo4jGraph
from tests.support.clients import run_clients
from tests.support.servers import running
from tests.support.world import contents
from tests.support.world import world as small_world

pytestmark = pytest.mark.xdist_group("neo4j")
COUNTS = (
    "MATCH (e:CondgraphEntity {graph: $graph}) OPTIONAL MATCH (e)-[f]->() WHERE f.sid IS NOT NULL "
    "RETURN count(DISTINCT e) AS entities, count(f) AS statements, count(DISTINCT f.sid) AS distinct"
)


def many(first: int, last: int) -> list[Item]:
    """Some hundred statements of every kind, of which later ones meet earlier ones."""
    found: list[Item] = [Entity("thing", "thing", EntityKind.CONCEPT)]
    for i in range(first, last):
        found.append(Member(f"e{i}", "thing"))
        found.append(
            Statement(f"e{i}", "next", Ref(f"e{i + 1}"), (("since", Time.year(1900 + i % 100)), ("by", Ref(f"e{i // 2}"))))
        )
        found.append(Statement(f"e{i}", "half", Ref(f"e{i // 2}")))
        found.append(Statement(f"e{i}", "size", Quantity(i, "metre"), (("point in time", Time.year(2000)),)))
    return found


def local_graph(first: int, last: int, graph: Graph | None = None) -> Graph:
    graph = graph or condgraph.open()
    graph.add(many(first, last), source="many")
    return graph


@pytest.fixture(scope="module")
def server(neo4j_version: str) -> Iterator[Any]:
    """A server that may be killed."""
    from neo4j_server import Neo4jServer

    with running(Neo4jServer(neo4j_version, short=True, memory="512m"), "Neo4j") as server:
        yield server


@pytest.mark.slow
@pytest.mark.parametrize("append", [False, True])
def test_the_server_is_killed_while_it_is_loaded(server: Any, append: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "BATCH", 40)
    monkeypatch.setattr(batches, "FIRST_BATCH", 40)
    name = f"killed {append}"
    remote = condgraph.open(server.uri, graph=name)
    assert isinstance(remote, Neo4jGraph)
    local = local_graph(0, 200)
    if append:
        remote.push(local_graph(0, 100))
        local = condgraph.open()
        local.add(many(100, 200), source="many")
    write, written = loading.Loading.write, []

    def counted(self: loading.Loading, batch: Batch, attempt: str = "") -> None:
        written.append(batch.name)
        if len(written) == 6:
            threading.Timer(0.01, server.kill).start()
        if len(written) > 6:
            time.sleep(0.05)
        write(self, batch, attempt)

    monkeypatch.setattr(loading.Loading, "write", counted)
    with pytest.raises(StoreError, match="no server answers"):
        remote.push(local)
    assert len(written) < 30
    monkeypatch.setattr(loading.Loading, "write", write)
    server.start()
    with pytest.raises(StoreBusyError, match="is not finished"):
        remote.kopl("FindAll() Count()")
    remote.push(local)
    whole = local_graph(0, 200)
    assert contents(remote.snapshot()) == contents(whole)
    counts = remote.store.connection.read(COUNTS, {"graph": name})[0]
    assert counts["statements"] == counts["distinct"] == whole.status().statements
    assert counts["entities"] == whole.status().counts["entities"] + 1
    assert remote.store.connection.read("MATCH (l:CondgraphLoad) RETURN count(l) AS left", {}) == [{"left": 0}]
    assert remote.kopl("FindAll() Count()").texts == whole.kopl("FindAll() Count()").texts
    remote.store.delete()
    remote.close()


@pytest.mark.slow
def test_the_server_is_killed_while_it_is_asked(server: Any) -> None:
    remote = condgraph.open(server.uri, graph="asked")
    assert isinstance(remote, Neo4jGraph)
    remote.push(local_graph(0, 20))
    assert remote.kopl("FindAll() Count()").texts == ["21"]
    threading.Timer(0.5, server.kill).start()
    with pytest.raises(StoreError, match="no server answers"):
        remote.cypher("UNWIND range(1, 2000000000) AS x WITH x WHERE x % 7 = 8 RETURN count(x) AS n", timeout=None)
    server.start()
    # The same opened graph: connections that died are found out.
    assert remote.kopl("FindAll() Count()").texts == ["21"]
    assert contents(remote.snapshot()) == contents(local_graph(0, 20))
    remote.close()


def test_two_loaders(neo4j_uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second fails at once, or waits as long as it is told; readers have an error while a load
    runs, and then the new graph.
    """
    first, second = (condgraph.open(neo4j_uri, graph="two loaders") for _ in range(2))
    assert isinstance(first, Neo4jGraph)
    assert isinstance(second, Neo4jGraph)
    first.store.delete()
    local = local_graph(0, 30)
    first.push(local)
    assert second.kopl("FindAll() Count()").texts == ["31"]
    reached, go_on = threading.Event(), threading.Event()
    write = loading.Loading.write

    def held(self: loading.Loading, batch: Batch, attempt: str = "") -> None:
        write(self, batch, attempt)
        reached.set()
        assert go_on.wait(60)

    monkeypatch.setattr(loading.Loading, "write", held)
    failures: list[BaseException] = []

    def add() -> None:
        try:
            first.add(many(30, 40), source="many")
        except BaseException as error:  # noqa: BLE001 - looked at below
            failures.append(error)

    thread = threading.Thread(target=add)
    thread.start()
    assert reached.wait(60)
    monkeypatch.setattr(loading.Loading, "write", write)
    # Half of it is there: nobody is given that.
    with pytest.raises(StoreBusyError):
        second.kopl("FindAll() Count()")
    with pytest.raises(StoreBusyError, match="by another process"):
        second.add(many(40, 45), source="many")
    threading.Timer(0.5, go_on.set).start()
    second.add(many(40, 45), source="many", wait=60)
    thread.join()
    assert failures == []
    whole = local_graph(40, 45, local_graph(30, 40, local))
    assert contents(second.snapshot()) == contents(whole)
    assert first.kopl("FindAll() Count()").texts == ["46"]
    first.store.delete()


def test_a_taken_over_load_writes_nothing_more(neo4j_uri: str) -> None:
    remote = condgraph.open(neo4j_uri, graph="taken over")
    assert isinstance(remote, Neo4jGraph)
    remote.store.delete()
    connection = remote.store.connection
    with loading.Loading(connection, "taken over") as held:
        prepare(connection)
        held.begin("one")
        connection.write("MATCH (g:CondgraphGraph {name: 'taken over'}) SET g.owner = 'somebody else'", {})
        batch = next(RowMaker(local_graph(0, 3).current).batches())
        with pytest.raises(StoreBusyError, match="taken over"):
            held.write(batch)
    assert connection.read("MATCH (s:CondgraphSource {graph: 'taken over'}) RETURN s.name AS name", {}) == []
    remote.store.delete()


@pytest.mark.slow
def test_many_clients(neo4j_uri: str) -> None:
    local = small_world()
    remote = condgraph.open(neo4j_uri, graph="clients")
    assert isinstance(remote, Neo4jGraph)
    remote.store.delete()
    remote.push(local)
    programs = [
        "Find(Ann) Relate(knows, forward) QueryName()",
        "FindAll() FilterNum(height, 1.8 metre, >) QueryName()",
        "FindAll() FilterConcept(person) Count()",
        "FindAll() QueryAttr(born)",
        "Find(Ann) Find(Bo) Or() SelectAmong(height, largest)",
    ]
    report = run_clients(neo4j_uri, "clients", programs, [local.kopl(one).texts for one in programs], clients=8, seconds=5)
    assert report.errors == []
    assert report.wrong == []
    assert report.answers >= 8
    assert report.connections[1] <= report.connections[0]
    assert report.threads[1] <= report.threads[0]
    remote.store.delete()


def test_an_index_that_somebody_else_makes_at_the_same_time_is_there(neo4j_uri: str) -> None:
    """`IF NOT EXISTS` does not help where neither has committed: the later one is told that an equivalent
    index exists, which is what it wanted.
    """
    index = Index("raced_for", "RacedFor", ("x",))
    with condgraph.open(neo4j_uri, graph="raced for") as graph:
        assert isinstance(graph, Neo4jGraph)
        connection = graph.store.connection
        made: list[str] = []

        def later() -> None:
            connection.schema(index.text)
            made.append("later")

        thread = threading.Thread(target=later)
        try:
            with connection.driver.session() as session, session.begin_transaction() as first:
                first.run(index.text).consume()
                thread.start()
                time.sleep(1)
                assert not made
                first.commit()
            thread.join(60)
            assert made == ["later"]
            assert connection.read("SHOW INDEXES YIELD name WHERE name = 'raced_for' RETURN name", {})
        finally:
            thread.join(60)
            with connection.driver.session() as session:
                session.run("DROP INDEX raced_for IF EXISTS").consume()
