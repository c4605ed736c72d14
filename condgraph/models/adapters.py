"""Models by name, as callables, as objects of LangChain, or as they are."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, Unpack

from condgraph.engine.errors import CondgraphError, MissingExtraError, ModelError, OptionError
from condgraph.models.chat import (
    ChatModel,
    ChatOptions,
    ChatRequest,
    Completion,
    Completions,
    Finish,
    Message,
    Usage,
    Wait,
    failure,
    finished,
    listener,
)


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
