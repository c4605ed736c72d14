"""Language models: messages in, completions out, within a time; budgets for them, and adapters for callables and libraries."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from functools import partial
from threading import Event, Lock, Thread
from typing import Any, Final, Literal, Protocol, TypedDict, TypeVar, Unpack, overload, runtime_checkable

from condgraph.engine.bounds import LOOK, check, check_bounds, current
from condgraph.engine.errors import BudgetError, CondgraphError, MissingExtraError, ModelError, OptionError, numbered

# -- the model ---------------------------------------------------------------------------------------
# Everything that uses a language model (`ask`, `reason`, paraphrases) depends on this module alone;
# servers of OpenAI are in `openai_chat`.


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
        """The model's completions, in the time that is left. Raises `BudgetError` where the budget
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
        return result

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


# -- adapters ----------------------------------------------------------------------------------------
# Models by name, as callables, as objects of LangChain, or as they are.


class CallableModel:
    """A callable `(messages) -> str`, sync or async, as a model; or one that gives pieces of the text, as a
    generator does. It is called once for each completion, in a thread, so that deadlines hold; it gets no
    limit of tokens, schema, temperature or seed. If it has an attribute `count`, from text to a number of
    tokens, that is used.
    """

    def __init__(self, function: Callable[[list[dict[str, str]]], Any], name: str | None = None) -> None:
        self._function = function
        self._name: str = name or str(getattr(function, "__name__", type(function).__name__))

    def __repr__(self) -> str:
        return f"CallableModel({self._name})"

    @property
    def name(self) -> str:
        """The callable's name."""
        return self._name

    @property
    def accepts(self) -> frozenset[str]:
        """None."""
        return frozenset()

    def chat(self, messages: Sequence[Message], **options: Unpack[ChatOptions]) -> Completions:
        """`n` completions. Raises `ModelError` where the callable raises or returns no text."""
        request = ChatRequest(messages, **options)
        wait = Wait(request.timeout)
        return Completions(tuple(self._one(messages, wait, number) for number in range(request.n)), requests=request.n)

    def _one(self, messages: Sequence[Message], wait: Wait, number: int) -> Completion:
        given = [dict(message) for message in messages]
        who = f"the model {self._name}"
        try:
            text = wait.until_done(lambda: _whole(finished(self._function(given)), number, wait), who)
        except CondgraphError:
            raise
        except Exception as error:
            raise failure(who, error) from error
        if not isinstance(text, str):
            raise ModelError(f"{who} gave {type(text).__name__}, not a text")
        return Completion(text)

    def count(self, text: str) -> int | None:
        """By the callable's `count`; None without one."""
        count = getattr(self._function, "count", None)
        return None if count is None or not callable(count) else int(count(text))


def _whole(text: Any, number: int, wait: Wait) -> Any:
    """A text, or the text of pieces, each of which a listener hears when it comes."""
    if not isinstance(text, Iterator):
        return text
    tell = listener()
    parts: list[str] = []
    for part in text:
        if wait.over():
            break
        if tell is not None:
            tell(number, part, not parts)
        parts.append(part)
    return "".join(parts)


# -- LangChain -----------------------------------------------------------------------------------------

#: Names that integrations give the limit of tokens.
_LIMITS: Final = ("max_tokens", "max_output_tokens", "num_predict")
_CUT: Final = frozenset(("length", "max_tokens", "MAX_TOKENS"))
_WITHHELD: Final = frozenset(("content_filter", "refusal", "SAFETY"))


class LangChainModel:
    """A chat model of LangChain. Limits of tokens, temperature and seed are set where it has a field
    for them, a JSON schema where the integration has structured output. Its own retries and callbacks
    are unchanged.
    """

    def __init__(self, model: Any) -> None:
        try:
            from langchain_core.language_models import BaseChatModel
        except ImportError:
            raise MissingExtraError("langchain-core", "langchain") from None
        if not isinstance(model, BaseChatModel):
            raise OptionError(f"{type(model).__name__} is no BaseChatModel of langchain-core")
        self._model: Any = model
        self._schemas = type(model).bind_tools is not BaseChatModel.bind_tools or (
            type(model).with_structured_output is not BaseChatModel.with_structured_output
        )

    def __repr__(self) -> str:
        return f"LangChainModel({self.name})"

    @property
    def name(self) -> str:
        """`langchain:`, the class, and the name of the model where it has one."""
        named = next(
            (value for field in ("model_name", "model") if isinstance(value := getattr(self._model, field, None), str)), ""
        )
        return ":".join(filter(None, ("langchain", type(self._model).__name__, named)))

    @property
    def accepts(self) -> frozenset[str]:
        """`"json-schema"` where the integration has structured output."""
        return frozenset(("json-schema",)) if self._schemas else frozenset()

    def count(self, text: str) -> int | None:
        """None: as a rule LangChain counts with the tokenizer of another model."""
        return None

    def chat(self, messages: Sequence[Message], **options: Unpack[ChatOptions]) -> Completions:
        """`n` completions, one call each; see `ChatModel.chat`. Errors of the integration are
        `ModelError`s.
        """
        request = ChatRequest(messages, **options)
        wait = Wait(request.timeout)
        conversation = [(message["role"], message["content"]) for message in messages]
        items: list[Completion] = []
        usage: Usage | None = None
        for number in range(request.n):
            model = self._set(request, number)
            try:
                reply = wait.until_done(partial(self._invoke, model, conversation, request.schema), self.name)
                items.append(_completion(reply))
            except CondgraphError:
                raise
            except Exception as error:
                raise failure(self.name, error) from error
            usage = _usage(reply) if usage is None else usage + _usage(reply)
        return Completions(tuple(items), usage or Usage(), self.name, request.n)

    def _invoke(self, model: Any, messages: list[tuple[str, str]], schema: Mapping[str, Any] | None) -> Any:
        if schema is None or not self._schemas:
            return model.invoke(messages)
        # The schema needs a name, which tools go by.
        named = {"title": "reply", "description": "the reply", **schema}
        try:
            structured = model.with_structured_output(named, include_raw=True)
        except (NotImplementedError, TypeError, ValueError):
            self._schemas = False
            return model.invoke(messages)
        return structured.invoke(messages)["raw"]

    def _set(self, request: ChatRequest, number: int) -> Any:
        """The model with the options of a request, where it has fields for them; seeds count up."""
        fields = type(self._model).model_fields
        wanted: dict[str, Any] = {
            "temperature": request.temperature,
            "seed": None if request.seed is None else request.seed + number,
            **dict.fromkeys(_LIMITS, request.max_tokens),
        }
        changed = {
            name: value
            for name, value in wanted.items()
            if value is not None and name in fields and getattr(self._model, name, None) != value
        }
        return self._model.model_copy(update=changed) if changed else self._model


