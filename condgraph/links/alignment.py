"""Whose entities a model knows: the numbers of a graph's entities and relations in a model."""

from __future__ import annotations

from typing import Any

import numpy as np

from condgraph.engine.errors import LinkModelError, nearest
from condgraph.links.edges import Edges, Ints
from condgraph.links.model import LinkModel

_SAME = "entities of a model are named by the ids of the graph's, relations by its predicates"


class Alignment:
    """The edges of a graph in the numbers of a model. Raises `LinkModelError` for a model of
    another graph: none of its entities, or none of its relations, is in this one.
    """

    def __init__(self, model: LinkModel, edges: Edges) -> None:
        self.model = model
        self._numbers = {name: number for number, name in enumerate(model.entities)}
        self._relations = {name: number for number, name in enumerate(model.relations)}
        places = [self._numbers.get(name, -1) for name in edges.entities]
        #: The model's number of each entity of the graph, and of each relation; -1 for none.
        self.entities: Ints = np.array(places, np.int64)
        self.relations: Ints = np.array([self._relations.get(name, -1) for name in edges.relations], np.int64)
        for what, mine, theirs in (("entities", self.entities, model.entities), ("relations", self.relations, model.relations)):
            if not (mine >= 0).any():
                raise LinkModelError(
                    f"the model is of another graph: none of its {len(theirs):,} {what} is in this one", hint=_SAME
                )
        triples = np.stack(
            [self.entities[edges.triples[:, 0]], self.relations[edges.triples[:, 1]], self.entities[edges.triples[:, 2]]], axis=1
        )
        #: The graph's edges that the model can number.
        self.edges = Edges(model.entities, model.relations, triples[(triples >= 0).all(axis=1)])

    @property
    def warnings(self) -> list[str]:
        """What of the graph the model does not know."""
        found: list[str] = []
        for what, numbers in (("entities", self.entities), ("relations", self.relations)):
            unknown = int((numbers < 0).sum())
            if unknown:
                found.append(
                    f"the model does not know {unknown:,} of the graph's {len(numbers):,} {what}; nothing is predicted of them"
                )
        return found

    def relation(self, name: str) -> int:
        """The model's number of a relation; raises `LinkModelError` for one that it lacks."""
        return relation_of(self.model, self._relations, name)


def relation_of(model: Any, numbers: dict[str, int], name: str) -> int:
    """The number of a relation; raises `LinkModelError` where there is none."""
    found = numbers.get(name)
    if found is None:
        raise LinkModelError(
            f"the model has no relation {name!r}",
            candidates=nearest(name, model.relations),
            hint=f"it was trained on {len(model.relations)} relations; train one on a graph that has it",
        )
    return found
