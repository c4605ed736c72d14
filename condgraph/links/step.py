"""One step of training ComplEx with N3 (Lacroix 2018): loss and gradients of a batch of questions
(h, r), each against all entities at once or against a sample of them, in NumPy.

The loss of a question is -sum over its tails of log softmax(score), so that all tails of one (h, r)
cost one row of scores. Beside it, N3 of every edge's vectors, and relation prediction (Chen 2021):
-w log softmax over relations of the score of (h, r, t).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from condgraph.links.edges import Ints
from condgraph.links.embeddings import Embeddings
from condgraph.links.forms import Floats, halves, questions
from condgraph.links.model import LinkModel


@dataclass(frozen=True, slots=True)
class Batch:
    """Questions: heads and relations (b,), and their tails, `tails[i]` being of question `row[i]`.

    `sample` are the entities that tails are told from, ascending and distinct, all tails among
    them; None for all entities. `share` is the part of the entities that are no tails here of which
    the sample was drawn.
    """

    heads: Ints
    relations: Ints
    row: Ints
    tails: Ints
    sample: Ints | None = None
    share: float = 1.0


class Adagrad:
    """A table of vectors, and how much each number has moved (Duchi 2011)."""

    def __init__(self, vectors: Floats, rate: float) -> None:
        self.vectors, self.rate = vectors, rate
        self.moved = np.zeros_like(vectors)

    def move(self, gradient: Floats, rows: Ints | None = None) -> None:
        """Go against a gradient: of the whole table, or of `rows`, each once."""
        if rows is None:
            self.moved += gradient * gradient
            self.vectors -= self.rate * gradient / (np.sqrt(self.moved) + 1e-10)
            return
        moved = self.moved[rows] + gradient * gradient
        self.moved[rows] = moved
        self.vectors[rows] -= self.rate * gradient / (np.sqrt(moved) + 1e-10)


class Learner(Protocol):
    """What trains: the tables of a model, in NumPy or on a device of PyTorch."""

    def step(self, batch: Batch, *, n3: float, predict_relation: float) -> float:
        """Move both tables by one batch; its loss for each edge, without N3."""

    def vectors(self) -> tuple[Floats, Floats]:
        """Copies of the vectors of entities and of relations."""

    def moved(self) -> tuple[Floats, Floats]:
        """Copies of how much each of these numbers has moved (Adagrad)."""

    def restore(self, moved: tuple[Floats, Floats]) -> None:
        """Go on from where `moved` was."""

    def scorer(self, model: Embeddings) -> LinkModel:
        """A model as it is scored quickest here."""


class NumpyLearner:
    """The tables in memory."""

    def __init__(self, entities: Floats, relations: Floats, rate: float) -> None:
        self.entities, self.relations = Adagrad(entities, rate), Adagrad(relations, rate)

    def step(self, batch: Batch, *, n3: float, predict_relation: float) -> float:
        """See `Learner.step`."""
        return step(self.entities, self.relations, batch, n3=n3, predict_relation=predict_relation)

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


def step(entities: Adagrad, relations: Adagrad, batch: Batch, *, n3: float, predict_relation: float) -> float:
    """Move both tables by one batch; its loss for each edge, without N3."""
    e, r = entities.vectors, relations.vectors
    heads, rel = e[batch.heads], r[batch.relations]
    sample = batch.sample
    place = batch.tails if sample is None else np.searchsorted(sample, batch.tails)
    candidates = e if sample is None else e[sample]
    count = np.bincount(batch.row, minlength=len(batch.heads)).astype(np.float32)
    edges = np.float32(len(batch.tails))

    asked = questions("complex", heads, rel)
    scores = asked @ candidates.T
    if batch.share < 1:
        # An entity that was drawn stands for 1 / share others; a tail of any question is always here.
        stands_for = np.full(scores.shape[1], -np.log(batch.share), np.float32)
        stands_for[place] = 0
        scores += stands_for
    loss, pull = _softmax(scores, batch.row, place, count)
    d_asked = pull @ candidates
    d_candidates = pull.T @ asked
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

    if sample is None:
        _add(d_candidates, batch.heads, d_heads)
        entities.move(d_candidates / edges)
    else:
        rows = np.union1d(sample, batch.heads)
        whole = np.zeros((len(rows), e.shape[1]), np.float32)
        whole[np.searchsorted(rows, sample)] = d_candidates
        _add(whole, np.searchsorted(rows, batch.heads), d_heads)
        entities.move(whole / edges, rows)
    relations.move(d_relations / edges)
    return float(loss / edges)


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


def sampled(rng: np.random.Generator, entities: int, tails: Ints, negatives: int) -> tuple[NDArray[np.int64], float]:
    """A sample that has all `tails` and `negatives` others: the entities, and the share of the
    others that it has.
    """
    own = np.unique(tails)
    drawn = rng.choice(entities, min(negatives, entities), replace=False)
    found = np.union1d(own, drawn)
    rest = entities - len(own)
    return found, (len(found) - len(own)) / rest if rest > 0 and len(found) > len(own) else 1.0
