"""The cost of single changes: one change, opening and the first query after it, a change followed by a query, and
queries with and without changes that wait to be merged.

    python benchmarks/edits.py 100000 1000000
    python benchmarks/edits.py --at bolt://127.0.0.1:7687 100000

The second form measures a graph on a server: the first change of a process, and further ones.
"""

from __future__ import annotations

import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import condgraph
from condgraph.engine.facts import Batch, Ids, Numbers
from condgraph.storage import MAX_WAITING

QUERIES = (
    "Find(e{0}) QueryAttr(size)",
    "Find(e{0}) Relate(next, forward) QueryName()",
    "FindAll() FilterNum(size, {0}, <) Count()",
)


def load(graph: condgraph.Graph, statements: int) -> int:
    """Load relations and attributes, half of each; how many entities there are."""
    count = statements // 4
    dice = np.random.default_rng(1)
    ids = [f"e{number}" for number in range(count)]
    rows = np.arange(1, count + 1)
    batches = []
    for predicate in ("next", "near"):
        ends = [ids[at] for at in dice.integers(0, count, count)]
        batches.append(Batch(ids, predicate, Ids(ends), rows))
    for predicate in ("size", "weight"):
        batches.append(Batch(ids, predicate, Numbers(dice.integers(0, 1000, count).astype(np.float64)), rows))
    graph.add(batches, source="made")
    return count


def milliseconds(call: object, times: int, clock: Callable[[], float] = time.perf_counter) -> float:
    """The median of some calls."""
    taken = []
    for _ in range(times):
        begin = clock()
        call()  # type: ignore[operator]
        taken.append((clock() - begin) * 1000)
    return statistics.median(taken)


def measure(statements: int) -> None:
    """Print a row of the table."""
    folder = Path(tempfile.mkdtemp())
    dice = random.Random(1)
    try:
        writer = condgraph.open(folder)
        count = load(writer, statements)
        reader = condgraph.open(folder, read_only=True)

        def queries(graph: condgraph.Graph) -> list[float]:
            return [milliseconds(lambda text=text: graph.kopl(text.format(dice.randrange(1, count))).texts, 50) for text in QUERIES]

        queries(reader)
        numbers = iter(range(10**6))
        one = milliseconds(lambda: writer.add(f"e{dice.randrange(count)}", "size", 2000 + next(numbers)), 30)
        used = milliseconds(lambda: writer.add(f"e{dice.randrange(count)}", "size", 2000 + next(numbers)), 30, time.process_time)
        begin = time.process_time()
        changed = condgraph.open(folder, read_only=True)
        _ = changed.kopl(QUERIES[0].format(1)).texts
        first = (time.process_time() - begin) * 1000

        def in_turn(text: str) -> None:
            writer.add(f"e{dice.randrange(count)}", "size", 2000 + next(numbers))
            _ = writer.kopl(text.format(dice.randrange(1, count))).texts

        turns = [milliseconds(lambda text=text: in_turn(text), 5, time.process_time) for text in QUERIES]
        queries(changed)
        # In turns, as the machine may be busy.
        pairs = [(queries(reader), queries(changed)) for _ in range(5)]
        plain, beside = ([statistics.median(row[i] for row in side) for i in range(3)] for side in zip(*pairs, strict=True))
        texts = [f"{before:.2f} → {after:.2f}" for before, after in zip(plain, beside, strict=True)]
        print(f"| {statements:,} | {one:.1f} ({used:.1f}) | {first:.0f} | " + " | ".join(texts) + " |", flush=True)
        for _ in range(MAX_WAITING - len(writer.edits()) - 4):
            writer.add(f"e{dice.randrange(count)}", "size", 2000 + next(numbers))
        many = milliseconds(lambda: in_turn(QUERIES[0]), 3, time.process_time)
        texts = [f"{turn:.0f}" for turn in (*turns, many)]
        merging = milliseconds(lambda: in_turn(QUERIES[0]), 1, time.process_time)
        print(f"| {statements:,} | " + " | ".join(texts) + f" | {merging:,.0f} |", flush=True)
    finally:
        shutil.rmtree(folder)


def measure_server(place: str, statements: int, **options: str) -> None:
    """Print a row of the table of servers."""
    with condgraph.open(place, graph="edits", **options) as graph:
        graph.delete()
        try:
            count = load(graph, statements)
            numbers = iter(range(10**6))
            first, *others = (
                milliseconds(lambda: graph.add(f"e{7 * next(numbers)}", "size", 2000 + next(numbers)), 1) for _ in range(6)
            )
            assert count
            print(f"| {place.split(':')[0]} | {statements:,} | {first:.0f} | {statistics.median(others):.0f} |", flush=True)
        finally:
            graph.delete()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--at"]:
        address = sys.argv[2]
        update = {"update": address.removeprefix("sparql+").replace("/query", "/update")} if address.startswith("sparql") else {}
        for size in sys.argv[3:]:
            measure_server(address, int(size), **update)
    else:
        for size in sys.argv[1:] or ["100000"]:
            measure(int(size))
