"""The process that worker processes are forked from: it has imported what they need, and has the
store open.

A worker is ready in a millisecond so, where opening the store takes ten times as long and more;
files that are loaded into memory are loaded once, and workers share that memory. A program that has
threads never forks itself. The process also hears how workers ended; nobody else gets their numbers
before they were given up (`bury`) or asked for (`ended`).
"""

from __future__ import annotations

import socket
import struct
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Final

from condgraph.engine.errors import StoreError

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
