"""External functions: their arguments, their calls, and what they return."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import Any, TypeAlias

#: A function from outside; it gives texts, numbers, or other values, one after the other.
LlmFunction: TypeAlias = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class FunctionRow:
    """A table row (or an entity of a graph): its id and name, its `source` and `number` in it (from
    1; "" and 0 for an entity).

    `cells` are the texts of its columns, by column; a column has several where the cell stands
    several times.
    """

    id: str
    name: str
    source: str
    number: int
    cells: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class FunctionArgument:
    """An argument: how the program calls it ("" where it does not), its values typed and as texts,
    side by side.

    `carriers` has the row that each value stands in, None where nothing carries it.
    """

    name: str
    values: tuple[Any, ...]
    texts: tuple[str, ...]
    carriers: tuple[FunctionRow | None, ...]

    @property
    def rows(self) -> tuple[FunctionRow, ...]:
        """The rows, each once, in the order of the values."""
        return tuple({row.id: row for row in self.carriers if row is not None}.values())


@dataclass(frozen=True, slots=True)
class CallContext:
    """What is known of a call before it runs: the question, the step of the program with its words,
    the type that is asked for.
    """

    question: str = ""
    step: str = ""
    words: str = ""
    target_type: str = ""


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A call of a function from outside.

    `question` is what `question=` said, `step` the label of the query ("Query3"), `words` its line
    `Step3: ...`, `target_type` what the program says is asked for; "" where there is none.
    `options` are the names that the program gives its arguments.
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
        """The rows of all arguments, each once."""
        return tuple({row.id: row for argument in self.arguments for row in argument.rows}.values())


def takes_call(function: LlmFunction) -> bool:
    """Whether a function takes one `FunctionCall`: it needs one argument by position, and no more."""
    import inspect

    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters):
        return False
    positional = [one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    needed = [one for one in positional if one.default is one.empty]
    return len(needed) == 1 or (not needed and len(positional) == 1)


def _named(function: LlmFunction) -> Callable[[LlmFunction], LlmFunction]:
    """A wrapper with the signature of what it wraps."""
    from functools import update_wrapper

    return lambda wrapper: update_wrapper(wrapper, function)


def remembering(function: LlmFunction) -> LlmFunction:
    """The same function, asked once for the same: an answer that is looked into again does not ask
    a language model again.
    """
    known: dict[str, list[Any]] = {}

    @_named(function)
    def ask(*arguments: Any) -> list[Any]:
        key = repr(arguments)
        if key not in known:
            known[key] = list(waited(function(*arguments)))
        return known[key]

    return ask


def each(functions: Any, wrap: Callable[[LlmFunction], LlmFunction]) -> Any:
    """A function, or each of a mapping of them, wrapped; anything else as it is."""
    if isinstance(functions, Mapping):
        return {name: wrap(one) if callable(one) else one for name, one in functions.items()}
    return wrap(functions) if callable(functions) else functions


def waited(found: Any) -> Any:
    """What a call gives; what is awaitable is awaited, in an event loop of its own."""
    if not isinstance(found, Awaitable):
        return found
    import asyncio

    async def whole(one: Awaitable[Any]) -> Any:
        return await one

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(whole(found))
    # A loop runs in this thread: the call waits in another one.
    outcome: list[tuple[bool, Any]] = []

    def run() -> None:
        try:
            outcome.append((True, asyncio.run(whole(found))))
        except BaseException as error:  # noqa: BLE001 - it is raised where the call waits
            outcome.append((False, error))

    thread = Thread(target=run)
    thread.start()
    thread.join()
    good, value = outcome[0]
    if not good:
        raise value
    return value


def on_loop(function: LlmFunction, loop: Any, cancelled: Event) -> LlmFunction:
    """A coroutine function as one that a worker thread calls: it runs on the loop of the caller,
    until the query is cancelled.
    """
    import asyncio
    import inspect
    from concurrent.futures import TimeoutError as Late

    if not inspect.iscoroutinefunction(function) and not inspect.iscoroutinefunction(type(function).__call__):
        return function

    @_named(function)
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
