"""What condgraph asks of a language model: messages in, completions out. Everything that uses a
model (`ask`, `reason`, paraphrases) knows this module alone; adapters stand beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, overload, runtime_checkable

#: `{"role": "system" | "user" | "assistant", "content": text}`, as every chat model takes it.
Message = Mapping[str, str]

#: Why a completion ended: it was done, it met the limit of tokens, or it was withheld.
Finish = Literal["stop", "length", "refusal"]


@dataclass(frozen=True, slots=True)
class Usage:
    """What a call cost, in tokens of the model; None where the model does not say."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None

    def __add__(self, other: Usage) -> Usage:
        return Usage(_sum(self.prompt_tokens, other.prompt_tokens), _sum(self.completion_tokens, other.completion_tokens))


@dataclass(frozen=True, slots=True)
class Completion:
    """One text that a model gave, as it came, and why it ended."""

    text: str
    finish: Finish = "stop"


@dataclass(frozen=True, slots=True)
class Completions(Sequence[Completion]):
    """The completions of one call, at most as many as were asked for, and what they cost."""

    items: tuple[Completion, ...]
    usage: Usage = field(default_factory=Usage)
    #: The model that answered, as its server names it.
    model: str = ""
    #: Requests that were sent for it: more than one where a server gives one completion at a time,
    #: or was asked again after a failure.
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


@runtime_checkable
class ChatModel(Protocol):
    """A language model. Its calls raise `ModelError` (`engine.errors`) where no completion came."""

    @property
    def name(self) -> str:
        """What it is called in answers and transcripts, without keys or addresses' passwords."""

    @property
    def accepts(self) -> frozenset[str]:
        """Which constraints its calls take: `"json-schema"`, `"gbnf"`; none for plain text."""

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
        """Up to `n` completions of the conversation.

        `schema` is a JSON schema and `grammar` a GBNF text that the completion has to follow, where
        `accepts` names them; else they are left out, and the caller checks what comes. `timeout` is
        in seconds, of the whole call.
        """

    def count(self, text: str) -> int | None:
        """How many tokens a text has for this model; None where its tokenizer cannot be had."""


def _sum(left: int | None, right: int | None) -> int | None:
    return right if left is None else left if right is None else left + right
