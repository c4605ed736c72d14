"""The contract between condgraph and a language model: messages, completions, deadlines and budgets."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field, replace
from threading import Event, Lock, Thread
from typing import Any, Final, Literal, Protocol, TypedDict, TypeVar, Unpack, overload, runtime_checkable

from condgraph.engine.bounds import POLL, check, check_bounds, current
from condgraph.engine.errors import BudgetError, CondgraphError, ModelError, OptionError, numbered

# -- the model ---------------------------------------------------------------------------------------
# Everything that uses a language model (`ask`, `reason`, paraphrases) depends only on this module;
# `openai_chat` has the model behind an address.


#: `{"role": "system" | "user" | "assistant", "content": text}`, the usual format of chat models.
Message = Mapping[str, str]

#: Why a completion ended: it was complete, it reached the token limit, or the model refused.
Finish = Literal["stop", "length", "refusal"]


@dataclass(frozen=True, slots=True)
class Usage:
    """The cost of a call in tokens. A count is None if the model does not report it."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None

    def __add__(self, other: Usage) -> Usage:
        return Usage(_sum(self.prompt_tokens, other.prompt_tokens), _sum(self.completion_tokens, other.completion_tokens))


@dataclass(frozen=True, slots=True)
class Completion:
    """A text written by a model, unchanged, and the reason why it ended."""

    text: str
    finish: Finish = "stop"


@dataclass(frozen=True, slots=True)
class Completions(Sequence[Completion]):
    """The completions of one call, at most as many as requested, and their cost."""

    items: tuple[Completion, ...]
    usage: Usage = field(default_factory=Usage)
    #: The model that answered, as its server names it.
    model: str = ""
    #: How many requests were sent: several if the server returns one completion at a time, or after failures.
    requests: int = 1

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Completion]:
        return iter(self.items)

    @overload
    def __getitem__(self, index: int) -> Completion: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Completion]: ...
    def __getitem__(self, index: int | slice) -> Completion | Sequence[Completion]:
        return self.items[index]


#: Closing tags of the thoughts that models write. The opening tag may be in the prompt already, so a reply may have only
#: the closing one.
_THOUGHTS: Final = ("</think>", "</thinking>", "◁/think▷")


def spoken(text: str) -> str:
    """Return a model's text without its thoughts, or "" if the text was cut off inside them.

    >>> spoken("<think>Maybe Find(India)?</think> Find(Nepal)"), spoken("<think>Maybe Find(India)")
    ('Find(Nepal)', '')
    """
    for end in _THOUGHTS:
        text = text.rpartition(end)[2]
        if text.lstrip().startswith(end.replace("/", "")):
            return ""
    return text.strip()


class ChatOptions(TypedDict, total=False):
    """The keyword options of `ChatModel.chat`."""

    schema: Mapping[str, Any] | None
    grammar: str | None
    n: int
    max_tokens: int | None
    temperature: float
    seed: int | None
    timeout: float | None
    stop: Sequence[str]


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One call of a model: the conversation, and the options of `ChatModel.chat`."""

    messages: Sequence[Message]
    schema: Mapping[str, Any] | None = None
    grammar: str | None = None
    n: int = 1
    max_tokens: int | None = None
    temperature: float = 0.0
    seed: int | None = None
    timeout: float | None = None
    stop: Sequence[str] = ()


@runtime_checkable
class ChatModel(Protocol):
    """A language model. A call that gets no completion raises `ModelError` (`engine.errors`)."""

    @property
    def name(self) -> str:
        """The model's name in answers and transcripts, without keys or passwords."""

    @property
    def accepts(self) -> frozenset[str]:
        """The constraints that calls support: `"json-schema"`, `"gbnf"`, `"stop"`. Empty for plain text only."""

    def chat(
        self,
        messages: Sequence[Message],
        *,
        schema: Mapping[str, Any] | None = None,
        grammar: str | None = None,
        n: int = 1,
        max_tokens: int | None = None,
        temperature: float = 0.0,
        seed: int | None = None,
        timeout: float | None = None,
        stop: Sequence[str] = (),
    ) -> Completions:
        """Return up to `n` completions of the conversation.

        The completion must follow `schema`, a JSON schema, and `grammar`, a GBNF text, if `accepts` has
        them. Otherwise they are left out, and the caller checks the reply. A completion ends before any
        of the texts in `stop`, which are sent only to models that accept `"stop"`. `timeout` is the time
        for the whole call in seconds.
        """

    def count(self, text: str) -> int | None:
        """Return how many tokens a text has for this model, or None if its tokenizer is not available."""


