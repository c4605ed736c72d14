"""Open a graph by its place: a directory, memory, the address of a server, or several of these."""

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
#: The options of a connection to Neo4j.
LOGIN: Final = ("user", "password", "database", "timeout", "patience")
#: The layouts of a database: one of condgraph's own, or an existing one as it is.
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
    """Open a graph: a directory (created by the first load), "memory:", Neo4j, a SPARQL endpoint, or a SQL database.

    The place is one of:

    - a path, or "memory:"
    - Neo4j: an address (`neo4j://host:7687`, `bolt+s://...`), a `neo4j.Driver`, or a `py2neo.Graph`
    - a SPARQL endpoint: `sparql+https://host/sparql`
    - a SQL database: `duckdb:///file.duckdb` (four slashes begin an absolute path) or `postgresql://host/database`, in which
      each graph is a schema
    - Spark: a `SparkSession` or `spark://MASTER`, such as `spark://host:7077` and `spark://local[2]`, to query an export to
      Parquet, or tables with `mapping`
    - a list of places or open graphs, or a mapping with their names, which are queried as one read-only graph

    A Neo4j or SQL database with data but no graph of condgraph is queried in place, and nothing is written there. So
    is a SPARQL endpoint, unless `graph`, `update`, `store` or `base` is given.

    Raises `OptionError` for an option that the place does not have, `StoreMissingError` for a file in place of a folder
    and for a version that is not stored, and another `StoreError` if a database does not answer. Some servers are only
    reached by the first query.

    The options:

    - `graph`: the name of the graph in its store
    - `read_only`: whether changes are refused
    - `as_of`: for a folder, the version to open, read-only: its id, or a time at which it was the current one
    - `user`, `password`: the login of a server, by default from the address or the environment
      (`NEO4J_USERNAME`, `NEO4J_PASSWORD`, `SPARQL_USERNAME`, `SPARQL_PASSWORD`)
    - `timeout`: the default timeout of calls to a server, in seconds
    - `patience`: how many seconds (30) a server may take for requests with little work: accept a connection, return
      the state of a graph or the plan of a query
    - `database`: for Neo4j, by default `NEO4J_DATABASE`, or the user's home database
    - `layout`: "native" to query an existing Neo4j database, SQL database, or SPARQL endpoint in place, "condgraph" for a
      graph written by condgraph
    - `mapping`: the path of a mapping file, which describes how to read an existing database
    - `labels`: for a graph of condgraph on Neo4j, whether entities have their direct concepts as labels after the next
      load; by default they do if the database was otherwise empty at the first load
    - `warm`: for Neo4j, whether it plans the most common queries in the background, so that their first runs are faster
    - `update`, `store`: for an RDF store, its addresses for updates and for the Graph Store Protocol
    - `base`: for an RDF store, the IRI of the graph
    - `method`: for an RDF store, "get", "post" or "auto"
    - `folder`: for Spark, the folder of an export to Parquet, as a path for Spark
    - `same`: for several stores, which entities are the same: by the name of a store, either the concepts whose members are
      matched by name, or a mapping of its ids to ids in the other stores
    """
    connection: dict[str, Any] = {
        "user": user, "password": password, "database": database, "timeout": timeout, "patience": patience,
        "update": update, "store": store, "base": base, "method": method, "folder": folder,
    }  # fmt: skip
    options = {name: value for name, value in connection.items() if value is not None} | unknown
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
            # Otherwise an unset shell variable would open the current folder.
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
    unknown_option = next((name for name in options if name not in LOGIN), None)
    if unknown_option is not None:
        raise OptionError(
            f"Neo4j takes no option {unknown_option!r}",
            candidates=nearest(unknown_option, LOGIN),
            hint=f"it takes: {', '.join(LOGIN)}",
        )
    _check_native(layout, mapping, graph)
    if labels is not None:
        if layout == "native" or mapping is not None:
            raise OptionError("labels is for a graph of condgraph's own", hint="leave `labels` out")
        layout = "condgraph"
    # Imported late: the driver is needed only for a server.
    from condgraph.remote_neo4j import Neo4jGraph

    if layout == "native" or mapping is not None or (layout is None and graph == "default"):
        from condgraph.remote_native import native

        existing_neo4j = native(place, sure=layout == "native" or mapping is not None, mapping=mapping, **options)
        if existing_neo4j is not None:
            if warm:
                existing_neo4j.store.warm_behind()
            return existing_neo4j
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
    return any(sort.__name__ == "SparkSession" and sort.__module__.startswith("pyspark.") for sort in type(place).__mro__)


def _sql(place: Any, graph: str, read_only: bool, layout: str | None, mapping: Any, options: dict[str, Any]) -> Graph:
    """Open a graph in a SQL database, or the database's tables as a graph."""
    from condgraph.remote_sql import SqlGraph, native_graph

    sure = layout == "native" or mapping is not None
    if sure and (graph != "default" or layout == "condgraph"):
        raise OptionError("tables that condgraph did not write are one graph", hint="leave `graph` and `layout` out")
    if sure or (layout is None and graph == "default" and "folder" not in options):
        existing = native_graph(place, sure=sure, mapping=mapping, **options)
        if existing is not None:
            return existing
    return SqlGraph(place, graph=graph, read_only=read_only, **options)


def _check_folder(place: str) -> None:
    """Raise `OptionError` for an address that lacks its slashes, and `StoreMissingError` for a file."""
    scheme, mark, address_rest = place.partition(":")
    if mark and scheme.lower() in (*NEO4J_SCHEMES, *SPARQL_SCHEMES, *SQL_SCHEMES) and not os.path.exists(place):
        # An address of DuckDB contains no login that has to be hidden.
        suggested = (
            f"duckdb:///{address_rest.removeprefix('//')}"
            if scheme.lower() == "duckdb"
            else shown(f"{scheme}://{address_rest.lstrip('/')}")
        )
        raise OptionError(f"an address has slashes after {scheme}:", hint=f"{suggested}; a folder begins with ./")
    if not os.path.isfile(place):
        return
    with builtins.open(place, "rb") as file:
        is_duckdb = file.read(12)[8:] == b"DUCK"
    hint = f"condgraph.open({f'duckdb:///{place}'!r})" if is_duckdb else "load() reads files into a graph"
    raise StoreMissingError(f"{place} is a file, and a graph is a folder", hint=hint)


def _several(places: Any, graph: str, same: Any, given: dict[str, Any]) -> Graph:
    unsuitable = next((name for name, value in given.items() if value is not None), None)
    if unsuitable is not None or graph != "default":
        raise OptionError(
            f"{unsuitable or 'graph'} is about one store",
            hint="open each with its own options: condgraph.open([condgraph.open(..., graph=...), ...])",
        )
    from condgraph.remote_several import several

    return several(places, lambda place: open(place, read_only=True), same)


def _check_native(layout: str | None, mapping: Any, graph: str) -> None:
    if (layout == "native" or mapping is not None) and graph != "default":
        raise OptionError("a database that condgraph did not write is one graph", hint="leave `graph` out")
    if layout == "condgraph" and mapping is not None:
        raise OptionError("mapping is for a database that condgraph did not write", hint="leave `layout` out")
