"""A second layout is one class: plans become queries of a database that condgraph did not write, and
its answers are those of the same graph in process.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import Any

import pytest

import condgraph
from condgraph.cypher.compile.plan import Compiled, compile_plan, compile_sizes
from condgraph.cypher.connection import Connection
from condgraph.cypher.layout.base import value_of
from condgraph.engine import algebra as alg
from condgraph.engine.errors import UnsupportedError
from condgraph.engine.facts import Entity, EntityKind, Item, Member, Ref, Statement
from condgraph.engine.passes import optimise
from condgraph.engine.stored_schema import StoredSchema, describe_schema
from condgraph.engine.values import Quantity, Time, text_of
from condgraph.graph import Graph
from condgraph.languages.kopl.lower import lower
from tests.support.plain_layout import PlainLayout

pytestmark = pytest.mark.xdist_group("neo4j")

LAYOUT = PlainLayout(
    {"person": "PlainPerson", "town": "Plain Town"},
    {"lives in": "LIVES_IN", "knows": "KNOWS"},
    {"height": "height", "date of birth": "born", "inhabitants": "inhabitants", "motto": "motto"},
)
PEOPLE = (
    ("Ann", 1.75, (1980, 5, 1), "Oslo"),
    ("Ben", 1.9, (1992, 12, 31), "Oslo"),
    ("Cid", 1.6, (1975, 1, 1), "Rome"),
    ("Dan", None, (1980, 1, 1), "Rome"),
)
TOWNS = (("Oslo", 709_037, 'Unum, heart of "Oslo"'), ("Rome", 2_748_109, "SPQR"), ("Bergen", 291_940, None))
KNOWS = (("Ann", "Ben"), ("Ben", "Ann"), ("Cid", "Ann"))
#: Programs, and their answers worked out by hand.
ANSWERS: dict[str, list[str]] = {
    "Find(Ann) QueryAttr(height)": ["1.75"],
    "Find(Dan) QueryAttr(height)": [],
    "Find(Oslo) QueryAttr(motto)": ['Unum, heart of "Oslo"'],
    "Find(Ann) QueryAttr(date of birth)": ["1980-05-01"],
    "FindAll() FilterConcept(person) Count()": ["4"],
    "FindAll() Count()": ["7"],
    "FindAll() FilterConcept(town) QueryName()": ["Bergen", "Oslo", "Rome"],
    "Find(Oslo) Relate(lives in, backward) QueryName()": ["Ann", "Ben"],
    "Find(Ann) Relate(lives in, forward) QueryAttr(inhabitants)": ["709037"],
    "Find(Ann) Relate(knows, backward) FilterConcept(person) Count()": ["2"],
    "FindAll() FilterNum(height, 1.7, >) FilterConcept(person) QueryName()": ["Ann", "Ben"],
    "FindAll() FilterNum(height, 1.75, =) QueryName()": ["Ann"],
    "FindAll() FilterNum(inhabitants, 700000, !=) FilterConcept(town) Count()": ["3"],
    "FindAll() FilterYear(date of birth, 1980, =) QueryName()": ["Ann", "Dan"],
    "FindAll() FilterDate(date of birth, 1992-12-31, <) Count()": ["3"],
    "FindAll() FilterStr(motto, SPQR) QueryName()": ["Rome"],
    "FindAll() FilterConcept(person) SelectAmong(height, largest)": ["Ben"],
    "FindAll() FilterConcept(person) SelectAmong(date of birth, smallest)": ["Cid"],
    "Find(Ann) Find(Cid) SelectBetween(height, greater)": ["Ann"],
    "Find(Oslo) Relate(lives in, backward) Find(Ann) Relate(knows, forward) And() QueryName()": ["Ben"],
    "Find(Oslo) Relate(lives in, backward) Find(Cid) Or() QueryName()": ["Ann", "Ben", "Cid"],
    "Find(Oslo) Relate(lives in, backward) Find(Ann) Relate(knows, forward) Except() QueryName()": ["Ann"],
    "Find(Rome) QueryAttr(inhabitants) VerifyNum(2000000, >)": ["yes"],
    "Find(Oslo) QueryAttr(motto) VerifyStr(SPQR)": ["no"],
    "Find(Oslo) Relate(lives in, backward) QueryAttr(height) ": ["1.75", "1.9"],
}


def items() -> list[Item]:
    """The graph as condgraph has it."""
    found: list[Item] = [Entity("person", "person", EntityKind.CONCEPT), Entity("town", "town", EntityKind.CONCEPT)]
    for name, inhabitants, motto in TOWNS:
        found += [Entity(name, name), Member(name, "town"), Statement(name, "inhabitants", Quantity(inhabitants))]
        found += [] if motto is None else [Statement(name, "motto", motto)]
    for name, height, born, home in PEOPLE:
        found += [Entity(name, name), Member(name, "person"), Statement(name, "lives in", Ref(home))]
        found.append(Statement(name, "date of birth", Time.day(*born)))
        found += [] if height is None else [Statement(name, "height", Quantity(height))]
    return [*found, *(Statement(one, "knows", Ref(other)) for one, other in KNOWS)]


@pytest.fixture(scope="module")
def local() -> Graph:
    graph = condgraph.open()
    graph.add(items())
    return graph


@pytest.fixture(scope="module")
def schema(local: Graph) -> StoredSchema:
    return StoredSchema(describe_schema(local.current))


@pytest.fixture(scope="module")
def server(neo4j_uri: str) -> Iterator[Connection]:
    """The same graph as somebody else would write it, beside whatever the server has."""
    connection = Connection(neo4j_uri)
    clean = "MATCH (n:PlainPerson|`Plain Town`) DETACH DELETE n"
    connection.write(clean, {})
    towns = "UNWIND $rows AS r CREATE (:`Plain Town` {name: r[0], inhabitants: r[1], motto: r[2]})"
    connection.write(towns, {"rows": [list(row) for row in TOWNS]})
    people = (
        "UNWIND $rows AS r MATCH (t:`Plain Town` {name: r[3]}) "
        "CREATE (:PlainPerson {name: r[0], height: r[1], born: date(r[2])})-[:LIVES_IN]->(t)"
    )
    connection.write(people, {"rows": [[name, height, date(*born), home] for name, height, born, home in PEOPLE]})
    known = "UNWIND $rows AS r MATCH (a:PlainPerson {name: r[0]}), (b:PlainPerson {name: r[1]}) CREATE (a)-[:KNOWS]->(b)"
    connection.write(known, {"rows": [list(row) for row in KNOWS]})
    yield connection
    connection.write(clean, {})
    connection.close()


def asked(connection: Connection, schema: StoredSchema, program: str) -> list[str]:
    """The texts of a program's answer from the server."""
    plan, _ = optimise(lower(program, schema).plan)  # type: ignore[arg-type]
    return texts_of(connection, compile_plan(plan, "none", schema, layout=LAYOUT))


