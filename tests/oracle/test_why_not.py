"""Programs of the oracle that were broken by rules, and results whose statement was removed: the explanation names the cause,
the repair and the statement.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import condgraph
from condgraph.engine.facts import Item
from condgraph.graph import Graph
from condgraph.loaders.base import Reading
from condgraph.loaders.recognise import recognise
from tests.support.broken_programs import cut_entities, empty_programs, judged, removed_statements
from tests.support.lanes import ALL, by_lane

#: The knowledge base and its programs, by lane.
BASE, PROGRAMS = by_lane(*[("kb_small.json", "programs_small.jsonl")] * 2, ("kb.json", "programs_dev.jsonl"))


@pytest.fixture(scope="module")
def items(oracle: Path) -> list[Item]:
    (found,) = recognise(oracle / BASE)
    return list(found.format.read(found.data, Reading(found.source), {}))


@pytest.fixture(scope="module")
def whole(items: list[Item]) -> Graph:
    graph = condgraph.open()
    graph.add(items)
    return graph


@pytest.fixture(scope="module")
def records(oracle: Path) -> list[Any]:
    return [json.loads(line)["program"] for line in (oracle / PROGRAMS).read_text().splitlines()]


def test_causes_and_repairs_are_named(items: list[Item], whole: Graph, records: list[Any]) -> None:
    cut = condgraph.open()
    cut.add(cut_entities(items))
    found = judged(empty_programs(records, by_lane(60, 1_000, 1_000), 5, whole, cut), whole, whole, cut)
    total = found.tried.total()
    assert found.causes.total() >= 0.99 * total, "\n".join([str(found), *found.wrong])
    assert found.repairs.total() >= 0.95 * total, "\n".join([str(found), *found.wrong])
    print(found)


def test_removed_statements_are_named(items: list[Item], whole: Graph, records: list[Any]) -> None:
    found = removed_statements(records, by_lane(12, 500, 500), 7, items, whole)
    assert found.tried == by_lane(12, 500, 500)
    assert found.named >= (0.98 if ALL else 0.9) * found.tried, "\n".join([str(found), *found.wrong])
    print(found)
