"""Evaluation of logical queries: every query is asked with all of its scores, and its hard answers
are ranked against all entities that are no answer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from condgraph.engine.bounds import check, check_bounds, within
from condgraph.engine.errors import UnknownNameError
from condgraph.languages.logic.tree import Anchor, Complement, Tree, children
from condgraph.links.edges import Edges, Ints
from condgraph.links.embeddings import model_of
from condgraph.links.ranks import rank_among
from condgraph.logic.ask import checked_alpha, matrix_of
from condgraph.logic.derivation import Backward, Derivation
from condgraph.logic.evaluation.figures import THRESHOLDS, CaseFigures, Evaluation, best_threshold
from condgraph.logic.evaluation.missing import Complete
from condgraph.logic.evaluation.queries import LogicCase
from condgraph.logic.forward import Forward
from condgraph.logic.vector import Vector

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot
    from condgraph.logic.matrix import Matrix

#: Negation scales that are tried where one is to be chosen (QTO, Table 10).
ALPHAS = (0.5, 1.0, 3.0, 5.0, 7.0, 9.0)
#: Hears how many queries are done, and of which structure the last was.
OnCase = Callable[[int, str], None]


def evaluate(
    snapshot: Snapshot,
    cases: Iterable[LogicCase],
    model: Any = None,
    *,
    held: Iterable[tuple[str, str, str]] | None = None,
    validation: Sequence[LogicCase] = (),
    alpha: float | None = None,
    epsilon: float | None = None,
    cap: int | None = None,
    explain: bool = True,
    on_case: OnCase | None = None,
    timeout: float | None = None,
) -> Evaluation:
    """Ask queries of a graph with a model of links (none: the graph alone), and rank their answers.

    `held` are the edges that the graph misses: with them answers are told by how many they need,
    and explanations are checked. `validation` queries choose the threshold of cardinality, and the
    negation scale where `alpha` is None (1 without them). `timeout` (seconds) is of all of it.
    """
    check_bounds(timeout)
    if alpha is not None:
        checked_alpha(alpha)
    begin = time.perf_counter()
    with within(timeout):
        matrix = matrix_of(snapshot, None if model is None else model_of(model), epsilon, cap)
        complete = None
        if held is not None:
            edges = Edges.of_snapshot(snapshot)
            complete = Complete(snapshot, edges, edges.numbered(held))
        if alpha is None:
            alpha = best_alpha(snapshot, matrix, validation)
        asked = Asked(snapshot, matrix, alpha, complete, explain)
        checked = best_threshold([asked.figures(case) for case in validation]) if validation else None
        found: list[CaseFigures] = []
        for number, case in enumerate(cases, 1):
            check()
            found.append(asked.figures(case))
            if on_case is not None:
                on_case(number, case.kind)
        warnings = list(getattr(matrix, "warnings", ()))
        if checked is None:
            warnings.append("there are no validation queries: the threshold of cardinality was chosen on the queries themselves")
        threshold = best_threshold(found) if checked is None else checked
    options = {"alpha": alpha, "epsilon": epsilon, "cap": cap, "threshold": threshold}
    return Evaluation(tuple(found), threshold, options, time.perf_counter() - begin, tuple(warnings))


def best_alpha(snapshot: Snapshot, matrix: Matrix, cases: Sequence[LogicCase]) -> float:
    """The negation scale whose mean reciprocal rank is the highest on these queries, the first of
    equals; 1 where none of them negates.
    """
    negating = [case for case in cases if any(isinstance(node, Complement) for node in _walk(case.tree()))]
    if not negating:
        return 1.0

    def mrr(alpha: float) -> float:
        asked = Asked(snapshot, matrix, alpha, None, False)
        ranks = [asked.figures(case).ranks for case in negating]
        return float(np.mean([float(np.mean(1 / one)) for one in ranks if len(one)] or [0.0]))

    return max(ALPHAS, key=mrr)


class Asked:
    """What is asked, and with what."""

    def __init__(self, snapshot: Snapshot, matrix: Matrix, alpha: float, complete: Complete | None, explain: bool) -> None:
        self.snapshot, self.matrix, self.alpha, self.complete, self.explain = snapshot, matrix, alpha, complete, explain

    def figures(self, case: LogicCase) -> CaseFigures:
        """The figures of one query; raises `UnknownNameError` for an entity that the graph lacks."""
        tree = case.tree()
        for node in _walk(tree):
            if isinstance(node, Anchor):
                self._number(node.name)
        forward = Forward(self.snapshot, self.matrix, alpha=self.alpha)
        vector = forward.run(tree)
        scores = _dense(vector, self.snapshot.entities)
        easy, hard = self._numbers(case.easy), self._numbers(case.hard)
        ranks = rank_among(scores, hard, easy) if len(hard) else np.empty(0)
        missing, explained = None, tuple[bool | None, ...](None for _ in hard)
        if self.complete is not None:
            costs = self.complete.costs(tree)
            missing = costs[id(tree)][hard]
            if self.explain:
                backward = Backward(forward)
                explained = tuple(
                    holds(backward.derive(tree, node), tree, self.complete, costs) if scores[node] > 0 else None
                    for node in hard.tolist()
                )
        above = tuple(int(np.count_nonzero(scores > threshold)) for threshold in THRESHOLDS)
        return CaseFigures(case.kind, ranks, missing, explained, len(np.union1d(easy, hard)), above)

    def _numbers(self, ids: Iterable[str]) -> Ints:
        return np.unique(np.array([self._number(one) for one in ids], np.int64))

    def _number(self, ident: str) -> int:
        found = self.snapshot.identified(ident)
        if found < 0:
            raise UnknownNameError("entity", ident, hint="queries name entities by their ids in the graph")
        return found


def holds(found: Derivation, tree: Tree, complete: Complete, costs: dict[int, Any]) -> bool:
    """Whether an explanation is true in the complete graph: each of its edges is there, and what it
    says is not, is not.
    """
    if isinstance(tree, Complement):
        return found.node is not None and not np.isfinite(costs[id(tree.part)][found.node])
    if found.edge is not None:
        there = complete.has(found.edge.relation, found.edge.subject, found.edge.object)
        if there == found.edge.negated:
            return False
    elif found.kind == "relation":
        return False
    parts = [holds(part, below, complete, costs) for part, below in zip(found.parts, children(tree), strict=True)]
    return any(parts) if found.kind == "or" else all(parts)


def _dense(vector: Vector, size: int) -> Any:
    scores = np.full(size, vector.default)
    scores[vector.ids] = vector.values
    return scores


def _walk(tree: Tree) -> Iterable[Tree]:
    yield tree
    for child in children(tree):
        yield from _walk(child)
