"""What the client knows of a graph on a server that it has not looked through: the nodes that it
met, numbered as they came.

With an approximate index on the server, a search needs the candidates that the index finds and the
nodes that it reaches, however many others there are. Distances are those of a `Catalogue`; ties go
by the ids of the nodes met, which is the same order.
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
    """The order of the nodes met so far where distances tie: entities by id, then texts (as
    `SearchGraph.rank`).
    """

    def __init__(self, nodes: Sequence[tuple[bool, str]]) -> None:
        self._nodes = nodes
        self._ranks = np.empty(0, np.int64)

    def take(self, numbers: NDArray[Any]) -> NDArray[np.int64]:
        """The ranks of nodes."""
        size = len(self._nodes)
        if len(self._ranks) != size:
            self._ranks = np.empty(size, np.int64)
            self._ranks[np.array(sorted(range(size), key=self._nodes.__getitem__), np.int64)] = np.arange(size)
        found: NDArray[np.int64] = self._ranks.take(numbers)
        return found


class NearCatalogue(Catalogue):
    """A catalogue that grows: an id or a text that is asked for is a node from then on. For one
    search, in one thread.
    """

    def __init__(self, predicates: Mapping[str, bool], reading: Reading, *, memberships: bool, values: Mapping[str, Kinds]) -> None:
        """`predicates`, `memberships` and `values` as of a `Catalogue`."""
        super().__init__((), (), predicates, memberships=memberships, values=values)
        self._reading = reading
        #: For each node whether it is a text, and its id or the text; and the numbers of these.
        self._nodes: list[tuple[bool, str]] = []
        self._places: dict[tuple[bool, str], int] = {}
        self._entities: dict[str, tuple[str, int]] = {}
        empty, ranks = np.empty(0, np.int32), Ranks(self._nodes)
        self.graph = SearchGraph(np.zeros(1, np.int64), empty, empty, len(self.predicates) + 1, 0, ranks)  # type: ignore[arg-type]

    @property
    def sorts_alike(self) -> bool:
        """Not of the nodes that are still to be met."""
        return False

    @property
    def size(self) -> int:
        """How many nodes were met."""
        return len(self._nodes)

    def is_text(self, number: int) -> bool:
        """Whether a node is a text."""
        return self._nodes[number][0]

    def identified(self, ident: str) -> int:
        """The node of an entity's id, which is there."""
        return self._number(False, ident)

    def text(self, text: str) -> int:
        """The node of a text value, which is there."""
        return self._number(True, text)

    def _number(self, is_text: bool, key: str) -> int:
        found = self._places.setdefault((is_text, key), len(self._nodes))
        if found == len(self._nodes):
            self._nodes.append((is_text, key))
        return found

    def learn(self, entities: Iterable[tuple[str, str, int]]) -> None:
        """Take what is known of entities already: id, name and kind."""
        self._entities.update((ident, (name, kind)) for ident, name, kind in entities)

    def expect(self, numbers: Iterable[int]) -> None:
        """Read what is not known of nodes that will be looked at, all at once."""
        ids = [self.key(number) for number in set(numbers) if not self.is_text(number)]
        ids = [ident for ident in ids if ident not in self._entities]
        if ids:
            self._entities.update(self._reading(ids))

    def value(self, number: int) -> Entity | str:
        """What a node is."""
        self.expect([number])
        key = self.key(number)
        if self.is_text(number):
            return key
        name, kind = self._entities[key]
        return Entity(key, name, EntityKind(kind))

    def key(self, number: int) -> str:
        """The id of an entity, a text itself."""
        return self._nodes[number][1]
