"""Taking a graph out of a database, in batches: relationships before entities, so that no batch is as large as a hub."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from condgraph.cypher.connection import Connection

#: Nodes that are looked at together.
_PAGE: Final = 2_000
#: Values that a transaction takes away, with their qualifiers.
_VALUES: Final = 5_000
#: Relationships that a transaction takes away.
_BATCH: Final = 20_000


def delete(connection: Connection, graph: str) -> None:
    """Remove a graph. One that was ended half way is removed by the next; until then the graph is not complete."""
    connection.write(
        "MATCH (g:Graph {name: $graph}) SET g.complete = false, g.loading = 'deleted' REMOVE g.owner", {"graph": graph}
    )
    # No index leads to values: they go while their subjects lead to them.
    values = (
        "UNWIND $keys AS key MATCH (n:Entity {graph: $graph, id: key})-->(v:Value) "
        f"WITH v LIMIT {_VALUES} OPTIONAL MATCH (v)-[:QUALIFIER]->(q:Qualifier) DETACH DELETE q, v"
    )
    edges = f"UNWIND $keys AS key MATCH (n:Entity {{graph: $graph, id: key}})-[r]->() WITH r LIMIT {_BATCH} DELETE r"
    for keys in _pages(connection, graph, "Entity", "id"):
        for text in (values, edges):
            while connection.write(text, {"graph": graph, "keys": keys}).deleted:
                pass
    statements = (
        "UNWIND $keys AS key MATCH (n:Statement {graph: $graph, sid: key}) "
        "OPTIONAL MATCH (n)-[:QUALIFIER]->(q:Qualifier) DETACH DELETE q, n"
    )
    for keys in _pages(connection, graph, "Statement", "sid"):
        connection.write(statements, {"graph": graph, "keys": keys})
    for keys in _pages(connection, graph, "Entity", "id"):
        nodes = "UNWIND $keys AS key MATCH (n:Entity {graph: $graph, id: key}) DETACH DELETE n"
        connection.write(nodes, {"graph": graph, "keys": keys})
    for label, key in (("Predicate", "name"), ("Source", "name"), ("Load", "batch")):
        text = f"MATCH (n:{label}) WHERE n.graph = $graph AND n.{key} IS NOT NULL WITH n LIMIT {_BATCH} DETACH DELETE n"
        while connection.write(text, {"graph": graph}).deleted:
            pass
    connection.write("MATCH (g:Graph {name: $graph}) DELETE g", {"graph": graph})


def _pages(connection: Connection, graph: str, label: str, key: str) -> Iterator[list[Any]]:
    """The keys of the nodes of a label, in pages: the index gives them in order, so no page is looked for twice."""
    first = f"MATCH (n:{label}) WHERE n.graph = $graph AND n.{key} IS NOT NULL RETURN n.{key} AS key ORDER BY key LIMIT {_PAGE}"
    following = f"MATCH (n:{label}) WHERE n.graph = $graph AND n.{key} > $after RETURN n.{key} AS key ORDER BY key LIMIT {_PAGE}"
    keys = [row["key"] for row in connection.read(first, {"graph": graph})]
    while keys:
        yield keys
        keys = [row["key"] for row in connection.read(following, {"graph": graph, "after": keys[-1]})]
