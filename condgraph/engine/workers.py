"""Threads that wait for the server in place of a caller, who may have to go on before it answers."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any, Final, TypeVar

T = TypeVar("T")
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
