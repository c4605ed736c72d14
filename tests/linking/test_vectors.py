"""Distances between vectors: exact, the same in any company, and the nearest found among all."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from condgraph.engine.errors import OptionError
from condgraph.vectors.encoders import LexicalEncoder
from condgraph.vectors.nearest import UNIT, DenseVectors, SparseVectors, Vectors


def random_units(count: int, dimension: int, seed: int = 0) -> np.ndarray:
    matrix = np.random.default_rng(seed).standard_normal((count, dimension)).astype(np.float32)
    return matrix / np.linalg.norm(matrix, axis=1, keepdims=True)


def by_definition(matrix: np.ndarray, query: np.ndarray) -> list[int]:
    """|u - v| in plain Python floats, a row at a time."""
    found = []
    for row in matrix.tolist():
        found.append(round(sum((a - b) ** 2 for a, b in zip(row, query.tolist(), strict=True)) ** 0.5 * UNIT))
    return found


def test_distances_are_the_definition() -> None:
    matrix = random_units(200, 48)
    vectors = DenseVectors(matrix)
    found = vectors.distances(matrix[3])
    assert found.tolist() == by_definition(matrix, matrix[3])
    assert found[3] == 0
    assert abs(int(vectors.distances(-matrix[3])[3]) - 2 * UNIT) <= 1


def test_a_distance_does_not_depend_on_its_company() -> None:
    matrix = np.concatenate([random_units(5000, 96), random_units(5000, 96)])
    vectors = DenseVectors(matrix)
    query = random_units(1, 96, seed=9)[0]
    every = vectors.distances(query)
    assert (every[:5000] == every[5000:]).all()
    for at in range(0, 10_000, 97):
        assert vectors.distances(query, np.array([at]))[0] == every[at]
    some = np.random.default_rng(1).permutation(10_000)[:777]
    assert (vectors.distances(query, some) == every[some]).all()


@pytest.mark.parametrize("k", [1, 2, 16, 500, 4999, 5000, 6000])
def test_the_nearest_are_the_first_of_all(k: int) -> None:
    # Many rows stand several times, so that there are ties at every cut.
    matrix = random_units(1250, 32)[np.random.default_rng(2).integers(0, 1250, 5000)]
    vectors = DenseVectors(matrix)
    query = matrix[17]
    every = vectors.distances(query)
    wanted = sorted(range(5000), key=lambda at: (every[at], at))[:k]
    positions, distances = vectors.nearest(query, k)
    assert positions.tolist() == wanted
    assert distances.tolist() == every[wanted].tolist()


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix, query = random_units(1000, 40), random_units(1, 40, seed=5)[0]
    whole = DenseVectors(matrix).nearest(query, 100)
    monkeypatch.setattr("condgraph.vectors.nearest._BLOCK", 64)
    monkeypatch.setattr("condgraph.vectors.nearest._EXACT_BLOCK", 7)
    parts = DenseVectors(matrix).nearest(query, 100)
    assert (whole[0] == parts[0]).all()
    assert (whole[1] == parts[1]).all()


@given(st.lists(st.text(alphabet="abc é", max_size=10), min_size=1, max_size=20), st.text(alphabet="abc é", max_size=10))
def test_sparse_vectors_answer_as_dense_ones(names: list[str], name: str) -> None:
    encoder = LexicalEncoder(256)
    query = encoder.encode([name])[0]
    sparse, dense = SparseVectors(encoder.sparse(names)), DenseVectors(encoder.encode(names))
    # Sums in another order may differ in the last bit, and so by one millionth.
    assert np.abs(sparse.distances(query) - dense.distances(query)).max() <= 1
    assert sparse.distances(encoder.encode(names[:1])[0])[0] == 0
    every = sparse.distances(query)
    for k in (1, 3, len(names)):
        positions, distances = sparse.nearest(query, k)
        assert positions.tolist() == sorted(range(len(names)), key=lambda at: (every[at], at))[:k]
        assert distances.tolist() == every[positions].tolist()
    assert (sparse.distances(query, np.array([0])) == every[:1]).all()


@pytest.mark.parametrize("vectors", [DenseVectors(random_units(3, 64)), SparseVectors(LexicalEncoder(64).sparse(["a", "b"]))])
def test_vectors_of_another_length_are_refused(vectors: Vectors) -> None:
    with pytest.raises(OptionError, match="64 numbers"):
        vectors.distances(np.zeros(65, np.float32))
    with pytest.raises(OptionError, match="64 numbers"):
        vectors.nearest(np.zeros(63, np.float32), 1)


def test_empty_indexes() -> None:
    for vectors in (DenseVectors(np.empty((0, 64), np.float32)), SparseVectors(LexicalEncoder(64).sparse([]))):
        assert vectors.distances(np.zeros(64, np.float32)).tolist() == []
        assert vectors.nearest(np.zeros(64, np.float32), 5)[0].tolist() == []
    with pytest.raises(OptionError, match="float32"):
        DenseVectors(np.zeros((3, 4)))  # type: ignore[arg-type]
