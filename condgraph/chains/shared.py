"""What the chains over one graph and one tokenizer share: names by their tokens, and the heads of the
statements that lead to an entity.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from condgraph.chains.lexicon import Loose, Names, Ranked, Run, names_of
from condgraph.chains.place import LocalPlace, Numbers, Place
from condgraph.chains.tokens import Coder, Ids

#: The most entries of all the runs of heads that are kept.
_MOST_KEPT: Final = 4_000_000


class Shared:
    """What chains over one place and one tokenizer have in common."""

    def __init__(self, place: Place, coder: Coder) -> None:
        self.place, self.coder = place, coder
        self.names: Names | None = names_of(place, coder) if isinstance(place, LocalPlace) else None
        self._runs: dict[int, Run] = {}
        self._size = 0

    def leading(self, entity: int) -> Run:
        """The heads of the statements that lead to an entity."""
        found = self._runs.get(entity)
        if found is None:
            statements = self.place.incoming(entity)
            found = self.heads(self.place.subjects(statements), statements)
            self._size += len(found)
            if self._size > _MOST_KEPT:
                self._runs.clear()
                self._size = len(found)
            self._runs[entity] = found
        return found

    def heads(self, entities: Numbers, payload: Numbers) -> Run:
        """Entities as heads."""
        if self.names is not None:
            return Ranked(self.names.heads, entities, payload)
        place = self.place
        written = {one: " " + place.head(one) for one in np.unique(entities).tolist()}
        self.coder.learn(written.values())
        known = {one: self.sequence(text, self.coder.arrow) for one, text in written.items()}
        return Loose([known[one] for one in entities.tolist()], payload.tolist())

    def sequence(self, text: str, suffix: Ids) -> Ids:
        """A piece with what follows it; none where a name would have the signs of a triple."""
        found = self.coder.encode(text)
        return (*found, *suffix) if found and self.coder.closing.isdisjoint(found) else ()

    def loose(self, texts: Sequence[str], suffix: Ids, payload: Sequence[int]) -> Loose:
        """Texts that are encoded now."""
        self.coder.learn(texts)
        return Loose([self.sequence(text, suffix) for text in texts], payload)
