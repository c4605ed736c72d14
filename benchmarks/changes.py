"""The cost of changing the sources of a graph in a folder, compared with writing its generation anew:

    python benchmarks/changes.py [ROWS]

Two tables, one of ROWS rows (100,000) of ten columns, one of a hundredth of that. Seconds, the best of three.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import condgraph
from condgraph.engine.facts import Statement


def table(file: Path, rows: int, shift: int = 0) -> Path:
    """A table of ten columns of numbers and texts."""
    with file.open("w") as out:
        out.write(",".join(f"c{i}" for i in range(10)) + "\n")
        for row in range(rows):
            out.write(
                ",".join(f"{row * 7 % 1000 + shift}" if i % 2 else f"text {(row * i + shift) % 5000}" for i in range(10)) + "\n"
            )
    return file


def best(act: Callable[[], object]) -> float:
    """The least seconds of three."""
    found = []
    for _ in range(3):
        begin = time.perf_counter()
        act()
        found.append(time.perf_counter() - begin)
    return min(found)


def main(rows: int) -> None:
    """Print a line for each change."""
    folder = Path(tempfile.mkdtemp())
    large, small = table(folder / "large.csv", rows), table(folder / "small.csv", rows // 100)
    graph = condgraph.open(folder / "store")
    begin = time.perf_counter()
    graph.load([large, small])
    print(f"{'first load':32}{time.perf_counter() - begin:8.2f}")
    counts = graph.status().counts
    print(f"{'statements':32}{counts['relations'] + counts['attributes']:>8,}")
    numbers = iter(range(1_000_000))
    print(f"{'a generation anew (one fact)':32}{best(lambda: graph.add([Statement('x', 'p', str(next(numbers)))])):8.2f}")
    print(f"{'replace the small source':32}{best(lambda: graph.load(small, replace=True)):8.2f}")

    def unload_small() -> None:
        graph.unload("small")

    seconds = []
    for _ in range(3):
        begin = time.perf_counter()
        unload_small()
        seconds.append(time.perf_counter() - begin)
        graph.load(small)
    print(f"{'unload the small source':32}{min(seconds):8.2f}")
    print(f"{'replace the large source':32}{best(lambda: graph.load(large, replace=True)):8.2f}")
    begin = time.perf_counter()
    graph.unload("large")
    print(f"{'unload the large source':32}{time.perf_counter() - begin:8.2f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
