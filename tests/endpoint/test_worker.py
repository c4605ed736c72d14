"""Queries in worker processes: results are those of the store, deadlines and cancellation hold,
nothing is left behind.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pyoxigraph as ox
import pytest

from condgraph.endpoint.backend import OxigraphBackend
from condgraph.engine.errors import (
    CancelledError,
    DeadlineError,
    InterruptedQueryError,
    ParseError,
    StoreError,
    UnknownNameError,
    UnsupportedError,
)
from condgraph.sparql.workers.pool import BusyError, File, Query, UnopenedError, WorkerPool
from condgraph.sparql.workers.worker import Worker
from tests.endpoint.conftest import GRAPH, RUNAWAY
from tests.support.lanes import by_lane
from tests.support.pace import quick_enough

VALUES = f"SELECT ?s ?v {{ GRAPH <{GRAPH}> {{ ?s <{GRAPH}value> ?v }} }} ORDER BY ?v"
ODD = f"SELECT ?x ?t ?none {{ GRAPH <{GRAPH}> {{ ?x <{GRAPH}label> ?t }} VALUES ?i {{ 1 2 3 }} }}"
EMPTY_ROWS = "SELECT ?none { VALUES ?i { 1 2 3 } }"
FORMATS = {
    "json": ox.QueryResultsFormat.JSON,
    "xml": ox.QueryResultsFormat.XML,
    "csv": ox.QueryResultsFormat.CSV,
    "tsv": ox.QueryResultsFormat.TSV,
}


@pytest.fixture(scope="module")
def pool(store: Path) -> Iterator[WorkerPool]:
    with WorkerPool(store, workers=2) as pool:
        yield pool


def count(form: str, data: bytes) -> int:
    """Rows of serialised results, counted by a parser."""
    if form == "csv":
        import csv
        import io

        return len(list(csv.reader(io.StringIO(data.decode(), newline="")))) - 1
    return len(list(ox.parse_query_results(data, FORMATS[form])))


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("text", [VALUES, ODD, EMPTY_ROWS])
def test_results_are_those_of_the_store(pool: WorkerPool, store: Path, form: str, text: str) -> None:
    with pool.query(Query(text, solutions=form), timeout=10) as results:  # type: ignore[arg-type]
        assert results.head.kind == "solutions"
        found = results.read()
    assert not results.cut
    assert found == ox.Store.read_only(str(store)).query(text).serialize(format=FORMATS[form])


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(("text", "rows"), [(VALUES, 200), (ODD, 3), (EMPTY_ROWS, 3)])
def test_a_limit_cuts_and_says_so(pool: WorkerPool, form: str, text: str, rows: int) -> None:
    whole = pool.query(Query(text, solutions=form)).read()  # type: ignore[arg-type]
    for limit in {1, 2, 3, rows - 1, rows, rows + 1}:
        results = pool.query(Query(text, solutions=form, limit=limit), timeout=10)  # type: ignore[arg-type]
        found = results.read()
        assert count(form, found) == min(limit, rows)
        assert results.cut == (limit < rows)
        assert results.cut or found == whole


@pytest.mark.parametrize("form", FORMATS)
def test_a_limit_cuts_far_behind(pool: WorkerPool, form: str) -> None:
    # Long rows whose text looks like every boundary, over many blocks of the serialiser.
    piece = '}},{\\"<result>\\n\\r\\n\\"\\",{}'
    text = f'SELECT ?s (CONCAT(STR(?v), "{piece * 20}") AS ?t) {{ GRAPH ?g {{ ?s <{GRAPH}value> ?v }} VALUES ?again {{ 1 2 3 }} }}'
    for limit in (1, 77, 599, 600):
        results = pool.query(Query(text, solutions=form, limit=limit), timeout=20)  # type: ignore[arg-type]
        assert count(form, results.read()) == limit
        assert results.cut == (limit < 600)


def test_triples(pool: WorkerPool) -> None:
    text = f"CONSTRUCT {{ ?s ?p ?o }} WHERE {{ GRAPH <{GRAPH}> {{ ?s ?p ?o }} }}"
    found = {}
    forms = {
        "turtle": ox.RdfFormat.TURTLE,
        "ntriples": ox.RdfFormat.N_TRIPLES,
        "jsonld": ox.RdfFormat.JSON_LD,
        "rdfxml": ox.RdfFormat.RDF_XML,
    }
    for form, read in forms.items():
        results = pool.query(Query(text, triples=form), timeout=10)  # type: ignore[arg-type]
        assert results.head.kind == "triples"
        found[form] = set(ox.parse(results.read(), read))
    assert len(found["turtle"]) == 201
    assert all(triples == found["turtle"] for triples in found.values())
    limited = pool.query(Query(text, triples="ntriples", limit=200))
    assert limited.read().count(b"\n") == 200
    assert limited.cut
    exact = pool.query(Query(text, triples="ntriples", limit=201))
    assert exact.read().count(b"\n") == 201
    assert not exact.cut


def test_what_rdf_xml_cannot_say_is_an_error(pool: WorkerPool) -> None:
    with pytest.raises(UnsupportedError, match="RDF/XML"):
        pool.query(Query("CONSTRUCT { <a:s> <http://x/1> 1 } WHERE {}", triples="rdfxml")).read()


def test_a_graph_as_it_is(pool: WorkerPool) -> None:
    assert pool.query(Query("", graph=GRAPH + "other", triples="ntriples")).read().count(b"\n") == 1
    with pytest.raises(UnknownNameError, match="graph"):
        pool.query(Query("", graph=GRAPH + "nothing"))


def test_data_sets(pool: WorkerPool) -> None:
    def names(query: Query) -> int:
        return count("json", pool.query(query).read())

    everything = "SELECT * { ?s ?p ?o }"
    assert names(Query(everything)) == 0
    assert names(Query(everything, union=True)) == 202
    assert names(Query(everything, default_graphs=[GRAPH])) == 201
    assert names(Query(everything, default_graphs=[GRAPH, GRAPH + "other"])) == 202
    assert names(Query("SELECT * { GRAPH ?g { ?s ?p ?o } }", default_graphs=[GRAPH], named_graphs=[GRAPH + "other"])) == 1


def test_a_deadline_ends_a_query_and_the_next_one_is_answered(store: Path) -> None:
    with WorkerPool(store, workers=1) as pool:
        pool.query(Query("ASK {}")).read()
        before = set(pool.pids())
        begin = time.monotonic()
        with pytest.raises(DeadlineError, match=r"0\.4 s"):
            pool.query(Query(RUNAWAY), timeout=0.4)
        spent = time.monotonic() - begin
        assert spent >= 0.4
        assert quick_enough(spent, 2)
        assert pool.query(Query("ASK {}"), timeout=10).read() == b'{"head":{},"boolean":true}'
        gone = before - set(pool.pids())
        assert gone
        assert not any(running(pid) for pid in gone)


def running(pid: int) -> bool:
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        time.sleep(0.05)
    return True


def test_a_deadline_holds_while_results_are_read(pool: WorkerPool) -> None:
    endless = "SELECT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }"
    results = pool.query(Query(endless, union=True), timeout=0.6)
    with pytest.raises(DeadlineError):
        for _ in results:
            pass


def test_cancelling(pool: WorkerPool) -> None:
    cancelled = threading.Event()
    threading.Timer(0.2, cancelled.set).start()
    begin = time.monotonic()
    with pytest.raises(CancelledError):
        pool.query(Query(RUNAWAY), timeout=20, cancelled=cancelled)
    assert quick_enough(time.monotonic() - begin, 2)


def test_results_that_are_closed_early_free_the_worker(pool: WorkerPool) -> None:
    with pool.query(Query("SELECT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }", union=True), timeout=20) as results:
        assert next(results)
    assert pool.query(Query("ASK {}"), timeout=5).read()


def test_errors(pool: WorkerPool) -> None:
    text = "SELECT ?x\nWHERE { ?x <a:p> 1"
    with pytest.raises(ParseError) as caught:
        pool.query(Query(text))
    assert caught.value.span == (len(text), len(text))
    with pytest.raises(ParseError):
        pool.query(Query("INSERT DATA { <a:a> <a:b> 1 }"))
    with pytest.raises(ParseError, match="line 1"):
        pool.query(Query("ASK { <relative> ?p ?o }"))
    assert pool.query(Query("ASK { <relative> ?p ?o }", base="http://x/")).read()


def test_a_query_that_crashes_the_engine_is_an_error_and_no_more(pool: WorkerPool) -> None:
    deep = "ASK {" + "{" * 200_000 + "}" * 200_000 + "}"
    with pytest.raises(ParseError, match="nested too deeply"):
        pool.query(Query(deep), timeout=20)
    assert pool.query(Query("ASK {}"), timeout=10).read()


def test_memory_is_bounded(store: Path) -> None:
    hungry = "SELECT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i } ORDER BY ?c ?f ?i"
    with WorkerPool(store, workers=1, memory=400 << 20) as pool:
        with pytest.raises(InterruptedQueryError, match="400 MiB"):
            pool.query(Query(hungry, union=True), timeout=60).read()
        assert pool.query(Query("ASK {}"), timeout=10).read()


@pytest.mark.service
def test_nothing_is_asked_of_other_servers(pool: WorkerPool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.3)
        port = server.getsockname()[1]
        with pytest.raises(StoreError, match="the query failed"):
            pool.query(Query(f"SELECT * {{ SERVICE <http://127.0.0.1:{port}/> {{ ?s ?p ?o }} }}"), timeout=10).read()
        with pytest.raises(TimeoutError):
            server.accept()


def test_a_worker_that_was_killed_is_replaced(store: Path) -> None:
    with WorkerPool(store, workers=1) as pool:
        pool.query(Query("ASK {}")).read()
        (pid,) = pool.pids()
        os.kill(pid, signal.SIGKILL)
        time.sleep(0.1)
        assert pool.query(Query("ASK {}"), timeout=10).read()
        assert pid not in pool.pids()


#: A worker that opens its source when the file `open` is there, or ends where it says so; each answer is its process.
OPENS = """
import os, struct, sys, time
from pathlib import Path
from condgraph.sparql.workers import forking

