"""Vectors kept with a graph: made once, completed after a load, never mixed, whole or not there."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import condgraph
from condgraph import Entity, EntityKind, Graph, Member, Ref, Statement
from condgraph.engine.errors import (
    EncoderError,
    EncoderMismatchError,
    MissingExtraError,
    OptionError,
    ReadOnlyError,
    StoreDamagedError,
    StoreVersionError,
)
from condgraph.engine.facts import Item
from condgraph.vectors import stored
from condgraph.vectors.encoders import LexicalEncoder, encoder_of
from condgraph.vectors.nearest import DenseVectors
from condgraph.vectors.stored import EDGES, GraphVectors, index_of, place_of, vectors_of


class Letters:
    """An encoder of the tests: how often each letter stands in a text, scaled to length one. Counts
    what it was asked.
    """

    def __init__(self, ident: str = "letters", dimension: int = 26) -> None:
        self.id, self.dimension = ident, dimension
        self.asked: list[str] = []

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        self.asked += texts
        found = np.zeros((len(texts), self.dimension), np.float32)
        for row, text in zip(found, texts, strict=True):
            for letter in text.casefold():
                row[ord(letter) % self.dimension] += 1
        return found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-30)


def world() -> list[Item]:
    return [
        Entity("c", "city", EntityKind.CONCEPT),
        Entity("a", "Ann"),
        Entity("a2", "Ann"),
        Entity("b", "Berlin"),
        Member("b", "c"),
        Statement("a", "lives in", Ref("b"), (("since", "spring"),)),
        Statement("a2", "nickname", "Annie"),
        Statement("b", "size", condgraph.Quantity(891, "square kilometre")),
    ]


def graph_in(place: Path) -> Graph:
    graph = condgraph.open(place / "store")
    graph.add(world())
    return graph


def texts_of(vectors: GraphVectors) -> list[str]:
    return vectors.snapshot.texts.take(vectors.node_texts)


@pytest.mark.parametrize("encoder", ["lexical", Letters()])
@pytest.mark.parametrize("stored", [True, False])
def test_what_is_indexed(tmp_path: Path, encoder: object, stored: bool) -> None:
    graph = graph_in(tmp_path) if stored else condgraph.open()
    if not stored:
        graph.add(world())
    report = graph.index(encoder)  # type: ignore[arg-type]
    vectors = vectors_of(graph.current)
    assert texts_of(vectors) == ["Ann", "Annie", "Berlin", "city"]
    assert vectors.predicate_names == ("lives in", "nickname", "since", "size", *EDGES)
    assert (report.nodes, report.predicates, report.encoded) == (4, 6, 10)
    assert vectors.node_distances("Ann").tolist()[0] == 0
    assert vectors.predicates.distances(vectors.vector("lives in")).tolist()[0] == 0
    assert [graph.current.name(at) for at in vectors.entities_at(0)] == ["Ann", "Ann"]
    assert list(vectors.entities_at(1)) == []
    assert vectors.entity_positions.tolist() == [0, 0, 2, 3]
    positions, distances, how = vectors.nearest_nodes("Berlin", 2)
    assert (int(positions[0]), int(distances[0]), how) == (2, 0, None)


def test_opened_again_they_are_the_same(tmp_path: Path) -> None:
    letters = Letters()
    for encoder in ("lexical:64", letters):
        with graph_in(tmp_path) as graph:
            graph.index(encoder)
            before = vectors_of(graph.current)
            wanted = [before.node_distances(text).tolist() for text in ("Ann", "Bern")]
        with condgraph.open(tmp_path / "store", read_only=True) as graph:
            asked = len(letters.asked)
            after = vectors_of(graph.current, encoder)
            assert [after.node_distances(text).tolist() for text in ("Ann", "Bern")] == wanted
            assert letters.asked[asked:] in ([], ["Ann", "Bern"])
            with pytest.raises(ReadOnlyError):
                graph.index("lexical")


@pytest.mark.parametrize("stored", [True, False])
def test_only_what_is_new_is_encoded(tmp_path: Path, stored: bool) -> None:
    letters = Letters()
    graph = graph_in(tmp_path) if stored else condgraph.open()
    if not stored:
        graph.add(world())
    assert graph.index(letters).encoded == 10
    graph.add([Entity("z", "Zoe"), Statement("z", "lives in", Ref("b")), Statement("z", "age", condgraph.Quantity(7))])
    letters.asked.clear()
    if stored:
        report = graph.index(letters)
        assert (report.nodes, report.encoded) == (5, 2)
    vectors = vectors_of(graph.current)
    assert sorted(letters.asked) == ["Zoe", "age"]
    fresh = Letters()
    assert isinstance(vectors.nodes, DenseVectors)
    assert (vectors.nodes.matrix == fresh.encode(texts_of(vectors))).all()
    assert isinstance(vectors.predicates, DenseVectors)
    assert (vectors.predicates.matrix == fresh.encode(vectors.predicate_names)).all()
    assert graph.index(letters).encoded == 0


def test_an_index_of_an_earlier_generation_is_brought_up_to_date(tmp_path: Path) -> None:
    with graph_in(tmp_path) as graph:
        graph.index("lexical:128")
        graph.add([Entity("z", "Zoe")])
        vectors = vectors_of(graph.current)
        assert "Zoe" in texts_of(vectors)
        assert vectors.about.dimension == 128
        graph.index(Letters())
        graph.add([Entity("y", "Yves")])
    with condgraph.open(tmp_path / "store") as graph, pytest.raises(OptionError, match="caller's own, 'letters'"):
        vectors_of(graph.current)


def test_encoders_are_never_mixed(tmp_path: Path) -> None:
    with graph_in(tmp_path) as graph:
        graph.index(Letters())
        about = index_of(graph.current)
        assert about is not None
        assert str(about) == "'letters' (26 dimensions)"
        for other in (Letters("letters 2"), Letters(dimension=30)):
            with pytest.raises(EncoderMismatchError) as caught:
                vectors_of(graph.current, other)
            assert "'letters' (26 dimensions)" in caught.value.kept
            assert str(other.dimension) in caught.value.asked
        # The lexical encoder needs no index, so nothing is mixed where it is asked for.
        assert vectors_of(graph.current, "lexical").about.id == "lexical-1"
        assert vectors_of(graph.current, "lexical") is vectors_of(graph.current, "lexical")
    with condgraph.open(tmp_path / "store") as graph:
        with pytest.raises(EncoderMismatchError):
            vectors_of(graph.current, Letters("letters 2"))
        graph.index(Letters("letters 2"))
        assert vectors_of(graph.current, Letters("letters 2")).about.id == "letters 2"


def test_without_an_index_names_are_encoded_lexically(tmp_path: Path) -> None:
    with graph_in(tmp_path) as graph:
        assert index_of(graph.current) is None
        vectors = vectors_of(graph.current)
        assert (vectors.about.id, vectors.about.dimension) == ("lexical-1", 4096)
        place = place_of(graph.current)
        assert place is not None
        assert not place.exists()


class Wrong:
    id, dimension = "wrong", 4

    def __init__(self, found: np.ndarray) -> None:
        self.found = found

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        return np.tile(self.found, (len(texts), 1)) if self.found.ndim == 1 else self.found


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (np.array([1, 0, 0], np.float32), r"vectors of shape \(10, 3\) for 10 texts"),
        (np.zeros((1, 4), np.float32), r"shape \(1, 4\)"),
        (np.array([1, 1, 0, 0], np.float32), "length 1.414, not 1, for 'Ann'"),
        (np.array([np.nan, 1, 0, 0], np.float32), "not finite"),
    ],
)
def test_encoders_that_break_their_promise(tmp_path: Path, found: np.ndarray, message: str) -> None:
    with graph_in(tmp_path) as graph, pytest.raises(EncoderError, match=message):
        graph.index(Wrong(found))


def test_what_is_no_encoder() -> None:
    for spec in ("", "lexical:big", "lexical:65", object()):
        with pytest.raises(OptionError):
            encoder_of(spec)  # type: ignore[arg-type]
    assert encoder_of("lexical:256") == LexicalEncoder(256)


def test_a_model_needs_its_library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'condgraph\[embeddings\]'"):
        encoder_of(str(tmp_path))
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'condgraph\[openai\]'"):
        encoder_of("openai:words")
    monkeypatch.setitem(sys.modules, "faiss", None)
    with graph_in(tmp_path) as graph, pytest.raises(MissingExtraError, match=r"pip install 'condgraph\[faiss\]'"):
        graph.index(Letters(), faiss=True)


def test_progress_is_reported_and_a_run_that_was_ended_is_taken_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "CHUNK", 10)
    monkeypatch.setattr(stored, "SAFE_EVERY", -1.0)
    reported: list[tuple[int, int]] = []
    letters = Letters()

    def stop(done: int, total: int) -> None:
        reported.append((done, total))
        if done >= 30:
            raise KeyboardInterrupt

    with condgraph.open(tmp_path / "store") as graph:
        graph.add([Entity(f"e{number}", f"name {number}") for number in range(100)])
        with pytest.raises(KeyboardInterrupt):
            graph.index(letters, progress=stop)
        assert reported == [(10, 102), (20, 102), (30, 102)]
        assert index_of(graph.current) is None
        report = graph.index(letters, progress=lambda done, total: reported.append((done, total)))
        assert report.encoded == 82
        assert reported[3] == (30, 102)
        assert reported[-1] == (102, 102)
        place = place_of(graph.current)
        assert place is not None
        assert sorted(path.suffix for path in place.iterdir()) == [".arrays", ".json"]
        vectors = vectors_of(graph.current)
        assert isinstance(vectors.nodes, DenseVectors)
        assert (vectors.nodes.matrix == Letters().encode(texts_of(vectors))).all()


def test_damage_is_reported(tmp_path: Path) -> None:
    with graph_in(tmp_path) as graph:
        graph.index(Letters())
        place = place_of(graph.current)
    assert place is not None
    manifest = json.loads((place / "index.json").read_text())

    def opened() -> GraphVectors:
        with condgraph.open(tmp_path / "store") as graph:
            return vectors_of(graph.current)

    text = (place / "index.json").read_text()
    (place / "index.json").write_text(text.replace('"letters"', '"letterz"'))
    with pytest.raises(StoreDamagedError, match="not what was written"):
        opened()
    del manifest["crc"]
    (place / "index.json").write_text(json.dumps(manifest | {"dimension": 25}))
    with pytest.raises(StoreDamagedError, match="do not fit"):
        opened()
    (place / "index.json").write_text(json.dumps(manifest | {"format": 99}))
    with pytest.raises(StoreVersionError, match="format 99"):
        opened()
    (place / "index.json").write_text("{")
    with pytest.raises(StoreDamagedError):
        opened()
    (place / "index.json").write_text(json.dumps(manifest))
    arrays = place / manifest["file"]
    good = arrays.read_bytes()
    at = manifest["arrays"]["matrix"]["offset"] + 5
    arrays.write_bytes(good[:at] + bytes([good[at] ^ 4]) + good[at + 1 :])
    with pytest.raises(StoreDamagedError, match="matrix"):
        opened()
    arrays.write_bytes(good)
    arrays.write_bytes(arrays.read_bytes()[:-8])
    with pytest.raises(StoreDamagedError):
        opened()
    # Making the index again puts it right, whatever is left of the old one.
    with condgraph.open(tmp_path / "store") as graph:
        assert graph.index(Letters()).encoded == 10
    assert opened().about.id == "letters"


def test_faiss_finds_candidates_that_are_ranked_exactly(tmp_path: Path) -> None:
    pytest.importorskip("faiss")
    rng = np.random.default_rng(0)

    class Random:
        id, dimension = "random", 32

        def encode(self, texts: Sequence[str]) -> np.ndarray:
            rows = np.stack([np.random.default_rng(sum(text.encode()) * 7919 + len(text)).standard_normal(32) for text in texts])
            return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)

    names = sorted({"".join(rng.choice(list("abcdefghij"), 8)) for _ in range(3000)})
    with condgraph.open(tmp_path / "store") as graph:
        graph.add([Entity(name, name) for name in names])
        report = graph.index(Random(), faiss=True)
        assert report.approximate == "faiss HNSW32"
    with condgraph.open(tmp_path / "store") as graph:
        vectors = vectors_of(graph.current, Random())
        hits = 0
        for name in names[::100]:
            exact, _, how = vectors.nearest_nodes(name, 16)
            assert how is None
            near, theirs, how = vectors.nearest_nodes(name, 16, exact=False)
            assert how == "faiss HNSW32"
            assert theirs.tolist() == vectors.node_distances(name, near).tolist()
            assert theirs.tolist() == sorted(theirs.tolist())
            hits += len(set(exact.tolist()) & set(near.tolist()))
        assert hits > 0.9 * 16 * len(names[::100])
        with pytest.raises(OptionError, match="exact"):
            graph.index("lexical", faiss=True)
    place = next((tmp_path / "store").glob("*/vectors"))
    next(place.glob("*.faiss")).write_bytes(b"nothing")
    with condgraph.open(tmp_path / "store") as graph, pytest.raises(StoreDamagedError, match="not the ones that were written"):
        vectors_of(graph.current, Random())


def test_on_the_command_line(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from condgraph.cli.app import app

    graph_in(tmp_path).close()
    run = CliRunner().invoke
    store = str(tmp_path / "store")
    made = run(app, ["index", "-d", store, "--encoder", "lexical:256"])
    assert made.exit_code == 0, made.output
    assert "indexed 4 nodes and 6 predicates by lexical-1 (256 dimensions)" in made.output
    with condgraph.open(store) as graph:
        assert vectors_of(graph.current).about.dimension == 256
        assert graph.match([("Ann", "lives in", "UNKNOWN town")], k=1).texts == ["Berlin"]
    assert run(app, ["index", "-d", store, "--encoder", "lexical:7"]).exit_code == 2
    assert run(app, ["index", "-d", str(tmp_path / "nothing")]).exit_code == 3
    assert run(app, ["index", "-d", store, "--encoder", "lexical", "--faiss"]).exit_code == 2
