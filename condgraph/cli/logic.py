"""The command `condgraph logic`: logical queries, exact on the graph, or with a model of links."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from condgraph.cli.arguments import FileOption, LoginOptions, StoreOption, TextArgument, opened
from condgraph.cli.exits import guard
from condgraph.cli.groups import grouped
from condgraph.cli.options import program_text
from condgraph.cli.render import Format, printable, refuse_terminal, write_stream, write_table
from condgraph.engine.delimited import csv_line
from condgraph.languages.logic.structures import STRUCTURES
from condgraph.logic.answers import LogicAnswers


@dataclass(frozen=True, slots=True)
class AskedOptions:
    """What is asked for."""

    k: Annotated[int, typer.Option("-k", metavar="N", min=1, help="How many answers.")] = 10
    every: Annotated[bool, typer.Option("--all", help="All answers, instead of -k.")] = False
    structure: Annotated[
        str | None,
        typer.Option("--structure", metavar="NAME", help=f"{', '.join(STRUCTURES)}: TEXT is its branches, as JSON."),
    ] = None
    model: Annotated[
        Path | None,
        typer.Option("--model", metavar="FILE", exists=True, help="A model of links, which adds answers by predicted edges."),
    ] = None
    alpha: Annotated[float, typer.Option("--alpha", metavar="NUMBER", min=0.0, help="Scales what is negated.")] = 1.0
    epsilon: Annotated[
        float | None,
        typer.Option("--epsilon", metavar="SCORE", min=0.0, help="The least score of a predicted edge; 0.001 by default."),
    ] = None


@grouped
def logic(
    *,
    store: StoreOption,
    text: TextArgument = None,
    file: FileOption = None,
    asked: AskedOptions,
    login: LoginOptions,
    form: Annotated[Format, typer.Option("--format", help="How the answers are written.")] = Format.TABLE,
    explain: Annotated[bool, typer.Option("--explain", help="Show how each answer came about.")] = False,
    timeout: Annotated[float | None, typer.Option("--timeout", metavar="SECONDS", min=0.0, help="The deadline.")] = None,
) -> None:
    """Answer a logical query, like ?x : exists ?v. capital(?x, ?v) and not country(?v, "France")."""
    with guard():
        program = program_text(text, file)
    with guard(program), opened(store, login) as at:
        query, branches = (program, ()) if asked.structure is None else (asked.structure, _branches(program))
        found = at.logic(
            query,
            *branches,
            model=asked.model,
            k=None if asked.every else asked.k,
            alpha=asked.alpha,
            epsilon=asked.epsilon,
            explain=explain or form is Format.JSON,
            timeout=timeout,
        )
        write_answers(found, form, explain=explain)


def _branches(text: str) -> list[object]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list):
        raise typer.BadParameter('branches are a JSON list, such as [["A", "r"], ["B", "s"]]', param_hint="--structure")
    return found


def write_answers(found: LogicAnswers, form: Format, *, explain: bool = False) -> None:
    """Write answers to standard output, and warnings to standard error."""
    refuse_terminal(form)
    for warning in found.warnings:
        typer.echo(f"warning: {printable(warning)}", err=True)
    if form is Format.JSON:
        document = {"query": found.query, "answers": found.data(), "more": found.more, "warnings": found.warnings}
        typer.echo(json.dumps(document, ensure_ascii=False, indent=2))
        return
    if form is Format.ARROW:
        write_stream(found.to_arrow())
        return
    columns: tuple[str, ...] = ("answer", "score", "known by", "id")
    rows: list[tuple[str, ...]] = [
        (one.entity.name, f"{one.score:.9g}", "observed" if one.observed else "predicted", one.entity.id) for one in found
    ]
    if form is Format.CSV:
        sys.stdout.writelines(map(csv_line, (columns, *rows)))
    elif rows:
        # Names that repeat are told apart by their ids.
        shown = len(columns) if len({row[0] for row in rows}) < len(rows) else -1
        write_table(columns[:shown], [row[:shown] for row in rows])
    if explain:
        typer.echo("", err=form is not Format.TABLE)
        for one in found:
            for line in one.explain().splitlines():
                typer.echo(printable(line), err=form is not Format.TABLE)
