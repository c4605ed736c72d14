"""The base of all test servers: free loopback ports, a folder of their own, start, stop by process id, removal. A
server ends with the process that started it (`watched.py`).

The modules of the servers (`virtuoso_server.py`, `oxigraph_server.py`) define how a server is started and when it is
ready.
"""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from watched import watched


class ServerError(RuntimeError):
    """The server is not available here, or did not start; the message says why."""


def free_port() -> int:
    """Return an unused loopback port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Service:
    """A server process with a folder of its own; a context manager."""

    name = "server"

    def __init__(self) -> None:
        self.home = Path(tempfile.mkdtemp(prefix=f"condgraph-{self.name}-"))
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.discard()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.discard()

    def start(self) -> None:
        """Start, and return once it answers; raise `ServerError` with the end of its log if it does not."""
        raise NotImplementedError

    @property
    def pid(self) -> int | None:
        """The id of the process; None if none runs."""
        return None if self._process is None else self._process.pid

    def launch(self, command: Sequence[str], *, ready: Callable[[], bool], wait: float) -> None:
        """Start a command, and return once `ready` returns True; wait at most `wait` seconds for that."""
        log = self.home / "console.log"
        with log.open("ab") as out:
            self._process = subprocess.Popen(
                watched(command, remove=self.home),
                cwd=self.home,
                stdout=out,
                stderr=out,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        until = time.monotonic() + wait
        while not ready():
            if self._process.poll() is not None or time.monotonic() > until:
                self.stop()
                raise ServerError(f"{self.name} did not start:\n{log.read_text(errors='replace')[-3000:]}")
            time.sleep(0.1)

    def kill(self) -> None:
        """Kill the server, as in a crash."""
        self._signal(signal.SIGKILL)

    def stop(self) -> None:
        """Stop the server; kill it if it takes longer than half a minute."""
        self._signal(signal.SIGTERM)

    def pause(self) -> None:
        """Suspend the server with its connections open; `resume` continues it."""
        if self._process is not None:
            self._process.send_signal(signal.SIGSTOP)
            # The signal reaches one thread after another, and a thread that still runs may answer.
            until = time.monotonic() + 10
            while not _stopped(self._process.pid) and time.monotonic() < until:
                time.sleep(0.005)

    def resume(self) -> None:
        """Continue a paused server."""
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None or process.poll() is not None:
            return
        process.send_signal(number)
        # A paused process receives its signals when it is continued.
        process.send_signal(signal.SIGCONT)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def discard(self) -> None:
        """Kill the server and remove its data, without the shutdown for which Neo4j takes seconds."""
        self.kill()
        shutil.rmtree(self.home, ignore_errors=True)


def _stopped(pid: int) -> bool:
    """Return whether every thread of a process is stopped; True where that cannot be determined."""
    try:
        return all(_state(task) in "TtZX" for task in Path(f"/proc/{pid}/task").iterdir())
    except OSError:
        # A thread ended meanwhile, or this is not Linux.
        return not Path("/proc/self/task").is_dir()


def _state(task: Path) -> str:
    # The state follows the name, which is in parentheses and may contain parentheses.
    return (task / "stat").read_text().rpartition(")")[2].split()[0]


def answers(url: str) -> bool:
    """Return whether an HTTP server answers at an address, with any status."""
    try:
        with urllib.request.urlopen(url, timeout=2):
            return True
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False


def foreground(server: Service, said: Callable[[], str]) -> None:
    """Run a server until this process is interrupted or terminated."""
    ends = {signal.SIGINT, signal.SIGTERM}
    try:
        with server:
            # Blocked, so that `sigwait` receives them and this process does not end before its server.
            signal.pthread_sigmask(signal.SIG_BLOCK, ends)
            print(said(), flush=True)
            signal.sigwait(ends)
    except ServerError as error:
        sys.exit(str(error))
