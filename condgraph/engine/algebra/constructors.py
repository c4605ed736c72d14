"""Constructors that normalise, and refuse nonsense; the walk over a plan, and what of it has to be
whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from condgraph.engine.algebra.conditions import AnyOf
from condgraph.engine.algebra.entities import Intersect, Reached, Union
from condgraph.engine.algebra.sorts import Condition, Entities, Facts, Node
from condgraph.engine.errors import PlanError


def union(*parts: Entities) -> Entities:
    """Union, flattened, equal parts once; at least one part."""
    return _set_of(Union, parts)


def intersect(*parts: Entities) -> Entities:
    """Intersection, flattened, equal parts once; at least one part."""
    return _set_of(Intersect, parts)


def _set_of(kind: type[Union] | type[Intersect], parts: tuple[Entities, ...]) -> Entities:
    # By identity: comparing deep trees by value costs more than the part that is saved.
    flat: dict[int, Entities] = {}
    for part in parts:
        for inner in part.parts if isinstance(part, kind) else (part,):
            flat.setdefault(id(inner), inner)
    if not flat:
        raise PlanError(f"{kind.__name__.lower()} of nothing")
    return kind(tuple(flat.values())) if len(flat) > 1 else next(iter(flat.values()))


def reached(of: Entities | Facts) -> Entities:
    """A set of entities from either sort."""
    return Reached(of) if isinstance(of, Facts) else of


def any_of(conditions: list[Condition] | tuple[Condition, ...]) -> Condition:
    """One test out of the readings of a literal; at least one."""
    if not conditions:
        raise PlanError("a test without a reading")
    return conditions[0] if len(conditions) == 1 else AnyOf(tuple(conditions))


def postorder(root: Node, known: Mapping[int, object] | None = None) -> list[Node]:
    """Every node below and including `root` once (by identity), inputs before what takes them; no
    recursion. Nodes that are `known` by identity are left out, with what is below them.
    """
    if known:
        return _postorder(root, known)
    # A tree (most plans are one) is its own preorder turned round; the bound keeps shared parts
    # from being walked again and again.
    order: list[Node] = []
    stack: list[Node] = [root]
    while stack and len(order) < 64:
        node = stack.pop()
        order.append(node)
        stack.extend(node.inputs())
    if stack:
        return _postorder(root, {})
    order.reverse()
    if len(set(map(id, order))) == len(order):
        return order
    seen: set[int] = set()
    return [node for node in order if not (id(node) in seen or seen.add(id(node)))]  # type: ignore[func-returns-value]


def _postorder(root: Node, known: Mapping[int, object]) -> list[Node]:
    order: list[Node] = []
    seen: set[int] = set()
    stack: list[Node] = [root]
    while stack:
        node = stack[-1]
        if id(node) in seen or id(node) in known:
            stack.pop()
            continue
        waiting = [child for child in node.inputs() if id(child) not in seen and id(child) not in known]
        if waiting:
            stack.extend(reversed(waiting))
        else:
            seen.add(id(node))
            order.append(stack.pop())
    return order


def carried(node: Node) -> list[Node]:
    """The inputs whose entities, statements or values make up the result (`Facets.carries`)."""
    return fields_of(node, node.facets.carries)


def passed(facts: Facts) -> Facts | None:
    """The facts that others are carried on from; None of a scan."""
    found = carried(facts)
    return found[0] if found and isinstance(found[0], Facts) else None


def passing(facts: Facts, inner: Facts) -> Facts:
    """The same facts, carried on from others."""
    (name,) = facts.facets.carries
    return replace(facts, **{name: inner})  # type: ignore[type-var]


def fields_of(node: Node, names: tuple[str, ...]) -> list[Node]:
    """The operators in some fields, in order; a field without any has none."""
    found: list[Node] = []
    for name in names:
        value: Any = getattr(node, name)
        found.extend(part for part in (value if isinstance(value, tuple) else (value,)) if isinstance(part, Node))
    return found


def whole_inputs(node: Node) -> list[Node]:
    """The inputs of which everything counts, and that there is no more; tests included."""
    found: list[Node] = []
    _gather_whole(node, False, found)
    return found


def _gather_whole(record: Node | Condition, within: bool, found: list[Node]) -> None:
    for name in () if not record.inputs() else record.__dataclass_fields__:  # type: ignore[union-attr]
        whole = within or name in record.needs.whole
        value: Any = getattr(record, name)
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, Condition):
                _gather_whole(part, whole, found)
            elif whole and isinstance(part, Node):
                found.append(part)


def monotone(plan: Node) -> bool:
    """Whether more statements can only give more, so that what the answer has is proved by what led
    to it.
    """
    return not any(node.needs.graph or whole_inputs(node) for node in postorder(plan))
