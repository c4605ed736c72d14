"""What every test shares: folders of benchmark data, Hypothesis settings, and a last line that says
what was skipped and why.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from condgraph.engine import stored_answer
from tests.support import asking, lanes, neo4j_servers, progress
from tests.support.asking import pytest_runtest_protocol, pytest_runtest_teardown
from tests.support.neo4j_servers import each_neo4j_uri, emptied_neo4j_uri, neo4j_uri, neo4j_version
from tests.support.servers import arcadedb_address, arcadedb_server
from tests.support.sparql_servers import fuseki_server, oxigraph_server, virtuoso_server

__all__ = [
    "arcadedb_address",
    "arcadedb_server",
    "each_neo4j_uri",
    "emptied_neo4j_uri",
    "fuseki_server",
    "neo4j_uri",
    "neo4j_version",
    "oxigraph_server",
    "pytest_runtest_protocol",
    "pytest_runtest_teardown",
    "virtuoso_server",
]

asking.listen()

# Machines that run tests are shared and slow at times; a deadline would test the machine.
stored_answer.EXPLAINING = (300.0, 300.0)  # type: ignore[misc]
# CI tries the same examples each time, so that a change is judged by what it changes; everybody else tries
# new ones, fewer where little is asked for.
settings.register_profile("condgraph", deadline=None, max_examples=lanes.examples(100))
settings.register_profile("ci", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ci" if os.environ.get("CI") else "condgraph")


def _shared(*parts: str) -> Path:
    path = asking.benchmark_data().joinpath(*parts)
    if not path.exists():
        pytest.skip(f"CONDGRAPH_DATA has no {'/'.join(parts)}")
    return path


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder named by CONDGRAPH_DATA, which holds `data` and `oracle`."""
    return _shared()


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of benchmark data, one folder a data set."""
    return _shared("data")


@pytest.fixture(scope="session")
def oracle() -> Path:
    """The folder of programs whose answers an independent engine computed."""
    return _shared("oracle")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests of servers are marked, and what takes long is left out unless everything is asked for."""
    lanes.mark(items)
    if getattr(config.option, "loadgroup", False):
        _group(items)


def _group(items: list[pytest.Item]) -> None:
    """Keep tests of one group on one worker: pytest 9.2 no longer reads the attribute in which
    pytest-xdist 3.8 says the group.
    """
    try:
        from _pytest.nodeid import coerce_node_id
    except ImportError:
        return
    for item in items:
        group = lanes.group_of(item)
        if group and hasattr(item, "_id") and "@" not in item.nodeid.rpartition("]")[2]:
            item._id = coerce_node_id(f"{item.nodeid}@{group}")


def pytest_configure(config: pytest.Config) -> None:
    """Where workers run the tests, lines of progress say how far they are."""
    if not hasattr(config, "workerinput") and getattr(config.option, "numprocesses", None) and not config.option.collectonly:
        folder = Path(tempfile.mkdtemp(prefix="condgraph-starting-"))
        config.pluginmanager.register(progress.Progress(config, folder), "condgraph-progress")


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """A file of tests that cannot be imported fails. `--doctest-ignore-import-errors`, which is for modules of extras,
    skips it, and pytest then takes the half imported module for all of it.
    """
    report = yield
    if report.skipped and collector.path.is_relative_to(Path(__file__).parent) and "unable to import" in str(report.longrepr):
        report.outcome, report.longrepr = "failed", f"cannot import {collector.path}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """The start of a server is no time of the file that comes first."""
    report = yield
    progress.set_waited(report)
    return report


def pytest_unconfigure(config: pytest.Config) -> None:
    """Print, after everything else, which files took longest, and one line that counts the skipped tests by reason."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or hasattr(config, "workerinput") or config.option.collectonly:
        return
    if (plugin := config.pluginmanager.get_plugin("condgraph-progress")) is not None:
        shutil.rmtree(plugin.folder, ignore_errors=True)
        longest = "; ".join(f"{file} {took:.0f} s" for file, took in plugin.seconds.most_common(25))
        reporter.write_line(f"longest: {longest}")
        for line in plugin.slower:
            reporter.write_line(line, red=True)
    given = os.environ.get("NEO4J_URI") or os.environ.get("NEO4J_URL")
    for line in [f"Neo4j at {given}, as NEO4J_URI says"] if given else neo4j_servers.stop_all():
        reporter.write_line(line)
    reasons: Counter[str] = Counter()
    for report in reporter.stats.get("skipped", []):
        text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        reasons[re.sub(r"^Skipped: ", "", text)] += 1
    skipped = "; ".join(f"{count} because {reason}" for reason, count in reasons.most_common())
    reporter.write_line(f"skipped: {skipped}" if skipped else "skipped: nothing")
