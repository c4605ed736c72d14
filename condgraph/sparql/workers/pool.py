"""Queries with a deadline: a pool of processes that have a store open, each of which can be killed.

Oxigraph cannot be told to stop, so a query that has a deadline, or somebody who may cancel it, runs
in a process of its own, which is killed when its time is over. Processes are kept between queries,
and shared by all threads and event loops; a short query costs one round trip over a socket more
than in process. Results come serialised, in the format that was asked for, part by part.

A query that takes more than a quantum of a processor's time gives its place up: its process goes on
with the lowest priority, and another one takes the place; whatever else the machine does, long
queries together get a share of one processor (`scheduler.LONG_SHARE`), or each a tenth of the usual
one, where this process could not raise a priority again (`handle.may_raise`). When as many long
queries run as are allowed, one that becomes long is ended, and begins anew when there is room, in
what its deadline leaves it: short queries do not wait behind long ones.
"""

from __future__ import annotations

import json
import re
import signal
import time
import weakref
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from functools import partial
from pathlib import Path
from threading import Event
from types import TracebackType
from typing import Any, Final, Protocol

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
from condgraph.sparql.text.mistakes import mistake
from condgraph.sparql.workers.forks import oxigraph_command
from condgraph.sparql.workers.handle import Wait, Worker, frame
from condgraph.sparql.workers.results import AsyncResults, File, Head, Query, Results, Steps
from condgraph.sparql.workers.scheduler import Places

__all__ = ["AsyncResults", "File", "Head", "Query", "Results", "UnopenedError", "UnwritableError", "WorkerPool"]

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
