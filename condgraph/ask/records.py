"""Records for questions in plain words: the options of a question, its steps, attempts and outcome."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal, InvalidOperation
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, get_args

from condgraph.engine import html
from condgraph.engine.errors import CondgraphError, OptionError, nearest, shortened
from condgraph.engine.values import fold
from condgraph.models.chat import Budget, Usage
from condgraph.names.words import STOP, WORD, OnUnknown, stem, words_of
from condgraph.overview.schema import quoted, unmarked

if TYPE_CHECKING:
    from condgraph.ask.prompt import Excerpt, KnownNames
    from condgraph.engine.algebra import Entities
    from condgraph.engine.answer import Answer
    from condgraph.engine.lowered import Lowered
    from condgraph.engine.store import Store
    from condgraph.overview.survey import Survey


# -- the answer in words -----------------------------------------------------------------------------
# The answer in words: the values with the numbers of their statements, or sentences by a model, each checked against the
# statements that it cites.
#
# A sentence is used only if it cites statements that the model was shown, and if every number and name in it is in these
# statements, in the answer or in the question. Numbers are compared in the notation of the question's language: 8.091 in
# German is 8,091. In languages that write nouns with a capital, only names of the graph count as names.


#: The most values in the text, the most cited statements, and the most statements that are searched for them.
MAX_CITED_VALUES: Final = 20
MAX_CITED: Final = 10
_MAX_SEARCHED: Final = 200
_CITED: Final = re.compile(r"\[(\d{1,4}(?:\s*,\s*\d{1,4})*)\]")
#: A sentence with its citations before or after its end mark. A text without either is one sentence.
_SENTENCE: Final = re.compile(r".*?(?:\[[\d, ]{1,40}\] ?[.!?。！？]+|[.!?。！？]+ ?(?:\[[\d, ]{1,40}\] ?)+|$)")
#: Spaces, except those within numbers.
_SPACES: Final = re.compile(r"[ \t\r\n\f\v]+")
#: How many characters of a model's text are examined.
_MAX_TEXT: Final = 4_000
#: A number, with the separators between its digits.
_NUMBER: Final = re.compile(r"\d+(?:[.,'’ \u00a0\u202f]\d{3}(?!\d))*(?:[.,]\d+)?")
#: Typical words of English questions, those among them that other languages have, too, and common words of these.
_ENGLISH: Final = frozenset("what which who whom whose when where why how is are was were does did has have the list name".split())  # noqa: SIM905
_SHARED: Final = frozenset("is are was has list name".split())  # noqa: SIM905
_FOREIGN: Final = frozenset(
    """der die das den dem des ein eine ist sind wer wie wo wann welche welcher welches welchem wurde hat von und im
het een van de wat waar welke le la les du des est quel quelle qui ou el los las del es que cual quien donde il di che quale os da
do em qual""".split()  # noqa: SIM905
)
#: Letters of languages that use a decimal point.
_POINT_SCRIPTS: Final = re.compile(r"[\u0900-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_MONTHS: Final = "january february march april may june july august september october november december".split()  # noqa: SIM905


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of an answer in words, with the statements that it is based on."""

    text: str
    statements: tuple[str, ...]


def plain(answer: Answer) -> tuple[str, tuple[str, ...]]:
    """Return the values of an answer with the numbers of statements, and these statements."""
    texts = answer.texts
    if not texts:
        return "", ()
    statements = cited(answer)
    parts = []
    for text in texts[:MAX_CITED_VALUES]:
        numbers = [number for number, item in enumerate(statements, start=1) if _appears(text, item)][:3]
        parts.append(text + "".join(f" [{number}]" for number in numbers))
    rest = f" and {len(texts) - MAX_CITED_VALUES} more" if len(texts) > MAX_CITED_VALUES else ""
    if not any("[" in item for item in parts) and statements:
        # The answer is a count or a verification, which no statement contains.
        parts[-1] += " " + "".join(f"[{number}]" for number in range(1, min(len(statements), 3) + 1))
    return "; ".join(parts) + rest, tuple(statements)


