"""Whether an answer fits its question, judged by the type of value that is asked for and by the names in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import date
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Literal

from condgraph.ask.demos import names_of
from condgraph.ask.programs import counts_nothing
from condgraph.ask.prompt import NAMES, without_names
from condgraph.ask.records import english, foreign
from condgraph.engine.algebra import ById, ByName, Compare, Count, Names, Node, Pattern, Union, postorder
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
#: The beginnings of questions that ask for a certain type of value. Other questions may ask for anything.
_BEFORE: Final = r"(?:(?:and|so|but|then|in|on|at|by|since|until|from|to|for|about)\s+){0,2}"
_ASKS: Final[Mapping[Wanted, re.Pattern[str]]] = {
    "time": re.compile(_BEFORE + r"(?:when|(?:what|which)\s+(?:year|date|month|day|decade|century))\b", re.IGNORECASE),
    "number": re.compile(_BEFORE + r"how\s+many\b(?!\s+(?:times\s+)?(?:more|less))", re.IGNORECASE),
    "measure": re.compile(_BEFORE + r"how\s+(?:high|tall|deep|heavy|wide)\b", re.IGNORECASE),
    "person": re.compile(_BEFORE + r"whom?\b", re.IGNORECASE),
    "place": re.compile(_BEFORE + r"where\b", re.IGNORECASE),
    "which": re.compile(_BEFORE + r"which\s+(?!(?:number|percentage|rank|position|place|round|week|row)s?\b)", re.IGNORECASE),
}
_QUESTION_WORDS: Final = {
    "time": "when", "number": "how many", "measure": "for a measure", "person": "who", "place": "where", "which": "which",
}  # fmt: skip
#: Questions for something, and yes-or-no questions.
_FOR_SOMETHING: Final = re.compile(r"\b(?:what|which|who|whom|whose|when|where|how)\b", re.IGNORECASE)
_YES_OR_NO: Final = re.compile(
    _BEFORE + r"(?:is|are|was|were|am|do|does|did|has|have|had|can|could|will|would|should|may|might|must)\b|.*\bwhether\b",
    re.IGNORECASE | re.DOTALL,
)
#: Words in questions for a number of things.
_COUNT_WORDS: Final = re.compile(
    r"\b(?:many|much|long|numbers?|counts?|counted|total|totals|amounts?|times|often|sum|quantity|frequen\w+)\b|#", re.IGNORECASE
)
#: A comparison with a number in a question.
_COMPARISON: Final = re.compile(r"\b(?:than|over|above|below|under|at\s+least|at\s+most)\s+(\d[\d,.]*\d|\d)(?!\w)", re.IGNORECASE)
#: A year in a question, words for the present, and signs that a program considers times.
_YEAR: Final = re.compile(r"(?<![\w.,-])(?:1\d|20)\d\d(?![\w,%-]|\.\d)")
_TODAY: Final = re.compile(r"\b(?:now|current(?:ly)?|nowadays|today|at present|presently)\b", re.IGNORECASE)
_LOOKS_AT_TIME: Final = re.compile(r"\b(?:[12]\d{3}|times?|dates?|years?|since|until|from|start|end)\b", re.IGNORECASE)
#: Lines of a program that are only remarks.
_REMARKS: Final = re.compile(r"^[ \t]*+(?:Step[ \t]*\d|//).*", re.IGNORECASE | re.MULTILINE)
_NUMBER_WORDS: Final = frozenset(
    "no none zero one two three four five six seven eight nine ten eleven twelve hundred thousand million once twice".split()  # noqa: SIM905
)
_TIME_WORDS: Final = re.compile(
    r"\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|mon|tue|wed|thu|fri|sat|sun|spring|summer|autumn|fall|winter|today|present"
    r"|never|unknown|season|century|ancient)",
    re.IGNORECASE,
)
#: A month with its day, year, or both.
_MONTH: Final = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}"
_DATE: Final = re.compile(
    rf"\b(?:\d{{1,2}}(?:st|nd|rd|th)? (?:of )?{_MONTH}(?:,? \d{{1,4}})?|{_MONTH} \d{{1,4}}(?:st|nd|rd|th)?(?:,? \d{{1,4}})?)\b",
    re.IGNORECASE,
)
#: How many values of an answer, and how many texts of a plan, are examined.
_MAX_VALUES: Final = 50
_MAX_TEXTS: Final = 2_000
#: The kinds of names that are predicates.
_PREDICATES: Final = frozenset(("relation", "attribute", "predicate", "relationship type", "property", "column"))
#: Words longer than this may have one wrong letter, and the number of first letters that forms of a word share.
_LONG: Final = 4
_BEGINNING: Final = 3
#: How well a predicate fits a question that mentions it, and one that does not (`KnownNames.predicate_scores`).
_ASKED, _UNASKED = 0.7, 0.2


def wanted(question: str) -> Wanted | None:
    """Return what type of value a question asks for by its first words, or None if they do not tell.

    >>> wanted("When was she born?"), wanted("And in which year?"), wanted("How many are there?"), wanted("Name them.")
    ('time', 'time', 'number', None)
    """
    text = question[:200].strip()
    return next((kind for kind, asks in _ASKS.items() if asks.match(text)), None)


def doubts(
    question: str, mentions: Sequence[Mention], attempt: Attempt, known: KnownNames, before: str = "", today: date | None = None
) -> list[str]:
    """Return why an answer may belong to another question, one sentence for each reason.

    The sentences are for the model and the user. There are none if the answer fits. `before` is the earlier
    text of a conversation, and `today` is the date.
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
        and _only_value(answer) in ("True", "False")
    ):
        result.append("the question asks for more than yes or no, which the program gives")
    elif (
        kind is None
        and english(question)
        and isinstance(getattr(answer, "plan", None), Count)
        and not _COUNT_WORDS.search(question)
    ):
        result.append("the program counts, and the question does not ask for a number")
    if counts_nothing(answer):
        result.append("the program counts an empty set, perhaps because of a name or a condition in it")
    named = [item for item in mentions if item.names and item.end > item.start and (item.exact or len(item.names) == 1)]
    # Words with a capital are names. Lower-case words may be names by chance.
    named = [item for item in named if any(letter.isupper() or letter.isdigit() for letter in item.text)]
    # A program writes 11 March 1992 as 1992-03-11.
    dates = [match.span() for match in islice(_DATE.finditer(question), _MAX_VALUES)]
    named = [item for item in named if not any(start <= item.start and item.end <= end for start, end in dates)]
    # If "they" refers to several entities, a program may repeat how they were found.
    named = [item for item in named if len(item.names) == 1 or item.text in question]
    if named and not _uses(attempt, named):
        names = " or ".join(repr(item.text) for item in named[:3])
        result.append(f"the answer does not depend on {names}, which the question names")
    plan = getattr(answer, "plan", None)
    if plan is not None and not any(map(_reads, postorder(plan))):
        result.append("the program states the answer itself, and reads nothing of the graph")
    if plan is not None and not result:
        reasons = (
            _echo_doubt(question, mentions, plan),
            _name_doubt(question, before, mentions, plan, known),
            _predicate_doubt(question, mentions, answer, known),
            _comparison_doubt(question, plan),
            _time_doubt(question, attempt, today or date.today()),
        )
        result += filter(None, reasons)
    return result


