"""Rebuilding a plan bottom up, shared by the passes; what does not change stays the same object."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

from condgraph.engine.algebra import Node, Test, postorder


def rewrite(plan: Node, rule: Callable[[Node], Node]) -> Node:
    """Apply a rule to every operator, inputs first. A shared operator is rewritten once and stays shared."""
    done: dict[int, Node] = {}
    for node in postorder(plan):
        inputs = node.inputs()
        fresh = node
        if any(done[id(child)] is not child for child in inputs):
            fresh = rebuild(node, done)
        done[id(node)] = rule(fresh)
    return done[id(plan)]


def rebuild(node: Any, done: dict[int, Node]) -> Any:
    """The same record (an operator or a test) with its inputs replaced."""
    changes = {}
    for part in fields(node):
        value = getattr(node, part.name)
        fresh = _replaced(value, done)
        if fresh is not value:
            changes[part.name] = fresh
    return replace(node, **changes) if changes else node


def _replaced(value: Any, done: dict[int, Node]) -> Any:
    if isinstance(value, Node):
        return done.get(id(value), value)
    if isinstance(value, Test):
        return rebuild(value, done) if value.inputs() else value
    if isinstance(value, tuple) and any(isinstance(part, (Node, Test)) for part in value):
        fresh = tuple(_replaced(part, done) for part in value)
        return fresh if any(a is not b for a, b in zip(fresh, value, strict=True)) else value
    return value
