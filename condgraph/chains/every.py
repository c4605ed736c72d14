"""All triples that may follow as token sequences, put together at once instead of token by token:
for grammars, which need every one of them before the first token.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from condgraph.chains.chain import Chain
from condgraph.chains.lexicon import Lexicon, Loose
from condgraph.chains.place import Numbers
from condgraph.chains.text import named
from condgraph.chains.tokens import Ids
from condgraph.engine.bounds import check


def every(chain: Chain, through: Callable[[Chain], Iterator[Chain]], most: int) -> list[Ids] | None:
    """The sequences of all triples that may follow, rising; None where there are more than `most`.

    A head whose statements are all relations without qualifiers has sequences made of its names'.
    Other heads, and a triple that is begun, are gone `through` token by token.
    """
    names, place = chain._shared.names, chain.walk.place
    if names is None or chain.ids:
        return _taken((one.ids for one in through(chain)), most)
    if not len(found := chain.walk.statements):
        return []
    kinds = place.relations(found)
    written = {kind: _relation(chain, kind) for kind in np.unique(kinds).tolist()}
    # Relations whose tokens begin others', or are others', are told apart token by token.
    clear = len(Loose(list(written.values()), list(written))) == len(written) == len(set(written.values()))
    subjects, bare = place.subjects(found), place.bare(found)
    odd = np.unique(subjects[bare < 0]) if clear else np.unique(subjects)
    plain = ~np.isin(subjects, odd)
    made = _made(chain, names.heads, names.tails, subjects[plain], kinds[plain], bare[plain], written)
    if (ids := _taken(made, most)) is None:
        return None
    chain.coder.learn(" " + place.tail(one) for one in found[~plain & (bare < 0)].tolist())
    for head in odd.tolist():
        check()
        if (branch := _at(chain, names.heads, head)) is not None:
            more = _taken((one.ids for one in through(branch)), most - len(ids))
            if more is None:
                return None
            ids += more
    return sorted(ids)


def _taken(found: Iterator[Ids], most: int) -> list[Ids] | None:
    taken: list[Ids] = []
    for one in found:
        if len(taken) >= most:
            return None
        taken.append(one)
    return taken


def _relation(chain: Chain, kind: int) -> Ids:
    return chain._shared.sequence(" " + named(chain.walk.place.relation(kind)), chain.coder.arrow)


def _made(
    chain: Chain, heads: Lexicon, tails: Lexicon, subjects: Numbers, kinds: Numbers, objects: Numbers, written: dict[int, Ids]
) -> Iterator[Ids]:
    """A sequence for each statement whose names can be written, each once."""
    kept = (heads.rank.take(subjects) >= 0) & (tails.rank.take(objects) >= 0)
    begun: dict[int, Ids] = {}
    told: set[Ids] = set()
    opened = chain.coder.open
    for subject, kind, thing in zip(subjects[kept].tolist(), kinds[kept].tolist(), objects[kept].tolist(), strict=True):
        head = begun.get(subject)
        if head is None:
            head = begun[subject] = (*opened, *_of(heads, subject))
        found = (*head, *written[kind], *_of(tails, thing))
        if found not in told:
            told.add(found)
            yield found


def _of(lexicon: Lexicon, entity: int) -> list[int]:
    """The tokens of an entity's name, with what follows it."""
    rank = lexicon.rank[entity]
    found: list[int] = lexicon.flat[lexicon.offsets[rank] : lexicon.offsets[rank + 1]].tolist()
    return found


def _at(chain: Chain, heads: Lexicon, head: int) -> Chain | None:
    """The chain behind a head; None of one that cannot be written."""
    if heads.rank[head] < 0:
        return None
    found = chain.copy()
    for token in (*chain.coder.open, *_of(heads, head)):
        found.advance(token)
    return found
