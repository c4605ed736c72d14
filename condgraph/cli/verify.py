"""The command `condgraph verify`: whether a graph supports a claim, and by which statements."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from condgraph.cli.arguments import FileOption, LoginOptions, StoreOption, TextArgument, opened
from condgraph.cli.exits import guard
from condgraph.cli.groups import grouped
from condgraph.cli.options import program_text
from condgraph.cli.render import printable


class VerdictFormat(StrEnum):
    """How a verdict is written."""

    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class RuleOptions:
    """What the graph is taken to know."""

    closed: Annotated[
        list[str] | None,
        typer.Option("--closed", metavar="PREDICATE", help="The graph has every statement of this predicate; may be repeated."),
    ] = None
    closed_world: Annotated[
        bool, typer.Option("--closed-world", help="The graph has every statement: what it does not state is not so.")
    ] = False
    single: Annotated[
        list[str] | None,
        typer.Option("--single", metavar="PREDICATE", help="This predicate has one value a subject; may be repeated."),
    ] = None


@grouped
def verify(
    *,
    store: StoreOption,
    text: TextArgument = None,
    file: FileOption = None,
    rules: RuleOptions,
    login: LoginOptions,
    llm: Annotated[
        str | None, typer.Option("--llm", metavar="MODEL", help="The model that reads a claim in words, like openai:MODEL.")
    ] = None,
    prompt: Annotated[
        Path | None,
        typer.Option("--prompt", metavar="FILE", exists=True, dir_okay=False, help="A prompt in place of the package's."),
    ] = None,
    nearest: Annotated[int, typer.Option("--nearest", metavar="N", min=0, help="Show so many similar subgraphs as well.")] = 0,
    form: Annotated[VerdictFormat, typer.Option("--format", help="How the verdict is written.")] = VerdictFormat.TEXT,
    timeout: Annotated[float | None, typer.Option("--timeout", metavar="SECONDS", min=0.0, help="The deadline.")] = None,
) -> None:
    """Say whether a claim is supported, refuted, or the graph has not enough facts. The claim is
    triples like (Nepal) -[NOT capital]-> (Pokhara), or with --llm a text.
    """
    with guard():
        claim = program_text(text, file)
    with guard(claim), opened(store, login) as at:
        closed = True if rules.closed_world else rules.closed or ()
        found = at.verify(claim, llm, closed=closed, single=rules.single or (), nearest=nearest, prompt=prompt, timeout=timeout)
        if form is VerdictFormat.JSON:
            typer.echo(json.dumps(found.data(), ensure_ascii=False, indent=2))
            return
        if llm is not None:
            typer.echo(f"Read as: {printable(str(found.claim))}")
        for line in found.text.splitlines():
            typer.echo(printable(line))
        for number, fact in enumerate(found.evidence, 1):
            typer.echo(f"[{number}] {printable(str(fact))}")
        for solution in found.nearest:
            typer.echo(f"nearest: {printable(str(solution))}")
