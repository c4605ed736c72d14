"""The names that a program can refer to, prepared once for exact, folded and similar look-up.

A vocabulary has three indexes over a sequence of names: sorted hashes of the folded names (exact
and folded look-up), and, for similarity, an inverted index of the lexical encoder's sparse vectors,
so that a search touches only the names that share an n-gram with the query. Measured on the 43,234
names of MetaQA: 0.3 ms a search, against 5 ms for the product with a dense matrix of 1,024 columns
that is ten times as large. `resolve` looks a name up: exact, then folded, then similar.
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

#: Sparse search costs the same at any dimension; at this one collisions of n-grams change no score
#: by more than about 0.01.
DIMENSION: Final = 16_384
_ARRAYS: Final = ("keys", "order", "starts", "members", "weights")


class Vocabulary:
    """Names and their indexes. Positions in `names` are what look-ups return; equal names keep
    their own positions.

    The similarity index is built at the first search that needs it, or by `prepare`.
    """

    def __init__(self, names: Sequence[str], *, encoder: LexicalEncoder | None = None) -> None:
        self.names = names
        self.encoder = encoder or LexicalEncoder(DIMENSION)
        keys = np.fromiter((_key(fold(name)) for name in names), np.uint64, len(names))
        self._order = np.argsort(keys, kind="stable").astype(np.int32)
        self._keys = keys[self._order]
        self._kept: dict[str, Any] = {}

    def __len__(self) -> int:
        return len(self.names)

    def folded(self, name: str) -> list[int]:
        """Positions of the names that equal `name` but for case, accents and white space,
        ascending.
        """
        wanted = fold(name)
        key = np.uint64(_key(wanted))
        start, stop = np.searchsorted(self._keys, key, "left"), np.searchsorted(self._keys, key, "right")
        # Two names may share a hash, so the texts decide.
        return [int(position) for position in self._order[start:stop] if fold(self.names[position]) == wanted]

    def similarities(self, name: str) -> NDArray[np.float64]:
        """The dot product of `name` with every name, shape (len(self),), rounded to 6 digits so
        that ties are ties.
        """
        starts, members, weights = self.prepare()
        query = self.encoder.sparse([name])
        hits = [slice(starts[column], starts[column + 1]) for column in query.indices]
        if not hits:
            return np.zeros(len(self.names))
        found = np.concatenate([members[hit] for hit in hits])
        parts = np.concatenate([weights[hit] * weight for hit, weight in zip(hits, query.data, strict=True)])
        return np.round(np.bincount(found, weights=parts, minlength=len(self.names)), 6)

    def prepare(self) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]:
        """Build the similarity index unless it is there: offsets by column, the names that have it,
        and their values.
        """
        result: tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]] = shared(self._kept, "postings", self._index)
        return result

    def _index(self) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]:
        rows = self.encoder.sparse(self.names)
        order = np.argsort(rows.indices, kind="stable")
        owner = np.repeat(np.arange(len(rows), dtype=np.int32), np.diff(rows.indptr))
        starts = np.concatenate(([0], np.cumsum(np.bincount(rows.indices, minlength=self.encoder.dimension))))
        return starts.astype(np.int64), owner[order], rows.data[order]

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Everything but the names, as arrays of plain types."""
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
        """The vocabulary that gave `arrays`, over the same names.

        Raises `StoreVersionError` for vectors of another encoder, and `StoreDamagedError` where
        arrays are missing or do not fit.
        """
        missing = [part for part in (*_ARRAYS, "encoder", "dimension") if part not in arrays]
        if missing:
            raise StoreDamagedError(f"the index of names lacks {', '.join(missing)}")
        kept = bytes(np.asarray(arrays["encoder"], np.uint8)).decode("utf-8", "replace")
        encoder = LexicalEncoder(int(np.asarray(arrays["dimension"], np.int64)[0]))
        if kept != encoder.id:
            raise StoreVersionError(
                f"the index of names was made by the encoder {kept!r}, this version has {encoder.id!r}",
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
        fits = (
            fits and bool((np.diff(starts) >= 0).all()) and _within(members, len(names)) and _within(vocabulary._order, len(names))
        )
        if not fits:
            raise StoreDamagedError(f"the index of names does not fit {len(names)} names")
        vocabulary._kept = {"postings": (starts, members, weights)}
        return vocabulary


def _within(positions: NDArray[np.int32], size: int) -> bool:
    return not len(positions) or (int(positions.min()) >= 0 and int(positions.max()) < size)


def _key(folded: str) -> int:
    return int.from_bytes(blake2b(folded.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


# -- The index of all entity names on disk -----------------------------------------------------------
# It is stored next to the generation where making it takes long: a NumPy archive of the arrays of a
# `Vocabulary`, written under another name and renamed, so that it is whole or not there, and removed
# with its generation. A file that cannot be read, or does not fit, is made again; a folder that
# cannot be written to costs time and nothing else.


#: An index that takes longer to make, in seconds, is written to disk.
WORTH_KEEPING: Final = 1.0
_FILE: Final = "names-lexical-1.npz"


def entity_index(snapshot: Snapshot) -> Vocabulary:
    """The names of all entities and concepts but table rows, each once, with their indexes."""
    kept = snapshot.entity_kind != EntityKind.ROW
    names = snapshot.texts.take(np.unique(snapshot.entity_name[kept]))
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
    """Write the index of a generation, if its folder takes it."""
    fresh = place / f".{_FILE}.{os.getpid()}"
    try:
        with fresh.open("wb") as file:
            np.savez(file, **vocabulary.arrays())  # type: ignore[arg-type]
        os.replace(fresh, place / _FILE)
    except OSError:
        # Read-only folders are normal; the index is made again next time.
        with suppress(OSError):
            fresh.unlink(missing_ok=True)


# -- Resolution --------------------------------------------------------------------------------------
# The first way that matches decides, and all its ties count: three rows with the cell "Italy" are
# three matches. Names that came close are listed with their scores, for the trace and for messages.


How: TypeAlias = Literal["exact", "folded", "similar"]

#: The least similarity at which a name of one column (or one relation's objects) is taken for
#: another spelling.
THRESHOLD: Final = 0.4
#: The least similarity at which a name is worth mentioning.
_WORTH: Final = 0.2
#: The most near matches.
MOST_NEAR: Final = 5
_WORD: Final = re.compile(r"\w+")
#: The least letters of a word of which one may be a typing error.
_LONG: Final = 8


@dataclass(frozen=True, slots=True)
class Match:
    """A name of the vocabulary: its position, how it matched, and its score from 0 to 1 (1 for
    exact and folded).
    """

    name: str
    position: int
    score: float
    how: How


@dataclass(frozen=True, slots=True)
class Resolution:
    """The result of a look-up: the matches that count (ties, by position), and the near ones (best
    first).
    """

    name: str
    matches: tuple[Match, ...]
    near: tuple[Match, ...] = ()

    def require(self, kind: str, span: tuple[int, int] | None = None) -> tuple[Match, ...]:
        """The matches; raises `UnknownNameError` with the near ones as candidates if there are
        none.
        """
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
    most: int = MOST_NEAR,
    names: bool = True,
) -> Resolution:
    """The meaning of `name` in `vocabulary`.

    `among` limits it to some positions of the vocabulary (the values of one column, for example).
    `threshold` above 1 allows no similar names; near ones are still returned, at most `most`.
    Unless `names` is false, a similar name that is another name (`is_other`) is a near one: Iceland
    is not Ireland.
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
    return Resolution(name, matches, _near(vocabulary, scores, most))


def is_other(text: str, other: str) -> bool:
    """Whether a similar name is another name, and no other spelling: some short word of it has letters replaced, and none left
    out, added or swapped.

    >>> [is_other(one, "Ireland") for one in ("Iceland", "Irland", "Irelnad", "Republic of Ireland")]
    [True, False, False, False]
    >>> is_other("North Korea", "South Korea"), is_other("Annapurma", "Annapurna"), is_other("Iran", "Iraq")
    (True, False, True)
    """
    mine, others = _WORD.findall(fold(text)), _WORD.findall(fold(other))
    return len(mine) == len(others) and any(
        a != b and len(a) == len(b) < _LONG and sorted(a) != sorted(b) for a, b in zip(mine, others, strict=True)
    )


def _near(vocabulary: Vocabulary, scores: NDArray[np.float64], most: int) -> tuple[Match, ...]:
    """The best of the rest, at most `most`, by falling score, then name, then position."""
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
# Names as people type them: without case, accents and marks, with a letter lost, doubled, swapped or wrong, with
# words in another order, without the first word, or as initials.
#
# An index of hashes finds them (each name with one letter left out, its words in order of the alphabet, and so on),
# so that a look-up costs the same in a graph of any size that is indexed.


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
