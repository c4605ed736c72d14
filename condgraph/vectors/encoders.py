"""Encoders, which turn texts into vectors. The default, `LexicalEncoder`, needs no model; the others call one.

`LexicalEncoder` folds a text (case, accents, white space), collects its distinct n-grams of 2 to 4
characters, with a mark at the beginning and the end of every word, hashes each n-gram to a position and
a sign, and scales the sum to length one. The dot product of two vectors is about the cosine of their
n-gram sets: 1 for the same text, near 0 for texts that share nothing. Vectors do not depend on the
process, the machine or the order of texts, so they can be stored, together with the id and dimension of
the encoder.

    lexical            hashed character n-grams; `lexical:256` for another dimension
    hybrid:ENCODER     names by spelling, relations by another encoder: `hybrid:PATH`, `hybrid:openai:MODEL`
    openai:MODEL       any server with OpenAI's embeddings API (`OPENAI_BASE_URL`, `OPENAI_API_KEY`)
    PATH               a folder with a model of sentence-transformers
    NAME               the name of such a model on the hub, such as `sentence-transformers/all-MiniLM-L6-v2`
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from threading import Lock
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.bounds import Workers, check, current, watched
from condgraph.engine.errors import EncoderError, OptionError, nearest, requiring
from condgraph.engine.values import fold, humps

# -- Character n-grams -------------------------------------------------------------------------------


FloatMatrix = NDArray[np.float32]

_SIZES: Final = (2, 3, 4)
_MARK: Final = " "
#: The number of characters hashed at a time, which bounds the memory of the n-gram table (a text of 20
#: characters has about 60 n-grams).
_CHUNK_CHARACTERS: Final = 1 << 20
_HASH_BITS: Final = np.uint64(44)
_HASH_MASK: Final = np.uint64((1 << 44) - 1)
_MIX: Final = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
#: The number of leading characters that are encoded; they distinguish longer texts (descriptions) well
#: enough.
MAX_CHARACTERS: Final = 2000


#: The prefix of encoders on a server with OpenAI's embeddings API.
OPENAI: Final = "openai:"


class Encoder(Protocol):
    """Turns texts into unit vectors. `id` and `dimension` are stored with the vectors; vectors of different encoders
    are never mixed.
    """

    @property
    def id(self) -> str:
        """Identifies the model and its version."""
        ...

    @property
    def dimension(self) -> int:
        """The length of a vector."""
        ...

    def encode(self, texts: Sequence[str]) -> FloatMatrix:
        """Return unit vectors, one row per text: shape (len(texts), dimension), float32. A text without content is all
        zeros.
        """
        ...


@dataclass(frozen=True, slots=True)
class Sparse:
    """Sparse rows: row i has the values `data[indptr[i]:indptr[i + 1]]` (float32) in the columns
    `indices[indptr[i]:indptr[i + 1]]` (int32, ascending).
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    data: NDArray[np.float32]
    dimension: int

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def dense(self) -> FloatMatrix:
        """Return the rows as a full matrix, float32."""
        matrix = np.zeros((len(self), self.dimension), np.float32)
        rows = np.repeat(np.arange(len(self)), np.diff(self.indptr))
        matrix[rows, self.indices] = self.data
        return matrix


@dataclass(frozen=True, slots=True)
class LexicalEncoder:
    """Hashed character n-grams. `dimension` is a power of two from 64 to 65,536; raises `OptionError` for others."""

    dimension: int = 1024

    def __post_init__(self) -> None:
        if not 64 <= self.dimension <= 65_536 or self.dimension & (self.dimension - 1):
            raise OptionError(f"the dimension of the lexical encoder is a power of two from 64 to 65536, not {self.dimension}")

    @property
    def id(self) -> str:
        """The version of the encoder, which changes whenever its vectors do."""
        return "lexical-1"

    def encode(self, texts: Sequence[str]) -> FloatMatrix:
        """Return unit vectors, shape (len(texts), dimension), float32; all zeros for a text of white space."""
        return self.sparse(texts).dense()

    def sparse(self, texts: Sequence[str]) -> Sparse:
        """Return the vectors of `encode` as sparse rows."""
        folded = [fold(text[:MAX_CHARACTERS]) for text in watched(texts)]
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
            row, position, total = _summed(row, gram, self.dimension)
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
    """Return the distinct n-grams of at most 2**20 folded texts: row numbers and 44-bit hashes, sorted by both."""
    # A folded text contains no line break, so line breaks separate the texts.
    joined = "".join(f"\n{_MARK}{text}{_MARK}" if text else "\n" for text in folded) + "\n"
    codes = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), np.uint32)
    breaks = codes == ord("\n")
    owner = np.cumsum(breaks, dtype=np.int64) - 1
    # The number of characters up to the next break, so that no n-gram crosses texts.
    ends = np.flatnonzero(breaks)
    room = ends[np.minimum(owner + 1, len(ends) - 1)] - np.arange(len(codes))
    gram_rows: list[NDArray[np.int64]] = []
    grams: list[NDArray[np.uint64]] = []
    for size in _SIZES:
        begins = np.flatnonzero((room >= size) & ~breaks)
        hashes = np.full(len(begins), size, np.uint64)
        for offset in range(size):
            hashes = _mix(hashes ^ codes[begins + offset].astype(np.uint64) * _MIX[0])
        gram_rows.append(owner[begins])
        grams.append(hashes)
    # Each pair is one 64-bit integer, so that sorting finds duplicates: 20 bits of row, 44 of hash.
    pairs = np.concatenate(gram_rows).astype(np.uint64) << _HASH_BITS | np.concatenate(grams) >> np.uint64(64 - 44)
    pairs.sort()
    pairs = pairs[np.concatenate(([True], pairs[1:] != pairs[:-1]))] if len(pairs) else pairs
    return (pairs >> _HASH_BITS).astype(np.int64), pairs & _HASH_MASK