class Worker:
    def open(self, source):
        self.mark = Path(source["mark"])

    def serve(self):
        def frame(kind, data):
            os.write(0, struct.pack(">cI", kind, len(data)) + data)

        while not self.mark.exists():
            time.sleep(0.01)
        if text := self.mark.read_text():
            os._exit(int(text))
        frame(b"O", b"")
        for _ in forking.requests():
            frame(b"H", b'{"kind": "boolean"}')
            frame(b"D", str(os.getpid()).encode())
            frame(b"Z", b'{"cut": false}')

forking.serve_forks(Worker())
"""


def test_no_call_ends_a_worker_that_opens_its_graph(tmp_path: Path) -> None:
    """A graph that takes longer to open than a call has is open for later calls."""
    mark, command = tmp_path / "open", [sys.executable, "-c", OPENS]
    with WorkerPool({"mark": str(mark)}, workers=1, command=lambda: command, opens=True) as pool:
        for _ in range(2):
            with pytest.raises(BusyError, match="the graph is still being opened"):
                pool.query(Query("ASK {}"), timeout=0.2)
        mark.touch()
        pool.prepare(wait=True)
        (pid,) = pool.pids()
        assert pool.query(Query("ASK {}"), timeout=20).read() == str(pid).encode()
    mark.unlink()
    with WorkerPool({"mark": str(mark)}, workers=1, command=lambda: command, opens=True) as pool:
        pool.prepare()  # closing it does not wait for the graph
    mark.write_text("3")
    with WorkerPool({"mark": str(mark)}, workers=1, command=lambda: command, opens=True) as pool:
        pool.prepare(wait=True)
        with pytest.raises(StoreError, match="the process that opens the graph ended with code 3"):
            pool.query(Query("ASK {}"), timeout=20)


def test_many_threads_and_long_queries_at_once(store: Path) -> None:
    until = by_lane(3.0, 6.0, 6.0)
    with WorkerPool(store, workers=2, long=2, quantum=0.05) as pool:

        def short(number: int) -> float:
            begin = time.monotonic()
            text = f"SELECT ?v {{ GRAPH ?g {{ <{GRAPH}n{number}> <{GRAPH}value> ?v }} }}"
            assert f'"{number}"'.encode() in pool.query(Query(text), timeout=20).read()
            return time.monotonic() - begin

        def long(_: int) -> float:
            begin = time.monotonic()
            with pytest.raises(DeadlineError):
                pool.query(Query(RUNAWAY), timeout=until)
            return time.monotonic() - begin

        short(1)
        with ThreadPoolExecutor(24) as threads:
            ended = [threads.submit(long, i) for i in range(8)]
            time.sleep(0.1)
            answered = [threads.submit(short, i) for i in range(150)]
            slowest = max(one.result() for one in answered)
            ends = [one.result() for one in ended]
        # Eight queries without end take neither both places nor the time of the others.
        assert slowest < 5
        assert all(until <= end < until + 3 for end in ends)
        assert len(pool.pids()) <= 4


#: Asks a store for a count that takes a second, twice: afterwards a process is there for others.
LONG = """
import sys
from pathlib import Path
from condgraph.sparql.workers.worker import can_raise_priority
from condgraph.sparql.workers.pool import Query, WorkerPool
numbers = " ".join(map(str, range(160)))
text = "SELECT (COUNT(*) AS ?n) { " + " ".join(f"VALUES ?{name} {{ {numbers} }}" for name in "abc") + " }"
with WorkerPool(Path(sys.argv[1]), workers=1) as pool:
    for _ in range(2):
        assert b"4096000" in pool.query(Query(text), timeout=40).read()
    pool.query(Query("ASK {}"), timeout=40).read()
    print(can_raise_priority())
