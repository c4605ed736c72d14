"""Values of mixed types, numbers that no float holds, texts that stood otherwise: in process, where
other stores do the same.
"""

from __future__ import annotations

from typing import Any

import pytest

import condgraph
from condgraph import Graph
from condgraph.engine.facts import Entity, EntityKind, Sourced, Statement
from condgraph.engine.values import UNKNOWN, Quantity, Time


def table(*cells: tuple[Any, str | None]) -> Graph:
    """A table of one column; each cell is a value, and how it stood."""
    graph, items = condgraph.open(), list[Any]()
    for number, (value, raw) in enumerate(cells, 1):
        items.append(Sourced(Entity(f"t/{number}", f"t row {number}", EntityKind.ROW, number), (("t", number),)))
        items.append(Sourced(Statement(f"t/{number}", "c", value, (), number, raw), (("t", number),)))
    graph.add(items)
    return graph


def asked(graph: Graph, *functions: str) -> list[str]:
    """The texts that functions, each of the one before, give of the column."""
    lines = ["get_information(relation='c')", *(f"{name}(set='output_of_query{at}')" for at, name in enumerate(functions, 1))]
    return graph.query("\n".join(f'Query{at}: "{line}"' for at, line in enumerate(lines, 1))).texts


def test_equal_values_stand_in_the_order_of_how_they_stood() -> None:
    assert asked(table(("b", None), ("b", "$"), ("b", "a"))) == ["$", "a", "b"]


def test_extremes_of_texts_go_by_the_value() -> None:
    assert asked(table((UNKNOWN, "$5"), (UNKNOWN, None)), "max") == ["$5", "unknown"]
    assert asked(table(("10", "10"), ("9", "9"), ("x", " x")), "max") == [" x"]


def test_values_of_one_row_stand_in_the_fixed_order() -> None:
    graph = condgraph.open()
    place = (("t", 1),)
    row = Sourced(Entity("t/1", "t row 1", EntityKind.ROW, 1), place)
    values = ("a", Quantity(3), Time.year(1999))
    graph.add([row, *(Sourced(Statement("t/1", "c", value, (), 1), place) for value in values)])
    assert asked(graph, "first") == ["3"]
    assert asked(graph, "last") == ["a"]


@pytest.mark.parametrize("function", ["sum", "mean", "median", "round", "abs"])
def test_numbers_too_large_for_a_float(function: str) -> None:
    graph = table((Quantity(1e308), None), (Quantity(1.5e308), None), (Quantity(0.5), None))
    assert asked(graph, function, "unique")
    assert asked(graph, "sum", "round") == asked(graph, "sum", "round", "unique")


def test_given_numbers_that_one_float_stands_for() -> None:
    graph = table((Quantity(2**53), None), (Quantity(1), None))
    for operator, found in (">", [str(2**53 + 1)]), ("=", []), ("!=", [str(2**53 + 1)]):
        lines = ["get_information(relation='c')", "sum(set='output_of_query1')"]
        lines.append(f"keep(set='output_of_query2', value{operator}'{2**53}')")
        assert graph.query("\n".join(f'Query{at}: "{line}"' for at, line in enumerate(lines, 1))).texts == found


def test_times_that_a_function_gave_can_be_cut() -> None:
    graph = table((Time.span(Time.year(1998), Time.year(2003)), None), (Time.day(1999, 5, 1), None))
    lines = ["get_information(relation='c')", "extract_year(set='output_of_query1')"]
    lines.append("keep(set='output_of_query2', value='output_of_query1')")
    assert graph.query("\n".join(f'Query{at}: "{line}"' for at, line in enumerate(lines, 1))).texts


def test_a_unit_of_nothing_is_none() -> None:
    """In every store: units are kept as texts are, without white space that says nothing."""
    graph = condgraph.open()
    heights = [Quantity(3, ""), Quantity(4), Quantity(5, " "), Quantity(6, " m  a "), Quantity(7, "m a")]
    graph.add([Statement(name, "height", value) for name, value in zip("abcde", heights, strict=True)])
    for engine in ("snapshot", "sparql"):
        found = graph.kopl("FindAll() SelectAmong(height, largest)", engine=engine)
        assert found.texts == ["c"]
        assert len(found.warnings) == 1
        assert "2 values" in found.warnings[0]
    assert [(one.unit, one.values) for one in graph.schema().units] == [("m a", 2)]
