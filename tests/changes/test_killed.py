"""A change that is killed leaves the old graph or the new one, and readers never see another."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import condgraph
from condgraph.engine.facts import Entity, Member, Ref, Statement
from condgraph.engine.values import Quantity
from condgraph.graph import Graph
from tests.snapshot.test_killed import kill_before
from tests.support.changing import exported
from tests.support.lanes import ALL, sample

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
A: list[Any] = [Entity("x", "Old"), *(Statement(f"a{i % 50}", "p", Quantity(i), (("q", Ref("x")),), i) for i in range(300))]
A2: list[Any] = [Entity("x", "New"), *(Statement(f"a{i % 40}", "p", Quantity(i), (("q", Ref("x")),), i) for i in range(100, 500))]
B: list[Any] = [Statement(f"a{i}", "p", Quantity(i), (("q", Ref("x")),), i) for i in range(20)] + [Member("a1", "thing")]

CHANGES: dict[str, Callable[[Graph], object]] = {
    "replace": lambda graph: graph.add(A2, source="a", replace=True),
    "append": lambda graph: graph.add(A2, source="a"),
    "unload": lambda graph: graph.unload("a"),
}


def made(place: Any = "memory:") -> Graph:
    graph = condgraph.open(place)
    graph.add(A, source="a")
    graph.add(B, source="b")
    return graph


def killed(place: Path, change: Callable[[Graph], object], before: int) -> bool:
    """Whether a change in another process got to its end, before it was to be killed."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            graph = condgraph.open(place)
            kill_before(before)
            change(graph)
            status = 0
        finally:
            os._exit(status)
    _, how = os.waitpid(child, 0)
    assert how in (0, signal.SIGKILL), how
    return how == 0


@pytest.mark.parametrize("what", list(CHANGES))
def test_before_every_step(what: str, tmp_path: Path) -> None:
    change, old = CHANGES[what], exported(made())
    there = made()
    change(there)
    new, seen = exported(there), Counter[bool]()
    for number in sample(range(1, 200), 3):
        place = tmp_path / str(number)
        made(place)
        done = killed(place, change, number)
        with condgraph.open(place) as graph:
            found = exported(graph)
            graph.status(verify=True)
            assert found in (old, new)
            assert found == new or not done
            seen[found == new] += 1
            # The next writer goes on from what is there.
            graph.unload("b")
            graph.add(B, source="b")
            assert graph.kopl("FindAll() FilterConcept(thing) QueryName()").texts == ["a1"]
        if done:
            break
    else:
        pytest.fail("the change never got through")
    assert seen[False] >= 2
    assert seen[True] >= 1


def test_readers_see_the_old_or_the_new(tmp_path: Path) -> None:
    """Readers in this process, while another one replaces a source again and again."""
    made(tmp_path / "store").close()
    old = exported(made())
    there = made()
    CHANGES["replace"](there)
    new = exported(there)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            with condgraph.open(tmp_path / "store") as graph:
                for items in [A2, A] * (40 if ALL else 8):
                    graph.add(items, source="a", replace=True)
            status = 0
        finally:
            os._exit(status)
    seen: Counter[bool] = Counter()
    with condgraph.open(tmp_path / "store", read_only=True) as reader:
        kept = reader.snapshot()
        while not (ended := os.waitpid(child, os.WNOHANG))[0]:
            reader.refresh()
            found = exported(reader)
            assert found in (old, new)
            seen[found == new] += 1
        assert ended[1] == 0
        # A snapshot that was taken before stays as it was.
        assert exported(kept) == old
    assert seen[True]
    assert seen[False]
