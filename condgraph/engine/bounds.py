"""Validates timeouts and limits, and holds the deadline of a call, which everything that runs in the
call checks.

A call that has a deadline, or somebody who may cancel it, says so once (`within`), for its thread
or its task. Whatever it does then, however deep, calls `check()` between pieces of work that are
short, and asks `left()` for how long it may wait for others. Threads that work for the call have
the same deadline (`Workers`). A call inside another one can have a shorter deadline of its own,
never a longer one.
"""

from __future__ import annotations

import os
import time
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from contextvars import ContextVar, Token, copy_context
from functools import wraps
from itertools import chain, islice
from mmap import mmap
from numbers import Integral, Real
from queue import Empty, SimpleQueue
from tempfile import TemporaryFile
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any, Concatenate, Final, Generic, ParamSpec, Protocol, TypeVar, cast, overload

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.errors import CancelledError, DeadlineError, OptionError

if TYPE_CHECKING:
    from concurrent.futures import Future


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


# -- threads that a call waits for -------------------------------------------------------------------
# Runs blocking calls in threads, so that callers can time out.
#
# Whatever waits for somebody else (a connection, an answer, a name to be looked up, a lock of a
# library) runs in such a thread, and its caller waits for the thread, as long as the deadline of the
# call allows (`bounds`). There are as many threads as there are calls at once, so that calls which a
# silent server holds keep no later call waiting. A thread whose caller went on is let alone for a
# while, since servers end queries at their deadline by themselves; then what it waits for is cut off.


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


# -- work in pieces ----------------------------------------------------------------------------------
# Long work in pieces, with a check of the deadline (`bounds`) between them, so that an operator over
# millions of values ends in time.
#
# Where nothing bounds the call, things are done at once, as they would be without this module.


#: Things of Python (values, texts) that are handled between two looks at the clock: a hundredth of
#: a second or two.
PIECE: Final = 1 << 13
#: Rows of columns that are sorted at once, for the same.
ROWS: Final = 1 << 17
#: Numbers of `scratch` that are held in memory.
_HELD: Final = 1 << 20
#: Of so few rows, one call that compares is quicker than several that count.
_LEAST: Final = 64


def pieces(items: Any, size: int = PIECE) -> Iterator[Any]:
    """A list or an array in slices, with a look at the clock before each."""
    if current() is None or len(items) <= size:
        yield items
        return
    for start in range(0, len(items), size):
        check()
        yield items[start : start + size]


def slices(length: int, size: int = ROWS) -> Iterator[slice]:
    """A range in slices of so many rows, for columns that may be longer than memory."""
    return (slice(low, min(low + size, length)) for low in range(0, length, size))


def scratch(length: int, dtype: Any) -> NDArray[Any]:
    """An array of zeros to work in: a long one in a file without a name, which is not held in memory as others are."""
    if length <= _HELD:
        return np.zeros(length, dtype)
    size = length * np.dtype(dtype).itemsize
    try:
        with TemporaryFile() as file:
            # A file with holes would end the process where the disk is full.
            os.posix_fallocate(file.fileno(), 0, size)
            return np.frombuffer(mmap(file.fileno(), size), dtype)
    except (OSError, AttributeError):
        return np.zeros(length, dtype)


def watched(items: Iterable[T], size: int = PIECE) -> Iterable[T]:
    """The same items, with a look at the clock every so many."""
    return items if current() is None else chain.from_iterable(_some(iter(items), size))


def _some(items: Iterator[T], size: int) -> Iterator[list[T]]:
    while True:
        check()
        found = list(islice(items, size))
        if not found:
            return
        yield found


