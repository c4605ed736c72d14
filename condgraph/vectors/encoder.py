"""Texts as vectors. The default needs no model: character n-grams, hashed.

`LexicalEncoder` folds a text (case, accents, white space), cuts it into the sets of its n-grams of
2 to 4 characters with a mark at the beginning and the end of every word, hashes each n-gram to a
position and a sign, and scales the sum to length one. The dot product of two such vectors is about
the cosine of their n-gram sets: 1 for the same text, near 0 for texts that share nothing. Nothing
depends on the process, the machine or the order of texts, so vectors can be stored; the id and
dimension of the encoder are stored with them.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.bounds import check
from condgraph.engine.errors import OptionError
from condgraph.engine.pieces import watched

FloatMatrix = NDArray[np.float32]

_SIZES: Final = (2, 3, 4)
_MARK: Final = " "
#: Texts hashed at a time: bounds the memory of the n-gram table (a text of 20 characters has about
#: 60).
_CHUNK_CHARACTERS: Final = 1 << 20
_HASH_BITS: Final = np.uint64(44)
_HASH_MASK: Final = np.uint64((1 << 44) - 1)
_MIX: Final = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
#: Characters of a text that are looked at; longer texts (descriptions) are told apart well enough
#: by these.
MOST_CHARACTERS: Final = 2000


#: How the name of an encoder behind OpenAI's embeddings API begins.
OPENAI: Final = "openai:"


class Encoder(Protocol):
    """Anything that gives texts unit vectors. `id` and `dimension` are stored with the vectors and
    never mixed.
    """

    @property
    def id(self) -> str:
        """What identifies the model, with its version."""
        ...

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        ...

    def encode(self, texts: Sequence[str]) -> FloatMatrix:
        """Unit vectors, one row a text: shape (len(texts), dimension), float32. A text without
        content is all zeros.
        """
        ...


@dataclass(frozen=True, slots=True)
class Sparse:
    """Sparse rows: row i has the values `data[indptr[i]:indptr[i + 1]]` (float32) at `indices[...]`
    (int32, ascending).
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    data: NDArray[np.float32]
    dimension: int

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def dense(self) -> FloatMatrix:
        """The same rows as a full matrix, float32."""
        matrix = np.zeros((len(self), self.dimension), np.float32)
        rows = np.repeat(np.arange(len(self)), np.diff(self.indptr))
        matrix[rows, self.indices] = self.data
        return matrix


def fold(text: str) -> str:
    """The form in which texts are compared when case, accents and white space do not count.

    >>> fold("  Hyytiäinen  STRASSE ") == fold("hyytiainen straße")
    True
    """
    text = text.casefold()
    if not text.isascii():
        # Marks go before as well: putting a long run of them in order takes the square of its
        # length.
        apart = unicodedata.normalize("NFKD", "".join(one for one in text if not unicodedata.combining(one)))
        text = "".join(character for character in apart if not unicodedata.combining(character)).casefold()
    return " ".join(text.split())


@dataclass(frozen=True, slots=True)
class LexicalEncoder:
    """Hashed character n-grams; `dimension` is a power of two from 64 to 65,536. Raises
    `OptionError` for another.
    """

    dimension: int = 1024

    def __post_init__(self) -> None:
        if not 64 <= self.dimension <= 65_536 or self.dimension & (self.dimension - 1):
            raise OptionError(f"the dimension of the lexical encoder is a power of two from 64 to 65536, not {self.dimension}")

    @property
    def id(self) -> str:
        """Changes whenever the vectors do."""
        return "lexical-1"

    def encode(self, texts: Sequence[str]) -> FloatMatrix:
        """Unit vectors, shape (len(texts), dimension), float32; all zeros for a text of white
        space.
        """
        return self.sparse(texts).dense()

    def sparse(self, texts: Sequence[str]) -> Sparse:
        """The vectors of `encode` without their zeros."""
        folded = [fold(text[:MOST_CHARACTERS]) for text in watched(texts)]
        rows: list[NDArray[np.int64]] = []
        columns: list[NDArray[np.int32]] = []
        signs: list[NDArray[np.float32]] = []
        start = 0
        while start < len(folded):
            stop, size = start, 0
            while stop < len(folded) and (stop == start or size + len(folded[stop]) + 2 <= _CHUNK_CHARACTERS):
                size += len(folded[stop]) + 2
                stop += 1
            check()
            row, gram = _grams(folded[start:stop])
            row, position, total = _add_up(row, gram, self.dimension)
            rows.append(row + start)
            columns.append(position)
            signs.append(total)
            start = stop
        if not rows:
            return Sparse(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32), self.dimension)
        row, data = np.concatenate(rows), np.concatenate(signs)
        # Squares are whole numbers, so their sums are exact in any order.
        lengths = np.sqrt(np.bincount(row, weights=data.astype(np.float64) ** 2, minlength=len(folded)))
        indptr = np.concatenate(([0], np.cumsum(np.bincount(row, minlength=len(folded)))))
        return Sparse(indptr.astype(np.int64), np.concatenate(columns), (data / lengths[row]).astype(np.float32), self.dimension)


