"""Programs of the oracle on RDF stores that run as servers, compared with the snapshot: differences, and the cost of
a query; and programs on a DuckDB file compared with SQL written by hand on the same tables.

    python benchmarks/sparql_stores.py --data FOLDER [--every 1] [--large] [--store virtuoso|oxigraph|duckdb]

FOLDER is what CONDGRAPH_DATA names. Starts each server, loads the knowledge base (small, or the large one), runs
every n-th program twice, and writes benchmarks/out/sparql_stores.json. Milliseconds; `ASK {}` between them is the
price of a round trip.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
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


#: KoPL, and a person's SQL on the tables of the graph for the same answer.
BY_HAND = (
    (
        "one hop",
        "Find(2001: A Space Odyssey) Relate(cast member, forward) QueryName()",
        """SELECT DISTINCT b.name FROM entity a JOIN statement s ON s.s = a.e JOIN entity b ON b.e = s.o
        WHERE a.name = '2001: A Space Odyssey' AND s.predicate = 'cast member'""",
    ),
    (
        "count with filter",
        "FindAll() FilterNum(population, 1000000, >) Count()",
        """SELECT CAST(count(DISTINCT s) AS VARCHAR) FROM statement
        WHERE predicate = 'population' AND kind = 1 AND unit = '1' AND number > 1000000""",
    ),
    (
        "two hops",
        "Find(2001: A Space Odyssey) Relate(cast member, forward) Relate(occupation, forward) QueryName()",
        """SELECT DISTINCT c.name FROM entity a JOIN statement s ON s.s = a.e JOIN statement t ON t.s = s.o
        JOIN entity c ON c.e = t.o
        WHERE a.name = '2001: A Space Odyssey' AND s.predicate = 'cast member' AND t.predicate = 'occupation'""",
    ),
)


def on_duckdb(local: Any, times: int = 300) -> dict[str, Any]:
    """Programs on DuckDB in turns with SQL by hand, on an open connection each."""
    import duckdb

    rows = []
    with tempfile.TemporaryDirectory() as folder:
        remote = condgraph.open(f"duckdb:///{folder}/graph.duckdb", graph="oracle")
        _, load = timed(lambda: remote.push(local))
        connection = duckdb.connect(f"{folder}/graph.duckdb", read_only=True)
        cursor = connection.execute("SET search_path = 'condgraph oracle'")
        for name, program, text in BY_HAND:
            own: list[float] = []
            hand: list[float] = []
            for _ in range(times):
                answer, taken = timed(lambda program=program: remote.kopl(program).texts)
                own.append(taken)
                found, taken = timed(lambda text=text: cursor.execute(text).fetchall())
                hand.append(taken)
                assert sorted(answer) == sorted(value for (value,) in found) != []
            rows.append([name, *spread(own), *spread(hand), round(median(own) / median(hand), 2)])
        connection.close()
        remote.close()
    return {
        "title": "Programs on DuckDB, next to SQL by hand",
        "columns": ["program", "ms", "p95", "by hand, ms", "p95", "times"],
        "rows": rows,
        "notes": [
            f"Medians of {times} in turns, from the text of a program to the texts of its answer.",
            f"Loaded {local.status().statements / load * 1000:,.0f} statements a second.",
        ],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("CONDGRAPH_DATA"))
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--out", type=Path, default=None)
    parser.add_argument("--store", choices=("virtuoso", "oxigraph", "duckdb"))
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
    if options.store in (None, "duckdb"):
        results.append(on_duckdb(local))
        print(markdown(results[-1]))
    different = [one.pop("different", []) for one in results]
    print(write("sparql_stores", results, options.out), file=sys.stderr)
    if any(different):
        sys.exit("answers differ")


if __name__ == "__main__":
    main()
