"""A worker process as its owner sees it: started, sent to, received from, killed; and waiting for it in a thread or an event
loop.
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

# -- the process that workers are forked from --------------------------------------------------------
# This process has imported what workers need, and has the store open: a worker is ready within a millisecond, while opening the
# store takes at least ten times as long. Files that are loaded into memory are loaded once, and workers share that memory. A
# program that has threads never forks itself. The process also collects the exit codes of workers, so that no process id is
# reused before its worker is given up (`reap`) or its exit code read (`exit_code`).


_SCRIPT: Final = Path(__file__).with_name("process.py")
#: A request: F forks a worker for the socket sent with it, W asks for a worker's exit code; the answer to
#: each is a number. B hands over a killed worker, and has no answer. Requests are so short that each is
#: sent whole, whatever other threads send.
_REQUEST: Final = struct.Struct(">ci")
_ANSWER: Final = struct.Struct(">i")


def oxigraph_command(memory: int) -> list[str]:
    """Return the command that starts `process`, whose workers may have `memory` bytes of data each (0: unlimited).

    It runs isolated and without site packages: neither the environment nor a .pth file changes it.
    """
    spec = find_spec("pyoxigraph")
    if spec is None or spec.origin is None or not sys.executable:
        raise StoreError("a worker process cannot be started", hint="there is no Python executable, or no pyoxigraph")
    return [sys.executable, "-I", "-S", str(_SCRIPT), str(Path(spec.origin).parent.parent), str(memory)]


class ForkServer:
    """Forks worker processes over one source. It ends when it is closed, and when this process ends.

    `source` is what the process opens, as a frame; `command` starts it.
    """

    def __init__(self, source: bytes, command: Sequence[str]) -> None:
        #: Workers that are not given up; counted under the lock of the scheduler.
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
        """Start a worker at the other end of a socket and return its process id; raises `OSError` if the server is gone."""
        with self._lock:
            socket.send_fds(self._sock, [_REQUEST.pack(b"F", 0)], [sock.fileno()])
            return self._answer()

    def exit_code(self, pid: int) -> int | None:
        """Return the exit code of a worker that is ending, as `Popen.returncode` does; None if unknown. Call it once."""
        with self._lock:
            try:
                self._sock.sendall(_REQUEST.pack(b"W", pid))
                return self._answer()
            except OSError:
                return None

    def reap(self, pid: int) -> None:
        """Have the server wait for a killed worker, which may take some time."""
        with suppress(OSError):  # the server is gone, and its children are not ours
            self._sock.sendall(_REQUEST.pack(b"B", pid))

    def _answer(self) -> int:
        data = self._sock.recv(_ANSWER.size, socket.MSG_WAITALL)
        if len(data) < _ANSWER.size:
            raise ConnectionError("the process that starts workers ended")
        number: int = _ANSWER.unpack(data)[0]
        return number

    def close(self) -> None:
        """End the server, after the workers that were given up."""
        self._sock.close()
        self._process.wait()

    def detach(self) -> None:
        """Close the sockets of a worker that belongs to the parent of this process."""
        self._sock.close()
        self._process.returncode = 0


# -- sockets in event loops --------------------------------------------------------------------------
# A worker's socket stays registered with an event loop between queries: adding and removing it takes a
# dozen system calls, more than all others of a short query.


#: Bytes that are read at once: as many as a worker sends. For much more, the system would have to map
#: memory every time.
CHUNK: Final = 1 << 16


def read(sock: socket.socket) -> bytes | None:
    """Return the bytes that have arrived; empty at the end of the stream, None if nothing has arrived."""
    try:
        return sock.recv(CHUNK)
    except BlockingIOError:
        return None
    except OSError:
        return b""


class Watch:
    """A socket in one event loop.

    While somebody waits, data is read as soon as it arrives; data that arrives while nobody waits is left for the next reader
    (another thread, another loop), and the socket is unregistered.

    It has a descriptor of its own, since a descriptor that is closed elsewhere may be reused. All methods but `end` and
    `detach` run in the loop's thread.
    """

    __slots__ = ("_arrival", "_sock", "_watching", "data", "loop")

    def __init__(self, sock: socket.socket, loop: asyncio.AbstractEventLoop) -> None:
        self._sock, self.loop = sock.dup(), loop
        self._watching = False
        self._arrival: asyncio.Future[bool] | None = None
        #: Data that was read but not taken yet.
        self.data: bytes | None = None

    async def wait(self, seconds: float | None) -> bool:
        """Wait until data was read, or the other side closed; return False after `seconds`."""
        self._arrival = arrival = self.loop.create_future()
        timer = None if seconds is None else self.loop.call_later(seconds, self._late)
        try:
            if not self._watching:
                self.loop.add_reader(self._sock, self._ready)
                self._watching = True
            arrived: bool = await arrival
            return arrived
        finally:
            self._arrival = None
            if timer is not None:
                timer.cancel()

    def _late(self) -> None:
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(False)

    def _ready(self) -> None:
        arrival = self._arrival
        if arrival is None or arrival.done():
            self._stop()
        elif (data := read(self._sock)) is not None:
            self.data = data
            arrival.set_result(True)

    def _stop(self) -> None:
        if self._watching:
            self._watching = False
            with contextlib.suppress(OSError, ValueError):
                self.loop.remove_reader(self._sock)

    def _close(self) -> None:
        self._stop()
        self._sock.close()

    def end(self) -> None:
        """Stop watching; from any thread."""
        try:
            self.loop.call_soon_threadsafe(self._close)
        except RuntimeError:  # the loop is closed
            self._sock.close()

    def detach(self) -> None:
        """Close the descriptor in a forked process: the loop belongs to the parent."""
        with contextlib.suppress(OSError):
            os.close(self._sock.detach())


# -- workers -----------------------------------------------------------------------------------------


_LENGTH: Final = struct.Struct(">I")
_HEAD: Final = struct.Struct(">cI")
#: Seconds between two checks of an event that may cancel.
_POLL: Final = 0.02
#: Seconds of processor time that a long query may be behind or ahead of its share: a query that waited for
#: something else does not catch up on all of it, and one that had the machine for itself is not held back
#: for that once the machine is busy.
_MAX_LAG: Final = 0.2
#: The nice value of a long query if its priority cannot be raised again: a tenth of the usual share.
_NICE: Final = 10


@cache
def can_raise_priority() -> bool:
    """Tell whether this process may lower the priority of a process to the lowest one and raise it again.

    Linux requires the capability SYS_NICE, which no process has in Docker and only root elsewhere, or a limit
    (RLIMIT_NICE) that allows the usual priority.
    """
    if not hasattr(os, "SCHED_IDLE"):
        return False
    try:
        capabilities = re.search(r"^CapEff:\s*(\w+)$", Path("/proc/self/status").read_text("ascii", "replace"), re.MULTILINE)
    except OSError:
        return False
    return bool(capabilities and int(capabilities[1], 16) >> 23 & 1) or resource.getrlimit(resource.RLIMIT_NICE)[0] not in range(20)


def frame(request: bytes) -> bytes:
    """Return a request as it is sent."""
    return _LENGTH.pack(len(request)) + request


class Worker:
    """A process, its socket, and data that has arrived but was not read yet."""

    __slots__ = ("_buffer", "_hang_up", "_raised", "_reaped", "_unsent", "_usage", "_watch", "forks", "long", "pid", "poll", "sock")

    def __init__(self, forks: ForkServer) -> None:
        ours, theirs = socket.socketpair()
        try:
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
        self._hang_up = select.poll()
        self._hang_up.register(ours, 0)
        self._buffer, self._unsent = b"", b""
        self._watch: Watch | None = None
        self._reaped = False
        #: The server it was forked from, and whether its query is long and has given up its place.
        self.forks, self.long = forks, False
        #: For a process of the lowest priority: when it was last checked, the processor time it had used
        #: by then and its lag behind its share; and whether it has its usual priority for the moment.
        self._usage, self._raised = (0.0, 0.0, 0.0), False

    def alive(self) -> bool:
        """Tell whether the process runs. Call it from one thread at a time."""
        return not self._hang_up.poll(0)

    def send(self, data: bytes = b"") -> bool:
        """Send data, after what could not be sent before;

        return False while the socket is full. `receive` notices a dead process.
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
        """Return the frames that have arrived; raises `EOFError` when the process is gone and all is read."""
        watch, received = self._watch, None
        if watch is not None:
            received, watch.data = watch.data, None
        if received is None:
            received = read(self.sock)
        if received is None:
            return []
        if not received:
            raise EOFError
        data = self._buffer + received if self._buffer else received
        frames, start = [], 0
        while len(data) - start >= 5:
            kind, size = _HEAD.unpack_from(data, start)
            if len(data) - start - 5 < size:
                break
            frames.append((kind, data[start + 5 : start + 5 + size]))
            start += 5 + size
        self._buffer = data[start:]
        return frames

    def cpu_time(self) -> float:
        """Return the seconds of processor time that the process has used."""
        # The clock of another process (clock_getcpuclockid), if the system has it.
        try:
            return time.clock_gettime((~self.pid << 3) | 2)
        except OSError:
            return time.monotonic()

    def lower_priority(self) -> None:
        """Let the process run only when no other one wants the processor; see `keep_share`."""
        self._usage, self._raised = (time.monotonic(), self.cpu_time(), 0.0), False
        self._set_lowest()

    def _set_lowest(self) -> None:
        with contextlib.suppress(OSError):
            if can_raise_priority():
                os.sched_setscheduler(self.pid, os.SCHED_IDLE, os.sched_param(0))
            else:
                os.setpriority(os.PRIO_PROCESS, self.pid, _NICE)

    def keep_share(self, share: float) -> None:
        """Ensure a share of a processor for a process of the lowest priority: while it is behind, it gets the usual priority.

        Call it often. If the system would not raise the priority again, it was not lowered as far (`can_raise_priority`).
        """
        if self._reaped or not can_raise_priority():
            return  # the id of a process that ended may have been reused
        now, worked = time.monotonic(), self.cpu_time()
        last, worked_before, lag = self._usage
        lag = min(max(lag + share * (now - last) - (worked - worked_before), -_MAX_LAG), _MAX_LAG)
        self._usage = now, worked, lag
        if (lag > 0) is self._raised:
            return
        if self._raised:
            self._raised = False
            self._set_lowest()
        else:
            self._raised = self.restore_priority()

    def restore_priority(self) -> bool:
        """Restore the usual priority; return False if the system forbids it (`can_raise_priority`)."""
        if not can_raise_priority():
            return False
        try:
            os.sched_setscheduler(self.pid, os.SCHED_OTHER, os.sched_param(0))
        except OSError:
            return False
        return True

    def exit_code(self) -> int | None:
        """Return the exit code of a process that closed its socket; None when called again."""
        if self._reaped:
            return None
        self._reaped = True
        self.restore_priority()  # so that it ends soon
        return self.forks.exit_code(self.pid)

    def kill(self) -> None:
        """Kill the process; a thread that waits for its data notices the end."""
        # Its id is not reused before it is given up.
        if not self._reaped:
            self._reaped = True
            # At the lowest priority it would end late, and the server would wait for it.
            self.restore_priority()
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            self.forks.reap(self.pid)

    def discard(self) -> None:
        self.kill()
        self.close()

    def watch(self, loop: asyncio.AbstractEventLoop) -> Watch:
        """Return the socket's watch in the running event loop; it leaves any other loop."""
        if self._watch is None or self._watch.loop is not loop:
            if self._watch is not None:
                self._watch.end()
            self._watch = Watch(self.sock, loop)
        return self._watch

    def close(self) -> None:
        if self._watch is not None:
            self._watch.end()
        self.sock.close()

    def detach(self) -> None:
        """Close the sockets of a worker that belongs to the parent of this process."""
        if self._watch is not None:
            self._watch.detach()
        self.sock.close()


