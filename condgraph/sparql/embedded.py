"""The RDF face of a local graph: Oxigraph, built from the snapshot on first use and kept beside the
generation it was built from.

A graph in a directory keeps its store in the directory of its generation, so that both go together;
it is written under another name and renamed when it is complete, and opened for reading. A graph in
memory, or one in a directory that cannot be written, has its store in memory.
"""

from __future__ import annotations

import io
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import chain
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, Final

from condgraph.engine.bounds import cached, current, within
from condgraph.engine.errors import OptionError
from condgraph.engine.execute import Run
from condgraph.engine.pieces import watched
from condgraph.engine.workers import Once, Workers
from condgraph.sparql.compile.group import Target
from condgraph.sparql.dialect import cut
from condgraph.sparql.layout import LAYOUT, GraphIris, base_iri
from condgraph.sparql.load.write import counts, quads
from condgraph.sparql.plain.served import has_terms, plain_graph, served
from condgraph.sparql.store import RdfStore
from condgraph.sparql.text.lists import rewrite
from condgraph.sparql.text.prologue import underscored
from condgraph.sparql.text.survey import makes_triples
from condgraph.sparql.text.terms import Cells, Knows, by_name, cells
from condgraph.sparql.text.weight import is_heavy

if TYPE_CHECKING:
    from pyoxigraph import QuerySolution, Store

    from condgraph.engine.algebra import Node
    from condgraph.engine.facts import Entity
    from condgraph.engine.snapshot.snapshot import Snapshot
    from condgraph.patterns.matches import Matches
    from condgraph.sparql.patterns.match import SparqlPatterns
    from condgraph.sparql.text.table import Table
    from condgraph.sparql.workers.pool import Query, WorkerPool

#: Raised when what the store holds beside the layout changes (`plain.served`).
_BESIDE: Final = 1
_FOLDER: Final = f"rdf{LAYOUT}{_BESIDE}"
#: Stores are built in threads: a caller with a deadline goes on at it, and finds the store later.
BUILDERS: Final = Workers("condgraph-rdf")


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


