"""Tables asked as SQL of DuckDB, and as ours: the same rows, in the same order where one is asked
for.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from condgraph.graph import Graph
from tests.support import bazaar, library_and_league, sql_questions
from tests.support.lanes import by_lane
from tests.support.postgres import postgres
from tests.support.sql_questions import plain, same

pytest.importorskip("duckdb")


@pytest.fixture(scope="module")
def shop(data: Path) -> tuple[Graph, Any]:
    folder = data / "lpg_northwind" / "import"
    return sql_questions.northwind(folder), sql_questions.tables(folder)


@pytest.fixture(scope="module")
def ugly() -> tuple[Graph, Any]:
    return bazaar.bazaar(), bazaar.tables()


def compared(graph: Graph, tables: Any, sql: str, concept: str, clause: str, *, rdf: bool = False) -> None:
    program = f"FindAll() FilterConcept({concept})"
    answer = graph.query(program, table=clause)
    theirs = tables.execute(sql).fetchall()
    if rdf:
        there = graph.query(program, table=clause, engine="sparql")
        assert (there.values, there.cells) == (answer.values, answer.cells)
    ours = [tuple(map(plain, row)) for row in answer.values]
    assert same(answer.values, theirs, ordered="order by" in clause), (ours[:5], theirs[:5])


@pytest.mark.data
@pytest.mark.parametrize(("sql", "concept", "clause"), sql_questions.QUESTIONS[:: by_lane(4, 1, 1)])
def test_northwind(shop: tuple[Graph, Any], sql: str, concept: str, clause: str) -> None:
    compared(*shop, sql, concept, clause)


@pytest.mark.parametrize(("sql", "clause"), bazaar.QUESTIONS)
def test_an_ugly_data_set(ugly: tuple[Graph, Any], sql: str, clause: str) -> None:
    compared(*ugly, sql, "item", clause)


@pytest.fixture(scope="module")
def league(tmp_path_factory: pytest.TempPathFactory) -> tuple[Graph, Any]:
    pytest.importorskip("python_calamine")
    pytest.importorskip("openpyxl")
    path = tmp_path_factory.mktemp("league") / "league.xlsx"
    return library_and_league.league(path), library_and_league.league_tables()


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Graph, Any]]:
    with postgres(tmp_path_factory.mktemp("library")) as url:
        yield library_and_league.library(url), library_and_league.library_tables()


@pytest.mark.parametrize(("sql", "concept", "clause"), library_and_league.LEAGUE)
def test_a_workbook(league: tuple[Graph, Any], sql: str, concept: str, clause: str) -> None:
    compared(*league, sql, concept, clause, rdf=True)


@pytest.mark.service
@pytest.mark.parametrize(("sql", "concept", "clause"), library_and_league.LIBRARY)
def test_a_database(library: tuple[Graph, Any], sql: str, concept: str, clause: str) -> None:
    compared(*library, sql, concept, clause, rdf=True)


def test_every_answer_is_proved_by_its_evidence(ugly: tuple[Graph, Any]) -> None:
    graph, _ = ugly
    for _, clause in bazaar.QUESTIONS:
        answer = graph.query("FindAll() FilterConcept(item)", table=clause)
        assert answer.check(full=True), clause
