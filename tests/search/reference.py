"""The definitions of graph patterns, word for word and slow: every mapping of every node, every
choice of statements.

Nothing here knows the code under test but its data types. A graph is read from its items; distances
come from vectors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np

from condgraph.engine.facts import Entity, EntityKind, Member, Ref, Statement
from condgraph.engine.values import Quantity, Time
from condgraph.patterns.words import TABLE
from tests.search.everyday import fit
from tests.search.worlds import ASKED

#: Words that say nothing before a phrase.
LEADING = "is was are were be been being has have had does did do the a an his her its their who which that s".split()  # noqa: SIM905

Node = tuple[int, str]  # (0, id of an entity) or (1, text): in this order where distances tie


@dataclass(frozen=True)
class Edge:
    subject: Node
    predicate: str
    object: Node
    #: What tells equal triples apart, and orders them: the id of the statement, and whether it is a
    #: membership.
    ident: tuple[int, bool]


@dataclass(frozen=True)
class Held:
    """A statement whose object is a number or a time."""

    subject: Node
    predicate: str
    value: Quantity | Time
    ident: int


@dataclass
class Reference:
    items: Sequence[Any]
    #: The id of a statement by its content.
    idents: dict[Any, int]
    encoder: Any
    names: dict[str, str] = field(default_factory=dict)
    kinds: dict[str, EntityKind] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)
    held: list[Held] = field(default_factory=list)
    #: What was worked out, since forms of a pattern ask for it again.
    terms: dict[tuple[str, str], int] = field(default_factory=dict)
    relations: dict[tuple[str, str], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        ids: dict[str, None] = {}
        parents: set[tuple[str, str]] = set()
        members: set[tuple[str, str]] = set()
        seen = set()
        for item in self.items:
            if isinstance(item, Entity):
                ids[item.id] = None
                self.names[item.id] = item.name
                self.kinds[item.id] = item.kind
            elif isinstance(item, Member):
                members.add((item.entity, item.concept))
            elif isinstance(item, Statement):
                key = item.subject, item.predicate, item.object, frozenset(item.qualifiers)
                if key in seen:
                    continue
                seen.add(key)
                if isinstance(item.object, Ref):
                    other: Node = 0, item.object.id
                elif isinstance(item.object, str):
                    other = 1, item.object
                else:
                    self.held.append(Held((0, item.subject), item.predicate, item.object, self.idents[key]))
                    self.names.setdefault(item.subject, item.subject)
                    continue
                self.edges.append(Edge((0, item.subject), item.predicate, other, (self.idents[key], False)))
            else:
                parents.add((item.concept, item.parent))
        for entity, concept in sorted(members):
            self.edges.append(Edge((0, entity), "instance of", (0, concept), (self.idents[entity, concept], True)))
        for edge in self.edges:
            for kind, name in (edge.subject, edge.object):
                if kind == 0:
                    self.names.setdefault(name, name)
        self.members = members
        self.parents = parents
        self.nodes: list[Node] = sorted({(0, ident) for ident in self.names} | {e.object for e in self.edges if e.object[0] == 1})
        self.predicates = sorted({edge.predicate for edge in self.edges})
        stated = [item for item in self.items if isinstance(item, Statement)]
        #: All names of predicates, those of qualifiers among them, by whose words relations are read.
        self.vocabulary = sorted({item.predicate for item in stated} | {key for item in stated for key, _ in item.qualifiers})
        self.vocabulary.append("instance of")

    def text(self, node: Node) -> str:
        return self.names[node[1]] if node[0] == 0 else node[1]

    def term(self, one: str, two: str) -> int:
        if (one, two) not in self.terms:
            self.terms[one, two] = self._term(one, two)
        return self.terms[one, two]

    def _term(self, one: str, two: str) -> int:
        u, v = self.encoder.encode([one, two]).astype(np.float64)
        return int(np.rint(1_000_000 * np.sqrt(np.square(u - v).sum())))

    def related(self, relation: str, predicate: str) -> int:
        """The term of a relation: its own, or that of a word that the table says means the same; the
        less, the better its words fit.
        """
        if (relation, predicate) not in self.relations:
            term = self._related(relation, predicate)
            left = 1000 - fit(relation, predicate, self.vocabulary)
            self.relations[relation, predicate] = min(term, 60_000 + term * left // 1000)
        return self.relations[relation, predicate]

    def _related(self, relation: str, predicate: str) -> int:
        wanted, found = relation.lower(), [self.term(relation.lower(), predicate.lower())]
        listed = wanted
        rows = [[[w.strip() for w in g.split(",")] for g in line.split("|")] for line in TABLE.splitlines()]
        while listed and not any(listed in group for row in rows for group in row):
            before, _, after = listed.partition(" ")
            listed = after if before in LEADING else ""
        if not listed:
            return found[0]
        if listed != wanted:
            found.append(self.term(listed, predicate.lower()))
        for row in rows:
            for group in row:
                if listed in group:
                    for other in row:
                        more = 60_000 if other is group else 120_000
                        found += [self.term(word, predicate.lower()) + more for word in other if word != wanted]
        return min(found)

    # -- candidates --------------------------------------------------------------------------------

    def candidates(self, text: str, k: int | None) -> dict[Node, int]:
        ranked = sorted((self.term(text, self.text(node)), node) for node in self.nodes)
        return {node: term for term, node in ranked[:k]}

    def typed(self, hint: str, k: int) -> set[Node]:
        types = [ident for ident, kind in self.kinds.items() if kind is EntityKind.CONCEPT]
        ranked = sorted((self.term(hint, self.names[ident]), ident) for ident in types)
        below = {ident for _, ident in ranked[:k]}
        while True:
            more = {child for child, parent in self.parents if parent in below} - below
            if not more:
                break
            below |= more
        return {
            (0, entity) for entity, concept in self.members if concept in below and self.kinds.get(entity) is not EntityKind.CONCEPT
        }

    # -- solutions ---------------------------------------------------------------------------------

    def solutions(
        self, pattern: Any, *, injective: bool, free: bool, induced: bool, directed: bool | None,
        distinct_from: dict[int, set[Node]],
        k_nodes: int | None, k_relations: int | None, k_types: int | None,
    ) -> list[tuple[int, tuple[Node, ...], tuple[Edge, ...], tuple[int | None, ...]]]:  # fmt: skip
        """All solutions in their order: total, nodes, the edge of each pattern edge, their terms."""
        allowed: list[dict[Node, int]] = []
        for number, node in enumerate(pattern.nodes):
            if node.known:
                own = self.candidates(node.text, k_nodes)
            elif node.hint and k_types is not None and EntityKind.CONCEPT in self.kinds.values():
                own = dict.fromkeys(self.typed(node.hint, k_types), 0)
            else:
                own = dict.fromkeys(self.nodes, 0)
            allowed.append({one: term for one, term in own.items() if one not in distinct_from.get(number, set())})
        prices: list[dict[str, int]] = []
        for edge in pattern.edges:
            if edge.known:
                ranked = sorted((self.related(edge.relation, name), name) for name in self.predicates)
                prices.append({name: term for term, name in ranked[:k_relations]})
            else:
                prices.append(dict.fromkeys(self.predicates, 0))
        found = []
        for nodes in self._mappings(pattern, allowed, injective, ()):
            taken = self._edges(pattern, nodes, prices, directed, free)
            if taken is None or (induced and self._extra(pattern, nodes, bool(directed))):
                continue
            total = sum(allowed[i][node] for i, node in enumerate(nodes)) + sum(
                prices[i][edge.predicate] + self.turn(pattern, i, nodes, edge, directed) for i, edge in enumerate(taken)
            )
            terms = tuple(prices[i][edge.predicate] if pattern.edges[i].known else None for i, edge in enumerate(taken))
            found.append((total, nodes, taken, terms))
        return sorted(found, key=lambda one: (one[0], one[1], tuple(edge.ident for edge in one[2])))

    def _mappings(
        self, pattern: Any, allowed: list[dict[Node, int]], injective: bool, so_far: tuple[Node, ...]
    ) -> Iterator[tuple[Node, ...]]:
        if len(so_far) == len(pattern.nodes):
            yield so_far
            return
        for node in allowed[len(so_far)]:
            if injective and node in so_far:
                continue
            grown = (*so_far, node)
            # Nothing but haste: a mapping without an edge for some pattern edge has no statements
            # to choose from.
            if all(self._joined(grown[e.head], grown[e.tail]) for e in pattern.edges if max(e.head, e.tail) < len(grown)):
                yield from self._mappings(pattern, allowed, injective, grown)

    def _joined(self, one: Node, two: Node) -> bool:
        return any({edge.subject, edge.object} == {one, two} for edge in self.edges)

    def turn(self, pattern: Any, number: int, nodes: tuple[Node, ...], edge: Edge, directed: bool | None) -> int:
        """What an edge costs that runs against the pattern, where that is neither forbidden nor free."""
        ends = nodes[pattern.edges[number].head], nodes[pattern.edges[number].tail]
        return 50_000 if directed is None and not pattern.edges[number].loose and (edge.subject, edge.object) != ends else 0

    def _edges(
        self, pattern: Any, nodes: tuple[Node, ...], prices: list[dict[str, int]], directed: bool | None, free: bool
    ) -> tuple[Edge, ...] | None:
        """The statements of least cost, then least ids. Edges that lie on the same two nodes of the
        graph take distinct ones if they meet in the pattern or nothing joins them; with `free`, or
        on a loop, those alone between the same two nodes of the pattern.
        """
        taken: dict[int, Edge] = {}

        def place(edge: Any) -> Any:
            own = edge.head, edge.tail
            return frozenset(own) if free else frozenset(nodes[i] for i in own)

        for pair in {place(edge) for edge in pattern.edges}:
            numbers = [i for i, edge in enumerate(pattern.edges) if place(edge) == pair]
            best = None
            ends = {nodes[i] for i in (pattern.edges[numbers[0]].head, pattern.edges[numbers[0]].tail)}
            for choice in product([e for e in self.edges if {e.subject, e.object} == ends], repeat=len(numbers)):
                if any(
                    one == two and self._meet(pattern, pattern.edges[i], pattern.edges[j], len(ends) == 1)
                    for (i, one), (j, two) in combinations(zip(numbers, choice, strict=True), 2)
                ):
                    continue
                if any(edge.predicate not in prices[i] for i, edge in zip(numbers, choice, strict=True)):
                    continue
                if directed and any(
                    not pattern.edges[i].loose
                    and (edge.subject, edge.object) != (nodes[pattern.edges[i].head], nodes[pattern.edges[i].tail])
                    for i, edge in zip(numbers, choice, strict=True)
                ):
                    continue
                key = (
                    sum(
                        prices[i][edge.predicate] + self.turn(pattern, i, nodes, edge, directed)
                        for i, edge in zip(numbers, choice, strict=True)
                    ),
                    tuple(edge.ident for edge in choice),
                )
                if best is None or key < best[0]:
                    best = key, dict(zip(numbers, choice, strict=True))
            if best is None:
                return None
            taken |= best[1]
        return tuple(taken[i] for i in range(len(pattern.edges)))

    @staticmethod
    def _meet(pattern: Any, one: Any, two: Any, loop: bool) -> bool:
        """Whether two edges of a pattern have a node in common, or, on a loop, both; or are in parts
        that nothing joins.
        """
        mine, other, reached = {one.head, one.tail}, {two.head, two.tail}, {one.head}
        for _ in pattern.edges:
            for edge in pattern.edges:
                if {edge.head, edge.tail} & reached:
                    reached |= {edge.head, edge.tail}
        return not other & reached or (mine == other if loop else bool(mine & other))

    def _extra(self, pattern: Any, nodes: tuple[Node, ...], directed: bool) -> bool:
        """Whether the graph has an edge between two mapped nodes where the pattern has none."""
        wanted = {(edge.head, edge.tail) for edge in pattern.edges}
        for i in range(len(nodes)):
            for j in range(len(nodes)):
                joined = (i, j) in wanted or (not directed and (j, i) in wanted)
                if not joined and any((e.subject, e.object) == (nodes[i], nodes[j]) for e in self.edges):
                    return True
        return False

    # -- values ------------------------------------------------------------------------------------

    def values(self, pattern: Any, nodes: tuple[Node, ...], directed: bool | None) -> list[tuple[int, Held]] | None:
        """What each edge to a value costs, and its statement, nearest first, then least by id; None
        where there is none.
        """
        found = []
        for edge in pattern.edges:
            ends = [pattern.nodes[number] for number in (edge.head, edge.tail)]
            if not any(end.text in ASKED for end in ends):
                continue
            at_head = ends[0].text in ASKED
            if at_head and directed:
                return None
            node = nodes[edge.tail if at_head else edge.head]
            meant = ASKED[ends[0 if at_head else 1].text]
            mine = [
                (self.related(edge.relation, one.predicate) if edge.known else 0, one.ident, one)
                for one in self.held
                if one.subject == node and holds(meant, one.value)
            ]
            if not mine:
                return None
            term, _, one = min(mine, key=lambda held: held[:2])
            found.append((term + (50_000 if at_head and directed is None else 0), one))
        return found


def holds(meant: tuple[str, tuple[str, str] | None, tuple[str, str] | None], value: Quantity | Time) -> bool:
    """Whether a value is as `ASKED` says."""
    operator, number, days = meant
    if isinstance(value, Quantity):
        if number is None:
            return False
        wanted, unit = Fraction(number[0]), number[1]
        lengths = {"metre": 100, "centimetre": 1}
        if unit in lengths and value.unit in lengths:
            wanted = wanted * lengths[unit] / lengths[value.unit]
        elif unit not in ("", value.unit):
            return False
        own = Fraction(value.number)
        return {"=": own == wanted, "<": own < wanted, "<=": own <= wanted, ">": own > wanted, ">=": own >= wanted}[operator]
    if days is None:
        return False
    start, end = (int((date.fromisoformat(day) - date(1970, 1, 1)).total_seconds()) for day in days)
    return {
        "=": start <= value.start and value.end <= end,
        "<": value.end <= start,
        "<=": value.end <= end,
        ">": value.start >= end,
        ">=": value.start >= start,
    }[operator]
