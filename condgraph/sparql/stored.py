"""The triples of a snapshot in a store of Oxigraph: on disk next to the generation, or in memory.

The triples of the layout stand in the store's default graph, where each has three index entries and
not six, and in no named one. Queries that name graphs ask a second store, in which they stand in
their named graph: `named` says which of the two this is. All else is the same in both: plain
triples (`plain.served`) are in named graphs.

A disk that is full, a folder that cannot be written, or a generation that a load replaced meanwhile
costs the copy on disk and nothing else: the snapshot stays mapped, and the store is made of it in
memory.
"""

from __future__ import annotations

import io
import logging
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from condgraph.engine.workers import Once, Workers
from condgraph.sparql.dialect import cut
from condgraph.sparql.layout import LAYOUT
from condgraph.sparql.load.write import ntriples, quads
from condgraph.sparql.plain.served import has_terms, labels, plain
from condgraph.sparql.text.lists import rewrite

if TYPE_CHECKING:
    from pyoxigraph import Store

    from condgraph.engine.snapshot.snapshot import Snapshot
    from condgraph.sparql.workers.pool import WorkerPool

#: Raised when what the stores hold beside the layout changes (`plain.served`); of the store with
#: the named graph, and of the other one.
_NAMED, _DEFAULT = f"rdf{LAYOUT}1", f"rdf{LAYOUT}2"
#: Lines that are written together.
_LINES: Final = 10_000
#: Stores are built in threads: a caller with a deadline goes on at it, and finds the store later.
BUILDERS: Final = Workers("condgraph-rdf")
#: What Oxigraph raises where its files cannot be written or opened.
_UNUSABLE: Final = (OSError, RuntimeError)
_log: Final = logging.getLogger("condgraph.sparql")
#: Lines of N-Quads in batches, and whether their IRIs need checking.
_Batches: TypeAlias = Iterator[tuple[Iterator[str], bool]]


class Stored:
    """A store of one snapshot, whose graph is called `graph` and has the IRI `base`; `generation` is
    the folder it is kept in, where that can be written, and None for one in memory.
    """

    def __init__(self, snapshot: Snapshot, graph: str, base: str, generation: Path | None, *, named: bool) -> None:
        self._snapshot, self._graph, self._base, self._is_named = snapshot, graph, base, named
        #: Where it is on disk; None in memory.
        self.folder: Path | None = None
        self._store = Once(BUILDERS, self._in_memory)
        if generation is not None:
            self._use_disk(generation)
        self._shared, self._pool = Once(BUILDERS, self._shareable), Once(BUILDERS, self._pooled)

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
        """Open the store next to the generation, built where it is not there; leaves it in memory where
        that is not possible.
        """
        from pyoxigraph import Store

        try:
            folder = self._on_disk(generation)
            if folder is not None:
                opened = Store.read_only(str(folder))  # it stays open, whatever becomes of the folder
                self.folder, self._store = folder, Once(BUILDERS, lambda: opened)
                self._store.get()
        except _UNUSABLE as error:
            # A generation that a load replaced is no trouble: nobody opens it again.
            if generation.is_dir():
                _log.warning("warning: the RDF store is kept in memory, not in %s: %s", generation, str(error).strip())

    def _on_disk(self, generation: Path) -> Path | None:
        """The folder of the store, built where it is not there; None where it cannot be made."""
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
                # Another process was quicker, and its store is the same.
                if not folder.is_dir():
                    return None
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
        return folder

    def _fill(self, store: Store) -> None:
        """Load the snapshot into an empty store, a batch at a time."""
        from pyoxigraph import RdfFormat

        for batches, checked in self._batches():
            store.bulk_load(io.BufferedReader(_Lines(batches), 1 << 20), RdfFormat.N_QUADS, lenient=not checked)

    def _batches(self) -> _Batches:
        """All triples as N-Quads. The IRIs of the layout are of our own writing, and need not be checked
        again.
        """
        snapshot, base, graph = self._snapshot, self._base, self._graph
        end = f" <{base}> .\n" if self._is_named else " .\n"
        written = quads(snapshot, base, graph=graph) if self._is_named else ntriples(snapshot, base, graph=graph)
        yield chain(written, (end.join((*some, "")) for some in cut(labels(snapshot, base), _LINES))), False
        if has_terms(snapshot):
            yield ("".join(some) for some in cut(plain(snapshot, base, end), _LINES)), True

    @property
    def source(self) -> dict[str, str]:
        """The store for worker processes, and the graph whose triples are in its default graph, if any:
        its folder; for one in memory a temporary folder, which goes with this object; the triples
        themselves where no folder takes them.
        """
        found = self._shared.get()
        return dict(found) if self._is_named else {**found, "own": self._base}

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
        """Share the store with worker processes another way: its folder is gone."""
        self.folder = None
        self._shared, self._pool = Once(BUILDERS, self._shareable), Once(BUILDERS, self._pooled)

    @property
    def pool(self) -> WorkerPool:
        """Processes for queries that may have to be ended."""
        return self._pool.get()

    def _pooled(self) -> WorkerPool:
        from condgraph.sparql.workers.pool import WorkerPool

        return WorkerPool(self.source)

    def query(self, text: str, graphs: Sequence[str]) -> Any:
        """Run a query in this process, with some graphs for its default graph; workers write lists
        otherwise, too.
        """
        from pyoxigraph import DefaultGraph, NamedNode

        asked: Any = [DefaultGraph() if iri == self._base and not self._is_named else NamedNode(iri) for iri in graphs]
        quick = rewrite(text)
        if quick != text:
            with suppress(SyntaxError):
                return self.store.query(quick, default_graph=asked)
        return self.store.query(text, default_graph=asked)


class _Lines(io.RawIOBase):
    """Batches of lines as a file that a parser reads from."""

    def __init__(self, batches: Iterator[str]) -> None:
        self._batches, self._rest = batches, memoryview(b"")

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer with what comes next; 0 at the end."""
        while not self._rest:
            batch = next(self._batches, None)
            if batch is None:
                return 0
            self._rest = memoryview(batch.encode())
        size = min(len(buffer), len(self._rest))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size
