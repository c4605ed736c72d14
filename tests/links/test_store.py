"""Rows that are kept: what they hold, whose they are, and folders that are none."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import condgraph
from condgraph.engine.errors import CondgraphError, LinkModelError, StoreDamagedError, StoreMissingError, StoreVersionError
from condgraph.engine.facts import Entity, Ref, Statement
from condgraph.links.edges import Edges
from condgraph.links.embeddings import Embeddings
from condgraph.links.model import LinkModel
from condgraph.links.store import Alignment, Threshold, calibrated, keep_rows, open_rows

RNG = np.random.default_rng(2)
EDGES = Edges.of([(f"n{RNG.integers(30):02}", f"r{RNG.integers(3)}", f"n{RNG.integers(30):02}") for _ in range(90)])


def made(names: tuple[str, ...] = tuple(EDGES.entities), relations: tuple[str, ...] = ("r2", "r0", "r1")) -> Embeddings:
    draw = np.random.default_rng(1)
    shape = (len(relations), 8)
    return Embeddings(
        "complex",
        names,
        relations,
        draw.standard_normal((len(names), 8)).astype(np.float32),
        draw.standard_normal(shape).astype(np.float32),
    )


@pytest.mark.parametrize("cap", [None, 4])
def test_rows_are_those_of_the_model(cap: int | None, tmp_path: Path) -> None:
    model, keep = made(), Threshold(0.02, 1e-3, cap)
    rows = keep_rows(model, EDGES, tmp_path / "rows", keep)
    assert isinstance(rows, LinkModel)
    assert rows.calibrated
    heads = np.arange(len(model.entities))
    triples = {tuple(one) for one in EDGES.triples.tolist()}
    for number, name in enumerate(model.relations):
        own = EDGES.relation_numbers[name]
        for inverse in (False, True):
            tails = [
                sum((t, own, h) in triples if inverse else (h, own, t) in triples for t in heads.tolist()) for h in heads.tolist()
            ]
            wanted = calibrated(model.score_tails(heads, number, inverse=inverse), np.array(tails), 1e-3)
            wanted[wanted < 0.02] = 0
            found = rows.score_tails(heads, number, inverse=inverse)
            if cap is None:
                assert np.allclose(found, wanted, rtol=1e-5, atol=0)
                continue
            for row in range(len(heads)):
                best = sorted(wanted[row][wanted[row] > 0].tolist(), reverse=True)[:cap]
                assert sorted(found[row][found[row] > 0].tolist(), reverse=True) == pytest.approx(best, rel=1e-5)
    assert rows.entries == sum(int((rows.score_tails(heads, r, inverse=i) > 0).sum()) for r in range(3) for i in (False, True))


def test_the_same_rows_are_not_made_again_and_others_are(tmp_path: Path) -> None:
    heard: list[int] = []
    model, keep = made(), Threshold(0.01)
    first = keep_rows(model, EDGES, tmp_path, keep, on_rows=lambda done, _: heard.append(done))
    files = sorted(path.name for path in tmp_path.iterdir())
    assert len(files) == 2
    assert len(heard) == 6
    again = keep_rows(model, EDGES, tmp_path, keep, on_rows=lambda done, _: heard.append(done))
    assert (len(heard), again.key) == (6, first.key)
    fewer = EDGES.with_triples(EDGES.triples[1:])
    for other_model, other_edges, other_keep in (
        (made(relations=("r0", "r1", "r2")), EDGES, keep),
        (model, fewer, keep),
        (model, EDGES, Threshold(0.02)),
    ):
        assert keep_rows(other_model, other_edges, tmp_path, other_keep).key != first.key
        assert len(list(tmp_path.iterdir())) == 2
    with pytest.raises(LinkModelError, match="of another model or graph"):
        open_rows(tmp_path, model=model, edges=fewer)
    assert open_rows(tmp_path, model=model, edges=EDGES).threshold.epsilon == 0.02


def test_some_heads_and_relations(tmp_path: Path) -> None:
    rows = keep_rows(made(), EDGES, tmp_path, relations=["r0"], heads=["n03", "n01"])
    number = rows.relations.index("r0")
    assert rows.score_tails(np.array([rows.entities.index("n03")]), number).any()
    with pytest.raises(LinkModelError, match="no row is stored for the entity 'n00'"):
        rows.score_tails(np.array([rows.entities.index("n00")]), number)
    with pytest.raises(LinkModelError, match="no rows are stored for 'r1'"):
        rows.score_tails(np.array([0]), rows.relations.index("r1"))
    with pytest.raises(LinkModelError, match="no relation 'r9'") as caught:
        keep_rows(made(), EDGES, tmp_path, relations=["r9"])
    assert caught.value.candidates
    with pytest.raises(LinkModelError, match="does not know the entity 'x'"):
        keep_rows(made(), EDGES, tmp_path, heads=["x"])


def test_a_model_of_another_graph_is_an_error_and_one_of_a_part_a_warning() -> None:
    with pytest.raises(LinkModelError, match="none of its 2 entities is in this one"):
        Alignment(made(("x", "y")), EDGES)
    with pytest.raises(LinkModelError, match="none of its 1 relations"):
        Alignment(made(relations=("q",)), EDGES)
    part = Alignment(made(tuple(EDGES.entities[:20])), EDGES)
    all_of_them = len(EDGES.entities)
    assert part.warnings == [
        f"the model does not know {all_of_them - 20} of the graph's {all_of_them} entities; nothing is predicted of them"
    ]


class Broken:
    """A model whose scores are none."""

    entities, relations, calibrated = EDGES.entities, EDGES.relations, False

    def __init__(self, scores: float, short: int = 0) -> None:
        self.scores, self.short = scores, short

    def score_tails(self, heads: np.ndarray, relation: int, *, inverse: bool = False) -> np.ndarray:
        return np.full((len(heads), len(self.entities) - self.short), self.scores, np.float32)


def test_scores_that_are_none_are_errors(tmp_path: Path) -> None:
    with pytest.raises(LinkModelError, match="NaN for"):
        keep_rows(Broken(np.nan), EDGES, tmp_path)
    with pytest.raises(LinkModelError, match="scores of shape"):
        keep_rows(Broken(0.0, 1), EDGES, tmp_path)
    assert not list(tmp_path.iterdir())


def test_folders_that_hold_no_rows(tmp_path: Path) -> None:
    with pytest.raises(StoreMissingError):
        open_rows(tmp_path / "none")
    place = tmp_path / "rows"
    keep_rows(made(), EDGES, place)
    manifest = place / "rows.json"
    about = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**about, "format": 99}))
    with pytest.raises(StoreVersionError):
        open_rows(place)
    for text in ("", "[" * 100_000, "7", "[1]", json.dumps({"format": 1}), json.dumps({**about, "threshold": 3}), "\0" * (1 << 20)):
        manifest.write_text(text)
        with pytest.raises(CondgraphError):
            open_rows(place)
    manifest.write_text(json.dumps(about))
    arrays = next(path for path in place.iterdir() if path.suffix == ".arrays")
    arrays.write_bytes(arrays.read_bytes()[:-8])
    with pytest.raises(StoreDamagedError):
        open_rows(place)


def test_logical_queries_take_kept_rows_as_the_model_itself(tmp_path: Path) -> None:
    graph = condgraph.open("memory:")
    triples = [(EDGES.entities[h], EDGES.relations[r], EDGES.entities[t]) for h, r, t in EDGES.triples.tolist()]
    graph.add([*(Entity(name, name) for name in EDGES.entities), *(Statement(h, r, Ref(t)) for h, r, t in triples)])
    model = made()
    rows = graph.keep_rows(model, tmp_path / "rows", keep=Threshold(0.01))
    for query in ('?x : exists ?v. r0("n01", ?v) and r1(?v, ?x)', '?x : r0("n01", ?x) and not r2("n05", ?x)'):
        lazy = graph.logic(query, model=model, epsilon=0.01, k=None)
        kept = graph.logic(query, model=rows, epsilon=0.01, k=None)
        assert [one.entity.id for one in kept] == [one.entity.id for one in lazy]
        assert [one.score for one in kept] == pytest.approx([one.score for one in lazy], rel=1e-5)
        assert any(not one.observed for one in kept)
