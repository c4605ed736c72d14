"""Commands for loading and unloading: load, index, guess, formats, unload, delete, abandon."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from condgraph.cli import arguments, complete
from condgraph.cli.exits import Exit, complain, guard
from condgraph.cli.render import printable
from condgraph.engine.errors import LoadError, StoreBusyError
from condgraph.loaders.base import OnError
from condgraph.progress import bar

# -- load and index ----------------------------------------------------------------------------------


#: How many kinds of problems, and how many joins, of a load are shown. The rest is only counted.
SHOWN_KINDS = 50


@arguments.grouped
def load(
    *,
    store: Annotated[
        str, typer.Argument(metavar="STORE", help="The folder of the store, created if missing, or the address of a server.")
    ],
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCES...", help="Files, folders, glob patterns or addresses: CSV, Excel, databases, kb.json, RDF and more."
        ),
    ],
    form: Annotated[
        str | None,
        typer.Option(
            "--as",
            metavar="FORMAT",
            help="Format of the sources; recognised from their content by default.",
            autocompletion=complete.formats,
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            "--name",
            metavar="SOURCE",
            help="The name of the source, for programs that select a source; the file's name by default.",
        ),
    ] = None,
    on_error: Annotated[OnError, typer.Option("--on-error", help="Stop at a bad record, or skip it and report it.")] = "raise",
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option",
            "-O",
            metavar="OPTION=VALUE",
            help="An option of the loader; JSON for a list or an object.",
            autocompletion=complete.loader_options,
        ),
    ] = None,
    login: arguments.LoginOptions,
    wait: Annotated[
        float, typer.Option("--wait", metavar="SECONDS", min=0.0, help="How long to wait for other processes that are loading.")
    ] = 0.0,
    replace: Annotated[bool, typer.Option("--replace", help="Replace the sources that have the same names.")] = False,
    append: Annotated[bool, typer.Option("--append", help="Add to the sources that have the same names.")] = False,
    memory: Annotated[
        str | None,
        typer.Option(
            "--memory", metavar="SIZE", help="Load within about this much memory, such as '2 GiB', with files next to the graph."
        ),
    ] = None,
    labels: Annotated[
        bool | None,
        typer.Option(
            "--labels/--no-labels",
            help="On Neo4j: whether entities have their concepts as labels; by default if the database has no other data.",
            show_default=False,
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")] = False,
) -> None:
    """Load sources into a store as one new generation: everything or nothing."""
    options = arguments.loader_options(option or [])
    with guard(), arguments.opened(store, login, read_only=False, labels=labels) as at:
        with bar(quiet=quiet) as progress:
            report = at.load(
                sources if len(sources) > 1 else sources[0],
                format=form,
                name=name,
                on_error=on_error,
                progress=progress,
                wait=wait,
                replace=replace,
                append=append,
                memory=memory,
                **options,
            )
        for join in report.joins[:SHOWN_KINDS]:
            complain(f"joined: {printable(join)}")
        if len(report.joins) > SHOWN_KINDS:
            complain(f"and {len(report.joins) - SHOWN_KINDS} more joins")
        for kind in report.kinds[:SHOWN_KINDS]:
            complain(f"{'left out' if kind.skipped else 'warning'}: {printable(str(kind))}")
        remaining = len(report.kinds) - SHOWN_KINDS
        if remaining > 0:
            complain(f"and {remaining} more kinds of problems")
        for warning in report.warnings:
            complain(f"warning: {printable(warning)}")
        typer.echo(str(report))


@arguments.grouped
def index(
    *,
    store: arguments.StoreOption,
    encoder: Annotated[
        str,
        typer.Option(
            "--encoder",
            "-e",
            metavar="ENCODER",
            help="`lexical`, a folder with a sentence-transformers model, its name on the hub, or `openai:MODEL`.",
        ),
    ] = "lexical",
    login: arguments.LoginOptions,
    faiss: Annotated[bool, typer.Option("--faiss", help="Also build an approximate FAISS index, for very large graphs.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")] = False,
) -> None:
    """Encode the names of a graph and store the vectors with it, for patterns. Only new names are encoded
    again.
    """
    with (
        guard(),
        arguments.opened(store, login, read_only=False) as at,
        bar(quiet=quiet) as progress,
    ):
        report = at.index(encoder, faiss=faiss, progress=progress)
        typer.echo(str(report))


# -- guess -------------------------------------------------------------------------------------------


def guess(
    place: Annotated[
        str, typer.Argument(metavar="FOLDER", help="A folder of tables, a workbook, an SQLite file, or the address of a database.")
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="The file to write: condgraph.toml in the folder, else standard output."
        ),
    ] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Overwrite an existing file.")] = False,
    option: Annotated[
        list[str] | None, typer.Option("--option", "-O", metavar="OPTION=VALUE", help="An option of the format, as of `load`.")
    ] = None,
) -> None:
    """Write a declaration of related tables (keys, references, names), with the reason for each line. You
    can edit it, and `load` reads it.
    """
    options = arguments.loader_options(option or [])
    with guard():
        from condgraph.loaders.declaring import guess as guessed
        from condgraph.loaders.files import file_errors
        from condgraph.loaders.folder.declared import FILE

        output = Path(place) / FILE if output is None and Path(place).is_dir() else arguments.file_of(output)
        if output is not None and output.exists() and not replace:
            raise LoadError("this file already exists", file=str(output), hint="--replace overwrites it")
        text = guessed(place, **options)
        if output is None:
            typer.echo(text, nl=False)
            return
        with file_errors(output):
            fresh = output.with_name(f".{output.name}.{os.getpid()}")
            fresh.write_text(text, encoding="utf-8", newline="\n")
            os.replace(fresh, output)
        complain(f"wrote {output}")


# -- formats -----------------------------------------------------------------------------------------


def formats(
    name: Annotated[str | None, typer.Argument(metavar="[FORMAT]", help="A format, to show its options.")] = None,
) -> None:
    """Show what can be loaded: all formats, or the options of one format, for `load --as` and `load -O`."""
    with guard():
        from condgraph.loaders.recognise import FORMATS, format_called

        rows = {form.name: form.about for form in FORMATS.values()} if name is None else format_called(name).options
        width = max(map(len, rows), default=0)
        for row, about in rows.items():
            typer.echo(f"{row:{width}}  {about}")


# -- unload, delete, abandon ------------------------------------------------------------------


YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]


@arguments.grouped
def delete(
    *,
    store: arguments.StoreOption,
    login: arguments.LoginOptions,
    yes: YesOption = False,
) -> None:
    """Remove a graph from a store after confirmation. Nothing else is removed."""
    with guard(), arguments.opened(store, login, read_only=False) as at:
        try:
            counts = at.status().counts
            contents = f" ({counts['entities']:,} entities, {counts['relations'] + counts['attributes']:,} statements)"
        except StoreBusyError as error:
            # A partly loaded or partly deleted graph can be deleted, too.
            complain(f"warning: {error}")
            contents = ""
        _ask(f"Delete graph {login.graph!r}{contents} in {at.place}?", yes=yes)
        at.delete()
        typer.echo(f"graph {login.graph!r} is deleted")


@arguments.grouped
def unload(
    *,
    store: arguments.StoreOption,
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCES...", help="Names of sources, as `condgraph status` lists them.", autocompletion=complete.sources
        ),
    ],
    login: arguments.LoginOptions,
    wait: Annotated[
        float, typer.Option("--wait", metavar="SECONDS", min=0.0, help="How long to wait for other processes that are loading.")
    ] = 0.0,
) -> None:
    """Remove sources from a graph, all of them or none. Statements that are also in other sources stay."""
    with guard(), arguments.opened(store, login, read_only=False) as at:
        report = at.unload(*sources, wait=wait)
        for warning in report.warnings:
            complain(f"warning: {printable(warning)}")
        typer.echo(str(report))


@arguments.grouped
def abandon(
    *,
    store: arguments.StoreOption,
    login: arguments.LoginOptions,
    yes: YesOption = False,
) -> None:
    """Undo an unfinished load after confirmation, so that the graph has its previous contents again."""
    with guard(), arguments.opened(store, login, read_only=False) as at:
        _ask(f"Take back the unfinished load of graph {login.graph!r} in {at.place}?", yes=yes)
        typer.echo("the load is taken back" if at.abandon() else "no load is unfinished")


def _ask(question: str, *, yes: bool) -> None:
    """Ask for confirmation. Without a terminal, exit with an error."""
    if yes:
        return
    if not sys.stdin.isatty():
        complain("error[option]: there is no terminal to confirm this on; --yes confirms it")
        raise typer.Exit(Exit.USAGE)
    typer.confirm(question, abort=True)
