"""Graphs of the layout before: opening one names the command, which converts it in place and
touches nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import neo4j
import pytest
from typer.testing import CliRunner

import condgraph
from condgraph.cli.app import app
from condgraph.cypher.connection import Connection
from condgraph.cypher.load import convert as converting
from condgraph.cypher.load.write import earlier_content_id
from condgraph.engine.errors import StoreMissingError, StoreVersionError
from condgraph.engine.facts import Entity, EntityKind, Ref, Sourced, Statement
from condgraph.graph import Graph
from condgraph.remote_neo4j import Neo4jGraph
from tests.matrix.test_unfinished import dump
from tests.support.world import contents, world

pytestmark = pytest.mark.xdist_group("neo4j")
GRAPH = "earlier"
LABELS = ("Entity", "Concept", "Row", "Value", "Statement", "Qualifier", "Graph", "Source", "Predicate", "Embedding")
#: Constraints and indexes as that layout had them, under their names.
SCHEMA = (
    "CREATE CONSTRAINT condgraph_entity_id IF NOT EXISTS FOR (e:Entity) REQUIRE (e.graph, e.id) IS UNIQUE",
    "CREATE CONSTRAINT condgraph_graph IF NOT EXISTS FOR (g:Graph) REQUIRE g.name IS UNIQUE",
    "CREATE CONSTRAINT condgraph_source IF NOT EXISTS FOR (s:Source) REQUIRE (s.graph, s.name) IS UNIQUE",
    "CREATE INDEX condgraph_entity_key IF NOT EXISTS FOR (e:Entity) ON (e.graph, e.key)",
    "CREATE INDEX condgraph_value_time IF NOT EXISTS FOR (v:Value) ON (v.graph, v.predicate, v.start, v.end)",
)
FOREIGN = (
    "CREATE (e:Entity {graph: 'earlier', id: 'foreign', name: 'a', key: 'b'}) "
    "CREATE (e)-[:knows {sid: 7}]->(:Value {graph: 'earlier', sid: 8})",
    "CREATE (:Graph {name: 'mine'}), (:Source {graph: 'earlier', name: 'mine'}), (:Statement {graph: 'earlier', sid: 9})",
    "MATCH (s:Source {graph: 'earlier', name: 'world'}) SET s.mine = true CREATE (s)-[:MINE]->(:Person)",
    "MATCH (g:Graph {name: 'earlier'}) SET g.mine = 1",
)


@pytest.fixture
def driver(each_neo4j_uri: str) -> Iterator[neo4j.Driver]:
    with neo4j.GraphDatabase.driver(each_neo4j_uri, notifications_min_severity="OFF") as driver:
        with condgraph.open(driver, graph=GRAPH) as remote:
            remote.delete()
        yield driver
        driver.execute_query(
            "MATCH (n) WHERE n.graph = 'earlier' OR (n:Graph AND n.name IN ['earlier', 'mine']) OR n:Person DETACH DELETE n"
        )
        for text in SCHEMA:
            kind, name = text.split()[1:3]
            driver.execute_query(f"DROP {kind} {name} IF EXISTS")


def written_before(driver: neo4j.Driver) -> tuple[Neo4jGraph, list[list[str]]]:
    """A graph as the layout before has it, and all that it is in this one."""
    local = world()
    local.add([Sourced(Entity("r", "r", EntityKind.ROW, 1), (("table", 1),)), Statement("r", "IS", Ref("a"))], source="table")
    # Nor were concepts labels.
    remote = condgraph.open(driver, graph=GRAPH, labels=False)
    assert isinstance(remote, Neo4jGraph)
    remote.push(local)
    remote.index()
    # That layout did not say who declares what, nor how each place writes a value.
    driver.execute_query("MATCH (n:CondgraphEntity {graph: 'earlier'}) REMOVE n.declared")
    driver.execute_query("MATCH (n:CondgraphValue {graph: 'earlier'}) REMOVE n.raws")
    mark = earlier_content_id(local.current)
    driver.execute_query("MATCH (n:CondgraphGraph {name: 'earlier'}) SET n.content = $mark REMOVE n.declares", mark=mark)
    found = dump(remote)
    for text in SCHEMA:
        driver.execute_query(text)
    for label in LABELS:
        own = "n.name = 'earlier'" if label == "Graph" else "n.graph = 'earlier'"
        driver.execute_query(f"MATCH (n:Condgraph{label}) WHERE {own} SET n:{label} REMOVE n:Condgraph{label}, n.handle")
    driver.execute_query("MATCH (n:Predicate {graph: 'earlier'}) REMOVE n.key")
    driver.execute_query("MATCH (n:CondgraphVectors {graph: 'earlier'}) SET n:VectorIndex REMOVE n:CondgraphVectors")
    driver.execute_query("MATCH (n:Graph {name: 'earlier'}) SET n.format = 3 REMOVE n.load, n.survey")
    remote.refresh()
    return remote, found


def stated(graph: Graph) -> set[str]:
    """What a graph holds, but for its entities: that layout did not say who declares them."""
    return {one for one in contents(graph) if not one.startswith(("Entity(", "Sourced(item=Entity("))}


def entities(graph: Graph) -> list[Entity]:
    """All entities of a graph, by their numbers."""
    return [graph.current.entity(number) for number in range(graph.current.entities)]


def others(driver: neo4j.Driver) -> list[Any]:
    text = (
        "MATCH (n) WHERE none(label IN labels(n) WHERE label STARTS WITH 'Condgraph') AND "
        "(n.mine = true OR n.id = 'foreign' OR n.name = 'mine' OR n.sid IN [8, 9] OR n:Person) "
        "OPTIONAL MATCH (n)-[r]-() "
        "RETURN elementId(n) AS id, labels(n) AS labels, properties(n) AS properties, count(r) AS n ORDER BY id"
    )
    return [record.data() for record in driver.execute_query(text).records]


def test_a_graph_is_converted_and_nothing_else(driver: neo4j.Driver) -> None:
    remote, found = written_before(driver)
    for text in FOREIGN:
        driver.execute_query(text)
    before = others(driver)
    for ask in (remote.status, lambda: remote.kopl("FindAll() Count()"), lambda: remote.add([Statement("a", "p", "x")])):
        with pytest.raises(StoreVersionError, match="`condgraph convert`"):
            ask()
    counts = remote.convert()
    assert counts["entities"] == 5
    assert dump_of_ours(remote) == found
    assert others(driver) == before
    node = driver.execute_query("MATCH (g:Graph {name: 'earlier'}) RETURN properties(g) AS g").records
    assert [record["g"] for record in node] == [{"name": "earlier", "mine": 1}]
    local = world()
    local.add([Sourced(Entity("r", "r", EntityKind.ROW, 1), (("table", 1),)), Statement("r", "IS", Ref("a"))], source="table")
    assert stated(remote.snapshot()) == stated(local)
    assert entities(remote.snapshot()) == entities(local)
    assert remote.schema() == local.schema()
    assert remote.kopl("FindAll() QueryName()").texts == local.kopl("FindAll() QueryName()").texts
    assert remote.match([("Ann", "knows", "UNKNOWN x")], exact=False).approximate
    # The constraints of the layout before are gone: the application makes what it likes.
    driver.execute_query("CREATE (:Graph {name: 'mine'}), (:Entity {graph: 'earlier', id: 'foreign'})")
    assert remote.convert() == counts
    assert remote.delete()
    with pytest.raises(StoreMissingError, match="no graph 'earlier' of an earlier layout"):
        remote.convert()


def dump_of_ours(remote: Neo4jGraph) -> list[list[str]]:
    """`dump` without what is the application's."""
    nodes, edges = dump(remote)
    return [
        [row for row in nodes if "Condgraph" in row],
        [row for row in edges if "foreign" not in row and "MINE" not in row],
    ]


