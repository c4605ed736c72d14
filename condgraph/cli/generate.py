"""The command `condgraph generate`: questions from one's own graph, as a file."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from condgraph.cli.arguments import LoginOptions, StoreOption, opened
from condgraph.cli.exits import guard
from condgraph.cli.groups import grouped
from condgraph.cli.options import file_of


class QuestionFormat(StrEnum):
    """How questions are written."""

    JSONL = "jsonl"
    JSON = "json"
    CSV = "csv"
    TEXT = "text"


@grouped
def generate(
    *,
    store: StoreOption,
    n: Annotated[int, typer.Option("-n", metavar="N", min=1, help="How many questions.")] = 10,
    seed: Annotated[int, typer.Option("--seed", metavar="SEED", help="The same seed gives the same questions.")] = 0,
    kinds: Annotated[
        list[str] | None, typer.Option("--kind", metavar="KIND", help="A kind of questions that is wanted; may be repeated.")
    ] = None,
    hops: Annotated[
        list[int] | None, typer.Option("--hops", metavar="N", min=1, help="A number of hops that is wanted; may be repeated.")
    ] = None,
    qualifiers: Annotated[
        float | None, typer.Option("--qualifiers", metavar="SHARE", min=0.0, max=1.0, help="The share of facts with qualifiers.")
    ] = None,
    login: LoginOptions,
    form: Annotated[
        QuestionFormat, typer.Option("--format", help="Everything a line, the data set's JSON, CSV, or question and answer.")
    ] = QuestionFormat.JSONL,
    shares: Annotated[
        bool, typer.Option("--shares", help="Tell the shares of kinds, hops, answers and categories on standard error.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="The file; standard output by default.")
    ] = None,
) -> None:
    """Make questions about a graph, with programs, queries, answers and choices (KQA Pro, section
    4). Why there are fewer than wanted is told on standard error.
    """
    with guard(), opened(store, login) as at:
        from condgraph.questions.record import write
        from condgraph.questions.splits import Distribution

        queries = form is not QuestionFormat.TEXT
        found = at.generate(n, seed=seed, kinds=kinds or None, hops=hops or None, qualifiers=qualifiers, queries=queries)
        counted = Distribution()
        questions = counted.counted(found) if shares else found
        file = file_of(output)
        if file is None:
            write(questions, sys.stdout, form.value)
        else:
            with file.open("w", encoding="utf-8", newline="") as stream:
                write(questions, stream, form.value)
        for warning in found.warnings:
            typer.echo(f"warning: {warning}", err=True)
        if shares:
            typer.echo(str(counted), err=True)
