"""Words of questions: stems, stop words, and everyday synonyms.

For English only; other words are compared as written, so other languages lose only this help.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, Literal, Self, TypeAlias

from condgraph.engine.errors import nearest
from condgraph.engine.lowered import Substitution
from condgraph.engine.values import fold, humps

#: A word or number, with apostrophes inside it.
WORD: Final = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
#: Stop words: words of questions that name nothing.
_STOP: Final = """
a an the of in on at by to for from with without and or not no is are was were be been being am
do does did done have has had what which who whom whose when where why how many much that this
these those there it its he she they them his her their i you we my your our me us as than then
so if but about into over under after before between during can could will would shall should
may might must name named called list tell give show find all any some each every one ones same
other another more most less least also only just very please ever
"""
STOP: Final = frozenset(_STOP.split())
#: Groups of synonyms: words of questions, and words in names of predicates and concepts.
_GROUPS: Final = (
    "movie film picture",
    "country nation state",
    "city town municipality",
    "person human people man woman",
    "company business corporation firm organisation organization enterprise",
    "actor actress star starred cast played",
    "director directed",
    "writer wrote written author screenwriter",
    "book novel",
    "song single track",
    "team club",
    "university college school educated studied alumni",
    "mountain peak summit",
    "river stream",
    "born birth birthplace",
    "published publication release released",
    "died die dies death dead killed",
    "wife husband spouse married",
    "child children son daughter father mother parent",
    "job occupation profession work",
    "tall height high elevation altitude",
    "long length duration",
    "big large size area",
    "heavy weight mass",
    "population inhabitants people",
    "when date year time",
    "where place location located",
    "headquarters based",
    "founded inception established foundation created creation formed formation started",
    "become became independence inception",
    "language spoken speak",
    "description described describe describes words",
    "religion faith",
    "leader head president minister premier chancellor",
    "award prize won winner",
    "genre kind type",
    "money currency",
    "website url homepage",
    "sport game",
)


def _table() -> dict[str, frozenset[str]]:
    synonyms: dict[str, set[str]] = {}
    for group in _GROUPS:
        words = group.split()
        for word in words:
            synonyms.setdefault(word, set()).update(words)
    return {word: frozenset(group - {word}) for word, group in synonyms.items()}


_SYNONYMS: Final = _table()
#: The most words of a name for which synonyms are compared.
_MAX_WORDS: Final = 8


def words_of(text: str) -> list[str]:
    """Return the words of a text, folded."""
    return WORD.findall(fold(text))


def stem(word: str) -> str:
    """Return a word without its English endings; equal for words that differ only in them.

    >>> stem("mountains"), stem("located"), stem("countries"), stem("process")
    ('mountain', 'locat', 'country', 'process')
    """
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    for ending in ("ing", "ed"):
        if word.endswith(ending) and len(word) > len(ending) + 3:
            return word[: -len(ending)]
    if word.endswith("s") and not word.endswith("ss") and len(word) > 3:
        return word[:-1]
    return word[:-1] if word.endswith("e") and len(word) > 4 else word


def others(word: str) -> frozenset[str]:
    """Return everyday synonyms; none for most words."""
    return _SYNONYMS.get(word) or _SYNONYMS.get(stem(word)) or frozenset()


def meant(name: str, names: Iterable[str]) -> list[str]:
    """Return the names of a vocabulary that are synonyms of a name.

    >>> meant("movie", ["film", "country"])
    ['film']
    """
    wanted = others(fold(name))
    return [name for name in names if fold(name) in wanted] if wanted else []


def near_names(name: str, names: Sequence[str], *, most: int = 5) -> list[str]:
    """Return names of a vocabulary that an unknown name may mean: synonyms, names that differ in a few letters, names
    that share a word with it.

    >>> near_names("movie", ["film", "moraine", "silent film"])
    ['film', 'moraine', 'silent film']
    """
    synonyms = meant(name, names)
    similar = nearest(name, names, most=most)
    stems = {stem(word) for word in words_of(name)} - STOP
    stems |= {stem(synonyms) for word in words_of(name)[:_MAX_WORDS] for synonyms in others(word)}
    sharing = [name for name in names if stems and stems & {stem(word) for word in words_of(name)}] if len(name) <= 300 else []
    # Names that share the most words come first, short ones before long ones.
    sharing.sort(key=lambda candidate: (-len(stems & {stem(word) for word in words_of(candidate)}), len(candidate), candidate))
    return list(dict.fromkeys([*synonyms, *similar[: most - min(len(sharing), 2)], *sharing]))[:most]


# -- forms of names ----------------------------------------------------------------------------------
# Matches between names that differ only in form: case, accents, spacing, separators, and plural and tense of English words.
# Names that are similar in letters or in meaning are different names; a reading by similarity is a `Substitution`, which an
# answer reports.


#: The treatment of a predicate that the graph does not have: an error with candidates, no statements, or the nearest name,
#: which the answer reports as a substitution.
OnUnknown: TypeAlias = Literal["error", "empty", "nearest"]
#: The longest name, in characters, that is compared in other forms.
_MAX_LENGTH: Final = 200
_TOKEN: Final = re.compile(r"[^\W_]+|[^\w\s]")
#: Marks between words without meaning; others, such as % and +, distinguish names.
_SEPARATORS: Final = frozenset("-./,:;'’\"“”()[]{}!?–—·")
#: The least number of letters that a stem has after an ending is removed.
_MIN_STEM: Final = 3
_IRREGULAR: Final = {
    "children": "child", "people": "person", "men": "man", "women": "woman", "feet": "foot", "teeth": "tooth", "mice": "mouse",
    "wrote": "write", "won": "win", "held": "hold", "led": "lead", "made": "make", "built": "build", "taught": "teach",
    "sang": "sing", "knew": "know", "spoke": "speak", "gave": "give", "took": "take", "began": "begin", "became": "become",
    "has": "have", "had": "have", "is": "be", "are": "be", "was": "be", "were": "be",
}  # fmt: skip


def written(name: str) -> tuple[str, ...]:
    """Return the words of a name, folded, without separators.

    >>> written("place_of_birth") == written("placeOfBirth") == written("Place of birth")
    True
    """
    if len(name) > _MAX_LENGTH:
        return ()
    tokens = [token for token in _TOKEN.findall(fold(humps(name))) if token not in _SEPARATORS]
    return tuple(tokens) if any(token.isalnum() for token in tokens) else ()


@lru_cache(16_384)
def _bases(word: str) -> Mapping[str, str]:
    """Return the words that a word may be a form of, with the form: "base", "s", "past" or "ing"."""
    forms = {word: "base"}
    if word in _IRREGULAR:
        forms[_IRREGULAR[word]] = "past"
    if not word.isascii() or not word.isalpha():
        return forms

    def add(base: str, form: str) -> None:
        if len(base) >= _MIN_STEM:
            forms.setdefault(base, form)

    if word.endswith("ies"):
        add(word[:-3] + "y", "s")
    elif word.endswith(("ses", "xes", "zes", "ches", "shes", "oes")):
        add(word[:-2], "s")
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        add(word[:-1], "s")
    for ending, form in (("ed", "past"), ("ing", "ing")):
        if word.endswith(ending):
            base = word[: -len(ending)]
            add(base, form)
            add(base + "e", form)
            if base.endswith("i") and form == "past":
                add(base[:-1] + "y", form)
            if len(base) > _MIN_STEM and base[-1] == base[-2] and base[-1] not in "aeiouls":
                add(base[:-1], form)
    return forms


def inflected(word: str, other: str) -> bool:
    """Return whether two words differ only in plural or tense. A noun in -ing is not a form of its verb.

    >>> inflected("countries", "country"), inflected("directs", "directed"), inflected("founder", "founded")
    (True, True, False)
    >>> inflected("building", "build"), inflected("starring", "starred"), inflected("caste", "cast")
    (False, True, False)
    """
    if word == other:
        return True
    bases, other_bases = _bases(word), _bases(other)
    pairs = ({form, other_bases[base]} for base, form in bases.items() if base in other_bases)
    return any("ing" not in pair or pair <= {"ing", "past"} for pair in pairs)


def same_form(one: str, other: str) -> bool:
    """Return whether two names differ only in form."""
    return fold(one) == fold(other) or bool(Forms([other]).same(one))


class Forms:
    """An index of names by the forms in which they may be written."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(names)
        self._folded: dict[str, list[str]] = {}
        self._joined: dict[str, list[str]] = {}
        #: Names by the words that their first word, and their joined words, may be forms of.
        self._bases: dict[str, list[tuple[str, tuple[str, ...]]]] = {}
        for name in self.names:
            self._folded.setdefault(fold(name), []).append(name)
            words = written(name)
            if words:
                self._joined.setdefault("".join(words), []).append(name)
                for base in {*_bases(words[0]), *_bases("".join(words))}:
                    self._bases.setdefault(base, []).append((name, words))

    @classmethod
    def of(cls, kept: dict[str, Any], kind: str, names: Iterable[str]) -> Self:
        """Return the forms of one kind of names, made once and cached with their schema."""
        result = kept.get(f"forms {kind}")
        if result is None:
            result = kept[f"forms {kind}"] = cls(names)
        assert isinstance(result, cls)
        return result

    def same(self, name: str) -> list[str]:
        """Return the names equal to a name: after folding; otherwise ignoring spacing and separators; otherwise also
        ignoring plural and tense. Several, if the graph has several.

        >>> Forms(["founded by", "founded", "date of birth"]).same("Founded_By")
        ['founded by']
        >>> Forms(["founded by", "founded", "date of birth"]).same("founder")
        []
        """
        if matches := self._folded.get(fold(name)):
            return list(matches)
        words = written(name)
        joined = "".join(words)
        if not joined:
            return []
        if matches := self._joined.get(joined):
            return list(matches)
        candidates = {member: None for base in {*_bases(words[0]), *_bases(joined)} for member in self._bases.get(base, ())}
        return [
            other
            for other, other_words in candidates
            if inflected(joined, "".join(other_words))
            or (len(words) == len(other_words) and all(map(inflected, words, other_words)))
        ]


def read_as(
    kind: str, name: str, forms: Forms, on_unknown: str, near: Sequence[str] | None = None
) -> tuple[str | None, str | None, list[str]]:
    """Return the name in the graph that a name is read as, with a warning; otherwise None, and candidates. `near` are
    the names that may be meant, best first, if the caller knows better than their letters tell.
    """
    same = forms.same(name)
    if len(same) == 1:
        return same[0], f"{kind} {name!r} is read as {same[0]!r} ({DIFFERS})", []
    candidates = list(dict.fromkeys([*same, *(near_names(name, forms.names) if near is None else near)]))
    if on_unknown == "nearest" and candidates:
        return candidates[0], Substitution(kind, name, candidates[:1], candidates[1:]), []
    return None, None, candidates


#: The difference between a name and its reading, in words.
DIFFERS: Final = "the same except for case, spacing, plural or tense"
