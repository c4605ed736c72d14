"""The command `condgraph evaluate logic`: how well logical queries are answered where edges are missing."""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from condgraph.cli.arguments import LoginOptions, StoreOption, opened
from condgraph.cli.exits import guard
from condgraph.cli.groups import grouped


class EvaluationFormat(StrEnum):
    """How figures are written."""

    TABLE = "table"
    JSON = "json"


@grouped
def logic(
    *,
    store: StoreOption,
    held: Annotated[
        Path,
        typer.Option(
            "--held", metavar="FILE", exists=True, dir_okay=False, help="The edges that the graph misses: id, predicate, id; tabs."
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
            help="The model of links, a .npz file; none: the graph alone.",
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
            "--validation", metavar="FILE", exists=True, dir_okay=False, help="Queries that choose alpha and the threshold."
        ),
    ] = None,
    paired: Annotated[
        bool, typer.Option("--paired", help="Relations of the queries are numbers, odd ones inverses (BetaE).")
    ] = False,
    n: Annotated[int, typer.Option("-n", metavar="N", min=1, help="Queries of each structure that are sampled.")] = 50,
    kinds: Annotated[
        list[str] | None, typer.Option("--kind", metavar="NAME", help="A structure that is wanted; may be repeated.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", metavar="SEED", help="The same seed samples the same queries.")] = 0,
    alpha: Annotated[
        float | None, typer.Option("--alpha", metavar="A", help="The negation scale; chosen on validation, else 1.")
    ] = None,
    epsilon: Annotated[float | None, typer.Option("--epsilon", metavar="E", help="The least score of a predicted edge.")] = None,
    cap: Annotated[int | None, typer.Option("--cap", metavar="N", min=1, help="Predicted edges of a row, at most.")] = None,
    write_queries: Annotated[
        Path | None, typer.Option("--write-queries", metavar="FILE", help="Write the queries that were sampled.")
    ] = None,
    form: Annotated[EvaluationFormat, typer.Option("--format", help="A table, or everything as JSON.")] = EvaluationFormat.TABLE,
    timeout: Annotated[float | None, typer.Option("--timeout", metavar="S", help="Seconds for all of it.")] = None,
    login: LoginOptions,
) -> None:
    """Tell how well logical queries are answered on a graph that misses edges: ranks, Hits@k,
    explanations that hold, and ranks by how many edges an answer needs.
    """
    with guard(), opened(store, login) as at:
        from condgraph.links.embeddings import model_of
        from condgraph.logic.evaluation.sampler import read_cases, read_triples, write_cases

        # Whatever cannot be read is said before anything takes long.
        known = None if model is None else model_of(model)
        missing = list(read_triples(held))
        chosen = list(read_cases(validation, paired=paired)) if validation else []
        if queries is None:
            found = at.sample_queries(missing, n, kinds=kinds, seed=seed, timeout=timeout)
            cases = list(found.cases)
            for warning in found.warnings:
                typer.echo(f"warning: {warning}", err=True)
            if write_queries is not None:
                write_cases(cases, write_queries)
        else:
            cases = [case for case in read_cases(queries, paired=paired) if not kinds or case.kind in kinds]
        result = at.evaluate_logic(
            cases, known, held=missing, validation=chosen, alpha=alpha, epsilon=epsilon, cap=cap, timeout=timeout
        )  # fmt: skip
        if form is EvaluationFormat.JSON:
            about = {"options": result.options, "seconds": result.seconds, "warnings": list(result.warnings)}
            sys.stdout.write(json.dumps({"structures": result.rows(), **about}, ensure_ascii=False, indent=1) + "\n")
        else:
            typer.echo(str(result))
