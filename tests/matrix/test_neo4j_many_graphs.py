"""Hundreds of graphs in one database: every query seeks in a composite index, and taking one away
leaves the others as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import neo4j
import pytest

import condgraph
from condgraph.graph import Graph
from condgraph.remote_neo4j import Neo4jGraph
from tests.support.lanes import ALL
from tests.support.world import contents, items

pytestmark = pytest.mark.xdist_group("neo4j")
TABLES = 200 if ALL else 10
PROGRAMS = (
    "Find(Ann) QueryAttr(height)",
    "Find(Ann) Relate(knows, forward) QueryName()",
    "FindAll() FilterConcept(person) QueryName()",
    "FindAll() FilterNum(height, 1.8 metre, >) QueryName()",
    "FindAll() FilterYear(born, 1980, =) QueryName()",
    "FindAll() FilterStr(note, nothing) QueryName()",
)


@pytest.fixture(scope="module")
def crowded(neo4j_uri: str, data: Path) -> Iterator[tuple[neo4j.Driver, Graph, list[Graph]]]:
    """A knowledge graph, and one graph for each of the tables beside it."""
    files = sorted((data / "wikitablequestions").glob("csv/20*-csv/*.csv"))[:TABLES]
    assert len(files) == TABLES
    world = condgraph.open()
    world.add(items(), source="world")
    tables = []
    with neo4j.GraphDatabase.driver(neo4j_uri, notifications_min_severity="OFF") as driver:
        opened(driver, "crowded world").push(world)
        for number, file in enumerate(files):
            table = condgraph.open()
            table.load(file)
            tables.append(table)
            opened(driver, f"table {number}").push(table)
        yield driver, world, tables
        for name in ["crowded world", *(f"table {number}" for number in range(TABLES))]:
            opened(driver, name).store.delete()


def opened(driver: neo4j.Driver, graph: str) -> Neo4jGraph:
    found = condgraph.open(driver, graph=graph)
    assert isinstance(found, Neo4jGraph)
    return found


def operators(plan: Any) -> Iterator[Any]:
    yield plan
    for child in plan.get("children", ()):
        yield from operators(child)


def hits(driver: neo4j.Driver, text: str, parameters: dict[str, Any]) -> tuple[list[str], int]:
    """The leaves of a plan that was run, and how often the store was looked at."""
    with driver.session(default_access_mode="READ") as session:
        profile = session.run("PROFILE " + text, parameters).consume().profile
    found = list(operators(profile))
    leaves = [one["operatorType"].partition("@")[0] for one in found if not one.get("children")]
    assert not [one for one in found if "Scan" in one["operatorType"] and "AllNodes" in one["operatorType"]]
    return leaves, sum(int(one["args"].get("DbHits", 0)) for one in found)


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_query_seeks(crowded: tuple[neo4j.Driver, Graph, list[Graph]], program: str) -> None:
    driver, world, _ = crowded
    answer = opened(driver, "crowded world").kopl(program, on_unknown="empty")
    assert answer.texts == world.kopl(program, on_unknown="empty").texts
    compiled = answer._compiled  # type: ignore[attr-defined]
    leaves, looked = hits(driver, compiled.text, compiled.parameters)
    scans = [leaf for leaf in leaves if "Scan" in leaf and "Index" not in leaf]
    assert not scans, f"{compiled.text}\n{leaves}"
    # Of all rows in the database, those of other graphs are not looked at.
    assert looked < 2_000, f"{compiled.text}\n{leaves}"


def test_tables_answer_as_in_process(crowded: tuple[neo4j.Driver, Graph, list[Graph]]) -> None:
    driver, _, tables = crowded
    for number in range(0, TABLES, TABLES // 10):
        remote = opened(driver, f"table {number}")
        assert remote.status().counts == tables[number].status().counts
        assert remote.kopl("FindAll() Count()").texts == tables[number].kopl("FindAll() Count()").texts


def test_one_graph_is_taken_away(crowded: tuple[neo4j.Driver, Graph, list[Graph]]) -> None:
    driver, _, tables = crowded
    kept = "MATCH (n) WHERE coalesce(n.graph, n.name) <> 'table 1' RETURN count(n) AS nodes, sum(count {(n)-->()}) AS edges"
    rest = "MATCH (n) WHERE n.graph = 'table 1' OR (n:CondgraphGraph AND n.name = 'table 1') RETURN count(n) AS nodes"
    before = driver.execute_query(kept).records[0].data()
    opened(driver, "table 1").store.delete()
    assert driver.execute_query(kept).records[0].data() == before
    assert driver.execute_query(rest).records[0]["nodes"] == 0
    assert contents(opened(driver, "table 0").snapshot()) == contents(tables[0])
    opened(driver, "table 1").push(tables[1])
    assert contents(opened(driver, "table 1").snapshot()) == contents(tables[1])
