"""How many solutions there are at one distance, without keeping them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from condgraph.patterns.join.driver import components
from condgraph.patterns.join.join import Join, Limit
from condgraph.patterns.join.product import pairs_of
from condgraph.patterns.problem import Problem
from condgraph.patterns.ranking import Rows


def count(problem: Problem, total: int) -> int:
    """The number of solutions of exactly this distance. Parts that nothing joins are counted
    together row by row.
    """
    parts = components(problem)
    least = problem.least(range(len(problem.domains)))
    if len(parts) == 1:
        found = 0

        def add(rows: Rows) -> None:
            nonlocal found
            found += int((rows.totals == total).sum())

        _everything(problem, parts[0], total, add)
        return found
    whole: Rows | None = None
    done: list[int] = []
    for nodes in parts:
        kept: list[Rows] = []
        bound = total - (least - problem.least(nodes))
        _everything(problem, nodes, bound, kept.append)
        if not kept:
            return 0
        own = Rows.joined(kept)
        if whole is None:
            whole, done = own, list(nodes)
            continue
        done += nodes
        pairs = [found for found, _ in pairs_of(problem, whole, own, total - (least - problem.least(done)))]
        if not pairs:
            return 0
        whole = Rows.joined(pairs)
    assert whole is not None
    return int((whole.totals == total).sum())


def _everything(problem: Problem, nodes: Sequence[int], bound: int, see: Callable[[Rows], None]) -> None:
    def collect(rows: Rows) -> Limit:
        see(rows)
        return bound, None

    if problem.server is not None:
        see(problem.server.part(problem, nodes, bound, None, ())[0])
    else:
        Join(problem, nodes, bound, None, (), collect).run()
