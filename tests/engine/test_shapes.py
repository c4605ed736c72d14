"""The commonest shapes of queries: texts that other programs have as well, none twice, and none of
names or values.
"""

from __future__ import annotations

import pytest

import condgraph
from condgraph.cypher.compile.plan import compile_plan
from condgraph.cypher.layout.base import Layout
from condgraph.cypher.layout.schema import CONDGRAPH
from condgraph.cypher.shapes import Shapes, program
from condgraph.engine.facts import Entity
from condgraph.engine.passes import optimise
from condgraph.engine.stored_schema import StoredSchema, describe_schema
from condgraph.languages.kopl.lower import lower
from condgraph.samples import SAMPLES
from tests.engine.test_cypher_texts import world
from tests.support.plain_layout import PlainLayout


@pytest.fixture(scope="module")
def schema() -> StoredSchema:
    graph = condgraph.open()
    graph.add(world())
    graph.load(SAMPLES[0].path, format=SAMPLES[0].format, **SAMPLES[0].options)
    return StoredSchema(describe_schema(graph.current))


def test_programs_of_other_names_have_these_texts(schema: StoredSchema) -> None:
    texts = {one.text for one in Shapes("g", schema, CONDGRAPH).texts(500)}
    for asked in (
        "Find(person 7) QueryAttr(height)",
        "Find(person 7) Relate(lives in, forward) QueryName()",
        "Find(Small Village) Relate(lives in, backward) Count()",
        "Find(Big City) Relate(lives in, backward) FilterConcept(astronaut) QueryName()",
        "FindAll() FilterNum(height, 160 centimetre, >) Count()",
        "Find(person 1) Find(person 2) QueryRelation()",
        "Find(person 1) Find(person 2) SelectBetween(height, greater)",
        "Find(person 3) QueryAttr(height) VerifyNum(170 centimetre, <)",
    ):
        made = compile_plan(optimise(lower(asked, schema).plan)[0], "g", schema)  # type: ignore[arg-type]
        assert made.text in texts, asked


_PLAIN = PlainLayout({"human": "Human", "astronaut": "Astronaut"}, {"lives in": "LIVES_IN"}, {"height": "height"})


@pytest.mark.parametrize("layout", [CONDGRAPH, _PLAIN], ids=["floats", "numbers of any kind"])
def test_every_comparison_is_there_whether_they_have_one_text_or_four(layout: Layout) -> None:
    graph = condgraph.open()
    graph.add(world())
    schema = StoredSchema(describe_schema(graph.current))
    texts = {one.text for one in Shapes("g", schema, layout).texts(500)}
    for sign in ("=", "<", ">", "!="):
        asked = f"FindAll() FilterNum(height, 160 centimetre, {sign}) Count()"
        made = compile_plan(optimise(lower(asked, schema).plan)[0], "g", schema, layout=layout)  # type: ignore[arg-type]
        assert made.text in texts, sign


def test_no_text_comes_twice_and_the_first_are_the_shortest_programs(schema: StoredSchema) -> None:
    shapes = Shapes("g", schema, CONDGRAPH)
    texts = [one.text for one in shapes.texts(300)]
    assert len(set(texts)) == len(texts) > 100
    assert [one.text for one in shapes.texts(20)] == texts[:20]
    assert "nobody" not in "".join(texts)


def test_a_graph_without_predicates_has_few() -> None:
    graph = condgraph.open()
    graph.add([Entity("a", "a")])
    assert 1 <= len(Shapes("g", StoredSchema(describe_schema(graph.current)), CONDGRAPH).texts(50)) < 10


def test_steps_take_what_is_left_over() -> None:
    steps = (("Find",), ("Relate", "r", "forward"), ("FindAll",), ("And",), ("Count",))
    assert [one["dependencies"] for one in program(steps)] == [[], [0], [], [1, 2], [3]]
    first, second = (one["inputs"][0] for one in program((("Find",), ("Find",), ("QueryRelation",)))[:2])
    assert first != second
