"""The query computation tree of a logical query (QTO, section 3.1).

Its root is the answer, its leaves are constants, and each node is the set of values of one variable.
Nodes are compared by identity: two equal branches are still two.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from condgraph.languages.logic.formula import Span


@dataclass(frozen=True, slots=True, eq=False)
class Anchor:
    """The entities of a name, or the entity of an id."""

    name: str
    is_id: bool = False
    span: Span | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Anything:
    """Every node of the graph: an unrestricted variable."""


@dataclass(frozen=True, slots=True, eq=False)
class OfType:
    """The members of a concept."""

    concept: str
    span: Span | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Projection:
    """The entities that a relation reaches from the values of `of` (type III, Eq. 7 and 8).

    `inverse` follows it from object to subject. With `anti`, the entities that it does not reach from
    some value (type IV, Eq. 9 and 10). `variable` is the query's variable for the values of `of`, None
    for a constant.
    """

    relation: str
    of: Tree
    inverse: bool = False
    anti: bool = False
    variable: str | None = None
    span: Span | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Intersection:
    """The intersection of all parts (type I, Eq. 5)."""

    parts: tuple[Tree, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Union:
    """The union of the parts (type II, Eq. 6)."""

    parts: tuple[Tree, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Complement:
    """The complement of a part: `not` before an atom, a type, or an `exists`."""

    part: Tree


Tree: TypeAlias = Anchor | Anything | OfType | Projection | Intersection | Union | Complement


def children(node: Tree) -> tuple[Tree, ...]:
    """Return the inputs of a node."""
    if isinstance(node, Projection):
        return (node.of,)
    if isinstance(node, (Intersection, Union)):
        return node.parts
    return (node.part,) if isinstance(node, Complement) else ()


def walk(node: Tree) -> Iterator[Tree]:
    """Yield every node, inputs first."""
    for child in children(node):
        yield from walk(child)
    yield node


def bounded(node: Tree) -> bool:
    """Whether the values of a node are named by the query, rather than only excluded."""
    if isinstance(node, Intersection):
        return any(map(bounded, node.parts))
    if isinstance(node, Union):
        return all(map(bounded, node.parts))
    if isinstance(node, Projection):
        return not node.anti
    return isinstance(node, (Anchor, OfType))


def negates(node: Tree) -> bool:
    """Whether the tree has a negation."""
    return any(isinstance(part, Complement) or (isinstance(part, Projection) and part.anti) for part in walk(node))
