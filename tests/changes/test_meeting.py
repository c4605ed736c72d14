"""Tables that refer to each other, and are changed then: rows keep the ids by which others refer to
them, replaced sources say nothing of keys any more, and references to nothing are said.
"""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

import condgraph
from condgraph.engine.errors import OptionError
from condgraph.engine.snapshot.readback import items
from condgraph.graph import Graph

Rows = list[dict[str, Any]]
PEAKS: Rows = [{"mountain": "Eiger", "country": "Switzerland"}, {"mountain": "Olymp", "country": "Narnia"}]
COUNTRIES: Rows = [{"country": "Switzerland", "capital": "Bern"}, {"country": "Narnia", "capital": "Cair"}]
NOTES: Rows = [{"note": "n1", "about": "Switzerland"}, {"note": "n2", "about": "Narnia"}]
TABLES: dict[str, tuple[Rows, dict[str, Any]]] = {
    "peaks": (PEAKS, {"key": "mountain", "refs": ["country"]}),
    "countries": (COUNTRIES, {"key": "country"}),
    "notes": (NOTES, {"key": "note", "join": {"about": "countries.country"}}),
}


def put(graph: Graph, name: str, rows: Rows | None = None, **more: Any) -> list[str]:
    """Load one of the tables; what was said."""
    usual, options = TABLES[name]
    report = graph.load(usual if rows is None else rows, name=name, **options, **more)
    return [problem.message for problem in report.problems]


def capital(graph: Graph, name: str, relation: str) -> list[str]:
    return graph.kopl(f"Find({name}) Relate({relation}, forward) QueryAttr(capital)", on_unknown="empty").texts


def every(graph: Graph) -> set[str]:
    return {repr(item) for item in items(graph.current)}


@pytest.mark.parametrize("order", list(permutations(TABLES)), ids="-".join)
def test_any_order_and_any_replacement(order: tuple[str, ...]) -> None:
    """What is said of a column by `join=` holds in any order; replacing a table by itself, adding
    it to itself and loading it again change no answer.
    """
    graph = condgraph.open()
    said = [message for name in order for message in put(graph, name)]
    met = order != ("notes", "peaks", "countries")
    assert any("a separate entity 'Narnia'" in message for message in said) is not met
    for change in ({}, {"replace": True}, {"append": True}):
        for name in ("peaks", "notes", "countries", "notes", "peaks"):
            assert capital(graph, "n1", "about") == ["Bern"]
            assert capital(graph, "n2", "about") == ["Cair"]
            if met:
                assert capital(graph, "Eiger", "country") == ["Bern"]
                assert capital(graph, "Olymp", "country") == ["Cair"]
                assert len(graph.current.named("Narnia")) == 1
            put(graph, name, **change)


def test_rows_keep_their_ids_when_who_named_them_is_gone() -> None:
    """A row that was called as one source refers to it is the row of its key also without that
    source.
    """
    graph = condgraph.open()
    for name in ("peaks", "countries", "notes"):
        put(graph, name)
    graph.unload("peaks")
    put(graph, "countries", [{"country": "Switzerland", "capital": "Berne"}, COUNTRIES[1]], replace=True)
    assert capital(graph, "n1", "about") == ["Berne"]
    graph.unload("notes")
    graph.load([{"country": "Narnia", "size": 7}], name="countries", key="country", append=True)
    assert graph.kopl("FindAll() FilterStr(capital, Cair) QueryAttr(size)").texts == ["7"]


def test_rows_that_are_not_there_any_more_are_said() -> None:
    graph = condgraph.open()
    for name in ("countries", "peaks"):
        put(graph, name)
    (said,) = put(graph, "countries", COUNTRIES[:1], replace=True)
    assert said == "other sources refer to rows of 'countries' that are missing: 'Narnia'"
    (said,) = put(graph, "peaks", replace=True)
    assert said == "'Narnia' is not a key of 'countries'"
    # It comes back as what is referred to.
    assert put(graph, "countries", COUNTRIES[1:], append=True) == []
    assert capital(graph, "Olymp", "country") == ["Cair"]


STAFF: Rows = [{"id": 1, "employee": 2}, {"id": 2, "employee": 3}, {"id": 3, "employee": 9}]


def test_a_table_replaced_by_itself_is_what_it_was() -> None:
    """A column that is called like its own table does not meet rows that are being replaced."""
    graph, fresh = condgraph.open(), condgraph.open()
    for _ in range(2):
        graph.load(STAFF, name="employees", key="id", refs=["employee"], replace=True)
    fresh.load(STAFF, name="employees", key="id", refs=["employee"])
    assert every(graph) == every(fresh)


