"""Beside an application's own data, whose labels and properties are ordinary words: nothing of it
changes, and it works on.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import neo4j
import pytest

import condgraph
from condgraph import Graph
from condgraph.cypher.layout.schema import CONSTRAINTS, INDEXES
from condgraph.engine.errors import StoreError
from condgraph.engine.facts import Entity, EntityKind, Ref, Statement
from condgraph.remote_neo4j import Neo4jGraph
from tests.support.world import contents, world

pytestmark = pytest.mark.xdist_group("neo4j")

#: Nodes as the application keeps them: labels that condgraph once had, with the properties and
#: values that its own nodes have.
FOREIGN = (
    "CREATE (:Graph {name: 'default', owner: 'Ann', format: 3, complete: true, content: 'mine', counts: '{}', schema: '{}'})",
    "CREATE (:Graph {name: 'other', complete: true}), (:Graph), (:Source {graph: 'default', name: 'world', number: 0})",
    "CREATE (:Source {name: 'mine'}), (:Load {graph: 'default', batch: 'x'}), (:VectorIndex {graph: 'default', encoder: 'mine'})",
    "CREATE (:Embedding {graph: 'default', kind: 'node', key: 'Ann', text: 'Ann'}), (:Predicate {graph: 'default', name: 'knows'})",
    "CREATE (a:Entity {graph: 'default', id: 'a', handle: 'a', name: 'Ann', key: 'Ann', kind: 0})"
    "-[:knows {sid: 1, sources: ['world'], rows: [1]}]->(b:Entity {graph: 'default', id: 'b', name: 'Bob', key: 'Bob', kind: 0}) "
    "CREATE (a)-[:height {sid: 2}]->(v:Value {graph: 'default', sid: 2, predicate: 'height', kind: 'quantity', number: 9.0})"
    "-[:QUALIFIER]->(q:Qualifier {graph: 'default', name: 'since', kind: 'text', text: 'x', key: 'x'})-[:IS]->(b) "
    "CREATE (a)<-[:SUBJECT]-(:Statement {graph: 'default', sid: 1, name: 'knows'})-[:OBJECT]->(b) "
    "CREATE (a)-[:MEMBER_OF {sources: ['world'], rows: [1]}]->(c:Entity:Concept {graph: 'default', id: 'c', name: 'person', "
    "key: 'person', kind: 1})-[:SUBCLASS_OF {sources: ['world'], rows: [1]}]->(:Entity:Concept {graph: 'default', id: 'd'}) "
    "CREATE (:Entity:Row {graph: 'default', id: 'r', source: 'world', row: 1, kind: 2})",
    "UNWIND range(1, 50) AS i CREATE (:Entity {graph: 'default', id: 'e' + i})-[:knows {sid: i}]->(:Value {graph: 'default'})",
)
#: Its own constraints and indexes, on labels that condgraph once had, with the names of indexes
#: that it once had.
SCHEMA = (
    "CREATE CONSTRAINT app_graph FOR (n:Graph) REQUIRE n.owner IS UNIQUE",
    "CREATE CONSTRAINT condgraph_source FOR (n:Source) REQUIRE n.id IS UNIQUE",
    "CREATE INDEX condgraph_entity_key FOR (n:Entity) ON (n.nickname)",
    "CREATE INDEX app_value FOR (n:Value) ON (n.key)",
    "CREATE FULLTEXT INDEX app_text FOR (n:Entity|Value) ON EACH [n.name]",
    "CREATE INDEX app_knows FOR ()-[r:knows]-() ON (r.sid)",
)
PROGRAMS = (
    "FindAll() Count()",
    "FindAll() QueryName()",
    "Find(Ann) Relate(knows, forward) QueryName()",
    "Find(Ann) QueryAttr(height)",
    "FindAll() FilterConcept(person) QueryName()",
    "FindAll() FilterNum(height, 1.7 metre, >) QueryName()",
    "FindAll() FilterYear(born, 1980, =) QueryName()",
)
NODES = (
    "MATCH (n) WHERE none(label IN labels(n) WHERE label STARTS WITH 'Condgraph') "
    "RETURN elementId(n) AS id, labels(n) AS labels, properties(n) AS properties ORDER BY id"
)
EDGES = (
    "MATCH (a)-[r]->(b) WHERE none(label IN labels(a) + labels(b) WHERE label STARTS WITH 'Condgraph') "
    "RETURN elementId(r) AS id, type(r) AS type, properties(r) AS properties, elementId(a) AS a, elementId(b) AS b ORDER BY id"
)
MADE = "SHOW INDEXES YIELD name, type, labelsOrTypes, properties, owningConstraint RETURN * ORDER BY name"
CONSTRAINED = "SHOW CONSTRAINTS YIELD name, type, labelsOrTypes, properties RETURN * ORDER BY name"


@pytest.fixture
def driver(each_neo4j_uri: str) -> Iterator[neo4j.Driver]:
    """A database that is full of the application's own data, and of nothing else when it goes."""
    with neo4j.GraphDatabase.driver(each_neo4j_uri, notifications_min_severity="OFF") as driver:
        for text in (*SCHEMA, *FOREIGN):
            driver.execute_query(text)
        driver.execute_query("CALL db.awaitIndexes(60)")
        yield driver
        driver.execute_query("MATCH (n) WHERE none(label IN labels(n) WHERE label STARTS WITH 'Condgraph') DETACH DELETE n")
        for text in SCHEMA:
            name = text.replace("FULLTEXT ", "").split()[2]
            driver.execute_query(f"DROP {'CONSTRAINT' if ' CONSTRAINT ' in text else 'INDEX'} {name} IF EXISTS")


