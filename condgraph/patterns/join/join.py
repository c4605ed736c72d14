"""All solutions of a connected pattern under a bound: rows of partial mappings, grown by one node
of the pattern at a time.

A row's distance so far plus the least that the nodes and edges still to come can cost (Eq. 9 and
10) never exceeds the distance of a solution it grows into, so a row above the bound goes at once
(Eq. 11). Edges that close a cycle are priced once, when their second end is found. The last to be
found are unknown leaves; of the many nodes that one may be, only the nearest few beside each row
can stand in the first k solutions: exchanging a later one for one that the row does not use yet
gives a solution before it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.bounds import check
from condgraph.patterns.distance.domains import BARRED, Bond, assignment, joined, neighbours_of, pair_costs, starts_of
from condgraph.patterns.graph import Costs, Numbers, SearchGraph
from condgraph.patterns.join.arms import MOST_CHOICES, Choices, choices, nearest, with_arms
from condgraph.patterns.join.distinct import apart
from condgraph.patterns.join.order import Step, plan_steps
from condgraph.patterns.join.semijoin import Guide, look_back
from condgraph.patterns.problem import Problem
from condgraph.patterns.ranking import Rows

#: Rows that a step may make at a time, and those of the first parts: more are made in parts, so
#: that first solutions come early, memory stays bounded, and deadlines are seen.
CHUNK: Final = 1 << 20
FIRST: Final = 1 << 14
#: A bound, and where as many solutions as are wanted have been found, the ranks of the last one's
#: nodes.
Limit: TypeAlias = tuple[int, dict[int, int] | None]


class Join:
    """One search of a connected part of the pattern, `nodes`, for solutions of at most `bound`.

    `few` is how many choices of a leaf are looked at beside each parent (None: all); `kept` are
    nodes that are never leaves. Rows are handed to `collect` in parts; it returns the limit to go
    on with.
    """

    def __init__(
        self, problem: Problem, nodes: Sequence[int], bound: int, few: int | None, kept: Sequence[int],
        collect: Callable[[Rows], Limit],
    ) -> None:  # fmt: skip
        self.problem, self.nodes, self.bound, self.few, self.collect = problem, nodes, bound, few, collect
        self._kept = set(kept)
        self._guides: dict[int, Guide] = {}
        self._last: dict[int, int] | None = None
        self._budget = min(FIRST, CHUNK)
        self._all = problem.least(nodes)
        self._bonds = len(problem.bonds) + len(problem.loops)

    def run(self) -> None:
        """Find all."""
        if self._all > self.bound:
            return
        seed, rows = self._seed()
        if not len(rows):
            return
        steps = plan_steps(self.problem, self.nodes, seed, self._kept)
        self._guides = look_back(self.problem, steps, self.bound - self._all)
        guide = self._guides.get(seed)
        if guide is not None:
            if not len(guide.nodes):
                return
            place = np.minimum(guide.nodes.searchsorted(rows.columns[seed]), len(guide.nodes) - 1)
            rows = rows.take(np.flatnonzero(guide.nodes.take(place) == rows.columns[seed]))
        # Without groups the limit on what is wanted keeps products small.
        if self._kept and self.few is not None and self.few <= MOST_CHOICES:
            steps = with_arms(self.problem, self.nodes, steps, self._kept | set(self._guides))
        self._grow(rows, steps, 0, self._all - self.problem.least([seed]))

    # -- where to begin ----------------------------------------------------------------------------

    def _seed(self) -> tuple[int, Rows]:
        """The node with the fewest neighbours to look at under the bound, and its candidates."""
        problem, slack = self.problem, self.bound - self._all
        best: tuple[int, int, Numbers, Costs] | None = None
        for node in self.nodes:
            domain = problem.domains[node]
            if domain.open:
                continue
            found, costs = domain.within(domain.least + slack)
            effort = int(problem.graph.degrees(found).sum()) if len(found) else 0
            if best is None or effort < best[0]:
                best = effort, node, found, costs
        if best is None:
            # Nothing is known: every node that has neighbours, beginning where most bonds meet.
            node = max(self.nodes, key=lambda n: (sum(n in (bond.first, bond.second) for bond in problem.bonds), -n))
            found = np.flatnonzero(np.diff(problem.graph.offsets)).astype(np.int32)
            own = problem.domains[node].at(found)
            best = 0, node, found, np.zeros(len(found), np.int64) if own is None else own
        _, node, found, costs = best
        rows = Rows(costs, {node: found})
        loop = problem.loops.get(node)
        rows = self._looped(rows, node, self._all - problem.domains[node].least - (loop.least if loop else 0))
        return node, self._apart(rows, node)

    # -- growing -----------------------------------------------------------------------------------

    def _grow(self, rows: Rows, steps: list[Step], number: int, rest: int) -> None:
        """Grow rows, to which `rest` is still to come at least, by the steps from `number` on."""
        check()
        rows = self._before_last(rows, rest)
        if not len(rows):
            return
        if number == len(steps):
            self.bound, self._last = self.collect(rows)
            return
        step = steps[number]
        parents, which = np.unique(rows.columns[step.parent], return_inverse=True)
        found = self._choices(step, parents, int(rows.totals.min()))
        if not len(found.owner):
            return
        starts = np.searchsorted(found.owner, np.arange(len(parents) + 1))
        counts = np.diff(starts)[which]
        if int(counts.sum()) <= self._budget:
            self._grow(self._extended(rows, step, which, starts, counts, found), steps, number + 1, step.rest)
            return
        # In parts, the first rows in the order of solutions first, so that the bound falls early.
        keys: list[Any] = [self.problem.graph.rank.take(rows.columns[node]) for node in reversed(self._mentioned(rows))]
        left = np.lexsort([*keys, rows.totals])
        while len(left):
            size = max(1, int(np.searchsorted(counts[left].cumsum(), self._budget, "right")))
            part, left = left[:size], left[size:]
            self._budget = min(2 * self._budget, max(CHUNK, self._budget))
            grown = self._extended(rows.take(part), step, which[part], starts, counts[part], found)
            self._grow(grown, steps, number + 1, step.rest)
            check()
            left = left[self._may_count(rows.take(left), rest)]

    def _mentioned(self, rows: Rows) -> list[int]:
        """The nodes that rows have, in the order of mention, up to the first that they lack."""
        found = []
        for node in sorted(self.nodes):
            if node not in rows.columns:
                break
            found.append(node)
        return found

    def _before_last(self, rows: Rows, rest: int) -> Rows:
        """Rows that may still grow into a solution before the last one that is wanted."""
        if self._last is None:
            return rows
        return rows.take(np.flatnonzero(self._may_count(rows, rest)))

    def _may_count(self, rows: Rows, rest: int) -> NDArray[np.bool_]:
        totals = rows.totals + rest
        if self._last is None:
            return totals <= self.bound
        # At the same distance the ids decide, by first mention.
        after, same = np.zeros(len(rows), bool), np.ones(len(rows), bool)
        for node in self._mentioned(rows):
            rank = self.problem.graph.rank.take(rows.columns[node])
            after |= same & (rank > self._last[node])
            same &= rank == self._last[node]
        found: NDArray[np.bool_] = (totals < self.bound) | ((totals == self.bound) & ~after)
        return found

    def _neighbours(self, step: Step, parents: NDArray[Any], least: int) -> tuple[NDArray[np.int64], Numbers, Costs]:
        """What `node` may be beside each parent: position in `parents`, node, cost of both;
        ascending by position.
        """
        problem, graph = self.problem, self.problem.graph
        domain, bond, guide = problem.domains[step.node], step.bond, self._guides.get(step.node)
        closing = sum(b.least for b in step.closing) + (problem.loops[step.node].least if step.node in problem.loops else 0)
        limit = min(self.bound - step.rest - least - closing, BARRED - 1)
        if guide is not None or not domain.open:
            if guide is None:
                candidates, terms = domain.within(limit - bond.least)
                excess = terms
            else:
                near: Any = np.flatnonzero(guide.excess <= limit - bond.least - domain.least)
                candidates, terms = guide.nodes.take(near), guide.terms.take(near)
                excess = guide.excess.take(near) + domain.least
            if not len(candidates):
                return np.empty(0, np.int64), candidates, terms
            mine, theirs, costs = joined(
                graph, parents, candidates, bond.weights(step.parent), bond.weights(step.node), limit - domain.least
            )
            inside = np.flatnonzero(costs + excess.take(theirs) <= limit)
            mine, theirs = mine.take(inside), theirs.take(inside)
            costs = costs.take(inside) + terms.take(theirs)
            if len(mine) > 1 and (mine[1:] < mine[:-1]).any():
                order = np.argsort(mine, kind="stable")
                mine, theirs, costs = mine[order], theirs[order], costs[order]
            return mine, candidates.take(theirs), costs
        owner, found, costs = neighbours_of(graph, parents, bond.weights(step.parent), limit)
        own = domain.at(found)
        if own is not None:
            keep = own < BARRED
            owner, found, costs = owner[keep], found[keep], costs[keep]
        return owner, found, costs

    def _choices(self, step: Step, parents: NDArray[Any], least: int) -> Choices:
        """What the nodes of a step may be beside each parent."""
        if step.arm is not None and self.few is not None:
            return choices(self.problem, step, parents, least, self.few, self._neighbours, self.bound)
        beside = self._neighbours(step, parents, least)
        if step.leaf and self.few is not None and len(beside[0]):
            beside = nearest(*beside, self.few, self.problem.graph.rank)
        owner, found, costs = beside
        return Choices(owner, {step.node: found}, costs)

    def _extended(
        self, rows: Rows, step: Step, which: NDArray[Any], starts: NDArray[Any], counts: NDArray[Any], found: Choices
    ) -> Rows:
        """Every row with every choice beside its parent, where that keeps to the bound and to what
        else is asked.
        """
        problem = self.problem
        row = np.arange(len(rows)).repeat(counts)
        ends = counts.cumsum()
        at = np.arange(int(ends[-1]) if len(ends) else 0) + (starts[which] - ends + counts).repeat(counts)
        totals = rows.totals.take(row) + found.costs.take(at)
        fresh_nodes = {node: numbers.take(at) for node, numbers in found.nodes.items()}
        rest = step.rest + sum(b.least for b in step.closing)
        loop = problem.loops.get(step.node)
        rest += loop.least if loop else 0
        keep = totals <= self.bound - rest
        if problem.injective:
            for column in rows.columns.values():
                before = column.take(row)
                for numbers in fresh_nodes.values():
                    keep &= before != numbers
        if not keep.all():
            row, totals = row[keep], totals[keep]
            fresh_nodes = {node: numbers[keep] for node, numbers in fresh_nodes.items()}
        grown = Rows(totals, {**{number: column.take(row) for number, column in rows.columns.items()}, **fresh_nodes})
        grown = self._looped(grown, step.node, rest - (loop.least if loop else 0))
        rest -= loop.least if loop else 0
        for bond in step.closing:
            rest -= bond.least
            other = bond.other(step.node)
            ones, twos = grown.columns[other], grown.columns[step.node]
            grown.totals = grown.totals + pair_costs(problem.graph, bond.weights(other), ones, twos)
            grown = grown.take(np.flatnonzero(grown.totals <= min(self.bound - rest, BARRED - 1)))
        if problem.distinct and self._bonds > 1:
            fresh = [step.bond, *([loop] if loop else []), *step.closing, *([step.arm.bond] if step.arm else [])]
            old = [b for b in self._within(rows.columns) if b not in fresh]
            # The bonds of an arm are right among themselves.
            grown = apart(problem, grown, old, fresh, alone=step.arm is None)
            grown = grown.take(np.flatnonzero(grown.totals <= min(self.bound - rest, BARRED - 1)))
        return self._apart(grown, step.node)

    def _within(self, columns: Collection[int]) -> list[Bond]:
        """The bonds, loops included, all of whose nodes are found."""
        loops = [bond for node, bond in self.problem.loops.items() if node in columns]
        return [b for b in self.problem.bonds if b.first in columns and b.second in columns] + loops

    # -- what else rows have to keep to ------------------------------------------------------------

    def _looped(self, rows: Rows, node: int, rest: int) -> Rows:
        """Rows whose `node` has the loops that the pattern asks for."""
        bond = self.problem.loops.get(node)
        if bond is None or not len(rows):
            return rows
        nodes, costs = loop_costs(self.problem.graph, bond)
        if not len(nodes):
            return rows.take(np.empty(0, np.int64))
        place = np.minimum(nodes.searchsorted(rows.columns[node]), len(nodes) - 1)
        own = np.where(nodes.take(place) == rows.columns[node], costs.take(place), BARRED)
        rows = Rows(rows.totals + own, rows.columns)
        return rows.take(np.flatnonzero(rows.totals <= min(self.bound - rest, BARRED - 1)))

    def _apart(self, rows: Rows, node: int) -> Rows:
        """Rows in which no edge joins nodes that the pattern does not join (induced subgraphs)."""
        for (first, second), prices in self.problem.forbidden.items():
            if node not in (first, second) or first not in rows.columns or second not in rows.columns or not len(rows):
                continue
            costs = pair_costs(self.problem.graph, prices[None, :], rows.columns[first], rows.columns[second])
            rows = rows.take(np.flatnonzero(costs >= BARRED))
        return rows


def loop_costs(graph: SearchGraph, bond: Bond) -> tuple[Numbers, Costs]:
    """The nodes that have the loops of a bond, ascending, and what these cost."""
    nodes, labels = graph.loops
    starts = starts_of(nodes)
    costs = assignment(bond.weights(bond.first)[:, labels], starts)
    keep = costs < BARRED
    return nodes[starts[keep]], costs[keep]
