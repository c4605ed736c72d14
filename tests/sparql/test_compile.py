"""Plans as SPARQL: every operator answers, one query a program, standard SPARQL 1.1."""

from __future__ import annotations

import pytest
from rdflib.plugins.sparql.parser import parseQuery

import condgraph
from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Node
from condgraph.engine.errors import OptionError
from condgraph.engine.facts import Statement
from condgraph.graph import Graph
from condgraph.sparql.compile.plan import PATTERNS, SUPPORT
from tests.support.algebra import classes
from tests.support.world import PROGRAMS, QUERIES, world


def operators() -> set[type[Node]]:
    sorts = {alg.Entities, alg.Facts, alg.Values, alg.Scalar, alg.Table, alg.Solutions}
    found = set(classes().values())
    return {cls for cls in found if any(issubclass(cls, sort) for sort in sorts) and cls not in sorts}


def test_every_operator_answers() -> None:
    assert set(SUPPORT) == operators()


def test_the_table_says_what_is_compiled() -> None:
    for cls, text in SUPPORT.items():
        if issubclass(cls, (alg.Entities, alg.Facts)):
            assert (cls.__name__ in PATTERNS) == text.startswith("supported"), cls


@pytest.fixture(scope="module")
def graph() -> Graph:
    return world()


@pytest.mark.parametrize("program", [*PROGRAMS, *QUERIES])
def test_the_query_is_standard(graph: Graph, program: str) -> None:
    """Another parser takes it: nothing of Oxigraph's own is in it."""
    text = graph.query(program, engine="sparql").sparql
    assert text is not None
    parseQuery(text)


def test_texts_repeat(graph: Graph) -> None:
    """Equal plans are equal texts, so that a store can keep what it made of them."""
    first, second = (graph.kopl(PROGRAMS[3], engine="sparql").sparql for _ in range(2))
    assert first == second


def test_an_engine_that_is_none(graph: Graph) -> None:
    with pytest.raises(OptionError, match="'snapshot' or 'sparql'"):
        graph.kopl(PROGRAMS[0], engine="sparq")  # type: ignore[arg-type]


def test_nothing_of_a_name_is_read_as_sparql() -> None:
    evil = 'x" . ?s ?p ?o } #\\\n'
    graph = condgraph.open()
    graph.add([Statement(evil, evil, evil)], source="t")
    program = [
        {"function": "Find", "inputs": [evil], "dependencies": []},
        {"function": "QueryAttr", "inputs": [evil], "dependencies": [0]},
    ]
    assert graph.kopl(program, engine="sparql").texts == graph.kopl(program).texts
    assert graph.kopl(program).texts != []
