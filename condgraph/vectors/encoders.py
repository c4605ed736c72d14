"""Which encoder a text names: `lexical`, `openai:MODEL`, a folder with a model of
sentence-transformers, or its name on the hub.

lexical            hashed character n-grams, no model needed; `lexical:256` with another dimension
hybrid:ENCODER     names by spelling, relations by another encoder: `hybrid:PATH`, `hybrid:openai:MODEL`
openai:MODEL       any server that speaks OpenAI's embeddings API (`OPENAI_BASE_URL`, `OPENAI_API_KEY`)
PATH               a folder with a model of sentence-transformers
NAME               the name of such a model on the hub, `sentence-transformers/all-MiniLM-L6-v2`, say
"""

from __future__ import annotations

import os
from typing import Final

import numpy as np

from condgraph.engine.bounds import current
from condgraph.engine.errors import EncoderError, OptionError, nearest
from condgraph.engine.workers import Workers
from condgraph.vectors.encoder import OPENAI, Encoder, FloatMatrix, LexicalEncoder, folder_of

LEXICAL: Final = "lexical"
HYBRID: Final = "hybrid:"
#: Of the lexical encoder where vectors are kept: the most that vector indexes of other stores take,
#: and few n-grams collide.
DIMENSION: Final = 4096
#: By how much the length of a vector may differ from one.
_SLACK: Final = 1e-3
_WORKERS: Final = Workers("condgraph-encoder")


class HybridEncoder(LexicalEncoder):
    """Names by spelling, as the lexical encoder has them; relations of patterns by `relations`, by
    meaning.
    """

    __slots__ = ("relations",)

    relations: Encoder

    def __init__(self, relations: Encoder, dimension: int = DIMENSION) -> None:
        super().__init__(dimension)
        object.__setattr__(self, "relations", relations)

    @property
    def id(self) -> str:
        """Both encoders."""
        return f"{HYBRID}lexical-1+{self.relations.id}"


def relations_of(encoder: Encoder) -> Encoder:
    """What encodes relations, where an encoder is asked for names."""
    return encoder.relations if isinstance(encoder, HybridEncoder) else encoder


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
    if text.startswith(HYBRID):
        return HybridEncoder(encoder_of(text.removeprefix(HYBRID)))
    if text.startswith(OPENAI):
        from condgraph.vectors.embeddings_api import EndpointEncoder

        return EndpointEncoder(text.removeprefix(OPENAI))
    if not text:
        raise OptionError("the name of an encoder is empty", hint="`lexical`, a folder, a name on the hub, or `openai:MODEL`")
    if folder_of(text) is None:
        _misspelled(text)
    from condgraph.vectors.sentence import SentenceEncoder

    return SentenceEncoder(text)


def _misspelled(text: str) -> None:
    """Raise `OptionError` for what can be no name on the hub, before a library or a server is asked
    for it.
    """
    begin = text.partition(":")[0].lower()
    near = nearest(begin, [LEXICAL, "hybrid", "openai"])
    path = text.startswith((".", "~", os.sep)) or text.count("/") > 1
    if ":" in text or any(map(str.isspace, text)) or path or near:
        what = "is no folder" if path else "is no encoder"
        raise OptionError(
            f"{text!r} {what}",
            candidates=near,
            hint="an encoder is `lexical`, `hybrid:ENCODER`, `openai:MODEL`, a folder, or a model's name on the hub",
        )


def spec_of(encoder: Encoder) -> str:
    """The text that `encoder_of` makes this encoder of; empty for an encoder of the caller's own."""
    if isinstance(encoder, HybridEncoder):
        spec = spec_of(encoder.relations)
        return f"{HYBRID}{spec}" if spec else ""
    if isinstance(encoder, LexicalEncoder):
        return f"{LEXICAL}:{encoder.dimension}"
    return str(getattr(encoder, "spec", ""))


def label(encoder: str, dimension: int) -> str:
    """How an encoder is named in messages."""
    return f"{encoder!r} ({dimension} dimensions)"


def encode(encoder: Encoder, texts: list[str]) -> FloatMatrix:
    """What the encoder gives for texts, checked: shape, type, finite, rows of length one (or zero);
    raises `EncoderError`.
    """
    if isinstance(encoder, LexicalEncoder):
        found = np.asarray(encoder.encode(texts))
    else:
        # A model takes its time, and may be on a server.
        found = np.asarray(_WORKERS.run(lambda: encoder.encode(texts)) if current() is not None else encoder.encode(texts))
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
