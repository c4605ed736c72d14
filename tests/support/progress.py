"""Progress of a run with several workers: lines with its state and what it waits for, failures as they happen, and the
time of each test file compared with the recorded time (`tests/durations.json`), which also names the tests that `make
quick` leaves out.

`tests/conftest.py` registers `Progress` in the process that distributes the tests. Times are wall-clock seconds of all
tests of a file with their fixtures, but without the start of servers, for which whichever test comes first waits. With
`CI` set, a file that exceeds its recorded time by `ALLOWANCE` is named at the end, and one that exceeds it by twice
that fails the run; recorded times are first scaled by the speed of this machine (the median over all files).
`CONDGRAPH_DURATIONS=write` records the times of a run; `ignore` compares nothing.
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
#: Seconds that a test file may take beyond its recorded time, or half of that time if that is more: two runs on one machine
#: differ by that much.
ALLOWANCE: Final = 30.0
#: `make quick` leaves out tests with a case longer than this, or longer in total, in seconds.
LONG_CASE: Final = 0.15
LONG_TEST: Final = 1.2
#: The last lines of a failure's text that are shown; the error is there.
_LINES: Final = 12
#: The variable with the folder in which workers note which server they are starting.
_FOLDER: Final = "CONDGRAPH_STARTING"
#: Seconds that this worker waited for servers, which count for no file.
_waited: Final[list[float]] = []


@contextmanager
def starting(what: str) -> Iterator[None]:
    """Note, for the progress lines, that this worker waits for `what` to start."""
    folder = os.environ.get(_FOLDER)
    if folder is None:
        yield
        return
    note, start = Path(folder, str(os.getpid())), time.monotonic()
    note.write_text(what, encoding="utf-8")
    try:
        yield
    finally:
        note.unlink(missing_ok=True)
        _waited.append(time.monotonic() - start)


def set_waited(report: pytest.TestReport) -> None:
    """Record in the report of a test's phase how many seconds this worker waited for servers."""
    report.waited = sum(_waited)
    _waited.clear()


class Progress:
    """The plugin; `folder` is where workers note what they wait for, `seconds` the time of each file."""

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
        #: The seconds of each test's cases.
        self._cases: defaultdict[str, Counter[str]] = defaultdict(Counter)
        #: A line for each file that took longer than recorded.
        self.slower: list[str] = []
        os.environ[_FOLDER] = str(folder)

    def pytest_sessionstart(self) -> None:
        """Start to write lines."""
        threading.Thread(target=self._report, daemon=True).start()

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: list[str]) -> None:
        """Weigh each test by the recorded time of its file; a file without a record counts one second for each test."""
        if self._total:
            return
        self._total = len(ids)
        counts = Counter(map(_file, ids))
        seconds_of = {file: self._recorded.get(file, float(count)) for file, count in counts.items()}
        self._whole = sum(seconds_of.values())
        self._weights = {file: seconds_of[file] / count for file, count in counts.items()}

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Record that a worker began a test."""
        self._running[nodeid] = time.monotonic()

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Record that a worker ended a test."""
        self._running.pop(nodeid, None)
        self._done += 1
        self._passed += self._weights.get(_file(nodeid), 0.0)

    def pytest_report_teststatus(self, report: Any) -> tuple[str, str, str] | None:
        """Suppress the dots, which progress lines replace."""
        if isinstance(report, pytest.TestReport) and report.passed and not hasattr(report, "wasxfail"):
            return ("passed" if report.when == "call" else "", "", "")
        return None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add up the time of the file; show a failure at once, since an aborted run has no summary."""
        # Doctests are not in this folder, so the hook that sets `waited` does not run for them.
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
        """Return the state of the run, the running tests, and the servers that are starting."""
        now = time.monotonic()
        minutes, seconds = divmod(int(now - self._started), 60)
        share = min(99, int(100 * self._passed / self._whole)) if self._whole else 0
        running = [f"{_file(nodeid)} ({now - start:.0f} s)" for nodeid, start in list(self._running.items())]
        waiting = []
        for note in sorted(self.folder.glob("*")):
            # The note is gone if the server has started meanwhile.
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
    """Return a line for each file that exceeded its recorded time and its allowances, scaled to the speed of this
    machine.

    A file without a record counts as recorded with 0 s. The speed is the median ratio of the files with a record of at
    least five seconds.
    """
    ratios = [seconds[file] / spent for file, spent in recorded.items() if spent >= 5 and seconds.get(file)]
    scale = max(1.0, statistics.median(ratios)) if ratios else 1.0
    return [
        f"{file} took {spent:.0f} s; {scale * recorded.get(file, 0.0):.0f} s are on record for a machine this fast; "
        "make it faster, or record the times of a whole run (CONDGRAPH_DURATIONS=write make pytest)"
        for file, spent in sorted(seconds.items())
        if spent > scale * (recorded.get(file, 0.0) + allowances * max(ALLOWANCE, recorded.get(file, 0.0) / 2))
    ]


def long_tests() -> frozenset[str]:
    """Return the tests recorded as long, which `make quick` leaves out."""
    recorded = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    return frozenset(name for name in recorded if "::" in name)


def name_of(nodeid: str) -> str:
    """Return the test of a case: its name without parameters and without the group of its worker."""
    return re.split(r"[\[@]", nodeid, maxsplit=1)[0]


def _file(nodeid: str) -> str:
    return nodeid.partition("::")[0]
