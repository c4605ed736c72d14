"""Databases that condgraph did not write, asked where they are: what programs say there is what they
say of the same database pulled into process, and what Cypher says that was written by hand.
"""

from __future__ import annotations

import random
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import neo4j
import pytest

from condgraph.cypher.connection import Connection
from condgraph.engine.errors import ReadOnlyError, UnknownNameError, UnsupportedError
from condgraph.engine.values import Quantity, Time, text_of
from condgraph.graph import Graph
from condgraph.remote_native import NativeGraph
from tests.matrix.test_match_neo4j import shown
from tests.search.worlds import a_walk
from tests.support import llm_programs
from tests.support.differential import Comparison, Outcome, outcome
from tests.support.lanes import by_lane
from tests.support.native_databases import content, database, planned, reading_data
from tests.support.programs import Words, as_text
from tests.support.programs import program as kopl_program

pytestmark = pytest.mark.xdist_group("neo4j native")


#: What a warning says of a label that a program takes for an entity.
_LABEL_NAMED = re.compile("is a label of this database, and no entity").search


class Pick:
    """Choices that are the same each time."""

    def __init__(self, seed: int) -> None:
        self._dice = random.Random(seed)

    def below(self, most: int) -> int:
        return self._dice.randrange(most)

    def one(self, choices: Sequence[Any]) -> Any:
        return self._dice.choice(list(choices))


@dataclass(frozen=True)
class Pair:
    """A database asked where it is, the same one in process, and what it held before."""

    here: Graph
    there: NativeGraph
    driver: neo4j.Driver
    name: str
    before: dict[str, Any]

    def rows(self, text: str) -> list[list[Any]]:
        """The rows of Cypher."""
        with self.driver.session(default_access_mode="READ") as session:
            return [row.values() for row in session.run(text)]


@pytest.fixture(scope="module", params=[*reading_data("movies", nightly=("northwind",)), "social", "ledger", "awkward"])
def pair(request: pytest.FixtureRequest, emptied_neo4j_uri: str) -> Iterator[Pair]:
    with database(emptied_neo4j_uri, request.param) as driver, NativeGraph(Connection(emptied_neo4j_uri)) as there:
        before = content(driver)
        yield Pair(there.snapshot(), there, driver, request.param, before)
        # Whatever was asked above: nothing was written.
        assert content(driver) == before


def words_of(graph: Graph) -> Words:
    """What programs over a graph are made of: some of its names and values."""
    snapshot, dice = graph.current, random.Random(1)
    values = [snapshot.value("att", number) for number in range(len(snapshot.arrays.get("att.kind")))]

    def some(kind: type) -> list[Any]:
        found = sorted({value for value in values if isinstance(value, kind)}, key=text_of)
        return dice.sample(found, min(len(found), 40))

    names = sorted({snapshot.name(number) for number in range(snapshot.entities)})
    schema, quantities = snapshot.schema, some(Quantity) or [Quantity(1)]
    units = sorted({"1", *(one.unit for one in quantities)})
    return Words(
        [*dice.sample(names, min(len(names), 60)), *schema.concepts], schema.attributes, schema.relations,
        schema.qualifiers, units, some(str), quantities, some(Time) or [Time.year(2000)],
    )  # fmt: skip


def report(found: Comparison) -> str:
    return found.report(most=4)[:6_000]


def labels_named(pair: Pair, program: str) -> bool:
    """Whether the answer says that a label is no entity."""
    return any(map(_LABEL_NAMED, pair.there.query(program).warnings))


def more_often(here: Outcome, there: Outcome) -> bool:
    """Whether an answer there is that in process with some values once more."""
    extra = Counter(there.values)
    extra.subtract(here.values)
    same = replace(there, values=here.values) == here
    return same and set(there.values) == set(here.values) and min(extra.values(), default=0) >= 0


