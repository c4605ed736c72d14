"""Graphs in SQL databases: DuckDB files and PostgreSQL."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from condgraph.engine.addresses import SQL_SCHEMES, parse
from condgraph.engine.changes import Change
from condgraph.engine.errors import MissingExtraError, OptionError, UnsupportedError, nearest
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.graph import Graph
from condgraph.loaders.base import Progress
from condgraph.remote import RemoteGraph, ServerStorage
from condgraph.storage import ENGINES

if TYPE_CHECKING:
    from condgraph.engine.store import Store
    from condgraph.sparql.embedded import EmbeddedStore
    from condgraph.sql.engines import Engine
    from condgraph.sql.store import SqlStore
    from condgraph.vectors.encoders import Encoder
    from condgraph.vectors.stored import IndexReport

#: What a SQL database takes.
OPTIONS: Final = ("user", "password", "timeout")
_EXAMPLE: Final = "duckdb:///folder/file.duckdb or postgresql://user@host:5432/database"


class SqlStorage(ServerStorage):
    """One graph in a SQL database, which the database alone answers."""

    server: SqlStore

    def store(self, engine: str | None) -> Store:
        """What answers in the database."""
        if engine is not None:
            hint = f"leave `engine` out, or ask graph.snapshot() with engine={engine!r}"
            raise OptionError("a graph in a SQL database answers there", hint=hint if engine in ENGINES else "leave `engine` out")
        return self.server

    def rdf(self, base: str | None) -> EmbeddedStore:
        """Only graphs in process have an RDF store of their own."""
        raise UnsupportedError("SQL", ["SPARQL"], hint="graph.snapshot() is the same graph in process, which has an RDF store")

    def write(
        self, snapshot: Snapshot, wait: float, change: Change, progress: Progress | None
    ) -> tuple[dict[str, int], dict[str, int]]:
        """Write a snapshot."""
        return self.server.push(snapshot, wait=wait, change=change)

    def index(
        self, encoder: str | os.PathLike[str] | Encoder, faiss: bool, progress: Callable[[int, int], None] | None
    ) -> IndexReport:
        """Vectors are not stored in SQL databases."""
        raise UnsupportedError(
            "SQL", ["vectors of names"], hint="graph.snapshot() is the same graph in process, which has an index"
        )


class SqlGraph(RemoteGraph):
    """One graph in a SQL database: `duckdb:///path` is a file, `postgresql://host/database` a server, with user and password
    in the address or as options. Each graph is a schema of the database. `timeout` (seconds) is the deadline of calls that
    are given none.
    """

    _storage: SqlStorage

    def __init__(self, place: str, *, graph: str = "default", read_only: bool = False, **options: Any) -> None:
        wrong = next((name for name in options if name not in OPTIONS), None)
        if wrong is not None:
            hint = f"it takes: {', '.join(OPTIONS)}"
            raise OptionError(f"a SQL database takes no option {wrong!r}", candidates=nearest(wrong, OPTIONS), hint=hint)
        timeout = options.pop("timeout", None)
        engine = _engine(place, **options)
        from condgraph.sql.store import SqlStore

        store = SqlStore(engine, graph=graph, read_only=read_only, timeout=timeout)
        super().__init__(SqlStorage(store, graph=graph, read_only=read_only))

    @property
    def store(self) -> SqlStore:
        """What answers in the database."""
        return self._storage.server

    def push(self, graph: Graph, *, wait: float = 0.0) -> None:
        """Write a local graph as this one, next to what it holds; the same content twice changes nothing. `wait` as for `load`."""
        self._storage.check_writable()
        self.store.push(graph.current, wait=wait)


def _engine(place: str, user: str | None = None, password: str | None = None) -> Engine:
    try:
        from condgraph.sql.engines import DuckDb, Postgres
    except ImportError:
        raise MissingExtraError("sqlglot", "sql") from None
    scheme, _, rest = place.partition("://")
    if scheme.lower() == "duckdb":
        if user is not None or password is not None:
            raise OptionError("a file of DuckDB has no login", hint="leave `user` and `password` out")
        if not rest.startswith("/"):
            raise OptionError("an address of DuckDB has three slashes", hint=f"such as {_EXAMPLE}; four begin an absolute path")
        return DuckDb(rest[1:])
    return Postgres(parse(place, SQL_SCHEMES, example=_EXAMPLE), user, password)
