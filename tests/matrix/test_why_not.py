"""Why an answer is empty, on servers: the step, the reason and the changes that the snapshot names."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import condgraph
from condgraph.graph import Graph
from condgraph.loaders.base import Reading
from condgraph.loaders.recognise import recognise
from tests.engine.test_why_not import CASES, MISSING, graph
from tests.support.broken_programs import cut_entities, empty_programs, judged
from tests.support.stores import empty_graph, marked

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


def test_servers_know_their_texts(graph: Graph, there: Any) -> None:
    here, far = graph.current.schema, there.store.naming_schema
    ids = [graph.current.ident(at) for at in range(5)]
    texts = ["Mother and motherland", "mother and motherland", "Nepal", "Nepla", "no 'such\n\"text\\", "mountains", *ids]
    assert {text: far.has_text(text) for text in texts} == {text: here.has_text(text) for text in texts}


@pytest.fixture(params=["memory", "duckdb", *marked("neo4j", "oxigraph", nightly=("virtuoso",))])
def stored(request: pytest.FixtureRequest, graph: Graph) -> Iterator[Any]:
    if request.param == "memory":
        yield graph
        return
    with empty_graph(request, "why not, late") as there:
        there.push(graph)
        yield there


@pytest.mark.parametrize("expected", [None, "New Delhi"])
def test_a_deadline_says_how_far_it_came(stored: Any, expected: Any) -> None:
    program = "FindAll() FilterNum(height, 9000 m, >) Relate(capital, backward) FilterStr(motto, Mother and motherland) QueryName()"
    answer = stored.query(program)
    assert not answer.values
    whole, seconds, late = None, 1e-6, 0
    while whole is None:
        why = answer.why_not(expected, timeout=seconds)
        if why.complete:
            whole = why
        else:
            late += 1
            assert why.lines()[-1].startswith("the time for explaining was over after")
            assert why.reason
        seconds *= 2
    assert late
    assert str(whole) == str(answer.why_not(expected, timeout=60.0))
    # The store answers afterwards as before.
    assert stored.query("Find(Nepal) Relate(capital, forward) QueryName()").texts == ["Kathmandu"]


@pytest.mark.slow
def test_causes_and_repairs_are_named(oracle: Path, opener: Any) -> None:
    (found,) = recognise(oracle / "kb_small.json")
    every = list(found.format.read(found.data, Reading(found.source), {}))
    records = [json.loads(line)["program"] for line in (oracle / "programs_small.jsonl").read_text().splitlines()]
    graphs, servers = [], []
    for name, items in (("whole", every), ("cut", cut_entities(every))):
        graphs.append(condgraph.open())
        graphs[-1].add(items)
        servers.append(opener(f"why not, {name}"))
        servers[-1].store.delete()
        servers[-1].push(graphs[-1])
    result = judged(empty_programs(records, 200, 5, *graphs), graphs[0], *servers)
    for server in servers:
        server.store.delete()
        server.close()
    total = result.tried.total()
    assert result.causes.total() >= 0.99 * total, "\n".join([str(result), *result.wrong])
    assert result.repairs.total() >= 0.95 * total, "\n".join([str(result), *result.wrong])
    print(result)