def test_equal_relationships_are_counted(pair: Pair) -> None:
    """Where relationships are equal to others a snapshot is smaller, and says so."""
    equal = pair.rows("MATCH (a)-[r]->(b) WITH a, b, type(r) AS t, properties(r) AS p, count(*) AS n RETURN sum(n - 1)")[0][0]
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        pair.there.snapshot()
    told = [str(one.message) for one in said if "equal to another" in str(one.message)]
    assert bool(equal) is (pair.name == "social")
    assert len(told) == bool(equal)
    assert all(one.startswith(f"{equal} relationships are equal to another in ends, type and properties") for one in told)


def test_labels_are_no_entities(pair: Pair) -> None:
    """What gives a concept in process gives nothing here, or less, and says so."""
    if pair.name != "awkward":
        pytest.skip("asked of the awkward database alone")
    counted = pair.there.query('Find("it\'s") Count()')
    assert counted.values == [2]
    assert pair.here.query('Find("it\'s") Count()').values == [3]
    assert counted.warnings == ['"it\'s" is a label of this database, and no entity: its nodes are the members of that concept']
    assert not pair.there.query('FindAll() FilterConcept("it\'s") Count()').warnings


def test_random_kopl(pair: Pair) -> None:
    words, found = words_of(pair.here), Comparison(pair.here, pair.there)
    for seed in range(by_lane(3, 12, 200)):
        found.ask(as_text(kopl_program(Pick(seed), words=words, most=3)))
    # A name that is written otherwise is known there, and none in process.
    found.different = [one for one in found.different if not one[1].error.startswith("UnknownNameError")]
    # A label is an entity in process as well, where its name is given; here the answer says that it is none.
    found.different = [one for one in found.different if not labels_named(pair, one[0])]
    assert not found.different, report(found)
    assert found.equal > sum(found.errors.values())


def test_random_llm_queries(pair: Pair) -> None:
    words, found = words_of(pair.here), Comparison(pair.here, pair.there)
    relations = [*words.relations, *words.attributes]
    literals = [*words.names[:20], *map(text_of, [*words.texts[:15], *words.quantities[:15], *words.times[:15]])]
    keys = [*words.qualifiers, *words.attributes, "instance of"]
    objects = dict.fromkeys([*relations, *keys], literals)
    vocabulary = llm_programs.Vocabulary((), relations, keys, (words.names, words.names), literals, objects)
    for seed in range(by_lane(2, 5, 200)):
        found.ask(llm_programs.program(Pick(seed), tables=False, words=vocabulary))
    if pair.name == "social":
        # Some of its relationships are equal to others, and are one statement in process.
        found.different = [one for one in found.different if not more_often(*one[1:])]
    assert not found.different, report(found)


def test_generated_questions(pair: Pair) -> None:
    """What they rest on, too, which is enough for them."""
    found = Comparison(pair.here, pair.there)
    for question in pair.here.generate(by_lane(2, 4, 40), seed=5):
        program = question.program or question.llm_query
        found.ask(program, evidence=True)
        checked = pair.there.query(program).check()
        assert checked, (program, str(checked))
    assert not found.different, report(found)


