"""Evaluates logical queries: ranks of the known answers, and the figures of a report."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.bounds import check, check_bounds, within
from condgraph.engine.errors import UnknownNameError
from condgraph.languages.logic.tree import Anchor, Complement, Tree, children
from condgraph.links.edges import Edges, Ints
from condgraph.links.embeddings import model_of
from condgraph.links.ranks import rank_among
from condgraph.logic.ask import checked_alpha, matrix_of
from condgraph.logic.evaluation.sampler import Complete, LogicCase
from condgraph.logic.propagation import Backward, Derivation, Forward, Vector

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot
    from condgraph.logic.propagation import Matrix


# -- figures -----------------------------------------------------------------------------------------
# The figures of an evaluation, and their tables: means over the answers of a query, then over the
# queries of a structure, then over structures, as papers report them.


#: The averages in Table 1 of QTO, and the structures in each.
AVERAGES: Final = {
    "avg_p": ("1p", "2p", "3p", "2i", "3i", "pi", "ip", "2u", "up"),
    "avg_ood": ("pi", "ip", "2u", "up"),
    "avg_n": ("2in", "3in", "inp", "pin", "pni"),
}
HITS: Final = (1, 3, 10)
#: The candidate thresholds of cardinality (section 4.4); validation queries choose one.
THRESHOLDS: Final = tuple(round(0.1 * step, 1) for step in range(1, 10))


@dataclass(frozen=True, slots=True)
class CaseFigures:
    """The figures of one query: the filtered rank of each hard answer, the fewest missing edges that it needs, whether
    its explanation is right (None: not computed), the number of answers, and how many have a score above each of
    `THRESHOLDS`.
    """

    kind: str
    ranks: NDArray[np.float64]
    missing: NDArray[np.float32] | None
    explained: tuple[bool | None, ...]
    answers: int
    above: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The figures of an evaluation by query, with tables of their means."""

    cases: tuple[CaseFigures, ...]
    threshold: float
    options: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    warnings: tuple[str, ...] = ()

    @property
    def kinds(self) -> list[str]:
        """The structures of the queries, in the order of the tables."""
        order = [*AVERAGES["avg_p"], *AVERAGES["avg_n"]]
        present = {case.kind for case in self.cases}
        return [*(kind for kind in order if kind in present), *sorted(present - set(order))]

    def mrr(self) -> dict[str, float]:
        """Return the mean reciprocal rank by structure, and the averages whose structures are all present."""
        return self._averaged({kind: _mean(_each(self._of(kind), lambda ranks: 1 / ranks)) for kind in self.kinds})

    def hits(self, most: int) -> dict[str, float]:
        """Return the share of hard answers with a rank of at most `most`, by structure, and the averages."""
        return self._averaged({kind: _mean(_each(self._of(kind), lambda ranks: ranks <= most)) for kind in self.kinds})

    def by_missing(self) -> dict[str, dict[int, tuple[float, int]]]:
        """Return the mean reciprocal rank of hard answers and their number, by structure and by the number of missing
        edges that they need. Each answer counts once.
        """
        by_kind: dict[str, dict[int, tuple[float, int]]] = {}
        for kind in self.kinds:
            by_number: dict[int, list[float]] = defaultdict(list)
            for case in self._of(kind):
                if case.missing is not None:
                    for rank, number in zip(case.ranks.tolist(), case.missing.tolist(), strict=True):
                        by_number[int(number) if np.isfinite(number) else -1].append(1 / rank)
            if by_number:
                by_kind[kind] = {number: (_mean(ranks), len(ranks)) for number, ranks in sorted(by_number.items())}
        return by_kind

    def explained(self) -> dict[str, dict[str, float]]:
        """Return the share of explanations that are right in the complete graph, by structure, for hard answers with a
        rank of at most 1, 3 and 10, and for all (Table 2).
        """
        by_kind: dict[str, dict[str, float]] = {}
        for kind in self.kinds:
            pairs = [
                (rank, is_right)
                for case in self._of(kind)
                for rank, is_right in zip(case.ranks.tolist(), case.explained, strict=True)
                if is_right is not None
            ]
            if pairs:
                bounds = {f"@{number}": number for number in HITS} | {"all": float("inf")}
                by_kind[kind] = {
                    name: _mean([is_right for rank, is_right in pairs if rank <= bound]) for name, bound in bounds.items()
                }
        return by_kind

    def cardinality(self) -> dict[str, float]:
        """Return the mean absolute percentage error of the number of answers, by structure (section 4.4)."""
        at = THRESHOLDS.index(self.threshold)
        return {kind: _mean([_error(case, at) for case in self._of(kind) if case.answers]) for kind in self.kinds}

    def _of(self, kind: str) -> list[CaseFigures]:
        return [case for case in self.cases if case.kind == kind]

    def _averaged(self, by_kind: dict[str, float]) -> dict[str, float]:
        averages = {
            name: _mean([by_kind[kind] for kind in kinds])
            for name, kinds in AVERAGES.items()
            if all(kind in by_kind for kind in kinds)
        }
        return {**averages, **by_kind}

    def rows(self) -> list[dict[str, Any]]:
        """Return one record for each structure and average, for tables and JSON."""
        mrr, hits = self.mrr(), {most: self.hits(most) for most in HITS}
        errors, shares, missing = self.cardinality(), self.explained(), self.by_missing()
        return [
            {
                "structure": kind,
                "queries": len(self._of(kind)) or None,
                "mrr": mrr[kind],
                **{f"hits{most}": hits[most][kind] for most in HITS},
                "mape": errors.get(kind),
                "explained": shares.get(kind),
                "by_missing": {
                    str(number): {"mrr": figures[0], "answers": figures[1]} for number, figures in missing.get(kind, {}).items()
                },
            }
            for kind in mrr
        ]

    def __str__(self) -> str:
        lines = [f"{'':8} queries    MRR     @1     @3    @10   MAPE  by missing links"]
        for row in self.rows():
            missing = "  ".join(
                f"{number}: {figures['mrr']:.3f} ({figures['answers']})" for number, figures in row["by_missing"].items()
            )
            cells = "  ".join(f"{row[name]:.3f}" for name in ("mrr", "hits1", "hits3", "hits10"))
            mape = "" if row["mape"] is None else f"{row['mape']:.3f}"
            lines.append(f"{row['structure']:8} {row['queries'] or '':>7}  {cells}  {mape:>5}  {missing}".rstrip())
        return "\n".join([*lines, *(f"warning: {warning}" for warning in self.warnings)])


