"""Which side the Cypher of a plan begins at, by what the schema counts; that the answers are equal
is tested on servers.
"""

from __future__ import annotations

import re
from copy import copy

import pytest

import condgraph
from condgraph.cypher.answer import pasteable
from condgraph.cypher.compile.compiler import Estimates, arrange
from condgraph.cypher.compile.plan import compile_plan
from condgraph.engine import algebra as alg
from condgraph.engine.facts import Entity, EntityKind, Item, Member, Ref, Statement
from condgraph.engine.passes import optimise
from condgraph.engine.stored_schema import StoredSchema, describe_schema
from condgraph.engine.values import Quantity, Time
from condgraph.languages.kopl.lower import lower

PEOPLE = 400


def world() -> list[Item]:
    """People with a height, nearly all of one city; all are in one concept, two of them in another."""
    items: list[Item] = [Entity("many", "human", EntityKind.CONCEPT), Entity("few", "astronaut", EntityKind.CONCEPT)]
    items += [Entity("city", "Big City"), Entity("village", "Small Village")]
    for number in range(PEOPLE):
        ident = f"p{number}"
        items += [Entity(ident, f"person {number}"), Member(ident, "many")]
        items.append(Statement(ident, "height", Quantity(150 + number % 50, "centimetre")))
        items.append(Statement(ident, "lives in", Ref("village" if number < 4 else "city")))
    return [*items, Member("p1", "few"), Member("p2", "few")]


@pytest.fixture(scope="module")
def schema() -> StoredSchema:
    graph = condgraph.open()
    graph.add(world())
    return StoredSchema(describe_schema(graph.current))


def text(schema: StoredSchema, program: str) -> str:
    """The Cypher of a program."""
    return compile_plan(optimise(lower(program, schema).plan)[0], "g", schema).text  # type: ignore[arg-type]


def test_what_the_schema_counts(schema: StoredSchema) -> None:
    assert schema.members == {"human": PEOPLE, "astronaut": 2}
    assert schema.single == {"human", "astronaut"}
    outward, inward = schema.degrees["lives in"]
    assert outward == 1.0
    assert inward == round((396**2 + 4**2) / 400, 1)


def test_values_are_fields_of_one_parameter(schema: StoredSchema) -> None:
    """The server would plan a text again for a name of another length."""
    short, long = (
        compile_plan(optimise(lower(program, schema).plan)[0], "g", schema)  # type: ignore[arg-type]
        for name in ("Oz", "Llanfairpwllgwyngyll")
        for program in [f"Find({name}) Relate(lives in, backward) FilterNum(height, 170 centimetre, <) QueryName()"]
    )
    assert short.text == long.text
    assert short.parameters.keys() == long.parameters.keys() == {"graph", "p"}
    assert set(re.findall(r"\$[\w.]+", short.text)) == {"$graph", *(f"$p.{name}" for name in short.parameters["p"])}
    assert pasteable(short).startswith(":param graph => 'g';\n:param p => {p1: 'Oz'")


def test_a_concept_of_many_is_joined_with(schema: StoredSchema) -> None:
    found = text(schema, "FindAll() FilterNum(height, 170 centimetre, !=) FilterConcept(human) Count()")
    assert "USING JOIN ON" in found
    assert "EXISTS" not in found


def test_a_concept_of_few_is_where_it_begins(schema: StoredSchema) -> None:
    found = text(schema, "FindAll() FilterNum(height, 170 centimetre, !=) FilterConcept(astronaut) Count()")
    assert found.index("MEMBER_OF") < found.index("MATCH (e2)-[f1")
    assert "USING" not in found


def test_types_are_parameters_where_nodes_have_few_edges(schema: StoredSchema) -> None:
    """The texts of two predicates are one; to find the few edges of a type among those of a hub the
    server has to know the type when it plans.
    """
    # Most and mean of what leaves a subject and leads to an object; one is a member of two concepts.
    assert schema.hubs == {"lives in": [4, PEOPLE - 4, 4, 393], "height": [4, 0, 4, 0]}
    out = "Find(person 1) Relate(lives in, forward) QueryName()"
    back = "Find(Big City) Relate(lives in, backward) QueryName()"
    made = compile_plan(optimise(lower(out, schema).plan)[0], "g", schema)  # type: ignore[arg-type]
    assert "-[f1:$($p.p2)]->" in made.text
    assert made.parameters["p"]["p2"] == "lives in"
    assert ":$(" in text(schema, back)
    hub = copy(schema)
    hub.hubs = {**schema.hubs, "lives in": [3, 6_000, 3, 5_900]}
    assert ":$(" in text(hub, out)
    assert "-[f1:`lives in`]->" in text(hub, back)
    # What an earlier version wrote does not say.
    hub.hubs = {}
    assert "-[f1:`lives in`]->" in text(hub, out)