def cited(answer: Answer) -> list[str]:
    """Return the statements that contain the values of an answer, or the first ones if none does."""
    statements = [str(item) for item in islice(answer.evidence, _MAX_SEARCHED)]
    texts = answer.texts[:MAX_CITED_VALUES]
    showing = [item for item in statements if any(_appears(text, item) for text in texts)]
    return list(dict.fromkeys([*showing, *statements]))[:MAX_CITED]


def renumbered(text: str, offset: int) -> str:
    """Increase the numbers of statements in a text by `offset`."""
    return _CITED.sub(lambda match: f"[{', '.join(str(int(number) + offset) for number in match[1].split(','))}]", text)


def facts_of(answer: Answer, statements: Sequence[str]) -> str:
    """Return what a model is shown to put an answer into words: values and numbered statements as JSON strings."""
    values = unmarked(json.dumps([shortened(text, 200) for text in answer.texts[:MAX_CITED_VALUES]], ensure_ascii=True))
    lines = [f"[{number}] {quoted(item, 300)}" for number, item in enumerate(statements, start=1)]
    return "\n".join([f"Answer: {values}", *lines])


def sentences(text: str, statements: Sequence[str]) -> tuple[Sentence, ...]:
    """Split a text with statement numbers in brackets into sentences, each with the statements that it cites."""
    result = []
    for part in parts_of(text):
        numbers = dict.fromkeys(_numbers(part))
        result.append(Sentence(part, tuple(statements[number - 1] for number in numbers if 0 < number <= len(statements))))
    return tuple(result)


def checked_text(
    text: str, question: str, answer: Answer, statements: Sequence[str], known: KnownNames | None
) -> tuple[str, list[str]]:
    """Return the sentences of a model's text that hold, and why the others do not.

    The text is "" if the sentences contain no value of the answer.
    """
    kept, wrong = [], []
    for part in parts_of(text):
        if why := sentence_fault(part, question, answer, statements, known):
            wrong.append(why)
        else:
            kept.append(part)
    result = " ".join(kept)
    values = answer.texts[:MAX_CITED_VALUES]
    if not text.strip():
        wrong.append("it is empty")
    elif kept and values and not any(_states_value(value, result, question) for value in values):
        return "", [*wrong, "it says no value of the answer"]
    return result, wrong


def parts_of(text: str) -> list[str]:
    """Return the sentences of a text. A part without citations belongs to the sentence after it."""
    line = _SPACES.sub(" ", text[:_MAX_TEXT])
    return [part for match in _SENTENCE.finditer(line) if (part := match[0].strip())]


def _numbers(part: str) -> list[int]:
    return [int(number) for match in _CITED.finditer(part) for number in match[1].split(",")]


def sentence_fault(part: str, question: str, answer: Answer, statements: Sequence[str], known: KnownNames | None) -> str:
    """Return why a sentence does not hold, or "" if it does."""
    numbers = _numbers(part)
    if not numbers:
        return f"{shortened(part, 80)!r} cites no statement"
    wrong = [number for number in numbers if not 1 <= number <= len(statements)]
    if wrong:
        return f"it cites [{wrong[0]}], and {len(statements)} statements were shown"
    places = [question, *(statements[number - 1] for number in numbers), *answer.texts[:MAX_CITED_VALUES]]
    body = _CITED.sub(" ", part)
    comma = _decimal_comma(question)
    known_numbers = {number for place in places for number in _values(place, comma=False)}
    for match in _NUMBER.finditer(body):
        if match[0] not in known_numbers and not known_numbers & _values(match[0], comma=comma):
            return f"it says {match[0]!r}, which is neither in the answer nor in the statements that it cites"
    words = {stem(word) for place in places for word in words_of(place)}
    nouns = _has_nouns(question, words_of(" ".join(places[1:])))
    for match in WORD.finditer(body):
        word, before = match[0], body[: match.start()].rstrip()
        if not word[:1].isupper() or stem(fold(word)) in words or word.casefold() in STOP:
            continue
        if word.casefold() in _MONTHS and str(_MONTHS.index(word.casefold()) + 1) in known_numbers:
            continue
        # The first word of a sentence, or a noun, may be any word except a name of the graph.
        in_graph = known is not None and bool(known.linker.entities.folded(word))
        if in_graph or not (nouns or not before or before[-1:] in ".!?:。！？"):
            return f"it says {word!r}, which is neither in the answer nor in the statements that it cites"
    return ""


