"""Which tests run which lines, and how long each takes: as a plugin of pytest (`-p mutants_lines`),
which writes what it found into a file.

`sys.monitoring` (Python 3.12) tells each line once a test and then no more of it, so that tests
take hardly longer than without. `CONDGRAPH_MUTANTS_LINES` is the file; `CONDGRAPH_MUTANTS_CODE` the
folder or module that is watched.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType
from typing import Any, Final

import pytest

#: The variables with the file that is written, and the code that is watched.
FILE, CODE = "CONDGRAPH_MUTANTS_LINES", "CONDGRAPH_MUTANTS_CODE"
#: One of the numbers that tools may have; 0 to 2 and 5 are debuggers, coverage, profilers, optimisers.
_TOOL: Final = 4


@dataclass
class Found:
    """The seconds of the processor that each test takes; the tests of each line of each module."""

    seconds: dict[str, float] = field(default_factory=dict)
    tests: dict[str, dict[int, list[str]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))

    def add(self, file: Path, of: Collection[str]) -> None:
        """What a run found of the tests in the files `of`."""
        kept = json.loads(file.read_text("utf-8"))
        names = [name if name.partition("::")[0] in of else None for name, _ in kept["tests"]]
        self.seconds |= {name: seconds for name, seconds in kept["tests"] if name.partition("::")[0] in of}
        for module, lines in kept["lines"].items():
            for line, numbers in lines.items():
                self.tests[module][int(line)] += [name for number in numbers if (name := names[number]) is not None]


def pytest_configure(config: pytest.Config) -> None:
    """Watch, where a file to write is named."""
    if os.environ.get(FILE):
        config.pluginmanager.register(_Watch(Path(os.environ[CODE]).resolve(), Path(os.environ[FILE])))


class _Watch:
    def __init__(self, code: Path, file: Path) -> None:
        self._code, self._root, self._file = str(code), Path.cwd(), file
        self._tests: list[tuple[str, float]] = []
        self._lines: dict[str, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        self._watched: dict[CodeType, dict[int, list[int]] | None] = {}
        self._number = -1
        events = sys.monitoring.events
        sys.monitoring.use_tool_id(_TOOL, "mutants")
        sys.monitoring.register_callback(_TOOL, events.PY_START, self._begun)
        sys.monitoring.register_callback(_TOOL, events.LINE, self._run)
        sys.monitoring.set_events(_TOOL, events.PY_START)

    def _begun(self, code: CodeType, _: int) -> object:
        if code not in self._watched:
            inside = code.co_filename.startswith(self._code)
            self._watched[code] = self._lines[str(Path(code.co_filename).relative_to(self._root))] if inside else None
            if inside:
                sys.monitoring.set_local_events(_TOOL, code, sys.monitoring.events.LINE)
        return sys.monitoring.DISABLE

    def _run(self, code: CodeType, line: int) -> object:
        lines = self._watched.get(code)
        if lines is not None and self._number >= 0:
            tests = lines[line]
            if not tests or tests[-1] != self._number:
                tests.append(self._number)
        return sys.monitoring.DISABLE

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """The lines from here on are this test's."""
        self._number = len(self._tests)
        sys.monitoring.restart_events()
        before = _spent()
        try:
            return (yield)
        finally:
            self._tests.append((item.nodeid, round(_spent() - before, 4)))
            self._number = -1

    def pytest_sessionfinish(self) -> None:
        """Write what was found."""
        sys.monitoring.free_tool_id(_TOOL)
        kept: dict[str, Any] = {"tests": self._tests, "lines": self._lines}
        self._file.parent.mkdir(parents=True, exist_ok=True)
        part = self._file.with_suffix(f".{time.time_ns()}")
        part.write_text(json.dumps(kept), "utf-8")
        part.replace(self._file)


def _spent() -> float:
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system
