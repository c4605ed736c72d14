"""Neo4j databases that condgraph did not write. They are asked where they are, and nothing is ever
written there.
"""

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

#: Seconds within which a name that is not known is believed to be unknown.
_FRESH: Final = 1.0
_WRITES: Final = 'layout="condgraph" opens, or makes, a graph of condgraph\'s own beside it'


def typed(texts: Sequence[str], header: str) -> list[Value | None]:
    """How the loader of tables reads the texts of a column, None where it takes one for missing."""
    from condgraph.loaders.table.column_types import type_cells

    return [None if cell is None else cell[0] for cell in type_cells(texts, header)]


def is_native(connection: Connection) -> bool:
    """Whether a database has nodes, and none of them is a graph of condgraph's."""
    # Each is a number that the server keeps.
    (nodes,) = connection.ask("MATCH (n) RETURN count(n) AS count", {})
    (graphs,) = connection.ask(f"MATCH (g:{GRAPH}) RETURN count(g) AS count", {})
    return nodes["count"] > 0 and graphs["count"] == 0 and not is_older(connection, "default")


def native(place: Any, *, sure: bool, mapping: str | os.PathLike[str] | None = None, **options: Any) -> NativeGraph | None:
    """An existing database; None where it is not known to be one, and nobody is `sure`. Raises
    `StoreError` where no server answers, or has no such database; one that is silent now is an error
    of the first question.
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
    """A database that condgraph did not write, over a connection to it."""

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
        """Nothing is written."""
        raise ReadOnlyError(f"{self.place} is a database that condgraph did not write, and only reads", hint=_WRITES)

    def content(self) -> str | None:
        """Nobody knows when others change the database."""
        return None

    def refresh(self) -> None:
        """Look at the whole database again when it is next asked."""
        self.mapped.refresh()

    def renewed(self, kind: str) -> bool:
        """Whether the database has changed since it was looked at, as far as names of a kind go."""
        before, age = self.mapped.mapping(), self.mapped.age
        if kind == "entity":
            # Entities are looked up by every query, under the labels that are known.
            self.mapped.expire()
        elif age >= _FRESH:
            self.mapped.refresh()
        return self.mapped.mapping() is not before

    def status(self, verify: bool) -> Status:
        """What the database is taken to hold."""
        if verify:
            raise OptionError("a graph on a server has no checksums here")
        result = self.mapped.mapping()
        return Status(
            *(self.place, self.graph, "not written by condgraph", counts_of(result), self.server.sources(), 0),
            notes=(NOTE, *result.warnings),
        )

    def survey(self) -> Survey:
        """What the database is taken to hold, counted."""
        return survey_of(self.mapped.closer(lambda mapping: mapping.unseen))


class NativeGraph(Neo4jGraph):
    """A Neo4j database that condgraph did not write, over a connection to it. `mapping` is the place
    of a mapping file, which says what it is to be taken for where the guess is wrong.
    """

    _storage: NativeStorage

    def __init__(self, connection: Connection, *, mapping: str | os.PathLike[str] | None = None) -> None:
        RemoteGraph.__init__(self, NativeStorage(connection, mapping))

    def __repr__(self) -> str:
        return f"<NativeGraph at {self.place}>"

    @property
    def store(self) -> NativeStore:  # type: ignore[override]
        """What answers on the server."""
        return self._storage.server

    @property
    def mapping(self) -> Mapping:
        """What the database is taken for now."""
        return self._storage.mapped.mapping()

    def mapping_file(self, *, timeout: float | None = None) -> str:
        """What the database is taken for as the text of a mapping file, with the reason of each
        choice.
        """
        with within(self.timeout if timeout is None else timeout):
            return written(self._storage.mapped.mapping(), self.place)
