"""Constructors that normalise, and refuse nonsense; and the walk over a plan."""

from __future__ import annotations

from condgraph.engine.algebra.entities import Intersect, Reached, Union
from condgraph.engine.algebra.sorts import Entities, Facts, Node, Test
from condgraph.engine.algebra.tests import AnyOf
from condgraph.engine.errors import PlanError


def union(*parts: Entities) -> Entities:
    """Union, flattened, equal parts once; at least one part."""
    return _set_of(Union, parts)


def intersect(*parts: Entities) -> Entities:
    """Intersection, flattened, equal parts once; at least one part."""
    return _set_of(Intersect, parts)


def _set_of(kind: type[Union] | type[Intersect], parts: tuple[Entities, ...]) -> Entities:
    flat: list[Entities] = []
    for part in parts:
        if isinstance(part, kind):
            flat.extend(inner for inner in part.parts if not _holds(flat, inner))
        elif not _holds(flat, part):
            flat.append(part)
    if not flat:
        raise PlanError(f"{kind.__name__.lower()} of nothing")
    return flat[0] if len(flat) == 1 else kind(tuple(flat))


def _holds(parts: list[Entities], part: Entities) -> bool:
    # By identity: comparing deep trees by value costs more than the part that is saved.
    return any(part is known for known in parts)


def reached(of: Entities | Facts) -> Entities:
    """A set of entities from either sort."""
    return Reached(of) if isinstance(of, Facts) else of


def any_of(tests: list[Test] | tuple[Test, ...]) -> Test:
    """One test out of the readings of a literal; at least one."""
    if not tests:
        raise PlanError("a test without a reading")
    return tests[0] if len(tests) == 1 else AnyOf(tuple(tests))


def postorder(root: Node) -> list[Node]:
    """Every node below and including `root` once (by identity), inputs before what takes them; no recursion."""
    # A tree (most plans are one) is its own preorder turned round; the bound keeps shared parts from being walked again and again.
    order: list[Node] = []
    stack: list[Node] = [root]
    while stack and len(order) < 64:
        node = stack.pop()
        order.append(node)
        stack.extend(node.inputs())
    if stack:
        return _postorder(root)
    order.reverse()
    if len(set(map(id, order))) == len(order):
        return order
    seen: set[int] = set()
    return [node for node in order if not (id(node) in seen or seen.add(id(node)))]  # type: ignore[func-returns-value]


def _postorder(root: Node) -> list[Node]:
    order: list[Node] = []
    seen: set[int] = set()
    stack: list[Node] = [root]
    while stack:
        node = stack[-1]
        if id(node) in seen:
            stack.pop()
            continue
        waiting = [child for child in node.inputs() if id(child) not in seen]
        if waiting:
            stack.extend(reversed(waiting))
        else:
            seen.add(id(node))
            order.append(stack.pop())
    return order