def _grams(folded: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """The distinct n-grams of folded texts, at most 2**20 of them: row numbers and 44-bit hashes,
    sorted by both.
    """
    # A line break never stands in a folded text, so it parts the texts.
    joined = "".join(f"\n{_MARK}{text}{_MARK}" if text else "\n" for text in folded) + "\n"
    codes = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), np.uint32)
    breaks = codes == ord("\n")
    owner = np.cumsum(breaks, dtype=np.int64) - 1
    # How many characters are left until the next break, so that no n-gram runs across texts.
    ends = np.flatnonzero(breaks)
    room = ends[np.minimum(owner + 1, len(ends) - 1)] - np.arange(len(codes))
    found_rows: list[NDArray[np.int64]] = []
    found: list[NDArray[np.uint64]] = []
    for size in _SIZES:
        begins = np.flatnonzero((room >= size) & ~breaks)
        code = np.full(len(begins), size, np.uint64)
        for offset in range(size):
            code = _mix(code ^ codes[begins + offset].astype(np.uint64) * _MIX[0])
        found_rows.append(owner[begins])
        found.append(code)
    # One word a pair, so that a plain sort finds the distinct ones: 20 bits of row, 44 of hash.
    pairs = np.concatenate(found_rows).astype(np.uint64) << _HASH_BITS | np.concatenate(found) >> np.uint64(64 - 44)
    pairs.sort()
    pairs = pairs[np.concatenate(([True], pairs[1:] != pairs[:-1]))] if len(pairs) else pairs
    return (pairs >> _HASH_BITS).astype(np.int64), pairs & _HASH_MASK


def _add_up(
    row: NDArray[np.int64], gram: NDArray[np.uint64], dimension: int
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]:
    """Rows, positions (ascending in a row) and sums of signs; an n-gram's low bits are its
    position, its highest is its sign.

    Signs make collisions cancel out instead of adding up; positions whose sum is zero go.
    """
    if not len(row):
        return row, np.zeros(0, np.int32), np.zeros(0, np.float32)
    position = (gram & np.uint64(dimension - 1)).astype(np.int64)
    place = np.sort((row * dimension + position) * 2 + (gram >> np.uint64(43)).astype(np.int64))
    sign = (place % 2 * 2 - 1).astype(np.float32)
    place //= 2
    begins = np.flatnonzero(np.concatenate(([True], place[1:] != place[:-1])))
    total = np.add.reduceat(sign, begins)
    kept = total != 0
    place = place[begins][kept]
    return place // dimension, (place % dimension).astype(np.int32), total[kept]


def _mix(code: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A 64-bit finaliser (splitmix64): every bit of the input moves every bit of the output."""
    code = (code ^ (code >> np.uint64(30))) * _MIX[1]
    code = (code ^ (code >> np.uint64(27))) * _MIX[2]
    return code ^ (code >> np.uint64(31))


def normalised(matrix: FloatMatrix) -> FloatMatrix:
    """Rows scaled to length one; rows of zeros stay."""
    lengths = np.sqrt(np.einsum("ij,ij->i", matrix, matrix, dtype=np.float64))[:, None]
    return (matrix / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)


def folder_of(text: str) -> Path | None:
    """The folder that a text names, if there is one."""
    path = Path(text).expanduser()
    return path.resolve() if path.is_dir() else None
