"""Whether an answer fits its question: by the type of value that the question asks for, and by the names in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import date
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Literal

from condgraph.ask.demos import names_of
from condgraph.ask.programs import counts_nothing
from condgraph.ask.prompt import NAMES, asked_about
from condgraph.ask.records import english, foreign
from condgraph.engine.algebra import ById, ByName, Compare, Count, Names, Node, Union, postorder
from condgraph.engine.allen import Bounds
from condgraph.engine.errors import UnknownNameError
from condgraph.engine.facts import Entity
from condgraph.engine.values import Quantity, Time
from condgraph.names.vocabulary import bare, one_wrong
from condgraph.names.words import STOP, others, stem, words_of, written
from condgraph.patterns.families import STRONG, disagree, fits

if TYPE_CHECKING:
    from condgraph.ask.prompt import KnownNames, Mention
    from condgraph.ask.records import Attempt
    from condgraph.engine.answer import Answer

#: What a question asks for.
Wanted = Literal["time", "number", "measure", "person", "place", "which"]
#: How a question begins that asks for a type of value; other questions ask for anything.
_BEFORE: Final = r"(?:(?:and|so|but|then|in|on|at|by|since|until|from|to|for|about)\s+){0,2}"
_ASKS: Final[Mapping[Wanted, re.Pattern[str]]] = {
    "time": re.compile(_BEFORE + r"(?:when|(?:what|which)\s+(?:year|date|month|day|decade|century))\b", re.IGNORECASE),
    "number": re.compile(_BEFORE + r"how\s+many\b(?!\s+(?:times\s+)?(?:more|less))", re.IGNORECASE),
    "measure": re.compile(_BEFORE + r"how\s+(?:high|tall|deep|heavy|wide)\b", re.IGNORECASE),
    "person": re.compile(_BEFORE + r"whom?\b", re.IGNORECASE),
    "place": re.compile(_BEFORE + r"where\b", re.IGNORECASE),
    "which": re.compile(_BEFORE + r"which\s+(?!(?:number|percentage|rank|position|place|round|week|row)s?\b)", re.IGNORECASE),
}
_NAMES: Final = {
    "time": "when", "number": "how many", "measure": "for a measure", "person": "who", "place": "where", "which": "which",
}  # fmt: skip
#: A question for something, and one for yes or no.
_FOR_SOMETHING: Final = re.compile(r"\b(?:what|which|who|whom|whose|when|where|how)\b", re.IGNORECASE)
_YES_OR_NO: Final = re.compile(
    _BEFORE + r"(?:is|are|was|were|am|do|does|did|has|have|had|can|could|will|would|should|may|might|must)\b|.*\bwhether\b",
    re.IGNORECASE | re.DOTALL,
)
#: Words of questions for a number of things.
_COUNTS: Final = re.compile(
    r"\b(?:many|much|long|numbers?|counts?|counted|total|totals|amounts?|times|often|sum|quantity|frequen\w+)\b|#", re.IGNORECASE
)
#: A question for what is more or less than a number.
_BEYOND: Final = re.compile(r"\b(?:than|over|above|below|under|at\s+least|at\s+most)\s+(\d[\d,.]*\d|\d)(?!\w)", re.IGNORECASE)
#: A year that a question says, words for what holds today, and what a plan has that looks at times.
_YEAR: Final = re.compile(r"(?<![\w.,-])(?:1\d|20)\d\d(?![\w,%-]|\.\d)")
_TODAY: Final = re.compile(r"\b(?:now|current(?:ly)?|nowadays|today|at present|presently)\b", re.IGNORECASE)
_LOOKS_AT_TIME: Final = re.compile(r"\b(?:[12]\d{3}|times?|dates?|years?|since|until|from|start|end)\b", re.IGNORECASE)
#: Lines of a program that say what is looked for, and look for nothing.
_REMARKS: Final = re.compile(r"^[ \t]*+(?:Step[ \t]*\d|//).*", re.IGNORECASE | re.MULTILINE)
_NUMBER_WORDS: Final = frozenset(
    "no none zero one two three four five six seven eight nine ten eleven twelve hundred thousand million once twice".split()  # noqa: SIM905
)
_TIME_WORDS: Final = re.compile(
    r"\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|mon|tue|wed|thu|fri|sat|sun|spring|summer|autumn|fall|winter|today|present"
    r"|never|unknown|season|century|ancient)",
    re.IGNORECASE,
)
#: A month with its day, its year, or both.
_MONTH: Final = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}"
_DATE: Final = re.compile(
    rf"\b(?:\d{{1,2}}(?:st|nd|rd|th)? (?:of )?{_MONTH}(?:,? \d{{1,4}})?|{_MONTH} \d{{1,4}}(?:st|nd|rd|th)?(?:,? \d{{1,4}})?)\b",
    re.IGNORECASE,
)
#: Values of an answer, and texts of a plan, that are looked at.
_MOST: Final = 50
_MOST_TEXTS: Final = 2_000
#: Kinds of names that are predicates.
_PREDICATES: Final = frozenset(("relation", "attribute", "predicate", "relationship type", "property", "column"))
#: Letters of a word of which one may be wrong, and those at the beginning that a word and another form of it share.
_LONG: Final = 4
_BEGINNING: Final = 3
#: How well a predicate fits a question that speaks of it, and one that does not (`KnownNames.asked_for`).
_ASKED, _UNASKED = 0.7, 0.2


def wanted(question: str) -> Wanted | None:
    """What type of value a question asks for, by its first words; None where these do not say.

    >>> wanted("When was she born?"), wanted("And in which year?"), wanted("How many are there?"), wanted("Name them.")
    ('time', 'time', 'number', None)
    """
    text = question[:200].strip()
    return next((kind for kind, asks in _ASKS.items() if asks.match(text)), None)


def doubts(
    question: str, mentions: Sequence[Mention], attempt: Attempt, known: KnownNames, before: str = "", today: date | None = None
) -> list[str]:
    """Why an answer may be one to another question, a sentence each for the model and the user; none where it
    fits. `before` is what was said before in a conversation, `today` the date.
    """
    answer = attempt.answer
    if answer is None:
        return []
    result = []
    kind = wanted(question)
    if why := misfit(question, answer):
        result.append(why)
    elif (
        kind is None
        and english(question)
        and _FOR_SOMETHING.search(question)
        and not _YES_OR_NO.match(question)
        and _one(answer) in ("True", "False")
    ):
        result.append("the question asks for more than yes or no, which the program gives")
    elif kind is None and english(question) and isinstance(getattr(answer, "plan", None), Count) and not _COUNTS.search(question):
        result.append("the program counts, and the question does not ask for a number")
    if counts_nothing(answer):
        result.append("the program counts what follows from nothing, which a name or a condition in it may be the reason for")
    named = [item for item in mentions if item.names and item.end > item.start and (item.exact or len(item.names) == 1)]
    # What is written with a capital is a name; small words may be names by chance.
    named = [item for item in named if any(letter.isupper() or letter.isdigit() for letter in item.text)]
    # A program writes 11 March 1992 as 1992-03-11.
    dates = [found.span() for found in islice(_DATE.finditer(question), _MOST)]
    named = [item for item in named if not any(start <= item.start and item.end <= end for start, end in dates)]
    # A program may follow several that "they" refers to from what they were found by.
    named = [item for item in named if len(item.names) == 1 or item.text in question]
    if named and not _uses(attempt, named):
        names = " or ".join(repr(item.text) for item in named[:3])
        result.append(f"the answer does not depend on {names}, which the question names")
    plan = getattr(answer, "plan", None)
    if plan is not None and not result:
        looked = (
            _itself(question, mentions, plan),
            _unnamed(question, before, mentions, plan, known),
            _unasked(question, mentions, answer, known),
            _equal(question, plan),
            _other_time(question, attempt, today or date.today()),
        )
        result += filter(None, looked)
    return result


def misfit(question: str, answer: Answer) -> str:
    """That an answer is of another type than the question asks for; "" where it is none."""
    kind = wanted(question)
    gave = "" if kind is None else _misfit(kind, answer)
    return f"the question asks {_NAMES[kind]}, and the program gives {gave}" if kind is not None and gave else ""


def _one(answer: Answer) -> str:
    """The only value of an answer, a number, True or False; "" where it is another."""
    value = answer.values[0] if len(answer.values) == 1 else ""
    value = value[0] if isinstance(value, tuple) and len(value) == 1 else value
    return str(value) if type(value) in (int, bool) else ""


def _compared(plan: Node) -> Iterator[Compare]:
    """What a plan compares values with."""
    for node in postorder(plan):
        for item in fields(node):  # type: ignore[arg-type]
            value = getattr(node, item.name)
            if isinstance(value, Compare):
                yield value


def _equal(question: str, plan: Node) -> str:
    """Why a program is about something else: it looks for a number, and the question for what is more or less."""
    beyond = _BEYOND.search(question)
    compared = list(islice(_compared(plan), _MOST)) if beyond is not None else []
    if beyond is None or any(one.operator not in ("=", "!=") for one in compared):
        return ""
    digits = re.sub(r"\D", "", beyond[1])
    found = any(digits == re.sub(r"\D", "", str(one.value)) for one in compared if not isinstance(one.value, str))
    return f"the program looks for {beyond[1]!r} itself, and the question for what is {beyond[0]!r}" if found else ""


def _other_time(question: str, attempt: Attempt, today: date) -> str:
    """Why an answer is of another time than the question: the program looks at no time, and a statement of its answer did not
    hold in a year that the question says, or does not hold today.
    """
    said = list(dict.fromkeys(found[0] for found in islice(_YEAR.finditer(question), _MOST)))
    now = _TODAY.search(question) if not said and english(question) else None
    program = _REMARKS.sub("", attempt.program)
    if (not said and now is None) or attempt.answer is None or _LOOKS_AT_TIME.search(program):
        return ""
    times = [Bounds.of(Time.parse(text)) for text in said or [today.isoformat()]]
    for fact in islice(attempt.answer.evidence, _MOST):
        held = Bounds.stated(fact.qualifiers)
        if held is not None and all(held.together(time) is False for time in times):
            when = ", ".join(f"{name} {value}" for name, value in fact.qualifiers)
            what = f"about {said[0]}" if said else f"what is {now[0]!r}" if now is not None else ""
            return f"the question asks {what}, and the program looks at no time: its answer rests on a statement with {when}"
    return ""


def _itself(question: str, mentions: Sequence[Mention], plan: Node) -> str:
    """Why a program answers nothing: it gives the only name that the question says, and asks nothing of it. Of several names
    one may be what is asked for.
    """
    named = [item for item in mentions if item.names and item.text in question]
    if len(named) != 1 or not all(isinstance(node, (Names, ByName, ById, Union)) for node in postorder(plan)):
        return ""
    return f"the program gives {named[0].text!r} itself, and asks nothing of it"


def _unnamed(question: str, before: str, mentions: Sequence[Mention], plan: Node, known: KnownNames) -> str:
    """Why a program is about something else: all names and texts that it looks for are others than those of the question.
    A question of a word or two says too little, and one in another language may have other names.
    """
    if not english(question) or len([word for word in words_of(question) if word not in STOP]) <= 1:
        return ""
    concepts = set(known.concepts.names)
    looked: dict[str, None] = {}
    for node in postorder(plan):
        if isinstance(node, ByName):
            looked |= dict.fromkeys(name for name in node.names if name not in concepts)
    looked |= {one.value: None for one in _compared(plan) if one.operator == "=" and isinstance(one.value, str)}
    # Small words may be values that stand for what the question says, such as "female" for women.
    names = [name for name in islice(looked, _MOST) if any(letter.isupper() for letter in name)]
    if not names:
        return ""
    text = f"{question} {before}"
    whole = bare(text).replace(" ", "")
    words = [word for part in (text, *(name for item in mentions for name in item.names)) for word in words_of(part)]
    stems, begin = {stem(word) for word in words}, {word[:_BEGINNING] for word in words if len(word) >= _BEGINNING}
    if any(_has(name, whole, words, stems, begin) for name in names):
        return ""
    return f"the program looks for {' and '.join(map(repr, names[:3]))}, which the question does not name"


def _has(name: str, whole: str, words: Sequence[str], stems: set[str], begin: set[str]) -> bool:
    """Whether a text has a word of a name, or one that begins so, or is it but for a letter; or the name as one word."""
    own = words_of(name)
    own = [word for word in own if word not in STOP] or own
    if all(len(word) < _BEGINNING or not word.isalpha() or word in _NUMBER_WORDS for word in own):
        return True
    return bare(name).replace(" ", "") in whole or any(
        stem(word) in stems
        or {stem(other) for other in others(word)} & stems
        or word[:_BEGINNING] in begin
        or (len(word) > _LONG and any(one_wrong(word, other) for other in words if len(other) > _LONG))
        for word in own
    )  # fmt: skip


def _unasked(question: str, mentions: Sequence[Mention], answer: Answer, known: KnownNames) -> str:
    """Why a program is about something else: the question speaks of a predicate, and of none of those that the program has.
    Of tables it is not judged: what a question says stands in their cells more than in the names of columns; nor of questions
    in other languages, whose words for what the graph calls otherwise are not known.
    """
    if foreign(question):
        return ""
    columns = {place for source in known.linker.tables for place in known.of_source(source)}
    own = [name for name in names_of(answer, known) if name in known.places]
    if not own or any(known.places[name] in columns or bare(name) in NAMES for name in own):
        return ""
    # What the question says may be a name of the graph as well, such as the job "executive producer".
    said = words_of(question)
    if any(_said(_content(name), said) for name in own):
        return ""
    scores = known.asked_for(asked_about(question, mentions))
    best = int(scores.argmax())
    if scores[best] < _ASKED or any(scores[known.places[name]] >= _UNASKED for name in own):
        return ""
    # "Which countries are in Asia" asks for things of this kind, and not for their predicate `country`.
    if known.predicates.names[best] in known.concepts.names:
        return ""
    instead = " and ".join(map(repr, own[:3]))
    return f"the question speaks of {known.predicates.names[best]!r}, and the program has {instead} in its place"


def taken_instead(
    question: str, mentions: Sequence[Mention], attempt: Attempt, before: Sequence[Attempt], known: KnownNames
) -> list[str]:
    """Why the predicates that a program has in place of unknown ones of the attempts before may mean something else,
    a sentence each: the question does not ask for them, and they are not the unknown one with a letter wrong or in
    everyday words.

    A model takes what it is offered, as `date of birth` for `date of death`.
    """
    unknown = dict.fromkeys(
        item.failure.name for item in before
        if isinstance(item.failure, UnknownNameError) and item.failure.kind in _PREDICATES and item.stage == "resolving"
    )  # fmt: skip
    if not unknown or attempt.answer is None:
        return []
    # What the first program had beside the unknown one takes the place of nothing.
    first = before[0].program
    for name in unknown:
        first = first.replace(name, " ")
    fresh = [
        name for name in names_of(attempt.answer, known)
        if name in known.places and (name not in first or attempt.program.count(name) > first.count(name))
    ]  # fmt: skip
    # A qualifier that was taken for a predicate, or an attribute for a relation, may still be what is asked for.
    missing = [name for name in unknown if name not in attempt.program]
    words = words_of(asked_about(question, mentions))
    # Nothing found where something else was looked for is as good as never to be true.
    nothing = attempt.answer.values in ([0], [False])
    return [
        f"the graph has no {name!r}, and the program has {' and '.join(map(repr, fresh[:3]))} in its place, "
        "which the question does not ask for"
        for name in missing
        if fresh
        and not any(
            _says_the_same(name, other) or (not nothing and other not in first and _asks_for(words, other, name)) for other in fresh
        )
    ]


def _says_the_same(name: str, other: str) -> bool:
    """Whether two predicates are the same but for one letter of a word, or have the same words or everyday words for
    them.
    """
    # Weight is no height with a letter wrong.
    if one_wrong(name.casefold(), other.casefold()) and name[:1].casefold() == other[:1].casefold():
        return True
    mine, others_ = _content(name), _content(other)
    return bool(mine and others_) and _said(mine, others_) and _said(others_, mine) and not disagree(name, other)


def _asks_for(words: Sequence[str], other: str, name: str) -> bool:
    """Whether a question has each word of a predicate, or words of its family and none of that of the unknown one; or
    everyday words for it, where the unknown predicate is of no other family.
    """
    content, stems = _content(other), {stem(word) for word in words}
    # A question that says "founded" may ask for the unknown `date founded`, and not for `founded`.
    if content and all(stem(word) in stems for word in content) and not set(content) < set(_content(name)):
        return True
    families, unknown = _families(" ".join(words)), _families(" ".join(_content(name)))
    # "When was she born" speaks of birth, and not of an unknown date of death.
    if unknown and not unknown & families and families & _families(" ".join(content)):
        return True
    rest = [word for word in content if not _families(word) & families]
    return bool(content) and _said(rest, words) and not disagree(name, other)


def _families(text: str) -> set[str]:
    """The families of predicates that a text speaks of."""
    return {family for family, fit in fits(text).items() if fit >= STRONG}


def _content(name: str) -> list[str]:
    """The words of a predicate that say something."""
    words = words_of(" ".join(written(name)))
    return [word for word in words if word not in STOP] or words


def _said(words: Sequence[str], by: Sequence[str]) -> bool:
    """Whether each word is among others, but for its ending, a letter, or as an everyday word for it."""
    stems = {stem(word) for word in by}
    return all(
        stem(word) in stems
        or {stem(other) for other in others(word)} & stems
        or (len(word) > _LONG and any(one_wrong(word, other) for other in by if len(other) > _LONG))
        for word in words
    )


def _misfit(kind: Wanted, answer: Answer) -> str:
    """What an answer gives where the question asks for another type; "" where it fits or is not sure to
    misfit.
    """
    rows = answer.values[:_MOST]
    cells = [cell for row in rows for cell in (row if isinstance(row, tuple) and answer.columns else (row,)) if cell is not None]
    if not cells:
        return ""
    if all(isinstance(cell, bool) for cell in cells):
        return "yes or no"
    numbers = [cell for cell in cells if isinstance(cell, (int, float, Quantity)) and not isinstance(cell, bool)]
    texts = [cell.name if isinstance(cell, Entity) else str(cell) for cell in cells]
    digits = any(letter.isdigit() for text in texts for letter in text)
    if kind in ("person", "place"):
        if len(numbers) == len(cells):
            return "a number"
        return "a time" if all(isinstance(cell, Time) for cell in cells) else ""
    if kind == "time":
        if all(isinstance(cell, Quantity) and cell.unit for cell in cells):
            return "a number with a unit"
        return "" if digits or any(_TIME_WORDS.search(text) for text in texts) else "names"
    if kind in ("measure", "which") and all(type(cell) is int for cell in cells):
        return "a count"
    if kind == "which":
        return ""
    return "" if digits or any(set(words_of(text)) & _NUMBER_WORDS for text in texts) else "names"


def _uses(attempt: Attempt, named: Sequence[Mention]) -> bool:
    """Whether the part of a program that its answer depends on has a word of one of these names."""
    assert attempt.answer is not None
    lowered = attempt.lowered
    texts: Iterable[str] = [attempt.program]
    if lowered is not None and any("does not need" in warning for warning in lowered.warnings + list(attempt.answer.warnings)):
        texts = _texts(lowered.plan)
    said = {stem(word) for text in texts for word in words_of(text)}
    for item in named:
        words = {stem(word) for text in (item.text, *item.names) for word in words_of(text)}
        if (words - STOP or words) & said:
            return True
        # Scripts without spaces have no words.
        if any(name in text for text in texts for name in item.names):
            return True
    return False


def _texts(plan: Node) -> list[str]:
    """The texts in a plan: names, ids and values."""
    result: list[str] = []
    for node in postorder(plan):
        for item in fields(node):  # type: ignore[arg-type]
            result += _in(getattr(node, item.name))
            if len(result) > _MOST_TEXTS:
                return result
    return result


def _in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (Quantity, Time)):
        yield str(value)
    elif isinstance(value, (tuple, list, frozenset)):
        for item in value:
            yield from _in(item)


# -- confidence ----------------------------------------------------------------------------------------


#: How often an answer is right, of those that are doubted, and of the others by how well the predicates of the
#: program fit the question, at least so well. `benchmarks/ask_confidence.py` counts it over half of its questions.
DOUBTED: Final = 0.01
RIGHT: Final = ((0.75, 0.85), (0.5, 0.71), (0.0, 0.44))


def fit(question: str, mentions: Sequence[Mention], attempt: Attempt, known: KnownNames) -> float:
    """How well the predicates of a program fit the words of a question, next to those that fit best: from 0 to 1."""
    scores = known.asked_for(asked_about(question, mentions))
    places = [known.places[name] for name in names_of(attempt.answer, known) if name in known.places]
    best = float(scores.max()) if len(scores) else 0.0
    if not places or best <= 0:
        return 0.0
    return sum(float(scores[place]) for place in places) / (best * len(places))


def confidence(fits: float, against: Sequence[str]) -> float:
    """How likely an answer is right whose program fits so well, and against which so much speaks."""
    return DOUBTED if against else next(share for least, share in RIGHT if fits >= least)
