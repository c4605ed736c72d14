"""Progress of a run with several workers: lines that say how far it is and what it waits for, failures as they happen, and
the time that each file of tests took beside the time on record (`tests/durations.json`), which also names the tests that
`make quick` leaves out.

`tests/conftest.py` registers `Progress` on the process that distributes the tests. Times are wall-clock seconds of all tests of a
file, fixtures included, but for the start of servers, which whoever comes first waits for. With `CI` set, a file that takes
`ALLOWANCE` longer than recorded is named at the end, and one that takes twice that longer fails the run, after recorded times were
scaled by how fast this machine is (the median over all files). `CONDGRAPH_DURATIONS=write` records the times of a run;
`ignore` compares nothing.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import pytest

RECORD: Final = Path(__file__).parents[1] / "durations.json"
#: Seconds between two lines of progress.
INTERVAL: Final = 15.0
#: Seconds that a file of tests may take beyond its recorded time, or half of that time, if that is more: two runs on one machine
#: differ by so much.
ALLOWANCE: Final = 30.0
#: Seconds of one case, and of all cases of a test, from which `make quick` leaves the test out.
LONG_CASE: Final = 0.3
LONG_TEST: Final = 2.0
#: Lines of a failure's text that are shown: its end, where the error is.
_LINES: Final = 12
#: Names the folder in which workers note which server they are starting.
_FOLDER: Final = "CONDGRAPH_STARTING"
#: Seconds of this worker that belong to no file.
_waited: Final[list[float]] = []


@contextmanager
def starting(what: str) -> Iterator[None]:
    """Note, for the progress lines, that this worker waits for `what` to start."""
    folder = os.environ.get(_FOLDER)
    if folder is None:
        yield
        return
    note, began = Path(folder, str(os.getpid())), time.monotonic()
    note.write_text(what, encoding="utf-8")
    try:
        yield
    finally:
        note.unlink(missing_ok=True)
        _waited.append(time.monotonic() - began)


def set_waited(report: pytest.TestReport) -> None:
    """Say in the report of a phase of a test how many seconds this worker waited for servers to start."""
    report.waited = sum(_waited)
    _waited.clear()


class Progress:
    """The plugin; `folder` is where workers note what they wait for, `seconds` the time that each file took."""

    def __init__(self, config: pytest.Config, folder: Path) -> None:
        self._config = config
        self.folder = folder
        self._recorded: dict[str, float] = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
        self._started = time.monotonic()
        self._running: dict[str, float] = {}
        self._weights: dict[str, float] = {}
        self._whole = self._passed = 0.0
        self._ended = threading.Event()
        self._total = self._done = self._failed = 0
        self.seconds: Counter[str] = Counter()
        #: Of each test: the seconds of its cases.
        self._cases: defaultdict[str, Counter[str]] = defaultdict(Counter)
        #: A line for each file that took longer than recorded.
        self.slower: list[str] = []
        os.environ[_FOLDER] = str(folder)

    def pytest_sessionstart(self) -> None:
        """Begin to write lines."""
        threading.Thread(target=self._report, daemon=True).start()

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: list[str]) -> None:
        """Weigh each test by the recorded time of its file; a file without one counts as a second a test."""
        if self._total:
            return
        self._total = len(ids)
        counts = Counter(map(_file, ids))
        whole = {file: self._recorded.get(file, float(count)) for file, count in counts.items()}
        self._whole = sum(whole.values())
        self._weights = {file: whole[file] / count for file, count in counts.items()}

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """A worker began a test."""
        self._running[nodeid] = time.monotonic()

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """A worker ended a test."""
        self._running.pop(nodeid, None)
        self._done += 1
        self._passed += self._weights.get(_file(nodeid), 0.0)

    def pytest_report_teststatus(self, report: Any) -> tuple[str, str, str] | None:
        """No dots: lines of progress replace them."""
        if isinstance(report, pytest.TestReport) and report.passed and not hasattr(report, "wasxfail"):
            return ("passed" if report.when == "call" else "", "", "")
        return None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add up the time of the file; show a failure at once, since a run that is stopped has no summary."""
        # Examples in docstrings are no tests of this folder, whose hook says what was waited for.
        seconds = report.duration - getattr(report, "waited", 0.0)
        self.seconds[_file(report.nodeid)] += seconds
        self._cases[name_of(report.nodeid)][report.nodeid] += seconds
        if not report.failed:
            return
        self._failed += 1
        self._write(f"\nFAILED {report.nodeid} ({report.when})", red=True)
        for line in report.longreprtext.splitlines()[-_LINES:]:
            self._write(f"  {line}")

    def _report(self) -> None:
        while not self._ended.wait(INTERVAL):
            self._write(self.line())

    def line(self) -> str:
        """How far the run is, what runs, and which servers are starting."""
        now = time.monotonic()
        minutes, seconds = divmod(int(now - self._started), 60)
        share = min(99, int(100 * self._passed / self._whole)) if self._whole else 0
        running = [f"{_file(nodeid)} ({now - began:.0f} s)" for nodeid, began in list(self._running.items())]
        waiting = []
        for note in sorted(self.folder.glob("*")):
            # The server may have started meanwhile, and the note is gone.
            with suppress(FileNotFoundError):
                waiting.append(note.read_text(encoding="utf-8"))
        if not self._total:
            return f"{minutes}:{seconds:02} collecting the tests"
        parts = [f"{minutes}:{seconds:02} {share} %, {self._done:,} of {self._total:,} tests, {self._failed} failed"]
        parts += [f"running {', '.join(running)}"] if running else []
        parts += [f"waiting for {', '.join(waiting)}"] if waiting else []
        return "; ".join(parts)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Compare with the recorded times, or record them."""
        self._ended.set()
        if os.environ.get("CONDGRAPH_DURATIONS") == "write":
            recorded = {file: seconds for file, seconds in self.seconds.items() if seconds >= 1}
            for test, cases in self._cases.items():
                if max(cases.values()) > LONG_CASE or cases.total() > LONG_TEST:
                    recorded[test] = cases.total()
            lines = {name: round(seconds, 1) for name, seconds in sorted(recorded.items())}
            RECORD.write_text(json.dumps(lines, indent=1) + "\n", encoding="utf-8")
        elif self._recorded and os.environ.get("CI") and os.environ.get("CONDGRAPH_DURATIONS") != "ignore":
            self.slower = slower(self.seconds, self._recorded)
            if slower(self.seconds, self._recorded, allowances=2):
                session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _write(self, text: str, **markup: bool) -> None:
        terminal = self._config.pluginmanager.get_plugin("terminalreporter")
        if terminal is not None:
            terminal.write_line(text, **markup)


def slower(seconds: Mapping[str, float], recorded: Mapping[str, float], allowances: int = 1) -> list[str]:
    """A line for each file that took more than its record and its allowances, on a machine as fast as the one that recorded.

    Files that have no record count as recorded with nothing. How fast the machine is, is the median ratio of the files that have
    one and took at least five seconds.
    """
    ratios = [seconds[file] / took for file, took in recorded.items() if took >= 5 and seconds.get(file)]
    scale = max(1.0, statistics.median(ratios)) if ratios else 1.0
    return [
        f"{file} took {took:.0f} s; {scale * recorded.get(file, 0.0):.0f} s are on record for a machine this fast; "
        "make it faster, or record the times of a whole run (CONDGRAPH_DURATIONS=write make pytest)"
        for file, took in sorted(seconds.items())
        if took > scale * (recorded.get(file, 0.0) + allowances * max(ALLOWANCE, recorded.get(file, 0.0) / 2))
    ]


def long_tests() -> frozenset[str]:
    """The tests on record as long, which `make quick` leaves out."""
    recorded = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    return frozenset(name for name in recorded if "::" in name)


def name_of(nodeid: str) -> str:
    """The test of a case: its name without parameters and without the group of its worker."""
    return re.split(r"[\[@]", nodeid, maxsplit=1)[0]


def _file(nodeid: str) -> str:
    return nodeid.partition("::")[0]
