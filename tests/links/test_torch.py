"""Training in PyTorch beside training in NumPy: the same vectors from the same start, whose
gradients torch works out itself; where torch is installed (`.ci/models`).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from condgraph.engine.errors import LinkModelError, MissingExtraError
from condgraph.links.edges import Edges
from condgraph.links.embeddings import Embeddings
from condgraph.links.ranks import rank_edges
from condgraph.links.step import Batch, NumpyLearner
from condgraph.links.train import TrainOptions, held_out, train


def ring(n: int = 24) -> Edges:
    return Edges.of([(f"n{i:02}", f"plus {step}", f"n{(i + step) % n:02}") for i in range(n) for step in (1, 2, 3)])


@pytest.mark.parametrize(("n3", "weight"), [(0.0, 0.0), (0.3, 0.0), (0.0, 0.7), (0.05, 4.0)])
@pytest.mark.parametrize("share", [None, 1.0, 0.4])
def test_steps_are_those_of_numpy(n3: float, weight: float, share: float | None) -> None:
    pytest.importorskip("torch")
    from condgraph.links.torch_step import TorchLearner

    rng = np.random.default_rng(5)
    e, r = (rng.standard_normal(shape).astype(np.float32) for shape in ((30, 8), (6, 8)))
    e[3] = 0  # |x|^3 has a gradient there
    here, there = NumpyLearner(e.copy(), r.copy(), 0.1), TorchLearner(e.copy(), r.copy(), 0.1, "cpu")
    for _ in range(12):
        heads, relations = rng.permutation(30)[:5], rng.integers(6, size=5)
        row = np.repeat(np.arange(5), [1, 3, 2, 1, 4])
        tails = np.concatenate([rng.permutation(30)[:count] for count in (1, 3, 2, 1, 4)])
        sample = None if share is None else np.union1d(tails, rng.permutation(30)[:9])
        weights = None
        if sample is not None and share is not None:
            weights = np.where(np.isin(sample, tails), 0.0, -np.log(share)).astype(np.float32)
        batch = Batch(heads, relations, row, tails, sample, weights)
        losses = [one.step(batch, n3=n3, predict_relation=weight) for one in (here, there)]
        assert losses[0] == pytest.approx(losses[1], rel=1e-4)
    for mine, theirs in zip((*here.vectors(), *here.moved()), (*there.vectors(), *there.moved()), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=2e-3, atol=2e-4)
    assert np.abs(here.vectors()[0] - e).max() > 0.05  # they did move


@pytest.mark.parametrize("negatives", [None, 8])
def test_what_is_trained_there_is_as_good(negatives: int | None, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    edges, left = held_out(ring(), 0.1, np.random.default_rng(0))
    options: dict[str, Any] = {"rank": 16, "epochs": 60, "batch": 20, "n3": 0.01, "negatives": negatives}
    there = train(edges, TrainOptions(**options, device="cpu"), valid=left, checkpoint=tmp_path / "state")
    assert rank_edges(there.model, left, [edges]).mrr > 0.75
    # A training that began there goes on here.
    more = train(edges, TrainOptions(**{**options, "epochs": 65}), valid=left, checkpoint=tmp_path / "state")
    assert more.epochs in (there.epochs, 65)
    assert more.validation is not None
    assert there.validation is not None
    assert more.validation.mrr >= there.validation.mrr


def test_a_model_is_scored_on_a_device() -> None:
    pytest.importorskip("torch")
    rng = np.random.default_rng(2)
    for form, shape in (("complex", (3, 8)), ("distmult", (3, 8)), ("cp", (3, 8)), ("rescal", (3, 8, 8))):
        e, t, r, i = (rng.standard_normal(one).astype(np.float32) for one in ((9, 8), (9, 8), shape, shape))
        for tails in (t,) if form == "cp" else (None,):
            for inverse in (None, i):
                model = Embeddings(form, tuple("abcdefghi"), tuple("rst"), e, r, inverse, tails)
                there = model.on("cpu")
                for backwards in (False, True):
                    wanted = model.score_tails(np.array([4, 0]), 1, inverse=backwards)
                    found = there.score_tails(np.array([4, 0]), 1, inverse=backwards)
                    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)
                assert there.fingerprint == model.fingerprint


def test_a_device_that_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    for name in ("cuda:77", "nonsense"):
        with pytest.raises(LinkModelError, match=f"the device '{name}'") as caught:
            train(ring(), TrainOptions(rank=2, epochs=1, device=name))
        assert "cpu" in caught.value.candidates


def test_without_torch_a_device_is_an_error_and_auto_is_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match="torch"):
        train(ring(), TrainOptions(rank=2, epochs=1, device="cpu"))
    options = {"rank": 4, "epochs": 2, "batch": 20}
    auto, plain = (train(ring(), TrainOptions(**options, device=one)).model for one in ("auto", None))
    assert auto.fingerprint == plain.fingerprint
