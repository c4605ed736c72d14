"""What a model is shown of a graph: the names in a question, an excerpt of the schema and the data, and the prompt
texts around them (TrustUQA, section 3.2).
"""

from __future__ import annotations

import math
import os
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import islice
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from condgraph.engine import algebra as alg
from condgraph.engine.bounds import cached, check, watched
from condgraph.engine.errors import OptionError, nearest, shortened
from condgraph.engine.store import plan_texts
from condgraph.engine.values import fold
from condgraph.models.chat import estimate
from condgraph.names.linking import ENTITY_THRESHOLD, Linker
from condgraph.names.vocabulary import DIMENSION, Spelling, Spellings, Vocabulary, bare, resolve
from condgraph.names.words import STOP, WORD, others, stem, words_of
from condgraph.overview.schema import (
    MAX_NAME,
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
# The names in one state of a graph, split into words once and cached with that state.


#: The weights of word families and of the type of value that a question asks for, and the most
#: characters of a question that are searched for word families.
_FAMILY: Final = 0.8
_TYPE: Final = 0.1
_MAX_FAMILIES: Final = 1_000
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
#: The weight of a synonym, relative to the word itself.
_SYNONYM: Final = 0.7
#: The weight of similar letters, relative to whole words.
_LETTERS: Final = 0.6
_ENCODER: Final = LexicalEncoder(DIMENSION)


@lru_cache(maxsize=64)
def _encoded(text: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the columns of a text's vector and their values, cached for all vocabularies of a question."""
    result = _ENCODER.sparse([text])
    return result.indices, result.data


class Names:
    """Names of one kind, scored against the words of a question."""

    def __init__(self, names: Sequence[str], sizes: Sequence[int]) -> None:
        self.names, self.sizes = names, sizes
        self._places: dict[str, list[int]] = {}
        occurrences: Counter[str] = Counter()
        stems = [[stem(word) for word in words_of(name)] for name in names]
        for words in stems:
            occurrences.update(set(words))
        total = max(len(names), 1)
        self._weight = {word: math.log(1 + total / count) * (0.2 if word in STOP else 1.0) for word, count in occurrences.items()}
        # A name of stop words alone ("of") does not match a question merely because it has them.
        self._total = np.array(
            [(sum(self._weight[word] for word in set(words)) or 1.0) / (0.2 if set(words) <= STOP else 1.0) for words in stems]
        )
        for position, words in enumerate(stems):
            for word in set(words):
                self._places.setdefault(word, []).append(position)
        self._vocabulary = Vocabulary(list(names))

    @cached
    def _sizes_of_grams(self) -> NDArray[np.float64]:
        rows = self._vocabulary.encoder.sparse(self._vocabulary.names)
        return np.sqrt(np.maximum(np.diff(rows.indptr), 1))

    def scores(self, question: str) -> NDArray[np.float64]:
        """Return a score for each name, from 0 to about 1.6: the share of its words that are in the question (rare
        words count more), plus the share of its letters, in pieces of two to four.
        """
        result = np.zeros(len(self.names))
        if not len(self.names):
            return result
        word_weights: dict[str, float] = {}
        for word in words_of(question):
            word_weights[stem(word)] = 1.0
            for synonym in others(word):
                word_weights.setdefault(stem(synonym), _SYNONYM)
        for word, weight in word_weights.items():
            places = self._places.get(word)
            if places:
                result[places] += weight * self._weight[word]
        result /= self._total
        # The encoder's vectors have length one; the score is a share of the name only.
        indices, data = _encoded(question)
        starts, members, weights = self._vocabulary.prepare()
        hits = [slice(starts[column], starts[column + 1]) for column in indices]
        if not hits:
            return result
        positions = np.concatenate([members[hit] for hit in hits])
        products = np.concatenate([weights[hit] * weight for hit, weight in zip(hits, data, strict=True)])
        letters = (
            np.bincount(positions, weights=products, minlength=len(self.names)) * math.sqrt(len(indices)) / self._sizes_of_grams
        )
        return result + _LETTERS * np.minimum(letters, 1.0) ** 2


class KnownNames:
    """The names in one state of a graph, for `ask`. Use `known_of`, which caches it."""

    def __init__(self, schema: KnownSchema, survey: Survey) -> None:
        self.schema, self.survey = schema, survey
        self.linker: Linker = Linker.of(schema)  # type: ignore[arg-type]
        rows = survey["predicates"]
        self.places = {str(item[0]): place for place, item in enumerate(rows)}
        self.predicates = Names([row[0] for row in rows], [row[1] + row[2] for row in rows])
        self._concepts = [place for place, item in enumerate(survey["kinds"]) if item[0] == "concept"]
        kinds = survey["kinds"]
        self.concepts = Names([kinds[place][1] for place in self._concepts], [kinds[place][3] for place in self._concepts])
        #: The words of predicates, concepts and qualifier keys.
        self.words = frozenset(
            word for item in (*self.predicates.names, *self.concepts.names, *self.qualifiers.names) for word in words_of(item)
        )
        self.words -= STOP
        #: The predicates around names, cached.
        self.around: dict[tuple[str, ...], dict[str, list[str]]] = {}
        #: The attributes with the names of entities, cached.
        self.keys: dict[tuple[str, ...], str] = {}
        self._by_source: dict[str, list[int]] = {}
        self._schemas: dict[int, PredicateSchema] = {}
        #: The words of the last question, and the scores of the predicates for them.
        self._last_scores: tuple[str, NDArray[np.float64]] | None = None
        #: The positions of the predicates with values of each type.
        self._by_type: dict[str, list[int]] = {}
        for place, member in enumerate(rows):
            for source, _ in member[5]:
                self._by_source.setdefault(source, []).append(place)

    @cached
    def spellings(self) -> Spellings:
        """The names of entities, indexed by the ways in which people type them."""
        return Spellings(self.linker.entities.names, self._aliases())

    def _aliases(self) -> Iterator[tuple[str, str]]:
        """Yield the aliases that the graph states, each with the name of its entity: the texts of predicates such as
        `also known as`. A graph on a server yields none.
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
        """The stems of the words of predicates, concepts and qualifier keys."""
        return frozenset(map(stem, self.words))

    @cached
    def families(self) -> Families:
        """The predicates, indexed by the families of everyday words that refer to them."""
        return Families(self.predicates.names)

    def predicate_scores(self, words: str) -> NDArray[np.float64]:
        """Return how well each predicate fits the words of a question, from 0 to about 2.5: by its own words and
        letters, by word families (died is `date of death`), and by the type of value that the question asks for (when,
        how many).
        """
        if self._last_scores is not None and self._last_scores[0] == words:
            return self._last_scores[1].copy()
        result = self.predicates.scores(words)
        if not len(result):
            return result
        result = result + _FAMILY * np.array(self.families.fits(shortened(words, _MAX_FAMILIES)), np.float64) / 1000
        for pattern, kind in _ASKS:
            if pattern.search(words):
                result[self._of_type(kind)] += _TYPE
        self._last_scores = words, result
        return result.copy()

    @cached
    def naming_predicates(self) -> list[int]:
        """The positions of predicates with texts that name their subjects, such as `title`."""
        return [at for at in self._of_type("text") if bare(self.predicates.names[at].rpartition(":")[2]) in NAMES]

    def _of_type(self, kind: str) -> list[int]:
        positions = self._by_type.get(kind)
        if positions is None:
            rows = self.survey["predicates"]
            positions = self._by_type[kind] = [
                at for at, _ in enumerate(rows) if any(v.type == kind for v in self.predicate(at).values)
            ]
        return positions

    @cached
    def qualifiers(self) -> Names:
        """The qualifier keys."""
        sizes: Counter[str] = Counter()
        for item in self.survey["predicates"]:
            for key, values in item[4]:
                sizes[key] += sum(value[2] for value in values)
        for key in getattr(self.schema, "qualifiers", ()):
            sizes.setdefault(key, 0)
        return Names(list(sizes), list(sizes.values()))

    @cached
    def sources(self) -> Names:
        """The names of the sources."""
        return Names([item[0] for item in self.survey["sources"]], [item[2] for item in self.survey["sources"]])

    def rows_named(self, texts: Sequence[str]) -> frozenset[str]:
        """Return the texts that name a row of a table; all other names are in `linker.entities`."""
        if not texts or not self.linker.tables:
            return frozenset()
        missing = getattr(self.schema, "missing", None)
        if missing is not None:
            return frozenset(texts) - frozenset(missing(texts))
        return frozenset(text for text in texts if self.schema.has_entity(text))

    def of_kind(self, kind: str) -> list[int]:
        """Return the positions of the predicates that are relations ("relation") or attributes ("attribute"), of the
        concepts ("concept"), or of all predicates (any other kind).
        """
        if kind == "concept":
            return list(range(len(self.concepts.names)))
        column = {"relation": 1, "attribute": 2}.get(kind)
        rows = self.survey["predicates"]
        return [place for place, item in enumerate(rows) if column is None or item[column]]

    def of_source(self, source: str) -> list[int]:
        """Return the positions of the predicates of a source."""
        return self._by_source.get(source, [])

    def predicate(self, place: int) -> PredicateSchema:
        """Return the schema of a predicate, cached for the first few thousand."""
        result = self._schemas.get(place)
        if result is None:
            result = predicate_schema(self.survey, place)
            if len(self._schemas) < 4_096:
                self._schemas[place] = result
        return result

    def concept(self, place: int) -> ConceptSchema:
        """Return the schema of a concept, given its position in `concepts`."""
        return concept_schema(self.survey["kinds"], self.survey["kinds"][self._concepts[place]])


def known_of(store: Store, survey: Survey) -> KnownNames:
    """Return the names in the current state of a store, computed once for each state."""
    schema = store.linking_schema
    result: Any = schema.kept.get("ask")
    if result is None or result.survey is not survey:
        result = schema.kept["ask"] = KnownNames(schema, survey)
    assert isinstance(result, KnownNames)
    return result


# -- mentions --------------------------------------------------------------------------------------
# The entities that a question names, exactly or nearly, and texts in quotes or brackets.


#: The most words (and quoted texts) of a question that are looked up, and the most words of a name.
MAX_WORDS: Final = 200
MAX_NAME_WORDS: Final = 10
#: The most names that are looked up by similarity where none is equal.
_MAX_SIMILAR: Final = 4
_QUOTED: Final = re.compile(r'"([^"\n]{1,200})"|“([^”\n]{1,200})”|\[([^\]\n]{1,200})\]|‘([^’\n]{1,200})’')
_PARTICLES: Final = frozenset(("of", "the", "de", "la", "and", "in", "von", "van", "der", "du", "di", "da"))


#: Predicates whose texts are aliases of their subjects, as `names.vocabulary.bare` writes them.
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
    """A part of a question, from `start` to `end`, and the names in the graph that it may mean; none where nothing is
    similar. `exact`: the part equals the name except for case and accents.
    """

    text: str
    start: int
    end: int
    names: tuple[str, ...]
    exact: bool = True
    #: The confidence in each name, from 0 to 1; empty for an exact mention.
    scores: tuple[float, ...] = ()


def mentions_in(question: str, known: KnownNames) -> list[Mention]:
    """Return the mentions in a question, in order; of two that overlap, the longer one. Names match as people type them
    (`KnownNames.spellings`); near matches have scores.
    """
    spans = [(match.start(), match.end()) for match in WORD.finditer(question)][:MAX_WORDS]
    vocabulary = known.linker.entities
    mentions: list[Mention] = []
    for match in islice(_QUOTED.finditer(question), MAX_WORDS):
        check()
        quoted_text = next(text for text in match.groups() if text is not None)
        names = tuple(dict.fromkeys(vocabulary.names[place] for place in vocabulary.folded(quoted_text)))
        spelled = [] if names else known.spellings.same(quoted_text) or known.spellings.typed(quoted_text)
        if names:
            mentions.append(Mention(quoted_text, match.start(), match.end(), names))
        elif spelled:
            mentions.append(_spelled(quoted_text, match.start(), match.end(), spelled))
        else:
            near = resolve(quoted_text, vocabulary, threshold=ENTITY_THRESHOLD)
            mentions.append(
                Mention(quoted_text, match.start(), match.end(), tuple(dict.fromkeys(m.name for m in near.matches)), exact=False)
            )
    rows = known.rows_named(_capital_runs(question, spans))
    for length in range(min(MAX_NAME_WORDS, len(spans)), 0, -1):
        check()
        for first in range(len(spans) - length + 1):
            start, end = spans[first][0], spans[first + length - 1][1]
            text = question[start:end]
            if _overlaps(mentions, start, end) or not _may_name(question, spans[first : first + length], text, known):
                continue
            places = vocabulary.folded(text)
            if not places and question[end : end + 1] == ".":
                places = vocabulary.folded(text + ".")
            if places:
                mentions.append(Mention(text, start, end, tuple(dict.fromkeys(vocabulary.names[place] for place in places))))
            elif text in rows:
                mentions.append(Mention(text, start, end, (text,)))
            elif spelled := _misspelled(text, length, known) or _last_words(question, spans[first : first + length], text, known):
                mentions.append(_spelled(text, start, end, spelled))
    mentions += _unspaced(question, spans, mentions, known)
    mentions += _shortened(question, spans, mentions, known)
    mentions += _similar(question, spans, mentions, known)
    return sorted(mentions, key=lambda item: item.start)


def _spelled(text: str, start: int, end: int, spellings: Sequence[Spelling]) -> Mention:
    """Return a mention of names as people type them; it is exact where all differ in marks only."""
    best = sorted(spellings, key=lambda spelling: -spelling.score)
    exact = all(spelling.way == "marks" for spelling in best)
    scores = () if exact else tuple(spelling.score for spelling in best)
    return Mention(text, start, end, tuple(spelling.name for spelling in best), exact, scores)


def _misspelled(text: str, length: int, known: KnownNames) -> list[Spelling]:
    """Return the names that equal words of a question except for marks, a letter, or the order of words; none where the
    words only ask.
    """
    spellings = known.spellings.same(text)
    if spellings:
        return spellings
    words = words_of(text)
    content = [word for word in words if word not in STOP and stem(word) not in known.stems and not others(word)]
    # Words of the question itself, or a single short word, are no name.
    if not content or (length == 1 and len(text) < (_MIN_CAPITAL if text[:1].isupper() else _MIN_TYPED)):
        return []
    spellings = [spelling for spelling in known.spellings.typed(text) if len(words_of(spelling.name)) >= len(words) - 1]
    if words[0] in STOP or words[-1] in STOP:
        # A stop word at an end must be part of the name, unless the name has the same words in another order.
        ends = [end for end in (slice(1), slice(-1, None)) if words[end][0] in STOP]
        spellings = [
            item for item in spellings if item.way == "order" or all(words_of(item.name)[end] == words[end] for end in ends)
        ]
    return spellings


def _last_words(question: str, words: Sequence[tuple[int, int]], text: str, known: KnownNames) -> list[Spelling]:
    """Return the names that consist of one more word before several words of a question: at least two with capitals or
    digits besides stop words, and no stop word at the ends.
    """
    texts = [question[start:end] for start, end in words]
    content = [word for word in texts if word.casefold() not in STOP]
    stops_at_ends = {texts[0].casefold(), texts[-1].casefold()} & STOP
    if len(content) < 2 or stops_at_ends or not all(word[0].isupper() or word[0].isdecimal() for word in content):
        return []
    return [spelling for spelling in known.spellings.shortened(text) if spelling.way == "last"]


def _shortened(question: str, spans: Sequence[tuple[int, int]], mentions: Sequence[Mention], known: KnownNames) -> list[Mention]:
    """Return mentions of names by all their words but the first, or by their initials: words with capitals or, in a
    question without any name, words with no other meaning.
    """
    result: list[Mention] = []
    for length in (3, 2, 1):
        check()
        for first in range(len(spans) - length + 1):
            start, end = spans[first][0], spans[first + length - 1][1]
            text = question[start:end]
            words = words_of(text)
            capital = all(question[a].isupper() for a, _ in spans[first : first + length]) and first > 0
            distinctive = not any(word in STOP or stem(word) in known.stems or others(word) for word in words)
            if _overlaps([*mentions, *result], start, end) or not (distinctive and (capital or not mentions)):
                continue
            if spelled := known.spellings.shortened(text):
                result.append(_spelled(text, start, end, spelled))
    return result


def _unspaced(question: str, spans: Sequence[tuple[int, int]], mentions: Sequence[Mention], known: KnownNames) -> list[Mention]:
    """Return mentions of names within runs of letters of a script without spaces (or with particles attached to words)."""
    result: list[Mention] = []
    vocabulary = known.linker.entities
    for start, end in spans:
        if not _UNSPACED.search(question, start, end):
            continue
        check()
        end = min(end, start + _MAX_RUN)
        for size in range(min(end - start, _MAX_UNSPACED), 1, -1):
            for at in range(start, end - size + 1):
                text = question[at : at + size]
                if _overlaps([*mentions, *result], at, at + size) or not _UNSPACED.search(text):
                    continue
                if places := vocabulary.folded(text):
                    result.append(Mention(text, at, at + size, tuple(dict.fromkeys(vocabulary.names[place] for place in places))))
                elif spelled := known.spellings.aliased(text):
                    result.append(_spelled(text, at, at + size, spelled))
    return result


#: The fewest letters of a single word in which one may be wrong: with a capital, and without.
_MIN_CAPITAL, _MIN_TYPED = 3, 5
#: Letters of scripts that have no spaces between words, or particles attached to words; how many of them
#: are searched in a run, and the most letters of a name there.
_UNSPACED: Final = re.compile("[\u0e00-\u0e7f\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]")
_MAX_RUN, _MAX_UNSPACED = 120, 20


def unsearched_warning(question: str) -> str | None:
    """Return a warning about the part of a long question that is not searched for names; None for shorter questions."""
    next_word = next(islice(WORD.finditer(question), MAX_WORDS, None), None)
    next_quote = next(islice(_QUOTED.finditer(question), MAX_WORDS, None), None)
    if next_word is None and next_quote is None:
        return None
    what = "words" if next_quote is None else "quoted texts" if next_word is None else "words, and the first quoted texts,"
    first = f"the first {MAX_WORDS} {what} of the question"
    return f"names of the graph are looked for among {first}: later words may be names, too"


def crowded_aliases(question: str, mentions: Sequence[Mention], known: KnownNames) -> dict[str, list[str]]:
    """Return the words of a question that are an alias of so many entities that none is chosen, with the names of these
    entities. Words within a name are left out; of two that overlap, the longer one counts.
    """
    spans = [(result.start(), result.end()) for result in WORD.finditer(question)][:MAX_WORDS]
    taken = [(item.start, item.end) for item in mentions if item.names]
    result: dict[str, list[str]] = {}
    for length in range(min(MAX_NAME_WORDS, len(spans)), 0, -1):
        check()
        for first in range(len(spans) - length + 1):
            start, end = spans[first][0], spans[first + length - 1][1]
            if any(a < end and start < b for a, b in taken):
                continue
            if names := known.spellings.crowded(question[start:end]):
                result[question[start:end]] = names
                taken.append((start, end))
    return result


def masked(question: str, mentions: Sequence[Mention]) -> str:
    """Replace each mention and each number by a mark, so that questions of the same form become equal."""
    parts, at = [], 0
    for mention in mentions:
        parts += [question[at : mention.start], "~"]
        at = mention.end
    return re.sub(r"\d[\d.,:-]*", "#", "".join([*parts, question[at:]]))


def without_names(question: str, mentions: Sequence[Mention]) -> str:
    """Return a question without its exact names: the words that ask about them. A lower-case word that is also a name,
    such as the tag "director", stays if it may ask.
    """
    parts, at = [], 0
    for mention in mentions:
        if mention.exact and mention.names and not _may_ask(mention.text):
            parts += [question[at : mention.start], "~"]
            at = mention.end
    return "".join([*parts, question[at:]])


def _may_ask(text: str) -> bool:
    return text.islower() and " " not in text and bool(others(text) or fits(text))


def _overlaps(mentions: Sequence[Mention], start: int, end: int) -> bool:
    return any(item.start < end and start < item.end for item in mentions)


def _may_name(question: str, words: Sequence[tuple[int, int]], text: str, known: KnownNames) -> bool:
    """Return whether words of a question may be a name: not if all are stop words, and a single lower-case word only if
    it is not a word of the schema.
    """
    texts = [question[start:end] for start, end in words]
    if all(word.casefold() in STOP for word in texts):
        # "It" and "Up" are films if they have a capital and do not begin the question.
        return len(texts) == 1 and words[0][0] > 0 and texts[0][:1].isupper() and len(texts[0]) > 1 and texts[0] != "I"
    if len(texts) == 1 and texts[0].islower():
        return fold(text) not in known.words
    if len(texts) == 2 and texts[0].islower() and texts[0] in STOP:
        # "the divide" may be a film in a question without capitals; "the director" asks for one.
        return question.islower() and fold(texts[1]) not in known.words and not others(fold(texts[1])) and texts[1] not in STOP
    return True


def _capital_runs(question: str, spans: Sequence[tuple[int, int]]) -> list[str]:
    """Return runs of words that begin with a capital or a digit, which may name a row."""
    texts: dict[str, None] = {}
    for first, (start, _) in enumerate(spans):
        if question[start].isupper() or question[start].isdigit():
            for _, end in spans[first : first + MAX_NAME_WORDS]:
                texts[question[start:end]] = None
    return list(texts)


def _similar(question: str, spans: list[tuple[int, int]], mentions: Sequence[Mention], known: KnownNames) -> list[Mention]:
    """Return mentions of runs of capitalised words that are not exact names, with the most similar names."""
    result: list[Mention] = []
    run: list[tuple[int, int]] = []
    for number, (start, end) in enumerate([*spans, (len(question), len(question))]):
        word = question[start:end]
        inside = bool(word) and not _overlaps(mentions, start, end)
        capital = inside and (word[:1].isupper() or word[:1].isdigit()) and not (number == 0 and word.casefold() in STOP)
        # A word of the schema belongs to the question, not to a name.
        capital = capital and fold(word) not in known.words
        if capital or (run and inside and word in _PARTICLES):
            run.append((start, end))
            continue
        while run and question[slice(*run[-1])] in _PARTICLES:
            run.pop()
        if run and any(question[a:b][:1].isupper() for a, b in run) and len(result) < _MAX_SIMILAR:
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
# First come the entities in the question with the relations one and two steps away, and the names in
# similar demonstrations; then the names nearest to the words of the question. The best are described as
# `schema().text()` does, and as many more as fit are listed by name.


#: The most entities of a question whose relations are looked up.
_MAX_ENTITIES: Final = 3
#: The most statements around an entity whose second steps are looked up.
_MAX_AROUND: Final = 2_000
#: The most sources that are offered where none is given.
MAX_SOURCES: Final = 3
#: The share of the budget of each section; predicates get the rest.
_SHARES: Final = {"things": 0.25, "paths": 0.1, "rich": 0.15, "concepts": 0.12, "keys": 0.1}
#: The share of the lines of single predicates where others share lines: the largest with which all fit, or the last.
_BEST: Final = (0.9, 0.6, 0.3)
#: The most predicates shown of one entity, and the most pairs of entities whose connections are looked up.
_MAX_OF_ENTITY: Final = 12
_MAX_PAIRS: Final = 3
#: In fewer tokens, no predicate is described in full.
_SMALL: Final = 800
#: The most characters of the names of kinds in a small excerpt.
_CUT: Final = 24
#: The most predicates that are described.
_MAX_DESCRIBED: Final = 1_000
#: The number of names that are always listed, and the score that further names need.
_ALWAYS_LISTED: Final = 4
_MIN_SCORE: Final = 0.25
#: The weights of names one and two steps away from an entity, and of names in demonstrations.
_ONE_STEP, _TWO_STEPS, _DEMONSTRATED = 0.5, 0.2, 0.9
#: The weight of predicates that name things, where a question has a name of no known entity.
_NAMING: Final = 0.9
#: The weight of predicates that connect two entities in the question.
_CONNECTS: Final = 0.5


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A part of a schema: its `text`, the number of `tokens` in it, and the names in it. `sources` are those offered,
    best first.
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
    """Return the part of a schema that a question needs, in at most `tokens` tokens.

    `sources` are the sources that may be meant, the likeliest first, if they are ranked already. `demonstrated` are
    names that similar questions used, with weights from 0 to 1. `samples=False` leaves out all data except names; the
    predicates of `untrusted` sources never show data. `wording` says how names and predicates are written.
    """
    if type(tokens) is not int or tokens < 0:
        raise OptionError(f"tokens is a whole number and 0 or more, not {tokens!r}")
    counted = estimate if count is None else count
    result = tuple(mentions_in(question, known) if mentions is None else mentions)
    form, words = masked(question, result), without_names(question, result)
    scores = known.predicate_scores(words)
    for name, weight in (demonstrated or {}).items():
        if (place := known.places.get(name)) is not None:
            scores[place] += _DEMONSTRATED * weight
    if any(not item.names for item in result):
        # A name of no known entity may be a text of a predicate such as `title`.
        scores[known.naming_predicates] += _NAMING
    things = _entity_texts(known, store, result, scores, wording)
    single = [(item, wording.entity(item.names[:1], _key_of(known, store, item.names, wording))) for item, _, _ in things]
    paths = _paths(known, store, single, scores, wording)
    ranked = rank_sources(known, scores, words) if sources is None and source is None else list(sources or ())
    offered = (source,) if source is not None else tuple(ranked[: MAX_SOURCES if len(known.sources.names) > 10 else 10])
    allowed = _allowed(known, source, offered)
    order = _order(scores, known.predicates.sizes, allowed)
    concepts = known.concepts.scores(words)
    _raise_scores(concepts, known.concepts.names, demonstrated)
    writer = _Writer(known, counted, tokens, wording, samples=samples, untrusted=frozenset(untrusted))
    writer.sources(offered, source)
    writer.things([(text, predicates) for _, text, predicates in things])
    writer.paths(paths)
    keys = known.qualifiers.scores(words)
    _raise_scores(keys, known.qualifiers.names, demonstrated)
    writer.names(_fitting(concepts, known.concepts.sizes) if source is None else [], _fitting(keys, known.qualifiers.sizes))
    writer.predicates(order)
    text, names = writer.done()
    return Excerpt(text, counted(text), tuple(names), tuple(writer.named), tuple(writer.keyed), result, offered, form)


def _fitting(scores: NDArray[np.float64], sizes: Sequence[int]) -> list[int]:
    """Return the positions of names that fit the question, in order; the first few in any case."""
    order = _order(scores, sizes, None)
    return [position for rank, position in enumerate(order) if rank < _ALWAYS_LISTED or scores[position] >= _MIN_SCORE]


def _raise_scores(scores: NDArray[np.float64], names: Sequence[str], demonstrated: Mapping[str, float] | None) -> None:
    """Raise the scores of names that similar questions used."""
    if demonstrated:
        for at, name in enumerate(names):
            scores[at] += _DEMONSTRATED * demonstrated.get(name, 0.0)


def _order(scores: NDArray[np.float64], sizes: Sequence[int], allowed: NDArray[np.bool_] | None) -> list[int]:
    """Return positions by falling score, then size, then position."""
    order = np.lexsort((np.arange(len(scores)), -np.asarray(sizes, np.int64), -np.round(scores, 6)))
    positions: list[int] = (order if allowed is None else order[allowed[order]]).tolist()
    return positions


def _allowed(known: KnownNames, source: str | None, sources: Sequence[str]) -> NDArray[np.bool_] | None:
    """Return a mask of the predicates that may be listed: those of the source or, in a graph with many sources, of the
    offered ones.
    """
    many_sources = len(known.sources.names) > 10
    if source is None and not many_sources:
        return None
    mask = np.zeros(len(known.predicates.names), np.bool_)
    for name in (source,) if source is not None else sources:
        mask[known.of_source(name)] = True
    return mask


def rank_sources(known: KnownNames, scores: NDArray[np.float64], question: str) -> list[str]:
    """Return all sources, those first whose predicates and names fit the question best."""
    name_scores = known.sources.scores(question)
    totals = np.zeros(len(known.sources.names))
    for at, name in enumerate(known.sources.names):
        own_scores = scores[known.of_source(name)]
        highest = np.sort(own_scores)[::-1][:4]
        totals[at] = float((highest * np.array([1.0, 0.7, 0.5, 0.3])[: len(highest)]).sum()) + 0.5 * name_scores[at]
    return [known.sources.names[at] for at in _order(totals, known.sources.sizes, None)]


# -- around the entities of a question ---------------------------------------------------------------


def _entity_texts(
    known: KnownNames, store: Store, mentions: Sequence[Mention], scores: NDArray[np.float64], words: Wording
) -> list[tuple[Mention, str, list[str]]]:
    """Describe the first entities in the question: the mention, a text, and the predicates around it with direction and
    type of the other end, the best fitting first. Raises the `scores` of these predicates.
    """
    things: list[tuple[Mention, str, list[str]]] = []
    fitting = scores.copy()
    for mention in [candidate for candidate in mentions if candidate.names][:_MAX_ENTITIES]:
        check()
        around = predicates_around(known, store, mention.names)
        directions: dict[str, list[str]] = {}
        for direction in ("forward", "backward", "value"):
            for name in around.get(direction, ()):
                directions.setdefault(name, []).append(direction)
        for names, weight in ((directions, _ONE_STEP), (around.get("beyond", ()), _TWO_STEPS)):
            for name in names:
                if (place := known.places.get(name)) is not None:
                    scores[place] += weight
        order = sorted(directions, key=lambda name: (-fitting[known.places[name]] if name in known.places else 0.0, name))
        lines = [
            words.around(name, known.predicate(known.places[name]) if name in known.places else None, directions[name])
            for name in order[:_MAX_OF_ENTITY]
        ]
        things.append((mention, words.entity(mention.names[:3], _key_of(known, store, mention.names, words)), lines))
    return things


def _key_of(known: KnownNames, store: Store, names: tuple[str, ...], words: Wording) -> str:
    """Return the attribute with the name of an entity, for Cypher: `n.name` is the name itself only where the graph has
    no attribute called `name`.
    """
    place = known.places.get("name")
    if not isinstance(words, CypherWording) or place is None or not known.survey["predicates"][place][2]:
        return ""
    key = known.keys.get(names)
    if key is None:
        with_name = alg.Where(alg.Scan(alg.ByName(names), None, "subject", "subject", "attribute"), alg.Compare("=", names[0]))
        attributes = plan_texts(store, alg.Distinct(alg.Predicates(with_name)))
        key = known.keys[names] = "name" if "name" in attributes or not attributes else attributes[0]
    return key


def _paths(
    known: KnownNames, store: Store, ends: Sequence[tuple[Mention, str]], scores: NDArray[np.float64], words: Wording
) -> list[str]:
    """Describe how the entities of a question are connected, by one statement or by two. Raises the `scores` of these
    predicates.
    """
    lines: list[str] = []
    pairs = [(left, right) for number, left in enumerate(ends) for right in ends[number + 1 :] if left[0].names != right[0].names]
    for (first_mention, left_end), (second_mention, right_end) in pairs[:_MAX_PAIRS]:
        check()
        first, second = alg.ByName(first_mention.names), alg.ByName(second_mention.names)
        steps, back = ([alg.Scan(end, None, *direction, "relation") for direction in _DIRECTIONS] for end in (first, second))
        if sum(store.counted(steps + back, lambda _: ())) > _MAX_AROUND:
            continue
        middle = alg.intersect(alg.union(*map(alg.Reached, steps)), alg.union(*map(alg.Reached, back)))
        connections = [_connecting(store, left, right) for left, right in ((first, second), (first, middle), (middle, second))]
        for name, _ in (pair for several in connections for pair in several):
            if (place := known.places.get(name)) is not None:
                scores[place] += _CONNECTS
        lines += [f"- {left_end} {words.arrow(*step)} {right_end}" for step in connections[0][:4]]
        if connections[1] and connections[2]:
            left, right = (" or ".join(words.arrow(*step) for step in several[:4]) for several in connections[1:])
            lines.append(f"- {left_end} {left} {words.between} {right} {right_end}")
    return lines


def _connecting(store: Store, left: alg.Entities, right: alg.Entities) -> list[tuple[str, bool]]:
    """Return the relations from the left entities to the right ones (True), and from the right to the left (False)."""
    return [
        (name, forward)
        for start, end, forward in ((left, right, True), (right, left, False))
        for name in plan_texts(
            store, alg.Distinct(alg.Predicates(alg.Where(alg.Scan(start, None, "subject", "object", "relation"), alg.Among(end))))
        )
    ]


#: The two directions of following statements: the end where a step begins and the end where it arrives.
_DIRECTIONS: Final[tuple[tuple[End, End], ...]] = (("subject", "object"), ("object", "subject"))


def predicates_around(known: KnownNames, store: Store, names: tuple[str, ...]) -> dict[str, list[str]]:
    """Return the predicates around entities (forward, backward, value, and beyond), cached until the graph changes."""
    cache: dict[tuple[str, ...], dict[str, list[str]]] = known.around
    result = cache.get(names)
    if result is None:
        result = {direction: plan_texts(store, plan) for direction, plan in alg.around(alg.ByName(names)).items()}
        steps = alg.Scan(alg.ByName(names), None, "subject", "object", "relation")
        back = alg.Scan(alg.ByName(names), None, "object", "subject", "relation")
        if sum(store.counted([steps, back], lambda _: ())) <= _MAX_AROUND:
            beyond = alg.Predicates(alg.Scan(alg.Reached(steps), None)), alg.Predicates(alg.Scan(alg.Reached(back), None))
            result["beyond"] = [text for plan in beyond for text in plan_texts(store, alg.Distinct(plan))]
        if len(cache) > 4_096:
            cache.clear()
        cache[names] = result
    return result


# -- text of an excerpt ----------------------------------------------------------------------------


class _Writer:
    """Writes lines within a budget: each section has a share, and names get what remains."""

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
        self._known, self._count, self._tokens_left, self._tokens = known, counted, tokens, tokens
        self._samples, self._untrusted, self._words = samples, untrusted, words
        self._lines: list[str] = []
        #: Lines that go after all others.
        self._last_lines: list[str] = []
        #: The positions of the predicates that each line describes.
        self._described: dict[str, list[int]] = {}
        self.named: list[str] = []
        self.keyed: list[str] = []

    def _add_lines(self, lines: Sequence[str], most: float) -> int:
        """Add the lines that fit into `most` tokens; return their number."""
        used = 0
        for number, line in enumerate(lines):
            cost = self._count(line + "\n")
            if used + cost > most or cost > self._tokens_left:
                return number
            self._lines.append(line)
            self._tokens_left -= cost
            used += cost
        return len(lines)

    def sources(self, sources: Sequence[str], source: str | None) -> None:
        """Add the sources that may be meant."""
        if source is None and len(self._known.sources.names) > 1 and sources:
            self._add_lines([f"Sources: {', '.join(quoted(name) for name in sources)}"], 0.1 * self._tokens)

    def things(self, things: Sequence[tuple[str, list[str]]]) -> None:
        """Add the entities in the question, each with as many of its predicates as fit into its part."""
        if not things or not self._samples:
            return
        share = _SHARES["things"] * self._tokens
        title = self._words.things
        lines, remaining = [title], share - self._count(title + "\n")
        for number, (entity, predicates) in enumerate(things):
            part, line = remaining / (len(things) - number), f"- {entity}:"
            used = self._count(line + "\n")
            written = 0
            for text in predicates:
                cost = self._count(f" {text};")
                if used + cost > part:
                    break
                line += f" {text};"
                used += cost
                written += 1
            if used <= part and (written or not predicates):
                lines.append(line.rstrip(";") if predicates else f"{line} nothing")
                remaining -= used
        if len(lines) > 1:
            self._add_lines(lines, share)

    def paths(self, lines: Sequence[str]) -> None:
        """Add the connections between the entities."""
        if lines and self._samples:
            title = "Connections of these:"
            if self._count(f"{title}\n{lines[0]}\n") <= _SHARES["paths"] * self._tokens:
                self._add_lines([title, *lines], _SHARES["paths"] * self._tokens)

    def names(self, concepts: Sequence[int], keys: Sequence[int]) -> None:
        """Add the nearest concepts and qualifier keys by name; they go below the predicates."""
        small = 0.6 if self._tokens < _SMALL else 1.0
        for title, names, order, target, share in (
            (self._words.concepts, self._known.concepts.names, concepts, self.named, _SHARES["concepts"]),
            (self._words.keys, self._known.qualifiers.names, keys, self.keyed, _SHARES["keys"]),
        ):
            line, listed = self._names(title, [names[at] for at in order], min(small * share * self._tokens, self._tokens_left))
            if listed:
                target += listed
                self._last_lines.append(line)
                self._tokens_left -= self._count(line + "\n")

    def predicates(self, order: Sequence[int]) -> None:
        """Add as many predicates as fit, best first, with direction and the types of their ends. If each fits on a line
        of its own, more of them are described in full; otherwise those after the best share a line with all of the same
        ends, which takes fewer tokens.
        """
        title = self._words.predicates
        share = self._tokens_left - self._count(title + "\n")
        small = self._tokens < _SMALL
        rich, longest = 0.0 if small else _SHARES["rich"] * share, _CUT if small else MAX_NAME
        order = order[:_MAX_DESCRIBED]
        lines: dict[int, str] = {}
        sums = [0.0]
        for place in order:
            check()
            value = self._known.predicate(place)
            line = self._line(value, 0) if sums[-1] < rich else self._words.short([value], longest=longest)
            used = sums[-1] + self._count(line + "\n")
            if used > share:
                break
            lines[place] = line
            sums.append(used)
        if len(lines) == len(order):
            for place in lines:
                check()
                line = self._line(self._known.predicate(place), 2 if small else 0)
                cost = self._count(line + "\n") - self._count(lines[place] + "\n")
                if used + cost > share:
                    break
                lines[place] = line
                used += cost
            self._described = {line: [place] for place, line in lines.items()}
        else:

            @cache
            def cost_of(place: int) -> tuple[str, int, int]:
                """Return the ends of a predicate, and the tokens of its name and of a line of its own."""
                check()
                predicate = self._known.predicate(place)
                name, line = f", {self._words.name(predicate.name)}", self._words.short([predicate], longest=longest)
                return self._words.ends(predicate, longest=longest), self._count(name), self._count(line + "\n")

            for part in _BEST:
                best = bisect_right(sums, part * share) - 1
                groups = self._grouped(order[best:], share - sums[best], cost_of)
                if best + sum(map(len, groups)) == len(order):
                    break
            self._described = {line: [place] for place, line in islice(lines.items(), best)}
            self._described |= {self._words.short(list(map(self._known.predicate, g)), longest=longest): g for g in groups}
        if self._described:
            self._lines += [title, *self._described]

    def _grouped(self, order: Sequence[int], tokens: float, cost_of: Callable[[int], tuple[str, int, int]]) -> list[list[int]]:
        """Return the positions of as many predicates as fit into so many tokens, those of the same ends together."""
        groups: dict[str, list[int]] = {}
        for place in order:
            ends, name, line = cost_of(place)
            tokens -= name if ends in groups else line
            if tokens < 0:
                break
            groups.setdefault(ends, []).append(place)
        return list(groups.values())

    def _line(self, value: PredicateSchema, length: int) -> str:
        trusted = self._samples and not self._untrusted & {source.name for source in value.sources}
        return self._words.line(value, length, examples=trusted)

    def _names(self, title: str, names: Sequence[str], most: float) -> tuple[str, list[str]]:
        """Return a line with as many of the names as fit, and these names."""
        texts: dict[str, str] = {}
        used: float = self._count(title + "\n")
        write = self._words.concept if title == self._words.concepts else self._words.name
        for name in names:
            text = write(name)
            used += self._count(text + ", ")
            if used > most:
                break
            texts[name] = text
        return title + ", ".join(texts.values()), list(texts)

    def done(self) -> tuple[str, list[str]]:
        """Return the text and the predicates in it."""
        lines = [*self._lines, *self._last_lines]
        text = "\n".join(lines)
        # A tokenizer's tokens may span the ends of lines, so the sum over lines may differ.
        while lines and self._count(text) > self._tokens:
            lines = lines[:-1]
            text = "\n".join(lines)
        return text, [self._known.predicates.names[place] for line in lines for place in self._described.get(line, ())]


# -- calls that a question may need ------------------------------------------------------------------
# The less usual calls of LLM queries; each is shown if words of the question ask for it.


_CALLS: Final = tuple(
    (re.compile(rf"\b(?:{words})\b", re.IGNORECASE), f"- {call}")
    for words, _, call in (
        line.replace("NUMBER", r"(?:\d+|two|three|four|five|six|seven|eight|nine|ten)").partition(" => ")
        for line in Path(__file__).with_name("calls.txt").read_text("utf-8").splitlines()
        if line and not line.startswith("#")
    )
)
#: The most calls that are shown.
_MAX_CALLS: Final = 5
_NOW: Final = re.compile(
    r"\b(?:now|today|tonight|yesterday|current(?:ly)?|present(?:ly)?|nowadays|(?:this|last|next|past) (?:year|month|week|decade|"
    r"century)|ago|recent(?:ly)?|still|so far|to date|how old|upcoming|(?:past|last) \w+ (?:years|months|days|decades))\b",
    re.IGNORECASE,
)


def calls_for(question: str) -> list[str]:
    """Return the less usual calls of LLM queries that words of a question ask for, one line each.

    >>> [line.partition("(")[0] for line in calls_for("Which 5 highest mountains has each country?")]
    ['- group_by', '- top']
    """
    text = question[:_MAX_QUESTION]
    return [line for words, line in _CALLS if words.search(text)][:_MAX_CALLS]


#: Words that ask for groups, an order, the first few, equal variables, or parts of texts.
_BEYOND_KOPL: Final = re.compile(
    r"\b(?:each|every|per|for all|respective(?:ly)?|average|mean|group(?:ed)?|sort(?:ed)?|order(?:ed)?|rank(?:ed|ing)?"
    r"|(?:top|first|bottom|last) (?:\d+|two|three|four|five|six|seven|eight|nine|ten)"
    r"|(?:(?:more|fewer|less) than|at (?:least|most)) (?:one|two|three|four|five|six|seven|eight|nine|ten)"
    r"|(?:the )?(?:most|least|fewest) (?:number of |common |frequent(?:ly)? |often )?\w+s"
    r"|same|(?:start|begin|end)(?:s|ing)? with|contain(?:s|ing)?|includ(?:e|es|ing)|mention(?:s|ed|ing)?)\b",
    re.IGNORECASE,
)


def beyond_kopl(question: str) -> str | None:
    """Return the words of a question that ask for what KoPL does not have: groups, an order, the first few, equal
    variables, or parts of texts; None if there are none.

    >>> beyond_kopl("Who directed the most movies?"), beyond_kopl("Who directed Speed?")
    ('the most movies', None)
    """
    match = _BEYOND_KOPL.search(question[:_MAX_QUESTION])
    return None if match is None else match[0]


def depends_on_today(question: str) -> bool:
    """Return whether the answer to a question depends on the current date.

    >>> depends_on_today("Who is the current president?"), depends_on_today("Who was president in 1984?")
    (True, False)
    """
    return _NOW.search(question[:_MAX_QUESTION]) is not None


#: The most characters of a question that are searched for these words.
_MAX_QUESTION: Final = 2_000


# -- prompt files ----------------------------------------------------------------------------------
# A prompt is a text file `NAME.vN.txt` in `prompts`; files of the same names in a folder passed as
# `prompts=` take precedence. Fields are in braces. Data from the graph is in a block between two marks
# with a nonce that no name contains, as JSON strings without control characters.


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
_FOLDER: Final = Path(__file__).with_name("prompts")
_FILE_NAME: Final = re.compile(r"([a-z]+)\.v(\d+)\.txt")
_FIELD: Final = re.compile(r"\{\{|\}\}|\{([a-z]+)\}")
#: The most characters of a prompt file.
MAX_PROMPT: Final = 50_000


class Prompts:
    """The prompts of one call; `versions` names the file of each."""

    def __init__(self, place: str | os.PathLike[str] | None = None) -> None:
        self._texts = dict(_cached_prompts(_FOLDER))
        self._files = {name: text[0] for name, text in self._texts.items()}
        if place is not None:
            folder = Path(place)
            if not folder.is_dir():
                raise OptionError(f"prompts is a folder with files such as system.v1.txt, not {os.fspath(place)!r}")
            for name, text in _read_folder(folder).items():
                self._texts[name], self._files[name] = text, str(folder / text[0])

    @property
    def versions(self) -> dict[str, str]:
        """The file of each prompt, by the prompt's name."""
        return dict(self._files)

    def fill(self, name: str, **fields: str) -> str:
        """Return a prompt with its fields filled in; braces in the inserted texts are left as they are."""
        file, text = self._texts[name]

        def replace(match: re.Match[str]) -> str:
            if match[1] is None:
                return match[0][0]
            if match[1] not in fields:
                raise OptionError(
                    f"the prompt {file} has no field {match[1]!r}",
                    candidates=nearest(match[1], FIELDS[name]),
                    hint=f"its fields are {', '.join(sorted(FIELDS[name]))}; a brace is written {{{{",
                )
            return fields[match[1]]

        return _FIELD.sub(replace, text).strip("\n")


@lru_cache(maxsize=4)
def _cached_prompts(folder: Path) -> Mapping[str, tuple[str, str]]:
    return _read_folder(folder)


def _read_folder(folder: Path) -> dict[str, tuple[str, str]]:
    """Return the file name and text of the newest version of each prompt in a folder."""
    result: dict[str, tuple[int, str, str]] = {}
    for path in sorted(folder.iterdir()):
        match = _FILE_NAME.fullmatch(path.name)
        if match is None:
            continue
        if match[1] not in FIELDS:
            raise OptionError(f"unknown prompt {match[1]!r}", candidates=nearest(match[1], FIELDS))
        version = int(match[2])
        if match[1] not in result or result[match[1]][0] < version:
            text = path.read_text("utf-8")
            if len(text) > MAX_PROMPT:
                raise OptionError(f"the prompt {path.name} has more than {MAX_PROMPT:,} characters")
            result[match[1]] = version, path.name, text
    return {name: (file, text) for name, (_, file, text) in result.items()}


def mark_of(seed: int, texts: Sequence[str]) -> str:
    """Return a word that occurs in none of the texts, to mark the beginning and end of data; determined by the seed."""
    random = Random(f"mark {seed}")
    while True:
        mark = f"DATA-{random.getrandbits(64):016x}"
        if not any(mark in text for text in texts):
            return mark


def block(mark: str, text: str) -> str:
    return f"<{mark}>\n{text}\n</{mark}>"


#: A function from a text to its number of tokens.
Count = Callable[[str], int]
