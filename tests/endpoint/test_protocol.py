"""The SPARQL 1.1 Protocol and the Graph Store Protocol, asked of a running server."""

from __future__ import annotations

import json
import socket
import sys
import time
from pathlib import Path
from urllib.parse import quote, urlsplit

import pyoxigraph as ox
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from condgraph.endpoint.app import Limits, application
from condgraph.endpoint.backend import OxigraphBackend
from condgraph.endpoint.protocol import GRAPHS, MAX_BYTES, SOLUTIONS, Format, choose
from condgraph.engine.errors import MissingExtraError
from condgraph.sparql.text.scan import survey
from tests.endpoint.conftest import DATA, GRAPH, RUNAWAY
from tests.support.lanes import examples, sample
from tests.support.pace import quick_enough
from tests.support.serving import ask, serving

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
DIRECT = {"Content-Type": "application/sparql-query"}
ONE = f"SELECT ?v {{ <{GRAPH}n7> <{GRAPH}value> ?v }}"
CONSTRUCT = "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }"


@pytest.mark.parametrize(
    ("method", "headers", "body", "query"),
    [
        ("GET", {}, None, ONE),
        ("POST", FORM, b"query=" + quote(ONE).encode(), None),
        ("POST", {"Content-Type": "application/x-www-form-urlencoded; charset=UTF-8"}, b"query=" + quote(ONE).encode(), None),
        ("POST", DIRECT, ONE.encode(), None),
        ("POST", {"Content-Type": "Application/SPARQL-Query;charset=utf-8"}, ONE.encode(), None),
    ],
)
def test_three_ways_to_ask(endpoint: str, method: str, headers: dict[str, str], body: bytes | None, query: str | None) -> None:
    reply = ask(endpoint, method, headers=headers, body=body, **({"query": query} if query else {}))
    assert reply.status == 200
    assert reply.headers["content-type"] == "application/sparql-results+json"
    assert json.loads(reply.body)["results"]["bindings"][0]["v"]["value"] == "7"
    assert int(reply.headers["content-length"]) == len(reply.body)


@pytest.mark.parametrize(
    ("accept", "query", "media_type"),
    [
        ("text/csv", ONE, "text/csv"),
        ("text/tab-separated-values", ONE, "text/tab-separated-values"),
        ("application/sparql-results+xml", ONE, "application/sparql-results+xml"),
        ("application/json", ONE, "application/json"),
        ("text/csv;q=0.3, application/sparql-results+xml;q=0.7, */*;q=0.1", ONE, "application/sparql-results+xml"),
        ("text/csv;q=0, */*", ONE, "application/sparql-results+json"),
        ("application/sparql-results+json;q=0, */*;q=0.5", ONE, "application/sparql-results+xml"),
        ("text/*", ONE, "text/csv"),
        ("*/*", "ASK {}", "application/sparql-results+json"),
        ("text/turtle, text/csv;q=0.5", ONE, "text/csv"),
        ("text/turtle", CONSTRUCT, "text/turtle"),
        ("application/n-triples", CONSTRUCT, "application/n-triples"),
        ("application/ld+json", CONSTRUCT, "application/ld+json"),
        ("application/rdf+xml", CONSTRUCT, "application/rdf+xml"),
        ("*/*", f"DESCRIBE <{GRAPH}n1>", "text/turtle"),
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", ONE, "application/xml"),
        # The client of Java's own library; what cannot be read is left out, and where nothing is
        # left anything is wanted.
        ("text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2", ONE, "application/sparql-results+json"),
        ("text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2", CONSTRUCT, "text/turtle"),
        ("text/csv, image, a/b/c, /, ;q=1, text/turtle;q=0.5", ONE, "text/csv"),
        ("image", ONE, "application/sparql-results+json"),
        (", ,", CONSTRUCT, "text/turtle"),
        ("text/csv;q=1.0.0", ONE, "application/sparql-results+json"),
        ("text/csv;q=1.0.0, text/tab-separated-values;q=0.1", ONE, "text/tab-separated-values"),
        ("text/csv;q=.3, text/tab-separated-values;q=1.", ONE, "text/tab-separated-values"),
        ('text/csv; Q = "0.9", text/tab-separated-values;q=0.8', ONE, "text/csv"),
        ("text/csv;q=7, text/tab-separated-values;q=1", ONE, "text/csv"),
        ("text/csv;q=-1, text/tab-separated-values;q=0.1", ONE, "text/tab-separated-values"),
        ("text/csv;q=NaN, text/tab-separated-values;q=", ONE, "application/sparql-results+json"),
        ('text/csv;header="a,b;q=0";q=0.5, text/tab-separated-values;q=0.4', ONE, "text/csv"),
        ('text/tab-separated-values, text/csv;q=0.5;header="never closed, a/b', ONE, "text/tab-separated-values"),
    ],
)
def test_content_is_negotiated(endpoint: str, accept: str, query: str, media_type: str) -> None:
    reply = ask(endpoint, headers={"Accept": accept}, query=query)
    assert (reply.status, reply.media_type) == (200, media_type), reply.text
    assert "accept" in reply.headers["vary"].lower()