class ModelAround:
    """A wrapper for a model, with the same name, constraints and tokenizer."""

    def __init__(self, model: ChatModel) -> None:
        self._model = model

    @property
    def name(self) -> str:
        """The name of the wrapped model."""
        return self._model.name

    @property
    def accepts(self) -> frozenset[str]:
        """The constraints that the wrapped model supports."""
        return self._model.accepts

    def count(self, text: str) -> int | None:
        """Return how many tokens a text has for the wrapped model."""
        return self._model.count(text)


def _sum(left: int | None, right: int | None) -> int | None:
    return right if left is None else left if right is None else left + right


# -- pieces ------------------------------------------------------------------------------------------
# Within a `with heard_by(...)` block, a function receives the pieces of completions while they are
# written. A model that cannot stream sends no pieces.


#: Called with the number of a completion, a piece of its text, and whether it is the first piece. A first piece
#: discards all earlier pieces of this completion, for example after a broken connection. The call may come from
#: another thread.
Tell = Callable[[int, str, bool], Any]
_LISTENER: Final[ContextVar[Tell | None]] = ContextVar("condgraph_tell", default=None)


def listener() -> Tell | None:
    """Return the function that receives the pieces of completions, or None."""
    return _LISTENER.get()


@contextmanager
def heard_by(tell: Tell) -> Iterator[None]:
    """Pass the pieces of completions to `tell` while the block runs."""
    token = _LISTENER.set(tell)
    try:
        yield
    finally:
        _LISTENER.reset(token)


# -- tokens ------------------------------------------------------------------------------------------
# How many tokens a text has: counted by the model's own tokenizer if it is available, else an upper bound.


_TOKENS: Final = re.compile(r"[A-Za-z]+| +|[\x00-\x7f]|[^\x00-\x7f]+")
#: How many tokens a chat template adds for each message, and for the whole conversation.
_PER_MESSAGE: Final = 6
_PER_CHAT: Final = 24


@dataclass(frozen=True, slots=True)
class Counted:
    """A number of tokens: exact if the model's tokenizer counted it, else an upper bound."""

    tokens: int
    exact: bool


