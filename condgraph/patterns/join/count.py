"""Counts the solutions at one distance without storing them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from condgraph.patterns.join.driver import components
from condgraph.patterns.join.join import Join, Limit
from condgraph.patterns.join.product import pairs_of
from condgraph.patterns.problem import Problem
from condgraph.patterns.ranking import Rows


def count(problem: Problem, total: int) -> int:
    """Return the number of solutions at exactly this distance. Disconnected parts are counted by joining their rows."""
    parts = components(problem)
    least = problem.least(range(len(problem.domains)))
    if len(parts) == 1:
        number = 0

        def add(rows: Rows) -> None:
            nonlocal number
            number += int((rows.totals == total).sum())

        _everything(problem, parts[0], total, add)
        return number
    joined_rows: Rows | None = None
    joined_nodes: list[int] = []
    for nodes in parts:
        batches: list[Rows] = []
        bound = total - (least - problem.least(nodes))
        _everything(problem, nodes, bound, batches.append)
        if not batches:
            return 0
        rows_of_part = Rows.joined(batches)
        if joined_rows is None:
            joined_rows, joined_nodes = rows_of_part, list(nodes)
            continue
        joined_nodes += nodes
        pairs = [rows for rows, _ in pairs_of(problem, joined_rows, rows_of_part, total - (least - problem.least(joined_nodes)))]
        if not pairs:
            return 0
        joined_rows = Rows.joined(pairs)
    assert joined_rows is not None
    return int((joined_rows.totals == total).sum())


def _everything(problem: Problem, nodes: Sequence[int], bound: int, see: Callable[[Rows], None]) -> None:
    def collect(rows: Rows) -> Limit:
        see(rows)
        return bound, None

    if problem.server is not None:
        see(problem.server.part(problem, nodes, bound, None, ())[0])
    else:
        Join(problem, nodes, bound, None, (), collect).run()