#: Programs, and Cypher for the texts of their answers, written without them in view of each other.
BY_HAND: dict[str, list[tuple[str, str]]] = {
    "movies": [
        ("Find(Keanu Reeves) QueryAttr(born)", "MATCH (p:Person {name: 'Keanu Reeves'}) RETURN toString(p.born)"),
        ("FindAll() FilterConcept(Movie) Count()", "MATCH (m:Movie) RETURN toString(count(m))"),
        ("FindAll() Count()", "MATCH (n) RETURN toString(count(n))"),
        (
            "Find(The Matrix) Relate(ACTED_IN, backward) QueryName()",
            "MATCH (p)-[:ACTED_IN]->(:Movie {title: 'The Matrix'}) RETURN DISTINCT p.name",
        ),
        (
            "Find(Tom Hanks) Relate(ACTED_IN, forward) Count()",
            "MATCH (:Person {name: 'Tom Hanks'})-[:ACTED_IN]->(m) RETURN toString(count(DISTINCT m))",
        ),
        (
            "FindAll() FilterConcept(Movie) FilterNum(released, 2000, <) Count()",
            "MATCH (m:Movie) WHERE m.released < 2000 RETURN toString(count(m))",
        ),
        (
            "FindAll() FilterConcept(Movie) FilterNum(released, 1999, =) QueryName()",
            "MATCH (m:Movie {released: 1999}) RETURN m.title",
        ),
        (
            "FindAll() FilterConcept(Movie) SelectAmong(released, smallest)",
            "MATCH (m:Movie) WITH min(m.released) AS least MATCH (m:Movie {released: least}) RETURN m.title",
        ),
        (
            "Find(Tom Hanks) Find(Cloud Atlas) QueryRelationQualifier(ACTED_IN, roles)",
            "MATCH (:Person {name: 'Tom Hanks'})-[r:ACTED_IN]->(:Movie {title: 'Cloud Atlas'}) UNWIND r.roles AS role RETURN role",
        ),
        (
            "FindAll() Relate(REVIEWED, forward) QFilterNum(rating, 80, >) QueryName()",
            "MATCH ()-[r:REVIEWED]->(m) WHERE r.rating > 80 RETURN DISTINCT m.title",
        ),
        (
            "Find(Tom Hanks) Relate(ACTED_IN, forward) Find(Tom Hanks) Relate(DIRECTED, forward) And() QueryName()",
            "MATCH (p:Person {name: 'Tom Hanks'})-[:ACTED_IN]->(m)<-[:DIRECTED]-(p) RETURN m.title",
        ),
        (
            "Find(Joel Silver) Relate(PRODUCED, forward) Relate(DIRECTED, backward) QueryName()",
            "MATCH (:Person {name: 'Joel Silver'})-[:PRODUCED]->()<-[:DIRECTED]-(d) RETURN DISTINCT d.name",
        ),
        (
            "Find(Tom Hanks) Find(Meg Ryan) SelectBetween(born, less)",
            "MATCH (p:Person) WHERE p.name IN ['Tom Hanks', 'Meg Ryan'] RETURN p.name ORDER BY p.born LIMIT 1",
        ),
        (
            "Find(Tom Hanks) Find(That Thing You Do) QueryRelation()",
            "MATCH (:Person {name: 'Tom Hanks'})-[r]->(:Movie {title: 'That Thing You Do'}) RETURN DISTINCT type(r)",
        ),
        (
            "Find(Laurence Fishburne) QueryAttr(born) VerifyNum(1960, >)",
            "MATCH (p:Person {name: 'Laurence Fishburne'}) RETURN CASE WHEN p.born > 1960 THEN 'yes' ELSE 'no' END",
        ),
        (
            "FindAll() FilterStr(tagline, Welcome to the Real World) QueryName()",
            "MATCH (m:Movie {tagline: 'Welcome to the Real World'}) RETURN m.title",
        ),
        (
            "FindAll() FilterConcept(Person) FilterNum(born, 1974, >=) FilterNum(born, 1978, <=) QueryName()",
            "MATCH (p:Person) WHERE 1974 <= p.born <= 1978 RETURN p.name",
        ),
        (
            "Find(Jessica Thompson) Relate(FOLLOWS, backward) QueryName()",
            "MATCH (p)-[:FOLLOWS]->(:Person {name: 'Jessica Thompson'}) RETURN p.name",
        ),
        (
            "Query1: \"get_information(relation='WROTE')\"\nQuery2: \"count(set='output_of_query1')\"",
            "MATCH ()-[r:WROTE]->(m) RETURN toString(count(DISTINCT m.title))",
        ),
        (
            "Query1: \"get_information(relation='released', tail_entity>'2005')\"",
            "MATCH (m:Movie) WHERE m.released > 2005 RETURN m.title",
        ),
        (
            "Query1: \"get_information(head_entity='Clint Eastwood', relation='DIRECTED')\"",
            "MATCH (:Person {name: 'Clint Eastwood'})-[:DIRECTED]->(m) RETURN m.title",
        ),
    ],
    "northwind": [
        ("FindAll() FilterConcept(Product) Count()", "MATCH (p:Product) RETURN toString(count(p))"),
        ("Find(Chai) QueryAttr(unitPrice)", "MATCH (p:Product {productName: 'Chai'}) RETURN toString(toInteger(p.unitPrice))"),
        (
            "Find(Chai) Relate(PART_OF, forward) QueryName()",
            "MATCH (:Product {productName: 'Chai'})-[:PART_OF]->(c) RETURN c.categoryName",
        ),
        (
            "Find(Exotic Liquids) Relate(SUPPLIES, forward) QueryName()",
            "MATCH (:Supplier {companyName: 'Exotic Liquids'})-[:SUPPLIES]->(p) RETURN p.productName",
        ),
        (
            "FindAll() FilterConcept(Product) SelectAmong(unitPrice, largest)",
            "MATCH (p:Product) RETURN p.productName ORDER BY p.unitPrice DESC LIMIT 1",
        ),
        (
            "FindAll() FilterConcept(Product) FilterNum(unitsInStock, 0, =) QueryName()",
            "MATCH (p:Product {unitsInStock: 0}) RETURN p.productName",
        ),
        (
            "FindAll() FilterConcept(Customer) FilterStr(country, Germany) Count()",
            "MATCH (c:Customer {country: 'Germany'}) RETURN toString(count(c))",
        ),
        (
            "FindAll() FilterConcept(Product) FilterStr(discontinued, true) QueryName()",
            "MATCH (p:Product {discontinued: true}) RETURN p.productName",
        ),
        (
            "Find(Alfreds Futterkiste) Relate(PURCHASED, forward) Count()",
            "MATCH (:Customer {companyName: 'Alfreds Futterkiste'})-[:PURCHASED]->(o) RETURN toString(count(o))",
        ),
        (
            "Find(Alfreds Futterkiste) Relate(PURCHASED, forward) Relate(ORDERS, forward) QueryName()",
            "MATCH (:Customer {companyName: 'Alfreds Futterkiste'})-[:PURCHASED]->()-[:ORDERS]->(p) RETURN DISTINCT p.productName",
        ),
        (
            "FindAll() Relate(ORDERS, forward) QFilterNum(quantity, 120, >=) QueryName()",
            "MATCH ()-[r:ORDERS]->(p) WHERE r.quantity >= 120 RETURN DISTINCT p.productName",
        ),
        (
            "Find(Order 10248) Relate(ORDERS, forward) QueryName()",
            "MATCH (:Order {orderID: '10248'})-[:ORDERS]->(p) RETURN p.productName",
        ),
        ("Find(Order 10248) QueryAttr(freight)", "MATCH (o:Order {orderID: '10248'}) RETURN o.freight"),
        (
            "Find(Beverages) Relate(PART_OF, backward) FilterNum(unitPrice, 20, <) QueryName()",
            "MATCH (p:Product)-[:PART_OF]->(:Category {categoryName: 'Beverages'}) WHERE p.unitPrice < 20 RETURN p.productName",
        ),
    ],
}