def _states_value(value: str, text: str, question: str) -> bool:
    """Return whether a text contains a value, with numbers in the notation of the question's language."""
    if _appears(value, text):
        return True
    numbers = list(_values(value, comma=False))
    return bool(numbers) and set(numbers) <= _values(text, comma=_decimal_comma(question))


def _decimal_comma(question: str) -> bool:
    """Return whether the language of a question uses a decimal comma.

    Most languages with Latin, Greek or Cyrillic letters do, except English.

    >>> _decimal_comma("Wie hoch ist er?"), _decimal_comma("How high is it?"), _decimal_comma("有多高？")
    (True, False, False)
    """
    return not english(question) and not _POINT_SCRIPTS.search(question)


def english(question: str) -> bool:
    """Return whether a question is in English, judged by its words.

    >>> english("Who directed Das Boot?"), english("Was ist die Hauptstadt?"), english("Wat is er?"), english("Capital of Nepal")
    (True, False, False, False)
    """
    words = set(words_of(question))
    matching = words & _ENGLISH
    return bool(matching) and len(matching - _SHARED) + len(matching) > len(words & _FOREIGN)


def foreign(question: str) -> bool:
    """Return whether a question is in a language other than English, judged by its words or letters.

    >>> foreign("Wer schrieb Faust?"), foreign("尼泊尔的首都是什么？"), foreign("Capital of Nepal"), foreign("Who wrote Faust?")
    (True, True, False, False)
    """
    others = bool(_FOREIGN & set(words_of(question)))
    return not english(question) and (others or any(letter > "\u036f" and letter.isalpha() for letter in question))


def _has_nouns(question: str, named: Sequence[str]) -> bool:
    """Return whether a question writes words other than names with a capital, as German does."""
    names = set(named)
    return any(
        match[0][:1].isupper() and question[: match.start()].strip() and fold(match[0]) not in names
        for match in WORD.finditer(question)
    ) and not english(question)


def _values(text: str, *, comma: bool) -> set[str]:
    """Return the normalised numbers in a text. A date has three.

    >>> _values("8,091.50 m", comma=False), _values("8.091,5", comma=True), sorted(_values("1917-11-09", comma=False))
    ({'8091.5'}, {'8091.5'}, ['11', '1917', '9'])
    """
    return set(_read_numbers(text, comma))


def _read_numbers(text: str, comma: bool) -> Iterator[str]:
    mark, other = (",", ".") if comma else (".", ",")
    for match in _NUMBER.finditer(text):
        whole, _, decimals = match[0].partition(mark)
        digits = re.sub(rf"[{re.escape(other)}'’ \u00a0\u202f]", "", whole)
        number = f"{digits}.{decimals}" if decimals.isdigit() else digits
        try:
            yield f"{Decimal(number).normalize():f}"
        except InvalidOperation:
            yield match[0]


def _appears(text: str, statement: str) -> bool:
    """Return whether a value appears in a text as whole words."""
    wanted, place = fold(text), fold(statement)
    position = place.find(wanted)
    while wanted and position >= 0:
        before, after = place[position - 1 : position], place[position + len(wanted) : position + len(wanted) + 1]
        if not (before.isalnum() or after.isalnum()):
            return True
        position = place.find(wanted, position + 1)
    return False


# -- options, steps, attempts and the outcome --------------------------------------------------------


