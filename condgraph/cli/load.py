"""Commands that add to a graph: sources, and the vectors of its names."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from condgraph.cli import complete
from condgraph.cli.arguments import (
    LoginOptions,
    StoreOption,
    opened,
)
from condgraph.cli.exits import complain, guard
from condgraph.cli.groups import grouped
from condgraph.cli.options import loader_options
from condgraph.cli.progress import counting_progress, loading_progress
from condgraph.cli.render import printable

#: Kinds of problems of a load, and joins, that are shown; the rest is counted.
SHOWN_KINDS = 50


class OnError(StrEnum):
    """What a load does with a record that cannot be used."""

    RAISE = "raise"
    SKIP = "skip"


@grouped
def load(
    *,
    store: Annotated[
        str, typer.Argument(metavar="STORE", help="The folder of the store, made where it is missing, or the address of a server.")
    ],
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCES...", help="Files, folders, patterns or addresses: CSV, Excel, databases, kb.json, RDF and more."
        ),
    ],
    form: Annotated[
        str | None,
        typer.Option(
            "--as",
            metavar="FORMAT",
            help="The sources' format; recognised from their content by default.",
            autocompletion=complete.formats,
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", metavar="SOURCE", help="The name that programs scope by; the file's name by default.")
    ] = None,
    on_error: Annotated[
        OnError, typer.Option("--on-error", help="Stop at a bad record, or leave it out and report it.")
    ] = OnError.RAISE,
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option",
            "-O",
            metavar="OPTION=VALUE",
            help="A loader's option; JSON for a list or an object.",
            autocompletion=complete.loader_options,
        ),
    ] = None,
    login: LoginOptions,
    wait: Annotated[
        float, typer.Option("--wait", metavar="SECONDS", min=0.0, help="How long to wait for other processes that are loading.")
    ] = 0.0,
    replace: Annotated[bool, typer.Option("--replace", help="Put the sources in the place of those of their names.")] = False,
    append: Annotated[bool, typer.Option("--append", help="Add to the sources of their names.")] = False,
    labels: Annotated[
        bool | None,
        typer.Option(
            "--labels/--no-labels",
            help="On Neo4j, whether entities carry their concepts as labels; by default where nothing else is in the database.",
            show_default=False,
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")] = False,
) -> None:
    """Load sources into a store, as one new generation: all of it, or nothing."""
    options = loader_options(option or [])
    with guard(), opened(store, login, read_only=False, labels=labels) as at:
        with loading_progress(quiet=quiet) as progress:
            report = at.load(
                sources if len(sources) > 1 else sources[0],
                format=form,
                name=name,
                on_error=on_error.value,
                progress=progress,
                wait=wait,
                replace=replace,
                append=append,
                **options,
            )
        for join in report.joins[:SHOWN_KINDS]:
            complain(f"joined: {printable(join)}")
        if len(report.joins) > SHOWN_KINDS:
            complain(f"and {len(report.joins) - SHOWN_KINDS} more joins")
        for kind in report.kinds[:SHOWN_KINDS]:
            complain(f"{'left out' if kind.skipped else 'warning'}: {printable(str(kind))}")
        more = len(report.kinds) - SHOWN_KINDS
        if more > 0:
            complain(f"and {more} more kinds of problems")
        for warning in report.warnings:
            complain(f"warning: {printable(warning)}")
        typer.echo(str(report))


@grouped
def index(
    *,
    store: StoreOption,
    encoder: Annotated[
        str,
        typer.Option(
            "--encoder",
            "-e",
            metavar="ENCODER",
            help="`lexical`, a folder with a model of sentence-transformers, its name on the hub, or `openai:MODEL`.",
        ),
    ] = "lexical",
    login: LoginOptions,
    faiss: Annotated[
        bool, typer.Option("--faiss", help="Make an approximate index of FAISS as well, for very large graphs.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")] = False,
) -> None:
    """Encode the names of a graph and keep the vectors with it, for patterns; only what is new is
    encoded again.
    """
    with (
        guard(),
        opened(store, login, read_only=False) as at,
        counting_progress("texts", quiet=quiet) as progress,
    ):
        report = at.index(encoder, faiss=faiss, progress=progress)
        typer.echo(str(report))
