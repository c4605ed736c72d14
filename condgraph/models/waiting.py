"""Waiting for what answers in its own time: a call ends at its deadline, or when it is cancelled,
whatever the other side does.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextvars import copy_context
from threading import Event, Thread
from typing import Any, Final, TypeVar

from condgraph.engine.bounds import LOOK, check, check_bounds, current
from condgraph.engine.errors import CondgraphError, ModelError

T = TypeVar("T")
#: Seconds that a deadline is kept back from, so that the one who set it is told in time.
_EARLY: Final = 0.02


class Wait:
    """How long a call may take: its own `timeout` (seconds), and the deadline of the call that it
    is part of.
    """

    __slots__ = ("_deadline", "_timeout", "ended", "until")

    def __init__(self, timeout: float | None) -> None:
        check_bounds(timeout)
        check()
        outer = current()
        self._timeout, self._deadline = timeout, None if outer is None else outer.until
        own = None if timeout is None else time.monotonic() + timeout
        self.until = own if self._deadline is None else self._deadline if own is None else min(own, self._deadline)
        #: Set once nobody waits any more.
        self.ended = Event()

    def left(self) -> float | None:
        """Seconds that are left, at least a hundredth; None where nothing bounds the call."""
        return None if self.until is None else max(self.until - time.monotonic(), 0.01)

    def over(self) -> bool:
        """Whether the time has passed, or nobody waits any more."""
        return self.ended.is_set() or (self.until is not None and time.monotonic() >= self.until)

    def late(self, who: str) -> CondgraphError:
        """The error of a call that did not end in time. Raises `DeadlineError` or `CancelledError`
        where the call it is part of has ended.
        """
        check()
        seconds = "its time" if self._timeout is None else f"{self._timeout:g} s"
        return ModelError(f"{who} gave no completion within {seconds}", hint="a longer timeout= may help, or fewer tokens")

    def sleep(self, seconds: float) -> None:
        """Sleep, or until nobody waits."""
        self.ended.wait(seconds)

    def until_done(self, work: Callable[[], T], who: str) -> T:
        """What `work` gives, done in a thread of its own, which is left to itself at the deadline."""
        found: list[T] = []
        failed: list[BaseException] = []
        done = Event()
        context = copy_context()

        def run() -> None:
            try:
                found.append(context.run(work))
            except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
                failed.append(error)
            done.set()

        Thread(target=run, name="condgraph-model", daemon=True).start()
        try:
            self._await(done, who)
        finally:
            if not done.is_set():
                self.ended.set()
        if failed:
            raise failed[0]
        return found[0]

    def _await(self, done: Event, who: str) -> None:
        outer = current()
        cancelled = None if outer is None else outer.cancelled()
        while True:
            rest = self.left()
            if done.wait(rest if cancelled is None else LOOK if rest is None else min(rest, LOOK)):
                return
            check()
            if self.over():
                # What ended at the last moment is taken.
                if done.wait(_EARLY):
                    return
                raise self.late(who)


def failure(who: str, error: BaseException) -> ModelError:
    """What foreign code raised, as an error of ours."""
    return ModelError(f"{who} raised {type(error).__name__}: {error}")


def finished(value: Any) -> Any:
    """A value, or what an awaitable gives: for callables that are `async`. Called in a thread that
    has no loop of its own.
    """
    if hasattr(value, "__await__"):
        import asyncio

        async def wait() -> Any:
            return await value

        return asyncio.run(wait())
    return value
