"""Entities, concepts and the rows of tables in the graphs that condgraph writes
(`cypher.layout.schema`), as the compiler asks for them (`cypher.layout.entities`).
"""

from __future__ import annotations

from typing import Any

from condgraph.cypher.layout.base import Layout
from condgraph.cypher.layout.scan import Writing
from condgraph.cypher.layout.schema import CONCEPT, ENTITY, ROW, index_key, predicate_key, text_order, tie_break, value_properties
from condgraph.engine.values import Number, Value


class CondgraphEntities(Layout):
    """Each by its label, with the graph's name, which leads every index."""

    __slots__ = ()

    def parameters(self, graph: str) -> dict[str, Any]:
        """The graph's name, which leads every index."""
        return {"graph": graph}

    # -- values of a program -----------------------------------------------------------------------

    def key(self, text: str) -> str:
        """A text as it is indexed."""
        return index_key(text)

    def handle(self, ident: str) -> str:
        """An id as it is indexed."""
        return index_key(ident)

    def predicate_key(self, name: str) -> str:
        """A predicate as it is indexed."""
        return predicate_key(name)

    def text_order(self, text: str) -> str:
        """A text that UTF-16 orders by code point."""
        return text_order(text)

    def number_order(self, number: Number) -> str:
        """The property `order` of a number."""
        return tie_break(number)

    def given(self, value: Value) -> dict[str, Any]:
        """The properties of a `Value` node."""
        return value_properties(value)

    # -- entities ----------------------------------------------------------------------------------

    def entity(self, e: str) -> tuple[str, str]:
        """By the label, with the graph, which leads the indexes."""
        return f"({e}:{ENTITY})", f"{e}.graph = $graph"

    def named(self, e: str, test: str) -> str:
        """By the index of names."""
        return f"{e}.graph = $graph AND {e}.key {test}"

    def identified(self, e: str, test: str) -> str:
        """By the index of ids."""
        return f"{e}.graph = $graph AND {e}.handle {test}"

    def has_id(self, e: str, ids: str) -> str:
        """By the id as it is."""
        return f"{e}.id IN {ids}"

    def of_kinds(self, e: str, kinds: str) -> str:
        """By the property."""
        return f"{e}.kind IN {kinds}"

    def is_entity(self, o: str) -> str:
        """By the label."""
        return f"{o}:{ENTITY}"

    def id(self, e: str) -> str:
        """The property."""
        return f"{e}.id"

    def name(self, e: str) -> str:
        """The property."""
        return f"{e}.name"

    def name_key(self, e: str) -> str:
        """The name as it is indexed."""
        return f"{e}.key"

    def kind(self, e: str) -> str:
        """The property."""
        return f"{e}.kind"

    def entity_cell(self, e: str) -> str:
        """The node with fields of a value. `held` tells what an answer lists among its entities."""
        return f"{e} {{kind: 'entity', .key, text: {e}.name, .id, .order, .ranks, held: true}}"

    def name_cell(self, e: str) -> str:
        """The same, as a text."""
        return f"{e} {{kind: 'text', .key, text: {e}.name, .id, .order, .ranks, held: true}}"

    def listed(self, e: str) -> str:
        """Most are neither concepts nor rows, and say no more than their ids and names."""
        return f"CASE {e}.kind WHEN 0 THEN [{e}.id, {e}.name] ELSE [{e}.id, {e}.name, {e}.kind, {e}.row] END"

    def described(self, e: str) -> str:
        """The properties."""
        return f"{e} {{.id, .name, .kind, .source, .row}}"

    # -- concepts ----------------------------------------------------------------------------------

    def members(self, writing: Writing, e: str, names: tuple[str, ...]) -> list[str]:
        """From the nodes of the concepts."""
        c = writing.name("c")
        return [f"MATCH ({c}:{CONCEPT}) WHERE {self.named(c, self.one_of(writing, names))}", *self.members_of(writing, e, c)]

    def members_of(self, writing: Writing, e: str, c: str) -> list[str]:
        """Along the memberships, which are closed under subclass."""
        kept = f" WHERE {e}.kind <> 1" if writing.schema.concept_members else ""
        return [f"MATCH ({e}:{ENTITY})-[:MEMBER_OF]->({c}){kept}", f"WITH DISTINCT {e}"]

    def within(self, writing: Writing, e: str, names: tuple[str, ...]) -> tuple[str, list[str]]:
        """By its memberships. Two concepts of a name could give an entity twice, so that only one is
        joined with.
        """
        c = writing.name("c")
        test = self.named(c, self.one_of(writing, names))
        condition = f"EXISTS {{ MATCH ({e})-[:MEMBER_OF]->({c}:{CONCEPT}) WHERE {test} }}"
        if writing.schema.concept_members:
            return f"{e}.kind <> 1 AND {condition}", []
        if len(names) != 1 or names[0] not in writing.schema.single:
            return condition, []
        return condition, [f"MATCH ({c}:{CONCEPT}) WHERE {test}", f"MATCH ({e})-[:MEMBER_OF]->({c})"]

    # -- tables ------------------------------------------------------------------------------------

    def rows(self, e: str, source: str) -> tuple[str, str]:
        """By the label, in the order of the index."""
        return f"({e}:{ROW})", f"{e}.graph = $graph AND {e}.source = {source} AND {e}.row IS NOT NULL"

    def by_row(self, e: str) -> str:
        """By its statistics the planner may go through all rows of all tables."""
        return f" USING INDEX SEEK {e}:{ROW}(graph, source, row)"

    def row(self, e: str) -> str:
        """The property."""
        return f"{e}.row"

    def source(self, e: str) -> str:
        """The property."""
        return f"{e}.source"

    def row_cell(self, e: str) -> str:
        """A quantity without a unit."""
        return f"{{kind: 'quantity', number: toFloat({e}.row), unit: '1', text: toString({e}.row)}}"
