"""Queries with a deadline: a pool of processes that have a store open, each of which can be killed.

Oxigraph cannot be told to stop, so a query that has a deadline, or may be cancelled, runs in a process of its own, which is
killed when its time is over. Processes are reused, and shared by all threads and event loops; a short query costs one round
trip over a socket more than in process. Results arrive serialised, in the requested format, part by part.

A query that takes more than a quantum of processor time gives up its place: its process continues with the lowest priority, and
another one takes the place. Whatever else the machine does, long queries together get a share of one processor (`LONG_SHARE`),
or each a tenth of the usual share, if this process could not raise a priority again (`worker.can_raise_priority`). If the most
long queries are running already, a query that becomes long is killed, and starts again when there is room, within what remains
of its deadline: short queries do not wait for long ones.
"""

from __future__ import annotations

import json
import os
import re
import signal
import time
import weakref
from collections import deque
from collections.abc import AsyncIterator, Callable, Collection, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from threading import Event, Lock, Thread
from types import TracebackType
from typing import Any, Final, Literal, Protocol

from condgraph.engine import errors
from condgraph.sparql.text.scan import mistake, occurring
from condgraph.sparql.workers.worker import ForkServer, Wait, Worker, frame, oxigraph_command

__all__ = ["AsyncResults", "File", "Head", "Query", "Results", "UnopenedError", "UnwritableError", "WorkerPool"]


# -- results -----------------------------------------------------------------------------------------
# A query for a worker, and its results as they arrive, in a thread or in an event loop.


Solutions = Literal["json", "xml", "csv", "tsv"]
Triples = Literal["turtle", "ntriples", "jsonld", "rdfxml", "trig", "nquads"]


@dataclass(frozen=True, slots=True)
class Query:
    """A query, its data set, and the formats of its results.

    `default_graphs` and `named_graphs` are the data set. None means the store's, or the one in the query; otherwise
    they replace it, and if only named graphs are given, the default graph is empty. `union` makes the default graph the
    union of all graphs. `limit` is the most solutions or triples. `version` is the RDF version of the results: triple
    terms need "1.2", base directions of texts also "1.2-basic".

    Without text, `graph` requests a named graph as it is, `dataset` all graphs with their names.
    """

    text: str
    solutions: Solutions = "json"
    triples: Triples = "turtle"
    base: str | None = None
    default_graphs: Sequence[str] | None = None
    named_graphs: Sequence[str] | None = None
    union: bool = False
    limit: int | None = None
    version: str = "1.2"
    prefixes: Mapping[str, str] | None = None
    output_prefixes: Mapping[str, str] | None = None
    graph: str | None = None
    dataset: bool = False

    def request(self) -> bytes:
        """Return the query as a frame for a worker."""
        record: dict[str, Any] = {"query": self.text, "solutions": self.solutions, "triples": self.triples}
        if self.version != "1.2":
            record["plain"] = True
            if self.version != "1.2-basic":
                record["undirected"] = True
        for name in ("base", "limit", "union", "graph", "dataset"):
            if value := getattr(self, name):
                record[name] = value
        for name in ("default_graphs", "named_graphs"):
            if (graphs := getattr(self, name)) is not None:
                record[name] = list(graphs)
        if self.prefixes and (used := occurring(self.prefixes, self.text)):
            record["prefixes"] = dict(used)
        if self.output_prefixes:
            record["output_prefixes"] = dict(self.output_prefixes)
        return frame(json.dumps(record).encode("utf-8", "surrogatepass"))


@dataclass(frozen=True, slots=True)
class File:
    """A file to load into a store in memory: its path, its media type, and the graph and base of its triples."""

    path: Path
    media_type: str
    graph: str | None = None
    base: str | None = None


