"""Tests of tables that name what a column refers to by its key: as in DuckDB, in process and as
SPARQL, and what is said where nothing has it.
"""

from __future__ import annotations

from typing import Any

import pytest

import condgraph
from condgraph.engine.errors import ParseError, UnknownNameError
from condgraph.engine.execute.grouped import key_of
from condgraph.graph import Graph
from tests.support import keyed_shop


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> tuple[Graph, Any]:
    pytest.importorskip("duckdb")
    path = tmp_path_factory.mktemp("keyed") / "shop"
    return keyed_shop.shop(path), keyed_shop.tables(path)


@pytest.mark.parametrize(("sql", "concept", "clause"), keyed_shop.QUESTIONS)
def test_keys_find_what_they_find_in_sql(shop: tuple[Graph, Any], sql: str, concept: str, clause: str) -> None:
    graph, tables = shop
    theirs = sorted([tuple(map(str, row)) for row in tables.execute(sql).fetchall()])
    assert theirs
    for engine in (None, "sparql"):
        answer = graph.query(f"FindAll() FilterConcept({concept})", table=clause, engine=engine)
        assert sorted(row[-len(theirs[0]) :] for row in answer.cells) == theirs, engine
        assert answer.check(full=True)


@pytest.mark.parametrize(("where", "condition"), keyed_shop.QUERIES)
def test_keys_find_the_same_in_llm_queries(shop: tuple[Graph, Any], where: str, condition: str) -> None:
    """They were unknown values, and with != everything was unlike them."""
    graph, tables = shop
    theirs = sorted([str(row[0]) for row in tables.execute(f"SELECT orderID FROM orders WHERE {where}").fetchall()])
    assert theirs
    for engine in (None, "sparql"):
        answer = graph.query(keyed_shop.query(condition), engine=engine)
        assert sorted(answer.texts) == theirs, engine
        assert sum("key of a row of" in one for one in answer.warnings) == condition.count("7', '") + 1
        assert answer.check(full=True)


def test_what_is_no_key_is_an_error(shop: tuple[Graph, Any]) -> None:
    for text in ("alfki", "/DC", "07", "nobody"):
        with pytest.raises(UnknownNameError, match="customerID"):
            shop[0].query(keyed_shop.query(f"relation='customerID', tail_entity='{text}'"))


def test_stores_prove_what_keys_find(shop: tuple[Graph, Any]) -> None:
    answer = shop[0].query("FindAll() FilterConcept(orders)", table="where customerID = 'AC/DC' show amount", engine="sparql")
    assert answer.cells == [("7",)]
    assert answer.check(full=True)


def asked(graph: Graph, clause: str) -> tuple[list[tuple[str, ...]], list[str]]:
    answer = graph.query("FindAll() FilterConcept(orders)", table=clause)
    return answer.cells, [one for one in answer.warnings if "the answer is empty" not in one]


def test_names_and_ids_find_the_same_rows(shop: tuple[Graph, Any]) -> None:
    graph, _ = shop
    for text in ("ALFKI", "Alfred", "customers/ALFKI", "Alfred "):
        assert asked(graph, f"where customerID = '{text}' show orderID") == ([("10",), ("11",)], []), text
    # A key has the letters that it has, and parts of it are no key.
    for text in ("alfki", "/DC", "C/DC", "07"):
        assert not asked(graph, f"where customerID = '{text}' show orderID")[0], text


def test_what_nothing_is_called_is_said_with_the_nearest(shop: tuple[Graph, Any]) -> None:
    graph, _ = shop
    assert asked(graph, "where customerID = 'ALFKX' show orderID") == (
        [], ["customerID: nothing has the name or key 'ALFKX'; nearest: 'ALFKI', 'Alfred'"],
    )  # fmt: skip
    # Also where a count shows nothing of it, and behind another test.
    assert asked(graph, "where amount > 1 and (customerID = 'Alfreds' or amount > 1000) show count()") == (
        [("0",)], ["customerID: nothing has the name or key 'Alfreds'; nearest: 'Alfred', 'ALFKI'"],
    )  # fmt: skip
    assert asked(graph, "where handler = 99 show orderID") == ([], ["handler: nothing has the name or key '99'"])
    assert asked(graph, "group by handler show count() having handler = 'Kin'")[1] == [
        "handler: nothing has the name or key 'Kin'; nearest: 'Kim'"
    ]
    # One of several that is there is enough, and what is not there may be ruled out.
    assert asked(graph, "where customerID in ('ALFKI', 'ALFKX') show orderID")[1] == []
    assert asked(graph, "where customerID != 'ALFKX' show orderID")[1] == []


