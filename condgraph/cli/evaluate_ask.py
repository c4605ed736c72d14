"""The command `condgraph evaluate ask`: how well a model answers questions whose answers are known."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from condgraph.cli.arguments import LoginOptions, StoreOption, opened
from condgraph.cli.exits import guard
from condgraph.cli.groups import grouped
from condgraph.cli.progress import counting_progress
from condgraph.cli.render import printable, write_table

if TYPE_CHECKING:
    from condgraph.evaluate import Row
    from condgraph.models.chat import ChatModel


class QuestionsFormat(StrEnum):
    """How questions are written."""

    AUTO = "auto"
    JSONL = "jsonl"
    METAQA = "metaqa"
    WTQ = "wtq"
    CRONQUESTIONS = "cronquestions"
    PATHQUESTIONS = "pathquestions"
    MOVIES = "movies"


@grouped
def ask(
    *,
    questions: Annotated[
        Path,
        typer.Argument(
            metavar="QUESTIONS", exists=True, dir_okay=False, help="Lines of question, answers and source, or a data set."
        ),
    ],
    store: StoreOption,
    llm: Annotated[str, typer.Option("--llm", metavar="MODEL", help="openai:MODEL, openai:MODEL@BASE_URL, replay:FILE, ...")],
    form: Annotated[
        QuestionsFormat, typer.Option("--format", help="How the questions are written; recognised by default.")
    ] = QuestionsFormat.AUTO,
    demos: Annotated[
        Path | None,
        typer.Option("--demos", metavar="FILE", exists=True, dir_okay=False, help="Demonstrations, added to the graph."),
    ] = None,
    prompts: Annotated[
        Path | None, typer.Option("--prompts", metavar="FOLDER", exists=True, file_okay=False, help="Prompts of your own.")
    ] = None,
    shown: Annotated[int | None, typer.Option("--shown", metavar="N", min=0, help="Demonstrations in a prompt.")] = None,
    via: Annotated[str, typer.Option("--via", metavar="LANGUAGE", help="auto, query, kopl or pattern.")] = "auto",
    sample: Annotated[
        int | None, typer.Option("--sample", metavar="N", min=1, help="Only so many questions, drawn by --seed.")
    ] = None,
    samples: Annotated[int, typer.Option("--samples", metavar="N", min=1, help="Programs that vote, a question.")] = 1,
    retries: Annotated[int, typer.Option("--retries", metavar="N", min=0, help="How often a program is put right.")] = 3,
    seed: Annotated[int, typer.Option("--seed", metavar="SEED", help="The same seed asks the same.")] = 0,
    transcript: Annotated[
        Path | None, typer.Option("--transcript", metavar="FILE", help="Record the calls; those it holds are not made again.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Totals and a row a question, as JSON.")
    ] = None,
    login: LoginOptions,
    timeout: Annotated[float | None, typer.Option("--timeout", metavar="SECONDS", min=0.0, help="The deadline of it all.")] = None,
) -> None:
    """Ask questions whose answers are known, and say how many are right, beside a control without a
    model and the figures of papers.
    """
    # Demonstrations that are added are kept with the graph.
    with guard(), opened(store, login, read_only=demos is None) as at:
        from condgraph.evaluate import evaluate_ask, read_cases

        cases = read_cases(questions, None if form is QuestionsFormat.AUTO else form.value)
        if sample is not None:
            cases = cases.sample(sample, seed)
        model = _model(llm, transcript)
        if demos is not None:
            at.demos.load(demos)
        done = 0
        with counting_progress("questions", quiet=False) as advance:

            def tell(row: Row) -> None:
                nonlocal done
                done += 1
                if advance is not None:
                    advance(done, len(cases))

            report = evaluate_ask(
                at,
                cases,
                model,
                on_row=tell,
                timeout=timeout,
                via=via,
                demos=shown,
                prompts=prompts,
                samples=samples,
                retries=retries,
                seed=seed,
            )
        columns, rows = report.table()
        write_table(columns, [tuple(row) for row in rows])
        for note in report.notes():
            typer.echo(printable(note))
        if output is not None:
            report.write(str(output))


def _model(llm: str, transcript: Path | None) -> ChatModel:
    """The model that is asked, recorded where that is wanted."""
    from condgraph.models.adapters import model_of
    from condgraph.models.transcript import Recording

    model: ChatModel = model_of(llm)
    return model if transcript is None else Recording(model, transcript, reuse=True)
