"""A pattern prepared for a graph: candidates of its nodes and edges, constraints on solutions, and
who joins them.
"""

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
    """Where a graph is that joins connected parts of a pattern itself."""

    def part(self, problem: Problem, nodes: Sequence[int], bound: int, length: int | None, by: Sequence[int]) -> tuple[Rows, bool]:
        """The first `length` solutions (None: all) of a part, of each group where it has nodes of
        `by`.

        Whether there are further ones is the second.
        """
        ...

    def joined(
        self, problem: Problem, ones: NDArray[Any], others: NDArray[Any], forward: bool, backward: bool
    ) -> NDArray[np.bool_]:
        """Which of these pairs of nodes some edge joins, from the first to the second, or back."""
        ...

    def between(self, ones: NDArray[Any], others: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """The edges between pairs of nodes: position of the pair, ascending, and label."""
        ...


class Ends(NamedTuple):
    """The nodes of an edge of a pattern, and the least node of the connected part that it is in."""

    head: int
    tail: int
    part: int


def ends_of(pattern: Pattern) -> list[Ends]:
    """The ends of every edge of a pattern."""
    part = list(range(len(pattern.nodes)))
    for edge in pattern.edges:
        old, new = max(part[edge.head], part[edge.tail]), min(part[edge.head], part[edge.tail])
        if old != new:
            part = [new if one == old else one for one in part]
    return [Ends(edge.head, edge.tail, part[edge.head]) for edge in pattern.edges]


@dataclass(slots=True)
class Problem:
    """A pattern made ready for one graph: domains of its nodes, bonds between them, and what
    solutions have to keep to.
    """

    graph: SearchGraph
    domains: list[Domain]
    bonds: list[PairEdges]
    loops: dict[int, PairEdges]
    injective: bool
    #: For the induced subgraph: prices of labels under which two nodes, in that order, must not be
    #: joined (0 where they must not).
    forbidden: dict[tuple[int, int], NDArray[np.int64]]
    #: Joins connected parts elsewhere; None is here, over `graph`.
    server: Server | None = None
    #: Whether edges that meet take different statements (`join.distinct.differ`), where nodes may be
    #: the same.
    distinct: bool = False
    #: The edges of the pattern by number; only a problem with `distinct` needs them.
    edges: Sequence[Ends] = ()
    #: Edges to values, which the domains have in them, and the domains without them.
    values: Sequence[ValueEdge] = ()
    #: Of these, the ones that the server looks for, and that the domains have not in them.
    asked: Sequence[ValueEdge] = ()
    #: How many edges may run against the pattern for a small term.
    soft: int = 0
    named: Sequence[Domain] = ()

    @property
    def spare(self) -> int:
        """Of how many choices of a leaf what stands elsewhere in a row may forbid, or change, the
        use.
        """
        if self.injective:
            return len(self.domains) - 1
        return len(self.bonds) + len(self.loops) - 1 if self.distinct else 0

    def least(self, nodes: Sequence[int]) -> int:
        """The least that these nodes, with the bonds among them, can cost (Eq. 9 and 10)."""
        inside = set(nodes)
        total: int = sum(self.domains[node].least for node in nodes)
        total += sum(edge.least for edge in self.asked if edge.node in inside)
        total += sum(bond.least for bond in self.bonds if bond.first in inside and bond.second in inside)
        return total + sum(bond.least for node, bond in self.loops.items() if node in inside)
