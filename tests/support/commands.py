"""Runs condgraph commands in forks of one process that has imported condgraph already: starting Python takes a second
of processor time, a fork a fiftieth of that.

A command gets its own arguments, environment, folder and standard streams, and exits as Python does.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from functools import cache
from pathlib import Path


class _Commands:
    """The process that forks."""

    def __init__(self) -> None:
        command, environment = [sys.executable, __file__], {**os.environ, "PYTHONUTF8": "1"}
        self._process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._one = threading.Lock()
        atexit.register(self._end)

    def run(self, request: Mapping[str, object]) -> int:
        """Return the exit status of a command, in the convention of `subprocess`."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._one:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            return int(self._process.stdout.readline())

    def _end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


@cache
def _commands(_: int) -> _Commands:
    return _Commands()


def run(*arguments: str | Path, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run `condgraph ARGUMENTS` in the current folder with empty input; return its output and exit status."""
    words = [*map(str, arguments)]
    with tempfile.TemporaryDirectory(prefix="condgraph-command-") as place:
        out, err = Path(place) / "out", Path(place) / "err"
        environment = dict(os.environ if env is None else env)
        request = {"arguments": words, "environment": environment, "folder": os.getcwd(), "out": str(out), "err": str(err)}
        status = _commands(os.getpid()).run(request)
        return subprocess.CompletedProcess(words, status, out.read_text("utf-8"), err.read_text("utf-8"))


def _serve() -> None:
    """Fork for every request; the child becomes the command."""
    from condgraph.cli import (
        app,  # noqa: F401 - what takes long to import
        main,
    )

    replies = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            replies.close()
            for number, name in enumerate((os.devnull, request["out"], request["err"])):
                descriptor = os.open(name, os.O_RDWR | os.O_CREAT, 0o600)
                os.dup2(descriptor, number)
                os.close(descriptor)
            os.environ.clear()
            os.environ.update(request["environment"])
            os.chdir(request["folder"])
            sys.argv = ["condgraph", *request["arguments"]]
            main()
            sys.exit()
        _, status = os.waitpid(child, 0)
        replies.write(f"{os.waitstatus_to_exitcode(status)}\n")
        replies.flush()


if __name__ == "__main__":
    _serve()
