"""The trainer: its gradients against finite differences of a loss written another way, its ranks
against counting, and what it learns.
"""

from __future__ import annotations

import itertools
import json
import time
from typing import Any

import numpy as np
import pytest

import condgraph
from condgraph.engine.errors import DeadlineError, LinkModelError, OptionError
from condgraph.engine.facts import Entity, Ref, Statement
from condgraph.engine.values import Quantity
from condgraph.links.edges import Edges
from condgraph.links.embeddings import Embeddings
from condgraph.links.ranks import Ranking, rank_among, rank_edges
from condgraph.links.step import Adagrad, Batch, step
from condgraph.links.train import TrainOptions, held_out, train
from tests.support.pace import quick_enough

RNG = np.random.default_rng(11)


class Heard(Adagrad):
    """Keeps the gradient, and does not move."""

    def move(self, gradient: Any, rows: Any = None) -> None:
        whole = np.zeros_like(self.vectors)
        whole[slice(None) if rows is None else rows] = gradient
        self.heard = whole


def loss(e: Any, r: Any, triples: list[tuple[int, int, int]], n3: float, weight: float) -> float:
    """The loss of triples one by one, in complex numbers, float64."""
    half = e.shape[1] // 2
    E, R = e[:, :half] + 1j * e[:, half:], r[:, :half] + 1j * r[:, half:]
    total = 0.0
    for h, p, t in triples:
        scores = (E[h] * R[p] * E.conj()).sum(axis=1).real
        total += np.log(np.exp(scores).sum()) - scores[t]
        relations = (E[h] * R * E[t].conj()).sum(axis=1).real
        total += weight * (np.log(np.exp(relations).sum()) - relations[p])
        total += n3 * sum((np.abs(one) ** 3).sum() for one in (E[h], R[p], E[t]))
    return float(total / len(triples))


@pytest.mark.parametrize(("n3", "weight"), [(0.0, 0.0), (0.3, 0.0), (0.0, 0.7), (0.3, 0.7)])
@pytest.mark.parametrize("sample", [None, np.arange(6)])
def test_gradients_are_those_of_finite_differences(n3: float, weight: float, sample: Any) -> None:
    e, r = RNG.standard_normal((6, 8)) * 0.7, RNG.standard_normal((4, 8)) * 0.7
    triples = [(0, 1, 2), (0, 1, 3), (0, 1, 0), (5, 3, 2), (2, 1, 4), (4, 0, 5), (4, 0, 1)]
    groups = list(dict.fromkeys((h, p) for h, p, _ in triples))
    batch = Batch(
        np.array([h for h, _ in groups]), np.array([p for _, p in groups]),
        np.array([groups.index((h, p)) for h, p, _ in triples]), np.array([t for _, _, t in triples]), sample,
    )  # fmt: skip
    entities, relations = Heard(e.astype(np.float32), 0.1), Heard(r.astype(np.float32), 0.1)
    step(entities, relations, batch, n3=n3, predict_relation=weight)
    for table, heard in ((e, entities.heard), (r, relations.heard)):
        for at in itertools.product(range(table.shape[0]), range(table.shape[1])):
            kept, sides = table[at], []
            for move in (1e-5, -1e-5):
                table[at] = kept + move
                sides.append(loss(e, r, triples, n3, weight))
            table[at] = kept
            assert heard[at] == pytest.approx((sides[0] - sides[1]) / 2e-5, abs=2e-4)


def test_ranks_are_counted() -> None:
    for _ in range(50):
        scores = RNG.integers(0, 5, 12).astype(np.float32)
        picks = RNG.permutation(12)
        right, others = picks[:3], picks[3:6]
        found = rank_among(scores, right, others)
        for one, rank in zip(right.tolist(), found.tolist(), strict=True):
            rivals = [scores[i] for i in range(12) if i not in right and i not in others]
            assert rank == 1 + sum(x > scores[one] for x in rivals) + sum(x == scores[one] for x in rivals) / 2


