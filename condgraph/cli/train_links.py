"""The command `condgraph train-links`: a model of the links of a graph, as a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from condgraph.cli.arguments import LoginOptions, StoreOption, opened
from condgraph.cli.exits import guard
from condgraph.cli.groups import grouped

if TYPE_CHECKING:
    from condgraph.links.ranks import Ranking


@grouped
def train_links(
    *,
    store: StoreOption,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The model, a .npz file.")],
    rank: Annotated[int, typer.Option("--rank", metavar="N", min=1, help="Complex numbers in a vector.")] = 100,
    epochs: Annotated[int, typer.Option("--epochs", metavar="N", min=1, help="The most epochs.")] = 100,
    seconds: Annotated[
        float | None, typer.Option("--seconds", metavar="S", help="End after so many seconds, with the best so far.")
    ] = None,
    batch: Annotated[int, typer.Option("--batch", metavar="N", min=1, help="Questions (head, relation) at a time.")] = 500,
    rate: Annotated[float, typer.Option("--rate", metavar="RATE", help="The learning rate of Adagrad.")] = 0.1,
    n3: Annotated[float, typer.Option("--n3", metavar="WEIGHT", help="The weight of the N3 penalty.")] = 0.05,
    predict_relation: Annotated[
        float, typer.Option("--predict-relation", metavar="WEIGHT", help="The weight of predicting relations, too.")
    ] = 0.0,
    negatives: Annotated[
        int | None, typer.Option("--negatives", metavar="N", min=1, help="Entities to tell from the right ones; all by default.")
    ] = None,
    validation: Annotated[
        float, typer.Option("--validation", metavar="SHARE", help="The share of edges held out to see when to stop.")
    ] = 0.05,
    valid: Annotated[
        Path | None,
        typer.Option(
            "--valid",
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="The edges to see that by, in place of a share: id, predicate, id; tabs.",
        ),
    ] = None,
    every: Annotated[int, typer.Option("--every", metavar="N", min=1, help="Epochs between two looks at these.")] = 5,
    patience: Annotated[int, typer.Option("--patience", metavar="N", min=1, help="Looks without a better one, until it ends.")] = 3,
    seed: Annotated[int, typer.Option("--seed", metavar="SEED", help="The same seed gives the same model.")] = 0,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            "--checkpoint", metavar="FILE", help="Keep there where training stands, and go on from there if it is a file."
        ),
    ] = None,
    device: Annotated[
        str | None, typer.Option("--device", metavar="NAME", help="A device of PyTorch: cuda, cpu, ..., or auto; NumPy by default.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Tell nothing of epochs.")] = False,
    login: LoginOptions,
) -> None:
    """Train a model that scores links which the graph may miss (ComplEx with N3), for logical
    queries over what is missing. Epochs are told on standard error.
    """

    def told(epoch: int, loss: float, ranking: Ranking | None) -> None:
        if not quiet:
            typer.echo(f"epoch {epoch}: loss {loss:.4f}" + ("" if ranking is None else f", validation {ranking}"), err=True)

    with guard(), opened(store, login) as at:
        from condgraph.logic.evaluation.sampler import read_triples

        found = at.train_links(
            output, valid=None if valid is None else read_triples(valid), checkpoint=checkpoint, on_epoch=told, rank=rank,
            epochs=epochs, seconds=seconds, batch=batch, rate=rate, n3=n3, predict_relation=predict_relation,
            negatives=negatives, validation=validation, every=every, patience=patience, seed=seed, device=device,
        )  # fmt: skip
        typer.echo(str(found))
        typer.echo(f"written to {output}")
