"""The query computation tree of a logical query (QTO, section 3.1): its root is the answer, its
leaves are constants, and every node is the set of values that one variable may have.

A node is known by its identity: two branches that say the same are two branches.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from condgraph.languages.logic.formula import Span


@dataclass(frozen=True, slots=True, eq=False)
class Anchor:
    """The entities of a name, or the one of an id."""

    name: str
    is_id: bool = False
    span: Span | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Anything:
    """Every node of the graph: a variable that nothing else is said of."""


@dataclass(frozen=True, slots=True, eq=False)
class OfType:
    """The members of a concept."""

    concept: str
    span: Span | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Projection:
    """What a relation leads to from the values of `of` (type III, Eq. 7 and 8); `inverse` follows
    it from object to subject.

    With `anti` the relation does not lead there from one of them (type IV, Eq. 9 and 10).
    `variable` is what the values of `of` are called in the query, None for a constant.
    """

    relation: str
    of: Tree
    inverse: bool = False
    anti: bool = False
    variable: str | None = None
    span: Span | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Intersection:
    """What all parts have (type I, Eq. 5)."""

    parts: tuple[Tree, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Union:
    """What some part has (type II, Eq. 6)."""

    parts: tuple[Tree, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Complement:
    """What the part does not have: `not` before an atom, a type, or an `exists`."""

    part: Tree


Tree: TypeAlias = Anchor | Anything | OfType | Projection | Intersection | Union | Complement


def children(node: Tree) -> tuple[Tree, ...]:
    """The nodes that a node is made of."""
    if isinstance(node, Projection):
        return (node.of,)
    if isinstance(node, (Intersection, Union)):
        return node.parts
    return (node.part,) if isinstance(node, Complement) else ()


def walk(node: Tree) -> Iterator[Tree]:
    """Every node, inputs before what takes them."""
    for child in children(node):
        yield from walk(child)
    yield node


def bounded(node: Tree) -> bool:
    """Whether the values of a node are named by what the query says, rather than by what it leaves
    out.
    """
    if isinstance(node, Intersection):
        return any(map(bounded, node.parts))
    if isinstance(node, Union):
        return all(map(bounded, node.parts))
    if isinstance(node, Projection):
        return not node.anti
    return isinstance(node, (Anchor, OfType))


def negates(node: Tree) -> bool:
    """Whether there is a negation in the tree."""
    return any(isinstance(one, Complement) or (isinstance(one, Projection) and one.anti) for one in walk(node))
