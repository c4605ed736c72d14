"""How expressions read the properties of existing databases: by all values of a key, not by those that a query meets."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from condgraph.cypher.connection import Connection
from condgraph.graph import Graph
from condgraph.remote_native import NativeGraph
from tests.native.test_random_cypher import rests_on
from tests.support.native_databases import database
from tests.support.random_cypher import Query

pytestmark = pytest.mark.xdist_group("neo4j native")
#: A list property with one value in a node; whole numbers and floats, and texts that are truth values and others, of one key.
_NODES = """
    CREATE (a:A {name: 'a', tags: ['x', 'y'], size: 1, open: 'true'}), (b:A {name: 'b', tags: ['z'], size: 2, open: 'zzz'}),
      (c:B {name: 'c', size: 2.5, open: 'no'}), (:B {name: 'd', size: 1.5, open: 'never'}), (:B {name: 'cc', size: 1.5})
    CREATE (a)-[:KNOWS {roles: ['r', 's'], weight: 1, sure: 'false'}]->(b), (b)-[:KNOWS {roles: ['t'], weight: 1.5}]->(a),
      (b)-[:LIKES {weight: 0.5, sure: 'often'}]->(c), (c)-[:LIKES {sure: 'never'}]->(a)
"""


@pytest.fixture(scope="module")
def both(emptied_neo4j_uri: str) -> Iterator[tuple[NativeGraph, Graph]]:
    """The database, and the same in process."""
    with database(emptied_neo4j_uri) as driver:
        driver.execute_query(_NODES)
        with NativeGraph(Connection(emptied_neo4j_uri)) as there:
            yield there, there.snapshot()


@pytest.mark.parametrize(
    "text",
    [
        "MATCH (n:A) RETURN n.name, [x IN n.tags | x + '!'], last(n.tags)",
        "MATCH (n:B) RETURN [x IN n.tags | x]",
        "MATCH (n {name: 'a'}) RETURN n.size, n.open",
        "MATCH (n:A) RETURN n.size + 1 AS more, n.open ORDER BY more",
        "MATCH (n {name: 'a'}) RETURN properties(n), n['size']",
        "MATCH (n {name: 'a'})-[r]->() RETURN r.weight, r.sure",
        "MATCH (n {name: 'a'})-[r:KNOWS]-() RETURN r.weight ORDER BY r.weight",
        "MATCH (n {name: 'b'})-[r]->() UNWIND r.roles AS role RETURN role, [x IN r.roles | x]",
    ],
)
def test_as_in_process(both: tuple[NativeGraph, Graph], text: str) -> None:
    there, here = (rests_on(graph, Query(text, {}, False, ())) for graph in both)
    assert there == here
    assert len(there) > 2, there
