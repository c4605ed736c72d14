"""Connections of the endpoint, each of which may keep the server waiting for so long and no longer.

Somebody who sends half a request, or reads an answer a byte at a time, costs a descriptor and the
answer's memory for as long as he likes, unless somebody looks at the clock. Here a connection knows
what it waits for (the head of a request, its body, the next request, its reader); `Door` looks at
all of them a few times a second, and lets no more in than there may be.

The server's own work is never counted as the client's: while a query runs, or the server does not
read, the clock stands still.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, Final, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from condgraph.endpoint.clients import RETRY
from condgraph.endpoint.door import TICK, Door
from condgraph.endpoint.exchange import LEAVING, REASON
from condgraph.endpoint.protocol import DRAIN
from condgraph.endpoint.transports import Counted, Joining, Leaving

#: Requests of a connection that may wait behind the one that is answered.
PIPELINE: Final = 16
#: A connection that is refused is told so, and closed when that was read, or after so many seconds.
_LINGER: Final = 1.0
#: Bytes of a body beyond which the connection is closed, whatever the application makes of it; and
#: of what is not body within it.
_DRAIN: Final = 2 * DRAIN
_OVERHEAD: Final = 1 << 20
#: What a connection waits for.
_HEAD, _BODY, _NEXT = "the head of a request", "the body of a request", "the next request"
_PHRASES: Final = {
    408: "Request Timeout",
    413: "Content Too Large",
    429: "Too Many Requests",
    431: "Request Header Fields Too Large",
    503: "Service Unavailable",
}


class TooMuchError(Exception):
    """A request is larger than it may be; the parser stops at it."""


class Connection(HttpToolsProtocol):
    """One connection. `door` is set by a subclass for each server."""

    door: Door

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.client_key = ""
        #: What is waited for, and since when; whether the connection was refused, or ends.
        self.phase, self.began = _HEAD, 0.0
        self.refused = self.ending = False
        #: Bytes of the head, of the body, and of everything since the body began.
        self._head = self._body = self._raw = 0
        self._requests: list[Any] = []
        #: When the reader was looked at last, and what he had taken.
        self._since, self._taken = 0.0, 0

    # -- what the event loop says ------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client is there."""
        self.counted = Counted(cast(asyncio.Transport, transport))
        self.began = time.monotonic()
        peer = transport.get_extra_info("peername")
        problem = self.door.enter(self, str(peer[0]) if isinstance(peer, tuple) else "")
        if problem is None:
            super().connection_made(cast(asyncio.Transport, self.counted))
            return
        self.transport = cast(asyncio.Transport, self.counted)
        self.refused = True
        if self.door.lingers(self):
            self.transport.write(_response(*problem))
            self.transport.write_eof()
        else:
            self.transport.abort()

    def data_received(self, data: bytes) -> None:
        """A client sends."""
        if self.refused or self.ending:
            return
        phase, begun = self.phase, self._head
        super().data_received(data)
        if self.transport.is_closing():
            return
        if phase == _BODY:
            self._raw += len(data)
            if self._raw - self._body > _OVERHEAD + 8 * self._body:
                self._end(413, "more is said around the body than in it")
        elif phase == _HEAD == self.phase and self._head == begun:
            # A header that has no end yet.
            self._raw += len(data)
            if self._raw > self.door.bounds.head_bytes:
                self._too_long()

    def connection_lost(self, error: Exception | None) -> None:
        """The connection is closed."""
        self.door.leave(self)
        if self.refused:
            return
        for request in self._requests:  # also those that are not the newest
            request.disconnected = True
            request.message_event.set()
            if not request.response_complete:
                request.scope["extensions"][LEAVING].tell()
        self._requests.clear()
        super().connection_lost(error)

    # -- what the parser says ----------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """The first byte of a request."""
        super().on_message_begin()
        self.phase, self.began, self._head, self._raw = _HEAD, time.monotonic(), 0, 0

    def on_url(self, url: bytes) -> None:
        """The address of a request, or a part of it."""
        self._measure(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header; one behind the body says nothing here."""
        self._measure(len(name) + len(value) + 4)
        if self.phase == _HEAD:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """The head of a request."""
        self._requests = [one for one in self._requests if not one.response_complete]
        super().on_headers_complete()
        cycle: Any = self.cycle
        cycle.transport = joining = Joining(self.loop, self.transport)
        cycle.scope["extensions"] = {LEAVING: Leaving(cycle), REASON: joining.say}
        self._requests.append(cycle)
        self.phase, self.began, self._body, self._raw = _BODY, time.monotonic(), 0, 0
        if len(self.pipeline) > PIPELINE:
            self.door.say(f"more than {PIPELINE} requests sent ahead", self.client_key)
            self.ending = True
            self.transport.abort()
            raise TooMuchError

    def on_body(self, body: bytes) -> None:
        """A part of a body."""
        self._body += len(body)
        if self._body > _DRAIN:
            self._end(413, f"a body of more than {_DRAIN:,} bytes")
            raise TooMuchError
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The end of a request."""
        super().on_message_complete()
        self.phase, self.began = _NEXT, time.monotonic()

    def on_response_complete(self) -> None:
        """The answer to a request is written."""
        if self.phase != _BODY:
            self.began = time.monotonic()
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """The parser found no HTTP, or stopped."""
        if not self.ending:
            self.ending = True
            self.door.say("what came was no HTTP", self.client_key)
            super().send_400_response(msg)

    def _measure(self, size: int) -> None:
        self._head += size
        if self._head > self.door.bounds.head_bytes:
            self._too_long()
            raise TooMuchError

    # -- the end of patience -----------------------------------------------------------------------

    def _too_long(self) -> None:
        self._end(431, f"a head of more than {self.door.bounds.head_bytes:,} bytes")

    def _end(self, status: int, message: str) -> None:
        """Say why, where nothing else was said, and close."""
        self.door.say(message, self.client_key)
        self.ending = True
        if not any(one.response_started and not one.response_complete for one in self._requests):
            self.transport.write(_response(status, message))
        self.transport.close()

    def look(self, now: float) -> None:
        """End the connection where its client has had his time."""
        if self.refused:
            if now - self.began > _LINGER:
                self.transport.abort()
            return
        if self._reads_too_slowly(now):
            self.door.say("results read too slowly", self.client_key)
            self.transport.abort()
            return
        if self.transport.is_closing():
            return
        busy = any(not one.response_complete for one in self._requests)
        if self.flow.read_paused or (busy and self.phase != _BODY):
            self.began = now
            return
        bounds = self.door.bounds
        allowed = {_HEAD: bounds.head_timeout, _BODY: bounds.body_timeout, _NEXT: bounds.idle_timeout}[self.phase]
        if now - self.began <= allowed:
            return
        if self.phase == _NEXT or not (self._head or self._raw):
            self.transport.close()  # nobody asked anything
        else:
            self._end(408, f"{self.phase} took more than {allowed:g} s")

    @property
    def unread(self) -> int:
        """Bytes of results that wait here for being read."""
        return int(self.transport.get_write_buffer_size())

    def taken(self) -> float:
        """Bytes a second that the reader took since he was looked at."""
        return (self.counted.size - self.unread - self._taken) / max(time.monotonic() - self._since, TICK)

    def _reads_too_slowly(self, now: float) -> bool:
        if not self.unread:
            self._since = 0.0
            return False
        if self._since and now - self._since < self.door.bounds.write_timeout:
            return False
        slow = bool(self._since) and self.taken() < self.door.bounds.rate
        self._since, self._taken = now, self.counted.size - self.unread
        return slow


def _response(status: int, message: str) -> bytes:
    body = message.encode() + b"\n"
    retry = b"Retry-After: " + RETRY + b"\r\n" if status in (429, 503) else b""
    head = f"HTTP/1.1 {status} {_PHRASES[status]}\r\nContent-Type: text/plain; charset=utf-8\r\n"
    return head.encode() + retry + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body
