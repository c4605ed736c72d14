"""Nodes and edges of graph patterns in the layout of graphs that condgraph writes.

A search reads the ends of edges as rows, and names from the server's vector index; this adds what it needs to
`cypher.layout.schema`.
"""

from __future__ import annotations

from typing import Final

from condgraph.cypher.layout.schema import CONCEPT, ENTITY, VALUE, CondgraphLayout, type_of
from condgraph.cypher.servers import NEO4J


class PatternLayout(CondgraphLayout):
    """The expressions that read nodes and edges of a pattern."""

    __slots__ = ()

    #: The type of memberships.
    member: Final = "MEMBER_OF"

    def type_of(self, predicate: str) -> str:
        return type_of(predicate)

    def concept(self, c: str) -> str:
        return f"({c}:{CONCEPT})"

    def at(self, e: str, handle: str) -> str:
        """Return the pattern of the entity with an id, given its handle."""
        return f"({e}:{ENTITY} {{graph: $graph, handle: {handle}}})"

    def value(self, v: str) -> str:
        return f"({v}:{VALUE})"

    def is_text(self, v: str) -> str:
        """Return a condition that a value is a text."""
        return f"{v}.kind = 'text'"

    def in_graph(self, x: str) -> str:
        """Return the pattern of any entity of the graph."""
        return f"({x}:{ENTITY} {{graph: $graph}})"

    def is_named(self, v: str, test: str) -> str:
        """Return a condition, answered by the index of texts, that a value is a text whose key passes a test."""
        return f"{v}.graph = $graph AND {self.text_key(v)} {test} AND {self.is_text(v)}"

    def text(self, v: str) -> str:
        """Return a value as printed."""
        return f"{v}.text"

    def text_key(self, v: str) -> str:
        return f"{v}.key"

    def is_stated(self, m: str) -> str:
        """Return a condition that a membership was stated, and does not only follow from a subclass."""
        return f"size({m}.sources) > 0"

    def is_edge(self, r: str) -> str:
        """Return a condition that a relationship is a statement or a stated membership."""
        return f"({self.is_statement(r)} OR (type({r}) = '{self.member}' AND {self.is_stated(r)}))"


#: The layout on Neo4j.
EDGES: Final = PatternLayout(NEO4J)
