"""The methods of `Graph` that evaluate logical queries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from condgraph.engine.bounds import within

if TYPE_CHECKING:
    from threading import Event

    from condgraph.engine.snapshot.snapshot import Snapshot
    from condgraph.logic.evaluation.run import Evaluation, OnCase
    from condgraph.logic.evaluation.sampler import By, LogicCase, Sampled


class Opened(Protocol):
    """What these methods need of a graph."""

    timeout: float | None

    @property
    def current(self) -> Snapshot:
        """Its columns."""

    def snapshot(self) -> Opened:
        """The graph as it is now, in process."""


def sample_queries(
    graph: Opened,
    held: Iterable[tuple[str, str, str]],
    n: int = 50,
    *,
    kinds: Sequence[str] | None = None,
    seed: int = 0,
    most: int = 100,
    by: By = "pair",
    timeout: float | None = None,
) -> Sampled:
    """Draw logical queries of each structure (BetaE's fourteen, or `kinds`) with easy and hard
    answers; `held` are the edges that the graph misses, triples of (id, predicate, id).

    A query has 1 to `most` hard answers. They are drawn as BetaE draws them, or, with `by="edge"`,
    so that half of them end at a held-out edge. The same seed gives the same queries.
    """
    from condgraph.logic.evaluation.sampler import sample

    with within(graph.timeout if timeout is None else timeout):
        return sample(graph.snapshot().current, held, n, kinds=kinds, seed=seed, most=most, by=by)


def evaluate_logic(
    graph: Opened,
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
    cancelled: Event | None = None,
) -> Evaluation:
    """Ask logical queries whose answers are known, and tell how well they are answered: mean
    reciprocal rank, Hits@k, by structure and by how many edges are missing.

    `model` is a link prediction model, or the path of one (none: the graph alone). `held` are the
    edges that the graph misses; `validation` queries choose `alpha`, where it is None, and the
    threshold of cardinality.
    """
    from condgraph.logic.evaluation.run import evaluate

    with within(graph.timeout if timeout is None else timeout, cancelled):
        return evaluate(
            graph.snapshot().current, cases, model, held=held, validation=validation, alpha=alpha, epsilon=epsilon, cap=cap,
            explain=explain, on_case=on_case,
        )  # fmt: skip
