"""Timeouts and limits: their validation, the deadline of the current call, threads, and long work in pieces.

A call with a deadline, or one that may be cancelled, sets this once (`within`), for its thread or task. Everything it
runs, however deep, calls `check()` between short pieces of work, and `left()` for how long it may wait for others.
Threads that work for the call share its deadline (`Workers`). A nested call can have a shorter deadline of its own,
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
from functools import lru_cache, partial, wraps
from itertools import chain, islice
from mmap import mmap
from numbers import Integral, Real
from queue import Empty, SimpleQueue
from tempfile import TemporaryFile
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any, Concatenate, Final, Generic, ParamSpec, Protocol, TypeVar, cast, overload
from weakref import proxy

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.errors import CancelledError, DeadlineError, OptionError

if TYPE_CHECKING:
    from concurrent.futures import Future


T = TypeVar("T")
P = ParamSpec("P")
S = TypeVar("S", bound="TimedAnswer")
#: The minimum timeout in seconds for querying a store on behalf of a load that waits.
MIN_TIMEOUT: Final = 1.0
#: The hint of an error about a deadline.
LONGER: Final = "a longer timeout= may help"
#: The time in seconds between two checks for cancellation.
POLL: Final = 0.05


def check_bounds(timeout: float | None, limit: int | None = None, *, what: str = "values to give") -> None:
    """Raise `OptionError` if `timeout` is not a number of seconds above 0, or `limit` (the largest number of `what`)
    is not an integer from 0.
    """
    if timeout is not None and not (is_number(timeout) and timeout > 0):
        raise OptionError(f"timeout is in seconds and more than 0, not {timeout!r}")
    if limit is not None and not (is_whole(limit) and limit >= 0):
        raise OptionError(f"limit is the most {what}, not {limit!r}")


def is_number(value: object) -> bool:
    """Return whether a value is a real number; `True` and `False` are not."""
    return isinstance(value, Real) and not isinstance(value, bool)


def is_whole(value: object) -> bool:
    """Return whether a value is an integer, of Python or NumPy; `True` and `False` are not."""
    return isinstance(value, Integral) and not isinstance(value, bool)


class Budget:
    """The deadline of a call (a time of the monotonic clock; None: none), and the events that cancel it."""

    __slots__ = ("events", "until")

    def __init__(self, until: float | None, events: tuple[Event, ...]) -> None:
        self.until, self.events = until, events

    def check(self) -> None:
        """Raise `CancelledError` if the call was cancelled, `DeadlineError` after its deadline."""
        for event in self.events:
            if event.is_set():
                raise CancelledError("the query was cancelled")
        if self.until is not None and time.monotonic() >= self.until:
            raise late()

    def left(self) -> float | None:
        """Return the seconds until the deadline, at least 0; None if there is none."""
        return None if self.until is None else max(self.until - time.monotonic(), 0.0)

    def cancelled(self) -> Event | None:
        """Return an event that is set once the call is cancelled; None if it cannot be cancelled."""
        return None if not self.events else self.events[0] if len(self.events) == 1 else _AnyEvent(self.events)


class _AnyEvent(Event):
    """Set as soon as one of several events is set."""

    def __init__(self, events: tuple[Event, ...]) -> None:
        super().__init__()
        self._events = events

    def is_set(self) -> bool:
        return any(event.is_set() for event in self._events)


def late(hint: str = LONGER) -> DeadlineError:
    """Return the error of a deadline that has passed."""
    return DeadlineError("the query did not end before its deadline", hint=hint)


_BUDGET: ContextVar[Budget | None] = ContextVar("condgraph_budget", default=None)


def current() -> Budget | None:
    """Return the budget of the current call; None if it has none."""
    return _BUDGET.get()


def check() -> None:
    """Raise `CancelledError` or `DeadlineError` if the current call was cancelled, or its deadline has passed."""
    budget = _BUDGET.get()
    if budget is not None:
        budget.check()


def left() -> float | None:
    """Return the seconds that the current call has left; None if it has no deadline. Raises as `check`."""
    budget = _BUDGET.get()
    if budget is None:
        return None
    budget.check()
    return budget.left()


def merged(timeout: float | None, cancelled: Event | None) -> Budget | None:
    """Return the budget of a part of the current call with its own timeout (seconds) or its own cancellation."""
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
    """A context manager that sets the budget of its body."""

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


#: For calls without a deadline: the most frequent, and the fastest.
_UNBOUNDED: Final = nullcontext()


def within(timeout: float | None, cancelled: Event | None = None) -> bounded_by | nullcontext[None]:
    """Return a context manager that limits its body to `timeout` seconds in all, and ends it soon after `cancelled`
    is set.

    Do not use it in the body of a generator: its callers would be limited too.
    """
    if timeout is None and cancelled is None:
        return _UNBOUNDED
    return bounded_by(merged(timeout, cancelled))


def waiting(wait: float) -> bounded_by | nullcontext[None]:
    """Return a context manager for the queries that a load sends to a store before it waits `wait` seconds for other
    writers: a silent store must not delay it for longer. 0 sets no limit.
    """
    return within(max(wait, MIN_TIMEOUT) if wait else None)


def allowed(seconds: float) -> bounded_by:
    """Return a context manager for the last small step of a call, which gets `seconds` even after the deadline."""
    outer = _BUDGET.get()
    if outer is None or outer.until is None:
        return bounded_by(outer)
    return bounded_by(Budget(max(outer.until, time.monotonic() + seconds), outer.events))


def wait_for(lock: Lock) -> None:
    """Acquire a lock, waiting as long as the current call may."""
    if lock.acquire(blocking=False):
        return
    while True:
        budget = _BUDGET.get()
        if budget is None:
            lock.acquire()
            return
        budget.check()
        remaining = budget.left()
        if lock.acquire(timeout=POLL if remaining is None else max(min(remaining, POLL), 0.001)):
            return


# -- properties of answers with a timeout ----------------------------------------------------------


class TimedAnswer(Protocol):
    """An answer whose later properties each have the timeout (seconds) of its query."""

    _timeout: float | None


def timed(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
    """Limit a method of an answer to the answer's timeout."""

    @wraps(method)
    def bounded(self: S, *arguments: P.args, **options: P.kwargs) -> T:
        if self._timeout is None:
            return method(self, *arguments, **options)
        with within(self._timeout):
            return method(self, *arguments, **options)

    return cast("Callable[Concatenate[S, P], T]", bounded)


