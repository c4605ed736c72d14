"""A pattern prepared for a graph: candidates of its nodes and edges, constraints on solutions, and who joins them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from condgraph.languages.pattern.pattern import Pattern
from condgraph.patterns.distance.domains import Domain, PairEdges
from condgraph.patterns.graph import SearchGraph
from condgraph.patterns.ranking import Rows
from condgraph.patterns.values import ValueEdge


class Server(Protocol):
    """The place of a graph that itself joins connected parts of a pattern."""

    def part(self, problem: Problem, nodes: Sequence[int], bound: int, length: int | None, by: Sequence[int]) -> tuple[Rows, bool]:
        """Return the first `length` solutions (None: all) of a part, and whether there are more.

        With nodes `by`, it is so many of each group.
        """
        ...

    def around(self, nodes: NDArray[Any]) -> SearchGraph:
        """Return an adjacency of at least the edges of some nodes."""
        ...


class Ends(NamedTuple):
    """The nodes of an edge of a pattern, and the least node of its connected part."""

    head: int
    tail: int
    part: int


def ends_of(pattern: Pattern) -> list[Ends]:
    """Return the ends of every edge of a pattern."""
    part = list(range(len(pattern.nodes)))
    for edge in pattern.edges:
        old, new = max(part[edge.head], part[edge.tail]), min(part[edge.head], part[edge.tail])
        if old != new:
            part = [new if root == old else root for root in part]
    return [Ends(edge.head, edge.tail, part[edge.head]) for edge in pattern.edges]


@dataclass(slots=True)
class Problem:
    """A pattern prepared for one graph: domains of its nodes, bonds between them, and constraints on solutions."""

    graph: SearchGraph
    domains: list[Domain]
    bonds: list[PairEdges]
    loops: dict[int, PairEdges]
    injective: bool
    #: For the induced subgraph: prices of labels by which two nodes, in that order, must not be joined (0 for forbidden ones).
    forbidden: dict[tuple[int, int], NDArray[np.int64]]
    #: Joins connected parts elsewhere; None means here, over `graph`.
    server: Server | None = None
    #: Whether edges that meet take different statements (`join.distinct.differ`) while nodes may be the same.
    distinct: bool = False
    #: The edges of the pattern by number; needed only with `distinct`.
    edges: Sequence[Ends] = ()
    #: Edges to values, which the domains already include; and the domains without them.
    values: Sequence[ValueEdge] = ()
    #: Those edges to values that the server searches for, so that the domains do not include them.
    asked: Sequence[ValueEdge] = ()
    #: How many edges may run against the pattern for a small term.
    soft: int = 0
    named: Sequence[Domain] = ()

    def around(self, nodes: NDArray[Any]) -> SearchGraph:
        """Return an adjacency of at least the edges of some nodes."""
        return self.graph if self.server is None else self.server.around(nodes)

    @property
    def spare(self) -> int:
        """How many choices of a leaf the rest of a row may forbid or change."""
        if self.injective:
            return len(self.domains) - 1
        return len(self.bonds) + len(self.loops) - 1 if self.distinct else 0

    def least(self, nodes: Sequence[int]) -> int:
        """Return the least that these nodes, with the bonds among them, can cost (Eq. 9 and 10)."""
        inside = set(nodes)
        total: int = sum(self.domains[node].least for node in nodes)
        total += sum(edge.least for edge in self.asked if edge.node in inside)
        total += sum(bond.least for bond in self.bonds if bond.first in inside and bond.second in inside)
        return total + sum(bond.least for node, bond in self.loops.items() if node in inside)
