"""A model and rules together: weights that held-out edges choose, scores by hand, explanations, and bad input."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import condgraph
from condgraph.engine.errors import LinkModelError, OptionError
from condgraph.engine.facts import Entity, Ref, Statement
from condgraph.links.edges import Edges
from condgraph.links.mixture import WEIGHTS, Mixture, mix
from condgraph.links.ranks import rank_edges
from condgraph.links.rule_model import Rules, learn

FACTS = sorted(
    {(f"p{i:02}", "born", f"c{i % 6}") for i in range(36)}
    | {(f"c{i}", "in", f"n{i % 3}") for i in range(6)}
    | {(f"p{i:02}", "national", f"n{i % 3}") for i in range(36)}
    | {(f"p{i:02}", "likes", f"p{(7 * i + 3) % 36:02}") for i in range(36)}
)
#: Of `national` rules know all, of `likes` the model below alone.
VALID = [one for at, one in enumerate(FACTS) if one[1] in ("national", "likes") and at % 4 == 0]
OWN = [one for one in FACTS if one not in VALID]


class Likes:
    """A calibrated model that knows who likes whom, and of `national` the wrong country, with certainty."""

    calibrated = True

    def __init__(self, edges: Edges) -> None:
        self.entities, self.relations = edges.entities, edges.relations
        numbers = edges.entity_numbers
        self.scores = np.full((len(edges.relations), len(edges.entities), len(edges.entities)), 1e-4, np.float32)
        for head, relation, tail in FACTS:
            wrong = f"n{(int(tail[1:]) + 1) % 3}" if relation == "national" else tail
            self.scores[edges.relation_numbers[relation], numbers[head], numbers[wrong]] = 0.9

    def score_tails(self, heads: np.ndarray, relation: int, *, inverse: bool = False) -> np.ndarray:
        found = self.scores[relation]
        return (found.T if inverse else found)[heads]


@pytest.fixture(scope="module")
def parts() -> tuple[condgraph.Graph, Edges, Likes, Rules]:
    graph = condgraph.open("memory:")
    graph.add(Entity(name, name) for name in sorted({end for h, _, t in FACTS for end in (h, t)}))
    graph.add(Statement(h, r, Ref(t)) for h, r, t in OWN)
    edges = Edges.of_snapshot(graph.current)
    return graph, edges, Likes(edges), learn(edges, valid=edges.with_triples(np.empty((0, 3), np.int64)))


def test_each_relation_takes_what_ranks_its_held_out_edges_best(parts: Any) -> None:
    graph, edges, model, rules = parts
    mixed = graph.mix_links(model, rules, valid=VALID)
    assert mixed.warnings == rules.warnings
    by_name = {name: mixed.weights[2 * at] for name, at in edges.relation_numbers.items()}
    assert by_name["national"] > by_name["likes"]
    held = edges.numbered(VALID)
    alone = [rank_edges(one, held, [edges, held]).mrr for one in (model, rules)]
    assert rank_edges(mixed, held, [edges, held]).mrr > max(alone) + 0.05


def test_scores_are_weighted_geometric_means(parts: Any) -> None:
    _, edges, model, rules = parts
    weights = np.array([WEIGHTS[at % len(WEIGHTS)] for at in range(2 * len(edges.relations))])
    mixed = Mixture(model, rules, weights)
    heads = np.arange(len(edges.entities))
    for relation in range(len(edges.relations)):
        for inverse in (False, True):
            weight = weights[2 * relation + inverse]
            one, other = (part.score_tails(heads, relation, inverse=inverse).astype(float) for part in (model, rules))
            by_hand = np.maximum(one, 1e-7) ** (1 - weight) * np.maximum(other, 1e-3) ** weight
            if weight in (0, 1):
                by_hand = other if weight else one
            found = mixed.score_tails(heads, relation, inverse=inverse)
            assert np.allclose(found, by_hand, atol=1e-6)
            offsets, ids, values = mixed.rows(heads, relation, inverse=inverse)
            dense = np.zeros_like(found)
            dense[np.repeat(heads, np.diff(offsets)), ids] = values
            assert np.array_equal(dense, np.where(found >= 1e-7, found, 0))


def test_answers_of_a_mixture_have_rules_that_can_be_checked(parts: Any) -> None:
    graph, _, model, rules = parts
    mixed = graph.mix_links(model, rules, valid=VALID)
    subject = next(head for head, relation, _ in VALID if relation == "national")
    best = graph.logic(f'?x : national("{subject}", ?x)', model=mixed)[0]
    assert best.entity.name == f"n{int(subject[1:]) % 3}"
    assert not best.observed
    assert best.edges[0].rules
    assert all(one.check() and one.statements for one in best.edges[0].rules)


def test_bad_input_is_told(parts: Any, tmp_path: Path) -> None:
    graph, edges, model, rules = parts
    mixed = graph.mix_links(model, rules, tmp_path / "mixture.npz", valid=VALID)
    again = Mixture.load(tmp_path / "mixture.npz", model, rules)
    assert np.array_equal(again.weights, mixed.weights)
    assert again.fingerprint == mixed.fingerprint
    with pytest.raises(LinkModelError, match="no held-out edges"):
        graph.mix_links(model, rules, valid=[])
    with pytest.raises(OptionError, match="seconds"):
        graph.mix_links(model, rules, valid=VALID, seconds=0)
    fewer = Edges.of(OWN[:20])
    with pytest.raises(LinkModelError, match="the rules are of another graph"):
        mix(fewer, model, rules, fewer)
    with pytest.raises(LinkModelError, match="the model is of another graph"):
        mix(edges, Likes(Edges.of([*FACTS, ("x", "likes", "y")])), rules, edges.numbered(VALID))
    other = Likes(edges)
    other.scores = other.scores / 2
    with pytest.raises(LinkModelError, match="of another model"):
        Mixture.load(tmp_path / "mixture.npz", other, rules)
    with pytest.raises(LinkModelError, match="cannot be read"):
        Mixture.load(_written(tmp_path), model, rules)
    short = mix(edges, model, rules, edges.numbered(VALID), seconds=1e-9)
    assert "allowed the weights of 1 of 4 relations and directions to be chosen" in short.warnings[0]


def _written(folder: Path) -> Path:
    path = folder / "other.npz"
    np.savez(path, mixture=np.frombuffer(b"[]", np.uint8), weights=np.zeros(2))
    return path