def test_the_ranking_of_edges_looks_from_both_ends() -> None:
    edges = Edges.of([("a", "r", "b"), ("a", "r", "c"), ("d", "r", "b")])
    asked = edges.numbered([("a", "r", "c")])
    vectors = RNG.standard_normal((4, 4)).astype(np.float32)
    model = Embeddings("complex", tuple(edges.entities), ("r",), vectors, RNG.standard_normal((1, 4)).astype(np.float32))
    a, b, c, d = 0, 1, 2, 3
    tails, heads = model.score_tails(np.array([a]), 0)[0], model.score_tails(np.array([c]), 0, inverse=True)[0]
    forward = 1 + sum(tails[x] > tails[c] for x in (a, d))
    backward = 1 + sum(heads[x] > heads[a] for x in (b, c, d))
    found = rank_edges(model, asked, [edges])
    assert found.mrr == pytest.approx((1 / forward + 1 / backward) / 2)
    assert found.ranks == 2
    assert Ranking.of(np.empty(0)).ranks == 0


def ring(n: int = 24) -> Edges:
    """A ring whose steps of 1, 2 and 3 are relations: any two of them tell the third."""
    return Edges.of([(f"n{i:02}", f"plus {step}", f"n{(i + step) % n:02}") for i in range(n) for step in (1, 2, 3)])


def test_training_finds_what_is_missing_and_is_the_same_again() -> None:
    edges, left = held_out(ring(), 0.1, np.random.default_rng(0))
    options = TrainOptions(rank=16, epochs=60, batch=20, n3=0.01, validation=0.0)
    found = train(edges, options)
    ranking = rank_edges(found.model, left, [edges])
    chance = Ranking.of(np.arange(1, 24).astype(float)).mrr
    assert ranking.mrr > 0.8 > 3 * chance
    assert found.model.fingerprint == train(edges, options).model.fingerprint
    assert (
        found.model.fingerprint
        != train(edges, TrainOptions(rank=16, epochs=60, batch=20, n3=0.01, validation=0.0, seed=1)).model.fingerprint
    )


def test_sampled_negatives_learn_as_well() -> None:
    edges, left = held_out(ring(60), 0.1, np.random.default_rng(0))
    found = train(edges, TrainOptions(rank=16, epochs=80, batch=20, n3=0.01, negatives=15), valid=left)
    assert found.validation is not None
    assert found.validation.mrr > 0.7
    assert found.validation.ranks == 2 * len(left.triples)


def test_training_stops_where_validation_is_no_better() -> None:
    noise = Edges.of([(f"n{RNG.integers(40)}", "r", f"n{RNG.integers(40)}") for _ in range(150)])
    heard: list[tuple[int, float, Ranking | None]] = []
    found = train(
        noise,
        TrainOptions(rank=8, epochs=400, every=2, patience=2, n3=0.0, validation=0.2),
        on_epoch=lambda *one: heard.append(one),
    )
    assert found.ended == "no longer better on validation"
    assert found.best < found.epochs == len(heard) < 400
    assert max(one.mrr for _, _, one in heard if one is not None) == next(
        one.mrr for epoch, _, one in heard if epoch == found.best and one
    )


def test_a_model_that_knows_nothing_says_so(tmp_path: Any) -> None:
    graph = condgraph.open("memory:")
    graph.add(Statement(f"a{i}", "r", Ref(f"a{(i * 3 + 1) % 10}")) for i in range(10))
    (none,) = graph.train_links(rank=4, epochs=1).warnings
    assert "no edge could be held out" in none
    trained = graph.train_links(tmp_path / "m.npz", rank=4, epochs=1, valid=[("a1", "r", "a0"), ("a2", "r", "a8")])
    (chance,) = trained.warnings
    assert "may be no better than chance" in chance
    answers = graph.logic('?x : "r"(<a0>, ?x)', model=tmp_path / "m.npz")
    assert answers.warnings == [chance]
    for wrong in ("60", True):
        with pytest.raises(OptionError, match="seconds is a number, or None, not"):
            graph.train_links(seconds=wrong)


