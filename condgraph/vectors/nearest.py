"""Nearest-neighbour search over vectors, independent of any store: exact in NumPy, or with candidates from FAISS.

A distance is the L2 distance of two vectors as an integer in millionths, `rint(1e6 * |u - v|)`, so that equal distances
are exactly equal. The distance of a row does not depend on which other rows are compared: it is summed in float64
within the row. A search first bounds all distances with one float32 product, block by block, and computes exactly only
those that may be among the nearest.

`DenseVectors` searches a matrix (which may be a memory-mapped file), `SparseVectors` the columns of a sparse matrix,
for the lexical encoder, whose vectors are nearly all zeros.
"""

from __future__ import annotations

import os
import zlib
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.bounds import check, watched
from condgraph.engine.errors import OptionError, StoreDamagedError, requiring
from condgraph.vectors.encoders import FloatMatrix, Sparse

#: The integer for a distance of 1.
UNIT: Final = 1_000_000
#: The number of rows that are multiplied at a time, and of those whose exact distances are computed at a time.
_BLOCK: Final = 1 << 16
_EXACT_BLOCK: Final = 1 << 11

Positions = NDArray[np.int64]
Distances = NDArray[np.int64]
Query = NDArray[np.float32]


class Vectors(Protocol):
    """Unit vectors of texts, searched with the vector of another text (shape (dimension,), float32)."""

    @property
    def dimension(self) -> int:
        """The length of a vector."""
        ...

    def __len__(self) -> int: ...

    def distances(self, query: Query, positions: Positions | None = None) -> Distances:
        """Return the distances of `query` from all vectors, or from those at `positions`, in millionths: shape (n,),
        int64.
        """
        ...

    def nearest(self, query: Query, k: int) -> tuple[Positions, Distances]:
        """Return the k nearest vectors as positions and distances in millionths, sorted by distance, then position.
        There are exactly min(k, len(self)) of them.
        """
        ...


def millionths(squared: NDArray[np.float64]) -> Distances:
    """Return squared L2 distances as distances in millionths, rounded to the nearest integer (SimGRAG, Eq. 3)."""
    result: Distances = np.rint(np.sqrt(np.maximum(squared, 0.0)) * UNIT).astype(np.int64)
    return result


class DenseVectors:
    """Vectors as a matrix, shape (n, dimension), float32. It may be memory-mapped, and is read block by block."""

    def __init__(self, matrix: FloatMatrix) -> None:
        if matrix.ndim != 2 or matrix.dtype != np.float32:
            raise OptionError(f"vectors are a float32 matrix, not {matrix.dtype} of shape {matrix.shape}")
        self.matrix = matrix
        self._squares: NDArray[np.float32] | None = None

    def __len__(self) -> int:
        return len(self.matrix)

    @property
    def dimension(self) -> int:
        """The length of a vector."""
        return int(self.matrix.shape[1])

    def distances(self, query: Query, positions: Positions | None = None) -> Distances:
        """Return exact distances in millionths, each computed within its row."""
        query = _checked(query, self.dimension)
        count = len(self.matrix) if positions is None else len(positions)
        result = np.empty(count, np.int64)
        exact_query = query.astype(np.float64)
        for start in range(0, count, _EXACT_BLOCK):
            check()
            part = slice(start, start + _EXACT_BLOCK)
            rows = self.matrix[part] if positions is None else self.matrix[positions[part]]
            result[part] = millionths(np.square(rows.astype(np.float64) - exact_query).sum(axis=1))
        return result

    def bounds(self, query: Query) -> tuple[NDArray[np.float32], float]:
        """Return all squared distances in float32, shape (n,), and the maximum error of each."""
        query = _checked(query, self.dimension)
        if self._squares is None:
            self._squares = np.concatenate(
                [np.einsum("ij,ij->i", part, part) for part in watched(self._blocks(), 1)] or [np.empty(0, np.float32)]
            ).astype(np.float32)
        products = np.concatenate([part @ query for part in watched(self._blocks(), 1)] or [np.empty(0, np.float32)])
        squared = self._squares - 2 * products + np.float32(query @ query)
        # A sum of d products of unit vectors has an error of at most d * 2**-24 in any order, and so
        # have the two squares.
        return squared, 4 * (self.dimension + 4) * 2.0**-24 * max(1.0, float(np.abs(squared).max(initial=0.0)))

    def nearest(self, query: Query, k: int) -> tuple[Positions, Distances]:
        """Return the k nearest exactly: float32 finds the candidates, float64 ranks them."""
        if k < len(self.matrix):
            squared, error = self.bounds(query)
            bound = np.partition(squared, k - 1)[k - 1] if k > 0 else -np.inf
            positions = np.flatnonzero(squared <= bound + 2 * error)
        else:
            positions = np.arange(len(self.matrix))
        return ranked(positions, self.distances(query, positions), k)

    def _blocks(self) -> list[FloatMatrix]:
        return [self.matrix[start : start + _BLOCK] for start in range(0, len(self.matrix), _BLOCK)]


