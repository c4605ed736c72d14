"""Graphs that live on a server, behind the same API as local ones."""

from __future__ import annotations

import os
from threading import Event, local
from typing import IO, TYPE_CHECKING, Any

from condgraph.cypher.load import Told
from condgraph.cypher.store import Neo4jStore
from condgraph.engine.answer import Answer
from condgraph.engine.errors import OptionError, ReadOnlyError
from condgraph.engine.linking.encoders import encoder_of
from condgraph.engine.snapshot.build import Builder
from condgraph.engine.snapshot.collector import fewer_collections
from condgraph.engine.snapshot.layout import lay_out
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.graph import Engine, Graph, OnUnknown
from condgraph.loaders.base import Progress
from condgraph.reports import LoadReport, Status

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from condgraph.engine.linking.encoder import Encoder
    from condgraph.engine.linking.kept_vectors import IndexReport
    from condgraph.engine.search.result import Matches


class Neo4jGraph(Graph):
    """One graph of a Neo4j database. `place` is an address (`neo4j://host:7687`), a `neo4j.Driver`, or a `py2neo.Graph`."""

    def __init__(self, place: Any, *, graph: str = "default", read_only: bool = False, **login: str | None) -> None:
        super().__init__("memory:", graph=graph, read_only=read_only)
        self.store = Neo4jStore(place, graph=graph, read_only=read_only, **login)
        self.place = self.store.place
        self._telling = local()

    def close(self) -> None:
        """Let go of the connection."""
        self.store.close()

    def refresh(self) -> None:
        """Forget what is known of the schema, which another process may have changed."""
        self.store.refresh()

    def load(self, source: Any, *, progress: Progress | None = None, **options: Any) -> LoadReport:
        """`Graph.load`; `progress` is told of what is read, and then of what is written to the server, under its address."""
        self._telling.progress = progress
        try:
            return super().load(source, progress=progress, **options)
        finally:
            self._telling.progress = None

    def _build(self, read: Callable[[Builder], None], wait: float) -> tuple[dict[str, int], dict[str, int], int, list[str]]:
        with self._lock, fewer_collections():
            before = self.store.counts() if self.store.exists() else {}
            builder = Builder()
            read(builder)
            builder.finish()
            statements, warnings = builder.statements, builder.warnings
            self.store.push(Snapshot.of(*lay_out(builder)), wait=wait, told=self._told(getattr(self._telling, "progress", None)))
            return before, self.store.counts(), statements, warnings

    def query(
        self,
        program: Any,
        *,
        language: str | None = None,
        timeout: float | None = None,
        limit: int | None = None,
        on_unknown: OnUnknown = "error",
        cancelled: Event | None = None,
        **options: Any,
    ) -> Answer:
        """Answer a program in any language with one Cypher query."""
        return self.store.query(
            program, language=language, timeout=timeout, limit=limit, on_unknown=on_unknown, cancelled=cancelled, **options
        )

    def kopl(
        self,
        program: Any,
        *,
        timeout: float | None = None,
        limit: int | None = None,
        on_unknown: OnUnknown = "error",
        cancelled: Event | None = None,
        engine: Engine = "snapshot",
    ) -> Answer:
        """Answer a KoPL program with one Cypher query; there is no other engine."""
        if engine != "snapshot":
            raise OptionError("a graph in Neo4j answers in Neo4j", hint="graph.snapshot().kopl(..., engine='sparql')")
        return self.query(program, language="kopl", timeout=timeout, limit=limit, on_unknown=on_unknown, cancelled=cancelled)

    def index(
        self,
        encoder: str | os.PathLike[str] | Encoder = "lexical",
        *,
        faiss: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> IndexReport:
        """Keep the vectors of nodes and predicates on the server, and make its vector index; only what is new is encoded."""
        if self.read_only:
            raise ReadOnlyError(f"{self.place} was opened for reading", hint="open it with read_only=False")
        if faiss:
            raise OptionError("a graph on Neo4j has the server's own vector index", hint="leave `faiss` out")
        return self.store.patterns.index(encoder_of(encoder), progress)

    def match(
        self,
        pattern: Any,
        *,
        k: int | None = 3,
        group_by: str | Sequence[str] | None = None,
        distinct_from: Any = None,
        injective: bool = True,
        induced: bool = False,
        directed: bool = False,
        k_nodes: int | None = None,
        k_relations: int | None = None,
        k_types: int | None = None,
        fast: bool = False,
        encoder: Encoder | str | None = None,
        timeout: float | None = None,
        limit: int | None = None,
        cancelled: Event | None = None,
        exact: bool = True,
        engine: Engine = "snapshot",
    ) -> Matches:
        """The k subgraphs that are most similar to a pattern, as `Graph.match` gives them, joined and ranked by the server.

        With `exact=False` the candidates of names come from the server's vector index (`index`), which may miss some.
        """
        if engine != "snapshot":
            raise OptionError("a graph on Neo4j is asked in Cypher", hint="graph.snapshot() has an embedded RDF store")
        return self.store.patterns.match(
            pattern,
            encoder=encoder,
            timeout=timeout,
            limit=limit,
            cancelled=cancelled,
            exact=exact,
            k=k,
            group_by=group_by,
            distinct_from=distinct_from,
            injective=injective,
            induced=induced,
            directed=directed,
            k_nodes=k_nodes,
            k_relations=k_relations,
            k_types=k_types,
            fast=fast,
        )

    def explain(self, program: Any, *, language: str | None = None, on_unknown: OnUnknown = "error", **options: Any) -> str:
        """The Cypher of a program, without running it."""
        return self.store.explain(program, language=language, on_unknown=on_unknown, **options)

    def cypher(self, text: str, parameters: dict[str, Any] | None = None, *, timeout: float | None = 60.0) -> list[dict[str, Any]]:
        """Run a reading query that a person (or a model) wrote, after the server's plan of it was checked."""
        return self.store.cypher(text, parameters, timeout=timeout)

    def status(self, *, verify: bool = False) -> Status:
        """What the graph holds; bytes are the server's own affair."""
        if verify:
            raise OptionError("a graph on a server has no checksums here")
        return Status(self.place, self.name, "server", self.store.counts(), self.store.sources(), 0)

    def snapshot(self) -> Graph:
        """The whole graph as a local one in memory, equal to what was loaded."""
        return Graph.of(self.store.snapshot(), self.name)

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

    def export(self, path: str | os.PathLike[str] | IO[str], *, to: str = "jsonl") -> int:
        """Write everything the graph holds as JSON lines, which load to an equal graph; returns how many lines."""
        return self.snapshot().export(path, to=to)
