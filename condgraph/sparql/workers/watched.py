"""A worker's socket as event loops see it: it stays registered between queries, since to add and to
remove it is a dozen system calls, more than all others of a short query.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from typing import Final

#: Bytes that are read at once: as many as a worker sends. Much more is memory that the system has
#: to give anew every time.
PART: Final = 1 << 16


def read(sock: socket.socket) -> bytes | None:
    """What has come; empty at the end, None where nothing has."""
    try:
        return sock.recv(PART)
    except BlockingIOError:
        return None
    except OSError:
        return b""


class Watch:
    """A socket in one event loop. What comes is read as soon as it is there while somebody waits; what
    comes while nobody does is left to who asks next (another thread, another loop), and ends the
    watching.

    It has a descriptor of its own, so that one that is closed elsewhere is never another's here. All of
    it runs in the loop's thread but `end` and `forget`.
    """

    __slots__ = ("_come", "_on", "_sock", "data", "loop")

    def __init__(self, sock: socket.socket, loop: asyncio.AbstractEventLoop) -> None:
        self._sock, self.loop = sock.dup(), loop
        self._on = False
        self._come: asyncio.Future[bool] | None = None
        #: What was read, until somebody takes it.
        self.data: bytes | None = None

    async def wait(self, seconds: float | None) -> bool:
        """Wait until something was read, or the other side is gone; False when the time is over."""
        self._come = come = self.loop.create_future()
        timer = None if seconds is None else self.loop.call_later(seconds, self._late)
        try:
            if not self._on:
                self.loop.add_reader(self._sock, self._ready)
                self._on = True
            found: bool = await come
            return found
        finally:
            self._come = None
            if timer is not None:
                timer.cancel()

    def _late(self) -> None:
        if self._come is not None and not self._come.done():
            self._come.set_result(False)

    def _ready(self) -> None:
        come = self._come
        if come is None or come.done():
            self._off()
        elif (data := read(self._sock)) is not None:
            self.data = data
            come.set_result(True)

    def _off(self) -> None:
        if self._on:
            self._on = False
            with contextlib.suppress(OSError, ValueError):
                self.loop.remove_reader(self._sock)

    def _close(self) -> None:
        self._off()
        self._sock.close()

    def end(self) -> None:
        """Watch no more; from any thread."""
        try:
            self.loop.call_soon_threadsafe(self._close)
        except RuntimeError:  # the loop is closed
            self._sock.close()

    def forget(self) -> None:
        """Let go of it in a process that was forked: the loop is the other one's."""
        with contextlib.suppress(OSError):
            os.close(self._sock.detach())