@pytest.mark.parametrize(
    ("status", "method", "headers", "body", "query"),
    [
        (406, "GET", {"Accept": "image/png"}, None, {"query": ONE}),
        (406, "GET", {"Accept": "text/turtle"}, None, {"query": ONE}),
        (406, "GET", {"Accept": "text/csv"}, None, {"query": CONSTRUCT}),
        (406, "GET", {"Accept": "application/sparql-results+json;q=0"}, None, {"query": ONE}),
        (406, "GET", {"Accept": "image/png"}, None, {}),
        (406, "GET", {"Accept": "image, image/png"}, None, {"query": ONE}),
        (400, "GET", {}, None, {"query": "ASK {"}),
        (400, "GET", {}, None, {"query": ["ASK {}", "ASK {}"]}),
        (400, "GET", {}, None, {"query": ""}),
        (400, "GET", {}, None, {"query": "INSERT DATA { <a:a> <a:b> 1 }"}),
        (400, "GET", {}, None, {"update": "CLEAR ALL"}),
        (400, "GET", {}, None, {"query": ONE, "default_graph_uri": "not absolute"}),
        (400, "GET", {}, None, {"query": ONE, "timeout": "soon"}),
        (400, "GET", {}, None, {"query": ONE, "timeout": "-1"}),
        (400, "POST", FORM, b"", {}),
        (400, "POST", FORM, b"query=%FF", {}),
        (400, "POST", DIRECT, b"ASK { \xff }", {}),
        (400, "POST", DIRECT, b"ASK {}", {"query": "ASK {}"}),
        (403, "POST", FORM, b"update=CLEAR%20ALL", {}),
        (403, "POST", {"Content-Type": "application/sparql-update"}, b"CLEAR ALL", {}),
        (403, "GET", {}, None, {"query": "SELECT * { SERVICE <http://127.0.0.1/> { ?s ?p ?o } }"}),
        (405, "PUT", {}, b"", {"query": ONE}),
        (405, "DELETE", {}, None, {"query": ONE}),
        (413, "POST", DIRECT, b"#" * (MAX_BYTES + 1), {}),
        (415, "POST", {"Content-Type": "text/plain"}, b"ASK {}", {}),
        (415, "POST", {}, b"query=ASK%20%7B%7D", {}),
        (415, "POST", {"Content-Type": "application/sparql-query; charset=UTF-16"}, "ASK {}".encode("utf-16"), {}),
    ],
)
def test_what_is_wrong_has_its_status(
    endpoint: str, status: int, method: str, headers: dict[str, str], body: bytes | None, query: dict[str, str]
) -> None:
    reply = ask(endpoint, method, headers=headers, body=body, **query)
    assert reply.status == status, reply.text
    assert reply.media_type == "text/plain"
    assert reply.text.strip()


