"""The RDF form of a local graph: Oxigraph, built from the snapshot on first use and stored next to its generation.

A graph in a directory has its store in the directory of its generation, so that both are deleted together; it is written under
another name, renamed when it is complete, and opened for reading. A graph in memory, or one in a directory that cannot be
written, has its store in memory. A second store is built once a query names graphs (`stored`).
"""

from __future__ import annotations

import io
import logging
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import chain
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from condgraph.engine.bounds import SharedTask, Workers, cached, current, watched, within
from condgraph.engine.errors import OptionError
from condgraph.engine.execute import Run
from condgraph.snapshot_store import SnapshotStore
from condgraph.sparql.compile.conditions import Target
from condgraph.sparql.dialect import cut
from condgraph.sparql.layout import LAYOUT, GraphIris, base_iri
from condgraph.sparql.load.write import counts, ntriples, quads
from condgraph.sparql.plain import has_terms, labels, plain, plain_graph
from condgraph.sparql.store import RdfStore
from condgraph.sparql.text.lists import rewrite
from condgraph.sparql.text.query import Cells, Knows, by_name, cells
from condgraph.sparql.text.scan import is_heavy, makes_triples, names_graphs, underscored
from condgraph.sparql.workers.pool import Query, UnopenedError, WorkerPool

if TYPE_CHECKING:
    from pyoxigraph import QuerySolution, Store

    from condgraph.engine.algebra import Node
    from condgraph.engine.facts import Entity
    from condgraph.engine.snapshot.snapshot import Snapshot
    from condgraph.patterns.matches import Matches
    from condgraph.sparql.text.table import Table


# -- triples on disk ---------------------------------------------------------------------------------
# An Oxigraph store with the triples of a snapshot, on disk next to the generation, or in memory.
#
# The triples of the layout are only in the store's default graph, where each has three index entries and
# not six. Queries that name graphs use a second store, in which they are in their named graph: `named`
# tells the two apart. Plain triples (`plain`) are in named graphs in both.
#
# If the disk is full, the folder cannot be written, or a load has replaced the generation, only the copy
# on disk is missing: the snapshot stays mapped, and the store is built in memory.


#: Names of the stores on disk, with the named graph and without; the number is increased if their content
#: other than the layout changes (`plain`).
_NAMED, _DEFAULT = f"rdf{LAYOUT}1", f"rdf{LAYOUT}2"
#: Lines that are written together.
_LINES: Final = 10_000
#: Stores are built in threads: a caller continues at its deadline, and a later call has the store.
BUILDERS: Final = Workers("condgraph-rdf")
#: Oxigraph's errors if its files cannot be written or opened.
_UNUSABLE: Final = (OSError, RuntimeError)
_log: Final = logging.getLogger("condgraph.sparql")
#: Lines of N-Quads in batches, and whether their IRIs need checking.
_Batches: TypeAlias = Iterator[tuple[Iterator[str], bool]]


