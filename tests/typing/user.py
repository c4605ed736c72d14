"""What a user's type checker sees of the package. mypy reads this file with the package; where an
error that is expected does not come, the comment that expects it is an error.
"""

from __future__ import annotations

from typing import assert_type

import duckdb
import polars

import condgraph
from condgraph import Answer, AsyncGraph, Graph, LoadReport, Matches


def tables(answer: Answer) -> None:
    assert_type(answer.to_polars(), polars.DataFrame)
    assert_type(answer.to_duckdb(), duckdb.DuckDBPyRelation)
    assert_type((answer.cypher, answer.sparql, answer.sql), tuple[str | None, str | None, str | None])


def loading(graph: Graph) -> None:
    assert_type(graph.load("peaks.csv", key="mountain", refs=["country"], join={"country": "countries.country"}), LoadReport)
    graph.load("peaks.csv", kee="mountain")  # type: ignore[arg-type]
    graph.load("peaks.csv", key=3)  # type: ignore[arg-type]
    graph.load("peaks.csv", on_error="stop")  # type: ignore[arg-type]


async def awaiting(graph: AsyncGraph) -> None:
    assert_type(await graph.load("peaks.csv", key="mountain", wait=5.0), LoadReport)
    assert_type(await graph.kopl("FindAll() Count()", timeout=1.0, limit=3), Answer)
    assert_type(await graph.match([("UNKNOWN film 1", "directed by", "Clint Eastwood")], k=1), Matches)
    assert_type(await graph.explain("FindAll() Count()"), str)
    await graph.load("peaks.csv", kee="mountain")  # type: ignore[arg-type]
    await graph.kopl("FindAll() Count()", timout=1.0)  # type: ignore[call-arg]
    await graph.match([], k="3")  # type: ignore[arg-type]


async def opening() -> None:
    assert_type(condgraph.open("neo4j://localhost", user="neo4j", timeout=5.0), Graph)
    condgraph.open("neo4j://localhost", usr="neo4j")  # type: ignore[arg-type]
    await condgraph.open_async("neo4j://localhost", usr="neo4j")  # type: ignore[arg-type]
    async with await condgraph.open_async("memory:") as graph:
        assert_type(graph, AsyncGraph)
        assert_type((await graph.query("FindAll() Count()")).texts, list[str])
