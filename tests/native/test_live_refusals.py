"""What SPARQL on a database of others does not answer live, and what ends a query there."""

from __future__ import annotations

import pytest

from condgraph.cypher.connection import Connection
from condgraph.engine.errors import DeadlineError, UnsupportedError
from condgraph.live.answer import Live, Solutions
from condgraph.remote_native import NativeGraph
from tests.support.native_databases import database

pytestmark = [pytest.mark.xdist_group("neo4j native"), pytest.mark.reads_data]

REFUSED = {
    "SELECT ?p { <Person/Tom> ?p ?o }": "a variable where a predicate stands",
    "SELECT ?x { ?x <pred:name> 'Tom Hanks' }": "an entity or a concept",
    "SELECT ?x { ?x <pred:fact_h> ?y }": "pred:fact_h",
    "SELECT ?x { ?x <ACTED_INN> ?y }": "'ACTED INN', which neither a relationship",
    "SELECT ?x { ?x <roles> ?y }": "neither a relationship nor a property",
    "SELECT ?x { ?x <FOLLOWS>* ?y }": "any length",
    "SELECT ?x { ?x <born>/<pred:value> ?y FILTER(?y > 'a') }": "a number with a text",
    "SELECT ?x { ?x <born>/<pred:value> 1956 }": "the literal '1956'",
    "SELECT ?x { ?x <ACTED_IN> ?m OPTIONAL { ?m <tagline> ?t } ?o <tagline> ?t }": "may be unbound",
    "SELECT ?x { ?x <ACTED_IN> ?m . { ?m <released> ?v OPTIONAL { ?x <born> ?b } } }": "variables of another one",
    "SELECT ?x { ?x <ACTED_IN> ?m FILTER(?n > 5) }": "?n, which nothing binds",
    "SELECT ?x { ?x <ACTED_IN> ?m ; <pred:name> ?n FILTER(?n < 'M') }": "the order of",
    "SELECT ?x { ?x <ACTED_IN> ?m ; <pred:name> ?n FILTER REGEX(?n, 'a.b') }": "REGEX",
    "SELECT ?x { ?x <ACTED_IN> ?m ; <pred:name> ?n FILTER(STRLEN(?n) > 5) }": "STRLEN",
    "SELECT ?x { GRAPH ?g { ?x <ACTED_IN> ?m } }": "GRAPH",
}


def test_what_is_refused_is_told_why(emptied_neo4j_uri: str) -> None:
    with database(emptied_neo4j_uri, "movies"), NativeGraph(Connection(emptied_neo4j_uri)) as graph:
        live = Live(graph.store)
        for text, reason in REFUSED.items():
            with pytest.raises(UnsupportedError) as refused:
                live.ask(text)
            assert reason in str(refused.value), text
        with pytest.raises(DeadlineError):
            live.ask(
                "SELECT (COUNT(*) AS ?n) { ?a <ACTED_IN> ?b . ?c <ACTED_IN> ?d . ?e <ACTED_IN> ?f . ?g <ACTED_IN> ?h }", timeout=0.3
            )


def test_a_value_that_no_sample_had_ends_the_query(emptied_neo4j_uri: str) -> None:
    """Of 1,000 nodes the sample says that all are numbers; what is otherwise is not left out silently."""
    with database(emptied_neo4j_uri) as driver:
        driver.execute_query("UNWIND range(1, 1200) AS i CREATE (:Thing {title: 'thing ' + i, size: i})")
        driver.execute_query("MATCH (t:Thing {title: 'thing 1200'}) SET t.size = [1, 2]")
        with NativeGraph(Connection(emptied_neo4j_uri)) as graph:
            live = Live(graph.store)
            with pytest.raises(UnsupportedError, match="'size', of which a value has another type"):
                live.ask("SELECT (COUNT(*) AS ?n) { ?t <size>/<pred:value> ?x }")
            found = live.ask("SELECT ?x { ?t <pred:name> 'thing 7' ; <size>/<pred:value> ?x }")
            assert isinstance(found, Solutions)
            assert [float(str(row[0]).split('"')[1]) for row in found.rows] == [7.0]


def test_texts_come_first_and_few_other_values_hinder_nothing(emptied_neo4j_uri: str) -> None:
    """A text leads to its nodes before anything is followed from them; one number among the codes ends
    only queries that meet it.
    """
    with database(emptied_neo4j_uri) as driver:
        driver.execute_query(
            "UNWIND range(1, 40) AS i CREATE (:Airport {code: 'C' + i, desc: 'Port ' + i, runways: i % 5, note: 'a' + (i % 3)})"
        )
        driver.execute_query("MATCH (a:Airport), (b:Airport) WHERE a.runways + 1 = b.runways CREATE (a)-[:ROUTE]->(b)")
        driver.execute_query("CREATE (:Version {code: 1.0, desc: 'v'}), (:Version {desc: 'w', note: 'a1  '})")
        with NativeGraph(Connection(emptied_neo4j_uri)) as graph:
            live = Live(graph.store)

            def asked(text: str) -> list[str]:
                found = live.ask(text)
                assert isinstance(found, Solutions)
                return [str(row[0]).split('"')[1] for row in found.rows]

            hops = 'SELECT (COUNT(DISTINCT ?b) AS ?n) { ?a <code>/<pred:value> "C5" ; <ROUTE>/<ROUTE> ?b }'
            assert asked(hops) == ["8"]
            compiled = live.compiled(hops).text
            assert compiled.index("`code` = ") < compiled.index("`ROUTE`")
            assert asked("SELECT ?n { ?a <code>/<pred:value> 'C9' ; <pred:name> ?n }") == ["Port 9"]
            assert asked("SELECT (COUNT(?c) AS ?n) { ?a <pred:instance_of>/<pred:name> 'Airport' ; <code>/<pred:value> ?c }") == [
                "40"
            ]
            with pytest.raises(UnsupportedError, match="'code', of which a value has another type"):
                asked("SELECT ?c { ?a <code>/<pred:value> ?c }")
            # White space is folded in the view.
            assert asked("SELECT (COUNT(*) AS ?n) { ?a <note>/<pred:value> 'a1' }") == ["15"]
            # 7 % 5 runways, twice and one more.
            assert asked("SELECT ?x { ?a <code>/<pred:value> 'C7' ; <runways>/<pred:value> ?r BIND(?r*2+1 AS ?x) }") == ["5.0"]
            base = f"BASE <{live.names.base}> SELECT ?x {{ ?a <code>/<pred:value> 'C7' ; <runways>/<pred:value> ?x }}"
            assert asked(base) == ["2.0"]
            with pytest.raises(UnsupportedError, match=r"the predicate <http://other\.example/code>"):
                asked("BASE <http://other.example/x> SELECT ?x { ?a <code>/<pred:value> ?x }")
