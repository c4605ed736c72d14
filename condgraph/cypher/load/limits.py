"""What a server would refuse in the middle of a load, looked for before anything is written.

Texts, ids, names of entities and of predicates may have any length: long ones are indexed by their
hash (`cypher.layout.schema`). Names of graphs, sources and units stand in indexes as they are, and
a server never gives back a relationship type.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import numpy as np

from condgraph.cypher.layout.schema import LONGEST_NAME, LONGEST_SOURCE, MOST_TYPES, type_of
from condgraph.engine.errors import LoadError, OptionError, StoreError

if TYPE_CHECKING:
    from condgraph.cypher.connection import Connection
    from condgraph.engine.snapshot.snapshot import Snapshot

#: Every type that the database ever had; for users who may not ask that, the types in use.
_TYPES: Final = (
    "CALL db.stats.retrieve('TOKENS') YIELD data UNWIND data.relationshipTypes AS name RETURN name",
    "CALL db.relationshipTypes() YIELD relationshipType RETURN relationshipType AS name",
)
_FORMAT: Final = "SHOW DATABASES YIELD name, store WHERE name = $name RETURN store"


def check_graph(name: str) -> str:
    """The name of a graph; raises `OptionError` where a server cannot keep it."""
    if not name:
        raise OptionError("the name of a graph is empty")
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        raise OptionError(f"the name of a graph is text, not {name!r}") from None
    if size > LONGEST_NAME:
        raise OptionError(f"the name of a graph has at most {LONGEST_NAME:,} bytes on Neo4j, not {size:,}")
    return name


def check_loadable(snapshot: Snapshot, connection: Connection) -> None:
    """Raise `LoadError` where a server would refuse a part of the snapshot."""
    get = snapshot.arrays.get
    _check(
        "source", (snapshot.source_of(i).name for i in range(len(get("src.name")))), LONGEST_SOURCE, "name= gives it another name"
    )
    units = np.unique(np.concatenate([get("att.unit"), get("q.unit")]))
    _check("unit", (snapshot.texts[number] for number in units[units >= 0].tolist()), LONGEST_NAME, "is it a unit?")
    predicates = [snapshot.predicate_name(i) for i in range(snapshot.predicate_count)]
    for name in predicates:
        if "\0" in name:
            raise LoadError(f"the predicate {_short(name)} holds the character NUL, which Neo4j takes in no relationship type")
    _check_types({type_of(name) for name in predicates}, connection)


def _check(what: str, names: Iterable[str], longest: int, hint: str) -> None:
    for name in names:
        size = len(name.encode())
        if size > longest:
            raise LoadError(f"the {what} {_short(name)} has {size:,} bytes; Neo4j's indexes leave room for {longest:,}", hint=hint)


def _short(name: str) -> str:
    return repr(name if len(name) <= 40 else name[:39] + "…")


def _check_types(wanted: set[str], connection: Connection) -> None:
    known: set[str] = set()
    for text in _TYPES:
        try:
            known = {row["name"] for row in connection.ask(text, {})}
            break
        except StoreError:
            continue
    fresh = len(wanted - known)
    if len(known) + fresh > MOST_TYPES and not _roomy(connection):
        raise LoadError(
            f"the database has {len(known):,} relationship types already, and {fresh:,} predicates would be new ones; "
            f"Neo4j's Community Edition takes {MOST_TYPES:,} in all, and gives none back",
            hint="load into another database or server, or a table with its columns as rows",
        )


def _roomy(connection: Connection) -> bool:
    """Whether the database is kept in a format that takes more types."""
    try:
        rows = connection.ask("CALL db.info() YIELD name RETURN name", {})
        found = connection.ask(_FORMAT, {"name": rows[0]["name"]})
    except StoreError:
        return False
    return bool(found) and str(found[0]["store"]).startswith("block")
