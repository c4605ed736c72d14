"""Commands that show a store or write it to files: status, doctor, conflicts, timeline, versions, export,
schema, browser, map.
"""

from __future__ import annotations

import json
import sys
import zipfile
from dataclasses import asdict
from io import BytesIO
from pathlib import Path
from typing import Annotated, Any, Final, Literal
from warnings import catch_warnings, simplefilter

import typer

import condgraph
from condgraph.cli import arguments, complete
from condgraph.cli.exits import complain, guard
from condgraph.cli.render import json_value, printable, write_table
from condgraph.engine.errors import OptionError, UnsupportedError
from condgraph.overview.schema import MAX_ROWS, heading, sections

# -- status and export -------------------------------------------------------------------------------


#: What an export writes.
ExportFormat = Literal["jsonl", "turtle", "nquads", "rdf", "rdf12", "neo4j-import", "parquet"]


@arguments.grouped
def status(
    *,
    store: arguments.StoreOption,
    login: arguments.LoginOptions,
    verify: Annotated[bool, typer.Option("--verify", help="Read every file of the store and compare its checksum.")] = False,
    form: Annotated[arguments.TableOrJson, typer.Option("--format", help="Format of the status.")] = "table",
) -> None:
    """Show what a store contains, and with --verify whether its files are intact."""
    with guard(), arguments.opened(store, login) as at:
        status = at.status(verify=verify)
        if form == "json":
            typer.echo(json.dumps(asdict(status), ensure_ascii=False, indent=2, default=json_value))
        else:
            typer.echo(str(status))
            if status.sources:
                typer.echo("")
                rows = [(source.name, source.format, source.location) for source in status.sources]
                write_table(("source", "format", "read from"), rows)


# -- doctor ------------------------------------------------------------------------------------------


def doctor(*, form: Annotated[arguments.TableOrJson, typer.Option("--format", help="Format of the report.")] = "table") -> None:
    """Show what is installed for each part of condgraph, what is missing, and how to get it. The exit code
    is 1 if a required package is missing, or if a package has an unsuitable version.
    """
    from condgraph.doctor import examine

    with guard():
        report = examine()
        if form == "json":
            parts = [{**asdict(part), "ready": part.ready, "hint": part.hint} for part in report.parts]
            document = {"version": report.version, "python": report.python, "healthy": report.healthy, "parts": parts}
            typer.echo(json.dumps(document, ensure_ascii=False, indent=2))
        else:
            typer.echo(f"condgraph {report.version} on Python {report.python}\n")
            rows = []
            for part in report.parts:
                missing = ", ".join(str(package) for package in part.packages if package.state != "installed")
                rows.append((part.extra or "(always)", part.purpose, f"{missing}: {part.hint}" if missing else "ready"))
            write_table(("extra", "for", "state"), rows)
    if not report.healthy:
        raise typer.Exit(1)


# -- conflicts, times and versions --------------------------------------------------------------------------


