"""What programs on databases of others become, without a server."""

from __future__ import annotations

import re

import pytest

from condgraph.cypher.compile.plan import compile_plan
from condgraph.cypher.native.layout import NativeLayout
from condgraph.cypher.native.mapping import Mapping, NodeType, Property, RelationshipType
from condgraph.cypher.native.schema import NativeSchema
from condgraph.engine import algebra as alg
from condgraph.engine.errors import UnknownNameError, UnsupportedError
from condgraph.languages.kopl.lower import lower


def _property(key: str, *types: str, reading: str = "itself") -> Property:
    return Property(key, key, tuple((name, 10) for name in types), 10 * len(types), reading)  # type: ignore[arg-type]


_ODD = "Odd`) DETACH DELETE n //"
MAPPING = Mapping(
    (
        NodeType("Movie", "Movie", 38, ("title",), "title", (_property("released", "INTEGER"), _property("title", "STRING"))),
        NodeType(_ODD, _ODD, 3, (), None, (_property("shot", "DATE"), _property("mixed", "INTEGER", "STRING"))),
        NodeType(
            "Person", "Person", 133, ("name",), "name",
            (_property("born", "INTEGER"), _property("code", "STRING", reading="number"), _property("name", "STRING")),
        ),
    ),
    (
        RelationshipType("ACTED_IN", "ACTED_IN", 172, (("Person", "Movie", 172),), (_property("roles", "LIST<STRING NOT NULL>"),)),
        RelationshipType("WORKED`S", "WORKED`S", 5, (("Person", "Person", 5),), (_property("since", "DATE"),), start="since"),
    ),
    174,
    177,
)  # fmt: skip
SCHEMA, LAYOUT = NativeSchema(MAPPING), NativeLayout(MAPPING)


def text_of(program: str) -> str:
    """The Cypher of a KoPL program, with variables and parameters without their numbers."""
    text = compile_plan(lower(program, SCHEMA).plan, "neo4j", SCHEMA, layout=LAYOUT).text  # type: ignore[arg-type]
    return re.sub(r"([a-z]|\$p)\d+\b", r"\1", text)


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("FindAll() FilterNum(born, 1980, >)", "(e:`Person`) WHERE e.`born` IS NOT NULL AND (e.`born` > $p"),
        ("FindAll() FilterStr(title, Heat)", "e.`title` = toString($p"),
        ("FindAll() FilterDate(shot, 1999-05-01, <)", "(e.`shot` < $p"),
        ("Find(Keanu Reeves)", "MATCH (e:`Person`) WHERE e.`name` = toString($p"),
    ],
)
def test_tests_compare_the_property_itself(program: str, expected: str) -> None:
    """Where it is of one type, so that an index of the database answers."""
    assert expected in text_of(program)


def test_each_query_has_values_of_its_own() -> None:
    """What relationships have for qualifiers belongs to the database, and stays as it is."""
    before = dict(LAYOUT.parameters("neo4j"))
    one, two = (
        compile_plan(lower(f"Find({name}) QueryAttr(born)", SCHEMA).plan, "neo4j", SCHEMA, layout=LAYOUT)  # type: ignore[arg-type]
        for name in ("Keanu Reeves", "Carrie-Anne Moss")
    )
    assert LAYOUT.parameters("neo4j") == before
    assert one.text == two.text
    assert "Keanu Reeves" in one.parameters["p"].values()
    assert "Carrie-Anne Moss" in two.parameters["p"].values()
    assert one.parameters.keys() == two.parameters.keys() == {*before, "p"}


def test_properties_of_several_types_ask_each_value() -> None:
    text = text_of("FindAll() FilterNum(mixed, 3, >)")
    assert "IS :: INTEGER" in text
    assert "e.`mixed` > $p" not in text


def test_nothing_of_condgraph_but_what_leaves_its_own_nodes_out() -> None:
    for program in ("FindAll() Count()", "Find(A) Relate(ACTED_IN, forward)", "Find(A) Find(B) QueryRelation()"):
        text = text_of(program).replace("CondgraphEntity", "")
        for word in ("$graph", ".sid", ".handle", "MEMBER_OF", ".since"):
            assert word not in text, program


def test_names_of_the_database_are_quoted() -> None:
    text = text_of(f"FindAll() FilterConcept({_ODD}) Count()")
    assert ":`Odd``) DETACH DELETE n //`)" in text
    assert "`WORKED``S`" in text_of("Find(A) Relate(WORKED`S, forward)")


def test_other_spellings() -> None:
    assert text_of("Find(A) Relate(acted in, forward)") == text_of("Find(A) Relate(ACTED_IN, forward)")
    assert text_of("FindAll() FilterConcept(movies) Count()") == text_of("FindAll() FilterConcept(Movie) Count()")
    assert text_of("Find(A) QueryAttr(BORN)") == text_of("Find(A) QueryAttr(born)")
    for program in ("Find(A) Relate(acted on, forward)", f"Find(A) QueryAttr({'x' * 10**5})"):
        with pytest.raises(UnknownNameError):
            text_of(program)


def test_the_schema_is_the_mapping() -> None:
    assert SCHEMA.relations == ("ACTED_IN", "WORKED`S")
    assert SCHEMA.attributes == ("born", "code", "mixed", "name", "released", "shot", "title")
    assert SCHEMA.qualifiers == ("roles", "start time")
    assert SCHEMA.temporal
    assert SCHEMA.members["Person"] == 133


def test_what_is_missing_is_said_before_anything_runs() -> None:
    """Concepts are labels, and no nodes that could be worked out."""
    concepts = alg.Reached(alg.Scan(alg.ByName(("Heat",)), ("ACTED_IN",), family="relation"))
    with pytest.raises(UnsupportedError) as raised:
        compile_plan(alg.Members(concepts), "neo4j", SCHEMA, layout=LAYOUT)
    assert raised.value.missing == ("members of concepts that are worked out",)
