"""Searching a graph on a server: what the client knows of it, and a connected part of a pattern as
something a server can be asked.

The client has a `Catalogue` (ids, names, texts, predicates; no statement), prices the pattern
exactly, and drives the search as in process: rounds under growing bounds, parts put together, the
same order. Only the join of a connected part runs on the server: a `PartPlan` says what may stand
where at which price under the bound, and a store renders it in its language.

A node of a solution is an entity or a text, which servers keep differently, so a part is asked once
for each way in which its nodes can be one or the other; most often that is once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from condgraph.patterns.distance.domains import BARRED, PairEdges
from condgraph.patterns.graph import Costs, Numbers
from condgraph.patterns.problem import Problem
from condgraph.patterns.remote.catalogue import Catalogue
from condgraph.patterns.remote.values import ValuePlan, value_plans

#: What a node of a solution is: an entity (or concept, or row), or a text value.
Sort: TypeAlias = Literal["entity", "text"]
#: How an edge runs, seen from the node it is followed from.
Way: TypeAlias = Literal["out", "in", "both"]
_NONE: Final = np.empty(0, np.int32)


@dataclass(frozen=True, slots=True)
class EdgePlan:
    """One edge of the pattern: which way it runs, and what each predicate costs; without `prices`
    any, at no cost.

    `membership` is the price of a stated membership; None where it may be none.
    """

    way: Way
    prices: Mapping[str, int] | None
    membership: int | None
    #: The way that costs more because it runs against the pattern, and by how much.
    against: Way | None = None
    extra: int = 0

    @property
    def impossible(self) -> bool:
        """Whether no statement can be this edge under the bound."""
        return self.prices is not None and not self.prices and self.membership is None


@dataclass(frozen=True, slots=True)
class BondPlan:
    """All edges between two nodes (or at one), seen from `near`: each takes a statement of its own."""

    near: int
    far: int
    edges: tuple[EdgePlan, ...]


@dataclass(frozen=True, slots=True)
class StepPlan:
    """Find `node` by `bond`, then check the `closing` bonds to nodes found before.

    A solution that keeps to the bound has at most `most` so far. Of a `leaf` only the first few
    beside each parent are wanted.
    """

    node: int
    bond: BondPlan
    closing: tuple[BondPlan, ...]
    most: int
    leaf: bool


@dataclass(frozen=True, slots=True)
class PartPlan:
    """A connected part of a pattern for a server, one way in which its nodes are entities or texts.

    `candidates` are the keys that a node may be, with their terms; a node that is not there may be
    anything but `excluded`. Asked for are the first `limit` solutions (None: all) by their sum,
    then the keys of the nodes in their order; where `by` has nodes, the first of each group of
    them.
    """

    nodes: tuple[int, ...]
    sorts: Mapping[int, Sort]
    seed: int
    candidates: Mapping[int, tuple[tuple[str, int], ...]]
    excluded: Mapping[int, tuple[str, ...]]
    #: Ids of concepts that a node has to be in one of.
    types: Mapping[int, tuple[str, ...]]
    steps: tuple[StepPlan, ...]
    loops: Mapping[int, BondPlan]
    #: Pairs of nodes that no edge may join: from the first to the second, or back.
    apart: tuple[tuple[int, int, bool, bool], ...]
    injective: bool
    bound: int
    #: What a solution may have at the seed.
    most: int
    few: int | None
    limit: int | None
    by: tuple[int, ...]
    #: Whether the bound is the least there is, so that all solutions are equally near.
    tight: bool = False
    #: Values that nodes have to have.
    values: Mapping[int, tuple[ValuePlan, ...]] = field(default_factory=dict)


@dataclass(slots=True)
class Tally:
    """What a search asked of the server."""

    queries: int = 0
    rows: int = 0
    texts: list[str] = field(default_factory=list)
    #: Joins whose texts have parameters, in the order they were asked: text and parameters.
    joins: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The texts of the joins, each once."""
        return "\n;\n".join(dict.fromkeys(self.texts))


