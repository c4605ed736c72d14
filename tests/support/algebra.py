"""The operators and conditions of the algebra, to check that the tables of the stores are complete."""

from __future__ import annotations

from condgraph.engine import algebra
from condgraph.engine.algebra import Condition, Node, solutions


def classes() -> dict[str, type[Node | Condition]]:
    """Return every public operator, condition and sort, by name."""
    names = {**vars(algebra), **vars(solutions)}
    return {
        name: item
        for name, item in names.items()
        if isinstance(item, type) and issubclass(item, Node | Condition) and not name.startswith("_")
    }