def of_name(name: str) -> LangChainModel:
    """The model that LangChain's `init_chat_model` makes of a name, such as `openai:gpt-4o-mini`.
    Raises `MissingExtraError` without LangChain, `OptionError` for a name that it does not take.
    """
    try:
        import langchain_core  # noqa: F401 - missing is another error than below
    except ImportError:
        raise MissingExtraError("langchain-core", "langchain") from None
    try:
        from langchain.chat_models import init_chat_model
    except ImportError:
        raise OptionError(
            "names of LangChain's models need the package langchain", hint="pip install langchain, and the package of the provider"
        ) from None
    try:
        return LangChainModel(init_chat_model(name))
    except (ImportError, ValueError, TypeError) as error:
        raise OptionError(f"LangChain makes no chat model of {name!r}: {error}") from error


def _completion(reply: Any) -> Completion:
    calls = getattr(reply, "tool_calls", None)
    text = reply.content
    if not isinstance(text, str):
        parts = [part if isinstance(part, str) else part.get("text") for part in text]
        text = "".join(part for part in parts if isinstance(part, str))
    if not text and calls:
        # Structured output came as the arguments of a tool.
        text = json.dumps(calls[0]["args"], ensure_ascii=False)
    if not isinstance(text, str):
        raise ModelError(f"a chat model gave {type(text).__name__}, not a text")
    metadata = getattr(reply, "response_metadata", None) or {}
    refusal = (getattr(reply, "additional_kwargs", None) or {}).get("refusal")
    if isinstance(refusal, str) and refusal:
        return Completion(refusal, "refusal")
    why = metadata.get("finish_reason") or metadata.get("stop_reason") or metadata.get("done_reason")
    finish: Finish = "length" if why in _CUT else "refusal" if why in _WITHHELD else "stop"
    return Completion(text, finish)


def _usage(reply: Any) -> Usage:
    usage = getattr(reply, "usage_metadata", None) or {}
    return Usage(usage.get("input_tokens"), usage.get("output_tokens"))


# -- models by name --------------------------------------------------------------------------------------
# openai:MODEL             OpenAI, or the server at OPENAI_BASE_URL
# openai:MODEL@BASE_URL    a server that speaks OpenAI's chat completions
# langchain:PROVIDER:NAME  what LangChain's init_chat_model makes of PROVIDER:NAME
# replay:FILE              the calls of a transcript, without a model


NAMES: Final = "openai:MODEL, openai:MODEL@BASE_URL, langchain:PROVIDER:NAME or replay:FILE"


def model_of(llm: Any) -> ChatModel:
    """The model of a `ChatModel`, a name as above, a `BaseChatModel` of LangChain, or a callable
    `(messages) -> str`, where messages are dicts of role and content. No request is sent.

    Raises `OptionError` for anything else, `MissingExtraError` without the library.
    """
    if isinstance(llm, str):
        return _named(llm)
    if isinstance(llm, type):
        raise OptionError(f"{llm.__name__} is a class, and a model is an object of one")
    core = sys.modules.get("langchain_core.language_models")
    if core is not None and isinstance(llm, core.BaseChatModel):
        return LangChainModel(llm)
    if isinstance(llm, ChatModel):
        return llm
    if callable(llm):
        return CallableModel(llm)
    raise OptionError(
        f"{type(llm).__name__} is no language model", hint=f"{NAMES}, a callable (messages) -> str, or a BaseChatModel of LangChain"
    )


def _named(name: str) -> ChatModel:
    kind, mark, rest = name.partition(":")
    if not mark or not rest:
        raise OptionError(f"{name!r} names no language model", hint=NAMES)
    if kind == "openai":
        from condgraph.models.openai_chat import OpenAIModel

        # Names of models may have an @ of their own.
        for scheme in ("@http://", "@https://"):
            model, at, address = rest.partition(scheme)
            if at:
                return OpenAIModel(model, base_url=at[1:] + address)
        return OpenAIModel(rest)
    if kind == "langchain":
        return of_name(rest)
    if kind == "replay":
        from condgraph.models.transcript import Replaying

        return Replaying(rest)
    raise OptionError(f"{name!r} names no language model", hint=NAMES)