def texts_of(connection: Connection, compiled: Compiled) -> list[str]:
    """The rows of a query as an answer shows them, sorted."""
    (row,) = connection.read(compiled.text, compiled.parameters)
    if compiled.shape == "count":
        return [str(row["count"])]
    if compiled.shape == "some":
        return [text_of(row["satisfied"] > 0)]
    if compiled.shape == "entities":
        return sorted(name for _, name in row["rows"])
    cells: list[dict[str, Any]] = [dict(zip(compiled.fields, found, strict=True)) for found in row["rows"]]
    values = [value_of({"kind": compiled.kind, **cell}) for cell in cells if cell.get("kind", compiled.kind) != "entity"]
    return sorted(map(text_of, values)) if values or not cells else sorted(cell["text"] for cell in cells)


@pytest.mark.parametrize("program", ANSWERS)
def test_answers(server: Connection, local: Graph, schema: StoredSchema, program: str) -> None:
    assert asked(server, schema, program) == ANSWERS[program]
    assert list(local.kopl(program).texts) == ANSWERS[program]


def test_sizes_of_steps(server: Connection, schema: StoredSchema) -> None:
    lowered = lower("FindAll() FilterNum(height, 1.7, >) FilterConcept(person) QueryAttr(height)", schema)  # type: ignore[arg-type]
    compiled = compile_sizes([node for _, node in lowered.steps], "none", schema, layout=LAYOUT)
    found = {row["step"]: (row["size"], sorted(row["sample"])) for row in server.read(compiled.text, compiled.parameters)}
    assert found[1] == (2, ["Ann", "Ben"])
    assert found[3] == (2, ["1.75", "1.9"])


def test_parts_that_are_bound_once(server: Connection, schema: StoredSchema) -> None:
    """What two operators take is bound as a list: statements, values and entities come back from it."""
    at_home = alg.Scan(alg.ByName(("Oslo",)), ("lives in",), anchor="object", reach="subject", family="relation")
    people = alg.Reached(at_home)
    tall = alg.Where(alg.Scan(people, ("height",), family="attribute"), alg.Compare(">", Quantity(1)))
    heights = alg.Objects(tall)
    best = alg.Extreme(heights, "largest")
    everything = alg.Concat((heights, best, alg.Objects(tall)))
    assert texts_of(server, compile_plan(everything, "none", schema, layout=LAYOUT)) == ["1.75", "1.75", "1.9", "1.9", "1.9"]
    holders = alg.Minus(alg.SubjectsOf(heights), alg.SubjectsOf(best))
    assert texts_of(server, compile_plan(holders, "none", schema, layout=LAYOUT)) == ["Ann"]


def test_no_label_or_property_of_condgraph(schema: StoredSchema) -> None:
    """Nothing that the compiler writes goes past the layout."""
    for program in ANSWERS:
        plan, _ = optimise(lower(program, schema).plan)  # type: ignore[arg-type]
        compiled = compile_plan(plan, "none", schema, layout=LAYOUT)
        assert "graph" not in compiled.parameters
        for word in ("Condgraph", "$graph", ".graph", ".sid", ".key ", ".handle", ".rows", ".row ", ".since", "MEMBER_OF"):
            assert word not in compiled.text, (word, compiled.text)


def test_a_test_on_a_property_stands_in_the_match(schema: StoredSchema) -> None:
    """Where an index of the database can answer it."""
    plan, _ = optimise(lower("FindAll() FilterNum(height, 1.7, >)", schema).plan)  # type: ignore[arg-type]
    (match,) = (line for line in compile_plan(plan, "none", schema, layout=LAYOUT).text.splitlines() if line.startswith("MATCH"))
    assert ".`height` > $p" in match


def test_all_that_it_lacks_is_reported_at_once(schema: StoredSchema) -> None:
    scan = alg.Scan(alg.ByName(("Ann",)), ("lives in",), family="relation")
    plan = alg.Reached(alg.During(alg.WhereQualifier(scan, "role", alg.Compare("=", "mayor")), "overlaps", Time.year(1990)))
    with pytest.raises(UnsupportedError) as raised:
        compile_plan(plan, "none", schema, layout=LAYOUT)
    assert raised.value.missing == ("qualifiers", "times at which statements hold")


def test_rows_that_bind_several_variables_are_refused_by_name(schema: StoredSchema) -> None:
    plan = alg.Pattern((alg.StatementPattern(alg.Variable("x"), ("knows",), alg.Variable("y")),))
    with pytest.raises(UnsupportedError, match="rows that bind several variables"):
        compile_plan(plan, "none", schema, layout=LAYOUT)
