"""Tries changed code in forks of one pytest process, which imports and collects the tests once for all changes: that
takes the most time of a short run.

As a plugin (`pytest -p mutants_forks`) this waits for requests instead of running tests. It forks for each request; the
child puts the changed code into the functions of the module, and runs the requested tests until one fails. A change
outside functions (or in a function that cannot be found) takes effect during import: it needs a process of its own, and
the reply says so. `Forks` is the other end.
"""

from __future__ import annotations

import gc
import inspect
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

#: The variable with the plugin's two pipes, as `read,write`.
_PIPES = "CONDGRAPH_MUTANTS_PIPES"
#: The most bytes of a child, so that an endless loop cannot exhaust the machine's memory.
_MEMORY = 6 << 30
_KILLED, _SURVIVED, _ELSEWHERE = 1, 0, 3


class Forks:
    """A pytest process with its tests collected, which tries changes one after the other."""

    def __init__(self, command: Sequence[str], folder: Path, environment: Mapping[str, str], log: Path) -> None:
        (request_reader, request_writer), (reply_reader, reply_writer) = os.pipe(), os.pipe()
        with log.open("w") as log_file:
            self._process = subprocess.Popen(
                [*command, "-p", "mutants_forks"],
                cwd=folder,
                env={**environment, _PIPES: f"{request_reader},{reply_writer}"},
                pass_fds=(request_reader, reply_writer),
                stdout=log_file,
                stderr=log_file,
            )
        os.close(request_reader)
        os.close(reply_writer)
        self._out, self._in = os.fdopen(request_writer, "w"), os.fdopen(reply_reader)
        self.known = set(self._next())

    def __enter__(self) -> Forks:
        return self

    def __exit__(self, *_: object) -> None:
        self._out.close()
        self._process.wait()

    def run(self, path: Path, changed: str | None, tests: Sequence[str], seconds: float) -> tuple[str, str]:
        """Return whether a test detects that `path` has the text `changed` ("killed", "survived", or "elsewhere" if
        that needs a process of its own), and the test that did. None changes nothing. Tests that take more than
        `seconds` of processor time, or ten times that in wall time plus a minute, are killed.
        """
        request = {"path": str(path), "changed": changed, "tests": list(tests), "seconds": seconds}
        self._out.write(json.dumps(request) + "\n")
        self._out.flush()
        end, test = self._next()
        return end, test

    def _next(self) -> Any:
        line = self._in.readline()
        if not line:
            raise RuntimeError("the process of the tests has ended, see its log")
        return json.loads(line)


def pytest_runtestloop(session: Any) -> bool | None:
    """Wait for requests, and fork for each."""
    read, write = map(int, os.environ.pop(_PIPES).split(","))
    items = {item.nodeid: item for item in session.items}
    with os.fdopen(read) as requests, os.fdopen(write, "w") as replies:
        replies.write(json.dumps(list(items)) + "\n")
        replies.flush()
        for line in requests:
            replies.write(json.dumps(_tried(session, items, json.loads(line))) + "\n")
            replies.flush()
    return True


def _tried(session: Any, items: Mapping[str, Any], request: Mapping[str, Any]) -> tuple[str, str]:
    folder = Path(tempfile.mkdtemp(prefix="condgraph-mutant-"))
    child = os.fork()
    if child == 0:
        status = _KILLED
        try:
            os.setsid()
            resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, _MEMORY))
            bound = int(request["seconds"]) + 1
            resource.setrlimit(resource.RLIMIT_CPU, (bound, bound + 5))
            # Graphs that tests share are loaded separately for this change.
            os.environ["PYTEST_DEBUG_TEMPROOT"] = str(folder)
            status = _child(session, [items[name] for name in request["tests"]], request, folder / "failed")
        finally:
            sys.stdout.flush()
            os._exit(status)
    end = _waited(child, 60 + 10 * request["seconds"])
    failed = folder / "failed"
    test = failed.read_text() if failed.exists() else ""
    shutil.rmtree(folder, ignore_errors=True)
    return {_SURVIVED: "survived", _ELSEWHERE: "elsewhere"}.get(end, "killed"), test


def _waited(child: int, seconds: float) -> int:
    """Return the exit status of a child, or that of a killed test if it takes longer."""
    until = time.monotonic() + seconds
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            _end_group(child)
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > until:
            _end_group(child)
            os.waitpid(child, 0)
            return _KILLED
        time.sleep(0.02)


def _end_group(child: int) -> None:
    """Kill all processes that a child may have started."""
    try:
        os.killpg(child, 9)
    except ProcessLookupError:
        return


def _child(session: Any, items: Sequence[Any], request: Mapping[str, Any], failed: Path) -> int:
    if request["changed"] is not None and not changed(Path(request["path"]), request["changed"]):
        return _ELSEWHERE
    for at, item in enumerate(items):
        following = items[at + 1] if at + 1 < len(items) else None
        failed.write_text(item.nodeid)
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.testsfailed:
            return _KILLED
    failed.unlink(missing_ok=True)
    return _SURVIVED


def changed(path: Path, text: str) -> bool:
    """Replace the code of the module's functions, wherever they are referenced, by that of `text`; return False if this
    does not cover the whole change.
    """
    before, after = (list(_codes(compile(source, str(path), "exec"))) for source in (path.read_text("utf-8"), text))
    if [code.co_qualname for code in before] != [code.co_qualname for code in after]:
        return False
    differing = [index for index, (old, new) in enumerate(zip(before, after, strict=True)) if _alone(old) != _alone(new)]
    if not all(before[index].co_flags & inspect.CO_OPTIMIZED for index in differing):
        return False  # the module itself or a class body, which has run already
    replaced: set[int] = set()
    for function in gc.get_objects():
        if not isinstance(function, FunctionType) or function.__code__.co_filename != str(path):
            continue
        for index, old in enumerate(before):
            if function.__code__ == old:
                function.__code__ = after[index]
                replaced |= {index, *(before.index(inner) for inner in _codes(old))}
                break
    return bool(differing) and replaced.issuperset(differing)


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yield a code object and all code objects nested in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _alone(code: CodeType) -> CodeType:
    """Return a code object without its nested code objects and line numbers."""
    constants = tuple(None if isinstance(constant, CodeType) else constant for constant in code.co_consts)
    return code.replace(co_consts=constants, co_linetable=b"", co_firstlineno=1)
