"""The methods of `Graph` that train link prediction models and store their rows."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from condgraph.engine.bounds import within
from condgraph.engine.errors import LinkModelError

if TYPE_CHECKING:
    from threading import Event

    from condgraph.engine.snapshot.snapshot import Snapshot
    from condgraph.engine.store import LocalGraph
    from condgraph.links.mixture import Mixture
    from condgraph.links.model import LinkModel
    from condgraph.links.rule_model import Rules
    from condgraph.links.store import OnRows, StoredRows, Threshold
    from condgraph.links.train import OnEpoch, Training


def train_links(
    graph: LocalGraph,
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
    """Train a link prediction model (ComplEx with N3) on the relations of the graph, and write it to `path`, a `.npz`
    file, if given.

    `options` are those of `links.train.TrainOptions`: `rank`, `epochs`, `seconds`, `negatives` and others. Training
    stops when the ranking of validation edges no longer improves: those of `valid`, triples of (id, predicate, id), or
    a held-out share of the graph. `on_epoch` is called with the number of the epoch, its loss, and the ranking.
    `seconds=` ends training with the best model so far; `timeout`, in seconds, raises an error. The state is written to
    the file `checkpoint`, and training continues from that file if it exists. Raises `LinkModelError` if nothing can be
    trained or written, `OptionError` for invalid options.
    """
    from condgraph.links.edges import Edges
    from condgraph.links.train import TrainOptions, options_of, train, writable

    # Check before hours of training, not after.
    for label, target in (("the model", path), ("the checkpoint", checkpoint)):
        if target is not None:
            writable(target, label)
    with within(graph.timeout if timeout is None else timeout, cancelled):
        edges = Edges.of_snapshot(graph.snapshot().current)
        validation = None if valid is None else edges.numbered(valid)
        training = train(
            edges, options_of(TrainOptions, options, "training"), valid=validation, on_epoch=on_epoch, checkpoint=checkpoint
        )
        if path is not None:
            training.model.save(path)
        return training


def keep_rows(
    graph: LocalGraph,
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
    """Score heads by relations with a model, and store the calibrated scores above a threshold in a folder. Returns a
    model that looks these scores up.

    `model` is a `LinkModel`, or the path of a `.npz` file. `relations` (names) and `heads` (ids) are all by default.
    Raises `LinkModelError` for a model of another graph.
    """
    from condgraph.links.edges import Edges
    from condgraph.links.embeddings import model_of
    from condgraph.links.store import keep_rows

    with within(graph.timeout if timeout is None else timeout, cancelled):
        edges = Edges.of_snapshot(graph.snapshot().current)
        return keep_rows(model_of(model), edges, folder, keep, relations=relations, heads=heads, on_rows=on_rows)


#: The file of rules in the folder of a graph, and their key in the cache of a snapshot.
_FILE: Final = "links.rules.npz"
_CACHE_KEY: Final = "links.rules"


def learn_rules(
    graph: LocalGraph,
    /,
    path: str | os.PathLike[str] | None = None,
    *,
    valid: Iterable[tuple[str, str, str]] | None = None,
    timeout: float | None = None,
    cancelled: Event | None = None,
    **options: Any,
) -> Rules:
    """Learn rules on the relations of the graph within `seconds` of processor time (60). They are a link prediction
    model whose predictions have explanations. They are written to `path`, a `.npz` file, if given.

    `options` are those of `links.rules.Learning`. `valid` are edges that the graph lacks, triples of (id, predicate,
    id): they choose the aggregation of each relation; without them a share of the graph is held out for this.
    `warnings` of the result report what the budget left out. Raises `LinkModelError` if nothing can be learned or
    written, `OptionError` for invalid options.
    """
    from condgraph.links.edges import Edges
    from condgraph.links.rule_model import learn
    from condgraph.links.rules import Learning
    from condgraph.links.train import options_of, writable

    if path is not None:
        writable(path, "the rules")
    with within(graph.timeout if timeout is None else timeout, cancelled):
        edges = Edges.of_snapshot(graph.snapshot().current)
        rules = learn(edges, options_of(Learning, options, "learning"), valid=None if valid is None else edges.numbered(valid))
        if path is not None:
            rules.save(path)
        return rules


def mix_links(
    graph: LocalGraph,
    model: LinkModel | str | os.PathLike[str],
    rules: Rules,
    path: str | os.PathLike[str] | None = None,
    *,
    valid: Iterable[tuple[str, str, str]],
    seconds: float = 60.0,
    timeout: float | None = None,
    cancelled: Event | None = None,
) -> Mixture:
    """Combine a model and rules (`learn_rules`) of the relations of the graph: a score is the weighted geometric mean
    of both, and rules explain a prediction. The weights are written to `path`, a `.npz` file, if given.

    `valid` are edges that the graph lacks, triples of (id, predicate, id), and that neither was learned from: they
    choose the weight of each relation and direction, within `seconds` of processor time. `warnings` of the result
    report what the budget left out. Raises `LinkModelError` for a model or rules of another graph, and for an empty
    `valid`.
    """
    from condgraph.links.edges import Edges
    from condgraph.links.embeddings import model_of
    from condgraph.links.mixture import mix
    from condgraph.links.train import writable

    if path is not None:
        writable(path, "the mixture")
    with within(graph.timeout if timeout is None else timeout, cancelled):
        edges = Edges.of_snapshot(graph.snapshot().current)
        mixture = mix(edges, model_of(model), rules, edges.numbered(valid), seconds=seconds)
        if path is not None:
            mixture.save(path)
        return mixture


def default_rules(snapshot: Snapshot, directory: Path | None, *, read_only: bool) -> Rules:
    """Return the rules of a snapshot: those in the graph's folder if they are of this state, else rules learned within
    the default budget, and stored in the folder unless the graph is `read_only`.
    """
    from condgraph.links.edges import Edges
    from condgraph.links.rule_model import Rules, learn

    rules: Rules | None = snapshot.schema.kept.get(_CACHE_KEY)
    if rules is None:
        edges = Edges.of_snapshot(snapshot)
        path = None if directory is None else directory / _FILE
        if path is not None and path.exists():
            # Rules of an earlier state are learned again.
            with suppress(LinkModelError):
                rules = Rules.load(path, edges)
        if rules is None:
            rules = learn(edges)
            if path is not None and not read_only:
                # If the folder cannot be written, the rules are only in memory.
                with suppress(OSError):
                    rules.save(path)
        snapshot.schema.kept[_CACHE_KEY] = rules
    return rules
