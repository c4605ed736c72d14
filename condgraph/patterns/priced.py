"""Prices a pattern for a graph: what each node and edge costs for each name, before anything is searched."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.errors import LiteralError, UnknownNameError
from condgraph.engine.errors import nearest as nearest_names
from condgraph.engine.facts import Entity, Ref
from condgraph.languages.pattern.pattern import Condition, Pattern
from condgraph.patterns.distance.domains import BARRED, Domain, PairEdges, nearest, weights
from condgraph.patterns.distance.terms import Terms
from condgraph.patterns.graph import Costs, SearchGraph, concepts, predicate_names, text_nodes
from condgraph.patterns.options import AGAINST, Excluded, MatchOptions
from condgraph.patterns.problem import Problem, ends_of
from condgraph.patterns.values import holders, value_edges, with_value

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot


class NamedNodes(Protocol):
    """What pricing needs from a graph: its nodes and predicates by name, never a statement."""

    @property
    def graph(self) -> SearchGraph:
        """The nodes by rank, and how many there are."""
        ...

    @property
    def predicate_names(self) -> Sequence[str]:
        """The names of all predicates in the order of their numbers, with that of memberships last."""
        ...

    @property
    def has_types(self) -> bool:
        """Whether there is any concept."""
        ...

    def of_types(self, hint: str, k: int, terms: Terms, warnings: list[str]) -> Domain:
        """Return the entities in any of the k concepts nearest to a hint, including subclasses, at no cost."""
        ...

    def holders(self, condition: Condition) -> tuple[NDArray[Any], NDArray[Any]] | None:
        """Return the nodes with such a value and the predicate of each, a pair per statement.

        It is None if the graph's server searches for them (`Problem.asked`).
        """
        ...

    def holding(self, condition: Condition) -> NDArray[np.bool_]:
        """Return the predicates that may have such a value, as one truth value each."""
        ...

    def identified(self, ident: str) -> int:
        """Return the node of an entity's id, or -1."""
        ...

    def named(self, name: str) -> list[int]:
        """Return all nodes with this name, including texts."""
        ...

    def some_names(self) -> Sequence[str]:
        """Return names among which a message can suggest near ones."""
        ...


class SnapshotNames:
    """The names of a snapshot."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self.graph = SearchGraph.of(snapshot)
        self.identified, self.has_types = snapshot.identified, len(concepts(snapshot)) > 0

    @property
    def predicate_names(self) -> Sequence[str]:
        """The names of all predicates, with that of memberships last."""
        return predicate_names(self._snapshot)

    def of_types(self, hint: str, k: int, terms: Terms, warnings: list[str]) -> Domain:
        """Return the members of the k types nearest to a hint."""
        return members_of_nearest(concepts(self._snapshot), self._snapshot.members, self.graph.rank, hint, k, terms)

    def holders(self, condition: Condition) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the nodes with such a value, and the predicate of each."""
        _, nodes, predicates = holders(self._snapshot, condition)
        return nodes, predicates

    def holding(self, condition: Condition) -> NDArray[np.bool_]:
        """Return every predicate, since it is already known which nodes have such a value."""
        return np.ones(self.graph.predicates, bool)

    def named(self, name: str) -> list[int]:
        """Return all nodes with this name, including texts."""
        snapshot = self._snapshot
        texts = text_nodes(snapshot)
        numbers: list[int] = snapshot.named(name).tolist()
        text = snapshot.texts.find(name)
        position = int(texts.searchsorted(text))
        if text >= 0 and position < len(texts) and texts[position] == text:
            numbers.append(snapshot.entities + position)
        return numbers

    def some_names(self) -> Sequence[str]:
        """Return names of entities."""
        return self._snapshot.texts.take(np.unique(self._snapshot.entity_name[: 1 << 16]))


def prepare(snapshot: Snapshot, pattern: Pattern, options: MatchOptions, terms: Terms, warnings: list[str]) -> Problem:
    """Price a pattern for a snapshot; what a user should know is added to `warnings`."""
    return priced(SnapshotNames(snapshot), pattern, options, terms, warnings)


