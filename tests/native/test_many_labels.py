"""A database of others with many labels, on both versions of Neo4j: names and ids of its nodes are
what they are in process, in answers, in what they rest on, and in steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import condgraph
from condgraph.cypher.connection import Connection
from condgraph.engine.errors import StoreError
from condgraph.engine.store import Request
from condgraph.graph import Graph
from condgraph.languages.registry import lower
from condgraph.remote_native import NativeGraph
from tests.support.differential import full_message
from tests.support.lanes import sample
from tests.support.native_databases import database
from tests.support.neo4j_servers import shared_server

pytestmark = [pytest.mark.xdist_group("neo4j native"), pytest.mark.service]
#: Labels with a name of their own, of two properties, of a key, of nothing; of several labels, none.
_SCRIPT = """
CREATE CONSTRAINT FOR (n:Ship) REQUIRE n.imo IS UNIQUE;
CREATE CONSTRAINT FOR (n:Berth) REQUIRE n.code IS UNIQUE;
CREATE CONSTRAINT FOR (n:Crane) REQUIRE n.serial IS UNIQUE;
CREATE INDEX FOR (n:Ship) ON (n.name);
UNWIND range(1, 30) AS i CREATE (:Ship {imo: 9000 + i, name: 'Ship "' + i + '"', size: i});
UNWIND range(1, 30) AS i CREATE (:Sailor {name: ['Ann', 'Bo', 'Cy'][i % 3], surname: 'Lee ' + ((i - 1) / 3), size: i});
UNWIND range(1, 30) AS i CREATE (:Berth {code: 'B' + i, size: i});
UNWIND range(1, 30) AS i CREATE (:Crane {serial: i, title: 'Crane ' + (i % 7), size: i});
UNWIND range(1, 30) AS i CREATE (:`Ware ``house` {name: 'shed\\n' + i, size: i});
UNWIND range(1, 5) AS i CREATE (:Note {size: i});
UNWIND range(1, 5) AS i CREATE ({name: 'stray ' + i, size: i});
CREATE (:Ship:Crane {imo: 1, serial: 77, name: 'Sea Lift', title: 'lift', size: 3});
CREATE (:Ship {imo: 2, name: 'stray 1', size: 1}), (:Ship {imo: 3, name: '', size: 1}),
  (:Sailor {name: 'Di', surname: 'Roe', size: 2});
MATCH (a:Ship), (b:Berth) WHERE a.size = b.size CREATE (a)-[:MOORS {at: a.size}]->(b);
MATCH (a:Sailor), (b:Ship) WHERE a.size % 5 = b.size % 5 CREATE (a)-[:SERVES]->(b);
MATCH (a:Crane), (b:`Ware ``house`) WHERE a.size = b.size CREATE (a)-[:STANDS_BY]->(b);
MATCH (a {name: 'stray 2'}), (b:Note) CREATE (a)-[:HAS]->(b);
MATCH (b:Ship) WHERE b.size > 28 CREATE (:Note {size: 9})-[:HAS]->({name: 'Ship', size: 9})-[:SERVES]->(b)
"""
_PROGRAMS = [
    r'Find("Ship \"7\"") Relate(MOORS, forward) QueryName()',
    "Find(Bo Lee 1) Relate(SERVES, forward) FilterConcept(Ship) QueryName()",
    "Find(Di Roe) Relate(SERVES, forward) Count()",
    "Find(Berth B4) Relate(MOORS, backward) QueryName()",
    "Find(Crane 3) Relate(STANDS_BY, forward) QueryName()",
    "Find(lift) QueryAttr(size)",
    "Find(stray 1) QueryAttr(size)",
    "Find(stray 2) Relate(HAS, forward) QueryName()",
    "FindAll() FilterNum(size, 3, =) QueryName()",
    "FindAll() FilterNum(size, 3, =) FilterConcept(Crane) QueryName()",
    "Find(Bo Lee 1) Find(Cy Lee 4) SelectBetween(size, greater)",
    "FindAll() FilterConcept(Ship) SelectAmong(size, largest)",
    r'Find("Ship \"7\"") Find(Berth B7) QueryRelation()',
    r'Find("Ship \"7\"") Find(Berth B7) QueryRelationQualifier(MOORS, at)',
    "Find(Berth B7) Relate(MOORS, backward) Find(Di Roe) Relate(SERVES, forward) And() QueryName()",
    "FindAll() FilterConcept(Berth) Find(Berth B4) Or() Count()",
    """Query1: "get_information(relation='MOORS', tail_entity=['Berth B4', 'Berth B5'])\"""",
    """Query1: "get_information(relation='SERVES', head_entity='Di Roe')"
       Query2: "get_information(relation='MOORS', head_entity='output_of_query1')\"""",
]
_WRONG = ["Find(Nobody at all) QueryName()", "Find(Ann) QueryName()", "Find(Ship) Relate(MOORS, sideways) QueryName()"]


