"""Commands that say what a store holds, or write all of it."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated
from warnings import catch_warnings, simplefilter

import typer

from condgraph.cli.arguments import LoginOptions, StoreOption, opened
from condgraph.cli.exits import complain, guard
from condgraph.cli.groups import grouped
from condgraph.cli.options import file_of
from condgraph.cli.render import json_value, write_table


class StatusFormat(StrEnum):
    """How a status is written."""

    TABLE = "table"
    JSON = "json"


class ExportFormat(StrEnum):
    """What an export writes."""

    JSONL = "jsonl"
    TURTLE = "turtle"
    NQUADS = "nquads"
    RDF = "rdf"
    NEO4J_IMPORT = "neo4j-import"


@grouped
def status(
    *,
    store: StoreOption,
    login: LoginOptions,
    verify: Annotated[bool, typer.Option("--verify", help="Read every file of the store and compare its checksum.")] = False,
    form: Annotated[StatusFormat, typer.Option("--format", help="How the status is written.")] = StatusFormat.TABLE,
) -> None:
    """Say what a store holds, and with --verify whether its files are whole."""
    with guard(), opened(store, login) as at:
        found = at.status(verify=verify)
        if form is StatusFormat.JSON:
            typer.echo(json.dumps(asdict(found), ensure_ascii=False, indent=2, default=json_value))
        else:
            typer.echo(str(found))
            if found.sources:
                typer.echo("")
                rows = [(source.name, source.format, source.location) for source in found.sources]
                write_table(("source", "format", "read from"), rows)


@grouped
def export(
    *,
    store: StoreOption,
    login: LoginOptions,
    to: Annotated[ExportFormat, typer.Option("--to", help="The format.")] = ExportFormat.JSONL,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="The file (a folder, for neo4j-import); standard output by default."),
    ] = None,
    base: Annotated[
        str | None, typer.Option("--base", metavar="IRI", help="What IRIs of RDF begin with that are the graph's own.")
    ] = None,
) -> None:
    """Write a whole graph, with its sources, in a form that `load` reads back exactly; or as RDF, or
    for Neo4j's import tool.
    """
    output = file_of(output)
    if to is ExportFormat.NEO4J_IMPORT and output is None:
        raise typer.BadParameter("neo4j-import writes a folder: give it with --output", param_hint="--to")
    with guard(), opened(store, login) as at:
        with catch_warnings(record=True) as said:
            simplefilter("always")
            at.export(sys.stdout if output is None else output, to=to.value, base=base)
        for one in said:
            complain(f"warning: {one.message}")