def best_threshold(cases: Iterable[CaseFigures]) -> float:
    """Return the first threshold with the smallest mean error of cardinality."""
    counted = [case for case in cases if case.answers]
    if not counted:
        return THRESHOLDS[len(THRESHOLDS) // 2]
    errors = [_mean([_error(case, at) for case in counted]) for at in range(len(THRESHOLDS))]
    return THRESHOLDS[int(np.argmin(errors))]


def _error(case: CaseFigures, at: int) -> float:
    return abs(case.above[at] - case.answers) / case.answers


def _each(cases: Sequence[CaseFigures], of: Any) -> list[float]:
    return [float(np.mean(of(case.ranks))) for case in cases if len(case.ranks)]


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if len(values) else 0.0


# -- run ---------------------------------------------------------------------------------------------


#: The candidate negation scales (QTO, Table 10).
ALPHAS = (0.5, 1.0, 3.0, 5.0, 7.0, 9.0)
#: Called with the number of queries done, and the structure of the last one.
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
    """Answer queries on a graph with a link prediction model (None: the graph alone), and rank their known answers.

    `held` are edges that the graph lacks: with them answers are grouped by how many they need, and explanations are
    checked. `validation` queries choose the threshold of cardinality, and the negation scale if `alpha` is None (1
    without them). `timeout` (seconds) is for the whole evaluation.
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
        setup = EvaluationInput(snapshot, matrix, alpha, complete, explain)
        chosen_threshold = best_threshold([setup.figures(case) for case in validation]) if validation else None
        figures: list[CaseFigures] = []
        for number, case in enumerate(cases, 1):
            check()
            figures.append(setup.figures(case))
            if on_case is not None:
                on_case(number, case.kind)
        warnings = list(getattr(matrix, "warnings", ()))
        if not figures:
            warnings.append("there are no queries, so there are no figures")
        elif chosen_threshold is None:
            warnings.append("there are no validation queries: the threshold of cardinality was chosen on the queries themselves")
        threshold = best_threshold(figures) if chosen_threshold is None else chosen_threshold
    options = {"alpha": alpha, "epsilon": epsilon, "cap": cap, "threshold": threshold}
    return Evaluation(tuple(figures), threshold, options, time.perf_counter() - begin, tuple(warnings))


def best_alpha(snapshot: Snapshot, matrix: Matrix, cases: Sequence[LogicCase]) -> float:
    """Return the first negation scale with the highest mean reciprocal rank on these queries; 1 if none of them has a
    negation.
    """
    negating = [case for case in cases if any(isinstance(node, Complement) for node in _walk(case.tree()))]
    if not negating:
        return 1.0

    def mrr(alpha: float) -> float:
        setup = EvaluationInput(snapshot, matrix, alpha, None, False)
        ranks = [setup.figures(case).ranks for case in negating]
        return float(np.mean([float(np.mean(1 / case_ranks)) for case_ranks in ranks if len(case_ranks)] or [0.0]))

    return max(ALPHAS, key=mrr)


class EvaluationInput:
    """The graph, the model and the options of an evaluation."""

    def __init__(self, snapshot: Snapshot, matrix: Matrix, alpha: float, complete: Complete | None, explain: bool) -> None:
        self.snapshot, self.matrix, self.alpha, self.complete, self.explain = snapshot, matrix, alpha, complete, explain

    def figures(self, case: LogicCase) -> CaseFigures:
        """Return the figures of one query; raises `UnknownNameError` for an entity that the graph lacks."""
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
        return np.unique(np.array([self._number(ident) for ident in ids], np.int64))

    def _number(self, ident: str) -> int:
        number = self.snapshot.identified(ident)
        if number < 0:
            raise UnknownNameError("entity", ident, hint="queries name entities by their ids in the graph")
        return number


def holds(found: Derivation, tree: Tree, complete: Complete, costs: dict[int, Any]) -> bool:
    """Whether an explanation is right in the complete graph, which has all its edges and none of the negated ones."""
    if isinstance(tree, Complement):
        return found.node is not None and not np.isfinite(costs[id(tree.part)][found.node])
    if found.edge is not None:
        exists = complete.has(found.edge.relation, found.edge.subject, found.edge.object)
        if exists == found.edge.negated:
            return False
    elif found.kind == "relation":
        return False
    part_holds = [holds(part, below, complete, costs) for part, below in zip(found.parts, children(tree), strict=True)]
    return any(part_holds) if found.kind == "or" else all(part_holds)


def _dense(vector: Vector, size: int) -> Any:
    scores = np.full(size, vector.default)
    scores[vector.ids] = vector.values
    return scores


def _walk(tree: Tree) -> Iterable[Tree]:
    yield tree
    for child in children(tree):
        yield from _walk(child)
