"""Threads that wait for the server in place of a caller, who may have to go on before it answers."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from queue import Empty, SimpleQueue
from threading import Event, Lock, Thread
from typing import Any, Final, TypeVar

from condgraph.engine.errors import CancelledError, DeadlineError

T = TypeVar("T")
#: Seconds between two looks at whether a call was cancelled.
_LOOK: Final = 0.05
#: Seconds after which a thread without work ends.
_IDLE: Final = 10.0


class Workers:
    """As many threads as there are calls at once, all of one name; idle ones are used again. They are daemons: a server that does
    not answer keeps no process from ending.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._queue: SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = SimpleQueue()
        self._lock = Lock()
        self._idle = 0

    def submit(self, call: Callable[[], T]) -> Future[T]:
        """Run a call in a thread."""
        future: Future[T] = Future()
        with self._lock:
            fresh = self._idle == 0
            if not fresh:
                self._idle -= 1
        self._queue.put((future, call))
        if fresh:
            Thread(target=self._work, name=self._name, daemon=True).start()
        return future

    def run(self, call: Callable[[], T], timeout: float | None, cancelled: Event | None, *, late: str) -> T:
        """What a call in a thread gives; or `DeadlineError` with the hint `late` after `timeout` seconds, or `CancelledError` soon
        after `cancelled` is set. The thread goes on until the server lets go of it.
        """
        future = self.submit(call)
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            left = None if until is None else max(until - time.monotonic(), 0.0)
            step = left if cancelled is None else _LOOK if left is None else min(_LOOK, left)
            try:
                return future.result(step)
            except FutureTimeout:
                if cancelled is not None and cancelled.is_set():
                    future.cancel()
                    raise CancelledError("the query was cancelled") from None
                if until is not None and time.monotonic() >= until:
                    future.cancel()
                    raise DeadlineError("the query did not end before its deadline", hint=late) from None

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
                return
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(call())
                except BaseException as error:  # noqa: BLE001 - the caller raises it
                    future.set_exception(error)
            del future, call
            with self._lock:
                self._idle += 1
