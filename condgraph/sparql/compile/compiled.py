"""A compiled query, and which operators become patterns of one as a whole."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Node, postorder
from condgraph.engine.algebra.tables import given
from condgraph.sparql.compile.conditions import supports_test
from condgraph.sparql.compile.entities import ENTITIES
from condgraph.sparql.compile.facts import FACTS

#: What the rows of a query are: entities (with names, where the graph is elsewhere), entities with
#: what they are ordered by (those that tie with the first count), one row with all that tie,
#: values, predicates, a count, a truth value, or gathered triples.
Shape: TypeAlias = Literal["entities", "best", "tied", "values", "predicates", "count", "truth", "gathered"]


#: The operators that are said as patterns, by name.
PATTERNS: Final = given(ENTITIES) | given(FACTS)


@dataclass(frozen=True, slots=True)
class Compiled:
    """A query and what its rows are. `leaves` are the operators whose results a gathered answer
    starts from.
    """

    text: str
    shape: Shape
    leaves: tuple[Node, ...] = field(default=())


def native(node: Node) -> bool:
    """Whether everything below and including an operator is said as patterns."""
    return all(_native_one(one) for one in postorder(node))


def _native_one(node: Node) -> bool:
    if isinstance(node, (alg.Where, alg.WhereQualifier, alg.WhereValidity)):
        return supports_test(node.condition)
    return said(node)


def said(node: Node) -> bool:
    """Whether there are patterns for operators of this type."""
    return type(node).__name__ in PATTERNS