def places_in_order(count: int, key: Callable[[int], Any], *, reverse: bool = False) -> list[int]:
    """The places `0 .. count - 1` sorted by a key, as `sorted` does, equal ones in the order of
    their places.

    Many are spread over buckets by a sample of their keys, and each bucket is sorted by itself.
    """
    if current() is None or count <= 2 * PIECE:
        return sorted(range(count), key=key, reverse=reverse)
    keys = list(map(key, watched(range(count))))
    # Thirty-two keys of each bucket tell well enough where it begins.
    sample = sorted(keys[:: PIECE // 32])
    check()
    pivots = sample[32::32]
    buckets: list[list[int]] = [[] for _ in range(len(pivots) + 1)]
    for place in watched(range(count)):
        buckets[bisect_right(pivots, keys[place])].append(place)
    found: list[int] = []
    for bucket in reversed(buckets) if reverse else buckets:
        check()
        bucket.sort(key=keys.__getitem__, reverse=reverse)
        found.extend(bucket)
    return found


def different(numbers: NDArray[Any]) -> NDArray[Any]:
    """The different ones of some numbers, sorted: `np.unique`, which hashes many numbers first and is
    slower for that.
    """
    ordered = np.sort(numbers)
    return ordered[changed(ordered)]


def changed(*columns: NDArray[Any]) -> NDArray[np.bool_]:
    """Which rows are not the row before, in columns of one length; the first is none.

    >>> changed(np.array([1, 1, 1, 2]), np.array([5, 5, 6, 6])).tolist()
    [True, False, True, True]
    """
    fresh = np.ones(len(columns[0]), bool)
    fresh[1:] = columns[0][1:] != columns[0][:-1]
    for column in columns[1:]:
        fresh[1:] |= column[1:] != column[:-1]
    return fresh


def in_order(marks: Sequence[NDArray[Any]]) -> NDArray[np.int64]:
    """The places of rows in the order of their marks, whole numbers of any type, the first mark the
    most significant, equal rows by place: `np.lexsort(marks[::-1])`, several times quicker. Numbers
    of up to 16 bits are sorted by counting, longer ones together with their places where both fit
    into one number, else by 16 bits at once, the lowest first; a mark that is the same everywhere
    costs nothing, and one that follows the mark before it at one distance little.

    >>> in_order([np.array([2, 0, 2, 1])]).tolist(), in_order([np.array([7, 7, 7]), np.array([3, -1, 3])]).tolist()
    ([1, 3, 0, 2], [1, 0, 2])
    """
    if len(marks[0]) <= _LEAST:
        return np.lexsort(marks[::-1])
    order: NDArray[np.int64] | None = None
    for at in reversed(range(len(marks))):
        mark = marks[at]
        low, high = (int(mark.min()), int(mark.max())) if len(mark) else (0, 0)
        if low == high or (at and _follows(mark, marks[at - 1])):
            continue
        if order is None and (mark[1:] >= mark[:-1]).all():
            continue
        above = _above(mark, low, high)
        # Of floats as bits the last ones are often 0.
        used = int(np.bitwise_or.reduce(above)) if high - low >= 1 << 32 else high - low
        first = (used & -used).bit_length() - 1 if high - low >= 1 << 32 else 0
        if 16 < used.bit_length() - first <= 63 - len(mark).bit_length():
            within = _order_beside(above >> first if first else above, order)
            order = within if order is None else order[within]
            continue
        for shift in range(first, used.bit_length(), 16):
            part = (above >> shift if shift else above).astype(np.uint8 if used >> shift < 256 else np.uint16)
            order = np.argsort(part, kind="stable") if order is None else order[np.argsort(part[order], kind="stable")]
    return np.arange(len(marks[0])) if order is None else order


def _order_beside(above: NDArray[Any], order: NDArray[np.int64] | None) -> NDArray[np.int64]:
    """The places of numbers in their order, taken in another one: each is sorted together with its
    place, which stands in the bits below.
    """
    bits = len(above).bit_length()
    both = (above if order is None else above[order]).astype(np.int64)
    both <<= bits
    both |= np.arange(len(both))
    both.sort()
    both &= (1 << bits) - 1
    return both


def _above(mark: NDArray[Any], low: int, high: int) -> NDArray[Any]:
    """How much more whole numbers are than the least of them, without a sign."""
    if high - low < 1 << 31 and mark.dtype == np.int32:
        return (mark - np.int32(low)).view(np.uint32)
    wide = mark if mark.dtype == np.uint64 else mark.astype(np.int64).view(np.uint64)
    return wide - np.uint64(low % 2**64)


def _follows(mark: NDArray[Any], before: NDArray[Any]) -> bool:
    """Whether a mark is the one before and always the same number, so that it tells no more."""
    if mark.dtype != np.int64 or before.dtype != np.int64:
        return False
    apart = mark - before
    return bool((apart == apart[0]).all())
