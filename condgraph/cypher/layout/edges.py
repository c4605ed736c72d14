"""The nodes and edges of graph patterns in the layout of the graphs that condgraph writes.

A search asks for the ends of edges as rows, and for names by the vector index of the server; this is
what it needs beside `cypher.layout.schema`.
"""

from __future__ import annotations

from typing import Final

from condgraph.cypher.layout.schema import CONCEPT, ENTITY, VALUE, CondgraphLayout, type_of
from condgraph.cypher.servers import NEO4J


class PatternLayout(CondgraphLayout):
    """How the nodes and edges of a pattern are reached."""

    __slots__ = ()

    #: The type of memberships.
    member: Final = "MEMBER_OF"

    def type_of(self, predicate: str) -> str:
        """The type of the statements of a predicate."""
        return type_of(predicate)

    def concept(self, c: str) -> str:
        """The pattern of a concept."""
        return f"({c}:{CONCEPT})"

    def at(self, e: str, handle: str) -> str:
        """The pattern of the entity of an id, by its handle."""
        return f"({e}:{ENTITY} {{graph: $graph, handle: {handle}}})"

    def value(self, v: str) -> str:
        """The pattern of a value."""
        return f"({v}:{VALUE})"

    def is_text(self, v: str) -> str:
        """A condition: a value is a text."""
        return f"{v}.kind = 'text'"

    def in_graph(self, x: str) -> str:
        """The pattern of an entity of the graph, whatever it is called."""
        return f"({x}:{ENTITY} {{graph: $graph}})"

    def is_named(self, v: str, test: str) -> str:
        """A condition that the index of texts answers: a value is a text under a test of its key."""
        return f"{v}.graph = $graph AND {self.text_key(v)} {test} AND {self.is_text(v)}"

    def text(self, v: str) -> str:
        """A value as a user reads it."""
        return f"{v}.text"

    def text_key(self, v: str) -> str:
        """What a text is known by."""
        return f"{v}.key"

    def is_stated(self, m: str) -> str:
        """A condition: a membership as it was stated, and not by a subclass alone."""
        return f"size({m}.sources) > 0"

    def is_edge(self, r: str) -> str:
        """A condition: a statement, or a membership as it was stated."""
        return f"({self.is_statement(r)} OR (type({r}) = '{self.member}' AND {self.is_stated(r)}))"


#: The one there is.
EDGES: Final = PatternLayout(NEO4J)
