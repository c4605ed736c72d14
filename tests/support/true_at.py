"""Programs as of a time, against a graph from which a loop over its statements cut all others."""

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
    """Whether a statement counts at a time: what `docs/how-to/ask-what-was-true-at-a-time.md` says, written down once more."""

    def stated(name: str) -> list[Any]:
        return [value for key, value in statement.qualifiers if key == name and (value is UNKNOWN or isinstance(value, Time))]

    starts, ends = stated("start time"), stated("end time")
    if not starts and not ends:
        starts = ends = stated("point in time")
    if not starts and not ends:
        return True
    first = None if not starts or UNKNOWN in starts else min(one.start for one in starts)
    last = None if not ends or UNKNOWN in ends else max(one.end for one in ends)
    if certain:
        return first is not None and last is not None and first <= time.start and last >= time.end
    return (first is None or first < time.end) and (last is None or last > time.start)


def cut_by_hand(graph: condgraph.Graph, time: Time, certain: bool) -> condgraph.Graph:
    """The graph without the statements that do not count, one by one."""

    def kept() -> Iterator[Any]:
        for item in items(graph.current):
            inner = item.item if isinstance(item, Sourced) else item
            if not isinstance(inner, Statement) or counts(inner, time, certain):
                yield item
        # Those that nothing but a statement mentions.
        for number in range(graph.current.entities):
            yield graph.current.entity(number)

    result = condgraph.Graph()
    result.add(kept())
    return result


def shown(answer: Any) -> tuple[Any, ...]:
    """What a user gets, in an order of its own; rows of a database have no numbers."""
    return (
        sorted(re.sub(r"row=\d+", "row=0", repr(value)) for value in answer.values),
        sorted(answer.texts),
        sorted(entity.id for entity in answer.entities),
    )


#: What answers without anything show.
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
    """How many programs were compared, and those whose answers differ: `graph` and `others` (the same
    graph on other stores) as of a time, against the plan of the program on the graph that was cut. `each` is how
    many programs are asked at a time, in a random choice. With `lenient` a program may be an error, which is to be the
    same everywhere. `tally` counts the answers that are empty, that have something, and errors.
    """
    chosen, count, wrong = random.Random(seed), 0, list[str]()
    for time, certain in times:
        cut = SnapshotStore(cut_by_hand(graph, time, certain).current)
        for program in chosen.sample(asked, each) if each and each < len(asked) else asked:
            language = detect(program)
            try:
                plan = lower(graph.current.schema, program, language, {}).plan
                expected: Any = shown(plan_answer(cut, plan))
            except CondgraphError as error:
                if not each and not lenient:
                    # Programs that a test lists are right.
                    raise
                expected = type(error).__name__
            if tally is not None:
                tally["error" if isinstance(expected, str) else "empty" if expected in _EMPTY else "something"] += 1
            for place in (graph, *others):
                try:
                    found: Any = shown(place.query(program, at=time, certain=certain))
                except CondgraphError as error:
                    found = type(error).__name__
                count += 1
                if found != expected:
                    wrong.append(f"{place.place} at {time}, certain={certain}: {program!r}: {found} and not {expected}")
    return count, wrong
