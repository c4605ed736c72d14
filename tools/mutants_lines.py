"""A pytest plugin (`-p mutants_lines`) that records which tests run which lines, and how long each test takes, in a
file.

`sys.monitoring` (Python 3.12) reports each line once for each test, so tests take hardly longer than without.
`CONDGRAPH_MUTANTS_LINES` is the file; `CONDGRAPH_MUTANTS_CODE` is the watched folder or module.
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

#: The variables with the file to write and the code to watch.
FILE, CODE = "CONDGRAPH_MUTANTS_LINES", "CONDGRAPH_MUTANTS_CODE"
#: A free tool id of `sys.monitoring`; 0 to 2 and 5 are for debuggers, coverage, profilers and optimisers.
_TOOL: Final = 4


@dataclass
class Found:
    """The seconds of processor time of each test, and the tests of each line of each module."""

    seconds: dict[str, float] = field(default_factory=dict)
    tests: dict[str, dict[int, list[str]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))

    def add(self, file: Path, of: Collection[str]) -> None:
        """Add what a run recorded for the tests in the files `of`."""
        record = json.loads(file.read_text("utf-8"))
        names = [name if name.partition("::")[0] in of else None for name, _ in record["tests"]]
        self.seconds |= {name: seconds for name, seconds in record["tests"] if name.partition("::")[0] in of}
        for module, lines in record["lines"].items():
            for line, numbers in lines.items():
                self.tests[module][int(line)] += [name for number in numbers if (name := names[number]) is not None]


def pytest_configure(config: pytest.Config) -> None:
    """Start to watch if a file to write is given."""
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
            is_watched = code.co_filename.startswith(self._code)
            self._watched[code] = self._lines[str(Path(code.co_filename).relative_to(self._root))] if is_watched else None
            if is_watched:
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
        """Attribute the following lines to this test."""
        self._number = len(self._tests)
        sys.monitoring.restart_events()
        before = _spent()
        try:
            return (yield)
        finally:
            self._tests.append((item.nodeid, round(_spent() - before, 4)))
            self._number = -1

    def pytest_sessionfinish(self) -> None:
        """Write the record."""
        sys.monitoring.free_tool_id(_TOOL)
        record: dict[str, Any] = {"tests": self._tests, "lines": self._lines}
        self._file.parent.mkdir(parents=True, exist_ok=True)
        part = self._file.with_suffix(f".{time.time_ns()}")
        part.write_text(json.dumps(record), "utf-8")
        part.replace(self._file)


def _spent() -> float:
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system