@arguments.grouped
def conflicts(
    *,
    store: arguments.StoreOption,
    predicates: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PREDICATES...]", help="The predicates to examine; the declared ones by default."),
    ] = None,
    login: arguments.LoginOptions,
    certain: Annotated[bool, typer.Option("--certain", help="Only certain conflicts.")] = False,
    by_name: Annotated[
        bool, typer.Option("--by-name", help="Treat subjects with the same name as one, such as rows of two tables.")
    ] = False,
    propose: Annotated[
        bool, typer.Option("--propose", help="Find predicates that have one value at a time for nearly all subjects.")
    ] = False,
    declare: Annotated[bool, typer.Option("--declare", help="Declare the predicates as having one value at a time.")] = False,
    prefer: arguments.PreferOption = None,
    form: Annotated[arguments.TableOrJson, typer.Option("--format", help="Format of the conflicts.")] = "table",
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=0, help="Maximum conflicts; 0 for all.")] = 100,
    offset: Annotated[int, typer.Option("--offset", metavar="N", min=0, help="Number of conflicts to skip.")] = 0,
    timeout: arguments.TimeoutOption = None,
) -> None:
    """Show statements that cannot hold together: different values, at the same time, of a predicate that
    has only one.
    """
    with guard(), arguments.opened(store, login, read_only=not declare) as at:
        if declare:
            if not predicates:
                raise OptionError("--declare needs the names of predicates")
            at.declare(predicates, prefer=arguments.preference(prefer))
        elif prefer:
            raise OptionError("--prefer is for --declare", hint="`condgraph query --prefer` asks with a preference")
        result = at.conflicts(
            *(predicates or ()),
            certain=certain,
            by_name=by_name,
            propose=propose,
            limit=limit or None,
            offset=offset,
            timeout=timeout,
        )
        if form == "json":
            typer.echo(json.dumps(result.data(), ensure_ascii=False, indent=2, default=json_value))
        else:
            typer.echo("\n".join(map(printable, result.lines())))
        for warning in result.warnings:
            complain(f"warning: {printable(warning)}")


@arguments.grouped
def timeline(
    *,
    store: arguments.StoreOption,
    subject: Annotated[str | None, typer.Argument(metavar="[SUBJECT]", help="The subject, by its name or id.")] = None,
    login: arguments.LoginOptions,
    predicate: Annotated[str | None, typer.Option("--predicate", metavar="NAME", help="The predicate.")] = None,
    object_: Annotated[str | None, typer.Option("--object", metavar="NAME", help="The object, an entity.")] = None,
    before: Annotated[
        str | None, typer.Option("--before", metavar="WHAT", help="Only those that may come just before an entity or a time.")
    ] = None,
    after: Annotated[
        str | None, typer.Option("--after", metavar="WHAT", help="Only those that may come just after an entity or a time.")
    ] = None,
    certain: Annotated[bool, typer.Option("--certain", help="Only the one that certainly does.")] = False,
    form: Annotated[arguments.TableOrJson, typer.Option("--format", help="Format of the statements.")] = "table",
    timeout: arguments.TimeoutOption = None,
) -> None:
    """Show the statements of a subject, a predicate or an object in chronological order."""
    with guard(), arguments.opened(store, login) as at:
        line = at.timeline(subject, predicate, object_, timeout=timeout).part(before=before, after=after, certain=certain)
        if form == "json":
            typer.echo(json.dumps(line.data(), ensure_ascii=False, indent=2))
        else:
            for text in line.lines():
                typer.echo(printable(text))
        for warning in line.warnings:
            complain(f"warning: {printable(warning)}")


@arguments.grouped
def versions(
    *,
    store: arguments.StoreOption,
    login: arguments.LoginOptions,
    keep: Annotated[
        str | None,
        typer.Option(
            "--keep", metavar="RULE", help="From now on, store this many versions, or each version for this long: 10, '30 days'."
        ),
    ] = None,
    form: Annotated[arguments.TableOrJson, typer.Option("--format", help="Format of the versions.")] = "table",
) -> None:
    """Show the stored versions of a graph, or change how many are kept; `query --as-of` queries one of
    them.
    """
    with guard(), arguments.opened(store, login, read_only=keep is None) as at:
        if keep is not None:
            at.keep_versions(keep)
        with catch_warnings(record=True) as caught:
            simplefilter("always")
            graph_versions = at.versions()
        for warning in caught:
            complain(f"warning: {printable(str(warning.message))}")
        if form == "json":
            typer.echo(json.dumps([version.data() for version in graph_versions], ensure_ascii=False, indent=2))
        else:
            typer.echo("\n".join(printable(str(version)) for version in graph_versions))


