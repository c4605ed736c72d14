"""The join of a pattern: bindings in order of distance, by semi-joins and arms."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.bounds import check
from condgraph.patterns.distance.domains import (
    BARRED,
    Domain,
    PairEdges,
    assignment,
    joined,
    neighbours_of,
    pair_costs,
    starts_of,
)
from condgraph.patterns.graph import Costs, Numbers, SearchGraph
from condgraph.patterns.join.distinct import apart
from condgraph.patterns.problem import Problem
from condgraph.patterns.ranking import Rows, places_among

# -- The order of nodes ------------------------------------------------------------------------------

# In which order the nodes of a connected part are found, one a step.


@dataclass(slots=True)
class Step:
    """Find `node` beside `parent`; `closing` bonds lead to other nodes found before. `rest` is the
    least cost of what is left then.
    """

    node: int
    parent: int
    bond: PairEdges
    closing: list[PairEdges]
    rest: int
    leaf: bool
    #: The step to a leaf behind the node, where both are found together.
    arm: Step | None = None

    @property
    def nodes(self) -> tuple[int, ...]:
        """The nodes that the step finds."""
        return (self.node,) if self.arm is None else (self.node, self.arm.node)


def plan_steps(problem: Problem, nodes: Sequence[int], seed: int, kept: Collection[int]) -> list[Step]:
    """The order of the other nodes: those bound by most, known ones, then by mention; unknown
    leaves last.

    `kept` are nodes that are never leaves.
    """
    least = problem.least(nodes)
    touching = {node: [b for b in problem.bonds if node in (b.first, b.second)] for node in nodes}
    leaves = {
        node
        for node in nodes
        if node != seed and node not in kept and len(touching[node]) == 1
        and node not in problem.loops and not problem.forbidden
    }  # fmt: skip
    found, steps = [seed], []
    rest = least - problem.least(found)
    while len(found) < len(nodes):
        ahead = [node for node in nodes if node not in found and any(b.other(node) in found for b in touching[node])]
        node = min(
            ahead,
            key=lambda n: (
                n in leaves and problem.domains[n].open, -sum(b.other(n) in found for b in touching[n]),
                problem.domains[n].open, n,
            ),
        )  # fmt: skip
        back = [b for b in touching[node] if b.other(node) in found]
        # Dearer bonds first: their predicates are known, and leave fewer neighbours.
        bond = max(back, key=lambda b: (b.least, len(b.steps)))
        found.append(node)
        rest = least - problem.least(found)
        steps.append(Step(node, bond.other(node), bond, [b for b in back if b is not bond], rest, node in leaves))
    return steps


# -- arms --------------------------------------------------------------------------------------------
# Arms of two: a node in between and an unknown leaf behind it, which hang on the rest of a pattern by
# one bond alone.
#
# At one parent, an arm has as many choices as there are paths of two from it, and two arms at a hub the square of them. Of all
# these only the first few can stand in the first solutions of a group: whatever else a row has, it forbids, or makes dearer, so
# many of them, and the first that it leaves alone gives a solution before all later ones.


#: Neighbours of parents that are looked at together.
_TOGETHER: Final = 1 << 14
#: Where more choices than these are wanted beside each parent, all of them are made as they come.
MOST_CHOICES: Final = 256
#: What a node may be beside each parent: position of the parent, ascending, node, and cost of both.
Beside: TypeAlias = tuple[NDArray[np.int64], Numbers, Costs]
#: Finds the neighbours of a step beside parents; the last is the least that rows have so far.
Neighbours: TypeAlias = Callable[[Step, NDArray[Any], int], Beside]


@dataclass(slots=True)
class Choices:
    """What nodes may be beside each parent: position of the parent, ascending, nodes by number, and
    cost.
    """

    owner: NDArray[np.int64]
    nodes: dict[int, Numbers]
    costs: Costs

    def take(self, at: NDArray[Any]) -> Choices:
        """Some of them."""
        return Choices(self.owner[at], {node: numbers[at] for node, numbers in self.nodes.items()}, self.costs[at])


def with_arms(problem: Problem, nodes: Sequence[int], steps: list[Step], apart_from: Collection[int]) -> list[Step]:
    """The steps with those of an arm put together, behind all others. `apart_from` are nodes that no arm
    has: those of groups, and known ways.
    """
    behind = {step.parent: step for step in steps if step.leaf and problem.domains[step.node].open}
    arms = []
    for step in steps:
        leaf, node = behind.get(step.node), step.node
        touching = sum(node in (bond.first, bond.second) for bond in problem.bonds)
        plain = problem.domains[node].open and node not in problem.loops and node not in apart_from and not problem.forbidden
        if leaf is not None and plain and touching == 2:
            arms.append(replace(step, leaf=True, arm=leaf))
    if not arms:
        return steps
    merged = {node for step in arms for node in step.nodes}
    found, ordered = [node for node in nodes if node not in {step.node for step in steps}], list[Step]()
    least = problem.least(nodes)
    for step in [*(step for step in steps if step.node not in merged), *arms]:
        found += step.nodes
        ordered.append(replace(step, rest=least - problem.least(found)))
    return ordered


def choices(
    problem: Problem, step: Step, parents: NDArray[Any], least: int, few: int, neighbours: Neighbours, bound: int
) -> Choices:
    """The choices of an arm beside each parent that can stand in the first solutions; `few` is how many
    choices of a single leaf are looked at.
    """
    degrees = problem.graph.degrees(parents)
    ends = np.flatnonzero(np.diff(degrees.cumsum() // _TOGETHER, append=-1)) + 1
    parts, start = [], 0
    for end in ends.tolist():
        check()
        part = _choices(problem, step, parents[start:end], least, few, neighbours, bound)
        parts.append(replace(part, owner=part.owner + start))
        start = end
    if len(parts) == 1:
        return parts[0]
    nodes = {node: np.concatenate([part.nodes[node] for part in parts]) for node in step.nodes}
    return Choices(np.concatenate([p.owner for p in parts]), nodes, np.concatenate([p.costs for p in parts]))


def _choices(
    problem: Problem, step: Step, parents: NDArray[Any], least: int, few: int, neighbours: Neighbours, bound: int
) -> Choices:
    leaf = step.arm
    assert leaf is not None
    # What else a row has, and what it leaves of one node in between, and of all of them.
    others = max(problem.spare - 1, 0)
    each = few - problem.spare + others
    owner, between, costs = neighbours(replace(step, arm=None, rest=step.rest + leaf.bond.least), parents, least)
    if not len(owner):
        return Choices(owner, {step.node: between, leaf.node: between}, costs)
    middles, which = np.unique(between, return_inverse=True)
    ahead, ends, more = neighbours(replace(leaf, rest=step.rest), middles, least + int(costs.min()))
    rank = problem.graph.rank
    # Two more, where these lead back, or nowhere else.
    ahead, ends, more = nearest(ahead, ends, more, each + 2, rank)
    starts = np.searchsorted(ahead, np.arange(len(middles) + 1))
    counts = np.diff(starts)[which]
    at = np.arange(int(counts.sum())) + (starts[which] - counts.cumsum() + counts).repeat(counts)
    found = Choices(
        owner.repeat(counts),
        {step.node: between.repeat(counts), leaf.node: ends.take(at)},
        costs.repeat(counts) + more.take(at),
    )
    check()
    columns = {step.parent: parents.take(found.owner), **found.nodes}
    if problem.injective:
        one, two, three = columns[step.parent], columns[step.node], columns[leaf.node]
        found = found.take(np.flatnonzero((one != two) & (one != three) & (two != three)))
    elif problem.distinct:
        right = apart(problem, Rows(found.costs, columns), [], [step.bond, leaf.bond], alone=True)
        found = Choices(found.owner, found.nodes, right.totals)
    found = found.take(np.flatnonzero(found.costs <= min(bound - step.rest - least, BARRED - 1)))
    keys: list[Any] = [rank.take(found.nodes[node]) for node in sorted(found.nodes, reverse=True)]
    found = found.take(np.lexsort([*keys, found.costs, found.owner]))
    # Of one node in between a row leaves all but so many; so does, where nodes are kept apart, of one leaf.
    found = found.take(np.flatnonzero(places_among(found.owner, found.nodes[step.node]) < each))
    most = few - problem.spare + others * (each + 2)
    if problem.injective:
        found = found.take(np.flatnonzero(places_among(found.owner, found.nodes[leaf.node]) < each))
        most = few - problem.spare + others * 2 * each
    return found.take(np.flatnonzero(places_among(found.owner) < most))


def nearest(owner: NDArray[np.int64], found: Numbers, costs: Costs, few: int, rank: NDArray[Any]) -> Beside:
    """The first few choices of every owner, by cost, then rank."""
    if int(np.bincount(owner).max(initial=0)) <= few:
        return owner, found, costs
    order = np.lexsort((rank.take(found), costs, owner))
    order = order[places_among(owner[order]) < few]
    return owner[order], found[order], costs[order]


# -- semijoin ----------------------------------------------------------------------------------------
# Looking back from known nodes that come late in a join: which nodes before them lead there at
# all, and at least at which price.
#
# So a join does not walk where no way leads to what is known.


#: Neighbours that are looked at to see from a known node which nodes lead to it.
LOOK: Final = 1 << 18


@dataclass(slots=True)
class Guide:
    """The only nodes that a node of the pattern may be, ascending, with their own terms.

    `excess` is by how much a node, with all that hangs on it, costs more than the least terms of
    all that.
    """

    nodes: Numbers
    terms: Costs
    excess: Costs


def look_back(problem: Problem, steps: Sequence[Step], slack: int) -> dict[int, Guide]:
    """From known nodes that come late: which nodes before them lead there at all, and at least at
    which price.

    The least cost of what hangs on a node, which takes the place of the sum of the least terms in
    the bound; `slack` is what the bound leaves beyond that sum. Stops where there are too many
    neighbours to look at.
    """
    guides: dict[int, Guide] = {}
    for step in reversed(steps):
        domain, guide = problem.domains[step.node], guides.get(step.node)
        if guide is None and domain.open:
            continue
        if guide is None:
            nodes, terms = domain.within(domain.least + slack)
            guide = Guide(nodes, terms, terms - domain.least)
        if not len(guide.nodes):
            guides[step.parent] = Guide(guide.nodes, guide.terms, guide.excess)
            continue
        if int(problem.graph.degrees(guide.nodes).sum()) > LOOK:
            continue
        limit = min(step.bond.least + slack, BARRED - 1)
        owner, found, costs = neighbours_of(problem.graph, guide.nodes, step.bond.weights(step.node), limit)
        excess = costs - step.bond.least + guide.excess.take(owner)
        keep = excess <= slack
        guides[step.parent] = _narrowed(problem.domains[step.parent], guides.get(step.parent), found[keep], excess[keep], slack)
    return guides


def _narrowed(domain: Domain, before: Guide | None, found: Numbers, excess: Costs, slack: int) -> Guide:
    """What a node may be by what it is known to lead to, together with what was known of it before."""
    order = np.argsort(found, kind="stable")
    found, excess = found[order], excess[order]
    if len(found):
        starts = starts_of(found)
        found, excess = found[starts], np.minimum.reduceat(excess, starts)
    if before is None:
        own = domain.at(found)
        terms = np.zeros(len(found), np.int64) if own is None else own
        more = terms - domain.least
    else:
        place = np.minimum(before.nodes.searchsorted(found), max(len(before.nodes) - 1, 0))
        same = np.flatnonzero(before.nodes.take(place) == found) if len(before.nodes) else np.empty(0, np.int64)
        found, excess, place = found[same], excess[same], place[same]
        terms, more = before.terms.take(place), before.excess.take(place)
    excess = excess + more
    keep = excess <= slack
    return Guide(found[keep], terms[keep], excess[keep])


# -- join --------------------------------------------------------------------------------------------
# A row's distance so far plus the least that the nodes and edges still to come can cost (Eq. 9 and
# 10) never exceeds the distance of a solution it grows into, so a row above the bound goes at once
# (Eq. 11). Edges that close a cycle are priced once, when their second end is found. The last to be
# found are unknown leaves; of the many nodes that one may be, only the nearest few beside each row
# can stand in the first k solutions: exchanging a later one for one that the row does not use yet
# gives a solution before it.


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

    def _within(self, columns: Collection[int]) -> list[PairEdges]:
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


def loop_costs(graph: SearchGraph, bond: PairEdges) -> tuple[Numbers, Costs]:
    """The nodes that have the loops of a bond, ascending, and what these cost."""
    nodes, labels = graph.loops
    starts = starts_of(nodes)
    costs = assignment(bond.weights(bond.first)[:, labels], starts)
    keep = costs < BARRED
    return nodes[starts[keep]], costs[keep]
