"""Validates timeouts and limits, and holds the deadline of a call, which everything that runs in the
call checks.

A call that has a deadline, or somebody who may cancel it, says so once (`within`), for its thread
or its task. Whatever it does then, however deep, calls `check()` between pieces of work that are
short, and asks `left()` for how long it may wait for others. Threads that work for the call have
the same deadline (`workers`). A call inside another one can have a shorter deadline of its own,
never a longer one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from contextvars import ContextVar, Token
from functools import wraps
from numbers import Integral, Real
from threading import Event, Lock
from typing import Any, Concatenate, Final, Generic, ParamSpec, Protocol, TypeVar, cast, overload

from condgraph.engine.errors import CancelledError, DeadlineError, OptionError

T = TypeVar("T")
P = ParamSpec("P")
S = TypeVar("S", bound="TimedAnswer")
#: A look at a store on behalf of a load that waits is given so many seconds at least.
LEAST: Final = 1.0
#: What may help where a deadline passed.
LONGER: Final = "a longer timeout= may help"
#: Seconds between two looks at whether a call was cancelled.
LOOK: Final = 0.05


def check_bounds(timeout: float | None, limit: int | None = None, *, what: str = "values to give") -> None:
    """Raise `OptionError` for a `timeout` that is no number of seconds above 0, or a `limit` (the most
    of `what`) that is no whole number from 0.
    """
    if timeout is not None and not (is_number(timeout) and timeout > 0):
        raise OptionError(f"timeout is in seconds and more than 0, not {timeout!r}")
    if limit is not None and not (is_whole(limit) and limit >= 0):
        raise OptionError(f"limit is the most {what}, not {limit!r}")


def is_number(value: object) -> bool:
    """Whether a value is a real number; `True` and `False` are none."""
    return isinstance(value, Real) and not isinstance(value, bool)


def is_whole(value: object) -> bool:
    """Whether a value is a whole number, of Python or NumPy; `True` and `False` are none."""
    return isinstance(value, Integral) and not isinstance(value, bool)


class Budget:
    """Until when a call may take (a time of the monotonic clock, None: as long as it takes), and
    who may cancel it.
    """

    __slots__ = ("events", "until")

    def __init__(self, until: float | None, events: tuple[Event, ...]) -> None:
        self.until, self.events = until, events

    def check(self) -> None:
        """Raise `CancelledError` where the call was cancelled, `DeadlineError` after its deadline."""
        for event in self.events:
            if event.is_set():
                raise CancelledError("the query was cancelled")
        if self.until is not None and time.monotonic() >= self.until:
            raise late()

    def left(self) -> float | None:
        """Seconds until the deadline, never less than 0; None where there is none."""
        return None if self.until is None else max(self.until - time.monotonic(), 0.0)

    def cancelled(self) -> Event | None:
        """What is set once the call is cancelled, to be looked at; None where nobody can cancel it."""
        return None if not self.events else self.events[0] if len(self.events) == 1 else _AnyEvent(self.events)


class _AnyEvent(Event):
    """Set as soon as one of several events is."""

    def __init__(self, events: tuple[Event, ...]) -> None:
        super().__init__()
        self._events = events

    def is_set(self) -> bool:
        """Whether one of them is."""
        return any(event.is_set() for event in self._events)


def late(hint: str = LONGER) -> DeadlineError:
    """The error of a deadline that has passed."""
    return DeadlineError("the query did not end before its deadline", hint=hint)


_BUDGET: ContextVar[Budget | None] = ContextVar("condgraph_budget", default=None)


def current() -> Budget | None:
    """What bounds the call that runs; None where nothing does."""
    return _BUDGET.get()


def check() -> None:
    """Raise `CancelledError` or `DeadlineError` where the call that runs was cancelled, or its
    deadline has passed.
    """
    budget = _BUDGET.get()
    if budget is not None:
        budget.check()


def left() -> float | None:
    """Seconds that the call that runs has left; None where it has no deadline. Raises as `check`."""
    budget = _BUDGET.get()
    if budget is None:
        return None
    budget.check()
    return budget.left()


def merged(timeout: float | None, cancelled: Event | None) -> Budget | None:
    """What bounds a part of the call that runs, which has a timeout (seconds) of its own, or may be
    cancelled by itself.
    """
    outer = _BUDGET.get()
    if timeout is None and cancelled is None:
        return outer
    check_bounds(timeout)
    until = None if timeout is None else time.monotonic() + timeout
    events: tuple[Event, ...] = () if cancelled is None else (cancelled,)
    if outer is not None:
        until = outer.until if until is None else until if outer.until is None else min(until, outer.until)
        events = (*outer.events, *(event for event in events if event not in outer.events))
    return Budget(until, events)


class bounded_by:
    """A context manager that bounds what is done in it."""

    __slots__ = ("_budget", "_token")

    def __init__(self, budget: Budget | None) -> None:
        self._budget = budget
        self._token: Token[Budget | None] | None = None

    def __enter__(self) -> Budget | None:
        if self._budget is not _BUDGET.get():
            self._token = _BUDGET.set(self._budget)
        return self._budget

    def __exit__(self, *error: object) -> None:
        if self._token is not None:
            _BUDGET.reset(self._token)
            self._token = None


#: For calls that say nothing of a deadline: most of them, and the quickest.
_UNBOUNDED: Final = nullcontext()


def within(timeout: float | None, cancelled: Event | None = None) -> bounded_by | nullcontext[None]:
    """A context manager: everything in it has `timeout` seconds together, and ends soon after
    `cancelled` is set.

    Not for the body of a generator, whose callers would be bounded too.
    """
    if timeout is None and cancelled is None:
        return _UNBOUNDED
    return bounded_by(merged(timeout, cancelled))


def waiting(wait: float) -> bounded_by | nullcontext[None]:
    """A context manager for what a load asks a store before it waits `wait` seconds for others: who
    says how long to wait is not held for longer by a store that says nothing. 0 bounds nothing.
    """
    return within(max(wait, LEAST) if wait else None)


def allowed(seconds: float) -> bounded_by:
    """A context manager for the last small step of a call: it has so many seconds, also after the
    deadline.
    """
    outer = _BUDGET.get()
    if outer is None or outer.until is None:
        return bounded_by(outer)
    return bounded_by(Budget(max(outer.until, time.monotonic() + seconds), outer.events))


def wait_for(lock: Lock) -> None:
    """Acquire a lock, as long as the call that runs may wait."""
    if lock.acquire(blocking=False):
        return
    while True:
        budget = _BUDGET.get()
        if budget is None:
            lock.acquire()
            return
        budget.check()
        rest = budget.left()
        if lock.acquire(timeout=LOOK if rest is None else max(min(rest, LOOK), 0.001)):
            return


# -- what is asked of an answer later --------------------------------------------------------------


class TimedAnswer(Protocol):
    """An answer: each thing that it is asked for later has the timeout (seconds) that its query
    had.
    """

    _timeout: float | None


def timed(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
    """A method of an answer that keeps to the answer's timeout."""

    @wraps(method)
    def bounded(self: S, *arguments: P.args, **options: P.kwargs) -> T:
        if self._timeout is None:
            return method(self, *arguments, **options)
        with within(self._timeout):
            return method(self, *arguments, **options)

    return cast("Callable[Concatenate[S, P], T]", bounded)


class cached(Generic[T]):
    """A property that is worked out once for each object.

    As `functools.cached_property`, without its lock: in Python 3.11 that is one for all objects of
    a class, and one whose server is silent would hold up all others. Two threads that ask at once
    may both work it out.
    """

    def __init__(self, work: Callable[[Any], T]) -> None:
        self._work = work
        self.__doc__ = work.__doc__
        self._name = work.__name__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> cached[T]: ...

    @overload
    def __get__(self, instance: object, owner: type) -> T: ...

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self
        found = instance.__dict__[self._name] = self._found(instance)
        return found

    def _found(self, instance: Any) -> T:
        return self._work(instance)


class kept(cached[T]):
    """The same of an answer, within the answer's timeout."""

    def _found(self, instance: Any) -> T:
        with within(instance._timeout):
            return self._work(instance)
