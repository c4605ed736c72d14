"""A chain as it grows: what it visited, and which triples may follow (the query-centred subgraph,
Eq. 1), without a tokenizer.

A `Walk` is never changed: the next triple gives a new one, so that beams share what they have in
common.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from condgraph.chains.place import Numbers, Place
from condgraph.chains.text import named, triple_text
from condgraph.engine.errors import OptionError
from condgraph.engine.evidence import Evidence
from condgraph.engine.facts import Entity
from condgraph.engine.values import Value

#: Triples in a chain where nobody says.
MOST_STEPS = 4


@dataclass(frozen=True)
class Triple:
    """A triple of a chain: its parts as they are written, and the statements that say it (more than
    one only where they differ in what is not written).
    """

    head: str
    relation: str
    tail: str
    statements: tuple[int, ...]
    place: Place = field(repr=False, compare=False)

    @cached_property
    def evidence(self) -> tuple[Evidence, ...]:
        """The statements with their sources."""
        return tuple(map(self.place.evidence, self.statements))

    @property
    def ends(self) -> tuple[Entity, Entity | Value]:
        """Subject and object, as entities or a value."""
        return self.evidence[0].subject, self.evidence[0].object

    def __str__(self) -> str:
        return triple_text(self.head, self.relation, self.tail)


def triple_of(place: Place, statements: Sequence[int]) -> Triple:
    """The triple that statements of one text are."""
    first = statements[0]
    relation = place.relation(int(place.relations(np.array([first]))[0]))
    return Triple(place.head(place.ends(first)[0]), named(relation), place.tail(first), tuple(statements), place)


@dataclass(frozen=True, eq=False)
class Walk:
    """The triples so far, and the entities that the next one has to touch: `visited`, beginning
    with those of the question.
    """

    place: Place
    visited: tuple[int, ...]
    triples: tuple[Triple, ...] = ()
    max_steps: int = MOST_STEPS
    repeat: bool = True

    @classmethod
    def of(cls, place: Place, query: Iterable[str | Entity], max_steps: int, repeat: bool) -> Walk:
        """The beginning of a chain from entities, by name, id or record; raises
        `UnknownNameError`. Without any, nothing may follow.
        """
        if max_steps < 1:
            raise OptionError(f"max_steps is the most triples of a chain, at least 1, not {max_steps}")
        if isinstance(query, (str, Entity)):
            query = [query]
        start: dict[int, None] = {}
        for one in query:
            start.update(dict.fromkeys(place.find(one.id, by_id=True) if isinstance(one, Entity) else place.find(one)))
        return cls(place, tuple(start), max_steps=max_steps, repeat=repeat)

    @property
    def full(self) -> bool:
        """Whether it has as many triples as it may have."""
        return len(self.triples) >= self.max_steps

    @cached_property
    def used(self) -> frozenset[int]:
        """The statements that may not come again."""
        return frozenset() if self.repeat else frozenset(one for triple in self.triples for one in triple.statements)

    def commit(self, triple: Triple) -> Walk:
        """The chain with one more triple: its ends are visited (Eq. 1), by one look at the graph."""
        ends = dict.fromkeys(self.visited)
        for one in triple.statements:
            ends.update(dict.fromkeys(end for end in self.place.ends(one) if end >= 0))
        fresh = [end for end in ends if end not in self.visited]
        self.place.reach(fresh)
        return replace(self, visited=(*self.visited, *fresh), triples=(*self.triples, triple))

    @cached_property
    def statements(self) -> Numbers:
        """Every statement that may be the next triple, sorted; none of a full chain."""
        if self.full or not self.visited:
            return np.empty(0, np.int64)
        parts = [side for one in self.visited for side in (self.place.outgoing(one), self.place.incoming(one))]
        found = np.unique(np.concatenate(parts))
        return found[~np.isin(found, list(self.used))] if self.used else found

    def following(self) -> Iterator[Triple]:
        """Every triple that may come next, each text once; texts that could be two triples are
        refused.
        """
        groups: dict[tuple[int, int, str], list[int]] = {}
        place, found = self.place, self.statements
        for one, head, kind in zip(
            found.tolist(), place.subjects(found).tolist(), place.relations(found).tolist(), strict=True
        ):  # fmt: skip
            groups.setdefault((head, kind, place.tail(one)), []).append(one)
        texts: dict[str, Triple | None] = {}
        for statements in groups.values():
            if len({place.same(one) for one in statements}) == 1:
                triple = triple_of(place, statements)
                text = str(triple)
                texts[text] = None if text in texts else triple
        yield from (triple for triple in texts.values() if triple is not None)

    @property
    def text(self) -> str:
        """The triples as they are written, one a line."""
        return "\n".join(map(str, self.triples))
