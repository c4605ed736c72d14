"""The forward propagation (QTO, section 3.2): the scores of every node of a query computation tree,
from its leaves to its root.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from condgraph.engine.bounds import check
from condgraph.engine.errors import UnknownNameError, nearest
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.languages.logic.lower import other_use
from condgraph.languages.logic.tree import (
    Anchor,
    Anything,
    Complement,
    Intersection,
    OfType,
    Projection,
    Tree,
    Union,
    bounded,
    walk,
)
from condgraph.logic.kernels import anti_project, project
from condgraph.logic.matrix import Matrix
from condgraph.logic.vector import EVERYTHING, Ids, Vector, certain, either, product

#: A bound that was divided may be rounded up.
SLACK: Final = 1.0 - 1e-12


def checked_names(tree: Tree, snapshot: Snapshot) -> None:
    """Raise `UnknownNameError` for a name of the query that the graph does not have."""
    schema = snapshot.schema
    for node in walk(tree):
        if isinstance(node, Projection) and not schema.has_relation(node.relation):
            raise UnknownNameError(
                "relation", node.relation, candidates=nearest(node.relation, schema.relations), span=node.span,
                hint=other_use(schema, node.relation, "relation"),
            )  # fmt: skip
        if isinstance(node, OfType) and not schema.has_concept(node.concept):
            raise UnknownNameError(
                "concept", node.concept, candidates=nearest(node.concept, schema.concepts), span=node.span,
                hint=other_use(schema, node.concept, "concept"),
            )  # fmt: skip
        if isinstance(node, Anchor) and not len(anchored(node, snapshot)):
            if node.is_id:
                raise UnknownNameError("id", node.name, span=node.span)
            hint = f"it is an id: <{node.name}>" if schema.has_id(node.name) else None
            raise UnknownNameError("entity", node.name, candidates=schema.nearest_entities(node.name), span=node.span, hint=hint)


def anchored(node: Anchor, snapshot: Snapshot) -> Ids:
    """The nodes of a constant, sorted: all of a name."""
    if node.is_id:
        number = snapshot.identified(node.name)
        return np.array([number] if number >= 0 else [], np.int64)
    return snapshot.named(node.name).astype(np.int64)


class Forward:
    """One propagation. `vectors` has the scores of each node of the tree, by its identity.

    `alpha` is the negation scale. Scores below `least` are left out where that cannot change any
    answer of at least that score: along projections and intersections, since a product is no larger
    than its parts, and not under `not` and `or`.
    """

    def __init__(self, snapshot: Snapshot, matrix: Matrix, *, alpha: float = 1.0, least: float = 0.0) -> None:
        self.snapshot, self.matrix, self.alpha, self.least = snapshot, matrix, alpha, least
        self.vectors: dict[int, Vector] = {}

    def run(self, tree: Tree, candidates: Ids | None = None) -> Vector:
        """The scores of the root; right for `candidates` (sorted) alone, where they are given."""
        return self._of(tree, self.least, candidates)

    def _of(self, node: Tree, least: float, candidates: Ids | None) -> Vector:
        check()
        found = self.vectors[id(node)] = self._made(node, least, candidates)
        return found

    def _made(self, node: Tree, least: float, candidates: Ids | None) -> Vector:
        if isinstance(node, Anchor):
            return certain(anchored(node, self.snapshot))
        if isinstance(node, Anything):
            return EVERYTHING
        if isinstance(node, OfType):
            return certain(self.snapshot.members(self.snapshot.concepts_named(node.concept)).astype(np.int64))
        if isinstance(node, Projection):
            key = node.relation, node.inverse
            if node.anti:
                # The best source counts, so that what is pruned below it does not.
                return anti_project(self.matrix, key, self._of(node.of, least, None), self.alpha)
            return project(self.matrix, key, self._of(node.of, least, None), least, candidates)
        if isinstance(node, Complement):
            return self._of(node.part, 0.0, candidates).complement(self.alpha)
        if isinstance(node, Union):
            found = either([self._of(part, 0.0, candidates) for part in node.parts])
            return found.pruned(least) if found.default == 0.0 else found
        return self._intersection(node, least, candidates)

    def _intersection(self, node: Intersection, least: float, candidates: Ids | None) -> Vector:
        """The cheapest branch first; all others at its values alone, negated ones among them."""
        parts = sorted(node.parts, key=_cost)
        vectors: list[Vector] = []
        needed = least
        for part in parts:
            vector = self._of(part, needed, candidates)
            vectors.append(vector)
            if vector.default == 0.0:
                ids = vector.ids if candidates is None else np.intersect1d(candidates, vector.ids, assume_unique=True)
                candidates = ids
                if least > 0.0 and vector.values.any():
                    needed = max(needed, SLACK * least / float(vector.values.max()))
        found = product(vectors)
        return found.pruned(least) if found.default == 0.0 and least > 0.0 else found


def _cost(node: Tree) -> tuple[bool, int]:
    """Branches that name their values go first, short ones before long ones."""
    return not bounded(node), sum(isinstance(one, Projection) for one in walk(node))
