"""How much is tested: samples in the gate (`make test`), everything with `CONDGRAPH_ALL=1` (`make nightly`); and graphs
that all workers share.

Tests marked `slow` or `data` (complete data sets) are left to the nightly run. Tests that use a server are marked
`service`, here by the names of their fixtures or by hand; `asking.py` fails those without the mark. Tests that read
benchmark data are marked `reads_data`, by their fixtures or by hand.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any, Final, TypeVar

import pytest

import condgraph
from condgraph.graph import Graph
from tests.support import progress

T = TypeVar("T")
#: Whether this is the nightly run.
ALL: Final = os.environ.get("CONDGRAPH_ALL", "0") not in ("", "0")
#: Whether complete data sets are tested as well, which takes hours.
WHOLE: Final = os.environ.get("CONDGRAPH_ALL") == "whole"
_SERVICE: Final = re.compile(
    r"(?:neo4j|arcadedb|virtuoso|oxigraph|fuseki|postgres|mariadb|browser|chromium)\w*|(?:\w+_)?server|\w+_uri|endpoint|served|silent"
)
_DATA: Final = frozenset({"shared", "data", "oracle"})
_REASON: Final = "it is left to the nightly run (CONDGRAPH_ALL=1)"


def by_lane(quick: T, everything: T, whole: T) -> T:
    """Return a quantity for the gate, for the nightly run, or for complete data sets."""
    return whole if WHOLE else everything if ALL else quick


def share_of_today(shares: int) -> int:
    """Return the number of today's share of work that is too long for one night; `CONDGRAPH_SHARE` repeats a share."""
    return int(os.environ.get("CONDGRAPH_SHARE", date.today().toordinal())) % shares


def sample(items: Sequence[T], step: int) -> Sequence[T]:
    """Return every `step`-th item, or all in the nightly run."""
    return items if ALL else items[::step]


def examples(number: int) -> int:
    """Return the number of Hypothesis examples: a third in the gate."""
    return number if ALL else max(10, number // 3)


def mark(items: Sequence[pytest.Item]) -> None:
    """Mark tests that use a server or benchmark data, or take long; skip those that belong to the nightly run."""
    long = progress.long_tests()
    for item in items:
        if progress.name_of(item.nodeid) in long:
            item.add_marker(pytest.mark.long)
        names = getattr(item, "fixturenames", ())
        if any(_SERVICE.fullmatch(name) for name in names):
            item.add_marker(pytest.mark.service)
        if not _DATA.isdisjoint(names):
            item.add_marker(pytest.mark.reads_data)
        if not ALL and (item.get_closest_marker("slow") or item.get_closest_marker("data")):
            item.add_marker(pytest.mark.skip(reason=_REASON))


def group_of(item: pytest.Item) -> str:
    """Return the group of tests that one worker runs: as marked (`xdist_group`), or one that keeps workers from waiting
    for each other and from starting the same servers. Tests that empty a database take turns, and those of a file share
    its servers and browser. Other tests have none.
    """
    if "emptied_neo4j_uri" in getattr(item, "fixturenames", ()):
        return "neo4j native"
    groups = sorted({str(mark.args[0]) for mark in item.iter_markers("xdist_group") if mark.args})
    if groups or item.get_closest_marker("service") is None:
        return "_".join(groups)
    return item.nodeid.partition("::")[0]


def shared_graph(factory: pytest.TempPathFactory, source: Path, **options: Any) -> Graph:
    """Return a graph of one source without problems or warnings; the first worker loads it, and the others open the
    stored one.
    """
    base = factory.getbasetemp()
    root = (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / "graphs"
    root.mkdir(exist_ok=True)
    name = re.sub(r"\W+", "-", "-".join([source.parent.name, source.name, *map(str, options.values())]))
    path, marker = root / name, root / f"{name}.done"
    with (root / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not marker.exists():
            report = condgraph.open(path).load(source, **options)
            assert not report.problems
            assert not report.warnings
            marker.touch()
    return condgraph.open(path)
