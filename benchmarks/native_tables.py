"""Tables over a Neo4j database that condgraph did not write, compared with Cypher written by hand.

    python benchmarks/native_tables.py [--rounds 9] [--version 5.26.14] [--out DIR]

The database is created here: 28,762 crimes of 15 types, and a hub that 250,000 relationships lead to. CPU is that of
the server's process and of this one, read from `/proc` (Linux), so nothing else may query the server. The answers are
compared.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "tools")]

_LOAD = (
    "UNWIND range(1, 28762) AS i CALL (i) { CREATE (:Crime {ref: 'C' + i, type: 'type ' + (i * 7 % 15), loss: i % 1000, "
    "outcome: CASE WHEN i % 86 = 0 THEN 'charged' ELSE 'none' END, day: date('2017-08-01') + duration({days: i % 30})}) } "
    "IN TRANSACTIONS OF 5000 ROWS",
    "CREATE INDEX FOR (n:Hub) ON (n.name)",
    "CREATE (:Hub {name: 'hub'})",
    "MATCH (h:Hub) UNWIND range(1, 250000) AS i CALL (h, i) { CREATE (h)<-[:AT {weight: i % 10}]-"
    "(:Item {name: 'i' + i, kind: 'kind ' + (i % 20), amount: i % 100}) } IN TRANSACTIONS OF 10000 ROWS",
)
#: A program, its table, and the same by hand.
_CRIMES = "FindAll() FilterConcept(Crime)"
_CHARGED = f"{_CRIMES} FilterStr(outcome, charged)"
_HUB = "Find(hub) Relate(AT, backward)"
_MATCHED = "MATCH (:Hub {name: 'hub'})<-[r:AT]-(n)"
_SHAPES: tuple[tuple[str, str, str, str], ...] = (
    ("28,762 nodes by type", _CRIMES, "group by type show count()", "MATCH (n:Crime) RETURN n.type, count(*)"),
    (
        "the same with sums",
        _CRIMES,
        "group by type show count(), sum(loss), max(day)",
        "MATCH (n:Crime) RETURN n.type, count(*), sum(n.loss), toString(max(n.day))",
    ),
    (
        "333 filtered ones by type",
        _CHARGED,
        "group by type show count()",
        "MATCH (n:Crime) WHERE n.outcome = 'charged' RETURN n.type, count(*)",
    ),
    ("a hub of 250,000 by kind", _HUB, "group by kind show count()", f"{_MATCHED} RETURN n.kind, count(*)"),
    ("the same with sums", _HUB, "group by kind show sum(amount)", f"{_MATCHED} RETURN n.kind, sum(n.amount)"),
)


def measure(uri: str, pid: int, rounds: int) -> list[list[Any]]:
    """Each shape by turns: median CPU of both ways, and the seconds of the first run here."""
    import neo4j
    from first_runs import Server

    import condgraph

    server = Server(uri, pid)
    with neo4j.GraphDatabase.driver(uri) as driver, driver.session() as session:
        for text in _LOAD:
            session.run(text).consume()
        session.run("CALL db.awaitIndexes(60)").consume()
    rows = []
    with condgraph.open(uri, layout="native") as graph:

        def spent(ask: Callable[[], Any]) -> tuple[float, Any]:
            here, there = time.process_time(), server.cpu()
            found = ask()
            return 1000 * (time.process_time() - here + server.cpu() - there), found

        for name, program, table, cypher in _SHAPES:
            begin = time.perf_counter()
            graph.query(program, table=table)
            first = time.perf_counter() - begin
            own, hand = list[float](), list[float]()
            for _ in range(rounds):
                cost, answer = spent(lambda: graph.query(program, table=table).texts)  # noqa: B023
                own.append(cost)
                cost, by_hand = spent(lambda: server.session.run(cypher).values())  # noqa: B023
                hand.append(cost)
                assert sorted(answer) == sorted(" | ".join(map(str, row)) for row in by_hand), name
            medians = statistics.median(own), statistics.median(hand)
            rows.append([name, *medians, medians[0] / medians[1], first])
    return rows


def main() -> None:
    import neo4j_server
    from machine import markdown, write

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--version", default=neo4j_server.LTS)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with ExitStack() as stack:
        started = stack.enter_context(neo4j_server.Neo4jServer(options.version, memory="1500m"))
        rows = measure(started.uri, started.pid, options.rounds)
    result = {
        "title": "Neo4j: tables over an existing database",
        "command": "python benchmarks/native_tables.py",
        "columns": ["table", "condgraph, ms of CPU", "Cypher by hand, ms of CPU", "times", "first run, s"],
        "rows": rows,
        "notes": [
            f"CPU time of server and client, the median of {options.rounds} runs in turns; the answers are equal.",
            "A first run plans the query and, once for each property, counts the types of its values beyond the sample.",
            f"Neo4j {options.version}.",
        ],
    }
    print(markdown(result))
    print(json.dumps({"written": str(write("native_tables", [result], options.out))}))


if __name__ == "__main__":
    main()