def test_errors_say_more(endpoint: str) -> None:
    assert "the query is empty" in ask(endpoint, query=" ").text
    assert ask(endpoint, "PUT").headers["allow"] == "GET, HEAD, POST, OPTIONS"
    assert "sparql-query" in ask(endpoint, "POST", body=b"x").headers["accept-post"]
    assert "line 2, column 6: 'nothing' is not a word of SPARQL" in ask(endpoint, query="SELECT *\n{ ?x nothing }").text
    assert "application/sparql-results+xml" in ask(endpoint, headers={"Accept": "image/png"}, query=ONE).text


def test_rdf_xml_that_cannot_be(endpoint: str) -> None:
    reply = ask(endpoint, headers={"Accept": "application/rdf+xml"}, query="CONSTRUCT { <a:s> <http://x/1> 1 } WHERE {}")
    assert reply.status == 406
    assert "Turtle" in reply.text


def test_data_sets(endpoint: str) -> None:
    def rows(text: str, **query: object) -> int:
        reply = ask(endpoint, headers={"Accept": "text/csv"}, query=text, **query)
        assert reply.status == 200, reply.text
        return reply.body.count(b"\r\n") - 1

    other = GRAPH + "other"
    everything, named = "SELECT ?s ?p { ?s ?p ?o FILTER(isIRI(?o)) }", "SELECT ?g { GRAPH ?g { ?s ?p ?o } } LIMIT 1"
    assert rows(everything) == 0
    assert rows(named) == 1
    assert rows(everything, default_graph_uri=other) == 1
    assert rows(everything, default_graph_uri=[other, GRAPH]) == 1
    assert rows(everything, named_graph_uri=other) == 0
    assert rows(named, named_graph_uri=other) == 1
    assert rows(named, default_graph_uri=other) == 0
    nothing = "http://example.org/nothing"
    for unknown in ({"default_graph_uri": nothing}, {"named_graph_uri": [GRAPH, nothing]}):
        refused = ask(endpoint, query=everything, **unknown)
        assert (refused.status, nothing in refused.text, f"<{other}>" in refused.text) == (400, True, True)
    assert rows(f"SELECT * FROM <{nothing}> {{ ?s ?p ?o }}") == 0
    assert rows(f"SELECT * FROM <{other}> {{ ?s ?p ?o }}") == 1
    assert rows(f"SELECT * FROM NAMED <{other}> {{ GRAPH ?g {{ ?s ?p ?o }} }}") == 1
    assert rows(f"SELECT * FROM NAMED <{other}> {{ ?s ?p ?o }}") == 0
    # What the request says counts, and not what the query says.
    assert rows(f"SELECT * FROM <{GRAPH}> {{ ?s ?p ?o }}", default_graph_uri=other) == 1
    body = f"query={quote(everything)}&default-graph-uri={quote(other)}".encode()
    assert ask(endpoint, "POST", headers=FORM | {"Accept": "text/csv"}, body=body).body.count(b"\r\n") == 2
    ask_one = b"ASK { ?s ?p ?o FILTER(isIRI(?o)) }"
    assert "true" in ask(endpoint, "POST", headers=DIRECT, body=ask_one, default_graph_uri=other).text


def test_head_and_options(endpoint: str) -> None:
    got, head = ask(endpoint, query=ONE), ask(endpoint, "HEAD", query=ONE)
    assert (head.status, head.body) == (200, b"")
    assert head.headers["content-type"] == got.headers["content-type"]
    assert head.headers["content-length"] == got.headers["content-length"]
    assert ask(endpoint, "HEAD", query="ASK {").status == 400
    options = ask(endpoint, "OPTIONS")
    assert (options.status, options.headers["allow"]) == (204, "GET, HEAD, POST, OPTIONS")


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("text/turtle", ox.RdfFormat.TURTLE),
        ("application/rdf+xml", ox.RdfFormat.RDF_XML),
        ("application/ld+json", ox.RdfFormat.JSON_LD),
        ("application/n-triples", ox.RdfFormat.N_TRIPLES),
    ],
)
def test_the_service_describes_itself(endpoint: str, accept: str, form: ox.RdfFormat) -> None:
    reply = ask(endpoint, headers={"Accept": accept})
    assert (reply.status, reply.media_type) == (200, accept)
    said = ox.Store()
    said.load(reply.body, form)
    text = f"""PREFIX sd: <http://www.w3.org/ns/sparql-service-description#>
        ASK {{ ?s a sd:Service ; sd:endpoint <{endpoint}/sparql> ; sd:supportedLanguage sd:SPARQL11Query ;
               sd:defaultDataset [ a sd:Dataset ; sd:namedGraph [ sd:name <{GRAPH}> ] ] ;
               sd:resultFormat <http://www.w3.org/ns/formats/SPARQL_Results_JSON>, <http://www.w3.org/ns/formats/Turtle> }}"""
    assert bool(said.query(text))


