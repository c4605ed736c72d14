"""A load that is killed leaves the old graph or the new one, and the next load works.

The victim is a forked process. It is killed before each thing it does to files in turn, then at
random moments.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any, NoReturn

import pytest

import condgraph
from condgraph.engine.facts import Statement
from condgraph.engine.snapshot.directory import graph_directory
from condgraph.engine.values import Quantity
from tests.support.canonical import Contents, contents, contents_of
from tests.support.lanes import ALL, sample

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")

OLD: list[Any] = [Statement(f"s{i}", "old", Quantity(i)) for i in range(20)]
NEW: list[Any] = [Statement(f"s{i % 500}", f"new {i % 7}", Quantity(i), (("n", f"text {i}"),)) for i in range(4000)]
MORE: list[Any] = [Statement("s1", "more", "text")]
#: What changes files: everything else that a load does is between two of these.
EVENTS = frozenset({"open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.truncate", "mmap.__new__", "shutil.rmtree"})


def die() -> NoReturn:
    """Go at once, without a chance to tidy up."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("unreachable")


def kill_before(event_number: int) -> None:
    """Die before the n-th event; cannot be taken back in this process."""
    left = event_number

    def hook(event: str, _: tuple[Any, ...]) -> None:
        nonlocal left
        if event in EVENTS:
            left -= 1
            if left == 0:
                die()

    sys.addaudithook(hook)


def load_in_a_fork(store: Path, items: list[Any], *, before: int | None = None, after: float | None = None) -> bool:
    """Load in another process, killed before an event or after some seconds; whether it got to its
    end.
    """
    child = os.fork()
    if child == 0:
        status = 1
        try:
            graph = condgraph.open(store)
            if before is not None:
                kill_before(before)
            graph.add(items)
            status = 0
        finally:
            os._exit(status)
    if after is not None:
        time.sleep(after)
        os.kill(child, signal.SIGKILL)
    _, how = os.waitpid(child, 0)
    assert how in (0, signal.SIGKILL), how
    return how == 0


def check(store: Path, old: Contents, new: Contents, done: bool) -> str:
    """Open what is left, and load something into it; says which graph was there."""
    graph = condgraph.open(store)
    found = contents_of(graph) if graph._storage.snapshot is not None else contents([])
    if graph._storage.snapshot is not None:
        graph.status(verify=True)
    assert found in (old, new)
    assert found == new or not done
    graph.add(MORE)
    after = contents_of(condgraph.open(store))
    assert after.statements.keys() == found.statements.keys() | contents(MORE).statements.keys()
    left = sorted(path.name for path in graph_directory(store, "default").iterdir())
    assert [name for name in left if not name.startswith("g0")] == ["lock", "manifest.json"]
    assert len(left) == 3
    return "new" if found == new else "old"


@pytest.mark.parametrize("first", [True, False], ids=["into nothing", "into a graph"])
def test_before_every_step(first: bool, tmp_path: Path) -> None:
    """Killed before the first file is opened, before the second (as a rule every third), and so on
    until a load gets through.
    """
    seen: Counter[str] = Counter()
    kept = [] if first else OLD
    for number in sample(range(1, 200), 3):
        store = tmp_path / str(number)
        if not first:
            condgraph.open(store).add(OLD)
        done = load_in_a_fork(store, NEW, before=number)
        seen[check(store, contents(kept), contents([*kept, *NEW]), done)] += 1
        if done:
            break
    else:
        pytest.fail("the load never got through")
    # The switch is one step: there are moments before it and moments after it.
    assert seen["old"] >= (5 if ALL else 2)
    assert seen["new"] >= (3 if ALL else 1)


@pytest.mark.slow
def test_at_random_moments(tmp_path: Path) -> None:
    """Fifty loads, killed at moments spread over the time that one takes."""
    condgraph.open(tmp_path / "clock").add(OLD)
    begin = time.perf_counter()
    assert load_in_a_fork(tmp_path / "clock", NEW)
    takes = time.perf_counter() - begin
    rng = random.Random(5)
    seen: Counter[str] = Counter()
    for number in range(50):
        store = tmp_path / str(number)
        condgraph.open(store).add(OLD)
        # The time a load takes varies; late moments are tried longer, so that some come after the
        # switch.
        done = load_in_a_fork(store, NEW, after=takes * rng.uniform(0, 1.3 if number % 5 else 4))
        seen[check(store, contents(OLD), contents([*OLD, *NEW]), done)] += 1
    print(dict(seen))
    assert seen["old"] > 0
    assert seen["new"] > 0


def test_again_and_again(tmp_path: Path) -> None:
    """One store that is killed over and over keeps all that was ever finished."""
    condgraph.open(tmp_path).add(OLD)
    rng = random.Random(6)
    finished = set(contents(OLD).statements)
    possible = set(finished)
    for number in range(20):
        batch: list[Any] = [Statement(f"s{i}", f"batch {number}", Quantity(i)) for i in range(50)]
        done = load_in_a_fork(tmp_path, batch, before=rng.randrange(1, 40))
        possible |= contents(batch).statements.keys()
        found = contents_of(condgraph.open(tmp_path)).statements.keys()
        if done:
            finished |= contents(batch).statements.keys()
        assert finished <= found <= possible
        finished = set(found)