def _reads(node: Node) -> bool:
    """Return whether a part of a plan reads the graph; a pattern without parts does not."""
    return node.facets.reads != "nothing" and not (isinstance(node, Pattern) and not (node.statements or node.memberships))


def misfit(question: str, answer: Answer) -> str:
    """Return that an answer has another type than the question asks for, or "" if it has not."""
    kind = wanted(question)
    actual = "" if kind is None else _wrong_type(kind, answer)
    return f"the question asks {_QUESTION_WORDS[kind]}, and the program gives {actual}" if kind is not None and actual else ""


def _only_value(answer: Answer) -> str:
    """Return the only value of an answer if it is a number, True or False, else ""."""
    value = answer.values[0] if len(answer.values) == 1 else ""
    value = value[0] if isinstance(value, tuple) and len(value) == 1 else value
    return str(value) if type(value) in (int, bool) else ""


def _compared(plan: Node) -> Iterator[Compare]:
    """Yield the comparisons with values in a plan."""
    for node in postorder(plan):
        for item in fields(node):  # type: ignore[arg-type]
            value = getattr(node, item.name)
            if isinstance(value, Compare):
                yield value


def _comparison_doubt(question: str, plan: Node) -> str:
    """Return a doubt if a program looks for exactly a number, but the question for more or less than it."""
    comparison = _COMPARISON.search(question)
    compared = list(islice(_compared(plan), _MAX_VALUES)) if comparison is not None else []
    if comparison is None or any(item.operator not in ("=", "!=") for item in compared):
        return ""
    digits = re.sub(r"\D", "", comparison[1])
    found = any(digits == re.sub(r"\D", "", str(item.value)) for item in compared if not isinstance(item.value, str))
    return f"the program looks for {comparison[1]!r} itself, and the question for what is {comparison[0]!r}" if found else ""


