"""Graphs that condgraph writes to Neo4j."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from condgraph.cypher.store import Neo4jStore
from condgraph.engine.bounds import within
from condgraph.engine.errors import OptionError, UnsupportedError
from condgraph.engine.tracing import traced
from condgraph.remote import EditedGraph, EditedStorage
from condgraph.storage import ENGINES
from condgraph.vectors.encoders import encoder_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from condgraph.engine.store import Store
    from condgraph.sparql.embedded import EmbeddedStore
    from condgraph.vectors.encoders import Encoder
    from condgraph.vectors.stored import IndexReport


class Neo4jStorage(EditedStorage):
    """One graph in a Neo4j database, which is only queried there."""

    server: Neo4jStore

    def store(self, engine: str | None) -> Store:
        """Return the store on the server. Raises `OptionError` for any engine."""
        if engine is not None:
            hint = f"leave `engine` out, or ask graph.snapshot() with engine={engine!r}"
            raise OptionError("a graph in Neo4j answers in Neo4j", hint=hint if engine in ENGINES else "leave `engine` out")
        return self.server

    def rdf(self, base: str | None) -> EmbeddedStore:
        """Raise `UnsupportedError`: only graphs in process have an embedded RDF store."""
        raise UnsupportedError("Neo4j", ["SPARQL"], hint="graph.snapshot() is the same graph in process, which has an RDF store")

    def content(self) -> str | None:
        """Return the name of the content, as the graph's node states it."""
        return self.server.content

    def label(self, on: bool) -> list[str]:
        """Implement `Neo4jGraph.label`."""
        with self._lock:
            self.server.label(on)
            return self.remarks()

    def index(
        self, encoder: str | os.PathLike[str] | Encoder, faiss: bool, progress: Callable[[int, int], None] | None
    ) -> IndexReport:
        """Store the vectors of nodes and predicates on the server, and build its vector index. Only new names are
        encoded.
        """
        self.check_writable()
        if faiss:
            raise OptionError("a graph on Neo4j has the server's own vector index", hint="leave `faiss` out")
        return self.server.patterns.index(encoder_of(encoder), progress)


class Neo4jGraph(EditedGraph):
    """One graph in a Neo4j database. `place` is an address (`neo4j://host:7687`), a `neo4j.Driver`, or a
    `py2neo.Graph`.

    Options are `user`, `password`, `database`, `timeout`, the default timeout of calls in seconds, and `patience`,
    how many seconds (30) the server may take for requests with little work, whatever the call. `labels` is whether
    entities have their direct concepts as labels after the next load: None keeps the present state, and gives a new
    graph labels if the database is otherwise empty.
    """

    _storage: Neo4jStorage

    def __init__(
        self, place: Any, *, graph: str = "default", read_only: bool = False, labels: bool | None = None, **options: Any
    ) -> None:
        store = Neo4jStore(place, graph=graph, read_only=read_only, labels=labels, **options)
        super().__init__(Neo4jStorage(store, graph=graph, read_only=read_only))

    @property
    def store(self) -> Neo4jStore:
        """The store that queries the server."""
        return self._storage.server

    def warm(self, *, seconds: float | None = None) -> int:
        """Let the server plan the most common queries over the graph in advance, for at most `seconds` seconds.
        Returns the number of planned queries.

        The first run of a query takes most of its time for planning. A load of 10,000 statements or more does this
        too, for a fifth of its own time.
        """
        with within(self.timeout):
            return self.store.warm(seconds=seconds)

    def label(self, on: bool = True) -> list[str]:
        """Give entities their direct concepts as labels, for Neo4j Browser and other tools, or with `on=False` remove
        these labels. Returns which concepts are not labels and why, as sentences.

        Answers do not depend on labels. Raises `ReadOnlyError`, and `StoreBusyError` during a load.
        """
        self._storage.check_writable()
        return self._storage.label(on)

    @property
    def content(self) -> str:
        """A name for the content of the graph, at most a second old. It changes whenever the content does."""
        return self.store.content

    def cypher(  # type: ignore[override]
        self, text: str, parameters: Mapping[str, Any] | None = None, *, timeout: float | None = 60.0
    ) -> list[dict[str, Any]]:
        """Run a Cypher query that only reads, after a check of its text and of the server's plan. Returns a dict for
        each row.

        Raises `ReadOnlyError`, with the position, for a query that could write. `timeout` is in seconds.
        """

        def ask() -> list[dict[str, Any]]:
            with within(timeout):
                return self.store.cypher(text, dict(parameters or {}))

        return traced(self, "cypher", text, ask)
