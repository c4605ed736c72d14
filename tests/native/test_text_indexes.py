"""Indexes of texts alone, in databases that condgraph did not write, are asked."""

from __future__ import annotations

import pytest

import condgraph
from condgraph.engine.store import Request
from condgraph.languages.registry import lower
from condgraph.remote_native import NativeGraph
from tests.support.native_databases import database

pytestmark = pytest.mark.xdist_group("neo4j native")


def test_an_index_of_texts_alone_is_asked(emptied_neo4j_uri: str) -> None:
    """The planner takes it only for what it knows to be a text."""
    with database(emptied_neo4j_uri) as driver, driver.session() as session:
        session.run("UNWIND range(1, 500) AS i CREATE (:Film {title: 'film ' + i, motto: 'motto ' + i, year: i})").consume()
        session.run("CREATE TEXT INDEX film_title FOR (n:Film) ON (n.title)").consume()
        session.run("CREATE TEXT INDEX film_motto FOR (n:Film) ON (n.motto)").consume()
        session.run("CALL db.awaitIndexes(60)").consume()
        with condgraph.open(emptied_neo4j_uri) as graph:
            assert isinstance(graph, NativeGraph)
            for program in ("Find(film 7) QueryAttr(year)", "FindAll() FilterStr(motto, motto 7) QueryName()"):
                compiled = graph.store._asked(Request(program, "kopl", {}, None, lower)).compiled
                plan = str(session.run(f"EXPLAIN {compiled.text}", compiled.parameters).consume().plan)
                assert "TEXT INDEX" in plan, (program, plan)
                assert "NodeByLabelScan" not in plan, (program, plan)
                assert graph.kopl(program).texts == (["7"] if "year" in program else ["film 7"])