def everything(driver: neo4j.Driver) -> list[list[dict[str, Any]]]:
    """All that is the application's."""
    ours = {one.name for one in (*CONSTRAINTS, *INDEXES)} | {"condgraph_4_embedding"}
    found = [[record.data() for record in driver.execute_query(text).records] for text in (NODES, EDGES, MADE, CONSTRAINED)]
    return [[row for row in rows if row.get("name") not in ours and "condgraph_vectors" not in str(row)] for rows in found]


def test_nothing_of_others_changes(driver: neo4j.Driver, tmp_path: Path) -> None:
    before = everything(driver)
    assert len(before[0]) > 100
    local = world()
    with condgraph.open(driver, layout="condgraph") as remote:
        assert isinstance(remote, Neo4jGraph)
        remote.push(local)
        assert everything(driver) == before
        remote.push(local)
        more = [Statement("a", "knows", Ref("new")), Entity("new", "New", EntityKind.ENTITY), Statement("a", "height", "tall")]
        for graph in (local, remote):
            graph.add(more, source="more")
        assert everything(driver) == before
        for program in PROGRAMS:
            answer, expected = remote.kopl(program), local.kopl(program)
            assert answer.texts == expected.texts, program
            assert {str(fact) for fact in answer.evidence} == {str(fact) for fact in expected.evidence}, program
        pattern = [("Ann", "knows", "UNKNOWN person")]
        assert remote.match(pattern, k=3).texts == local.match(pattern, k=3).texts
        remote.index()
        local.index()
        assert remote.match(pattern, k=3).texts == local.match(pattern, k=3).texts
        assert remote.match(pattern, k=3, exact=False).approximate
        assert contents(remote.snapshot()) == contents(local)
        assert remote.status().counts == local.status().counts
        assert everything(driver) == before
        # The application goes on.
        driver.execute_query("CREATE (:Graph {name: 'default', owner: 'Bob'}), (:Entity {graph: 'default', id: 'a'}), (:Source)")
        before = everything(driver)
        assert remote.kopl("FindAll() Count()").texts == local.kopl("FindAll() Count()").texts
        assert remote.delete()
        assert everything(driver) == before
        assert not remote.delete()
        assert everything(driver) == before
    ours = "any(label IN labels(n) WHERE label STARTS WITH 'Condgraph')"
    assert driver.execute_query(f"MATCH (n) WHERE {ours} AND coalesce(n.graph, n.name) = 'default' RETURN n").records == []


def test_an_index_of_others_under_a_name_of_ours_is_an_error_that_names_it(neo4j_uri: str) -> None:
    """A server would take it for the one that is asked for, and make none."""
    with neo4j.GraphDatabase.driver(neo4j_uri, notifications_min_severity="OFF") as driver:
        names = [row["name"] for row in driver.execute_query("SHOW INDEXES YIELD name RETURN name").records]
        for one in (*CONSTRAINTS, *INDEXES):
            if one.name == "condgraph_4_any_start" and one.name in names:
                driver.execute_query(f"DROP INDEX {one.name}")
        driver.execute_query("CREATE INDEX condgraph_4_any_start FOR (n:Mine) ON (n.start)")
        try:
            local = Graph()
            local.add([Statement("a", "p", Ref("b"))])
            with (
                condgraph.open(driver, graph="named") as remote,
                pytest.raises(StoreError, match=r"'condgraph_4_any_start' on Mine"),
            ):
                remote.push(local)  # type: ignore[attr-defined]
        finally:
            driver.execute_query("DROP INDEX condgraph_4_any_start")
