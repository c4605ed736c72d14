"""Commands that use a language model: ask, chat, chain, verify."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from condgraph.ask.records import Asked, AskStep, AskText, Parts, Via
from condgraph.cli import arguments
from condgraph.cli.exits import Exit, complain, guard, message_of
from condgraph.cli.render import json_value, printable
from condgraph.engine.errors import OptionError

if TYPE_CHECKING:
    from condgraph.chains.reason import Reasoned
    from condgraph.chains.walk import Verdict


# -- ask ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AskingOptions:
    """Options for asking questions."""

    llm: Annotated[
        str,
        typer.Option(
            "--llm",
            metavar="MODEL",
            envvar="CONDGRAPH_LLM",
            help="openai:MODEL, openai:MODEL@BASE_URL, langchain:PROVIDER:NAME or replay:FILE.",
        ),
    ]
    via: Via = "auto"
    source: str | None = None
    choose: Annotated[
        list[str] | None, typer.Option("--choose", metavar="NAME=KEY", help="The meaning of a name; may be repeated.")
    ] = None
    shown: Annotated[int | None, typer.Option("--shown", metavar="N", min=0, help="Number of demonstrations in a prompt.")] = None
    demos: Annotated[
        Path | None,
        typer.Option("--demos", metavar="FILE", exists=True, dir_okay=False, help="Demonstrations to add to the graph."),
    ] = None
    samples: int = 1
    retries: Annotated[int, typer.Option("--retries", metavar="N", min=0, help="Maximum corrections of a program.")] = 3
    parts: Parts = "never"
    calls: Annotated[int, typer.Option("--calls", metavar="N", min=1, help="Maximum calls of the model.")] = 8
    prompt_tokens: Annotated[int, typer.Option("--prompt-tokens", metavar="N", min=1, help="Maximum tokens in a prompt.")] = 5000
    excerpt_tokens: Annotated[
        int | None, typer.Option("--excerpt-tokens", metavar="N", min=0, help="Maximum tokens for the excerpt of the graph.")
    ] = None
    seconds: Annotated[float, typer.Option("--timeout", metavar="SECONDS", min=0.001, help="Maximum time in seconds.")] = 60.0
    seed: Annotated[int, typer.Option("--seed", metavar="SEED", help="Seed of the requests to the model.")] = 0
    aware: bool = False
    verbalise: bool = False
    transcript: Annotated[
        Path | None, typer.Option("--transcript", metavar="FILE", help="Record the calls, to replay them with --llm replay:FILE.")
    ] = None
    prompts: Annotated[Path | None, typer.Option("--prompts", metavar="FOLDER", help="Your own prompts.")] = None
    steps: Annotated[bool, typer.Option("--steps", help="Report each step on standard error.")] = False
    stream: Annotated[bool, typer.Option("--stream", help="Like --steps, with the model's text as it arrives.")] = False
    form: Annotated[arguments.TextOrJson, typer.Option("--format", help="The answer with its statements, or everything.")] = "text"

    def options(self) -> dict[str, Any]:
        """Return the options for `Graph.ask`."""
        from condgraph.models.chat import Budget

        return {
            "via": self.via, "source": self.source, "choose": _chosen(self.choose or []), "demos": self.shown,
            "samples": self.samples, "retries": self.retries, "seed": self.seed, "verbalise": self.verbalise,
            "parts": self.parts,
            "budget": Budget(prompt_tokens=self.prompt_tokens, calls=self.calls, seconds=self.seconds),
            "transcript": self.transcript, "prompts": self.prompts, "aware": self.aware, "excerpt_tokens": self.excerpt_tokens,
            "on_step": partial(_write_step, streams=self.stream) if self.steps or self.stream else None,
            "on_text": _write_text if self.stream else None,
        }  # fmt: skip


@arguments.grouped
def ask(
    *,
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="The question, in plain words.")],
    store: arguments.StoreOption,
    asking: AskingOptions,
    login: arguments.LoginOptions,
) -> None:
    """Ask in plain words. A language model writes a program, which is run; its answer is shown with the
    statements that it is based on.
    """
    options = asking.options()
    # Added demonstrations are stored with the graph.
    with guard(), arguments.opened(store, login, read_only=asking.demos is None) as at:
        if asking.demos is not None:
            at.demos.load(asking.demos)
        code = _report(at.ask(question, asking.llm, **options), asking.form)
        if code is not Exit.ANSWER:
            raise typer.Exit(code)


@arguments.grouped
def chat(*, store: arguments.StoreOption, asking: AskingOptions, login: arguments.LoginOptions) -> None:
    """Ask questions one after the other, one per line of standard input. A question may refer to earlier
    answers, such as "and his wife?". The line "/choose NAME=KEY" asks the last question again with a
    meaning for a name, and "/clear" starts a new conversation. The exit code is that of the least
    certain answer.
    """
    options = asking.options()
    with guard(), arguments.opened(store, login, read_only=asking.demos is None) as at:
        if asking.demos is not None:
            at.demos.load(asking.demos)
        chat = at.chat(asking.llm, **options)
        codes = {"": Exit.ANSWER}
        for line in _lines():
            command, _, rest = line.partition(" ")
            choose: dict[str, str] = {}
            if command == "/clear":
                chat.clear()
                continue
            if command == "/choose":
                if not chat.turns or "=" not in rest:
                    complain("/choose NAME=KEY follows a question")
                    codes[line] = Exit.USAGE
                    continue
                name, _, key = rest.partition("=")
                choose, line = {name: key}, chat.turns[-1].question
            try:
                outcome = chat.ask(line, choose=choose)
            except OptionError as error:
                complain(message_of(error))
                codes[line] = Exit.USAGE
                continue
            # If a question is asked again, the code of its last answer counts.
            codes[line] = _report(outcome, asking.form)
        if worst := next((code for code in (Exit.ERROR, Exit.USAGE, Exit.UNSURE) if code in codes.values()), None):
            raise typer.Exit(worst)


def _lines() -> Iterator[str]:
    """Yield the non-empty lines of standard input, with a prompt before each at a terminal."""
    at_terminal = sys.stdin.isatty()
    while True:
        if at_terminal:
            typer.echo("> ", nl=False, err=True)
        line = sys.stdin.readline()
        if not line:
            return
        if line.strip():
            yield line.strip()


def _write_step(step: AskStep, *, streams: bool) -> None:
    if streams and step.name in ("write", "say"):
        complain("")
    complain(printable(str(step)))


def _write_text(piece: AskText) -> None:
    """Write a piece of the model's text. Only the first sample is shown, since several would be mixed up."""
    if piece.sample == 0:
        between = " " if piece.step == "say" and not piece.begins else ""
        complain(between + "\n".join(map(printable, piece.text.split("\n"))), nl=False)