#: How a question ended: with an answer; with an answer that may not fit the question, or from a program
#: in which a name was read as another one; with a program that had no result; with a name whose meaning
#: the user has to choose; without any program that ran; with a model that declined; with a spent budget.
Status = Literal["answered", "doubtful", "empty", "ambiguous", "failed", "abstained", "budget"]
#: Where an attempt failed.
Stage = Literal["retrieval", "writing", "resolving", "running"]
STAGES: Final[tuple[Stage, ...]] = ("retrieval", "writing", "resolving", "running")
#: The languages of programs.
Via = Literal["auto", "query", "kopl", "cypher", "pattern"]
VIAS: Final[tuple[Via, ...]] = get_args(Via)
#: When a question is split into parts: never, if its own answer is missing or doubtful, or always.
Parts = Literal["never", "doubt", "always"]
PARTS: Final[tuple[Parts, ...]] = get_args(Parts)


@dataclass(frozen=True, slots=True)
class AskStep:
    """A step in answering a question.

    It has a `name` ("look", "excerpt", "write", "read", "resolve", "run", "vote", "say" or "split"), the
    `seconds` that it took, and a line `about` its result.
    """

    name: str
    seconds: float
    about: str = ""

    def __str__(self) -> str:
        return f"{self.name} ({1000 * self.seconds:.1f} ms)" + (f": {self.about}" if self.about else "")


@dataclass(frozen=True, slots=True)
class AskText:
    """A piece of `text` as a model writes it.

    It belongs to a reply with a program (`step` is "write"), or it is a sentence of the answer in words that
    holds ("say"). `begins` marks the first piece of the reply for this `sample`, which replaces an earlier
    reply of the same step and sample.
    """

    step: str
    text: str
    sample: int = 0
    begins: bool = False

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Option:
    """One meaning of a name.

    It has a `key` (the id of an entity or the name of a source), a line `about` it, and the `texts` of the
    answer with this meaning.
    """

    key: str
    name: str
    about: str
    texts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Choice:
    """A name with several meanings that lead to different answers.

    The user chooses one with `ask(..., choose={choice.name: option.key})`.
    """

    kind: Literal["entity", "source"]
    name: str
    options: tuple[Option, ...]

    def __str__(self) -> str:
        listed = "; ".join(f"{option.key}: {option.about}" if option.about else option.key for option in self.options)
        return f"which {self.kind} is meant by {self.name!r}: {listed}"


@dataclass(frozen=True, slots=True)
class Referent:
    """An entity of an earlier turn: its name and its id, or "" if only the name is known."""

    name: str
    id: str


@dataclass(frozen=True, slots=True)
class Reference:
    """A word of a question, from `start` to `end`, that refers to `entities` of an earlier turn.

    `origin` tells the turn, and `others` are other entities to which the word may refer.
    """

    text: str
    start: int
    end: int
    entities: tuple[Referent, ...]
    origin: str
    others: tuple[Referent, ...] = ()

    def __str__(self) -> str:
        return f"{self.text!r} is {', '.join(repr(entity.name) for entity in self.entities)}, of {self.origin}"


@dataclass(frozen=True, slots=True)
class Draft:
    """A program in which a name of the graph replaces an unknown one.

    It has the `unknown` name, the `name`, the texts that the program gives, and why they may be an answer to
    another question.
    """

    unknown: str
    name: str
    program: str
    texts: tuple[str, ...]
    doubts: tuple[str, ...] = ()

    def __str__(self) -> str:
        gives = ", ".join(map(repr, self.texts[:3])) + (f" and {len(self.texts) - 3:,} more" if len(self.texts) > 3 else "")
        return f"with {self.name!r} in place of {self.unknown!r} the program gives {gives}"


