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
    """Answer a logical query (QTO): a text such as `?x : exists ?v. award("Nobel", ?v) and born(?v, ?x)`, BetaE's
    nested tuples, or the name of a structure with its branches: `"2in", ["A", "r"], ["B", "s"]`.

    Without a `model` the answers are those of the graph alone. A link prediction model (`links.model.LinkModel`, or the
    path of a file with embeddings) adds answers by predicted edges with a score of at least `epsilon` (0.001), at most
    `cap` per row; every answer has its score and the edges it rests on. With `predict=True` and no model, rules predict
    the edges: they are learned within 60 s of processor time for each state of the graph and stored in its folder, and
    each predicted edge has its rules. `k` is the maximum number of answers (None: all), `alpha` scales negated scores.
    With `explain=False` an explanation is computed when it is first read. `timeout` is in seconds. `at`, `between` and
    `certain` restrict the statements, and those that rules are learned from, to a time, as for `kopl`; a `model`
    predicts the same edges at every time.
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
    """Store the edges that a model predicts next to a graph on a server, in place of earlier ones, and return their
    number. They are not part of the graph; `remove_predictions` removes them.

    `relations` are by default all that the model knows. `epsilon` is the lowest score, `cap` the maximum number of
    edges that leave a node by one relation. `on_count` is called with the number of edges before anything is written;
    nothing is written unless it returns True.
    """
    from condgraph.logic.ask import matrix_of
    from condgraph.logic.store_edges import edges_of, predicted_rows, write

    with within(graph.timeout if timeout is None else timeout):
        edges = edges_of(graph._store_of(None), graph.name)
        snapshot = graph.snapshot().current
        matrix = matrix_of(snapshot, model, epsilon, cap)
        shared = [name for name in snapshot.schema.relations if name in set(model.relations)]
        rows = list(predicted_rows(snapshot, matrix, shared if relations is None else relations))
        if on_count is None or on_count(len(rows)):
            write(edges, rows)
        return len(rows)


def remove_predictions(graph: LogicGraph, *, timeout: float | None = None) -> None:
    """Remove the predicted edges that are stored next to a graph on a server."""
    from condgraph.logic.store_edges import edges_of

    with within(graph.timeout if timeout is None else timeout):
        edges_of(graph._store_of(None), graph.name).clear()


def logic_stored(
    graph: LogicGraph, query: Any, *branches: Any, k: int | None = 10, alpha: float = 1.0, timeout: float | None = None
) -> StoredScores:
    """Answer a logical query on a server with one query of the store, over the graph and the predicted edges stored
    next to it (`write_predictions`). The answers have scores, but no explanations.

    Raises `UnsupportedError` for a query that the store's language cannot express.
    """
    from condgraph.logic.ask import stored_scores

    with within(graph.timeout if timeout is None else timeout):
        return stored_scores(graph._store_of(None), graph.name, query, branches, k, alpha)
