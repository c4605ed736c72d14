"""Opens a graph by its place: a directory, memory, or the address of a server."""

from __future__ import annotations

import builtins
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Never

from condgraph.engine.addresses import NEO4J_SCHEMES, SPARQL_SCHEMES, SQL_SCHEMES, check_scheme, is_misplaced_login, shown
from condgraph.engine.errors import OptionError, StoreMissingError, nearest
from condgraph.graph import Graph
from condgraph.storage import no_versions

if TYPE_CHECKING:
    from condgraph.versions import AsOf

_EXAMPLE: Final = (
    "neo4j://localhost:7687 for Neo4j, sparql+http://localhost:8890/sparql for an RDF store, "
    "duckdb:///file.duckdb, postgresql://localhost/database or spark://host:7077 for SQL; a folder has no ://"
)
#: What Neo4j's connection takes.
LOGIN: Final = ("user", "password", "database", "timeout", "patience")
#: How a database there is laid out.
LAYOUTS: Final = ("condgraph", "native")


def open(
    place: Any = "memory:",
    *,
    graph: str = "default",
    read_only: bool = False,
    as_of: AsOf | None = None,
    layout: str | None = None,
    mapping: str | os.PathLike[str] | None = None,
    labels: bool | None = None,
    warm: bool = False,
    user: str | None = None,
    password: str | None = None,
    database: str | None = None,
    timeout: float | None = None,
    patience: float | None = None,
    update: str | None = None,
    store: str | None = None,
    base: str | None = None,
    method: str | None = None,
    folder: str | os.PathLike[str] | None = None,
    same: Mapping[str, Any] | None = None,
    **unknown: Never,
) -> Graph:
    """Open a graph: a directory (made by the first load), "memory:", Neo4j, a SPARQL endpoint, or a SQL database.

    Neo4j is an address (`neo4j://host:7687`, `bolt+s://...`), a `neo4j.Driver`, or a
    `py2neo.Graph`; an endpoint is `sparql+https://host/sparql`. A Neo4j database that has nodes, and
    no graph of condgraph's, is queried as it is, and nothing is written there. An endpoint that has
    triples, and no graph of condgraph's, is queried as it is too, unless `graph`, `update`, `store` or
    `base` is given. An option that the place does not have is an `OptionError`. A SQL database is
    `duckdb:///file.duckdb` (four slashes begin an absolute path) or `postgresql://host/database`; a graph
    is a schema of it. Spark is a `SparkSession` or `spark://MASTER`, such as `spark://host:7077` and
    `spark://local[2]`; an export to Parquet is asked there, or its tables with `mapping`. A SQL database that
    has tables, and no graph of condgraph's, is queried as it is, and nothing is written there.

    - `graph`: the name of the graph in its store
    - `read_only`: whether loads are refused
    - `as_of`: of a folder, the version that is opened, by its id or by a time at which it was the
      current one; read-only
    - `user`, `password`: the login of a server, by default from the address or the environment
      (`NEO4J_USERNAME`, `NEO4J_PASSWORD`, `SPARQL_USERNAME`, `SPARQL_PASSWORD`)
    - `timeout`: the deadline, in seconds, of calls to a server that are given none
    - `patience`: for how many seconds (30) a server may be silent where it has little to do: accept a
      connection, give the state of a graph or the plan of a query
    - `database`: of Neo4j, by default `NEO4J_DATABASE`, or the user's home database
    - `layout`: "native" for a Neo4j database, a SQL database, or the triples of an endpoint, as they are,
      "condgraph" for a graph of condgraph's
    - `mapping`: the place of a mapping file, which says how to read what is there as it is
    - `labels`: of a graph of condgraph's on Neo4j, whether its entities carry their direct concepts as
      labels after the next load; by default they do where nothing else was in the database when the
      graph was first loaded
    - `warm`: of Neo4j, whether it plans the commonest shapes of queries in the background, so that
      their first runs take less
    - `update`, `store`: of an RDF store, its addresses for updates and for the Graph Store Protocol
    - `base`: of an RDF store, the IRI of the graph
    - `method`: of an RDF store, "get", "post" or "auto"
    - `folder`: of Spark, where an export to Parquet is, as Spark reads it
    - `same`: of several stores, which entities of one are entities of the others: by its name the concepts whose
      members are the entities of their name, or the ids there by the ids in the others

    A list of places, or a mapping with names, is several stores asked as one graph, which is only read; each of
    them may be an open graph.
    """
    given: dict[str, Any] = {
        "user": user, "password": password, "database": database, "timeout": timeout, "patience": patience,
        "update": update, "store": store, "base": base, "method": method, "folder": folder,
    }  # fmt: skip
    options = {name: value for name, value in given.items() if value is not None} | unknown
    if layout is not None and layout not in LAYOUTS:
        raise OptionError(f"layout is 'condgraph' or 'native', not {layout!r}", candidates=nearest(str(layout), LAYOUTS))
    if isinstance(place, (list, tuple, Mapping)):
        return _several(place, graph, same, {"layout": layout, "mapping": mapping, "as_of": as_of, "labels": labels, **options})
    if same is not None:
        raise OptionError("same is about several stores", hint="condgraph.open([a, b], same=...)")
    if _is_session(place):
        _check_about({"labels": labels, "warm": warm or None})
        if as_of is not None:
            raise no_versions("a graph on Spark")
        return _sql(place, graph, read_only, layout, mapping, options)
    if isinstance(place, (str, os.PathLike)):
        if not os.fspath(place):
            # A variable that is not set would make a store of the current folder.
            raise OptionError("the place of a graph is empty", hint='a folder, an address, or "memory:"; "." is this folder')
        scheme, mark, _ = os.fspath(place).partition("://")
        scheme = scheme.lower()
        of_neo4j: dict[str, Any] = {"labels": labels, "warm": warm or None}
        if not (mark and scheme in (*SPARQL_SCHEMES, *SQL_SCHEMES)):
            of_neo4j |= {"layout": layout, "mapping": mapping}
        if not (mark and scheme in NEO4J_SCHEMES):
            _check_about(of_neo4j)
        if mark and as_of is not None:
            raise no_versions(os.fspath(place))
        if scheme in SPARQL_SCHEMES and mark:
            from condgraph.remote_sparql import SparqlGraph

            _check_native(layout, mapping, graph)
            if layout == "native" or mapping is not None:
                from condgraph.remote_triples import triples

                return triples(os.fspath(place), mapping=mapping, **options)
            if layout is None and graph == "default" and not {"update", "store", "base"} & options.keys():
                from condgraph.remote_triples import existing_triples

                existing_rdf = existing_triples(os.fspath(place), **options)
                if existing_rdf is not None:
                    return existing_rdf
            return SparqlGraph(os.fspath(place), graph=graph, read_only=read_only, **options)
        if scheme in SQL_SCHEMES and mark:
            return _sql(os.fspath(place), graph, read_only, layout, mapping, options)
        if not mark:
            if is_misplaced_login(os.fspath(place)) and not os.path.exists(place):
                raise OptionError(f"{shown(os.fspath(place))!r} is an address without its scheme", hint=f"such as {_EXAMPLE}")
            _check_folder(os.fspath(place))
            if options:
                raise OptionError(f"a folder takes no option {next(iter(options))!r}", hint="options are for servers")
            return Graph(place, graph=graph, read_only=read_only, as_of=as_of)
        check_scheme(os.fspath(place), (*NEO4J_SCHEMES, *SPARQL_SCHEMES, *SQL_SCHEMES), example=_EXAMPLE)
    if as_of is not None:
        raise no_versions("a graph on Neo4j")
    wrong = next((name for name in options if name not in LOGIN), None)
    if wrong is not None:
        raise OptionError(
            f"Neo4j takes no option {wrong!r}", candidates=nearest(wrong, LOGIN), hint=f"it takes: {', '.join(LOGIN)}"
        )
    _check_native(layout, mapping, graph)
    if labels is not None:
        if layout == "native" or mapping is not None:
            raise OptionError("labels is for a graph of condgraph's own", hint="leave `labels` out")
        layout = "condgraph"
    # The driver and all that needs it are imported for those who have a server.
    from condgraph.remote_neo4j import Neo4jGraph

    if layout == "native" or mapping is not None or (layout is None and graph == "default"):
        from condgraph.remote_native import native

        found = native(place, sure=layout == "native" or mapping is not None, mapping=mapping, **options)
        if found is not None:
            if warm:
                found.store.warm_behind()
            return found
    opened = Neo4jGraph(place, graph=graph, read_only=read_only, labels=labels, **options)
    try:
        opened.store.connection.reach()
    except BaseException:
        opened.close()
        raise
    if warm:
        opened.store.warm_behind()
    return opened


