"""Tokenizers as chains use them: texts to token ids, and what each id can do to a triple.

A triple is encoded in pieces that begin with a space (`<`, ` head`, ` ->`, ` relation`, ` ->`, ` tail`,
` >`). Whether that gives the tokens that the whole text has is tried on a tokenizer's own texts: some
put a mark before every text (pieces are then encoded behind a `<`, whose tokens are taken off
again), and where that does not help either whole triples are encoded.
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
#: Texts that tokenizers are tried on.
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
    """A tokenizer. No id of `encode` is one that it adds by itself."""

    def encode_many(self, texts: Sequence[str]) -> list[Sequence[int]]:
        """The token ids of texts, without special ones before or after."""

    def pieces(self) -> Mapping[int, str]:
        """The text of every id; what is not known may be missing."""

    @property
    def special(self) -> frozenset[int]:
        """The ids without text."""


class FastTokens:
    """A `tokenizers.Tokenizer`."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer

    def encode_many(self, texts: Sequence[str]) -> list[Sequence[int]]:
        """The token ids of texts."""
        return [item.ids for item in self._tokenizer.encode_batch(list(texts), add_special_tokens=False)]

    def pieces(self) -> Mapping[int, str]:
        """The text of every id."""
        size = max(self._tokenizer.get_vocab(with_added_tokens=True).values(), default=-1) + 1
        result = self._tokenizer.decode_batch([[item] for item in range(size)], skip_special_tokens=False)
        return dict(enumerate(result))

    @property
    def special(self) -> frozenset[int]:
        """The ids of special tokens, and of the one for what is not known."""
        added = self._tokenizer.get_added_tokens_decoder()
        result = {ident for ident, token in added.items() if token.special}
        unknown = getattr(self._tokenizer.model, "unk_token", None)
        if unknown is not None and (ident := self._tokenizer.token_to_id(unknown)) is not None:
            result.add(ident)
        return frozenset(result)


class SlowTokens:
    """A tokenizer of transformers without a fast one behind it, or any object with `encode` and
    `decode`.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._options = {"add_special_tokens": False} if hasattr(tokenizer, "all_special_ids") else {}

    def encode_many(self, texts: Sequence[str]) -> list[Sequence[int]]:
        """The token ids of texts."""
        return [list(self._tokenizer.encode(text, **self._options)) for text in texts]

    def pieces(self) -> Mapping[int, str]:
        """The text of every id."""
        return {item: self._tokenizer.decode([item]) for item in range(len(self._tokenizer))}

    @property
    def special(self) -> frozenset[int]:
        """The ids of special tokens."""
        return frozenset(getattr(self._tokenizer, "all_special_ids", ()))


def tokens_of(tokenizer: Any) -> Tokens:
    """A tokenizer of `tokenizers` or `transformers`, or an object with `encode_many`, or `encode`
    and `decode`; raises `OptionError` for anything else.
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
        f"{type(tokenizer).__name__} is no tokenizer",
        hint="give one of tokenizers or transformers, or an object with encode(text) and decode(ids)",
    )


