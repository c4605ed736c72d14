"""Patterns on any store: the client's catalogue, and the statements of a search and of its solutions, fetched by plans
of the algebra, which every store runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, Self, TypeAlias, cast, runtime_checkable

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
from condgraph.patterns.graph import Costs, Numbers, SearchGraph
from condgraph.patterns.join.driver import run_part
from condgraph.patterns.join.join import Join, Limit
from condgraph.patterns.matches import Matches
from condgraph.patterns.problem import Problem
from condgraph.patterns.ranking import Rows
from condgraph.patterns.remote.catalogue import Catalogue, Tally
from condgraph.patterns.remote.match import match_remote
from condgraph.patterns.remote.solutions import Held
from condgraph.patterns.remote.terms import CatalogueTerms
from condgraph.patterns.remote.values import ValuePlan, value_plans
from condgraph.patterns.remote.vectors import CachedVectors, NameVectors
from condgraph.patterns.values import holders, with_value
from condgraph.vectors.encoders import Encoder
from condgraph.vectors.stored import IndexReport, OnProgress

if TYPE_CHECKING:
    from condgraph.engine.store import EndPart, QueryStore
    from condgraph.engine.stored_schema import StoredSchema

# -- Joins over fetched edges ------------------------------------------------------------------------

# The join of a connected part over the edges that it can use, fetched from a store.
#
# Step by step along the pattern, the edges of the nodes reached so far are fetched, with the predicates that the bound allows.
# The part is then joined over these edges as in process. They include every edge of every solution under the bound, so the
# first solutions are the same.


#: How many candidates of a pattern's first node are tried, round by round; None is all.
_FIRST: Final[tuple[int | None, ...]] = (64, 1024, None)
#: The end of an edge at which the requested nodes are.
End: TypeAlias = Literal["subject", "object"]
#: Edges, shape (n, 4), int64: subject, predicate (memberships last), object, and a key that tells parallel edges apart.
Edges: TypeAlias = NDArray[np.int64]
#: Nodes that have a value, and its predicates.
Holders: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64]]


@dataclass(slots=True)
class _Known:
    """Results fetched so far, for `nodes` or, if `every`, for all nodes."""

    nodes: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    every: bool = False
    found: list[Any] = field(default_factory=list)

    def of(self, numbers: Numbers | None, fetch: Callable[[Numbers | None], Any]) -> list[Any]:
        """Return the results for nodes (None: all), possibly with those of others. Only new nodes are fetched."""
        missing = None if numbers is None else np.setdiff1d(numbers, self.nodes).astype(np.int32)
        if not self.every and (missing is None or len(missing)):
            check()
            result = fetch(missing)
            if missing is None:
                self.every = True
                self.found.clear()
            else:
                self.nodes = np.union1d(self.nodes, missing)
            self.found.append(result)
        return self.found

    def add(self, numbers: NDArray[Any], found: Edges) -> None:
        """Add edges of nodes that were fetched with those of others, unless all nodes are known."""
        if not self.every:
            self.found.append(found)
            self.nodes = np.union1d(self.nodes, numbers)


@dataclass(slots=True)
class FetchedParts:
    """Joins the parts of a pattern over edges fetched from a store (`patterns.problem.Server`)."""

    store: Statements
    catalogue: Catalogue
    tally: Tally
    #: Results by request: edges by end, predicates and `statements`; holders of values by condition and predicates.
    _known: dict[Any, _Known] = field(default_factory=dict)

    def part(self, problem: Problem, nodes: Sequence[int], bound: int, length: int | None, by: Sequence[int]) -> tuple[Rows, bool]:
        """Return the first `length` solutions of a part (None: all), per group if it has nodes of `by`, and whether
        there are more.
        """
        if bound < problem.least(nodes):
            return Rows(np.empty(0, np.int64), {node: np.empty(0, np.int32) for node in nodes}), False
        # Solutions at one distance are ordered by their first node, so its first few candidates may be enough.
        for first_few in _FIRST if length is not None and bound == problem.least(nodes) and not by else (None,):
            holders = _Holders(self, problem, bound - problem.least(nodes), list(nodes), first_few)
            graph = self._graph(problem, list(nodes), bound, holders)
            part_problem = replace(problem, graph=graph, server=None, domains=holders.domains, asked=())
            if length is not None:
                rows, more = run_part(part_problem, list(nodes), bound, length, by)
                if first_few is None or not holders.cut or len(rows) >= length:
                    return rows, more or holders.cut
        batches = [Rows(np.empty(0, np.int64), {node: np.empty(0, np.int32) for node in nodes})]

        def keep(rows: Rows) -> Limit:
            batches.append(rows)
            return bound, None

        Join(part_problem, nodes, bound, None, (), keep).run()
        return Rows.joined(batches), False

    def around(self, nodes: NDArray[Any]) -> SearchGraph:
        """Return the edges of some nodes as an adjacency."""
        predicates = tuple(np.flatnonzero(self.catalogue.used).tolist())
        near = np.unique(nodes).astype(np.int32)
        return adjacency(self.catalogue, [self._fetch(near, end, predicates, statements=True) for end in ("subject", "object")])

    # -- the edges of a part -----------------------------------------------------------------------

    def _graph(self, problem: Problem, nodes: list[int], bound: int, holders: _Holders) -> SearchGraph:
        """Return the edges that solutions under the bound can have, as an adjacency. Values of nodes are checked as
        nodes are reached.
        """
        slack = bound - problem.least(nodes)
        bonds = [bond for bond in problem.bonds if bond.first in nodes]
        parallel = any(len(bond.edges) > 1 for bond in [*bonds, *problem.loops.values()])
        parallel = parallel or (problem.distinct and len(problem.bonds) + len(problem.loops) > 1)
        allowed = {
            node: problem.domains[node].within(problem.domains[node].least + slack)[0]
            for node in nodes
            if not problem.domains[node].open
        }
        fetched: list[Edges] = []
        reach: dict[int, Numbers | None] = {}
        seed = min(allowed, key=lambda node: (len(allowed[node]), node)) if allowed else min(holders.left, default=nodes[0])
        reach[seed] = holders.of(seed, allowed.get(seed))
        remaining = list(bonds)
        while remaining:
            bond, near = self._ahead(remaining, reach)
            remaining.remove(bond)
            far = bond.other(near)
            far_nodes = reach.get(far, allowed.get(far))
            pushed = self._together(problem, bond, near, remaining, reach, allowed, holders, slack, statements=parallel)
            if pushed is not None:
                edges = pushed
            elif far_nodes is not None and (reach[near] is None or len(far_nodes) < len(reach[near])):  # type: ignore[arg-type]
                edges = self._along(problem, bond, far, far_nodes, slack, statements=parallel)
            else:
                edges = self._along(problem, bond, near, reach[near], slack, statements=parallel)
            edges = _between(edges, reach[near], far_nodes)
            fetched.append(edges)
            for node, ends in ((near, edges[:, [0, 2]]), (far, _beyond(edges, reach[near]))):
                candidates, reached = reach.get(node, allowed.get(node)), np.unique(ends).astype(np.int32)
                reach[node] = holders.of(node, reached if candidates is None else reached[np.isin(reached, candidates)])
        for node, loop in problem.loops.items():
            if node in nodes:
                edges = self._along(problem, loop, node, reach.get(node, allowed.get(node)), slack, statements=parallel)
                fetched.append(edges[edges[:, 0] == edges[:, 2]])
        if problem.forbidden:
            inside = np.unique(np.concatenate([numbers for numbers in reach.values() if numbers is not None] or [_none()]))
            predicates = tuple(np.flatnonzero(self.catalogue.used).tolist())
            edges = self._fetch(inside.astype(np.int32), "subject", predicates, statements=parallel)
            fetched.append(edges[np.isin(edges[:, 2], inside)])
        return adjacency(self.catalogue, fetched)

    def values(self, numbers: Numbers | None, plan: ValuePlan) -> Holders:
        """Return the nodes with a value that matches a plan, and its predicates. Only new nodes are fetched."""
        cached = self._known.setdefault((plan.condition, tuple(plan.prices)), _Known())
        results = cached.of(numbers, lambda missing: self.store.holders(self.catalogue, missing, plan, self.tally))
        if not results:
            return _none().astype(np.int64), _none().astype(np.int64)
        nodes, predicates = (np.concatenate(columns) for columns in zip(*results, strict=True))
        return nodes, predicates

    def _ways(self, problem: Problem, bond: PairEdges, side: int, slack: int) -> dict[End, tuple[int, ...]]:
        """Return the predicates that a bond can use, by the end of the edge at which `side` is."""
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
            for end, costs in pairs:
                ways[end].update(np.flatnonzero((costs <= least + slack) & (costs < BARRED) & self.catalogue.used).tolist())
        return {end: tuple(sorted(predicates)) for end, predicates in ways.items() if predicates}

    def _along(
        self, problem: Problem, bond: PairEdges, side: int, numbers: Numbers | None, slack: int, *, statements: bool
    ) -> Edges:
        """Return the edges that a bond can use, at some nodes of one of its sides."""
        ways = self._ways(problem, bond, side, slack)
        edges = [self._fetch(numbers, end, predicates, statements=statements) for end, predicates in ways.items()]
        return np.concatenate(edges) if edges else np.empty((0, 4), np.int64)

    @staticmethod
    def _ahead(bonds: Sequence[PairEdges], reach: Mapping[int, Numbers | None]) -> tuple[PairEdges, int]:
        """Return the bond to fetch next, and a side of it that is already reached."""
        reachable = [bond for bond in bonds if bond.first in reach or bond.second in reach]
        # Bonds between two reached nodes come first: they leave fewer candidates.
        bond = min(
            reachable,
            key=lambda candidate: (
                not (candidate.first in reach and candidate.second in reach),
                -candidate.least,
                candidate.first,
                candidate.second,
            ),
        )
        return bond, bond.first if bond.first in reach else bond.second

    def _together(
        self, problem: Problem, bond: PairEdges, near: int, left: Sequence[PairEdges], reach: Mapping[int, Numbers | None],
        allowed: Mapping[int, Numbers], holders: _Holders, slack: int, *, statements: bool,
    ) -> Edges | None:  # fmt: skip
        """Fetch the edges of a bond to a node of which nothing is known yet, limited to its first few nodes if no more
        are tried, in one query with those of the next bond if it leads on from there. None if the store has no such
        query.
        """
        far, ways = bond.other(near), self._ways(problem, bond, near, slack)
        numbers = reach[near]
        if far in reach or far in allowed or far in holders.left or numbers is None or len(ways) != 1:
            return None
        ((end, predicates),) = ways.items()
        then: tuple[End, tuple[int, ...]] | None = None
        if left:
            next_bond, side = self._ahead(left, {**reach, far: None})
            onward = self._ways(problem, next_bond, side, slack)
            if side == far and next_bond.other(side) not in reach and next_bond.other(side) not in allowed and len(onward) == 1:
                ((then),) = onward.items()
        limit = holders.first_of(far)
        cached = self._known.setdefault((end, predicates, statements), _Known())
        if cached.every or (limit is None and then is None) or not len(np.setdiff1d(numbers, cached.nodes)):
            return None
        result = self.store.edges_on(self.catalogue, numbers, end, predicates, limit, then, statements=statements, tally=self.tally)
        if result is None:
            return None
        edges, onward_edges, complete = result
        if complete:
            cached.add(numbers, edges)
        if then is not None:
            ends = np.unique(edges[:, 2 if end == "subject" else 0])
            self._known.setdefault((*then, statements), _Known()).add(ends, onward_edges)
        return edges

    def _fetch(self, numbers: Numbers | None, end: End, predicates: tuple[int, ...], *, statements: bool) -> Edges:
        """Return the edges of nodes at one end. Only new nodes are fetched."""
        if numbers is None:
            # By their objects, stores find edges between entities only.
            end = "subject"

        def fetch(fresh: Numbers | None) -> Edges:
            return self.store.edges(self.catalogue, fresh, end, predicates, statements=statements, tally=self.tally)

        results = self._known.setdefault((end, predicates, statements), _Known()).of(numbers, fetch)
        edges = np.concatenate(results) if results else np.empty((0, 4), np.int64)
        return edges if numbers is None else edges[np.isin(edges[:, 0 if end == "subject" else 2], numbers)]


def adjacency(catalogue: Catalogue, found: Sequence[Edges]) -> SearchGraph:
    """Return distinct edges as an adjacency."""
    graph, size = catalogue.graph, catalogue.size
    predicates = graph.predicates
    edges = np.unique(np.concatenate(found), axis=0) if found else np.empty((0, 4), np.int64)
    subject, predicate, target = edges[:, 0], edges[:, 1], edges[:, 2]
    loop = subject == target
    nodes = np.concatenate([subject, target[~loop]])
    neighbours = np.concatenate([target, subject[~loop]])
    labels = np.concatenate([np.where(loop, 2 * predicates + predicate, 2 * predicate), 2 * predicate[~loop] + 1])
    order = np.lexsort((labels, neighbours, nodes))
    offsets = np.zeros(size + 1, np.int64)
    np.cumsum(np.bincount(nodes, minlength=size), out=offsets[1:])
    return SearchGraph(
        offsets, neighbours[order].astype(np.int32), labels[order].astype(np.int32), predicates, graph.entities, graph.rank
    )


class _Holders:
    """The domains of a part, narrowed by the values and types that its nodes must have. Each node's values and types
    are fetched once, for the candidates that remain by then.
    """

    def __init__(self, parts: FetchedParts, problem: Problem, slack: int, nodes: list[int], few: int | None) -> None:
        """Only the first `few` candidates of the first node are tried (None: all)."""
        self._parts, self._problem = parts, problem
        self._plans = value_plans(problem, parts.catalogue, nodes, slack)
        self.domains = list(problem.domains)
        self._types = {node: types for node in nodes if (types := problem.domains[node].types) is not None}
        #: Nodes whose values and types are still to be checked.
        self.left = {*self._plans, *self._types}
        self._first, self._few = min(nodes), few
        #: Whether candidates of the first node were left out.
        self.cut = False

    def first_of(self, node: int) -> int | None:
        """Return how many candidates of a node of the pattern are tried; None is all."""
        return self._few if node == self._first else None

    def of(self, node: int, numbers: Numbers | None) -> Numbers | None:
        """Return those of some nodes (None: any) that a node of the pattern may be by its values and types."""
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
            matches = self._parts.values(numbers, plan)
            self.domains[node] = with_value(self.domains[node], edge, *matches)
            candidates = self.domains[node].nodes
            assert candidates is not None
            numbers = candidates if numbers is None else candidates[np.isin(candidates, numbers)]
        return numbers


def _none() -> Numbers:
    return np.empty(0, np.int32)


def _beyond(edges: Edges, nodes: Numbers | None) -> NDArray[np.int64]:
    """Return the far ends of the edges of some nodes (None: any)."""
    if nodes is None:
        return edges[:, [0, 2]]
    return np.concatenate([edges[np.isin(edges[:, 0], nodes), 2], edges[np.isin(edges[:, 2], nodes), 0]])


def _between(edges: Edges, one: Numbers | None, two: Numbers | None) -> Edges:
    """Return the edges between two sets of nodes (None: any), in either direction."""
    if not len(edges) or (one is None and two is None):
        return edges

    def inside(column: NDArray[np.int64], numbers: Numbers | None) -> NDArray[np.bool_]:
        mask: NDArray[np.bool_] = np.ones(len(column), bool) if numbers is None else np.isin(column, numbers)
        return mask

    keep = (inside(edges[:, 0], one) & inside(edges[:, 2], two)) | (inside(edges[:, 0], two) & inside(edges[:, 2], one))
    result: Edges = edges[keep]
    return result


# -- Plans -------------------------------------------------------------------------------------------

#: The most statements of a graph whose edges are copied.
MAX_COPIED = 250_000
#: The most nodes that a plan names.
_NAMED: Final = 1_000
_ALL: Final = alg.AllEntities((EntityKind.ENTITY, EntityKind.CONCEPT, EntityKind.ROW))
#: The most results of whether a predicate occurs in a period that are cached.
_OCCURRING: Final = 10_000
#: The least time in seconds after which the names of a store that changes unnoticed are read again.
_LASTS: Final = 10.0


def planned(
    store: QueryStore,
    place: str,
    graph: str,
    *,
    changing: bool = False,
    counts: Mapping[str, int] | None = None,
    kind: type[PlannedPatterns] | None = None,
    ends: EndStore | None = None,
) -> PlannedPatterns:
    """Return patterns on a store in its present state. The client's catalogue is read once per state of the graph;
    `counts` are of this state (None: unknown). `place` and `graph` name the folder where vectors are cached on this
    machine. If the store is `changing` without notice, names are read again after `_LASTS` seconds, or after ten times
    the seconds that reading took, if that is more.
    """
    cache = store.naming_schema.kept
    result: PlannedPatterns = shared(cache, "patterns", lambda: (kind or PlannedPatterns)(store, CachedVectors(place, graph), ends))
    result.counts = counts
    if changing and time.monotonic() > result.fresh_until:
        cache.pop("patterns", None)
        previous, result = result, planned(store, place, graph, kind=kind, ends=ends)
        if result.catalogue.is_equal(previous.catalogue):
            # Reuse the encoded names.
            previous.fresh_until = result.fresh_until
            result = cache["patterns"] = previous
    return result


#: The ends of a statement: the node of its subject, its predicate (None: a membership), the node of its object or, in
#: place of that, its text, and a key that tells parallel statements apart. All but the object are None for other values.
EndRow: TypeAlias = Sequence[Any]


class EndStore(Protocol):
    """A store that returns the ends of statements alone, a tenth of the size of whole statements."""

    @property
    def ends_of(self) -> int:
        """The most nodes for which ends are read at once."""
        ...

    def ends(self, parts: Sequence[EndPart], tally: Tally, *, statements: bool) -> Sequence[EndRow]:
        """Return the ends of all parts with one query, which it adds to `tally`. Without `statements`, keys may be
        missing, and equal triples may share a row.
        """
        ...

    def node_keys(self, ids: Sequence[str], texts: Sequence[str]) -> Mapping[Any, int] | None:
        """Return the positions of entities, and of the texts after them, by their nodes in rows; None if these are ids."""
        ...

    def predicate_of(self, kind: str) -> str:
        """Return the name of a predicate in a row."""
        ...


@runtime_checkable
class JoinedEnds(EndStore, Protocol):
    """A store that also returns the ends of statements and of those that lead on from them with one query."""

    def ends_on(
        self, parts: Sequence[EndPart], end: End, few: int | None, here: alg.Entities, then: Sequence[EndPart], tally: Tally
    ) -> tuple[list[EndRow], list[EndRow], bool]:
        """Return the ends of parts with the first `few` far nodes (None: all) and the next one, the ends of the parts in
        `then`, where `here` is the set of these far nodes, and whether no far node was left out.
        """
        ...


class Statements:
    """The statements of one state of a graph in a store, as patterns need them (`patterns.remote.solutions.PatternStore`)."""

    def __init__(self, store: QueryStore, ends: EndStore | None = None) -> None:
        """Without `ends`, edges are read from whole statements."""
        self._store, self._ends = store, ends
        self._period: Period | None = None
        #: The counts of the graph, None if they are unknown.
        self.counts: Mapping[str, int] | None = None

    def at(self, period: Period | None) -> Self:
        """Return the same, restricted to statements that hold in a period."""
        result = copy(self)
        result._period = period
        return result

    def parts(self, catalogue: Catalogue, tally: Tally) -> FetchedParts:
        """Return the joins of a search, over fetched edges."""
        return FetchedParts(self, catalogue, tally)

    def copy_edges(self, catalogue: Catalogue) -> Tally | None:
        """Read all edges of a small graph into the catalogue, from its second search on. Return what this took, or None
        if the catalogue has no edges.
        """
        catalogue.searches += 1
        counts = self.counts
        if counts is None or catalogue.searches == 1 or counts["relations"] + counts["attributes"] > MAX_COPIED:
            return None

        def read() -> tuple[SearchGraph, Tally]:
            predicates, tally = np.flatnonzero(catalogue.used).tolist(), Tally()
            return adjacency(catalogue, [self.edges(catalogue, None, "subject", predicates, statements=True, tally=tally)]), tally

        result: Tally
        catalogue.graph, result = shared(catalogue.kept, "edges", read)
        return result

    def catalogue_now(self) -> Catalogue:
        """Read the catalogue of the graph."""
        schema = cast("StoredSchema", self._store.naming_schema)
        entities = [(entity.id, entity.name, int(entity.kind)) for entity in plan_answer(self._store, _ALL).entities]
        texts, predicates = self.texts_now(schema)
        values = {name: schema.attribute_kinds(name) for name in schema.attributes}
        concepts = alg.AllEntities((EntityKind.CONCEPT,))
        memberships = bool(schema.concepts) and (
            plan_answer(self._store, alg.Count(alg.Members(concepts))).values[0] > 0
            or (schema.concept_members and len(self._read([_memberships(concepts, concepts)], Tally()).arrays.get("mem.e")) > 0)
        )
        return Catalogue(entities, texts, predicates, memberships=memberships, values=values)

    def texts_now(self, schema: StoredSchema) -> tuple[list[str], dict[str, bool]]:
        """Read the distinct texts of attributes, and tell for every predicate whether it has edges."""
        attributes, texts = texts_of(schema), list[str]()
        if attributes:
            answer = plan_answer(self._store, alg.Distinct(alg.Objects(alg.Scan(None, attributes, family="attribute"))))
            texts = [value for value in dict.fromkeys(answer.values) if isinstance(value, str)]
        return texts, edged_predicates(schema)

    def of_types(self, catalogue: Catalogue, types: Sequence[str], nodes: Numbers | None = None) -> Numbers:
        """Return the entities among some nodes (None: any), without concepts, in any of some concepts, closed under
        subclass.
        """
        numbers: set[int] = set()
        members: alg.Entities = alg.Members(self.concepts(catalogue, types))
        for chunk in [None] if nodes is None else _chunks(nodes.tolist()):
            plan = members if chunk is None else alg.intersect(_entities(catalogue, chunk), members)
            numbers.update(catalogue.identified(entity.id) for entity in plan_answer(self._store, plan).entities)
        return np.array(sorted(numbers - {-1}), np.int32)

    def concepts(self, catalogue: Catalogue, ids: Sequence[str]) -> alg.Entities:
        return alg.ById(tuple(ids))

    def gathered(self, units: Sequence[Unit], *, ends: bool) -> Snapshot:
        """Return the statements and memberships of units. With `ends`, qualifiers and names may be missing."""
        return self._store.gather(units)

    def _read(self, units: Sequence[Unit], tally: Tally, *, ends: bool = False) -> Snapshot:
        """Return the statements and memberships of units within the period, and count them."""
        part = self.gathered(units, ends=ends and self._period is None)
        tally.queries += 1
        tally.rows += part.statements + len(part.arrays.get("mem.e"))
        return part if self._period is None else cut(part, self._period)

    def edges(
        self, catalogue: Catalogue, nodes: Numbers | None, end: End, predicates: Sequence[int], *, statements: bool, tally: Tally
    ) -> Edges:
        """Return the edges with these nodes (None: any) at one end and one of these predicates.

        With `statements`, there is one row per statement, with a key from its id; else equal triples may share one row.
        """
        edges = [np.empty((0, 4), np.int64)]
        for chunk in [None] if nodes is None else _chunks(nodes.tolist(), _NAMED if self._ends is None else self._ends.ends_of):
            texts = [catalogue.key(number) for number in chunk or () if catalogue.is_text(number)]
            parts = self._parts(catalogue, None if chunk is None else _entities(catalogue, chunk), end, predicates, texts)
            if not parts:
                continue
            check()
            if self._ends is None:
                units = [Unit(part) if isinstance(part, alg.Facts) else self._members(part) for part in parts]
                edges.append(edges_in(self._read(units, tally, ends=not statements), catalogue, statements=statements))
                continue
            rows = self._ends.ends(parts, tally, statements=statements)
            edges.append(self._edges(rows, catalogue, tally, statements=statements))
        return np.concatenate(edges)

    def _parts(
        self, catalogue: Catalogue, of: alg.ById | None, end: End, predicates: Sequence[int], texts: Sequence[str] = ()
    ) -> list[EndPart]:
        """Return the statements and stated memberships with these entities (None: any) or texts at one end."""
        facts, last = list[alg.Facts](), len(catalogue.predicates)
        names = tuple(catalogue.predicates[number] for number in predicates if number != last)
        if names and (of is None or of.ids):
            facts.append(alg.Scan(of, names, end, family="any" if end == "subject" else "relation"))
        if names and texts and end == "object":
            facts.append(_with_text(None, names, texts))
        if self._ends is not None and (period := self._period) is not None:
            facts = [alg.During(part, period.relation, period.interval) for part in facts]
        if last not in predicates or (of is not None and not of.ids):
            return [*facts]
        concepts = None if of is None or end == "subject" else self.concepts(catalogue, of.ids)
        return [*facts, alg.MembershipPattern(of if end == "subject" else None, concepts, direct=True)]

    def _edges(self, rows: Sequence[EndRow], catalogue: Catalogue, tally: Tally, *, statements: bool) -> Edges:
        """Return the edges of rows whose ends and predicate are in the catalogue."""
        assert self._ends is not None
        own, names, last = self._ends, catalogue.predicate_numbers, len(catalogue.predicates)
        tally.queries, tally.rows = tally.queries + 1, tally.rows + len(rows)
        predicates = {kind: last if kind is None else names.get(own.predicate_of(kind), -1) for kind in {row[1] for row in rows}}
        keys = shared(catalogue.kept, "nodes", lambda: _numbers(own.node_keys(catalogue.ids, catalogue.texts)))
        number = catalogue.identified if keys is None else keys.__getitem__
        edges = [
            (
                number(subject),
                predicates[kind],
                catalogue.text(text) if target is None else number(target),
                key if statements else 0,
            )
            for subject, kind, target, text, key in rows
            if target is not None or text is not None
        ]
        result: Edges = np.array(edges, np.int64).reshape(-1, 4)
        return result[(result[:, :3] >= 0).all(axis=1)]

    def edges_on(
        self, catalogue: Catalogue, nodes: Numbers, end: End, predicates: Sequence[int], few: int | None,
        then: tuple[End, tuple[int, ...]] | None, *, statements: bool, tally: Tally,
    ) -> tuple[Edges, Edges, bool] | None:  # fmt: skip
        """Return edges as `edges` does, limited to the first `few` far nodes (None: all) and the next one; the edges
        that lead on from these by `then`; and whether no far node was left out. None if the store has no single query
        for this.
        """
        numbers = nodes.tolist()
        if not isinstance(self._ends, JoinedEnds) or not catalogue.sorts_alike or len(numbers) > self._ends.ends_of:
            return None
        far_texts = end == "subject" and any(map(catalogue.has_texts, predicates))
        # Statements of a text are found by its value.
        if any(map(catalogue.is_text, numbers)) or (far_texts and then is not None and then[0] == "object"):
            return None
        here = alg.ById(("",))
        onward = [] if then is None else self._parts(catalogue, here, *then)
        parts = self._parts(catalogue, _entities(catalogue, numbers), end, predicates)
        rows, next_rows, complete = self._ends.ends_on(parts, end, few, here, onward, tally)
        tally.queries -= 1
        first, second = (self._edges(part, catalogue, tally, statements=statements) for part in (rows, next_rows))
        return first, second, complete

    def _members(self, part: alg.MembershipPattern) -> Unit:
        """Return the memberships of a pattern as a unit to fetch."""
        entities, concepts = cast("alg.Entities | None", part.member), cast("alg.Entities | None", part.concept)
        if concepts is None:
            return _memberships(entities, None)
        members: alg.Entities = alg.Members(concepts)
        if cast("StoredSchema", self._store.naming_schema).concept_members:
            # `Members` leaves concepts out.
            members = alg.Union((members, alg.AllEntities((EntityKind.CONCEPT,))))
        return Unit(members, (members,), concepts)

    def passed_over(self, catalogue: Catalogue, costs: Costs) -> str | None:
        """Return the nearest predicate, by its cost, if no edge of the period has it (`patterns.distance.terms.nearer_name`)."""
        first: tuple[int, str] | None = None
        for cost, name, number in sorted(zip(costs.tolist(), catalogue.predicate_names, range(len(costs)), strict=True)):
            if (first is not None and cost > first[0]) or cost >= BARRED:
                break
            if catalogue.used[number] and (number == len(catalogue.predicates) or self._occurs(catalogue, name, edges=True)):
                return None
            if first is None and number < len(catalogue.predicates) and self._occurs(catalogue, name, edges=False):
                first = cost, name
        return None if first is None else first[1]

    def _occurs(self, catalogue: Catalogue, name: str, *, edges: bool) -> bool:
        """Tell whether a statement of the period has a predicate, with `edges` one between nodes, or else a qualifier key."""
        period = self._period
        assert period is not None

        def among(facts: alg.Facts) -> alg.Facts:
            return alg.During(facts, period.relation, period.interval)

        def ask() -> bool:
            text = alg.any_of([alg.Compare("=", ""), alg.Compare("!=", "")])
            plans: list[alg.Scalar] = [alg.Exists(among(alg.Scan(None, (name,), family="relation")))]
            plans.append(alg.Exists(among(alg.Where(alg.Scan(None, (name,), family="attribute"), text))))
            if not edges:
                plans = [alg.Exists(among(alg.Scan(None, (name,)))), alg.Count(alg.Qualifiers(among(alg.Scan(None, None)), name))]
            return any(plan_answer(self._store, plan).values[0] for plan in plans)

        occurring: dict[str, Any] = catalogue.kept.setdefault("occurring", {})
        if len(occurring) > _OCCURRING:
            occurring.clear()
        result: bool = shared(occurring, f"{edges} {period} {name}", ask)
        return result

    def holders(self, catalogue: Catalogue, nodes: Numbers | None, plan: ValuePlan, tally: Tally) -> Holders:
        """Return those of some nodes (None: any) that have a value matching a plan, and its predicate, by number. A
        pair may repeat, once per statement.
        """
        batches = [np.empty((0, 2), np.int64)]
        for unit in _valued(catalogue, nodes, plan):
            part = self._read([unit], tally)
            _, subjects, predicates = holders(part, plan.condition)
            node_numbers, predicate_numbers = _numbers_in(part, catalogue)
            batches.append(np.stack([node_numbers[subjects], predicate_numbers[predicates]], axis=1))
        pairs = np.concatenate(batches)
        pairs = pairs[(pairs >= 0).all(axis=1)]
        return pairs[:, 0], pairs[:, 1]

    def between(self, catalogue: Catalogue, pairs: Sequence[tuple[int, int]], values: Sequence[Held] = ()) -> Snapshot:
        """Return all statements and stated memberships between pairs of nodes, and statements of values, with
        qualifiers and sources.
        """
        ends = sorted({number for pair in pairs for number in pair})
        entities = _entities(catalogue, [*ends, *(number for numbers, _ in values for number in numbers)])
        texts = [catalogue.key(number) for number in ends if catalogue.is_text(number)]
        units = [Unit(entities, (entities,))]
        if pairs:
            units.append(Unit(alg.Where(alg.Scan(entities, None, reach="object", family="relation"), alg.Among(entities))))
        if texts:
            units.append(Unit(_with_text(entities, None, texts)))
        if pairs and catalogue.used[-1]:
            units.append(_memberships(entities, entities))
        for numbers, plan in values:
            units += _valued(catalogue, np.array(numbers, np.int32), plan)
        return self._read(units, Tally())


class PlannedPatterns(Statements):
    """Patterns on one state of a graph in a store."""

    def __init__(self, store: QueryStore, vectors: NameVectors, ends: EndStore | None = None) -> None:
        super().__init__(store, ends)
        self._vectors = vectors
        #: Warnings added to every search.
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
        """Return the subgraphs that are nearest to a pattern, as on a snapshot of the graph (of a period)."""
        key = key_of(encoder)
        terms = self._terms.get(key)
        if terms is None:
            terms = self._terms[key] = self._vectors.terms(self.catalogue, encoder)
        return match_remote(
            self.at(period), self.catalogue, terms, program, limit=limit, noted=self.notes, period=period, **options
        )

    def index(self, encoder: Encoder, on_progress: OnProgress | None) -> IndexReport:
        """Encode and store the vectors of the graph's names, for patterns from now on."""
        self._terms.clear()
        return self._vectors.index(self.catalogue, encoder, on_progress)


