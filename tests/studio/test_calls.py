"""The calls of the API without a server: tables and parameters."""

from __future__ import annotations

import csv
from collections import Counter
from typing import Any

import jsonschema
import pytest

import condgraph
from condgraph.endpoint.protocol import ProtocolError
from condgraph.engine.errors import CondgraphError, UnknownNameError
from condgraph.engine.facts import Entity, EntityKind, Member, Ref, Statement
from condgraph.engine.values import Quantity
from condgraph.graph import Graph
from condgraph.samples import FOLDER
from condgraph.studio.calls import call
from condgraph.studio.spec import OPERATIONS, document, read_fields

MOUNTAINS = "Query1: \"get_information(relation='height')\"\n"
GROUPED = MOUNTAINS + "Query2: \"group_by(set='output_of_query1', key='country')\""
LISTED = MOUNTAINS + "Query2: \"group_by(set='output_of_query1', key='range', aggregate='values', of='country')\""


@pytest.fixture(scope="module")
def graph() -> Graph:
    found = condgraph.open()
    found.load(FOLDER / "mountains.csv", key="mountain", refs=["country"])
    found.load(FOLDER / "countries.json")
    return found


def asked(graph: Graph, name: str, **fields: Any) -> Any:
    """What a request gets, as it is read and as its reply is described."""
    operation = next(one for one in OPERATIONS if one.name == name)
    found = call(graph, name, read_fields(fields, operation.fields), 30.0)
    if isinstance(found, dict):
        schema = {"$ref": f"#/components/schemas/{operation.reply.__name__}", "components": document()["components"]}
        jsonschema.Draft202012Validator(schema).validate(found)
    return found


def texts(found: Any) -> list[list[str]]:
    return [["" if cell is None else cell["text"] for cell in row] for row in found["rows"]]


def test_the_rows_of_a_table(graph: Graph) -> None:
    found = asked(graph, "query", program=GROUPED, limit=2)
    own = graph.query(GROUPED)
    assert found["columns"] == list(own.columns)
    assert texts(found) == [list(row) for row in own.cells[:2]]
    assert [cell["type"] for cell in found["rows"][0]] == ["entity", "count"]
    assert found["total"] == len(own) > 2
    assert any("limit 2" in one["text"] for one in found["warnings"])
    kind, data = asked(graph, "query", program=GROUPED, format="csv")
    assert kind.startswith("text/csv")
    assert data.decode().splitlines()[0] == f"{own.columns[0]},{own.columns[0]} id,{own.columns[1]}"
    assert len(data.decode().splitlines()) == 1 + len(own)


def test_cells_that_list_values(graph: Graph) -> None:
    found = asked(graph, "query", program=LISTED)
    cells = [row[1] for row in found["rows"]]
    assert {"type": "list", "text": "India; Nepal"} in cells
    assert texts(found) == [list(row) for row in graph.query(LISTED).cells]


def test_a_program_with_a_table(graph: Graph) -> None:
    program, clause = "FindAll() FilterNum(height, 7500 m, >)", "group by country show count() order by count() desc"
    found = asked(graph, "query", program=program, table=clause)
    own = graph.query(program, table=clause)
    assert found["columns"] == ["country", "count()"]
    assert texts(found) == [list(row) for row in own.cells]
    said = asked(graph, "explain", program=program, table=clause)
    assert said["plan"] == graph.explain(program, table=clause)
    # What is shown beside the answer is the query of the table, not of the program alone.
    assert found["compiled"] == said["compiled"] != asked(graph, "explain", program=program)["compiled"]
    assert "country" in said["compiled"]["cypher"]
    assert "country" in said["compiled"]["sparql"]


PARAMETERS = {
    "kopl": "Find($name) Relate(capital, forward) QueryName()",
    "llm_query": "Query1: \"get_information(relation='capital', head_entity=$name)\"",
    "logic": "?x : capital($name, ?x)",
    "pattern": "(UNKNOWN capital 1) <-[capital]- ($name)",
}


@pytest.mark.parametrize("language", PARAMETERS)
def test_parameters(graph: Graph, language: str) -> None:
    program = PARAMETERS[language]
    found = asked(graph, "query", program=program, parameters={"name": "Nepal"})
    assert found["language"] == language
    assert found["program"] == program
    assert "Kathmandu" in texts(found)[0]
    if language != "pattern":
        assert "$name" not in found["compiled"]["sparql"]
        assert "Nepal" in found["compiled"]["sparql"]
        said = asked(graph, "explain", program=program, parameters={"name": "Nepal"})
        assert said["compiled"] == found["compiled"]
        assert "'Nepal'" in said["plan"]
        with pytest.raises(UnknownNameError):
            asked(graph, "query", program=program, parameters={"name": "Nepal) Relate(x"})


