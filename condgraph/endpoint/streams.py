"""Results that are sent while their query runs: each keeps a process for as long as its reader
reads.

There is room for so many. Where there are more, those give way that are read most slowly, so that a
few who read slowly never keep everybody else from asking; who reads as fast as results come is
never among them, however long his query takes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Final

#: Seconds that a reader is waited for before he can be called slow, and bytes a second from which
#: on he is not.
_PATIENCE: Final = 1.0
_FAST: Final = 1 << 20
#: Seconds between two looks while there are too many.
_LOOK: Final = 0.25


class Stream:
    """Results on their way to a reader: how long he was waited for."""

    def __init__(self, deadline: asyncio.Timeout) -> None:
        self._deadline = deadline
        self._sent, self._waited, self._since = 0, 0.0, 0.0
        #: Whether it was told to end, for others.
        self.gives_way = False

    async def send(self, size: int, sending: Awaitable[None]) -> None:
        """Send something of so many bytes, as soon as the reader takes it."""
        clock = asyncio.get_running_loop().time
        self._since = clock()
        try:
            await sending
        finally:
            self._waited += clock() - self._since
            self._since = 0.0
            self._sent += size

    def rate(self, now: float) -> float | None:
        """Bytes a second that the reader took while he was waited for; None while that cannot be
        told, or he is fast.
        """
        waited = self._waited + (now - self._since if self._since else 0.0)
        if waited < _PATIENCE or self._sent > waited * _FAST:
            return None
        return self._sent / waited

    def end(self, now: float) -> None:
        """Give way."""
        self.gives_way = True
        if not self._deadline.expired():
            self._deadline.reschedule(now)


class Streams:
    """The results that are on their way; `most` is for how many there is room."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._running: set[Stream] = set()
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._running)

    def enter(self, deadline: asyncio.Timeout) -> Stream:
        """Results that begin to be sent."""
        stream = Stream(deadline)
        self._running.add(stream)
        if self._timer is None:
            self._look()
        return stream

    def leave(self, stream: Stream) -> None:
        """They are sent."""
        self._running.discard(stream)

    def _look(self) -> None:
        """End those that are read most slowly, while there are too many."""
        self._timer = None
        loop = asyncio.get_running_loop()
        now, staying = loop.time(), [one for one in self._running if not one.gives_way]
        if len(staying) > self._most:
            slow = sorted((rate, id(one), one) for one in staying if (rate := one.rate(now)) is not None)
            for _, _, one in slow[: len(staying) - self._most]:
                one.end(now)
            self._timer = loop.call_later(_LOOK, self._look)
