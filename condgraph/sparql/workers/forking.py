"""The common part of all worker processes: they are forked from a process that has everything open, end with their parent,
and have limited memory and no network.

This file imports the standard library only, since `process`, a script outside its package, loads it.
"""

from __future__ import annotations

import gc
import os
import resource
import select
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

_LENGTH = struct.Struct(">I")
#: Requests are read in parts of this many bytes: freeing larger ones makes the allocator return memory to
#: the system with every query.
_READ_SIZE = 1 << 14


class Work(Protocol):
    """The work of a kind of worker."""

    def open(self, source: Any) -> None:
        """Open what workers need, before they are forked; the first frame names it."""

    def serve(self) -> None:
        """Answer requests on descriptor 0 until the other side closes."""


def _leave_with_parent() -> None:
    """End as soon as the other side of the socket is closed, even in the middle of a query."""
    poll = select.poll()
    poll.register(0, 0)
    poll.poll()
    os._exit(0)


#: By machine: the architecture in the kernel's numbering, and the number of the system call `socket`.
_SOCKET_CALLS = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}


def without_network() -> None:
    """Forbid this process to open sockets (seccomp, on Linux), so that a hidden SERVICE reaches no other server."""
    import ctypes
    import platform

    machine = _SOCKET_CALLS.get(platform.machine())
    if sys.platform != "linux" or machine is None:
        return
    architecture, number = machine
    refuse, allow = 0x00050000 | 13, 0x7FFF0000  # EACCES
    program = b"".join(
        struct.pack("HBBI", *step)
        for step in (
            (0x20, 0, 0, 4),  # the architecture
            (0x15, 0, 3, architecture),  # another one: allow
            (0x20, 0, 0, 0),  # the number of the call
            (0x15, 0, 1, number),  # not `socket`: allow
            (0x06, 0, 0, refuse),
            (0x06, 0, 0, allow),
        )
    )
    buffer = ctypes.create_string_buffer(program)
    filters = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    none = ctypes.c_ulong(0)
    if libc.prctl(38, ctypes.c_ulong(1), none, none, none) == 0:  # no new privileges
        libc.prctl(22, ctypes.c_ulong(2), filters, none, none)


def requests() -> Iterator[Any]:
    """Yield the requests on descriptor 0, each JSON after its length, until the other side closes."""
    import json

    buffer = b""
    while True:
        while len(buffer) < 4 or len(buffer) < 4 + _LENGTH.unpack_from(buffer)[0]:
            received = os.read(0, _READ_SIZE)
            if not received:
                return
            buffer += received
        end = 4 + _LENGTH.unpack_from(buffer)[0]
        request, buffer = json.loads(buffer[4:end]), buffer[end:]
        yield request


def work(worker: Work) -> None:
    """Serve requests on descriptor 0; never return."""
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")  # if the machine runs out of memory, kill this process first
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    with suppress(OSError):  # the other side closed in the middle of an answer
        worker.serve()
    os._exit(0)


def _is_only_thread() -> bool:
    """Tell whether all other threads of this process sleep."""
    with suppress(OSError):
        for task in os.listdir("/proc/self/task"):
            if int(task) != os.getpid():
                stat = Path(f"/proc/self/task/{task}/stat").read_bytes()
                if stat[stat.rindex(b")") + 2 : stat.rindex(b")") + 3] != b"S":
                    return False
    return True


def fork() -> int:
    """Fork while no other thread can hold a lock that the child would wait for.

    The other threads are those that RocksDB starts for compaction. A store that is open for reading gives them no work, so that
    they sleep without a lock once they have started.
    """
    for _ in range(200):
        if _is_only_thread():
            break
        time.sleep(0.001)
    return os.fork()


class Reaper:
    """Collects the exit codes of killed workers, without blocking."""

    def __init__(self) -> None:
        self.killed: set[int] = set()

    def reap(self, options: int = os.WNOHANG) -> None:
        """Collect the exit codes of those that have ended."""
        for pid in tuple(self.killed):
            try:
                if os.waitpid(pid, options)[0]:
                    self.killed.discard(pid)
            except ChildProcessError:
                self.killed.discard(pid)


def begin(memory: int, *, network: bool) -> None:
    """Limit this process, and those forked from it: bytes of data (0: unlimited), and whether they may open sockets."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if not network:
        without_network()
    if memory:
        # The hard limit stays: `shared` raises the soft one again.
        bound = resource.getrlimit(resource.RLIMIT_DATA)[1]
        resource.setrlimit(resource.RLIMIT_DATA, (at_most(memory, bound), bound))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def at_most(size: int, bound: int) -> int:
    """Return a limit that respects the hard limit `bound`."""
    return size if bound == resource.RLIM_INFINITY else min(size, bound)


@contextmanager
def shared() -> Iterator[None]:
    """Raise the memory limit by what is allocated within this context, so that no query is charged for it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    before = _data()
    resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))
    try:
        yield
    finally:
        if soft != resource.RLIM_INFINITY:
            soft = at_most(soft + max(0, _data() - before), hard)
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _data() -> int:
    """Return the bytes of data of this process, approximately as the limit counts them."""
    try:
        return int(Path("/proc/self/statm").read_bytes().split()[5]) * resource.getpagesize()
    except OSError:
        return 0


def serve_forks(worker: Work) -> None:
    """Open what the first frame names, and fork workers as requested on the socket at descriptor 0."""
    import json

    control = socket.socket(fileno=0)
    size = _LENGTH.unpack(control.recv(_LENGTH.size, socket.MSG_WAITALL))[0]
    worker.open(json.loads(control.recv(size, socket.MSG_WAITALL)))
    gc.freeze()  # workers share what is allocated so far
    request, answer = struct.Struct(">ci"), struct.Struct(">i")
    reaper, poll = Reaper(), select.poll()
    poll.register(control, select.POLLIN)
    while True:
        ready = poll.poll(50 if reaper.killed else None)
        reaper.reap()
        if not ready:
            continue
        data, descriptors, _, _ = socket.recv_fds(control, request.size, 1)
        if len(data) < request.size:
            reaper.reap(0)
            os._exit(0)
        kind, pid = request.unpack(data)
        if kind == b"B":
            reaper.killed.add(pid)
        elif kind == b"W":
            code = 0
            with suppress(ChildProcessError):
                code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            control.sendall(answer.pack(code))
        else:
            pid = fork()
            if pid == 0:
                os.dup2(descriptors[0], 0)
                os.close(descriptors[0])
                work(worker)
            os.close(descriptors[0])
            control.sendall(answer.pack(pid))