@dataclass(frozen=True, slots=True)
class Attempt:
    """A program written by a model: the reply, the program in it, and its result.

    `stage` and `error` are where and why it failed, and `feedback` is what the model was told. `doubts` are
    reasons why its answer may belong to another question. `drafts` are programs with names of the graph in
    place of an unknown one that have a result, the best first. `unfinished` means that the deadline passed
    while the model was writing, or before its program had run.
    """

    reply: str
    program: str = ""
    language: str = ""
    answer: Answer | None = None
    stage: Stage | None = None
    error: str = ""
    code: str = ""
    feedback: str = ""
    source: str | None = None
    choice: Choice | None = None
    notes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    drafts: tuple[Draft, ...] = ()
    #: The error and the plan of the program, for feedback.
    failure: CondgraphError | None = field(default=None, repr=False, compare=False)
    lowered: Lowered | None = field(default=None, repr=False, compare=False)
    #: The numbers of the sample and of the retry, starting at 0.
    sample: int = 0
    number: int = 0
    unfinished: bool = False

    @property
    def gave(self) -> tuple[str, ...] | None:
        """The texts of the answer in order, or None if the program did not run."""
        return None if self.answer is None else tuple(self.answer.texts)


@dataclass(frozen=True, slots=True)
class Vote:
    """An answer, as normalised and sorted texts, and the number of samples that gave it."""

    texts: tuple[str, ...]
    count: int


