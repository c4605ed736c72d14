"""Chat models: with JSON schemas by two choices for each hop, (head, relation), then the tail; otherwise by generating,
verifying, and asking again with the mistake.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from condgraph.chains.backends.base import Free, Prompt, Proposal, Score, enum_schema, enum_value, mentioned
from condgraph.chains.chain import Chain
from condgraph.chains.text import ARROW, OPEN
from condgraph.chains.walk import Triple, Walk, verify
from condgraph.engine.bounds import left
from condgraph.engine.errors import ModelError
from condgraph.models.chat import ChatModel, Message
from condgraph.vectors.encoders import LexicalEncoder

#: Most values of an enumeration: OpenAI's limit, less one for the value that ends a chain.
MAX_VALUES: Final = 999
#: Most characters of all values of an enumeration, if it has more than 250.
MAX_CHARACTERS: Final = 15_000
#: The value that ends a chain.
ENOUGH: Final = "(no further triple)"
#: Most repetitions of a request.
REPAIRS: Final = 2
_STEP: Final = "Which entity and relation is the next step? Choose one."
_TAIL: Final = "Which one does it lead to? Choose one."
_ASK: Final = "Write the next triple, in the form < head -> relation -> tail >, and nothing else. Write DONE if none is needed."


class _Conversation:
    """The common part of both kinds."""

    name = ""

    def __init__(self, llm: ChatModel) -> None:
        self._llm = llm
        #: Warnings about what was left out.
        self.warnings: list[str] = []

    @property
    def model(self) -> str:
        """The name of the model."""
        return self._llm.name

    def told(self, n: int, wanted: Score) -> Score | None:
        """Return None: only one triple is generated at a time."""
        return None

    def chain(self, walk: Walk) -> Chain | None:
        """Return None: texts are constrained, not tokens."""
        return None

    def _chat(self, messages: Sequence[Message], schema: dict[str, object] | None = None, most: int = 400) -> str:
        result = self._llm.chat(messages, schema=schema, max_tokens=most, timeout=left())
        if not len(result):
            raise ModelError(f"{self._llm.name} returned no completion")
        return result[0].text

    def free(self, prompt: Prompt, most: int) -> Free:
        """Return no free text between triples, as each would cost a call."""
        return Free("", True)

    def _turns(self, prompt: Prompt, question: str) -> list[Message]:
        *before, last = prompt.messages
        return [*before, {"role": "user", "content": f"{last['content']}\n\n{question}"}]

    def _picked(self, prompt: Prompt, question: str, field: str, values: Sequence[str]) -> str | None:
        text = self._chat(self._turns(prompt, question), enum_schema(field, values))
        return enum_value(text, field, values)

    def _fit(self, prompt: Prompt, values: Sequence[str], what: str) -> list[str]:
        """Return the values that fit into an enumeration: those most similar to the question, with a warning about the rest."""
        signs = sum(map(len, values))
        if len(values) <= MAX_VALUES and (len(values) <= 250 or signs <= MAX_CHARACTERS):
            return list(values)
        most = min(MAX_VALUES, max(250, int(MAX_CHARACTERS * len(values) / max(signs, 1))))
        encoder = LexicalEncoder()
        result = encoder.encode([prompt.user.rsplit("Question:", 1)[-1], *values])
        order = np.argsort(-(result[1:] @ result[0]), kind="stable")[:most]
        self.warnings.append(f"the {most} {what} most like the question were offered, of {len(values)}")
        return [values[index] for index in sorted(order.tolist())]


class Hosted(_Conversation):
    """A model that accepts JSON schemas: two enumerations for each hop."""

    name = "two enumerations a hop"

    def triples(self, prompt: Prompt, walk: Walk, n: int, score: Score | None) -> list[Proposal]:
        """Return the triple that the model chose; none if it wants no more."""
        steps: dict[str, dict[str, Triple]] = {}
        for triple in walk.following():
            steps.setdefault(f"{triple.head}{ARROW} {triple.relation}", {})[triple.tail] = triple
        if not steps:
            return []
        offered = self._fit(prompt, list(steps), "steps")
        if walk.triples:
            offered.append(ENOUGH)
        step = self._picked(prompt, _STEP, "step", offered)
        if step is None:
            raise ModelError(f"{self._llm.name} chose what it was not offered", hint="its server may take no JSON schema")
        if step == ENOUGH:
            return []
        tails = self._fit(prompt, list(steps[step]), "tails")
        tail: str | None = tails[0]
        if len(tails) > 1:
            tail = self._picked(prompt.and_then(f"\n{OPEN} {step}{ARROW} "), _TAIL, "tail", tails)
        if tail is None:
            raise ModelError(f"{self._llm.name} chose what it was not offered", hint="its server may take no JSON schema")
        return [Proposal(steps[step][tail], None, 0)]

    def choose(self, prompt: Prompt, options: Sequence[str]) -> int | None:
        """Return the index of the text that is the answer, or None."""
        offered = self._fit(prompt, list(dict.fromkeys(options)), "answers")
        result = self._picked(prompt, "Which of these is the answer to the question?", "answer", [*offered, "none of them"])
        return list(options).index(result) if result is not None and result in options else None


class Repaired(_Conversation):
    """A model without constraints: its text is verified, and requested again with the mistake."""

    name = "generate, verify, repair"

    def triples(self, prompt: Prompt, walk: Walk, n: int, score: Score | None) -> list[Proposal]:
        """Return the first written triple that may follow; none if there is none."""
        messages = self._turns(prompt, _ASK)
        allowed = {triple.statements: triple for triple in walk.following()}
        if not allowed:
            return []
        for _ in range(REPAIRS + 1):
            text = self._chat(messages)
            query = [walk.place.entity(item) for item in walk.visited]
            verdict = verify(walk.place, text, query)
            if not verdict.steps:
                if walk.triples and "DONE" in text.upper():
                    return []
                wrong = "There is no triple in it."
            else:
                first = verdict.steps[0]
                if first.triple is not None and (result := allowed.get(first.triple.statements)):
                    return [Proposal(result, None, 0)]
                wrong = f"{first.text}: {first.reason or 'it was used before'}."
            messages = [*messages, {"role": "assistant", "content": text}, {"role": "user", "content": f"{wrong} {_ASK}"}]
        self.warnings.append(f"after {REPAIRS} repairs there was no triple that may follow")
        return []

    def choose(self, prompt: Prompt, options: Sequence[str]) -> int | None:
        """Return the index of the text that the answer names, or None."""
        return mentioned(self._chat(self._turns(prompt, "What is the answer to the question? Write it alone."), most=100), options)
