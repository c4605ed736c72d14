"""The commands: each opens a store, calls the library, and hands the result to `render`."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from enum import StrEnum
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any
from warnings import catch_warnings, simplefilter

import typer

import condgraph
from condgraph.cli import complete
from condgraph.cli.arguments import (
    DatabaseOption,
    FileOption,
    GraphOption,
    LanguageOption,
    ParamOption,
    PasswordOption,
    StoreOption,
    TableOption,
    TextArgument,
    UserOption,
    opened,
)
from condgraph.cli.ask import ask
from condgraph.cli.browser import browser
from condgraph.cli.chain import chain
from condgraph.cli.evaluate import evaluate
from condgraph.cli.exits import EXIT_CODES, Exit, complain, guard
from condgraph.cli.foreign import cypher, sparql
from condgraph.cli.generate import generate
from condgraph.cli.guess import guess
from condgraph.cli.logic import logic
from condgraph.cli.map import map_database
from condgraph.cli.match import match, write_matches
from condgraph.cli.mcp import mcp
from condgraph.cli.options import file_of, loader_options, parameters, program_text
from condgraph.cli.progress import counting_progress, loading_progress
from condgraph.cli.remove import abandon, convert, delete, unload
from condgraph.cli.render import Format, json_value, printable, write_answer, write_check, write_table
from condgraph.cli.schema import schema
from condgraph.cli.serve import serve
from condgraph.cli.train_links import train_links
from condgraph.cli.verify import verify
from condgraph.patterns.matches import Matches

#: Problems of a load that are shown; the rest is counted.
SHOWN_PROBLEMS = 20

app = typer.Typer(
    name="condgraph",
    help="Load tables, knowledge graphs and temporal knowledge graphs into one graph, and ask it; every answer has its evidence.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class StatusFormat(StrEnum):
    """How a status is written."""

    TABLE = "table"
    JSON = "json"


class OnError(StrEnum):
    """What a load does with a record that cannot be used."""

    RAISE = "raise"
    SKIP = "skip"


class OnUnknown(StrEnum):
    """What a name that the graph does not have leads to."""

    ERROR = "error"
    EMPTY = "empty"


class EngineName(StrEnum):
    """What answers on a local graph."""

    SNAPSHOT = "snapshot"
    SPARQL = "sparql"


class ExportFormat(StrEnum):
    """What an export writes."""

    JSONL = "jsonl"
    TURTLE = "turtle"
    NQUADS = "nquads"
    RDF = "rdf"
    NEO4J_IMPORT = "neo4j-import"


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


@app.command(epilog=EXIT_CODES)
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


@app.command(epilog=EXIT_CODES)
def load(
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
    graph: GraphOption = "default",
    user: UserOption = None,
    password: PasswordOption = None,
    database: DatabaseOption = None,
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
    with guard(), opened(store, graph, user, password, database, read_only=False, labels=labels) as at:
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
        for problem in report.problems[:SHOWN_PROBLEMS]:
            complain(f"{'left out' if problem.skipped else 'warning'}: {printable(str(problem))}")
        more = report.skipped + report.warned - min(len(report.problems), SHOWN_PROBLEMS)
        if more:
            complain(f"and {more} more")
        for warning in report.warnings:
            complain(f"warning: {printable(warning)}")
        typer.echo(str(report))


@app.command(epilog=EXIT_CODES)
def index(
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
    graph: GraphOption = "default",
    user: UserOption = None,
    password: PasswordOption = None,
    database: DatabaseOption = None,
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
        opened(store, graph, user, password, database, read_only=False) as at,
        counting_progress("texts", quiet=quiet) as progress,
    ):
        report = at.index(encoder, faiss=faiss, progress=progress)
        typer.echo(str(report))


@app.command(epilog=EXIT_CODES)
def query(
    store: StoreOption,
    text: TextArgument = None,
    file: FileOption = None,
    language: LanguageOption = None,
    table: TableOption = None,
    param: ParamOption = None,
    graph: GraphOption = "default",
    user: UserOption = None,
    password: PasswordOption = None,
    database: DatabaseOption = None,
    engine: Annotated[
        EngineName | None, typer.Option("--engine", help="What answers on a local graph: in process, or its RDF store.")
    ] = None,
    form: Annotated[Format, typer.Option("--format", help="How the answer is written.")] = Format.TABLE,
    evidence: Annotated[bool, typer.Option("--evidence", help="Show the facts that the answer rests on.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Run the program on the evidence alone: does it give the answer?")] = False,
    trace: Annotated[bool, typer.Option("--trace", help="Show every step, and how many results it left.")] = False,
    show: Annotated[
        bool, typer.Option("--show", help="Show the plan, or on a server the compiled query, and do not run it.")
    ] = False,
    timeout: Annotated[float | None, typer.Option("--timeout", metavar="SECONDS", min=0.0, help="The deadline.")] = None,
    limit: Annotated[int | None, typer.Option("--limit", metavar="N", min=1, help="The most answers given.")] = None,
    on_unknown: Annotated[
        OnUnknown, typer.Option("--on-unknown", help="An unknown name is an error that lists the nearest, or an empty answer.")
    ] = OnUnknown.ERROR,
) -> None:
    """Run a program on a graph, and show its answer."""
    with guard():
        program = program_text(text, file)
    values = parameters(param or [])
    options: dict[str, Any] = {"language": language, "on_unknown": on_unknown.value}
    options |= {} if engine is None else {"engine": engine.value}
    options |= {} if table is None else {"table": table}
    with guard(program), opened(store, graph, user, password, database) as at:
        prepared = at.prepare(program, **options) if values else None
        if show:
            typer.echo(at.explain(program, **options) if prepared is None else prepared.explain(**values))
            return
        if prepared is None:
            answer = at.query(program, timeout=timeout, limit=limit, **options)
        else:
            answer = prepared.run(values, timeout=timeout, limit=limit)
        checked = answer.check(full=True, timeout=timeout) if check else None
        if isinstance(answer, Matches):
            write_matches(answer, form, evidence=evidence, trace=trace)
        else:
            write_answer(answer, form, evidence=evidence, trace=trace, checked=checked)
        if checked is not None:
            if form is not Format.JSON or isinstance(answer, Matches):
                write_check(checked, form)
            if not checked:
                raise typer.Exit(Exit.ERROR)


app.command(epilog=EXIT_CODES)(chain)
app.command(epilog=EXIT_CODES)(match)
app.command(epilog=EXIT_CODES)(logic)
app.command(epilog=EXIT_CODES)(sparql)
app.command(epilog=EXIT_CODES)(cypher)


@app.command(epilog=EXIT_CODES)
def explain(
    store: StoreOption,
    text: TextArgument = None,
    file: FileOption = None,
    language: LanguageOption = None,
    table: TableOption = None,
    param: ParamOption = None,
    graph: GraphOption = "default",
    user: UserOption = None,
    password: PasswordOption = None,
    database: DatabaseOption = None,
) -> None:
    """Show the plan of a program, or on a server the compiled query, and do not run it."""
    with guard():
        program = program_text(text, file)
    values = parameters(param or [])
    options: dict[str, Any] = {"language": language} | ({} if table is None else {"table": table})
    with guard(program), opened(store, graph, user, password, database) as at:
        typer.echo(at.prepare(program, **options).explain(**values) if values else at.explain(program, **options))


@app.command(epilog=EXIT_CODES)
def status(
    store: StoreOption,
    graph: GraphOption = "default",
    user: UserOption = None,
    password: PasswordOption = None,
    database: DatabaseOption = None,
    verify: Annotated[bool, typer.Option("--verify", help="Read every file of the store and compare its checksum.")] = False,
    form: Annotated[StatusFormat, typer.Option("--format", help="How the status is written.")] = StatusFormat.TABLE,
) -> None:
    """Say what a store holds, and with --verify whether its files are whole."""
    with guard(), opened(store, graph, user, password, database) as at:
        found = at.status(verify=verify)
        if form is StatusFormat.JSON:
            typer.echo(json.dumps(asdict(found), ensure_ascii=False, indent=2, default=json_value))
        else:
            typer.echo(str(found))
            if found.sources:
                typer.echo("")
                rows = [(source.name, source.format, source.location) for source in found.sources]
                write_table(("source", "format", "read from"), rows)


app.command(epilog=EXIT_CODES)(schema)


@app.command(epilog=EXIT_CODES)
def export(
    store: StoreOption,
    graph: GraphOption = "default",
    user: UserOption = None,
    password: PasswordOption = None,
    database: DatabaseOption = None,
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
    with guard(), opened(store, graph, user, password, database) as at:
        with catch_warnings(record=True) as said:
            simplefilter("always")
            at.export(sys.stdout if output is None else output, to=to.value, base=base)
        for one in said:
            complain(f"warning: {one.message}")


for command in (ask, delete, unload, abandon, convert, generate, guess, train_links, serve, mcp, verify):
    app.command(epilog=EXIT_CODES)(command)

app.command(epilog=EXIT_CODES)(browser)
app.command("map", epilog=EXIT_CODES)(map_database)
app.add_typer(evaluate)


def run() -> None:
    """Run the command line; an interrupt before a command has begun is told like any other."""
    if sys.stdout is None:  # closed by whoever started the process
        complain("error[file]: standard output is closed")
        sys.exit(Exit.ERROR)
    if isinstance(sys.stdout, TextIOWrapper):
        # Whatever the locale, so that what one machine exports another one loads.
        sys.stdout.reconfigure(encoding="utf-8")
    # Names of servers and passwords may stand in a file here; what the environment has goes before
    # it.
    if Path(".env").exists():
        from dotenv import load_dotenv

        load_dotenv(".env")
    try:
        app()
    except KeyboardInterrupt:
        complain("interrupted")
        sys.exit(Exit.INTERRUPTED)
