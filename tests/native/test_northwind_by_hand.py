"""Programs of every language over Northwind, and Cypher for the same questions that was written by
hand: their rows are the same, on the database itself and on what is pulled of it.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import neo4j
import pytest

from condgraph.cypher.connection import Connection
from condgraph.graph import Graph
from condgraph.remote_native import NativeGraph
from tests.support.lanes import by_lane
from tests.support.native_databases import content, database
from tests.support.plain_rows import rows_of

pytestmark = [pytest.mark.xdist_group("neo4j native"), pytest.mark.reads_data]
QUESTIONS: list[dict[str, str]] = tomllib.loads(Path(__file__).with_name("northwind_by_hand.toml").read_text("utf-8"))["question"]


@dataclass(frozen=True)
class Northwind:
    """The database asked where it is, what is pulled of it, and its driver."""

    there: NativeGraph
    here: Graph
    driver: neo4j.Driver

    def cypher(self, text: str) -> Counter[tuple[Any, ...]]:
        """The rows of Cypher."""
        with self.driver.session(default_access_mode="READ") as session:
            return Counter(rounded(tuple(row.values())) for row in session.run(text))


@pytest.fixture(scope="module")
def northwind(emptied_neo4j_uri: str, data: Path) -> Iterator[Northwind]:
    with database(emptied_neo4j_uri, "northwind") as driver, NativeGraph(Connection(emptied_neo4j_uri)) as there:
        before = content(driver)
        yield Northwind(there, there.snapshot(), driver)
        assert content(driver) == before


def rounded(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """A row whose numbers are compared but for what adding them up in another order changes."""
    return tuple(round(float(cell), 6) if isinstance(cell, int | float) and not isinstance(cell, bool) else cell for cell in row)


def wrong(graph: Graph, northwind: Northwind, asked: list[dict[str, str]]) -> dict[str, Any]:
    """The questions to which a graph gives other rows than Cypher; each has some."""
    found = {}
    for one in asked:
        expected = northwind.cypher(one["cypher"])
        table = {"table": one["table"]} if "table" in one else {}
        rows = Counter(map(rounded, rows_of(graph.query(one["program"], **table))))
        if rows != expected or not expected:
            found[" ".join([one["program"], *table.values()])] = rows - expected, expected - rows
    return found


def test_there_are_enough() -> None:
    assert len(QUESTIONS) == len({(one["program"], one.get("table")) for one in QUESTIONS}) == 66


def test_what_is_pulled(northwind: Northwind) -> None:
    assert not wrong(northwind.here, northwind, QUESTIONS[:: by_lane(2, 1, 1)])


def test_the_database_itself(northwind: Northwind) -> None:
    assert not wrong(northwind.there, northwind, QUESTIONS[:: by_lane(12, 8, 1)])
