"""What stands between a connection and the socket: how much was written, when it is written, and
whether the client is still there.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any, Final

#: The status line of an error, as far as its code, and how long that is.
_ERROR: Final = re.compile(rb"HTTP/1\.1 [45]\d\d ")
_CODE: Final = len("HTTP/1.1 500 ")
#: Characters of a reason, and those that it cannot have.
_LONGEST: Final = 200
_UNSAID: Final = re.compile(r"[^\x20-\x7e]")
#: Bytes of a body beyond which it is not copied behind the head.
_JOINED: Final = 64 << 10


class Counted:
    """A transport that counts what is written to it."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport, self.size = transport, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Write, or keep until it can be written."""
        self.size += len(data)
        self._transport.write(data)


class Joining:
    """A transport for one response: its head and the first part of its body are one write, where they
    come at once. A client is woken once then, and finds both. `reason` takes the place of the phrase in
    the status line of an error.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, transport: asyncio.Transport) -> None:
        self._loop, self._transport = loop, transport
        self._head: bytes | None = None
        self._begun = False
        self.reason = b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def say(self, reason: str) -> None:
        """Set the reason of an error: its first characters, without what a status line cannot have."""
        self.reason = _UNSAID.sub("?", reason)[:_LONGEST].encode()

    def write(self, data: bytes) -> None:
        """Write; what is written first waits until the running step of the loop is over."""
        if self.reason and _ERROR.match(data):
            rest = data.partition(b"\r\n")[2]
            data, self.reason = b"%s%s\r\n%s" % (data[:_CODE], self.reason, rest), b""
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
        """Close behind what was written."""
        self._flush()
        self._transport.close()


class Leaving:
    """Says to who answers a request that its client is gone."""

    def __init__(self, request: Any) -> None:
        self._request = request
        self._what: Callable[[], None] | None = None

    def call(self, what: Callable[[], None] | None) -> bool:
        """Call this when the client goes away; False where it is gone already."""
        self._what = what
        if what is not None and not self._request.disconnected:
            # Where nothing is read, nobody hears that a client is gone.
            self._request.flow.resume_reading()
        return not self._request.disconnected

    def tell(self) -> None:
        """The client is gone."""
        what, self._what = self._what, None
        if what is not None:
            what()
