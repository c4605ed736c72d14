"""What graphs on servers have in common: they are built in process, written to the store, and read
back as a whole.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import IO, Protocol

from condgraph.engine.bounds import waiting
from condgraph.engine.facts import Source
from condgraph.engine.snapshot.build import Builder
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.store import Store
from condgraph.graph import Graph, filled, laid_out
from condgraph.overview.survey import Survey
from condgraph.reports import Status


class ServerStore(Store, Protocol):
    """One graph in a database: it is asked there, and looked after from here."""

    place: str

    @property
    def timeout(self) -> float | None:
        """Seconds that a call has which is given none."""
        ...

    def close(self) -> None:
        """Let go of the connection."""

    def refresh(self) -> None:
        """Forget what is known of the schema."""

    def exists(self) -> bool:
        """Whether the graph is there."""
        ...

    def counts(self) -> dict[str, int]:
        """What the graph holds."""
        ...

    def sources(self) -> tuple[Source, ...]:
        """The sources of the graph."""
        ...

    def survey(self) -> Survey:
        """What the graph holds, counted when it was loaded."""
        ...

    def snapshot(self) -> Snapshot:
        """The whole graph."""
        ...

    def abandon(self) -> bool:
        """Take back a load that was not finished; whether there was one."""
        ...

    def delete(self) -> bool:
        """Remove the graph, and nothing else; whether there was one."""
        ...


class RemoteGraph(Graph):
    """A graph behind the API of local ones. `store` is where it is and what answers there; a class
    for each kind of store says how it is written.
    """

    store: ServerStore

    def __init__(self, store: ServerStore, *, graph: str, read_only: bool) -> None:
        super().__init__("memory:", graph=graph, read_only=read_only)
        self.store = store
        self.place, self.timeout = store.place, store.timeout

    def close(self) -> None:
        """Let go of the connection."""
        self.store.close()

    def refresh(self) -> None:
        """Forget what is known of the schema, which another process may have changed."""
        self.store.refresh()

    def _sources(self, wait: float = 0.0) -> tuple[Source, ...]:
        with waiting(wait):
            return self.store.sources() if self.store.exists() else ()

    def _build(self, read: Callable[[Builder], None], wait: float) -> tuple[dict[str, int], dict[str, int], int, list[str]]:
        with self._lock:
            builder = Builder()
            filled(builder, read)
            before, after = self._write(laid_out(builder), wait)
            return before, after, builder.statements, builder.warnings

    def _write(self, snapshot: Snapshot, wait: float) -> tuple[dict[str, int], dict[str, int]]:
        """Write a snapshot beside what the graph holds; what it held, and holds now, as the load
        itself knows it: others may load before and after. `wait` is how long for another writer, in
        seconds.
        """
        raise NotImplementedError

    def abandon(self) -> bool:
        """Take back a load that was not finished: the graph holds what it held before. Whether
        there was one.
        """
        with self._lock:
            return self.store.abandon()

    def delete(self) -> bool:
        """Remove the graph from the store, and nothing else; whether there was one."""
        with self._lock:
            return self.store.delete()

    def _status(self, verify: bool) -> Status:
        return Status(self.place, self.name, "server", self.store.counts(), self.store.sources(), 0, verify)

    def _survey(self) -> Survey:
        return self.store.survey()

    def snapshot(self) -> Graph:
        """The whole graph as a local one in memory, equal to what was loaded."""
        return Graph.of(self.store.snapshot(), self.name)

    def export(self, path: str | os.PathLike[str] | IO[str], *, to: str = "jsonl") -> int:
        """Write everything the graph holds to a file, as `Graph.export`; it is pulled for that."""
        return self.snapshot().export(path, to=to)
