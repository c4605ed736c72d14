"""The methods of `Graph` that evaluate logical queries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from condgraph.engine.bounds import within

if TYPE_CHECKING:
    from threading import Event

    from condgraph.engine.store import LocalGraph
    from condgraph.logic.ask import LogicGraph
    from condgraph.logic.evaluation.run import Evaluation, OnCase
    from condgraph.logic.evaluation.sampler import By, LogicCase, Needed, Sampled
    from condgraph.logic.evaluation.sets import AnswerSets


def sample_queries(
    graph: LocalGraph,
    held: Iterable[tuple[str, str, str]],
    n: int = 50,
    *,
    kinds: Sequence[str] | None = None,
    seed: int = 0,
    most: int = 100,
    by: By = "pair",
    needed: Needed = "any",
    timeout: float | None = None,
) -> Sampled:
    """Sample logical queries with easy and hard answers for each structure (BetaE's fourteen, or `kinds`). `held` are
    edges that the graph lacks, triples of (id, predicate, id).

    A query has 1 to `most` hard answers. Queries are drawn like BetaE's, or, with `by="edge"`, so that half of them end
    at a held-out edge. With `needed="all"` hard answers need as many missing edges as the structure has. The same seed
    gives the same queries.
    """
    from condgraph.logic.evaluation.sampler import sample

    with within(graph.timeout if timeout is None else timeout):
        return sample(graph.snapshot().current, held, n, kinds=kinds, seed=seed, most=most, by=by, needed=needed)


def evaluate_logic(
    graph: LocalGraph,
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
    """Answer logical queries with known answers, and report the mean reciprocal rank and Hits@k by structure and by the
    number of missing edges.

    `model` is a link prediction model or the path of one (None: the graph alone). `held` are edges that the graph
    lacks. `validation` queries choose `alpha` if it is None, and the threshold of cardinality.
    """
    from condgraph.logic.evaluation.run import evaluate

    with within(graph.timeout if timeout is None else timeout, cancelled):
        return evaluate(
            graph.snapshot().current, cases, model, held=held, validation=validation, alpha=alpha, epsilon=epsilon, cap=cap,
            explain=explain, on_case=on_case,
        )  # fmt: skip


def answer_sets(
    graph: LogicGraph,
    held: Iterable[tuple[str, str, str]],
    model: Any,
    n: int = 500,
    *,
    kinds: Sequence[str] | None = ("1p", "2p", "2i", "3i"),
    seed: int = 0,
    alpha: float = 1.0,
    epsilon: float | None = None,
    cap: int | None = None,
    on_case: OnCase | None = None,
    timeout: float | None = None,
    cancelled: Event | None = None,
) -> AnswerSets:
    """Calibrate sets of predicted answers that contain a missing answer with a guaranteed share: `sets.ask(query,
    share=0.9)`.

    `held` are edges that the graph lacks, triples of (id, predicate, id), and that the `model` (or its file) was not
    learned from. They are used to draw `n` queries of each structure in `kinds` (None: all of `sample_queries`); the
    share that is reached exceeds the guaranteed one by at most 1 / n. `alpha`, `epsilon` and `cap` are those of
    `logic`, also for later queries.
    """
    from condgraph.links.embeddings import model_of
    from condgraph.logic.evaluation.sets import answer_sets

    with within(graph.timeout if timeout is None else timeout, cancelled):
        return answer_sets(
            graph, held, model_of(model), n, kinds=kinds, seed=seed, alpha=alpha, epsilon=epsilon, cap=cap, on_query=on_case
        )