"""


@pytest.mark.slow
@pytest.mark.parametrize("rights", [[], ["setpriv", "--bounding-set=-sys_nice"]], ids=["rights", "no rights"])
def test_a_long_query_ends_on_a_busy_machine(store: Path, rights: list[str]) -> None:
    """Of the lowest priority it would get nothing beside programs that fill all processors; who may
    not raise it again, as most may not, does not lower it so far.
    """
    if rights and (not shutil.which("setpriv") or os.geteuid()):
        pytest.skip("only root can give rights away, by setpriv")
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)]
    try:
        ran = subprocess.run(
            [*rights, sys.executable, "-c", LONG, str(store)], check=True, capture_output=True, text=True, timeout=200
        )
        assert ran.stdout.strip() == "False" or not rights
    finally:
        for one in busy:
            one.kill()
            one.wait()


@pytest.fixture
def spinning() -> Iterator[Worker]:
    """A process that works all the time, where the system gives it its priority back."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        # The pool's processes are its own; this one is of the same kind to the system.
        worker = Worker.__new__(Worker)
        worker.pid, worker._reaped = process.pid, False
        worker.lower_priority()
        try:
            if not worker.restore_priority():
                pytest.skip("the system gives no process its priority back")
            yield worker
        finally:
            process.kill()


