"""Graphs in Neo4j that condgraph wrote."""

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
    """One graph of a Neo4j database, which Neo4j alone answers."""

    server: Neo4jStore

    def store(self, engine: str | None) -> Store:
        """What answers on the server."""
        if engine is not None:
            hint = f"leave `engine` out, or ask graph.snapshot() with engine={engine!r}"
            raise OptionError("a graph in Neo4j answers in Neo4j", hint=hint if engine in ENGINES else "leave `engine` out")
        return self.server

    def rdf(self, base: str | None) -> EmbeddedStore:
        """Only graphs in process have an RDF store of their own."""
        raise UnsupportedError("Neo4j", ["SPARQL"], hint="graph.snapshot() is the same graph in process, which has an RDF store")

    def content(self) -> str | None:
        """As the graph's node states it."""
        return self.server.content

    def label(self, on: bool) -> list[str]:
        """`Neo4jGraph.label`."""
        with self._lock:
            self.server.label(on)
            return self.remarks()

    def index(
        self, encoder: str | os.PathLike[str] | Encoder, faiss: bool, progress: Callable[[int, int], None] | None
    ) -> IndexReport:
        """Store the vectors of nodes and predicates on the server, and make its vector index; only
        what is new is encoded.
        """
        self.check_writable()
        if faiss:
            raise OptionError("a graph on Neo4j has the server's own vector index", hint="leave `faiss` out")
        return self.server.patterns.index(encoder_of(encoder), progress)


class Neo4jGraph(EditedGraph):
    """One graph of a Neo4j database. `place` is an address (`neo4j://host:7687`), a `neo4j.Driver`,
    or a `py2neo.Graph`.

    `user`, `password` and `database` are options. `timeout` (seconds) is the deadline of calls that
    are given none; `patience` (30 seconds) is for how long the server may say nothing where it has
    little to do, whatever the call. `labels` says whether entities carry their direct concepts as
    labels after the next load: None leaves it as it is, and gives a new graph labels where nothing
    else is in the database.
    """

    _storage: Neo4jStorage

    def __init__(
        self, place: Any, *, graph: str = "default", read_only: bool = False, labels: bool | None = None, **options: Any
    ) -> None:
        store = Neo4jStore(place, graph=graph, read_only=read_only, labels=labels, **options)
        super().__init__(Neo4jStorage(store, graph=graph, read_only=read_only))

    @property
    def store(self) -> Neo4jStore:
        """What answers on the server."""
        return self._storage.server

    def warm(self, *, seconds: float | None = None) -> int:
        """Have the server plan the commonest shapes of queries over the graph before anybody asks, for
        so many seconds at most; how many it planned. The first run of a query costs mostly planning.
        A load of 10,000 statements and more does so for a fifth of its time.
        """
        with within(self.timeout):
            return self.store.warm(seconds=seconds)

    def label(self, on: bool = True) -> list[str]:
        """Give entities their direct concepts as labels, as Neo4j Browser and others read them, or
        take these labels away; which concepts are no labels and why, as sentences.

        Nothing else changes: answers do not depend on labels. Raises `ReadOnlyError`, and
        `StoreBusyError` while somebody loads.
        """
        self._storage.check_writable()
        return self._storage.label(on)

    @property
    def content(self) -> str:
        """A name for what the graph holds, at most a second old: it changes when that does."""
        return self.store.content

    def cypher(  # type: ignore[override]
        self, text: str, parameters: Mapping[str, Any] | None = None, *, timeout: float | None = 60.0
    ) -> list[dict[str, Any]]:
        """Run a reading query that a person (or a model) wrote, after its text and the server's
        plan of it were checked.

        Gives a dict a row. Raises `ReadOnlyError`, with the place, for a text that may do more than
        read; `timeout` is in seconds.
        """

        def ask() -> list[dict[str, Any]]:
            with within(timeout):
                return self.store.cypher(text, dict(parameters or {}))

        return traced(self, "cypher", text, ask)
