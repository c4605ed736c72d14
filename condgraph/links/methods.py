"""The methods of `Graph` that train link prediction models and store their rows."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from condgraph.engine.bounds import within

if TYPE_CHECKING:
    from threading import Event

    from condgraph.engine.snapshot.snapshot import Snapshot
    from condgraph.links.model import LinkModel
    from condgraph.links.store import OnRows, StoredRows, Threshold
    from condgraph.links.train import OnEpoch, Training


class Opened(Protocol):
    """What these methods need of a graph."""

    timeout: float | None

    @property
    def current(self) -> Snapshot:
        """Its columns."""

    def snapshot(self) -> Opened:
        """The graph as it is now, in process."""


def train_links(
    graph: Opened,
    /,
    path: str | os.PathLike[str] | None = None,
    *,
    valid: Iterable[tuple[str, str, str]] | None = None,
    on_epoch: OnEpoch | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    timeout: float | None = None,
    cancelled: Event | None = None,
    **options: Any,
) -> Training:
    """Train a link prediction model (ComplEx with N3) on the relations of the graph, and write it to
    `path`, a `.npz` file, if given.

    `options` are those of `links.train.TrainOptions`: `rank`, `epochs`, `seconds`, `negatives` and
    others. Training stops when the ranking of validation edges gets no better: of `valid`, triples of
    (id, predicate, id), or of a share of the graph that is held out. `on_epoch` is called with the
    epoch, its loss, and the ranking. `seconds=` ends training with the best model so far; `timeout`,
    in seconds, is an error. The state is written to the file `checkpoint`, and training continues
    from it if the file exists. Raises `LinkModelError` where nothing can be trained or written,
    `OptionError` for invalid options.
    """
    from condgraph.links.edges import Edges
    from condgraph.links.train import options_of, train, writable

    # Before hours of training, not after.
    for what, place in (("the model", path), ("the checkpoint", checkpoint)):
        if place is not None:
            writable(place, what)
    with within(graph.timeout if timeout is None else timeout, cancelled):
        edges = Edges.of_snapshot(graph.snapshot().current)
        validation = None if valid is None else edges.numbered(valid)
        result = train(edges, options_of(options), valid=validation, on_epoch=on_epoch, checkpoint=checkpoint)
        if path is not None:
            result.model.save(path)
        return result


def keep_rows(
    graph: Opened,
    model: LinkModel | str | os.PathLike[str],
    folder: str | os.PathLike[str],
    *,
    keep: Threshold | None = None,
    relations: Sequence[str] | None = None,
    heads: Sequence[str] | None = None,
    on_rows: OnRows | None = None,
    timeout: float | None = None,
    cancelled: Event | None = None,
) -> StoredRows:
    """Score heads by relations (all, or some) with a model, and keep the calibrated scores above
    a threshold in a folder; what comes back is a model itself, whose scores are looked up.

    `model` is a `LinkModel`, or the path of a `.npz` file.
    """
    from condgraph.links.edges import Edges
    from condgraph.links.embeddings import model_of
    from condgraph.links.store import keep_rows

    with within(graph.timeout if timeout is None else timeout, cancelled):
        edges = Edges.of_snapshot(graph.snapshot().current)
        return keep_rows(model_of(model), edges, folder, keep, relations=relations, heads=heads, on_rows=on_rows)
