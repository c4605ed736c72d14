"""The RDF face of a local graph: Oxigraph, built from the snapshot on first use and kept beside the generation it was built from.

A graph in a directory keeps its store in the directory of its generation, so that both go together; it is written under another
name and renamed when it is complete, and opened for reading. A graph in memory, or one in a directory that cannot be written, has
its store in memory.
"""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from condgraph.sparql.layout import LAYOUT, base_iri
from condgraph.sparql.write import quads

if TYPE_CHECKING:
    from pyoxigraph import Store

    from condgraph.engine.snapshot.snapshot import Snapshot

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

    def __init__(self, snapshot: Snapshot, graph: str = "default", directory: Path | None = None, *, base: str | None = None) -> None:
        self.base = base or base_iri(graph)
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

    def select(self, text: str, *, variables: int = 0) -> list[tuple[str | None, ...]]:
        """The rows of a SELECT: the lexical form of each term, None where a variable has none."""
        found: Any = self.store.query(text, default_graph=self.graph_node)
        names = [variable.value for variable in found.variables]
        return [tuple(None if (term := row[name]) is None else term.value for name in names) for row in found]

    def ask(self, text: str) -> bool:
        """The answer of an ASK."""
        return bool(self.store.query(text, default_graph=self.graph_node))

    @property
    def graph_node(self) -> Any:
        """The named graph that holds everything."""
        from pyoxigraph import NamedNode

        return NamedNode(self.base)


def fill(store: Store, snapshot: Snapshot, base: str, graph: str) -> None:
    """Load a snapshot into an empty store, a batch at a time."""
    from pyoxigraph import RdfFormat

    store.bulk_load(io.BufferedReader(_Lines(quads(snapshot, base, graph=graph)), 1 << 20), RdfFormat.N_QUADS)


_CACHE_LOCK = Lock()