def part_plans(
    problem: Problem,
    catalogue: Catalogue,
    nodes: Sequence[int],
    bound: int,
    *,
    few: int | None,
    limit: int | None,
    by: Sequence[int],
    kept: Sequence[int],
) -> Iterator[PartPlan]:
    """The plans for a connected part under a bound, one for each way in which its nodes can be
    entities or texts.

    `kept` are nodes of which every choice is wanted.
    """
    least = problem.least(nodes)
    slack = bound - least
    if slack < 0:
        return
    bonds = [bond for bond in problem.bonds if bond.first in nodes]
    allowed: dict[int, tuple[Numbers, Costs]] = {}
    for node in nodes:
        domain = problem.domains[node]
        if not domain.open:
            allowed[node] = domain.within(domain.least + slack)
    choices: list[tuple[Sort, ...]] = []
    values = value_plans(problem, catalogue, nodes, slack)
    for node in nodes:
        # Texts have no edges of their own.
        alone = not catalogue.has_texts or node in problem.loops or node in values
        sorts: tuple[Sort, ...] = ("entity",) if alone else ("entity", "text")
        if problem.domains[node].types is not None:
            sorts = ("entity",)
        elif node in allowed:
            numbers = allowed[node][0]
            here = {"entity": bool((numbers < catalogue.entities).any()), "text": bool((numbers >= catalogue.entities).any())}
            sorts = tuple(sort for sort in sorts if here[sort])
        choices.append(sorts)
    groups = tuple(node for node in by if node in nodes)
    for chosen in product(*choices):
        sorts_of = dict(zip(nodes, chosen, strict=True))
        plan = _plan(problem, catalogue, tuple(nodes), bonds, sorts_of, allowed, bound, slack, tuple(kept), values)
        if plan is not None:
            yield PartPlan(**plan, few=few, limit=limit, by=groups, tight=slack == 0)


def _plan(
    problem: Problem,
    catalogue: Catalogue,
    nodes: tuple[int, ...],
    bonds: Sequence[PairEdges],
    sorts: Mapping[int, Sort],
    allowed: Mapping[int, tuple[Numbers, Costs]],
    bound: int,
    slack: int,
    by: tuple[int, ...],
    values: Mapping[int, tuple[ValuePlan, ...]],
) -> dict[str, Any] | None:
    if any(sorts[bond.first] == sorts[bond.second] == "text" for bond in bonds):
        return None
    candidates: dict[int, tuple[tuple[str, int], ...]] = {}
    for node, (numbers, costs) in allowed.items():
        mine = numbers < catalogue.entities if sorts[node] == "entity" else numbers >= catalogue.entities
        pairs = zip(numbers[mine].tolist(), costs[mine].tolist(), strict=True)
        candidates[node] = tuple((catalogue.key(number), cost) for number, cost in pairs)
    seen = {node: _bond(catalogue, bond, node, slack, sorts) for node, bond in problem.loops.items() if node in nodes}
    plans = {(bond, side): _bond(catalogue, bond, side, slack, sorts) for bond in bonds for side in (bond.first, bond.second)}
    if any(edge.impossible for plan in [*seen.values(), *plans.values()] for edge in plan.edges):
        return None
    seed = _seed(nodes, bonds, sorts, candidates, values)
    if seed < 0:
        return None
    leaves = {
        node
        for node in nodes
        if sum(node in (bond.first, bond.second) for bond in bonds) == 1 and node not in problem.loops and not problem.forbidden
        and problem.domains[node].open and node not in by and node not in values
    }  # fmt: skip
    return {
        "nodes": nodes,
        "sorts": sorts,
        "seed": seed,
        "candidates": candidates,
        "excluded": _excluded(problem, catalogue, [node for node in nodes if node not in candidates], sorts),
        "types": {node: types for node in nodes if (types := problem.domains[node].types) is not None},
        "steps": tuple(_steps(problem, nodes, bonds, plans, candidates, seed, bound, leaves)),
        "loops": seen,
        "values": values,
        "apart": tuple(_apart(problem, catalogue, nodes, sorts)),
        "injective": problem.injective,
        "bound": bound,
        "most": bound - (problem.least(nodes) - problem.least([seed])),
    }


def _seed(
    nodes: Sequence[int], bonds: Sequence[PairEdges], sorts: Mapping[int, Sort],
    candidates: Mapping[int, Sequence[tuple[str, int]]], values: Mapping[int, Any],
) -> int:  # fmt: skip
    """The node that a part is looked for from: the one of the fewest candidates, else one with a
    value, else the one of the most bonds; -1 where there is none.
    """
    known = [node for node in nodes if node in candidates]
    if known:
        return min(known, key=lambda node: (len(candidates[node]), node))
    if values:
        return min(values)
    # Texts are found through their entities.
    return max(
        (node for node in nodes if sorts[node] == "entity"),
        key=lambda node: (sum(node in (bond.first, bond.second) for bond in bonds), -node),
        default=-1,
    )


