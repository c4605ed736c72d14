"""Starts a command that ends with another process, however that ends: with `kill -9`, too.

    python tools/watched.py --while PID [--remove FOLDER] [--grace SECONDS] [--instead] -- COMMAND ...

The command takes the place of this process, so that its id, its pipes and its parent are those of
whoever started it; a small process of its own session stays beside it and waits for one of the two
to end. When PID is gone, the command gets SIGTERM, and SIGKILL where it does not go within
`--grace`; then its folder is removed. When the command is gone first, nothing is left to do. With
`--instead` the command is not run now but then, once PID is gone (`docker stop`, say).

Processes are waited for by file descriptors that stand for them (Linux 5.3): a number that is used
again, a parent that nobody has waited for, the thread that started the command play no part.
Elsewhere their numbers are looked at four times a second. The module needs the standard library
alone and starts without `site`, since every server of the tests starts through it.
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

#: How often numbers of processes are looked at where there is nothing better, in seconds.
_POLL = 0.25


def watched(
    command: Sequence[str], *, beside: int | None = None, remove: Path | None = None, grace: float = 20.0, instead: bool = False
) -> list[str]:
    """The command that starts `command` so that it ends with the process `beside` (this one as a
    rule).

    `grace` is how long the command may take to end, in seconds; `remove` a folder that goes with it
    when it is ended so. With `instead` the command runs when `beside` has gone.
    """
    about = ["--while", str(os.getpid() if beside is None else beside), "--grace", str(grace)]
    if remove is not None:
        about += ["--remove", str(remove)]
    if instead:
        about.append("--instead")
    return [sys.executable, "-I", "-S", __file__, *about, "--", *command]


class Watch:
    """A process to wait for; raises `ProcessLookupError` where there is none of this number."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.handle: int | None = None
        try:
            self.handle = os.pidfd_open(pid)
        except ProcessLookupError:
            raise
        except (AttributeError, OSError):
            # No such call here, or not allowed.
            os.kill(pid, 0)

    def gone(self) -> bool:
        """Whether it has ended; one that nobody has waited for has."""
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
        """Send it a signal; nothing happens where it has ended."""
        with contextlib.suppress(ProcessLookupError):
            if self.handle is not None:
                signal.pidfd_send_signal(self.handle, number)
            else:
                os.kill(self.pid, number)


def wait(watches: Sequence[Watch], seconds: float | None = None) -> bool:
    """Wait until one of them has ended; False where that took longer than `seconds`."""
    until = None if seconds is None else time.monotonic() + seconds
    handles = [watch.handle for watch in watches if watch.handle is not None]
    while not any(watch.gone() for watch in watches):
        left = None if until is None else until - time.monotonic()
        if left is not None and left <= 0:
            return False
        step = left if len(handles) == len(watches) else min(_POLL, _POLL if left is None else left)
        select.select(handles, [], [], step)
    return True


def end(command: Watch, grace: float) -> None:
    """End a process: politely, then not."""
    command.send(signal.SIGTERM)
    # One that is paused takes its signals when it goes on.
    command.send(signal.SIGCONT)
    if not wait([command], grace):
        command.send(signal.SIGKILL)
        wait([command], grace)


def _alone(keep: Sequence[Watch]) -> None:
    """Hold nothing of those who started this: no session, no pipe, no folder, no signal."""
    os.setsid()
    os.chdir("/")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)
    kept = {watch.handle for watch in keep if watch.handle is not None} | {0, 1, 2}
    for name in os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else map(str, range(256)):
        if int(name) not in kept:
            with contextlib.suppress(OSError):
                os.close(int(name))


def main() -> None:
    """Start the command, with somebody beside it."""
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
            # Whoever wanted it went before it began.
            sys.exit(f"watched: there is no process {options.process}")
        os.execvp(options.command[0], options.command)
    if options.instead:
        _alone([beside])
        wait([beside])
        os.execvp(options.command[0], options.command)
    command = Watch(os.getpid())
    if os.fork() == 0:
        try:
            # Once more, so that the command has no child that it knows nothing of.
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
