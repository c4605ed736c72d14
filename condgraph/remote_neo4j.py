"""A graph in Neo4j, behind the same API as local ones."""

from __future__ import annotations

import os
from threading import local
from typing import TYPE_CHECKING, Any

from condgraph.cypher.load import Told
from condgraph.cypher.store import Neo4jStore
from condgraph.engine.answer import Answer
from condgraph.engine.errors import OptionError, ReadOnlyError, UnsupportedError
from condgraph.engine.linking.encoders import encoder_of
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.graph import ENGINES, Graph
from condgraph.loaders.base import Progress
from condgraph.remote import RemoteGraph
from condgraph.reports import LoadReport, Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from condgraph.engine.linking.encoder import Encoder
    from condgraph.engine.linking.kept_vectors import IndexReport
    from condgraph.engine.search.result import Matches
    from condgraph.sparql.embedded import EmbeddedStore


class Neo4jGraph(RemoteGraph):
    """One graph of a Neo4j database. `place` is an address (`neo4j://host:7687`), a `neo4j.Driver`, or a `py2neo.Graph`."""

    def __init__(self, place: Any, *, graph: str = "default", read_only: bool = False, **login: str | None) -> None:
        self.store = Neo4jStore(place, graph=graph, read_only=read_only, **login)
        super().__init__(self.store, graph=graph, read_only=read_only)
        self._telling = local()

    def load(self, source: Any, *, progress: Progress | None = None, **options: Any) -> LoadReport:
        """`Graph.load`; `progress` is told of what is read, and then of what is written to the server, under its address."""
        self._telling.progress = progress
        try:
            return super().load(source, progress=progress, **options)
        finally:
            self._telling.progress = None

    def _write(self, snapshot: Snapshot, wait: float) -> None:
        self.store.push(snapshot, wait=wait, told=self._told(getattr(self._telling, "progress", None)))

    def _answer(self, engine: str | None, program: Any, language: str | None, **options: Any) -> Answer:
        """One Cypher query."""
        _check_engine(engine)
        return self.store.query(program, language=language, **options)

    def _index(
        self, encoder: str | os.PathLike[str] | Encoder, faiss: bool, progress: Callable[[int, int], None] | None
    ) -> IndexReport:
        """Keep the vectors of nodes and predicates on the server, and make its vector index; only what is new is encoded."""
        if self.read_only:
            raise ReadOnlyError.at(self.place)
        if faiss:
            raise OptionError("a graph on Neo4j has the server's own vector index", hint="leave `faiss` out")
        return self.store.patterns.index(encoder_of(encoder), progress)

    def _match(self, engine: str | None, pattern: Any, *, exact: bool, **options: Any) -> Matches:
        """Joined and ranked by the server. With `exact=False` candidates come from its vector index, which may miss some."""
        _check_engine(engine)
        return self.store.patterns.match(pattern, exact=exact, **options)

    def _explain(self, engine: str | None, program: Any, language: str | None, **options: Any) -> str:
        """The Cypher of a program."""
        _check_engine(engine)
        return self.store.explain(program, language=language, **options)

    def rdf(self) -> EmbeddedStore:
        """Only graphs in process have an RDF store of their own."""
        raise UnsupportedError("Neo4j", ["SPARQL"], hint="graph.snapshot() is the same graph in process, which has an RDF store")

    def cypher(self, text: str, parameters: dict[str, Any] | None = None, *, timeout: float | None = 60.0) -> list[dict[str, Any]]:
        """Run a reading query that a person (or a model) wrote, after the server's plan of it was checked."""
        return self.store.cypher(text, parameters, timeout=timeout)

    def status(self, *, verify: bool = False) -> Status:
        """What the graph holds; bytes are the server's own affair."""
        if verify:
            raise OptionError("a graph on a server has no checksums here")
        return Status(self.place, self.name, "server", self.store.counts(), self.store.sources(), 0)

    def push(self, graph: Graph, *, wait: float = 0.0, progress: Progress | None = None) -> None:
        """Write a local graph as this one, beside what it holds; the same content twice changes nothing.

        `progress` is told as by `load`: where to, the records written so far, and which part of all that is.
        """
        self.store.push(graph.current, wait=wait, told=self._told(progress))

    def _told(self, progress: Progress | None) -> Told:
        def told(written: int, part: float | None) -> None:
            if progress is not None:
                progress(self.place, written, part)

        return told


def _check_engine(engine: str | None) -> None:
    if engine is not None:
        hint = f"leave `engine` out, or ask graph.snapshot() with engine={engine!r}" if engine in ENGINES else "leave `engine` out"
        raise OptionError("a graph in Neo4j answers in Neo4j", hint=hint)
