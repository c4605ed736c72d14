"""Queries that are ended: by a deadline, by their caller, by a cancelled task; and answers that are
cut.
"""

from __future__ import annotations

import asyncio
import threading
import time
from importlib import import_module
from threading import Event
from typing import Any

import pytest

import condgraph
from condgraph.engine.errors import CancelledError, DeadlineError, InterruptedQueryError, OptionError
from condgraph.engine.facts import Ref, Statement
from condgraph.graph import Graph

PROGRAM = "FindAll() Relate(next, forward) Relate(next, forward) Relate(next, forward) QueryName()"
STEPS = 5


@pytest.fixture
def graph() -> Graph:
    """A ring of a hundred."""
    found = condgraph.open("memory:")
    found.add([Statement(f"n{i:02}", "next", Ref(f"n{(i + 1) % 100:02}")) for i in range(100)])
    return found


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every operator takes a twentieth of a second; gives the names of those that were begun."""
    begun: list[str] = []
    # The package gives its function of the same name.
    running = import_module("condgraph.engine.execute.run")
    table = running.Run.operators

    def slowed(kind: Any) -> Any:
        operator = table[kind]

        def run(execution: Any, node: Any) -> Any:
            begun.append(kind.__name__)
            time.sleep(0.05)
            return operator(execution, node)

        return run

    monkeypatch.setattr(running.Run, "operators", {kind: slowed(kind) for kind in table})
    return begun


def test_deadline(graph: Graph, slow: list[str]) -> None:
    """A query ends soon after its deadline, not at its end."""
    with pytest.raises(DeadlineError, match="deadline") as caught:
        graph.kopl(PROGRAM, timeout=0.08)
    assert isinstance(caught.value, InterruptedQueryError)
    assert 1 <= len(slow) < STEPS
    assert len(graph.kopl(PROGRAM, timeout=60).texts) == 100


@pytest.mark.parametrize("timeout", [0, -1, -0.5])
def test_deadlines_that_make_no_sense(graph: Graph, timeout: float) -> None:
    """No time at all is a mistake."""
    with pytest.raises(OptionError, match="timeout"):
        graph.kopl(PROGRAM, timeout=timeout)


def test_cancelled_from_another_thread(graph: Graph, slow: list[str]) -> None:
    """The event that a caller sets ends the query between two operators."""
    cancelled = Event()
    timer = threading.Timer(0.08, cancelled.set)
    timer.start()
    with pytest.raises(CancelledError):
        graph.kopl(PROGRAM, cancelled=cancelled)
    assert 1 <= len(slow) < STEPS
    timer.join()


def test_cancelled_before_it_began(graph: Graph, slow: list[str]) -> None:
    """Nothing is run."""
    cancelled = Event()
    cancelled.set()
    with pytest.raises(CancelledError):
        graph.query(PROGRAM, cancelled=cancelled)
    assert slow == []


def test_cancelled_task(graph: Graph, slow: list[str]) -> None:
    """Cancelling the task ends the query in its thread (`CancelledError` inside), and the task as
    asyncio does (outside).
    """
    ended: list[BaseException] = []

    async def main() -> None:
        async with await condgraph.open_async("memory:") as empty:
            empty.graph._storage.snapshot = graph._storage.snapshot
            asked = empty.graph.kopl

            def watched(*args: Any, **options: Any) -> Any:
                try:
                    return asked(*args, **options)
                except BaseException as error:
                    ended.append(error)
                    raise

            empty.graph.kopl = watched  # type: ignore[method-assign]
            task = asyncio.create_task(empty.kopl(PROGRAM))
            await asyncio.sleep(0.08)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            for _ in range(100):
                if ended:
                    break
                await asyncio.sleep(0.02)

    asyncio.run(main())
    assert [type(error) for error in ended] == [CancelledError]
    assert len(slow) < STEPS


def test_timeouts_of_asyncio(graph: Graph, slow: list[str]) -> None:
    """`asyncio.timeout` around a query ends it, too."""

    async def main() -> None:
        client = await condgraph.open_async("memory:")
        client.graph._storage.snapshot = graph._storage.snapshot
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.08):
                await client.kopl(PROGRAM)
        await asyncio.sleep(0.15)

    asyncio.run(main())
    assert len(slow) < STEPS


def test_async_mirrors_sync(graph: Graph, tmp_path: Any) -> None:
    """Every call, side by side, from one loop."""

    async def main() -> None:
        async with await condgraph.open_async(tmp_path / "store") as client:
            graph.export(tmp_path / "ring.jsonl")
            report = await client.load(tmp_path / "ring.jsonl")
            assert report.statements == 100
            answers = await asyncio.gather(*(client.kopl(f"Find(n{i:02}) Relate(next, forward) QueryName()") for i in range(50)))
            assert [answer.texts for answer in answers] == [[f"n{i + 1:02}"] for i in range(50)]
            assert (await client.query("FindAll() Count()")).texts == ["100"]
            assert "Scan" in await client.explain(PROGRAM)
            assert (await client.status(verify=True)).statements == 100
            assert await client.export(tmp_path / "again.jsonl") == graph.export(tmp_path / "ring.jsonl")
            with pytest.raises(DeadlineError):
                await client.kopl(PROGRAM, timeout=1e-9)

    asyncio.run(main())


@pytest.mark.parametrize("limit", [0, 1, 99, 100, 101])
def test_limit(graph: Graph, limit: int) -> None:
    """An answer that was cut says how much is missing; one that was not says nothing."""
    answer = graph.kopl("FindAll() QueryName()", limit=limit)
    assert len(answer.values) == min(limit, 100)
    assert answer.texts == [f"n{i:02}" for i in range(min(limit, 100))]
    assert len(answer.entities) == min(limit, 100)
    assert [warning for warning in answer.warnings if "limit" in warning] == (
        [f"{100 - limit} more value{' is' if limit == 99 else 's are'} not shown (limit {limit})"] if limit < 100 else []
    )
    assert not any("empty" in warning for warning in answer.warnings)


def test_limits_that_make_no_sense(graph: Graph) -> None:
    """Fewer than none is a mistake."""
    with pytest.raises(OptionError, match="limit"):
        graph.kopl("FindAll() QueryName()", limit=-1)


def test_many_threads(graph: Graph) -> None:
    """One graph answers many threads while it is loaded into; each answer is of one generation."""
    wrong: list[Any] = []

    def ask() -> None:
        for _ in range(50):
            answer = graph.kopl(PROGRAM)
            if len(answer.texts) % 100:
                wrong.append(answer.texts)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for part in "abcde":
        graph.add([Statement(f"{part}{i:02}", "next", Ref(f"{part}{(i + 1) % 100:02}")) for i in range(100)])
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(graph.kopl(PROGRAM).texts) == 600
