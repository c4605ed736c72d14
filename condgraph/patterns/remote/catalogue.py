"""What the client knows of a graph on a server, to price patterns: ids, names, texts, predicates,
and no statement.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.bounds import cached
from condgraph.engine.facts import Entity, EntityKind
from condgraph.engine.schema import Kinds
from condgraph.engine.values import Kind
from condgraph.languages.pattern.pattern import Condition
from condgraph.patterns.graph import Numbers, SearchGraph
from condgraph.patterns.result import INSTANCE_OF


@dataclass(slots=True)
class Tally:
    """What a search asked of the server."""

    queries: int = 0
    rows: int = 0
    texts: list[str] = field(default_factory=list)
    #: Joins whose texts have parameters, in the order they were asked: text and parameters.
    joins: list[tuple[str, dict[str, Any]]] = field(default_factory=list)


class Catalogue:
    """The nodes and predicates of a graph on a server, numbered as in a snapshot of it: entities by
    name, then id; texts behind.
    """

    def __init__(
        self, entities: Sequence[tuple[str, str, int]], texts: Sequence[str], predicates: Mapping[str, bool],
        *, memberships: bool, values: Mapping[str, Kinds],
    ) -> None:  # fmt: skip
        """`entities` are (id, name, kind); `predicates` says of each whether it has edges between
        nodes; `values` are the types and units of the values of attributes.
        """
        ordered = sorted(entities, key=lambda one: (one[1], one[0]))
        self.ids = [one[0] for one in ordered]
        self.names = [one[1] for one in ordered]
        self.kinds = np.array([one[2] for one in ordered], np.int8)
        self.texts = sorted(texts)
        self.predicates = sorted(predicates)
        self.values = values
        #: Which predicates have edges; that of memberships last.
        self.used = np.array([*(predicates[name] for name in self.predicates), memberships], bool)
        count, size = len(ordered), len(ordered) + len(self.texts)
        rank = np.empty(size, np.int32)
        rank[np.array(sorted(range(count), key=self.ids.__getitem__), np.intp)] = np.arange(count, dtype=np.int32)
        rank[count:] = np.arange(count, size, dtype=np.int32)
        empty = np.empty(0, np.int32)
        self.graph = SearchGraph(np.zeros(size + 1, np.int64), empty, empty, len(self.predicates) + 1, count, rank)
        self._numbers = {ident: number for number, ident in enumerate(self.ids)}

    def is_equal(self, other: Catalogue) -> bool:
        """Whether both know the same nodes and predicates."""
        mine, theirs = (
            (one.ids, one.labels, one.kinds.tolist(), one.predicates, one.used.tolist(), one.values) for one in (self, other)
        )
        return mine == theirs

    @property
    def entities(self) -> int:
        """How many nodes are entities; texts are numbered from there."""
        return len(self.ids)

    @property
    def size(self) -> int:
        """How many nodes there are."""
        return len(self.ids) + len(self.texts)

    def is_text(self, number: int) -> bool:
        """Whether a node is a text."""
        return number >= self.entities

    @cached
    def sorts_alike(self) -> bool:
        """Whether a server that compares texts by UTF-16 has the nodes in their order."""
        return all(text.isascii() or max(text) < "\ud800" for text in (*self.ids, *self.texts))

    @cached
    def labels(self) -> list[str]:
        """The text of every node."""
        return [*self.names, *self.texts]

    @cached
    def predicate_names(self) -> list[str]:
        """The names of all predicates in the order of their numbers, the one of memberships last."""
        return [*self.predicates, INSTANCE_OF]

    @cached
    def predicate_numbers(self) -> dict[str, int]:
        """The numbers of predicates by name, but for that of memberships."""
        return {name: number for number, name in enumerate(self.predicates)}

    @cached
    def concepts(self) -> Numbers:
        """All concepts."""
        return np.flatnonzero(self.kinds == EntityKind.CONCEPT).astype(np.int32)

    @cached
    def _named(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for number, name in enumerate(self.labels):
            found.setdefault(name, []).append(number)
        return found

    @cached
    def _text_numbers(self) -> dict[str, int]:
        return {text: self.entities + place for place, text in enumerate(self.texts)}

    def units(self, name: str) -> list[str]:
        """The units of the numbers that an attribute has."""
        return [unit for kind, unit in self.values.get(name, ()) if kind is Kind.QUANTITY]

    def has_times(self, name: str) -> bool:
        """Whether an attribute has times."""
        return any(kind is Kind.TIME for kind, _ in self.values.get(name, ()))

    def holding(self, condition: Condition) -> NDArray[np.bool_]:
        """Which predicates may have such a value, by the types and units of their values."""
        found = np.zeros(len(self.predicates) + 1, bool)
        for number, name in enumerate(self.predicates):
            timed = condition.time is not None and self.has_times(name)
            found[number] = timed or bool(condition.in_units(self.units(name)))
        return found

    def identified(self, ident: str) -> int:
        """The node of an entity's id, or -1."""
        return self._numbers.get(ident, -1)

    def text(self, text: str) -> int:
        """The node of a text value, or -1."""
        return self._text_numbers.get(text, -1)

    def named(self, name: str) -> list[int]:
        """All nodes of this name, texts included."""
        return self._named.get(name, [])

    def expect(self, numbers: Iterable[int]) -> None:
        """Be ready to say what these nodes are."""

    def value(self, number: int) -> Entity | str:
        """What a node is."""
        if self.is_text(number):
            return self.texts[number - self.entities]
        return Entity(self.ids[number], self.names[number], EntityKind(int(self.kinds[number])))

    def key(self, number: int) -> str:
        """What a server knows a node by: the id of an entity, a text itself."""
        return self.texts[number - self.entities] if self.is_text(number) else self.ids[number]
