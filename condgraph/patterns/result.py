"""The result of a search for a pattern: solutions with every term of their distance, as an answer like any other.

Every store returns the same `Matches`. It consists of `Hits` (totals, and nodes as the store's numbers) and a `Reader`, which
turns the numbers of a solution into nodes, edges and evidence when they are looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from condgraph.engine import html
from condgraph.engine.bounds import timed
from condgraph.engine.facts import Entity, shown
from condgraph.engine.records import Evidence
from condgraph.engine.values import Quantity, Time
from condgraph.languages.pattern.pattern import Pattern, PatternEdge, PatternNode
from condgraph.vectors.nearest import UNIT

if TYPE_CHECKING:
    from condgraph.engine.drawing import Drawing

#: How many solutions are read between two checks of the deadline.
FEW: Final = 1 << 9
#: The predicate of a membership.
INSTANCE_OF: Final = "instance of"


@dataclass(frozen=True, slots=True)
class NodeMatch:
    """What a node of the pattern is in a solution: an entity (or concept, or row), a text, or a matching number or time.

    `term` is the node's part of the distance in millionths; None for an unknown node, which adds nothing.
    """

    node: PatternNode
    value: Entity | str | Quantity | Time
    term: int | None

    @property
    def text(self) -> str:
        """The name of the entity, or the text."""
        return self.value.name if isinstance(self.value, Entity) else str(self.value)


@dataclass(frozen=True, slots=True)
class EdgeMatch:
    """The statement that an edge of the pattern is in a solution, in its own direction.

    `reversed` tells that the statement runs from the edge's tail to its head. `term` is the edge's part of the distance in
    millionths; None for an unknown relation.
    """

    edge: PatternEdge
    statement: Evidence
    reversed: bool
    term: int | None
    #: The cost of running against the pattern, in millionths.
    against: int = 0
    #: The cost of an edge that stands for a path of two, in millionths; and the other half of the path.
    stretch: int = 0
    other: Evidence | None = None

    @property
    def triple(self) -> tuple[str, str, str]:
        """Subject, predicate and object as texts."""
        return _triple(self.statement)

    @property
    def triples(self) -> tuple[tuple[str, str, str], ...]:
        """The triples of all its statements: two if it stands for a path."""
        return (self.triple,) if self.other is None else (self.triple, _triple(self.other))


def _triple(statement: Evidence) -> tuple[str, str, str]:
    thing = statement.object
    return statement.subject.name, statement.predicate, thing.name if isinstance(thing, Entity) else str(thing)


class Reader(Protocol):
    """How a store reads back a solution, given its node numbers in the order of the pattern's nodes."""

    def nodes(self, numbers: Sequence[int]) -> tuple[NodeMatch, ...]:
        """Return what the nodes are."""
        ...

    def edges(self, numbers: Sequence[int]) -> tuple[EdgeMatch, ...]:
        """Return the statements of the edges: nearest first, then least by id, distinct for parallel edges."""
        ...

    def count(self, numbers: Sequence[int], total: int) -> int:
        """Return how many solutions of the same group have this distance."""
        ...


class TimedReader:
    """A reader with a timeout in seconds for each look."""

    _timeout: float | None

    def __init__(self, reader: Reader, timeout: float) -> None:
        self._reader, self._timeout = reader, timeout

    @timed
    def nodes(self, numbers: Sequence[int]) -> tuple[NodeMatch, ...]:
        """See `Reader.nodes`."""
        return self._reader.nodes(numbers)

    @timed
    def edges(self, numbers: Sequence[int]) -> tuple[EdgeMatch, ...]:
        """See `Reader.edges`."""
        return self._reader.edges(numbers)

    @timed
    def count(self, numbers: Sequence[int], total: int) -> int:
        """See `Reader.count`."""
        return self._reader.count(numbers, total)


@dataclass(frozen=True, slots=True)
class Hits:
    """Solutions in order: `totals` in millionths, shape (n,), int64, and `nodes`, shape (n, number of pattern nodes).

    `complete` is False if the deadline came first: these are the best so far. `more` tells that there are others at the best
    distance, beyond the most that are returned (`k=None`).
    """

    totals: NDArray[np.int64]
    nodes: NDArray[np.int32]
    complete: bool = True
    more: bool = False


