"""Whether a text that a person or a model wrote reads the graph and does nothing else, by the server's own plan of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from condgraph.engine.errors import ReadOnlyError

#: Operators of a plan that read or change more than the graph, whatever the query type says.
_FORBIDDEN: Final = (
    "LoadCSV",
    "Terminate",
    "Show",
    "Administration",
    "Create",
    "Delete",
    "Detach",
    "Merge",
    "Set",
    "Remove",
    "Drop",
    "Alter",
)
_PROCEDURES: Final = frozenset(
    {
        "db.labels",
        "db.relationshipTypes",
        "db.propertyKeys",
        "db.index.vector.queryNodes",
        "db.index.fulltext.queryNodes",
        "db.schema.visualization",
        "db.schema.nodeTypeProperties",
        "db.schema.relTypeProperties",
    }
)
_ASKS_FOR_A_PLAN: Final = re.compile(r"(?:\s|//[^\n]*(?:\n|$)|/\*.*?\*/)*(EXPLAIN|PROFILE)\b", re.I | re.S)


def check_text(text: str) -> None:
    """Raise `ReadOnlyError` for a text whose plan cannot be asked for."""
    if _ASKS_FOR_A_PLAN.match(text):
        raise ReadOnlyError("a query that begins with EXPLAIN or PROFILE cannot be checked")


def check_plan(query_type: str | None, plan: Any) -> None:
    """Raise `ReadOnlyError` unless a plan reads the graph and nothing else."""
    if query_type != "r":
        raise ReadOnlyError(f"the query is of type {query_type!r}; only reading is allowed")
    for operator, arguments in _operators(plan):
        name = operator.partition("@")[0]
        if name.startswith(_FORBIDDEN) or any(word in name for word in ("LoadCSV", "Terminate")):
            raise ReadOnlyError(f"the query does more than read the graph: {name}")
        if "ProcedureCall" in name:
            called = str(arguments.get("Details", "")).partition("(")[0].strip().replace("`", "")
            if called not in _PROCEDURES:
                raise ReadOnlyError(f"the query calls a procedure that is not on the list: {called}")


def _operators(plan: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    stack = [plan] if plan else []
    while stack:
        node = stack.pop()
        yield node["operatorType"], node.get("args", {})
        stack.extend(node.get("children", ()))
