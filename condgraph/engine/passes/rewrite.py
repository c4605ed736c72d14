"""Rebuilding a plan bottom up, shared by the passes; what does not change stays the same object."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import fields
from typing import Any

from condgraph.engine.algebra import Condition, Node, postorder
from condgraph.engine.pieces import watched


def rewrite(plan: Node, rule: Callable[[Node], Node]) -> Node:
    """Apply a rule to every operator, inputs first. A shared operator is rewritten once and stays
    shared.
    """
    done: dict[int, Node] = {}
    for node in watched(postorder(plan)):
        fresh = node
        for child in node.inputs():
            if done[id(child)] is not child:
                fresh = rebuild(node, done)
                break
        done[id(node)] = rule(fresh)
    return done[id(plan)]


def names(record: Any) -> tuple[str, ...]:
    """The fields of an operator or a test, in order."""
    found = _NAMES.get(type(record))
    if found is None:
        found = _NAMES[type(record)] = tuple(part.name for part in fields(record))
    return found


#: By type; there are as many as the algebra has.
_NAMES: dict[type[Any], tuple[str, ...]] = {}


def rebuild(node: Any, done: dict[int, Node]) -> Any:
    """The same record (an operator or a test) with its inputs replaced."""
    values = [getattr(node, name) for name in names(node)]
    fresh = [_replaced(value, done) for value in values]
    return type(node)(*fresh) if any(a is not b for a, b in zip(fresh, values, strict=True)) else node


def _replaced(value: Any, done: dict[int, Node]) -> Any:
    if isinstance(value, Node):
        return done.get(id(value), value)
    if isinstance(value, Condition):
        return rebuild(value, done) if value.inputs() else value
    if isinstance(value, tuple) and value and isinstance(value[0], (Node, Condition)):
        fresh = tuple([_replaced(part, done) for part in value])
        return fresh if any(a is not b for a, b in zip(fresh, value, strict=True)) else value
    return value


def mark(value: Any) -> Hashable:
    """What two operators have in common exactly if they are equal, where their inputs are the same
    objects.

    Looking at one level instead of the whole tree below keeps a pass linear.
    """
    return (type(value), *[_marked(getattr(value, name)) for name in names(value)])


def _marked(value: Any) -> Hashable:
    if isinstance(value, Node):
        return id(value)
    if isinstance(value, Condition):
        return mark(value) if value.inputs() else value
    if isinstance(value, tuple) and value and isinstance(value[0], (Node, Condition)):
        return tuple([_marked(part) for part in value])
    return value  # type: ignore[no-any-return]
