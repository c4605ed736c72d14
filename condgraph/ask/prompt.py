"""What a model is shown of a graph: the names that a question mentions, an excerpt of the schema and of the data, and the text
around them (TrustUQA, section 3.2).
"""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from condgraph.engine import algebra as alg
from condgraph.engine.bounds import cached, check, watched
from condgraph.engine.errors import OptionError, nearest, shortened
from condgraph.engine.lowered import Lowered
from condgraph.engine.store import Request, plan_texts
from condgraph.engine.values import fold
from condgraph.models.chat import estimate
from condgraph.names.linking import ENTITY_THRESHOLD, Linker
from condgraph.names.vocabulary import DIMENSION, Spelling, Spellings, Vocabulary, bare, resolve
from condgraph.names.words import STOP, WORD, others, stem, words_of
from condgraph.overview.schema import (
    LONGEST as LONGEST_NAME,
)
from condgraph.overview.schema import (
    WORDS,
    ConceptSchema,
    CypherWording,
    PredicateSchema,
    Wording,
    concept_schema,
    predicate_schema,
    quoted,
)
from condgraph.overview.survey import Survey
from condgraph.patterns.families import Names as Families
from condgraph.patterns.families import fits
from condgraph.vectors.encoders import LexicalEncoder

if TYPE_CHECKING:
    from condgraph.engine.schema import End
    from condgraph.engine.store import KnownSchema, Store


# -- names of a graph ----------------------------------------------------------------------------------
# The names of one state of a graph with their words, prepared once and cached with that state.


#: The weight of families of words, and of the type of value that a question asks for; characters of a
#: question that families are looked for in.
_FAMILY: Final = 0.8
_TYPE: Final = 0.1
_MOST_FAMILIES: Final = 1_000
_ASKS: Final = (
    (
        re.compile(
            r"\b(?:when|what (?:year|date|day|month)|which (?:year|date|day|month)|born|since|until|\d{4}-\d\d-\d\d"
            r"|(?:in|on|before|after) \d{4}"
            r"|(?:january|february|march|april|june|july|august|september|october|november|december) \d+)\b",
            re.IGNORECASE,
        ),
        "time",
    ),
    (re.compile(r"\bhow (?:high|tall|long|many|much|old|big|large|heavy|far|deep|wide|fast)\b", re.IGNORECASE), "quantity"),
)
#: The weight of a synonym, next to the word itself.
_OTHER: Final = 0.7
#: The weight of similar letters, next to whole words.
_LETTERS: Final = 0.6
_ENCODER: Final = LexicalEncoder(DIMENSION)