def key_of(encoder: Encoder | str | None) -> tuple[str, int]:
    """Return the cache key of an encoder; one given by name is not loaded for it."""
    return ("", 0) if encoder is None else (encoder, -1) if isinstance(encoder, str) else (encoder.id, encoder.dimension)


def texts_of(schema: StoredSchema) -> tuple[str, ...]:
    """Return the attributes that have texts."""
    return tuple(name for name in schema.attributes if any(kind is Kind.TEXT for kind, _ in schema.attribute_kinds(name)))


def edged_predicates(schema: StoredSchema) -> dict[str, bool]:
    """Return all predicates and qualifier keys, each with whether it has edges between nodes."""
    with_edges = {*schema.relations, *texts_of(schema)}
    return {name: name in with_edges for name in {*schema.relations, *schema.attributes, *schema.qualifiers}}


def _chunks(numbers: Sequence[int], most: int = _NAMED) -> Iterator[Sequence[int]]:
    return (numbers[start : start + most] for start in range(0, len(numbers), most))


def _entities(catalogue: Catalogue, numbers: Iterable[int]) -> alg.ById:
    """Return the entities among nodes, without texts."""
    return alg.ById(tuple(dict.fromkeys(catalogue.key(number) for number in numbers if not catalogue.is_text(number))))


