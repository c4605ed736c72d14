"""Answers as rows of plain values, to compare them with other engines: entities by name, numbers by value, a cell of
several values as a sorted tuple.
"""

from __future__ import annotations

from typing import Any

from condgraph.engine.answer import Answer
from condgraph.engine.facts import Entity
from condgraph.engine.values import Quantity


def rows_of(answer: Answer) -> list[tuple[Any, ...]]:
    """Return the rows of a table, or one row for each value of another answer."""
    return [tuple(map(plain, row)) if isinstance(row, tuple) else (plain(row),) for row in answer.values]


def plain(value: Any) -> Any:
    """Return a value without its type, unit or id."""
    if isinstance(value, tuple):
        return tuple(sorted(map(plain, value)))
    if isinstance(value, Quantity):
        return value.number
    return value.name if isinstance(value, Entity) else value
