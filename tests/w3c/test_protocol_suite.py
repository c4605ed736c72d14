"""The W3C's protocol tests: the 20 of queries as they stand; those of updates are refused."""

from __future__ import annotations

from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import pyoxigraph as ox
import pytest

from condgraph.sparql.workers.pool import File
from tests.support.serving import Reply
from tests.w3c.conftest import SuiteServer
from tests.w3c.suite import LABEL, MEDIA, MF, UT, Manifest, folder, node

pytestmark = [pytest.mark.xdist_group("w3c"), pytest.mark.reads_data]

HT, CNT = "http://www.w3.org/2011/http#", "http://www.w3.org/2011/content#"
TABULAR = {
    "application/sparql-results+json",
    "application/sparql-results+xml",
    "text/csv",
    "text/tab-separated-values",
}
GRAPH_TYPES = {"text/turtle", "application/n-triples", "application/rdf+xml", "application/ld+json"}


def entries() -> list[Any]:
    root = folder()
    if root is None:
        return [pytest.param("", marks=pytest.mark.skip("CONDGRAPH_DATA is not set"))]
    return [entry.value.rpartition("#")[2] for entry in manifest().entries()]


def manifest() -> Manifest:
    root = folder()
    assert root is not None
    return Manifest(root / "sparql11" / "protocol" / "manifest.ttl", root)


def send(url: str, said: Manifest, request: Any) -> Reply:
    """A request as the manifest says it."""
    path = said.one(request, HT + "absolutePath").value
    headers = {
        said.one(header, HT + "fieldName").value: said.one(header, HT + "fieldValue").value
        for header in said.list(said.one(request, HT + "headers"))
    }
    body = said.one(request, HT + "body")
    data = None
    if body is not None:
        data = said.one(body, CNT + "chars").value.encode(said.one(body, CNT + "characterEncoding").value)
    where = urlsplit(url)
    connection = HTTPConnection(where.hostname or "", where.port, timeout=20)
    try:
        connection.request(said.one(request, HT + "methodName").value, path, body=data, headers=headers)
        response = connection.getresponse()
        return Reply(response.status, {key.lower(): value for key, value in response.getheaders()}, response.read())
    finally:
        connection.close()


def test_there_are_twenty_of_queries() -> None:
    if folder() is None:
        pytest.skip("CONDGRAPH_DATA is not set")
    of_updates = ("update_", "bad_update_", "bad_multiple_updates")
    assert len([name for name in entries() if not name.startswith(of_updates)]) == 20


@pytest.mark.parametrize("name", entries())
def test_protocol(name: str, suite_server: SuiteServer) -> None:
    said = manifest()
    (entry,) = (one for one in said.entries() if one.value.endswith(f"#{name}"))
    files = []
    for data in said.all(entry, UT + "graphData"):
        iri = said.one(data, UT + "graph")
        path = said.file(iri)
        label = next(quad.object.value for quad in said.store.quads_for_pattern(data, LABEL, None))
        files.append(File(path, MEDIA[path.suffix], label, iri.value))
    suite_server.backend.use(files, None)
    requests = list(said.list(said.one(said.one(entry, MF + "action"), HT + "requests")))
    assert requests
    for request in requests:
        reply = send(suite_server.url, said, request)
        if name.startswith("update_"):
            # What writes is refused, and reading what it would have written finds nothing.
            assert reply.status == 403 or b"false" in reply.body
            continue
        expected = said.one(request, HT + "resp")
        statuses = {one.value.rpartition("StatusCode")[2] for one in said.all(expected, MF + "expectedStatus")}
        assert f"{reply.status // 100}xx" in statuses, reply.text
        form = said.one(expected, MF + "expectedFormat")
        if form is not None:
            allowed = {"boolean": TABULAR, "tabular": TABULAR, "RDF": GRAPH_TYPES}[form.value]
            assert reply.media_type in allowed
        truth = said.one(expected, MF + "expectedBoolean")
        if truth is not None:
            results = ox.parse_query_results(reply.body, ox.QueryResultsFormat.JSON)
            assert bool(results) == (truth == ox.Literal(True))


def test_the_service_description_suite(suite_server: SuiteServer) -> None:
    """The three tests of service descriptions: RDF comes back, it names the service, and says no
    wrong word of the vocabulary.
    """
    from tests.support.serving import ask

    reply = ask(suite_server.url, headers={"Accept": "text/turtle"})
    sd = "http://www.w3.org/ns/sparql-service-description#"
    triples = list(ox.parse(reply.body, ox.RdfFormat.TURTLE))
    services = {one.subject for one in triples if one.object == node(sd + "Service")}
    assert len(services) == 1
    endpoints = [one.object for one in triples if one.subject in services and one.predicate == node(sd + "endpoint")]
    assert endpoints == [node(f"{suite_server.url}/sparql")]
    words = {one.predicate.value[len(sd) :] for one in triples if one.predicate.value.startswith(sd)}
    assert words <= {
        "endpoint",
        "supportedLanguage",
        "feature",
        "resultFormat",
        "defaultDataset",
        "defaultGraph",
        "namedGraph",
        "name",
        "graph",
    }
