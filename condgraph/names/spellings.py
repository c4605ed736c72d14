"""Names as people type them: without case, accents and marks, with a letter lost, doubled, swapped or wrong, with
words in another order, without the first word, or as initials.

An index of hashes finds them (each name with one letter left out, its words in order of the alphabet, and so on),
so that a look-up costs the same in a graph of any size that is indexed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.pieces import watched
from condgraph.names.vocabulary import is_other
from condgraph.vectors.encoders import fold

#: How a text is another spelling of a name, the surest first.
Way: TypeAlias = Literal["marks", "alias", "letter", "order", "last", "initials"]
SCORES: Final[dict[Way, float]] = {"marks": 1.0, "alias": 0.95, "letter": 0.9, "order": 0.85, "last": 0.6, "initials": 0.6}
#: Names of a graph up to which those with a letter left out are indexed.
MOST_NAMES: Final = 400_000
#: Letters of names in which one may be wrong.
_LEAST, _MOST = 3, 60
#: Letters of an alias from which on it may be typed in small letters.
_SHORT: Final = 4
#: Names that a spelling may be; of more, it is none.
MOST_MEANT: Final = 8
_MARKS: Final = re.compile(r"[’'`.]")
_BETWEEN: Final = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True)
class Spelling:
    """A name that a text may be, how, and a score from 0 to 1."""

    name: str
    way: Way
    score: float


def bare(text: str) -> str:
    """A text without case, accents, marks and separators: words with single spaces.

    >>> bare("Heather_O'Rourke"), bare("Jean-Luc  GODARD, Jr.")
    ('heather orourke', 'jean luc godard jr')
    """
    return _BETWEEN.sub(" ", _MARKS.sub("", fold(text))).strip()


def one_wrong(one: str, other: str) -> bool:
    """Whether two texts differ in one letter: missing, too many, another, or two exchanged."""
    if abs(len(one) - len(other)) > 1:
        return False
    at = next((place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    rest, left = one[at:], other[at:]
    return rest[1:] == left or rest == left[1:] or rest[1:] == left[1:] or (rest[1::-1] == left[:2] and rest[2:] == left[2:])


class _Hashes:
    """Positions of names by keys."""

    def __init__(self, pairs: Iterable[tuple[str, int]]) -> None:
        keys, places = [], []
        for key, place in pairs:
            keys.append(hash(key))
            places.append(place)
        order = np.argsort(np.array(keys, np.int64), kind="stable")
        self._keys: NDArray[np.int64] = np.array(keys, np.int64)[order]
        self._places: NDArray[np.int32] = np.array(places, np.int32)[order]

    def find(self, keys: Sequence[str]) -> list[int]:
        """The positions of names that may have one of these keys."""
        wanted = np.array([hash(key) for key in keys], np.int64)
        starts, stops = np.searchsorted(self._keys, wanted, "left"), np.searchsorted(self._keys, wanted, "right")
        found = [self._places[a:b] for a, b in zip(starts.tolist(), stops.tolist(), strict=True) if a < b]
        return np.unique(np.concatenate(found)).tolist() if found else []


class Spellings:
    """The names of a graph by how they may be typed; made once for each state of a graph. `aliases` are
    pairs of another name that the graph states, and the name that it is of.
    """

    def __init__(self, names: Sequence[str], aliases: Iterable[tuple[str, str]] = ()) -> None:
        self.names = names
        self._aliases: dict[str, dict[str, None]] = {}
        for alias, name in watched(aliases):
            if key := bare(alias):
                self._aliases.setdefault(key, {})[name] = None
        self._bare = [bare(name) for name in watched(names)]
        self._whole = _Hashes((key, place) for place, key in enumerate(self._bare) if key)
        #: The longest name, in words.
        self.longest = max((key.count(" ") + 1 for key in self._bare), default=0)
        self._lacking = _Hashes(self._letters() if len(names) <= MOST_NAMES else ())
        self._ordered = _Hashes((_sorted(key), place) for place, key in enumerate(self._bare) if " " in key)
        self._tails = _Hashes((key.partition(" ")[2], place) for place, key in enumerate(self._bare) if " " in key)
        self._initials = _Hashes((_initials(key), place) for place, key in enumerate(self._bare) if " " in key)

    def _letters(self) -> Iterable[tuple[str, int]]:
        for place, key in watched(enumerate(self._bare)):
            if _LEAST <= len(key) <= _MOST:
                yield key, place
                yield from ((key[:at] + key[at + 1 :], place) for at in range(len(key)))

    def same(self, text: str) -> list[Spelling]:
        """The names that are a text but for case, accents, marks and separators; or, if there are none,
        those of which it is an alias.
        """
        key = bare(text)
        if not key:
            return []
        return self._those(self._whole.find([key]), "marks", lambda other: other == key) or self.aliased(text, key)

    def aliased(self, text: str, key: str = "") -> list[Spelling]:
        """The names of which a text is an alias, none where there are more than `MOST_MEANT`; `key` is the text as `bare`
        writes it.
        """
        names = self._of_alias(text, key)
        return [Spelling(name, "alias", SCORES["alias"]) for name in names] if len(names) <= MOST_MEANT else []

    def crowded(self, text: str) -> list[str]:
        """The names of which a text is an alias where they are too many for `aliased`, else none."""
        names = self._of_alias(text)
        return list(names) if len(names) > MOST_MEANT else []

    def _of_alias(self, text: str, key: str = "") -> dict[str, None]:
        if not self._aliases:
            return {}
        key = key or bare(text)
        # Of short aliases the capitals count: "us" asks, and "US" is a country.
        return {} if len(key) < _SHORT and text.islower() and text.isascii() else self._aliases.get(key, {})

    def typed(self, text: str) -> list[Spelling]:
        """The names of which a text has one letter lost, doubled, swapped or wrong, or the words in another
        order. A name with another letter in a short word is another name: Iran is not Iraq.
        """
        key = bare(text)
        if not _LEAST <= len(key) <= _MOST:
            return []
        found: list[Spelling] = []
        if " " in key:
            ordered = _sorted(key)
            found = self._those(self._ordered.find([ordered]), "order", lambda other: _sorted(other) == ordered)
        if not found:
            near = self._lacking.find([key, *(key[:at] + key[at + 1 :] for at in range(len(key)))])
            found = self._those(near, "letter", lambda other: one_wrong(key, other) and not is_other(key, other))
        return found

    def shortened(self, text: str) -> list[Spelling]:
        """The names of which a text lacks the first word, or is the initials."""
        key = bare(text)
        if len(key) >= _LEAST:
            return self._those(self._tails.find([key]), "last", lambda other: other.partition(" ")[2] == key)
        if len(key) >= 2 and text.replace(".", "").isupper():
            return self._those(self._initials.find([key]), "initials", lambda other: _initials(other) == key)
        return []

    def _those(self, places: Iterable[int], way: Way, fits: Callable[[str], bool]) -> list[Spelling]:
        names = dict.fromkeys(self.names[place] for place in places if fits(self._bare[place]))
        return [Spelling(name, way, SCORES[way]) for name in names] if len(names) <= MOST_MEANT else []


def _sorted(key: str) -> str:
    return " ".join(sorted(key.split(" ")))


def _initials(key: str) -> str:
    """The first letters of the words of a name; small words have none.

    >>> _initials("united states of america"), _initials("united kingdom")
    ('usa', 'uk')
    """
    return "".join(word[0] for word in key.split(" ") if word not in ("of", "the", "and", "for", "de", "la"))
