"""Arms of two: a node in between and an unknown leaf behind it, which hang on the rest of a pattern by
one bond alone.

At one parent, an arm has as many choices as there are paths of two from it, and two arms at a hub
the square of them. Of all these only the first few can stand in the first solutions of a group:
whatever else a row has, it forbids, or makes dearer, so many of them, and the first that it leaves
alone gives a solution before all later ones.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.bounds import check
from condgraph.patterns.distance.domains import BARRED
from condgraph.patterns.graph import Costs, Numbers
from condgraph.patterns.join.distinct import apart
from condgraph.patterns.join.order import Step
from condgraph.patterns.problem import Problem
from condgraph.patterns.ranking import Rows

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
    found = found.take(np.flatnonzero(_places(found.owner, found.nodes[step.node]) < each))
    most = few - problem.spare + others * (each + 2)
    if problem.injective:
        found = found.take(np.flatnonzero(_places(found.owner, found.nodes[leaf.node]) < each))
        most = few - problem.spare + others * 2 * each
    return found.take(np.flatnonzero(_places(found.owner) < most))


def nearest(owner: NDArray[np.int64], found: Numbers, costs: Costs, few: int, rank: NDArray[Any]) -> Beside:
    """The first few choices of every owner, by cost, then rank."""
    if int(np.bincount(owner).max(initial=0)) <= few:
        return owner, found, costs
    order = np.lexsort((rank.take(found), costs, owner))
    order = order[_places(owner[order]) < few]
    return owner[order], found[order], costs[order]


def _places(*keys: NDArray[Any]) -> NDArray[np.int64]:
    """The place of each among those before it that have the same keys."""
    order = np.lexsort(keys[::-1])
    fresh = np.arange(len(order)) == 0
    for key in keys:
        ordered = key[order]
        fresh[1:] |= ordered[1:] != ordered[:-1]
    starts = np.flatnonzero(fresh)
    found = np.empty(len(order), np.int64)
    found[order] = np.arange(len(order)) - starts.repeat(np.diff(np.append(starts, len(order))))
    return found