@arguments.grouped
def export(
    *,
    store: arguments.StoreOption,
    login: arguments.LoginOptions,
    to: Annotated[ExportFormat, typer.Option("--to", help="The format.")] = "jsonl",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="The file (a folder, for neo4j-import and parquet); standard output by default."
        ),
    ] = None,
    base: Annotated[str | None, typer.Option("--base", metavar="IRI", help="The base of the graph's own IRIs in RDF.")] = None,
) -> None:
    """Write a whole graph with its sources in a form that `load` restores exactly, as Parquet files, as
    RDF, or for Neo4j's import tool.
    """
    output = arguments.file_of(output)
    if to in ("neo4j-import", "parquet") and output is None:
        raise typer.BadParameter(f"{to} writes a folder: give it with --output", param_hint="--to")
    with guard(), arguments.opened(store, login) as at:
        with catch_warnings(record=True) as caught:
            simplefilter("always")
            at.export(sys.stdout if output is None else output, to=to, base=base)
        for warning in caught:
            complain(f"warning: {warning.message}")


# -- schema ------------------------------------------------------------------------------------------


#: How a schema is written.
SchemaFormat = Literal["table", "json", "text"]


@arguments.grouped
def schema(
    *,
    store: arguments.StoreOption,
    login: arguments.LoginOptions,
    source: Annotated[
        str | None,
        typer.Option("--source", metavar="NAME", help="Only the content of this source.", autocompletion=complete.sources),
    ] = None,
    concept: Annotated[
        str | None,
        typer.Option(
            "--concept",
            metavar="NAME",
            help="Only predicates from or to members of this concept.",
            autocompletion=complete.concepts,
        ),
    ] = None,
    predicate: Annotated[
        str | None, typer.Option("--predicate", metavar="NAME", help="Only this predicate.", autocompletion=complete.predicates)
    ] = None,
    form: Annotated[SchemaFormat, typer.Option("--format", help="Format of the schema.")] = "table",
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=0, help="Maximum rows in each table; 0 for all.")] = MAX_ROWS,
    tokens: Annotated[int, typer.Option("--tokens", metavar="N", min=0, help="Maximum tokens of --format text.")] = 1000,
    cypher: Annotated[
        bool,
        typer.Option("--cypher", help="Show it as a property graph, in Cypher comments, for use above a query or in a prompt."),
    ] = False,
    timeout: arguments.TimeoutOption = None,
) -> None:
    """Show what can be asked about: sources, concepts, predicates, units, with counts and examples."""
    with guard(), arguments.opened(store, login, timeout=timeout) as at:
        if cypher and form != "table":
            raise OptionError("--cypher is a format of its own", hint="leave --format out")
        schema = at.schema(source=source, concept=concept, predicate=predicate, timeout=timeout)
        if cypher:
            if schema.note:
                complain(f"warning: {printable(schema.note)}")
            typer.echo(schema.cypher(limit or sys.maxsize))
        elif form == "json":
            typer.echo(json.dumps(schema.data(), ensure_ascii=False, indent=2))
        elif form == "text":
            typer.echo(schema.text(tokens))
        else:
            typer.echo(heading(schema))
            if schema.note:
                typer.echo(f"warning: {printable(schema.note)}", err=True)
            for name, columns, rows, more in sections(schema, limit):
                typer.echo("")
                write_table(columns, rows)
                if more:
                    typer.echo(f"and {more:,} more {name}")


# -- browser -----------------------------------------------------------------------------------------


#: The name of the style file in the folder.
STYLE: Final = "condgraph.grass"
#: The file with all queries: Neo4j Browser accepts one dropped file, but not several.
QUERIES: Final = "queries.zip"


