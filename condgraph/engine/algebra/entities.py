"""Operators that give a set of entities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from condgraph.engine.algebra.facets import ALWAYS, NEVER, Facets, Warns
from condgraph.engine.algebra.needs import EACH, Needs
from condgraph.engine.algebra.sorts import ENTITY_KINDS, Direction, Entities, Facts, Node, Values
from condgraph.engine.facts import EntityKind


@dataclass(frozen=True, slots=True)
class AllEntities(Entities):
    """All entities of these kinds; of a source that is named its rows and what its statements are
    about, or with `own` its rows alone.
    """

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(carries=(), strict=(), gives="entities", reads="entities", warns=NEVER)
    kinds: tuple[EntityKind, ...] = ENTITY_KINDS
    source: str | None = None
    own: bool = False


@dataclass(frozen=True, slots=True)
class ById(Entities):
    """The entities of these ids."""

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(carries=(), strict=(), gives="entities", reads="entities", warns=NEVER)
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ByName(Entities):
    """All entities and concepts that have exactly one of these names."""

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(carries=(), strict=(), gives="entities", reads="entities", warns=NEVER)
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Members(Entities):
    """The entities (no concepts) in any of the concepts, closed under subclass."""

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(carries=(), strict=("concepts",), gives="entities", reads="members", warns=NEVER)
    concepts: Entities

    def inputs(self) -> tuple[Node, ...]:
        return (self.concepts,)


@dataclass(frozen=True, slots=True)
class Union(Entities):
    """Entities in any of the parts."""

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(carries=("parts",), strict=(), gives="entities", reads="nothing", warns=NEVER)
    parts: tuple[Entities, ...]

    def inputs(self) -> tuple[Node, ...]:
        return self.parts


@dataclass(frozen=True, slots=True)
class Intersect(Entities):
    """Entities in all of the parts."""

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(carries=("parts",), strict=("parts",), gives="entities", reads="nothing", warns=NEVER)
    parts: tuple[Entities, ...]

    def inputs(self) -> tuple[Node, ...]:
        return self.parts


@dataclass(frozen=True, slots=True)
class Minus(Entities):
    """Entities of `left` that are not in `right`."""

    needs: ClassVar[Needs] = Needs(whole=("right",))
    facets: ClassVar[Facets] = Facets(carries=("left",), strict=("left",), gives="entities", reads="nothing", warns=NEVER)
    left: Entities
    right: Entities

    def inputs(self) -> tuple[Node, ...]:
        return (self.left, self.right)


@dataclass(frozen=True, slots=True)
class Neighbour(Entities):
    """The table rows `distance` after (negative: before) these rows, in the order of their source."""

    needs: ClassVar[Needs] = Needs(graph=True)
    facets: ClassVar[Facets] = Facets(carries=(), strict=("of",), gives="entities", reads="entities", warns=ALWAYS)
    of: Entities
    distance: int

    def inputs(self) -> tuple[Node, ...]:
        return (self.of,)


@dataclass(frozen=True, slots=True)
class Reached(Entities):
    """The distinct ends that the facts reached."""

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(carries=(), strict=("facts",), gives="entities", reads="nothing", warns=NEVER)
    facts: Facts

    def inputs(self) -> tuple[Node, ...]:
        return (self.facts,)


@dataclass(frozen=True, slots=True)
class SubjectsOf(Entities):
    """The subjects of the statements that carry the values (of a name: the entity itself)."""

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(carries=(), strict=("values",), gives="entities", reads="nothing", warns=NEVER)
    values: Values

    def inputs(self) -> tuple[Node, ...]:
        return (self.values,)


@dataclass(frozen=True, slots=True)
class Referents(Entities):
    """The entities that the values are, or whose name they are."""

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(
        carries=(), strict=("values",), gives="entities", reads="entities", warns=Warns("nameless", "values")
    )
    values: Values

    def inputs(self) -> tuple[Node, ...]:
        return (self.values,)


@dataclass(frozen=True, slots=True)
class SameName(Entities):
    """All entities and concepts that have the name of one of these, themselves included: how
    sources meet that share no ids.
    """

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(carries=(), strict=("of",), gives="entities", reads="entities", warns=NEVER)
    of: Entities

    def inputs(self) -> tuple[Node, ...]:
        return (self.of,)


@dataclass(frozen=True, slots=True)
class ArgExtreme(Entities):
    """The entities whose largest (smallest) value of `key` is the best among them; all ties.

    Numbers or times: those of the most frequent type and unit compete, the answer warns of the
    others.
    """

    needs: ClassVar[Needs] = Needs(whole=("of",), graph=True)
    facets: ClassVar[Facets] = Facets(
        carries=("of",), strict=("of",), gives="entities", reads="statements", warns=Warns("mixed", "key")
    )
    of: Entities
    key: str
    direction: Direction

    def inputs(self) -> tuple[Node, ...]:
        return (self.of,)
