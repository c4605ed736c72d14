"""A server made to plan what is likely to be asked of a graph before anybody asks (`cypher.shapes`).

It is asked to explain each text: it plans it then, and runs nothing, however large the graph is.
"""

from __future__ import annotations

import time
from contextlib import suppress
from threading import Event, Thread
from typing import TYPE_CHECKING, Final

from condgraph.cypher.shapes import Shapes
from condgraph.engine.errors import CondgraphError

if TYPE_CHECKING:
    from condgraph.cypher.asking import AskingStore

#: Texts that a server plans ahead, of the thousand that it keeps the plans of.
TEXTS: Final = 500
#: Fewer statements are loaded more quickly than their shapes are planned.
WORTH: Final = 10_000
#: After a load its server plans ahead for this part of the time that the load took, and no longer
#: than so many seconds.
_PART, _LONGEST = 0.2, 20.0


def warm(store: AskingStore, *, texts: int = TEXTS, seconds: float | None = None, stop: Event | None = None) -> int:
    """Have the server plan so many texts at most, the commonest first, for so many seconds at most;
    how many it planned. Raises what asking raises.
    """
    until = None if seconds is None else time.monotonic() + seconds
    done = 0
    for one in Shapes(store.name, store.schema, store.layout).texts(texts):
        if (stop is not None and stop.is_set()) or (until is not None and time.monotonic() > until):
            break
        store.connection.read(f"EXPLAIN {one.text}", one.parameters)
        done += 1
    return done


def warm_after(store: AskingStore, statements: int, took: float) -> None:
    """The same after a load, which goes well whatever becomes of this."""
    if statements >= WORTH:
        with suppress(CondgraphError):
            warm(store, seconds=min(_LONGEST, took * _PART))


class Warming:
    """The same in the background, until `end`."""

    def __init__(self, store: AskingStore) -> None:
        self._store, self._stop = store, Event()
        self._thread = Thread(target=self._run, name="condgraph-neo4j-warming", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        # Who asks is told what is wrong with a server; nobody asks here.
        with suppress(CondgraphError):
            warm(self._store, stop=self._stop)

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until it is done; whether it is."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def end(self) -> None:
        """Let it end with the text that it is at."""
        self._stop.set()