@arguments.grouped
def browser(
    *,
    store: arguments.StoreOption,
    login: arguments.LoginOptions,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help="The folder, created if missing.")] = Path(
        "neo4j-browser"
    ),
    force: Annotated[bool, typer.Option("--force", help="Overwrite existing files.")] = False,
) -> None:
    """Write a style file and queries for Neo4j Browser: captions, colours for the most common concepts,
    and queries to explore the graph. Drop the style file onto Browser, then `queries.zip`.
    """
    with guard(), arguments.opened(store, login) as at:
        from condgraph.cypher import browser as made
        from condgraph.cypher.store import Neo4jStore
        from condgraph.remote_neo4j import Neo4jGraph

        if not isinstance(at, Neo4jGraph) or not isinstance(at.store, Neo4jStore):
            raise UnsupportedError(at.place, ["files for Neo4j Browser"], hint="they are for a graph of condgraph on Neo4j")
        labels = at.store.carried()
        texts = made.queries(at.schema(), login.graph, labels).items()
        queries = {f"{number:02}.cypher": f"// {title}\n{text}\n".encode() for number, (title, text) in enumerate(texts, 1)}
        _write(output, {STYLE: made.style(labels or ()).encode(), QUERIES: _packed(queries), **queries}, force=force)
        if labels is None:
            complain(
                "warning: entities carry no labels of concepts, so that they have one colour; "
                "`condgraph load --labels`, or graph.label(), gives them labels"
            )
        for label in labels or ():
            if not made.can_be_coloured(label):
                reason = "Browser's styles cannot name a label with a backslash"
                complain(f"warning: {label!r} has the colour of all entities: {reason}")
        typer.echo(f"{STYLE} and {QUERIES} ({len(queries)} queries) are in {output}: drop one, then the other onto Neo4j Browser")


def _packed(files: dict[str, bytes]) -> bytes:
    """Pack files into a ZIP archive. The same files always give the same bytes."""
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def _write(folder: Path, files: dict[str, bytes], *, force: bool) -> None:
    # Write all files or none: changes that a person has made must not be overwritten without asking.
    existing = next((name for name in files if (folder / name).exists()), None)
    if existing is not None and not force:
        raise OptionError(f"{folder / existing} already exists", hint="--force overwrites it, --output names another folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in files.items():
            (folder / name).write_bytes(data)
    except OSError as error:
        raise OptionError(f"{folder} cannot be written: {error.strerror}") from None


# -- map ---------------------------------------------------------------------------------------------


def map_database(
    address: Annotated[
        str,
        typer.Argument(
            metavar="ADDRESS",
            envvar=complete.STORE_VARIABLES,
            help="The address of a server: bolt://HOST:PORT, sparql+http://HOST/PATH.",
        ),
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="The file; standard output by default.")
    ] = None,
    mapping: Annotated[
        Path | None,
        typer.Option("--mapping", metavar="FILE", help="A mapping file that is read first, checked and completed."),
    ] = None,
    user: arguments.UserOption = None,
    password: arguments.PasswordOption = None,
    database: arguments.DatabaseOption = None,
    timeout: arguments.TimeoutOption = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
) -> None:
    """Write how condgraph reads a Neo4j database, or the triples of an endpoint, that it did not write
    itself, as a mapping file. Nothing is written to the server.
    """
    from condgraph.remote_native import NativeGraph
    from condgraph.remote_triples import TriplesGraph

    output = arguments.file_of(output)
    values = {"user": user, "password": password, "database": database, "mapping": mapping, "timeout": timeout}
    with guard():
        if not arguments.is_neo4j(address) and not address.lower().startswith("sparql+"):
            hint = "such as bolt://localhost:7687, or sparql+http://localhost:7878/query"
            raise OptionError(f"{address!r} is not an address of a Neo4j server", hint=hint)
        options: dict[str, Any] = {name: value for name, value in values.items() if value is not None}
        with condgraph.open(address, layout="native", **options) as graph:
            assert isinstance(graph, NativeGraph | TriplesGraph)
            text = graph.mapping_file(timeout=timeout)
        if output is None:
            typer.echo(text, nl=False)
            return
        try:
            # Do not overwrite a file that a person may have edited without asking.
            with output.open("w" if force else "x", encoding="utf-8", newline="\n") as file:
                file.write(text)
        except FileExistsError:
            raise OptionError(f"{output} already exists", hint="--force overwrites it, --mapping reads it first") from None
        except OSError as error:
            raise OptionError(f"{output} cannot be written: {error.strerror}") from None
