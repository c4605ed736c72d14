"""Three real tokenizers, each trained here on names: byte BPE, one like SentencePiece's (a mark for
spaces, put before every text, bytes for signs it does not know), and WordPiece, which loses case and
what it does not know.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import cache
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

KINDS = ("byte BPE", "SentencePiece-like", "WordPiece")
_TEXT = """< Jaws -> directed by -> Steven Spielberg > this tells who directed it. Jaws 2, release year 1978; the
A - B of Paris, Texas height 8849 metre [point in time: 2011] "text" #Q1 \\u003c Ça né à Zürich 名前 starred actors capital
of Nepal Kathmandu .< >> ->x"""
_SAID = re.findall(r"\S+", _TEXT)


def made(kind: str, names: Iterable[str] = ()) -> Any:
    """A tokenizer of a kind."""
    return _made(kind, tuple(names))


@cache
def _made(kind: str, names: tuple[str, ...]) -> Any:
    texts = [" ".join(_SAID), *_SAID, *names] * 3
    size = 700 if not names else 8000
    if kind == "byte BPE":
        found = Tokenizer(models.BPE())
        found.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        found.decoder = decoders.ByteLevel()
        trainer: Any = trainers.BpeTrainer(
            vocab_size=size, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False,
            special_tokens=["<|end|>"],
        )  # fmt: skip
    elif kind == "SentencePiece-like":
        found = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
        # As Llama 2 has it: a mark before the text, and for every space.
        found.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
        found.decoder = decoders.Sequence(
            [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
        )
        trainer = trainers.BpeTrainer(
            vocab_size=size + 256, show_progress=False,
            special_tokens=["<unk>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))],
        )  # fmt: skip
        # Words are learned apart, so that no token has a mark inside.
        found.pre_tokenizer = pre_tokenizers.Split("▁", "merged_with_next")
        found.train_from_iterator(texts, trainer)
        found.pre_tokenizer = None
        # Bytes are tokens like others.
        document = json.loads(found.to_str())
        document["added_tokens"] = [one for one in document["added_tokens"] if not one["content"].startswith("<0x")]
        return Tokenizer.from_str(json.dumps(document))
    else:
        found = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        found.normalizer = normalizers.BertNormalizer(lowercase=True)
        found.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        found.decoder = decoders.WordPiece()
        trainer = trainers.WordPieceTrainer(vocab_size=size, show_progress=False, special_tokens=["[UNK]", "[SEP]"])
    found.train_from_iterator(texts, trainer)
    if kind == "byte BPE":
        found.add_special_tokens([AddedToken("<|end|>", special=True)])
    return found