@dataclass(slots=True)
class Wait:
    """A step that a conversation waits for: a worker that has data (or can take more), or getting a worker.

    `until` is a time of the monotonic clock. The result is whether it happened before that.
    """

    on: Worker | Future[Worker]
    until: float | None
    writing: bool = False

    def block(self, cancelled: Event | None) -> bool:
        """Wait in this thread; raises `CancelledError` soon after the event is set."""
        if self.writing and isinstance(self.on, Worker):
            poll = select.poll()
            poll.register(self.on.sock, select.POLLOUT)
        elif isinstance(self.on, Worker):
            poll = self.on.poll
        while True:
            if cancelled is not None and cancelled.is_set():
                raise CancelledError("the query was cancelled")
            remaining = None if self.until is None else max(0.0, self.until - time.monotonic())
            step = remaining if cancelled is None else _POLL if remaining is None else min(remaining, _POLL)
            if isinstance(self.on, Future):
                try:
                    self.on.exception(step)
                    return True
                except TimeoutError:
                    pass
            elif poll.poll(None if step is None else step * 1000 + 0.999):
                return True
            if remaining is not None and remaining <= (step or 0.0):
                return False

    async def wait(self) -> bool:
        """Wait in the running event loop."""
        loop = asyncio.get_running_loop()
        seconds = None if self.until is None else max(0.0, self.until - time.monotonic())
        if isinstance(self.on, Worker) and not self.writing:
            return await self.on.watch(loop).wait(seconds)
        done: asyncio.Future[bool] = loop.create_future()

        def settle(value: bool) -> None:
            if not done.done():
                done.set_result(value)

        timer = None if seconds is None else loop.call_later(seconds, settle, False)
        try:
            if isinstance(self.on, Future):

                def assigned(_: Future[Worker]) -> None:
                    # The loop may be gone by the time a worker is free.
                    with contextlib.suppress(RuntimeError):
                        loop.call_soon_threadsafe(settle, True)

                self.on.add_done_callback(assigned)
                return await done
            loop.add_writer(self.on.sock, settle, True)
            try:
                return await done
            finally:
                loop.remove_writer(self.on.sock)
        finally:
            if timer is not None:
                timer.cancel()