@pytest.mark.slow
def test_who_was_ahead_does_not_pay_for_it(spinning: Worker) -> None:
    """A second for itself, and then a busy machine: it is lifted as soon as it is behind."""
    begin, until = spinning.cpu_time(), time.monotonic() + 30
    while spinning.cpu_time() - begin < 1 and time.monotonic() < until:
        spinning.keep_share(0.2)
        spinning.restore_priority()
        time.sleep(0.02)
    os.kill(spinning.pid, signal.SIGSTOP)
    spinning._raised = False
    spinning._set_lowest()
    until = time.monotonic() + 2.5
    while os.sched_getscheduler(spinning.pid) != os.SCHED_OTHER and time.monotonic() < until:
        time.sleep(0.02)
        spinning.keep_share(0.2)
    assert os.sched_getscheduler(spinning.pid) == os.SCHED_OTHER
    # It works for more than its share again, and gives way.
    os.kill(spinning.pid, signal.SIGCONT)
    until = time.monotonic() + 30
    while os.sched_getscheduler(spinning.pid) != os.SCHED_IDLE and time.monotonic() < until:
        time.sleep(0.02)
        spinning.keep_share(0.2)
    assert os.sched_getscheduler(spinning.pid) == os.SCHED_IDLE


def test_a_process_that_was_given_up_is_left_alone(spinning: Worker) -> None:
    """Its number may be another's by then."""
    spinning._usage, spinning._raised, spinning._reaped = (time.monotonic() - 10, spinning.cpu_time(), 0.0), False, True
    spinning._set_lowest()
    spinning.keep_share(1.0)
    assert os.sched_getscheduler(spinning.pid) == os.SCHED_IDLE