class cached(Generic[T]):
    """A property that is computed once for each object.

    As `functools.cached_property`, without its lock: in Python 3.11 that lock is shared by all objects of a class, so
    one silent server would block all others. Two threads may both compute the value.
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
        found = instance.__dict__[self._name] = self._compute(instance)
        return found

    def _compute(self, instance: Any) -> T:
        return self._work(instance)


def remembered(method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], T]:
    """Cache the results of a method by its arguments: the last 4,096 for each object. The cache does not keep the object
    alive, so that it is freed without the garbage collector.
    """
    place = f"{method.__qualname__} cached"

    @wraps(method)
    def look_up(instance: Any, /, *arguments: P.args, **options: P.kwargs) -> T:
        cache: Any = instance.__dict__.get(place)
        if cache is None:
            cache = instance.__dict__[place] = lru_cache(4096)(partial(method, proxy(instance)))
        return cache(*arguments, **options)  # type: ignore[no-any-return]

    return look_up


class kept(cached[T]):
    """The same for an answer, within the answer's timeout."""

    def _compute(self, instance: Any) -> T:
        with within(instance._timeout):
            return self._work(instance)


# -- threads that a call waits for -------------------------------------------------------------------
# Runs blocking calls in threads, so that callers can time out.
#
# Everything that waits for something external (a connection, an answer, a name lookup, a lock of a
# library) runs in such a thread, and its caller waits for the thread as long as its deadline allows.
# There are as many threads as concurrent calls, so that calls blocked by a silent server do not delay
# later ones. A thread abandoned by its caller may go on for a while, since servers end queries at
# their deadline by themselves; then what it waits for is cut off.


#: The time in seconds after which an idle thread ends.
_IDLE: Final = 10.0
#: The number of abandoned threads that may go on; of more, the oldest are cut off at once.
_MAX_ABANDONED: Final = 16


