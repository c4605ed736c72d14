"""`condgraph schema`: what a store holds, as tables, as JSON, or as text for prompts."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated

import typer

from condgraph.cli import complete
from condgraph.cli.arguments import LoginOptions, StoreOption, opened
from condgraph.cli.exits import guard
from condgraph.cli.groups import grouped
from condgraph.cli.render import printable, write_table
from condgraph.overview.schema import MOST_ROWS, heading, sections


class SchemaFormat(StrEnum):
    """How a schema is written."""

    TABLE = "table"
    JSON = "json"
    TEXT = "text"


@grouped
def schema(
    *,
    store: StoreOption,
    login: LoginOptions,
    source: Annotated[
        str | None,
        typer.Option("--source", metavar="NAME", help="Only what stands in this source.", autocompletion=complete.sources),
    ] = None,
    concept: Annotated[
        str | None,
        typer.Option(
            "--concept",
            metavar="NAME",
            help="Only predicates from or to what is in this concept.",
            autocompletion=complete.concepts,
        ),
    ] = None,
    predicate: Annotated[
        str | None, typer.Option("--predicate", metavar="NAME", help="Only this predicate.", autocompletion=complete.predicates)
    ] = None,
    form: Annotated[SchemaFormat, typer.Option("--format", help="How the schema is written.")] = SchemaFormat.TABLE,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=0, help="The most rows of each table; 0 is all of them.")
    ] = MOST_ROWS,
    tokens: Annotated[int, typer.Option("--tokens", metavar="N", min=0, help="The most tokens of --format text.")] = 1000,
    timeout: Annotated[float | None, typer.Option("--timeout", metavar="SECONDS", min=0.0, help="The deadline.")] = None,
) -> None:
    """Show what can be asked about: sources, concepts, predicates, units, with counts and examples."""
    with guard(), opened(store, login) as at:
        found = at.schema(source=source, concept=concept, predicate=predicate, timeout=timeout)
        if form is SchemaFormat.JSON:
            typer.echo(json.dumps(found.data(), ensure_ascii=False, indent=2))
        elif form is SchemaFormat.TEXT:
            typer.echo(found.text(tokens))
        else:
            typer.echo(heading(found))
            if found.note:
                typer.echo(f"warning: {printable(found.note)}", err=True)
            for name, columns, rows, more in sections(found, limit):
                typer.echo("")
                write_table(columns, rows)
                if more:
                    typer.echo(f"and {more:,} more {name}")
