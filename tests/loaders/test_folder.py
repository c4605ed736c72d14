"""Folders of CSV files with keys between them: keys found and given, join tables, dangling keys;
Northwind counted.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from condgraph.engine.errors import FormatError, LoadError, OptionError
from condgraph.engine.facts import Batch, Entity, EntityKind, Item, Member, Members, Ref, Rows, Source, Sourced, Statement
from condgraph.engine.values import Quantity
from condgraph.loaders.base import OnError, Reading
from condgraph.loaders.export import one_by_one
from condgraph.loaders.folder.declared import Declared
from condgraph.loaders.folder.keys import Columns, find_keys
from condgraph.loaders.folder.load import FORMAT
from condgraph.loaders.table.joins import key_names, singular

SHOP = {
    "products.csv": "productID,productName,price,categoryID\n1,Chai,18.5,7\n2,Tofu,3.0,8\n3,Wine,9.0,NULL\n",
    "categories.csv": "categoryID,categoryName\n7,Beverages\n8,Produce\n",
    "tags.csv": "id,label\nx,hot\ny,cold\n",
    "product-tags.csv": "product_id,tag_id\n1,x\n2,y\n1,y\n",
    "orders.csv": "orderID,productID,amount,soldBy\n10,1,5,b\n11,1,6,a\n12,2,7,\n",
    "sellers.csv": "sellerCode,name\na,Ann\nb,Bob\n",
}


def read(path: Path, on_error: OnError = "raise", **options: Any) -> tuple[list[Item], Reading]:
    reading = Reading(Source("shop", str(path)), on_error)
    FORMAT.check_options(options)
    return singles(FORMAT.read(path, reading, options)), reading


def singles(items: Iterable[Item]) -> list[Item]:
    """Items without what stands side by side."""
    return [one for item in items for one in (one_by_one(item) if isinstance(item, (Batch, Members, Rows)) else (item,))]


def facts(items: list[Item]) -> list[tuple[str, str, Any]]:
    found = [item.item for item in items if isinstance(item, Sourced) and isinstance(item.item, Statement)]
    return [(one.subject, one.predicate, one.object) for one in found]


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    for name, text in SHOP.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_rows_keys_and_join_tables(shop: Path) -> None:
    items, reading = read(shop)
    found = facts(items)
    assert ("products/1", "categoryID", Ref("categories/7")) in found
    assert ("products/1", "price", Quantity(18.5)) in found
    assert ("orders/10", "productID", Ref("products/1")) in found
    assert not any(subject == "products/3" and predicate == "categoryID" for subject, predicate, _ in found)
    joined = [one for one in found if one[1] == "product-tags"]
    assert joined == [
        ("products/1", "product-tags", Ref("tags/x")),
        ("products/2", "product-tags", Ref("tags/y")),
        ("products/1", "product-tags", Ref("tags/y")),
    ]
    assert Sourced(Entity("products", "products", EntityKind.CONCEPT), (("shop/products", 0),)) in items
    assert not any(isinstance(item, Entity) and item.id == "product-tags" for item in items)
    assert Sourced(Member("products/1", "products", 1), (("shop/products", 1),)) in items
    assert Source("shop/products", str(shop / "products.csv"), "csv") in items
    names = {
        item.item.id: (item.item.name, item.item.row)
        for item in items
        if isinstance(item, Sourced) and isinstance(item.item, Entity)
    }
    assert names["products/2"] == ("Tofu", 2)
    assert names["sellers/b"] == ("Bob", 2)
    assert names["orders/10"] == ("orders/10", 1)
    # Cells alone make likely what nobody said.
    assert [one.field for one in reading.problems] == ["soldBy"]
    assert "join={'orders.soldBy': 'sellers.sellerCode'} makes it a reference" in reading.problems[0].message


def test_keys_that_are_given(shop: Path) -> None:
    items, _ = read(shop, keys={"orders.soldBy": "sellers.sellerCode"}, name_columns={"tags": "id"})
    assert ("orders/10", "soldBy", Ref("sellers/b")) in facts(items)
    assert Sourced(Entity("tags/x", "x", EntityKind.ROW, 1), (("shop/tags", 1),)) in items
    items, _ = read(shop, primary={"products": "productName"})
    assert ("products/Chai", "productID", Quantity(1)) in facts(items)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"keys": {"orders.soldby": "sellers.sellerCode"}}, "soldBy"),
        ({"keys": {"order.soldBy": "sellers.sellerCode"}}, "orders"),
        ({"keys": {"orders.soldBy": "product-tags.product_id"}}, "repeat"),
        ({"keys": ["orders.soldBy"]}, "mapping"),
        ({"primary": "orderID"}, "mapping"),
        ({"primary": {"orders": "id"}}, "does not have"),
        ({"key": "x"}, "keys"),
    ],
)
def test_wrong_options(shop: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        read(shop, **options)


def test_a_dangling_key_is_reported_and_kept_as_text(shop: Path) -> None:
    (shop / "orders.csv").write_text("orderID,productID\n10,1\n11,2\n12,99\n")
    items, reading = read(shop)
    assert ("orders/12", "productID", "99") in facts(items)
    assert [(one.file, one.row, one.field, one.skipped) for one in reading.problems] == [
        (str(shop / "orders.csv"), 3, "productID", False)
    ]
    assert reading.warned == 1


def test_a_dangling_key_of_a_join_table_is_bad(shop: Path) -> None:
    (shop / "product-tags.csv").write_text("product_id,tag_id\n1,x\n2,z\n2,y\n1,\n")
    with pytest.raises(LoadError, match=r"row 2, field 'tag_id'"):
        read(shop)
    items, reading = read(shop, "skip")
    assert sum(one[1] == "product-tags" for one in facts(items)) == 2
    assert reading.skipped == 2


def test_a_repeated_or_missing_primary_key_is_bad(shop: Path) -> None:
    (shop / "sellers.csv").write_text("sellerCode,name\na,Ann\na,Bob\n,Eve\n")
    assert ("sellers/2", "name", "Bob") in facts(read(shop)[0])  # no key, so rows go by number
    with pytest.raises(LoadError, match="'a' is already in row 1"):
        read(shop, primary={"sellers": "sellerCode"})
    items, reading = read(shop, "skip", primary={"sellers": "sellerCode"})
    assert reading.skipped == 2
    assert ("sellers/a", "name", "Ann") in facts(items)


def test_a_table_without_rows_has_no_keys(shop: Path) -> None:
    (shop / "products.csv").write_text("productID,productName\n")
    found, reading = read(shop, "skip", primary={"products": "productID"}, join={"orders.productID": "products"})
    assert ("orders/10", "productID", "1") in facts(found)
    assert "'1' is not a key of 'products'" in str(reading.problems[-3])
    found, reading = read(shop, "skip", primary={"products": "productID"})
    assert ("orders/10", "productID", Quantity(1)) in facts(found)
    assert "2 of its 2 values are not keys of 'products'" in reading.problems[-2].message


def test_names_that_agree_by_chance_are_reported(shop: Path) -> None:
    (shop / "orders.csv").write_text("orderID,productID\n10,1\n11,98\n12,99\n")
    items, reading = read(shop)
    assert ("orders/12", "productID", Quantity(99)) in facts(items)
    assert "looks like a reference" in reading.problems[0].message


def test_what_is_no_such_folder(tmp_path: Path, shop: Path) -> None:
    with pytest.raises(FormatError, match="neither a folder"):
        read(shop / "orders.csv")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FormatError, match="no CSV or Parquet"):
        read(tmp_path / "empty")
    (shop / "orders.tsv").write_text("a\tb\n1\t2\n")
    with pytest.raises(LoadError, match="two files"):
        read(shop)


def test_sniff(shop: Path, tmp_path: Path) -> None:
    assert FORMAT.sniff(shop, b"") == 90
    (shop / "README.md").write_text("about")
    assert FORMAT.sniff(shop, b"") == 90
    (shop / "more.txt").write_text("a|r|b")
    assert FORMAT.sniff(shop, b"") == 0
    other = tmp_path / "other"
    other.mkdir()
    (other / "a.csv").write_text("x,y\n1,2\n")
    (other / "b.csv").write_text("x,z\n1,2\n")
    assert FORMAT.sniff(other, b"") == 0


def test_rules_of_keys() -> None:
    assert singular("categories") == "category"
    assert {"category", "categoryid", "idcategory"} <= key_names("categories")
    table = Columns("products", ["product", "productID"])
    table.rows = 2
    table.add((0,), ["a", "b"])
    table.add((1,), ["1", None])
    find_keys({"products": table}, Declared())
    assert table.primary == (0,)


def test_northwind(data: Path) -> None:
    folder = data / "lpg_northwind" / "import"
    keys = {"orders.shipVia": "shippers.shipperID", "employees.reportsTo": "employees.employeeID"}
    items, reading = read(folder, keys=keys)
    tables: dict[str, tuple[list[str], list[list[str]]]] = {}
    broken = 0
    for path in folder.glob("*.csv"):
        with path.open(encoding="utf-8", newline="") as stream:
            header, *rows = csv.reader(stream)
        # Unquoted commas: each is followed by a space, which no other field of these records begins
        # with.
        broken += sum(len(row) != len(header) for row in rows)
        mended = [next(csv.reader([",".join(row).replace(", ", "; ")])) if len(row) != len(header) else row for row in rows]
        tables[path.stem] = header, mended
    # Three columns of postal codes are mostly numbers, and say which of their cells are not.
    assert (reading.skipped, reading.warned, broken) == (0, 188, 185)
    assert {name: len(rows) for name, (_, rows) in tables.items()}["orders"] == 830
    addresses = {
        item.item.subject: item.item.object
        for item in items
        if isinstance(item, Sourced) and isinstance(item.item, Statement) and item.item.predicate == "shipAddress"
    } | {item.subject: item.object for item in items if isinstance(item, Statement) and item.predicate == "shipAddress"}
    assert addresses["orders/10250"] == "Rua do Paço, 67"
    declared = (item.item for item in items if isinstance(item, Sourced) and isinstance(item.item, Entity))
    entities = Counter(one.id.split("/")[0] for one in declared if one.kind is EntityKind.ROW)
    assert entities == {name: len(rows) for name, (_, rows) in tables.items() if name != "employee-territories"}
    relations = Counter((subject.split("/")[0], predicate) for subject, predicate, other in facts(items) if isinstance(other, Ref))
    ids = {name: {row[0] for row in rows} for name, (_, rows) in tables.items()}

    def inside(table: str, column: str, target: str) -> int:
        header, rows = tables[table]
        return sum(row[header.index(column)] in ids[target] for row in rows)

    assert relations == {
        ("orders", "customerID"): inside("orders", "customerID", "customers"),
        ("orders", "employeeID"): inside("orders", "employeeID", "employees"),
        ("orders", "shipVia"): inside("orders", "shipVia", "shippers"),
        ("order-details", "orderID"): inside("order-details", "orderID", "orders"),
        ("order-details", "productID"): 2155,
        ("products", "categoryID"): 77,
        ("products", "supplierID"): inside("products", "supplierID", "suppliers"),
        ("territories", "regionID"): 53,
        ("employees", "employee-territories"): 49,
        ("employees", "reportsTo"): 8,
    }
