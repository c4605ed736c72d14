"""Random programs over random graphs: what the snapshot says, Neo4j says, or the same error. Examples are the same each time.

A graph is pushed once and asked many programs, so that the server is not the most of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import condgraph
from condgraph.remote_neo4j import Neo4jGraph
from tests.support import graphs, llm_programs, programs
from tests.support.differential import Comparison
from tests.support.graphs import Pick, drawn

pytestmark = pytest.mark.xdist_group("neo4j")
#: Programs asked of each graph, and how many graphs.
PROGRAMS, GRAPHS = 10, 4

_SETTINGS = settings(
    max_examples=GRAPHS,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
)


def kopl(pick: Pick) -> tuple[list[Any], list[Any]]:
    """A graph with everything a graph can hold, and KoPL programs."""
    items = graphs.graph(pick)
    return items, [programs.as_json(programs.program(pick, wrong=False)) for _ in range(PROGRAMS)]


def llm_queries(pick: Pick) -> tuple[list[Any], list[Any]]:
    """A graph of a table and facts in time, and LLM queries."""
    items, tables = llm_programs.graph(pick)
    return items, [llm_programs.program(pick, tables=tables) for _ in range(PROGRAMS)]


def rolled(generate: Callable[[Pick], Any]) -> st.SearchStrategy[Any]:
    """Made from a seed: Hypothesis tries small ones first, and programs of some size are what is wanted."""
    return st.integers(0, 2**32).map(lambda seed: generate(graphs.Dice(seed)))


@pytest.mark.parametrize("generate", [kopl, llm_queries])
def test_neo4j_never_differs(neo4j_uri: str, generate: Callable[[Pick], Any]) -> None:
    there = condgraph.open(neo4j_uri, graph=f"random {generate.__name__}")
    assert isinstance(there, Neo4jGraph)

    @_SETTINGS
    @given(rolled(generate) | drawn(generate))
    def check(example: tuple[list[Any], list[Any]]) -> None:
        items, asked = example
        here = condgraph.open()
        here.add(items)
        there.store.delete()
        there.push(here)
        found = Comparison(here, there).ask_all(asked, on_unknown="empty", warnings=generate is kopl)
        assert not found.different, found.report()

    check()
    there.store.delete()
    there.close()
