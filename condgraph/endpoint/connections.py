"""Connections of the server, and how long each may keep it waiting.

A client that sends half a request, or reads its results byte by byte, could otherwise hold a file
descriptor and the results forever. So a connection knows what it is waiting for: the head of a
request, its body, the next request, or its reader. `Connections` checks all connections several times
a second and limits their number. uvicorn, which parses the requests, has a timeout only for idle
connections.

The server's own work never counts: while a query is running, or the server is not reading, no timeout
applies.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, Final, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from condgraph.endpoint.exchange import DISCONNECT, REASON
from condgraph.endpoint.guard import RETRY, Bounds, Proxies, client_of
from condgraph.endpoint.protocol import DRAIN

_log: Final = logging.getLogger("condgraph.endpoint")
#: The seconds between two checks of all connections, and between two log lines about the same problem.
_INTERVAL: Final = 0.25
_LOG_INTERVAL: Final = 5.0
#: How many refused connections may still be open, and after how many seconds each is closed.
_MAX_REFUSED: Final = 64
_LINGER: Final = 1.0
#: How many requests of a connection may wait while another one is answered.
PIPELINE: Final = 16
#: The size of a body in bytes at which the connection is closed, whatever the application does, and the
#: bytes allowed for chunk headers and the like in the body.
_DRAIN: Final = 2 * DRAIN
_OVERHEAD: Final = 1 << 20
#: What a connection is waiting for.
_HEAD, _BODY, _NEXT = "the head of a request", "the body of a request", "the next request"
_PHRASES: Final = {
    408: "Request Timeout",
    413: "Content Too Large",
    429: "Too Many Requests",
    431: "Request Header Fields Too Large",
    503: "Service Unavailable",
}
#: The status line of an error up to its code, and the length of that.
_ERROR: Final = re.compile(rb"HTTP/1\.1 [45]\d\d ")
_CODE: Final = len("HTTP/1.1 500 ")
#: The most characters of a reason, and the characters that a status line cannot contain.
_MAX_REASON: Final = 200
_NO_REASON: Final = re.compile(r"[^\x20-\x7e]")
#: Bodies larger than this (in bytes) are not joined with the head.
_JOINED: Final = 64 << 10


class TooLargeError(Exception):
    """A request is too large. This stops the parser."""


class Disconnected:
    """Notifies the code that answers a request when its client disconnects (`exchange.Disconnect`)."""

    def __init__(self, request: Any) -> None:
        self._request = request
        self._callback: Callable[[], None] | None = None

    def notify(self, callback: Callable[[], None] | None) -> bool:
        """Set the function to call when the client disconnects. Returns False if it already has."""
        self._callback = callback
        if callback is not None and not self._request.disconnected:
            # A disconnect is only noticed while the connection is being read.
            self._request.flow.resume_reading()
        return not self._request.disconnected

    def fire(self) -> None:
        """Report that the client has disconnected."""
        callback, self._callback = self._callback, None
        if callback is not None:
            callback()


class Writer:
    """The transport of one response.

    The head and the first part of the body are sent in one write if they follow at once, so that the
    client wakes up only once. `reason` replaces the phrase in the status line of an error.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, transport: asyncio.Transport) -> None:
        self._loop, self._transport = loop, transport
        self._head: bytes | None = None
        self._begun = False
        self._reason = b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def reason(self, text: str) -> None:
        """Set the reason of an error. It is shortened, and characters not allowed in a status line are replaced."""
        self._reason = _NO_REASON.sub("?", text)[:_MAX_REASON].encode()

    def write(self, data: bytes) -> None:
        """Write data. The first write waits until the end of the event loop's current step."""
        if self._reason and _ERROR.match(data):
            rest = data.partition(b"\r\n")[2]
            data, self._reason = b"%s%s\r\n%s" % (data[:_CODE], self._reason, rest), b""
        if not self._begun:
            self._begun, self._head = True, data
            self._loop.call_soon(self._flush)
            return
        if self._head is not None and len(data) <= _JOINED:
            data, self._head = self._head + data, None
        self._flush()
        self._transport.write(data)

    def _flush(self) -> None:
        head, self._head = self._head, None
        if head is not None and not self._transport.is_closing():
            self._transport.write(head)

    def close(self) -> None:
        """Write the remaining data and close."""
        self._flush()
        self._transport.close()


