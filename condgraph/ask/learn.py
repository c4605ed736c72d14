"""Demonstrations from questions of which only the answers are known (TrustUQA, section 3.3): the
model writes programs, and those are kept whose execution is right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from condgraph.ask.demos import Demo, Demos
from condgraph.ask.known import known_of
from condgraph.ask.mentions import masked, mentions
from condgraph.engine.bounds import check
from condgraph.engine.errors import OptionError
from condgraph.models.base import Usage
from condgraph.names.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class Learned:
    """What was learned: the demonstrations that are kept, how many questions were tried, how many
    of them gave another answer, and how many none; what it cost.
    """

    kept: tuple[Demo, ...]
    tried: int
    wrong: int
    failed: int
    calls: int
    usage: Usage

    def __str__(self) -> str:
        return (
            f"{len(self.kept)} kept of {self.tried} tried: {self.wrong} gave another answer, {self.failed} none; {self.calls} calls"
        )


class LearningDemos(Demos):
    """Demonstrations that are added, or learned from answers."""

    def learn(
        self,
        pairs: Iterable[tuple[str, Iterable[str]]],
        llm: Any,
        *,
        question: str | None = None,
        m: int = 15,
        k: int = 8,
        on_tried: Callable[[str, bool], None] | None = None,
        **options: Any,
    ) -> Learned:
        """Have a model write programs for questions whose answers are known, and keep those that give
        exactly these, until there are `k`.

        With `question`, the `m` pairs most similar to it are tried, the most similar first; else all,
        in their order. Each program that is kept helps with the next. `options` are those of `ask`.
        """
        if m < 1 or k < 1:
            raise OptionError("m and k are 1 or more")
        asked = [(one, sorted({" ".join(str(text).split()).casefold() for text in texts})) for one, texts in pairs]
        if question is not None:
            known = known_of(self._graph._store_of(None), self._graph._survey())
            forms = [masked(one, mentions(one, known)) for one, _ in asked]
            scores = Vocabulary(forms).similarities(masked(question, mentions(question, known)))
            order = sorted(range(len(asked)), key=lambda at: (-scores[at], at))[:m]
            asked = [asked[at] for at in order]
        kept: list[Demo] = []
        tried = wrong = failed = calls = 0
        usage = Usage()
        for one, wanted in asked:
            if len(kept) >= k:
                break
            check()
            tried += 1
            found = self._graph.ask(one, llm, **options)
            calls, usage = calls + found.calls, usage + found.usage
            right = [
                attempt
                for attempt in found.attempts
                if attempt.answer is not None and sorted({" ".join(t.split()).casefold() for t in attempt.answer.texts}) == wanted
            ]
            if right and right[0].answer is not None:
                kept.append(self.keep(one, right[0].program, right[0].answer, source=right[0].source))
            elif found.answer is not None:
                wrong += 1
            else:
                failed += 1
            if on_tried is not None:
                on_tried(one, bool(right))
        return Learned(tuple(kept), tried, wrong, failed, calls, usage)
