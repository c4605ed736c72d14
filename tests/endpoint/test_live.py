"""`condgraph serve --live`: SPARQL on a database that condgraph did not write, without a copy."""

from __future__ import annotations

from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from tests.endpoint.test_replica import asked
from tests.endpoint.test_serve import command
from tests.support.native_databases import content, database

pytestmark = [pytest.mark.xdist_group("neo4j native"), pytest.mark.reads_data]

TITLES = "SELECT ?title { ?p <pred:name> 'Tom Hanks' ; <ACTED_IN> ?m . ?m <pred:name> ?title } ORDER BY ?title"


def test_the_database_itself_answers(emptied_neo4j_uri: str) -> None:
    with database(emptied_neo4j_uri, "movies") as driver:
        before = content(driver)
        with command("-d", emptied_neo4j_uri, "--live", "--limit", "20") as (url, process):
            found, headers = asked(url, TITLES)
            assert headers["x-condgraph-live"] == "asked"
            titles = [one["title"]["value"] for one in found["bindings"]]  # type: ignore[index]
            assert titles[0] == "A League of Their Own"
            assert len(titles) == 12
            # A result that the limit cuts says so.
            _, headers = asked(url, "SELECT ?n { ?p <ACTED_IN> ?m ; <pred:name> ?n }")
            assert headers["x-sparql-maxrows"] == "20"
            found, _ = asked(url, "ASK { ?p <pred:name> 'Tom Hanks' ; <DIRECTED> ?m }")
            assert found is True
            for text, status, reason in (
                ("SELECT ?o { ?s ?p ?o }", 501, "a variable in place of a predicate"),
                ("SELECT ?o { ?s <ACTED_INN> ?o }", 501, "ACTED_IN"),
                ("SELEC ?o", 400, "SELEC"),
            ):
                with pytest.raises(HTTPError) as refused:
                    asked(url, text)
                assert refused.value.code == status
                assert reason in refused.value.read().decode()
            with urlopen(Request(f"{url}/sparql", headers={"Accept": "text/html"}), timeout=30) as page:
                assert "what ACTED_IN leads to" in page.read().decode()
            # An IRI of a node leads to what the database says of it.
            found, _ = asked(url, "SELECT ?p { ?p <pred:name> 'Tom Hanks' ; <ACTED_IN> ?m } LIMIT 1")
            iri = found["bindings"][0]["p"]["value"]  # type: ignore[index]
            here = Request(iri.replace("http://condgraph.example", url), headers={"Accept": "application/n-triples"})
            with urlopen(here, timeout=30) as page:
                said = page.read().decode().splitlines()
            assert all(line.startswith(f"<{iri}> ") for line in said)
            assert {
                line.split(" ", 1)[1] for line in said if "instance_of" in line or "#type" in line or "<pred:name>" in line
            } == {
                "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <pred:Entity> .",
                '<pred:name> "Tom Hanks" .',
                "<pred:instance_of> <http://condgraph.example/neo4j/%3APerson> .",
            }
            assert sum("/ACTED%5FIN>" in line for line in said) == 12
            assert sum("/born> <http://condgraph.example/neo4j/.v/q/1956/1>" in line for line in said) == 1
            with urlopen(Request(f"{url}/neo4j/:Person", headers={"Accept": "text/turtle"}), timeout=30) as page:
                assert "a pred:Concept" in page.read().decode()
            with pytest.raises(HTTPError) as missing:
                urlopen(Request(f"{url}/neo4j/nobody", headers={"Accept": "text/turtle"}), timeout=30)
            assert missing.value.code == 404
            assert before == content(driver)
            # What is written meanwhile is there at once.
            driver.execute_query("MATCH (p:Person {name: 'Tom Hanks'}) CREATE (p)-[:ACTED_IN]->(:Movie {title: 'Zero Hour'})")
            assert "Zero Hour" in str(asked(url, TITLES)[0])
            assert process.poll() is None


@pytest.mark.slow
def test_what_is_too_large_for_a_replica_is_asked_live(emptied_neo4j_uri: str) -> None:
    with database(emptied_neo4j_uri, "movies"), command("-d", emptied_neo4j_uri, "--replica-size", "10") as (url, process):
        assert "Cloud Atlas" in str(asked(url, TITLES)[0])
        process.terminate()
        _, said = process.communicate(timeout=20)
    assert "SPARQL asks the database where it is (--live)" in said
