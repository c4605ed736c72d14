"""KoPL programs as one Cypher query each on a real Neo4j, compared with `RETURN 1` on the same connection.

    python benchmarks/cypher.py --data DIR [--uri bolt://...] [--every N]

DIR holds `oracle/`. `tools/neo4j_server.py` starts the server if no address is given. Every program runs twice, with
`RETURN 1` between the programs: the first run of a text includes its planning, the second is the cost from then on.
Every answer is compared with the one computed in process. As a baseline, each program also runs a step at a time, as
the code of the papers does: one query for each step, with the entities of the steps before it (its second run is
timed as well).
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent / "tools")]

import neo4j_server  # noqa: E402

import condgraph  # noqa: E402
from condgraph.cypher.compile.plan import compile_plan  # noqa: E402
from condgraph.engine import algebra as alg  # noqa: E402
from condgraph.engine.algebra import Node  # noqa: E402
from condgraph.engine.passes import optimise  # noqa: E402
from condgraph.languages.kopl.lower import lower  # noqa: E402
from condgraph.remote_neo4j import Neo4jGraph  # noqa: E402


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def step_at_a_time(remote: Neo4jGraph, steps: Sequence[tuple[str, Node]]) -> None:
    """Run one query a step; a step is given the ids that earlier ones found."""
    store = remote.store
    known: dict[Node, Node] = {}
    for _, node in steps:
        compiled = compile_plan(optimise(given(node, known))[0], store.name, store.schema)
        rows = store.connection.read(compiled.text, compiled.parameters)
        if isinstance(node, alg.Entities):
            known[node] = alg.ById(tuple(sorted({ident for row in rows for ident, *_ in row["rows"]})))


def given(node: Any, known: dict[Node, Node]) -> Any:
    """A plan in which what is known already stands as ids."""
    if isinstance(node, tuple):
        return tuple(given(one, known) for one in node)
    if not is_dataclass(node) or isinstance(node, type):
        return node
    if isinstance(node, Node) and node in known:
        return known[node]
    if not isinstance(node, (Node, alg.Among)):
        return node
    changed = {one.name: given(getattr(node, one.name), known) for one in fields(node) if one.init}
    return replace(node, **changed)


def measure(data: Path, uri: str, every: int) -> dict[str, Any]:
    local = condgraph.open()
    local.load(data / "oracle" / "kb.json")
    remote = condgraph.open(uri, graph="benchmark")
    assert isinstance(remote, Neo4jGraph)
    remote.store.delete()
    begin = time.perf_counter()
    remote.push(local)
    loading = time.perf_counter() - begin
    with (data / "oracle" / "programs_dev.jsonl").open(encoding="utf-8") as lines:
        programs = [json.loads(line) for line in lines][::every]
    times: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    trips: list[float] = []
    different = 0
    for record in programs:
        lowered = lower(record["program"], remote.store.schema)  # type: ignore[arg-type]
        compiled = compile_plan(optimise(lowered.plan)[0], "benchmark", remote.store.schema)
        runs = []
        for _ in range(2):
            begin = time.perf_counter()
            remote.store.connection.read(compiled.text, compiled.parameters)
            runs.append(time.perf_counter() - begin)
        steps = []
        for _ in range(2):
            begin = time.perf_counter()
            step_at_a_time(remote, lowered.steps)
            steps.append(time.perf_counter() - begin)
        times[record["kind"]].append((runs[0], runs[1], steps[1]))
        begin = time.perf_counter()
        remote.store.connection.read("RETURN 1 AS one", {})
        trips.append(time.perf_counter() - begin)
        different += remote.kopl(record["program"]).texts != local.kopl(record["program"]).texts
    trip = statistics.median(trips)
    rows = []
    for kind, found in [*sorted(times.items()), ("all", [pair for pairs in times.values() for pair in pairs])]:
        first, second = [pair[0] for pair in found], [pair[1] for pair in found]
        median, tail = statistics.median(second), percentile(second, 0.95)
        rows.append(
            [
                kind,
                len(found),
                round(median * 1e3, 2),
                round(median / trip, 2),
                round(tail * 1e3, 2),
                round(tail / trip, 1),
                round(statistics.median(first) * 1e3, 1),
                round(statistics.median(pair[2] for pair in found) * 1e3, 2),
            ]
        )
    statements = local.status().statements
    remote.store.delete()
    remote.close()
    return {
        "name": "cypher",
        "title": "Neo4j: one Cypher query a program",
        "command": "python benchmarks/cypher.py --data DIR",
        "date": time.strftime("%Y-%m-%d"),
        "machine": {"python": platform.python_version(), "system": platform.machine(), "Neo4j": neo4j_server.LTS},
        "columns": [
            "kind",
            "programs",
            "median ms",
            "x RETURN 1",
            "p95 ms",
            "x RETURN 1 (p95)",
            "first run, median ms",
            "a step at a time, median ms",
        ],
        "rows": rows,
        "notes": [
            f"`RETURN 1`: {trip * 1e3:.2f} ms, run between the programs on the same connection.",
            f"{different} of {len(programs)} answers differ from those computed in process.",
            f"Loading over Bolt into an empty graph: {statements / loading:,.0f} statements a second.",
        ],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--uri")
    parser.add_argument("--every", type=int, default=1)
    options = parser.parse_args()
    with ExitStack() as stack:
        uri = options.uri or stack.enter_context(neo4j_server.Neo4jServer()).uri
        result = measure(options.data, uri, options.every)
    out = Path(__file__).parent / "out"
    out.mkdir(exist_ok=True)
    (out / "cypher.json").write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
