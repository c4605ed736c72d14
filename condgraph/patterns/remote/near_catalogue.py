"""A catalogue that grows during a search: the nodes met so far, numbered in the order they were met.

With an approximate index on the server, a search needs only the candidates from the index and the nodes that it
reaches, however large the graph is. Distances are those of a `Catalogue`; ties go by the ids of the nodes met, which
gives the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.facts import Entity, EntityKind
from condgraph.engine.schema import Kinds
from condgraph.patterns.graph import SearchGraph
from condgraph.patterns.remote.catalogue import Catalogue

#: Reads names and kinds of entities by id.
Reading = Callable[[Sequence[str]], Mapping[str, tuple[str, int]]]


class Ranks:
    """The order of the nodes met so far at equal distance: entities by id, then texts (as `SearchGraph.rank`)."""

    def __init__(self, nodes: Sequence[tuple[bool, str]]) -> None:
        self._nodes = nodes
        self._ranks = np.empty(0, np.int64)

    def take(self, numbers: NDArray[Any]) -> NDArray[np.int64]:
        """Return the ranks of nodes, given their numbers."""
        size = len(self._nodes)
        if len(self._ranks) != size:
            self._ranks = np.empty(size, np.int64)
            self._ranks[np.array(sorted(range(size), key=self._nodes.__getitem__), np.int64)] = np.arange(size)
        ranks: NDArray[np.int64] = self._ranks.take(numbers)
        return ranks


class NearCatalogue(Catalogue):
    """A catalogue to which every id or text that is looked up is added as a node. It serves one search in one thread."""

    def __init__(self, predicates: Mapping[str, bool], reading: Reading, *, memberships: bool, values: Mapping[str, Kinds]) -> None:
        """See `Catalogue` for `predicates`, `memberships` and `values`."""
        super().__init__((), (), predicates, memberships=memberships, values=values)
        self._reading = reading
        #: Each node as (is it a text, id or text), and their numbers.
        self._nodes: list[tuple[bool, str]] = []
        self._places: dict[tuple[bool, str], int] = {}
        self._entities: dict[str, tuple[str, int]] = {}
        empty, ranks = np.empty(0, np.int32), Ranks(self._nodes)
        self.graph = SearchGraph(np.zeros(1, np.int64), empty, empty, len(self.predicates) + 1, 0, ranks)  # type: ignore[arg-type]

    @property
    def sorts_alike(self) -> bool:
        """False, since nodes still to be met may sort differently."""
        return False

    @property
    def size(self) -> int:
        """The number of nodes met."""
        return len(self._nodes)

    def is_text(self, number: int) -> bool:
        return self._nodes[number][0]

    def identified(self, ident: str) -> int:
        """Return the node of an entity's id; a new id becomes a node."""
        return self._number(False, ident)

    def text(self, text: str) -> int:
        """Return the node of a text value; a new text becomes a node."""
        return self._number(True, text)

    def _number(self, is_text: bool, key: str) -> int:
        number = self._places.setdefault((is_text, key), len(self._nodes))
        if number == len(self._nodes):
            self._nodes.append((is_text, key))
        return number

    def learn(self, entities: Iterable[tuple[str, str, int]]) -> None:
        """Add entities that are already known, as (id, name, kind)."""
        self._entities.update((ident, (name, kind)) for ident, name, kind in entities)

    def expect(self, numbers: Iterable[int]) -> None:
        """Read the names and kinds of all nodes that will be looked at and are not known yet, at once."""
        ids = [self.key(number) for number in set(numbers) if not self.is_text(number)]
        ids = [ident for ident in ids if ident not in self._entities]
        if ids:
            self._entities.update(self._reading(ids))

    def value(self, number: int) -> Entity | str:
        """Return the entity or text of a node."""
        self.expect([number])
        key = self.key(number)
        if self.is_text(number):
            return key
        name, kind = self._entities[key]
        return Entity(key, name, EntityKind(kind))

    def key(self, number: int) -> str:
        """Return the id of an entity, or the text itself."""
        return self._nodes[number][1]
