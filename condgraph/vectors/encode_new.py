"""Encoding the texts of a graph, none twice: vectors are known by hashes of texts, and what is done
is put on disk on the way.

part-*.npz       what an unfinished run has encoded so far; the next run takes it
"""

from __future__ import annotations

import os
import time
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from condgraph.vectors.encoder import Encoder, FloatMatrix
from condgraph.vectors.encoders import encode
from condgraph.vectors.graph_vectors import About, OnProgress

#: Texts encoded between two reports.
CHUNK: Final = 2048
#: Seconds after which what is encoded so far is put on disk.
SAFE_EVERY: Final = 20.0
Keys = NDArray[np.uint64]


def keys_of(texts: Sequence[str]) -> Keys:
    """128-bit hashes of texts, shape (n, 2)."""
    joined = b"".join(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest() for text in texts)
    return np.frombuffer(joined, "<u8").astype(np.uint64, copy=False).reshape(-1, 2)


def parts_in(place: Path, about: About) -> Iterator[tuple[Path, tuple[Keys, FloatMatrix]]]:
    """What unfinished runs of the same encoder left in a folder, by file; what cannot be read is
    encoded again.
    """
    for part in place.glob("part-*.npz"):
        found = read_part(part, about)
        if found is not None:
            yield part, found


def read_part(path: Path, about: About) -> tuple[Keys, FloatMatrix] | None:
    """The keys and vectors of a file, if it is whole and of this encoder."""
    with (
        suppress(OSError, ValueError, KeyError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error),
        np.load(path, allow_pickle=False) as arrays,
    ):
        if bytes(arrays["id"]).decode() == about.id and arrays["matrix"].shape[1:] == (about.dimension,):
            return arrays["keys"], arrays["matrix"]
    return None


def encode_new(
    encoder: Encoder,
    texts: Sequence[str],
    keys: Keys,
    known: Iterable[tuple[Keys, FloatMatrix]],
    place: Path | None,
    on_progress: OnProgress | None,
) -> tuple[FloatMatrix, int]:
    """The matrix of all texts, and how many of them were not among the known ones."""
    matrix = np.empty((len(texts), encoder.dimension), np.float32)
    missing = np.ones(len(texts), bool)
    for have, vectors in known:
        at = find(have, keys)
        hit = missing & (at >= 0)
        matrix[hit] = vectors[at[hit]]
        missing &= ~hit
    order = np.flatnonzero(missing)
    done, saved, since = 0, 0, time.monotonic()
    for start in range(0, len(order), CHUNK):
        part = order[start : start + CHUNK]
        matrix[part] = encode(encoder, [texts[at] for at in part.tolist()])
        done = start + len(part)
        if on_progress is not None:
            on_progress(len(texts) - len(order) + done, len(texts))
        if place is not None and done < len(order) and time.monotonic() - since > SAFE_EVERY:
            chosen = order[saved:done]
            write_part(place, f"part-{os.getpid()}-{time.time_ns()}.npz", encoder.id, keys[chosen], matrix[chosen])
            saved, since = done, time.monotonic()
    if on_progress is not None and not len(order):
        on_progress(len(texts), len(texts))
    return matrix, len(order)


def find(have: Keys, wanted: Keys) -> NDArray[np.int64]:
    """Where each wanted key stands among those there are, or -1."""
    if not len(have):
        return np.full(len(wanted), -1, np.int64)
    order = np.argsort(have[:, 0], kind="stable")
    at = order[np.minimum(have[order, 0].searchsorted(wanted[:, 0]), len(have) - 1)]
    found: NDArray[np.int64] = np.where((have[at] == wanted).all(axis=1), at, -1)
    return found


def write_part(place: Path, name: str, encoder: str, keys: Keys, matrix: FloatMatrix) -> bool:
    """Write vectors as a file of a folder, whole or not at all; False where the folder takes
    nothing.
    """
    fresh = place / f".{os.getpid()}-{name}"
    try:
        place.mkdir(parents=True, exist_ok=True)
        with fresh.open("wb") as file:
            np.savez(file, id=np.frombuffer(encoder.encode(), np.uint8), keys=keys, matrix=matrix)
        os.replace(fresh, place / name)
    except OSError:
        with suppress(OSError):
            fresh.unlink(missing_ok=True)
        return False
    return True
