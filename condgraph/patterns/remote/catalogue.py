"""The client's copy of the names of a graph on a server, for pricing patterns: ids, names, texts and predicates; and the
edges of a small graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
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
    """The queries that a search sent to the server."""

    queries: int = 0
    rows: int = 0
    #: The queries for edges, in the order they were sent: SPARQL, SQL, and Cypher with its parameters.
    sparql: list[str] = field(default_factory=list)
    sql: list[str] = field(default_factory=list)
    cypher: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    #: Writes Cypher with its parameters.
    pasted: Callable[[str, dict[str, Any]], str] | None = None


class Catalogue:
    """The nodes and predicates of a graph on a server, numbered as in a snapshot: entities by name, then id; texts
    after them.
    """

    def __init__(
        self, entities: Sequence[tuple[str, str, int]], texts: Sequence[str], predicates: Mapping[str, bool],
        *, memberships: bool, values: Mapping[str, Kinds],
    ) -> None:  # fmt: skip
        """`entities` are (id, name, kind); `predicates` tells for each name whether it has edges between nodes;
        `values` lists the types and units of an attribute's values.
        """
        ordered = sorted(entities, key=lambda entity: (entity[1], entity[0]))
        self.ids = [entity[0] for entity in ordered]
        self.names = [entity[1] for entity in ordered]
        self.kinds = np.array([entity[2] for entity in ordered], np.int8)
        self.texts = sorted(texts)
        self.predicates = sorted(predicates)
        self.values = values
        #: Whether each predicate has edges; memberships last.
        self.used = np.array([*(predicates[name] for name in self.predicates), memberships], bool)
        count, size = len(ordered), len(ordered) + len(self.texts)
        rank = np.empty(size, np.int32)
        rank[np.array(sorted(range(count), key=self.ids.__getitem__), np.intp)] = np.arange(count, dtype=np.int32)
        rank[count:] = np.arange(count, size, dtype=np.int32)
        empty = np.empty(0, np.int32)
        self.graph = SearchGraph(np.zeros(size + 1, np.int64), empty, empty, len(self.predicates) + 1, count, rank)
        #: How many searches there were, and the edges if they were copied.
        self.searches = 0
        self.kept: dict[str, Any] = {}
        self._numbers = {ident: number for number, ident in enumerate(self.ids)}

    def is_equal(self, other: Catalogue) -> bool:
        """Return whether both have the same nodes and predicates."""
        own_content, other_content = (
            (
                catalogue.ids,
                catalogue.labels,
                catalogue.kinds.tolist(),
                catalogue.predicates,
                catalogue.used.tolist(),
                catalogue.values,
            )
            for catalogue in (self, other)
        )
        return own_content == other_content

    @property
    def entities(self) -> int:
        """The number of entities; texts are numbered from there."""
        return len(self.ids)

    @property
    def size(self) -> int:
        """The number of nodes."""
        return len(self.ids) + len(self.texts)

    def is_text(self, number: int) -> bool:
        return number >= self.entities

    @cached
    def sorts_alike(self) -> bool:
        """Whether a server that compares texts by UTF-16 code units orders the nodes as by code point."""
        return all(text.isascii() or max(text) < "\ud800" for text in (*self.ids, *self.texts))

    @cached
    def labels(self) -> list[str]:
        """The name or text of every node, by number."""
        return [*self.names, *self.texts]

    @cached
    def predicate_names(self) -> list[str]:
        """The names of all predicates by number, with that of memberships last."""
        return [*self.predicates, INSTANCE_OF]

    @cached
    def predicate_numbers(self) -> dict[str, int]:
        """The numbers of predicates by name, without memberships."""
        return {name: number for number, name in enumerate(self.predicates)}

    @cached
    def concepts(self) -> Numbers:
        """The numbers of all concepts, ascending."""
        return np.flatnonzero(self.kinds == EntityKind.CONCEPT).astype(np.int32)

    @cached
    def _named(self) -> dict[str, list[int]]:
        numbers: dict[str, list[int]] = {}
        for number, name in enumerate(self.labels):
            numbers.setdefault(name, []).append(number)
        return numbers

    @cached
    def _text_numbers(self) -> dict[str, int]:
        return {text: self.entities + position for position, text in enumerate(self.texts)}

    def units(self, name: str) -> list[str]:
        """Return the units of an attribute's quantities."""
        return [unit for kind, unit in self.values.get(name, ()) if kind is Kind.QUANTITY]

    def has_texts(self, number: int) -> bool:
        """Tell whether a predicate has texts as objects; memberships have none."""
        name = self.predicate_names[number]
        return number < len(self.predicates) and any(kind is Kind.TEXT for kind, _ in self.values.get(name, ()))

    def has_times(self, name: str) -> bool:
        return any(kind is Kind.TIME for kind, _ in self.values.get(name, ()))

    def holding(self, condition: Condition) -> NDArray[np.bool_]:
        """Return a mask of the predicates that may have a matching value, by the types and units of their values."""
        mask = np.zeros(len(self.predicates) + 1, bool)
        for number, name in enumerate(self.predicates):
            matches_time = condition.time is not None and self.has_times(name)
            mask[number] = matches_time or bool(condition.in_units(self.units(name)))
        return mask

    def identified(self, ident: str) -> int:
        """Return the node of an entity's id, or -1."""
        return self._numbers.get(ident, -1)

    def text(self, text: str) -> int:
        """Return the node of a text value, or -1."""
        return self._text_numbers.get(text, -1)

    def named(self, name: str) -> list[int]:
        """Return all nodes with this name, texts included."""
        return self._named.get(name, [])

    def expect(self, numbers: Iterable[int]) -> None:
        """Do nothing: the content of every node is here (`NearCatalogue` fetches it)."""

    def value(self, number: int) -> Entity | str:
        """Return the entity or text of a node."""
        if self.is_text(number):
            return self.texts[number - self.entities]
        return Entity(self.ids[number], self.names[number], EntityKind(int(self.kinds[number])))

    def key(self, number: int) -> str:
        """Return the server's key of a node: an entity's id, or the text itself."""
        return self.texts[number - self.entities] if self.is_text(number) else self.ids[number]