def _report(outcome: Asked, form: arguments.TextOrJson) -> Exit:
    """Write an outcome and return its exit code."""
    if form == "json":
        typer.echo(json.dumps(outcome.data(), ensure_ascii=False))
    else:
        for reference in outcome.references:
            typer.echo(f"({printable(str(reference))})")
        _write(outcome)
    for warning in outcome.warnings:
        complain(f"warning: {printable(warning)}")
    if outcome.status == "answered":
        return Exit.ANSWER
    complain(_STATUSES.get(outcome.status, f"{outcome.status}: no answer"))
    return Exit.UNSURE if outcome.status in _STATUSES else Exit.ERROR


#: Messages for answers that are not certain.
_STATUSES: Final = {
    "doubtful": "doubtful: the answer may be to another question, as the first line says",
    "empty": "empty: the model's program returned nothing, which does not prove that nothing exists",
    "ambiguous": "ambiguous: a name has several meanings with different answers, see --choose",
}


def _chosen(choose: list[str]) -> dict[str, str]:
    """Return the meanings of names by name."""
    chosen = {}
    for item in choose:
        name, mark, key = item.partition("=")
        if not mark:
            raise typer.BadParameter(f"{item!r} is not of the form NAME=KEY", param_hint="--choose")
        chosen[name] = key
    return chosen


def _write(found: Asked) -> None:
    """Write the answer with the statements that it is based on, or the open choices."""
    if found.text:
        typer.echo(printable(found.text))
        for number, item in enumerate(found.citations, start=1):
            typer.echo(f"  [{number}] {printable(item)}")
        return
    for choice in found.choices:
        typer.echo(f"which {choice.kind} is meant by {printable(repr(choice.name))}?")
        for option in choice.options:
            about = "; ".join(part for part in (option.about, ", ".join(option.texts[:3])) if part)
            typer.echo(f"  --choose {printable(repr(f'{choice.name}={option.key}'))}  {printable(about)}")


# -- chain -------------------------------------------------------------------------------------------


@arguments.grouped
def chain(
    *,
    store: arguments.StoreOption,
    text: arguments.TextArgument = None,
    file: arguments.FileOption = None,
    llm: Annotated[
        str | None,
        typer.Option(
            "--llm",
            metavar="MODEL",
            help="The writer of the chain: llama.cpp@http://HOST:PORT, vllm:MODEL@http://HOST:PORT/v1, or openai:MODEL@ADDRESS.",
        ),
    ] = None,
    entity: Annotated[
        list[str] | None, typer.Option("--entity", "-e", metavar="NAME", help="An entity of the question; may be repeated.")
    ] = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Check that the text is a chain from the entities, without a model.")
    ] = False,
    max_steps: Annotated[int, typer.Option("--max-steps", metavar="N", min=1, help="Maximum triples.")] = 4,
    beams: Annotated[int, typer.Option("--beams", metavar="N", min=1, help="Number of chains kept after each step.")] = 1,
    shown: Annotated[int, typer.Option("--shown", metavar="N", min=1, help="Number of triples that the model sees.")] = 120,
    form: Annotated[arguments.TableOrJson, typer.Option("--format", help="Format of the answer.")] = "table",
    evidence: Annotated[bool, typer.Option("--evidence", help="Show the statements of the chain with their sources.")] = False,
    timeout: arguments.TimeoutOption = None,
    login: arguments.LoginOptions,
) -> None:
    """Answer a question by a chain of triples, which a model writes but cannot invent. With --verify,
    check whether a text is such a chain.
    """
    with guard():
        question = arguments.program_text(text, file)
    with guard(), arguments.opened(store, login, timeout=timeout) as at:
        if verify:
            _write_verdict(at.verify_chain(question, entity or [], timeout=timeout), form)
            return
        if llm is None:
            raise typer.BadParameter("a question needs a model", param_hint="--llm")
        chain = at.reason(
            question, _backend(llm), entities=entity, max_steps=max_steps, beams=beams, shown=shown, timeout=timeout
        )  # fmt: skip
        for warning in chain.warnings:
            complain(f"warning: {printable(warning)}")
        if form == "json":
            _write_json(chain)
            return
        for line in [*chain.texts, *map(str, chain.chain)]:
            typer.echo(printable(line))
        if evidence:
            typer.echo("\nevidence:")
            for fact in chain.evidence:
                typer.echo("  " + printable(str(fact)))


