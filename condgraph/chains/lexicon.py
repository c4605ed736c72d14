"""Token sequences in order, as ranges of which a prefix takes a part: the tries of the constraint,
without their nodes.

The names of a graph in process are encoded and sorted once a tokenizer (`Lexicon`); what a triple
may be is then a sorted array of their ranks. Other texts (values, names on servers) are encoded when
they are reached (`Loose`).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from condgraph.chains.place import LocalPlace
from condgraph.chains.text import entity_text
from condgraph.chains.tokens import Coder, Ids
from condgraph.engine.bounds import check

#: The most entities whose names are encoded ahead; names of larger graphs are encoded when reached.
MOST_INDEXED: Final = 1_000_000
_FEW: Final = 24
_TOGETHER: Final = 8192


class Run(Protocol):
    """Sorted sequences, none of which begins another one, each with what it stands for."""

    def __len__(self) -> int: ...

    def next(self, low: int, high: int, depth: int) -> list[int]:
        """The distinct tokens at a depth in a range, rising; none where the sequences end there."""
        ...

    def narrow(self, low: int, high: int, depth: int, token: int) -> tuple[int, int]:
        """The part of a range that has a token at a depth."""
        ...

    def ends(self, low: int, depth: int) -> bool:
        """Whether a sequence has no token at a depth."""
        ...

    def of(self, low: int, high: int) -> list[int]:
        """What the sequences of a range stand for."""
        ...


class Loose:
    """Sequences that were encoded for this place in a chain. `payload` has one entry for each."""

    def __init__(self, sequences: Sequence[Ids], payload: Sequence[int]) -> None:
        order = sorted(range(len(sequences)), key=sequences.__getitem__)
        kept: list[int] = []
        longer: Ids = ()
        for at in reversed(order):
            mine = sequences[at]
            # What has no tokens, or begins another one, cannot be told apart, and is left out.
            if mine and not (len(longer) > len(mine) and longer[: len(mine)] == mine):
                kept.append(at)
                longer = mine
        kept.reverse()
        self.sequences = [sequences[at] for at in kept]
        self.payload = [payload[at] for at in kept]

    def __len__(self) -> int:
        return len(self.sequences)

    def next(self, low: int, high: int, depth: int) -> list[int]:
        """The distinct tokens at a depth in a range."""
        found, at, all_of = [], low, self.sequences
        if len(all_of[low]) == depth:
            return []
        while at < high:
            token = all_of[at][depth]
            found.append(token)
            at = bisect_right(all_of, token, at, high, key=lambda one: one[depth])
        return found

    def narrow(self, low: int, high: int, depth: int, token: int) -> tuple[int, int]:
        """The part of a range that has a token at a depth."""
        all_of = self.sequences
        if high - low == 1:
            return low, low + (all_of[low][depth] == token)
        low = bisect_left(all_of, token, low, high, key=lambda one: one[depth])
        return low, bisect_right(all_of, token, low, high, key=lambda one: one[depth])

    def ends(self, low: int, depth: int) -> bool:
        """Whether a sequence has no token at a depth."""
        return len(self.sequences[low]) == depth

    def of(self, low: int, high: int) -> list[int]:
        """What the sequences of a range stand for."""
        return self.payload[low:high]


class Lexicon:
    """The names of all entities of a snapshot as token sequences with a close behind them: flat
    tokens, int32; offsets, int64; and the rank of each entity, int32, -1 where its name cannot be
    written.
    """

    def __init__(self, sequences: Sequence[Ids], suffix: Ids) -> None:
        size = len(sequences)
        counts = np.fromiter((len(one) + len(suffix) if one else 0 for one in sequences), np.int64, size)
        order = sorted(range(size), key=lambda one: (*sequences[one], *suffix))
        order = [one for one in order if sequences[one]]
        self.rank = np.full(size, -1, np.int32)
        self.rank[order] = np.arange(len(order), dtype=np.int32)
        self.offsets = np.zeros(len(order) + 1, np.int64)
        np.cumsum(counts[order], out=self.offsets[1:])
        self.flat = np.fromiter((token for one in order for token in (*sequences[one], *suffix)), np.int32, int(self.offsets[-1]))
        self.flat_view, self.offset_view, self._rank_view = self.flat.data, self.offsets.data, self.rank.data

    def of(self, entity: int) -> list[int]:
        """The tokens of an entity's name, with what follows it; the name can be written."""
        rank, offsets = self._rank_view[entity], self.offset_view
        return self.flat_view[offsets[rank] : offsets[rank + 1]].tolist()


