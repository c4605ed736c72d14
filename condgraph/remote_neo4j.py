"""A graph in Neo4j, behind the same API as local ones."""

from __future__ import annotations

import os
import warnings
from threading import local
from typing import TYPE_CHECKING, Any

from condgraph.cypher.load.write import OnProgress
from condgraph.cypher.store import Neo4jStore
from condgraph.engine.bounds import within
from condgraph.engine.changes import Change
from condgraph.engine.errors import OptionError, ReadOnlyError, UnsupportedError
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.graph import Graph
from condgraph.graph_asking import ENGINES
from condgraph.loaders.base import Progress
from condgraph.remote import RemoteGraph
from condgraph.reports import LoadReport, Status
from condgraph.vectors.encoders import encoder_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from condgraph.engine.facts import Source
    from condgraph.engine.snapshot.build import Builder
    from condgraph.engine.store import Store
    from condgraph.sparql.embedded import EmbeddedStore
    from condgraph.vectors.encoders import Encoder
    from condgraph.vectors.stored import IndexReport


class Neo4jGraph(RemoteGraph):
    """One graph of a Neo4j database. `place` is an address (`neo4j://host:7687`), a `neo4j.Driver`,
    or a `py2neo.Graph`.

    `user`, `password` and `database` are options. `timeout` (seconds) is the deadline of calls that
    are given none; `patience` (30 seconds) is for how long the server may say nothing where it has
    little to do, whatever the call. `labels` says whether entities carry their direct concepts as
    labels after the next load: None leaves it as it is, and gives a new graph labels where nothing
    else is in the database.
    """

    store: Neo4jStore

    def __init__(
        self, place: Any, *, graph: str = "default", read_only: bool = False, labels: bool | None = None, **options: Any
    ) -> None:
        store = Neo4jStore(place, graph=graph, read_only=read_only, labels=labels, **options)
        super().__init__(store, graph=graph, read_only=read_only)
        self._loading = local()

    def warm(self, *, seconds: float | None = None) -> int:
        """Have the server plan the commonest shapes of queries over the graph before anybody asks, for
        so many seconds at most; how many it planned. The first run of a query costs mostly planning.
        A load of 10,000 statements and more does so for a fifth of its time.
        """
        with within(self.timeout):
            return self.store.warm(seconds=seconds)

    def _load(self, source: Any, options: dict[str, Any], *, progress: Progress | None, **how: Any) -> LoadReport:
        # `progress` is called for what is read, and then for what is written, with the server's address.
        self._loading.progress = progress
        try:
            return super()._load(source, options, progress=progress, **how)
        finally:
            self._loading.progress = None

    def _write(self, snapshot: Snapshot, wait: float, change: Change) -> tuple[dict[str, int], dict[str, int]]:
        on_progress = self._on_progress(getattr(self._loading, "progress", None))
        return self.store.push(snapshot, wait=wait, change=change, on_progress=on_progress)

    def _built(
        self, read: Callable[[Builder], None] | None, wait: float, change: Callable[[tuple[Source, ...]], Change] | None
    ) -> tuple[dict[str, int], dict[str, int], int, list[str]]:
        before, after, statements, warned = super()._built(read, wait, change)
        return before, after, statements, [*warned, *self.store.remarks]

    def label(self, on: bool = True) -> list[str]:
        """Give entities their direct concepts as labels, as Neo4j Browser and others read them, or
        take these labels away; which concepts are no labels and why, as sentences.

        Nothing else changes: answers do not depend on labels. Raises `ReadOnlyError`, and
        `StoreBusyError` while somebody loads.
        """
        if self.read_only:
            raise ReadOnlyError.at(self.place)
        with self._lock:
            self.store.label(on)
            return list(self.store.remarks)

    def _store_of(self, engine: str | None) -> Store:
        """Neo4j alone answers."""
        if engine is not None:
            hint = f"leave `engine` out, or ask graph.snapshot() with engine={engine!r}"
            raise OptionError("a graph in Neo4j answers in Neo4j", hint=hint if engine in ENGINES else "leave `engine` out")
        return self.store

    def _index(
        self, encoder: str | os.PathLike[str] | Encoder, faiss: bool, progress: Callable[[int, int], None] | None
    ) -> IndexReport:
        """Keep the vectors of nodes and predicates on the server, and make its vector index; only
        what is new is encoded.
        """
        if self.read_only:
            raise ReadOnlyError.at(self.place)
        if faiss:
            raise OptionError("a graph on Neo4j has the server's own vector index", hint="leave `faiss` out")
        return self.store.patterns.index(encoder_of(encoder), progress)

    @property
    def content(self) -> str:
        """A name for what the graph holds, at most a second old: it changes when that does."""
        return self.store.content

    def rdf(self, base: str | None = None) -> EmbeddedStore:
        """Only graphs in process have an RDF store of their own."""
        raise UnsupportedError("Neo4j", ["SPARQL"], hint="graph.snapshot() is the same graph in process, which has an RDF store")

    def cypher(self, text: str, parameters: dict[str, Any] | None = None, *, timeout: float | None = 60.0) -> list[dict[str, Any]]:
        """Run a reading query that a person (or a model) wrote, after its text and the server's
        plan of it were checked.

        Gives a dict a row. Raises `ReadOnlyError`, with the place, for a text that may do more than
        read; `timeout` is in seconds.
        """
        with within(timeout):
            return self.store.cypher(text, parameters or {})

    def _status(self, verify: bool) -> Status:
        """What the graph holds; bytes are the server's own affair."""
        if verify:
            raise OptionError("a graph on a server has no checksums here")
        return super()._status(verify)

    def push(self, graph: Graph, *, wait: float = 0.0, progress: Progress | None = None) -> None:
        """Write a local graph as this one, beside what it holds; the same content twice changes
        nothing.

        `progress` hears, as of `load`, where to, the records written so far, and which part of all
        that is.
        """
        self.store.push(graph.current, wait=wait, on_progress=self._on_progress(progress))
        for remark in self.store.remarks:
            warnings.warn(remark, stacklevel=2)

    def _on_progress(self, progress: Progress | None) -> OnProgress:
        def on_progress(written: int, part: float | None) -> None:
            if progress is not None:
                progress(self.place, written, part)

        return on_progress