class _CountingTransport:
    """A transport that counts the bytes written to it."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport, self.size = transport, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        self.size += len(data)
        self._transport.write(data)


class WatchedConnection:
    """What connections of every protocol have in common: the client, and how fast it reads."""

    registry: Connections
    transport: Any

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.client_key = ""
        #: When the reader was last checked, and how many bytes it had read by then.
        self._since, self._taken = 0.0, 0

    def connected(self, transport: asyncio.BaseTransport) -> tuple[int, str] | None:
        """Start counting the bytes of a new connection.

        Returns None, or the status and message with which the connection is refused.
        """
        self.counted = _CountingTransport(cast(asyncio.Transport, transport))
        peer = transport.get_extra_info("peername")
        return self.registry.accept(self, str(peer[0]) if isinstance(peer, tuple) else "")

    def check(self, now: float) -> None:
        """Close the connection if its client has timed out."""
        raise NotImplementedError

    @property
    def unread(self) -> int:
        """The bytes of results that the client has not read."""
        return int(self.transport.get_write_buffer_size())

    def rate(self) -> float:
        """Return how many bytes per second the client has read since the last check."""
        return (self.counted.size - self.unread - self._taken) / max(time.monotonic() - self._since, _INTERVAL)

    def _reads_too_slowly(self, now: float) -> bool:
        if not self.unread:
            self._since = 0.0
            return False
        if self._since and now - self._since < self.registry.bounds.write_timeout:
            return False
        slow = bool(self._since) and self.rate() < self.registry.bounds.rate
        self._since, self._taken = now, self.counted.size - self.unread
        return slow


class Connection(WatchedConnection, HttpToolsProtocol):
    """One HTTP connection. The class is subclassed for each server, which sets `registry`."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        #: What the connection is waiting for and since when, and whether it was refused or is being ended.
        self.phase, self.began = _HEAD, 0.0
        self.refused = self.ending = False
        #: The bytes of the head, of the body, and of everything since the body began.
        self._head = self._body = self._raw = 0
        self._requests: list[Any] = []

    # -- from the event loop -----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Accept or refuse a new connection."""
        self.began = time.monotonic()
        problem = self.connected(transport)
        if problem is None:
            super().connection_made(cast(asyncio.Transport, self.counted))
            return
        self.transport = cast(asyncio.Transport, self.counted)
        self.refused = True
        if self.registry.linger(self):
            self.transport.write(_response(*problem))
            self.transport.write_eof()
        else:
            self.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Pass data from the client to the parser, and check its size."""
        if self.refused or self.ending:
            return
        phase, head_size = self.phase, self._head
        super().data_received(data)
        if self.transport.is_closing():
            return
        if phase == _BODY:
            self._raw += len(data)
            if self._raw - self._body > _OVERHEAD + 8 * self._body:
                self._end(413, "more is sent around the body than in it")
        elif phase == _HEAD == self.phase and self._head == head_size:
            # A header that is still incomplete.
            self._raw += len(data)
            if self._raw > self.registry.bounds.head_bytes:
                self._end_long_head()

    def connection_lost(self, error: Exception | None) -> None:
        """Clean up after the connection was closed."""
        self.registry.remove(self)
        if self.refused:
            return
        for request in self._requests:  # not only the newest one
            request.disconnected = True
            request.message_event.set()
            if not request.response_complete:
                request.scope["extensions"][DISCONNECT].fire()
        self._requests.clear()
        super().connection_lost(error)

    # -- from the parser ---------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """Handle the first byte of a request."""
        super().on_message_begin()
        self.phase, self.began, self._head, self._raw = _HEAD, time.monotonic(), 0, 0

    def on_url(self, url: bytes) -> None:
        """Handle the address of a request, or a part of it."""
        self._add_to_head(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Handle a header. Headers after a body (trailers) are ignored."""
        self._add_to_head(len(name) + len(value) + 4)
        if self.phase == _HEAD:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Handle the end of the headers."""
        self._requests = [request for request in self._requests if not request.response_complete]
        super().on_headers_complete()
        cycle: Any = self.cycle
        cycle.transport = writer = Writer(self.loop, self.transport)
        cycle.scope["extensions"] = {DISCONNECT: Disconnected(cycle), REASON: writer.reason}
        self._requests.append(cycle)
        self.phase, self.began, self._body, self._raw = _BODY, time.monotonic(), 0, 0
        if len(self.pipeline) > PIPELINE:
            self.registry.log(f"more than {PIPELINE} requests sent ahead", self.client_key)
            self.ending = True
            self.transport.abort()
            raise TooLargeError

    def on_body(self, body: bytes) -> None:
        """Handle a part of a body."""
        self._body += len(body)
        if self._body > _DRAIN:
            self._end(413, f"a body of more than {_DRAIN:,} bytes")
            raise TooLargeError
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Handle the end of a request."""
        super().on_message_complete()
        self.phase, self.began = _NEXT, time.monotonic()

    def on_response_complete(self) -> None:
        """Handle the end of a response."""
        if self.phase != _BODY:
            self.began = time.monotonic()
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse data that is not HTTP. This is also called when the parser was stopped."""
        if not self.ending:
            self.ending = True
            self.registry.log("what came was no HTTP", self.client_key)
            super().send_400_response(msg)

    def _add_to_head(self, size: int) -> None:
        self._head += size
        if self._head > self.registry.bounds.head_bytes:
            self._end_long_head()
            raise TooLargeError

    # -- timeouts ----------------------------------------------------------------------------------

    def _end_long_head(self) -> None:
        self._end(431, f"a head of more than {self.registry.bounds.head_bytes:,} bytes")

    def _end(self, status: int, message: str) -> None:
        """Send the reason, unless a response is already being sent, and close the connection."""
        self.registry.log(message, self.client_key)
        self.ending = True
        if not any(request.response_started and not request.response_complete for request in self._requests):
            self.transport.write(_response(status, message))
        self.transport.close()

    def check(self, now: float) -> None:
        """Close the connection if its client has timed out."""
        if self.refused:
            if now - self.began > _LINGER:
                self.transport.abort()
            return
        if self._reads_too_slowly(now):
            self.registry.log("results read too slowly", self.client_key)
            self.transport.abort()
            return
        if self.transport.is_closing():
            return
        busy = any(not request.response_complete for request in self._requests)
        if self.flow.read_paused or (busy and self.phase != _BODY):
            self.began = now
            return
        bounds = self.registry.bounds
        timeout = {_HEAD: bounds.head_timeout, _BODY: bounds.body_timeout, _NEXT: bounds.idle_timeout}[self.phase]
        if now - self.began <= timeout:
            return
        if self.phase == _NEXT or not (self._head or self._raw):
            self.transport.close()  # no request was begun
        else:
            self._end(408, f"{self.phase} took more than {timeout:g} s")


class Connections:
    """All connections of a server, with limits on their number and checks for timeouts."""

    def __init__(self, bounds: Bounds, proxies: Proxies) -> None:
        self.bounds, self._proxies = bounds, proxies
        self._open: set[WatchedConnection] = set()
        self._refused: set[WatchedConnection] = set()
        self._clients: Counter[str] = Counter()
        self._problems: Counter[tuple[str, str]] = Counter()
        self._log_at = self._checked = 0.0
        self._late = False
        self._timer: asyncio.TimerHandle | None = None

    def accept(self, connection: WatchedConnection, host: str) -> tuple[int, str] | None:
        """Add a connection, or return the status and message with which it is refused."""
        if self._timer is None:
            self._schedule(time.monotonic())
        connection.client_key = client = client_of(host)
        if not self._proxies.trusts(host) and self._clients[client] >= self.bounds.per_client:
            self.log("too many connections", client)
            return 429, f"{client} has {self.bounds.per_client} connections open; try again later"
        if len(self._open) >= self.bounds.connections:
            self.log("too many connections of all clients", client)
            return 503, f"{self.bounds.connections} connections are open; try again later"
        self._open.add(connection)
        self._clients[client] += 1
        return None

    def linger(self, connection: WatchedConnection) -> bool:
        """Return whether a refused connection may stay open until its client has read the reason."""
        if len(self._refused) >= _MAX_REFUSED:
            return False
        self._refused.add(connection)
        return True

    def remove(self, connection: WatchedConnection) -> None:
        """Remove a closed connection."""
        self._refused.discard(connection)
        if connection in self._open:
            self._open.discard(connection)
            self._clients[connection.client_key] -= 1
            if not self._clients[connection.client_key]:
                del self._clients[connection.client_key]

    def log(self, problem: str, client: str) -> None:
        """Record a problem. The log gets one line for many problems of the same kind."""
        if len(self._problems) < 100 or (problem, client) in self._problems:
            self._problems[problem, client] += 1

    def _schedule(self, now: float) -> None:
        self._checked = now
        self._timer = asyncio.get_running_loop().call_later(_INTERVAL, self._check)

    def _check(self) -> None:
        """Check every connection."""
        self._timer, now = None, time.monotonic()
        self._late = now - self._checked > 2 * _INTERVAL and not self._late
        try:
            # If the event loop is late, data from clients may not have been read yet, so wait for the
            # next check.
            if not self._late:
                for connection in [*self._open, *self._refused]:
                    connection.check(now)
                self._make_room()
            if self._problems and now >= self._log_at:
                for (problem, client), number in self._problems.items():
                    _log.warning("%s: %s%s", client or "-", problem, f" ({number} times)" if number > 1 else "")
                self._problems.clear()
                self._log_at = now + _LOG_INTERVAL
        finally:
            if self._open or self._refused or self._problems:
                self._schedule(now)

    def _make_room(self) -> None:
        """Close the slowest readers while there are more unread results than allowed."""
        waiting = [connection for connection in self._open if connection.unread]
        total = sum(connection.unread for connection in waiting)
        if total <= self.bounds.unread_bytes:
            return
        for connection in sorted(waiting, key=WatchedConnection.rate):
            total -= connection.unread
            self.log("results read more slowly than by others, and too many wait", connection.client_key)
            connection.transport.abort()
            if total <= self.bounds.unread_bytes:
                return


def _response(status: int, message: str) -> bytes:
    body = message.encode() + b"\n"
    retry = b"Retry-After: " + RETRY + b"\r\n" if status in (429, 503) else b""
    head = f"HTTP/1.1 {status} {_PHRASES[status]}\r\nContent-Type: text/plain; charset=utf-8\r\n"
    return head.encode() + retry + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body
