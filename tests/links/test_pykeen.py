"""Models of PyKEEN as models of links; where PyKEEN is installed (`.ci/models`)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import condgraph
from condgraph.engine.errors import LinkModelError
from condgraph.engine.facts import Entity, Ref, Statement
from condgraph.links.edges import Edges
from condgraph.links.model import LinkModel
from condgraph.links.pykeen import PyKeenModel
from condgraph.links.ranks import rank_edges


def pykeen() -> Any:
    """The package. Its import asks whether IPv6 works by binding a socket, so it is not a test's."""
    try:
        import pykeen.datasets
        import pykeen.pipeline
    except ImportError:
        return None
    return pykeen


PYKEEN = pykeen()


def made_there(name: str) -> tuple[Any, Any]:
    """The data set UMLS, and what PyKEEN's pipeline makes of it in three epochs."""
    if PYKEEN is None:
        pytest.skip("could not import 'pykeen'")
    data = PYKEEN.datasets.UMLS()
    made = PYKEEN.pipeline.pipeline(
        dataset=data, model=name, random_seed=0, device="cpu", evaluation_kwargs={"use_tqdm": False, "batch_size": 64},
        training_kwargs={"num_epochs": 3, "use_tqdm": False, "batch_size": 512},
    )  # fmt: skip
    return data, made


@pytest.mark.parametrize("name", ["ComplEx", "TransE"])
def test_a_model_of_pykeen_scores_as_it_does_there(name: str) -> None:
    data, made = made_there(name)
    import torch

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


def test_a_model_of_pykeen_answers_a_query() -> None:
    data, made = made_there("ComplEx")
    graph = condgraph.open("memory:")
    model = PyKeenModel(made.model, made.training)
    graph.add(Entity(one, one) for one in model.entities)
    graph.add(Statement(head, relation, Ref(tail)) for head, relation, tail in made.training.triples)
    head, relation, _ = made.training.triples[0].tolist()
    # By hand: softmax over tails, times the number of known ones (Eq. 3 and 4).
    number = data.training.relation_to_id[relation]
    scores = model.score_tails(np.array([data.training.entity_to_id[head]]), number)[0].astype(np.float64)
    known = {tail for h, r, tail in made.training.triples.tolist() if (h, r) == (head, relation)}
    chance = np.exp(scores - scores.max())
    chance = np.minimum(chance / chance.sum() * len(known), 1 - 1e-4)
    found = graph.logic("1p", [head, relation], model=model, k=None, explain=False)
    wanted = {e: 1.0 if e in known else c for e, c in zip(model.entities, chance.tolist(), strict=True) if e in known or c >= 1e-3}
    assert {one.entity.id for one in found if one.observed} == known
    assert len(wanted) > len(known)
    for one in found:
        assert one.score == pytest.approx(wanted.pop(one.entity.id), abs=1e-5)
    assert all(score < 1.001e-3 for score in wanted.values())


def test_what_is_no_model_of_pykeen_is_said() -> None:
    pytest.importorskip("torch")
    nothing: Any = object()
    with pytest.raises(LinkModelError, match="a object is not PyKEEN's"):
        PyKeenModel(nothing, nothing)
