"""Graph patterns on a real Neo4j compared with the same in process: hubs of MetaQA and paths of one to three edges.

    python benchmarks/match_neo4j.py DATA [--uri bolt://...] [--sample N] [--version 2026.08.1] [--out DIR]

DATA is the folder with `metaqa`. `tools/neo4j_server.py` starts the server if no address is given. Every pattern runs
several times: the first run of a text includes its planning, the median of the others is the cost from then on. Every
answer is compared with the one in process; times are from triples to solutions. About three minutes.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent), str(Path(__file__).parent.parent / "tools")]

import neo4j_server  # noqa: E402
from machine import markdown, median, percentile, write  # noqa: E402

import condgraph  # noqa: E402
from condgraph.remote_neo4j import Neo4jGraph  # noqa: E402

SEED = 20260917
Triples = list[tuple[str, str, str]]


def hub_patterns() -> list[tuple[str, int, Triples]]:
    """Paths of one to three edges from a node of very many neighbours."""
    found = []
    for name, relation in (("Drama", "has_genre"), ("Horror", "has_genre"), ("1999", "release_year")):
        path = [
            ("UNKNOWN film 1", relation, name),
            ("UNKNOWN film 1", "starred_actors", "UNKNOWN actor 1"),
            ("UNKNOWN film 2", "starred_actors", "UNKNOWN actor 1"),
        ]
        found += [(name, edges, path[:edges]) for edges in (1, 2, 3)]
    return found


def hop_pattern(director: str, edges: int) -> Triples:
    """A path from a director to his films, their actors, and the films of these."""
    path = [
        ("UNKNOWN film 1", "directed_by", director),
        ("UNKNOWN film 1", "starred_actors", "UNKNOWN actor 1"),
        ("UNKNOWN film 2", "starred_actors", "UNKNOWN actor 1"),
    ]
    return path[:edges]


def runs_of(ask: Callable[[], Any], repeat: int) -> tuple[list[float], Any]:
    times, found = [], None
    for _ in range(repeat):
        begin = time.perf_counter()
        found = ask()
        times.append((time.perf_counter() - begin) * 1e3)
    return times, found


def compared(local: Any, remote: Any, pattern: Triples, options: dict[str, Any]) -> tuple[Any, bool]:
    here, there = local.match(pattern, **options), remote.match(pattern, **options)
    return there, (here.hits.totals.tolist(), here.hits.nodes.tolist()) == (there.hits.totals.tolist(), there.hits.nodes.tolist())


def measure(data: Path, uri: str, sample: int, version: str) -> list[dict[str, Any]]:
    local = condgraph.open()
    local.load(data / "metaqa" / "kb.txt", name="metaqa")
    remote = condgraph.open(uri, graph="benchmark of patterns")
    assert isinstance(remote, Neo4jGraph)
    remote.store.delete()
    begin = time.perf_counter()
    remote.push(local)
    loading = time.perf_counter() - begin
    begin = time.perf_counter()
    remote.match([("UNKNOWN film 1", "directed_by", "Clint Eastwood")])
    fetching = time.perf_counter() - begin
    ways: tuple[dict[str, Any], ...] = ({"k": 3}, {"k": None, "group_by": "film 1"})
    asked = [(*hub, options) for hub in hub_patterns() for options in ways]
    # A server that has just started compiles itself: all are asked before any is measured.
    first = [runs_of(lambda p=pattern, o=options: remote.match(p, **o), 9)[0][0] for _, _, pattern, options in asked]
    trips, _ = runs_of(lambda: remote.store.connection.read("RETURN 1", {}), 50)
    rows, wrong = [], 0
    for (name, edges, pattern, options), once in zip(asked, first, strict=True):
        times, _ = runs_of(lambda p=pattern, o=options: remote.match(p, **o), 9)
        found, same = compared(local, remote, pattern, options)
        here, _ = runs_of(lambda p=pattern, o=options: local.match(p, **o), 5)
        wrong += not same
        shown = "first 3" if options["k"] else "all films"
        rows.append([name, edges, shown, len(found), found.report.queries, found.report.rows, once, median(times), median(here)])
    hubs = {
        "title": "Graph patterns on Neo4j: hubs of MetaQA",
        "columns": ["hub", "edges", "asked", "given", "queries", "rows", "first run, ms", "ms", "in process, ms"],
        "rows": rows,
        "notes": [
            f"Neo4j {version}; `RETURN 1` takes {median(trips):.2f} ms. Loading the graph took {loading:.0f} s; fetching the names "
            f"of its 43,000 nodes, and encoding them, {fetching:.1f} s, once. The first run of a text includes its "
            "planning; ms is the median of nine more, after all were asked nine times.",
            f"{len(rows) - wrong} of {len(rows)} answers are the snapshot's, in its order.",
        ],
    }
    snapshot = local.current
    low, high = snapshot.runs(("directed_by",), True, False)[0]
    directors = sorted({snapshot.name(int(n)) for n in snapshot.relation_object[low:high]})
    chosen = random.Random(SEED).sample(directors, min(sample, len(directors)))
    rows, wrong, number = [], 0, 0
    for edges in (1, 2, 3):
        for options in ({"k": 3}, {"k": None, "group_by": ("film 1", "actor 1", "film 2")[edges - 1]}):
            clock, once = [], []
            for director in chosen:
                pattern = hop_pattern(director, edges)
                times, _ = runs_of(lambda p=pattern, o=options: remote.match(p, **o), 4)
                once.append(times[0])
                clock.append(median(times[1:]))
                wrong += not compared(local, remote, pattern, options)[1]
                number += 1
            shown = "first 3" if options["k"] else "all answers"
            rows.append([f"{edges} edges from a director", shown, once[0], median(clock), percentile(clock, 0.95)])
    hops = {
        "title": "Graph patterns on Neo4j: paths on MetaQA",
        "columns": ["pattern", "asked", "first run of the text, ms", "median, ms", "p95, ms"],
        "rows": rows,
        "notes": [f"{len(chosen)} directors; {number - wrong} of {number} answers are the snapshot's, in its order."],
    }
    remote.store.delete()
    return [hubs, hops]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--uri")
    parser.add_argument("--sample", type=int, default=40)
    parser.add_argument("--version", default=neo4j_server.LTS)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with ExitStack() as stack:
        uri = options.uri or stack.enter_context(neo4j_server.Neo4jServer(options.version)).uri
        results = measure(options.data, uri, options.sample, options.version)
    for result in results:
        print(markdown(result))
    print(write("match_neo4j", results, options.out))


if __name__ == "__main__":
    main()
