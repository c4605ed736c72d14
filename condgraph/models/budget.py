"""Budgets for the calls of a model, and their cost."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Unpack

from condgraph.engine.errors import BudgetError, OptionError, numbered
from condgraph.models.chat import ChatModel, ChatOptions, Completions, Message, ModelAround, Usage, counted_prompt


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
