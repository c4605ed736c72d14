"""What the server makes of the queries: anchored at indexes, no scan of everything, no product of
more than a few rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import condgraph
from condgraph.cypher.compile.plan import Compiled, compile_plan, compile_sizes, compile_witness
from condgraph.engine.algebra import Node
from condgraph.languages.registry import request
from condgraph.remote_neo4j import Neo4jGraph
from tests.frontends.test_llm_query import EXPECTED, PEOPLE, get, program, work
from tests.matrix.conftest import Oracle
from tests.matrix.test_neo4j_programs import IN_TIME, ON_TABLES
from tests.support.lanes import by_lane

pytestmark = pytest.mark.xdist_group("neo4j")
#: Operators of a server's plan that look at more than they have to.
UNWANTED = {"CartesianProduct of many", "AllNodesScan", "NodeByLabelScan", "UnionNodeByLabelsScan", "IntersectionNodeByLabelsScan"}
#: Rows of a product that two index seeks by name may have: between two entities there is no better
#: way.
MAX_PRODUCT = 25


def profiled(graph: Neo4jGraph, compiled: Compiled) -> tuple[set[str], int]:
    """The operators of a query that was run, and how often it touched the store."""
    connection = graph.store.connection
    with connection.driver.session(database=connection.database, default_access_mode="READ") as session:
        result = session.run("PROFILE " + compiled.text, compiled.parameters)
        list(result)
        summary = result.consume()
    assert summary.profile is not None
    found, hits = set[str](), 0
    stack = [summary.profile]
    while stack:
        node = stack.pop()
        name = node["operatorType"].partition("@")[0]
        hits += node["args"].get("DbHits", 0)
        if name == "CartesianProduct" and node["args"].get("Rows", 0) > MAX_PRODUCT:
            name = "CartesianProduct of many"
        found.add(name)
        stack.extend(node.get("children", ()))
    return found, hits


def plan_of(graph: Neo4jGraph, text: Any, language: str, **options: Any) -> tuple[Node, list[Node]]:
    """The plan of a program, and the operators of its steps."""
    asked = graph.store._query(request(text, language, None, {"on_unknown": "error", **options}))
    return asked.lowered.plan, [node for _, node in asked.lowered.steps]


def check(graph: Neo4jGraph, compiled: Compiled, what: Any) -> int:
    operators, hits = profiled(graph, compiled)
    assert not operators & UNWANTED, (what, operators & UNWANTED, compiled.text)
    return hits


def test_plans_of_every_kind_of_kopl(oracle_pair: Oracle) -> None:
    assert len(oracle_pair.programs) == 9
    there = oracle_pair.there
    entities = there.status().counts["entities"]
    for kind, found in oracle_pair.programs.items():
        for text in found[:: len(found) // 3][:3]:
            plan, steps = plan_of(there, text, "kopl")
            hits = check(there, compile_plan(plan, there.name, there.store.schema), (kind, text))
            # Nothing looks at every statement of every entity.
            assert hits < 60 * entities, (kind, text, hits)
        check(there, compile_sizes(steps, there.name, there.store.schema), (kind, text))
        check(there, compile_witness(plan, there.name, there.store.schema), (kind, text))


@pytest.fixture(scope="module")
def tables(neo4j_uri: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Neo4jGraph]:
    """Two tables and facts, beside many rows that no program asks for."""
    folder = tmp_path_factory.mktemp("tables")
    (folder / "people.csv").write_text(PEOPLE, "utf-8")
    many = "".join(f"Player {number},Team {number % 7},{number}\n" for number in range(1000))
    (folder / "others.csv").write_text("Name,Team,Points\n" + many, "utf-8")
    local = condgraph.open()
    local.add(list(work()), source="work")
    local.load(folder / "people.csv")
    local.load(folder / "others.csv")
    remote = condgraph.open(neo4j_uri, graph="plans of tables")
    assert isinstance(remote, Neo4jGraph)
    remote.store.delete()
    remote.push(local)
    yield remote
    remote.store.delete()
    remote.close()


def test_plans_of_llm_queries(tables: Neo4jGraph) -> None:
    step = by_lane(6, 3, 3)
    asked = [(one, "people") for one in ON_TABLES[::step]] + [(one, "work") for one in IN_TIME[::step]]
    asked += [((get(**given),), "work") for _, given in list(EXPECTED.values())[::step]]
    for queries, source in asked:
        try:
            plan, _ = plan_of(tables, program(*queries), "llm_query", source=source)
        except condgraph.CondgraphError:
            continue
        check(tables, compile_plan(plan, tables.name, tables.store.schema), queries)


def test_a_question_about_one_table_does_not_touch_the_others(tables: Neo4jGraph) -> None:
    for queries in ON_TABLES[:30]:
        plan, _ = plan_of(tables, program(*queries), "llm_query", source="people")
        hits = check(tables, compile_plan(plan, tables.name, tables.store.schema), queries)
        assert hits < 1000, (queries, hits)


def test_texts_repeat(oracle_pair: Oracle) -> None:
    """Values and names of entities are parameters: programs that differ in these alone are planned
    once.
    """
    there = oracle_pair.there
    one, two = (
        compile_plan(plan_of(there, text, "kopl")[0], there.name, there.store.schema)
        for text in ("Find(LeBron James) QueryAttr(height)", "Find(Kobe \\u0060Bryant) QueryAttr(height)")
    )
    assert one.text == two.text
    assert one.parameters != two.parameters
