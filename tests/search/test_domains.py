"""Candidates of a node: terms that are worked out late are the exact ones."""

from __future__ import annotations

import numpy as np
import pytest

from condgraph.patterns.distance.domains import BARRED, Domain, assignment
from condgraph.patterns.distance.lazy import LateDomain
from condgraph.patterns.reader import choose
from condgraph.vectors.nearest import DenseVectors


def unit(rows: np.ndarray) -> np.ndarray:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@pytest.mark.parametrize("seed", range(5))
def test_late_terms_are_the_exact_ones(seed: int) -> None:
    draw = np.random.default_rng(seed)
    matrix = unit(draw.standard_normal((400, 24)))
    # Many names that are equal, or nearly.
    matrix[100:200] = matrix[:100]
    matrix[200:300] = unit(matrix[:100] + draw.standard_normal((100, 24)).astype(np.float32) * 1e-6)
    vectors = DenseVectors(matrix)
    places = draw.integers(0, 400, 1000).astype(np.int32)
    query = matrix[7]
    rank = draw.permutation(1000).astype(np.int32)
    exact = vectors.distances(query).take(places)
    for excluded in (None, np.unique(draw.integers(0, 1000, 200)).astype(np.int32), np.flatnonzero(exact == 0).astype(np.int32)):
        late, plain = LateDomain(vectors, query, places).without(excluded), Domain(exact).without(excluded)
        assert late.least == plain.least
        assert not late.open
        for limit in (0, 1, 5, 500_000, 1_000_000, BARRED - 1):
            for one, two in zip(late.within(limit), plain.within(limit), strict=True):
                assert one.tolist() == two.tolist()
        nodes = draw.integers(0, 1000, 50)
        one, two = late.at(nodes), plain.at(nodes)
        assert one is not None
        assert two is not None
        assert one.tolist() == two.tolist()
        for k in (1, 3, 64, 2000):
            one, two = late.nearest(k, rank), plain.nearest(k, rank)
            assert one.nodes is not None
            assert two.nodes is not None
            assert one.nodes.tolist() == two.nodes.tolist()
            assert one.costs is not None
            assert two.costs is not None
            assert one.costs.tolist() == two.costs.tolist()
        step = late.step(10)
        assert step is not None
        assert len(late.within(step)[0]) > 10


def test_few_terms_are_worked_out(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(0)
    vectors = DenseVectors(unit(draw.standard_normal((2000, 64))))
    asked = 0
    distances = DenseVectors.distances

    def counted(self: DenseVectors, query: np.ndarray, positions: np.ndarray | None = None) -> np.ndarray:
        nonlocal asked
        asked += len(self) if positions is None else len(positions)
        return distances(self, query, positions)

    monkeypatch.setattr(DenseVectors, "distances", counted)
    late = LateDomain(vectors, vectors.matrix[3], np.arange(2000, dtype=np.int32))
    assert late.least == 0
    assert late.within(1000)[0].tolist() == [3]
    late.nearest(5, np.arange(2000))
    assert asked < 20


def test_statements_for_parallel_edges() -> None:
    """The vectorised sum and the choice that is read back agree with each other on every case of
    three statements.
    """
    draw = np.random.default_rng(1)
    for _ in range(300):
        edges, statements = int(draw.integers(1, 4)), int(draw.integers(1, 5))
        prices = draw.integers(0, 4, (edges, statements))
        prices[draw.random((edges, statements)) < 0.2] = BARRED
        least = int(assignment(prices, np.array([0]))[0])
        if least < BARRED:
            idents = draw.permutation(statements).tolist()
            chosen = choose(prices.T.tolist(), idents, BARRED)
            assert len(set(chosen)) == edges
            assert sum(int(prices[edge, place]) for edge, place in enumerate(chosen)) == least
