"""A server made to plan what is likely to be asked of a graph before anybody asks (`cypher.shapes`).

It is asked to explain each text: it plans it then, and runs nothing, however large the graph is.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from threading import Event, Thread
from typing import TYPE_CHECKING, Final, TypeAlias

from condgraph.engine.errors import CondgraphError

if TYPE_CHECKING:
    from condgraph.cypher.connection import Connection
    from condgraph.cypher.shapes import Shapes

#: Texts that a server plans ahead, of the thousand that it keeps the plans of.
TEXTS: Final = 600
#: Fewer statements are loaded more quickly than their shapes are planned.
WORTH: Final = 10_000
#: After a load its server plans ahead for this part of the time that the load took, and no longer
#: than so many seconds.
_PART, _LONGEST = 0.2, 20.0

#: The shapes of queries over a graph, read when they are needed.
ShapesOf: TypeAlias = "Callable[[], Shapes]"


def warm(
    connection: Connection, shapes: ShapesOf, *, texts: int = TEXTS, seconds: float | None = None, stop: Event | None = None
) -> int:
    """Have the server plan so many texts at most, the commonest first, for so many seconds at most;
    how many it planned. Raises what asking raises.
    """
    until = None if seconds is None else time.monotonic() + seconds
    done = 0
    for one in shapes().texts(texts):
        if (stop is not None and stop.is_set()) or (until is not None and time.monotonic() > until):
            break
        connection.read(f"EXPLAIN {one.text}", one.parameters)
        done += 1
    return done


def warm_after(connection: Connection, shapes: ShapesOf, statements: int, took: float) -> None:
    """The same after a load, which goes well whatever becomes of this."""
    if statements >= WORTH:
        with suppress(CondgraphError):
            warm(connection, shapes, seconds=min(_LONGEST, took * _PART))


class Warming:
    """The same in the background, until `end`."""

    def __init__(self, connection: Connection, shapes: ShapesOf) -> None:
        self._connection, self._shapes, self._stop = connection, shapes, Event()
        self._thread = Thread(target=self._run, name="condgraph-neo4j-warming", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        # Who asks is told what is wrong with a server; nobody asks here.
        with suppress(CondgraphError):
            warm(self._connection, self._shapes, stop=self._stop)

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until it is done; whether it is."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def end(self) -> None:
        """Let it end with the text that it is at."""
        self._stop.set()
