"""Endpoints that answer late, wrongly, or not at all; loads that are ended, repeated, and read
while they run. Real servers.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyoxigraph
import pytest

import condgraph
from condgraph.engine.errors import (
    CancelledError,
    DeadlineError,
    OptionError,
    ReadOnlyError,
    StoreBusyError,
    StoreError,
    StoreMissingError,
    UnknownNameError,
)
from condgraph.engine.facts import Entity, Ref, Statement
from condgraph.engine.values import Quantity
from condgraph.graph import Graph
from condgraph.remote_sparql import SparqlGraph
from condgraph.sparql.client import Endpoint
from condgraph.sparql.dialect import VIRTUOSO
from condgraph.sparql.load.push import state
from tests.sparql.test_native import COUNTED
from tests.support.canonical import contents_of
from tests.support.lanes import sample
from tests.support.pace import quick_enough
from tests.support.sparql_servers import put
from tests.support.stores import marked
from tests.support.world import world

STORES = marked("oxigraph", nightly=("virtuoso", "fuseki"))
#: A query that no store is done with soon: every triple with every triple, four times.
ENDLESS = "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l . FILTER(STRLEN(STR(?a)) + STRLEN(STR(?l)) < 0) }"


@pytest.fixture(params=STORES, scope="module")
def server(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(f"{request.param}_server")


def opened(server: Any, graph: str, **options: Any) -> SparqlGraph:
    found = condgraph.open(f"sparql+{server.query}", graph=graph, **({"update": server.update} | options))
    assert isinstance(found, SparqlGraph)
    return found


def triples(remote: SparqlGraph) -> int:
    (count,) = remote.sparql("SELECT (COUNT(*) AS ?n) { ?s ?p ?o }").values
    return int(count)


@pytest.fixture
def remote(server: Any) -> Iterator[SparqlGraph]:
    found = opened(server, "stores")
    found.delete()
    found.push(world())
    yield found
    found.delete()
    found.close()


# -- loading ---------------------------------------------------------------------------------------


def test_the_same_load_twice_changes_nothing(server: Any, remote: SparqlGraph) -> None:
    before = triples(remote)
    remote.push(world())
    assert triples(remote) == before
    other = opened(server, "stores")
    other.push(world())
    assert triples(remote) == before


def test_the_graph_store_protocol_loads_the_same(server: Any) -> None:
    remote = opened(server, "by store", store=server.store)
    remote.delete()
    remote.push(world())
    assert contents_of(remote.snapshot()) == contents_of(world())
    assert remote.kopl("Find(Ann) QueryAttr(height)").texts == ["1.7 metre"]
    remote.delete()


@pytest.mark.parametrize("merged", [False, True])
def test_a_load_goes_on_where_it_was_ended(server: Any, merged: bool) -> None:
    expected, remote = world(), opened(server, f"ended {merged}")
    remote.store._has_update_url = True
    remote.delete()
    if merged:
        first = condgraph.open()
        first.add([Entity("a", "a"), Statement("a", "knows", Ref("new")), Statement("new", "height", Quantity(3))], source="first")
        remote.push(first)
        expected = first.snapshot()
        from condgraph.engine.snapshot.readback import items

        expected.add(items(world().current), source="world")
    update = remote.store.endpoint.update
    for allowed in (1, 2, 3, 5, 7, 8, 9, 1000):
        left = [allowed]

        def failing(text: str, *, timeout: float | None = None, left: list[int] = left) -> None:
            if not left[0]:
                raise KeyboardInterrupt
            left[0] -= 1
            update(text, timeout=timeout)

        remote.store.endpoint.update = failing  # type: ignore[method-assign]
        remote.store.endpoint.dialect = VIRTUOSO
        if allowed < 1000:
            with pytest.raises(KeyboardInterrupt):
                remote.push(world())
            if allowed > 1:
                with pytest.raises(StoreBusyError):
                    opened(server, f"ended {merged}").kopl("FindAll() Count()")
        else:
            remote.push(world())
    remote.store.endpoint.update = update  # type: ignore[method-assign]
    assert contents_of(remote.snapshot()) == contents_of(expected)
    remote.delete()


def test_a_load_goes_on_in_batches_of_another_size(server: Any) -> None:
    """By updates up to some batch, then by the Graph Store Protocol, whose batches are larger."""
    local = condgraph.open()
    local.add([Statement(f"e{i}", f"p{i % 9}", Quantity(i)) for i in range(400)], source="many")
    remote, sent = opened(server, "sizes"), [0]
    remote.store._has_update_url = True
    remote.delete()
    remote.store.endpoint.query("ASK {}")
    endpoint, update = remote.store.endpoint, remote.store.endpoint.update
    small = replace(VIRTUOSO, update_batch=100, store_batch=400)

    def few(text: str, *, timeout: float | None = None) -> None:
        endpoint.dialect = small
        sent[0] += 1
        if sent[0] > 16:
            raise KeyboardInterrupt
        update(text, timeout=timeout)

    endpoint.update = few  # type: ignore[method-assign]
    endpoint.dialect = small
    with pytest.raises(KeyboardInterrupt):
        remote.push(local)
    assert len(state(remote.store.endpoint, remote.store.base)["loaded"]) > 2
    other = opened(server, "sizes", store=server.store)
    other.push(local)
    assert contents_of(other.snapshot()) == contents_of(local)
    other.delete()


def test_another_load_waits_until_the_first_is_finished(server: Any, remote: SparqlGraph) -> None:
    remote.store.endpoint.update(f'INSERT DATA {{ GRAPH <{remote.store.base}> {{ <{remote.store.base}> <pred:loading> "x" }} }}')
    more = condgraph.open()
    more.add([Statement("a", "p", Ref("b"))])
    with pytest.raises(StoreBusyError, match="not finished"):
        remote.push(more)


def test_a_load_that_was_ended_is_waited_for_no_longer_than_asked(server: Any, remote: SparqlGraph) -> None:
    node = f"<{remote.store.base}>"
    remote.store.endpoint.update(f'INSERT DATA {{ GRAPH {node} {{ {node} <pred:loading> "x" }} }}')
    begin = time.monotonic()
    with pytest.raises(StoreBusyError, match="not finished"):
        remote.add([Statement("a", "p", Ref("b"))], wait=0.6)
    assert time.monotonic() - begin >= 0.6
    threading.Timer(0.5, remote.store.endpoint.update, [f"DELETE WHERE {{ GRAPH {node} {{ {node} <pred:loading> ?x }} }}"]).start()
    assert remote.add([Statement("a", "p", Ref("b"))], wait=30).statements == 1


def test_two_loaders_take_turns(server: Any) -> None:
    """At once and again into one graph: both are there in the end, and each was told of a graph
    that was whole.
    """
    opened(server, "turns").delete()
    reports: list[int] = []
    problems: list[BaseException] = []

    def load(name: str) -> None:
        try:
            for i in range(3):
                with opened(server, "turns") as one:
                    reports.append(one.add([Statement(name, "p", f"{name} {i}")], source=f"{name} {i}", wait=60).statements)
        except BaseException as problem:  # noqa: BLE001 - the test tells
            problems.append(problem)

    loaders = [threading.Thread(target=load, args=[name]) for name in ("ann", "bo")]
    for loader in loaders:
        loader.start()
    for loader in loaders:
        loader.join()
    assert problems == []
    remote = opened(server, "turns")
    expected = condgraph.open()
    for name in ("ann", "bo"):
        for i in range(3):
            expected.add([Statement(name, "p", f"{name} {i}")], source=f"{name} {i}")
    assert remote.kopl("FindAll() QueryAttr(p)").texts == expected.kopl("FindAll() QueryAttr(p)").texts
    assert {source.name for source in remote.status().sources} == {source.name for source in expected.status().sources}
    assert reports == [1] * 6
    remote.delete()


def test_a_reader_sees_a_whole_graph_or_an_error(server: Any, remote: SparqlGraph) -> None:
    reader = opened(server, "stores")
    count = reader.kopl("FindAll() Count()").values[0]
    node = f"<{remote.store.base}>"
    remote.store.endpoint.update(f"DELETE WHERE {{ GRAPH {node} {{ {node} <pred:load> ?x }} }}")
    remote.store.endpoint.update(f'INSERT DATA {{ GRAPH {node} {{ {node} <pred:loading> "x" }} }}')
    for program in ("FindAll() Count()", "FindAll() QueryName()", "Find(Ann) QueryAttr(height) VerifyNum(1.7 metre, =)"):
        with pytest.raises(StoreBusyError):
            reader.kopl(program)
    remote.delete()
    more = condgraph.open()
    more.add([Statement("a", "p", Ref("b"))])
    remote.push(more)
    # The reader's schema is of the graph that was: it is read anew.
    assert reader.kopl("FindAll() Count()").values == [2]
    assert count != 2


def test_read_only(server: Any) -> None:
    found = opened(server, "never", read_only=True)
    with pytest.raises(ReadOnlyError):
        found.push(world())
    with pytest.raises(ReadOnlyError):
        found.delete()
    with pytest.raises(ReadOnlyError):
        found.store.endpoint.update("INSERT DATA { <a:b> <a:c> <a:d> }")
    with pytest.raises(ReadOnlyError):
        found.add([Statement("a", "p", Ref("b"))])
    with pytest.raises(StoreMissingError, match="no graph 'never'"):
        found.kopl("FindAll() Count()")


@pytest.mark.xdist_group("oxigraph")
def test_a_server_that_is_killed_while_it_loads(oxigraph_server: Any) -> None:
    """On a server of its own: killed in the middle of a load, started again; the load goes on and
    nothing is lost or doubled.
    """
    local = condgraph.open()
    local.add([Statement(f"e{i}", f"p{i % 9}", Quantity(i)) for i in range(4_000)], source="many")
    with type(oxigraph_server)() as server:
        remote = opened(server, "killed")
        update, sent = remote.store.endpoint.update, [0]

        def killing(text: str, *, timeout: float | None = None) -> None:
            sent[0] += 1
            if sent[0] == 12:
                server.kill()
            update(text, timeout=timeout)

        remote.store.endpoint.update = killing  # type: ignore[method-assign]
        with pytest.raises(StoreError):
            remote.push(local)
        remote.store.endpoint.update = update  # type: ignore[method-assign]
        server.start()
        with pytest.raises(StoreError, match=r"not finished|load something"):
            remote.kopl("FindAll() Count()")
        remote.push(local)
        assert contents_of(remote.snapshot()) == contents_of(local)


# -- requests --------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["get", "post", "auto"])
def test_methods(server: Any, remote: SparqlGraph, method: str) -> None:
    found = opened(server, "stores", method=method)
    assert found.kopl("Find(Ann) QueryAttr(height)").texts == ["1.7 metre"]
    names = " ".join(f'"{"long name " * 5}{i}"' for i in range(20 if method == "get" else 200))
    assert found.sparql(f"SELECT ?e {{ VALUES ?n {{ {names} }} ?e <pred:name> ?n }}").rows == []


@pytest.mark.xdist_group("virtuoso")
def test_digest_authentication(virtuoso_server: Any, graph: Graph) -> None:
    address = virtuoso_server.protected
    found = condgraph.open(f"sparql+{address}", graph="protected")
    assert "dba" not in found.place
    found.push(graph)  # type: ignore[attr-defined]
    assert found.kopl("Find(Ann) QueryAttr(height)").texts == ["1.7 metre"]
    found.delete()  # type: ignore[attr-defined]
    wrong = condgraph.open(f"sparql+{address.replace('dba:dba', 'dba:wrong')}", graph="protected")
    with pytest.raises(StoreError, match="refuses the user or the password"):
        wrong.kopl("FindAll() Count()")


@pytest.fixture(scope="module")
def graph() -> Graph:
    return world()


def test_credentials_come_from_the_environment_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARQL_USERNAME", "ann")
    monkeypatch.setenv("SPARQL_PASSWORD", "secret")
    assert Endpoint("http://host/sparql")._user == "ann"
    assert Endpoint("http://bo:s%20x@host/sparql")._user == "bo"
    assert Endpoint("http://bo:s%20x@host/sparql")._password == "s x"
    assert "secret" not in repr(Endpoint("http://host/sparql"))


def test_what_is_no_endpoint(server: Any) -> None:
    for address in (f"{server.http}/nowhere/at/all", server.http + "/"):
        with pytest.raises(StoreError, match="not a SPARQL endpoint"):
            condgraph.open(f"sparql+{address}").kopl("FindAll() Count()")
    with pytest.raises(StoreError, match="no server answers"):
        condgraph.open("sparql+http://127.0.0.1:9/sparql").kopl("FindAll() Count()")
    with pytest.raises(OptionError, match="not the address of an endpoint"):
        condgraph.open("sparql+http:///sparql")
    with pytest.raises(OptionError, match="takes no option 'updat'"):
        condgraph.open("sparql+http://localhost/sparql", updat="x")


# -- deadlines -------------------------------------------------------------------------------------


def test_deadlines(remote: SparqlGraph) -> None:
    begin = time.monotonic()
    with pytest.raises(DeadlineError):
        remote.sparql(ENDLESS, timeout=0.5)
    assert quick_enough(time.monotonic() - begin, 5)
    assert remote.kopl("Find(Ann) QueryAttr(height)", timeout=30).texts == ["1.7 metre"]


def test_cancelling(remote: SparqlGraph) -> None:
    cancelled = threading.Event()
    threading.Timer(0.3, cancelled.set).start()
    with pytest.raises(CancelledError):
        remote.sparql(ENDLESS, cancelled=cancelled, timeout=20)


@pytest.mark.xdist_group("oxigraph")
def test_a_server_that_does_not_answer(oxigraph_server: Any, graph: Graph) -> None:
    remote = opened(oxigraph_server, "paused")
    remote.push(graph)
    remote.kopl("FindAll() Count()")
    oxigraph_server.pause()
    try:
        begin = time.monotonic()
        with pytest.raises(DeadlineError):
            remote.kopl("Find(Ann) QueryName()", timeout=0.5)
        assert quick_enough(time.monotonic() - begin, 5)
    finally:
        oxigraph_server.resume()
    assert remote.kopl("Find(Ann) QueryName()", timeout=30).texts == ["Ann"]
    remote.delete()


@pytest.mark.xdist_group("oxigraph")
def test_a_result_that_ends_in_the_middle_is_an_error(oxigraph_server: Any) -> None:
    """A server with a limit of its own puts words in the place of what is missing: it was too slow."""
    local = condgraph.open()
    local.add([Statement(f"e{i}", "knows", Ref(f"e{i * 7 % 400}")) for i in range(400)])
    with type(oxigraph_server)(limit=1) as server:
        remote = opened(server, "gives up")
        remote.push(local)
        much = "{ ?a <knows> ?x . ?b <knows> ?y . ?c <knows> ?z }"
        # On a busy machine it may close the connection instead, and the words are lost.
        ended = r"the server ended the query: The SPARQL operation has been cancelled|closed the connection"
        queries = (f"SELECT ?a ?b ?c {much}", f"SELECT (COUNT(*) AS ?n) {much}", f"CONSTRUCT {{ ?a ?b ?c }} WHERE {much}")
        for query in sample(queries, 2):
            with pytest.raises((DeadlineError, StoreError), match=ended):
                remote.sparql(query)


@pytest.mark.xdist_group("virtuoso")
def test_texts_and_numbers_in_place_on_virtuoso(virtuoso_server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It tells no datatype of a text with a language; and counts nodes in two graphs once."""
    monkeypatch.setenv("CONDGRAPH_CACHE", str(tmp_path))
    (tmp_path / "map.toml").write_text('graphs = ["http://e.org/1", "http://e.org/2"]\n')
    triples = pyoxigraph.parse(input=COUNTED, format=pyoxigraph.RdfFormat.TURTLE)
    lines = [f"{triple} .\n" for triple in triples] + ['<http://e.org/a> <http://e.org/title> "One"@en .\n']
    put(virtuoso_server, lines, "http://e.org/1")
    put(virtuoso_server, ["<http://e.org/a> <http://e.org/knows> <http://e.org/b> .\n"], "http://e.org/2")
    (tmp_path / "data.nt").write_text("".join(lines))
    ends, members = "FindAll() Relate(knows, backward)", "FindAll() FilterConcept(thing)"
    with (
        condgraph.open() as here,
        condgraph.open(f"sparql+{virtuoso_server.query}", layout="native", mapping=tmp_path / "map.toml") as there,
    ):
        here.load(tmp_path / "data.nt")
        for program in ("FindAll()", ends, members, f"{members} Relate(knows, forward)", f"{ends} {members} And()"):
            assert there.kopl(f"{program} Count()").texts == here.kopl(f"{program} Count()").texts, program
        assert there.kopl("FindAll() FilterStr(title, One) QueryName()").texts == ["A"]
        counted = there.cypher('MATCH (n) WHERE n.title = "One" RETURN count(*)')
        assert (counted.values, counted.warnings) == ([(1,)], [])
        with pytest.raises(UnknownNameError, match="it is an attribute"):
            there.kopl("FindAll() Relate(title, forward) Count()")


@pytest.mark.xdist_group("virtuoso")
def test_a_result_that_a_server_cuts_is_an_error(virtuoso_server: Any, graph: Graph) -> None:
    """A row limit of the server (here 5, on a server of its own) would make answers wrong without a
    word.
    """
    with type(virtuoso_server)(rows=20) as server:
        remote = opened(server, "cut")
        remote.push(graph)
        assert remote.kopl("Find(Ann) QueryAttr(height)").texts == ["1.7 metre"]
        with pytest.raises(StoreError, match="cuts results at 20 rows"):
            remote.sparql("SELECT ?s { ?s ?p ?o }")
        # Of triples it says nothing; what is pulled is held against what was written.
        with pytest.raises(StoreError, match=r"not all|not what was written"):
            remote.snapshot()
        assert any("cut" in warning for warning in remote.sparql("CONSTRUCT WHERE { ?s ?p ?o }").warnings)
