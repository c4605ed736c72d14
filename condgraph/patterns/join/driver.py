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
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.bounds import bounded_by, check
from condgraph.engine.errors import DeadlineError
from condgraph.patterns.distance.domains import BARRED, Bond, pair_costs
from condgraph.patterns.join.distinct import Between, apart
from condgraph.patterns.join.join import CHUNK, Join, Limit
from condgraph.patterns.options import AGAINST, MOST
from condgraph.patterns.problem import Problem
from condgraph.patterns.ranking import Rows, best_of_groups, first, groups_of

#: Rows of each part, for each node of the pattern, beyond those that are wanted: parts may have
#: nodes in common.
_SPARE: Final = 2
#: Candidates of a known node that the bound lets in, round after round.
_WIDTHS: Final = tuple(4 * 8**turn for turn in range(12))
#: Edges against the pattern that the bound lets in one by one.
_TURNED: Final = 4
#: Candidates and predicates that a beam looks at, wider where it finds too few solutions.
_BEAMS: Final = (16, 256, 4096)


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
    rounds = bounds(problem, least) if problem.server is None else two_phases(problem, parts, least, k, by)
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


def two_phases(problem: Problem, parts: list[list[int]], least: int, k: int | None, by: Sequence[int]) -> Iterator[int]:
    """The bounds of a search on a server, where a round costs a query: the least, then the one that
    a narrow beam finds.

    A beam looks at the nearest candidates and predicates alone, under no bound. What it finds are
    solutions, so the k-th of them bounds the k-th of all.
    """
    yield least
    wanted = 1 if k is None else k
    for width in _BEAMS:
        beam, narrow = narrowed(problem, width)
        if not narrow:
            break
        found = _under(beam, parts, BARRED - 1, wanted, by, [])
        if len(found) >= wanted:
            yield int(found.totals[wanted - 1])
            return
    yield BARRED - 1


def narrowed(problem: Problem, width: int) -> tuple[Problem, bool]:
    """The same problem with the nearest `width` candidates and predicates alone, and whether that
    leaves anything out.
    """
    narrow = False
    domains = []
    for domain in problem.domains:
        if not domain.open and domain.size > width:
            domain, narrow = domain.nearest(width, problem.graph.rank), True
        domains.append(domain)
    bonds, loops = [], {}
    for bond in [*problem.bonds, *problem.loops.values()]:
        some = Bond(bond.first, bond.second, bond.edges)
        some.least, some.steps = bond.least, bond.steps
        for side in {bond.first, bond.second}:
            rows = []
            for prices in bond.weights(side):
                steps = np.unique(prices[prices < BARRED])
                if len(steps) > width:
                    prices, narrow = np.where(prices <= steps[width - 1], prices, BARRED), True
                rows.append(prices)
            some.price(side, rows)
        if bond.first == bond.second:
            loops[bond.first] = some
        else:
            bonds.append(some)
    return replace(problem, domains=domains, bonds=bonds, loops=loops), narrow


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
        found = _Part(problem, parts[0], bound, 1 if by else wanted, by, sofar, wanted if by else None, beyond=0).run().rows
        return first(found, problem.graph.rank, wanted)
    need = 1 if by else wanted
    length = need + (_SPARE * len(problem.domains) if problem.injective or problem.distinct or problem.forbidden else 0)
    while True:
        sofar.clear()
        found, sure = _together(problem, parts, bound, need, length, by, sofar)
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
    #: How many groups are wanted; None is all.
    top: int | None = None
    #: Rows after the first `length` that are looked for, to know whether there are any.
    beyond: int = 1
    rows: Rows = field(init=False)
    #: Whether there are rows after the first `length`; known where these are looked for.
    cut: bool = False

    def run(self) -> _Part:
        self.rows = Rows(np.empty(0, np.int64), {node: np.empty(0, np.int32) for node in self.nodes})
        self.sofar.append(self.rows)
        if self.problem.server is not None:
            self.rows, self.cut = self.problem.server.part(self.problem, self.nodes, self.bound, self.length, self.by, self.top)
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


def _together(
    problem: Problem, parts: list[list[int]], bound: int, need: int, length: int, by: Sequence[int], sofar: list[Rows]
) -> tuple[Rows, bool]:
    """Parts put together, each by its first `length` rows; whether nothing that was dropped can be
    among those asked for.

    Two rows of one part that stand in this order stand so with any row of another part beside them.
    So a pair with a dropped row comes after all pairs that have a kept row in its place, and is not
    asked for where enough of these are solutions. Of pairs that a further part is put beside, those
    alone go on that no such pair can stand before: the dropped ones come after them.
    """
    rank, least = problem.graph.rank, problem.least(range(len(problem.domains)))
    done = parts[0]
    own = bound - (least - problem.least(done))
    found = _Part(problem, done, own, length, by, sofar).run()
    whole, cut = found.rows, found.cut
    for nodes in parts[1:]:
        own = bound - (least - problem.least(nodes))
        found = _Part(problem, nodes, own, length, by, sofar).run()
        done = done + nodes
        own = bound - (least - problem.least(done))
        partners = _Partners(whole, found.rows, own, cut, found.cut, by)
        inside = [node for node in by if node in done]
        kept: Rows | None = None
        for pairs, same in pairs_of(problem, whole, found.rows, own):
            # A pair that costs more than its rows do is no proof of what stands before.
            partners.see(pairs.take(same))
            both = pairs if kept is None else Rows.joined([kept, pairs])
            kept = best_of_groups(both, inside, rank, length) if inside else first(both, rank, length)
            cut = cut or len(kept) < len(both)
        sure = partners.fewest(length)
        if sure < need:
            return whole, False
        cut = cut or found.cut
        if kept is not None and sure < length:
            kept = best_of_groups(kept, inside, rank, sure) if inside else first(kept, rank, sure)
        whole = kept if kept is not None else Rows(np.empty(0, np.int64), {node: np.empty(0, np.int32) for node in done})
        sofar.append(whole)
    return (best_of_groups(whole, by, rank) if by else whole), True