class Ranked:
    """Entities in the order of a lexicon. `payload` has one entry for each, int64."""

    def __init__(self, lexicon: Lexicon, entities: NDArray[np.int64], payload: NDArray[np.int64]) -> None:
        ranks = lexicon.rank.take(entities)
        order = np.argsort(ranks, kind="stable")
        order = order[np.searchsorted(ranks, 0, sorter=order) :]
        self._set(lexicon, ranks[order], payload[order])

    def _set(self, lexicon: Lexicon, ranks: NDArray[np.int32], payload: NDArray[np.int64]) -> None:
        self._lexicon, self.ranks, self.payload = lexicon, ranks, payload
        self._view, self._flat, self._offsets = self.ranks.data, lexicon.flat_view, lexicon.offset_view
        self._first: list[int] | None = None

    def __len__(self) -> int:
        return len(self.ranks)

    def next(self, low: int, high: int, depth: int) -> list[int]:
        """The distinct tokens at a depth in a range."""
        if depth == 0 and high - low == len(self.ranks):
            if self._first is None:
                self._first = self._next(low, high, 0)
            return self._first
        return self._next(low, high, depth)

    def _next(self, low: int, high: int, depth: int) -> list[int]:
        if self.ends(low, depth):
            return []
        view, flat, offsets = self._view, self._flat, self._offsets
        if high - low <= _FEW:
            found, last = [], -1
            for at in range(low, high):
                token = flat[offsets[view[at]] + depth]
                if token != last:
                    found.append(token)
                    last = token
            return found
        tokens = self._lexicon.flat.take(self._lexicon.offsets.take(self.ranks[low:high]) + depth)
        keep = np.flatnonzero(tokens[1:] != tokens[:-1])
        return [int(tokens[0]), *tokens[keep + 1].tolist()]

    def narrow(self, low: int, high: int, depth: int, token: int) -> tuple[int, int]:
        """The part of a range that has a token at a depth."""
        flat, offsets = self._flat, self._offsets
        if high - low == 1:
            return low, low + (flat[offsets[self._view[low]] + depth] == token)

        def key(rank: int) -> int:
            found: int = flat[offsets[rank] + depth]
            return found

        low = bisect_left(self._view, token, low, high, key=key)
        return low, bisect_right(self._view, token, low, high, key=key)

    def without(self, entities: Sequence[int]) -> Ranked:
        """The same but for some entities."""
        keep = ~np.isin(self.ranks, self._lexicon.rank.take(np.array(entities, np.int64)))
        found = Ranked.__new__(Ranked)
        found._set(self._lexicon, self.ranks[keep], self.payload[keep])
        return found

    def place_of(self, entity: int) -> bool:
        """Whether an entity is here."""
        rank = int(self._lexicon.rank[entity])
        at = bisect_left(self._view, rank)
        return at < len(self._view) and self._view[at] == rank

    def ends(self, low: int, depth: int) -> bool:
        """Whether a sequence has no token at a depth."""
        rank = self._view[low]
        return bool(self._offsets[rank + 1] - self._offsets[rank] == depth)

    def of(self, low: int, high: int) -> list[int]:
        """What the entities of a range stand for."""
        found: list[int] = self.payload[low:high].tolist()
        return found


class Names:
    """The names of one snapshot for one tokenizer: as heads, with an arrow behind, and as tails,
    with a close.
    """

    def __init__(self, place: LocalPlace, coder: Coder) -> None:
        snapshot = place.snapshot
        texts = snapshot.texts.take(snapshot.entity_name)
        shared = snapshot.entity_name[1:] == snapshot.entity_name[:-1]
        alone = ~(np.concatenate([[False], shared]) | np.concatenate([shared, [False]]))[: len(texts)]
        ids = snapshot.texts.take(snapshot.entity_id)
        written = [" " + entity_text(*one) for one in zip(texts, ids, alone.tolist(), strict=True)]
        found: list[Ids] = []
        for at in range(0, len(written), _TOGETHER):
            check()
            found += coder.encode_many(written[at : at + _TOGETHER])
        closing = coder.closing
        found = [one if closing.isdisjoint(one) else () for one in found]
        again = _alike(found)
        # Some tokenizers give different names the same tokens; these are told apart by their ids.
        written = [" " + entity_text(texts[one], ids[one], False) for one in again]
        for one, sequence in zip(again, coder.encode_many(written), strict=True):
            found[one] = sequence if closing.isdisjoint(sequence) else ()
        for one in _alike(found):
            found[one] = ()
        self.heads, self.tails = Lexicon(found, coder.arrow), Lexicon(found, coder.close)
        #: How many entities cannot be written by this tokenizer.
        self.unwritten = sum(1 for one in found if not one)
        self.again = frozenset(again)


def _alike(sequences: Sequence[Ids]) -> list[int]:
    """The places of sequences that stand there more than once."""
    seen: dict[Ids, int] = {}
    found: dict[int, None] = {}
    for at, one in enumerate(sequences):
        if not one:
            continue
        before = seen.setdefault(one, at)
        if before != at:
            found[before] = found[at] = None
    return list(found)


def names_of(place: LocalPlace, coder: Coder) -> Names | None:
    """The names of a snapshot by a coder, made once and kept with the snapshot; None of a graph
    with too many, or of a tokenizer that whole triples have to be encoded with.
    """
    snapshot = place.snapshot
    if coder.how == "whole triples" or snapshot.entities > MOST_INDEXED or not snapshot.entities:
        return None
    kept = snapshot.schema.kept.setdefault("chain names", {})
    found = kept.get(id(coder))
    if found is None or found[0] is not coder:
        if len(kept) >= 8:
            kept.clear()
        found = kept[id(coder)] = coder, Names(place, coder)
    names: Names = found[1]
    return names
