"""Tokenizers for chains: texts as token ids, and the effect that each id can have on a triple.

A triple is encoded in pieces that begin with a space (`<`, ` head`, ` ->`, ` relation`, ` ->`, ` tail`, ` >`). Whether
that gives the same tokens as the whole text is tested for each tokenizer: some put a mark before every text (pieces are
then encoded after a `<`, whose tokens are removed again); if that does not help either, whole triples are encoded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal, Protocol
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from condgraph.chains.text import ARROW, CLOSE, OPEN, triple_text
from condgraph.engine.bounds import cached
from condgraph.engine.errors import OptionError

Ids = tuple[int, ...]
#: How triples are encoded.
How = Literal["pieces", "anchored pieces", "whole triples"]
#: Texts with which tokenizers are tested.
_TRIED: Final = (
    ("Jaws", "directed by", "Steven Spielberg"),
    ("Jaws!", "release_year", "1975"),
    ("10 (film)", "height (of top)", "8849.5 metre"),
    ("Ça c'est Paris", "né à", "Zürich-3"),
    ("A - B", "r-", "-x"),
    ('"a \\u003c b" #Q1', "名前", '"text" [start time: 2001-05-29]'),
    ("...", "?", "$"),
)


class Tokens(Protocol):
    """A tokenizer whose `encode_many` adds no ids of its own."""

    def encode_many(self, texts: Sequence[str]) -> list[Sequence[int]]:
        """Return the token ids of texts, without special ones before or after."""

    def pieces(self) -> Mapping[int, str]:
        """Return the text of every id; unknown ids may be missing."""

    @property
    def special(self) -> frozenset[int]:
        """The ids without text."""


class FastTokens:
    """A `tokenizers.Tokenizer`."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer

    def encode_many(self, texts: Sequence[str]) -> list[Sequence[int]]:
        return [item.ids for item in self._tokenizer.encode_batch(list(texts), add_special_tokens=False)]

    def pieces(self) -> Mapping[int, str]:
        size = max(self._tokenizer.get_vocab(with_added_tokens=True).values(), default=-1) + 1
        result = self._tokenizer.decode_batch([[item] for item in range(size)], skip_special_tokens=False)
        return dict(enumerate(result))

    @property
    def special(self) -> frozenset[int]:
        """The ids of special tokens, including the one for unknown text."""
        added = self._tokenizer.get_added_tokens_decoder()
        result = {ident for ident, token in added.items() if token.special}
        unknown = getattr(self._tokenizer.model, "unk_token", None)
        if unknown is not None and (ident := self._tokenizer.token_to_id(unknown)) is not None:
            result.add(ident)
        return frozenset(result)