def test_a_conversion_that_was_ended_goes_on(driver: neo4j.Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(converting, "_PAGE", 2)
    remote, found = written_before(driver)
    transaction, allowed, turns = Connection.transaction, 1, 0

    def failing(self: Connection, work: Any, **options: Any) -> Any:
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        return transaction(self, work, **options)

    while True:
        left = [allowed]
        monkeypatch.setattr(Connection, "transaction", failing)
        try:
            remote.convert()
            break
        except KeyboardInterrupt:
            turns += 1
            allowed += turns // 6
        finally:
            monkeypatch.setattr(Connection, "transaction", transaction)
    assert turns > 5
    assert dump(remote) == found
    assert remote.delete()


def test_what_only_looks_like_it_is_left_alone(driver: neo4j.Driver) -> None:
    remote, _ = written_before(driver)
    driver.execute_query("CREATE (:Entity {graph: 'earlier', id: 'twin', name: 'twin', key: 'twin', kind: 0})")
    everything = "MATCH (n {graph: 'earlier'}) RETURN elementId(n) AS id, labels(n) AS labels, properties(n) AS p ORDER BY id"
    before = [record.data() for record in driver.execute_query(everything).records]
    with pytest.raises(StoreVersionError, match=r"looks like 6 entities where 5 were loaded.*export it"):
        remote.convert()
    assert [record.data() for record in driver.execute_query(everything).records] == before
    # Without the constraint that every load of that layout made, the node of a graph is somebody
    # else's.
    driver.execute_query("DROP CONSTRAINT condgraph_graph")
    with pytest.raises(StoreMissingError):
        remote.status()


def test_the_command(driver: neo4j.Driver, each_neo4j_uri: str) -> None:
    written_before(driver)
    arguments = ["-a", each_neo4j_uri, "--graph", GRAPH]
    said = CliRunner().invoke(app, ["status", *arguments])
    assert said.exit_code == 3
    assert "`condgraph convert`" in said.output
    said = CliRunner().invoke(app, ["convert", *arguments])
    assert said.exit_code == 0, said.output
    assert "graph 'earlier' is converted: 5 entities, 21 statements" in said.output
    assert CliRunner().invoke(app, ["convert", *arguments]).exit_code == 0
    assert CliRunner().invoke(app, ["convert", "-d", "somewhere"]).exit_code == 2
    assert CliRunner().invoke(app, ["delete", *arguments, "--yes"]).exit_code == 0
    assert CliRunner().invoke(app, ["convert", *arguments]).exit_code == 3
