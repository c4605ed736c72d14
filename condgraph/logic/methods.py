"""The methods of a graph that answer logical queries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from condgraph.engine.bounds import check_bounds, within

if TYPE_CHECKING:
    from threading import Event

    from condgraph.engine.snapshot.snapshot import Snapshot
    from condgraph.engine.store import Store
    from condgraph.logic.answers import LogicAnswers


class LogicMethods:
    """What `Graph` has of them."""

    if TYPE_CHECKING:
        timeout: float | None

        @property
        def current(self) -> Snapshot:
            """The open generation."""

        def _store_of(self, engine: str | None) -> Store: ...

    def logic(
        self,
        query: Any,
        *branches: Any,
        model: Any = None,
        k: int | None = 10,
        alpha: float = 1.0,
        epsilon: float | None = None,
        cap: int | None = None,
        explain: bool = True,
        timeout: float | None = None,
        cancelled: Event | None = None,
    ) -> LogicAnswers:
        """Answer a logical query (QTO): text like `?x : exists ?v. award("Nobel", ?v) and born(?v,
        ?x)`, BetaE's nested tuples, or the name of a structure with its branches: `"2in", ["A",
        "r"], ["B", "s"]`.

        Without a `model` the answers are those of the graph alone. A model of links
        (`links.model.LinkModel`, or a file with embeddings) adds answers by predicted edges of a score of at least `epsilon`
        (0.001), at most `cap` a row; every answer has its score, and the edges it rests on. `k` is
        the most answers (None: all), `alpha` scales what is negated. With `explain=False` an
        explanation is worked out when it is looked at. `timeout` is in seconds.
        """
        from condgraph.logic.ask import logic

        check_bounds(timeout)
        timeout = self.timeout if timeout is None else timeout
        with within(timeout, cancelled):
            return logic(
                self, query, branches, model=model, k=k, alpha=alpha, epsilon=epsilon, cap=cap, explain=explain, timeout=timeout
            )