def _time_doubt(question: str, attempt: Attempt, today: date) -> str:
    """Return a doubt if an answer belongs to another time than the question.

    This is the case if the program considers no time, and a statement of its answer did not hold in a year
    that the question mentions, or does not hold today.
    """
    years = list(dict.fromkeys(match[0] for match in islice(_YEAR.finditer(question), _MAX_VALUES)))
    now = _TODAY.search(question) if not years and english(question) else None
    program = _REMARKS.sub("", attempt.program)
    if (not years and now is None) or attempt.answer is None or _LOOKS_AT_TIME.search(program):
        return ""
    times = [Bounds.of(Time.parse(text)) for text in years or [today.isoformat()]]
    for fact in islice(attempt.answer.evidence, _MAX_VALUES):
        bounds = Bounds.stated(fact.qualifiers)
        if bounds is not None and all(bounds.together(time) is False for time in times):
            when = ", ".join(f"{name} {value}" for name, value in fact.qualifiers)
            what = f"about {years[0]}" if years else f"what is {now[0]!r}" if now is not None else ""
            return f"the question asks {what}, and the program looks at no time: its answer rests on a statement with {when}"
    return ""


def _echo_doubt(question: str, mentions: Sequence[Mention], plan: Node) -> str:
    """Return a doubt if a program returns the only name in the question, without asking anything about it.

    If there are several names, one of them may be the answer.
    """
    named = [item for item in mentions if item.names and item.text in question]
    if len(named) != 1 or not all(isinstance(node, (Names, ByName, ById, Union)) for node in postorder(plan)):
        return ""
    return f"the program gives {named[0].text!r} itself, and asks nothing about it"


def _name_doubt(question: str, before: str, mentions: Sequence[Mention], plan: Node, known: KnownNames) -> str:
    """Return a doubt if none of the names and texts that a program looks for are in the question.

    Questions of one or two words are too short to judge, and questions in other languages may use other names.
    """
    if not english(question) or len([word for word in words_of(question) if word not in STOP]) <= 1:
        return ""
    concepts = set(known.concepts.names)
    looked: dict[str, None] = {}
    for node in postorder(plan):
        if isinstance(node, ByName):
            looked |= dict.fromkeys(name for name in node.names if name not in concepts)
    looked |= {one.value: None for one in _compared(plan) if one.operator == "=" and isinstance(one.value, str)}
    # Lower-case words may be values that stand for other words of the question, such as "female" for women.
    names = [name for name in islice(looked, _MAX_VALUES) if any(letter.isupper() for letter in name)]
    if not names:
        return ""
    text = f"{question} {before}"
    whole = bare(text).replace(" ", "")
    words = [word for part in (text, *(name for item in mentions for name in item.names)) for word in words_of(part)]
    stems, begin = {stem(word) for word in words}, {word[:_BEGINNING] for word in words if len(word) >= _BEGINNING}
    if any(_mentions_name(name, whole, words, stems, begin) for name in names):
        return ""
    return f"the program looks for {' and '.join(map(repr, names[:3]))}, which the question does not name"


