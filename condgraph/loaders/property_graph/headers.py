"""The headers of property graphs as CSV: what each column is, in the three ways in which they are
written.

- **Neo4j's import tool**: `personId:ID(Person)`, `name`, `born:int`, `:LABEL` for nodes,
  `:START_ID(Person)`, `:END_ID`, `:TYPE`, `roles:string[]` for relationships.
- **Neptune, Gremlin**: `~id`, `~label`, `name:String`, and `~id`, `~from`, `~to`, `~label`.
- **APOC** (`apoc.export.csv`): `_id`, `_labels`, properties, `_start`, `_end`, `_type`, nodes and
  relationships in one file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from condgraph.engine.values import collapse
from condgraph.loaders.table.column_types import Declared

#: What a column is, by its special name.
_ROLES: Final = {
    ":id": "id", ":label": "label", ":start_id": "start", ":end_id": "end", ":type": "type", ":ignore": "ignore",
    "~id": "id", "~label": "label", "~from": "start", "~to": "end",
    "_id": "id", "_labels": "label", "_start": "start", "_end": "end", "_type": "type",
}  # fmt: skip
_NEO4J: Final = re.compile(
    r"(?P<name>[^:]*):(?P<role>ID|LABEL|START_ID|END_ID|TYPE|IGNORE)(?:\((?P<space>[^()]*)\))?(?:\{[^{}]*\})?", re.IGNORECASE
)
_TYPED: Final = re.compile(
    r"(?P<name>.+):(?P<type>[A-Za-z]+)(?:\((?P<single>single|set)\))?(?:\{[^{}]*\})?(?P<array>\[\])?(?:\{[^{}]*\})?", re.IGNORECASE
)
#: How cells of a declared type are read; others as their column says.
_TYPES: Final[dict[str, Declared]] = {
    **dict.fromkeys(("int", "integer", "long", "short", "byte", "float", "double", "number"), "number"),
    **dict.fromkeys(("string", "char", "boolean", "bool", "point", "vector"), "text"),
    **dict.fromkeys(("date", "datetime", "localdatetime", "zoneddatetime"), "time"),
    **dict.fromkeys(("time", "localtime", "zonedtime", "duration"), "auto"),
}


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its role ("property" where it is none of the special ones), the name of its
    property, how its cells are read, whether they are lists, and the space of its ids.
    """

    role: str
    name: str = ""
    declared: Declared = "auto"
    array: bool = False
    space: str = ""


def column_of(header: str) -> Column:
    """What a header says."""
    header = collapse(header)
    role = _ROLES.get(header.casefold())
    if role is not None:
        return Column(role)
    special = _NEO4J.fullmatch(header)
    if special:
        return Column(_ROLES[f":{special['role'].casefold()}"], special["name"].strip(), space=special["space"] or "")
    typed = _TYPED.fullmatch(header)
    if typed and typed["type"].casefold() in _TYPES:
        array = bool(typed["array"] or typed["single"] == "set")
        return Column("property", typed["name"].strip(), _TYPES[typed["type"].casefold()], array)
    return Column("property", header)


def kind_of(headers: Sequence[str]) -> str:
    """What a file with these headers holds: "nodes", "edges", "both" (APOC), or "" where it is no
    property graph.
    """
    roles = {column.role for column in map(column_of, headers)}
    apoc = {"_id", "_start", "_end"} <= {collapse(header).casefold() for header in headers}
    if apoc:
        return "both"
    if {"start", "end"} <= roles:
        return "edges"
    neptune_edge = any(header.startswith("~") for header in headers) and bool(roles & {"start", "end"})
    # A column called _id alone is an id of anything.
    marked = any(header.startswith("~") or ":" in header for header in map(collapse, headers) if column_of(header).role == "id")
    return "nodes" if "id" in roles and marked and not neptune_edge else ""
