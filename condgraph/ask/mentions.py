"""What a question names: entities of the graph by their names, as they are or nearly so; texts
between quotes or brackets.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from condgraph.ask.known import Known
from condgraph.engine.bounds import check
from condgraph.names.graph_names import ENTITY_THRESHOLD
from condgraph.names.resolve import resolve
from condgraph.names.words import STOP, WORD
from condgraph.vectors.encoder import fold

#: Words of a question that are looked at, quoted texts too, and words of the longest name in it.
MOST_WORDS: Final = 200
LONGEST: Final = 10
#: Names that are looked for by likeness, since none is the same.
_MOST_SIMILAR: Final = 4
_QUOTED: Final = re.compile(r'"([^"\n]{1,200})"|“([^”\n]{1,200})”|\[([^\]\n]{1,200})\]|‘([^’\n]{1,200})’')
_PARTICLES: Final = frozenset(("of", "the", "de", "la", "and", "in", "von", "van", "der", "du", "di", "da"))


@dataclass(frozen=True, slots=True)
class Mention:
    """A part of a question, from `start` to `end`, and the names in the graph that it may be; none
    where there is nothing like it. `exact` says that it is the name, but for case and accents.
    """

    text: str
    start: int
    end: int
    names: tuple[str, ...]
    exact: bool = True


def mentions(question: str, known: Known) -> list[Mention]:
    """What a question names, in the order of the question; no two overlap, the longest is taken."""
    spans = [(found.start(), found.end()) for found in WORD.finditer(question)][:MOST_WORDS]
    vocabulary = known.linker.entities
    taken: list[Mention] = []
    for found in islice(_QUOTED.finditer(question), MOST_WORDS):
        check()
        inner = next(text for text in found.groups() if text is not None)
        names = tuple(dict.fromkeys(vocabulary.names[place] for place in vocabulary.folded(inner)))
        if names:
            taken.append(Mention(inner, found.start(), found.end(), names))
        else:
            near = resolve(inner, vocabulary, threshold=ENTITY_THRESHOLD)
            taken.append(
                Mention(inner, found.start(), found.end(), tuple(dict.fromkeys(m.name for m in near.matches)), exact=False)
            )
    rows = known.rows_named(_capital_runs(question, spans))
    for length in range(min(LONGEST, len(spans)), 0, -1):
        check()
        for first in range(len(spans) - length + 1):
            start, end = spans[first][0], spans[first + length - 1][1]
            text = question[start:end]
            if _overlaps(taken, start, end) or not _may_name(question, spans[first : first + length], text, known):
                continue
            places = vocabulary.folded(text)
            if not places and question[end : end + 1] == ".":
                places = vocabulary.folded(text + ".")
            if places:
                taken.append(Mention(text, start, end, tuple(dict.fromkeys(vocabulary.names[place] for place in places))))
            elif text in rows:
                taken.append(Mention(text, start, end, (text,)))
    taken += _similar(question, spans, taken, known)
    return sorted(taken, key=lambda one: one.start)


def not_looked_at(question: str) -> str | None:
    """What of a long question names are not looked for in, in words; None where all was looked at."""
    words = next(islice(WORD.finditer(question), MOST_WORDS, None), None)
    texts = next(islice(_QUOTED.finditer(question), MOST_WORDS, None), None)
    if words is None and texts is None:
        return None
    what = "words" if texts is None else "quoted texts" if words is None else "words, and the first quoted texts,"
    first = f"the first {MOST_WORDS} {what} of the question"
    return f"names of the graph are looked for among {first}: what stands behind may be named too"


def masked(question: str, found: Sequence[Mention]) -> str:
    """A question with a mark for each thing it names and for each number, so that questions of one
    form look alike.
    """
    parts, at = [], 0
    for one in found:
        parts += [question[at : one.start], "~"]
        at = one.end
    return re.sub(r"\d[\d.,:-]*", "#", "".join([*parts, question[at:]]))


def asked_about(question: str, found: Sequence[Mention]) -> str:
    """A question without the names that it says as they are: the words that say what is asked of
    these.
    """
    parts, at = [], 0
    for one in found:
        if one.exact and one.names:
            parts += [question[at : one.start], "~"]
            at = one.end
    return "".join([*parts, question[at:]])


def _overlaps(taken: Sequence[Mention], start: int, end: int) -> bool:
    return any(one.start < end and start < one.end for one in taken)


def _may_name(question: str, words: Sequence[tuple[int, int]], text: str, known: Known) -> bool:
    """Whether words of a question may be a name: not those that every question has, and a single
    word in small letters only where it is no word of the schema.
    """
    said = [question[start:end] for start, end in words]
    if all(word.casefold() in STOP for word in said):
        # "It" and "Up" are films; in the middle of a question a capital says so.
        return len(said) == 1 and words[0][0] > 0 and said[0][:1].isupper() and len(said[0]) > 1 and said[0] != "I"
    if len(said) == 1 and said[0].islower():
        return fold(text) not in known.words
    return not (len(said) > 1 and said[0].casefold() in STOP and said[0].islower() and not text[:1].isupper() and len(said) == 2)


def _capital_runs(question: str, spans: Sequence[tuple[int, int]]) -> list[str]:
    """Runs of words that begin with a capital or a digit: what may name a row."""
    texts: dict[str, None] = {}
    for first, (start, _) in enumerate(spans):
        if question[start].isupper() or question[start].isdigit():
            for _, end in spans[first : first + LONGEST]:
                texts[question[start:end]] = None
    return list(texts)


def _similar(question: str, spans: list[tuple[int, int]], taken: Sequence[Mention], known: Known) -> list[Mention]:
    """Runs of words with capitals that are no name as they stand, and the names most like them."""
    found: list[Mention] = []
    run: list[tuple[int, int]] = []
    for number, (start, end) in enumerate([*spans, (len(question), len(question))]):
        word = question[start:end]
        inside = bool(word) and not _overlaps(taken, start, end)
        capital = inside and (word[:1].isupper() or word[:1].isdigit()) and not (number == 0 and word.casefold() in STOP)
        # What is a word of the schema is asked about, and is no part of a name.
        capital = capital and fold(word) not in known.words
        if capital or (run and inside and word in _PARTICLES):
            run.append((start, end))
            continue
        while run and question[slice(*run[-1])] in _PARTICLES:
            run.pop()
        if run and any(question[a:b][:1].isupper() for a, b in run) and len(found) < _MOST_SIMILAR:
            text = question[run[0][0] : run[-1][1]]
            if not (len(run) == 1 and run[0][0] == 0):
                near = resolve(text, known.linker.entities, threshold=ENTITY_THRESHOLD)
                names = tuple(dict.fromkeys(match.name for match in near.matches))[:5]
                found.append(Mention(text, run[0][0], run[-1][1], names, exact=False))
        run = []
    return found
