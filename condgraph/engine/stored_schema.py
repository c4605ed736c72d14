"""What lowering knows of a graph on a server: the schema as it is kept with the graph there, written and read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from condgraph.engine.schema import Kinds
from condgraph.engine.values import Kind

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot


def describe_schema(snapshot: Snapshot) -> dict[str, Any]:
    """The schema as it is kept with the graph: predicates with their types, qualifier keys, concepts, sources."""
    schema = snapshot.schema

    def kinds(found: Any) -> list[list[Any]]:
        return [[int(kind), unit, count] for (kind, unit), count in found.items()]

    return {
        "relations": list(schema.relations),
        "attributes": {name: kinds(schema.attribute_kinds(name)) for name in schema.attributes},
        "qualifiers": {name: kinds(schema.qualifier_kinds(name)) for name in schema.qualifiers},
        "concepts": list(schema.concepts),
        "sources": list(schema.sources),
    }


class StoredSchema:
    """The questions of `engine.schema.Schema`, answered from what `describe_schema` wrote.

    Names of entities are not kept: a query looks them up itself, and an empty answer is looked into afterwards.
    """

    def __init__(self, found: dict[str, Any]) -> None:
        self.relations: tuple[str, ...] = tuple(found["relations"])
        self.attributes: tuple[str, ...] = tuple(found["attributes"])
        self.qualifiers: tuple[str, ...] = tuple(found["qualifiers"])
        self.concepts: tuple[str, ...] = tuple(found["concepts"])
        self.sources: tuple[str, ...] = tuple(found["sources"])
        self._attributes = {name: _kinds(kinds) for name, kinds in found["attributes"].items()}
        self._qualifiers = {name: _kinds(kinds) for name, kinds in found["qualifiers"].items()}
        self._relations, self._concepts = frozenset(self.relations), frozenset(self.concepts)

    def has_relation(self, name: str) -> bool:
        """Some statement with this predicate has an entity as object."""
        return name in self._relations

    def has_attribute(self, name: str) -> bool:
        """Some statement with this predicate has a value as object."""
        return name in self._attributes

    def has_qualifier(self, key: str, predicate: str | None = None) -> bool:
        """Some statement has a qualifier of this key."""
        return key in self._qualifiers

    def has_concept(self, name: str) -> bool:
        """Some concept has exactly this name."""
        return name in self._concepts

    def has_entity(self, name: str) -> bool:
        """Not known here; the query finds out."""
        return True

    def has_id(self, ident: str) -> bool:
        """Not known here."""
        return False

    def nearest_entities(self, name: str, *, most: int = 5) -> list[str]:
        """Not known here."""
        return []

    def attribute_kinds(self, name: str) -> Kinds:
        """The types and units of an attribute's values, with how many there are."""
        return self._attributes.get(name, {})

    def qualifier_kinds(self, key: str, predicate: str | None = None) -> Kinds:
        """The types and units of a qualifier's values."""
        return self._qualifiers.get(key, {})


def _kinds(found: list[list[Any]]) -> Kinds:
    return {(Kind(kind), unit): count for kind, unit, count in found}
