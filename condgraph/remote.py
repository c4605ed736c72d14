"""What graphs on servers have in common: they are built in process, written to the store, and read
back as a whole.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import IO, Final, Protocol

from condgraph.changing import nothing_of
from condgraph.engine.bounds import waiting
from condgraph.engine.changes import Change, OvertakenError
from condgraph.engine.errors import StoreBusyError
from condgraph.engine.facts import Source
from condgraph.engine.snapshot.build import Builder
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.store import Store
from condgraph.graph import Graph
from condgraph.graph_loading import filled, laid_out
from condgraph.overview.survey import Survey
from condgraph.reports import Status

#: Statements of a graph on a server that is pulled where a table may refer to its rows.
MOST_LOOKED_AT: Final = 100_000
#: Seconds after which it is looked again whether a load is finished.
_AGAIN: Final = 0.25


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

    def left(self) -> Snapshot | None:
        """What a load that was ended half way left in the graph; None where that is nothing."""
        ...

    def under_way(self) -> tuple[list[str], bool] | None:
        """The sources of a load that is not finished, and whether its writer is gone; None where
        there is none.
        """
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
        #: Of the load that is at work: until when it waits for others, and the sources that it saw.
        self._until = 0.0
        self._seen: frozenset[tuple[str, str]] | None = None
        #: What it pulled of the graph to look at, once it has.
        self._pulled: tuple[Snapshot | None] | None = None

    def close(self) -> None:
        """Let go of the connection."""
        self.store.close()

    def refresh(self) -> None:
        """Forget what is known of the schema, which another process may have changed."""
        self.store.refresh()

    def _sources(self, wait: float = 0.0) -> tuple[Source, ...]:
        with waiting(wait):
            return self.store.sources() if self.store.exists() else ()

    def _known(self, changes: bool) -> Snapshot | None:
        # Pulled once: all tables of a load are read for the same graph.
        if self._pulled is None:
            self._pulled = (self._look(changes),)
        return self._pulled[0]

    def _look(self, changes: bool) -> Snapshot | None:
        while True:
            self._wait_for_others()
            try:
                return self._looked_at(changes)
            except StoreBusyError:
                # Another load began just now.
                if time.monotonic() >= self._until:
                    raise
                time.sleep(_AGAIN)

    def _looked_at(self, changes: bool) -> Snapshot | None:
        begun = self.store.under_way()
        if begun is not None:
            # Its writer is gone: this load goes on where that stopped, or is refused.
            return self.store.left() if begun[1] else self.store.snapshot()
        seen = frozenset((one.name, one.content) for one in self._sources(0.0))
        # A large graph is not pulled to look at its keys: `join=` needs nothing of it. A change
        # pulls it anyway, and rows keep the ids that others refer to.
        there = self.store.exists()
        size = sum(self.store.counts().get(one, 0) for one in ("relations", "attributes")) if there else 0
        if size > MOST_LOOKED_AT and not changes:
            return None
        self._seen = seen
        return self.store.snapshot() if there else None

    def _wait_for_others(self) -> None:
        """Wait until nobody who is there writes the graph, at most as long as this load may."""
        while (found := self.store.under_way()) is not None and not found[1] and time.monotonic() < self._until:
            time.sleep(_AGAIN)

    def _build(
        self,
        read: Callable[[Builder], None] | None,
        wait: float,
        change: Callable[[tuple[Source, ...]], Change] | None = None,
    ) -> tuple[dict[str, int], dict[str, int], int, list[str]]:
        with self._lock:
            self._until = time.monotonic() + wait
            while True:
                try:
                    return self._built(read, max(self._until - time.monotonic(), 0.0), change)
                except OvertakenError:
                    # What rows refer to may be another thing now: they are read again.
                    if time.monotonic() >= self._until:
                        raise

    def _built(
        self, read: Callable[[Builder], None] | None, wait: float, change: Callable[[tuple[Source, ...]], Change] | None
    ) -> tuple[dict[str, int], dict[str, int], int, list[str]]:
        """One try of `_build`."""
        changed = Change() if change is None else change(self._sources(wait))
        builder = Builder()
        self._seen = None
        try:
            if read is not None:
                filled(builder, read)
        finally:
            self._pulled = None
        snapshot = laid_out(builder)
        before, after = self._write(snapshot, wait, replace(changed, seen=self._seen))
        names = {source.name for source in builder.sources}
        empty = nothing_of([name for name in changed.without if name not in names]) if read is not None else []
        return before, after, builder.statements, [*changed.warnings, *empty, *builder.warnings]

    def _change(
        self,
        change: Callable[[tuple[Source, ...]], Change],
        read: Callable[[Builder], None] | None,
        wait: float,
        names: Sequence[str],
    ) -> tuple[dict[str, int], dict[str, int], int, list[str]]:
        """What is there is changed once it is there as a whole: a load of the same sources that was
        ended is taken back, that of others is waited for.
        """
        until = time.monotonic() + wait
        with waiting(wait):
            while (found := self.store.under_way()) is not None:
                begun, gone = found
                if gone and all(one in names or one.startswith(tuple(f"{name}/" for name in names)) for one in begun):
                    self.abandon()
                elif time.monotonic() >= until:
                    self.store.counts()
                    break
                else:
                    time.sleep(_AGAIN)
        return self._build(read, wait, change)

    def _write(self, snapshot: Snapshot, wait: float, change: Change) -> tuple[dict[str, int], dict[str, int]]:
        """Write a snapshot beside what the graph holds, but for what `change` takes away; what it
        held, and holds now, as the load itself knows it: others may load before and after. `wait`
        is how long for another writer, in seconds.
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

    def export(self, path: str | os.PathLike[str] | IO[str], *, to: str = "jsonl", base: str | None = None) -> int:
        """Write everything the graph holds to a file, as `Graph.export`; it is pulled for that."""
        return self.snapshot().export(path, to=to, base=base)
