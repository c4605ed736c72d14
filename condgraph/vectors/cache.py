"""Vectors of graphs on servers that keep none: a folder of this machine's, by store and graph.

    CACHE/vectors/HASH/index.json        whose vectors patterns go by, after `index`
    CACHE/vectors/HASH/HASH.npz          the vectors by one encoder, known by hashes of their texts; part-* of a run that was ended

CACHE is `CONDGRAPH_CACHE`, else `condgraph` in `XDG_CACHE_HOME` or `~/.cache`. Since texts are
known by their hashes, a load leaves the vectors of what was there before as good as they were, and
only what is new is encoded. A file that cannot be read is made again; a folder that takes nothing
costs time, and nothing else.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

import numpy as np

from condgraph.vectors.encode_new import encode_new, keys_of, parts_in, read_part, write_part
from condgraph.vectors.encoder import Encoder, FloatMatrix
from condgraph.vectors.encoders import spec_of
from condgraph.vectors.graph_vectors import About, OnProgress


def cache_folder() -> Path:
    """Where this machine keeps what can be made again."""
    given = os.environ.get("CONDGRAPH_CACHE")
    if given:
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "condgraph"


class VectorCache:
    """The vectors of one graph of one store."""

    def __init__(self, store: str, graph: str) -> None:
        self.folder = cache_folder() / "vectors" / _hash(f"{store}\n{graph}")

    @property
    def index(self) -> About | None:
        """Whose vectors patterns go by; None where no index was made here."""
        with suppress(OSError, ValueError, KeyError, TypeError):
            found = json.loads((self.folder / "index.json").read_text("utf-8"))
            return About(str(found["id"]), int(found["dimension"]), str(found["spec"]))
        return None

    def choose(self, encoder: Encoder) -> None:
        """Have patterns go by an encoder from now on; raises `OSError` where the folder takes
        nothing.
        """
        about = {"id": encoder.id, "dimension": encoder.dimension, "spec": spec_of(encoder)}
        self.folder.mkdir(parents=True, exist_ok=True)
        fresh = self.folder / f".index.json.{os.getpid()}"
        fresh.write_text(json.dumps(about), "utf-8")
        os.replace(fresh, self.folder / "index.json")

    def vectors(self, encoder: Encoder, texts: Sequence[str], on_progress: OnProgress | None = None) -> tuple[FloatMatrix, int]:
        """The vectors of different texts, shape (n, dimension), and how many had to be encoded;
        these are kept.
        """
        about, keys = About(encoder.id, encoder.dimension), keys_of(texts)
        name = f"{_hash(str(about))}.npz"
        whole = read_part(self.folder / name, about)
        parts = list(parts_in(self.folder, about))
        known = [*([whole] if whole else []), *(part for _, part in parts)]
        matrix, fresh = encode_new(encoder, texts, keys, known, self.folder, on_progress)
        stale = fresh or parts or whole is None or len(whole[0]) != len(keys)
        if stale and write_part(self.folder, name, encoder.id, keys, matrix):
            for path, _ in parts_in(self.folder, about):
                with suppress(OSError):
                    path.unlink()
        return np.asarray(matrix, np.float32), fresh


def _hash(text: str) -> str:
    return blake2b(text.encode(), digest_size=12).hexdigest()