def _mentions_name(name: str, whole: str, words: Sequence[str], stems: set[str], begin: set[str]) -> bool:
    """Return whether a text contains a word of a name.

    Other forms of the word, one wrong letter, and the name written as one word count, too.
    """
    name_words = words_of(name)
    name_words = [word for word in name_words if word not in STOP] or name_words
    if all(len(word) < _BEGINNING or not word.isalpha() or word in _NUMBER_WORDS for word in name_words):
        return True
    return bare(name).replace(" ", "") in whole or any(
        stem(word) in stems
        or {stem(other) for other in others(word)} & stems
        or word[:_BEGINNING] in begin
        or (len(word) > _LONG and any(one_wrong(word, other) for other in words if len(other) > _LONG))
        for word in name_words
    )  # fmt: skip


def _predicate_doubt(question: str, mentions: Sequence[Mention], answer: Answer, known: KnownNames) -> str:
    """Return a doubt if the question mentions a predicate, but none of those in the program.

    Tables are not judged, since the words of a question are more often in their cells than in column names.
    Neither are questions in other languages, which may use other words than the graph.
    """
    if foreign(question):
        return ""
    columns = {place for source in known.linker.tables for place in known.of_source(source)}
    used = [name for name in names_of(answer, known) if name in known.places]
    if not used or any(known.places[name] in columns or bare(name) in NAMES for name in used):
        return ""
    # Words of the question may also be a name in the graph, such as the job "executive producer".
    words = words_of(question)
    if any(_all_among(_content_words(name), words) for name in used):
        return ""
    scores = known.predicate_scores(without_names(question, mentions))
    best = int(scores.argmax())
    if scores[best] < _ASKED or any(scores[known.places[name]] >= _UNASKED for name in used):
        return ""
    # "Which countries are in Asia" asks for things of this kind, and not for their predicate `country`.
    if known.predicates.names[best] in known.concepts.names:
        return ""
    instead = " and ".join(map(repr, used[:3]))
    return f"the question speaks of {known.predicates.names[best]!r}, and the program has {instead} in its place"


def replacement_doubts(
    question: str, mentions: Sequence[Mention], attempt: Attempt, before: Sequence[Attempt], known: KnownNames
) -> list[str]:
    """Return doubts about predicates that replaced unknown ones of earlier attempts, one sentence for each.

    A replacement is doubtful if the question does not ask for it, and if it is not the unknown predicate with
    a wrong letter or in everyday words. Models use what they are offered, such as `date of birth` for
    `date of death`.
    """
    unknown = dict.fromkeys(
        item.failure.name for item in before
        if isinstance(item.failure, UnknownNameError) and item.failure.kind in _PREDICATES and item.stage == "resolving"
    )  # fmt: skip
    if not unknown or attempt.answer is None:
        return []
    # Predicates that the first program used besides the unknown one are not replacements.
    first = before[0].program
    for name in unknown:
        first = first.replace(name, " ")
    fresh = [
        name for name in names_of(attempt.answer, known)
        if name in known.places and (name not in first or attempt.program.count(name) > first.count(name))
    ]  # fmt: skip
    # A qualifier that was taken for a predicate, or an attribute for a relation, may still be what is asked for.
    missing = [name for name in unknown if name not in attempt.program]
    words = words_of(without_names(question, mentions))
    # A result of 0 or False may only mean that the program looked for something else.
    nothing = attempt.answer.values in ([0], [False])
    return [
        f"the graph has no {name!r}, and the program has {' and '.join(map(repr, fresh[:3]))} in its place, "
        "which the question does not ask for"
        for name in missing
        if fresh
        and not any(
            _is_synonym(name, other) or (not nothing and other not in first and _asks_for(words, other, name)) for other in fresh
        )
    ]


def _is_synonym(name: str, other: str) -> bool:
    """Return whether two predicates differ in one letter only, or have the same or equivalent everyday words."""
    # "Weight" is not "height" with a wrong letter.
    if one_wrong(name.casefold(), other.casefold()) and name[:1].casefold() == other[:1].casefold():
        return True
    mine, others_ = _content_words(name), _content_words(other)
    return bool(mine and others_) and _all_among(mine, others_) and _all_among(others_, mine) and not disagree(name, other)


