"""Operators that give a set of entities."""

from __future__ import annotations

from dataclasses import dataclass

from condgraph.engine.algebra.sorts import ENTITY_KINDS, Direction, Entities, Facts, Node, Values
from condgraph.engine.facts import EntityKind


@dataclass(frozen=True, slots=True)
class Every(Entities):
    """All entities of these kinds; of one source where it is named."""

    kinds: tuple[EntityKind, ...] = ENTITY_KINDS
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Known(Entities):
    """The entities of these ids."""

    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Named(Entities):
    """All entities and concepts that have exactly one of these names."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Members(Entities):
    """The entities (no concepts) in any of the concepts, closed under subclass."""

    concepts: Entities

    def inputs(self) -> tuple[Node, ...]:
        return (self.concepts,)


@dataclass(frozen=True, slots=True)
class Union(Entities):
    """Entities in any of the parts."""

    parts: tuple[Entities, ...]

    def inputs(self) -> tuple[Node, ...]:
        return self.parts


@dataclass(frozen=True, slots=True)
class Intersect(Entities):
    """Entities in all of the parts."""

    parts: tuple[Entities, ...]

    def inputs(self) -> tuple[Node, ...]:
        return self.parts


@dataclass(frozen=True, slots=True)
class Minus(Entities):
    """Entities of `left` that are not in `right`."""

    left: Entities
    right: Entities

    def inputs(self) -> tuple[Node, ...]:
        return (self.left, self.right)


@dataclass(frozen=True, slots=True)
class Neighbour(Entities):
    """The table rows `distance` after (negative: before) these rows, in the order of their source."""

    of: Entities
    distance: int

    def inputs(self) -> tuple[Node, ...]:
        return (self.of,)


@dataclass(frozen=True, slots=True)
class Reached(Entities):
    """The distinct ends that the facts reached."""

    facts: Facts

    def inputs(self) -> tuple[Node, ...]:
        return (self.facts,)


@dataclass(frozen=True, slots=True)
class Holders(Entities):
    """The subjects of the statements that carry the values (of a name: the entity itself)."""

    values: Values

    def inputs(self) -> tuple[Node, ...]:
        return (self.values,)


@dataclass(frozen=True, slots=True)
class Referents(Entities):
    """The entities that the values are, or whose name they are."""

    values: Values

    def inputs(self) -> tuple[Node, ...]:
        return (self.values,)


@dataclass(frozen=True, slots=True)
class Namesakes(Entities):
    """All entities and concepts that have the name of one of these, themselves included: how sources meet that share no ids."""

    of: Entities

    def inputs(self) -> tuple[Node, ...]:
        return (self.of,)


@dataclass(frozen=True, slots=True)
class Best(Entities):
    """The entities whose largest (smallest) value of `key` is the best among them; all ties.

    Numbers or times: those of the most frequent type and unit compete, the answer warns of the others.
    """

    of: Entities
    key: str
    direction: Direction

    def inputs(self) -> tuple[Node, ...]:
        return (self.of,)
