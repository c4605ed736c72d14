"""Where a graph is: a directory, memory, or a server, told by its place."""

from __future__ import annotations

import os
from typing import Any, Final

from condgraph.engine.errors import OptionError
from condgraph.graph import Graph

NEO4J_SCHEMES: Final = ("neo4j", "neo4j+s", "neo4j+ssc", "bolt", "bolt+s", "bolt+ssc")


def open(place: Any = "memory:", *, graph: str = "default", read_only: bool = False) -> Graph:
    """Open a graph: a directory (made by the first load), "memory:", or Neo4j.

    Neo4j is an address (`neo4j://host:7687`, `bolt+s://...`; user and password from it or from `NEO4J_USERNAME` and
    `NEO4J_PASSWORD`, the database from `NEO4J_DATABASE`), a `neo4j.Driver`, or a `py2neo.Graph`.
    """
    if isinstance(place, (str, os.PathLike)):
        scheme, mark, _ = os.fspath(place).partition("://")
        if not mark:
            return Graph(place, graph=graph, read_only=read_only)
        if scheme not in NEO4J_SCHEMES:
            raise OptionError(f"{place!r} is no directory", hint="this version opens directories, 'memory:' and Neo4j")
    # The driver and all that needs it are imported for those who have a server.
    from condgraph.remote import Neo4jGraph

    return Neo4jGraph(place, graph=graph, read_only=read_only)