def test_parameters_of_a_table(graph: Graph) -> None:
    program, clause = "FindAll() FilterNum(height, $least, >)", "show count()"
    for least in (7500, "7500 m", 7500.5):
        found = asked(graph, "query", program=program, table=clause, parameters={"least": least})
        assert texts(found) == [list(row) for row in graph.prepare(program, table=clause)(least=least).cells]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"program": "Find($a)", "parameters": {"b": "x"}}, "no parameter 'b'"),
        ({"program": "FindAll()", "parameters": {"b": "x"}}, "no parameter 'b'"),
        ({"program": "FindAll()", "table": "group by contry"}, "'contry'"),
        ({"program": "(UNKNOWN a 1) -[capital]-> (Nepal)", "table": "show count()"}, "pattern takes no option 'table'"),
        ({"program": "SELECT * { ?a ?b ?c }", "language": "sparql", "table": "show count()"}, "sparql takes no option 'table'"),
        ({"program": "ASK { ?a ?b ?c }", "language": "sparql", "parameters": {"a": "b"}}, "sparql takes no option 'parameters'"),
    ],
)
def test_what_they_are_not(graph: Graph, fields: dict[str, Any], said: str) -> None:
    with pytest.raises(CondgraphError, match=said):
        asked(graph, "query", **fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"parameters": {"a": True}},
        {"parameters": {"a": None}},
        {"parameters": {"a": ["b"]}},
        {"parameters": {"a": float("nan")}},
        {"parameters": "a"},
        {"table": 3},
        {"limit": 10**400},
        {"timeout": 10**400},
    ],
)
def test_fields_that_are_none(graph: Graph, fields: dict[str, Any]) -> None:
    with pytest.raises(ProtocolError):
        asked(graph, "query", program="FindAll()", **fields)


