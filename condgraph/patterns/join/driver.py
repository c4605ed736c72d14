"""Raises the bound of a search until the first k solutions are proved: a search under a bound finds everything under
it.

The first bound is the least possible distance (Eq. 9 and 10 with nothing mapped). While there are fewer than k
solutions, it grows by steps of the terms: to the next nearest predicate or the nearest few names, then to more of them,
and so on. Disconnected parts of a pattern are searched one by one and joined by their summed distance.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from condgraph.engine.bounds import bounded_by
from condgraph.engine.errors import DeadlineError
from condgraph.patterns.distance.domains import BARRED
from condgraph.patterns.join.join import Join, Limit
from condgraph.patterns.join.product import together
from condgraph.patterns.options import AGAINST, MAX_SOLUTIONS
from condgraph.patterns.problem import Problem
from condgraph.patterns.ranking import Rows, best_of_groups, first

#: Extra rows of each part per node of the pattern, since parts may have nodes in common.
_SPARE: Final = 2
#: How many candidates of a known node the bound admits, by round.
_WIDTHS: Final = tuple(4 * 8**turn for turn in range(12))
#: How many edges against the pattern the bound admits one by one.
_TURNED: Final = 4


@dataclass(slots=True)
class Outcome:
    """The result of a search: rows in order, whether these are all that were requested, rounds, and the last bound."""

    rows: Rows
    complete: bool = True
    more: bool = False
    rounds: int = 0
    bound: int = 0


def search(problem: Problem, k: int | None, by: Sequence[int], *, most: int | None = None) -> Outcome:
    """Return the first k solutions (groups, if `by` has nodes); with k None, all at the best distance, at most `MAX_SOLUTIONS`.
    With `most`, only those of at most that distance.
    """
    parts = components(problem)
    nodes = range(len(problem.domains))
    least = problem.least(nodes)
    needed = 1 if k is None else k
    best = Rows(np.empty(0, np.int64), {node: np.empty(0, np.int32) for node in nodes})
    outcome = Outcome(best)
    if least >= BARRED or (most is not None and least > most):
        return outcome
    late = False
    sofar: list[Rows] = []
    rounds = bounds(problem, least)
    while True:
        sofar.clear()
        try:
            # Computing the next bound may itself take a while.
            bound = next(rounds, None)
            if bound is None or (most is not None and outcome.bound >= most and outcome.rounds):
                break
            bound = bound if most is None else min(bound, most)
            outcome.rounds, outcome.bound = outcome.rounds + 1, bound
            if k is None and bound > least:
                # First the distance of the nearest, then all at that distance.
                rows = _under(problem, parts, bound, 1, (), sofar)
                if len(rows):
                    bound = outcome.bound = int(rows.totals[0])
                    rows = _under(problem, parts, bound, None, by, sofar)
            else:
                rows = _under(problem, parts, bound, k, by, sofar)
        except DeadlineError:
            # Rank the rows found so far, without a deadline.
            late = True
            with bounded_by(None):
                rows = _ranked([best, *sofar], problem, k, by)
        if len(rows) >= len(best):
            best = rows
        if late or len(best) >= needed:
            break
    if k is None and len(best):
        best = best.take(np.flatnonzero(best.totals == best.totals[0]))
        outcome.more = len(best) > MAX_SOLUTIONS
        best = best.take(np.arange(min(len(best), MAX_SOLUTIONS)))
    outcome.rows, outcome.complete = best, not late
    return outcome


def bounds(problem: Problem, least: int) -> Iterator[int]:
    """Yield the growing bounds of a search; the last admits everything."""
    yield least
    known = [domain for domain in problem.domains if not domain.open]
    edges = [bond.steps for bond in [*problem.bonds, *problem.loops.values()] if bond.steps]
    reached = 0
    # Edges against the pattern are cheap, and are tried before names and predicates that expand whole hubs.
    for number in range(1, min(problem.soft, _TURNED) + 1):
        reached = number * AGAINST
        yield least + reached
    for turn, width in enumerate(_WIDTHS):
        candidates = [step - domain.least for domain in known if (step := domain.step(width)) is not None]
        position = 2**turn - 1
        candidates += [steps[position] for steps in edges if position < len(steps)]
        step = min((candidate for candidate in candidates if candidate > reached), default=None)
        if step is None:
            break
        yield least + step
        reached = step
    yield BARRED - 1


def components(problem: Problem) -> list[list[int]]:
    """Return the nodes of each connected part; parts and nodes by first mention."""
    part = list(range(len(problem.domains)))
    for bond in problem.bonds:
        old, new = max(part[bond.first], part[bond.second]), min(part[bond.first], part[bond.second])
        part = [new if label == old else label for label in part]
    return [[node for node, label in enumerate(part) if label == root] for root in sorted(set(part))]


def _ranked(found: Sequence[Rows], problem: Problem, k: int | None, by: Sequence[int]) -> Rows:
    """Return the complete solutions of several rounds, each once, in order."""
    complete = [rows for rows in found if len(rows.columns) == len(problem.domains)]
    rows = Rows.joined(complete)
    rows = best_of_groups(rows, tuple(range(len(problem.domains))), problem.graph.rank)
    if by:
        rows = best_of_groups(rows, by, problem.graph.rank)
    return first(rows, problem.graph.rank, MAX_SOLUTIONS + 1 if k is None else k)


def _under(problem: Problem, parts: list[list[int]], bound: int, k: int | None, by: Sequence[int], sofar: list[Rows]) -> Rows:
    """Return the first k solutions, or groups, under a bound (None: all of them)."""
    limit = MAX_SOLUTIONS + 1 if k is None else k
    if len(parts) == 1:
        rows = _Part(problem, parts[0], bound, 1 if by else limit, by, sofar, beyond=0).run().rows
        return first(rows, problem.graph.rank, limit)
    need = 1 if by else limit

    def rows_of(nodes: list[int], own: int, most: int) -> tuple[Rows, bool]:
        part = _Part(problem, nodes, own, most, by, sofar).run()
        return part.rows, part.cut

    length = need + (_SPARE * len(problem.domains) if problem.injective or problem.distinct or problem.forbidden else 0)
    while True:
        sofar.clear()
        rows, proved = together(problem, parts, bound, need, length, by, sofar, rows_of)
        if proved:
            return first(rows, problem.graph.rank, limit)
        length *= 4


def run_part(problem: Problem, nodes: list[int], bound: int, length: int, by: Sequence[int]) -> tuple[Rows, bool]:
    """Return the first `length` solutions of a connected part (per group, if it has nodes of `by`), and whether there
    are more.
    """
    part = _Part(problem, nodes, bound, length, by, []).run()
    return part.rows, part.cut


@dataclass(slots=True)
class _Part:
    """The search of one connected part for its first `length` rows (per group, if it has nodes of `by`)."""

    problem: Problem
    nodes: list[int]
    bound: int
    length: int
    by: Sequence[int]
    sofar: list[Rows]
    #: How many rows after the first `length` to search for, to know whether there are any.
    beyond: int = 1
    rows: Rows = field(init=False)
    #: Whether there are rows after the first `length`; known only if `beyond` is positive.
    cut: bool = False

    def run(self) -> _Part:
        self.rows = Rows(np.empty(0, np.int64), {node: np.empty(0, np.int32) for node in self.nodes})
        self.sofar.append(self.rows)
        if self.problem.server is not None:
            self.rows, self.cut = self.problem.server.part(self.problem, self.nodes, self.bound, self.length, self.by)
            self.sofar[-1] = self.rows
            return self
        # Enough choices of a leaf that some remain besides those that the rest of a row forbids.
        leaf_choices = self.length + self.beyond + self.problem.spare
        Join(self.problem, self.nodes, self.bound, leaf_choices, self.by, self._collect).run()
        if self.beyond:
            rows = self._first(self.rows, self.length)
            self.cut = len(rows) < len(self.rows)
            self.rows = self.sofar[-1] = rows
        return self

    def _first(self, rows: Rows, length: int) -> Rows:
        """Return the first `length` of the rows, per group if there are groups."""
        rank, by = self.problem.graph.rank, [node for node in self.by if node in self.nodes]
        return best_of_groups(rows, by, rank, length) if by else first(rows, rank, length)

    def _collect(self, rows: Rows) -> Limit:
        # A limit prunes rows before they are made, so it is set only once all requested rows are there.
        rank, length = self.problem.graph.rank, self.length + self.beyond
        kept = self._first(Rows.joined([self.rows, rows]) if len(self.rows) else rows, length)
        self.rows = self.sofar[-1] = kept
        if len(kept) >= length and not any(node in self.nodes for node in self.by):
            last = {node: int(rank.take(column[-1:])[0]) for node, column in kept.columns.items()}
            return min(self.bound, int(kept.totals[-1])), last
        return self.bound, None


def limited(problem: Problem, fixed: dict[int, int]) -> Problem:
    """Return the same problem with some nodes fixed."""
    from condgraph.patterns.distance.domains import Domain

    domains = list(problem.domains)
    for node, number in fixed.items():
        numbers = np.array([number], np.int32)
        costs = domains[node].at(numbers)
        domains[node] = Domain(np.zeros(1, np.int64) if costs is None else costs, numbers)
    return replace(problem, domains=domains)