class Workers:
    """As many threads as concurrent calls, all with one name; idle ones are reused. They are daemons, so that a
    silent server does not keep the process alive.

    `linger` is how many seconds an abandoned thread may go on before it is cut off.
    """

    def __init__(self, name: str, *, linger: float = 0.0) -> None:
        self._name, self._linger = name, linger
        self._queue: SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = SimpleQueue()
        self._lock = Lock()
        self._idle = 0
        self._abandoned: deque[tuple[float, Future[Any], Callable[[], None]]] = deque()

    def submit(self, call: Callable[[], T]) -> Future[T]:
        from concurrent.futures import Future

        future: Future[T] = Future()
        with self._lock:
            needs_thread = self._idle == 0
            if not needs_thread:
                self._idle -= 1
        self._queue.put((future, call))
        if needs_thread:
            Thread(target=self._work, name=self._name, daemon=True).start()
        return future

    def leave(self, call: Callable[[], Any], cut: Callable[[], None]) -> None:
        """Run a call in a thread that nobody waits for; `cut` ends it."""
        self._abandon(self.submit(call), cut)

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
        """Run a call in a thread and return its result. Raise `DeadlineError` (with a hint) after `timeout` seconds
        or at the deadline of the current call, and `CancelledError` soon after a cancellation.

        `patience` is a limit in seconds for a call with a later deadline or none; the error is then `silent()`. `cut`
        ends the abandoned thread; it may be called from any thread.
        """
        self._sweep()
        budget = merged(timeout, cancelled)
        if budget is not None:
            budget.check()
        until, events = (None, ()) if budget is None else (budget.until, budget.events)
        patience_end = None if patience is None else time.monotonic() + patience
        end = patience_end if until is None else until if patience_end is None else min(until, patience_end)
        context = copy_context()
        future = self.submit(lambda: context.run(call))
        while True:
            remaining = None if end is None else max(end - time.monotonic(), 0.0)
            step = remaining if not events else POLL if remaining is None else min(POLL, remaining)
            try:
                return future.result(step)
            except TimeoutError:
                if future.done():
                    # It ended just now, or the call itself raised a TimeoutError.
                    return future.result()
                failure: DeadlineError | CancelledError
                if any(event.is_set() for event in events):
                    failure = CancelledError("the query was cancelled")
                elif end is not None and time.monotonic() >= end:
                    failure = late(hint) if silent is None or end == until else silent()
                else:
                    continue
                if not future.cancel() and cut is not None:
                    self._abandon(future, cut)
                raise failure from None

    def close(self) -> None:
        """Cut off all abandoned threads."""
        self._sweep(everything=True)

    def _abandon(self, future: Future[Any], cut: Callable[[], None]) -> None:
        with self._lock:
            self._abandoned.append((time.monotonic() + self._linger, future, cut))
        self._sweep()

    def _sweep(self, *, everything: bool = False) -> None:
        """Cut off the threads that were abandoned long enough ago."""
        if not self._abandoned:
            return
        now, expired = time.monotonic(), []
        with self._lock:
            alive = [one for one in self._abandoned if not one[1].done()]
            for place, one in enumerate(alive):
                if everything or one[0] <= now or place < len(alive) - _MAX_ABANDONED:
                    expired.append(one)
            self._abandoned = deque(one for one in alive if one not in expired)
        for _, _, cut in expired:
            cut()

    def _work(self) -> None:
        while True:
            try:
                future, call = self._queue.get(timeout=_IDLE)
            except Empty:
                with self._lock:
                    if self._idle == 0:
                        # A call that relies on this thread is already on its way.
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
    """A long computation that many calls need: run once, in a thread; each call waits as long as its own deadline
    allows, and the computation goes on for later calls. If it fails, all that waited get the error, and the next call
    starts it again.
    """

    def __init__(self, workers: Workers, make: Callable[[], T]) -> None:
        self._workers = workers
        self._make: Callable[[], T] | None = make
        self._lock = Lock()
        self._future: Future[T] | None = None

    def begun(self) -> Future[T]:
        """Return the future, starting the computation if needed; for callers in an event loop."""
        with self._lock:
            if self._future is None or (self._future.done() and self._future.exception() is not None):
                # The first caller's budget must not limit the computation.
                assert self._make is not None
                self._future = self._workers.submit(self._make)
            return self._future

    def there(self) -> T | None:
        """Return the result, or None if it is not available yet."""
        future = self._future
        return None if future is None or not future.done() or future.exception() is not None else future.result()

    def get(self) -> T:
        """Wait for the result."""
        future = self._future
        if future is not None and future.done() and future.exception() is None:
            # Drop the function: the result often refers to this object.
            self._make = None
            return future.result()
        future = self.begun()
        while True:
            check()
            budget = current()
            remaining = None if budget is None else budget.left()
            step = remaining if budget is None or not budget.events else POLL if remaining is None else min(POLL, remaining)
            try:
                return future.result(step)
            except TimeoutError:
                if future.done():
                    return future.result()


