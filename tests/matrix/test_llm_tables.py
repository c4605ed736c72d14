"""Questions over joined, untidy tables and over relations: servers give the answers worked out by
hand, with the same warnings.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import condgraph
from condgraph import FunctionCall
from condgraph.graph import Graph
from tests.support.differential import outcome
from tests.support.llm_tables import ASKED, GRAPHS, get, program
from tests.support.stores import asked_of


@pytest.fixture(params=GRAPHS, scope="module")
def pair(request: pytest.FixtureRequest, opener: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Graph, Any, str]]:
    here = GRAPHS[request.param](tmp_path_factory.mktemp("tables"))
    there = opener(f"llm tables {request.param}")
    there.store.delete()
    there.push(here)
    yield here, there, request.param
    there.store.delete()
    there.close()


def test_servers_give_the_answers_worked_out_by_hand(pair: tuple[Graph, Any, str]) -> None:
    here, there, kind = pair
    # What is left out of a comparison is told by an RDF store from its schema, without numbers.
    counts = not hasattr(there.store, "endpoint")
    wrong = []
    for queries, expected in asked_of(there, ASKED[kind], 4):
        text = program(queries)
        found, given = (outcome(graph, text, evidence=True) for graph in (here, there))
        if found != given or list(given.texts) != expected:
            wrong.append((queries, expected, str(found), str(given)))
        mine, theirs = (warnings_of(graph, text, counts) for graph in (here, there))
        if mine != theirs:
            wrong.append((queries, mine, theirs))
    assert not wrong


def warnings_of(graph: Graph, text: str, counts: bool) -> list[str]:
    warnings = sorted(graph.query(text).warnings)
    return warnings if counts else [warning for warning in warnings if not warning.endswith(" left out")]


def test_a_literal_of_another_unit_is_the_same_error(pair: tuple[Graph, Any, str]) -> None:
    here, there, kind = pair
    if kind != "plain":
        pytest.skip("asked of the plain tables")
    for literal in ("€2M", "2 kg", "50%"):
        found = [outcome(graph, program([get("budget", f">'{literal}'")])) for graph in (here, there)]
        assert found[0] == found[1]
        assert "do not compare" in found[0].error


def test_functions_from_outside_see_the_same_rows(pair: tuple[Graph, Any, str]) -> None:
    here, there, kind = pair
    query = program([get("likes", "='X'") if kind == "likes" else get("city", "='Oslo'"), "guess(set='output_of_query1')"])
    seen: list[Any] = []

    def hook(call: FunctionCall) -> list[str]:
        rows = sorted(call.rows, key=lambda row: row.id)
        seen.append((call.question, call.step, sorted(call.texts[0]), rows))
        return [str(len(rows))]

    answers = [graph.query(query, llm_function=hook, question="which?") for graph in (here, there)]
    assert [answer.texts for answer in answers] == [["3"] if kind == "likes" else ["2"]] * 2
    assert sorted(map(str, answers[0].evidence)) == sorted(map(str, answers[1].evidence))
    assert any("with all columns" in warning for warning in answers[1].warnings)
    assert len(seen) == 2
    assert seen[0] == seen[1]


def test_sums_of_dates_and_of_decimals_with_commas(opener: Any) -> None:
    """What stands in texts is summed up on servers as in process: years of dates, and no half of a
    number.
    """
    here = condgraph.open()
    here.load(
        [
            {"id": at, "since": since, "first": first, "price": price}
            for at, (since, first, price) in enumerate(
                [
                    ("2019-03-01", "3/4/2019", "12,5 each"),
                    ("5 May 2021", "5/6/2021", "3,25 each"),
                    ("12 June 2020", "7/8/2020", "7 each"),
                    ("2018-01-09", "2/1/2018", "about 5"),
                ]
            )
        ],
        name="staff",
        key="id",
    )
    there = opener("llm tables sums")
    there.store.delete()
    there.push(here)
    try:
        for relation in ("since", "first", "price"):
            for function in ("sum", "mean", "median", "min", "max"):
                text = program([get(relation), f"{function}(set='output_of_query1')"])
                mine, theirs = here.query(text), there.query(text)
                assert (mine.texts, mine.warnings) == (theirs.texts, theirs.warnings), (relation, function)
                clause = f"show {function}({relation})"
                mine, theirs = here.query("FindAll()", table=clause), there.query("FindAll()", table=clause)
                assert (mine.cells, mine.warnings) == (theirs.cells, theirs.warnings), clause
    finally:
        there.store.delete()
        there.close()