def test_what_is_held_out_leaves_every_name_an_edge() -> None:
    edges = ring()
    for share in (0.0, 0.3, 0.9):
        kept, out = held_out(edges, share, np.random.default_rng(1))
        assert len(kept.triples) + len(out.triples) == len(edges.triples)
        assert set(np.unique(kept.triples[:, [0, 2]]).tolist()) == set(range(24))
        assert set(kept.triples[:, 1].tolist()) == {0, 1, 2}


def test_bounds_and_options() -> None:
    begin = time.monotonic()
    found = train(ring(), TrainOptions(rank=8, epochs=10**6, seconds=0.3, patience=10**6))
    assert found.ended == "the time was up"
    assert quick_enough(time.monotonic() - begin, 20)
    graph = condgraph.open("memory:")
    graph.add([Entity("a", "A"), Entity("b", "B"), Statement("a", "near", Ref("b")), Statement("b", "near", Ref("a"))])
    with pytest.raises(DeadlineError):
        graph.train_links(timeout=0.2, epochs=10**9, patience=10**9)
    with pytest.raises(OptionError, match="no option 'rnak'") as caught:
        graph.train_links(rnak=3)
    assert "rank" in caught.value.candidates
    for bad in (
        {"rank": 0},
        {"rate": -1.0},
        {"rate": float("nan")},
        {"n3": -0.1},
        {"negatives": 0},
        {"validation": 1.0},
        {"seconds": 0.0},
    ):
        with pytest.raises(OptionError):
            TrainOptions(**bad)  # type: ignore[arg-type]
    with pytest.raises(LinkModelError, match="no entity 'z'"):
        graph.train_links(valid=[("a", "near", "z")])
    empty = condgraph.open("memory:")
    empty.add([Entity("a", "A"), Statement("a", "height", Quantity(3))])
    with pytest.raises(LinkModelError, match="no edges"):
        empty.train_links()


def test_a_graph_is_trained_by_its_ids(tmp_path: Any) -> None:
    graph = condgraph.open("memory:")
    graph.add(
        [
            Entity("Q1", "Oslo"),
            Entity("Q2", "Norway"),
            Statement("Q1", "in", Ref("Q2")),
            Statement("Q1", "in", Ref("Q2"), (("as of", Quantity(3)),)),
        ]
    )
    found = graph.train_links(tmp_path / "m.npz", rank=2, epochs=1)
    assert found.model.entities == ("Q2", "Q1")
    assert found.edges == 1
    assert Embeddings.load(tmp_path / "m.npz").fingerprint == found.model.fingerprint


@pytest.mark.parametrize("negatives", [None, 15])
def test_training_that_goes_on_is_the_same_as_one_that_never_ended(tmp_path: Any, negatives: int | None) -> None:
    edges, options = ring(40), {"rank": 8, "batch": 20, "n3": 0.01, "every": 2, "negatives": negatives, "patience": 99}
    whole = train(edges, TrainOptions(epochs=11, **options))  # type: ignore[arg-type]
    place, heard = tmp_path / "state.npz", list[int]()
    for epochs in (1, 4, 4, 7, 11):
        part = train(
            edges,
            TrainOptions(epochs=epochs, **options),  # type: ignore[arg-type]
            checkpoint=place,
            on_epoch=lambda epoch, *_: heard.append(epoch),
        )
        assert part.epochs == epochs
    # The extra looks at the ends of parts may only keep a better epoch than the whole looked at.
    assert heard == list(range(1, 12))
    assert part.validation is not None
    assert whole.validation is not None
    assert part.best == whole.best or part.validation.mrr > whole.validation.mrr
    once = train(edges, TrainOptions(epochs=11, **{**options, "every": 11}))  # type: ignore[arg-type]
    place.unlink()
    for epochs in (5, 11):
        train(edges, TrainOptions(epochs=epochs, **{**options, "every": 11}), checkpoint=place)  # type: ignore[arg-type]
    with np.load(place) as found:
        m = len(edges.relations)
        np.testing.assert_array_equal(found["entities"], once.model.entity_vectors)
        np.testing.assert_array_equal(found["relations"][:m], once.model.relation_vectors)