def test_graphs_are_read(endpoint: str) -> None:
    whole = ask(endpoint, path="/data", graph=GRAPH)
    assert (whole.status, whole.media_type) == (200, "text/turtle")
    assert set(ox.parse(whole.body, ox.RdfFormat.TURTLE)) == set(ox.parse(DATA, ox.RdfFormat.TURTLE))
    assert ask(endpoint, path="/data?default", headers={"Accept": "application/n-triples"}).body.count(b"\n") == 201
    assert ask(endpoint, "HEAD", path="/data", graph=GRAPH).status == 200
    assert ask(endpoint, path="/data", graph=GRAPH + "nothing").status == 404
    assert ask(endpoint, "HEAD", path="/data", graph=GRAPH + "nothing").status == 404
    assert ask(endpoint, path="/data", graph=GRAPH, headers={"Accept": "image/png"}).status == 406
    every = ask(endpoint, path="/data")
    assert (every.status, every.media_type) == (200, "application/trig")
    assert {quad.graph_name.value for quad in ox.parse(every.body, ox.RdfFormat.TRIG)} == {GRAPH, GRAPH + "other"}
    assert ask(endpoint, path="/data?default", graph=GRAPH).status == 400
    for method in ("PUT", "POST", "DELETE", "PATCH"):
        reply = ask(endpoint, method, path="/data", graph=GRAPH, body=b"")
        assert (reply.status, reply.headers["allow"]) == (405, "GET, HEAD, OPTIONS")
    assert ask(endpoint, "OPTIONS", path="/data").headers["allow"] == "GET, HEAD, OPTIONS"


def test_page_and_health(endpoint: str) -> None:
    browser = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
    for path in ("/", "/sparql", "/sparql/"):
        reply = ask(endpoint, path=path, headers=browser)
        assert (reply.status, reply.media_type) == (200, "text/html")
        assert 'src="static/yasgui.min.js"' in reply.text
        assert "//" not in reply.headers["content-security-policy"]
    # Nothing of the page comes from another server.
    assert "http" not in reply.text.replace(GRAPH, "").replace("application/xhtml", "")
    description = ask(endpoint, path="/description", headers={"Accept": "text/html"})
    assert (description.status, description.media_type) == (200, "text/turtle")
    assert description.body == ask(endpoint, headers={"Accept": "text/turtle"}).body
    health = ask(endpoint, path="/health")
    assert health.status == 200
    assert json.loads(health.body)["status"] == "ok"
    assert ask(endpoint, path="/nothing").status == 404


def test_a_deadline_is_a_status(endpoint: str) -> None:
    begin = time.monotonic()
    reply = ask(endpoint, query=RUNAWAY, timeout="0.3")
    assert reply.status == 503
    assert "0.3 s" in reply.text
    spent = time.monotonic() - begin
    assert spent >= 0.3
    assert quick_enough(spent, 3)


def test_a_cut_is_said(endpoint: str) -> None:
    reply = ask(endpoint, query=f"SELECT * {{ ?s <{GRAPH}value> ?o }}", headers={"Accept": "text/csv"})
    assert reply.body.count(b"\r\n") == 151
    assert reply.headers["x-sparql-maxrows"] == "150"
    assert "150" in reply.headers["warning"]
    whole = ask(endpoint, query=f"SELECT * {{ ?s <{GRAPH}value> ?o }} LIMIT 150")
    assert "warning" not in whole.headers


