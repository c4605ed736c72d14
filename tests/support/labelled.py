"""The labels of concepts that entities on Neo4j carry, and those that they should, by id."""

from __future__ import annotations

import json
from collections import Counter

from condgraph.graph import Graph
from condgraph.remote_neo4j import Neo4jGraph

_CARRIED = (
    "MATCH (e:CondgraphEntity {graph: $graph}) WITH e.id AS id, [l IN labels(e) WHERE NOT l STARTS WITH 'Condgraph'] AS found "
    "WHERE size(found) > 0 RETURN id, found"
)
_STATED = "MATCH (g:CondgraphGraph {name: $graph}) RETURN g.labels AS labels, g.labelling AS labelling"


def carried(remote: Neo4jGraph) -> dict[str, set[str]]:
    """What entities on the server carry; what the graph's node says of it is compared."""
    given = {"graph": remote.name}
    found = {row["id"]: set(row["found"]) for row in remote.store.connection.read(_CARRIED, given)}
    (stated,) = remote.store.connection.read(_STATED, given)
    assert json.loads(stated["labels"] or "{}") == Counter(label for labels in found.values() for label in labels)
    assert stated["labelling"] is None
    return found


def concepts(graph: Graph) -> dict[str, set[str]]:
    """The names of the direct concepts of entities, from the statements of a graph in process."""
    snapshot = graph.current
    pairs = zip(snapshot.arrays.get("mem.e").tolist(), snapshot.arrays.get("mem.c").tolist(), strict=True)
    found: dict[str, set[str]] = {}
    for member, concept in pairs:
        if snapshot.entity(member).kind.name != "CONCEPT":
            found.setdefault(snapshot.ident(member), set()).add(snapshot.name(concept))
    return found
