"""Answers as tables: one record a value, typed columns, and the same in every library."""

from __future__ import annotations

import json
from typing import Any

import pytest

import condgraph
from condgraph.engine.facts import Entity, EntityKind, Member, Ref, Statement
from condgraph.engine.values import Quantity, Time
from condgraph.graph import Graph
from condgraph.studio.calls import call
from condgraph.studio.spec import OPERATIONS, read_fields

#: A program, and the records of its answer.
CASES: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "entities": (
        "FindAll() FilterConcept(person)",
        [{"text": "Ann", "type": "entity", "id": "a", "name": "Ann"}, {"text": "Ben", "type": "entity", "id": "b", "name": "Ben"}],
    ),
    "names": ("Find(Ann) QueryName()", [{"text": "Ann", "type": "entity", "id": "a", "name": "Ann"}]),
    "count": ("FindAll() FilterConcept(person) Count()", [{"text": "2", "type": "count", "count": 2}]),
    "quantity": (
        "Find(Ann) QueryAttr(height)",
        [{"text": "170.5 centimetre", "type": "quantity", "number": 170.5, "unit": "centimetre"}],
    ),
    "time": (
        "Find(Ann) QueryAttr(born)",
        [{"text": "1970", "type": "time", "precision": "year", "start": "1970-01-01", "end": "1971-01-01"}],
    ),
    "truth": ("Find(Ann) QueryAttr(height) VerifyNum(100 centimetre, >)", [{"text": "yes", "type": "truth", "truth": True}]),
    "nothing": ("Find(Ben) QueryAttr(height)", []),
}


@pytest.fixture(scope="module")
def people() -> Graph:
    graph = condgraph.open()
    graph.add(
        [
            Entity("p", "person", EntityKind.CONCEPT),
            Entity("a", "Ann"),
            Entity("b", "Ben"),
            Member("a", "p"),
            Member("b", "p"),
            Statement("a", "height", Quantity(170.5, "centimetre")),
            Statement("a", "born", Time.year(1970)),
            Statement("a", "knows", Ref("b")),
        ]
    )
    return graph


@pytest.mark.parametrize("name", CASES)
def test_an_answer_is_the_same_table_in_every_library(people: Graph, name: str) -> None:
    program, records = CASES[name]
    answer = people.kopl(program)
    assert answer.data() == records
    table = answer.to_arrow()
    assert table.to_pylist() == records
    columns = list(records[0]) if records else ["text"]
    assert list(answer.to_pandas().columns) == columns
    assert answer.to_pandas().to_dict("records") == records
    assert answer.to_polars().columns == columns
    assert answer.to_polars().to_dicts() == records


def test_values_of_several_types_leave_gaps(people: Graph) -> None:
    """A column that a record has nothing for is null there, and keeps its type."""
    people.add([Statement("b", "height", "tall")])
    rows = people.kopl("FindAll() FilterConcept(person) QueryAttr(height)").to_arrow()
    assert rows.to_pylist() == [
        {"text": "170.5 centimetre", "type": "quantity", "number": 170.5, "unit": "centimetre"},
        {"text": "tall", "type": "text", "number": None, "unit": None},
    ]
    assert str(rows.schema.field("number").type) == "double"


def test_integers_of_more_than_64_bits_are_floats_where_these_are_exact() -> None:
    graph = condgraph.open()
    graph.add([Entity("a", "a"), Entity("b", "b")])
    graph.add([Statement("a", "mass", Quantity(5.972e24)), Statement("b", "mass", Quantity(2**70))])
    assert graph.cypher("MATCH (x) RETURN x.mass AS m ORDER BY x.name").to_arrow().to_pylist() == [
        {"m": 5.972e24},
        {"m": float(2**70)},
    ]
    graph.add([Statement("b", "size", Quantity(2**70 + 1))])
    assert graph.cypher('MATCH (x {name: "b"}) RETURN x.size AS m').to_arrow().to_pylist() == [{"m": str(2**70 + 1)}]


def test_sums_too_large_for_a_float_keep_their_text() -> None:
    large = 9 * 10**307
    graph = condgraph.open()
    graph.add([Entity(f"s{at}", f"star {at}") for at in range(6)])
    graph.add([Statement(f"s{at}", "distance", Quantity(large + at, "m")) for at in range(6)])
    total = f"{6 * large + 15} m"
    found = graph.query("Query1: \"get_information(relation='distance')\"\nQuery2: \"sum(set='output_of_query1')\"")
    assert found.data() == [{"text": total, "type": "quantity", "number": None, "unit": "m"}]
    assert found.to_arrow().to_pylist()[0]["number"] is None
    table = graph.query("FindAll()", table="show sum(distance) as total, max(distance) as most")
    assert table.data() == [{"total": total, "most": large + 5, "most unit": "m"}]
    assert table.to_arrow().to_pylist() == [{"total": total, "most": str(large + 5), "most unit": "m"}]
    query = next(operation for operation in OPERATIONS if operation.name == "query")
    for program, clause in ((found.program, None), ("FindAll()", "show sum(distance)")):
        fields = {"program": program, "limit": 5} | ({} if clause is None else {"table": clause})
        record = call(graph, "query", read_fields(fields, query.fields), 30.0)
        assert isinstance(record, dict)
        assert json.loads(json.dumps(record, allow_nan=False))["rows"][0][0] == {
            "type": "quantity", "text": total, "number": None, "unit": "m"
        }  # fmt: skip


def test_an_empty_answer_says_which_step_emptied_it(people: Graph) -> None:
    answer = people.kopl("Find(Ann) Relate(knows, forward) QueryAttr(born)")
    assert answer.values == []
    said = "the answer is empty: QueryAttr returned nothing, Scan('born', of the subject, attributes)"
    assert answer.warnings[0].startswith(said)
    assert "'born'" in answer.warnings[0].removeprefix(said)
