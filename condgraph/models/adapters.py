"""Models given as names, callables, LangChain objects or `ChatModel`s."""

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
    """A model made of a callable `(messages) -> str`, sync or async.

    The callable may also return an iterator over pieces of the text. It is called once for each
    completion, in a thread so that deadlines hold. It gets no token limit, schema, temperature or
    seed. Tokens are counted with its attribute `count`, a function from a text to a number, if it
    has one.
    """

    def __init__(self, function: Callable[[list[dict[str, str]]], Any], name: str | None = None) -> None:
        self._function = function
        self._name: str = name or str(getattr(function, "__name__", type(function).__name__))

    def __repr__(self) -> str:
        return f"CallableModel({self._name})"

    @property
    def name(self) -> str:
        """The name of the callable."""
        return self._name

    @property
    def accepts(self) -> frozenset[str]:
        """The supported constraints: none."""
        return frozenset()

    def chat(self, messages: Sequence[Message], **options: Unpack[ChatOptions]) -> Completions:
        """Return `n` completions.

        Raises `ModelError` if the callable raises or does not return a text.
        """
        request = ChatRequest(messages, **options)
        wait = Wait(request.timeout)
        return Completions(tuple(self._complete(messages, wait, number) for number in range(request.n)), requests=request.n)

    def _complete(self, messages: Sequence[Message], wait: Wait, number: int) -> Completion:
        conversation = [dict(message) for message in messages]
        who = f"the model {self._name}"
        try:
            text = wait.until_done(lambda: _full_text(finished(self._function(conversation)), number, wait), who)
        except CondgraphError:
            raise
        except Exception as error:
            raise failure(who, error) from error
        if not isinstance(text, str):
            raise ModelError(f"{who} gave {type(text).__name__}, not a text")
        return Completion(text)

    def count(self, text: str) -> int | None:
        """Count the tokens with the callable's `count`, or return None if it has none."""
        count = getattr(self._function, "count", None)
        return None if count is None or not callable(count) else int(count(text))


def _full_text(text: Any, number: int, wait: Wait) -> Any:
    """Return a text, or join the pieces of one, passing each piece to the listener as it arrives."""
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

#: The names of the token limit in different integrations.
_LIMITS: Final = ("max_tokens", "max_output_tokens", "num_predict")
_CUT_REASONS: Final = frozenset(("length", "max_tokens", "MAX_TOKENS"))
_WITHHELD: Final = frozenset(("content_filter", "refusal", "SAFETY"))


class LangChainModel:
    """A chat model of LangChain.

    The token limit, the temperature and the seed are set if the model has a field for them. A JSON
    schema is used if the integration supports structured output. The model's own retries and
    callbacks stay unchanged.
    """

    def __init__(self, model: Any) -> None:
        try:
            from langchain_core.language_models import BaseChatModel
        except ImportError:
            raise MissingExtraError("langchain-core", "langchain") from None
        if not isinstance(model, BaseChatModel):
            raise OptionError(f"{type(model).__name__} is not a BaseChatModel of langchain-core")
        self._model: Any = model
        self._schemas = type(model).bind_tools is not BaseChatModel.bind_tools or (
            type(model).with_structured_output is not BaseChatModel.with_structured_output
        )

    def __repr__(self) -> str:
        return f"LangChainModel({self.name})"

    @property
    def name(self) -> str:
        """`langchain:`, the class, and the name of the model if it has one."""
        model_name = next(
            (value for field in ("model_name", "model") if isinstance(value := getattr(self._model, field, None), str)), ""
        )
        return ":".join(filter(None, ("langchain", type(self._model).__name__, model_name)))

    @property
    def accepts(self) -> frozenset[str]:
        """`"json-schema"` if the integration supports structured output."""
        return frozenset(("json-schema",)) if self._schemas else frozenset()

    def count(self, text: str) -> int | None:
        """Return None: LangChain usually counts with the tokenizer of another model."""
        return None

    def chat(self, messages: Sequence[Message], **options: Unpack[ChatOptions]) -> Completions:
        """Return `n` completions, with one call for each; see `ChatModel.chat`.

        Errors of the integration become `ModelError`s.
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
        # The schema needs a title because it becomes the name of a tool.
        titled = {"title": "reply", "description": "the reply", **schema}
        try:
            structured = model.with_structured_output(titled, include_raw=True)
        except (NotImplementedError, TypeError, ValueError):
            self._schemas = False
            return model.invoke(messages)
        return structured.invoke(messages)["raw"]

    def _set(self, request: ChatRequest, number: int) -> Any:
        """Return the model with the options of a request that it has fields for. Seeds count up."""
        fields = type(self._model).model_fields
        options: dict[str, Any] = {
            "temperature": request.temperature,
            "seed": None if request.seed is None else request.seed + number,
            **dict.fromkeys(_LIMITS, request.max_tokens),
        }
        changed = {
            name: value
            for name, value in options.items()
            if value is not None and name in fields and getattr(self._model, name, None) != value
        }
        return self._model.model_copy(update=changed) if changed else self._model


def of_name(name: str) -> LangChainModel:
    """Return the model that LangChain's `init_chat_model` creates for a name such as `openai:gpt-4o-mini`.

    Raises `MissingExtraError` without LangChain, and `OptionError` if it does not accept the name.
    """
    try:
        import langchain_core  # noqa: F401 - a missing core is a different error from the one below
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
        # The structured output is in the arguments of a tool call.
        text = json.dumps(calls[0]["args"], ensure_ascii=False)
    if not isinstance(text, str):
        raise ModelError(f"a chat model gave {type(text).__name__}, not a text")
    metadata = getattr(reply, "response_metadata", None) or {}
    refusal = (getattr(reply, "additional_kwargs", None) or {}).get("refusal")
    if isinstance(refusal, str) and refusal:
        return Completion(refusal, "refusal")
    reason = metadata.get("finish_reason") or metadata.get("stop_reason") or metadata.get("done_reason")
    finish: Finish = "length" if reason in _CUT_REASONS else "refusal" if reason in _WITHHELD else "stop"
    return Completion(text, finish)


def _usage(reply: Any) -> Usage:
    usage = getattr(reply, "usage_metadata", None) or {}
    return Usage(usage.get("input_tokens"), usage.get("output_tokens"))


# -- models by name --------------------------------------------------------------------------------------
# openai:MODEL             OpenAI, or the server at OPENAI_BASE_URL
# openai:MODEL@BASE_URL    a server with OpenAI's chat completions API
# langchain:PROVIDER:NAME  the model that LangChain's init_chat_model creates for PROVIDER:NAME
# replay:FILE              the calls of a transcript, without a model


NAMES: Final = "openai:MODEL, openai:MODEL@BASE_URL, langchain:PROVIDER:NAME or replay:FILE"


def model_of(llm: Any) -> ChatModel:
    """Return the model for a `ChatModel`, a name as above, a LangChain `BaseChatModel` or a callable.

    The callable is `(messages) -> str`, where messages are dicts with role and content. No request
    is sent. Raises `OptionError` for anything else, and `MissingExtraError` without the library.
    """
    if isinstance(llm, str):
        return _model_of(llm)
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
        f"{type(llm).__name__} is not a language model",
        hint=f"{NAMES}, a callable (messages) -> str, or a BaseChatModel of LangChain",
    )


def _model_of(name: str) -> ChatModel:
    kind, mark, rest = name.partition(":")
    if not mark or not rest:
        raise OptionError(f"{name!r} names no language model", hint=NAMES)
    if kind == "openai":
        from condgraph.models.openai_chat import OpenAIModel

        # The name of a model may contain an @ itself.
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
