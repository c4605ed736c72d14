"""The concept labels that entities on Neo4j carry, and those that they should carry, by id."""

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
    """Return the labels of entities on the server, after checking them against the counts in the graph's node."""
    parameters = {"graph": remote.name}
    labels_of = {row["id"]: set(row["found"]) for row in remote.store.connection.read(_CARRIED, parameters)}
    (stated,) = remote.store.connection.read(_STATED, parameters)
    assert json.loads(stated["labels"] or "{}") == Counter(label for labels in labels_of.values() for label in labels)
    assert stated["labelling"] is None
    return labels_of


def concepts(graph: Graph) -> dict[str, set[str]]:
    """Return the names of the direct concepts of entities, from a graph in process."""
    snapshot = graph.current
    pairs = zip(snapshot.arrays.get("mem.e").tolist(), snapshot.arrays.get("mem.c").tolist(), strict=True)
    names_of: dict[str, set[str]] = {}
    for member, concept in pairs:
        if snapshot.entity(member).kind.name != "CONCEPT":
            names_of.setdefault(snapshot.ident(member), set()).add(snapshot.name(concept))
    return names_of
