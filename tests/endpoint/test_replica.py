"""`condgraph serve` over graphs in Neo4j: a replica in RDF, in step with the graph, and the headers
that say of which state an answer is.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

import pytest

import condgraph
from condgraph.samples import SAMPLES
from tests.endpoint.test_serve import command
from tests.support.native_databases import content, database

pytestmark = pytest.mark.xdist_group("neo4j")

NAME = "replica"
QUERIES = (
    "SELECT ?s ?p ?o { ?s ?p ?o } ORDER BY ?s ?p ?o",
    "SELECT ?name (COUNT(*) AS ?n) { ?s ?p ?o . ?s <pred:name> ?name } GROUP BY ?name ORDER BY DESC(?n) ?name",
    "ASK { ?s <pred:name> 'Nepal' }",
    "SELECT ?c { ?c a <pred:Concept> ; <pred:name> ?name FILTER(STRLEN(?name) > 5) } ORDER BY ?c",
)


def asked(address: str, query: str) -> tuple[object, dict[str, str]]:
    """The results of a query, and the headers of the answer."""
    request = Request(f"{address}/sparql?query={quote(query)}", headers={"Accept": "application/sparql-results+json"})
    with urlopen(request, timeout=60) as answer:
        found = json.loads(answer.read())
        return found.get("boolean", found.get("results")), {name.lower(): value for name, value in answer.headers.items()}


@pytest.fixture(scope="module")
def filled(neo4j_uri: str) -> Iterator[str]:
    with condgraph.open(neo4j_uri, graph=NAME) as graph:
        graph.delete()
        graph.load(SAMPLES[0].path, format=SAMPLES[0].format, **SAMPLES[0].options)
        yield neo4j_uri
        graph.delete()


def test_the_replica_is_the_graph_and_follows_it(filled: str, tmp_path: Path) -> None:
    """The same answers as the graph served from a folder; a load is seen, and the header changes."""
    local = tmp_path / "local"
    with condgraph.open(local, graph=NAME) as graph:
        graph.load(SAMPLES[0].path, format=SAMPLES[0].format, **SAMPLES[0].options)
    with command("-d", filled, "--graph", NAME, "--limit", "0") as (url, process):
        with command("-d", str(local), "--graph", NAME, "--limit", "0") as (beside, _):
            for query in QUERIES:
                found, headers = asked(url, query)
                expected, plain = asked(beside, query)
                assert found == expected, query
                assert headers["x-condgraph-content"]
                assert headers["x-condgraph-read"].startswith("20")
                assert "x-condgraph-content" not in plain
        before = headers["x-condgraph-content"]
        table = tmp_path / "more.csv"
        table.write_text("name,height\nMount Nowhere,4711\n")
        with condgraph.open(filled, graph=NAME) as graph:
            graph.load(table, key="name")
        until = time.monotonic() + 60
        while True:
            there, headers = asked(url, "ASK { ?s <pred:name> 'Mount Nowhere' }")
            # The header says the state that the answer is of, also while the next one is read.
            assert there is (headers["x-condgraph-content"] != before)
            if there:
                break
            assert time.monotonic() < until, headers
            time.sleep(0.1)
        assert process.poll() is None


def test_a_graph_that_is_too_large_has_no_sparql_and_says_why(filled: str) -> None:
    with command("-d", filled, "--graph", NAME, "--replica-size", "10") as (url, process):
        with pytest.raises(HTTPError) as refused:
            asked(url, QUERIES[0])
        assert refused.value.code == 404
        process.terminate()
        _, said = process.communicate(timeout=20)
    assert "SPARQL is not available" in said
    assert "--replica-size" in said


@pytest.mark.reads_data
@pytest.mark.slow
def test_a_database_of_others(emptied_neo4j_uri: str) -> None:
    """A database that condgraph did not write is served, and stays as it was."""
    with database(emptied_neo4j_uri, "movies") as driver:
        before = content(driver)
        with condgraph.open(emptied_neo4j_uri) as graph:
            expected = graph.kopl("Find(Tom Hanks) Relate(ACTED_IN, forward) QueryName()").texts
        with command("-d", emptied_neo4j_uri, "--refresh", "2") as (url, _):
            text = "SELECT ?title { ?p <pred:name> 'Tom Hanks' ; <ACTED_IN> ?m . ?m <pred:name> ?title }"
            found, headers = asked(url, text)
            assert sorted(one["title"]["value"] for one in found["bindings"]) == sorted(expected)  # type: ignore[index]
            assert before == content(driver)
            # Counts do not tell of a renamed film; its age does.
            driver.execute_query("MATCH (m:Movie {title: 'Apollo 13'}) SET m.title = 'Apollo 14'")
            until = time.monotonic() + 60
            while "Apollo 14" not in str(asked(url, text)[0]):
                assert time.monotonic() < until
                time.sleep(0.2)
            assert asked(url, text)[1]["x-condgraph-read"] > headers["x-condgraph-read"]
