"""The cache of vectors on this machine: nothing is encoded twice, whatever was loaded since, and a
bad file costs time alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from condgraph.vectors import stored
from condgraph.vectors.encoders import LexicalEncoder
from condgraph.vectors.stored import About, VectorCache


class Counting:
    """The lexical encoder under another name, which counts what it encodes."""

    dimension = 64

    def __init__(self, ident: str = "counting") -> None:
        self.id, self.encoded = ident, 0

    def encode(self, texts: Sequence[str]) -> Any:
        self.encoded += len(texts)
        return LexicalEncoder(64).encode(texts)


@pytest.fixture(autouse=True)
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CONDGRAPH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_only_what_is_new_is_encoded() -> None:
    encoder, texts = Counting(), ["b", "a", "c"]
    assert VectorCache("http://x", "g").vectors(encoder, texts)[1] == 3
    matrix, fresh = VectorCache("http://x", "g").vectors(encoder, ["c", "d", "a"])
    assert (fresh, encoder.encoded) == (1, 4)
    assert np.array_equal(matrix, LexicalEncoder(64).encode(["c", "d", "a"]))
    # Another graph, another store, another model: nothing is shared.
    assert VectorCache("http://x", "h").vectors(encoder, texts)[1] == 3
    assert VectorCache("http://y", "g").vectors(encoder, texts)[1] == 3
    assert VectorCache("http://x", "g").vectors(Counting("other"), texts)[1] == 3
    assert VectorCache("http://x", "g").vectors(encoder, ["c", "d", "a"])[1] == 0


def test_the_index_is_what_was_chosen() -> None:
    cache = VectorCache("http://x", "g")
    assert cache.index is None
    cache.choose(Counting())
    assert VectorCache("http://x", "g").index == About("counting", 64, "")
    (cache.folder / "index.json").write_text("{", "utf-8")
    assert cache.index is None


def test_a_bad_file_is_made_again_and_a_folder_that_takes_nothing_costs_time(cache_folder: Path) -> None:
    encoder, cache = Counting(), VectorCache("http://x", "g")
    cache.vectors(encoder, ["a", "b"])
    (kept,) = cache.folder.glob("*.npz")
    kept.write_bytes(kept.read_bytes()[:100])
    assert cache.vectors(encoder, ["a", "b"])[1] == 2
    assert cache.vectors(encoder, ["a", "b"])[1] == 0
    full = VectorCache("http://z", "g")
    full.folder.parent.mkdir(parents=True, exist_ok=True)
    full.folder.write_text("no folder", "utf-8")
    assert full.vectors(encoder, ["a", "b"])[1] == 2
    assert full.vectors(encoder, ["a", "b"])[1] == 2
    with pytest.raises(OSError, match="exists"):
        full.choose(encoder)


def test_a_run_that_was_ended_is_taken_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "CHUNK", 10)
    monkeypatch.setattr(stored, "SAFE_EVERY", -1.0)
    encoder, cache, texts = Counting(), VectorCache("http://x", "g"), [f"name {number}" for number in range(50)]
    reported: list[tuple[int, int]] = []

    def stop(done: int, total: int) -> None:
        reported.append((done, total))
        if done >= 30:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cache.vectors(encoder, texts, stop)
    assert reported == [(10, 50), (20, 50), (30, 50)]
    assert cache.vectors(encoder, texts)[1] == 30
    assert not list(cache.folder.glob("part-*"))
