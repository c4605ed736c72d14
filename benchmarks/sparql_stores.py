"""Programs of the oracle on RDF stores that run as servers, against the snapshot: differences, and
what a query costs.

    python benchmarks/sparql_stores.py --data FOLDER [--every 1] [--large] [--store virtuoso|oxigraph]

FOLDER is what CONDGRAPH_DATA names. Starts each server, loads the knowledge base (small, or the
large one), runs every n-th program and its repetition, and writes
benchmarks/out/sparql_stores.json. Milliseconds; `ASK {}` beside them is the price of a round trip.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).resolve().parents[1] / "tools")]

from machine import markdown, median, percentile, write  # noqa: E402

import condgraph  # noqa: E402
from condgraph.remote_sparql import SparqlGraph  # noqa: E402


def outcome(graph: Any, program: Any) -> Any:
    try:
        found = graph.kopl(program)
        return list(map(repr, found.values)), found.texts
    except condgraph.CondgraphError as error:
        return type(error).__name__


def timed(work: Any) -> tuple[Any, float]:
    begin = time.perf_counter()
    found = work()
    return found, (time.perf_counter() - begin) * 1000


def spread(times: list[float]) -> list[float]:
    """The median and the 95th percentile."""
    return [round(median(times), 2), round(percentile(times, 0.95), 2)]


def run(server: Any, local: Any, programs: list[dict[str, Any]]) -> dict[str, Any]:
    remote = SparqlGraph(f"sparql+{server.query}", graph="oracle", update=server.update)
    _, load = timed(lambda: remote.push(local))
    if hasattr(server, "restart"):
        server.restart()
    back, pull = timed(remote.snapshot)
    assert back.status().counts == local.status().counts
    statements = local.status().statements
    first: list[float] = []
    kinds: dict[str, tuple[list[float], list[float]]] = {}
    different: list[str] = []
    trips = []
    for one in programs:
        trips.append(timed(lambda: remote.store.endpoint.query("ASK {}"))[1])
        found, cold = timed(lambda one=one: outcome(remote, one["program"]))
        _, warm = timed(lambda one=one: outcome(remote, one["program"]))
        first.append(cold)
        of_kind = kinds.setdefault(one["kind"], ([], []))
        of_kind[0].append(cold)
        of_kind[1].append(warm)
        if found != outcome(local, one["program"]):
            different.append(one["id"])
    rows = [["round trip", len(trips), None, None, *spread(trips)]]
    rows += [[kind, len(times[1]), *spread(times[0]), *spread(times[1])] for kind, times in sorted(kinds.items())]
    rows.append(["all", len(programs), *spread(first), *spread([time for times in kinds.values() for time in times[1]])])
    return {
        "title": f"Programs on {server.name} over HTTP, against the snapshot",
        "columns": ["programs", "how many", "first, ms", "first, p95", "again, ms", "again, p95"],
        "rows": rows,
        "notes": [
            f"{len(different)} answers differ from the snapshot's" + (f": {', '.join(different)}." if different else "."),
            f"Loaded {statements / load * 1000:,.0f} statements a second, pulled back {statements / pull * 1000:,.0f} a second.",
        ],
        "different": different,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("CONDGRAPH_DATA"))
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--out", type=Path, default=None)
    parser.add_argument("--store", choices=("virtuoso", "oxigraph"))
    options = parser.parse_args()
    from oxigraph_server import OxigraphServer
    from virtuoso_server import VirtuosoServer

    folder = Path(options.data) / "oracle"
    kb, name = ("kb.json", "programs_dev") if options.large else ("kb_small.json", "programs_small")
    local = condgraph.open()
    local.load(folder / kb)
    programs = [json.loads(line) for line in (folder / f"{name}.jsonl").read_text("utf-8").splitlines()][:: options.every]
    results = []
    for kind in (OxigraphServer, VirtuosoServer):
        if options.store in (None, kind.name):
            with kind() as server:
                results.append(run(server, local, programs))
            print(markdown(results[-1]))
    different = [one.pop("different") for one in results]
    print(write("sparql_stores", results, options.out), file=sys.stderr)
    if any(different):
        sys.exit("answers differ")


if __name__ == "__main__":
    main()
