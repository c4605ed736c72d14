"""Logical queries with parameters: `?x : exists ?v. award($prize, ?v) and born(?v, ?x)`.

Where a query has parameters, `?x` is a variable and `$prize` a parameter: a name, or, as `<$prize>`,
an id; `$relation(?v, ?x)` is a relation. In BetaE's lists, where all is in quotes, `"$prize"` is a
parameter and `"$$prize"` the name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from condgraph.engine.algebra import remade
from condgraph.languages.logic.formula import Atom, Constant, Query, Typed
from condgraph.languages.logic.structures import is_nested, nested
from condgraph.languages.logic.text import read
from condgraph.languages.parameters import GivenText, Hole, hole_or_text, in_order


class LogicTemplate:
    """The formula of a query. Reading one raises as `read`."""

    language: ClassVar[str] = "logic"

    def __init__(self, program: Any) -> None:
        if isinstance(program, Query) or is_nested(program):
            query = program if isinstance(program, Query) else nested(program)
            query = remade(query, _quoted)
        else:
            query = read(program if isinstance(program, str) else str(program), parameters=True)
        names: list[str] = []
        others: set[str] = set()

        def find(node: Any) -> Any:
            if isinstance(node, (Atom, Typed)):
                relation = node.relation if isinstance(node, Atom) else node.concept
                if isinstance(relation, Hole):
                    names.append(relation)
                    others.add(str(relation))
            if isinstance(node, Constant) and isinstance(node.name, Hole):
                names.append(node.name)
                if node.is_id:
                    others.add(str(node.name))
            return node

        self._query: Query = remade(query, find)
        self.parameters = in_order(names)
        self.entities = frozenset(self.parameters) - others

    def bind(self, values: Mapping[str, GivenText]) -> Query:
        """The formula with these values."""
        found: Query = remade(self._query, lambda node: values[node] if type(node) is Hole else node)
        return found


def _quoted(node: Any) -> Any:
    if isinstance(node, Constant):
        return Constant(hole_or_text(node.name), node.is_id, node.span)
    if isinstance(node, Atom):
        return Atom(hole_or_text(node.relation), remade(node.subject, _quoted), remade(node.object, _quoted), node.span)
    return Typed(hole_or_text(node.concept), remade(node.of, _quoted), node.span) if isinstance(node, Typed) else node
