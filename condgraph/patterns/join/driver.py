"""Bounds that grow until the first k solutions are proved: what is found under a bound is all there
is under it.

The first bound is the least distance that anything can have (Eq. 9 and 10 with nothing mapped).
While fewer than k solutions are found, it grows by steps of the terms: to the next nearest
predicate or the nearest few names, then to more of them, and so on. Parts of a pattern that nothing
joins are searched one by one and put together by their summed distance.
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
from condgraph.patterns.options import AGAINST, MOST
from condgraph.patterns.problem import Problem
from condgraph.patterns.ranking import Rows, best_of_groups, first

#: Rows of each part, for each node of the pattern, beyond those that are wanted: parts may have
#: nodes in common.
_SPARE: Final = 2
#: Candidates of a known node that the bound lets in, round after round.
_WIDTHS: Final = tuple(4 * 8**turn for turn in range(12))
#: Edges against the pattern that the bound lets in one by one.
_TURNED: Final = 4


@dataclass(slots=True)
class Outcome:
    """What a search found: rows in their order, whether these are all that were asked for, rounds,
    and the last bound.
    """

    rows: Rows
    complete: bool = True
    more: bool = False
    rounds: int = 0
    bound: int = 0


def search(problem: Problem, k: int | None, by: Sequence[int], *, most: int | None = None) -> Outcome:
    """The first k solutions (groups, where `by` has nodes); with k None all at the best distance,
    at most `MOST`. With `most`, only those of at most that distance.
    """
    parts = components(problem)
    nodes = range(len(problem.domains))
    least = problem.least(nodes)
    wanted = 1 if k is None else k
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
            # Where to go on may take a search of its own.
            bound = next(rounds, None)
            if bound is None or (most is not None and outcome.bound >= most and outcome.rounds):
                break
            bound = bound if most is None else min(bound, most)
            outcome.rounds, outcome.bound = outcome.rounds + 1, bound
            if k is None and bound > least:
                # First how near the nearest is, then all that are as near.
                found = _under(problem, parts, bound, 1, (), sofar)
                if len(found):
                    bound = outcome.bound = int(found.totals[0])
                    found = _under(problem, parts, bound, None, by, sofar)
            else:
                found = _under(problem, parts, bound, k, by, sofar)
        except DeadlineError:
            # What is there already is put in order in any case.
            late = True
            with bounded_by(None):
                found = _ranked([best, *sofar], problem, k, by)
        if len(found) >= len(best):
            best = found
        if late or len(best) >= wanted:
            break
    if k is None and len(best):
        best = best.take(np.flatnonzero(best.totals == best.totals[0]))
        outcome.more = len(best) > MOST
        best = best.take(np.arange(min(len(best), MOST)))
    outcome.rows, outcome.complete = best, not late
    return outcome


def bounds(problem: Problem, least: int) -> Iterator[int]:
    """The bounds of a search, growing; the last lets in everything."""
    yield least
    known = [domain for domain in problem.domains if not domain.open]
    edges = [bond.steps for bond in [*problem.bonds, *problem.loops.values()] if bond.steps]
    before = 0
    # Edges that run against the pattern cost little each, and lie below names and predicates that
    # open whole hubs.
    for number in range(1, min(problem.soft, _TURNED) + 1):
        before = number * AGAINST
        yield least + before
    for turn, width in enumerate(_WIDTHS):
        ahead = [step - domain.least for domain in known if (step := domain.step(width)) is not None]
        place = 2**turn - 1
        ahead += [steps[place] for steps in edges if place < len(steps)]
        step = min((one for one in ahead if one > before), default=None)
        if step is None:
            break
        yield least + step
        before = step
    yield BARRED - 1


def components(problem: Problem) -> list[list[int]]:
    """The nodes of each connected part, parts and nodes by first mention."""
    part = list(range(len(problem.domains)))
    for bond in problem.bonds:
        old, new = max(part[bond.first], part[bond.second]), min(part[bond.first], part[bond.second])
        part = [new if one == old else one for one in part]
    return [[node for node, one in enumerate(part) if one == name] for name in sorted(set(part))]


def _ranked(found: Sequence[Rows], problem: Problem, k: int | None, by: Sequence[int]) -> Rows:
    """Whole solutions of several rounds, each once, in their order."""
    whole = [rows for rows in found if len(rows.columns) == len(problem.domains)]
    rows = Rows.joined(whole)
    rows = best_of_groups(rows, tuple(range(len(problem.domains))), problem.graph.rank)
    if by:
        rows = best_of_groups(rows, by, problem.graph.rank)
    return first(rows, problem.graph.rank, MOST + 1 if k is None else k)


def _under(problem: Problem, parts: list[list[int]], bound: int, k: int | None, by: Sequence[int], sofar: list[Rows]) -> Rows:
    """The first k solutions, or groups, under a bound (None: all of them)."""
    wanted = MOST + 1 if k is None else k
    if len(parts) == 1:
        found = _Part(problem, parts[0], bound, 1 if by else wanted, by, sofar, beyond=0).run().rows
        return first(found, problem.graph.rank, wanted)
    need = 1 if by else wanted

    def rows_of(nodes: list[int], own: int, most: int) -> tuple[Rows, bool]:
        part = _Part(problem, nodes, own, most, by, sofar).run()
        return part.rows, part.cut

    length = need + (_SPARE * len(problem.domains) if problem.injective or problem.distinct or problem.forbidden else 0)
    while True:
        sofar.clear()
        found, sure = together(problem, parts, bound, need, length, by, sofar, rows_of)
        if sure:
            return first(found, problem.graph.rank, wanted)
        length *= 4


def run_part(problem: Problem, nodes: list[int], bound: int, length: int, by: Sequence[int]) -> tuple[Rows, bool]:
    """The first `length` solutions of a connected part (of each group, where it has nodes of `by`),
    and whether there are more.
    """
    part = _Part(problem, nodes, bound, length, by, []).run()
    return part.rows, part.cut


@dataclass(slots=True)
class _Part:
    """The search of one connected part, and the first `length` of its rows (of each group, where it
    has nodes of `by`).
    """

    problem: Problem
    nodes: list[int]
    bound: int
    length: int
    by: Sequence[int]
    sofar: list[Rows]
    #: Rows after the first `length` that are looked for, to know whether there are any.
    beyond: int = 1
    rows: Rows = field(init=False)
    #: Whether there are rows after the first `length`; known where these are looked for.
    cut: bool = False

    def run(self) -> _Part:
        self.rows = Rows(np.empty(0, np.int64), {node: np.empty(0, np.int32) for node in self.nodes})
        self.sofar.append(self.rows)
        if self.problem.server is not None:
            self.rows, self.cut = self.problem.server.part(self.problem, self.nodes, self.bound, self.length, self.by)
            self.sofar[-1] = self.rows
            return self
        # An exchange has to avoid the other nodes, and still leave the first ones.
        few = self.length + self.beyond + self.problem.spare
        Join(self.problem, self.nodes, self.bound, few, self.by, self._collect).run()
        if self.beyond:
            found = self._first(self.rows, self.length)
            self.cut = len(found) < len(self.rows)
            self.rows = self.sofar[-1] = found
        return self

    def _first(self, rows: Rows, length: int) -> Rows:
        """The first `length` of the rows, of each group where there are groups."""
        rank, by = self.problem.graph.rank, [node for node in self.by if node in self.nodes]
        return best_of_groups(rows, by, rank, length) if by else first(rows, rank, length)

    def _collect(self, rows: Rows) -> Limit:
        # A limit keeps rows from being made at all: it may be set only by what comes after all rows
        # that are looked for.
        rank, length = self.problem.graph.rank, self.length + self.beyond
        found = self._first(Rows.joined([self.rows, rows]) if len(self.rows) else rows, length)
        self.rows = self.sofar[-1] = found
        if len(found) >= length and not any(node in self.nodes for node in self.by):
            last = {node: int(rank.take(column[-1:])[0]) for node, column in found.columns.items()}
            return min(self.bound, int(found.totals[-1])), last
        return self.bound, None


def limited(problem: Problem, fixed: dict[int, int]) -> Problem:
    """The same problem with some nodes given."""
    from condgraph.patterns.distance.domains import Domain

    domains = list(problem.domains)
    for node, number in fixed.items():
        numbers = np.array([number], np.int32)
        costs = domains[node].at(numbers)
        domains[node] = Domain(np.zeros(1, np.int64) if costs is None else costs, numbers)
    return replace(problem, domains=domains)
