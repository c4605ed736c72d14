"""A function as a model: messages in, one text out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from condgraph.engine.errors import CondgraphError, ModelError
from condgraph.models.base import Completion, Completions, Message
from condgraph.models.waiting import Wait, failure, finished


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
