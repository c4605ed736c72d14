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
#: A list property with one value in a node.
_NODES = """
    CREATE (a:A {name: 'a', tags: ['x', 'y']}), (b:A {name: 'b', tags: ['z']}), (:B {name: 'c'})
    CREATE (a)-[:KNOWS {roles: ['r', 's']}]->(b), (b)-[:KNOWS {roles: ['t']}]->(a)
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
        "MATCH (n {name: 'b'})-[r]->() UNWIND r.roles AS role RETURN role, [x IN r.roles | x]",
    ],
)
def test_as_in_process(both: tuple[NativeGraph, Graph], text: str) -> None:
    there, here = (rests_on(graph, Query(text, {}, False, ())) for graph in both)
    assert there == here
    assert len(there) > 2, there
