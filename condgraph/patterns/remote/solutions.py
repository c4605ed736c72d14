"""Reads solutions of a pattern on a server: nodes from the catalogue, and the statements between them, fetched for many
solutions at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.bounds import cached
from condgraph.languages.pattern.pattern import Pattern
from condgraph.patterns.distance.domains import PairEdges
from condgraph.patterns.graph import Costs, text_nodes
from condgraph.patterns.options import MatchOptions
from condgraph.patterns.problem import Problem, Server
from condgraph.patterns.reader import SnapshotReader
from condgraph.patterns.remote.catalogue import Catalogue, Tally
from condgraph.patterns.remote.values import ValuePlan, every_plan
from condgraph.patterns.result import EdgeMatch, NodeMatch

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot

#: Solutions whose statements are fetched together.
TOGETHER: Final = 1000


class PatternStore(Protocol):
    """A store on which patterns are searched."""

    def parts(self, catalogue: Catalogue, tally: Tally) -> Server:
        """Return the server side of a search, which joins the connected parts of a pattern."""
        ...

    def copy_edges(self, catalogue: Catalogue) -> Tally | None:
        """Read all edges into the catalogue if that is worth it; return what this took, or None if it is not."""
        ...

    def of_types(self, catalogue: Catalogue, types: Sequence[str]) -> NDArray[np.int32]:
        """Return the members of any of some concepts, ascending."""
        ...

    def holders(
        self, catalogue: Catalogue, nodes: NDArray[np.int32] | None, plan: ValuePlan, tally: Tally
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return those of some nodes (None: any) that have a value matching a plan, and its predicate."""
        ...

    def passed_over(self, catalogue: Catalogue, costs: Costs) -> str | None:
        """Return the nearest predicate if no edge of the period has it."""
        ...

    def between(self, catalogue: Catalogue, pairs: Sequence[tuple[int, int]], values: Sequence[Held] = ()) -> Snapshot:
        """Return all statements and memberships between these pairs of nodes, in either direction, as a small snapshot,
        together with the statements whose values match the given plans.
        """
        ...


#: Nodes, ascending, and the plan that a value of each must match.
Held: TypeAlias = tuple[Sequence[int], ValuePlan]


class SmallNumbers:
    """Translates a catalogue's numbers of nodes and predicates into those of a small snapshot."""

    def __init__(self, small: Snapshot, catalogue: Catalogue) -> None:
        self._snapshot, self._catalogue = small, catalogue
        texts = small.texts.take(text_nodes(small))
        self._texts = {text: small.entities + position for position, text in enumerate(texts)}
        names = map(small.predicate_name, range(small.predicate_count))
        self.predicates = [catalogue.predicate_numbers.get(name, -1) for name in names]

    def node(self, number: int) -> int:
        """Return the number of a node in the small snapshot, or -1."""
        value = self._catalogue.key(number)
        return self._texts.get(value, -1) if self._catalogue.is_text(number) else self._snapshot.identified(value)


class RemoteReader:
    """Reads solutions: nodes from the catalogue, statements when the first edge is looked at (`patterns.result.Reader`)."""

    def __init__(
        self, store: PatternStore, catalogue: Catalogue, pattern: Pattern, problem: Problem, options: MatchOptions,
        solutions: NDArray[np.int32],
    ) -> None:  # fmt: skip
        """The statements of `solutions` are fetched together."""
        self._store, self._catalogue, self._pattern, self._problem, self._options = store, catalogue, pattern, problem, options
        self._solutions, self._read = solutions, False
        self._readers: dict[tuple[int, ...], _SmallReader] = {}

    @cached
    def _ahead(self) -> list[tuple[int, ...]]:
        return [tuple(row) for row in self._solutions.tolist()]

    @cached
    def _places(self) -> dict[tuple[int, ...], int]:
        return {key: at for at, key in enumerate(self._ahead)}

    def nodes(self, numbers: Sequence[int]) -> tuple[NodeMatch, ...]:
        """Return the nodes, with their terms."""
        if not self._read:
            self._read = True
            self._catalogue.expect(set(self._solutions.ravel().tolist()))
        matches = []
        for node, domain, number in zip(self._pattern.nodes, self._problem.named, numbers, strict=False):
            terms = domain.at(np.array([number])) if node.known else None
            matches.append(NodeMatch(node, self._catalogue.value(number), None if terms is None else int(terms[0])))
        return (*matches, *(self._reader(numbers).values(numbers) if self._problem.values else ()))

    def edges(self, numbers: Sequence[int]) -> tuple[EdgeMatch, ...]:
        """Return the statement of each edge."""
        return self._reader(numbers).edges(numbers)

    def _reader(self, numbers: Sequence[int]) -> _SmallReader:
        """Return a reader of this solution; a new one fetches the statements of the solutions that follow, too."""
        key = tuple(numbers)
        reader = self._readers.get(key)
        if reader is None:
            position = self._places.get(key)
            solutions = [key] if position is None else self._ahead[position : position + TOGETHER]
            bonds = [*self._problem.bonds, *self._problem.loops.values()]
            pairs = sorted({(solution[bond.first], solution[bond.second]) for solution in solutions for bond in bonds})
            values = []
            for edge, plan in zip(self._problem.values, every_plan(self._problem, self._catalogue), strict=True):
                values.append((sorted({solution[edge.node] for solution in solutions}), plan))
            small = self._store.between(self._catalogue, pairs, values)
            reader = _SmallReader(small, self._catalogue, self._pattern, self._problem, self._options)
            self._readers.update(dict.fromkeys(solutions, reader))
        return reader

    def count(self, numbers: Sequence[int], total: int) -> int:
        """Return the number of solutions of the same group at this distance."""
        from condgraph.patterns.join.count import count
        from condgraph.patterns.join.driver import limited

        problem = limited(self._problem, {node: numbers[node] for node in self._options.group_by})
        if problem.server is not None:
            problem.server = self._store.parts(self._catalogue, Tally())
        return count(problem, total)


class _SmallReader(SnapshotReader):
    """Reads statements from a small snapshot, which numbers nodes and predicates differently from the catalogue."""

    def __init__(self, small: Snapshot, catalogue: Catalogue, pattern: Pattern, problem: Problem, options: MatchOptions) -> None:
        super().__init__(small, pattern, problem, options)
        self._numbers = SmallNumbers(small, catalogue)

    def values(self, numbers: Sequence[int]) -> tuple[NodeMatch, ...]:
        """Return the values of the pattern."""
        return tuple(self._values(self.valued(numbers)))

    def _own(self, number: int) -> int:
        return self._numbers.node(number)

    def _bonds(self, bonds: Sequence[PairEdges], one: int, two: int, numbers: Sequence[int]) -> dict[int, EdgeMatch]:
        return super()._bonds(bonds, self._numbers.node(one), self._numbers.node(two), numbers)

    def _predicate(self, number: int) -> int:
        return self._numbers.predicates[super()._predicate(number)]
