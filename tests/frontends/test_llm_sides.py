"""What an entity that a query names means where it is written otherwise, and which name a side of a
comparison goes by.
"""

from __future__ import annotations

import pytest

import condgraph
from condgraph.engine.errors import UnknownNameError
from condgraph.graph import Graph
from tests.frontends.test_llm_query import ask, get, program, work

TWO = "value1='output_of_query1', value2='output_of_query2'"


@pytest.fixture(scope="module")
def graph() -> Graph:
    found = condgraph.open()
    found.add(list(work()), source="work")
    return found


def test_a_tail_in_other_letters_is_the_entity(graph: Graph) -> None:
    found = graph.query(program(get(R="works at", T="acme")))
    assert found.texts == ask(graph, get(R="works at", T="Acme")) == ["Ann", "Bob"]
    assert found.warnings == ["value of 'works at' 'acme' is read as 'Acme' (the same except for case, accents or white space)"]


def test_a_tail_that_nothing_is_like(graph: Graph) -> None:
    query = program(get(R="works at", T="Zebra"))
    with pytest.raises(UnknownNameError, match="unknown value of 'works at' 'Zebra'"):
        graph.query(query)
    assert graph.query(query, on_unknown="empty").texts == []


def compared(graph: Graph, one: str, other: str, operator: str = ">") -> list[str]:
    return ask(graph, one, other, f"compare({TWO}, operator='{operator}')", target="name")


@pytest.mark.parametrize(("operator", "winner"), [(">", ["Bob"]), ("<", ["Ann"])])
def test_the_winner_is_named_by_what_is_its_own(graph: Graph, operator: str, winner: list[str]) -> None:
    assert compared(graph, get(R="age", H="Ann"), get(R="age", H="Bob"), operator) == winner
    # Both come from Acme, which is named last.
    ann, bob = (get(R="works at", H=name, T="Acme", K="start time") for name in ("Ann", "Bob"))
    assert compared(graph, ann, bob, operator) == winner
    assert compared(graph, bob, ann, operator) == winner


def test_the_winner_by_a_constant_that_both_have_beside_another(graph: Graph) -> None:
    acme, beta = (get(R="works at", H="Ann", T=name, K="start time") for name in ("Acme", "Beta"))
    assert compared(graph, acme, beta) == ["Beta"]
    # In other letters, it is named as it is in the graph.
    assert compared(graph, acme, get(R="works at", H="Ann", T="beta", K="start time")) == ["Beta"]


def test_sides_that_the_same_led_to_are_named_by_it(graph: Graph) -> None:
    assert compared(graph, get(R="age", H="Ann"), get(R="age", H="Ann")) == ["Ann"]
    start, end = (get(R="works at", H="Ann", T="Acme", K=key) for key in ("start time", "end time"))
    assert compared(graph, start, end, "<") == ["Acme"]


def test_literals_are_their_own_names(graph: Graph) -> None:
    assert ask(graph, "compare(value1='5', value2='3')", target="name") == ["5"]
    assert ask(graph, "compare(value1='5', value2='3', operator='<')", target="name") == ["3"]


def test_a_side_without_a_name_is_its_value(graph: Graph) -> None:
    everybody = get(R="age")
    assert compared(graph, get(R="age", H="Ann"), everybody) == ["30", "40"]
