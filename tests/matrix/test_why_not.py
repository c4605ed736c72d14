"""Why an answer is empty, on servers: the step, the reason and the changes that the snapshot names."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

import condgraph
from condgraph.graph import Graph
from tests.engine.test_why_not import CASES, MISSING, graph
from tests.support.broken_programs import RULES, broken

__all__ = ["graph"]


@pytest.fixture(scope="module")
def there(graph: Graph, opener: Any) -> Iterator[Any]:
    server = opener("why not")
    server.store.delete()
    server.push(graph)
    yield server
    server.store.delete()
    server.close()


def test_servers_name_the_same_causes_and_changes(graph: Graph, there: Any) -> None:
    wrong = []
    for program, *_ in CASES:
        here, far = (one.query(program, on_unknown="empty").why_not() for one in (graph, there))
        if str(here) != str(far):
            wrong.append((program, str(here), str(far)))
    assert not wrong


def test_servers_name_the_same_missing_statements(graph: Graph, there: Any) -> None:
    wrong = []
    for program, expected, missing in MISSING:
        here, far = (one.query(program).why_not(expected) for one in (graph, there))
        if str(here) != str(far) or missing not in map(str, far.missing):
            wrong.append((program, str(here), str(far)))
    assert not wrong


@pytest.mark.slow
def test_broken_programs_of_the_oracle(oracle: Path, opener: Any) -> None:
    here = condgraph.open()
    here.load(oracle / "kb_small.json")
    server = opener("why not of the oracle")
    server.store.delete()
    server.push(here)
    records = [json.loads(line)["program"] for line in (oracle / "programs_small.jsonl").read_text().splitlines()]
    random, concepts, wrong, tried = Random(3), list(here.current.schema.concepts), [], 0
    for at, program in enumerate(records):
        case = broken(program, RULES[at % 5], random, concepts)
        mine = None if case is None else here.query(case.program, on_unknown="empty")
        if case is None or mine is None or mine.values:
            continue
        tried += 1
        found = [answer.why_not() for answer in (mine, server.query(case.program, on_unknown="empty"))]
        kinds = [[(change.kind, change.text, change.size) for change in why.changes] for why in found]
        if (found[0].step, kinds[0]) != (found[1].step, kinds[1]):
            wrong.append((program, str(found[0]), str(found[1])))
        if tried == 100:
            break
    server.store.delete()
    server.close()
    assert len(wrong) <= tried // 20, wrong
