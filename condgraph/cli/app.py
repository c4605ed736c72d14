"""The command line: its commands in the order of `--help`. Each opens a store, calls the library, and
passes the result to `render`.
"""

from __future__ import annotations

import sys
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated

import typer

import condgraph
from condgraph.cli.ask import ask, chain, chat, verify
from condgraph.cli.edit import add, compact, correct, edits, retract
from condgraph.cli.evaluate import evaluate, generate, train_links
from condgraph.cli.exits import EXIT_CODES, Exit, complain, guard
from condgraph.cli.load import abandon, delete, formats, guess, index, load, unload
from condgraph.cli.mcp import mcp
from condgraph.cli.query import cypher, explain, logic, match, query, sparql
from condgraph.cli.serve import serve
from condgraph.cli.status import browser, conflicts, doctor, export, map_database, schema, status, timeline, versions

app = typer.Typer(
    name="condgraph",
    help="Load tables, knowledge graphs and temporal knowledge graphs into one graph, and ask it; every answer has its evidence.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"condgraph {condgraph.__version__}")
        raise typer.Exit


@app.callback()
def _top(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and leave.")
    ] = False,
) -> None:
    pass


def demo(
    keep: Annotated[
        Path | None,
        typer.Option("--keep", metavar="FOLDER", help="Keep the sample files, and the store made from them, in this folder."),
    ] = None,
) -> None:
    """Load the sample data of the package and ask a few questions across a table, a graph and a
    temporal graph.
    """
    with guard():
        from condgraph.demo import run_demo

        run_demo(sys.stdout, keep)


for command in (
    demo,
    load,
    index,
    query,
    chain,
    match,
    logic,
    sparql,
    cypher,
    explain,
    status,
    schema,
    conflicts,
    timeline,
    versions,
    export,
    ask,
    chat,
    add,
    retract,
    correct,
    edits,
    compact,
    delete,
    unload,
    abandon,
    generate,
    guess,
    formats,
    train_links,
    serve,
    mcp,
    verify,
    browser,
    doctor,
):
    app.command(epilog=EXIT_CODES)(command)

app.command("map", epilog=EXIT_CODES)(map_database)
app.add_typer(evaluate)


def run() -> None:
    """Run the command line. An interrupt before a command has begun is reported like any other."""
    if sys.stdout is None:  # closed by the parent process
        complain("error[file]: standard output is closed")
        sys.exit(Exit.ERROR)
    if isinstance(sys.stdout, TextIOWrapper):
        # Independent of the locale, so that an export can be loaded on any other machine.
        sys.stdout.reconfigure(encoding="utf-8")
    # A file in this folder may contain server names and passwords. The environment takes precedence over it.
    if Path(".env").exists():
        from dotenv import load_dotenv

        load_dotenv(".env")
    try:
        app()
    except KeyboardInterrupt:
        complain("interrupted")
        sys.exit(Exit.INTERRUPTED)