def _with_text(of: alg.Entities | None, names: tuple[str, ...] | None, texts: Sequence[str]) -> alg.Facts:
    return alg.Where(alg.Scan(of, names, family="attribute"), alg.any_of([alg.Compare("=", text) for text in texts]))


class _Numbers(dict[Any, int]):
    """Numbers of nodes; -1 for others."""

    def __missing__(self, node: Any) -> int:
        return -1


def _numbers(keys: Mapping[Any, int] | None) -> _Numbers | None:
    return None if keys is None else _Numbers(keys)


def _memberships(members: alg.Entities | None, concepts: alg.Entities | None) -> Unit:
    """Return the stated memberships of some entities (None: any) in some concepts (None: any)."""
    entities = members or _ALL
    return Unit(entities, (entities,), concepts or alg.AllEntities((EntityKind.CONCEPT,)))


def _valued(catalogue: Catalogue, nodes: Numbers | None, plan: ValuePlan) -> list[Unit]:
    """Return units for the statements of some nodes (None: any) whose values match a plan, or nearly so."""
    names, tests = tuple(plan.prices), list[alg.Condition]()
    units = dict.fromkeys(unit for name in names for unit in catalogue.units(name))
    for number in plan.numbers:
        # A number without a unit compares with any.
        variants = [replace(number, unit=unit) for unit in units] if number.unit == NO_UNIT else [number]
        tests += [alg.Compare(plan.condition.operator, in_unit) for in_unit in variants]
    if plan.time is not None:
        tests.append(alg.Compare(plan.condition.operator, plan.time))
    if not tests:
        return []
    test = alg.any_of(tests)
    chunks = [None] if nodes is None else [_entities(catalogue, part) for part in _chunks(nodes.tolist())]
    return [Unit(alg.Where(alg.Scan(entities, names, family="attribute"), test)) for entities in chunks]


