"""Long questions in parts: a model splits the question, each part is asked like any question, and later parts
refer to the answers of earlier ones.

In a part, ANSWER1 is the answer to the first part. Wherever this name is in a program, it stands for the
answer's entities, by their ids and however many there are (`Runner.answer_sets`). No part of an answer is ever
inserted into the text of a question.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Final

from condgraph.ask.chat import ANSWER, answer_set, part_limit
from condgraph.ask.judge import DOUBTED, misfit
from condgraph.ask.pipeline import Asking
from condgraph.ask.programs import declines
from condgraph.ask.prompt import KnownNames, Mention, known_of, mentions_in
from condgraph.ask.records import Asked, AskOptions, AskStep, Status, plain, renumbered
from condgraph.engine.errors import BudgetError, ModelError
from condgraph.models.chat import Metered

if TYPE_CHECKING:
    from condgraph.ask.records import AnswerSet, Host
    from condgraph.models.chat import ChatModel

#: The most parts of a question, the most characters of each and of the reply with them, and the reply's token limit.
MAX_PARTS: Final = 6
_MAX_PART: Final = 500
_MAX_READ: Final = 10_000
_TOKENS: Final = 400
_LINE: Final = re.compile(r"^[ \t]{0,8}(\d{1,2})[.):][ \t]{0,8}(\S[^\n]*)$", re.MULTILINE)


def split(reply: str) -> tuple[list[str], str]:
    r"""Return the parts in a reply, and the reason why they cannot be asked ("" if they can).

    There are no parts if the question is simple.

    >>> split("1. Who wrote Hamlet?\n2. When was ANSWER1 born?")
    (['Who wrote Hamlet?', 'When was ANSWER1 born?'], '')
    """
    if declines(reply):
        return [], ""
    lines = [(int(match[1]), " ".join(match[2].split())) for match in _LINE.finditer(reply[:_MAX_READ])]
    texts = [text for _, text in lines]
    if len(texts) < 2:
        return [], "" if texts else "the reply has no parts"
    if [number for number, _ in lines] != list(range(1, len(lines) + 1)) or len(texts) > MAX_PARTS:
        return [], f"they are not numbered from 1, at most {MAX_PARTS}"
    for number, text in enumerate(texts, start=1):
        if len(text) > _MAX_PART:
            return [], f"part {number} has more than {_MAX_PART} characters"
        if any(not 0 < other < number for other in _refers(text)):
            return [], f"part {number} refers to an answer that is not before it"
    return texts, ""


def _refers(text: str) -> list[int]:
    """Return the numbers of the answers that a part refers to."""
    return [int(match[1]) for match in ANSWER.finditer(text)]


# -- asking in parts ---------------------------------------------------------------------------------


class AskingInParts:
    """A question that is split into parts: always, or if its own answer is missing or doubtful.

    There is one budget for everything. The outcome is that of the last part, with the programs, statements
    and steps of all parts. It is doubtful if anything speaks against one of the parts, or against the split
    itself.
    """

    def __init__(self, graph: Host, question: str, model: ChatModel, options: AskOptions) -> None:
        self.graph, self.question = graph, question
        self.model = Metered(model, options.budget)
        self.steps: list[AskStep] = []
        listener = options.on_step

        def on_step(step: AskStep) -> None:
            self.steps.append(step)
            if listener is not None:
                listener(step)

        self.options = replace(options, parts="never", on_step=on_step)
        #: What is being asked now, the whole question, its outcome, and the outcomes of the parts.
        self.now = self.whole = Asking(graph, question, self.model, self.options)
        self.always = options.parts == "always"
        self.direct: Asked | None = None
        self.texts: list[str] = []
        self.done: list[Asked] = []

    def run(self) -> Asked:
        """Ask the question and return the outcome."""
        if not self.always or not self.question.strip():
            self.direct = self.whole.run()
            if self.direct.status in ("answered", "ambiguous", "budget") or not self.question.strip():
                return self._outcome()
        try:
            self._split()
        except BudgetError as error:
            self.whole.warnings.append(str(error))
        if not self.texts:
            if self.direct is None:
                self.direct = self.whole.run()
            return self._outcome()
        known = known_of(self.graph._store_of(None), self.graph._survey())
        answers: dict[str, Asked] = {}
        answer_sets: dict[str, AnswerSet] = {}
        for number, text in enumerate(self.texts, start=1):
            limit = self.options.limit if number == len(self.texts) else part_limit(self.options.limit)
            options = replace(self.options, verbalise=False, limit=limit, answers=dict(answers), answer_sets=dict(answer_sets))
            self.now = Asking(self.graph, text, self.model, options)
            part = self.now.run()
            self.done.append(part)
            if part.status not in ("answered", "doubtful"):
                break
            name = f"ANSWER{number}"
            answers[name] = part
            if (entities := answer_set(part, known)) is not None:
                answer_sets[name] = entities
        return self._outcome()

    def late(self) -> Asked:
        """Return the outcome after the budget's time is spent, from what has been done so far."""
        self.whole.asks = False
        part = self.now.late()
        if self.now is not self.whole and len(self.done) < len(self.texts):
            self.done.append(part)
        elif self.direct is None:
            self.direct = part
        return self._outcome()

    def _split(self) -> None:
        """Let the model split the question."""
        prompt = self.whole.prompts.fill("parts", question=self.whole.question_line, most=str(MAX_PARTS))
        with self.whole.step("split") as about:
            try:
                result = self.model.chat([{"role": "user", "content": prompt}], max_tokens=_TOKENS, seed=self.options.seed)
            except ModelError as error:
                about.append(str(error))
                self.whole.warnings.append(f"the question is not asked in parts: {error}")
                return
            self.texts, problem = split(result[0].text if result and result[0].finish != "refusal" else "")
            about += self.texts or [problem or "the question is simple"]
            if problem:
                self.whole.warnings.append(f"the question is not asked in parts: {problem}")

    # -- the outcome -------------------------------------------------------------------------------

    def _outcome(self) -> Asked:
        """Return the better one of the outcomes of the whole question and of its parts."""
        result = self._combined() if self.done else None
        if result is None or (self.direct is not None and _RANK[self.direct.status] <= _RANK[result.status]):
            assert self.direct is not None
            if result is not None:
                warning = f"asked in parts ({' '.join(self.texts)}) the outcome is {result.status!r}"
                result = replace(self.direct, warnings=(*self.direct.warnings, warning))
            else:
                result = self.direct
        spent = self.model.spent
        warnings = tuple(dict.fromkeys([*result.warnings, *self.whole.warnings]))
        return replace(result, warnings=warnings, steps=tuple(self.steps), usage=spent.usage, calls=spent.calls)

    def _combined(self) -> Asked:
        """Combine the outcomes of the parts."""
        last = self.done[-1]
        outcomes = [*(() if self.direct is None else (self.direct,)), *self.done]
        mentions: list[Mention] = []
        doubts: list[str] = []
        status: Status = last.status
        if status in ("answered", "doubtful") and len(self.done) < len(self.texts):
            last, status = replace(last, answer=None, text="", citations=(), confidence=None), "budget"
        confidence = last.confidence
        text, citations = last.text, last.citations
        if status in ("answered", "doubtful"):
            known = known_of(self.graph._store_of(None), self.graph._survey())
            mentions = mentions_in(self.question, known)
            doubts = self._doubts(known, mentions)
            status = "doubtful" if doubts else "answered"
            confidence = DOUBTED if doubts else prod(part.confidence or DOUBTED for part in self.done)
            text, citations = self._in_words()
            if doubts:
                text = f"Doubtful: {'; '.join(doubts)}\n{text}"
        excerpt = last.excerpt if last.excerpt is None or not mentions else replace(last.excerpt, mentions=tuple(mentions))
        return replace(
            last, question=self.question, status=status, text=text, citations=citations, confidence=confidence,
            attempts=tuple(attempt for outcome in outcomes for attempt in outcome.attempts), votes=(), excerpt=excerpt,
            warnings=tuple(warning for part in self.done for warning in part.warnings) + tuple(doubts),
            shown=tuple(item for outcome in outcomes for item in outcome.shown), doubts=tuple(doubts), parts=tuple(self.done),
            references=tuple(item for part in self.done for item in part.references),
        )  # fmt: skip

    def _doubts(self, known: KnownNames, mentions: list[Mention]) -> list[str]:
        """Return what speaks against the answer: doubts about a part's answer, or about the split."""
        result = [
            f"part {number}, {part.question!r}, is doubtful: {'; '.join(part.doubts)}"
            for number, part in enumerate(self.done, start=1)
            if part.status == "doubtful"
        ]
        assert self.done[-1].answer is not None
        result += filter(None, [misfit(self.question, self.done[-1].answer)])
        used = {number for text in self.texts for number in _refers(text)}
        result += [
            f"the answer does not depend on part {number}, {text!r}"
            for number, text in enumerate(self.texts[:-1], start=1)
            if number not in used
        ]
        question_line = {name for item in mentions for name in item.names}
        in_parts: set[str] = set()
        for number, text in enumerate(self.texts, start=1):
            for item in mentions_in(text, known):
                in_parts.update(item.names)
                unrelated = not question_line & set(item.names) and item.text.casefold() not in self.question.casefold()
                if _is_name(item) and unrelated:
                    result.append(f"part {number} is about {item.text!r}, which the question does not name")
        result += [
            f"no part is about {item.text!r}, which the question names"
            for item in mentions
            if _is_name(item) and not in_parts & set(item.names)
        ]
        for number, part in enumerate(self.done, start=1):
            for word in part.references:
                earlier = next((self.done[at - 1] for at in _refers(word.text)), None)
                if earlier is not None and word.text not in part.program and len(word.entities) < len(set(earlier.texts)):
                    result.append(f"part {number} is about some of the values of {word.text} alone")
        return result

    def _in_words(self) -> tuple[str, tuple[str, ...]]:
        """Return the answer in words, followed by those of the earlier parts, with all statements."""
        *before, last = self.done
        assert last.answer is not None
        self.whole.known = known_of(self.graph._store_of(None), self.graph._survey())
        text, citations = self.whole.in_words(last.answer)
        lines = [text]
        for part in before:
            assert part.answer is not None
            part_text, statements = plain(part.answer)
            lines.append(f"{part.question} {renumbered(part_text, len(citations))}")
            citations = (*citations, *statements)
        return "\n".join(lines), citations


#: Statuses with their ranks, the best first.
_RANK: Final[Mapping[Status, int]] = {
    "answered": 0, "ambiguous": 1, "doubtful": 2, "empty": 3, "abstained": 4, "failed": 5, "budget": 6,
}  # fmt: skip


def _is_name(item: Mention) -> bool:
    """Return whether a mention is certainly a name: it is in the graph, and written with a capital or a digit."""
    return bool(item.names) and item.exact and any(letter.isupper() or letter.isdigit() for letter in item.text)