class EmbeddedStore(RdfStore):
    """The store of one generation. `folder` is where it is on disk, None in memory."""

    def __init__(self, snapshot: Snapshot, graph: str = "default", directory: Path | None = None, base: str | None = None) -> None:
        from pyoxigraph import NamedNode

        self.base = base or base_iri(graph)
        self.snapshot, self._graph, self._name = snapshot, NamedNode(self.base), graph
        #: The graphs that queries of people ask: the layout, and what sources say as plain RDF.
        self.defaults = [self.base, plain_graph(self.base)] if has_terms(snapshot) else [self.base]
        self.folder: Path | None = None
        generation = snapshot.about.get("generation")
        if directory is not None and base is None and generation:
            self.folder = self._on_disk(snapshot, graph, directory / str(generation))
        self.store = self._opened(snapshot, graph)
        self._kept, self._pool = Once(BUILDERS, self._written), Once(BUILDERS, self._pooled)

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

    @cached
    def target(self) -> Target:
        """What compiling knows of the graph."""
        return Target(GraphIris(self.base), self.snapshot.schema, counts(self.snapshot), self.entities)

    def select(self, text: str, *, timeout: float | None = None, cancelled: Event | None = None) -> Iterable[QuerySolution]:
        """The solutions of a SELECT over the graph."""
        with within(timeout, cancelled):
            found: Any = self._query(text)
        return found  # type: ignore[no-any-return]

    def entities(self, ids: list[str]) -> list[Entity]:
        """Entities by their ids, read from the snapshot that the store was built from."""
        return [self.snapshot.entity(self.snapshot.identified(ident)) for ident in ids]

    def ask(self, text: str, *, timeout: float | None = None, cancelled: Event | None = None) -> bool:
        """The answer of an ASK over the graph."""
        with within(timeout, cancelled):
            return bool(self._query(text))

    @cached
    def graphs(self) -> tuple[str, ...]:
        """The IRIs of all named graphs of the store, the graph's own first."""
        others = {one.value for one in self.store.named_graphs() if hasattr(one, "value") and type(one).__name__ == "NamedNode"}
        return (*self.defaults, *sorted(others.difference(self.defaults)))

    def _query(self, text: str, *, plainly: bool = False) -> Any:
        graphs = self.defaults if plainly else [self.base]
        if current() is None and not is_heavy(text):
            return self._now(text, graphs)
        from pyoxigraph import QueryResultsFormat, parse_query_results

        from condgraph.sparql.workers.pool import Query

        return parse_query_results(self._elsewhere(Query(text, default_graphs=graphs)), QueryResultsFormat.JSON)

    def _elsewhere(self, query: Query) -> bytes:
        """The results of a query in another process, which can be killed."""
        budget = current()
        pool = self._pool.get()
        timeout, cancelled = (None, None) if budget is None else (budget.left(), budget.cancelled())
        with pool.query(query, timeout=timeout, cancelled=cancelled) as results:
            return results.read()

    def _now(self, text: str, graphs: Sequence[str] = ()) -> Any:
        """Run a query in this process; workers write lists otherwise, too."""
        from pyoxigraph import NamedNode

        asked: Any = self._graph if len(graphs) < 2 else [NamedNode(iri) for iri in graphs]
        quick = rewrite(text)
        if quick != text:
            with suppress(SyntaxError):
                return self.store.query(quick, default_graph=asked)
        return self.store.query(text, default_graph=asked)

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
        """Run a query that people wrote, read-only; its results as a table (`sparql.text.query`)."""
        from condgraph.sparql.text.query import run

        plainly = dialect == "standard"
        if plainly:
            text = underscored(text, self.is_name)

        def runs(one: str) -> Any:
            return self._triples(one) if makes_triples(one) else self._query(one, plainly=plainly)

        with within(timeout, cancelled):
            names, schema = self.target.names, self.target.schema
            return run(text, runs, names, schema, dialect=dialect, limit=limit, on_unknown=on_unknown, known=self._remembered)

    @cached
    def _remembered(self) -> Knows:
        return lru_cache(maxsize=1 << 16)(self._known)

    def _known(self, iri: str) -> Cells | None:
        """What a node is, from the snapshot (`sparql.text.terms.Knows`)."""
        names, snapshot = self.target.names, self.snapshot
        if iri.startswith(names.base + "."):  # a value, or a statement, say
            return by_name(iri, names) if names.is_value(iri) else cells(iri, None, None)
        try:
            name = names.name_of(iri)
        except ValueError:
            name = ""
        if f"<{iri}>" != names.entity(name):
            return cells(iri, None, None)
        number = snapshot.identified(name)
        return cells(iri, snapshot.entity(number) if number >= 0 else None, name if name in self._predicates else None)

    def is_name(self, name: str) -> bool:
        """Whether the graph has an entity of this id, or a predicate or qualifier key of this name."""
        return name in self._predicates or self.snapshot.identified(name) >= 0

    @cached
    def _predicates(self) -> frozenset[str]:
        return frozenset(map(self.snapshot.predicate_name, range(self.snapshot.predicate_count)))

    def _triples(self, text: str) -> Any:
        if current() is None and not is_heavy(text):
            return self._now(text, self.defaults)
        from pyoxigraph import RdfFormat, parse

        from condgraph.sparql.workers.pool import Query

        query = Query(text, triples="ntriples", default_graphs=self.defaults)
        return [quad.triple for quad in watched(parse(self._elsewhere(query), RdfFormat.N_TRIPLES))]

    @property
    def kept(self) -> Path:
        """Where the store is on disk, for other processes; one in memory is written to a folder
        that goes with this object.
        """
        return self._kept.get()

    def _written(self) -> Path:
        from pyoxigraph import Store

        if self.folder is not None:
            return self.folder
        folder = tempfile.mkdtemp(prefix="condgraph-rdf-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        store = Store(folder)
        fill(store, self.snapshot, self.base, self._name)
        store.flush()
        return Path(folder)

    def _pooled(self) -> WorkerPool:
        """Processes for queries that may have to be ended."""
        from condgraph.sparql.workers.pool import WorkerPool

        return WorkerPool(self.kept)

    @cached
    def patterns(self) -> SparqlPatterns:
        """Patterns on this store."""
        from condgraph.sparql.patterns.match import SparqlPatterns
        from condgraph.sparql.patterns.vectors import SnapshotVectors

        return SparqlPatterns(self, self.snapshot.schema, SnapshotVectors(self.snapshot))

    def match(self, pattern: Any, *, exact: bool, **options: Any) -> Matches:
        """The subgraphs nearest to a pattern, over edges fetched from the store."""
        if not exact:
            raise OptionError("the RDF store has no approximate index", hint="ask with exact=True")
        return self.patterns.match(pattern, **options)

    def witness(self, plan: Node) -> Run:
        """A plan run on the snapshot behind the store: for evidence and warnings."""
        run = Run(self.snapshot)
        run.execute(plan)
        return run


def fill(store: Store, snapshot: Snapshot, base: str, graph: str) -> None:
    """Load a snapshot into an empty store, a batch at a time."""
    from pyoxigraph import RdfFormat

    batches = chain(quads(snapshot, base, graph=graph), ("".join(some) for some in cut(served(snapshot, base), 10_000)))
    store.bulk_load(io.BufferedReader(_Lines(batches), 1 << 20), RdfFormat.N_QUADS)