class SparseVectors:
    """Vectors by column: the rows with a value in it, and the values. A search reads only the columns of the query."""

    def __init__(self, rows: Sparse) -> None:
        self.dimension, self._count = rows.dimension, len(rows)
        order = np.argsort(rows.indices, kind="stable")
        owner = np.repeat(np.arange(len(rows), dtype=np.int32), np.diff(rows.indptr))
        self._starts = np.concatenate(([0], np.cumsum(np.bincount(rows.indices, minlength=rows.dimension)))).tolist()
        self._members, self._values = owner[order], rows.data[order].astype(np.float64)
        # Summed by ascending column, like the products, so that equal vectors have distance exactly 0.
        self._squares = np.bincount(self._members, weights=np.square(self._values), minlength=self._count)

    def __len__(self) -> int:
        return self._count

    def distances(self, query: Query, positions: Positions | None = None) -> Distances:
        """Return exact distances in millionths. Those of all rows are always computed: the cost depends only on the
        columns of the query.
        """
        query = _checked(query, self.dimension)
        columns = np.flatnonzero(query).tolist()
        values = query[columns].astype(np.float64)
        products: NDArray[np.float64] = np.zeros(self._count)
        if columns:
            hits = [slice(self._starts[column], self._starts[column + 1]) for column in columns]
            members = np.concatenate([self._members[hit] for hit in hits])
            parts = np.concatenate([self._values[hit] * value for hit, value in zip(hits, values.tolist(), strict=True)])
            products = np.bincount(members, weights=parts, minlength=self._count).astype(np.float64, copy=False)
        square = float(np.bincount(np.zeros(len(columns), np.intp), weights=np.square(values), minlength=1)[0])
        distances = millionths(self._squares + square - 2 * products)
        return distances if positions is None else distances[positions]

    def nearest(self, query: Query, k: int) -> tuple[Positions, Distances]:
        distances = self.distances(query)
        if 0 < k < len(distances):
            positions = np.flatnonzero(distances <= np.partition(distances, k - 1)[k - 1])
        else:
            positions = np.arange(len(distances))
        return ranked(positions, distances[positions], k)


def ranked(positions: Positions, distances: Distances, k: int) -> tuple[Positions, Distances]:
    """Return the first k by distance, then position."""
    order = np.lexsort((positions, distances))[: max(k, 0)]
    return positions[order], distances[order]


def _checked(query: Query, dimension: int) -> Query:
    if query.shape != (dimension,):
        raise OptionError(f"the query vector has shape {query.shape}, the vectors of the index have {dimension} numbers")
    return np.ascontiguousarray(query, np.float32)


# -- FAISS -------------------------------------------------------------------------------------------
# For graphs with too many names to compare them all: the optional library `faiss`. The index finds more
# candidates than needed; their distances are computed exactly, and ranked. It can still miss a name, so
# an answer that used it has a warning.


#: The largest number of vectors for a graph index (HNSW); more are indexed as lists by cluster (IVF),
#: which take less memory.
GRAPH: Final = 1_000_000
_LINKS: Final = 32
#: The number of candidates as a multiple of k, and its minimum.
_WIDER: Final = 2
_MIN_ROWS: Final = 64
_EFFORT: Final = 128


class Approximate:
    """A FAISS index over the rows of a matrix."""

    def __init__(self, index: Any, name: str) -> None:
        self._index, self.name = index, name

    @classmethod
    def of(cls, vectors: DenseVectors) -> Approximate:
        """Index all rows; raises `MissingExtraError` without the library."""
        faiss = _faiss()
        count, dimension = vectors.matrix.shape
        rows = np.ascontiguousarray(vectors.matrix)
        if count <= GRAPH:
            index, name = faiss.IndexHNSWFlat(dimension, _LINKS), f"faiss HNSW{_LINKS}"
        else:
            lists = int(4 * count**0.5)
            index, name = faiss.index_factory(dimension, f"IVF{lists},Flat"), f"faiss IVF{lists}"
            sample = np.random.default_rng(0).choice(count, min(count, 64 * lists), replace=False)
            index.train(rows[np.sort(sample)])
        index.add(rows)
        return cls(index, name)

    @classmethod
    def read(cls, path: Path, name: str, count: int, dimension: int, crc: int | None = None) -> Approximate:
        """Read an index; raises `StoreDamagedError` for a wrong number or length of vectors, or a wrong checksum."""
        faiss = _faiss()
        try:
            if crc is not None and crc_of(path) != crc:
                raise StoreDamagedError(f"the bytes of {path} are not the ones that were written", hint="make the index again")
            index = faiss.read_index(os.fspath(path))
        except RuntimeError as error:
            raise StoreDamagedError(f"{path} is not an index of FAISS", hint="make the index again") from error
        if (index.ntotal, index.d) != (count, dimension):
            raise StoreDamagedError(
                f"{path} has {index.ntotal} vectors of {index.d} numbers and should have {count} of {dimension}",
                hint="make the index again",
            )
        return cls(index, name)

    def write(self, path: Path) -> None:
        _faiss().write_index(self._index, os.fspath(path))

    def nearest(self, query: Query, k: int, exact: Vectors) -> tuple[Positions, Distances]:
        """Return about the k nearest, with exact distances, sorted by distance, then position."""
        count = min(max(_WIDER * k, _MIN_ROWS), len(exact))
        faiss = _faiss()
        if hasattr(self._index, "hnsw"):
            options = faiss.SearchParametersHNSW(efSearch=max(_EFFORT, count))
        else:
            options = faiss.SearchParametersIVF(nprobe=min(self._index.nlist, 64))
        _, neighbours = self._index.search(np.ascontiguousarray(query[None]), count, params=options)
        positions = np.unique(neighbours[0][neighbours[0] >= 0]).astype(np.int64)
        return ranked(positions, exact.distances(query, positions), k)


def crc_of(path: Path) -> int:
    """Return the CRC-32 of a file."""
    crc = 0
    with path.open("rb") as file:
        while chunk := file.read(1 << 24):
            crc = zlib.crc32(chunk, crc)
    return crc


def _faiss() -> Any:
    with requiring("faiss", "faiss"):
        import faiss
    return faiss
