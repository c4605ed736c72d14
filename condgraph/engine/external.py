"""External functions: their arguments, their calls, and their results."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import Any, TypeAlias

#: An external function; it returns texts, numbers, or other values, as an iterable.
LlmFunction: TypeAlias = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class FunctionRow:
    """A table row (or an entity): its id and name, its `source` and 1-based `number` in it ("" and 0 for an entity).

    `cells` are the texts of its columns, by column; several texts if the row has several values.
    """

    id: str
    name: str
    source: str
    number: int
    cells: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class FunctionArgument:
    """An argument: its name in the program ("" if none), and its values, typed and as texts, in parallel.

    `carriers` is the row that each value belongs to, None if nothing carries it.
    """

    name: str
    values: tuple[Any, ...]
    texts: tuple[str, ...]
    carriers: tuple[FunctionRow | None, ...]

    @property
    def rows(self) -> tuple[FunctionRow, ...]:
        """The distinct rows, in the order of the values."""
        return tuple({row.id: row for row in self.carriers if row is not None}.values())


@dataclass(frozen=True, slots=True)
class CallContext:
    """The context of a call: the question, the step of the program with its words, and the required type."""

    question: str = ""
    step: str = ""
    words: str = ""
    target_type: str = ""


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A call of an external function.

    `question` is the text of `question=`, `step` the label of the query ("Query3"), `words` its line `Step3: ...`,
    `target_type` the type that the program requires; "" if missing. `options` are the names that the program gives
    its arguments.
    """

    name: str
    arguments: tuple[FunctionArgument, ...]
    question: str = ""
    step: str = ""
    words: str = ""
    target_type: str = ""
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def texts(self) -> list[list[str]]:
        """The texts of each argument."""
        return [list(argument.texts) for argument in self.arguments]

    @property
    def rows(self) -> tuple[FunctionRow, ...]:
        """The distinct rows of all arguments."""
        return tuple({row.id: row for argument in self.arguments for row in argument.rows}.values())


def takes_call(function: LlmFunction) -> bool:
    """Return whether a function takes one `FunctionCall`: it needs exactly one positional argument."""
    import inspect

    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters):
        return False
    positional = [
        parameter for parameter in parameters if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    needed = [parameter for parameter in positional if parameter.default is parameter.empty]
    return len(needed) == 1 or (not needed and len(positional) == 1)


def _like(function: LlmFunction) -> Callable[[LlmFunction], LlmFunction]:
    """Return a decorator that copies the signature of the wrapped function."""
    from functools import update_wrapper

    return lambda wrapper: update_wrapper(wrapper, function)


def remembering(function: LlmFunction) -> LlmFunction:
    """Return the function with its results cached by arguments: a second look at an answer does not call a language
    model again.
    """
    results: dict[str, list[Any]] = {}

    @_like(function)
    def ask(*arguments: Any) -> list[Any]:
        key = repr(arguments)
        if key not in results:
            results[key] = list(waited(function(*arguments)))
        return results[key]

    return ask


def each(functions: Any, wrap: Callable[[LlmFunction], LlmFunction]) -> Any:
    """Wrap a function, or each function of a mapping; return anything else unchanged."""
    if isinstance(functions, Mapping):
        return {name: wrap(function) if callable(function) else function for name, function in functions.items()}
    return wrap(functions) if callable(functions) else functions


def waited(found: Any) -> Any:
    """Return the result of a call; an awaitable is awaited, in an event loop of its own."""
    if not isinstance(found, Awaitable):
        return found
    import asyncio

    async def await_it(one: Awaitable[Any]) -> Any:
        return await one

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(await_it(found))
    # This thread already runs a loop, so await in another thread.
    outcome: list[tuple[bool, Any]] = []

    def run() -> None:
        try:
            outcome.append((True, asyncio.run(await_it(found))))
        except BaseException as error:  # noqa: BLE001 - it is raised where the call waits
            outcome.append((False, error))

    thread = Thread(target=run)
    thread.start()
    thread.join()
    succeeded, value = outcome[0]
    if not succeeded:
        raise value
    return value


def on_loop(function: LlmFunction, loop: Any, cancelled: Event) -> LlmFunction:
    """Wrap a coroutine function for calls from a worker thread: it runs on the caller's loop until the query is
    cancelled.
    """
    import asyncio
    import inspect
    from concurrent.futures import TimeoutError as Late

    if not inspect.iscoroutinefunction(function) and not inspect.iscoroutinefunction(type(function).__call__):
        return function

    @_like(function)
    def call(*arguments: Any) -> Any:
        future = asyncio.run_coroutine_threadsafe(function(*arguments), loop)
        while True:
            try:
                return future.result(timeout=0.1)
            except Late:
                if future.done():
                    raise
                if cancelled.is_set():
                    future.cancel()
                    raise

    return call
