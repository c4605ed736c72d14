"""Statements as a graph of NetworkX or igraph."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from condgraph.engine.errors import MissingExtraError
from condgraph.engine.evidence import Evidence, place_text
from condgraph.engine.facts import Entity

if TYPE_CHECKING:
    import igraph
    import networkx

#: A node: the entity's id, and its attributes; an edge: the ids of its ends, and its attributes.
Nodes = dict[str, dict[str, Any]]
Edges = list[tuple[str, str, dict[str, Any]]]


def parts_of(statements: Iterable[Evidence]) -> tuple[Nodes, Edges]:
    """Nodes with their `name` and `kind`, and their values by predicate in `values`; edges with their `predicate`,
    `qualifiers` and `sources`.
    """
    nodes: Nodes = {}
    edges: Edges = []

    def node(entity: Entity) -> dict[str, Any]:
        return nodes.setdefault(entity.id, {"name": entity.name, "kind": entity.kind.name.lower(), "values": {}})

    for one in statements:
        subject = node(one.subject)
        if isinstance(one.object, Entity):
            node(one.object)
            sources = [place_text(source, row) for source, row in one.sources]
            about = {"predicate": one.predicate, "qualifiers": list(one.qualifiers), "sources": sources}
            edges.append((one.subject.id, one.object.id, about))
        else:
            subject["values"].setdefault(one.predicate, []).append(one.object)
    return nodes, edges


def to_networkx(statements: Iterable[Evidence]) -> networkx.MultiDiGraph:
    """`EvidenceList.to_networkx`."""
    try:
        import networkx
    except ImportError:
        raise MissingExtraError("networkx", "networkx") from None
    graph = networkx.MultiDiGraph()
    nodes, edges = parts_of(statements)
    graph.add_nodes_from(nodes.items())
    graph.add_edges_from(edges)
    return graph


def to_igraph(statements: Iterable[Evidence]) -> igraph.Graph:
    """`EvidenceList.to_igraph`."""
    try:
        import igraph
    except ImportError:
        raise MissingExtraError("igraph", "igraph") from None
    nodes, edges = parts_of(statements)
    places = {ident: place for place, ident in enumerate(nodes)}
    graph = igraph.Graph(len(nodes), [(places[start], places[end]) for start, end, _ in edges], directed=True)
    graph.vs["id"] = list(nodes)
    for key in ("name", "kind", "values"):
        graph.vs[key] = [about[key] for about in nodes.values()]
    for key in ("predicate", "qualifiers", "sources"):
        graph.es[key] = [about[key] for _, _, about in edges]
    return graph