def test_a_program_in_a_fence(graph: Graph) -> None:
    found = asked(graph, "query", program="```\nFind(Nepal) Relate(capital, forward)\n```", engine="snapshot")
    assert texts(found) == [["Kathmandu"]]


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("query", {"program": "FindAll()", "parameters": {f"p{i}": i for i in range(101)}}),
        ("match", {"pattern": "(a) -[r]-> (b)", "options": {"group_by": ["a"] * 101}}),
        ("ask", {"question": "Who?", "choose": {f"p{i}": "a" for i in range(101)}}),
        ("ask", {"question": "Who?", "before": [{"question": "What?"}] * 7}),
        ("ask", {"question": "Who?", "before": [{"question": "What?", "language": "sparql"}]}),
        ("ask", {"question": "Who?", "before": [{"question": "What?", "parts": [{"question": "Why?", "parts": []}]}]}),
        ("query", {"program": "FindAll()", "limit": 0}),
        ("query", {"program": "a" * ((1 << 20) + 1)}),
    ],
)
def test_what_is_refused_is_refused_by_the_document(name: str, fields: dict[str, Any]) -> None:
    operation = next(one for one in OPERATIONS if one.name == name)
    with pytest.raises(ProtocolError):
        read_fields(fields, operation.fields)
    body = document()["paths"][f"/api/v1/{name}"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert not jsonschema.Draft202012Validator({**body, "components": document()["components"]}).is_valid(fields)


def test_the_document_is_guarded_as_it_says() -> None:
    """Every operation needs a token where there are tokens, and may be refused for the want of one."""
    for path, methods in document()["paths"].items():
        for method, operation in methods.items():
            assert "security" not in operation, (path, method)
            assert {"401", "429"} <= set(operation["responses"]), (path, method)


def samples(graph: Graph, question: dict[str, Any]) -> list[list[str]]:
    """The cells of the first rows of the answer to a question."""
    answer = graph.query(question["program"], table=question["table"] or None)
    return [list(row) for row in answer.cells[:3]] if answer.columns else [[text] for text in answer.texts[:3]]


def test_the_start_page_has_questions_with_answers(graph: Graph) -> None:
    assert asked(graph, "start", questions=False)["questions"] is None
    found = asked(graph, "start")
    assert asked(graph, "start", questions=False) == found
    assert [one["name"] for one in found["concepts"]] == [one.name for one in graph.schema().concepts]
    assert next(one for one in found["predicates"] if one["name"] == "capital")["subject"] == ["country"]
    assert len(found["questions"]) == 3
    for one in found["questions"]:
        assert samples(graph, one) == one["sample"] != []
    assert ["mountains", "country", "country"] in found["edges"]
    assert found["picture"].startswith("<svg ")


@pytest.mark.parametrize(
    "items",
    [
        [Entity("a", "a")],
        [Entity("a", 'a "b" \\ c'), Statement("a", 'p "q" `r`', "x")],
        [Entity("a", "a"), Entity("b", "b"), Statement("a", "next, to", Ref("b"))],
        [Entity("a", "a"), Statement("a", "it's", Quantity(5)), Statement("a", "", "empty")],
    ],
)
def test_the_start_page_of_a_small_graph(items: list[Any]) -> None:
    graph = condgraph.open()
    graph.add(items, source="source")
    questions = asked(graph, "start")["questions"]
    assert questions
    for one in questions:
        assert samples(graph, one) == one["sample"] != []


def test_rows_and_facets_are_those_of_the_table(graph: Graph) -> None:
    with (FOLDER / "mountains.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    found = asked(graph, "browse", table="mountains", sort="height", descending=True, limit=500)
    assert found["total"] == len(rows)
    height = found["columns"].index("height") + 1
    assert sorted(row[0]["text"] for row in found["rows"]) == sorted(row["mountain"] for row in rows)
    heights = [row[height]["number"] for row in found["rows"]]
    assert heights == sorted(heights, reverse=True)
    facets = {one["column"]: one for one in found["facets"]}
    counts = Counter(row["country"] for row in rows)
    assert {one["value"]["text"]: one["count"] for one in facets["country"]["values"]}.items() <= counts.items()
    assert [one["count"] for one in facets["country"]["values"]] == sorted(counts.values(), reverse=True)[:8]
    assert facets["country"]["more"]
    for country, ranged in (("Nepal", "Himalayas"), ("United States", "")):
        part = asked(graph, "browse", table="mountains", where={"country": country, "range": ranged})
        wanted = sorted(row["mountain"] for row in rows if row["country"] == country and (row["range"] or "") == ranged)
        assert [row[0]["text"] for row in part["rows"]] == wanted
        assert part["total"] == len(wanted)
        assert [row[:2] for row in texts(part)] == [[*row[:2]] for row in graph.query(part["program"], table=part["table"]).cells]
    pages = [asked(graph, "browse", table="mountains", offset=at, limit=10)["rows"] for at in (0, 10, 20, 30, 40)]
    assert [len(page) for page in pages] == [10, 10, 10, 1, 0]
    assert sorted(row[0]["text"] for page in pages for row in page) == sorted(row["mountain"] for row in rows)


def test_rows_of_a_concept_have_the_columns_of_those_below(graph: Graph) -> None:
    place = asked(graph, "browse", concept="place", limit=500)
    assert place["total"] == next(one.members for one in graph.schema().concepts if one.name == "place") == len(place["rows"])
    assert {"capital", "continent"} <= set(place["columns"])


def test_columns_of_very_long_names_are_shown_when_they_are_asked_for() -> None:
    """A table clause has room for so many characters."""
    graph, long = condgraph.open(), "L" * 20_000
    graph.add([Entity("c", "c", EntityKind.CONCEPT), Entity("a", "a"), Member("a", "c")])
    graph.add([Statement("a", name, "x") for name in (long, "short")])
    found = asked(graph, "browse", concept="c")
    assert (found["columns"], found["more_columns"], found["total"]) == (["short"], [long], 1)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "rows are those of a concept or of a table"),
        ({"concept": "country", "table": "mountains"}, "rows are those of a concept or of a table"),
        ({"concept": "contry"}, "unknown concept 'contry'; nearest: 'country'"),
        ({"table": "mountain"}, "unknown table 'mountain'; nearest: 'mountains'"),
        ({"table": "mountains", "sort": "hight"}, "unknown column 'hight'; nearest: 'height'"),
        ({"table": "mountains", "where": {"contry": "Nepal"}}, "unknown column 'contry'; nearest: 'country'"),
    ],
)
def test_rows_that_are_not_there(graph: Graph, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(CondgraphError) as raised:
        asked(graph, "browse", **fields)
    assert str(raised.value).startswith(message)


@pytest.mark.parametrize(
    "given",
    [
        {"where": ["a"]},
        {"where": {"a": 1}},
        {"offset": -1},
        {"limit": 0},
        {"limit": 501},
        {"where": {str(i): "" for i in range(101)}},
    ],
)
def test_fields_of_rows_that_are_wrong(given: dict[str, Any]) -> None:
    operation = next(one for one in OPERATIONS if one.name == "browse")
    with pytest.raises(ProtocolError):
        read_fields({"concept": "country", **given}, operation.fields)
