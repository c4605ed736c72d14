"""Sets of answers that keep a promise: coverage counted on queries that were not calibrated on, and bad input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import condgraph
from condgraph.engine.errors import LinkModelError, OptionError, UnsupportedError
from condgraph.engine.facts import Entity, Ref, Statement
from condgraph.languages.logic.convert import tree_of
from condgraph.languages.logic.structures import STRUCTURES, named
from condgraph.logic.evaluation.sets import AnswerSets, kind_of

N = 60
NAMES = [f"e{i:02}" for i in range(N)]


class Noisy:
    """A calibrated model: how far two numbers are from each other's double, and noise that each relation has of its own."""

    calibrated = True
    entities, relations = NAMES, ["a", "b"]

    def __init__(self) -> None:
        rng = np.random.default_rng(1)
        place = np.arange(N)
        near = [np.exp(-np.abs((factor * place[:, None] - place) % N) / 9) for factor in (2, 3)]
        self.scores = [np.clip(0.9 * one * rng.random((N, N)), 0, 1).astype(np.float32) for one in near]

    def score_tails(self, heads: np.ndarray, relation: int, *, inverse: bool = False) -> np.ndarray:
        scores = self.scores[relation]
        return (scores.T if inverse else scores)[heads]


def _edges(seed: int, many: int) -> list[tuple[str, str, str]]:
    rng = np.random.default_rng(seed)
    found = set()
    for _ in range(many):
        relation, head = int(rng.integers(2)), int(rng.integers(N))
        found.add((NAMES[head], "ab"[relation], NAMES[int((2 + relation) * head + rng.integers(-4, 20)) % N]))
    return sorted(found)


@pytest.fixture(scope="module")
def world() -> tuple[condgraph.Graph, list[tuple[str, str, str]], list[tuple[str, str, str]]]:
    """A graph, edges that it misses to calibrate by, and others to count by."""
    edges = _edges(3, 900)
    order = np.random.default_rng(0).permutation(len(edges))
    own, valid, test = (np.array(edges, object)[part] for part in np.split(order, [len(edges) // 2, len(edges) * 3 // 4]))
    graph = condgraph.open("memory:")
    graph.add([*(Entity(name, name) for name in NAMES), *(Statement(h, r, Ref(t)) for h, r, t in own)])
    return graph, [tuple(one) for one in valid], [tuple(one) for one in test]


def test_a_set_has_the_missing_answer_as_often_as_promised(world: Any) -> None:
    graph, valid, test = world
    kinds = ["1p", "2p", "2i"]
    sets = graph.answer_sets(valid, Noisy(), 100, kinds=kinds, epsilon=1e-9)
    cases = graph.sample_queries(test, 100, kinds=kinds, seed=5).cases
    for share in (0.5, 0.9):
        kept = []
        for case in cases:
            branches = case.query if case.kind == "2i" else [case.query]
            found = sets.ask(case.kind, *([one, *steps] for one, steps in branches), share=share)
            assert found.kind == case.kind
            have = {one.entity.id for one in found.predicted}
            assert not have & {one.entity.id for one in found.observed}
            kept.append(np.mean([one in have for one in case.hard]))
        # 300 queries: three standard errors of a share of them are 0.09 and 0.05.
        assert share - 0.12 < np.mean(kept) < min(1.0, share + 0.12)


def test_the_threshold_is_the_one_of_the_paper() -> None:
    sets = AnswerSets(None, Noisy(), {"1p": [0.01 * i for i in range(1, 100)]}, {})  # type: ignore[arg-type]
    # Of 99 scores and the next one, each place is as likely: 10 of 100 are below the tenth score.
    assert sets.threshold("1p", 0.9) == pytest.approx(0.10)
    assert sets.threshold("1p", 0.99) == pytest.approx(0.01)
    assert sets.threshold("1p", 0.995) == 0.0


def test_too_few_queries_promise_nothing_but_all_entities(world: Any) -> None:
    graph, valid, _ = world
    sets = graph.answer_sets(valid, Noisy(), 5, kinds=["1p"])
    found = sets.ask("1p", ["e01", "a"])
    assert found.whole
    assert found.warnings == ["only the set of all entities keeps 90 %: 5 calibration queries are fewer than 9"]
    assert str(found) == "a missing answer is, with 90 %, any entity"


def test_bad_input_is_told(world: Any, tmp_path: Path) -> None:
    graph, valid, _ = world
    sets = graph.answer_sets(valid, Noisy(), 20, kinds=["1p"])
    for share in (0, 1, "0.9", float("nan")):
        with pytest.raises(OptionError, match="share is how often"):
            sets.ask("1p", ["e01", "a"], share=share)
    with pytest.raises(UnsupportedError, match="queries of the structure 2p"):
        sets.ask("2p", ["e01", "a", "b"])
    with pytest.raises(UnsupportedError, match="another structure"):
        sets.ask('?x : a("e01", ?x) and a("e02", ?x) and a("e03", ?x) and a("e04", ?x)')
    with pytest.raises(LinkModelError, match="no held-out edges"):
        graph.answer_sets([], Noisy(), 5)
    path = sets.save(tmp_path / "sets.json")
    assert AnswerSets.load(path, graph, Noisy()).threshold("1p") == sets.threshold("1p")
    other = Noisy()
    other.scores = [1 - one for one in other.scores]
    with pytest.raises(LinkModelError, match="of another model"):
        AnswerSets.load(path, graph, other)
    changed = condgraph.open("memory:")
    changed.add([*(Entity(name, name) for name in NAMES), Statement(NAMES[0], "a", Ref(NAMES[1]))])
    with pytest.raises(LinkModelError, match="of another graph"):
        AnswerSets.load(path, changed, Noisy())
    about = json.loads(path.read_text("utf-8"))
    for broken in ("", "[]", "{}", json.dumps({**about, "scores": {"1p": [2.0, 1.0]}}), json.dumps({**about, "format": 9})):
        path.write_text(broken, "utf-8")
        with pytest.raises(LinkModelError):
            AnswerSets.load(path, graph, Noisy())


def test_every_structure_is_known_by_its_shape() -> None:
    for name, (lengths, shape) in STRUCTURES.items():
        branches: list[Any] = [[f"c{at}", *(f"r{step}" for step in range(length))] for at, length in enumerate(lengths)]
        further = ["^s"] if isinstance(shape, tuple) and shape[0] == "p" else []
        assert kind_of(tree_of(named(name, [*branches, *further]))) == name
