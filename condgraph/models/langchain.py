"""Chat models of LangChain: an object of `langchain_core`'s `BaseChatModel`, or a name that
LangChain's `init_chat_model` knows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from condgraph.engine.errors import CondgraphError, MissingExtraError, ModelError, OptionError
from condgraph.models.base import Completion, Completions, Finish, Message, Usage
from condgraph.models.waiting import Wait, failure

#: What integrations call the limit of tokens of a completion.
_LIMITS: Final = ("max_tokens", "max_output_tokens", "num_predict")
_CUT: Final = frozenset(("length", "max_tokens", "MAX_TOKENS"))
_WITHHELD: Final = frozenset(("content_filter", "refusal", "SAFETY"))


class LangChainModel:
    """A chat model of LangChain. Limits of tokens, temperature and seed reach it where it has a
    field for them; a JSON schema where the integration can hold its model to one. Its own retries
    and callbacks stay as they are.
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
        """None: what LangChain counts with is another model's tokenizer, as a rule."""
        return None

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
        """`n` completions, one call each; see `ChatModel.chat`. Raises `ModelError` for whatever the
        integration raises.
        """
        wait = Wait(timeout)
        given = [(message["role"], message["content"]) for message in messages]
        items: list[Completion] = []
        usage: Usage | None = None
        for number in range(n):
            model = self._set(max_tokens, temperature, None if seed is None else seed + number)
            try:
                reply = wait.until_done(partial(self._invoke, model, given, schema), self.name)
                items.append(_completion(reply))
            except CondgraphError:
                raise
            except Exception as error:
                raise failure(self.name, error) from error
            usage = _usage(reply) if usage is None else usage + _usage(reply)
        return Completions(tuple(items), usage or Usage(), self.name, n)

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

    def _set(self, max_tokens: int | None, temperature: float, seed: int | None) -> Any:
        """The model with these, where it has fields for them."""
        fields = type(self._model).model_fields
        wanted: dict[str, Any] = {"temperature": temperature, "seed": seed}
        wanted |= dict.fromkeys(_LIMITS, max_tokens)
        changed = {
            name: value
            for name, value in wanted.items()
            if value is not None and name in fields and getattr(self._model, name, None) != value
        }
        return self._model.model_copy(update=changed) if changed else self._model


def of_name(name: str) -> LangChainModel:
    """The model that LangChain's `init_chat_model` makes of a name, such as `openai:gpt-4o-mini`.
    Raises `MissingExtraError` or `OptionError` where it cannot.
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
    said = getattr(reply, "response_metadata", None) or {}
    refusal = (getattr(reply, "additional_kwargs", None) or {}).get("refusal")
    if isinstance(refusal, str) and refusal:
        return Completion(refusal, "refusal")
    why = said.get("finish_reason") or said.get("stop_reason") or said.get("done_reason")
    finish: Finish = "length" if why in _CUT else "refusal" if why in _WITHHELD else "stop"
    return Completion(text, finish)


def _usage(reply: Any) -> Usage:
    told = getattr(reply, "usage_metadata", None) or {}
    return Usage(told.get("input_tokens"), told.get("output_tokens"))
