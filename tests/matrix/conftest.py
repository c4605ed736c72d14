"""The small knowledge base of the oracle, in process and on Neo4j, loaded once for all tests that
ask it; and graphs opened on each store in turn.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import condgraph
from condgraph.graph import Graph
from condgraph.remote_neo4j import Neo4jGraph
from tests.support.stores import marked


@dataclass(frozen=True)
class Oracle:
    """The same graph here and there, and the programs over it by kind."""

    here: Graph
    there: Neo4jGraph
    programs: dict[str, list[Any]]

    def some(self, of_each: int) -> list[Any]:
        """So many programs of each kind, spread over all of them; 0 for all."""
        return [
            one for found in self.programs.values() for one in (found[:: len(found) // of_each][:of_each] if of_each else found)
        ]


@pytest.fixture(scope="session")
def oracle_pair(neo4j_uri: str, oracle: Path) -> Iterator[Oracle]:
    here = condgraph.open()
    here.load(oracle / "kb_small.json")
    there = condgraph.open(neo4j_uri, graph="oracle")
    assert isinstance(there, Neo4jGraph)
    there.store.delete()
    there.push(here)
    kinds: dict[str, list[Any]] = {}
    with (oracle / "programs_small.jsonl").open(encoding="utf-8") as lines:
        for record in map(json.loads, lines):
            kinds.setdefault(record["kind"], []).append(record["program"])
    yield Oracle(here, there, kinds)
    there.store.delete()
    there.close()


STORES = marked("neo4j", "oxigraph", nightly=("virtuoso",))


@pytest.fixture(params=STORES, scope="module")
def opener(request: pytest.FixtureRequest) -> Any:
    """What opens a graph of a name on a store."""
    from tests.matrix.test_sparql_remote import opened

    if request.param == "neo4j":
        uri = request.getfixturevalue("neo4j_uri")
        return lambda name: condgraph.open(uri, graph=name)
    server = request.getfixturevalue(f"{request.param}_server")
    return lambda name: opened(server, name)