def test_a_name_that_is_the_key_of_another_is_said(shop: tuple[Graph, Any]) -> None:
    graph, _ = shop
    said = ["handler: '2' is the name of 'employees/3' and the key of 'employees/2', and refers to both"]
    assert asked(graph, "where handler = '2' show orderID")[1] == said
    assert asked(graph, "where handler != '2' show orderID")[1] == said
    assert asked(graph, "group by handler show count() having handler in ('Bo', '2')")[1] == said
    answer = graph.query("FindAll() FilterConcept(orders)", table="where handler = '2' show orderID", engine="sparql")
    assert answer.warnings == said
    for one in ("handler = 2", "handler = 'employees/2'", "handler = 'Kim'"):
        assert asked(graph, f"where {one} show orderID")[1] == []


def test_numbers_are_no_keys_of_letters(shop: tuple[Graph, Any]) -> None:
    graph, _ = shop
    found, said = asked(graph, "where customerID = 7 show orderID")
    assert found == [("13",)]
    assert said == ["8 values (text) cannot be compared with a quantity or a time and are left out"]
    found, said = asked(graph, "where handler = 2 kg show orderID")
    assert (found, said) == ([], ["8 values (text) cannot be compared with a quantity in kg and are left out"])


def test_a_table_alone_and_what_it_refers_to() -> None:
    graph = condgraph.open("memory:")
    graph.load([{"no": 1, "who": "AC/DC"}, {"no": 2, "who": "DC"}], name="notes", key="no", refs=["who"])
    people = [{"who": "AC/DC", "name": "Young"}, {"who": "DC", "name": "Cable"}]
    graph.load(people, name="people/all", key="who", name_column="name")
    found = {
        text: graph.query("FindAll()", table=f"where no is known and who = '{text}' show no").cells
        for text in ("AC/DC", "DC", "Young", "Cable", "all/DC")
    }
    assert found == {"AC/DC": [("1",)], "DC": [("2",)], "Young": [("1",)], "Cable": [("2",)], "all/DC": []}


def test_keys_of_ids() -> None:
    assert key_of("shop/customers/a/b", "shop/customers") == "a/b"
    assert key_of("customers/a/b", "shop/customers") == "a/b"
    assert key_of("customers2/a", "customers") == "customers2/a"


def test_names_with_points_are_told_to_be_quoted() -> None:
    graph = condgraph.open("memory:")
    graph.load(
        [{"id": 1, "addr": {"city": "Rome"}, "boss": "2"}, {"id": 2, "addr": {"city": "Oslo"}}], name="t", key="id", refs=["boss"]
    )
    for clause in ("where addr.city = 'Rome' show id", "show boss.addr.city", "show addr.city.x"):
        with pytest.raises(UnknownNameError) as caught:
            graph.query("FindAll()", table=clause)
        assert caught.value.hint == 'a name with a point in it is in double quotes: "addr.city"', clause
    assert graph.query("FindAll()", table="where \"addr.city\" = 'Rome' show id").cells == [("1",)]
    with pytest.raises(UnknownNameError) as caught:
        graph.query("FindAll()", table="show addr.town")
    assert caught.value.hint is None


def test_digits_in_groups_are_no_number_in_a_unit() -> None:
    graph = condgraph.open("memory:")
    graph.load([{"id": 1, "height": 1500}, {"id": 2, "height": "5 kg"}], name="t", key="id")
    answer = graph.query("FindAll()", table="where height > '1 000' show id")
    assert answer.cells == [("1",)]
    assert answer.warnings == ["1 value (quantity in kg) cannot be compared with a text or a quantity and is left out"]


def test_double_quotes_name_columns() -> None:
    graph = condgraph.open("memory:")
    graph.load([{"a": "x"}], name="t")
    with pytest.raises(ParseError, match="single quotes") as caught:
        graph.query("FindAll()", table='where a = "O\'Neil" show a')
    assert caught.value.hint == "'O''Neil'"
