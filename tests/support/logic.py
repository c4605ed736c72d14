"""Judges of logical queries: small random graphs and link models, a dense recursion over complete matrices, and the
enumeration of all assignments. They share no code with what they judge.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import condgraph
from condgraph.engine.facts import Entity, Ref, Statement
from condgraph.graph import Graph
from condgraph.languages.logic import tree as trees

Dense = dict[str, NDArray[np.float64]]


@dataclass(frozen=True)
class Model:
    """A link model with given scores: `scores[r]` has one row for each head."""

    entities: Sequence[str]
    relations: Sequence[str]
    scores: NDArray[np.float32]
    inverse_scores: NDArray[np.float32]
    calibrated: bool = True

    def score_tails(self, heads: NDArray[np.int64], relation: int, *, inverse: bool = False) -> NDArray[np.float32]:
        return (self.inverse_scores if inverse else self.scores)[relation][heads]


def ids(n: int) -> list[str]:
    return [f"e{i:03d}" for i in range(n)]


def names(m: int) -> list[str]:
    return [f"r{i}" for i in range(m)]


def random_graph(dice: random.Random, n: int, relations: int, edges: int) -> tuple[Graph, list[tuple[int, int, int]]]:
    """Return a graph whose entities sort by their numbers, and its edges (head, relation, tail)."""
    triples = sorted({(dice.randrange(n), dice.randrange(relations), dice.randrange(n)) for _ in range(edges)})
    # Every relation has an edge.
    triples = sorted({*triples, *((dice.randrange(n), r, dice.randrange(n)) for r in range(relations))})
    graph = condgraph.open()
    entities, predicates = ids(n), names(relations)
    graph.add(
        [*(Entity(i, i) for i in entities), *(Statement(entities[h], predicates[r], Ref(entities[t])) for h, r, t in triples)]
    )
    return graph, triples


def random_model(seed: int, n: int, relations: int, share: float = 0.15) -> Model:
    """Return calibrated scores, symmetric in the two directions; a `share` of them is above 0."""
    rng = np.random.default_rng(seed)
    scores = np.where(rng.random((relations, n, n)) < share, rng.random((relations, n, n)), 0.0).astype(np.float32)
    return Model(ids(n), names(relations), scores, np.ascontiguousarray(scores.transpose(0, 2, 1)))


def dense_matrices(model: Model | None, edges: Sequence[tuple[int, int, int]], n: int, relations: int, epsilon: float) -> Dense:
    """Return the complete matrix of each relation (Eq. 4): 1 for an edge, else the model's score."""
    matrices: Dense = {}
    for r, name in enumerate(names(relations)):
        matrix = np.zeros((n, n)) if model is None else model.scores[r].astype(np.float64)
        matrix[matrix < epsilon] = 0.0
        matrix = np.minimum(matrix, 1 - 1e-4).astype(np.float32).astype(np.float64)
        for head, relation, tail in edges:
            if relation == r:
                matrix[head, tail] = 1.0
        matrices[name] = matrix
    return matrices


def negated(scores: Any, alpha: float) -> Any:
    return 1.0 - np.where(scores == 1.0, 1.0, np.minimum(1.0, alpha * scores))


def dense(node: trees.Tree, matrices: Dense, n: int, alpha: float) -> NDArray[np.float64]:
    """Return T* of every entity, computed with complete vectors and matrices (Eq. 5 to 10)."""
    match node:
        case trees.Anchor():
            vector = np.zeros(n)
            vector[int(node.name[1:])] = 1.0
            return vector
        case trees.Anything():
            return np.ones(n)
        case trees.Projection():
            matrix = matrices[node.relation].T if node.inverse else matrices[node.relation]
            operand = dense(node.of, matrices, n, alpha)
            weights = negated(matrix, alpha) if node.anti else matrix
            return (operand[:, None] * weights).max(axis=0)
        case trees.Intersection():
            return np.prod([dense(part, matrices, n, alpha) for part in node.parts], axis=0)
        case trees.Union():
            return 1.0 - np.prod([1.0 - dense(part, matrices, n, alpha) for part in node.parts], axis=0)
        case trees.Complement():
            return negated(dense(node.part, matrices, n, alpha), alpha)
    raise AssertionError(node)


def enumerated(node: trees.Tree, matrices: Dense, n: int, alpha: float) -> list[float]:
    """Return the same scores as the best over all assignments of the variables of a branch."""
    return [_best(node, value, matrices, n, alpha) for value in range(n)]


def _best(node: trees.Tree, value: int, matrices: Dense, n: int, alpha: float) -> float:
    slots = _slots(node)
    best = 0.0
    for assignment in itertools.product(range(n), repeat=len(slots)):
        best = max(best, _truth(node, value, dict(zip(slots, assignment, strict=True)), matrices, n, alpha))
    return best


def _slots(node: trees.Tree) -> list[int]:
    """Return the variables below a node, down to the next complement, which has its own assignments."""
    if isinstance(node, trees.Complement):
        return []
    own = [id(node)] if isinstance(node, trees.Projection) and not isinstance(node.of, trees.Anchor) else []
    return own + [slot for child in trees.children(node) for slot in _slots(child)]


def _truth(node: trees.Tree, value: int, assigned: dict[int, int], matrices: Dense, n: int, alpha: float) -> float:
    match node:
        case trees.Anchor():
            return float(int(node.name[1:]) == value)
        case trees.Anything():
            return 1.0
        case trees.Projection():
            inner_value = int(node.of.name[1:]) if isinstance(node.of, trees.Anchor) else assigned[id(node)]
            score = matrices[node.relation][(value, inner_value) if node.inverse else (inner_value, value)]
            return float(negated(score, alpha) if node.anti else score) * _truth(node.of, inner_value, assigned, matrices, n, alpha)
        case trees.Intersection():
            return float(np.prod([_truth(part, value, assigned, matrices, n, alpha) for part in node.parts]))
        case trees.Union():
            return 1.0 - float(np.prod([1.0 - _truth(part, value, assigned, matrices, n, alpha) for part in node.parts]))
        case trees.Complement():
            return float(negated(_best(node.part, value, matrices, n, alpha), alpha))
    raise AssertionError(node)


def random_tree(dice: random.Random, n: int, relations: int, depth: int, *, anti: bool = True, most: int = 3) -> trees.Tree:
    """Return a random tree with and, or, and both negations."""
    kind = dice.random()
    if depth == 0 or kind < 0.15:
        return _edge(dice, n, relations, trees.Anchor(f"e{dice.randrange(n):03d}", True))
    parts = [random_tree(dice, n, relations, depth - 1, anti=anti) for _ in range(dice.randint(2, most))]
    if kind < 0.5:
        operand = trees.Anything() if dice.random() < 0.05 else parts[0]
        return _edge(dice, n, relations, operand, anti=anti and dice.random() < 0.25)
    if kind < 0.75:
        return trees.Intersection(tuple(parts))
    if kind < 0.87:
        return trees.Union(tuple(parts))
    return trees.Complement(parts[0])


def _edge(dice: random.Random, n: int, relations: int, of: trees.Tree, *, anti: bool = False) -> trees.Projection:
    variable = None if isinstance(of, trees.Anchor) else "v"
    return trees.Projection(f"r{dice.randrange(relations)}", of, dice.random() < 0.4, anti, variable)
