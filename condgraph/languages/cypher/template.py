"""Cypher queries with parameters, which Cypher has itself: `$name` stands for a value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from condgraph.languages.cypher import tree
from condgraph.languages.cypher.parse import parse
from condgraph.languages.parameters import BoundQuery, GivenText, in_order


class CypherTemplate:
    """A query that was read. Reading one raises as `parse`."""

    language: ClassVar[str] = "cypher"

    def __init__(self, program: Any) -> None:
        self._text = program if isinstance(program, str) else str(program)
        parts = tree.within(parse(self._text).query)
        self.parameters = in_order([part.name for part in parts if isinstance(part, tree.Parameter)])
        self.entities: frozenset[str] = frozenset()

    def bind(self, values: Mapping[str, GivenText]) -> BoundQuery:
        """The query with these values."""
        return BoundQuery(self._text, {name: value.value for name, value in values.items()})