class SlowTokens:
    """A tokenizer of transformers without a fast implementation, or any object with `encode` and `decode`."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._options = {"add_special_tokens": False} if hasattr(tokenizer, "all_special_ids") else {}

    def encode_many(self, texts: Sequence[str]) -> list[Sequence[int]]:
        return [list(self._tokenizer.encode(text, **self._options)) for text in texts]

    def pieces(self) -> Mapping[int, str]:
        return {item: self._tokenizer.decode([item]) for item in range(len(self._tokenizer))}

    @property
    def special(self) -> frozenset[int]:
        """The ids of special tokens."""
        return frozenset(getattr(self._tokenizer, "all_special_ids", ()))


def tokens_of(tokenizer: Any) -> Tokens:
    """Wrap a tokenizer of `tokenizers` or `transformers`, or an object with `encode_many`, or `encode` and `decode`.

    Raises `OptionError` for anything else.
    """
    tokenizer = getattr(tokenizer, "backend_tokenizer", None) or tokenizer
    if hasattr(tokenizer, "encode_many") and hasattr(tokenizer, "pieces"):
        result: Tokens = tokenizer
        return result
    if hasattr(tokenizer, "encode_batch") and hasattr(tokenizer, "get_added_tokens_decoder"):
        return FastTokens(tokenizer)
    if hasattr(tokenizer, "encode") and hasattr(tokenizer, "decode"):
        return SlowTokens(tokenizer)
    raise OptionError(
        f"{type(tokenizer).__name__} is not a tokenizer",
        hint="give one of tokenizers or transformers, or an object with encode(text) and decode(ids)",
    )


class Coder:
    """Encodes parts of triples with one tokenizer."""

    def __init__(self, tokens: Tokens, how: How | None = None) -> None:
        self.tokens = tokens
        self._special = np.array(sorted(tokens.special), np.int64)
        self._suffix: Ids = ()
        self._cache: dict[str, Ids] = {}
        line, opened = self._raw(["\n", f"\n{OPEN}"])
        opening = self._raw([OPEN])[0]
        #: Tokens of the opening of a triple, at the beginning of a line.
        self.open: Ids = opened[len(line) :] if opened[: len(line)] == line and len(opened) > len(line) else opening
        self.how: How = how or self._detect()
        if self.how == "anchored pieces":
            self._suffix = opening
        if not self.open:
            raise OptionError(f"the tokenizer has no token for {OPEN!r}")
        self.arrow, self.close = self.encode(ARROW), self.encode(CLOSE)

    def _raw(self, texts: Sequence[str]) -> list[Ids]:
        return [tuple(item) for item in self.tokens.encode_many(texts)]

    def _detect(self) -> How:
        """Determine how triples can be encoded with the same tokens as their whole text."""
        if any(map(_crosses, self.tokens.pieces().values())):
            return "whole triples"
        line = self._raw(["\n"])[0]
        wholes = [item[len(line) :] for item in self._raw(["\n" + triple_text(*parts) for parts in _TRIED])]
        texts = [f" {part}" for parts in _TRIED for part in parts]
        opening = self._raw([OPEN])[0]
        for how in ("pieces", "anchored pieces"):
            prefix = opening if how == "anchored pieces" else ()
            encoded = self._raw([OPEN + text if prefix else text for text in [*texts, ARROW, CLOSE]])
            if any(item[: len(prefix)] != prefix for item in encoded):
                continue
            *parts, arrow, close = (item[len(prefix) :] for item in encoded)
            joined = [
                (*self.open, *parts[index], *arrow, *parts[index + 1], *arrow, *parts[index + 2], *close)
                for index in range(0, len(parts), 3)
            ]
            if joined == wholes:
                return how
        return "whole triples"

    def encode(self, text: str) -> Ids:
        """Return the tokens of a piece that begins with a space; empty if one of them has no text, so that it is never written."""
        result = self._cache.get(text)
        if result is None:
            result = self.encode_many([text])[0]
            if len(self._cache) > 500_000:
                self._cache.clear()
            self._cache[text] = result
        return result

    def encode_many(self, texts: Sequence[str]) -> list[Ids]:
        """Return `encode` of many texts."""
        prefix = self._suffix
        result = self._raw([OPEN + text for text in texts] if prefix else texts)
        special, cut = self.tokens.special, len(prefix)
        return [
            () if item[:cut] != prefix or not special.isdisjoint(item[cut:]) else item[cut:] for item in result
        ]  # fmt: skip

    def learn(self, texts: Iterable[str]) -> None:
        """Encode new texts together, which is faster."""
        fresh = [text for text in dict.fromkeys(texts) if text not in self._cache]
        if len(fresh) > 1:
            self._cache.update(zip(fresh, self.encode_many(fresh), strict=True))

    def whole(self, texts: Sequence[str]) -> list[Ids]:
        """Return the tokens of whole triples after a line end, from the opening on."""
        line = self._raw(["\n"])[0]
        result = self._raw(["\n" + text for text in texts])
        cut = len(line)
        return [
            () if item[:cut] != line or not self.tokens.special.isdisjoint(item[cut:]) else item[cut:] for item in result
        ]  # fmt: skip

    # -- what an id can do in free text ------------------------------------------------------------

    @cached
    def begins(self) -> NDArray[np.int32]:
        """The ids that begin a triple: the opening alone, with or without spaces."""
        return self._of(lambda text: text.strip() == OPEN)

    @cached
    def banned(self) -> NDArray[np.int32]:
        """The ids that contain the opening among other characters, such as `.<`.

        They would begin a triple that the constraint does not notice, so that free text must not have them.
        """
        return self._of(lambda text: OPEN in text and text.strip() != OPEN)

    @cached
    def closing(self) -> frozenset[int]:
        """The ids that contain a structural character, which no name may have."""
        return frozenset(self._of(lambda text: OPEN in text or CLOSE.strip() in text).tolist())

    def _of(self, wanted: Callable[[str], bool]) -> NDArray[np.int32]:
        special = self.tokens.special
        result = [item for item, text in self.tokens.pieces().items() if item not in special and wanted(text)]
        return np.array(sorted(result), np.int32)


def _crosses(text: str) -> bool:
    """Tell whether a token may span the end of one piece and the beginning of the next.

    Pieces begin with a space, so such a token has a space after another character, next to a structural one.

    >>> [_crosses(text) for text in ("a ", "a -", "-> B", " ->", " New", "  ", "a b")]
    [True, True, True, False, False, False, False]
    """
    before, space, after = text.lstrip(" ").partition(" ")
    if not before or not space:
        return False
    return "->".startswith(after) or CLOSE.strip().startswith(after) or before in ("->", ">", OPEN)


_CODERS: WeakKeyDictionary[Any, Coder] = WeakKeyDictionary()


def coder_of(tokenizer: Any) -> Coder:
    """Return the coder of a tokenizer, created once; a `Coder` is returned unchanged."""
    if isinstance(tokenizer, Coder):
        return tokenizer
    try:
        result = _CODERS.get(tokenizer)
        if result is None:
            result = _CODERS[tokenizer] = Coder(tokens_of(tokenizer))
    except TypeError:
        # It has no weak references, or no hash.
        return Coder(tokens_of(tokenizer))
    return result
