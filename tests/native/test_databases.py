"""Neo4j databases that condgraph did not write: looked at, opened, pulled, and left as they are."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import neo4j
import pytest

import condgraph
from condgraph.cypher.connection import Connection
from condgraph.cypher.layout.base import value_of
from condgraph.cypher.layout.schema import value_properties
from condgraph.cypher.native import introspect
from condgraph.cypher.native.identity import foreign
from condgraph.cypher.native.introspect import counts, look
from condgraph.cypher.native.mapping import Mapping, Property
from condgraph.cypher.native.refresh import CurrentMapping
from condgraph.cypher.native.values import as_list, fields, sent, values_in
from condgraph.engine.errors import CondgraphError, OptionError, ReadOnlyError, UnknownNameError
from condgraph.engine.values import collapse, text_of
from condgraph.graph import Graph
from condgraph.remote_native import NativeGraph, typed
from condgraph.remote_neo4j import Neo4jGraph
from condgraph.samples import FOLDER
from tests.support.lanes import by_lane
from tests.support.native_databases import content, database, emptied, social

#: What Northwind's script guesses wrong in nothing: names by label, and what tells the nodes apart.
_NORTHWIND = {
    "Category": (("categoryName",), "categoryID"),
    "Customer": (("companyName",), "customerID"),
    "Order": ((), "orderID"),
    "Product": (("productName",), "productID"),
    "Supplier": (("companyName",), "supplierID"),
}


@pytest.fixture
def ugly(emptied_neo4j_uri: str) -> Iterator[tuple[str, neo4j.Driver, dict[str, Any]]]:
    """The social database and the ledger together, with what is in them."""
    with database(emptied_neo4j_uri, "social", "ledger") as driver:
        yield emptied_neo4j_uri, driver, content(driver)


def _rows(driver: neo4j.Driver, text: str, **parameters: Any) -> list[list[Any]]:
    with driver.session(default_access_mode="READ") as session:
        return [row.values() for row in session.run(text, parameters)]


def _mapping(graph: Graph) -> Mapping:
    assert isinstance(graph, NativeGraph)
    return graph.mapping


def _properties(mapping: Mapping, label: str) -> dict[str, Property]:
    return {one.key: one for node in mapping.nodes if node.label == label for one in node.properties}


# -- values ----------------------------------------------------------------------------------------

_VALUES = (
    *("1", "-5", "0", "9007199254740992", "9007199254740993", "-9007199254740993", "9223372036854775807"),
    *("-9223372036854775807 - 1", "9223372036854774785", "1.5", "-0.0", "1e14", "0.0 / 0.0", "1.0 / 0.0", "-1.0 / 0.0"),
    *("true", "false", "'a'", "' a  b '", "''", "'12'", "'012'", "'1.50'", "'-3'", "'7/08/2017'", "'31/02/2017'"),
    *("'29/02/2016'", "'2017-02-29'", "'2017-12-31'", "'2015-06-24T12:50:35.556+01:00'", "'2015-06-24 12:50-0130'"),
    *("'2015-02-31T12:50:35Z'", "'Mar 3, 2010'", "20170807", "'1996-07-04 00:00:00.000'", "date('2020-02-29')"),
    *("date('-0044-03-15')", "date('+12345-01-01')", "localdatetime('1960-01-01T10:00:00.5')"),
    *("datetime('2020-01-01T10:00+02:00')", "datetime('2020-06-01T10:00:01[Europe/Paris]')", "localtime('10:00:01.25')"),
    *("datetime('1850-06-01T10:00:01[Europe/Paris]')", "time('01:00+02:00')", "time('23:30-05:00')", "duration('P1Y2M')"),
    *("duration('P1DT2H')", "duration('PT-0.5S')", "duration('P1M1D')", "duration('P0D')", "duration('P-3M')"),
    *("point({x: 1, y: 2})", "point({latitude: 1.5, longitude: 2})", "[1, 2, 2]", "['a', 'b']", "[date('2020-01-01')]", "[]"),
)
_READINGS = (
    *(("itself", None, True), ("number", None, False), ("date", "%d/%m/%Y", False), ("datetime", None, False)),
    *by_lane(
        (),
        (("date", "%Y%m%d", True), ("date", "%b %d, %Y", False)),
        (*(("itself", None, False), ("date", "%Y", False), ("date", None, False), ("date", "%Y-%m-%d 00:00:00.000", False)),),
    ),
)


def test_values_are_the_same_in_python_and_in_cypher(emptied_neo4j_uri: str) -> None:
    with database(emptied_neo4j_uri) as driver:
        with driver.session() as session:
            for number, text in enumerate(_VALUES):
                session.run(f"CREATE (:Odd {{i: $i, v: {text}}})", i=number).consume()
        held = _rows(driver, f"MATCH (n:Odd) RETURN n.i, {sent('n.v')}")
        assert len(held) == len(_VALUES)
        for reading, form, untidy in _READINGS:
            prop = Property("v", "v", (), 1, reading, form, untidy=untidy)  # type: ignore[arg-type]
            cell = ", ".join(f"{name}: {text}" for name, text in fields("p", prop).items())
            found: dict[int, set[Any]] = {}
            for number, one in _rows(driver, f"MATCH (n:Odd) UNWIND {as_list('n.v', prop)} AS p RETURN n.i, {{{cell}}}"):
                value = value_of(one)
                raw = text_of(value) if one["raw"] is None else one["raw"]
                found.setdefault(number, set()).add((value, raw))
                if not isinstance(value, str):
                    assert value_properties(value).get("order") == one["order"], _VALUES[number]
            for number, value in held:
                tidy = [(collapse(x) if untidy and isinstance(x, str) else x, x, raw) for x, raw in values_in(value, prop)]
                expected = {(x, raw or text_of(before)) for x, before, raw in tidy}
                assert found.get(number, set()) == expected, (_VALUES[number], reading, form, untidy)


# -- looking ---------------------------------------------------------------------------------------


def test_names_keys_and_readings_of_northwind(emptied_neo4j_uri: str, data: Path) -> None:
    with database(emptied_neo4j_uri, "northwind") as driver, condgraph.open(emptied_neo4j_uri) as graph:
        before = content(driver)
        mapping = _mapping(graph)
        assert {node.label: (node.name, node.unique) for node in mapping.nodes} == _NORTHWIND
        order = _properties(mapping, "Order")
        assert (order["orderDate"].reading, order["orderDate"].format) == ("date", "%Y-%m-%d 00:00:00.000")
        assert (order["freight"].reading, order["customerID"].reading) == ("number", "itself")
        assert (mapping.node_count, mapping.relationship_count, mapping.unlabelled) == (1035, 3139, 0)
        assert {one.type: one.ends for one in mapping.relationships}["SUPPLIES"] == (("Supplier", "Product", 77),)
        pulled = graph.snapshot()
        # By Cypher that was written by hand.
        (count,) = _rows(driver, "MATCH (o:Order)-[:ORDERS]->(:Product {productName: 'Chai'}) RETURN count(o)")[0]
        assert pulled.kopl("Find(Chai) Relate(ORDERS, backward) FilterConcept(Order) Count()").values == [count]
        text = "MATCH (o:Order) WHERE o.orderDate STARTS WITH '1997-' RETURN count(o)"
        (count,) = _rows(driver, text)[0]
        assert pulled.kopl("FindAll() FilterYear(orderDate, 1997, =) FilterConcept(Order) Count()").values == [count]
        (name,) = _rows(driver, "MATCH (p:Product) RETURN p.productName ORDER BY p.unitPrice DESC LIMIT 1")[0]
        assert pulled.kopl("FindAll() FilterConcept(Product) SelectAmong(unitPrice, largest)").values == [name]
        assert pulled.status().counts["relations"] == 3139
        assert content(driver) == before


def test_movies_are_opened_as_they_are(emptied_neo4j_uri: str, data: Path) -> None:
    with database(emptied_neo4j_uri, "movies") as driver, condgraph.open(emptied_neo4j_uri) as graph:
        before = content(driver)
        assert isinstance(graph, NativeGraph)
        program = "Find(Tom Hanks) Relate(ACTED_IN, forward) FilterNum(released, 2000, >) QueryName()"
        text = "MATCH (:Person {name: 'Tom Hanks'})-[:ACTED_IN]->(m) WHERE m.released > 2000 RETURN DISTINCT m.title"
        expected = sorted(title for (title,) in _rows(driver, text))
        assert graph.kopl(program).values == graph.snapshot().kopl(program).values == expected
        status = graph.status()
        assert status.counts["entities"] == 171
        assert status.counts["relations"] == 253
        assert any("sample" in note for note in status.notes)
        assert "sample" in str(status)
        schema = graph.schema()
        assert {one.name: one.members for one in schema.concepts} == {"Movie": 38, "Person": 133}
        assert "sample" in schema.note
        calls: list[Callable[[], Any]] = [
            *(lambda: graph.load(FOLDER / "countries.json"), lambda: graph.add([]), graph.index, graph.delete),
            *(
                lambda: graph.unload("neo4j"),
                graph.abandon,
                lambda: graph.push(graph),
                graph.rdf,
                lambda: graph.status(verify=True),
            ),  # type: ignore[attr-defined]
        ]
        for call in calls:
            with pytest.raises(CondgraphError) as raised:
                call()
            assert raised.value.hint or isinstance(raised.value, OptionError)
        with pytest.raises(ReadOnlyError):
            graph.cypher("CREATE (n:Person) RETURN n")  # type: ignore[attr-defined]
        assert content(driver) == before


def test_ugly_databases_are_pulled_whole(ugly: tuple[str, neo4j.Driver, dict[str, Any]]) -> None:
    uri, driver, before = ugly
    with condgraph.open(uri, timeout=120) as graph:
        mapping, pulled = _mapping(graph), graph.snapshot()
        by_label = {node.label: node for node in mapping.nodes}
        assert list(by_label)[-1] == ""
        assert mapping.unlabelled == 12
        assert by_label["Person"].name == ("firstName", "surname")
        assert by_label["Person"].hidden == ("vector",)
        assert any("'vector' of Person" in warning for warning in mapping.warnings)
        person = _properties(mapping, "Person")
        assert {key: person[key].reading for key in ("born", "points", "zip", "handle")} == {
            "born": "date",
            "points": "number",
            "zip": "itself",
            "handle": "itself",
        }
        assert person["score"].indexed
        assert person["handle"].indexed
        assert not person["big"].indexed
        assert person["size` of"].untidy
        # Labels that are on the same nodes read their properties alike.
        assert _properties(mapping, "Employee")["mixed"].reading == person["mixed"].reading
        counted = pulled.status().counts
        assert counted["entities"] == mapping.node_count == _rows(driver, "MATCH (n) RETURN count(n)")[0][0]
        assert counted["concepts"] == len(by_label) - 1
        statements = _rows(
            driver,
            "MATCH (a)-[r]->(b) RETURN count(DISTINCT [elementId(a), type(r), elementId(b), "
            "[k IN keys(r) | [k, toStringOrNull(r[k]), CASE WHEN r[k] IS :: LIST<ANY> THEN r[k] END]]])",
        )
        # Lists are sets: that a list has the same in another order makes no other statement.
        assert abs(counted["relations"] - statements[0][0]) <= 30
        assert counted["memberships"] == _rows(driver, "MATCH (n) UNWIND labels(n) AS l RETURN count(*)")[0][0]

        def asked(program: str) -> list[Any]:
            return pulled.kopl(program).values

        assert asked("FindAll() FilterConcept(Place `of` interest) Count()") == [6]
        (loops,) = _rows(driver, "MATCH (p:Person)-[:KNOWS]->(p) RETURN count(DISTINCT p)")[0]
        assert loops > 0
        same = sum(1 for (name,) in _rows(driver, "MATCH (p:Person) RETURN p.handle") if name)
        assert same == asked("FindAll() FilterConcept(Person) Count()")[0]
        (speakers,) = _rows(driver, "MATCH (p:Person) WHERE 'de' IN p.langs RETURN count(p)")[0]
        assert asked("FindAll() FilterStr(langs, de) Count()") == [speakers]
        (large,) = _rows(driver, "MATCH (p:Person) WHERE p.big > 9007199254740993 RETURN count(p)")[0]
        assert asked("FindAll() FilterNum(big, 9007199254740993, >) Count()") == [large]
        (young,) = _rows(driver, "MATCH (p:Person) WHERE toInteger(last(split(p.born, '/'))) > 1990 RETURN count(p)")[0]
        assert asked("FindAll() FilterYear(born, 1990, >) Count()") == [young]
        assert asked("Find(København) QueryAttr(open)") == ["true"]
        (hired,) = _rows(driver, "MATCH (p:Employee) WHERE p.hired < date('2010-01-01') RETURN count(p)")[0]
        assert asked("FindAll() FilterYear(hired, 2010, <) Count()") == [hired]
    assert content(driver) == before


@pytest.mark.slow
def test_indexes_and_counts_are_read_without_a_scan(emptied_neo4j_uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Thirty times as many nodes cost no more: what the server touches is what is sampled."""
    asked: list[tuple[str, dict[str, Any]]] = []
    plain = Connection.ask

    def ask(self: Connection, text: str, parameters: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
        asked.append((text, parameters))
        return plain(self, text, parameters, **more)

    monkeypatch.setattr(Connection, "ask", ask)

    def hits(plan: dict[str, Any]) -> int:
        return int(plan["args"].get("DbHits", 0)) + sum(map(hits, plan.get("children", ())))

    def cost(driver: neo4j.Driver) -> tuple[int, Mapping]:
        asked.clear()
        connection = Connection(emptied_neo4j_uri)
        mapping = look(connection, typed)
        connection.close()
        total = 0
        with driver.session(default_access_mode="READ") as session:
            for text, parameters in asked:
                # The statistics, and what lists indexes, have no plan.
                if text.startswith(("MATCH", "UNWIND", "RETURN")) and text != introspect._UNLABELLED:
                    total += hits(session.run("PROFILE " + text, parameters).consume().profile)  # type: ignore[arg-type]
        return total, mapping

    grown = (
        "UNWIND range($low, $high - 1) AS i "
        "CREATE (a:Big {number: i, word: toString(i)})-[:NEXT {at: i}]->(:Other:Big {number: -i})"
    )
    with database(emptied_neo4j_uri) as driver:
        with driver.session() as session:
            session.run(grown, low=0, high=1_000).consume()
            small, _ = cost(driver)
            for low in range(1_000, 30_000, 10_000):
                session.run(grown, low=low, high=min(low + 10_000, 30_000)).consume()
        large, mapping = cost(driver)
    assert (mapping.node_count, mapping.relationship_count) == (60_000, 30_000)
    assert not any("UNWIND" not in text and text == introspect._UNLABELLED for text, _ in asked)
    assert 0 < large < 1.2 * small


@pytest.mark.slow
def test_counters_one_by_one_say_what_the_statistics_say(emptied_neo4j_uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the right to read the statistics; condgraph's own nodes are left out of both."""
    with database(emptied_neo4j_uri, "ledger") as driver:
        with condgraph.open(emptied_neo4j_uri, layout="condgraph") as ours:
            ours.load(FOLDER / "countries.json")
        connection = Connection(emptied_neo4j_uri)
        try:
            usual = counts(connection)
            # A procedure that is not there fails like one that may not be called.
            monkeypatch.setattr(introspect, "_STATS", "CALL db.stats.missing('GRAPH COUNTS') YIELD data RETURN data")
            warnings: list[str] = []
            assert counts(connection, warnings) == usual
            assert len(warnings) == 1
            assert "one by one" in warnings[0]
            monkeypatch.setattr(introspect, "_INDEXES", "SHOW INDEXES YIELD nothing RETURN nothing")
            monkeypatch.setattr(introspect, "_CONSTRAINTS", "SHOW CONSTRAINTS YIELD nothing RETURN nothing")
            found = look(connection, typed)
            assert sum("may not be read" in warning for warning in found.warnings) == 3
            assert all(node.unique is None for node in found.nodes)
            assert sum(1 for _ in _rows(driver, f"MATCH (n) WHERE {foreign('n')} RETURN 1")) == usual.nodes
            assert not any(label.startswith("Condgraph") for label in usual.labels)
        finally:
            connection.close()


# -- opening ---------------------------------------------------------------------------------------


def test_which_layout_is_opened(emptied_neo4j_uri: str, tmp_path: Path) -> None:
    uri = emptied_neo4j_uri
    with database(uri) as driver:
        with condgraph.open(uri) as graph:
            assert type(graph) is Neo4jGraph
        with pytest.raises(CondgraphError, match="nothing in the database"):
            condgraph.open(uri, layout="native")
        social(driver, 50)
        kinds = {}
        for name, options in {
            "default": {},
            "native": {"layout": "native"},
            "ours": {"layout": "condgraph"},
            "named": {"graph": "x"},
        }.items():
            with condgraph.open(uri, **options) as graph:  # type: ignore[arg-type]
                kinds[name] = type(graph)
        assert kinds == {"default": NativeGraph, "native": NativeGraph, "ours": Neo4jGraph, "named": Neo4jGraph}
        foreign_nodes = _rows(driver, "MATCH (n) RETURN count(n)")[0][0]
        with condgraph.open(uri, layout="condgraph") as ours:
            ours.load(FOLDER / "countries.json")
        with condgraph.open(uri) as graph, condgraph.open(uri, layout="native") as other:
            assert type(graph) is Neo4jGraph
            assert graph.status().counts["entities"] == 93
            assert other.status().counts["entities"] == foreign_nodes == other.snapshot().status().counts["entities"]
            assert not other.schema().sources[0].name.startswith("countries")
            before = content(driver)
            assert other.kopl("FindAll() FilterConcept(Person) Count()").values == [60]
            assert content(driver) == before
        file = tmp_path / "map.toml"
        file.write_text("[node.Persn]\n")
        with pytest.raises(OptionError, match="no nodes with the label 'Persn'"):
            condgraph.open(uri, mapping=file)
    for wrong in ({"layout": "other"}, {"layout": "native", "graph": "x"}, {"layout": "condgraph", "mapping": "x"}):
        with pytest.raises(OptionError):
            condgraph.open(uri, **wrong)  # type: ignore[arg-type]
    for options in ({"layout": "native"}, {"mapping": "x"}):
        with pytest.raises(OptionError, match="Neo4j database"):
            condgraph.open(tmp_path / "folder", **options)  # type: ignore[arg-type]


def test_a_mapping_file_says_names_validity_and_ids(ugly: tuple[str, neo4j.Driver, dict[str, Any]], tmp_path: Path) -> None:
    uri, driver, before = ugly
    file = tmp_path / "map.toml"
    file.write_text(
        """
        [node.Account]
        name = ["owner", "iban"]
        concept = "account"
        [node.Person]
        name = "handle"
        [node.Employee]
        name = "handle"
        [relationship.DEBIT]
        predicate = "debits"
        times = "[from, to]"
        [relationship.KNOWS.property.since]
        as = "date"
        format = "%Y"
        [relationship.KNOWS]
        times = "[since, ]"
        """
    )
    with condgraph.open(uri, mapping=file) as graph:
        pulled = graph.snapshot()
        program = "Find(Owner 5 XX105) Relate(debits, forward) Count()"
        (debits,) = _rows(driver, "MATCH (:Account {iban: 'XX105'})-[r:DEBIT]->(p) RETURN count(DISTINCT p)")[0]
        assert pulled.kopl(program).values == graph.kopl(program).values == [debits]
        assert pulled.kopl("FindAll() FilterConcept(account) Count()").values == [20]
        facts = pulled.kopl("Find(p5) Relate(KNOWS, forward) QueryName()").evidence
        assert facts
        assert all("start time" in str(fact) for fact in facts if "KNOWS" in str(fact))
        assert isinstance(graph, NativeGraph)
        again = tomllib.loads(graph.mapping_file())
        assert again["relationship"]["DEBIT"]["times"] == "[from, to]"
        assert again["node"]["Account"]["name"] == ["owner", "iban"]
        second = tmp_path / "again.toml"
        second.write_text(graph.mapping_file())
        with condgraph.open(uri, mapping=second) as other:
            assert other.snapshot().schema().data() == pulled.schema().data()
    file.write_text('[node.Account]\nid = "type"\n')
    with pytest.raises(OptionError, match="two nodes of 'Account' have the same 'type'"):
        condgraph.open(uri, mapping=file)
    assert content(driver) == before


# -- staleness -------------------------------------------------------------------------------------


def test_the_schema_is_looked_at_again_when_counts_change(emptied_neo4j_uri: str) -> None:
    now = [0.0]
    with database(emptied_neo4j_uri) as driver, driver.session() as session:
        session.run("UNWIND range(1, 5) AS i CREATE (:City {name: 'city ' + toString(i), size: i})").consume()
        connection = Connection(emptied_neo4j_uri)
        try:
            current = CurrentMapping(connection, typed, clock=lambda: now[0])
            first = current.mapping()
            session.run("CREATE (:City {name: 'new', mayor: 'Ada'}), (:River {name: 'Aar'})").consume()
            # The lease holds.
            assert current.mapping() is first
            now[0] += 6
            second = current.mapping()
            assert [(node.label, node.count) for node in second.nodes] == [("City", 6), ("River", 1)]
            assert "mayor" in _properties(second, "City")
            now[0] += 6
            assert current.mapping() is second
            # What keeps all counts is not noticed, as the docs say, until all is looked at.
            session.run("MATCH (n:River) SET n.length = 5").consume()
            now[0] += 6
            assert current.mapping() is second
            current.refresh()
            assert "length" in _properties(current.mapping(), "River")
        finally:
            connection.close()


def test_a_name_that_came_later_is_found(emptied_neo4j_uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("condgraph.remote_native._FRESH", 0.0)
    with database(emptied_neo4j_uri) as driver, driver.session() as session:
        session.run("CREATE (:City {name: 'Bern'})").consume()
        with condgraph.open(emptied_neo4j_uri) as graph:
            assert graph.kopl("FindAll() FilterConcept(City) QueryName()").values == ["Bern"]
            session.run("CREATE (:River {name: 'Aar'})-[:FLOWS_BY]->(:City {name: 'Thun'})").consume()
            assert graph.kopl("Find(Aar) Relate(FLOWS_BY, forward) QueryName()").values == ["Thun"]
            with pytest.raises(UnknownNameError):
                graph.kopl("FindAll() FilterConcept(Rivr) Count()")


# -- the command line ------------------------------------------------------------------------------


def test_the_command_line_writes_and_takes_a_mapping(emptied_neo4j_uri: str, tmp_path: Path) -> None:
    uri, file = emptied_neo4j_uri, tmp_path / "map.toml"

    def run(*words: str, **more: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "condgraph", *words]
        return subprocess.run(command, capture_output=True, text=True, env=os.environ | more, check=False)

    with database(uri, "ledger") as driver:
        before = content(driver)
        assert run("map", uri, "-o", str(file)).returncode == 0
        assert tomllib.loads(file.read_text())["node"]["Posting"]["property"]["known"]["format"] == "%d.%m.%Y"
        again = run("map", uri, "-o", str(file))
        assert again.returncode != 0
        assert "already exists" in again.stderr
        file.write_text(file.read_text().replace('concept = "Account"', 'concept = "account"'))
        query = ("query", "-d", uri, "FindAll() FilterConcept(account) Count()")
        assert run(*query, CONDGRAPH_MAPPING=str(file)).stdout.strip() == "20"
        assert run("map", "somewhere").returncode == 2
        status = run("status", "-d", uri)
        assert status.returncode == 0
        assert "220 entities" in status.stdout
        assert content(driver) == before
        # A command that writes is about a graph of condgraph's own.
        assert run("delete", "-d", uri, "--yes").returncode == 3
        emptied(driver)
