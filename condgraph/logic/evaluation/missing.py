"""The fewest missing edges that an answer rests on: queries by the cost of their answers, where an
edge of the graph costs 0 and one that it misses costs 1.

Most hard answers of queries with several edges need one of them only. The cost of an answer that
does not hold is infinite, so that costs also say what the answers are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.bounds import check
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.languages.logic.tree import Anchor, Complement, Intersection, OfType, Projection, Tree, Union
from condgraph.links.edges import Edges, Ints

Costs = NDArray[np.float32]


class Complete:
    """A graph with the edges that it misses: `held` are triples in the numbers of `edges`."""

    def __init__(self, snapshot: Snapshot, edges: Edges, held: Edges | None = None) -> None:
        self.snapshot, self.edges = snapshot, edges
        self.size = len(edges.entities)
        self.relations = edges.relation_numbers
        triples = edges.triples if held is None else np.concatenate([edges.triples, held.triples])
        price = np.zeros(len(triples), np.float32)
        price[len(edges.triples) :] = 1
        # An edge that the graph has is not missing.
        order = np.lexsort((price, triples[:, 2], triples[:, 0], triples[:, 1]))
        triples, price = triples[order], price[order]
        first = np.append(True, (triples[1:] != triples[:-1]).any(axis=1)) if len(triples) else np.empty(0, bool)
        self.triples, self.price = triples[first], price[first]
        self._begin = np.searchsorted(self.triples[:, 1], np.arange(len(edges.relations) + 1))

    def of(self, relation: str, inverse: bool) -> tuple[Ints, Ints, Costs]:
        """From where, to where, and at what price the edges of a relation lead."""
        number = self.relations.get(relation)
        begin, end = (0, 0) if number is None else (self._begin[number], self._begin[number + 1])
        part = self.triples[begin:end]
        return part[:, 2 if inverse else 0], part[:, 0 if inverse else 2], self.price[begin:end]

    def has(self, relation: str, subject: int, other: int) -> bool:
        """Whether there is an edge, missing or not."""
        heads, tails, _ = self.of(relation, False)
        low, high = np.searchsorted(heads, [subject, subject + 1])
        return bool((tails[low:high] == other).any())

    def costs(self, tree: Tree) -> dict[int, Costs]:
        """The costs of every entity at every node of a tree, by the identity of the node."""
        found: dict[int, Costs] = {}
        self._cost(tree, found)
        return found

    def answers(self, tree: Tree) -> Ints:
        """The entities that hold, ascending."""
        return np.flatnonzero(np.isfinite(self.costs(tree)[id(tree)]))

    def _cost(self, node: Tree, found: dict[int, Costs]) -> Costs:
        check()
        made = found[id(node)] = self._made(node, found)
        return made

    def _made(self, node: Tree, found: dict[int, Costs]) -> Costs:
        if isinstance(node, Projection):
            below = self._cost(node.of, found)
            return self._anti(node, below) if node.anti else self._projected(node, below)
        if isinstance(node, Complement):
            inner = self._cost(node.part, found)
            without: Costs = np.where(np.isfinite(inner), np.float32(np.inf), np.float32(0))
            return without
        if isinstance(node, Intersection):
            total: Costs = np.sum([self._cost(part, found) for part in node.parts], axis=0, dtype=np.float32)
            return total
        if isinstance(node, Union):
            least: Costs = np.min([self._cost(part, found) for part in node.parts], axis=0)
            return least
        costs = np.full(self.size, np.inf, np.float32)
        if isinstance(node, Anchor):
            numbers = [self.snapshot.identified(node.name)] if node.is_id else self.snapshot.named(node.name).tolist()
            costs[[number for number in numbers if number >= 0]] = 0
        elif isinstance(node, OfType):
            costs[self.snapshot.members(self.snapshot.concepts_named(node.concept))] = 0
        else:
            costs[:] = 0
        return costs

    def _projected(self, node: Projection, below: Costs) -> Costs:
        heads, tails, price = self.of(node.relation, node.inverse)
        found = np.full(self.size, np.inf, np.float32)
        reached = np.isfinite(below[heads])
        np.minimum.at(found, tails[reached], below[heads[reached]] + price[reached])
        return found

    def _anti(self, node: Projection, below: Costs) -> Costs:
        """The cheapest source that has no edge there, by levels of cost."""
        heads, tails, _ = self.of(node.relation, node.inverse)
        found = np.full(self.size, np.inf, np.float32)
        for level in np.unique(below[np.isfinite(below)])[::-1]:
            sources = below == level
            joined = np.bincount(tails[sources[heads]], minlength=self.size)
            found[joined < np.count_nonzero(sources)] = level
        return found
