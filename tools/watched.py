"""Starts a command that ends with another process, however that ends, even by `kill -9`.

    python tools/watched.py --while PID [--remove FOLDER] [--grace SECONDS] [--instead] -- COMMAND ...

The command replaces this process, so its id, pipes and parent are those that the caller expects; a small watcher in a
session of its own waits for one of the two processes to end. When PID has ended, the command gets SIGTERM, and SIGKILL
if it does not end within `--grace`; then its folder is removed. If the command ends first, there is nothing to do. With
`--instead` the command is run only after PID has ended (such as `docker stop`).

Processes are waited for by file descriptors (Linux 5.3), so reused ids, zombies, and the thread that started
the command do not matter. On other systems the ids are polled four times a second. The module uses only the standard
library and starts without `site`, since every test server starts through it.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import select
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

#: Seconds between two polls of process ids, where there are no file descriptors for processes.
_POLL = 0.25


def watched(
    command: Sequence[str], *, beside: int | None = None, remove: Path | None = None, grace: float = 20.0, instead: bool = False
) -> list[str]:
    """Return the command that runs `command` so that it ends with the process `beside` (by default, this one).

    `grace` is the time the command has for ending, in seconds; `remove` is a folder to remove after it was ended. With
    `instead` the command is run only when `beside` has ended.
    """
    options = ["--while", str(os.getpid() if beside is None else beside), "--grace", str(grace)]
    if remove is not None:
        options += ["--remove", str(remove)]
    if instead:
        options.append("--instead")
    return [sys.executable, "-I", "-S", __file__, *options, "--", *command]


class Watch:
    """A process to wait for; raises `ProcessLookupError` if there is none with this id."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.handle: int | None = None
        try:
            self.handle = os.pidfd_open(pid)
        except ProcessLookupError:
            raise
        except (AttributeError, OSError):
            # The call does not exist here, or is not allowed.
            os.kill(pid, 0)

    def gone(self) -> bool:
        """Return whether the process has ended, even if nobody has waited for it."""
        if self.handle is not None:
            return bool(select.select([self.handle], [], [], 0)[0])
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            return False
        return False

    def send(self, number: signal.Signals) -> None:
        """Send a signal, unless the process has ended."""
        with contextlib.suppress(ProcessLookupError):
            if self.handle is not None:
                signal.pidfd_send_signal(self.handle, number)
            else:
                os.kill(self.pid, number)


def wait(watches: Sequence[Watch], seconds: float | None = None) -> bool:
    """Wait until one of the processes has ended; return False if that takes longer than `seconds`."""
    until = None if seconds is None else time.monotonic() + seconds
    handles = [watch.handle for watch in watches if watch.handle is not None]
    while not any(watch.gone() for watch in watches):
        remaining = None if until is None else until - time.monotonic()
        if remaining is not None and remaining <= 0:
            return False
        step = remaining if len(handles) == len(watches) else min(_POLL, _POLL if remaining is None else remaining)
        select.select(handles, [], [], step)
    return True


def end(command: Watch, grace: float) -> None:
    """Terminate a process, and kill it if it does not end within `grace` seconds."""
    command.send(signal.SIGTERM)
    # A paused process receives its signals when it is continued.
    command.send(signal.SIGCONT)
    if not wait([command], grace):
        command.send(signal.SIGKILL)
        wait([command], grace)


def _alone(keep: Sequence[Watch]) -> None:
    """Detach from the starting process: session, pipes, folder and signals."""
    os.setsid()
    os.chdir("/")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    null_device = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null_device, standard)
    open_files = {watch.handle for watch in keep if watch.handle is not None} | {0, 1, 2}
    for name in os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else map(str, range(256)):
        if int(name) not in open_files:
            with contextlib.suppress(OSError):
                os.close(int(name))


def main() -> None:
    """Start the command, with a watcher."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--while", type=int, required=True, dest="process", metavar="PID", help="end when this process is gone")
    parser.add_argument("--remove", metavar="FOLDER", help="a folder to remove then")
    parser.add_argument("--grace", type=float, default=20.0, metavar="SECONDS", help="how long the command may take to end")
    parser.add_argument("--instead", action="store_true", help="run the command then, not now")
    parser.add_argument("command", nargs="+", metavar="COMMAND")
    options = parser.parse_args()
    try:
        beside = Watch(options.process)
    except ProcessLookupError:
        if not options.instead:
            # The process ended before the command was started.
            sys.exit(f"watched: there is no process {options.process}")
        os.execvp(options.command[0], options.command)
    if options.instead:
        _alone([beside])
        wait([beside])
        os.execvp(options.command[0], options.command)
    command = Watch(os.getpid())
    if os.fork() == 0:
        try:
            # Fork twice, so that the command has no unexpected child.
            if os.fork() == 0:
                _alone([beside, command])
                _stay(beside, command, options.grace, options.remove)
        finally:
            os._exit(0)
    os.wait()
    os.execvp(options.command[0], options.command)


def _stay(beside: Watch, command: Watch, grace: float, remove: str | None) -> None:
    wait([beside, command])
    if beside.gone():
        end(command, grace)
        if remove is not None:
            shutil.rmtree(remove, ignore_errors=True)


if __name__ == "__main__":
    main()
