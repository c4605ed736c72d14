"""The triples that may follow as whole token sequences, and the search for the best of them by a
model's probabilities, token by token.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from condgraph.chains.backends.base import Proposal, Score
from condgraph.chains.chain import Chain, Parts, every
from condgraph.chains.walk import triple_of
from condgraph.engine.bounds import check

#: Asked with token ids behind a prompt, a place among them, and the tokens that may follow: gives
#: the logarithms of the probability of each id from that place on, and of each that may follow.
#: Where only masked scores are asked for, the first may be empty, and the others may be among
#: themselves.
Scorer = Callable[[Sequence[int], int, Sequence[int]], tuple[Sequence[float], Sequence[float]]]
_LEAST: Final = -1e30


def parts(chain: Chain, most: int) -> Parts | None:
    """The token sequences of all triples that may follow, with the ids of this triple that are
    written already, and what heads have in common once; None where there are more than `most`.
    """
    return every(chain, walk_through, most)


def walk_through(chain: Chain) -> Iterator[Chain]:
    """Every chain in which the triple that is being written is complete, in the order of ids."""
    stack = [chain.copy()]
    while stack:
        check()
        one = stack.pop()
        # A triple that is complete has nothing that may follow.
        while len(tokens := one.next()) == 1:
            one.advance(tokens[0])
        if one.complete:
            yield one
            continue
        for token in reversed(tokens):
            branch = one.copy()
            branch.advance(token)
            stack.append(branch)


@dataclass(slots=True)
class _Beam:
    chain: Chain
    score: float
    done: bool = False


def best_triples(chain: Chain, scorer: Scorer, n: int, score: Score, *, width: int | None = None) -> list[Proposal]:
    """The n best triples that may follow, by token-level beam search of `width` beams (n by
    default): each step keeps the beams of the largest sums of logarithms.

    Tokens without an alternative cost no call where the score is masked: their probability among
    what is allowed is one.
    """
    beams = [_Beam(chain.copy(), 0.0)]
    width = max(width or n, 1)
    while any(not beam.done for beam in beams):
        check()
        grown: list[_Beam] = []
        for beam in beams:
            if beam.done:
                grown.append(beam)
                continue
            grown += _grown(beam, scorer, score)
        grown.sort(key=lambda beam: (-beam.score, beam.chain.ids))
        beams = grown[:width]
    return [
        Proposal(triple_of(beam.chain.walk.place, beam.chain.found), beam.score, len(beam.chain.ids)) for beam in beams[:n]
    ]  # fmt: skip


def _grown(beam: _Beam, scorer: Scorer, score: Score) -> list[_Beam]:
    """A beam with each token that may follow its forced ones."""
    chain, start = beam.chain, len(beam.chain.ids)
    while len(only := chain.next()) == 1:
        chain.advance(only[0])
    if not only and not chain.complete:
        # A dead end: nothing may follow.
        return []
    if chain.complete and score == "masked":
        return [_Beam(chain, beam.score, True)]
    behind, following = scorer(chain.ids, start, only)
    base = beam.score + (sum(behind) if score == "raw" else 0.0)
    if chain.complete:
        return [_Beam(chain, base, True)]
    logs = np.maximum(np.array(following, np.float64), _LEAST)
    if score == "masked":
        top = float(logs.max())
        logs = logs - (top + float(np.log(np.exp(logs - top).sum())))
    found = []
    for token, log in zip(only, logs.tolist(), strict=True):
        branch = chain.copy()
        branch.advance(token)
        found.append(_Beam(branch, base + log, branch.complete))
    return found
