"""A graph in Neo4j: connect, load, lower against its schema, run one query, read its rows as an answer."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from condgraph.cypher.compile import Compiled, compile_plan
from condgraph.cypher.layout import FORMAT, predicate_of, value_of
from condgraph.cypher.load import write_snapshot
from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Node, postorder
from condgraph.engine.errors import (
    DeadlineError,
    MissingExtraError,
    StoreError,
    StoreMissingError,
    StoreVersionError,
    UnknownNameError,
)
from condgraph.engine.execute.bags import order_key
from condgraph.engine.facts import Entity
from condgraph.engine.languages import detect
from condgraph.engine.languages import lower as lower_program
from condgraph.engine.passes import optimise
from condgraph.engine.schema import Kinds
from condgraph.engine.values import Kind, text_of

if TYPE_CHECKING:
    import neo4j

    from condgraph.engine.snapshot.snapshot import Snapshot

SCHEMES: Final = ("neo4j", "neo4j+s", "neo4j+ssc", "bolt", "bolt+s", "bolt+ssc")


class StoredSchema:
    """What lowering asks of a graph on a server, read from its `:Graph` node. Names of entities are looked up by the query itself."""

    def __init__(self, found: dict[str, Any]) -> None:
        self.relations: tuple[str, ...] = tuple(found["relations"])
        self.attributes: tuple[str, ...] = tuple(found["attributes"])
        self.qualifiers: tuple[str, ...] = tuple(found["qualifiers"])
        self.concepts: tuple[str, ...] = tuple(found["concepts"])
        self.sources: tuple[str, ...] = tuple(found["sources"])
        self._attributes = {name: _kinds(kinds) for name, kinds in found["attributes"].items()}
        self._qualifiers = {name: _kinds(kinds) for name, kinds in found["qualifiers"].items()}
        self._relations, self._concepts = set(self.relations), set(self.concepts)

    def has_relation(self, name: str) -> bool:
        return name in self._relations

    def has_attribute(self, name: str) -> bool:
        return name in self._attributes

    def has_qualifier(self, key: str, predicate: str | None = None) -> bool:
        return key in self._qualifiers

    def has_concept(self, name: str) -> bool:
        return name in self._concepts

    def has_entity(self, name: str) -> bool:
        return True

    def has_id(self, ident: str) -> bool:
        return False

    def attribute_kinds(self, name: str) -> Kinds:
        return self._attributes.get(name, {})

    def qualifier_kinds(self, key: str, predicate: str | None = None) -> Kinds:
        return self._qualifiers.get(key, {})


def _kinds(found: list[list[Any]]) -> Kinds:
    return {(Kind(kind), unit): count for kind, unit, count in found}