def priced(names: NamedNodes, pattern: Pattern, options: MatchOptions, terms: Terms, warnings: list[str]) -> Problem:
    """Price a pattern for a graph with known nodes and predicates; what a user should know is added to `warnings`."""
    graph = names.graph
    excluded = {node: _numbers(names, excluded_names) for node, excluded_names in options.distinct_from}
    allowed = _types(names, pattern, options, terms, warnings)
    domains = []
    for number, node in enumerate(pattern.nodes[: pattern.things]):
        excluded_nodes = excluded.get(number)
        if node.known:
            domain = terms.nodes(node.text)
            if options.k_nodes is not None:
                domain = domain.nearest(options.k_nodes, graph.rank)
        elif number in allowed:
            domain = allowed[number]
        else:
            domain = Domain()
        domains.append(domain.without(excluded_nodes))
    prices = []
    for edge in pattern.edges:
        if any(pattern.nodes[node].value is not None for node in (edge.head, edge.tail)):
            prices.append(terms.every(edge.relation) if edge.known else None)
            continue
        costs = terms.predicates(edge.relation) if edge.known else None
        nearer = terms.passed_over(edge.relation) if edge.known else None
        if nearer is not None:
            reason = "but its values are numbers, times or qualifiers, which are not nodes"
            advice = "a number or a time is asked with an operator, as = 1930 or > 5"
            warnings.append(f"{nearer!r} is nearer to {edge.relation!r} than any edge, {reason}; {advice}")
        if costs is not None and options.k_relations is not None:
            costs = _nearest_names(names.predicate_names, costs, options.k_relations)
        prices.append(costs)
    bonds, loops = bonds_of(pattern, prices, graph.predicates, directed=options.directed)
    forbidden = _forbidden(pattern, graph, directed=bool(options.directed)) if options.induced else {}
    distinct = not options.injective and not options.free
    edges_to_values = value_edges(pattern, prices, graph.predicates, options.directed)
    plain_domains = list(domains)
    soft = 0 if options.directed is not None else sum(len(bond.edges) for bond in bonds)
    searched = []
    for value_edge in edges_to_values:
        matches = names.holders(value_edge.condition)
        if matches is None:
            searched.append(value_edge.among(names.holding(value_edge.condition)))
        else:
            domains[value_edge.node] = with_value(domains[value_edge.node], value_edge, *matches)
    return Problem(
        graph, domains, bonds, loops, options.injective, forbidden,
        distinct=distinct, edges=ends_of(pattern) if distinct else (), values=edges_to_values, asked=searched,
        named=plain_domains, soft=soft,
    )  # fmt: skip


def bonds_of(
    pattern: Pattern, prices: Sequence[Costs | None], predicates: int, *, directed: bool | None
) -> tuple[list[PairEdges], dict[int, PairEdges]]:
    """Return the priced edges of a pattern by the pair of nodes they join; loops separately, by node."""
    pairs: dict[tuple[int, int], list[int]] = {}
    for number, edge in enumerate(pattern.edges):
        if max(edge.head, edge.tail) >= pattern.things:
            continue
        pairs.setdefault((min(edge.head, edge.tail), max(edge.head, edge.tail)), []).append(number)
    bonds, loops = [], {}
    for (one, two), edges in pairs.items():
        bond = PairEdges(one, two, edges)
        for side in {one, two}:
            rows = []
            for edge_number in edges:
                edge_directed = False if pattern.edges[edge_number].loose else directed
                rows.append(
                    weights(
                        prices[edge_number], predicates, outward=pattern.edges[edge_number].head == side, directed=edge_directed
                    )
                )
            bond.price(side, rows)
        steps: set[int] = set()
        for number in edges:
            edge_prices = prices[number]
            if edge_prices is not None:
                least = int(edge_prices.min(initial=BARRED))
                bond.least += least
                steps.update((np.unique(edge_prices[edge_prices < BARRED]) - least).tolist())
            if directed is None and one != two:
                steps.update([step + AGAINST for step in steps or {0}])
        bond.steps = tuple(sorted(steps - {0}))
        if one == two:
            loops[one] = bond
        else:
            bonds.append(bond)
    return bonds, loops


