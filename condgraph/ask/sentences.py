"""The answer in words: the values with the numbers of their statements, or sentences by a model, each checked against the
statements that it cites.

A sentence is used only if it cites statements that the model was shown, and if every number and every name in it
stands in these, in the answer or in the question. Numbers are compared as the language of the question writes them:
8.091 in German is 8,091. In languages that write nouns with a capital, only names of the graph count as names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from itertools import islice
from typing import TYPE_CHECKING, Final

from condgraph.engine.errors import shortened
from condgraph.names.words import STOP, WORD, stem, words_of
from condgraph.overview.schema import quoted, unmarked
from condgraph.vectors.encoders import fold

if TYPE_CHECKING:
    from condgraph.ask.prompt import KnownNames
    from condgraph.engine.answer import Answer


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
