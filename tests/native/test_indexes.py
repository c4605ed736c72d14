"""Which indexes of databases that condgraph did not write are asked, and what is looked through where
there is none.
"""

from __future__ import annotations

import pytest

import condgraph
from condgraph.remote_native import NativeGraph
from tests.support.native_databases import database, planned

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
                _, plan = planned(session, graph, program)
                assert "TEXT INDEX" in plan, (program, plan)
                assert "NodeByLabelScan" not in plan, (program, plan)
                assert graph.kopl(program).texts == (["7"] if "year" in program else ["film 7"])


def test_labels_whose_names_no_index_has_are_looked_through_together(emptied_neo4j_uri: str) -> None:
    """Each query of its own costs the planner; a label with an index of any kind keeps its seek."""
    labels = [f"Kind {number}" for number in range(6)]
    with database(emptied_neo4j_uri) as driver, driver.session() as session:
        for number, label in enumerate(labels):
            session.run(f"UNWIND range(1, 50) AS i CREATE (:`{label}` {{name: '{number} ' + i, size: i}})").consume()
        session.run("CREATE (:`Kind 1`:`Kind 2` {name: 'of both', size: 1})").consume()
        session.run("UNWIND range(1, 500) AS i CREATE (:Film {name: 'film ' + i, size: i})").consume()
        session.run("CREATE INDEX FOR (n:Film) ON (n.name)").consume()
        session.run("CALL db.awaitIndexes(60)").consume()
        with condgraph.open(emptied_neo4j_uri) as graph:
            assert isinstance(graph, NativeGraph)
            here = graph.snapshot()
            for name in ("film 7", "5 7", "of both"):
                program = f"Find({name}) QueryAttr(size)"
                text, plan = planned(session, graph, program)
                assert text.count(":`Kind 0`|`Kind 1`|`Kind 2`|`Kind 3`|`Kind 4`|`Kind 5`) WHERE ") == 1, text
                assert ":`Film`) WHERE " in text
                assert "NodeIndexSeek" in plan, plan
                found, expected = graph.kopl(program), here.kopl(program)
                assert found.texts == expected.texts == [{"of both": "1"}.get(name, "7")]
                assert found.evidence
                assert {str(one) for one in found.evidence} == {str(one) for one in expected.evidence}
