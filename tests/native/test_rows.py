"""Rows that bind several variables, over databases that condgraph did not write: the answers are those of the same database in
process.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import neo4j
import pytest

from condgraph.cypher.connection import Connection
from condgraph.cypher.native import first_rows
from condgraph.engine import algebra as alg
from condgraph.engine.errors import CondgraphError
from condgraph.engine.lowered import Lowered
from condgraph.engine.store import Request
from condgraph.graph import Graph
from condgraph.languages.registry import lower as lower_program
from condgraph.remote_native import NativeGraph
from tests.matrix.test_cypher_language import outcome as asked
from tests.support.lanes import by_lane
from tests.support.native_databases import database, reading_data
from tests.support.native_rows import words_of
from tests.support.row_plans import Maker

pytestmark = pytest.mark.xdist_group("neo4j native")
#: In process relationships that are equal to another one are one statement.
_ONCE = (
    "MATCH (a)-[r]->(b) WITH a, b, type(r) AS t, properties(r) AS p, collect(r) AS rs WHERE size(rs) > 1 "
    "UNWIND rs[1..] AS r DELETE r"
)


@dataclass
class Both:
    """A database, and the same in process."""

    there: NativeGraph
    here: Graph
    driver: neo4j.Driver


@pytest.fixture(scope="module", params=[*reading_data("movies", nightly=("northwind",)), "social", "ledger", "awkward"])
def both(request: pytest.FixtureRequest, emptied_neo4j_uri: str) -> Iterator[Both]:
    with database(emptied_neo4j_uri, request.param) as driver, NativeGraph(Connection(emptied_neo4j_uri)) as graph:
        driver.execute_query(_ONCE)
        yield Both(graph, graph.snapshot(), driver)


def outcome(store: Any, plan: alg.Solutions) -> tuple[Any, ...]:
    """What a store answers, with its evidence; or the error."""
    made = Lowered(plan, [("", plan)])
    try:
        answer = store.answer(Request("", "cypher", {}, None, lambda *_: made))
        rows = [tuple(map(repr, row)) for row in answer.values]
        return answer.columns, rows, answer.cells, list(map(repr, answer.entities)), sorted(map(str, answer.evidence))
    except CondgraphError as error:
        return type(error).__name__, str(error)


def test_random_plans(both: Both) -> None:
    local, there = both.here._store_of(None), both.there.store
    for seed in range(by_lane(2, 40, 400)):
        maker = Maker(seed, words_of(local.snapshot, seed))
        plan = maker.rows(1) if seed % 4 else maker.plan()
        assert outcome(there, plan) == outcome(local, plan), (seed, plan)


#: Queries whose variables may be concepts, which are labels there and have no nodes.
CONCEPTS = (
    "SELECT DISTINCT ?c { ?x <pred:instance_of> ?c }",
    "SELECT ?c (COUNT(?x) AS ?n) { ?x <pred:instance_of> ?c } GROUP BY ?c",
    "SELECT DISTINCT ?n { { ?x <pred:instance_of> ?c } UNION { ?x <pred:name> ?m . ?x <pred:instance_of> ?c } ?c <pred:name> ?n }",
    "SELECT DISTINCT ?c ?d { ?x <pred:instance_of> ?c OPTIONAL { ?x <pred:instance_of> ?d FILTER(?c != ?d) } }",
)


@pytest.mark.parametrize("text", CONCEPTS)
def test_concepts_that_rows_bind(both: Both, text: str) -> None:
    options = {"language": "sparql", "base": "http://condgraph.example/"}
    there, local = (asked(graph, text, **options) for graph in (both.there, both.here))
    assert len(local) > 2
    assert there == local or there[0] == "UnsupportedError"


#: Queries that a database cuts where it likes, each without its LIMIT.
CUT = (
    "SELECT ?x ?y { ?x <KNOWS> ?y }",
    "SELECT ?n { ?x <KNOWS> ?y . ?y <pred:name> ?n }",
    "SELECT DISTINCT ?n { ?x <KNOWS> ?y . ?y <pred:name> ?n }",
    "SELECT ?x ?v { ?x <KNOWS> ?y . ?y <score>/<pred:value> ?v FILTER(?v > 30) }",
    "SELECT ?x ?v { ?x <KNOWS> ?y OPTIONAL { ?y <score>/<pred:value> ?v FILTER(?v > 50) } }",
    "SELECT ?x { ?x <KNOWS> ?y FILTER NOT EXISTS { ?y <KNOWS> ?x } }",
)


@pytest.mark.parametrize("both", ["social"], indirect=True)
@pytest.mark.parametrize("text", CUT)
def test_a_limit_without_an_order_on_a_large_database(both: Both, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """The rows are some of all rows, with evidence of these alone; where there are few they are those of the process."""
    there, every = both.there, both.here.query(text, language="sparql")
    monkeypatch.setattr(first_rows, "MAX_ROWS", 100)
    answer = there.query(f"{text} LIMIT 3 OFFSET 4", language="sparql")
    assert len(answer.values) == 3
    assert not Counter(map(repr, answer.values)) - Counter(map(repr, every.values))
    assert any("nothing orders them" in warning for warning in answer.warnings)
    assert answer.check()
    assert len(answer.evidence) < len(every.evidence)
    monkeypatch.setattr(first_rows, "MAX_ROWS", 3_000)
    few = f"{text} LIMIT 5"
    assert asked(there, few, language="sparql") == asked(both.here, few, language="sparql")


@pytest.mark.parametrize("both", ["social"], indirect=True)
def test_a_text_is_lowered_once(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also on a large database, whose rows may be cut there."""
    monkeypatch.setattr(first_rows, "MAX_ROWS", 100)
    made: list[str] = []

    def lower(schema: Any, program: Any, language: str, options: dict[str, Any]) -> Lowered:
        made.append(program)
        return lower_program(schema, program, language, options)

    for text in (CUT[0], f"{CUT[0]} LIMIT 3"):
        for _ in range(2):
            made.clear()
            both.there.store.answer(Request(text, "sparql", {}, None, lower))
        assert len(made) == 1, text
