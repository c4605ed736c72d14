"""How many of which: quotas of kinds and hops, and what was asked already, in bounded memory."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from hashlib import blake2b
from typing import Final, Generic, TypeVar

from condgraph.engine.errors import OptionError, nearest
from condgraph.questions.description import KINDS, TABLE_KINDS

#: KQA Pro's shares (section 4.4): of nine kinds SelectAmong has least, and 4.7 % of the questions
#: five hops or more, 26.3 % one.
KIND_SHARES: Final = {kind: 0.046 if kind == "SelectAmong" else (1 - 0.046) / 8 for kind in KINDS}
HOP_SHARES: Final = {1: 0.263, 2: 0.25, 3: 0.25, 4: 0.19, 5: 0.047}
#: The fewest hops of a kind.
FEWEST: Final = {"SelectAmong": 2, "SelectBetween": 3, "Verify": 2, "QualifierLiteral": 2, "QualifierRelational": 2}
_BITS: Final = 1 << 25
T = TypeVar("T")


def kind_shares(kinds: Collection[str] | Mapping[str, float] | None, tables: bool) -> dict[str, float]:
    """The share of each kind; raises `OptionError` for one that is not known."""
    every = (*KINDS, *TABLE_KINDS)
    if kinds is None:
        # A table is asked as tables are, for the half of it.
        found = dict(KIND_SHARES)
        return {**found, **dict.fromkeys(TABLE_KINDS, 0.25)} if tables else found
    if isinstance(kinds, str):
        kinds = (kinds,)
    shares = dict(kinds) if isinstance(kinds, Mapping) else dict.fromkeys(kinds, 1.0)
    for kind, share in shares.items():
        if kind not in every:
            raise OptionError(
                f"there is no kind of questions {kind!r}", candidates=nearest(kind, every), hint=f"known: {', '.join(every)}"
            )
        if not share >= 0:
            raise OptionError(f"the share of {kind} is {share!r}, and is no number from 0 on")
    return _normal(shares, "kinds")


def hop_shares(hops: int | Collection[int] | Mapping[int, float] | None) -> dict[int, float]:
    """The share of each number of hops; the largest stands for itself and more by default."""
    if hops is None:
        return dict(HOP_SHARES)
    if isinstance(hops, int):
        hops = (hops,)
    shares = dict(hops) if isinstance(hops, Mapping) else dict.fromkeys(hops, 1.0)
    for number, share in shares.items():
        if not isinstance(number, int) or not 1 <= number <= 12:
            raise OptionError(f"hops are whole numbers from 1 to 12, not {number!r}")
        if not share >= 0:
            raise OptionError(f"the share of {number} hops is {share!r}, and is no number from 0 on")
    return _normal({int(number): share for number, share in shares.items()}, "hops")


def _normal(shares: dict[T, float], what: str) -> dict[T, float]:
    total = sum(shares.values())
    if not total:
        raise OptionError(f"the shares of {what} are all 0")
    return {key: share / total for key, share in shares.items() if share}


class Quota(Generic[T]):
    """Shares, and how many there are of each."""

    def __init__(self, shares: Mapping[T, float]) -> None:
        self.shares = dict(shares)
        self.made: dict[T, int] = dict.fromkeys(self.shares, 0)

    def lacking(self, among: Collection[T]) -> T:
        """What is furthest below its share."""
        total = sum(self.made.values()) + 1
        return max(among, key=lambda key: self.shares[key] * total - self.made[key])

    def open(self, key: T) -> bool:
        """Whether one more keeps the share, or nearly so."""
        total = sum(self.made.values()) + 1
        return key in self.shares and self.made[key] + 1 <= self.shares[key] * total * 1.1 + 2


class Seen:
    """What was there before, in 4 MiB however much it is: a text that is new is taken for one that
    was there at a chance of under one in a thousand for a million of them.
    """

    def __init__(self) -> None:
        self._bits = bytearray(_BITS >> 3)

    def add(self, text: str) -> bool:
        """Whether a text is new; it is there then."""
        digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        new = False
        for at in range(0, 16, 4):
            bit = int.from_bytes(digest[at : at + 4], "little") % _BITS
            if not self._bits[bit >> 3] >> (bit & 7) & 1:
                new = True
                self._bits[bit >> 3] |= 1 << (bit & 7)
        return new
