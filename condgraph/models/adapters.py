"""Which model is meant: a name, a callable, an object of LangChain, or a `ChatModel` as it is.

openai:MODEL             OpenAI, or the server at OPENAI_BASE_URL
openai:MODEL@BASE_URL    a server that speaks OpenAI's chat completions
langchain:PROVIDER:NAME  what LangChain's init_chat_model makes of PROVIDER:NAME
replay:FILE              the calls of a transcript, without a model
"""

from __future__ import annotations

import sys
from typing import Any, Final

from condgraph.engine.errors import OptionError
from condgraph.models.base import ChatModel

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
        from condgraph.models.callables import CallableModel

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
