"""What is counted and hashed of a graph piece by piece is that of the whole."""

from __future__ import annotations

import pytest

import condgraph
from condgraph.engine import bounds, identity
from condgraph.engine.identity import content_digest, statement_id, statement_ids
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.overview import survey
from tests.matrix.test_parquet_export import UGLY
from tests.support.world import items


@pytest.mark.parametrize("size", [1, 2, 7])
def test_the_digest_and_the_survey_are_those_of_the_whole(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def snapshot() -> Snapshot:
        graph = condgraph.open()
        graph.add([*items(), *UGLY], source="world")
        return graph.current

    whole = snapshot()
    digest, described = content_digest(whole), survey.packed(survey.survey(whole), "")
    for module in (identity, survey):
        monkeypatch.setattr(module, "slices", lambda length, most=size: bounds.slices(length, min(most, size)))
    monkeypatch.setattr(survey, "_MAX_PARTIAL", 1)
    monkeypatch.setattr(bounds, "_MAX_SCRATCH", 0)
    part = snapshot()
    assert statement_ids(part).tolist() == [statement_id(part, number) for number in range(part.statements)]
    assert content_digest(part) == digest
    assert survey.packed(survey.survey(part), "") == described


def test_an_array_to_work_in_is_zeros_that_can_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "_MAX_SCRATCH", 3)
    for length in (0, 3, 4, 5000):
        array = bounds.scratch(length, "uint16")
        assert array.tolist() == [0] * length
        array[:] = 7
        array.sort()
        assert array.tolist() == [7] * length
