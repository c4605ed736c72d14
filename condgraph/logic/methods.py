"""The methods of `Graph` for logical queries and predicted edges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from condgraph.engine.bounds import within
from condgraph.engine.tracing import traced

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from threading import Event

    from condgraph.engine.period import TimeLike
    from condgraph.logic.answers import LogicAnswers
    from condgraph.logic.ask import LogicGraph, StoredScores


def logic(
    graph: LogicGraph,
    query: Any,
    *branches: Any,
    model: Any = None,
    predict: bool = False,
    k: int | None = 10,
    alpha: float = 1.0,
    epsilon: float | None = None,
    cap: int | None = None,
    explain: bool = True,
    timeout: float | None = None,
    cancelled: Event | None = None,
    at: TimeLike | None = None,
    between: Sequence[TimeLike | None] | None = None,
    certain: bool = False,
) -> LogicAnswers:
    """Answer a logical query (QTO): text like `?x : exists ?v. award("Nobel", ?v) and born(?v,
    ?x)`, BetaE's nested tuples, or the name of a structure with its branches: `"2in", ["A",
    "r"], ["B", "s"]`.

    Without a `model` the answers are those of the graph alone. A link prediction model
    (`links.model.LinkModel`, or a file with embeddings) adds answers by predicted edges of a score of at least `epsilon`
    (0.001), at most `cap` a row; every answer has its score, and the edges it rests on. With `predict=True`
    and no model the edges are predicted by rules, which are learned within 60 s of processor time for
    each state of the graph, and stored in its folder; each predicted edge has its rules. `k` is
    the most answers (None: all), `alpha` scales what is negated. With `explain=False` an
    explanation is worked out when it is looked at. `timeout` is in seconds. `at`, `between` and `certain` restrict the
    statements, and what rules are learned from, to those of a time, as for `kopl`; a `model` predicts the same edges
    at every time.
    """
    from condgraph.engine.period import Period
    from condgraph.logic.ask import logic

    period = Period.of(at, between, certain)
    timeout = graph.timeout if timeout is None else timeout
    options: dict[str, Any] = {
        "model": model, "predict": predict, "k": k, "alpha": alpha, "epsilon": epsilon, "cap": cap, "explain": explain,
        "timeout": timeout, "period": period,
    }  # fmt: skip

    def ask() -> LogicAnswers:
        with within(timeout, cancelled):
            return logic(graph, query, branches, **options)

    return traced(graph, "logic", query, ask)


def write_predictions(
    graph: LogicGraph,
    model: Any,
    *,
    relations: Sequence[str] | None = None,
    epsilon: float | None = None,
    cap: int = 100,
    on_count: Callable[[int], bool] | None = None,
    timeout: float | None = None,
) -> int:
    """Keep the edges that a model predicts beside a graph on a server, in the place of those that
    were there; how many there are. They are no part of the graph, and `remove_predictions` takes
    them away.

    `relations` are all that the model knows by default, `epsilon` the least score, `cap` the most
    edges that leave a node by one relation. `on_count` hears their number before anything is
    written, and says whether they are to be.
    """
    from condgraph.logic.ask import matrix_of
    from condgraph.logic.store_edges import edges_of, predicted_rows, write

    with within(graph.timeout if timeout is None else timeout):
        edges = edges_of(graph._store_of(None), graph.name)
        snapshot = graph.snapshot().current
        matrix = matrix_of(snapshot, model, epsilon, cap)
        known = [name for name in snapshot.schema.relations if name in set(model.relations)]
        rows = list(predicted_rows(snapshot, matrix, known if relations is None else relations))
        if on_count is None or on_count(len(rows)):
            write(edges, rows)
        return len(rows)


def remove_predictions(graph: LogicGraph, *, timeout: float | None = None) -> None:
    """Remove the predicted edges beside a graph on a server."""
    from condgraph.logic.store_edges import edges_of

    with within(graph.timeout if timeout is None else timeout):
        edges_of(graph._store_of(None), graph.name).clear()


def logic_stored(
    graph: LogicGraph, query: Any, *branches: Any, k: int | None = 10, alpha: float = 1.0, timeout: float | None = None
) -> StoredScores:
    """Answer a logical query on a server by one query of its own, over the graph and the predicted
    edges that are kept beside it (`write_predictions`): scores, without explanations.

    Raises `UnsupportedError` for a query whose text the store does not have.
    """
    from condgraph.logic.ask import stored_scores

    with within(graph.timeout if timeout is None else timeout):
        return stored_scores(graph._store_of(None), graph.name, query, branches, k, alpha)