@pytest.fixture(scope="module", params=["lts", pytest.param("current", marks=pytest.mark.slow)])
def pair(request: pytest.FixtureRequest) -> Iterator[tuple[Graph, NativeGraph]]:
    """On each version that is supported: their planners do not take the same queries."""
    from neo4j_server import CURRENT, LTS

    uri = shared_server(LTS if request.param == "lts" else CURRENT, "emptied")["uri"]
    with database(uri) as driver:
        with driver.session() as session:
            for statement in filter(str.strip, _SCRIPT.split(";\n")):
                session.run(statement).consume()
            session.run("CALL db.awaitIndexes(60)").consume()
        with NativeGraph(Connection(uri)) as there:
            yield there.snapshot(), there


def _told(graph: Graph, program: Any) -> tuple[list[str], list[str], list[str], list[Any]]:
    """Texts, entities, evidence and steps of an answer, whose evidence gives it."""
    answer = graph.query(program)
    checked = answer.check()
    assert checked, (program, str(checked))
    evidence = sorted(str(one) for one in answer.evidence)
    steps = [(step.size, sorted(step.sample) if step.size is not None and step.size <= 3 else None) for step in answer.trace]
    return sorted(answer.texts), sorted(one.name for one in answer.entities), evidence, steps


@pytest.mark.parametrize("program", sample(_PROGRAMS, 2))
def test_what_is_said_there_is_what_is_said_here(pair: tuple[Graph, NativeGraph], program: str) -> None:
    here, there = pair
    expected = _told(here, program)
    assert expected[0]
    assert expected[2]
    assert _told(there, program) == expected


@pytest.mark.parametrize("program", _WRONG)
def test_errors_are_the_same(pair: tuple[Graph, NativeGraph], program: str) -> None:
    said = []
    for graph in pair:
        with pytest.raises(condgraph.CondgraphError) as caught:
            graph.query(program)
        said.append(full_message(caught.value))
    assert said[0] == said[1]


def test_a_node_that_is_called_as_a_label(pair: tuple[Graph, NativeGraph]) -> None:
    """One operator finds the entities and names the concept."""
    here, there = (graph.kopl("Find(Ship) Relate(SERVES, forward) FilterConcept(Ship) QueryName()") for graph in pair)
    assert there.texts == here.texts == ['Ship "29"', 'Ship "30"']
    assert sorted(map(str, there.evidence)) == sorted(map(str, here.evidence))
    assert len(there.evidence) == 4
    assert there.check(), str(there.check())


def test_every_node_is_found_by_its_name_and_its_id(pair: tuple[Graph, NativeGraph]) -> None:
    here, there = pair
    names = set(here.kopl("FindAll() QueryName()").texts)
    assert names == set(there.kopl("FindAll() QueryName()").texts)
    assert len(names) > 130
    for name in sorted(names)[::9]:
        program = [{"function": "Find", "inputs": [name]}, {"function": "QueryAttr", "inputs": ["size"]}]
        assert _told(there, program) == _told(here, program), name


def test_a_node_that_goes_meanwhile_is_an_error(pair: tuple[Graph, NativeGraph], monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the rows of what an answer rests on and what there is to say of their nodes."""
    _, there = pair
    store = there.store
    plan = store._query(Request(_PROGRAMS[0], "kopl", {}, None, lower)).lowered.plan
    rows = store.connection.rows

    def with_another(text: str, parameters: Any) -> list[Any]:
        return [*rows(text, parameters), *([{"unit": 9, "row": {"e": {"node": "4:gone:1"}}}] if " AS unit" in text else [])]

    monkeypatch.setattr(store.connection, "rows", with_another)
    with pytest.raises(StoreError, match="changed while it was read"):
        store.witness(plan)
