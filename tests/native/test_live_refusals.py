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