@lru_cache(maxsize=64)
def _encoded(text: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """The columns of a text's vector and their values, cached for the vocabularies of a question."""
    result = _ENCODER.sparse([text])
    return result.indices, result.data


class Names:
    """Names of one kind, scored by the words of a question."""

    def __init__(self, names: Sequence[str], sizes: Sequence[int]) -> None:
        self.names, self.sizes = names, sizes
        self._places: dict[str, list[int]] = {}
        spread: Counter[str] = Counter()
        stems = [[stem(word) for word in words_of(name)] for name in names]
        for member in stems:
            spread.update(set(member))
        many = max(len(names), 1)
        self._weight = {word: math.log(1 + many / count) * (0.2 if word in STOP else 1.0) for word, count in spread.items()}
        # A name of words that say nothing ("of") is no answer to a question that has them.
        self._total = np.array(
            [(sum(self._weight[word] for word in set(item)) or 1.0) / (0.2 if set(item) <= STOP else 1.0) for item in stems]
        )
        for place, member in enumerate(stems):
            for word in set(member):
                self._places.setdefault(word, []).append(place)
        self._vocabulary = Vocabulary(list(names))

    @cached
    def _sizes_of_grams(self) -> NDArray[np.float64]:
        rows = self._vocabulary.encoder.sparse(self._vocabulary.names)
        return np.sqrt(np.maximum(np.diff(rows.indptr), 1))

    def scores(self, question: str) -> NDArray[np.float64]:
        """A score of each name, from 0 to about 1.6: the share of its words that are in the question
        (rare words count more), and the share of its letters, in pieces of two to four.
        """
        result = np.zeros(len(self.names))
        if not len(self.names):
            return result
        said: dict[str, float] = {}
        for word in words_of(question):
            said[stem(word)] = 1.0
            for other in others(word):
                said.setdefault(stem(other), _OTHER)
        for word, worth in said.items():
            places = self._places.get(word)
            if places:
                result[places] += worth * self._weight[word]
        result /= self._total
        # The encoder's vectors have length one; the score is a share of the name alone.
        indices, data = _encoded(question)
        starts, members, weights = self._vocabulary.prepare()
        hits = [slice(starts[column], starts[column + 1]) for column in indices]
        if not hits:
            return result
        at = np.concatenate([members[hit] for hit in hits])
        parts = np.concatenate([weights[hit] * weight for hit, weight in zip(hits, data, strict=True)])
        letters = np.bincount(at, weights=parts, minlength=len(self.names)) * math.sqrt(len(indices)) / self._sizes_of_grams
        return result + _LETTERS * np.minimum(letters, 1.0) ** 2


class KnownNames:
    """The names of one state of a graph, for `ask`. Use `known_of`, which caches it."""

    def __init__(self, schema: KnownSchema, survey: Survey) -> None:
        self.schema, self.survey = schema, survey
        self.linker: Linker = Linker.of(schema)  # type: ignore[arg-type]
        rows = survey["predicates"]
        self.places = {str(item[0]): place for place, item in enumerate(rows)}
        self.predicates = Names([row[0] for row in rows], [row[1] + row[2] for row in rows])
        self._concepts = [place for place, item in enumerate(survey["kinds"]) if item[0] == "concept"]
        kinds = survey["kinds"]
        self.concepts = Names([kinds[place][1] for place in self._concepts], [kinds[place][3] for place in self._concepts])
        #: Words of predicates, concepts and keys.
        self.words = frozenset(
            word for item in (*self.predicates.names, *self.concepts.names, *self.qualifiers.names) for word in words_of(item)
        )
        self.words -= STOP
        #: Predicates around names, as they were looked up.
        self.around: dict[tuple[str, ...], dict[str, list[str]]] = {}
        #: The attributes that have names of entities, as they were looked up.
        self.keys: dict[tuple[str, ...], str] = {}
        self._of_source: dict[str, list[int]] = {}
        #: The words that were asked about last, and how well predicates fit them.
        self._asked: tuple[str, NDArray[np.float64]] | None = None
        #: Positions of the predicates that have values of a type.
        self._typed: dict[str, list[int]] = {}
        for place, member in enumerate(rows):
            for source, _ in member[5]:
                self._of_source.setdefault(source, []).append(place)

    @cached
    def spellings(self) -> Spellings:
        """The names of entities, by how people type them."""
        return Spellings(self.linker.entities.names, self._aliases())

    def _aliases(self) -> Iterator[tuple[str, str]]:
        """Other names that the graph states of its entities, each with the name: the texts of predicates
        such as `also known as`. On a server they are not read.
        """
        snapshot = getattr(self.schema, "snapshot", None)
        if snapshot is None:
            return
        for number in range(snapshot.predicate_count):
            if bare(snapshot.predicate_name(number).rpartition(":")[2]) not in ALIASES:
                continue
            low, high = snapshot.attribute_offsets[number : number + 2].tolist()
            subjects = snapshot.subjects(np.arange(low, high, dtype=np.int32) + np.int32(snapshot.relations)).tolist()
            for place, subject in watched(enumerate(subjects, low)):
                value = snapshot.value("att", place)
                if isinstance(value, str):
                    yield value, snapshot.name(subject)

    @cached
    def stems(self) -> frozenset[str]:
        """The stems of words of predicates, concepts and keys."""
        return frozenset(map(stem, self.words))

    @cached
    def families(self) -> Families:
        """The predicates by the families of everyday words that refer to them."""
        return Families(self.predicates.names)

    def asked_for(self, words: str) -> NDArray[np.float64]:
        """How well each predicate fits the words of a question, from 0 to about 2.5: by its own words and
        letters, by families of words (died is `date of death`), and by the type of value that the question
        asks for (when, how many).
        """
        if self._asked is not None and self._asked[0] == words:
            return self._asked[1].copy()
        result = self.predicates.scores(words)
        if not len(result):
            return result
        result = result + _FAMILY * np.array(self.families.fits(shortened(words, _MOST_FAMILIES)), np.float64) / 1000
        for asks, kind in _ASKS:
            if asks.search(words):
                result[self._of_type(kind)] += _TYPE
        self._asked = words, result
        return result.copy()

    @cached
    def naming(self) -> list[int]:
        """The predicates with texts that name their subjects, such as `title`."""
        return [at for at in self._of_type("text") if bare(self.predicates.names[at].rpartition(":")[2]) in NAMES]

    def _of_type(self, kind: str) -> list[int]:
        found = self._typed.get(kind)
        if found is None:
            rows = self.survey["predicates"]
            found = self._typed[kind] = [at for at, _ in enumerate(rows) if any(v.type == kind for v in self.predicate(at).values)]
        return found

    @cached
    def qualifiers(self) -> Names:
        """The keys of qualifiers."""
        sizes: Counter[str] = Counter()
        for item in self.survey["predicates"]:
            for key, values in item[4]:
                sizes[key] += sum(value[2] for value in values)
        for key in getattr(self.schema, "qualifiers", ()):
            sizes.setdefault(key, 0)
        return Names(list(sizes), list(sizes.values()))

    @cached
    def sources(self) -> Names:
        """The sources by name."""
        return Names([item[0] for item in self.survey["sources"]], [item[2] for item in self.survey["sources"]])

    def rows_named(self, texts: Sequence[str]) -> frozenset[str]:
        """The texts that name a row of a table; other names are in `linker.entities`."""
        if not texts or not self.linker.tables:
            return frozenset()
        missing = getattr(self.schema, "missing", None)
        if missing is not None:
            return frozenset(texts) - frozenset(missing(texts))
        return frozenset(text for text in texts if self.schema.has_entity(text))

    def of_kind(self, kind: str) -> list[int]:
        """The positions of the predicates that are relations ("relation"), attributes ("attribute"), or
        of all predicates; for "concept" of the concepts.
        """
        if kind == "concept":
            return list(range(len(self.concepts.names)))
        column = {"relation": 1, "attribute": 2}.get(kind)
        rows = self.survey["predicates"]
        return [place for place, item in enumerate(rows) if column is None or item[column]]

    def of_source(self, source: str) -> list[int]:
        """The positions of the predicates of a source."""
        return self._of_source.get(source, [])

    def predicate(self, place: int) -> PredicateSchema:
        """The schema of a predicate."""
        return predicate_schema(self.survey, place)

    def concept(self, place: int) -> ConceptSchema:
        """The schema of a concept, by its position in `concepts`."""
        return concept_schema(self.survey["kinds"], self.survey["kinds"][self._concepts[place]])


def known_of(store: Store, survey: Survey) -> KnownNames:
    """The names of the current state of a store, made once for each state."""
    schema = schema_of(store)
    result: Any = schema.kept.get("ask")
    if result is None or result.survey is not survey:
        result = schema.kept["ask"] = KnownNames(schema, survey)
    assert isinstance(result, KnownNames)
    return result


def schema_of(store: Store) -> KnownSchema:
    """The schema against which a store lowers programs."""
    seen: list[KnownSchema] = []

    def look(schema: KnownSchema, program: Any, language: str, options: dict[str, Any]) -> Lowered:
        seen.append(schema)
        plan = alg.Constants(("",))
        return Lowered(plan, [("", plan)], order=[plan])

    store.explain(Request("", "llm_query", {}, None, look))
    return seen[-1]


# -- mentions --------------------------------------------------------------------------------------
# Entities that a question names, exactly or nearly, and texts between quotes or brackets.


#: Words of a question that are looked up (and quoted texts), and words of the longest name.
MOST_WORDS: Final = 200
LONGEST: Final = 10
#: Names that are looked up by similarity, where none is the same.
_MOST_SIMILAR: Final = 4
_QUOTED: Final = re.compile(r'"([^"\n]{1,200})"|“([^”\n]{1,200})”|\[([^\]\n]{1,200})\]|‘([^’\n]{1,200})’')
_PARTICLES: Final = frozenset(("of", "the", "de", "la", "and", "in", "von", "van", "der", "du", "di", "da"))


#: Predicates whose texts are other names of their subjects, as `names.spellings.bare` writes them.
ALIASES: Final = frozenset(
    {
        *("also known as", "aka", "alias", "aliases", "alt label", "altlabel", "alternative label", "alternative labels"),
        *("alternative name", "alternative names", "alternate name", "alternatename", "nickname", "nicknames", "other name"),
        *("other names", "short name", "synonym", "synonyms", "skos altlabel", "former name", "birth name", "stage name"),
    }
)


#: Predicates whose texts are the names of their subjects.
NAMES: Final = frozenset({"title", "name", "label", "official name", "full name", "short name"})


@dataclass(frozen=True, slots=True)
class Mention:
    """A part of a question, from `start` to `end`, and the names of the graph that it may mean; none
    where nothing is similar. `exact`: it is the name, but for case and accents.
    """

    text: str
    start: int
    end: int
    names: tuple[str, ...]
    exact: bool = True
    #: A score of each name from 0 to 1: how sure it is that this one is meant; none where it is exact.
    scores: tuple[float, ...] = ()


def mentions_in(question: str, known: KnownNames) -> list[Mention]:
    """The mentions in a question, in order; of two that overlap the longer. Names are found as people type
    them (`names.spellings`); what is no name but nearly one has scores.
    """
    spans = [(result.start(), result.end()) for result in WORD.finditer(question)][:MOST_WORDS]
    vocabulary = known.linker.entities
    taken: list[Mention] = []
    for result in islice(_QUOTED.finditer(question), MOST_WORDS):
        check()
        inner = next(text for text in result.groups() if text is not None)
        names = tuple(dict.fromkeys(vocabulary.names[place] for place in vocabulary.folded(inner)))
        spelled = [] if names else known.spellings.same(inner) or known.spellings.typed(inner)
        if names:
            taken.append(Mention(inner, result.start(), result.end(), names))
        elif spelled:
            taken.append(_spelled(inner, result.start(), result.end(), spelled))
        else:
            near = resolve(inner, vocabulary, threshold=ENTITY_THRESHOLD)
            taken.append(
                Mention(inner, result.start(), result.end(), tuple(dict.fromkeys(m.name for m in near.matches)), exact=False)
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
            elif spelled := _typed(text, length, known) or _tail(question, spans[first : first + length], text, known):
                taken.append(_spelled(text, start, end, spelled))
    taken += _unspaced(question, spans, taken, known)
    taken += _shortened(question, spans, taken, known)
    taken += _similar(question, spans, taken, known)
    return sorted(taken, key=lambda item: item.start)


def _spelled(text: str, start: int, end: int, found: Sequence[Spelling]) -> Mention:
    """A mention of names as people type them; of the same but for marks, an exact one."""
    best = sorted(found, key=lambda one: -one.score)
    exact = all(one.way == "marks" for one in best)
    return Mention(text, start, end, tuple(one.name for one in best), exact, () if exact else tuple(one.score for one in best))


def _typed(text: str, length: int, known: KnownNames) -> list[Spelling]:
    """The names that words of a question are but for marks, a letter, or the order of words; none for words
    that only ask.
    """
    found = known.spellings.same(text)
    if found:
        return found
    said = words_of(text)
    telling = [word for word in said if word not in STOP and stem(word) not in known.stems and not others(word)]
    # A word or two of the question at the ends is no part of a name.
    if not telling or (length == 1 and len(text) < (_SHORTEST_CAPITAL if text[:1].isupper() else _SHORTEST_TYPED)):
        return []
    found = [one for one in known.spellings.typed(text) if len(words_of(one.name)) >= len(said) - 1]
    if said[0] in STOP or said[-1] in STOP:
        # But for names of these words alone, in another order.
        found = [one for one in found if one.way == "order" or words_of(one.name)[:1] == said[:1] or said[0] not in STOP]
        found = [one for one in found if one.way == "order" or words_of(one.name)[-1:] == said[-1:] or said[-1] not in STOP]
    return found


def _tail(question: str, words: Sequence[tuple[int, int]], text: str, known: KnownNames) -> list[Spelling]:
    """The names of which several words are all but the first: two at least that tell, with capitals, at the
    ends.
    """
    said = [question[start:end] for start, end in words]
    telling = [word for word in said if word.casefold() not in STOP]
    ends = {said[0].casefold(), said[-1].casefold()} & STOP
    if len(telling) < 2 or ends or not all(word[0].isupper() or word[0].isdecimal() for word in telling):
        return []
    return [one for one in known.spellings.shortened(text) if one.way == "last"]


def _shortened(question: str, spans: Sequence[tuple[int, int]], taken: Sequence[Mention], known: KnownNames) -> list[Mention]:
    """Names of which words of the question are all but the first word, or the initials: words with a capital,
    or, in a question without any name, others that say nothing else.
    """
    result: list[Mention] = []
    for length in (3, 2, 1):
        check()
        for first in range(len(spans) - length + 1):
            start, end = spans[first][0], spans[first + length - 1][1]
            text = question[start:end]
            said = words_of(text)
            capital = all(question[a].isupper() for a, _ in spans[first : first + length]) and first > 0
            tells = not any(word in STOP or stem(word) in known.stems or others(word) for word in said)
            if _overlaps([*taken, *result], start, end) or not (tells and (capital or not taken)):
                continue
            if spelled := known.spellings.shortened(text):
                result.append(_spelled(text, start, end, spelled))
    return result


def _unspaced(question: str, spans: Sequence[tuple[int, int]], taken: Sequence[Mention], known: KnownNames) -> list[Mention]:
    """Names within runs of words of a script without spaces (or with particles at the words)."""
    result: list[Mention] = []
    vocabulary = known.linker.entities
    for start, end in spans:
        if not _UNSPACED.search(question, start, end):
            continue
        check()
        end = min(end, start + _LONGEST_RUN)
        for size in range(min(end - start, _LONGEST_UNSPACED), 1, -1):
            for at in range(start, end - size + 1):
                text = question[at : at + size]
                if _overlaps([*taken, *result], at, at + size) or not _UNSPACED.search(text):
                    continue
                if places := vocabulary.folded(text):
                    result.append(Mention(text, at, at + size, tuple(dict.fromkeys(vocabulary.names[place] for place in places))))
                elif spelled := known.spellings.aliased(text):
                    result.append(_spelled(text, at, at + size, spelled))
    return result


#: Letters of a single word of which one may be wrong, with a capital and without.
_SHORTEST_CAPITAL, _SHORTEST_TYPED = 3, 5
#: Letters of scripts that put no spaces between words, or particles at them; and how many of them are
#: looked through, for names of how many.
_UNSPACED: Final = re.compile("[\u0e00-\u0e7f\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]")
_LONGEST_RUN, _LONGEST_UNSPACED = 120, 20


def not_looked_at(question: str) -> str | None:
    """A warning about the part of a long question that is not searched for names; None for others."""
    words = next(islice(WORD.finditer(question), MOST_WORDS, None), None)
    texts = next(islice(_QUOTED.finditer(question), MOST_WORDS, None), None)
    if words is None and texts is None:
        return None
    what = "words" if texts is None else "quoted texts" if words is None else "words, and the first quoted texts,"
    first = f"the first {MOST_WORDS} {what} of the question"
    return f"names of the graph are looked for among {first}: what stands behind may be named too"


def crowded_aliases(question: str, found: Sequence[Mention], known: KnownNames) -> dict[str, list[str]]:
    """The words of a question that are another name of so many entities that none of them is taken, each with these names;
    the longer of two that overlap, and none that are part of a name.
    """
    spans = [(result.start(), result.end()) for result in WORD.finditer(question)][:MOST_WORDS]
    taken = [(item.start, item.end) for item in found if item.names]
    result: dict[str, list[str]] = {}
    for length in range(min(LONGEST, len(spans)), 0, -1):
        check()
        for first in range(len(spans) - length + 1):
            start, end = spans[first][0], spans[first + length - 1][1]
            if any(a < end and start < b for a, b in taken):
                continue
            if names := known.spellings.crowded(question[start:end]):
                result[question[start:end]] = names
                taken.append((start, end))
    return result


def masked(question: str, found: Sequence[Mention]) -> str:
    """A question with a mark for each mention and each number, so that questions of one form are equal."""
    parts, at = [], 0
    for item in found:
        parts += [question[at : item.start], "~"]
        at = item.end
    return re.sub(r"\d[\d.,:-]*", "#", "".join([*parts, question[at:]]))


def asked_about(question: str, found: Sequence[Mention]) -> str:
    """A question without its exact names: the words that ask about these. A small word that is a name as well, such as
    the tag "director", may ask.
    """
    parts, at = [], 0
    for item in found:
        if item.exact and item.names and not _asks_too(item.text):
            parts += [question[at : item.start], "~"]
            at = item.end
    return "".join([*parts, question[at:]])


def _asks_too(text: str) -> bool:
    return text.islower() and " " not in text and bool(others(text) or fits(text))


def _overlaps(taken: Sequence[Mention], start: int, end: int) -> bool:
    return any(item.start < end and start < item.end for item in taken)


def _may_name(question: str, words: Sequence[tuple[int, int]], text: str, known: KnownNames) -> bool:
    """Whether words of a question may be a name: not stop words, and a single word in small letters
    only if it is not a word of the schema.
    """
    said = [question[start:end] for start, end in words]
    if all(word.casefold() in STOP for word in said):
        # "It" and "Up" are films, if they have a capital within a question.
        return len(said) == 1 and words[0][0] > 0 and said[0][:1].isupper() and len(said[0]) > 1 and said[0] != "I"
    if len(said) == 1 and said[0].islower():
        return fold(text) not in known.words
    if len(said) == 2 and said[0].islower() and said[0] in STOP:
        # "the divide" may be a film where nothing has a capital, and "the director" asks for one.
        return question.islower() and fold(said[1]) not in known.words and not others(fold(said[1])) and said[1] not in STOP
    return True


def _capital_runs(question: str, spans: Sequence[tuple[int, int]]) -> list[str]:
    """Runs of words that begin with a capital or a digit, which may name a row."""
    texts: dict[str, None] = {}
    for first, (start, _) in enumerate(spans):
        if question[start].isupper() or question[start].isdigit():
            for _, end in spans[first : first + LONGEST]:
                texts[question[start:end]] = None
    return list(texts)


def _similar(question: str, spans: list[tuple[int, int]], taken: Sequence[Mention], known: KnownNames) -> list[Mention]:
    """Runs of words with capitals that are not exact names, and the names most similar to them."""
    result: list[Mention] = []
    run: list[tuple[int, int]] = []
    for number, (start, end) in enumerate([*spans, (len(question), len(question))]):
        word = question[start:end]
        inside = bool(word) and not _overlaps(taken, start, end)
        capital = inside and (word[:1].isupper() or word[:1].isdigit()) and not (number == 0 and word.casefold() in STOP)
        # A word of the schema is asked about, and is not part of a name.
        capital = capital and fold(word) not in known.words
        if capital or (run and inside and word in _PARTICLES):
            run.append((start, end))
            continue
        while run and question[slice(*run[-1])] in _PARTICLES:
            run.pop()
        if run and any(question[a:b][:1].isupper() for a, b in run) and len(result) < _MOST_SIMILAR:
            text = question[run[0][0] : run[-1][1]]
            if not (len(run) == 1 and run[0][0] == 0):
                near = resolve(text, known.linker.entities, threshold=ENTITY_THRESHOLD)
                names = tuple(dict.fromkeys(match.name for match in near.matches))[:5]
                result.append(Mention(text, run[0][0], run[-1][1], names, exact=False))
        run = []
    return result


# -- excerpts of the schema ------------------------------------------------------------------------
# The part of a schema that a question needs, as text within a budget of tokens (TrustUQA, E.3).
#
# First come the entities in the question with the relations one and two steps from them, and the
# names in similar demonstrations; then the names nearest to the words of the question. The best are
# described as `schema().text()` does; as many others as fit are listed by name.


#: Entities of a question whose relations are looked up.
_MOST_THINGS: Final = 3
#: Statements around an entity beyond which its second steps are not looked up.
_MOST_AROUND: Final = 2_000
#: Sources that are offered where none is given.
MOST_SOURCES: Final = 3
#: The share of the budget of each section; names get the rest.
_SHARES: Final = {"things": 0.25, "paths": 0.1, "rich": 0.15, "told": 0.92, "concepts": 0.12, "keys": 0.1}
#: Predicates of one entity that are shown, and pairs of entities whose connections are looked up.
_MOST_OF_ONE: Final = 12
_MOST_PAIRS: Final = 3
#: In fewer tokens no predicate is described at length.
_SMALL: Final = 800
#: Characters of the names of kinds there.
_CUT: Final = 24
#: Predicates that are described.
_MOST_TOLD: Final = 1_000
#: Names that are listed in any case, and the score that others need.
_IN_ANY_CASE: Final = 4
_FITS: Final = 0.25
#: The weights of names one and two steps from an entity, and in demonstrations.
_ONE_STEP, _TWO_STEPS, _DEMONSTRATED = 0.5, 0.2, 0.9
#: The weight of predicates that name things, where a question names what is no entity.
_NAMING: Final = 0.9
#: The weight of predicates that connect two entities of the question.
_CONNECTS: Final = 0.5


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A part of a schema: its `text`, how many `tokens` that has, and the names in it. `sources` are
    those offered, best first.
    """

    text: str
    tokens: int
    predicates: tuple[str, ...]
    concepts: tuple[str, ...]
    qualifiers: tuple[str, ...]
    mentions: tuple[Mention, ...]
    sources: tuple[str, ...]
    masked: str = ""

    def __str__(self) -> str:
        return self.text


def excerpt(
    known: KnownNames,
    store: Store,
    question: str,
    tokens: int,
    *,
    source: str | None = None,
    demonstrated: Mapping[str, float] | None = None,
    count: Callable[[str], int] | None = None,
    samples: bool = True,
    untrusted: Collection[str] = (),
    mentions: Sequence[Mention] | None = None,
    sources: Sequence[str] | None = None,
    wording: Wording = WORDS,
) -> Excerpt:
    """The part of a schema that a question needs, in at most `tokens` tokens.

    `sources` are those that may be meant, the likeliest first, where they were ranked before.
    `demonstrated` are names that similar questions used, with a weight from 0 to 1. `samples=False`
    leaves out all data but names; for the predicates of `untrusted` sources this is always so. `wording`
    is how names and predicates are written.
    """
    if type(tokens) is not int or tokens < 0:
        raise OptionError(f"tokens is a whole number and 0 or more, not {tokens!r}")
    counted = estimate if count is None else count
    result = tuple(mentions_in(question, known) if mentions is None else mentions)
    form, words = masked(question, result), asked_about(question, result)
    scores = known.asked_for(words)
    for name, weight in (demonstrated or {}).items():
        if (place := known.places.get(name)) is not None:
            scores[place] += _DEMONSTRATED * weight
    if any(not item.names for item in result):
        # What is no name of an entity may be the text of a predicate that names things.
        scores[known.naming] += _NAMING
    things = _things(known, store, result, scores, wording)
    single = [(item, wording.entity(item.names[:1], _key_of(known, store, item.names, wording))) for item, _, _ in things]
    paths = _paths(known, store, single, scores, wording)
    ranked = rank_sources(known, scores, words) if sources is None and source is None else list(sources or ())
    offered = (source,) if source is not None else tuple(ranked[: MOST_SOURCES if len(known.sources.names) > 10 else 10])
    allowed = _allowed(known, source, offered)
    order = _order(scores, known.predicates.sizes, allowed)
    concepts = known.concepts.scores(words)
    _add(concepts, known.concepts.names, demonstrated)
    writer = _Writer(known, counted, tokens, wording, samples=samples, untrusted=frozenset(untrusted))
    writer.sources(offered, source)
    writer.things([(text, predicates) for _, text, predicates in things])
    writer.paths(paths)
    keys = known.qualifiers.scores(words)
    _add(keys, known.qualifiers.names, demonstrated)
    writer.names(_fitting(concepts, known.concepts.sizes) if source is None else [], _fitting(keys, known.qualifiers.sizes))
    writer.predicates(order)
    text, names = writer.done(order)
    return Excerpt(text, counted(text), tuple(names), tuple(writer.named), tuple(writer.keyed), result, offered, form)


def _fitting(scores: NDArray[np.float64], sizes: Sequence[int]) -> list[int]:
    """Positions in order, of those that fit the question; a few in any case."""
    order = _order(scores, sizes, None)
    return [at for number, at in enumerate(order) if number < _IN_ANY_CASE or scores[at] >= _FITS]


def _add(scores: NDArray[np.float64], names: Sequence[str], demonstrated: Mapping[str, float] | None) -> None:
    """Raise the scores of names that similar questions used."""
    if demonstrated:
        for at, name in enumerate(names):
            scores[at] += _DEMONSTRATED * demonstrated.get(name, 0.0)


def _order(scores: NDArray[np.float64], sizes: Sequence[int], allowed: NDArray[np.bool_] | None) -> list[int]:
    """Positions by falling score, then size, then position."""
    order = np.lexsort((np.arange(len(scores)), -np.asarray(sizes, np.int64), -np.round(scores, 6)))
    kept: list[int] = (order if allowed is None else order[allowed[order]]).tolist()
    return kept


def _allowed(known: KnownNames, source: str | None, sources: Sequence[str]) -> NDArray[np.bool_] | None:
    """Which predicates may be listed: those of the source, or of the offered ones among many sources."""
    many = len(known.sources.names) > 10
    if source is None and not many:
        return None
    mask = np.zeros(len(known.predicates.names), np.bool_)
    for item in (source,) if source is not None else sources:
        mask[known.of_source(item)] = True
    return mask


def rank_sources(known: KnownNames, scores: NDArray[np.float64], question: str) -> list[str]:
    """All sources, those first whose predicates and name fit the question best."""
    named = known.sources.scores(question)
    best = np.zeros(len(known.sources.names))
    for at, name in enumerate(known.sources.names):
        some = scores[known.of_source(name)]
        top = np.sort(some)[::-1][:4]
        best[at] = float((top * np.array([1.0, 0.7, 0.5, 0.3])[: len(top)]).sum()) + 0.5 * named[at]
    return [known.sources.names[at] for at in _order(best, known.sources.sizes, None)]


# -- around the entities of a question ---------------------------------------------------------------


def _things(
    known: KnownNames, store: Store, found: Sequence[Mention], scores: NDArray[np.float64], words: Wording
) -> list[tuple[Mention, str, list[str]]]:
    """The first entities, each as a text and with its predicates: the direction and the type of the other
    end, the best fitting first. Raises the `scores` of predicates around them.
    """
    things: list[tuple[Mention, str, list[str]]] = []
    fitting = scores.copy()
    for member in [item for item in found if item.names][:_MOST_THINGS]:
        check()
        near = predicates_around(known, store, member.names)
        told: dict[str, list[str]] = {}
        for way in ("forward", "backward", "value"):
            for name in near.get(way, ()):
                told.setdefault(name, []).append(way)
        for names, gain in ((told, _ONE_STEP), (near.get("beyond", ()), _TWO_STEPS)):
            for name in names:
                if (place := known.places.get(name)) is not None:
                    scores[place] += gain
        order = sorted(told, key=lambda name: (-fitting[known.places[name]] if name in known.places else 0.0, name))
        shown = [
            words.around(name, known.predicate(known.places[name]) if name in known.places else None, told[name])
            for name in order[:_MOST_OF_ONE]
        ]
        things.append((member, words.entity(member.names[:3], _key_of(known, store, member.names, words)), shown))
    return things


def _key_of(known: KnownNames, store: Store, names: tuple[str, ...], words: Wording) -> str:
    """The attribute that has the name of an entity, for Cypher: `n.name` is the name itself only where the
    graph has no attribute called `name`.
    """
    place = known.places.get("name")
    if not isinstance(words, CypherWording) or place is None or not known.survey["predicates"][place][2]:
        return ""
    key = known.keys.get(names)
    if key is None:
        named = alg.Where(alg.Scan(alg.ByName(names), None, "subject", "subject", "attribute"), alg.Compare("=", names[0]))
        several = plan_texts(store, alg.Distinct(alg.Predicates(named)))
        key = known.keys[names] = "name" if "name" in several or not several else several[0]
    return key


def _paths(
    known: KnownNames, store: Store, found: Sequence[tuple[Mention, str]], scores: NDArray[np.float64], words: Wording
) -> list[str]:
    """How the entities of a question are connected, by one statement or by two; raises the `scores` of
    these predicates.
    """
    lines: list[str] = []
    pairs = [(one, two) for at, one in enumerate(found) for two in found[at + 1 :] if one[0].names != two[0].names]
    for (one, left_end), (two, right_end) in pairs[:_MOST_PAIRS]:
        check()
        first, second = alg.ByName(one.names), alg.ByName(two.names)
        steps, back = ([alg.Scan(end, None, *way, "relation") for way in _WAYS] for end in (first, second))
        if sum(store.counted(steps + back, lambda _: ())) > _MOST_AROUND:
            continue
        middle = alg.intersect(alg.union(*map(alg.Reached, steps)), alg.union(*map(alg.Reached, back)))
        ways = [_between(store, left, right) for left, right in ((first, second), (first, middle), (middle, second))]
        for name, _ in (pair for several in ways for pair in several):
            if (place := known.places.get(name)) is not None:
                scores[place] += _CONNECTS
        lines += [f"- {left_end} {words.arrow(*way)} {right_end}" for way in ways[0][:4]]
        if ways[1] and ways[2]:
            left, right = (" or ".join(words.arrow(*way) for way in several[:4]) for several in ways[1:])
            lines.append(f"- {left_end} {left} {words.between} {right} {right_end}")
    return lines


def _between(store: Store, left: alg.Entities, right: alg.Entities) -> list[tuple[str, bool]]:
    """The relations from some entities to others, and (False) from the others to them."""
    return [
        (name, forward)
        for one, two, forward in ((left, right, True), (right, left, False))
        for name in plan_texts(
            store, alg.Distinct(alg.Predicates(alg.Where(alg.Scan(one, None, "subject", "object", "relation"), alg.Among(two))))
        )
    ]


#: The ends of statements, from where they are followed and to where.
_WAYS: Final[tuple[tuple[End, End], ...]] = (("subject", "object"), ("object", "subject"))


def predicates_around(known: KnownNames, store: Store, names: tuple[str, ...]) -> dict[str, list[str]]:
    """The predicates around entities (forward, backward, value, and beyond), cached until the graph changes."""
    kept: dict[tuple[str, ...], dict[str, list[str]]] = known.around
    result = kept.get(names)
    if result is None:
        result = {way: plan_texts(store, plan) for way, plan in alg.around(alg.ByName(names)).items()}
        steps = alg.Scan(alg.ByName(names), None, "subject", "object", "relation")
        back = alg.Scan(alg.ByName(names), None, "object", "subject", "relation")
        if sum(store.counted([steps, back], lambda _: ())) <= _MOST_AROUND:
            beyond = alg.Predicates(alg.Scan(alg.Reached(steps), None)), alg.Predicates(alg.Scan(alg.Reached(back), None))
            result["beyond"] = [text for plan in beyond for text in plan_texts(store, alg.Distinct(plan))]
        if len(kept) > 4_096:
            kept.clear()
        kept[names] = result
    return result


# -- text of an excerpt ----------------------------------------------------------------------------


class _Writer:
    """Writes lines within a budget: each section has a share, and names get the rest."""

    def __init__(
        self,
        known: KnownNames,
        counted: Callable[[str], int],
        tokens: int,
        words: Wording,
        *,
        samples: bool,
        untrusted: frozenset[str],
    ) -> None:
        self._known, self._counted, self._left, self._tokens = known, counted, tokens, tokens
        self._samples, self._untrusted, self._words = samples, untrusted, words
        self._lines: list[str] = []
        #: Lines that stand below the others.
        self._below: list[str] = []
        #: The line of each predicate that is described.
        self._told: dict[str, str] = {}
        self.named: list[str] = []
        self.keyed: list[str] = []

    def _add(self, lines: Sequence[str], most: float) -> int:
        """Add the lines that fit into `most` tokens; returns how many."""
        used = 0
        for number, line in enumerate(lines):
            cost = self._counted(line + "\n")
            if used + cost > most or cost > self._left:
                return number
            self._lines.append(line)
            self._left -= cost
            used += cost
        return len(lines)

    def sources(self, sources: Sequence[str], source: str | None) -> None:
        """The sources that may be meant."""
        if source is None and len(self._known.sources.names) > 1 and sources:
            self._add([f"Sources: {', '.join(quoted(name) for name in sources)}"], 0.1 * self._tokens)

    def things(self, things: Sequence[tuple[str, list[str]]]) -> None:
        """The entities in the question, each with as many of its predicates as fit into its part."""
        if not things or not self._samples:
            return
        share = _SHARES["things"] * self._tokens
        title = self._words.things
        lines, left = [title], share - self._counted(title + "\n")
        for at, (entity, predicates) in enumerate(things):
            part, line = left / (len(things) - at), f"- {entity}:"
            used = self._counted(line + "\n")
            kept = 0
            for text in predicates:
                cost = self._counted(f" {text};")
                if used + cost > part:
                    break
                line += f" {text};"
                used += cost
                kept += 1
            if used <= part and (kept or not predicates):
                lines.append(line.rstrip(";") if predicates else f"{line} nothing")
                left -= used
        if len(lines) > 1:
            self._add(lines, share)

    def paths(self, lines: Sequence[str]) -> None:
        """How the entities are connected."""
        if lines and self._samples:
            title = "Connections of these:"
            if self._counted(f"{title}\n{lines[0]}\n") <= _SHARES["paths"] * self._tokens:
                self._add([title, *lines], _SHARES["paths"] * self._tokens)

    def names(self, concepts: Sequence[int], keys: Sequence[int]) -> None:
        """The nearest concepts and keys of qualifiers by name; they stand below the predicates."""
        small = 0.6 if self._tokens < _SMALL else 1.0
        for title, names, order, kept, share in (
            (self._words.concepts, self._known.concepts.names, concepts, self.named, _SHARES["concepts"]),
            (self._words.keys, self._known.qualifiers.names, keys, self.keyed, _SHARES["keys"]),
        ):
            line, listed = self._names(title, [names[at] for at in order], min(small * share * self._tokens, self._left))
            if listed:
                kept += listed
                self._below.append(line)
                self._left -= self._counted(line + "\n")

    def predicates(self, order: Sequence[int]) -> None:
        """As many predicates as fit, best first, each with its direction and the types of its ends; the best
        at length, and more of them where all are told.
        """
        title = self._words.predicates
        share = _SHARES["told"] * self._left - self._counted(title + "\n")
        small = self._tokens < _SMALL
        rich, longest = 0.0 if small else _SHARES["rich"] * share, _CUT if small else LONGEST_NAME
        lines: dict[int, str] = {}
        used = 0.0
        for place in order[:_MOST_TOLD]:
            check()
            value = self._known.predicate(place)
            line = self._line(value, 0) if used < rich else self._words.short(value, longest=longest)
            cost = self._counted(line + "\n")
            if used + cost > share:
                break
            lines[place] = line
            used += cost
        # Where all are told, what is left describes the best of them.
        if len(lines) == len(order):
            for place in lines:
                check()
                line = self._line(self._known.predicate(place), 2 if small else 0)
                cost = self._counted(line + "\n") - self._counted(lines[place] + "\n")
                if used + cost > share:
                    break
                lines[place] = line
                used += cost
        if lines:
            self._add([title, *lines.values()], self._left)
            self._told |= {self._known.predicates.names[place]: line for place, line in lines.items()}

    def _line(self, value: PredicateSchema, length: int) -> str:
        trusted = self._samples and not self._untrusted & {source.name for source in value.sources}
        return self._words.line(value, length, examples=trusted)

    def _names(self, title: str, names: Sequence[str], most: float) -> tuple[str, list[str]]:
        """As many names as fit into one line."""
        kept: dict[str, str] = {}
        used: float = self._counted(title + "\n")
        words = self._words.concept if title == self._words.concepts else self._words.name
        for name in names:
            text = words(name)
            used += self._counted(text + ", ")
            if used > most:
                break
            kept[name] = text
        return title + ", ".join(kept.values()), list(kept)

    def done(self, order: Sequence[int]) -> tuple[str, list[str]]:
        """The text, and the predicates in it; more names fill what is left."""
        known = self._known.predicates.names
        rest = [known[place] for place in order if known[place] not in self._told]
        line, kept = self._names(self._words.more, rest[:400], self._left)
        lines = [*self._lines, *self._below, *([line] if kept else [])]
        text = "\n".join(lines)
        # Tokens of a tokenizer may run over ends of lines.
        while lines and self._counted(text) > self._tokens:
            lines = lines[:-1]
            kept = []
            text = "\n".join(lines)
        left = set(lines)
        told = [name for name, line in self._told.items() if line in left]
        return text, [*told, *kept]


# -- calls that a question may need ------------------------------------------------------------------
# The calls of LLM queries beyond the usual ones, each shown where words of the question ask for it.


_CALLS: Final = tuple(
    (re.compile(rf"\b(?:{words})\b", re.IGNORECASE), f"- {call}")
    for words, _, call in (
        line.replace("NUMBER", r"(?:\d+|two|three|four|five|six|seven|eight|nine|ten)").partition(" => ")
        for line in Path(__file__).with_name("calls.txt").read_text("utf-8").splitlines()
        if line and not line.startswith("#")
    )
)
#: Calls that are shown.
_MOST_CALLS: Final = 5
_NOW: Final = re.compile(
    r"\b(?:now|today|tonight|yesterday|current(?:ly)?|present(?:ly)?|nowadays|(?:this|last|next|past) (?:year|month|week|decade|"
    r"century)|ago|recent(?:ly)?|still|so far|to date|how old|upcoming|(?:past|last) \w+ (?:years|months|days|decades))\b",
    re.IGNORECASE,
)


def calls_for(question: str) -> list[str]:
    """The calls of LLM queries beyond the usual ones that words of a question ask for, a line each.

    >>> [line.partition("(")[0] for line in calls_for("Which 5 highest mountains has each country?")]
    ['- group_by', '- top']
    """
    text = question[:_MOST_ASKED]
    return [line for words, line in _CALLS if words.search(text)][:_MOST_CALLS]


#: Words that ask for groups, an order, the first so many, variables that are the same, or parts of texts.
_BEYOND_KOPL: Final = re.compile(
    r"\b(?:each|every|per|for all|respective(?:ly)?|average|mean|group(?:ed)?|sort(?:ed)?|order(?:ed)?|rank(?:ed|ing)?"
    r"|(?:top|first|bottom|last) (?:\d+|two|three|four|five|six|seven|eight|nine|ten)"
    r"|(?:(?:more|fewer|less) than|at (?:least|most)) (?:one|two|three|four|five|six|seven|eight|nine|ten)"
    r"|(?:the )?(?:most|least|fewest) (?:number of |common |frequent(?:ly)? |often )?\w+s"
    r"|same|(?:start|begin|end)(?:s|ing)? with|contain(?:s|ing)?|includ(?:e|es|ing)|mention(?:s|ed|ing)?)\b",
    re.IGNORECASE,
)


def beyond_kopl(question: str) -> str | None:
    """The words of a question that ask for what KoPL does not have: groups, an order, the first so many,
    two variables that are the same, or parts of texts; None where none do.

    >>> beyond_kopl("Who directed the most movies?"), beyond_kopl("Who directed Speed?")
    ('the most movies', None)
    """
    match = _BEYOND_KOPL.search(question[:_MOST_ASKED])
    return None if match is None else match[0]


def speaks_of_now(question: str) -> bool:
    """Whether what a question asks depends on the date.

    >>> speaks_of_now("Who is the current president?"), speaks_of_now("Who was president in 1984?")
    (True, False)
    """
    return _NOW.search(question[:_MOST_ASKED]) is not None


#: Characters of a question that are looked through for such words.
_MOST_ASKED: Final = 2_000


# -- prompt files ----------------------------------------------------------------------------------
# A prompt is a text file `NAME.vN.txt` in `prompts`; files of the same names in a folder given as
# `prompts=` take precedence. Fields are in braces. Data of the graph is in a block between two marks
# with a nonce, which no name can contain, as JSON strings without control characters.


#: The prompts, and the fields of each.
FIELDS: Final[Mapping[str, frozenset[str]]] = {
    "system": frozenset({"mark", "language"}),
    "user": frozenset({"excerpt", "demonstrations", "question"}),
    "query": frozenset(),
    "kopl": frozenset(),
    "cypher": frozenset(),
    "pattern": frozenset(),
    "retry": frozenset({"feedback"}),
    "verbalise": frozenset({"mark", "facts", "question"}),
    "parts": frozenset({"question", "most"}),
    "function": frozenset({"mark", "question", "step", "function", "values"}),
}
_OWN: Final = Path(__file__).with_name("prompts")
_FILE: Final = re.compile(r"([a-z]+)\.v(\d+)\.txt")
_FIELD: Final = re.compile(r"\{\{|\}\}|\{([a-z]+)\}")
#: Characters of a prompt file that are read.
MOST: Final = 50_000


class Prompts:
    """The prompts of one call; `versions` has the file of each."""

    def __init__(self, place: str | os.PathLike[str] | None = None) -> None:
        self._texts = dict(_read(_OWN))
        self._from = {name: text[0] for name, text in self._texts.items()}
        if place is not None:
            folder = Path(place)
            if not folder.is_dir():
                raise OptionError(f"prompts is a folder with files such as system.v1.txt, not {os.fspath(place)!r}")
            for name, text in _read_now(folder).items():
                self._texts[name], self._from[name] = text, str(folder / text[0])

    @property
    def versions(self) -> dict[str, str]:
        """The file that each prompt came from, by its name."""
        return dict(self._from)

    def fill(self, name: str, **fields: str) -> str:
        """A prompt with its fields filled in; fields within these texts are left as they are."""
        file, text = self._texts[name]

        def put(found: re.Match[str]) -> str:
            if found[1] is None:
                return found[0][0]
            if found[1] not in fields:
                raise OptionError(
                    f"the prompt {file} has no field {found[1]!r}",
                    candidates=nearest(found[1], FIELDS[name]),
                    hint=f"its fields are {', '.join(sorted(FIELDS[name]))}; a brace is written {{{{",
                )
            return fields[found[1]]

        return _FIELD.sub(put, text).strip("\n")


@lru_cache(maxsize=4)
def _read(folder: Path) -> Mapping[str, tuple[str, str]]:
    return _read_now(folder)


def _read_now(folder: Path) -> dict[str, tuple[str, str]]:
    """The newest version of each prompt in a folder: its file, and its text."""
    result: dict[str, tuple[int, str, str]] = {}
    for path in sorted(folder.iterdir()):
        named = _FILE.fullmatch(path.name)
        if named is None:
            continue
        if named[1] not in FIELDS:
            raise OptionError(f"there is no prompt {named[1]!r}", candidates=nearest(named[1], FIELDS))
        version = int(named[2])
        if named[1] not in result or result[named[1]][0] < version:
            text = path.read_text("utf-8")
            if len(text) > MOST:
                raise OptionError(f"the prompt {path.name} has more than {MOST:,} characters")
            result[named[1]] = version, path.name, text
    return {name: (file, text) for name, (_, file, text) in result.items()}


def mark_of(seed: int, taken: Sequence[str]) -> str:
    """A word that is in none of these texts, to mark the begin and end of data; fixed by the seed."""
    drawn = Random(f"mark {seed}")
    while True:
        mark = f"DATA-{drawn.getrandbits(64):016x}"
        if not any(mark in text for text in taken):
            return mark


def block(mark: str, text: str) -> str:
    """A text of data between its marks."""
    return f"<{mark}>\n{text}\n</{mark}>"


#: From text to how many tokens it is.
Count = Callable[[str], int]
