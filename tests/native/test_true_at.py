"""True at a time, on existing databases whose relationships have a start and an end."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import condgraph
from condgraph.engine.errors import OptionError
from condgraph.engine.values import Time
from condgraph.remote_native import NativeGraph
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
    mapping.write_text('[relationship.WORKS_FOR]\ntimes = "[from, to]"\n')
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


@pytest.mark.slow
def test_ends_that_are_excluded(driver: tuple[str, Any], tmp_path: Path) -> None:
    place, server = driver
    with server.session() as session:
        session.run(_PEOPLE).consume()
        # Texts and moments, and an end that is the start.
        session.run(
            """
            MATCH (a:Person {name: 'Ann'}), (b:Person {name: 'Ben'}), (c:Firm {name: 'Coal'})
            CREATE (a)-[:OWNS {since: '1980', until: '1984'}]->(c), (b)-[:OWNS {since: '1984'}]->(c),
             (a)-[:LEADS {since: localdatetime('1980-01-01T12:00:00'), until: localdatetime('1984-01-01T00:00:00')}]->(c),
             (b)-[:LEADS {since: localdatetime('1984-01-01T00:00:00')}]->(c),
             (b)-[:OWNS {since: '1990', until: '1990'}]->(c)
            """
        ).consume()
    mapping = tmp_path / "mapping.toml"
    years = "".join(f'[relationship.OWNS.property.{key}]\nas = "date"\nformat = "%Y"\n' for key in ("since", "until"))
    mapping.write_text(
        '[relationship.WORKS_FOR]\ntimes = "[from, to)"\n[relationship.LEADS]\ntimes = "[since, until)"\n'
        f'[relationship.OWNS]\ntimes = "[since, until)"\n{years}'
    )
    with condgraph.open(place, mapping=mapping) as graph:
        copy = graph.snapshot()
        programs = [
            _PROGRAMS[0],
            "Find(Coal) Relate(OWNS, backward) QueryName()",
            "Find(Ann) Find(Coal) QueryRelationQualifier(OWNS, end time)",
            "Find(Ann) Find(Coal) QueryRelationQualifier(LEADS, end time)",
        ]
        count, wrong = disagreements(copy, programs[:2], [(Time.year(1984), False), (Time.year(1983), True)], [graph])
        assert not wrong, wrong[0]
        assert count == 8
        # Each of three formats is read once, though a test asks up to four times: the server takes long to plan a long query.
        assert graph.query(programs[1], at="1984").cypher.count("k[1] = 'end time'") == 3
        assert graph.query(programs[0], at="1985-06-29").texts == ["Coal"]
        assert graph.query(programs[0], at="1985-06-30").texts == []
        assert graph.query(programs[1], at="1984").texts == ["Ben"]
        for asked in (graph, copy):
            assert asked.query(programs[2]).texts == ["1983-12-31T23:59:59"]
            assert asked.query(programs[3]).texts == ["1983-12-31T23:59:59"]
        first, second = graph.timeline("Ann", "WORKS_FOR")
        assert (str(first.statement).split("  [")[0], first.allen(second)) == (
            "Ann | WORKS_FOR | Coal (end time: 1985-06-29, role: clerk, start time: 1980-01-01)", "before",
        )  # fmt: skip
        assert isinstance(graph, NativeGraph)
        again = tomllib.loads(graph.mapping_file())["relationship"]
        assert {again[name]["times"] for name in ("OWNS", "LEADS")} == {"[since, until)"}
        assert again["WORKS_FOR"]["times"] == "[from, to)"


def test_times_of_a_mapping_that_are_wrong(driver: tuple[str, Any], tmp_path: Path) -> None:
    place, server = driver
    with server.session() as session:
        session.run(_PEOPLE).consume()
    mapping = tmp_path / "mapping.toml"
    for times, message in (
        ("from", "is an interval, not 'from'"), ("[from, too]", "no property 'too'"), ("(from, to]", "whether the end is included"),
        ("[role, ]", "'role' is not a time"), ("[from, from)", "both from when"),
    ):  # fmt: skip
        mapping.write_text(f'[relationship.WORKS_FOR]\ntimes = "{times}"\n')
        with pytest.raises(OptionError, match=message):
            condgraph.open(place, mapping=mapping)
