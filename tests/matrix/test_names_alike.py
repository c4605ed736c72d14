"""Entities with one name: what a bag of names, or of entities, gives of them, on every store."""

from __future__ import annotations

from typing import Any

import pytest

import condgraph
from condgraph.engine.facts import Entity, Ref, Statement
from condgraph.engine.values import Quantity
from tests.support.differential import Comparison
from tests.support.stores import empty_graph, marked

NAMES = ("lead", "lead", "b", "b", "Ann", "Ann", "Ann")
FUNCTIONS = ("least", "most", "unique", "min", "max", "first", "last")
#: The names of those that have something, and entities that a relation leads to.
BAGS = ("value<=9", "relation='r'")


@pytest.fixture(params=["duckdb", *marked("neo4j", "oxigraph", nightly=("virtuoso",))])
def there(request: pytest.FixtureRequest) -> Any:
    """An empty graph on a store."""
    with empty_graph(request, "names alike") as graph:
        yield graph


def graph() -> condgraph.Graph:
    """Seven entities with three names."""
    made = condgraph.open("memory:")
    made.add(Entity(f"e{i}", name) for i, name in enumerate(NAMES))
    made.add(Statement(f"e{i}", "p", Quantity(i)) for i in range(7))
    made.add(Statement(f"e{i}", "r", Ref(f"e{(3 * i + 1) % 7}")) for i in range(7))
    return made


def test_what_stays_of_entities_with_one_name(there: Any) -> None:
    here = graph()
    there.push(here)
    found = Comparison(here, there)
    for bag in BAGS:
        for function in FUNCTIONS:
            found.ask(f'Query1: "get_information({bag})"\nQuery2: "{function}(set=\'output_of_query1\')"')
    union = 'Query1: "get_information(value<=9)"\nQuery2: "get_information(relation=\'r\')"\n'
    union += "Query3: \"set_union(set1='output_of_query1', set2='output_of_query2')\""
    found.ask_all([union, f"{union}\nQuery4: \"least(set='output_of_query3')\""])
    assert not found.different, found.report(20)
    assert not found.errors
    # Of a name that several have the first stays; entities are themselves.
    least = "Query2: \"least(set='output_of_query1')\""
    assert [one.id for one in there.query(f'Query1: "get_information(value<=9)"\n{least}').entities] == ["e2", "e0"]
    entities = there.query(f"Query1: \"get_information(relation='r')\"\n{least}").entities
    assert [one.id for one in entities] == ["e2", "e3", "e0", "e1"]
