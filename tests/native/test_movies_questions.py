"""Questions over Movies that two language models answered alike, in Cypher each of its own: programs
of ours give the agreed answers, in process and on a Neo4j that condgraph did not write.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from condgraph.cypher.connection import Connection
from condgraph.graph import Graph
from condgraph.remote_native import NativeGraph
from tests.support.asked_movies import Question, agreed, difference, questions
from tests.support.lanes import by_lane
from tests.support.movies import movies
from tests.support.native_databases import content, database

QUESTIONS = questions()


@pytest.fixture(scope="module")
def records(data: Path) -> dict[str, dict[str, Any]]:
    """The agreed answers, by question."""
    return agreed(data)


@pytest.fixture(scope="module")
def here(data: Path) -> Graph:
    return movies(data)


@pytest.fixture(scope="module")
def there(emptied_neo4j_uri: str, data: Path) -> Iterator[NativeGraph]:
    """The database by its own script, asked where it is; it is left as it was."""
    with database(emptied_neo4j_uri, "movies") as driver, NativeGraph(Connection(emptied_neo4j_uri)) as graph:
        before = content(driver)
        yield graph
        assert content(driver) == before


def wrong(graph: Graph, asked: list[Question], records: dict[str, dict[str, Any]]) -> list[str]:
    """The questions that a graph answers otherwise."""
    return [found for one in asked if (found := difference(one, records[one.text], one.rows(graph)))]


def test_each_question_has_a_program(records: dict[str, dict[str, Any]]) -> None:
    assert sorted(one.text for one in QUESTIONS) == sorted(records)
    assert len(QUESTIONS) == 68


def test_in_process(here: Graph, records: dict[str, dict[str, Any]]) -> None:
    assert not wrong(here, QUESTIONS, records)


def test_a_wrong_program_is_told(here: Graph, records: dict[str, dict[str, Any]]) -> None:
    """The comparison tells other rows, rows too many and too few."""
    (directed,) = [one for one in QUESTIONS if one.text == "Who has directed more than one movie?"]
    rows = directed.rows(here)
    for other in (rows[1:], rows * 2, [(name, count + 1) for name, count in rows], []):
        assert difference(directed, records[directed.text], other)


@pytest.mark.reads_data
@pytest.mark.xdist_group("neo4j native")
def test_on_neo4j(there: NativeGraph, records: dict[str, dict[str, Any]]) -> None:
    assert not wrong(there, QUESTIONS[:: by_lane(8, 6, 1)], records)


@pytest.mark.reads_data
@pytest.mark.xdist_group("neo4j native")
def test_pulled_from_neo4j(there: NativeGraph, here: Graph, records: dict[str, dict[str, Any]]) -> None:
    """What is pulled is what the script says."""
    pulled = there.snapshot()
    assert not wrong(pulled, QUESTIONS, records)
    for kind in ("entities", "relations", "attributes", "qualifiers", "memberships"):
        assert pulled.status().counts[kind] == here.status().counts[kind], kind
