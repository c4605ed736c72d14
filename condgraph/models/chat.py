"""What condgraph asks of a language model: messages in, completions out, within a time and a budget."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field, replace
from threading import Event, Lock, Thread
from typing import Any, Final, Literal, Protocol, TypedDict, TypeVar, Unpack, overload, runtime_checkable

from condgraph.engine.bounds import LOOK, check, check_bounds, current
from condgraph.engine.errors import BudgetError, CondgraphError, ModelError, OptionError, numbered

# -- the model ---------------------------------------------------------------------------------------
# Everything that uses a language model (`ask`, `reason`, paraphrases) depends on this module alone;
# adapters are in `adapters` and `openai_chat`.


#: `{"role": "system" | "user" | "assistant", "content": text}`, as every chat model takes it.
Message = Mapping[str, str]

#: Why a completion ended: it was complete, reached the limit of tokens, or was refused.
Finish = Literal["stop", "length", "refusal"]


@dataclass(frozen=True, slots=True)
class Usage:
    """The cost of a call in tokens; None where the model does not report it."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None

    def __add__(self, other: Usage) -> Usage:
        return Usage(_sum(self.prompt_tokens, other.prompt_tokens), _sum(self.completion_tokens, other.completion_tokens))


@dataclass(frozen=True, slots=True)
class Completion:
    """A text by a model, unchanged, and why it ended."""

    text: str
    finish: Finish = "stop"


@dataclass(frozen=True, slots=True)
class Completions(Sequence[Completion]):
    """The completions of one call, at most as many as requested, and their cost."""

    items: tuple[Completion, ...]
    usage: Usage = field(default_factory=Usage)
    #: The model that answered, as its server names it.
    model: str = ""
    #: Requests that were sent: several where a server gives one completion at a time, or after failures.
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


#: Marks that models write around their thoughts. The first one may stand in the prompt already, so that only the last comes.
_THOUGHTS: Final = ("</think>", "</thinking>", "◁/think▷")


def spoken(text: str) -> str:
    """The text of a model without its thoughts; "" where it was cut off among them.

    >>> spoken("<think>Maybe Find(India)?</think> Find(Nepal)"), spoken("<think>Maybe Find(India)")
    ('Find(Nepal)', '')
    """
    for end in _THOUGHTS:
        text = text.rpartition(end)[2]
        if text.lstrip().startswith(end.replace("/", "")):
            return ""
    return text.strip()


class ChatOptions(TypedDict, total=False):
    """What a call of a model may specify, as keywords."""

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
    """A language model. Its calls raise `ModelError` (`engine.errors`) where no completion came."""

    @property
    def name(self) -> str:
        """Its name in answers and transcripts, without keys or passwords of addresses."""

    @property
    def accepts(self) -> frozenset[str]:
        """Which constraints its calls take: `"json-schema"`, `"gbnf"`, `"stop"`; none for plain text."""

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
        """Up to `n` completions of the conversation.

        `schema` is a JSON schema and `grammar` a GBNF text that the completion has to follow, where
        `accepts` names them; else they are left out, and the caller checks the reply. `stop` are texts
        before which a completion ends; it is given only to models that accept `"stop"`. `timeout` is in
        seconds, of the whole call.
        """

    def count(self, text: str) -> int | None:
        """How many tokens a text has for this model; None without its tokenizer."""


class ModelAround:
    """A model in front of another one: its name, constraints and tokenizer are those of that model."""

    def __init__(self, model: ChatModel) -> None:
        self._model = model

    @property
    def name(self) -> str:
        """The name of the model."""
        return self._model.name

    @property
    def accepts(self) -> frozenset[str]:
        """The constraints that the model takes."""
        return self._model.accepts

    def count(self, text: str) -> int | None:
        """How many tokens a text has for the model."""
        return self._model.count(text)


def _sum(left: int | None, right: int | None) -> int | None:
    return right if left is None else left if right is None else left + right


# -- pieces ------------------------------------------------------------------------------------------
# Completions are heard while they are written by whoever listens to the calls within a `with` block; a
# model that cannot give pieces tells nothing.


#: Called with the number of a completion, a piece of its text, and whether it is the first piece: what came
#: before of this completion is void then, as after a connection that broke. The thread may be another one.
Tell = Callable[[int, str, bool], Any]
_TELL: Final[ContextVar[Tell | None]] = ContextVar("condgraph_tell", default=None)


def listener() -> Tell | None:
    """Who listens to the call of a model; None where nobody does."""
    return _TELL.get()


@contextmanager
def heard_by(tell: Tell) -> Iterator[None]:
    """Let the models that are called within be heard."""
    token = _TELL.set(tell)
    try:
        yield
    finally:
        _TELL.reset(token)


# -- tokens ------------------------------------------------------------------------------------------
# How many tokens a text is: by the model's own tokenizer where it can be had, else a bound.


_PIECES: Final = re.compile(r"[A-Za-z]+| +|[\x00-\x7f]|[^\x00-\x7f]+")
#: Tokens that templates of chats put around a message, and around them all.
_AROUND_ONE: Final = 6
_AROUND_ALL: Final = 24


@dataclass(frozen=True, slots=True)
class Counted:
    """A number of tokens; `exact` where the model's tokenizer counted it, else an upper bound."""

    tokens: int
    exact: bool