def _check_about(of_neo4j: dict[str, Any]) -> None:
    about = next((name for name, value in of_neo4j.items() if value is not None), None)
    if about is not None:
        raise OptionError(f"{about} is about a Neo4j database", hint=f"such as {_EXAMPLE}")


def _is_session(place: Any) -> bool:
    """Whether a place is a session of Spark."""
    return any(sort.__name__ == "SparkSession" and sort.__module__.startswith("pyspark.") for sort in type(place).__mro__)


def _sql(place: Any, graph: str, read_only: bool, layout: str | None, mapping: Any, options: dict[str, Any]) -> Graph:
    """A graph in a SQL database, or its tables as a graph."""
    from condgraph.remote_sql import SqlGraph, theirs

    sure = layout == "native" or mapping is not None
    if sure and (graph != "default" or layout == "condgraph"):
        raise OptionError("tables that condgraph did not write are one graph", hint="leave `graph` and `layout` out")
    if sure or (layout is None and graph == "default" and "folder" not in options):
        existing = theirs(place, sure=sure, mapping=mapping, **options)
        if existing is not None:
            return existing
    return SqlGraph(place, graph=graph, read_only=read_only, **options)


def _check_folder(place: str) -> None:
    """Raise for what is meant as another place than a folder: an address that lacks its slashes, and a file."""
    scheme, mark, rest = place.partition(":")
    if mark and scheme.lower() in (*NEO4J_SCHEMES, *SPARQL_SCHEMES, *SQL_SCHEMES) and not os.path.exists(place):
        # A file of DuckDB has no login that might be shown.
        meant = f"duckdb:///{rest.removeprefix('//')}" if scheme.lower() == "duckdb" else shown(f"{scheme}://{rest.lstrip('/')}")
        raise OptionError(f"an address has slashes after {scheme}:", hint=f"{meant}; a folder begins with ./")
    if not os.path.isfile(place):
        return
    with builtins.open(place, "rb") as file:
        is_duckdb = file.read(12)[8:] == b"DUCK"
    hint = f"condgraph.open({f'duckdb:///{place}'!r})" if is_duckdb else "load() reads files into a graph"
    raise StoreMissingError(f"{place} is a file, and a graph is a folder", hint=hint)


def _several(places: Any, graph: str, same: Any, given: dict[str, Any]) -> Graph:
    """Several stores as one graph."""
    wrong = next((name for name, value in given.items() if value is not None), None)
    if wrong is not None or graph != "default":
        raise OptionError(
            f"{wrong or 'graph'} is about one store",
            hint="open each with its own options: condgraph.open([condgraph.open(..., graph=...), ...])",
        )
    from condgraph.remote_several import several

    return several(places, lambda place: open(place, read_only=True), same)


def _check_native(layout: str | None, mapping: Any, graph: str) -> None:
    if (layout == "native" or mapping is not None) and graph != "default":
        raise OptionError("a database that condgraph did not write is one graph", hint="leave `graph` out")
    if layout == "condgraph" and mapping is not None:
        raise OptionError("mapping is for a database that condgraph did not write", hint="leave `layout` out")
