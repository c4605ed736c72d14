"""Which worker process runs what: places for queries, those that wait for one, and long queries
beside them.

A thread starts processes, so that no caller waits for that.
"""

from __future__ import annotations

import os
from collections import deque
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Lock, Thread
from typing import TYPE_CHECKING, Final

from condgraph.engine.errors import InterruptedQueryError, StoreError
from condgraph.sparql.workers.forks import ForkServer
from condgraph.sparql.workers.handle import Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


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
