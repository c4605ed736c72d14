"""What a question gives that a model reasoned about: the entity or value, the chain to it with its
statements, and apart from these what the model said.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from condgraph.chains.verify import Verdict
from condgraph.chains.walk import Triple, Walk
from condgraph.engine.evidence import Evidence
from condgraph.engine.facts import Entity
from condgraph.engine.values import Value, text_of


@dataclass(frozen=True, slots=True)
class Reached:
    """A chain that the search kept: its triples, its score (None where the model's server tells
    none), and the free text between, which is the model's and not the graph's.
    """

    triples: tuple[Triple, ...]
    score: float | None
    said: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join(map(str, self.triples))


@dataclass(frozen=True)
class Reasoned:
    """The answer to a question by a chain.

    `value` is an entity or value of the chain, which the model chose; None where it chose none.
    `backend` says how the model was kept to the graph, `score` and `combined` what the scores of
    `chains` are. `said` is free text of the model: it stands for nothing in the graph.
    """

    question: str
    value: Entity | Value | None
    chains: tuple[Reached, ...]
    backend: str
    model: str
    score: str
    combined: str
    query: tuple[Entity, ...]
    said: str = ""
    verdict: Verdict | None = None
    warnings: tuple[str, ...] = ()
    walk: Walk | None = field(default=None, repr=False)

    @property
    def chain(self) -> tuple[Triple, ...]:
        """The triples of the best chain."""
        return self.chains[0].triples if self.chains else ()

    @property
    def values(self) -> list[Entity | Value]:
        """The answer as a list of one, or of none."""
        return [] if self.value is None else [self.value]

    @property
    def texts(self) -> list[str]:
        """The answer as text: the name of an entity, or the text of a value."""
        return [_text(one) for one in self.values]

    @property
    def entities(self) -> list[Entity]:
        """The answer where it is an entity."""
        return [one for one in self.values if isinstance(one, Entity)]

    @cached_property
    def evidence(self) -> list[Evidence]:
        """The statements of the chain with their sources, each once."""
        return list({repr(one): one for triple in self.chain for one in triple.evidence}.values())

    @cached_property
    def alike(self) -> list[Evidence]:
        """The statements that say the same of other things: of the triple that gave the answer, all
        that have its relation and its other end.
        """
        triple = next((one for one in reversed(self.chain) if self.value is not None and self.value in one.ends), None)
        if triple is None:
            return []
        place, first = triple.place, triple.statements[0]
        head, tail = place.ends(first)
        backward = triple.ends[0] == self.value and tail >= 0
        around = place.incoming(tail) if backward else place.outgoing(head)
        kind = int(place.relations(np.array([first]))[0])
        return [place.evidence(one) for one in around[place.relations(around) == kind].tolist()]

    def data(self) -> list[dict[str, Any]]:
        """One record a triple of the chain, with its sources."""
        return [
            {
                "triple": str(triple), "head": triple.ends[0].name, "relation": triple.evidence[0].predicate,
                "tail": _text(triple.ends[1]),
                "sources": [(source.name, row) for one in triple.evidence for source, row in one.sources],
            }
            for triple in self.chain
        ]  # fmt: skip

    def __iter__(self) -> Iterator[Entity | Value]:
        return iter(self.values)

    def __len__(self) -> int:
        return len(self.values)

    def __str__(self) -> str:
        return "\n".join([*self.texts, *map(str, self.chain)])


def _text(value: Entity | Value) -> str:
    return value.name if isinstance(value, Entity) else text_of(value)
