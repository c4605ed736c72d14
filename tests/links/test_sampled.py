"""Training against a sample of entities: what the sample stands for, what a batch is of, and the
tables that are moved.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from condgraph.links.edges import Edges
from condgraph.links.step import Adagrad, Batch, Scratch, sampled, step
from condgraph.links.train import RELATIONS, Questions


class Still(Adagrad):
    """Does not move."""

    def move(self, gradient: Any, rows: Any = None) -> None:
        pass


def lost(e: Any, r: Any, batch: Batch) -> float:
    return step(Still(e.copy(), 0.1), Still(r.copy(), 0.1), batch, n3=0.0, predict_relation=0.0)


@pytest.mark.parametrize("near", [0, 20, 90])
def test_a_sample_stands_for_all_entities(near: int) -> None:
    """Tails of other questions are in a sample for sure, so that they count once, not as many; what is
    near counts as many as it was drawn of."""
    rng = np.random.default_rng(3)
    e, r = (0.7 * rng.standard_normal(shape).astype(np.float32) for shape in ((200, 6), (2, 6)))
    heads, relations, row = np.array([4, 9]), np.array([0, 1]), np.array([0, *[1] * 30])
    tails = np.concatenate([[7], 100 + np.arange(30)])
    close = np.sort(rng.permutation(200)[:near])

    def drawn() -> float:
        sample, stands_for = sampled(rng, 200, tails, close, 40)
        assert np.all(np.diff(sample) > 0)
        assert np.isin(tails, sample).all()
        assert np.exp(stands_for.astype(float)).sum() == pytest.approx(200)
        assert np.all(stands_for[np.isin(sample, tails)] == 0)
        if near <= 40:
            assert np.all(stands_for[np.isin(sample, close)] == 0)
        return lost(e, r, Batch(heads, relations, row, tails, sample, stands_for))

    whole = lost(e, r, Batch(heads, relations, row, tails))
    assert float(np.mean([drawn() for _ in range(300)])) == pytest.approx(whole, rel=0.02)


def test_rivals_that_a_relation_leads_to_are_all_there() -> None:
    """Of 2,000 entities 40 matter to a relation; an even draw of 100 would have two of them, and its
    loss would be by chance.
    """
    rng = np.random.default_rng(8)
    e, r = rng.standard_normal((2000, 6)).astype(np.float32) * np.float32(0.1), np.ones((1, 6), np.float32)
    close = np.arange(40)
    e[:50] *= 20
    one = np.array([0])
    question = (np.array([44]), one, one, np.array([3]))
    whole = lost(e, r, Batch(*question))
    found = [lost(e, r, Batch(*question, *sampled(rng, 2000, question[3], close, 100))) for _ in range(50)]
    even = [lost(e, r, Batch(*question, *sampled(rng, 2000, question[3], one[:0], 100))) for _ in range(50)]
    assert np.abs(np.array(found) - whole).max() < 0.2 * np.abs(np.array(even) - whole).max()


def test_a_batch_is_of_few_relations_where_rivals_are_sampled() -> None:
    edges = Edges.of([(f"n{i:03}", f"r{i % 23:02}", f"n{(7 * i + j) % 400:03}") for i in range(400) for j in (1, 5)])
    questions = Questions(edges)
    for negatives, most in ((50, 2 * RELATIONS), (None, 46)):
        batches = list(questions.batches(np.random.default_rng(1), 60, negatives, 400))
        asked = [np.stack([one.relations, one.heads], axis=1) for one in batches]
        assert len(np.unique(np.concatenate(asked), axis=0)) == sum(map(len, asked)) == len(questions.keys)
        assert {len(one) for one in asked[:-1]} == {60}
        many = [len(np.unique(one.relations)) for one in batches]
        assert max(many) <= most if negatives else max(many) > 2 * RELATIONS
        assert sum(len(one.tails) for one in batches) == 2 * len(edges.triples)
    first, again = (next(iter(questions.batches(np.random.default_rng(s), 60, 50, 400))).heads for s in (1, 2))
    assert not np.array_equal(first, again)


def test_a_table_moved_in_pieces_moves_as_a_whole() -> None:
    rng = np.random.default_rng(4)
    table, gradient = (rng.standard_normal((5000, 40)).astype(np.float32) for _ in range(2))
    rows = np.sort(rng.permutation(5000)[:3000])
    for which in (None, rows):
        moving, size = Adagrad(table.copy(), 0.3), 5000 if which is None else 3000
        wanted, moved, at = table.copy(), np.zeros_like(table), slice(None) if which is None else which
        for _ in range(2):
            moved[at] += gradient[:size] ** 2
            wanted[at] -= np.float32(0.3) * gradient[:size] / (np.sqrt(moved[at]) + np.float32(1e-10))
            moving.move(gradient[:size].copy(), which)
        np.testing.assert_array_equal(moving.vectors, wanted)
        np.testing.assert_array_equal(moving.moved, moved)


def test_a_kept_scratch_gives_the_same_steps() -> None:
    """Room that is kept from a larger batch holds nothing of it."""
    rng = np.random.default_rng(6)
    e, r = (rng.standard_normal(shape).astype(np.float32) for shape in ((60, 8), (6, 8)))
    tables = [(Adagrad(e.copy(), 0.1), Adagrad(r.copy(), 0.1)) for _ in range(2)]
    scratch = Scratch()
    for size, drawn in ((12, 40), (3, 9), (7, 20), (5, None)):
        heads, relations = rng.permutation(60)[:size], rng.integers(6, size=size)
        row, tails = np.arange(size).repeat(2), np.concatenate([rng.permutation(60)[:2] for _ in range(size)])
        sample = None if drawn is None else np.union1d(tails, rng.permutation(60)[:drawn])
        batch = Batch(heads, relations, row, tails, sample)
        losses = [
            step(*both, batch, n3=0.1, predict_relation=0.5, scratch=kept)
            for both, kept in zip(tables, (scratch, None), strict=True)
        ]
        assert losses[0] == losses[1]
    for kept, fresh in zip(*tables, strict=True):
        np.testing.assert_array_equal(kept.vectors, fresh.vectors)
