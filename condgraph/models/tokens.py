"""How many tokens a text is: by the model's own tokenizer where it can be had, else a bound."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from condgraph.models.base import ChatModel, Message

_PIECES: Final = re.compile(r"[A-Za-z]+| +|[\x00-\x7f]|[^\x00-\x7f]+")
#: Tokens that templates of chats put around a message, and around them all.
_AROUND_ONE: Final = 6
_AROUND_ALL: Final = 24


@dataclass(frozen=True, slots=True)
class Counted:
    """A number of tokens, and whether the model's own tokenizer counted it or it is a bound."""

    tokens: int
    exact: bool


def estimate(text: str) -> int:
    """How many tokens a text is at most for the tokenizers in use, guessed without one.

    Three letters are a token, and so is every digit, mark and end of a line; spaces go with the word
    behind them; of other writing every byte of UTF-8 is one.

    >>> estimate("country 12"), estimate("Zürich")
    (5, 5)
    """
    found = 0
    for piece in _PIECES.findall(text):
        first = piece[0]
        if first == " ":
            found += len(piece) // 2
        elif first.isascii():
            found += -(-len(piece) // 3)
        else:
            found += len(piece.encode("utf-8", "surrogatepass"))
    return found


def counted(model: ChatModel, text: str) -> Counted:
    """The tokens of a text for a model: its own count, or `estimate`, which says rather too many."""
    own = model.count(text)
    return Counted(estimate(text), False) if own is None else Counted(own, True)


def counted_prompt(model: ChatModel, messages: Sequence[Message]) -> Counted:
    """The tokens of a conversation: those of its texts, and a bound of what templates add. `exact`
    says how the texts were counted.
    """
    parts = [counted(model, message["content"]) for message in messages]
    around = _AROUND_ALL + _AROUND_ONE * len(parts)
    return Counted(sum(part.tokens for part in parts) + around, all(part.exact for part in parts))
