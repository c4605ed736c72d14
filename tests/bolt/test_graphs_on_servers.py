"""`condgraph serve --bolt` for graphs on servers and in databases: rows equal those of the same graph in a folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import condgraph
from condgraph.samples import SAMPLES
from tests.bolt.test_drivers import served
from tests.support.lanes import sample

neo4j = pytest.importorskip("neo4j")
pytestmark = pytest.mark.service

QUERIES = [
    "MATCH (c:country {name: 'Nepal'})-[r:continent]->(k) RETURN c, r, k.name AS name, [c, k] AS both, {a: c} AS map",
    "MATCH (c)-[r:`head of government`]->(p) RETURN r, properties(r) AS all, p ORDER BY c.name, p.name, r.`start time`.year",
    "MATCH p = (:continent {name: 'Asia'})<-[:continent]-(:country {name: 'Nepal'}) RETURN p",
    "MATCH (m:mountains) RETURN m, m.height AS height ORDER BY m.name",
    "MATCH (n) RETURN n ORDER BY n.name, elementId(n)",
    "MATCH (n) RETURN labels(n) AS labels, count(*) AS n ORDER BY n, labels",
    "RETURN 1.0 AS a, 1 AS b, null AS n, "
    "date('2020-01-01') AS d, duration('P1D') AS u, point({longitude: 1.5, latitude: 2.0}) AS p",
    "CALL db.labels()",
    "CALL db.schema.nodeTypeProperties()",
    "CALL db.schema.relTypeProperties()",
]


def load(place: Any, **options: Any) -> None:
    with condgraph.open(place, **options) as graph:
        for sample in SAMPLES:
            graph.load(sample.path, format=sample.format, **sample.options)


@pytest.fixture(scope="module")
def folder_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("bolt") / "world"
    load(folder)
    with served(folder) as address:
        yield address


@pytest.fixture(params=[*(pytest.param(one, marks=pytest.mark.slow) for one in ("duckdb", "oxigraph")), "neo4j"])
def stored_address(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Bolt of a server for the same graph in another store, under a name of its own."""
    if request.param == "duckdb":
        pytest.importorskip("duckdb")
        place, options = f"duckdb:///{tmp_path}/world.duckdb", {}
    elif request.param == "oxigraph":
        server = request.getfixturevalue("oxigraph_server")
        place, options = f"sparql+{server.query}", {"update": server.update}
    else:
        place, options = request.getfixturevalue("neo4j_uri"), {}
    with condgraph.open(place, graph="over-bolt", **options) as graph:
        for sample in SAMPLES:
            graph.load(sample.path, format=sample.format, **sample.options)
    try:
        # Neo4j plans its first queries for long on a busy machine.
        with served(place, "--graph", "over-bolt", "--timeout", "200") as address:
            yield address
    finally:
        with condgraph.open(place, graph="over-bolt", **options) as graph:
            graph.delete()


def plain(value: Any) -> Any:
    """A value of a driver without the ids that stores number themselves, and with its type."""
    if isinstance(value, neo4j.graph.Node):
        return "node", value.element_id, sorted(value.labels), plain(dict(value))
    if isinstance(value, neo4j.graph.Relationship):
        return "relationship", value.start_node.element_id, value.type, value.end_node.element_id, plain(dict(value))
    if isinstance(value, neo4j.graph.Path):
        return "path", [plain(node) for node in value.nodes], [plain(one) for one in value.relationships]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return type(value).__name__, value


def rows(session: Any, text: str, **parameters: Any) -> list[Any]:
    return [[plain(cell) for cell in record] for record in session.run(text, **parameters)]


def test_rows_equal_those_of_the_graph_in_a_folder(
    folder_address: str, stored_address: str, request: pytest.FixtureRequest
) -> None:
    with (
        neo4j.GraphDatabase.driver(f"bolt://{folder_address}") as near,
        neo4j.GraphDatabase.driver(f"neo4j://{stored_address}") as far,
        near.session() as one,
        far.session() as other,
    ):
        # Neo4j plans each for long.
        for text in sample(QUERIES, 3 if request.node.callspec.params["stored_address"] == "neo4j" else 1):
            result = rows(other, text)
            assert result == rows(one, text), text
            assert result, text
        name = rows(other, "MATCH (c {name: $name})-[:continent]->(k) RETURN k.name", name="Nepal")
        assert name == [[("str", "Asia")]]
        # Relationships of a type between the same labels, as tools draw them.
        drawn = other.run("CALL db.schema.visualization()").single()
        expected = one.run("CALL db.schema.visualization()").single()
        assert {r.type for r in drawn["relationships"]} == {r.type for r in expected["relationships"]}
        assert {n["name"] for n in drawn["nodes"]} == {n["name"] for n in expected["nodes"]}
        with pytest.raises(neo4j.exceptions.ClientError) as refused:
            other.run("CREATE (n) RETURN n").consume()
        assert refused.value.code == "Neo.ClientError.Statement.AccessMode"
        query = neo4j.Query("UNWIND range(1, 3000) AS a UNWIND range(1, 3000) AS b RETURN count(a * b)", timeout=0.3)
        with pytest.raises(neo4j.exceptions.ClientError, match="did not end"):
            other.run(query).consume()
        # A transaction reads the graph twice.
        with other.begin_transaction() as transaction:
            assert [transaction.run("MATCH (n) RETURN count(n) AS n").single()["n"] for _ in range(2)] == [156, 156]