class Stored:
    """A store of one snapshot, for a graph with the name `graph` and the IRI `base`.

    `generation` is the folder to store it in, if that can be written, and None for a store in memory.
    """

    def __init__(self, snapshot: Snapshot, graph: str, base: str, generation: Path | None, *, named: bool) -> None:
        self._snapshot, self._graph, self._base, self._is_named = snapshot, graph, base, named
        #: Its folder on disk; None in memory.
        self.folder: Path | None = None
        self._store = SharedTask(BUILDERS, self._in_memory)
        if generation is not None:
            self._use_disk(generation)
        self._shared, self._pool = SharedTask(BUILDERS, self._shareable), SharedTask(BUILDERS, self._pooled)

    @property
    def store(self) -> Store:
        """The store in this process."""
        return self._store.get()

    def _in_memory(self) -> Store:
        from pyoxigraph import Store

        store = Store()
        self._fill(store)
        return store

    def _use_disk(self, generation: Path) -> None:
        """Open the store next to the generation, or build it; if neither works, it stays in memory."""
        from pyoxigraph import Store

        try:
            folder = self._on_disk(generation)
            if folder is not None:
                opened = Store.read_only(str(folder))  # it stays open, whatever becomes of the folder
                self.folder, self._store = folder, SharedTask(BUILDERS, lambda: opened)
                self._store.get()
        except _UNUSABLE as error:
            # A generation that a load has replaced needs no warning: nobody opens it again.
            if generation.is_dir():
                _log.warning("warning: the RDF store is kept in memory, not in %s: %s", generation, str(error).strip())

    def _on_disk(self, generation: Path) -> Path | None:
        """Return the folder of the store, which is built if missing; None if that fails."""
        from pyoxigraph import Store

        name = _NAMED if self._is_named else _DEFAULT
        folder, fresh = generation / name, generation / f"{name}.{os.getpid()}"
        if folder.is_dir():
            return folder
        try:
            shutil.rmtree(fresh, ignore_errors=True)
            fresh.mkdir()
        except OSError:
            return None
        try:
            store = Store(str(fresh))
            self._fill(store)
            store.optimize()
            del store
            try:
                os.replace(fresh, folder)
            except OSError:
                # Another process was faster; its store is the same.
                if not folder.is_dir():
                    return None
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
        return folder

    def _fill(self, store: Store) -> None:
        """Load the snapshot into an empty store, in batches."""
        from pyoxigraph import RdfFormat

        for batches, checked in self._batches():
            store.bulk_load(io.BufferedReader(_Lines(batches), 1 << 20), RdfFormat.N_QUADS, lenient=not checked)

    def _batches(self) -> _Batches:
        """Yield all triples as N-Quads. The IRIs of the layout are written here, and need no check."""
        snapshot, base, graph = self._snapshot, self._base, self._graph
        end = f" <{base}> .\n" if self._is_named else " .\n"
        layout_lines = quads(snapshot, base, graph=graph) if self._is_named else ntriples(snapshot, base, graph=graph)
        yield chain(layout_lines, (end.join((*lines, "")) for lines in cut(labels(snapshot, base), _LINES))), False
        if has_terms(snapshot):
            yield ("".join(lines) for lines in cut(plain(snapshot, base, end), _LINES)), True

    @property
    def source(self) -> dict[str, str]:
        """The store for worker processes, and the graph whose triples are in its default graph, if any.

        It is the folder; for a store in memory, a temporary folder that is removed with this object, or the triples
        themselves if no folder can be written.
        """
        shared = self._shared.get()
        return dict(shared) if self._is_named else {**shared, "own": self._base}

    def _shareable(self) -> dict[str, str]:
        from pyoxigraph import Store

        if self.folder is not None:
            return {"store": str(self.folder)}
        try:
            folder = tempfile.mkdtemp(prefix="condgraph-rdf-")
            remove = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
            try:
                store = Store(folder)
                self._fill(store)
                store.flush()
                return {"store": folder}
            except _UNUSABLE:
                remove()
                raise
        except _UNUSABLE as error:
            _log.warning("warning: worker processes load the RDF store into memory, it is not on disk: %s", str(error).strip())
            return {"quads": "".join(chain.from_iterable(batches for batches, _ in self._batches()))}

    def leave_folder(self) -> None:
        """Share the store with worker processes in another form, as its folder is gone."""
        self.folder = None
        self._shared, self._pool = SharedTask(BUILDERS, self._shareable), SharedTask(BUILDERS, self._pooled)

    @property
    def pool(self) -> WorkerPool:
        """Processes for queries that may have to be killed."""
        return self._pool.get()

    def _pooled(self) -> WorkerPool:
        from condgraph.sparql.workers.pool import WorkerPool

        return WorkerPool(self.source)

    def query(self, text: str, graphs: Sequence[str]) -> Any:
        """Run a query in this process, with these graphs as its default graph; lists are rewritten, as in workers."""
        from pyoxigraph import DefaultGraph, NamedNode

        default: Any = [DefaultGraph() if iri == self._base and not self._is_named else NamedNode(iri) for iri in graphs]
        quick = rewrite(text)
        if quick != text:
            with suppress(SyntaxError):
                return self.store.query(quick, default_graph=default)
        return self.store.query(text, default_graph=default)


