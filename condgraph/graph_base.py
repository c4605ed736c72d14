"""What the parts of `Graph` share: where a graph is, and which generation of it is open.

`graph_loading`, `graph_asking` and `graph_looking` have what it does, and `graph` has it as one
class.
"""

from __future__ import annotations

import os
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from condgraph.engine.addresses import shown
from condgraph.engine.errors import OptionError, StoreMissingError, nearest
from condgraph.engine.facts import Source
from condgraph.engine.snapshot.directory import graph_directory, graph_names
from condgraph.engine.snapshot.snapshot import Snapshot

if TYPE_CHECKING:
    from condgraph.engine.workers import Once
    from condgraph.sparql.embedded import EmbeddedStore


class GraphBase:
    """The state of a graph."""

    #: The timeout of calls that are given none; servers have it as an option.
    timeout: float | None = None

    def __init__(self, place: str | os.PathLike[str] = "memory:", *, graph: str = "default", read_only: bool = False) -> None:
        self.place, self.name, self.read_only = os.fspath(place), graph, read_only
        self._lock, self._rdf_lock = Lock(), Lock()
        self._closed = False
        self._snapshot: Snapshot | None = None
        self._rdf: tuple[Snapshot, Once[EmbeddedStore]] | None = None
        self._directory: Path | None = None
        if self.place != "memory:":
            if "://" in self.place:
                raise OptionError(f"{shown(self.place)!r} is no directory", hint="condgraph.open takes addresses of servers")
            self._directory = graph_directory(Path(self.place), graph)
            self._snapshot = Snapshot.open(self._directory)

    @property
    def current(self) -> Snapshot:
        """The open generation; raises `StoreMissingError` where nothing was loaded yet."""
        found = self._snapshot
        if found is None:
            if self._closed:
                raise StoreMissingError("the graph was closed", hint="open it again")
            if self._directory is None:
                raise StoreMissingError("the graph is empty", hint="load something first")
            others = graph_names(Path(self.place))
            hint = f"the graphs here are {', '.join(others)}" if others else "load something first"
            raise StoreMissingError(
                f"there is no graph {self.name!r} in {self.place}", candidates=nearest(self.name, others), hint=hint
            )
        return found

    def _sources(self, wait: float = 0.0) -> tuple[Source, ...]:
        """The sources that the graph has; none where nothing was loaded yet."""
        snapshot = self._snapshot
        return () if snapshot is None else tuple(map(snapshot.source_of, range(len(snapshot.schema.sources))))
