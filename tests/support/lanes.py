"""How much is tested: samples as a rule, everything with `CONDGRAPH_ALL=1` (as CI sets it); graphs
that all workers share.

Tests marked `slow` or `data` (whole data sets) are left out but for everything; tests that ask for
a server are marked `service`: by the names of their fixtures here, or where they stand. `asking.py`
fails those that are not. CI has some time for the three kinds: `CONDGRAPH_UNTIL` says when it is
over, in seconds of the clock; what has not begun by then is left out, which the last line says.
"""

from __future__ import annotations

import fcntl
import os
import re
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import pytest

import condgraph
from condgraph.graph import Graph

T = TypeVar("T")
#: Whether everything is asked for.
ALL: Final = os.environ.get("CONDGRAPH_ALL", "0") not in ("", "0")
#: Whether that is asked for which takes an hour as well.
WHOLE: Final = os.environ.get("CONDGRAPH_ALL") == "whole"
_SERVICE: Final = re.compile(
    r"(?:neo4j|virtuoso|oxigraph|fuseki|postgres|mariadb|browser|chromium)\w*|(?:\w+_)?server|\w+_uri|endpoint|served|silent"
)
#: When tests that take long no longer begin.
_UNTIL: Final = float(os.environ.get("CONDGRAPH_UNTIL") or "inf")
_REASON: Final = "CONDGRAPH_ALL=1 is not set, which tests whole data sets and what takes long"


def by_lane(quick: T, everything: T, whole: T) -> T:
    """How much of something heavy: by itself, where everything is asked for, where the whole is."""
    return whole if WHOLE else everything if ALL else quick


def sample(items: Sequence[T], step: int) -> Sequence[T]:
    """Every `step`-th item, spread over all; all of them where everything is asked for."""
    return items if ALL else items[::step]


def examples(number: int) -> int:
    """How many examples Hypothesis makes up: a third where little is asked for."""
    return number if ALL else max(10, number // 3)


def mark(items: Sequence[pytest.Item]) -> None:
    """Mark tests that ask for a server; leave out what is only part of everything."""
    for item in items:
        if any(_SERVICE.fullmatch(name) for name in getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.service)
        if not ALL and (item.get_closest_marker("slow") or item.get_closest_marker("data")):
            item.add_marker(pytest.mark.skip(reason=_REASON))


def in_time(item: pytest.Item) -> None:
    """Leave a test out that takes long, or may, where the time for such tests is over: a slow machine then
    still says of all others whether they pass.
    """
    if time.time() > _UNTIL and any(item.get_closest_marker(name) for name in ("service", "slow", "data")):
        pytest.skip("CONDGRAPH_UNTIL is over: THIS MACHINE WAS TOO SLOW FOR ALL TESTS OF SERVERS AND DATA SETS")


def longest(reports: Mapping[str, Sequence[Any]], number: int = 25) -> list[str]:
    """The files whose tests took longest, with their seconds; fixtures count where they were made."""
    seconds: Counter[str] = Counter()
    for report in (one for some in reports.values() for one in some if hasattr(one, "duration")):
        seconds[report.nodeid.partition("::")[0]] += report.duration
    return [f"{file} {took:.0f} s" for file, took in seconds.most_common(number)]


def shared_graph(factory: pytest.TempPathFactory, source: Path, **options: Any) -> Graph:
    """A graph of one source without problems or warnings, loaded by the first worker that asks; the
    others open what it left.
    """
    base = factory.getbasetemp()
    root = (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / "graphs"
    root.mkdir(exist_ok=True)
    name = re.sub(r"\W+", "-", "-".join([source.parent.name, source.name, *map(str, options.values())]))
    place, done = root / name, root / f"{name}.done"
    with (root / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            report = condgraph.open(place).load(source, **options)
            assert not report.problems
            assert not report.warnings
            done.touch()
    return condgraph.open(place)
