"""Eq. 3 and 4 in plain loops, and what a threshold keeps."""

from __future__ import annotations

import math

import numpy as np
import pytest

from condgraph.engine.errors import OptionError
from condgraph.links.store import Threshold, calibrated, kept_of, thresholded

RNG = np.random.default_rng(3)


def plain(scores: list[float], tails: int, delta: float) -> list[float]:
    total = math.fsum(math.exp(score) for score in scores)
    return [min(math.exp(score) * max(1, tails) / total, 1 - delta) for score in scores]


def test_calibration_is_equation_3_and_4() -> None:
    scores = (RNG.standard_normal((20, 60)) * 4).astype(np.float32)
    tails = RNG.integers(0, 5, 20)
    found = calibrated(scores, tails, 1e-4)
    for row in range(20):
        assert found[row].tolist() == pytest.approx(plain(scores[row].tolist(), int(tails[row]), 1e-4), rel=1e-9)
    rows, entities, values = kept_of(scores, tails, 1e-3)
    wanted = {(row, entity) for row, entity in np.argwhere(found >= 1e-3).tolist()}
    assert set(zip(rows.tolist(), entities.tolist(), strict=True)) == wanted
    assert np.minimum(values, 1 - 1e-4).tolist() == pytest.approx(found[rows, entities].tolist(), rel=1e-6)


def test_scores_of_any_size_are_calibrated() -> None:
    huge = np.array([[3e4, -3e4, 2.9999e4], [-3e38, -3e38, -3e38]], np.float32)
    assert calibrated(huge, np.array([1, 1]))[0].tolist() == pytest.approx([1 / (1 + math.exp(-1)), 0.0, 1 / (1 + math.e)])
    assert calibrated(huge, np.array([1, 1]))[1].tolist() == pytest.approx([1 / 3] * 3)


def test_a_prediction_is_below_1_in_single_precision() -> None:
    scores = np.array([[50.0, 0.0]], np.float32)
    _, _, values = thresholded(1, *kept_of(scores, np.array([1]), 1e-3), Threshold())
    assert values.dtype == np.float32
    assert float(values[0]) < 1


def test_a_cap_keeps_the_best_and_of_equals_the_first() -> None:
    values = np.array([0.2, 0.5, 0.5, 0.5, 0.9, 0.1])
    row, column = np.zeros(6, np.int64), np.arange(6)
    offsets, ids, kept = thresholded(2, row, column, values, Threshold(cap=3))
    assert (offsets.tolist(), ids.tolist()) == ([0, 3, 3], [1, 2, 4])
    assert kept.tolist() == pytest.approx([0.5, 0.5, 0.9])


@pytest.mark.parametrize(
    "options",
    [{"epsilon": 0.0}, {"epsilon": 1.0}, {"epsilon": 0.99995}, {"delta": 1e-9}, {"delta": 1.0}, {"cap": 0}, {"epsilon": math.nan}],
)
def test_thresholds_of_no_sense_are_errors(options: dict[str, float]) -> None:
    with pytest.raises(OptionError):
        Threshold(**options)  # type: ignore[arg-type]
