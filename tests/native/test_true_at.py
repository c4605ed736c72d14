"""True at a time, on existing databases whose relationships have a start and an end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import condgraph
from condgraph.engine.values import Time
from tests.support.native_databases import database
from tests.support.true_at import disagreements

_PEOPLE = """
CREATE (a:Person {name: 'Ann', born: 1950}), (b:Person {name: 'Ben', born: 1960}), (c:Firm {name: 'Coal'}), (d:Firm {name: 'Dye'}),
 (a)-[:WORKS_FOR {from: date('1980-01-01'), to: date('1985-06-30'), role: 'clerk'}]->(c),
 (a)-[:WORKS_FOR {from: date('1985-07-01'), role: 'head'}]->(d),
 (b)-[:WORKS_FOR {to: date('1984-12-31')}]->(d),
 (b)-[:WORKS_FOR {role: 'guest'}]->(c),
 (b)-[:WORKS_FOR {from: date('1990-01-01'), to: date('1990-12-31')}]->(c),
 (a)-[:KNOWS]->(b)
"""
_PROGRAMS = [
    "Find(Ann) Relate(WORKS_FOR, forward) QueryName()",
    "Find(Coal) Relate(WORKS_FOR, backward) QueryName()",
    "FindAll() Relate(WORKS_FOR, forward) Count()",
    "FindAll() SelectAmong(born, smallest)",
    "Find(Ann) Relate(KNOWS, forward) Relate(WORKS_FOR, forward) QueryName()",
    "FindAll() FilterNum(born, 1955, <) Relate(WORKS_FOR, forward) QueryName()",
    "Query1: \"get_information(head_entity='Ann')\"",
    "Find(Ann) Find(Ben) SelectBetween(born, greater)",
    "Find(Ann) QueryAttr(born)",
    '?x : WORKS_FOR(?x, "Coal") and not WORKS_FOR(?x, "Dye")',
    "Query1: \"get_information(relation='WORKS_FOR', tail_entity='Coal')\"",
]


@pytest.fixture
def driver(emptied_neo4j_uri: str) -> Iterator[tuple[str, Any]]:
    with database(emptied_neo4j_uri) as found:
        yield emptied_neo4j_uri, found


def test_the_same_as_cut_by_hand(driver: tuple[str, Any], tmp_path: Path) -> None:
    place, server = driver
    with server.session() as session:
        session.run(_PEOPLE).consume()
    mapping = tmp_path / "mapping.toml"
    mapping.write_text('[relationship.WORKS_FOR]\nstart = "from"\nend = "to"\n')
    with condgraph.open(place, mapping=mapping) as graph:
        copy = graph.snapshot()
        times = [(Time.year(1984), False), (Time.day(1985, 7, 1), True), (Time.year(1990), False), (Time.year(1982), True)]
        count, wrong = disagreements(copy, _PROGRAMS, times, [graph])
        assert not wrong, wrong[0]
        assert count == 2 * len(_PROGRAMS) * len(times)
        answer = graph.query(_PROGRAMS[0], at="1984")
        assert answer.texts == ["Coal"]
        assert answer.check().ok
        gone = [f"{one.subject.name} {one.object.name}" for one in graph.difference("1984", "1991").gone]  # type: ignore[union-attr]
        assert sorted(gone) == ["Ann Coal", "Ben Dye"]


def test_a_database_without_times(driver: tuple[str, Any]) -> None:
    place, server = driver
    with server.session() as session:
        session.run("CREATE (:Person {name: 'Ann'})-[:KNOWS {how: 'well'}]->(:Person {name: 'Ben'})").consume()
    with condgraph.open(place) as graph:
        answer = graph.query("Find(Ann) Relate(KNOWS, forward) QueryName()", at="1984")
        assert answer.texts == ["Ben"]
        assert any("no statement of the graph has a time" in one for one in answer.warnings)