def test_cypher_by_hand(pair: Pair) -> None:
    wrong = {}
    for program, text in BY_HAND.get(pair.name, ()):
        expected, found = sorted(row[0] for row in pair.rows(text)), sorted(pair.there.query(program).texts)
        if found != expected:
            wrong[program] = found[:9], expected[:9]
    assert not wrong


def test_what_an_answer_rests_on(pair: Pair) -> None:
    """Evidence, trace, warnings and the check of a program are those in process."""
    words = words_of(pair.here)
    for seed in range(by_lane(1, 3, 60)):
        program = as_text(kopl_program(Pick(seed), words=words, most=2, wrong=False))
        here = outcome(pair.here, program, warnings=True, evidence=True)
        there = outcome(pair.there, program, warnings=True, evidence=True)
        if any(map(_LABEL_NAMED, there.warnings)):
            continue
        # Where a statement stands is the address of the server in both.
        assert there.evidence == here.evidence, program
        assert there.texts == here.texts, program
        assert set(there.warnings) == set(here.warnings), program
    trace = pair.there.kopl("FindAll() Count()").trace
    assert [step.function for step in trace] == ["FindAll", "Count"]
    assert trace[0].size == pair.here.kopl("FindAll() Count()").values[0]


def test_patterns(pair: Pair) -> None:
    if pair.name not in by_lane(("movies", "social"), (pair.name,), (pair.name,)):
        return
    dice, snapshot = random.Random(4), pair.here.current
    asked: list[tuple[Any, dict[str, Any]]] = [(a_walk(dice, snapshot), {}) for _ in range(by_lane(1, 12, 60))]
    label, name = snapshot.schema.concepts[0], snapshot.schema.attributes[0]
    asked.append(([("UNKNOWN 1", "instance of", label), ("UNKNOWN 1", name, "> 0")], {"k": 2}))
    asked.append(([("UNKNOWN thing 1", snapshot.schema.relations[0], "UNKNOWN 2")], {"k_types": 1, "group_by": "thing 1"}))
    for pattern, options in asked:
        here, there = (graph.match(pattern, **options) for graph in (pair.here, pair.there))
        assert shown(there) == shown(here), pattern
        assert there.texts == here.texts
    if pair.name == "movies":
        found = pair.there.match([("UNKNOWN 1", "ACTED_IN", "The Matrix"), ("UNKNOWN 1", "ACTED_IN", "Cloud Atlas")], k=1)
        # The statements of the two films, and of the 253 no other.
        assert found.texts
        assert found.report.rows < 20


