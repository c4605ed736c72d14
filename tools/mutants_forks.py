"""Changed code is tried in a fork of one process of pytest, which has collected its tests once: what
takes longest of a short run, importing and collecting, is done once for all changes.

As a plugin (`pytest -p mutants_forks`) this waits for requests instead of running tests. For each
it forks; the child puts the changed code into the functions of the module, and runs the tests that
are named until one fails. A change that is not within a function (or where no function has it) has
effects while the module is imported: that needs a process of its own, and the reply says so.
`Forks` is the other end.
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

#: Where the plugin finds its two pipes, as `read,write`.
_PIPES = "CONDGRAPH_MUTANTS_PIPES"
#: Bytes that a child may have: a loop without end should not take the machine with it.
_MEMORY = 6 << 30
_KILLED, _SURVIVED, _ELSEWHERE = 1, 0, 3


class Forks:
    """A process of pytest with its tests collected, which tries changes one after the other."""

    def __init__(self, command: Sequence[str], folder: Path, environment: Mapping[str, str], log: Path) -> None:
        (theirs, ours), (back, forth) = os.pipe(), os.pipe()
        with log.open("w") as said:
            self._process = subprocess.Popen(
                [*command, "-p", "mutants_forks"],
                cwd=folder,
                env={**environment, _PIPES: f"{theirs},{forth}"},
                pass_fds=(theirs, forth),
                stdout=said,
                stderr=said,
            )
        os.close(theirs)
        os.close(forth)
        self._out, self._in = os.fdopen(ours, "w"), os.fdopen(back)
        self.known = set(self._next())

    def __enter__(self) -> Forks:
        return self

    def __exit__(self, *_: object) -> None:
        self._out.close()
        self._process.wait()

    def run(self, path: Path, changed: str | None, tests: Sequence[str], seconds: float) -> tuple[str, str]:
        """Whether some test notices that `path` has the text `changed` ("killed", "survived",
        "elsewhere" where a process of its own has to say), and the test that did. None changes
        nothing. What takes more than `seconds` of the processor, or ten times as many of the clock
        and a minute, is killed.
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
    place = Path(tempfile.mkdtemp(prefix="condgraph-mutant-"))
    child = os.fork()
    if child == 0:
        status = _KILLED
        try:
            os.setsid()
            resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, _MEMORY))
            bound = int(request["seconds"]) + 1
            resource.setrlimit(resource.RLIMIT_CPU, (bound, bound + 5))
            # Graphs that tests share are of this change alone.
            os.environ["PYTEST_DEBUG_TEMPROOT"] = str(place)
            status = _child(session, [items[name] for name in request["tests"]], request, place / "failed")
        finally:
            sys.stdout.flush()
            os._exit(status)
    end = _waited(child, 60 + 10 * request["seconds"])
    failed = place / "failed"
    test = failed.read_text() if failed.exists() else ""
    shutil.rmtree(place, ignore_errors=True)
    return {_SURVIVED: "survived", _ELSEWHERE: "elsewhere"}.get(end, "killed"), test


def _waited(child: int, seconds: float) -> int:
    """The exit status of a child; that of a killed one where it takes longer."""
    until = time.monotonic() + seconds
    while True:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            _end_group(child)
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > until:
            _end_group(child)
            os.waitpid(child, 0)
            return _KILLED
        time.sleep(0.02)


def _end_group(child: int) -> None:
    """End what a child may have started."""
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
    """Put the code of `text` into the functions of the module at `path`, wherever they are referred
    to; False where that is not all of the change.
    """
    before, after = (list(_codes(compile(one, str(path), "exec"))) for one in (path.read_text("utf-8"), text))
    if [code.co_qualname for code in before] != [code.co_qualname for code in after]:
        return False
    differ = [at for at, (old, new) in enumerate(zip(before, after, strict=True)) if _alone(old) != _alone(new)]
    if not all(before[at].co_flags & inspect.CO_OPTIMIZED for at in differ):
        return False  # the module itself, or the body of a class, which ran long ago
    found: set[int] = set()
    for function in gc.get_objects():
        if not isinstance(function, FunctionType) or function.__code__.co_filename != str(path):
            continue
        for at, old in enumerate(before):
            if function.__code__ == old:
                function.__code__ = after[at]
                found |= {at, *(before.index(inner) for inner in _codes(old))}
                break
    return bool(differ) and found.issuperset(differ)


def _codes(code: CodeType) -> Iterator[CodeType]:
    """A piece of code and all that stand in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _alone(code: CodeType) -> CodeType:
    """A piece of code without those that stand in it."""
    constants = tuple(None if isinstance(one, CodeType) else one for one in code.co_consts)
    return code.replace(co_consts=constants, co_linetable=b"", co_firstlineno=1)
