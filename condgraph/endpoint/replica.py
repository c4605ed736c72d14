"""SPARQL over a graph that stands in Neo4j: an RDF replica of it in process, made anew when the graph
changes.

The whole graph is pulled and laid out as any graph in process is, so that queries, results and
bounds are those of the endpoint. The old replica answers until the new one is ready, and every
answer says in its headers which state it is of.
"""

from __future__ import annotations

import ctypes
import gc
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from threading import Event
from typing import TYPE_CHECKING, Final, Protocol

from condgraph.engine.errors import CondgraphError, UnsupportedError

if TYPE_CHECKING:
    from condgraph.graph import Graph
    from condgraph.reports import Status
    from condgraph.sparql.embedded import EmbeddedStore

#: Statements of a graph that is replicated where nothing else is said: about five million triples.
MOST: Final = 1_000_000
#: Seconds between two looks at the graph.
LOOK: Final = 0.5


def let_go() -> None:
    """Collect graphs and stores that nobody uses any more: they refer to themselves, and have files open
    and much memory, which goes back to the system where the C library can give it back (glibc).
    """
    gc.collect()
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)


class Pulled(Protocol):
    """A graph on a server that can be read as a whole."""

    @property
    def content(self) -> str:
        """A name for what the graph holds: it changes when that does."""
        ...

    def status(self, *, verify: bool = False, timeout: float | None = None) -> Status:
        """What the graph holds, by counts."""
        ...

    def snapshot(self) -> Graph:
        """The whole graph in process."""
        ...


class Replica:
    """The RDF of a graph on a server. `base` is what its IRIs begin with; a graph of more than `most`
    statements is refused; with `refresh` it is also read anew when it is so many seconds old, for
    databases whose counts do not tell every change.
    """

    def __init__(self, graph: Pulled, *, base: str | None = None, most: int = MOST, refresh: float | None = None) -> None:
        self._graph, self._base, self._most, self._refresh = graph, base, most, refresh
        self._newer = False
        self._read()

    def _read(self) -> None:
        """Pull the graph; raises `UnsupportedError` for one that is too large."""
        content = self._graph.content
        found = self._graph.status().statements
        if found > self._most:
            raise UnsupportedError(
                "SPARQL over Neo4j",
                [f"a graph of {found:,} statements"],
                hint=f"{self._most:,} are read into process at most; --replica-size N allows more, where the memory does",
            )
        begin = datetime.now(UTC)
        self._local = self._graph.snapshot()
        #: Kept until the one after this is there: its queries may still run.
        self._before: EmbeddedStore | None = getattr(self, "embedded", None)
        self.embedded: EmbeddedStore = self._local.rdf(self._base)
        self._content, self._at, self._since = content, begin, time.monotonic()

    @property
    def headers(self) -> Mapping[str, str]:
        """Of which state of the graph answers are: its mark, and when it was read; whether there is a
        newer one, which is being read.
        """
        found = {"X-Condgraph-Content": self._content, "X-Condgraph-Read": self._at.isoformat(timespec="milliseconds")}
        return found | ({"X-Condgraph-Newer": "being read"} if self._newer else {})

    def stale(self) -> bool:
        """Whether the graph is another one than was read, or what was read is too old."""
        old = self._refresh is not None and time.monotonic() - self._since > self._refresh
        return old or self._graph.content != self._content

    def follow(self, use: Callable[[Replica, bool], None], complain: Callable[[str], None], stop: Event) -> None:
        """Read the graph anew whenever it changes, until `stop` is set. `use` is called whenever its
        headers are others, with whether the store is, too; what goes wrong is complained of, once, and the old
        replica goes on.
        """
        said = ""
        while not stop.wait(LOOK):
            try:
                if self.stale():
                    self._newer = True
                    use(self, False)
                    self._read()
                    self._newer, said = False, ""
                    use(self, True)
                    let_go()
            except (CondgraphError, OSError) as error:
                if str(error) != said:
                    said = str(error)
                    complain(
                        f"warning: the graph was changed, or cannot be reached, and is not served anew: {said}; the old one goes on"
                    )
