"""Tables on stores: one query each, with the rows, warnings and evidence that they have in process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from condgraph.graph import Graph
from tests.engine.test_groups import DIGITS, long_numbers
from tests.support import bazaar, column_names, keyed_shop, library_and_league, sql_questions
from tests.support.differential import outcome
from tests.support.lanes import by_lane
from tests.support.postgres import postgres
from tests.support.stores import asked_of

GRAPHS: dict[str, Callable[[Any], Graph]] = {
    "bazaar": lambda request: bazaar.bazaar(),
    "northwind": lambda request: sql_questions.northwind(request.getfixturevalue("data") / "lpg_northwind" / "import"),
    "league": lambda request: request.getfixturevalue("league"),
    "library": lambda request: request.getfixturevalue("library"),
}
ASKED = {
    "bazaar": [("item", clause) for _, clause in bazaar.QUESTIONS],
    "northwind": [(concept, clause) for _, concept, clause in sql_questions.QUESTIONS],
    "league": [(concept, clause) for _, concept, clause in library_and_league.LEAGUE],
    "library": [(concept, clause) for _, concept, clause in library_and_league.LIBRARY],
}
#: The part of the questions that is asked where all samples are.
SAMPLED = {"bazaar": 2, "northwind": 12, "league": 4, "library": 4}


@pytest.fixture(scope="module")
def league(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    pytest.importorskip("python_calamine")
    return library_and_league.league(tmp_path_factory.mktemp("league") / "league.xlsx")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    with postgres(tmp_path_factory.mktemp("library")) as url:
        return library_and_league.library(url)


@pytest.fixture(params=["bazaar", pytest.param("northwind", marks=pytest.mark.data), "league", "library"], scope="module")
def pair(request: pytest.FixtureRequest, opener: Any) -> Iterator[tuple[Graph, Any, str]]:
    here = GRAPHS[request.param](request)
    there = opener(f"tables of {request.param}")
    there.store.delete()
    there.push(here)
    yield here, there, request.param
    there.store.delete()
    there.close()


def test_sums_keep_their_digits(opener: Any) -> None:
    with opener("digits") as there:
        there.store.delete()
        there.push(long_numbers())
        for clause, rows in DIGITS.items():
            assert there.query("FindAll()", table=clause).cells == rows, clause
        there.store.delete()


def test_the_same_tables(pair: tuple[Graph, Any, str]) -> None:
    here, there, kind = pair
    counts = not hasattr(there.store, "endpoint")
    wrong = []
    for concept, clause in ASKED[kind][:: by_lane(12, SAMPLED[kind], 1)]:
        program = f"FindAll() FilterConcept({concept})"
        found = [outcome(graph, program, table=clause, warnings=counts, evidence=kind == "bazaar") for graph in (here, there)]
        if found[0] != found[1]:
            wrong.append((clause, str(found[0]), str(found[1])))
    assert not wrong


def test_keys_of_referenced_tables(opener: Any, tmp_path: Path) -> None:
    here = keyed_shop.shop(tmp_path / "shop")
    nothing = [("", "orders", "where customerID = 'ALFKX' show orderID"), ("", "orders", "where customerID = 7 show orderID")]
    with opener("keys in tests") as there:
        there.store.delete()
        there.push(here)
        counts = not hasattr(there.store, "endpoint")
        for _, concept, clause in asked_of(there, [*keyed_shop.QUESTIONS, *nothing], 2):
            program = f"FindAll() FilterConcept({concept})"
            found = [outcome(graph, program, table=clause, warnings=counts) for graph in (here, there)]
            assert found[0] == found[1], clause
        for _, condition in asked_of(there, keyed_shop.QUERIES, 2):
            found = [outcome(graph, keyed_shop.query(condition), warnings=counts) for graph in (here, there)]
            assert found[0] == found[1], condition
        there.store.delete()


def test_columns_are_those_of_the_rows(opener: Any) -> None:
    here = column_names.crowd()
    with opener("columns of rows") as there:
        there.store.delete()
        there.push(here)
        counts = not hasattr(there.store, "endpoint")
        for program, clause, *_ in asked_of(there, [*column_names.QUESTIONS, *column_names.UNSURE], 2):
            found = [outcome(graph, program, table=clause, warnings=counts, evidence=True) for graph in (here, there)]
            assert found[0] == found[1], (program, clause)
        there.store.delete()


def test_a_program_is_one_query(pair: tuple[Graph, Any, str]) -> None:
    _, there, kind = pair
    concept, clause = ASKED[kind][0]
    asked: list[str] = []
    store = there.store
    name = "run" if hasattr(store, "run") else "select"
    real = getattr(store, name)
    store.__dict__[name] = lambda *given, **options: asked.append(str(given[0])) or real(*given, **options)
    try:
        answer = there.query(f"FindAll() FilterConcept({concept})", table=clause)
        assert answer.values
    finally:
        del store.__dict__[name]
    assert len(asked) == 1
    assert answer.check(full=True)
    assert answer.evidence_of(0)
