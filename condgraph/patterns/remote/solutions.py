"""Solutions of a pattern on a server read back: nodes from the catalogue, and the statements between
them, fetched for many solutions together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from condgraph.languages.pattern.pattern import Pattern
from condgraph.patterns.distance.domains import PairEdges
from condgraph.patterns.graph import text_nodes
from condgraph.patterns.options import MatchOptions
from condgraph.patterns.problem import Problem, Server
from condgraph.patterns.reader import SnapshotReader, edges_between
from condgraph.patterns.remote.catalogue import Catalogue, Tally
from condgraph.patterns.remote.values import ValuePlan, every_plan
from condgraph.patterns.result import EdgeMatch, NodeMatch

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot

#: Solutions whose statements are fetched together.
TOGETHER: Final = 1000


class PatternStore(Protocol):
    """A store that patterns are searched on."""

    def parts(self, catalogue: Catalogue, tally: Tally) -> Server:
        """What joins the connected parts of a pattern there."""
        ...

    def between(self, catalogue: Catalogue, pairs: Sequence[tuple[int, int]], values: Sequence[Held] = ()) -> Snapshot:
        """All statements and memberships between these pairs of nodes, in either direction, as a
        small snapshot; and statements of nodes whose values are as planned.
        """
        ...


#: Nodes, ascending, and what values of theirs have to be.
Held: TypeAlias = tuple[Sequence[int], ValuePlan]


class SmallNumbers:
    """The nodes and predicates of a small snapshot by the numbers of a catalogue."""

    def __init__(self, small: Snapshot, catalogue: Catalogue) -> None:
        self._snapshot, self._catalogue = small, catalogue
        texts = small.texts.take(text_nodes(small))
        self._texts = {text: small.entities + place for place, text in enumerate(texts)}
        names = map(small.predicate_name, range(small.predicate_count))
        self.predicates = [catalogue.predicate_numbers.get(name, -1) for name in names]

    def node(self, number: int) -> int:
        """The number of a node in the small snapshot; -1 where it has none."""
        value = self._catalogue.key(number)
        return self._texts.get(value, -1) if self._catalogue.is_text(number) else self._snapshot.identified(value)

    def labels(self, one: int, two: int) -> list[int]:
        """The labels (`patterns.graph`) of all edges between two nodes, as seen from the first."""
        size = self._catalogue.graph.predicates
        a, b = self.node(one), self.node(two)
        if a < 0 or b < 0:
            return []
        found = []
        for number, outward in edges_between(self._snapshot, a, b):
            predicate = size - 1 if number < 0 else self.predicates[self._snapshot.predicate_of(number)]
            found.append(2 * size + predicate if one == two else 2 * predicate + (0 if outward else 1))
        return found


class RemoteReader:
    """Reads solutions back: nodes from the catalogue, statements fetched when the first edge is
    looked at (`patterns.result.Reader`).
    """

    def __init__(
        self, store: PatternStore, catalogue: Catalogue, pattern: Pattern, problem: Problem, options: MatchOptions
    ) -> None:
        self._store, self._catalogue, self._pattern, self._problem, self._options = store, catalogue, pattern, problem, options
        self._ahead: list[tuple[int, ...]] = []
        self._read = False
        self._readers: dict[tuple[int, ...], _SmallReader] = {}

    def expect(self, solutions: NDArray[np.int32]) -> None:
        """The solutions there are, so that their statements are fetched together."""
        self._ahead = [tuple(row) for row in solutions.tolist()]

    def nodes(self, numbers: Sequence[int]) -> tuple[NodeMatch, ...]:
        """What the nodes are, with their terms."""
        if not self._read:
            self._read = True
            self._catalogue.expect({number for one in self._ahead for number in one})
        found = []
        for node, domain, number in zip(self._pattern.nodes, self._problem.named, numbers, strict=False):
            terms = domain.at(np.array([number])) if node.known else None
            found.append(NodeMatch(node, self._catalogue.value(number), None if terms is None else int(terms[0])))
        return (*found, *(self._reader(numbers).values(numbers) if self._problem.values else ()))

    def edges(self, numbers: Sequence[int]) -> tuple[EdgeMatch, ...]:
        """The statement of each edge."""
        return self._reader(numbers).edges(numbers)

    def _reader(self, numbers: Sequence[int]) -> _SmallReader:
        """What reads a solution from the statements that were fetched for it, and for those after it."""
        key = tuple(numbers)
        reader = self._readers.get(key)
        if reader is None:
            at = self._ahead.index(key) if key in self._ahead else -1
            together = [key] if at < 0 else self._ahead[at : at + TOGETHER]
            bonds = [*self._problem.bonds, *self._problem.loops.values()]
            pairs = sorted({(one[bond.first], one[bond.second]) for one in together for bond in bonds})
            held = []
            for edge, plan in zip(self._problem.values, every_plan(self._problem, self._catalogue), strict=True):
                held.append((sorted({one[edge.node] for one in together}), plan))
            small = self._store.between(self._catalogue, pairs, held)
            reader = _SmallReader(small, self._catalogue, self._pattern, self._problem, self._options)
            self._readers.update(dict.fromkeys(together, reader))
        return reader

    def count(self, numbers: Sequence[int], total: int) -> int:
        """How many solutions of the same group have this distance."""
        from condgraph.patterns.join.count import count
        from condgraph.patterns.join.driver import limited

        problem = limited(self._problem, {node: numbers[node] for node in self._options.group_by})
        problem.server = self._store.parts(self._catalogue, Tally())
        return count(problem, total)


class _SmallReader(SnapshotReader):
    """Statements read from a small snapshot, whose nodes and predicates have other numbers than the
    catalogue's.
    """

    def __init__(self, small: Snapshot, catalogue: Catalogue, pattern: Pattern, problem: Problem, options: MatchOptions) -> None:
        super().__init__(small, pattern, problem, options)
        self._numbers = SmallNumbers(small, catalogue)

    def values(self, numbers: Sequence[int]) -> tuple[NodeMatch, ...]:
        """What the values of the pattern are."""
        return tuple(self._values(self.valued(numbers)))

    def _own(self, number: int) -> int:
        return self._numbers.node(number)

    def _bonds(self, bonds: Sequence[PairEdges], one: int, two: int, numbers: Sequence[int]) -> dict[int, EdgeMatch]:
        return super()._bonds(bonds, self._numbers.node(one), self._numbers.node(two), numbers)

    def _predicate(self, number: int) -> int:
        return self._numbers.predicates[super()._predicate(number)]