@dataclass(slots=True)
class Head:
    """The kind of a query, known before its first result.

    `headers` are those of answers from the source of the worker. `cut`, whether the limit cut the results, and `records`
    of the queries that were run for them (`tracing.record`) are known after the last result.
    """

    kind: Literal["solutions", "boolean", "triples"]
    variables: tuple[str, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: bool = False
    records: Sequence[dict[str, Any]] = ()


Steps = Generator[Wait | Head | bytes, bool, None]


class _Conversation:
    """A query and its worker, for threads and event loops: the steps to wait for, and the parts of the results."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self.head = Head("boolean")

    @property
    def cut(self) -> bool:
        """Whether there were more results than the limit; known after the last part."""
        return self.head.cut

    def close(self) -> None:
        """End the query, if it still runs."""
        self._steps.close()


class Results(_Conversation, Iterator[bytes]):
    """The results of a query, part by part. Close them, or read them to the end."""

    def __init__(self, steps: Steps, cancelled: Event | None) -> None:
        super().__init__(steps)
        self._cancelled = cancelled
        self.head = self._next()  # type: ignore[assignment]

    def _next(self) -> Head | bytes:
        answer = None
        while True:
            step = self._steps.send(answer) if answer is not None else next(self._steps)
            if not isinstance(step, Wait):
                return step
            try:
                answer = step.block(self._cancelled)
            except BaseException:
                self.close()
                raise

    def __next__(self) -> bytes:
        return self._next()  # type: ignore[return-value]

    def read(self) -> bytes:
        """Return all parts, joined."""
        return b"".join(self)

    def __enter__(self) -> Results:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class AsyncResults(_Conversation, AsyncIterator[bytes]):
    """The results of a query, part by part, in an event loop. Close them, or read them to the end."""

    async def begin(self) -> AsyncResults:
        """Wait for the head."""
        self.head = await self._next()  # type: ignore[assignment]
        return self

    async def _next(self) -> Head | bytes | None:
        answer = None
        while True:
            try:
                step = self._steps.send(answer) if answer is not None else next(self._steps)
            except StopIteration:
                return None
            if not isinstance(step, Wait):
                return step
            try:
                answer = await step.wait()
            except BaseException:
                self.close()
                raise

    async def __anext__(self) -> bytes:
        step = await self._next()
        if step is None:
            raise StopAsyncIteration
        return step  # type: ignore[return-value]

    async def read(self) -> bytes:
        """Return all parts, joined."""
        return b"".join([part async for part in self])


# -- places ------------------------------------------------------------------------------------------
# Assigns worker processes to queries: places for queries, a queue for each kind of query, and long
# queries that gave up their place. A thread starts processes, so that no caller waits for that.


#: The least share of one processor for all long queries together on a busy machine: without it, other
#: programs could keep a long query from ever ending.
LONG_SHARE: Final = 0.3


class BusyError(errors.InterruptedQueryError):
    """Too many queries are waiting already."""

    code = "busy"


class Scheduler:
    """`size` places for queries, and room for `long` queries that gave up theirs.

    A place is not a process: idle processes are stored separately. `command` returns the command that starts the
    process from which workers are forked; `opens` tells whether each worker opens the source itself, and sends a frame
    when it has.
    """

    def __init__(self, size: int, long: int, waiting: int, command: Callable[[], Sequence[str]], *, opens: bool = False) -> None:
        self._size, self._max_long, self._max_waiting, self._command = size, long, waiting, command
        self._opens = opens
        self._lock = Lock()
        self._source = b""
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._closed = False
        #: Free places, running long queries, and processes that are being started.
        self._free, self._long, self._starting = self._size, 0, 0
        self._idle: list[Worker] = []
        self._all: set[Worker] = set()
        self._waiting: deque[Future[Worker]] = deque()
        self._long_waiting: deque[Future[Worker]] = deque()
        #: The process from which new workers are forked, and all such processes that still have workers.
        self._forks: ForkServer | None = None
        self._servers: set[ForkServer] = set()
        self._starts = _Thread("condgraph-starts")

    def share(self) -> float:
        """Return the least share of a processor for each long query."""
        return LONG_SHARE / max(self._long, 1)

    def pids(self) -> list[int]:
        """Return the ids of the processes."""
        with self._lock:
            return [worker.pid for worker in self._all if worker.alive()]

    def use(self, source: bytes) -> None:
        """Set what workers open from now on, in the form of `ForkServer`; running queries keep their source."""
        with self._lock:
            self._source, self._forks = source, None
            for worker in self._idle:
                self._discard(worker)
            self._idle.clear()
            self._retire_servers()

    def prepare(self) -> None:
        """Start a process ahead of the first query."""
        with self._lock:
            if not self._closed and not self._idle:
                self._start(1)

    def opening(self) -> bool:
        """Tell whether there is no process yet, because the first one is still opening the source."""
        with self._lock:
            return self._opens and self._starting > 0 and not self._all

    # -- workers for queries -----------------------------------------------------------------------

    def acquire(self, *, long: bool) -> Worker | Future[Worker]:
        """Return a worker, or a future of one; `long` is for a query that is known to be long."""
        if os.getpid() != self._pid:
            self._reset_after_fork()
        with self._lock:
            if self._closed:
                raise errors.StoreError("the worker processes were closed")
            if not long and self._free and not self._waiting:
                worker = self._idle_worker()
                if worker is not None:
                    self._free -= 1
                    return worker
            queue = self._long_waiting if long else self._waiting
            if len(queue) >= self._max_waiting:
                raise BusyError(f"{len(queue)} queries wait already", hint="try again later")
            promise: Future[Worker] = Future()
            queue.append(promise)
            self._assign()
            return promise

    def withdraw(self, promise: Future[Worker]) -> None:
        """Give up a future of a worker, or the worker that it has by now."""
        if not promise.cancel() and promise.exception() is None:
            self.release(promise.result(), healthy=True)

    def release(self, worker: Worker, *, healthy: bool) -> None:
        """Take a worker back after a query; an unhealthy one (still running, or crashed) is killed."""
        with self._lock:
            if worker not in self._all:
                worker.close()  # the pool was closed meanwhile
                return
            if worker.long:
                self._long -= 1
                healthy = healthy and worker.restore_priority()
                worker.long = False
            else:
                self._free += 1
            if healthy and worker.forks is self._forks and len(self._idle) < 2 * self._size:
                self._idle.append(worker)
            else:
                self._discard(worker)
                self._start_spares()
            self._assign()

    def demote(self, worker: Worker, *, begun: bool) -> bool:
        """Make a query a long one, which frees its place; return False if no more long queries may run.

        A query that has begun to send results (`begun`) cannot be restarted: there may be twice as many of these before
        one keeps its place.
        """
        with self._lock:
            if worker.long:
                return True
            if self._closed or self._long >= self._max_long * (2 if begun else 1):
                return False
            self._free += 1
            self._long += 1
            worker.long = True
            worker.lower_priority()
            self._assign()
            self._start_spares()
            return True

    def _idle_worker(self) -> Worker | None:
        """Return an idle process, or None."""
        while self._idle:
            worker = self._idle.pop()
            if worker.alive():
                return worker
            self._discard(worker)
        return None

    def _assign(self) -> None:
        """Give places and processes to waiting queries, and start the missing processes."""
        while self._long_waiting and self._long < self._max_long and self._assign_first(self._long_waiting, long=True):
            self._long += 1
        while self._waiting and self._free and self._assign_first(self._waiting, long=False):
            self._free -= 1
        wanted = min(len(self._waiting), self._free) + min(len(self._long_waiting), max(0, self._max_long - self._long))
        self._start(wanted - self._starting)

    def _assign_first(self, queue: deque[Future[Worker]], *, long: bool) -> bool:
        """Give a process to the first query of a queue; return False if there is no process, or no query."""
        worker = self._idle_worker()
        if worker is None:
            return False
        while queue:
            promise = queue.popleft()
            if promise.set_running_or_notify_cancel():
                if long:
                    worker.long = True
                    worker.lower_priority()
                promise.set_result(worker)
                return True
        self._idle.append(worker)
        return False

    def _start_spares(self) -> None:
        """Replace killed processes before the next query needs them."""
        self._start(2 * self._size - self._starting - len(self._idle))

    # -- starting and ending processes -------------------------------------------------------------

    def _start(self, count: int) -> None:
        # As many processes are idle as run a query.
        room = 2 * self._size + max(self._long, self._max_long) - len(self._all) - self._starting
        for _ in range(min(count, room)):
            if self._closed:
                return
            self._starting += 1
            self._starts.run(self._start_worker)

    def _start_worker(self) -> None:
        try:
            worker = self._new_worker()
            if self._opens:
                self._wait_until_open(worker)
        except (OSError, errors.StoreError) as error:
            with self._lock:
                self._starting -= 1
                promises = [*self._waiting, *self._long_waiting]
                self._waiting.clear()
                self._long_waiting.clear()
            for promise in promises:
                if promise.set_running_or_notify_cancel():
                    promise.set_exception(errors.StoreError(f"no worker process can be started: {error}"))
            return
        with self._lock:
            self._starting -= 1
            self._all.add(worker)
            worker.forks.workers += 1
            if self._closed or worker.forks is not self._forks:
                self._discard(worker)
            else:
                self._idle.append(worker)
            if not self._closed:
                self._assign()

    def _new_worker(self) -> Worker:
        """Return a process, forked from the present server, or from a new one if that is missing or gone."""
        with self._lock:
            forks, source = self._forks, self._source
        if forks is not None:
            try:
                return Worker(forks)
            except OSError:  # it was killed
                with self._lock:
                    self._servers.discard(forks)
                forks.close()
        forks = ForkServer(source, self._command())
        with self._lock:
            self._servers.add(forks)
            if source is self._source:
                self._forks = forks
        return Worker(forks)

    def _wait_until_open(self, worker: Worker) -> None:
        """Wait for the frame of a worker that opens the source itself.

        If a query waited for that, it would kill the worker at its deadline, and the next query would start again.
        """
        try:
            while not self._closed and not (worker.poll.poll(100) and worker.receive()):
                pass
        except EOFError:
            code = worker.exit_code()
            worker.close()
            raise errors.StoreError(f"the process that opens the graph ended with code {code}") from None

    def _discard(self, worker: Worker) -> None:
        self._all.discard(worker)
        worker.discard()
        worker.forks.workers -= 1
        if worker.forks is not self._forks:
            self._retire_servers()

    def _retire_servers(self) -> None:
        """End the servers that are no longer used and have no workers."""
        for forks in [server for server in self._servers if server is not self._forks and not server.workers]:
            self._servers.discard(forks)
            self._starts.run(forks.close)

    # -- the end -----------------------------------------------------------------------------------

    def close(self) -> None:
        """Kill every process; waiting queries fail."""
        if os.getpid() != self._pid:
            return
        with self._lock:
            if self._closed:
                return
            self._closed = True
            promises = [*self._waiting, *self._long_waiting]
            self._waiting.clear()
            self._long_waiting.clear()
            for worker in self._idle:
                worker.discard()
            for worker in self._all:
                worker.kill()  # whoever waits for its data closes the socket
            self._all.clear()
            self._idle.clear()
        for promise in promises:
            if promise.set_running_or_notify_cancel():
                promise.set_exception(errors.StoreError("the worker processes were closed"))
        self._starts.end()
        for forks in self._servers:
            forks.close()
        self._servers.clear()

    def _reset_after_fork(self) -> None:
        """Start without workers in a forked process: they belong to its parent."""
        self._lock = Lock()
        for worker in self._all:
            worker.detach()
        for forks in self._servers:
            forks.detach()
        self._begin()


class _Thread:
    """A thread that runs one call after the other; the first call starts it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._queue: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread: Thread | None = None

    def run(self, call: Callable[[], None]) -> None:
        """Run a call soon; called under the lock of the scheduler."""
        if self._thread is None:
            # It only refers to its queue: a scheduler without other references is closed.
            self._thread = Thread(target=_work, args=(self._queue,), name=self._name, daemon=True)
            self._thread.start()
        self._queue.put(call)

    def end(self) -> None:
        """Wait until all calls have run."""
        self._queue.put(None)
        if self._thread is not None:
            self._thread.join()


def _work(queue: SimpleQueue[Callable[[], None] | None]) -> None:
    while (call := queue.get()) is not None:
        call()
        del call


# -- pool --------------------------------------------------------------------------------------------


#: Bytes of data that a process may have.
MEMORY: Final = 2 << 30
#: A query that has sent this many bytes of results counts as long.
LONG_BYTES: Final = 1 << 20
#: Seconds between two checks of how long a query has run.
_MIN_INTERVAL: Final = 0.002
#: Seconds between two checks of whether a long query gets its share of a processor.
_SHARE_INTERVAL: Final = 0.1
#: With less memory, a process cannot open a store.
MIN_MEMORY: Final = 256 << 20


class Request(Protocol):
    """A request to a worker."""

    def request(self) -> bytes:
        """Return the request as a frame."""
        ...


class WorkerPool:
    """Processes that answer queries over one store, for use from any thread and any event loop.

    `workers` queries run at once, and in addition up to `long` (by default twice as many) that take more than `quantum`
    seconds of processor time, and as many again that have begun to send results and so cannot be restarted. Further
    queries wait, at most `waiting` of them. With two workers for each processor, a query that turns out to be long
    delays no other one. `memory` is how many bytes of data a process may have, 0 for any number.

    `command` starts other processes than Oxigraph's: they get the source as JSON, and use the protocol of `process`.
    With `opens`, each of them opens the source itself, and sends a frame when it has: it gets no query before.
    """

    def __init__(
        self,
        source: Path | Sequence[File] | Mapping[str, Any],
        *,
        workers: int = 4,
        long: int | None = None,
        waiting: int = 10_000,
        quantum: float = 0.01,
        memory: int = MEMORY,
        command: Callable[[], Sequence[str]] | None = None,
        opens: bool = False,
    ) -> None:
        if workers < 1 or (long is not None and long < 0):
            raise errors.OptionError("a pool has at least one worker")
        if memory and memory < MIN_MEMORY:
            raise errors.OptionError(f"a worker process needs {MIN_MEMORY >> 20} MiB of memory at least, not {memory >> 20} MiB")
        # If no long queries may run, every query keeps its place.
        self._quantum, self._memory = quantum if long != 0 else None, memory
        self._scheduler = Scheduler(
            workers, 2 * workers if long is None else long, waiting, command or partial(oxigraph_command, memory), opens=opens
        )
        self.use(source)
        # Kills the processes of a pool that nobody closes.
        self._end = weakref.finalize(self, self._scheduler.close)

    def use(self, source: Path | Sequence[File] | Mapping[str, Any]) -> None:
        """Answer from another store from now on; running queries keep theirs."""
        opened: Mapping[str, Any]
        if isinstance(source, Mapping):
            opened = source
        elif isinstance(source, Path):
            opened = {"store": str(source)}
        else:
            opened = {"files": [[str(file.path), file.media_type, file.graph, file.base] for file in source]}
        self._scheduler.use(frame(json.dumps(opened).encode()))

    def prepare(self, *, wait: bool = False) -> None:
        """Open the source ahead of the first query.

        Returns at once, or with `wait` when a process is ready or cannot be started.
        """
        self._scheduler.prepare()
        if not wait:
            return
        place = self._scheduler.acquire(long=False)
        if isinstance(place, Worker):
            self._scheduler.release(place, healthy=True)
        else:
            place.exception()
            self._scheduler.withdraw(place)

    def close(self) -> None:
        """Kill all processes; running queries fail."""
        self._end()

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def pids(self) -> list[int]:
        """Return the ids of the processes."""
        return self._scheduler.pids()

    def query(self, query: Request, *, timeout: float | None = None, cancelled: Event | None = None) -> Results:
        """Run a query; return as soon as its kind is known.

        `timeout` is in seconds from now, and includes reading the results: `DeadlineError` after that, here or while
        results are read. Also raises `ParseError`, `CancelledError`, `InterruptedQueryError` (out of memory, or the
        engine crashed), `UnsupportedError` (the format cannot hold the results), `UnopenedError` and `StoreError`.
        """
        return Results(self._steps(query, timeout), cancelled)

    async def query_async(self, query: Request, *, timeout: float | None = None) -> AsyncResults:
        """Run `query` in an event loop; cancel the task to cancel the query."""
        return await AsyncResults(self._steps(query, timeout)).begin()

    # -- the conversation with a worker ------------------------------------------------------------

    def _steps(self, query: Request, timeout: float | None) -> Steps:
        request = query.request()
        until = None if timeout is None else time.monotonic() + timeout
        long = False
        while True:
            worker = yield from self._acquire(long, until, timeout)
            healthy = False
            try:
                healthy = yield from self._send(worker, request, until, timeout)
                if healthy:
                    return
            except _WorkerError as error:
                healthy = True
                raise _error(error.kind, error.message, request, self._memory, getattr(query, "prefixes", None) or ()) from None
            finally:
                self._scheduler.release(worker, healthy=healthy)
            long = True

    def _acquire(self, long: bool, until: float | None, timeout: float | None) -> Generator[Wait | Head | bytes, bool, Worker]:
        """Wait for a place."""
        place = self._scheduler.acquire(long=long)
        if isinstance(place, Worker):
            return place
        arrived = False
        try:
            arrived = yield Wait(place, until)
        finally:
            if not arrived:
                self._scheduler.withdraw(place)
        if not arrived:
            if self._scheduler.opening():
                raise BusyError("the graph is still being opened", hint="try again later")
            raise errors.DeadlineError(f"the query did not get to run to its end in {timeout:g} s, there are too many")
        return place.result()

    def _send(
        self, worker: Worker, request: bytes, until: float | None, timeout: float | None
    ) -> Generator[Wait | Head | bytes, bool, bool]:
        """Send a query to a worker, and yield its results; return False if it has to be restarted as a long one."""
        head, size = None, 0
        sent = worker.send(request)
        while not sent:
            if not (yield Wait(worker, until, writing=True)):
                raise errors.DeadlineError(f"the query did not end in {timeout:g} s")
            sent = worker.send()
        quantum = None if worker.long else self._quantum
        # Time that a busy machine gives to other processes does not count.
        begin = worker.cpu_time()
        next_check = time.monotonic() + (_SHARE_INTERVAL if quantum is None else quantum)
        while True:
            wake = next_check if until is None else min(next_check, until)
            arrived = yield Wait(worker, wake)
            now = time.monotonic()
            if until is not None and now >= until:
                raise errors.DeadlineError(f"the query did not end in {timeout:g} s")
            if not arrived:
                if quantum is None:
                    if worker.long:
                        worker.keep_share(self._scheduler.share())
                    next_check = now + _SHARE_INTERVAL
                    continue
                remaining = quantum - (worker.cpu_time() - begin)
                if remaining > 0:
                    next_check = now + max(remaining, _MIN_INTERVAL)
                elif self._scheduler.demote(worker, begun=head is not None):
                    quantum = None
                elif head is None:
                    return False
                else:
                    next_check = now + quantum
                continue
            try:
                frames = worker.receive()
            except EOFError:
                raise _crash(worker.exit_code(), self._memory) from None
            for kind, data in frames:
                if kind == b"D":
                    size += len(data)
                    # Whoever reads much may read slowly, and must not keep a place meanwhile.
                    if size > LONG_BYTES and not worker.long and self._quantum is not None:
                        self._scheduler.demote(worker, begun=True)
                    yield data
                elif kind == b"H":
                    about = json.loads(data.decode())
                    head = Head(about["kind"], tuple(about.get("variables", ())), about.get("headers", {}))
                    yield head
                elif kind == b"Z":
                    assert head is not None
                    end = json.loads(data)
                    head.cut, head.records = end["cut"], end.get("records", ())
                    return True
                else:
                    raise _WorkerError(json.loads(data))


class UnwritableError(errors.UnsupportedError):
    """A format cannot hold the results."""


class UnopenedError(errors.StoreError):
    """The folder of a store could not be opened: a load may have replaced its generation."""


class _WorkerError(Exception):
    """An error that a worker reports."""

    def __init__(self, report: dict[str, str]) -> None:
        super().__init__()
        self.kind, self.message = report["kind"], report["message"]


_ERROR_POSITION: Final = re.compile(r"error at (\d+):(\d+): ")


def _error(kind: str, message: str, request: bytes, memory: int, prefixes: Collection[str]) -> errors.CondgraphError:
    if kind == "syntax":
        match = _ERROR_POSITION.match(message)
        if match is None:
            return errors.ParseError(message)
        text: str = json.loads(request[4:])["query"]
        lines = text.split("\n")
        found_mistake = mistake(text, prefixes)
        if found_mistake is not None:
            line, column = (
                text.count("\n", 0, found_mistake.begin) + 1,
                found_mistake.begin - (text.rfind("\n", 0, found_mistake.begin) + 1) + 1,
            )
            return errors.ParseError(
                f"line {line}, column {column}: {found_mistake.message}", span=(found_mistake.begin, found_mistake.end)
            )
        line, column = int(match[1]), int(match[2])
        start = min(len(text), sum(len(row) + 1 for row in lines[: line - 1]) + column - 1)
        # Of the parser's expectations, character classes help nobody.
        expected = message[match.end() :].partition(", ['")[0]
        return errors.ParseError(f"line {line}, column {column}: {expected}", span=(start, min(len(text), start + 1)))
    if kind == "unopened":
        return UnopenedError(f"the query failed: {message}")
    if kind == "missing":
        return errors.UnknownNameError("graph", message)
    unknown = re.search(r"custom function (<[^>]*>) is not supported", message)
    if unknown is not None:
        return errors.UnsupportedError("the store", [f"the function {unknown[1]}"])
    if kind == "version":
        return UnwritableError("RDF 1.1", [message], hint="add ;version=1.2 to the media type in Accept")
    if kind == "unwritable":
        return UnwritableError("RDF/XML", [message], hint="ask for Turtle or N-Triples")
    if kind == "memory":
        return errors.InterruptedQueryError(f"the query needs more than {memory >> 20} MiB of memory")
    return errors.StoreError(f"the query failed: {message}")


def _crash(code: int | None, memory: int) -> errors.CondgraphError:
    if code == -signal.SIGABRT:
        return errors.InterruptedQueryError(f"the query needs more than {memory >> 20} MiB of memory")
    if code == -signal.SIGSEGV:
        return errors.ParseError("the query is nested too deeply")
    return errors.InterruptedQueryError(f"the process that ran the query ended with code {code}")