def _summed(
    row: NDArray[np.int64], gram: NDArray[np.uint64], dimension: int
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]:
    """Sum the signs of n-grams by row and position; return rows, positions (ascending in a row) and sums. The low bits
    of an n-gram are its position, its highest bit is its sign.

    With signs, collisions cancel out instead of adding up. Positions with sum zero are left out.
    """
    if not len(row):
        return row, np.zeros(0, np.int32), np.zeros(0, np.float32)
    position = (gram & np.uint64(dimension - 1)).astype(np.int64)
    cell = np.sort((row * dimension + position) * 2 + (gram >> np.uint64(43)).astype(np.int64))
    sign = (cell % 2 * 2 - 1).astype(np.float32)
    cell //= 2
    begins = np.flatnonzero(np.concatenate(([True], cell[1:] != cell[:-1])))
    total = np.add.reduceat(sign, begins)
    nonzero = total != 0
    cell = cell[begins][nonzero]
    return cell // dimension, (cell % dimension).astype(np.int32), total[nonzero]


def _mix(code: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mix the bits of hashes (the 64-bit finaliser of splitmix64): every input bit affects every output bit."""
    code = (code ^ (code >> np.uint64(30))) * _MIX[1]
    code = (code ^ (code >> np.uint64(27))) * _MIX[2]
    return code ^ (code >> np.uint64(31))


def normalised(matrix: FloatMatrix) -> FloatMatrix:
    """Scale rows to length one; rows of zeros are unchanged."""
    lengths = np.sqrt(np.einsum("ij,ij->i", matrix, matrix, dtype=np.float64))[:, None]
    return (matrix / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)


def folder_of(text: str) -> Path | None:
    """Return the folder at a path, or None."""
    path = Path(text).expanduser()
    return path.resolve() if path.is_dir() else None


# -- Spelling of relations ---------------------------------------------------------------------------
# `starred_actors`, `starredActors` and "Starred actors" are encoded alike.


_JOINTS: Final = re.compile(r"[_\-/.:#\s]+")


def spelled(text: str) -> str:
    """Return the name of a relation as lower-case words; a text of separators only is unchanged.

    >>> spelled("placeOfBirth"), spelled("starred_actors"), spelled("film.directedBy"), spelled("IMDBRating")
    ('place of birth', 'starred actors', 'film directed by', 'imdb rating')
    """
    return _JOINTS.sub(" ", humps(text)).strip().lower() or text


# -- Encoders by name --------------------------------------------------------------------------------


LEXICAL: Final = "lexical"
HYBRID: Final = "hybrid:"
#: The dimension of stored lexical vectors: the most that vector indexes of other stores accept, and few
#: n-grams collide.
DIMENSION: Final = 4096
#: The largest deviation of a vector's length from one.
_SLACK: Final = 1e-3
_WORKERS: Final = Workers("condgraph-encoder")


class HybridEncoder(LexicalEncoder):
    """Encodes names by spelling, like the lexical encoder, and the relations of patterns by meaning, with `relations`."""

    __slots__ = ("relations",)

    relations: Encoder

    def __init__(self, relations: Encoder, dimension: int = DIMENSION) -> None:
        super().__init__(dimension)
        object.__setattr__(self, "relations", relations)

    @property
    def id(self) -> str:
        """The ids of both encoders."""
        return f"{HYBRID}lexical-1+{self.relations.id}"


def relations_of(encoder: Encoder) -> Encoder:
    """Return the encoder of relations that belongs to an encoder of names."""
    return encoder.relations if isinstance(encoder, HybridEncoder) else encoder


def encoder_of(spec: str | os.PathLike[str] | Encoder) -> Encoder:
    """Return the encoder with a name, or an encoder unchanged. Raises `OptionError` for a text that names none."""
    if not isinstance(spec, (str, os.PathLike)):
        if not all(hasattr(spec, part) for part in ("id", "dimension", "encode")):
            raise OptionError(f"{spec!r} is not an encoder: it lacks id, dimension or encode")
        return spec
    text = os.fspath(spec)
    name, _, dimension = text.partition(":")
    if name == LEXICAL:
        if dimension and not dimension.isdecimal():
            raise OptionError(f"{text!r} is not an encoder", hint="`lexical:4096` has the dimension after the colon")
        return LexicalEncoder(int(dimension) if dimension else DIMENSION)
    if text.startswith(HYBRID):
        return HybridEncoder(encoder_of(text.removeprefix(HYBRID)))
    if text.startswith(OPENAI):
        return EndpointEncoder(text.removeprefix(OPENAI))
    if not text:
        raise OptionError("the name of an encoder is empty", hint="`lexical`, a folder, a name on the hub, or `openai:MODEL`")
    if folder_of(text) is None:
        _misspelled(text)

    return SentenceEncoder(text)


def _misspelled(text: str) -> None:
    """Raise `OptionError` for a text that cannot be a name on the hub, before a library or a server is called."""
    prefix = text.partition(":")[0].lower()
    candidates = nearest(prefix, [LEXICAL, "hybrid", "openai"])
    is_path = text.startswith((".", "~", os.sep)) or text.count("/") > 1
    if ":" in text or any(map(str.isspace, text)) or is_path or candidates:
        problem = "is not a folder" if is_path else "is not an encoder"
        raise OptionError(
            f"{text!r} {problem}",
            candidates=candidates,
            hint="an encoder is `lexical`, `hybrid:ENCODER`, `openai:MODEL`, a folder, or a model's name on the hub",
        )


def spec_of(encoder: Encoder) -> str:
    """Return the text from which `encoder_of` makes this encoder; empty for a caller's own encoder."""
    if isinstance(encoder, HybridEncoder):
        spec = spec_of(encoder.relations)
        return f"{HYBRID}{spec}" if spec else ""
    if isinstance(encoder, LexicalEncoder):
        return f"{LEXICAL}:{encoder.dimension}"
    return str(getattr(encoder, "spec", ""))


def label(encoder: str, dimension: int) -> str:
    """Return the text for an encoder in messages."""
    return f"{encoder!r} ({dimension} dimensions)"


def encode(encoder: Encoder, texts: list[str]) -> FloatMatrix:
    """Encode texts and check the result: shape, type, finite numbers, rows of length one (or zero). Raises
    `EncoderError`.
    """
    if isinstance(encoder, LexicalEncoder):
        vectors = np.asarray(encoder.encode(texts))
    else:
        # A model may be slow or on a server: with a deadline or a cancellation, run it in a thread.
        vectors = np.asarray(_WORKERS.run(lambda: encoder.encode(texts)) if current() is not None else encoder.encode(texts))
    if vectors.shape != (len(texts), encoder.dimension):
        raise EncoderError(
            f"the encoder {label(encoder.id, encoder.dimension)} gave vectors of shape {vectors.shape} for {len(texts)} texts"
        )
    matrix = np.ascontiguousarray(vectors, np.float32)
    lengths = np.sqrt(np.einsum("ij,ij->i", matrix, matrix, dtype=np.float64))
    if not np.isfinite(lengths).all():
        raise EncoderError(f"the encoder {encoder.id!r} gave numbers that are not finite")
    wrong = (np.abs(lengths - 1) > _SLACK) & (lengths > 0)
    if wrong.any():
        text = texts[int(np.flatnonzero(wrong)[0])]
        raise EncoderError(f"the encoder {encoder.id!r} gave a vector of length {lengths[wrong][0]:.4g}, not 1, for {text!r}")
    return matrix


# -- Servers with OpenAI's embeddings API ------------------------------------------------------------
# OpenAI's own, vLLM, Ollama, llama.cpp and the like. The address is the argument, else
# `OPENAI_BASE_URL`; the key is `OPENAI_API_KEY`. Texts are sent in batches. Requests to a busy or
# failing server (429, 5xx, no connection) are retried with doubling waits.


#: The number of texts in a request; the API accepts up to 2,048, many servers fewer.
BATCH: Final = 256
RETRIES: Final = 5
#: The timeout of one request, in seconds.
TIMEOUT: Final = 60.0
#: Replaces an empty text, which the API rejects.
_BLANK: Final = " "


class EndpointEncoder:
    """A model on a server with an OpenAI-compatible API. The first request is sent when a text is encoded or
    `dimension` is read.
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
        from condgraph.models.openai_chat import openai_server

        server = openai_server(base_url, api_key)
        self.model, self.spec, self._batch = model, f"{OPENAI}{model}", batch
        self._openai = server.library
        self._client = server.client(max_retries=retries, timeout=timeout)
        self.place = server.place or str(self._client.base_url)
        self._length: int | None = None
        self._lock = Lock()

    @property
    def id(self) -> str:
        """The prefix `openai:` and the name of the model on the server."""
        return self.spec

    @cached_property
    def dimension(self) -> int:
        """The length of a vector, taken from the first response."""
        if self._length is None:
            self._request(["dimension"])
        assert self._length is not None
        return self._length

    def encode(self, texts: Sequence[str]) -> FloatMatrix:
        """Return unit vectors, shape (len(texts), dimension), float32. Raises `EncoderError` if the request fails or
        its response is invalid.
        """
        if not texts:
            return np.empty((0, self.dimension), np.float32)
        inputs = [text[:MAX_CHARACTERS].strip() or _BLANK for text in texts]
        matrices = [self._request(inputs[start : start + self._batch]) for start in range(0, len(inputs), self._batch)]
        return normalised(np.concatenate(matrices))

    def _request(self, texts: list[str]) -> FloatMatrix:
        try:
            # Every server supports floats; the library's default is base64.
            response: Any = self._client.embeddings.create(model=self.model, input=texts, encoding_format="float")
            data = sorted(response.data, key=lambda item: item.index)
            rows = [item.embedding for item in data]
            indexes = [item.index for item in data]
        except self._openai.OpenAIError as error:
            raise EncoderError(f"{self.place} did not encode {len(texts)} texts: {error}", hint=_hint(error)) from error
        except (AttributeError, TypeError, ValueError) as error:
            raise EncoderError(f"{self.place} did not answer as OpenAI's embeddings API does: {error}") from error
        if indexes != list(range(len(texts))):
            raise EncoderError(f"{self.place} gave {len(indexes)} vectors for {len(texts)} texts, or in another numbering")
        lengths = {len(row) for row in rows}
        with self._lock:
            length = self._length
            if length is None and len(lengths) == 1:
                length = self._length = lengths.copy().pop()
        if lengths != {length} or not length:
            raise EncoderError(
                f"the model {self.model!r} at {self.place} gave vectors of {sorted(lengths)} numbers, before that of {length}"
            )
        return np.array(rows, np.float32)


def _hint(error: Exception) -> str | None:
    status = getattr(error, "status_code", None)
    if status in (401, 403):
        return "OPENAI_API_KEY says the key"
    if status == 404:
        return "is the model's name right, and does OPENAI_BASE_URL end as the server wants it (often /v1)?"
    return None if status else "is the server running, and OPENAI_BASE_URL right?"


# -- Models of sentence-transformers -----------------------------------------------------------------
# From a local folder, or by a name on the hub (from the cache if `HF_HUB_OFFLINE=1`). The id of the
# encoder contains a checksum of the model's weights, so that a different model with the same name, or in
# the same folder, is a different encoder.


class SentenceEncoder:
    """A model of sentence-transformers, which is loaded at once. Vectors are scaled to length one."""

    def __init__(self, model: str, *, device: str | None = None, batch: int = 64) -> None:
        folder = folder_of(model)
        self.spec = model if folder is None else str(folder)
        self._name = model if folder is None else folder.name
        self._batch = batch
        self._lock = Lock()
        with requiring("sentence-transformers", "embeddings"):
            from sentence_transformers import SentenceTransformer
        try:
            # Never run code that comes with a model.
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
        """The name of the model and a checksum of its weights."""
        digest = blake2b(digest_size=6)
        for name, tensor in sorted(self._model.state_dict().items()):
            digest.update(name.encode())
            digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
        return f"sentence-transformers:{self._name}@{digest.hexdigest()}"

    def encode(self, texts: Sequence[str]) -> FloatMatrix:
        """Return unit vectors, shape (len(texts), dimension), float32."""
        if not texts:
            return np.empty((0, self.dimension), np.float32)
        return normalised(self._encode(list(texts)))

    def _encode(self, texts: list[str]) -> FloatMatrix:
        # Tokenisers are not thread-safe.
        with self._lock:
            matrix = self._model.encode(texts, batch_size=self._batch, show_progress_bar=False, convert_to_numpy=True)
        return np.asarray(matrix, np.float32)


def _offline() -> bool:
    return os.environ.get("HF_HUB_OFFLINE", "").strip().upper() in ("1", "ON", "YES", "TRUE")


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
