"""Patterns on stores: what the client keeps of a graph for them, the statements that a search asks for by plans of the
algebra, which every store runs, and those of its solutions.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from condgraph.engine import algebra as alg
from condgraph.engine.bounds import check, shared
from condgraph.engine.execute.validity import cut
from condgraph.engine.execute.witness_plan import Unit
from condgraph.engine.facts import EntityKind
from condgraph.engine.identity import statement_ids
from condgraph.engine.period import Period
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.store import plan_answer
from condgraph.engine.values import NO_UNIT, Kind
from condgraph.patterns.distance.domains import BARRED, Domain, PairEdges
from condgraph.patterns.graph import Numbers, SearchGraph
from condgraph.patterns.join.driver import run_part
from condgraph.patterns.join.join import Join, Limit
from condgraph.patterns.matches import Matches
from condgraph.patterns.problem import Problem
from condgraph.patterns.ranking import Rows
from condgraph.patterns.remote.catalogue import Catalogue, Tally
from condgraph.patterns.remote.match import NamedCatalogue, match_remote
from condgraph.patterns.remote.solutions import Held
from condgraph.patterns.remote.terms import CatalogueTerms
from condgraph.patterns.remote.values import ValuePlan, value_plans
from condgraph.patterns.remote.vectors import CachedVectors
from condgraph.patterns.values import holders, with_value
from condgraph.vectors.encoders import Encoder
from condgraph.vectors.stored import IndexReport, OnProgress

if TYPE_CHECKING:
    from condgraph.engine.store import QueryStore
    from condgraph.engine.stored_schema import StoredSchema

# -- Joins over fetched edges ------------------------------------------------------------------------

# The join of a connected part over the edges that it can use, fetched from a store step by step.
#
# Step by step along the pattern, the edges of the nodes found so far are fetched, with the predicates
# that the bound leaves; on what came the part is joined as in process. Every edge of every solution
# under the bound is among them, so the first solutions are the same.


#: Of the first node of a pattern so many are looked at before all are.
_FIRST: Final[tuple[int | None, ...]] = (64, 1024, None)
#: Which end of an edge the nodes asked for are at.
End: TypeAlias = Literal["subject", "object"]
#: Edges as columns: subject, predicate (by number, memberships last), object, and what tells equal
#: ones apart; shape (n, 4), int64.
Edges: TypeAlias = NDArray[np.int64]
#: Nodes that have a value, and the predicates that they have it under.
Holders: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64]]


@dataclass(slots=True)
class _Known:
    """What was fetched of nodes; of all of them where `every`."""

    nodes: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    every: bool = False
    found: list[Any] = field(default_factory=list)

    def of(self, numbers: Numbers | None, fetch: Callable[[Numbers | None], Any]) -> list[Any]:
        """What there is of nodes (None: any) and others; what was fetched before is not fetched again."""
        fresh = None if numbers is None else np.setdiff1d(numbers, self.nodes).astype(np.int32)
        if not self.every and (fresh is None or len(fresh)):
            check()
            found = fetch(fresh)
            if fresh is None:
                self.every = True
                self.found.clear()
            else:
                self.nodes = np.union1d(self.nodes, fresh)
            self.found.append(found)
        return self.found

    def add(self, numbers: NDArray[Any], found: Edges) -> None:
        """Take edges of nodes that were fetched with others; those of nodes that are known are there already."""
        if not self.every:
            self.found.append(found)
            self.nodes = np.union1d(self.nodes, numbers)


@dataclass(slots=True)
class FetchedParts:
    """The joins of a search (`patterns.problem.Server`)."""

    store: Statements
    catalogue: Catalogue
    tally: Tally
    #: What was fetched, by what was asked of nodes: edges by end, predicates and kind, and who has values by what these are.
    _known: dict[Any, _Known] = field(default_factory=dict)

    def part(self, problem: Problem, nodes: Sequence[int], bound: int, length: int | None, by: Sequence[int]) -> tuple[Rows, bool]:
        """The first `length` solutions of a part, of each group where it has nodes of `by`."""
        if bound < problem.least(nodes):
            return Rows(np.empty(0, np.int64), {node: np.empty(0, np.int32) for node in nodes}), False
        # Solutions at one distance are in the order of their first node, whose first few may be enough.
        for few in _FIRST if length is not None and bound == problem.least(nodes) and not by else (None,):
            holders = _Holders(self, problem, bound - problem.least(nodes), list(nodes), few)
            graph = self._graph(problem, list(nodes), bound, holders)
            own = replace(problem, graph=graph, server=None, domains=holders.domains, asked=())
            if length is not None:
                rows, more = run_part(own, list(nodes), bound, length, by)
                if few is None or not holders.cut or len(rows) >= length:
                    return rows, more or holders.cut
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
            bond, near = self._ahead(left, reach)
            left.remove(bond)
            far = bond.other(near)
            beyond = reach.get(far, allowed.get(far))
            together = self._together(problem, bond, near, left, reach, allowed, holders, slack, statements=several)
            if together is not None:
                edges = together
            elif beyond is not None and (reach[near] is None or len(beyond) < len(reach[near])):  # type: ignore[arg-type]
                edges = self._along(problem, bond, far, beyond, slack, statements=several)
            else:
                edges = self._along(problem, bond, near, reach[near], slack, statements=several)
            edges = _between(edges, reach[near], beyond)
            found.append(edges)
            for node, ends in ((near, edges[:, [0, 2]]), (far, _beyond(edges, reach[near]))):
                before, met = reach.get(node, allowed.get(node)), np.unique(ends).astype(np.int32)
                reach[node] = holders.of(node, met if before is None else met[np.isin(met, before)])
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
        known = self._known.setdefault((plan.condition, tuple(plan.prices)), _Known())
        found = known.of(numbers, lambda fresh: self.store.holders(self.catalogue, fresh, plan, self.tally))
        if not found:
            return _none().astype(np.int64), _none().astype(np.int64)
        nodes, predicates = (np.concatenate(some) for some in zip(*found, strict=True))
        return nodes, predicates

    def _ways(self, problem: Problem, bond: PairEdges, side: int, slack: int) -> dict[End, tuple[int, ...]]:
        """The predicates that a bond can use, by the end of them that its side is at."""
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
        return {end: tuple(sorted(predicates)) for end, predicates in ways.items() if predicates}

    def _along(
        self, problem: Problem, bond: PairEdges, side: int, numbers: Numbers | None, slack: int, *, statements: bool
    ) -> Edges:
        """The edges that a bond can use, at some nodes of one of its sides."""
        ways = self._ways(problem, bond, side, slack)
        found = [self._fetch(numbers, end, predicates, statements=statements) for end, predicates in ways.items()]
        return np.concatenate(found) if found else np.empty((0, 4), np.int64)

    @staticmethod
    def _ahead(bonds: Sequence[PairEdges], reach: Mapping[int, Numbers | None]) -> tuple[PairEdges, int]:
        """The next bond to be looked at, and its side that is found."""
        ahead = [bond for bond in bonds if bond.first in reach or bond.second in reach]
        # Edges between nodes that are found first: they leave fewer of them.
        bond = min(ahead, key=lambda one: (not (one.first in reach and one.second in reach), -one.least, one.first, one.second))
        return bond, bond.first if bond.first in reach else bond.second

    def _together(
        self, problem: Problem, bond: PairEdges, near: int, left: Sequence[PairEdges], reach: Mapping[int, Numbers | None],
        allowed: Mapping[int, Numbers], holders: _Holders, slack: int, *, statements: bool,
    ) -> Edges | None:  # fmt: skip
        """The edges of a bond to a node of which nothing is known yet: of the first few where no more are looked at. Those of
        the next bond, which lead on from there, are fetched with them. None where a store has no query for that.
        """
        far, ways = bond.other(near), self._ways(problem, bond, near, slack)
        numbers = reach[near]
        if far in reach or far in allowed or far in holders.left or numbers is None or len(ways) != 1:
            return None
        ((end, predicates),) = ways.items()
        then: tuple[End, tuple[int, ...]] | None = None
        if left:
            other, side = self._ahead(left, {**reach, far: None})
            onward = self._ways(problem, other, side, slack)
            if side == far and other.other(side) not in reach and other.other(side) not in allowed and len(onward) == 1:
                ((then),) = onward.items()
        few = holders.first_of(far)
        known = self._known.setdefault((end, predicates, statements), _Known())
        if known.every or (few is None and then is None) or not len(np.setdiff1d(numbers, known.nodes)):
            return None
        found = self.store.edges_on(self.catalogue, numbers, end, predicates, few, then, statements=statements, tally=self.tally)
        if found is None:
            return None
        edges, more, whole = found
        if whole:
            known.add(numbers, edges)
        if then is not None:
            ends = np.unique(edges[:, 2 if end == "subject" else 0])
            self._known.setdefault((*then, statements), _Known()).add(ends, more)
        return edges

    def _fetch(self, numbers: Numbers | None, end: End, predicates: tuple[int, ...], *, statements: bool) -> Edges:
        """The edges of nodes at one end; what was fetched before is not fetched again."""

        def fetch(fresh: Numbers | None) -> Edges:
            return self.store.edges(self.catalogue, fresh, end, predicates, statements=statements, tally=self.tally)

        kept = self._known.setdefault((end, predicates, statements), _Known()).of(numbers, fetch)
        found = np.concatenate(kept) if kept else np.empty((0, 4), np.int64)
        return found if numbers is None else found[np.isin(found[:, 0 if end == "subject" else 2], numbers)]

    def _adjacency(self, found: Sequence[Edges]) -> SearchGraph:
        """Edges as a search sees them; each of them once."""
        whole = self.catalogue.graph
        size, predicates = self.catalogue.size, whole.predicates
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
    """The domains of a part with the values that its nodes are to have, and the types that they are to be of: each node's
    are fetched once, for the nodes that it may be by then.
    """

    def __init__(self, parts: FetchedParts, problem: Problem, slack: int, nodes: list[int], few: int | None) -> None:
        """Of the first node only the first `few` are looked at (None: all)."""
        self._parts, self._problem = parts, problem
        self._plans = value_plans(problem, parts.catalogue, nodes, slack)
        self.domains = list(problem.domains)
        self._types = {node: types for node in nodes if (types := problem.domains[node].types) is not None}
        #: Nodes whose values, and types, have not been looked at.
        self.left = {*self._plans, *self._types}
        self._first, self._few = min(nodes), few
        #: Whether only the first few of the first node were looked at.
        self.cut = False

    def first_of(self, node: int) -> int | None:
        """Of how many nodes the first are looked at for a node of the pattern; None is all."""
        return self._few if node == self._first else None

    def of(self, node: int, numbers: Numbers | None) -> Numbers | None:
        """Of some nodes (None: any) those that a node of the pattern may be by its values."""
        numbers = self._checked(node, numbers)
        if node == self._first and numbers is not None and self._few is not None and len(numbers) > self._few:
            order = np.argsort(self._problem.graph.rank.take(numbers))[: self._few]
            numbers, self.cut = np.sort(numbers[order]), True
            costs = self.domains[node].at(numbers)
            self.domains[node] = Domain(np.zeros(len(numbers), np.int64) if costs is None else costs, numbers)
        return numbers

    def _checked(self, node: int, numbers: Numbers | None) -> Numbers | None:
        if node not in self.left:
            return numbers
        self.left.remove(node)
        if node in self._types:
            numbers = self._parts.store.of_types(self._parts.catalogue, self._types[node], numbers)
            self.domains[node] = Domain(np.zeros(len(numbers), np.int64), numbers).without(self.domains[node].excluded)
        edges = [edge for edge in self._problem.asked if edge.node == node]
        for edge, plan in zip(edges, self._plans.get(node, ()), strict=True):
            held = self._parts.values(numbers, plan)
            self.domains[node] = with_value(self.domains[node], edge, *held)
            some = self.domains[node].nodes
            assert some is not None
            numbers = some if numbers is None else some[np.isin(some, numbers)]
        return numbers


def _none() -> Numbers:
    return np.empty(0, np.int32)


def _beyond(edges: Edges, nodes: Numbers | None) -> NDArray[np.int64]:
    """The nodes at the other ends of edges of some nodes (None: any)."""
    if nodes is None:
        return edges[:, [0, 2]]
    return np.concatenate([edges[np.isin(edges[:, 0], nodes), 2], edges[np.isin(edges[:, 2], nodes), 0]])


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


# -- Plans -------------------------------------------------------------------------------------------

#: Nodes that a plan names.
_NAMED: Final = 1_000
_ALL: Final = alg.AllEntities((EntityKind.ENTITY, EntityKind.CONCEPT, EntityKind.ROW))
#: Seconds for which the names of a store that others change serve further patterns.
_LASTS: Final = 10.0


def planned(
    store: QueryStore, place: str, graph: str, *, changing: bool = False, kind: type[PlannedPatterns] | None = None
) -> PlannedPatterns:
    """Patterns on a store as it is now; what the client keeps for them is fetched once for each content. `place` and `graph`
    say where vectors are kept for it on this machine. Of a store that is `changing` without a word, names are read again
    after `_LASTS` seconds, and not before ten times as long as reading them took.
    """
    kept = store.naming_schema.kept
    result: PlannedPatterns = shared(kept, "patterns", lambda: (kind or PlannedPatterns)(store, CachedVectors(place, graph)))
    if changing and time.monotonic() > result.fresh_until:
        kept.pop("patterns", None)
        before, result = result, planned(store, place, graph, kind=kind)
        if result.catalogue.is_equal(before.catalogue):
            # The names are encoded already.
            before.fresh_until = result.fresh_until
            result = kept["patterns"] = before
    return result


class Statements:
    """The statements of one state of a graph in a store, as patterns ask for them (`patterns.remote.solutions.PatternStore`)."""

    def __init__(self, store: QueryStore) -> None:
        self._store = store
        self._period: Period | None = None

    def at(self, period: Period | None) -> Self:
        """The same, of the statements that hold in a period."""
        result = copy(self)
        result._period = period
        return result

    def parts(self, catalogue: Catalogue, tally: Tally) -> FetchedParts:
        """The joins of a search, over fetched edges."""
        return FetchedParts(self, catalogue, tally)

    def catalogue_now(self) -> Catalogue:
        """What the client knows of the graph."""
        schema = cast("StoredSchema", self._store.naming_schema)
        entities = [(one.id, one.name, int(one.kind)) for one in plan_answer(self._store, _ALL).entities]
        texts, edged = self.texts_now(schema)
        values = {name: schema.attribute_kinds(name) for name in schema.attributes}
        concepts = alg.AllEntities((EntityKind.CONCEPT,))
        memberships = bool(schema.concepts) and (
            plan_answer(self._store, alg.Count(alg.Members(concepts))).values[0] > 0
            or (schema.concept_members and len(self._read([_memberships(concepts, concepts)], Tally()).arrays.get("mem.e")) > 0)
        )
        return Catalogue(entities, texts, edged, memberships=memberships, values=values)

    def texts_now(self, schema: StoredSchema) -> tuple[list[str], dict[str, bool]]:
        """The texts that attributes have, and the names of all predicates and whether they have edges."""
        attributes, texts = texts_of(schema), list[str]()
        if attributes:
            found = plan_answer(self._store, alg.Distinct(alg.Objects(alg.Scan(None, attributes, family="attribute"))))
            texts = [value for value in dict.fromkeys(found.values) if isinstance(value, str)]
        return texts, edged_predicates(schema)

    def of_types(self, catalogue: Catalogue, types: Sequence[str], nodes: Numbers | None = None) -> Numbers:
        """Of some nodes (None: any) the entities, and no concepts, in any of some concepts, closed under subclass."""
        found: set[int] = set()
        members: alg.Entities = alg.Members(self.concepts(catalogue, types))
        for some in [None] if nodes is None else _chunks(nodes.tolist()):
            plan = members if some is None else alg.intersect(_entities(catalogue, some), members)
            found.update(catalogue.identified(one.id) for one in plan_answer(self._store, plan).entities)
        return np.array(sorted(found - {-1}), np.int32)

    def concepts(self, catalogue: Catalogue, ids: Sequence[str]) -> alg.Entities:
        """The concepts of some ids."""
        return alg.ById(tuple(ids))

    def gathered(self, units: Sequence[Unit], *, ends: bool) -> Snapshot:
        """The statements and memberships of units; with `ends`, qualifiers and names need not be among them."""
        return self._store.gather(units)

    def _read(self, units: Sequence[Unit], tally: Tally, *, ends: bool = False) -> Snapshot:
        """The statements and memberships of units, those of the period alone."""
        found = self.gathered(units, ends=ends and self._period is None)
        tally.queries += 1
        tally.rows += found.statements + len(found.arrays.get("mem.e"))
        return found if self._period is None else cut(found, self._period)

    def edges(
        self, catalogue: Catalogue, nodes: Numbers | None, end: End, predicates: Sequence[int], *, statements: bool, tally: Tally
    ) -> Edges:
        """The edges with these nodes (None: any) at one end and one of these predicates.

        With `statements`, one row a statement, told apart by its id; else equal triples may be one row.
        """
        last = len(catalogue.predicates)
        names = tuple(catalogue.predicates[number] for number in predicates if number != last)
        edges = [np.empty((0, 4), np.int64)]
        for some in [None] if nodes is None else _chunks(nodes.tolist()):
            of, units = None if some is None else _entities(catalogue, some), list[Unit]()
            if names and (of is None or of.ids):
                units.append(Unit(alg.Scan(of, names, end, family="any" if end == "subject" else "relation")))
            texts = [catalogue.key(number) for number in some or () if catalogue.is_text(number)]
            if names and texts and end == "object":
                units.append(_with_text(None, names, texts))
            if last in predicates and (of is None or of.ids):
                units.append(self._members(catalogue, of, end))
            if units:
                check()
                edges.append(edges_in(self._read(units, tally, ends=not statements), catalogue, statements=statements))
        return np.concatenate(edges)

    def edges_on(
        self, catalogue: Catalogue, nodes: Numbers, end: End, predicates: Sequence[int], few: int | None,
        then: tuple[End, tuple[int, ...]] | None, *, statements: bool, tally: Tally,
    ) -> tuple[Edges, Edges, bool] | None:  # fmt: skip
        """Edges as of `edges`, those to the first `few` nodes (None: all) and the next one; the edges that lead on from these
        by `then`; and whether these are all nodes. None where there is no one query for it.
        """
        return None

    def _members(self, catalogue: Catalogue, of: alg.ById | None, end: End) -> Unit:
        """The memberships with some entities (None: any) at one end."""
        if of is None or end == "subject":
            return _memberships(of, None)
        concepts = self.concepts(catalogue, of.ids)
        members: alg.Entities = alg.Members(concepts)
        if cast("StoredSchema", self._store.naming_schema).concept_members:
            # They have no concepts among them.
            members = alg.Union((members, alg.AllEntities((EntityKind.CONCEPT,))))
        return Unit(members, (members,), concepts)

    def holders(self, catalogue: Catalogue, nodes: Numbers | None, plan: ValuePlan, tally: Tally) -> Holders:
        """Of these nodes (None: any) those that have a value as planned, and under which predicate,
        by number; a pair a statement at least once.
        """
        found = [np.empty((0, 2), np.int64)]
        for unit in _valued(catalogue, nodes, plan):
            part = self._read([unit], tally)
            _, subjects, predicates = holders(part, plan.condition)
            own, names = _numbers_in(part, catalogue)
            found.append(np.stack([own[subjects], names[predicates]], axis=1))
        pairs = np.concatenate(found)
        pairs = pairs[(pairs >= 0).all(axis=1)]
        return pairs[:, 0], pairs[:, 1]

    def between(self, catalogue: Catalogue, pairs: Sequence[tuple[int, int]], values: Sequence[Held] = ()) -> Snapshot:
        """All statements and stated memberships between pairs of nodes, and statements of values,
        with qualifiers and sources.
        """
        met = sorted({number for pair in pairs for number in pair})
        of = _entities(catalogue, [*met, *(number for numbers, _ in values for number in numbers)])
        texts = [catalogue.key(number) for number in met if catalogue.is_text(number)]
        units = [Unit(of, (of,))]
        if pairs:
            units.append(Unit(alg.Where(alg.Scan(of, None, reach="object", family="relation"), alg.Among(of))))
        if texts:
            units.append(_with_text(of, None, texts))
        if pairs and catalogue.used[-1]:
            units.append(_memberships(of, of))
        for numbers, plan in values:
            units += _valued(catalogue, np.array(numbers, np.int32), plan)
        return self._read(units, Tally())


class PlannedPatterns(Statements):
    """Patterns on one state of a graph in a store."""

    def __init__(self, store: QueryStore, vectors: CachedVectors) -> None:
        super().__init__(store)
        self._vectors = vectors
        #: Warnings of every search.
        self.notes: list[str] = []
        self._terms: dict[tuple[str, int], CatalogueTerms] = {}
        begin = time.monotonic()
        self.catalogue = self.catalogue_now()
        now = time.monotonic()
        self.fresh_until = now + max(_LASTS, 10 * (now - begin))

    def match(
        self,
        program: Any,
        *,
        encoder: Encoder | str | None = None,
        limit: int | None = None,
        period: Period | None = None,
        **options: Any,
    ) -> Matches:
        """The subgraphs that are nearest to a pattern, as a snapshot of the graph (of a period) gives them."""
        asked = ("", 0) if encoder is None else (encoder, -1) if isinstance(encoder, str) else (encoder.id, encoder.dimension)
        terms = self._terms.get(asked)
        if terms is None:
            terms = self._terms[asked] = self._vectors.terms(self.catalogue, encoder)
        names = NamedCatalogue(self.catalogue, lambda types: self.of_types(self.catalogue, types))
        found, tally = match_remote(
            self.at(period), names, self.catalogue, terms, program, limit=limit, noted=self.notes, period=period, **options
        )
        found.sparql = "\n\n".join(tally.texts) or None
        return found

    def index(self, encoder: Encoder, on_progress: OnProgress | None) -> IndexReport:
        """Keep the vectors of the graph's names; patterns go by them from now on."""
        self._terms.clear()
        return self._vectors.index(self.catalogue, encoder, on_progress)


