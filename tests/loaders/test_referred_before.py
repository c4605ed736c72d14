"""References that are loaded before the folder with their rows: they meet, also after the folder is
replaced, and what is missing is said.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import condgraph
from condgraph.engine.errors import OptionError
from condgraph.graph import Graph

ORDERS = "orderID,customerID,amount\n10,ALFKI,120\n11,ALFKI,80\n12,AC/DC,5\n13,nobody,6\n"
FILES = {
    "customers": "customerID,name,city\nALFKI,Alfred,Berlin\nAC/DC,Young,Sydney\nDC,Direct,Oslo\n",
    "invoices": "invoiceID,customerID,total\n1,ALFKI,5\n2,DC,8\n",
}
WAYS: list[dict[str, Any]] = [
    {"refs": ["customerID"]},
    {"join": {"customerID": "customers"}},
    {"join": {"customerID": "customers.customerID"}},
    {"join": {"customerID": "shop/customers.customerID"}},
]


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    for name, text in FILES.items():
        (folder / f"{name}.csv").write_text(text, encoding="utf-8")
    (tmp_path / "orders.csv").write_text(ORDERS, encoding="utf-8")
    return folder


def cities(graph: Graph) -> list[tuple[str, ...]]:
    return graph.query("FindAll()", table="where amount is known show amount, customerID.city order by amount").cells


EXPECTED = [("5", "Sydney"), ("6", ""), ("80", "Berlin"), ("120", "Berlin")]


@pytest.mark.parametrize("options", WAYS)
@pytest.mark.parametrize("order", ["of", "fo", "off", "fof", "offo"])
def test_rows_of_a_folder_are_what_was_referred_to(order: str, options: dict[str, Any], shop: Path) -> None:
    graph = condgraph.open("memory:")
    said: list[str] = []
    for at, one in enumerate(order):
        again = order.index(one) < at
        if one == "o":
            graph.load(shop.parent / "orders.csv", key="orderID", **options, replace=again)
        else:
            if again:
                (shop / "customers.csv").write_text(FILES["customers"] + f"new {at},New,Rome\n", encoding="utf-8")
            said = [problem.message for problem in graph.load(shop, replace=again).problems]
    assert cities(graph) == EXPECTED
    # One entity for each row: the folder's own references lead to it as well.
    assert graph.kopl("Find(Alfred) Relate(customerID, backward) Count()").texts == ["3"]
    assert len(graph.current.named("Alfred")) == 1
    assert not len(graph.current.named("ALFKI"))
    if order == "of" and "join" in options:
        assert said == ["other sources refer to rows of 'shop/customers' that are missing: 'nobody'"]
    for answer in (
        graph.query("FindAll()", table=f"where amount is known and customerID = '{one}' show amount") for one in ("AC/DC", "Young")
    ):
        assert answer.cells == [("5",)]


def test_a_key_of_two_tables_is_no_ones(shop: Path) -> None:
    (shop / "accounts.csv").write_text("customerID,balance\nALFKI,7\n", encoding="utf-8")
    graph = condgraph.open("memory:")
    graph.load(shop.parent / "orders.csv", key="orderID", refs=["customerID"])
    said = [one.message for one in graph.load(shop, primary={"accounts": "customerID"}).problems]
    assert [one for one in said if "several tables" in one] == [
        "other sources refer to 'ALFKI', a key of several tables here; join= selects one"
    ] * 2
    assert cities(graph) == [("5", "Sydney"), ("6", ""), ("80", ""), ("120", "")]


def test_a_table_of_a_folder_by_its_own_name(shop: Path) -> None:
    graph = condgraph.open("memory:")
    graph.load(shop)
    with pytest.raises(OptionError, match="whose key is 'customerID'"):
        graph.load(shop.parent / "orders.csv", key="orderID", join={"customerID": "customers.code"})
    report = graph.load(shop.parent / "orders.csv", key="orderID", join={"customerID": "customers"})
    assert [(one.row, one.message) for one in report.problems] == [(4, "'nobody' is not a key of 'shop/customers'")]
    # Of two folders with such a table it is none.
    (shop.parent / "more").mkdir()
    for name in FILES:
        (shop.parent / "more" / f"{name}.csv").write_text(FILES[name].replace("ALFKI", "BETA"), encoding="utf-8")
    graph.load(shop.parent / "more")
    report = graph.load([{"n": 1, "customerID": "ALFKI"}], name="notes", key="n", join={"customerID": "customers"})
    assert report.problems[0].message.endswith("which is not loaded yet")
