"""Intersections within intersections become one, and "every entity" drops out where the rest are
entities anyway.

Execution starts an intersection with its smallest part and looks the others up, so a concept that
stands outside is met as early as one that stands inside.

>>> from condgraph.engine.algebra import AllEntities, ByName, Intersect, Members
>>> human, French, Ann = Members(ByName(("human",))), Members(ByName(("French",))), ByName(("Ann",))
>>> flatten(Intersect((Intersect((Ann, human)), French))) == Intersect((Ann, human, French))
True
>>> flatten(Intersect((AllEntities(), human))) == human
True
"""

from __future__ import annotations

from condgraph.engine.algebra import AllEntities, Entities, Intersect, Members, Node, intersect
from condgraph.engine.passes.rewrite import rewrite


def applies(order: list[Node]) -> bool:
    """Some intersection has another one, or every entity, as a part."""
    for node in order:
        if type(node) is Intersect:
            for part in node.parts:
                if type(part) is Intersect or type(part) is AllEntities:
                    return True
    return False


def flatten(plan: Node) -> Node:
    """The same plan with flat intersections."""
    return rewrite(plan, _rule)


def _rule(node: Node) -> Node:
    if not isinstance(node, Intersect):
        return node
    parts = list(node.parts)
    if any(isinstance(part, Members) or (isinstance(part, Intersect) and _holds_members(part)) for part in parts):
        parts = [part for part in parts if not (isinstance(part, AllEntities) and part == AllEntities())]
    elif not any(isinstance(part, Intersect) for part in parts):
        return node
    return intersect(*parts)


def _holds_members(part: Entities) -> bool:
    return isinstance(part, Intersect) and any(isinstance(inner, Members) for inner in part.parts)
