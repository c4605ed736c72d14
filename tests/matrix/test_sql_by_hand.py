"""Random programs over an ugly shop that PostgreSQL and DuckDB have, next to the SQL that somebody writes by hand for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import condgraph
from condgraph.engine.errors import CondgraphError
from tests.support.lanes import by_lane
from tests.support.postgres import postgres
from tests.support.sql_by_hand import Maker, Table, answered, expected, shop, statements, texts_of

_RELATION = '[tables."likes;--"]\nrelation = "likes;--"\n'


def _different(address: str, tables: list[Table], ask: Callable[[str], list[Any]], folder: Path, on_postgres: bool) -> list[Any]:
    """The programs that answer otherwise than their SQL, or whose evidence does not give the answer."""
    (folder / "condgraph.toml").write_text(_RELATION)
    texts, different = texts_of(tables, on_postgres, ask), []
    with condgraph.open(address, mapping=folder / "condgraph.toml") as graph:
        for seed in range(by_lane(150, 2_000, 20_000)):
            program = Maker(tables, on_postgres, seed, texts).program()
            want = expected(ask(program.sql), program.sort)
            try:
                answer = graph.kopl(program.text)
                if answered(answer, program.sort) != want:
                    different.append((program, answer.texts, want))
                elif seed % 10 == 0 and not answer.check():
                    different.append((program, str(answer.check())))
            except CondgraphError as error:
                different.append((program, str(error)))
        assert graph.snapshot().current.counts["entities"] > 0
        assert "types" in str(graph.schema())
    return different


@pytest.mark.xdist_group("postgres")
@pytest.mark.service
def test_postgres(tmp_path: Path) -> None:
    psycopg = pytest.importorskip("psycopg")
    tables = shop(postgres=True)
    with postgres(tmp_path) as url, psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for statement in statements(tables, postgres=True):
            connection.execute(statement.encode())
        # What the role is set to is not how numbers are read.
        connection.execute("ALTER ROLE test SET extra_float_digits = 0")

        def ask(query: str) -> list[Any]:
            rows: list[Any] = connection.execute(query.encode()).fetchall()
            return rows

        assert _different(url, tables, ask, tmp_path, on_postgres=True) == []


@pytest.fixture
def duck(tmp_path: Path) -> Iterator[tuple[list[Table], Callable[[str], list[Any]]]]:
    tables, place = shop(postgres=False), str(tmp_path / "shop.duckdb")
    with duckdb.connect(place) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for statement in statements(tables, postgres=False):
            connection.execute(statement)
    with duckdb.connect(place, read_only=True) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        yield tables, lambda query: connection.execute(query).fetchall()


def test_duckdb(duck: tuple[list[Table], Callable[[str], list[Any]]], tmp_path: Path) -> None:
    assert _different(f"duckdb:///{tmp_path}/shop.duckdb", *duck, tmp_path, on_postgres=False) == []
