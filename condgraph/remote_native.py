"""Existing Neo4j databases, which condgraph did not write: queried in place and never changed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Final, cast

from condgraph.cypher.connection import Connection
from condgraph.cypher.layout.schema import GRAPH
from condgraph.cypher.load.push import is_older
from condgraph.cypher.native.file import written
from condgraph.cypher.native.mapping import Mapping
from condgraph.cypher.native.refresh import CurrentMapping
from condgraph.cypher.native.schema import NOTE, counts_of, survey_of
from condgraph.cypher.native.store import NativeStore
from condgraph.engine.bounds import within
from condgraph.engine.errors import DeadlineError, OptionError, ReadOnlyError, StoreMissingError, UnsupportedError
from condgraph.engine.values import Value
from condgraph.overview.survey import Survey
from condgraph.remote import RemoteGraph
from condgraph.remote_neo4j import Neo4jGraph, Neo4jStorage
from condgraph.reports import Status

#: The age of the mapping in seconds up to which an unknown name is taken as unknown without examining the database again.
_FRESH: Final = 1.0
_WRITES: Final = 'layout="condgraph" opens, or makes, a graph of condgraph\'s own beside it'


def typed(texts: Sequence[str], header: str) -> list[Value | None]:
    """Return the texts of a column as the loader of tables would read them, with None for missing cells."""
    from condgraph.loaders.table.column_types import type_cells

    return [None if typed_cell is None else typed_cell[0] for typed_cell in type_cells(texts, header)]


def is_native(connection: Connection) -> bool:
    """Return whether a database has nodes but no graph of condgraph."""
    # Neo4j stores both counts, so that these queries are cheap.
    (nodes,) = connection.ask("MATCH (n) RETURN count(n) AS count", {})
    (graphs,) = connection.ask(f"MATCH (g:{GRAPH}) RETURN count(g) AS count", {})
    return nodes["count"] > 0 and graphs["count"] == 0 and not is_older(connection, "default")


def native(place: Any, *, sure: bool, mapping: str | os.PathLike[str] | None = None, **options: Any) -> NativeGraph | None:
    """Open an existing database. Returns None if it is not one, unless the caller is `sure`.

    Raises `StoreError` if no server answers, or it has no such database. A server that is silent now causes an error
    at the first query only, unless the caller is `sure`.
    """
    connection = Connection(place, **options)
    try:
        if sure or _is_native(connection):
            _check_engine(connection)
            return NativeGraph(connection, mapping=mapping)
    except DeadlineError:
        if sure:
            connection.close()
            raise
    except BaseException:
        connection.close()
        raise
    connection.close()
    return None


def _check_engine(connection: Connection) -> None:
    engine = connection.engine
    if not engine.native:
        hint = 'layout="condgraph" opens it for graph.cypher(...), which passes on texts that read, and for graphs of condgraph\'s'
        raise UnsupportedError(engine.name, ["databases that condgraph did not write"], hint=hint)


def _is_native(connection: Connection) -> bool:
    with within(connection.timeout):
        return is_native(connection)


class NativeStorage(Neo4jStorage):
    """An existing database, over a connection to it."""

    server: NativeStore  # type: ignore[assignment]

    def __init__(self, connection: Connection, mapping: str | os.PathLike[str] | None) -> None:
        self.mapped = CurrentMapping(connection, typed, mapping)
        with within(connection.timeout):
            result = self.mapped.mapping()
        if not result.node_count:
            raise StoreMissingError(f"there is nothing in the database at {connection.place}", hint="load something first")
        server = NativeStore(connection, result, remap=self.mapped.mapping, closer=self.mapped.closer)
        super().__init__(cast("Any", server), graph="neo4j", read_only=True)

    def check_writable(self, wait: float = 0.0) -> None:
        raise ReadOnlyError(f"{self.place} is a database that condgraph did not write, and only reads", hint=_WRITES)

    def content(self) -> str | None:
        """Return None: changes of an existing database cannot be detected."""
        return None

    def refresh(self) -> None:
        """Examine the whole database again at the next query."""
        self.mapped.refresh()

    def renewed(self, kind: str) -> bool:
        """Return whether the database has changed since it was examined, regarding names of a kind."""
        before, age = self.mapped.mapping(), self.mapped.age
        if kind == "entity":
            # Every query looks entities up in the database, under the known labels.
            self.mapped.expire()
        elif age >= _FRESH:
            self.mapped.refresh()
        return self.mapped.mapping() is not before

    def status(self, verify: bool) -> Status:
        """Return the counts and sources that the database has as a graph. Raises `OptionError` for `verify`."""
        if verify:
            raise OptionError("a graph on a server has no checksums here")
        result = self.mapped.mapping()
        return Status(
            *(self.place, self.graph, "not written by condgraph", counts_of(result), self.server.sources(), 0),
            notes=(NOTE, *result.warnings),
        )

    def survey(self) -> Survey:
        """Return the counts for a schema of the database."""
        return survey_of(self.mapped.closer(lambda mapping: mapping.unseen))


class NativeGraph(Neo4jGraph):
    """An existing Neo4j database, over a connection to it. `mapping` is the path of a mapping file, which corrects
    how the database is read as a graph.
    """

    _storage: NativeStorage

    def __init__(self, connection: Connection, *, mapping: str | os.PathLike[str] | None = None) -> None:
        RemoteGraph.__init__(self, NativeStorage(connection, mapping))

    def __repr__(self) -> str:
        return f"<NativeGraph at {self.place}>"

    @property
    def store(self) -> NativeStore:  # type: ignore[override]
        """The store that queries the server."""
        return self._storage.server

    @property
    def mapping(self) -> Mapping:
        """The current interpretation of the database as a graph."""
        return self._storage.mapped.mapping()

    def mapping_file(self, *, timeout: float | None = None) -> str:
        """Return the interpretation of the database as the text of a mapping file, with the reason for each choice."""
        with within(self.timeout if timeout is None else timeout):
            return written(self._storage.mapped.mapping(), self.place)
