"""A graph at a `neo4j://` address: the driver asks the server where to read and where to write, and
who loaded reads what was loaded, whichever member of a cluster answers.
"""

from __future__ import annotations

from typing import Any

import pytest

import condgraph
from condgraph.remote_neo4j import Neo4jGraph
from tests.support.differential import outcome
from tests.support.world import PROGRAMS, world

pytestmark = pytest.mark.xdist_group("neo4j")


def routed(uri: str) -> Neo4jGraph:
    """The graph at the address that asks for routes."""
    found = condgraph.open(uri.replace("bolt://", "neo4j://"), graph="routing")
    assert isinstance(found, Neo4jGraph)
    return found


def test_answers_by_routing(neo4j_uri: str) -> None:
    local = world()
    with routed(neo4j_uri) as remote:
        remote.store.delete()
        remote.push(local)
        for program in PROGRAMS[::4]:
            assert outcome(remote, program) == outcome(local, program)
        remote.store.delete()


def test_who_wrote_reads_that_or_later(neo4j_uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every session after a load names the last state that the load made; a reader that wrote
    nothing names none, so that nothing makes it wait.
    """
    with routed(neo4j_uri) as writer, routed(neo4j_uri) as reader:
        writer.store.delete()
        writer.push(world())
        seen: dict[str, list[Any]] = {"writer": [], "reader": []}
        for name, graph in (("writer", writer), ("reader", reader)):
            driver = graph.store.connection.driver
            session = driver.session
            monkeypatch.setattr(
                driver, "session", lambda real=session, to=seen[name], **options: to.append(options) or real(**options)
            )
            assert graph.kopl("FindAll() Count()").values == world().kopl("FindAll() Count()").values
        last = frozenset(writer.store.connection._bookmarks.get_bookmarks())
        assert last
        assert seen["writer"]
        assert {one["bookmarks"].raw_values for one in seen["writer"]} == {last}
        assert {one["bookmarks"].raw_values for one in seen["reader"]} == {frozenset()}
        monkeypatch.undo()
        writer.store.delete()
