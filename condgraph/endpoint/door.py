"""All connections of the endpoint: how many there may be, of whom, and a look at each of them a few
times a second.

Connections beyond the bounds are told so and closed at once.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from typing import Final, Protocol

from condgraph.endpoint.clients import Bounds, Proxies, client_of

_log: Final = logging.getLogger("condgraph.endpoint")
#: Seconds between two looks at all connections.
TICK: Final = 0.25
#: Seconds between two lines in the log about the same.
_SAY: Final = 5.0
#: Connections that are refused and not closed yet: so many at once.
_LINGERING: Final = 64


class Guest(Protocol):
    """What is known of a connection here. The door sets `client_key`; `look` is called a few times
    a second.
    """

    client_key: str

    @property
    def transport(self) -> asyncio.Transport:
        """What the connection is made of."""

    @property
    def unread(self) -> int:
        """Bytes of results that wait for their reader."""

    def taken(self) -> float:
        """Bytes a second that the reader took since he was looked at."""

    def look(self, now: float) -> None:
        """End the connection where it is over its time."""


class Door:
    """All connections of a server: how many there are, of whom, and whether one of them is over its
    time.
    """

    def __init__(self, bounds: Bounds, proxies: Proxies) -> None:
        self.bounds, self._proxies = bounds, proxies
        self._open: set[Guest] = set()
        self._lingering: set[Guest] = set()
        self._clients: Counter[str] = Counter()
        self._said: Counter[tuple[str, str]] = Counter()
        self._say_at = self._looked = 0.0
        self._late = False
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._open) + len(self._lingering)

    def enter(self, connection: Guest, host: str) -> tuple[int, str] | None:
        """Let a connection in, or say why not: a status and a message."""
        if self._timer is None:
            self._again(time.monotonic())
        connection.client_key = client = client_of(host)
        trusted = self._proxies.trusts(host)
        if not trusted and self._clients[client] >= self.bounds.per_client:
            self.say("too many connections", client)
            return 429, f"{client} has {self.bounds.per_client} connections open; try again later"
        if len(self._open) >= self.bounds.connections:
            self.say("too many connections of all clients", client)
            return 503, f"{self.bounds.connections} connections are open; try again later"
        self._open.add(connection)
        self._clients[client] += 1
        return None

    def lingers(self, connection: Guest) -> bool:
        """Whether there is room to tell a connection that it is refused."""
        if len(self._lingering) >= _LINGERING:
            return False
        self._lingering.add(connection)
        return True

    def leave(self, connection: Guest) -> None:
        """A connection is closed."""
        self._lingering.discard(connection)
        if connection in self._open:
            self._open.discard(connection)
            self._clients[connection.client_key] -= 1
            if not self._clients[connection.client_key]:
                del self._clients[connection.client_key]

    def say(self, what: str, client: str) -> None:
        """Something for the log, where much of a kind is one line."""
        if len(self._said) < 100 or (what, client) in self._said:
            self._said[what, client] += 1

    def _again(self, now: float) -> None:
        self._looked = now
        self._timer = asyncio.get_running_loop().call_later(TICK, self._look)

    def _look(self) -> None:
        """Look at every connection."""
        self._timer, now = None, time.monotonic()
        self._late = now - self._looked > 2 * TICK and not self._late
        try:
            # Where the loop comes late, what clients have sent may wait to be read: they are looked
            # at the next time.
            if not self._late:
                for connection in [*self._open, *self._lingering]:
                    connection.look(now)
                self._make_room()
            if self._said and now >= self._say_at:
                for (what, client), number in self._said.items():
                    _log.warning("%s: %s%s", client or "-", what, f" ({number} times)" if number > 1 else "")
                self._said.clear()
                self._say_at = now + _SAY
        finally:
            if self._open or self._lingering or self._said:
                self._again(now)

    def _make_room(self) -> None:
        """Where more results wait than may, those go first that are read most slowly."""
        waiting = [one for one in self._open if one.unread]
        total = sum(one.unread for one in waiting)
        if total <= self.bounds.unread_bytes:
            return
        for connection in sorted(waiting, key=lambda one: one.taken()):
            total -= connection.unread
            self.say("results read more slowly than by others, and too many wait", connection.client_key)
            connection.transport.abort()
            if total <= self.bounds.unread_bytes:
                return
