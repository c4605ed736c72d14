"""Programs as of a time, compared with a graph without the statements that do not count then, removed one by one."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import condgraph
from condgraph.engine.errors import CondgraphError
from condgraph.engine.facts import Sourced, Statement
from condgraph.engine.snapshot.readback import items
from condgraph.engine.store import plan_answer
from condgraph.engine.values import UNKNOWN, Time
from condgraph.languages.registry import detect, lower
from condgraph.snapshot_store import SnapshotStore


def counts(statement: Statement, time: Time, certain: bool) -> bool:
    """Return whether a statement counts at a time: a second implementation of
    `docs/how-to/ask-what-was-true-at-a-time.md`.
    """

    def stated(name: str) -> list[Any]:
        return [value for key, value in statement.qualifiers if key == name and (value is UNKNOWN or isinstance(value, Time))]

    starts, ends = stated("start time"), stated("end time")
    if not starts and not ends:
        starts = ends = stated("point in time")
    if not starts and not ends:
        return True
    first = None if not starts or UNKNOWN in starts else min(period.start for period in starts)
    last = None if not ends or UNKNOWN in ends else max(period.end for period in ends)
    if certain:
        return first is not None and last is not None and first <= time.start and last >= time.end
    return (first is None or first < time.end) and (last is None or last > time.start)


def cut_by_hand(graph: condgraph.Graph, time: Time, certain: bool) -> condgraph.Graph:
    """Return the graph without the statements that do not count."""

    def remaining() -> Iterator[Any]:
        for item in items(graph.current):
            inner = item.item if isinstance(item, Sourced) else item
            if not isinstance(inner, Statement) or counts(inner, time, certain):
                yield item
        # Entities that only statements mention.
        for number in range(graph.current.entities):
            yield graph.current.entity(number)

    result = condgraph.Graph()
    result.add(remaining())
    return result


def shown(answer: Any) -> tuple[Any, ...]:
    """Return what a user gets, independent of order; rows of a database have no numbers."""
    return (
        sorted(re.sub(r"row=\d+", "row=0", repr(value)) for value in answer.values),
        sorted(answer.texts),
        sorted(entity.id for entity in answer.entities),
    )


#: The results of empty answers.
_EMPTY = (([], [], []), (["Quantity(number=0, unit='1')"], ["0"], []), (["0"], ["0"], []))


def disagreements(
    graph: condgraph.Graph,
    asked: Sequence[Any],
    times: Sequence[tuple[Time, bool]],
    others: Sequence[condgraph.Graph] = (),
    *,
    each: int = 0,
    seed: int = 0,
    lenient: bool = False,
    tally: Counter[str] | None = None,
) -> tuple[int, list[str]]:
    """Return how many programs were compared, and those with different answers: `graph` and `others` (the same graph on
    other stores) as of a time, against the plan of the program on the reduced graph. `each` programs are run for each
    time, chosen at random. With `lenient`, a program may fail if it fails everywhere with the same error. `tally`
    counts the answers that are empty, that have something, and errors.
    """
    dice, count, problems = random.Random(seed), 0, list[str]()
    for time, certain in times:
        cut = SnapshotStore(cut_by_hand(graph, time, certain).current)
        for program in dice.sample(asked, each) if each and each < len(asked) else asked:
            language = detect(program)
            try:
                plan = lower(graph.current.schema, program, language, {}).plan
                expected: Any = shown(plan_answer(cut, plan))
            except CondgraphError as error:
                if not each and not lenient:
                    # Programs listed by a test must be valid.
                    raise
                expected = type(error).__name__
            if tally is not None:
                tally["error" if isinstance(expected, str) else "empty" if expected in _EMPTY else "something"] += 1
            for store in (graph, *others):
                try:
                    actual: Any = shown(store.query(program, at=time, certain=certain))
                except CondgraphError as error:
                    actual = type(error).__name__
                count += 1
                if actual != expected:
                    problems.append(f"{store.place} at {time}, certain={certain}: {program!r}: {actual} and not {expected}")
    return count, problems
