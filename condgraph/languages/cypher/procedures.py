"""Procedures that a query may call: those that list the names of a graph, and those that a server adds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from condgraph.engine.errors import ParseError, nearest
from condgraph.engine.store import KnownSchema
from condgraph.languages.cypher import tree
from condgraph.languages.parameters import BoundQuery


@dataclass(frozen=True, slots=True)
class ProcedureRows:
    """A procedure: its columns, a function from arguments to rows, and the most arguments it takes."""

    columns: tuple[str, ...]
    rows: Callable[..., Sequence[Sequence[Any]]]
    arguments: int = 0


@dataclass(frozen=True, slots=True)
class CallingQuery(BoundQuery):
    """A query with parameters, and the additional procedures that it may call."""

    procedures: Mapping[str, ProcedureRows] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.text


def _labels(schema: KnownSchema) -> list[list[Any]]:
    tables = [short if schema.table_called(short := table.rpartition("/")[2]) == table else table for table in schema.tables]
    return [[label] for label in sorted({*schema.concepts, *tables})]


def _keys(schema: KnownSchema) -> list[list[Any]]:
    return [[name] for name in sorted({*schema.attributes, *schema.qualifiers, "name", "id"})]


#: The procedures that list names: the column of each, and its rows.
NAMES: Final[dict[str, tuple[str, Callable[[KnownSchema], list[list[Any]]]]]] = {
    "db.labels": ("label", _labels),
    "db.relationshipTypes": ("relationshipType", lambda schema: [[name] for name in sorted(schema.relations)]),
    "db.propertyKeys": ("propertyKey", _keys),
}


def procedure(clause: tree.Procedure, schema: KnownSchema, more: Mapping[str, ProcedureRows]) -> ProcedureRows:
    """Return the procedure that a clause calls; `more` takes precedence over the built-in ones.

    Raises `ParseError` with a position for an unknown procedure or too many arguments.
    """
    known = {name: ProcedureRows((column,), lambda rows=rows: rows(schema)) for name, (column, rows) in NAMES.items()} | dict(more)
    span = (clause.position, clause.end)
    result = {name.lower(): value for name, value in known.items()}.get(clause.name.lower())
    if result is None:
        raise ParseError(
            f"there is no procedure {clause.name!r} that only reads the graph",
            span=span,
            candidates=nearest(clause.name, list(known)),
            hint="CALL { ... } runs a query",
        )
    if len(clause.arguments) > result.arguments:
        most = f"at most {result.arguments} arguments" if result.arguments else "no arguments"
        raise ParseError(f"the procedure {clause.name!r} takes {most}", span=span)
    return result
