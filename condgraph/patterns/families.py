"""Families of relations: which words of a phrase refer to which relation, in any order.

`patterns.words` has a table of phrases; the table here has words. Each line has a family (`directed`), after `~` the family with
the same meaning in the other direction (`parents`, `children`), and its words. `helm*` is the start of a word; `came+out` are
words that stand together in a phrase and then count for nothing else; `?make` suggests the family only weakly. If a family has
another direction, a noun means it before "of" or "to" ("is the father of"), a verb (`^raise*`) with "by", and `=born+to`
never does.

How well a phrase fits a predicate is a whole number of thousandths, so that every store agrees. A word alone is doubted
(`STRONG`, `WEAK`), two words together less. The fit is that of the phrase with a family, times that of the predicate's name
with it. The words of a graph's predicates are families too; a word that two of them share counts half.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Final

from condgraph.names.vocabulary import one_wrong
from condgraph.names.words import STOP, stem
from condgraph.vectors.encoders import spelled

#: The least cost, in millionths, of a predicate that a relation fits only by its words.
FITS: Final = 60_000
#: How much words count, in thousandths: alone, together, weakly; when one is the start of the other in a predicate's name; with
#: one wrong letter.
STRONG: Final = 900
TOGETHER: Final = 950
WEAK: Final = 450
BEGINS: Final = 700
#: The divisor of the lesser of the fits by families and by words when it is added to the better one.
BOTH: Final = 20
#: How much of a fit, in thousandths, a family keeps if it has the same meaning in the other direction.
TURNED: Final = 800
#: Words in names that mark a predicate as the inverse of another.
_INVERSE: Final = frozenset(map(stem, ["inverse", "inversed", "reverse", "reversed"]))
#: The least length of a stem that may be the start of another, and of a word that may have one wrong letter.
_STEM: Final = 4
_LONG: Final = 5

TABLE: Final = Path(__file__).with_name("families.txt").read_text(encoding="utf-8").strip()
_WORD: Final = re.compile(r"[^\W_]+")
#: Words of relations that mean nothing on their own, in addition to those of questions.
_EMPTY: Final = STOP | frozenset(
    [
        "s",
        "d",
        "ll",
        "re",
        "ve",
        "having",
        "being",
        "get",
        "gets",
        "got",
        "which",
        "up",
        "off",
        "out",
        "was",
        "himself",
        "herself",
        "themselves",
        "itself",
    ]
)


@dataclass(frozen=True)
class Item:
    """Words of a family.

    `parts` stand together in a phrase; a part ending in `*` is the start of a word. `kind` tells when the item means the other
    direction.
    """

    family: str
    parts: tuple[str, ...]
    weight: int
    kind: str


@dataclass(frozen=True)
class _Table:
    inverse: dict[str, str]
    #: Items of one word, by the word; and items of several words, by the first.
    single: dict[str, list[Item]]
    several: dict[str, list[Item]]

    @cached_property
    def longest(self) -> int:
        """The length of the longest word start in the table."""
        parts = (part for items in (self.single, self.several) for many in items.values() for one in many for part in one.parts)
        return max(len(part) - 1 for part in parts if part.endswith("*"))


@cache
def _table() -> _Table:
    found = _Table({}, {}, {})
    for line in TABLE.splitlines():
        head, _, words = line.partition(":")
        family, _, other = (part.strip() for part in head.partition("~"))
        if other:
            found.inverse[family] = other
        for word in words.split():
            bare = word.lstrip("?^=")
            parts = tuple(bare.split("+"))
            weight = WEAK if "?" in word[:2] else STRONG if len(parts) == 1 else TOGETHER
            kind = "fixed" if "=" in word[:2] else "verb" if "^" in word[:2] else "noun"
            (found.single if len(parts) == 1 else found.several).setdefault(parts[0], []).append(Item(family, parts, weight, kind))
    return found


def tokens(text: str) -> list[str]:
    """Return the words of a relation, with case folded."""
    return _WORD.findall(spelled(text).casefold())


def _begun(token: str) -> Iterable[str]:
    """Yield the table's possible entries for a word: its beginnings, shortest first, and the word itself.

    They are no longer than the table's entries, since a word may have a million letters.
    """
    for end in range(2, min(len(token), _table().longest) + 1):
        yield token[:end] + "*"
    yield token


def _fits(items: Iterable[Item], words: list[str]) -> dict[str, int]:
    """Return how well a phrase fits each family, given the items that it contains."""
    turns = {"noun": words[-1:] in (["of"], ["to"]), "verb": "by" in words, "fixed": False}
    inverse = _table().inverse
    doubt: dict[str, int] = {}
    for item in items:
        family = inverse.get(item.family, item.family) if turns[item.kind] else item.family
        doubt[family] = doubt.get(family, 1000) * (1000 - item.weight) // 1000
    return {family: 1000 - remaining for family, remaining in doubt.items()}


@lru_cache(4096)
def _items(text: str) -> tuple[tuple[Item, frozenset[str]], ...]:
    """Return the items of the table that a phrase contains, with the words that each uses."""
    table, words = _table(), tokens(text)
    present: dict[str, set[str]] = {}
    for token in words:
        for beginning in _begun(token):
            present.setdefault(beginning, set()).add(token)
    phrases = [
        (item, frozenset().union(*(present[part] for part in item.parts)))
        for beginning in present
        for item in table.several.get(beginning, ())
        if all(part in present for part in item.parts)
    ]
    # "Shot on location" is not "shot on"; words that stand together mean nothing on their own.
    longest = [
        phrase for phrase in phrases if not any(phrase[1] < taken and phrase[0].family != other.family for other, taken in phrases)
    ]
    used = {(token, item.family) for item, taken in longest for token in taken}
    taken_words = {token for token, _ in used}
    items = list(longest)
    for token in dict.fromkeys(words):
        # Among equally strong items of a family the longest counts; the word itself comes first.
        best: dict[str, Item] = {}
        for beginning in _begun(token):
            for item in table.single.get(beginning, ()):
                if item.family not in best or item.weight >= best[item.family].weight:
                    best[item.family] = item
        items += [(item, frozenset([token])) for item in best.values() if token not in taken_words or (token, item.family) in used]
    return tuple(items)


def fits(text: str) -> dict[str, int]:
    """Return how well a phrase fits each family, in thousandths, without the families that it does not fit.

    >>> fits("was helmed by"), fits("is the father of")["children"]
    ({'directed': 900}, 950)
    """
    return _fits((item for item, _ in _items(text)), tokens(text))


def disagree(one: str, other: str) -> bool:
    """Tell whether two relations belong to different families, if both have words that tell.

    >>> disagree("date of death", "date of birth"), disagree("acted in", "starred_actors"), disagree("budget", "tags")
    (True, False, False)
    """
    inverse = _table().inverse
    families, other_families = ({name for name, fit in fits(text).items() if fit >= STRONG} for text in (one, other))
    return bool(families and other_families) and not other_families & (families | {inverse.get(name, "") for name in families})


class Names:
    """Names of predicates, and how well phrases fit them."""

    def __init__(self, names: Sequence[str]) -> None:
        self._families = []
        self._own = []
        for name in names:
            words = [word for word in dict.fromkeys(tokens(name)) if word not in _EMPTY]
            covered = frozenset().union(*(words for _, words in _items(name)))
            # If the table knows only half of a name, the name tells less about its family.
            share = 1000 if not words else 600 + 400 * len(covered.intersection(words)) // len(words)
            self._families.append({family: min(fit + 100, 1000) * share // 1000 for family, fit in fits(name).items()})
            self._own.append({stem(word): word for word in words})
        counts: dict[str, int] = {}
        # A predicate and its inverse (`plays_for`, `plays_for_inverse`) count as one relation.
        for stems in {frozenset(name_stems) - _INVERSE for name_stems in self._own}:
            for word in stems:
                counts[word] = counts.get(word, 0) + 1
        self._counts = counts

    def fits(self, relation: str) -> list[int]:
        """Return how well a relation fits each name, in thousandths, apart from its spelling."""
        inverse, fit_of = _table().inverse, fits(relation)
        fit_both_ways = self._both_ways(fit_of)
        words = [word for word in dict.fromkeys(tokens(relation)) if word not in _EMPTY]
        stems_of = {word: self._meant(word) for word in words}
        result = []
        for families, own_stems in zip(self._families, self._own, strict=True):
            best = max((fit_both_ways.get(family, 0) * fit // 1000 for family, fit in families.items()), default=0)
            doubt = 1000
            for stems in stems_of.values():
                doubt = (
                    doubt
                    * (1000 - max((weight for name_stem, weight in stems.items() if name_stem in own_stems), default=0))
                    // 1000
                )
            # "Is the parent of" has the word of `parents` but means the other direction.
            turned = any(fit_of.get(inverse.get(family, ""), 0) > fit_of.get(family, 0) for family in families)
            own_words = (1000 - doubt) * (TURNED if turned else 1000) // 1000
            # The better of the two counts; the other decides between names that fit equally well.
            result.append(min(max(best, own_words) + min(best, own_words) // BOTH, 1000))
        return result

    def _both_ways(self, told: dict[str, int]) -> dict[str, int]:
        inverse = _table().inverse
        fits = dict(told)
        for family, fit in told.items():
            opposite = inverse.get(family)
            if opposite is not None:
                fits[opposite] = max(fits.get(opposite, 0), fit * TURNED // 1000)
        return fits

    def _meant(self, word: str) -> dict[str, int]:
        """Return the stems of names that a word of a phrase means, with how much each counts."""
        word_stem = stem(word)
        if word_stem in self._counts:
            return {word_stem: STRONG // self._counts[word_stem]}
        similar = {
            other: BEGINS // count
            for other, count in self._counts.items()
            if min(len(word_stem), len(other)) >= _STEM and (word_stem.startswith(other) or other.startswith(word_stem))
        }
        if similar or len(word) < _LONG:
            return similar
        return {other: STRONG // count for other, count in self._counts.items() if _one_wrong(word_stem, other)}


def _one_wrong(one: str, other: str) -> bool:
    """Tell whether two words of some length differ in only one letter."""
    return min(len(one), len(other)) >= _LONG - 1 and one_wrong(one, other)