def test_what_became_long_twice_is_one(store: Path) -> None:
    """By what it gave, and by the time that it took: its place is free once."""
    numbers = " ".join(map(str, range(250)))
    text = f"SELECT ?a ?b {{ VALUES ?a {{ {numbers} }} VALUES ?b {{ {numbers} }} }}"
    with WorkerPool(store, workers=1, long=2, quantum=0.001) as pool:
        for _ in range(2):
            with pool.query(Query(text), timeout=60) as results:
                for _ in results:
                    time.sleep(0.002)
        assert (pool._scheduler._free, pool._scheduler._long) == (1, 0)


def test_waiting_is_bounded(store: Path) -> None:
    with WorkerPool(store, workers=1, long=0, waiting=1) as pool, ThreadPoolExecutor(3) as threads:

        def run() -> str:
            try:
                pool.query(Query(RUNAWAY), timeout=1.0)
            except InterruptedQueryError as error:
                return error.code
            return "answered"

        pool.query(Query("ASK {}")).read()
        codes = sorted(one.result() for one in [threads.submit(run) for _ in range(3)])
        assert codes == ["busy", "deadline", "deadline"]
        assert issubclass(BusyError, InterruptedQueryError)


def test_an_event_loop(store: Path) -> None:
    async def run() -> None:
        with WorkerPool(store, workers=2) as pool:

            async def one(number: int) -> bytes:
                results = await pool.query_async(Query(f"SELECT ({number} AS ?n) {{}}", solutions="csv"), timeout=20)
                return await results.read()

            found = await asyncio.gather(*(one(i) for i in range(50)))
            assert found == [f"n\r\n{i}\r\n".encode() for i in range(50)]
            with pytest.raises(DeadlineError):
                await pool.query_async(Query(RUNAWAY), timeout=0.3)
            task = asyncio.ensure_future(pool.query_async(Query(RUNAWAY), timeout=20))
            await asyncio.sleep(0.2)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await one(7) == b"n\r\n7\r\n"

    asyncio.run(run())


def test_files_in_memory_and_changing_them(pool: WorkerPool, tmp_path: Path) -> None:
    first, second = tmp_path / "1.ttl", tmp_path / "2.nq"
    first.write_text("<a> <b> 1, 2 .")
    second.write_text("<a:a> <a:b> <a:c> <a:g> .\n")
    with WorkerPool([File(first, "text/turtle", None, "http://x/")], workers=1) as own:
        assert count("json", own.query(Query("SELECT * { <http://x/a> ?p ?o }")).read()) == 2
        own.use([File(second, "application/n-quads")])
        assert count("json", own.query(Query("SELECT * { GRAPH <a:g> { ?s ?p ?o } }")).read()) == 1
        own.use(tmp_path / "nothing")
        with pytest.raises(StoreError, match="cannot be opened"):
            own.query(Query("ASK {}"))
        own.use([File(first, "application/n-quads")])
        with pytest.raises(StoreError, match="cannot be opened"):
            own.query(Query("ASK {}"))
        own.use([File(first, "text/turtle", None, "http://x/")])
        assert own.query(Query("ASK {}")).read()


def children() -> set[int]:
    """The processes that this one has started, and has not waited for."""
    tasks = Path("/proc/self/task").iterdir()
    return {int(child) for task in tasks for child in (task / "children").read_text().split()}


