"""Patterns on Neo4j give what they give on the snapshot, in its order, on a real server: random graphs, and real data."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from typing import Any

import pytest

import condgraph
from condgraph import Graph
from condgraph.engine.frontends.pattern import Pattern
from condgraph.engine.search.match import match
from condgraph.engine.search.result import Matches
from condgraph.remote import Neo4jGraph
from tests.search.worlds import TieEncoder, a_graph, a_pattern

pytestmark = pytest.mark.xdist_group("neo4j")
#: Random graphs; two hundred with CONDGRAPH_ALL=1.
GRAPHS = 200 if os.environ.get("CONDGRAPH_ALL") == "1" else 16
ENCODER = TieEncoder()


def an_ask(dice: random.Random, pattern: Pattern, graph: Graph) -> dict[str, Any]:
    asked: dict[str, Any] = {
        "k": dice.choice((1, 2, 3, 5, None)),
        "injective": dice.random() < 0.6,
        "induced": dice.random() < 0.2,
        "directed": dice.random() < 0.4,
        "k_nodes": dice.choice((None, None, None, 1, 3)),
        "k_relations": dice.choice((None, None, None, 1, 2)),
        "k_types": dice.choice((None, None, 1)),
    }
    if dice.random() < 0.4:
        asked["group_by"] = [node.text for node in dice.sample(pattern.nodes, dice.randint(1, min(2, len(pattern.nodes))))]
    if dice.random() < 0.3:
        entity = graph.current.entity(dice.randrange(graph.current.entities))
        asked["distinct_from"] = {dice.choice(pattern.nodes).text: dice.choice((entity, entity.name))}
    return asked


def shown(found: Matches) -> list[Any]:
    """Everything of the solutions that a user can look at."""
    return [
        (
            one.total,
            [(node.value, node.term) for node in one.nodes],
            [(repr(edge.statement), edge.reversed, edge.term) for edge in one.edges],
            one.count,
        )
        for one in found.solutions
    ]


@pytest.fixture(scope="module")
def remote(neo4j_uri: str) -> Iterator[Neo4jGraph]:
    found = condgraph.open(neo4j_uri, graph="patterns")
    assert isinstance(found, Neo4jGraph)
    found.store.delete()
    yield found
    found.store.delete()
    found.close()


@pytest.mark.parametrize("batch", range(8))
def test_random_graphs(remote: Neo4jGraph, batch: int) -> None:
    for seed in range(batch * GRAPHS // 8, (batch + 1) * GRAPHS // 8):
        dice = random.Random(seed)
        local = condgraph.open()
        local.add(a_graph(dice))
        remote.store.delete()
        remote.push(local)
        for _ in range(4):
            pattern = Pattern.of(a_pattern(dice))
            asked = an_ask(dice, pattern, local)
            here = match(local.current, pattern, encoder=ENCODER, **asked)
            there = remote.match(pattern, encoder=ENCODER, **asked)
            about = f"seed {seed}: {pattern} {asked}\n{there.cypher}"
            assert there.hits.totals.tolist() == here.hits.totals.tolist(), about
            assert shown(there) == shown(here), about
            assert (there.texts, there.complete, there.exact, there.warnings) == (
                here.texts, here.complete, here.exact, here.warnings,
            ), about  # fmt: skip
