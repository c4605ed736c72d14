"""What Algorithm 1 asks of a model: triples that may follow, free text, and a choice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from condgraph.chains.chain import Chain
from condgraph.chains.walk import Triple, Walk

#: What a triple's score is the logarithm of: the probability among what was allowed (Eq. 2), or
#: among all tokens.
Score = Literal["masked", "raw"]


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a model is told: what it is to do with examples, the question with its context, and what
    was written so far.
    """

    system: str
    user: str
    written: str = ""

    @property
    def text(self) -> str:
        """All of it, for models that go on with a text."""
        return f"{self.system}\n\n{self.user}\n{self.written}"

    def and_then(self, text: str) -> Prompt:
        """The same with more that was written."""
        return Prompt(self.system, self.user, self.written + text)

    @property
    def messages(self) -> list[dict[str, str]]:
        """The same for models of conversations."""
        user = self.user + (f"\n\nSo far:\n{self.written.strip()}" if self.written.strip() else "")
        return [{"role": "system", "content": self.system}, {"role": "user", "content": user}]


@dataclass(frozen=True, slots=True)
class Proposal:
    """A triple that a model wrote, and the sum of the logarithms of its tokens' probabilities; None
    where the server tells none. `tokens` is how many there are.
    """

    triple: Triple
    score: float | None
    tokens: int


@dataclass(frozen=True, slots=True)
class Free:
    """Free text of a model, and whether it wants another triple."""

    text: str
    goes_on: bool


class Backend(Protocol):
    """A model that can be kept to a chain. Calls raise `ModelError` where the model fails."""

    @property
    def name(self) -> str:
        """What answers say of how the model was kept to the graph."""

    @property
    def model(self) -> str:
        """What the model is called."""

    def told(self, n: int, wanted: Score) -> Score | None:
        """Which score n beams have, where that one is wanted; None where the server tells none."""

    def chain(self, walk: Walk) -> Chain | None:
        """The constraint by this model's tokenizer; None where it has none here."""

    def triples(self, prompt: Prompt, walk: Walk, n: int, score: Score | None) -> list[Proposal]:
        """Up to n different triples that may follow, best first. None where the model wants no
        more, or nothing may follow.
        """

    def free(self, prompt: Prompt, most: int) -> Free:
        """Free text of up to `most` tokens, without a triple in it."""

    def choose(self, prompt: Prompt, options: Sequence[str]) -> int | None:
        """Which of some texts the model goes on with; None where it says none of them."""
