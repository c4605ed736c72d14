"""The endpoint under load: 64 clients, a tenth of whose queries would never end.

    python benchmarks/endpoint.py [--seconds 60] [--clients 64] [--timeout 5] [--entities 50000] [--out DIR] [--check]

This loads a graph, starts `condgraph serve` over it, and queries it by clients in another process. Each client sends
its next query as soon as it has the answer to the last. A query is a runaway with a probability of a tenth, and
occupies its client until the deadline. There are three runs:

- with pauses: instead of sending a runaway, a client waits as long as its deadline. These are the same ordinary
  queries of the same clients at the same rate.
- with runaways: the same clients send all of their queries.
- without pauses: only ordinary queries, as fast as they are answered: a server at full load.

It measures how long ordinary queries take in each run, at the clients and by the log of the server, and when the
runaways end. It checks that every answer has a status of the protocol, and which processes, descriptors and memory
the server has left at the end. Clients start one after the other within the first deadline, which does not count.
`--check` exits with 1 if runaways do not end at their deadline, if the 99th percentile of the other queries grows
tenfold (compared with either of the other runs), if an answer is wrong, or if something is left over. The run takes
three times `--seconds`, and half a minute.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
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

sys.path.append(str(Path(__file__).resolve().parents[1] / "tools"))

from machine import markdown, median, percentile, resident, write
from watched import watched

import condgraph
from condgraph.engine.facts import Entity, EntityKind, Item, Member, Ref, Statement
from condgraph.engine.values import Quantity, Time

RUNAWAY = "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i FILTER(?a = ?i && ?c != %d) }"
#: A share of the queries.
RUNAWAYS = 0.1
#: A line of the server's log about a query that was answered.
_LOGGED = re.compile(r'"POST /sparql" 200 \d+ bytes ([\d.]+) ms')


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
    #: Seconds of the queries that were answered, from the request to the last of the response, as
    #: the server's log says.
    server: list[float] = field(default_factory=list)


class Connection:
    """A connection that is kept between requests."""

    def __init__(self, url: str) -> None:
        where = urlsplit(url)
        self.host, self.port = where.hostname, where.port
        self.reader: asyncio.StreamReader | None = None
        self.writer: asyncio.StreamWriter | None = None

    async def open(self) -> None:
        if self.writer is None:
            self.reader, self.writer = await asyncio.open_connection(self.host, self.port)

    async def ask(self, query: str) -> tuple[int, bytes]:
        assert self.reader is not None
        assert self.writer is not None
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


@dataclass(frozen=True, slots=True)
class Plan:
    """What clients do: `share` of the queries are runaways, which are asked, or waited for as long
    as their deadline is.
    """

    share: float
    asked: bool
    seconds: float
    timeout: float
    entities: int


async def client(url: str, number: int, plan: Plan, begin: float, seen: Seen) -> None:
    """Ask until the time is over; what begins before the first deadline does not count."""
    dice = random.Random(number)
    counts, until = begin + plan.timeout, begin + plan.timeout + plan.seconds
    await asyncio.sleep(dice.random() * plan.timeout)
    connection = Connection(url)
    while (now := time.perf_counter()) < until:
        runaway = dice.random() < plan.share
        if runaway and not plan.asked:
            connection.close()
            await asyncio.sleep(min(plan.timeout, until - now))
            continue
        text, expected = (RUNAWAY % dice.randrange(10**9), b"did not") if runaway else short(dice, plan.entities)
        try:
            await connection.open()
            now = time.perf_counter()
            status, body = await connection.ask(text)
        except (OSError, asyncio.IncompleteReadError) as error:
            seen.wrong.append(f"{type(error).__name__}: {error}")
            connection.close()
            continue
        if now >= counts:
            (seen.runaway if runaway else seen.short).append(time.perf_counter() - now)
        kind = "runaway" if runaway else "short"
        seen.statuses[kind, status] += 1
        if not runaway and status == 503 and b"did not" in body:
            seen.late += 1
        elif status != (503 if runaway else 200) or expected not in body:
            seen.wrong.append(f"{kind} {status}: {body[:200]!r}")
    connection.close()


async def load(url: str, clients: int, plan: Plan, log: Path) -> Seen:
    """All clients at once."""
    seen = Seen()
    begin = time.perf_counter()
    told = log.stat().st_size
    work = asyncio.gather(*(client(url, i, plan, begin, seen) for i in range(clients)))
    await asyncio.sleep(plan.timeout)
    told = log.stat().st_size
    await work
    with log.open() as lines:
        lines.seek(told)
        seen.server = [float(found[1]) / 1e3 for line in lines if (found := _LOGGED.search(line))]
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
    from pyoxigraph import QueryResultsFormat

    from condgraph.sparql.workers.pool import Query, WorkerPool

    with condgraph.open(store, read_only=True) as graph:
        embedded = graph.rdf()
        dice = random.Random(11)
        direct, bounded = [], []
        with WorkerPool(embedded.source) as pool:
            pool.query(Query("ASK {}")).read()
            for _ in range(rounds):
                text = f'SELECT ?name {{ ?p <pred:name> "Person {dice.randrange(count)}" ; <pred:name> ?name }}'
                begin = time.perf_counter()
                answer = embedded.store.query(text).serialize(format=QueryResultsFormat.JSON)
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
        "notes": [f"{rounds:,} runs each, in turns; both give the same JSON."],
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
        command = ["serve", "-d", str(store), "--port", "0", "--timeout", str(given.timeout), *workers]
        log = Path(folder) / "log"
        with (
            log.open("w") as lines,
            subprocess.Popen(
                watched([sys.executable, "-m", "condgraph", *command]), stdout=subprocess.PIPE, stderr=lines, text=True
            ) as server,
        ):
            assert server.stdout is not None
            url = server.stdout.readline().split("/ serves")[0]
            try:
                result, failed = measure(given, url, server.pid, log)
            finally:
                server.send_signal(signal.SIGTERM)
    print(markdown(result), markdown(price), sep="\n")
    print(write("endpoint", [result, price], given.out), file=sys.stderr)
    for one in failed:
        print(f"failed: {one}", file=sys.stderr)
    if given.check and failed:
        sys.exit(1)


def measure(given: argparse.Namespace, url: str, pid: int, log: Path) -> tuple[dict[str, Any], list[str]]:
    """All phases, and what is left over."""

    def phase(share: float, *, asked: bool, seconds: float = given.seconds) -> Seen:
        return asyncio.run(load(url, given.clients, Plan(share, asked, seconds, given.timeout, given.entities), log))

    # What the collector does in the clients is not the server's.
    gc.disable()
    phase(RUNAWAYS / 10, asked=True, seconds=1.0)
    time.sleep(1.0)
    before = state(pid)
    calm = phase(RUNAWAYS, asked=False)
    mixed = phase(RUNAWAYS, asked=True)
    full = phase(0.0, asked=False)
    time.sleep(1.5)
    after = state(pid)
    rows = []
    for name, times, server in (
        ("ordinary, with pauses", calm.short, calm.server),
        ("ordinary, with runaways", mixed.short, mixed.server),
        ("ordinary, without pauses", full.short, full.server),
        ("runaways", mixed.runaway, []),
    ):
        shares = [1e3 * percentile(times, share) for share in (0.95, 0.99)]
        inside = 1e3 * percentile(server, 0.99) if server else None
        rows.append([name, len(times), len(times) / given.seconds, 1e3 * median(times), *shares, 1e3 * max(times), inside])
    calm_p99, mixed_p99, full_p99 = (row[5] for row in rows[:3])
    grown, grown_full = mixed_p99 / calm_p99, mixed_p99 / full_p99
    phases = (calm, mixed, full)
    wrong, missed = [one for seen in phases for one in seen.wrong], sum(seen.late for seen in phases)
    result = {
        "title": "The SPARQL endpoint under load",
        "command": "python benchmarks/endpoint.py",
        "columns": ["queries", "number", "a second", "median, ms", "p95, ms", "p99, ms", "longest, ms", "p99 in the server, ms"],
        "rows": rows,
        "notes": [
            f"{given.clients} clients on the same machine, each with one query at a time, {given.seconds:g} s each time; "
            f"{given.entities:,} entities; a tenth of the queries are runaways, whose deadline is {given.timeout:g} s.",
            f"With runaways, the 99th percentile of the other queries is {grown:.2g} times that of the same clients when they wait "
            f"for the deadline instead (with pauses), and {grown_full:.2g} times that of {given.clients} clients who send only "
            "ordinary queries, as fast as they are answered (without pauses).",
            f"Wrong answers, and statuses outside the protocol: {len(wrong)}; short queries that reached their deadline: {missed}.",
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
    if max(grown, grown_full) >= 10:
        failed.append(f"the 99th percentile grew {max(grown, grown_full):.1f} times")
    left = {name: after[name] - before[name] for name in before}
    if left["descriptors"] > 8 or left["processes"] > 4 or left["threads"] > 4 or left["memory of the server, MB"] > 100:
        failed.append(f"left over: {left}")
    return result, failed


if __name__ == "__main__":
    main()
