"""What the client knows of a graph on a server that it has not looked through: the nodes that it
met, numbered as they came.

With an approximate index on the server, a search needs the candidates that the index finds and the
nodes of its solutions, however many others there are. Distances are those of a `Catalogue`; ties go
by the ids of the nodes met, which is the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.facts import Entity, EntityKind
from condgraph.engine.schema import Kinds
from condgraph.patterns.graph import SearchGraph
from condgraph.patterns.remote.catalogue import Catalogue

#: Where the numbers of texts begin.
TEXTS: Final = 1 << 30

#: Reads names and kinds of entities by id, and whole texts by what a store knows them by.
Reading = Callable[[Sequence[str], Sequence[str]], tuple[Mapping[str, tuple[str, int]], Mapping[str, str]]]


class Ranks:
    """The order of the nodes met so far where distances tie: entities by id, then texts (as
    `SearchGraph.rank`).
    """

    def __init__(self, catalogue: NearCatalogue) -> None:
        self._catalogue = catalogue
        self._ranks: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None

    def take(self, numbers: NDArray[Any]) -> NDArray[np.int64]:
        """The ranks of nodes."""
        ids, texts = self._catalogue.ids, self._catalogue.texts
        if self._ranks is None or (len(self._ranks[0]), len(self._ranks[1])) != (len(ids), len(texts)):
            self._ranks = _ranks(ids), _ranks(texts)
        numbers = np.asarray(numbers, np.int64)
        found = np.empty(len(numbers), np.int64)
        text = numbers >= TEXTS
        found[~text] = self._ranks[0][numbers[~text]]
        found[text] = self._ranks[1][numbers[text] - TEXTS] + TEXTS
        return found


def _ranks(keys: Sequence[str]) -> NDArray[np.int64]:
    found = np.empty(len(keys), np.int64)
    found[np.array(sorted(range(len(keys)), key=keys.__getitem__), np.int64)] = np.arange(len(keys))
    return found


class NearCatalogue(Catalogue):
    """A catalogue that grows: an id or a text that is asked for is a node from then on. For one
    search, in one thread.
    """

    def __init__(
        self, predicates: Mapping[str, bool], reading: Reading, *, memberships: bool, texts: bool, values: Mapping[str, Kinds]
    ) -> None:
        """`predicates`, `memberships` and `values` as of a `Catalogue`; `texts` says whether a node
        may be a text.
        """
        super().__init__((), (), predicates, memberships=memberships, values=values)
        self._reading, self._may_be_texts = reading, texts
        self._text_places: dict[str, int] = {}
        self._entities: dict[str, tuple[str, int]] = {}
        self._whole: dict[str, str] = {}
        empty = np.empty(0, np.int32)
        size, ranks = np.zeros(1, np.int64), Ranks(self)
        self.graph = SearchGraph(size, empty, empty, len(self.predicates) + 1, TEXTS, ranks)  # type: ignore[arg-type]

    @property
    def entities(self) -> int:
        """Where the numbers of texts begin."""
        return TEXTS

    @property
    def has_texts(self) -> bool:
        """Whether a node may be a text."""
        return self._may_be_texts

    def identified(self, ident: str) -> int:
        """The node of an entity's id, which is there."""
        found = self._numbers.get(ident)
        if found is None:
            found = self._numbers[ident] = len(self.ids)
            self.ids.append(ident)
        return found

    def text(self, text: str) -> int:
        """The node of a text value, which is there, by what the store knows it by."""
        found = self._text_places.get(text)
        if found is None:
            found = self._text_places[text] = len(self.texts)
            self.texts.append(text)
        return TEXTS + found

    def learn(self, entities: Iterable[tuple[str, str, int]], texts: Mapping[str, str]) -> None:
        """Take what is known of nodes already: id, name and kind of entities; whole texts by what
        the store knows them by.
        """
        self._entities.update((ident, (name, kind)) for ident, name, kind in entities)
        self._whole.update(texts)

    def expect(self, numbers: Iterable[int]) -> None:
        """Read what is not known of nodes that will be looked at, all at once."""
        some = set(numbers)
        ids = [self.ids[number] for number in some if number < TEXTS and self.ids[number] not in self._entities]
        texts = [self.texts[number - TEXTS] for number in some if number >= TEXTS]
        texts = [text for text in texts if text not in self._whole]
        if ids or texts:
            entities, whole = self._reading(ids, texts)
            self._entities.update(entities)
            self._whole.update(whole)

    def value(self, number: int) -> Entity | str:
        """What a node is."""
        self.expect([number])
        if number >= TEXTS:
            return self._whole[self.texts[number - TEXTS]]
        ident = self.ids[number]
        name, kind = self._entities[ident]
        return Entity(ident, name, EntityKind(kind))

    def key(self, number: int) -> str:
        """The id of an entity, a text itself."""
        if number < TEXTS:
            return self.ids[number]
        self.expect([number])
        return self._whole[self.texts[number - TEXTS]]