def _asks_for(words: Sequence[str], other: str, name: str) -> bool:
    """Return whether a question asks for a predicate instead of an unknown one.

    It has each word of the predicate, or words of its family and none of the unknown one's family, or
    everyday words for it if the unknown predicate is of no other family.
    """
    content, stems = _content_words(other), {stem(word) for word in words}
    # A question with "founded" may ask for the unknown `date founded`, and not for `founded`.
    if content and all(stem(word) in stems for word in content) and not set(content) < set(_content_words(name)):
        return True
    families, unknown = _families(" ".join(words)), _families(" ".join(_content_words(name)))
    # "When was she born" is about birth, and not about an unknown date of death.
    if unknown and not unknown & families and families & _families(" ".join(content)):
        return True
    rest = [word for word in content if not _families(word) & families]
    return bool(content) and _all_among(rest, words) and not disagree(name, other)


def _families(text: str) -> set[str]:
    """Return the families of predicates that a text mentions."""
    return {family for family, fit in fits(text).items() if fit >= STRONG}


def _content_words(name: str) -> list[str]:
    """Return the meaningful words of a predicate."""
    words = words_of(" ".join(written(name)))
    return [word for word in words if word not in STOP] or words


def _all_among(words: Sequence[str], by: Sequence[str]) -> bool:
    """Return whether each word is among others.

    Another ending, one wrong letter, or an everyday word for it count, too.
    """
    stems = {stem(word) for word in by}
    return all(
        stem(word) in stems
        or {stem(other) for other in others(word)} & stems
        or (len(word) > _LONG and any(one_wrong(word, other) for other in by if len(other) > _LONG))
        for word in words
    )


def _wrong_type(kind: Wanted, answer: Answer) -> str:
    """Return the type of an answer if the question asks for another one, or "" if it fits or may fit."""
    rows = answer.values[:_MAX_VALUES]
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
    """Return whether the part of a program that determines the answer has a word of one of these names."""
    assert attempt.answer is not None
    lowered = attempt.lowered
    texts: Iterable[str] = [attempt.program]
    if lowered is not None and any("does not need" in warning for warning in lowered.warnings + list(attempt.answer.warnings)):
        texts = _texts(lowered.plan)
    stems = {stem(word) for text in texts for word in words_of(text)}
    for item in named:
        words = {stem(word) for text in (item.text, *item.names) for word in words_of(text)}
        if (words - STOP or words) & stems:
            return True
        # In scripts without spaces there are no words to compare.
        if any(name in text for text in texts for name in item.names):
            return True
    return False


def _texts(plan: Node) -> list[str]:
    """Return the texts in a plan: names, ids and values."""
    result: list[str] = []
    for node in postorder(plan):
        for item in fields(node):  # type: ignore[arg-type]
            result += _texts_in(getattr(node, item.name))
            if len(result) > _MAX_TEXTS:
                return result
    return result


def _texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (Quantity, Time)):
        yield str(value)
    elif isinstance(value, (tuple, list, frozenset)):
        for item in value:
            yield from _texts_in(item)


# -- confidence ----------------------------------------------------------------------------------------


#: The share of right answers among doubtful ones, and among the others by the least fit of the program's predicates
#: to the question. `benchmarks/ask_confidence.py` measures it on half of its questions.
DOUBTED: Final = 0.01
RIGHT: Final = ((0.75, 0.85), (0.5, 0.71), (0.0, 0.44))


def fit(question: str, mentions: Sequence[Mention], attempt: Attempt, known: KnownNames) -> float:
    """Return how well a program's predicates fit the words of a question, relative to the best ones: 0 to 1."""
    scores = known.predicate_scores(without_names(question, mentions))
    places = [known.places[name] for name in names_of(attempt.answer, known) if name in known.places]
    best = float(scores.max()) if len(scores) else 0.0
    if not places or best <= 0:
        return 0.0
    return sum(float(scores[place]) for place in places) / (best * len(places))


def confidence(fits: float, doubts: Sequence[str]) -> float:
    """Return how likely an answer is right, from the fit of its program and the doubts about it."""
    return DOUBTED if doubts else next(share for least, share in RIGHT if fits >= least)
