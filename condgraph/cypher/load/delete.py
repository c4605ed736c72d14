"""Taking a graph out of a database, in batches: relationships before entities, so that no batch is
as large as a hub.

Every query begins at nodes of the graph, by labels that only condgraph has: whatever else the
database holds is not looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from condgraph.cypher.layout.schema import DELETED, ENTITY, FORMER, GRAPH, LOAD, PREDICATE, QUALIFIER, SOURCE, STATEMENT, VALUE

if TYPE_CHECKING:
    from condgraph.cypher.connection import Connection

#: Nodes that are looked at together.
_PAGE: Final = 2_000
#: Values that a transaction takes away, with their qualifiers.
_VALUES: Final = 5_000
#: Relationships that a transaction takes away.
BATCH: Final = 20_000
#: The qualifiers of a node that is taken away as well.
_WITH_QUALIFIERS: Final = f"OPTIONAL MATCH (n)-[:QUALIFIER]->(q:{QUALIFIER}) DETACH DELETE q, n"


def delete(connection: Connection, graph: str) -> None:
    """Remove a graph. One that was ended half way is removed by the next; until then the graph is
    not complete.
    """
    connection.write(
        f"MATCH (g:{GRAPH} {{name: $graph}}) SET g.complete = false, g.loading = $deleted REMOVE g.owner, g.what",
        {"graph": graph, "deleted": DELETED},
    )
    remove(connection, graph)
    for label, key in ((PREDICATE, "key"), (SOURCE, "name"), (LOAD, "batch"), (FORMER, "at")):
        text = f"MATCH (n:{label}) WHERE n.graph = $graph AND n.{key} IS NOT NULL WITH n LIMIT {BATCH} DETACH DELETE n"
        while connection.write(text, {"graph": graph}).deleted:
            pass
    connection.write(f"MATCH (g:{GRAPH} {{name: $graph}}) DELETE g", {"graph": graph})


def remove_gone(connection: Connection, graph: str, stamp: int | None) -> None:
    """Remove what a load marked as gone."""
    remove(connection, graph, stamp, mark="gone")
    for label, key in ((PREDICATE, "key"), (SOURCE, "name")):
        text = f"MATCH (n:{label}) WHERE n.graph = $graph AND n.{key} IS NOT NULL AND n.gone = $stamp DETACH DELETE n"
        connection.write(text, {"graph": graph, "stamp": stamp})


def remove(connection: Connection, graph: str, stamp: int | None = None, *, mark: str = "load") -> None:
    """Remove the entities and statements of a graph: all, or those that a load made, or marked."""

    def only(name: str) -> str:
        return "" if stamp is None else f"WHERE {name}.{mark} = $stamp "

    given = {"graph": graph, "stamp": stamp}
    # No index leads to values: they go while their subjects lead to them.
    values = (
        f"UNWIND $keys AS key MATCH (:{ENTITY} {{graph: $graph, handle: key}})-->(n:{VALUE}) {only('n')}"
        f"WITH n LIMIT {_VALUES} {_WITH_QUALIFIERS}"
    )
    edges = f"UNWIND $keys AS key MATCH (:{ENTITY} {{graph: $graph, handle: key}})-[r]->() {only('r')}WITH r LIMIT {BATCH} DELETE r"
    for keys in pages(connection, graph, ENTITY, "handle"):
        for text in (values, edges):
            while connection.write(text, {**given, "keys": keys}).deleted:
                pass
    statements = f"UNWIND $keys AS key MATCH (n:{STATEMENT} {{graph: $graph, sid: key}}) {only('n')}{_WITH_QUALIFIERS}"
    for keys in pages(connection, graph, STATEMENT, "sid"):
        connection.write(statements, {**given, "keys": keys})
    nodes = f"UNWIND $keys AS key MATCH (n:{ENTITY} {{graph: $graph, handle: key}}) {only('n')}DETACH DELETE n"
    for keys in pages(connection, graph, ENTITY, "handle"):
        connection.write(nodes, {**given, "keys": keys})


def pages(connection: Connection, graph: str, label: str, key: str) -> Iterator[list[Any]]:
    """The keys of the nodes of a label, in pages: the index gives them in order, so no page is
    looked for twice.
    """
    first = f"MATCH (n:{label}) WHERE n.graph = $graph AND n.{key} IS NOT NULL RETURN n.{key} AS key ORDER BY key LIMIT {_PAGE}"
    following = f"MATCH (n:{label}) WHERE n.graph = $graph AND n.{key} > $after RETURN n.{key} AS key ORDER BY key LIMIT {_PAGE}"
    keys = [row["key"] for row in connection.read(first, {"graph": graph})]
    while keys:
        yield keys
        keys = [row["key"] for row in connection.read(following, {"graph": graph, "after": keys[-1]})]
