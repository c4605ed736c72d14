"""The endpoint under load: many clients at once, a tenth of whose queries would never end.

    python benchmarks/endpoint.py [--seconds 60] [--clients 64] [--timeout 5] [--entities 50000] [--out DIR] [--check]

A graph is loaded, `condgraph serve` started over it, and clients ask it, each the next query as soon as it has the answer to the
last: first short ones only, then with runaways among them. What is looked at: how long the short ones take with and without, when
the runaways end, that every answer has a status of the protocol, and what the server has left of processes, descriptors and memory
when all is over. `--check` exits with 1 where the runaways do not end at their deadline, the 99th percentile of the others grows
tenfold, an answer is wrong, or something is left over. It takes a little more than two times `--seconds`.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from machine import markdown, median, percentile, resident, write

import condgraph
from condgraph.engine.facts import Entity, EntityKind, Item, Member, Ref, Statement
from condgraph.engine.values import Quantity, Time

RUNAWAY = "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i FILTER(?a = ?i && ?c != %d) }"
#: A share of the queries.
RUNAWAYS = 0.1


def people(count: int) -> Iterator[Item]:
    """A graph of people who know people, with heights and years of birth."""
    dice = random.Random(7)
    yield Entity("person", "person", EntityKind.CONCEPT)
    for i in range(count):
        yield Entity(f"p{i}", f"Person {i}")
        yield Member(f"p{i}", "person")
        yield Statement(f"p{i}", "height", Quantity(round(dice.gauss(1.72, 0.1), 2), "metre"))
        yield Statement(f"p{i}", "year of birth", Time.year(dice.randrange(1900, 2010)))
        for _ in range(2):
            yield Statement(f"p{i}", "knows", Ref(f"p{dice.randrange(count)}"), (("since", Time.year(dice.randrange(1950, 2020))),))


def short(dice: random.Random, count: int) -> tuple[str, bytes]:
    """A short query, and what its answer has to contain."""
    i = dice.randrange(count)
    name = f"Person {i}"
    texts = (
        f'SELECT ?name {{ ?p <pred:name> "{name}" ; <pred:name> ?name }}',
        f'SELECT ?name ?other {{ ?p <pred:name> "{name}" ; <pred:name> ?name ; <knows>/<pred:name> ?other }}',
        f'SELECT ?name (COUNT(?q) AS ?n) {{ ?p <pred:name> "{name}" ; <pred:name> ?name ; <knows>/<knows> ?q }} GROUP BY ?name',
    )
    return dice.choice(texts), f'"{name}"'.encode()


@dataclass
class Seen:
    """What the clients saw: seconds by kind, statuses, and what is wrong."""

    short: list[float] = field(default_factory=list)
    runaway: list[float] = field(default_factory=list)
    statuses: Counter[tuple[str, int]] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    #: Short queries that met their deadline.
    late: int = 0


class Connection:
    """A connection that is kept between requests."""

    def __init__(self, url: str) -> None:
        where = urlsplit(url)
        self.host, self.port = where.hostname, where.port
        self.reader: asyncio.StreamReader | None = None
        self.writer: asyncio.StreamWriter | None = None

    async def ask(self, query: str) -> tuple[int, bytes]:
        if self.writer is None:
            self.reader, self.writer = await asyncio.open_connection(self.host, self.port)
        assert self.reader is not None
        body = query.encode()
        head = (
            f"POST /sparql HTTP/1.1\r\nHost: {self.host}\r\nContent-Type: application/sparql-query\r\n"
            f"Accept: application/sparql-results+json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        self.writer.write(head.encode() + body)
        said = await self.reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", said, re.I)
        if length is None:
            raise ConnectionError("an answer without a length")
        return int(said.split(b" ", 2)[1]), await self.reader.readexactly(int(length[1]))

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()
            self.reader = self.writer = None


async def client(url: str, number: int, until: float, share: float, count: int, seen: Seen) -> None:
    """Ask until the time is over."""
    dice = random.Random(number)
    connection = Connection(url)
    while time.perf_counter() < until:
        runaway = dice.random() < share
        text, expected = (RUNAWAY % dice.randrange(10**9), b"did not") if runaway else short(dice, count)
        begin = time.perf_counter()
        try:
            status, body = await connection.ask(text)
        except (OSError, asyncio.IncompleteReadError) as error:
            seen.wrong.append(f"{type(error).__name__}: {error}")
            connection.close()
            continue
        (seen.runaway if runaway else seen.short).append(time.perf_counter() - begin)
        kind = "runaway" if runaway else "short"
        seen.statuses[kind, status] += 1
        if not runaway and status == 503 and b"did not" in body:
            seen.late += 1
        elif status != (503 if runaway else 200) or expected not in body:
            seen.wrong.append(f"{kind} {status}: {body[:200]!r}")
    connection.close()


async def load(url: str, clients: int, seconds: float, share: float, count: int) -> Seen:
    """All clients at once."""
    seen = Seen()
    until = time.perf_counter() + seconds
    await asyncio.gather(*(client(url, i, until, share, count, seen) for i in range(clients)))
    return seen


def descendants(pid: int) -> set[int]:
    """The processes that a process has started, and those that these have."""
    found: set[int] = set()
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for one in (task / "children").read_text().split():
                found |= {int(one)} | descendants(int(one))
    return found


def state(pid: int) -> dict[str, float]:
    """What a server has: descriptors, threads, processes, and memory."""
    return {
        "descriptors": len(os.listdir(f"/proc/{pid}/fd")),
        "threads": len(os.listdir(f"/proc/{pid}/task")),
        "processes": len(descendants(pid)),
        "memory of the server, MB": resident(str(pid)),
    }


def overhead(store: Path, count: int, rounds: int = 3000) -> dict[str, Any]:
    """What a short query costs in a worker process, beside what it costs in this one."""
    from pyoxigraph import NamedNode, QueryResultsFormat

    from condgraph.sparql.worker import Query, WorkerPool

    with condgraph.open(store, read_only=True) as graph:
        embedded = graph.rdf()
        dice = random.Random(11)
        direct, bounded = [], []
        with WorkerPool(embedded.kept) as pool:
            pool.query(Query("ASK {}")).read()
            for _ in range(rounds):
                text = f'SELECT ?name {{ ?p <pred:name> "Person {dice.randrange(count)}" ; <pred:name> ?name }}'
                begin = time.perf_counter()
                answer = embedded.store.query(text, default_graph=NamedNode(embedded.base)).serialize(
                    format=QueryResultsFormat.JSON
                )
                between = time.perf_counter()
                same = pool.query(Query(text, default_graphs=[embedded.base]), timeout=30).read()
                bounded.append(time.perf_counter() - between)
                direct.append(between - begin)
                assert same == answer
    rows = [
        [name, 1e6 * min(times), 1e6 * median(times), 1e6 * percentile(times, 0.99)]
        for name, times in (("in process", direct), ("in a worker process, with a deadline", bounded))
    ]
    return {
        "title": "A short query with a deadline",
        "command": "python benchmarks/endpoint.py",
        "columns": ["where", "shortest, µs", "median, µs", "p99, µs"],
        "rows": rows,
        "notes": [f"One after the other, {rounds:,} times each, in turns; results as JSON, which are the same."],
    }


def main() -> None:
    """Load, serve, ask, print, write."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    arguments.add_argument("--seconds", type=float, default=60.0)
    arguments.add_argument("--clients", type=int, default=64)
    arguments.add_argument("--timeout", type=float, default=5.0)
    arguments.add_argument("--entities", type=int, default=50_000)
    arguments.add_argument("--workers", type=int)
    arguments.add_argument("--check", action="store_true")
    arguments.add_argument("--out", type=Path, metavar="DIR")
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store"
        with condgraph.open(store) as graph:
            graph.add(people(given.entities))
        price = overhead(store, given.entities)
        workers = ["--workers", str(given.workers)] if given.workers else []
        command = ["serve", "-d", str(store), "--port", "0", "--timeout", str(given.timeout), "--quiet", *workers]
        with subprocess.Popen([sys.executable, "-m", "condgraph", *command], stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            url = server.stdout.readline().split("/ serves")[0]
            try:
                result, failed = measure(given, url, server.pid)
            finally:
                server.send_signal(signal.SIGTERM)
    print(markdown(result), markdown(price), sep="\n")
    print(write("endpoint", [result, price], given.out), file=sys.stderr)
    for one in failed:
        print(f"failed: {one}", file=sys.stderr)
    if given.check and failed:
        sys.exit(1)


def measure(given: argparse.Namespace, url: str, pid: int) -> tuple[dict[str, Any], list[str]]:
    """Both phases, and what is left over."""
    asyncio.run(load(url, given.clients, min(2.0, given.seconds), RUNAWAYS / 10, given.entities))
    time.sleep(1.0)
    before = state(pid)
    plain = asyncio.run(load(url, given.clients, given.seconds, 0.0, given.entities))
    mixed = asyncio.run(load(url, given.clients, given.seconds, RUNAWAYS, given.entities))
    time.sleep(1.5)
    after = state(pid)
    milliseconds = {
        name: [1e3 * median(times), *(1e3 * percentile(times, share) for share in (0.95, 0.99)), 1e3 * max(times)]
        for name, times in (("without runaways", plain.short), ("with runaways", mixed.short), ("runaways", mixed.runaway))
    }
    rate = {"without runaways": len(plain.short), "with runaways": len(mixed.short), "runaways": len(mixed.runaway)}
    grown = milliseconds["with runaways"][2] / milliseconds["without runaways"][2]
    wrong, missed = plain.wrong + mixed.wrong, plain.late + mixed.late
    rows = [[name, rate[name], rate[name] / given.seconds, *milliseconds[name]] for name in rate]
    result = {
        "title": "The SPARQL endpoint under load",
        "command": "python benchmarks/endpoint.py",
        "columns": ["queries", "number", "a second", "median, ms", "p95, ms", "p99, ms", "longest, ms"],
        "rows": rows,
        "notes": [
            f"{given.clients} clients on the same machine, {given.seconds:g} s each time; {given.entities:,} entities; a tenth "
            f"of the queries are runaways, whose deadline is {given.timeout:g} s. The 99th percentile of the others is {grown:.2g} "
            "times what it is without them.",
            f"Wrong answers, and statuses that are none of the protocol's: {len(wrong)}; short ones at their deadline: {missed}.",
            "Before and after, idle: " + "; ".join(f"{name} {before[name]:.0f}, {after[name]:.0f}" for name in before) + ".",
        ],
    }
    failed = [f"wrong: {one}" for one in wrong[:5]]
    if missed:
        failed.append(f"{missed} short queries met their deadline")
    early = [one for one in mixed.runaway if one < given.timeout]
    late = [one for one in mixed.runaway if one > given.timeout + max(1.0, 0.2 * given.timeout)]
    if early or late:
        failed.append(f"{len(early)} runaways ended early, {len(late)} late (up to {max(mixed.runaway):.2f} s)")
    if grown >= 10:
        failed.append(f"the 99th percentile grew {grown:.1f} times")
    left = {name: after[name] - before[name] for name in before}
    if left["descriptors"] > 8 or left["processes"] > 4 or left["threads"] > 4 or left["memory of the server, MB"] > 100:
        failed.append(f"left over: {left}")
    return result, failed


if __name__ == "__main__":
    main()
