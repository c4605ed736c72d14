"""FAISS beside the exact search, for graphs whose names are too many to look at all of them: the
optional library `faiss`.

The index finds candidates, more than were asked for; their distances are worked out exactly, and
ranked by them. It can still miss a name, so an answer that used it says so.
"""

from __future__ import annotations

import os
import zlib
from pathlib import Path
from typing import Any, Final

import numpy as np

from condgraph.engine.errors import MissingExtraError, StoreDamagedError
from condgraph.vectors.nearest import DenseVectors, Distances, Positions, Query, Vectors, ranked

#: Up to so many vectors the index is a graph of near neighbours; of more it is lists by cluster,
#: which takes less memory.
GRAPH: Final = 1_000_000
_LINKS: Final = 32
#: Times as many candidates as are asked for, and at least so many.
_WIDER: Final = 2
_LEAST: Final = 64
_EFFORT: Final = 128


class Approximate:
    """An index of FAISS over the rows of a matrix."""

    def __init__(self, index: Any, name: str) -> None:
        self._index, self.name = index, name

    @classmethod
    def of(cls, vectors: DenseVectors) -> Approximate:
        """Make an index of all rows; raises `MissingExtraError` without the library."""
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
        """Read an index that was written; raises `StoreDamagedError` where it is not one of so many
        vectors, or its checksum is another one.
        """
        faiss = _faiss()
        try:
            if crc is not None and crc_of(path) != crc:
                raise StoreDamagedError(f"the bytes of {path} are not the ones that were written", hint="make the index again")
            index = faiss.read_index(os.fspath(path))
        except RuntimeError as error:
            raise StoreDamagedError(f"{path} is no index of FAISS", hint="make the index again") from error
        if (index.ntotal, index.d) != (count, dimension):
            raise StoreDamagedError(
                f"{path} has {index.ntotal} vectors of {index.d} numbers and should have {count} of {dimension}",
                hint="make the index again",
            )
        return cls(index, name)

    def write(self, path: Path) -> None:
        """Write the index."""
        _faiss().write_index(self._index, os.fspath(path))

    def nearest(self, query: Query, k: int, exact: Vectors) -> tuple[Positions, Distances]:
        """About the k nearest, with exact distances, ranked by them, then position."""
        wanted = min(max(_WIDER * k, _LEAST), len(exact))
        faiss = _faiss()
        if hasattr(self._index, "hnsw"):
            options = faiss.SearchParametersHNSW(efSearch=max(_EFFORT, wanted))
        else:
            options = faiss.SearchParametersIVF(nprobe=min(self._index.nlist, 64))
        _, found = self._index.search(np.ascontiguousarray(query[None]), wanted, params=options)
        positions = np.unique(found[0][found[0] >= 0]).astype(np.int64)
        return ranked(positions, exact.distances(query, positions), k)


def crc_of(path: Path) -> int:
    """The CRC-32 of a file."""
    crc = 0
    with path.open("rb") as file:
        while part := file.read(1 << 24):
            crc = zlib.crc32(part, crc)
    return crc


def _faiss() -> Any:
    try:
        import faiss
    except ImportError:
        raise MissingExtraError("faiss", "faiss") from None
    return faiss
