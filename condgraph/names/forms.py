"""Which names of a graph a name is, but for how it is written: case, accents, spacing, separators, and
the plural and tense of English words. Nearness of letters or of meaning is no such difference: what is
read by it is a `Substitution`, which an answer reports.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, Literal, Self, TypeAlias

from condgraph.engine.lowered import Substitution
from condgraph.names.words import near_names
from condgraph.vectors.encoders import fold, humps

#: What a program does with a predicate that the graph does not have: an error with candidates, nothing,
#: or the nearest name, which the answer reports as a substitution.
OnUnknown: TypeAlias = Literal["error", "empty", "nearest"]
#: Characters of a name that is compared so; a longer one is only itself.
_LONGEST: Final = 200
_TOKEN: Final = re.compile(r"[^\W_]+|[^\w\s]")
#: Marks between words that say nothing; others, such as % and +, tell names apart.
_SEPARATORS: Final = frozenset("-./,:;'’\"“”()[]{}!?–—·")
#: Letters of the shortest stem that an ending is taken from.
_SHORTEST: Final = 3
_IRREGULAR: Final = {
    "children": "child", "people": "person", "men": "man", "women": "woman", "feet": "foot", "teeth": "tooth", "mice": "mouse",
    "wrote": "write", "won": "win", "held": "hold", "led": "lead", "made": "make", "built": "build", "taught": "teach",
    "sang": "sing", "knew": "know", "spoke": "speak", "gave": "give", "took": "take", "began": "begin", "became": "become",
    "has": "have", "had": "have", "is": "be", "are": "be", "was": "be", "were": "be",
}  # fmt: skip


def written(name: str) -> tuple[str, ...]:
    """The words of a name, folded, without what separates them.

    >>> written("place_of_birth") == written("placeOfBirth") == written("Place of birth")
    True
    """
    if len(name) > _LONGEST:
        return ()
    found = [token for token in _TOKEN.findall(fold(humps(name))) if token not in _SEPARATORS]
    return tuple(found) if any(token.isalnum() for token in found) else ()


@lru_cache(16_384)
def _bases(word: str) -> Mapping[str, str]:
    """What a word may be a form of, with the form: "base", "s", "past" or "ing"."""
    found = {word: "base"}
    if word in _IRREGULAR:
        found[_IRREGULAR[word]] = "past"
    if not word.isascii() or not word.isalpha():
        return found

    def add(base: str, form: str) -> None:
        if len(base) >= _SHORTEST:
            found.setdefault(base, form)

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
            if len(base) > _SHORTEST and base[-1] == base[-2] and base[-1] not in "aeiouls":
                add(base[:-1], form)
    return found


def inflected(word: str, other: str) -> bool:
    """Whether two words differ in plural or tense alone. A noun in -ing is another word than its verb.

    >>> inflected("countries", "country"), inflected("directs", "directed"), inflected("founder", "founded")
    (True, True, False)
    >>> inflected("building", "build"), inflected("starring", "starred"), inflected("caste", "cast")
    (False, True, False)
    """
    if word == other:
        return True
    mine, others = _bases(word), _bases(other)
    pairs = ({form, others[base]} for base, form in mine.items() if base in others)
    return any("ing" not in pair or pair <= {"ing", "past"} for pair in pairs)


def same_form(one: str, other: str) -> bool:
    """Whether two names differ in how they are written alone."""
    return fold(one) == fold(other) or bool(Forms([other]).same(one))


class Forms:
    """Names, found again by other ways to write them."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(names)
        self._folded: dict[str, list[str]] = {}
        self._joined: dict[str, list[str]] = {}
        #: Names by what their first word, and their words as one, may be forms of.
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
        """The forms of one kind of names, made once and kept with their schema."""
        result = kept.get(f"forms {kind}")
        if result is None:
            result = kept[f"forms {kind}"] = cls(names)
        assert isinstance(result, cls)
        return result

    def same(self, name: str) -> list[str]:
        """The names that are this one: as it is folded, else but for spacing and separators, else but for
        plural and tense; several where the graph has several.

        >>> Forms(["founded by", "founded", "date of birth"]).same("Founded_By")
        ['founded by']
        >>> Forms(["founded by", "founded", "date of birth"]).same("founder")
        []
        """
        if found := self._folded.get(fold(name)):
            return list(found)
        words = written(name)
        joined = "".join(words)
        if not joined:
            return []
        if found := self._joined.get(joined):
            return list(found)
        near = {member: None for base in {*_bases(words[0]), *_bases(joined)} for member in self._bases.get(base, ())}
        return [
            other
            for other, theirs in near
            if inflected(joined, "".join(theirs)) or (len(words) == len(theirs) and all(map(inflected, words, theirs)))
        ]


def read_as(
    kind: str, name: str, forms: Forms, on_unknown: str, near: Sequence[str] | None = None
) -> tuple[str | None, str | None, list[str]]:
    """The name of the graph that a name is read as, with a warning; or None, and candidates. `near` are
    the names that may be meant, best first, where the caller knows better than their letters.
    """
    same = forms.same(name)
    if len(same) == 1:
        return same[0], f"{kind} {name!r} is read as {same[0]!r} ({DIFFERS})", []
    candidates = list(dict.fromkeys([*same, *(near_names(name, forms.names) if near is None else near)]))
    if on_unknown == "nearest" and candidates:
        return candidates[0], Substitution(kind, name, candidates[:1], candidates[1:]), []
    return None, None, candidates


#: What tells a name from one that is read as the same.
DIFFERS: Final = "the same but for case, spacing, plural or tense"
