"""Superlatives that stand where a value is asked for: "the row whose Points are the highest"."""

from __future__ import annotations

from typing import Final, Literal

from condgraph.engine.algebra import Direction
from condgraph.engine.schema import Kinds
from condgraph.engine.values import Kind
from condgraph.languages.parameters import Given

_LARGEST: Final = frozenset(
    [
        "highest",
        "largest",
        "latest",
        "longest",
        "biggest",
        "greatest",
        "tallest",
        "heaviest",
        "newest",
        "maximum",
        "max",
        "last",
        "fastest",
        "deepest",
        "widest",
        "best",
        "top",
        "farthest",
        "furthest",
        "strongest",
        "richest",
        "quickest",
        "greatest_number",
        "top_most",
    ]
)
_SMALLEST: Final = frozenset(
    [
        "lowest",
        "smallest",
        "earliest",
        "shortest",
        "least_recent",
        "lightest",
        "slowest",
        "minimum",
        "min",
        "first",
        "fewest",
        "shallowest",
        "narrowest",
        "worst",
        "nearest",
        "closest",
        "weakest",
        "poorest",
    ]
)
_MODE: Final[dict[str, Direction]] = {
    "most": "largest",
    "least": "smallest",
    "most_frequent": "largest",
    "least_frequent": "smallest",
    "most_common": "largest",
    "least_common": "smallest",
}
#: Of years and dates of birth the oldest is the smallest; of ages it is the largest.
_AGE: Final[dict[str, Direction]] = {"oldest": "largest", "eldest": "largest", "youngest": "smallest"}
_LATER: Final[dict[str, Direction]] = {"oldest": "smallest", "eldest": "smallest", "youngest": "largest"}


def superlative(word: str, kinds: Kinds) -> tuple[Literal["mode", "extreme"], Direction] | None:
    """What a word asks for over values of these types: the mode or the extreme, and in which
    direction; None for other words, and for what was given for a parameter: that is a value.

    >>> superlative("highest", {}), superlative("most", {}), superlative("Paris", {})
    (('extreme', 'largest'), ('mode', 'largest'), None)
    """
    if isinstance(word, Given):
        return None
    folded = "_".join(word.casefold().split())
    if folded in _MODE:
        return "mode", _MODE[folded]
    if folded == "most_recent":
        return "extreme", "largest"
    if folded in _LARGEST:
        return "extreme", "largest"
    if folded in _SMALLEST:
        return "extreme", "smallest"
    directions = _LATER if any(kind is Kind.TIME for kind, _ in kinds) else _AGE
    return ("extreme", directions[folded]) if folded in directions else None