def pairs_of(problem: Problem, left: Rows, right: Rows, bound: int) -> Iterator[tuple[Rows, NDArray[np.int64]]]:
    """Rows of two parts side by side, as far as they keep to the bound, to injectivity, and to what
    must not be joined; and the places of those that cost what their rows do.
    """
    both = [*problem.bonds, *problem.loops.values()]
    old, fresh = ([b for b in both if b.first in side.columns and b.second in side.columns] for side in (left, right))
    block = max(1, CHUNK // max(len(right), 1))
    for start in range(0, len(left) if len(right) else 0, block):
        check()
        ones = np.arange(start, min(start + block, len(left))).repeat(len(right))
        others = np.tile(np.arange(len(right)), len(ones) // len(right))
        totals = left.totals[ones] + right.totals[others]
        keep = totals <= bound
        if problem.injective:
            for column in left.columns.values():
                for beside in right.columns.values():
                    keep &= column[ones] != beside[others]
        ones, others, totals = ones[keep], others[keep], totals[keep]
        columns = {node: column[ones] for node, column in left.columns.items()}
        columns |= {node: column[others] for node, column in right.columns.items()}
        pairs = Rows(totals, columns)
        for (one, two), prices in problem.forbidden.items():
            across = (one in left.columns and two in right.columns) or (one in right.columns and two in left.columns)
            if across and len(pairs):
                pairs = pairs.take(np.flatnonzero(~joined(problem, prices, pairs.columns[one], pairs.columns[two])))
        same = np.arange(len(pairs))
        if problem.distinct and len(pairs):
            priced = apart(problem, pairs, old, fresh, alone=False, between=_between(problem))
            keep = priced.totals <= min(bound, BARRED - 1)
            same = np.flatnonzero((priced.totals == pairs.totals)[keep])
            pairs = priced.take(np.flatnonzero(keep))
        if len(pairs):
            yield pairs, same


def _between(problem: Problem) -> Between | None:
    """The edges between pairs of nodes where a server holds them; None is over the graph here."""
    return None if problem.server is None else problem.server.between


def joined(problem: Problem, prices: NDArray[np.int64], ones: NDArray[Any], others: NDArray[Any]) -> NDArray[np.bool_]:
    """Which pairs an edge of these prices joins (induced subgraphs)."""
    if problem.server is not None:
        return problem.server.joined(problem, ones, others, bool(prices[0] < BARRED), bool(prices[1] < BARRED))
    found: NDArray[np.bool_] = pair_costs(problem.graph, prices[None, :], ones, others) < BARRED
    return found


class _Partners:
    """How many partners each row that a dropped one could stand beside has among the kept ones."""

    def __init__(self, left: Rows, right: Rows, bound: int, left_cut: bool, right_cut: bool, by: Sequence[int]) -> None:
        self._sides = []
        for rows, partners, dropped in ((left, right, right_cut), (right, left, left_cut)):
            if dropped:
                # Of each group of the partners, where they have groups.
                groups = [node for node in by if node in partners.columns]
                which = groups_of(partners, groups) if groups else np.zeros(len(partners), np.int64)
                which = np.unique(which, return_inverse=True)[1]
                least = np.full(int(which.max(initial=-1)) + 1, BARRED)
                np.minimum.at(least, which, partners.totals)
                # Where the nearest partner is beyond the bound, so is what was dropped.
                wanted = int(np.sort(rows.totals).searchsorted(bound - least, "right").sum())
                self._sides.append((list(rows.columns) + groups, wanted, dict[tuple[int, ...], int]()))

    def see(self, pairs: Rows) -> None:
        """Count the partners among these pairs."""
        for nodes, _, counts in self._sides:
            columns = [pairs.columns[node].astype(np.int64) for node in nodes]
            rows, sizes = np.unique(np.stack(columns, axis=1), axis=0, return_counts=True)
            for row, size in zip(map(tuple, rows.tolist()), sizes.tolist(), strict=True):
                counts[row] = counts.get(row, 0) + size

    def fewest(self, most: int) -> int:
        """The fewest partners of a row, at most `most`: so many first pairs, of each group, come
        before all that were dropped.
        """
        for _, wanted, counts in self._sides:
            if wanted:
                most = min(most, min(counts.values())) if len(counts) >= wanted else 0
        return most


def limited(problem: Problem, fixed: dict[int, int]) -> Problem:
    """The same problem with some nodes given."""
    from condgraph.patterns.distance.domains import Domain

    domains = list(problem.domains)
    for node, number in fixed.items():
        numbers = np.array([number], np.int32)
        costs = domains[node].at(numbers)
        domains[node] = Domain(np.zeros(1, np.int64) if costs is None else costs, numbers)
    return replace(problem, domains=domains)
