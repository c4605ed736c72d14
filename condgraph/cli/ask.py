"""The command `condgraph ask`: a question in words."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from condgraph.ask.records import Asked, AskStep
from condgraph.cli.arguments import LoginOptions, StoreOption, opened
from condgraph.cli.exits import complain, guard
from condgraph.cli.groups import grouped
from condgraph.cli.render import printable


class ViaName(StrEnum):
    """The language of the program."""

    AUTO = "auto"
    QUERY = "query"
    KOPL = "kopl"
    PATTERN = "pattern"


class AskFormat(StrEnum):
    """How the outcome is written."""

    TEXT = "text"
    JSON = "json"


@grouped
def ask(
    *,
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="The question, in plain words.")],
    store: StoreOption,
    llm: Annotated[
        str,
        typer.Option(
            "--llm",
            metavar="MODEL",
            envvar="CONDGRAPH_LLM",
            help="openai:MODEL, openai:MODEL@BASE_URL, langchain:PROVIDER:NAME or replay:FILE.",
        ),
    ],
    via: Annotated[ViaName, typer.Option("--via", help="The language that the model writes.")] = ViaName.AUTO,
    source: Annotated[str | None, typer.Option("--source", metavar="SOURCE", help="The source that is asked.")] = None,
    choose: Annotated[
        list[str] | None, typer.Option("--choose", metavar="NAME=KEY", help="What a name means; may be repeated.")
    ] = None,
    shown: Annotated[int | None, typer.Option("--shown", metavar="N", min=0, help="Demonstrations in a prompt.")] = None,
    demos: Annotated[
        Path | None,
        typer.Option("--demos", metavar="FILE", exists=True, dir_okay=False, help="Demonstrations, added to the graph."),
    ] = None,
    samples: Annotated[int, typer.Option("--samples", metavar="N", min=1, help="How many programs vote.")] = 1,
    retries: Annotated[int, typer.Option("--retries", metavar="N", min=0, help="How often a program is put right.")] = 3,
    calls: Annotated[int, typer.Option("--calls", metavar="N", min=1, help="The most calls of the model.")] = 8,
    prompt_tokens: Annotated[int, typer.Option("--prompt-tokens", metavar="N", min=1, help="The most tokens of a prompt.")] = 4000,
    seconds: Annotated[float, typer.Option("--timeout", metavar="SECONDS", min=0.001, help="The most seconds.")] = 60.0,
    seed: Annotated[int, typer.Option("--seed", metavar="SEED", help="The same seed asks the same.")] = 0,
    aware: Annotated[
        bool,
        typer.Option(
            "--aware", help="KoPL, held to what the entities of the question have, where the model's server takes grammars."
        ),
    ] = False,
    verbalise: Annotated[bool, typer.Option("--verbalise", help="Have the model say the answer.")] = False,
    transcript: Annotated[
        Path | None, typer.Option("--transcript", metavar="FILE", help="Record the calls, to be replayed with --llm replay:FILE.")
    ] = None,
    prompts: Annotated[Path | None, typer.Option("--prompts", metavar="FOLDER", help="Prompts of your own.")] = None,
    login: LoginOptions,
    steps: Annotated[bool, typer.Option("--steps", help="Tell each step on standard error.")] = False,
    form: Annotated[AskFormat, typer.Option("--format", help="The answer with its statements, or everything.")] = AskFormat.TEXT,
) -> None:
    """Ask in plain words. A language model writes a program; the program is run, and its answer is
    given with the statements that it rests on.
    """
    chosen = _chosen(choose or [])
    # Demonstrations that are added are kept with the graph.
    with guard(), opened(store, login, read_only=demos is None) as at:
        from condgraph.models.chat import Budget

        if demos is not None:
            at.demos.load(demos)

        def tell(step: AskStep) -> None:
            complain(printable(str(step)))

        found = at.ask(
            question, llm, via=via.value, source=source, choose=chosen, demos=shown, samples=samples, retries=retries,
            budget=Budget(prompt_tokens=prompt_tokens, calls=calls, seconds=seconds), seed=seed, verbalise=verbalise,
            transcript=transcript, prompts=prompts, aware=aware, on_step=tell if steps else None,
        )  # fmt: skip
        if form is AskFormat.JSON:
            typer.echo(json.dumps(found.data(), ensure_ascii=False))
        else:
            _write(found)
        for warning in found.warnings:
            complain(f"warning: {printable(warning)}")
        if found.status not in ("answered", "empty"):
            complain(f"{found.status}: no answer")
            raise typer.Exit(0 if found.status == "ambiguous" else 1)


def _chosen(choose: list[str]) -> dict[str, str]:
    """What names mean, by name."""
    chosen = {}
    for one in choose:
        name, mark, key = one.partition("=")
        if not mark:
            raise typer.BadParameter(f"{one!r} is not of the form NAME=KEY", param_hint="--choose")
        chosen[name] = key
    return chosen


def _write(found: Asked) -> None:
    """The answer with the statements that it rests on, or the choices that are open."""
    if found.text:
        typer.echo(printable(found.text))
        for number, one in enumerate(found.citations, start=1):
            typer.echo(f"  [{number}] {printable(one)}")
        return
    for choice in found.choices:
        typer.echo(f"which {choice.kind} is meant by {printable(repr(choice.name))}?")
        for option in choice.options:
            told = "; ".join(part for part in (option.about, ", ".join(option.texts[:3])) if part)
            typer.echo(f"  --choose {printable(repr(f'{choice.name}={option.key}'))}  {printable(told)}")
