"""Training of ComplEx with N3 and relation prediction (Lacroix 2018), in NumPy, or in PyTorch on a GPU."""

from __future__ import annotations

import json
import os
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np

from condgraph.engine.bounds import cached, check, is_number, is_whole
from condgraph.engine.errors import LinkModelError, OptionError, nearest
from condgraph.links.edges import Edges, Ints
from condgraph.links.embeddings import Embeddings, Floats, save_arrays
from condgraph.links.ranks import Ranking, rank_edges
from condgraph.links.step import Batch, Learner, NumpyLearner, sampled

T = TypeVar("T")

# -- batches of questions --------------------------------------------------------------------------
# An epoch has each (h, r) of a graph once, forward and inverse, with all its tails, in batches in
# random order.


#: The approximate number of relations in a batch with sampled rivals. With one, the vectors of
#: relations are rarely updated; with many, they reach almost all entities.
RELATIONS: Final = 5


class Questions:
    """The questions (h, r) of a graph, forward and inverse, with their tails."""

    def __init__(self, edges: Edges) -> None:
        n, m = len(edges.entities), len(edges.relations)
        directions = (edges.forward, edges.backward)
        self.keys = np.concatenate([directions[0].keys, directions[1].keys + n * m])
        self.items = np.concatenate([ends.items for ends in directions])
        begin = [np.asarray(ends.offsets[:-1]) for ends in directions]
        self.begin = np.concatenate([begin[0], begin[1] + len(directions[0].items)])
        self.end = np.append(self.begin[1:], len(self.items))
        self._n, self._relations = n, 2 * m

    @cached
    def _ends(self) -> list[Ints]:
        """The entities that each relation reaches, then those of inverses, ascending."""
        begin = np.searchsorted(self.keys, np.arange(self._relations + 1) * self._n)
        edge = np.append(self.begin, len(self.items))[begin]
        return [np.unique(self.items[low:high]) for low, high in pairwise(edge.tolist())]

    def batches(self, rng: np.random.Generator, size: int, negatives: int | None, entities: int) -> Iterator[Batch]:
        """Yield all questions once, in random order. If rivals are sampled, a batch has few relations, so that most of
        the entities that they reach can be rivals.
        """
        from condgraph.engine.snapshot.snapshot import ranges

        for numbers in self._batches(rng, size, negatives is not None):
            relations, heads = np.divmod(self.keys[numbers], self._n)
            begin, end = self.begin[numbers], self.end[numbers]
            row: Ints = np.arange(len(numbers)).repeat(end - begin)
            tails = self.items.take(ranges(begin, end))
            sample, stands_for = None, None
            if negatives is not None and negatives + len(tails) < entities:
                near = [self._ends[item] for item in np.unique(relations).tolist()]
                near_entities = near[0] if len(near) == 1 else np.unique(np.concatenate(near))
                sample, stands_for = sampled(rng, entities, tails, near_entities, negatives)
            yield Batch(heads, relations, row, tails, sample, stands_for)

    def _batches(self, rng: np.random.Generator, size: int, by_relation: bool) -> list[Ints]:
        order = rng.permutation(len(self.keys))
        if by_relation:
            shuffled = rng.permutation(self._relations)[self.keys[order] // self._n]
            order = order[np.argsort(shuffled, kind="stable")]
            runs = _batches(order, max(1, size // RELATIONS))
            order = np.concatenate([runs[item] for item in rng.permutation(len(runs)).tolist()])
        return _batches(order, size)


def _batches(order: Ints, size: int) -> list[Ints]:
    return [order[start : start + size] for start in range(0, len(order), size)]


# -- checkpoints -----------------------------------------------------------------------------------
# The state of training as one `.npz` file. Training that continues from it gives the same numbers as
# training without interruption (in NumPy; a GPU rounds differently).


_FORMAT: Final = 1
_TABLES: Final = ("entities", "relations", "entities_moved", "relations_moved")
_BEST: Final = ("best_entities", "best_relations")
_HINT: Final = "name another file, or remove this one to begin anew"


@dataclass(frozen=True, slots=True)
class Standing:
    """The state of training: the vectors and their Adagrad sums, the best vectors so far (None before the first
    validation), the number of epochs, the best epoch and its MRR, the validations since then, and the state of the
    random numbers.
    """

    tables: tuple[Floats, Floats, Floats, Floats]
    best: tuple[Floats, Floats] | None
    epoch: int
    best_at: int
    best_mrr: float
    worse: int
    dice: Mapping[str, Any]


def writable(place: str | os.PathLike[str], what: str) -> None:
    """Raise `LinkModelError` if a file cannot be written."""
    path = Path(place)
    if path.is_dir():
        raise LinkModelError(f"{what} cannot be written to {path}, which is a folder", hint="name a file")
    if not path.absolute().parent.is_dir():
        raise LinkModelError(f"{what} cannot be written to {path}: there is no folder {path.parent}", hint="make it first")
    if not os.access(path.absolute().parent, os.W_OK):
        raise LinkModelError(f"{what} cannot be written to {path}: the folder {path.parent} may not be written to")


def keep(place: str | os.PathLike[str], standing: Standing, of: Mapping[str, Any]) -> None:
    """Write the state of training, completely or not at all. `of` are its options and edges."""
    arrays: dict[str, Any] = dict(zip(_TABLES, standing.tables, strict=True))
    if standing.best is not None:
        arrays |= dict(zip(_BEST, standing.best, strict=True))
    about = {
        "format": _FORMAT, "of": dict(of), "epoch": standing.epoch, "best_at": standing.best_at, "best_mrr": standing.best_mrr,
        "worse": standing.worse, "dice": dict(standing.dice),
    }  # fmt: skip
    save_arrays(Path(place), {"about": np.frombuffer(json.dumps(about).encode(), np.uint8), **arrays})


def kept(place: str | os.PathLike[str], of: Mapping[str, Any], shapes: tuple[tuple[int, int], tuple[int, int]]) -> Standing | None:
    """Read the state of training; None if there is no file. `shapes` are those of the two tables.

    Raises `LinkModelError` for a file of another kind, and for other edges or options.
    """
    name = os.fspath(place)
    try:
        with np.load(name, allow_pickle=False) as arrays:
            about = json.loads(arrays["about"].tobytes())
            tables = tuple(np.ascontiguousarray(arrays[item], np.float32) for item in _TABLES)
            best = tuple(np.ascontiguousarray(arrays[item], np.float32) for item in _BEST) if _BEST[0] in arrays.files else None
        if about["format"] != _FORMAT:
            raise LinkModelError(f"{name} is of format {about['format']}, not {_FORMAT}", hint=_HINT)
        stored_of = about["of"]
        numbers = (int(about["epoch"]), int(about["best_at"]), float(about["best_mrr"]), int(about["worse"]), dict(about["dice"]))
    except FileNotFoundError:
        return None
    except LinkModelError:
        raise
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, AttributeError, TypeError) as error:
        raise LinkModelError(f"{name} cannot be read as a training to go on with: {error}", hint=_HINT) from None
    different = [item for item in of if stored_of.get(item) != of[item]]
    if different:
        differences = ", ".join(
            f"{item} {stored_of.get(item)!r}, not {of[item]!r}" if "edges" not in item else f"other {item}" for item in different
        )
        raise LinkModelError(f"{name} is of another training: {differences}", hint=_HINT)
    expected_shapes = (*shapes, *shapes, *(shapes if best else ()))
    if any(item.shape != shape for item, shape in zip((*tables, *(best or ())), expected_shapes, strict=True)):
        raise LinkModelError(f"{name} has tables of another size than its edges ask for", hint=_HINT)
    return Standing(tables, best, *numbers)  # type: ignore[arg-type]


# -- training --------------------------------------------------------------------------------------
# Every relation has an inverse with vectors of its own (reciprocals), so that heads are predicted like
# tails. Each (h, r) of a graph is one question, with all its tails.


#: The most validation edges that are ranked during training; the final ranking has all of them.
MAX_VALIDATED: Final = 2000
_STOPPED: Final = "no longer better on validation"
#: Called after an epoch with its number, the loss per edge, and the ranking if there was one.
OnEpoch = Callable[[int, float, Ranking | None], None]


@dataclass(frozen=True, slots=True)
class TrainOptions:
    """Options of training. `rank` is the number of complex numbers in a vector. Tails compete with `negatives` sampled
    entities at a time, or with all if None. Training ends after `epochs`, after `seconds`, or when `patience`
    validations (one after every `every` epochs) did not improve the ranking. `device` is None for NumPy, a device of
    PyTorch (`cpu`, `cuda`, `cuda:1`, `mps`), or `auto` for a GPU if there is one, else NumPy. Raises `OptionError` for
    invalid values.
    """

    rank: int = 100
    rate: float = 0.1
    batch: int = 500
    n3: float = 0.05
    predict_relation: float = 0.0
    epochs: int = 100
    every: int = 5
    patience: int = 3
    negatives: int | None = None
    validation: float = 0.05
    seconds: float | None = None
    seed: int = 0
    device: str | None = None

    def __post_init__(self) -> None:
        for name in ("rank", "batch", "epochs", "every", "patience"):
            if getattr(self, name) < 1:
                raise OptionError(f"{name} is at least 1, not {getattr(self, name)}")
        for name in ("n3", "predict_relation"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise OptionError(f"{name} is a weight of at least 0, not {getattr(self, name)}")
        if not 0 < self.rate < float("inf"):
            raise OptionError(f"rate is more than 0, not {self.rate}")
        if self.negatives is not None and self.negatives < 1:
            raise OptionError(f"negatives is at least 1, or None for all entities, not {self.negatives}")
        if not 0 <= self.validation < 1:
            raise OptionError(f"validation is the share of edges that are held out, less than 1, not {self.validation}")
        if self.seconds is not None and not self.seconds > 0:
            raise OptionError(f"seconds is more than 0, not {self.seconds}")


def options_of(kind: type[T], given: Mapping[str, Any], what: str) -> T:
    """Return options (a dataclass) from values by name; raises `OptionError` for a name that `what` does not have, or
    an invalid value.
    """
    types = {field.name: str(field.type) for field in fields(kind)}  # type: ignore[arg-type]
    for name, value in given.items():
        if name not in types:
            raise OptionError(
                f"{what} has no option {name!r}", candidates=nearest(name, types), hint=f"they are {', '.join(types)}"
            )
        type_name, _, optional = types[name].partition(" | ")
        is_valid, words = _TYPES[type_name]
        if not (is_valid(value) or (value is None and optional)):
            raise OptionError(f"{name} is {words}{', or None' if optional else ''}, not {value!r}")
    return kind(**given)


#: For each type of option, the test of a value, and the type in words.
_TYPES: Final[dict[str, tuple[Callable[[object], bool], str]]] = {
    "float": (is_number, "a number"),
    "int": (is_whole, "a whole number"),
    "str": (lambda value: isinstance(value, str), "a text"),
}


@dataclass(frozen=True, slots=True)
class Training:
    """The result of training: the model, its ranking of the validation edges (None without any), the `best` epoch,
    whose vectors the model has, the number of `epochs`, why it `ended`, the `seconds` it took, and the number of
    training `edges`.
    """

    model: Embeddings
    validation: Ranking | None
    best: int
    epochs: int
    ended: str
    seconds: float
    edges: int

    @property
    def warnings(self) -> list[str]:
        """Reasons to doubt the scores; the model has them too."""
        return self.model.warnings

    def __str__(self) -> str:
        ranked = "no validation edges" if self.validation is None else f"validation {self.validation}"
        return (
            f"trained on {self.edges:,} edges of {len(self.model.entities):,} entities and {len(self.model.relations):,} relations "
            f"in {self.seconds:.1f} s: epoch {self.best} of {self.epochs} ({self.ended}); {ranked}"
        )


def train(
    edges: Edges,
    options: TrainOptions | None = None,
    *,
    valid: Edges | None = None,
    on_epoch: OnEpoch | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
) -> Training:
    """Train a model on edges. `valid` are validation edges in the same numbers; without them the share
    `options.validation` of the edges is held out, depending on the seed.

    The state is written to the file `checkpoint` at every validation and at the end; if that file exists, training
    continues from it.

    Raises `LinkModelError` if there are no edges, training diverges, or the checkpoint has other edges or options;
    `MissingExtraError` for a `device` without torch; `DeadlineError`.
    """
    options = options or TrainOptions()
    begin = time.perf_counter()
    if not len(edges.triples):
        raise LinkModelError("there are no edges to train on", hint="load relations between entities first")
    rng = np.random.default_rng(options.seed)
    if valid is None:
        edges, valid = held_out(edges, options.validation, rng)
    run = _Run(edges, valid, options, rng)
    if checkpoint is not None:
        run.go_on(checkpoint)
    first = run.epoch + 1
    ended = "all epochs"
    if run.worse >= options.patience:
        ended, first = _STOPPED, options.epochs + 1
    for epoch in range(first, options.epochs + 1):
        loss = run.learn()
        time_is_up = options.seconds is not None and time.perf_counter() - begin >= options.seconds
        validate = epoch % options.every == 0 or time_is_up or epoch == options.epochs
        ranking = run.look() if validate and len(run.looked.triples) else None
        if checkpoint is not None and validate:
            run.keep(checkpoint)
        if on_epoch is not None:
            on_epoch(epoch, loss, ranking)
        if run.worse >= options.patience:
            ended = _STOPPED
            break
        if time_is_up:
            ended = "the time was up"
            break
    best, best_at = (run.best, run.best_at) if run.best is not None else (run.learner.vectors(), run.epoch)
    model = run.model(*best)
    final_ranking = rank_edges(run.learner.scorer(model), valid, [edges, valid]) if len(valid.triples) else None
    model = run.model(*best, warnings=_doubts(final_ranking, len(edges.entities)))
    return Training(model, final_ranking, best_at, run.epoch, ended, time.perf_counter() - begin, len(edges.triples))


class _Run:
    """A training in progress: the learner, the epoch, and the best vectors so far."""

    def __init__(self, edges: Edges, valid: Edges, options: TrainOptions, rng: np.random.Generator) -> None:
        self.edges, self.valid, self.options, self.rng = edges, valid, options, rng
        self.groups = Questions(edges)
        n, m = len(edges.entities), len(edges.relations)
        self._begin(_start(rng, n, options.rank), _start(rng, 2 * m, options.rank))
        self.looked = _some(valid, rng)
        self.epoch, self.best_at, self.best_mrr, self.worse = 0, 0, -1.0, 0
        self.best: tuple[Floats, Floats] | None = None

    def _begin(self, entities: Floats, relations: Floats) -> None:
        device = self.options.device
        if device == "auto":
            from condgraph.links.torch_step import best_device

            device = best_device()
        if device is None:
            self.learner: Learner = NumpyLearner(entities, relations, self.options.rate)
        else:
            from condgraph.links.torch_step import TorchLearner

            self.learner = TorchLearner(entities, relations, self.options.rate, device)

    def learn(self) -> float:
        """Run one epoch; return the mean loss per edge of its batches."""
        options = self.options
        self.epoch += 1
        losses = [
            self.learner.step(batch, n3=options.n3, predict_relation=options.predict_relation)
            for batch in _watched(self.groups.batches(self.rng, options.batch, options.negatives, len(self.edges.entities)))
        ]
        loss = float(np.mean(losses))
        if not np.isfinite(loss):
            raise LinkModelError(f"training diverged in epoch {self.epoch}: the loss is {loss}", hint="a smaller `rate` may help")
        return loss

    def look(self) -> Ranking:
        """Rank validation edges, and store the vectors if they are the best so far."""
        vectors = self.learner.vectors()
        ranking = rank_edges(self.learner.scorer(self.model(*vectors)), self.looked, [self.edges, self.valid])
        if ranking.mrr > self.best_mrr:
            self.best, self.best_at, self.best_mrr, self.worse = vectors, self.epoch, ranking.mrr, 0
        else:
            self.worse += 1
        return ranking

    def model(self, entities: Floats, relations: Floats, warnings: Sequence[str] = ()) -> Embeddings:
        m = len(self.edges.relations)
        about = {"trained by": "condgraph", "edges": len(self.edges.triples), **asdict(self.options), "warnings": list(warnings)}
        names = tuple(self.edges.entities), tuple(self.edges.relations)
        return Embeddings("complex", *names, entities, relations[:m], relations[m:], about=about)

    def keep(self, place: str | os.PathLike[str]) -> None:
        tables = (*self.learner.vectors(), *self.learner.moved())
        dice = self.rng.bit_generator.state
        keep(place, Standing(tables, self.best, self.epoch, self.best_at, self.best_mrr, self.worse, dice), self._of())

    def go_on(self, place: str | os.PathLike[str]) -> None:
        """Continue from the state that `keep` wrote, if the file exists."""
        n, m, width = len(self.edges.entities), len(self.edges.relations), 2 * self.options.rank
        state = kept(place, self._of(), ((n, width), (2 * m, width)))
        if state is None:
            return
        self._begin(*state.tables[:2])
        self.learner.restore(state.tables[2:])
        self.epoch, self.best_at, self.best_mrr, self.worse = state.epoch, state.best_at, state.best_mrr, state.worse
        self.best = state.best
        self.rng.bit_generator.state = state.dice

    def _of(self) -> dict[str, Any]:
        """Return what a checkpoint must agree with: the edges, and all options but duration, device and validation."""
        free = ("epochs", "every", "patience", "seconds", "device", "validation")
        fixed = {name: value for name, value in asdict(self.options).items() if name not in free}
        return {**fixed, "edges": self.edges.fingerprint, "validation edges": self.valid.fingerprint}


def _doubts(ranking: Ranking | None, entities: int) -> list[str]:
    """Return a warning if the model ranks validation edges no better than chance: than ranks drawn at random from 1 to
    the number of entities, plus two standard errors of their mean.
    """
    if ranking is None:
        return ["the model was not compared with edges that it does not know: no edge could be held out"]
    reciprocal = 1 / np.arange(1, entities + 1)
    if ranking.mrr > reciprocal.mean() + 2 * reciprocal.std() / ranking.ranks**0.5:
        return []
    return [
        f"the model may be no better than chance: its MRR of {ranking.ranks:,} ranks is {ranking.mrr:.4f}, "
        f"that of random ranks {reciprocal.mean():.4f}"
    ]


def held_out(edges: Edges, share: float, rng: np.random.Generator) -> tuple[Edges, Edges]:
    """Split edges in two, with about `share` of them in the second part. Every entity and every relation keeps an edge
    in the first.
    """
    triples = edges.triples
    count = int(len(triples) * share)
    order = rng.permutation(len(triples))
    degree = np.bincount(triples[:, [0, 2]].ravel(), minlength=len(edges.entities))
    used = np.bincount(triples[:, 1], minlength=len(edges.relations))
    held: list[int] = []
    for number in order.tolist():
        if len(held) >= count:
            break
        head, relation, tail = triples[number].tolist()
        if degree[head] > 1 and degree[tail] > 1 and used[relation] > 1 and (head != tail or degree[head] > 2):
            degree[head] -= 1
            degree[tail] -= 1
            used[relation] -= 1
            held.append(number)
    is_held = np.zeros(len(triples), bool)
    is_held[held] = True
    return edges.with_triples(triples[~is_held]), edges.with_triples(triples[is_held])


def _watched(batches: Iterator[Batch]) -> Iterator[Batch]:
    for batch in batches:
        check()
        yield batch


def _start(rng: np.random.Generator, rows: int, rank: int) -> Floats:
    return rng.standard_normal((rows, 2 * rank), dtype=np.float32) * np.float32(1e-3)


def _some(valid: Edges, rng: np.random.Generator) -> Edges:
    if len(valid.triples) <= MAX_VALIDATED:
        return valid
    return valid.with_triples(valid.triples[rng.choice(len(valid.triples), MAX_VALIDATED, replace=False)])
