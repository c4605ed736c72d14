"""Joins the nodes of a connected part of a pattern: solutions under a bound, pruned by looking back from known nodes,
with unknown leaves last.
"""

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

# The order in which the nodes of a connected part are mapped, one per step.


@dataclass(slots=True)
class Step:
    """Maps `node`, a neighbour of `parent`. The `closing` bonds lead to other nodes mapped earlier; `rest` is the least
    cost of what remains after the step.
    """

    node: int
    parent: int
    bond: PairEdges
    closing: list[PairEdges]
    rest: int
    leaf: bool
    #: The step to a leaf beyond the node, if both are mapped together.
    arm: Step | None = None

    @property
    def nodes(self) -> tuple[int, ...]:
        """The nodes that the step maps."""
        return (self.node,) if self.arm is None else (self.node, self.arm.node)


def plan_steps(problem: Problem, nodes: Sequence[int], seed: int, kept: Collection[int]) -> list[Step]:
    """Return the steps to all other nodes: first those with most bonds to mapped nodes, then known ones, then by
    mention; unknown leaves last.

    Nodes of `kept` are never treated as leaves.
    """
    least = problem.least(nodes)
    touching = {node: [b for b in problem.bonds if node in (b.first, b.second)] for node in nodes}
    leaves = {
        node
        for node in nodes
        if node != seed and node not in kept and len(touching[node]) == 1
        and node not in problem.loops and not problem.forbidden
    }  # fmt: skip
    mapped, steps = [seed], []
    rest = least - problem.least(mapped)
    while len(mapped) < len(nodes):
        candidates = [node for node in nodes if node not in mapped and any(b.other(node) in mapped for b in touching[node])]
        node = min(
            candidates,
            key=lambda n: (
                n in leaves and problem.domains[n].open, -sum(b.other(n) in mapped for b in touching[n]),
                problem.domains[n].open, n,
            ),
        )  # fmt: skip
        bonds_back = [b for b in touching[node] if b.other(node) in mapped]
        # Dearer bonds first: their predicates are known and lead to fewer neighbours.
        bond = max(bonds_back, key=lambda b: (b.least, len(b.steps)))
        mapped.append(node)
        rest = least - problem.least(mapped)
        steps.append(Step(node, bond.other(node), bond, [b for b in bonds_back if b is not bond], rest, node in leaves))
    return steps


# -- arms --------------------------------------------------------------------------------------------
# Arms of two: a middle node and an unknown leaf beyond it, attached to the rest of a pattern by a single bond.
#
# An arm has as many choices at a parent as there are paths of length two from it, and two arms at a hub have the square of
# that. Only the first few can be in the first solutions of a group: the rest of a row forbids, or makes dearer, a limited
# number of them, and the first one that it does not affect gives a solution before all later ones.


#: Neighbours of parents that are expanded at a time.
_TOGETHER: Final = 1 << 14
#: If more choices than this are needed per parent, arms are not used, and all are enumerated.
MAX_CHOICES: Final = 256
#: Candidates of a node by parent: position of the parent (ascending), node, and cost of bond and node.
Beside: TypeAlias = tuple[NDArray[np.int64], Numbers, Costs]
#: Returns the candidates of a step at parents, given the least total of the rows so far.
Neighbours: TypeAlias = Callable[[Step, NDArray[Any], int], Beside]


@dataclass(slots=True)
class Choices:
    """Candidates of a step's nodes by parent: position of the parent (ascending), nodes by number, and cost."""

    owner: NDArray[np.int64]
    nodes: dict[int, Numbers]
    costs: Costs

    def take(self, at: NDArray[Any]) -> Choices:
        return Choices(self.owner[at], {node: numbers[at] for node, numbers in self.nodes.items()}, self.costs[at])


def with_arms(problem: Problem, nodes: Sequence[int], steps: list[Step], apart_from: Collection[int]) -> list[Step]:
    """Return the steps with those of each arm merged, after all others. Nodes of `apart_from` (of groups, and those
    with a guide) are in no arm.
    """
    leaf_of = {step.parent: step for step in steps if step.leaf and problem.domains[step.node].open}
    arms = []
    for step in steps:
        leaf, node = leaf_of.get(step.node), step.node
        touching = sum(node in (bond.first, bond.second) for bond in problem.bonds)
        plain = problem.domains[node].open and node not in problem.loops and node not in apart_from and not problem.forbidden
        if leaf is not None and plain and touching == 2:
            arms.append(replace(step, leaf=True, arm=leaf))
    if not arms:
        return steps
    merged = {node for step in arms for node in step.nodes}
    mapped, ordered = [node for node in nodes if node not in {step.node for step in steps}], list[Step]()
    least = problem.least(nodes)
    for step in [*(step for step in steps if step.node not in merged), *arms]:
        mapped += step.nodes
        ordered.append(replace(step, rest=least - problem.least(mapped)))
    return ordered


