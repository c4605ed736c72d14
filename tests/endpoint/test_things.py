"""IRIs of a graph as addresses of its server: RDF for programs, the page for people."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import HTTPRedirectHandler, Request, build_opener

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

import condgraph
from condgraph.endpoint.app import iri_of, path_of
from condgraph.engine.facts import Entity, Member, Ref, Statement
from condgraph.engine.iris import encode
from condgraph.sparql.layout import base_iri
from tests.endpoint.test_serve import command

#: Names that stand in addresses in more than one way.
NAMES = ("Nepal", "Erdős number", "a_b %", "UN/LOCODE", "../x", "a//b", "q?x#y", "50 % off; 'new'", "日本", "e\u0301", "😀")
RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
TOKEN = "a-token-of-the-tests-0123456789"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("things") / "store"
    with condgraph.open(folder) as graph:
        graph.add([Entity(name, name) for name in NAMES])
        graph.add([Statement(name, "height", Ref("Nepal")) for name in NAMES] + [Member("Nepal", "country")])
    return folder


@pytest.fixture(scope="module")
def served(store: Path) -> Iterator[str]:
    with command("-d", str(store)) as (url, _):
        yield url


class _Stay(HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


def got(address: str, accept: str, **headers: str) -> tuple[int, dict[str, str], str]:
    """Status, headers and body of an address."""
    request = Request(address, headers={"Accept": accept, **headers})
    try:
        with build_opener(_Stay).open(request, timeout=30) as answer:
            return answer.status, {name.lower(): text for name, text in answer.headers.items()}, answer.read().decode()
    except HTTPError as error:
        return error.code, {name.lower(): text for name, text in error.headers.items()}, error.read().decode()


@given(st.text(min_size=1).filter(lambda text: text.isprintable()))
def test_what_clients_send_is_the_iri(name: str) -> None:
    """As it is, percent-encoded by a client, and with small digits."""
    base = base_iri("default")
    iri = base + encode(name)
    for sent in (quote(iri, safe="/%:;()'!$&*+,=@~"), quote(iri, safe="/%:")):
        path = sent.removeprefix(base)
        assert iri_of(base, path.encode()) == iri
        assert iri_of(base, path.replace("%C", "%c").replace("%E", "%e").encode()) == iri


def test_paths_of_bases() -> None:
    assert path_of(base_iri("my films")) == path_of(base_iri("my_films")) == "/my_films/"
    assert path_of(base_iri("a/b")) == "/a/b/"
    assert path_of(base_iri("a{b}")) is None
    assert path_of("neo4j://host/films/") is None
    assert path_of(None) is None
    for wrong in (b"%ff", b"%e9x", b"a b", b"a%3Cb".replace(b"%3C", b"<")):
        assert iri_of("http://example.org/", wrong) is None


@pytest.mark.parametrize("name", NAMES)
def test_programs_get_what_the_graph_says(served: str, name: str) -> None:
    iri = base_iri("default") + encode(name)
    path = quote(encode(name), safe="/%()';")
    status, headers, body = got(f"{served}/default/{path}", "application/n-triples")
    assert (status, headers["content-type"], headers["vary"]) == (200, "application/n-triples", "Accept, Accept-Encoding")
    assert f"<{iri}> <{base_iri('default')}height> <{base_iri('default')}Nepal>" in body
    assert all(line.startswith(f"<{iri}> ") for line in body.splitlines())
    status, headers, _ = got(f"{served}/default/{path}", "text/html,application/xhtml+xml,*/*;q=0.8")
    assert (status, headers["location"]) == (303, f"/sparql?about={quote(iri, safe='')}")


def test_what_is_not_there(served: str) -> None:
    for accept in ("text/turtle", "text/html"):
        status, _, body = got(f"{served}/default/Nepall", accept)
        assert status == 404
        assert "the graph has nothing about <http://condgraph.example/default/Nepall>" in body
    assert got(f"{served}/default/%ff", "text/turtle")[0] == 404
    assert got(f"{served}/elsewhere/Nepal", "text/turtle")[0] == 404
    assert got(f"{served}/default/Nepal", "image/png")[0] == 406


def test_rdflib_follows_an_iri(served: str) -> None:
    from rdflib import Graph, URIRef

    found = Graph().parse(f"{served}/default/Nepal")
    assert (URIRef("http://condgraph.example/default/Nepal"), URIRef("pred:instance_of"), None) in found


@pytest.mark.service
@pytest.mark.parametrize("name", ["my_films", "Erdős"])
def test_graphs_whose_names_are_encoded(tmp_path: Path, name: str) -> None:
    with condgraph.open(tmp_path / "store", graph=name) as graph:
        graph.add([Entity("UN/LOCODE", "UN/LOCODE")])
    with command("-d", str(tmp_path / "store"), "--graph", name) as (url, _):
        iri = base_iri(name) + "UN/LOCODE"
        for path in (quote(iri.removeprefix("http://condgraph.example"), safe="/%"), f"/{quote(name)}/UN/LOCODE"):
            status, _, body = got(f"{url}{path}", "application/n-triples")
            assert (status, body.startswith(f"<{iri}> ")) == (200, True), path


@pytest.mark.service
def test_a_base_of_ones_own_and_tokens(store: Path, tmp_path: Path) -> None:
    """A base at the root leaves the other addresses what they are; tokens guard it as they guard SPARQL."""
    (tmp_path / "tokens").write_text(f"ann:{TOKEN}\n")
    with command("-d", str(store), "--base", "http://example.org/", "--token-file", str(tmp_path / "tokens")) as (url, _):
        assert got(f"{url}/Nepal", "text/turtle")[0] == 401
        assert got(f"{url}/studio/nothing", "text/turtle")[0] == 401
        known = {"Authorization": f"Bearer {TOKEN}"}
        status, _, body = got(f"{url}/Nepal", "text/turtle", **known)
        assert (status, "<http://example.org/Nepal> " in body, "a pred:Entity" in body) == (200, True, True)
        is_entity = ox.Triple(ox.NamedNode("http://example.org/Nepal"), ox.NamedNode(RDF_TYPE), ox.NamedNode("pred:Entity"))
        assert is_entity in [quad.triple for quad in ox.parse(body, ox.RdfFormat.TURTLE)]
        assert got(f"{url}/sparql", "text/html")[0] == 401
        assert got(f"{url}/sparql", "text/html", **known)[0] == 200
        for path in ("/", "/studio/", "/health"):
            assert got(f"{url}{path}", "text/html")[0] == 200, path
