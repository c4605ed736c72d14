"""Programs of the oracle on RDF stores that run as servers, against the snapshot: differences, and what a query costs.

    python benchmarks/sparql_stores.py --data FOLDER [--every 1] [--large] [--store virtuoso|oxigraph]

FOLDER is what CONDGRAPH_DATA names. Starts each server, loads the knowledge base (small, or the large one), runs every n-th program
and its repetition, and writes benchmarks/out/sparql_stores.json. Milliseconds; `ASK {}` beside them is the price of a round trip.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))

import condgraph
from condgraph.remote_sparql import SparqlGraph

OUT = Path(__file__).parent / "out"


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


def spread(times: list[float]) -> dict[str, float]:
    ordered = sorted(times)
    return {"median": round(statistics.median(ordered), 2), "p95": round(ordered[int(len(ordered) * 0.95)], 2)}


def run(server: Any, local: Any, programs: list[dict[str, Any]]) -> dict[str, Any]:
    remote = SparqlGraph(f"sparql+{server.query}", graph="oracle", update=server.update)
    _, load = timed(lambda: remote.push(local))
    if hasattr(server, "restart"):
        server.restart()
    back, pull = timed(remote.snapshot)
    assert back.status().counts == local.status().counts
    statements = local.status().statements
    first: list[float] = []
    second: dict[str, list[float]] = {}
    different: list[str] = []
    trips = []
    for one in programs:
        trips.append(timed(lambda: remote.store.endpoint.query("ASK {}"))[1])
        found, cold = timed(lambda one=one: outcome(remote, one["program"]))
        _, warm = timed(lambda one=one: outcome(remote, one["program"]))
        first.append(cold)
        second.setdefault(one["kind"], []).append(warm)
        if found != outcome(local, one["program"]):
            different.append(one["id"])
    return {
        "programs": len(programs),
        "different": different,
        "load_statements_a_second": round(statements / load * 1000),
        "pull_statements_a_second": round(statements / pull * 1000),
        "round_trip": spread(trips),
        "first": spread(first),
        "again": spread([time for times in second.values() for time in times]),
        "kinds": {kind: spread(times) for kind, times in sorted(second.items())},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("CONDGRAPH_DATA"))
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--store", choices=("virtuoso", "oxigraph"))
    options = parser.parse_args()
    from oxigraph_server import OxigraphServer
    from virtuoso_server import VirtuosoServer

    folder = Path(options.data) / "oracle"
    kb, name = ("kb.json", "programs_dev") if options.large else ("kb_small.json", "programs_small")
    local = condgraph.open()
    local.load(folder / kb)
    programs = [json.loads(line) for line in (folder / f"{name}.jsonl").read_text("utf-8").splitlines()][:: options.every]
    found: dict[str, Any] = {"kb": kb}
    for kind in (OxigraphServer, VirtuosoServer):
        if options.store in (None, kind.name):
            with kind() as server:
                found[kind.name] = run(server, local, programs)
                print(kind.name, json.dumps(found[kind.name], indent=1))
    OUT.mkdir(exist_ok=True)
    (OUT / "sparql_stores.json").write_text(json.dumps(found, indent=1))
    if any(found[store]["different"] for store in found if store != "kb"):
        sys.exit("answers differ")


if __name__ == "__main__":
    main()