@dataclass(frozen=True, slots=True, repr=False)
class Asked:
    """The outcome of a question.

    `answer` has the typed values with program, trace and evidence, or is None if no program ran. `text` is
    the answer in words, with numbers that refer to `citations`, which are statements. `attempts` are all
    programs, `votes` are the answers of the samples, and `steps` are what was done and how long it took.
    `shown` is the data that a model was shown besides the prompt, to compute a function or to put the answer
    into words. `reason` is why `via="auto"` chose this language, or "" if the language was given.
    `references` are words that refer to earlier turns of a conversation. `confidence` is the share of similar
    answers that are right on the evaluation sets, from 0 to 1, or None without an answer. `doubts` are
    reasons why the answer may belong to another question. `parts` are the outcomes of the parts into which
    the question was split; `answer` is that of the last one.
    """

    question: str
    status: Status
    answer: Answer | None = None
    language: str = ""
    source: str | None = None
    choices: tuple[Choice, ...] = ()
    text: str = ""
    citations: tuple[str, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    votes: tuple[Vote, ...] = ()
    steps: tuple[AskStep, ...] = ()
    usage: Usage = field(default_factory=Usage)
    calls: int = 0
    model: str = ""
    prompts: Mapping[str, str] = field(default_factory=dict)
    excerpt: Excerpt | None = None
    warnings: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    transcript: str | None = None
    reason: str = ""
    references: tuple[Reference, ...] = ()
    confidence: float | None = None
    doubts: tuple[str, ...] = ()
    parts: tuple[Asked, ...] = ()

    @property
    def texts(self) -> list[str]:
        """The texts of the answer, or an empty list without one."""
        return [] if self.answer is None else self.answer.texts

    @property
    def values(self) -> list[Any]:
        """The typed values of the answer, or an empty list without one."""
        return [] if self.answer is None else list(self.answer.values)

    @property
    def program(self) -> str:
        """The program that gave the answer."""
        return "" if self.answer is None else self.answer.program

    @property
    def evidence(self) -> Sequence[Any]:
        """The statements that the answer is based on, those of the last part first."""
        if self.parts:
            return tuple(dict.fromkeys(item for part in reversed(self.parts) for item in part.evidence))
        return () if self.answer is None else self.answer.evidence

    @property
    def sentences(self) -> tuple[Sentence, ...]:
        """The sentences of `text`, each with the statements that it is based on."""
        return sentences(self.text, self.citations)

    @property
    def failures(self) -> dict[Stage, int]:
        """The number of attempts that failed, by stage."""
        counted = Counter(attempt.stage for attempt in self.attempts if attempt.stage is not None)
        if self.status in ("failed", "abstained") and not counted and self.excerpt is not None and not self.excerpt.predicates:
            counted["retrieval"] = 1
        return {stage: counted[stage] for stage in STAGES if counted[stage]}

    @property
    def seconds(self) -> float:
        """The seconds of all steps."""
        return sum(step.seconds for step in self.steps)

    @property
    def overhead(self) -> float:
        """The seconds of all steps except those of the model."""
        return sum(step.seconds for step in self.steps if step.name not in ("write", "say"))

    def data(self) -> dict[str, Any]:
        """Return the outcome as JSON."""
        return {
            "question": self.question,
            "status": self.status,
            "confidence": self.confidence,
            "answers": [] if self.answer is None else self.answer.data(),
            "text": self.text,
            "citations": list(self.citations),
            "sentences": [{"text": one.text, "statements": list(one.statements)} for one in self.sentences],
            "language": self.language,
            "reason": self.reason,
            "program": self.program,
            "source": self.source,
            "references": [
                {"text": item.text, "names": [one.name for one in item.entities], "of": item.origin} for item in self.references
            ],
            "choices": [
                {"kind": choice.kind, "name": choice.name, "options": list(map(_option, choice.options))} for choice in self.choices
            ],
            "attempts": [
                {
                    "program": attempt.program, "language": attempt.language, "stage": attempt.stage, "error": attempt.error,
                    "feedback": attempt.feedback, "unfinished": attempt.unfinished, "doubts": list(attempt.doubts),
                    "drafts": [str(draft) for draft in attempt.drafts],
                    "answers": None if attempt.answer is None else list(attempt.answer.texts[:20]),
                }
                for attempt in self.attempts
            ],
            "parts": [
                {
                    "question": part.question, "status": part.status, "program": part.program, "language": part.language,
                    "source": part.source,
                    "answers": part.texts[:20], "doubts": list(part.doubts),
                }
                for part in self.parts
            ],
            "votes": [{"answers": list(vote.texts), "count": vote.count} for vote in self.votes],
            "steps": [{"name": step.name, "seconds": round(step.seconds, 6), "about": step.about} for step in self.steps],
            "failures": dict(self.failures),
            "calls": self.calls,
            "tokens": {"prompt": self.usage.prompt_tokens, "completion": self.usage.completion_tokens},
            "model": self.model,
            "warnings": list(self.warnings),
        }  # fmt: skip

    def __str__(self) -> str:
        """Return the text, the choices or the status, followed by the warnings, one per line."""
        first = self.text or "\n".join(map(str, self.choices)) or self.status
        return "\n".join([first, *(f"warning: {warning}" for warning in self.warnings)])

    def __repr__(self) -> str:
        return f"<Asked: {self.status}, {shortened(str(self), 200)!r}>"

    def _repr_html_(self) -> str:
        """Return the answer and how it was found, as HTML for notebooks."""
        rows = [(text,) for text in self.texts[: html.MAX_ROWS]]
        tables = [html.table("answers", ("answer",), rows, len(self.texts) - len(rows))] if rows else []
        tables += [html.table(str(choice), ("key", "about"), [(o.key, o.about) for o in choice.options]) for choice in self.choices]
        tables.append(
            html.table("steps", ("step", "ms", "about"), [(s.name, f"{1000 * s.seconds:.1f}", s.about) for s in self.steps])
        )
        return html.page(f"{self.status}: {self.question}", tables, warnings=self.warnings)


def _option(option: Option) -> dict[str, Any]:
    return {"key": option.key, "name": option.name, "about": option.about, "answers": list(option.texts)}


# -- options -----------------------------------------------------------------------------------------
# The options of a question, validated once.


#: The default number of demonstrations in a prompt, and the most samples of one question.
MAX_DEMOS: Final = 8
MAX_SAMPLES: Final = 50
#: The default tokens of the graph's excerpt, and its share of a prompt.
EXCERPT: Final = 2_000
_EXCERPT_SHARE: Final = 0.4


@dataclass(frozen=True, slots=True)
class AnswerSet:
    """The entities for which a word for an answer stands in a plan, and their number."""

    entities: Entities
    size: int


@dataclass(frozen=True, slots=True)
class AskOptions:
    """The options of a question, with the same meaning as the parameters of `Graph.ask`."""

    via: str = "auto"
    demos: int | None = None
    budget: Budget = field(default_factory=Budget)
    samples: int = 1
    retries: int = 3
    source: str | None = None
    verbalise: bool = False
    function: bool = False
    seed: int = 0
    temperature: float | None = None
    limit: int | None = None
    excerpt_tokens: int | None = None
    today: date | None = None
    cells: bool = True
    untrusted: Collection[str] = ()
    choose: Mapping[str, str] = field(default_factory=dict)
    prompts: str | os.PathLike[str] | None = None
    on_step: Callable[[AskStep], Any] | None = None
    on_text: Callable[[AskText], Any] | None = None
    aware: bool = False
    same_question: bool = False
    before: Sequence[Asked] = ()
    parts: str = "never"
    #: For a part: the outcomes of earlier parts, and the entities in them, by the words for them.
    answers: Mapping[str, Asked] = field(default_factory=dict)
    answer_sets: Mapping[str, AnswerSet] = field(default_factory=dict)
    on_unknown: OnUnknown = "error"

    def __post_init__(self) -> None:
        if self.via not in VIAS:
            raise OptionError(f"via is one of {', '.join(VIAS)}, not {self.via!r}", candidates=nearest(str(self.via), VIAS))
        if self.parts not in PARTS:
            raise OptionError(f"parts is one of {', '.join(PARTS)}, not {self.parts!r}", candidates=nearest(str(self.parts), PARTS))
        if self.aware and self.via not in ("auto", "kopl"):
            raise OptionError(
                f"aware= is an option of programs in KoPL, and via is {self.via!r}", hint='via="kopl" or "auto", or aware=False'
            )
        for name, least, most in (("samples", 1, MAX_SAMPLES), ("retries", 0, 20), ("excerpt_tokens", 0, 10**6)):
            value = getattr(self, name)
            if name == "excerpt_tokens" and value is None:
                continue
            if type(value) is not int or not least <= value <= most:
                raise OptionError(f"{name} is a whole number from {least} to {most:,}, not {value!r}")
        if self.demos is not None and (type(self.demos) is not int or self.demos < 0):
            raise OptionError(f"demos is how many demonstrations are shown, 0 or more, not {self.demos!r}")
        if self.temperature is not None and not 0 <= self.temperature <= 2:
            raise OptionError(f"temperature is from 0 to 2, not {self.temperature!r}")
        if self.on_unknown not in ("error", "nearest"):
            raise OptionError(f"on_unknown is 'error' or 'nearest' of questions, not {self.on_unknown!r}")
        if not all(isinstance(turn, Asked) for turn in self.before):
            raise OptionError("before is the outcomes of earlier questions, as Graph.ask returns them")
        if isinstance(self.untrusted, str):
            raise OptionError("untrusted is a list of names of sources")

    @property
    def room(self) -> int:
        """The most tokens of the excerpt.

        This is `excerpt_tokens` if it was given, else two fifths of a prompt, or 2,000 if prompts have no limit.
        """
        if self.excerpt_tokens is not None:
            return self.excerpt_tokens
        whole = self.budget.prompt_tokens
        return EXCERPT if whole is None else int(_EXCERPT_SHARE * whole)

    @property
    def sampling_temperature(self) -> float:
        """The temperature: 0 for one sample, to get the likeliest program, and 0.7 for several, so that they differ."""
        return self.temperature if self.temperature is not None else 0.0 if self.samples == 1 else 0.7


class Host(Protocol):
    """What `ask` needs from a graph."""

    place: str
    read_only: bool
    timeout: float | None

    @property
    def _directory(self) -> Path | None: ...

    @property
    def demos(self) -> Any:
        """The demonstrations of the graph (`ask.demos.Demos`)."""
        ...

    @property
    def ask(self) -> Callable[..., Asked]:
        """The method `Graph.ask`."""
        ...

    def query(self, program: Any, *, language: str | None = None, **options: Any) -> Answer:
        """Answer a program like `Graph.query`."""
        ...

    def match(
        self,
        pattern: Any,
        *,
        k: int | None = 3,
        group_by: Any = None,
        stretch: bool = False,
        leave_out: bool = False,
        limit: int | None = None,
    ) -> Answer:
        """Search for a pattern like `Graph.match`."""
        ...

    def _store_of(self, engine: str | None) -> Store: ...

    def _survey(self) -> Survey: ...