def test_a_query_waits_for_the_next_source_where_its_own_is_gone(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with OxigraphBackend(tmp_path / "gone", graphs=[GRAPH], default=GRAPH, state={"X-Of": "gone"}) as backend:

        async def asked(timeout: float) -> tuple[bytes, str]:
            results = await backend.query(Query("ASK { ?s ?p ?o }"), timeout)
            return b"".join([part async for part in results]), results.head.headers["X-Of"]

        async def both() -> tuple[bytes, str]:
            with monkeypatch.context() as patched:
                patched.setattr("condgraph.endpoint.backend._NEWER", 0.01)
                with pytest.raises(UnopenedError, match="cannot be opened"):
                    await asked(20.0)
            asyncio.get_running_loop().call_later(0.2, partial(backend.use, store, state={"X-Of": "store"}))
            return await asked(20.0)

        answer, state = asyncio.run(both())
    assert b"true" in answer
    # The headers are those of the store that answered, not those of the one that was there when the query came.
    assert state == "store"


def test_another_source_ends_what_the_last_one_had(store: Path, tmp_path: Path) -> None:
    before = children()
    with WorkerPool(store, workers=2) as own:
        own.query(Query("ASK {}")).read()
        first, workers = children() - before, own.pids()
        assert first
        with own.query(Query("SELECT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }", union=True), timeout=20) as running_on:
            own.use(store)
            assert own.query(Query("ASK {}"), timeout=10).read()
            assert next(running_on)
        until = time.monotonic() + 10
        while first & children() and time.monotonic() < until:
            time.sleep(0.02)
        assert not first & children()
        assert not any(running(pid) for pid in workers)
        assert own.query(Query("ASK {}"), timeout=10).read()
    assert children() == before


@pytest.mark.parametrize("place", ["disk", "memory"])
def test_every_worker_that_is_forked_answers(place: str, store: Path, tmp_path: Path) -> None:
    file = tmp_path / "data.nq"
    file.write_text("".join(f'<a:{i}> <a:p> "{i}" <{GRAPH}> .\n' for i in range(201)))
    source = store if place == "disk" else [File(file, "application/n-quads")]
    with WorkerPool(source, workers=1) as own:
        for _ in range(60):
            # A query that is given up takes its process with it: the next one runs in another.
            results = own.query(Query("SELECT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }", union=True), timeout=20)
            results.close()
            found = own.query(Query(f"SELECT (COUNT(*) AS ?n) {{ GRAPH <{GRAPH}> {{ ?s ?p ?o }} }}", solutions="csv"), timeout=20)
            assert found.read() == b"n\r\n201\r\n"


def test_closing_ends_everything(store: Path) -> None:
    pool = WorkerPool(store, workers=2)
    pool.query(Query("ASK {}")).read()
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(pool.query, Query(RUNAWAY), timeout=30)
        time.sleep(0.3)
        pids = pool.pids()
        pool.close()
        with pytest.raises((InterruptedQueryError, StoreError)):
            waiting.result(10)
    assert not any(running(pid) for pid in pids)
    with pytest.raises(StoreError, match="closed"):
        pool.query(Query("ASK {}"))


def test_processes_end_with_their_owner(store: Path) -> None:
    import subprocess
    import sys

    program = (
        "import sys, os, threading, time\nfrom pathlib import Path\nfrom condgraph.sparql.workers.pool import *\n"
        "pool = WorkerPool(Path(sys.argv[1]), workers=1)\n"
        "threading.Thread(target=lambda: pool.query(Query(sys.argv[2])), daemon=True).start()\n"
        "until = time.monotonic() + 20\nwhile not pool.pids() and time.monotonic() < until: time.sleep(0.1)\n"
        "time.sleep(0.3)\nprint(*pool.pids(), flush=True)\nos.kill(os.getpid(), 9)\n"
    )
    ran = subprocess.run([sys.executable, "-c", program, str(store), RUNAWAY], capture_output=True, text=True, check=False)
    pids = [int(pid) for pid in ran.stdout.split()]
    assert pids, ran.stderr
    assert not any(running(pid) for pid in pids)


def test_a_forked_process_has_workers_of_its_own(pool: WorkerPool) -> None:
    pool.query(Query("ASK {}")).read()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writer, pool.query(Query("SELECT (42 AS ?n) {}", solutions="csv"), timeout=10).read())
        finally:
            pool.close()
            os._exit(0)
    os.close(writer)
    assert os.read(reader, 100) == b"n\r\n42\r\n"
    os.close(reader)
    os.waitpid(child, 0)
    assert pool.query(Query("ASK {}"), timeout=5).read()


def test_the_process_that_forks_workers_is_replaced(store: Path) -> None:
    with WorkerPool(store, workers=1) as pool:
        pool.query(Query("ASK {}")).read()
        # A query that takes long, as on a busy machine, gets a place beside the one that was asked for.
        workers = pool.pids()
        parent = int(Path(f"/proc/{workers[0]}/stat").read_text().rpartition(")")[2].split()[1])
        assert parent != os.getpid()
        for pid in (parent, *workers):
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.2)
        assert pool.query(Query("ASK {}"), timeout=10).read()
        assert not set(workers) & set(pool.pids())
    # Nothing is left of it.
    assert not [
        child
        for task in Path("/proc/self/task").iterdir()
        for child in (task / "children").read_text().split()
        if int(child) == parent
    ]
