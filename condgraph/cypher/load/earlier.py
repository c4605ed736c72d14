"""Graphs of the layout before this one: whether a database holds one, which `convert` brings into
this layout.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from condgraph.engine.errors import StoreVersionError

if TYPE_CHECKING:
    from condgraph.cypher.connection import Connection

#: The layout before.
BEFORE: Final = 3
#: The nodes of its graphs.
GRAPHS: Final = "MATCH (g:Graph) WHERE g.format = $before AND g.content IS NOT NULL AND g.counts IS NOT NULL "
_CONSTRAINT: Final = (
    "SHOW CONSTRAINTS YIELD name, labelsOrTypes, properties "
    "WHERE name = 'condgraph_graph' AND labelsOrTypes = ['Graph'] AND properties = ['name'] RETURN name"
)


def older(connection: Connection, graph: str) -> dict[str, Any]:
    """What the node of a graph of the layout before says; empty where there is none.

    A node that only looks like it is none: every load of that layout made its constraint first.
    """
    if not connection.ask(_CONSTRAINT, {}):
        return {}
    rows = connection.ask(f"{GRAPHS}AND g.name = $graph RETURN properties(g) AS about", {"graph": graph, "before": BEFORE})
    found: dict[str, Any] = rows[0]["about"] if rows else {}
    try:
        json.loads(found.get("schema", "")), json.loads(found.get("counts", ""))
    except (TypeError, ValueError):
        return {}
    return found


def check_layout(connection: Connection, graph: str) -> None:
    """Raise `StoreVersionError` where the graph is there in the layout before this one."""
    if older(connection, graph):
        raise StoreVersionError(
            f"graph {graph!r} at {connection.place} has the layout of an earlier version",
            hint="`condgraph convert`, or graph.convert(), brings it into the layout of this version",
        )
