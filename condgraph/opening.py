"""Where a graph is: a directory, memory, or a server, told by its place."""

from __future__ import annotations

import os
from typing import Any, Final

from condgraph.engine.errors import OptionError
from condgraph.graph import Graph

NEO4J_SCHEMES: Final = ("neo4j", "neo4j+s", "neo4j+ssc", "bolt", "bolt+s", "bolt+ssc")
SPARQL_SCHEMES: Final = ("sparql+http", "sparql+https")
#: What Neo4j's connection takes.
LOGIN: Final = ("user", "password", "database")


def open(place: Any = "memory:", *, graph: str = "default", read_only: bool = False, **options: Any) -> Graph:
    """Open a graph: a directory (made by the first load), "memory:", Neo4j, or a SPARQL endpoint.

    Neo4j is an address (`neo4j://host:7687`, `bolt+s://...`), a `neo4j.Driver`, or a `py2neo.Graph`; `user`, `password` and
    `database` are options, or come from the address or from `NEO4J_USERNAME`, `NEO4J_PASSWORD` and `NEO4J_DATABASE`. An endpoint is
    `sparql+https://host/sparql`, with options: `update` and `store`, its addresses for updates and for the Graph Store Protocol,
    `base`, the IRI of the graph, `user`, `password`, `method`.
    """
    if isinstance(place, (str, os.PathLike)):
        scheme, mark, _ = os.fspath(place).partition("://")
        if scheme in SPARQL_SCHEMES and mark:
            from condgraph.remote_sparql import SparqlGraph

            return SparqlGraph(os.fspath(place), graph=graph, read_only=read_only, **options)
        if not mark:
            if options:
                raise OptionError(f"a folder takes no option {next(iter(options))!r}", hint="options are for servers")
            return Graph(place, graph=graph, read_only=read_only)
        if scheme not in NEO4J_SCHEMES:
            raise OptionError(f"{place!r} is no directory", hint="directories, 'memory:', Neo4j and SPARQL endpoints open")
    wrong = next((name for name in options if name not in LOGIN), None)
    if wrong is not None:
        raise OptionError(f"Neo4j takes no option {wrong!r}", hint=f"it takes: {', '.join(LOGIN)}")
    # The driver and all that needs it are imported for those who have a server.
    from condgraph.remote_neo4j import Neo4jGraph

    return Neo4jGraph(place, graph=graph, read_only=read_only, **options)
