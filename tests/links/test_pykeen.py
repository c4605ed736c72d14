"""Models of PyKEEN as models of links; where PyKEEN is installed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from condgraph.engine.errors import LinkModelError
from condgraph.links.edges import Edges
from condgraph.links.model import LinkModel
from condgraph.links.pykeen import PyKeenModel
from condgraph.links.ranks import rank_edges


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ComplEx", "TransE"])
def test_a_model_of_pykeen_scores_as_it_does_there(name: str) -> None:
    pytest.importorskip("pykeen")
    import torch
    from pykeen.datasets import UMLS
    from pykeen.pipeline import pipeline

    data = UMLS()
    made = pipeline(
        dataset=data, model=name, training_kwargs={"num_epochs": 3, "use_tqdm": False}, random_seed=0, device="cpu",
        evaluation_kwargs={"use_tqdm": False},
    )  # fmt: skip
    model = PyKeenModel(made.model, made.training)
    assert isinstance(model, LinkModel)
    rng = np.random.default_rng(0)
    triples = np.stack([rng.integers(135, size=40), rng.integers(46, size=40), rng.integers(135, size=40)], axis=1)
    wanted = made.model.score_hrt(torch.as_tensor(triples)).detach().numpy()[:, 0]
    for (head, relation, tail), score in zip(triples.tolist(), wanted.tolist(), strict=True):
        assert model.score_tails(np.array([head]), relation)[0, tail] == pytest.approx(score, abs=1e-4)
        assert model.score_tails(np.array([tail]), relation, inverse=True)[0, head] == pytest.approx(score, abs=1e-4)
    known = [one.mapped_triples.numpy().astype(np.int64) for one in (data.training, data.validation, data.testing)]
    edges = [Edges(model.entities, model.relations, one) for one in known]
    # PyKEEN's realistic rank is the mean of the best and the worst of equals, as ours.
    assert rank_edges(model, edges[2], edges).mrr == pytest.approx(
        made.metric_results.get_metric("both.realistic.inverse_harmonic_mean_rank"), abs=0.01
    )


def test_what_is_no_model_of_pykeen_is_said() -> None:
    pytest.importorskip("torch")
    nothing: Any = object()
    with pytest.raises(LinkModelError, match="a object is not PyKEEN's"):
        PyKeenModel(nothing, nothing)
