"""A part of a graph for a question: the triples most like it that its entities are joined to (DoG,
Appendix B), and a graph of no more than those.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Final

import numpy as np

from condgraph.chains.place import Numbers, Place
from condgraph.chains.walk import Walk, triple_of
from condgraph.engine.bounds import check
from condgraph.engine.errors import OptionError
from condgraph.engine.evidence import Evidence
from condgraph.engine.facts import Entity
from condgraph.vectors.encoder import Encoder, LexicalEncoder
from condgraph.vectors.encoders import encode

#: Triples that are compared with a question.
MOST_COMPARED: Final = 5_000
#: How many triples a prompt shows where nobody says (the paper's number).
SHOWN: Final = 120


def likest(
    place: Place, question: str, start: Sequence[int], k: int, encoder: Encoder | None = None, *, hops: int = 2,
    compared: int = MOST_COMPARED,
) -> list[int]:  # fmt: skip
    """The statements most like a question, at most k, each with the statements by which an entity of
    the question leads to it.

    `start` are entities; looked at is what lies within so many hops, the first `compared`
    statements. Likeness is the dot product of the vectors of question and triple, ties by number.
    """
    if k < 1:
        raise OptionError(f"a part has at least 1 triple, not {k}")
    found, back = _within(place, start, hops, compared)
    if not found:
        return []
    encoder = encoder or LexicalEncoder()
    texts = [_said(place, one) for one in found]
    vectors = encode(encoder, [question, *texts])
    order = np.argsort(-np.round(vectors[1:] @ vectors[0], 6), kind="stable")
    kept: dict[int, None] = {}
    for at in order.tolist():
        path, one = [], found[at]
        while one >= 0:
            path.append(one)
            one = back[one]
        fresh = [one for one in path if one not in kept]
        if len(kept) + len(fresh) > k:
            continue
        kept.update(dict.fromkeys(reversed(fresh)))
        if len(kept) >= k:
            break
    return list(kept)


def _within(place: Place, start: Sequence[int], hops: int, most: int) -> tuple[list[int], dict[int, int]]:
    """The statements within some hops, nearest first, each with the one that leads to it (-1: an
    entity of the question does).
    """
    back: dict[int, int] = {}
    reached = dict.fromkeys(start, -1)
    front = list(start)
    for _ in range(hops):
        check()
        place.reach(front)
        beyond: dict[int, int] = {}
        for node in front:
            for one in np.concatenate([place.outgoing(node), place.incoming(node)]).tolist():
                if one not in back:
                    if len(back) >= most:
                        return list(back), back
                    back[one] = reached[node]
                    for end in place.ends(one):
                        if end >= 0 and end not in reached:
                            beyond.setdefault(end, one)
        reached |= beyond
        front = list(beyond)
    return list(back), back


def _said(place: Place, statement: int) -> str:
    relation = place.relation(int(place.relations(np.array([statement]))[0]))
    return f"{place.entity(place.ends(statement)[0]).name} {relation.replace('_', ' ')} {place.tail(statement)}"


def shown(place: Place, statements: Iterable[int]) -> list[str]:
    """Statements as the context of a prompt has them."""
    return [str(triple_of(place, [one]))[2:-2] for one in statements]


def in_sight(walk: Walk, question: str, k: int, encoder: Encoder | None) -> list[int]:
    """Of what may follow, the k statements most like the question."""
    return likest(walk.place, question, walk.visited, k, encoder, hops=1)


class Part:
    """A place with some of its statements alone."""

    def __init__(self, place: Place, statements: Iterable[int]) -> None:
        self._place = place
        self._kept = np.array(sorted(set(statements)), np.int64)
        self.values, self.qualifiers, self.warnings = place.values, place.qualifiers, place.warnings

    def _inside(self, statements: Numbers) -> Numbers:
        return statements[np.isin(statements, self._kept)]

    def find(self, name: str, *, by_id: bool = False) -> list[int]:
        """As of the whole place."""
        return self._place.find(name, by_id=by_id)

    def present(self, names: Sequence[str]) -> dict[str, list[int]]:
        """As of the whole place."""
        return self._place.present(names)

    def entity(self, number: int) -> Entity:
        """As of the whole place."""
        return self._place.entity(number)

    def head(self, number: int) -> str:
        """As of the whole place."""
        return self._place.head(number)

    def reach(self, numbers: Iterable[int]) -> None:
        """As of the whole place."""
        self._place.reach(numbers)

    def outgoing(self, number: int) -> Numbers:
        """The statements of an entity that are in the part."""
        return self._inside(self._place.outgoing(number))

    def incoming(self, number: int) -> Numbers:
        """The statements in the part whose object an entity is."""
        return self._inside(self._place.incoming(number))

    def subjects(self, statements: Numbers) -> Numbers:
        """As of the whole place."""
        return self._place.subjects(statements)

    def relations(self, statements: Numbers) -> Numbers:
        """As of the whole place."""
        return self._place.relations(statements)

    def relation(self, number: int) -> str:
        """As of the whole place."""
        return self._place.relation(number)

    def bare(self, statements: Numbers) -> Numbers:
        """As of the whole place."""
        return self._place.bare(statements)

    def tail(self, statement: int) -> str:
        """As of the whole place."""
        return self._place.tail(statement)

    def ends(self, statement: int) -> tuple[int, int]:
        """As of the whole place."""
        return self._place.ends(statement)

    def same(self, statement: int) -> Hashable:
        """As of the whole place."""
        return self._place.same(statement)

    def evidence(self, statement: int) -> Evidence:
        """As of the whole place."""
        return self._place.evidence(statement)
