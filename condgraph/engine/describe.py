"""Plans as text: one line for each operator, and the tree of them for `explain`."""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from typing import Any

from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Condition, Node
from condgraph.engine.algebra import grouped as ex
from condgraph.engine.bounds import check
from condgraph.engine.values import Quantity, Time, text_of


def describe_test(condition: Condition) -> str:
    """Return a condition as text: `= 1960`, `any of (= 3, = '3')`, `in (...)`."""
    if isinstance(condition, alg.Compare):
        value = condition.value
        shown = text_of(value) if isinstance(value, (Quantity, Time)) else repr(text_of(value))
        return f"{condition.operator} {shown}"
    if isinstance(condition, (alg.AnyOf, alg.AllOf)):
        word = "any of" if isinstance(condition, alg.AnyOf) else "all of"
        return f"{word} ({', '.join(describe_test(part) for part in condition.conditions)})"
    if isinstance(condition, alg.Versus):
        return f"{condition.operator} any value"
    if isinstance(condition, alg.Not):
        return f"not ({describe_test(condition.condition)})"
    return "among"


@cache
def _field_names(kind: Any) -> tuple[str, ...]:
    """Return the names of an operator's fields."""
    return tuple(part.name for part in fields(kind))


def describe(node: Node) -> str:
    """Return one operator with its own parameters, without its inputs."""
    words: list[str] = []
    kind: Any = type(node)
    if isinstance(node, alg.Scan):
        predicates = "any predicate" if node.predicates is None else " or ".join(map(repr, node.predicates)) or "no predicate"
        arrow = {("subject", "object"): "forward", ("object", "subject"): "backward"}.get((node.anchor, node.reach))
        words = [predicates, arrow or f"of the {node.reach}", *([] if node.family == "any" else [f"{node.family}s"])]
    elif isinstance(node, alg.Solutions):
        words = [word for name in _field_names(kind) for word in _of_rows(getattr(node, name), name)]
    elif isinstance(node, alg.Table):
        words = [word for name in _field_names(kind) for word in _of_table(getattr(node, name), name)]
    else:
        for name in _field_names(kind):
            words.extend(_words(getattr(node, name)) if name != "own" else ["own rows"] * node.own)  # type: ignore[attr-defined]
    source = getattr(node, "source", None)
    if source is not None and isinstance(node, alg.Scan):
        words.append(f"source {source!r}")
    return f"{type(node).__name__}({', '.join(words)})"


def describe_cells(test: ex.Test) -> str:
    """Return a test of cells as text: `count() > 5`, `country = 'Peru'`; columns known only by index are counted from
    1.
    """
    if isinstance(test, ex.CellTest):
        left = f"column {test.of + 1}" if isinstance(test.of, int) else test.of.name
        if not test.readings:
            return f"{left} is {test.operator}"
        listed = " or ".join(
            dict.fromkeys([repr(reading) if isinstance(reading, str) else str(reading) for reading in test.readings])
        )
        return f"{left} {test.operator} {listed}"
    if isinstance(test, ex.NotTest):
        return f"not ({describe_cells(test.test)})"
    return f" {'and' if isinstance(test, ex.AllTests) else 'or'} ".join([f"({describe_cells(part)})" for part in test.tests])


def _of_table(value: Any, field: str) -> list[str]:
    """Return the words for a field of a table's operator: names of columns, tests, numbers; none if it is not set."""
    if field == "unsure":
        return []
    if isinstance(value, tuple):
        return [word for part in value for word in _of_table(part, field)]
    if isinstance(value, ex.Key | ex.Measure | ex.OrderBy):
        return [value.name]
    if isinstance(value, ex.CellTest | ex.AllTests | ex.AnyTest | ex.NotTest):
        return [f"{field} {describe_cells(value)}"]
    if isinstance(value, bool) or not value or isinstance(value, Node):
        return [field] if value is True else []
    return [str(value) if field == "number" else f"{field} {value}"]


def _of_rows(value: Any, field: str) -> list[str]:
    """Return the words for a field of an operator over rows: patterns and variables as written, names of columns,
    bounds of paths.
    """
    if isinstance(value, Condition):
        return [describe_test(value)]
    if value is None or isinstance(value, Node) or value == ():
        return []
    if field == "rows":
        return [f"{len(value)} rows"]
    if isinstance(value, tuple):
        return [word for part in value for word in _of_rows(part, "")]
    if isinstance(value, bool):
        return [field] if value else []
    return [f"{field} {value}" if isinstance(value, int) else str(value)]


def _words(value: Any) -> list[str]:
    if isinstance(value, Condition):
        return [describe_test(value)]
    if value is None or isinstance(value, Node) or callable(value):
        return []
    if isinstance(value, tuple):
        return [word for part in value for word in _words(part)]
    if isinstance(value, (Time, Quantity)):
        return [str(value)]
    return [repr(value) if isinstance(value, str) else str(getattr(value, "name", value)).lower()]


def tree(plan: Node, notes: dict[int, str] | None = None) -> str:
    """Return the plan as an indented tree; a shared node is printed once and referred to. `notes` are appended to
    operators, by identity.
    """
    lines: list[str] = []
    numbers: dict[int, int] = {}
    shared = _shared(plan)
    stack: list[tuple[Node, int, str]] = [(plan, 0, "")]
    while stack:
        check()
        node, depth, label = stack.pop()
        indent = "  " * depth + label
        if id(node) in numbers:
            lines.append(f"{indent}(see #{numbers[id(node)]})")
            continue
        mark = ""
        if id(node) in shared:
            numbers[id(node)] = len(numbers) + 1
            mark = f"#{numbers[id(node)]} "
        note = (notes or {}).get(id(node))
        lines.append(f"{indent}{mark}{describe(node)}" + (f"   -- {note}" if note else ""))
        stack.extend((child, depth + 1, "") for child in reversed(node.inputs()))
    return "\n".join(lines)


def _shared(plan: Node) -> set[int]:
    seen: set[int] = set()
    twice: set[int] = set()
    for node in alg.postorder(plan):
        for child in node.inputs():
            (twice if id(child) in seen else seen).add(id(child))
    return twice