def texts_of(schema: StoredSchema) -> tuple[str, ...]:
    """The attributes that have texts."""
    return tuple(name for name in schema.attributes if any(kind is Kind.TEXT for kind, _ in schema.attribute_kinds(name)))


def edged_predicates(schema: StoredSchema) -> dict[str, bool]:
    """All predicates, and keys of qualifiers, and whether they have edges between nodes."""
    edged = {*schema.relations, *texts_of(schema)}
    return {name: name in edged for name in {*schema.relations, *schema.attributes, *schema.qualifiers}}


def _chunks(numbers: Sequence[int]) -> Iterator[Sequence[int]]:
    return (numbers[start : start + _NAMED] for start in range(0, len(numbers), _NAMED))


def _entities(catalogue: Catalogue, numbers: Iterable[int]) -> alg.ById:
    """The entities among nodes."""
    return alg.ById(tuple(dict.fromkeys(catalogue.key(number) for number in numbers if not catalogue.is_text(number))))


def _with_text(of: alg.Entities | None, names: tuple[str, ...] | None, texts: Sequence[str]) -> Unit:
    return Unit(alg.Where(alg.Scan(of, names, family="attribute"), alg.any_of([alg.Compare("=", text) for text in texts])))


def _memberships(members: alg.Entities | None, concepts: alg.Entities | None) -> Unit:
    """The memberships that are stated of some entities (None: any) in some concepts."""
    of = members or _ALL
    return Unit(of, (of,), concepts or alg.AllEntities((EntityKind.CONCEPT,)))


