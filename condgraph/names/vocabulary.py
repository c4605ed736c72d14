"""Indexes of names for exact, folded and similarity look-up.

A vocabulary has an index of sorted hashes of the folded names (exact and folded look-up) and, for similarity, an
inverted index of the lexical encoder's sparse vectors, so that a search touches only the names that share an n-gram
with the query. Measured on the 43,234 names of MetaQA: 0.3 ms a search, against 5 ms for the product with a dense
matrix of 1,024 columns that is ten times as large. `resolve` looks a name up: exact, then folded, then similar.
"""

from __future__ import annotations

import os
import re
import time
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.bounds import shared, watched
from condgraph.engine.errors import StoreDamagedError, StoreError, StoreVersionError, UnknownNameError
from condgraph.engine.facts import EntityKind
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.values import collapse, fold
from condgraph.vectors.encoders import LexicalEncoder

#: Sparse search costs the same in any dimension; in this one, collisions of n-grams change scores by at most about 0.01.
DIMENSION: Final = 16_384
_ARRAYS: Final = ("keys", "order", "starts", "members", "weights")


class Vocabulary:
    """Names and their indexes. Look-ups return positions in `names`; equal names keep separate positions.

    The similarity index is built by `prepare` or by the first search that needs it.
    """

    def __init__(self, names: Sequence[str], *, encoder: LexicalEncoder | None = None) -> None:
        self.names = names
        self.encoder = encoder or LexicalEncoder(DIMENSION)
        keys = np.fromiter((_key(fold(name)) for name in names), np.uint64, len(names))
        self._order = np.argsort(keys, kind="stable").astype(np.int32)
        self._keys = keys[self._order]
        self._cache: dict[str, Any] = {}

    def __len__(self) -> int:
        return len(self.names)

    def folded(self, name: str) -> list[int]:
        """Return the positions of names that equal `name` except for case, accents and white space, ascending."""
        wanted = fold(name)
        key = np.uint64(_key(wanted))
        start, stop = np.searchsorted(self._keys, key, "left"), np.searchsorted(self._keys, key, "right")
        # Names may share a hash, so the texts are compared.
        return [int(position) for position in self._order[start:stop] if fold(self.names[position]) == wanted]

    def similarities(self, name: str) -> NDArray[np.float64]:
        """Return the dot product of `name` with every name, shape (len(self),), rounded to 6 digits so that ties are
        exact.
        """
        starts, members, weights = self.prepare()
        query = self.encoder.sparse([name])
        hits = [slice(starts[column], starts[column + 1]) for column in query.indices]
        if not hits:
            return np.zeros(len(self.names))
        matching = np.concatenate([members[hit] for hit in hits])
        parts = np.concatenate([weights[hit] * weight for hit, weight in zip(hits, query.data, strict=True)])
        return np.round(np.bincount(matching, weights=parts, minlength=len(self.names)), 6)

    def prepare(self) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]:
        """Build the similarity index on first use, and return it: offsets by column, the positions of names with it,
        and their values.
        """
        result: tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]] = shared(self._cache, "postings", self._index)
        return result

    def _index(self) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]:
        rows = self.encoder.sparse(self.names)
        order = np.argsort(rows.indices, kind="stable")
        owner = np.repeat(np.arange(len(rows), dtype=np.int32), np.diff(rows.indptr))
        starts = np.concatenate(([0], np.cumsum(np.bincount(rows.indices, minlength=self.encoder.dimension))))
        return starts.astype(np.int64), owner[order], rows.data[order]

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return everything except the names as arrays of plain types."""
        starts, members, weights = self.prepare()
        return {
            "keys": self._keys,
            "order": self._order,
            "starts": starts,
            "members": members,
            "weights": weights,
            "encoder": np.frombuffer(self.encoder.id.encode(), np.uint8),
            "dimension": np.array([self.encoder.dimension], np.int64),
        }

    @classmethod
    def from_arrays(cls, names: Sequence[str], arrays: Mapping[str, NDArray[np.generic]]) -> Vocabulary:
        """Return the vocabulary that made `arrays`, over the same names.

        Raises `StoreVersionError` for vectors of another encoder, and `StoreDamagedError` if arrays are missing or do
        not fit.
        """
        missing = [part for part in (*_ARRAYS, "encoder", "dimension") if part not in arrays]
        if missing:
            raise StoreDamagedError(f"the index of names lacks {', '.join(missing)}")
        stored_id = bytes(np.asarray(arrays["encoder"], np.uint8)).decode("utf-8", "replace")
        encoder = LexicalEncoder(int(np.asarray(arrays["dimension"], np.int64)[0]))
        if stored_id != encoder.id:
            raise StoreVersionError(
                f"the index of names was made by the encoder {stored_id!r}, this version has {encoder.id!r}",
                hint="build the graph again",
            )
        vocabulary = cls.__new__(cls)
        vocabulary.names, vocabulary.encoder = names, encoder
        vocabulary._keys = np.asarray(arrays["keys"], np.uint64)
        vocabulary._order = np.asarray(arrays["order"], np.int32)
        starts = np.asarray(arrays["starts"], np.int64)
        members = np.asarray(arrays["members"], np.int32)
        weights = np.asarray(arrays["weights"], np.float32)
        fits = len(vocabulary._keys) == len(vocabulary._order) == len(names) and len(members) == len(weights)
        fits = fits and len(starts) == encoder.dimension + 1 and starts[0] == 0 and starts[-1] == len(members)
        fits = fits and bool((np.diff(starts) >= 0).all()) and _valid(members, len(names)) and _valid(vocabulary._order, len(names))
        if not fits:
            raise StoreDamagedError(f"the index of names does not fit {len(names)} names")
        vocabulary._cache = {"postings": (starts, members, weights)}
        return vocabulary


def _valid(positions: NDArray[np.int32], size: int) -> bool:
    return not len(positions) or (int(positions.min()) >= 0 and int(positions.max()) < size)


def _key(folded: str) -> int:
    return int.from_bytes(blake2b(folded.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


# -- The index of all entity names on disk -----------------------------------------------------------
# An index that is slow to build is stored with its generation and removed with it: a NumPy archive of the arrays of a
# `Vocabulary`, written under another name and renamed, so that it is complete or absent. A file that cannot be read, or does
# not fit, is rebuilt; if the folder is read-only, the index is rebuilt each time.


#: Indexes that take longer to build, in seconds, are written to disk.
WORTH_KEEPING: Final = 1.0
_FILE: Final = "names-lexical-1.npz"


def entity_index(snapshot: Snapshot) -> Vocabulary:
    """Return the distinct names of all entities and concepts except table rows, with their indexes."""
    named = snapshot.entity_kind != EntityKind.ROW
    names = snapshot.texts.take(np.unique(snapshot.entity_name[named]))
    place = snapshot.folder
    if place is not None:
        unreadable = suppress(OSError, ValueError, KeyError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error, StoreError)
        with unreadable, np.load(place / _FILE, allow_pickle=False) as arrays:
            return Vocabulary.from_arrays(names, dict(arrays))
    begin = time.perf_counter()
    vocabulary = Vocabulary(names)
    vocabulary.prepare()
    if place is not None and time.perf_counter() - begin > WORTH_KEEPING:
        write(place, vocabulary)
    return vocabulary


def write(place: Path, vocabulary: Vocabulary) -> None:
    """Write the index of a generation, if its folder is writable."""
    fresh = place / f".{_FILE}.{os.getpid()}"
    try:
        with fresh.open("wb") as file:
            np.savez(file, **vocabulary.arrays())  # type: ignore[arg-type]
        os.replace(fresh, place / _FILE)
    except OSError:
        # Read-only folders are normal; the index is rebuilt next time.
        with suppress(OSError):
            fresh.unlink(missing_ok=True)


# -- Resolution --------------------------------------------------------------------------------------
# The first kind of match that succeeds decides, and all its ties count: three rows with the cell "Italy" are three matches.
# Near matches are listed with their scores, for the trace and for messages.


How: TypeAlias = Literal["exact", "folded", "similar"]

#: The least similarity at which a name in one column (or among one relation's objects) counts as another spelling.
THRESHOLD: Final = 0.4
#: The least similarity of a near match.
_WORTH: Final = 0.2
#: The most near matches.
MAX_NEAR: Final = 5
_WORD: Final = re.compile(r"\w+")
#: In words of this length or more, another letter may be a typing error.
_LONG: Final = 8


@dataclass(frozen=True, slots=True)
class Match:
    """A name of the vocabulary: its position, the kind of match, and a score from 0 to 1 (1 for exact and folded)."""

    name: str
    position: int
    score: float
    how: How


@dataclass(frozen=True, slots=True)
class Resolution:
    """The result of a look-up: the matches (all ties, by position) and the near matches (best first)."""

    name: str
    matches: tuple[Match, ...]
    near: tuple[Match, ...] = ()

    def require(self, kind: str, span: tuple[int, int] | None = None) -> tuple[Match, ...]:
        """Return the matches; raise `UnknownNameError` with the near ones as candidates if there are none."""
        if not self.matches:
            names = dict.fromkeys(match.name for match in self.near)
            raise UnknownNameError(kind, self.name, candidates=tuple(names), span=span)
        return self.matches


def resolve(
    name: str,
    vocabulary: Vocabulary,
    *,
    threshold: float = THRESHOLD,
    among: NDArray[np.integer] | None = None,
    most: int = MAX_NEAR,
    names: bool = True,
) -> Resolution:
    """Look up `name` in `vocabulary`.

    `among` limits the look-up to some positions of the vocabulary, such as the values of one column. With `threshold`
    above 1, no similar name matches; near ones are still returned, at most `most`. Unless `names` is false, a similar
    name that is a different name (`is_other`) is only near: Iceland is not Ireland.
    """
    allowed = None if among is None else _mask(among, len(vocabulary))
    folded = [position for position in vocabulary.folded(name) if allowed is None or allowed[position]]
    if folded:
        wanted = collapse(name)
        exact = [position for position in folded if collapse(vocabulary.names[position]) == wanted]
        how: How = "exact" if exact else "folded"
        return Resolution(name, tuple(Match(vocabulary.names[position], position, 1.0, how) for position in exact or folded))
    scores = vocabulary.similarities(name)
    if allowed is not None:
        scores = np.where(allowed, scores, 0.0)
    best = float(scores.max(initial=0.0))
    matches: tuple[Match, ...] = ()
    if best >= threshold and best > 0:
        tied = (_similar(vocabulary, scores, position) for position in np.flatnonzero(scores == best).tolist())
        matches = tuple(match for match in tied if not (names and is_other(name, match.name)))
        scores[[match.position for match in matches]] = 0.0
    return Resolution(name, matches, _nearest_matches(vocabulary, scores, most))


def is_other(text: str, other: str) -> bool:
    """Return whether a similar name is a different name rather than another spelling: some short word has letters
    replaced, and none left out, added or swapped.

    >>> [is_other(one, "Ireland") for one in ("Iceland", "Irland", "Irelnad", "Republic of Ireland")]
    [True, False, False, False]
    >>> is_other("North Korea", "South Korea"), is_other("Annapurma", "Annapurna"), is_other("Iran", "Iraq")
    (True, False, True)
    """
    words, other_words = _WORD.findall(fold(text)), _WORD.findall(fold(other))
    return len(words) == len(other_words) and any(
        a != b and len(a) == len(b) < _LONG and sorted(a) != sorted(b) for a, b in zip(words, other_words, strict=True)
    )


def _nearest_matches(vocabulary: Vocabulary, scores: NDArray[np.float64], most: int) -> tuple[Match, ...]:
    """Return the best remaining names, at most `most`, by falling score, then name, then position."""
    candidates = np.flatnonzero(scores >= _WORTH)
    if len(candidates) > most > 0:
        least = np.partition(scores[candidates], -most)[-most]
        candidates = candidates[scores[candidates] >= least]
    ordered = sorted(candidates.tolist(), key=lambda position: (-scores[position], vocabulary.names[position], position))
    return tuple(_similar(vocabulary, scores, position) for position in ordered[:most])


def _similar(vocabulary: Vocabulary, scores: NDArray[np.float64], position: int) -> Match:
    return Match(vocabulary.names[position], position, float(scores[position]), "similar")


def _mask(among: NDArray[np.integer], size: int) -> NDArray[np.bool_]:
    mask = np.zeros(size, np.bool_)
    mask[among] = True
    return mask


# -- spellings ---------------------------------------------------------------------------------------
# Names as people type them: without case, accents and marks, with a letter lost, doubled, swapped or wrong, with words in
# another order, without the first word, or as initials.
#
# An index of hashes finds them (of each name with one letter left out, of its words in alphabetical order, and so on), so that
# the time of a look-up does not depend on the size of the graph.


#: The kinds of spellings, the most certain first.
Way: TypeAlias = Literal["marks", "alias", "letter", "order", "last", "initials"]
SCORES: Final[dict[Way, float]] = {"marks": 1.0, "alias": 0.95, "letter": 0.9, "order": 0.85, "last": 0.6, "initials": 0.6}
#: The most names of a graph for which names with a letter left out are indexed.
MAX_NAMES: Final = 400_000
#: The shortest and longest names in which a letter may be wrong.
_MIN_LENGTH, _MAX_LENGTH = 3, 60
#: Aliases of this length or more may be typed in lower case.
_SHORT: Final = 4
#: The most names that a spelling may stand for; with more, it matches none.
MAX_MEANINGS: Final = 8
_MARKS: Final = re.compile(r"[’'`.]")
_SEPARATORS: Final = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True)
class Spelling:
    """A name that a text may stand for, the kind of spelling, and a score from 0 to 1."""

    name: str
    way: Way
    score: float


def bare(text: str) -> str:
    """Return a text without case, accents, marks and separators: words with single spaces.

    >>> bare("Heather_O'Rourke"), bare("Jean-Luc  GODARD, Jr.")
    ('heather orourke', 'jean luc godard jr')
    """
    return _SEPARATORS.sub(" ", _MARKS.sub("", fold(text))).strip()


def one_wrong(one: str, other: str) -> bool:
    """Return whether two texts differ in one letter: missing, added, replaced, or swapped with the next."""
    if abs(len(one) - len(other)) > 1:
        return False
    at = next((place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    tail, other_tail = one[at:], other[at:]
    return (
        tail[1:] == other_tail
        or tail == other_tail[1:]
        or tail[1:] == other_tail[1:]
        or (tail[1::-1] == other_tail[:2] and tail[2:] == other_tail[2:])
    )


class _Hashes:
    """Positions of names by hashed keys."""

    def __init__(self, pairs: Iterable[tuple[str, int]]) -> None:
        keys, places = [], []
        for key, place in pairs:
            keys.append(hash(key))
            places.append(place)
        order = np.argsort(np.array(keys, np.int64), kind="stable")
        self._keys: NDArray[np.int64] = np.array(keys, np.int64)[order]
        self._positions: NDArray[np.int32] = np.array(places, np.int32)[order]

    def find(self, keys: Sequence[str]) -> list[int]:
        """Return the positions of names that may have one of the keys; keys may collide."""
        wanted = np.array([hash(key) for key in keys], np.int64)
        starts, stops = np.searchsorted(self._keys, wanted, "left"), np.searchsorted(self._keys, wanted, "right")
        runs = [self._positions[a:b] for a, b in zip(starts.tolist(), stops.tolist(), strict=True) if a < b]
        return np.unique(np.concatenate(runs)).tolist() if runs else []


class Spellings:
    """The names of a graph by the ways they may be typed; made once for each state of a graph. `aliases` are pairs of
    an alternative name that the graph states, and the name it belongs to.
    """

    def __init__(self, names: Sequence[str], aliases: Iterable[tuple[str, str]] = ()) -> None:
        self.names = names
        self._aliases: dict[str, dict[str, None]] = {}
        for alias, name in watched(aliases):
            if key := bare(alias):
                self._aliases.setdefault(key, {})[name] = None
        self._stripped = [bare(name) for name in watched(names)]
        self._by_key = _Hashes((key, place) for place, key in enumerate(self._stripped) if key)
        #: The longest name, in words.
        self.longest = max((key.count(" ") + 1 for key in self._stripped), default=0)
        self._lacking = _Hashes(self._letters() if len(names) <= MAX_NAMES else ())
        self._ordered = _Hashes((_sorted(key), place) for place, key in enumerate(self._stripped) if " " in key)
        self._tails = _Hashes((key.partition(" ")[2], place) for place, key in enumerate(self._stripped) if " " in key)
        self._initials = _Hashes((_initials(key), place) for place, key in enumerate(self._stripped) if " " in key)

    def _letters(self) -> Iterable[tuple[str, int]]:
        for place, key in watched(enumerate(self._stripped)):
            if _MIN_LENGTH <= len(key) <= _MAX_LENGTH:
                yield key, place
                yield from ((key[:at] + key[at + 1 :], place) for at in range(len(key)))

    def same(self, text: str) -> list[Spelling]:
        """Return the names that equal a text except for case, accents, marks and separators; if there are none, those
        that it is an alias of.
        """
        key = bare(text)
        if not key:
            return []
        return self._those(self._by_key.find([key]), "marks", lambda other: other == key) or self.aliased(text, key)

    def aliased(self, text: str, key: str = "") -> list[Spelling]:
        """Return the names that a text is an alias of; none if there are more than `MAX_MEANINGS`. `key` is the result
        of `bare` for the text.
        """
        names = self._of_alias(text, key)
        return [Spelling(name, "alias", SCORES["alias"]) for name in names] if len(names) <= MAX_MEANINGS else []

    def crowded(self, text: str) -> list[str]:
        """Return the names that a text is an alias of if they are too many for `aliased`; otherwise none."""
        names = self._of_alias(text)
        return list(names) if len(names) > MAX_MEANINGS else []

    def _of_alias(self, text: str, key: str = "") -> dict[str, None]:
        if not self._aliases:
            return {}
        key = key or bare(text)
        # In short aliases, case matters: "us" is a pronoun, "US" a country.
        return {} if len(key) < _SHORT and text.islower() and text.isascii() else self._aliases.get(key, {})

    def typed(self, text: str) -> list[Spelling]:
        """Return the names that a text matches with one letter lost, doubled, swapped or wrong, or with the words in
        another order. A name with another letter in a short word is a different name: Iran is not Iraq.
        """
        key = bare(text)
        if not _MIN_LENGTH <= len(key) <= _MAX_LENGTH:
            return []
        matches: list[Spelling] = []
        if " " in key:
            ordered = _sorted(key)
            matches = self._those(self._ordered.find([ordered]), "order", lambda other: _sorted(other) == ordered)
        if not matches:
            candidates = self._lacking.find([key, *(key[:at] + key[at + 1 :] for at in range(len(key)))])
            matches = self._those(candidates, "letter", lambda other: one_wrong(key, other) and not is_other(key, other))
        return matches

    def shortened(self, text: str) -> list[Spelling]:
        """Return the names that a text is without their first word, or of which it is the initials."""
        key = bare(text)
        if len(key) >= _MIN_LENGTH:
            return self._those(self._tails.find([key]), "last", lambda other: other.partition(" ")[2] == key)
        if len(key) >= 2 and text.replace(".", "").isupper():
            return self._those(self._initials.find([key]), "initials", lambda other: _initials(other) == key)
        return []

    def _those(self, places: Iterable[int], way: Way, fits: Callable[[str], bool]) -> list[Spelling]:
        names = dict.fromkeys(self.names[place] for place in places if fits(self._stripped[place]))
        return [Spelling(name, way, SCORES[way]) for name in names] if len(names) <= MAX_MEANINGS else []


def _sorted(key: str) -> str:
    return " ".join(sorted(key.split(" ")))


def _initials(key: str) -> str:
    """Return the first letters of the words of a name, without articles and prepositions.

    >>> _initials("united states of america"), _initials("united kingdom")
    ('usa', 'uk')
    """
    return "".join(word[0] for word in key.split(" ") if word not in ("of", "the", "and", "for", "de", "la"))
