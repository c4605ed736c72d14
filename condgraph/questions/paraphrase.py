"""Paraphrases by a language model, kept only where two filters pass.

A paraphrase has to differ from the template words (KQA Pro rejects those with a small edit
distance), and to say the same: asked again, the question has to lead to the answer. That round trip
needs a reader, from words to a program; without one, every name, number and time of the question
has to stand in the paraphrase, which is what such a reader would need first.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from condgraph.engine.errors import CondgraphError, InterruptedQueryError
from condgraph.languages import registry
from condgraph.questions.record import Question
from condgraph.snapshot_store import SnapshotStore

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot

#: The part of a question's words that a paraphrase changes at least, and at most.
LEAST: Final = 0.15
MOST: Final = 0.9


def paraphrased(question: Question, llm: Callable[[str], str], snapshot: Snapshot) -> Question:
    """The question in the words of `llm`, a function from text to text; as it was where a filter
    does not pass. An `llm` with a method `program(text)` is the reader of the round trip.
    """
    said = " ".join(str(llm(question.question)).split())
    if not LEAST <= distance(question.question, said) <= MOST or not keeps_names(question, said):
        return question
    reader = getattr(llm, "program", None)
    if reader is not None and not _leads(reader(said), question.answer, snapshot):
        return question
    return replace(question, question=said, canonical=question.question)


def _leads(program: Any, answer: str, snapshot: Snapshot) -> bool:
    try:
        return program is not None and registry.answer(SnapshotStore(snapshot), program).texts == [answer]
    except InterruptedQueryError:
        raise
    except CondgraphError:
        return False


def keeps_names(question: Question, said: str) -> bool:
    """Whether a paraphrase has the names, numbers and years of a question, and not its answer."""
    low = said.casefold()
    digits = set(re.findall(r"\d+", question.question))
    if not digits <= set(re.findall(r"\d+", said)):
        return False
    given = question.answer.casefold()
    if question.kind not in ("Verify", "SelectBetween") and re.search(rf"(?<!\w){re.escape(given)}(?!\w)", low):
        return False
    return all(name.casefold() in low for name in question.entities)


def distance(one: str, other: str) -> float:
    """The edit distance of two texts in words, as a part of the longer one: 0 to 1.

    >>> distance("Who wrote Emma?", "Who wrote Emma?"), distance("Who wrote Emma?", "Emma is by whom?")
    (0.0, 1.0)
    """
    a, b = re.findall(r"\w+", one.casefold()), re.findall(r"\w+", other.casefold())
    before = list(range(len(b) + 1))
    for i, word in enumerate(a, 1):
        row = [i]
        for j, against in enumerate(b, 1):
            row.append(min(before[j] + 1, row[-1] + 1, before[j - 1] + (word != against)))
        before = row
    return before[-1] / max(len(a), len(b), 1)