def _write_verdict(verdict: Verdict, form: arguments.TableOrJson) -> None:
    """Write whether a text is a chain of the graph. If not, exit with an error."""
    if form == "json":
        steps = [{"triple": step.text, "why": step.why, "reason": step.reason} for step in verdict.steps]
        typer.echo(json.dumps({"well_formed": bool(verdict), "why": verdict.why, "steps": steps}, ensure_ascii=False, indent=2))
    else:
        typer.echo(printable(str(verdict)))
    if not verdict:
        raise typer.Exit(Exit.ERROR)


def _write_json(found: Reasoned) -> None:
    document = {
        "answers": [json_value(value) for value in found.values],
        "chain": found.data(),
        "backend": found.backend,
        "model": found.model,
        "score": found.score,
        "combined": found.combined,
        "said": found.said,
    }
    typer.echo(json.dumps(document, ensure_ascii=False, indent=2, default=str))


def _backend(llm: str) -> Any:
    """Return the model for a text."""
    from condgraph.chains.backends.llamacpp import LlamaCpp
    from condgraph.chains.backends.vllm import Vllm

    if llm.startswith("llama.cpp@"):
        return LlamaCpp(llm.removeprefix("llama.cpp@"))
    if llm.startswith("vllm:") and "@" in llm:
        name, place = llm.removeprefix("vllm:").split("@", 1)
        return Vllm(place, name)
    return llm


# -- verify ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RuleOptions:
    """What the graph is assumed to know."""

    closed: Annotated[
        list[str] | None,
        typer.Option("--closed", metavar="PREDICATE", help="The graph has every statement of this predicate; may be repeated."),
    ] = None
    closed_world: Annotated[
        bool, typer.Option("--closed-world", help="The graph has every statement: what it does not state is false.")
    ] = False
    single: Annotated[
        list[str] | None,
        typer.Option("--single", metavar="PREDICATE", help="This predicate has one value per subject; may be repeated."),
    ] = None


@arguments.grouped
def verify(
    *,
    store: arguments.StoreOption,
    text: arguments.TextArgument = None,
    file: arguments.FileOption = None,
    rules: RuleOptions,
    login: arguments.LoginOptions,
    llm: Annotated[
        str | None, typer.Option("--llm", metavar="MODEL", help="The model that reads a claim in words, such as openai:MODEL.")
    ] = None,
    prompt: Annotated[
        Path | None,
        typer.Option(
            "--prompt", metavar="FILE", exists=True, dir_okay=False, help="Your own prompt, instead of the one of the package."
        ),
    ] = None,
    nearest: Annotated[int, typer.Option("--nearest", metavar="N", min=0, help="Also show this many similar subgraphs.")] = 0,
    form: Annotated[arguments.TextOrJson, typer.Option("--format", help="Format of the verdict.")] = "text",
    timeout: arguments.TimeoutOption = None,
) -> None:
    """Check whether a claim is supported, refuted, or not decided by the facts of the graph. The claim is
    written as triples like (Nepal) -[NOT capital]-> (Pokhara), or with --llm as text.
    """
    with guard():
        claim = arguments.program_text(text, file)
    with guard(claim), arguments.opened(store, login, timeout=timeout) as at:
        closed = True if rules.closed_world else rules.closed or ()
        verdict = at.verify(claim, llm, closed=closed, single=rules.single or (), nearest=nearest, prompt=prompt, timeout=timeout)
        if form == "json":
            typer.echo(json.dumps(verdict.data(), ensure_ascii=False, indent=2))
            return
        if llm is not None:
            typer.echo(f"Read as: {printable(str(verdict.claim))}")
        for line in verdict.text.splitlines():
            typer.echo(printable(line))
        for number, fact in enumerate(verdict.evidence, 1):
            typer.echo(f"[{number}] {printable(str(fact))}")
        for solution in verdict.nearest:
            typer.echo(f"nearest: {printable(str(solution))}")
