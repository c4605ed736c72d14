"""Servers that speak OpenAI's embeddings API as encoders: OpenAI's own, vLLM, Ollama, llama.cpp and
the like.

Where the server is comes from the argument, else from `OPENAI_BASE_URL`; the key from
`OPENAI_API_KEY`. Texts go in batches; a busy or failing server (429, 5xx, no connection) is asked
again, after waits that double.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from threading import Lock
from typing import Any, Final

import numpy as np

from condgraph.engine.errors import EncoderError, OptionError
from condgraph.models.openai_chat import openai_server
from condgraph.vectors.encoder import MOST_CHARACTERS, OPENAI, FloatMatrix, normalised

#: Texts sent at a time; the API takes up to 2,048, and many servers fewer.
BATCH: Final = 256
RETRIES: Final = 5
#: Seconds that one request may take.
TIMEOUT: Final = 60.0
#: What a server is sent for an empty text, which the API refuses.
_NOTHING: Final = " "


class EndpointEncoder:
    """A model behind an OpenAI-compatible endpoint. Nothing is sent before a text is encoded, or
    the dimension asked for.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        batch: int = BATCH,
        retries: int = RETRIES,
        timeout: float = TIMEOUT,
    ) -> None:
        if not model:
            raise OptionError("the name of a model is missing", hint="such as `openai:text-embedding-3-small`")
        if batch < 1:
            raise OptionError(f"a batch holds at least one text, not {batch}")
        server = openai_server(base_url, api_key)
        self.model, self.spec, self._batch = model, f"{OPENAI}{model}", batch
        self._openai = server.library
        self._client = server.client(max_retries=retries, timeout=timeout)
        self.place = server.place or str(self._client.base_url)
        self._length: int | None = None
        self._lock = Lock()

    @property
    def id(self) -> str:
        """The model's name at the server."""
        return self.spec

    @cached_property
    def dimension(self) -> int:
        """Length of a vector, as the server's first answer has it."""
        if self._length is None:
            self._request(["dimension"])
        assert self._length is not None
        return self._length

    def encode(self, texts: Sequence[str]) -> FloatMatrix:
        """Unit vectors, shape (len(texts), dimension), float32. Raises `EncoderError` where the
        server does not give them.
        """
        if not texts:
            return np.empty((0, self.dimension), np.float32)
        cut = [text[:MOST_CHARACTERS].strip() or _NOTHING for text in texts]
        parts = [self._request(cut[start : start + self._batch]) for start in range(0, len(cut), self._batch)]
        return normalised(np.concatenate(parts))

    def _request(self, texts: list[str]) -> FloatMatrix:
        try:
            # Floats are what every server gives; the library would ask for base64.
            answer: Any = self._client.embeddings.create(model=self.model, input=texts, encoding_format="float")
            data = sorted(answer.data, key=lambda one: one.index)
            rows = [one.embedding for one in data]
            places = [one.index for one in data]
        except self._openai.OpenAIError as error:
            raise EncoderError(f"{self.place} did not encode {len(texts)} texts: {error}", hint=_hint(error)) from error
        except (AttributeError, TypeError, ValueError) as error:
            raise EncoderError(f"{self.place} did not answer as OpenAI's embeddings API does: {error}") from error
        if places != list(range(len(texts))):
            raise EncoderError(f"{self.place} gave {len(places)} vectors for {len(texts)} texts, or in another numbering")
        lengths = {len(row) for row in rows}
        with self._lock:
            wanted = self._length
            if wanted is None and len(lengths) == 1:
                wanted = self._length = lengths.copy().pop()
        if lengths != {wanted} or not wanted:
            raise EncoderError(
                f"the model {self.model!r} at {self.place} gave vectors of {sorted(lengths)} numbers, before that of {wanted}"
            )
        return np.array(rows, np.float32)


def _hint(error: Exception) -> str | None:
    status = getattr(error, "status_code", None)
    if status in (401, 403):
        return "OPENAI_API_KEY says the key"
    if status == 404:
        return "is the model's name right, and does OPENAI_BASE_URL end as the server wants it (often /v1)?"
    return None if status else "is the server running, and OPENAI_BASE_URL right?"
