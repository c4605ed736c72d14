"""Labels of concepts on entities beside data of others, which is asked where it is."""

from __future__ import annotations

from collections.abc import Iterator

import neo4j
import pytest

import condgraph
from condgraph.cypher import labels
from condgraph.cypher.labels import alone
from condgraph.cypher.native.identity import OWN, own_only
from condgraph.engine.errors import StoreError, UnknownNameError
from condgraph.engine.facts import Item, Member, Ref, Statement
from condgraph.remote_neo4j import Neo4jGraph
from tests.support.labelled import carried
from tests.support.native_databases import database

pytestmark = pytest.mark.xdist_group("neo4j native")


def test_every_label_of_the_layout_is_counted_once() -> None:
    assert set(labels._NODES) == {label for label in OWN if own_only(label)}


@pytest.fixture
def empty(emptied_neo4j_uri: str) -> Iterator[tuple[str, neo4j.Driver]]:
    with database(emptied_neo4j_uri) as driver:
        yield emptied_neo4j_uri, driver


def test_who_shares_a_database_is_not_disturbed(empty: tuple[str, neo4j.Driver]) -> None:
    """By default entities have labels where nothing else is; others' names are never used; and who
    reads others' data where it is does not meet entities.
    """
    uri, driver = empty
    items: list[Item] = [Member("a", "Person"), Member("b", "Film"), Statement("a", "made", Ref("b"))]
    with condgraph.open(uri, layout="condgraph") as ours, condgraph.open(uri, graph="second") as second:
        assert isinstance(ours, Neo4jGraph)
        assert isinstance(second, Neo4jGraph)
        assert alone(ours.store.connection)
        ours.add(items, source="s")
        assert carried(ours) == {"a": {"Person"}, "b": {"Film"}}
        # Another graph of condgraph's is nothing of others; an index on a name of theirs is.
        second.add([Member("a", "Person")], source="s")
        assert carried(second) == {"a": {"Person"}}
        second.delete()
        driver.execute_query("CREATE CONSTRAINT theirs FOR (n:Actor) REQUIRE n.name IS UNIQUE")
        second.add([Member("a", "Actor"), Member("b", "Film")], source="s")
        assert carried(second) == {}
        assert second.label() == [
            "the concept 'Actor' is no label: other nodes, an index or a constraint of the database use that name"
        ]
        assert carried(second) == {"b": {"Film"}}
        # Once they use the name no more it is there for us.
        driver.execute_query("DROP CONSTRAINT theirs")
        assert second.label() == []
        assert carried(second) == {"a": {"Actor"}, "b": {"Film"}}
        second.delete()
        # Others come: their labels are theirs, and ours are not among them.
        driver.execute_query("CREATE (:Ship {name: 'Vasa'})-[:IN]->(:Port {name: 'Stockholm'})")
        with condgraph.open(uri, layout="native") as native:
            assert [node.label for node in native.mapping.nodes] == ["Port", "Ship"]  # type: ignore[attr-defined]
            assert native.status().counts["entities"] == 2
            assert native.kopl("FindAll() FilterConcept(Ship) QueryName()").texts == ["Vasa"]
        second.add([Member("a", "Ship"), Member("b", "Crew")], source="s")
        assert carried(second) == {"b": {"Crew"}}
        second.delete()
        # A graph that had a label first keeps it, and whoever then uses it too is told.
        driver.execute_query("CREATE (:Person {name: 'Ann'})")
        with pytest.raises(StoreError, match="the label 'Person' is on entities of the graph 'default' and on other nodes"):
            condgraph.open(uri, layout="native")
        ours.label(False)
        with condgraph.open(uri, layout="native") as native:
            assert native.kopl("FindAll() FilterConcept(Person) QueryName()").texts == ["Ann"]
        ours.delete()


def test_columns_of_tables_are_those_of_the_rows(empty: tuple[str, neo4j.Driver]) -> None:
    uri, driver = empty
    driver.execute_query(
        "CREATE (t:Town {title: 'Sulden'}), (:Peak {title: 'Ortler', height: 3905})-[:AT]->(t), "
        "(:Club {name: 'Alpine', title: 'AC', members: 40})-[:AT]->(t)"
    )
    with condgraph.open(uri, layout="native") as graph:
        assert graph.query("FindAll() FilterConcept(Peak)", table="show name, height").cells == [("Ortler", "3905")]
        assert graph.query("FindAll() FilterConcept(Peak)", table="where name = 'Ortler' show count()").cells == [("1",)]
        assert graph.query("FindAll()", table="show name").cells == [("Alpine",), ("Ortler",), ("Sulden",)]
        with pytest.raises(UnknownNameError, match=r"it is a column of Club, and none of these rows \(Peak\) has it"):
            graph.query("FindAll() FilterConcept(Peak)", table="show count(members)")
        with pytest.raises(UnknownNameError, match="unknown relation 'AT'"):
            graph.query("FindAll() FilterConcept(Peak)", table="show count(^AT)")
        assert graph.query("Find(Ortler)", table="show members").warnings == ["members: none of the rows has such a value"]
        # Properties are counted beyond the sample; which labels relationships lead to is not.
        driver.execute_query(
            "MATCH (t:Town) WITH t LIMIT 1 UNWIND range(1, 1001) AS i CREATE (:Peak {title: 'p' + i, height: i})-[:AT]->(t)"
        )
    with condgraph.open(uri, layout="native") as graph:
        with pytest.raises(UnknownNameError, match="unknown column 'members'"):
            graph.query("FindAll() FilterConcept(Peak)", table="show count(members)")
        found = graph.query("FindAll() FilterConcept(Peak)", table="show count(height), count(^AT)")
        assert found.cells == [("1002", "0")]
        assert found.warnings == ["^AT: none of the rows has such a value"]
