"""RDF of others, served: asked by its own IRIs over HTTP, in every format, by the clients that
there are.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyoxigraph as ox
import pytest
import rdflib

import condgraph
from tests.endpoint.test_serve import command
from tests.support.foreign_rdf import DBPEDIA, GRAPHS, PREFIXES
from tests.support.serving import ask

pytestmark = pytest.mark.service
BASE = "http://mine.example/cities/"
LEIPZIG = "SELECT * { <http://dbpedia.org/resource/Leipzig> ?p ?o }"
CSV = {"Accept": "text/csv"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("foreign")
    (place / "cities.ttl").write_text(PREFIXES + DBPEDIA, encoding="utf-8")
    (place / "graphs.trig").write_text(PREFIXES + GRAPHS, encoding="utf-8")
    (place / "codes.csv").write_text("post_code,city\n04109,Leipzig\n", encoding="utf-8")
    with condgraph.open(place / "store") as graph:
        graph.load([place / "cities.ttl", place / "graphs.trig"])
        graph.load(place / "codes.csv", key="post_code")
    return place


@pytest.fixture(scope="module")
def served(folder: Path) -> Iterator[str]:
    with command("-d", str(folder / "store"), "--base", BASE, "--limit", "400") as (url, _):
        yield url


def test_by_its_own_iris(served: str, folder: Path) -> None:
    reply = ask(served, query=LEIPZIG, headers=CSV)
    assert reply.text.count("\n") == 14
    assert "http://dbpedia.org/resource/Germany" in reply.text
    made = ask(served, query="CONSTRUCT { ?s ?p ?o } WHERE { GRAPH ?g { ?s ?p ?o } FILTER(STRENDS(STR(?g), '.rdf/')) }")
    got, wanted = ox.Dataset(ox.parse(made.body, ox.RdfFormat.TURTLE)), ox.Dataset()
    for name in ("cities.ttl", "graphs.trig"):
        for quad in ox.parse(path=str(folder / name)):
            wanted.add(ox.Quad(quad.subject, quad.predicate, quad.object))
    assert len(got) == len(wanted)
    members = "SELECT ?m { dbr:Leipzig dbo:twin/rdf:rest*/rdf:first ?m }"
    assert ask(served, query=members, headers=CSV).text.count("\n") == 4


def test_named_graphs_and_the_default_graph(served: str) -> None:
    x = "http://x.org/a#"
    assert ask(served, query=f"ASK {{ GRAPH <{x}h> {{ <{x}a> <{x}p> <{x}b> }} }}", headers=CSV).text.strip() == "true"
    # What stands in two graphs is one triple of the default graph.
    assert ask(served, query=f"SELECT ?o {{ <{x}a> <{x}p> ?o }}", headers=CSV).text == f"o\r\n{x}b\r\n"
    for name in ("default", "graph=http://x.org/a%23g"):
        assert ask(served, path=f"/data?{name}").status == 200
    everything = ask(served, path="/data?format=nquads")
    graphs = {quad.graph_name.value for quad in ox.parse(everything.body, ox.RdfFormat.N_QUADS)}
    assert {BASE, f"{BASE}.rdf/", f"{x}g", f"{x}h"} <= graphs
    assert rdflib.Dataset().parse(data=ask(served, path="/data").text, format="trig")


def test_a_base_of_ones_own_prefixes_and_underscores(served: str) -> None:
    assert ask(served, query="SELECT ?l { <Leipzig> rdfs:label ?l }", headers=CSV).status == 200
    found = ask(served, query="SELECT ?c { ?c <post_code>/<pred:value> ?v } LIMIT 1", headers=CSV)
    assert found.text.startswith(f"c\r\n{BASE}")
    assert ask(served, query="SELECT ?c { ?c <no_such>/<pred:value> ?v } LIMIT 1", headers=CSV).text == "c\r\n"
    wrong = ask(served, query="SELECT * { ?s dbx:y ?o }")
    assert (wrong.status, wrong.text.partition(";")[0]) == (400, "line 1, column 15: the prefix dbx: is not declared")
    # What is written another way is told as it was written.
    wrong = ask(served, query="SELECT * { ?s <post_code> ?o } LIMT 3")
    assert wrong.text.startswith("line 1, column 32: 'LIMT' is not a word of SPARQL; the nearest: LIMIT")


def test_formats_by_name(served: str) -> None:
    for name, media_type in (
        ("csv", "text/csv"),
        ("XML", "application/sparql-results+xml"),
        ("application/json", "application/json"),
        ("tsv", "text/tab-separated-values"),
    ):
        assert ask(served, format=name, query=LEIPZIG).media_type == media_type
    for name, media_type in (("nt", "application/n-triples"), ("trig", "application/trig"), ("turtle", "text/turtle")):
        assert ask(served, format=name, query="DESCRIBE dbr:Leipzig").media_type == media_type
    # Clients send several names, and Accept beside them.
    assert ask(served, query=LEIPZIG, format=["odd", "json"]).media_type == "application/sparql-results+json"
    assert ask(served, format="odd", query=LEIPZIG, headers=CSV).media_type == "text/csv"
    refused = ask(served, format="odd", query=LEIPZIG)
    assert (refused.status, refused.text) == (406, "format='odd' cannot be given here; there is: json, xml, csv, tsv\n")


def test_gzip(served: str) -> None:
    everything = "CONSTRUCT WHERE { ?s ?p ?o }"
    plain = ask(served, query=everything, headers={"Accept": "application/n-triples"})
    assert "content-encoding" not in plain.headers
    for accept in ("gzip", "br, gzip;q=0.5", "GZIP"):
        packed = ask(served, query=everything, headers={"Accept": "application/n-triples", "Accept-Encoding": accept})
        assert packed.headers["content-encoding"] == "gzip"
        assert "Accept-Encoding" in packed.headers["vary"]
        assert len(packed.body) < len(plain.body) / 2
        assert sorted(gzip.decompress(packed.body).splitlines()) == sorted(plain.body.splitlines())
    for accept in ("gzip;q=0", "identity", "br"):
        reply = ask(served, query=everything, headers={"Accept-Encoding": accept})
        assert "content-encoding" not in reply.headers
    # What is short is not worth it.
    assert "content-encoding" not in ask(served, query="ASK {}", headers={"Accept-Encoding": "gzip"}).headers


def test_every_example_has_results(folder: Path) -> None:
    from condgraph.sparql.examples import examples

    with condgraph.open(folder / "store", read_only=True) as graph:
        found = examples(graph.rdf())
        assert len(found) >= 4
        for about, query in found:
            assert graph.sparql(query).rows, about


REIFIERS = """
@prefix : <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:ann :knows :bob {| :since 1990 |} . :bob rdfs:label "<<( Bob \\t<triple> \\"type\\":\\"triple\\"" .
"""
DIRECTED = ':ann :motto "\\"@ar--rtl\\t, \\"its:dir\\":\\"rtl\\" its:dir=\\"rtl\\""@ar--rtl, "b"@en-GB--ltr, _:a--ltr .\n'
REIFIES = "SELECT ?t { ?r <http://www.w3.org/1999/02/22-rdf-syntax-ns#reifies> ?t }"
ABOUT = "DESCRIBE ?r { ?r <http://example.org/since> ?y }"


@pytest.fixture(scope="module")
def annotated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    place = tmp_path_factory.mktemp("annotated")
    (place / "knows.ttl").write_text(REIFIERS, encoding="utf-8")
    with condgraph.open(place / "store") as graph:
        graph.load(place / "knows.ttl")
    with command("-d", str(place / "store"), "--base", BASE) as (url, _):
        yield url


@pytest.mark.parametrize(
    "media_type", ["application/sparql-results+json", "application/sparql-results+xml", "text/tab-separated-values"]
)
def test_solutions_have_triple_terms_for_those_that_ask(annotated: str, media_type: str) -> None:
    asked = ask(annotated, query=REIFIES, headers={"Accept": f"{media_type};version=1.2"})
    assert asked.status == 200
    assert asked.headers["content-type"].endswith("; version=1.2")
    found = ox.parse_query_results(asked.body, ox.QueryResultsFormat.from_media_type(media_type))
    assert [type(row["t"]) for row in found] == [ox.Triple]  # type: ignore[union-attr]
    for accept in (media_type, f"{media_type};version=1.1", f'{media_type}; version="1.2-basic"', f"{media_type};version=9", None):
        refused = ask(annotated, query=REIFIES, headers={} if accept is None else {"Accept": accept})
        assert refused.status == 406, accept
        assert "version=1.2" in refused.text
    # What only looks like one, and terms that the query makes.
    assert ask(annotated, query="SELECT ?l { ?s rdfs:label ?l }", headers={"Accept": media_type}).status == 200
    made = "SELECT (TRIPLE(<urn:a>, <urn:b>, 1) AS ?t) {}"
    assert ask(annotated, query=made, headers={"Accept": media_type}).status == 406
    assert ask(annotated, query=REIFIES, headers={"Accept": f"{media_type}, */*;version=1.2;q=0.1"}).status == 200


def test_graphs_have_triple_terms_for_those_that_ask(annotated: str) -> None:
    requests: list[dict[str, Any]] = [
        {"query": ABOUT},
        {"path": "/data"},
        {"path": "/data?default"},
        {"path": f"/data?graph={BASE}.rdf/"},
    ]
    for options in requests:
        media_type = "application/n-quads" if options.get("path") == "/data" else "application/n-triples"
        form = ox.RdfFormat.from_media_type(media_type)
        assert form is not None
        asked = ask(annotated, headers={"Accept": f'{media_type}; version="1.2"'}, **options)
        terms = [one for one in ox.parse(asked.body, form) if isinstance(one.object, ox.Triple)]
        assert terms, options
        assert asked.headers["content-type"] == f"{media_type}; version=1.2"
        plain = ask(annotated, headers={"Accept": media_type}, **options)
        assert (plain.status, plain.headers["content-type"]) == (200, media_type)
        assert b"<<(" not in plain.body.replace(b'"<<(', b"")
        found = {(one.predicate.value, one.object) for one in ox.parse(plain.body, form)}
        for term in terms:
            for part in ("subject", "predicate", "object"):
                assert (f"http://www.w3.org/1999/02/22-rdf-syntax-ns#{part}", getattr(term.object, part)) in found
    # JSON-LD cannot say triple terms, asked for or not.
    assert ask(annotated, query=ABOUT, headers={"Accept": "application/ld+json;version=1.2"}).media_type == "application/ld+json"
    odd = "CONSTRUCT { <urn:a> <urn:says> <<( <urn:a> <urn:b> 1 )>> } WHERE {}"
    assert ask(annotated, query=odd, headers={"Accept": "text/turtle"}).status == 406
    assert ask(annotated, query=odd, headers={"Accept": "text/turtle;version=1.2"}).status == 200


@pytest.fixture(scope="module")
def directed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    place = tmp_path_factory.mktemp("directed")
    (place / "mottos.ttl").write_text("@prefix : <http://example.org/> .\n" + DIRECTED, encoding="utf-8")
    with condgraph.open(place / "store") as graph:
        graph.load(place / "mottos.ttl")
    with command("-d", str(place / "store"), "--base", BASE) as (url, _):
        yield url


def test_base_directions_are_sent_to_those_that_ask(directed: str) -> None:
    texts = {('"@ar--rtl\t, "its:dir":"rtl" its:dir="rtl"', "ar"), ("b", "en-gb")}
    mottos = "SELECT ?o { ?s <http://example.org/motto> ?o FILTER(isLiteral(?o)) }"
    graph = mottos.replace("SELECT ?o", "CONSTRUCT { ?s <http://example.org/motto> ?o }")
    for query, media_types in (
        (mottos, ("application/sparql-results+json", "application/sparql-results+xml", "text/tab-separated-values")),
        (graph, ("application/n-triples", "text/turtle", "application/rdf+xml", "application/ld+json")),
    ):
        for media_type in media_types:
            for version in ("", ";version=1.1", ";version=1.2-basic", ";version=1.2"):
                reply = ask(directed, query=query, headers={"Accept": media_type + version})
                if query == mottos:
                    form: Any = ox.QueryResultsFormat.from_media_type(media_type)
                    found = [row["o"] for row in ox.parse_query_results(reply.body, form)]  # type: ignore[union-attr]
                else:
                    form = ox.RdfFormat.from_media_type(media_type)
                    found = [one.object for one in ox.parse(reply.body, form)]
                assert {(one.value, one.language) for one in found} == texts, (media_type, version)
                asked = "1.2" in version or media_type == "application/ld+json"
                assert [one.direction is not None for one in found] == [asked] * 2, (media_type, version)
    for accept, asked in (("application/n-quads", False), ("application/n-quads;version=1.2", True)):
        assert (b"@ar--rtl <" in ask(directed, path="/data", headers={"Accept": accept}).body) == asked
    # A term of the query's own.
    made = 'SELECT (STRLANGDIR("x", "he", "rtl") AS ?o) {}'
    assert b"its:dir" not in ask(directed, query=made, headers={"Accept": "application/sparql-results+json"}).body


def test_clients_that_know_rdf_1_1_read_statements_about_statements(annotated: str) -> None:
    from rdflib.plugins.stores.sparqlstore import SPARQLStore
    from SPARQLWrapper import N3, SPARQLWrapper

    statements = "SELECT ?s ?o { ?r a rdf:Statement ; rdf:subject ?s ; rdf:object ?o ; <http://example.org/since> 1990 }"
    expected = [(rdflib.URIRef("http://example.org/ann"), rdflib.URIRef("http://example.org/bob"))]
    wrapper = SPARQLWrapper(f"{annotated}/sparql")
    wrapper.setQuery("CONSTRUCT WHERE { ?s ?p ?o }")
    wrapper.setReturnFormat(N3)
    text = wrapper.query().convert()
    assert [tuple(row) for row in rdflib.Graph().parse(data=text, format="turtle").query(statements)] == expected  # type: ignore[arg-type]
    whole = rdflib.Graph().parse(f"{annotated}/data?default")
    assert [tuple(row) for row in whole.query(statements)] == expected  # type: ignore[arg-type]
    store = rdflib.Graph(SPARQLStore(f"{annotated}/sparql"))
    assert len(list(store.query("SELECT ?y { ?r <http://example.org/since> ?y }"))) == 1
    wrapper.addCustomHttpHeader("Accept", "text/turtle;version=1.2")
    raw = wrapper.query().response.read()
    assert any(isinstance(one.object, ox.Triple) for one in ox.parse(raw, ox.RdfFormat.TURTLE))
