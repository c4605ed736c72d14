"""Programs at a time compared with graphs that a loop cut at that time: random programs and times on Wikidata12k,
ICEWS14 and the oracle's graph, in process, in the embedded RDF store and in DuckDB.

    CONDGRAPH_DATA=/data python -m benchmarks.true_at --programs 10000 --stores duckdb sparql
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import condgraph
from tests.support.timed_programs import GRAPHS, Embedded, Maker, loaded
from tests.support.true_at import disagreements


def run(name: str, data: Path, programs: int, stores: list[str], seed: int, each: int) -> tuple[int, list[str]]:
    """How many answers were compared, and which differ."""
    graph = loaded(name, data)
    maker, total, wrong, empty = Maker(graph.current, seed), 0, list[str](), Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        others: list[Any] = [Embedded(graph)] if "sparql" in stores else []
        if "duckdb" in stores:
            stored = condgraph.open(f"duckdb:///{folder}/graph.duckdb")
            stored.push(graph)
            others.append(stored)
        if "neo4j" in stores:
            stored = condgraph.open(os.environ["NEO4J_URI"], graph=f"true_at_{name}")
            stored.push(graph)
            others.append(stored)
        begin, done = time.perf_counter(), 0
        while done < programs:
            number = min(each, programs - done)
            asked = [maker.program() for _ in range(number)]
            count, differ = disagreements(graph, asked, [maker.time()], others, lenient=True, tally=empty)
            done, total, wrong = done + number, total + count, [*wrong, *differ]
            print(
                f"{name}: {done:,} programs, {total:,} answers, {len(wrong)} differ, {dict(empty)}, "
                f"{time.perf_counter() - begin:.0f} s",
                flush=True,
            )
            for line in differ[:3]:
                print("  ", line[:600], flush=True)
    return total, wrong


def main() -> None:
    """Run it."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--programs", type=int, default=10_000, help="random programs with times, over all graphs")
    options.add_argument("--each", type=int, default=100, help="programs asked at one time")
    options.add_argument("--graphs", nargs="*", default=list(GRAPHS), choices=GRAPHS)
    options.add_argument("--stores", nargs="*", default=["duckdb", "sparql"], choices=["duckdb", "sparql", "neo4j"])
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args()
    data, differ = Path(os.environ["CONDGRAPH_DATA"]), 0
    for at, name in enumerate(given.graphs):
        share = given.programs // len(given.graphs) + (at < given.programs % len(given.graphs))
        total, wrong = run(name, data, share, given.stores, given.seed + at, given.each)
        differ += len(wrong)
        print(f"{name}: {total:,} answers compared, {len(wrong)} differ")
    sys.exit(bool(differ))


if __name__ == "__main__":
    main()