def raw(url: str, request: bytes) -> bytes:
    """What the server sends until it closes the connection."""
    where = urlsplit(url)
    with socket.create_connection((where.hostname, where.port), timeout=20) as sock:
        sock.sendall(request)
        parts = []
        while part := sock.recv(1 << 20):
            parts.append(part)
    return b"".join(parts)


#: What ends a response in parts; no row of the store ends so.
END = b"\r\n0\r\n\r\n"


def get(query: str, version: str = "1.1", *headers: str) -> bytes:
    """The bytes of a request."""
    lines = [f"GET /sparql?{query} HTTP/{version}", "Host: x", "Accept: text/csv", *headers]
    return "".join(f"{line}\r\n" for line in [*lines, ""]).encode()


@pytest.mark.service
def test_results_stream_and_are_never_taken_for_whole(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hold = 1 << 18
    monkeypatch.setattr("condgraph.endpoint.app.HOLD", hold)
    # 8 million rows: the first arrive at once, and the deadline comes before the last.
    endless = "query=" + quote("SELECT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }")
    with serving(OxigraphBackend(store, default=GRAPH, workers=1), Limits(timeout=3.0, rows=None)) as url:
        head, _, body = raw(url, get(endless)).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200")
        assert b"transfer-encoding: chunked" in head.lower()
        assert len(body) > hold
        assert not body.endswith(END)
        # HTTP/1.0 cannot tell, so that nothing but a status is sent.
        assert b" 503 " in raw(url, get(endless + "&timeout=0.4", "1.0")).splitlines()[0]
    with serving(OxigraphBackend(store, default=GRAPH, workers=1), Limits(timeout=30.0, rows=5_000)) as url:
        # Cut behind what is held back: broken off, too.
        got = raw(url, get(endless))
        assert len(got) > hold
        assert not got.endswith(END)
        # All of it, where the limit is not reached.
        got = raw(url, get("query=" + quote("SELECT * { ?a ?b ?c . ?d ?e ?f . } LIMIT 4900"), "1.1", "Connection: close"))
        assert got.endswith(END)
        assert b"content-length" not in got[:500].lower()


@pytest.mark.service
def test_a_client_that_goes_away_frees_its_worker(store: Path) -> None:
    backend = OxigraphBackend(store, default=GRAPH, workers=1, long=0)
    with serving(backend, Limits(timeout=30.0)) as url:
        where = urlsplit(url)
        with socket.create_connection((where.hostname, where.port)) as sock:
            sock.sendall(f"GET /sparql?query={quote(RUNAWAY)} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            time.sleep(0.5)
        begin = time.monotonic()
        assert ask(url, query="ASK {}").status == 200
        assert quick_enough(time.monotonic() - begin, 5)


@pytest.mark.slow
@pytest.mark.service
def test_clients_that_read_slowly_keep_nobody_waiting(store: Path) -> None:
    endless = quote("SELECT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }")
    with serving(OxigraphBackend(store, default=GRAPH, workers=1), Limits(timeout=15.0, rows=None)) as url:
        where = urlsplit(url)
        slow = [socket.create_connection((where.hostname, where.port)) for _ in range(3)]
        for sock in slow:
            sock.sendall(f"GET /sparql?query={endless} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        time.sleep(2.0)
        begin = time.monotonic()
        assert ask(url, query="ASK {}").status == 200
        assert quick_enough(time.monotonic() - begin, 5)
        head = ask(url, "HEAD", query="SELECT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }")
        assert (head.status, head.body) == (200, b"")
        for sock in slow:
            sock.close()


@pytest.mark.service
def test_stopping_lets_queries_end(store: Path) -> None:
    import threading

    slow = f"""SELECT (COUNT(*) AS ?n) FROM <{GRAPH}> {{ ?a ?b ?c . ?d ?e ?f .
        VALUES ?i {{ 1 2 3 4 5 6 7 8 9 }} FILTER(?c + ?f + ?i = -1) }}"""
    found: list[int] = []
    with serving(OxigraphBackend(store, default=GRAPH), Limits(timeout=30.0), grace=20) as url:
        thread = threading.Thread(target=lambda: found.append(ask(url, query=slow).status))
        thread.start()
        time.sleep(0.3)
    thread.join()
    assert found == [200]


def test_a_missing_extra_is_named(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with OxigraphBackend(store) as backend:
        monkeypatch.setitem(sys.modules, "starlette.applications", None)
        with pytest.raises(MissingExtraError, match=r"condgraph\[serve\]"):
            application(backend)


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(["GET", "POST", "HEAD", "PUT"]),
    st.sampled_from(["/sparql", "/data", "/", "/health"]),
    st.lists(
        st.tuples(
            st.sampled_from(["query", "default-graph-uri", "graph", "timeout", "update", "default", "x"]), st.text(max_size=20)
        )
    ),
    st.sampled_from([*FORM.values(), *DIRECT.values(), "", "x", "a/b;charset=x"]),
    st.binary(max_size=60),
    st.one_of(st.sampled_from(["*/*", "text/csv", "text/turtle;q=0.1"]), st.text('abc/*;q=.,1 "', max_size=20)),
)
def test_whatever_is_sent_gets_a_status(
    endpoint: str, method: str, path: str, pairs: list[tuple[str, str]], kind: str, body: bytes, accept: str
) -> None:
    address = "&".join(f"{key}={quote(value, errors='replace')}" for key, value in pairs)
    reply = ask(endpoint, method, f"{path}?{address}", headers={"Content-Type": kind, "Accept": accept}, body=body)
    assert reply.status in (200, 400, 403, 404, 405, 406, 415), reply.text


@pytest.mark.parametrize(
    ("text", "form", "dataset", "service"),
    [
        ("SELECT * { ?s ?p 'SERVICE' }", "select", False, False),
        ("PREFIX service: <http://from/> ASK { service:from ?from @service }", "ask", False, False),
        ("ASK { ?s ?p '''it's \"SERVICE\" ''' # SERVICE\n }", "ask", False, False),
        ("ASK FROM <a:b> {}", "ask", True, False),
        ("SELECT * { {SERVICE ?x {}} }", "select", False, True),
        ("SELECT * { FILTER(?a<1)SERVICE SILENT<x>{} }", "select", False, True),
        ("BASE <http://select/> DESCRIBE <x>", "describe", False, False),
        ("WITH <x> DELETE { ?s ?p ?o } WHERE { SELECT * {} }", "update", False, False),
        ("what is this", "unknown", False, False),
        ("", "unknown", False, False),
    ],
)
def test_texts_are_looked_through(text: str, form: str, dataset: bool, service: bool) -> None:
    found = survey(text)
    assert (found.form, found.dataset, found.service) == (form, dataset, service)


@given(st.one_of(st.text(max_size=60), st.text('ab/*;q=.,01 "\\\\-', max_size=60)), st.sampled_from([SOLUTIONS, GRAPHS]))
def test_accept_headers(header: str, formats: tuple[Format, ...]) -> None:
    found = choose(header, formats)
    assert found is None or found.format in formats
    # What nobody can read changes nothing.
    assert choose(f"{header}, a b c", formats) == found or header.count('"')


def test_accept_headers_of_a_megabyte_are_read_at_once() -> None:
    pieces = ["a", '"', '\\"', "a/b,", ";q=", "*", ",", " ", ";", "=", "a/b;q=0.1,", "é", "1", ".", '"a', "a/"]
    pieces = list(sample(pieces, 4))
    begin = time.process_time()
    for piece in pieces:
        choose(piece * ((1 << 20) // len(piece)), SOLUTIONS)
    assert quick_enough(time.process_time() - begin, len(pieces) * 2.0)
