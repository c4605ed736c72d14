"""What fails is said when it fails: a run that is stopped by its time never comes to pytest's own summary.

`tests/conftest.py` registers `AtOnce` where `CI` is set.
"""

from __future__ import annotations

from typing import Final

import pytest

#: Lines of a failure's text that are shown: its end, where the error stands.
_LINES: Final = 12


class AtOnce:
    """A plugin that writes the name of each failed test, and the end of what it says, when it is heard of."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write one test's failure."""
        terminal = self._config.pluginmanager.get_plugin("terminalreporter")
        if terminal is None or not report.failed:
            return
        terminal.write_line("")
        terminal.write_line(f"FAILED {report.nodeid} ({report.when})", red=True)
        for line in report.longreprtext.splitlines()[-_LINES:]:
            terminal.write_line(f"  {line}")
