"""The tables that say what becomes of each operator name every operator, and every store fills them."""

from __future__ import annotations

from typing import Any

import pytest

from condgraph.cypher.compile import solutions as cypher_rows
from condgraph.cypher.compile import values as cypher
from condgraph.cypher.compile.conditions import CONDITIONS
from condgraph.cypher.compile.values import SCALARS
from condgraph.engine import algebra as alg
from condgraph.engine.algebra import operators, tables
from condgraph.sparql.compile import operators as sparql
from condgraph.sparql.compile import solutions as sparql_rows
from condgraph.sparql.compile.plan import BY_NAME, READERS
from tests.support.algebra import classes

SORTS: dict[Any, type] = {
    tables.EntityTable: alg.Entities,
    tables.FactTable: alg.Facts,
    tables.ValueTable: alg.Values,
    tables.ScalarTable: alg.Scalar,
    tables.GroupTable: alg.Table,
    tables.SolutionTable: alg.Solutions,
    tables.ConditionTable: alg.Condition,
}
#: From rows that bind variables to sets: with the table of the sort that they take.
BRIDGES = {"EntitiesOf", "FactsOf"}
FILLED: list[tuple[Any, Any]] = [
    (tables.EntityTable, cypher.ENTITIES),
    (tables.FactTable, cypher.FACTS),
    (tables.ValueTable, cypher.VALUES),
    (tables.ScalarTable, SCALARS),
    (tables.ConditionTable, CONDITIONS),
    (tables.EntityTable, sparql.ENTITIES),
    (tables.FactTable, sparql.FACTS),
    (tables.SolutionTable, cypher_rows.SOLUTIONS),
    (tables.SolutionTable, sparql_rows.SOLUTIONS),
]


@pytest.mark.parametrize("table", tables.TABLES)
def test_a_table_has_a_key_for_each_operator(table: Any) -> None:
    """mypy holds the stores to the keys; that there is a key for each operator is held here."""
    sort = SORTS[table]
    sorts = tuple(SORTS.values())
    names = [name for name, item in classes().items() if issubclass(item, sort)]
    found = {name for name in names if getattr(alg, name) not in sorts} - BRIDGES
    if table is tables.SolutionTable:
        found |= BRIDGES
    assert set(table.__annotations__) == found
    assert set(SORTS) == set(tables.TABLES)


@pytest.mark.parametrize(("table", "filled"), FILLED)
def test_a_store_fills_it(table: Any, filled: Any) -> None:
    assert set(filled) == set(table.__annotations__)
    assert tables.given(filled) == {name for name, found in filled.items() if callable(found)}


def test_what_a_store_leaves_out_is_no_function() -> None:
    found = tables.by_type(cypher.VALUES)
    assert alg.External not in found
    assert found[alg.Objects] is cypher.VALUES["Objects"]


def test_what_reads_the_graph_is_gathered() -> None:
    """Each operator that reads the graph says what is gathered for it, or takes nothing that only a
    client could know.
    """
    reading = {
        one
        for one in vars(operators).values()
        if isinstance(one, type) and issubclass(one, alg.Node) and getattr(one.facets, "reads", "nothing") != "nothing"
    }
    assert reading == {*READERS, *BY_NAME, alg.AllEntities, alg.ById, alg.ByName}
