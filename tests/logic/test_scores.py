"""Scores of logical queries against judges that share no code with them: a dense recursion, and
every assignment.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

from condgraph.languages.logic.tree import bounded
from condgraph.logic import propagation
from condgraph.logic.ask import ranked
from condgraph.logic.predicted import Predicted
from condgraph.logic.propagation import Backward, Forward, adjacency
from tests.support import logic as judge
from tests.support.lanes import by_lane

ALPHAS = (1.0, 3.0, 6.0)


def spelled(vector, n):
    found = np.full(n, vector.default)
    found[vector.ids] = vector.values
    return found


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("predicted", [False, True])
def test_random_trees_equal_a_dense_recursion(alpha: float, predicted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    dice = random.Random(f"{alpha}{predicted}")
    for round_ in range(by_lane(6, 25, 50)):
        # Each way of projecting is taken, however small the graph.
        for name, least in (("MIN_TABLE", 0), ("IN_CACHE", 3), ("CHUNK", 2)):
            monkeypatch.setattr(propagation, name, dice.choice((least, 65_536)))
        n, relations = dice.choice((7, 25, 60)), 3
        graph, edges = judge.random_graph(dice, n, relations, 2 * n)
        model = judge.random_model(round_, n, relations, dice.choice((0.05, 0.3))) if predicted else None
        matrices = judge.dense_matrices(model, edges, n, relations, 0.01)
        own = adjacency(graph.current)
        matrix = own if model is None else Predicted(own, model, epsilon=0.01)
        for _ in range(10):
            tree = judge.random_tree(dice, n, relations, dice.randint(1, 4))
            forward = Forward(graph.current, matrix, alpha=alpha)
            found = spelled(forward.run(tree), n)
            wanted = judge.dense(tree, matrices, n, alpha)
            np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-14, err_msg=str(tree))
            if not bounded(tree):
                continue
            # The explanations, multiplied again, are the scores; and the best k are the best of all.
            every = ranked(tree, graph.current, matrix, k=None, alpha=alpha)
            assert sorted(every.ids.tolist()) == np.flatnonzero(wanted > 0).tolist()
            for node, score in list(zip(every.ids.tolist(), every.scores.tolist(), strict=True))[:4]:
                derivation = Backward(every.forward).derive(tree, node, "x")
                assert derivation.multiplied() == pytest.approx(score, rel=1e-12)
            best = ranked(tree, graph.current, matrix, k=5, alpha=alpha)
            assert best.ids.tolist() == every.ids.tolist()[:5]
            np.testing.assert_allclose(best.scores, every.scores[:5], rtol=1e-12)
            assert best.observed.tolist() == every.observed.tolist()[:5]
            derived = [Backward(best.forward).derive(tree, node, "x").multiplied() for node in best.ids.tolist()]
            np.testing.assert_allclose(derived, best.scores, rtol=1e-12)


def test_every_assignment_gives_the_same() -> None:
    dice = random.Random(5)
    tried = 0
    for round_ in range(5000):
        if tried == by_lane(60, 250, 1000):
            break
        n, relations = 4, 2
        graph, edges = judge.random_graph(dice, n, relations, 6)
        model = judge.random_model(round_, n, relations, 0.5)
        matrices = judge.dense_matrices(model, edges, n, relations, 0.01)
        alpha = dice.choice(ALPHAS)
        tree = judge.random_tree(dice, n, relations, dice.randint(1, 3), most=2)
        if len(judge._slots(tree)) > 5:
            continue
        tried += 1
        found = Forward(graph.current, Predicted(adjacency(graph.current), model, epsilon=0.01), alpha=alpha).run(tree)
        np.testing.assert_allclose(spelled(found, n), judge.enumerated(tree, matrices, n, alpha), rtol=1e-12, atol=1e-14)
