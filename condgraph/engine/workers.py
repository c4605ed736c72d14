"""Runs blocking calls in threads, so that callers can time out.

Whatever waits for somebody else (a connection, an answer, a name to be looked up, a lock of a
library) runs in such a thread, and its caller waits for the thread, as long as the deadline of the
call allows (`bounds`). There are as many threads as there are calls at once, so that calls which a
silent server holds keep no later call waiting. A thread whose caller went on is let alone for a
while, since servers end queries at their deadline by themselves; then what it waits for is cut off.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from contextvars import copy_context
from queue import Empty, SimpleQueue
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from condgraph.engine.bounds import LONGER, LOOK, cached, check, current, late, merged
from condgraph.engine.errors import CancelledError, DeadlineError

if TYPE_CHECKING:
    from concurrent.futures import Future

T = TypeVar("T")
#: Seconds after which a thread without work ends.
_IDLE: Final = 10.0
#: Threads whose callers went on that are let alone; of more, the oldest are cut off at once.
_LEFT: Final = 16


class Workers:
    """As many threads as there are calls at once, all of one name; idle ones are used again. They
    are daemons: a server that does not answer keeps no process from ending.

    `linger` is how many seconds a thread may go on after its caller did, before what it waits for
    is cut off.
    """

    def __init__(self, name: str, *, linger: float = 0.0) -> None:
        self._name, self._linger = name, linger
        self._queue: SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = SimpleQueue()
        self._lock = Lock()
        self._idle = 0
        self._left: deque[tuple[float, Future[Any], Callable[[], None]]] = deque()

    def submit(self, call: Callable[[], T]) -> Future[T]:
        """Run a call in a thread."""
        from concurrent.futures import Future

        future: Future[T] = Future()
        with self._lock:
            fresh = self._idle == 0
            if not fresh:
                self._idle -= 1
        self._queue.put((future, call))
        if fresh:
            Thread(target=self._work, name=self._name, daemon=True).start()
        return future

    def leave(self, call: Callable[[], Any], cut: Callable[[], None]) -> None:
        """Run a call in a thread that nobody waits for; `cut` makes it end."""
        self._let(self.submit(call), cut)

    def run(
        self,
        call: Callable[[], T],
        timeout: float | None = None,
        cancelled: Event | None = None,
        *,
        hint: str = LONGER,
        patience: float | None = None,
        silent: Callable[[], DeadlineError] | None = None,
        cut: Callable[[], None] | None = None,
    ) -> T:
        """What a call in a thread gives; or `DeadlineError` (with a hint) after `timeout` seconds,
        or at the deadline of the call that runs here, and `CancelledError` soon after somebody
        cancels it.

        `patience` is how many seconds a call may take that has no deadline, or a later one; then
        the error is that of `silent`. `cut` makes the thread end; it is called from this thread or
        another one, once the caller has gone on.
        """
        self._sweep()
        budget = merged(timeout, cancelled)
        if budget is not None:
            budget.check()
        until, events = (None, ()) if budget is None else (budget.until, budget.events)
        enough = None if patience is None else time.monotonic() + patience
        end = enough if until is None else until if enough is None else min(until, enough)
        context = copy_context()
        future = self.submit(lambda: context.run(call))
        while True:
            rest = None if end is None else max(end - time.monotonic(), 0.0)
            step = rest if not events else LOOK if rest is None else min(LOOK, rest)
            try:
                return future.result(step)
            except TimeoutError:
                if future.done():
                    # It ended just now, or the call itself timed out at something.
                    return future.result()
                gone: DeadlineError | CancelledError
                if any(event.is_set() for event in events):
                    gone = CancelledError("the query was cancelled")
                elif end is not None and time.monotonic() >= end:
                    gone = late(hint) if silent is None or end == until else silent()
                else:
                    continue
                if not future.cancel() and cut is not None:
                    self._let(future, cut)
                raise gone from None

    def close(self) -> None:
        """Cut off whatever still waits and has no caller any more."""
        self._sweep(everything=True)

    def _let(self, future: Future[Any], cut: Callable[[], None]) -> None:
        with self._lock:
            self._left.append((time.monotonic() + self._linger, future, cut))
        self._sweep()

    def _sweep(self, *, everything: bool = False) -> None:
        """Cut off the threads that were let alone for long enough."""
        if not self._left:
            return
        now, over = time.monotonic(), []
        with self._lock:
            alive = [one for one in self._left if not one[1].done()]
            for place, one in enumerate(alive):
                if everything or one[0] <= now or place < len(alive) - _LEFT:
                    over.append(one)
            self._left = deque(one for one in alive if one not in over)
        for _, _, cut in over:
            cut()

    def _work(self) -> None:
        while True:
            try:
                future, call = self._queue.get(timeout=_IDLE)
            except Empty:
                with self._lock:
                    if self._idle == 0:
                        # This thread has been counted on for a call that is on its way.
                        continue
                    self._idle -= 1
                self._sweep()
                return
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(call())
                except BaseException as error:  # noqa: BLE001 - the caller raises it
                    future.set_exception(error)
            del future, call
            with self._lock:
                self._idle += 1


class SharedTask(Generic[T]):
    """Something long that many calls need: made once, in a thread; each call waits as long as its
    own deadline allows, and what is made goes on for those who come later. Where it fails, each who
    waited has the error, and the next one begins anew.
    """

    def __init__(self, workers: Workers, make: Callable[[], T]) -> None:
        self._workers = workers
        self._make: Callable[[], T] | None = make
        self._lock = Lock()
        self._future: Future[T] | None = None

    def begun(self) -> Future[T]:
        """What is being made, or was: for those who wait in an event loop."""
        with self._lock:
            if self._future is None or (self._future.done() and self._future.exception() is not None):
                # What bounds the one who is first must not bound the others.
                assert self._make is not None
                self._future = self._workers.submit(self._make)
            return self._future

    def there(self) -> T | None:
        """What was made, where it has been."""
        future = self._future
        return None if future is None or not future.done() or future.exception() is not None else future.result()

    def get(self) -> T:
        """What was made."""
        future = self._future
        if future is not None and future.done() and future.exception() is None:
            # What was made often holds this object.
            self._make = None
            return future.result()
        future = self.begun()
        while True:
            check()
            budget = current()
            rest = None if budget is None else budget.left()
            step = rest if budget is None or not budget.events else LOOK if rest is None else min(LOOK, rest)
            try:
                return future.result(step)
            except TimeoutError:
                if future.done():
                    return future.result()


#: Build what many calls need, where the first of them has a deadline.
BUILDERS: Final = Workers("condgraph-builder")


def shared(among: dict[Any, Any], key: Any, make: Callable[[], Any]) -> Any:
    """What is kept under a key, made where it is not there. A call that has a deadline has it made
    by a thread, which goes on for later calls: else a graph that takes longer to get ready than
    callers wait would never be ready.
    """
    found = among.get(key)
    if found is None:
        if current() is None:
            found = among[key] = make()
            return found
        found = among.setdefault(key, SharedTask(BUILDERS, make))
    if isinstance(found, SharedTask):
        found = among[key] = found.get()
    return found


class built(cached[T]):
    """A property that takes long to work out, and is worked out once for each object (`shared`)."""

    def _found(self, instance: Any) -> T:
        if current() is None:
            return self._work(instance)
        name = f"{self._name} in the making"
        found = instance.__dict__.setdefault(name, SharedTask(BUILDERS, lambda: self._work(instance))).get()
        instance.__dict__.pop(name, None)
        value: T = found
        return value