#: Threads for computations that many calls share.
BUILDERS: Final = Workers("condgraph-builder")


def shared(among: dict[Any, Any], key: Any, make: Callable[[], Any]) -> Any:
    """Return the value stored under a key, computing it if it is missing. For a call with a deadline a thread
    computes it and goes on for later calls: otherwise a graph that takes longer to prepare than callers wait would
    never be ready.
    """
    value = among.get(key)
    if value is None:
        if current() is None:
            value = among[key] = make()
            return value
        value = among.setdefault(key, SharedTask(BUILDERS, make))
    if isinstance(value, SharedTask):
        value = among[key] = value.get()
    return value


class built(cached[T]):
    """A property that takes long to compute and is computed once for each object (`shared`)."""

    def _compute(self, instance: Any) -> T:
        if current() is None:
            return self._work(instance)
        name = f"{self._name} in the making"
        result = instance.__dict__.setdefault(name, SharedTask(BUILDERS, lambda: self._work(instance))).get()
        instance.__dict__.pop(name, None)
        value: T = result
        return value


# -- work in pieces ----------------------------------------------------------------------------------
# Long work in pieces, with a check of the deadline between them, so that an operator on millions of
# values ends in time.
#
# If the call has no budget, the work is done in one piece.


#: The number of Python objects (values, texts) processed between two checks: ten or twenty
#: milliseconds.
CHUNK: Final = 1 << 13
#: The number of rows of columns for the same.
ROWS: Final = 1 << 17
#: The largest length of a `scratch` array in memory.
_MAX_SCRATCH: Final = 1 << 20
#: Up to this many rows, one `lexsort` is faster than several counting sorts.
_MAX_LEXSORT: Final = 64


def pieces(items: Any, size: int = CHUNK) -> Iterator[Any]:
    """Yield a list or an array in slices, with a check of the deadline before each."""
    if current() is None or len(items) <= size:
        yield items
        return
    for start in range(0, len(items), size):
        check()
        yield items[start : start + size]


def slices(length: int, size: int = ROWS) -> Iterator[slice]:
    """Return a range in slices of `size` rows, for columns that may be larger than memory."""
    return (slice(low, min(low + size, length)) for low in range(0, length, size))


def scratch(length: int, dtype: Any) -> NDArray[Any]:
    """Return an array of zeros to work in; a long one is backed by an unnamed temporary file."""
    if length <= _MAX_SCRATCH:
        return np.zeros(length, dtype)
    size = length * np.dtype(dtype).itemsize
    try:
        with TemporaryFile() as file:
            # Writing to a sparse file would kill the process on a full disk.
            os.posix_fallocate(file.fileno(), 0, size)
            return np.frombuffer(mmap(file.fileno(), size), dtype)
    except (OSError, AttributeError):
        return np.zeros(length, dtype)


def watched(items: Iterable[T], size: int = CHUNK) -> Iterable[T]:
    """Return the same items, with a check of the deadline every `size` items."""
    return items if current() is None else chain.from_iterable(_some(iter(items), size))


def _some(items: Iterator[T], size: int) -> Iterator[list[T]]:
    while True:
        check()
        chunk = list(islice(items, size))
        if not chunk:
            return
        yield chunk


