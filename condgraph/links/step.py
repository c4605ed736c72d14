"""One step of training ComplEx with N3 (Lacroix 2018) in NumPy: the loss and gradients of a batch of questions (h, r),
each against all entities or a sample of them.

The loss of a question is -sum over its tails of log softmax(score), so all tails of one (h, r) share one row of scores.
To it are added N3 of the vectors of every edge, and relation prediction (Chen 2021): -w log softmax over relations of
the score of (h, r, t).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from condgraph.engine.bounds import changed
from condgraph.engine.execute.sets import minus
from condgraph.links.edges import Ints
from condgraph.links.embeddings import Embeddings, Floats, halves, questions
from condgraph.links.model import LinkModel


@dataclass(frozen=True, slots=True)
class Batch:
    """Questions: heads and relations, shape (b,), and their tails; `tails[i]` belongs to question `row[i]`.

    `sample` are the entities that tails compete with, ascending and distinct, including all tails; None for all
    entities. `stands_for`, shape (sample,), is the logarithm of how many entities each of them represents: 0 for tails.
    None if each represents only itself.
    """

    heads: Ints
    relations: Ints
    row: Ints
    tails: Ints
    sample: Ints | None = None
    stands_for: Floats | None = None


#: How many numbers are updated at a time.
_CHUNK: Final = 1 << 15


class Adagrad:
    """A table of vectors with the Adagrad sums of its numbers (Duchi 2011)."""

    def __init__(self, vectors: Floats, rate: float) -> None:
        self.vectors, self.rate = vectors, rate
        self.moved = np.zeros_like(vectors)

    def move(self, gradient: Floats, rows: Ints | None = None) -> None:
        """Step against a gradient, for the whole table or for distinct `rows`. The gradient is overwritten."""
        # Pieces stay in the processor's cache: each number is used several times.
        piece = max(1, _CHUNK // gradient.shape[1])
        rate = np.float32(self.rate)
        for begin in range(0, len(gradient), piece):
            chunk = gradient[begin : begin + piece]
            target = slice(begin, begin + piece) if rows is None else rows[begin : begin + piece]
            moved = self.moved[target]
            moved = moved + chunk * chunk if rows is not None else np.add(moved, chunk * chunk, out=moved)
            if rows is not None:
                self.moved[target] = moved
            size = np.sqrt(moved)
            size += np.float32(1e-10)
            chunk *= rate
            chunk /= size
            self.vectors[target] -= chunk


class Learner(Protocol):
    """The tables of a model and how they are updated, in NumPy or on a device of PyTorch."""

    def step(self, batch: Batch, *, n3: float, predict_relation: float) -> float:
        """Update both tables by one batch; return its loss per edge, without N3."""

    def vectors(self) -> tuple[Floats, Floats]:
        """Return copies of the vectors of entities and of relations."""

    def moved(self) -> tuple[Floats, Floats]:
        """Return copies of the Adagrad sums of both tables."""

    def restore(self, moved: tuple[Floats, Floats]) -> None:
        """Set the Adagrad sums."""

    def scorer(self, model: Embeddings) -> LinkModel:
        """Return the model with the fastest scores that this learner has."""


class Scratch:
    """Memory for the large arrays of a step, reused by the next one: allocation took a third of the time."""

    def __init__(self) -> None:
        self._arrays: dict[str, Floats] = {}

    def room(self, what: str, rows: int, columns: int) -> Floats:
        """Return an uninitialised array (rows, columns) for a purpose."""
        array = self._arrays.get(what)
        if array is None or array.size < rows * columns:
            array = self._arrays[what] = np.empty(rows * columns * 5 // 4, np.float32)
        return array[: rows * columns].reshape(rows, columns)

    def rows(self, what: str, table: Floats, which: Ints) -> Floats:
        """Return a copy of some rows of a table."""
        return np.take(table, which, axis=0, out=self.room(what, len(which), table.shape[1]), mode="clip")

    def product(self, what: str, left: Floats, right: Floats) -> Floats:
        """Return the product of two matrices."""
        return np.matmul(left, right, out=self.room(what, len(left), right.shape[1]))


class NumpyLearner:
    """A learner in NumPy."""

    def __init__(self, entities: Floats, relations: Floats, rate: float) -> None:
        self.entities, self.relations = Adagrad(entities, rate), Adagrad(relations, rate)
        self.scratch = Scratch()

    def step(self, batch: Batch, *, n3: float, predict_relation: float) -> float:
        return step(self.entities, self.relations, batch, n3=n3, predict_relation=predict_relation, scratch=self.scratch)

    def vectors(self) -> tuple[Floats, Floats]:
        return self.entities.vectors.copy(), self.relations.vectors.copy()

    def moved(self) -> tuple[Floats, Floats]:
        return self.entities.moved.copy(), self.relations.moved.copy()

    def restore(self, moved: tuple[Floats, Floats]) -> None:
        self.entities.moved, self.relations.moved = moved

    def scorer(self, model: Embeddings) -> LinkModel:
        return model


def step(
    entities: Adagrad, relations: Adagrad, batch: Batch, *, n3: float, predict_relation: float, scratch: Scratch | None = None
) -> float:
    """Update both tables by one batch; return its loss per edge, without N3."""
    scratch = scratch or Scratch()
    e, r = entities.vectors, relations.vectors
    heads, rel = e[batch.heads], r[batch.relations]
    sample = batch.sample
    place = batch.tails if sample is None else np.searchsorted(sample, batch.tails)
    candidates = e if sample is None else scratch.rows("candidates", e, sample)
    count = np.bincount(batch.row, minlength=len(batch.heads)).astype(np.float32)
    edges = np.float32(len(batch.tails))

    question_vectors = questions("complex", heads, rel)
    scores = scratch.product("scores", question_vectors, candidates.T)
    if batch.stands_for is not None:
        scores += batch.stands_for
    loss, pull = _softmax(scores, batch.row, place, count)
    d_questions = pull @ candidates
    d_candidates = scratch.product("d_candidates", pull.T, question_vectors)
    d_heads, d_rel = _through(d_questions, heads, rel)

    tails = candidates[place]
    by_edge, d_tails = heads[batch.row], np.zeros_like(tails)
    d_by_edge = np.zeros_like(by_edge)
    d_relations = np.zeros_like(r)
    if predict_relation:
        relation_loss, d_by_edge, d_tails, d_relations = _relation_step(by_edge, tails, r, batch.relations[batch.row])
        weight = np.float32(predict_relation)
        loss += predict_relation * relation_loss
        d_by_edge, d_tails, d_relations = d_by_edge * weight, d_tails * weight, d_relations * weight
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
    not_sampled = np.ones(len(rows), bool)
    not_sampled[place] = False
    gradient = scratch.room("whole", len(rows), d_candidates.shape[1])
    gradient[not_sampled] = 0
    gradient[place] = d_candidates
    _add(gradient, np.searchsorted(rows, batch.heads), d_heads)
    entities.move(gradient, rows)


def _softmax(scores: Floats, row: Ints, place: Ints, count: Floats) -> tuple[float, Floats]:
    """Return the loss of the right positions, and its gradient by the scores, which are overwritten."""
    right = scores[row, place].astype(np.float64)
    top = scores.max(axis=1, keepdims=True)
    scores -= top
    np.exp(scores, out=scores)
    total = scores.sum(axis=1, keepdims=True, dtype=np.float64)
    log_total = np.log(total[:, 0]) + top[:, 0]
    loss = float((log_total[row] - right).sum())
    scores *= (count[:, None] / total).astype(np.float32)
    # The positions of one question are distinct, so `np.subtract.at` is not needed.
    scores[row, place] -= 1
    return loss, scores


def _relation_step(heads: Floats, tails: Floats, relations: Floats, right: Ints) -> tuple[float, Floats, Floats, Floats]:
    """Return the loss of relation prediction from both ends, and its gradients by heads, tails and relations."""
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
    """Return the gradient of `questions` by heads and by relations."""
    x, y = halves(d_asked)
    a, b = halves(heads)
    c, d = halves(relations)
    return np.concatenate([x * c + y * d, y * c - x * d], axis=1), np.concatenate([x * a + y * b, y * a - x * b], axis=1)


def _n3(vectors: Floats, weight: float) -> Floats:
    """Return the gradient of weight * sum of |x|^3 over complex numbers x."""
    a, b = halves(vectors)
    size = np.float32(3 * weight) * np.sqrt(a * a + b * b)
    return np.concatenate([size * a, size * b], axis=1)


def _add(into: Floats, rows: Ints, what: Floats) -> None:
    """Compute `into[rows] += what`, where rows may repeat: sums of sorted runs are much faster than `np.add.at`."""
    if not len(rows):
        return
    order = np.argsort(rows, kind="stable")
    ordered = rows[order]
    begin = np.flatnonzero(changed(ordered))
    into[ordered[begin]] += np.add.reduceat(what[order], begin, axis=0)


def sampled(rng: np.random.Generator, entities: int, tails: Ints, near: Ints, negatives: int) -> tuple[Ints, Floats]:
    """Sample the entities that tails compete with: all `tails`, up to `negatives` of the other entities in `near`
    (ascending), and about `negatives` of all others. Returns them, and the logarithm of how many entities each
    represents.

    `near` are the entities that the relations of the batch reach. They are the rivals that matter, and a uniform sample
    of a large graph would have hardly any of them. The weights make a sum over the sample the sum over all entities on
    average.
    """
    distinct_tails = np.unique(tails)
    near_rivals = minus(near, distinct_tails, entities)
    close = near if len(near) <= negatives else near[np.sort(rng.choice(len(near), negatives, replace=False))]
    close = minus(close, distinct_tails, entities)
    drawn = np.sort(rng.choice(entities, min(negatives, entities), replace=False))
    drawn = minus(minus(drawn, distinct_tails, entities), near, entities)
    far_count = entities - len(distinct_tails) - len(near_rivals)
    entity_numbers = np.concatenate([distinct_tails, close, drawn])
    weights = [(distinct_tails, 1.0), (close, len(near_rivals) / max(len(close), 1)), (drawn, far_count / max(len(drawn), 1))]
    logs = np.concatenate([np.full(len(part), np.log(max(weight, 1.0)), np.float32) for part, weight in weights])
    order = np.argsort(entity_numbers)
    return entity_numbers[order], logs[order]
