"""The constraints and indexes of the layout on a server: whether they are there, are what they
should be, and made where not.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from condgraph.cypher.layout.schema import CONSTRAINTS, INDEXES, VECTOR_KEYS
from condgraph.engine.errors import StoreError

if TYPE_CHECKING:
    from condgraph.cypher.connection import Connection

_NAMES: Final = [one.name for one in (*CONSTRAINTS, *INDEXES, VECTOR_KEYS)]
_ABOUT: Final = (
    "SHOW INDEXES YIELD name, state, labelsOrTypes, properties, owningConstraint WHERE name IN $names "
    "RETURN name, state, labelsOrTypes AS labels, properties, owningConstraint IS NOT NULL AS unique"
)


def prepare(connection: Connection) -> bool:
    """Make the constraints; whether the indexes are there as well, as they are after the first load
    of a database.

    Raises `StoreError` where a name of these belongs to something else: a server would take that
    for the index, and make none.
    """
    found = {row["name"]: row for row in connection.ask(_ABOUT, {"names": _NAMES})}
    for one in (*CONSTRAINTS, *INDEXES, VECTOR_KEYS):
        row = found.get(one.name)
        wanted = [one.label], list(one.properties), one.unique
        if row is not None and (row["labels"], row["properties"], row["unique"]) != wanted:
            on = f"{':'.join(row['labels'] or ())}({', '.join(row['properties'] or ())})"
            raise StoreError(
                f"the database has an index or a constraint {one.name!r} on {on}, which is not condgraph's",
                hint=f"condgraph's is on {one.label}({', '.join(one.properties)}): give the other one another name",
            )
    if all(one.name in found and found[one.name]["state"] == "ONLINE" for one in (*CONSTRAINTS, *INDEXES)):
        return True
    connection.schema(*(one.text for one in CONSTRAINTS))
    return False


def make_indexes(connection: Connection) -> None:
    """Make the indexes, and wait until they are filled."""
    # In one transaction, for then the server fills them all in one pass over its nodes.
    connection.schema(*(one.text for one in INDEXES))
    pause = 0.05
    names = [one.name for one in (*CONSTRAINTS, *INDEXES)]
    while waiting := [row for row in connection.ask(_ABOUT, {"names": names}) if row["state"] != "ONLINE"]:
        failed = [row["name"] for row in waiting if row["state"] == "FAILED"]
        if failed:
            raise StoreError(f"the server could not make the indexes {', '.join(failed)}", hint="its log says why")
        time.sleep(pause)
        pause = min(pause * 2, 0.5)
