"""Questions over tables as people have them, whose answers were worked out by hand: in process, and
as SPARQL in process.
"""

from __future__ import annotations

from typing import Any

import pytest

from condgraph.graph import Graph
from tests.support.differential import outcome
from tests.support.llm_tables import ASKED, GRAPHS, count, get, of, program


@pytest.fixture(scope="module", params=GRAPHS)
def asked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return GRAPHS[request.param](tmp_path_factory.mktemp("tables")), ASKED[request.param]


def test_answers_are_those_worked_out_by_hand(asked: tuple[Graph, Any]) -> None:
    graph, questions = asked
    wrong = []
    for queries, expected in questions:
        answer = graph.query(program(queries))
        if answer.texts != expected:
            wrong.append((queries, expected, answer.texts, answer.warnings))
    assert not wrong


def test_sparql_says_the_same(asked: tuple[Graph, Any]) -> None:
    graph, questions = asked
    for queries, _ in questions:
        text = program(queries)
        found = [outcome(graph, text, warnings=True, evidence=True, engine=engine) for engine in ("snapshot", "sparql")]
        assert found[0] == found[1], text


def test_an_empty_total_says_what_was_empty(asked: tuple[Graph, Any]) -> None:
    graph, _ = asked
    column = "likes" if graph.current.schema.has_relation("likes") else "city"
    nobody = "get_information(relation='amount', tail_entity>'1e9')" if column == "city" else get("rated", "='9'")
    source = next((one for one in graph.current.schema.sources if "orders" in one), "")
    if column == "likes":
        nothing = graph.query(program([nobody, count(1)]), on_unknown="empty")
        assert nothing.texts == ["0"]
        assert any(warning.startswith("what is counted is empty: Query1 returned nothing") for warning in nothing.warnings)
        return
    for last, what in ((count(1), "counted"), (count(2), "counted"), ("sum(set='output_of_query2')", "summed")):
        answer = graph.query(program([nobody, of(1, "item", source), last]))
        assert answer.texts == ["0"]
        assert any(warning.startswith(f"what is {what} is empty: Query1 returned nothing, Where(") for warning in answer.warnings)
    asks = graph.query(program([nobody, "is_empty(set='output_of_query1')"]))
    assert asks.texts == ["yes"]
    assert not any("is empty:" in warning for warning in asks.warnings)
    some = graph.query(program([get("amount", ">'6'"), count(1)]))
    assert some.texts == ["2"]
    assert not any("is empty:" in warning for warning in some.warnings)