def choices(
    problem: Problem, step: Step, parents: NDArray[Any], least: int, few: int, neighbours: Neighbours, bound: int
) -> Choices:
    """Return the choices of an arm at each parent that can be in the first solutions; `few` is the number of choices
    considered for a single leaf.
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
    # How many other nodes or bonds a row has, and how many choices to keep per middle node.
    other_elements = max(problem.spare - 1, 0)
    per_middle = few - problem.spare + other_elements
    owner, between, costs = neighbours(replace(step, arm=None, rest=step.rest + leaf.bond.least), parents, least)
    if not len(owner):
        return Choices(owner, {step.node: between, leaf.node: between}, costs)
    middles, middle_of = np.unique(between, return_inverse=True)
    leaf_owner, ends, leaf_costs = neighbours(replace(leaf, rest=step.rest), middles, least + int(costs.min()))
    rank = problem.graph.rank
    # Two more, since some may lead back to the parent or to the middle node.
    leaf_owner, ends, leaf_costs = nearest(leaf_owner, ends, leaf_costs, per_middle + 2, rank)
    starts = np.searchsorted(leaf_owner, np.arange(len(middles) + 1))
    counts = np.diff(starts)[middle_of]
    at = np.arange(int(counts.sum())) + (starts[middle_of] - counts.cumsum() + counts).repeat(counts)
    arm_choices = Choices(
        owner.repeat(counts),
        {step.node: between.repeat(counts), leaf.node: ends.take(at)},
        costs.repeat(counts) + leaf_costs.take(at),
    )
    check()
    columns = {step.parent: parents.take(arm_choices.owner), **arm_choices.nodes}
    if problem.injective:
        parent, middle, end = columns[step.parent], columns[step.node], columns[leaf.node]
        arm_choices = arm_choices.take(np.flatnonzero((parent != middle) & (parent != end) & (middle != end)))
    elif problem.distinct:
        corrected = apart(problem, Rows(arm_choices.costs, columns), [], [step.bond, leaf.bond], alone=True)
        arm_choices = Choices(arm_choices.owner, arm_choices.nodes, corrected.totals)
    arm_choices = arm_choices.take(np.flatnonzero(arm_choices.costs <= min(bound - step.rest - least, BARRED - 1)))
    keys: list[Any] = [rank.take(arm_choices.nodes[node]) for node in sorted(arm_choices.nodes, reverse=True)]
    arm_choices = arm_choices.take(np.lexsort([*keys, arm_choices.costs, arm_choices.owner]))
    # The rest of a row forbids a limited number per middle node and, if nodes are distinct, per leaf.
    arm_choices = arm_choices.take(np.flatnonzero(places_among(arm_choices.owner, arm_choices.nodes[step.node]) < per_middle))
    most = few - problem.spare + other_elements * (per_middle + 2)
    if problem.injective:
        arm_choices = arm_choices.take(np.flatnonzero(places_among(arm_choices.owner, arm_choices.nodes[leaf.node]) < per_middle))
        most = few - problem.spare + other_elements * 2 * per_middle
    return arm_choices.take(np.flatnonzero(places_among(arm_choices.owner) < most))


def nearest(owner: NDArray[np.int64], found: Numbers, costs: Costs, few: int, rank: NDArray[Any]) -> Beside:
    """Return the first few candidates of every parent, by cost, then rank."""
    if int(np.bincount(owner).max(initial=0)) <= few:
        return owner, found, costs
    order = np.lexsort((rank.take(found), costs, owner))
    order = order[places_among(owner[order]) < few]
    return owner[order], found[order], costs[order]


# -- semijoin ----------------------------------------------------------------------------------------
# Looking back from known nodes that come late in a join: which earlier nodes lead there, and at what least cost.
#
# So a join does not walk where no path leads to a known node.


#: The most neighbours that are expanded to look back from a node.
LOOK: Final = 1 << 18


@dataclass(slots=True)
class Guide:
    """The only nodes that a node of the pattern may be, ascending, with their own terms.

    `excess` is how much a node, with everything that hangs on it, costs above the sum of the least terms.
    """

    nodes: Numbers
    terms: Costs
    excess: Costs


def look_back(problem: Problem, steps: Sequence[Step], slack: int) -> dict[int, Guide]:
    """Return guides: which earlier nodes lead to known nodes that come late, and at what least cost.

    The excess refines the sum of least terms in the bound; `slack` is what the bound leaves above that sum. Nodes with
    too many neighbours to expand are skipped.
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
        owner, neighbours, costs = neighbours_of(problem.graph, guide.nodes, step.bond.weights(step.node), limit)
        excess = costs - step.bond.least + guide.excess.take(owner)
        keep = excess <= slack
        guides[step.parent] = _narrowed(
            problem.domains[step.parent], guides.get(step.parent), neighbours[keep], excess[keep], slack
        )
    return guides


