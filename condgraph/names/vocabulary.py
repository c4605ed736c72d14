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
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.errors import StoreDamagedError, StoreError, StoreVersionError, UnknownNameError
from condgraph.engine.facts import EntityKind
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.values import collapse
from condgraph.engine.workers import shared
from condgraph.vectors.encoders import LexicalEncoder, fold

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