def _steps(
    problem: Problem,
    nodes: Sequence[int],
    bonds: Sequence[PairEdges],
    plans: Mapping[tuple[PairEdges, int], BondPlan],
    candidates: Mapping[int, Sequence[tuple[str, int]]],
    seed: int,
    bound: int,
    leaves: Collection[int],
) -> Iterator[StepPlan]:
    """The other nodes in the order in which they are reached, each by a bond to one before it."""
    found = [seed]
    while len(found) < len(nodes):
        touching = {n: [b for b in bonds if n in (b.first, b.second) and b.other(n) in found] for n in nodes if n not in found}
        node = min(
            (n for n, back in touching.items() if back),
            key=lambda n: (n in leaves, -len(touching[n]), len(candidates.get(n, ())) if n in candidates else BARRED, n),
        )
        back = touching[node]
        # Dearer bonds first: their predicates are known, and leave fewer neighbours.
        bond = max(back, key=lambda b: (b.least, len(b.steps)))
        found.append(node)
        most = bound - (problem.least(nodes) - problem.least(found))
        closing = tuple(plans[b, b.other(node)] for b in back if b is not bond)
        yield StepPlan(node, plans[bond, bond.other(node)], closing, most, node in leaves)


def _excluded(
    problem: Problem, catalogue: Catalogue, nodes: Sequence[int], sorts: Mapping[int, Sort]
) -> dict[int, tuple[str, ...]]:
    """What nodes may not be, by key."""
    excluded = {}
    for node in nodes:
        barred = problem.domains[node].excluded
        if barred is not None:
            mine = barred < catalogue.entities if sorts[node] == "entity" else barred >= catalogue.entities
            if mine.any():
                excluded[node] = tuple(catalogue.key(number) for number in barred[mine].tolist())
    return excluded


def _apart(
    problem: Problem, catalogue: Catalogue, nodes: Sequence[int], sorts: Mapping[int, Sort]
) -> Iterator[tuple[int, int, bool, bool]]:
    """Pairs of nodes between which there may be no edge, forward and backward."""
    size = catalogue.graph.predicates
    for (one, two), prices in problem.forbidden.items():
        if one in nodes and two in nodes and not sorts[one] == sorts[two] == "text":
            yield (one, two, int(prices[0]) < BARRED, int(prices[1]) < BARRED) if size else (one, two, False, False)


def _bond(catalogue: Catalogue, bond: PairEdges, side: int, slack: int, sorts: Mapping[int, Sort]) -> BondPlan:
    """A bond as a server follows it from one side: predicates that cost no more than the bound
    leaves.
    """
    size = catalogue.graph.predicates
    far = bond.other(side) if bond.first != bond.second else side
    edges = []
    for prices in bond.weights(side):
        out, back, loop = prices[0 : 2 * size : 2], prices[1 : 2 * size : 2], prices[2 * size : 3 * size]
        extra = 0
        if side == far:
            own, way = loop, "out"
        elif sorts[far] == "text":
            own, way = out, "out"
        elif sorts[side] == "text":
            own, way = back, "in"
        else:
            both = bool((out < BARRED).any()), bool((back < BARRED).any())
            own, way = np.minimum(out, back), ("both" if all(both) else "out" if both[0] else "in")
            if all(both) and len(at := np.flatnonzero((out != back) & (np.minimum(out, back) < BARRED))):
                extra = int(back[at[0]] - out[at[0]])
        against: Way | None = None if not extra else "in" if extra > 0 else "out"
        members = sorts[side] == sorts[far] == "entity"
        plan = _edge(catalogue, own, way, slack, members=members)  # type: ignore[arg-type]
        edges.append(replace(plan, against=against, extra=abs(extra)))
    return BondPlan(side, far, tuple(edges))


def _edge(catalogue: Catalogue, prices: NDArray[np.int64], way: Way, slack: int, *, members: bool) -> EdgePlan:
    least = int(prices.min(initial=BARRED))
    within = np.flatnonzero((prices <= least + slack) & (prices < BARRED) & catalogue.used)
    if least == 0 and bool((prices[catalogue.used] == 0).all()) and len(within):
        # An unknown relation: whatever there is.
        return EdgePlan(way, None, 0 if members and bool(catalogue.used[-1]) else None)
    last = len(prices) - 1
    found = {catalogue.predicates[number]: int(prices[number]) for number in within.tolist() if number != last}
    membership = int(prices[last]) if members and len(within) and within[-1] == last else None
    return EdgePlan(way, found, membership)