def _narrowed(domain: Domain, before: Guide | None, found: Numbers, excess: Costs, slack: int) -> Guide:
    """Return the guide of a node from the nodes that lead to the next one, intersected with its earlier guide."""
    order = np.argsort(found, kind="stable")
    found, excess = found[order], excess[order]
    if len(found):
        starts = starts_of(found)
        found, excess = found[starts], np.minimum.reduceat(excess, starts)
    if before is None:
        node_terms = domain.at(found)
        terms = np.zeros(len(found), np.int64) if node_terms is None else node_terms
        earlier_excess = terms - domain.least
    else:
        positions = np.minimum(before.nodes.searchsorted(found), max(len(before.nodes) - 1, 0))
        shared = np.flatnonzero(before.nodes.take(positions) == found) if len(before.nodes) else np.empty(0, np.int64)
        found, excess, positions = found[shared], excess[shared], positions[shared]
        terms, earlier_excess = before.terms.take(positions), before.excess.take(positions)
    excess = excess + earlier_excess
    keep = excess <= slack
    return Guide(found[keep], terms[keep], excess[keep])


# -- join --------------------------------------------------------------------------------------------
# A row's distance so far plus the least cost of the remaining nodes and edges (Eq. 9 and 10) never exceeds the distance of
# a solution that it grows into, so a row above the bound is dropped at once (Eq. 11). Edges that close a cycle are priced
# once, when their second end is mapped. Unknown leaves are mapped last; of the many candidates of a leaf, only the nearest
# few at each row can be in the first k solutions: exchanging a later one for one that the row does not use yet gives an
# earlier solution.


#: The most rows that a step makes at a time, and at first. Working in parts brings first solutions early, bounds memory, and
#: allows checks of the deadline.
CHUNK: Final = 1 << 20
FIRST: Final = 1 << 14
#: A bound, and once there are as many solutions as requested, the ranks of the last one's nodes.
Limit: TypeAlias = tuple[int, dict[int, int] | None]


