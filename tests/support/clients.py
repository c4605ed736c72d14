"""Many clients at once on one graph: errors, wrong answers, the time of each answer, and open connections afterwards."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from condgraph.remote_neo4j import Neo4jGraph


@dataclass
class ClientsReport:
    """The results of all clients: `seconds` of each answer; `connections` of the server and `threads` of this process,
    before and after.
    """

    answers: int = 0
    errors: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    connections: tuple[int, int] = (0, 0)
    threads: tuple[int, int] = (0, 0)


def run_clients(
    place: str, graph: str, programs: Sequence[str], expected: Sequence[list[str]], clients: int, seconds: float
) -> ClientsReport:
    """Run programs from many threads through one open graph for `seconds`, half of them with deadlines; compare every
    answer.
    """
    import condgraph

    report, lock = ClientsReport(), threading.Lock()
    observer = condgraph.open(place, graph=graph)
    assert isinstance(observer, Neo4jGraph)
    before = _connections(observer), threading.active_count()
    opened = condgraph.open(place, graph=graph, read_only=True)
    until = time.monotonic() + seconds

    def client(number: int) -> None:
        position = number
        while time.monotonic() < until:
            position = (position + 7) % len(programs)
            begin = time.perf_counter()
            try:
                texts = opened.kopl(programs[position], timeout=60 if number % 2 else None).texts
            except Exception as error:  # noqa: BLE001 - whatever it is, it is reported
                with lock:
                    report.errors.append(f"{programs[position]}: {error!r}")
                continue
            with lock:
                report.answers += 1
                report.seconds.append(time.perf_counter() - begin)
                if texts != expected[position]:
                    report.wrong.append(programs[position])

    threads = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    opened.close()
    # Idle threads end after some seconds; connections close with the driver.
    limit = time.monotonic() + 30
    while time.monotonic() < limit and (_connections(observer) > before[0] or threading.active_count() > before[1]):
        time.sleep(0.5)
    report.connections = before[0], _connections(observer)
    report.threads = before[1], threading.active_count()
    observer.close()
    return report


def _connections(graph: Neo4jGraph) -> int:
    rows = graph.store.connection.read("CALL dbms.listConnections() YIELD connectionId RETURN count(*) AS found", {})
    return int(rows[0]["found"])