def _forbidden(pattern: Pattern, graph: SearchGraph, *, directed: bool) -> dict[tuple[int, int], NDArray[np.int64]]:
    """Return what an induced subgraph must not have: for pairs of nodes (also a node with itself), prices of 0 for such edges."""
    heads = {(edge.head, edge.tail) for edge in pattern.edges}
    forbidden = {}
    size = pattern.things
    for one in range(size):
        for two in range(one, size):
            forward, backward = (one, two) in heads, (two, one) in heads
            if not directed:
                forward = backward = forward or backward
            if forward and backward:
                continue
            prices = np.full(3 * graph.predicates + 1, BARRED, np.int64)
            if not forward:
                prices[0 : 2 * graph.predicates : 2] = 0
            if not backward:
                prices[1 : 2 * graph.predicates : 2] = 0
            prices[2 * graph.predicates : 3 * graph.predicates] = 0
            forbidden[one, two] = prices
    return forbidden


def _nearest_names(names: Sequence[str], prices: Costs, k: int) -> Costs:
    """Return the prices of predicates with the k nearest names; others are barred.

    A predicate may have the same name as memberships.
    """
    _, name_of = np.unique(np.array(names, object), return_inverse=True)
    least = np.full(int(name_of.max()) + 1, BARRED, np.int64)
    np.minimum.at(least, name_of, prices)
    limited: Costs = np.where(np.isin(name_of, nearest(least, k, np.arange(len(least)))), prices, BARRED)
    return limited


def _types(names: NamedNodes, pattern: Pattern, options: MatchOptions, terms: Terms, warnings: list[str]) -> dict[int, Domain]:
    """Return what belongs to the types nearest to the hint of each unknown node, if types are asked for."""
    hinted = {number: node.hint for number, node in enumerate(pattern.nodes) if not node.known and node.hint}
    if not hinted:
        return {}
    hints = ", ".join(repr(hint) for hint in dict.fromkeys(hinted.values()))
    if not names.has_types:
        warnings.append(f"the graph has no types, so hints at them do nothing: {hints}")
        return {}
    if options.k_types is None:
        warnings.append(f"hints at types do nothing without k_types=: {hints}")
        return {}
    return {number: names.of_types(hint, options.k_types, terms, warnings) for number, hint in hinted.items()}


def members_of_nearest(
    types: NDArray[np.int32],
    members: Callable[[tuple[int, ...]], NDArray[np.int32]],
    rank: NDArray[Any],
    hint: str,
    k: int,
    terms: Terms,
) -> Domain:
    """Return the members of the k given types nearest to a hint, ties by rank: k(t) of section 5.1."""
    terms_of_types = terms.nodes(hint).at(types)
    assert terms_of_types is not None
    nodes = np.unique(members(tuple(types[nearest(terms_of_types, k, rank.take(types))].tolist()))).astype(np.int32)
    return Domain(np.zeros(len(nodes), np.int64), nodes)


def _numbers(names: NamedNodes, excluded: Sequence[Excluded]) -> NDArray[np.int32]:
    """Return the nodes for names, ids and entities; a name means every node of that name, including texts."""
    nodes: list[int] = []
    for entity in excluded:
        if isinstance(entity, Entity | Ref):
            number = names.identified(entity.id)
            if number < 0:
                raise UnknownNameError("entity", entity.id)
            nodes.append(number)
            continue
        numbers = names.named(entity)
        if not numbers:
            if not isinstance(entity, str):
                raise LiteralError(f"{entity!r} is not a name")
            raise UnknownNameError("entity", entity, candidates=nearest_names(entity, names.some_names()))
        nodes.extend(numbers)
    return np.unique(np.array(nodes, np.int32))
