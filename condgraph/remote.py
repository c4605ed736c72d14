"""What graphs on servers have in common: they are built in process, written to the store, and read back as a whole."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import IO, Protocol

from condgraph.engine.snapshot.build import Builder
from condgraph.engine.snapshot.layout import lay_out
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.graph import Graph, filled


class Store(Protocol):
    """One graph in a database."""

    place: str

    def close(self) -> None:
        """Let go of the connection."""

    def refresh(self) -> None:
        """Forget what is known of the schema."""

    def exists(self) -> bool:
        """Whether the graph is there."""

    def counts(self) -> dict[str, int]:
        """What the graph holds."""

    def snapshot(self) -> Snapshot:
        """The whole graph."""


class RemoteGraph(Graph):
    """A graph behind the API of local ones. `_store` is where it is; the target's own class says how it is asked."""

    def __init__(self, store: Store, *, graph: str, read_only: bool) -> None:
        super().__init__("memory:", graph=graph, read_only=read_only)
        self._store = store
        self.place = store.place

    def close(self) -> None:
        """Let go of the connection."""
        self._store.close()

    def refresh(self) -> None:
        """Forget what is known of the schema, which another process may have changed."""
        self._store.refresh()

    def _build(self, read: Callable[[Builder], None], wait: float) -> tuple[dict[str, int], dict[str, int], int, list[str]]:
        with self._lock:
            before = self._store.counts() if self._store.exists() else {}
            builder = Builder()
            filled(builder, read)
            self._write(Snapshot.of(*lay_out(builder)), wait)
            return before, self._store.counts(), builder.statements, builder.warnings

    def _write(self, snapshot: Snapshot, wait: float) -> None:
        """Write a snapshot beside what the graph holds; `wait` is how long for another writer, in seconds."""
        raise NotImplementedError

    def snapshot(self) -> Graph:
        """The whole graph as a local one in memory, equal to what was loaded."""
        return Graph.of(self._store.snapshot(), self.name)

    def export(self, path: str | os.PathLike[str] | IO[str], *, to: str = "jsonl") -> int:
        """Write everything the graph holds to a file, as `Graph.export`; it is pulled for that."""
        return self.snapshot().export(path, to=to)
