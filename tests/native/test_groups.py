"""Tables over an existing database that the server groups: the groups come back, and no statements; they
are those of a snapshot in process.
"""

from __future__ import annotations

from collections.abc import Iterator

import neo4j
import pytest

from condgraph.cypher.answer import Neo4jAnswer
from condgraph.cypher.connection import Connection
from condgraph.graph import Graph
from condgraph.remote_native import NativeGraph
from tests.support.native_databases import database

pytestmark = pytest.mark.xdist_group("neo4j native")

_LOAD = (
    "UNWIND range(1, 30) AS i CREATE (:Shop {name: 's' + i, town: ['Ulm', 'Bonn', null][i % 3], size: i % 7, rent: i / 4.0, "
    "open: i % 2 = 0, since: date('2020-01-01') + duration({days: i % 5}), big: 9223372036854775807 - i % 2, code: toString(i), "
    "tags: ['a', 'b', 'a'][..i % 4]})",
    "UNWIND range(1, 20) AS i MATCH (s:Shop {name: 's' + (1 + i % 10)}) "
    "CREATE (:Person {name: 'p' + i, age: 20 + i % 5})-[:WORKS_AT {hours: i % 8, role: ['a', 'b'][i % 2]}]->(s)",
    "MATCH (p:Person), (q:Person) WHERE p.age = q.age AND p.name < q.name CREATE (p)-[:KNOWS]->(q)",
    "CREATE (:Town {name: 'Ulm', size: 3, town: 'x'})",
)
_SHOPS, _PEOPLE = "FindAll() FilterConcept(Shop)", "FindAll() FilterConcept(Person)"
#: Programs and tables that the server groups, and such as the client has to.
_GROUPED = (
    (_SHOPS, "group by town show count(), count(distinct size), max(since)"),
    (_SHOPS, "group by town, open show sum(rent), mean(size), min(since) order by sum(rent) descending limit 3"),
    (_SHOPS, "show count(), sum(big), mean(big), max(rent)"),
    (_SHOPS, "where size > 2 and not (town = 'Ulm' or town is missing) group by since show count() as n having n > 0"),
    (_SHOPS, "where since > 2020-01-02 and open = 'true' show count(), sum(size)"),
    (_SHOPS, "where size > 1000 show count(), sum(size), mean(size)"),
    ("FindAll()", "group by town show count()"),
    (_PEOPLE, "group by WORKS_AT show count(), sum(age)"),
    (_PEOPLE, "group by WORKS_AT.town, KNOWS.age show count(), mean(age)"),
    (_PEOPLE, "group by age show count(KNOWS), sum(KNOWS.age), max(WORKS_AT.size)"),
    ("Find(s2) Relate(WORKS_AT, backward) QFilterNum(hours, 0, >)", "group by @role show sum(@hours), count()"),
    ("Find(s30) Relate(WORKS_AT, backward)", "group by age show count()"),
)
_FETCHED = (
    (_SHOPS, "group by tags show count()"),
    (_SHOPS, "group by code show sum(code)"),
    (_PEOPLE, "group by WORKS_AT show count(), sum(WORKS_AT.size)"),
    (_SHOPS, "show min(town), median(size)"),
)


@pytest.fixture(scope="module")
def shops(emptied_neo4j_uri: str) -> Iterator[tuple[NativeGraph, Graph]]:
    with database(emptied_neo4j_uri) as driver:
        with driver.session() as session:
            for text in _LOAD:
                session.run(text).consume()
        with NativeGraph(Connection(emptied_neo4j_uri)) as graph:
            yield graph, graph.snapshot()


@pytest.mark.parametrize(("program", "table"), [*_GROUPED, *_FETCHED])
def test_groups_are_those_of_a_snapshot(shops: tuple[NativeGraph, Graph], program: str, table: str) -> None:
    graph, local = shops
    answer, expected = graph.query(program, table=table), local.query(program, table=table)
    assert isinstance(answer, Neo4jAnswer)
    assert (answer._compiled.shape == "groups") == ((program, table) in _GROUPED)
    assert (answer.values, answer.cells, answer.columns) == (expected.values, expected.cells, expected.columns)
    assert sorted(answer.warnings) == sorted(expected.warnings)


def test_grouped_answers_have_their_trace_and_evidence(shops: tuple[NativeGraph, Graph]) -> None:
    answers = [one.query(_SHOPS, table="group by town show count() as n having n > 5 order by n limit 1") for one in shops]
    assert [step.size for step in answers[0].trace] == [step.size for step in answers[1].trace]
    assert len(answers[0].evidence) == len(answers[1].evidence)
    assert answers[0].check().ok


def test_a_value_of_a_type_that_has_come_since_is_grouped_by_the_client(
    shops: tuple[NativeGraph, Graph], emptied_neo4j_uri: str
) -> None:
    graph, _ = shops
    table = "group by open show count(), sum(size)"
    assert graph.query(_SHOPS, table=table).warnings == []
    with neo4j.GraphDatabase.driver(emptied_neo4j_uri) as driver, driver.session() as session:
        # It changes no count, so that the database is not looked at again.
        session.run("MATCH (s:Shop {name: 's4'}) SET s.size = 'four'").consume()
        answer = graph.query(_SHOPS, table=table)
        assert answer.texts == ["false | 15 | 43", "true | 15 | 40"]
        assert answer.warnings == ["sum(size): 1 of 30 values is not a number, and is left out"]
        session.run("MATCH (s:Shop {name: 's4'}) SET s.size = 4").consume()
