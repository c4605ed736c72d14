"""Queries with a deadline: a pool of processes that have a store open, each of which can be killed.

Oxigraph cannot be told to stop, so a query that has a deadline, or somebody who may cancel it, runs
in a process of its own, which is killed when its time is over. Processes are kept between queries,
and shared by all threads and event loops; a short query costs one round trip over a socket more
than in process. Results come serialised, in the format that was asked for, part by part.

A query that takes more than a quantum of a processor's time gives its place up: its process goes on
with the lowest priority, and another one takes the place; whatever else the machine does, long
queries together get a share of one processor (`LONG_SHARE`), or each a tenth of the usual
one, where this process could not raise a priority again (`worker.may_raise`). When as many long
queries run as are allowed, one that becomes long is ended, and begins anew when there is room, in
what its deadline leaves it: short queries do not wait behind long ones.
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
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from threading import Event, Lock, Thread
from types import TracebackType
from typing import Any, Final, Literal, Protocol

from condgraph.engine.errors import (
    CondgraphError,
    DeadlineError,
    InterruptedQueryError,
    OptionError,
    ParseError,
    StoreError,
    UnknownNameError,
    UnsupportedError,
)
from condgraph.sparql.text.scan import mistake, occurring
from condgraph.sparql.workers.worker import ForkServer, Wait, Worker, frame, oxigraph_command

__all__ = ["AsyncResults", "File", "Head", "Query", "Results", "UnopenedError", "UnwritableError", "WorkerPool"]


# -- results -----------------------------------------------------------------------------------------
# A query for a worker, and its results as they come, in a thread or in an event loop.


Solutions = Literal["json", "xml", "csv", "tsv"]
Triples = Literal["turtle", "ntriples", "jsonld", "rdfxml", "trig", "nquads"]


@dataclass(frozen=True, slots=True)
class Query:
    """A query, its data set, and how its results are to be written.

    `default_graphs` and `named_graphs` are the data set (None: the store's, or what the query says;
    given, they count and not what the query says; without default graphs, named ones that are given
    leave the default graph empty). `union` makes the default graph all graphs.
    `limit` is the most solutions, or triples, that are given. `graph` asks for a named graph as it
    is, `dataset` for all graphs with their names, and there is no text then.
    """

    text: str
    solutions: Solutions = "json"
    triples: Triples = "turtle"
    base: str | None = None
    default_graphs: Sequence[str] | None = None
    named_graphs: Sequence[str] | None = None
    union: bool = False
    limit: int | None = None
    prefixes: Mapping[str, str] | None = None
    output_prefixes: Mapping[str, str] | None = None
    graph: str | None = None
    dataset: bool = False

    def request(self) -> bytes:
        """As it goes to a worker."""
        said: dict[str, Any] = {"query": self.text, "solutions": self.solutions, "triples": self.triples}
        for name in ("base", "limit", "union", "graph", "dataset"):
            if value := getattr(self, name):
                said[name] = value
        for name in ("default_graphs", "named_graphs"):
            if (graphs := getattr(self, name)) is not None:
                said[name] = list(graphs)
        if self.prefixes and (used := occurring(self.prefixes, self.text)):
            said["prefixes"] = dict(used)
        if self.output_prefixes:
            said["output_prefixes"] = dict(self.output_prefixes)
        return frame(json.dumps(said).encode("utf-8", "surrogatepass"))


@dataclass(frozen=True, slots=True)
class File:
    """A file to load into a store in memory: where it is, its media type, and the graph and base of
    its triples.
    """

    path: Path
    media_type: str
    graph: str | None = None
    base: str | None = None


@dataclass(slots=True)
class Head:
    """What a query is, known before its first result; `cut` is known behind the last: whether the
    limit cut the results.
    """

    kind: Literal["solutions", "boolean", "triples"]
    variables: tuple[str, ...] = ()
    cut: bool = False


Steps = Generator[Wait | Head | bytes, bool, None]


class _Conversation:
    """A query and its worker, for threads and event loops: steps that are waited for, and the parts
    of the results.
    """

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self.head = Head("boolean")

    @property
    def cut(self) -> bool:
        """Whether there were more results than the limit; known when the last part was given."""
        return self.head.cut

    def _end(self) -> None:
        self._steps.close()


class Results(_Conversation, Iterator[bytes]):
    """Results of a query, part by part; close them, or read them to the end."""

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
                self._end()
                raise

    def __next__(self) -> bytes:
        return self._next()  # type: ignore[return-value]

    def read(self) -> bytes:
        """All parts."""
        return b"".join(self)

    def close(self) -> None:
        """End the query, if it still runs."""
        self._end()

    def __enter__(self) -> Results:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class AsyncResults(_Conversation, AsyncIterator[bytes]):
    """Results of a query, part by part, in an event loop; close them, or read them to the end."""

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
                self._end()
                raise

    async def __anext__(self) -> bytes:
        step = await self._next()
        if step is None:
            raise StopAsyncIteration
        return step  # type: ignore[return-value]

    async def read(self) -> bytes:
        """All parts."""
        return b"".join([part async for part in self])

    def close(self) -> None:
        """End the query, if it still runs."""
        self._end()


# -- places ------------------------------------------------------------------------------------------
# Which worker process runs what: places for queries, those that wait for one, and long queries
# beside them.
#
# A thread starts processes, so that no caller waits for that.


#: The least that long queries have of one processor, all of them together, on a machine whose
#: processors have enough to do: else one would never end beside programs that have nothing to do
#: with this one.
LONG_SHARE: Final = 0.3


class BusyError(InterruptedQueryError):
    """So many queries wait that one more is not taken."""

    code = "busy"


class Places:
    """`size` places for queries, and room for `long` that have given theirs up. A place is not a
    process: those are kept beside; `command` gives what starts the one that they are forked from.
    """

    def __init__(self, size: int, long: int, waiting: int, command: Callable[[], Sequence[str]]) -> None:
        self._size, self._most_long, self._most_waiting, self._command = size, long, waiting, command
        self._lock = Lock()
        self._source = b""
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._closed = False
        #: Places that are free, long queries that run, and processes that are being started.
        self._free, self._long, self._starting = self._size, 0, 0
        self._idle: list[Worker] = []
        self._all: set[Worker] = set()
        self._waiting: deque[Future[Worker]] = deque()
        self._long_waiting: deque[Future[Worker]] = deque()
        #: What new workers are forked from, and all of that kind that still has workers.
        self._forks: ForkServer | None = None
        self._servers: set[ForkServer] = set()
        self._starts = _Thread("condgraph-starts")

    def share(self) -> float:
        """The least share of a processor that each long query has."""
        return LONG_SHARE / max(self._long, 1)

    def pids(self) -> list[int]:
        """The processes that are there."""
        with self._lock:
            return [worker.pid for worker in self._all if worker.alive()]

    def use(self, source: bytes) -> None:
        """What workers have open from now on, as `ForkServer` takes it; those that run a query go
        on with theirs.
        """
        with self._lock:
            self._source, self._forks = source, None
            for worker in self._idle:
                self._bury(worker)
            self._idle.clear()
            self._retire()

    def prepare(self) -> None:
        """Start a process before it is asked for."""
        with self._lock:
            if not self._closed and not self._idle:
                self._start(1)

    # -- asking and giving -------------------------------------------------------------------------

    def ask(self, *, long: bool) -> Worker | Future[Worker]:
        """A worker, or the promise of one; `long` for a query that is known to be long."""
        if os.getpid() != self._pid:
            self._forked()
        with self._lock:
            if self._closed:
                raise StoreError("the worker processes were closed")
            if not long and self._free and not self._waiting:
                worker = self._kept()
                if worker is not None:
                    self._free -= 1
                    return worker
            queue = self._long_waiting if long else self._waiting
            if len(queue) >= self._most_waiting:
                raise BusyError(f"{len(queue)} queries wait already", hint="try again later")
            promise: Future[Worker] = Future()
            queue.append(promise)
            self._give()
            return promise

    def withdraw(self, promise: Future[Worker]) -> None:
        """Nobody waits for this promise any more."""
        if not promise.cancel() and promise.exception() is None:
            self.release(promise.result(), healthy=True)

    def release(self, worker: Worker, *, healthy: bool) -> None:
        """A worker is done with a query; one that is not healthy (it still runs, it crashed) is
        killed.
        """
        with self._lock:
            if worker not in self._all:
                worker.close()  # the pool was closed meanwhile
                return
            if worker.long:
                self._long -= 1
                healthy = healthy and worker.restore()
                worker.long = False
            else:
                self._free += 1
            if healthy and worker.forks is self._forks and len(self._idle) < 2 * self._size:
                self._idle.append(worker)
            else:
                self._bury(worker)
                self._spare()
            self._give()

    def demote(self, worker: Worker, *, begun: bool) -> bool:
        """Take a worker for long from its place; False where as many long queries run as may.

        One that has begun to send results (`begun`) cannot begin anew later: there may be twice as
        many before it keeps its place.
        """
        with self._lock:
            if worker.long:
                return True
            if self._closed or self._long >= self._most_long * (2 if begun else 1):
                return False
            self._free += 1
            self._long += 1
            worker.long = True
            worker.lower()
            self._give()
            self._spare()
            return True

    def _kept(self) -> Worker | None:
        """A process that waits for work."""
        while self._idle:
            worker = self._idle.pop()
            if worker.alive():
                return worker
            self._bury(worker)
        return None

    def _give(self) -> None:
        """Give places and processes to those who wait, and start what is missing."""
        while self._long_waiting and self._long < self._most_long and self._promised(self._long_waiting, long=True):
            self._long += 1
        while self._waiting and self._free and self._promised(self._waiting, long=False):
            self._free -= 1
        wanted = min(len(self._waiting), self._free) + min(len(self._long_waiting), max(0, self._most_long - self._long))
        self._start(wanted - self._starting)

    def _promised(self, queue: deque[Future[Worker]], *, long: bool) -> bool:
        """Give a process to the first who waits; False where there is none, or nobody."""
        worker = self._kept()
        if worker is None:
            return False
        while queue:
            promise = queue.popleft()
            if promise.set_running_or_notify_cancel():
                if long:
                    worker.long = True
                    worker.lower()
                promise.set_result(worker)
                return True
        self._idle.append(worker)
        return False

    def _spare(self) -> None:
        """When processes are killed, some are started before they are asked for."""
        self._start(2 * self._size - self._starting - len(self._idle))

    # -- what the threads do -----------------------------------------------------------------------

    def _start(self, count: int) -> None:
        # Beside those that run there are as many that wait for the next query.
        room = 2 * self._size + max(self._long, self._most_long) - len(self._all) - self._starting
        for _ in range(min(count, room)):
            if self._closed:
                return
            self._starting += 1
            self._starts.do(self._started)

    def _started(self) -> None:
        """Start a process."""
        try:
            worker = self._forked_worker()
        except (OSError, StoreError) as error:
            with self._lock:
                self._starting -= 1
                promises = [*self._waiting, *self._long_waiting]
                self._waiting.clear()
                self._long_waiting.clear()
            for promise in promises:
                if promise.set_running_or_notify_cancel():
                    promise.set_exception(StoreError(f"no worker process can be started: {error}"))
            return
        with self._lock:
            self._starting -= 1
            self._all.add(worker)
            worker.forks.workers += 1
            if self._closed or worker.forks is not self._forks:
                self._bury(worker)
            else:
                self._idle.append(worker)
            if not self._closed:
                self._give()

    def _forked_worker(self) -> Worker:
        """A process, forked from the server in use, or from another one where there is none, or it
        is gone.
        """
        with self._lock:
            forks, source = self._forks, self._source
        if forks is not None:
            try:
                return Worker(forks)
            except OSError:  # it was killed: another one
                with self._lock:
                    self._servers.discard(forks)
                forks.close()
        forks = ForkServer(source, self._command())
        with self._lock:
            self._servers.add(forks)
            if source is self._source:
                self._forks = forks
        return Worker(forks)

    def _bury(self, worker: Worker) -> None:
        self._all.discard(worker)
        worker.bury()
        worker.forks.workers -= 1
        if worker.forks is not self._forks:
            self._retire()

    def _retire(self) -> None:
        """End the servers that are not in use any more, and whose workers are gone."""
        for forks in [one for one in self._servers if one is not self._forks and not one.workers]:
            self._servers.discard(forks)
            self._starts.do(forks.close)

    # -- the end -----------------------------------------------------------------------------------

    def close(self) -> None:
        """Kill every process; those who wait get an error."""
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
                worker.bury()
            for worker in self._all:
                worker.kill()  # somebody waits for what it says, and closes its socket
            self._all.clear()
            self._idle.clear()
        for promise in promises:
            if promise.set_running_or_notify_cancel():
                promise.set_exception(StoreError("the worker processes were closed"))
        self._starts.end()
        for forks in self._servers:
            forks.close()
        self._servers.clear()

    def _forked(self) -> None:
        """In a process that was forked from the owner: begin anew, the workers there belong to the
        owner.
        """
        self._lock = Lock()
        for worker in self._all:
            worker.forget()
        for forks in self._servers:
            forks.forget()
        self._begin()


class _Thread:
    """A thread that does one thing after the other; it starts with the first."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._queue: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread: Thread | None = None

    def do(self, what: Callable[[], None]) -> None:
        """Do something soon; called under the lock of the places."""
        if self._thread is None:
            # It knows its queue only: places that nobody has any more are closed.
            self._thread = Thread(target=_work, args=(self._queue,), name=self._name, daemon=True)
            self._thread.start()
        self._queue.put(what)

    def end(self) -> None:
        """Wait until all is done."""
        self._queue.put(None)
        if self._thread is not None:
            self._thread.join()