def _valued(catalogue: Catalogue, nodes: Numbers | None, plan: ValuePlan) -> list[Unit]:
    """Statements with a value as planned, or nearly so, of some nodes (None: any)."""
    names, tests = tuple(plan.prices), list[alg.Condition]()
    units = dict.fromkeys(unit for name in names for unit in catalogue.units(name))
    for one in plan.numbers:
        # A number without a unit compares with any.
        every = [replace(one, unit=unit) for unit in units] if one.unit == NO_UNIT else [one]
        tests += [alg.Compare(plan.condition.operator, number) for number in every]
    if plan.time is not None:
        tests.append(alg.Compare(plan.condition.operator, plan.time))
    if not tests:
        return []
    test = alg.any_of(tests)
    some = [None] if nodes is None else [_entities(catalogue, part) for part in _chunks(nodes.tolist())]
    return [Unit(alg.Where(alg.Scan(of, names, family="attribute"), test)) for of in some]


def _numbers_in(part: Snapshot, catalogue: Catalogue) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The numbers that the catalogue has for the entities and the predicates of a part; -1 for none."""
    nodes = [catalogue.identified(part.ident(number)) for number in range(part.entities)]
    names = [catalogue.predicate_numbers.get(part.predicate_name(number), -1) for number in range(part.predicate_count)]
    return np.array(nodes, np.int64), np.array(names, np.int64)


def edges_in(part: Snapshot, catalogue: Catalogue, *, statements: bool) -> Edges:
    """The edges of a part of a graph."""
    get, last = part.arrays.get, len(catalogue.predicates)
    nodes, names = _numbers_in(part, catalogue)
    every = np.arange(part.statements, dtype=np.int32)
    objects = np.full(part.statements, -1, np.int64)
    objects[: part.relations] = nodes[part.relation_object]
    if part.statements > part.relations:
        texts = np.flatnonzero(get("att.kind") == Kind.TEXT)
        objects[part.relations + texts] = [catalogue.text(text) for text in part.texts.take(get("att.ref")[texts])]
    keys = statement_ids(part) if statements else np.zeros(part.statements, np.int64)
    found = np.stack([nodes[part.subjects(every)], names[part.predicates(every)], objects, keys], axis=1)
    members, concepts = nodes[get("mem.e")], nodes[get("mem.c")]
    linked = np.stack([members, np.full(len(members), last), concepts, np.zeros(len(members), np.int64)], axis=1)
    result = np.concatenate([found, linked])
    return result[(result[:, :3] >= 0).all(axis=1)]
