"""Five tasks on the same two CSV files in condgraph, DuckDB, kglite and NetworkX: lines of code, and times.

    python benchmarks/five_tasks.py [--trips 20000] [--runs 5] [--lines]

Systems that are not installed are left out (`pip install duckdb kglite networkx pandas`). All answers are compared;
if two differ, the script ends with 1. Times are CPU milliseconds of the first run and of the fastest, since systems
cache plans, indexes and pages. `--lines` prints the code of each task.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import inspect
import random
import shutil
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

TASKS = ("load a pair", "filtered count", "two hops", "time window", "top 2 per group")


def write(folder: Path, trips: int) -> None:
    """Stations, and trips that begin and end at them."""
    draw = random.Random(1)
    lines = [f"S{at},Station {at},District {at % 7}" for at in range(60)]
    (folder / "stations.csv").write_text("\n".join(["stationID,name,district", *lines]) + "\n")
    # Every trip of a station has another length, so that the longest two are certain.
    minutes = {station: draw.sample(range(1, 20 * trips), trips // 20) for station in range(60)}
    lines = []
    for at in range(trips):
        start, end = draw.randrange(60), draw.randrange(60)
        day = f"2024-{draw.randint(1, 12):02}-{draw.randint(1, 28):02} {draw.randrange(24):02}:{draw.randrange(60):02}:00"
        lines.append(f"T{at},S{start},S{end},{day},{minutes[start].pop()}")
    (folder / "trips.csv").write_text("\n".join(["tripID,stationID,end,started,minutes", *lines]) + "\n")


class Condgraph:
    """Programs in KoPL, and table clauses."""

    def load(self, folder: str) -> Any:
        import condgraph

        graph = condgraph.open("memory:")
        graph.load(folder, join={"trips.end": "stations.stationID"})
        return graph

    def count(self, graph: Any) -> Any:
        return graph.kopl("FindAll() FilterConcept(trips) FilterNum(minutes, 30, >) Count()").values[0]

    def hops(self, graph: Any) -> Any:
        ends = "Find(Station 7) Relate(stationID, backward) Relate(end, forward) QueryAttr(district)"
        return sorted(set(graph.kopl(ends).values))

    def window(self, graph: Any) -> Any:
        return graph.kopl("FindAll() FilterConcept(trips) FilterDate(started, 2024-05, =) Count()").values[0]

    def top(self, graph: Any) -> Any:
        table = "show stationID.name, tripID, minutes order by minutes desc limit 2 per stationID"
        return sorted(row[:2] for row in graph.query("FindAll() FilterConcept(trips)", table=table).cells)


class DuckDB:
    """SQL."""

    def load(self, folder: str) -> Any:
        import duckdb

        base = duckdb.connect()
        base.execute(f"CREATE TABLE stations AS FROM '{folder}/stations.csv'")
        base.execute(f"CREATE TABLE trips AS FROM '{folder}/trips.csv'")
        return base

    def count(self, base: Any) -> Any:
        return base.execute("SELECT count(*) FROM trips WHERE minutes > 30").fetchone()[0]

    def hops(self, base: Any) -> Any:
        query = """SELECT DISTINCT b.district FROM trips t JOIN stations a ON t.stationID = a.stationID
            JOIN stations b ON t."end" = b.stationID WHERE a.name = 'Station 7' ORDER BY 1"""
        return [row[0] for row in base.execute(query).fetchall()]

    def window(self, base: Any) -> Any:
        return base.execute("SELECT count(*) FROM trips WHERE started >= '2024-05-01' AND started < '2024-06-01'").fetchone()[0]

    def top(self, base: Any) -> Any:
        query = """SELECT a.name, t.tripID FROM trips t JOIN stations a ON t.stationID = a.stationID
            QUALIFY row_number() OVER (PARTITION BY t.stationID ORDER BY minutes DESC) <= 2"""
        return sorted(base.execute(query).fetchall())


class Kglite:
    """Cypher, after data frames of pandas."""

    def load(self, folder: str) -> Any:
        import kglite
        import pandas as pd

        stations, trips = pd.read_csv(f"{folder}/stations.csv"), pd.read_csv(f"{folder}/trips.csv", parse_dates=["started"])
        graph = kglite.KnowledgeGraph()
        graph.add_nodes(stations, "Station", "stationID", "name")
        graph.add_nodes(trips, "Trip", "tripID", "tripID")
        graph.add_relationships(trips, "FROM", "Trip", "tripID", "Station", "stationID", columns=[])
        graph.add_relationships(trips, "TO", "Trip", "tripID", "Station", "end", columns=[])
        return graph

    def count(self, graph: Any) -> Any:
        return next(iter(graph.cypher("MATCH (t:Trip) WHERE t.minutes > 30 RETURN count(t) AS n")))["n"]

    def hops(self, graph: Any) -> Any:
        query = (
            "MATCH (a:Station {name: 'Station 7'})<-[:FROM]-(:Trip)-[:TO]->(b:Station) RETURN DISTINCT b.district AS d ORDER BY d"
        )
        return [row["d"] for row in graph.cypher(query)]

    def window(self, graph: Any) -> Any:
        query = (
            "MATCH (t:Trip) WHERE t.started >= datetime('2024-05-01') AND t.started < datetime('2024-06-01') RETURN count(t) AS n"
        )
        return next(iter(graph.cypher(query)))["n"]

    def top(self, graph: Any) -> Any:
        query = """MATCH (t:Trip)-[:FROM]->(s:Station) WITH s, t ORDER BY t.minutes DESC
            WITH s.name AS name, collect(t.tripID)[0..2] AS trips UNWIND trips AS trip RETURN name, trip"""
        return sorted((row["name"], row["trip"]) for row in graph.cypher(query))


class NetworkX:
    """Python loops over a graph of dictionaries."""

    def load(self, folder: str) -> Any:
        import csv
        import datetime

        import networkx as nx

        graph = nx.MultiDiGraph()
        with open(f"{folder}/stations.csv", newline="") as file:
            for row in csv.DictReader(file):
                graph.add_node(row["stationID"], kind="station", **row)
        with open(f"{folder}/trips.csv", newline="") as file:
            for row in csv.DictReader(file):
                started = datetime.datetime.fromisoformat(row["started"])
                graph.add_node(row["tripID"], kind="trip", started=started, minutes=int(row["minutes"]))
                graph.add_edge(row["tripID"], row["stationID"], "from")
                graph.add_edge(row["tripID"], row["end"], "to")
        return graph

    def count(self, graph: Any) -> Any:
        return sum(data["kind"] == "trip" and data["minutes"] > 30 for _, data in graph.nodes(data=True))

    def hops(self, graph: Any) -> Any:
        begin = next(node for node, data in graph.nodes(data=True) if data.get("name") == "Station 7")
        trips = {trip for trip, _, key in graph.in_edges(begin, keys=True) if key == "from"}
        ends = {end for _, end, key in graph.out_edges(trips, keys=True) if key == "to"}
        return sorted({graph.nodes[end]["district"] for end in ends})

    def window(self, graph: Any) -> Any:
        times = [data["started"] for _, data in graph.nodes(data=True) if data["kind"] == "trip"]
        return sum((time.year, time.month) == (2024, 5) for time in times)

    def top(self, graph: Any) -> Any:
        result = []
        for station, data in graph.nodes(data=True):
            if data["kind"] == "station":
                trips = [trip for trip, _, key in graph.in_edges(station, keys=True) if key == "from"]
                trips.sort(key=lambda trip: -graph.nodes[trip]["minutes"])
                result += [(data["name"], trip) for trip in trips[:2]]
        return sorted(result)


def code(task: Callable[..., Any]) -> list[str]:
    """The lines of a task without its first; imports count."""
    body = textwrap.dedent("".join(inspect.getsourcelines(task)[0][1:]))
    return [line for line in body.splitlines() if line.strip()]


def cell(task: Callable[..., Any], spent: list[float]) -> str:
    """Lines of a task, and the times of its first and its fastest run."""
    lines = len(code(task))
    return f"{lines} line{'s' * (lines > 1)}; {spent[0]:.1f}, {min(spent):.1f} ms"


def measured(task: Callable[..., Any], argument: Any, runs: int) -> tuple[Any, list[float]]:
    """What a task gives, and the processor time of each run in milliseconds."""
    result, spent = None, []
    for _ in range(runs):
        begin = time.process_time()
        result = task(argument)
        spent.append(1000 * (time.process_time() - begin))
    return result, spent


def main() -> None:
    """Measure, compare and print a table of Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trips", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--lines", action="store_true", help="print the code of each task")
    options = parser.parse_args()
    known = (Condgraph, DuckDB, Kglite, NetworkX)
    for name in {"pandas", *(system.__name__.lower() for system in known)} - {"condgraph"}:
        if importlib.util.find_spec(name):
            importlib.import_module(name)  # an import is no part of a task
    systems = [system for system in known if importlib.util.find_spec(system.__name__.lower())]
    place = Path(tempfile.mkdtemp())
    folder = place / "bikes"
    folder.mkdir()
    write(folder, options.trips)
    table: dict[str, list[str]] = {task: [] for task in TASKS}
    answers: dict[str, list[Any]] = {task: [] for task in TASKS[1:]}
    for system in systems:
        own = system()
        tasks = (own.load, own.count, own.hops, own.window, own.top)
        graph, spent = measured(own.load, str(folder), options.runs)
        table[TASKS[0]].append(cell(own.load, spent))
        for name, task in zip(TASKS[1:], tasks[1:], strict=True):
            answer, spent = measured(task, graph, options.runs)
            answers[name].append(answer)
            table[name].append(cell(task, spent))
        if options.lines:
            for name, task in zip(TASKS, tasks, strict=True):
                print(f"# {system.__name__}: {name}", *code(task), "", sep="\n")
    shutil.rmtree(place)
    print(
        f"| {options.trips:,} trips | {' | '.join(system.__name__ for system in systems)} |",
        "|---" * (len(systems) + 1) + "|",
        sep="\n",
    )
    for name, cells in table.items():
        print(f"| {name} | {' | '.join(cells)} |")
    for name, results in answers.items():
        if any(result != results[0] for result in results):
            print(f"{name}: the answers differ: {[str(result)[:200] for result in results]}")
            sys.exit(1)


if __name__ == "__main__":
    main()
