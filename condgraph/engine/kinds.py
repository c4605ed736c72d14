"""Infer the types and units of an operator's values from the schema alone, and whether it may warn: if it cannot, no
store is queried.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Protocol

from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Condition, Node, carried
from condgraph.engine.schema import Kinds
from condgraph.engine.values import NO_UNIT, Kind


class GraphKnowledge(Protocol):
    """The parts of a schema that a compiler may use; never the facts."""

    @property
    def sources(self) -> tuple[str, ...]:
        """The names of all sources."""

    def has_relation(self, name: str) -> bool:
        """Return whether a statement with this predicate has an entity as object."""

    def has_entity(self, name: str) -> bool:
        """Return whether some entity or concept has exactly this name."""

    def has_text(self, text: str) -> bool:
        """Return whether the graph contains exactly this text."""

    def has_attribute(self, name: str) -> bool:
        """Return whether a statement with this predicate has a value as object."""

    def attribute_kinds(self, name: str) -> Kinds:
        """Return the types and units of an attribute's values."""

    def qualifier_kinds(self, key: str, predicate: str | None = None) -> Kinds:
        """Return the types and units of a qualifier's values."""


_ENTITIES: Final[Kinds] = {(Kind.ENTITY, NO_UNIT): 1}
_TIMES: Final[Kinds] = {(Kind.TIME, NO_UNIT): 1}
#: The kinds of operators whose values always have the same.
_ALWAYS: Final[dict[str, Kinds]] = {
    "entities": _ENTITIES,
    "times": _TIMES,
    "numbers": {(Kind.QUANTITY, NO_UNIT): 1},
    "texts": {(Kind.TEXT, NO_UNIT): 1},
}
#: The types of values that are, or may name, an entity.
_NAMING: Final = {(Kind.ENTITY, NO_UNIT), (Kind.TEXT, NO_UNIT)}


def kinds_of(node: Node, schema: GraphKnowledge) -> Kinds | None:
    """Return the types and units of an operator's values (for facts: of their objects); None if the schema does not
    tell.
    """
    while node.facets.gives == "carried":
        (node,) = carried(node)
    return _stated(node, schema) if node.facets.gives == "stated" else _ALWAYS.get(node.facets.gives)


def _stated(node: Node, schema: GraphKnowledge) -> Kinds | None:
    if isinstance(node, alg.Qualifiers):
        return None if node.key is None else schema.qualifier_kinds(node.key)
    assert isinstance(node, alg.Scan)
    if node.predicates is None or node.family == "any":
        return None
    if node.family == "relation":
        return _ENTITIES
    return {kind: 1 for name in node.predicates for kind in schema.attribute_kinds(name)}


def condition_of(node: Node) -> Condition:
    """Return the condition of an operator that has one (`Facets.tests`)."""
    condition: Condition = node.condition  # type: ignore[attr-defined]
    return condition


def kinds_tested(node: Node, schema: GraphKnowledge) -> Kinds | None:
    """Return the types and units of the values that an operator's condition is applied to; None if the schema does
    not tell.
    """
    if isinstance(node, alg.WhereQualifier):
        return schema.qualifier_kinds(node.key)
    if node.facets.tests == "validity":
        return _TIMES
    return kinds_of(node.inputs()[0], schema)


def all_comparable(kinds: Iterable[tuple[Kind, str]], wanted: set[tuple[Kind, str]]) -> bool:
    """Return whether all values of these types can be compared, or are unknown."""
    texts = (Kind.TEXT, NO_UNIT) in wanted
    return all(kind in wanted or kind[0] is Kind.UNKNOWN or (texts and kind[0] is Kind.TEXT) for kind in kinds)


def may_warn(node: Node, schema: GraphKnowledge, empty: bool) -> bool:
    """Return whether an operator may give a warning (`Facets.warns`), in a plan whose answer is `empty` or not."""
    warns = node.facets.warns
    if warns.when in ("never", "always"):
        return warns.when == "always"
    field = getattr(node, warns.of)
    if isinstance(field, alg.Constants) and not warns.constants:
        return empty
    kinds = kinds_of(field, schema) if isinstance(field, Node) else schema.attribute_kinds(field)
    if kinds is not None and warns.when == "empty":
        return empty
    if kinds is not None and warns.when == "nameless" and _NAMING.issuperset(kinds):
        return False
    uniform = kinds is not None and len(kinds) == 1 and next(iter(kinds))[0] in (Kind.QUANTITY, Kind.TIME)
    return empty or not uniform