def test_other_spellings(pair: Pair) -> None:
    """ACTED_IN is "acted in" as well, where nothing else is."""
    if pair.name != "movies":
        return
    spelled = pair.there.kopl("Find(The Matrix) Relate(acted in, backward) FilterConcept(person) Count()")
    assert spelled.values == pair.there.kopl("Find(The Matrix) Relate(ACTED_IN, backward) Count()").values == [5]
    assert {one.predicate for one in spelled.evidence} == {"ACTED_IN", "instance of"}
    with pytest.raises(UnknownNameError) as raised:
        pair.there.kopl("Find(The Matrix) Relate(acted on, backward)")
    assert "ACTED_IN" in raised.value.candidates


def test_indexes_are_asked(pair: Pair) -> None:
    """Names, ranges of numbers and times are looked up in the indexes that the database has."""
    if pair.name != "movies":
        return
    for program, operator in (
        ("Find(Keanu Reeves) QueryAttr(born)", "NodeUniqueIndexSeek"),
        ("FindAll() FilterConcept(Person) FilterNum(born, 1980, >) Count()", "NodeIndexSeekByRange"),
        ("FindAll() FilterNum(released, 1999, =) QueryName()", "NodeIndexSeek"),
    ):
        with pair.driver.session(default_access_mode="READ") as session:
            _, plan = planned(session, pair.there, program)
        assert operator in plan, (program, plan)
        assert "NodeByLabelScan" not in plan, (program, plan)


def test_nothing_can_be_written(pair: Pair) -> None:
    with pytest.raises(ReadOnlyError):
        pair.there.load([{"a": 1}])
    with pytest.raises(ReadOnlyError):
        pair.there.cypher("CREATE (n:Person) RETURN n")
    with pytest.raises(UnsupportedError):
        pair.there.match([("UNKNOWN x", "knows", "y")], exact=False)