def test_a_checkpoint_of_another_training_is_an_error(tmp_path: Any) -> None:
    place, options = tmp_path / "state.npz", {"rank": 4, "epochs": 2, "batch": 20}
    train(ring(), TrainOptions(**options), checkpoint=place)  # type: ignore[arg-type]
    before = place.read_bytes()
    for other, what in (({"rank": 5}, "rank 4, not 5"), ({"seed": 1}, "seed 0, not 1"), ({"n3": 0.2}, "n3 0.05, not 0.2")):
        with pytest.raises(LinkModelError, match=what):
            train(ring(), TrainOptions(**{**options, **other}), checkpoint=place)  # type: ignore[arg-type]
    with pytest.raises(LinkModelError, match="other edges"):
        train(ring(25), TrainOptions(**options), checkpoint=place)  # type: ignore[arg-type]
    kept, valid = held_out(ring(), 0.05, np.random.default_rng(0))
    assert train(kept, TrainOptions(**options), valid=valid, checkpoint=place).ended == "all epochs"  # type: ignore[arg-type]
    with pytest.raises(LinkModelError, match="other validation edges"):
        train(kept, TrainOptions(**options), valid=kept, checkpoint=place)  # type: ignore[arg-type]
    assert place.read_bytes() == before
    for junk in (b"", b"no arrays", before[: len(before) // 2]):
        place.write_bytes(junk)
        with pytest.raises(LinkModelError, match="cannot be read as a training"):
            train(ring(), TrainOptions(**options), checkpoint=place)  # type: ignore[arg-type]
    Embeddings("complex", ("a", "b"), ("r",), np.ones((2, 8), np.float32), np.ones((1, 8), np.float32)).save(place)
    with pytest.raises(LinkModelError, match="cannot be read as a training"):
        train(ring(), TrainOptions(**options), checkpoint=place)  # type: ignore[arg-type]


def test_training_that_was_ended_has_its_checkpoint(tmp_path: Any) -> None:
    graph = condgraph.open("memory:")
    graph.add(Entity(f"n{number:02}", f"n{number:02}") for number in range(24))
    graph.add(Statement(f"n{i:02}", f"plus {step}", Ref(f"n{(i + step) % 24:02}")) for i in range(24) for step in (1, 2, 3))
    place = tmp_path / "state.npz"
    with pytest.raises(DeadlineError):
        graph.train_links(timeout=1.0, rank=4, epochs=10**6, every=1, patience=10**6, checkpoint=place)
    with np.load(place) as found:
        done = json.loads(found["about"].tobytes())["epoch"]
    again = graph.train_links(rank=4, epochs=done + 1, every=1, patience=10**6, checkpoint=place)
    assert done >= 1
    assert again.epochs == done + 1
    assert not list(tmp_path.glob(".state*"))


def test_what_cannot_be_written_is_said_before_training(tmp_path: Any) -> None:
    graph = condgraph.open("memory:")
    graph.add([Entity("a", "A"), Entity("b", "B"), Statement("a", "near", Ref("b"))])
    for options in ({"path": tmp_path / "none" / "m.npz"}, {"checkpoint": tmp_path / "none" / "s.npz"}, {"path": tmp_path}):
        heard = list[int]()
        with pytest.raises(LinkModelError, match="cannot be written"):
            graph.train_links(**options, rank=2, epochs=1, on_epoch=lambda epoch, *_, to=heard: to.append(epoch))
        assert not heard


def test_edges_of_other_names_are_counted() -> None:
    graph = condgraph.open("memory:")
    graph.add([Entity("a", "A"), Entity("b", "B"), Statement("a", "near", Ref("b"))])
    valid = [("a", "near", "b"), ("a", "near", "z"), ("a", "far", "b"), ("y", "near", "b")]
    with pytest.raises(LinkModelError, match="no entity 'z'") as caught:
        graph.train_links(valid=valid)
    assert caught.value.hint == "3 of these 4 edges have such a name; leave them out"
    with pytest.raises(LinkModelError, match="no relation 'far'"):
        graph.train_links(valid=valid[2:])
