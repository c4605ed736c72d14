"""Where a graph is: a directory, memory, or a server, told by its place."""

from __future__ import annotations

import os
from typing import Any, Final

from condgraph.engine.addresses import NEO4J_SCHEMES, SPARQL_SCHEMES, check_scheme, is_misplaced_login, shown
from condgraph.engine.errors import OptionError
from condgraph.graph import Graph

_EXAMPLE: Final = "neo4j://localhost:7687 for Neo4j, sparql+http://localhost:8890/sparql for an RDF store; a folder has no ://"
#: What Neo4j's connection takes.
LOGIN: Final = ("user", "password", "database", "timeout", "patience")


def open(place: Any = "memory:", *, graph: str = "default", read_only: bool = False, **options: Any) -> Graph:
    """Open a graph: a directory (made by the first load), "memory:", Neo4j, or a SPARQL endpoint.

    Neo4j is an address (`neo4j://host:7687`, `bolt+s://...`), a `neo4j.Driver`, or a
    `py2neo.Graph`; `user`, `password` and `database` are options, or come from the address or from
    `NEO4J_USERNAME`, `NEO4J_PASSWORD` and `NEO4J_DATABASE`. An endpoint is
    `sparql+https://host/sparql`, with options: `update` and `store`, its addresses for updates and
    for the Graph Store Protocol, `base`, the IRI of the graph, `user`, `password`, `method`. Of any
    server `timeout` is the deadline in seconds of calls that are given none, and `patience` (30
    seconds) is for how long it may say nothing where it has little to do: accept a connection, tell
    the state of a graph or the plan of a query.
    """
    if isinstance(place, (str, os.PathLike)):
        scheme, mark, _ = os.fspath(place).partition("://")
        scheme = scheme.lower()
        if scheme in SPARQL_SCHEMES and mark:
            from condgraph.remote_sparql import SparqlGraph

            return SparqlGraph(os.fspath(place), graph=graph, read_only=read_only, **options)
        if not mark:
            if is_misplaced_login(os.fspath(place)) and not os.path.exists(place):
                raise OptionError(f"{shown(os.fspath(place))!r} is an address without its scheme", hint=f"such as {_EXAMPLE}")
            if options:
                raise OptionError(f"a folder takes no option {next(iter(options))!r}", hint="options are for servers")
            return Graph(place, graph=graph, read_only=read_only)
        check_scheme(os.fspath(place), (*NEO4J_SCHEMES, *SPARQL_SCHEMES), example=_EXAMPLE)
    wrong = next((name for name in options if name not in LOGIN), None)
    if wrong is not None:
        raise OptionError(f"Neo4j takes no option {wrong!r}", hint=f"it takes: {', '.join(LOGIN)}")
    # The driver and all that needs it are imported for those who have a server.
    from condgraph.remote_neo4j import Neo4jGraph

    return Neo4jGraph(place, graph=graph, read_only=read_only, **options)
