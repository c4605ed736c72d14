"""A large database of others: opening it scans nothing, and what its indexes can answer they are
asked. A million nodes where the whole is asked for.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import neo4j
import pytest

import condgraph
from condgraph.cypher.connection import Connection
from condgraph.engine.errors import UnknownNameError
from condgraph.engine.store import Request
from condgraph.languages.registry import lower
from condgraph.remote_native import NativeGraph
from tests.support.lanes import WHOLE, by_lane
from tests.support.native_databases import database
from tests.support.pace import quick_enough

pytestmark = pytest.mark.xdist_group("neo4j native")
NODES = by_lane(12_000, 24_000, 1_000_000)
_BATCH = 20_000
#: Everything that opening may touch: some samples of 1,000, whatever the size.
_LOOKED_AT = 40_000
_SCHEMA = (
    "CREATE CONSTRAINT FOR (n:Person) REQUIRE n.handle IS UNIQUE",
    "CREATE INDEX FOR (n:Person) ON (n.name)",
    "CREATE INDEX FOR (n:Person) ON (n.score)",
    "CREATE INDEX FOR (n:Person) ON (n.joined)",
    "CREATE CONSTRAINT FOR (n:Place) REQUIRE n.code IS UNIQUE",
)
_PEOPLE = (
    "UNWIND range($low, $high - 1) AS i CREATE (p:Person {handle: 'p' + toString(i), name: 'Person ' + toString(i), "
    "score: (i * 7919) % 1000003, joined: date('2000-01-01') + duration({days: i % 9000})}) "
    "WITH p, i MATCH (c:Place {code: i % 1000}) CREATE (p)-[:LIVES_IN {since: 1950 + i % 70}]->(c)"
)


@pytest.fixture(scope="module")
def large(emptied_neo4j_uri: str) -> Iterator[tuple[NativeGraph, neo4j.Driver]]:
    """Places that are called by their keys, notes that are called by nothing, and people."""
    with database(emptied_neo4j_uri) as driver:
        with driver.session() as session:
            for text in _SCHEMA:
                session.run(text).consume()
            session.run("UNWIND range(0, 999) AS i CREATE (:Place {code: i, height: i % 90}), (:Note {weight: i % 7})").consume()
            for low in range(0, NODES - 2_000, _BATCH):
                session.run(_PEOPLE, low=low, high=min(low + _BATCH, NODES - 2_000)).consume()
            session.run("CALL db.awaitIndexes(300)").consume()
        with NativeGraph(Connection(emptied_neo4j_uri)) as graph:
            yield graph, driver


def _of(plan: Any, name: str) -> list[Any]:
    """A part of each operator of a plan."""
    found = plan["operatorType"].partition("@")[0] if name == "operator" else plan["args"].get(name, 0)
    return [found] + [one for child in plan.get("children", ()) for one in _of(child, name)]


def planned(large: tuple[NativeGraph, neo4j.Driver], program: str, *, run: bool = False) -> Any:
    """How the server goes about the query of a program, run or not."""
    graph, driver = large
    compiled = graph.store._query(Request(program, "kopl", {}, None, lower)).compiled
    with driver.session(default_access_mode="READ") as session:
        done = session.run(f"{'PROFILE' if run else 'EXPLAIN'} {compiled.text}", compiled.parameters).consume()
    return done.profile if run else done.plan


def test_opening_scans_nothing(large: tuple[NativeGraph, neo4j.Driver], monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, dict[str, Any]]] = []
    plain, took = Connection.ask, []

    def ask(self: Connection, text: str, parameters: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
        asked.append((text, parameters))
        return plain(self, text, parameters, **more)

    monkeypatch.setattr(Connection, "ask", ask)
    graph, driver = large
    for _ in range(3):
        asked.clear()
        start = time.perf_counter()
        with condgraph.open(graph.place) as opened:
            took.append(time.perf_counter() - start)
            assert isinstance(opened, NativeGraph)
            assert opened.mapping.node_count == NODES
    looked = 0
    with driver.session(default_access_mode="READ") as session:
        for text, parameters in asked:
            # The statistics, and what lists indexes, have no plan; small databases are counted out.
            if text.startswith("MATCH") and "LIMIT 100000" not in text:
                looked += sum(_of(session.run("PROFILE " + text, parameters).consume().profile, "DbHits"))
    assert 0 < looked < _LOOKED_AT
    # A time says something of a machine that does nothing else.
    assert quick_enough(min(took), (2 if WHOLE else 60))


@pytest.mark.parametrize(
    ("program", "operator"),
    [
        ("Find(Person 4711) QueryAttr(score)", "NodeIndexSeek"),
        ("FindAll() FilterConcept(Person) FilterNum(score, 1000000, >) Count()", "NodeIndexSeekByRange"),
        ("FindAll() FilterNum(score, 7919, =) QueryName()", "NodeIndexSeek"),
        ("FindAll() FilterConcept(Person) FilterDate(joined, 2024-08-20, >=) QueryName()", "NodeIndexSeekByRange"),
        ("FindAll() FilterNum(score, 1000, <) Relate(LIVES_IN, forward) QueryName()", "NodeIndexSeekByRange"),
        ("Find(Place 17) Relate(LIVES_IN, backward) Count()", "NodeUniqueIndexSeek"),
    ],
)
def test_indexed_properties_are_sought(large: tuple[NativeGraph, neo4j.Driver], program: str, operator: str) -> None:
    operators = _of(planned(large, program), "operator")
    assert operator in operators
    assert "NodeByLabelScan" not in operators
    assert large[0].kopl(program).values


def test_names_that_are_numbers_are_sought(large: tuple[NativeGraph, neo4j.Driver]) -> None:
    """A name like "Note 17" may be the number of a node: it is not looked for among all nodes."""
    graph, driver = large
    with driver.session(default_access_mode="READ") as session:
        number = (
            session.run("MATCH (n:Note {weight: 3}) RETURN elementId(n) AS id LIMIT 1").single(strict=True)["id"].rpartition(":")[2]
        )
    for program, value in (
        (f"Find(Note {number}) QueryAttr(weight)", "3"),
        ("Find(Person 4711) QueryAttr(score)", str(4711 * 7919 % 1000003)),
        ("Find(Place 17) QueryAttr(height)", "17"),
    ):
        assert graph.kopl(program).texts == [value]
        assert sum(_of(planned(large, program, run=True), "DbHits")) < 200, program
    for nobody in ("Note 123456789012345678901234567890", f"node {number}", "Note 0x1"):
        with pytest.raises(UnknownNameError):
            graph.kopl(f"Find({nobody}) QueryAttr(weight)")
