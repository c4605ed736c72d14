"""Long questions in parts: a model splits the question, each part is asked as any question is, and later parts refer to the
answers of earlier ones.

In a part, ANSWER1 is the answer to the first one: its entities by their ids, however many there are, wherever a program has
this name (`Runner.stands`). Nothing of an answer is put into the text of a question.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Final

from condgraph.ask.chat import ANSWER, entities_of, part_limit
from condgraph.ask.judge import DOUBTED, misfit
from condgraph.ask.pipeline import Asking
from condgraph.ask.programs import declines
from condgraph.ask.prompt import KnownNames, Mention, known_of, mentions_in
from condgraph.ask.records import Asked, AskOptions, AskStep, Status, plain, renumbered
from condgraph.engine.errors import BudgetError, ModelError
from condgraph.models.chat import Metered

if TYPE_CHECKING:
    from condgraph.ask.records import Host, Standing
    from condgraph.models.chat import ChatModel

#: Parts of a question, characters of each and of the reply that has them, and tokens of this.
MOST_PARTS: Final = 6
_LONGEST: Final = 500
_MOST_READ: Final = 10_000
_TOKENS: Final = 400
_LINE: Final = re.compile(r"^[ \t]{0,8}(\d{1,2})[.):][ \t]{0,8}(\S[^\n]*)$", re.MULTILINE)


def split(reply: str) -> tuple[list[str], str]:
    """The parts in a reply, none where the question is simple; and why they cannot be asked, "" where they can.

    >>> split("1. Who wrote Hamlet?\\n2. When was ANSWER1 born?")
    (['Who wrote Hamlet?', 'When was ANSWER1 born?'], '')
    """
    if declines(reply):
        return [], ""
    lines = [(int(found[1]), " ".join(found[2].split())) for found in _LINE.finditer(reply[:_MOST_READ])]
    texts = [text for _, text in lines]
    if len(texts) < 2:
        return [], "" if texts else "there are none in the reply"
    if [number for number, _ in lines] != list(range(1, len(lines) + 1)) or len(texts) > MOST_PARTS:
        return [], f"they are not numbered from 1, at most {MOST_PARTS}"
    for number, text in enumerate(texts, start=1):
        if len(text) > _LONGEST:
            return [], f"part {number} has more than {_LONGEST} characters"
        if any(not 0 < other < number for other in _refers(text)):
            return [], f"part {number} refers to an answer that is not before it"
    return texts, ""


def _refers(text: str) -> list[int]:
    """The numbers of the answers that a part refers to."""
    return [int(found[1]) for found in ANSWER.finditer(text)]


# -- asking in parts ---------------------------------------------------------------------------------


class InParts:
    """A question that is asked in parts: always, or where its own answer is none or doubtful. The budget is one for all of
    it. The outcome is that of the last part; it has the programs, statements and steps of all, and is doubtful if anything
    speaks against one of them, or against the parts themselves.
    """

    def __init__(self, graph: Host, question: str, model: ChatModel, options: AskOptions) -> None:
        self.graph, self.question = graph, question
        self.model = Metered(model, options.budget)
        self.steps: list[AskStep] = []
        hears = options.on_step

        def on_step(step: AskStep) -> None:
            self.steps.append(step)
            if hears is not None:
                hears(step)

        self.options = replace(options, parts="never", on_step=on_step)
        #: What is asked now; the question as a whole; its outcome, and those of the parts.
        self.now = self.whole = Asking(graph, question, self.model, self.options)
        self.always = options.parts == "always"
        self.direct: Asked | None = None
        self.texts: list[str] = []
        self.done: list[Asked] = []

    def run(self) -> Asked:
        """Ask, and return the outcome."""
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
        stands: dict[str, Standing] = {}
        for number, text in enumerate(self.texts, start=1):
            limit = self.options.limit if number == len(self.texts) else part_limit(self.options.limit)
            options = replace(self.options, verbalise=False, limit=limit, answers=dict(answers), stands=dict(stands))
            self.now = Asking(self.graph, text, self.model, options)
            part = self.now.run()
            self.done.append(part)
            if part.status not in ("answered", "doubtful"):
                break
            name = f"ANSWER{number}"
            answers[name] = part
            if (entities := entities_of(part, known)) is not None:
                stands[name] = entities
        return self._outcome()

    def late(self) -> Asked:
        """The outcome after the seconds of the budget, from what was done by then."""
        self.whole.asks = False
        part = self.now.late()
        if self.now is not self.whole and len(self.done) < len(self.texts):
            self.done.append(part)
        elif self.direct is None:
            self.direct = part
        return self._outcome()

    def _split(self) -> None:
        """Have the model split the question."""
        prompt = self.whole.prompts.fill("parts", question=self.whole.asked, most=str(MOST_PARTS))
        with self.whole.step("split") as about:
            try:
                result = self.model.chat([{"role": "user", "content": prompt}], max_tokens=_TOKENS, seed=self.options.seed)
            except ModelError as error:
                about.append(str(error))
                self.whole.warnings.append(f"the question is not asked in parts: {error}")
                return
            self.texts, why = split(result[0].text if result and result[0].finish != "refusal" else "")
            about += self.texts or [why or "the question is simple"]
            if why:
                self.whole.warnings.append(f"the question is not asked in parts: {why}")

    # -- the outcome -------------------------------------------------------------------------------

    def _outcome(self) -> Asked:
        """The better of the outcomes of the question itself and of its parts."""
        result = self._combined() if self.done else None
        if result is None or (self.direct is not None and _RANK[self.direct.status] <= _RANK[result.status]):
            assert self.direct is not None
            if result is not None:
                said = f"asked in parts ({' '.join(self.texts)}) the outcome is {result.status!r}"
                result = replace(self.direct, warnings=(*self.direct.warnings, said))
            else:
                result = self.direct
        spent = self.model.spent
        warnings = tuple(dict.fromkeys([*result.warnings, *self.whole.warnings]))
        return replace(result, warnings=warnings, steps=tuple(self.steps), usage=spent.usage, calls=spent.calls)

    def _combined(self) -> Asked:
        """The outcome of the parts."""
        last = self.done[-1]
        every = [*(() if self.direct is None else (self.direct,)), *self.done]
        found: list[Mention] = []
        against: list[str] = []
        status: Status = last.status
        if status in ("answered", "doubtful") and len(self.done) < len(self.texts):
            last, status = replace(last, answer=None, text="", citations=(), confidence=None), "budget"
        sure = last.confidence
        text, citations = last.text, last.citations
        if status in ("answered", "doubtful"):
            known = known_of(self.graph._store_of(None), self.graph._survey())
            found = mentions_in(self.question, known)
            against = self._doubts(known, found)
            status = "doubtful" if against else "answered"
            sure = DOUBTED if against else prod(part.confidence or DOUBTED for part in self.done)
            text, citations = self._in_words()
            if against:
                text = f"Doubtful: {'; '.join(against)}\n{text}"
        excerpt = last.excerpt if last.excerpt is None or not found else replace(last.excerpt, mentions=tuple(found))
        return replace(
            last, question=self.question, status=status, text=text, citations=citations, confidence=sure,
            attempts=tuple(attempt for one in every for attempt in one.attempts), votes=(), excerpt=excerpt,
            warnings=tuple(warning for part in self.done for warning in part.warnings) + tuple(against),
            shown=tuple(item for one in every for item in one.shown), doubts=tuple(against), parts=tuple(self.done),
            references=tuple(item for part in self.done for item in part.references),
        )  # fmt: skip

    def _doubts(self, known: KnownNames, found: list[Mention]) -> list[str]:
        """What speaks against the answer: against that of a part, or against the parts."""
        result = [
            f"part {number}, {part.question!r}, is doubtful: {'; '.join(part.doubts)}"
            for number, part in enumerate(self.done, start=1)
            if part.status == "doubtful"
        ]
        assert self.done[-1].answer is not None
        result += filter(None, [misfit(self.question, self.done[-1].answer)])
        used = {number for text in self.texts for number in _refers(text)}
        result += [
            f"nothing of the answer rests on part {number}, {text!r}"
            for number, text in enumerate(self.texts[:-1], start=1)
            if number not in used
        ]
        asked = {name for item in found for name in item.names}
        said: set[str] = set()
        for number, text in enumerate(self.texts, start=1):
            for item in mentions_in(text, known):
                said.update(item.names)
                other = not asked & set(item.names) and item.text.casefold() not in self.question.casefold()
                if _is_name(item) and other:
                    result.append(f"part {number} is about {item.text!r}, which the question does not name")
        result += [
            f"no part is about {item.text!r}, which the question names"
            for item in found
            if _is_name(item) and not said & set(item.names)
        ]
        for number, part in enumerate(self.done, start=1):
            for word in part.references:
                of = next((self.done[at - 1] for at in _refers(word.text)), None)
                if of is not None and word.text not in part.program and len(word.entities) < len(set(of.texts)):
                    result.append(f"part {number} is about some of the values of {word.text} alone")
        return result

    def _in_words(self) -> tuple[str, tuple[str, ...]]:
        """The answer in words, and below it the parts before, with the statements of all."""
        *before, last = self.done
        assert last.answer is not None
        self.whole.known = known_of(self.graph._store_of(None), self.graph._survey())
        text, citations = self.whole.in_words(last.answer)
        lines = [text]
        for part in before:
            assert part.answer is not None
            said, statements = plain(part.answer)
            lines.append(f"{part.question} {renumbered(said, len(citations))}")
            citations = (*citations, *statements)
        return "\n".join(lines), citations


#: The better status first.
_RANK: Final[Mapping[Status, int]] = {
    "answered": 0, "ambiguous": 1, "doubtful": 2, "empty": 3, "abstained": 4, "failed": 5, "budget": 6,
}  # fmt: skip


def _is_name(item: Mention) -> bool:
    """Whether a mention is surely the name of something: of the graph, and written with a capital or a digit."""
    return bool(item.names) and item.exact and any(letter.isupper() or letter.isdigit() for letter in item.text)
