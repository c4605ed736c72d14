"""What SPARQL on a database of others does not answer live, and what ends a query there."""

from __future__ import annotations

import pytest

from condgraph.cypher.connection import Connection
from condgraph.endpoint.live import Live, Solutions
from condgraph.engine.errors import DeadlineError, UnknownNameError, UnsupportedError
from condgraph.remote_native import NativeGraph
from tests.support.native_databases import database

pytestmark = [pytest.mark.xdist_group("neo4j native"), pytest.mark.reads_data]

REFUSED = {
    "SELECT ?p { <Person/Tom> ?p ?o }": "a variable in place of a predicate",
    "SELECT ?x { ?x <pred:fact_h> ?y }": "the node of a statement as a result",
    "SELECT ?x { ?x <ACTED_INN> ?y }": "unknown predicate 'ACTED INN'; nearest: 'ACTED_IN'",
    "SELECT ?x { ?x <roles> ?y }": "a statement with the qualifier 'roles'",
    "SELECT ?x { ?x <born>/<pred:value> 1956 }": "the literal '1956'",
    "SELECT ?x { ?x <ACTED_IN> ?m ; <pred:name> ?n FILTER REGEX(?n, 'a.b') }": "REGEX",
    "SELECT ?x { GRAPH ?g { ?x <ACTED_IN> ?m } }": "GRAPH",
}


def test_what_is_refused_is_told_why(emptied_neo4j_uri: str) -> None:
    with database(emptied_neo4j_uri, "movies"), NativeGraph(Connection(emptied_neo4j_uri)) as graph:
        live = Live(graph.store)
        for text, reason in REFUSED.items():
            with pytest.raises((UnsupportedError, UnknownNameError)) as refused:
                live.ask(text)
            assert reason in str(refused.value), text
        with pytest.raises(DeadlineError):
            live.ask(
                "SELECT (COUNT(*) AS ?n) { ?a <ACTED_IN> ?b . ?c <ACTED_IN> ?d . ?e <ACTED_IN> ?f . ?g <ACTED_IN> ?h }", timeout=0.3
            )


def test_a_value_that_no_sample_had_is_what_it_is(emptied_neo4j_uri: str) -> None:
    """Of 1,000 nodes the sample says that all are numbers; what is otherwise is not left out."""
    with database(emptied_neo4j_uri) as driver:
        driver.execute_query("UNWIND range(1, 1200) AS i CREATE (:Thing {title: 'thing ' + i, size: i})")
        driver.execute_query("MATCH (t:Thing {title: 'thing 1200'}) SET t.size = [1, 2]")
        with NativeGraph(Connection(emptied_neo4j_uri)) as graph:
            assert asked(Live(graph.store), "SELECT (COUNT(*) AS ?n) { ?t <size>/<pred:value> ?x }") == ["1201"]
            assert asked(Live(graph.store), "SELECT ?x { ?t <pred:name> 'thing 7' ; <size>/<pred:value> ?x }") == ["7.0"]


def asked(live: Live, text: str) -> list[str]:
    """The first column of a result."""
    found = live.ask(text)
    assert isinstance(found, Solutions)
    return [str(row[0]).split('"')[1] for row in found.rows]


def test_values_of_few_other_types_hinder_nothing(emptied_neo4j_uri: str) -> None:
    with database(emptied_neo4j_uri) as driver:
        driver.execute_query(
            "UNWIND range(1, 40) AS i CREATE (:Airport {code: 'C' + i, desc: 'Port ' + i, runways: i % 5, note: 'a' + (i % 3)})"
        )
        driver.execute_query("MATCH (a:Airport), (b:Airport) WHERE a.runways + 1 = b.runways CREATE (a)-[:ROUTE]->(b)")
        driver.execute_query("CREATE (:Version {code: 1.0, desc: 'v'}), (:Version {desc: 'w', note: 'a1  '})")
        with NativeGraph(Connection(emptied_neo4j_uri)) as graph:
            live = Live(graph.store)
            hops = 'SELECT (COUNT(DISTINCT ?b) AS ?n) { ?a <code>/<pred:value> "C5" ; <ROUTE>/<ROUTE> ?b }'
            assert asked(live, hops) == ["8"]
            assert asked(live, "SELECT ?n { ?a <code>/<pred:value> 'C9' ; <pred:name> ?n }") == ["Port 9"]
            airports = "?a <pred:instance_of>/<pred:name> 'Airport' ; <code>/<pred:value> ?c"
            assert asked(live, f"SELECT (COUNT(?c) AS ?n) {{ {airports} }}") == ["40"]
            assert len(asked(live, "SELECT ?c { ?a <code>/<pred:value> ?c }")) == 41
            # White space is folded in the view.
            assert asked(live, "SELECT (COUNT(*) AS ?n) { ?a <note>/<pred:value> 'a1' }") == ["15"]
            # 7 % 5 runways, twice and one more.
            assert asked(live, "SELECT ?x { ?a <code>/<pred:value> 'C7' ; <runways>/<pred:value> ?r BIND(?r*2+1 AS ?x) }") == [
                "5.0"
            ]
            base = f"BASE <{live.names.base}> SELECT ?x {{ ?a <code>/<pred:value> 'C7' ; <runways>/<pred:value> ?x }}"
            assert asked(live, base) == ["2.0"]
            with pytest.raises(UnknownNameError, match=r"http://other\.example/code"):
                asked(live, "BASE <http://other.example/x> SELECT ?x { ?a <code>/<pred:value> ?x }")
