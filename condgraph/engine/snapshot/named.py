"""Which is which in an open snapshot: entities, concepts, predicates and sources by their names,
ids and numbers.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.facts import Entity, EntityKind, Source
from condgraph.engine.snapshot.container import ArrayFile, MemoryArrays
from condgraph.engine.snapshot.pool import Pool

Numbers = NDArray[np.int32]
NONE: Final = np.empty(0, np.int32)
#: Names of entities that are kept as texts.
_MOST_NAMES: Final = 65_536


class Named:
    """The texts of a snapshot, and what is called by them."""

    def __init__(self, arrays: ArrayFile) -> None:
        self.arrays = arrays
        self.texts = Pool(arrays)
        self._predicates = arrays.view("pred.text")
        self._names: dict[str, Numbers] = {}
        self._concept_names: dict[str, tuple[int, ...]] = {}
        self._predicate_numbers: dict[str, int] = {}
        self._known_names: dict[int, str] = {}
        self._differ: bool | None = None

    @cached_property
    def entity_id(self) -> Numbers:
        """The id of each entity, as the number of its text."""
        return self.arrays.get("ent.id")

    @cached_property
    def entity_name(self) -> Numbers:
        """The name of each entity, as the number of its text."""
        return self.arrays.get("ent.name")

    @cached_property
    def entity_kind(self) -> NDArray[np.int8]:
        """What each entity is (`EntityKind`)."""
        return self.arrays.get("ent.kind")

    @cached_property
    def _name_view(self) -> memoryview:
        return self.arrays.view("ent.name")

    @cached_property
    def _id_view(self) -> memoryview:
        return self.arrays.view("ent.id")

    @cached_property
    def _by_id(self) -> memoryview:
        return self.arrays.view("ent.by_id")

    def named(self, name: str) -> Numbers:
        """The entities and concepts of exactly this name, in order; empty where there are none."""
        found = self._names.get(name)
        if found is None:
            text = self.texts.find(name)
            if text < 0:
                return NONE
            low = bisect_left(self._name_view, text)
            found = np.arange(low, bisect_right(self._name_view, text, low), dtype=np.int32)
            make_room(self._names)
            self._names[name] = found
        return found

    def name_rank(self, text: int) -> int:
        """The first entity whose name is not before the text of this number; entities are numbered
        by name.
        """
        return bisect_left(self._name_view, text)

    def concepts_named(self, name: str) -> tuple[int, ...]:
        """The concepts of exactly this name."""
        found = self._concept_names.get(name)
        if found is None:
            kinds = self.entity_kind
            found = tuple(n for n in self.named(name).tolist() if kinds[n] == EntityKind.CONCEPT)
            make_room(self._concept_names)
            self._concept_names[name] = found
        return found

    def identified(self, ident: str) -> int:
        """The entity of this id, or -1."""
        text = self.texts.find(ident)
        if text < 0:
            return -1
        ids = self._id_view
        at = bisect_left(self._by_id, text, key=ids.__getitem__)
        return self._by_id[at] if at < len(self._by_id) and ids[self._by_id[at]] == text else -1

    def entity(self, number: int) -> Entity:
        """An entity as a record."""
        rows = self.arrays.get("ent.row")
        return Entity(
            self.texts[self._id_view[number]],
            self.texts[self._name_view[number]],
            EntityKind(int(self.entity_kind[number])),
            int(rows[number]) if len(rows) else 0,
        )

    def name(self, number: int) -> str:
        """The name of an entity."""
        return self.texts[self._name_view[number]]

    def names_of(self, numbers: list[int]) -> list[str]:
        """The names of some entities; those that were asked for lately are kept."""
        kept = self._known_names
        try:
            return [kept[number] for number in numbers]
        except KeyError:
            found = self.texts.take(self.entity_name[numbers])
            if len(kept) + len(found) > _MOST_NAMES:
                self._known_names = {}
            if len(found) <= _MOST_NAMES:
                self._known_names.update(zip(numbers, found, strict=True))
            return found

    @property
    def names_differ(self) -> bool:
        """Whether no two entities have one name."""
        if self._differ is None:
            names = self.entity_name
            self._differ = bool((names[1:] != names[:-1]).all())
        return self._differ

    def ident(self, number: int) -> str:
        """The id of an entity."""
        return self.texts[self._id_view[number]]

    def predicate(self, name: str) -> int:
        """The number of a predicate or qualifier key, or -1."""
        found = self._predicate_numbers.get(name)
        if found is None:
            text = self.texts.find(name)
            at = bisect_left(self._predicates, text) if text >= 0 else 0
            known = text >= 0 and at < len(self._predicates) and self._predicates[at] == text
            found = self._predicate_numbers[name] = at if known else -1
        return found

    def predicate_name(self, number: int) -> str:
        """The name of a predicate or qualifier key."""
        return self.texts[self._predicates[number]]

    @property
    def folder(self) -> Path | None:
        """The folder of the generation; None in memory."""
        return None if isinstance(self.arrays, MemoryArrays) else self.arrays.path.parent

    @property
    def predicate_count(self) -> int:
        """How many predicates and qualifier keys there are."""
        return len(self._predicates)

    def source_of(self, number: int) -> Source:
        """A source by its number."""
        columns = (self.arrays.get(f"src.{part}") for part in ("name", "location", "format", "content", "terms"))
        # Stores of earlier versions say nothing of the content, or of the terms.
        return Source(*(self.texts[int(column[number])] if len(column) else "" for column in columns))


def make_room(cache: dict[Any, Any]) -> None:
    """Keep a cache of what is quickly worked out again within bounds."""
    if len(cache) > 4096:
        cache.clear()
