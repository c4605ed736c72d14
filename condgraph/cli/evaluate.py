"""Commands for research: evaluate ask, evaluate logic, generate, train-links."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from condgraph.cli.arguments import LoginOptions, StoreOption, TableOrJson, file_of, grouped, opened
from condgraph.cli.exits import EXIT_CODES, guard
from condgraph.cli.render import printable, write_table
from condgraph.logic.evaluation.sampler import By, Needed
from condgraph.progress import bar

if TYPE_CHECKING:
    from condgraph.evaluate import Row
    from condgraph.links.ranks import Ranking
    from condgraph.models.chat import ChatModel


# -- evaluate ask ------------------------------------------------------------------------------------


#: How questions are written.
QuestionsFormat = Literal["auto", "jsonl", "metaqa", "wtq", "cronquestions", "pathquestions", "movies"]


@grouped
def evaluate_ask(
    *,
    questions: Annotated[
        Path,
        typer.Argument(
            metavar="QUESTIONS", exists=True, dir_okay=False, help="Lines of question, answers and source, or a data set."
        ),
    ],
    store: StoreOption,
    llm: Annotated[str, typer.Option("--llm", metavar="MODEL", help="openai:MODEL, openai:MODEL@BASE_URL, replay:FILE, ...")],
    form: Annotated[QuestionsFormat, typer.Option("--format", help="Format of the questions; recognised by default.")] = "auto",
    demos: Annotated[
        Path | None,
        typer.Option("--demos", metavar="FILE", exists=True, dir_okay=False, help="Demonstrations to add to the graph."),
    ] = None,
    prompts: Annotated[
        Path | None, typer.Option("--prompts", metavar="FOLDER", exists=True, file_okay=False, help="Your own prompts.")
    ] = None,
    shown: Annotated[int | None, typer.Option("--shown", metavar="N", min=0, help="Number of demonstrations in a prompt.")] = None,
    via: Annotated[str, typer.Option("--via", metavar="LANGUAGE", help="auto, query, kopl, cypher or pattern.")] = "auto",
    sample: Annotated[
        int | None, typer.Option("--sample", metavar="N", min=1, help="Only this many questions, drawn with --seed.")
    ] = None,
    samples: Annotated[
        int, typer.Option("--samples", metavar="N", min=1, help="Number of programs that vote on each question.")
    ] = 1,
    retries: Annotated[int, typer.Option("--retries", metavar="N", min=0, help="Maximum corrections of a program.")] = 3,
    seed: Annotated[int, typer.Option("--seed", metavar="SEED", help="Seed of the requests to the model.")] = 0,
    transcript: Annotated[
        Path | None, typer.Option("--transcript", metavar="FILE", help="Record the calls; recorded calls are not repeated.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Totals and one row per question, as JSON.")
    ] = None,
    login: LoginOptions,
    timeout: Annotated[
        float | None, typer.Option("--timeout", metavar="SECONDS", min=0.0, help="Deadline of the whole run.")
    ] = None,
) -> None:
    """Ask questions with known answers, and report how many answers are right, next to a control without a
    model and the figures of papers.
    """
    # Added demonstrations are stored with the graph.
    with guard(), opened(store, login, read_only=demos is None) as at:
        from condgraph.evaluate import evaluate_ask, read_cases

        cases = read_cases(questions, None if form == "auto" else form)
        if sample is not None:
            cases = cases.sample(sample, seed)
        model = _model(llm, transcript)
        if demos is not None:
            at.demos.load(demos)
        done = 0
        with bar() as advance:

            def count_row(row: Row) -> None:
                nonlocal done
                done += 1
                if advance is not None:
                    advance(done, len(cases))

            report = evaluate_ask(
                at,
                cases,
                model,
                on_row=count_row,
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
    """Return the model. Its calls are recorded if a transcript is given."""
    from condgraph.models.adapters import model_of
    from condgraph.models.transcript import Recording

    model: ChatModel = model_of(llm)
    return model if transcript is None else Recording(model, transcript, reuse=True)


# -- evaluate logic ----------------------------------------------------------------------------------


@grouped
def evaluate_logic(
    *,
    store: StoreOption,
    held: Annotated[
        Path,
        typer.Option(
            "--held",
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="Edges missing from the graph: id, predicate, id; tabs.",
        ),
    ],
    model: Annotated[
        Path | None,
        typer.Option(
            "--model",
            "-m",
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="The link prediction model, a .npz file; without it, the graph alone is used.",
        ),
    ] = None,
    queries: Annotated[
        Path | None,
        typer.Option(
            "--queries", metavar="FILE", exists=True, dir_okay=False, help="Queries with answers, JSON lines; sampled by default."
        ),
    ] = None,
    validation: Annotated[
        Path | None,
        typer.Option(
            "--validation", metavar="FILE", exists=True, dir_okay=False, help="Queries that determine alpha and the threshold."
        ),
    ] = None,
    paired: Annotated[
        bool, typer.Option("--paired", help="Relations of the queries are numbers, odd ones inverses (BetaE).")
    ] = False,
    n: Annotated[int, typer.Option("-n", metavar="N", min=1, help="Number of sampled queries of each structure.")] = 50,
    kinds: Annotated[
        list[str] | None, typer.Option("--kind", metavar="NAME", help="A structure to sample; may be repeated.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", metavar="SEED", help="The same seed samples the same queries.")] = 0,
    by: Annotated[
        By, typer.Option("--by", help="Sample queries as BetaE does, or so that half of them end at a missing edge.")
    ] = "pair",
    needed: Annotated[
        Needed,
        typer.Option("--needed", help="Sample hard answers that need any missing edge, or only missing ones."),
    ] = "any",
    alpha: Annotated[
        float | None,
        typer.Option("--alpha", metavar="A", help="Scale of negated scores; chosen on validation queries, otherwise 1."),
    ] = None,
    epsilon: Annotated[float | None, typer.Option("--epsilon", metavar="E", help="Minimum score of a predicted edge.")] = None,
    cap: Annotated[int | None, typer.Option("--cap", metavar="N", min=1, help="Maximum predicted edges per row.")] = None,
    write_queries: Annotated[
        Path | None, typer.Option("--write-queries", metavar="FILE", help="Write the sampled queries.")
    ] = None,
    form: Annotated[TableOrJson, typer.Option("--format", help="A table, or everything as JSON.")] = "table",
    timeout: Annotated[float | None, typer.Option("--timeout", metavar="S", help="Deadline of the whole run, in seconds.")] = None,
    login: LoginOptions,
) -> None:
    """Measure how well logical queries are answered on a graph with missing edges: ranks, Hits@k,
    explanations that hold, and ranks by how many missing edges an answer needs.
    """
    with guard(), opened(store, login) as at:
        from condgraph.links.embeddings import model_of
        from condgraph.logic.evaluation.sampler import read_cases, read_triples, write_cases

        # Report unreadable files before anything takes long.
        link_model = None if model is None else model_of(model)
        missing = list(read_triples(held))
        validation_cases = list(read_cases(validation, paired=paired)) if validation else []
        if queries is None:
            sampled = at.sample_queries(missing, n, kinds=kinds, seed=seed, by=by, needed=needed, timeout=timeout)
            cases = list(sampled.cases)
            for warning in sampled.warnings:
                typer.echo(f"warning: {warning}", err=True)
            if write_queries is not None:
                write_cases(cases, write_queries)
        else:
            cases = [case for case in read_cases(queries, paired=paired) if not kinds or case.kind in kinds]
        result = at.evaluate_logic(
            cases, link_model, held=missing, validation=validation_cases, alpha=alpha, epsilon=epsilon, cap=cap, timeout=timeout
        )  # fmt: skip
        if form == "json":
            about = {"options": result.options, "seconds": result.seconds, "warnings": list(result.warnings)}
            sys.stdout.write(json.dumps({"structures": result.rows(), **about}, ensure_ascii=False, indent=1) + "\n")
        else:
            typer.echo(str(result))


# -- generate ----------------------------------------------------------------------------------------


#: How questions are written.
QuestionFormat = Literal["jsonl", "json", "csv", "text"]


@grouped
def generate(
    *,
    store: StoreOption,
    n: Annotated[int, typer.Option("-n", metavar="N", min=1, help="Number of questions.")] = 10,
    seed: Annotated[int, typer.Option("--seed", metavar="SEED", help="The same seed gives the same questions.")] = 0,
    kinds: Annotated[
        list[str] | None, typer.Option("--kind", metavar="KIND", help="A kind of question to generate; may be repeated.")
    ] = None,
    hops: Annotated[
        list[int] | None, typer.Option("--hops", metavar="N", min=1, help="A number of hops to generate; may be repeated.")
    ] = None,
    qualifiers: Annotated[
        float | None, typer.Option("--qualifiers", metavar="SHARE", min=0.0, max=1.0, help="The share of facts with qualifiers.")
    ] = None,
    login: LoginOptions,
    form: Annotated[
        QuestionFormat,
        typer.Option("--format", help="All fields as JSON lines, the data set's JSON, CSV, or question and answer as text."),
    ] = "jsonl",
    shares: Annotated[
        bool, typer.Option("--shares", help="Report the shares of kinds, hops, answers and categories on standard error.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="The file; standard output by default.")
    ] = None,
) -> None:
    """Make questions about a graph, with programs, queries, answers and choices (KQA Pro, section 4).
    Standard error says why there are fewer than requested.
    """
    with guard(), opened(store, login) as at:
        from condgraph.questions.record import Distribution, write

        queries = form != "text"
        generated = at.generate(n, seed=seed, kinds=kinds or None, hops=hops or None, qualifiers=qualifiers, queries=queries)
        distribution = Distribution()
        questions = distribution.counted(generated) if shares else generated
        file = file_of(output)
        if file is None:
            write(questions, sys.stdout, form)
        else:
            with file.open("w", encoding="utf-8", newline="") as stream:
                write(questions, stream, form)
        for warning in generated.warnings:
            typer.echo(f"warning: {warning}", err=True)
        if shares:
            typer.echo(str(distribution), err=True)


# -- train-links -------------------------------------------------------------------------------------


@grouped
def train_links(
    *,
    store: StoreOption,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The model, a .npz file.")],
    rank: Annotated[int, typer.Option("--rank", metavar="N", min=1, help="Rank: the number of complex numbers in a vector.")] = 100,
    epochs: Annotated[int, typer.Option("--epochs", metavar="N", min=1, help="Maximum epochs.")] = 100,
    seconds: Annotated[
        float | None, typer.Option("--seconds", metavar="S", help="End after this many seconds, with the best model so far.")
    ] = None,
    batch: Annotated[int, typer.Option("--batch", metavar="N", min=1, help="Number of queries (head, relation) per step.")] = 500,
    rate: Annotated[float, typer.Option("--rate", metavar="RATE", help="The learning rate of Adagrad.")] = 0.1,
    n3: Annotated[float, typer.Option("--n3", metavar="WEIGHT", help="The weight of the N3 penalty.")] = 0.05,
    predict_relation: Annotated[
        float, typer.Option("--predict-relation", metavar="WEIGHT", help="The weight of predicting relations, too.")
    ] = 0.0,
    negatives: Annotated[
        int | None, typer.Option("--negatives", metavar="N", min=1, help="Number of wrong entities per query; all by default.")
    ] = None,
    validation: Annotated[
        float, typer.Option("--validation", metavar="SHARE", help="The share of edges held out for validation.")
    ] = 0.05,
    valid: Annotated[
        Path | None,
        typer.Option(
            "--valid",
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="Validation edges instead of a share: id, predicate, id; tabs.",
        ),
    ] = None,
    every: Annotated[int, typer.Option("--every", metavar="N", min=1, help="Number of epochs between two validations.")] = 5,
    patience: Annotated[
        int, typer.Option("--patience", metavar="N", min=1, help="Number of validations without progress before training ends.")
    ] = 3,
    seed: Annotated[int, typer.Option("--seed", metavar="SEED", help="The same seed gives the same model.")] = 0,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            "--checkpoint", metavar="FILE", help="A file for the state of the training; training resumes from it if it exists."
        ),
    ] = None,
    device: Annotated[
        str | None, typer.Option("--device", metavar="NAME", help="A PyTorch device: cuda, cpu, ..., or auto; NumPy by default.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Do not report epochs.")] = False,
    login: LoginOptions,
) -> None:
    """Train a model that scores links that the graph may lack (ComplEx with N3), for logical queries over
    missing edges. Epochs are reported on standard error.
    """

    def report_epoch(epoch: int, loss: float, ranking: Ranking | None) -> None:
        if not quiet:
            typer.echo(f"epoch {epoch}: loss {loss:.4f}" + ("" if ranking is None else f", validation {ranking}"), err=True)

    with guard(), opened(store, login) as at:
        from condgraph.logic.evaluation.sampler import read_triples

        trained = at.train_links(
            output, valid=None if valid is None else read_triples(valid), checkpoint=checkpoint, on_epoch=report_epoch, rank=rank,
            epochs=epochs, seconds=seconds, batch=batch, rate=rate, n3=n3, predict_relation=predict_relation,
            negatives=negatives, validation=validation, every=every, patience=patience, seed=seed, device=device,
        )  # fmt: skip
        for warning in trained.warnings:
            typer.echo(f"warning: {warning}", err=True)
        typer.echo(str(trained))
        typer.echo(f"written to {output}")


# -- the group of commands ---------------------------------------------------------------------------


evaluate = typer.Typer(
    name="evaluate",
    help="Measure how well questions with known answers are answered.",
    no_args_is_help=True,
    epilog=EXIT_CODES,
)
evaluate.command("ask", epilog=EXIT_CODES)(evaluate_ask)
evaluate.command("logic", epilog=EXIT_CODES)(evaluate_logic)
