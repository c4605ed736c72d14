"""The backward propagation (QTO, Eq. 12 to 14): which nodes the variables are for an answer, on
every branch, and what each edge counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from condgraph.engine.bounds import check
from condgraph.languages.logic.tree import Anchor, Anything, Complement, Intersection, OfType, Projection, Tree, Union
from condgraph.logic.forward import Forward
from condgraph.logic.matrix import adjacency
from condgraph.logic.vector import scaled, scaled_all

Kind = Literal["constant", "anything", "type", "relation", "and", "or", "not"]
_KINDS: Final[dict[type[Tree], Kind]] = {
    Anchor: "constant",
    Anything: "anything",
    OfType: "type",
    Intersection: "and",
    Union: "or",
    Complement: "not",
}
NO_EDGE: Final = "no such edge"


@dataclass(frozen=True, slots=True)
class Edge:
    """An edge that counts for an answer, between nodes by number.

    `score` is how true it is, 1 where the graph has it (`observed`), as `statements` by number. Of
    a `negated` edge, `factor` is what is left: 1 - min(1, alpha * score).
    """

    subject: int
    relation: str
    object: int
    score: float
    factor: float
    observed: bool
    statements: tuple[int, ...] = ()
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Derivation:
    """How a node of the tree came to its score: the entity that it is (`node`, None where there is
    none), and how its parts did.

    `variable` is its name in the query. `reason` says why a score is what it is where no entity
    does. `alpha` is the negation scale.
    """

    kind: Kind
    node: int | None
    score: float
    variable: str | None = None
    parts: tuple[Derivation, ...] = ()
    edge: Edge | None = None
    reason: str = ""
    alpha: float = 1.0

    def multiplied(self) -> float:
        """The score worked out again, from the edges alone."""
        if self.kind == "relation":
            return 0.0 if self.edge is None else self.parts[0].multiplied() * self.edge.factor
        if self.kind == "and":
            return float(np.prod([part.multiplied() for part in self.parts]))
        if self.kind == "or":
            return 1.0 - float(np.prod([1.0 - part.multiplied() for part in self.parts]))
        if self.kind == "not":
            if self.edge is not None:
                return self.edge.factor
            return 1.0 - scaled(self.parts[0].multiplied(), self.alpha) if self.parts else 1.0
        return self.score

    def walk(self) -> Iterator[Derivation]:
        """This and all below, the answer first."""
        yield self
        for part in self.parts:
            yield from part.walk()

    def edges(self) -> list[Edge]:
        """All edges, the answer's first."""
        return [one.edge for one in self.walk() if one.edge is not None]


class Backward:
    """Derivations of the answers of a propagation."""

    def __init__(self, forward: Forward) -> None:
        self.forward, self.matrix = forward, forward.matrix
        self.observed = adjacency(forward.snapshot)

    def derive(self, node: Tree, value: int, variable: str | None = None) -> Derivation:
        """How `node` of the tree is `value`; the best way, and of equals the one by edges of the
        graph, then by the first entity.
        """
        check()
        score = self.forward.vectors[id(node)].one(value)
        if isinstance(node, Projection):
            return self._projection(node, value, score, variable)
        if isinstance(node, Complement):
            return self._complement(node, value, score, variable)
        parts: tuple[Derivation, ...] = ()
        if isinstance(node, (Intersection, Union)):
            parts = tuple(self.derive(part, value, variable) for part in node.parts)
        reason = f"not of type {node.concept}" if isinstance(node, OfType) and not score else ""
        reason = f"of type {node.concept}" if isinstance(node, OfType) and score else reason
        return Derivation(_KINDS[type(node)], value, score, variable, parts, None, reason, self.forward.alpha)

    def _projection(self, node: Projection, value: int, score: float, variable: str | None) -> Derivation:
        if score <= 0.0:
            return Derivation("relation", value, 0.0, variable, (), None, f"no {node.relation} leads there")
        below, weight = (self._anti_source if node.anti else self._source)(node, value)
        part = self.derive(node.of, below, node.variable)
        edge = self._edge(node, below, value, weight, node.anti)
        reason = NO_EDGE if node.anti and weight <= 0.0 else ""
        return Derivation("relation", value, score, variable, (part,), edge, reason, self.forward.alpha)

    def _edge(self, node: Projection, below: int, value: int, weight: float, negated: bool) -> Edge:
        subject, object_ = (value, below) if node.inverse else (below, value)
        key = node.relation, node.inverse
        statements = tuple(self.observed.statements(key, below, value))
        factor = 1.0 - scaled(weight, self.forward.alpha) if negated else weight
        return Edge(subject, node.relation, object_, weight, factor, bool(statements), statements, negated)

    def _source(self, node: Projection, value: int) -> tuple[int, float]:
        """The entity that an edge comes from (Eq. 13), and the score of the edge."""
        frontier, key = self.forward.vectors[id(node.of)], (node.relation, node.inverse)
        rows = self.matrix.every_row(key) if frontier.default > 0.0 else self.matrix.rows(key, frontier.ids)
        entries = np.flatnonzero(rows.ids == value)
        heads = rows.heads[np.searchsorted(rows.offsets, entries, side="right") - 1]
        weights = rows.values[entries].astype(np.float64)
        products = frontier.at(heads) * weights
        best = np.flatnonzero(products == products.max())
        first = best[np.lexsort((heads[best], -weights[best]))[0]]
        return int(heads[first]), float(weights[first])

    def _anti_source(self, node: Projection, value: int) -> tuple[int, float]:
        """The entity that an edge does not come from (Eq. 14), and the score of that edge."""
        frontier, key = self.forward.vectors[id(node.of)], (node.relation, node.inverse)
        heads = np.arange(self.matrix.size) if frontier.default > 0.0 else frontier.ids
        rows = self.matrix.rows(key, heads)
        entries = np.flatnonzero(rows.ids == value)
        weights = np.zeros(len(heads))
        there = rows.heads[np.searchsorted(rows.offsets, entries, side="right") - 1]
        weights[np.searchsorted(heads, there)] = rows.values[entries]
        products = frontier.at(heads) * (1.0 - scaled_all(weights, self.forward.alpha))
        first = int(np.argmax(products))
        return int(heads[first]), float(weights[first])

    def _complement(self, node: Complement, value: int, score: float, variable: str | None) -> Derivation:
        """Of one negated atom with a constant the edge, scored; of more than that the best way in
        which it would hold.
        """
        part, alpha = node.part, self.forward.alpha
        inner = self.forward.vectors[id(part)].one(value)
        if isinstance(part, Projection) and isinstance(part.of, Anchor) and not part.anti:
            below = self._source(part, value) if inner > 0.0 else (int(self.forward.vectors[id(part.of)].ids[0]), 0.0)
            edge = self._edge(part, *_of(below, value), True)
            return Derivation("not", value, score, variable, (), edge, NO_EDGE if inner <= 0.0 else "", alpha)
        if inner <= 0.0:
            reason = f"not of type {part.concept}" if isinstance(part, OfType) else "nothing in the graph or the model says it"
            return Derivation("not", value, score, variable, (), None, reason, alpha)
        return Derivation("not", value, score, variable, (self.derive(part, value, variable),), None, "", alpha)


def _of(below: tuple[int, float], value: int) -> tuple[int, int, float]:
    return below[0], value, below[1]
