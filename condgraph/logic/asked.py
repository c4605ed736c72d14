"""What logical queries need of a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot
    from condgraph.engine.store import Store


class Asked(Protocol):
    """A graph, in process or on a server."""

    name: str
    timeout: float | None

    @property
    def current(self) -> Snapshot:
        """The open generation."""

    def snapshot(self) -> Asked:
        """The graph as it is now, in process."""

    def _store_of(self, engine: str | None) -> Store: ...