def estimate(text: str) -> int:
    """An upper bound of the tokens of a text for common tokenizers.

    Three letters are a token, and so is every digit, mark and line end; a space belongs to the next
    word; in other scripts every byte of UTF-8 is a token.

    >>> estimate("country 12"), estimate("Zürich")
    (5, 5)
    """
    result = 0
    for piece in _PIECES.findall(text):
        first = piece[0]
        if first == " ":
            result += len(piece) // 2
        elif first.isascii():
            result += -(-len(piece) // 3)
        else:
            result += len(piece.encode("utf-8", "surrogatepass"))
    return result


def counted(model: ChatModel, text: str) -> Counted:
    """The tokens of a text for a model: its own count, else `estimate`."""
    own = model.count(text)
    return Counted(estimate(text), False) if own is None else Counted(own, True)


def tokens_of(model: ChatModel, text: str) -> int:
    """How many tokens a text has for a model, or rather more than it has."""
    return counted(model, text).tokens


def counted_prompt(model: ChatModel, messages: Sequence[Message]) -> Counted:
    """The tokens of a conversation: those of its texts, and a bound for its template. `exact` is of the
    texts.
    """
    parts = [counted(model, message["content"]) for message in messages]
    around = _AROUND_ALL + _AROUND_ONE * len(parts)
    return Counted(sum(part.tokens for part in parts) + around, all(part.exact for part in parts))


# -- deadlines ---------------------------------------------------------------------------------------
# Waiting for what answers in its own time: a call ends at its deadline, or when it is cancelled,
# whatever the other side does.


T = TypeVar("T")
#: Seconds after the deadline in which a finished result still counts.
_EARLY: Final = 0.02


class Wait:
    """The deadline of a call: its own `timeout` in seconds, and that of the enclosing call."""

    __slots__ = ("_deadline", "_timeout", "ended", "until")

    def __init__(self, timeout: float | None) -> None:
        check_bounds(timeout)
        check()
        outer = current()
        self._timeout, self._deadline = timeout, None if outer is None else outer.until
        own = None if timeout is None else time.monotonic() + timeout
        self.until = own if self._deadline is None else self._deadline if own is None else min(own, self._deadline)
        #: Set when the caller no longer waits.
        self.ended = Event()

    def left(self) -> float | None:
        """Seconds left, at least 0.01; None without a deadline."""
        return None if self.until is None else max(self.until - time.monotonic(), 0.01)

    def over(self) -> bool:
        """Whether the deadline has passed, or the caller no longer waits."""
        return self.ended.is_set() or (self.until is not None and time.monotonic() >= self.until)

    def late(self, who: str) -> CondgraphError:
        """The error of a call that took too long. Raises `DeadlineError` or `CancelledError` where the
        enclosing call has ended.
        """
        check()
        seconds = "its time" if self._timeout is None else f"{self._timeout:g} s"
        return ModelError(f"{who} gave no completion within {seconds}", hint="a longer timeout= may help, or fewer tokens")

    def sleep(self, seconds: float) -> None:
        """Sleep at most so many seconds, or until the caller no longer waits."""
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
        return result[0]

    def _await(self, done: Event, who: str) -> None:
        outer = current()
        cancelled = None if outer is None else outer.cancelled()
        while True:
            rest = self.left()
            if done.wait(rest if cancelled is None else LOOK if rest is None else min(rest, LOOK)):
                return
            check()
            if self.over():
                # A result at the last moment still counts.
                if done.wait(_EARLY):
                    return
                raise self.late(who)


def failure(who: str, error: BaseException) -> ModelError:
    """An exception of foreign code as a `ModelError`."""
    return ModelError(f"{who} raised {type(error).__name__}: {error}")


def finished(value: Any) -> Any:
    """A value, or the result of an awaitable; for callables that are `async`. The calling thread must
    not run an event loop.
    """
    if hasattr(value, "__await__"):
        import asyncio

        async def wait() -> Any:
            return await value

        return asyncio.run(wait())
    return value


# -- budgets -----------------------------------------------------------------------------------------
# Budgets for the calls of a model, and their cost.


@dataclass(frozen=True, slots=True)
class Budget:
    """The budget of one question; None is no limit.

    `prompt_tokens` is the most tokens of one prompt, `calls` the most calls (a call may give several
    completions), `seconds` the time from the first call on, `total_tokens` the tokens of all prompts
    and completions together, as the model reports them. Raises `OptionError` for others than
    positive numbers.
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
    """The cost of calls: calls, requests to the server including retries, tokens as the model reports
    them, and seconds of waiting.
    """

    calls: int = 0
    requests: int = 0
    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0

    @property
    def tokens(self) -> int:
        """Tokens of prompts and completions, as far as the model reports them."""
        return (self.usage.prompt_tokens or 0) + (self.usage.completion_tokens or 0)


class Metered(ModelAround):
    """A model whose calls are counted and limited by a budget; `spent` is their cost.

    A call beyond the budget is a `BudgetError`, and is not made. Without the model's tokenizer the
    tokens of a prompt are an upper bound.
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
        """The model's completions without its thoughts, in the time that is left. Raises `BudgetError` where the budget
        does not allow the call.
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
        most = self.budget.prompt_tokens
        if most is None:
            return
        size = counted_prompt(self._model, messages)
        if size.tokens > most:
            about = "" if size.exact else "at most "
            raise BudgetError(
                f"a prompt of {about}{size.tokens:,} tokens is more than the budget's {most:,}",
                hint="a larger prompt_tokens= may help",
            )

    def _begin(self) -> float | None:
        """Count a call; returns the seconds that are left."""
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