def _numbers_in(part: Snapshot, catalogue: Catalogue) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the catalogue's numbers for the entities and the predicates of a part; -1 if unknown."""
    nodes = [catalogue.identified(part.ident(number)) for number in range(part.entities)]
    names = [catalogue.predicate_numbers.get(part.predicate_name(number), -1) for number in range(part.predicate_count)]
    return np.array(nodes, np.int64), np.array(names, np.int64)


def edges_in(part: Snapshot, catalogue: Catalogue, *, statements: bool) -> Edges:
    """Return the edges of a part of a graph that the catalogue knows."""
    get, last = part.arrays.get, len(catalogue.predicates)
    nodes, names = _numbers_in(part, catalogue)
    statement_numbers = np.arange(part.statements, dtype=np.int32)
    objects = np.full(part.statements, -1, np.int64)
    objects[: part.relations] = nodes[part.relation_object]
    if part.statements > part.relations:
        texts = np.flatnonzero(get("att.kind") == Kind.TEXT)
        objects[part.relations + texts] = [catalogue.text(text) for text in part.texts.take(get("att.ref")[texts])]
    keys = statement_ids(part) if statements else np.zeros(part.statements, np.int64)
    edges = np.stack([nodes[part.subjects(statement_numbers)], names[part.predicates(statement_numbers)], objects, keys], axis=1)
    members, concepts = nodes[get("mem.e")], nodes[get("mem.c")]
    memberships = np.stack([members, np.full(len(members), last), concepts, np.zeros(len(members), np.int64)], axis=1)
    result = np.concatenate([edges, memberships])
    return result[(result[:, :3] >= 0).all(axis=1)]
