"""One step of training ComplEx with N3 (Lacroix 2018): loss and gradients of a batch of questions
(h, r), each against all entities at once or against a sample of them, in NumPy.

The loss of a question is -sum over its tails of log softmax(score), so that all tails of one (h, r)
cost one row of scores. Beside it, N3 of every edge's vectors, and relation prediction (Chen 2021):
-w log softmax over relations of the score of (h, r, t).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from condgraph.links.edges import Ints
from condgraph.links.embeddings import Embeddings, Floats, halves, questions
from condgraph.links.model import LinkModel


@dataclass(frozen=True, slots=True)
class Batch:
    """Questions: heads and relations (b,), and their tails, `tails[i]` being of question `row[i]`.

    `sample` are the entities that tails compete with, ascending and distinct, all tails among
    them; None for all entities. `stands_for`, of shape (sample,), is the logarithm of how many
    entities each of them stands for: 0 for tails, and None where all stand for themselves.
    """

    heads: Ints
    relations: Ints
    row: Ints
    tails: Ints
    sample: Ints | None = None
    stands_for: Floats | None = None


#: Numbers that are updated at a time.
_PIECE: Final = 1 << 15


class Adagrad:
    """A table of vectors with the Adagrad sums of its numbers (Duchi 2011)."""

    def __init__(self, vectors: Floats, rate: float) -> None:
        self.vectors, self.rate = vectors, rate
        self.moved = np.zeros_like(vectors)

    def move(self, gradient: Floats, rows: Ints | None = None) -> None:
        """Step against a gradient, which is overwritten: of the whole table, or of distinct `rows`."""
        # In pieces that stay in the cache, since each number is used several times.
        piece = max(1, _PIECE // gradient.shape[1])
        rate = np.float32(self.rate)
        for begin in range(0, len(gradient), piece):
            part = gradient[begin : begin + piece]
            which = slice(begin, begin + piece) if rows is None else rows[begin : begin + piece]
            moved = self.moved[which]
            moved = moved + part * part if rows is not None else np.add(moved, part * part, out=moved)
            if rows is not None:
                self.moved[which] = moved
            size = np.sqrt(moved)
            size += np.float32(1e-10)
            part *= rate
            part /= size
            self.vectors[which] -= part


class Learner(Protocol):
    """The tables of a model and how to update them, in NumPy or on a device of PyTorch."""

    def step(self, batch: Batch, *, n3: float, predict_relation: float) -> float:
        """Update both tables by one batch; returns its loss for each edge, without N3."""

    def vectors(self) -> tuple[Floats, Floats]:
        """Copies of the vectors of entities and of relations."""

    def moved(self) -> tuple[Floats, Floats]:
        """Copies of the Adagrad sums of these numbers."""

    def restore(self, moved: tuple[Floats, Floats]) -> None:
        """Set the Adagrad sums."""

    def scorer(self, model: Embeddings) -> LinkModel:
        """The model with the fastest scores here."""


class Scratch:
    """Memory for the large arrays of a step, which the next step uses again: allocation at every step
    took a third of the time.
    """

    def __init__(self) -> None:
        self._kept: dict[str, Floats] = {}

    def room(self, what: str, rows: int, columns: int) -> Floats:
        """An uninitialised array (rows, columns) for one purpose."""
        array = self._kept.get(what)
        if array is None or array.size < rows * columns:
            array = self._kept[what] = np.empty(rows * columns * 5 // 4, np.float32)
        return array[: rows * columns].reshape(rows, columns)

    def rows(self, what: str, table: Floats, which: Ints) -> Floats:
        """Some rows of a table."""
        return np.take(table, which, axis=0, out=self.room(what, len(which), table.shape[1]), mode="clip")

    def product(self, what: str, left: Floats, right: Floats) -> Floats:
        """The product of two matrices."""
        return np.matmul(left, right, out=self.room(what, len(left), right.shape[1]))


class NumpyLearner:
    """The tables in memory."""

    def __init__(self, entities: Floats, relations: Floats, rate: float) -> None:
        self.entities, self.relations = Adagrad(entities, rate), Adagrad(relations, rate)
        self.scratch = Scratch()

    def step(self, batch: Batch, *, n3: float, predict_relation: float) -> float:
        """See `Learner.step`."""
        return step(self.entities, self.relations, batch, n3=n3, predict_relation=predict_relation, scratch=self.scratch)

    def vectors(self) -> tuple[Floats, Floats]:
        """See `Learner.vectors`."""
        return self.entities.vectors.copy(), self.relations.vectors.copy()

    def moved(self) -> tuple[Floats, Floats]:
        """See `Learner.moved`."""
        return self.entities.moved.copy(), self.relations.moved.copy()

    def restore(self, moved: tuple[Floats, Floats]) -> None:
        """See `Learner.restore`."""
        self.entities.moved, self.relations.moved = moved

    def scorer(self, model: Embeddings) -> LinkModel:
        """See `Learner.scorer`."""
        return model


def step(
    entities: Adagrad, relations: Adagrad, batch: Batch, *, n3: float, predict_relation: float, scratch: Scratch | None = None
) -> float:
    """Update both tables by one batch; returns its loss for each edge, without N3."""
    scratch = scratch or Scratch()
    e, r = entities.vectors, relations.vectors
    heads, rel = e[batch.heads], r[batch.relations]
    sample = batch.sample
    place = batch.tails if sample is None else np.searchsorted(sample, batch.tails)
    candidates = e if sample is None else scratch.rows("candidates", e, sample)
    count = np.bincount(batch.row, minlength=len(batch.heads)).astype(np.float32)
    edges = np.float32(len(batch.tails))

    asked = questions("complex", heads, rel)
    scores = scratch.product("scores", asked, candidates.T)
    if batch.stands_for is not None:
        scores += batch.stands_for
    loss, pull = _softmax(scores, batch.row, place, count)
    d_asked = pull @ candidates
    d_candidates = scratch.product("d_candidates", pull.T, asked)
    d_heads, d_rel = _through(d_asked, heads, rel)

    tails = candidates[place]
    by_edge, d_tails = heads[batch.row], np.zeros_like(tails)
    d_by_edge = np.zeros_like(by_edge)
    d_relations = np.zeros_like(r)
    if predict_relation:
        more, d_by_edge, d_tails, d_relations = _relation_step(by_edge, tails, r, batch.relations[batch.row])
        weight = np.float32(predict_relation)
        loss, d_by_edge, d_tails, d_relations = (
            loss + predict_relation * more,
            d_by_edge * weight,
            d_tails * weight,
            d_relations * weight,
        )
    if n3:
        d_heads += _n3(heads, n3) * count[:, None]
        d_rel += _n3(rel, n3) * count[:, None]
        d_tails += _n3(tails, n3)
    if predict_relation or n3:
        _add(d_candidates, place, d_tails)
    if predict_relation:
        _add(d_heads, batch.row, d_by_edge)
    _add(d_relations, batch.relations, d_rel)

    d_candidates /= edges
    d_heads /= edges
    _move_entities(entities, batch, d_candidates, d_heads, scratch)
    d_relations /= edges
    relations.move(d_relations)
    return float(loss / edges)


def _move_entities(entities: Adagrad, batch: Batch, d_candidates: Floats, d_heads: Floats, scratch: Scratch) -> None:
    """Move the competing entities (all, or the sample) and the heads by their gradients."""
    if batch.sample is None:
        _add(d_candidates, batch.heads, d_heads)
        entities.move(d_candidates)
        return
    rows = np.union1d(batch.sample, batch.heads)
    place = np.searchsorted(rows, batch.sample)
    others = np.ones(len(rows), bool)
    others[place] = False
    whole = scratch.room("whole", len(rows), d_candidates.shape[1])
    whole[others] = 0
    whole[place] = d_candidates
    _add(whole, np.searchsorted(rows, batch.heads), d_heads)
    entities.move(whole, rows)


def _softmax(scores: Floats, row: Ints, place: Ints, count: Floats) -> tuple[float, Floats]:
    """The loss of the right places, and its gradient by the scores, which are overwritten."""
    right = scores[row, place].astype(np.float64)
    top = scores.max(axis=1, keepdims=True)
    scores -= top
    np.exp(scores, out=scores)
    total = scores.sum(axis=1, keepdims=True, dtype=np.float64)
    log_total = np.log(total[:, 0]) + top[:, 0]
    loss = float((log_total[row] - right).sum())
    scores *= (count[:, None] / total).astype(np.float32)
    # Places of one question are distinct, so that this needs no `np.subtract.at`.
    scores[row, place] -= 1
    return loss, scores


def _relation_step(heads: Floats, tails: Floats, relations: Floats, right: Ints) -> tuple[float, Floats, Floats, Floats]:
    """Loss of telling the relation from both ends; gradients by heads, tails and relations."""
    a, b = halves(heads)
    c, d = halves(tails)
    # Re(h r conj(t)) = r_re (ac + bd) + r_im (ad - bc)
    pair = np.concatenate([a * c + b * d, a * d - b * c], axis=1)
    scores = pair @ relations.T
    ones = np.ones(len(heads), np.float32)
    loss, pull = _softmax(scores, np.arange(len(heads)), right, ones)
    x, y = halves(pull @ relations)
    d_heads = np.concatenate([x * c + y * d, x * d - y * c], axis=1)
    d_tails = np.concatenate([x * a - y * b, x * b + y * a], axis=1)
    return loss, d_heads, d_tails, pull.T @ pair


def _through(d_asked: Floats, heads: Floats, relations: Floats) -> tuple[Floats, Floats]:
    """The gradient of `questions` by heads and by relations."""
    x, y = halves(d_asked)
    a, b = halves(heads)
    c, d = halves(relations)
    return np.concatenate([x * c + y * d, y * c - x * d], axis=1), np.concatenate([x * a + y * b, y * a - x * b], axis=1)


def _n3(vectors: Floats, weight: float) -> Floats:
    """The gradient of weight * sum of |x|^3 over complex numbers x."""
    a, b = halves(vectors)
    size = np.float32(3 * weight) * np.sqrt(a * a + b * b)
    return np.concatenate([size * a, size * b], axis=1)


def _add(into: Floats, rows: Ints, what: Floats) -> None:
    """`into[rows] += what`, where rows may repeat: sums of sorted runs, much faster than `add.at`."""
    if not len(rows):
        return
    order = np.argsort(rows, kind="stable")
    ordered = rows[order]
    begin = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    into[ordered[begin]] += np.add.reduceat(what[order], begin, axis=0)


def sampled(rng: np.random.Generator, entities: int, tails: Ints, near: Ints, negatives: int) -> tuple[Ints, Floats]:
    """The entities that tails compete with: all `tails`, up to `negatives` of the others of `near` (ascending),
    and about `negatives` of all the rest; and the logarithm of how many each of them stands for.

    Near are the entities that the relations asked for lead to: rivals that matter, of which an even
    draw from a large graph would have hardly any. Each stands for so many that a sum over the sample
    is, in the mean, the sum over all entities.
    """
    own = np.unique(tails)
    inside = near[_missing(near, own)]
    close = near if len(near) <= negatives else near[np.sort(rng.choice(len(near), negatives, replace=False))]
    close = close[_missing(close, own)]
    drawn = np.sort(rng.choice(entities, min(negatives, entities), replace=False))
    drawn = drawn[_missing(drawn, own) & _missing(drawn, near)]
    rest = entities - len(own) - len(inside)
    result = np.concatenate([own, close, drawn])
    weights = [(own, 1.0), (close, len(inside) / max(len(close), 1)), (drawn, rest / max(len(drawn), 1))]
    logs = np.concatenate([np.full(len(part), np.log(max(weight, 1.0)), np.float32) for part, weight in weights])
    order = np.argsort(result)
    return result[order], logs[order]


def _missing(some: Ints, others: Ints) -> NDArray[np.bool_]:
    """Which of some numbers are not among others, which ascend."""
    if not len(others):
        return np.ones(len(some), bool)
    result: NDArray[np.bool_] = others[np.minimum(np.searchsorted(others, some), len(others) - 1)] != some
    return result
