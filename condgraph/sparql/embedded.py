"""The RDF face of a local graph: Oxigraph, built from the snapshot on first use and kept beside the generation it was built from.

A graph in a directory keeps its store in the directory of its generation, so that both go together; it is written under another
name and renamed when it is complete, and opened for reading. A graph in memory, or one in a directory that cannot be written, has
its store in memory.
"""

from __future__ import annotations

import io
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator
from functools import cache, cached_property
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, Final

from condgraph.engine.bounds import check_bounds
from condgraph.sparql.compile_group import Target
from condgraph.sparql.layout import LAYOUT, Names, base_iri
from condgraph.sparql.protocol_text import makes_triples
from condgraph.sparql.write import counts, quads

if TYPE_CHECKING:
    from pyoxigraph import QuerySolution, Store

    from condgraph.engine.answer import Answer
    from condgraph.engine.facts import Entity
    from condgraph.engine.snapshot.snapshot import Snapshot
    from condgraph.sparql.match import SparqlPatterns
    from condgraph.sparql.table import Table
    from condgraph.sparql.worker import WorkerPool

_FOLDER: Final = f"rdf{LAYOUT}"


class _Lines(io.RawIOBase):
    """Batches of lines as a file that a parser reads from."""

    def __init__(self, batches: Iterator[str]) -> None:
        self._batches, self._rest = batches, b""

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer with what comes next; 0 at the end."""
        while not self._rest:
            batch = next(self._batches, None)
            if batch is None:
                return 0
            self._rest = batch.encode()
        size = min(len(buffer), len(self._rest))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size


class EmbeddedStore:
    """The store of one generation. `folder` is where it is on disk, None in memory."""

    def __init__(self, snapshot: Snapshot, graph: str = "default", directory: Path | None = None, base: str | None = None) -> None:
        from pyoxigraph import NamedNode

        self.base = base or base_iri(graph)
        self.snapshot, self._graph, self._name = snapshot, NamedNode(self.base), graph
        self.folder: Path | None = None
        generation = snapshot.about.get("generation")
        if directory is not None and base is None and generation:
            self.folder = self._on_disk(snapshot, graph, directory / str(generation))
        self.store = self._opened(snapshot, graph)

    def _opened(self, snapshot: Snapshot, graph: str) -> Store:
        from pyoxigraph import Store

        if self.folder is not None:
            return Store.read_only(str(self.folder))
        store = Store()
        fill(store, snapshot, self.base, graph)
        return store

    def _on_disk(self, snapshot: Snapshot, graph: str, generation: Path) -> Path | None:
        """The folder of the store, built where it is not there; None where it cannot be written."""
        from pyoxigraph import Store

        folder, fresh = generation / _FOLDER, generation / f"{_FOLDER}.{os.getpid()}"
        if folder.is_dir():
            return folder
        try:
            shutil.rmtree(fresh, ignore_errors=True)
            fresh.mkdir()
        except OSError:
            return None
        try:
            store = Store(str(fresh))
            fill(store, snapshot, self.base, graph)
            store.optimize()
            del store
            try:
                os.replace(fresh, folder)
            except OSError:
                # Another process was quicker, and its store is the same.
                if not folder.is_dir():
                    return None
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
        return folder

    @cached_property
    def target(self) -> Target:
        """What compiling knows of the graph."""
        return Target(Names(self.base), self.snapshot.schema, counts(self.snapshot), self.entities)

    def select(self, text: str, *, timeout: float | None = None, cancelled: Event | None = None) -> Iterable[QuerySolution]:
        """The solutions of a SELECT over the graph."""
        found: Any = self._query(text, timeout, cancelled)
        return found  # type: ignore[no-any-return]

    def entities(self, ids: list[str]) -> list[Entity]:
        """Entities by their ids, read from the snapshot that the store was built from."""
        return [self.snapshot.entity(self.snapshot.identified(ident)) for ident in ids]

    def ask(self, text: str, *, timeout: float | None = None, cancelled: Event | None = None) -> bool:
        """The answer of an ASK over the graph."""
        return bool(self._query(text, timeout, cancelled))

    def _query(self, text: str, timeout: float | None, cancelled: Event | None) -> Any:
        if timeout is None and cancelled is None:
            return self.store.query(text, default_graph=self._graph)
        from pyoxigraph import QueryResultsFormat, parse_query_results

        from condgraph.sparql.worker import Query

        with self._workers.query(Query(text, default_graphs=[self.base]), timeout=timeout, cancelled=cancelled) as results:
            return parse_query_results(results.read(), QueryResultsFormat.JSON)

    def text(
        self,
        text: str,
        *,
        dialect: str = "standard",
        timeout: float | None = None,
        limit: int | None = None,
        cancelled: Event | None = None,
        on_unknown: str = "error",
    ) -> Table:
        """Run a query that people wrote, read-only; its results as a table (`query_text`)."""
        from condgraph.sparql.query_text import run

        check_bounds(timeout)

        def runs(one: str) -> Any:
            return self._triples(one, timeout, cancelled) if makes_triples(one) else self._query(one, timeout, cancelled)

        names, schema = self.target.names, self.target.schema
        return run(text, runs, names, schema, dialect=dialect, limit=limit, on_unknown=on_unknown)

    def _triples(self, text: str, timeout: float | None, cancelled: Event | None) -> Any:
        if timeout is None and cancelled is None:
            return self.store.query(text, default_graph=self._graph)
        from pyoxigraph import RdfFormat, parse

        from condgraph.sparql.worker import Query

        query = Query(text, triples="ntriples", default_graphs=[self.base])
        with self._workers.query(query, timeout=timeout, cancelled=cancelled) as results:
            return [quad.triple for quad in parse(results.read(), RdfFormat.N_TRIPLES)]

    @cached_property
    def kept(self) -> Path:
        """Where the store is on disk, for other processes; one in memory is written to a folder that goes with this object."""
        from pyoxigraph import Store

        if self.folder is not None:
            return self.folder
        folder = tempfile.mkdtemp(prefix="condgraph-rdf-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        store = Store(folder)
        fill(store, self.snapshot, self.base, self._name)
        store.flush()
        return Path(folder)

    @cached_property
    def _workers(self) -> WorkerPool:
        """Processes for queries that may have to be ended."""
        from condgraph.sparql.worker import WorkerPool

        return WorkerPool(self.kept)

    @cached_property
    def patterns(self) -> SparqlPatterns:
        """Patterns on this store."""
        from condgraph.sparql.match import SparqlPatterns
        from condgraph.sparql.match_vectors import SnapshotVectors

        return SparqlPatterns(self, self.snapshot.schema, SnapshotVectors(self.snapshot))

    def answer(self, program: Any, language: str | None = None, *, limit: int | None = None, **options: Any) -> Answer:
        """Answer a program with one query; evidence and warnings are worked out in process, on the snapshot behind the store."""
        from condgraph.engine import languages
        from condgraph.sparql.answer import answer

        @cache
        def twin() -> Answer:
            kept = {name: value for name, value in options.items() if name not in ("timeout", "cancelled")}
            return languages.answer(self.snapshot, program, language, limit=limit, **kept)

        return answer(self, program, language, limit=limit, twin=twin, **options)

    def explain(self, program: Any, language: str | None = None, **options: Any) -> str:
        """The SPARQL of a program, without running it."""
        from condgraph.engine import languages
        from condgraph.engine.passes import optimise
        from condgraph.sparql.compile_plan import compile_plan

        lowered = languages.lower(self.snapshot.schema, program, language or languages.detect(program), options)
        return compile_plan(optimise(lowered.plan)[0], self.target).text


def fill(store: Store, snapshot: Snapshot, base: str, graph: str) -> None:
    """Load a snapshot into an empty store, a batch at a time."""
    from pyoxigraph import RdfFormat

    store.bulk_load(io.BufferedReader(_Lines(quads(snapshot, base, graph=graph)), 1 << 20), RdfFormat.N_QUADS)