class _Lines(io.RawIOBase):
    """Batches of lines as a file for a parser."""

    def __init__(self, batches: Iterator[str]) -> None:
        self._batches, self._rest = batches, memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer with the next bytes; return 0 at the end."""
        while not self._rest:
            batch = next(self._batches, None)
            if batch is None:
                return 0
            self._rest = memoryview(batch.encode())
        size = min(len(buffer), len(self._rest))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size


# -- the store ---------------------------------------------------------------------------------------


class EmbeddedStore(RdfStore):
    """The store of one generation; `folder` is its place on disk, None in memory."""

    def __init__(self, snapshot: Snapshot, graph: str = "default", directory: Path | None = None, base: str | None = None) -> None:
        from pyoxigraph import NamedNode

        self.base = base or base_iri(graph)
        NamedNode(self.base)  # raises `ValueError` if it is not an IRI
        self.snapshot = snapshot
        #: The default graph of users' queries: the layout, and the plain RDF of sources.
        self.defaults = [self.base, plain_graph(self.base)] if has_terms(snapshot) else [self.base]
        generation = None if directory is None or base is not None else snapshot.about.get("generation")
        folder = None if directory is None or not generation else directory / str(generation)
        self._stored = Stored(snapshot, graph, self.base, folder, named=False)
        #: For queries that name graphs; built for the first of them.
        self._naming = SharedTask(BUILDERS, lambda: Stored(snapshot, graph, self.base, folder, named=True))
        self.folder = self._stored.folder

    @property
    def store(self) -> Store:
        """The store in this process, with the triples of the graph in its default graph."""
        return self._stored.store

    @cached
    def target(self) -> Target:
        """The graph, as the compiler uses it."""
        return Target(GraphIris(self.base), self.snapshot.schema, counts(self.snapshot), self.entities)

    def select(self, text: str, *, timeout: float | None = None, cancelled: Event | None = None) -> Iterable[QuerySolution]:
        """Return the solutions of a SELECT over the graph."""
        with within(timeout, cancelled):
            solutions: Any = self._query(text)
        return solutions  # type: ignore[no-any-return]

    def entities(self, ids: list[str]) -> list[Entity]:
        """Return entities by id, from the snapshot that the store was built from."""
        return [self.snapshot.entity(self.snapshot.identified(ident)) for ident in ids]

    def ask(self, text: str, *, timeout: float | None = None, cancelled: Event | None = None) -> bool:
        """Return the answer of an ASK over the graph."""
        with within(timeout, cancelled):
            return bool(self._query(text))

    @cached
    def graphs(self) -> tuple[str, ...]:
        """The IRIs of all named graphs of the store, the graph's own first."""
        iris = {name.value for name in self.store.named_graphs() if hasattr(name, "value") and type(name).__name__ == "NamedNode"}
        return (*self.defaults, *sorted(iris.difference(self.defaults)))

    def _query(self, text: str, *, plainly: bool = False) -> Any:
        graphs = self.defaults if plainly else [self.base]
        if current() is None and not is_heavy(text):
            return self._now(text, graphs)
        from pyoxigraph import QueryResultsFormat, parse_query_results

        return parse_query_results(self._elsewhere(Query(text, default_graphs=graphs)), QueryResultsFormat.JSON)

    def _elsewhere(self, query: Query) -> bytes:
        """Run a query in another process, which can be killed."""
        stored = self._stored_for(query.text)
        try:
            return _results(stored.pool, query)
        except UnopenedError:
            # A load replaced the generation before the process opened its folder.
            stored.leave_folder()
            return _results(stored.pool, query)

    def _stored_for(self, text: str) -> Stored:
        """Return the store that answers a query."""
        return self._naming.get() if names_graphs(text) else self._stored

    def _now(self, text: str, graphs: Sequence[str] = ()) -> Any:
        """Run a query in this process."""
        return self._stored_for(text).query(text, graphs or [self.base])

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
        """Run a user's query, read-only; return its results as a table (`sparql.text.query`)."""
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
        """Return the meaning of a node, from the snapshot (`sparql.text.query.Knows`)."""
        names, snapshot = self.target.names, self.snapshot
        if iri.startswith(names.base + "."):  # a value or a statement, for example
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
        """Tell whether the graph has an entity with this id, or a predicate or qualifier key with this name."""
        return name in self._predicates or self.snapshot.identified(name) >= 0

    @cached
    def _predicates(self) -> frozenset[str]:
        return frozenset(map(self.snapshot.predicate_name, range(self.snapshot.predicate_count)))

    def _triples(self, text: str) -> Any:
        if current() is None and not is_heavy(text):
            return self._now(text, self.defaults)
        from pyoxigraph import RdfFormat, parse

        query = Query(text, triples="ntriples", default_graphs=self.defaults)
        return [quad.triple for quad in watched(parse(self._elsewhere(query), RdfFormat.N_TRIPLES))]

    @property
    def source(self) -> Mapping[str, str]:
        """The store for other processes (`Stored.source`)."""
        return self._stored.source

    def naming(self) -> Mapping[str, str]:
        """Return the store for queries of other processes that name graphs; built if missing."""
        return self._naming.get().source

    def match(self, pattern: Any, *, exact: bool, **options: Any) -> Matches:
        """Match a pattern on the snapshot that the store was built from."""
        if not exact:
            raise OptionError("the RDF store has no approximate index", hint="ask with exact=True")
        return SnapshotStore(self.snapshot).match(pattern, **options)

    def witness(self, plan: Node) -> Run:
        """Run a plan on the store's snapshot, for evidence and warnings."""
        run = Run(self.snapshot)
        run.execute(plan)
        return run


def _results(pool: WorkerPool, query: Query) -> bytes:
    """Return the results of a query that processes run, within the limits of this call."""
    budget = current()
    timeout, cancelled = (None, None) if budget is None else (budget.left(), budget.cancelled())
    with pool.query(query, timeout=timeout, cancelled=cancelled) as results:
        return results.read()
