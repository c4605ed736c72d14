"""One worker process as its owner sees it: started, sent to, received from, killed; and waiting for
it, in a thread or in an event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from threading import Event, Lock
from typing import Final

from condgraph.engine.errors import CancelledError, StoreError

# -- processes ---------------------------------------------------------------------------------------
# The process that worker processes are forked from: it has imported what they need, and has the
# store open.
#
# A worker is ready in a millisecond so, where opening the store takes ten times as long and more;
# files that are loaded into memory are loaded once, and workers share that memory. A program that has
# threads never forks itself. The process also hears how workers ended; nobody else gets their numbers
# before they were given up (`bury`) or asked for (`ended`).


_SCRIPT: Final = Path(__file__).with_name("process.py")
#: A request: F to fork a worker for the socket that comes with it, W to hear how one ended, each
#: answered by a number; B for one that was killed, about which nobody asks. Requests are so short
#: that each is sent as one, whatever other threads send.
_REQUEST: Final = struct.Struct(">ci")
_ANSWER: Final = struct.Struct(">i")


def oxigraph_command(memory: int) -> list[str]:
    """Starts `process`, whose workers may have so many bytes of data each, 0 for any number.

    Isolated and without site packages: neither the environment nor a .pth file of the user has a
    say.
    """
    found = find_spec("pyoxigraph")
    if found is None or found.origin is None or not sys.executable:
        raise StoreError("a worker process cannot be started", hint="there is no Python executable, or no pyoxigraph")
    return [sys.executable, "-I", "-S", str(_SCRIPT), str(Path(found.origin).parent.parent), str(memory)]


class ForkServer:
    """Starts worker processes over one source. It ends when it is closed, and when this process
    ends.

    `source` is what the process opens, as a frame; `command` starts it.
    """

    def __init__(self, source: bytes, command: Sequence[str]) -> None:
        #: Workers that nobody has given up; counted under the lock of the places.
        self.workers = 0
        self._sock, theirs = socket.socketpair()
        self._lock = Lock()
        try:
            self._process = subprocess.Popen(
                command,
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            self._sock.sendall(source)
        except BaseException:
            self._sock.close()
            raise
        finally:
            theirs.close()

    def fork(self, sock: socket.socket) -> int:
        """Start a worker at the other end of a socket; returns its process. Raises `OSError` where
        the server is gone.
        """
        with self._lock:
            socket.send_fds(self._sock, [_REQUEST.pack(b"F", 0)], [sock.fileno()])
            return self._answer()

    def ended(self, pid: int) -> int | None:
        """How a worker that ends now ended, as `Popen.returncode`; None where nobody knows. It is
        asked for once.
        """
        with self._lock:
            try:
                self._sock.sendall(_REQUEST.pack(b"W", pid))
                return self._answer()
            except OSError:
                return None

    def bury(self, pid: int) -> None:
        """Let the server wait for the end of a worker that was killed, which may take some time:
        this does not wait.
        """
        with suppress(OSError):  # the server is gone, and its children are not ours
            self._sock.sendall(_REQUEST.pack(b"B", pid))

    def _answer(self) -> int:
        data = self._sock.recv(_ANSWER.size, socket.MSG_WAITALL)
        if len(data) < _ANSWER.size:
            raise ConnectionError("the process that starts workers ended")
        number: int = _ANSWER.unpack(data)[0]
        return number

    def close(self) -> None:
        """End the process, behind the workers that were given up."""
        self._sock.close()
        self._process.wait()

    def forget(self) -> None:
        """Let go of a process that belongs to another one (this process was forked)."""
        self._sock.close()
        self._process.returncode = 0


# -- sockets -----------------------------------------------------------------------------------------
# A worker's socket as event loops see it: it stays registered between queries, since to add and to
# remove it is a dozen system calls, more than all others of a short query.


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


# -- workers -----------------------------------------------------------------------------------------
# One worker process as its owner sees it: start, send, receive, kill; and waiting for it, in a
# thread or in an event loop.


_LENGTH: Final = struct.Struct(">I")
_HEAD: Final = struct.Struct(">cI")
#: Seconds between two looks at an event that may cancel.
_LOOK: Final = 0.02
#: Seconds of a processor that a long query may be behind its share, or ahead of it: who waited for
#: something else does not make up for all of it, and who had a machine for itself does not pay for
#: that once the machine is busy.
_BEHIND: Final = 0.2
#: The priority of a long query where it cannot be raised again: a tenth of the usual share.
_NICE: Final = 10


@cache
def may_raise() -> bool:
    """Whether this process may lower the priority of another of its own to the lowest and raise it
    again: Linux asks for the capability SYS_NICE, which Docker gives nobody and only root has
    elsewhere, or for a limit (RLIMIT_NICE) that allows the usual priority.
    """
    if not hasattr(os, "SCHED_IDLE"):
        return False
    try:
        capabilities = re.search(r"^CapEff:\s*(\w+)$", Path("/proc/self/status").read_text("ascii", "replace"), re.MULTILINE)
    except OSError:
        return False
    return bool(capabilities and int(capabilities[1], 16) >> 23 & 1) or resource.getrlimit(resource.RLIMIT_NICE)[0] not in range(20)


def frame(request: bytes) -> bytes:
    """A request as it is sent."""
    return _LENGTH.pack(len(request)) + request


class Worker:
    """A process, the socket to it, and what came over the socket and is not read yet."""

    __slots__ = ("_buffer", "_gone", "_lifted", "_reaped", "_seen", "_unsent", "_watch", "forks", "long", "pid", "poll", "sock")

    def __init__(self, forks: ForkServer) -> None:
        ours, theirs = socket.socketpair()
        try:
            #: The process.
            self.pid = forks.fork(theirs)
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        ours.setblocking(False)
        self.sock = ours
        self.poll = select.poll()
        self.poll.register(ours, select.POLLIN)
        self._gone = select.poll()
        self._gone.register(ours, 0)
        self._buffer, self._unsent = b"", b""
        self._watch: Watch | None = None
        self._reaped = False
        #: The process that it was forked from, and whether it runs beside the places.
        self.forks, self.long = forks, False
        #: Of a process of the lowest priority: when it was last looked at, what it had worked by then
        #: and how far it was behind its share; and whether it is back at the usual one for a moment.
        self._seen, self._lifted = (0.0, 0.0, 0.0), False

    def alive(self) -> bool:
        """Whether the process runs. Asked by one thread at a time."""
        return not self._gone.poll(0)

    def send(self, data: bytes = b"") -> bool:
        """Send, and what could not be sent before; False while the socket is full. A dead process
        is found out by `receive`.
        """
        data = self._unsent + data
        try:
            while data:
                data = data[self.sock.send(data) :]
        except BlockingIOError:
            pass
        except OSError:
            data = b""
        self._unsent = data
        return not data

    def receive(self) -> list[tuple[bytes, bytes]]:
        """The frames that are there; raises `EOFError` when the process is gone, and there is
        nothing more.
        """
        watch, more = self._watch, None
        if watch is not None:
            more, watch.data = watch.data, None
        if more is None:
            more = read(self.sock)
        if more is None:
            return []
        if not more:
            raise EOFError
        data = self._buffer + more if self._buffer else more
        frames, at = [], 0
        while len(data) - at >= 5:
            kind, size = _HEAD.unpack_from(data, at)
            if len(data) - at - 5 < size:
                break
            frames.append((kind, data[at + 5 : at + 5 + size]))
            at += 5 + size
        self._buffer = data[at:]
        return frames

    def busy(self) -> float:
        """Seconds that processors have worked for the process so far."""
        # The clock of another process (clock_getcpuclockid), where the system has it.
        try:
            return time.clock_gettime((~self.pid << 3) | 2)
        except OSError:
            return time.monotonic()

    def lower(self) -> None:
        """Run only when nobody else wants the processor, from now on; see `keep_going`."""
        self._seen, self._lifted = (time.monotonic(), self.busy(), 0.0), False
        self._lowest()

    def _lowest(self) -> None:
        with contextlib.suppress(OSError):
            if may_raise():
                os.sched_setscheduler(self.pid, os.SCHED_IDLE, os.sched_param(0))
            else:
                os.setpriority(os.PRIO_PROCESS, self.pid, _NICE)

    def keep_going(self, share: float) -> None:
        """See that a process of the lowest priority gets this share of a processor, whatever else runs
        on the machine: it runs like everybody else while it is behind. Asked every moment.

        Where the system would not give it its priority back, it was not lowered so far (`may_raise`).
        """
        if self._reaped or not may_raise():
            return  # a number that was given back may be another's by now
        now, worked = time.monotonic(), self.busy()
        last, had, behind = self._seen
        behind = min(max(behind + share * (now - last) - (worked - had), -_BEHIND), _BEHIND)
        self._seen = now, worked, behind
        if (behind > 0) is self._lifted:
            return
        if self._lifted:
            self._lifted = False
            self._lowest()
        else:
            self._lifted = self.restore()

    def restore(self) -> bool:
        """Run like everybody else again; False where the system does not allow it (`may_raise`)."""
        if not may_raise():
            return False
        try:
            os.sched_setscheduler(self.pid, os.SCHED_OTHER, os.sched_param(0))
        except OSError:
            return False
        return True

    def ended(self) -> int | None:
        """The exit code of a process whose socket is closed at its side, the first time that it is
        asked for.
        """
        if self._reaped:
            return None
        self._reaped = True
        self.restore()  # so that it comes to its end soon
        return self.forks.ended(self.pid)

    def kill(self) -> None:
        """Kill the process; a thread that waits for what it says hears that it is gone."""
        # Its number is its own until it is given up.
        if not self._reaped:
            self._reaped = True
            # At the lowest priority it would come to its end late, and hold what the process it was
            # forked from waits for.
            self.restore()
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            self.forks.bury(self.pid)

    def bury(self) -> None:
        """The same for one that nobody uses any more."""
        self.kill()
        self.close()

    def watch(self, loop: asyncio.AbstractEventLoop) -> Watch:
        """The socket in the event loop that runs, and in no other one any more."""
        if self._watch is None or self._watch.loop is not loop:
            if self._watch is not None:
                self._watch.end()
            self._watch = Watch(self.sock, loop)
        return self._watch

    def close(self) -> None:
        """Close the socket."""
        if self._watch is not None:
            self._watch.end()
        self.sock.close()

    def forget(self) -> None:
        """Let go of a process that belongs to another one (this process was forked)."""
        if self._watch is not None:
            self._watch.forget()
        self.sock.close()


@dataclass(slots=True)
class Wait:
    """What a conversation waits for: a worker that has something to say (or can be told more), or
    to be given one.

    `until` is a time of the monotonic clock. The answer to it is whether what was waited for has
    come.
    """

    on: Worker | Future[Worker]
    until: float | None
    writing: bool = False

    def block(self, cancelled: Event | None) -> bool:
        """Wait in this thread; raises `CancelledError` as soon as the event is set."""
        if self.writing and isinstance(self.on, Worker):
            poll = select.poll()
            poll.register(self.on.sock, select.POLLOUT)
        elif isinstance(self.on, Worker):
            poll = self.on.poll
        while True:
            if cancelled is not None and cancelled.is_set():
                raise CancelledError("the query was cancelled")
            left = None if self.until is None else max(0.0, self.until - time.monotonic())
            slice_ = left if cancelled is None else _LOOK if left is None else min(left, _LOOK)
            if isinstance(self.on, Future):
                try:
                    self.on.exception(slice_)
                    return True
                except TimeoutError:
                    pass
            elif poll.poll(None if slice_ is None else slice_ * 1000 + 0.999):
                return True
            if left is not None and left <= (slice_ or 0.0):
                return False

    async def wait(self) -> bool:
        """Wait in the running event loop."""
        loop = asyncio.get_running_loop()
        seconds = None if self.until is None else max(0.0, self.until - time.monotonic())
        if isinstance(self.on, Worker) and not self.writing:
            return await self.on.watch(loop).wait(seconds)
        come: asyncio.Future[bool] = loop.create_future()

        def set_(value: bool) -> None:
            if not come.done():
                come.set_result(value)

        timer = None if seconds is None else loop.call_later(seconds, set_, False)
        try:
            if isinstance(self.on, Future):

                def given(_: Future[Worker]) -> None:
                    # The loop may be gone by the time that a worker is given.
                    with contextlib.suppress(RuntimeError):
                        loop.call_soon_threadsafe(set_, True)

                self.on.add_done_callback(given)
                return await come
            loop.add_writer(self.on.sock, set_, True)
            try:
                return await come
            finally:
                loop.remove_writer(self.on.sock)
        finally:
            if timer is not None:
                timer.cancel()
