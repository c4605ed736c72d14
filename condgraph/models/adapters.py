"""Models by name, as callables, as objects of LangChain, or as they are."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from condgraph.engine.errors import CondgraphError, ModelError, OptionError
from condgraph.models.base import ChatModel, Completion, Completions, Message
from condgraph.models.waiting import Wait, failure, finished

# -- callables ---------------------------------------------------------------------------------------
# A function as a model: messages in, one text out.


class CallableModel:
    """A callable `(messages) -> str`, sync or async, as a model. It is called `n` times for `n`
    completions, in a thread of its own, so that a deadline holds; limits of tokens, schemas,
    temperatures and seeds are its own affair. A `count` of it, from text to a number of tokens, is
    used where it has one.
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
        """Nothing but text."""
        return frozenset()

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
    ) -> Completions:
        """What the callable gives, `n` times. Raises `ModelError` where it raises or gives no text."""
        wait = Wait(timeout)
        return Completions(tuple(self._one(messages, wait) for _ in range(n)), requests=n)

    def _one(self, messages: Sequence[Message], wait: Wait) -> Completion:
        given = [dict(message) for message in messages]
        who = f"the model {self._name}"
        try:
            text = wait.until_done(lambda: finished(self._function(given)), who)
        except CondgraphError:
            raise
        except Exception as error:
            raise failure(who, error) from error
        if not isinstance(text, str):
            raise ModelError(f"{who} gave {type(text).__name__}, not a text")
        return Completion(text)

    def count(self, text: str) -> int | None:
        """What the callable's own `count` says; None without one."""
        count = getattr(self._function, "count", None)
        return None if count is None or not callable(count) else int(count(text))


# -- adapters ----------------------------------------------------------------------------------------
# openai:MODEL             OpenAI, or the server at OPENAI_BASE_URL
# openai:MODEL@BASE_URL    a server that speaks OpenAI's chat completions
# langchain:PROVIDER:NAME  what LangChain's init_chat_model makes of PROVIDER:NAME
# replay:FILE              the calls of a transcript, without a model


#: The names of models, as they are said where one is wrong.
NAMES: Final = "openai:MODEL, openai:MODEL@BASE_URL, langchain:PROVIDER:NAME or replay:FILE"


def model_of(llm: Any) -> ChatModel:
    """The model that `llm` means: a `ChatModel` as it is, a text as above, LangChain's
    `BaseChatModel`, or a callable `(messages) -> str`, where messages are dicts of role and content.

    Raises `OptionError` for anything else, `MissingExtraError` where a library is missing. No
    request is sent.
    """
    if isinstance(llm, str):
        return _named(llm)
    if isinstance(llm, type):
        raise OptionError(f"{llm.__name__} is a class, and a model is an object of one")
    core = sys.modules.get("langchain_core.language_models")
    if core is not None and isinstance(llm, core.BaseChatModel):
        from condgraph.models.langchain import LangChainModel

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
        from condgraph.models.langchain import of_name

        return of_name(rest)
    if kind == "replay":
        from condgraph.models.transcript import Replaying

        return Replaying(rest)
    raise OptionError(f"{name!r} names no language model", hint=NAMES)
