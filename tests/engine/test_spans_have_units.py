"""The time between two times says what it counts, on every engine."""

from __future__ import annotations

import pytest

import condgraph
from condgraph.engine.facts import Entity, Statement
from condgraph.engine.values import Quantity, Time

_ASKED = [
    ("difference(a='{a}', b='{b}')", "day"),
    ("difference(a='{a}', b='{b}', unit='days')", "day"),
    ("difference(a='{a}', b='{b}', unit='weeks')", "week"),
    ("difference(a='{a}', b='{b}', unit='months')", "month"),
    ("difference(a='{a}', b='{b}', unit='years')", "year"),
    ("duration(a='{a}', b='{b}')", "day"),
]


@pytest.mark.parametrize("engine", ["snapshot", "sparql"])
@pytest.mark.parametrize(("call", "unit"), _ASKED)
def test_days_between_days(call: str, unit: str, engine: str) -> None:
    graph = condgraph.open("memory:")
    graph.add(
        [
            *(Entity("a", "Ann"), Entity("b", "Bob")),
            *(Statement("a", "born", Time.day(1960, 2, 1)), Statement("b", "born", Time.day(1961, 3, 4))),
        ]
    )
    program = (
        (
            "Query1: \"get_information(relation='born', head_entity='Ann')\"\n"
            "Query2: \"get_information(relation='born', head_entity='Bob')\"\n"
            f'Query3: "{call.format(a="output_of_query1", b="output_of_query2")}"'
        )
        .replace("'output_of_query1'", "output_of_query1")
        .replace("'output_of_query2'", "output_of_query2")
    )
    (found,) = graph.query(program, engine=engine).values  # type: ignore[arg-type]
    assert isinstance(found, Quantity)
    assert found.unit == unit
    assert found.number == {"day": 397, "week": 397 / 7, "month": 13, "year": 1}[unit]