class Solution:
    """One subgraph: a node for each node of the pattern, a statement for each edge, and their distance."""

    __slots__ = ("_edges", "_nodes", "_numbers", "_reader", "total")

    def __init__(self, total: int, numbers: Sequence[int], reader: Reader) -> None:
        #: The graph semantic distance in millionths: the sum of all terms (Eq. 3).
        self.total = total
        self._numbers, self._reader = numbers, reader
        self._nodes: tuple[NodeMatch, ...] | None = None
        self._edges: tuple[EdgeMatch, ...] | None = None

    @property
    def distance(self) -> float:
        """The graph semantic distance."""
        return self.total / UNIT

    @property
    def nodes(self) -> tuple[NodeMatch, ...]:
        """What each node of the pattern is, in the order of the pattern's nodes."""
        if self._nodes is None:
            self._nodes = self._reader.nodes(self._numbers)
        return self._nodes

    @property
    def edges(self) -> tuple[EdgeMatch, ...]:
        """What each edge of the pattern is, in the order of the pattern's edges."""
        if self._edges is None:
            self._edges = self._reader.edges(self._numbers)
        return self._edges

    @property
    def count(self) -> int:
        """How many solutions have the same answer (`group_by`) at this distance, including this one; computed on demand."""
        return self._reader.count(self._numbers, self.total)

    @property
    def statements(self) -> list[Evidence]:
        """The distinct statements of the subgraph."""
        statements = [statement for edge in self.edges for statement in (edge.statement, edge.other) if statement is not None]
        return list(dict.fromkeys(statements))

    @property
    def triples(self) -> list[tuple[str, str, str]]:
        """The subgraph as triples of texts: each distinct statement in its own direction (section 4.4)."""
        return list(dict.fromkeys(triple for edge in self.edges for triple in edge.triples))

    def left_out(self, pattern: Pattern) -> tuple[PatternEdge, ...]:
        """Return the edges of the pattern that it leaves out."""
        used = {(match.edge.head, match.edge.relation, match.edge.tail) for match in self.edges}
        return tuple(edge for edge in pattern.edges if (edge.head, edge.relation, edge.tail) not in used)

    def __getitem__(self, name: str) -> Entity | str | Quantity | Time:
        """Return what a node is, by its text in the pattern, with or without the word UNKNOWN."""
        for match in self.nodes:
            if name in (match.node.text, match.node.name):
                return match.value
        raise KeyError(name)

    def draw(self) -> Drawing:
        """Return the subgraph as a picture, with unknown nodes highlighted."""
        from condgraph.engine.drawing import of_statements

        unknown = [match.value for match in self.nodes if not match.node.known]
        answers = [value.id if isinstance(value, Entity) else shown(value) for value in unknown]
        return of_statements(self.statements, answers, f"distance {self.distance:.6f}")

    def _repr_html_(self) -> str:
        """Return the subgraph as a drawing and a table of its statements, for notebooks."""
        triples = self.triples
        shown = triples[: html.MAX_ROWS]
        below = html.table("statements", ("subject", "predicate", "object"), shown, len(triples) - len(shown))
        return html.page(f"distance {self.distance:.6f}", [self.draw().svg, below])

    def __str__(self) -> str:
        return f"{self.distance:.6f}  " + "; ".join(" | ".join(triple) for triple in self.triples)

    def __repr__(self) -> str:
        return f"<Solution {self}>"


class Solutions(Sequence[Solution]):
    """Solutions in order, each created when it is looked at."""

    def __init__(self, hits: Hits, reader: Reader) -> None:
        self._hits, self._reader = hits, reader

    def __len__(self) -> int:
        return len(self._hits.totals)

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return [self[i] for i in range(*at.indices(len(self)))]
        return Solution(int(self._hits.totals[at]), self._hits.nodes[at].tolist(), self._reader)

    def __iter__(self) -> Iterator[Solution]:
        rows = zip(self._hits.totals.tolist(), self._hits.nodes.tolist(), strict=True)
        return (Solution(total, numbers, self._reader) for total, numbers in rows)

    def __repr__(self) -> str:
        return f"<{len(self)} solutions>"


@dataclass(frozen=True, slots=True)
class Report:
    """How a search went: how far the bound grew, and what that took; on a server, its queries and how many rows they returned."""

    rounds: int = 0
    bound: int | None = None
    seconds: float = 0.0
    notes: tuple[str, ...] = field(default=())
    queries: int = 0
    rows: int = 0