def test_from_many_nodes_types_stay_in_the_text(schema: StoredSchema) -> None:
    program = "Find(Big City) Relate(lives in, backward) Relate(lives in, forward) Count()"
    assert "`lives in`" not in text(schema, program)
    busy = copy(schema)
    busy.hubs = {"lives in": [900, 396, 50, 393]}
    assert text(busy, program).count("-[f1:`lives in`]->") == 1


@pytest.mark.parametrize(
    "program",
    [
        "FindAll() FilterNum(height, 170 centimetre, {}) Count()",
        "Find(Big City) Relate(lives in, backward) FilterYear(born, 1980, {}) QueryName()",
        "Find(person 1) QueryAttr(height) VerifyNum(170 centimetre, {})",
    ],
)
def test_comparisons_have_one_text(program: str) -> None:
    graph = condgraph.open()
    graph.add([*world(), Statement("p1", "born", Time.year(1980))])
    dated = StoredSchema(describe_schema(graph.current))
    made = [text(dated, program.format(sign)) for sign in ("=", "<", ">")]
    assert len(set(made)) == 1
    assert text(dated, program.format("!=")) != made[0]


def test_the_largest_and_the_smallest_have_one_text(schema: StoredSchema) -> None:
    largest, smallest = (
        compile_plan(optimise(lower(f"FindAll() SelectAmong(height, {which})", schema).plan)[0], "g", schema)  # type: ignore[arg-type]
        for which in ("largest", "smallest")
    )
    assert largest.text == smallest.text
    assert set(largest.parameters["p"].values()) ^ set(smallest.parameters["p"].values()) == {1.0, -1.0}


def test_a_comparison_names_its_index(schema: StoredSchema) -> None:
    found = text(schema, "FindAll() FilterNum(height, 170 centimetre, <) Count()")
    assert "USING INDEX SEEK" in found
    assert "(graph, predicate, number, unit)" in found


def test_the_rows_of_a_table_in_a_concept_of_many(schema: StoredSchema) -> None:
    """The rows come from their index, and each is asked for the concept."""
    table = copy(schema)
    table.tabular = frozenset({"people"})
    scan = alg.Scan(alg.Members(alg.ByName(("human",))), ("height",), family="attribute", source="people")
    for test in (alg.Compare("=", Quantity(170, "centimetre")), alg.Compare("!=", Quantity(170, "centimetre"))):
        found = compile_plan(alg.Reached(alg.Where(scan, test)), "g", table).text
        assert "CondgraphRow" in found
        assert "EXISTS { MATCH (e2)-[:MEMBER_OF]->" in found
        assert "USING JOIN" not in found


def test_what_is_shared_stays_shared(schema: StoredSchema) -> None:
    tall = alg.Reached(alg.Scan(None, ("height",), family="attribute"))
    few = alg.Members(alg.ByName(("astronaut",)))
    both = alg.Union((alg.Intersect((few, tall)), tall))
    assert arrange(both, schema) is both
    alone = arrange(alg.Intersect((few, tall)), schema)
    assert alone == alg.Reached(alg.Scan(few, ("height",), family="attribute"))


def test_estimates(schema: StoredSchema) -> None:
    estimates = Estimates(schema)
    assert estimates.rows(alg.ByName(("a", "b"))) == 2
    scan = alg.Scan(None, ("height",), family="attribute")
    assert estimates.rows(scan) == PEOPLE
    assert estimates.rows(alg.Where(scan, alg.Compare("=", Quantity(150, "centimetre")))) < 10
    backward = alg.Scan(alg.ByName(("Big City",)), ("lives in",), anchor="object", reach="subject", family="relation")
    assert 300 < estimates.rows(backward) <= PEOPLE