class Coder:
    """Parts of triples as token ids of one tokenizer."""

    def __init__(self, tokens: Tokens, how: How | None = None) -> None:
        self.tokens = tokens
        self._special = np.array(sorted(tokens.special), np.int64)
        self._behind: Ids = ()
        self._kept: dict[str, Ids] = {}
        line, opened = self._raw(["\n", f"\n{OPEN}"])
        alone = self._raw([OPEN])[0]
        #: The tokens of the sign that begins a triple, at the beginning of a line.
        self.open: Ids = opened[len(line) :] if opened[: len(line)] == line and len(opened) > len(line) else alone
        self.how: How = how or self._tried()
        if self.how == "anchored pieces":
            self._behind = alone
        if not self.open:
            raise OptionError(f"the tokenizer has no token for {OPEN!r}")
        self.arrow, self.close = self.encode(ARROW), self.encode(CLOSE)

    def _raw(self, texts: Sequence[str]) -> list[Ids]:
        return [tuple(item) for item in self.tokens.encode_many(texts)]

    def _tried(self) -> How:
        """How triples can be encoded so that they have the tokens of their whole text."""
        if any(map(_crosses, self.tokens.pieces().values())):
            return "whole triples"
        line = self._raw(["\n"])[0]
        wholes = [item[len(line) :] for item in self._raw(["\n" + triple_text(*parts) for parts in _TRIED])]
        texts = [f" {part}" for parts in _TRIED for part in parts]
        alone = self._raw([OPEN])[0]
        for how in ("pieces", "anchored pieces"):
            behind = alone if how == "anchored pieces" else ()
            encoded = self._raw([OPEN + text if behind else text for text in [*texts, ARROW, CLOSE]])
            if any(item[: len(behind)] != behind for item in encoded):
                continue
            *parts, arrow, close = (item[len(behind) :] for item in encoded)
            made = [
                (*self.open, *parts[at], *arrow, *parts[at + 1], *arrow, *parts[at + 2], *close) for at in range(0, len(parts), 3)
            ]
            if made == wholes:
                return how
        return "whole triples"

    def encode(self, text: str) -> Ids:
        """The tokens of a piece that begins with a space; none where one of them stands for no text,
        so that no such name is ever written.
        """
        result = self._kept.get(text)
        if result is None:
            result = self.encode_many([text])[0]
            if len(self._kept) > 500_000:
                self._kept.clear()
            self._kept[text] = result
        return result

    def encode_many(self, texts: Sequence[str]) -> list[Ids]:
        """`encode` of many texts."""
        behind = self._behind
        result = self._raw([OPEN + text for text in texts] if behind else texts)
        special, cut = self.tokens.special, len(behind)
        return [
            () if item[:cut] != behind or not special.isdisjoint(item[cut:]) else item[cut:] for item in result
        ]  # fmt: skip

    def learn(self, texts: Iterable[str]) -> None:
        """Encode what is not known yet together, which is quicker."""
        fresh = [text for text in dict.fromkeys(texts) if text not in self._kept]
        if len(fresh) > 1:
            self._kept.update(zip(fresh, self.encode_many(fresh), strict=True))

    def whole(self, texts: Sequence[str]) -> list[Ids]:
        """The tokens of whole triples after a line end, from their first sign on."""
        line = self._raw(["\n"])[0]
        result = self._raw(["\n" + text for text in texts])
        cut = len(line)
        return [
            () if item[:cut] != line or not self.tokens.special.isdisjoint(item[cut:]) else item[cut:] for item in result
        ]  # fmt: skip

    # -- what an id can do in free text ------------------------------------------------------------

    @cached
    def begins(self) -> NDArray[np.int32]:
        """The ids that begin a triple: those that are the sign alone, with or without spaces."""
        return self._of(lambda text: text.strip() == OPEN)

    @cached
    def banned(self) -> NDArray[np.int32]:
        """The ids that hold the sign among others, such as `.<`: they would begin a triple that the
        constraint does not see, so that free text may not have them.
        """
        return self._of(lambda text: OPEN in text and text.strip() != OPEN)

    @cached
    def closing(self) -> frozenset[int]:
        """The ids that hold a sign of structure: no name may have one."""
        return frozenset(self._of(lambda text: OPEN in text or CLOSE.strip() in text).tolist())

    def _of(self, wanted: Callable[[str], bool]) -> NDArray[np.int32]:
        special = self.tokens.special
        result = [item for item, text in self.tokens.pieces().items() if item not in special and wanted(text)]
        return np.array(sorted(result), np.int32)


def _crosses(text: str) -> bool:
    """Whether a token may hold the end of one piece and the beginning of the next: pieces begin with
    a space, so that it has one behind something else, and a sign beside that.

    >>> [_crosses(text) for text in ("a ", "a -", "-> B", " ->", " New", "  ", "a b")]
    [True, True, True, False, False, False, False]
    """
    before, space, behind = text.lstrip(" ").partition(" ")
    if not before or not space:
        return False
    return "->".startswith(behind) or CLOSE.strip().startswith(behind) or before in ("->", ">", OPEN)


_CODERS: WeakKeyDictionary[Any, Coder] = WeakKeyDictionary()


def coder_of(tokenizer: Any) -> Coder:
    """The coder of a tokenizer, made once; a `Coder` is itself."""
    if isinstance(tokenizer, Coder):
        return tokenizer
    try:
        result = _CODERS.get(tokenizer)
        if result is None:
            result = _CODERS[tokenizer] = Coder(tokens_of(tokenizer))
    except TypeError:
        # It cannot be referred to weakly, or has no hash.
        return Coder(tokens_of(tokenizer))
    return result
