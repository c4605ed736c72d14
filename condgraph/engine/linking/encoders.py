"""Which encoder a text names: `lexical`, `openai:MODEL`, a folder with a model of sentence-transformers, or its name on the hub.

lexical            hashed character n-grams, no model needed; `lexical:256` with another dimension
openai:MODEL       any server that speaks OpenAI's embeddings API (`OPENAI_BASE_URL`, `OPENAI_API_KEY`)
PATH               a folder with a model of sentence-transformers
NAME               the name of such a model on the hub, `sentence-transformers/all-MiniLM-L6-v2`, say
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import numpy as np

from condgraph.engine.errors import EncoderError, OptionError
from condgraph.engine.linking.encoder import Encoder, FloatMatrix, LexicalEncoder

LEXICAL: Final = "lexical"
#: Of the lexical encoder where vectors are kept: the most that vector indexes of other stores take, and few n-grams collide.
DIMENSION: Final = 4096
OPENAI: Final = "openai:"
#: By how much the length of a vector may differ from one.
_SLACK: Final = 1e-3


def encoder_of(spec: str | os.PathLike[str] | Encoder) -> Encoder:
    """The encoder that a text names; an encoder is itself. Raises `OptionError` for what is none."""
    if not isinstance(spec, (str, os.PathLike)):
        if not all(hasattr(spec, part) for part in ("id", "dimension", "encode")):
            raise OptionError(f"{spec!r} is no encoder: it lacks id, dimension or encode")
        return spec
    text = os.fspath(spec)
    name, _, dimension = text.partition(":")
    if name == LEXICAL:
        if dimension and not dimension.isdecimal():
            raise OptionError(f"{text!r} is no encoder", hint="`lexical:4096` names the dimension behind the colon")
        return LexicalEncoder(int(dimension) if dimension else DIMENSION)
    if text.startswith(OPENAI):
        from condgraph.engine.linking.endpoint import EndpointEncoder

        return EndpointEncoder(text.removeprefix(OPENAI))
    if not text:
        raise OptionError("the name of an encoder is empty", hint="`lexical`, a folder, a name on the hub, or `openai:MODEL`")
    from condgraph.engine.linking.sentence import SentenceEncoder

    return SentenceEncoder(text)


def spec_of(encoder: Encoder) -> str:
    """The text that `encoder_of` makes this encoder of; empty for an encoder of the caller's own."""
    if isinstance(encoder, LexicalEncoder):
        return f"{LEXICAL}:{encoder.dimension}"
    return str(getattr(encoder, "spec", ""))


def label(encoder: str, dimension: int) -> str:
    """How an encoder is named in messages."""
    return f"{encoder!r} ({dimension} dimensions)"


def encode(encoder: Encoder, texts: list[str]) -> FloatMatrix:
    """What the encoder gives for texts, checked: shape, type, finite, rows of length one (or zero); raises `EncoderError`."""
    found = np.asarray(encoder.encode(texts))
    if found.shape != (len(texts), encoder.dimension):
        raise EncoderError(
            f"the encoder {label(encoder.id, encoder.dimension)} gave vectors of shape {found.shape} for {len(texts)} texts"
        )
    matrix = np.ascontiguousarray(found, np.float32)
    lengths = np.sqrt(np.einsum("ij,ij->i", matrix, matrix, dtype=np.float64))
    if not np.isfinite(lengths).all():
        raise EncoderError(f"the encoder {encoder.id!r} gave numbers that are not finite")
    off = (np.abs(lengths - 1) > _SLACK) & (lengths > 0)
    if off.any():
        text = texts[int(np.flatnonzero(off)[0])]
        raise EncoderError(f"the encoder {encoder.id!r} gave a vector of length {lengths[off][0]:.4g}, not 1, for {text!r}")
    return matrix


def normalised(matrix: FloatMatrix) -> FloatMatrix:
    """Rows scaled to length one; rows of zeros stay."""
    lengths = np.sqrt(np.einsum("ij,ij->i", matrix, matrix, dtype=np.float64))[:, None]
    return (matrix / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)


def folder_of(text: str) -> Path | None:
    """The folder that a text names, if there is one."""
    path = Path(text).expanduser()
    return path.resolve() if path.is_dir() else None
