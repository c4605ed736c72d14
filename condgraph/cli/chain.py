"""The command `condgraph chain`: a question answered by a chain of triples that a model writes, or a
text judged as one.
"""

from __future__ import annotations

import json
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from condgraph.cli.arguments import FileOption, LoginOptions, StoreOption, TextArgument, opened
from condgraph.cli.exits import Exit, complain, guard
from condgraph.cli.groups import grouped
from condgraph.cli.options import program_text
from condgraph.cli.render import json_value, printable

if TYPE_CHECKING:
    from condgraph.chains.reason import Reasoned
    from condgraph.chains.verify import Verdict


class ChainFormat(StrEnum):
    """How a chain is written."""

    TABLE = "table"
    JSON = "json"


@grouped
def chain(
    *,
    store: StoreOption,
    text: TextArgument = None,
    file: FileOption = None,
    llm: Annotated[
        str | None,
        typer.Option(
            "--llm",
            metavar="MODEL",
            help="Who writes the chain: llama.cpp@http://HOST:PORT, vllm:MODEL@http://HOST:PORT/v1, or openai:MODEL@ADDRESS.",
        ),
    ] = None,
    entity: Annotated[
        list[str] | None, typer.Option("--entity", "-e", metavar="NAME", help="An entity of the question; may be repeated.")
    ] = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Judge the text as a chain from the entities; no model is asked.")
    ] = False,
    max_steps: Annotated[int, typer.Option("--max-steps", metavar="N", min=1, help="The most triples.")] = 4,
    beams: Annotated[int, typer.Option("--beams", metavar="N", min=1, help="How many chains are kept.")] = 1,
    shown: Annotated[int, typer.Option("--shown", metavar="N", min=1, help="How many triples the model is shown.")] = 120,
    form: Annotated[ChainFormat, typer.Option("--format", help="How the answer is written.")] = ChainFormat.TABLE,
    evidence: Annotated[bool, typer.Option("--evidence", help="Show the statements of the chain with their sources.")] = False,
    timeout: Annotated[float | None, typer.Option("--timeout", metavar="SECONDS", min=0.0, help="The deadline.")] = None,
    login: LoginOptions,
) -> None:
    """Answer a question by a chain of triples that a model writes and cannot invent, or judge a text
    as one (--verify).
    """
    with guard():
        given = program_text(text, file)
    with guard(), opened(store, login) as at:
        if verify:
            _write_verdict(at.verify_chain(given, entity or [], timeout=timeout), form)
            return
        if llm is None:
            raise typer.BadParameter("a question needs a model", param_hint="--llm")
        found = at.reason(
            given, _backend(llm), entities=entity, max_steps=max_steps, beams=beams, shown=shown, timeout=timeout
        )  # fmt: skip
        for warning in found.warnings:
            complain(f"warning: {printable(warning)}")
        if form is ChainFormat.JSON:
            _write_json(found)
            return
        for line in [*found.texts, *map(str, found.chain)]:
            typer.echo(printable(line))
        if evidence:
            typer.echo("\nevidence:")
            for fact in found.evidence:
                typer.echo("  " + printable(str(fact)))


def _write_verdict(verdict: Verdict, form: ChainFormat) -> None:
    """Whether a text is a chain of the graph; ends with an error where it is none."""
    if form is ChainFormat.JSON:
        steps = [{"triple": one.text, "why": one.why, "reason": one.reason} for one in verdict.steps]
        typer.echo(json.dumps({"well_formed": bool(verdict), "why": verdict.why, "steps": steps}, ensure_ascii=False, indent=2))
    else:
        typer.echo(printable(str(verdict)))
    if not verdict:
        raise typer.Exit(Exit.ERROR)


def _write_json(found: Reasoned) -> None:
    document = {
        "answers": [json_value(one) for one in found.values],
        "chain": found.data(),
        "backend": found.backend,
        "model": found.model,
        "score": found.score,
        "combined": found.combined,
        "said": found.said,
    }
    typer.echo(json.dumps(document, ensure_ascii=False, indent=2, default=str))


def _backend(llm: str) -> Any:
    """A model by its text."""
    from condgraph.chains.backends.llamacpp import LlamaCpp
    from condgraph.chains.backends.vllm import Vllm

    if llm.startswith("llama.cpp@"):
        return LlamaCpp(llm.removeprefix("llama.cpp@"))
    if llm.startswith("vllm:") and "@" in llm:
        name, place = llm.removeprefix("vllm:").split("@", 1)
        return Vllm(place, name)
    return llm
