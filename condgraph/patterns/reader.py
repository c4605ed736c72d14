"""Solutions of a search on a snapshot, read back: entities, statements with their sources, terms, and counts."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import nsmallest
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from condgraph.engine.bounds import watched
from condgraph.engine.errors import StoreError
from condgraph.engine.evidence import EvidenceList
from condgraph.engine.facts import Entity
from condgraph.engine.identity import relation_id, statement_id
from condgraph.engine.values import Kind, Quantity, Time
from condgraph.languages.pattern.pattern import Pattern
from condgraph.patterns.distance.domains import BARRED, PairEdges
from condgraph.patterns.graph import text_nodes
from condgraph.patterns.join.distinct import assigned, groupings
from condgraph.patterns.join.driver import limited
from condgraph.patterns.options import AGAINST, MatchOptions
from condgraph.patterns.problem import Problem
from condgraph.patterns.result import INSTANCE_OF, EdgeMatch, NodeMatch
from condgraph.patterns.values import holders

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot

# -- Parallel edges ----------------------------------------------------------------------------------

# Which statements parallel edges of a pattern take: distinct ones of least total cost, and among these the least ids.


#: Above this many edges, the Hungarian method assigns them.
_FEW: Final = 5


def choose(prices: Sequence[Sequence[int]], idents: Sequence[Any], barred: int) -> list[int] | None:
    """Return the statement of each edge, as places in `prices`, or None if every choice costs `barred` or more.

    `prices` has a row per statement and a column per edge. The choice has the least sum, then the least ids in the order of the
    edges. With q edges, a statement that is not among the first q of some edge is in no best choice, since one of those q would be
    free and come before it.

    >>> choose([[5, 0], [3, 1], [3, 9]], ["a", "b", "c"], 100)
    [1, 0]
    """
    edges = len(prices[0])
    if edges > _FEW:
        assignment = _assigned(prices, idents)
        return None if any(prices[place][edge] >= barred for edge, place in enumerate(assignment)) else assignment
    if edges == 1:
        place = min(watched(range(len(prices))), key=lambda place: (prices[place][0], idents[place]))
        return None if prices[place][0] >= barred else [place]
    states: dict[frozenset[int], tuple[int, tuple[Any, ...], tuple[int, ...]]] = {frozenset(): (0, (), ())}
    for edge in range(edges):
        near = nsmallest(edges, watched(range(len(prices))), key=lambda place: (prices[place][edge], idents[place]))
        grown: dict[frozenset[int], tuple[int, tuple[Any, ...], tuple[int, ...]]] = {}
        for used, (total, names, places) in states.items():
            for place in near:
                if place in used or prices[place][edge] >= barred:
                    continue
                state = total + prices[place][edge], (*names, idents[place]), (*places, place)
                key = used | {place}
                if key not in grown or state < grown[key]:
                    grown[key] = state
        states = grown
    return list(min(states.values())[2]) if states else None


def _assigned(prices: Sequence[Sequence[int]], idents: Sequence[Any]) -> list[int]:
    """Return the same choice for many edges.

    The ids, edge by edge, become digits of a number after the price, so the least sum is the first choice.
    """
    edges, size = len(prices[0]), len(prices)
    rank = {place: number for number, place in enumerate(sorted(range(size), key=lambda place: idents[place]))}
    scale = [size ** (edges - 1 - edge) for edge in range(edges)]
    unit = size**edges
    return assigned(
        [[price * unit + rank[place] * scale[edge] for edge, price in enumerate(row)] for place, row in enumerate(prices)]
    )


# -- Solutions read back ------------------------------------------------------------


class SnapshotReader:
    """Reads solutions back. See `result.Reader`."""

    def __init__(self, snapshot: Snapshot, pattern: Pattern, problem: Problem, options: MatchOptions) -> None:
        self._snapshot, self._pattern, self._problem, self._options = snapshot, pattern, problem, options

    def nodes(self, numbers: Sequence[int]) -> tuple[NodeMatch, ...]:
        """Return what the nodes are, with their terms."""
        matches = []
        for node, domain, number in zip(self._pattern.nodes, self._problem.named, numbers, strict=False):
            terms = domain.at(np.array([number])) if node.known else None
            matches.append(NodeMatch(node, self._value(number), None if terms is None else int(terms[0])))
        return (*matches, *self._values(self.valued(numbers)))

    def _values(self, edges: dict[int, EdgeMatch]) -> list[NodeMatch]:
        """Return what the values of the pattern are: those of their first edges."""
        matches = []
        for number, node in enumerate(self._pattern.nodes[self._pattern.things :], self._pattern.things):
            edge_match = next(match for match in edges.values() if number in (match.edge.head, match.edge.tail))
            value = edge_match.statement.object
            assert isinstance(value, Quantity | Time)
            matches.append(NodeMatch(node, value, 0))
        return matches

    def valued(self, numbers: Sequence[int]) -> dict[int, EdgeMatch]:
        """Return the statements of edges to values: nearest first, then least by id."""
        matches = {}
        snapshot = self._snapshot
        for value in self._problem.values:
            statements, nodes, _ = holders(snapshot, value.condition)
            candidates = statements[nodes == self._own(numbers[value.node])].tolist()
            if not candidates:
                raise StoreError("the graph changed since it was searched", hint="search again")
            best = min(candidates, key=lambda number: (int(value.prices[self._predicate(number)]), statement_id(snapshot, number)))
            edge = self._pattern.edges[value.edge]
            term = int(value.prices[self._predicate(best)]) if edge.known else None
            turned = self._pattern.nodes[edge.head].value is not None
            matches[value.edge] = EdgeMatch(edge, EvidenceList.of(snapshot, [best], [])[0], turned, term, value.against)
        return matches

    def _own(self, number: int) -> int:
        """Return the number of a node in the snapshot."""
        return number

    def _value(self, number: int) -> Entity | str:
        snapshot = self._snapshot
        if number < snapshot.entities:
            return snapshot.entity(number)
        return snapshot.texts[int(text_nodes(snapshot)[number - snapshot.entities])]

    def edges(self, numbers: Sequence[int]) -> tuple[EdgeMatch, ...]:
        """Return the statement of each edge, from the assignment of least cost with the least statement ids."""
        matches: dict[int, EdgeMatch] = {}
        groups: dict[Any, list[PairEdges]] = {}
        for bond in [*self._problem.bonds, *self._problem.loops.values()]:
            pair = numbers[bond.first], numbers[bond.second]
            # Bonds between the same nodes choose together.
            key = (min(pair), max(pair)) if self._problem.distinct else bond.edges
            groups.setdefault(key, []).append(bond)
        for bonds in groups.values():
            matches.update(self._bonds(bonds, numbers[bonds[0].first], numbers[bonds[0].second], numbers))
        matches.update(self.valued(numbers))
        return tuple(matches[number] for number in range(len(self._pattern.edges)))

    def _bonds(self, bonds: Sequence[PairEdges], one: int, two: int, numbers: Sequence[int]) -> dict[int, EdgeMatch]:
        """Return the edges of bonds that all join the nodes `one` and `two` (numbers of the snapshot)."""
        snapshot, relations = self._snapshot, self._problem.graph.predicates
        statements = edges_between(snapshot, one, two)
        begin = numbers[bonds[0].first]
        priced = {
            edge: bond.weights(bond.first if numbers[bond.first] == begin else bond.second)[place]
            for bond in bonds
            for place, edge in enumerate(bond.edges)
        }
        edges = sorted(priced)
        prices = [priced[edge] for edge in edges]
        ways = [[[place] for place in range(len(edges))]]
        if self._problem.distinct:
            ways = groupings([self._problem.edges[edge] for edge in edges], one == two)
        table, idents = [], []
        for number, outward in watched(statements, 1 << 8):
            predicate = relations - 1 if number < 0 else self._predicate(number)
            label = 2 * relations + predicate if one == two else 2 * predicate + (0 if outward else 1)
            table.append([int(price[label]) for price in prices])
            first, second = (one, two) if outward else (two, one)
            if number < 0:
                ident = relation_id(snapshot.ident(first), INSTANCE_OF, snapshot.ident(second))
            else:
                ident = statement_id(snapshot, number)
            # A statement comes before a membership with the same content.
            idents.append((ident, number < 0))
        assignments = [places for groups in ways if (places := _shared(table, idents, groups)) is not None]
        if not assignments:
            raise StoreError("the graph changed since it was searched", hint="search again")
        chosen = min(
            assignments,
            key=lambda places: (
                sum(table[place][column] for column, place in enumerate(places)),
                [idents[place] for place in places],
            ),
        )
        matches = {}
        for column, (place, edge_number) in enumerate(zip(chosen, edges, strict=True)):
            number, outward = statements[place]
            edge = self._pattern.edges[edge_number]
            subject = one if outward else two
            evidence = EvidenceList.of(snapshot, [number], []) if number >= 0 else None
            if evidence is None:
                member, concept = (one, two) if outward else (two, one)
                evidence = EvidenceList.of(snapshot, [], [(member, concept)])
            head = one if numbers[edge.head] == begin else two
            turned = one != two and subject != head
            against = AGAINST if turned and self._options.directed is None and not edge.loose else 0
            term = table[place][column] - against if edge.known else None
            matches[edge_number] = EdgeMatch(edge, evidence[0], turned, term, against)
        return matches

    def _predicate(self, number: int) -> int:
        return self._snapshot.predicate_of(number)

    def count(self, numbers: Sequence[int], total: int) -> int:
        """Return how many solutions of the same group have this distance, by finding them."""
        from condgraph.patterns.join.count import count

        problem = limited(self._problem, {node: numbers[node] for node in self._options.group_by})
        return count(problem, total)


def _shared(table: Sequence[Sequence[int]], idents: Sequence[Any], groups: Sequence[Sequence[int]]) -> list[int] | None:
    """Return the statement of each edge if each group of edges takes one, or None if that is impossible."""
    if len(groups) > len(table):
        return None
    chosen = choose([[sum(row[column] for column in group) for group in groups] for row in table], idents, BARRED)
    if chosen is None:
        return None
    place_of = {column: place for place, group in zip(chosen, groups, strict=True) for column in group}
    return [place_of[column] for column in range(len(place_of))]


def edges_between(snapshot: Snapshot, one: int, two: int) -> list[tuple[int, bool]]:
    """Return all edges between two nodes: the statement (-1: a membership), and whether it runs from first to second."""
    edges: list[tuple[int, bool]] = []
    for first, second, outward in ((one, two, True), (two, one, False)) if one != two else ((one, two, True),):
        if first >= snapshot.entities:
            continue
        edges.extend((number, outward) for number in _statements(snapshot, first, second))
        if second < snapshot.entities and _member(snapshot, first, second):
            edges.append((-1, outward))
    return edges


def _statements(snapshot: Snapshot, subject: int, thing: int) -> list[int]:
    relations = snapshot.relations
    if thing >= snapshot.entities:
        get = snapshot.arrays.get
        outgoing = snapshot.outgoing(subject, relations, snapshot.statements)
        at = outgoing - relations
        text = int(text_nodes(snapshot)[thing - snapshot.entities])
        equal = (get("att.kind").take(at) == Kind.TEXT) & (get("att.ref").take(at) == text)
        return list(outgoing[equal].tolist())
    incoming = snapshot.incoming(thing, 0, relations)
    outgoing = snapshot.outgoing(subject, 0, relations)
    if len(outgoing) <= len(incoming):
        return list(outgoing[snapshot.relation_object.take(outgoing) == thing].tolist())
    return list(incoming[snapshot.relation_subject.take(incoming) == subject].tolist())


def _member(snapshot: Snapshot, entity: int, concept: int) -> bool:
    get = snapshot.arrays.get
    low, high = np.searchsorted(get("mem.c"), [concept, concept + 1])
    return bool((get("mem.e")[low:high] == entity).any())