def _work(queue: SimpleQueue[Callable[[], None] | None]) -> None:
    while (what := queue.get()) is not None:
        what()
        del what


# -- pool --------------------------------------------------------------------------------------------


#: Bytes of data that one process may have.
MEMORY: Final = 2 << 30
#: A query that has given so many bytes of results counts as long.
ASIDE: Final = 1 << 20
#: Seconds between two looks at how long a query has run.
_LEAST_LOOK: Final = 0.002
#: Seconds between two looks at whether a long query gets its share of a processor.
_SHARE_LOOK: Final = 0.1
#: Below this a process cannot open a store.
LEAST_MEMORY: Final = 256 << 20


class Asked(Protocol):
    """What a worker is asked."""

    def request(self) -> bytes:
        """As it goes to a worker: a frame."""
        ...


class WorkerPool:
    """Processes that answer queries over one store. Use it from any thread and any event loop.

    `workers` queries run at once, and beside them up to `long` (twice as many by default) that take
    more than `quantum` seconds of a processor, and as many again of those that have begun to send
    their results, which cannot begin anew later. Further ones wait, at most `waiting` of them. With
    two workers a processor, a query that turns out to be long keeps no other one from its place
    meanwhile. `memory` is how many bytes of data a process may have, 0 for any number.

    `command` starts other processes than those of Oxigraph: they get the source as JSON, and speak
    as `process` says.
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
    ) -> None:
        if workers < 1 or (long is not None and long < 0):
            raise OptionError("a pool has at least one worker")
        if memory and memory < LEAST_MEMORY:
            raise OptionError(f"a worker process needs {LEAST_MEMORY >> 20} MiB of memory at least, not {memory >> 20} MiB")
        # Where no long queries may run beside the others, every query keeps its place.
        self._quantum, self._memory = quantum if long != 0 else None, memory
        self._places = Places(workers, 2 * workers if long is None else long, waiting, command or partial(oxigraph_command, memory))
        self.use(source)
        # A pool that nobody closed leaves no process behind.
        self._end = weakref.finalize(self, self._places.close)

    def use(self, source: Path | Sequence[File] | Mapping[str, Any]) -> None:
        """Answer from another store from now on; queries that run go on with theirs."""
        said: Mapping[str, Any]
        if isinstance(source, Mapping):
            said = source
        elif isinstance(source, Path):
            said = {"store": str(source)}
        else:
            said = {"files": [[str(file.path), file.media_type, file.graph, file.base] for file in source]}
        self._places.use(frame(json.dumps(said).encode()))

    def prepare(self) -> None:
        """Open the source now, and not when the first query comes; returns at once."""
        self._places.prepare()

    def close(self) -> None:
        """Kill all processes; queries that still run end with an error."""
        self._end()

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def pids(self) -> list[int]:
        """The processes that are there."""
        return self._places.pids()

    def query(self, query: Asked, *, timeout: float | None = None, cancelled: Event | None = None) -> Results:
        """Run a query; returns as soon as it is known what it is, and raises whatever is wrong with
        it.

        `timeout` is in seconds from now, for all of it, the reading of its results too:
        `DeadlineError` then, here or while results are read. Also raises `ParseError`,
        `CancelledError`, `InterruptedQueryError` (out of memory, or the engine crashed),
        `UnsupportedError` (the format cannot say the results), `UnopenedError` and `StoreError`.
        """
        return Results(self._steps(query, timeout), cancelled)

    async def query_async(self, query: Asked, *, timeout: float | None = None) -> AsyncResults:
        """The same in an event loop; cancel the task to cancel the query."""
        return await AsyncResults(self._steps(query, timeout)).begin()

    # -- the conversation with a worker ------------------------------------------------------------

    def _steps(self, query: Asked, timeout: float | None) -> Steps:
        request = query.request()
        until = None if timeout is None else time.monotonic() + timeout
        long = False
        while True:
            worker = yield from self._given(long, until, timeout)
            healthy = False
            try:
                healthy = yield from self._ask(worker, request, until, timeout)
                if healthy:
                    return
            except _WorkerError as error:
                healthy = True
                raise _error(error.kind, error.message, request, self._memory, getattr(query, "prefixes", None) or ()) from None
            finally:
                self._places.release(worker, healthy=healthy)
            long = True

    def _given(self, long: bool, until: float | None, timeout: float | None) -> Generator[Wait | Head | bytes, bool, Worker]:
        """Wait for a place."""
        place = self._places.ask(long=long)
        if isinstance(place, Worker):
            return place
        come = False
        try:
            come = yield Wait(place, until)
        finally:
            if not come:
                self._places.withdraw(place)
        if not come:
            raise DeadlineError(f"the query did not get to run to its end in {timeout:g} s, there are too many")
        return place.result()

    def _ask(
        self, worker: Worker, request: bytes, until: float | None, timeout: float | None
    ) -> Generator[Wait | Head | bytes, bool, bool]:
        """Ask a worker; False when the query has to begin anew, as a long one."""
        head, size = None, 0
        sent = worker.send(request)
        while not sent:
            if not (yield Wait(worker, until, writing=True)):
                raise DeadlineError(f"the query did not end in {timeout:g} s")
            sent = worker.send()
        quantum = None if worker.long else self._quantum
        # What a busy machine does not give is not counted.
        begin = worker.busy()
        look = time.monotonic() + (_SHARE_LOOK if quantum is None else quantum)
        while True:
            soon = look if until is None else min(look, until)
            come = yield Wait(worker, soon)
            now = time.monotonic()
            if until is not None and now >= until:
                raise DeadlineError(f"the query did not end in {timeout:g} s")
            if not come:
                if quantum is None:
                    if worker.long:
                        worker.keep_going(self._places.share())
                    look = now + _SHARE_LOOK
                    continue
                left = quantum - (worker.busy() - begin)
                if left > 0:
                    look = now + max(left, _LEAST_LOOK)
                elif self._places.demote(worker, begun=head is not None):
                    quantum = None
                elif head is None:
                    return False
                else:
                    look = now + quantum
                continue
            try:
                frames = worker.receive()
            except EOFError:
                raise _crash(worker.ended(), self._memory) from None
            for kind, data in frames:
                if kind == b"D":
                    size += len(data)
                    # A caller who reads much may read slowly; meanwhile it keeps no place from
                    # others.
                    if size > ASIDE and not worker.long and self._quantum is not None:
                        self._places.demote(worker, begun=True)
                    yield data
                elif kind == b"H":
                    said = json.loads(data.decode())
                    head = Head(said["kind"], tuple(said.get("variables", ())))
                    yield head
                elif kind == b"Z":
                    assert head is not None
                    head.cut = data == b'{"cut":true}'
                    return True
                else:
                    raise _WorkerError(json.loads(data))


class UnwritableError(UnsupportedError):
    """A format cannot say the results."""


class UnopenedError(StoreError):
    """The folder of a store could not be opened: a load may have replaced its generation."""


class _WorkerError(Exception):
    """What a worker said is wrong."""

    def __init__(self, said: dict[str, str]) -> None:
        super().__init__()
        self.kind, self.message = said["kind"], said["message"]


_PLACE: Final = re.compile(r"error at (\d+):(\d+): ")


def _error(kind: str, message: str, request: bytes, memory: int, prefixes: Collection[str]) -> CondgraphError:
    if kind == "syntax":
        found = _PLACE.match(message)
        if found is None:
            return ParseError(message)
        text: str = json.loads(request[4:])["query"]
        lines = text.split("\n")
        wrong = mistake(text, prefixes)
        if wrong is not None:
            line, column = text.count("\n", 0, wrong.begin) + 1, wrong.begin - (text.rfind("\n", 0, wrong.begin) + 1) + 1
            return ParseError(f"line {line}, column {column}: {wrong.message}", span=(wrong.begin, wrong.end))
        line, column = int(found[1]), int(found[2])
        start = min(len(text), sum(len(one) + 1 for one in lines[: line - 1]) + column - 1)
        # Among what could stand there, the classes of letters help nobody.
        expected = message[found.end() :].partition(", ['")[0]
        return ParseError(f"line {line}, column {column}: {expected}", span=(start, min(len(text), start + 1)))
    if kind == "unopened":
        return UnopenedError(f"the query failed: {message}")
    if kind == "missing":
        return UnknownNameError("graph", message)
    unknown = re.search(r"custom function (<[^>]*>) is not supported", message)
    if unknown is not None:
        return UnsupportedError("the store", [f"the function {unknown[1]}"])
    if kind == "unwritable":
        return UnwritableError("RDF/XML", [message], hint="ask for Turtle or N-Triples")
    if kind == "memory":
        return InterruptedQueryError(f"the query needs more than {memory >> 20} MiB of memory")
    return StoreError(f"the query failed: {message}")


def _crash(code: int | None, memory: int) -> CondgraphError:
    if code == -signal.SIGABRT:
        return InterruptedQueryError(f"the query needs more than {memory >> 20} MiB of memory")
    if code == -signal.SIGSEGV:
        return InterruptedQueryError("the query is nested too deeply")
    return InterruptedQueryError(f"the process that ran the query ended with code {code}")