def estimate(text: str) -> int:
    """Return an upper bound for the number of tokens of a text with common tokenizers.

    Three letters count as one token, and so does every digit, punctuation mark and line break. A
    space belongs to the next word. In other scripts every byte of UTF-8 counts as a token.

    >>> estimate("country 12"), estimate("Zürich")
    (5, 5)
    """
    result = 0
    for piece in _TOKENS.findall(text):
        first = piece[0]
        if first == " ":
            result += len(piece) // 2
        elif first.isascii():
            result += -(-len(piece) // 3)
        else:
            result += len(piece.encode("utf-8", "surrogatepass"))
    return result


def counted(model: ChatModel, text: str) -> Counted:
    """Count the tokens of a text with the model's tokenizer, or else with `estimate`."""
    count = model.count(text)
    return Counted(estimate(text), False) if count is None else Counted(count, True)


def tokens_of(model: ChatModel, text: str) -> int:
    """Return how many tokens a text has for a model, or an upper bound."""
    return counted(model, text).tokens


def counted_prompt(model: ChatModel, messages: Sequence[Message]) -> Counted:
    """Count the tokens of a conversation: those of its texts, plus a bound for the template.

    `exact` refers to the texts only.
    """
    parts = [counted(model, message["content"]) for message in messages]
    template = _PER_CHAT + _PER_MESSAGE * len(parts)
    return Counted(sum(part.tokens for part in parts) + template, all(part.exact for part in parts))


# -- deadlines ---------------------------------------------------------------------------------------
# Waiting for something that cannot be interrupted: a call ends at its deadline or when it is
# cancelled, whatever the other side does.


T = TypeVar("T")
#: For how many seconds after the deadline a result is still accepted.
_EARLY: Final = 0.02


class Wait:
    """The deadline of a call: the earlier of its own `timeout` in seconds and the enclosing call's deadline."""

    __slots__ = ("_deadline", "_timeout", "ended", "until")

    def __init__(self, timeout: float | None) -> None:
        check_bounds(timeout)
        check()
        outer = current()
        self._timeout, self._deadline = timeout, None if outer is None else outer.until
        deadline = None if timeout is None else time.monotonic() + timeout
        self.until = deadline if self._deadline is None else self._deadline if deadline is None else min(deadline, self._deadline)
        #: Set when the caller stops waiting.
        self.ended = Event()

    def left(self) -> float | None:
        """Return the seconds that are left, at least 0.01, or None without a deadline."""
        return None if self.until is None else max(self.until - time.monotonic(), 0.01)

    def over(self) -> bool:
        """Return whether the deadline has passed or the caller has stopped waiting."""
        return self.ended.is_set() or (self.until is not None and time.monotonic() >= self.until)

    def late(self, who: str) -> CondgraphError:
        """Return the error for a call that took too long.

        Raises `DeadlineError` or `CancelledError` if the enclosing call has ended.
        """
        check()
        seconds = "its time" if self._timeout is None else f"{self._timeout:g} s"
        return ModelError(f"{who} returned no completion within {seconds}", hint="a longer timeout= may help, or fewer tokens")

    def sleep(self, seconds: float) -> None:
        """Sleep for at most `seconds`, or until the caller stops waiting."""
        self.ended.wait(seconds)

    def until_done(self, work: Callable[[], T], who: str) -> T:
        """Run `work` in a thread, which is abandoned at the deadline."""
        result: list[T] = []
        failed: list[BaseException] = []
        done = Event()
        context = copy_context()

        def run() -> None:
            try:
                result.append(context.run(work))
            except BaseException as error:  # noqa: BLE001 - raised again in the waiting thread
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
        return result[0]

    def _await(self, done: Event, who: str) -> None:
        outer = current()
        cancelled = None if outer is None else outer.cancelled()
        while True:
            left = self.left()
            if done.wait(left if cancelled is None else POLL if left is None else min(left, POLL)):
                return
            check()
            if self.over():
                # Accept a result that arrives at the last moment.
                if done.wait(_EARLY):
                    return
                raise self.late(who)


def failure(who: str, error: BaseException) -> ModelError:
    """Turn an exception from foreign code into a `ModelError`."""
    return ModelError(f"{who} raised {type(error).__name__}: {error}")


def finished(value: Any) -> Any:
    """Return a value, or the result of an awaitable, so that callables may be `async`.

    The calling thread must not be running an event loop.
    """
    if hasattr(value, "__await__"):
        import asyncio

        async def wait() -> Any:
            return await value

        return asyncio.run(wait())
    return value


# -- budgets -----------------------------------------------------------------------------------------
# Limits for the calls of a model, and what the calls cost.


@dataclass(frozen=True, slots=True)
class Budget:
    """The limits for one question. None means no limit.

    `prompt_tokens` limits the tokens of one prompt. `calls` limits the number of calls, each of
    which may return several completions. `seconds` limits the time since the first call.
    `total_tokens` limits the tokens of all prompts and completions together, as the model reports
    them. Raises `OptionError` for anything but positive numbers.
    """

    prompt_tokens: int | None = 5000
    calls: int | None = 8
    seconds: float | None = 60.0
    total_tokens: int | None = None

    def __post_init__(self) -> None:
        for name in ("prompt_tokens", "calls", "seconds", "total_tokens"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or not value > 0):
                raise OptionError(f"{name} of a budget is more than 0, or None for no bound, not {value!r}")


@dataclass(frozen=True, slots=True)
class Spent:
    """The cost of calls: the number of calls, requests to the server including retries, tokens as the
    model reports them, and seconds of waiting.
    """

    calls: int = 0
    requests: int = 0
    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0

    @property
    def tokens(self) -> int:
        """The tokens of prompts and completions, as far as the model reports them."""
        return (self.usage.prompt_tokens or 0) + (self.usage.completion_tokens or 0)


class Metered(ModelAround):
    """A model whose calls are counted in `spent` and limited by a budget.

    A call beyond the budget raises `BudgetError` and is not made. If the model's tokenizer is not
    available, the tokens of a prompt are an upper bound.
    """

    def __init__(self, model: ChatModel, budget: Budget | None = None) -> None:
        super().__init__(model)
        self.budget = Budget() if budget is None else budget
        self._lock = Lock()
        self._spent = Spent()
        self._until: float | None = None

    def __repr__(self) -> str:
        return f"Metered({self._model!r}, {self.budget!r})"

    @property
    def spent(self) -> Spent:
        """The cost of the calls so far."""
        return self._spent

    def chat(self, messages: Sequence[Message], **options: Unpack[ChatOptions]) -> Completions:
        """Return the model's completions without its thoughts, within the remaining time.

        Raises `BudgetError` if the budget does not allow the call.
        """
        self._fit(messages)
        left = self._begin()
        started = time.monotonic()
        timeout = options.get("timeout")
        if left is not None:
            options["timeout"] = left if timeout is None else min(timeout, left)
        result: Completions | None = None
        try:
            result = self._model.chat(messages, **options)
        finally:
            self._end(result, time.monotonic() - started)
        return replace(result, items=tuple(replace(item, text=spoken(item.text)) for item in result))

    def _fit(self, messages: Sequence[Message]) -> None:
        limit = self.budget.prompt_tokens
        if limit is None:
            return
        size = counted_prompt(self._model, messages)
        if size.tokens > limit:
            prefix = "" if size.exact else "at most "
            raise BudgetError(
                f"a prompt of {prefix}{size.tokens:,} tokens is more than the budget's {limit:,}",
                hint="a larger prompt_tokens= may help",
            )

    def _begin(self) -> float | None:
        """Count a call and return the seconds that are left."""
        with self._lock:
            budget, now = self.budget, time.monotonic()
            if budget.seconds is not None and self._until is None:
                self._until = now + budget.seconds
            if budget.calls is not None and self._spent.calls >= budget.calls:
                raise BudgetError(
                    f"the budget's {numbered(budget.calls, 'call is', 'calls are')} spent", hint="a larger calls= may help"
                )
            if self._until is not None and now >= self._until:
                raise BudgetError(f"the budget's {budget.seconds:g} s are spent", hint="a larger seconds= may help")
            if budget.total_tokens is not None and self._spent.tokens >= budget.total_tokens:
                raise BudgetError(f"the budget's {budget.total_tokens:,} tokens are spent", hint="a larger total_tokens= may help")
            spent = self._spent
            self._spent = Spent(spent.calls + 1, spent.requests, spent.usage, spent.seconds)
            return None if self._until is None else self._until - now

    def _end(self, completions: Completions | None, seconds: float) -> None:
        with self._lock:
            spent = self._spent
            requests, usage = (1, Usage()) if completions is None else (completions.requests, completions.usage)
            self._spent = Spent(spent.calls, spent.requests + requests, spent.usage + usage, spent.seconds + seconds)
