"""All triples that may follow as token sequences, put together at once instead of token by token:
for grammars, which need every one of them before the first token.

Around a hub most heads go on alike (`-> has_genre -> Drama >`), so that heads, and what follows
them, are kept apart: a grammar has each of the second once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from condgraph.chains.chain import Chain
from condgraph.chains.lexicon import Lexicon, Loose
from condgraph.chains.place import Numbers
from condgraph.chains.text import named
from condgraph.chains.tokens import Ids
from condgraph.engine.bounds import check


@dataclass(slots=True)
class Parts:
    """Token sequences of triples in two pieces: `heads` are beginnings, rising, each with the number
    of what may follow it; `ends` are what may follow, rising each. No beginning begins another one.
    """

    heads: list[tuple[Ids, int]] = field(default_factory=list)
    ends: list[list[Ids]] = field(default_factory=list)

    def __len__(self) -> int:
        return sum(len(self.ends[end]) for _, end in self.heads)

    @property
    def longest(self) -> int:
        """Tokens of the longest triple."""
        most = [max(map(len, one), default=0) for one in self.ends]
        return max((len(head) + most[end] for head, end in self.heads), default=0)

    def sequences(self) -> list[Ids]:
        """Every triple as one sequence, rising."""
        return sorted((*head, *one) for head, end in self.heads for one in self.ends[end])


def every(chain: Chain, through: Callable[[Chain], Iterator[Chain]], most: int) -> Parts | None:
    """The sequences of all triples that may follow; None where there are more than `most`.

    A head whose statements are all relations without qualifiers has sequences made of its names'.
    Other heads, and a triple that is begun, are gone `through` token by token.
    """
    names, place = chain._shared.names, chain.walk.place
    if names is None or chain.ids:
        taken = _taken((one.ids for one in through(chain)), most)
        return None if taken is None else Parts([((), 0)], [taken]) if taken else Parts()
    if not len(found := chain.walk.statements):
        return Parts()
    kinds = place.relations(found)
    written = {kind: _relation(chain, kind) for kind in np.unique(kinds).tolist()}
    # Relations whose tokens begin others', or are others', are told apart token by token.
    clear = len(Loose(list(written.values()), list(written))) == len(written) == len(set(written.values()))
    subjects, bare = place.subjects(found), place.bare(found)
    odd = np.unique(subjects[bare < 0]) if clear else np.unique(subjects)
    plain = ~np.isin(subjects, odd) & (names.heads.rank.take(subjects) >= 0)
    plain &= names.tails.rank.take(np.maximum(bare, 0)) >= 0
    made = _made(chain, names.heads, names.tails, np.stack([subjects[plain], kinds[plain], bare[plain]]), written)
    left = most - len(made)
    if left < 0:
        return None
    odd_ones = np.isin(subjects, odd)
    chain.coder.learn(" " + place.tail(one) for one in found[odd_ones & (bare < 0)].tolist())
    for head in odd.tolist():
        check()
        if (branch := _at(chain, names.heads, head)) is not None:
            more = _taken((one.ids[len(branch.ids) :] for one in through(branch)), left)
            if more is None:
                return None
            if more:
                made.heads.append((branch.ids, len(made.ends)))
                made.ends.append(more)
                left -= len(more)
    if len(odd):
        made.heads.sort()
    return made


def _taken(found: Iterator[Ids], most: int) -> list[Ids] | None:
    taken: list[Ids] = []
    for one in found:
        if len(taken) >= most:
            return None
        taken.append(one)
    return sorted(taken)


def _relation(chain: Chain, kind: int) -> Ids:
    return chain._shared.sequence(" " + named(chain.walk.place.relation(kind)), chain.coder.arrow)


def _made(chain: Chain, heads: Lexicon, tails: Lexicon, triples: Numbers, written: dict[int, Ids]) -> Parts:
    """The heads of triples (subjects, relations and objects: int64, 3 by triples) with what follows
    each; a triple that is said twice is one.
    """
    found = Parts()
    if not triples.shape[1]:
        return found
    # Heads rise by their ranks; what each goes on with rises too, so that the same is the same.
    triples = triples[:, np.lexsort((triples[2], triples[1], heads.rank.take(triples[0])))]
    again = np.all(triples[:, 1:] == triples[:, :-1], axis=0)
    triples = triples[:, np.concatenate([[True], ~again])]
    subjects, opened = triples[0], chain.coder.open
    # Rows of relation and object, so that what follows a head is a slice.
    following = np.ascontiguousarray(triples[1:].T)
    bounds = [0, *(np.flatnonzero(subjects[1:] != subjects[:-1]) + 1).tolist(), len(subjects)]
    numbers: dict[bytes, int] = {}
    for low, high in pairwise(bounds):
        key = following[low:high].tobytes()
        end = numbers.get(key)
        if end is None:
            end = numbers[key] = len(found.ends)
            pairs = following[low:high].tolist()
            found.ends.append(sorted((*written[kind], *tails.of(thing)) for kind, thing in pairs))
        found.heads.append(((*opened, *heads.of(int(subjects[low]))), end))
    return found


def _at(chain: Chain, heads: Lexicon, head: int) -> Chain | None:
    """The chain behind a head; None of one that cannot be written."""
    if heads.rank[head] < 0:
        return None
    found = chain.copy()
    for token in (*chain.coder.open, *heads.of(head)):
        found.advance(token)
    return found
