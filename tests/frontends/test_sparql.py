"""SPARQL as a language of programs: its answers are those of Oxigraph over the same graph as RDF, and all else is
refused with a reason.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from functools import partial
from typing import Any

import pytest

import condgraph
from condgraph import Graph
from condgraph.endpoint.live import Solutions, solutions_of
from condgraph.engine.errors import CondgraphError, OptionError, ParseError, UnknownNameError, UnsupportedError
from condgraph.engine.facts import Entity, EntityKind, Member, Ref, Statement
from condgraph.engine.values import Quantity, Time
from condgraph.languages.sparql.parse import parse
from condgraph.sparql.layout import GraphIris
from tests.support.lanes import by_lane
from tests.support.sparql_queries import Maker, compare
from tests.support.world import world


def films() -> Graph:
    """A graph with parallel statements, qualifiers, values of several kinds under one name, and loops."""
    graph = condgraph.open()
    said = [Entity("film", "film", EntityKind.CONCEPT), Entity("person", "person", EntityKind.CONCEPT)]
    for ident, name, concept in (("f1", "Heat", "film"), ("f2", "Ran", "film"), ("f3", "Heat", "film"), ("p1", "Al", "person"),
                                 ("p2", "Kurosawa", "person"), ("p3", "Val", "person")):  # fmt: skip
        said += [Entity(ident, name), Member(ident, concept)]
    role = "role"
    said += [
        Statement("p1", "acted in", Ref("f1"), ((role, "Vincent"),)),
        Statement("p1", "acted in", Ref("f1"), ((role, "a cop"), ("year", Time.year(1995)))),
        Statement("p3", "acted in", Ref("f1"), ((role, "Chris"), ("with", Ref("p1")))),
        Statement("p2", "directed", Ref("f2")),
        Statement("p2", "acted in", Ref("f2")),
        Statement("p1", "knows", Ref("p3")),
        Statement("p3", "knows", Ref("p2")),
        Statement("p3", "knows", Ref("p3")),
        Statement("p3", "liked", Ref("f2")),
        Statement("p3", "liked", "popcorn"),
        Statement("f1", "length", Quantity(170, "minute")),
        Statement("f2", "length", Quantity(160, "minute")),
        Statement("f3", "length", "long"),
        Statement("f1", "released", Time.parse("1995-12-15")),
        Statement("f2", "released", Time.year(1985)),
        Statement("f2", "box_office", Quantity(4.1, "dollar")),
    ]
    graph.add(said)
    return graph


def asking(graph: Any) -> Any:
    """What asks a graph, as terms; its names begin with the base of its RDF."""
    store = graph._storage.store(None)
    schema = store.naming_schema
    return partial(solutions_of, store, schema, names=GraphIris("http://condgraph.example/default/"))


@pytest.fixture(scope="module", params=[films, world], ids=["films", "world"])
def graph(request: pytest.FixtureRequest) -> Graph:
    return request.param()


def test_random_queries(graph: Graph) -> None:
    rdf = graph.rdf()
    maker, ask, found, rows = Maker.of_rdf(rdf, random.Random(7)), asking(graph), Counter[str](), 0
    while found["answered"] < by_lane(60, 3_000, 20_000):
        try:
            rows += compare(ask, rdf, maker.query()) > 0
            found["answered"] += 1
        except UnsupportedError as error:
            found[error.missing[0]] += 1
    assert found["answered"] > 0.7 * sum(found.values()), found
    assert rows > 0.3 * found["answered"]


BY_HAND = [
    # One triple, although two statements say it; and two nodes of statements.
    "SELECT ?p ?f { ?p <acted_in> ?f }",
    "SELECT ?p ?r { ?s <pred:fact_h> ?p ; <pred:fact_r> <acted_in> ; <pred:fact_t> ?f ; <role>/<pred:value> ?r }",
    "SELECT ?k (COUNT(*) AS ?n) { ?s <pred:fact_r> ?k ; <pred:fact_h> ?x } GROUP BY ?k",
    "SELECT ?a ?b { ?s <pred:fact_h> ?a ; <pred:fact_r> ?k ; <with> ?b FILTER(?k = <acted_in>) }",
    "SELECT ?x ?y { ?x <knows>+ ?y }",
    "SELECT ?x ?y { ?x <pred:instance_of>/<pred:name> 'person' . ?x <knows>* ?y }",
    "SELECT ?x ?y { ?x (<knows>|^<acted_in>)+ ?y }",
    "SELECT ?x ?y { ?x <knows>? ?y . ?y <directed> ?f }",
    "SELECT ?x ?d { ?x <released> ?v . ?v <pred:date> ?d FILTER(?d > '1990-01-01'^^xsd:date && YEAR(?d) = 1995) }",
    "SELECT ?x ?y { ?x <released>/<pred:year> ?y FILTER(?y IN (1985, 1990)) }",
    "SELECT ?x { ?x <length>/<pred:value> ?l FILTER(?l != 160) }",
    "SELECT ?x { ?x <length>/<pred:value> ?l FILTER(!(?l = 'long')) }",
    "SELECT ?x { ?x <length>/<pred:value> ?l FILTER(?l < 165 || ?l = 'long') }",
    "SELECT ?x (?l / 2 + 1 AS ?h) { ?x <length>/<pred:value> ?l } ORDER BY ?h",
    "SELECT ?x { ?x <box_office>/<pred:unit> 'dollar' }",
    "SELECT ?n (GROUP_CONCAT(?r; SEPARATOR='|') AS ?all) { ?s <pred:fact_h> ?p ; <role>/<pred:value> ?r . ?p <pred:name> ?n } "
    "GROUP BY ?n HAVING(COUNT(*) = 1)",
    "SELECT ?x ?b { ?x a <pred:Entity> OPTIONAL { ?x <released> ?v } BIND(IF(BOUND(?v), 'yes', 'no') AS ?b) }",
    "SELECT ?x { ?x a <pred:Entity> OPTIONAL { ?x <released>/<pred:year> ?y FILTER(?y < 1990) } FILTER(!BOUND(?y)) }",
    "SELECT ?x ?n { { SELECT ?x (COUNT(?f) AS ?n) { ?x <acted_in> ?f } GROUP BY ?x } ?x <pred:name> 'Al' }",
    "SELECT ?n { VALUES ?n { 'Heat' 'Nobody' } ?f <pred:name> ?n }",
    "SELECT ?f { VALUES (?f ?n) { (<f1> UNDEF) (UNDEF 'Ran') } ?f <pred:name> ?n }",
    "SELECT ?x { ?x <pred:name> ?n FILTER REGEX(?n, '^a', 'i') }",
    "SELECT ?x (UCASE(SUBSTR(?n, 1, 2)) AS ?u) (STRLEN(?n) AS ?l) { ?x <pred:name> ?n } ORDER BY DESC(?l) ?x",
    "SELECT ?x { ?x <pred:name> ?n MINUS { ?x <acted_in> ?f } MINUS { ?q <directed> ?g } }",
    "SELECT ?x { ?x a <pred:Entity> FILTER(EXISTS { ?x <knows> ?y } || NOT EXISTS { ?x <pred:instance_of>/<pred:name> 'film' }) }",
    "SELECT DISTINCT ?x { { ?x <knows> ?y } UNION { ?y <knows> ?x } } ORDER BY DESC(?x) LIMIT 2 OFFSET 1",
    "SELECT (SUM(?l) AS ?s) (AVG(?l) AS ?a) (MIN(?l) AS ?m) { ?f <length>/<pred:value> ?l FILTER(?l < 1) }",
    "SELECT (SUM(?l) AS ?s) (MAX(?l) AS ?m) (SAMPLE(?l) AS ?a) (GROUP_CONCAT(?n) AS ?g) "
    "{ ?x a <pred:Entity> OPTIONAL { ?x <box_office>/<pred:value> ?l . ?x <pred:name> ?n } }",
    "SELECT ?u (COUNT(?x) AS ?n) { ?x <directed> ?y } GROUP BY ?u",
    "SELECT (ROUND(?y) AS ?r) (FLOOR(?y) + 1 AS ?f) (CEIL(0 - ?y) AS ?c) { ?x <released>/<pred:year> ?y }",
    "SELECT ?x (ROUND(0.49999999999999994e0) AS ?r) (ROUND(-2.5e0) AS ?s) (0.10 AS ?d) { ?x <directed> ?y }",
    "SELECT ?x { ?x <directed> ?y FILTER(9007199254740993 = 9007199254740992e0) }",
    "SELECT ?x { ?x <pred:name> ?n FILTER(?n = 'Al' || EXISTS { { SELECT ?x { ?x <directed> ?y } } }) }",
    "SELECT ?a ?n { ?x <liked> ?a . ?a <pred:name> ?n }",
    "ASK { <p1> <acted_in> <f2> }",
    "ASK { <p1> <acted_in> <f1> }",
    "PREFIX : <http://condgraph.example/default/> SELECT ?x { ?x :acted_in :f1 }",
    "SELECT * { ?x <knows> ?y . ?y <knows> ?z FILTER(?x != ?z) } VALUES ?x { <p1> <p3> }",
]  # fmt: skip


@pytest.mark.parametrize("text", BY_HAND)
def test_queries(text: str) -> None:
    graph = films()
    rdf = graph.rdf()
    rows = compare(asking(graph), rdf, text)
    assert rows or "<f2> }" in text
    # What an RDF store leaves to the client is the same.
    here, there = (
        graph.query(text, language="sparql", base="http://condgraph.example/default/", engine=engine) for engine in (None, "sparql")
    )
    assert (there.columns, sorted(map(str, there.cells))) == (here.columns, sorted(map(str, here.cells)))


def test_an_answer_has_evidence_and_can_be_checked() -> None:
    answer = films().query("SELECT ?n ?l { ?f <pred:name> ?n ; <length>/<pred:value> ?l FILTER(?l > 165) }")
    assert (answer.language, answer.columns, answer.cells) == ("sparql", ("n", "l"), [("Heat", "170")])
    assert [str(one).partition("  [")[0] for one in answer.evidence] == ["Heat | length | 170 minute"]
    assert answer.check()


WARNED = {
    "SELECT ?x { ?x <unheard_of> ?y }": "the graph has no predicate",
    "SELECT (STR(?l) AS ?s) { ?x <length>/<pred:value> ?l }": "STR of a number has no value",
}


@pytest.mark.parametrize(("text", "warning"), WARNED.items(), ids=list(WARNED))
def test_what_has_no_value_is_warned_of(text: str, warning: str) -> None:
    assert films().query(text, on_unknown="empty").warnings[0].startswith(warning)


REFUSED = {
    "SELECT ?p { <f1> ?p ?o }": "a variable in place of a predicate",
    "SELECT ?x { ?x <length>/<pred:value> 170 }": "the literal '170'",
    "SELECT ?x { ?x <length> 'long' }": "a literal in place of a node",
    "SELECT ?x { ?x a <film> }": "rdf:type",
    "SELECT ?x { { SELECT ?x ?v { ?x <length> ?v } } FILTER(BOUND(?v)) }": "BOUND of ?v, which a SELECT within the query",
    "SELECT ?x { { ?x <length> ?v } UNION { SELECT ?x ?v { ?x <length> ?v } } FILTER(BOUND(?v)) }": "BOUND of ?v, which a SELECT",
    "SELECT ?x { ?x <liked>+ ?y }": "not a relation alone",
    "SELECT ?x { ?x <length>/<pred:value> ?l FILTER(SAMETERM(?l, 170)) }": "SAMETERM of a whole number and a literal",
    "SELECT ?x { ?x <directed> ?y FILTER(0.1 + 0.2 = 0.3) }": "arithmetic of decimals",
    "SELECT ?x { ?x <directed> ?f FILTER EXISTS { ?y <knows> ?z MINUS { ?x <knows> ?z } } }": "?x in EXISTS",
    "SELECT ?x { ?x <knows> ?f FILTER EXISTS { ?y <directed> ?z OPTIONAL { ?x <acted_in> ?z } } }": "?x in EXISTS",
    "SELECT ?x { ?x <knows> ?f FILTER NOT EXISTS { ?y <directed> ?z FILTER NOT EXISTS { ?x <acted_in> ?z } } }": "?x in EXISTS",
    "SELECT ?n { ?x <pred:name> ?n FILTER EXISTS { ?y <directed> ?z BIND(?n AS ?m) FILTER(?m = 'Al') } }": "?n in EXISTS",
    "SELECT ?x { GRAPH ?g { ?x <knows> ?y } }": "GRAPH",
    "CONSTRUCT { ?x <k> ?y } { ?x <knows> ?y }": "CONSTRUCT",
    "SELECT ?x { ?x <knows> ?y ; <pred:name> ?n FILTER REGEX(?n, 'a.b') }": "REGEX",
    "SELECT ?x { ?x <length> ?v } ORDER BY ?v": "an order by the node of a value",
    "SELECT ?x { ?x <knows> ?y BIND(1 AS ?y) }": "bound before",
    "SELECT ?x { ?x <pred:name> ?n . ?n <knows> ?y }": "a text",
    "SELECT ?x { VALUES ?x { 1 } }": "VALUES",
    "SELECT ?x { ?s <role>/<pred:value> ?x }": "may be an entity, or a statement",
    "SELECT ?x { ?x !<knows> ?y }": "brackets",
    "SELECT ?x { ?x <knows> ?y } LIMIT 1 garbage": "GARBAGE",
    "SELECT ?x { <http://condgraph.example/other/a> <knows> ?x }": "another graph",
}


@pytest.mark.parametrize(("text", "reason"), REFUSED.items(), ids=list(REFUSED))
def test_what_has_no_plan_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(UnsupportedError, match=re.escape(reason)):
        films().query(text, language="sparql")


def test_long_expressions() -> None:
    graph, query = films(), "SELECT ?x {{ ?x <length>/<pred:value> ?l FILTER({}) }}"
    once, often = (graph.query(query.format(" || ".join(["?l = 160"] * n)), language="sparql").values for n in (1, 1_000))
    assert once == often
    for expression, reason in (("!" * 100_000 + "(?l = 1)", "negations"), ("?l" + " + 1" * 1_000 + " > 0", "arithmetic")):
        with pytest.raises(UnsupportedError, match=reason):
            graph.query(query.format(expression), language="sparql")


def test_wrong_names() -> None:
    with pytest.raises(OptionError, match="sparql has no parameters"):
        films().prepare("SELECT ?x { ?x <knows> ?y }")
    with pytest.raises(UnknownNameError, match="acted inn") as wrong:
        films().query("SELECT ?x { ?x <acted_inn> ?y }")
    assert wrong.value.candidates[0] == "acted in"
    with pytest.raises(ParseError, match="'xx' is not declared"):
        films().query("SELECT ?x { ?x xx:a ?y }")


def test_an_undeclared_name_with_an_underscore_is_found() -> None:
    found = asking(films())("SELECT ?v { ?x <box_office>/<pred:value> ?v }")
    assert isinstance(found, Solutions)
    assert found.rows == (('"4.1"^^<http://www.w3.org/2001/XMLSchema#double>',),)


@pytest.mark.parametrize(
    "piece", ["{", "(", "SELECT ?x { ", "'", "?x <a> ", "((?x) + ", "FILTER(", "<" * 9, "VALUES (?x) { (1) ", "\\"]
)
def test_nonsense_ends_with_a_typed_error(piece: str) -> None:
    for text in (piece * (1 << 20 // len(piece)), f"SELECT ?x {{ ?x <a> ?y {piece * 100_000}"):
        with pytest.raises(CondgraphError):
            parse(text[: 1 << 20], "http://a.example/", {})


def test_a_qualifier_of_entities_alone_is_not_joined_with_all_entities() -> None:
    graph, query = films(), "SELECT ?n { ?s <pred:fact_h> ?h . ?s <%s> ?w . ?w <pred:name> ?n }"
    options = {"language": "sparql", "base": "http://condgraph.example/default/"}
    assert graph.query(query % "with", **options).texts == ["Al"]
    assert not graph.query(query % "role", **options).texts
    assert ["Join" in graph.explain(query % key, **options) for key in ("with", "role")] == [False, True]
