"""Models of sentence-transformers as encoders: a local folder, or a name on the hub (from the cache
under `HF_HUB_OFFLINE=1`).

The id of such an encoder holds a checksum of the model's weights, so that another model under the
same name, or in the same folder, is another encoder.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property
from hashlib import blake2b
from threading import Lock
from typing import Any

import numpy as np

from condgraph.engine.errors import EncoderError, MissingExtraError
from condgraph.vectors.encoder import FloatMatrix, folder_of, normalised


class SentenceEncoder:
    """A model of sentence-transformers. It is read at once; vectors are scaled to length one."""

    def __init__(self, model: str, *, device: str | None = None, batch: int = 64) -> None:
        folder = folder_of(model)
        self.spec = model if folder is None else str(folder)
        self._name = model if folder is None else folder.name
        self._batch = batch
        self._lock = Lock()
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError:
            raise MissingExtraError("sentence-transformers", "embeddings") from None
        try:
            # Never code that comes with a model.
            self._model: Any = SentenceTransformer(self.spec, device=device, trust_remote_code=False, local_files_only=_offline())
        except Exception as error:
            where = "the hub is not asked (HF_HUB_OFFLINE); " if _offline() else ""
            raise EncoderError(
                f"no model of sentence-transformers can be read from {model!r}: {_first_line(error)}",
                hint=f"{where}give a folder that holds one, or its name on the hub",
            ) from error
        self._model.eval()
        self.dimension = int(self._encode(["dimension"]).shape[1])

    @cached_property
    def id(self) -> str:
        """The model's name and a checksum of its weights."""
        digest = blake2b(digest_size=6)
        for name, tensor in sorted(self._model.state_dict().items()):
            digest.update(name.encode())
            digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
        return f"sentence-transformers:{self._name}@{digest.hexdigest()}"

    def encode(self, texts: Sequence[str]) -> FloatMatrix:
        """Unit vectors, shape (len(texts), dimension), float32."""
        if not texts:
            return np.empty((0, self.dimension), np.float32)
        return normalised(self._encode(list(texts)))

    def _encode(self, texts: list[str]) -> FloatMatrix:
        # Tokenisers are not made for several threads at once.
        with self._lock:
            found = self._model.encode(texts, batch_size=self._batch, show_progress_bar=False, convert_to_numpy=True)
        return np.asarray(found, np.float32)


def _offline() -> bool:
    return os.environ.get("HF_HUB_OFFLINE", "").strip().upper() in ("1", "ON", "YES", "TRUE")


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
