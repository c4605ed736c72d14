"""Commands that run a program, or show what would run."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from condgraph.cli.arguments import (
    FileOption,
    LanguageOption,
    LoginOptions,
    ParamOption,
    StoreOption,
    TableOption,
    TextArgument,
    opened,
)
from condgraph.cli.exits import Exit, guard
from condgraph.cli.groups import grouped
from condgraph.cli.match import write_matches
from condgraph.cli.options import parameters, program_text
from condgraph.cli.render import Format, write_answer, write_check
from condgraph.patterns.matches import Matches


class OnUnknown(StrEnum):
    """What a name that the graph does not have leads to."""

    ERROR = "error"
    EMPTY = "empty"


class EngineName(StrEnum):
    """What answers on a local graph."""

    SNAPSHOT = "snapshot"
    SPARQL = "sparql"


@grouped
def query(
    *,
    store: StoreOption,
    text: TextArgument = None,
    file: FileOption = None,
    language: LanguageOption = None,
    table: TableOption = None,
    param: ParamOption = None,
    login: LoginOptions,
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
    with guard(program), opened(store, login) as at:
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


@grouped
def explain(
    *,
    store: StoreOption,
    text: TextArgument = None,
    file: FileOption = None,
    language: LanguageOption = None,
    table: TableOption = None,
    param: ParamOption = None,
    login: LoginOptions,
) -> None:
    """Show the plan of a program, or on a server the compiled query, and do not run it."""
    with guard():
        program = program_text(text, file)
    values = parameters(param or [])
    options: dict[str, Any] = {"language": language} | ({} if table is None else {"table": table})
    with guard(program), opened(store, login) as at:
        typer.echo(at.prepare(program, **options).explain(**values) if values else at.explain(program, **options))
