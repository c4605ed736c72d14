"""`condgraph sparql` and `condgraph cypher`: reading queries in the store's own language, that
people wrote.
"""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from typing import Annotated, Any

import typer

from condgraph.cli.arguments import (
    DatabaseOption,
    FileOption,
    GraphOption,
    LoginOptions,
    PasswordOption,
    StoreOption,
    TextArgument,
    UserOption,
    opened,
)
from condgraph.cli.exits import guard
from condgraph.cli.options import program_text
from condgraph.cli.render import Format, json_value, printable, refuse_terminal, write_stream, write_table
from condgraph.engine.delimited import csv_line
from condgraph.engine.errors import UnsupportedError

TimeoutOption = Annotated[float | None, typer.Option("--timeout", metavar="SECONDS", min=0.0, help="The deadline.")]
FormOption = Annotated[Format, typer.Option("--format", help="How the rows are written.")]


class Dialect(StrEnum):
    """How a SPARQL query is read."""

    STANDARD = "standard"
    KQAPRO = "kqapro"


def sparql(
    store: StoreOption,
    text: TextArgument = None,
    file: FileOption = None,
    dialect: Annotated[Dialect, typer.Option("--dialect", help="SPARQL 1.1, or as KQA Pro published it.")] = Dialect.STANDARD,
    graph: GraphOption = "default",
    user: UserOption = None,
    password: PasswordOption = None,
    form: FormOption = Format.TABLE,
    timeout: TimeoutOption = None,
    limit: Annotated[int | None, typer.Option("--limit", metavar="N", min=1, help="The most rows given.")] = None,
) -> None:
    """Run a SPARQL query, read-only, over the graph as RDF."""
    with guard():
        query = program_text(text, file)
    with guard(query), opened(store, LoginOptions(graph, user, password)) as at:
        refuse_terminal(form)
        found = at.sparql(query, dialect=dialect.value, timeout=timeout, limit=limit)
        for warning in found.warnings:
            typer.echo(f"warning: {printable(warning)}", err=True)
        if form is Format.ARROW:
            write_stream(found.to_arrow())
            return
        columns = found.columns if found.truth is None else ("truth",)
        rows: list[tuple[Any, ...]] = found.rows if found.truth is None else [(found.truth,)]
        _write(columns, rows, form)


def cypher(
    store: StoreOption,
    text: TextArgument = None,
    file: FileOption = None,
    user: UserOption = None,
    password: PasswordOption = None,
    database: DatabaseOption = None,
    form: FormOption = Format.TABLE,
    timeout: TimeoutOption = 60.0,
) -> None:
    """Run a Cypher query on Neo4j, whose text and plan are checked first: only reading, and nothing
    beside the graph.
    """
    with guard():
        query = program_text(text, file)
    with guard(query), opened(store, LoginOptions(user=user, password=password, database=database)) as at:
        from condgraph.remote_neo4j import Neo4jGraph

        if not isinstance(at, Neo4jGraph):
            raise UnsupportedError(at.place, ["Cypher"], hint="it runs on Neo4j: -d neo4j://HOST:7687")
        if form is Format.ARROW:
            raise typer.BadParameter("rows of Cypher have no fixed types: take json or csv", param_hint="--format")
        records = at.cypher(query, timeout=timeout)
        columns = tuple(records[0]) if records else ()
        _write(columns, [tuple(record.values()) for record in records], form)


def _write(columns: tuple[str, ...], rows: list[tuple[Any, ...]], form: Format) -> None:
    if form is Format.JSON:
        found = [dict(zip(columns, map(_json, row), strict=True)) for row in rows]
        typer.echo(json.dumps(found, ensure_ascii=False, indent=2, default=str))
        return
    texts = [tuple("" if cell is None else _text(cell) for cell in row) for row in rows]
    if form is Format.CSV:
        sys.stdout.writelines(map(csv_line, (columns, *texts)))
    elif columns:
        write_table(columns, texts)


def _json(cell: Any) -> Any:
    return cell if isinstance(cell, dict | list) else json_value(cell)


def _text(cell: Any) -> str:
    from condgraph.sparql.text.table import shown

    return json.dumps(cell, ensure_ascii=False, default=str) if isinstance(cell, dict | list) else shown(cell)
