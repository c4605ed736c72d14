"""Loads into RDF stores that were ended, taken back; and graphs deleted beside what others keep in
the same named graph.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import pytest

import condgraph
from condgraph.engine.errors import LoadError, StoreBusyError, StoreMissingError
from condgraph.engine.facts import Entity, EntityKind, Item, Member, Ref, Statement
from condgraph.engine.values import Quantity, Time
from condgraph.remote_sparql import SparqlGraph
from tests.support.lanes import by_lane
from tests.support.stores import marked
from tests.support.world import contents, world

MORE: list[Item] = [
    Statement("a", "knows", Ref("c"), (("since", Time.year(2001)),)),
    Statement("a", "height", Quantity(1.7, "metre"), (("point in time", Time.day(2001, 2, 3)),)),
    Statement("b", "born", Time.year(-43)),
    Statement("x", "count", Quantity(0.1)),
    Entity("b", "Bob, renamed"),
    Entity("x", "now a concept", EntityKind.CONCEPT),
    Member("b2", "human"),
]


@pytest.fixture(params=marked("oxigraph", nightly=("fuseki", "virtuoso")))
def server(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(f"{request.param}_server")


def opened(server: Any, graph: str) -> SparqlGraph:
    found = condgraph.open(f"sparql+{server.query}", graph=graph, update=server.update)
    assert isinstance(found, SparqlGraph)
    return found


def ended(remote: SparqlGraph, allowed: int, act: Callable[[], object]) -> bool:
    """Whether an act was ended after so many changes of the store."""
    endpoint, left = remote.store.endpoint, [allowed]

    def counted(change: Callable[..., None]) -> Callable[..., None]:
        def change_or_end(*arguments: Any, **options: Any) -> None:
            if not left[0]:
                raise KeyboardInterrupt
            left[0] -= 1
            change(*arguments, **options)

        return change_or_end

    endpoint.update, endpoint.add = counted(endpoint.update), counted(endpoint.add)  # type: ignore[method-assign]
    try:
        act()
    except KeyboardInterrupt:
        return True
    finally:
        del endpoint.update, endpoint.add
    return False


def everything(remote: SparqlGraph) -> tuple[int, set[str]]:
    """How many triples there are, and what they say."""
    (count,) = remote.store.endpoint.query("SELECT (COUNT(*) AS ?n) { ?s ?p ?o }", graphs=(remote.store.base,))
    return int(count["n"].value), contents(remote.snapshot())


def test_a_load_that_added_to_a_graph_is_taken_back(server: Any) -> None:
    remote = opened(server, "unfinished")
    remote.delete()
    remote.push(world())
    before, allowed = everything(remote), 1
    while ended(remote, allowed, lambda: remote.add(MORE, source="more")) and not remote.store.exists():
        with pytest.raises(StoreBusyError, match=r"not finished.*abandon"):
            remote.kopl("FindAll() Count()")
        assert remote.abandon()
        assert not remote.abandon()
        assert everything(remote) == before, allowed
        allowed += 9 if server.name == "fuseki" else 3
    assert allowed > 20
    local = world()
    local.add(MORE, source="more")
    assert contents(remote.snapshot()) == contents(local)
    assert remote.delete()
    assert not remote.delete()


def test_a_first_load_is_taken_back(server: Any) -> None:
    remote = opened(server, "unfinished first")
    remote.delete()
    for allowed in (1, 3, 5, 7, 9):
        if not ended(remote, allowed, lambda: remote.push(world())):
            break
        assert remote.abandon()
        with pytest.raises(StoreMissingError):
            remote.status()
    remote.push(world())
    assert contents(remote.snapshot()) == contents(world())
    remote.delete()


def test_a_source_that_has_changed_is_said(server: Any, tmp_path: Any) -> None:
    remote = opened(server, "unfinished source")
    remote.delete()
    file = tmp_path / "peaks.csv"
    file.write_text("peak,height\nA,1\nB,2\n")
    assert ended(remote, 6, lambda: remote.load(file, key="peak"))
    file.write_text("peak,height\nA,1\nB,3\n")
    with pytest.raises(StoreBusyError, match=r"a load of 'peaks' .*what it was read from has changed since"):
        remote.load(file, key="peak")
    assert remote.abandon()
    assert remote.load(file, key="peak").entities == 2
    remote.delete()


def test_a_loader_that_is_at_work_is_not_taken_over(server: Any) -> None:
    """Not by one who loads the same, nor by one who would take it back; a killed one is."""
    remote = opened(server, "unfinished process")
    remote.delete()
    script = f"""
        import condgraph, sys
        from tests.support.world import world
        graph = condgraph.open({f"sparql+{server.query}"!r}, graph="unfinished process", update={server.update!r})
        update, sent = graph.store.endpoint.update, []
        def slow(text, **options):
            update(text, **options)
            sent.append(text)
            if len(sent) == 8:
                print("written", flush=True)
                sys.stdin.readline()
        graph.store.endpoint.update = slow
        graph.push(world())
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "written\n"
        for act in (lambda: remote.push(world()), remote.abandon, lambda: remote.kopl("FindAll() Count()")):
            with pytest.raises(StoreBusyError, match=f"process {process.pid} on "):
                act()
        process.kill()
    remote.push(world())
    assert contents(remote.snapshot()) == contents(world())
    remote.delete()


def test_triples_of_others_in_the_same_named_graph_stay(server: Any) -> None:
    remote = opened(server, "unfinished beside")
    remote.delete()
    remote.push(world())
    base = remote.store.base
    mine = "<http://example.org/mine> <http://example.org/says> 'this stays'"
    remote.store.endpoint.update(f"INSERT DATA {{ GRAPH <{base}> {{ {mine} }} GRAPH <http://example.org/other> {{ {mine} }} }}")
    try:
        assert remote.delete()
        for graph in (base, "http://example.org/other"):
            (row,) = remote.store.endpoint.query("SELECT (COUNT(*) AS ?n) { ?s ?p ?o }", graphs=(graph,))
            assert row["n"].value == "1"
    finally:
        for graph in (base, "http://example.org/other"):
            remote.store.endpoint.update(f"CLEAR SILENT GRAPH <{graph}>")


def test_long_and_odd_texts(server: Any) -> None:
    """They work, or are an error before anything is written."""
    long = "n" * 9_000
    parts: list[list[Item]] = [
        [Entity(long, "named")],
        [Entity("a", long)],
        [Statement("a", long, "x")],
        [Statement("a", "p", long)],
        [Statement("a", "p", Quantity(1, long))],
        [Statement("a", "p", "x", ((long, "x"),))],
        [Statement("a\0", "p", "x")],
        [Statement("a", "p\0", "x")],
        [Statement("a", "p", "x\0y")],
        [Statement("a", "", "x")],
        [Statement("", "p", "x")],
    ]
    for place, items in list(enumerate(parts))[:: 3 if server.name == "fuseki" else by_lane(2, 1, 1)]:
        for source in ("s", long) if not place else ("s",):
            remote = opened(server, "unfinished odd")
            remote.delete()
            remote.add([Statement("former", "p", "x")])
            local = condgraph.open()
            local.add([Statement("former", "p", "x")])
            try:
                remote.add(items, source=source)
            except LoadError:
                assert contents(remote.snapshot()) == contents(local)
            else:
                local.add(items, source=source)
                assert contents(remote.snapshot()) == contents(local), (place, source[:10])
            remote.delete()
