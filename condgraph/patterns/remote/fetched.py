"""The join of a connected part over the edges that it can use, fetched from a store step by step.

For stores that cannot rank as the order of solutions asks (SPARQL has no ids to order by, and no
first few beside each row). Step by step along the pattern, the edges of the nodes found so far are
fetched, with the predicates that the bound leaves; on what came the part is joined as in process.
Every edge of every solution under the bound is among them, so the first solutions are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.bounds import check
from condgraph.patterns.distance.domains import BARRED, Bond
from condgraph.patterns.graph import Numbers, SearchGraph
from condgraph.patterns.join.driver import run_part
from condgraph.patterns.join.join import Join, Limit
from condgraph.patterns.problem import Problem
from condgraph.patterns.ranking import Rows
from condgraph.patterns.remote.catalogue import Catalogue
from condgraph.patterns.remote.parts import Tally
from condgraph.patterns.remote.values import ValuePlan, value_plans
from condgraph.patterns.values import with_value

#: Which end of an edge the nodes asked for are at.
End: TypeAlias = Literal["subject", "object"]
#: Edges as columns: subject, predicate (by number, memberships last), object, and what tells equal
#: ones apart; shape (n, 4), int64.
Edges: TypeAlias = NDArray[np.int64]
#: Nodes that have a value, and the predicates that they have it under.
Holders: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64]]


class EdgeStore(Protocol):
    """A store that gives the edges of nodes."""

    def edges(
        self, catalogue: Catalogue, nodes: Numbers | None, end: End, predicates: Sequence[int], *, statements: bool,
        tally: Tally,
    ) -> Edges:  # fmt: skip
        """The edges with these nodes (None: any) at one end and one of these predicates.

        With `statements`, one row a statement, told apart by its id; else one row for equal
        triples.
        """
        ...

    def holders(self, catalogue: Catalogue, nodes: Numbers | None, plan: ValuePlan, tally: Tally) -> Holders:
        """Of these nodes (None: any) those that have a value as planned, and under which predicate,
        by number; a pair a statement at least once.
        """
        ...


@dataclass(slots=True)
class FetchedParts:
    """The joins of a search on a store of edges (`patterns.join.join.Server`)."""

    store: EdgeStore
    catalogue: Catalogue
    tally: Tally
    #: What was fetched: by end, predicates and kind, which nodes were asked for, and their edges.
    _known: dict[Any, tuple[NDArray[np.bool_], list[Edges]]] = field(default_factory=dict)
    #: Likewise the nodes that have values, by what these have to be.
    _held: dict[Any, tuple[NDArray[np.bool_], list[Holders]]] = field(default_factory=dict)

    def part(
        self, problem: Problem, nodes: Sequence[int], bound: int, length: int | None, by: Sequence[int], top: int | None
    ) -> tuple[Rows, bool]:
        """The first `length` solutions of a part, of each group where it has nodes of `by`."""
        if bound < problem.least(nodes):
            return Rows(np.empty(0, np.int64), {node: np.empty(0, np.int32) for node in nodes}), False
        holders = _Holders(self, problem, bound - problem.least(nodes), list(nodes))
        graph = self._graph(problem, list(nodes), bound, holders)
        own = replace(problem, graph=graph, server=None, domains=holders.domains, asked=())
        if length is not None:
            return run_part(own, list(nodes), bound, length, by)
        kept = [Rows(np.empty(0, np.int64), {node: np.empty(0, np.int32) for node in nodes})]

        def keep(rows: Rows) -> Limit:
            kept.append(rows)
            return bound, None

        Join(own, nodes, bound, None, (), keep).run()
        return Rows.joined(kept), False

    def joined(
        self, problem: Problem, ones: NDArray[Any], others: NDArray[Any], forward: bool, backward: bool
    ) -> NDArray[np.bool_]:
        """Which of these pairs of nodes some edge joins."""
        every = tuple(np.flatnonzero(self.catalogue.used).tolist())
        found = np.zeros(len(ones), bool)
        for near, far, wanted in ((ones, others, forward), (others, ones, backward)):
            if wanted:
                edges = self._fetch(np.unique(near).astype(np.int32), "subject", every, statements=False)
                keys = np.unique(edges[:, 0] << 32 | edges[:, 2])
                found |= np.isin(near.astype(np.int64) << 32 | far, keys)
        return found

    def between(self, ones: NDArray[Any], others: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """The edges between pairs of nodes."""
        every = tuple(np.flatnonzero(self.catalogue.used).tolist())
        near = np.unique(ones).astype(np.int32)
        edges = [self._fetch(near, end, every, statements=True) for end in ("subject", "object")]
        wanted = np.unique(np.concatenate([ones.astype(np.int64) << 32 | others, others.astype(np.int64) << 32 | ones]))
        inside = [some[np.isin(some[:, 0] << 32 | some[:, 2], wanted)] for some in edges]
        return self._adjacency(inside).between(ones, others)

    # -- what a part can use -----------------------------------------------------------------------

    def _graph(self, problem: Problem, nodes: list[int], bound: int, holders: _Holders) -> SearchGraph:
        """The edges that solutions under the bound can have, as an adjacency; nodes that are to have
        values are looked at as they are reached.
        """
        slack = bound - problem.least(nodes)
        bonds = [bond for bond in problem.bonds if bond.first in nodes]
        several = any(len(bond.edges) > 1 for bond in [*bonds, *problem.loops.values()])
        several = several or (problem.distinct and len(problem.bonds) + len(problem.loops) > 1)
        allowed = {
            node: problem.domains[node].within(problem.domains[node].least + slack)[0]
            for node in nodes
            if not problem.domains[node].open
        }
        found: list[Edges] = []
        reach: dict[int, Numbers | None] = {}
        seed = min(allowed, key=lambda node: (len(allowed[node]), node)) if allowed else min(holders.left, default=nodes[0])
        reach[seed] = holders.of(seed, allowed.get(seed))
        left = list(bonds)
        while left:
            ahead = [bond for bond in left if bond.first in reach or bond.second in reach]
            # Edges between nodes that are found first: they leave fewer of them.
            bond = min(ahead, key=lambda one: (not (one.first in reach and one.second in reach), -one.least, one.first, one.second))
            left.remove(bond)
            near = bond.first if bond.first in reach else bond.second
            far = bond.other(near)
            beyond = reach.get(far, allowed.get(far))
            if beyond is not None and (reach[near] is None or len(beyond) < len(reach[near])):  # type: ignore[arg-type]
                edges = self._along(problem, bond, far, beyond, slack, statements=several)
            else:
                edges = self._along(problem, bond, near, reach[near], slack, statements=several)
            edges = _between(edges, reach[near], beyond)
            found.append(edges)
            ends = np.unique(edges[:, [0, 2]]).astype(np.int32)
            for node in (near, far):
                before = reach.get(node, allowed.get(node))
                reach[node] = holders.of(node, ends if before is None else ends[np.isin(ends, before)])
        for node, loop in problem.loops.items():
            if node in nodes:
                edges = self._along(problem, loop, node, reach.get(node, allowed.get(node)), slack, statements=several)
                found.append(edges[edges[:, 0] == edges[:, 2]])
        if problem.forbidden:
            inside = np.unique(np.concatenate([numbers for numbers in reach.values() if numbers is not None] or [_none()]))
            every = tuple(np.flatnonzero(self.catalogue.used).tolist())
            edges = self._fetch(inside.astype(np.int32), "subject", every, statements=several)
            found.append(edges[np.isin(edges[:, 2], inside)])
        return self._adjacency(found)

    def values(self, numbers: Numbers | None, plan: ValuePlan) -> Holders:
        """The nodes that have a value as planned, and under which predicate; what was fetched before
        is not fetched again.
        """
        key = plan.condition, tuple(plan.prices)
        asked, kept = self._held.setdefault(key, (np.zeros(self.catalogue.graph.size + 1, bool), []))
        fresh = numbers if numbers is None else numbers[~asked[numbers]]
        if not asked[-1] and (fresh is None or len(fresh)):
            check()
            found = self.store.holders(self.catalogue, fresh, plan, self.tally)
            if fresh is None:
                kept.clear()
            asked[-1 if fresh is None else fresh] = True
            kept.append(found)
        if not kept:
            return _none().astype(np.int64), _none().astype(np.int64)
        nodes, predicates = (np.concatenate(some) for some in zip(*kept, strict=True))
        return nodes, predicates

    def _along(self, problem: Problem, bond: Bond, side: int, numbers: Numbers | None, slack: int, *, statements: bool) -> Edges:
        """The edges that a bond can use, at some nodes of one of its sides."""
        size = problem.graph.predicates
        ways: dict[End, set[int]] = {"subject": set(), "object": set()}
        for prices in bond.weights(side):
            pairs: tuple[tuple[End, NDArray[np.int64]], ...] = (
                ("subject", prices[0 : 2 * size : 2]),
                ("object", prices[1 : 2 * size : 2]),
            )
            if bond.first == bond.second:
                pairs = (("subject", prices[2 * size : 3 * size]),)
            least = min(int(prices.min(initial=BARRED)) for _, prices in pairs)
            for end, own in pairs:
                ways[end].update(np.flatnonzero((own <= least + slack) & (own < BARRED) & self.catalogue.used).tolist())
        found = [
            self._fetch(numbers, end, tuple(sorted(predicates)), statements=statements)
            for end, predicates in ways.items()
            if predicates
        ]
        return np.concatenate(found) if found else np.empty((0, 4), np.int64)

    def _fetch(self, numbers: Numbers | None, end: End, predicates: tuple[int, ...], *, statements: bool) -> Edges:
        """The edges of nodes at one end; what was fetched before is not fetched again."""
        key = end, predicates, statements
        size = self.catalogue.graph.size
        asked, kept = self._known.setdefault(key, (np.zeros(size + 1, bool), []))
        # The last place says that all were fetched.
        if not asked[-1]:
            fresh = None if numbers is None else numbers[~asked[numbers]]
            if fresh is None or len(fresh):
                check()
                edges = self.store.edges(self.catalogue, fresh, end, predicates, statements=statements, tally=self.tally)
                if fresh is None:
                    kept.clear()
                    asked[-1] = True
                else:
                    asked[fresh] = True
                kept.append(edges)
        found = np.concatenate(kept) if kept else np.empty((0, 4), np.int64)
        if numbers is None:
            return found
        wanted = np.zeros(size, bool)
        wanted[numbers] = True
        return found[wanted[found[:, 0 if end == "subject" else 2]]]

    def _adjacency(self, found: Sequence[Edges]) -> SearchGraph:
        """Edges as a search sees them; each of them once."""
        whole = self.catalogue.graph
        size, predicates = whole.size, whole.predicates
        edges = np.unique(np.concatenate(found), axis=0) if found else np.empty((0, 4), np.int64)
        subject, predicate, thing = edges[:, 0], edges[:, 1], edges[:, 2]
        loop = subject == thing
        nodes = np.concatenate([subject, thing[~loop]])
        others = np.concatenate([thing, subject[~loop]])
        labels = np.concatenate([np.where(loop, 2 * predicates + predicate, 2 * predicate), 2 * predicate[~loop] + 1])
        order = np.lexsort((labels, others, nodes))
        offsets = np.zeros(size + 1, np.int64)
        np.cumsum(np.bincount(nodes, minlength=size), out=offsets[1:])
        return SearchGraph(
            offsets, others[order].astype(np.int32), labels[order].astype(np.int32), predicates, whole.entities, whole.rank
        )


class _Holders:
    """The domains of a part with the values that its nodes are to have: each node's are fetched once,
    for the nodes that it may be by then.
    """

    def __init__(self, parts: FetchedParts, problem: Problem, slack: int, nodes: list[int]) -> None:
        self._parts, self._problem = parts, problem
        self._plans = value_plans(problem, parts.catalogue, nodes, slack)
        self.domains = list(problem.domains)
        #: Nodes whose values have not been looked at.
        self.left = set(self._plans)

    def of(self, node: int, numbers: Numbers | None) -> Numbers | None:
        """Of some nodes (None: any) those that a node of the pattern may be by its values."""
        if node not in self.left:
            return numbers
        self.left.remove(node)
        edges = [edge for edge in self._problem.asked if edge.node == node]
        for edge, plan in zip(edges, self._plans[node], strict=True):
            held = self._parts.values(numbers, plan)
            self.domains[node] = with_value(self.domains[node], edge, *held)
            some = self.domains[node].nodes
            assert some is not None
            numbers = some if numbers is None else some[np.isin(some, numbers)]
        return numbers


def _none() -> Numbers:
    return np.empty(0, np.int32)


def _between(edges: Edges, one: Numbers | None, two: Numbers | None) -> Edges:
    """The edges between two sets of nodes (None: any), in either direction."""
    if not len(edges) or (one is None and two is None):
        return edges

    def inside(column: NDArray[np.int64], numbers: Numbers | None) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = np.ones(len(column), bool) if numbers is None else np.isin(column, numbers)
        return found

    keep = (inside(edges[:, 0], one) & inside(edges[:, 2], two)) | (inside(edges[:, 0], two) & inside(edges[:, 2], one))
    found: Edges = edges[keep]
    return found