def test_references_to_the_table_itself() -> None:
    """Valid ones are no problem, whichever row comes first; the others are said."""
    graph, fresh = condgraph.open(), condgraph.open()
    options: dict[str, Any] = {"name": "staff", "key": "id", "join": {"employee": "staff.id"}}
    for one in (graph, fresh):
        (said,) = one.load(STAFF, **options).problems
        assert (said.message, said.row, said.field) == ("'9' is not a key of 'staff'", 3, "employee")
    graph.load([{"id": 9, "employee": 7}], **options, replace=True)
    (said,) = graph.load(STAFF, **options, replace=True).problems
    assert said.message == "'9' is not a key of 'staff'"
    assert every(graph) == every(fresh)
    (said,) = graph.load([{"id": 9, "employee": 1}, {"id": 8, "employee": 6}], **options, append=True).problems
    assert said.message == "'6' is not a key of 'staff'"
    assert graph.kopl("Find(9) Relate(employee, backward) QueryName()").texts == ["3"]
    with pytest.raises(OptionError, match="whose key is not specified"):
        graph.load(STAFF, name="other", join={"employee": "other.id"})


def test_numbers_of_rows_are_not_taken_for_keys() -> None:
    """Rows without a key are told apart by their numbers, to which nothing refers."""
    people: Rows = [{"id": number, "name": f"P{number}"} for number in (1, 2, 3, 9, 4)]
    dogs: Rows = [{"dog": "Rex", "owner": 4}]
    graph = condgraph.open()
    graph.load(people, name="people", name_column="name")
    with pytest.raises(OptionError, match="was loaded without a key"):
        graph.load(dogs, name="dogs", key="dog", join={"owner": "people.id"})
    graph = condgraph.open()
    graph.load(dogs, name="dogs", key="dog", join={"owner": "people.id"})
    (said,) = graph.load(people, name="people", name_column="name").problems
    assert "that are missing: '4'; its rows have no keys" in said.message
    assert graph.load(people, name="people", name_column="name", key="id", replace=True).problems == ()
    assert graph.kopl("Find(Rex) Relate(owner, forward) QueryName()").texts == ["P4"]
    with pytest.raises(OptionError, match="'name' of 'people', whose key is 'id'"):
        graph.load(dogs, name="cats", key="dog", join={"owner": "people.name"})


@pytest.mark.parametrize("keys", [("1,000", "2,000"), ("1.0", "2.0"), ("1e3", "2e3"), ("5 kg", "05 kg"), ("007", "008")])
def test_keys_are_what_was_written(keys: tuple[str, str], tmp_path: Any) -> None:
    """Whatever value is read from a key, columns refer to it as it stands."""
    (tmp_path / "parts.csv").write_text("part;town\n" + "".join(f"{key};T{at}\n" for at, key in enumerate(keys)))
    (tmp_path / "cars.csv").write_text(f"car;part\nc;{keys[1]}\n")
    graph = condgraph.open()
    graph.load(tmp_path / "parts.csv", key="part", delimiter=";")
    assert graph.load(tmp_path / "cars.csv", key="car", refs=["part"], delimiter=";").problems == ()
    assert graph.kopl("Find(c) Relate(part, forward) QueryAttr(town)").texts == ["T1"]


def test_rows_of_two_sources_by_one_id_are_said(tmp_path: Path) -> None:
    """Tables of one name in two folders: their rows are told apart by their keys alone."""
    for name in "ab":
        folder = tmp_path / name
        folder.mkdir()
        (folder / "customers.csv").write_text(f"customerID,city\n1,{name}\n{name},x\n")
        (folder / "orders.csv").write_text(f"orderID,customerID\n{name}7,1\n")
    graph = condgraph.open()
    assert not graph.load(tmp_path / "a").warnings
    (said,) = graph.load(tmp_path / "b").warnings
    assert said == "1 entity is a row of 'a/customers' and of 'b/customers', by one id: 'customers/1'"
    # Other loads say nothing of it; a replacement of one of them does.
    assert not graph.load([{"x": 1}], name="c").warnings
    assert list(graph.load(tmp_path / "a", replace=True).warnings) == [said]
    graph.unload("b")
    assert not graph.load(tmp_path / "a", replace=True).warnings


@pytest.mark.parametrize("join", [{"customer_id": "shop/customers"}, {"customer_id": "shop/customers.customer_id"}])
def test_a_row_that_a_folder_has_later_is_what_was_referred_to(join: dict[str, str], tmp_path: Path) -> None:
    """Rows of a folder have ids without its name, also those that are not there yet."""
    shop = tmp_path / "shop"
    shop.mkdir()
    (shop / "orders.csv").write_text("order_id,customer_id\n1,1\n")
    (shop / "customers.csv").write_text("customer_id,name\n1,Ann\n")
    graph = condgraph.open()
    graph.load(shop)
    (said,) = graph.load([{"n": 1, "customer_id": 1}, {"n": 2, "customer_id": 2}], name="notes", key="n", join=join).problems
    assert said.message == "'2' is not a key of 'shop/customers'"
    (shop / "customers.csv").write_text("customer_id,name\n1,Ann\n2,Bob\n")
    graph.load(shop, replace=True)
    assert graph.kopl("Find(2) Relate(customer_id, forward) QueryName()").texts == ["Bob"]