class Join:
    """One search of a connected part of the pattern, `nodes`, for solutions of at most `bound`.

    `few` is the number of choices of a leaf considered at each parent (None: all); nodes of `kept` are never treated as
    leaves. Rows are passed to `collect` in parts; it returns the limit for the rest of the search.
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
        """Find all solutions."""
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
            positions = np.minimum(guide.nodes.searchsorted(rows.columns[seed]), len(guide.nodes) - 1)
            rows = rows.take(np.flatnonzero(guide.nodes.take(positions) == rows.columns[seed]))
        # Without groups, the limit on solutions keeps products small.
        if self._kept and self.few is not None and self.few <= MAX_CHOICES:
            steps = with_arms(self.problem, self.nodes, steps, self._kept | set(self._guides))
        self._grow(rows, steps, 0, self._all - self.problem.least([seed]))

    # -- where to begin ----------------------------------------------------------------------------

    def _seed(self) -> tuple[int, Rows]:
        """Return the node with the fewest neighbours to expand under the bound, and its candidates."""
        problem, slack = self.problem, self.bound - self._all
        best: tuple[int, int, Numbers, Costs] | None = None
        for node in self.nodes:
            domain = problem.domains[node]
            if domain.open:
                continue
            candidates, costs = domain.within(domain.least + slack)
            effort = int(problem.graph.degrees(candidates).sum()) if len(candidates) else 0
            if best is None or effort < best[0]:
                best = effort, node, candidates, costs
        if best is None:
            # Nothing is known: start at the node with most bonds, with every node of the graph that has neighbours.
            node = max(self.nodes, key=lambda n: (sum(n in (bond.first, bond.second) for bond in problem.bonds), -n))
            candidates = np.flatnonzero(np.diff(problem.graph.offsets)).astype(np.int32)
            terms = problem.domains[node].at(candidates)
            best = 0, node, candidates, np.zeros(len(candidates), np.int64) if terms is None else terms
        _, node, candidates, costs = best
        rows = Rows(costs, {node: candidates})
        loop = problem.loops.get(node)
        rows = self._looped(rows, node, self._all - problem.domains[node].least - (loop.least if loop else 0))
        return node, self._apart(rows, node)

    # -- growing -----------------------------------------------------------------------------------

    def _grow(self, rows: Rows, steps: list[Step], number: int, rest: int) -> None:
        """Grow rows by the steps from `number` on; at least `rest` is still to be added to their totals."""
        check()
        rows = self._before_last(rows, rest)
        if not len(rows):
            return
        if number == len(steps):
            self.bound, self._last = self.collect(rows)
            return
        step = steps[number]
        parents, parent_of = np.unique(rows.columns[step.parent], return_inverse=True)
        step_choices = self._choices(step, parents, int(rows.totals.min()))
        if not len(step_choices.owner):
            return
        starts = np.searchsorted(step_choices.owner, np.arange(len(parents) + 1))
        counts = np.diff(starts)[parent_of]
        if int(counts.sum()) <= self._budget:
            self._grow(self._extended(rows, step, parent_of, starts, counts, step_choices), steps, number + 1, step.rest)
            return
        # In parts, in the order of solutions, so that the bound falls early.
        keys: list[Any] = [self.problem.graph.rank.take(rows.columns[node]) for node in reversed(self._mentioned(rows))]
        remaining = np.lexsort([*keys, rows.totals])
        while len(remaining):
            size = max(1, int(np.searchsorted(counts[remaining].cumsum(), self._budget, "right")))
            part, remaining = remaining[:size], remaining[size:]
            self._budget = min(2 * self._budget, max(CHUNK, self._budget))
            grown = self._extended(rows.take(part), step, parent_of[part], starts, counts[part], step_choices)
            self._grow(grown, steps, number + 1, step.rest)
            check()
            remaining = remaining[self._may_count(rows.take(remaining), rest)]

    def _mentioned(self, rows: Rows) -> list[int]:
        """Return the mapped nodes in the order of mention, up to the first one that is missing."""
        mentioned = []
        for node in sorted(self.nodes):
            if node not in rows.columns:
                break
            mentioned.append(node)
        return mentioned

    def _before_last(self, rows: Rows, rest: int) -> Rows:
        """Return the rows that may still grow into a solution before the last requested one."""
        if self._last is None:
            return rows
        return rows.take(np.flatnonzero(self._may_count(rows, rest)))

    def _may_count(self, rows: Rows, rest: int) -> NDArray[np.bool_]:
        totals = rows.totals + rest
        if self._last is None:
            return totals <= self.bound
        # At the same distance, ids decide, by first mention.
        after, equal = np.zeros(len(rows), bool), np.ones(len(rows), bool)
        for node in self._mentioned(rows):
            rank = self.problem.graph.rank.take(rows.columns[node])
            after |= equal & (rank > self._last[node])
            equal &= rank == self._last[node]
        mask: NDArray[np.bool_] = (totals < self.bound) | ((totals == self.bound) & ~after)
        return mask

    def _neighbours(self, step: Step, parents: NDArray[Any], least: int) -> tuple[NDArray[np.int64], Numbers, Costs]:
        """Return the candidates of a step's node at each parent: position in `parents` (ascending), node, and cost of
        bond and node.
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
                selected: Any = np.flatnonzero(guide.excess <= limit - bond.least - domain.least)
                candidates, terms = guide.nodes.take(selected), guide.terms.take(selected)
                excess = guide.excess.take(selected) + domain.least
            if not len(candidates):
                return np.empty(0, np.int64), candidates, terms
            parent_at, candidate_at, costs = joined(
                graph, parents, candidates, bond.weights(step.parent), bond.weights(step.node), limit - domain.least
            )
            inside = np.flatnonzero(costs + excess.take(candidate_at) <= limit)
            parent_at, candidate_at = parent_at.take(inside), candidate_at.take(inside)
            costs = costs.take(inside) + terms.take(candidate_at)
            if len(parent_at) > 1 and (parent_at[1:] < parent_at[:-1]).any():
                order = np.argsort(parent_at, kind="stable")
                parent_at, candidate_at, costs = parent_at[order], candidate_at[order], costs[order]
            return parent_at, candidates.take(candidate_at), costs
        owner, neighbours, costs = neighbours_of(graph, parents, bond.weights(step.parent), limit)
        node_terms = domain.at(neighbours)
        if node_terms is not None:
            keep = node_terms < BARRED
            owner, neighbours, costs = owner[keep], neighbours[keep], costs[keep]
        return owner, neighbours, costs

    def _choices(self, step: Step, parents: NDArray[Any], least: int) -> Choices:
        """Return the choices of a step's nodes at each parent."""
        if step.arm is not None and self.few is not None:
            return choices(self.problem, step, parents, least, self.few, self._neighbours, self.bound)
        candidates = self._neighbours(step, parents, least)
        if step.leaf and self.few is not None and len(candidates[0]):
            candidates = nearest(*candidates, self.few, self.problem.graph.rank)
        owner, nodes, costs = candidates
        return Choices(owner, {step.node: nodes}, costs)

    def _extended(
        self, rows: Rows, step: Step, which: NDArray[Any], starts: NDArray[Any], counts: NDArray[Any], found: Choices
    ) -> Rows:
        """Return every row with every choice at its parent, if that satisfies the bound and the other constraints."""
        problem = self.problem
        row = np.arange(len(rows)).repeat(counts)
        ends = counts.cumsum()
        at = np.arange(int(ends[-1]) if len(ends) else 0) + (starts[which] - ends + counts).repeat(counts)
        totals = rows.totals.take(row) + found.costs.take(at)
        new_nodes = {node: numbers.take(at) for node, numbers in found.nodes.items()}
        rest = step.rest + sum(b.least for b in step.closing)
        loop = problem.loops.get(step.node)
        rest += loop.least if loop else 0
        keep = totals <= self.bound - rest
        if problem.injective:
            for column in rows.columns.values():
                mapped = column.take(row)
                for numbers in new_nodes.values():
                    keep &= mapped != numbers
        if not keep.all():
            row, totals = row[keep], totals[keep]
            new_nodes = {node: numbers[keep] for node, numbers in new_nodes.items()}
        grown = Rows(totals, {**{number: column.take(row) for number, column in rows.columns.items()}, **new_nodes})
        grown = self._looped(grown, step.node, rest - (loop.least if loop else 0))
        rest -= loop.least if loop else 0
        for bond in step.closing:
            rest -= bond.least
            other = bond.other(step.node)
            ones, twos = grown.columns[other], grown.columns[step.node]
            grown.totals = grown.totals + pair_costs(problem.graph, bond.weights(other), ones, twos)
            grown = grown.take(np.flatnonzero(grown.totals <= min(self.bound - rest, BARRED - 1)))
        if problem.distinct and self._bonds > 1:
            new_bonds = [step.bond, *([loop] if loop else []), *step.closing, *([step.arm.bond] if step.arm else [])]
            old = [b for b in self._within(rows.columns) if b not in new_bonds]
            # The bonds of an arm are already correct among themselves.
            grown = apart(problem, grown, old, new_bonds, alone=step.arm is None)
            grown = grown.take(np.flatnonzero(grown.totals <= min(self.bound - rest, BARRED - 1)))
        return self._apart(grown, step.node)

    def _within(self, columns: Collection[int]) -> list[PairEdges]:
        """Return the bonds, loops included, between mapped nodes."""
        loops = [bond for node, bond in self.problem.loops.items() if node in columns]
        return [b for b in self.problem.bonds if b.first in columns and b.second in columns] + loops

    # -- other constraints on rows ---------------------------------------------------------------

    def _looped(self, rows: Rows, node: int, rest: int) -> Rows:
        """Return the rows whose `node` has the loops of the pattern."""
        bond = self.problem.loops.get(node)
        if bond is None or not len(rows):
            return rows
        nodes, costs = loop_costs(self.problem.graph, bond)
        if not len(nodes):
            return rows.take(np.empty(0, np.int64))
        positions = np.minimum(nodes.searchsorted(rows.columns[node]), len(nodes) - 1)
        loop_cost = np.where(nodes.take(positions) == rows.columns[node], costs.take(positions), BARRED)
        rows = Rows(rows.totals + loop_cost, rows.columns)
        return rows.take(np.flatnonzero(rows.totals <= min(self.bound - rest, BARRED - 1)))

    def _apart(self, rows: Rows, node: int) -> Rows:
        """Return the rows in which no edge joins nodes that the pattern does not join (induced subgraphs)."""
        for (first, second), prices in self.problem.forbidden.items():
            if node not in (first, second) or first not in rows.columns or second not in rows.columns or not len(rows):
                continue
            costs = pair_costs(self.problem.graph, prices[None, :], rows.columns[first], rows.columns[second])
            rows = rows.take(np.flatnonzero(costs >= BARRED))
        return rows


def loop_costs(graph: SearchGraph, bond: PairEdges) -> tuple[Numbers, Costs]:
    """Return the nodes with the loops of a bond, ascending, and their costs."""
    nodes, labels = graph.loops
    starts = starts_of(nodes)
    costs = assignment(bond.weights(bond.first)[:, labels], starts)
    keep = costs < BARRED
    return nodes[starts[keep]], costs[keep]
