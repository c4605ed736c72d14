"""Questions over Movies that two language models answered alike, in Cypher each of its own: programs
of ours give the agreed answers, in process and on a Neo4j that condgraph did not write. The models'
Cypher itself is answered in a folder as on that Neo4j.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import neo4j
import pytest

import condgraph
from condgraph import Entity
from condgraph.cypher.connection import Connection
from condgraph.graph import Graph
from condgraph.remote_native import NativeGraph
from tests.support.asked_movies import Question, agreed, difference, questions
from tests.support.lanes import by_lane
from tests.support.movies import movies
from tests.support.native_databases import content, database
from tests.support.random_cypher import common

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


# -- Cypher of the models ------------------------------------------------------------------------------

_LIMIT = re.compile(r"\bLIMIT\s+\d+", re.IGNORECASE)
_ORDER = re.compile(r"\bORDER\s+BY\s+(.*?)(?:\bLIMIT\b|\bRETURN\b|\Z)", re.IGNORECASE | re.DOTALL)

Rows = list[tuple[Any, ...]]


def plain(value: Any) -> Any:
    """A value of either engine: nodes by name or title, lists without order, a list of one value as the value."""
    if isinstance(value, neo4j.graph.Node):
        return ("node", value.get("title") or value["name"])
    if isinstance(value, Entity):
        return ("node", value.name)
    if isinstance(value, list | tuple):
        inner = sorted(map(plain, value), key=repr)
        return inner[0] if len(inner) == 1 else ("list", *inner)
    return common(value)


class Engines:
    """The same query asked of a folder and of Neo4j: columns, and rows of plain values."""

    def __init__(self, graph: Graph, session: neo4j.Session) -> None:
        self.graph, self.session = graph, session

    def here(self, text: str) -> tuple[list[str], Rows]:
        answer = self.graph.cypher(text, on_unknown="empty")
        rows = [row if isinstance(row, tuple) else (row,) for row in answer.values]
        return list(answer.columns), [tuple(map(plain, row)) for row in rows]

    def there(self, text: str) -> tuple[list[str], Rows]:
        result = self.session.run(text)
        return list(result.keys()), [tuple(map(plain, row)) for row in result.values()]

    def difference(self, text: str) -> str:
        """What differs; empty where nothing does. Rows that tie at a LIMIT may be others of all rows, with the same values of
        the columns that sort them.
        """
        columns, rows = self.here(text)
        their_columns, their_rows = self.there(text)
        if columns != their_columns:
            return f"{text}: columns {columns}, and on Neo4j {their_columns}"
        order = _ORDER.findall(text)
        sorting = (
            [re.sub(r"\s+(?:ASC|DESC)\s*$", "", key.strip(), flags=re.IGNORECASE) for key in order[-1].split(",")] if order else []
        )
        keys = [columns.index(key) for key in sorting if key in columns]
        if [[row[at] for at in keys] for row in rows] != [[row[at] for at in keys] for row in their_rows]:
            return f"{text}: rows are in another order than on Neo4j"
        if Counter(rows) != Counter(their_rows) and _LIMIT.search(text):
            whole = _LIMIT.sub("", text)
            every = Counter(self.there(whole)[1])
            tied = len(rows) == len(their_rows) and not Counter(rows) - every
            if tied or not _LIMIT.search(text.rpartition("RETURN")[2]):
                rows, their_rows = self.here(whole)[1], list(every.elements())
        ours, theirs = Counter(rows), Counter(their_rows)
        return "" if ours == theirs else f"{text}: {list(ours - theirs)[:3]}, and on Neo4j {list(theirs - ours)[:3]}"


@pytest.fixture(scope="module")
def engines(emptied_neo4j_uri: str, there: NativeGraph, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engines]:
    """A folder with what the database has, next to the database."""
    folder = tmp_path_factory.mktemp("movies")
    there.snapshot().export(folder / "movies.jsonl")
    with (
        condgraph.open(folder / "world") as graph,
        neo4j.GraphDatabase.driver(emptied_neo4j_uri) as driver,
        driver.session(default_access_mode="READ") as session,
    ):
        graph.load(folder / "movies.jsonl")
        yield Engines(graph, session)


@pytest.mark.reads_data
@pytest.mark.xdist_group("neo4j native")
def test_cypher_of_the_models_is_answered_as_on_neo4j(engines: Engines, data: Path) -> None:
    with (data / "text2cypher_movies" / "questions.jsonl").open(encoding="utf-8") as lines:
        recorded = [record[model] for record in map(json.loads, lines) for model in ("opus", "gpt4")]
    assert len(recorded) == 344
    wrong = [found for text in recorded[:: by_lane(8, 1, 1)] if (found := engines.difference(text))]
    assert not wrong, "\n".join([f"{len(wrong)} differ", *wrong])


@pytest.mark.reads_data
@pytest.mark.xdist_group("neo4j native")
def test_the_comparison_reports_other_rows(engines: Engines, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "MATCH (p:Person) WHERE p.born < 1950 RETURN p.name, p.born ORDER BY p.born LIMIT 5"
    assert not engines.difference(text)
    columns, rows = engines.here(text)
    for other in (rows[1:], rows[::-1], [("nobody", born) for _, born in rows], []):
        monkeypatch.setattr(engines, "here", lambda _, other=other: (columns, other))
        assert engines.difference(text)