def places_in_order(count: int, key: Callable[[int], Any], *, reverse: bool = False) -> list[int]:
    """Return the positions `0 .. count - 1` sorted by a key, stable as `sorted`.

    Many positions are distributed over buckets by a sample of their keys, and each bucket is sorted separately.
    """
    if current() is None or count <= 2 * CHUNK:
        return sorted(range(count), key=key, reverse=reverse)
    keys = list(map(key, watched(range(count))))
    # Thirty-two keys of each bucket determine its begin well enough.
    sample = sorted(keys[:: CHUNK // 32])
    check()
    pivots = sample[32::32]
    buckets: list[list[int]] = [[] for _ in range(len(pivots) + 1)]
    for place in watched(range(count)):
        buckets[bisect_right(pivots, keys[place])].append(place)
    result: list[int] = []
    for bucket in reversed(buckets) if reverse else buckets:
        check()
        bucket.sort(key=keys.__getitem__, reverse=reverse)
        result.extend(bucket)
    return result


def different(numbers: NDArray[Any]) -> NDArray[Any]:
    """Return the distinct numbers, sorted: `np.unique`, which is slower because it hashes many numbers first."""
    ordered = np.sort(numbers)
    return ordered[changed(ordered)]


def changed(*columns: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which rows differ from the row before, in columns of one length; the first row does.

    >>> changed(np.array([1, 1, 1, 2]), np.array([5, 5, 6, 6])).tolist()
    [True, False, True, True]
    """
    is_new = np.ones(len(columns[0]), bool)
    is_new[1:] = columns[0][1:] != columns[0][:-1]
    for column in columns[1:]:
        is_new[1:] |= column[1:] != column[:-1]
    return is_new


def in_order(marks: Sequence[NDArray[Any]]) -> NDArray[np.int64]:
    """Return the positions of rows sorted by columns of integers of any type, the first column the most significant,
    equal rows by position: `np.lexsort(marks[::-1])`, several times faster. Numbers of up to 16 bits are sorted by
    counting, longer ones together with their positions if both fit into one number, else 16 bits at a time, the
    lowest first. Constant columns, and columns at a constant distance to the one before, are skipped.

    >>> in_order([np.array([2, 0, 2, 1])]).tolist(), in_order([np.array([7, 7, 7]), np.array([3, -1, 3])]).tolist()
    ([1, 3, 0, 2], [1, 0, 2])
    """
    if len(marks[0]) <= _MAX_LEXSORT:
        return np.lexsort(marks[::-1])
    order: NDArray[np.int64] | None = None
    for index in reversed(range(len(marks))):
        mark = marks[index]
        low, high = (int(mark.min()), int(mark.max())) if len(mark) else (0, 0)
        if low == high or (index and _follows(mark, marks[index - 1])):
            continue
        if order is None and (mark[1:] >= mark[:-1]).all():
            continue
        offsets = _from_lowest(mark, low, high)
        # The lowest bits of floats are often 0.
        used = int(np.bitwise_or.reduce(offsets)) if high - low >= 1 << 32 else high - low
        low_bit = (used & -used).bit_length() - 1 if high - low >= 1 << 32 else 0
        if 16 < used.bit_length() - low_bit <= 63 - len(mark).bit_length():
            within = _order_with(offsets >> low_bit if low_bit else offsets, order)
            order = within if order is None else order[within]
            continue
        for shift in range(low_bit, used.bit_length(), 16):
            part = (offsets >> shift if shift else offsets).astype(np.uint8 if used >> shift < 256 else np.uint16)
            order = np.argsort(part, kind="stable") if order is None else order[np.argsort(part[order], kind="stable")]
    return np.arange(len(marks[0])) if order is None else order


def _order_with(above: NDArray[Any], order: NDArray[np.int64] | None) -> NDArray[np.int64]:
    """Return the sorted positions of numbers, given an earlier order: each number is sorted together with its
    position in the lower bits.
    """
    bits = len(above).bit_length()
    combined = (above if order is None else above[order]).astype(np.int64)
    combined <<= bits
    combined |= np.arange(len(combined))
    combined.sort()
    combined &= (1 << bits) - 1
    return combined


def _from_lowest(mark: NDArray[Any], low: int, high: int) -> NDArray[Any]:
    """Return integers as unsigned offsets from the smallest."""
    if high - low < 1 << 31 and mark.dtype == np.int32:
        return (mark - np.int32(low)).view(np.uint32)
    wide = mark if mark.dtype == np.uint64 else mark.astype(np.int64).view(np.uint64)
    return wide - np.uint64(low % 2**64)


def _follows(mark: NDArray[Any], before: NDArray[Any]) -> bool:
    """Return whether a column differs from the one before by a constant."""
    if mark.dtype != np.int64 or before.dtype != np.int64:
        return False
    apart = mark - before
    return bool((apart == apart[0]).all())
