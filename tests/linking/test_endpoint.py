"""Encoders behind OpenAI's embeddings API, against a server that speaks it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import condgraph
from condgraph.engine.errors import EncoderError, EncoderMismatchError, OptionError
from condgraph.vectors.encoders import EndpointEncoder, encoder_of
from condgraph.vectors.stored import vectors_of
from tests.linking.embedding_server import DIMENSION, KEY, Server, embed, running

BUSY = (429, {"error": {"message": "slow down"}}, {"Retry-After": "0.01"})
BROKEN = (503, {"error": {"message": "out of order"}}, {"Retry-After": "0.01"})


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with running() as found:
        monkeypatch.setenv("OPENAI_BASE_URL", found.url)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        yield found


def test_vectors_are_the_models_scaled_to_one(server: Server) -> None:
    encoder = encoder_of("openai:words")
    texts = ["Clint Eastwood", "", "directed by", "Ünïcode 日本"]
    found = encoder.encode(texts)
    assert (encoder.id, encoder.dimension) == ("openai:words", DIMENSION)
    assert found.shape == (4, DIMENSION)
    assert found.dtype == np.float32
    wanted = np.array([embed(text or " ") for text in texts])
    assert found == pytest.approx(wanted / np.linalg.norm(wanted, axis=1, keepdims=True), abs=1e-6)
    assert encoder.encode([]).shape == (0, DIMENSION)
    assert all(request["encoding_format"] == "float" for request in server.requests)


def test_texts_go_in_batches(server: Server) -> None:
    encoder = EndpointEncoder("words", batch=10)
    found = encoder.encode([f"text {number}" for number in range(35)])
    assert [len(request["input"]) for request in server.requests] == [10, 10, 10, 5]
    assert (found[34] == encoder.encode(["text 34"])[0]).all()


def test_a_busy_or_broken_server_is_asked_again(server: Server) -> None:
    server.plan = [BUSY, BROKEN, BUSY]
    assert EndpointEncoder("words").encode(["a"]).shape == (1, DIMENSION)
    assert len(server.requests) == 4
    server.plan = [BROKEN] * 3
    with pytest.raises(EncoderError, match="out of order"):
        EndpointEncoder("words", retries=2).encode(["a"])
    assert len(server.requests) == 7


@pytest.mark.parametrize(
    ("planned", "message"),
    [
        ((400, {"error": {"message": "too long"}}), "too long"),
        ((200, "no JSON"), "did not answer as"),
        ((200, {"data": None}), "did not answer as|no embedding data|No embedding data"),
        (lambda body: {**body, "data": body["data"][:1]}, "1 vectors for 2 texts"),
        (lambda body: {**body, "data": [body["data"][0], body["data"][0]]}, "2 vectors for 2 texts, or in another numbering"),
        (
            lambda body: {**body, "data": [body["data"][0], {**body["data"][1], "embedding": [1.0]}]},
            r"vectors of \[1, 24\] numbers",
        ),
    ],
)
def test_wrong_answers_are_errors(server: Server, planned: Any, message: str) -> None:
    server.plan = [planned]
    with pytest.raises(EncoderError, match=message):
        EndpointEncoder("words").encode(["a", "b"])


def test_another_numbering_is_put_in_order(server: Server) -> None:
    server.plan = [lambda body: {**body, "data": body["data"][::-1]}]
    encoder = EndpointEncoder("words")
    assert (encoder.encode(["a", "b"]) == encoder.encode(["a", "b"])).all()


def test_a_model_that_changes_its_dimension_is_an_error(server: Server) -> None:
    encoder = EndpointEncoder("words")
    encoder.encode(["a"])
    server.dimension = 7
    with pytest.raises(EncoderError, match="before that of 24"):
        encoder.encode(["a"])


def test_errors_that_a_user_can_mend(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EncoderError, match="is the model's name right"):
        EndpointEncoder("sentences").encode(["a"])
    with pytest.raises(EncoderError, match="OPENAI_API_KEY says the key"):
        EndpointEncoder("words", api_key="wrong").encode(["a"])
    with pytest.raises(EncoderError, match="is the server running"):
        EndpointEncoder("words", base_url="http://127.0.0.1:9/v1", retries=0).encode(["a"])
    with pytest.raises(OptionError, match="a model is missing"):
        encoder_of("openai:")
    with pytest.raises(OptionError, match="at least one text"):
        EndpointEncoder("words", batch=0)
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.delenv("OPENAI_BASE_URL")
    with pytest.raises(OptionError, match="no key"):
        encoder_of("openai:words")


def test_a_graph_encodes_only_what_is_new(server: Server, tmp_path: Path) -> None:
    names = [{"name": f"person {number}", "town": f"town {number % 7}"} for number in range(50)]
    with condgraph.open(tmp_path / "store") as graph:
        graph.load(names[:40], name="people")
        report = graph.index("openai:words")
        assert (report.encoder, report.dimension, report.encoded) == ("openai:words", DIMENSION, report.nodes + report.predicates)
    sent = len(server.requests)
    with condgraph.open(tmp_path / "store") as graph:
        vectors = vectors_of(graph.current)
        assert len(server.requests) == sent
        assert vectors.snapshot.texts[vectors.node_texts[vectors.nearest_nodes("person 7", 1)[0][0]]] == "person 7"
        # One request finds out whether the model still has the dimension it had.
        assert [request["input"] for request in server.requests[sent:]] == [["dimension"], ["person 7"]]
        sent += 1
        graph.load(names[40:], name="more people")
        again = graph.index("openai:words")
        texts = {text for request in server.requests[sent + 1 :] for text in request["input"]}
        assert again.encoded == len(texts - {"dimension"})
        assert {f"person {number}" for number in range(40, 50)} <= texts
        assert not {f"person {number}" for number in range(40)} & texts
        with pytest.raises(EncoderMismatchError, match=r"'openai:words' \(24 dimensions\).*'mine' \(3 dimensions\)"):
            vectors_of(graph.current, Mine())


class Mine:
    id, dimension = "mine", 3

    def encode(self, texts: list[str]) -> np.ndarray:
        return np.tile(np.array([1, 0, 0], np.float32), (len(texts), 1))
