"""Records of asking in words: the options of a question, its steps, attempts and outcome."""

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
# A sentence is used only if it cites statements that the model was shown, and if every number and every name in it
# stands in these, in the answer or in the question. Numbers are compared as the language of the question writes them:
# 8.091 in German is 8,091. In languages that write nouns with a capital, only names of the graph count as names.


#: Values in the text, statements that are cited, and statements searched for those.
MOST_CITED_VALUES: Final = 20
MOST_CITED: Final = 10
_MOST_SEEN: Final = 200
_CITED: Final = re.compile(r"\[(\d{1,4}(?:\s*,\s*\d{1,4})*)\]")
#: A sentence with what it cites, before its end or behind it; a text without either is one.
_SENTENCE: Final = re.compile(r".*?(?:\[[\d, ]{1,40}\] ?[.!?。！？]+|[.!?。！？]+ ?(?:\[[\d, ]{1,40}\] ?)+|$)")
#: Spaces but those within numbers.
_SPACES: Final = re.compile(r"[ \t\r\n\f\v]+")
#: Characters of a text by a model that are looked at.
_LONGEST: Final = 4_000
#: A number with the marks between its digits.
_NUMBER: Final = re.compile(r"\d+(?:[.,'’ \u00a0\u202f]\d{3}(?!\d))*(?:[.,]\d+)?")
#: Words of which an English question has one, those that other languages have as well, and common words of these.
_ENGLISH: Final = frozenset("what which who whom whose when where why how is are was were does did has have the list name".split())  # noqa: SIM905
_SHARED: Final = frozenset("is are was has list name".split())  # noqa: SIM905
_OF_OTHERS: Final = """der die das den dem des ein eine ist sind wer wie wo wann welche welcher welches welchem wurde hat von und im
het een van de wat waar welke le la les du des est quel quelle qui ou el los las del es que cual quien donde il di che quale os da
do em qual"""
_OTHERS: Final = frozenset(_OF_OTHERS.split())
#: Letters of languages that write a point before decimals.
_POINT: Final = re.compile(r"[\u0900-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_MONTHS: Final = "january february march april may june july august september october november december".split()  # noqa: SIM905


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of an answer in words, and the statements that it rests on."""

    text: str
    statements: tuple[str, ...]


def plain(answer: Answer) -> tuple[str, tuple[str, ...]]:
    """The values of an answer with the numbers of statements, and these statements."""
    texts = answer.texts
    if not texts:
        return "", ()
    statements = cited(answer)
    said = []
    for text in texts[:MOST_CITED_VALUES]:
        numbers = [number for number, item in enumerate(statements, start=1) if _appears(text, item)][:3]
        said.append(text + "".join(f" [{number}]" for number in numbers))
    more = f" and {len(texts) - MOST_CITED_VALUES} more" if len(texts) > MOST_CITED_VALUES else ""
    if not any("[" in item for item in said) and statements:
        # A count, or a verification: no statement contains it.
        said[-1] += " " + "".join(f"[{number}]" for number in range(1, min(len(statements), 3) + 1))
    return "; ".join(said) + more, tuple(statements)


def cited(answer: Answer) -> list[str]:
    """The statements that show the values of an answer; the first ones where none does."""
    seen = [str(item) for item in islice(answer.evidence, _MOST_SEEN)]
    texts = answer.texts[:MOST_CITED_VALUES]
    showing = [item for item in seen if any(_appears(text, item) for text in texts)]
    return list(dict.fromkeys([*showing, *seen]))[:MOST_CITED]


def renumbered(text: str, by: int) -> str:
    """A text whose numbers of statements are so much higher."""
    return _CITED.sub(lambda found: f"[{', '.join(str(int(number) + by) for number in found[1].split(','))}]", text)


def facts_of(answer: Answer, statements: Sequence[str]) -> str:
    """What a model is shown for an answer in words: values and numbered statements, a JSON string each."""
    values = unmarked(json.dumps([shortened(text, 200) for text in answer.texts[:MOST_CITED_VALUES]], ensure_ascii=True))
    lines = [f"[{number}] {quoted(item, 300)}" for number, item in enumerate(statements, start=1)]
    return "\n".join([f"Answer: {values}", *lines])


def sentences(text: str, statements: Sequence[str]) -> tuple[Sentence, ...]:
    """The sentences of a text with numbers of statements in brackets, each with the statements that it cites."""
    result = []
    for part in parts_of(text):
        numbers = dict.fromkeys(_numbers(part))
        result.append(Sentence(part, tuple(statements[number - 1] for number in numbers if 0 < number <= len(statements))))
    return tuple(result)


def holding(text: str, question: str, answer: Answer, statements: Sequence[str], known: KnownNames | None) -> tuple[str, list[str]]:
    """The sentences of a text by a model that hold, and why others do not; "" where they say no value of the answer."""
    kept, wrong = [], []
    for part in parts_of(text):
        if why := why_not(part, question, answer, statements, known):
            wrong.append(why)
        else:
            kept.append(part)
    result = " ".join(kept)
    values = answer.texts[:MOST_CITED_VALUES]
    if not text.strip():
        wrong.append("it is empty")
    elif kept and values and not any(_said(value, result, question) for value in values):
        return "", [*wrong, "it says no value of the answer"]
    return result, wrong


def parts_of(text: str) -> list[str]:
    """The sentences of a text; what cites nothing belongs to the sentence behind it."""
    line = _SPACES.sub(" ", text[:_LONGEST])
    return [part for found in _SENTENCE.finditer(line) if (part := found[0].strip())]


def _numbers(part: str) -> list[int]:
    return [int(number) for found in _CITED.finditer(part) for number in found[1].split(",")]


def why_not(part: str, question: str, answer: Answer, statements: Sequence[str], known: KnownNames | None) -> str:
    """Why a sentence does not hold; "" where it does."""
    numbers = _numbers(part)
    if not numbers:
        return f"{shortened(part, 80)!r} cites no statement"
    wrong = [number for number in numbers if not 1 <= number <= len(statements)]
    if wrong:
        return f"it cites [{wrong[0]}], and {len(statements)} statements were shown"
    places = [question, *(statements[number - 1] for number in numbers), *answer.texts[:MOST_CITED_VALUES]]
    body = _CITED.sub(" ", part)
    comma = _decimal_comma(question)
    there = {number for place in places for number in _values(place, comma=False)}
    for found in _NUMBER.finditer(body):
        if found[0] not in there and not there & _values(found[0], comma=comma):
            return f"it says {found[0]!r}, which is neither in the answer nor in the statements that it cites"
    words = {stem(word) for place in places for word in words_of(place)}
    nouns = _has_nouns(question, words_of(" ".join(places[1:])))
    for found in WORD.finditer(body):
        word, before = found[0], body[: found.start()].rstrip()
        if not word[:1].isupper() or stem(fold(word)) in words or word.casefold() in STOP:
            continue
        if word.casefold() in _MONTHS and str(_MONTHS.index(word.casefold()) + 1) in there:
            continue
        # The first word of a sentence, or a noun, may be any word but a name of the graph.
        named = known is not None and bool(known.linker.entities.folded(word))
        if named or not (nouns or not before or before[-1:] in ".!?:。！？"):
            return f"it says {word!r}, which is neither in the answer nor in the statements that it cites"
    return ""


def _said(value: str, text: str, question: str) -> bool:
    """Whether a text has a value, as the language of the question writes its numbers."""
    if _appears(value, text):
        return True
    numbers = list(_values(value, comma=False))
    return bool(numbers) and set(numbers) <= _values(text, comma=_decimal_comma(question))


def _decimal_comma(question: str) -> bool:
    """Whether the language of a question has a comma before decimals, as most that have Latin, Greek or Cyrillic letters
    and are not English.

    >>> _decimal_comma("Wie hoch ist er?"), _decimal_comma("How high is it?"), _decimal_comma("有多高？")
    (True, False, False)
    """
    return not english(question) and not _POINT.search(question)


def english(question: str) -> bool:
    """Whether a question is an English one, by its words.

    >>> english("Who directed Das Boot?"), english("Was ist die Hauptstadt?"), english("Wat is er?"), english("Capital of Nepal")
    (True, False, False, False)
    """
    words = set(words_of(question))
    own = words & _ENGLISH
    return bool(own) and len(own - _SHARED) + len(own) > len(words & _OTHERS)


def foreign(question: str) -> bool:
    """Whether a question is one in another language than English, by its words or its letters.

    >>> foreign("Wer schrieb Faust?"), foreign("尼泊尔的首都是什么？"), foreign("Capital of Nepal"), foreign("Who wrote Faust?")
    (True, True, False, False)
    """
    others = bool(_OTHERS & set(words_of(question)))
    return not english(question) and (others or any(letter > "\u036f" and letter.isalpha() for letter in question))


def _has_nouns(question: str, named: Sequence[str]) -> bool:
    """Whether a question writes a word with a capital that is no name, as German does."""
    names = set(named)
    return any(
        found[0][:1].isupper() and question[: found.start()].strip() and fold(found[0]) not in names
        for found in WORD.finditer(question)
    ) and not english(question)


def _values(text: str, *, comma: bool) -> set[str]:
    """The numbers of a text, normalised; a date has three.

    >>> _values("8,091.50 m", comma=False), _values("8.091,5", comma=True), sorted(_values("1917-11-09", comma=False))
    ({'8091.5'}, {'8091.5'}, ['11', '1917', '9'])
    """
    return set(_read(text, comma))


def _read(text: str, comma: bool) -> Iterator[str]:
    mark, other = (",", ".") if comma else (".", ",")
    for found in _NUMBER.finditer(text):
        whole, _, rest = found[0].partition(mark)
        digits = re.sub(rf"[{re.escape(other)}'’ \u00a0\u202f]", "", whole)
        with_rest = f"{digits}.{rest}" if rest.isdigit() else digits
        try:
            yield f"{Decimal(with_rest).normalize():f}"
        except InvalidOperation:
            yield found[0]


def _appears(text: str, statement: str) -> bool:
    """Whether a value appears in a text as whole words."""
    wanted, place = fold(text), fold(statement)
    at = place.find(wanted)
    while wanted and at >= 0:
        before, after = place[at - 1 : at], place[at + len(wanted) : at + len(wanted) + 1]
        if not (before.isalnum() or after.isalnum()):
            return True
        at = place.find(wanted, at + 1)
    return False


# -- options, steps, attempts and the outcome --------------------------------------------------------


#: How a question ended: with an answer; with an answer to a program in which a name was read as
#: another one, or that does not fit the question; with a program that ran without a result; with a
#: name whose meaning the user has to choose; without any program that ran; with a model that
#: declined; with a spent budget.
Status = Literal["answered", "doubtful", "empty", "ambiguous", "failed", "abstained", "budget"]
#: Where an attempt failed.
Stage = Literal["retrieval", "writing", "resolving", "running"]
STAGES: Final[tuple[Stage, ...]] = ("retrieval", "writing", "resolving", "running")
#: The languages of programs.
Via = Literal["auto", "query", "kopl", "cypher", "pattern"]
VIAS: Final[tuple[Via, ...]] = get_args(Via)
#: When a question is asked in parts: never, where its own answer is none or doubtful, or always.
Parts = Literal["never", "doubt", "always"]
PARTS: Final[tuple[Parts, ...]] = get_args(Parts)


@dataclass(frozen=True, slots=True)
class AskStep:
    """A step: its `name` ("look", "excerpt", "write", "read", "resolve", "run", "vote", "say" or "split"), how
    many `seconds` it took, and a line `about` its result.
    """

    name: str
    seconds: float
    about: str = ""

    def __str__(self) -> str:
        return f"{self.name} ({1000 * self.seconds:.1f} ms)" + (f": {self.about}" if self.about else "")


@dataclass(frozen=True, slots=True)
class AskText:
    """A piece of `text` as a model writes it: of a reply with a program (`step` is "write"), or a sentence of the
    answer in words that holds ("say"). `begins`: it is the first piece of the reply of this `sample`; an earlier
    reply of the same step and sample does not count any more.
    """

    step: str
    text: str
    sample: int = 0
    begins: bool = False

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Option:
    """One meaning of a name: its `key` (the id of an entity, or the name of a source), a line `about`
    it, and the `texts` of the answer with this meaning.
    """

    key: str
    name: str
    about: str
    texts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Choice:
    """A name with several meanings that lead to different answers. The user chooses one with
    `ask(..., choose={choice.name: option.key})`.
    """

    kind: Literal["entity", "source"]
    name: str
    options: tuple[Option, ...]

    def __str__(self) -> str:
        listed = "; ".join(f"{option.key}: {option.about}" if option.about else option.key for option in self.options)
        return f"which {self.kind} is meant by {self.name!r}: {listed}"


@dataclass(frozen=True, slots=True)
class Referent:
    """An entity of an earlier turn of a conversation: its name, and its id; "" where the turn has its name alone."""

    name: str
    id: str


@dataclass(frozen=True, slots=True)
class Reference:
    """A word of a question, from `start` to `end`, that refers to `entities` of an earlier turn of the
    conversation; `origin` says of which. `others` are those that it may refer to as well.
    """

    text: str
    start: int
    end: int
    entities: tuple[Referent, ...]
    origin: str
    others: tuple[Referent, ...] = ()

    def __str__(self) -> str:
        return f"{self.text!r} is {', '.join(repr(one.name) for one in self.entities)}, of {self.origin}"


@dataclass(frozen=True, slots=True)
class Draft:
    """A program with a name of the graph in place of an unknown one: the `unknown` name, the `name`, what the
    program gives, and why that may be an answer to another question.
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
    """A program by a model: the reply, the program in it, and its result. `stage` and `error` are
    where and why it failed, `feedback` what the model was told; `doubts` say why its answer may be one to
    another question, and `drafts` are the programs with names of the graph in place of an unknown one that
    give something, best first. `unfinished`: the deadline passed
    while the model wrote, or before its program had run.
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
    #: The error, and the plan of the program, for feedback.
    failure: CondgraphError | None = field(default=None, repr=False, compare=False)
    lowered: Lowered | None = field(default=None, repr=False, compare=False)
    #: The number of the sample, and of the retry, from 0.
    sample: int = 0
    number: int = 0
    unfinished: bool = False

    @property
    def gave(self) -> tuple[str, ...] | None:
        """The texts of its answer, in order; None where it did not run."""
        return None if self.answer is None else tuple(self.answer.texts)


@dataclass(frozen=True, slots=True)
class Vote:
    """An answer, as normalised and sorted texts, and how many samples gave it."""

    texts: tuple[str, ...]
    count: int


@dataclass(frozen=True, slots=True, repr=False)
class Asked:
    """The outcome of a question.

    `answer` has the typed values with program, trace and evidence; None where no program ran.
    `text` is the answer in words, with numbers of `citations`, which are statements. `attempts` are
    all programs, `votes` the answers of the samples, `steps` what was done and how long it took.
    `shown` is the data that a model was shown besides the prompt: to compute a function, or to put
    the answer into words. `reason` is why `via="auto"` took this language; "" where it was given.
    `references` are the words that refer to earlier turns of a conversation. `confidence` is the share of
    answers like this one that are right on the evaluation sets, from 0 to 1; None where there is no answer.
    `doubts` say why the answer may be one to another question. `parts` are the outcomes of the parts that the
    question was asked in; `answer` is that of the last one.
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
        """The texts of the answer; none where there is none."""
        return [] if self.answer is None else self.answer.texts

    @property
    def values(self) -> list[Any]:
        """The typed values of the answer; none where there is none."""
        return [] if self.answer is None else list(self.answer.values)

    @property
    def program(self) -> str:
        """The program that gave the answer."""
        return "" if self.answer is None else self.answer.program

    @property
    def evidence(self) -> Sequence[Any]:
        """The statements that the answer rests on, those of the last part first."""
        if self.parts:
            return tuple(dict.fromkeys(item for part in reversed(self.parts) for item in part.evidence))
        return () if self.answer is None else self.answer.evidence

    @property
    def sentences(self) -> tuple[Sentence, ...]:
        """The sentences of `text`, each with the statements that it rests on."""
        return sentences(self.text, self.citations)

    @property
    def failures(self) -> dict[Stage, int]:
        """How many attempts ended at each stage without an answer."""
        counted = Counter(attempt.stage for attempt in self.attempts if attempt.stage is not None)
        if self.status in ("failed", "abstained") and not counted and self.excerpt is not None and not self.excerpt.predicates:
            counted["retrieval"] = 1
        return {stage: counted[stage] for stage in STAGES if counted[stage]}

    @property
    def seconds(self) -> float:
        """Seconds of all steps."""
        return sum(step.seconds for step in self.steps)

    @property
    def overhead(self) -> float:
        """Seconds of all steps but those of the model."""
        return sum(step.seconds for step in self.steps if step.name not in ("write", "say"))

    def data(self) -> dict[str, Any]:
        """The outcome for JSON."""
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
        """The text, the choices or the status, and the warnings below it, a line each."""
        first = self.text or "\n".join(map(str, self.choices)) or self.status
        return "\n".join([first, *(f"warning: {warning}" for warning in self.warnings)])

    def __repr__(self) -> str:
        return f"<Asked: {self.status}, {shortened(str(self), 200)!r}>"

    def _repr_html_(self) -> str:
        """The answer, and how it came about, for notebooks."""
        rows = [(text,) for text in self.texts[: html.MOST_ROWS]]
        tables = [html.table("answers", ("answer",), rows, len(self.texts) - len(rows))] if rows else []
        tables += [html.table(str(choice), ("key", "about"), [(o.key, o.about) for o in choice.options]) for choice in self.choices]
        tables.append(
            html.table("steps", ("step", "ms", "about"), [(s.name, f"{1000 * s.seconds:.1f}", s.about) for s in self.steps])
        )
        return html.page(f"{self.status}: {self.question}", tables, warnings=self.warnings)


def _option(one: Option) -> dict[str, Any]:
    return {"key": one.key, "name": one.name, "about": one.about, "answers": list(one.texts)}


# -- options -----------------------------------------------------------------------------------------
# The options of a question, validated once.


#: Demonstrations in a prompt, and samples of one question.
MOST_DEMOS: Final = 8
MOST_SAMPLES: Final = 50
#: Tokens of the excerpt of the graph by default, and its share of a prompt.
EXCERPT: Final = 2_000
_EXCERPT_SHARE: Final = 0.4


@dataclass(frozen=True, slots=True)
class Standing:
    """What a word for an answer is in a plan, and how many entities these are."""

    entities: Entities
    size: int


@dataclass(frozen=True, slots=True)
class AskOptions:
    """As the parameters of `Graph.ask`."""

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
    #: Of a part: the outcomes of earlier ones, and the entities in them, by the words for them.
    answers: Mapping[str, Asked] = field(default_factory=dict)
    stands: Mapping[str, Standing] = field(default_factory=dict)
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
        for name, least, most in (("samples", 1, MOST_SAMPLES), ("retries", 0, 20), ("excerpt_tokens", 0, 10**6)):
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
        """The most tokens of the excerpt: as given, else two fifths of a prompt, 2,000 where that has no
        bound.
        """
        if self.excerpt_tokens is not None:
            return self.excerpt_tokens
        whole = self.budget.prompt_tokens
        return EXCERPT if whole is None else int(_EXCERPT_SHARE * whole)

    @property
    def heat(self) -> float:
        """The temperature: 0 for one sample, so that it is the likeliest program; 0.7 for several,
        so that they differ.
        """
        return self.temperature if self.temperature is not None else 0.0 if self.samples == 1 else 0.7


class Host(Protocol):
    """What `ask` needs of a graph."""

    place: str
    read_only: bool
    timeout: float | None

    @property
    def _directory(self) -> Path | None: ...

    @property
    def demos(self) -> Any:
        """Its demonstrations (`ask.demos.Demos`)."""
        ...

    @property
    def ask(self) -> Callable[..., Asked]:
        """As `Graph.ask`."""
        ...

    def query(self, program: Any, *, language: str | None = None, **options: Any) -> Answer:
        """As `Graph.query`."""
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
        """As `Graph.match`."""
        ...

    def _store_of(self, engine: str | None) -> Store: ...

    def _survey(self) -> Survey: ...
